/* SPDX-License-Identifier: GPL-2.0 */
/* Shadow of <linux/module.h>: MODULE_IMPORT_NS("NAME") takes a string everywhere. */
#ifndef MRSOFT_COMPAT_LINUX_MODULE_H
#define MRSOFT_COMPAT_LINUX_MODULE_H

#include_next <linux/module.h>

#ifndef MRSOFT_HAVE_STRING_NS
#undef MODULE_IMPORT_NS
#define MODULE_IMPORT_NS(ns)	MODULE_INFO(import_ns, ns)
#endif

#endif
