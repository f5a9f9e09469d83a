// SPDX-License-Identifier: GPL-2.0
/*
 * pages_kunit.c - lookup of pages: tables of small and large blocks, page lists
 *
 * Every table is compared with a flat copy of the bytes that it should show.
 */
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "pages.h"

/* Physically contiguous memory that a test cuts its sg entries from. */
#define ARENA_ORDER	6
#define ARENA_BYTES	(PAGE_SIZE << ARENA_ORDER)

struct arena {
	u8 *mem;
};

static int pages_init(struct kunit *test)
{
	struct arena *arena = kunit_kzalloc(test, sizeof(*arena), GFP_KERNEL);
	size_t i;

	KUNIT_ASSERT_NOT_NULL(test, arena);
	/* the order makes it aligned to its size */
	arena->mem = (u8 *)__get_free_pages(GFP_KERNEL, ARENA_ORDER);
	KUNIT_ASSERT_NOT_NULL(test, arena->mem);
	for (i = 0; i < ARENA_BYTES; i++)
		arena->mem[i] = i * 7 + (i >> 8) * 13 + (i >> 16);
	test->priv = arena;
	return 0;
}

static void pages_exit(struct kunit *test)
{
	struct arena *arena = test->priv;

	free_pages((unsigned long)arena->mem, ARENA_ORDER);
}

/* Pages of the arena, in the order in which a region shows them. */
struct extent {
	u32 first;
	u32 num;
};

struct table_row {
	const char *name;
	struct extent extent[6];
	u32 skip;
	unsigned int shift;
};

#define ONE_RUN	40

static const struct table_row table_rows[] = {
	{ "one page", { { 3, 1 } }, 0, ONE_RUN },
	{ "one page, odd start", { { 3, 1 } }, 123, ONE_RUN },
	{ "one run", { { 5, 9 } }, 4095, ONE_RUN },
	{ "one run in three entries", { { 5, 2 }, { 7, 1 }, { 8, 4 } }, 1, ONE_RUN },
	{ "scattered pages", { { 9, 1 }, { 4, 1 }, { 60, 1 }, { 1, 1 } }, 77, PAGE_SHIFT },
	{ "same page twice", { { 9, 1 }, { 9, 1 } }, 0, PAGE_SHIFT },
	{ "backwards", { { 12, 4 }, { 8, 4 }, { 4, 4 }, { 0, 4 } }, 5, PAGE_SHIFT + 2 },
	{ "large blocks, first one starts late", { { 7, 1 }, { 16, 8 }, { 40, 8 } }, 9,
	  PAGE_SHIFT + 3 },
	{ "large blocks, last one ends early", { { 16, 8 }, { 40, 3 } }, 9, PAGE_SHIFT + 3 },
	{ "large and huge", { { 0, 16 }, { 48, 16 }, { 24, 8 } }, 2222, PAGE_SHIFT + 3 },
	{ "a small one between", { { 0, 16 }, { 33, 1 }, { 48, 16 } }, 0, PAGE_SHIFT },
	{ "end not aligned inside", { { 0, 3 }, { 16, 4 } }, 0, PAGE_SHIFT },
};

KUNIT_ARRAY_PARAM_DESC(table_rows, table_rows, name);

static u32 row_table(struct kunit *test, const struct table_row *row,
		     struct sg_table *sgt)
{
	struct arena *arena = test->priv;
	struct scatterlist *sg;
	u32 num = 0, bytes = 0, i;

	while (num < ARRAY_SIZE(row->extent) && row->extent[num].num)
		num++;
	KUNIT_ASSERT_EQ(test, sg_alloc_table(sgt, num, GFP_KERNEL), 0);
	for_each_sgtable_sg(sgt, sg, i) {
		sg_set_page(sg, virt_to_page(arena->mem +
					     row->extent[i].first * PAGE_SIZE),
			    row->extent[i].num * PAGE_SIZE, 0);
		bytes += row->extent[i].num * PAGE_SIZE;
	}
	return bytes - row->skip;
}

static u8 *row_flat(struct kunit *test, const struct table_row *row, u32 bytes)
{
	struct arena *arena = test->priv;
	u8 *flat = kunit_kzalloc(test, bytes + row->skip, GFP_KERNEL);
	u32 at = 0, i;

	KUNIT_ASSERT_NOT_NULL(test, flat);
	for (i = 0; i < ARRAY_SIZE(row->extent); i++) {
		memcpy(flat + at, arena->mem + row->extent[i].first * PAGE_SIZE,
		       row->extent[i].num * PAGE_SIZE);
		at += row->extent[i].num * PAGE_SIZE;
	}
	return flat + row->skip;
}

/* Bytes [@at, @at + @len) are those of @flat, and pieces are not empty. */
static void expect_bytes(struct kunit *test, struct mrsoft_pages *pages,
			 const u8 *flat, u64 at, size_t len)
{
	size_t n;
	void *p;

	for (; len; at += n, len -= n) {
		n = len;
		p = mrsoft_pages_map(pages, at, &n, true);
		KUNIT_ASSERT_NOT_NULL(test, p);
		KUNIT_ASSERT_GT(test, n, (size_t)0);
		KUNIT_ASSERT_LE(test, n, len);
		KUNIT_ASSERT_EQ_MSG(test, memcmp(p, flat + at, n), 0,
				    "%zu bytes at %llu", n, at);
		mrsoft_pages_unmap(pages, p);
	}
}

static void table_lookup(struct kunit *test)
{
	const struct table_row *row = test->param_value;
	struct mrsoft_pages *pages;
	struct sg_table sgt;
	u32 bytes, at;
	u8 *flat;

	bytes = row_table(test, row, &sgt);
	flat = row_flat(test, row, bytes);
	pages = mrsoft_pages_sgt(&sgt, row->skip);
	sg_free_table(&sgt);
	KUNIT_ASSERT_FALSE(test, IS_ERR(pages));
	KUNIT_EXPECT_EQ(test, mrsoft_pages_shift(pages), row->shift);

	expect_bytes(test, pages, flat, 0, bytes);
	for (at = 0; at < bytes; at++)
		expect_bytes(test, pages, flat, at, min(bytes - at, 3u));
	for (at = PAGE_SIZE - 1; at < bytes; at += PAGE_SIZE)
		expect_bytes(test, pages, flat, at, bytes - at);
	mrsoft_pages_put(pages);
}

/* A long table costs no memory if it shows the same pages again and again. */
static void table_in_pieces(struct kunit *test)
{
	const u32 entries = 5 * PAGE_SIZE / sizeof(long) + 7;
	struct arena *arena = test->priv;
	struct mrsoft_pages *pages;
	struct scatterlist *sg;
	struct sg_table sgt;
	u32 i, want;
	size_t n;
	u8 *p;

	KUNIT_ASSERT_EQ(test, sg_alloc_table(&sgt, entries, GFP_KERNEL), 0);
	for_each_sgtable_sg(&sgt, sg, i)
		sg_set_page(sg, virt_to_page(arena->mem +
					     (i * 5 % 63) * PAGE_SIZE),
			    PAGE_SIZE, 0);
	pages = mrsoft_pages_sgt(&sgt, 17);
	sg_free_table(&sgt);
	KUNIT_ASSERT_FALSE(test, IS_ERR(pages));
	KUNIT_EXPECT_EQ(test, mrsoft_pages_shift(pages), PAGE_SHIFT);

	for (i = 0; i < entries; i++) {
		want = (i * 5 % 63) * PAGE_SIZE + 17;
		n = SIZE_MAX;
		p = mrsoft_pages_map(pages, (u64)i * PAGE_SIZE, &n, true);
		KUNIT_ASSERT_PTR_EQ(test, p, arena->mem + want);
		KUNIT_ASSERT_EQ(test, n, PAGE_SIZE - 17);
		mrsoft_pages_unmap(pages, p);
	}
	mrsoft_pages_put(pages);
}

static void kernel_memory(struct kunit *test)
{
	struct mrsoft_pages *pages = mrsoft_pages_kernel();
	struct arena *arena = test->priv;
	size_t n = ARENA_BYTES - 9;
	void *p;

	KUNIT_ASSERT_FALSE(test, IS_ERR(pages));
	p = mrsoft_pages_map(pages, (uintptr_t)arena->mem + 9, &n, true);
	KUNIT_EXPECT_PTR_EQ(test, p, (void *)(arena->mem + 9));
	KUNIT_EXPECT_EQ(test, n, ARENA_BYTES - 9);
	mrsoft_pages_unmap(pages, p);
	KUNIT_EXPECT_FALSE(test, mrsoft_pages_writable(pages));
	mrsoft_pages_put(pages);
}

static void absurd_sizes(struct kunit *test)
{
	struct mrsoft_pages *pages;

	if (sizeof(long) == 4) {
		pages = mrsoft_pages_pin(NULL, 1ull << 33, 1, 0);
		KUNIT_EXPECT_EQ(test, PTR_ERR(pages), -EINVAL);
	}
	pages = mrsoft_pages_kernel();
	KUNIT_ASSERT_FALSE(test, IS_ERR(pages));
	KUNIT_EXPECT_EQ(test, PTR_ERR(mrsoft_pages_repin(pages, 0)), -EACCES);
	mrsoft_pages_put(pages);
}

/* --- lists of fast registration ------------------------------------------- */

struct list_row {
	const char *name;
	u32 page_size;
	u32 start;
	u32 length;
	u32 offset;
};

/* B34: MR pages of another size than the kernel's, odd first bytes. */
static const struct list_row list_rows[] = {
	{ "512", 512, 0, 8192, 0 },
	{ "512, odd", 512, 77, 8000, 5 },
	{ "2 KiB, odd", 2048, 2047, 30001, 1 },
	{ "4 KiB", 4096, 0, 65536, 0 },
	{ "4 KiB, odd", 4096, 4095, 12345, 4097 },
	{ "64 KiB, odd", 65536, 65535, 99999, 3 },
	{ "1 MiB, odd", 1 << 20, 1234, 200000, 777 },
	{ "one byte", 4096, 4095, 1, 0 },
};

KUNIT_ARRAY_PARAM_DESC(list_rows, list_rows, name);

static void list_sg(struct scatterlist *sg, void *addr, u32 len)
{
	sg_set_buf(sg, addr, len);
	sg_dma_address(sg) = (uintptr_t)addr;
	sg_dma_len(sg) = len;
}

static int list_map_one(struct mrsoft_pages *pages, struct ib_mr *ibmr,
			void *addr, u32 len, unsigned int *offset)
{
	struct scatterlist sg;

	sg_init_table(&sg, 1);
	list_sg(&sg, addr, len);
	return mrsoft_pages_list_map(pages, ibmr, &sg, 1, offset);
}

static void list_lookup(struct kunit *test)
{
	const struct list_row *row = test->param_value;
	struct ib_mr *ibmr = kunit_kzalloc(test, sizeof(*ibmr), GFP_KERNEL);
	struct mrsoft_pages *pages = mrsoft_pages_list(256, false);
	struct arena *arena = test->priv;
	unsigned int offset = row->offset;
	u8 *flat = arena->mem + row->start;
	u64 iova, length, at;

	KUNIT_ASSERT_FALSE(test, IS_ERR(pages));
	KUNIT_ASSERT_NOT_NULL(test, ibmr);
	ibmr->page_size = row->page_size;
	KUNIT_ASSERT_EQ(test, list_map_one(pages, ibmr, flat, row->length,
					   &offset), 1);
	KUNIT_EXPECT_EQ(test, offset, 0);
	flat += row->offset;
	KUNIT_EXPECT_EQ(test, ibmr->iova, (u64)(uintptr_t)flat);
	KUNIT_EXPECT_EQ(test, ibmr->length, (u64)row->length - row->offset);

	mrsoft_pages_list_commit(pages, &iova, &length);
	KUNIT_EXPECT_EQ(test, iova, ibmr->iova);
	KUNIT_EXPECT_EQ(test, length, ibmr->length);
	expect_bytes(test, pages, flat, 0, length);
	for (at = 0; at < length; at += 61)
		expect_bytes(test, pages, flat, at, min(length - at, 700ull));
	mrsoft_pages_put(pages);
}

/* What does not fit is reported, what fits is mapped. */
static void list_partial(struct kunit *test)
{
	struct ib_mr *ibmr = kunit_kzalloc(test, sizeof(*ibmr), GFP_KERNEL);
	struct mrsoft_pages *pages = mrsoft_pages_list(2, false);
	struct arena *arena = test->priv;
	struct scatterlist sg[3];
	u64 iova, length;
	int i;

	KUNIT_ASSERT_FALSE(test, IS_ERR(pages));
	KUNIT_ASSERT_NOT_NULL(test, ibmr);
	ibmr->page_size = PAGE_SIZE;
	sg_init_table(sg, 3);
	/* pages 8, 4 and 0: no two can be joined */
	for (i = 0; i < 3; i++)
		list_sg(&sg[i], arena->mem + (8 - i * 4) * PAGE_SIZE, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, mrsoft_pages_list_map(pages, ibmr, sg, 3, NULL), 2);
	mrsoft_pages_list_commit(pages, &iova, &length);
	KUNIT_EXPECT_EQ(test, length, 2 * PAGE_SIZE);
	expect_bytes(test, pages, arena->mem + 8 * PAGE_SIZE, 0, PAGE_SIZE);
	expect_bytes(test, pages, arena->mem + 3 * PAGE_SIZE, PAGE_SIZE,
		     PAGE_SIZE);

	/* a gap ends the list */
	list_sg(&sg[1], arena->mem + 4 * PAGE_SIZE + 8, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, mrsoft_pages_list_map(pages, ibmr, sg, 3, NULL), 1);
	mrsoft_pages_put(pages);
}

/* B33: the live list is not touched by a map, and stays without a new one. */
static void list_pending(struct kunit *test)
{
	struct ib_mr *ibmr = kunit_kzalloc(test, sizeof(*ibmr), GFP_KERNEL);
	struct mrsoft_pages *pages = mrsoft_pages_list(4, false);
	struct arena *arena = test->priv;
	u8 *one = arena->mem + 5, *two = arena->mem + 8 * PAGE_SIZE;
	unsigned int beyond = 1 << 20;
	u64 iova, length;

	KUNIT_ASSERT_FALSE(test, IS_ERR(pages));
	KUNIT_ASSERT_NOT_NULL(test, ibmr);

	/* never mapped: nothing there */
	mrsoft_pages_list_commit(pages, &iova, &length);
	KUNIT_EXPECT_EQ(test, length, 0ull);

	ibmr->page_size = PAGE_SIZE;
	KUNIT_ASSERT_EQ(test, list_map_one(pages, ibmr, one, 9000, NULL), 1);
	mrsoft_pages_list_commit(pages, &iova, &length);
	KUNIT_ASSERT_EQ(test, length, 9000ull);
	KUNIT_ASSERT_EQ(test, list_map_one(pages, ibmr, two, 5000, NULL), 1);
	expect_bytes(test, pages, one, 0, 9000);

	mrsoft_pages_list_commit(pages, &iova, &length);
	KUNIT_EXPECT_EQ(test, length, 5000ull);
	expect_bytes(test, pages, two, 0, 5000);
	mrsoft_pages_list_commit(pages, &iova, &length);
	KUNIT_EXPECT_EQ(test, length, 5000ull);
	expect_bytes(test, pages, two, 0, 5000);

	/* a map that fails leaves the old mapping for the next commit */
	KUNIT_EXPECT_EQ(test, list_map_one(pages, ibmr, one, 9000, &beyond),
			-EINVAL);
	ibmr->page_size = 3000;
	KUNIT_EXPECT_EQ(test, list_map_one(pages, ibmr, one, 9000, NULL),
			-EINVAL);
	mrsoft_pages_list_commit(pages, &iova, &length);
	KUNIT_EXPECT_EQ(test, length, 5000ull);
	expect_bytes(test, pages, two, 0, 5000);
	mrsoft_pages_put(pages);
}

static struct kunit_case pages_cases[] = {
	KUNIT_CASE_PARAM(table_lookup, table_rows_gen_params),
	KUNIT_CASE(table_in_pieces),
	KUNIT_CASE(kernel_memory),
	KUNIT_CASE(absurd_sizes),
	KUNIT_CASE_PARAM(list_lookup, list_rows_gen_params),
	KUNIT_CASE(list_partial),
	KUNIT_CASE(list_pending),
	{}
};

static struct kunit_suite pages_suite = {
	.name = "mrsoft_pages",
	.init = pages_init,
	.exit = pages_exit,
	.test_cases = pages_cases,
};

kunit_test_suite(pages_suite);

MODULE_DESCRIPTION("KUnit tests of mrsoft's pages");
MODULE_LICENSE("GPL");
