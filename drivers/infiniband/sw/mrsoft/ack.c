// SPDX-License-Identifier: GPL-2.0
/*
 * ack.c - answers of the responder: ACK, NAK, READ responses
 *
 * Owns:     building answers.
 * Not here: what is answered (rx.c), executing (resp.c), IP and UDP (udp.c).
 * Locks:    none: the responder's worker is the only user of wire->rx.
 * Lifetime: an answer that is queued somewhere holds nothing of ours.
 * Context:  process.
 * Spec:     IBA Vol 1, 9.7.5 (acknowledge), 9.7.4.2 (READ responses)
 * Tests:    kunit/ack_kunit.c, tools/testing/selftests/packets.c,
 *           tools/testing/suites/wire.sh
 */
#include <linux/unaligned.h>

#include "ack.h"
#include "psn.h"
#include "resp.h"

/* What a turn of READ responses has at most, so that others have the worker. */
#define READ_TURN	32	/* packets */

static void xmit(struct mrsoft_wire *wire, struct sk_buff *skb)
{
	struct mrsoft_qp *qp = wire->qp;

	mrsoft_wire_xmit(qp, &qp->av, wire->sport, &wire->rx.route, skb);
}

/* An answer of @extra bytes behind the AETH, which the caller fills in. */
static struct sk_buff *answer(struct mrsoft_wire *wire, u8 opcode, u32 psn,
			      u8 syndrome, size_t extra, void **behind)
{
	struct mrsoft_qp *qp = wire->qp;
	struct mrsoft_aeth *aeth;
	struct mrsoft_bth *bth;
	struct sk_buff *skb;

	/* Lost for want of memory is lost as on a wire: the peer asks again. */
	skb = mrsoft_udp_alloc(sizeof(*bth) + sizeof(*aeth) + extra, 0,
			       GFP_KERNEL);
	if (!skb)
		return NULL;
	bth = (void *)skb->data;
	mrsoft_bth_fill(bth, opcode, 0, qp->attr.dest_qp_num, psn);
	aeth = (void *)(bth + 1);
	aeth->smsn = cpu_to_be32((u32)syndrome << 24 | READ_ONCE(qp->resp.msn));
	*behind = aeth + 1;
	return skb;
}

/**
 * mrsoft_ack_send - send an ACK or NAK
 * @wire: of the responder
 * @psn: ACK: of the last packet that it covers; NAK: of the one that it refuses
 * @syndrome: MRSOFT_AETH_* with its value
 *
 * Context: process.
 */
void mrsoft_ack_send(struct mrsoft_wire *wire, u32 psn, u8 syndrome)
{
	struct sk_buff *skb;
	void *behind;

	skb = answer(wire, MRSOFT_OPCODE_ACK, psn, syndrome, 0, &behind);
	if (skb)
		xmit(wire, skb);
}

/**
 * mrsoft_ack_refuse - say what the responder answered, if it is to be said
 * @wire: of the responder
 * @psn: of the request packet
 * @status: the responder's answer
 * @rnr_timer: with MRSOFT_S_RNR
 *
 * UC says nothing.
 *
 * Context: process.
 */
void mrsoft_ack_refuse(struct mrsoft_wire *wire, u32 psn,
		       enum mrsoft_status status, u8 rnr_timer)
{
	static const s8 nak[MRSOFT_S_COUNT] = {
		[MRSOFT_S_OK]		= -1,
		[MRSOFT_S_RNR]		= -1,
		[MRSOFT_S_SILENT]	= -1,
		[MRSOFT_S_INV_REQ]	= MRSOFT_NAK_INV_REQ,
		[MRSOFT_S_REM_ACCESS]	= MRSOFT_NAK_REM_ACCESS,
		[MRSOFT_S_REM_OP]	= MRSOFT_NAK_REM_OP,
		[MRSOFT_S_LOC_PROT]	= MRSOFT_NAK_REM_OP,
		[MRSOFT_S_FAULT]	= -1,
	};

	if (wire->qp->type != IB_QPT_RC)
		return;
	if (status == MRSOFT_S_RNR)
		mrsoft_ack_send(wire, psn, MRSOFT_AETH_RNR |
				(rnr_timer & MRSOFT_AETH_VALUE));
	else if (nak[status] >= 0)
		mrsoft_ack_send(wire, psn, MRSOFT_AETH_NAK | nak[status]);
}

/**
 * mrsoft_ack_atomic - send the result of an ATOMIC
 * @wire: of the responder
 * @psn: of the request
 * @old: the value before, host order
 *
 * Context: process.
 */
void mrsoft_ack_atomic(struct mrsoft_wire *wire, u32 psn, u64 old)
{
	struct sk_buff *skb;
	void *behind;

	skb = answer(wire, MRSOFT_OPCODE_ATOMIC_ACK, psn,
		     MRSOFT_AETH_ACK | MRSOFT_AETH_NO_CREDITS,
		     sizeof(struct mrsoft_atomicacketh), &behind);
	if (!skb)
		return;
	put_unaligned_be64(old, behind);
	xmit(wire, skb);
}

/**
 * mrsoft_ack_done - the end of an ATOMIC WRITE or FLUSH
 * @wire: of the responder
 * @psn: of the request
 *
 * Context: process.
 */
void mrsoft_ack_done(struct mrsoft_wire *wire, u32 psn)
{
	struct sk_buff *skb;
	void *behind;

	skb = answer(wire, mrsoft_packet_read_response(MRSOFT_PKTF_ONLY), psn,
		     MRSOFT_AETH_ACK | MRSOFT_AETH_NO_CREDITS, 0, &behind);
	if (skb)
		xmit(wire, skb);
}

/*
 * The last response counts the READ, which is over behind it (IBA 9.7.7.1); the first
 * one may not yet, since a NAK could follow.
 */
static u32 read_msn(const struct mrsoft_wire *wire, u8 where)
{
	const struct mrsoft_read *read = &wire->rx.read;
	u32 msn = READ_ONCE(wire->qp->resp.msn);

	if (!(where & MRSOFT_PKTF_LAST) || read->msg == &read->again)
		return msn;
	return mrsoft_psn_add(msn, 1);
}

static struct sk_buff *response(struct mrsoft_wire *wire, u32 length,
				void **payload)
{
	struct mrsoft_read *read = &wire->rx.read;
	struct mrsoft_qp *qp = wire->qp;
	struct mrsoft_aeth *aeth;
	struct mrsoft_bth *bth;
	struct sk_buff *skb;
	size_t head = sizeof(*bth);
	u8 where = 0;

	if (read->psn == read->first)
		where |= MRSOFT_PKTF_FIRST;
	if (mrsoft_psn_add(read->psn, 1) == read->end)
		where |= MRSOFT_PKTF_LAST;
	if (where)
		head += sizeof(*aeth);
	skb = mrsoft_udp_alloc(head, length, GFP_KERNEL);
	if (!skb)
		return NULL;
	bth = (void *)skb->data;
	mrsoft_bth_fill(bth, mrsoft_packet_read_response(where),
			mrsoft_bth_pad(length), qp->attr.dest_qp_num,
			read->psn);
	if (where) {
		aeth = (void *)(bth + 1);
		aeth->smsn = cpu_to_be32((u32)(MRSOFT_AETH_ACK |
					       MRSOFT_AETH_NO_CREDITS) << 24 |
					 read_msn(wire, where));
	}
	*payload = skb->data + head;
	return skb;
}

/* The next response.  Anything but MRSOFT_S_OK ends them. */
static enum mrsoft_status read_one(struct mrsoft_wire *wire)
{
	struct mrsoft_read *read = &wire->rx.read;
	struct mrsoft_qp *qp = wire->qp;
	struct mrsoft_msg *msg = read->msg;
	enum mrsoft_status status = MRSOFT_S_OK;
	struct mrsoft_span span;
	struct sk_buff *skb;
	void *payload;
	u64 off;
	u32 n;

	off = (u64)mrsoft_psn_diff(read->psn, read->first) * qp->mtu;
	n = min_t(u64, qp->mtu, msg->length - off);
	skb = response(wire, n, &payload);
	if (!skb)
		return MRSOFT_S_SILENT;
	mrsoft_span_kernel(&span, payload, n);
	if (msg == &read->again)
		status = mrsoft_resp_reread(qp, msg, off, &span);
	else if (n)
		status = mrsoft_resp_segment(qp, msg, &span);
	if (status) {
		kfree_skb(skb);
		return status;
	}
	xmit(wire, skb);
	read->psn = mrsoft_psn_add(read->psn, 1);
	wire->rx.faults = 0;
	msg->no_fault = false;
	return MRSOFT_S_OK;
}

static void read_end(struct mrsoft_wire *wire, enum mrsoft_status status)
{
	struct mrsoft_read *read = &wire->rx.read;
	struct mrsoft_msg *msg = read->msg;

	read->msg = NULL;
	if (msg != &read->again) {
		/*
		 * A response without memory is as lost on the way: the peer
		 * asks again, and the READ is over here, as rx.epsn says.
		 */
		if (!status || status == MRSOFT_S_SILENT)
			status = mrsoft_resp_end(wire->qp, msg);
		else
			mrsoft_resp_abort(wire->qp, msg);
		wire->rx.begun = false;
	}
	/* in the middle of a READ as well, IBA 9.7.4.1.5 */
	mrsoft_ack_refuse(wire, read->psn, status, 0);
}

/**
 * mrsoft_ack_read - send READ responses
 * @wire: with rx.read set up
 *
 * Context: process.
 * Return: MRSOFT_S_FAULT: once more when what its message needs was faulted in;
 * else MRSOFT_S_OK: over, or, while read.msg is set, more after others had the
 * worker.
 */
enum mrsoft_status mrsoft_ack_read(struct mrsoft_wire *wire)
{
	struct mrsoft_read *read = &wire->rx.read;
	enum mrsoft_status status = MRSOFT_S_OK;
	int n;

	for (n = 0; n < READ_TURN && read->psn != read->end; n++) {
		status = read_one(wire);
		if (status)
			break;
		cond_resched();
	}
	if (status == MRSOFT_S_FAULT ||
	    (!status && read->psn != read->end))
		return status;
	read_end(wire, status);
	return MRSOFT_S_OK;
}
