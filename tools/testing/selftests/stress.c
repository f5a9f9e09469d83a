// SPDX-License-Identifier: GPL-2.0
/*
 * stress.c - random work on many RC QPs between two hosts, on a wire that loses
 *
 * Both ends of each pair post.  "all_arrives": nothing but the wire is bad, so each
 * request succeeds, and memory is in the end as if they were executed one after the
 * other.  "wild": SQD and back, errors, RESET and reconnection, new QPs, regions and
 * windows that go and come.  "killed": the same, by a process that dies.  Whatever
 * is done, each request completes once and in its turn, but where a RESET took it.
 *
 * Environment: MRSOFT_DEV and MRSOFT_DEV2, the two hosts; STRESS_SEED: as printed.
 *
 * Spec: IBA Vol 1, 10.8.3 (order), 10.3.1 (states), 9.7.5 to 9.7.7
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "lib.h"

#define PAIRS 6u
#define REGIONS 4u
#define REGION (512 * KiB)
#define BURST 40u
#define RECVS 48u

/* A region that goes and comes; who posts may have a key that is gone. */
struct region {
	uint8_t *p;
	struct ibv_mr *mr;
	uint32_t key;
};

struct host {
	struct ctx *c;
	struct region r[REGIONS];
};

/**
 * struct side - one end of a pair
 * @here: its host
 * @there: the peer's
 * @posted: send WRs; the next wr_id
 * @done: completions of them
 * @rposted: receive WRs
 * @rdone: completions of them
 * @good: of them, those that succeeded
 * @failed: one had an error since the QP was connected
 * @mw: type 2, or NULL
 * @mw_key: its key since the last bind
 * @area: all_arrives: of @there's first region, only written by this side
 * @shadow: what it should look like
 * @adds: what was added to the word at its end
 */
struct side {
	struct end e;
	struct host *here, *there;
	uint64_t posted, done, good, rposted, rdone;
	bool failed;
	struct ibv_mw *mw;
	uint32_t mw_key;
	uint64_t area;
	uint8_t *shadow;
	uint64_t adds;
};

struct pair {
	pthread_t thread;
	struct side s[2];
	struct host *hosts;
	unsigned int seed, index, rounds;
	bool calm;
};

#define AREA (32 * KiB)

static unsigned int seed;
static volatile bool stop;
/* Regions from the third on have pages that are not pinned, where that is known. */
static int odp;

static uint32_t rnd(unsigned int *s, uint32_t n)
{
	return ((uint32_t)rand_r(s) ^ (uint32_t)rand_r(s) << 15) % n;
}

static uint32_t key_of(const struct region *r)
{
	return __atomic_load_n(&r->key, __ATOMIC_RELAXED);
}

/* --- regions -------------------------------------------------------------- */

static int access_of(unsigned int k)
{
	return MR_ALL | (k >= 2 ? odp : 0);
}

static void region_again(struct host *h, unsigned int k)
{
	struct region *r = &h->r[k];
	struct ibv_mr *mr;

	/* a window is bound to it: nothing has changed */
	if (r->mr && ibv_dereg_mr(r->mr))
		return;
	mr = ibv_reg_mr(h->c->pd, r->p, REGION, access_of(k));
	CHECK(mr);
	r->mr = mr;
	__atomic_store_n(&r->key, mr->lkey, __ATOMIC_RELAXED);
}

static void drop_pages(struct host *h)
{
	OK(madvise(h->r[2].p, REGION, MADV_DONTNEED));
	OK(madvise(h->r[3].p, REGION, MADV_DONTNEED));
}

static void *take_pages(void *arg)
{
	struct host *hosts = arg;

	while (odp && !stop) {
		drop_pages(&hosts[0]);
		drop_pages(&hosts[1]);
		/* each page comes back by a fault of its own, for all pairs */
		t_sleep(50 * t_slow());
	}
	return NULL;
}

static void *change_regions(void *arg)
{
	struct host *hosts = arg;
	unsigned int s = seed ^ 0x5eed, k;

	while (!stop) {
		struct host *h = &hosts[rnd(&s, 2)];

		k = 1 + rnd(&s, REGIONS - 1);
		if (rnd(&s, 4))
			region_again(h, k);
		else
			rereg(h->r[k].mr, REREG_ACCESS, NULL, NULL, 0, 0,
			      access_of(k));
		if (odp)
			drop_pages(h);
		usleep(rnd(&s, 20000));
	}
	return NULL;
}

static void find_odp(struct ctx *c)
{
	struct ibv_device_attr_ex attr;

	OK(ibv_query_device_ex(c->ibv, NULL, &attr));
	odp = attr.odp_caps.general_caps & IBV_ODP_SUPPORT ?
		IBV_ACCESS_ON_DEMAND : 0;
}

static void hosts_new(struct host *hosts)
{
	unsigned int i, k;

	hosts[0].c = ctx_open(NULL);
	hosts[1].c = ctx_open(ctx_second());
	find_odp(hosts[0].c);
	for (i = 0; i < 2; i++) {
		for (k = 0; k < REGIONS; k++) {
			hosts[i].r[k].p = pages(REGION);
			fill(hosts[i].r[k].p, REGION, k);
			region_again(&hosts[i], k);
		}
	}
}

static void hosts_free(struct host *hosts)
{
	unsigned int i, k;

	for (i = 0; i < 2; i++) {
		for (k = 0; k < REGIONS; k++)
			OK(ibv_dereg_mr(hosts[i].r[k].mr));
		ctx_close(hosts[i].c);
	}
}

/* --- completions ---------------------------------------------------------- */

static void collect_sends(struct pair *p, struct side *s)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(s->e.scq, 1, &wc) > 0) {
		if (wc.wr_id != s->done || s->done == s->posted)
			t_fail(__FILE__, __LINE__,
			       "pair %u: wr_id %llu, %s, not %llu of %llu",
			       p->index, (unsigned long long)wc.wr_id,
			       ibv_wc_status_str(wc.status),
			       (unsigned long long)s->done,
			       (unsigned long long)s->posted);
		s->done++;
		if (s->failed)
			CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
		if (wc.status == IBV_WC_SUCCESS) {
			s->good++;
			continue;
		}
		if (p->calm)
			t_fail(__FILE__, __LINE__, "pair %u: wr_id %llu: %s, %u",
			       p->index, (unsigned long long)wc.wr_id,
			       ibv_wc_status_str(wc.status), wc.vendor_err);
		s->failed = true;
	}
}

static void fill_receives(struct side *s)
{
	struct region *r = &s->here->r[0];

	while (s->rposted - s->rdone < RECVS)
		OK(post_recv(&s->e, s->rposted++, r->p + REGION / 2,
			     REGION / 2, key_of(r)));
}

static void collect(struct pair *p, struct side *s)
{
	struct ibv_wc wc;

	collect_sends(p, s);
	while (ibv_poll_cq(s->e.rcq, 1, &wc) > 0) {
		CHECK_EQ(wc.wr_id, s->rdone);
		CHECK(s->rdone < s->rposted);
		s->rdone++;
	}
}

static void serve(struct pair *p, bool receives)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		collect(p, &p->s[i]);
		if (receives)
			fill_receives(&p->s[i]);
	}
}

/* All that was posted completes. */
static void drain(struct pair *p, bool receives)
{
	uint64_t limit = t_now() + 2 * t_patience();

	for (;;) {
		struct side *a = &p->s[0], *b = &p->s[1];

		serve(p, receives);
		if (a->posted == a->done && b->posted == b->done &&
		    (receives || (a->rposted == a->rdone &&
				  b->rposted == b->rdone)))
			return;
		if (t_now() > limit)
			t_fail(__FILE__, __LINE__,
			       "pair %u hangs: %s %llu of %llu, %s %llu of %llu; receives %llu of %llu, %llu of %llu",
			       p->index, state_name(end_state(&a->e)),
			       (unsigned long long)a->done,
			       (unsigned long long)a->posted,
			       state_name(end_state(&b->e)),
			       (unsigned long long)b->done,
			       (unsigned long long)b->posted,
			       (unsigned long long)a->rdone,
			       (unsigned long long)a->rposted,
			       (unsigned long long)b->rdone,
			       (unsigned long long)b->rposted);
		usleep(300);
	}
}

/* --- requests ------------------------------------------------------------- */

static uint32_t some_length(unsigned int *s)
{
	switch (rnd(s, 8)) {
	case 0:
		return 0;
	case 1:
		return 1 + rnd(s, REGION / 2);
	case 2:
		return 1 + rnd(s, 30000);
	default:
		return 1 + rnd(s, 300);
	}
}

static const enum ibv_wr_opcode opcodes[] = {
	IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
	IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
	IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
	IBV_WR_ATOMIC_CMP_AND_SWP,
};

/* Anything; some of it will be refused. */
static int post_wild(struct pair *p, struct side *s)
{
	const struct region *from = &s->here->r[rnd(&p->seed, REGIONS)];
	const struct region *to = &s->there->r[rnd(&p->seed, REGIONS)];
	struct op op = {
		.opcode = opcodes[rnd(&p->seed, ARRAY_SIZE(opcodes))],
		.wr_id = s->posted, .len = some_length(&p->seed),
		.laddr = from->p + rnd(&p->seed, REGION / 2),
		.lkey = key_of(from), .rkey = key_of(to),
		.raddr = (uintptr_t)to->p + rnd(&p->seed, REGION / 2),
		.imm = 1, .compare = 1, .swap = 2,
		.flags = rnd(&p->seed, 8) ? 0 : IBV_SEND_FENCE,
	};
	struct side *peer = s == p->s ? s + 1 : s - 1;

	if (op.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	    op.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		op.len = 8;
		op.raddr &= ~7ull;
	}
	if (!rnd(&p->seed, 16) && peer->mw_key)
		op.rkey = peer->mw_key;
	if (!rnd(&p->seed, 200))
		op.rkey ^= 1;
	if (!rnd(&p->seed, 200))
		op.lkey ^= 1;
	return post(&s->e, &op);
}

/* A window over the own region, or its end: by WQE, so it counts as one. */
static int post_window(struct pair *p, struct side *s)
{
	struct region *r = &s->here->r[1 + rnd(&p->seed, REGIONS - 1)];
	uint32_t key;
	int err;

	if (!s->mw)
		return -1;
	key = ibv_inc_rkey(s->mw_key);
	err = post(&s->e, &(struct op){
		.opcode = IBV_WR_BIND_MW, .wr_id = s->posted,
		.bind = { .mw = s->mw, .rkey = key, .mr = r->mr,
			  .addr = (uintptr_t)r->p,
			  .length = rnd(&p->seed, 3) ? REGION : 0,
			  .access = IBV_ACCESS_REMOTE_WRITE |
				    IBV_ACCESS_REMOTE_READ } });
	if (!err)
		s->mw_key = key;
	return err;
}

/* What always succeeds, with its effect on the shadow. */
static int post_calm(struct pair *p, struct side *s)
{
	struct region *own = &s->here->r[0];
	uint8_t *there = s->there->r[0].p + s->area;
	uint32_t len = 1 + rnd(&p->seed, AREA - 8), at;
	struct op op = {
		.opcode = opcodes[rnd(&p->seed, ARRAY_SIZE(opcodes) - 1)],
		.wr_id = s->posted, .lkey = key_of(own),
		.rkey = key_of(&s->there->r[0]),
		.flags = rnd(&p->seed, 8) ? 0 : IBV_SEND_FENCE,
	};
	const uint8_t *from = s->here->r[1].p + rnd(&p->seed, AREA);
	int err;

	at = rnd(&p->seed, AREA - 8 - len + 1);
	switch (op.opcode) {
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		op.laddr = own->p + REGION / 2;
		op.len = 8;
		op.raddr = (uintptr_t)there + AREA - 8;
		op.compare = 1 + rnd(&p->seed, 1000);
		break;
	case IBV_WR_RDMA_READ:
		/* a long one now and then: in parts */
		op.laddr = own->p + REGION / 2;
		op.len = rnd(&p->seed, 8) ? len : REGION / 2;
		op.raddr = (uintptr_t)s->there->r[2].p;
		op.rkey = key_of(&s->there->r[2]);
		break;
	default:
		op.laddr = from;
		op.lkey = key_of(&s->here->r[1]);
		op.len = len;
		op.raddr = (uintptr_t)there + at;
	}
	err = post(&s->e, &op);
	if (err)
		return err;
	if (op.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		s->adds += op.compare;
	else if (op.opcode == IBV_WR_RDMA_WRITE ||
		 op.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		memcpy(s->shadow + at, from, len);
	return 0;
}

static void burst(struct pair *p, struct side *s)
{
	unsigned int n = 1 + rnd(&p->seed, BURST);

	while (n--) {
		int err = p->calm ? post_calm(p, s) :
			  rnd(&p->seed, 12) ? post_wild(p, s) :
					      post_window(p, s);

		if (!err)
			s->posted++;
		else if (err == ENOMEM)
			break;
	}
}

/* --- what is done to QPs -------------------------------------------------- */

static void forget(struct pair *p)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct side *s = &p->s[i];

		collect(p, s);
		s->done = s->posted;
		s->rdone = s->rposted;
		s->failed = false;
	}
}

static void connect_sides(struct pair *p)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		p->s[i].e.conf.psn = rnd(&p->seed, 2) ?
			0xffffff - rnd(&p->seed, 64) : rnd(&p->seed, 1 << 24);
	pair_connect(&p->s[0].e, &p->s[1].e);
	for (i = 0; i < 2; i++)
		fill_receives(&p->s[i]);
}

static void again(struct pair *p)
{
	unsigned int first = rnd(&p->seed, 2);

	OK(end_to(&p->s[first].e, IBV_QPS_RESET));
	if (!rnd(&p->seed, 3))
		usleep(rnd(&p->seed, 3000));
	OK(end_to(&p->s[!first].e, IBV_QPS_RESET));
	forget(p);
	connect_sides(p);
}

/* Both to the error state: all completes, then they start again. */
static void fail_and_again(struct pair *p)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		OK(end_to(&p->s[i].e, IBV_QPS_ERR));
	drain(p, false);
	again(p);
}

static void side_new(struct pair *p, unsigned int i)
{
	struct conf conf = conf_of(RC);
	struct side *s = &p->s[i];

	/* a busy machine is no bad wire: 268 ms; where QPs die the wait is short */
	conf.timeout = p->calm ? 16 : 12;
	conf.retry_cnt = 7;
	conf.rnr_retry = 7;
	conf.rd_atomic = 1 + rnd(&p->seed, 16);
	conf.cap.max_send_wr = 100;
	s->here = &p->hosts[i];
	s->there = &p->hosts[!i];
	s->e = end_new(s->here->c, &conf);
	if (p->calm)
		return;
	s->mw = ibv_alloc_mw(s->here->c->pd, IBV_MW_TYPE_2);
	CHECK(s->mw);
	s->mw_key = s->mw->rkey;
}

static void side_free(struct side *s)
{
	end_free(&s->e);
	if (s->mw)
		OK(ibv_dealloc_mw(s->mw));
	s->mw = NULL;
}

static void new_qps(struct pair *p)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		side_free(&p->s[i]);
	for (i = 0; i < 2; i++) {
		struct side *s = &p->s[i];

		s->done = s->posted;
		s->rdone = s->rposted;
		s->failed = false;
		side_new(p, i);
	}
	connect_sides(p);
}

/* It may be in the error state by now. */
static void drain_state(struct pair *p, struct side *s)
{
	if (end_to(&s->e, IBV_QPS_SQD))
		return;
	burst(p, s);
	usleep(rnd(&p->seed, 5000));
	end_to(&s->e, IBV_QPS_RTS);
}

static void be_wild(struct pair *p)
{
	struct side *s = &p->s[rnd(&p->seed, 2)];

	switch (rnd(&p->seed, 12)) {
	case 0 ... 3:
		drain_state(p, s);
		break;
	case 4:
		OK(end_to(&s->e, IBV_QPS_ERR));
		break;
	case 5:
		again(p);
		break;
	case 6:
		new_qps(p);
		break;
	case 7:
		drain(p, true);
		break;
	default:
		usleep(rnd(&p->seed, 3000));
	}
	serve(p, true);
	if (end_state(&p->s[0].e) == IBV_QPS_ERR ||
	    end_state(&p->s[1].e) == IBV_QPS_ERR)
		fail_and_again(p);
}

static void *run_pair(void *arg)
{
	struct pair *p = arg;
	unsigned int i;

	for (i = 0; i < p->rounds; i++) {
		burst(p, &p->s[0]);
		burst(p, &p->s[1]);
		serve(p, true);
		if (!p->calm)
			be_wild(p);
	}
	drain(p, true);
	return NULL;
}

/* --- cases ---------------------------------------------------------------- */

static void pairs_new(struct pair *pairs, struct host *hosts, bool calm,
		      unsigned int rounds)
{
	unsigned int i, k;

	for (i = 0; i < PAIRS; i++) {
		struct pair *p = &pairs[i];

		*p = (struct pair){
			.hosts = hosts, .seed = seed + i, .index = i,
			.rounds = rounds, .calm = calm,
		};
		for (k = 0; k < 2; k++) {
			side_new(p, k);
			p->s[k].area = i * AREA;
			p->s[k].shadow = malloc(AREA);
			memset(hosts[k].r[0].p + i * AREA, 0, AREA);
			memset(p->s[k].shadow, 0, AREA);
		}
		connect_sides(p);
	}
}

static void check_memory(const struct pair *p)
{
	unsigned int k;

	for (k = 0; k < 2; k++) {
		const struct side *s = &p->s[k];
		uint8_t *there = s->there->r[0].p + s->area;
		uint64_t word;

		memcpy(&word, there + AREA - 8, 8);
		CHECK_EQ(word, s->adds);
		CHECK(!memcmp(there, s->shadow, AREA - 8));
	}
}

static void run(bool calm, unsigned int rounds)
{
	struct pair pairs[PAIRS];
	unsigned long long posted = 0, good = 0;
	struct host hosts[2] = {};
	pthread_t regions;
	unsigned int i, k;

	t_note("STRESS_SEED=%u", seed);
	hosts_new(hosts);
	pairs_new(pairs, hosts, calm, rounds);
	OK(pthread_create(&regions, NULL, calm ? take_pages : change_regions,
			  hosts));
	for (i = 0; i < PAIRS; i++)
		OK(pthread_create(&pairs[i].thread, NULL, run_pair, &pairs[i]));
	for (i = 0; i < PAIRS; i++)
		OK(pthread_join(pairs[i].thread, NULL));
	stop = true;
	OK(pthread_join(regions, NULL));
	for (i = 0; i < PAIRS; i++) {
		if (calm)
			check_memory(&pairs[i]);
		for (k = 0; k < 2; k++) {
			posted += pairs[i].s[k].posted;
			good += pairs[i].s[k].good;
			side_free(&pairs[i].s[k]);
		}
	}
	t_note("%llu requests, %llu succeeded", posted, good);
	hosts_free(hosts);
}

static void all_arrives(const void *arg)
{
	(void)arg;
	run(true, t_rounds(30));
}

static void wild(const void *arg)
{
	(void)arg;
	run(false, t_rounds(150));
}

static void killed(const void *arg)
{
	unsigned int i, s = seed;

	(void)arg;
	for (i = 0; i < t_rounds(6); i++) {
		int status;
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			seed += i;
			run(false, 1000000);
			_exit(0);
		}
		usleep(100000 * t_slow() + rnd(&s, 400000 * t_slow()));
		kill(pid, SIGKILL);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
}

/* Only by name: somebody takes the device away meanwhile, and kills it. */
static void victim(const void *arg)
{
	(void)arg;
	run(false, 1000000);
}

static const struct t_case cases[] = {
	{ "all_arrives", all_arrives, NULL, 60 },
	{ "wild", wild, NULL, 60 },
	{ "killed", killed, NULL, 60 },
};

int main(int argc, char **argv)
{
	const char *s = getenv("STRESS_SEED");

	seed = s ? (unsigned int)strtoul(s, NULL, 0) : (unsigned int)t_now();
	if (argc == 2 && !strcmp(argv[1], "victim")) {
		victim(NULL);
		return 0;
	}
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
