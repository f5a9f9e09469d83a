// SPDX-License-Identifier: GPL-2.0
/*
 * window.c - wire path, responder: the PSN window, messages from packets
 *
 * Owns:     which request packet is due, a duplicate or out of order; putting
 *           messages together; waiting for pages.
 * Not here: how a packet got here (rx.c), what a message does (resp.c), building
 *           answers (ack.c).
 * Locks:    none: the worker is the only user of wire->rx.
 * Lifetime: mrsoft_rx_close() ends the worker.
 * Context:  process.
 * Spec:     IBA Vol 1, 9.7.4 (responder), 9.7.5.1.2 (duplicates), 9.8 (UC, UD)
 * Tests:    kunit/wire_kunit.c, tools/testing/selftests/packets.c,
 *           tools/testing/suites/wire.sh
 */
#include <linux/etherdevice.h>
#include <linux/unaligned.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "ack.h"
#include "fault.h"
#include "psn.h"
#include "resp.h"
#include "window.h"

/* Requests in one turn of the worker. */
#define TURN	64

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
		.tagged	   = pkt->vlan != MRSOFT_NO_VLAN,
		.vlan	   = pkt->vlan,
	};

	if (pkt->type->flags & MRSOFT_PKTF_IMM)
		msg->ex.imm = imm->word;
	fill_grh(skb, msg);
}

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

static void fill_flush(struct mrsoft_msg *msg, const void *hdr)
{
	const struct mrsoft_feth *feth = hdr;
	const struct mrsoft_reth *reth = (void *)(feth + 1);
	u32 bits = be32_to_cpu(feth->bits);

	msg->raddr = be64_to_cpu(reth->va);
	msg->rkey = be32_to_cpu(reth->rkey);
	msg->flush = (struct mrsoft_flush){
		.length	= be32_to_cpu(reth->length),
		.type	= bits & MRSOFT_FETH_PLT,
		.level	= (bits & MRSOFT_FETH_SEL) >> MRSOFT_FETH_SEL_SHIFT,
	};
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
	case MRSOFT_PKT_FLUSH:
		fill_flush(msg, pkt->hdr);
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

/* Does the packet go on where the message is, and as what?  IBA 9.7.4.1.2. */
static enum mrsoft_reason check_order(const struct mrsoft_rx *rx,
				      const struct mrsoft_packet *pkt)
{
	u8 kind = rx->msg.op && rx->msg.op->kind == MRSOFT_OP_SEND ?
		  MRSOFT_PKT_SEND : MRSOFT_PKT_WRITE;

	if (pkt->type->kind == MRSOFT_PKT_RESERVED)
		return MRSOFT_R_PKT_OPCODE;
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

/* What its packets say together.  IBA 9.7.4.1.7; Annex A19. */
static enum mrsoft_reason check_message(const struct mrsoft_wire *wire,
					const struct mrsoft_packet *pkt)
{
	if (pkt->type->kind == MRSOFT_PKT_FLUSH)
		return mrsoft_flush_known(&wire->rx.msg.flush) ?
			MRSOFT_R_NONE : MRSOFT_R_PKT_HEADER;
	return check_length(wire, pkt);
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

/* Requests without an acknowledge: their answer is remembered. */
static bool has_result(const struct mrsoft_packet *pkt)
{
	return pkt->type->kind == MRSOFT_PKT_ATOMIC_WRITE ||
	       pkt->type->kind == MRSOFT_PKT_FLUSH;
}

/*
 * Bytes of SEND, WRITE and ATOMIC WRITE, none of FLUSH, and the end of the message.
 * True: the packet is needed once more.
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
	if (has_result(pkt)) {
		remember(wire, pkt->type->kind);
		mrsoft_ack_done(wire, pkt->psn);
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
	case MRSOFT_PKT_FLUSH:
		ack_now(wire);
		return take_data(wire, pkt);
	default:
		return take_data(wire, pkt);
	}
}

/* One before the packet that is due is missing. */
static void ask_again(struct mrsoft_wire *wire)
{
	struct mrsoft_rx *rx = &wire->rx;

	if (rx->silent)
		return;
	rx->silent = true;
	ack_now(wire);
	mrsoft_ack_send(wire, rx->epsn, MRSOFT_AETH_NAK | MRSOFT_NAK_PSN);
}

/* A rule has a packet that is there be missing.  Not if it broke the QP. */
static bool is_injected_gap(struct mrsoft_wire *wire,
			    enum mrsoft_status status)
{
	return status == MRSOFT_S_SILENT && wire->qp->type == IB_QPT_RC &&
	       wire->rx.msg.reason == MRSOFT_R_INJECTED &&
	       mrsoft_resp_can_receive(wire->qp);
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
	reason = check_message(wire, pkt);
	if (reason) {
		invalid(wire, pkt->psn, reason);
		return false;
	}
	if (pkt->type->flags & MRSOFT_PKTF_FIRST) {
		status = mrsoft_resp_begin(wire->qp, msg);
		if (status) {
			refuse(wire, pkt->psn, status);
			if (is_injected_gap(wire, status))
				ask_again(wire);
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
	case MRSOFT_PKT_FLUSH:
		/* what was placed before is still visible: no need to run it */
		old = mrsoft_replay_find(&rx->replay, pkt->type->kind,
					 pkt->psn);
		ack_now(wire);
		if (old)
			mrsoft_ack_done(wire, pkt->psn);
		break;
	case MRSOFT_PKT_RESERVED:
		/* none was ever executed */
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
			mrsoft_qp_refuse(wire->qp, "packet", MRSOFT_R_PSN);
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
	mrsoft_qp_refuse(wire->qp, "packet", MRSOFT_R_PSN);
	ask_again(wire);
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

/**
 * mrsoft_window_work - a turn of the responder
 * @work: of a struct mrsoft_wire
 *
 * Context: process, the worker.
 */
void mrsoft_window_work(struct work_struct *work)
{
	struct mrsoft_wire *wire = container_of(to_delayed_work(work),
						struct mrsoft_wire, work);
	bool more = true;
	int n;

	if (!READ_ONCE(wire->open) || !pages_are_there(wire))
		return;
	for (n = 0; more && n < TURN; n++) {
		more = mrsoft_resp_can_receive(wire->qp) && step(wire);
		cond_resched();
	}
	ack_now(wire);
	if (more)
		mod_delayed_work(wire->qp->hca->wq, &wire->work, 0);
}
