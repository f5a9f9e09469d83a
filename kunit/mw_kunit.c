// SPDX-License-Identifier: GPL-2.0
/*
 * mw_kunit.c - memory windows: the rules of bind, unbind and invalidate, what owns
 *              what, and the races of all of them
 */
#include <linux/random.h>

#include "limits.h"
#include "mem_kunit.h"
#include "mw.h"

#define IOVA	0x7f0000001000ull
#define BYTES	8192u

struct win {
	struct mem *m;
	u8 *mem;
	struct mrsoft_mr *mr;
	/* two QPs in PD 0, one in PD 1 */
	struct mrsoft_mw_binder qp[3];
	struct mrsoft_mw mw[2];
};

static int mw_init(struct kunit *test)
{
	struct win *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->m = mem_create(test);
	w->mem = kunit_kzalloc(test, BYTES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, w->mem);
	for (i = 0; i < BYTES; i++)
		w->mem[i] = i * 3 + (i >> 8);
	for (i = 0; i < 3; i++)
		mrsoft_mw_binder_init(&w->qp[i], 100 + i, &w->m->pd[i / 2]);
	w->mr = mem_region(test, w->m, 0, w->mem, BYTES, IOVA, ALL_RIGHTS);
	KUNIT_ASSERT_EQ(test, mrsoft_mw_init(&w->m->table, &w->mw[0],
					     &w->m->pd[0], IB_MW_TYPE_1), 0);
	KUNIT_ASSERT_EQ(test, mrsoft_mw_init(&w->m->table, &w->mw[1],
					     &w->m->pd[0], IB_MW_TYPE_2), 0);
	test->priv = w;
	return 0;
}

/* A test that ends a window or the region itself sets it to NULL. */
static void mw_exit(struct kunit *test)
{
	struct win *w = test->priv;
	int i;

	if (!w)
		return;
	for (i = 0; i < 2; i++)
		if (w->mw[i].window)
			mrsoft_mw_destroy(&w->mw[i]);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_TRUE(test, list_empty(&w->qp[i].windows));
	if (w->mr)
		KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(w->mr), 0);
	mem_check_empty(test, w->m);
}

static u32 key_of(struct win *w, int mw)
{
	return w->mw[mw].window->key.key;
}

static u32 next_key(u32 key)
{
	return (key & ~0xffu) | (u8)(key + 1);
}

/* Bind window @mw by QP @qp to @length bytes at @addr with its next key. */
static enum mrsoft_reason bind(struct win *w, int mw, int qp, u64 addr,
			       u64 length, int access)
{
	struct mrsoft_bind b = {
		.mw_key = key_of(w, mw), .new_key = next_key(key_of(w, mw)),
		.mr_key = w->mr ? w->mr->key.key : 0,
		.addr = addr, .length = length, .access = access,
	};

	return mrsoft_mw_bind(&w->m->table, &w->qp[qp], &b);
}

static enum mrsoft_reason access_by(struct win *w, int qp, u32 key, int rights,
				    u64 iova, u64 length)
{
	return mem_try(w->m, qp / 2, w->qp[qp].qpn, key, rights, iova, length);
}

static enum mrsoft_reason inval(struct win *w, int qp, u32 key, bool remote)
{
	return mrsoft_key_invalidate(&w->m->table, &w->qp[qp], key, remote);
}

/* --- the rules ------------------------------------------------------------ */

struct rule {
	const char *name;
	int type;		/* of the window */
	int qp;
	int mr_access;
	int access;
	s64 addr;		/* from IOVA */
	u64 length;
	enum mrsoft_reason reason;
};

#define RR	IB_ACCESS_REMOTE_READ
#define RW	IB_ACCESS_REMOTE_WRITE
#define RA	IB_ACCESS_REMOTE_ATOMIC
#define LW	IB_ACCESS_LOCAL_WRITE
#define MB	IB_ACCESS_MW_BIND
#define ZB	IB_ZERO_BASED

static const struct rule rules[] = {
	{ "type 1, all rights", 1, 0, LW | MB, RR | RW | RA, 0, BYTES, MRSOFT_R_NONE },
	{ "type 2, all rights", 2, 0, LW | MB, RR | RW | RA, 0, BYTES, MRSOFT_R_NONE },
	{ "type 1, no rights at all", 1, 0, MB, 0, 0, BYTES, MRSOFT_R_NONE },
	{ "type 2, local write is meaningless", 2, 0, MB, LW, 0, 8, MRSOFT_R_NONE },
	{ "type 2, optional bits", 2, 0, MB, IB_ACCESS_OPTIONAL, 0, 8, MRSOFT_R_NONE },
	{ "type 2, zero-based", 2, 0, MB, RR | ZB, 0, 8, MRSOFT_R_NONE },
	{ "type 1, zero-based", 1, 0, MB, RR | ZB, 0, 8, MRSOFT_R_MW_TYPE },
	{ "read of an MR without remote read", 1, 0, MB, RR, 0, 8, MRSOFT_R_NONE },
	{ "type 1, MR not for binding", 1, 0, LW, RR, 0, 8, MRSOFT_R_NO_MW_BIND },
	{ "type 2, MR not for binding", 2, 0, LW, RR, 0, 8, MRSOFT_R_NO_MW_BIND },
	{ "write to a read-only MR", 1, 0, MB, RW, 0, 8, MRSOFT_R_MW_RIGHTS },
	{ "atomic to a read-only MR", 2, 0, MB, RA, 0, 8, MRSOFT_R_MW_RIGHTS },
	{ "flush of an MR without flush", 2, 0, MB, IB_ACCESS_FLUSH_GLOBAL, 0, 8,
	  IB_DEVICE_FLUSH_GLOBAL ? MRSOFT_R_NONE : MRSOFT_R_MW_RIGHTS },
	{ "persistent flush", 2, 0, LW | MB, IB_ACCESS_FLUSH_PERSISTENT, 0, 8,
	  MRSOFT_R_MW_RIGHTS },
	{ "unknown right", 2, 0, MB, 1 << 15, 0, 8, MRSOFT_R_MW_RIGHTS },
	{ "right to bind", 2, 0, MB, MB, 0, 8, MRSOFT_R_MW_RIGHTS },
	{ "QP of another PD", 1, 2, MB, RR, 0, 8, MRSOFT_R_WRONG_PD },
	{ "type 2, QP of another PD", 2, 2, MB, RR, 0, 8, MRSOFT_R_WRONG_PD },
	{ "last byte", 1, 0, MB, RR, BYTES - 1, 1, MRSOFT_R_NONE },
	{ "one past", 1, 0, MB, RR, 1, BYTES, MRSOFT_R_OUTSIDE },
	{ "one below", 2, 0, MB, RR, -1, 8, MRSOFT_R_OUTSIDE },
	{ "behind", 2, 0, MB, RR, BYTES, 1, MRSOFT_R_OUTSIDE },
	{ "length wraps", 2, 0, MB, RR, 1, U64_MAX, MRSOFT_R_OUTSIDE },
};

KUNIT_ARRAY_PARAM_DESC(rules, rules, name);

static void rule(struct kunit *test)
{
	const struct rule *r = test->param_value;
	struct win *w = test->priv;
	int mw = r->type - 1;
	struct mrsoft_window *window = w->mw[mw].window;
	u32 old = key_of(w, mw);

	w->mr->key.access = r->mr_access;
	KUNIT_EXPECT_EQ(test, bind(w, mw, r->qp, IOVA + r->addr, r->length,
				   r->access), r->reason);
	KUNIT_EXPECT_EQ(test, mem_refusals(w->m, r->reason), !!r->reason);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->mr->key.owners), !r->reason);
	KUNIT_EXPECT_EQ(test, key_of(w, mw), r->reason ? old : next_key(old));
	KUNIT_EXPECT_EQ(test, window->key.published, !r->reason);
	if (!r->reason)
		KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(w->mr), -EBUSY);
}

/* Each key of the work request may be wrong in its own way. */
static void wrong_keys(struct kunit *test)
{
	struct win *w = test->priv;
	struct mrsoft_mr *dma = mrsoft_mr_get_dma(&w->m->table, &w->m->pd[0],
						  LW | MB);
	struct mrsoft_mr *other = mem_bare_region(test, w->m, 1, IOVA, BYTES,
						  ALL_RIGHTS);
	struct mrsoft_mr *invalid = mrsoft_mr_alloc_fast(&w->m->table,
							 &w->m->pd[0], 1, false);
	u32 k1 = key_of(w, 0), k2 = key_of(w, 1), mr = w->mr->key.key;
	struct {
		u32 mw, next, mr;
		enum mrsoft_reason reason;
	} row[] = {
		{ 0, 0, mr, MRSOFT_R_KEY_UNKNOWN },
		{ k1 ^ 0xff, next_key(k1), mr, MRSOFT_R_KEY_STALE },
		{ mr, next_key(mr), mr, MRSOFT_R_KEY_KIND },
		{ k1, k1 + 0x100, mr, MRSOFT_R_KEY_UNKNOWN },
		{ k1, next_key(k2), mr, MRSOFT_R_KEY_UNKNOWN },
		{ k1, next_key(k1), 0, MRSOFT_R_KEY_UNKNOWN },
		{ k1, next_key(k1), mr ^ 1, MRSOFT_R_KEY_STALE },
		{ k2, next_key(k2), k1, MRSOFT_R_KEY_INVALID },
		{ k2, next_key(k2), dma->key.key, MRSOFT_R_NO_MW_BIND },
		{ k2, next_key(k2), other->key.key, MRSOFT_R_WRONG_PD },
		{ k2, next_key(k2), invalid->key.key, MRSOFT_R_KEY_INVALID },
	};
	struct mrsoft_bind b = { .addr = IOVA, .length = 8, .access = RR };
	int i;

	for (i = 0; i < ARRAY_SIZE(row); i++) {
		b.mw_key = row[i].mw;
		b.new_key = row[i].next;
		b.mr_key = row[i].mr;
		KUNIT_EXPECT_EQ_MSG(test, mrsoft_mw_bind(&w->m->table, &w->qp[0],
							 &b),
				    row[i].reason, "row %d", i);
	}
	KUNIT_EXPECT_EQ(test, key_of(w, 0), k1);
	KUNIT_EXPECT_EQ(test, key_of(w, 1), k2);

	/* a window cannot be bound to a window */
	KUNIT_EXPECT_EQ(test, bind(w, 0, 0, IOVA, 8, RR), MRSOFT_R_NONE);
	b = (struct mrsoft_bind){
		.mw_key = k2, .new_key = next_key(k2), .mr_key = key_of(w, 0),
		.addr = IOVA, .length = 8, .access = RR,
	};
	KUNIT_EXPECT_EQ(test, mrsoft_mw_bind(&w->m->table, &w->qp[0], &b),
			MRSOFT_R_KEY_KIND);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(dma), 0);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(other), 0);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(invalid), 0);
}

/* B05: the window of another PD than QP and region. */
static void window_of_another_pd(struct kunit *test)
{
	struct win *w = test->priv;
	struct mrsoft_mw mw = {};
	struct mrsoft_bind b;

	KUNIT_ASSERT_EQ(test, mrsoft_mw_init(&w->m->table, &mw, &w->m->pd[1],
					     IB_MW_TYPE_1), 0);
	b = (struct mrsoft_bind){
		.mw_key = mw.ib.rkey, .new_key = next_key(mw.ib.rkey),
		.mr_key = w->mr->key.key, .addr = IOVA, .length = 8,
	};
	KUNIT_EXPECT_EQ(test, mrsoft_mw_bind(&w->m->table, &w->qp[0], &b),
			MRSOFT_R_WRONG_PD);
	/* its own QP, but then the region is of another PD */
	KUNIT_EXPECT_EQ(test, mrsoft_mw_bind(&w->m->table, &w->qp[2], &b),
			MRSOFT_R_WRONG_PD);
	mrsoft_mw_destroy(&mw);
}

/* --- access through a window ---------------------------------------------- */

struct edge {
	const char *name;
	u64 length;
	u64 bytes;
	s64 addr;
	bool allowed;
};

/* Against the window's own range, although the region has more on both sides. */
static const struct edge edges[] = {
	{ "whole", 1000, 1000, 0, true },
	{ "last byte", 1000, 1, 999, true },
	{ "one past", 1000, 1000, 1, false },
	{ "one below", 1000, 1, -1, false },
	{ "at end, empty", 1000, 0, 1000, true },
	{ "behind", 1000, 1, 1000, false },
	{ "wraps", 1000, U64_MAX, 1, false },
};

KUNIT_ARRAY_PARAM_DESC(edges, edges, name);

static void edge(struct kunit *test)
{
	const struct edge *e = test->param_value;
	enum mrsoft_reason want = e->allowed ? MRSOFT_R_NONE : MRSOFT_R_OUTSIDE;
	struct win *w = test->priv;

	KUNIT_ASSERT_EQ(test, bind(w, 0, 0, IOVA + 77, e->length, RR),
			MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, key_of(w, 0), RR,
					IOVA + 77 + e->addr, e->bytes), want);
	KUNIT_ASSERT_EQ(test, bind(w, 1, 0, IOVA + 77, e->length, RR | ZB),
			MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, key_of(w, 1), RR, e->addr,
					e->bytes), want);
}

static void rights_and_qps(struct kunit *test)
{
	struct win *w = test->priv;
	u32 k1, k2;

	KUNIT_ASSERT_EQ(test, bind(w, 0, 0, IOVA, 100, RW), MRSOFT_R_NONE);
	KUNIT_ASSERT_EQ(test, bind(w, 1, 0, IOVA, 100, RR), MRSOFT_R_NONE);
	k1 = key_of(w, 0);
	k2 = key_of(w, 1);

	/* the window's rights, not the region's */
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k1, RW, IOVA, 8), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k1, RR, IOVA, 8),
			MRSOFT_R_NO_REMOTE_READ);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k2, RW, IOVA, 8),
			MRSOFT_R_NO_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k2, RA, IOVA, 8),
			MRSOFT_R_NO_REMOTE_ATOMIC);

	/* type 1: any QP of the PD; type 2: the one that bound it */
	KUNIT_EXPECT_EQ(test, access_by(w, 1, k1, RW, IOVA, 8), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, access_by(w, 2, k1, RW, IOVA, 8),
			MRSOFT_R_WRONG_PD);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k2, RR, IOVA, 8), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, access_by(w, 1, k2, RR, IOVA, 8),
			MRSOFT_R_WRONG_QP);

	/* never as a local key */
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k1, 0, IOVA, 8),
			MRSOFT_R_KEY_KIND);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k2, LW, IOVA, 8),
			MRSOFT_R_KEY_KIND);
}

/* The bytes are the region's: at the same address, or from 0 if zero-based. */
static void bytes(struct kunit *test)
{
	struct win *w = test->priv;
	u8 buf[300];

	KUNIT_ASSERT_EQ(test, bind(w, 0, 0, IOVA + 4000, 300, RR | RW),
			MRSOFT_R_NONE);
	KUNIT_ASSERT_EQ(test, bind(w, 1, 0, IOVA + 5000, 300, RR | ZB),
			MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, mem_rw(w->m, 0, 100, key_of(w, 0), RR, IOVA + 4000,
				     buf, 300, false), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, memcmp(buf, w->mem + 4000, 300), 0);
	KUNIT_EXPECT_EQ(test, mem_rw(w->m, 0, 100, key_of(w, 1), RR, 10, buf,
				     290, false), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, memcmp(buf, w->mem + 5010, 290), 0);

	memset(buf, 0xd7, 100);
	KUNIT_EXPECT_EQ(test, mem_rw(w->m, 0, 100, key_of(w, 0), RW, IOVA + 4200,
				     buf, 100, true), MRSOFT_R_NONE);
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(w->mem + 4200, 0xd7, 100), NULL);
	KUNIT_EXPECT_NE(test, w->mem[4199], 0xd7);
	KUNIT_EXPECT_NE(test, w->mem[4300], 0xd7);
}

/* --- states --------------------------------------------------------------- */

static void type_1_states(struct kunit *test)
{
	struct win *w = test->priv;
	u32 first = key_of(w, 0), k1, k2;
	struct mrsoft_bind b;

	KUNIT_EXPECT_EQ(test, w->mw[0].ib.rkey, first);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, first, RR, IOVA, 8),
			MRSOFT_R_KEY_INVALID);
	KUNIT_ASSERT_EQ(test, bind(w, 0, 0, IOVA, 100, RR), MRSOFT_R_NONE);
	k1 = key_of(w, 0);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, first, RR, IOVA, 8),
			MRSOFT_R_KEY_STALE);

	/* bound again while bound, by any QP: the old key is dead */
	KUNIT_ASSERT_EQ(test, bind(w, 0, 1, IOVA + 200, 100, RR),
			MRSOFT_R_NONE);
	k2 = key_of(w, 0);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k1, RR, IOVA + 200, 8),
			MRSOFT_R_KEY_STALE);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k2, RR, IOVA + 200, 8),
			MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k2, RR, IOVA, 8),
			MRSOFT_R_OUTSIDE);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->mr->key.owners), 1);

	/* a refused bind leaves it as it is */
	KUNIT_EXPECT_EQ(test, bind(w, 0, 0, IOVA, BYTES + 1, RR),
			MRSOFT_R_OUTSIDE);
	b = (struct mrsoft_bind){
		.mw_key = k2, .new_key = k2, .mr_key = w->mr->key.key,
		.addr = IOVA, .length = 8,
	};
	KUNIT_EXPECT_EQ(test, mrsoft_mw_bind(&w->m->table, &w->qp[0], &b),
			MRSOFT_R_KEY_STALE);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k2, RR, IOVA + 200, 8),
			MRSOFT_R_NONE);

	/* not by invalidate, only by an empty bind */
	KUNIT_EXPECT_EQ(test, inval(w, 0, k2, false), MRSOFT_R_MW_TYPE);
	KUNIT_EXPECT_EQ(test, inval(w, 0, k2, true), MRSOFT_R_MW_TYPE);
	KUNIT_EXPECT_EQ(test, bind(w, 0, 0, 0, 0, 0), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, key_of(w, 0), next_key(k2));
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k2, RR, IOVA + 200, 8),
			MRSOFT_R_KEY_STALE);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, next_key(k2), RR, IOVA + 200, 8),
			MRSOFT_R_KEY_INVALID);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->mr->key.owners), 0);
	/* unbind what is not bound: no harm */
	KUNIT_EXPECT_EQ(test, bind(w, 0, 0, 0, 0, 0), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, bind(w, 0, 0, IOVA, 8, RR), MRSOFT_R_NONE);
}

static void type_2_states(struct kunit *test)
{
	struct win *w = test->priv;
	struct mrsoft_bind b;
	u32 k1, k2;

	KUNIT_ASSERT_EQ(test, bind(w, 1, 0, IOVA, 100, RR), MRSOFT_R_NONE);
	k1 = key_of(w, 1);
	KUNIT_EXPECT_EQ(test, bind(w, 1, 0, IOVA, 100, RR), MRSOFT_R_MW_BOUND);
	KUNIT_EXPECT_EQ(test, bind(w, 1, 1, IOVA, 100, RR), MRSOFT_R_WRONG_QP);
	KUNIT_EXPECT_EQ(test, bind(w, 1, 1, 0, 0, 0), MRSOFT_R_WRONG_QP);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k1, RR, IOVA, 8), MRSOFT_R_NONE);

	/* invalidate: only the live key, only that QP, only once */
	KUNIT_EXPECT_EQ(test, inval(w, 0, k1 ^ 0x55, false), MRSOFT_R_KEY_STALE);
	KUNIT_EXPECT_EQ(test, inval(w, 1, k1, false), MRSOFT_R_WRONG_QP);
	KUNIT_EXPECT_EQ(test, inval(w, 2, k1, false), MRSOFT_R_WRONG_PD);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k1, RR, IOVA, 8), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, inval(w, 0, k1, false), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, inval(w, 0, k1, false), MRSOFT_R_KEY_INVALID);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k1, RR, IOVA, 8),
			MRSOFT_R_KEY_INVALID);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->mr->key.owners), 0);

	/* free now: any QP of the PD, but with a new key */
	b = (struct mrsoft_bind){
		.mw_key = k1, .new_key = k1, .mr_key = w->mr->key.key,
		.addr = IOVA, .length = 8, .access = RR,
	};
	KUNIT_EXPECT_EQ(test, mrsoft_mw_bind(&w->m->table, &w->qp[1], &b),
			MRSOFT_R_KEY_STALE);
	KUNIT_EXPECT_EQ(test, bind(w, 1, 1, IOVA, 100, RR), MRSOFT_R_NONE);
	k2 = key_of(w, 1);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k2, RR, IOVA, 8),
			MRSOFT_R_WRONG_QP);
	KUNIT_EXPECT_EQ(test, access_by(w, 1, k2, RR, IOVA, 8), MRSOFT_R_NONE);

	/* a peer invalidates it, then an empty bind does */
	KUNIT_EXPECT_EQ(test, inval(w, 1, k2, true), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, bind(w, 1, 0, IOVA, 100, RR), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, bind(w, 1, 0, 0, 0, 0), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->mr->key.owners), 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&w->qp[0].windows));
}

/* A window that was never bound may be bound with its first key. */
static void first_key(struct kunit *test)
{
	struct win *w = test->priv;
	u32 key = key_of(w, 1);
	struct mrsoft_bind b = {
		.mw_key = key, .new_key = key, .mr_key = w->mr->key.key,
		.addr = IOVA, .length = 8, .access = RR,
	};

	KUNIT_EXPECT_EQ(test, mrsoft_mw_bind(&w->m->table, &w->qp[0], &b),
			MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, key, RR, IOVA, 8), MRSOFT_R_NONE);
}

/* The contract: busy while bound, by each way of being bound, then free. */
static void dereg_contract(struct kunit *test)
{
	struct win *w = test->priv;
	u32 mr = w->mr->key.key, k1, k2;

	KUNIT_ASSERT_EQ(test, bind(w, 0, 0, IOVA, 100, RR), MRSOFT_R_NONE);
	KUNIT_ASSERT_EQ(test, bind(w, 1, 0, IOVA, 100, RR), MRSOFT_R_NONE);
	k1 = key_of(w, 0);
	k2 = key_of(w, 1);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(w->mr), -EBUSY);
	KUNIT_EXPECT_EQ(test, inval(w, 0, mr, false), MRSOFT_R_MR_BUSY);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k1, RR, IOVA, 8), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k2, RR, IOVA, 8), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, mr, RR, IOVA, 8), MRSOFT_R_NONE);

	KUNIT_EXPECT_EQ(test, bind(w, 0, 0, 0, 0, 0), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(w->mr), -EBUSY);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k2, RR, IOVA, 8), MRSOFT_R_NONE);
	mrsoft_mw_destroy(&w->mw[1]);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k2, RR, IOVA, 8),
			MRSOFT_R_KEY_STALE);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(w->mr), 0);
	w->mr = NULL;
	KUNIT_EXPECT_EQ(test, access_by(w, 0, mr, RR, IOVA, 8),
			MRSOFT_R_KEY_STALE);
}

/* A rebind of type 1 lets the old region go. */
static void rebind_changes_region(struct kunit *test)
{
	struct win *w = test->priv;
	struct mrsoft_mr *old = w->mr;

	KUNIT_ASSERT_EQ(test, bind(w, 0, 0, IOVA, 100, RR), MRSOFT_R_NONE);
	w->mr = mem_region(test, w->m, 0, w->mem, 64, 0, ALL_RIGHTS);
	KUNIT_ASSERT_EQ(test, bind(w, 0, 0, 0, 64, RR), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(old), 0);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(w->mr), -EBUSY);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, key_of(w, 0), RR, 0, 64),
			MRSOFT_R_NONE);
}

static void qp_ends(struct kunit *test)
{
	struct win *w = test->priv;
	struct mrsoft_mw more = {};
	struct mrsoft_bind b;
	u32 k1, k2;

	KUNIT_ASSERT_EQ(test, mrsoft_mw_init(&w->m->table, &more, &w->m->pd[0],
					     IB_MW_TYPE_2), 0);
	b = (struct mrsoft_bind){
		.mw_key = more.ib.rkey, .new_key = next_key(more.ib.rkey),
		.mr_key = w->mr->key.key, .addr = IOVA, .length = 8,
		.access = RR,
	};
	KUNIT_ASSERT_EQ(test, mrsoft_mw_bind(&w->m->table, &w->qp[0], &b),
			MRSOFT_R_NONE);
	KUNIT_ASSERT_EQ(test, bind(w, 0, 0, IOVA, 100, RR), MRSOFT_R_NONE);
	KUNIT_ASSERT_EQ(test, bind(w, 1, 0, IOVA, 100, RR), MRSOFT_R_NONE);
	k1 = key_of(w, 0);
	k2 = key_of(w, 1);
	mrsoft_mw_binder_drain(&w->qp[1]);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k2, RR, IOVA, 8), MRSOFT_R_NONE);
	mrsoft_mw_binder_drain(&w->qp[0]);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k2, RR, IOVA, 8),
			MRSOFT_R_KEY_INVALID);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, b.new_key, RR, IOVA, 8),
			MRSOFT_R_KEY_INVALID);
	/* type 1 belongs to no QP */
	KUNIT_EXPECT_EQ(test, access_by(w, 0, k1, RR, IOVA, 8), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->mr->key.owners), 1);
	/* QP reset: it may bind again */
	KUNIT_EXPECT_EQ(test, bind(w, 1, 0, IOVA, 100, RR), MRSOFT_R_NONE);
	mrsoft_mw_destroy(&more);
}

static void invalidate_of_regions(struct kunit *test)
{
	struct win *w = test->priv;
	u32 key = w->mr->key.key;

	KUNIT_EXPECT_EQ(test, inval(w, 2, key, false), MRSOFT_R_WRONG_PD);
	KUNIT_EXPECT_EQ(test, inval(w, 0, key ^ 4, false), MRSOFT_R_KEY_STALE);
	KUNIT_EXPECT_EQ(test, inval(w, 0, 0, false), MRSOFT_R_KEY_UNKNOWN);
	KUNIT_EXPECT_EQ(test, access_by(w, 0, key, RR, IOVA, 8), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, inval(w, 0, key, true), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, inval(w, 0, key, true), MRSOFT_R_KEY_INVALID);
	KUNIT_EXPECT_EQ(test, bind(w, 0, 0, IOVA, 8, RR), MRSOFT_R_KEY_INVALID);
	KUNIT_EXPECT_EQ(test, mem_refusals(w->m, MRSOFT_R_KEY_INVALID), 2ll);
}

static void window_limit(struct kunit *test)
{
	struct win *w = test->priv;
	struct mrsoft_mw mw = {};
	int live = atomic_read(&w->m->table.windows);

	KUNIT_EXPECT_EQ(test, mrsoft_mw_init(&w->m->table, &mw, &w->m->pd[1], 0),
			-EINVAL);
	atomic_set(&w->m->table.windows, MRSOFT_MAX_MW);
	KUNIT_EXPECT_EQ(test, mrsoft_mw_init(&w->m->table, &mw, &w->m->pd[1],
					     IB_MW_TYPE_1), -ENOMEM);
	atomic_set(&w->m->table.windows, live);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->m->pd[1].regions), 0);
	KUNIT_EXPECT_NULL(test, mw.window);
}

/* --- waiting -------------------------------------------------------------- */

struct ending {
	struct win *w;
	enum mrsoft_reason reason;
};

static void end_unbind_1(void *arg)
{
	struct ending *e = arg;

	e->reason = bind(e->w, 0, 0, 0, 0, 0);
}

static void end_rebind_1(void *arg)
{
	struct ending *e = arg;

	e->reason = bind(e->w, 0, 0, IOVA, 8, RR);
}

static void end_unbind_2(void *arg)
{
	struct ending *e = arg;

	e->reason = bind(e->w, 1, 0, 0, 0, 0);
}

static void end_local_inv(void *arg)
{
	struct ending *e = arg;

	e->reason = inval(e->w, 0, key_of(e->w, 1), false);
}

static void end_remote_inv(void *arg)
{
	struct ending *e = arg;

	e->reason = inval(e->w, 0, key_of(e->w, 1), true);
}

static void end_qp(void *arg)
{
	struct ending *e = arg;

	mrsoft_mw_binder_drain(&e->w->qp[0]);
}

static void end_mw_1(void *arg)
{
	struct ending *e = arg;

	mrsoft_mw_destroy(&e->w->mw[0]);
}

static void end_mw_2(void *arg)
{
	struct ending *e = arg;

	mrsoft_mw_destroy(&e->w->mw[1]);
}

struct ending_row {
	const char *name;
	int mw;
	void (*fn)(void *arg);
};

static const struct ending_row endings[] = {
	{ "unbind of type 1", 0, end_unbind_1 },
	{ "rebind of type 1", 0, end_rebind_1 },
	{ "unbind of type 2", 1, end_unbind_2 },
	{ "local invalidate", 1, end_local_inv },
	{ "remote invalidate", 1, end_remote_inv },
	{ "end of the QP", 1, end_qp },
	{ "dealloc of type 1", 0, end_mw_1 },
	{ "dealloc of type 2", 1, end_mw_2 },
};

KUNIT_ARRAY_PARAM_DESC(endings, endings, name);

/* Invariant 4: its completion says that no copy through the old key runs. */
static void ending_waits(struct kunit *test)
{
	const struct ending_row *row = test->param_value;
	struct win *w = test->priv;
	struct mrsoft_access req = {
		.pd = &w->m->pd[0], .qpn = w->qp[0].qpn, .rights = RR,
		.iova = IOVA, .length = 8,
	};
	struct ending e = { .w = w };
	struct mrsoft_span span;
	struct waiter waiter;

	KUNIT_ASSERT_EQ(test, bind(w, row->mw, 0, IOVA, 8, RR), MRSOFT_R_NONE);
	req.key = key_of(w, row->mw);
	KUNIT_ASSERT_EQ(test, mrsoft_key_access(&w->m->table, &req, &span),
			MRSOFT_R_NONE);
	waiter_start(test, &waiter, row->fn, &e);
	KUNIT_EXPECT_TRUE(test, mem_eventually(access_by(w, 0, req.key, RR, IOVA,
							 8) ==
					       MRSOFT_R_KEY_INVALID));
	KUNIT_EXPECT_TRUE(test, waiter_waits(&waiter));
	/* the bytes are still in use: the region must stay */
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(w->mr), -EBUSY);
	KUNIT_EXPECT_EQ(test, mem_rw(w->m, 0, 0, w->mr->key.key, RR, IOVA,
				     &req, 1, false), MRSOFT_R_NONE);
	mrsoft_span_put(&span);
	KUNIT_ASSERT_TRUE(test, waiter_ends(&waiter));
	KUNIT_EXPECT_EQ(test, e.reason, MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->mr->key.owners),
			row->fn == end_rebind_1);
}

/* --- races ---------------------------------------------------------------- */

#define ROUNDS	(MEM_SLOW ? 200 : 1000)

/* @go and @done count rounds; both sides spin, since a wake-up is too coarse. */
struct bind_race {
	struct win *w;
	struct mrsoft_bind b;
	enum mrsoft_reason reason;
	u32 go;
	u32 done;
};

static void spin_until(const u32 *count, u32 value)
{
	u32 turns = 0;

	/* pairs with the release that ended the other side's round */
	while (smp_load_acquire(count) != value) {
		cpu_relax();
		if (!(++turns % 1024))
			cond_resched();
	}
}

static int bind_racer(void *data)
{
	struct bind_race *race = data;
	u32 round;

	for (round = 1; round <= ROUNDS; round++) {
		spin_until(&race->go, round);
		race->reason = mrsoft_mw_bind(&race->w->m->table,
					      &race->w->qp[0], &race->b);
		/* pairs with spin_until() in bind_against() */
		smp_store_release(&race->done, round);
	}
	return 0;
}

/*
 * Bind against dereg or invalidate: one of two outcomes, and never a bound window
 * without a region.
 */
static void bind_against(struct kunit *test, bool dereg)
{
	struct win *w = test->priv;
	struct bind_race race = { .w = w };
	int busy = 0, won, bad = 0;
	u32 i, ns, delay = 500;

	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(bind_racer, &race,
						    "mrsoft-bind")));
	for (i = 1; i <= ROUNDS; i++) {
		struct mrsoft_mr *mr = mem_bare_region(test, w->m, 0, IOVA, 64,
						       ALL_RIGHTS);
		u32 key = key_of(w, 1);

		race.b = (struct mrsoft_bind){
			.mw_key = key, .new_key = next_key(key),
			.mr_key = mr->key.key, .addr = IOVA, .length = 64,
			.access = RR,
		};
		/* pairs with spin_until() in bind_racer() */
		smp_store_release(&race.go, i);
		for (ns = delay; ns > 1000; ns -= 1000)
			udelay(1);
		ndelay(ns);
		if (dereg)
			won = !mrsoft_mr_dereg(mr);
		else
			won = !mrsoft_mr_invalidate(&mr->key, &w->m->pd[0],
						    mr->key.key, false);
		spin_until(&race.done, i);
		busy += !won;
		/* whoever won, give the other one more time (ns) */
		if (won)
			delay = min(delay + delay / 4 + i % 64, 5000000u);
		else
			delay -= delay / 4;
		if (won == !race.reason && dereg)
			bad++;
		/* a bind that came first makes it busy, and is whole */
		if (!race.reason) {
			bad += won;
			bad += !!access_by(w, 0, key_of(w, 1), RR, IOVA, 0);
			bad += !!inval(w, 0, key_of(w, 1), false);
		} else {
			bad += !won;
			bad += key_of(w, 1) != key;
			bad += !!w->mw[1].window->mr;
		}
		if (!won || !dereg)
			bad += !!mrsoft_mr_dereg(mr);
	}
	kunit_info(test, "%d of %d were busy\n", busy, ROUNDS);
	KUNIT_EXPECT_EQ(test, bad, 0);
	/* else it was no race */
	KUNIT_EXPECT_GT(test, busy, 0);
	KUNIT_EXPECT_LT(test, busy, ROUNDS);
}

static void bind_against_dereg(struct kunit *test)
{
	bind_against(test, true);
}

static void bind_against_invalidate(struct kunit *test)
{
	bind_against(test, false);
}

/*
 * Everything at once on a few windows and two QPs: binds, invalidates, empty
 * binds, ends of QPs, windows that go and come, accesses.  Memory must survive
 * (KASAN) and the books must balance at the end.
 */
struct storm {
	struct win *w;
	struct mrsoft_mw mw[3];
	struct mutex lock[3];	/* verbs: one dealloc of a window at a time */
	u32 key[3];
};

static u32 storm_dice(void)
{
	return get_random_u32();
}

static void storm_replace(struct storm *s, int i)
{
	mutex_lock(&s->lock[i]);
	if (s->mw[i].window)
		mrsoft_mw_destroy(&s->mw[i]);
	if (!mrsoft_mw_init(&s->w->m->table, &s->mw[i], &s->w->m->pd[0],
			    i ? IB_MW_TYPE_2 : IB_MW_TYPE_1))
		WRITE_ONCE(s->key[i], s->mw[i].ib.rkey);
	mutex_unlock(&s->lock[i]);
}

static int storm_bind(struct storm *s, int i, int qp, u64 length)
{
	struct mrsoft_bind b = {
		.mw_key = READ_ONCE(s->key[i]),
		.mr_key = s->w->mr->key.key, .addr = IOVA, .length = length,
		.access = RR,
	};

	b.new_key = next_key(b.mw_key);
	if (!mrsoft_mw_bind(&s->w->m->table, &s->w->qp[qp], &b))
		cmpxchg(&s->key[i], b.mw_key, b.new_key);
	return 0;
}

static int storm_turn(void *arg, unsigned int who)
{
	struct storm *s = arg;
	u32 dice = storm_dice();
	int i = dice / 64 % 3, qp = dice / 256 % 2;
	u8 byte = 0;

	switch (dice % 16) {
	case 0:
		storm_replace(s, i);
		return 0;
	case 1:
		mrsoft_mw_binder_drain(&s->w->qp[qp]);
		return 0;
	case 2 ... 3:
		inval(s->w, qp, READ_ONCE(s->key[i]), dice & 16);
		return 0;
	case 4 ... 5:
		return storm_bind(s, i, qp, 0);
	case 6 ... 9:
		return storm_bind(s, i, qp, 64);
	default:
		if (mem_rw(s->w->m, 0, s->w->qp[qp].qpn, READ_ONCE(s->key[i]),
			   RR, IOVA + 5, &byte, 1, false))
			return 0;
		return byte != 15;
	}
}

static void storm(struct kunit *test)
{
	struct win *w = test->priv;
	struct storm *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct crowd crowd;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->w = w;
	for (i = 0; i < 3; i++) {
		mutex_init(&s->lock[i]);
		storm_replace(s, i);
	}
	crowd_start(test, &crowd, 4, storm_turn, s);
	msleep(1000);
	KUNIT_EXPECT_EQ(test, crowd_stop(&crowd), 0);
	/* cmpxchg may have lost a key: the windows know better */
	for (i = 0; i < 3; i++)
		mrsoft_mw_destroy(&s->mw[i]);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->mr->key.owners), 0);
}

static struct kunit_case mw_cases[] = {
	KUNIT_CASE_PARAM(rule, rules_gen_params),
	KUNIT_CASE(wrong_keys),
	KUNIT_CASE(window_of_another_pd),
	KUNIT_CASE_PARAM(edge, edges_gen_params),
	KUNIT_CASE(rights_and_qps),
	KUNIT_CASE(bytes),
	KUNIT_CASE(type_1_states),
	KUNIT_CASE(type_2_states),
	KUNIT_CASE(first_key),
	KUNIT_CASE(dereg_contract),
	KUNIT_CASE(rebind_changes_region),
	KUNIT_CASE(qp_ends),
	KUNIT_CASE(invalidate_of_regions),
	KUNIT_CASE(window_limit),
	KUNIT_CASE_PARAM(ending_waits, endings_gen_params),
	KUNIT_CASE(bind_against_dereg),
	KUNIT_CASE(bind_against_invalidate),
	KUNIT_CASE(storm),
	{}
};

static struct kunit_suite mw_suite = {
	.name = "mrsoft_mw",
	.init = mw_init,
	.exit = mw_exit,
	.test_cases = mw_cases,
};

kunit_test_suite(mw_suite);

MODULE_DESCRIPTION("KUnit tests of mrsoft's memory windows");
MODULE_LICENSE("GPL");
