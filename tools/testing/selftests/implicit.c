// SPDX-License-Identifier: GPL-2.0
/*
 * implicit.c - one region for all that a process has (ibv_reg_mr(3): address 0,
 * length SIZE_MAX, on demand)
 *
 * Addresses of work requests are the process's.  What it may do there the device
 * may do, at any moment, if the region has the right too.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "paging.h"
#include "uverbs.h"

#define SIZE (1 * MiB)
/* The region has its tables in parts of this size; a test of their seams. */
#define PART (4 * MiB)

struct world {
	struct ctx *c;
	struct end a, b;
	struct ibv_mr *all;
	/* not registered */
	uint8_t *mine, *theirs;
};

static void world_new(struct world *w, enum ibv_qp_type type)
{
	struct conf conf = conf_of(type);

	*w = (struct world){ .c = ctx_open(NULL) };
	need_odp(w->c, IBV_ODP_SUPPORT_IMPLICIT);
	pair_new(w->c, &conf, &w->a, &w->b);
	w->all = ibv_reg_mr(w->c->pd, NULL, SIZE_MAX, ODP);
	CHECK(w->all);
	w->mine = pages(SIZE);
	w->theirs = pages(SIZE);
}

static void world_free(struct world *w)
{
	pair_free(&w->a, &w->b);
	if (w->all)
		OK(ibv_dereg_mr(w->all));
	munmap(w->mine, SIZE);
	munmap(w->theirs, SIZE);
	ctx_close(w->c);
}

static void *map_at(void *at, size_t len, int prot, int flags)
{
	void *p = mmap(at, len, prot, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1,
		       0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* Room for @len bytes that begin @before bytes, less than a part, before a seam. */
static uint8_t *at_seam(size_t before, size_t len)
{
	uint8_t *p = map_at(NULL, len + 2 * PART, PROT_READ | PROT_WRITE,
			    MAP_NORESERVE);

	return (uint8_t *)(((uintptr_t)p + 2 * PART - 1) & ~(PART - 1)) -
		before;
}

static struct op op_of(struct world *w, enum ibv_wr_opcode opcode,
		       const void *local, const void *remote, uint32_t len)
{
	return (struct op){
		.opcode = opcode, .wr_id = 1, .laddr = local,
		.lkey = w->all->lkey, .len = len, .raddr = (uintptr_t)remote,
		.rkey = w->all->rkey,
	};
}

static void works(struct world *w, enum ibv_wr_opcode opcode,
		  const void *local, const void *remote, uint32_t len)
{
	struct op op = op_of(w, opcode, local, remote, len);

	OK(post(&w->a, &op));
	DONE(w->a.scq, 1);
}

static void fails(struct world *w, enum ibv_wr_opcode opcode,
		  const void *local, const void *remote, uint32_t len,
		  enum ibv_wc_status status, int reason)
{
	struct op op = op_of(w, opcode, local, remote, len);

	OK(post(&w->a, &op));
	EXPECT_WC_WHY(w->a.scq, 1, status, reason);
	pair_again(&w->a, &w->b);
}

#define ABSENT MRSOFT_R_PAGE_ABSENT
#define WRITE IBV_WR_RDMA_WRITE
#define READ IBV_WR_RDMA_READ

/* --- what is claimed, what is refused --------------------------------------- */

static void claims(const void *arg)
{
	int64_t pins = t_pinned();
	struct world w;

	(void)arg;
	world_new(&w, RC);
	CHECK_EQ(t_pinned(), pins);
	errno = 0;
	CHECK(!ibv_reg_mr(w.c->pd, NULL, SIZE_MAX, MR_ALL));
	CHECK(errno);
	CHECK(!ibv_reg_mr(w.c->pd, NULL, SIZE_MAX - PAGE, ODP));
	CHECK(!ibv_reg_mr(w.c->pd, (void *)(uintptr_t)PAGE, SIZE_MAX, ODP));
	/* addresses are the process's, no others */
	CHECK(!ibv_reg_mr_iova(w.c->pd, NULL, SIZE_MAX, PAGE, ODP));
	CHECK(!ibv_reg_mr(w.c->pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND |
			  IBV_ACCESS_REMOTE_WRITE));
	world_free(&w);
}

/* --- traffic ---------------------------------------------------------------- */

static uint8_t in_data[3 * PAGE] = { 1 };

/* Whatever the process has: older than the region and younger, of any kind. */
static void everywhere(const void *arg)
{
	uint8_t on_stack[3 * PAGE], *places[6];
	struct world w;
	unsigned int i;

	(void)arg;
	world_new(&w, RC);
	places[0] = in_data;
	places[1] = on_stack;
	places[2] = malloc(3 * PAGE);
	places[3] = pages(3 * PAGE);
	places[4] = at_seam(PAGE + 100, 3 * PAGE);
	places[5] = w.theirs;
	for (i = 0; i < ARRAY_SIZE(places); i++) {
		uint8_t *to = places[i], *from = places[(i + 1) % 6];

		fill(from, 3 * PAGE - 50, i);
		works(&w, WRITE, from, to + 50, 3 * PAGE - 50);
		CHECK_EQ(filled(to + 50, 3 * PAGE - 50, i), -1);
		memset(from, 0, 3 * PAGE - 50);
		works(&w, READ, from, to + 50, 3 * PAGE - 50);
		CHECK_EQ(filled(from, 3 * PAGE - 50, i), -1);
	}
	free(places[2]);
	world_free(&w);
}

/* The operations of each type, on memory of which no page is there. */
static void write_read(const void *arg)
{
	static const uint32_t sizes[] = { 1, 4097, 65537, 600001 };
	const enum ibv_qp_type *type = arg;
	uint8_t *seam;
	struct world w;
	size_t i;

	world_new(&w, *type);
	seam = at_seam(3000, SIZE);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		madvise(w.mine, SIZE, MADV_DONTNEED);
		/* the first page behind the seam */
		CHECK(!munmap(seam + 3000, PAGE));
		map_again(seam + 3000, PAGE, PROT_READ | PROT_WRITE);
		works(&w, WRITE, w.mine + 5, seam, sizes[i]);
		fill(w.mine + 5, sizes[i], i);
		works(&w, WRITE, w.mine + 5, seam, sizes[i]);
		arrive(*type, seam, sizes[i], i);
		CHECK_EQ(filled(seam, sizes[i], i), -1);
		if (*type != RC)
			continue;
		CHECK(!madvise(w.mine, SIZE, MADV_DONTNEED));
		works(&w, READ, w.mine + 5, seam, sizes[i]);
		CHECK_EQ(filled(w.mine + 5, sizes[i], i), -1);
	}
	world_free(&w);
}

static void send_recv(const void *arg)
{
	const enum ibv_qp_type *type = arg;
	uint32_t grh = *type == UD ? 40 : 0, len = *type == UD ? 900 : 300001;
	struct ibv_wc wc;
	struct world w;
	struct op op;
	uint8_t *to;
	unsigned int i;

	world_new(&w, *type);
	to = at_seam(400, SIZE);
	for (i = 0; i < 3; i++) {
		fill(w.mine + 4000, len, i);
		CHECK(!madvise(to + 400, PAGE, MADV_DONTNEED));
		OK(post_recv(&w.b, i, to, len + grh, w.all->lkey));
		op = op_of(&w, IBV_WR_SEND, w.mine + 4000, NULL, len);
		OK(post(&w.a, &op));
		EXPECT_WC(w.a.scq, 1, IBV_WC_SUCCESS);
		wc = NEXT_WC(w.b.rcq);
		look_again();
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.byte_len, len + grh);
		CHECK_EQ(filled(to + grh, len, i), -1);
	}
	world_free(&w);
}

static void atomics(const void *arg)
{
	volatile uint64_t *word, *old;
	struct world w;
	struct op op;
	unsigned int i;

	(void)arg;
	world_new(&w, RC);
	word = (void *)(w.theirs + 24);
	old = (void *)w.mine;
	op = op_of(&w, IBV_WR_ATOMIC_FETCH_AND_ADD, w.mine, w.theirs + 24, 8);
	op.compare = 5;
	for (i = 0; i < 10; i++) {
		CHECK(!madvise(w.mine, PAGE, MADV_DONTNEED));
		OK(post(&w.a, &op));
		EXPECT_WC(w.a.scq, 1, IBV_WC_SUCCESS);
		look_again();
		CHECK_EQ(*old, 5 * i);
		CHECK_EQ(*word, 5 * i + 5);
	}
	world_free(&w);
}

/* One message over several parts of the region, to the byte. */
static void long_message(const void *arg)
{
	uint32_t len = 3 * PART + 12345;
	uint8_t *from, *to;
	struct world w;

	(void)arg;
	world_new(&w, RC);
	from = at_seam(1000, len);
	to = at_seam(77, len + 1);
	to[len] = 0x77;
	fill(from, len, 3);
	works(&w, WRITE, from, to, len);
	CHECK_EQ(filled(to, len, 3), -1);
	CHECK_EQ(to[len], 0x77);
	world_free(&w);
}

/* More than the region has tables for: parts go, and come again with their bytes. */
static void sparse(const void *arg)
{
	size_t n = t_slow() == 1 ? 2500 : 2100, i;
	struct world w;
	uint8_t *far;

	(void)arg;
	world_new(&w, RC);
	far = map_at(NULL, n * PART, PROT_READ | PROT_WRITE, MAP_NORESERVE);
	for (i = 0; i < n; i++) {
		*(uint64_t *)w.mine = i ^ 0x5555;
		works(&w, WRITE, w.mine, far + i * PART + i * 8 % PART, 8);
	}
	for (i = 0; i < n; i++) {
		CHECK_EQ(*(uint64_t *)(far + i * PART + i * 8 % PART),
			 i ^ 0x5555);
		if (i % 5)
			continue;
		works(&w, READ, w.mine, far + i * PART + i * 8 % PART, 8);
		CHECK_EQ(*(uint64_t *)w.mine, i ^ 0x5555);
	}
	munmap(far, n * PART);
	world_free(&w);
}

/* --- rights ----------------------------------------------------------------- */

/* Nothing there: refused, with the reason, and no harm done. */
static void absent(const void *arg)
{
	const uint64_t nowhere[] = {
		0, PAGE, 1ull << 46, 1ull << 47, 1ull << 62, 1ull << 63,
		0xffff888000000000, 0xffffffff81000000, UINT64_MAX - 8,
	};
	struct world w;
	uint8_t *hole;
	unsigned int i;

	(void)arg;
	world_new(&w, RC);
	for (i = 0; i < ARRAY_SIZE(nowhere); i++) {
		void *p = (void *)(uintptr_t)nowhere[i];

		fails(&w, WRITE, w.mine, p, 8, IBV_WC_REM_ACCESS_ERR, ABSENT);
		fails(&w, READ, w.mine, p, 8, IBV_WC_REM_ACCESS_ERR, ABSENT);
		fails(&w, READ, p, w.theirs, 8, IBV_WC_LOC_PROT_ERR, ABSENT);
	}
	/* one byte that does not exist: the last address */
	fails(&w, READ, w.mine, (void *)(UINTPTR_MAX - 6), 8,
	      IBV_WC_REM_ACCESS_ERR, MRSOFT_R_OUTSIDE);

	hole = pages(SIZE);
	works(&w, WRITE, w.mine, hole, SIZE);
	CHECK(!munmap(hole + 5 * PAGE, PAGE));
	fails(&w, WRITE, w.mine, hole, SIZE, IBV_WC_REM_ACCESS_ERR, ABSENT);
	fails(&w, READ, hole + 6 * PAGE - 1, w.theirs, 1, IBV_WC_LOC_PROT_ERR,
	      ABSENT);
	map_again(hole + 5 * PAGE, PAGE, PROT_READ | PROT_WRITE);
	fill(w.mine, SIZE, 9);
	works(&w, WRITE, w.mine, hole, SIZE);
	CHECK_EQ(filled(hole, SIZE, 9), -1);
	world_free(&w);
}

/* B20: page by page what the mapping allows, and what the region allows. */
static void protected(const void *arg)
{
	struct ibv_mr *reads;
	struct world w;
	struct op op;

	(void)arg;
	world_new(&w, RC);
	fill(w.theirs, SIZE, 4);
	works(&w, WRITE, w.theirs, w.theirs, 1);
	CHECK(!mprotect(w.theirs + PAGE, PAGE, PROT_READ));
	works(&w, READ, w.mine, w.theirs, SIZE);
	CHECK_EQ(filled(w.mine, SIZE, 4), -1);
	works(&w, WRITE, w.mine, w.theirs, PAGE);
	fails(&w, WRITE, w.mine, w.theirs + PAGE, 1, IBV_WC_REM_ACCESS_ERR,
	      ABSENT);
	fails(&w, IBV_WR_ATOMIC_FETCH_AND_ADD, w.mine, w.theirs + PAGE, 8,
	      IBV_WC_REM_ACCESS_ERR, ABSENT);
	fails(&w, READ, w.theirs + PAGE, w.mine, 1, IBV_WC_LOC_PROT_ERR, ABSENT);
	works(&w, WRITE, w.mine + 2 * PAGE, w.theirs + 2 * PAGE,
	      SIZE - 2 * PAGE);
	CHECK(!mprotect(w.theirs + PAGE, PAGE, PROT_NONE));
	fails(&w, READ, w.mine, w.theirs + PAGE, 1, IBV_WC_REM_ACCESS_ERR,
	      ABSENT);
	CHECK(!mprotect(w.theirs + PAGE, PAGE, PROT_READ | PROT_WRITE));
	CHECK_EQ(filled(w.theirs, SIZE, 4), -1);
	/* the program itself is not to be written */
	fails(&w, WRITE, w.mine, (void *)protected, 1, IBV_WC_REM_ACCESS_ERR,
	      ABSENT);
	works(&w, READ, w.mine, (void *)protected, 64);
	CHECK(!memcmp(w.mine, (void *)protected, 64));

	reads = ibv_reg_mr(w.c->pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND |
			   IBV_ACCESS_REMOTE_READ);
	CHECK(reads);
	op = op_of(&w, READ, w.mine, w.theirs, SIZE);
	op.rkey = reads->rkey;
	OK(post(&w.a, &op));
	EXPECT_WC(w.a.scq, 1, IBV_WC_SUCCESS);
	op.opcode = WRITE;
	OK(post(&w.a, &op));
	EXPECT_WC_WHY(w.a.scq, 1, IBV_WC_REM_ACCESS_ERR,
		      MRSOFT_R_NO_REMOTE_WRITE);
	OK(ibv_dereg_mr(reads));
	world_free(&w);
}

/* IBA 10.6.7: a window narrows it down. */
static void window(const void *arg)
{
	struct ibv_mw *mw;
	struct world w;
	uint32_t rkey;
	struct op op;

	(void)arg;
	world_new(&w, RC);
	mw = ibv_alloc_mw(w.c->pd, IBV_MW_TYPE_2);
	CHECK(mw);
	rkey = ibv_inc_rkey(mw->rkey);
	OK(post_bind(&w.b, mw, rkey, w.all, w.theirs + PAGE, 2 * PAGE,
		     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
	EXPECT_WC(w.b.scq, 0xb1d, IBV_WC_SUCCESS);
	fill(w.mine, 2 * PAGE, 5);
	op = op_of(&w, WRITE, w.mine, w.theirs + PAGE, 2 * PAGE);
	op.rkey = rkey;
	OK(post(&w.a, &op));
	EXPECT_WC(w.a.scq, 1, IBV_WC_SUCCESS);
	look_again();
	CHECK_EQ(filled(w.theirs + PAGE, 2 * PAGE, 5), -1);
	op.raddr--;
	OK(post(&w.a, &op));
	EXPECT_WC_WHY(w.a.scq, 1, IBV_WC_REM_ACCESS_ERR, MRSOFT_R_OUTSIDE);
	CHECK_EQ(ibv_dereg_mr(w.all), EBUSY);
	OK(ibv_dealloc_mw(mw));
	world_free(&w);
}

/* From a range to all and back, and with other rights; pinned it cannot be. */
static void reregister(const void *arg)
{
	struct world w;
	int64_t pins;
	struct op op;

	(void)arg;
	world_new(&w, RC);
	pins = t_pinned();
	works(&w, WRITE, w.mine, w.theirs, SIZE);
	CHECK(rereg(w.all, REREG_ACCESS, NULL, NULL, 0, 0, MR_ALL));
	works(&w, WRITE, w.mine, w.theirs, SIZE);
	CHECK(rereg(w.all, REREG_TRANS, NULL, NULL, SIZE_MAX, PAGE, 0));
	works(&w, WRITE, w.mine, w.theirs, SIZE);
	OK(rereg(w.all, REREG_ACCESS, NULL, NULL, 0, 0,
		 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE |
		 IBV_ACCESS_REMOTE_READ));
	works(&w, READ, w.mine, w.theirs, SIZE);
	fails(&w, WRITE, w.mine, w.theirs, 1, IBV_WC_REM_ACCESS_ERR,
	      MRSOFT_R_NO_REMOTE_WRITE);
	/* to a range, of which the bytes of others are not a part */
	OK(rereg(w.all, REREG_TRANS | REREG_ACCESS, NULL, w.theirs, SIZE,
		 (uintptr_t)w.theirs, ODP));
	op = op_of(&w, WRITE, w.theirs + PAGE, w.theirs, 8);
	OK(post(&w.a, &op));
	EXPECT_WC(w.a.scq, 1, IBV_WC_SUCCESS);
	fails(&w, READ, w.theirs, w.mine, 8, IBV_WC_REM_ACCESS_ERR,
	      MRSOFT_R_OUTSIDE);
	OK(rereg(w.all, REREG_TRANS, NULL, NULL, SIZE_MAX, 0, 0));
	works(&w, READ, w.mine, w.theirs, SIZE);
	CHECK_EQ(t_pinned(), pins);
	world_free(&w);
}

static void prefetch(const void *arg)
{
	struct world w;
	uint8_t *p;

	(void)arg;
	world_new(&w, RC);
	p = at_seam(PAGE, SIZE);
	OK(uv_advise_range(w.c->pd, PREFETCH_WRITE, FLUSH, w.all->lkey, p, SIZE));
	OK(uv_advise_range(w.c->pd, PREFETCH, 0, w.all->lkey, p, SIZE));
	OK(uv_advise_range(w.c->pd, NO_FAULT, FLUSH, w.all->lkey, w.theirs, SIZE));
	CHECK_EQ(uv_advise_range(w.c->pd, PREFETCH, FLUSH, w.all->lkey,
			      (void *)(uintptr_t)PAGE, 8), EFAULT);
	CHECK_EQ(uv_advise_range(w.c->pd, PREFETCH, FLUSH, w.all->lkey,
			      (void *)(1ull << 63), 8), EFAULT);
	world_free(&w);
}

/* --- churn ------------------------------------------------------------------ */

/* B19: children come and go, by all that empties them. */
static void take(struct churn *c, size_t at)
{
	size_t len = c->len - at;
	pid_t pid;

	switch (c->rounds % 4) {
	case 0:
		CHECK(!madvise(c->p, c->len, MADV_DONTNEED));
		break;
	case 1:
		map_again(c->p + at, len, PROT_READ | PROT_WRITE);
		break;
	case 2:
		CHECK(!munmap(c->p + at, len));
		map_again(c->p + at, len, PROT_READ | PROT_WRITE);
		break;
	default:
		if ((c->rounds + 1) % 16)
			break;
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			_exit(0);
		CHECK_EQ(waitpid(pid, NULL, 0), pid);
	}
}

/* As in odp.c, and each round ends with dereg, which returns. */
static void churn_and_dereg(const void *arg)
{
	unsigned int i, k, good = 0, all = 0;
	uint8_t *area = at_seam(0, 4 * PART);
	struct churn churn;
	struct ibv_wc wc;
	struct world w;
	struct op op;

	(void)arg;
	world_new(&w, RC);
	churn_start(&churn, area, 4 * PART, take);
	for (i = 0; i < t_rounds(30); i++) {
		for (k = 0; k < 8; k++, all++) {
			op = op_of(&w, k & 1 ? READ : WRITE, w.mine,
				   area + k * PART / 2 - (k ? SIZE / 2 : 0),
				   SIZE);
			OK(post(&w.a, &op));
			if (k == 7)
				break;
			wc = NEXT_WC(w.a.scq);
			if (wc.status == IBV_WC_SUCCESS) {
				good++;
				continue;
			}
			/* unmapped for a moment */
			CHECK_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
			pair_again(&w.a, &w.b);
		}
		OK(uv_advise_range(w.c->pd, PREFETCH_WRITE, 0, w.all->lkey, area,
				4 * PART));
		/* the last one is on its way */
		OK(ibv_dereg_mr(w.all));
		wc = NEXT_WC(w.a.scq);
		if (wc.status != IBV_WC_SUCCESS)
			pair_again(&w.a, &w.b);
		fails(&w, READ, w.mine, area, 8, IBV_WC_LOC_PROT_ERR,
		      MRSOFT_R_KEY_STALE);
		w.all = ibv_reg_mr(w.c->pd, NULL, SIZE_MAX, ODP);
		CHECK(w.all);
	}
	churn_stop(&churn);
	t_note("%u of %u messages, %u deregistrations, %lu changes", good, all,
	       i, churn.rounds);
	fill(w.mine, SIZE, 30);
	works(&w, WRITE, w.mine, area + PART, SIZE);
	CHECK_EQ(filled(area + PART, SIZE, 30), -1);
	world_free(&w);
}

/* fork(2): the region is the parent's. */
static void forked(const void *arg)
{
	int go[2], status;
	struct world w;
	pid_t pid;
	char c;

	(void)arg;
	world_new(&w, RC);
	memset(w.theirs, 0x11, SIZE);
	memset(w.mine, 0x22, SIZE);
	works(&w, WRITE, w.mine, w.theirs, SIZE / 2);
	CHECK(!pipe(go));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		if (read(go[0], &c, 1) != 1)
			_exit(1);
		_exit(only(w.theirs, SIZE / 2, 0x22) != -1 ||
		      only(w.theirs + SIZE / 2, SIZE / 2, 0x11) != -1);
	}
	memset(w.mine, 0x33, SIZE);
	works(&w, WRITE, w.mine, w.theirs, SIZE);
	CHECK_EQ(only(w.theirs, SIZE, 0x33), -1);
	CHECK_EQ(write(go[1], "g", 1), 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	world_free(&w);
}

/* --- other processes -------------------------------------------------------- */

struct offer {
	struct addr addr;
	uint64_t p;
	uint32_t rkey;
	pid_t heir;
};

/* Offers its memory, leaves the device to a child, and waits to be killed. */
static void owner(int in, int out, bool all)
{
	struct offer mine;
	struct addr theirs;
	struct world w;
	struct buf buf;

	world_new(&w, RC);
	buf = buf_new(w.c->pd, SIZE, ODP);
	mine = (struct offer){
		end_addr(&w.b), (uintptr_t)buf.p,
		all ? w.all->rkey : buf.mr->rkey, 0,
	};
	mine.heir = fork();
	CHECK(mine.heir >= 0);
	if (!mine.heir)
		for (;;)
			pause();
	CHECK_EQ(write(out, &mine, sizeof(mine)), sizeof(mine));
	CHECK_EQ(read(in, &theirs, sizeof(theirs)), sizeof(theirs));
	OK(end_to(&w.b, IBV_QPS_RESET));
	end_connect(&w.b, &theirs);
	CHECK_EQ(write(out, "k", 1), 1);
	for (;;)
		pause();
}

/*
 * The region outlives the process: whoever has inherited the open device keeps
 * it.  Its memory is gone, and no other takes its place.
 */
static void owner_gone(const void *arg)
{
	const bool *all = arg;
	struct conf conf = conf_of(RC);
	int to[2], from[2], status;
	struct world w;
	struct offer offer;
	struct addr addr;
	struct op op;
	struct end e;
	pid_t pid;
	char c;

	CHECK(!pipe(to) && !pipe(from));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		close(to[1]);
		close(from[0]);
		owner(to[0], from[1], *all);
		_exit(1);
	}
	close(from[1]);
	world_new(&w, RC);
	e = end_new(w.c, &conf);
	CHECK_EQ(read(from[0], &offer, sizeof(offer)), sizeof(offer));
	addr = end_addr(&e);
	CHECK_EQ(write(to[1], &addr, sizeof(addr)), sizeof(addr));
	CHECK_EQ(read(from[0], &c, 1), 1);
	end_connect(&e, &offer.addr);
	op = op_of(&w, WRITE, w.mine, (void *)(uintptr_t)offer.p, SIZE);
	op.rkey = offer.rkey;
	OK(post(&e, &op));
	EXPECT_WC(e.scq, 1, IBV_WC_SUCCESS);
	CHECK(!kill(pid, SIGKILL));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	OK(post(&e, &op));
	EXPECT_WC_WHY(e.scq, 1, IBV_WC_REM_ACCESS_ERR, ABSENT);
	CHECK(!kill(offer.heir, SIGKILL));
	end_free(&e);
	world_free(&w);
}

/* B25: what a killed process leaves is nothing; t_main() looks. */
static void killed(const void *arg)
{
	unsigned int i;
	int status;
	pid_t pid;

	(void)arg;
	need_odp(ctx_open(NULL), IBV_ODP_SUPPORT_IMPLICIT);
	for (i = 0; i < t_rounds(15); i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			struct churn churn;
			struct ibv_wc wc;
			struct world w;
			struct op op;

			world_new(&w, RC);
			churn_start(&churn, w.theirs, SIZE, take);
			for (;;) {
				op = op_of(&w, READ, w.mine, w.theirs, SIZE);
				OK(post(&w.a, &op));
				wc = NEXT_WC(w.a.scq);
				if (wc.status != IBV_WC_SUCCESS)
					pair_again(&w.a, &w.b);
			}
		}
		t_sleep(30 * t_slow() + i * 3);
		CHECK(!kill(pid, SIGKILL));
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
}

static const enum ibv_qp_type rc = RC, uc = UC, ud = UD;
static const bool yes = true, no;

static const struct t_case cases[] = {
	{ "claims", claims, NULL, 0 },
	{ "everywhere", everywhere, NULL, 0 },
	{ "write_read_rc", write_read, &rc, 0 },
	{ "write_uc", write_read, &uc, 0 },
	{ "send_rc", send_recv, &rc, 0 },
	{ "send_uc", send_recv, &uc, 0 },
	{ "send_ud", send_recv, &ud, 0 },
	{ "atomics", atomics, NULL, 0 },
	{ "long_message", long_message, NULL, 0 },
	{ "sparse", sparse, NULL, 60 },
	{ "absent", absent, NULL, 0 },
	{ "mprotect", protected, NULL, 0 },
	{ "window", window, NULL, 0 },
	{ "reregister", reregister, NULL, 0 },
	{ "prefetch", prefetch, NULL, 0 },
	{ "churn_and_dereg", churn_and_dereg, NULL, 40 },
	{ "fork", forked, NULL, 0 },
	{ "owner_gone", owner_gone, &yes, 0 },
	{ "owner_gone_range", owner_gone, &no, 0 },
	{ "killed", killed, NULL, 40 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
