// SPDX-License-Identifier: GPL-2.0
/*
 * impair.c - packets that are asked to be lost, doubled, late or damaged
 *
 *	impair --hold	has packets held back, says "held" and waits to be ended by
 *			the end of the device
 *
 * MRSOFT_DEV takes the wire path.
 */
#include <pthread.h>

#include "rules.h"
#include "world.h"

#define SIZE (64 * KiB)
#define NUM 200

static void world_new(struct world *w, enum ibv_qp_type type)
{
	struct conf conf = conf_of(type);

	conf.cap.max_recv_wr = NUM;
	/* 67 ms: a busy machine answers within it, and a loss shows soon */
	conf.timeout = 14;
	world_open(w, &conf, SIZE);
	fill(w->mine.p, SIZE, 3);
	rules_clear();
}

static void world_end(struct world *w)
{
	rules_clear();
	world_free(w);
}

/* Each packet of a WRITE of some, or of its answer: the message survives. */
static const struct damage {
	const char *rule;	/* with the QP that it is about */
	bool answer;		/* it is about the answers */
	unsigned int hits;
	const char *counter;	/* of which that many are seen at least */
} damages[] = {
	{ "drop qp=%u nth=2", false, 1, "retransmits" },
	{ "drop qp=%u nth=2 dir=rx", true, 1, "retransmits" },
	/* a later one answers for it as well */
	{ "drop qp=%u nth=1", true, 1, NULL },
	{ "duplicate qp=%u nth=2", false, 1, "duplicates" },
	{ "duplicate qp=%u nth=2 dir=rx", true, 1, "duplicates" },
	{ "reorder qp=%u nth=2", false, 1, NULL },
	{ "reorder qp=%u nth=2 dir=rx", true, 1, NULL },
	{ "corrupt qp=%u nth=2", false, 1, "refused_pkt_icrc" },
	{ "corrupt qp=%u nth=2 dir=rx", true, 1, "refused_pkt_icrc" },
	{ "delay qp=%u nth=1 ms=30", false, 1, NULL },
	{ "delay qp=%u nth=1 ms=30 dir=rx", true, 1, NULL },
	{ "drop qp=%u every=5 count=3", false, 3, "retransmits" },
};

static void survives(const void *arg)
{
	const struct damage *d = arg;
	unsigned long long before = 0, injected;
	struct world w;

	world_new(&w, RC);
	injected = t_counter(ctx_first(), "refused_injected");
	if (d->counter)
		before = t_counter(ctx_first(), d->counter);
	rule_add(d->rule, (d->answer ? w.b : w.a).qp->qp_num);
	DO(&w.a, .opcode = IBV_WR_RDMA_WRITE, .laddr = w.mine.p, .len = SIZE,
	   .lkey = w.mine.mr->lkey, .raddr = (uintptr_t)w.theirs.p,
	   .rkey = w.theirs.mr->rkey);
	CHECK_EQ(filled(w.theirs.p, SIZE, 3), -1);
	CHECK_EQ(rule_hits(1), d->hits);
	CHECK_EQ(t_counter(ctx_first(), "refused_injected"), injected + d->hits);
	if (d->counter)
		CHECK(t_counter(ctx_first(), d->counter) >= before + d->hits);
	world_end(&w);
}

/* All is lost: retry_cnt is 3, IBA 9.7.6.1.3. */
static void all_lost(const void *arg)
{
	struct world w;

	(void)arg;
	world_new(&w, RC);
	rule_add("drop qp=%u every=1", w.a.qp->qp_num);
	FAIL_WITH(&w.a, IBV_WC_RETRY_EXC_ERR, MRSOFT_R_RETRY_EXCEEDED,
		  .opcode = IBV_WR_RDMA_WRITE, .laddr = w.mine.p, .len = 100,
		  .lkey = w.mine.mr->lkey, .raddr = (uintptr_t)w.theirs.p,
		  .rkey = w.theirs.mr->rkey);
	/* once, and three times again */
	expect_rule(1, 4, 4, "-");
	expect_state(&w.b, IBV_QPS_RTS);
	world_end(&w);
}

/* Datagrams with a number each; @got gets those that came, in their order. */
static unsigned int datagrams(struct world *w, unsigned int n, uint8_t *got)
{
	struct ibv_wc wc;
	unsigned int i, came = 0;

	for (i = 0; i < n; i++)
		OK(post_recv(&w->b, i, w->theirs.p + 64 * i, 64,
			     w->theirs.mr->lkey));
	for (i = 0; i < n; i++) {
		w->mine.p[0] = i;
		DO(&w->a, .opcode = IBV_WR_SEND, .laddr = w->mine.p, .len = 1,
		   .lkey = w->mine.mr->lkey);
	}
	while (wait_wc(w->b.rcq, &wc, 100 * t_slow())) {
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		if (came < n)
			got[came] = w->theirs.p[64 * wc.wr_id + 40];
		came++;
	}
	return came;
}

static void expect_datagrams(const char *rule, const char *want)
{
	char got[64] = "";
	uint8_t numbers[16];
	struct world w;
	unsigned int i, n;

	world_new(&w, UD);
	rule_add(rule, (strstr(rule, "rx") ? w.b : w.a).qp->qp_num);
	n = datagrams(&w, 6, numbers);
	for (i = 0; i < n && i < 6; i++)
		got[i] = '0' + numbers[i];
	if (strcmp(got, want))
		t_fail(__FILE__, __LINE__, "%s: %s, not %s", rule, got, want);
	world_end(&w);
}

/* Exactly the one that is named, and nobody sends it again. */
static void datagram_rules(const void *arg)
{
	(void)arg;
	expect_datagrams("drop qp=%u nth=3", "01345");
	expect_datagrams("drop qp=%u nth=3 dir=rx", "01345");
	expect_datagrams("drop qp=%u every=2", "024");
	expect_datagrams("corrupt qp=%u nth=1 count=2", "2345");
	expect_datagrams("corrupt qp=%u nth=6 dir=rx", "01234");
	expect_datagrams("reorder qp=%u nth=2", "021345");
	expect_datagrams("reorder qp=%u nth=2 dir=rx", "021345");
	expect_datagrams("delay qp=%u nth=1 ms=50", "123450");
	expect_datagrams("delay qp=%u nth=1 ms=50 dir=rx", "123450");
	/* nobody overtakes the last */
	expect_datagrams("reorder qp=%u nth=6", "012345");
	expect_datagrams("drop qp=%u nth=7", "012345");
}

static void twice(const void *arg)
{
	uint8_t got[8];
	struct world w;

	(void)arg;
	world_new(&w, UD);
	rule_add("duplicate qp=%u nth=2", w.a.qp->qp_num);
	/* six receives: 0 1 1 2 3 4, and for 5 there is none */
	CHECK_EQ(datagrams(&w, 6, got), 6);
	CHECK(!memcmp(got, "\0\1\1\2\3\4", 6));
	world_end(&w);
}

/* The same seed: the same packets, on other QPs and another day. */
static void deterministic(const void *arg)
{
	static uint8_t got[3][NUM];
	unsigned int i, n[3];
	struct world w;

	(void)arg;
	for (i = 0; i < 3; i++) {
		world_new(&w, UD);
		rule_add("drop qp=%u chance=1/5 seed=%u", w.a.qp->qp_num,
			 i < 2 ? 42 : 43);
		n[i] = datagrams(&w, NUM, got[i]);
		CHECK_EQ(n[i] + rule_hits(1), NUM);
		world_end(&w);
	}
	CHECK_EQ(n[1], n[0]);
	CHECK(!memcmp(got[0], got[1], n[0]));
	CHECK(n[2] != n[0] || memcmp(got[0], got[2], n[0]));
	CHECK(n[0] > NUM / 2 && n[0] < NUM);
}

static void *writer(void *arg)
{
	volatile bool *stop = arg;
	unsigned int n = 0;
	char text[64];

	while (!*stop) {
		sprintf(text, "delay every=%u ms=%u dir=%s", 1 + n % 3,
			1 + n % 7, n % 2 ? "rx" : "tx");
		rule_write(text, strlen(text));
		rule_write("reorder every=3", 15);
		if (n++ % 4 == 3)
			rules_clear();
	}
	return NULL;
}

/* Rules, packets that are held back, and QPs: each comes and goes as it likes. */
static void come_and_go(const void *arg)
{
	struct op op = { .opcode = IBV_WR_RDMA_WRITE, .len = 4096 };
	bool stop = false;
	pthread_t thread;
	unsigned int i;
	struct world w;

	(void)arg;
	CHECK(!pthread_create(&thread, NULL, writer, &stop));
	for (i = 0; i < t_rounds(40); i++) {
		world_new(&w, RC);
		op.laddr = w.mine.p;
		op.lkey = w.mine.mr->lkey;
		op.raddr = (uintptr_t)w.theirs.p;
		op.rkey = w.theirs.mr->rkey;
		OK(post(&w.a, &op));
		OK(post(&w.b, &op));
		t_sleep(i % 4);
		world_end(&w);
	}
	*(volatile bool *)&stop = true;
	pthread_join(thread, NULL);
	rules_clear();
}

/* Packets in the hands of the device, and somebody in dereg. */
static int held(void)
{
	struct world w;
	struct op op;
	struct ibv_mr *mr;

	world_new(&w, UD);
	rule_add("delay every=1 ms=10000");
	rule_add("delay every=1 ms=10000 dir=rx");
	rule_add("hold dereg ms=10000");
	op = (struct op){ .opcode = IBV_WR_SEND, .laddr = w.mine.p, .len = 1,
			  .lkey = w.mine.mr->lkey };
	OK(post(&w.a, &op));
	OK(post(&w.a, &op));
	rule_wait(1, 2);
	mr = ibv_reg_mr(w.c->pd, w.theirs.p, SIZE, MR_ALL);
	CHECK(mr);
	puts("held");
	fflush(stdout);
	/* until the device goes */
	ibv_dereg_mr(mr);
	return 0;
}

static const struct t_case cases[] = {
	{ "drop", survives, &damages[0], 0 },
	{ "drop_rx", survives, &damages[1], 0 },
	{ "drop_answer", survives, &damages[2], 0 },
	{ "duplicate", survives, &damages[3], 0 },
	{ "duplicate_rx", survives, &damages[4], 0 },
	{ "reorder", survives, &damages[5], 0 },
	{ "reorder_rx", survives, &damages[6], 0 },
	{ "corrupt", survives, &damages[7], 0 },
	{ "corrupt_rx", survives, &damages[8], 0 },
	{ "delay", survives, &damages[9], 0 },
	{ "delay_rx", survives, &damages[10], 0 },
	{ "drop_every", survives, &damages[11], 0 },
	{ "all_lost", all_lost, NULL, 0 },
	{ "datagrams", datagram_rules, NULL, 60 },
	{ "twice", twice, NULL, 0 },
	{ "deterministic", deterministic, NULL, 60 },
	{ "come_and_go", come_and_go, NULL, 60 },
};

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--hold"))
		return held();
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
