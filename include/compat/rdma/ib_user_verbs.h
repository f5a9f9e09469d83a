/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shadow of <rdma/ib_user_verbs.h>: the numbers of FLUSH and ATOMIC WRITE. A user
 * may write them into a ring whatever the kernel knows.
 */
#ifndef MRSOFT_COMPAT_RDMA_IB_USER_VERBS_H
#define MRSOFT_COMPAT_RDMA_IB_USER_VERBS_H

#include <linux/bits.h>
#include_next <rdma/ib_user_verbs.h>

#ifndef MRSOFT_HAVE_IB_UVERBS_WR_FLUSH
#define IB_UVERBS_WC_FLUSH			8
#define IB_UVERBS_WC_ATOMIC_WRITE		9
#define IB_UVERBS_WR_FLUSH			14
#define IB_UVERBS_WR_ATOMIC_WRITE		15
#define IB_UVERBS_DEVICE_FLUSH_GLOBAL		BIT_ULL(38)
#define IB_UVERBS_DEVICE_FLUSH_PERSISTENT	BIT_ULL(39)
#define IB_UVERBS_DEVICE_ATOMIC_WRITE		BIT_ULL(40)

/* IBA A19.4.1.1 Placement Types */
enum ib_placement_type {
	IB_FLUSH_GLOBAL = 1U << 0,
	IB_FLUSH_PERSISTENT = 1U << 1,
};

/* IBA A19.4.1.2 Selectivity Level */
enum ib_selectivity_level {
	IB_FLUSH_RANGE = 0,
	IB_FLUSH_MR,
};
#endif

#endif
