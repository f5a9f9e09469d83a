// SPDX-License-Identifier: GPL-2.0
/*
 * hca.c - tables and counters of one device
 *
 * Owns:     start and end of struct mrsoft_hca.
 * Not here: what is in the tables (mr.c, qp.c, ah.c), the ib_device (dev.c).
 * Locks:    each table has its own.
 * Lifetime: outlives every object of the device; lookups of other devices
 *           reach it under RCU, so it is freed after a grace period.
 * Context:  process.
 */
#include <linux/random.h>

#include "hca.h"
#include "qp.h"

/**
 * mrsoft_hca_init - make the tables ready
 * @hca: zeroed memory
 * @wq: where queues go on, outlives @hca
 *
 * QPNs start at a random place, so that a peer that remembers a QPN of the
 * device's life before does not meet a new QP there.
 *
 * Context: process.
 */
void mrsoft_hca_init(struct mrsoft_hca *hca, struct workqueue_struct *wq)
{
	mrsoft_table_init(&hca->keys, &hca->stats);
	xa_init_flags(&hca->qps, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&hca->ahs, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
	hca->next_qpn = MRSOFT_QPN_MIN + get_random_u32() % (MRSOFT_QPN_MAX / 2);
	hca->wq = wq;
}

/**
 * mrsoft_hca_destroy - the end of the tables
 * @hca: all its objects are gone
 *
 * Context: process.
 */
void mrsoft_hca_destroy(struct mrsoft_hca *hca)
{
	WARN_ON(!xa_empty(&hca->qps));
	WARN_ON(!xa_empty(&hca->ahs));
	WARN_ON(hca->num_groups);
	xa_destroy(&hca->qps);
	xa_destroy(&hca->ahs);
	mrsoft_table_destroy(&hca->keys);
}
