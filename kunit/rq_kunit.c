// SPDX-License-Identifier: GPL-2.0
/*
 * rq_kunit.c - receive queues: malformed WQEs, limit event, resize, races
 *
 * A queue of user space is one that says so and has no mapping; the process is
 * played by writing to the memory of its ring.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>

#include "rq.c"

#define RACE_WQES	20000u
#define TAKERS		3

struct rq_fixture {
	struct mrsoft_srq srq;
	struct ib_device dev;
	struct completion done;
	atomic_t events;
	u32 rearm;
	bool stop;
	/* the race: who took what */
	atomic_t seen[RACE_WQES];
	atomic_t taken;
	atomic_t foreign;
	struct mrsoft_rwqe rwqe;
	struct ib_sge sge[MRSOFT_MAX_SGE + 1];
};

static void on_event(struct ib_event *event, void *context)
{
	struct rq_fixture *fix = context;

	if (event->event == IB_EVENT_SRQ_LIMIT_REACHED &&
	    event->element.srq == &fix->srq.ib && event->device == &fix->dev)
		atomic_inc(&fix->events);
	/* with the lock held around the upcall this would never return */
	if (fix->rearm)
		mrsoft_rq_set_limit(&fix->srq.rq, fix->rearm);
	mrsoft_rq_pending(&fix->srq.rq);
}

static struct rq_fixture *fixture(struct kunit *test, u32 max_wr, u32 max_sge,
				  bool is_user)
{
	struct rq_fixture *fix = kvzalloc(sizeof(*fix), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fix);
	fix->srq.ib.device = &fix->dev;
	fix->srq.ib.event_handler = on_event;
	fix->srq.ib.srq_context = fix;
	init_completion(&fix->done);
	KUNIT_ASSERT_EQ(test, rq_setup(&fix->srq.rq, max_wr, max_sge, is_user,
				       NULL, NULL), 0);
	return fix;
}

static void fixture_free(struct rq_fixture *fix)
{
	mrsoft_rq_destroy(&fix->srq.rq);
	kvfree(fix);
}

static int kernel_post(struct rq_fixture *fix, u64 wr_id, int num_sge)
{
	struct ib_recv_wr wr = {
		.wr_id = wr_id,
		.sg_list = fix->sge,
		.num_sge = num_sge,
	};
	const struct ib_recv_wr *bad = NULL;
	int err;

	err = mrsoft_rq_post(&fix->srq.rq, &wr, &bad);
	return err && bad != &wr ? -EIO : err;
}

static struct rq_elem *user_slot(struct rq_fixture *fix)
{
	struct mrsoft_abi_ring *buf = fix->srq.rq.ring.mem->buf;

	return (void *)(buf->data +
			(buf->producer_index << buf->log2_elem_size));
}

/* What librxe does, as far as a hostile process would follow it. */
static void user_post(struct rq_fixture *fix, u64 wr_id, u32 num_sge)
{
	struct mrsoft_abi_ring *buf = fix->srq.rq.ring.mem->buf;
	struct rq_elem *elem = user_slot(fix);

	elem->head.wr_id = wr_id;
	elem->head.dma.num_sge = num_sge;
	/* pairs with mrsoft_ring_pending() */
	smp_store_release(&buf->producer_index,
			  (buf->producer_index + 1) & buf->index_mask);
}

static int any_post(struct rq_fixture *fix, u64 wr_id)
{
	if (!fix->srq.rq.is_user)
		return kernel_post(fix, wr_id, 0);
	user_post(fix, wr_id, 0);
	return 0;
}

static bool take(struct rq_fixture *fix)
{
	return mrsoft_rq_take(&fix->srq.rq, &fix->srq, &fix->rwqe);
}

static bool take_is(struct rq_fixture *fix, u64 wr_id)
{
	return take(fix) && !fix->rwqe.bad && fix->rwqe.wr_id == wr_id;
}

static void rq_sizes(struct kunit *test)
{
	static const struct {
		u32 max_wr;
		u32 max_sge;
		int err;
	} row[] = {
		{ 0, 0, 0 },
		{ 0, 1, 0 },
		{ 1, 0, 0 },
		{ 100, 3, 0 },
		{ MRSOFT_MAX_SRQ_WR, MRSOFT_MAX_SGE, 0 },
		{ MRSOFT_MAX_SRQ_WR + 1, 1, -EINVAL },
		{ U32_MAX, 1, -EINVAL },
		{ 1, MRSOFT_MAX_SGE + 1, -EINVAL },
		{ 1, U32_MAX, -EINVAL },
	};
	struct mrsoft_rq rq;
	int i, err;

	for (i = 0; i < ARRAY_SIZE(row); i++) {
		memset(&rq, 0xa5, sizeof(rq));
		err = mrsoft_rq_init(&rq, row[i].max_wr, row[i].max_sge, NULL,
				     NULL);
		KUNIT_EXPECT_EQ_MSG(test, err, row[i].err, "row %d", i);
		if (!err) {
			KUNIT_EXPECT_GE(test, rq.max_wr, row[i].max_wr);
			KUNIT_EXPECT_EQ(test, rq.max_sge, row[i].max_sge);
			KUNIT_EXPECT_FALSE(test, rq.is_user);
		}
		mrsoft_rq_destroy(&rq);
	}
}

static void rq_kernel_post(struct kunit *test)
{
	struct rq_fixture *fix = fixture(test, 3, 4, false);
	struct ib_recv_wr wr[5] = {};
	const struct ib_recv_wr *bad = NULL;
	int i;

	for (i = 0; i < 4; i++)
		fix->sge[i] = (struct ib_sge){ 0x1000 * i, U32_MAX - i, i };
	KUNIT_EXPECT_EQ(test, kernel_post(fix, 1, 5), -EINVAL);
	KUNIT_EXPECT_EQ(test, kernel_post(fix, 1, -1), -EINVAL);
	KUNIT_EXPECT_FALSE(test, take(fix));

	KUNIT_EXPECT_EQ(test, kernel_post(fix, 2, 4), 0);
	KUNIT_ASSERT_TRUE(test, take_is(fix, 2));
	KUNIT_EXPECT_EQ(test, fix->rwqe.num_sge, 4u);
	KUNIT_EXPECT_EQ(test, fix->rwqe.length, 4ull * U32_MAX - 6);
	KUNIT_EXPECT_EQ(test, memcmp(fix->rwqe.sge, fix->sge,
				     4 * sizeof(fix->sge[0])), 0);

	/* a list of five into a queue for three: those before the bad stay */
	for (i = 0; i < 5; i++) {
		wr[i].wr_id = i;
		wr[i].next = i < 4 ? &wr[i + 1] : NULL;
	}
	KUNIT_EXPECT_EQ(test, mrsoft_rq_post(&fix->srq.rq, wr, &bad), -ENOMEM);
	KUNIT_EXPECT_PTR_EQ(test, bad, (const struct ib_recv_wr *)&wr[3]);
	KUNIT_EXPECT_EQ(test, mrsoft_rq_pending(&fix->srq.rq), 3u);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_TRUE(test, take_is(fix, i));
	KUNIT_EXPECT_FALSE(test, take(fix));

	/* a process that posts through the kernel to a queue of its own */
	fix->srq.rq.is_user = true;
	KUNIT_EXPECT_EQ(test, kernel_post(fix, 1, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, mrsoft_rq_pending(&fix->srq.rq), 0u);
	fixture_free(fix);
}

static void rq_order(struct kunit *test)
{
	struct rq_fixture *fix;
	u64 seq, n, i;
	int user;

	for (user = 0; user < 2; user++) {
		fix = fixture(test, 7, 1, user);
		for (seq = 0; seq < 50; seq += n) {
			n = seq % 7 + 1;
			for (i = 0; i < n; i++)
				any_post(fix, seq + i);
			KUNIT_EXPECT_EQ(test, mrsoft_rq_pending(&fix->srq.rq),
					(u32)n);
			for (i = 0; i < n; i++)
				KUNIT_EXPECT_TRUE(test, take_is(fix, seq + i));
			KUNIT_EXPECT_FALSE(test, take(fix));
		}
		fixture_free(fix);
	}
}

/* max_sge 3 in a slot that has room for 5: the limit counts, not the slot. */
static void rq_malformed(struct kunit *test)
{
	static const struct {
		u32 num_sge;
		u32 dma_length;
		bool bad;
	} row[] = {
		{ 0, 0, false },
		{ 0, 77, false },
		{ 1, 0, false },
		{ 3, 0, false },
		{ 3, 1, false },
		{ 3, U32_MAX, false },
		{ 4, 0, true },
		{ 5, 0, true },
		{ 6, 0, true },
		{ 0x10000000, 0, true },
		{ 0x10000001, 0, true },
		{ 0x80000000, 0, true },
		{ U32_MAX, 0, true },
	};
	struct rq_fixture *fix = fixture(test, 3, 3, true);
	struct rq_elem *elem;
	u64 length;
	int i, s;

	for (i = 0; i < ARRAY_SIZE(row); i++) {
		elem = user_slot(fix);
		elem->head.dma.length = row[i].dma_length;
		for (s = 0; s < 3; s++)
			elem->sge[s] = (struct mrsoft_abi_sge){ s, ~s, s + 10 };
		length = 0;
		for (s = 0; s < row[i].num_sge && !row[i].bad; s++)
			length += (u32)~s;
		memset(&fix->rwqe, 0xa5, sizeof(fix->rwqe));
		user_post(fix, i, row[i].num_sge);

		KUNIT_ASSERT_TRUE(test, take(fix));
		KUNIT_EXPECT_EQ(test, fix->rwqe.wr_id, (u64)i);
		KUNIT_EXPECT_EQ_MSG(test, fix->rwqe.bad, row[i].bad, "row %d",
				    i);
		KUNIT_EXPECT_EQ(test, fix->rwqe.num_sge,
				row[i].bad ? 0 : row[i].num_sge);
		KUNIT_EXPECT_EQ(test, fix->rwqe.length, length);
		KUNIT_EXPECT_FALSE(test, take(fix));
	}
	fixture_free(fix);
}

static void rq_long(struct kunit *test)
{
	struct rq_fixture *fix = fixture(test, 1, MRSOFT_MAX_SGE, true);
	struct rq_elem *elem = user_slot(fix);
	int s;

	for (s = 0; s < MRSOFT_MAX_SGE; s++)
		elem->sge[s] = (struct mrsoft_abi_sge){ s, U32_MAX, s };
	user_post(fix, 0, MRSOFT_MAX_SGE);
	KUNIT_ASSERT_TRUE(test, take_is(fix, 0));
	KUNIT_EXPECT_EQ(test, fix->rwqe.length,
			(u64)MRSOFT_MAX_SGE * U32_MAX);
	KUNIT_EXPECT_EQ(test, fix->rwqe.sge[31].addr, 31ull);
	user_post(fix, 1, MRSOFT_MAX_SGE + 1);
	KUNIT_ASSERT_TRUE(test, take(fix));
	KUNIT_EXPECT_TRUE(test, fix->rwqe.bad);
	fixture_free(fix);
}

static void rq_hostile_producer(struct kunit *test)
{
	static const u32 value[] = {
		0, 1, 6, 7, 8, 9, 63, 64, 0x7fffffff, 0x80000000, 0xfffffff8,
		0xffffffff,
	};
	struct rq_fixture *fix = fixture(test, 7, 1, true);
	u32 want, n;
	int i;

	for (i = 0; i < ARRAY_SIZE(value); i++) {
		want = (value[i] - fix->srq.rq.ring.cons) % 8;
		fix->srq.rq.ring.mem->buf->producer_index = value[i];
		fix->srq.rq.ring.mem->buf->consumer_index = ~value[i];
		KUNIT_EXPECT_EQ(test, mrsoft_rq_pending(&fix->srq.rq), want);
		for (n = 0; n < 20; n++)
			if (!take(fix))
				break;
		KUNIT_EXPECT_EQ(test, n, want);
	}
	fixture_free(fix);
}

static void rq_limit(struct kunit *test)
{
	struct rq_fixture *fix;
	struct mrsoft_rq *rq;
	int user, i;

	for (user = 0; user < 2; user++) {
		fix = fixture(test, 7, 1, user);
		rq = &fix->srq.rq;
		KUNIT_EXPECT_EQ(test, mrsoft_rq_set_limit(rq, 8), -EINVAL);
		KUNIT_EXPECT_EQ(test, mrsoft_rq_set_limit(rq, U32_MAX),
				-EINVAL);
		KUNIT_EXPECT_EQ(test, rq->limit, 0u);
		KUNIT_EXPECT_EQ(test, mrsoft_rq_set_limit(rq, 7), 0);
		KUNIT_EXPECT_EQ(test, mrsoft_rq_set_limit(rq, 4), 0);
		for (i = 0; i < 7; i++)
			any_post(fix, i);

		/* 6, 5, 4 left: not below 4; 3 left: now, and only now */
		for (i = 0; i < 3; i++)
			take(fix);
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->events), 0);
		take(fix);
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->events), 1);
		KUNIT_EXPECT_EQ(test, rq->limit, 0u);
		for (i = 0; i < 4; i++)
			take(fix);
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->events), 1);

		/* armed again, by the handler each time */
		fix->rearm = 1;
		mrsoft_rq_set_limit(rq, 1);
		for (i = 0; i < 3; i++) {
			any_post(fix, i);
			KUNIT_EXPECT_TRUE(test, take_is(fix, i));
		}
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->events), 4);
		KUNIT_EXPECT_FALSE(test, take(fix));
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->events), 4);

		/* disarmed; not of an SRQ; nobody listens */
		fix->rearm = 0;
		mrsoft_rq_set_limit(rq, 0);
		any_post(fix, 0);
		take(fix);
		mrsoft_rq_set_limit(rq, 1);
		any_post(fix, 0);
		mrsoft_rq_take(rq, NULL, &fix->rwqe);
		fix->srq.ib.event_handler = NULL;
		any_post(fix, 0);
		take(fix);
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->events), 4);
		fixture_free(fix);
	}
}

static void rq_resize(struct kunit *test)
{
	struct rq_fixture *fix;
	struct mrsoft_rq *rq;
	int i, start;

	for (i = 0; i < 16; i++) {
		fix = fixture(test, 7, 1, i & 1);
		rq = &fix->srq.rq;
		for (start = 0; start < i / 2; start++) {
			any_post(fix, 99);
			KUNIT_EXPECT_TRUE(test, take_is(fix, 99));
		}
		for (start = 0; start < 5; start++)
			any_post(fix, start);

		KUNIT_EXPECT_EQ(test, mrsoft_rq_resize(rq, 3, NULL, NULL),
				-EINVAL);
		KUNIT_EXPECT_EQ(test, mrsoft_rq_resize(rq, 0, NULL, NULL),
				-EINVAL);
		KUNIT_EXPECT_EQ(test, mrsoft_rq_resize(rq, U32_MAX, NULL, NULL),
				-EINVAL);
		mrsoft_rq_set_limit(rq, 5);
		KUNIT_EXPECT_TRUE(test, take_is(fix, 0));
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->events), 1);
		mrsoft_rq_set_limit(rq, 4);
		take_is(fix, 1);
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->events), 2);
		KUNIT_EXPECT_EQ(test, rq->max_wr, 7u);

		/* 3 are left and fit, an armed limit of 7 does not */
		mrsoft_rq_set_limit(rq, 7);
		KUNIT_EXPECT_EQ(test, mrsoft_rq_resize(rq, 3, NULL, NULL),
				-EINVAL);
		KUNIT_EXPECT_EQ(test, rq->limit, 7u);
		mrsoft_rq_set_limit(rq, 0);

		KUNIT_EXPECT_EQ(test, mrsoft_rq_resize(rq, 20, NULL, NULL), 0);
		KUNIT_EXPECT_EQ(test, rq->max_wr, 31u);
		KUNIT_EXPECT_EQ(test, mrsoft_rq_pending(rq), 3u);
		any_post(fix, 5);
		KUNIT_EXPECT_TRUE(test, take_is(fix, 2));
		KUNIT_EXPECT_EQ(test, mrsoft_rq_resize(rq, 3, NULL, NULL), 0);
		KUNIT_EXPECT_EQ(test, rq->max_wr, 3u);
		for (start = 3; start < 6; start++)
			KUNIT_EXPECT_TRUE(test, take_is(fix, start));
		KUNIT_EXPECT_FALSE(test, take(fix));
		any_post(fix, 6);
		KUNIT_EXPECT_TRUE(test, take_is(fix, 6));
		fixture_free(fix);
	}
}

static void rq_resize_given_up(struct kunit *test)
{
	struct rq_fixture *fix = fixture(test, 7, 1, true);
	struct mrsoft_ring ring;

	any_post(fix, 0);
	KUNIT_EXPECT_EQ(test, mrsoft_rq_resize_begin(&fix->srq.rq, 100, NULL,
						     NULL, &ring), 0);
	any_post(fix, 1);
	mrsoft_ring_destroy(&ring);
	KUNIT_EXPECT_EQ(test, fix->srq.rq.max_wr, 7u);
	KUNIT_EXPECT_TRUE(test, take_is(fix, 0));
	KUNIT_EXPECT_TRUE(test, take_is(fix, 1));
	fixture_free(fix);
}

/* Every field of every element changes all the time, B43 and B44. */
static int race_flip(void *arg)
{
	struct rq_fixture *fix = arg;
	struct mrsoft_abi_ring *buf = fix->srq.rq.ring.mem->buf;
	struct rq_elem *elem;
	u32 slot, s, turn = 0, x = 1;

	while (!READ_ONCE(fix->stop)) {
		for (slot = 0; slot <= fix->srq.rq.ring.mask; slot++) {
			x = x * 1664525u + 1013904223u;
			elem = (void *)(buf->data +
					(slot << fix->srq.rq.ring.shift));
			WRITE_ONCE(elem->head.dma.num_sge,
				   x >> 31 ? x : (x >> 16) % 5);
			for (s = 0; s < 4; s++)
				WRITE_ONCE(elem->sge[s].length, x + s);
		}
		WRITE_ONCE(buf->producer_index, ++turn);
		cond_resched();
	}
	complete(&fix->done);
	return 0;
}

static void rq_snapshot(struct kunit *test)
{
	struct rq_fixture *fix = fixture(test, 7, 4, true);
	unsigned long end = jiffies + 2 * HZ;
	u32 n = 0, good = 0, wrong = 0, s;
	struct task_struct *task;
	u64 length;

	task = kthread_run(race_flip, fix, "rq-flip");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	while (time_before(jiffies, end)) {
		if (!take(fix)) {
			cond_resched();
			continue;
		}
		n++;
		good += !fix->rwqe.bad;
		length = 0;
		for (s = 0; s < min(fix->rwqe.num_sge, 4u); s++)
			length += fix->rwqe.sge[s].length;
		wrong += fix->rwqe.num_sge > 4 || length != fix->rwqe.length ||
			 (fix->rwqe.bad && fix->rwqe.num_sge);
	}
	WRITE_ONCE(fix->stop, true);
	wait_for_completion(&fix->done);
	KUNIT_EXPECT_EQ(test, wrong, 0u);
	/* both kinds were met, or the test has shown nothing */
	KUNIT_EXPECT_GT(test, good, 0u);
	KUNIT_EXPECT_GT(test, n - good, 0u);
	fixture_free(fix);
}

/*
 * Lets the other side run, on this CPU too: cond_resched() need not.  That can
 * take a tick (10 ms), so the rings of the races are large.
 */
static void race_wait(void)
{
	usleep_range(1, 10);
}

static int race_take(void *arg)
{
	struct rq_fixture *fix = arg;
	struct mrsoft_rwqe *rwqe = kzalloc_obj(*rwqe);

	while (rwqe && !READ_ONCE(fix->stop)) {
		if (!mrsoft_rq_take(&fix->srq.rq, &fix->srq, rwqe)) {
			race_wait();
			continue;
		}
		if (rwqe->bad || rwqe->wr_id >= RACE_WQES)
			atomic_inc(&fix->foreign);
		else
			atomic_inc(&fix->seen[rwqe->wr_id]);
		atomic_inc(&fix->taken);
	}
	kfree(rwqe);
	complete(&fix->done);
	return 0;
}

/*
 * Three QPs take from one SRQ while it is filled, resized and armed: each WQE
 * once, and never more events than armings.
 */
static void rq_race(struct kunit *test)
{
	struct rq_fixture *fix = fixture(test, 1000, 1, false);
	unsigned long end = jiffies + 60 * HZ;
	u32 seq = 0, armed = 0, wrong = 0;
	struct mrsoft_rq *rq = &fix->srq.rq;
	int i;

	for (i = 0; i < TAKERS; i++)
		KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(race_take, fix,
							    "rq-take/%d", i)));
	while (seq < RACE_WQES && time_before(jiffies, end)) {
		if (kernel_post(fix, seq, 0))
			race_wait();
		else
			seq++;
		if (seq % 64 == 0)
			armed += !mrsoft_rq_set_limit(rq, 3);
		if (seq % 100 == 0)
			mrsoft_rq_resize(rq, 500 << seq % 3, NULL, NULL);
	}
	while (atomic_read(&fix->taken) < seq && time_before(jiffies, end))
		race_wait();
	WRITE_ONCE(fix->stop, true);
	for (i = 0; i < TAKERS; i++)
		wait_for_completion(&fix->done);

	KUNIT_EXPECT_EQ(test, seq, RACE_WQES);
	KUNIT_EXPECT_EQ(test, (u32)atomic_read(&fix->taken), seq);
	KUNIT_EXPECT_EQ(test, atomic_read(&fix->foreign), 0);
	for (i = 0; i < RACE_WQES; i++)
		wrong += atomic_read(&fix->seen[i]) != 1;
	KUNIT_EXPECT_EQ(test, wrong, 0u);
	KUNIT_EXPECT_GT(test, atomic_read(&fix->events), 0);
	KUNIT_EXPECT_LE(test, (u32)atomic_read(&fix->events), armed);
	fixture_free(fix);
}

static struct kunit_case rq_cases[] = {
	KUNIT_CASE(rq_sizes),
	KUNIT_CASE(rq_kernel_post),
	KUNIT_CASE(rq_order),
	KUNIT_CASE(rq_malformed),
	KUNIT_CASE(rq_long),
	KUNIT_CASE(rq_hostile_producer),
	KUNIT_CASE(rq_limit),
	KUNIT_CASE(rq_resize),
	KUNIT_CASE(rq_resize_given_up),
	KUNIT_CASE(rq_snapshot),
	KUNIT_CASE(rq_race),
	{}
};

static struct kunit_suite rq_suite = {
	.name = "mrsoft_rq",
	.test_cases = rq_cases,
};

kunit_test_suite(rq_suite);

MODULE_DESCRIPTION("KUnit suite of mrsoft: receive queues");
MODULE_LICENSE("GPL");
