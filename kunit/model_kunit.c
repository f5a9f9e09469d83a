// SPDX-License-Identifier: GPL-2.0
/*
 * model_kunit.c - the table against a dumb model
 *
 * A random walk does the same to the table and to a flat array of regions and
 * windows that knows no locks, no counts and no table, and compares: is it allowed,
 * and which bytes are there.  The seed is printed; the parameter "seed" repeats a
 * walk.
 */
#include <linux/moduleparam.h>
#include <linux/prandom.h>
#include <linux/random.h>

#include "mem_kunit.h"
#include "mw.h"

#define STEPS		(MEM_SLOW ? 20000 : 100000)
#define REGIONS		6
#define WINDOWS		6
#define QPS		4		/* two in each PD */
#define BYTES		512		/* of each region */
#define OLD_KEYS	64

static unsigned int seed;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "seed of the first walk, 0 for a random one");

/* --- the model ------------------------------------------------------------ */

struct model_mr {
	bool exists;
	bool valid;
	u32 key;
	int pd;
	int access;
	u64 iova;
	u64 length;
	u8 bytes[BYTES];
};

struct model_mw {
	bool exists;
	bool bound;
	bool used;
	int type;
	u32 key;
	int pd;
	int qp;			/* type 2: who bound it */
	int access;
	u64 iova;
	u64 length;
	int mr;
	u64 base;		/* in the region's bytes */
};

struct model {
	struct model_mr mr[REGIONS];
	struct model_mw mw[WINDOWS];
};

static int qp_pd(int qp)
{
	return qp / (QPS / 2);
}

static int model_find_mr(const struct model *mo, u32 key)
{
	int i;

	for (i = 0; i < REGIONS; i++)
		if (mo->mr[i].exists && mo->mr[i].key == key)
			return i;
	return -1;
}

static int model_find_mw(const struct model *mo, u32 key)
{
	int i;

	for (i = 0; i < WINDOWS; i++)
		if (mo->mw[i].exists && mo->mw[i].key == key)
			return i;
	return -1;
}

static bool model_busy(const struct model *mo, int mr)
{
	int i;

	for (i = 0; i < WINDOWS; i++)
		if (mo->mw[i].exists && mo->mw[i].bound && mo->mw[i].mr == mr)
			return true;
	return false;
}

/* Byte by byte, in 65 bits so to speak: is each one of them inside? */
static bool model_inside(u64 iova, u64 length, u64 addr, u64 bytes)
{
	u64 i;

	if (!bytes)
		return addr >= iova && addr - iova <= length;
	for (i = 0; i < bytes; i++) {
		if (i && addr + i == 0)
			return false;
		if (addr + i < iova || addr + i - iova >= length)
			return false;
	}
	return true;
}

/* The bytes that an access reaches, NULL if it must be refused. */
static u8 *model_access(struct model *mo, int qp, u32 key, int rights, u64 addr,
			u64 bytes)
{
	int mr = model_find_mr(mo, key), mw = model_find_mw(mo, key);
	int remote = rights & ALL_REMOTE;

	if (mr >= 0) {
		struct model_mr *r = &mo->mr[mr];

		if (!r->valid || r->pd != qp_pd(qp) ||
		    (r->access & rights) != rights ||
		    !model_inside(r->iova, r->length, addr, bytes))
			return NULL;
		return r->bytes + (addr - r->iova);
	}
	if (mw >= 0) {
		struct model_mw *w = &mo->mw[mw];

		if (!w->bound || w->pd != qp_pd(qp) || !remote ||
		    (w->type == 2 && w->qp != qp) ||
		    (w->access & remote) != remote ||
		    !model_inside(w->iova, w->length, addr, bytes))
			return NULL;
		return mo->mr[w->mr].bytes + w->base + (addr - w->iova);
	}
	return NULL;
}

static bool model_bind(struct model *mo, int qp, const struct mrsoft_bind *b)
{
	int mw = model_find_mw(mo, b->mw_key), mr = model_find_mr(mo, b->mr_key);
	int writes = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC;
	struct model_mw *w;
	struct model_mr *r;

	if (mw < 0)
		return false;
	w = &mo->mw[mw];
	if (w->pd != qp_pd(qp) || b->new_key / 256 != w->key / 256)
		return false;
	if (w->type == 2 && w->bound && (b->length || w->qp != qp))
		return false;
	if (!b->length) {
		w->bound = false;
		w->key = b->new_key;
		return true;
	}
	if (w->used && b->new_key == w->key)
		return false;
	if (w->type == 1 && b->access & IB_ZERO_BASED)
		return false;
	if (mr < 0)
		return false;
	r = &mo->mr[mr];
	if (!r->valid || r->pd != w->pd || !(r->access & IB_ACCESS_MW_BIND) ||
	    (b->access & writes && !(r->access & IB_ACCESS_LOCAL_WRITE)) ||
	    !model_inside(r->iova, r->length, b->addr, b->length))
		return false;
	w->bound = true;
	w->used = true;
	w->key = b->new_key;
	w->qp = qp;
	w->access = b->access;
	w->iova = b->access & IB_ZERO_BASED ? 0 : b->addr;
	w->length = b->length;
	w->mr = mr;
	w->base = b->addr - r->iova;
	return true;
}

static bool model_invalidate(struct model *mo, int qp, u32 key, bool remote)
{
	int mr = model_find_mr(mo, key), mw = model_find_mw(mo, key);

	if (mr >= 0) {
		struct model_mr *r = &mo->mr[mr];

		if (!r->valid || r->pd != qp_pd(qp) || model_busy(mo, mr) ||
		    (remote && !(r->access & ALL_REMOTE)))
			return false;
		r->valid = false;
		return true;
	}
	if (mw >= 0) {
		struct model_mw *w = &mo->mw[mw];

		if (w->type == 1 || !w->bound || w->qp != qp)
			return false;
		w->bound = false;
		return true;
	}
	return false;
}

/* --- the walk ------------------------------------------------------------- */

struct walk {
	struct kunit *test;
	struct mem *m;
	struct model model;
	struct rnd_state rnd;
	u8 *mem[REGIONS];
	struct mrsoft_mr *mr[REGIONS];
	struct mrsoft_mw mw[WINDOWS];
	struct mrsoft_mw_binder qp[QPS];
	u32 old[OLD_KEYS];	/* keys that were live once */
	u32 num_old;
	u32 allowed[2];		/* how often yes and no was the answer */
};

static u32 dice(struct walk *w, u32 sides)
{
	return prandom_u32_state(&w->rnd) % sides;
}

static void remember(struct walk *w, u32 key)
{
	w->old[w->num_old++ % OLD_KEYS] = key;
}

/* Mostly a key that means something, sometimes one that did, or never will. */
static u32 any_key(struct walk *w)
{
	u32 i;

	switch (dice(w, 16)) {
	case 0:
		return prandom_u32_state(&w->rnd);
	case 1 ... 2:
		return w->old[dice(w, OLD_KEYS)];
	case 3 ... 8:
		i = dice(w, REGIONS);
		return w->model.mr[i].key ^ (dice(w, 16) ? 0 : 1 << dice(w, 8));
	default:
		i = dice(w, WINDOWS);
		return w->model.mw[i].key ^ (dice(w, 16) ? 0 : 1 << dice(w, 8));
	}
}

/* Mostly one that may use @key. */
static int any_qp(struct walk *w, u32 key)
{
	int mr = model_find_mr(&w->model, key);
	int mw = model_find_mw(&w->model, key);

	if (!dice(w, 4))
		return dice(w, QPS);
	if (mr >= 0)
		return w->model.mr[mr].pd * QPS / 2 + dice(w, QPS / 2);
	if (mw >= 0 && w->model.mw[mw].bound && w->model.mw[mw].type == 2)
		return w->model.mw[mw].qp;
	if (mw >= 0)
		return w->model.mw[mw].pd * QPS / 2 + dice(w, QPS / 2);
	return dice(w, QPS);
}

static int any_rights(struct walk *w)
{
	static const int one[] = {
		0, IB_ACCESS_LOCAL_WRITE, IB_ACCESS_REMOTE_READ,
		IB_ACCESS_REMOTE_WRITE, IB_ACCESS_REMOTE_ATOMIC,
	};

	return one[dice(w, ARRAY_SIZE(one))];
}

static int any_access(struct walk *w)
{
	int access = prandom_u32_state(&w->rnd) & ALL_RIGHTS;

	if (dice(w, 2))
		access |= ALL_RIGHTS;
	if (access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC))
		access |= IB_ACCESS_LOCAL_WRITE;
	return access;
}

/* Near the edges of something that @key may mean. */
static void any_range(struct walk *w, u32 key, u64 *addr, u64 *length)
{
	int mr = model_find_mr(&w->model, key);
	int mw = model_find_mw(&w->model, key);
	u64 iova = 0, bytes = BYTES;

	if (mr >= 0) {
		iova = w->model.mr[mr].iova;
		bytes = w->model.mr[mr].length;
	} else if (mw >= 0) {
		iova = w->model.mw[mw].iova;
		bytes = w->model.mw[mw].length;
	}
	*addr = iova + dice(w, bytes + 3) - 1;
	*length = dice(w, bytes + 2);
	if (!dice(w, 2)) {
		*addr = iova + dice(w, 3) - 1;
		*length = bytes + dice(w, 3) - 1;
	}
	*length = min_t(u64, *length, BYTES);
}

/* Count the answer and compare: @real is a reason or errno, 0 is yes. */
static void compare(struct walk *w, const char *what, bool model, int real)
{
	w->allowed[model]++;
	KUNIT_ASSERT_EQ_MSG(w->test, !real, model, "%s: %d", what, real);
}

static void step_mr(struct walk *w)
{
	int i = dice(w, REGIONS), pd = dice(w, 2);
	struct model_mr *r = &w->model.mr[i];
	int ret;

	if (r->exists && dice(w, 4))
		return;
	if (r->exists) {
		ret = mrsoft_mr_dereg(w->mr[i]);
		compare(w, "dereg", !model_busy(&w->model, i), ret);
		KUNIT_ASSERT_TRUE(w->test, !ret || ret == -EBUSY);
		if (ret)
			return;
		remember(w, r->key);
		r->exists = false;
		return;
	}
	w->mr[i] = mrsoft_mr_alloc_fast(&w->m->table, &w->m->pd[pd], 2, false);
	KUNIT_ASSERT_FALSE(w->test, IS_ERR(w->mr[i]));
	r->exists = true;
	r->valid = false;
	r->key = w->mr[i]->key.key;
	r->pd = pd;
}

static void step_fast_reg(struct walk *w)
{
	static const u64 start[] = { 0, 1, 0x7f0012345000, -600ull };
	int i = dice(w, REGIONS), qp = any_qp(w, w->model.mr[i].key);
	struct model_mr *r = &w->model.mr[i];
	u64 iova = start[dice(w, ARRAY_SIZE(start))];
	u32 length = 1 + dice(w, BYTES), key;
	int access = any_access(w);
	enum mrsoft_reason reason;
	struct scatterlist sg;
	bool yes;

	if (!r->exists)
		return;
	/* not while valid: the bytes would be the next ones' */
	if (!r->valid) {
		mem_sg(&sg, w->mem[i], length);
		w->mr[i]->ib.page_size = 512 << dice(w, 4);
		KUNIT_ASSERT_EQ(w->test, mrsoft_mr_map_sg(w->mr[i], &sg, 1, NULL),
				1);
		w->mr[i]->ib.iova = iova;
	}
	key = (r->key & ~0xffu) | dice(w, 256);
	reason = mrsoft_mr_fast_reg(&w->m->table, w->qp[qp].pd, w->mr[i], key,
				    access);
	yes = !r->valid && r->pd == qp_pd(qp);
	compare(w, "fast reg", yes, reason);
	if (!yes)
		return;
	remember(w, r->key);
	r->valid = true;
	r->key = key;
	r->access = access;
	r->iova = iova;
	r->length = length;
}

static void step_mw(struct walk *w)
{
	int i = dice(w, WINDOWS), pd = dice(w, 2);
	struct model_mw *win = &w->model.mw[i];

	if (win->exists && dice(w, 4))
		return;
	if (win->exists) {
		mrsoft_mw_destroy(&w->mw[i]);
		remember(w, win->key);
		win->exists = false;
		return;
	}
	*win = (struct model_mw){ .exists = true, .type = 1 + dice(w, 2),
				  .pd = pd };
	KUNIT_ASSERT_EQ(w->test, mrsoft_mw_init(&w->m->table, &w->mw[i],
						&w->m->pd[pd],
						win->type == 1 ? IB_MW_TYPE_1 :
								 IB_MW_TYPE_2),
			0);
	win->key = w->mw[i].ib.rkey;
}

static void step_bind(struct walk *w)
{
	struct mrsoft_bind b = { .mw_key = any_key(w), .mr_key = any_key(w) };
	bool yes;
	int qp;

	/* more often than not two that could fit */
	if (dice(w, 4)) {
		b.mw_key = w->model.mw[dice(w, WINDOWS)].key;
		b.mr_key = w->model.mr[dice(w, REGIONS)].key;
	}
	qp = any_qp(w, b.mw_key);
	b.new_key = (b.mw_key & ~0xffu) | dice(w, 256);
	if (!dice(w, 32))
		b.new_key += 256;
	any_range(w, b.mr_key, &b.addr, &b.length);
	if (!dice(w, 8))
		b.length = 0;
	b.access = prandom_u32_state(&w->rnd) & ALL_REMOTE;
	if (!dice(w, 3))
		b.access |= IB_ZERO_BASED;

	yes = model_bind(&w->model, qp, &b);
	compare(w, "bind", yes, mrsoft_mw_bind(&w->m->table, &w->qp[qp], &b));
	if (yes)
		remember(w, b.mw_key);
}

static void step_invalidate(struct walk *w)
{
	bool remote = dice(w, 2);
	u32 key = any_key(w);
	int qp = any_qp(w, key);

	compare(w, "invalidate", model_invalidate(&w->model, qp, key, remote),
		mrsoft_key_invalidate(&w->m->table, &w->qp[qp], key, remote));
}

static void step_qp(struct walk *w)
{
	int qp = dice(w, QPS), i;
	struct model_mw *win;

	mrsoft_mw_binder_drain(&w->qp[qp]);
	for (i = 0; i < WINDOWS; i++) {
		win = &w->model.mw[i];
		if (win->exists && win->type == 2 && win->qp == qp)
			win->bound = false;
	}
}

static void step_access(struct walk *w)
{
	struct mrsoft_access req = {
		.key = any_key(w), .rights = any_rights(w),
	};
	int qp = any_qp(w, req.key);
	struct mrsoft_span span, mine;
	u8 buf[BYTES], *bytes;
	bool write;
	u32 i;

	any_range(w, req.key, &req.iova, &req.length);
	req.pd = w->qp[qp].pd;
	req.qpn = w->qp[qp].qpn;
	write = req.rights & (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);

	bytes = model_access(&w->model, qp, req.key, req.rights, req.iova,
			     req.length);
	compare(w, "access", bytes,
		mrsoft_key_access(&w->m->table, &req, &span));
	if (!bytes)
		return;
	KUNIT_ASSERT_EQ(w->test, span.length, req.length);
	mrsoft_span_kernel(&mine, buf, BYTES);
	for (i = 0; i < BYTES; i++)
		buf[i] = write ? prandom_u32_state(&w->rnd) : 0;
	if (write) {
		mrsoft_copy(&span, 0, &mine, 0, req.length);
		memcpy(bytes, buf, req.length);
	} else {
		mrsoft_copy(&mine, 0, &span, 0, req.length);
		KUNIT_EXPECT_EQ(w->test, memcmp(bytes, buf, req.length), 0);
	}
	mrsoft_span_put(&span);
}

static void step(struct walk *w)
{
	switch (dice(w, 32)) {
	case 0 ... 1:
		return step_mr(w);
	case 2 ... 4:
		return step_fast_reg(w);
	case 5:
		return step_mw(w);
	case 6 ... 11:
		return step_bind(w);
	case 12 ... 13:
		return step_invalidate(w);
	case 14:
		if (!dice(w, 8))
			step_qp(w);
		return;
	default:
		return step_access(w);
	}
}

/* The books, and every byte, as the model has them. */
static void audit(struct walk *w)
{
	int regions[2] = {}, mrs = 0, mws = 0, i;

	for (i = 0; i < REGIONS; i++) {
		KUNIT_ASSERT_EQ(w->test, memcmp(w->mem[i], w->model.mr[i].bytes,
						BYTES), 0);
		if (!w->model.mr[i].exists)
			continue;
		mrs++;
		regions[w->model.mr[i].pd]++;
		KUNIT_ASSERT_EQ(w->test, !!atomic_read(&w->mr[i]->key.owners),
				model_busy(&w->model, i));
	}
	for (i = 0; i < WINDOWS; i++) {
		if (!w->model.mw[i].exists)
			continue;
		mws++;
		regions[w->model.mw[i].pd]++;
	}
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(w->test, atomic_read(&w->m->pd[i].regions),
				regions[i]);
	KUNIT_ASSERT_EQ(w->test, atomic_read(&w->m->table.regions), mrs);
	KUNIT_ASSERT_EQ(w->test, atomic_read(&w->m->table.windows), mws);
}

static void walk_end(struct walk *w)
{
	int i;

	for (i = 0; i < WINDOWS; i++)
		if (w->model.mw[i].exists)
			mrsoft_mw_destroy(&w->mw[i]);
	for (i = 0; i < REGIONS; i++)
		if (w->model.mr[i].exists)
			KUNIT_EXPECT_EQ(w->test, mrsoft_mr_dereg(w->mr[i]), 0);
	for (i = 0; i < QPS; i++)
		KUNIT_EXPECT_TRUE(w->test, list_empty(&w->qp[i].windows));
	mem_check_empty(w->test, w->m);
}

static void walk(struct kunit *test)
{
	struct walk *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	u32 this = seed ? seed : get_random_u32();
	int i;

	KUNIT_ASSERT_NOT_NULL(test, w);
	kunit_info(test, "seed %u\n", this);
	prandom_seed_state(&w->rnd, this);
	w->test = test;
	w->m = mem_create(test);
	for (i = 0; i < REGIONS; i++) {
		w->mem[i] = kunit_kzalloc(test, BYTES, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, w->mem[i]);
		prandom_bytes_state(&w->rnd, w->mem[i], BYTES);
		memcpy(w->model.mr[i].bytes, w->mem[i], BYTES);
	}
	for (i = 0; i < QPS; i++)
		mrsoft_mw_binder_init(&w->qp[i], 200 + i, &w->m->pd[qp_pd(i)]);
	for (i = 0; i < STEPS; i++) {
		step(w);
		if (!(i % 64))
			audit(w);
		cond_resched();
	}
	walk_end(w);
	kunit_info(test, "%u times yes, %u times no\n", w->allowed[1],
		   w->allowed[0]);
	/* a walk in which all is refused shows nothing */
	KUNIT_EXPECT_GT(test, w->allowed[1], STEPS / 20u);
	KUNIT_EXPECT_GT(test, w->allowed[0], STEPS / 20u);
}

static struct kunit_case model_cases[] = {
	KUNIT_CASE(walk),
	{}
};

static struct kunit_suite model_suite = {
	.name = "mrsoft_model",
	.test_cases = model_cases,
};

kunit_test_suite(model_suite);

MODULE_DESCRIPTION("KUnit random walk over mrsoft's regions and windows");
MODULE_LICENSE("GPL");
