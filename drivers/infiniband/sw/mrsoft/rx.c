// SPDX-License-Identifier: GPL-2.0
/*
 * rx.c - wire path: packets that come
 *
 * Owns:     checking a packet, finding its QP, queueing it; start and end of
 *           struct mrsoft_wire.
 * Not here: requests (window.c), what a message does (resp.c), answers that come
 *           (tx.c).
 * Locks:    each queue has its own, under which wire->open is looked at; the worker
 *           is the only user of wire->rx.
 * Lifetime: a packet finds the QP by a hold, which ends when the packet is queued.
 *           Closed queues take none, so that after close nothing is left.
 * Context:  arrival in softirq, the rest in process context.
 * Spec:     IBA Vol 1, 9.6 (packet checks); Annex A17
 * Tests:    kunit/wire_kunit.c, tools/testing/selftests/packets.c,
 *           tools/testing/suites/wire.sh
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/slab.h>
#include <linux/unaligned.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <rdma/ib_addr.h>

#include "fault.h"
#include "icrc.h"
#include "local.h"
#include "mcast.h"
#include "psn.h"
#include "resp.h"
#include "rx.h"
#include "sq.h"
#include "window.h"

/* Packets that may wait for a worker: more are lost, and sent again. */
#define MAX_QUEUED	4096u

/* Checking a packet */

static bool ip_is_plain(struct sk_buff *skb, bool *ipv6)
{
	const struct iphdr *ip = ip_hdr(skb);

	*ipv6 = ip->version == 6;
	if (*ipv6)
		return ipv6_hdr(skb)->nexthdr == IPPROTO_UDP &&
		       !(IP6CB(skb)->flags & IP6SKB_FRAGMENTED);
	/* reassembly leaves the size of the largest fragment, and no flag */
	return ip->ihl == sizeof(*ip) / 4 && !IPCB(skb)->frag_max_size;
}

static void addresses(const struct sk_buff *skb, bool ipv6, union ib_gid *sgid,
		      union ib_gid *dgid)
{
	if (ipv6) {
		memcpy(sgid, &ipv6_hdr(skb)->saddr, sizeof(*sgid));
		memcpy(dgid, &ipv6_hdr(skb)->daddr, sizeof(*dgid));
		return;
	}
	ipv6_addr_set_v4mapped(ip_hdr(skb)->saddr, (struct in6_addr *)sgid);
	ipv6_addr_set_v4mapped(ip_hdr(skb)->daddr, (struct in6_addr *)dgid);
}

/*
 * Lengths, version, opcode, partition, checksum, in the order in which each can be
 * trusted.  The packet is linear and skb->data stands at the UDP header.
 */
static enum mrsoft_reason check_packet(struct sk_buff *skb, bool ipv6,
				       struct mrsoft_packet *pkt)
{
	const struct udphdr *uh = (void *)skb->data;
	const struct mrsoft_bth *bth = (void *)(uh + 1);
	u32 length, pad, rest;

	if (skb->len < sizeof(*uh) + sizeof(*bth) + MRSOFT_ICRC_BYTES)
		return MRSOFT_R_PKT_LENGTH;
	length = ntohs(uh->len);
	if (length > skb->len ||
	    length < sizeof(*uh) + sizeof(*bth) + MRSOFT_ICRC_BYTES)
		return MRSOFT_R_PKT_LENGTH;
	length -= sizeof(*uh) + MRSOFT_ICRC_BYTES;
	if (bth->flags & MRSOFT_BTH_VERSION)
		return MRSOFT_R_PKT_HEADER;
	if (get_unaligned((__le32 *)((u8 *)bth + length)) !=
	    mrsoft_icrc(skb_network_header(skb), ipv6, uh, length))
		return MRSOFT_R_PKT_ICRC;
	pkt->type = mrsoft_packet_find(bth->opcode, &pkt->service);
	if (!pkt->type)
		return MRSOFT_R_PKT_OPCODE;
	/* the highest bit says full member, and full members talk to all */
	if ((be16_to_cpu(bth->pkey) ^ MRSOFT_PKEY_DEFAULT) & 0x7fff)
		return MRSOFT_R_PKEY;
	pad = (bth->flags & MRSOFT_BTH_PAD_MASK) >> MRSOFT_BTH_PAD_SHIFT;
	if (length < pkt->type->hdr + pad || length % 4)
		return MRSOFT_R_PKT_LENGTH;
	rest = length - pkt->type->hdr - pad;
	if (rest > ib_mtu_enum_to_int(IB_MTU_4096) ||
	    (rest && !(pkt->type->flags & MRSOFT_PKTF_PAYLOAD)))
		return MRSOFT_R_PKT_LENGTH;
	pkt->hdr = (void *)(bth + 1);
	pkt->payload = (u8 *)bth + pkt->type->hdr;
	pkt->length = rest;
	pkt->psn = be32_to_cpu(bth->apsn) & MRSOFT_PSN_MASK;
	pkt->ack_req = be32_to_cpu(bth->apsn) & MRSOFT_BTH_ACK_REQ;
	pkt->solicited = bth->flags & MRSOFT_BTH_SOLICITED;
	return MRSOFT_R_NONE;
}

/* Queueing */

static bool is_answer(const struct mrsoft_packet *pkt)
{
	return pkt->type->kind >= MRSOFT_PKT_ACK;
}

/* Behind those with a lower PSN: the network may have changed the order. */
static void insert_sorted(struct sk_buff_head *list, struct sk_buff *skb)
{
	struct sk_buff *at;

	lockdep_assert_held(&list->lock);
	skb_queue_reverse_walk(list, at)
		if (mrsoft_psn_diff(mrsoft_packet(at)->psn,
				    mrsoft_packet(skb)->psn) <= 0)
			break;
	__skb_queue_after(list, at, skb);
}

static enum mrsoft_reason enqueue(struct mrsoft_qp *qp, struct sk_buff *skb)
{
	struct mrsoft_packet *pkt = mrsoft_packet(skb);
	struct mrsoft_wire *wire = qp->wire;
	bool answer = is_answer(pkt);
	struct sk_buff_head *list = answer ? &wire->acks : &wire->reqs;
	enum mrsoft_reason reason = MRSOFT_R_NONE;

	spin_lock_bh(&list->lock);
	if (!READ_ONCE(wire->open))
		reason = MRSOFT_R_PEER_STATE;
	else if (skb_queue_len(list) >= MAX_QUEUED)
		reason = MRSOFT_R_PKT_QUEUE;
	else if (answer || pkt->service == IB_QPT_UD)
		__skb_queue_tail(list, skb);
	else
		insert_sorted(list, skb);
	spin_unlock_bh(&list->lock);
	if (reason)
		return reason;
	if (answer)
		mrsoft_sq_wake(qp);
	else
		mod_delayed_work(qp->hca->wq, &wire->work, 0);
	return MRSOFT_R_NONE;
}

/* Does it come from the QP's peer? */
static bool from_peer(struct mrsoft_qp *qp, const union ib_gid *sgid,
		      const union ib_gid *dgid)
{
	unsigned long flags;
	bool ret;

	spin_lock_irqsave(&qp->state_lock, flags);
	ret = !memcmp(&qp->av.dgid, sgid, sizeof(*sgid)) &&
	      !memcmp(&qp->av.sgid, dgid, sizeof(*dgid));
	spin_unlock_irqrestore(&qp->state_lock, flags);
	return ret;
}

/* MRSOFT_R_NONE: the packet is no longer ours. */
static enum mrsoft_reason dispatch(struct mrsoft_qp *qp, struct sk_buff *skb,
				   const union ib_gid *sgid,
				   const union ib_gid *dgid)
{
	struct mrsoft_packet *pkt = mrsoft_packet(skb);
	bool ud = mrsoft_qp_is_datagram(qp);

	if (pkt->service != (ud ? IB_QPT_UD : qp->type))
		return MRSOFT_R_PKT_OPCODE;
	if (!mrsoft_resp_can_receive(qp))
		return MRSOFT_R_PEER_STATE;
	/* pairs with mrsoft_rx_make() */
	if (!smp_load_acquire(&qp->wire))
		return MRSOFT_R_PEER_STATE;
	if (!ud && !from_peer(qp, sgid, dgid))
		return MRSOFT_R_PKT_SOURCE;
	return enqueue(qp, skb);
}

static enum mrsoft_reason arrive(struct mrsoft_qp *qp, struct sk_buff *skb,
				 const union ib_gid *sgid,
				 const union ib_gid *dgid)
{
	if (mrsoft_inject_on(&qp->hca->stats))
		return mrsoft_impair_rx(qp, skb, sgid, dgid);
	return dispatch(qp, skb, sgid, dgid);
}

/* With MRSOFT_R_NONE mrsoft_packet(@skb) is filled in. */
static enum mrsoft_reason accept(const struct mrsoft_hca *hca,
				 struct sk_buff *skb, bool plain, u32 *qpn)
{
	bool ipv6 = ip_hdr(skb)->version == 6;
	const struct mrsoft_bth *bth;
	struct mrsoft_packet pkt;
	enum mrsoft_reason reason;

	if (!READ_ONCE(hca->port_up))
		return MRSOFT_R_PORT_DOWN;
	if (!plain)
		return MRSOFT_R_PKT_HEADER;
	reason = check_packet(skb, ipv6, &pkt);
	if (reason)
		return reason;
	/* now: its netdev may be gone when the packet is looked at */
	pkt.vlan = rdma_vlan_dev_vlan_id(skb->dev);
	*mrsoft_packet(skb) = pkt;
	bth = (void *)(skb->data + sizeof(struct udphdr));
	*qpn = be32_to_cpu(bth->qpn) & MRSOFT_PSN_MASK;
	return MRSOFT_R_NONE;
}

/* A packet that is lost: for no QP, or for @qp, which is held. */
static enum mrsoft_reason lose(struct mrsoft_hca *hca, struct mrsoft_qp *qp,
			       enum mrsoft_reason reason)
{
	if (qp)
		return mrsoft_qp_refuse(qp, "packet", reason);
	return mrsoft_diary_refuse(&hca->stats, &(struct mrsoft_refusal){
		.reason = reason, .op = "packet",
	});
}

static enum mrsoft_reason receive_at(struct mrsoft_hca *hca,
				     struct sk_buff *skb, bool plain,
				     const union ib_gid *sgid,
				     const union ib_gid *dgid)
{
	enum mrsoft_reason reason;
	struct mrsoft_qp *qp;
	u32 qpn;

	reason = accept(hca, skb, plain, &qpn);
	if (reason)
		return lose(hca, NULL, reason);
	qp = mrsoft_qp_get(hca, qpn);
	if (!qp)
		return lose(hca, NULL, MRSOFT_R_NO_PEER);
	reason = arrive(qp, skb, sgid, dgid);
	if (reason)
		lose(hca, qp, reason);
	mrsoft_qp_put(qp);
	return reason;
}

/* A clone for each QP that is attached, which shares the bytes. */
static void copy_to(struct mrsoft_qp *qp, struct sk_buff *skb,
		    const union ib_gid *sgid, const union ib_gid *dgid)
{
	struct sk_buff *copy = skb_clone(skb, GFP_ATOMIC);
	enum mrsoft_reason reason = MRSOFT_R_PKT_QUEUE;

	if (copy)
		reason = arrive(qp, copy, sgid, dgid);
	if (!reason)
		return;
	lose(qp->hca, qp, reason);
	kfree_skb(copy);
}

static void receive_on(const void *net, u32 ifindex, struct sk_buff *skb,
		       bool plain, const union ib_gid *sgid,
		       const union ib_gid *dgid)
{
	struct mrsoft_hca *hca = mrsoft_mcast_find(net, ifindex, dgid);
	enum mrsoft_reason reason;
	struct mrsoft_qp *qp;
	u32 qpn, next = 0;

	if (!hca)
		return;
	reason = accept(hca, skb, plain, &qpn);
	if (!reason && qpn != MRSOFT_QPN_MCAST)
		reason = MRSOFT_R_NO_PEER;
	if (reason) {
		lose(hca, NULL, reason);
		return;
	}
	while ((qp = mrsoft_mcast_next(net, ifindex, dgid, &next))) {
		copy_to(qp, skb, sgid, dgid);
		mrsoft_qp_put(qp);
	}
}

/*
 * A packet to a group: for the device on the netdev where it came in, and if that
 * is a VLAN, for the one on the netdev below.
 */
static void receive_group(const void *net, struct sk_buff *skb, bool plain,
			  const union ib_gid *sgid, const union ib_gid *dgid)
{
	const struct net_device *netdev = skb->dev;

	receive_on(net, netdev->ifindex, skb, plain, sgid, dgid);
	if (is_vlan_dev(netdev))
		receive_on(net, vlan_dev_real_dev(netdev)->ifindex, skb, plain,
			   sgid, dgid);
}

/* A packet has come to port 4791.  Softirq, under RCU. */
static void receive(const void *net, struct sk_buff *skb)
{
	union ib_gid sgid, dgid;
	struct mrsoft_hca *hca;
	enum mrsoft_reason reason;
	bool ipv6, plain;

	if (skb_linearize(skb))
		goto drop;
	plain = ip_is_plain(skb, &ipv6);
	addresses(skb, ipv6, &sgid, &dgid);
	if (mrsoft_gid_is_group(&dgid)) {
		receive_group(net, skb, plain, &sgid, &dgid);
		goto drop;
	}
	hca = mrsoft_local_find(net, skb->dev->ifindex, &dgid);
	if (!hca)
		goto drop;
	reason = receive_at(hca, skb, plain, &sgid, &dgid);
	if (!reason)
		return;
drop:
	kfree_skb(skb);
}

/**
 * mrsoft_rx_init - packets come to us
 *
 * Context: once, before the first socket is opened.
 */
void mrsoft_rx_init(void)
{
	mrsoft_impair_set_rx(dispatch);
	mrsoft_udp_set_rx(receive);
}

/* Start and end */

/**
 * mrsoft_rx_make - memory for the wire path
 * @qp: with qp->verbs held
 *
 * Once made it stays as long as the QP.
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int mrsoft_rx_make(struct mrsoft_qp *qp)
{
	struct mrsoft_wire *wire;

	if (qp->wire)
		return 0;
	wire = kvzalloc_obj(*wire);
	if (!wire)
		return -ENOMEM;
	wire->qp = qp;
	skb_queue_head_init(&wire->reqs);
	skb_queue_head_init(&wire->acks);
	INIT_DELAYED_WORK(&wire->work, mrsoft_window_work);
	/* pairs with dispatch() */
	smp_store_release(&qp->wire, wire);
	return 0;
}

/**
 * mrsoft_rx_open - packets may come
 * @qp: made, with qp->verbs held; its attributes of RTR are set
 *
 * Context: process.
 */
void mrsoft_rx_open(struct mrsoft_qp *qp)
{
	struct mrsoft_wire *wire = qp->wire;

	memset(&wire->tx, 0, sizeof(wire->tx));
	memset(&wire->rx, 0, sizeof(wire->rx));
	wire->rx.epsn = qp->resp.psn;
	wire->sport = rdma_get_udp_sport(qp->av.flow_label, qp->qpn,
					 qp->attr.dest_qp_num);
	/* both queues are empty; their locks order the rest */
	WRITE_ONCE(wire->open, true);
}

/*
 * Who takes the lock after this sees the queue closed.  skb_queue_purge() does not
 * take it when the queue looks empty, while somebody may be about to fill it.
 */
static void purge(struct sk_buff_head *list)
{
	spin_lock_bh(&list->lock);
	__skb_queue_purge(list);
	spin_unlock_bh(&list->lock);
}

/**
 * mrsoft_rx_close - no packet comes and none is worked on
 * @qp: its send queue is stopped; with qp->verbs held, or being destroyed
 *
 * Context: process, sleeps.
 */
void mrsoft_rx_close(struct mrsoft_qp *qp)
{
	struct mrsoft_wire *wire = qp->wire;

	if (!wire)
		return;
	WRITE_ONCE(wire->open, false);
	purge(&wire->reqs);
	purge(&wire->acks);
	/*
	 * Ends: a turn is bounded, and nothing in it waits for a peer or a page.
	 * One that starts later sees it closed.
	 */
	cancel_delayed_work_sync(&wire->work);
	if (wire->rx.job)
		mrsoft_fault_job_end(wire->rx.job);
	wire->rx.job = NULL;
	cancel_delayed_work_sync(&wire->work);
	mrsoft_fault_drop(&wire->rx.msg.fault);
	kfree_skb(wire->rx.held);
	wire->rx.held = NULL;
	mrsoft_route_reset(&wire->tx.route);
	mrsoft_route_reset(&wire->rx.route);
	wire->rx.begun = false;
	wire->rx.read.msg = NULL;
}

/**
 * mrsoft_rx_free - the end of the wire path
 * @qp: closed and unpublished
 *
 * Context: process.
 */
void mrsoft_rx_free(struct mrsoft_qp *qp)
{
	kvfree(qp->wire);
	qp->wire = NULL;
}
