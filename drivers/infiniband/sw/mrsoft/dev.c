// SPDX-License-Identifier: GPL-2.0
/*
 * dev.c - a device: one netdev, one port
 *
 * Owns:     struct mrsoft_dev from newlink to the last reference; the list of
 *           all devices; device and port attributes; GID and port events.
 * Not here: words for the user about refused links (main.c), verbs.
 * Locks:    devs_lock (mutex) protects the list and each device's netdev; it is
 *           taken inside RTNL and inside the core's unregistration lock.
 * Lifetime: listed -> registered -> unregistered by whoever comes first (link
 *           del, netdev, rmmod, rdma_rxe's exit) -> dealloc_driver tears it
 *           down -> the reaper takes it off the list -> freed after RCU.
 * Context:  process; netdev events under RTNL.
 * Spec:     IBA Vol 1, 11.2.1 (HCA attributes), Annex A17 (RoCEv2)
 * Tests:    tools/testing/suites/link.sh
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ethtool.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <rdma/ib_mad.h>
#include <rdma/uverbs_ioctl.h>

#include "counters.h"
#include "demand.h"
#include "dev.h"
#include "diary.h"
#include "dm.h"
#include "impair.h"
#include "inject.h"
#include "limits.h"
#include "local.h"
#include "mad.h"
#include "mcast.h"
#include "parent.h"
#include "resource.h"
#include "udp.h"
#include "verbs.h"
#include "verbs_ah.h"
#include "verbs_mcast.h"
#include "verbs_qp.h"

/* IPv6, UDP, BTH, RETH, immediate data, ICRC: what stands around a payload. */
#define WIRE_OVERHEAD	(40 + 8 + 12 + 16 + 4 + 4)

/* As other soft devices: no IEEE company stands behind the first. */
#define VENDOR_ID	0xffffff
#define VENDOR_PART_ID	0x6d72

/* MRSOFT_VERSION as user space takes it apart: 16 bits for each number. */
#define FW_VERSION	(0ull << 32 | 1 << 16 | 0)

static DEFINE_MUTEX(devs_lock);
static LIST_HEAD(devs);

/* Memory that is not pinned: for all that a QP can do, and whole processes. */
static const struct ib_odp_caps odp_caps = {
	.general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT,
	.per_transport_caps = {
		.rc_odp_caps = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV |
			       IB_ODP_SUPPORT_WRITE | IB_ODP_SUPPORT_READ |
			       IB_ODP_SUPPORT_ATOMIC | IB_ODP_SUPPORT_SRQ_RECV |
			       IB_ODP_SUPPORT_FLUSH,
		.uc_odp_caps = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV |
			       IB_ODP_SUPPORT_WRITE | IB_ODP_SUPPORT_SRQ_RECV,
		.ud_odp_caps = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV |
			       IB_ODP_SUPPORT_SRQ_RECV,
	},
};

static int query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			struct ib_udata *udata)
{
	int err = ib_no_udata_io(udata);

	if (err)
		return err;
	*attr = (struct ib_device_attr) {
		.fw_ver = FW_VERSION,
		.sys_image_guid = ibdev->node_guid,
		.max_mr_size = MRSOFT_MAX_MR_SIZE,
		/* fast registration takes pages of 4 KiB and more */
		.page_size_cap = GENMASK(31, 12),
		.vendor_id = VENDOR_ID,
		.vendor_part_id = VENDOR_PART_ID,
		.hw_ver = 1,
		.max_qp = MRSOFT_MAX_QP,
		.max_qp_wr = MRSOFT_MAX_QP_WR,
		.device_cap_flags = IB_DEVICE_BAD_QKEY_CNTR |
				    IB_DEVICE_CURR_QP_STATE_MOD |
				    IB_DEVICE_PORT_ACTIVE_EVENT |
				    IB_DEVICE_SYS_IMAGE_GUID |
				    IB_DEVICE_RC_RNR_NAK_GEN |
				    IB_DEVICE_SRQ_RESIZE |
				    IB_DEVICE_MEM_MGT_EXTENSIONS |
				    IB_DEVICE_MEM_WINDOW |
				    IB_DEVICE_MEM_WINDOW_TYPE_2B |
				    IB_DEVICE_FLUSH_GLOBAL |
				    IB_DEVICE_ATOMIC_WRITE,
		.kernel_cap_flags = IBK_ALLOW_USER_UNREG |
				    IBK_SG_GAPS_REG |
				    (MRSOFT_ODP ? IBK_ON_DEMAND_PAGING : 0),
		.max_send_sge = MRSOFT_MAX_SGE,
		.max_recv_sge = MRSOFT_MAX_SGE,
		.max_sge_rd = MRSOFT_MAX_SGE,
		.max_cq = MRSOFT_MAX_CQ,
		.max_cqe = MRSOFT_MAX_CQE,
		.max_mr = MRSOFT_MAX_MR,
		.max_pd = MRSOFT_MAX_PD,
		.max_qp_rd_atom = MRSOFT_MAX_RD_ATOM,
		.max_res_rd_atom = MRSOFT_MAX_RD_ATOM * MRSOFT_MAX_QP,
		.max_qp_init_rd_atom = MRSOFT_MAX_RD_ATOM,
		.atomic_cap = IB_ATOMIC_GLOB,
		.max_mw = MRSOFT_MAX_MW,
		.max_mcast_grp = MRSOFT_MAX_MCAST_GRP,
		.max_mcast_qp_attach = MRSOFT_MAX_MCAST_QP_ATTACH,
		.max_total_mcast_qp_attach = MRSOFT_MAX_MCAST_TOTAL,
		.max_ah = MRSOFT_MAX_AH,
		.max_srq = MRSOFT_MAX_SRQ,
		.max_srq_wr = MRSOFT_MAX_SRQ_WR,
		.max_srq_sge = MRSOFT_MAX_SGE,
		.max_fast_reg_page_list_len = MRSOFT_MAX_FAST_REG_PAGES,
		.max_pkeys = MRSOFT_MAX_PKEYS,
		.cq_caps = {
			.max_cq_moderation_count = U16_MAX,
			.max_cq_moderation_period = U16_MAX,
		},
		/* device memory is not claimed: librxe has no call for it */
		.odp_caps = MRSOFT_ODP ? odp_caps : (struct ib_odp_caps){},
		/* 4.096 us * 2^n: enough for a peer whose CPU is busy */
		.local_ca_ack_delay = 15,
	};
	return 0;
}

/* Rates of the IBA, slowest first: the port shows the fastest that it can keep. */
static const struct rate {
	u32 mbps;
	u16 speed;
	u8 width;
} rates[] = {
	{ 0,		IB_SPEED_SDR,	IB_WIDTH_1X },
	{ 5000,		IB_SPEED_DDR,	IB_WIDTH_1X },
	{ 10000,	IB_SPEED_FDR10,	IB_WIDTH_1X },
	{ 14000,	IB_SPEED_FDR,	IB_WIDTH_1X },
	{ 20000,	IB_SPEED_DDR,	IB_WIDTH_4X },
	{ 25000,	IB_SPEED_EDR,	IB_WIDTH_1X },
	{ 40000,	IB_SPEED_FDR10,	IB_WIDTH_4X },
	{ 50000,	IB_SPEED_HDR,	IB_WIDTH_1X },
	{ 56000,	IB_SPEED_FDR,	IB_WIDTH_4X },
	{ 100000,	IB_SPEED_EDR,	IB_WIDTH_4X },
	{ 200000,	IB_SPEED_HDR,	IB_WIDTH_4X },
	{ 400000,	IB_SPEED_NDR,	IB_WIDTH_4X },
	{ 800000,	IB_SPEED_NDR,	IB_WIDTH_8X },
};

/*
 * Not ib_get_eth_speed(): that one prints a warning each time for a netdev
 * without a speed, such as a dummy, and every reader of sysfs comes here.
 */
static void query_speed(struct net_device *netdev, struct ib_port_attr *attr)
{
	struct ethtool_link_ksettings link;
	u32 mbps = SPEED_UNKNOWN;
	int i = ARRAY_SIZE(rates) - 1;

	rtnl_lock();
	if (netdev->reg_state == NETREG_REGISTERED &&
	    !__ethtool_get_link_ksettings(netdev, &link))
		mbps = link.base.speed;
	rtnl_unlock();
	if (mbps == (u32)SPEED_UNKNOWN)
		mbps = SPEED_1000;

	while (rates[i].mbps > mbps)
		i--;
	attr->active_speed = rates[i].speed;
	attr->active_width = rates[i].width;
}

static int query_port(struct ib_device *ibdev, u32 port,
		      struct ib_port_attr *attr)
{
	struct mrsoft_dev *dev = mrsoft_dev(ibdev);
	struct mrsoft_hca *hca = &dev->hca;

	if (port != MRSOFT_PORT)
		return -EINVAL;
	/* The core has zeroed the rest. */
	attr->state = ib_get_curr_port_state(dev->netdev);
	attr->phys_state = attr->state == IB_PORT_ACTIVE ?
				   IB_PORT_PHYS_STATE_LINK_UP :
			   netif_running(dev->netdev) ?
				   IB_PORT_PHYS_STATE_POLLING :
				   IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = ib_mtu_int_to_enum(READ_ONCE(hca->mtu));
	attr->phys_mtu = READ_ONCE(dev->netdev->mtu);
	attr->gid_tbl_len = MRSOFT_GID_TBL_LEN;
	attr->ip_gids = true;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = MRSOFT_MAX_MSG;
	attr->qkey_viol_cntr =
		atomic64_read(&hca->stats.reasons[MRSOFT_R_QKEY]);
	attr->pkey_tbl_len = MRSOFT_MAX_PKEYS;
	attr->max_vl_num = 1;
	query_speed(dev->netdev, attr);
	return 0;
}

static int query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (port != MRSOFT_PORT || index >= MRSOFT_MAX_PKEYS)
		return -EINVAL;
	*pkey = MRSOFT_PKEY_DEFAULT;
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int get_port_immutable(struct ib_device *ibdev, u32 port,
			      struct ib_port_immutable *immutable)
{
	if (port != MRSOFT_PORT)
		return -EINVAL;
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->pkey_tbl_len = MRSOFT_MAX_PKEYS;
	immutable->gid_tbl_len = MRSOFT_GID_TBL_LEN;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static void get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "%s", MRSOFT_VERSION);
}

static int modify_device(struct ib_device *ibdev, int mask,
			 struct ib_device_modify *attr)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (mask & IB_DEVICE_MODIFY_NODE_DESC)
		memcpy(ibdev->node_desc, attr->node_desc,
		       sizeof(ibdev->node_desc));
	return 0;
}

/*
 * The core has no other way to our netdev: had we given it by
 * ib_device_set_netdev(), rdma_rxe would find this device by its driver id and
 * take it for its own.
 */
static struct net_device *get_netdev(struct ib_device *ibdev, u32 port)
{
	struct net_device *netdev = mrsoft_dev(ibdev)->netdev;

	if (port != MRSOFT_PORT)
		return NULL;
	dev_hold(netdev);
	return netdev;
}

static int add_gid(const struct ib_gid_attr *attr, void **context)
{
	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return -EINVAL;
	return mrsoft_local_gid_add(&mrsoft_dev(attr->device)->hca, &attr->gid);
}

/* The wire */

/*
 * Sockets of the netdev's namespace.  Without them the device works on the local
 * path; they are kept until the device is torn down.
 */
static int wire_on(struct mrsoft_dev *dev)
{
	struct mrsoft_udp *udp;
	int err;

	lockdep_assert_held(&devs_lock);
	if (dev->hca.udp)
		return 0;
	if (!dev->netdev)
		return -ENODEV;
	err = mrsoft_udp_get(dev_net(dev->netdev), &udp);
	if (err)
		return err;
	/* pairs with mrsoft_hca_udp() */
	smp_store_release(&dev->hca.udp, udp);
	return 0;
}

static const char * const path_modes[] = {
	[MRSOFT_PATH_AUTO]	= "auto",
	[MRSOFT_PATH_LOCAL]	= "local",
	[MRSOFT_PATH_WIRE]	= "wire",
};

static struct mrsoft_dev *attr_dev(struct device *device)
{
	return container_of(device, struct mrsoft_dev, ib.dev);
}

static ssize_t path_show(struct device *device, struct device_attribute *attr,
			 char *buf)
{
	return sysfs_emit(buf, "%s\n",
			  path_modes[READ_ONCE(attr_dev(device)->hca.path_mode)]);
}

static ssize_t path_store(struct device *device, struct device_attribute *attr,
			  const char *buf, size_t count)
{
	int mode = sysfs_match_string(path_modes, buf);

	if (mode < 0)
		return mode;
	WRITE_ONCE(attr_dev(device)->hca.path_mode, mode);
	return count;
}

static ssize_t wire_show(struct device *device, struct device_attribute *attr,
			 char *buf)
{
	return sysfs_emit(buf, "%s\n",
			  READ_ONCE(attr_dev(device)->hca.udp) ? "on" : "off");
}

static ssize_t wire_store(struct device *device, struct device_attribute *attr,
			  const char *buf, size_t count)
{
	int err;

	if (!sysfs_streq(buf, "on"))
		return -EINVAL;
	mutex_lock(&devs_lock);
	err = wire_on(attr_dev(device));
	mutex_unlock(&devs_lock);
	return err ? err : count;
}

static DEVICE_ATTR_RW(path);
static DEVICE_ATTR_RW(wire);

static struct attribute *dev_attrs[] = {
	&dev_attr_path.attr,
	&dev_attr_wire.attr,
	NULL
};

static const struct attribute_group dev_group = {
	.attrs = dev_attrs,
};

static int del_gid(const struct ib_gid_attr *attr, void **context)
{
	mrsoft_local_gid_del(&mrsoft_dev(attr->device)->hca, &attr->gid);
	return 0;
}

/*
 * The core's last call, under its unregistration lock, or the end of a device
 * that never was registered.  Nobody is inside any operation now.
 */
static void dealloc_driver(struct ib_device *ibdev)
{
	struct mrsoft_dev *dev = mrsoft_dev(ibdev);
	struct net_device *netdev = dev->netdev;

	mrsoft_impair_close(&dev->hca);
	mrsoft_hca_destroy(&dev->hca);
	if (dev->hca.udp)
		mrsoft_udp_put(dev->hca.udp);
	mutex_lock(&devs_lock);
	dev->netdev = NULL;
	if (!list_empty(&dev->entry))
		queue_work(dev->hca.wq, &dev->reap);
	mutex_unlock(&devs_lock);
	/* No event finds the device now, and nothing is left below its parent. */
	ibdev->dev.parent = NULL;
	mrsoft_parent_free(&dev->parent);
	netdev_put(netdev, &dev->tracker);
	mrsoft_inject_free(&dev->hca.stats);
	mrsoft_diary_free(dev->hca.stats.diary);
}

/*
 * Takes a device that is torn down off the list.  Not in dealloc_driver itself:
 * rmmod may only go on when that function has returned, whoever called it.
 */
static void reap(struct work_struct *work)
{
	struct mrsoft_dev *dev = container_of(work, struct mrsoft_dev, reap);

	/*
	 * A fence: it takes the lock under which dealloc_driver is called, and
	 * finds nothing left to do.
	 */
	ib_unregister_device(&dev->ib);
	mutex_lock(&devs_lock);
	list_del_init(&dev->entry);
	mutex_unlock(&devs_lock);
	put_device(&dev->ib.dev);
}

static const struct ib_device_ops dev_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_RXE,
	.uverbs_abi_ver = MRSOFT_ABI_VERSION,

	.add_gid = add_gid,
	.dealloc_driver = dealloc_driver,
	.del_gid = del_gid,
	.device_group = &dev_group,
	.get_dev_fw_str = get_dev_fw_str,
	.get_link_layer = get_link_layer,
	.get_netdev = get_netdev,
	.get_port_immutable = get_port_immutable,
	.modify_device = modify_device,
	.query_device = query_device,
	.query_pkey = query_pkey,
	.query_port = query_port,
};

/* The largest MTU of the IBA whose packets fit into the netdev's. */
static u32 port_mtu(const struct net_device *netdev)
{
	int room = (int)READ_ONCE(netdev->mtu) - WIRE_OVERHEAD;

	if (room < ib_mtu_enum_to_int(IB_MTU_512))
		return ib_mtu_enum_to_int(IB_MTU_256);
	return ib_mtu_enum_to_int(ib_mtu_int_to_enum(room));
}

static void refresh_port(struct mrsoft_dev *dev)
{
	struct net_device *netdev = dev->netdev;

	WRITE_ONCE(dev->hca.mtu, port_mtu(netdev));
	if (netdev->addr_len == ETH_ALEN)
		memcpy(dev->hca.mac, netdev->dev_addr, ETH_ALEN);
}

static bool port_is_up(const struct mrsoft_dev *dev)
{
	return ib_get_curr_port_state(dev->netdev) == IB_PORT_ACTIVE;
}

/* The core tells nobody of our port: we did not give it the netdev. */
static void refresh_state(struct mrsoft_dev *dev)
{
	bool up = port_is_up(dev);
	struct ib_event event = {
		.device = &dev->ib,
		.element.port_num = MRSOFT_PORT,
		.event = up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
	};

	lockdep_assert_held(&devs_lock);
	if (dev->hca.port_up == up)
		return;
	WRITE_ONCE(dev->hca.port_up, up);
	/* Before and after its time as a registered device nobody listens. */
	if (ib_device_try_get(&dev->ib)) {
		ib_dispatch_event(&event);
		ib_device_put(&dev->ib);
	}
}

/* Queued, since callers have RTNL and clients of the core take it as they go. */
static void unregister_later(struct mrsoft_dev *dev)
{
	WRITE_ONCE(dev->leaving, true);
	if (ib_device_try_get(&dev->ib)) {
		ib_unregister_device_queued(&dev->ib);
		ib_device_put(&dev->ib);
	}
}

static struct mrsoft_dev *find_dev(const struct net_device *netdev)
{
	struct mrsoft_dev *dev;

	lockdep_assert_held(&devs_lock);
	list_for_each_entry(dev, &devs, entry)
		if (dev->netdev == netdev)
			return dev;
	return NULL;
}

/* To the device below a VLAN, whose groups are those of the VLAN as well. */
static void vlan_event(struct net_device *vlan, unsigned long event)
{
	struct mrsoft_dev *dev = find_dev(vlan_dev_real_dev(vlan));

	if (!dev)
		return;
	switch (event) {
	case NETDEV_REGISTER:
	case NETDEV_UP:
		mrsoft_mcast_vlan_comes(&dev->hca, vlan);
		break;
	case NETDEV_UNREGISTER:
		mrsoft_mcast_vlan_goes(&dev->hca, vlan);
		break;
	}
}

/**
 * mrsoft_dev_netdev_event - something happened to a netdev
 * @netdev: any netdev
 * @event: NETDEV_*
 *
 * Context: process, under RTNL.
 */
void mrsoft_dev_netdev_event(struct net_device *netdev, unsigned long event)
{
	struct mrsoft_dev *dev;

	mutex_lock(&devs_lock);
	if (is_vlan_dev(netdev))
		vlan_event(netdev, event);
	dev = find_dev(netdev);
	if (!dev)
		goto unlock;

	switch (event) {
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		refresh_state(dev);
		break;
	case NETDEV_CHANGEMTU:
	case NETDEV_CHANGEADDR:
		refresh_port(dev);
		break;
	case NETDEV_CHANGENAME:
		mrsoft_parent_rename(&dev->parent, netdev);
		break;
	case NETDEV_UNREGISTER:
		mrsoft_parent_hide(&dev->parent);
		mrsoft_mcast_leave(&dev->hca);
		unregister_later(dev);
		break;
	}
unlock:
	mutex_unlock(&devs_lock);
}

static bool guid_taken(__be64 guid)
{
	const struct mrsoft_dev *dev;

	lockdep_assert_held(&devs_lock);
	list_for_each_entry(dev, &devs, entry)
		if (dev->ib.node_guid == guid)
			return true;
	return false;
}

/*
 * From the netdev's MAC, so that it stays the same over a reboot, but with "mr"
 * where an EUI-64 made from a MAC has ff:fe: a rdma_rxe link on the same
 * netdev has that.  A VLAN and its parent, or a bond and its first port, have one
 * MAC: the first free number after "mr" tells them apart.
 */
static __be64 make_guid(const struct net_device *netdev)
{
	u8 mac[ETH_ALEN];
	u64 vendor, serial;
	u16 middle = 0x6d72;
	__be64 guid;

	if (netdev->addr_len == ETH_ALEN &&
	    is_valid_ether_addr(netdev->dev_addr))
		ether_addr_copy(mac, netdev->dev_addr);
	else
		eth_random_addr(mac);
	vendor = ether_addr_to_u64(mac) >> 24;
	serial = ether_addr_to_u64(mac) & GENMASK(23, 0);
	do {
		guid = cpu_to_be64((vendor ^ 0x020000) << 40 |
				   (u64)middle << 24 | serial);
		middle++;
	} while (guid_taken(guid));
	return guid;
}

static void set_ops(struct ib_device *ibdev)
{
	ib_set_device_ops(ibdev, &dev_ops);
	ib_set_device_ops(ibdev, &mrsoft_verbs_ops);
	ib_set_device_ops(ibdev, &mrsoft_verbs_ah_ops);
	ib_set_device_ops(ibdev, &mrsoft_verbs_mcast_ops);
	ib_set_device_ops(ibdev, &mrsoft_verbs_qp_ops);
	ib_set_device_ops(ibdev, &mrsoft_dm_ops);
	ib_set_device_ops(ibdev, &mrsoft_counters_ops);
	ib_set_device_ops(ibdev, &mrsoft_mad_ops);
	ib_set_device_ops(ibdev, &mrsoft_resource_ops);
}

static struct mrsoft_dev *dev_alloc(struct net_device *netdev,
				    struct workqueue_struct *wq)
{
	struct mrsoft_dev *dev = ib_alloc_device(mrsoft_dev, ib);
	struct mrsoft_inject *inject;
	struct mrsoft_diary *diary;
	struct ib_device *ibdev;

	if (!dev)
		return NULL;
	diary = mrsoft_diary_new();
	inject = mrsoft_inject_new();
	if (!diary || !inject) {
		mrsoft_diary_free(diary);
		kvfree(inject);
		ib_dealloc_device(&dev->ib);
		return NULL;
	}
	ibdev = &dev->ib;
	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = num_online_cpus();
	/* Hardware is posted to without the kernel; we are called. */
	ibdev->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |
				  BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ);
	snprintf(ibdev->node_desc, sizeof(ibdev->node_desc), "mrsoft %s",
		 netdev->name);

	INIT_LIST_HEAD(&dev->entry);
	INIT_WORK(&dev->reap, reap);
	mrsoft_hca_init(&dev->hca, wq);
	mrsoft_impair_init(&dev->hca);
	dev->hca.stats.diary = diary;
	dev->hca.stats.inject = inject;
	mrsoft_pma_init(&dev->pma);
	dev->hca.net = dev_net(netdev);
	dev->hca.ifindex = netdev->ifindex;
	dev->netdev = netdev;
	netdev_hold(netdev, &dev->tracker, GFP_KERNEL);
	set_ops(ibdev);
	return dev;
}

/* From here on netdev events and rmmod find the device. */
static int dev_list(struct mrsoft_dev *dev)
{
	int err = 0;

	rtnl_lock();
	mutex_lock(&devs_lock);
	if (dev->netdev->reg_state != NETREG_REGISTERED) {
		err = -ENODEV;
	} else if (find_dev(dev->netdev)) {
		err = -EBUSY;
	} else {
		dev->ib.node_guid = make_guid(dev->netdev);
		refresh_port(dev);
		WRITE_ONCE(dev->hca.port_up, port_is_up(dev));
		mrsoft_parent_show(&dev->parent, dev->netdev);
		get_device(&dev->ib.dev);
		list_add_tail(&dev->entry, &devs);
	}
	mutex_unlock(&devs_lock);
	rtnl_unlock();
	return err;
}

/**
 * mrsoft_dev_add - make and register a device
 * @name: its name
 * @netdev: its port; the device keeps a reference
 * @wq: where its queues go on
 *
 * Context: process, without RTNL.
 * Return: 0, -ENOMEM, -ENODEV (the netdev is going), -EBUSY (the netdev has a
 * device), -EEXIST (the name has one), or an error of the core.
 */
int mrsoft_dev_add(const char *name, struct net_device *netdev,
		   struct workqueue_struct *wq)
{
	struct mrsoft_dev *dev = dev_alloc(netdev, wq);
	struct device *ref;
	int err;

	if (!dev)
		return -ENOMEM;
	/* Registered, the device may be gone before we are back. */
	ref = get_device(&dev->ib.dev);
	err = mrsoft_parent_make(&dev->parent, dev_to_node(&netdev->dev));
	if (err)
		goto dealloc;
	dev->ib.dev.parent = dev->parent.device;
	err = dev_list(dev);
	if (err)
		goto dealloc;
	mutex_lock(&devs_lock);
	err = wire_on(dev);
	mutex_unlock(&devs_lock);
	if (err)
		pr_info("%s: UDP port %u: error %d; the wire is off, the local path works\n",
			name, MRSOFT_UDP_PORT, err);
	ib_mark_name_assigned_by_user(&dev->ib);
	err = ib_register_device(&dev->ib, name, NULL);
	if (err)
		goto dealloc;
	/*
	 * The netdev may have gone while its event could not yet unregister the
	 * device.
	 */
	if (READ_ONCE(dev->leaving))
		unregister_later(dev);
	put_device(ref);
	return 0;

dealloc:
	ib_dealloc_device(&dev->ib);
	put_device(ref);
	return err == -ENFILE ? -EEXIST : err;
}

static struct mrsoft_dev *first_dev(void)
{
	struct mrsoft_dev *dev;

	mutex_lock(&devs_lock);
	dev = list_first_entry_or_null(&devs, struct mrsoft_dev, entry);
	if (dev)
		get_device(&dev->ib.dev);
	mutex_unlock(&devs_lock);
	return dev;
}

/**
 * mrsoft_dev_remove_all - unregister every device
 *
 * No device is added any more.  Not ib_unregister_driver(): that would take
 * rdma_rxe's devices away too, which have the same driver id.  The caller
 * destroys the workqueue after, and so waits for the end of the last reaper.
 *
 * Context: process.
 */
void mrsoft_dev_remove_all(void)
{
	struct mrsoft_dev *dev;

	while ((dev = first_dev())) {
		/*
		 * Also when somebody else is about to unregister it, this
		 * returns after dealloc_driver has returned, and that has queued
		 * the reaper.  Users do not delay it: disassociate_ucontext.
		 */
		ib_unregister_device(&dev->ib);
		flush_work(&dev->reap);
		put_device(&dev->ib.dev);
	}
}
