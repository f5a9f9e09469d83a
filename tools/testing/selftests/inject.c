// SPDX-License-Identifier: GPL-2.0
/*
 * inject.c - faults that are asked for, by whichever path: each strikes what it
 * names, looks as the real one does, and says that it was asked for
 *
 * Packets: impair.c.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "rules.h"
#include "told.h"
#include "world.h"

#define SIZE (16 * KiB)

static void world_new(struct world *w)
{
	struct conf conf = conf_of(RC);

	world_open(w, &conf, SIZE);
	rules_clear();
}

static void world_end(struct world *w)
{
	rules_clear();
	world_free(w);
}

/* --- regions -------------------------------------------------------------- */

static struct ibv_mr *reg(struct ctx *c, void *p)
{
	return ibv_reg_mr(c->pd, p, SIZE, MR_ALL);
}

/* The third registration and no other. */
static void fail_reg(const void *arg)
{
	struct ctx *c = ctx_open(NULL);
	void *p = pages(SIZE);
	struct ibv_mr *mr;
	int64_t pinned;
	int i;

	(void)arg;
	rules_clear();
	rule_add("fail reg nth=3 errno=ENOSPC");
	pinned = t_pinned();
	for (i = 1; i <= 5; i++) {
		errno = 0;
		mr = reg(c, p);
		CHECK_EQ(!mr, i == 3);
		CHECK_EQ(errno, i == 3 ? ENOSPC : 0);
		if (mr)
			OK(ibv_dereg_mr(mr));
		CHECK_EQ(t_pinned(), pinned);
	}
	expect_rule(1, 5, 1, "0");
	expect_injected("fail-reg", 0, getpid());
	rules_clear();
	ctx_close(c);
}

/* Each other one, three times; the errno that ibv_reg_mr(3) is known for. */
static void fail_reg_every(const void *arg)
{
	struct ctx *c = ctx_open(NULL);
	void *p = pages(SIZE);
	struct ibv_mr *mr;
	int i;

	(void)arg;
	rules_clear();
	rule_add("fail reg every=2 count=3");
	for (i = 1; i <= 10; i++) {
		mr = reg(c, p);
		CHECK_EQ(!mr, i % 2 == 0 && i <= 6);
		CHECK(mr || errno == ENOMEM);
		if (mr)
			OK(ibv_dereg_mr(mr));
	}
	rules_clear();
	/* without a rule nothing fails */
	mr = reg(c, p);
	CHECK(mr);
	OK(ibv_dereg_mr(mr));
	ctx_close(c);
}

/* A region whose change is refused is as it was. */
static void fail_rereg(const void *arg)
{
	struct world w;

	(void)arg;
	world_new(&w);
	rule_add("fail rereg key=%#x errno=EAGAIN", w.theirs.mr->lkey);
	CHECK_EQ(rereg(w.theirs.mr, REREG_TRANS, NULL, w.theirs.p, SIZE / 2,
		       (uintptr_t)w.theirs.p, 0), EAGAIN);
	/* its second half would be gone */
	DO(&w.a, .opcode = IBV_WR_RDMA_WRITE, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = 100,
	   .raddr = (uintptr_t)w.theirs.p + SIZE - 100, .rkey = w.theirs.mr->rkey);
	OK(rereg(w.theirs.mr, REREG_TRANS, NULL, w.theirs.p, SIZE / 2,
		 (uintptr_t)w.theirs.p, 0));
	world_end(&w);
}

/* Of one region; nothing has changed, as after EBUSY for a window's sake. */
static void fail_dereg(const void *arg)
{
	struct world w;

	(void)arg;
	world_new(&w);
	rule_add("fail dereg key=%#x", w.theirs.mr->lkey);
	OK(ibv_dereg_mr(w.mine.mr));
	w.mine.mr = reg(w.c, w.mine.p);
	CHECK(w.mine.mr);
	CHECK_EQ(ibv_dereg_mr(w.theirs.mr), EBUSY);
	expect_injected("fail-dereg", 0, getpid());
	fill(w.mine.p, SIZE, 7);
	DO(&w.a, .opcode = IBV_WR_RDMA_WRITE, .laddr = w.mine.p,
	   .lkey = w.mine.mr->lkey, .len = SIZE,
	   .raddr = (uintptr_t)w.theirs.p, .rkey = w.theirs.mr->rkey);
	CHECK_EQ(filled(w.theirs.p, SIZE, 7), -1);
	CHECK_EQ(ibv_dealloc_pd(w.c->pd), EBUSY);
	/* once only */
	OK(ibv_dereg_mr(w.theirs.mr));
	w.theirs.mr = NULL;
	expect_rule(1, 2, 1, "0");
	world_end(&w);
}

static void child_with_regions(bool dies)
{
	struct ctx *c = ctx_open(NULL);
	struct ibv_mr *mr = NULL;
	int i;

	for (i = 0; i < 4; i++) {
		mr = reg(c, pages(SIZE));
		CHECK(mr);
	}
	CHECK_EQ(ibv_dereg_mr(mr), EIO);
	if (dies)
		raise(SIGKILL);
	_exit(0);
}

/* A process that is gone leaves nothing: rules are for who can be told. */
static void exit_is_not_refused(const void *arg)
{
	int64_t pinned = t_pinned();
	int round, status;
	pid_t pid;

	(void)arg;
	rules_clear();
	rule_add("fail dereg every=1 count=1000 errno=EIO");
	for (round = 0; round < 2; round++) {
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			child_with_regions(round);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(round ? WIFSIGNALED(status) : !status);
		CHECK_EQ(t_pinned(), pinned);
	}
	/* the calls of the children, and not those of the core */
	expect_rule(1, 2, 2, "998");
	rules_clear();
}

/* While it is held the region is whole; then it goes, and not before. */
static void hold_dereg(const void *arg)
{
	struct ctx *c = ctx_open(NULL);
	struct ibv_mr *mr = reg(c, pages(SIZE));
	uint64_t start;

	(void)arg;
	CHECK(mr);
	rules_clear();
	rule_add("hold dereg ms=200");
	start = t_now();
	OK(ibv_dereg_mr(mr));
	/* what was asked for, less the tick in which it began */
	CHECK(t_now() - start >= 180);
	expect_injected("hold-dereg", 0, getpid());
	rules_clear();
	ctx_close(c);
}

/* Ten seconds, which nobody waits for. */
static void hold_ends(const void *arg)
{
	bool killed = arg;
	struct ibv_mr *mr;
	struct ctx *c;
	uint64_t start;
	int status;
	pid_t pid;

	rules_clear();
	rule_add("hold dereg ms=10000");
	start = t_now();
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		c = ctx_open(NULL);
		mr = reg(c, pages(SIZE));
		CHECK(mr);
		_exit(ibv_dereg_mr(mr));
	}
	while (rule_hits(1) != 1)
		t_sleep(1);
	if (killed)
		OK(kill(pid, SIGKILL));
	else
		rules_clear();
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(killed ? WIFSIGNALED(status) : !status);
	CHECK(t_now() - start < 9000);
	rules_clear();
}

/* --- requests ------------------------------------------------------------- */

static struct op send_of(struct world *w, uint64_t id)
{
	return (struct op){
		.opcode = IBV_WR_SEND, .wr_id = id, .laddr = w->mine.p,
		.lkey = w->mine.mr->lkey, .len = 100,
	};
}

static void recv_of(struct world *w, uint64_t id)
{
	OK(post_recv(&w->b, id, w->theirs.p, 100, w->theirs.mr->lkey));
}

static void sends(struct world *w, int n)
{
	struct op op;
	int i;

	for (i = 0; i < n; i++) {
		op = send_of(w, i);
		recv_of(w, i);
		OK(post(&w->a, &op));
		EXPECT_WC(w->a.scq, i, IBV_WC_SUCCESS);
		EXPECT_WC(w->b.rcq, i, IBV_WC_SUCCESS);
	}
}

/* The requester waits and tries again, and that is all that can be seen. */
static void rnr_once(const void *arg)
{
	unsigned long long before;
	struct world w;

	(void)arg;
	world_new(&w);
	before = t_counter(ctx_first(), "rnr_waits");
	rule_add("rnr qp=%u nth=3", w.b.qp->qp_num);
	sends(&w, 5);
	/* five, and one of them again */
	expect_rule(1, 6, 1, "0");
	CHECK_EQ(t_counter(ctx_first(), "rnr_waits"), before + 1);
	expect_injected("SEND", w.b.qp->qp_num, getpid());
	world_end(&w);
}

/* rnr_retry is 3: the fourth RNR NAK is one too many, IBA 9.7.5.2.8. */
static void rnr_exceeded(const void *arg)
{
	struct world w;
	struct op op;

	(void)arg;
	world_new(&w);
	rule_add("rnr qp=%u every=1 rnr=1", w.b.qp->qp_num);
	op = send_of(&w, 1);
	recv_of(&w, 1);
	OK(post(&w.a, &op));
	EXPECT_WC(w.a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_state(&w.a, IBV_QPS_ERR);
	expect_rule(1, 4, 4, "-");
	/* the responder has done nothing wrong, and has its receive WQE */
	expect_state(&w.b, IBV_QPS_RTS);
	EXPECT_EMPTY(w.b.rcq, 5);
	world_end(&w);
}

/* IBA 9.7.5.2.4 to 9.7.5.2.6: what each NAK becomes, at both ends. */
static const struct nak_case {
	const char *code;
	enum ibv_wc_status want;
	enum ibv_wc_status recv;
	int event;
} naks[] = {
	{ "invalid", IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR,
	  IBV_EVENT_QP_REQ_ERR },
	{ "access", IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR,
	  IBV_EVENT_QP_ACCESS_ERR },
	{ "op", IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, 0 },
};

static void nak_ends(const void *arg)
{
	const struct nak_case *k = arg;
	struct world w;
	struct op op;

	world_new(&w);
	rule_add("nak qp=%u nth=3 code=%s", w.b.qp->qp_num, k->code);
	sends(&w, 2);
	op = send_of(&w, 2);
	recv_of(&w, 2);
	OK(post(&w.a, &op));
	EXPECT_WC_WHY(w.a.scq, 2, k->want, MRSOFT_R_INJECTED);
	if (k->recv == IBV_WC_WR_FLUSH_ERR)
		EXPECT_WC(w.b.rcq, 2, k->recv);
	else
		EXPECT_WC_WHY(w.b.rcq, 2, k->recv, MRSOFT_R_INJECTED);
	if (k->event)
		EXPECT_EVENT(w.c, k->event, w.b.qp);
	expect_state(&w.a, IBV_QPS_ERR);
	expect_state(&w.b, IBV_QPS_ERR);
	expect_rule(1, 3, 1, "0");
	expect_injected("SEND", w.b.qp->qp_num, getpid());
	world_end(&w);
}

/* Nothing is lost: the requester sends it again, IBA 9.7.5.2.1. */
static void nak_sequence(const void *arg)
{
	unsigned long long before;
	struct world w;

	(void)arg;
	world_new(&w);
	before = t_counter(ctx_first(), "retries");
	rule_add("nak qp=%u nth=2 code=sequence", w.b.qp->qp_num);
	sends(&w, 4);
	expect_rule(1, 5, 1, "0");
	CHECK_EQ(t_counter(ctx_first(), "retries"), before + 1);
	world_end(&w);
}

/* Without a request: the owner is told, what is posted is flushed. */
static void error_now(const void *arg)
{
	char text[32];
	struct world w;
	int n;

	(void)arg;
	world_new(&w);
	recv_of(&w, 1);
	rule_add("error qp=%u", w.b.qp->qp_num);
	EXPECT_EVENT(w.c, IBV_EVENT_QP_FATAL, w.b.qp);
	expect_state(&w.b, IBV_QPS_ERR);
	EXPECT_WC(w.b.rcq, 1, IBV_WC_WR_FLUSH_ERR);
	expect_state(&w.a, IBV_QPS_RTS);
	expect_injected("error", w.b.qp->qp_num, getpid());
	CHECK_EQ(rule_count(), 0);
	/* it is in the error state already */
	n = sprintf(text, "error qp=%u", w.b.qp->qp_num);
	CHECK_EQ(rule_write(text, n), EINVAL);
	world_end(&w);
}

/* The peer of a QP that broke hears nothing more. */
static void error_nth(const void *arg)
{
	struct world w;
	struct op op;

	(void)arg;
	world_new(&w);
	rule_add("error qp=%u nth=2", w.b.qp->qp_num);
	sends(&w, 1);
	op = send_of(&w, 1);
	recv_of(&w, 1);
	OK(post(&w.a, &op));
	EXPECT_WC(w.a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	EXPECT_WC(w.b.rcq, 1, IBV_WC_WR_FLUSH_ERR);
	EXPECT_EVENT(w.c, IBV_EVENT_QP_FATAL, w.b.qp);
	expect_state(&w.b, IBV_QPS_ERR);
	world_end(&w);
}

/* The third completion of a's QP has no room: IBA 10.8.2, 11.6.3.1. */
static void cq_overflow(const void *arg)
{
	struct ibv_wc wc;
	struct world w;
	struct op op;

	(void)arg;
	world_new(&w);
	rule_add("overflow qp=%u nth=3", w.a.qp->qp_num);
	sends(&w, 2);
	op = send_of(&w, 2);
	recv_of(&w, 2);
	OK(post(&w.a, &op));
	EXPECT_EVENT(w.c, IBV_EVENT_CQ_ERR, w.a.scq);
	expect_state(&w.a, IBV_QPS_ERR);
	/* what was done was done; nobody hears of it at this end */
	EXPECT_WC(w.b.rcq, 2, IBV_WC_SUCCESS);
	CHECK(!wait_wc(w.a.scq, &wc, 10));
	expect_injected("overflow", w.a.qp->qp_num, 0);
	world_end(&w);
}

/* --- the file ------------------------------------------------------------- */

static const char *const garbage[] = {
	"", "\n", "x", "drop\n\n", "drop\ncorrupt", "clear 0", "clear x",
	"clear 99999999999", "clear ", "clear 1 2", "clearance", "error",
	"error qp=1", "drop nth=-1", "fail reg errno=0", "delay ms=99999",
};

static void refuses_garbage(const void *arg)
{
	char text[512];
	unsigned int i;

	(void)arg;
	rules_clear();
	rule_add("drop qp=17");
	for (i = 0; i < ARRAY_SIZE(garbage); i++)
		if (rule_write(garbage[i], strlen(garbage[i])) != EINVAL)
			t_fail(__FILE__, __LINE__, "taken: '%s'", garbage[i]);
	/* bytes behind an end, and too many */
	CHECK_EQ(rule_write("drop\0x", 6), EINVAL);
	CHECK_EQ(rule_write("drop\0\n", 6), EINVAL);
	memset(text, ' ', sizeof(text));
	memcpy(text, "drop", 4);
	CHECK_EQ(rule_write(text, sizeof(text)), EINVAL);
	CHECK_EQ(rule_write(NULL, 20), EFAULT);
	for (i = 0; i < 20000; i++) {
		int n = rand() % 40, j;

		for (j = 0; j < n; j++)
			text[j] = rand() % 2 ? rand() : "drop qp=1\n"[rand() % 10];
		rule_write(text, n);
	}
	CHECK_EQ(rule_write("clear 99999", 11), ENOENT);
	CHECK_EQ(rule_write("error qp=0xfffff0", 17), ENOENT);
	expect_rule(1, 0, 0, "1");
	rules_clear();
	CHECK_EQ(rule_count(), 0);
}

static void bounded(const void *arg)
{
	unsigned int i;

	(void)arg;
	rules_clear();
	for (i = 0; i < 32; i++)
		rule_add("fail reg nth=%u", 1000 + i);
	CHECK_EQ(rule_write("drop", 4), ENOSPC);
	CHECK_EQ(rule_count(), 32);
	rules_clear();
	CHECK_EQ(rule_count(), 0);
	rule_add("drop");
	rules_clear();
}

static const struct t_case cases[] = {
	{ "fail_reg_nth", fail_reg, NULL, 0 },
	{ "fail_reg_every", fail_reg_every, NULL, 0 },
	{ "fail_rereg", fail_rereg, NULL, 0 },
	{ "fail_dereg", fail_dereg, NULL, 0 },
	{ "exit_is_not_refused", exit_is_not_refused, NULL, 0 },
	{ "hold_dereg", hold_dereg, NULL, 0 },
	{ "hold_ends_with_rules", hold_ends, NULL, 30 },
	{ "hold_ends_with_process", hold_ends, "", 30 },
	{ "rnr", rnr_once, NULL, 0 },
	{ "rnr_exceeded", rnr_exceeded, NULL, 0 },
	{ "nak_invalid", nak_ends, &naks[0], 0 },
	{ "nak_access", nak_ends, &naks[1], 0 },
	{ "nak_op", nak_ends, &naks[2], 0 },
	{ "nak_sequence", nak_sequence, NULL, 0 },
	{ "error_now", error_now, NULL, 0 },
	{ "error_nth", error_nth, NULL, 0 },
	{ "overflow", cq_overflow, NULL, 0 },
	{ "refuses_garbage", refuses_garbage, NULL, 60 },
	{ "bounded", bounded, NULL, 0 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
