/* SPDX-License-Identifier: GPL-2.0 */
/* Shadow of <linux/mm.h>: vm_flags_set() and vm_flags_clear(). */
#ifndef MRSOFT_COMPAT_LINUX_MM_H
#define MRSOFT_COMPAT_LINUX_MM_H

#include_next <linux/mm.h>

#ifndef MRSOFT_HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

#endif
