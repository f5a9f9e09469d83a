// SPDX-License-Identifier: GPL-2.0
/*
 * lost.c - each kind of packet lost, doubled, spoilt or late, one at a time
 *
 *	MRSOFT_DEV (CABLE_A's netdev) ---- cable ---- MRSOFT_DEV2 (CABLE_B's)
 *
 * Reliable is reliable: whatever happens to one packet, every message arrives
 * once, whole, in order, and an atomic runs once.  IBA Vol 1, 9.7.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cable.h"
#include "lib.h"

/* Opcodes of the BTH, IBA table 38. */
enum {
	SEND_FIRST = 0x00, SEND_MIDDLE = 0x01, SEND_LAST = 0x02,
	SEND_LAST_IMM = 0x03, SEND_ONLY = 0x04,
	WRITE_FIRST = 0x06, WRITE_MIDDLE = 0x07, WRITE_LAST = 0x08,
	WRITE_LAST_IMM = 0x09, WRITE_ONLY = 0x0a,
	READ_REQUEST = 0x0c, READ_FIRST = 0x0d, READ_MIDDLE = 0x0e,
	READ_LAST = 0x0f, READ_ONLY = 0x10,
	ACK = 0x11, ATOMIC_ACK = 0x12, CMP_SWAP = 0x13, FETCH_ADD = 0x14,
	UC_SEND_MIDDLE = 0x21, UC_WRITE_MIDDLE = 0x27,
	ANY = -1,
};

/* first, three middles, last at an MTU of 4096 */
#define LEN (16 * KiB + 100)

struct net {
	struct ctx *ca, *cb;
	struct buf mine, theirs;
	struct end a, b;
};

static void net_new(struct net *n, enum ibv_qp_type type)
{
	struct conf conf = conf_of(type);

	conf.timeout = 14;	/* 67 ms */
	conf.retry_cnt = 7;
	conf.rnr_retry = 7;
	n->ca = ctx_open(NULL);
	n->cb = ctx_open(ctx_second());
	n->mine = buf_new(n->ca->pd, MiB, MR_ALL);
	n->theirs = buf_new(n->cb->pd, MiB, MR_ALL);
	pair_new2(n->ca, n->cb, &conf, &n->a, &n->b);
}

static void net_free(struct net *n)
{
	pair_free(&n->a, &n->b);
	buf_free(&n->mine);
	buf_free(&n->theirs);
	ctx_close(n->ca);
	ctx_close(n->cb);
}

static void send_message(struct net *n, enum ibv_wr_opcode opcode, uint32_t len,
			 unsigned int seed)
{
	fill(n->mine.p, len, seed);
	memset(n->theirs.p, 0x77, len + 64);
	DO(&n->a, .opcode = opcode, .laddr = n->mine.p, .len = len,
	   .lkey = n->mine.mr->lkey, .raddr = (uintptr_t)n->theirs.p,
	   .rkey = n->theirs.mr->rkey, .imm = seed, .wr_id = seed);
	CHECK_EQ(filled(n->theirs.p, len, seed), -1);
	CHECK_EQ(only(n->theirs.p + len, 64, 0x77), -1);
}

static void expect_receive(struct net *n, uint64_t wr_id, uint32_t len)
{
	struct ibv_wc wc = NEXT_WC(n->b.rcq);

	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, wr_id);
	CHECK_EQ(wc.byte_len, len);
}

static void with_receive(struct net *n, enum ibv_wr_opcode opcode,
			 unsigned int seed)
{
	bool imm = opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

	OK(post_recv(&n->b, seed, imm ? NULL : n->theirs.p, imm ? 0 : LEN,
		     imm ? 0 : n->theirs.mr->lkey));
	send_message(n, opcode, LEN, seed);
	expect_receive(n, seed, LEN);
}

static void read_message(struct net *n, unsigned int seed)
{
	fill(n->theirs.p, LEN, seed);
	memset(n->mine.p, 0x77, LEN + 64);
	DO(&n->a, .opcode = IBV_WR_RDMA_READ, .laddr = n->mine.p, .len = LEN,
	   .lkey = n->mine.mr->lkey, .raddr = (uintptr_t)n->theirs.p,
	   .rkey = n->theirs.mr->rkey);
	CHECK_EQ(filled(n->mine.p, LEN, seed), -1);
	CHECK_EQ(only(n->mine.p + LEN, 64, 0x77), -1);
}

/* Each adds one, or swaps in the number that follows: once, whatever is lost. */
static void change_word(struct net *n, enum ibv_wr_opcode opcode,
			unsigned int seed)
{
	uint64_t *word = (uint64_t *)n->theirs.p, *old = (uint64_t *)n->mine.p;

	*word = seed * 1000;
	DO(&n->a, .opcode = opcode, .laddr = old, .len = 8,
	   .lkey = n->mine.mr->lkey, .raddr = (uintptr_t)word,
	   .rkey = n->theirs.mr->rkey, .compare = opcode ==
	   IBV_WR_ATOMIC_FETCH_AND_ADD ? 1 : seed * 1000,
	   .swap = seed * 1000 + 1);
	CHECK_EQ(*old, seed * 1000);
	CHECK_EQ(*word, seed * 1000 + 1);
}

static void message(struct net *n, enum ibv_wr_opcode opcode, unsigned int seed)
{
	switch (opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		with_receive(n, opcode, seed);
		break;
	case IBV_WR_RDMA_READ:
		read_message(n, seed);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		change_word(n, opcode, seed);
		break;
	default:
		send_message(n, opcode, LEN, seed);
	}
}

/**
 * struct one - one packet has an accident
 * @name: for the report
 * @opcode: of the messages
 * @packet: opcode of the packet
 * @nth: which of them
 */
struct one {
	const char *name;
	enum ibv_wr_opcode opcode;
	int packet;
	int nth;
};

static void accident(const struct one *one, enum cable_act act)
{
	struct cable_rule rule = {
		.act = act, .opcode = one->packet, .nth = one->nth, .count = 1,
	};
	unsigned int i;
	struct net n;

	cable_start(NULL);
	net_new(&n, RC);
	message(&n, one->opcode, 1);
	cable_set(&rule);
	/* one that it strikes, and those behind it */
	for (i = 2; i < 6; i++)
		message(&n, one->opcode, i);
	CHECK_EQ(cable_struck(), 1);
	EXPECT_EMPTY(n.b.rcq, 5);
	expect_state(&n.a, IBV_QPS_RTS);
	expect_state(&n.b, IBV_QPS_RTS);
	net_free(&n);
}

static void lost(const void *arg)
{
	accident(arg, CABLE_DROP);
}

static void twice(const void *arg)
{
	accident(arg, CABLE_TWICE);
}

static void late(const void *arg)
{
	accident(arg, CABLE_LATE);
}

static void spoilt(const void *arg)
{
	uint64_t here = t_counter(ctx_first(), "refused_pkt_icrc");
	uint64_t there = t_counter(ctx_second(), "refused_pkt_icrc");

	accident(arg, CABLE_SPOIL);
	CHECK_EQ(t_counter(ctx_first(), "refused_pkt_icrc") - here +
		 t_counter(ctx_second(), "refused_pkt_icrc") - there, 1);
}

/* Everything is lost from here on: gives up after all its tries, in time. */
static void silence(const void *arg)
{
	struct cable_rule rule = { CABLE_DROP, ANY, 1, -1 };
	const int *retries = arg;
	struct conf conf = conf_of(RC);
	uint64_t start, took;
	struct net n;

	cable_start(NULL);
	net_new(&n, RC);
	pair_free(&n.a, &n.b);
	conf.timeout = 14;
	conf.retry_cnt = *retries;
	pair_new2(n.ca, n.cb, &conf, &n.a, &n.b);
	message(&n, IBV_WR_RDMA_WRITE, 1);
	cable_set(&rule);
	start = t_now();
	FAIL_WITH(&n.a, IBV_WC_RETRY_EXC_ERR, -1, .opcode = IBV_WR_RDMA_WRITE,
		  .laddr = n.mine.p, .len = 10, .lkey = n.mine.mr->lkey,
		  .raddr = (uintptr_t)n.theirs.p, .rkey = n.theirs.mr->rkey);
	took = t_now() - start;
	t_note("%d retries of 67 ms: %llu ms, %u packets", *retries,
	       (unsigned long long)took, cable_seen(WRITE_ONLY));
	CHECK_EQ(cable_seen(WRITE_ONLY), *retries + 1);
	/* IBA 9.7.6.1.3: not before the time-out, and not for ever */
	CHECK(took >= 67u * (*retries + 1) - 10);
	CHECK(took < 67u * 8 * (*retries + 1) + 2000 * t_slow());
	net_free(&n);
}

/* A receive WQE is missing: the wait that the responder asks for is kept. */
static void rnr(const void *arg)
{
	struct conf conf = conf_of(RC);
	uint64_t start, took;
	struct net n;

	(void)arg;
	cable_start(NULL);
	net_new(&n, RC);
	pair_free(&n.a, &n.b);
	conf.min_rnr = 0;	/* 655 ms, IBA table 46 */
	conf.rnr_retry = 2;
	/* 537 ms: ends within a wait if it runs on, and not on a busy machine's way */
	conf.timeout = 17;
	pair_new2(n.ca, n.cb, &conf, &n.a, &n.b);
	start = t_now();
	FAIL_WITH(&n.a, IBV_WC_RNR_RETRY_EXC_ERR, -1, .opcode = IBV_WR_SEND,
		  .laddr = n.mine.p, .len = 10, .lkey = n.mine.mr->lkey);
	took = t_now() - start;
	t_note("two waits of 655 ms: %llu ms, %u packets",
	       (unsigned long long)took, cable_seen(SEND_ONLY));
	CHECK_EQ(cable_seen(SEND_ONLY), 3);
	CHECK(took >= 1310);
	net_free(&n);
}

/* It comes while the requester waits: the message is delivered, once. */
static void rnr_ends(const void *arg)
{
	const enum ibv_wr_opcode *opcode = arg;
	struct op op = { .opcode = *opcode, .len = LEN, .wr_id = 3 };
	struct net n;

	cable_start(NULL);
	net_new(&n, RC);
	fill(n.mine.p, LEN, 3);
	op.laddr = n.mine.p;
	op.lkey = n.mine.mr->lkey;
	op.raddr = (uintptr_t)n.theirs.p;
	op.rkey = n.theirs.mr->rkey;
	OK(post(&n.a, &op));
	t_sleep(50);
	OK(post_recv(&n.b, 3, n.theirs.p, LEN, n.theirs.mr->lkey));
	EXPECT_WC(n.a.scq, 3, IBV_WC_SUCCESS);
	expect_receive(&n, 3, LEN);
	CHECK_EQ(filled(n.theirs.p, LEN, 3), -1);
	EXPECT_EMPTY(n.b.rcq, 5);
	net_free(&n);
}

/*
 * A READ that is asked for in parts: what is asked for again is a part of one of
 * these, or the responder could not tell that it was allowed.  IBA 9.7.5.1.2.
 */
static void long_read(const void *arg)
{
	const struct one *one = arg;
	struct cable_rule rule = { CABLE_DROP, one->packet, one->nth, 1 };
	uint32_t len = 800 * KiB + 100;
	struct net n;

	cable_start(NULL);
	net_new(&n, RC);
	cable_set(&rule);
	fill(n.theirs.p, len, 7);
	memset(n.mine.p, 0x77, len + 64);
	DO(&n.a, .opcode = IBV_WR_RDMA_READ, .laddr = n.mine.p, .len = len,
	   .lkey = n.mine.mr->lkey, .raddr = (uintptr_t)n.theirs.p,
	   .rkey = n.theirs.mr->rkey);
	CHECK_EQ(cable_struck(), 1);
	CHECK_EQ(filled(n.mine.p, len, 7), -1);
	CHECK_EQ(only(n.mine.p + len, 64, 0x77), -1);
	net_free(&n);
}

/* UC: the message is lost as a whole, the next one is not. */
static void uc_loses(const void *arg)
{
	const struct one *one = arg;
	struct cable_rule rule = { CABLE_DROP, one->packet, one->nth, 1 };
	struct net n;

	cable_start(NULL);
	net_new(&n, UC);
	cable_set(&rule);
	OK(post_recv(&n.b, 1, n.theirs.p, LEN, n.theirs.mr->lkey));
	DO(&n.a, .opcode = one->opcode, .laddr = n.mine.p, .len = LEN,
	   .lkey = n.mine.mr->lkey, .raddr = (uintptr_t)n.theirs.p,
	   .rkey = n.theirs.mr->rkey);
	EXPECT_EMPTY(n.b.rcq, 50);
	CHECK_EQ(cable_struck(), 1);
	fill(n.mine.p, LEN, 9);
	DO(&n.a, .opcode = one->opcode == IBV_WR_SEND ? IBV_WR_SEND :
	   IBV_WR_RDMA_WRITE_WITH_IMM, .laddr = n.mine.p, .len = LEN,
	   .lkey = n.mine.mr->lkey, .raddr = (uintptr_t)n.theirs.p,
	   .rkey = n.theirs.mr->rkey);
	expect_receive(&n, 1, LEN);
	CHECK_EQ(filled(n.theirs.p, LEN, 9), -1);
	net_free(&n);
}

/* Nothing is lost, nothing is sent twice: also not under load. */
static void no_loss(const void *arg)
{
	unsigned int pairs = t_slow() > 3 ? 4 : 16, i, j, rounds = t_rounds(20);
	struct conf conf = conf_of(RC);
	struct end *a = calloc(pairs, sizeof(*a)), *b = calloc(pairs, sizeof(*b));
	uint64_t here = t_counter(ctx_first(), "retransmits");
	uint64_t there = t_counter(ctx_second(), "retransmits");
	struct net n;

	(void)arg;
	/* a cable without us in the way, so that it loses nothing */
	net_new(&n, RC);
	conf.timeout = 18;
	for (i = 0; i < pairs; i++)
		pair_new2(n.ca, n.cb, &conf, &a[i], &b[i]);
	for (j = 0; j < rounds; j++) {
		for (i = 0; i < pairs; i++) {
			struct op op = {
				.opcode = j & 1 ? IBV_WR_RDMA_READ :
						  IBV_WR_RDMA_WRITE,
				.laddr = n.mine.p, .len = 200000,
				.lkey = n.mine.mr->lkey, .wr_id = j,
				.raddr = (uintptr_t)n.theirs.p,
				.rkey = n.theirs.mr->rkey,
			};

			OK(post(&a[i], &op));
		}
	}
	for (i = 0; i < pairs; i++) {
		for (j = 0; j < rounds; j++)
			EXPECT_WC(a[i].scq, j, IBV_WC_SUCCESS);
		pair_free(&a[i], &b[i]);
	}
	CHECK_EQ(t_counter(ctx_first(), "retransmits"), here);
	CHECK_EQ(t_counter(ctx_second(), "retransmits"), there);
	net_free(&n);
}

static const struct one uc_send = { "", IBV_WR_SEND, UC_SEND_MIDDLE, 2 },
	uc_write = { "", IBV_WR_RDMA_WRITE_WITH_IMM, UC_WRITE_MIDDLE, 2 };
static const struct one long_reads[] = {
	{ "", IBV_WR_RDMA_READ, READ_REQUEST, 2 },
	{ "", IBV_WR_RDMA_READ, READ_FIRST, 2 },
	{ "", IBV_WR_RDMA_READ, READ_MIDDLE, 10 },
	{ "", IBV_WR_RDMA_READ, READ_MIDDLE, 60 },
	{ "", IBV_WR_RDMA_READ, READ_LAST, 1 },
};

static const int none = 0, three = 3;
static const enum ibv_wr_opcode op_send = IBV_WR_SEND,
	op_write_imm = IBV_WR_RDMA_WRITE_WITH_IMM;

/* Each of them is lost, doubled, spoilt and late. */
static const struct one ones[] = {
	{ "send_first", IBV_WR_SEND, SEND_FIRST, 2 },
	{ "send_middle", IBV_WR_SEND, SEND_MIDDLE, 2 },
	{ "send_last", IBV_WR_SEND, SEND_LAST, 2 },
	{ "send_ack", IBV_WR_SEND, ACK, 2 },
	{ "imm_last", IBV_WR_SEND_WITH_IMM, SEND_LAST_IMM, 2 },
	{ "write_first", IBV_WR_RDMA_WRITE, WRITE_FIRST, 2 },
	{ "write_middle", IBV_WR_RDMA_WRITE, WRITE_MIDDLE, 3 },
	{ "write_last", IBV_WR_RDMA_WRITE, WRITE_LAST, 2 },
	{ "write_ack", IBV_WR_RDMA_WRITE, ACK, 2 },
	{ "write_imm", IBV_WR_RDMA_WRITE_WITH_IMM, WRITE_LAST_IMM, 2 },
	{ "write_imm_ack", IBV_WR_RDMA_WRITE_WITH_IMM, ACK, 2 },
	{ "read_request", IBV_WR_RDMA_READ, READ_REQUEST, 2 },
	{ "read_first", IBV_WR_RDMA_READ, READ_FIRST, 2 },
	{ "read_middle", IBV_WR_RDMA_READ, READ_MIDDLE, 3 },
	{ "read_last", IBV_WR_RDMA_READ, READ_LAST, 2 },
	{ "add_request", IBV_WR_ATOMIC_FETCH_AND_ADD, FETCH_ADD, 2 },
	{ "add_ack", IBV_WR_ATOMIC_FETCH_AND_ADD, ATOMIC_ACK, 2 },
	{ "swap_request", IBV_WR_ATOMIC_CMP_AND_SWP, CMP_SWAP, 2 },
	{ "swap_ack", IBV_WR_ATOMIC_CMP_AND_SWP, ATOMIC_ACK, 2 },
};

static const struct {
	const char *name;
	void (*fn)(const void *arg);
} accidents[] = {
	{ "lost", lost },
	{ "twice", twice },
	{ "spoilt", spoilt },
	{ "late", late },
};

static const struct t_case more[] = {
	{ "silence_no_retry", silence, &none, 0 },
	{ "silence_3_retries", silence, &three, 0 },
	{ "rnr_is_waited_for", rnr, NULL, 0 },
	{ "rnr_ends_send", rnr_ends, &op_send, 0 },
	{ "rnr_ends_write_imm", rnr_ends, &op_write_imm, 0 },
	{ "long_read_request", long_read, &long_reads[0], 0 },
	{ "long_read_first", long_read, &long_reads[1], 0 },
	{ "long_read_10th", long_read, &long_reads[2], 0 },
	{ "long_read_60th", long_read, &long_reads[3], 0 },
	{ "long_read_last", long_read, &long_reads[4], 0 },
	{ "uc_loses_send", uc_loses, &uc_send, 0 },
	{ "uc_loses_write_imm", uc_loses, &uc_write, 0 },
};

#define ACCIDENTS (ARRAY_SIZE(ones) * ARRAY_SIZE(accidents))

/* Run without the cable, over a plain veth pair. */
static const struct t_case plain[] = {
	{ "no_loss_no_retransmit", no_loss, NULL, 60 },
};

int main(int argc, char **argv)
{
	static struct t_case cases[ACCIDENTS + ARRAY_SIZE(more)];
	static char names[ACCIDENTS][32];
	size_t i, count = 0, n = ARRAY_SIZE(accidents);

	if (!getenv("CABLE_A"))
		return t_main(argc, argv, plain, ARRAY_SIZE(plain));
	for (i = 0; i < ACCIDENTS; i++) {
		/* a slow machine: two accidents for each packet, in turn */
		if (t_slow() > 1 && (i / n + i % n) % 2)
			continue;
		snprintf(names[i], sizeof(names[i]), "%s_%s",
			 accidents[i % n].name, ones[i / n].name);
		cases[count++] = (struct t_case){ names[i], accidents[i % n].fn,
						  &ones[i / n], 0 };
	}
	memcpy(cases + count, more, sizeof(more));
	return t_main(argc, argv, cases, count + ARRAY_SIZE(more));
}
