// SPDX-License-Identifier: GPL-2.0
/*
 * crowd.c - many RC QPs at once between two hosts, each byte and each sum checked
 *
 * All QPs add to one counter while each of them writes, reads and sends in memory of
 * its own.  What a wire loses is sent again, yet an atomic is executed once: the
 * counter is exact, and the old values that come back are all different.  Two
 * processes: the requesters are in one, what serves them in the other.
 *
 * Environment: MRSOFT_DEV and MRSOFT_DEV2, the two hosts; LOSSY=1: the wire loses.
 * Where it does not, nothing may be sent twice.
 *
 * Spec: IBA Vol 1, 9.4.5 (atomics), 9.7.5.1.2 (duplicates)
 */
#include <sys/socket.h>
#include <sys/wait.h>

#include "lib.h"

#define QPS 64u
#define ROUNDS 16u
#define SLOT 16384u		/* bytes that a QP writes, reads and sends */

/* What the two processes tell each other. */
struct told {
	struct addr addr[QPS];
	uint64_t memory;
	uint32_t rkey;
};

/* Memory of the one that serves: each message has a place of its own. */
struct served {
	uint64_t counter;
	uint8_t readable[QPS][SLOT];
	uint8_t written[QPS][ROUNDS][SLOT];
	uint8_t received[QPS][ROUNDS][SLOT];
};

/* Memory of the requesters. */
struct own {
	uint64_t old[QPS];
	uint8_t write[QPS][SLOT];
	uint8_t read[QPS][SLOT];
	uint8_t send[QPS][SLOT];
};

static bool lossy(void)
{
	return getenv("LOSSY");
}

static void say(int sock)
{
	CHECK_EQ(write(sock, "", 1), 1);
}

/* Ends when the other process has said something, or has ended. */
static void hear(int sock)
{
	char c;

	CHECK_EQ(recv(sock, &c, 1, MSG_WAITALL), 1);
}

static void new_ends(struct ctx *c, struct end *e)
{
	struct conf conf = conf_of(RC);
	unsigned int i;

	/* 67 ms; 4 s where only a slow machine would need it */
	conf.timeout = lossy() ? 14 : 20;
	conf.retry_cnt = 7;
	for (i = 0; i < QPS; i++)
		e[i] = end_new(c, &conf);
}

static void connect_ends(struct end *e, struct told *mine, struct told *theirs,
			 int sock)
{
	unsigned int i;

	for (i = 0; i < QPS; i++)
		mine->addr[i] = end_addr(&e[i]);
	CHECK_EQ(write(sock, mine, sizeof(*mine)), sizeof(*mine));
	CHECK_EQ(recv(sock, theirs, sizeof(*theirs), MSG_WAITALL),
		 sizeof(*theirs));
	for (i = 0; i < QPS; i++) {
		OK(end_rtr(&e[i], &theirs->addr[i]));
		OK(end_rts(&e[i]));
	}
	say(sock);
	hear(sock);
}

static unsigned int seed_of(unsigned int qp, unsigned int round)
{
	return qp * ROUNDS + round;
}

/* --- the one that serves -------------------------------------------------- */

static void check_sends(struct end *e, const struct served *s)
{
	unsigned int i, round;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < QPS; i++) {
			struct ibv_wc wc = NEXT_WC(e[i].rcq);

			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			CHECK_EQ(wc.wr_id, round);
			CHECK_EQ(wc.byte_len, SLOT);
			CHECK_EQ(wc.imm_data, htobe32(round));
			CHECK_EQ(filled(s->received[i][round], SLOT,
					seed_of(i, round)), -1);
			/* what was written before is there */
			CHECK_EQ(filled(s->written[i][round], SLOT,
					seed_of(i, round) + 1), -1);
		}
	}
}

static void serve(int sock)
{
	struct ctx *c = ctx_open(ctx_second());
	struct buf b = buf_new(c->pd, sizeof(struct served), MR_ALL);
	struct served *s = (void *)b.p;
	struct told mine = { .memory = (uintptr_t)s, .rkey = b.mr->rkey };
	struct told theirs;
	struct end e[QPS];
	unsigned int i, j;

	new_ends(c, e);
	for (i = 0; i < QPS; i++) {
		OK(end_init(&e[i]));
		fill(s->readable[i], SLOT, i);
		for (j = 0; j < ROUNDS; j++)
			OK(post_recv(&e[i], j, s->received[i][j], SLOT,
				     b.mr->lkey));
	}
	connect_ends(e, &mine, &theirs, sock);
	hear(sock);
	check_sends(e, s);
	CHECK_EQ(s->counter, QPS * ROUNDS);
	for (i = 0; i < QPS; i++) {
		EXPECT_EMPTY(e[i].rcq, 0);
		CHECK_EQ(filled(s->readable[i], SLOT, i), -1);
		end_free(&e[i]);
	}
	buf_free(&b);
	ctx_close(c);
}

/* --- the requesters ------------------------------------------------------- */

static void post_round(struct end *e, const struct buf *b,
		       const struct told *peer, unsigned int i,
		       unsigned int round)
{
	struct served *there = (void *)(uintptr_t)peer->memory;
	struct own *o = (void *)b->p;
	struct op ops[] = { {
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.laddr = &o->old[i], .len = 8,
		.raddr = (uintptr_t)&there->counter, .compare = 1,
		.quiet = true,
	}, {
		.opcode = IBV_WR_RDMA_WRITE,
		.laddr = o->write[i], .len = SLOT,
		.raddr = (uintptr_t)there->written[i][round],
		.quiet = true,
	}, {
		.opcode = IBV_WR_RDMA_READ,
		.laddr = o->read[i], .len = SLOT,
		.raddr = (uintptr_t)there->readable[i],
		.quiet = true,
	}, {
		.opcode = IBV_WR_SEND_WITH_IMM,
		.laddr = o->send[i], .len = SLOT,
		.imm = round,
	} };
	size_t k;

	fill(o->write[i], SLOT, seed_of(i, round) + 1);
	fill(o->send[i], SLOT, seed_of(i, round));
	memset(o->read[i], 0xee, SLOT);
	for (k = 0; k < ARRAY_SIZE(ops); k++) {
		ops[k].wr_id = round;
		ops[k].lkey = b->mr->lkey;
		ops[k].rkey = peer->rkey;
		OK(post(e, &ops[k]));
	}
}

static void one_round(struct end *e, const struct buf *b,
		      const struct told *peer, unsigned int round,
		      bool *seen)
{
	struct own *o = (void *)b->p;
	unsigned int i;

	for (i = 0; i < QPS; i++)
		post_round(&e[i], b, peer, i, round);
	for (i = 0; i < QPS; i++) {
		EXPECT_WC(e[i].scq, round, IBV_WC_SUCCESS);
		CHECK_EQ(filled(o->read[i], SLOT, i), -1);
		CHECK(o->old[i] < QPS * ROUNDS);
		CHECK(!seen[o->old[i]]);
		seen[o->old[i]] = true;
	}
}

static void crowd(const void *arg)
{
	uint64_t here = t_counter(ctx_first(), "retransmits");
	uint64_t there = t_counter(ctx_second(), "retransmits");
	static bool seen[QPS * ROUNDS];
	struct told mine = {}, theirs;
	struct end e[QPS];
	unsigned int i;
	int sock[2], status;
	struct buf b;
	struct ctx *c;
	pid_t pid;

	(void)arg;
	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = fork();
	CHECK(pid >= 0);
	close(sock[!pid]);
	if (!pid) {
		serve(sock[0]);
		_exit(0);
	}
	c = ctx_open(NULL);
	b = buf_new(c->pd, sizeof(struct own), MR_ALL);
	new_ends(c, e);
	for (i = 0; i < QPS; i++)
		OK(end_init(&e[i]));
	connect_ends(e, &mine, &theirs, sock[1]);
	for (i = 0; i < ROUNDS; i++)
		one_round(e, &b, &theirs, i, seen);
	say(sock[1]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	for (i = 0; i < QPS; i++)
		end_free(&e[i]);
	buf_free(&b);
	ctx_close(c);
	here = t_counter(ctx_first(), "retransmits") - here;
	there = t_counter(ctx_second(), "retransmits") - there;
	t_note("%llu packets were sent again, %llu by the one that serves",
	       (unsigned long long)here, (unsigned long long)there);
	CHECK_EQ(there, 0);
	if (lossy())
		CHECK(here);
	else
		CHECK_EQ(here, 0);
}

static const struct t_case cases[] = {
	{ "64_qps", crowd, NULL, 100 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
