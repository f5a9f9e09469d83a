// SPDX-License-Identifier: GPL-2.0
/*
 * dm.c - device memory: ibv_alloc_dm(3), ibv_reg_dm_mr(3) by the raw methods
 *
 * librxe has no call for it and no mapping of it: bytes go in and out by RDMA.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "uverbs.h"

#define PAGE 4096u
#define SIZE (256 * KiB)
#define ACCESS (MR_ALL | IBV_ACCESS_ZERO_BASED)

/* A pair, ordinary memory, and device memory that is a region as a whole. */
struct world {
	struct ctx *c;
	struct end a, b;
	struct buf mine;
	uint32_t dm;
	struct uv_mr mr;
};

static void world_new(struct world *w)
{
	struct conf conf = conf_of(RC);

	w->c = ctx_open(NULL);
	pair_new(w->c, &conf, &w->a, &w->b);
	w->mine = buf_new(w->c->pd, 2 * SIZE, MR_ALL);
	OK(uv_alloc_dm(w->c->ibv, SIZE, 0, &w->dm));
	OK(uv_reg_dm(w->c->pd, w->dm, 0, SIZE, ACCESS, &w->mr));
}

static void world_free(struct world *w)
{
	OK(uv_dereg(&w->mr));
	OK(uv_free_dm(w->c->ibv, w->dm));
	pair_free(&w->a, &w->b);
	buf_free(&w->mine);
	ctx_close(w->c);
}

/* The pool.  It is not claimed, since what librxe offers cannot reach it. */
static uint64_t max_dm(struct ctx *c)
{
	struct ibv_device_attr_ex attr;

	OK(ibv_query_device_ex(c->ibv, NULL, &attr));
	CHECK_EQ(attr.max_dm_size, 0);
	return 64 * MiB;
}

/* Through @mr: bytes in, and out again into the second half of mine. */
static void put(struct world *w, uint32_t rkey, uint64_t at, uint32_t len)
{
	DO(&w->a, .opcode = IBV_WR_RDMA_WRITE, .laddr = w->mine.p, .len = len,
	   .lkey = w->mine.mr->lkey, .raddr = at, .rkey = rkey);
}

static void get(struct world *w, uint32_t rkey, uint64_t at, uint32_t len)
{
	DO(&w->a, .opcode = IBV_WR_RDMA_READ, .laddr = w->mine.p + SIZE,
	   .len = len, .lkey = w->mine.mr->lkey, .raddr = at, .rkey = rkey);
}

static void works(struct world *w, uint32_t rkey, uint64_t at, uint32_t len)
{
	static unsigned int seed;

	fill(w->mine.p, len, ++seed);
	put(w, rkey, at, len);
	memset(w->mine.p + SIZE, 0, len);
	get(w, rkey, at, len);
	CHECK_EQ(filled(w->mine.p + SIZE, len, seed), -1);
}

static void fails(struct world *w, uint32_t rkey, uint64_t at, uint32_t len,
		  int reason)
{
	FAIL_WITH(&w->a, IBV_WC_REM_ACCESS_ERR, reason,
		  .opcode = IBV_WR_RDMA_WRITE, .laddr = w->mine.p, .len = len,
		  .lkey = w->mine.mr->lkey, .raddr = at, .rkey = rkey);
	pair_again(&w->a, &w->b);
}

/* Nobody sees what somebody else left there. */
static void zeroed(const void *arg)
{
	struct world w;
	int i;

	(void)arg;
	for (i = 0; i < 3; i++) {
		world_new(&w);
		memset(w.mine.p + SIZE, 0xff, SIZE);
		get(&w, w.mr.rkey, 0, SIZE);
		CHECK_EQ(only(w.mine.p + SIZE, SIZE, 0), -1);
		memset(w.mine.p, 0xee, SIZE);
		put(&w, w.mr.rkey, 0, SIZE);
		world_free(&w);
	}
}

/* Regions begin at address 0 wherever they are in the buffer, and overlap. */
static void ranges(const void *arg)
{
	static const struct {
		uint64_t offset, len;
	} rows[] = {
		{ 0, 1 }, { 1, 1 }, { 4095, 2 }, { 4097, 12345 },
		{ 5 * PAGE, 3 * PAGE + 1 }, { SIZE - 1, 1 }, { 100, SIZE - 100 },
	};
	struct uv_mr mr;
	struct world w;
	uint64_t iova, len;
	size_t i;

	(void)arg;
	world_new(&w);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		OK(uv_reg_dm(w.c->pd, w.dm, rows[i].offset, rows[i].len, ACCESS,
			     &mr));
		OK(uv_query(&mr, &iova, &len));
		CHECK_EQ(iova, 0);
		CHECK_EQ(len, rows[i].len);
		memset(w.mine.p, 0x77, SIZE);
		put(&w, w.mr.rkey, 0, SIZE);
		fill(w.mine.p, len, i);
		put(&w, mr.rkey, 0, len);
		get(&w, w.mr.rkey, 0, SIZE);
		CHECK_EQ(only(w.mine.p + SIZE, rows[i].offset, 0x77), -1);
		CHECK_EQ(filled(w.mine.p + SIZE + rows[i].offset, len, i), -1);
		CHECK_EQ(only(w.mine.p + SIZE + rows[i].offset + len,
			      SIZE - rows[i].offset - len, 0x77), -1);
		fails(&w, mr.rkey, 0, len + 1, MRSOFT_R_OUTSIDE);
		fails(&w, mr.rkey, len, 1, MRSOFT_R_OUTSIDE);
		fails(&w, mr.rkey, UINT64_MAX, 1, MRSOFT_R_OUTSIDE);
		fails(&w, mr.rkey, UINT64_MAX, 2, MRSOFT_R_OUTSIDE);
		OK(uv_dereg(&mr));
		fails(&w, mr.rkey, 0, 1, MRSOFT_R_KEY_STALE);
	}
	/* a length that is no whole number of pages ends where it says */
	OK(uv_dereg(&w.mr));
	OK(uv_free_dm(w.c->ibv, w.dm));
	OK(uv_alloc_dm(w.c->ibv, 100, 12, &w.dm));
	CHECK_EQ(uv_reg_dm(w.c->pd, w.dm, 0, 101, ACCESS, &mr), EINVAL);
	OK(uv_reg_dm(w.c->pd, w.dm, 0, 100, ACCESS, &w.mr));
	works(&w, w.mr.rkey, 0, 100);
	world_free(&w);
}

/* Every operation of RC with device memory at either end. */
static void operations(const void *arg)
{
	uint64_t *old;
	struct world w;

	(void)arg;
	world_new(&w);
	fill(w.mine.p, SIZE, 1);
	OK(post_recv(&w.b, 7, (void *)101, 70001, w.mr.lkey));
	DO(&w.a, .opcode = IBV_WR_SEND, .laddr = w.mine.p, .len = 70001,
	   .lkey = w.mine.mr->lkey);
	EXPECT_WC(w.b.rcq, 7, IBV_WC_SUCCESS);
	OK(post_recv(&w.b, 8, w.mine.p + SIZE, SIZE, w.mine.mr->lkey));
	DO(&w.a, .opcode = IBV_WR_SEND, .laddr = (void *)101, .len = 70001,
	   .lkey = w.mr.lkey);
	EXPECT_WC(w.b.rcq, 8, IBV_WC_SUCCESS);
	CHECK_EQ(filled(w.mine.p + SIZE, 70001, 1), -1);

	DO(&w.a, .opcode = IBV_WR_RDMA_READ, .laddr = (void *)8ull, .len = 9999,
	   .lkey = w.mr.lkey, .raddr = (uintptr_t)w.mine.p,
	   .rkey = w.mine.mr->rkey);
	DO(&w.a, .opcode = IBV_WR_RDMA_WRITE, .laddr = (void *)8ull, .len = 9999,
	   .lkey = w.mr.lkey, .raddr = 20 * PAGE + 1, .rkey = w.mr.rkey);
	get(&w, w.mr.rkey, 20 * PAGE + 1, 9999);
	CHECK_EQ(filled(w.mine.p + SIZE, 9999, 1), -1);

	/* 0 of before, then what was added; the last value by READ */
	memset(w.mine.p, 0, 64);
	put(&w, w.mr.rkey, 0, 64);
	old = (uint64_t *)w.mine.p;
	DO(&w.a, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8, .laddr = old,
	   .lkey = w.mine.mr->lkey, .raddr = 8, .rkey = w.mr.rkey,
	   .compare = 42);
	CHECK_EQ(*old, 0);
	DO(&w.a, .opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .len = 8, .laddr = old,
	   .lkey = w.mine.mr->lkey, .raddr = 8, .rkey = w.mr.rkey,
	   .compare = 42, .swap = 7);
	CHECK_EQ(*old, 42);
	get(&w, w.mr.rkey, 8, 8);
	memcpy(old, w.mine.p + SIZE, 8);
	CHECK_EQ(*old, 7);
	world_free(&w);
}

/* The pool of memory.rst can be had, not more, and comes back. */
static void pool(const void *arg)
{
	struct ctx *c = ctx_open(NULL);
	uint64_t max = max_dm(c);
	uint32_t dm[16], one;
	struct uv_mr mr;
	int i;

	(void)arg;
	CHECK(max >= 16 * PAGE);
	CHECK_EQ(uv_alloc_dm(c->ibv, max + 1, 0, &one), ENOMEM);
	CHECK_EQ(uv_alloc_dm(c->ibv, UINT64_MAX, 0, &one), ENOMEM);
	for (i = 0; i < 2; i++) {
		OK(uv_alloc_dm(c->ibv, max, 0, &one));
		CHECK_EQ(uv_alloc_dm(c->ibv, 1, 0, &dm[0]), ENOMEM);
		OK(uv_free_dm(c->ibv, one));
	}
	for (i = 0; i < 16; i++)
		OK(uv_alloc_dm(c->ibv, max / 16, 0, &dm[i]));
	CHECK_EQ(uv_alloc_dm(c->ibv, 1, 0, &one), ENOMEM);
	OK(uv_free_dm(c->ibv, dm[3]));
	OK(uv_alloc_dm(c->ibv, max / 16, 0, &dm[3]));
	OK(uv_reg_dm(c->pd, dm[3], 0, max / 16, ACCESS, &mr));
	OK(uv_dereg(&mr));
	for (i = 0; i < 16; i++)
		OK(uv_free_dm(c->ibv, dm[i]));
	OK(uv_alloc_dm(c->ibv, max, 0, &one));
	OK(uv_free_dm(c->ibv, one));
	ctx_close(c);
}

/* ibv_free_dm(3) while a region is in it: busy, and nothing has changed. */
static void freed_while_registered(const void *arg)
{
	struct uv_mr mr;
	struct world w;

	(void)arg;
	world_new(&w);
	OK(uv_reg_dm(w.c->pd, w.dm, PAGE, PAGE, ACCESS, &mr));
	CHECK_EQ(uv_free_dm(w.c->ibv, w.dm), EBUSY);
	works(&w, mr.rkey, 0, PAGE);
	OK(uv_dereg(&mr));
	CHECK_EQ(uv_free_dm(w.c->ibv, w.dm), EBUSY);
	works(&w, w.mr.rkey, 0, SIZE);
	CHECK_EQ(ibv_dealloc_pd(w.c->pd), EBUSY);
	world_free(&w);
}

/* ibv_alloc_dm(3), ibv_reg_dm_mr(3): errnos; nothing is left. */
static void refusals(const void *arg)
{
	static const struct {
		uint64_t offset, len;
		unsigned int access;
		int err;
	} rows[] = {
		{ 0, 0, ACCESS, EINVAL },
		{ 0, SIZE + 1, ACCESS, EINVAL },
		{ 1, SIZE, ACCESS, EINVAL },
		{ SIZE, 1, ACCESS, EINVAL },
		{ SIZE + 1, 0, ACCESS, EINVAL },
		{ UINT64_MAX, 2, ACCESS, EINVAL },
		{ 2, UINT64_MAX, ACCESS, EINVAL },
		{ 0, SIZE, MR_ALL, EINVAL },
		{ 0, SIZE, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE,
		  EINVAL },
		{ 0, SIZE, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_ATOMIC,
		  EINVAL },
		{ 0, SIZE, ACCESS | 1u << 31, EINVAL },
	};
	char objects[256], now[256];
	struct uv_mr mr;
	struct world w;
	uint32_t dm;
	size_t i;
	int err;

	(void)arg;
	world_new(&w);
	t_objects(objects, sizeof(objects));
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		err = uv_reg_dm(w.c->pd, w.dm, rows[i].offset, rows[i].len,
				rows[i].access, &mr);
		if (err != rows[i].err)
			t_fail(__FILE__, __LINE__, "row %zu: %d %s", i, err,
			       strerror(err));
	}
	/* it has no pages that could come and go */
	CHECK_EQ(uv_reg_dm(w.c->pd, w.dm, 0, SIZE,
			   ACCESS | IBV_ACCESS_ON_DEMAND, &mr), EOPNOTSUPP);
	CHECK_EQ(uv_alloc_dm(w.c->ibv, 0, 0, &dm), EINVAL);
	CHECK_EQ(uv_alloc_dm(w.c->ibv, PAGE, 13, &dm), EINVAL);
	CHECK_EQ(uv_alloc_dm(w.c->ibv, PAGE, UINT32_MAX, &dm), EINVAL);
	t_objects(now, sizeof(now));
	CHECK(!strcmp(objects, now));
	/* optional bits and the hint are taken */
	OK(uv_reg_dm(w.c->pd, w.dm, 0, SIZE,
		     ACCESS | IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_HUGETLB,
		     &mr));
	works(&w, mr.rkey, 0, SIZE);
	OK(uv_dereg(&mr));
	/* no other addresses, PD or rights for it */
	CHECK_EQ(uv_rereg(&w.mr, REREG_ACCESS, NULL, NULL, 0, 0,
			  IBV_ACCESS_LOCAL_WRITE), EINVAL);
	CHECK_EQ(uv_rereg(&w.mr, REREG_TRANS, NULL, w.mine.p, SIZE,
			  (uintptr_t)w.mine.p, 0), EINVAL);
	works(&w, w.mr.rkey, 0, SIZE);
	world_free(&w);
}

/* IBA 10.6.7: a window into device memory, and what it keeps busy. */
static void windows(const void *arg)
{
	struct ibv_mw *mw;
	struct world w;
	struct ibv_mr as;
	uint32_t rkey;

	(void)arg;
	world_new(&w);
	mw = ibv_alloc_mw(w.c->pd, IBV_MW_TYPE_2);
	CHECK(mw);
	as = (struct ibv_mr){ .context = w.c->ibv, .pd = w.c->pd,
			      .handle = w.mr.handle, .lkey = w.mr.lkey,
			      .rkey = w.mr.rkey };
	rkey = ibv_inc_rkey(mw->rkey);
	OK(post_bind(&w.b, mw, rkey, &as, (void *)(uintptr_t)PAGE, 2 * PAGE,
		     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
	EXPECT_WC(w.b.scq, 0xb1d, IBV_WC_SUCCESS);
	works(&w, rkey, PAGE, 2 * PAGE);
	CHECK_EQ(uv_dereg(&w.mr), EBUSY);
	CHECK_EQ(uv_free_dm(w.c->ibv, w.dm), EBUSY);
	fails(&w, rkey, PAGE - 1, 1, MRSOFT_R_OUTSIDE);
	OK(ibv_dealloc_mw(mw));
	world_free(&w);
}

/* WRITEs through @op until one is refused. */
struct stream {
	struct end *x;
	struct op op;
	unsigned int done;
};

static void *stream(void *arg)
{
	struct stream *s = arg;
	struct ibv_wc wc;

	for (;;) {
		memset((void *)s->op.laddr, s->done, s->op.len);
		OK(post(s->x, &s->op));
		wc = NEXT_WC(s->x->scq);
		if (wc.status)
			break;
		__atomic_add_fetch(&s->done, 1, __ATOMIC_RELAXED);
	}
	CHECK_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
	return NULL;
}

/* IBA 11.2.8.5: when dereg has returned, nothing is written any more. */
static void dereg_under_traffic(const void *arg)
{
	unsigned int round, done = 0;
	uint8_t *then = malloc(SIZE);
	struct world w;

	(void)arg;
	CHECK(then);
	world_new(&w);
	for (round = 0; round < t_rounds(40); round++) {
		struct conf conf = conf_of(RC);
		struct stream s = { .op = {
			.opcode = IBV_WR_RDMA_WRITE, .laddr = w.mine.p,
			.len = SIZE, .lkey = w.mine.mr->lkey,
		} };
		struct end x, y;
		struct uv_mr mr;
		pthread_t thread;
		uint64_t end;

		OK(uv_reg_dm(w.c->pd, w.dm, 0, SIZE, ACCESS, &mr));
		pair_new(w.c, &conf, &x, &y);
		s.x = &x;
		s.op.rkey = mr.rkey;
		OK(pthread_create(&thread, NULL, stream, &s));
		/* the first is there: the others are on their way */
		for (end = t_now() + t_patience(); t_now() < end &&
		     !__atomic_load_n(&s.done, __ATOMIC_RELAXED);)
			usleep(100);
		usleep(random() % 3000);
		OK(uv_dereg(&mr));
		get(&w, w.mr.rkey, 0, SIZE);
		memcpy(then, w.mine.p + SIZE, SIZE);
		OK(pthread_join(thread, NULL));
		get(&w, w.mr.rkey, 0, SIZE);
		CHECK(!memcmp(then, w.mine.p + SIZE, SIZE));
		done += s.done;
		pair_free(&x, &y);
	}
	t_note("%u done in %u rounds", done, round);
	CHECK(done >= round);
	free(then);
	world_free(&w);
}

/* A process that is killed gives the whole pool back, regions or not. */
static void killed(const void *arg)
{
	struct ctx *c = ctx_open(NULL);
	uint64_t max = max_dm(c), end;
	int ready[2], status, err;
	char byte;
	uint32_t dm;
	pid_t pid;

	(void)arg;
	CHECK(!pipe(ready));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		struct uv_mr mr;
		struct world w;

		world_new(&w);
		OK(uv_alloc_dm(w.c->ibv, max - SIZE, 0, &dm));
		OK(uv_reg_dm(w.c->pd, dm, 5, SIZE, ACCESS, &mr));
		CHECK(write(ready[1], "", 1) == 1);
		for (;;)
			put(&w, mr.rkey, 0, SIZE);
	}
	CHECK(read(ready[0], &byte, 1) == 1);
	CHECK_EQ(uv_alloc_dm(c->ibv, 1, 0, &dm), ENOMEM);
	CHECK(!kill(pid, SIGKILL));
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	for (end = t_now() + t_patience();;) {
		err = uv_alloc_dm(c->ibv, max, 0, &dm);
		if (!err)
			break;
		CHECK_EQ(err, ENOMEM);
		CHECK(t_now() < end);
	}
	OK(uv_free_dm(c->ibv, dm));
	ctx_close(c);
}

static const struct t_case cases[] = {
	{ "zeroed", zeroed, NULL, 0 },
	{ "ranges", ranges, NULL, 0 },
	{ "operations", operations, NULL, 0 },
	{ "pool", pool, NULL, 0 },
	{ "freed_while_registered", freed_while_registered, NULL, 0 },
	{ "refusals", refusals, NULL, 0 },
	{ "windows", windows, NULL, 0 },
	{ "dereg_under_traffic", dereg_under_traffic, NULL, 0 },
	{ "killed", killed, NULL, 0 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
