// SPDX-License-Identifier: GPL-2.0
/*
 * parent.c - where a device stands in sysfs
 *
 * Programs find the netdev of an RDMA device in .../device/net/, as below the PCI
 * function of hardware.  Ours has a device of the kernel's own kind above it: no
 * bus, no driver and no modalias, by which a provider library for hardware
 * would take it for its own.
 *
 * Owns:     /sys/devices/mrsoft.N and the folder net/ in it.
 * Not here: the netdev, when it comes and goes (dev.c).
 * Locks:    the caller's devs_lock (dev.c) keeps show, rename and hide apart.
 * Lifetime: from before the RDMA device is registered until after it is
 *           unregistered.  All memory and each release function is the
 *           kernel's, so that who has a file open may outlive this module.
 * Context:  process; changes of the link under RTNL.
 * Spec:     none
 * Tests:    tools/testing/suites/link.sh, tools/testing/suites/devinfo.sh
 */
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/kobject.h>
#include <linux/netdevice.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "parent.h"

/**
 * mrsoft_parent_make - make the device
 * @parent: zeroed memory
 * @node: memory node of the netdev, or NUMA_NO_NODE
 *
 * Context: process, without RTNL.
 * Return: 0 or an error of the driver core; then there is none.
 */
int mrsoft_parent_make(struct mrsoft_parent *parent, int node)
{
	static atomic_t last = ATOMIC_INIT(-1);
	struct device *device;
	struct kobject *net;
	char name[sizeof("mrsoft.") + 10];

	/* not the RDMA device's name: that one can be changed */
	snprintf(name, sizeof(name), "mrsoft.%u",
		 (u32)atomic_inc_return(&last));
	device = root_device_register(name);
	if (IS_ERR(device))
		return PTR_ERR(device);
	set_dev_node(device, node);
	net = kobject_create_and_add("net", &device->kobj);
	if (!net) {
		root_device_unregister(device);
		return -ENOMEM;
	}
	parent->device = device;
	parent->net = net;
	return 0;
}

/**
 * mrsoft_parent_show - the netdev has its link in net/
 * @parent: made, shows none
 * @netdev: registered
 *
 * Without memory there is no link, and all else works.
 *
 * Context: process, under RTNL.
 */
void mrsoft_parent_show(struct mrsoft_parent *parent,
			struct net_device *netdev)
{
	if (!sysfs_create_link(parent->net, &netdev->dev.kobj, netdev->name))
		strscpy(parent->shown, netdev->name, sizeof(parent->shown));
}

/**
 * mrsoft_parent_rename - the netdev has another name
 * @parent: made
 * @netdev: with the new one
 *
 * One that is not shown any more stays so.
 *
 * Context: process, under RTNL.
 */
void mrsoft_parent_rename(struct mrsoft_parent *parent,
			  struct net_device *netdev)
{
	if (!parent->shown[0] || !strcmp(parent->shown, netdev->name))
		return;
	/* not sysfs_rename_link(): it wants a folder of one network namespace */
	mrsoft_parent_hide(parent);
	mrsoft_parent_show(parent, netdev);
}

/**
 * mrsoft_parent_hide - the netdev goes
 * @parent: made
 *
 * Context: process, under RTNL.
 */
void mrsoft_parent_hide(struct mrsoft_parent *parent)
{
	if (!parent->shown[0])
		return;
	sysfs_remove_link(parent->net, parent->shown);
	parent->shown[0] = '\0';
}

/**
 * mrsoft_parent_free - the end of the device
 * @parent: made or not; nothing stands below it and nobody shows or hides
 *
 * Context: process, without a lock that a reader of sysfs takes.
 */
void mrsoft_parent_free(struct mrsoft_parent *parent)
{
	if (!parent->device)
		return;
	/* with what is in it */
	kobject_del(parent->net);
	kobject_put(parent->net);
	root_device_unregister(parent->device);
	parent->device = NULL;
}
