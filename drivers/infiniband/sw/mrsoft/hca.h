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

struct mrsoft_udp;

/**
 * enum mrsoft_path_mode - which paths a device may take
 * @MRSOFT_PATH_AUTO: local where it reaches, else the wire
 * @MRSOFT_PATH_LOCAL: local only
 * @MRSOFT_PATH_WIRE: always the wire
 */
enum mrsoft_path_mode {
	MRSOFT_PATH_AUTO,
	MRSOFT_PATH_LOCAL,
	MRSOFT_PATH_WIRE,
};

/**
 * struct mrsoft_late - packets that injection rules hold back
 * @lock: spin, BH: all but @work; a leaf
 * @packets: of impair.c
 * @num: packets
 * @closed: none is held back any more
 * @work: lets them go
 */
struct mrsoft_late {
	spinlock_t lock; /* the packets */
	struct list_head packets;
	u32 num;
	bool closed;
	struct delayed_work work;
};

/**
 * struct mrsoft_hca - tables and counters of one device
 * @stats: counters, lock-free
 * @keys: MRs and MWs
 * @qps: QPN -> struct mrsoft_qp, read under RCU, written under its xa_lock
 * @next_qpn: cyclic allocation
 * @num_qps: A, of them, bounded by MRSOFT_MAX_QP
 * @ahs: number -> struct mrsoft_ah of user space, read under RCU
 * @next_ah: cyclic allocation
 * @num_groups: RTNL, multicast groups, bounded by MRSOFT_MAX_MCAST_GRP
 * @wq: where queues go on when a caller's turn is over; WQ_MEM_RECLAIM
 * @port_up: A, the port is active (READ_ONCE)
 * @mtu: A, bytes of the port's active MTU (READ_ONCE)
 * @mac: of the netdev, for UD completions; read without a lock, may be torn
 *	while the netdev's address changes
 * @net: I, opaque identity of the network namespace of the netdev
 * @udp: sockets, NULL while the wire is off; once set it stays (smp_load_acquire)
 * @ifindex: I, of the netdev
 * @path_mode: A, enum mrsoft_path_mode (READ_ONCE)
 * @late: packets that injection rules hold back
 */
struct mrsoft_hca {
	struct mrsoft_stats stats;
	struct mrsoft_table keys;
	struct xarray qps;
	u32 next_qpn;
	atomic_t num_qps;
	struct xarray ahs;
	u32 next_ah;
	u32 num_groups;
	struct workqueue_struct *wq;
	bool port_up;
	u32 mtu;
	u8 mac[ETH_ALEN];
	const void *net;
	struct mrsoft_udp *udp;
	u32 ifindex;
	u8 path_mode;
	struct mrsoft_late late;
};

/* The sockets, or NULL while the wire is off. */
static inline struct mrsoft_udp *mrsoft_hca_udp(const struct mrsoft_hca *hca)
{
	/* pairs with the store by which the wire comes up */
	return smp_load_acquire(&hca->udp);
}

#endif /* MRSOFT_HCA_H */
