// SPDX-License-Identifier: GPL-2.0
/*
 * regions.c - every way to register a process's memory, and how much of it
 *
 * The same rules whichever way it is: the write command, the method REG_MR, on demand.
 */
#include <linux/capability.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "uverbs.h"

#define PAGE 4096u
#define SIZE (64 * KiB)
/* log2 of the size, linux/memfd.h */
#define MFD_HUGE_SHIFT 26

enum way { WRITE_COMMAND, REG_MR_METHOD, ON_DEMAND };

static int reg(enum way way, struct ibv_pd *pd, const void *p, uint64_t len,
	       uint64_t iova, unsigned int access, struct uv_mr *mr)
{
	if (way == REG_MR_METHOD)
		return uv_reg_mr(pd, p, len, iova, access, mr);
	if (way == ON_DEMAND)
		access |= IBV_ACCESS_ON_DEMAND;
	return uv_reg_write(pd, p, len, iova, access, mr);
}

/* A pair, memory at a, and at b the memory that is registered in all ways. */
struct world {
	struct ctx *c;
	struct end a, b;
	struct buf mine;
	uint8_t *p;
};

static void need(enum way way, struct ctx *c)
{
	struct ibv_device_attr_ex attr;

	OK(ibv_query_device_ex(c->ibv, NULL, &attr));
	if (way == ON_DEMAND && !(attr.odp_caps.general_caps & IBV_ODP_SUPPORT))
		t_skip("a kernel without on-demand paging");
	if (way == REG_MR_METHOD && !uv_has_reg_mr(c->ibv))
		t_skip("a kernel without the method REG_MR");
}

static void world_new(struct world *w, enum way way)
{
	struct conf conf = conf_of(RC);

	w->c = ctx_open(NULL);
	need(way, w->c);
	pair_new(w->c, &conf, &w->a, &w->b);
	w->mine = buf_new(w->c->pd, SIZE, MR_ALL);
	w->p = pages(SIZE + PAGE);
}

static void world_free(struct world *w)
{
	pair_free(&w->a, &w->b);
	buf_free(&w->mine);
	munmap(w->p, SIZE + PAGE);
	ctx_close(w->c);
}

/* The bytes at @p are those at @iova. */
static void works(struct world *w, uint32_t rkey, uint64_t iova, uint8_t *p,
		  uint32_t len)
{
	static unsigned int seed;

	fill(w->mine.p, len, ++seed);
	DO(&w->a, .opcode = IBV_WR_RDMA_WRITE, .laddr = w->mine.p, .len = len,
	   .lkey = w->mine.mr->lkey, .raddr = iova, .rkey = rkey);
	/* see DONE() in odp.c */
	syscall(SYS_getppid);
	CHECK_EQ(filled(p, len, seed), -1);
	fill(p, len, ++seed);
	DO(&w->a, .opcode = IBV_WR_RDMA_READ, .laddr = w->mine.p, .len = len,
	   .lkey = w->mine.mr->lkey, .raddr = iova, .rkey = rkey);
	CHECK_EQ(filled(w->mine.p, len, seed), -1);
}

static void outside(struct world *w, uint32_t rkey, uint64_t iova, uint32_t len)
{
	FAIL_WITH(&w->a, IBV_WC_REM_ACCESS_ERR, MRSOFT_R_OUTSIDE,
		  .opcode = IBV_WR_RDMA_WRITE, .laddr = w->mine.p, .len = len,
		  .lkey = w->mine.mr->lkey, .raddr = iova, .rkey = rkey);
	pair_again(&w->a, &w->b);
}

/* ibv_reg_mr_iova(3): the first byte has the address iova, in the core's book too. */
static void iova(const void *arg)
{
	static const struct {
		uint32_t skip, len;
		uint64_t iova;
	} rows[] = {
		{ 0, SIZE - 1, 0 },
		{ 0, SIZE - 1, 0x123456789000 },
		{ 1, 1, 0x5001 },
		{ 4095, 2, 0x7ffffffffffffff },
		{ 777, 30001, 0xffffffffffff0309 },
		{ 0, PAGE, 0xffffffffffffe000 },
	};
	const enum way *way = arg;
	struct uv_mr mr;
	struct world w;
	uint64_t at, len;
	size_t i;

	world_new(&w, *way);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		OK(reg(*way, w.c->pd, w.p + rows[i].skip, rows[i].len,
		       rows[i].iova, MR_ALL, &mr));
		OK(uv_query(&mr, &at, &len));
		CHECK_EQ(at, rows[i].iova);
		CHECK_EQ(len, rows[i].len);
		works(&w, mr.rkey, at, w.p + rows[i].skip, len);
		outside(&w, mr.rkey, at, len + 1);
		outside(&w, mr.rkey, at - 1, 1);
		outside(&w, mr.rkey, at + len, 1);
		OK(uv_dereg(&mr));
	}
	world_free(&w);
}

/* IBV_ACCESS_ZERO_BASED, hints and optional bits, which may be of the future. */
static void access_bits(const void *arg)
{
	static const unsigned int extra[] = {
		IBV_ACCESS_ZERO_BASED, IBV_ACCESS_HUGETLB,
		IBV_ACCESS_RELAXED_ORDERING, 0x3ff00000, 0x20000000,
		IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB | 0x3ff00000,
	};
	const enum way *way = arg;
	struct uv_mr mr;
	struct world w;
	size_t i;

	world_new(&w, *way);
	for (i = 0; i < ARRAY_SIZE(extra); i++) {
		bool zero = extra[i] & IBV_ACCESS_ZERO_BASED;
		uint64_t at = zero ? 0 : (uintptr_t)w.p;

		OK(reg(*way, w.c->pd, w.p, SIZE, at, MR_ALL | extra[i], &mr));
		works(&w, mr.rkey, at, w.p, SIZE);
		works(&w, mr.rkey, at + 4097, w.p + 4097, 5555);
		outside(&w, mr.rkey, at + SIZE, 1);
		if (zero)
			outside(&w, mr.rkey, (uintptr_t)w.p, 1);
		OK(uv_dereg(&mr));
	}
	world_free(&w);
}

/* IBA 11.2.8.2: the errno, no pin, no object. */
static void refusals(const void *arg)
{
	static const struct {
		uint64_t len, iova;
		unsigned int access;
		int err;
	} rows[] = {
		{ 0, 0, MR_ALL, EINVAL },
		{ UINT64_MAX - PAGE, 0, MR_ALL, EINVAL },
		{ 2 * PAGE, UINT64_MAX - PAGE + 1, MR_ALL, EINVAL },
		{ PAGE, 1, MR_ALL, EINVAL },
		{ PAGE, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ PAGE, 0, IBV_ACCESS_REMOTE_ATOMIC, EINVAL },
		{ PAGE, 0, MR_ALL | 1u << 31, EINVAL },
		{ PAGE, 0, MR_ALL | 1u << 19, EINVAL },
	};
	char objects[256], now[256];
	const enum way *way = arg;
	int64_t pins, vmpin;
	struct uv_mr mr;
	struct world w;
	size_t i;
	int err;

	world_new(&w, *way);
	pins = t_pinned();
	vmpin = t_status_kib("VmPin");
	t_objects(objects, sizeof(objects));
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		err = reg(*way, w.c->pd, w.p, rows[i].len, rows[i].iova,
			  rows[i].access, &mr);
		if (err != rows[i].err)
			t_fail(__FILE__, __LINE__, "row %zu: %d %s", i, err,
			       strerror(err));
	}
	/* the last page is not there; on demand it need not be */
	munmap(w.p + SIZE, PAGE);
	err = reg(*way, w.c->pd, w.p, SIZE + 1, 0, MR_ALL, &mr);
	CHECK_EQ(err, *way == ON_DEMAND ? 0 : EFAULT);
	if (!err)
		OK(uv_dereg(&mr));
	CHECK_EQ(t_pinned(), pins);
	CHECK_EQ(t_status_kib("VmPin"), vmpin);
	t_objects(now, sizeof(now));
	CHECK(!strcmp(objects, now));
	world_free(&w);
}

/* --- RLIMIT_MEMLOCK --------------------------------------------------------- */

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

/* What is charged is given back: by dereg, by each failure, by the end of the process. */
static void memlock(const void *arg)
{
	struct rlimit limit = { 8 * PAGE, 8 * PAGE };
	int64_t vmpin, pins = t_pinned();
	const enum way *way = arg;
	struct uv_mr mr, rest;
	struct ctx *c;
	uint64_t end;
	uint8_t *p;
	int status, i;
	pid_t pid;

	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		drop_ipc_lock();
		CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
		c = ctx_open(NULL);
		need(*way, c);
		p = pages(16 * PAGE);
		munmap(p + 15 * PAGE, PAGE);
		vmpin = t_status_kib("VmPin");
		for (i = 0; i < 5; i++) {
			/* pages count whole, at both ends */
			CHECK_EQ(reg(*way, c->pd, p + 1, 8 * PAGE, 1, MR_ALL,
				     &mr), ENOMEM);
			CHECK_EQ(t_status_kib("VmPin"), vmpin);
			CHECK_EQ(reg(*way, c->pd, p + 14 * PAGE, 2 * PAGE, 0,
				     MR_ALL, &mr), EFAULT);
			CHECK_EQ(t_status_kib("VmPin"), vmpin);
			OK(reg(*way, c->pd, p + 1, 7 * PAGE, 1, MR_ALL, &mr));
			CHECK_EQ(t_status_kib("VmPin"), vmpin + 32);
			CHECK_EQ(reg(*way, c->pd, p, 1, 0, MR_ALL, &rest),
				 ENOMEM);
			CHECK_EQ(t_status_kib("VmPin"), vmpin + 32);
			OK(uv_dereg(&mr));
			CHECK_EQ(t_status_kib("VmPin"), vmpin);
		}
		/* and is killed with half of it registered */
		OK(reg(*way, c->pd, p, 4 * PAGE, 0, MR_ALL, &mr));
		raise(SIGKILL);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	/* a CHECK of the child has said why */
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		_exit(WEXITSTATUS(status));
	for (end = t_now() + t_patience(); t_pinned() != pins;)
		CHECK(t_now() < end);
}

/* --- much ------------------------------------------------------------------- */

/* Bytes of a region's table, as rdma resource tells them. */
static unsigned long long table_of(uint32_t key)
{
	unsigned long long bytes = 0;
	char words[64], line[512], *at;
	bool found = false;
	FILE *f;

	snprintf(line, sizeof(line), "exec rdma -dd resource show mr dev %s",
		 ctx_first());
	snprintf(words, sizeof(words), "drv_key %#x ", key);
	f = popen(line, "r");
	CHECK(f);
	while (!found && fgets(line, sizeof(line), f)) {
		at = strstr(line, " drv_table ");
		found = strstr(line, words) && at &&
			sscanf(at, " drv_table %llu", &bytes) == 1;
	}
	CHECK(found);
	pclose(f);
	return bytes;
}

/* Address space over one file, again and again, its pages in place. */
static uint8_t *mapped_often(int fd, size_t unit, size_t len, int flags)
{
	uint8_t *p = mmap(NULL, len + 2 * MiB, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t at;

	CHECK(p != MAP_FAILED);
	p = (uint8_t *)(((uintptr_t)p + 2 * MiB - 1) & ~(uintptr_t)(2 * MiB - 1));
	for (at = 0; at < len; at += unit)
		CHECK(mmap(p + at, unit, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED | MAP_POPULATE | flags, fd,
			   0) != MAP_FAILED);
	return p;
}

/*
 * @n regions of @piece bytes each side by side; first and last byte of each work.
 * A table has 8 bytes for each @block, in whole pages.
 */
static void pieces(uint8_t *p, size_t piece, size_t n, size_t block)
{
	size_t pages = (piece / block * 8 + PAGE - 1) / PAGE;
	struct uv_mr *mr = calloc(n, sizeof(*mr));
	unsigned long long table;
	struct world w;
	size_t i;

	CHECK(mr);
	world_new(&w, WRITE_COMMAND);
	for (i = 0; i < n; i++)
		OK(uv_reg_write(w.c->pd, p + i * piece, piece, i * piece,
				MR_ALL, &mr[i]));
	table = table_of(mr[0].lkey);
	t_note("%zu MiB of blocks of %zu KiB: tables of %.2f KiB for each GiB",
	       n * piece >> 20, block >> 10,
	       table / 1024.0 / ((double)piece / GiB));
	CHECK(table >= pages * PAGE);
	CHECK(table <= pages * (PAGE + 8));
	for (i = 0; i < n; i++) {
		works(&w, mr[i].rkey, i * piece, p + i * piece, 8);
		works(&w, mr[i].rkey, (i + 1) * piece - 5001,
		      p + (i + 1) * piece - 5001, 5001);
		works(&w, mr[i].rkey, i * piece + piece / 2 + 3,
		      p + i * piece + piece / 2 + 3, 9999);
	}
	outside(&w, mr[n - 1].rkey, n * piece - 1, 2);
	for (i = 0; i < n; i++)
		OK(uv_dereg(&mr[i]));
	free(mr);
	world_free(&w);
}

static void small_pages(const void *arg)
{
	size_t len = t_span(), unit = 4 * MiB;
	int fd = memfd_create("small", 0);
	uint8_t *p;

	(void)arg;
	CHECK(fd >= 0 && !ftruncate(fd, unit));
	p = mapped_often(fd, unit, len, 0);
	pieces(p, len / 4, 4, PAGE);
	munmap(p, len);
	close(fd);
}

/* Huge pages stay large blocks: 256 GiB would not fit with an entry for each 4 KiB. */
static void hundreds_of_gib(const void *arg)
{
	size_t len = 256 * GiB, unit = 128 * MiB;
	int fd = memfd_create("huge", MFD_HUGETLB | 21u << MFD_HUGE_SHIFT);
	FILE *f = fopen("/proc/sys/vm/nr_hugepages", "w");
	uint8_t *p;

	(void)arg;
	if (fd < 0 || !f)
		t_skip("a kernel without huge pages");
	CHECK(fprintf(f, "64\n") > 0 && !fclose(f));
	CHECK(!ftruncate(fd, unit));
	p = mapped_often(fd, unit, len, 0);
	pieces(p, 16 * GiB, len / (16 * GiB), 2 * MiB);
	munmap(p, len);
	close(fd);
	f = fopen("/proc/sys/vm/nr_hugepages", "w");
	CHECK(f && fprintf(f, "0\n") > 0 && !fclose(f));
}

static const enum way by_write = WRITE_COMMAND, by_odp = ON_DEMAND,
	by_method = REG_MR_METHOD;

#define CASE(way, fn) { #way "_" #fn, fn, &by_##way, 0 }

static const struct t_case cases[] = {
	CASE(write, iova),
	CASE(method, iova),
	CASE(odp, iova),
	CASE(write, access_bits),
	CASE(method, access_bits),
	CASE(odp, access_bits),
	CASE(write, refusals),
	CASE(method, refusals),
	CASE(odp, refusals),
	CASE(write, memlock),
	CASE(method, memlock),
	{ "small_pages", small_pages, NULL, 60 },
	{ "hundreds_of_gib", hundreds_of_gib, NULL, 60 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
