// SPDX-License-Identifier: GPL-2.0
/*
 * request.c - wire path, requester: messages as packets
 *
 * Owns:     cutting messages into packets, their headers, datagrams.
 * Not here: which packet is sent when (tx.c), IP and UDP (udp.c).
 * Locks:    none.
 * Lifetime: a packet has copies of the bytes; a lost one is built anew from
 *           memory, with all checks.
 * Context:  process, the runner of the send queue.
 * Spec:     IBA Vol 1, 9.2 (headers), 9.4 (packets of a message)
 * Tests:    tools/testing/selftests/headers.c, tools/testing/suites/wire.sh
 */
#include "psn.h"
#include "request.h"
#include "sgl.h"

static struct sk_buff *request(struct mrsoft_qp *qp, u32 psn, u8 where,
			       size_t length, bool ack_req, void **behind)
{
	struct mrsoft_msg *msg = qp->sq.msg;
	const struct mrsoft_packet_type *type;
	enum ib_qp_type service;
	struct mrsoft_bth *bth;
	struct sk_buff *skb;
	int opcode;
	u8 flags;

	opcode = mrsoft_packet_opcode(msg->opcode, qp->type, where);
	if (WARN_ON_ONCE(opcode < 0))
		return NULL;
	type = mrsoft_packet_find(opcode, &service);
	skb = mrsoft_udp_alloc(type->hdr, length, GFP_KERNEL);
	if (!skb)
		return NULL;
	flags = mrsoft_bth_pad(length);
	/* only for what ends in a receive completion, IBA 9.2.3 */
	if (msg->solicited && (where & MRSOFT_PKTF_LAST) &&
	    (msg->op->flags & MRSOFT_OPF_RECV))
		flags |= MRSOFT_BTH_SOLICITED;
	bth = (void *)skb->data;
	mrsoft_bth_fill(bth, opcode, flags, qp->attr.dest_qp_num,
			psn | (ack_req ? MRSOFT_BTH_ACK_REQ : 0));
	*behind = bth + 1;
	return skb;
}

static void *put_reth(void *to, const struct mrsoft_msg *msg, u64 off,
		      u32 length)
{
	struct mrsoft_reth *reth = to;

	reth->va = cpu_to_be64(msg->raddr + off);
	reth->rkey = cpu_to_be32(msg->rkey);
	reth->length = cpu_to_be32(length);
	return reth + 1;
}

static void *put_flush(void *to, const struct mrsoft_msg *msg)
{
	struct mrsoft_feth *feth = to;

	feth->bits = cpu_to_be32(msg->flush.type | (u32)msg->flush.level <<
						   MRSOFT_FETH_SEL_SHIFT);
	return put_reth(feth + 1, msg, 0, msg->flush.length);
}

/* The headers behind the BTH of SEND, WRITE and FLUSH. */
static void *put_headers(void *to, const struct mrsoft_msg *msg, u8 where)
{
	const struct mrsoft_op *op = msg->op;
	struct mrsoft_immeth *eth;

	if (op->kind == MRSOFT_OP_FLUSH)
		return put_flush(to, msg);
	if (op->kind == MRSOFT_OP_WRITE && (where & MRSOFT_PKTF_FIRST))
		to = put_reth(to, msg, 0, msg->length);
	if (!(where & MRSOFT_PKTF_LAST) ||
	    !(op->flags & (MRSOFT_OPF_IMM | MRSOFT_OPF_INV)))
		return to;
	eth = to;
	eth->word = op->flags & MRSOFT_OPF_IMM ? msg->ex.imm :
						 cpu_to_be32(msg->ex.inv_key);
	return eth + 1;
}

static void xmit(struct mrsoft_qp *qp, struct sk_buff *skb)
{
	struct mrsoft_hca *hca = qp->hca;
	enum mrsoft_reason reason = MRSOFT_R_NONE;

	if (!READ_ONCE(hca->port_up)) {
		kfree_skb(skb);
		reason = mrsoft_qp_refuse_send(qp, MRSOFT_R_PORT_DOWN);
	} else if (!mrsoft_wire_xmit(qp, &qp->av, qp->wire->sport,
				     &qp->wire->tx.route, skb)) {
		reason = mrsoft_qp_refuse_send(qp, MRSOFT_R_NO_PATH);
	}
	/* As lost on the way: a time-out finds it out. */
	qp->sq.msg->reason = reason;
}

static u8 where_is(const struct mrsoft_msg *msg, u32 psn)
{
	u8 where = 0;

	if (psn == msg->psn)
		where |= MRSOFT_PKTF_FIRST;
	if (mrsoft_request_index(msg, psn) + 1 == msg->packets)
		where |= MRSOFT_PKTF_LAST;
	return where;
}

/**
 * mrsoft_request_data - send a packet of SEND, WRITE or FLUSH
 * @qp: RC or UC, with the message in qp->sq.msg
 * @psn: of the packet
 * @n: bytes of it
 *
 * One that cannot be sent is as one that is lost.
 *
 * Context: process, the runner of the send queue.
 * Return: MRSOFT_S_OK, or why the bytes cannot be read.
 */
enum mrsoft_status mrsoft_request_data(struct mrsoft_qp *qp, u32 psn, u32 n)
{
	struct mrsoft_msg *msg = qp->sq.msg;
	u8 where = where_is(msg, psn);
	enum mrsoft_status status;
	struct sk_buff *skb;
	bool ack_req;
	void *to;

	/* RC only: UC is never answered */
	ack_req = qp->type == IB_QPT_RC &&
		  ((where & MRSOFT_PKTF_LAST) || !((psn + 1) % (MRSOFT_TX_WINDOW / 2)));
	skb = request(qp, psn, where, n, ack_req, &to);
	if (!skb)
		return MRSOFT_S_OK;
	to = put_headers(to, msg, where);
	status = mrsoft_sgl_move(qp, mrsoft_request_offset(qp, psn), to, n, false);
	if (status)
		kfree_skb(skb);
	else
		xmit(qp, skb);
	return status;
}

/**
 * mrsoft_request_read - ask for responses of a READ
 * @qp: RC, with the message in qp->sq.msg
 * @psn: of the first
 * @packets: how many
 *
 * Context: process, the runner of the send queue.
 */
void mrsoft_request_read(struct mrsoft_qp *qp, u32 psn, u32 packets)
{
	struct mrsoft_msg *msg = qp->sq.msg;
	u64 off = mrsoft_request_offset(qp, psn);
	struct sk_buff *skb;
	void *to;

	skb = request(qp, psn, MRSOFT_PKTF_ONLY, 0, true, &to);
	if (!skb)
		return;
	put_reth(to, msg, off, min_t(u64, (u64)packets * qp->mtu,
				     msg->length - off));
	xmit(qp, skb);
}

/**
 * mrsoft_request_atomic - send the request of an atomic
 * @qp: RC, with the message in qp->sq.msg
 * @psn: of the packet
 *
 * Context: process, the runner of the send queue.
 */
void mrsoft_request_atomic(struct mrsoft_qp *qp, u32 psn)
{
	struct mrsoft_msg *msg = qp->sq.msg;
	struct mrsoft_atomiceth *eth;
	struct sk_buff *skb;
	void *to;

	skb = request(qp, psn, MRSOFT_PKTF_ONLY, 0, true, &to);
	if (!skb)
		return;
	eth = to;
	eth->va = cpu_to_be64(msg->raddr);
	eth->rkey = cpu_to_be32(msg->rkey);
	eth->swap_add = cpu_to_be64(msg->swap_add);
	eth->compare = cpu_to_be64(msg->compare);
	xmit(qp, skb);
}

/**
 * mrsoft_request_datagram - send a UD message
 * @qp: runner, with its message in qp->sq.msg
 * @av: where to
 * @payload: the bytes
 *
 * Context: process.
 */
void mrsoft_request_datagram(struct mrsoft_qp *qp, const struct mrsoft_av *av,
			     const void *payload)
{
	struct mrsoft_msg *msg = qp->sq.msg;
	u32 qpn = qp->sq.cur->ud.qpn & MRSOFT_PSN_MASK;
	struct mrsoft_hca *hca = qp->hca;
	struct mrsoft_deth *deth;
	struct sk_buff *skb;
	void *to;

	if (!READ_ONCE(hca->port_up)) {
		mrsoft_qp_refuse_send(qp, MRSOFT_R_PORT_DOWN);
		return;
	}
	skb = request(qp, msg->psn, MRSOFT_PKTF_ONLY, msg->length, false, &to);
	if (!skb)
		return;
	((struct mrsoft_bth *)skb->data)->qpn = cpu_to_be32(qpn);
	deth = to;
	deth->qkey = cpu_to_be32(msg->qkey);
	deth->sqpn = cpu_to_be32(msg->src_qpn);
	to = put_headers(deth + 1, msg, MRSOFT_PKTF_ONLY);
	memcpy(to, payload, msg->length);
	if (!mrsoft_wire_xmit(qp, av,
			      rdma_get_udp_sport(av->flow_label, qp->qpn, qpn),
			      NULL, skb))
		mrsoft_qp_refuse_send(qp, MRSOFT_R_NO_PATH);
}
