// SPDX-License-Identifier: GPL-2.0
/*
 * errors.c - what a failure looks like, DESIGN.md section 6; QP states, IBA 10.3
 *
 * A table of faults on RC, one case for each row: both completions, the event,
 * both states, the flush.  Then UC, UD, waits and retries, states.
 */
#include <pthread.h>

#include "lib.h"
#include "told.h"

#define SIZE (16 * KiB)

struct world {
	struct ctx *c;
	struct ibv_pd *pd2;
	struct end a, b;
	/* all rights; of another PD; local write only; read only */
	struct buf mine, theirs, foreign, plain, readonly;
};

static void world_new(struct world *w, const struct conf *conf)
{
	w->c = ctx_open(NULL);
	w->pd2 = ibv_alloc_pd(w->c->ibv);
	CHECK(w->pd2);
	pair_new(w->c, conf, &w->a, &w->b);
	w->mine = buf_new(w->c->pd, SIZE, MR_ALL);
	w->theirs = buf_new(w->c->pd, SIZE, MR_ALL);
	w->foreign = buf_new(w->pd2, SIZE, MR_ALL);
	w->plain = buf_new(w->c->pd, SIZE, IBV_ACCESS_LOCAL_WRITE);
	w->readonly = buf_new(w->c->pd, SIZE, IBV_ACCESS_REMOTE_READ);
}

static void world_free(struct world *w)
{
	pair_free(&w->a, &w->b);
	buf_free(&w->mine);
	buf_free(&w->theirs);
	buf_free(&w->foreign);
	buf_free(&w->plain);
	buf_free(&w->readonly);
	OK(ibv_dealloc_pd(w->pd2));
	ctx_close(w->c);
}

enum key { GOOD, UNKNOWN, STALE, FOREIGN, PLAIN, READONLY };

static uint32_t key_of(struct world *w, enum key key, struct buf **buf)
{
	struct ibv_mr *mr;
	uint32_t old;

	*buf = &w->theirs;
	switch (key) {
	case UNKNOWN:
		return 0x00777700;
	case STALE:
		mr = ibv_reg_mr(w->c->pd, w->theirs.p, SIZE, MR_ALL);
		CHECK(mr);
		old = mr->rkey;
		OK(ibv_dereg_mr(mr));
		return old;
	case FOREIGN:
		*buf = &w->foreign;
		break;
	case PLAIN:
		*buf = &w->plain;
		break;
	case READONLY:
		*buf = &w->readonly;
		break;
	default:
		break;
	}
	return (*buf)->mr->rkey;
}

/* --- RC faults ---------------------------------------------------------------- */

/* @key_at says whose key is the wrong one, and @off what is added to the address. */
struct fault {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum { LOCAL, RECV, REMOTE } key_at;
	enum key key;
	int64_t off;
	uint32_t len, recv_len;	/* 8 and 64 if 0 */
	int qp_access;		/* taken from b's rights */
	bool no_depth;		/* b takes no READ, no atomic */
	bool quiet;
	enum ibv_wc_status want, recv;	/* recv 0: no completion but the flush */
	int event;		/* 0: none, else type, at b */
	int reason;
};

#define B_STAYS(f) ((f)->key_at == LOCAL)
#define LOC_PROT .want = IBV_WC_LOC_PROT_ERR
#define REM_OP .want = IBV_WC_REM_OP_ERR, .recv = IBV_WC_LOC_PROT_ERR
#define REM_ACC .want = IBV_WC_REM_ACCESS_ERR, .event = IBV_EVENT_QP_ACCESS_ERR
#define REM_INV .want = IBV_WC_REM_INV_REQ_ERR, .event = IBV_EVENT_QP_REQ_ERR

static const struct fault faults[] = {
	{ .name = "lkey_unknown", .opcode = IBV_WR_SEND, .key_at = LOCAL,
	  .key = UNKNOWN, .reason = MRSOFT_R_KEY_UNKNOWN, LOC_PROT },
	{ .name = "lkey_stale", .opcode = IBV_WR_RDMA_WRITE, .key_at = LOCAL,
	  .key = STALE, .reason = -1, LOC_PROT },
	{ .name = "lkey_other_pd", .opcode = IBV_WR_RDMA_WRITE,
	  .key_at = LOCAL, .key = FOREIGN, .reason = MRSOFT_R_WRONG_PD,
	  LOC_PROT },
	{ .name = "lkey_read_sink_readonly", .opcode = IBV_WR_RDMA_READ,
	  .key_at = LOCAL, .key = READONLY,
	  .reason = MRSOFT_R_NO_LOCAL_WRITE, LOC_PROT },
	{ .name = "lkey_atomic_sink_readonly",
	  .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .key_at = LOCAL,
	  .key = READONLY, .reason = MRSOFT_R_NO_LOCAL_WRITE, LOC_PROT },
	{ .name = "lkey_outside", .opcode = IBV_WR_SEND, .key_at = LOCAL,
	  .off = SIZE - 7, .reason = MRSOFT_R_OUTSIDE, LOC_PROT },
	{ .name = "lkey_below", .opcode = IBV_WR_SEND, .key_at = LOCAL,
	  .off = -1, .reason = MRSOFT_R_OUTSIDE, LOC_PROT },
	{ .name = "lkey_unsignalled", .opcode = IBV_WR_SEND, .key_at = LOCAL,
	  .off = SIZE, .quiet = true, .reason = MRSOFT_R_OUTSIDE, LOC_PROT },

	{ .name = "recv_unknown", .opcode = IBV_WR_SEND, .key_at = RECV,
	  .key = UNKNOWN, .reason = MRSOFT_R_KEY_UNKNOWN, REM_OP },
	{ .name = "recv_stale", .opcode = IBV_WR_SEND, .key_at = RECV,
	  .key = STALE, .reason = -1, REM_OP },
	{ .name = "recv_other_pd", .opcode = IBV_WR_SEND, .key_at = RECV,
	  .key = FOREIGN, .reason = MRSOFT_R_WRONG_PD, REM_OP },
	{ .name = "recv_readonly", .opcode = IBV_WR_SEND, .key_at = RECV,
	  .key = READONLY, .reason = MRSOFT_R_NO_LOCAL_WRITE, REM_OP },
	{ .name = "recv_outside", .opcode = IBV_WR_SEND_WITH_IMM,
	  .key_at = RECV, .off = SIZE - 7, .reason = MRSOFT_R_OUTSIDE,
	  REM_OP },
	{ .name = "recv_too_short", .opcode = IBV_WR_SEND, .key_at = RECV,
	  .len = 65, .recv_len = 64, .reason = MRSOFT_R_RECV_TOO_SHORT,
	  .want = IBV_WC_REM_INV_REQ_ERR, .recv = IBV_WC_LOC_LEN_ERR },
	{ .name = "recv_much_too_short", .opcode = IBV_WR_SEND_WITH_IMM,
	  .key_at = RECV, .len = SIZE, .recv_len = 1,
	  .reason = MRSOFT_R_RECV_TOO_SHORT,
	  .want = IBV_WC_REM_INV_REQ_ERR, .recv = IBV_WC_LOC_LEN_ERR },

	{ .name = "rkey_unknown_write", .opcode = IBV_WR_RDMA_WRITE,
	  .key_at = REMOTE, .key = UNKNOWN,
	  .reason = MRSOFT_R_KEY_UNKNOWN, REM_ACC },
	{ .name = "rkey_unknown_read", .opcode = IBV_WR_RDMA_READ,
	  .key_at = REMOTE, .key = UNKNOWN,
	  .reason = MRSOFT_R_KEY_UNKNOWN, REM_ACC },
	{ .name = "rkey_unknown_atomic", .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
	  .key_at = REMOTE, .key = UNKNOWN,
	  .reason = MRSOFT_R_KEY_UNKNOWN, REM_ACC },
	{ .name = "rkey_unknown_write_imm",
	  .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .key_at = REMOTE,
	  .key = UNKNOWN, .reason = MRSOFT_R_KEY_UNKNOWN, REM_ACC },
	{ .name = "rkey_stale", .opcode = IBV_WR_RDMA_WRITE,
	  .key_at = REMOTE, .key = STALE, .reason = -1, REM_ACC },
	{ .name = "rkey_other_pd", .opcode = IBV_WR_RDMA_READ,
	  .key_at = REMOTE, .key = FOREIGN, .reason = MRSOFT_R_WRONG_PD,
	  REM_ACC },
	{ .name = "rkey_no_read", .opcode = IBV_WR_RDMA_READ,
	  .key_at = REMOTE, .key = PLAIN,
	  .reason = MRSOFT_R_NO_REMOTE_READ, REM_ACC },
	{ .name = "rkey_no_write", .opcode = IBV_WR_RDMA_WRITE,
	  .key_at = REMOTE, .key = READONLY,
	  .reason = MRSOFT_R_NO_REMOTE_WRITE, REM_ACC },
	{ .name = "rkey_no_write_imm", .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
	  .key_at = REMOTE, .key = PLAIN,
	  .reason = MRSOFT_R_NO_REMOTE_WRITE, REM_ACC },
	{ .name = "rkey_no_atomic", .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
	  .key_at = REMOTE, .key = READONLY,
	  .reason = MRSOFT_R_NO_REMOTE_ATOMIC, REM_ACC },
	{ .name = "rkey_one_past", .opcode = IBV_WR_RDMA_WRITE,
	  .key_at = REMOTE, .off = SIZE - 7, .reason = MRSOFT_R_OUTSIDE,
	  REM_ACC },
	{ .name = "rkey_one_below", .opcode = IBV_WR_RDMA_READ,
	  .key_at = REMOTE, .off = -1, .reason = MRSOFT_R_OUTSIDE, REM_ACC },
	{ .name = "rkey_quiet", .opcode = IBV_WR_RDMA_WRITE,
	  .key_at = REMOTE, .off = SIZE, .quiet = true,
	  .reason = MRSOFT_R_OUTSIDE, REM_ACC },

	{ .name = "atomic_misaligned", .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
	  .key_at = REMOTE, .off = 4, .reason = MRSOFT_R_MISALIGNED,
	  REM_INV },
	{ .name = "qp_forbids_write", .opcode = IBV_WR_RDMA_WRITE,
	  .key_at = REMOTE, .qp_access = IBV_ACCESS_REMOTE_WRITE,
	  .reason = MRSOFT_R_QP_ACCESS, REM_INV },
	{ .name = "qp_forbids_read", .opcode = IBV_WR_RDMA_READ,
	  .key_at = REMOTE, .qp_access = IBV_ACCESS_REMOTE_READ,
	  .reason = MRSOFT_R_QP_ACCESS, REM_INV },
	{ .name = "qp_forbids_atomic", .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
	  .key_at = REMOTE, .qp_access = IBV_ACCESS_REMOTE_ATOMIC,
	  .reason = MRSOFT_R_QP_ACCESS, REM_INV },
	{ .name = "qp_takes_no_read", .opcode = IBV_WR_RDMA_READ,
	  .key_at = REMOTE, .no_depth = true,
	  .reason = MRSOFT_R_READ_DEPTH, REM_INV },
};

/* ibv_post_send() of librxe would refuse it. */
static void post_misaligned(struct end *e, const struct op *op)
{
	ibv_wr_start(e->qpx);
	e->qpx->wr_id = op->wr_id;
	e->qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_fetch_add(e->qpx, op->rkey, op->raddr, 1);
	ibv_wr_set_sge(e->qpx, op->lkey, (uintptr_t)op->laddr, op->len);
	OK(ibv_wr_complete(e->qpx));
}

static void rc_fault(const void *arg)
{
	const struct fault *f = arg;
	struct conf conf = conf_of(RC);
	uint32_t len = f->len ? f->len : 8;
	uint32_t recv_len = f->recv_len ? f->recv_len : 64;
	struct buf *buf;
	struct world w;
	struct ibv_wc wc;
	uint32_t key;
	struct op op = { .opcode = f->opcode, .wr_id = 10, .len = len };
	struct op next = { .opcode = IBV_WR_SEND };
	int i;

	conf.access &= ~f->qp_access;
	conf.ex = f->reason == MRSOFT_R_MISALIGNED;
	if (f->no_depth)
		conf.dest_rd_atomic = 0;
	world_new(&w, &conf);
	memset(w.theirs.p, 0x55, SIZE);
	key = key_of(&w, f->key, &buf);
	op.quiet = f->quiet;
	op.laddr = w.mine.p;
	op.lkey = w.mine.mr->lkey;
	op.raddr = (uintptr_t)w.theirs.p;
	op.rkey = w.theirs.mr->rkey;
	switch (f->key_at) {
	case LOCAL:
		op.laddr = (f->off && !f->key ? w.mine.p : buf->p) + f->off;
		op.lkey = f->key ? key : w.mine.mr->lkey;
		break;
	case RECV:
		OK(post_recv(&w.b, 20, buf->p + f->off, recv_len, key));
		break;
	case REMOTE:
		op.raddr = (uintptr_t)buf->p + f->off;
		op.rkey = key;
		break;
	}
	if (f->key_at != RECV)
		OK(post_recv(&w.b, 20, w.plain.p, recv_len,
			     w.plain.mr->lkey));
	OK(post_recv(&w.b, 21, NULL, 0, 0));
	for (i = 0; i < 3; i++)
		OK(post_recv(&w.a, 30 + i, NULL, 0, 0));
	if (f->reason == MRSOFT_R_MISALIGNED)
		post_misaligned(&w.a, &op);
	else
		OK(post(&w.a, &op));
	for (i = 0; i < 3; i++) {
		next.wr_id = 11 + i;
		next.quiet = i == 1;
		/* after the error they are flushed, signalled or not */
		OK(post(&w.a, &next));
	}

	wc = NEXT_WC(w.a.scq);
	if (wc.wr_id != 10 || wc.status != f->want)
		t_fail(__FILE__, __LINE__,
		       "requester: wr_id %llu '%s', not 10 '%s'",
		       (unsigned long long)wc.wr_id,
		       ibv_wc_status_str(wc.status),
		       ibv_wc_status_str(f->want));
	if (f->reason >= 0 && wc.vendor_err != (uint32_t)f->reason &&
	    (f->key_at == LOCAL || wc.vendor_err != MRSOFT_R_PEER_REFUSED))
		t_fail(__FILE__, __LINE__, "requester: reason %u, not %d",
		       wc.vendor_err, f->reason);
	CHECK_EQ(wc.qp_num, w.a.qp->qp_num);
	for (i = 0; i < 3; i++)
		EXPECT_WC(w.a.scq, 11 + i, IBV_WC_WR_FLUSH_ERR);
	for (i = 0; i < 3; i++)
		EXPECT_WC(w.a.rcq, 30 + i, IBV_WC_WR_FLUSH_ERR);
	expect_state(&w.a, IBV_QPS_ERR);

	if (B_STAYS(f)) {
		EXPECT_NO_EVENT(w.c, 20);
		expect_state(&w.b, IBV_QPS_RTS);
		EXPECT_EMPTY(w.b.rcq, 5);
	} else {
		if (f->recv)
			EXPECT_WC_WHY(w.b.rcq, 20, f->recv, f->reason);
		else
			EXPECT_WC(w.b.rcq, 20, IBV_WC_WR_FLUSH_ERR);
		EXPECT_WC(w.b.rcq, 21, IBV_WC_WR_FLUSH_ERR);
		expect_state(&w.b, IBV_QPS_ERR);
		if (f->event)
			EXPECT_EVENT(w.c, f->event, w.b.qp);
		EXPECT_NO_EVENT(w.c, 20);
	}
	if (f->reason >= 0 && B_STAYS(f))
		expect_diary(w.a.qp->qp_num, w.b.qp->qp_num, f->reason);
	else if (f->reason >= 0)
		expect_diary(w.b.qp->qp_num, w.a.qp->qp_num, f->reason);
	/* once each */
	EXPECT_EMPTY(w.a.scq, 5);
	EXPECT_EMPTY(w.a.rcq, 5);
	EXPECT_EMPTY(w.b.scq, 5);
	EXPECT_EMPTY(w.b.rcq, 5);
	CHECK_EQ(only(w.theirs.p, SIZE, 0x55), -1);

	/* and the QPs can be used again */
	pair_again(&w.a, &w.b);
	OK(post_recv(&w.b, 40, w.plain.p, 64, w.plain.mr->lkey));
	DO(&w.a, .opcode = IBV_WR_SEND, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = 64);
	EXPECT_WC(w.b.rcq, 40, IBV_WC_SUCCESS);
	world_free(&w);
}

/* When both are wrong the local one is told, and the peer never knew. */
static void local_first(const void *arg)
{
	struct conf conf = conf_of(RC);
	struct world w;

	(void)arg;
	world_new(&w, &conf);
	FAIL_WITH(&w.a, IBV_WC_LOC_PROT_ERR, -1, .opcode = IBV_WR_RDMA_WRITE,
		  .laddr = w.mine.p, .len = 8, .lkey = 0x12300,
		  .raddr = 0, .rkey = 0x45600);
	EXPECT_NO_EVENT(w.c, 20);
	expect_state(&w.b, IBV_QPS_RTS);
	world_free(&w);
}

/* --- UC and UD ------------------------------------------------------------------ */

static void still_works(struct world *w)
{
	uint32_t grh = w->a.conf.type == UD ? 40 : 0;

	OK(post_recv(&w->b, 50, w->plain.p, 100 + grh, w->plain.mr->lkey));
	fill(w->mine.p, 100, 5);
	DO(&w->a, .opcode = IBV_WR_SEND, .laddr = w->mine.p,
	   .lkey = w->mine.mr->lkey, .len = 100);
	EXPECT_WC(w->b.rcq, 50, IBV_WC_SUCCESS);
	CHECK_EQ(filled(w->plain.p + grh, 100, 5), -1);
}

/* The sender of UC hears nothing of what the receiver drops. */
static void uc_drops(const void *arg)
{
	struct conf conf = conf_of(UC);
	struct world w;

	(void)arg;
	world_new(&w, &conf);
	memset(w.theirs.p, 0x55, SIZE);
	/* no receive */
	DO(&w.a, .opcode = IBV_WR_SEND, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = 100);
	EXPECT_EMPTY(w.b.rcq, 5);
	still_works(&w);
	/* a bad rkey */
	DO(&w.a, .opcode = IBV_WR_RDMA_WRITE, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = 100, .rkey = 0x45600,
	   .raddr = (uintptr_t)w.theirs.p);
	DO(&w.a, .opcode = IBV_WR_RDMA_WRITE, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = 100, .rkey = w.theirs.mr->rkey,
	   .raddr = (uintptr_t)w.theirs.p + SIZE - 99);
	CHECK_EQ(only(w.theirs.p, SIZE, 0x55), -1);
	expect_state(&w.b, IBV_QPS_RTS);
	EXPECT_NO_EVENT(w.c, 20);
	still_works(&w);
	world_free(&w);
}

static void uc_recv_too_short(const void *arg)
{
	struct conf conf = conf_of(UC);
	struct world w;

	(void)arg;
	world_new(&w, &conf);
	OK(post_recv(&w.b, 1, w.plain.p, 99, w.plain.mr->lkey));
	DO(&w.a, .opcode = IBV_WR_SEND, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = 100);
	expect_state(&w.a, IBV_QPS_RTS);
	expect_state(&w.b, IBV_QPS_RTS);
	/* the receive waits for one that fits */
	DO(&w.a, .opcode = IBV_WR_SEND, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = 99);
	EXPECT_WC(w.b.rcq, 1, IBV_WC_SUCCESS);
	still_works(&w);
	world_free(&w);
}

/* A receive that is wrong itself ends the receiving QP, the sender is not told. */
static void recv_lkey(const void *arg)
{
	const enum ibv_qp_type *type = arg;
	struct conf conf = conf_of(*type);
	struct world w;

	world_new(&w, &conf);
	OK(post_recv(&w.b, 1, w.foreign.p, 200, w.foreign.mr->lkey));
	OK(post_recv(&w.b, 2, w.plain.p, 200, w.plain.mr->lkey));
	DO(&w.a, .opcode = IBV_WR_SEND, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = 100);
	EXPECT_WC_WHY(w.b.rcq, 1, IBV_WC_LOC_PROT_ERR, MRSOFT_R_WRONG_PD);
	EXPECT_WC(w.b.rcq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_state(&w.b, IBV_QPS_ERR);
	expect_state(&w.a, IBV_QPS_RTS);
	DO(&w.a, .opcode = IBV_WR_SEND, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = 100);
	world_free(&w);
}

/* SQE: the send queue is flushed, receiving goes on, RTS brings it back. */
static void sqe(const void *arg)
{
	const enum ibv_qp_type *type = arg;
	struct conf conf = conf_of(*type);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE,
	};
	struct op bad = { .opcode = IBV_WR_SEND, .wr_id = 1, .len = 8,
			  .lkey = 0x12300, .quiet = true };
	struct op next = { .opcode = IBV_WR_SEND, .wr_id = 2, .len = 8 };
	struct world w;
	int round;

	world_new(&w, &conf);
	next.laddr = w.mine.p;
	next.lkey = w.mine.mr->lkey;
	for (round = 0; round < 3; round++) {
		OK(post(&w.a, &bad));
		OK(post(&w.a, &next));
		OK(post(&w.a, &next));
		EXPECT_WC(w.a.scq, 1, IBV_WC_LOC_PROT_ERR);
		EXPECT_WC(w.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
		EXPECT_WC(w.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
		EXPECT_EMPTY(w.a.scq, 5);
		expect_state(&w.a, IBV_QPS_SQE);
		/* receiving works */
		OK(post_recv(&w.a, 5, w.plain.p, 200, w.plain.mr->lkey));
		DO(&w.b, .opcode = IBV_WR_SEND, .laddr = w.mine.p,
		   .lkey = w.mine.mr->lkey, .len = 50);
		EXPECT_WC(w.a.rcq, 5, IBV_WC_SUCCESS);
		/* sending is flushed */
		OK(post(&w.a, &next));
		EXPECT_WC(w.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
		OK(ibv_modify_qp(w.a.qp, &attr,
				 IBV_QP_STATE | IBV_QP_CUR_STATE));
		expect_state(&w.a, IBV_QPS_RTS);
		still_works(&w);
	}
	world_free(&w);
}

/* A datagram that is sent has not yet been dropped, on a wire. */
static void on_its_way(void)
{
	if (t_wire())
		t_sleep(50 * t_slow());
}

static void ud_drops(const void *arg)
{
	struct conf conf = conf_of(UD);
	struct ibv_qp_attr attr = { .qkey = 0x999 };
	struct world w;

	(void)arg;
	world_new(&w, &conf);
	/* no receive; then another QKey; then nobody there */
	DO(&w.a, .opcode = IBV_WR_SEND, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = 100);
	on_its_way();
	OK(post_recv(&w.b, 1, w.plain.p, 140, w.plain.mr->lkey));
	OK(ibv_modify_qp(w.b.qp, &attr, IBV_QP_QKEY));
	DO(&w.a, .opcode = IBV_WR_SEND, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = 100);
	on_its_way();
	attr.qkey = UD_QKEY;
	OK(ibv_modify_qp(w.b.qp, &attr, IBV_QP_QKEY));
	w.a.peer_qpn = 0x777777;
	DO(&w.a, .opcode = IBV_WR_SEND, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = 100);
	w.a.peer_qpn = w.b.qp->qp_num;
	EXPECT_EMPTY(w.b.rcq, 20);
	expect_state(&w.b, IBV_QPS_RTS);
	/* too long for the receive: 40 bytes of header count */
	DO(&w.a, .opcode = IBV_WR_SEND, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = 101);
	expect_state(&w.b, IBV_QPS_RTS);
	EXPECT_EMPTY(w.b.rcq, 5);
	DO(&w.a, .opcode = IBV_WR_SEND, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = 100);
	EXPECT_WC(w.b.rcq, 1, IBV_WC_SUCCESS);
	still_works(&w);
	world_free(&w);
}

static void ud_own_mistakes(const void *arg)
{
	struct conf conf = conf_of(UD);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	uint32_t mtu;
	struct world w;

	(void)arg;
	world_new(&w, &conf);
	mtu = 128u << w.c->mtu;
	FAIL_WITH(&w.a, IBV_WC_LOC_LEN_ERR, MRSOFT_R_MSG_TOO_LONG,
		  .opcode = IBV_WR_SEND, .laddr = w.mine.p,
		  .lkey = w.mine.mr->lkey, .len = mtu + 1);
	expect_state(&w.a, IBV_QPS_SQE);
	OK(ibv_modify_qp(w.a.qp, &attr, IBV_QP_STATE));
	OK(post_recv(&w.b, 3, w.plain.p, mtu + 40, w.plain.mr->lkey));
	fill(w.mine.p, mtu, 3);
	DO(&w.a, .opcode = IBV_WR_SEND, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = mtu);
	EXPECT_WC(w.b.rcq, 3, IBV_WC_SUCCESS);
	CHECK_EQ(filled(w.plain.p + 40, mtu, 3), -1);
	still_works(&w);
	world_free(&w);
}

/* --- waiting and giving up ---------------------------------------------------------- */

static void rnr_gives_up(const void *arg)
{
	const unsigned int *retries = arg;
	struct conf conf = conf_of(RC);
	uint64_t start, took;
	struct world w;

	conf.rnr_retry = *retries;
	conf.min_rnr = 24;	/* 40.96 ms */
	world_new(&w, &conf);
	start = t_now();
	FAIL_WITH(&w.a, IBV_WC_RNR_RETRY_EXC_ERR, MRSOFT_R_RNR_EXCEEDED,
		  .opcode = IBV_WR_SEND, .laddr = w.mine.p,
		  .lkey = w.mine.mr->lkey, .len = 8);
	took = t_now() - start;
	t_note("%u retries of 41 ms: %llu ms", *retries,
	       (unsigned long long)took);
	CHECK(took + 2 >= *retries * 41);
	CHECK(took < (*retries + 1) * 41 + 2000 * t_slow());
	expect_state(&w.a, IBV_QPS_ERR);
	expect_state(&w.b, IBV_QPS_RTS);
	EXPECT_NO_EVENT(w.c, 20);
	world_free(&w);
}

static void rnr_waits(const void *arg)
{
	const unsigned int *retries = arg;
	struct conf conf = conf_of(RC);
	struct op op = { .opcode = IBV_WR_SEND, .wr_id = 6, .len = 8 };
	struct world w;

	conf.rnr_retry = *retries;
	conf.min_rnr = *retries == 7 ? 20 : 31;	/* 10 ms, 491 ms */
	world_new(&w, &conf);
	op.laddr = w.mine.p;
	op.lkey = w.mine.mr->lkey;
	OK(post(&w.a, &op));
	/* 7 is for ever; else it is still in its first wait */
	EXPECT_EMPTY(w.a.scq, *retries == 7 ? 500 : 50);
	OK(post_recv(&w.b, 7, w.plain.p, 8, w.plain.mr->lkey));
	EXPECT_WC(w.a.scq, 6, IBV_WC_SUCCESS);
	EXPECT_WC(w.b.rcq, 7, IBV_WC_SUCCESS);
	EXPECT_EMPTY(w.b.rcq, 5);
	world_free(&w);
}

/* A wait does not hold up what ends the QP. */
static void rnr_ends(const void *arg)
{
	struct conf conf = conf_of(RC);
	struct op op = { .opcode = IBV_WR_SEND, .wr_id = 6, .len = 8 };
	struct world w;
	uint64_t start;

	(void)arg;
	conf.rnr_retry = 7;
	conf.min_rnr = 0;	/* 655 ms */
	world_new(&w, &conf);
	op.laddr = w.mine.p;
	op.lkey = w.mine.mr->lkey;
	OK(post(&w.a, &op));
	start = t_now();
	OK(end_to(&w.a, IBV_QPS_ERR));
	EXPECT_WC(w.a.scq, 6, IBV_WC_WR_FLUSH_ERR);
	CHECK(t_now() - start < 300 * t_slow());
	pair_again(&w.a, &w.b);
	OK(post(&w.a, &op));
	start = t_now();
	OK(ibv_destroy_qp(w.a.qp));
	CHECK(t_now() - start < 300 * t_slow());
	w.a.qp = NULL;
	world_free(&w);
}

enum nobody { WRONG_QPN, WRONG_PSN, PEER_INIT, PEER_RESET, PEER_ERR,
	      PEER_GONE, PEER_ELSEWHERE, NO_SUCH_GID, PEER_UC };

static void nobody_answers(const void *arg)
{
	const enum nobody *how = arg;
	struct conf conf = conf_of(RC), uc = conf_of(UC);
	struct end a, b, other;
	struct ctx *c = ctx_open(NULL);
	struct buf buf = buf_new(c->pd, 4096, MR_ALL);
	struct addr at_a, at_b;
	bool b_lives = true;
	int i;

	a = end_new(c, &conf);
	b = end_new(c, *how == PEER_UC ? &uc : &conf);
	other = end_new(c, &conf);
	at_a = end_addr(&a);
	at_b = end_addr(&b);
	switch (*how) {
	case WRONG_QPN:
		at_b.qpn ^= 0x400000;
		break;
	case WRONG_PSN:
		/* ours are ahead: one that is behind is a duplicate */
		at_a.psn--;
		break;
	case PEER_ELSEWHERE:
		at_a.qpn = other.qp->qp_num;
		break;
	case NO_SUCH_GID:
		/* the next address of the same subnet */
		at_b.gid.raw[15] ^= 0x40;
		break;
	default:
		break;
	}
	OK(end_init(&a));
	OK(end_rtr(&a, &at_b));
	OK(end_rts(&a));
	if (*how != PEER_RESET)
		OK(end_init(&b));
	if (*how != PEER_INIT && *how != PEER_RESET) {
		OK(end_rtr(&b, &at_a));
		OK(end_rts(&b));
	}
	if (*how == PEER_ERR)
		OK(end_to(&b, IBV_QPS_ERR));
	if (*how == PEER_GONE) {
		end_free(&b);
		b_lives = false;
	}
	for (i = 0; i < 2; i++) {
		struct op op = {
			.opcode = i ? IBV_WR_RDMA_READ : IBV_WR_SEND,
			.laddr = buf.p, .len = 8, .lkey = buf.mr->lkey,
			.raddr = (uintptr_t)buf.p, .rkey = buf.mr->rkey,
			.wr_id = i,
		};

		OK(post(&a, &op));
		EXPECT_WC(a.scq, i, IBV_WC_RETRY_EXC_ERR);
		expect_state(&a, IBV_QPS_ERR);
		if (i)
			break;
		OK(end_to(&a, IBV_QPS_RESET));
		OK(end_init(&a));
		OK(end_rtr(&a, &at_b));
		OK(end_rts(&a));
	}
	if (b_lives) {
		expect_state(&b, *how == PEER_RESET ? IBV_QPS_RESET :
				 *how == PEER_INIT ? IBV_QPS_INIT :
				 *how == PEER_ERR ? IBV_QPS_ERR : IBV_QPS_RTS);
		end_free(&b);
	}
	end_free(&other);
	end_free(&a);
	buf_free(&buf);
	ctx_close(c);
}

/* The retries are counted and the time between them is the ack timeout. */
static void retry_time(const void *arg)
{
	struct conf conf = conf_of(RC);
	uint64_t start, took;
	struct world w;

	(void)arg;
	conf.timeout = 14;	/* 67 ms */
	conf.retry_cnt = 4;
	world_new(&w, &conf);
	OK(end_to(&w.b, IBV_QPS_RESET));
	start = t_now();
	FAIL_WITH(&w.a, IBV_WC_RETRY_EXC_ERR, -1, .opcode = IBV_WR_SEND,
		  .laddr = w.mine.p, .lkey = w.mine.mr->lkey, .len = 8);
	took = t_now() - start;
	t_note("4 retries of 67 ms: %llu ms", (unsigned long long)took);
	CHECK(took + 2 >= 4 * 67);
	CHECK(took < 4 * 67 * 5 + 2000 * t_slow());
	world_free(&w);
}

/* The peer comes up in the middle of the retries: nothing is lost. */
static void peer_comes_late(const void *arg)
{
	struct conf conf = conf_of(RC);
	struct op op = { .opcode = IBV_WR_SEND, .wr_id = 6, .len = 8 };
	struct world w;
	struct addr at_a;

	(void)arg;
	conf.timeout = 17;	/* 0.5 s */
	conf.retry_cnt = 7;
	world_new(&w, &conf);
	at_a = end_addr(&w.a);
	OK(end_to(&w.b, IBV_QPS_RESET));
	OK(end_init(&w.b));
	op.laddr = w.mine.p;
	op.lkey = w.mine.mr->lkey;
	OK(post_recv(&w.b, 7, w.plain.p, 8, w.plain.mr->lkey));
	OK(post(&w.a, &op));
	EXPECT_EMPTY(w.a.scq, 20);
	OK(end_rtr(&w.b, &at_a));
	EXPECT_WC(w.b.rcq, 7, IBV_WC_SUCCESS);
	EXPECT_WC(w.a.scq, 6, IBV_WC_SUCCESS);
	EXPECT_EVENT(w.c, IBV_EVENT_COMM_EST, w.b.qp);
	world_free(&w);
}

/* UC and UD to nowhere: sent is done. */
static void nowhere(const void *arg)
{
	const enum ibv_qp_type *type = arg;
	struct conf conf = conf_of(*type);
	struct ctx *c = ctx_open(NULL);
	struct end a = end_new(c, &conf);
	struct buf buf = buf_new(c->pd, 4096, MR_ALL);
	struct addr peer = end_addr(&a);

	peer.gid.raw[15] ^= 0x40;
	end_connect(&a, &peer);
	DO(&a, .opcode = IBV_WR_SEND, .laddr = buf.p, .len = 8,
	   .lkey = buf.mr->lkey);
	expect_state(&a, IBV_QPS_RTS);
	end_free(&a);
	buf_free(&buf);
	ctx_close(c);
}

/* --- flush --------------------------------------------------------------------------- */

static void flush_all(const void *arg)
{
	const enum ibv_qp_type *type = arg;
	struct conf conf = conf_of(*type);
	unsigned int i, n = 60;
	struct world w;

	conf.rnr_retry = 7;
	world_new(&w, &conf);
	for (i = 0; i < n; i++)
		OK(post_recv(&w.a, 100 + i, w.plain.p, 8, w.plain.mr->lkey));
	/* the first waits for a receive, RC; UC and UD: they are gone at once */
	for (i = 0; i < n && *type == RC; i++) {
		struct op op = { .opcode = IBV_WR_SEND, .wr_id = i,
				 .quiet = i % 2 };

		OK(post(&w.a, &op));
	}
	OK(end_to(&w.a, IBV_QPS_ERR));
	for (i = 0; i < n && *type == RC; i++)
		EXPECT_WC(w.a.scq, i, IBV_WC_WR_FLUSH_ERR);
	for (i = 0; i < n; i++)
		EXPECT_WC(w.a.rcq, 100 + i, IBV_WC_WR_FLUSH_ERR);
	EXPECT_EMPTY(w.a.scq, 5);
	EXPECT_EMPTY(w.a.rcq, 5);
	/* what is posted later is flushed too, receives without any doorbell */
	for (i = 0; i < 3; i++) {
		OK(post_recv(&w.a, 200 + i, NULL, 0, 0));
		EXPECT_WC(w.a.rcq, 200 + i, IBV_WC_WR_FLUSH_ERR);
	}
	for (i = 0; i < 3; i++) {
		struct op op = { .opcode = IBV_WR_SEND, .wr_id = 300 + i };

		OK(post_recv(&w.a, 400 + i, NULL, 0, 0));
		OK(post(&w.a, &op));
		EXPECT_WC(w.a.scq, 300 + i, IBV_WC_WR_FLUSH_ERR);
		EXPECT_WC(w.a.rcq, 400 + i, IBV_WC_WR_FLUSH_ERR);
	}
	/* the state of the peer is its own */
	expect_state(&w.b, IBV_QPS_RTS);
	world_free(&w);
}

static void flush_srq(const void *arg)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = 32, .max_sge = 1 },
	};
	struct conf conf = conf_of(RC);
	struct ctx *c = ctx_open(NULL);
	struct ibv_srq *srq = ibv_create_srq(c->pd, &init);
	struct buf buf = buf_new(c->pd, 4096, MR_ALL);
	struct end a, b, x, y;
	struct ibv_wc wc;
	int i;

	(void)arg;
	CHECK(srq);
	conf.srq = srq;
	pair_new(c, &conf, &a, &b);
	pair_new(c, &conf, &x, &y);
	for (i = 0; i < 4; i++)
		OK(post_srq(srq, i, buf.p, 64, buf.mr->lkey));
	OK(end_to(&b, IBV_QPS_ERR));
	EXPECT_EVENT(c, IBV_EVENT_QP_LAST_WQE_REACHED, b.qp);
	/* nothing of the SRQ is lost: the other QP gets all of it */
	for (i = 0; i < 4; i++) {
		DO(&x, .opcode = IBV_WR_SEND, .laddr = buf.p + 1024,
		   .lkey = buf.mr->lkey, .len = 64);
		wc = NEXT_WC(y.rcq);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.wr_id, i);
	}
	EXPECT_EMPTY(b.rcq, 5);
	EXPECT_NO_EVENT(c, 20);
	pair_free(&a, &b);
	pair_free(&x, &y);
	OK(ibv_destroy_srq(srq));
	buf_free(&buf);
	ctx_close(c);
}

/* Messages race with the end: received well equals sent well, each once. */
static void once_each(const void *arg)
{
	struct conf conf = conf_of(RC);
	unsigned int round, i, n = 50;
	struct world w;

	(void)arg;
	world_new(&w, &conf);
	for (round = 0; round < t_rounds(60); round++) {
		unsigned int sent = 0, got = 0, ends = 0;
		struct ibv_wc wc;

		for (i = 0; i < n; i++)
			OK(post_recv(&w.b, i, w.plain.p, 64,
				     w.plain.mr->lkey));
		for (i = 0; i < n; i++) {
			struct op op = {
				.opcode = IBV_WR_SEND, .wr_id = i, .len = 64,
				.laddr = w.mine.p, .lkey = w.mine.mr->lkey,
			};

			if (i == round % n)
				OK(end_to(round & 1 ? &w.a : &w.b,
					  IBV_QPS_ERR));
			OK(post(&w.a, &op));
		}
		if (!(round & 1) && round % n == n)
			continue;
		for (i = 0; i < n; i++) {
			wc = NEXT_WC(w.a.scq);
			CHECK_EQ(wc.wr_id, i);
			sent += wc.status == IBV_WC_SUCCESS;
		}
		OK(end_to(&w.b, IBV_QPS_ERR));
		for (i = 0; i < n; i++) {
			wc = NEXT_WC(w.b.rcq);
			CHECK_EQ(wc.wr_id, i);
			if (wc.status == IBV_WC_SUCCESS) {
				CHECK_EQ(ends, 0);
				got++;
			} else {
				CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
				ends++;
			}
		}
		/* on a wire the answer to what arrived may not come any more */
		if (t_wire())
			CHECK(sent <= got);
		else
			CHECK_EQ(sent, got);
		EXPECT_EMPTY(w.a.scq, 0);
		EXPECT_EMPTY(w.b.rcq, 0);
		pair_again(&w.a, &w.b);
	}
	world_free(&w);
}

/* --- states ---------------------------------------------------------------------------- */

static void sqd(const void *arg)
{
	const enum ibv_qp_type *type = arg;
	struct conf conf = conf_of(*type);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1,
	};
	struct ibv_qp_init_attr init;
	struct op op = { .opcode = IBV_WR_SEND, .wr_id = 1, .len = 64 };
	uint32_t grh = *type == UD ? 40 : 0;
	struct world w;
	int i;

	world_new(&w, &conf);
	op.laddr = w.mine.p;
	op.lkey = w.mine.mr->lkey;
	for (i = 0; i < 3; i++) {
		OK(post_recv(&w.b, 2, w.plain.p, 64 + grh, w.plain.mr->lkey));
		OK(post(&w.a, &op));
		EXPECT_WC(w.b.rcq, 2, IBV_WC_SUCCESS);
		OK(ibv_modify_qp(w.a.qp, &attr, IBV_QP_STATE |
				 IBV_QP_EN_SQD_ASYNC_NOTIFY));
		EXPECT_EVENT(w.c, IBV_EVENT_SQ_DRAINED, w.a.qp);
		OK(ibv_query_qp(w.a.qp, &attr, IBV_QP_STATE, &init));
		CHECK_EQ(attr.qp_state, IBV_QPS_SQD);
		CHECK_EQ(attr.sq_draining, 0);
		EXPECT_WC(w.a.scq, 1, IBV_WC_SUCCESS);
		/* what is posted now waits */
		OK(post_recv(&w.b, 3, w.plain.p, 64 + grh, w.plain.mr->lkey));
		OK(post(&w.a, &op));
		EXPECT_EMPTY(w.a.scq, 30);
		/* receiving does not */
		OK(post_recv(&w.a, 4, w.plain.p, 64 + grh, w.plain.mr->lkey));
		DO(&w.b, .opcode = IBV_WR_SEND, .laddr = w.mine.p,
		   .lkey = w.mine.mr->lkey, .len = 8);
		EXPECT_WC(w.a.rcq, 4, IBV_WC_SUCCESS);
		OK(end_to(&w.a, IBV_QPS_RTS));
		EXPECT_WC(w.a.scq, 1, IBV_WC_SUCCESS);
		EXPECT_WC(w.b.rcq, 3, IBV_WC_SUCCESS);
		attr.qp_state = IBV_QPS_SQD;
		attr.en_sqd_async_notify = 1;
	}
	/* not asked for: no event */
	attr.en_sqd_async_notify = 0;
	OK(ibv_modify_qp(w.a.qp, &attr,
			 IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	EXPECT_NO_EVENT(w.c, 50);
	OK(end_to(&w.a, IBV_QPS_ERR));
	world_free(&w);
}

/* A message that waits for its receiver is finished before SQD is reached. */
static void sqd_drains(const void *arg)
{
	struct conf conf = conf_of(RC);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1,
	};
	struct op op = { .opcode = IBV_WR_SEND, .wr_id = 1 };
	struct ibv_qp_init_attr init;
	struct world w;

	(void)arg;
	conf.rnr_retry = 7;
	conf.min_rnr = 14;
	world_new(&w, &conf);
	OK(post(&w.a, &op));
	op.wr_id = 2;
	OK(post(&w.a, &op));
	OK(ibv_modify_qp(w.a.qp, &attr,
			 IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	EXPECT_NO_EVENT(w.c, 50);
	OK(ibv_query_qp(w.a.qp, &attr, IBV_QP_STATE, &init));
	CHECK_EQ(attr.qp_state, IBV_QPS_SQD);
	CHECK_EQ(attr.sq_draining, 1);
	OK(post_recv(&w.b, 3, NULL, 0, 0));
	OK(post_recv(&w.b, 4, NULL, 0, 0));
	EXPECT_EVENT(w.c, IBV_EVENT_SQ_DRAINED, w.a.qp);
	EXPECT_WC(w.a.scq, 1, IBV_WC_SUCCESS);
	OK(end_to(&w.a, IBV_QPS_RTS));
	EXPECT_WC(w.a.scq, 2, IBV_WC_SUCCESS);
	world_free(&w);
}

static void query_says(const void *arg)
{
	struct conf conf = conf_of(RC);
	struct ctx *c = ctx_open(NULL);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct end a, b;
	struct addr at_b;

	(void)arg;
	conf.timeout = 9;
	conf.retry_cnt = 5;
	conf.rnr_retry = 6;
	conf.min_rnr = 13;
	conf.rd_atomic = 7;
	conf.dest_rd_atomic = 11;
	a = end_new(c, &conf);
	b = end_new(c, &conf);
	at_b = end_addr(&b);
	at_b.psn = 0xabcdef;
	CHECK_EQ(end_state(&a), IBV_QPS_RESET);
	OK(end_init(&a));
	OK(ibv_query_qp(a.qp, &attr, 0, &init));
	CHECK_EQ(attr.qp_state, IBV_QPS_INIT);
	CHECK_EQ(attr.port_num, 1);
	CHECK_EQ(attr.qp_access_flags, conf.access);
	OK(end_rtr(&a, &at_b));
	OK(ibv_query_qp(a.qp, &attr, 0, &init));
	CHECK_EQ(attr.qp_state, IBV_QPS_RTR);
	CHECK_EQ(attr.dest_qp_num, b.qp->qp_num);
	CHECK_EQ(attr.rq_psn, 0xabcdef);
	CHECK_EQ(attr.path_mtu, c->mtu);
	CHECK_EQ(attr.min_rnr_timer, 13);
	CHECK_EQ(attr.max_dest_rd_atomic, 11);
	CHECK_EQ(attr.ah_attr.is_global, 1);
	CHECK_EQ(memcmp(&attr.ah_attr.grh.dgid, &c->gid, 16), 0);
	CHECK_EQ(attr.ah_attr.grh.sgid_index, c->gid_index);
	CHECK_EQ(attr.ah_attr.grh.hop_limit, 64);
	OK(end_rts(&a));
	OK(ibv_query_qp(a.qp, &attr, 0, &init));
	CHECK_EQ(attr.qp_state, IBV_QPS_RTS);
	CHECK_EQ(attr.sq_psn, conf.psn);
	CHECK_EQ(attr.timeout, 9);
	CHECK_EQ(attr.retry_cnt, 5);
	CHECK_EQ(attr.rnr_retry, 6);
	CHECK_EQ(attr.max_rd_atomic, 7);
	CHECK(attr.cap.max_send_wr >= conf.cap.max_send_wr);
	CHECK(attr.cap.max_send_sge >= conf.cap.max_send_sge);
	CHECK(attr.cap.max_recv_wr >= conf.cap.max_recv_wr);
	CHECK(attr.cap.max_inline_data >= conf.cap.max_inline_data);
	CHECK_EQ(init.qp_type, RC);
	attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
	attr.min_rnr_timer = 3;
	OK(ibv_modify_qp(a.qp, &attr,
			 IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER));
	OK(ibv_query_qp(a.qp, &attr, 0, &init));
	CHECK_EQ(attr.qp_access_flags, IBV_ACCESS_REMOTE_READ);
	CHECK_EQ(attr.min_rnr_timer, 3);
	CHECK_EQ(attr.qp_state, IBV_QPS_RTS);
	pair_free(&a, &b);
	ctx_close(c);
}

/* The table of IBA 10.3, whatever it does not allow. */
static void bad_modifies(const void *arg)
{
	struct conf conf = conf_of(RC);
	struct ctx *c = ctx_open(NULL);
	struct ibv_qp_attr attr = {};
	struct end a, b;
	struct addr peer;

	(void)arg;
#define BAD(m) do { \
	int t_e = ibv_modify_qp(a.qp, &attr, m); \
	if (t_e != EINVAL && t_e != EOPNOTSUPP) \
		t_fail(__FILE__, __LINE__, "modify gave %d", t_e); \
} while (0)
	a = end_new(c, &conf);
	b = end_new(c, &conf);
	peer = end_addr(&b);
	attr.qp_state = IBV_QPS_RTR;
	BAD(IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	BAD(IBV_QP_STATE);
	attr.qp_state = IBV_QPS_INIT;
	BAD(IBV_QP_STATE);
	attr.port_num = 2;
	BAD(IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
	    IBV_QP_ACCESS_FLAGS);
	attr.port_num = 1;
	attr.pkey_index = 5;
	BAD(IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
	    IBV_QP_ACCESS_FLAGS);
	attr.pkey_index = 0;
	BAD(IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY);
	CHECK_EQ(end_state(&a), IBV_QPS_RESET);
	OK(end_init(&a));
	attr.qp_state = IBV_QPS_RTS;
	BAD(IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTR;
	BAD(IBV_QP_STATE);
	CHECK_EQ(end_state(&a), IBV_QPS_INIT);
	a.conf.dest_rd_atomic = 255;
	CHECK_EQ(end_rtr(&a, &peer), EINVAL);
	a.conf.dest_rd_atomic = 1;
	a.conf.min_rnr = 77;
	CHECK_EQ(end_rtr(&a, &peer), EINVAL);
	a.conf.min_rnr = 1;
	CHECK_EQ(end_state(&a), IBV_QPS_INIT);
	OK(end_rtr(&a, &peer));
	attr.qp_state = IBV_QPS_INIT;
	BAD(IBV_QP_STATE);
	attr.qp_state = IBV_QPS_SQD;
	BAD(IBV_QP_STATE);
	a.conf.timeout = 32;
	CHECK_EQ(end_rts(&a), EINVAL);
	a.conf.timeout = 9;
	a.conf.retry_cnt = 8;
	CHECK_EQ(end_rts(&a), EINVAL);
	a.conf.retry_cnt = 7;
	CHECK_EQ(end_state(&a), IBV_QPS_RTR);
	OK(end_rts(&a));
	attr.qp_state = IBV_QPS_RTR;
	BAD(IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	attr.cur_qp_state = IBV_QPS_SQD;
	BAD(IBV_QP_STATE | IBV_QP_CUR_STATE);
	OK(end_to(&a, IBV_QPS_ERR));
	attr.qp_state = IBV_QPS_RTS;
	BAD(IBV_QP_STATE);
	OK(end_to(&a, IBV_QPS_ERR));
	OK(end_to(&a, IBV_QPS_RESET));
	OK(end_to(&a, IBV_QPS_RESET));
	pair_free(&a, &b);
	ctx_close(c);
}

/* RESET drops what was posted, without a word, and the QP starts anew. */
static void reset_reuses(const void *arg)
{
	const enum ibv_qp_type *type = arg;
	struct conf conf = conf_of(*type);
	uint32_t grh = *type == UD ? 40 : 0;
	struct world w;
	unsigned int i, j;

	conf.rnr_retry = 7;
	world_new(&w, &conf);
	for (i = 0; i < t_rounds(40); i++) {
		for (j = 0; j < i % 50; j++)
			OK(post_recv(&w.b, 1, w.plain.p, 64,
				     w.plain.mr->lkey));
		for (j = 0; j < i % 30 && *type == RC; j++) {
			struct op op = { .opcode = IBV_WR_SEND, .quiet = true };

			OK(post(&w.a, &op));
			OK(post_recv(&w.a, 1, NULL, 0, 0));
		}
		pair_again(&w.a, &w.b);
		EXPECT_EMPTY(w.a.scq, 0);
		EXPECT_EMPTY(w.b.rcq, 0);
		OK(post_recv(&w.b, 2, w.plain.p, 64 + grh, w.plain.mr->lkey));
		DO(&w.a, .opcode = IBV_WR_SEND, .laddr = w.mine.p, .len = 64,
		   .lkey = w.mine.mr->lkey);
		EXPECT_WC(w.b.rcq, 2, IBV_WC_SUCCESS);
	}
	world_free(&w);
}

/* RTR receives; sends that were posted before RTS are refused or wait, IBA 10.3. */
static void rtr_receives(const void *arg)
{
	struct conf conf = conf_of(RC);
	struct ctx *c = ctx_open(NULL);
	struct buf buf = buf_new(c->pd, 4096, MR_ALL);
	struct addr at_a, at_b;
	struct end a, b;

	(void)arg;
	a = end_new(c, &conf);
	b = end_new(c, &conf);
	at_a = end_addr(&a);
	at_b = end_addr(&b);
	OK(end_init(&b));
	/* receives may be posted from INIT on */
	OK(post_recv(&b, 1, buf.p, 64, buf.mr->lkey));
	OK(post_recv(&b, 2, buf.p, 64, buf.mr->lkey));
	OK(end_rtr(&b, &at_a));
	end_connect(&a, &at_b);
	DO(&a, .opcode = IBV_WR_SEND, .laddr = buf.p + 1024, .len = 64,
	   .lkey = buf.mr->lkey);
	EXPECT_WC(b.rcq, 1, IBV_WC_SUCCESS);
	EXPECT_EVENT(c, IBV_EVENT_COMM_EST, b.qp);
	DO(&a, .opcode = IBV_WR_SEND, .laddr = buf.p + 1024, .len = 64,
	   .lkey = buf.mr->lkey);
	EXPECT_WC(b.rcq, 2, IBV_WC_SUCCESS);
	EXPECT_NO_EVENT(c, 20);
	expect_state(&b, IBV_QPS_RTR);
	pair_free(&a, &b);
	buf_free(&buf);
	ctx_close(c);
}

/* Attributes that may change in RTS do, while traffic runs. */
struct hammer {
	struct end *e;
	volatile bool stop;
};

static void *hammer(void *arg)
{
	struct hammer *h = arg;
	unsigned int i;

	for (i = 0; !h->stop; i++) {
		struct ibv_qp_attr attr = {
			.qp_access_flags = h->e->conf.access,
			.min_rnr_timer = i % 4 + 1,
			.cur_qp_state = IBV_QPS_RTS,
		};

		OK(ibv_modify_qp(h->e->qp, &attr, IBV_QP_ACCESS_FLAGS |
				 IBV_QP_MIN_RNR_TIMER));
	}
	return NULL;
}

static void modify_in_traffic(const void *arg)
{
	struct conf conf = conf_of(RC);
	struct hammer ha, hb;
	pthread_t ta, tb;
	unsigned int i;
	struct world w;

	(void)arg;
	world_new(&w, &conf);
	ha = (struct hammer){ .e = &w.a };
	hb = (struct hammer){ .e = &w.b };
	CHECK(!pthread_create(&ta, NULL, hammer, &ha));
	CHECK(!pthread_create(&tb, NULL, hammer, &hb));
	for (i = 0; i < t_rounds(500); i++) {
		DO(&w.a, .opcode = i & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
		   .laddr = w.mine.p, .lkey = w.mine.mr->lkey, .len = SIZE,
		   .raddr = (uintptr_t)w.theirs.p,
		   .rkey = w.theirs.mr->rkey);
	}
	ha.stop = hb.stop = true;
	pthread_join(ta, NULL);
	pthread_join(tb, NULL);
	world_free(&w);
}

static const enum ibv_qp_type rc = RC, uc = UC, ud = UD;
static const unsigned int none = 0, one = 1, three = 3, ever = 7;
static const enum nobody nobody[] = {
	WRONG_QPN, WRONG_PSN, PEER_INIT, PEER_RESET, PEER_ERR, PEER_GONE,
	PEER_ELSEWHERE, NO_SUCH_GID, PEER_UC,
};

static const struct t_case stories[] = {
	{ "local_error_first", local_first, NULL, 0 },
	{ "uc_drops", uc_drops, NULL, 0 },
	{ "uc_recv_too_short", uc_recv_too_short, NULL, 0 },
	{ "uc_recv_lkey", recv_lkey, &uc, 0 },
	{ "ud_recv_lkey", recv_lkey, &ud, 0 },
	{ "uc_sqe", sqe, &uc, 0 },
	{ "ud_sqe", sqe, &ud, 0 },
	{ "ud_drops", ud_drops, NULL, 0 },
	{ "ud_own_mistakes", ud_own_mistakes, NULL, 0 },
	{ "rnr_gives_up_at_once", rnr_gives_up, &none, 0 },
	{ "rnr_gives_up_after_1", rnr_gives_up, &one, 0 },
	{ "rnr_gives_up_after_3", rnr_gives_up, &three, 0 },
	{ "rnr_waits", rnr_waits, &three, 0 },
	{ "rnr_waits_for_ever", rnr_waits, &ever, 0 },
	{ "rnr_wait_ends_with_the_qp", rnr_ends, NULL, 0 },
	{ "retry_wrong_qpn", nobody_answers, &nobody[0], 0 },
	{ "retry_wrong_psn", nobody_answers, &nobody[1], 0 },
	{ "retry_peer_in_init", nobody_answers, &nobody[2], 0 },
	{ "retry_peer_in_reset", nobody_answers, &nobody[3], 0 },
	{ "retry_peer_in_err", nobody_answers, &nobody[4], 0 },
	{ "retry_peer_destroyed", nobody_answers, &nobody[5], 0 },
	{ "retry_peer_connected_elsewhere", nobody_answers, &nobody[6], 0 },
	{ "retry_gid_not_here", nobody_answers, &nobody[7], 0 },
	{ "retry_peer_is_uc", nobody_answers, &nobody[8], 0 },
	{ "retry_time", retry_time, NULL, 0 },
	{ "peer_comes_late", peer_comes_late, NULL, 0 },
	{ "uc_to_nowhere", nowhere, &uc, 0 },
	{ "ud_to_nowhere", nowhere, &ud, 0 },
	{ "rc_flush_all", flush_all, &rc, 0 },
	{ "uc_flush_all", flush_all, &uc, 0 },
	{ "ud_flush_all", flush_all, &ud, 0 },
	{ "flush_srq_last_wqe", flush_srq, NULL, 0 },
	{ "received_once_each", once_each, NULL, 0 },
	{ "rc_sqd", sqd, &rc, 0 },
	{ "uc_sqd", sqd, &uc, 0 },
	{ "ud_sqd", sqd, &ud, 0 },
	{ "sqd_drains", sqd_drains, NULL, 0 },
	{ "query_says", query_says, NULL, 0 },
	{ "bad_modifies", bad_modifies, NULL, 0 },
	{ "rc_reset_reuses", reset_reuses, &rc, 0 },
	{ "uc_reset_reuses", reset_reuses, &uc, 0 },
	{ "ud_reset_reuses", reset_reuses, &ud, 0 },
	{ "rtr_receives", rtr_receives, NULL, 0 },
	{ "modify_in_traffic", modify_in_traffic, NULL, 0 },
};

int main(int argc, char **argv)
{
	static struct t_case cases[ARRAY_SIZE(faults) + ARRAY_SIZE(stories)];
	size_t i, n = 0;

	for (i = 0; i < ARRAY_SIZE(faults); i++)
		cases[n++] = (struct t_case){ faults[i].name, rc_fault,
					      &faults[i], 0 };
	for (i = 0; i < ARRAY_SIZE(stories); i++)
		cases[n++] = stories[i];
	return t_main(argc, argv, cases, n);
}
