/* SPDX-License-Identifier: GPL-2.0 */
/*
 * resource.h - what rdma resource shows beyond what the core knows
 *
 * Layer 6.
 */
#ifndef MRSOFT_RESOURCE_H
#define MRSOFT_RESOURCE_H

#include <rdma/ib_verbs.h>

extern const struct ib_device_ops mrsoft_resource_ops;

#endif /* MRSOFT_RESOURCE_H */
