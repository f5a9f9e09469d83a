// SPDX-License-Identifier: GPL-2.0
/*
 * exit.c - processes that end without a word, or are killed
 *
 * A child makes objects in a given order, binds windows and goes on with traffic
 * until it ends or is killed; then the pins are counted, and t_main() looks that
 * the device is idle again.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "lib.h"

#define SIZE (256 * KiB)

enum order { MW_MR_QP, MR_MW_QP, MW_QP_MR, QP_MW_MR, QP_MR_MW, MR_QP_MW };

struct life {
	const char *name;
	enum order order;
	bool killed, traffic;
};

struct world {
	struct ctx *c;
	struct end a, b;
	struct buf mine, theirs;
	struct ibv_mw *one[3], *two[3];
};

static void make_mw(struct world *w)
{
	int i;

	for (i = 0; i < 3; i++) {
		w->one[i] = ibv_alloc_mw(w->c->pd, IBV_MW_TYPE_1);
		w->two[i] = ibv_alloc_mw(w->c->pd, IBV_MW_TYPE_2);
		CHECK(w->one[i] && w->two[i]);
	}
}

static void make_mr(struct world *w)
{
	w->mine = buf_new(w->c->pd, SIZE, MR_ALL);
	w->theirs = buf_new(w->c->pd, SIZE, MR_ALL);
}

static void make_qp(struct world *w)
{
	struct conf conf = conf_of(RC);

	pair_new(w->c, &conf, &w->a, &w->b);
}

static void make(struct world *w, enum order order)
{
	static void (*const steps[][3])(struct world *) = {
		[MW_MR_QP] = { make_mw, make_mr, make_qp },
		[MR_MW_QP] = { make_mr, make_mw, make_qp },
		[MW_QP_MR] = { make_mw, make_qp, make_mr },
		[QP_MW_MR] = { make_qp, make_mw, make_mr },
		[QP_MR_MW] = { make_qp, make_mr, make_mw },
		[MR_QP_MW] = { make_mr, make_qp, make_mw },
	};
	uint32_t rkey;
	int i;

	w->c = ctx_open(NULL);
	for (i = 0; i < 3; i++)
		steps[order][i](w);
	for (i = 0; i < 3; i++) {
		rkey = ibv_inc_rkey(w->one[i]->rkey);
		OK(post_bind(&w->b, w->one[i], rkey, w->theirs.mr, w->theirs.p,
			     SIZE, IBV_ACCESS_REMOTE_WRITE));
		EXPECT_WC(w->b.scq, 0xb1d, IBV_WC_SUCCESS);
		w->one[i]->rkey = rkey;
		rkey = ibv_inc_rkey(w->two[i]->rkey);
		OK(post_bind(&w->b, w->two[i], rkey, w->theirs.mr, w->theirs.p,
			     SIZE, IBV_ACCESS_REMOTE_WRITE));
		EXPECT_WC(w->b.scq, 0xb1d, IBV_WC_SUCCESS);
		w->two[i]->rkey = rkey;
	}
	CHECK_EQ(ibv_dereg_mr(w->theirs.mr), EBUSY);
}

/* Writes through all three keys for ever, the queue always full. */
static void *traffic(void *arg)
{
	struct world *w = arg;
	unsigned int i, posted = 0;
	struct ibv_wc wc;

	for (i = 0;; i++) {
		struct op op = {
			.opcode = IBV_WR_RDMA_WRITE, .laddr = w->mine.p,
			.lkey = w->mine.mr->lkey, .len = SIZE,
			.raddr = (uintptr_t)w->theirs.p,
			.rkey = i % 3 == 0 ? w->one[i % 9 / 3]->rkey :
				i % 3 == 1 ? w->two[i % 9 / 3]->rkey :
				w->theirs.mr->rkey,
		};

		OK(post(&w->a, &op));
		if (++posted < 8)
			continue;
		if (!wait_wc(w->a.scq, &wc, t_patience()))
			return NULL;
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		posted--;
	}
	return NULL;
}

static pid_t start(const struct life *l)
{
	int fds[2];
	pid_t pid;
	char c;

	CHECK(!pipe(fds));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		struct world w = {};
		pthread_t thread;

		make(&w, l->order);
		if (l->traffic)
			CHECK(!pthread_create(&thread, NULL, traffic, &w));
		CHECK_EQ(write(fds[1], "r", 1), 1);
		if (l->killed)
			pause();
		t_sleep(rand() % 5);
		_exit(0);
	}
	close(fds[1]);
	CHECK_EQ(read(fds[0], &c, 1), 1);
	close(fds[0]);
	return pid;
}

/* Soon: it waits for nothing but the copies that run. */
static void end(const struct life *l, pid_t pid)
{
	uint64_t limit = t_now() + t_patience();
	int status;

	if (l->killed) {
		t_sleep(rand() % 5);
		kill(pid, SIGKILL);
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		CHECK(t_now() < limit);
		usleep(500);
	}
	if (!l->killed)
		CHECK_EQ(status, 0);
}

static void lives(const void *arg)
{
	const struct life *l = arg;
	unsigned int i, n = t_rounds(12);
	int64_t pins = t_pinned();

	for (i = 0; i < n; i++) {
		srand(i);
		end(l, start(l));
		CHECK_EQ(t_pinned(), pins);
	}
}

/* --- two processes ------------------------------------------------------------ */

struct card {
	struct addr addr;
	uint64_t raddr;
	uint32_t rkey;
};

static void talk(int in, int out, struct end *e, struct buf *buf,
		 struct card *peer)
{
	struct card me = {
		.addr = end_addr(e), .raddr = (uintptr_t)buf->p,
		.rkey = buf->mr->rkey,
	};
	char c = 'x';

	CHECK_EQ(write(out, &me, sizeof(me)), sizeof(me));
	CHECK_EQ(read(in, peer, sizeof(*peer)), sizeof(*peer));
	OK(end_init(e));
	OK(end_rtr(e, &peer->addr));
	OK(end_rts(e));
	/* both are there */
	CHECK_EQ(write(out, &c, 1), 1);
	CHECK_EQ(read(in, &c, 1), 1);
}

/* The target of a long WRITE or READ dies: the initiator is told, soon. */
static void peer_dies(const void *arg)
{
	const enum ibv_wr_opcode *opcode = arg;
	unsigned int round, i, n = t_rounds(10);

	for (round = 0; round < n; round++) {
		int there[2], back[2], status;
		struct conf conf = conf_of(RC);
		struct ibv_wc wc;
		struct card peer;
		struct ctx *c;
		struct end e;
		struct buf b;
		pid_t pid;

		CHECK(!pipe(there) && !pipe(back));
		pid = fork();
		CHECK(pid >= 0);
		c = ctx_open(NULL);
		e = end_new(c, &conf);
		b = buf_new(c->pd, 4 * MiB, MR_ALL);
		if (!pid) {
			talk(there[0], back[1], &e, &b, &peer);
			pause();
		}
		talk(back[0], there[1], &e, &b, &peer);
		for (i = 0; i < 60; i++) {
			struct op op = {
				.opcode = *opcode, .wr_id = i, .laddr = b.p,
				.len = 4 * MiB, .lkey = b.mr->lkey,
				.raddr = peer.raddr, .rkey = peer.rkey,
			};

			OK(post(&e, &op));
		}
		EXPECT_WC(e.scq, 0, IBV_WC_SUCCESS);
		kill(pid, SIGKILL);
		for (i = 1; i < 60; i++) {
			wc = NEXT_WC(e.scq);
			CHECK_EQ(wc.wr_id, i);
			if (wc.status != IBV_WC_SUCCESS)
				break;
		}
		if (i < 60) {
			/* its region went first, or its QP, or its state */
			CHECK(wc.status == IBV_WC_RETRY_EXC_ERR ||
			      wc.status == IBV_WC_REM_ACCESS_ERR);
			for (i++; i < 60; i++)
				EXPECT_WC(e.scq, i, IBV_WC_WR_FLUSH_ERR);
			expect_state(&e, IBV_QPS_ERR);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		end_free(&e);
		buf_free(&b);
		ctx_close(c);
		close(there[0]);
		close(there[1]);
		close(back[0]);
		close(back[1]);
	}
}

/* Many at once, killed in the middle of being born. */
static void killed_young(const void *arg)
{
	unsigned int i, n = t_rounds(40);
	int64_t pins = t_pinned();
	int status;

	(void)arg;
	for (i = 0; i < n; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			struct world w = {};

			make(&w, i % 6);
			traffic(&w);
			_exit(0);
		}
		usleep(i * 997 % 20000 * t_slow());
		kill(pid, SIGKILL);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
	}
	CHECK_EQ(t_pinned(), pins);
}

#define LIFE(n, o, ...) { .name = n, .order = o, __VA_ARGS__ }
static const struct life all[] = {
	LIFE("exit_mw_mr_qp", MW_MR_QP),
	LIFE("exit_mr_mw_qp", MR_MW_QP),
	LIFE("exit_mw_qp_mr", MW_QP_MR),
	LIFE("exit_qp_mw_mr", QP_MW_MR),
	LIFE("exit_qp_mr_mw", QP_MR_MW),
	LIFE("exit_mr_qp_mw", MR_QP_MW),
	LIFE("exit_in_traffic_mw_mr_qp", MW_MR_QP, .traffic = true),
	LIFE("exit_in_traffic_mr_qp_mw", MR_QP_MW, .traffic = true),
	LIFE("kill_mw_mr_qp", MW_MR_QP, .killed = true),
	LIFE("kill_mr_mw_qp", MR_MW_QP, .killed = true),
	LIFE("kill_in_traffic_mw_mr_qp", MW_MR_QP, .killed = true,
	     .traffic = true),
	LIFE("kill_in_traffic_mr_mw_qp", MR_MW_QP, .killed = true,
	     .traffic = true),
	LIFE("kill_in_traffic_mw_qp_mr", MW_QP_MR, .killed = true,
	     .traffic = true),
	LIFE("kill_in_traffic_qp_mw_mr", QP_MW_MR, .killed = true,
	     .traffic = true),
	LIFE("kill_in_traffic_qp_mr_mw", QP_MR_MW, .killed = true,
	     .traffic = true),
	LIFE("kill_in_traffic_mr_qp_mw", MR_QP_MW, .killed = true,
	     .traffic = true),
};

static const enum ibv_wr_opcode rdma_write = IBV_WR_RDMA_WRITE,
	rdma_read = IBV_WR_RDMA_READ;

static const struct t_case others[] = {
	{ "peer_dies_in_write", peer_dies, &rdma_write, 30 },
	{ "peer_dies_in_read", peer_dies, &rdma_read, 30 },
	{ "killed_young", killed_young, NULL, 30 },
};

int main(int argc, char **argv)
{
	static struct t_case cases[ARRAY_SIZE(all) + ARRAY_SIZE(others)];
	size_t i, n = 0;

	for (i = 0; i < ARRAY_SIZE(all); i++)
		cases[n++] = (struct t_case){ all[i].name, lives, &all[i], 0 };
	for (i = 0; i < ARRAY_SIZE(others); i++)
		cases[n++] = others[i];
	return t_main(argc, argv, cases, n);
}
