/* SPDX-License-Identifier: GPL-2.0 */
/* Shadow of <linux/module.h>: MODULE_IMPORT_NS("NAME") takes a string everywhere. */
#ifndef MRSOFT_COMPAT_LINUX_MODULE_H
#define MRSOFT_COMPAT_LINUX_MODULE_H

#include_next <linux/module.h>

#ifndef MRSOFT_HAVE_STRING_NS
#undef MODULE_IMPORT_NS
#define MODULE_IMPORT_NS(ns)	MODULE_INFO(import_ns, ns)
#elif defined(__CHECKER__)
/*
 * The kernel asserts that the text has no NUL inside, by a strlen() that sparse
 * 0.6.4 does not take for a constant. gcc still checks it.
 */
#undef MODULE_INFO
#define MODULE_INFO(tag, info)						\
	static const char __UNIQUE_ID(modinfo)[]			\
		__used __section(".modinfo") __aligned(1) =		\
		__MODULE_INFO_PREFIX __stringify(tag) "=" info
#endif

#endif
