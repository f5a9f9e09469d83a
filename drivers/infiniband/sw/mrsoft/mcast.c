// SPDX-License-Identifier: GPL-2.0
/*
 * mcast.c - multicast groups and the QPs attached to them
 *
 * Owns:     group GID -> numbers of the attached QPs, for each device; the
 *           memberships of its netdev and the VLANs above: MAC filter, IGMP, MLD.
 * Not here: the verbs (verbs_mcast.c), sending (local.c), packets (rx.c).
 * Locks:    RTNL orders attach, detach and the end of a netdev; lookups use RCU.
 * Lifetime: a group lives while a QP is attached; freed after RCU.  It keeps
 *           numbers, not QPs: each copy looks its QP up and holds it anew.  A copy
 *           that is on its way may arrive just after detach has returned.
 * Context:  attach and detach sleep; lookups anywhere but in hard interrupts.
 * Spec:     IBA Vol 1, 10.5 (unreliable multicast); Annex A17.9.1 (RoCEv2)
 * Tests:    kunit/mcast_kunit.c, tools/testing/suites/mcast.sh
 *
 * Who gets a datagram: every QP attached on a device whose netdev the packet comes
 * in on, and of the sender's host every QP attached on the sender's own device, the
 * sender too: HCAs loop back to all, and their users (IPoIB) drop their own by
 * source QPN.  Other devices of the host get it if a wire leads to them, as other
 * hosts do; so nobody gets it twice.  The sockets' own loopback is off.
 *
 * A VLAN above the netdev is a netdev with memberships of its own.  Attach does not
 * say on which VLAN a group is, and packets from all are received: so each is joined,
 * those that come later as well.
 */
#include <linux/etherdevice.h>
#include <linux/hashtable.h>
#include <linux/if_vlan.h>
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/jhash.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <net/ip.h>

#include "mcast.h"

static_assert(MRSOFT_MAX_MCAST_TOTAL ==
	      MRSOFT_MAX_MCAST_GRP * MRSOFT_MAX_MCAST_QP_ATTACH);

/**
 * struct group - a group of a device
 * @node: RTNL, RCU readers
 * @gid: I
 * @hca: I, there as long as the group
 * @qps: RTNL, RCU readers: QPN -> how often it is attached
 * @num_qps: RTNL, entries in @qps
 * @members: RTNL, ifindex -> netdev that is a member: it leaves before it goes
 * @rcu: frees it
 */
struct group {
	struct hlist_node node;
	union ib_gid gid;
	struct mrsoft_hca *hca;
	struct xarray qps;
	u32 num_qps;
	struct xarray members;
	struct rcu_head rcu;
};

static DEFINE_HASHTABLE(groups, 8);

/* Membership of the netdev */

static bool is_ipv4(const union ib_gid *gid)
{
	return ipv6_addr_v4mapped((const struct in6_addr *)gid);
}

static __be32 ipv4_of(const union ib_gid *gid)
{
	__be32 address;

	memcpy(&address, &gid->raw[12], sizeof(address));
	return address;
}

static void mac_of(const union ib_gid *gid, u8 *mac)
{
	if (is_ipv4(gid))
		ip_eth_mc_map(ipv4_of(gid), mac);
	else
		ipv6_eth_mc_map((const struct in6_addr *)gid, mac);
}

static bool is_member4(const struct in_device *in_dev, __be32 address)
{
	const struct ip_mc_list *im;

	for (im = rtnl_dereference(in_dev->mc_list); im;
	     im = rtnl_dereference(im->next_rcu))
		if (im->multiaddr == address)
			return true;
	return false;
}

static int join4(struct net_device *netdev, __be32 address)
{
	struct in_device *in_dev = __in_dev_get_rtnl(netdev);

	if (!in_dev)
		return -ENODEV;
	ip_mc_inc_group(in_dev, address);
	/* It does not say that it had no memory. */
	return is_member4(in_dev, address) ? 0 : -ENOMEM;
}

static void leave4(struct net_device *netdev, __be32 address)
{
	struct in_device *in_dev = __in_dev_get_rtnl(netdev);

	if (in_dev)
		ip_mc_dec_group(in_dev, address);
}

static int join6(struct net_device *netdev, const union ib_gid *gid)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (!__in6_dev_get(netdev))
		return -ENODEV;
	return ipv6_dev_mc_inc(netdev, (const struct in6_addr *)gid);
#else
	return -ENODEV;
#endif
}

static void leave6(struct net_device *netdev, const union ib_gid *gid)
{
#if IS_ENABLED(CONFIG_IPV6)
	ipv6_dev_mc_dec(netdev, (const struct in6_addr *)gid);
#endif
}

static void leave_ip(struct net_device *netdev, const union ib_gid *gid)
{
	if (is_ipv4(gid))
		leave4(netdev, ipv4_of(gid));
	else
		leave6(netdev, gid);
}

/*
 * IP has its own entry for the MAC, but not for every group (interface-local ones
 * of IPv6), and drops it when the netdev's IP goes while QPs stay attached.
 */
static int join(struct net_device *netdev, const union ib_gid *gid)
{
	u8 mac[ETH_ALEN];
	int err;

	ASSERT_RTNL();
	err = is_ipv4(gid) ? join4(netdev, ipv4_of(gid)) : join6(netdev, gid);
	if (err || netdev->addr_len != ETH_ALEN)
		return err;
	mac_of(gid, mac);
	err = dev_mc_add(netdev, mac);
	if (err)
		leave_ip(netdev, gid);
	return err;
}

static void leave(struct net_device *netdev, const union ib_gid *gid)
{
	u8 mac[ETH_ALEN];

	ASSERT_RTNL();
	if (netdev->addr_len == ETH_ALEN) {
		mac_of(gid, mac);
		dev_mc_del(netdev, mac);
	}
	leave_ip(netdev, gid);
}

/* Groups */

static u32 gid_hash(const union ib_gid *gid)
{
	return jhash(gid, sizeof(*gid), 0);
}

static struct group *find_rtnl(const struct mrsoft_hca *hca,
			       const union ib_gid *gid)
{
	struct group *group;

	ASSERT_RTNL();
	hash_for_each_possible(groups, group, node, gid_hash(gid))
		if (group->hca == hca && !memcmp(&group->gid, gid, sizeof(*gid)))
			return group;
	return NULL;
}

static struct group *find_rcu(const void *net, u32 ifindex,
			      const union ib_gid *gid)
{
	struct group *group;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "group lookup without RCU");
	hash_for_each_possible_rcu(groups, group, node, gid_hash(gid))
		if (group->hca->net == net && group->hca->ifindex == ifindex &&
		    !memcmp(&group->gid, gid, sizeof(*gid)))
			return group;
	return NULL;
}

/* A netdev that is on its way out, or in another namespace now, joins nothing. */
static bool can_join(const struct mrsoft_hca *hca,
		     const struct net_device *netdev)
{
	return netdev->reg_state == NETREG_REGISTERED &&
	       dev_net(netdev) == hca->net;
}

static int join_group(struct group *group, struct net_device *netdev)
{
	int err;

	if (!can_join(group->hca, netdev))
		return -ENODEV;
	err = xa_insert(&group->members, netdev->ifindex, netdev, GFP_KERNEL);
	if (err)
		return err == -EBUSY ? 0 : err;
	err = join(netdev, &group->gid);
	if (err)
		xa_erase(&group->members, netdev->ifindex);
	return err;
}

static void leave_group(struct group *group, u32 ifindex)
{
	struct net_device *netdev = xa_erase(&group->members, ifindex);

	if (netdev)
		leave(netdev, &group->gid);
}

static void leave_all(struct group *group)
{
	struct net_device *netdev;
	unsigned long ifindex;

	xa_for_each(&group->members, ifindex, netdev)
		leave_group(group, ifindex);
}

/* A VLAN that cannot does without: the port is what attach is about. */
static void join_vlans(struct group *group, struct net_device *netdev)
{
	struct net_device *vlan;

	for_each_netdev(dev_net(netdev), vlan)
		if (is_vlan_dev(vlan) && vlan_dev_real_dev(vlan) == netdev)
			join_group(group, vlan);
}

static struct group *make_group(struct mrsoft_hca *hca,
				struct net_device *netdev,
				const union ib_gid *gid)
{
	struct group *group;
	int err;

	if (hca->num_groups >= MRSOFT_MAX_MCAST_GRP)
		return ERR_PTR(-ENOMEM);
	group = kzalloc_obj(*group);
	if (!group)
		return ERR_PTR(-ENOMEM);
	group->gid = *gid;
	group->hca = hca;
	xa_init(&group->qps);
	xa_init(&group->members);
	if (netdev) {
		err = join_group(group, netdev);
		if (err) {
			kfree(group);
			return ERR_PTR(err);
		}
		join_vlans(group, netdev);
	}
	hca->num_groups++;
	hash_add_rcu(groups, &group->node, gid_hash(gid));
	return group;
}

static void free_group(struct group *group)
{
	hash_del_rcu(&group->node);
	group->hca->num_groups--;
	leave_all(group);
	xa_destroy(&group->qps);
	kfree_rcu(group, rcu);
}

static unsigned long times(struct group *group, u32 qpn)
{
	void *entry = xa_load(&group->qps, qpn);

	return entry ? xa_to_value(entry) : 0;
}

static int set_times(struct group *group, u32 qpn, unsigned long n)
{
	return xa_err(xa_store(&group->qps, qpn, xa_mk_value(n), GFP_KERNEL));
}

static int add_qp(struct group *group, u32 qpn)
{
	unsigned long n = times(group, qpn);
	int err;

	if (!n && group->num_qps >= MRSOFT_MAX_MCAST_QP_ATTACH)
		return -ENOMEM;
	err = set_times(group, qpn, n + 1);
	if (!err && !n)
		group->num_qps++;
	return err;
}

static int del_qp(struct group *group, u32 qpn)
{
	unsigned long n = times(group, qpn);

	if (!n)
		return -EINVAL;
	/* an entry that is there is replaced without memory */
	if (n > 1)
		return set_times(group, qpn, n - 1);
	xa_erase(&group->qps, qpn);
	group->num_qps--;
	return 0;
}

/**
 * mrsoft_mcast_attach - a QP wants what is sent to a group
 * @hca: the device
 * @netdev: its netdev, or NULL when it has none
 * @gid: the group
 * @qpn: a UD QP of the device
 *
 * A QP may be attached several times, gets one copy all the same, and must be
 * detached as often: the core calls twice for one QP and group when the LIDs
 * differ, which mean nothing on Ethernet.
 *
 * Context: process, sleeps, takes RTNL.
 * Return: 0; -ENOMEM, also when the device has as many groups, or the group as
 * many QPs, as there may be; -ENODEV when the netdev goes or has no IP of that
 * version.  Then nothing has changed.
 */
int mrsoft_mcast_attach(struct mrsoft_hca *hca, struct net_device *netdev,
			const union ib_gid *gid, u32 qpn)
{
	struct group *group;
	int err;

	rtnl_lock();
	group = find_rtnl(hca, gid);
	if (!group)
		group = make_group(hca, netdev, gid);
	err = PTR_ERR_OR_ZERO(group);
	if (err)
		goto unlock;
	err = add_qp(group, qpn);
	if (!group->num_qps)
		free_group(group);
unlock:
	rtnl_unlock();
	return err;
}

/**
 * mrsoft_mcast_detach - a QP wants no more
 * @hca: the device
 * @gid: the group
 * @qpn: the QP
 *
 * Context: process, sleeps, takes RTNL.
 * Return: 0, or -EINVAL when it is not attached.
 */
int mrsoft_mcast_detach(struct mrsoft_hca *hca, const union ib_gid *gid,
			u32 qpn)
{
	struct group *group;
	int err = -EINVAL;

	rtnl_lock();
	group = find_rtnl(hca, gid);
	if (group)
		err = del_qp(group, qpn);
	if (group && !group->num_qps)
		free_group(group);
	rtnl_unlock();
	return err;
}

/**
 * mrsoft_mcast_leave - the device's netdev goes
 * @hca: the device; its netdev is being unregistered, or moved to another namespace,
 *	where another's memberships must not be given up in our name
 *
 * QPs stay attached until their users detach them.  May be called again.
 *
 * Context: process, under RTNL.
 */
void mrsoft_mcast_leave(struct mrsoft_hca *hca)
{
	struct group *group;
	int bucket;

	ASSERT_RTNL();
	hash_for_each(groups, bucket, group, node)
		if (group->hca == hca)
			leave_all(group);
}

/**
 * mrsoft_mcast_vlan_comes - there is a VLAN above the device's netdev
 * @hca: the device
 * @vlan: registered; may be a member already
 *
 * Context: process, under RTNL.
 */
void mrsoft_mcast_vlan_comes(struct mrsoft_hca *hca, struct net_device *vlan)
{
	struct group *group;
	int bucket;

	ASSERT_RTNL();
	hash_for_each(groups, bucket, group, node)
		if (group->hca == hca)
			join_group(group, vlan);
}

/**
 * mrsoft_mcast_vlan_goes - a VLAN above the device's netdev goes
 * @hca: the device
 * @vlan: being unregistered, or moved to another namespace
 *
 * Context: process, under RTNL.
 */
void mrsoft_mcast_vlan_goes(struct mrsoft_hca *hca,
			    const struct net_device *vlan)
{
	struct group *group;
	int bucket;

	ASSERT_RTNL();
	hash_for_each(groups, bucket, group, node)
		if (group->hca == hca)
			leave_group(group, vlan->ifindex);
}

/**
 * mrsoft_mcast_find - does anybody listen
 * @net: network namespace
 * @ifindex: of the netdev where a packet came in
 * @gid: its destination
 *
 * Context: any, under RCU, which keeps the device in memory.
 * Return: the device on that netdev if a QP of its is attached, or NULL.
 */
struct mrsoft_hca *mrsoft_mcast_find(const void *net, u32 ifindex,
				     const union ib_gid *gid)
{
	const struct group *group = find_rcu(net, ifindex, gid);

	return group ? group->hca : NULL;
}

/**
 * mrsoft_mcast_next - go through the QPs of a group
 * @net: network namespace
 * @ifindex: of the device's netdev
 * @gid: the group
 * @qpn: start at 0; moves behind the QP that is returned
 *
 * A QP that is attached or detached meanwhile is found or not, but never twice.
 *
 * Context: process or softirq.
 * Return: the attached QP with the lowest number from *@qpn on, held until
 * mrsoft_qp_put(); NULL when there is none.
 */
struct mrsoft_qp *mrsoft_mcast_next(const void *net, u32 ifindex,
				    const union ib_gid *gid, u32 *qpn)
{
	struct mrsoft_qp *qp = NULL;
	unsigned long index = *qpn;
	struct group *group;

	rcu_read_lock();
	group = find_rcu(net, ifindex, gid);
	while (group && !qp &&
	       xa_find(&group->qps, &index, MRSOFT_QPN_MAX, XA_PRESENT))
		qp = mrsoft_qp_get(group->hca, index++);
	rcu_read_unlock();
	*qpn = index;
	return qp;
}
