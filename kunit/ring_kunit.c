// SPDX-License-Identifier: GPL-2.0
/*
 * ring_kunit.c - rings: sizes, wrap, full and empty, hostile indices, resize
 *
 * The other side of a ring is played by writing to its memory, as a process
 * that has mapped it could.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>

#include "ring.h"

#define RACE_ELEMS	200000u

/* An element that shows whether it is whole: each word follows from the first. */
struct elem {
	u32 seq;
	u32 word[15];
};

static void elem_fill(struct elem *elem, u32 seq)
{
	int i;

	elem->seq = seq;
	for (i = 0; i < ARRAY_SIZE(elem->word); i++)
		elem->word[i] = seq * 2654435761u + i;
}

static bool elem_is(const struct elem *elem, u32 seq)
{
	struct elem want;

	elem_fill(&want, seq);
	return !memcmp(elem, &want, sizeof(want));
}

static bool push(struct mrsoft_ring *ring, u32 seq)
{
	struct elem elem;

	elem_fill(&elem, seq);
	return mrsoft_ring_push(ring, &elem, sizeof(elem));
}

static bool pop_is(struct mrsoft_ring *ring, u32 seq)
{
	struct elem elem;

	if (!mrsoft_ring_peek(ring, &elem, sizeof(elem)))
		return false;
	mrsoft_ring_pop(ring);
	return elem_is(&elem, seq);
}

/* Indices that a hostile or a mistaken process might store. */
static const u32 hostile[] = {
	0, 1, 2, 3, 6, 7, 8, 9, 15, 16, 17, 255, 256, 0x7fffffff, 0x80000000,
	0x80000001, 0xfffffff0, 0xfffffff8, 0xfffffffe, 0xffffffff,
};

static void ring_sizes(struct kunit *test)
{
	static const struct {
		u32 entries;
		size_t elem;
		int err;
		u32 mask;
		u32 shift;
	} row[] = {
		{ 0, 1, 0, 0, 6 },
		{ 1, 64, 0, 1, 6 },
		{ 2, 64, 0, 3, 6 },
		{ 3, 48, 0, 3, 6 },
		{ 4, 65, 0, 7, 7 },
		{ 16383, 656, 0, 16383, 10 },
		{ (1 << 18) - 1, 64, 0, (1 << 18) - 1, 6 },
		{ 1 << 20, 64, -EINVAL },
		{ 1 << 18, 1024, -EINVAL },
		{ U32_MAX, 64, -EINVAL },
		{ 1, SIZE_MAX, -EINVAL },
		{ 1, SZ_64M, -EINVAL },
	};
	struct mrsoft_ring ring;
	int i, err;

	for (i = 0; i < ARRAY_SIZE(row); i++) {
		err = mrsoft_ring_init(&ring, row[i].entries, row[i].elem, NULL,
				       NULL);
		KUNIT_EXPECT_EQ_MSG(test, err, row[i].err, "row %d", i);
		if (!err) {
			KUNIT_EXPECT_EQ(test, ring.mask, row[i].mask);
			KUNIT_EXPECT_EQ(test, ring.shift, row[i].shift);
			KUNIT_EXPECT_EQ(test, mrsoft_ring_capacity(&ring),
					row[i].mask);
			KUNIT_EXPECT_EQ(test, mrsoft_ring_room(&ring),
					row[i].mask);
			KUNIT_EXPECT_EQ(test, mrsoft_ring_pending(&ring), 0u);
		}
		/* after a failure, too */
		mrsoft_ring_destroy(&ring);
		mrsoft_ring_destroy(&ring);
	}
}

/* What librxe finds in a new ring: two words of header, and not a byte more. */
static void ring_layout(struct kunit *test)
{
	struct mrsoft_ring ring;
	const u8 *bytes;
	size_t i;

	KUNIT_ASSERT_EQ(test, mrsoft_ring_init(&ring, 7, 64, NULL, NULL), 0);
	bytes = (const u8 *)ring.mem->buf;
	KUNIT_EXPECT_EQ(test, *(const u32 *)bytes, 6u);
	KUNIT_EXPECT_EQ(test, *(const u32 *)(bytes + 4), 7u);
	KUNIT_EXPECT_EQ(test, ring.mem->size, (size_t)PAGE_SIZE);
	for (i = 8; i < ring.mem->size; i++)
		if (bytes[i])
			break;
	KUNIT_EXPECT_EQ(test, i, ring.mem->size);

	push(&ring, 42);
	KUNIT_EXPECT_EQ(test, *(const u32 *)(bytes + 128), 1u);
	KUNIT_EXPECT_EQ(test, *(const u32 *)(bytes + 256), 0u);
	KUNIT_EXPECT_TRUE(test, elem_is((const void *)(bytes + 384), 42));
	pop_is(&ring, 42);
	KUNIT_EXPECT_EQ(test, *(const u32 *)(bytes + 256), 1u);
	mrsoft_ring_destroy(&ring);
}

static void ring_wrap(struct kunit *test)
{
	static const u32 entries[] = { 1, 2, 3, 5, 7, 64 };
	struct mrsoft_ring ring;
	u32 seq, n, i;
	int e;

	for (e = 0; e < ARRAY_SIZE(entries); e++) {
		KUNIT_ASSERT_EQ(test, mrsoft_ring_init(&ring, entries[e], 64,
						       NULL, NULL), 0);
		for (seq = 0, n = 1; seq < 5 * ring.mask + 3; seq += n) {
			n = seq % ring.mask + 1;
			for (i = 0; i < n; i++)
				KUNIT_EXPECT_TRUE(test, push(&ring, seq + i));
			KUNIT_EXPECT_EQ(test, mrsoft_ring_pending(&ring), n);
			KUNIT_EXPECT_EQ(test, mrsoft_ring_unread(&ring), n);
			for (i = 0; i < n; i++)
				KUNIT_EXPECT_TRUE(test, pop_is(&ring, seq + i));
			KUNIT_EXPECT_LE(test, ring.mem->buf->producer_index,
					ring.mask);
			KUNIT_EXPECT_LE(test, ring.mem->buf->consumer_index,
					ring.mask);
		}
		mrsoft_ring_destroy(&ring);
	}
}

static void ring_full_empty(struct kunit *test)
{
	struct mrsoft_ring ring;
	struct elem elem;
	u32 start, i;

	KUNIT_ASSERT_EQ(test, mrsoft_ring_init(&ring, 7, 64, NULL, NULL), 0);
	/* the same from each position of the ring */
	for (start = 0; start < 8; start++) {
		elem_fill(&elem, 99);
		KUNIT_EXPECT_FALSE(test, mrsoft_ring_peek(&ring, &elem, 64));
		KUNIT_EXPECT_TRUE(test, elem_is(&elem, 99));
		for (i = 0; i < 7; i++) {
			KUNIT_EXPECT_EQ(test, mrsoft_ring_room(&ring), 7 - i);
			KUNIT_EXPECT_TRUE(test, push(&ring, i));
		}
		KUNIT_EXPECT_EQ(test, mrsoft_ring_room(&ring), 0u);
		KUNIT_EXPECT_FALSE(test, push(&ring, 7));
		KUNIT_EXPECT_TRUE(test, pop_is(&ring, 0));
		KUNIT_EXPECT_TRUE(test, push(&ring, 7));
		KUNIT_EXPECT_FALSE(test, push(&ring, 8));
		for (i = 1; i < 8; i++)
			KUNIT_EXPECT_TRUE(test, pop_is(&ring, i));
		KUNIT_EXPECT_TRUE(test, push(&ring, 8));
		KUNIT_EXPECT_TRUE(test, pop_is(&ring, 8));
	}
	mrsoft_ring_destroy(&ring);

	/* a ring for nothing */
	KUNIT_ASSERT_EQ(test, mrsoft_ring_init(&ring, 0, 64, NULL, NULL), 0);
	KUNIT_EXPECT_FALSE(test, push(&ring, 0));
	ring.mem->buf->producer_index = 5;
	KUNIT_EXPECT_FALSE(test, mrsoft_ring_peek(&ring, &elem, 64));
	mrsoft_ring_destroy(&ring);
}

static void ring_hostile_producer(struct kunit *test)
{
	struct mrsoft_ring ring;
	struct elem elem;
	u32 value, pending, taken;
	int i;

	KUNIT_ASSERT_EQ(test, mrsoft_ring_init(&ring, 7, 64, NULL, NULL), 0);
	/* 0 .. 63 in full, then the rows */
	for (i = 0; i < 64 + ARRAY_SIZE(hostile); i++) {
		value = i < 64 ? i : hostile[i - 64];
		ring.mem->buf->producer_index = value;
		/* ours, which a process may overwrite but we never read */
		ring.mem->buf->consumer_index = ~value;
		ring.mem->buf->index_mask = ~0;
		ring.mem->buf->log2_elem_size = 31;

		pending = (value - ring.cons) % 8;
		KUNIT_EXPECT_EQ(test, mrsoft_ring_pending(&ring), pending);
		for (taken = 0; taken <= 8; taken++) {
			if (!mrsoft_ring_peek(&ring, &elem, sizeof(elem)))
				break;
			mrsoft_ring_pop(&ring);
			KUNIT_EXPECT_LE(test, ring.cons, 7u);
			KUNIT_EXPECT_EQ(test, ring.mem->buf->consumer_index,
					ring.cons);
		}
		KUNIT_EXPECT_EQ_MSG(test, taken, pending, "index %#x", value);
		KUNIT_EXPECT_EQ(test, ring.cons, value % 8);
	}

	/* moved back between peek and pop: nothing worse than garbage */
	ring.mem->buf->producer_index = ring.cons + 1;
	KUNIT_EXPECT_TRUE(test, mrsoft_ring_peek(&ring, &elem, sizeof(elem)));
	ring.mem->buf->producer_index = ring.cons;
	KUNIT_EXPECT_EQ(test, mrsoft_ring_peek_at(&ring, 8, &elem, 8), 0);
	mrsoft_ring_pop(&ring);
	KUNIT_EXPECT_EQ(test, mrsoft_ring_pending(&ring), 7u);
	mrsoft_ring_destroy(&ring);
}

static void ring_hostile_consumer(struct kunit *test)
{
	struct mrsoft_ring ring;
	u32 value, room, stored;
	int i;

	KUNIT_ASSERT_EQ(test, mrsoft_ring_init(&ring, 7, 64, NULL, NULL), 0);
	for (i = 0; i < 64 + ARRAY_SIZE(hostile); i++) {
		value = i < 64 ? i : hostile[i - 64];
		ring.mem->buf->consumer_index = value;
		ring.mem->buf->producer_index = ~value;
		ring.mem->buf->index_mask = ~0;
		ring.mem->buf->log2_elem_size = 0;

		room = 7 - (ring.prod - value) % 8;
		KUNIT_EXPECT_EQ(test, mrsoft_ring_room(&ring), room);
		for (stored = 0; stored <= 8; stored++) {
			if (!push(&ring, stored))
				break;
			KUNIT_EXPECT_LE(test, ring.prod, 7u);
			KUNIT_EXPECT_EQ(test, ring.mem->buf->producer_index,
					ring.prod);
		}
		KUNIT_EXPECT_EQ_MSG(test, stored, room, "index %#x", value);
		KUNIT_EXPECT_EQ(test, mrsoft_ring_room(&ring), 0u);
	}
	mrsoft_ring_destroy(&ring);
}

static void ring_bounds(struct kunit *test)
{
	static const struct {
		size_t off;
		size_t len;
		int err;
	} row[] = {
		{ 0, 0, 0 },
		{ 0, 128, 0 },
		{ 64, 64, 0 },
		{ 128, 0, 0 },
		{ 127, 1, 0 },
		{ 0, 129, -EINVAL },
		{ 64, 65, -EINVAL },
		{ 128, 1, -EINVAL },
		{ 129, 0, -EINVAL },
		{ 8, SIZE_MAX, -EINVAL },
		{ SIZE_MAX, 8, -EINVAL },
		{ SIZE_MAX - 7, 8, -EINVAL },
	};
	struct mrsoft_ring ring;
	u8 in[129], out[129];
	int i, err;

	for (i = 0; i < sizeof(in); i++)
		in[i] = i + 1;
	KUNIT_ASSERT_EQ(test, mrsoft_ring_init(&ring, 1, 100, NULL, NULL), 0);
	KUNIT_EXPECT_FALSE(test, mrsoft_ring_push(&ring, in, 129));
	KUNIT_EXPECT_EQ(test, mrsoft_ring_unread(&ring), 0u);
	KUNIT_EXPECT_TRUE(test, mrsoft_ring_push(&ring, in, 128));
	KUNIT_EXPECT_FALSE(test, mrsoft_ring_peek(&ring, out, 129));

	for (i = 0; i < ARRAY_SIZE(row); i++) {
		memset(out, 0, sizeof(out));
		err = mrsoft_ring_peek_at(&ring, row[i].off, out, row[i].len);
		KUNIT_EXPECT_EQ_MSG(test, err, row[i].err, "row %d", i);
		if (err)
			KUNIT_EXPECT_EQ(test, out[0], 0);
		else
			KUNIT_EXPECT_EQ(test, memcmp(out, in + row[i].off,
						     row[i].len), 0);
	}
	mrsoft_ring_destroy(&ring);
}

static void ring_move(struct kunit *test)
{
	struct mrsoft_ring from, to;
	u32 start, count, entries, i;
	int err;

	KUNIT_ASSERT_EQ(test, mrsoft_ring_init(&from, 7, 64, NULL, NULL), 0);
	for (start = 0; start < 8; start++) {
		for (count = 0; count <= 7; count++) {
			for (i = 0; i < count; i++)
				push(&from, i);
			for (entries = 1; entries <= 15;
			     entries = 2 * entries + 1) {
				KUNIT_ASSERT_EQ(test,
						mrsoft_ring_init(&to, entries,
								 64, NULL,
								 NULL), 0);
				err = mrsoft_ring_move(&to, &from, from.cons,
						       count);
				KUNIT_EXPECT_EQ(test, err,
						count > entries ? -EINVAL : 0);
				KUNIT_EXPECT_EQ(test, mrsoft_ring_pending(&to),
						err ? 0 : count);
				for (i = 0; !err && i < count; i++)
					KUNIT_EXPECT_TRUE(test,
							  pop_is(&to, i));
				KUNIT_EXPECT_EQ(test, mrsoft_ring_room(&to),
						entries);
				KUNIT_EXPECT_TRUE(test, push(&to, 77));
				KUNIT_EXPECT_TRUE(test, pop_is(&to, 77));
				mrsoft_ring_destroy(&to);
			}
			for (i = 0; i < count; i++)
				KUNIT_EXPECT_TRUE(test, pop_is(&from, i));
		}
		push(&from, 0);
		pop_is(&from, 0);
	}

	KUNIT_ASSERT_EQ(test, mrsoft_ring_init(&to, 7, 128, NULL, NULL), 0);
	KUNIT_EXPECT_EQ(test, mrsoft_ring_move(&to, &from, 0, 0), -EINVAL);
	mrsoft_ring_destroy(&to);
	mrsoft_ring_destroy(&from);
}

/* The object is gone, an mmap() still runs: the memory is there until it ends. */
static void ring_cookie_keeps_memory(struct kunit *test)
{
	struct mrsoft_ring_mem *mem;
	struct mrsoft_ring ring;

	KUNIT_ASSERT_EQ(test, mrsoft_ring_init(&ring, 7, 64, NULL, NULL), 0);
	mem = ring.mem;
	kref_get(&mem->ref);
	mrsoft_ring_destroy(&ring);
	KUNIT_EXPECT_PTR_EQ(test, ring.mem, NULL);
	KUNIT_EXPECT_EQ(test, kref_read(&mem->ref), 1u);
	KUNIT_EXPECT_EQ(test, mem->buf->index_mask, 7u);
	mrsoft_ring_mmap_free(&mem->entry);
}

struct race {
	struct mrsoft_ring ring;
	struct completion done;
	bool stop;
};

/*
 * Lets the other side run, on this CPU too: cond_resched() need not.  That can
 * take a tick (10 ms), so the rings of the races are large.
 */
static void race_wait(void)
{
	usleep_range(1, 10);
}

static int race_producer(void *arg)
{
	struct race *race = arg;
	u32 seq = 0;

	while (seq < RACE_ELEMS && !READ_ONCE(race->stop)) {
		if (push(&race->ring, seq))
			seq++;
		else
			race_wait();
	}
	complete(&race->done);
	return 0;
}

/* Both sides run: who sees the index must see all of the element. */
static void ring_two_threads(struct kunit *test)
{
	struct race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	unsigned long end = jiffies + 60 * HZ;
	struct task_struct *task;
	u32 seq = 0, bad = 0;

	KUNIT_ASSERT_NOT_NULL(test, race);
	init_completion(&race->done);
	KUNIT_ASSERT_EQ(test, mrsoft_ring_init(&race->ring, 4095, 64, NULL, NULL),
			0);
	task = kthread_run(race_producer, race, "ring-producer");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));

	while (seq < RACE_ELEMS && time_before(jiffies, end)) {
		if (!mrsoft_ring_pending(&race->ring)) {
			race_wait();
			continue;
		}
		bad += !pop_is(&race->ring, seq++);
	}
	WRITE_ONCE(race->stop, true);
	wait_for_completion(&race->done);
	KUNIT_EXPECT_EQ(test, seq, RACE_ELEMS);
	KUNIT_EXPECT_EQ(test, bad, 0u);
	mrsoft_ring_destroy(&race->ring);
}

static struct kunit_case ring_cases[] = {
	KUNIT_CASE(ring_sizes),
	KUNIT_CASE(ring_layout),
	KUNIT_CASE(ring_wrap),
	KUNIT_CASE(ring_full_empty),
	KUNIT_CASE(ring_hostile_producer),
	KUNIT_CASE(ring_hostile_consumer),
	KUNIT_CASE(ring_bounds),
	KUNIT_CASE(ring_move),
	KUNIT_CASE(ring_cookie_keeps_memory),
	KUNIT_CASE(ring_two_threads),
	{}
};

static struct kunit_suite ring_suite = {
	.name = "mrsoft_ring",
	.test_cases = ring_cases,
};

kunit_test_suite(ring_suite);

MODULE_DESCRIPTION("KUnit suite of mrsoft: rings");
MODULE_LICENSE("GPL");
