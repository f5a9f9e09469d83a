/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hca.h - the part of a device that queues and paths know
 *
 * Layer 3.  No ib_device, no netdev in here: KUnit makes one from nothing.
 */
#ifndef MRSOFT_HCA_H
#define MRSOFT_HCA_H

#include <linux/if_ether.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "mr.h"
#include "status.h"

/**
 * struct mrsoft_hca - tables and counters of one device
 * @stats: counters, lock-free
 * @keys: MRs and MWs
 * @qps: QPN -> struct mrsoft_qp, read under RCU, written under its xa_lock
 * @next_qpn: cyclic allocation
 * @num_qps: A, of them, bounded by MRSOFT_MAX_QP
 * @ahs: number -> struct mrsoft_ah of user space, read under RCU
 * @next_ah: cyclic allocation
 * @wq: where queues go on when a caller's turn is over; WQ_MEM_RECLAIM
 * @port_up: A, the port is active (READ_ONCE)
 * @mtu: A, bytes of the port's active MTU (READ_ONCE)
 * @mac: of the netdev, for UD completions; read without a lock, may be torn
 *	while the netdev's address changes
 * @net: I, opaque identity of the network namespace of the netdev
 */
struct mrsoft_hca {
	struct mrsoft_stats stats;
	struct mrsoft_table keys;
	struct xarray qps;
	u32 next_qpn;
	atomic_t num_qps;
	struct xarray ahs;
	u32 next_ah;
	struct workqueue_struct *wq;
	bool port_up;
	u32 mtu;
	u8 mac[ETH_ALEN];
	const void *net;
};

#endif /* MRSOFT_HCA_H */
