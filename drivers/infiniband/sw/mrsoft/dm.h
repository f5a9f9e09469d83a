/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dm.h - verbs on device memory
 *
 * Layer 6.
 */
#ifndef MRSOFT_DM_H
#define MRSOFT_DM_H

#include <rdma/ib_verbs.h>

extern const struct ib_device_ops mrsoft_dm_ops;

#endif /* MRSOFT_DM_H */
