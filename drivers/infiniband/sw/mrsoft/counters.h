/* SPDX-License-Identifier: GPL-2.0 */
/*
 * counters.h - counters of a port, as rdma statistic shows them
 *
 * Layer 6.
 */
#ifndef MRSOFT_COUNTERS_H
#define MRSOFT_COUNTERS_H

#include <rdma/ib_verbs.h>

extern const struct ib_device_ops mrsoft_counters_ops;

void mrsoft_counters_init(void);

#endif /* MRSOFT_COUNTERS_H */
