/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For trace headers: mrsoft_assign_str(dst, src) where a 7.3 driver would write
 * __assign_str(dst). Older kernels want the source a second time. Not a shadow
 * header, since <trace/trace_events.h> includes its stages by quoted names.
 */
#ifndef MRSOFT_TRACE_COMPAT_H
#define MRSOFT_TRACE_COMPAT_H

#ifdef MRSOFT_HAVE_ASSIGN_STR_1
#define mrsoft_assign_str(dst, src)	__assign_str(dst)
#else
#define mrsoft_assign_str(dst, src)	__assign_str(dst, src)
#endif

#endif
