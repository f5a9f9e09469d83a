/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shadow of <kunit/test.h>: helpers that came after 6.1, and for a kernel that was
 * built without KUnit, as Debian's are, the part of it that kunit/live uses.
 */
#ifndef MRSOFT_COMPAT_KUNIT_TEST_H
#define MRSOFT_COMPAT_KUNIT_TEST_H

#if IS_ENABLED(CONFIG_KUNIT)
#include_next <kunit/test.h>
#else
#include <kunit/mrsoft_small.h>
#endif

#ifndef KUNIT_EXPECT_MEMEQ
#define KUNIT_EXPECT_MEMEQ(test, left, right, size) \
	KUNIT_EXPECT_EQ(test, memcmp(left, right, size), 0)
#define KUNIT_ASSERT_MEMEQ(test, left, right, size) \
	KUNIT_ASSERT_EQ(test, memcmp(left, right, size), 0)
#endif

#ifndef KUNIT_EXPECT_MEMNEQ
#define KUNIT_EXPECT_MEMNEQ(test, left, right, size) \
	KUNIT_EXPECT_NE(test, memcmp(left, right, size), 0)
#define KUNIT_ASSERT_MEMNEQ(test, left, right, size) \
	KUNIT_ASSERT_NE(test, memcmp(left, right, size), 0)
#endif

#ifndef KUNIT_CASE_SLOW
#define KUNIT_CASE_SLOW(test_name)	KUNIT_CASE(test_name)
#endif

#ifndef KUNIT_ARRAY_PARAM_DESC
#define KUNIT_ARRAY_PARAM_DESC(name, array, desc_member)			\
	static void name##_get_desc(typeof(&(array)[0]) param, char *desc)	\
	{									\
		strscpy(desc, param->desc_member, KUNIT_PARAM_DESC_SIZE);	\
	}									\
	KUNIT_ARRAY_PARAM(name, array, name##_get_desc)
#endif

#endif
