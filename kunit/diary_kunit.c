// SPDX-License-Identifier: GPL-2.0
/*
 * diary_kunit.c - the rings of the diary, and a refusal without one
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>

#include "diary.c"

struct fixture {
	struct mrsoft_stats stats;
	struct mrsoft_who who;
	struct mrsoft_entry entry;
	struct mrsoft_ended ended;
};

static int init(struct kunit *test)
{
	struct fixture *fix = kunit_kzalloc(test, sizeof(*fix), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fix);
	fix->stats.diary = mrsoft_diary_new();
	KUNIT_ASSERT_NOT_NULL(test, fix->stats.diary);
	mrsoft_who_set(&fix->who, "tester");
	test->priv = fix;
	return 0;
}

static void finish(struct kunit *test)
{
	struct fixture *fix = test->priv;

	if (fix)
		mrsoft_diary_free(fix->stats.diary);
}

static enum mrsoft_reason refuse(struct fixture *fix, u32 key)
{
	struct mrsoft_refusal what = {
		.reason = MRSOFT_R_KEY_STALE, .qpn = 17, .peer = 18,
		.who = &fix->who, .op = "WRITE", .key = key, .addr = 0x1000,
		.length = 64,
	};

	return mrsoft_diary_refuse(&fix->stats, &what);
}

static void empty(struct kunit *test)
{
	struct fixture *fix = test->priv;

	KUNIT_EXPECT_FALSE(test, mrsoft_diary_read(fix->stats.diary, 0,
						   &fix->entry));
	KUNIT_EXPECT_FALSE(test, mrsoft_diary_read_end(fix->stats.diary, 0,
						       &fix->ended));
}

static void one_entry(struct kunit *test)
{
	struct fixture *fix = test->priv;
	struct mrsoft_entry *e = &fix->entry;

	KUNIT_EXPECT_EQ(test, (u32)refuse(fix, 0x500), MRSOFT_R_KEY_STALE);
	KUNIT_EXPECT_EQ(test,
			atomic64_read(&fix->stats.reasons[MRSOFT_R_KEY_STALE]),
			1);
	KUNIT_ASSERT_TRUE(test, mrsoft_diary_read(fix->stats.diary, 0, e));
	KUNIT_EXPECT_EQ(test, e->seq, 1);
	KUNIT_EXPECT_EQ(test, e->times, 1);
	KUNIT_EXPECT_EQ(test, (u32)e->what.reason, MRSOFT_R_KEY_STALE);
	KUNIT_EXPECT_EQ(test, e->what.qpn, 17);
	KUNIT_EXPECT_EQ(test, e->what.peer, 18);
	KUNIT_EXPECT_EQ(test, e->what.key, 0x500);
	KUNIT_EXPECT_EQ(test, e->what.addr, 0x1000);
	KUNIT_EXPECT_EQ(test, e->what.length, 64);
	KUNIT_EXPECT_STREQ(test, e->what.op, "WRITE");
	/* the owner may be gone when somebody reads */
	KUNIT_EXPECT_NULL(test, e->what.who);
	KUNIT_EXPECT_STREQ(test, e->who.comm, "tester");
	KUNIT_EXPECT_EQ(test, (u32)e->ended.how, MRSOFT_END_NONE);
	KUNIT_EXPECT_FALSE(test, mrsoft_diary_read(fix->stats.diary, 2, e));
}

static void without_diary(struct kunit *test)
{
	struct fixture *fix = test->priv;
	struct mrsoft_diary *diary = fix->stats.diary;

	fix->stats.diary = NULL;
	KUNIT_EXPECT_EQ(test, (u32)refuse(fix, 1), MRSOFT_R_KEY_STALE);
	mrsoft_diary_end(&fix->stats, 1, MRSOFT_END_DEREG, NULL);
	KUNIT_EXPECT_EQ(test,
			atomic64_read(&fix->stats.reasons[MRSOFT_R_KEY_STALE]),
			1);
	fix->stats.diary = diary;
}

/* Every reader position gives the oldest that is still there, or itself. */
static void ring_wraps(struct kunit *test)
{
	struct fixture *fix = test->priv;
	const u32 n = MRSOFT_DIARY_REFUSALS + 10;
	u64 seq, seen = 0;
	u32 i;

	for (i = 1; i <= n; i++)
		refuse(fix, i << 8);
	for (seq = 0; mrsoft_diary_read(fix->stats.diary, seq, &fix->entry);
	     seq = fix->entry.seq + 1) {
		seen++;
		KUNIT_EXPECT_EQ(test, fix->entry.seq, 10 + seen);
		KUNIT_EXPECT_EQ(test, fix->entry.what.key,
				(u32)fix->entry.seq << 8);
	}
	KUNIT_EXPECT_EQ(test, seen, MRSOFT_DIARY_REFUSALS);
}

static void same_again(struct kunit *test)
{
	struct fixture *fix = test->priv;
	u32 i;

	for (i = 0; i < 1000; i++)
		refuse(fix, 0x100);
	refuse(fix, 0x200);
	refuse(fix, 0x100);
	KUNIT_ASSERT_TRUE(test, mrsoft_diary_read(fix->stats.diary, 1,
						  &fix->entry));
	KUNIT_EXPECT_EQ(test, fix->entry.times, 1000);
	KUNIT_ASSERT_TRUE(test, mrsoft_diary_read(fix->stats.diary, 3,
						  &fix->entry));
	KUNIT_EXPECT_EQ(test, fix->entry.times, 1);
	KUNIT_EXPECT_EQ(test, fix->entry.what.key, 0x100);
	KUNIT_EXPECT_FALSE(test, mrsoft_diary_read(fix->stats.diary, 4,
						   &fix->entry));
}

/* The last end of a key counts, and one that fell out is not known. */
static void ends(struct kunit *test)
{
	struct fixture *fix = test->priv;
	struct mrsoft_entry *e = &fix->entry;
	u32 i;

	mrsoft_diary_end(&fix->stats, 0x100, MRSOFT_END_UNBOUND, NULL);
	mrsoft_diary_end(&fix->stats, 0x100, MRSOFT_END_DEALLOC, &fix->who);
	refuse(fix, 0x100);
	KUNIT_ASSERT_TRUE(test, mrsoft_diary_read(fix->stats.diary, 1, e));
	KUNIT_EXPECT_EQ(test, (u32)e->ended.how, MRSOFT_END_DEALLOC);
	KUNIT_EXPECT_STREQ(test, e->ended.by.comm, "tester");
	KUNIT_EXPECT_LE(test, e->ended.ns, e->ns);

	for (i = 0; i < MRSOFT_DIARY_ENDS; i++)
		mrsoft_diary_end(&fix->stats, 0x1000 + i, MRSOFT_END_DEREG,
				 NULL);
	refuse(fix, 0x200);
	refuse(fix, 0x100);
	KUNIT_ASSERT_TRUE(test, mrsoft_diary_read(fix->stats.diary, 3, e));
	KUNIT_EXPECT_EQ(test, (u32)e->ended.how, MRSOFT_END_NONE);
	refuse(fix, 0x1000);
	KUNIT_ASSERT_TRUE(test, mrsoft_diary_read(fix->stats.diary, 4, e));
	KUNIT_EXPECT_EQ(test, (u32)e->ended.how, MRSOFT_END_DEREG);
	KUNIT_EXPECT_EQ(test, e->ended.by.pid, task_tgid_nr(current));

	KUNIT_ASSERT_TRUE(test, mrsoft_diary_read_end(fix->stats.diary, 0,
						      &fix->ended));
	KUNIT_EXPECT_EQ(test, fix->ended.seq, 3);
	KUNIT_EXPECT_EQ(test, fix->ended.key, 0x1000);
}

static void every_end_has_a_word(struct kunit *test)
{
	u32 i;

	for (i = 0; i < MRSOFT_END_COUNT; i++) {
		KUNIT_EXPECT_NOT_NULL(test, mrsoft_end_text(i));
		KUNIT_EXPECT_NULL(test, strchr(mrsoft_end_text(i), ' '));
	}
	KUNIT_EXPECT_STREQ(test, mrsoft_end_text(MRSOFT_END_COUNT), "-");
}

static struct kunit_case cases[] = {
	KUNIT_CASE(empty),
	KUNIT_CASE(one_entry),
	KUNIT_CASE(without_diary),
	KUNIT_CASE(ring_wraps),
	KUNIT_CASE(same_again),
	KUNIT_CASE(ends),
	KUNIT_CASE(every_end_has_a_word),
	{}
};

static struct kunit_suite suite = {
	.name = "mrsoft_diary",
	.init = init,
	.exit = finish,
	.test_cases = cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("KUnit tests of mrsoft's diary");
MODULE_LICENSE("GPL");
