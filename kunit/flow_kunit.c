// SPDX-License-Identifier: GPL-2.0
/*
 * flow_kunit.c - states, waits, flushes, and what happens in the middle
 *
 * Time: never too early; how much too late depends on the machine and is not
 * looked at.  The middle of a message is a place between two segments, which
 * engine_kunit.h lets us stop at.
 */
#include "engine_kunit.h"

#define MANY	200
#define BIG	(3u * SZ_1M + 12345)
#define MARK	0xe7

static struct post write_to(struct end *b, void *from, u32 len)
{
	return (struct post){
		.op = IB_WR_RDMA_WRITE, .wr_id = 1, .flags = SIG, .addr = from,
		.len = len, .raddr = IOVA, .rkey = b->mr->key.key,
	};
}

static struct post send_of(void *from, u32 len)
{
	return (struct post){
		.op = IB_WR_SEND, .wr_id = 1, .flags = SIG, .addr = from,
		.len = len,
	};
}

static void must_post(struct end *end, const struct post *p)
{
	KUNIT_ASSERT_EQ(end->test, post_send(end, p), 0);
}

static bool wait_count(atomic64_t *count, s64 least)
{
	unsigned long until = jiffies + 20 * HZ;

	while (atomic64_read(count) < least) {
		if (time_after(jiffies, until))
			return false;
		usleep_range(50, 100);
	}
	return true;
}

/* --- waits ---------------------------------------------------------------- */

static const struct wait_row {
	const char *name;
	u8 code;
	u8 retries;
} wait_rows[] = {
	{ "none", 20, 0 },
	{ "1 of 10 ms", 20, 1 },
	{ "3 of 1.3 ms", 14, 3 },
	{ "6 of 0.01 ms", 1, 6 },
};

KUNIT_ARRAY_PARAM_DESC(wait, wait_rows, name);

/* IBA 9.7.5.2.8: as often as rnr_retry says, and never before the time. */
static void flow_rnr_wait(struct kunit *test)
{
	const struct wait_row *row = test->param_value;
	struct engine *eng = engine_new(test);
	struct end *a = &eng->end[0];
	struct post p = send_of(NULL, 0);
	ktime_t start;
	s64 ns;

	eng->attr.min_rnr_timer = row->code;
	eng->attr.rnr_retry = row->retries;
	engine_start(eng, IB_QPT_RC);
	connect_ends(eng);
	start = ktime_get();
	must_post(a, &p);
	expect_send(a, 1, IB_WC_RNR_RETRY_EXC_ERR);
	ns = ktime_to_ns(ktime_sub(ktime_get(), start));
	KUNIT_EXPECT_GE(test, ns, (s64)(row->retries * mrsoft_rnr_ns(row->code)));
	KUNIT_EXPECT_EQ(test, atomic64_read(&a->hca.stats.rnr_waits),
			(s64)row->retries);
	expect_silence(eng);
}

/* The timer is the responder's, and 7 does not count. */
static void flow_rnr_forever(struct kunit *test)
{
	struct engine *eng = engine_new(test);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = send_of(NULL, 0);

	eng->attr.min_rnr_timer = 5;
	eng->attr.rnr_retry = 7;
	engine_start(eng, IB_QPT_RC);
	connect_ends(eng);
	must_post(a, &p);
	KUNIT_EXPECT_TRUE(test, wait_count(&a->hca.stats.rnr_waits, 20));
	KUNIT_EXPECT_EQ(test, mrsoft_cq_pending(&a->scq), 0u);
	post_recv(b, 7, b->buf, 10);
	expect_send(a, 1, IB_WC_SUCCESS);
	expect_recv(b, 7, IB_WC_SUCCESS);
	expect_silence(eng);
}

/* Each message has its retries anew; the one that waited arrives once. */
static void flow_rnr_recovers(struct kunit *test)
{
	struct engine *eng = engine_new(test);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = send_of(a->buf, 10);
	ktime_t start;
	u64 i;

	eng->attr.min_rnr_timer = 27;	/* 123 ms: we have time to post */
	eng->attr.rnr_retry = 2;
	engine_start(eng, IB_QPT_RC);
	connect_ends(eng);
	p.addr = a->buf;
	for (i = 0; i < 3; i++) {
		p.wr_id = i;
		start = ktime_get();
		must_post(a, &p);
		KUNIT_EXPECT_TRUE(test, wait_count(&a->hca.stats.rnr_waits,
						   i + 1));
		post_recv(b, 10 + i, b->buf, 10);
		expect_send(a, i, IB_WC_SUCCESS);
		expect_recv(b, 10 + i, IB_WC_SUCCESS);
		KUNIT_EXPECT_GE(test, ktime_to_ns(ktime_sub(ktime_get(),
							    start)),
				122880000ll);
	}
	expect_silence(eng);
	KUNIT_EXPECT_GE(test, atomic64_read(&a->hca.stats.rnr_waits), 3);
}

/* IBA 9.7.6.1.3: retry_cnt times, each after the time-out. */
static void flow_retry(struct kunit *test)
{
	const struct wait_row *row = test->param_value;
	struct engine *eng = engine_new(test);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = send_of(NULL, 0);
	ktime_t start;
	s64 ns;

	eng->attr.timeout = 10;		/* 4.2 ms */
	eng->attr.retry_cnt = row->retries;
	engine_start(eng, IB_QPT_RC);
	connect_ends(eng);
	KUNIT_EXPECT_EQ(test, to_state(b, IB_QPS_RESET), 0);
	start = ktime_get();
	must_post(a, &p);
	expect_send(a, 1, IB_WC_RETRY_EXC_ERR);
	ns = ktime_to_ns(ktime_sub(ktime_get(), start));
	KUNIT_EXPECT_GE(test, ns, (s64)(row->retries * mrsoft_ack_ns(10)));
	KUNIT_EXPECT_EQ(test, atomic64_read(&a->hca.stats.retries),
			(s64)row->retries);
}

/* Time-out 0 waits for ever: until the peer is there. */
static void flow_retry_forever(struct kunit *test)
{
	struct engine *eng = engine_new(test);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = send_of(NULL, 0);

	eng->attr.timeout = 0;
	eng->attr.retry_cnt = 0;
	engine_start(eng, IB_QPT_RC);
	to_rtr(eng, 0, b);
	to_rts(eng, 0);
	must_post(a, &p);
	KUNIT_EXPECT_TRUE(test, wait_count(&a->hca.stats.retries, 3));
	KUNIT_EXPECT_EQ(test, mrsoft_cq_pending(&a->scq), 0u);
	post_recv(b, 7, b->buf, 10);
	to_rtr(eng, 1, a);
	expect_send(a, 1, IB_WC_SUCCESS);
	expect_recv(b, 7, IB_WC_SUCCESS);
}

/* --- flush ---------------------------------------------------------------- */

/* A queue that is stuck: its first message waits for a receive for ever. */
static struct engine *stuck_engine(struct kunit *test, int posts)
{
	struct engine *eng = engine_new(test);
	struct end *a = &eng->end[0];
	struct post p;
	int i;

	eng->attr.min_rnr_timer = 31;	/* half a second */
	eng->attr.rnr_retry = 7;
	engine_start(eng, IB_QPT_RC);
	connect_ends(eng);
	for (i = 0; i < posts; i++) {
		p = send_of(a->buf, 10);
		p.wr_id = i;
		p.flags = i % 3 ? 0 : SIG;
		must_post(a, &p);
	}
	KUNIT_EXPECT_TRUE(test, wait_count(&a->hca.stats.rnr_waits, 1));
	return eng;
}

static void expect_flushed(struct kunit *test, struct ib_wc wc)
{
	KUNIT_EXPECT_EQ(test, wc.vendor_err, (u32)MRSOFT_R_FLUSHED);
}

/* IBA 10.3.1: each once, in order, signalled or not; later ones as well. */
static void flow_flush_sends(struct kunit *test)
{
	struct engine *eng = stuck_engine(test, MANY);
	struct end *a = &eng->end[0];
	struct post p = send_of(a->buf, 10);
	u64 i;

	KUNIT_ASSERT_EQ(test, to_state(a, IB_QPS_ERR), 0);
	for (i = 0; i < MANY; i++)
		expect_flushed(test, expect_send(a, i, IB_WC_WR_FLUSH_ERR));
	expect_silence(eng);
	for (i = 0; i < MANY; i++) {
		p.wr_id = 1000 + i;
		must_post(a, &p);
	}
	for (i = 0; i < MANY; i++)
		expect_send(a, 1000 + i, IB_WC_WR_FLUSH_ERR);
	expect_silence(eng);
	KUNIT_EXPECT_EQ(test, state_of(&eng->end[1]), IB_QPS_RTS);
}

static void flow_flush_recvs(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *b = &eng->end[1];
	u64 i;

	for (i = 0; i < MANY; i++)
		post_recv(b, i, b->buf, 10);
	KUNIT_ASSERT_EQ(test, to_state(b, IB_QPS_ERR), 0);
	for (i = 0; i < MANY; i++)
		expect_flushed(test, expect_recv(b, i, IB_WC_WR_FLUSH_ERR));
	expect_silence(eng);
	for (i = 0; i < MANY; i++)
		post_recv(b, 1000 + i, b->buf, 10);
	for (i = 0; i < MANY; i++)
		expect_recv(b, 1000 + i, IB_WC_WR_FLUSH_ERR);
	expect_silence(eng);
}

/* A queue that is full is flushed while the consumer posts what it got back. */
static void flow_flush_races_post(struct kunit *test)
{
	struct engine *eng = stuck_engine(test, 255);
	struct end *a = &eng->end[0];
	struct post p = send_of(a->buf, 10);
	struct ib_wc wc;
	u64 next = 255, i;
	int wrong = 0;

	KUNIT_EXPECT_EQ(test, post_send(a, &p), -ENOMEM);
	mrsoft_qp_error(&a->qp);
	for (i = 0; i < 3000; i++) {
		KUNIT_ASSERT_TRUE(test, get_wc(&a->scq, &wc));
		wrong += wc.wr_id != i || wc.status != IB_WC_WR_FLUSH_ERR;
		p.wr_id = next;
		/* the slot is free before the completion is seen */
		if (next < 3000)
			wrong += !!post_send(a, &p);
		next++;
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
	expect_silence(eng);
}

/* IBA 10.2.9.3: with an SRQ nothing is flushed; the last one is announced. */
static void flow_flush_srq(struct kunit *test)
{
	struct engine *eng = engine_new(test);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = send_of(NULL, 0);
	u64 i;

	eng->end[0].use_srq = true;
	engine_start(eng, IB_QPT_RC);
	connect_ends(eng);
	for (i = 0; i < 5; i++)
		post_recv(b, i, b->buf, 10);
	must_post(a, &p);
	expect_send(a, 1, IB_WC_SUCCESS);
	expect_recv(b, 0, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, events(b, IB_EVENT_QP_LAST_WQE_REACHED), 0);
	KUNIT_ASSERT_EQ(test, to_state(b, IB_QPS_ERR), 0);
	expect_silence(eng);
	KUNIT_EXPECT_EQ(test, events(b, IB_EVENT_QP_LAST_WQE_REACHED), 1);
	mrsoft_resp_flush(&b->qp);
	expect_silence(eng);
	KUNIT_EXPECT_EQ(test, events(b, IB_EVENT_QP_LAST_WQE_REACHED), 1);
	KUNIT_EXPECT_EQ(test, mrsoft_rq_pending(&b->srq.rq), 4u);
	/* RESET arms it again */
	KUNIT_ASSERT_EQ(test, to_state(b, IB_QPS_RESET), 0);
	to_rtr(eng, 1, a);
	KUNIT_ASSERT_EQ(test, to_state(b, IB_QPS_ERR), 0);
	settle(eng);
	KUNIT_EXPECT_EQ(test, events(b, IB_EVENT_QP_LAST_WQE_REACHED), 2);
}

/* --- SQD ------------------------------------------------------------------ */

static int to_sqd(struct end *end, bool notify)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_SQD, .en_sqd_async_notify = notify,
	};

	return modify(end, &attr, IB_QP_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY);
}

static bool draining(struct end *end)
{
	struct ib_qp_attr attr;

	mrsoft_qp_query(&end->qp, &attr);
	return attr.sq_draining;
}

static void flow_sqd_idle(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = write_to(b, a->buf, 100);
	u64 i;

	KUNIT_ASSERT_EQ(test, to_sqd(a, true), 0);
	settle(eng);
	KUNIT_EXPECT_EQ(test, events(a, IB_EVENT_SQ_DRAINED), 1);
	KUNIT_EXPECT_FALSE(test, draining(a));
	/* posting is allowed, nothing goes out */
	for (i = 0; i < 10; i++) {
		p.wr_id = i;
		must_post(a, &p);
	}
	expect_silence(eng);
	KUNIT_EXPECT_EQ(test, events(a, IB_EVENT_SQ_DRAINED), 1);
	/* it still answers */
	p = write_to(a, b->buf, 100);
	must_post(b, &p);
	expect_send(b, 1, IB_WC_SUCCESS);

	KUNIT_ASSERT_EQ(test, to_state(a, IB_QPS_RTS), 0);
	for (i = 0; i < 10; i++)
		expect_send(a, i, IB_WC_SUCCESS);
	/* the next time, once more; without the wish, not */
	KUNIT_ASSERT_EQ(test, to_sqd(a, true), 0);
	settle(eng);
	KUNIT_EXPECT_EQ(test, events(a, IB_EVENT_SQ_DRAINED), 2);
	KUNIT_ASSERT_EQ(test, to_state(a, IB_QPS_RTS), 0);
	KUNIT_ASSERT_EQ(test, to_sqd(a, false), 0);
	settle(eng);
	KUNIT_EXPECT_EQ(test, events(a, IB_EVENT_SQ_DRAINED), 2);
	/* the wish belongs to one transition, not to the QP */
	KUNIT_ASSERT_EQ(test, to_state(a, IB_QPS_RTS), 0);
	KUNIT_ASSERT_EQ(test, to_sqd(a, true), 0);
	settle(eng);
	KUNIT_ASSERT_EQ(test, events(a, IB_EVENT_SQ_DRAINED), 3);
	KUNIT_ASSERT_EQ(test, to_state(a, IB_QPS_RTS), 0);
	KUNIT_ASSERT_EQ(test, to_state(a, IB_QPS_SQD), 0);
	settle(eng);
	KUNIT_EXPECT_EQ(test, events(a, IB_EVENT_SQ_DRAINED), 3);
}

/* What was begun is finished first: the event comes behind it. */
static void flow_sqd_busy(struct kunit *test)
{
	struct engine *eng = stuck_engine(test, 5);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	u64 i;

	KUNIT_ASSERT_EQ(test, to_sqd(a, true), 0);
	settle(eng);
	KUNIT_EXPECT_EQ(test, events(a, IB_EVENT_SQ_DRAINED), 0);
	KUNIT_EXPECT_TRUE(test, draining(a));
	for (i = 0; i < 5; i++)
		post_recv(b, i, b->buf, 10);
	expect_send(a, 0, IB_WC_SUCCESS);
	expect_recv(b, 0, IB_WC_SUCCESS);
	expect_silence(eng);
	KUNIT_EXPECT_EQ(test, events(a, IB_EVENT_SQ_DRAINED), 1);
	KUNIT_EXPECT_FALSE(test, draining(a));
	KUNIT_ASSERT_EQ(test, to_state(a, IB_QPS_RTS), 0);
	for (i = 1; i < 5; i++)
		expect_recv(b, i, IB_WC_SUCCESS);
	expect_send(a, 3, IB_WC_SUCCESS);
	expect_silence(eng);
}

/* --- SQE, RESET, RTR ------------------------------------------------------ */

/* UC: the send queue stops, the rest of the QP does not; RTS mends it. */
static void flow_sqe(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_UC);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = write_to(b, a->buf, 100);

	p.lkey = 0xdead00;
	must_post(a, &p);
	p = write_to(b, a->buf, 100);
	p.wr_id = 2;
	must_post(a, &p);
	expect_send(a, 1, IB_WC_LOC_PROT_ERR);
	expect_send(a, 2, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, state_of(a), IB_QPS_SQE);
	p.wr_id = 3;
	must_post(a, &p);
	expect_send(a, 3, IB_WC_WR_FLUSH_ERR);
	/* it receives */
	post_recv(a, 7, a->buf, 10);
	p = send_of(b->buf, 10);
	must_post(b, &p);
	expect_send(b, 1, IB_WC_SUCCESS);
	expect_recv(a, 7, IB_WC_SUCCESS);

	settle(eng);
	KUNIT_ASSERT_EQ(test, to_state(a, IB_QPS_RTS), 0);
	p = write_to(b, a->buf, 100);
	p.wr_id = 4;
	must_post(a, &p);
	expect_send(a, 4, IB_WC_SUCCESS);
	expect_silence(eng);
}

/* RESET forgets without a completion; then everything works from the start. */
static void flow_reset(struct kunit *test)
{
	struct engine *eng = stuck_engine(test, MANY);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = write_to(b, a->buf, 100);
	u64 i;
	int k;

	for (i = 0; i < MANY; i++)
		post_recv(a, i, a->buf, 10);
	for (k = 0; k < 2; k++)
		KUNIT_ASSERT_EQ(test, to_state(&eng->end[k], IB_QPS_RESET), 0);
	expect_silence(eng);
	KUNIT_EXPECT_EQ(test, post_send(a, &p), -EINVAL);
	KUNIT_EXPECT_EQ(test, mrsoft_rq_pending(&a->qp.rq), 0u);

	connect_ends(eng);
	must_post(a, &p);
	expect_send(a, 1, IB_WC_SUCCESS);
	post_recv(a, 9, a->buf, 10);
	p = send_of(b->buf, 10);
	must_post(b, &p);
	expect_send(b, 1, IB_WC_SUCCESS);
	expect_recv(a, 9, IB_WC_SUCCESS);
	expect_silence(eng);
}

/* IBA 11.6.3.1: the first message in RTR tells that the peer is there. */
static void flow_established(struct kunit *test)
{
	struct engine *eng = engine_new(test);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = send_of(NULL, 0);
	u64 i;

	engine_start(eng, IB_QPT_RC);
	to_rtr(eng, 0, b);
	to_rtr(eng, 1, a);
	to_rts(eng, 0);
	for (i = 0; i < 3; i++) {
		post_recv(b, i, b->buf, 10);
		must_post(a, &p);
		expect_send(a, 1, IB_WC_SUCCESS);
		expect_recv(b, i, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, events(b, IB_EVENT_COMM_EST), 1);
	}
	to_rts(eng, 1);
	post_recv(b, i, b->buf, 10);
	must_post(a, &p);
	expect_send(a, 1, IB_WC_SUCCESS);
	expect_recv(b, i, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, events(b, IB_EVENT_COMM_EST), 1);
	KUNIT_EXPECT_EQ(test, events(a, IB_EVENT_COMM_EST), 0);
}

/* Both count the same packets, across the end of 24 bits. */
static void flow_psn(struct kunit *test)
{
	static const u32 lengths[] = { 0, 1, 1024, 1025, 5000, 16384 };
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	u32 psn = 0xfffffe, i;
	struct post p;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		p = write_to(b, a->buf, lengths[i]);
		must_post(a, &p);
		expect_send(a, 1, IB_WC_SUCCESS);
		psn += lengths[i] ? DIV_ROUND_UP(lengths[i], 1024) : 1;
		KUNIT_EXPECT_EQ(test, a->qp.sq.psn, psn & 0xffffff);
		KUNIT_EXPECT_EQ(test, b->qp.resp.psn, psn & 0xffffff);
	}
	KUNIT_EXPECT_EQ(test, b->qp.resp.msn, (u32)ARRAY_SIZE(lengths));
}

/* --- a CQ that is full ---------------------------------------------------- */

static void flow_cq_overflow(struct kunit *test)
{
	struct engine *eng = engine_new(test);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p;
	int i;

	eng->cqe = 3;
	engine_start(eng, IB_QPT_RC);
	connect_ends(eng);
	for (i = 0; i < 10; i++) {
		p = write_to(b, a->buf, 8);
		p.wr_id = i;
		must_post(a, &p);
	}
	KUNIT_EXPECT_TRUE(test, wait_state(a, IB_QPS_ERR));
	settle(eng);
	KUNIT_EXPECT_EQ(test, events(a, IB_EVENT_CQ_ERR), 1);
	KUNIT_EXPECT_EQ(test, events(a, IB_EVENT_QP_FATAL), 1);
	KUNIT_EXPECT_EQ(test, mrsoft_cq_pending(&a->scq), 3u);
	for (i = 0; i < 3; i++)
		expect_send(a, i, IB_WC_SUCCESS);
	/* what is lost stays lost */
	expect_silence(eng);
	KUNIT_EXPECT_EQ(test, state_of(b), IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, events(b, IB_EVENT_CQ_ERR), 0);
}

static void flow_cq_overflow_recv(struct kunit *test)
{
	struct engine *eng = engine_new(test);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = send_of(NULL, 0);
	int i;

	eng->cqe = 3;
	engine_start(eng, IB_QPT_RC);
	connect_ends(eng);
	p.flags = 0;
	for (i = 0; i < 6; i++)
		post_recv(b, i, b->buf, 8);
	for (i = 0; i < 6; i++)
		must_post(a, &p);
	KUNIT_EXPECT_TRUE(test, wait_state(b, IB_QPS_ERR));
	settle(eng);
	KUNIT_EXPECT_EQ(test, events(b, IB_EVENT_CQ_ERR), 1);
	KUNIT_EXPECT_EQ(test, events(b, IB_EVENT_QP_FATAL), 1);
	for (i = 0; i < 3; i++)
		expect_recv(b, i, IB_WC_SUCCESS);
}

/* --- large messages ------------------------------------------------------- */

static u8 *big_buf(struct kunit *test)
{
	u8 *buf = kunit_kmalloc(test, BIG, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	memset(buf, POISON, BIG);
	return buf;
}

struct big {
	struct engine *eng;
	struct end *a;
	struct end *b;
	struct mrsoft_mr *mr[2];
	u8 *buf[2];
};

static void big_start(struct kunit *test, struct big *big, enum ib_qp_type type)
{
	int i;

	big->eng = engine_create(test, type);
	big->a = &big->eng->end[0];
	big->b = &big->eng->end[1];
	for (i = 0; i < 2; i++) {
		big->buf[i] = big_buf(test);
		big->mr[i] = new_mr(&big->eng->end[i], 0, big->buf[i], BIG,
				    IOVA, ALL);
	}
}

/* The whole buffer of one side to or from that of the other. */
static struct post big_post(struct big *big, u32 op)
{
	return (struct post){
		.op = op, .wr_id = 1, .flags = SIG,
		.addr = (void *)(uintptr_t)IOVA, .len = BIG,
		.lkey = big->mr[0]->key.key, .raddr = IOVA,
		.rkey = big->mr[1]->key.key,
	};
}

static const struct big_row {
	const char *name;
	enum ib_qp_type type;
	u32 op;
} big_rows[] = {
	{ "rc write", IB_QPT_RC, IB_WR_RDMA_WRITE },
	{ "rc read", IB_QPT_RC, IB_WR_RDMA_READ },
	{ "rc send", IB_QPT_RC, IB_WR_SEND },
	{ "uc write", IB_QPT_UC, IB_WR_RDMA_WRITE },
	{ "uc send", IB_QPT_UC, IB_WR_SEND },
};

KUNIT_ARRAY_PARAM_DESC(big, big_rows, name);

/* Over many segments and turns; a list whose pieces end anywhere. */
static void flow_big(struct kunit *test)
{
	const struct big_row *row = test->param_value;
	bool read = row->op == IB_WR_RDMA_READ;
	struct ib_sge sges[3];
	struct big big;
	struct post p;
	u32 key;

	big_start(test, &big, row->type);
	p = big_post(&big, row->op);
	key = p.lkey;
	sges[0] = (struct ib_sge){ IOVA, MRSOFT_SEGMENT + 1, key };
	sges[1] = (struct ib_sge){ IOVA + sges[0].length, 1000001, key };
	sges[2] = (struct ib_sge){ sges[1].addr + 1000001,
				   BIG - 1000001 - sges[0].length, key };
	p.sges = sges;
	p.num_sge = 3;
	fill(big.buf[read], BIG, 17);
	if (row->op == IB_WR_SEND)
		KUNIT_ASSERT_EQ(test, post_recv_key(big.b, 7,
						    (void *)(uintptr_t)IOVA,
						    BIG, big.mr[1]->key.key),
				0);
	must_post(big.a, &p);
	expect_send(big.a, 1, IB_WC_SUCCESS);
	if (row->op == IB_WR_SEND)
		expect_recv(big.b, 7, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, filled(big.buf[!read], BIG, 17));
	expect_silence(big.eng);
}

/* --- in the middle -------------------------------------------------------- */

/* What is done between segment @at - 1 and segment @at of the first message. */
static struct {
	struct big *big;
	struct mrsoft_qp *of;
	void (*act)(struct big *big);
	int at;
	int calls;
	int ret;
	struct completion reached;
} plan;

static void between(struct mrsoft_qp *qp)
{
	if (qp == plan.of && ++plan.calls == plan.at)
		plan.act(plan.big);
}

static void set_plan(struct big *big, int at, void (*act)(struct big *big))
{
	memset(&plan, 0, sizeof(plan));
	init_completion(&plan.reached);
	plan.big = big;
	plan.of = &big->a->qp;
	plan.act = act;
	plan.at = at;
	WRITE_ONCE(watch.between, between);
}

/* The region is gone: what is in its memory from now on is none of theirs. */
static void drop_and_mark(struct big *big, int side)
{
	struct end *end = &big->eng->end[side];

	plan.ret = drop_mr(end, big->mr[side]);
	memset(big->buf[side], MARK, BIG);
}

static void drop_local(struct big *big)
{
	drop_and_mark(big, 0);
}

static void drop_remote(struct big *big)
{
	drop_and_mark(big, 1);
}

static const struct middle_row {
	const char *name;
	u32 op;
	void (*act)(struct big *big);
	int side;
	enum ib_wc_status status;
	enum ib_wc_status recv;
	enum ib_qp_state resp_state;
} middle_rows[] = {
	{ "write, remote", IB_WR_RDMA_WRITE, drop_remote, 1,
	  IB_WC_REM_ACCESS_ERR, 0, IB_QPS_ERR },
	{ "read, remote", IB_WR_RDMA_READ, drop_remote, 1,
	  IB_WC_REM_ACCESS_ERR, 0, IB_QPS_ERR },
	{ "send, remote", IB_WR_SEND, drop_remote, 1, IB_WC_REM_OP_ERR,
	  IB_WC_LOC_PROT_ERR, IB_QPS_ERR },
	{ "write, local", IB_WR_RDMA_WRITE, drop_local, 0, IB_WC_LOC_PROT_ERR,
	  0, IB_QPS_RTS },
	{ "read, local", IB_WR_RDMA_READ, drop_local, 0, IB_WC_LOC_PROT_ERR, 0,
	  IB_QPS_RTS },
	{ "send, local", IB_WR_SEND, drop_local, 0, IB_WC_LOC_PROT_ERR, 0,
	  IB_QPS_RTS },
};

KUNIT_ARRAY_PARAM_DESC(middle, middle_rows, name);

/* Invariant 1: after dereg no byte is written, and none is read. */
static void flow_dereg(struct kunit *test)
{
	const struct middle_row *row = test->param_value;
	struct ib_wc wc;
	struct big big;
	struct post p;

	big_start(test, &big, IB_QPT_RC);
	p = big_post(&big, row->op);
	if (row->op == IB_WR_SEND)
		KUNIT_ASSERT_EQ(test, post_recv_key(big.b, 7,
						    (void *)(uintptr_t)IOVA,
						    BIG, big.mr[1]->key.key),
				0);
	set_plan(&big, 6, row->act);
	must_post(big.a, &p);
	wc = expect_send(big.a, 1, row->status);
	KUNIT_EXPECT_EQ(test, wc.vendor_err, (u32)MRSOFT_R_KEY_STALE);
	if (row->recv)
		expect_recv(big.b, 7, row->recv);
	settle(big.eng);
	KUNIT_EXPECT_EQ(test, plan.ret, 0);
	KUNIT_EXPECT_EQ(test, state_of(big.a), IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, state_of(big.b), row->resp_state);
	/* nothing was written to it, nothing of what is there now was read */
	KUNIT_EXPECT_TRUE(test, !memchr_inv(big.buf[row->side], MARK, BIG));
	KUNIT_EXPECT_PTR_EQ(test, memchr(big.buf[!row->side], MARK, BIG), NULL);
	/* the responder is nobody's any more */
	KUNIT_EXPECT_PTR_EQ(test, big.b->qp.resp.active, NULL);
	if (row->op == IB_WR_SEND && !row->recv) {
		to_state(big.b, IB_QPS_ERR);
		expect_recv(big.b, 7, IB_WC_WR_FLUSH_ERR);
	}
	expect_silence(big.eng);
}

/* The same from another thread, at any moment of a copy. */
static void flow_dereg_race(struct kunit *test)
{
	unsigned long end = jiffies + HZ / 2;
	int round, wrong = 0, cut = 0;
	struct big big;
	struct ib_wc wc;
	struct post p;

	big_start(test, &big, IB_QPT_UC);
	fill(big.buf[0], BIG, 1);
	for (round = 0; round < 300 && time_before(jiffies, end); round++) {
		s64 before = atomic64_read(&big.b->hca.stats.rx_msgs);

		p = big_post(&big, IB_WR_RDMA_WRITE);
		must_post(big.a, &p);
		usleep_range(round % 50 * 20, round % 50 * 20 + 20);
		wrong += !!drop_mr(big.b, big.mr[1]);
		memset(big.buf[1], MARK, BIG);
		KUNIT_ASSERT_TRUE(test, get_wc(&big.a->scq, &wc));
		wrong += wc.status != IB_WC_SUCCESS;
		settle(big.eng);
		wrong += !!memchr_inv(big.buf[1], MARK, BIG);
		cut += atomic64_read(&big.b->hca.stats.rx_msgs) == before;
		big.mr[1] = new_mr(big.b, 0, big.buf[1], BIG, IOVA, ALL);
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_GT(test, cut, 0);
}

/* Who ends a QP is not the runner of another one's send queue. */
struct elsewhere {
	struct work_struct work;
	struct end *end;
	enum ib_qp_state state;
	struct completion done;
};

static void modify_fn(struct work_struct *work)
{
	struct elsewhere *e = container_of(work, struct elsewhere, work);

	plan.ret = to_state(e->end, e->state);
	complete(&e->done);
}

static void destroy_fn(struct work_struct *work)
{
	struct elsewhere *e = container_of(work, struct elsewhere, work);

	destroy_qp(e->end);
	complete(&e->done);
}

static void do_elsewhere(work_func_t fn, struct end *end,
			 enum ib_qp_state state)
{
	struct elsewhere e = { .end = end, .state = state };

	init_completion(&e.done);
	INIT_WORK_ONSTACK(&e.work, fn);
	schedule_work(&e.work);
	wait_for_completion(&e.done);
	destroy_work_on_stack(&e.work);
}

static void destroy_peer(struct big *big)
{
	do_elsewhere(destroy_fn, big->b, IB_QPS_RESET);
	big->eng->lost = 1;
}

static void reset_peer(struct big *big)
{
	do_elsewhere(modify_fn, big->b, IB_QPS_RESET);
}

static void fail_peer(struct big *big)
{
	do_elsewhere(modify_fn, big->b, IB_QPS_ERR);
}

static const struct peer_row {
	const char *name;
	void (*act)(struct big *big);
	enum mrsoft_reason reason;
} peer_rows[] = {
	{ "destroyed", destroy_peer, MRSOFT_R_NO_PEER },
	{ "reset", reset_peer, MRSOFT_R_PEER_STATE },
	{ "in error", fail_peer, MRSOFT_R_PEER_STATE },
};

KUNIT_ARRAY_PARAM_DESC(peer, peer_rows, name);

/* The peer does not wait for the requester, who hears nothing any more. */
static void flow_peer_ends(struct kunit *test)
{
	const struct peer_row *row = test->param_value;
	struct ib_wc wc;
	struct big big;
	struct post p;

	big_start(test, &big, IB_QPT_RC);
	p = big_post(&big, IB_WR_SEND);
	KUNIT_ASSERT_EQ(test, post_recv_key(big.b, 7, (void *)(uintptr_t)IOVA,
					    BIG, big.mr[1]->key.key), 0);
	set_plan(&big, 6, row->act);
	must_post(big.a, &p);
	wc = expect_send(big.a, 1, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_EQ(test, wc.vendor_err, (u32)row->reason);
	KUNIT_EXPECT_EQ(test, plan.ret, 0);
	if (row->act == fail_peer)
		expect_recv(big.b, 7, IB_WC_WR_FLUSH_ERR);
	expect_silence(big.eng);
}

static void wait_for_stop(struct big *big)
{
	unsigned long until = jiffies + 20 * HZ;

	complete(&plan.reached);
	while (!READ_ONCE(big->a->qp.sq.stopped) && time_before(jiffies, until))
		usleep_range(50, 100);
}

/* The requester goes in the middle: the responder is free for another. */
static void flow_requester_ends(struct kunit *test)
{
	struct big big;
	struct post p;

	big_start(test, &big, IB_QPT_RC);
	p = big_post(&big, IB_WR_SEND);
	KUNIT_ASSERT_EQ(test, post_recv_key(big.b, 7, (void *)(uintptr_t)IOVA,
					    BIG, big.mr[1]->key.key), 0);
	set_plan(&big, 6, wait_for_stop);
	must_post(big.a, &p);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&plan.reached,
							    20 * HZ));
	destroy_qp(big.a);
	expect_silence(big.eng);
	KUNIT_EXPECT_PTR_EQ(test, big.b->qp.resp.active, NULL);
	KUNIT_EXPECT_EQ(test, state_of(big.b), IB_QPS_RTS);

	/* another one connects and the same receive WQE is used */
	create_qp(big.a, IB_QPT_RC, false);
	KUNIT_ASSERT_EQ(test, to_state(big.b, IB_QPS_RESET), 0);
	connect_ends(big.eng);
	KUNIT_ASSERT_EQ(test, post_recv_key(big.b, 8, (void *)(uintptr_t)IOVA,
					    BIG, big.mr[1]->key.key), 0);
	must_post(big.a, &p);
	expect_send(big.a, 1, IB_WC_SUCCESS);
	expect_recv(big.b, 8, IB_WC_SUCCESS);
}

/* The requester fails in the middle: flushed, and the responder is free. */
static void fail_requester(struct big *big)
{
	mrsoft_qp_error(&big->a->qp);
}

static void flow_requester_fails(struct kunit *test)
{
	struct big big;
	struct post p;

	big_start(test, &big, IB_QPT_RC);
	p = big_post(&big, IB_WR_RDMA_WRITE);
	set_plan(&big, 3, fail_requester);
	must_post(big.a, &p);
	p.wr_id = 2;
	must_post(big.a, &p);
	expect_send(big.a, 1, IB_WC_WR_FLUSH_ERR);
	expect_send(big.a, 2, IB_WC_WR_FLUSH_ERR);
	expect_silence(big.eng);
	KUNIT_EXPECT_PTR_EQ(test, big.b->qp.resp.active, NULL);
	KUNIT_EXPECT_EQ(test, state_of(big.b), IB_QPS_RTS);
}

/* The link fails for a moment: RC sends the message again, all of it. */
static void port_flaps(struct big *big)
{
	big->b->hca.port_up = false;
	complete(&plan.reached);
}

static void port_is_back(struct big *big)
{
	big->b->hca.port_up = true;
}

/* @act in the middle of a message, and @mend while it is tried again. */
static void flaps(struct kunit *test, void (*act)(struct big *big),
		  void (*mend)(struct big *big))
{
	struct big big;
	struct post p;

	big_start(test, &big, IB_QPT_RC);
	big.a->qp.attr.retry_cnt = 7;
	big.a->qp.attr.timeout = 15;	/* 134 ms */
	p = big_post(&big, IB_WR_SEND);
	fill(big.buf[0], BIG, 33);
	KUNIT_ASSERT_EQ(test, post_recv_key(big.b, 7, (void *)(uintptr_t)IOVA,
					    BIG, big.mr[1]->key.key), 0);
	set_plan(&big, 6, act);
	must_post(big.a, &p);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&plan.reached,
							    20 * HZ));
	KUNIT_EXPECT_TRUE(test, wait_count(&big.a->hca.stats.retries, 1));
	mend(&big);
	expect_send(big.a, 1, IB_WC_SUCCESS);
	expect_recv(big.b, 7, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, filled(big.buf[1], BIG, 33));
}

static void flow_port_flaps(struct kunit *test)
{
	flaps(test, port_flaps, port_is_back);
}

/* The peer's address goes, and comes back while the message is tried again. */
static void gid_goes(struct big *big)
{
	mrsoft_local_gid_del(&big->b->hca, &big->b->gid_attr.gid);
	/* no way to end the message: the next try takes its claim over */
	big->eng->lost = 1;
	complete(&plan.reached);
}

static void gid_is_back(struct big *big)
{
	KUNIT_ASSERT_EQ(big->b->test,
			mrsoft_local_gid_add(&big->b->hca,
					     &big->b->gid_attr.gid), 0);
}

static void flow_gid_flaps(struct kunit *test)
{
	flaps(test, gid_goes, gid_is_back);
}

static void port_flaps_at_once(struct big *big)
{
	big->b->hca.port_up = false;
}

/* UC loses the message and goes on with the next. */
static void flow_port_flaps_uc(struct kunit *test)
{
	struct big big;
	struct post p;

	big_start(test, &big, IB_QPT_UC);
	p = big_post(&big, IB_WR_SEND);
	KUNIT_ASSERT_EQ(test, post_recv_key(big.b, 7, (void *)(uintptr_t)IOVA,
					    BIG, big.mr[1]->key.key), 0);
	set_plan(&big, 6, port_flaps_at_once);
	must_post(big.a, &p);
	expect_send(big.a, 1, IB_WC_SUCCESS);
	expect_silence(big.eng);
	big.b->hca.port_up = true;
	must_post(big.a, &p);
	expect_send(big.a, 1, IB_WC_SUCCESS);
	expect_recv(big.b, 7, IB_WC_SUCCESS);
}

/* --- many at once --------------------------------------------------------- */

/* Two senders, one receiver: completions in the order of its receive queue. */
static void flow_datagram_order(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_UD);
	struct end *b = &eng->end[1];
	struct mrsoft_ah *ah;
	u64 i;
	int k;

	ah = kunit_kcalloc(test, 2, sizeof(*ah), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ah);
	for (k = 0; k < 2; k++) {
		struct ib_qp_attr attr = {};

		spin_lock_init(&ah[k].lock);
		set_address(&attr, &eng->end[k], b);
		mrsoft_av_set(&ah[k].av, &attr.ah_attr);
	}
	for (i = 0; i < MANY; i++)
		post_recv(b, i, b->buf, 100);
	for (i = 0; i < MANY; i++) {
		struct post p = send_of(eng->end[i & 1].buf, 60);

		p.ah = &ah[i & 1].ib;
		p.qpn = b->qp.qpn;
		p.qkey = QKEY;
		p.flags = i >= MANY - 2 ? SIG : 0;
		must_post(&eng->end[i & 1], &p);
	}
	expect_send(&eng->end[0], 1, IB_WC_SUCCESS);
	expect_send(&eng->end[1], 1, IB_WC_SUCCESS);
	for (i = 0; i < MANY; i++)
		expect_recv(b, i, IB_WC_SUCCESS);
	expect_silence(eng);
}

/* Both ways at once, receives running short now and then. */
static void flow_both_ways(struct kunit *test)
{
	struct engine *eng = engine_new(test);
	u64 round, i;
	int k;

	eng->attr.rnr_retry = 7;
	engine_start(eng, IB_QPT_RC);
	connect_ends(eng);
	for (round = 0; round < 5; round++) {
		for (k = 0; k < 2; k++)
			for (i = 0; i < MANY; i++) {
				struct post p = send_of(eng->end[k].buf, 600);

				p.wr_id = i;
				must_post(&eng->end[k], &p);
			}
		for (k = 0; k < 2; k++)
			for (i = 0; i < MANY; i++)
				post_recv(&eng->end[k], i, eng->end[k].buf + 1000,
					  600);
		for (k = 0; k < 2; k++)
			for (i = 0; i < MANY; i++) {
				expect_send(&eng->end[k], i, IB_WC_SUCCESS);
				expect_recv(&eng->end[k], i, IB_WC_SUCCESS);
			}
	}
	expect_silence(eng);
	for (k = 0; k < 2; k++)
		KUNIT_EXPECT_EQ(test, eng->end[k].qp.sq.psn,
				eng->end[1 - k].qp.resp.psn);
}

/* A path on which nothing happens until it is run a second time. */
static int idle_run(struct mrsoft_qp *qp, enum ib_wc_status *status)
{
	if (qp->sq.stage == MRSOFT_SQ_BEGUN)
		return 0;
	qp->sq.stage = MRSOFT_SQ_BEGUN;
	/* somebody posts after this looked at the queue, before it rests */
	mrsoft_sq_doorbell(qp);
	mrsoft_sq_wait(qp, NSEC_PER_SEC * 3600, true);
	return -EINPROGRESS;
}

static void idle_abort(struct mrsoft_qp *qp)
{
}

static const struct mrsoft_path_ops idle_path = {
	.name	= "idle",
	.run	= idle_run,
	.abort	= idle_abort,
};

/* A wait that a post ends is not begun over the head of one. */
static void flow_post_before_wait(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *a = &eng->end[0];

	a->qp.path = &idle_path;
	KUNIT_ASSERT_EQ(test, post_send(a, &(struct post){
		.op = IB_WR_SEND, .wr_id = 1, .flags = SIG }), 0);
	expect_send(a, 1, IB_WC_SUCCESS);
}

static struct kunit_case flow_cases[] = {
	KUNIT_CASE_PARAM(flow_rnr_wait, wait_gen_params),
	KUNIT_CASE(flow_rnr_forever),
	KUNIT_CASE(flow_rnr_recovers),
	KUNIT_CASE_PARAM(flow_retry, wait_gen_params),
	KUNIT_CASE(flow_retry_forever),
	KUNIT_CASE(flow_flush_sends),
	KUNIT_CASE(flow_flush_recvs),
	KUNIT_CASE(flow_flush_races_post),
	KUNIT_CASE(flow_flush_srq),
	KUNIT_CASE(flow_sqd_idle),
	KUNIT_CASE(flow_sqd_busy),
	KUNIT_CASE(flow_sqe),
	KUNIT_CASE(flow_reset),
	KUNIT_CASE(flow_established),
	KUNIT_CASE(flow_psn),
	KUNIT_CASE(flow_cq_overflow),
	KUNIT_CASE(flow_cq_overflow_recv),
	KUNIT_CASE_PARAM(flow_big, big_gen_params),
	KUNIT_CASE_PARAM(flow_dereg, middle_gen_params),
	KUNIT_CASE(flow_dereg_race),
	KUNIT_CASE_PARAM(flow_peer_ends, peer_gen_params),
	KUNIT_CASE(flow_requester_ends),
	KUNIT_CASE(flow_requester_fails),
	KUNIT_CASE(flow_port_flaps),
	KUNIT_CASE(flow_gid_flaps),
	KUNIT_CASE(flow_port_flaps_uc),
	KUNIT_CASE(flow_datagram_order),
	KUNIT_CASE(flow_both_ways),
	KUNIT_CASE(flow_post_before_wait),
	{}
};

static struct kunit_suite flow_suite = {
	.name = "mrsoft_flow",
	.exit = engine_end,
	.test_cases = flow_cases,
};

kunit_test_suite(flow_suite);

MODULE_DESCRIPTION("KUnit suite of mrsoft: states, waits, flushes, interruptions");
MODULE_LICENSE("GPL");
