// SPDX-License-Identifier: GPL-2.0
/*
 * cq_kunit.c - completion queues: layouts, order, overflow, arming, resize
 *
 * A CQ of user space is one with the user layout and no mapping; the process is
 * played by reading slots and storing the consumer index.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>

#include "cq.c"

#define RACE_WCS	20000u
#define RACE_TIME		(5 * HZ)
#define RACE_QUEUED	1000u
#define WAIT		(30 * HZ)

struct cq_fixture {
	struct mrsoft_cq cq;
	struct mrsoft_stats stats;
	struct ib_qp qp;
	struct ib_device dev;
	struct completion event;
	struct completion done;
	atomic_t upcalls;
	atomic_t errors;
	bool rearm;
	bool stop;
	u32 posted;
	u32 refused;
	struct ib_wc polled[4];
};

/*
 * Arming and polling from inside an upcall: with the lock of the CQ held
 * around it this would never return.
 */
static void on_completion(struct ib_cq *ibcq, void *context)
{
	struct cq_fixture *fix = context;

	atomic_inc(&fix->upcalls);
	if (fix->rearm)
		mrsoft_cq_arm(mrsoft_cq(ibcq), IB_CQ_NEXT_COMP);
	mrsoft_cq_pending(mrsoft_cq(ibcq));
	complete(&fix->event);
}

static void on_event(struct ib_event *event, void *context)
{
	struct cq_fixture *fix = context;

	if (event->event == IB_EVENT_CQ_ERR &&
	    event->element.cq == &fix->cq.ib && event->device == &fix->dev)
		atomic_inc(&fix->errors);
	mrsoft_cq_pending(&fix->cq);
}

/* A struct ib_device is large, so the fixture is not a variable of a function. */
static struct cq_fixture *fixture(struct kunit *test, u32 cqe, bool is_user)
{
	struct cq_fixture *fix = kunit_kzalloc(test, sizeof(*fix), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fix);
	fix->qp.qp_num = 0x123456;
	fix->cq.ib.device = &fix->dev;
	fix->cq.ib.comp_handler = on_completion;
	fix->cq.ib.event_handler = on_event;
	fix->cq.ib.cq_context = fix;
	init_completion(&fix->event);
	init_completion(&fix->done);
	KUNIT_ASSERT_EQ(test, cq_setup(&fix->cq, &fix->stats, cqe, is_user,
				       NULL, NULL), 0);
	return fix;
}

static int post_full(struct cq_fixture *fix, u64 wr_id,
		     enum ib_wc_status status, bool solicited)
{
	struct ib_wc wc = {
		.wr_id = wr_id,
		.status = status,
		.qp = &fix->qp,
		.byte_len = wr_id * 3,
	};

	return mrsoft_cq_post(&fix->cq, &wc, solicited);
}

static int post(struct cq_fixture *fix, u64 wr_id)
{
	return post_full(fix, wr_id, IB_WC_SUCCESS, false);
}

/* What librxe does: look at the producer index, copy, move the consumer index. */
static bool user_poll(struct cq_fixture *fix, struct ib_uverbs_wc *wc)
{
	struct mrsoft_abi_ring *buf = fix->cq.ring.mem->buf;
	u32 cons = buf->consumer_index;

	/* pairs with mrsoft_ring_push() */
	if (smp_load_acquire(&buf->producer_index) == cons)
		return false;
	memcpy(wc, buf->data + (cons << buf->log2_elem_size), sizeof(*wc));
	/* pairs with mrsoft_ring_unread() */
	smp_store_release(&buf->consumer_index, (cons + 1) & buf->index_mask);
	return true;
}

static bool poll_one(struct cq_fixture *fix, u64 *wr_id)
{
	struct ib_uverbs_wc uwc;
	struct ib_wc wc;

	if (fix->cq.is_user) {
		if (!user_poll(fix, &uwc))
			return false;
		*wr_id = uwc.wr_id;
		return true;
	}
	if (mrsoft_cq_poll(&fix->cq, 1, &wc) != 1)
		return false;
	*wr_id = wc.wr_id;
	return true;
}

static bool poll_is(struct cq_fixture *fix, u64 want)
{
	u64 wr_id;

	return poll_one(fix, &wr_id) && wr_id == want;
}

static void cq_sizes(struct kunit *test)
{
	static const u32 good[] = { 1, 2, 3, 5, 100, MRSOFT_MAX_CQE };
	static const u32 bad[] = { 0, MRSOFT_MAX_CQE + 1, U32_MAX };
	struct cq_fixture *fix = fixture(test, 1, false);
	struct mrsoft_cq *cq = &fix->cq;
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KUNIT_EXPECT_EQ(test, mrsoft_cq_resize(cq, bad[i], NULL, NULL),
				-EINVAL);
		KUNIT_EXPECT_EQ(test, cq->ib.cqe, 1);
	}
	mrsoft_cq_destroy(cq);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ(test, mrsoft_cq_init(cq, &fix->stats, bad[i],
						     NULL, NULL), -EINVAL);
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		KUNIT_EXPECT_EQ(test, mrsoft_cq_init(cq, &fix->stats, good[i],
						     NULL, NULL), 0);
		KUNIT_EXPECT_GE(test, (u32)cq->ib.cqe, good[i]);
		KUNIT_EXPECT_FALSE(test, cq->is_user);
		mrsoft_cq_destroy(cq);
	}
}

static const struct ib_wc sample = {
	.wr_id = 0x1122334455667788,
	.status = IB_WC_REM_ACCESS_ERR,
	.opcode = IB_WC_RECV_RDMA_WITH_IMM,
	.vendor_err = 5,
	.byte_len = 0xdeadbeef,
	.src_qp = 0xabcdef,
	.slid = 0x4321,
	.pkey_index = 7,
	.sl = 3,
	.dlid_path_bits = 2,
	.port_num = 1,
};

/* Every byte of a slot, from a ring that was filled with something else before. */
static void cq_user_layout(struct kunit *test)
{
	struct cq_fixture *fix = fixture(test, 3, true);
	struct ib_uverbs_wc want = {
		.wr_id = 0x1122334455667788,
		.status = 10,
		.opcode = 129,
		.vendor_err = 5,
		.byte_len = 0xdeadbeef,
		.ex.imm_data = cpu_to_be32(0x01020304),
		.qp_num = 0x123456,
		.src_qp = 0xabcdef,
		.wc_flags = 3,
		.pkey_index = 7,
		.slid = 0x4321,
		.sl = 3,
		.dlid_path_bits = 2,
		.port_num = 1,
	};
	struct ib_wc wc = sample;
	struct ib_uverbs_wc got;

	wc.qp = &fix->qp;
	wc.ex.imm_data = cpu_to_be32(0x01020304);
	wc.wc_flags = IB_WC_GRH | IB_WC_WITH_IMM;
	memset(fix->cq.ring.mem->buf->data, 0xa5, 64);
	KUNIT_EXPECT_EQ(test, sizeof(want), (size_t)48);
	KUNIT_EXPECT_EQ(test, mrsoft_cq_post(&fix->cq, &wc, false), 0);
	KUNIT_ASSERT_TRUE(test, user_poll(fix, &got));
	KUNIT_EXPECT_EQ(test, memcmp(&got, &want, sizeof(got)), 0);

	/* an rkey in host order, flag 1 << 3 of libibverbs */
	wc.ex.invalidate_rkey = 0x1a3f00;
	wc.wc_flags = IB_WC_WITH_INVALIDATE;
	want.ex.invalidate_rkey = 0x1a3f00;
	want.wc_flags = 8;
	mrsoft_cq_post(&fix->cq, &wc, false);
	KUNIT_ASSERT_TRUE(test, user_poll(fix, &got));
	KUNIT_EXPECT_EQ(test, memcmp(&got, &want, sizeof(got)), 0);

	/* without a flag nothing of the union gets out */
	wc.wc_flags = 0;
	want.ex.invalidate_rkey = 0;
	want.wc_flags = 0;
	mrsoft_cq_post(&fix->cq, &wc, false);
	KUNIT_ASSERT_TRUE(test, user_poll(fix, &got));
	KUNIT_EXPECT_EQ(test, memcmp(&got, &want, sizeof(got)), 0);
	KUNIT_EXPECT_EQ(test, mrsoft_cq_poll(&fix->cq, 1, &wc), -EINVAL);
	mrsoft_cq_destroy(&fix->cq);
}

static void cq_kernel_layout(struct kunit *test)
{
	struct cq_fixture *fix = fixture(test, 7, false);
	struct ib_wc wc = sample;
	int i;

	wc.qp = &fix->qp;
	wc.wc_flags = IB_WC_WITH_INVALIDATE | IB_WC_GRH;
	wc.ex.invalidate_rkey = 0x1a3f00;
	KUNIT_EXPECT_EQ(test, mrsoft_cq_poll(&fix->cq, 4, fix->polled), 0);
	for (i = 0; i < 6; i++)
		mrsoft_cq_post(&fix->cq, &wc, false);
	KUNIT_EXPECT_EQ(test, mrsoft_cq_pending(&fix->cq), 6u);
	KUNIT_EXPECT_EQ(test, mrsoft_cq_poll(&fix->cq, 0, fix->polled), 0);
	KUNIT_EXPECT_EQ(test, mrsoft_cq_poll(&fix->cq, 4, fix->polled), 4);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, memcmp(&fix->polled[i], &wc, sizeof(wc)),
				0);
	KUNIT_EXPECT_EQ(test, mrsoft_cq_poll(&fix->cq, 4, fix->polled), 2);
	KUNIT_EXPECT_EQ(test, mrsoft_cq_pending(&fix->cq), 0u);
	mrsoft_cq_destroy(&fix->cq);
}

static void cq_order(struct kunit *test)
{
	struct cq_fixture *fix;
	u64 seq, n, i;
	int user;

	for (user = 0; user < 2; user++) {
		fix = fixture(test, 7, user);
		for (seq = 0; seq < 50; seq += n) {
			n = seq % 7 + 1;
			for (i = 0; i < n; i++)
				KUNIT_EXPECT_EQ(test, post(fix, seq + i), 0);
			KUNIT_EXPECT_EQ(test, mrsoft_cq_pending(&fix->cq),
					(u32)n);
			for (i = 0; i < n; i++)
				KUNIT_EXPECT_TRUE(test, poll_is(fix, seq + i));
			KUNIT_EXPECT_FALSE(test, poll_one(fix, &i));
		}
		mrsoft_cq_destroy(&fix->cq);
	}
}

static void cq_overflow(struct kunit *test)
{
	struct cq_fixture *fix;
	atomic64_t *count;
	int user, i;
	u64 dummy;

	for (user = 0; user < 2; user++) {
		fix = fixture(test, 7, user);
		count = &fix->stats.reasons[MRSOFT_R_CQ_OVERFLOW];
		for (i = 0; i < 7; i++)
			KUNIT_EXPECT_EQ(test, post(fix, i), 0);
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->errors), 0);

		mrsoft_cq_arm(&fix->cq, IB_CQ_NEXT_COMP);
		KUNIT_EXPECT_EQ(test, post(fix, 7), -EOVERFLOW);
		KUNIT_EXPECT_EQ(test, post(fix, 8), -EOVERFLOW);
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->errors), 1);
		KUNIT_EXPECT_EQ(test, atomic64_read(count), 2);
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->upcalls), 0);

		/* what was accepted is not lost, and nothing comes after it */
		for (i = 0; i < 7; i++)
			KUNIT_EXPECT_TRUE(test, poll_is(fix, i));
		KUNIT_EXPECT_EQ(test, post(fix, 9), -EOVERFLOW);
		KUNIT_EXPECT_FALSE(test, poll_one(fix, &dummy));
		KUNIT_EXPECT_EQ(test, mrsoft_cq_resize(&fix->cq, 31, NULL,
						       NULL), 0);
		KUNIT_EXPECT_EQ(test, post(fix, 10), -EOVERFLOW);
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->errors), 1);
		mrsoft_cq_destroy(&fix->cq);
	}

	/* nobody listens */
	fix = fixture(test, 1, false);
	fix->cq.ib.event_handler = NULL;
	fix->cq.ib.comp_handler = NULL;
	mrsoft_cq_arm(&fix->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, post(fix, 0), 0);
	KUNIT_EXPECT_EQ(test, post(fix, 1), -EOVERFLOW);
	mrsoft_cq_destroy(&fix->cq);
}

#define S IB_CQ_SOLICITED
#define N IB_CQ_NEXT_COMP

/* IBA 11.4.2.2: what was asked for, what comes, whether it is told. */
static void cq_arm_matrix(struct kunit *test)
{
	static const struct {
		int first;
		int second;
		bool solicited;
		enum ib_wc_status status;
		int upcalls;
	} row[] = {
		{ 0, 0, false, IB_WC_SUCCESS, 0 },
		{ 0, 0, true, IB_WC_SUCCESS, 0 },
		{ 0, 0, false, IB_WC_GENERAL_ERR, 0 },
		{ S, 0, false, IB_WC_SUCCESS, 0 },
		{ S, 0, true, IB_WC_SUCCESS, 1 },
		{ S, 0, false, IB_WC_GENERAL_ERR, 1 },
		{ S, 0, false, IB_WC_WR_FLUSH_ERR, 1 },
		{ N, 0, false, IB_WC_SUCCESS, 1 },
		{ N, 0, true, IB_WC_SUCCESS, 1 },
		{ N, 0, false, IB_WC_GENERAL_ERR, 1 },
		{ S, S, false, IB_WC_SUCCESS, 0 },
		{ S, N, false, IB_WC_SUCCESS, 1 },
		{ N, S, false, IB_WC_SUCCESS, 1 },
		{ N, N, false, IB_WC_SUCCESS, 1 },
	};
	struct cq_fixture *fix;
	int i, user;

	for (i = 0; i < ARRAY_SIZE(row); i++) {
		for (user = 0; user < 2; user++) {
			fix = fixture(test, 7, user);
			if (row[i].first)
				mrsoft_cq_arm(&fix->cq, row[i].first);
			if (row[i].second)
				mrsoft_cq_arm(&fix->cq, row[i].second);
			KUNIT_EXPECT_EQ(test, post_full(fix, 0, row[i].status,
							row[i].solicited), 0);
			KUNIT_EXPECT_EQ_MSG(test, atomic_read(&fix->upcalls),
					    row[i].upcalls, "row %d user %d",
					    i, user);
			/* one request, one event */
			if (row[i].upcalls)
				post_full(fix, 1, IB_WC_GENERAL_ERR, true);
			KUNIT_EXPECT_EQ(test, atomic_read(&fix->upcalls),
					row[i].upcalls);
			mrsoft_cq_destroy(&fix->cq);
		}
	}
}

#undef S
#undef N

/* A completion that does not meet the request leaves it armed. */
static void cq_arm_stays(struct kunit *test)
{
	struct cq_fixture *fix = fixture(test, 7, false);

	mrsoft_cq_arm(&fix->cq, IB_CQ_SOLICITED);
	post(fix, 0);
	post(fix, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&fix->upcalls), 0);
	post_full(fix, 2, IB_WC_SUCCESS, true);
	KUNIT_EXPECT_EQ(test, atomic_read(&fix->upcalls), 1);

	/* armed again from inside the upcall */
	fix->rearm = true;
	mrsoft_cq_arm(&fix->cq, IB_CQ_NEXT_COMP);
	post(fix, 3);
	post(fix, 4);
	KUNIT_EXPECT_EQ(test, atomic_read(&fix->upcalls), 3);
	mrsoft_cq_destroy(&fix->cq);
}

static void cq_missed_events(struct kunit *test)
{
	const int missed = IB_CQ_REPORT_MISSED_EVENTS;
	struct cq_fixture *fix;
	struct mrsoft_cq *cq;
	int user;

	for (user = 0; user < 2; user++) {
		fix = fixture(test, 7, user);
		cq = &fix->cq;
		KUNIT_EXPECT_EQ(test, mrsoft_cq_arm(cq, IB_CQ_NEXT_COMP |
						    missed), 0);
		post(fix, 0);
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->upcalls), 1);
		KUNIT_EXPECT_EQ(test, mrsoft_cq_arm(cq, IB_CQ_NEXT_COMP), 0);
		KUNIT_EXPECT_EQ(test, mrsoft_cq_arm(cq, IB_CQ_NEXT_COMP |
						    missed), 1);
		KUNIT_EXPECT_EQ(test, mrsoft_cq_arm(cq, IB_CQ_SOLICITED |
						    missed), 1);
		/* the answer does not disarm */
		post(fix, 1);
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->upcalls), 2);
		KUNIT_EXPECT_TRUE(test, poll_is(fix, 0));
		KUNIT_EXPECT_EQ(test, mrsoft_cq_arm(cq, IB_CQ_SOLICITED |
						    missed), 1);
		KUNIT_EXPECT_TRUE(test, poll_is(fix, 1));
		KUNIT_EXPECT_EQ(test, mrsoft_cq_arm(cq, IB_CQ_SOLICITED |
						    missed), 0);
		mrsoft_cq_destroy(cq);
	}
}

/* From each position of the ring, so that what is queued lies across its end. */
static void cq_resize(struct kunit *test)
{
	struct cq_fixture *fix;
	int user, start, i;

	for (i = 0; i < 16; i++) {
		user = i & 1;
		fix = fixture(test, 7, user);
		for (start = 0; start < i / 2; start++) {
			post(fix, 99);
			KUNIT_EXPECT_TRUE(test, poll_is(fix, 99));
		}
		for (start = 0; start < 5; start++)
			post(fix, start);
		mrsoft_cq_arm(&fix->cq, IB_CQ_NEXT_COMP);

		/* too small: 3 entries for 5; all as before */
		KUNIT_EXPECT_EQ(test, mrsoft_cq_resize(&fix->cq, 2, NULL, NULL),
				-EINVAL);
		KUNIT_EXPECT_EQ(test, fix->cq.ib.cqe, 7);
		KUNIT_EXPECT_EQ(test, mrsoft_cq_pending(&fix->cq), 5u);
		KUNIT_EXPECT_TRUE(test, poll_is(fix, 0));

		KUNIT_EXPECT_EQ(test, mrsoft_cq_resize(&fix->cq, 20, NULL,
						       NULL), 0);
		KUNIT_EXPECT_EQ(test, fix->cq.ib.cqe, 31);
		KUNIT_EXPECT_EQ(test, mrsoft_cq_pending(&fix->cq), 4u);
		KUNIT_EXPECT_TRUE(test, poll_is(fix, 1));
		/* armed before, armed still */
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->upcalls), 0);
		post(fix, 5);
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->upcalls), 1);

		KUNIT_EXPECT_TRUE(test, poll_is(fix, 2));
		KUNIT_EXPECT_EQ(test, mrsoft_cq_resize(&fix->cq, 3, NULL, NULL),
				0);
		KUNIT_EXPECT_EQ(test, fix->cq.ib.cqe, 3);
		for (start = 3; start < 6; start++)
			KUNIT_EXPECT_TRUE(test, poll_is(fix, start));
		for (start = 0; start < 3; start++)
			KUNIT_EXPECT_EQ(test, post(fix, start), 0);
		KUNIT_EXPECT_EQ(test, post(fix, 3), -EOVERFLOW);
		mrsoft_cq_destroy(&fix->cq);
	}
}

/* The reply could not be written: the CQ never notices. */
static void cq_resize_given_up(struct kunit *test)
{
	struct cq_fixture *fix = fixture(test, 7, true);
	struct mrsoft_ring ring;

	post(fix, 0);
	KUNIT_EXPECT_EQ(test, mrsoft_cq_resize_begin(&fix->cq, 100, NULL, NULL,
						     &ring), 0);
	post(fix, 1);
	mrsoft_ring_destroy(&ring);
	KUNIT_EXPECT_EQ(test, fix->cq.ib.cqe, 7);
	KUNIT_EXPECT_TRUE(test, poll_is(fix, 0));
	KUNIT_EXPECT_TRUE(test, poll_is(fix, 1));
	mrsoft_cq_destroy(&fix->cq);
}

static void cq_hostile_consumer(struct kunit *test)
{
	static const u32 value[] = {
		0, 1, 6, 7, 8, 9, 63, 64, 0x7fffffff, 0x80000000, 0xfffffff8,
		0xffffffff,
	};
	struct cq_fixture *fix;
	int i, n, err;

	for (i = 0; i < ARRAY_SIZE(value); i++) {
		fix = fixture(test, 7, true);
		post(fix, 0);
		post(fix, 1);
		fix->cq.ring.mem->buf->consumer_index = value[i];
		KUNIT_EXPECT_EQ(test, mrsoft_cq_pending(&fix->cq),
				(2 - value[i]) % 8);
		mrsoft_cq_arm(&fix->cq, IB_CQ_NEXT_COMP |
			      IB_CQ_REPORT_MISSED_EVENTS);
		err = mrsoft_cq_resize(&fix->cq, 3, NULL, NULL);
		KUNIT_EXPECT_EQ(test, err, (2 - value[i]) % 8 > 3 ? -EINVAL
								 : 0);
		for (n = 0; n < 20; n++)
			if (post(fix, n))
				break;
		KUNIT_EXPECT_LE(test, n, 7);
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->errors), 1);
		mrsoft_cq_destroy(&fix->cq);
	}
}

/*
 * Lets the other side run, on this CPU too: cond_resched() need not.  That can
 * take a tick (10 ms), so the rings of the races are large.
 */
static void race_wait(void)
{
	usleep_range(1, 10);
}

/* Posts as long as there is room: an overflow would end the test at once. */
static int race_post(void *arg)
{
	struct cq_fixture *fix = arg;
	u32 seq = 0, spins = 0;

	while (seq < RACE_WCS && !READ_ONCE(fix->stop)) {
		if (mrsoft_cq_pending(&fix->cq) >= RACE_QUEUED) {
			if (++spins % 1024)
				cpu_relax();
			else
				race_wait();
			continue;
		}
		if (post(fix, seq++))
			fix->refused++;
		cond_resched();
	}
	fix->posted = seq;
	complete(&fix->done);
	return 0;
}

/*
 * The consumer sleeps whenever poll, arm, poll finds nothing. If the event
 * for an entry that came in between could be lost, it would sleep for ever.  A slow
 * machine ends after some seconds, with what it has seen until then.
 */
static u32 race_consume(struct cq_fixture *fix, int flags, u32 *wrong)
{
	unsigned long end = jiffies + RACE_TIME;
	u32 seq = 0;
	u64 wr_id;

	while (seq < RACE_WCS && time_before(jiffies, end)) {
		while (poll_one(fix, &wr_id))
			*wrong += wr_id != seq++;
		if (mrsoft_cq_arm(&fix->cq, flags) > 0)
			continue;
		if (!(flags & IB_CQ_REPORT_MISSED_EVENTS) &&
		    poll_one(fix, &wr_id)) {
			*wrong += wr_id != seq++;
			continue;
		}
		if (seq < RACE_WCS &&
		    !wait_for_completion_timeout(&fix->event, WAIT)) {
			(*wrong)++;
			break;
		}
	}
	WRITE_ONCE(fix->stop, true);
	wait_for_completion(&fix->done);
	while (poll_one(fix, &wr_id))
		*wrong += wr_id != seq++;
	return seq;
}

static void cq_no_lost_wakeup(struct kunit *test)
{
	const int missed = IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS;
	struct task_struct *task;
	struct cq_fixture *fix;
	u32 wrong, seq;
	int i;

	for (i = 0; i < 4; i++) {
		fix = fixture(test, RACE_QUEUED, i & 1);
		wrong = 0;
		task = kthread_run(race_post, fix, "cq-post");
		KUNIT_ASSERT_FALSE(test, IS_ERR(task));
		seq = race_consume(fix, i & 2 ? missed : IB_CQ_NEXT_COMP,
				   &wrong);
		KUNIT_EXPECT_EQ_MSG(test, seq, fix->posted, "case %d", i);
		KUNIT_EXPECT_EQ_MSG(test, wrong, 0u, "lost, case %d", i);
		KUNIT_EXPECT_EQ(test, fix->refused, 0u);
		KUNIT_EXPECT_GT(test, atomic_read(&fix->upcalls), 0);
		kunit_info(test, "case %d: %d upcalls\n", i,
			   atomic_read(&fix->upcalls));
		mrsoft_cq_destroy(&fix->cq);
	}
}

/* Polling and posting go on while the ring changes below them. */
static void cq_resize_race(struct kunit *test)
{
	struct cq_fixture *fix = fixture(test, RACE_QUEUED, false);
	u32 seq = 0, wrong = 0, resizes = 0, n;
	unsigned long end = jiffies + 5 * HZ;
	struct task_struct *task;
	u64 wr_id;

	task = kthread_run(race_post, fix, "cq-post");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	/* as much as the machine can do in that time */
	while (seq < RACE_WCS && time_before(jiffies, end)) {
		/* not all, so that there is something to move */
		for (n = 0; n < 100 && poll_one(fix, &wr_id); n++)
			wrong += wr_id != seq++;
		resizes += !mrsoft_cq_resize(&fix->cq,
					     RACE_QUEUED << seq % 3, NULL,
					     NULL);
		cond_resched();
	}
	WRITE_ONCE(fix->stop, true);
	wait_for_completion(&fix->done);
	while (poll_one(fix, &wr_id))
		wrong += wr_id != seq++;
	KUNIT_EXPECT_EQ(test, seq, fix->posted);
	KUNIT_EXPECT_GT(test, seq, RACE_QUEUED);
	KUNIT_EXPECT_EQ(test, wrong, 0u);
	KUNIT_EXPECT_EQ(test, fix->refused, 0u);
	KUNIT_EXPECT_GT(test, resizes, 10u);
	mrsoft_cq_destroy(&fix->cq);
}

static struct kunit_case cq_cases[] = {
	KUNIT_CASE(cq_sizes),
	KUNIT_CASE(cq_user_layout),
	KUNIT_CASE(cq_kernel_layout),
	KUNIT_CASE(cq_order),
	KUNIT_CASE(cq_overflow),
	KUNIT_CASE(cq_arm_matrix),
	KUNIT_CASE(cq_arm_stays),
	KUNIT_CASE(cq_missed_events),
	KUNIT_CASE(cq_resize),
	KUNIT_CASE(cq_resize_given_up),
	KUNIT_CASE(cq_hostile_consumer),
	KUNIT_CASE(cq_no_lost_wakeup),
	KUNIT_CASE(cq_resize_race),
	{}
};

static struct kunit_suite cq_suite = {
	.name = "mrsoft_cq",
	.test_cases = cq_cases,
};

kunit_test_suite(cq_suite);

MODULE_DESCRIPTION("KUnit suite of mrsoft: completion queues");
MODULE_LICENSE("GPL");
