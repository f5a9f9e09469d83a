/* SPDX-License-Identifier: GPL-2.0 */
/* debugfs_change_name(): older kernels rename with both folders and a name. */
#ifndef MRSOFT_COMPAT_LINUX_DEBUGFS_H
#define MRSOFT_COMPAT_LINUX_DEBUGFS_H

#include_next <linux/debugfs.h>

#ifndef MRSOFT_HAVE_DEBUGFS_CHANGE_NAME
#define debugfs_change_name(d, fmt, name)				\
({									\
	struct dentry *mrsoft_old = (d);					\
									\
	PTR_ERR_OR_ZERO(debugfs_rename(mrsoft_old->d_parent, mrsoft_old,	\
				       mrsoft_old->d_parent, name));	\
})
#endif

#endif
