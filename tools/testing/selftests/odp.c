// SPDX-License-Identifier: GPL-2.0
/*
 * odp.c - regions whose pages are not pinned (IBV_ACCESS_ON_DEMAND)
 *
 * The rule behind all cases: the device sees at any moment what the process
 * sees at that address, may do what the process may do there, and never more.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "paging.h"
#include "raw.h"
#include "uverbs.h"

#define SIZE (1 * MiB)

/* Both ends of a QP pair, and unpopulated memory of both. */
struct world {
	struct ctx *c;
	struct end a, b;
	struct buf mine, theirs;
};

static void world_conf(struct world *w, const struct conf *conf, size_t size)
{
	if (!w->c)
		w->c = ctx_open(NULL);
	need_odp(w->c, IBV_ODP_SUPPORT);
	pair_new(w->c, conf, &w->a, &w->b);
	w->mine = buf_new(w->c->pd, size, ODP);
	w->theirs = buf_new(w->c->pd, size, ODP);
}

static void world_new(struct world *w, enum ibv_qp_type type)
{
	struct conf conf = conf_of(type);

	*w = (struct world){};
	world_conf(w, &conf, SIZE);
}

static void world_free(struct world *w)
{
	pair_free(&w->a, &w->b);
	buf_free(&w->mine);
	buf_free(&w->theirs);
	ctx_close(w->c);
}

static struct op op_of(struct world *w, enum ibv_wr_opcode opcode, size_t at,
		       uint32_t len)
{
	return (struct op){
		.opcode = opcode, .wr_id = 1, .laddr = w->mine.p + at,
		.lkey = w->mine.mr->lkey, .len = len,
		.raddr = (uintptr_t)w->theirs.p + at,
		.rkey = w->theirs.mr->rkey,
	};
}

static void works(struct world *w, enum ibv_wr_opcode opcode, size_t at,
		  uint32_t len)
{
	struct op op = op_of(w, opcode, at, len);

	OK(post(&w->a, &op));
	DONE(w->a.scq, 1);
}

/* The completion, and for what is wrong at the other end its event. */
static void fails(struct world *w, enum ibv_wr_opcode opcode, size_t at,
		  uint32_t len, enum ibv_wc_status status)
{
	struct op op = op_of(w, opcode, at, len);

	OK(post(&w->a, &op));
	EXPECT_WC_WHY(w->a.scq, 1, status, MRSOFT_R_PAGE_ABSENT);
	if (status == IBV_WC_REM_ACCESS_ERR)
		EXPECT_EVENT(w->c, IBV_EVENT_QP_ACCESS_ERR, w->b.qp);
	pair_again(&w->a, &w->b);
}

/* --- traffic -------------------------------------------------------------- */

/* IBA 9.4: each operation moves its bytes, whether their pages are there or not. */
static void write_read(const void *arg)
{
	static const uint32_t sizes[] = { 1, 8, 4095, 4097, 65537, 600001 };
	const enum ibv_qp_type *type = arg;
	struct world w;
	size_t i, at;

	world_new(&w, *type);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		at = i * 1111;
		/* neither end has a page now */
		CHECK(!madvise(w.mine.p, SIZE, MADV_DONTNEED));
		CHECK(!madvise(w.theirs.p, SIZE, MADV_DONTNEED));
		works(&w, IBV_WR_RDMA_WRITE, at, sizes[i]);
		CHECK_EQ(only(w.theirs.p, SIZE, 0), -1);
		fill(w.mine.p + at, sizes[i], i);
		works(&w, IBV_WR_RDMA_WRITE, at, sizes[i]);
		arrive(*type, w.theirs.p + at, sizes[i], i);
		CHECK_EQ(filled(w.theirs.p + at, sizes[i], i), -1);
		if (*type != RC)
			continue;
		CHECK(!madvise(w.mine.p, SIZE, MADV_DONTNEED));
		works(&w, IBV_WR_RDMA_READ, at, sizes[i]);
		CHECK_EQ(filled(w.mine.p + at, sizes[i], i), -1);
	}
	world_free(&w);
}

/* The same for SEND, with GRH for a datagram. */
static void send_recv(const void *arg)
{
	static const uint32_t sizes[] = { 1, 900, 4097, 300001 };
	const enum ibv_qp_type *type = arg;
	uint32_t grh = *type == UD ? 40 : 0;
	struct ibv_wc wc;
	struct world w;
	size_t i;

	world_new(&w, *type);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		if (*type == UD && sizes[i] > 128u << w.c->mtu)
			break;
		CHECK(!madvise(w.theirs.p, SIZE, MADV_DONTNEED));
		fill(w.mine.p + 4000, sizes[i], i);
		OK(post_recv(&w.b, i, w.theirs.p + 4050, sizes[i] + grh,
			     w.theirs.mr->lkey));
		works(&w, IBV_WR_SEND, 4000, sizes[i]);
		wc = NEXT_WC(w.b.rcq);
		look_again();
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.byte_len, sizes[i] + grh);
		CHECK_EQ(filled(w.theirs.p + 4050 + grh, sizes[i], i), -1);
	}
	world_free(&w);
}

static void srq_recv(const void *arg)
{
	const enum ibv_qp_type *type = arg;
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct conf conf = conf_of(*type);
	uint32_t grh = *type == UD ? 40 : 0;
	struct world w = { .c = ctx_open(NULL) };
	struct ibv_srq *srq = ibv_create_srq(w.c->pd, &init);

	CHECK(srq);
	conf.srq = srq;
	world_conf(&w, &conf, SIZE);
	fill(w.mine.p, 500, 7);
	OK(post_srq(srq, 3, w.theirs.p + 3900, 500 + grh, w.theirs.mr->lkey));
	works(&w, IBV_WR_SEND, 0, 500);
	DONE(w.b.rcq, 3);
	CHECK_EQ(filled(w.theirs.p + 3900 + grh, 500, 7), -1);
	pair_free(&w.a, &w.b);
	OK(ibv_destroy_srq(srq));
	buf_free(&w.mine);
	buf_free(&w.theirs);
	ctx_close(w.c);
}

/* IBA 9.4.5: executed once, even if the result has to wait for its page. */
static void atomics(const void *arg)
{
	volatile uint64_t *old, *word;
	struct world w;
	struct op op;
	unsigned int i;

	(void)arg;
	world_new(&w, RC);
	old = (void *)w.mine.p;
	word = (void *)(w.theirs.p + 8);
	op = op_of(&w, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8);
	op.raddr += 8;
	op.compare = 5;
	for (i = 0; i < 20; i++) {
		CHECK(!madvise(w.mine.p, PAGE, MADV_DONTNEED));
		OK(post(&w.a, &op));
		DONE(w.a.scq, 1);
		CHECK_EQ(*old, 5 * i);
		CHECK_EQ(*word, 5 * i + 5);
	}
	op.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	op.compare = 100;
	op.swap = 77;
	OK(post(&w.a, &op));
	DONE(w.a.scq, 1);
	CHECK_EQ(*old, 100);
	CHECK_EQ(*word, 77);
	CHECK(!madvise(w.theirs.p, PAGE, MADV_DONTNEED));
	op.compare = 0;
	OK(post(&w.a, &op));
	DONE(w.a.scq, 1);
	CHECK_EQ(*old, 0);
	CHECK_EQ(*word, 77);
	world_free(&w);
}

/* The result has nowhere to go: the atomic was executed all the same. */
static void atomic_without_result(const void *arg)
{
	volatile uint64_t *word;
	struct world w;
	struct op op;

	(void)arg;
	world_new(&w, RC);
	word = (void *)w.theirs.p;
	op = op_of(&w, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8);
	op.compare = 3;
	CHECK(!mprotect(w.mine.p, PAGE, PROT_NONE));
	OK(post(&w.a, &op));
	EXPECT_WC_WHY(w.a.scq, 1, IBV_WC_LOC_PROT_ERR, MRSOFT_R_PAGE_ABSENT);
	CHECK_EQ(*word, 3);
	expect_state(&w.a, IBV_QPS_ERR);
	expect_state(&w.b, IBV_QPS_RTS);
	world_free(&w);
}

/* --- what is claimed ------------------------------------------------------ */

static void claims(const void *arg)
{
	uint32_t rc = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
		IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
		IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;
	const uint32_t ud = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
		IBV_ODP_SUPPORT_SRQ_RECV;
	struct ctx *c = ctx_open(NULL);
	struct ibv_device_attr_ex attr;

	(void)arg;
	need_odp(c, IBV_ODP_SUPPORT);
	OK(ibv_query_device_ex(c->ibv, NULL, &attr));
	CHECK_EQ(attr.odp_caps.general_caps,
		 IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	/* where the kernel knows FLUSH */
	if (attr.device_cap_flags_ex & DEVICE_FLUSH_GLOBAL)
		rc |= ODP_SUPPORT_FLUSH;
	CHECK_EQ(attr.odp_caps.per_transport_caps.rc_odp_caps, rc);
	CHECK_EQ(attr.odp_caps.per_transport_caps.uc_odp_caps,
		 ud | IBV_ODP_SUPPORT_WRITE);
	CHECK_EQ(attr.odp_caps.per_transport_caps.ud_odp_caps, ud);
	/* rules of any region hold */
	CHECK(!ibv_reg_mr(c->pd, pages(PAGE), PAGE, IBV_ACCESS_ON_DEMAND |
			  IBV_ACCESS_REMOTE_WRITE));
	CHECK(!ibv_reg_mr(c->pd, (void *)(UINTPTR_MAX - PAGE + 1), 2 * PAGE,
			  ODP));
	ctx_close(c);
}

/* Registering populates and pins nothing; an access, only what it touches. */
static void unpopulated(const void *arg)
{
	size_t len = 256 * MiB;
	int64_t pins = t_pinned(), rss;
	struct world w;
	struct buf big;
	struct op op;

	(void)arg;
	world_new(&w, RC);
	rss = t_status_kib("VmRSS");
	big = buf_new(w.c->pd, len, ODP);
	op = op_of(&w, IBV_WR_RDMA_WRITE, 0, 100);
	fill(w.mine.p, 100, 1);
	op.raddr = (uintptr_t)big.p + len / 2 - 50;
	op.rkey = big.mr->rkey;
	OK(post(&w.a, &op));
	DONE(w.a.scq, 1);
	CHECK_EQ(filled(big.p + len / 2 - 50, 100, 1), -1);
	CHECK_EQ(t_pinned(), pins);
	CHECK(t_status_kib("VmRSS") - rss < 8 * 1024);
	buf_free(&big);
	world_free(&w);
}

/* --- the process changes its memory --------------------------------------- */

/* No mapping, no access; a new mapping is what the region means from then on. */
static void unmapped_remote(const void *arg)
{
	struct world w;

	(void)arg;
	world_new(&w, RC);
	memset(w.theirs.p, 0x5a, SIZE);
	works(&w, IBV_WR_RDMA_READ, 0, SIZE);
	CHECK_EQ(only(w.mine.p, SIZE, 0x5a), -1);
	CHECK(!munmap(w.theirs.p + 4 * PAGE, PAGE));
	fails(&w, IBV_WR_RDMA_READ, 0, SIZE, IBV_WC_REM_ACCESS_ERR);
	fails(&w, IBV_WR_RDMA_WRITE, 4 * PAGE + 10, 1, IBV_WC_REM_ACCESS_ERR);
	fails(&w, IBV_WR_ATOMIC_FETCH_AND_ADD, 4 * PAGE + 8, 8,
	      IBV_WC_REM_ACCESS_ERR);
	works(&w, IBV_WR_RDMA_READ, 0, 4 * PAGE);
	map_again(w.theirs.p + 4 * PAGE, PAGE, PROT_READ | PROT_WRITE);
	works(&w, IBV_WR_RDMA_READ, 0, SIZE);
	CHECK_EQ(only(w.mine.p, 4 * PAGE, 0x5a), -1);
	CHECK_EQ(only(w.mine.p + 4 * PAGE, PAGE, 0), -1);
	fill(w.mine.p, SIZE, 9);
	works(&w, IBV_WR_RDMA_WRITE, 0, SIZE);
	CHECK_EQ(filled(w.theirs.p, SIZE, 9), -1);
	world_free(&w);
}

/* DESIGN.md section 6: the own side's error, and it alone if both are wrong. */
static void unmapped_local(const void *arg)
{
	struct world w;

	(void)arg;
	world_new(&w, RC);
	works(&w, IBV_WR_RDMA_WRITE, 0, SIZE);
	CHECK(!munmap(w.mine.p, PAGE));
	fails(&w, IBV_WR_RDMA_WRITE, 0, 8, IBV_WC_LOC_PROT_ERR);
	fails(&w, IBV_WR_RDMA_READ, 0, 2 * PAGE, IBV_WC_LOC_PROT_ERR);
	CHECK(!munmap(w.theirs.p, PAGE));
	fails(&w, IBV_WR_RDMA_WRITE, 0, 8, IBV_WC_LOC_PROT_ERR);
	map_again(w.mine.p, PAGE, PROT_READ | PROT_WRITE);
	fails(&w, IBV_WR_RDMA_WRITE, 0, 8, IBV_WC_REM_ACCESS_ERR);
	map_again(w.theirs.p, PAGE, PROT_READ | PROT_WRITE);
	works(&w, IBV_WR_RDMA_WRITE, 0, SIZE);
	world_free(&w);
}

/* A receive buffer that is gone: LOC_PROT_ERR there, REM_OP_ERR here. */
static void unmapped_receive(const void *arg)
{
	const enum ibv_qp_type *type = arg;
	struct world w;
	struct op op;

	world_new(&w, *type);
	OK(post_recv(&w.b, 5, w.theirs.p, 200, w.theirs.mr->lkey));
	CHECK(!munmap(w.theirs.p, PAGE));
	op = op_of(&w, IBV_WR_SEND, 0, 100);
	OK(post(&w.a, &op));
	if (*type == RC)
		EXPECT_WC_WHY(w.a.scq, 1, IBV_WC_REM_OP_ERR,
			      MRSOFT_R_PAGE_ABSENT);
	else
		DONE(w.a.scq, 1);
	EXPECT_WC_WHY(w.b.rcq, 5, IBV_WC_LOC_PROT_ERR, MRSOFT_R_PAGE_ABSENT);
	expect_state(&w.b, IBV_QPS_ERR);
	map_again(w.theirs.p, PAGE, PROT_READ | PROT_WRITE);
	world_free(&w);
}

static void datagram_unmapped_local(const void *arg)
{
	struct world w;
	struct op op;

	(void)arg;
	world_new(&w, UD);
	CHECK(!munmap(w.mine.p, PAGE));
	op = op_of(&w, IBV_WR_SEND, 0, 100);
	OK(post(&w.a, &op));
	EXPECT_WC_WHY(w.a.scq, 1, IBV_WC_LOC_PROT_ERR, MRSOFT_R_PAGE_ABSENT);
	map_again(w.mine.p, PAGE, PROT_READ | PROT_WRITE);
	world_free(&w);
}

/* madvise(2): what is not needed reads as zeroes, and is written anew. */
static void dontneed(const void *arg)
{
	struct world w;
	unsigned int i;

	(void)arg;
	world_new(&w, RC);
	for (i = 0; i < 10; i++) {
		fill(w.mine.p, SIZE, i);
		works(&w, IBV_WR_RDMA_WRITE, 0, SIZE);
		CHECK_EQ(filled(w.theirs.p, SIZE, i), -1);
		CHECK(!madvise(w.theirs.p + PAGE, SIZE - PAGE, MADV_DONTNEED));
		works(&w, IBV_WR_RDMA_READ, 0, SIZE);
		CHECK_EQ(filled(w.mine.p, PAGE, i), -1);
		CHECK_EQ(only(w.mine.p + PAGE, SIZE - PAGE, 0), -1);
	}
	world_free(&w);
}

/* fork(2): the region is the parent's memory; the child's copy is its own. */
static void forked(const void *arg)
{
	int go[2], status;
	struct world w;
	pid_t pid;
	char c;

	(void)arg;
	world_new(&w, RC);
	memset(w.theirs.p, 0x11, SIZE);
	memset(w.mine.p, 0x22, SIZE);
	works(&w, IBV_WR_RDMA_WRITE, 0, SIZE / 2);
	CHECK(!pipe(go));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		/* after the parent's writes through the device */
		if (read(go[0], &c, 1) != 1)
			_exit(1);
		if (only(w.theirs.p, SIZE / 2, 0x22) != -1 ||
		    only(w.theirs.p + SIZE / 2, SIZE / 2, 0x11) != -1)
			_exit(2);
		memset(w.theirs.p, 0x44, SIZE);
		_exit(0);
	}
	memset(w.mine.p, 0x33, SIZE);
	works(&w, IBV_WR_RDMA_WRITE, 0, SIZE);
	CHECK_EQ(only(w.theirs.p, SIZE, 0x33), -1);
	CHECK_EQ(write(go[1], "g", 1), 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	works(&w, IBV_WR_RDMA_READ, 0, SIZE);
	CHECK_EQ(only(w.mine.p, SIZE, 0x33), -1);
	world_free(&w);
}

/* mprotect(2) binds the device too, whatever the region's rights say (B20). */
static void protected(const void *arg)
{
	struct world w;

	(void)arg;
	world_new(&w, RC);
	fill(w.mine.p, SIZE, 3);
	works(&w, IBV_WR_RDMA_WRITE, 0, SIZE);
	CHECK(!mprotect(w.theirs.p, SIZE, PROT_READ));
	works(&w, IBV_WR_RDMA_READ, 0, SIZE);
	memset(w.mine.p, 0, SIZE);
	fails(&w, IBV_WR_RDMA_WRITE, 0, SIZE, IBV_WC_REM_ACCESS_ERR);
	fails(&w, IBV_WR_RDMA_WRITE, 100, 1, IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(filled(w.theirs.p, SIZE, 3), -1);
	CHECK(!mprotect(w.theirs.p, SIZE, PROT_NONE));
	fails(&w, IBV_WR_RDMA_READ, 0, 1, IBV_WC_REM_ACCESS_ERR);
	CHECK(!mprotect(w.theirs.p, SIZE, PROT_READ | PROT_WRITE));
	works(&w, IBV_WR_RDMA_WRITE, 0, SIZE);
	CHECK_EQ(only(w.theirs.p, SIZE, 0), -1);
	world_free(&w);
}

static int file_of(size_t len, unsigned int seed)
{
	uint8_t *p = malloc(len);
	int fd = memfd_create("odp", 0);

	CHECK(p && fd >= 0);
	fill(p, len, seed);
	CHECK_EQ(write(fd, p, len), (ssize_t)len);
	free(p);
	return fd;
}

static ssize_t file_filled(int fd, size_t len, unsigned int seed)
{
	uint8_t *p = malloc(len);
	ssize_t at;

	CHECK(p);
	CHECK_EQ(pread(fd, p, len, 0), (ssize_t)len);
	at = filled(p, len, seed);
	free(p);
	return at;
}

/* mmap(2): a private page is copied before it is written, also when it was read
 * through the region first; a shared one is the file's.
 */
static void file_pages(const void *arg)
{
	bool shared = *(const int *)arg == MAP_SHARED;
	int fd = file_of(SIZE, 21);
	struct world w;

	world_new(&w, RC);
	CHECK(mmap(w.theirs.p, SIZE, PROT_READ | PROT_WRITE,
		   *(const int *)arg | MAP_FIXED, fd, 0) == w.theirs.p);
	works(&w, IBV_WR_RDMA_READ, 0, SIZE);
	CHECK_EQ(filled(w.mine.p, SIZE, 21), -1);
	fill(w.mine.p, SIZE, 22);
	works(&w, IBV_WR_RDMA_WRITE, 0, SIZE);
	CHECK_EQ(filled(w.theirs.p, SIZE, 22), -1);
	CHECK_EQ(file_filled(fd, SIZE, shared ? 22 : 21), -1);
	/* beyond the end of the file there is nothing */
	CHECK(!ftruncate(fd, SIZE - PAGE));
	works(&w, IBV_WR_RDMA_READ, 0, SIZE - PAGE);
	fails(&w, IBV_WR_RDMA_READ, SIZE - PAGE, 1, IBV_WC_REM_ACCESS_ERR);
	close(fd);
	world_free(&w);
}

/* A region without the right to write reads from memory that cannot be written. */
static void read_only(const void *arg)
{
	int fd = file_of(SIZE, 23);
	struct ibv_mr *mr;
	struct world w;
	struct op op;
	void *p;

	(void)arg;
	world_new(&w, RC);
	p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	mr = ibv_reg_mr(w.c->pd, p, SIZE, IBV_ACCESS_ON_DEMAND |
			IBV_ACCESS_REMOTE_READ);
	CHECK(mr);
	op = op_of(&w, IBV_WR_RDMA_READ, 0, SIZE);
	op.raddr = (uintptr_t)p;
	op.rkey = mr->rkey;
	OK(post(&w.a, &op));
	DONE(w.a.scq, 1);
	CHECK_EQ(filled(w.mine.p, SIZE, 23), -1);
	OK(ibv_dereg_mr(mr));
	CHECK(!munmap(p, SIZE));
	close(fd);
	world_free(&w);
}

/*
 * What the device wrote is kept when memory is short, also on a page that came back
 * from swap for reading and could have been dropped as unchanged.
 */
static void paged_out(const void *arg)
{
	struct world w;
	unsigned int i;

	(void)arg;
	world_new(&w, RC);
	for (i = 0; i < 4; i++) {
		fill(w.theirs.p, SIZE, 80 + i);
		CHECK(!madvise(w.theirs.p, SIZE, MADV_PAGEOUT));
		/* the suite has turned swap on */
		CHECK(t_status_kib("VmSwap") >= (int64_t)SIZE / 1024 / 2);
		works(&w, IBV_WR_RDMA_READ, 0, SIZE);
		CHECK_EQ(filled(w.mine.p, SIZE, 80 + i), -1);
		fill(w.mine.p, SIZE, 90 + i);
		works(&w, IBV_WR_RDMA_WRITE, 0, SIZE);
		CHECK(!madvise(w.theirs.p, SIZE, MADV_PAGEOUT));
		CHECK(t_status_kib("VmSwap") >= (int64_t)SIZE / 1024 / 2);
		CHECK_EQ(filled(w.theirs.p, SIZE, 90 + i), -1);
	}
	world_free(&w);
}

/* --- windows, re-registration --------------------------------------------- */

/* IBA 10.6.7: a window is a part of its region, with the region's pages. */
static void windows(const void *arg)
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
	OK(post_bind(&w.b, mw, rkey, w.theirs.mr, w.theirs.p + PAGE, 2 * PAGE,
		     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
	EXPECT_WC(w.b.scq, 0xb1d, IBV_WC_SUCCESS);
	op = op_of(&w, IBV_WR_RDMA_WRITE, PAGE, 2 * PAGE);
	op.rkey = rkey;
	fill(w.mine.p, SIZE, 5);
	OK(post(&w.a, &op));
	DONE(w.a.scq, 1);
	CHECK(!memcmp(w.theirs.p + PAGE, w.mine.p + PAGE, 2 * PAGE));
	CHECK_EQ(ibv_dereg_mr(w.theirs.mr), EBUSY);
	CHECK(!munmap(w.theirs.p + PAGE, PAGE));
	OK(post(&w.a, &op));
	EXPECT_WC_WHY(w.a.scq, 1, IBV_WC_REM_ACCESS_ERR, MRSOFT_R_PAGE_ABSENT);
	map_again(w.theirs.p + PAGE, PAGE, PROT_READ | PROT_WRITE);
	OK(ibv_dealloc_mw(mw));
	world_free(&w);
}

/* rereg_mr: other rights, other PD, other memory; pinned or not is decided anew. */
static void reregister(const void *arg)
{
	uint8_t *other = pages(SIZE);
	int64_t pins = t_pinned();
	struct ibv_pd *pd;
	struct world w;
	struct op op;

	(void)arg;
	world_new(&w, RC);
	works(&w, IBV_WR_RDMA_WRITE, 0, SIZE);
	OK(rereg(w.theirs.mr, REREG_ACCESS, NULL, NULL, 0, 0,
		 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_REMOTE_READ));
	works(&w, IBV_WR_RDMA_READ, 0, SIZE);
	op = op_of(&w, IBV_WR_RDMA_WRITE, 0, 8);
	OK(post(&w.a, &op));
	EXPECT_WC_WHY(w.a.scq, 1, IBV_WC_REM_ACCESS_ERR,
		      MRSOFT_R_NO_REMOTE_WRITE);
	pair_again(&w.a, &w.b);
	OK(rereg(w.theirs.mr, REREG_ACCESS, NULL, NULL, 0, 0, ODP));
	works(&w, IBV_WR_RDMA_WRITE, 0, SIZE);
	CHECK_EQ(t_pinned(), pins);
	OK(rereg(w.theirs.mr, REREG_ACCESS, NULL, NULL, 0, 0, MR_ALL));
	CHECK_EQ(t_pinned() - pins, SIZE / PAGE);
	works(&w, IBV_WR_RDMA_WRITE, 0, SIZE);
	OK(rereg(w.theirs.mr, REREG_ACCESS, NULL, NULL, 0, 0, ODP));
	CHECK_EQ(t_pinned(), pins);

	/* iova stays, memory changes; without access it stays on demand */
	OK(rereg(w.theirs.mr, REREG_TRANS, NULL, other, SIZE,
		 (uintptr_t)w.theirs.p, 0));
	CHECK_EQ(t_pinned(), pins);
	fill(w.mine.p, SIZE, 8);
	works(&w, IBV_WR_RDMA_WRITE, 0, SIZE);
	CHECK_EQ(filled(other, SIZE, 8), -1);
	CHECK(!munmap(other, PAGE));
	fails(&w, IBV_WR_RDMA_WRITE, 0, 8, IBV_WC_REM_ACCESS_ERR);

	pd = ibv_alloc_pd(w.c->ibv);
	CHECK(pd);
	OK(rereg(w.theirs.mr, REREG_PD, pd, NULL, 0, 0, 0));
	CHECK_EQ(ibv_dealloc_pd(pd), EBUSY);
	OK(rereg(w.theirs.mr, REREG_PD, w.c->pd, NULL, 0, 0, 0));
	OK(ibv_dealloc_pd(pd));
	world_free(&w);
}

/* --- advice ----------------------------------------------------------------- */

/* Pages one by one: a huge one for a neighbour would populate a part of these. */
static void small_pages(struct world *w)
{
	/* kernels without huge pages do not know it */
	madvise(w->mine.p, SIZE, MADV_NOHUGEPAGE);
	madvise(w->theirs.p, SIZE, MADV_NOHUGEPAGE);
}

static unsigned int populated(const struct buf *b)
{
	unsigned char there[SIZE / PAGE];
	unsigned int i, n = 0;

	CHECK(!mincore(b->p, b->len, there));
	for (i = 0; i < b->len / PAGE; i++)
		n += there[i] & 1;
	return n;
}

static uint64_t faults_of(struct ctx *c)
{
	return t_counter(ibv_get_device_name(c->ibv->device), "page_faults");
}

/* ibv_advise_mr(3), B117: what was prefetched needs no fault any more. */
static void prefetch(const void *arg)
{
	uint64_t faults, end;
	struct world w;

	(void)arg;
	world_new(&w, RC);
	small_pages(&w);
	OK(uv_advise_range(w.c->pd, NO_FAULT, FLUSH, w.theirs.mr->lkey, w.theirs.p,
			SIZE));
	CHECK_EQ(populated(&w.theirs), 0);
	OK(uv_advise_range(w.c->pd, PREFETCH_WRITE, FLUSH, w.theirs.mr->lkey,
			w.theirs.p + 100, 10 * PAGE));
	CHECK_EQ(populated(&w.theirs), 11);
	OK(uv_advise_range(w.c->pd, PREFETCH_WRITE, FLUSH, w.theirs.mr->lkey,
			w.theirs.p, SIZE));
	OK(uv_advise_range(w.c->pd, PREFETCH_WRITE, 0, w.mine.mr->lkey, w.mine.p,
			SIZE));
	for (end = t_now() + t_patience(); populated(&w.mine) < SIZE / PAGE;)
		CHECK(t_now() < end);
	t_sleep(100);
	faults = faults_of(w.c);
	works(&w, IBV_WR_RDMA_WRITE, 0, SIZE);
	works(&w, IBV_WR_RDMA_READ, 0, SIZE);
	CHECK_EQ(faults_of(w.c), faults);
	/* what the process has already is found without a fault of its */
	CHECK(!mprotect(w.mine.p, SIZE, PROT_READ));
	CHECK(!mprotect(w.mine.p, SIZE, PROT_READ | PROT_WRITE));
	memset(w.mine.p, 1, SIZE);
	OK(uv_advise_range(w.c->pd, NO_FAULT, FLUSH, w.mine.mr->lkey, w.mine.p,
			SIZE));
	works(&w, IBV_WR_RDMA_WRITE, 0, SIZE);
	CHECK_EQ(faults_of(w.c), faults);
	world_free(&w);
}

/* What rdma-statistic(8) shows of the regions of this device, added up. */
static void statistics(struct ctx *c, unsigned long long sums[3])
{
	static const char * const names[] = {
		" page_faults ", " page_invalidations ", " page_prefetch ",
	};
	char start[100], line[500];
	unsigned int i;
	FILE *f;

	memset(sums, 0, 3 * sizeof(*sums));
	snprintf(start, sizeof(start), "dev %s mrn ",
		 ibv_get_device_name(c->ibv->device));
	f = popen("rdma statistic show mr", "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		for (i = 0; strstr(line, start) && i < ARRAY_SIZE(names); i++) {
			const char *at = strstr(line, names[i]);

			if (at)
				sums[i] += strtoull(at + strlen(names[i]),
						    NULL, 10);
		}
	CHECK_EQ(pclose(f), 0);
}

#define SHOWS(faults, invalidations, prefetches) do {	\
	unsigned long long t_sums[3];			\
	statistics(w.c, t_sums);			\
	CHECK_EQ(t_sums[0], faults);			\
	CHECK_EQ(t_sums[1], invalidations);		\
	CHECK_EQ(t_sums[2], prefetches);		\
} while (0)

/* Each page that comes or goes counts once, in the region that it is of. */
static void paging_statistics(const void *arg)
{
	struct world w;
	struct buf pinned;
	struct op op;

	(void)arg;
	world_new(&w, RC);
	small_pages(&w);
	pinned = buf_new(w.c->pd, SIZE, MR_ALL);
	SHOWS(0, 0, 0);
	op = op_of(&w, IBV_WR_RDMA_WRITE, 0, SIZE);
	op.laddr = pinned.p;
	op.lkey = pinned.mr->lkey;
	OK(post(&w.a, &op));
	DONE(w.a.scq, 1);
	SHOWS(SIZE / PAGE, 0, 0);
	/* there already */
	OK(post(&w.a, &op));
	DONE(w.a.scq, 1);
	SHOWS(SIZE / PAGE, 0, 0);
	CHECK(!madvise(w.theirs.p + PAGE, 10 * PAGE, MADV_DONTNEED));
	SHOWS(SIZE / PAGE, 10, 0);
	OK(uv_advise_range(w.c->pd, PREFETCH_WRITE, FLUSH, w.theirs.mr->lkey,
			w.theirs.p, 4 * PAGE));
	SHOWS(SIZE / PAGE, 10, 3);
	OK(post(&w.a, &op));
	DONE(w.a.scq, 1);
	SHOWS(SIZE / PAGE + 7, 10, 3);
	buf_free(&pinned);
	world_free(&w);
}

/* B21: an errno, never a fault, for what is not one's own or not on demand. */
static void bad_advice(const void *arg)
{
	struct ibv_pd *pd;
	struct ibv_mw *mw;
	struct world w;
	struct ibv_sge sges[2];
	struct buf pinned;
	uint32_t lkey;
	uint8_t *p;

	(void)arg;
	world_new(&w, RC);
	small_pages(&w);
	p = w.theirs.p;
	lkey = w.theirs.mr->lkey;
	pd = ibv_alloc_pd(w.c->ibv);
	CHECK(pd);
	pinned = buf_new(w.c->pd, SIZE, MR_ALL);
	mw = ibv_alloc_mw(w.c->pd, IBV_MW_TYPE_1);
	CHECK(mw);
#define BAD(errno_, pd_, advice, lkey_, p_, len) do { \
	CHECK_EQ(uv_advise_range(pd_, advice, FLUSH, lkey_, p_, len), errno_); \
	CHECK_EQ(uv_advise_range(pd_, advice, 0, lkey_, p_, len), errno_); \
} while (0)
	BAD(ENOENT, w.c->pd, PREFETCH, lkey ^ 1, p, PAGE);
	BAD(ENOENT, w.c->pd, PREFETCH, 0, p, PAGE);
	BAD(EPERM, pd, PREFETCH, lkey, p, PAGE);
	BAD(EINVAL, w.c->pd, PREFETCH, mw->rkey, p, PAGE);
	BAD(EFAULT, w.c->pd, PREFETCH, lkey, p - 1, PAGE);
	BAD(EFAULT, w.c->pd, PREFETCH, lkey, p + 1, SIZE);
	BAD(EFAULT, w.c->pd, NO_FAULT, lkey, p + SIZE, 1);
	BAD(EINVAL, w.c->pd, PREFETCH, pinned.mr->lkey, pinned.p, SIZE);
	BAD(EOPNOTSUPP, w.c->pd, 77, lkey, p, PAGE);
	CHECK_EQ(uv_advise_range(w.c->pd, PREFETCH, 2, lkey, p, PAGE), EINVAL);
	CHECK_EQ(uv_advise_range(w.c->pd, PREFETCH, FLUSH | 4, lkey, p, PAGE),
		 EINVAL);
	/* one is enough, in whatever place */
	sges[0] = (struct ibv_sge){ (uintptr_t)p, PAGE, lkey ^ 1 };
	sges[1] = (struct ibv_sge){ (uintptr_t)p, PAGE, lkey };
	CHECK_EQ(uv_advise(w.c->pd, PREFETCH, FLUSH, sges, 2), ENOENT);
	CHECK_EQ(uv_advise(w.c->pd, PREFETCH, 0, sges, 2), ENOENT);
	CHECK_EQ(populated(&w.theirs), 0);
	OK(ibv_dealloc_mw(mw));
	OK(ibv_dealloc_pd(pd));
	buf_free(&pinned);
	world_free(&w);
}

/* What cannot be had is told to who waits for it; dereg waits for no advice. */
static void advice_in_vain(const void *arg)
{
	struct ibv_mr *mr;
	struct world w;
	uint32_t lkey;
	uint8_t *p;

	(void)arg;
	world_new(&w, RC);
	p = w.theirs.p;
	lkey = w.theirs.mr->lkey;
	CHECK(!munmap(p, PAGE));
	CHECK_EQ(uv_advise_range(w.c->pd, PREFETCH, FLUSH, lkey, p, PAGE), EFAULT);
	OK(uv_advise_range(w.c->pd, PREFETCH, 0, lkey, p, PAGE));
	map_again(p, PAGE, PROT_READ | PROT_WRITE);

	mr = ibv_reg_mr(w.c->pd, p, SIZE, IBV_ACCESS_ON_DEMAND);
	CHECK(mr);
	OK(uv_advise_range(w.c->pd, PREFETCH, FLUSH, mr->lkey, p, PAGE));
	BAD(EPERM, w.c->pd, PREFETCH_WRITE, mr->lkey, p, PAGE);
	lkey = mr->lkey;
	OK(uv_advise_range(w.c->pd, PREFETCH, 0, lkey, p, SIZE));
	OK(ibv_dereg_mr(mr));
	BAD(ENOENT, w.c->pd, PREFETCH, lkey, p, PAGE);
	world_free(&w);
}

/* --- everything at once --------------------------------------------------- */

/* In all ways in which pages can go. */
static void take(struct churn *c, size_t at)
{
	size_t len = c->len - at;

	switch (c->rounds % 5) {
	case 0:
		CHECK(!madvise(c->p + at, len, MADV_DONTNEED));
		break;
	case 1:
		CHECK(!madvise(c->p + at, PAGE, MADV_DONTNEED));
		break;
	case 2:
		map_again(c->p + at, len, PROT_READ | PROT_WRITE);
		break;
	case 3:
		CHECK(!madvise(c->p + at, len, MADV_PAGEOUT));
		break;
	default:
		CHECK(!mprotect(c->p + at, PAGE, PROT_READ));
		CHECK(!mprotect(c->p + at, PAGE, PROT_READ | PROT_WRITE));
	}
}

/*
 * Pages that go while they are used come back, and a message ends: with success,
 * or, since the churn makes pages read-only for a moment, with the named error.
 */
static void traffic_and_churn(const void *arg)
{
	enum ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
	unsigned int i, good = 0;
	struct churn theirs, mine;
	struct ibv_wc wc;
	struct world w;
	struct op op;

	(void)arg;
	world_new(&w, RC);
	churn_start(&theirs, w.theirs.p, SIZE, take);
	churn_start(&mine, w.mine.p, SIZE, take);
	for (i = 0; i < t_rounds(200); i++) {
		op = op_of(&w, opcode, i * 7, SIZE - i * 7);
		OK(post(&w.a, &op));
		wc = NEXT_WC(w.a.scq);
		if (wc.status == IBV_WC_SUCCESS) {
			good++;
		} else {
			CHECK(wc.status == IBV_WC_REM_ACCESS_ERR ||
			      wc.status == IBV_WC_LOC_PROT_ERR);
			CHECK_EQ(wc.vendor_err, t_wire() && wc.status ==
				 IBV_WC_REM_ACCESS_ERR ?
				 MRSOFT_R_PEER_REFUSED : MRSOFT_R_PAGE_ABSENT);
			pair_again(&w.a, &w.b);
		}
		opcode = opcode == IBV_WR_RDMA_WRITE ? IBV_WR_RDMA_READ :
						       IBV_WR_RDMA_WRITE;
	}
	churn_stop(&theirs);
	churn_stop(&mine);
	t_note("%u of %u messages, %lu and %lu changes", good, i,
	       theirs.rounds, mine.rounds);
	CHECK(good);
	/* and it was no lasting harm */
	fill(w.mine.p, SIZE, 30);
	works(&w, IBV_WR_RDMA_WRITE, 0, SIZE);
	CHECK_EQ(filled(w.theirs.p, SIZE, 30), -1);
	world_free(&w);
}

/* B18: neither waits for the other; the key is dead when dereg returns. */
static void dereg_and_churn(const void *arg)
{
	struct churn churn;
	struct ibv_wc wc;
	struct world w;
	unsigned int i;
	struct op op;

	(void)arg;
	world_new(&w, RC);
	churn_start(&churn, w.theirs.p, SIZE, take);
	for (i = 0; i < t_rounds(300); i++) {
		op = op_of(&w, IBV_WR_RDMA_READ, 0, SIZE);
		OK(post(&w.a, &op));
		if (i % 2)
			OK(uv_advise_range(w.c->pd, PREFETCH_WRITE, 0,
					w.theirs.mr->lkey, w.theirs.p, SIZE));
		OK(ibv_dereg_mr(w.theirs.mr));
		wc = NEXT_WC(w.a.scq);
		if (wc.status != IBV_WC_SUCCESS) {
			CHECK_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
			pair_again(&w.a, &w.b);
		}
		OK(post(&w.a, &op));
		EXPECT_WC_WHY(w.a.scq, 1, IBV_WC_REM_ACCESS_ERR,
			      MRSOFT_R_KEY_STALE);
		pair_again(&w.a, &w.b);
		w.theirs.mr = ibv_reg_mr(w.c->pd, w.theirs.p, SIZE, ODP);
		CHECK(w.theirs.mr);
	}
	churn_stop(&churn);
	t_note("%u deregistrations, %lu changes", i, churn.rounds);
	world_free(&w);
}

/* B25: what a killed process leaves is nothing; t_main() looks. */
static void killed(const void *arg)
{
	unsigned int i;
	int status;
	pid_t pid;

	(void)arg;
	need_odp(ctx_open(NULL), IBV_ODP_SUPPORT);
	for (i = 0; i < t_rounds(20); i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			struct churn churn;
			struct world w;
			struct ibv_wc wc;
			struct op op;

			world_new(&w, RC);
			churn_start(&churn, w.theirs.p, SIZE, take);
			for (;;) {
				op = op_of(&w, IBV_WR_RDMA_READ, 0, SIZE);
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

/* --- memory of another process -------------------------------------------- */

struct offer {
	struct addr addr;
	uint64_t p;
	uint32_t rkey;
};

static void told(int fd, void *what, size_t len)
{
	CHECK_EQ(read(fd, what, len), (ssize_t)len);
}

static void tell(int fd, const void *what, size_t len)
{
	CHECK_EQ(write(fd, what, len), (ssize_t)len);
}

/* Offers memory, takes it away, offers it again, waits to be killed. */
static void peer(int in, int out)
{
	struct conf conf = conf_of(RC);
	struct ctx *c = ctx_open(NULL);
	struct end e = end_new(c, &conf);
	struct buf buf = buf_new(c->pd, SIZE, ODP);
	struct offer mine = { end_addr(&e), (uintptr_t)buf.p, buf.mr->rkey };
	struct addr theirs;
	char step;

	tell(out, &mine, sizeof(mine));
	told(in, &theirs, sizeof(theirs));
	end_connect(&e, &theirs);
	for (;;) {
		tell(out, "k", 1);
		told(in, &step, 1);
		switch (step) {
		case 'c': /* check */
			CHECK_EQ(filled(buf.p, SIZE, 60), -1);
			break;
		case 'u':
			CHECK(!munmap(buf.p, SIZE));
			break;
		case 'm':
			map_again(buf.p, SIZE, PROT_READ | PROT_WRITE);
			break;
		case 'r':
			OK(end_to(&e, IBV_QPS_RESET));
			end_connect(&e, &theirs);
			break;
		case 'd':
			OK(ibv_dereg_mr(buf.mr));
			break;
		}
	}
}

static void step(int in, int out, const char *what)
{
	char c;

	tell(out, what, 1);
	told(in, &c, 1);
}

/* The pages are faulted in for the process that owns them, whoever asks. */
static void other_process(const void *arg)
{
	struct conf conf = conf_of(RC);
	int to[2], from[2], status;
	struct offer offer;
	struct addr addr;
	struct world w = {};
	struct op op;
	pid_t pid;
	char c;

	(void)arg;
	CHECK(!pipe(to) && !pipe(from));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		peer(to[0], from[1]);
		_exit(1);
	}
	w.c = ctx_open(NULL);
	need_odp(w.c, IBV_ODP_SUPPORT);
	w.a = end_new(w.c, &conf);
	w.mine = buf_new(w.c->pd, SIZE, ODP);
	told(from[0], &offer, sizeof(offer));
	addr = end_addr(&w.a);
	tell(to[1], &addr, sizeof(addr));
	told(from[0], &c, 1);
	end_connect(&w.a, &offer.addr);

	fill(w.mine.p, SIZE, 60);
	op = (struct op){
		.opcode = IBV_WR_RDMA_WRITE, .wr_id = 1, .laddr = w.mine.p,
		.lkey = w.mine.mr->lkey, .len = SIZE, .raddr = offer.p,
		.rkey = offer.rkey,
	};
	OK(post(&w.a, &op));
	DONE(w.a.scq, 1);
	step(from[0], to[1], "c");
	step(from[0], to[1], "u");
	OK(post(&w.a, &op));
	EXPECT_WC_WHY(w.a.scq, 1, IBV_WC_REM_ACCESS_ERR, MRSOFT_R_PAGE_ABSENT);
	step(from[0], to[1], "m");
	step(from[0], to[1], "r");
	OK(end_to(&w.a, IBV_QPS_RESET));
	end_connect(&w.a, &offer.addr);
	op.opcode = IBV_WR_RDMA_READ;
	OK(post(&w.a, &op));
	DONE(w.a.scq, 1);
	CHECK_EQ(only(w.mine.p, SIZE, 0), -1);

	/* killed with a queue full of work for its memory */
	step(from[0], to[1], "u");
	step(from[0], to[1], "m");
	op.quiet = true;
	OK(post(&w.a, &op));
	CHECK(!kill(pid, SIGKILL));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	end_free(&w.a);
	buf_free(&w.mine);
	ctx_close(w.c);
}

/* B20: whatever goes on above, pages of a file that nobody wrote stay. */
static void bystander(const void *arg)
{
	int fd = file_of(SIZE, 70);
	unsigned int i;
	struct world w;

	(void)arg;
	world_new(&w, RC);
	for (i = 0; i < t_rounds(50); i++) {
		CHECK(mmap(w.theirs.p, SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_FIXED, fd, 0) == w.theirs.p);
		works(&w, IBV_WR_RDMA_READ, 0, SIZE);
		CHECK_EQ(filled(w.mine.p, SIZE, 70), -1);
		memset(w.mine.p, i, SIZE);
		works(&w, IBV_WR_RDMA_WRITE, 0, SIZE);
		CHECK_EQ(only(w.theirs.p, SIZE, i), -1);
		CHECK_EQ(file_filled(fd, SIZE, 70), -1);
	}
	close(fd);
	world_free(&w);
}

static const enum ibv_qp_type rc = RC, uc = UC, ud = UD;
static const int private = MAP_PRIVATE, shared = MAP_SHARED;

static const struct t_case cases[] = {
	{ "claims", claims, NULL, 0 },
	{ "write_read_rc", write_read, &rc, 0 },
	{ "write_uc", write_read, &uc, 0 },
	{ "send_rc", send_recv, &rc, 0 },
	{ "send_uc", send_recv, &uc, 0 },
	{ "send_ud", send_recv, &ud, 0 },
	{ "srq_rc", srq_recv, &rc, 0 },
	{ "srq_uc", srq_recv, &uc, 0 },
	{ "srq_ud", srq_recv, &ud, 0 },
	{ "atomics", atomics, NULL, 0 },
	{ "atomic_without_result", atomic_without_result, NULL, 0 },
	{ "unpopulated", unpopulated, NULL, 0 },
	{ "unmapped_remote", unmapped_remote, NULL, 0 },
	{ "unmapped_local", unmapped_local, NULL, 0 },
	{ "unmapped_receive_rc", unmapped_receive, &rc, 0 },
	{ "unmapped_receive_ud", unmapped_receive, &ud, 0 },
	{ "datagram_unmapped_local", datagram_unmapped_local, NULL, 0 },
	{ "dontneed", dontneed, NULL, 0 },
	{ "fork", forked, NULL, 0 },
	{ "mprotect", protected, NULL, 0 },
	{ "file_private", file_pages, &private, 0 },
	{ "file_shared", file_pages, &shared, 0 },
	{ "read_only", read_only, NULL, 0 },
	{ "paged_out", paged_out, NULL, 0 },
	{ "windows", windows, NULL, 0 },
	{ "reregister", reregister, NULL, 0 },
	{ "prefetch", prefetch, NULL, 0 },
	{ "statistics", paging_statistics, NULL, 0 },
	{ "bad_advice", bad_advice, NULL, 0 },
	{ "advice_in_vain", advice_in_vain, NULL, 0 },
	{ "other_process", other_process, NULL, 0 },
	{ "traffic_and_churn", traffic_and_churn, NULL, 0 },
	{ "dereg_and_churn", dereg_and_churn, NULL, 0 },
	{ "killed", killed, NULL, 40 },
	{ "bystander", bystander, NULL, 0 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
