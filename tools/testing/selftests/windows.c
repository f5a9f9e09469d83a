// SPDX-License-Identifier: GPL-2.0
/*
 * windows.c - memory windows: the rules of IBA Vol 1, 10.6.7 and 11.2.9
 *
 * A table of single binds, one case for each row, then what needs a story.
 */
#include "lib.h"

#define SIZE (64 * KiB)
#define RD IBV_ACCESS_REMOTE_READ
#define WR IBV_ACCESS_REMOTE_WRITE
#define AT IBV_ACCESS_REMOTE_ATOMIC
#define ZERO IBV_ACCESS_ZERO_BASED

/* @a is the initiator; @b owns the region and binds. */
struct world {
	struct ctx *c;
	struct ibv_pd *pd2;
	struct end a, b;
	struct buf mine, theirs;
};

static void world_new(struct world *w, int access)
{
	struct conf conf = conf_of(RC);

	w->c = ctx_open(NULL);
	w->pd2 = ibv_alloc_pd(w->c->ibv);
	CHECK(w->pd2);
	pair_new(w->c, &conf, &w->a, &w->b);
	w->mine = buf_new(w->c->pd, SIZE, MR_ALL);
	w->theirs = buf_new(w->c->pd, SIZE, access);
	fill(w->theirs.p, SIZE, 2);
}

static void world_free(struct world *w)
{
	pair_free(&w->a, &w->b);
	buf_free(&w->mine);
	buf_free(&w->theirs);
	OK(ibv_dealloc_pd(w->pd2));
	ctx_close(w->c);
}

static struct ibv_mw *mw_new(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, type);

	CHECK(mw);
	CHECK(mw->rkey);
	return mw;
}

static struct op access_op(struct world *w, enum ibv_wr_opcode opcode,
			   uint32_t rkey, uint64_t at, uint32_t len)
{
	return (struct op){
		.opcode = opcode, .wr_id = 0xacc, .laddr = w->mine.p,
		.lkey = w->mine.mr->lkey, .len = len, .raddr = at,
		.rkey = rkey,
	};
}

static void allowed(struct world *w, enum ibv_wr_opcode opcode, uint32_t rkey,
		    uint64_t at, uint32_t len)
{
	struct op op = access_op(w, opcode, rkey, at, len);

	OK(post(&w->a, &op));
	EXPECT_WC(w->a.scq, 0xacc, IBV_WC_SUCCESS);
}

/* The refusal takes the pair to ERR, and RESET ends the type 2 windows of b. */
static void denied(struct world *w, enum ibv_wr_opcode opcode, uint32_t rkey,
		   uint64_t at, uint32_t len, int reason)
{
	struct op op = access_op(w, opcode, rkey, at, len);

	OK(post(&w->a, &op));
	EXPECT_WC_WHY(w->a.scq, 0xacc, IBV_WC_REM_ACCESS_ERR, reason);
	pair_again(&w->a, &w->b);
}

/* --- one bind --------------------------------------------------------------- */

enum which { OWN, OTHER };
enum keys { NEXT, SAME, ANOTHER_INDEX };

struct row {
	const char *name;
	enum ibv_mw_type type;
	int mr_access;
	unsigned int access;	/* of the window */
	int64_t off;		/* in the region */
	uint64_t length;
	int reason;		/* 0: it binds */
	enum which mw_pd, mr_pd;
	enum keys key;
	enum { SHUT, READS, WRITES, BOTH } then;
};

#define T1 IBV_MW_TYPE_1
#define T2 IBV_MW_TYPE_2
#define LW IBV_ACCESS_LOCAL_WRITE
#define BIND IBV_ACCESS_MW_BIND

static const struct row rows[] = {
	{ "t1_read", T1, MR_ALL, RD, 4096, 4096, .then = READS },
	{ "t1_write", T1, MR_ALL, WR, 4096, 4096, .then = WRITES },
	{ "t1_both", T1, MR_ALL, RD | WR | AT, 4096, 4096, .then = BOTH },
	{ "t1_no_rights", T1, MR_ALL, 0, 4096, 4096, .then = SHUT },
	{ "t1_whole", T1, MR_ALL, RD | WR, 0, SIZE, .then = BOTH },
	{ "t1_odd", T1, MR_ALL, RD | WR, 4093, 777, .then = BOTH },
	{ "t1_one_byte", T1, MR_ALL, RD | WR, SIZE - 1, 1, .then = BOTH },
	/* a window may grant what the region does not, but for local write */
	{ "t1_mr_local_only", T1, LW | BIND, RD | WR, 0, 4096, .then = BOTH },
	{ "t1_mr_readonly", T1, BIND, RD, 0, 4096, .then = READS },
	{ "t1_write_needs_local_write", T1, BIND | RD, WR, 0, 4096,
	  .reason = MRSOFT_R_MW_RIGHTS },
	{ "t1_atomic_needs_local_write", T1, BIND | RD, AT, 0, 4096,
	  .reason = MRSOFT_R_MW_RIGHTS },
	{ "t1_mr_without_bind", T1, REMOTE_ALL, RD, 0, 4096,
	  .reason = MRSOFT_R_NO_MW_BIND },
	{ "t1_zero_based", T1, MR_ALL, RD | ZERO, 4096, 4096,
	  .reason = MRSOFT_R_MW_TYPE },
	{ "t1_one_past", T1, MR_ALL, RD, 1, SIZE, .reason = MRSOFT_R_OUTSIDE },
	{ "t1_one_below", T1, MR_ALL, RD, -1, 16, .reason = MRSOFT_R_OUTSIDE },
	{ "t1_beyond", T1, MR_ALL, RD, SIZE, 1, .reason = MRSOFT_R_OUTSIDE },
	{ "t1_wraps", T1, MR_ALL, RD, 4096, ~0ull - 8, .reason = MRSOFT_R_OUTSIDE },
	{ "t1_mr_of_other_pd", T1, MR_ALL, RD, 0, 4096, .reason = MRSOFT_R_WRONG_PD,
	  .mr_pd = OTHER },
	{ "t1_mw_of_other_pd", T1, MR_ALL, RD, 0, 4096, .reason = MRSOFT_R_WRONG_PD,
	  .mw_pd = OTHER },
	{ "t1_another_index", T1, MR_ALL, RD, 0, 4096, .reason = MRSOFT_R_KEY_UNKNOWN,
	  .key = ANOTHER_INDEX },

	{ "t2_read", T2, MR_ALL, RD, 4096, 4096, .then = READS },
	{ "t2_write", T2, MR_ALL, WR, 4096, 4096, .then = WRITES },
	{ "t2_both", T2, MR_ALL, RD | WR | AT, 4096, 4096, .then = BOTH },
	{ "t2_whole", T2, MR_ALL, RD | WR, 0, SIZE, .then = BOTH },
	{ "t2_odd", T2, MR_ALL, RD | WR, 4093, 777, .then = BOTH },
	{ "t2_mr_local_only", T2, LW | BIND, RD | WR, 0, 4096, .then = BOTH },
	{ "t2_zero_based", T2, MR_ALL, RD | WR | ZERO, 4096, 4096,
	  .then = BOTH },
	{ "t2_zero_based_odd", T2, MR_ALL, RD | WR | ZERO, 5001, 300,
	  .then = BOTH },
	{ "t2_write_needs_local_write", T2, BIND | RD, WR, 0, 4096,
	  .reason = MRSOFT_R_MW_RIGHTS },
	{ "t2_mr_without_bind", T2, REMOTE_ALL, RD, 0, 4096,
	  .reason = MRSOFT_R_NO_MW_BIND },
	{ "t2_one_past", T2, MR_ALL, RD, 1, SIZE, .reason = MRSOFT_R_OUTSIDE },
	{ "t2_one_below", T2, MR_ALL, RD, -1, 16, .reason = MRSOFT_R_OUTSIDE },
	{ "t2_wraps", T2, MR_ALL, RD, 4096, ~0ull - 8, .reason = MRSOFT_R_OUTSIDE },
	{ "t2_mr_of_other_pd", T2, MR_ALL, RD, 0, 4096, .reason = MRSOFT_R_WRONG_PD,
	  .mr_pd = OTHER },
	{ "t2_mw_of_other_pd", T2, MR_ALL, RD, 0, 4096, .reason = MRSOFT_R_WRONG_PD,
	  .mw_pd = OTHER },
	{ "t2_another_index", T2, MR_ALL, RD, 0, 4096, .reason = MRSOFT_R_KEY_UNKNOWN,
	  .key = ANOTHER_INDEX },
};

static void one_bind(const void *arg)
{
	const struct row *r = arg;
	struct world w;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint64_t base;
	uint32_t rkey;

	world_new(&w, r->mr_access);
	mw = mw_new(r->mw_pd == OTHER ? w.pd2 : w.c->pd, r->type);
	mr = w.theirs.mr;
	if (r->mr_pd == OTHER) {
		mr = ibv_reg_mr(w.pd2, w.theirs.p, SIZE, r->mr_access);
		CHECK(mr);
	}
	rkey = r->key == SAME ? mw->rkey : ibv_inc_rkey(mw->rkey);
	if (r->key == ANOTHER_INDEX)
		rkey ^= 0x100;
	OK(post_bind(&w.b, mw, rkey, mr, w.theirs.p + r->off, r->length,
		     r->access));
	if (r->reason) {
		EXPECT_WC_WHY(w.b.scq, 0xb1d, IBV_WC_MW_BIND_ERR, r->reason);
		expect_state(&w.b, IBV_QPS_ERR);
		/* the region is nobody's */
		if (r->mr_pd == OTHER)
			OK(ibv_dereg_mr(mr));
		OK(ibv_dereg_mr(w.theirs.mr));
		w.theirs.mr = NULL;
		OK(ibv_dealloc_mw(mw));
		world_free(&w);
		return;
	}
	EXPECT_WC(w.b.scq, 0xb1d, IBV_WC_SUCCESS);

	base = r->access & ZERO ? 0 : (uintptr_t)w.theirs.p + r->off;
	if (r->then == READS || r->then == BOTH) {
		fill(w.theirs.p, SIZE, 7);
		allowed(&w, IBV_WR_RDMA_READ, rkey, base, r->length);
		CHECK_EQ(memcmp(w.mine.p, w.theirs.p + r->off, r->length), 0);
	}
	if (r->then == WRITES || r->then == BOTH) {
		fill(w.mine.p, SIZE, 8);
		memset(w.theirs.p, 0x22, SIZE);
		allowed(&w, IBV_WR_RDMA_WRITE, rkey, base, r->length);
		CHECK_EQ(memcmp(w.mine.p, w.theirs.p + r->off, r->length), 0);
		CHECK_EQ(only(w.theirs.p, r->off, 0x22), -1);
		CHECK_EQ(only(w.theirs.p + r->off + r->length,
			      SIZE - r->off - r->length, 0x22), -1);
	}
	if (r->access & AT) {
		struct op op = access_op(&w, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey,
					 base, 8);

		op.compare = 3;
		OK(post(&w.a, &op));
		EXPECT_WC(w.a.scq, 0xacc, IBV_WC_SUCCESS);
	}
	CHECK_EQ(ibv_dereg_mr(w.theirs.mr), EBUSY);
	/* each refusal takes the pair, and with it the QP that type 2 needs */
	if (r->then == READS || r->then == SHUT)
		denied(&w, IBV_WR_RDMA_WRITE, rkey, base, r->length,
		       MRSOFT_R_NO_REMOTE_WRITE);
	else if (r->then == WRITES)
		denied(&w, IBV_WR_RDMA_READ, rkey, base, r->length,
		       MRSOFT_R_NO_REMOTE_READ);
	else if (r->off % 3 == 0)
		denied(&w, IBV_WR_RDMA_WRITE, rkey, base + r->length - 7, 8,
		       MRSOFT_R_OUTSIDE);
	else
		denied(&w, IBV_WR_RDMA_READ, rkey, base - 1, 1,
		       MRSOFT_R_OUTSIDE);
	if (r->type == T1 && r->then == BOTH) {
		denied(&w, IBV_WR_RDMA_READ, rkey, base - 1, 1,
		       MRSOFT_R_OUTSIDE);
		denied(&w, IBV_WR_RDMA_READ, rkey, base + r->length, 1,
		       MRSOFT_R_OUTSIDE);
		denied(&w, IBV_WR_RDMA_READ, rkey, ~0ull, 2, MRSOFT_R_OUTSIDE);
	}
	OK(ibv_dealloc_mw(mw));
	world_free(&w);
}

/* --- stories ------------------------------------------------------------------ */

static void bind_ok(struct end *e, struct ibv_mw *mw, struct ibv_mr *mr,
		    void *addr, size_t len, unsigned int access)
{
	uint32_t rkey = ibv_inc_rkey(mw->rkey);

	OK(post_bind(e, mw, rkey, mr, addr, len, access));
	EXPECT_WC(e->scq, 0xb1d, IBV_WC_SUCCESS);
	mw->rkey = rkey;
}

static void bind_fails(struct end *e, struct ibv_mw *mw, uint32_t rkey,
		       struct ibv_mr *mr, void *addr, int reason)
{
	OK(post_bind(e, mw, rkey, mr, addr, 4096, RD | WR));
	EXPECT_WC_WHY(e->scq, 0xb1d, IBV_WC_MW_BIND_ERR, reason);
	expect_state(e, IBV_QPS_ERR);
}

static void never_bound(const void *arg)
{
	const enum ibv_mw_type *type = arg;
	struct ibv_mw *mw;
	struct world w;

	world_new(&w, MR_ALL);
	mw = mw_new(w.c->pd, *type);
	denied(&w, IBV_WR_RDMA_READ, mw->rkey, (uintptr_t)w.theirs.p, 8,
	       MRSOFT_R_KEY_INVALID);
	denied(&w, IBV_WR_RDMA_WRITE, mw->rkey, 0, 8, MRSOFT_R_KEY_INVALID);
	OK(ibv_dealloc_mw(mw));
	world_free(&w);
}

static void t1_rebind(const void *arg)
{
	uint32_t first, second;
	struct ibv_mw *mw;
	struct world w;

	(void)arg;
	world_new(&w, MR_ALL);
	mw = mw_new(w.c->pd, T1);
	bind_ok(&w.b, mw, w.theirs.mr, w.theirs.p, 4096, RD | WR);
	first = mw->rkey;
	bind_ok(&w.b, mw, w.theirs.mr, w.theirs.p + 8192, 4096, RD);
	second = mw->rkey;
	CHECK(first != second);
	CHECK_EQ(first >> 8, second >> 8);
	allowed(&w, IBV_WR_RDMA_READ, second, (uintptr_t)w.theirs.p + 8192,
		4096);
	denied(&w, IBV_WR_RDMA_READ, first, (uintptr_t)w.theirs.p, 8,
	       MRSOFT_R_KEY_STALE);
	denied(&w, IBV_WR_RDMA_READ, second, (uintptr_t)w.theirs.p, 8,
	       MRSOFT_R_OUTSIDE);
	denied(&w, IBV_WR_RDMA_WRITE, second, (uintptr_t)w.theirs.p + 8192, 8,
	       MRSOFT_R_NO_REMOTE_WRITE);
	/* empty: unbound, and bound again */
	bind_ok(&w.b, mw, w.theirs.mr, w.theirs.p, 0, 0);
	denied(&w, IBV_WR_RDMA_READ, second, (uintptr_t)w.theirs.p + 8192, 8,
	       MRSOFT_R_KEY_STALE);
	denied(&w, IBV_WR_RDMA_READ, mw->rkey, (uintptr_t)w.theirs.p, 8,
	       MRSOFT_R_KEY_INVALID);
	bind_ok(&w.b, mw, w.theirs.mr, w.theirs.p, 4096, RD | WR);
	allowed(&w, IBV_WR_RDMA_WRITE, mw->rkey, (uintptr_t)w.theirs.p, 4096);
	OK(ibv_dealloc_mw(mw));
	denied(&w, IBV_WR_RDMA_READ, mw->rkey, (uintptr_t)w.theirs.p, 8, -1);
	world_free(&w);
}

/* A rebind that is refused leaves the window where it was. */
static void t1_refused_rebind(const void *arg)
{
	struct conf conf = conf_of(RC);
	struct ibv_mw *mw;
	struct end x, y;
	struct world w;

	(void)arg;
	world_new(&w, MR_ALL);
	pair_new(w.c, &conf, &x, &y);
	mw = mw_new(w.c->pd, T1);
	bind_ok(&w.b, mw, w.theirs.mr, w.theirs.p, 4096, RD | WR);
	bind_fails(&y, mw, ibv_inc_rkey(mw->rkey), w.theirs.mr,
		   w.theirs.p + SIZE - 100, MRSOFT_R_OUTSIDE);
	allowed(&w, IBV_WR_RDMA_READ, mw->rkey, (uintptr_t)w.theirs.p, 4096);
	denied(&w, IBV_WR_RDMA_READ, ibv_inc_rkey(mw->rkey),
	       (uintptr_t)w.theirs.p, 8, MRSOFT_R_KEY_STALE);
	allowed(&w, IBV_WR_RDMA_WRITE, mw->rkey, (uintptr_t)w.theirs.p, 4096);
	OK(ibv_dealloc_mw(mw));
	pair_free(&x, &y);
	world_free(&w);
}

/* Type 1 belongs to the PD, type 2 to the QP that bound it. */
static void whose(const void *arg)
{
	const enum ibv_mw_type *type = arg;
	struct conf conf = conf_of(RC);
	struct end x, y, p, q;
	struct ibv_mr *own;
	struct ibv_mw *mw;
	struct world w;
	struct op op;

	world_new(&w, MR_ALL);
	pair_new(w.c, &conf, &x, &y);
	conf.pd = w.pd2;
	pair_new(w.c, &conf, &p, &q);
	own = ibv_reg_mr(w.pd2, w.mine.p, SIZE, MR_ALL);
	CHECK(own);
	mw = mw_new(w.c->pd, *type);
	bind_ok(&w.b, mw, w.theirs.mr, w.theirs.p, 4096, RD | WR);
	op = access_op(&w, IBV_WR_RDMA_READ, mw->rkey, (uintptr_t)w.theirs.p,
		       64);
	OK(post(&x, &op));
	if (*type == T1)
		EXPECT_WC(x.scq, 0xacc, IBV_WC_SUCCESS);
	else
		EXPECT_WC_WHY(x.scq, 0xacc, IBV_WC_REM_ACCESS_ERR,
			      MRSOFT_R_WRONG_QP);
	op.lkey = own->lkey;
	OK(post(&p, &op));
	EXPECT_WC_WHY(p.scq, 0xacc, IBV_WC_REM_ACCESS_ERR, MRSOFT_R_WRONG_PD);
	allowed(&w, IBV_WR_RDMA_READ, mw->rkey, (uintptr_t)w.theirs.p, 64);
	OK(ibv_dereg_mr(own));
	OK(ibv_dealloc_mw(mw));
	pair_free(&x, &y);
	pair_free(&p, &q);
	world_free(&w);
}

static void t2_while_bound(const void *arg)
{
	struct ibv_mw *mw;
	struct world w;

	(void)arg;
	world_new(&w, MR_ALL);
	mw = mw_new(w.c->pd, T2);
	bind_ok(&w.b, mw, w.theirs.mr, w.theirs.p, 4096, RD | WR);
	bind_fails(&w.b, mw, ibv_inc_rkey(mw->rkey), w.theirs.mr, w.theirs.p,
		   MRSOFT_R_MW_BOUND);
	/* the bind of a QP in ERR does not go, the window is as it was */
	CHECK_EQ(ibv_dereg_mr(w.theirs.mr), EBUSY);
	OK(ibv_dealloc_mw(mw));
	world_free(&w);
}

/* Bound, invalidated, bound again, many times over all low bytes. */
static void t2_cycle(const void *arg)
{
	unsigned int i, n = t_rounds(600);
	struct ibv_mw *mw;
	struct world w;
	uint32_t old = 0;

	(void)arg;
	world_new(&w, MR_ALL);
	mw = mw_new(w.c->pd, T2);
	for (i = 0; i < n; i++) {
		size_t off = i % 60 * 1024;

		bind_ok(&w.b, mw, w.theirs.mr, w.theirs.p + off, 512, RD | WR);
		CHECK(mw->rkey != old);
		allowed(&w, IBV_WR_RDMA_READ, mw->rkey,
			(uintptr_t)w.theirs.p + off, 512);
		old = mw->rkey;
		if (i & 1) {
			DO(&w.b, .opcode = IBV_WR_LOCAL_INV, .rkey = old);
		} else {
			OK(post_recv(&w.b, i, NULL, 0, 0));
			DO(&w.a, .opcode = IBV_WR_SEND_WITH_INV, .rkey = old);
			EXPECT_WC(w.b.rcq, i, IBV_WC_SUCCESS);
		}
	}
	denied(&w, IBV_WR_RDMA_READ, old, (uintptr_t)w.theirs.p, 8, -1);
	OK(ibv_dereg_mr(w.theirs.mr));
	w.theirs.mr = NULL;
	OK(ibv_dealloc_mw(mw));
	world_free(&w);
}

/* Free again, but not with the key it had. */
static void t2_same_key(const void *arg)
{
	struct ibv_mw *mw;
	struct world w;

	(void)arg;
	world_new(&w, MR_ALL);
	mw = mw_new(w.c->pd, T2);
	bind_ok(&w.b, mw, w.theirs.mr, w.theirs.p, 4096, RD | WR);
	DO(&w.b, .opcode = IBV_WR_LOCAL_INV, .rkey = mw->rkey);
	bind_fails(&w.b, mw, mw->rkey, w.theirs.mr, w.theirs.p,
		   MRSOFT_R_KEY_STALE);
	OK(ibv_dealloc_mw(mw));
	world_free(&w);
}

static void t2_other_qp_binds_free(const void *arg)
{
	struct ibv_mw *mw;
	struct world w;

	(void)arg;
	world_new(&w, MR_ALL);
	mw = mw_new(w.c->pd, T2);
	bind_ok(&w.b, mw, w.theirs.mr, w.theirs.p, 4096, RD | WR);
	DO(&w.b, .opcode = IBV_WR_LOCAL_INV, .rkey = mw->rkey);
	/* a free window is anybody's of the PD */
	bind_ok(&w.a, mw, w.theirs.mr, w.theirs.p, 4096, RD | WR);
	DO(&w.b, .opcode = IBV_WR_RDMA_READ, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = 64, .raddr = (uintptr_t)w.theirs.p,
	   .rkey = mw->rkey);
	denied(&w, IBV_WR_RDMA_READ, mw->rkey, (uintptr_t)w.theirs.p, 8, -1);
	OK(ibv_dealloc_mw(mw));
	world_free(&w);
}

/* Invalidates that the rules forbid have no effect on anything. */
struct inv {
	const char *name;
	enum { MR_KEY, T1_KEY, STALE_KEY, NO_KEY, FREE_T2, OTHERS_T2 } what;
	bool remote;
};

static const struct inv invs[] = {
	{ "inv_local_of_mr", MR_KEY, false },
	{ "inv_local_of_t1", T1_KEY, false },
	{ "inv_local_of_stale", STALE_KEY, false },
	{ "inv_local_of_nothing", NO_KEY, false },
	{ "inv_local_of_free_t2", FREE_T2, false },
	{ "inv_local_of_other_qps_t2", OTHERS_T2, false },
	{ "inv_remote_of_mr", MR_KEY, true },
	{ "inv_remote_of_t1", T1_KEY, true },
	{ "inv_remote_of_stale", STALE_KEY, true },
	{ "inv_remote_of_nothing", NO_KEY, true },
	{ "inv_remote_of_other_qps_t2", OTHERS_T2, true },
};

static void bad_invalidate(const void *arg)
{
	const struct inv *inv = arg;
	struct conf conf = conf_of(RC);
	struct ibv_mw *t1, *t2, *empty;
	uint32_t key, stale;
	struct end x, y;
	struct world w;

	world_new(&w, MR_ALL);
	pair_new(w.c, &conf, &x, &y);
	t1 = mw_new(w.c->pd, T1);
	t2 = mw_new(w.c->pd, T2);
	empty = mw_new(w.c->pd, T2);
	bind_ok(&w.b, t1, w.theirs.mr, w.theirs.p, 4096, RD | WR);
	stale = t1->rkey;
	bind_ok(&w.b, t1, w.theirs.mr, w.theirs.p, 4096, RD | WR);
	bind_ok(&w.b, t2, w.theirs.mr, w.theirs.p, 4096, RD | WR);
	key = inv->what == MR_KEY ? w.theirs.mr->rkey :
	      inv->what == T1_KEY ? t1->rkey :
	      inv->what == STALE_KEY ? stale :
	      inv->what == NO_KEY ? 0xabcdef12 :
	      inv->what == FREE_T2 ? empty->rkey : t2->rkey;
	if (inv->remote) {
		struct ibv_wc wc;

		OK(post_recv(&y, 3, NULL, 0, 0));
		FAIL_WITH(&x, IBV_WC_REM_ACCESS_ERR, -1,
			  .opcode = IBV_WR_SEND_WITH_INV, .rkey = key);
		wc = NEXT_WC(y.rcq);
		CHECK_EQ(wc.wr_id, 3);
		CHECK(wc.status != IBV_WC_SUCCESS);
	} else {
		struct ibv_wc wc;

		DO(&y, .opcode = IBV_WR_LOCAL_INV, .rkey = key, .quiet = true);
		wc = NEXT_WC(y.scq);
		CHECK(wc.status == IBV_WC_MW_BIND_ERR ||
		      wc.status == IBV_WC_LOC_QP_OP_ERR);
	}
	expect_state(&y, IBV_QPS_ERR);
	/* all that was bound still is */
	allowed(&w, IBV_WR_RDMA_READ, t1->rkey, (uintptr_t)w.theirs.p, 64);
	allowed(&w, IBV_WR_RDMA_READ, t2->rkey, (uintptr_t)w.theirs.p, 64);
	allowed(&w, IBV_WR_RDMA_READ, w.theirs.mr->rkey,
		(uintptr_t)w.theirs.p, 64);
	OK(ibv_dealloc_mw(t1));
	OK(ibv_dealloc_mw(t2));
	OK(ibv_dealloc_mw(empty));
	pair_free(&x, &y);
	world_free(&w);
}

static void not_an_lkey(const void *arg)
{
	struct conf conf = conf_of(RC);
	struct ibv_mw *mw;
	struct end x, y;
	struct world w;

	(void)arg;
	world_new(&w, MR_ALL);
	pair_new(w.c, &conf, &x, &y);
	mw = mw_new(w.c->pd, T1);
	bind_ok(&w.b, mw, w.theirs.mr, w.theirs.p, 4096, RD | WR);
	FAIL_WITH(&x, IBV_WC_LOC_PROT_ERR, -1, .opcode = IBV_WR_RDMA_WRITE,
		  .laddr = w.theirs.p, .lkey = mw->rkey, .len = 64,
		  .raddr = (uintptr_t)w.mine.p, .rkey = w.mine.mr->rkey);
	pair_again(&x, &y);
	OK(post_recv(&y, 8, w.theirs.p, 64, mw->rkey));
	FAIL_WITH(&x, IBV_WC_REM_OP_ERR, -1, .opcode = IBV_WR_SEND,
		  .laddr = w.mine.p, .lkey = w.mine.mr->lkey, .len = 64);
	EXPECT_WC(y.rcq, 8, IBV_WC_LOC_PROT_ERR);
	allowed(&w, IBV_WR_RDMA_READ, mw->rkey, (uintptr_t)w.theirs.p, 64);
	OK(ibv_dealloc_mw(mw));
	pair_free(&x, &y);
	world_free(&w);
}

/* A window over a region whose iova is not its address. */
static void over_other_iova(const void *arg)
{
	struct ibv_mw *t1, *t2;
	struct ibv_mr *mr;
	struct world w;
	uint64_t iova = 0x7700000000ull;

	(void)arg;
	world_new(&w, MR_ALL);
	mr = ibv_reg_mr_iova(w.c->pd, w.theirs.p, SIZE, iova, MR_ALL);
	CHECK(mr);
	t1 = mw_new(w.c->pd, T1);
	t2 = mw_new(w.c->pd, T2);
	bind_ok(&w.b, t1, mr, (void *)(iova + 5000), 3000, RD | WR);
	bind_ok(&w.b, t2, mr, (void *)(iova + 5000), 3000, RD | WR | ZERO);
	allowed(&w, IBV_WR_RDMA_READ, t1->rkey, iova + 5000, 3000);
	CHECK_EQ(memcmp(w.mine.p, w.theirs.p + 5000, 3000), 0);
	fill(w.mine.p, 3000, 17);
	allowed(&w, IBV_WR_RDMA_WRITE, t2->rkey, 0, 3000);
	CHECK_EQ(filled(w.theirs.p + 5000, 3000, 17), -1);
	OK(ibv_dealloc_mw(t1));
	OK(ibv_dealloc_mw(t2));
	OK(ibv_dereg_mr(mr));
	world_free(&w);
}

/* In order with the queue: a bind works before what is posted behind it. */
static void in_order(const void *arg)
{
	struct ibv_mw *mw;
	struct world w;
	uint32_t rkey;
	int i;

	(void)arg;
	world_new(&w, MR_ALL);
	mw = mw_new(w.c->pd, T2);
	rkey = mw->rkey;
	for (i = 0; i < 5; i++) {
		struct op tell = {
			.opcode = IBV_WR_SEND_WITH_IMM, .wr_id = i,
			.imm = ibv_inc_rkey(rkey), .flags = IBV_SEND_FENCE,
		};
		struct op kill = { .opcode = IBV_WR_LOCAL_INV, .quiet = true };
		struct ibv_wc wc;

		OK(post_recv(&w.a, i, NULL, 0, 0));
		rkey = kill.rkey = ibv_inc_rkey(rkey);
		OK(post_bind(&w.b, mw, rkey, w.theirs.mr, w.theirs.p, 4096,
			     RD | WR));
		mw->rkey = rkey;
		OK(post(&w.b, &tell));
		EXPECT_WC(w.b.scq, 0xb1d, IBV_WC_SUCCESS);
		EXPECT_WC(w.b.scq, i, IBV_WC_SUCCESS);
		wc = NEXT_WC(w.a.rcq);
		CHECK_EQ(be32toh(wc.imm_data), rkey);
		allowed(&w, IBV_WR_RDMA_READ, rkey, (uintptr_t)w.theirs.p, 99);
		OK(post(&w.b, &kill));
	}
	OK(ibv_dealloc_mw(mw));
	world_free(&w);
}

/* RESET ends what the QP bound, as destroy does. */
static void reset_unbinds(const void *arg)
{
	struct ibv_mw *mw;
	struct world w;

	(void)arg;
	world_new(&w, MR_ALL);
	mw = mw_new(w.c->pd, T2);
	bind_ok(&w.b, mw, w.theirs.mr, w.theirs.p, 4096, RD | WR);
	CHECK_EQ(ibv_dereg_mr(w.theirs.mr), EBUSY);
	pair_again(&w.a, &w.b);
	denied(&w, IBV_WR_RDMA_READ, mw->rkey, (uintptr_t)w.theirs.p, 8, -1);
	OK(ibv_dereg_mr(w.theirs.mr));
	w.theirs.mr = NULL;
	OK(ibv_dealloc_mw(mw));
	world_free(&w);
}

/* IBA 10.2.9: windows are for RC and UC. */
static void on_uc(const void *arg)
{
	const enum ibv_mw_type *type = arg;
	struct conf conf = conf_of(UC);
	struct ibv_mw *mw;
	struct end x, y;
	struct world w;

	world_new(&w, MR_ALL);
	pair_new(w.c, &conf, &x, &y);
	mw = mw_new(w.c->pd, *type);
	bind_ok(&y, mw, w.theirs.mr, w.theirs.p, 4096, WR);
	fill(w.mine.p, 512, 21);
	DO(&x, .opcode = IBV_WR_RDMA_WRITE, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = 512,
	   .raddr = (uintptr_t)w.theirs.p, .rkey = mw->rkey);
	CHECK_EQ(filled(w.theirs.p, 512, 21), -1);
	OK(ibv_dealloc_mw(mw));
	pair_free(&x, &y);
	world_free(&w);
}

/* librxe's own call for type 1, and its refusals. */
static void bind_verb(const void *arg)
{
	struct ibv_mw_bind bind = {
		.wr_id = 4, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_mw *mw, *two;
	struct ibv_mr *foreign;
	struct world w;

	(void)arg;
	world_new(&w, MR_ALL);
	mw = mw_new(w.c->pd, T1);
	two = mw_new(w.c->pd, T2);
	foreign = ibv_reg_mr(w.pd2, w.theirs.p, SIZE, MR_ALL);
	CHECK(foreign);
	bind.bind_info = (struct ibv_mw_bind_info){
		foreign, (uintptr_t)w.theirs.p, 4096, RD,
	};
	CHECK_EQ(ibv_bind_mw(w.b.qp, mw, &bind), EPERM);
	bind.bind_info.mr = w.theirs.mr;
	CHECK_EQ(ibv_bind_mw(w.b.qp, two, &bind), EINVAL);
	bind.bind_info.mw_access_flags = RD | ZERO;
	CHECK_EQ(ibv_bind_mw(w.b.qp, mw, &bind), EINVAL);
	bind.bind_info.mw_access_flags = RD;
	OK(ibv_bind_mw(w.b.qp, mw, &bind));
	EXPECT_WC(w.b.scq, 4, IBV_WC_SUCCESS);
	allowed(&w, IBV_WR_RDMA_READ, mw->rkey, (uintptr_t)w.theirs.p, 64);
	OK(ibv_dealloc_mw(mw));
	OK(ibv_dealloc_mw(two));
	OK(ibv_dereg_mr(foreign));
	world_free(&w);
}

static const enum ibv_mw_type type1 = T1, type2 = T2;

static const struct t_case stories[] = {
	{ "t1_never_bound", never_bound, &type1, 0 },
	{ "t2_never_bound", never_bound, &type2, 0 },
	{ "t1_rebind", t1_rebind, NULL, 0 },
	{ "t1_refused_rebind", t1_refused_rebind, NULL, 0 },
	{ "t1_is_the_pds", whose, &type1, 0 },
	{ "t2_is_the_qps", whose, &type2, 0 },
	{ "t2_while_bound", t2_while_bound, NULL, 0 },
	{ "t2_cycle", t2_cycle, NULL, 0 },
	{ "t2_same_key", t2_same_key, NULL, 0 },
	{ "t2_other_qp_binds_free", t2_other_qp_binds_free, NULL, 0 },
	{ "not_an_lkey", not_an_lkey, NULL, 0 },
	{ "over_other_iova", over_other_iova, NULL, 0 },
	{ "in_order", in_order, NULL, 0 },
	{ "reset_unbinds", reset_unbinds, NULL, 0 },
	{ "t1_on_uc", on_uc, &type1, 0 },
	{ "t2_on_uc", on_uc, &type2, 0 },
	{ "bind_verb", bind_verb, NULL, 0 },
};

int main(int argc, char **argv)
{
	static struct t_case cases[ARRAY_SIZE(rows) + ARRAY_SIZE(invs) +
				   ARRAY_SIZE(stories)];
	size_t i, n = 0;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		cases[n++] = (struct t_case){ rows[i].name, one_bind, &rows[i],
					      0 };
	for (i = 0; i < ARRAY_SIZE(invs); i++)
		cases[n++] = (struct t_case){ invs[i].name, bad_invalidate,
					      &invs[i], 0 };
	for (i = 0; i < ARRAY_SIZE(stories); i++)
		cases[n++] = stories[i];
	return t_main(argc, argv, cases, n);
}
