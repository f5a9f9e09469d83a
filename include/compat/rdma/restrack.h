/* SPDX-License-Identifier: GPL-2.0 */
/* Shadow of <rdma/restrack.h>: rdma_restrack_count() is a u32. */
#ifndef MRSOFT_COMPAT_RDMA_RESTRACK_H
#define MRSOFT_COMPAT_RDMA_RESTRACK_H

#include_next <rdma/restrack.h>

#ifndef MRSOFT_HAVE_RESTRACK_COUNT_U32
#define rdma_restrack_count(...)	((u32)rdma_restrack_count(__VA_ARGS__))
#endif

#endif
