/* SPDX-License-Identifier: GPL-2.0 */
/*
 * wire.h - what a connected QP keeps for the wire path
 *
 * Layer 5: the parts belong to tx.c (requester) and rx.c, ack.c, replay.c
 * (responder).
 */
#ifndef MRSOFT_WIRE_H
#define MRSOFT_WIRE_H

#include <linux/ktime.h>
#include <linux/skbuff.h>

#include "impair.h"
#include "inject.h"
#include "packet.h"
#include "qp.h"
#include "replay.h"
#include "udp.h"

/**
 * struct mrsoft_packet - what rx.c found in a packet, in skb->cb
 * @type: of its opcode
 * @hdr: first byte behind the BTH
 * @payload: first byte
 * @service: RC, UC or UD
 * @psn: 24 bits
 * @length: bytes of the payload, without padding
 * @vlan: on which it came, or MRSOFT_NO_VLAN
 * @solicited: the bit of the BTH
 * @ack_req: the bit of the BTH
 */
struct mrsoft_packet {
	const struct mrsoft_packet_type *type;
	void *hdr;
	void *payload;
	enum ib_qp_type service;
	u32 psn;
	u16 length;
	u16 vlan;
	bool solicited;
	bool ack_req;
};

static inline struct mrsoft_packet *mrsoft_packet(struct sk_buff *skb)
{
	static_assert(sizeof(struct mrsoft_packet) <= sizeof(skb->cb));
	return (struct mrsoft_packet *)skb->cb;
}

/**
 * struct mrsoft_tx - requester: what is on its way
 * @una: oldest PSN that is not answered; READ: next response expected
 * @next: next PSN to send; READ: one behind what was asked for
 * @high: one behind the highest PSN that was ever sent
 * @due: when the time-out, or the RNR wait, ends
 * @rnr: @due ends an RNR wait
 * @gap: what was lost was asked for again, stragglers do not show another loss
 * @backoff: time-outs in a row
 * @route: where it goes
 *
 * Only the runner of the send queue is here.
 */
struct mrsoft_tx {
	u32 una;
	u32 next;
	u32 high;
	ktime_t due;
	bool rnr;
	bool gap;
	u8 backoff;
	struct mrsoft_route route;
};

/**
 * struct mrsoft_read - READ responses that are being sent
 * @msg: the message: that of struct mrsoft_rx, or @again
 * @again: a READ that is asked for once more
 * @psn: of the next response
 * @first: of the first one
 * @end: one behind the last
 */
struct mrsoft_read {
	struct mrsoft_msg *msg;
	struct mrsoft_msg again;
	u32 psn;
	u32 first;
	u32 end;
};

/**
 * struct mrsoft_rx - responder: the message on its way
 * @msg: the message
 * @begun: it has the responder
 * @epsn: next PSN expected
 * @silent: a NAK was sent, nothing is answered before @epsn comes
 * @ack_due: an acknowledge of all before @epsn is owed
 * @read: busy with responses while read.msg is set
 * @held: the packet, if not a READ's, that waits for pages
 * @job: page fault that is waited for
 * @paged: A, it has ended
 * @faults: of them since the last bytes were placed
 * @replay: results that may be asked for again
 * @route: where answers go
 *
 * Only the worker is here.
 */
struct mrsoft_rx {
	struct mrsoft_msg msg;
	bool begun;
	u32 epsn;
	bool silent;
	bool ack_due;
	struct mrsoft_read read;
	struct sk_buff *held;
	struct mrsoft_fault_job *job;
	bool paged;
	u32 faults;
	struct mrsoft_replay replay;
	struct mrsoft_route route;
};

/**
 * struct mrsoft_wire - wire path of a connected QP
 * @qp: whose it is
 * @reqs: requests that came, in the order of their PSNs
 * @acks: answers that came
 * @open: packets may be queued; read under the lock of the queue
 * @sport: UDP source port
 * @work: responder
 * @tx: requester
 * @rx: responder
 */
struct mrsoft_wire {
	struct mrsoft_qp *qp;
	struct sk_buff_head reqs;
	struct sk_buff_head acks;
	bool open;
	u16 sport;
	struct delayed_work work;
	struct mrsoft_tx tx;
	struct mrsoft_rx rx;
};

static inline void mrsoft_bth_fill(struct mrsoft_bth *bth, u8 opcode, u8 flags,
				   u32 qpn, u32 apsn)
{
	*bth = (struct mrsoft_bth){
		.opcode	= opcode,
		.flags	= flags | MRSOFT_BTH_MIGRATED,
		.pkey	= cpu_to_be16(MRSOFT_PKEY_DEFAULT),
		.qpn	= cpu_to_be32(qpn),
		.apsn	= cpu_to_be32(apsn),
	};
}

/* Bytes of padding behind @length bytes of payload, as they stand in the BTH. */
static inline u8 mrsoft_bth_pad(u32 length)
{
	return (-length & 3) << MRSOFT_BTH_PAD_SHIFT;
}

/* Sends a packet of @qp, see mrsoft_udp_xmit(). */
static inline bool mrsoft_wire_xmit(struct mrsoft_qp *qp,
				    const struct mrsoft_av *av, u16 sport,
				    struct mrsoft_route *route,
				    struct sk_buff *skb)
{
	if (mrsoft_inject_on(&qp->hca->stats))
		return mrsoft_impair_xmit(qp, av, sport, route, skb);
	return mrsoft_udp_xmit(qp->hca->udp, av, sport, qp->hca->ifindex, route,
			       skb);
}

#endif /* MRSOFT_WIRE_H */
