/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of KUnit that kunit/live uses, for a kernel that was built without it:
 * suites, cases, expectations, assertions that end the case, deferred actions,
 * KTAP in the log. A module that has suites links kunit/live/small.o as well.
 */
#ifndef MRSOFT_COMPAT_KUNIT_SMALL_H
#define MRSOFT_COMPAT_KUNIT_SMALL_H

#include <linux/err.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/types.h>

typedef void (kunit_action_t)(void *);

struct kunit {
	void *priv;
	const char *name;
	spinlock_t lock;	/* actions, failed */
	struct list_head actions;
	bool failed;
};

struct kunit_case {
	void (*run_case)(struct kunit *test);
	const char *name;
};

struct kunit_suite {
	const char name[256];
	int (*suite_init)(struct kunit_suite *suite);
	void (*suite_exit)(struct kunit_suite *suite);
	int (*init)(struct kunit *test);
	void (*exit)(struct kunit *test);
	struct kunit_case *test_cases;
};

#define KUNIT_CASE(test_name) { .run_case = test_name, .name = #test_name }

extern struct kunit_suite *mrsoft_kunit_suites[];

__printf(4, 5)
void mrsoft_kunit_fail(struct kunit *test, bool abort, const char *where,
		       const char *fmt, ...);

int kunit_add_action_or_reset(struct kunit *test, kunit_action_t *func,
			      void *ctx);
void kunit_release_action(struct kunit *test, kunit_action_t *func, void *ctx);

#define kunit_info(test, fmt, ...) \
	pr_info("    # %s: " fmt "\n", (test)->name, ##__VA_ARGS__)

/* Once in a module: small.o runs them when it is loaded. */
#define kunit_test_suites(...) \
	struct kunit_suite *mrsoft_kunit_suites[] = { __VA_ARGS__, NULL }

#define MRSOFT_KUNIT_WHERE	__FILE__ ":" __stringify(__LINE__)

#define MRSOFT_KUNIT_TRUE(test, cond, abort, text, fmt, ...)		\
do {									\
	if (!(cond))							\
		mrsoft_kunit_fail(test, abort, MRSOFT_KUNIT_WHERE,	\
				  "%s " fmt, text, ##__VA_ARGS__);	\
} while (0)

#define MRSOFT_KUNIT_BIN(test, left, op, right, abort, fmt, ...)	\
do {									\
	const typeof(left) __left = (left);				\
	const typeof(right) __right = (right);				\
									\
	if (!(__left op __right))					\
		mrsoft_kunit_fail(test, abort, MRSOFT_KUNIT_WHERE,	\
				  "%s, %lld and %lld " fmt,		\
				  #left " " #op " " #right,		\
				  (long long)__left, (long long)__right,\
				  ##__VA_ARGS__);			\
} while (0)

#define KUNIT_FAIL(test, fmt, ...) \
	mrsoft_kunit_fail(test, false, MRSOFT_KUNIT_WHERE, fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_TRUE(test, c) \
	MRSOFT_KUNIT_TRUE(test, c, false, #c, "")
#define KUNIT_EXPECT_FALSE(test, c) \
	MRSOFT_KUNIT_TRUE(test, !(c), false, "not " #c, "")
#define KUNIT_EXPECT_TRUE_MSG(test, c, fmt, ...) \
	MRSOFT_KUNIT_TRUE(test, c, false, #c, fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_NULL(test, p) \
	MRSOFT_KUNIT_TRUE(test, !(p), false, "no " #p, "")
#define KUNIT_EXPECT_PTR_EQ(test, l, r) \
	MRSOFT_KUNIT_TRUE(test, (const void *)(l) == (const void *)(r), false, \
			  #l " == " #r, "")
#define KUNIT_EXPECT_MEMEQ(test, l, r, n) \
	MRSOFT_KUNIT_TRUE(test, !memcmp(l, r, n), false, #l " == " #r, "")
#define KUNIT_EXPECT_EQ(test, l, r) \
	MRSOFT_KUNIT_BIN(test, l, ==, r, false, "")
#define KUNIT_EXPECT_EQ_MSG(test, l, r, fmt, ...) \
	MRSOFT_KUNIT_BIN(test, l, ==, r, false, fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_NE(test, l, r) \
	MRSOFT_KUNIT_BIN(test, l, !=, r, false, "")
#define KUNIT_EXPECT_NE_MSG(test, l, r, fmt, ...) \
	MRSOFT_KUNIT_BIN(test, l, !=, r, false, fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_GE(test, l, r) \
	MRSOFT_KUNIT_BIN(test, l, >=, r, false, "")
#define KUNIT_EXPECT_GT(test, l, r) \
	MRSOFT_KUNIT_BIN(test, l, >, r, false, "")
#define KUNIT_EXPECT_LE(test, l, r) \
	MRSOFT_KUNIT_BIN(test, l, <=, r, false, "")
#define KUNIT_ASSERT_TRUE(test, c) \
	MRSOFT_KUNIT_TRUE(test, c, true, #c, "")
#define KUNIT_ASSERT_NOT_NULL(test, p) \
	MRSOFT_KUNIT_TRUE(test, p, true, "a " #p, "")
#define KUNIT_ASSERT_NOT_ERR_OR_NULL(test, p) \
	MRSOFT_KUNIT_TRUE(test, !IS_ERR_OR_NULL(p), true, "a " #p, "")
#define KUNIT_ASSERT_EQ(test, l, r) \
	MRSOFT_KUNIT_BIN(test, l, ==, r, true, "")
#define KUNIT_ASSERT_EQ_MSG(test, l, r, fmt, ...) \
	MRSOFT_KUNIT_BIN(test, l, ==, r, true, fmt, ##__VA_ARGS__)

#endif
