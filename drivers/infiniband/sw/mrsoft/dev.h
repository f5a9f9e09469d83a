/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dev.h - a device: one netdev, one port
 *
 * Layer 6.
 */
#ifndef MRSOFT_DEV_H
#define MRSOFT_DEV_H

#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "hca.h"
#include "limits.h"
#include "mad.h"
#include "parent.h"

#define MRSOFT_VERSION	"0.1.0"
#define MRSOFT_PORT	1

/* Objects whose number is limited, see limits.h. */
enum mrsoft_object {
	MRSOFT_OBJ_PD,
	MRSOFT_OBJ_AH,
	MRSOFT_OBJ_CQ,
	MRSOFT_OBJ_SRQ,
	MRSOFT_OBJ_COUNT
};

/**
 * struct mrsoft_dev - device
 *
 * Letters: I set before the device is on the list; D protected by the list's
 * mutex; A atomic.
 *
 * @ib: the core's part, must be first
 * @hca: tables and counters
 * @pma: where the counters of the port start
 * @parent: what stands above it in sysfs; its link is D
 * @netdev: D, whose port it is, held; NULL once the device is torn down, and
 *	stable for those who may call its operations
 * @tracker: of that hold
 * @entry: D, on the list of all devices; the list owns a reference to
 *	@ib.dev, so that memory outlives whoever unregisters the device
 * @reap: takes the device off the list once it is torn down
 * @leaving: A, the netdev goes: the device must not stay registered
 * @objects: A, how many of each there are
 * @dm_bytes: A, of device memory that is given out, whole pages
 * @srqn: A, number of the youngest SRQ
 */
struct mrsoft_dev {
	struct ib_device ib;
	struct mrsoft_hca hca;
	struct mrsoft_pma pma;
	struct mrsoft_parent parent;
	struct net_device *netdev;
	netdevice_tracker tracker;
	struct list_head entry;
	struct work_struct reap;
	bool leaving;
	atomic_t objects[MRSOFT_OBJ_COUNT];
	atomic64_t dm_bytes;
	atomic_t srqn;
};

static inline struct mrsoft_dev *mrsoft_dev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct mrsoft_dev, ib);
}

/**
 * mrsoft_dev_claim - count a new object
 * @dev: its device
 * @object: what it is
 *
 * Here and not in dev.c, which stands above the verbs.
 *
 * Context: any.
 * Return: 0, or -ENOMEM when the device has as many as it says it can have.
 */
static inline int mrsoft_dev_claim(struct mrsoft_dev *dev,
				   enum mrsoft_object object)
{
	static const u32 max[MRSOFT_OBJ_COUNT] = {
		[MRSOFT_OBJ_PD]		= MRSOFT_MAX_PD,
		[MRSOFT_OBJ_AH]		= MRSOFT_MAX_AH,
		[MRSOFT_OBJ_CQ]		= MRSOFT_MAX_CQ,
		[MRSOFT_OBJ_SRQ]	= MRSOFT_MAX_SRQ,
	};

	if (atomic_inc_return(&dev->objects[object]) <= max[object])
		return 0;
	atomic_dec(&dev->objects[object]);
	return -ENOMEM;
}

/**
 * mrsoft_dev_release - an object is gone
 * @dev: its device
 * @object: what it was
 *
 * Context: any.
 */
static inline void mrsoft_dev_release(struct mrsoft_dev *dev,
				      enum mrsoft_object object)
{
	atomic_dec(&dev->objects[object]);
}

/* A number for people: nothing is found by it, so it need not be free. */
static inline u32 mrsoft_dev_next_srqn(struct mrsoft_dev *dev)
{
	return atomic_inc_return(&dev->srqn) & 0xffffff;
}

int mrsoft_dev_add(const char *name, struct net_device *netdev,
		   struct workqueue_struct *wq);
void mrsoft_dev_netdev_event(struct net_device *netdev, unsigned long event);
void mrsoft_dev_remove_all(void);

#endif /* MRSOFT_DEV_H */
