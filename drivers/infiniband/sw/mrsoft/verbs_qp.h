/* SPDX-License-Identifier: GPL-2.0 */
/*
 * verbs_qp.h - verbs on queue pairs
 *
 * Layer 6.
 */
#ifndef MRSOFT_VERBS_QP_H
#define MRSOFT_VERBS_QP_H

#include <rdma/ib_verbs.h>

extern const struct ib_device_ops mrsoft_verbs_qp_ops;

#endif /* MRSOFT_VERBS_QP_H */
