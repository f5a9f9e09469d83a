// SPDX-License-Identifier: GPL-2.0
/*
 * dmabuf.c - regions in a dma-buf: ibv_reg_dmabuf_mr(3) by the raw methods
 *
 * From udmabuf, whose pages are those of a memfd, and from the system heap.  The region
 * is the buffer, whatever becomes of descriptors, mappings and file; deregistration gives
 * the buffer back, once.
 */
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "uverbs.h"

#define PAGE 4096u
#define SIZE (256 * KiB)
/* What the core lets through for a dma-buf. */
#define ACCESS REMOTE_ALL

enum exporter { UDMABUF, HEAP };

/* A dma-buf, mapped into the process as well; @memfd of an udmabuf. */
struct share {
	int fd, memfd;
	uint8_t *p;
};

/* Debian's 6.1 has no exporter; where the kernel is ours a missing one is a failure. */
static void need_exporter(int fd)
{
	const char *machine = getenv("MRSOFT_MACHINE");

	if (fd < 0 && machine && !strncmp(machine, "vm-", 3))
		t_skip("the kernel has no such exporter");
	CHECK(fd >= 0);
}

static int heap_fd(unsigned int flags)
{
	struct dma_heap_allocation_data data = { .len = SIZE, .fd_flags = flags };
	int heap = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC);

	need_exporter(heap);
	CHECK(!ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data));
	close(heap);
	return data.fd;
}

static int udmabuf_fd(int memfd)
{
	struct udmabuf_create create = { .memfd = memfd, .size = SIZE };
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	int fd;

	need_exporter(dev);
	fd = ioctl(dev, UDMABUF_CREATE, &create);
	CHECK(fd >= 0);
	close(dev);
	return fd;
}

static struct share share_new(enum exporter from)
{
	struct share s = { .memfd = -1 };

	if (from == HEAP) {
		s.fd = heap_fd(O_RDWR | O_CLOEXEC);
	} else {
		s.memfd = memfd_create("share", MFD_ALLOW_SEALING);
		CHECK(s.memfd >= 0 && !ftruncate(s.memfd, SIZE));
		CHECK(!fcntl(s.memfd, F_ADD_SEALS, F_SEAL_SHRINK));
		s.fd = udmabuf_fd(s.memfd);
	}
	s.p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, s.fd, 0);
	CHECK(s.p != MAP_FAILED);
	return s;
}

static void share_free(struct share *s)
{
	munmap(s->p, SIZE);
	close(s->fd);
	if (s->memfd >= 0)
		close(s->memfd);
}

/* References to the buffer: descriptors, mappings, regions. */
static int users(int fd)
{
	char path[64], line[200];
	int count = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "count: %d", &count);
	fclose(f);
	CHECK(count > 0);
	return count;
}

/* Buffers of the machine. */
static int buffers(void)
{
	FILE *f = fopen("/sys/kernel/debug/dma_buf/bufinfo", "r");
	char line[400];
	int n = -1;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "Total %d objects", &n);
	fclose(f);
	CHECK(n >= 0);
	return n;
}

/* A pair, ordinary memory at a, a buffer at b. */
struct world {
	struct ctx *c;
	struct end a, b;
	struct buf mine;
	struct share s;
	struct uv_mr mr;
	int before;
};

static void world_new(struct world *w, enum exporter from)
{
	struct conf conf = conf_of(RC);

	w->c = ctx_open(NULL);
	w->s = share_new(from);
	w->before = users(w->s.fd);
	pair_new(w->c, &conf, &w->a, &w->b);
	w->mine = buf_new(w->c->pd, SIZE + PAGE, MR_ALL);
	OK(uv_reg_dmabuf(w->c->pd, w->s.fd, 0, SIZE, 0, ACCESS, &w->mr));
}

static void world_free(struct world *w)
{
	pair_free(&w->a, &w->b);
	buf_free(&w->mine);
	share_free(&w->s);
	ctx_close(w->c);
}

/* WRITE and READ of @len bytes at @iova, which is @p. */
static void works(struct world *w, const struct uv_mr *mr, uint64_t iova,
		  uint8_t *p, uint32_t len)
{
	static unsigned int seed;

	fill(w->mine.p, len, ++seed);
	DO(&w->a, .opcode = IBV_WR_RDMA_WRITE, .laddr = w->mine.p, .len = len,
	   .lkey = w->mine.mr->lkey, .raddr = iova, .rkey = mr->rkey);
	CHECK_EQ(filled(p, len, seed), -1);
	fill(p, len, ++seed);
	DO(&w->a, .opcode = IBV_WR_RDMA_READ, .laddr = w->mine.p, .len = len,
	   .lkey = w->mine.mr->lkey, .raddr = iova, .rkey = mr->rkey);
	CHECK_EQ(filled(w->mine.p, len, seed), -1);
}

static void fails(struct world *w, uint32_t rkey, uint64_t iova, uint32_t len,
		  int reason)
{
	FAIL_WITH(&w->a, IBV_WC_REM_ACCESS_ERR, reason,
		  .opcode = IBV_WR_RDMA_WRITE, .laddr = w->mine.p, .len = len,
		  .lkey = w->mine.mr->lkey, .raddr = iova, .rkey = rkey);
	pair_again(&w->a, &w->b);
}

/* --- bytes ------------------------------------------------------------------ */

/* ibv_reg_dmabuf_mr(3): offset, length and iova; what is around stays as it is. */
static void ranges(const void *arg)
{
	static const struct {
		uint64_t offset, len, iova;
	} rows[] = {
		{ 0, SIZE, 0 },
		{ 0, 1, 0x7000000000000000 },
		{ 1, 1, 1 },
		{ 4095, 2, 0xfff },
		{ 4097, 12345, 0x1234567001 },
		{ 5 * PAGE, 3 * PAGE + 1, 0xfffffffffff00000 },
		{ SIZE - 1, 1, SIZE - 1 },
		{ 100, SIZE - 100, 100 },
	};
	struct uv_mr mr;
	struct world w;
	uint64_t iova, len;
	size_t i;

	world_new(&w, *(const enum exporter *)arg);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		OK(uv_reg_dmabuf(w.c->pd, w.s.fd, rows[i].offset, rows[i].len,
				 rows[i].iova, ACCESS, &mr));
		OK(uv_query(&mr, &iova, &len));
		CHECK_EQ(iova, rows[i].iova);
		CHECK_EQ(len, rows[i].len);
		memset(w.s.p, 0x77, SIZE);
		works(&w, &mr, iova, w.s.p + rows[i].offset, len);
		CHECK_EQ(only(w.s.p, rows[i].offset, 0x77), -1);
		CHECK_EQ(only(w.s.p + rows[i].offset + len,
			      SIZE - rows[i].offset - len, 0x77), -1);
		fails(&w, mr.rkey, iova, len + 1, MRSOFT_R_OUTSIDE);
		if (iova)
			fails(&w, mr.rkey, iova - 1, 1, MRSOFT_R_OUTSIDE);
		fails(&w, mr.rkey, iova + len, 1, MRSOFT_R_OUTSIDE);
		OK(uv_dereg(&mr));
	}
	OK(uv_dereg(&w.mr));
	world_free(&w);
}

/* Every operation of RC, the buffer at the requester, at the responder, at both. */
static void operations(const void *arg)
{
	uint64_t *word;
	struct world w;

	world_new(&w, *(const enum exporter *)arg);
	/* SEND into the buffer, and out of it */
	fill(w.mine.p, SIZE, 1);
	OK(post_recv(&w.b, 7, (void *)101, 70001, w.mr.lkey));
	DO(&w.a, .opcode = IBV_WR_SEND, .laddr = w.mine.p, .len = 70001,
	   .lkey = w.mine.mr->lkey);
	EXPECT_WC(w.b.rcq, 7, IBV_WC_SUCCESS);
	CHECK_EQ(filled(w.s.p + 101, 70001, 1), -1);
	fill(w.s.p + 3, 5000, 2);
	OK(post_recv(&w.b, 8, w.mine.p, SIZE, w.mine.mr->lkey));
	DO(&w.a, .opcode = IBV_WR_SEND, .laddr = (void *)3, .len = 5000,
	   .lkey = w.mr.lkey);
	EXPECT_WC(w.b.rcq, 8, IBV_WC_SUCCESS);
	CHECK_EQ(filled(w.mine.p, 5000, 2), -1);

	/* READ into it, WRITE out of it to itself */
	fill(w.mine.p, 9999, 3);
	DO(&w.a, .opcode = IBV_WR_RDMA_READ, .laddr = (void *)(uintptr_t)PAGE,
	   .len = 9999, .lkey = w.mr.lkey, .raddr = (uintptr_t)w.mine.p,
	   .rkey = w.mine.mr->rkey);
	CHECK_EQ(filled(w.s.p + PAGE, 9999, 3), -1);
	DO(&w.a, .opcode = IBV_WR_RDMA_WRITE, .laddr = (void *)(uintptr_t)PAGE,
	   .len = 9999, .lkey = w.mr.lkey, .raddr = 20 * PAGE + 1,
	   .rkey = w.mr.rkey);
	CHECK_EQ(filled(w.s.p + 20 * PAGE + 1, 9999, 3), -1);

	/* atomics: the word in the buffer, the old value in the buffer */
	word = (uint64_t *)(w.s.p + 5 * PAGE);
	word[0] = 40;
	word[1] = 0;
	DO(&w.a, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8,
	   .laddr = (void *)(5 * PAGE + 8ull), .lkey = w.mr.lkey,
	   .raddr = 5 * PAGE, .rkey = w.mr.rkey, .compare = 2);
	CHECK_EQ(word[0], 42);
	CHECK_EQ(word[1], 40);
	DO(&w.a, .opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .len = 8,
	   .laddr = (void *)(5 * PAGE + 8ull), .lkey = w.mr.lkey,
	   .raddr = 5 * PAGE, .rkey = w.mr.rkey, .compare = 42, .swap = 7);
	CHECK_EQ(word[0], 7);
	CHECK_EQ(word[1], 42);
	OK(uv_dereg(&w.mr));
	world_free(&w);
}

/* Rights are those of the registration, as for other regions. */
static void rights(const void *arg)
{
	struct uv_mr mr;
	struct world w;

	world_new(&w, *(const enum exporter *)arg);
	OK(uv_reg_dmabuf(w.c->pd, w.s.fd, 0, SIZE, 0, IBV_ACCESS_REMOTE_READ,
			 &mr));
	DO(&w.a, .opcode = IBV_WR_RDMA_READ, .laddr = w.mine.p, .len = 100,
	   .lkey = w.mine.mr->lkey, .rkey = mr.rkey);
	fails(&w, mr.rkey, 0, 8, MRSOFT_R_NO_REMOTE_WRITE);
	FAIL_WITH(&w.a, IBV_WC_LOC_PROT_ERR, MRSOFT_R_NO_LOCAL_WRITE,
		  .opcode = IBV_WR_RDMA_READ, .laddr = NULL, .len = 8,
		  .lkey = mr.lkey, .raddr = (uintptr_t)w.mine.p,
		  .rkey = w.mine.mr->rkey);
	pair_again(&w.a, &w.b);
	OK(uv_dereg(&mr));
	/* relaxed ordering is accepted and changes nothing */
	OK(uv_reg_dmabuf(w.c->pd, w.s.fd, 0, SIZE, 0,
			 ACCESS | IBV_ACCESS_RELAXED_ORDERING, &mr));
	works(&w, &mr, 0, w.s.p, SIZE);
	OK(uv_dereg(&mr));
	OK(uv_dereg(&w.mr));
	world_free(&w);
}

/* The method REG_MR has a dma-buf as a variant; it is the same. */
static void by_reg_mr(const void *arg)
{
	struct uv_mr mr;
	struct world w;
	uint64_t iova, len;

	world_new(&w, *(const enum exporter *)arg);
	if (!uv_has_reg_mr(w.c->ibv))
		t_skip("a kernel without the method REG_MR");
	OK(uv_reg_mr_fd(w.c->pd, w.s.fd, 777, 5000, 0x5000309, ACCESS, &mr));
	OK(uv_query(&mr, &iova, &len));
	CHECK_EQ(iova, 0x5000309);
	CHECK_EQ(len, 5000);
	works(&w, &mr, iova, w.s.p + 777, 5000);
	OK(uv_dereg(&mr));
	CHECK_EQ(uv_reg_mr_fd(w.c->pd, w.s.fd, 1, SIZE, 1, ACCESS, &mr), EINVAL);
	OK(uv_dereg(&w.mr));
	CHECK_EQ(users(w.s.fd), w.before);
	world_free(&w);
}

/* --- lifetime --------------------------------------------------------------- */

/* Each registration has one reference; dereg drops it. */
static void given_back_once(const void *arg)
{
	enum { N = 20 };
	struct uv_mr mr[N];
	struct world w;
	int i;

	world_new(&w, *(const enum exporter *)arg);
	CHECK_EQ(users(w.s.fd), w.before + 1);
	for (i = 0; i < N; i++) {
		OK(uv_reg_dmabuf(w.c->pd, w.s.fd, i * PAGE, PAGE, i * PAGE,
				 ACCESS, &mr[i]));
		CHECK_EQ(users(w.s.fd), w.before + 2 + i);
	}
	for (i = 0; i < N; i++) {
		works(&w, &mr[i], i * PAGE, w.s.p + i * PAGE, PAGE);
		OK(uv_dereg(&mr[i]));
		CHECK_EQ(users(w.s.fd), w.before + N - i);
		fails(&w, mr[i].rkey, i * PAGE, 8, MRSOFT_R_KEY_STALE);
	}
	works(&w, &w.mr, 0, w.s.p, SIZE);
	OK(uv_dereg(&w.mr));
	CHECK_EQ(users(w.s.fd), w.before);
	CHECK_EQ(ibv_dealloc_pd(w.c->pd), EBUSY);
	world_free(&w);
}

static void soon_buffers(int want)
{
	uint64_t end = t_now() + t_patience();

	/* the last put of a file ends a moment later */
	while (buffers() != want && t_now() < end)
		t_sleep(10);
	CHECK_EQ(buffers(), want);
}

/* B22: the descriptor is needed for the registration only. */
static void fd_closed(const void *arg)
{
	struct world w;
	int n;

	n = buffers();
	world_new(&w, *(const enum exporter *)arg);
	CHECK_EQ(buffers(), n + 1);
	close(w.s.fd);
	works(&w, &w.mr, 0, w.s.p, SIZE);
	/* nor is the mapping, or the file that the pages came from */
	munmap(w.s.p, SIZE);
	if (w.s.memfd >= 0)
		close(w.s.memfd);
	CHECK_EQ(buffers(), n + 1);
	fill(w.mine.p, SIZE, 9);
	DO(&w.a, .opcode = IBV_WR_RDMA_WRITE, .laddr = w.mine.p, .len = SIZE,
	   .lkey = w.mine.mr->lkey, .raddr = 0, .rkey = w.mr.rkey);
	memset(w.mine.p, 0, SIZE);
	DO(&w.a, .opcode = IBV_WR_RDMA_READ, .laddr = w.mine.p, .len = SIZE,
	   .lkey = w.mine.mr->lkey, .raddr = 0, .rkey = w.mr.rkey);
	CHECK_EQ(filled(w.mine.p, SIZE, 9), -1);
	CHECK_EQ(buffers(), n + 1);
	OK(uv_dereg(&w.mr));
	soon_buffers(n);
	fails(&w, w.mr.rkey, 0, 8, MRSOFT_R_KEY_STALE);
	pair_free(&w.a, &w.b);
	buf_free(&w.mine);
	ctx_close(w.c);
}

/* An udmabuf has its pages whatever happens to the memfd, and so has the region. */
static void file_changes(const void *arg)
{
	struct world w;

	(void)arg;
	world_new(&w, UDMABUF);
	/* the seal that udmabuf asks for */
	CHECK(ftruncate(w.s.memfd, 0) && errno == EPERM);
	fill(w.s.p, SIZE, 4);
	CHECK(!fallocate(w.s.memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			 0, SIZE));
	DO(&w.a, .opcode = IBV_WR_RDMA_READ, .laddr = w.mine.p, .len = SIZE,
	   .lkey = w.mine.mr->lkey, .raddr = 0, .rkey = w.mr.rkey);
	CHECK_EQ(filled(w.mine.p, SIZE, 4), -1);
	works(&w, &w.mr, 0, w.s.p, SIZE);
	close(w.s.memfd);
	w.s.memfd = -1;
	works(&w, &w.mr, 0, w.s.p, SIZE);
	OK(uv_dereg(&w.mr));
	world_free(&w);
}

/* IBA 11.2.8.5: after dereg no byte of the buffer is read or written. */
static void dereg_under_traffic(const void *arg)
{
	enum { DEPTH = 8 };
	unsigned int round, ok = 0, refused = 0;
	uint8_t *copy = malloc(SIZE);
	struct world w;
	int i;

	CHECK(copy);
	world_new(&w, *(const enum exporter *)arg);
	for (round = 0; round < t_rounds(40); round++) {
		for (i = 0; i < DEPTH; i++) {
			struct op op = {
				.opcode = IBV_WR_RDMA_WRITE, .wr_id = i,
				.laddr = w.mine.p, .len = SIZE,
				.lkey = w.mine.mr->lkey, .rkey = w.mr.rkey,
			};

			memset(w.mine.p, round + i, 64);
			OK(post(&w.a, &op));
		}
		if (round % 4)
			usleep(random() % 2000);
		OK(uv_dereg(&w.mr));
		CHECK_EQ(users(w.s.fd), w.before);
		memcpy(copy, w.s.p, SIZE);
		for (i = 0; i < DEPTH; i++) {
			struct ibv_wc wc = NEXT_WC(w.a.scq);

			if (wc.status == IBV_WC_SUCCESS) {
				ok++;
				continue;
			}
			CHECK(wc.status == IBV_WC_REM_ACCESS_ERR ||
			      wc.status == IBV_WC_WR_FLUSH_ERR);
			refused++;
		}
		CHECK(!memcmp(copy, w.s.p, SIZE));
		pair_again(&w.a, &w.b);
		OK(uv_reg_dmabuf(w.c->pd, w.s.fd, 0, SIZE, 0, ACCESS, &w.mr));
	}
	t_note("%u done, %u refused", ok, refused);
	OK(uv_dereg(&w.mr));
	free(copy);
	world_free(&w);
}

/* A process that is killed, with writes under way, leaves the buffer to its owner. */
static void killed(const void *arg)
{
	struct share s = share_new(*(const enum exporter *)arg);
	int before = users(s.fd), ready[2], status;
	struct world w;
	uint64_t end;
	char byte;
	pid_t pid;

	CHECK(!pipe(ready));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		struct conf conf = conf_of(RC);

		w.c = ctx_open(NULL);
		pair_new(w.c, &conf, &w.a, &w.b);
		w.mine = buf_new(w.c->pd, SIZE, MR_ALL);
		OK(uv_reg_dmabuf(w.c->pd, s.fd, 0, SIZE, 0, ACCESS, &w.mr));
		CHECK(users(s.fd) > before);
		close(s.fd);
		CHECK(write(ready[1], "", 1) == 1);
		for (;;)
			DO(&w.a, .opcode = IBV_WR_RDMA_WRITE,
			   .laddr = w.mine.p, .len = SIZE,
			   .lkey = w.mine.mr->lkey, .rkey = w.mr.rkey);
	}
	CHECK(read(ready[0], &byte, 1) == 1);
	t_sleep(20);
	CHECK(!kill(pid, SIGKILL));
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	for (end = t_now() + t_patience(); users(s.fd) != before;)
		CHECK(t_now() < end);
	memset(s.p, 0x3c, SIZE);
	t_sleep(50);
	CHECK_EQ(only(s.p, SIZE, 0x3c), -1);
	share_free(&s);
}

/* --- refusals --------------------------------------------------------------- */

/* ibv_reg_dmabuf_mr(3), IBA 11.2.8.2: the errno, and nothing is left. */
static void refusals(const void *arg)
{
	static const struct {
		uint64_t offset, len, iova;
		unsigned int access;
		int err;
	} rows[] = {
		{ 0, 0, 0, ACCESS, EINVAL },
		{ 0, SIZE + 1, 0, ACCESS, EINVAL },
		{ 1, SIZE, 1, ACCESS, EINVAL },
		{ SIZE, 1, 0, ACCESS, EINVAL },
		{ SIZE + PAGE, 1, 0, ACCESS, EINVAL },
		{ 0, UINT64_MAX, 0, ACCESS, EINVAL },
		{ UINT64_MAX - PAGE + 1, PAGE, 0, ACCESS, EINVAL },
		{ UINT64_MAX - PAGE + 1, 2 * PAGE, 0, ACCESS, EINVAL },
		/* iova wraps; another offset in the page than the buffer's */
		{ 0, 2 * PAGE, UINT64_MAX - PAGE + 1, ACCESS, EINVAL },
		{ 0, PAGE, 1, ACCESS, EINVAL },
		/* rights: remote without local, not for a dma-buf, unknown */
		{ 0, PAGE, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ 0, PAGE, 0, IBV_ACCESS_REMOTE_ATOMIC, EINVAL },
		{ 0, PAGE, 0, ACCESS | IBV_ACCESS_MW_BIND, EINVAL },
		{ 0, PAGE, 0, ACCESS | IBV_ACCESS_ON_DEMAND, EINVAL },
		{ 0, PAGE, 0, ACCESS | IBV_ACCESS_ZERO_BASED, EINVAL },
		{ 0, PAGE, 0, 1u << 31, EINVAL },
	};
	char objects[256], now[256];
	struct uv_mr mr;
	struct world w;
	int null, i;

	world_new(&w, *(const enum exporter *)arg);
	t_objects(objects, sizeof(objects));
	for (i = 0; i < (int)ARRAY_SIZE(rows); i++) {
		int err = uv_reg_dmabuf(w.c->pd, w.s.fd, rows[i].offset,
					rows[i].len, rows[i].iova,
					rows[i].access, &mr);

		if (err != rows[i].err)
			t_fail(__FILE__, __LINE__, "row %d: %d %s", i, err,
			       strerror(err));
		CHECK_EQ(users(w.s.fd), w.before + 1);
	}
	CHECK_EQ(uv_reg_dmabuf(w.c->pd, -1, 0, 8, 0, ACCESS, &mr), EBADF);
	CHECK_EQ(uv_reg_dmabuf(w.c->pd, 999, 0, 8, 0, ACCESS, &mr), EBADF);
	null = open("/dev/null", O_RDWR);
	CHECK(null >= 0);
	CHECK_EQ(uv_reg_dmabuf(w.c->pd, null, 0, 8, 0, ACCESS, &mr), EINVAL);
	close(null);
	if (w.s.memfd >= 0)
		CHECK_EQ(uv_reg_dmabuf(w.c->pd, w.s.memfd, 0, 8, 0, ACCESS, &mr),
			 EINVAL);
	t_objects(now, sizeof(now));
	CHECK(!strcmp(objects, now));
	works(&w, &w.mr, 0, w.s.p, SIZE);
	OK(uv_dereg(&w.mr));
	world_free(&w);
}

/* As mmap(2) of such a descriptor: no way to write, but to read. */
static void opened_for_reading(const void *arg)
{
	int fd = heap_fd(O_RDONLY | O_CLOEXEC);
	int before = users(fd);
	struct uv_mr mr;
	struct world w;

	(void)arg;
	world_new(&w, HEAP);
	CHECK_EQ(uv_reg_dmabuf(w.c->pd, fd, 0, SIZE, 0, ACCESS, &mr), EACCES);
	CHECK_EQ(uv_reg_dmabuf(w.c->pd, fd, 0, SIZE, 0, IBV_ACCESS_LOCAL_WRITE,
			       &mr), EACCES);
	CHECK_EQ(users(fd), before);
	OK(uv_reg_dmabuf(w.c->pd, fd, 0, SIZE, 0, IBV_ACCESS_REMOTE_READ, &mr));
	memset(w.mine.p, 1, SIZE);
	DO(&w.a, .opcode = IBV_WR_RDMA_READ, .laddr = w.mine.p, .len = SIZE,
	   .lkey = w.mine.mr->lkey, .rkey = mr.rkey);
	CHECK_EQ(only(w.mine.p, SIZE, 0), -1);
	OK(uv_dereg(&mr));
	CHECK_EQ(users(fd), before);
	close(fd);
	OK(uv_dereg(&w.mr));
	world_free(&w);
}

/* IBA 10.6.7: a window needs the right to bind, which the core keeps from these. */
static void no_window(const void *arg)
{
	struct ibv_mw *mw;
	struct world w;
	struct ibv_mr as;

	world_new(&w, *(const enum exporter *)arg);
	mw = ibv_alloc_mw(w.c->pd, IBV_MW_TYPE_2);
	CHECK(mw);
	as = (struct ibv_mr){ .context = w.c->ibv, .pd = w.c->pd,
			      .handle = w.mr.handle, .lkey = w.mr.lkey,
			      .rkey = w.mr.rkey };
	OK(post_bind(&w.b, mw, ibv_inc_rkey(mw->rkey), &as, NULL, PAGE,
		     IBV_ACCESS_REMOTE_READ));
	EXPECT_WC_WHY(w.b.scq, 0xb1d, IBV_WC_MW_BIND_ERR, MRSOFT_R_NO_MW_BIND);
	OK(ibv_dealloc_mw(mw));
	pair_again(&w.a, &w.b);
	works(&w, &w.mr, 0, w.s.p, SIZE);
	OK(uv_dereg(&w.mr));
	CHECK_EQ(users(w.s.fd), w.before);
	world_free(&w);
}

/* memory.rst: a dma-buf is not re-registered; the region stays as it is. */
static void no_rereg(const void *arg)
{
	uint8_t *other = pages(SIZE);
	struct ibv_pd *pd;
	struct world w;

	world_new(&w, *(const enum exporter *)arg);
	pd = ibv_alloc_pd(w.c->ibv);
	CHECK(pd);
	CHECK_EQ(uv_rereg(&w.mr, REREG_ACCESS, NULL, NULL, 0, 0,
			  IBV_ACCESS_LOCAL_WRITE), EOPNOTSUPP);
	CHECK_EQ(uv_rereg(&w.mr, REREG_PD, pd, NULL, 0, 0, 0), EOPNOTSUPP);
	CHECK_EQ(uv_rereg(&w.mr, REREG_TRANS, NULL, other, SIZE,
			  (uintptr_t)other, 0), EOPNOTSUPP);
	OK(ibv_dealloc_pd(pd));
	works(&w, &w.mr, 0, w.s.p, SIZE);
	OK(uv_dereg(&w.mr));
	CHECK_EQ(users(w.s.fd), w.before);
	munmap(other, SIZE);
	world_free(&w);
}

static const enum exporter from_udmabuf = UDMABUF, from_heap = HEAP;

#define CASE(from, fn) { #from "_" #fn, fn, &from_##from, 0 }

static const struct t_case cases[] = {
	CASE(udmabuf, ranges),
	CASE(heap, ranges),
	CASE(udmabuf, operations),
	CASE(heap, operations),
	CASE(udmabuf, rights),
	CASE(heap, rights),
	CASE(udmabuf, by_reg_mr),
	CASE(heap, by_reg_mr),
	CASE(udmabuf, given_back_once),
	CASE(heap, given_back_once),
	CASE(udmabuf, fd_closed),
	CASE(heap, fd_closed),
	{ "udmabuf_file_changes", file_changes, NULL, 0 },
	CASE(udmabuf, dereg_under_traffic),
	CASE(heap, dereg_under_traffic),
	CASE(udmabuf, killed),
	CASE(heap, killed),
	CASE(udmabuf, refusals),
	CASE(heap, refusals),
	{ "heap_opened_for_reading", opened_for_reading, NULL, 0 },
	CASE(udmabuf, no_window),
	CASE(heap, no_window),
	CASE(udmabuf, no_rereg),
	CASE(heap, no_rereg),
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
