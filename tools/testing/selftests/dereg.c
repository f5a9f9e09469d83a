// SPDX-License-Identifier: GPL-2.0
/*
 * dereg.c - the deregistration contract, DESIGN.md section 3, ibv_dereg_mr(3)
 *
 * Success: no key, no access, no pin, no count in the PD.  EBUSY while a window
 * is bound: nothing has changed.
 */
#include <linux/capability.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "world.h"

#define SIZE (64 * KiB)

static void world_new(struct world *w)
{
	struct conf conf = conf_of(RC);

	world_open(w, &conf, SIZE);
	fill(w->mine.p, SIZE, 1);
	fill(w->theirs.p, SIZE, 2);
}

/* WRITE and READ through @rkey at @addr both work. */
static void works(struct world *w, uint32_t rkey, void *addr, size_t len)
{
	fill(w->mine.p, len, 3);
	DO(&w->a, .opcode = IBV_WR_RDMA_WRITE, .laddr = w->mine.p,
	   .lkey = w->mine.mr->lkey, .len = len, .raddr = (uintptr_t)addr,
	   .rkey = rkey);
	CHECK_EQ(filled(addr, len, 3), -1);
	fill(addr, len, 4);
	DO(&w->a, .opcode = IBV_WR_RDMA_READ, .laddr = w->mine.p,
	   .lkey = w->mine.mr->lkey, .len = len, .raddr = (uintptr_t)addr,
	   .rkey = rkey);
	CHECK_EQ(filled(w->mine.p, len, 4), -1);
}

/* @reason: 0 for any */
static void refused(struct world *w, uint32_t rkey, const void *addr)
{
	FAIL_WITH(&w->a, IBV_WC_REM_ACCESS_ERR, -1,
		  .opcode = IBV_WR_RDMA_READ, .wr_id = 77, .laddr = w->mine.p,
		  .lkey = w->mine.mr->lkey, .len = 8, .raddr = (uintptr_t)addr,
		  .rkey = rkey);
	pair_again(&w->a, &w->b);
}

static void bind2(struct world *w, struct ibv_mw *mw, void *addr, size_t len)
{
	uint32_t rkey = ibv_inc_rkey(mw->rkey);

	OK(post_bind(&w->b, mw, rkey, w->theirs.mr, addr, len,
		     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
	EXPECT_WC(w->b.scq, 0xb1d, IBV_WC_SUCCESS);
	mw->rkey = rkey;
}

static void bind1(struct world *w, struct ibv_mw *mw, void *addr, size_t len)
{
	struct ibv_mw_bind bind = {
		.wr_id = 0xb1e,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = w->theirs.mr,
			.addr = (uintptr_t)addr,
			.length = len,
			.mw_access_flags = len ? IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_WRITE : 0,
		},
	};

	OK(ibv_bind_mw(w->b.qp, mw, &bind));
	EXPECT_WC(w->b.scq, 0xb1e, IBV_WC_SUCCESS);
}

/* --- success ---------------------------------------------------------------- */

static void key_dies_remote(const void *arg)
{
	struct world w;
	uint32_t rkey;

	(void)arg;
	world_new(&w);
	works(&w, w.theirs.mr->rkey, w.theirs.p, SIZE);
	rkey = w.theirs.mr->rkey;
	OK(ibv_dereg_mr(w.theirs.mr));
	w.theirs.mr = NULL;
	FAIL_WITH(&w.a, IBV_WC_REM_ACCESS_ERR, -1, .opcode = IBV_WR_RDMA_WRITE,
		  .laddr = w.mine.p, .lkey = w.mine.mr->lkey, .len = 1,
		  .raddr = (uintptr_t)w.theirs.p, .rkey = rkey);
	expect_state(&w.a, IBV_QPS_ERR);
	expect_state(&w.b, IBV_QPS_ERR);
	EXPECT_EVENT(w.c, IBV_EVENT_QP_ACCESS_ERR, w.b.qp);
	pair_again(&w.a, &w.b);
	refused(&w, rkey, w.theirs.p);
	world_free(&w);
}

static void key_dies_local(const void *arg)
{
	struct world w;
	uint32_t lkey;

	(void)arg;
	world_new(&w);
	lkey = w.mine.mr->lkey;
	OK(ibv_dereg_mr(w.mine.mr));
	w.mine.mr = NULL;
	FAIL_WITH(&w.a, IBV_WC_LOC_PROT_ERR, -1, .opcode = IBV_WR_RDMA_WRITE,
		  .laddr = w.mine.p, .lkey = lkey, .len = 1,
		  .raddr = (uintptr_t)w.theirs.p, .rkey = w.theirs.mr->rkey);
	pair_again(&w.a, &w.b);
	/* and in a receive: the receiver's protection, the sender's operation */
	OK(post_recv(&w.b, 5, w.mine.p, 64, lkey));
	FAIL_WITH(&w.a, IBV_WC_REM_OP_ERR, -1, .opcode = IBV_WR_SEND,
		  .laddr = w.theirs.p, .lkey = w.theirs.mr->lkey, .len = 8);
	EXPECT_WC(w.b.rcq, 5, IBV_WC_LOC_PROT_ERR);
	world_free(&w);
}

static void pins_released(const void *arg)
{
	struct ctx *c = ctx_open(NULL);
	int64_t pins = t_pinned(), vmpin = t_status_kib("VmPin");
	static const struct { size_t off, len; } sizes[] = {
		{ 0, 1 }, { 0, 4096 }, { 1, 4096 }, { 4095, 2 }, { 4095, 1 },
		{ 7, 3 * 4096 - 7 }, { 2048, 64 * KiB }, { 13, 1 * MiB - 99 },
		{ 0, 2 * MiB }, { 4093, 4 * MiB + 7 },
	};
	uint8_t *p = pages(5 * MiB);
	size_t i;

	(void)arg;
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		size_t off = sizes[i].off, len = sizes[i].len;
		int64_t n = (off % 4096 + len + 4095) / 4096;
		struct ibv_mr *mr = ibv_reg_mr(c->pd, p + off, len, MR_ALL);

		CHECK(mr);
		CHECK_EQ(t_pinned() - pins, n);
		CHECK_EQ(t_status_kib("VmPin") - vmpin, n * 4);
		OK(ibv_dereg_mr(mr));
		CHECK_EQ(t_pinned(), pins);
		CHECK_EQ(t_status_kib("VmPin"), vmpin);
	}
	ctx_close(c);
}

static void pd_freed(const void *arg)
{
	struct ctx *c = ctx_open(NULL);
	struct conf conf = conf_of(RC);
	struct ibv_srq_init_attr srq_init = {
		.attr = { .max_wr = 4, .max_sge = 1 },
	};
	struct ibv_ah_attr ah_attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = c->gid, .sgid_index = c->gid_index },
	};
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	struct ibv_mw *mw;
	struct end e;
	struct buf b;

	(void)arg;
#define BUSY CHECK_EQ(ibv_dealloc_pd(c->pd), EBUSY)
	b = buf_new(c->pd, 4096, MR_ALL);
	BUSY;
	buf_free(&b);
	mw = ibv_alloc_mw(c->pd, IBV_MW_TYPE_1);
	CHECK(mw);
	BUSY;
	OK(ibv_dealloc_mw(mw));
	mw = ibv_alloc_mw(c->pd, IBV_MW_TYPE_2);
	CHECK(mw);
	BUSY;
	OK(ibv_dealloc_mw(mw));
	e = end_new(c, &conf);
	BUSY;
	end_free(&e);
	srq = ibv_create_srq(c->pd, &srq_init);
	CHECK(srq);
	BUSY;
	OK(ibv_destroy_srq(srq));
	ah = ibv_create_ah(c->pd, &ah_attr);
	CHECK(ah);
	BUSY;
	OK(ibv_destroy_ah(ah));
#undef BUSY
	ctx_close(c);
}

/* --- busy ------------------------------------------------------------------- */

static void busy_twice(struct world *w, uint32_t window)
{
	int64_t pins = t_pinned();
	int i;

	for (i = 0; i < 2; i++) {
		CHECK_EQ(ibv_dereg_mr(w->theirs.mr), EBUSY);
		CHECK_EQ(errno, EBUSY);
		works(w, window, w->theirs.p + 4096, 4096);
		works(w, w->theirs.mr->rkey, w->theirs.p, SIZE);
		/* as an lkey, for sending and for receiving */
		DO(&w->b, .opcode = IBV_WR_RDMA_WRITE, .laddr = w->theirs.p,
		   .lkey = w->theirs.mr->lkey, .len = 100,
		   .raddr = (uintptr_t)w->mine.p, .rkey = w->mine.mr->rkey);
		OK(post_recv(&w->b, 9, w->theirs.p, 100, w->theirs.mr->lkey));
		DO(&w->a, .opcode = IBV_WR_SEND, .laddr = w->mine.p,
		   .lkey = w->mine.mr->lkey, .len = 100);
		EXPECT_WC(w->b.rcq, 9, IBV_WC_SUCCESS);
		CHECK_EQ(t_pinned(), pins);
	}
}

static void now_it_goes(struct world *w, uint32_t window)
{
	OK(ibv_dereg_mr(w->theirs.mr));
	w->theirs.mr = NULL;
	refused(w, window, w->theirs.p + 4096);
}

static void busy_type1_unbind(const void *arg)
{
	struct ibv_mw *mw;
	struct world w;
	uint32_t rkey;

	(void)arg;
	world_new(&w);
	mw = ibv_alloc_mw(w.c->pd, IBV_MW_TYPE_1);
	CHECK(mw);
	bind1(&w, mw, w.theirs.p + 4096, 4096);
	rkey = mw->rkey;
	busy_twice(&w, rkey);
	bind1(&w, mw, w.theirs.p, 0);
	now_it_goes(&w, rkey);
	OK(ibv_dealloc_mw(mw));
	world_free(&w);
}

static void busy_dealloc(const void *arg)
{
	const enum ibv_mw_type *type = arg;
	struct ibv_mw *mw;
	struct world w;
	uint32_t rkey;

	world_new(&w);
	mw = ibv_alloc_mw(w.c->pd, *type);
	CHECK(mw);
	if (*type == IBV_MW_TYPE_1)
		bind1(&w, mw, w.theirs.p + 4096, 4096);
	else
		bind2(&w, mw, w.theirs.p + 4096, 4096);
	rkey = mw->rkey;
	busy_twice(&w, rkey);
	OK(ibv_dealloc_mw(mw));
	now_it_goes(&w, rkey);
	world_free(&w);
}

enum unbind { LOCAL_INV, SEND_INV, EMPTY_BIND };

static void busy_type2(const void *arg)
{
	const enum unbind *how = arg;
	struct ibv_mw *mw;
	struct world w;
	uint32_t rkey;

	world_new(&w);
	mw = ibv_alloc_mw(w.c->pd, IBV_MW_TYPE_2);
	CHECK(mw);
	bind2(&w, mw, w.theirs.p + 4096, 4096);
	rkey = mw->rkey;
	busy_twice(&w, rkey);
	switch (*how) {
	case LOCAL_INV:
		DO(&w.b, .opcode = IBV_WR_LOCAL_INV, .rkey = rkey);
		break;
	case SEND_INV: {
		struct ibv_wc wc;

		OK(post_recv(&w.b, 6, NULL, 0, 0));
		DO(&w.a, .opcode = IBV_WR_SEND_WITH_INV, .rkey = rkey);
		wc = NEXT_WC(w.b.rcq);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK(wc.wc_flags & IBV_WC_WITH_INV);
		CHECK_EQ(wc.invalidated_rkey, rkey);
		break;
	}
	case EMPTY_BIND:
		OK(post_bind(&w.b, mw, ibv_inc_rkey(rkey), w.theirs.mr,
			     w.theirs.p, 0, 0));
		EXPECT_WC(w.b.scq, 0xb1d, IBV_WC_SUCCESS);
	}
	now_it_goes(&w, rkey);
	OK(ibv_dealloc_mw(mw));
	world_free(&w);
}

static void busy_two_windows(const void *arg)
{
	struct ibv_mw *one, *two;
	struct world w;

	(void)arg;
	world_new(&w);
	one = ibv_alloc_mw(w.c->pd, IBV_MW_TYPE_1);
	two = ibv_alloc_mw(w.c->pd, IBV_MW_TYPE_2);
	CHECK(one && two);
	bind1(&w, one, w.theirs.p + 4096, 4096);
	bind2(&w, two, w.theirs.p + 4096, 4096);
	CHECK_EQ(ibv_dereg_mr(w.theirs.mr), EBUSY);
	OK(ibv_dealloc_mw(one));
	CHECK_EQ(ibv_dereg_mr(w.theirs.mr), EBUSY);
	works(&w, two->rkey, w.theirs.p + 4096, 4096);
	OK(ibv_dealloc_mw(two));
	OK(ibv_dereg_mr(w.theirs.mr));
	w.theirs.mr = NULL;
	world_free(&w);
}

/* A type 1 window moves to another region: the first one is free again. */
static void busy_moves(const void *arg)
{
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct world w;

	(void)arg;
	world_new(&w);
	mw = ibv_alloc_mw(w.c->pd, IBV_MW_TYPE_1);
	CHECK(mw);
	bind1(&w, mw, w.theirs.p, 4096);
	mr = w.theirs.mr;
	w.theirs.mr = ibv_reg_mr(w.c->pd, w.theirs.p, SIZE, MR_ALL);
	CHECK(w.theirs.mr);
	CHECK_EQ(ibv_dereg_mr(mr), EBUSY);
	bind1(&w, mw, w.theirs.p, 4096);
	OK(ibv_dereg_mr(mr));
	CHECK_EQ(ibv_dereg_mr(w.theirs.mr), EBUSY);
	works(&w, mw->rkey, w.theirs.p, 4096);
	OK(ibv_dealloc_mw(mw));
	world_free(&w);
}

static void qp_destroy_kills_window(const void *arg)
{
	struct conf conf = conf_of(RC);
	struct end x, y;
	struct ibv_mw *mw;
	struct world w;
	uint64_t start;
	uint32_t rkey;

	(void)arg;
	world_new(&w);
	pair_new(w.c, &conf, &x, &y);
	mw = ibv_alloc_mw(w.c->pd, IBV_MW_TYPE_2);
	CHECK(mw);
	bind2(&w, mw, w.theirs.p, 4096);
	rkey = mw->rkey;
	CHECK_EQ(ibv_dereg_mr(w.theirs.mr), EBUSY);
	start = t_now();
	OK(ibv_destroy_qp(w.b.qp));
	t_note("destroy_qp with a window bound: %llu ms",
	       (unsigned long long)(t_now() - start));
	CHECK(t_now() - start < 1000 * t_slow());
	w.b.qp = NULL;
	FAIL_WITH(&x, IBV_WC_REM_ACCESS_ERR, -1, .opcode = IBV_WR_RDMA_READ,
		  .laddr = w.mine.p, .lkey = w.mine.mr->lkey, .len = 8,
		  .raddr = (uintptr_t)w.theirs.p, .rkey = rkey);
	OK(ibv_dereg_mr(w.theirs.mr));
	w.theirs.mr = NULL;
	OK(ibv_dealloc_mw(mw));
	pair_free(&x, &y);
	world_free(&w);
}

/* --- during traffic ----------------------------------------------------------- */

struct traffic {
	enum ibv_wr_opcode opcode;
	bool local;	/* the region that goes is the requester's own */
};

/*
 * The region that goes is many times the same few pages, so gigabytes of traffic
 * need no memory.  After dereg has returned the pages get a value that no message
 * holds, and any message that still got at them would show.
 */
static void dereg_in_traffic(const void *arg)
{
	const struct traffic *t = arg;
	enum ibv_wc_status want = t->local ? IBV_WC_LOC_PROT_ERR :
					     IBV_WC_REM_ACCESS_ERR;
	size_t unit = 256 * KiB, len = t_span();
	struct conf conf = conf_of(RC);
	struct ctx *c = ctx_open(NULL);
	struct buf far, near, *gone, *stays;
	bool into_gone;
	uint64_t start, took, limit;
	struct end a, b;
	struct ibv_wc wc;
	uint8_t *again;
	int i, n = 60;

	pair_new(c, &conf, &a, &b);
	near = buf_sparse(c->pd, len, unit, MR_ALL);
	far = buf_sparse(c->pd, len, unit, MR_ALL);
	gone = t->local ? &near : &far;
	stays = t->local ? &far : &near;
	into_gone = (t->opcode == IBV_WR_RDMA_READ) == t->local;
	memset(into_gone ? stays->p : gone->p, 0x11, unit);
	for (i = 0; i < n; i++) {
		struct op op = {
			.opcode = t->opcode, .wr_id = i, .laddr = near.p,
			.len = len, .lkey = near.mr->lkey,
			.raddr = (uintptr_t)far.p, .rkey = far.mr->rkey,
		};

		OK(post(&a, &op));
	}
	/* until bytes have moved */
	limit = t_now() + t_patience();
	while (*(volatile uint8_t *)(into_gone ? gone : stays)->p != 0x11) {
		CHECK(t_now() < limit);
		usleep(100);
	}
	start = t_now();
	OK(ibv_dereg_mr(gone->mr));
	took = t_now() - start;
	gone->mr = NULL;
	memset(gone->p, 0xee, unit);
	t_note("dereg in the middle of %d x %zu MiB: %llu ms", n, len >> 20,
	       (unsigned long long)took);
	CHECK(took < 2000 * t_slow());

	/* it ends with the error, and soon: not after all the bytes */
	do {
		wc = NEXT_WC(a.scq);
	} while (wc.status == IBV_WC_SUCCESS);
	CHECK_EQ(wc.status, want);
	for (i = wc.wr_id + 1; i < n; i++)
		EXPECT_WC(a.scq, i, IBV_WC_WR_FLUSH_ERR);
	expect_state(&a, IBV_QPS_ERR);
	CHECK_EQ(only(gone->p, unit, 0xee), -1);
	/* what has not arrived yet is as it was: nothing is of later */
	if (!into_gone)
		CHECK(!memchr(stays->p, 0xee, unit));

	/* other pages at the same place are nobody's */
	again = mmap(gone->p, len, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(again == gone->p);
	pair_again(&a, &b);
	FAIL_WITH(&a, want, -1, .opcode = t->opcode, .laddr = near.p, .len = 64,
		  .lkey = near.mr ? near.mr->lkey : 0x77777700,
		  .raddr = (uintptr_t)far.p,
		  .rkey = far.mr ? far.mr->rkey : 0x77777700);
	CHECK_EQ(only(gone->p, 4096, 0), -1);
	pair_free(&a, &b);
	buf_free(&near);
	buf_free(&far);
	ctx_close(c);
}

/* --- bind races with dereg ------------------------------------------------------ */

struct race {
	struct ibv_mr *mr;
	pthread_barrier_t go;
	unsigned int delay;
	int err;
};

static void *race_dereg(void *arg)
{
	struct race *r = arg;
	volatile unsigned int i;

	pthread_barrier_wait(&r->go);
	for (i = 0; i < r->delay; i++)
		;
	r->err = ibv_dereg_mr(r->mr);
	return NULL;
}

static void bind_races_dereg(const void *arg)
{
	const enum ibv_mw_type *type = arg;
	unsigned int i, n = t_rounds(400), bound = 0;
	struct race r = {};
	struct world w;

	world_new(&w);
	pthread_barrier_init(&r.go, NULL, 2);
	for (i = 0; i < n; i++) {
		struct ibv_mw *mw = ibv_alloc_mw(w.c->pd, *type);
		uint32_t rkey;
		pthread_t thread;
		struct ibv_wc wc;

		CHECK(mw);
		rkey = ibv_inc_rkey(mw->rkey);
		r.mr = w.theirs.mr;
		r.delay = rand() % 20000;
		CHECK(!pthread_create(&thread, NULL, race_dereg, &r));
		pthread_barrier_wait(&r.go);
		OK(post_bind(&w.b, mw, rkey, w.theirs.mr, w.theirs.p, 4096,
			     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
		wc = NEXT_WC(w.b.scq);
		pthread_join(thread, NULL);
		if (wc.status == IBV_WC_SUCCESS) {
			bound++;
			CHECK_EQ(r.err, EBUSY);
			works(&w, rkey, w.theirs.p, 64);
			OK(ibv_dealloc_mw(mw));
			OK(ibv_dereg_mr(w.theirs.mr));
		} else {
			CHECK_EQ(wc.status, IBV_WC_MW_BIND_ERR);
			CHECK_EQ(r.err, 0);
			pair_again(&w.a, &w.b);
			refused(&w, rkey, w.theirs.p);
			OK(ibv_dealloc_mw(mw));
		}
		w.theirs.mr = ibv_reg_mr(w.c->pd, w.theirs.p, SIZE, MR_ALL);
		CHECK(w.theirs.mr);
	}
	t_note("%u races: the bind won %u", n, bound);
	world_free(&w);
}

/* --- keys ------------------------------------------------------------------------ */

static void key_not_reused(const void *arg)
{
	unsigned int i, n = t_rounds(20000);
	struct world w;
	uint32_t old;

	(void)arg;
	world_new(&w);
	old = w.theirs.mr->rkey;
	OK(ibv_dereg_mr(w.theirs.mr));
	for (i = 0; i < n; i++) {
		w.theirs.mr = ibv_reg_mr(w.c->pd, w.theirs.p, 4096, MR_ALL);
		CHECK(w.theirs.mr);
		CHECK(w.theirs.mr->rkey != old && w.theirs.mr->lkey != old);
		if (i % (n / 10) == 0)
			refused(&w, old, w.theirs.p);
		if (i + 1 < n)
			OK(ibv_dereg_mr(w.theirs.mr));
	}
	works(&w, w.theirs.mr->rkey, w.theirs.p, 4096);
	world_free(&w);
}

static void many_live(const void *arg)
{
	unsigned int i, n = t_rounds(3000);
	struct ibv_mr **mrs = calloc(n, sizeof(*mrs));
	struct ctx *c = ctx_open(NULL);
	uint8_t *p = pages(64 * KiB);

	(void)arg;
	for (i = 0; i < n; i++) {
		mrs[i] = ibv_reg_mr(c->pd, p + i % 60000, 1 + i % 5000, MR_ALL);
		CHECK(mrs[i]);
	}
	for (i = 0; i < n; i++)
		OK(ibv_dereg_mr(mrs[(i * 7919ull) % n] ? mrs[(i * 7919ull) % n] :
				mrs[i]));
	ctx_close(c);
}

/* --- which memory --------------------------------------------------------------- */

static void any_alignment(const void *arg)
{
	static const size_t offs[] = { 0, 1, 7, 8, 2048, 4095, 4096, 8191 };
	static const size_t lens[] = { 1, 2, 4095, 4096, 4097, 12288, 30000 };
	struct world w;
	size_t i, j;

	(void)arg;
	world_new(&w);
	for (i = 0; i < ARRAY_SIZE(offs); i++) {
		for (j = 0; j < ARRAY_SIZE(lens); j++) {
			uint8_t *p = w.theirs.p + offs[i];
			size_t len = lens[j];
			struct ibv_mr *mr = ibv_reg_mr(w.c->pd, p, len, MR_ALL);

			CHECK(mr);
			memset(w.theirs.p, 0x33, SIZE);
			works(&w, mr->rkey, p, len);
			CHECK_EQ(only(w.theirs.p, offs[i], 0x33), -1);
			CHECK_EQ(only(p + len, 4096, 0x33), -1);
			/* and used as an lkey, in two halves */
			DO(&w.a, .opcode = IBV_WR_RDMA_WRITE, .laddr = p,
			   .lkey = mr->lkey, .len = len,
			   .raddr = (uintptr_t)w.mine.p,
			   .rkey = w.mine.mr->rkey);
			CHECK_EQ(memcmp(p, w.mine.p, len), 0);
			/* one beyond each edge */
			refused(&w, mr->rkey, p + len - 7);
			refused(&w, mr->rkey, p - 1);
			OK(ibv_dereg_mr(mr));
		}
	}
	world_free(&w);
}

/* Keys whose addresses are not those of the memory. */
static void other_iova(const void *arg)
{
	static const uint64_t iovas[] = {
		0, 0x10, 0xffe, 0x1234567, 0xffffffff000ull,
		0x7fffffffffff0000ull, 0xffffffffffff0001ull,
	};
	struct world w;
	size_t i, len = 3 * 4096;

	(void)arg;
	world_new(&w);
	for (i = 0; i < ARRAY_SIZE(iovas); i++) {
		uint64_t iova = iovas[i];
		/* the core wants the same offset in the page */
		size_t off = iova % 4096;
		uint8_t *p = w.theirs.p + off;
		struct ibv_mr *mr = ibv_reg_mr_iova(w.c->pd, p, len, iova,
						    MR_ALL);

		if (!mr)
			t_fail(__FILE__, __LINE__, "iova %#llx: %s",
			       (unsigned long long)iova, strerror(errno));
		memset(w.theirs.p, 0x44, SIZE);
		fill(w.mine.p, len, 9);
		DO(&w.a, .opcode = IBV_WR_RDMA_WRITE, .laddr = w.mine.p,
		   .lkey = w.mine.mr->lkey, .len = len, .raddr = iova,
		   .rkey = mr->rkey);
		CHECK_EQ(filled(p, len, 9), -1);
		CHECK_EQ(only(w.theirs.p, off, 0x44), -1);
		CHECK_EQ(only(p + len, 4096, 0x44), -1);
		/* its middle as an lkey */
		memset(w.mine.p, 0, SIZE);
		DO(&w.a, .opcode = IBV_WR_RDMA_WRITE,
		   .laddr = (void *)(uintptr_t)(iova + 4090), .lkey = mr->lkey,
		   .len = 100, .raddr = (uintptr_t)w.mine.p,
		   .rkey = w.mine.mr->rkey);
		CHECK_EQ(memcmp(p + 4090, w.mine.p, 100), 0);
		/* outside: one below, one beyond, around the end of the numbers */
		refused(&w, mr->rkey, (void *)(uintptr_t)(iova - 1));
		refused(&w, mr->rkey, (void *)(uintptr_t)(iova + len - 7));
		refused(&w, mr->rkey, (void *)(uintptr_t)(iova - 4096));
		refused(&w, mr->rkey, (void *)~0ul);
		OK(ibv_dereg_mr(mr));
	}
	world_free(&w);
}

static void huge_pages(const void *arg)
{
	size_t huge = 2 * MiB, len = 4 * MiB;
	struct world w;
	uint8_t *p;
	struct ibv_mr *mr;
	FILE *f = fopen("/proc/sys/vm/nr_hugepages", "w");

	(void)arg;
	if (f) {
		fprintf(f, "4\n");
		fclose(f);
	}
	world_new(&w);
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE |
		 MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (p == MAP_FAILED) {
		t_note("no hugetlb: transparent ones, where there are any");
		p = pages(len + huge);
		p = (uint8_t *)(((uintptr_t)p + huge - 1) & ~(huge - 1));
		madvise(p, len, MADV_HUGEPAGE);
	}
	mr = ibv_reg_mr(w.c->pd, p + 5, len - 9, MR_ALL);
	CHECK(mr);
	works(&w, mr->rkey, p + huge - 30000, 60000);
	works(&w, mr->rkey, p + 5, 4096);
	works(&w, mr->rkey, p + len - 9 - 4096, 4096);
	OK(ibv_dereg_mr(mr));
	world_free(&w);
}

static void gigabytes(const void *arg)
{
	size_t len = t_span() >= GiB ? 5 * GiB : t_span(), unit = 4 * MiB;
	uint64_t start = t_now(), took;
	struct world w;
	struct buf b;

	(void)arg;
	world_new(&w);
	b = buf_sparse(w.c->pd, len, unit, MR_ALL);
	took = t_now() - start;
	works(&w, b.mr->rkey, b.p, SIZE);
	works(&w, b.mr->rkey, b.p + len - SIZE, SIZE);
	works(&w, b.mr->rkey, b.p + len / 2 - 77, SIZE);
	start = t_now();
	OK(ibv_dereg_mr(b.mr));
	t_note("%zu MiB: registered in %llu ms, gone in %llu ms", len >> 20,
	       (unsigned long long)took,
	       (unsigned long long)(t_now() - start));
	b.mr = NULL;
	buf_free(&b);
	world_free(&w);
}

static void files_and_shared(const void *arg)
{
	char name[] = "/tmp/mrsoft-dereg-XXXXXX";
	int fd = mkstemp(name), shm = memfd_create("shared", 0);
	struct world w;
	int i;

	(void)arg;
	CHECK(fd >= 0 && shm >= 0);
	unlink(name);
	CHECK(!ftruncate(fd, SIZE) && !ftruncate(shm, SIZE));
	world_new(&w);
	for (i = 0; i < 2; i++) {
		uint8_t *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
				  MAP_SHARED, i ? shm : fd, 0);
		struct ibv_mr *mr;
		char back[100];

		CHECK(p != MAP_FAILED);
		mr = ibv_reg_mr(w.c->pd, p + 3, SIZE - 10, MR_ALL);
		CHECK(mr);
		works(&w, mr->rkey, p + 3, SIZE - 10);
		CHECK_EQ(pread(i ? shm : fd, back, 100, 5000), 100);
		CHECK_EQ(memcmp(back, p + 5000, 100), 0);
		/* gone from the address space, not from the MR */
		munmap(p, SIZE);
		fill(w.mine.p, 64, 8);
		DO(&w.a, .opcode = IBV_WR_RDMA_WRITE, .laddr = w.mine.p,
		   .lkey = w.mine.mr->lkey, .len = 64,
		   .raddr = (uintptr_t)p + 4096, .rkey = mr->rkey);
		CHECK_EQ(pread(i ? shm : fd, back, 64, 4096), 64);
		CHECK_EQ(filled(back, 64, 8), -1);
		OK(ibv_dereg_mr(mr));
		close(i ? shm : fd);
	}
	world_free(&w);
}

static void read_only(const void *arg)
{
	struct world w;
	struct ibv_mr *mr;
	uint8_t *p;

	(void)arg;
	world_new(&w);
	p = pages(8192);
	fill(p, 8192, 6);
	CHECK(!mprotect(p, 8192, PROT_READ));
	errno = 0;
	CHECK(!ibv_reg_mr(w.c->pd, p, 8192, IBV_ACCESS_LOCAL_WRITE));
	CHECK_EQ(errno, EFAULT);
	mr = ibv_reg_mr(w.c->pd, p, 8192, IBV_ACCESS_REMOTE_READ);
	CHECK(mr);
	DO(&w.a, .opcode = IBV_WR_RDMA_READ, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = 8192, .raddr = (uintptr_t)p,
	   .rkey = mr->rkey);
	CHECK_EQ(filled(w.mine.p, 8192, 6), -1);
	/* as a sink it is not writable even to its owner */
	FAIL_WITH(&w.a, IBV_WC_LOC_PROT_ERR, MRSOFT_R_NO_LOCAL_WRITE,
		  .opcode = IBV_WR_RDMA_READ, .laddr = p, .lkey = mr->lkey,
		  .len = 8, .raddr = (uintptr_t)w.theirs.p,
		  .rkey = w.theirs.mr->rkey);
	OK(ibv_dereg_mr(mr));
	world_free(&w);
}

static void no_memory_there(const void *arg)
{
	struct ctx *c = ctx_open(NULL);
	int64_t pins = t_pinned(), vmpin = t_status_kib("VmPin");
	uint8_t *p = pages(16 * 4096);

	(void)arg;
	/* a hole at the end */
	munmap(p + 15 * 4096, 4096);
	errno = 0;
	CHECK(!ibv_reg_mr(c->pd, p, 16 * 4096, MR_ALL));
	CHECK_EQ(errno, EFAULT);
	errno = 0;
	CHECK(!ibv_reg_mr(c->pd, p, 0, MR_ALL));
	CHECK_EQ(errno, EINVAL);
	errno = 0;
	CHECK(!ibv_reg_mr(c->pd, p, SIZE_MAX, MR_ALL));
	CHECK(errno);
	CHECK_EQ(t_pinned(), pins);
	CHECK_EQ(t_status_kib("VmPin"), vmpin);
	ctx_close(c);
}

/* CAP_IPC_LOCK is not bound by RLIMIT_MEMLOCK: without it from here on. */
static void drop_ipc_lock(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	CHECK(!syscall(SYS_capget, &header, data));
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	data[0].permitted &= ~(1u << CAP_IPC_LOCK);
	CHECK(!syscall(SYS_capset, &header, data));
}

static void memlock_limit(const void *arg)
{
	size_t page = 4096, limit = 64 * page;
	struct rlimit rlim = { limit, limit };
	int64_t vmpin, pins;
	struct ibv_mr *mr, *one;
	struct ctx *c;
	uint8_t *p;
	int i;

	(void)arg;
	drop_ipc_lock();
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &rlim));
	c = ctx_open(NULL);
	p = pages(65 * page);
	vmpin = t_status_kib("VmPin");
	pins = t_pinned();
	for (i = 0; i < 3; i++) {
		errno = 0;
		CHECK(!ibv_reg_mr(c->pd, p, limit + 1, MR_ALL));
		CHECK_EQ(errno, ENOMEM);
		CHECK_EQ(t_status_kib("VmPin"), vmpin);
		CHECK_EQ(t_pinned(), pins);

		/* exactly the limit fits, and then not a page more */
		mr = ibv_reg_mr(c->pd, p, limit, MR_ALL);
		CHECK(mr);
		CHECK_EQ(t_status_kib("VmPin") - vmpin, limit / 1024);
		errno = 0;
		CHECK(!ibv_reg_mr(c->pd, p, 1, MR_ALL));
		CHECK_EQ(errno, ENOMEM);
		OK(ibv_dereg_mr(mr));
		one = ibv_reg_mr(c->pd, p, 1, MR_ALL);
		CHECK(one);
		OK(ibv_dereg_mr(one));
		CHECK_EQ(t_status_kib("VmPin"), vmpin);
		CHECK_EQ(t_pinned(), pins);
	}
	ctx_close(c);
}

/* The device goes on with the parent's pages, whoever writes first. */
static void across_fork(const void *arg)
{
	struct world w;
	int status;
	pid_t pid;

	(void)arg;
	world_new(&w);
	pid = fork();
	if (!pid) {
		memset(w.theirs.p, 0xcc, SIZE);
		memset(w.mine.p, 0xcc, SIZE);
		_exit(only(w.theirs.p, SIZE, 0xcc) != -1);
	}
	CHECK(pid > 0);
	fill(w.theirs.p, SIZE, 5);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	DO(&w.a, .opcode = IBV_WR_RDMA_READ, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = SIZE,
	   .raddr = (uintptr_t)w.theirs.p, .rkey = w.theirs.mr->rkey);
	CHECK_EQ(filled(w.mine.p, SIZE, 5), -1);
	works(&w, w.theirs.mr->rkey, w.theirs.p, SIZE);
	world_free(&w);
}

static void access_flags(const void *arg)
{
	static const struct {
		unsigned int access;
		int err;
	} rows[] = {
		{ 0, 0 },
		{ IBV_ACCESS_LOCAL_WRITE, 0 },
		{ IBV_ACCESS_REMOTE_READ, 0 },
		{ IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND, 0 },
		{ IBV_ACCESS_MW_BIND, 0 },
		/* IBA 11.2.8.2: remote write and atomic need local write */
		{ IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ IBV_ACCESS_REMOTE_ATOMIC, EINVAL },
		{ IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ, EINVAL },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, 0 },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, 0 },
		{ MR_ALL, 0 },
		{ MR_ALL | IBV_ACCESS_RELAXED_ORDERING, 0 },
		{ MR_ALL | 1u << 29, 0 },	/* optional, unknown */
		{ MR_ALL | 1u << 12, EINVAL },	/* unknown, not optional */
	};
	struct ctx *c = ctx_open(NULL);
	uint8_t *p = pages(4096);
	size_t i;

	(void)arg;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_mr_iova2(c->pd, p, 4096, (uintptr_t)p,
				      rows[i].access);
		if (!mr != !!rows[i].err ||
		    (!mr && errno != rows[i].err && errno != EOPNOTSUPP))
			t_fail(__FILE__, __LINE__,
			       "access %#x: %s, want %s", rows[i].access,
			       mr ? "registered" : strerror(errno),
			       rows[i].err ? strerror(rows[i].err) : "success");
		if (mr)
			OK(ibv_dereg_mr(mr));
	}
	ctx_close(c);
}

/* Through librxe a dereg of garbage handles is the core's: ENOENT, not a crash. */
static void twice(const void *arg)
{
	struct ctx *c = ctx_open(NULL);
	struct ibv_mr *mr, copy;

	(void)arg;
	mr = ibv_reg_mr(c->pd, pages(4096), 4096, MR_ALL);
	CHECK(mr);
	copy = *mr;
	OK(ibv_dereg_mr(mr));
	CHECK_EQ(rereg(&copy, REREG_ACCESS, NULL, NULL, 0, 0, 0) == EINVAL ||
		 rereg(&copy, REREG_ACCESS, NULL, NULL, 0, 0, 0) == ENOENT, 1);
	ctx_close(c);
}

static const enum ibv_mw_type type1 = IBV_MW_TYPE_1, type2 = IBV_MW_TYPE_2;
static const enum unbind local_inv = LOCAL_INV, send_inv = SEND_INV,
	empty_bind = EMPTY_BIND;
static const struct traffic long_write = { IBV_WR_RDMA_WRITE, false },
	long_read = { IBV_WR_RDMA_READ, false },
	long_write_local = { IBV_WR_RDMA_WRITE, true },
	long_read_local = { IBV_WR_RDMA_READ, true };

static const struct t_case cases[] = {
	{ "key_dies_remote", key_dies_remote, NULL, 0 },
	{ "key_dies_local", key_dies_local, NULL, 0 },
	{ "pins_released", pins_released, NULL, 0 },
	{ "pd_freed_or_busy", pd_freed, NULL, 0 },
	{ "busy_type1_unbind", busy_type1_unbind, NULL, 0 },
	{ "busy_type1_dealloc", busy_dealloc, &type1, 0 },
	{ "busy_type2_dealloc", busy_dealloc, &type2, 0 },
	{ "busy_type2_local_inv", busy_type2, &local_inv, 0 },
	{ "busy_type2_send_inv", busy_type2, &send_inv, 0 },
	{ "busy_type2_empty_bind", busy_type2, &empty_bind, 0 },
	{ "busy_two_windows", busy_two_windows, NULL, 0 },
	{ "busy_type1_moves", busy_moves, NULL, 0 },
	{ "qp_destroy_kills_window", qp_destroy_kills_window, NULL, 0 },
	{ "during_long_write", dereg_in_traffic, &long_write, 0 },
	{ "during_long_read", dereg_in_traffic, &long_read, 0 },
	{ "source_during_long_write", dereg_in_traffic, &long_write_local, 0 },
	{ "sink_during_long_read", dereg_in_traffic, &long_read_local, 0 },
	{ "bind_type1_races_dereg", bind_races_dereg, &type1, 30 },
	{ "bind_type2_races_dereg", bind_races_dereg, &type2, 30 },
	{ "key_not_reused", key_not_reused, NULL, 30 },
	{ "many_live", many_live, NULL, 0 },
	{ "any_alignment", any_alignment, NULL, 0 },
	{ "other_iova", other_iova, NULL, 0 },
	{ "huge_pages", huge_pages, NULL, 0 },
	{ "gigabytes", gigabytes, NULL, 0 },
	{ "files_and_shared", files_and_shared, NULL, 0 },
	{ "read_only", read_only, NULL, 0 },
	{ "no_memory_there", no_memory_there, NULL, 0 },
	{ "memlock_limit", memlock_limit, NULL, 0 },
	{ "across_fork", across_fork, NULL, 0 },
	{ "access_flags", access_flags, NULL, 0 },
	{ "handle_is_gone", twice, NULL, 0 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
