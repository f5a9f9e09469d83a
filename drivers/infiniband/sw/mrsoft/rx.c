// SPDX-License-Identifier: GPL-2.0
/*
 * rx.c - wire path: packets that come, responder
 *
 * Owns:     checking a packet, finding its QP, the PSN window, putting messages
 *           together; start and end of struct mrsoft_wire.
 * Not here: what a message does (resp.c), answers (ack.c), the requester (tx.c).
 * Locks:    each queue has its own, under which wire->open is looked at; the worker
 *           is the only user of wire->rx.
 * Lifetime: a packet finds the QP by a hold, which ends when the packet is queued.
 *           Closed queues take none, so that after close nothing is left.
 * Context:  arrival in softirq, the responder in process context.
 * Spec:     IBA Vol 1, 9.6 (packet checks), 9.7.4 (responder), 9.8 (UC, UD);
 *           Annex A17
 * Tests:    kunit/wire_kunit.c, tools/testing/selftests/packets.c,
 *           tools/testing/suites/wire.sh
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/slab.h>
#include <linux/unaligned.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "ack.h"
#include "fault.h"
#include "icrc.h"
#include "local.h"
#include "mcast.h"
#include "psn.h"
#include "resp.h"
#include "rx.h"
#include "sq.h"

/* Packets that may wait for a worker: more are lost, and sent again. */
#define MAX_QUEUED	4096u
/* Requests in one turn of the worker. */
#define RX_TURN		64

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

/* Datagrams */

static void fill_grh(struct sk_buff *skb, struct mrsoft_msg *msg)
{
	bool ipv6 = ip_hdr(skb)->version == 6;
	size_t n = ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);

	memset(msg->grh, 0, sizeof(msg->grh) - n);
	memcpy(msg->grh + sizeof(msg->grh) - n, skb_network_header(skb), n);
	msg->ipv4 = !ipv6;
	if (skb_mac_header_was_set(skb) &&
	    skb_network_offset(skb) - skb_mac_offset(skb) >= ETH_HLEN)
		memcpy(msg->smac, eth_hdr(skb)->h_source, ETH_ALEN);
}

static void fill_datagram(struct mrsoft_qp *qp, struct sk_buff *skb,
			  struct mrsoft_msg *msg)
{
	const struct mrsoft_packet *pkt = mrsoft_packet(skb);
	const struct mrsoft_deth *deth = pkt->hdr;
	const struct mrsoft_immeth *imm = (void *)(deth + 1);

	*msg = (struct mrsoft_msg){
		.op	   = mrsoft_op_find(pkt->type->wr, qp->type),
		.opcode	   = pkt->type->wr,
		.solicited = pkt->solicited,
		.src_qpn   = be32_to_cpu(deth->sqpn) & MRSOFT_PSN_MASK,
		.psn	   = pkt->psn,
		.packets   = 1,
		.length	   = pkt->length,
		.qkey	   = be32_to_cpu(deth->qkey),
	};

	if (pkt->type->flags & MRSOFT_PKTF_IMM)
		msg->ex.imm = imm->word;
	fill_grh(skb, msg);
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
	*mrsoft_packet(skb) = pkt;
	bth = (void *)(skb->data + sizeof(struct udphdr));
	*qpn = be32_to_cpu(bth->qpn) & MRSOFT_PSN_MASK;
	return MRSOFT_R_NONE;
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
		return reason;
	qp = mrsoft_qp_get(hca, qpn);
	if (!qp)
		return MRSOFT_R_NO_PEER;
	reason = dispatch(qp, skb, sgid, dgid);
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
		reason = dispatch(qp, copy, sgid, dgid);
	if (!reason)
		return;
	mrsoft_refuse(&qp->hca->stats, reason);
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
		mrsoft_refuse(&hca->stats, reason);
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
	if (mrsoft_mcast_is_group(&dgid)) {
		receive_group(net, skb, plain, &sgid, &dgid);
		goto drop;
	}
	hca = mrsoft_local_find(net, &dgid);
	if (!hca)
		goto drop;
	reason = receive_at(hca, skb, plain, &sgid, &dgid);
	if (!reason)
		return;
	mrsoft_refuse(&hca->stats, reason);
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
	mrsoft_udp_set_rx(receive);
}

/* Responder */

static void ack_now(struct mrsoft_wire *wire)
{
	struct mrsoft_rx *rx = &wire->rx;

	if (!rx->ack_due)
		return;
	rx->ack_due = false;
	mrsoft_ack_send(wire, mrsoft_psn_add(rx->epsn, -1),
			MRSOFT_AETH_ACK | MRSOFT_AETH_NO_CREDITS);
}

/* Ends the message in progress with a refusal.  Nothing behind it is answered. */
static void refuse(struct mrsoft_wire *wire, u32 psn, enum mrsoft_status status)
{
	struct mrsoft_rx *rx = &wire->rx;

	rx->begun = false;
	ack_now(wire);
	if (wire->qp->type != IB_QPT_RC)
		return;
	/* the peer starts again at this packet after an RNR wait */
	rx->silent = status == MRSOFT_S_RNR;
	if (rx->silent)
		rx->epsn = psn;
	mrsoft_ack_refuse(wire, psn, status, rx->msg.rnr_timer);
}

static void invalid(struct mrsoft_wire *wire, u32 psn,
		    enum mrsoft_reason reason)
{
	if (wire->rx.begun)
		mrsoft_resp_abort(wire->qp, &wire->rx.msg);
	refuse(wire, psn, mrsoft_resp_invalid(wire->qp, &wire->rx.msg, reason));
}

static void fill_rdma(struct mrsoft_msg *msg, const void *hdr)
{
	const struct mrsoft_reth *reth = hdr;

	msg->raddr = be64_to_cpu(reth->va);
	msg->rkey = be32_to_cpu(reth->rkey);
	msg->length = be32_to_cpu(reth->length);
}

static void fill_atomic(struct mrsoft_msg *msg, const void *hdr)
{
	const struct mrsoft_atomiceth *eth = hdr;

	msg->raddr = be64_to_cpu(eth->va);
	msg->rkey = be32_to_cpu(eth->rkey);
	msg->swap_add = be64_to_cpu(eth->swap_add);
	msg->compare = be64_to_cpu(eth->compare);
	msg->length = sizeof(u64);
}

/* The message as its first packet tells; what its last one adds comes later. */
static void fill_msg(struct mrsoft_qp *qp, struct mrsoft_msg *msg,
		     const struct mrsoft_packet *pkt)
{
	*msg = (struct mrsoft_msg){
		.op	   = mrsoft_op_find(pkt->type->wr, qp->type),
		.opcode	   = pkt->type->wr,
		.src_qpn   = qp->attr.dest_qp_num,
		.psn	   = pkt->psn,
		.packets   = 1,
	};
	switch (pkt->type->kind) {
	case MRSOFT_PKT_SEND:
		/* grows with each packet */
		msg->length = pkt->length;
		break;
	case MRSOFT_PKT_ATOMIC:
		fill_atomic(msg, pkt->hdr);
		break;
	default:
		fill_rdma(msg, pkt->hdr);
		msg->packets = mrsoft_psn_packets(msg->length, qp->mtu);
	}
}

/* Immediate or invalidate of the last packet, which names the operation. */
static void fill_last(struct mrsoft_qp *qp, struct mrsoft_msg *msg,
		      const struct mrsoft_packet *pkt)
{
	const struct mrsoft_immeth *eth = pkt->payload - sizeof(*eth);

	msg->op = mrsoft_op_find(pkt->type->wr, qp->type);
	msg->opcode = pkt->type->wr;
	msg->solicited = pkt->solicited;
	if (pkt->type->flags & MRSOFT_PKTF_IMM)
		msg->ex.imm = eth->word;
	else if (pkt->type->flags & MRSOFT_PKTF_INV)
		msg->ex.inv_key = be32_to_cpu(eth->word);
}

/* Does the packet go on where the message is?  IBA 9.7.4.1.2. */
static enum mrsoft_reason check_order(const struct mrsoft_rx *rx,
				      const struct mrsoft_packet *pkt)
{
	u8 kind = rx->msg.op && rx->msg.op->kind == MRSOFT_OP_SEND ?
		  MRSOFT_PKT_SEND : MRSOFT_PKT_WRITE;

	if (rx->begun == !!(pkt->type->flags & MRSOFT_PKTF_FIRST))
		return MRSOFT_R_PKT_ORDER;
	if (rx->begun && pkt->type->kind != kind)
		return MRSOFT_R_PKT_ORDER;
	return MRSOFT_R_NONE;
}

/* Full packets but for the last, and together what was announced. */
static enum mrsoft_reason check_length(const struct mrsoft_wire *wire,
				       const struct mrsoft_packet *pkt)
{
	const struct mrsoft_msg *msg = &wire->rx.msg;
	u32 mtu = wire->qp->mtu;
	bool last = pkt->type->flags & MRSOFT_PKTF_LAST;

	if (pkt->type->kind == MRSOFT_PKT_ATOMIC_WRITE)
		return pkt->length == sizeof(u64) &&
		       msg->length == sizeof(u64) ? MRSOFT_R_NONE :
						    MRSOFT_R_PKT_LENGTH;
	if (msg->length > MRSOFT_MAX_MSG)
		return MRSOFT_R_MSG_TOO_LONG;
	if (pkt->type->kind != MRSOFT_PKT_SEND &&
	    pkt->type->kind != MRSOFT_PKT_WRITE)
		return MRSOFT_R_NONE;
	if (last ? pkt->length > mtu : pkt->length != mtu)
		return MRSOFT_R_PKT_LENGTH;
	/* a message that could have ended before */
	if (last && !pkt->length && !(pkt->type->flags & MRSOFT_PKTF_FIRST))
		return MRSOFT_R_PKT_LENGTH;
	if (pkt->type->kind == MRSOFT_PKT_WRITE &&
	    (last ? msg->done + pkt->length != msg->length :
		    msg->done + pkt->length >= msg->length))
		return MRSOFT_R_PKT_LENGTH;
	return MRSOFT_R_NONE;
}

static void remember(struct mrsoft_wire *wire, u8 kind)
{
	const struct mrsoft_msg *msg = &wire->rx.msg;
	struct mrsoft_result result = {
		.psn	 = msg->psn,
		.packets = msg->packets,
		.kind	 = kind,
		.rkey	 = msg->rkey,
		.raddr	 = msg->raddr,
		.length	 = msg->length,
		.old	 = msg->old,
	};

	mrsoft_replay_add(&wire->rx.replay, &result);
}

static void start_read(struct mrsoft_wire *wire)
{
	struct mrsoft_rx *rx = &wire->rx;

	remember(wire, MRSOFT_PKT_READ);
	rx->read.psn = rx->msg.psn;
	rx->read.first = rx->msg.psn;
	rx->read.end = mrsoft_psn_add(rx->msg.psn, rx->msg.packets);
	rx->read.base = 0;
	rx->read.msg = &rx->msg;
	rx->epsn = rx->read.end;
}

/* True: the packet is needed once more. */
static bool finish_atomic(struct mrsoft_wire *wire)
{
	struct mrsoft_rx *rx = &wire->rx;
	enum mrsoft_status status;

	status = mrsoft_resp_atomic(wire->qp, &rx->msg);
	if (status == MRSOFT_S_FAULT)
		return true;
	if (!status)
		status = mrsoft_resp_end(wire->qp, &rx->msg);
	if (status) {
		refuse(wire, rx->msg.psn, status);
		return false;
	}
	rx->begun = false;
	rx->epsn = mrsoft_psn_add(rx->msg.psn, 1);
	remember(wire, MRSOFT_PKT_ATOMIC);
	mrsoft_ack_atomic(wire, rx->msg.psn, rx->msg.old);
	return false;
}

/* A WRITE says in its last packet only that it wants a receive WQE. */
static bool is_late_recv(const struct mrsoft_packet *pkt)
{
	return pkt->type->kind == MRSOFT_PKT_WRITE &&
	       (pkt->type->flags & MRSOFT_PKTF_IMM) &&
	       !(pkt->type->flags & MRSOFT_PKTF_FIRST);
}

/*
 * Bytes of SEND, WRITE and ATOMIC WRITE, and the end of the message.  True: the
 * packet is needed once more.
 */
static bool take_data(struct mrsoft_wire *wire, struct mrsoft_packet *pkt)
{
	bool last = pkt->type->flags & MRSOFT_PKTF_LAST;
	struct mrsoft_rx *rx = &wire->rx;
	enum mrsoft_status status = MRSOFT_S_OK;
	struct mrsoft_span span;

	if (is_late_recv(pkt)) {
		status = mrsoft_resp_take_recv(wire->qp, &rx->msg);
		if (status == MRSOFT_S_RNR) {
			/* the message goes on with this packet, after the wait */
			ack_now(wire);
			rx->silent = true;
			mrsoft_ack_refuse(wire, pkt->psn, status,
					  rx->msg.rnr_timer);
			return false;
		}
	}
	if (!status && pkt->length) {
		mrsoft_span_kernel(&span, pkt->payload, pkt->length);
		status = mrsoft_resp_segment(wire->qp, &rx->msg, &span);
		if (status == MRSOFT_S_FAULT)
			return true;
	}
	if (!status && last) {
		rx->msg.packets = mrsoft_psn_diff(pkt->psn, rx->msg.psn) + 1;
		status = mrsoft_resp_end(wire->qp, &rx->msg);
	}
	if (status) {
		refuse(wire, pkt->psn, status);
		return false;
	}
	rx->epsn = mrsoft_psn_add(pkt->psn, 1);
	if (last)
		rx->begun = false;
	if (pkt->type->kind == MRSOFT_PKT_ATOMIC_WRITE) {
		remember(wire, MRSOFT_PKT_ATOMIC_WRITE);
		mrsoft_ack_atomic_write(wire, pkt->psn);
	} else if (pkt->ack_req || last) {
		rx->ack_due = wire->qp->type == IB_QPT_RC;
	}
	return false;
}

/* A packet of a message that has begun; also for one that was held. */
static bool go_on(struct mrsoft_wire *wire, struct mrsoft_packet *pkt)
{
	switch (pkt->type->kind) {
	case MRSOFT_PKT_READ:
		ack_now(wire);
		start_read(wire);
		return false;
	case MRSOFT_PKT_ATOMIC:
		ack_now(wire);
		return finish_atomic(wire);
	default:
		return take_data(wire, pkt);
	}
}

/* The packet that is due.  True: it is needed once more. */
static bool in_order(struct mrsoft_wire *wire, struct mrsoft_packet *pkt)
{
	struct mrsoft_rx *rx = &wire->rx;
	struct mrsoft_msg *msg = &rx->msg;
	enum mrsoft_reason reason;
	enum mrsoft_status status;

	rx->silent = false;
	reason = check_order(rx, pkt);
	if (reason) {
		invalid(wire, pkt->psn, reason);
		return false;
	}
	if (pkt->type->flags & MRSOFT_PKTF_FIRST)
		fill_msg(wire->qp, msg, pkt);
	else if (pkt->type->kind == MRSOFT_PKT_SEND)
		msg->length += pkt->length;
	if (pkt->type->flags & MRSOFT_PKTF_LAST)
		fill_last(wire->qp, msg, pkt);
	reason = check_length(wire, pkt);
	if (reason) {
		invalid(wire, pkt->psn, reason);
		return false;
	}
	if (pkt->type->flags & MRSOFT_PKTF_FIRST) {
		status = mrsoft_resp_begin(wire->qp, msg);
		if (status) {
			refuse(wire, pkt->psn, status);
			return false;
		}
		rx->begun = true;
	}
	return go_on(wire, pkt);
}

/* Asked for once more: answered from memory, or from what was remembered. */
static void reread(struct mrsoft_wire *wire, const struct mrsoft_packet *pkt)
{
	struct mrsoft_rx *rx = &wire->rx;
	struct mrsoft_msg *again = &rx->read.again;
	const struct mrsoft_result *old;
	u64 off;

	old = mrsoft_replay_find(&rx->replay, MRSOFT_PKT_READ, pkt->psn);
	if (!old)
		return;
	fill_msg(wire->qp, again, pkt);
	off = (u64)mrsoft_psn_diff(pkt->psn, old->psn) * wire->qp->mtu;
	/* It must be a part of the one that was allowed. */
	if (again->rkey != old->rkey || again->raddr != old->raddr + off ||
	    again->length > old->length - off)
		return;
	rx->read.psn = pkt->psn;
	rx->read.first = pkt->psn;
	rx->read.end = mrsoft_psn_add(pkt->psn, again->packets);
	rx->read.base = 0;
	rx->read.msg = again;
}

/* A packet that came before.  IBA 9.7.5.1.2. */
static void duplicate(struct mrsoft_wire *wire, const struct mrsoft_packet *pkt)
{
	const struct mrsoft_result *old;
	struct mrsoft_rx *rx = &wire->rx;

	atomic64_inc(&wire->qp->hca->stats.duplicates);
	switch (pkt->type->kind) {
	case MRSOFT_PKT_READ:
		ack_now(wire);
		reread(wire, pkt);
		break;
	case MRSOFT_PKT_ATOMIC:
		old = mrsoft_replay_find(&rx->replay, MRSOFT_PKT_ATOMIC,
					 pkt->psn);
		ack_now(wire);
		if (old)
			mrsoft_ack_atomic(wire, pkt->psn, old->old);
		break;
	case MRSOFT_PKT_ATOMIC_WRITE:
		old = mrsoft_replay_find(&rx->replay, MRSOFT_PKT_ATOMIC_WRITE,
					 pkt->psn);
		ack_now(wire);
		if (old)
			mrsoft_ack_atomic_write(wire, pkt->psn);
		break;
	default:
		rx->ack_due = true;
	}
}

/* UC takes what begins a message and loses what does not fit.  IBA 9.8.2.2. */
static bool respond_uc(struct mrsoft_wire *wire, struct mrsoft_packet *pkt)
{
	struct mrsoft_rx *rx = &wire->rx;

	if (pkt->psn != rx->epsn || (pkt->type->flags & MRSOFT_PKTF_FIRST)) {
		if (rx->begun)
			mrsoft_resp_abort(wire->qp, &rx->msg);
		rx->begun = false;
		if (!(pkt->type->flags & MRSOFT_PKTF_FIRST)) {
			mrsoft_refuse(&wire->qp->hca->stats, MRSOFT_R_PSN);
			return false;
		}
		rx->epsn = pkt->psn;
	} else if (!rx->begun) {
		/* the rest of a message that was lost */
		rx->epsn = mrsoft_psn_add(pkt->psn, 1);
		return false;
	}
	return in_order(wire, pkt);
}

static bool respond_rc(struct mrsoft_wire *wire, struct mrsoft_packet *pkt)
{
	struct mrsoft_rx *rx = &wire->rx;
	s32 diff = mrsoft_psn_diff(pkt->psn, rx->epsn);

	if (!diff)
		return in_order(wire, pkt);
	if (diff < 0) {
		duplicate(wire, pkt);
		return false;
	}
	mrsoft_refuse(&wire->qp->hca->stats, MRSOFT_R_PSN);
	if (!rx->silent) {
		rx->silent = true;
		ack_now(wire);
		mrsoft_ack_send(wire, rx->epsn,
				MRSOFT_AETH_NAK | MRSOFT_NAK_PSN);
	}
	return false;
}

/* @again: it was held before.  True: it is needed once more. */
static bool respond(struct mrsoft_wire *wire, struct sk_buff *skb, bool again)
{
	struct mrsoft_packet *pkt = mrsoft_packet(skb);
	struct mrsoft_msg *msg = &wire->rx.msg;
	struct mrsoft_qp *qp = wire->qp;

	if (mrsoft_qp_is_datagram(qp)) {
		if (!again)
			fill_datagram(qp, skb, msg);
		return mrsoft_resp_datagram(qp, msg, pkt->payload) ==
		       MRSOFT_S_FAULT;
	}
	if (again)
		return go_on(wire, pkt);
	return qp->type == IB_QPT_UC ? respond_uc(wire, pkt) :
				       respond_rc(wire, pkt);
}

/* Pages */

static void paged(void *arg)
{
	struct mrsoft_wire *wire = arg;

	WRITE_ONCE(wire->rx.paged, true);
	mod_delayed_work(wire->qp->hca->wq, &wire->work, 0);
}

/*
 * Has what @msg needs faulted in, in the background: it may take for ever, and
 * nobody who destroys the QP waits for it.  Who tries again and again ends, since
 * after MRSOFT_FAULT_TRIES without a byte placed the absence is final.
 */
static void page_in(struct mrsoft_wire *wire, struct mrsoft_msg *msg)
{
	struct mrsoft_rx *rx = &wire->rx;

	atomic64_inc(&wire->qp->hca->stats.page_faults);
	if (++rx->faults > MRSOFT_FAULT_TRIES) {
		mrsoft_fault_drop(&msg->fault);
		msg->no_fault = true;
		mod_delayed_work(wire->qp->hca->wq, &wire->work, 0);
		return;
	}
	WRITE_ONCE(rx->paged, false);
	rx->job = mrsoft_fault_start(&msg->fault, paged, wire);
	if (rx->job)
		return;
	/* no memory, or many wait already: a fault that did not run is no try */
	rx->faults--;
	queue_delayed_work(wire->qp->hca->wq, &wire->work, 1);
}

/* False: a page is still waited for. */
static bool pages_are_there(struct mrsoft_wire *wire)
{
	struct mrsoft_rx *rx = &wire->rx;
	struct mrsoft_msg *msg = rx->read.msg ? rx->read.msg : &rx->msg;

	if (!rx->job)
		return true;
	if (!READ_ONCE(rx->paged))
		return false;
	if (mrsoft_fault_job_end(rx->job))
		msg->no_fault = true;
	rx->job = NULL;
	return true;
}

static void placed(struct mrsoft_rx *rx)
{
	rx->faults = 0;
	rx->msg.no_fault = false;
}

/* One step of the responder.  False: there is nothing to do, or a page to wait for. */
static bool step(struct mrsoft_wire *wire)
{
	struct mrsoft_rx *rx = &wire->rx;
	struct sk_buff *skb = rx->held;
	bool again = skb;

	if (rx->read.msg) {
		/* the rest of a long READ, before what came behind it */
		switch (mrsoft_ack_read(wire)) {
		case MRSOFT_S_FAULT:
			page_in(wire, rx->read.msg);
			return false;
		default:
			return true;
		}
	}
	if (!skb)
		skb = skb_dequeue(&wire->reqs);
	if (!skb)
		return false;
	rx->held = NULL;
	if (respond(wire, skb, again)) {
		rx->held = skb;
		page_in(wire, &rx->msg);
		return false;
	}
	placed(rx);
	kfree_skb(skb);
	return true;
}

static void work_fn(struct work_struct *work)
{
	struct mrsoft_wire *wire = container_of(to_delayed_work(work),
						struct mrsoft_wire, work);
	bool more = true;
	int n;

	if (!READ_ONCE(wire->open) || !pages_are_there(wire))
		return;
	for (n = 0; more && n < RX_TURN; n++) {
		more = mrsoft_resp_can_receive(wire->qp) && step(wire);
		cond_resched();
	}
	ack_now(wire);
	if (more)
		mod_delayed_work(wire->qp->hca->wq, &wire->work, 0);
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
	INIT_DELAYED_WORK(&wire->work, work_fn);
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
	/* Who takes the lock of a queue after the purge sees it closed. */
	WRITE_ONCE(wire->open, false);
	skb_queue_purge(&wire->reqs);
	skb_queue_purge(&wire->acks);
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
