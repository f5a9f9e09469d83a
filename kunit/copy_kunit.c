// SPDX-License-Identifier: GPL-2.0
/*
 * copy_kunit.c - copies of every alignment, order of the last bytes, atomics
 */
#include <linux/mm.h>

#include "mem_kunit.h"

#define BYTES	(4 * PAGE_SIZE)

struct copy_mem {
	u8 *src;
	u8 *dst;
	u8 *want;
	/* the same bytes as @src and @dst, looked up page by page */
	struct mrsoft_pages *src_pages;
	struct mrsoft_pages *dst_pages;
};

static struct mrsoft_pages *small_pages(struct kunit *test, void *mem)
{
	struct mrsoft_pages *pages = mrsoft_pages_list(BYTES / 512 + 1, false);
	struct ib_mr *ibmr = kunit_kzalloc(test, sizeof(*ibmr), GFP_KERNEL);
	struct scatterlist sg;
	u64 iova, length;

	KUNIT_ASSERT_FALSE(test, IS_ERR(pages));
	KUNIT_ASSERT_NOT_NULL(test, ibmr);
	ibmr->page_size = 512;
	mem_sg(&sg, mem, BYTES);
	KUNIT_ASSERT_EQ(test, mrsoft_pages_list_map(pages, ibmr, &sg, 1, NULL),
			1);
	mrsoft_pages_list_commit(pages, &iova, &length);
	return pages;
}

static int copy_init(struct kunit *test)
{
	struct copy_mem *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	size_t i;

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->src = kunit_kzalloc(test, BYTES, GFP_KERNEL);
	c->dst = kunit_kzalloc(test, BYTES, GFP_KERNEL);
	c->want = kunit_kzalloc(test, BYTES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c->src);
	KUNIT_ASSERT_NOT_NULL(test, c->dst);
	KUNIT_ASSERT_NOT_NULL(test, c->want);
	for (i = 0; i < BYTES; i++)
		c->src[i] = i * 11 + (i >> 8) * 3 + 1;
	c->src_pages = small_pages(test, c->src);
	c->dst_pages = small_pages(test, c->dst);
	test->priv = c;
	return 0;
}

static void copy_exit(struct kunit *test)
{
	struct copy_mem *c = test->priv;

	mrsoft_pages_put(c->src_pages);
	mrsoft_pages_put(c->dst_pages);
}

/* @at: the span starts there; the copy itself starts 100 bytes further on. */
static void copy_and_compare(struct kunit *test, size_t dst_at, size_t src_at,
			     size_t len)
{
	struct copy_mem *c = test->priv;
	struct mrsoft_span dst = {
		.pages = c->dst_pages, .offset = dst_at, .length = len + 100,
	};
	struct mrsoft_span src = {
		.pages = c->src_pages, .offset = src_at, .length = len + 100,
	};

	memset(c->dst, 0, BYTES);
	memset(c->want, 0, BYTES);
	memcpy(c->want + dst_at + 100, c->src + src_at + 100, len);
	KUNIT_ASSERT_EQ(test, mrsoft_copy(&dst, 100, &src, 100, len),
			MRSOFT_R_NONE);
	KUNIT_ASSERT_EQ_MSG(test, memcmp(c->dst, c->want, BYTES), 0,
			    "to %zu from %zu, %zu bytes", dst_at, src_at, len);
}

/* All alignments to a word and lengths, around a boundary of pages. */
static void alignments(struct kunit *test)
{
	size_t d, s, len;

	for (d = 400; d < 408; d++)
		for (s = 1424; s < 1432; s++)
			for (len = 0; len < 40; len++)
				copy_and_compare(test, d, s, len);
}

static void long_copies(struct kunit *test)
{
	static const size_t at[] = { 0, 1, 7, 8, 411, 412, 413, 511, 512, 1000 };
	static const size_t len[] = { 411, 412, 413, 511, 512, 513, 1023, 1024,
				      4095, 4096, 4097, 9999, BYTES - 1100 };
	size_t d, s, l;

	for (d = 0; d < ARRAY_SIZE(at); d++)
		for (s = 0; s < ARRAY_SIZE(at); s++)
			for (l = 0; l < ARRAY_SIZE(len); l++)
				copy_and_compare(test, at[d], at[s], len[l]);
}

static void kernel_spans(struct kunit *test)
{
	struct copy_mem *c = test->priv;
	struct mrsoft_span dst, src;

	mrsoft_span_kernel(&dst, c->dst, 1000);
	mrsoft_span_kernel(&src, c->src + 3, 1000);
	KUNIT_EXPECT_EQ(test, mrsoft_copy(&dst, 0, &src, 0, 1000),
			MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, memcmp(c->dst, c->src + 3, 1000), 0);
	KUNIT_EXPECT_EQ(test, c->dst[1000], 0);
}

/* Overlapping is undefined but must not go outside. */
static void overlap(struct kunit *test)
{
	struct copy_mem *c = test->priv;
	struct mrsoft_span span = {
		.pages = c->dst_pages, .offset = 8, .length = BYTES - 16,
	};
	size_t d, s;

	memset(c->dst, 0x11, BYTES);
	for (d = 0; d < 2000; d += 97)
		for (s = 0; s < 2000; s += 89)
			KUNIT_ASSERT_EQ(test, mrsoft_copy(&span, d, &span, s,
							  BYTES - 16 - 2000),
					MRSOFT_R_NONE);
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(c->dst, 0x11, BYTES), NULL);
}

/*
 * The tail arrives last: an observer that sees the new tail sees the new bytes
 * in front of it.  Memory is filled with counters that only grow.
 */
struct tail_race {
	u8 *dst;
	size_t len;
	size_t width;
};

static u64 counter_get(const u8 *at, size_t width)
{
	switch (width) {
	case 8:
		return READ_ONCE(*(const u64 *)at);
	case 4:
		return READ_ONCE(*(const u32 *)at);
	case 2:
		return READ_ONCE(*(const u16 *)at);
	default:
		return READ_ONCE(*at);
	}
}

static void counter_fill(u8 *at, size_t len, size_t width, u64 value)
{
	for (; len; at += width, len -= width)
		memcpy(at, &value, width);
}

static int tail_observe(void *arg, unsigned int who)
{
	struct tail_race *race = arg;
	size_t counters = race->len / race->width - 1;
	u64 tail, other;

	tail = counter_get(race->dst + race->len - race->width, race->width);
	smp_rmb();	/* pairs with the barrier in store_tail() */
	other = counter_get(race->dst + tail * 31 % counters * race->width,
			    race->width);
	return other < tail;
}

static void tail_last(struct kunit *test)
{
	struct copy_mem *c = test->priv;
	size_t width;

	for (width = 8; width; width /= 2) {
		/* the end is on a multiple of @width and of nothing larger */
		struct tail_race race = {
			.dst = c->dst + 2048 - width, .len = 2048, .width = width,
		};
		struct mrsoft_span dst = {
			.pages = c->dst_pages, .offset = 2048 - width,
			.length = race.len,
		};
		struct mrsoft_span src = {
			.pages = c->src_pages, .length = race.len,
		};
		u64 i, last = min(20000ull, (1ull << (width * 8 - 1)) * 2 - 1);
		struct crowd crowd;

		memset(c->dst, 0, BYTES);
		crowd_start(test, &crowd, 1, tail_observe, &race);
		for (i = 1; i <= last; i++) {
			counter_fill(c->src, race.len, width, i);
			mrsoft_copy(&dst, 0, &src, 0, race.len);
			cond_resched();
		}
		KUNIT_EXPECT_EQ(test, crowd_stop(&crowd), 0);
	}
}

/*
 * An aligned word at the end is one store: an observer never sees half of it.
 * All eight bytes of each word written are equal.
 */
static int word_observe(void *arg, unsigned int who)
{
	struct tail_race *race = arg;
	u64 value = READ_ONCE(*(u64 *)(race->dst + race->len - 8));

	return value != (value & 0xff) * 0x0101010101010101ull;
}

static void tail_in_one_store(struct kunit *test)
{
	struct copy_mem *c = test->priv;
	struct tail_race race = { .dst = c->dst, .len = 24, .width = 8 };
	struct mrsoft_span dst = { .pages = c->dst_pages, .length = 24 };
	/* the source's words lie across pages and on odd addresses */
	struct mrsoft_span src = {
		.pages = c->src_pages, .offset = 512 - 21, .length = 24,
	};
	struct crowd crowd;
	int i;

	memset(c->dst, 0, 64);
	crowd_start(test, &crowd, 1, word_observe, &race);
	for (i = 1; i < 200000; i++) {
		memset(c->src + 512 - 21, i, 24);
		mrsoft_copy(&dst, 0, &src, 0, 24);
	}
	KUNIT_EXPECT_EQ(test, crowd_stop(&crowd), 0);
}

static void atomics(struct kunit *test)
{
	struct copy_mem *c = test->priv;
	struct mrsoft_span span = {
		.pages = c->dst_pages, .offset = 512, .length = 8,
	};
	u64 *word = (u64 *)(c->dst + 512);
	u64 old = 0;

	*word = 5;
	KUNIT_EXPECT_EQ(test, mrsoft_copy_atomic(&span, MRSOFT_ATOMIC_CMP_SWAP,
						 4, 9, &old), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, old, 5ull);
	KUNIT_EXPECT_EQ(test, *word, 5ull);
	KUNIT_EXPECT_EQ(test, mrsoft_copy_atomic(&span, MRSOFT_ATOMIC_CMP_SWAP,
						 5, ~0ull, &old), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, old, 5ull);
	KUNIT_EXPECT_EQ(test, *word, ~0ull);
	KUNIT_EXPECT_EQ(test, mrsoft_copy_atomic(&span, MRSOFT_ATOMIC_FETCH_ADD,
						 77, 3, &old), MRSOFT_R_NONE);
	KUNIT_EXPECT_EQ(test, old, ~0ull);
	KUNIT_EXPECT_EQ(test, *word, 2ull);

	for (span.offset = 513; span.offset < 520; span.offset++)
		KUNIT_EXPECT_EQ(test,
				mrsoft_copy_atomic(&span,
						   MRSOFT_ATOMIC_FETCH_ADD, 0,
						   1, &old),
				MRSOFT_R_MISALIGNED);
	KUNIT_EXPECT_EQ(test, *word, 2ull);
	KUNIT_EXPECT_EQ(test, word[1], 0ull);
}

struct add_race {
	struct mrsoft_span span;
	u64 *word;
	atomic64_t turns;
};

static int add_turn(void *arg, unsigned int who)
{
	struct add_race *race = arg;
	u64 old;

	atomic64_inc(&race->turns);
	if (who & 1)
		mrsoft_copy_atomic(&race->span, MRSOFT_ATOMIC_FETCH_ADD, 0, 1,
				   &old);
	else	/* as a user's program would */
		atomic64_inc((atomic64_t *)race->word);
	return 0;
}

/* Atomics of the device and of the CPUs add up: nothing is lost. */
static void atomics_add_up(struct kunit *test)
{
	struct copy_mem *c = test->priv;
	struct add_race race = {
		.span = { .pages = c->dst_pages, .length = 8 },
		.word = (u64 *)c->dst,
	};
	u64 seen, old, swaps = 0;
	struct crowd crowd;
	int i;

	*race.word = 0;
	crowd_start(test, &crowd, 2, add_turn, &race);
	for (i = 0; i < 100000; i++) {
		seen = READ_ONCE(*race.word);
		mrsoft_copy_atomic(&race.span, MRSOFT_ATOMIC_CMP_SWAP, seen,
				   seen + (1ull << 40), &old);
		if (old == seen)
			swaps++;
		if (!(i % 1000))
			cond_resched();
	}
	crowd_stop(&crowd);
	KUNIT_EXPECT_GT(test, swaps, 0ull);
	KUNIT_EXPECT_EQ(test, *race.word >> 40, swaps);
	KUNIT_EXPECT_EQ(test, *race.word & ((1ull << 40) - 1),
			(u64)atomic64_read(&race.turns));
}

static struct kunit_case copy_cases[] = {
	KUNIT_CASE(alignments),
	KUNIT_CASE(long_copies),
	KUNIT_CASE(kernel_spans),
	KUNIT_CASE(overlap),
	KUNIT_CASE(tail_last),
	KUNIT_CASE(tail_in_one_store),
	KUNIT_CASE(atomics),
	KUNIT_CASE(atomics_add_up),
	{}
};

static struct kunit_suite copy_suite = {
	.name = "mrsoft_copy",
	.init = copy_init,
	.exit = copy_exit,
	.test_cases = copy_cases,
};

kunit_test_suite(copy_suite);

MODULE_DESCRIPTION("KUnit tests of mrsoft's copies");
MODULE_LICENSE("GPL");
