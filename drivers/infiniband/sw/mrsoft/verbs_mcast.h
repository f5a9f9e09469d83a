/* SPDX-License-Identifier: GPL-2.0 */
/*
 * verbs_mcast.h - verbs on multicast groups
 *
 * Layer 6.
 */
#ifndef MRSOFT_VERBS_MCAST_H
#define MRSOFT_VERBS_MCAST_H

#include <rdma/ib_verbs.h>

extern const struct ib_device_ops mrsoft_verbs_mcast_ops;

#endif /* MRSOFT_VERBS_MCAST_H */
