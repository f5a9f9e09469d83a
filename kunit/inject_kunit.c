// SPDX-License-Identifier: GPL-2.0
/*
 * inject_kunit.c - rules: which texts are one, and which events they strike
 *
 * The tables are those of Documentation/testing-your-app.rst.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "inject.c"

/* Each is printed as it was written. */
static const char * const good[] = {
	"fail reg", "fail reg nth=3 errno=ENOMEM", "fail reg nth=2 count=3",
	"fail rereg key=0x1a3f errno=EFAULT",
	"fail dereg", "fail dereg key=0x100 nth=1 errno=EBUSY",
	"fail dereg every=2 count=5", "fail dereg chance=1/2 seed=7 count=1",
	"hold dereg ms=1", "hold dereg key=0x100 every=1 ms=10000",
	"drop", "drop qp=17 nth=5 dir=tx", "drop every=3 dir=rx",
	"drop qp=16777214 chance=1/10 seed=42 count=9",
	"drop chance=1000000/1000000 seed=18446744073709551615",
	"duplicate qp=17", "reorder qp=17 nth=4294967295", "corrupt dir=rx",
	"delay qp=1 ms=50", "delay every=1 ms=50 dir=rx",
	"rnr qp=17 nth=1", "rnr qp=17 rnr=31", "rnr rnr=0",
	"nak qp=17 code=access", "nak code=invalid", "nak every=2 code=op",
	"nak nth=1 code=sequence",
	"overflow cq=5", "overflow qp=17 cq=5 nth=2", "overflow cq=0",
	"error qp=17", "error qp=17 nth=3", "error nth=3",
};

static const char * const bad[] = {
	"", " ", "fail", "hold", "fail it", "hold reg ms=1", "drop it", "DROP",
	"fail  ", "dropped", "error", "error qp=1", "error qp=0", "clear",
	/* parameters that it does not have, twice, or without a value */
	"fail reg qp=17", "fail reg key=1", "fail reg ms=1", "drop errno=EIO",
	"drop key=1", "drop cq=1", "rnr dir=rx", "nak code=op rnr=1",
	"overflow dir=tx", "drop qp=17 qp=17", "drop qp", "drop qp=", "drop =1",
	"drop nth=1 nth=2", "hold dereg", "delay", "nak", "drop ms=5",
	/* numbers */
	"drop qp=0", "drop qp=-1", "drop qp=+1", "drop qp=16777215",
	"drop qp=4294967296", "drop qp=1x", "drop qp=1,2", "drop qp=0x",
	"drop nth=0", "drop every=0", "drop count=0", "drop nth=4294967296",
	"delay ms=0", "delay ms=10001", "hold dereg ms=10001", "rnr rnr=32",
	"fail dereg key=0",
	/* when */
	"drop nth=1 every=2", "drop every=1 chance=1/2", "drop seed=1",
	"drop nth=1 seed=1", "drop chance=1", "drop chance=0/2",
	"drop chance=3/2", "drop chance=1/0", "drop chance=1/1000001",
	"drop chance=/", "drop chance=1/2/3", "drop chance=1/2 seed=-1",
	"drop chance=1/2 seed=18446744073709551616",
	/* it would never end */
	"fail dereg every=1", "fail dereg chance=1/2",
	/* words */
	"fail reg errno=12", "fail reg errno=ENOMEN", "fail reg errno=",
	"nak code=1", "nak code=", "nak code=rnr", "drop dir=both",
};

static void good_rules(struct kunit *test)
{
	char text[MRSOFT_RULE_TEXT];
	struct mrsoft_rule rule;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		KUNIT_EXPECT_EQ_MSG(test, mrsoft_inject_parse(good[i], &rule),
				    0, "%s", good[i]);
		mrsoft_inject_format(&rule, text, sizeof(text));
		KUNIT_EXPECT_STREQ(test, text, good[i]);
	}
}

static void bad_rules(struct kunit *test)
{
	struct mrsoft_rule rule;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ_MSG(test, mrsoft_inject_parse(bad[i], &rule),
				    -EINVAL, "%s", bad[i]);
}

static void long_rules(struct kunit *test)
{
	static const char longest[] =
		"delay qp=16777214 chance=1/1000000 seed=18446744073709551615 ms=10000 dir=rx";
	char text[MRSOFT_RULE_TEXT + 1];
	struct mrsoft_rule rule;

	/* blanks between words do not count, up to the length of a line */
	memset(text, ' ', sizeof(text));
	memcpy(text, "drop", 4);
	text[MRSOFT_RULE_TEXT - 1] = '\0';
	KUNIT_EXPECT_EQ(test, mrsoft_inject_parse(text, &rule), 0);
	text[MRSOFT_RULE_TEXT - 1] = ' ';
	text[MRSOFT_RULE_TEXT] = '\0';
	KUNIT_EXPECT_EQ(test, mrsoft_inject_parse(text, &rule), -EINVAL);
	/* the longest that a rule can become fits */
	KUNIT_ASSERT_EQ(test, mrsoft_inject_parse(longest, &rule), 0);
	mrsoft_inject_format(&rule, text, MRSOFT_RULE_TEXT);
	KUNIT_EXPECT_STREQ(test, text, longest);
}

static void fill_in(struct kunit *test)
{
	struct mrsoft_rule rule;

	KUNIT_ASSERT_EQ(test, mrsoft_inject_parse("fail reg", &rule), 0);
	KUNIT_EXPECT_EQ(test, rule.err, ENOMEM);
	KUNIT_EXPECT_EQ(test, rule.nth, 1);
	KUNIT_EXPECT_EQ(test, rule.count, 1);
	KUNIT_ASSERT_EQ(test, mrsoft_inject_parse("fail dereg", &rule), 0);
	KUNIT_EXPECT_EQ(test, rule.err, EBUSY);
	KUNIT_ASSERT_EQ(test, mrsoft_inject_parse("drop every=2", &rule), 0);
	KUNIT_EXPECT_EQ(test, rule.count, 0);
	KUNIT_EXPECT_FALSE(test, rule.rx);
	KUNIT_ASSERT_EQ(test, mrsoft_inject_parse("error qp=17", &rule), 0);
	KUNIT_EXPECT_TRUE(test, mrsoft_inject_is_now(&rule));
	KUNIT_ASSERT_EQ(test, mrsoft_inject_parse("error qp=17 nth=1", &rule),
			0);
	KUNIT_EXPECT_FALSE(test, mrsoft_inject_is_now(&rule));
}

static int init(struct kunit *test)
{
	struct mrsoft_stats *stats = kunit_kzalloc(test, sizeof(*stats),
						   GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, stats);
	stats->inject = mrsoft_inject_new();
	KUNIT_ASSERT_NOT_NULL(test, stats->inject);
	test->priv = stats;
	return 0;
}

static void finish(struct kunit *test)
{
	if (test->priv)
		mrsoft_inject_free(test->priv);
}

static int add(struct kunit *test, const char *text)
{
	struct mrsoft_rule rule;

	KUNIT_ASSERT_EQ(test, mrsoft_inject_parse(text, &rule), 0);
	return mrsoft_inject_add(test->priv, &rule);
}

/* What strikes the next packet that QP @qpn sends: '.' nothing. */
static char packet(struct kunit *test, u32 qpn, bool rx)
{
	struct mrsoft_occasion now = {
		.event = MRSOFT_ON_PACKET, .qpn = qpn, .rx = rx,
	};
	struct mrsoft_injection in;

	return mrsoft_inject(test->priv, &now, &in) ? *in.op : '.';
}

static void packets(struct kunit *test, char *got, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		got[i] = packet(test, 17, false);
	got[n] = '\0';
}

/* Rule, and which of twelve packets it strikes. */
static const struct {
	const char *rule;
	const char *want;
} when[] = {
	{ "drop",			"d..........." },
	{ "drop nth=1",			"d..........." },
	{ "drop nth=5",			"....d......." },
	{ "drop nth=5 count=3",		"....ddd....." },
	{ "drop nth=13",		"............" },
	{ "drop count=2",		"dd.........." },
	{ "drop every=1",		"dddddddddddd" },
	{ "drop every=5",		"....d....d.." },
	{ "drop every=3 count=2",	"..d..d......" },
	{ "drop chance=1/1",		"dddddddddddd" },
	{ "drop chance=1/1 count=4",	"dddd........" },
	{ "drop qp=18",			"............" },
	{ "drop qp=17",			"d..........." },
	{ "drop dir=rx",		"............" },
	{ "rnr",			"............" },
};

static void schedules(struct kunit *test)
{
	char got[13];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(when); i++) {
		KUNIT_ASSERT_EQ(test, add(test, when[i].rule), 0);
		packets(test, got, 12);
		KUNIT_EXPECT_STREQ(test, got, when[i].want);
		KUNIT_EXPECT_EQ(test, mrsoft_inject_clear(test->priv, 0), 0);
	}
}

/* The same seed strikes the same packets, another one others. */
static void by_chance(struct kunit *test)
{
	char first[201], again[201], other[201];
	u32 i, hits = 0;

	KUNIT_ASSERT_EQ(test, add(test, "drop chance=1/4 seed=42"), 0);
	packets(test, first, 200);
	mrsoft_inject_clear(test->priv, 0);
	KUNIT_ASSERT_EQ(test, add(test, "drop chance=1/4 seed=42"), 0);
	packets(test, again, 200);
	mrsoft_inject_clear(test->priv, 0);
	KUNIT_ASSERT_EQ(test, add(test, "drop chance=1/4 seed=43"), 0);
	packets(test, other, 200);
	KUNIT_EXPECT_STREQ(test, again, first);
	KUNIT_EXPECT_NE(test, strcmp(other, first), 0);
	for (i = 0; i < 200; i++)
		hits += first[i] == 'd';
	/* 50, give or take five times its deviation */
	KUNIT_EXPECT_GT(test, hits, 20);
	KUNIT_EXPECT_LT(test, hits, 80);
}

/* All count; the first whose turn it is strikes. */
static void several(struct kunit *test)
{
	struct mrsoft_rule_state state;
	char got[7];

	KUNIT_ASSERT_EQ(test, add(test, "drop nth=2"), 0);
	KUNIT_ASSERT_EQ(test, add(test, "corrupt every=2"), 0);
	KUNIT_ASSERT_EQ(test, add(test, "reorder nth=3"), 0);
	packets(test, got, 6);
	KUNIT_EXPECT_STREQ(test, got, ".drc.c");
	KUNIT_ASSERT_TRUE(test, mrsoft_inject_read(test->priv, 1, &state));
	KUNIT_EXPECT_EQ(test, state.seen, 6);
	KUNIT_EXPECT_EQ(test, state.hits, 2);
	KUNIT_EXPECT_EQ(test, state.rule.id, 2);
	KUNIT_EXPECT_FALSE(test, mrsoft_inject_read(test->priv, 3, &state));
}

/* The core's management is struck by its number only. */
static void gsi(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, add(test, "drop every=1"), 0);
	KUNIT_EXPECT_EQ(test, packet(test, 1, false), '.');
	KUNIT_EXPECT_EQ(test, packet(test, 2, false), 'd');
	KUNIT_ASSERT_EQ(test, add(test, "drop qp=1"), 0);
	KUNIT_EXPECT_EQ(test, packet(test, 1, false), 'd');
}

static void bounded(struct kunit *test)
{
	struct mrsoft_stats *stats = test->priv;
	struct mrsoft_rule_state state;
	u32 i;

	KUNIT_EXPECT_FALSE(test, mrsoft_inject_on(stats));
	for (i = 0; i < MRSOFT_MAX_RULES; i++)
		KUNIT_ASSERT_EQ(test, add(test, "drop"), 0);
	KUNIT_EXPECT_EQ(test, add(test, "drop"), -ENOSPC);
	KUNIT_EXPECT_EQ(test, mrsoft_inject_clear(stats, 3), 0);
	KUNIT_EXPECT_EQ(test, mrsoft_inject_clear(stats, 3), -ENOENT);
	KUNIT_EXPECT_TRUE(test, mrsoft_inject_read(stats, 2, &state));
	KUNIT_EXPECT_EQ(test, state.rule.id, 4);
	/* numbers do not come again */
	KUNIT_EXPECT_EQ(test, add(test, "drop"), 0);
	KUNIT_EXPECT_TRUE(test, mrsoft_inject_read(stats, MRSOFT_MAX_RULES - 1,
						   &state));
	KUNIT_EXPECT_EQ(test, state.rule.id, MRSOFT_MAX_RULES + 1);
	KUNIT_EXPECT_TRUE(test, mrsoft_inject_on(stats));
	KUNIT_EXPECT_EQ(test, mrsoft_inject_clear(stats, 0), 0);
	KUNIT_EXPECT_FALSE(test, mrsoft_inject_on(stats));
	KUNIT_EXPECT_EQ(test, mrsoft_inject_clear(stats, 0), 0);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(good_rules),
	KUNIT_CASE(bad_rules),
	KUNIT_CASE(long_rules),
	KUNIT_CASE(fill_in),
	KUNIT_CASE(schedules),
	KUNIT_CASE(by_chance),
	KUNIT_CASE(several),
	KUNIT_CASE(gsi),
	KUNIT_CASE(bounded),
	{}
};

static struct kunit_suite suite = {
	.name = "mrsoft_inject",
	.init = init,
	.exit = finish,
	.test_cases = cases,
};

kunit_test_suite(suite);

MODULE_DESCRIPTION("Tests of mrsoft's injection rules");
MODULE_LICENSE("GPL");
