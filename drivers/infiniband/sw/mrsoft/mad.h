/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mad.h - management datagrams: the performance counters of the port
 *
 * Layer 6.
 */
#ifndef MRSOFT_MAD_H
#define MRSOFT_MAD_H

#include <linux/spinlock.h>
#include <rdma/ib_mad.h>

#include "status.h"

/* What the counters of both attributes are made from. */
enum mrsoft_pma_value {
	MRSOFT_PMA_RCV_ERRORS,		/* packets */
	MRSOFT_PMA_XMIT_DISCARDS,	/* packets */
	MRSOFT_PMA_XMIT_DATA,		/* bytes */
	MRSOFT_PMA_RCV_DATA,		/* bytes */
	MRSOFT_PMA_XMIT_PACKETS,
	MRSOFT_PMA_RCV_PACKETS,
	MRSOFT_PMA_VALUES
};

/**
 * struct mrsoft_pma - where the counters of a port start
 * @lock: protects the rest
 * @base: values when PortCounters was cleared
 * @base_ext: and PortCountersExtended, which are registers of their own
 */
struct mrsoft_pma {
	spinlock_t lock;	/* both bases */
	u64 base[MRSOFT_PMA_VALUES];
	u64 base_ext[MRSOFT_PMA_VALUES];
};

extern const struct ib_device_ops mrsoft_mad_ops;

void mrsoft_pma_init(struct mrsoft_pma *pma);
bool mrsoft_mad_answer(struct mrsoft_pma *pma, struct mrsoft_stats *stats,
		       const struct ib_mad *in, struct ib_mad *out);

#endif /* MRSOFT_MAD_H */
