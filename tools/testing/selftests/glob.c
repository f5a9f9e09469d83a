// SPDX-License-Identifier: GPL-2.0
/*
 * glob.c - atomics are atomic towards all (IBV_ATOMIC_GLOB, IBA 11.2.1.2)
 *
 * One word of memory that CPUs and QPs of both paths change at the same time.
 * Nothing is lost: the sum is exact.
 */
#include <fcntl.h>
#include <pthread.h>

#include "lib.h"

#define ADDERS 2
#define PEERS 4
/* Of CPUs and peers together, so that no carry shows which one was lost. */
#define CPU_STEP 1ull
#define PEER_STEP 0x100000000ull

struct shared {
	struct buf buf;
	volatile bool stop;
};

struct adder {
	pthread_t thread;
	struct shared *shared;
	bool cmpxchg;
	uint64_t added;
};

/* Half of them add, half of them compare and swap. */
static void *adding(void *arg)
{
	struct adder *a = arg;
	uint64_t *word = (void *)a->shared->buf.p, old;

	while (!a->shared->stop) {
		if (!a->cmpxchg) {
			__atomic_fetch_add(word, CPU_STEP, __ATOMIC_RELAXED);
			a->added += CPU_STEP;
			continue;
		}
		old = __atomic_load_n(word, __ATOMIC_RELAXED);
		if (__atomic_compare_exchange_n(word, &old, old + CPU_STEP,
						false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			a->added += CPU_STEP;
	}
	return NULL;
}

/* What QPs that are connected from now on take. */
static void set_path(struct ctx *c, const char *path)
{
	char file[100];
	int fd;

	snprintf(file, sizeof(file), "/sys/class/infiniband/%s/path",
		 ibv_get_device_name(c->ibv->device));
	fd = open(file, O_WRONLY);
	CHECK(fd >= 0);
	CHECK_EQ(write(fd, path, strlen(path)), (ssize_t)strlen(path));
	close(fd);
}

struct peer_qp {
	struct end a, b;
	struct buf result;
	bool swap;
	uint64_t added;
};

static void peer_new(struct ctx *c, struct peer_qp *p, bool swap)
{
	struct conf conf = conf_of(RC);

	/* a machine whose CPUs are all adding is slow: 1 s */
	conf.timeout = 18;
	conf.retry_cnt = 7;
	*p = (struct peer_qp){ .swap = swap };
	pair_new(c, &conf, &p->a, &p->b);
	p->result = buf_new(c->pd, 4096, MR_ALL);
}

/* One operation, which may find that somebody was faster with a swap. */
static void peer_post(struct peer_qp *p, const struct buf *buf)
{
	uint64_t *word = (void *)buf->p;
	uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
	struct op op = {
		.opcode = p->swap ? IBV_WR_ATOMIC_CMP_AND_SWP :
				    IBV_WR_ATOMIC_FETCH_AND_ADD,
		.laddr = p->result.p, .len = 8, .lkey = p->result.mr->lkey,
		.raddr = (uintptr_t)buf->p, .rkey = buf->mr->rkey,
		.compare = p->swap ? old : PEER_STEP, .swap = old + PEER_STEP,
		.wr_id = old,
	};

	OK(post(&p->a, &op));
}

static void peer_done(struct peer_qp *p)
{
	struct ibv_wc wc = NEXT_WC(p->a.scq);
	uint64_t *result = (void *)p->result.p;

	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	if (!p->swap || *result == wc.wr_id)
		p->added += PEER_STEP;
}

static void sum(const void *arg)
{
	const int *access = arg;
	struct ctx *c = ctx_open(NULL);
	struct shared shared = {};
	struct adder adders[ADDERS] = {};
	struct peer_qp peers[PEERS];
	struct ibv_device_attr_ex attr;
	uint64_t want = 0, swaps = 0;
	unsigned int i, n;

	OK(ibv_query_device_ex(c->ibv, NULL, &attr));
	CHECK_EQ(attr.orig_attr.atomic_cap, IBV_ATOMIC_GLOB);
	if (*access & IBV_ACCESS_ON_DEMAND &&
	    !(attr.odp_caps.general_caps & IBV_ODP_SUPPORT))
		t_skip("a kernel without on-demand paging");
	shared.buf = buf_new(c->pd, 4096, *access);
	/* two of each path: one adds, one swaps */
	for (i = 0; i < PEERS; i++) {
		set_path(c, i < PEERS / 2 ? "local" : "wire");
		peer_new(c, &peers[i], i & 1);
	}
	set_path(c, t_wire() ? "wire" : "auto");
	for (i = 0; i < ADDERS; i++) {
		adders[i].shared = &shared;
		adders[i].cmpxchg = i & 1;
		CHECK(!pthread_create(&adders[i].thread, NULL, adding,
				      &adders[i]));
	}
	for (n = 0; n < t_rounds(1000); n++) {
		for (i = 0; i < PEERS; i++)
			peer_post(&peers[i], &shared.buf);
		for (i = 0; i < PEERS; i++)
			peer_done(&peers[i]);
	}
	shared.stop = true;
	for (i = 0; i < ADDERS; i++) {
		CHECK(!pthread_join(adders[i].thread, NULL));
		CHECK(adders[i].added);
		want += adders[i].added;
	}
	for (i = 0; i < PEERS; i++) {
		want += peers[i].added;
		swaps += peers[i].swap ? peers[i].added / PEER_STEP : 0;
		if (!peers[i].swap)
			CHECK_EQ(peers[i].added, n * PEER_STEP);
	}
	CHECK_EQ(*(uint64_t *)shared.buf.p, want);
	t_note("%u rounds, %llu swaps of peers hit", n,
	       (unsigned long long)swaps);
	for (i = 0; i < PEERS; i++) {
		pair_free(&peers[i].a, &peers[i].b);
		buf_free(&peers[i].result);
	}
	buf_free(&shared.buf);
	ctx_close(c);
}

static const int pinned = MR_ALL, on_demand = MR_ALL | IBV_ACCESS_ON_DEMAND;

static const struct t_case cases[] = {
	{ "cpus_and_peers", sum, &pinned, 40 },
	{ "cpus_and_peers_on_demand", sum, &on_demand, 40 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
