// SPDX-License-Identifier: GPL-2.0
/*
 * mr_kunit.c - the check, keys, regions: register, re-register, deregister, fast
 *              registration, and what each must wait for
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/random.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "limits.h"
#include "mem_kunit.h"
#include "demand.h"

#define IOVA	0x7f0000001000ull

static int mr_init(struct kunit *test)
{
	test->priv = mem_create(test);
	return 0;
}

static void mr_exit(struct kunit *test)
{
	if (test->priv)
		mem_check_empty(test, test->priv);
}

static void *mem_alloc(struct kunit *test, size_t bytes)
{
	void *mem = kunit_kzalloc(test, bytes, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mem);
	return mem;
}

/* --- the check ------------------------------------------------------------ */

struct edge {
	const char *name;
	u64 iova;
	u64 length;
	u64 addr;
	u64 bytes;
	bool allowed;
};

/* The rows of style.md first. */
static const struct edge edges[] = {
	{ "first byte", 0x1000, 0x2000, 0x1000, 1, true },
	{ "whole MR", 0x1000, 0x2000, 0x1000, 0x2000, true },
	{ "one past", 0x1000, 0x2000, 0x1001, 0x2000, false },
	{ "one below", 0x1000, 0x2000, 0xfff, 1, false },
	{ "at end, empty", 0x1000, 0x2000, 0x3000, 0, true },
	{ "address wraps", 0x1000, 0x2000, U64_MAX, 2, false },
	{ "address wraps, zero-based MR", 0, 0x2000, U64_MAX, 2, false },
	{ "address wraps by a page", 0x1000, 0x2000, -0x1000ull, 0x1fff, false },
	{ "2^31 into a small MR", 0, 0x1000, 0, 1ull << 31, false },
	{ "2^31 into an 8 GiB MR", 0, 1ull << 33, 0, 1ull << 31, true },
	{ "last byte", 0x1000, 0x2000, 0x2fff, 1, true },
	{ "behind the end, empty", 0x1000, 0x2000, 0x3001, 0, false },
	{ "below, empty", 0x1000, 0x2000, 0xfff, 0, false },
	{ "length wraps to the start", 0x1000, 0x2000, 0x1001, U64_MAX, false },
	{ "everything", 0x1000, 0x2000, 0, U64_MAX, false },
	{ "MR at the top, last byte", -0x2000ull, 0x2000, U64_MAX, 1, true },
	{ "MR at the top, whole", -0x2000ull, 0x2000, -0x2000ull, 0x2000, true },
	{ "MR at the top, wraps", -0x2000ull, 0x2000, -0x1000ull, 0x1001, false },
	{ "MR at the top, at 0", -0x2000ull, 0x2000, 0, 1, false },
	{ "all of memory", 0, U64_MAX, U64_MAX - 1, 1, true },
};

KUNIT_ARRAY_PARAM_DESC(edges, edges, name);

static void edge(struct kunit *test)
{
	const struct edge *e = test->param_value;
	struct mem *m = test->priv;
	struct mrsoft_mr *mr = mem_bare_region(test, m, 0, e->iova, e->length,
					       ALL_RIGHTS);
	static const int rights[] = {
		0, IB_ACCESS_LOCAL_WRITE, IB_ACCESS_REMOTE_READ,
		IB_ACCESS_REMOTE_WRITE, IB_ACCESS_REMOTE_ATOMIC,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(rights); i++)
		KUNIT_EXPECT_EQ(test,
				mem_try(m, 0, 17, mr->key.key, rights[i],
					e->addr, e->bytes),
				e->allowed ? MRSOFT_R_NONE : MRSOFT_R_OUTSIDE);
	KUNIT_EXPECT_EQ(test, mem_refusals(m, MRSOFT_R_OUTSIDE),
			e->allowed ? 0 : i);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(mr), 0);
}

struct right {
	const char *name;
	int have;
	int want;
	enum mrsoft_reason reason;
};

static const struct right rights[] = {
	{ "local read needs nothing", 0, 0, MRSOFT_R_NONE },
	{ "local write", IB_ACCESS_LOCAL_WRITE, IB_ACCESS_LOCAL_WRITE, MRSOFT_R_NONE },
	{ "local write, read only", IB_ACCESS_REMOTE_READ, IB_ACCESS_LOCAL_WRITE,
	  MRSOFT_R_NO_LOCAL_WRITE },
	{ "remote read", IB_ACCESS_REMOTE_READ, IB_ACCESS_REMOTE_READ, MRSOFT_R_NONE },
	{ "remote read, none", IB_ACCESS_LOCAL_WRITE, IB_ACCESS_REMOTE_READ,
	  MRSOFT_R_NO_REMOTE_READ },
	{ "remote write", IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	  IB_ACCESS_REMOTE_WRITE, MRSOFT_R_NONE },
	{ "remote write, all but", ALL_RIGHTS & ~IB_ACCESS_REMOTE_WRITE,
	  IB_ACCESS_REMOTE_WRITE, MRSOFT_R_NO_REMOTE_WRITE },
	{ "remote atomic", IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_ATOMIC,
	  IB_ACCESS_REMOTE_ATOMIC, MRSOFT_R_NONE },
	{ "remote atomic, all but", ALL_RIGHTS & ~IB_ACCESS_REMOTE_ATOMIC,
	  IB_ACCESS_REMOTE_ATOMIC, MRSOFT_R_NO_REMOTE_ATOMIC },
	{ "flush", IB_ACCESS_FLUSH_GLOBAL, IB_ACCESS_FLUSH_GLOBAL, MRSOFT_R_NONE },
	{ "flush, all but", ALL_RIGHTS & ~IB_ACCESS_FLUSH_GLOBAL,
	  IB_ACCESS_FLUSH_GLOBAL, MRSOFT_R_NO_REMOTE_FLUSH },
	{ "persistent, only global", IB_ACCESS_FLUSH_GLOBAL,
	  IB_ACCESS_FLUSH_PERSISTENT, MRSOFT_R_NO_REMOTE_FLUSH },
	{ "both, only global", IB_ACCESS_FLUSH_GLOBAL,
	  IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_FLUSH_PERSISTENT,
	  MRSOFT_R_NO_REMOTE_FLUSH },
	{ "read and write, only read", IB_ACCESS_REMOTE_READ,
	  IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE, MRSOFT_R_NO_REMOTE_WRITE },
};

KUNIT_ARRAY_PARAM_DESC(rights, rights, name);

static void right(struct kunit *test)
{
	const struct right *r = test->param_value;
	struct mem *m = test->priv;
	struct mrsoft_mr *mr = mem_bare_region(test, m, 0, IOVA, 64, r->have);

	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, mr->key.key, r->want, IOVA, 64),
			r->reason);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(mr), 0);
}

/* All that the key names: any address, but the other checks hold. */
static void whole_region(struct kunit *test)
{
	struct mem *m = test->priv;
	struct mrsoft_mr *mr = mem_bare_region(test, m, 0, IOVA, 64,
					       IB_ACCESS_FLUSH_GLOBAL);
	struct mrsoft_access req = {
		.pd = &m->pd[0], .key = mr->key.key,
		.rights = IB_ACCESS_FLUSH_GLOBAL, .iova = IOVA - 4096,
		.length = U32_MAX, .whole = true,
	};

	KUNIT_EXPECT_EQ(test, mrsoft_key_probe(&m->table, &req), MRSOFT_R_NONE);
	req.rights |= IB_ACCESS_FLUSH_PERSISTENT;
	KUNIT_EXPECT_EQ(test, mrsoft_key_probe(&m->table, &req),
			MRSOFT_R_NO_REMOTE_FLUSH);
	req.rights = IB_ACCESS_FLUSH_GLOBAL;
	req.pd = &m->pd[1];
	KUNIT_EXPECT_EQ(test, mrsoft_key_probe(&m->table, &req),
			MRSOFT_R_WRONG_PD);
	req.pd = &m->pd[0];
	req.key ^= 1;
	KUNIT_EXPECT_EQ(test, mrsoft_key_probe(&m->table, &req),
			MRSOFT_R_KEY_STALE);
	req.key ^= 1;
	req.whole = false;
	KUNIT_EXPECT_EQ(test, mrsoft_key_probe(&m->table, &req),
			MRSOFT_R_OUTSIDE);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->key.holds), 0);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(mr), 0);
}

static void wrong_keys(struct kunit *test)
{
	struct mem *m = test->priv;
	struct mrsoft_mr *mr = mem_bare_region(test, m, 0, IOVA, 64, ALL_RIGHTS);
	u32 key = mr->key.key;
	struct mrsoft_span span = { .length = 5 };
	struct mrsoft_access req = {
		.pd = &m->pd[0], .key = key ^ 1, .iova = IOVA, .length = 1,
	};

	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, key, 0, IOVA, 1), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, mem_try(m, 1, 0, key, 0, IOVA, 1),
			MRSOFT_R_WRONG_PD);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, key ^ 0x80, 0, IOVA, 1),
			MRSOFT_R_KEY_STALE);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, key + 0x100, 0, IOVA, 1),
			MRSOFT_R_KEY_UNKNOWN);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, key - 0x100, 0, IOVA, 1),
			MRSOFT_R_KEY_UNKNOWN);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, 0, 0, IOVA, 1),
			MRSOFT_R_KEY_UNKNOWN);

	/* a refusal holds nothing and leaves no span */
	KUNIT_EXPECT_EQ(test, mrsoft_key_access(&m->table, &req, &span),
			MRSOFT_R_KEY_STALE);
	KUNIT_EXPECT_EQ(test, span.length, 0ull);
	KUNIT_EXPECT_NULL(test, span.key);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->key.holds), 0);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(mr), 0);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, key, 0, IOVA, 1),
			MRSOFT_R_KEY_STALE);
}

/* --- keys ----------------------------------------------------------------- */

#define CYCLES	(MEM_SLOW ? 2048u : 65536u)

static void key_not_reused(struct kunit *test)
{
	unsigned long *seen = vzalloc(BITS_TO_LONGS(MRSOFT_KEY_INDEX_MAX + 1) *
				      sizeof(long));
	struct mem *m = test->priv;
	struct mrsoft_mr *mr;
	u32 i, again = 0;

	KUNIT_ASSERT_NOT_NULL(test, seen);
	for (i = 0; i < CYCLES; i++) {
		mr = mrsoft_mr_alloc_fast(&m->table, &m->pd[0], 1, false);
		if (IS_ERR(mr))
			break;
		again += test_and_set_bit(mr->key.key >> 8, seen);
		again += test_bit(0, seen);
		if (mrsoft_mr_dereg(mr))
			break;
		cond_resched();
	}
	vfree(seen);
	KUNIT_EXPECT_EQ(test, i, CYCLES);
	KUNIT_EXPECT_EQ(test, again, 0u);
}

/* Once round through the whole space: the index comes back, the key does not. */
static void key_wraps(struct kunit *test)
{
	struct mem *m = test->priv;
	struct mrsoft_mr *a, *b, *c;
	u32 key, next;

	m->table.next = MRSOFT_KEY_INDEX_MAX;
	a = mem_bare_region(test, m, 0, IOVA, 64, ALL_RIGHTS);
	key = a->key.key;
	KUNIT_EXPECT_EQ(test, key >> 8, MRSOFT_KEY_INDEX_MAX);
	next = m->table.next;
	b = mem_bare_region(test, m, 0, IOVA, 64, ALL_RIGHTS);
	KUNIT_EXPECT_EQ(test, b->key.key >> 8, MRSOFT_KEY_INDEX_MIN);
	KUNIT_EXPECT_GT(test, next, MRSOFT_KEY_INDEX_MAX);

	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(a), 0);
	m->table.next = MRSOFT_KEY_INDEX_MAX;
	c = mem_bare_region(test, m, 0, IOVA, 64, ALL_RIGHTS);
	KUNIT_EXPECT_EQ(test, c->key.key >> 8, MRSOFT_KEY_INDEX_MAX);
	KUNIT_EXPECT_NE(test, c->key.key, key);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, key, 0, IOVA, 1),
			MRSOFT_R_KEY_STALE);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(b), 0);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(c), 0);
}

static void limits(struct kunit *test)
{
	struct mem *m = test->priv;
	struct mrsoft_mr *mr;

	KUNIT_EXPECT_EQ(test, PTR_ERR(mrsoft_mr_alloc_fast(&m->table, &m->pd[0],
							   0, false)), -EINVAL);
	mr = mrsoft_mr_alloc_fast(&m->table, &m->pd[0],
				  MRSOFT_MAX_FAST_REG_PAGES + 1, false);
	KUNIT_EXPECT_EQ(test, PTR_ERR(mr), -EINVAL);

	/* the last one of the device; one more leaves nothing behind */
	atomic_set(&m->table.regions, MRSOFT_MAX_MR - 1);
	mr = mrsoft_mr_alloc_fast(&m->table, &m->pd[0],
				  MRSOFT_MAX_FAST_REG_PAGES, false);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_EXPECT_EQ(test, PTR_ERR(mrsoft_mr_alloc_fast(&m->table, &m->pd[0],
							   1, false)), -ENOMEM);
	KUNIT_EXPECT_EQ(test, PTR_ERR(mrsoft_mr_get_dma(&m->table, &m->pd[0],
							0)), -ENOMEM);
	KUNIT_EXPECT_EQ(test, atomic_read(&m->pd[0].regions), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&m->table.regions), MRSOFT_MAX_MR);
	atomic_set(&m->table.regions, 1);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(mr), 0);
}

/* --- DMA regions ---------------------------------------------------------- */

static void dma_region(struct kunit *test)
{
	struct mem *m = test->priv;
	struct mrsoft_mr *mr = mrsoft_mr_get_dma(&m->table, &m->pd[0],
						 IB_ACCESS_LOCAL_WRITE);
	u8 *mem = mem_alloc(test, 3 * PAGE_SIZE), *buf = mem_alloc(test, 9000);
	u32 key;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	key = mr->ib.lkey;
	KUNIT_EXPECT_EQ(test, mr->ib.rkey, key);
	KUNIT_EXPECT_EQ(test, mr->ib.length, U64_MAX);
	memset(buf, 0x5a, 9000);
	KUNIT_EXPECT_EQ(test, mem_rw(m, 0, 0, key, IB_ACCESS_LOCAL_WRITE,
				     (uintptr_t)mem + 5, buf, 9000, true),
			MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, mem[4], 0);
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(mem + 5, 0x5a, 9000), NULL);
	KUNIT_EXPECT_EQ(test, mem[9005], 0);

	/* a user's QP is in another PD; a peer has no right */
	KUNIT_EXPECT_EQ(test, mem_try(m, 1, 0, key, 0, (uintptr_t)mem, 8),
			MRSOFT_R_WRONG_PD);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, key, IB_ACCESS_REMOTE_READ,
				      (uintptr_t)mem, 8),
			MRSOFT_R_NO_REMOTE_READ);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_invalidate(&mr->key, &m->pd[0], key,
						   false), MRSOFT_R_KEY_KIND);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_fast_reg(&m->table, &m->pd[0], mr, key,
						 0), MRSOFT_R_KEY_KIND);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_rereg(mr, IB_MR_REREG_ACCESS, 0, 0, 0,
					      0, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(mr), 0);
}

/* --- user regions --------------------------------------------------------- */

struct access_row {
	const char *name;
	int access;
	int err;
};

static const struct access_row access_rows[] = {
	{ "remote write without local write", IB_ACCESS_REMOTE_WRITE, -EINVAL },
	{ "atomic without local write", IB_ACCESS_REMOTE_ATOMIC, -EINVAL },
	{ "on demand", IB_ACCESS_ON_DEMAND, MRSOFT_ODP ? 0 : -EOPNOTSUPP },
	{ "flush", IB_ACCESS_FLUSH_GLOBAL,
	  IB_DEVICE_FLUSH_GLOBAL ? 0 : -EOPNOTSUPP },
	{ "persistent flush", IB_ACCESS_FLUSH_PERSISTENT, -EOPNOTSUPP },
	{ "unknown bit", 1 << 15, -EOPNOTSUPP },
	{ "optional bits", IB_ACCESS_OPTIONAL, 0 },
	{ "huge pages", IB_ACCESS_HUGETLB, 0 },
	{ "all", ALL_RIGHTS, 0 },
};

KUNIT_ARRAY_PARAM_DESC(access_rows, access_rows, name);

static unsigned long user_map(struct kunit *test, u32 pages)
{
	unsigned long at = kunit_vm_mmap(test, NULL, 0, pages * PAGE_SIZE,
					 PROT_READ | PROT_WRITE,
					 MAP_ANONYMOUS | MAP_PRIVATE, 0);

	KUNIT_ASSERT_NE(test, at, 0ul);
	KUNIT_ASSERT_LT(test, at, (unsigned long)TASK_SIZE);
	return at;
}

static void user_access(struct kunit *test)
{
	const struct access_row *row = test->param_value;
	unsigned long at = user_map(test, 1);
	struct mem *m = test->priv;
	struct mrsoft_mr *mr;

	mr = mrsoft_mr_reg_user(&m->table, &m->pd[0], at, 100, at, row->access);
	if (row->err) {
		KUNIT_ASSERT_TRUE(test, IS_ERR(mr));
		KUNIT_EXPECT_EQ(test, PTR_ERR(mr), row->err);
		return;
	}
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_EXPECT_EQ(test, mr->key.access,
			row->access & (ALL_RIGHTS | IB_ACCESS_ON_DEMAND));
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(mr), 0);
}

static void user_ranges(struct kunit *test)
{
	unsigned long at = user_map(test, 2);
	struct mem *m = test->priv;
	struct {
		u64 start, length, iova;
		int err;
	} row[] = {
		{ at, 0, at, -EINVAL },
		{ at, MRSOFT_MAX_MR_SIZE + 1, at, -EINVAL },
		{ at, 4096, U64_MAX - 4094, -EINVAL },
		{ at, U64_MAX, 0, -EINVAL },
		{ PAGE_SIZE, 1, 0, -EFAULT },
		{ at + PAGE_SIZE, 64 * PAGE_SIZE, 0, -EFAULT },
		{ -PAGE_SIZE, PAGE_SIZE, 0, -EINVAL },
	};
	s64 pinned = atomic64_read(&current->mm->pinned_vm);
	struct mrsoft_mr *mr;
	int i;

	for (i = 0; i < ARRAY_SIZE(row); i++) {
		mr = mrsoft_mr_reg_user(&m->table, &m->pd[0], row[i].start,
					row[i].length, row[i].iova, 0);
		KUNIT_EXPECT_EQ_MSG(test, PTR_ERR(mr), row[i].err, "row %d", i);
	}
	/* the highest iova that a region can have */
	mr = mrsoft_mr_reg_user(&m->table, &m->pd[0], at, 4096, U64_MAX - 4095,
				0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, mr->ib.lkey, 0, U64_MAX, 1),
			MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(mr), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&current->mm->pinned_vm), pinned);
}

/* Unaligned, over several pages, at an iova that is unlike the address. */
static void user_bytes(struct kunit *test)
{
	const u32 skip = 123, length = 3 * PAGE_SIZE + 77;
	unsigned long at = user_map(test, 5) + skip;
	u8 *buf = mem_alloc(test, length), *got = mem_alloc(test, length);
	s64 pinned = atomic64_read(&current->mm->pinned_vm);
	struct mem *m = test->priv;
	u64 iova = IOVA + 5;
	struct mrsoft_mr *mr;
	u32 i, key;

	for (i = 0; i < length; i++)
		buf[i] = i * 5 + (i >> 8);
	mr = mrsoft_mr_reg_user(&m->table, &m->pd[0], at, length, iova,
				ALL_RIGHTS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	key = mr->ib.rkey;
	KUNIT_EXPECT_EQ(test, mr->ib.lkey, key);
	KUNIT_EXPECT_EQ(test, mr->ib.iova, iova);
	KUNIT_EXPECT_EQ(test, mr->ib.length, (u64)length);
	KUNIT_EXPECT_EQ(test, mr->ib.page_size, (unsigned int)PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, atomic_read(&m->pd[0].regions), 1);
	KUNIT_EXPECT_EQ(test, atomic64_read(&current->mm->pinned_vm),
			pinned + 4);

	KUNIT_ASSERT_EQ(test, copy_to_user((void __user *)at, buf, length), 0);
	KUNIT_EXPECT_EQ(test, mem_rw(m, 0, 3, key, 0, iova, got, length, false),
			MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, memcmp(got, buf, length), 0);
	for (i = 0; i < length; i++)
		buf[i] ^= 0xa5;
	KUNIT_EXPECT_EQ(test, mem_rw(m, 0, 3, key, IB_ACCESS_REMOTE_WRITE, iova,
				     buf, length, true), MRSOFT_R_NONE);
	KUNIT_ASSERT_EQ(test, copy_from_user(got, (void __user *)at, length), 0);
	KUNIT_EXPECT_EQ(test, memcmp(got, buf, length), 0);

	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(mr), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&current->mm->pinned_vm), pinned);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 3, key, 0, iova, 1),
			MRSOFT_R_KEY_STALE);
}

static void user_zero_based(struct kunit *test)
{
	unsigned long at = user_map(test, 1);
	struct mem *m = test->priv;
	struct mrsoft_mr *mr;
	u8 byte = 7;

	mr = mrsoft_mr_reg_user(&m->table, &m->pd[0], at, 100, IOVA,
				IB_ZERO_BASED | IB_ACCESS_LOCAL_WRITE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_EXPECT_EQ(test, mr->ib.iova, 0ull);
	KUNIT_EXPECT_EQ(test, mem_rw(m, 0, 0, mr->ib.lkey, IB_ACCESS_LOCAL_WRITE,
				     99, &byte, 1, true), MRSOFT_R_NONE);
	byte = 0;
	KUNIT_EXPECT_EQ(test, copy_from_user(&byte, (void __user *)at + 99, 1),
			0ul);
	KUNIT_EXPECT_EQ(test, byte, 7);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, mr->ib.lkey, 0, IOVA, 1),
			MRSOFT_R_OUTSIDE);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(mr), 0);
}

/* --- re-registration ------------------------------------------------------ */

static u8 user_byte(struct kunit *test, unsigned long at)
{
	u8 byte;

	KUNIT_EXPECT_EQ(test, copy_from_user(&byte, (void __user *)at, 1), 0ul);
	return byte;
}

static void rereg_translation(struct kunit *test)
{
	unsigned long one = user_map(test, 2), two = user_map(test, 4);
	s64 pinned = atomic64_read(&current->mm->pinned_vm);
	struct mem *m = test->priv;
	struct mrsoft_mr *mr;
	u8 byte = 1;
	u32 key;

	mr = mrsoft_mr_reg_user(&m->table, &m->pd[0], one, 5000, one,
				ALL_RIGHTS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	key = mr->ib.rkey;

	KUNIT_EXPECT_EQ(test, mrsoft_mr_rereg(mr, IB_MR_REREG_TRANS, two + 8,
					      12000, IOVA, 0, NULL), 0);
	KUNIT_EXPECT_EQ(test, mr->ib.rkey, key);
	KUNIT_EXPECT_EQ(test, mr->ib.iova, IOVA);
	KUNIT_EXPECT_EQ(test, mr->ib.length, 12000ull);
	KUNIT_EXPECT_EQ(test, atomic64_read(&current->mm->pinned_vm),
			pinned + 3);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, key, 0, one, 1),
			MRSOFT_R_OUTSIDE);
	KUNIT_EXPECT_EQ(test, mem_rw(m, 0, 0, key, IB_ACCESS_REMOTE_WRITE,
				     IOVA + 11999, &byte, 1, true),
			MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, user_byte(test, two + 8 + 11999), 1);

	/* failures: everything as before */
	KUNIT_EXPECT_EQ(test, mrsoft_mr_rereg(mr, IB_MR_REREG_TRANS, PAGE_SIZE,
					      100, 0, 0, NULL), -EFAULT);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_rereg(mr, IB_MR_REREG_TRANS, one, 0, 0,
					      0, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_rereg(mr, 0, one, 100, 0, 0, NULL),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_rereg(mr, 1 << 7, one, 100, 0, 0, NULL),
			-EOPNOTSUPP);
	byte = 2;
	KUNIT_EXPECT_EQ(test, mem_rw(m, 0, 0, key, IB_ACCESS_REMOTE_WRITE, IOVA,
				     &byte, 1, true), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, user_byte(test, two + 8), 2);
	KUNIT_EXPECT_EQ(test, atomic64_read(&current->mm->pinned_vm),
			pinned + 3);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(mr), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&current->mm->pinned_vm), pinned);
}

static void rereg_pd_and_access(struct kunit *test)
{
	unsigned long at = user_map(test, 1), other = user_map(test, 1);
	struct mem *m = test->priv;
	struct mrsoft_mr *mr;
	u32 key;

	mr = mrsoft_mr_reg_user(&m->table, &m->pd[0], at, 100, at,
				IB_ACCESS_LOCAL_WRITE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	key = mr->ib.rkey;
	KUNIT_EXPECT_EQ(test, mrsoft_mr_rereg(mr, IB_MR_REREG_PD, 0, 0, 0, 0,
					      &m->pd[1]), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&m->pd[0].regions), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&m->pd[1].regions), 1);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, key, 0, at, 1),
			MRSOFT_R_WRONG_PD);
	KUNIT_EXPECT_EQ(test, mem_try(m, 1, 0, key, 0, at, 1), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, mem_try(m, 1, 0, key, IB_ACCESS_REMOTE_READ, at,
				      1), MRSOFT_R_NO_REMOTE_READ);

	KUNIT_EXPECT_EQ(test, mrsoft_mr_rereg(mr, IB_MR_REREG_ACCESS, 0, 0, 0,
					      IB_ACCESS_REMOTE_READ, NULL), 0);
	KUNIT_EXPECT_EQ(test, mem_try(m, 1, 0, key, IB_ACCESS_REMOTE_READ, at,
				      1), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, mem_try(m, 1, 0, key, IB_ACCESS_LOCAL_WRITE, at,
				      1), MRSOFT_R_NO_LOCAL_WRITE);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_rereg(mr, IB_MR_REREG_ACCESS, 0, 0, 0,
					      IB_ACCESS_REMOTE_WRITE, NULL),
			-EINVAL);

	/* all three at once */
	KUNIT_EXPECT_EQ(test, mrsoft_mr_rereg(mr, IB_MR_REREG_SUPPORTED, other,
					      50, IOVA, ALL_RIGHTS, &m->pd[0]),
			0);
	KUNIT_EXPECT_EQ(test, atomic_read(&m->pd[1].regions), 0);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, key, IB_ACCESS_REMOTE_WRITE,
				      IOVA, 50), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, key, IB_ACCESS_REMOTE_WRITE,
				      IOVA, 51), MRSOFT_R_OUTSIDE);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(mr), 0);
}

/* Pages pinned for reading are pinned again before anybody may write them. */
static void rereg_gains_write(struct kunit *test)
{
	unsigned long at = user_map(test, 1);
	s64 pinned = atomic64_read(&current->mm->pinned_vm);
	struct mem *m = test->priv;
	struct mrsoft_mr *mr;
	u8 byte = 9;
	u32 key;

	mr = mrsoft_mr_reg_user(&m->table, &m->pd[0], at, 100, IOVA,
				IB_ACCESS_REMOTE_READ);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	key = mr->ib.rkey;
	KUNIT_EXPECT_FALSE(test, mrsoft_pages_writable(mr->key.pages));
	KUNIT_EXPECT_EQ(test, mrsoft_mr_rereg(mr, IB_MR_REREG_ACCESS, 0, 0, 0,
					      IB_ACCESS_LOCAL_WRITE, NULL), 0);
	KUNIT_EXPECT_TRUE(test, mrsoft_pages_writable(mr->key.pages));
	KUNIT_EXPECT_EQ(test, mr->ib.iova, IOVA);
	KUNIT_EXPECT_EQ(test, mem_rw(m, 0, 0, key, IB_ACCESS_LOCAL_WRITE,
				     IOVA + 99, &byte, 1, true), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, user_byte(test, at + 99), 9);
	KUNIT_EXPECT_EQ(test, atomic64_read(&current->mm->pinned_vm),
			pinned + 1);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(mr), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&current->mm->pinned_vm), pinned);
}

/* --- busy ----------------------------------------------------------------- */

/* All but the lock, which a debugging kernel writes to. */
static bool same_state(const struct mrsoft_key *a, const struct mrsoft_key *b)
{
	return a->key == b->key && a->kind == b->kind && a->pd == b->pd &&
	       atomic_read(&a->holds) == atomic_read(&b->holds) &&
	       atomic_read(&a->owners) == atomic_read(&b->owners) &&
	       refcount_read(&a->users) == refcount_read(&b->users) &&
	       a->published == b->published && a->dead == b->dead &&
	       a->access == b->access && a->iova == b->iova &&
	       a->length == b->length && a->pages == b->pages &&
	       a->base == b->base;
}

/* With an owner dereg, rereg and invalidate refuse and change nothing. */
static void busy_changes_nothing(struct kunit *test)
{
	unsigned long at = user_map(test, 1), other = user_map(test, 1);
	u8 *mem = mem_alloc(test, PAGE_SIZE);
	struct mem *m = test->priv;
	struct mrsoft_mr *mr, *fast, *twin;
	struct mrsoft_key before;
	int i;

	mr = mrsoft_mr_reg_user(&m->table, &m->pd[0], at, 100, at, ALL_RIGHTS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	fast = mem_region(test, m, 0, mem, 100, IOVA, ALL_RIGHTS);
	KUNIT_ASSERT_TRUE(test, mrsoft_key_owner_get(&mr->key));
	KUNIT_ASSERT_TRUE(test, mrsoft_key_owner_get(&fast->key));
	for (i = 0, twin = mr; i < 2; i++, twin = fast) {
		before = twin->key;
		KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(twin), -EBUSY);
		KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(twin), -EBUSY);
		KUNIT_EXPECT_TRUE(test, same_state(&before, &twin->key));
	}
	before = mr->key;
	KUNIT_EXPECT_EQ(test, mrsoft_mr_rereg(mr, IB_MR_REREG_SUPPORTED, other,
					      50, IOVA, 0, &m->pd[1]), -EBUSY);
	KUNIT_EXPECT_TRUE(test, same_state(&before, &mr->key));
	before = fast->key;
	KUNIT_EXPECT_EQ(test, mrsoft_mr_invalidate(&fast->key, &m->pd[0],
						   fast->key.key, false),
			MRSOFT_R_MR_BUSY);
	KUNIT_EXPECT_TRUE(test, same_state(&before, &fast->key));
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, mr->ib.lkey, 0, at, 100),
			MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, fast->ib.lkey, 0, IOVA, 100),
			MRSOFT_R_NONE);

	mrsoft_key_owner_put(&mr->key);
	mrsoft_key_owner_put(&fast->key);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(mr), 0);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(fast), 0);
}

/* --- fast registration ---------------------------------------------------- */

static void fast_life(struct kunit *test)
{
	u8 *one = mem_alloc(test, 2 * PAGE_SIZE);
	u8 *two = mem_alloc(test, 2 * PAGE_SIZE);
	struct mem *m = test->priv;
	struct mrsoft_mr *mr = mrsoft_mr_alloc_fast(&m->table, &m->pd[0], 8, false);
	u32 key, next;
	u8 byte;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	memset(one, 1, 2 * PAGE_SIZE);
	memset(two, 2, 2 * PAGE_SIZE);
	key = mr->ib.rkey;
	next = (key & ~0xffu) | (u8)(key + 1);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, key, 0, 0, 0),
			MRSOFT_R_KEY_INVALID);

	/* B30: the ULP's key is the live one only when the WR executes */
	mr->ib.lkey = next;
	mr->ib.rkey = next;
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, next, 0, 0, 0),
			MRSOFT_R_KEY_STALE);
	KUNIT_ASSERT_EQ(test, mem_fast_reg(m, mr, one, 5000, IOVA, next,
					   ALL_RIGHTS), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, mr->ib.rkey, next);
	KUNIT_EXPECT_EQ(test, mr->ib.iova, IOVA);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, key, 0, IOVA, 1),
			MRSOFT_R_KEY_STALE);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, next, 0, IOVA, 5000),
			MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, next, 0, IOVA, 5001),
			MRSOFT_R_OUTSIDE);

	/* valid already; and a map now does not alter what the key shows, B33 */
	KUNIT_EXPECT_EQ(test, mem_fast_reg(m, mr, two, 9, IOVA, key, 0),
			MRSOFT_R_KEY_INVALID);
	KUNIT_EXPECT_EQ(test, mem_rw(m, 0, 0, next, 0, IOVA + 4999, &byte, 1,
				     false), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, byte, 1);

	/* B31, B38: only the live key invalidates, once */
	KUNIT_EXPECT_EQ(test, mrsoft_mr_invalidate(&mr->key, &m->pd[0], key,
						   false), MRSOFT_R_KEY_STALE);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_invalidate(&mr->key, &m->pd[1], next,
						   false), MRSOFT_R_WRONG_PD);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, next, 0, IOVA, 5000),
			MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_invalidate(&mr->key, &m->pd[0], next,
						   true), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_invalidate(&mr->key, &m->pd[0], next,
						   false), MRSOFT_R_KEY_INVALID);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, next, 0, IOVA, 1),
			MRSOFT_R_KEY_INVALID);

	/* the map from above becomes live now */
	mr->ib.iova = IOVA;
	KUNIT_EXPECT_EQ(test, mrsoft_mr_fast_reg(&m->table, &m->pd[0], mr, key,
						 0), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, mem_rw(m, 0, 0, key, 0, IOVA + 8, &byte, 1,
				     false), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, byte, 2);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, key, 0, IOVA, 10),
			MRSOFT_R_OUTSIDE);

	/* B31: without remote rights a peer cannot invalidate it, the owner can */
	KUNIT_EXPECT_EQ(test, mrsoft_mr_invalidate(&mr->key, &m->pd[0], key,
						   true), MRSOFT_R_KEY_KIND);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_invalidate(&mr->key, &m->pd[0], key,
						   false), MRSOFT_R_NONE);

	/* B33: no new map, the old mapping */
	KUNIT_EXPECT_EQ(test, mrsoft_mr_fast_reg(&m->table, &m->pd[0], mr, next,
						 IB_ACCESS_REMOTE_READ),
			MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, mem_rw(m, 0, 0, next, IB_ACCESS_REMOTE_READ,
				     IOVA + 8, &byte, 1, false), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, byte, 2);

	/* B39: dereg of a valid one kills the key */
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(mr), 0);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, next, 0, IOVA, 1),
			MRSOFT_R_KEY_STALE);
}

static void fast_refusals(struct kunit *test)
{
	u8 *mem = mem_alloc(test, PAGE_SIZE);
	struct mem *m = test->priv;
	struct mrsoft_mr *mr = mrsoft_mr_alloc_fast(&m->table, &m->pd[0], 8, false);
	u32 key;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	key = mr->ib.rkey;
	KUNIT_EXPECT_EQ(test, mem_fast_reg(m, mr, mem, 99, IOVA, key + 0x100, 0),
			MRSOFT_R_KEY_UNKNOWN);
	KUNIT_EXPECT_EQ(test, mem_fast_reg(m, mr, mem, 99, IOVA, key,
					   IB_ACCESS_REMOTE_WRITE),
			MRSOFT_R_NO_LOCAL_WRITE);
	KUNIT_EXPECT_EQ(test, mem_fast_reg(m, mr, mem, 99, IOVA, key, 1 << 15),
			MRSOFT_R_OPCODE);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_fast_reg(&m->table, &m->pd[1], mr, key,
						 0), MRSOFT_R_WRONG_PD);
	KUNIT_EXPECT_EQ(test, mem_refusals(m, MRSOFT_R_WRONG_PD), 1ll);
	KUNIT_EXPECT_EQ(test, mem_try(m, 0, 0, key, 0, IOVA, 0),
			MRSOFT_R_KEY_INVALID);

	/* zero-based, by another address, and at an iova of the ULP's choice */
	KUNIT_EXPECT_EQ(test, mem_fast_reg(m, mr, mem + 7, 99, IOVA, key,
					   IB_ZERO_BASED), MRSOFT_R_NONE);
	mem[7] = 0x77;
	mem[8] = 0;
	KUNIT_EXPECT_EQ(test, mem_rw(m, 0, 0, key, 0, 0, mem + 8, 1, false),
			MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, mem[8], 0x77);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(mr), 0);
}

/* --- waiting -------------------------------------------------------------- */

struct ending {
	struct mem *m;
	struct mrsoft_mr *mr;
	unsigned long at;
	int ret;
};

static void end_dereg(void *arg)
{
	struct ending *e = arg;

	e->ret = mrsoft_mr_dereg(e->mr);
}

static void end_invalidate(void *arg)
{
	struct ending *e = arg;

	e->ret = mrsoft_mr_invalidate(&e->mr->key, &e->m->pd[0],
				      e->mr->key.key, false);
}

/* Without TRANS: the thread has no memory of the process. */
static void end_rereg(void *arg)
{
	struct ending *e = arg;

	e->ret = mrsoft_mr_rereg(e->mr, IB_MR_REREG_ACCESS, 0, 0, 0, 0, NULL);
}

/*
 * While a copy runs: no new access enters, the ending waits.  It ends when the
 * copy does, and not because of anything else.
 */
static void waits_for_hold(struct kunit *test, struct ending *e, u64 iova,
			   void (*fn)(void *arg))
{
	struct mrsoft_access req = {
		.pd = &e->m->pd[0], .key = e->mr->key.key, .iova = iova,
		.length = 8,
	};
	struct mrsoft_span span, again;
	struct waiter w;

	KUNIT_ASSERT_EQ(test, mrsoft_key_access(&e->m->table, &req, &span),
			MRSOFT_R_NONE);
	KUNIT_ASSERT_EQ(test, mrsoft_key_access(&e->m->table, &req, &again),
			MRSOFT_R_NONE);
	waiter_start(test, &w, fn, e);
	KUNIT_EXPECT_TRUE(test, mem_eventually(mem_try(e->m, 0, 0, req.key, 0,
						       iova, 8) ==
					       MRSOFT_R_KEY_INVALID));
	KUNIT_EXPECT_TRUE(test, waiter_waits(&w));
	mrsoft_span_put(&span);
	KUNIT_EXPECT_TRUE(test, waiter_waits(&w));
	mrsoft_span_put(&again);
	KUNIT_ASSERT_TRUE(test, waiter_ends(&w));
	KUNIT_EXPECT_EQ(test, e->ret, 0);
}

static void endings_wait(struct kunit *test)
{
	unsigned long at = user_map(test, 1);
	u8 *mem = mem_alloc(test, PAGE_SIZE);
	struct mem *m = test->priv;
	struct ending e = { .m = m };

	e.mr = mem_region(test, m, 0, mem, 64, IOVA, ALL_RIGHTS);
	waits_for_hold(test, &e, IOVA, end_invalidate);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_fast_reg(&m->table, &m->pd[0], e.mr,
						 e.mr->key.key, 0),
			MRSOFT_R_NONE);
	waits_for_hold(test, &e, IOVA, end_dereg);

	e.mr = mrsoft_mr_reg_user(&m->table, &m->pd[0], at, 64, IOVA,
				  ALL_RIGHTS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(e.mr));
	waits_for_hold(test, &e, IOVA, end_rereg);
	waits_for_hold(test, &e, IOVA, end_dereg);
}

/* --- races ---------------------------------------------------------------- */

#define RACE_BYTES	256
#define RACE_ROUNDS	100

struct dereg_race {
	struct mem *m;
	u32 key;
	atomic_t hits;
};

static int race_access(void *arg, unsigned int who)
{
	struct dereg_race *race = arg;
	u8 buf[RACE_BYTES];

	memset(buf, 0x11 * (who + 1), sizeof(buf));
	if (!mem_rw(race->m, 0, 0, READ_ONCE(race->key), IB_ACCESS_REMOTE_WRITE,
		    IOVA, buf, sizeof(buf), true))
		atomic_inc(&race->hits);
	if (mem_rw(race->m, 0, 0, READ_ONCE(race->key), IB_ACCESS_REMOTE_READ,
		   IOVA, buf, sizeof(buf), false))
		return 0;
	/* after dereg the memory gets this mark: nobody may read it */
	return !!memchr(buf, 0xee, sizeof(buf));
}

/* After dereg not a byte is read or written through the key. */
static void dereg_race(struct kunit *test)
{
	struct mem *m = test->priv;
	struct dereg_race race = { .m = m };
	struct crowd crowd;
	int i, hits, dirty = 0;
	u8 *mem;

	crowd_start(test, &crowd, 3, race_access, &race);
	for (i = 0; i < RACE_ROUNDS; i++) {
		struct mrsoft_mr *mr;

		mem = kzalloc(RACE_BYTES, GFP_KERNEL);
		if (!mem)
			break;
		mr = mem_region(test, m, 0, mem, RACE_BYTES, IOVA, ALL_RIGHTS);
		hits = atomic_read(&race.hits);
		WRITE_ONCE(race.key, mr->key.key);
		while (atomic_read(&race.hits) < hits + 3)
			cond_resched();
		if (mrsoft_mr_dereg(mr))
			break;
		memset(mem, 0xee, RACE_BYTES);
		hits = atomic_read(&race.hits);
		usleep_range(20, 50);
		dirty += !!memchr_inv(mem, 0xee, RACE_BYTES);
		dirty += atomic_read(&race.hits) - hits > 3;
		kfree(mem);
	}
	KUNIT_EXPECT_EQ(test, i, RACE_ROUNDS);
	KUNIT_EXPECT_EQ(test, dirty, 0);
	KUNIT_EXPECT_EQ(test, crowd_stop(&crowd), 0);
}

struct rereg_race {
	struct mem *m;
	struct mrsoft_mr *mr;
	u32 key;
	u64 iova[2];
};

/* One of the two translations, never a mixture: each has bytes of its own. */
static int race_rereg(void *arg, unsigned int who)
{
	struct rereg_race *race = arg;
	u8 buf[64];
	int i;

	for (i = 0; i < 2; i++) {
		if (mem_rw(race->m, 0, 0, race->key, 0, race->iova[i], buf,
			   sizeof(buf), false))
			continue;
		if (memchr_inv(buf, i + 1, sizeof(buf)))
			return 1;
	}
	return 0;
}

static void rereg_race(struct kunit *test)
{
	unsigned long at[2] = { user_map(test, 1), user_map(test, 1) };
	struct mem *m = test->priv;
	struct rereg_race race = { .m = m, .iova = { IOVA, IOVA + 64 } };
	struct crowd crowd;
	u8 buf[64];
	int i, failed = 0;

	for (i = 0; i < 2; i++) {
		memset(buf, i + 1, sizeof(buf));
		KUNIT_ASSERT_EQ(test, copy_to_user((void __user *)at[i], buf,
						   sizeof(buf)), 0ul);
	}
	race.mr = mrsoft_mr_reg_user(&m->table, &m->pd[0], at[0], 64, IOVA, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(race.mr));
	race.key = race.mr->ib.lkey;
	crowd_start(test, &crowd, 2, race_rereg, &race);
	for (i = 1; i < 2000; i++)
		failed += !!mrsoft_mr_rereg(race.mr, IB_MR_REREG_TRANS,
					    at[i & 1], 64, race.iova[i & 1], 0,
					    NULL);
	KUNIT_EXPECT_EQ(test, crowd_stop(&crowd), 0);
	KUNIT_EXPECT_EQ(test, failed, 0);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(race.mr), 0);
}

/* Invalidate and register again, against accesses and against each other. */
struct fast_race {
	struct mem *m;
	struct mrsoft_mr *mr;
	atomic_t valid;
};

static int race_fast(void *arg, unsigned int who)
{
	struct fast_race *race = arg;
	u32 key = READ_ONCE(race->mr->key.key);
	u64 value = 0;

	if (who == 0) {
		if (!mrsoft_mr_fast_reg(&race->m->table, &race->m->pd[0],
					race->mr, key ^ 1, ALL_RIGHTS))
			return atomic_inc_return(&race->valid) != 1;
	} else if (who == 1) {
		/* count down first: it is valid until the invalidate ends */
		if (atomic_read(&race->valid) == 1) {
			atomic_dec(&race->valid);
			key = READ_ONCE(race->mr->key.key);
			return mrsoft_mr_invalidate(&race->mr->key,
						    &race->m->pd[0], key,
						    false);
		}
	} else if (!mem_rw(race->m, 0, 0, key, 0, IOVA, &value, 8, false)) {
		return value != 0x123456789abcdefull;
	}
	return 0;
}

static void fast_race(struct kunit *test)
{
	u64 *mem = mem_alloc(test, 64);
	struct mem *m = test->priv;
	struct fast_race race = { .m = m };
	struct crowd crowd;

	*mem = 0x123456789abcdefull;
	race.mr = mem_region(test, m, 0, mem, 8, IOVA, 0);
	atomic_set(&race.valid, 1);
	crowd_start(test, &crowd, 3, race_fast, &race);
	msleep(300);
	KUNIT_EXPECT_EQ(test, crowd_stop(&crowd), 0);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(race.mr), 0);
}

static struct kunit_case mr_cases[] = {
	KUNIT_CASE_PARAM(edge, edges_gen_params),
	KUNIT_CASE_PARAM(right, rights_gen_params),
	KUNIT_CASE(whole_region),
	KUNIT_CASE(wrong_keys),
	KUNIT_CASE(key_not_reused),
	KUNIT_CASE(key_wraps),
	KUNIT_CASE(limits),
	KUNIT_CASE(dma_region),
	KUNIT_CASE_PARAM(user_access, access_rows_gen_params),
	KUNIT_CASE(user_ranges),
	KUNIT_CASE(user_bytes),
	KUNIT_CASE(user_zero_based),
	KUNIT_CASE(rereg_translation),
	KUNIT_CASE(rereg_pd_and_access),
	KUNIT_CASE(rereg_gains_write),
	KUNIT_CASE(busy_changes_nothing),
	KUNIT_CASE(fast_life),
	KUNIT_CASE(fast_refusals),
	KUNIT_CASE(endings_wait),
	KUNIT_CASE(dereg_race),
	KUNIT_CASE(rereg_race),
	KUNIT_CASE(fast_race),
	{}
};

static struct kunit_suite mr_suite = {
	.name = "mrsoft_mr",
	.init = mr_init,
	.exit = mr_exit,
	.test_cases = mr_cases,
};

kunit_test_suite(mr_suite);

MODULE_DESCRIPTION("KUnit tests of mrsoft's regions and keys");
MODULE_LICENSE("GPL");
