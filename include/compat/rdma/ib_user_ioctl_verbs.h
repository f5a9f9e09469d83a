/* SPDX-License-Identifier: GPL-2.0 */
/* Shadow of <rdma/ib_user_ioctl_verbs.h>: the access bits of FLUSH. */
#ifndef MRSOFT_COMPAT_RDMA_IB_USER_IOCTL_VERBS_H
#define MRSOFT_COMPAT_RDMA_IB_USER_IOCTL_VERBS_H

#include <linux/bits.h>
#include_next <rdma/ib_user_ioctl_verbs.h>

#ifndef MRSOFT_HAVE_IB_UVERBS_ACCESS_FLUSH
#define IB_UVERBS_ACCESS_FLUSH_GLOBAL		BIT(8)
#define IB_UVERBS_ACCESS_FLUSH_PERSISTENT	BIT(9)
#endif

#endif
