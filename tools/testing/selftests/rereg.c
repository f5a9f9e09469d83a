// SPDX-License-Identifier: GPL-2.0
/*
 * rereg.c - ibv_rereg_mr(3) by the raw command, which librxe 44 does not send
 *
 * Each change alone and with the others; what is refused changes nothing.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "lib.h"

#define SIZE (64 * KiB)

/* a and b in the first PD, p and q in the second. */
struct world {
	struct ctx *c;
	struct ibv_pd *pd2;
	struct end a, b, p, q;
	struct buf mine, theirs, mine2;
};

static void world_new(struct world *w)
{
	struct conf conf = conf_of(RC);

	w->c = ctx_open(NULL);
	w->pd2 = ibv_alloc_pd(w->c->ibv);
	CHECK(w->pd2);
	pair_new(w->c, &conf, &w->a, &w->b);
	conf.pd = w->pd2;
	pair_new(w->c, &conf, &w->p, &w->q);
	w->mine = buf_new(w->c->pd, SIZE, MR_ALL);
	w->mine2 = buf_new(w->pd2, SIZE, MR_ALL);
	w->theirs = buf_new(w->c->pd, SIZE, MR_ALL);
}

static void world_free(struct world *w)
{
	pair_free(&w->a, &w->b);
	pair_free(&w->p, &w->q);
	buf_free(&w->mine);
	buf_free(&w->mine2);
	buf_free(&w->theirs);
	OK(ibv_dealloc_pd(w->pd2));
	ctx_close(w->c);
}

/* @second: through p and the second PD */
static void try(struct world *w, bool second, enum ibv_wr_opcode opcode,
		uint64_t at, uint32_t len, enum ibv_wc_status want, int reason)
{
	struct end *e = second ? &w->p : &w->a;
	struct buf *buf = second ? &w->mine2 : &w->mine;
	struct op op = {
		.opcode = opcode, .wr_id = 1, .laddr = buf->p, .len = len,
		.lkey = buf->mr->lkey, .raddr = at,
		.rkey = w->theirs.mr->rkey,
	};

	OK(post(e, &op));
	EXPECT_WC_WHY(e->scq, 1, want, reason);
	if (want == IBV_WC_SUCCESS)
		return;
	if (second)
		pair_again(&w->p, &w->q);
	else
		pair_again(&w->a, &w->b);
}

#define WORKS(second, at, len) do { \
	try(&w, second, IBV_WR_RDMA_WRITE, (uintptr_t)(at), len, \
	    IBV_WC_SUCCESS, -1); \
	try(&w, second, IBV_WR_RDMA_READ, (uintptr_t)(at), len, \
	    IBV_WC_SUCCESS, -1); \
} while (0)
#define REFUSED(second, opcode, at, reason) \
	try(&w, second, opcode, (uintptr_t)(at), 8, IBV_WC_REM_ACCESS_ERR, \
	    reason)

static void change_access(const void *arg)
{
	struct world w;

	(void)arg;
	world_new(&w);
	WORKS(false, w.theirs.p, SIZE);
	OK(rereg(w.theirs.mr, REREG_ACCESS, NULL, NULL, 0, 0,
		 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
	try(&w, false, IBV_WR_RDMA_READ, (uintptr_t)w.theirs.p, SIZE,
	    IBV_WC_SUCCESS, -1);
	REFUSED(false, IBV_WR_RDMA_WRITE, w.theirs.p,
		MRSOFT_R_NO_REMOTE_WRITE);
	OK(rereg(w.theirs.mr, REREG_ACCESS, NULL, NULL, 0, 0, MR_ALL));
	WORKS(false, w.theirs.p, SIZE);
	world_free(&w);
}

static void change_pd(const void *arg)
{
	struct world w;

	(void)arg;
	world_new(&w);
	OK(rereg(w.theirs.mr, REREG_PD, w.pd2, NULL, 0, 0, 0));
	WORKS(true, w.theirs.p, SIZE);
	REFUSED(false, IBV_WR_RDMA_READ, w.theirs.p, MRSOFT_R_WRONG_PD);
	/* the PDs count it where it is */
	CHECK_EQ(ibv_dealloc_pd(w.pd2), EBUSY);
	OK(rereg(w.theirs.mr, REREG_PD, w.c->pd, NULL, 0, 0, 0));
	WORKS(false, w.theirs.p, SIZE);
	REFUSED(true, IBV_WR_RDMA_READ, w.theirs.p, MRSOFT_R_WRONG_PD);
	world_free(&w);
}

/* An empty PD is free when its only MR has left it. */
static void pd_count_follows(const void *arg)
{
	struct ctx *c = ctx_open(NULL);
	struct ibv_pd *pd = ibv_alloc_pd(c->ibv);
	struct buf b;

	(void)arg;
	CHECK(pd);
	b = buf_new(c->pd, 4096, MR_ALL);
	OK(rereg(b.mr, REREG_PD, pd, NULL, 0, 0, 0));
	CHECK_EQ(ibv_dealloc_pd(pd), EBUSY);
	OK(rereg(b.mr, REREG_PD, c->pd, NULL, 0, 0, 0));
	OK(ibv_dealloc_pd(pd));
	CHECK_EQ(ibv_dealloc_pd(c->pd), EBUSY);
	buf_free(&b);
	ctx_close(c);
}

static void change_translation(const void *arg)
{
	uint8_t *old, *new = pages(2 * SIZE);
	int64_t pins;
	struct world w;

	(void)arg;
	pins = t_pinned();
	world_new(&w);
	old = w.theirs.p;
	memset(old, 0x55, SIZE);
	OK(rereg(w.theirs.mr, REREG_TRANS, NULL, new + 100, SIZE + 1000,
		 (uintptr_t)new + 100, 0));
	fill(w.mine.p, SIZE, 4);
	try(&w, false, IBV_WR_RDMA_WRITE, (uintptr_t)new + 1100, SIZE,
	    IBV_WC_SUCCESS, -1);
	CHECK_EQ(filled(new + 1100, SIZE, 4), -1);
	REFUSED(false, IBV_WR_RDMA_WRITE, old, MRSOFT_R_OUTSIDE);
	REFUSED(false, IBV_WR_RDMA_READ, new + 99, MRSOFT_R_OUTSIDE);
	REFUSED(false, IBV_WR_RDMA_READ, new + 1100 + SIZE - 7,
		MRSOFT_R_OUTSIDE);
	CHECK_EQ(only(old, SIZE, 0x55), -1);
	/* mine, mine2, and 1100 % 4096 + SIZE bytes: 17 pages */
	CHECK_EQ(t_pinned() - pins, 2 * SIZE / 4096 + 17);
	/* another iova over the same bytes */
	OK(rereg(w.theirs.mr, REREG_TRANS, NULL, new, SIZE, 0x10000, 0));
	try(&w, false, IBV_WR_RDMA_WRITE, 0x10000, SIZE, IBV_WC_SUCCESS, -1);
	CHECK_EQ(filled(new, SIZE, 4), -1);
	w.theirs.mr->addr = old;
	world_free(&w);
}

static void change_all(const void *arg)
{
	uint8_t *new = pages(SIZE);
	struct world w;

	(void)arg;
	world_new(&w);
	OK(rereg(w.theirs.mr, REREG_TRANS | REREG_PD | REREG_ACCESS, w.pd2, new,
		 SIZE / 2, (uintptr_t)new, IBV_ACCESS_REMOTE_READ));
	fill(new, SIZE / 2, 6);
	try(&w, true, IBV_WR_RDMA_READ, (uintptr_t)new, SIZE / 2,
	    IBV_WC_SUCCESS, -1);
	CHECK_EQ(filled(w.mine2.p, SIZE / 2, 6), -1);
	REFUSED(true, IBV_WR_RDMA_WRITE, new, MRSOFT_R_NO_REMOTE_WRITE);
	REFUSED(true, IBV_WR_RDMA_READ, new + SIZE / 2, MRSOFT_R_OUTSIDE);
	REFUSED(false, IBV_WR_RDMA_READ, new, MRSOFT_R_WRONG_PD);
	OK(rereg(w.theirs.mr, REREG_TRANS | REREG_ACCESS, NULL, w.theirs.p,
		 SIZE, (uintptr_t)w.theirs.p, MR_ALL));
	WORKS(true, w.theirs.p, SIZE);
	OK(rereg(w.theirs.mr, REREG_PD | REREG_ACCESS, w.c->pd, NULL, 0, 0,
		 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	try(&w, false, IBV_WR_RDMA_WRITE, (uintptr_t)w.theirs.p, SIZE,
	    IBV_WC_SUCCESS, -1);
	REFUSED(false, IBV_WR_RDMA_READ, w.theirs.p, MRSOFT_R_NO_REMOTE_READ);
	world_free(&w);
}

/*
 * Each combination changes what its flags name, and nothing else.  What is right in
 * one way is wrong in the others: PD, iova and rights.
 */
static void combinations(const void *arg)
{
	uint8_t *new = pages(SIZE);
	unsigned int flags;
	struct world w;

	(void)arg;
	world_new(&w);
	for (flags = 1; flags < 8; flags++) {
		bool moved = flags & REREG_TRANS, second = flags & REREG_PD;
		bool reads = flags & REREG_ACCESS;
		uint8_t *bytes = moved ? new : w.theirs.p;
		uint64_t at = moved ? 0x40000000 : (uintptr_t)w.theirs.p;
		struct buf *local = second ? &w.mine2 : &w.mine;

		OK(rereg(w.theirs.mr, flags, w.pd2, new, SIZE / 2, 0x40000000,
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
		fill(bytes, SIZE, flags);
		try(&w, second, IBV_WR_RDMA_READ, at, SIZE / 2, IBV_WC_SUCCESS,
		    -1);
		CHECK_EQ(filled(local->p, SIZE / 2, flags), -1);
		try(&w, second, IBV_WR_RDMA_READ, at + SIZE / 2, 8,
		    moved ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS,
		    moved ? MRSOFT_R_OUTSIDE : -1);
		try(&w, second, IBV_WR_RDMA_WRITE, at, 8,
		    reads ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS,
		    reads ? MRSOFT_R_NO_REMOTE_WRITE : -1);
		try(&w, !second, IBV_WR_RDMA_READ, at, 8, IBV_WC_REM_ACCESS_ERR,
		    MRSOFT_R_WRONG_PD);
		OK(rereg(w.theirs.mr, 7, w.c->pd, w.theirs.p, SIZE,
			 (uintptr_t)w.theirs.p, MR_ALL));
	}
	world_free(&w);
	munmap(new, SIZE);
}

/* A PD that a region was refused for does not count it; the old one still does. */
static void refused_is_not_counted(const void *arg)
{
	uint8_t *hole = pages(SIZE);
	struct ctx *c = ctx_open(NULL);
	struct ibv_pd *pd = ibv_alloc_pd(c->ibv), *old = ibv_alloc_pd(c->ibv);
	struct buf b;

	(void)arg;
	CHECK(pd && old);
	munmap(hole, 4096);
	b = buf_new(old, SIZE, MR_ALL);
	CHECK(rereg(b.mr, REREG_PD | REREG_TRANS, pd, hole, SIZE,
		    (uintptr_t)hole, 0));
	CHECK(rereg(b.mr, REREG_PD | REREG_ACCESS, pd, NULL, 0, 0,
		    IBV_ACCESS_REMOTE_WRITE));
	OK(ibv_dealloc_pd(pd));
	CHECK_EQ(ibv_dealloc_pd(old), EBUSY);
	buf_free(&b);
	OK(ibv_dealloc_pd(old));
	ctx_close(c);
}

/* B12: a receive that still names the old address. */
static void old_receive(const void *arg)
{
	uint8_t *new = pages(SIZE);
	struct world w;

	(void)arg;
	world_new(&w);
	OK(post_recv(&w.b, 5, w.theirs.p, 64, w.theirs.mr->lkey));
	OK(rereg(w.theirs.mr, REREG_TRANS, NULL, new, SIZE, (uintptr_t)new,
		 0));
	FAIL_WITH(&w.a, IBV_WC_REM_OP_ERR, -1, .opcode = IBV_WR_SEND,
		  .laddr = w.mine.p, .len = 64, .lkey = w.mine.mr->lkey);
	EXPECT_WC_WHY(w.b.rcq, 5, IBV_WC_LOC_PROT_ERR, MRSOFT_R_OUTSIDE);
	world_free(&w);
}

static void refused(const void *arg)
{
	uint8_t *hole = pages(SIZE), *ro = pages(SIZE);
	struct ibv_pd foreign = { .handle = 0x7777 };
	int64_t pins;
	struct world w;

	(void)arg;
	world_new(&w);
	munmap(hole + SIZE - 4096, 4096);
	memset(ro, 1, SIZE);
	mprotect(ro, SIZE, PROT_READ);
	pins = t_pinned();
#define STILL(call, err) do { \
	int t_e = call; \
	/* the core says ENOENT of a handle, a newer one EOPNOTSUPP of a flag */ \
	if (t_e != (err) && !((err) == EINVAL && \
			      (t_e == EOPNOTSUPP || t_e == ENOENT))) \
		t_fail(__FILE__, __LINE__, "%s gave %d", #call, t_e); \
	CHECK_EQ(t_pinned(), pins); \
	WORKS(false, w.theirs.p, SIZE); \
} while (0)
	STILL(rereg(w.theirs.mr, 0, NULL, NULL, 0, 0, 0), EINVAL);
	STILL(rereg(w.theirs.mr, 8, NULL, NULL, 0, 0, 0), EINVAL);
	STILL(rereg(w.theirs.mr, REREG_TRANS, NULL, hole, SIZE,
		    (uintptr_t)hole, 0), EFAULT);
	STILL(rereg(w.theirs.mr, REREG_TRANS, NULL, ro, SIZE, (uintptr_t)ro,
		    0), EFAULT);
	STILL(rereg(w.theirs.mr, REREG_TRANS, NULL, w.theirs.p, 0,
		    (uintptr_t)w.theirs.p, 0), EINVAL);
	STILL(rereg(w.theirs.mr, REREG_TRANS, NULL, w.theirs.p, SIZE,
		    (uintptr_t)w.theirs.p + 1, 0), EINVAL);
	STILL(rereg(w.theirs.mr, REREG_ACCESS, NULL, NULL, 0, 0,
		    IBV_ACCESS_REMOTE_WRITE), EINVAL);
	STILL(rereg(w.theirs.mr, REREG_ACCESS, NULL, NULL, 0, 0, 1 << 12),
	      EINVAL);
	STILL(rereg(w.theirs.mr, REREG_PD, &foreign, NULL, 0, 0, 0), EINVAL);
	STILL(rereg(w.theirs.mr, REREG_TRANS | REREG_PD, &foreign, w.mine.p,
		    SIZE, (uintptr_t)w.mine.p, 0), EINVAL);
	world_free(&w);
}

/* The region of a bound window stays as it is: EBUSY, and all goes on. */
static void window_bound(const void *arg)
{
	const enum ibv_mw_type *type = arg;
	uint8_t *new = pages(SIZE);
	struct ibv_mw *mw;
	struct world w;
	uint32_t rkey;
	int i;

	world_new(&w);
	mw = ibv_alloc_mw(w.c->pd, *type);
	CHECK(mw);
	rkey = ibv_inc_rkey(mw->rkey);
	OK(post_bind(&w.b, mw, rkey, w.theirs.mr, w.theirs.p, SIZE,
		     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
	EXPECT_WC(w.b.scq, 0xb1d, IBV_WC_SUCCESS);
	for (i = 1; i < 8; i++) {
		CHECK_EQ(rereg(w.theirs.mr, i, w.pd2, new, SIZE,
			       (uintptr_t)new, IBV_ACCESS_LOCAL_WRITE), EBUSY);
		WORKS(false, w.theirs.p, SIZE);
		DO(&w.a, .opcode = IBV_WR_RDMA_READ, .laddr = w.mine.p,
		   .lkey = w.mine.mr->lkey, .len = SIZE, .rkey = rkey,
		   .raddr = (uintptr_t)w.theirs.p);
	}
	OK(ibv_dealloc_mw(mw));
	OK(rereg(w.theirs.mr, REREG_TRANS, NULL, new, SIZE, (uintptr_t)new,
		 0));
	WORKS(false, new, SIZE);
	world_free(&w);
}

/* --- races ------------------------------------------------------------------ */

struct race {
	struct ibv_mr mr;
	struct ibv_pd *pd[2];
	uint8_t *p[2];
	volatile bool stop;
	volatile unsigned int done, odd, shown;
};

static void *race_rereg(void *arg)
{
	struct race *r = arg;
	struct ibv_mr mr = r->mr;
	unsigned int i;

	for (i = 0; !r->stop; i++) {
		int err = rereg(&mr, i % 7 + 1, r->pd[i & 1], r->p[i / 2 & 1],
				SIZE, 0x1000000, MR_ALL);

		/* the core locks the handle by trying */
		if (!err)
			r->done++;
		else if (err != EBUSY)
			r->odd = err;
	}
	return NULL;
}

static void *race_show(void *arg)
{
	struct race *r = arg;

	while (!r->stop) {
		CHECK(!system("rdma -dd resource show mr >/dev/null"));
		CHECK(!system("rdma statistic show mr >/dev/null"));
		r->shown++;
	}
	return NULL;
}

/* Whoever looks at it sees a region, whatever it is just becoming. */
static void shown(const void *arg)
{
	int access[] = { MR_ALL, MR_ALL | IBV_ACCESS_ON_DEMAND };
	pthread_t looker;
	struct race r = {};
	uint64_t limit;
	struct world w;
	unsigned int i;
	uint8_t *new = pages(SIZE);
	struct ibv_device_attr_ex attr;

	(void)arg;
	world_new(&w);
	OK(ibv_query_device_ex(w.c->ibv, NULL, &attr));
	if (!(attr.odp_caps.general_caps & IBV_ODP_SUPPORT))
		access[1] = MR_ALL;
	CHECK(!pthread_create(&looker, NULL, race_show, &r));
	limit = t_now() + t_patience();
	for (i = 0; i < t_rounds(200) || r.shown < 3; i++) {
		CHECK(t_now() < limit);
		OK(rereg(w.theirs.mr, 7, i & 1 ? w.pd2 : w.c->pd,
			 i & 2 ? new : w.theirs.p, SIZE, 0x1000000,
			 access[i / 4 & 1]));
	}
	/* and goes while it is looked at */
	while (i--) {
		struct ibv_mr *mr = ibv_reg_mr(w.c->pd, new, SIZE,
					       access[i & 1]);

		CHECK(mr);
		OK(ibv_dereg_mr(mr));
	}
	r.stop = true;
	CHECK(!pthread_join(looker, NULL));
	t_note("looked at %u times", r.shown);
	world_free(&w);
	munmap(new, SIZE);
}

/* Two threads re-register one MR, a third sends over it, a last deregisters. */
static void races(const void *arg)
{
	unsigned int round, i, n = t_rounds(8), hits = 0;
	int64_t pins = t_pinned();

	(void)arg;
	for (round = 0; round < n; round++) {
		struct race r = {};
		pthread_t threads[2];
		uint64_t limit;
		struct world w;
		struct ibv_wc wc;

		world_new(&w);
		r.mr = *w.theirs.mr;
		r.pd[0] = w.c->pd;
		r.pd[1] = w.pd2;
		r.p[0] = w.theirs.p;
		r.p[1] = pages(SIZE);
		OK(rereg(&r.mr, 7, r.pd[0], r.p[0], SIZE, 0x1000000, MR_ALL));
		for (i = 0; i < 2; i++)
			CHECK(!pthread_create(&threads[i], NULL, race_rereg,
					      &r));
		limit = t_now() + t_patience();
		for (i = 0; i < t_rounds(60) || r.done < 10; i++) {
			struct op op = {
				.opcode = IBV_WR_RDMA_WRITE, .laddr = w.mine.p,
				.len = SIZE, .lkey = w.mine.mr->lkey,
				.raddr = 0x1000000, .rkey = r.mr.rkey,
			};

			CHECK(t_now() < limit);
			OK(post(&w.a, &op));
			wc = NEXT_WC(w.a.scq);
			if (wc.status == IBV_WC_SUCCESS) {
				hits++;
				continue;
			}
			CHECK_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
			pair_again(&w.a, &w.b);
		}
		/* dereg meets them as well */
		while (ibv_dereg_mr(w.theirs.mr) == EBUSY)
			;
		w.theirs.mr = NULL;
		t_sleep(2);
		r.stop = true;
		for (i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		CHECK(r.odd == 0 || r.odd == ENOENT || r.odd == EINVAL);
		CHECK(r.done);
		munmap(r.p[1], SIZE);
		world_free(&w);
		CHECK_EQ(t_pinned(), pins);
	}
	t_note("%u writes hit the region while it changed", hits);
}

static const enum ibv_mw_type type1 = IBV_MW_TYPE_1, type2 = IBV_MW_TYPE_2;

static const struct t_case cases[] = {
	{ "access", change_access, NULL, 0 },
	{ "pd", change_pd, NULL, 0 },
	{ "pd_count_follows", pd_count_follows, NULL, 0 },
	{ "translation", change_translation, NULL, 0 },
	{ "all", change_all, NULL, 0 },
	{ "combinations", combinations, NULL, 0 },
	{ "refused_is_not_counted", refused_is_not_counted, NULL, 0 },
	{ "old_receive", old_receive, NULL, 0 },
	{ "refused_changes_nothing", refused, NULL, 0 },
	{ "busy_type1", window_bound, &type1, 0 },
	{ "busy_type2", window_bound, &type2, 0 },
	{ "shown", shown, NULL, 40 },
	{ "races", races, NULL, 30 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
