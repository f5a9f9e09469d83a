/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shadow of <linux/slab.h>: the typed allocators, kzalloc_obj(*p) and kin, with
 * optional GFP flags (GFP_KERNEL when not given).
 */
#ifndef MRSOFT_COMPAT_LINUX_SLAB_H
#define MRSOFT_COMPAT_LINUX_SLAB_H

#include_next <linux/slab.h>

#include <linux/gfp.h>
#include <linux/overflow.h>

#ifndef default_gfp
#define __default_gfp(a, b, ...)	b
#define default_gfp(...)		__default_gfp(, ##__VA_ARGS__, GFP_KERNEL)
#endif

#ifndef kmalloc_obj
#define __alloc_objs(KMALLOC, GFP, TYPE, COUNT) \
	((TYPE *)KMALLOC(size_mul(sizeof(TYPE), COUNT), GFP))
#define __alloc_flex(KMALLOC, GFP, TYPE, FAM, COUNT) \
	((TYPE *)KMALLOC(struct_size((TYPE *)NULL, FAM, COUNT), GFP))

#define kmalloc_obj(P, ...) \
	__alloc_objs(kmalloc, default_gfp(__VA_ARGS__), typeof(P), 1)
#define kmalloc_objs(P, COUNT, ...) \
	__alloc_objs(kmalloc, default_gfp(__VA_ARGS__), typeof(P), COUNT)
#define kmalloc_flex(P, FAM, COUNT, ...) \
	__alloc_flex(kmalloc, default_gfp(__VA_ARGS__), typeof(P), FAM, COUNT)

#define kzalloc_obj(P, ...) \
	__alloc_objs(kzalloc, default_gfp(__VA_ARGS__), typeof(P), 1)
#define kvzalloc_obj(P, ...) \
	__alloc_objs(kvzalloc, default_gfp(__VA_ARGS__), typeof(P), 1)
#define kzalloc_objs(P, COUNT, ...) \
	__alloc_objs(kzalloc, default_gfp(__VA_ARGS__), typeof(P), COUNT)
#define kzalloc_flex(P, FAM, COUNT, ...) \
	__alloc_flex(kzalloc, default_gfp(__VA_ARGS__), typeof(P), FAM, COUNT)

#define kvmalloc_obj(P, ...) \
	__alloc_objs(kvmalloc, default_gfp(__VA_ARGS__), typeof(P), 1)
#define kvmalloc_objs(P, COUNT, ...) \
	__alloc_objs(kvmalloc, default_gfp(__VA_ARGS__), typeof(P), COUNT)
#define kvmalloc_flex(P, FAM, COUNT, ...) \
	__alloc_flex(kvmalloc, default_gfp(__VA_ARGS__), typeof(P), FAM, COUNT)

#define kvzalloc_obj(P, ...) \
	__alloc_objs(kvzalloc, default_gfp(__VA_ARGS__), typeof(P), 1)
#define kvzalloc_objs(P, COUNT, ...) \
	__alloc_objs(kvzalloc, default_gfp(__VA_ARGS__), typeof(P), COUNT)
#define kvzalloc_flex(P, FAM, COUNT, ...) \
	__alloc_flex(kvzalloc, default_gfp(__VA_ARGS__), typeof(P), FAM, COUNT)
#endif

#endif
