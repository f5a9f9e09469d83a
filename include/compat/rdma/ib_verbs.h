/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shadow of <rdma/ib_verbs.h>: names that an older kernel lacks. Operations whose
 * arguments changed are in <mrsoft_ops.h>.
 */
#ifndef MRSOFT_COMPAT_RDMA_IB_VERBS_H
#define MRSOFT_COMPAT_RDMA_IB_VERBS_H

#include_next <rdma/ib_verbs.h>

#include <linux/netdevice.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>

/* Hints for the processor that a write is meant for: never given to a soft HCA. */
struct ib_dmah;

#ifndef MRSOFT_HAVE_IB_WR_FLUSH
/*
 * Macros, not members of the enums: switch over an int or u32, else gcc warns.
 * Where they are missing IB_WC_REG_MR has the value of IB_WC_FLUSH (8), and
 * IB_WC_MASKED_COMP_SWAP that of IB_WC_ATOMIC_WRITE (9): they cannot be cases of
 * one switch.
 */
#define IB_WR_FLUSH			IB_UVERBS_WR_FLUSH
#define IB_WR_ATOMIC_WRITE		IB_UVERBS_WR_ATOMIC_WRITE
#define IB_WC_FLUSH			IB_UVERBS_WC_FLUSH
#define IB_WC_ATOMIC_WRITE		IB_UVERBS_WC_ATOMIC_WRITE
#define IB_ACCESS_FLUSH_GLOBAL		IB_UVERBS_ACCESS_FLUSH_GLOBAL
#define IB_ACCESS_FLUSH_PERSISTENT	IB_UVERBS_ACCESS_FLUSH_PERSISTENT
/* Not claimed: this kernel gives no region the right. */
#define IB_DEVICE_FLUSH_GLOBAL		0
#define IB_DEVICE_FLUSH_PERSISTENT	0
#define IB_DEVICE_ATOMIC_WRITE		IB_UVERBS_DEVICE_ATOMIC_WRITE
#endif

#ifndef MRSOFT_HAVE_IB_ODP_SUPPORT_FLUSH
#define IB_ODP_SUPPORT_FLUSH		(IB_DEVICE_FLUSH_GLOBAL ? BIT(6) : 0)
#define IB_ODP_SUPPORT_ATOMIC_WRITE	BIT(7)
#endif

#ifndef MRSOFT_HAVE_IB_VIRT_DMA_TO_PTR
static inline void *ib_virt_dma_to_ptr(u64 dma_addr)
{
	/* a device without DMA: the address is the kernel's own */
	return (void *)(uintptr_t)dma_addr;
}

static inline struct page *ib_virt_dma_to_page(u64 dma_addr)
{
	return virt_to_page(ib_virt_dma_to_ptr(dma_addr));
}
#endif

#ifndef MRSOFT_HAVE_IB_DEVICE_GET_NETDEV
/*
 * Not exported here. Good only for a device that offers its netdev by the
 * get_netdev operation, which every mrsoft device does.
 */
static inline struct net_device *
ib_device_get_netdev(struct ib_device *ib_dev, u32 port)
{
	if (!ib_dev->ops.get_netdev)
		return NULL;
	return ib_dev->ops.get_netdev(ib_dev, port);
}
#endif

#ifndef MRSOFT_HAVE_IB_MARK_NAME
static inline void ib_mark_name_assigned_by_user(struct ib_device *ibdev)
{
}
#endif

#ifndef MRSOFT_HAVE_IB_GET_CURR_PORT_STATE
static inline enum ib_port_state
ib_get_curr_port_state(struct net_device *net_dev)
{
	return netif_running(net_dev) && netif_carrier_ok(net_dev) ?
		       IB_PORT_ACTIVE : IB_PORT_DOWN;
}
#endif

#endif
