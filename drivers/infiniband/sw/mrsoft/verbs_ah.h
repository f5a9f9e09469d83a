/* SPDX-License-Identifier: GPL-2.0 */
/*
 * verbs_ah.h - verbs on address handles
 *
 * Layer 6.
 */
#ifndef MRSOFT_VERBS_AH_H
#define MRSOFT_VERBS_AH_H

#include <rdma/ib_verbs.h>

extern const struct ib_device_ops mrsoft_verbs_ah_ops;

#endif /* MRSOFT_VERBS_AH_H */
