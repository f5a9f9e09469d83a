// SPDX-License-Identifier: GPL-2.0
/*
 * ah.c - address vectors and the numbers of address handles
 *
 * Owns:     rdma_ah_attr -> struct mrsoft_av; the GRH of a UD receive; the
 *           table of AH numbers that user space writes into its WQEs.
 * Not here: the verbs (verbs.c), routes and MACs (resolved by the core).
 * Locks:    the table's xa_lock covers lookup and copy, so an AH may be freed
 *           as soon as it is out of the table; ah->lock covers the address.
 *           Order: xa_lock, ah->lock.
 * Context:  any.
 * Spec:     IBA Vol 1, 11.2.2 (address handles); Annex A17.4.3 (RoCEv2 GRH)
 * Tests:    kunit/words_kunit.c, guest suites with ibv_ud_pingpong
 */
#include <linux/ip.h>
#include <net/ip.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "ah.h"
#include "hca.h"

/* RoCEv2 between the IP header and the payload of a UD message. */
#define UDP_BYTES	8
#define BTH_DETH_BYTES	20
#define ICRC_BYTES	4

static void set_netdev(struct mrsoft_av *av, const struct ib_gid_attr *attr)
{
	const struct net_device *netdev;

	rcu_read_lock();
	netdev = rcu_dereference(attr->ndev);
	if (netdev) {
		av->ifindex = netdev->ifindex;
		av->vlan = rdma_vlan_dev_vlan_id(netdev);
	}
	rcu_read_unlock();
}

/**
 * mrsoft_av_set - take an address over from the core's form
 * @av: filled in
 * @attr: RoCE address with GRH; sgid_attr may be missing (then the source GID
 *	is zero and nothing can be sent)
 *
 * Context: any.
 */
void mrsoft_av_set(struct mrsoft_av *av, const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);

	memset(av, 0, sizeof(*av));
	av->vlan = MRSOFT_NO_VLAN;
	av->dgid = grh->dgid;
	if (grh->sgid_attr) {
		av->sgid = grh->sgid_attr->gid;
		set_netdev(av, grh->sgid_attr);
	}
	memcpy(av->dmac, attr->roce.dmac, ETH_ALEN);
	av->traffic_class = grh->traffic_class;
	av->hop_limit = grh->hop_limit;
	av->flow_label = grh->flow_label & 0xfffff;
	av->sgid_index = grh->sgid_index;
	av->sl = rdma_ah_get_sl(attr);
	av->ipv4 = ipv6_addr_v4mapped((const struct in6_addr *)&av->dgid);
}

static void grh_ipv4(const struct mrsoft_av *av, u32 payload, u8 *grh)
{
	struct iphdr ip = {
		.version  = IPVERSION,
		.ihl	  = sizeof(ip) / 4,
		.tos	  = av->traffic_class,
		.tot_len  = htons(sizeof(ip) + payload),
		.frag_off = htons(IP_DF),
		.ttl	  = av->hop_limit,
		.protocol = IPPROTO_UDP,
	};

	memcpy(&ip.saddr, &av->sgid.raw[12], sizeof(ip.saddr));
	memcpy(&ip.daddr, &av->dgid.raw[12], sizeof(ip.daddr));
	ip.check = ip_fast_csum(&ip, ip.ihl);
	memset(grh, 0, MRSOFT_GRH_BYTES - sizeof(ip));
	memcpy(grh + MRSOFT_GRH_BYTES - sizeof(ip), &ip, sizeof(ip));
}

static void grh_ipv6(const struct mrsoft_av *av, u32 payload, u8 *grh)
{
	struct ib_grh ip = {
		.version_tclass_flow = cpu_to_be32(6u << 28 |
						   av->traffic_class << 20 |
						   av->flow_label),
		.paylen		     = cpu_to_be16(payload),
		.next_hdr	     = IPPROTO_UDP,
		.hop_limit	     = av->hop_limit,
		.sgid		     = av->sgid,
		.dgid		     = av->dgid,
	};

	static_assert(sizeof(ip) == MRSOFT_GRH_BYTES);
	memcpy(grh, &ip, sizeof(ip));
}

/**
 * mrsoft_av_grh - the 40 bytes in front of a UD payload
 * @av: the sender's address vector
 * @payload: bytes that the user sends
 * @grh: MRSOFT_GRH_BYTES are written
 *
 * An IPv6 header, or an IPv4 header in the last 20 bytes behind zeroes.  The
 * lengths are those that the packet would have on a wire.
 *
 * Context: any.
 */
void mrsoft_av_grh(const struct mrsoft_av *av, u32 payload, u8 *grh)
{
	payload = ALIGN(payload, 4) + UDP_BYTES + BTH_DETH_BYTES + ICRC_BYTES;
	if (av->ipv4)
		grh_ipv4(av, payload, grh);
	else
		grh_ipv6(av, payload, grh);
}

/**
 * mrsoft_ah_publish - give an AH its number
 * @hca: the device
 * @ah: filled in
 *
 * Context: process, may sleep.
 * Return: 0 with ah->ah_num set, -ENOMEM, or -EBUSY when all are in use.
 */
int mrsoft_ah_publish(struct mrsoft_hca *hca, struct mrsoft_ah *ah)
{
	int ret;

	ret = xa_alloc_cyclic_irq(&hca->ahs, &ah->ah_num, ah,
				  XA_LIMIT(1, MRSOFT_MAX_AH), &hca->next_ah,
				  GFP_KERNEL);
	return ret < 0 ? ret : 0;
}

/**
 * mrsoft_ah_unpublish - take an AH out of the table
 * @hca: the device
 * @ah: published
 *
 * On return no lookup uses @ah any more.
 *
 * Context: any.
 */
void mrsoft_ah_unpublish(struct mrsoft_hca *hca, struct mrsoft_ah *ah)
{
	unsigned long flags;

	xa_lock_irqsave(&hca->ahs, flags);
	__xa_erase(&hca->ahs, ah->ah_num);
	xa_unlock_irqrestore(&hca->ahs, flags);
}

/**
 * mrsoft_ah_read - copy the address behind a number
 * @hca: the device
 * @ah_num: as user space wrote it
 * @pd: PD of the QP that sends
 * @av: filled in
 *
 * Context: any.
 * Return: false if there is no such AH in @pd.
 */
bool mrsoft_ah_read(struct mrsoft_hca *hca, u32 ah_num,
		    const struct mrsoft_pd *pd, struct mrsoft_av *av)
{
	struct mrsoft_ah *ah;
	unsigned long flags;

	xa_lock_irqsave(&hca->ahs, flags);
	ah = xa_load(&hca->ahs, ah_num);
	if (ah && ah->ib.pd == &pd->ib) {
		spin_lock(&ah->lock);
		*av = ah->av;
		spin_unlock(&ah->lock);
	} else {
		ah = NULL;
	}
	xa_unlock_irqrestore(&hca->ahs, flags);
	return ah;
}
