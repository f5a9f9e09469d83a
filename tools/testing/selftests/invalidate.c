// SPDX-License-Identifier: GPL-2.0
/*
 * invalidate.c - pages that move, are copied, paged out or cut off under traffic
 *
 * None of it changes what the process sees at its addresses, so none of it may
 * change what the device sees there: each message succeeds and each byte is right.
 * Of a range and of an implicit region.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "paging.h"

#define SIZE (512 * KiB)

struct world {
	struct ctx *c;
	struct end a, b;
	uint8_t *mine, *theirs;
	struct ibv_mr *mine_mr, *theirs_mr;
};

static void world_new(struct world *w, bool implicit)
{
	struct conf conf = conf_of(RC);

	*w = (struct world){ .c = ctx_open(NULL) };
	need_odp(w->c, IBV_ODP_SUPPORT);
	pair_new(w->c, &conf, &w->a, &w->b);
	w->mine = pages(SIZE);
	w->theirs = pages(SIZE);
	w->mine_mr = ibv_reg_mr(w->c->pd, implicit ? NULL : w->mine,
				implicit ? SIZE_MAX : SIZE, ODP);
	w->theirs_mr = ibv_reg_mr(w->c->pd, implicit ? NULL : w->theirs,
				  implicit ? SIZE_MAX : SIZE, ODP);
	CHECK(w->mine_mr && w->theirs_mr);
}

static void world_free(struct world *w)
{
	pair_free(&w->a, &w->b);
	OK(ibv_dereg_mr(w->mine_mr));
	OK(ibv_dereg_mr(w->theirs_mr));
	munmap(w->mine, SIZE);
	munmap(w->theirs, SIZE);
	ctx_close(w->c);
}

static struct ibv_wc move(const struct world *w, enum ibv_wr_opcode opcode, size_t at,
			  size_t len)
{
	struct op op = {
		.opcode = opcode, .wr_id = 1, .laddr = w->mine + at,
		.lkey = w->mine_mr->lkey, .len = len,
		.raddr = (uintptr_t)w->theirs + at, .rkey = w->theirs_mr->rkey,
	};
	struct ibv_wc wc;

	OK(post((struct end *)&w->a, &op));
	wc = NEXT_WC(w->a.scq);
	look_again();
	return wc;
}

struct disturbance {
	pthread_t thread;
	const struct world *w;
	void (*turn)(const struct disturbance *c, unsigned long round);
	int fd;
	pthread_mutex_t turns;
	volatile bool stop, quiet;
	volatile unsigned long rounds;
};

static void *disturbing(void *arg)
{
	struct disturbance *c = arg;

	while (!c->stop) {
		pthread_mutex_lock(&c->turns);
		if (!c->quiet)
			c->turn(c, c->rounds++);
		pthread_mutex_unlock(&c->turns);
		sched_yield();
	}
	return NULL;
}

static void disturb(struct disturbance *c, const struct world *w)
{
	c->w = w;
	pthread_mutex_init(&c->turns, NULL);
	CHECK(!pthread_create(&c->thread, NULL, disturbing, c));
}

static void disturb_no_more(struct disturbance *c)
{
	c->stop = true;
	CHECK(!pthread_join(c->thread, NULL));
}

/*
 * Changes come while a message is on its way, not while the CPU looks: what User
 * Mode Linux shows a thread while another one changes its page tables is old.
 */
static struct ibv_wc move_in_churn(struct disturbance *c, enum ibv_wr_opcode opcode,
				   size_t len)
{
	struct ibv_wc wc;

	c->quiet = false;
	wc = move(c->w, opcode, 0, len);
	c->quiet = true;
	/* the end of a turn */
	pthread_mutex_lock(&c->turns);
	pthread_mutex_unlock(&c->turns);
	look_again();
	return wc;
}

/* fork(2): pages are shared until somebody writes, and the parent's stays its. */
static void turn_fork(const struct disturbance *c, unsigned long round)
{
	const struct world *w = c->w;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		/* the child's copies are nobody's business */
		memset(w->theirs, 0xee, round % 2 ? SIZE : PAGE);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

/* The suite has turned swap on. */
static void turn_page_out(const struct disturbance *c, unsigned long round)
{
	madvise(round % 2 ? c->w->mine : c->w->theirs, SIZE, MADV_PAGEOUT);
}

/* mremap(2) there and back would be a hole: pages move by compaction alone. */
static void turn_compact(const struct disturbance *c, unsigned long round)
{
	(void)round;
	CHECK_EQ(write(c->fd, "1", 1), 1);
}

/* Neighbours go, and what shares a table with these pages. */
static void turn_neighbours(const struct disturbance *c, unsigned long round)
{
	uint8_t *p = pages(4 * PAGE);

	(void)c;
	memset(p, round, 4 * PAGE);
	CHECK(!madvise(p, 4 * PAGE, MADV_DONTNEED));
	CHECK(!munmap(p, 4 * PAGE));
}

struct kind {
	void (*turn)(const struct disturbance *c, unsigned long round);
	bool implicit;
	/* what it writes to, if it is offered */
	const char *file;
};

static void data_right(const void *arg)
{
	const struct kind *kind = arg;
	struct disturbance churn = { .turn = kind->turn, .fd = -1 };
	unsigned int i;
	uint64_t limit;
	struct world w;

	if (kind->file) {
		churn.fd = open(kind->file, O_WRONLY);
		if (churn.fd < 0)
			t_skip("a kernel that does not compact memory");
	}
	world_new(&w, kind->implicit);
	churn.quiet = true;
	disturb(&churn, &w);
	limit = t_now() + 3 * t_patience();
	for (i = 0; i < t_rounds(t_wire() ? 12 : 60) || churn.rounds < 10; i++) {
		CHECK(t_now() < limit);
		fill(w.mine, SIZE, i);
		CHECK_EQ(move_in_churn(&churn, IBV_WR_RDMA_WRITE, SIZE).status,
			 IBV_WC_SUCCESS);
		CHECK_EQ(filled(w.theirs, SIZE, i), -1);
		fill(w.theirs, SIZE, i + 1000);
		CHECK_EQ(move_in_churn(&churn, IBV_WR_RDMA_READ, SIZE).status,
			 IBV_WC_SUCCESS);
		CHECK_EQ(filled(w.mine, SIZE, i + 1000), -1);
	}
	disturb_no_more(&churn);
	t_note("%u rounds, %lu changes", i, churn.rounds);
	if (churn.fd >= 0)
		close(churn.fd);
	world_free(&w);
}

/* ftruncate(2): the second half of the file goes, and comes back empty. */
static void turn_truncate(const struct disturbance *c, unsigned long round)
{
	CHECK(!ftruncate(c->fd, round % 2 ? SIZE : SIZE / 2));
}

static void truncated(const void *arg)
{
	const bool *implicit = arg;
	struct disturbance churn = { .turn = turn_truncate };
	unsigned int i, good = 0;
	uint8_t *copy = malloc(SIZE);
	struct ibv_wc wc;
	uint64_t limit;
	struct world w;

	CHECK(copy);
	world_new(&w, *implicit);
	churn.fd = memfd_create("invalidate", 0);
	CHECK(churn.fd >= 0);
	CHECK(!ftruncate(churn.fd, SIZE));
	CHECK(mmap(w.theirs, SIZE, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED, churn.fd, 0) == w.theirs);
	disturb(&churn, &w);
	limit = t_now() + 3 * t_patience();
	for (i = 0; i < t_rounds(t_wire() ? 12 : 60) || churn.rounds < 10; i++) {
		CHECK(t_now() < limit);
		fill(w.mine, SIZE, i);
		/* what stays */
		CHECK_EQ(move(&w, IBV_WR_RDMA_WRITE, 0, SIZE / 2).status,
			 IBV_WC_SUCCESS);
		CHECK_EQ(pread(churn.fd, copy, SIZE / 2, 0), SIZE / 2);
		CHECK_EQ(filled(copy, SIZE / 2, i), -1);
		/* what may be beyond the end */
		wc = move(&w, i & 1 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, 0,
			  SIZE);
		if (wc.status == IBV_WC_SUCCESS) {
			good++;
			continue;
		}
		CHECK_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
		pair_again(&w.a, &w.b);
	}
	disturb_no_more(&churn);
	t_note("%u of %u whole messages, %lu changes", good, i, churn.rounds);
	CHECK(!ftruncate(churn.fd, SIZE));
	fill(w.mine, SIZE, 7);
	CHECK_EQ(move(&w, IBV_WR_RDMA_WRITE, 0, SIZE).status, IBV_WC_SUCCESS);
	CHECK_EQ(pread(churn.fd, copy, SIZE, 0), SIZE);
	CHECK_EQ(filled(copy, SIZE, 7), -1);
	close(churn.fd);
	free(copy);
	world_free(&w);
}

#define COMPACT "/proc/sys/vm/compact_memory"

static const struct kind
	forks = { turn_fork, false, NULL },
	forks_implicit = { turn_fork, true, NULL },
	page_out = { turn_page_out, false, NULL },
	page_out_implicit = { turn_page_out, true, NULL },
	compact = { turn_compact, false, COMPACT },
	compact_implicit = { turn_compact, true, COMPACT },
	neighbours = { turn_neighbours, true, NULL };
static const bool yes = true, no;

static const struct t_case cases[] = {
	{ "fork", data_right, &forks, 40 },
	{ "fork_implicit", data_right, &forks_implicit, 40 },
	{ "page_out", data_right, &page_out, 40 },
	{ "page_out_implicit", data_right, &page_out_implicit, 40 },
	{ "compaction", data_right, &compact, 40 },
	{ "compaction_implicit", data_right, &compact_implicit, 40 },
	{ "neighbours", data_right, &neighbours, 40 },
	{ "truncation", truncated, &no, 40 },
	{ "truncation_implicit", truncated, &yes, 40 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
