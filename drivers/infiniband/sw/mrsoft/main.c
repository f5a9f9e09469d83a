// SPDX-License-Identifier: GPL-2.0
/*
 * main.c - module ladder, rdma link, netdev events
 *
 * Owns:     the workqueue, the link type "mrsoft", words for a refused link.
 * Not here: devices (dev.c).
 * Locks:    none of its own; newlink runs under the core's lock of link types.
 * Lifetime: the exit is the start read backwards; when the link type is gone no
 *           device is added, and when the workqueue is gone none is left.
 * Context:  process.
 * Spec:     none
 * Tests:    tools/testing/suites/link.sh
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <rdma/rdma_netlink.h>

#include "counters.h"
#include "dev.h"
#include "diag.h"
#include "fault.h"
#include "rx.h"
#include "udp.h"

static struct workqueue_struct *wq;

/* lo and tun have no Ethernet header, but IP addresses, which RoCEv2 needs. */
static bool can_carry(const struct net_device *netdev)
{
	return netdev->type == ARPHRD_ETHER ||
	       netdev->type == ARPHRD_LOOPBACK ||
	       netdev->type == ARPHRD_NONE;
}

static int newlink(const char *name, struct net_device *netdev)
{
	int err;

	if (!can_carry(netdev)) {
		pr_info("%s: %s is neither Ethernet nor a plain IP interface\n",
			name, netdev->name);
		return -EINVAL;
	}
	err = mrsoft_dev_add(name, netdev, wq);
	switch (err) {
	case 0:
		/* By the core's rule, which is written for hardware ports. */
		if (is_vlan_dev(netdev))
			pr_info("%s: addresses of %s become GIDs of a device on %s only\n",
				name, netdev->name,
				vlan_dev_real_dev(netdev)->name);
		break;
	case -EBUSY:
		pr_info("%s: %s has an mrsoft device already\n", name,
			netdev->name);
		return -EEXIST;
	case -EEXIST:
		pr_info("%s: there is an RDMA device of this name already\n",
			name);
		break;
	case -ENODEV:
		pr_info("%s: %s is being removed\n", name, netdev->name);
		break;
	default:
		pr_info("%s: the device on %s could not be registered: error %d\n",
			name, netdev->name, err);
	}
	return err;
}

static struct rdma_link_ops link_ops = {
	.type = "mrsoft",
	.newlink = newlink,
};

static int netdev_event(struct notifier_block *nb, unsigned long event,
			void *info)
{
	mrsoft_dev_netdev_event(netdev_notifier_info_to_dev(info), event);
	return NOTIFY_DONE;
}

static struct notifier_block netdev_nb = {
	.notifier_call = netdev_event,
};

static int __init mrsoft_init(void)
{
	int err;

	mrsoft_counters_init();
	mrsoft_rx_init();
	wq = alloc_workqueue("mrsoft", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!wq)
		return -ENOMEM;
	err = mrsoft_fault_init();
	if (err)
		goto destroy_wq;
	err = mrsoft_udp_init();
	if (err)
		goto fault_exit;
	err = register_netdevice_notifier(&netdev_nb);
	if (err)
		goto exit_udp;
	err = mrsoft_diag_init();
	if (err)
		goto unregister_nb;
	rdma_link_register(&link_ops);
	return 0;

unregister_nb:
	unregister_netdevice_notifier(&netdev_nb);
exit_udp:
	mrsoft_udp_exit();
fault_exit:
	mrsoft_fault_exit();
destroy_wq:
	destroy_workqueue(wq);
	return err;
}

static void __exit mrsoft_exit(void)
{
	/* Waits for a newlink that is running, which ends by itself. */
	rdma_link_unregister(&link_ops);
	mrsoft_dev_remove_all();
	mrsoft_diag_exit();
	unregister_netdevice_notifier(&netdev_nb);
	/* Waits for reapers and what QPs left queued: nothing is added now. */
	destroy_workqueue(wq);
	mrsoft_udp_exit();
	/* Page faults that nobody waits for any more. */
	mrsoft_fault_exit();
	/* RCU callbacks of ours that free memory of devices and QPs. */
	rcu_barrier();
}

module_init(mrsoft_init);
module_exit(mrsoft_exit);

MODULE_AUTHOR("The mrsoft developers");
MODULE_DESCRIPTION("Software RDMA HCA: RoCEv2 over any network device");
MODULE_LICENSE("GPL");
MODULE_VERSION(MRSOFT_VERSION);
MODULE_ALIAS_RDMA_LINK("mrsoft");
MODULE_SOFTDEP("post: ib_uverbs");
