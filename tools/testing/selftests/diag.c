// SPDX-License-Identifier: GPL-2.0
/*
 * diag.c - the device says why: diary, ended keys, mrs, busy, trace points
 *
 * That each refusal is in the diary is seen in errors.c, fault by fault.
 */
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "told.h"
#include "world.h"

#define SIZE (16 * KiB)
#define BIND_ID 0xb1d	/* of post_bind() */

static void world_new(struct world *w, enum ibv_qp_type type)
{
	struct conf conf = conf_of(type);

	world_open(w, &conf, SIZE);
}

static struct op write_to(struct world *w, uint32_t rkey)
{
	return (struct op){
		.opcode = IBV_WR_RDMA_WRITE, .laddr = w->mine.p, .len = 24,
		.lkey = w->mine.mr->lkey, .rkey = rkey,
		.raddr = (uintptr_t)w->theirs.p + 8,
	};
}

static void refused_write(struct world *w, uint32_t rkey)
{
	struct op op = write_to(w, rkey);

	OK(post(&w->a, &op));
	EXPECT_WC(w->a.scq, 0, IBV_WC_REM_ACCESS_ERR);
	expect_state(&w->b, IBV_QPS_ERR);
}

/* Everything there is to know about a write with the key of a region that is gone. */
static void gone_region(const void *arg)
{
	struct diary_line line;
	struct ibv_mr *mr;
	struct world w;
	uint32_t rkey;
	char words[64];

	(void)arg;
	OK(prctl(PR_SET_NAME, "who did it"));
	world_new(&w, RC);
	mr = ibv_reg_mr(w.c->pd, w.theirs.p, SIZE, MR_ALL);
	CHECK(mr);
	rkey = mr->rkey;
	OK(ibv_dereg_mr(mr));
	t_sleep(20);
	refused_write(&w, rkey);

	line = expect_diary(w.b.qp->qp_num, w.a.qp->qp_num, MRSOFT_R_KEY_STALE);
	CHECK(!strcmp(line.name, "key_stale"));
	CHECK(!strcmp(line.op, "WRITE"));
	CHECK_EQ(line.pid, getpid());
	CHECK(!strcmp(line.comm, "who_did_it"));
	CHECK_EQ(line.key, rkey);
	CHECK_EQ(line.addr, (uintptr_t)w.theirs.p + 8);
	CHECK_EQ(line.length, 24);
	CHECK_EQ(line.times, 1);
	CHECK(!strcmp(line.ended, "deregistered"));
	CHECK_EQ(line.by_pid, getpid());
	CHECK(!strcmp(line.by_comm, "who_did_it"));
	CHECK(line.ago_us >= 20000);
	CHECK(line.ago_us < 1000000ull * t_patience());
	CHECK((uint64_t)(line.time * 1000) <= t_now());

	/* the list of keys that are gone says the same */
	snprintf(words, sizeof(words), " %#x deregistered %d who_did_it\n",
		 rkey, getpid());
	CHECK(told_of("ended", words));
	world_free(&w);
}

/* What became of a window's key. */
enum fate { INVALIDATED, UNBOUND, DEALLOCATED, QP_GONE, BY_PEER };

static const struct fate_case {
	enum fate fate;
	const char *ended;
} fates[] = {
	{ INVALIDATED, "invalidated" },
	{ UNBOUND, "unbound" },
	{ DEALLOCATED, "deallocated" },
	{ QP_GONE, "qp-gone" },
	{ BY_PEER, "invalidated-by-peer" },
};

static void gone_window(const void *arg)
{
	const struct fate_case *c = arg;
	struct conf conf = conf_of(RC);
	struct diary_line line;
	struct ibv_mw *mw;
	struct world w;
	struct end c1, c2;
	uint32_t rkey;

	world_new(&w, RC);
	mw = ibv_alloc_mw(w.c->pd, IBV_MW_TYPE_2);
	CHECK(mw);
	rkey = ibv_inc_rkey(mw->rkey);
	OK(post_bind(&w.b, mw, rkey, w.theirs.mr, w.theirs.p, SIZE,
		     IBV_ACCESS_REMOTE_WRITE));
	EXPECT_WC(w.b.scq, BIND_ID, IBV_WC_SUCCESS);
	mw->rkey = rkey;
	switch (c->fate) {
	case INVALIDATED:
		DO(&w.b, .opcode = IBV_WR_LOCAL_INV, .rkey = rkey);
		break;
	case UNBOUND:
		OK(post_bind(&w.b, mw, ibv_inc_rkey(rkey), w.theirs.mr, NULL, 0,
			     0));
		EXPECT_WC(w.b.scq, BIND_ID, IBV_WC_SUCCESS);
		break;
	case DEALLOCATED:
		OK(ibv_dealloc_mw(mw));
		break;
	case QP_GONE:
		pair_again(&w.a, &w.b);
		break;
	case BY_PEER:
		OK(post_recv(&w.b, 0, NULL, 0, 0));
		DO(&w.a, .opcode = IBV_WR_SEND_WITH_INV, .rkey = rkey);
		EXPECT_WC(w.b.rcq, 0, IBV_WC_SUCCESS);
		break;
	}
	pair_new(w.c, &conf, &c1, &c2);
	refused_write(&w, rkey);
	line = diary_of(w.b.qp->qp_num);
	CHECK_EQ(line.key, rkey);
	CHECK_EQ(line.peer, w.a.qp->qp_num);
	if (strcmp(line.ended, c->ended))
		t_fail(__FILE__, __LINE__, "%s, not %s", line.ended, c->ended);
	CHECK_EQ(line.by_pid, getpid());
	pair_free(&c1, &c2);
	if (c->fate != DEALLOCATED)
		OK(ibv_dealloc_mw(mw));
	world_free(&w);
}

/* UC goes on after a refusal: the same again is counted, not written again. */
static void again(const void *arg)
{
	struct diary_line line = { 0 }, next = { 0 };
	struct world w;
	unsigned int i;

	(void)arg;
	world_new(&w, UC);
	for (i = 0; i < 10; i++) {
		struct op op = write_to(&w, 0x12300);

		OK(post(&w.a, &op));
		EXPECT_WC(w.a.scq, 0, IBV_WC_SUCCESS);
	}
	/* on the wire it takes a moment */
	for (i = 0; i < t_patience(); i++) {
		t_sleep(1);
		line = expect_diary(w.b.qp->qp_num, w.a.qp->qp_num,
				    MRSOFT_R_KEY_UNKNOWN);
		if (line.times == 10)
			break;
	}
	CHECK_EQ(line.times, 10);
	CHECK(!strcmp(line.ended, "-"));
	DO(&w.a, .opcode = IBV_WR_RDMA_WRITE, .laddr = w.mine.p, .len = 24,
	   .lkey = w.mine.mr->lkey, .rkey = 0x12400,
	   .raddr = (uintptr_t)w.theirs.p);
	for (i = 0; i < t_patience(); i++) {
		t_sleep(1);
		next = diary_of(w.b.qp->qp_num);
		if (next.key == 0x12400)
			break;
	}
	CHECK_EQ(next.key, 0x12400);
	CHECK(next.seq > line.seq);
	world_free(&w);
}

/* The last 256, in order, without a hole. */
static void last_256(const void *arg)
{
	unsigned long long last = 0;
	struct diary_line line = { 0 };
	unsigned int i, n = 0;
	struct world w;
	FILE *f;

	(void)arg;
	world_new(&w, UC);
	for (i = 1; i <= 300; i++) {
		struct op op = write_to(&w, i << 8);

		OK(post(&w.a, &op));
		EXPECT_WC(w.a.scq, 0, IBV_WC_SUCCESS);
	}
	for (i = 0; i < t_patience(); i++) {
		t_sleep(1);
		line = diary_of(w.b.qp->qp_num);
		if (line.key == 300 << 8)
			break;
	}
	CHECK_EQ(line.key, 300 << 8);
	f = told_open("diary");
	while (diary_next(f, &line)) {
		CHECK(!n || line.seq == last + 1);
		last = line.seq;
		n++;
	}
	fclose(f);
	CHECK_EQ(n, 256);
	world_free(&w);
}

/* The last line of the diary about a key, whatever QP. */
static struct diary_line diary_of_key(uint32_t key)
{
	struct diary_line line, last = { 0 };
	FILE *f = told_open("diary");

	while (diary_next(f, &line))
		if (line.key == key)
			last = line;
	fclose(f);
	return last;
}

/* mrs has a line for each region and window, also for one that dereg found busy. */
static void listed(const void *arg)
{
	struct diary_line told_busy;
	struct mrs_line line;
	struct ibv_mw *mw;
	struct world w;
	uint32_t key;

	(void)arg;
	world_new(&w, RC);
	mw = ibv_alloc_mw(w.c->pd, IBV_MW_TYPE_2);
	CHECK(mw);
	key = ibv_inc_rkey(mw->rkey);
	OK(post_bind(&w.b, mw, key, w.theirs.mr, w.theirs.p + 4096, 100,
		     IBV_ACCESS_REMOTE_READ));
	EXPECT_WC(w.b.scq, BIND_ID, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_dereg_mr(w.theirs.mr), EBUSY);

	CHECK(mrs_find(w.theirs.mr->rkey, &line));
	CHECK(!strcmp(line.kind, "user"));
	CHECK(!strcmp(line.state, "valid"));
	CHECK_EQ(line.addr, (uintptr_t)w.theirs.p);
	CHECK_EQ(line.length, SIZE);
	CHECK_EQ(line.access, MR_ALL);
	CHECK_EQ(line.owners, 1);
	CHECK_EQ(line.holds, 0);
	CHECK_EQ(line.pins, SIZE / 4096);
	CHECK_EQ(line.pid, getpid());

	CHECK(mrs_find(key, &line));
	CHECK(!strcmp(line.kind, "mw2"));
	CHECK_EQ(line.addr, (uintptr_t)w.theirs.p + 4096);
	CHECK_EQ(line.length, 100);
	CHECK_EQ(line.mr, w.theirs.mr->rkey);
	CHECK_EQ(line.qp, w.b.qp->qp_num);
	CHECK_EQ(line.pins, 0);

	/* the refusal of dereg is in the diary too */
	told_busy = diary_of_key(w.theirs.mr->rkey);
	CHECK_EQ(told_busy.reason, MRSOFT_R_MR_BUSY);
	CHECK(!strcmp(told_busy.op, "deregister"));

	OK(ibv_dealloc_mw(mw));
	CHECK(!mrs_find(key, &line));
	key = w.theirs.mr->rkey;
	OK(ibv_dereg_mr(w.theirs.mr));
	w.theirs.mr = NULL;
	CHECK(!mrs_find(key, &line));
	world_free(&w);
}

/* busy: which window, of which QP and process, keeps a region; what is in a PD. */
static void busy(const void *arg)
{
	char start[128], line[512];
	struct ibv_mw *mw[2];
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct world w;
	unsigned int i;
	uint32_t rkey;

	(void)arg;
	OK(prctl(PR_SET_NAME, "keeper"));
	world_new(&w, RC);
	snprintf(start, sizeof(start), "mr %#x ", w.theirs.mr->rkey);
	CHECK(!told("busy", start, line));
	for (i = 0; i < 2; i++) {
		struct ibv_mw_bind bind = {
			.bind_info = {
				.mr = w.theirs.mr,
				.addr = (uintptr_t)w.theirs.p, .length = 64,
				.mw_access_flags = IBV_ACCESS_REMOTE_READ,
			},
			.send_flags = IBV_SEND_SIGNALED,
		};

		mw[i] = ibv_alloc_mw(w.c->pd, i ? IBV_MW_TYPE_2 :
						  IBV_MW_TYPE_1);
		CHECK(mw[i]);
		rkey = ibv_inc_rkey(mw[i]->rkey);
		if (i)
			OK(post_bind(&w.b, mw[i], rkey, w.theirs.mr,
				     w.theirs.p, 64, IBV_ACCESS_REMOTE_READ));
		else
			OK(ibv_bind_mw(w.a.qp, mw[i], &bind));
		EXPECT_WC(i ? w.b.scq : w.a.scq, i ? BIND_ID : 0,
			  IBV_WC_SUCCESS);
		snprintf(start, sizeof(start),
			 "mr %#x window %#x mw%u %u %d keeper\n",
			 w.theirs.mr->rkey, i ? rkey : mw[i]->rkey, i + 1,
			 i ? w.b.qp->qp_num : w.a.qp->qp_num, getpid());
		if (!told("busy", start, line))
			t_fail(__FILE__, __LINE__, "no line '%s'", start);
	}
	for (i = 0; i < 2; i++)
		OK(ibv_dealloc_mw(mw[i]));
	snprintf(start, sizeof(start), "mr %#x ", w.theirs.mr->rkey);
	CHECK(!told("busy", start, line));

	/* a PD of which nobody can say by itself why it is busy */
	pd = ibv_alloc_pd(w.c->ibv);
	CHECK(pd);
	mr = ibv_reg_mr(pd, w.mine.p, SIZE, 0);
	CHECK(mr);
	CHECK_EQ(ibv_dealloc_pd(pd), EBUSY);
	snprintf(start, sizeof(start), " mr %#x user 0 %d keeper\n", mr->lkey,
		 getpid());
	CHECK(told_of("busy", start));
	OK(ibv_dereg_mr(mr));
	OK(ibv_dealloc_pd(pd));
	world_free(&w);
}

/* --- trace points ----------------------------------------------------------- */

static void expect_trace(const char *words)
{
	if (!traced(words))
		t_fail(__FILE__, __LINE__, "no trace line with '%s'", words);
}

static void trace_points(const void *arg)
{
	char words[160];
	struct ibv_mw *mw;
	struct ibv_mr *mr;
	struct world w;
	uint32_t rkey;

	(void)arg;
	tracing_set("trace", "");
	tracing_set("events/mrsoft/enable", "1");
	world_new(&w, RC);
	snprintf(words, sizeof(words), "QP %u to QP %u takes the path %s",
		 w.a.qp->qp_num, w.b.qp->qp_num, t_wire() ? "wire" : "local");
	expect_trace(words);

	mr = ibv_reg_mr(w.c->pd, w.theirs.p, SIZE, MR_ALL);
	CHECK(mr);
	snprintf(words, sizeof(words), "MR %#x registered: %u bytes at %#llx",
		 mr->lkey, (unsigned int)SIZE, (unsigned long long)(uintptr_t)w.theirs.p);
	expect_trace(words);

	mw = ibv_alloc_mw(w.c->pd, IBV_MW_TYPE_2);
	CHECK(mw);
	rkey = ibv_inc_rkey(mw->rkey);
	OK(post_bind(&w.b, mw, rkey, mr, w.theirs.p, 64,
		     IBV_ACCESS_REMOTE_WRITE));
	EXPECT_WC(w.b.scq, BIND_ID, IBV_WC_SUCCESS);
	snprintf(words, sizeof(words),
		 "MW %#x bound to MR %#x by QP %u: 64 bytes at", rkey, mr->lkey,
		 w.b.qp->qp_num);
	expect_trace(words);
	CHECK_EQ(ibv_dereg_mr(mr), EBUSY);
	snprintf(words, sizeof(words), "MR %#x deregistered: -16 in", mr->lkey);
	expect_trace(words);
	DO(&w.b, .opcode = IBV_WR_LOCAL_INV, .rkey = rkey);
	snprintf(words, sizeof(words),
		 "MW %#x no longer bound to MR %#x: invalidated", rkey,
		 mr->lkey);
	expect_trace(words);
	snprintf(words, sizeof(words),
		 "key %#x invalidated through QP %u by its owner", rkey,
		 w.b.qp->qp_num);
	expect_trace(words);
	OK(ibv_dealloc_mw(mw));
	snprintf(words, sizeof(words), "MR %#x deregistered: 0 in", mr->lkey);
	OK(ibv_dereg_mr(mr));
	expect_trace(words);

	refused_write(&w, rkey);
	snprintf(words, sizeof(words),
		 "WRITE on QP %u of process %d refused (%d): ",
		 w.b.qp->qp_num, getpid(), MRSOFT_R_KEY_STALE);
	expect_trace(words);
	tracing_set("events/mrsoft/enable", "0");
	world_free(&w);
}

/* A reader that stays inside does not keep the device. */
static void reader(const void *arg)
{
	struct world w;
	char c;
	FILE *f;

	(void)arg;
	f = told_open("mrs");
	CHECK_EQ(fread(&c, 1, 1, f), 1);
	world_new(&w, RC);
	while (fread(&c, 1, 1, f) == 1)
		;
	world_free(&w);
	fclose(f);
}

static const struct t_case cases[] = {
	{ "gone_window_invalidated", gone_window, &fates[INVALIDATED], 0 },
	{ "gone_window_unbound", gone_window, &fates[UNBOUND], 0 },
	{ "gone_window_deallocated", gone_window, &fates[DEALLOCATED], 0 },
	{ "gone_window_qp_gone", gone_window, &fates[QP_GONE], 0 },
	{ "gone_window_by_peer", gone_window, &fates[BY_PEER], 0 },
	{ "again_is_counted", again, NULL, 0 },
	{ "last_256", last_256, NULL, 0 },
	{ "mrs_lists", listed, NULL, 0 },
	{ "busy_says_who", busy, NULL, 0 },
	{ "traced", trace_points, NULL, 0 },
	{ "reader", reader, NULL, 0 },
	/* last: suites/diag.sh looks for it */
	{ "gone_region", gone_region, NULL, 0 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
