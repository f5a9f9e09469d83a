// SPDX-License-Identifier: GPL-2.0
/*
 * flush.c - RDMA FLUSH: what was written is visible, and who may ask for it
 *
 * IBA Annex A19.  A kernel that does not know FLUSH gives no region the right, so
 * that nothing is claimed there and all is refused.
 */
#include <sys/utsname.h>

#include "raw.h"

#define SIZE (2 * MiB)
#define RIGHTS (MR_ALL | ACCESS_FLUSH_GLOBAL)
#define QP_RIGHTS (REMOTE_ALL | ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT)

struct world {
	struct ctx *c;
	struct end a, b;
	struct ring *sq;	/* of a */
	struct buf mine, theirs;
};

/* FLUSH came with 6.2. */
static bool kernel_knows(void)
{
	unsigned int major, minor;
	struct utsname name;

	CHECK(!uname(&name));
	CHECK(sscanf(name.release, "%u.%u", &major, &minor) == 2);
	return major > 6 || (major == 6 && minor >= 2);
}

/* Nothing moves, but a WQE goes through the ring. */
static void write_nothing(void *arg)
{
	struct world *w = arg;

	DO(&w->a, .opcode = IBV_WR_RDMA_WRITE, .wr_id = 99);
}

static void world_conf(struct world *w, const struct conf *conf, int access)
{
	w->c = ctx_open(NULL);
	pair_new(w->c, conf, &w->a, &w->b);
	w->mine = buf_new(w->c->pd, SIZE, MR_ALL);
	w->theirs = buf_new(w->c->pd, SIZE, access);
	w->sq = send_ring(write_nothing, w);
}

static void world_new(struct world *w, int access)
{
	struct conf conf = conf_of(RC);

	conf.access = QP_RIGHTS;
	world_conf(w, &conf, access);
}

static void world_free(struct world *w)
{
	pair_free(&w->a, &w->b);
	buf_free(&w->mine);
	buf_free(&w->theirs);
	ctx_close(w->c);
}

/* One that is good. */
static struct flush flush_of(const struct world *w, uint64_t wr_id)
{
	return (struct flush){
		.wr_id = wr_id, .addr = (uintptr_t)w->theirs.p,
		.length = SIZE, .rkey = w->theirs.mr->rkey,
		.type = FLUSH_GLOBAL,
	};
}

static void expect_flush(const struct world *w, uint64_t wr_id)
{
	struct ibv_wc wc = NEXT_WC(w->a.scq);

	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, wr_id);
	CHECK_EQ((int)wc.opcode, WC_FLUSH);
	CHECK_EQ(wc.byte_len, 0);
}

static void good_flush(const struct world *w, const struct flush *f)
{
	post_flush(&w->a, w->sq, f);
	expect_flush(w, f->wr_id);
}

/* --- what is claimed ------------------------------------------------------ */

static void no_region(struct ctx *c, int access)
{
	void *p = pages(4096);

	errno = 0;
	CHECK(!ibv_reg_mr(c->pd, p, 4096, IBV_ACCESS_LOCAL_WRITE | access));
	/* 6.1 does not know the bit, later kernels ask the device */
	CHECK_EQ(errno, kernel_knows() ? EOPNOTSUPP : EINVAL);
}

static void claims(const void *arg)
{
	struct ctx *c = ctx_open(NULL);
	uint64_t caps = device_caps(c);
	struct buf b;

	(void)arg;
	CHECK_EQ(!!(caps & DEVICE_FLUSH_GLOBAL), kernel_knows());
	if (kernel_knows()) {
		b = buf_new(c->pd, 4096, RIGHTS);
		buf_free(&b);
		/* alone: to flush is not to write */
		b = buf_new(c->pd, 4096, ACCESS_FLUSH_GLOBAL);
		OK(rereg(b.mr, REREG_ACCESS, NULL, NULL, 0, 0, MR_ALL));
		OK(rereg(b.mr, REREG_ACCESS, NULL, NULL, 0, 0, RIGHTS));
		CHECK(rereg(b.mr, REREG_ACCESS, NULL, NULL, 0, 0,
			    ACCESS_FLUSH_PERSISTENT));
		buf_free(&b);
	} else {
		no_region(c, ACCESS_FLUSH_GLOBAL);
	}
	/* nobody knows of a user's memory that it is persistent */
	CHECK(!(caps & DEVICE_FLUSH_PERSISTENT));
	no_region(c, ACCESS_FLUSH_PERSISTENT);
	ctx_close(c);
}

/* --- good ----------------------------------------------------------------- */

/* Behind any WRITE its bytes are there, and nothing else has changed. */
static void ordered(const void *arg)
{
	static const uint32_t sizes[] = {
		1, 8, 1000, 4097, 65536, 1024 * 1024 + 3,
	};
	unsigned int i, rounds = t_rounds(30);
	struct world w;

	(void)arg;
	world_new(&w, RIGHTS);
	for (i = 0; i < rounds; i++) {
		uint32_t len = sizes[i % ARRAY_SIZE(sizes)], off = i * 37 % 4096;
		struct flush f = flush_of(&w, i);

		fill(w.mine.p, len, i);
		memset(w.theirs.p, 0x77, off + len + 64);
		f.addr += off;
		f.length = len;
		OK(post(&w.a, &(struct op){
			.opcode = IBV_WR_RDMA_WRITE, .quiet = true,
			.laddr = w.mine.p, .len = len,
			.lkey = w.mine.mr->lkey, .raddr = f.addr,
			.rkey = f.rkey }));
		good_flush(&w, &f);
		CHECK_EQ(filled(w.theirs.p + off, len, i), -1);
		CHECK_EQ(only(w.theirs.p, off, 0x77), -1);
		CHECK_EQ(only(w.theirs.p + off + len, 64, 0x77), -1);
	}
	EXPECT_EMPTY(w.b.rcq, 0);
	world_free(&w);
}

/* Every form of the range; of a region the address does not count. */
static void forms(const void *arg)
{
	struct world w;
	struct flush f;

	(void)arg;
	world_new(&w, RIGHTS);
	fill(w.theirs.p, SIZE, 5);
	f = flush_of(&w, 1);
	good_flush(&w, &f);
	f.addr += SIZE - 1;
	f.length = 1;
	good_flush(&w, &f);
	f.addr++;
	f.length = 0;
	good_flush(&w, &f);
	f.level = FLUSH_MR;
	f.addr = 0;
	good_flush(&w, &f);
	f.addr = -1ull;
	f.length = UINT32_MAX;
	good_flush(&w, &f);
	CHECK_EQ(filled(w.theirs.p, SIZE, 5), -1);
	world_free(&w);
}

/* More than a responder remembers, between other requests, several at a time. */
static void many(const void *arg)
{
	unsigned int i, k, rounds = t_rounds(50);
	volatile uint64_t *word;
	struct world w;

	(void)arg;
	world_new(&w, RIGHTS);
	word = (void *)w.theirs.p;
	*word = 0;
	for (i = 0; i < rounds; i++) {
		for (k = 0; k < 4; k++) {
			struct flush f = flush_of(&w, k);

			f.level = k & 1;
			OK(post(&w.a, &(struct op){
				.opcode = k & 1 ? IBV_WR_ATOMIC_FETCH_AND_ADD :
						  IBV_WR_RDMA_READ,
				.quiet = true, .laddr = w.mine.p, .len = 8,
				.lkey = w.mine.mr->lkey, .raddr = f.addr,
				.rkey = f.rkey, .compare = 1 }));
			post_flush(&w.a, w.sq, &f);
		}
		for (k = 0; k < 4; k++)
			expect_flush(&w, k);
		CHECK_EQ(*word, 2 * (i + 1));
	}
	world_free(&w);
}

/* A window has rights of its own. */
static void window(const void *arg)
{
	struct ibv_mw *mw;
	struct world w;
	struct flush f;
	uint32_t rkey;

	(void)arg;
	world_new(&w, MR_ALL);
	mw = ibv_alloc_mw(w.c->pd, IBV_MW_TYPE_2);
	CHECK(mw);
	rkey = ibv_inc_rkey(mw->rkey);
	OK(post_bind(&w.b, mw, rkey, w.theirs.mr, w.theirs.p + 100, 1000,
		     ACCESS_FLUSH_GLOBAL));
	EXPECT_WC(w.b.scq, 0xb1d, IBV_WC_SUCCESS);
	f = flush_of(&w, 1);
	f.rkey = rkey;
	f.addr += 100;
	f.length = 1000;
	good_flush(&w, &f);
	f.level = FLUSH_MR;
	good_flush(&w, &f);
	f.level = FLUSH_RANGE;
	f.addr++;
	post_flush(&w.a, w.sq, &f);
	EXPECT_WC_WHY(w.a.scq, 1, IBV_WC_REM_ACCESS_ERR,
		      t_wire() ? MRSOFT_R_PEER_REFUSED : MRSOFT_R_OUTSIDE);
	EXPECT_EVENT(w.c, IBV_EVENT_QP_ACCESS_ERR, w.b.qp);
	OK(ibv_dealloc_mw(mw));
	world_free(&w);
}

/* Pages that are not pinned are no less visible. */
static void on_demand(const void *arg)
{
	struct ibv_device_attr_ex attr;
	struct world w;
	struct flush f;

	(void)arg;
	world_new(&w, RIGHTS | IBV_ACCESS_ON_DEMAND);
	OK(ibv_query_device_ex(w.c->ibv, NULL, &attr));
	CHECK(attr.odp_caps.per_transport_caps.rc_odp_caps & ODP_SUPPORT_FLUSH);
	f = flush_of(&w, 1);
	/* no page is there */
	good_flush(&w, &f);
	fill(w.mine.p, SIZE, 3);
	OK(post(&w.a, &(struct op){
		.opcode = IBV_WR_RDMA_WRITE, .quiet = true, .laddr = w.mine.p,
		.len = SIZE, .lkey = w.mine.mr->lkey, .raddr = f.addr,
		.rkey = f.rkey }));
	good_flush(&w, &f);
	/* a system call: see DONE() in odp.c */
	getppid();
	CHECK_EQ(filled(w.theirs.p, SIZE, 3), -1);
	world_free(&w);
}

/* --- refused -------------------------------------------------------------- */

struct refusal {
	const char *name;
	int64_t offset;
	uint32_t length, key_xor;
	uint8_t type, level;
	int mr_access, qp_access;	/* 0: all */
	enum ibv_wc_status status;
	enum mrsoft_reason reason;
};

#define ACCESS .status = IBV_WC_REM_ACCESS_ERR
#define INVALID .status = IBV_WC_REM_INV_REQ_ERR
#define MALFORMED .status = IBV_WC_LOC_QP_OP_ERR, .reason = MRSOFT_R_RING_ENTRY

static const struct refusal refusals[] = {
	{ "one past", 1, SIZE, 0, 1, 0, 0, 0, ACCESS, MRSOFT_R_OUTSIDE },
	{ "one below", -1, 8, 0, 1, 0, 0, 0, ACCESS, MRSOFT_R_OUTSIDE },
	{ "4 GiB", 0, UINT32_MAX, 0, 1, 0, 0, 0, ACCESS, MRSOFT_R_OUTSIDE },
	{ "far away", 1ll << 62, 8, 0, 1, 0, 0, 0, ACCESS, MRSOFT_R_OUTSIDE },
	{ "stale key", 0, 8, 1, 1, 0, 0, 0, ACCESS, MRSOFT_R_KEY_STALE },
	{ "stale key, no byte", 0, 0, 1, 1, 0, 0, 0, ACCESS,
	  MRSOFT_R_KEY_STALE },
	{ "unknown key, region", 0, 8, 0x7fffff00, 1, 1, 0, 0, ACCESS,
	  MRSOFT_R_KEY_UNKNOWN },
	{ "no right", 0, 8, 0, 1, 0, MR_ALL, 0, ACCESS,
	  MRSOFT_R_NO_REMOTE_FLUSH },
	{ "no right, region", 0, 8, 0, 1, 1, MR_ALL, 0, ACCESS,
	  MRSOFT_R_NO_REMOTE_FLUSH },
	{ "persistent", 0, 8, 0, 2, 0, 0, 0, ACCESS, MRSOFT_R_NO_REMOTE_FLUSH },
	{ "both", 0, 8, 0, 3, 0, 0, 0, ACCESS, MRSOFT_R_NO_REMOTE_FLUSH },
	{ "QP without right", 0, 8, 0, 1, 0, 0, REMOTE_ALL, INVALID,
	  MRSOFT_R_QP_ACCESS },
	{ "QP without one of two", 0, 8, 0, 3, 0, 0,
	  REMOTE_ALL | ACCESS_FLUSH_GLOBAL, INVALID, MRSOFT_R_QP_ACCESS },
	{ "no type", 0, 8, 0, 0, 0, 0, 0, MALFORMED },
	{ "type 4", 0, 8, 0, 4, 0, 0, 0, MALFORMED },
	{ "type 17", 0, 8, 0, 0x11, 0, 0, 0, MALFORMED },
	{ "level 2", 0, 8, 0, 1, 2, 0, 0, MALFORMED },
};

static void refuse_one(const struct refusal *r)
{
	bool remote = r->status != IBV_WC_LOC_QP_OP_ERR;
	struct conf conf = conf_of(RC);
	struct world w;
	struct flush f;

	t_note("%s", r->name);
	conf.access = r->qp_access ? r->qp_access : QP_RIGHTS;
	world_conf(&w, &conf, r->mr_access ? r->mr_access : RIGHTS);
	fill(w.theirs.p, 4096, 1);
	f = flush_of(&w, 1);
	f.addr += r->offset;
	f.length = r->length;
	f.rkey ^= r->key_xor;
	f.type = r->type;
	f.level = r->level;
	post_flush(&w.a, w.sq, &f);
	EXPECT_WC_WHY(w.a.scq, 1, r->status, remote && t_wire() ?
		      MRSOFT_R_PEER_REFUSED : r->reason);
	expect_state(&w.a, IBV_QPS_ERR);
	if (remote)
		EXPECT_EVENT(w.c, r->status == IBV_WC_REM_ACCESS_ERR ?
			     IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR,
			     w.b.qp);
	expect_state(&w.b, remote ? IBV_QPS_ERR : IBV_QPS_RTS);
	CHECK_EQ(filled(w.theirs.p, 4096, 1), -1);
	world_free(&w);
}

static void refused(const void *arg)
{
	size_t i;

	(void)arg;
	for (i = 0; i < ARRAY_SIZE(refusals); i++)
		refuse_one(&refusals[i]);
}

/* Where no region has the right. */
static void refused_all(const void *arg)
{
	static const struct refusal none = {
		"no region has it", 0, 8, 0, 1, 0, MR_ALL, 0, ACCESS,
		MRSOFT_R_NO_REMOTE_FLUSH,
	};

	(void)arg;
	refuse_one(&none);
}

/* The region is gone: exactly then it is refused. */
static void deregistered(const void *arg)
{
	struct world w;
	struct flush f;

	(void)arg;
	world_new(&w, RIGHTS);
	f = flush_of(&w, 1);
	f.level = FLUSH_MR;
	good_flush(&w, &f);
	OK(ibv_dereg_mr(w.theirs.mr));
	w.theirs.mr = NULL;
	post_flush(&w.a, w.sq, &f);
	EXPECT_WC_WHY(w.a.scq, 1, IBV_WC_REM_ACCESS_ERR,
		      t_wire() ? MRSOFT_R_PEER_REFUSED : MRSOFT_R_KEY_STALE);
	EXPECT_EVENT(w.c, IBV_EVENT_QP_ACCESS_ERR, w.b.qp);
	world_free(&w);
}

/* UC has no answers. */
static void unconnected(const void *arg)
{
	struct conf conf = conf_of(UC);
	struct world w;
	struct flush f;

	(void)arg;
	conf.access = QP_RIGHTS;
	world_conf(&w, &conf, MR_ALL);
	f = flush_of(&w, 1);
	post_flush(&w.a, w.sq, &f);
	EXPECT_WC_WHY(w.a.scq, 1, IBV_WC_LOC_QP_OP_ERR, MRSOFT_R_OPCODE);
	world_free(&w);
}

static const struct t_case cases[] = {
	{ "claims", claims, NULL, 0 },
	{ "ordered", ordered, NULL, 0 },
	{ "forms", forms, NULL, 0 },
	{ "many", many, NULL, 0 },
	{ "window", window, NULL, 0 },
	{ "on_demand", on_demand, NULL, 0 },
	{ "refused", refused, NULL, 60 },
	{ "deregistered", deregistered, NULL, 0 },
	{ "uc", unconnected, NULL, 0 },
};

static const struct t_case old_cases[] = {
	{ "claims_nothing", claims, NULL, 0 },
	{ "refused_all", refused_all, NULL, 0 },
	{ "uc", unconnected, NULL, 0 },
};

int main(int argc, char **argv)
{
	if (!kernel_knows())
		return t_main(argc, argv, old_cases, ARRAY_SIZE(old_cases));
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
