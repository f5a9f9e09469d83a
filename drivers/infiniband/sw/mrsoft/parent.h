/* SPDX-License-Identifier: GPL-2.0 */
/*
 * parent.h - where a device stands in sysfs
 *
 * Layer 6.
 */
#ifndef MRSOFT_PARENT_H
#define MRSOFT_PARENT_H

#include <linux/device.h>
#include <linux/if.h>

struct net_device;

/**
 * struct mrsoft_parent - a device in sysfs that stands above the RDMA device
 * @device: the core's memory, NULL: there is none
 * @net: its folder net/
 * @shown: name of the link there, empty: none
 */
struct mrsoft_parent {
	struct device *device;
	struct kobject *net;
	char shown[IFNAMSIZ];
};

int mrsoft_parent_make(struct mrsoft_parent *parent, int node);
void mrsoft_parent_show(struct mrsoft_parent *parent,
			struct net_device *netdev);
void mrsoft_parent_rename(struct mrsoft_parent *parent,
			  struct net_device *netdev);
void mrsoft_parent_hide(struct mrsoft_parent *parent);
void mrsoft_parent_free(struct mrsoft_parent *parent);

#endif /* MRSOFT_PARENT_H */
