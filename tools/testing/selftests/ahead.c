// SPDX-License-Identifier: GPL-2.0
/*
 * ahead.c - messages that go out before those in front of them are answered
 *
 * The peer of each QP is a packet socket, as in packets.c, which answers late, in
 * part, or not at all, and looks at what was sent meanwhile.
 *
 * Spec: IBA Vol 1, 9.7.5 (acknowledge), 9.7.6 (retry), 10.8.3 (order),
 * 10.3.1 (SQD).  Environment: suites/packets.sh.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "peer.h"

#define N 12

static const struct kind rc = { RC, false }, rc6 = { RC, true };

static struct op op_of(struct peer *p, enum ibv_wr_opcode opcode, uint64_t id,
		       uint32_t len)
{
	return (struct op){
		.opcode = opcode, .wr_id = id, .laddr = p->buf.p, .len = len,
		.lkey = p->buf.mr->lkey, .raddr = 0x1000, .rkey = 0x4242,
	};
}

static void do_post(struct peer *p, enum ibv_wr_opcode opcode, uint64_t id,
		    uint32_t len)
{
	struct op op = op_of(p, opcode, id, len);

	OK(post(&p->e, &op));
}

static void ack(struct peer *p, uint32_t psn)
{
	say_answer(p, ACKNOWLEDGE, psn, 0x1f, NULL, 0);
}

static void expect_quiet(struct peer *p)
{
	struct answer a;

	if (hear(p, &a, 20))
		t_fail(__FILE__, __LINE__, "opcode %#x, PSN %#x was sent",
		       a.opcode, a.psn);
}

/* N SENDs of one packet, wr_id 0 and up, of which none is answered yet. */
static uint32_t sends_out(struct peer *p)
{
	uint32_t psn = p->e.conf.psn, i;

	for (i = 0; i < N; i++)
		do_post(p, IBV_WR_SEND, i, 8);
	for (i = 0; i < N; i++)
		expect_request(p, SEND_ONLY, psn_add(psn, i));
	EXPECT_EMPTY(p->e.scq, 0);
	return psn;
}

static void expect_done(struct peer *p, uint32_t from, uint32_t to)
{
	for (; from < to; from++)
		EXPECT_WC(p->e.scq, from, IBV_WC_SUCCESS);
	EXPECT_EMPTY(p->e.scq, 10);
}

/* An ACK ends all that it covers, and no more. */
static void acks(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t psn = sends_out(p);

	ack(p, psn_add(psn, 4));
	expect_done(p, 0, 5);
	ack(p, psn_add(psn, 4));
	ack(p, psn_add(psn, 3));
	ack(p, psn_add(psn, N));
	expect_done(p, 5, 5);
	ack(p, psn_add(psn, 5));
	expect_done(p, 5, 6);
	ack(p, psn_add(psn, N - 1));
	expect_done(p, 6, N);
	expect_quiet(p);
	peer_free(p);
}

/* A lost packet: what is before it is done, all from there on is sent again. */
static void sequence_nak(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t psn = sends_out(p), i;

	say_answer(p, ACKNOWLEDGE, psn_add(psn, 7), 0x60 | NAK_PSN, NULL, 0);
	expect_done(p, 0, 7);
	for (i = 7; i < N; i++)
		expect_request(p, SEND_ONLY, psn_add(psn, i));
	ack(p, psn_add(psn, N - 1));
	expect_done(p, 7, N);
	peer_free(p);
}

/* Not ready for the one in the middle: it and those behind wait and come again. */
static void rnr_nak(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t psn = sends_out(p), i;
	uint64_t start = t_now();

	/* code 20: 10.24 ms */
	say_answer(p, ACKNOWLEDGE, psn_add(psn, 3), 0x20 | 20, NULL, 0);
	expect_done(p, 0, 3);
	expect_request(p, SEND_ONLY, psn_add(psn, 3));
	CHECK(t_now() - start >= 9);
	for (i = 4; i < N; i++)
		expect_request(p, SEND_ONLY, psn_add(psn, i));
	ack(p, psn_add(psn, N - 1));
	expect_done(p, 3, N);
	peer_free(p);
}

/* During that wait nothing else is asked for again, and nothing prolongs it. */
static void nak_in_rnr_wait(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t psn, i;

	OK(end_to(&p->e, IBV_QPS_RESET));
	/* 2 hours: the wait ends before that */
	p->e.conf.timeout = 31;
	p->e.conf.retry_cnt = 0;
	peer_again(p);
	psn = sends_out(p);
	say_answer(p, ACKNOWLEDGE, psn, 0x20 | 20, NULL, 0);
	say_answer(p, ACKNOWLEDGE, psn, 0x60 | NAK_PSN, NULL, 0);
	for (i = 0; i < N; i++)
		expect_request(p, SEND_ONLY, psn_add(psn, i));
	ack(p, psn_add(psn, N - 1));
	expect_done(p, 0, N);
	peer_free(p);
}

/* Refused in the middle: its error, and a flush of each behind it. */
static void refused(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t psn = sends_out(p), i;

	say_answer(p, ACKNOWLEDGE, psn_add(psn, 5), 0x60 | NAK_ACCESS, NULL, 0);
	for (i = 0; i < 5; i++)
		EXPECT_WC(p->e.scq, i, IBV_WC_SUCCESS);
	EXPECT_WC_WHY(p->e.scq, 5, IBV_WC_REM_ACCESS_ERR,
		      MRSOFT_R_PEER_REFUSED);
	for (i = 6; i < N; i++)
		EXPECT_WC(p->e.scq, i, IBV_WC_WR_FLUSH_ERR);
	EXPECT_EMPTY(p->e.scq, 10);
	expect_state(&p->e, IBV_QPS_ERR);

	/* and nothing of it is left behind */
	peer_again(p);
	psn = sends_out(p);
	ack(p, psn_add(psn, N - 1));
	expect_done(p, 0, N);
	peer_free(p);
}

/* A silent peer: all of them come again, the first one fails when it was enough. */
static void silence(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t psn, i, tries = 0;
	struct answer a;

	OK(end_to(&p->e, IBV_QPS_RESET));
	p->e.conf.timeout = 13;
	p->e.conf.retry_cnt = 2;
	peer_again(p);
	psn = sends_out(p);
	while (hear(p, &a, 200) && tries < 100) {
		if (a.psn == psn)
			tries++;
	}
	CHECK_EQ(tries, 2);
	EXPECT_WC(p->e.scq, 0, IBV_WC_RETRY_EXC_ERR);
	for (i = 1; i < N; i++)
		EXPECT_WC(p->e.scq, i, IBV_WC_WR_FLUSH_ERR);
	peer_free(p);
}

/* Its own memory fails in its turn: after those in front, before those behind. */
static void own_error(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t psn = p->e.conf.psn;
	struct op op = op_of(p, IBV_WR_SEND, 2, 8);

	op.lkey ^= 0xff00;
	do_post(p, IBV_WR_SEND, 0, 8);
	do_post(p, IBV_WR_SEND, 1, 8);
	OK(post(&p->e, &op));
	do_post(p, IBV_WR_SEND, 3, 8);
	expect_request(p, SEND_ONLY, psn);
	expect_request(p, SEND_ONLY, psn_add(psn, 1));
	expect_quiet(p);
	EXPECT_EMPTY(p->e.scq, 0);
	expect_state(&p->e, IBV_QPS_RTS);
	ack(p, psn);
	expect_done(p, 0, 1);
	ack(p, psn_add(psn, 1));
	EXPECT_WC(p->e.scq, 1, IBV_WC_SUCCESS);
	EXPECT_WC(p->e.scq, 2, IBV_WC_LOC_PROT_ERR);
	EXPECT_WC(p->e.scq, 3, IBV_WC_WR_FLUSH_ERR);
	EXPECT_EMPTY(p->e.scq, 10);
	peer_free(p);
}

/*
 * A region that goes while its message waits for the window: not one byte of it is
 * sent after dereg.
 */
static void dereg(const void *arg)
{
	struct peer *p = peer_new(arg);
	struct buf other = buf_new(p->c->pd, 64 * KiB, IBV_ACCESS_LOCAL_WRITE);
	uint32_t psn = p->e.conf.psn, i;
	struct op op = op_of(p, IBV_WR_SEND, 1, 40 * MTU);

	do_post(p, IBV_WR_SEND, 0, 40 * MTU);
	op.laddr = other.p;
	op.lkey = other.mr->lkey;
	OK(post(&p->e, &op));
	for (i = 0; i < 64; i++)
		expect_request(p, i == 0 || i == 40 ? 0x00 : i == 39 ? 0x02 :
			       0x01, psn_add(psn, i));
	expect_quiet(p);
	OK(ibv_dereg_mr(other.mr));
	other.mr = NULL;
	ack(p, psn_add(psn, 50));
	expect_quiet(p);
	EXPECT_WC(p->e.scq, 0, IBV_WC_SUCCESS);
	EXPECT_WC(p->e.scq, 1, IBV_WC_LOC_PROT_ERR);
	buf_free(&other);
	peer_free(p);
}

static void read_response(struct peer *p, uint32_t psn, unsigned int seed)
{
	uint8_t bytes[8];

	fill(bytes, sizeof(bytes), seed);
	say_answer(p, 0x10, psn, 0x1f, bytes, 8);
}

/* SEND, WRITE, READ, atomic, WRITE: all go out; the results come in their turn. */
static uint32_t mixture_out(struct peer *p)
{
	uint32_t psn = p->e.conf.psn;

	do_post(p, IBV_WR_SEND, 0, 8);
	do_post(p, IBV_WR_RDMA_WRITE, 1, 8);
	do_post(p, IBV_WR_RDMA_READ, 2, 8);
	do_post(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 8);
	do_post(p, IBV_WR_RDMA_WRITE, 4, 8);
	expect_request(p, SEND_ONLY, psn);
	expect_request(p, WRITE_ONLY, psn_add(psn, 1));
	expect_request(p, READ_REQUEST, psn_add(psn, 2));
	expect_request(p, FETCH_ADD, psn_add(psn, 3));
	expect_request(p, WRITE_ONLY, psn_add(psn, 4));
	return psn;
}

static void mixture(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint64_t *word = (void *)p->buf.p;
	uint32_t psn = mixture_out(p);

	/* a response acknowledges what is before it, and no ACK came */
	read_response(p, psn_add(psn, 2), 3);
	expect_done(p, 0, 3);
	CHECK_EQ(filled(p->buf.p, 8, 3), -1);
	say_answer(p, ATOMIC_ACKNOWLEDGE, psn_add(psn, 3), 0x1f, NULL, 0);
	expect_done(p, 3, 4);
	CHECK_EQ(*word, 0x5a5a5a5a5a5a5a5all);
	ack(p, psn_add(psn, 4));
	expect_done(p, 4, 5);
	expect_quiet(p);
	peer_free(p);
}

/* An answer to a later request shows that a response was lost.  IBA 9.7.5.1.3 */
static void lost_response(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t psn = mixture_out(p);

	ack(p, psn_add(psn, 4));
	expect_done(p, 0, 2);
	expect_request(p, READ_REQUEST, psn_add(psn, 2));
	expect_request(p, FETCH_ADD, psn_add(psn, 3));
	expect_request(p, WRITE_ONLY, psn_add(psn, 4));
	read_response(p, psn_add(psn, 2), 4);
	expect_done(p, 2, 3);
	/* the atomic's is lost now */
	ack(p, psn_add(psn, 4));
	expect_done(p, 3, 3);
	expect_request(p, FETCH_ADD, psn_add(psn, 3));
	expect_request(p, WRITE_ONLY, psn_add(psn, 4));
	say_answer(p, ATOMIC_ACKNOWLEDGE, psn_add(psn, 3), 0x1f, NULL, 0);
	ack(p, psn_add(psn, 4));
	expect_done(p, 3, 5);
	expect_quiet(p);
	peer_free(p);
}

/*
 * A late answer to what was sent before a time-out does not use up the retry that
 * the time-out has left.
 */
static void straggler(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t psn;

	OK(end_to(&p->e, IBV_QPS_RESET));
	p->e.conf.retry_cnt = 1;
	peer_again(p);
	psn = p->e.conf.psn;
	do_post(p, IBV_WR_RDMA_READ, 0, 8);
	do_post(p, IBV_WR_SEND, 1, 8);
	expect_request(p, READ_REQUEST, psn);
	expect_request(p, SEND_ONLY, psn_add(psn, 1));
	/* the time-out */
	expect_request(p, READ_REQUEST, psn);
	expect_request(p, SEND_ONLY, psn_add(psn, 1));
	ack(p, psn_add(psn, 1));
	read_response(p, psn, 3);
	ack(p, psn_add(psn, 1));
	expect_done(p, 0, 2);
	expect_quiet(p);
	peer_free(p);
}

/* Responses of the wrong kind, or to what has none, end nothing. */
static void wrong_response(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t psn = mixture_out(p);

	memset(p->buf.p, 0x11, 8);
	read_response(p, psn, 5);
	read_response(p, psn_add(psn, 1), 5);
	read_response(p, psn_add(psn, 3), 5);
	read_response(p, psn_add(psn, 4), 5);
	say_answer(p, ATOMIC_ACKNOWLEDGE, psn_add(psn, 2), 0x1f, NULL, 0);
	say_answer(p, ATOMIC_ACKNOWLEDGE, psn_add(psn, 4), 0x1f, NULL, 0);
	expect_quiet(p);
	expect_done(p, 0, 0);
	CHECK_EQ(only(p->buf.p, 8, 0x11), -1);
	read_response(p, psn_add(psn, 2), 6);
	expect_done(p, 0, 3);
	say_answer(p, ATOMIC_ACKNOWLEDGE, psn_add(psn, 3), 0x1f, NULL, 0);
	ack(p, psn_add(psn, 4));
	expect_done(p, 3, 5);
	peer_free(p);
}

/* A NAK for what is behind a READ does not end the READ. */
static void refused_behind_read(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t psn = mixture_out(p);

	read_response(p, psn_add(psn, 2), 3);
	say_answer(p, ACKNOWLEDGE, psn_add(psn, 3), 0x60 | NAK_ACCESS, NULL, 0);
	EXPECT_WC(p->e.scq, 0, IBV_WC_SUCCESS);
	EXPECT_WC(p->e.scq, 1, IBV_WC_SUCCESS);
	EXPECT_WC(p->e.scq, 2, IBV_WC_SUCCESS);
	EXPECT_WC(p->e.scq, 3, IBV_WC_REM_ACCESS_ERR);
	EXPECT_WC(p->e.scq, 4, IBV_WC_WR_FLUSH_ERR);
	peer_free(p);
}

/* What is fenced waits for READ and atomics, and for nothing else.  IBA 10.8.3.3 */
static void fence(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t psn = p->e.conf.psn;
	struct op op = op_of(p, IBV_WR_RDMA_WRITE, 1, 8);

	op.flags = IBV_SEND_FENCE;
	do_post(p, IBV_WR_SEND, 0, 8);
	OK(post(&p->e, &op));
	do_post(p, IBV_WR_RDMA_READ, 2, 8);
	op.wr_id = 3;
	OK(post(&p->e, &op));
	do_post(p, IBV_WR_SEND, 4, 8);
	expect_request(p, SEND_ONLY, psn);
	expect_request(p, WRITE_ONLY, psn_add(psn, 1));
	expect_request(p, READ_REQUEST, psn_add(psn, 2));
	expect_quiet(p);
	ack(p, psn_add(psn, 1));
	expect_done(p, 0, 2);
	expect_quiet(p);
	read_response(p, psn_add(psn, 2), 3);
	expect_request(p, WRITE_ONLY, psn_add(psn, 3));
	expect_request(p, SEND_ONLY, psn_add(psn, 4));
	ack(p, psn_add(psn, 4));
	expect_done(p, 2, 5);
	peer_free(p);
}

/* Not more READs and atomics at a time than the QP may have. */
static void read_depth(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t psn, i;

	OK(end_to(&p->e, IBV_QPS_RESET));
	p->e.conf.rd_atomic = 2;
	peer_again(p);
	psn = p->e.conf.psn;
	do_post(p, IBV_WR_RDMA_READ, 0, 8);
	do_post(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 8);
	do_post(p, IBV_WR_RDMA_READ, 2, 8);
	do_post(p, IBV_WR_RDMA_READ, 3, 8);
	do_post(p, IBV_WR_SEND, 4, 8);
	expect_request(p, READ_REQUEST, psn);
	expect_request(p, FETCH_ADD, psn_add(psn, 1));
	expect_quiet(p);
	read_response(p, psn, 1);
	expect_request(p, READ_REQUEST, psn_add(psn, 2));
	expect_quiet(p);
	say_answer(p, ATOMIC_ACKNOWLEDGE, psn_add(psn, 1), 0x1f, NULL, 0);
	expect_request(p, READ_REQUEST, psn_add(psn, 3));
	expect_request(p, SEND_ONLY, psn_add(psn, 4));
	for (i = 2; i < 4; i++)
		read_response(p, psn_add(psn, i), i);
	ack(p, psn_add(psn, 4));
	expect_done(p, 0, 5);
	peer_free(p);
}

/* Those that have begun are finished, what is posted then waits. */
static void sqd(const void *arg)
{
	struct peer *p = peer_new(arg);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1,
	};
	uint32_t psn = sends_out(p);

	OK(ibv_modify_qp(p->e.qp, &attr,
			 IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	do_post(p, IBV_WR_SEND, N, 8);
	expect_quiet(p);
	ack(p, psn_add(psn, N - 2));
	expect_done(p, 0, N - 1);
	EXPECT_NO_EVENT(p->c, 10);
	/* what has begun is sent again like any other */
	say_answer(p, ACKNOWLEDGE, psn_add(psn, N - 1), 0x60 | NAK_PSN, NULL,
		   0);
	expect_request(p, SEND_ONLY, psn_add(psn, N - 1));
	ack(p, psn_add(psn, N - 1));
	EXPECT_EVENT(p->c, IBV_EVENT_SQ_DRAINED, p->e.qp);
	expect_done(p, N - 1, N);
	expect_quiet(p);
	OK(end_to(&p->e, IBV_QPS_RTS));
	expect_request(p, SEND_ONLY, psn_add(psn, N));
	ack(p, psn_add(psn, N));
	expect_done(p, N, N + 1);
	peer_free(p);
}

/* More than is sent at a time; the ring goes round, the PSN wraps. */
static void many(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t psn, posted = 0, heard = 0, done = 0;
	struct answer a;
	struct ibv_wc wc;

	OK(end_to(&p->e, IBV_QPS_RESET));
	p->e.conf.psn = 0xffffd0;
	peer_again(p);
	psn = p->e.conf.psn;
	while (done < 500) {
		for (; posted < 500 && posted < done + 60; posted++)
			do_post(p, IBV_WR_SEND, posted, 8);
		while (hear(p, &a, heard == done ? 2000 : 0)) {
			CHECK_EQ(a.psn, psn_add(psn, heard));
			CHECK_EQ(a.opcode, SEND_ONLY);
			heard++;
		}
		CHECK(heard > done);
		CHECK(heard - done <= 64);
		ack(p, psn_add(psn, done + (heard - done + 1) / 2 - 1));
		CHECK(wait_wc(p->e.scq, &wc, 2000));
		do {
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			CHECK_EQ(wc.wr_id, done);
			done++;
		} while (wait_wc(p->e.scq, &wc, done < heard ? 1 : 0));
	}
	CHECK_EQ(heard, 500);
	peer_free(p);
}

/* --- a program that writes to what it sends ------------------------------- */

struct scribbler {
	uint8_t *p;
	size_t len;
	atomic_bool stop;
	pthread_t thread;
};

static void *scribble(void *arg)
{
	struct scribbler *s = arg;
	uint8_t v = 0;

	while (!atomic_load(&s->stop))
		memset(s->p, v++, s->len);
	return NULL;
}

static void scribble_start(struct scribbler *s, struct peer *p)
{
	s->p = p->buf.p;
	s->len = 4 * MTU;
	atomic_init(&s->stop, false);
	CHECK_EQ(pthread_create(&s->thread, NULL, scribble, s), 0);
}

static void scribble_end(struct scribbler *s)
{
	atomic_store(&s->stop, true);
	CHECK_EQ(pthread_join(s->thread, NULL), 0);
}

/*
 * What is in a packet was copied and summed at once: hear() looks at each ICRC.
 * Requests, requests that are sent again, and READ responses.
 */
static void scribbled(const void *arg)
{
	unsigned int rounds = t_slow() > 1 ? 20 : 200, i, k;
	struct peer *p = peer_new(arg);
	uint32_t psn = p->e.conf.psn;
	struct scribbler s;
	uint8_t reth[16];
	struct answer a;

	scribble_start(&s, p);
	for (i = 0; i < rounds; i++, psn = psn_add(psn, 3)) {
		do_post(p, IBV_WR_SEND, i, 3 * MTU);
		for (k = 0; k < 3; k++)
			expect_request(p, k, psn_add(psn, k));
		say_answer(p, ACKNOWLEDGE, psn, 0x60 | NAK_PSN, NULL, 0);
		for (k = 0; k < 3; k++)
			expect_request(p, k, psn_add(psn, k));
		ack(p, psn_add(psn, 2));
		EXPECT_WC(p->e.scq, i, IBV_WC_SUCCESS);
	}
	for (i = 0; i < rounds; i++, p->psn = psn_add(p->psn, 4)) {
		put_reth(reth, (uintptr_t)p->buf.p, p->buf.mr->rkey, 4 * MTU);
		say(p, READ_REQUEST, p->psn, reth, sizeof(reth), NULL, 0);
		for (k = 0; k < 4; k++) {
			a = next_answer(p);
			CHECK_EQ(a.psn, psn_add(p->psn, k));
			CHECK_EQ(a.length, MTU);
		}
	}
	scribble_end(&s);
	peer_free(p);
}

static const struct t_case cases[] = {
	{ "acks", acks, &rc, 0 },
	{ "sequence_nak", sequence_nak, &rc, 0 },
	{ "rnr_nak", rnr_nak, &rc, 0 },
	{ "nak_in_rnr_wait", nak_in_rnr_wait, &rc, 0 },
	{ "refused", refused, &rc, 0 },
	{ "silence", silence, &rc, 0 },
	{ "own_error", own_error, &rc, 0 },
	{ "dereg", dereg, &rc, 0 },
	{ "mixture", mixture, &rc, 0 },
	{ "lost_response", lost_response, &rc, 0 },
	{ "straggler", straggler, &rc, 0 },
	{ "wrong_response", wrong_response, &rc, 0 },
	{ "refused_behind_read", refused_behind_read, &rc, 0 },
	{ "fence", fence, &rc, 0 },
	{ "read_depth", read_depth, &rc, 0 },
	{ "sqd", sqd, &rc, 0 },
	{ "many", many, &rc, 0 },
	{ "scribbled", scribbled, &rc, 0 },
	{ "scribbled6", scribbled, &rc6, 0 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
