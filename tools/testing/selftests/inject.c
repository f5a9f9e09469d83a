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

#include "lib.h"
#include "rules.h"
#include "told.h"

#define SIZE (16 * KiB)

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
	struct conf conf = conf_of(RC);
	struct ctx *c = ctx_open(NULL);
	struct buf from, to;
	struct end a, b;

	(void)arg;
	pair_new(c, &conf, &a, &b);
	from = buf_new(c->pd, SIZE, MR_ALL);
	to = buf_new(c->pd, SIZE, MR_ALL);
	rules_clear();
	rule_add("fail rereg key=%#x errno=EAGAIN", to.mr->lkey);
	CHECK_EQ(rereg(to.mr, REREG_TRANS, NULL, to.p, SIZE / 2,
		       (uintptr_t)to.p, 0), EAGAIN);
	/* its second half would be gone */
	DO(&a, .opcode = IBV_WR_RDMA_WRITE, .laddr = from.p,
	   .lkey = from.mr->lkey, .len = 100,
	   .raddr = (uintptr_t)to.p + SIZE - 100, .rkey = to.mr->rkey);
	OK(rereg(to.mr, REREG_TRANS, NULL, to.p, SIZE / 2, (uintptr_t)to.p, 0));
	rules_clear();
	pair_free(&a, &b);
	buf_free(&from);
	buf_free(&to);
	ctx_close(c);
}

/* Of one region; nothing has changed, as after EBUSY for a window's sake. */
static void fail_dereg(const void *arg)
{
	struct conf conf = conf_of(RC);
	struct ctx *c = ctx_open(NULL);
	struct buf from, to;
	struct end a, b;

	(void)arg;
	pair_new(c, &conf, &a, &b);
	from = buf_new(c->pd, SIZE, MR_ALL);
	to = buf_new(c->pd, SIZE, MR_ALL);
	rules_clear();
	rule_add("fail dereg key=%#x", to.mr->lkey);
	OK(ibv_dereg_mr(from.mr));
	from.mr = reg(c, from.p);
	CHECK(from.mr);
	CHECK_EQ(ibv_dereg_mr(to.mr), EBUSY);
	expect_injected("fail-dereg", 0, getpid());
	fill(from.p, SIZE, 7);
	DO(&a, .opcode = IBV_WR_RDMA_WRITE, .laddr = from.p,
	   .lkey = from.mr->lkey, .len = SIZE,
	   .raddr = (uintptr_t)to.p, .rkey = to.mr->rkey);
	CHECK_EQ(filled(to.p, SIZE, 7), -1);
	CHECK_EQ(ibv_dealloc_pd(c->pd), EBUSY);
	/* once only */
	OK(ibv_dereg_mr(to.mr));
	to.mr = NULL;
	expect_rule(1, 2, 1, "0");
	rules_clear();
	pair_free(&a, &b);
	buf_free(&from);
	buf_free(&to);
	ctx_close(c);
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
	{ "refuses_garbage", refuses_garbage, NULL, 60 },
	{ "bounded", bounded, NULL, 0 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
