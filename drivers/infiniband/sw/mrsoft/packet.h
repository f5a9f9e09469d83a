/* SPDX-License-Identifier: GPL-2.0 */
/*
 * packet.h - one const table of the packets that travel
 *
 * Layer 0: pure.
 */
#ifndef MRSOFT_PACKET_H
#define MRSOFT_PACKET_H

#include <rdma/ib_verbs.h>

#include "hdr.h"

/**
 * enum mrsoft_packet_kind - what a packet is a part of
 * @MRSOFT_PKT_NONE: not a packet that this device knows
 * @MRSOFT_PKT_SEND: request
 * @MRSOFT_PKT_WRITE: request
 * @MRSOFT_PKT_READ: request, always alone
 * @MRSOFT_PKT_ATOMIC: request, always alone
 * @MRSOFT_PKT_ATOMIC_WRITE: request, always alone
 * @MRSOFT_PKT_FLUSH: request, always alone
 * @MRSOFT_PKT_RESERVED: request that a responder of RC refuses
 * @MRSOFT_PKT_ACK: answer: ACK or NAK
 * @MRSOFT_PKT_READ_RESP: answer: data of a READ, or the end of an ATOMIC WRITE or
 *	FLUSH
 * @MRSOFT_PKT_ATOMIC_ACK: answer: old value
 */
enum mrsoft_packet_kind {
	MRSOFT_PKT_NONE,
	MRSOFT_PKT_SEND,
	MRSOFT_PKT_WRITE,
	MRSOFT_PKT_READ,
	MRSOFT_PKT_ATOMIC,
	MRSOFT_PKT_ATOMIC_WRITE,
	MRSOFT_PKT_FLUSH,
	MRSOFT_PKT_RESERVED,
	MRSOFT_PKT_ACK,
	MRSOFT_PKT_READ_RESP,
	MRSOFT_PKT_ATOMIC_ACK,
};

#define MRSOFT_PKTF_FIRST	BIT(0)	/* begins a message */
#define MRSOFT_PKTF_LAST	BIT(1)	/* ends a message */
#define MRSOFT_PKTF_IMM		BIT(2)
#define MRSOFT_PKTF_INV		BIT(3)
#define MRSOFT_PKTF_PAYLOAD	BIT(4)	/* may carry bytes */

#define MRSOFT_PKTF_ONLY	(MRSOFT_PKTF_FIRST | MRSOFT_PKTF_LAST)

/**
 * struct mrsoft_packet_type - what an opcode of the BTH means
 * @kind: enum mrsoft_packet_kind
 * @flags: MRSOFT_PKTF_*
 * @hdr: bytes from the BTH up to the payload
 * @wr: enum ib_wr_opcode of the message, requests only; in the first and middle
 *	packets that of the message without immediate or invalidate
 */
struct mrsoft_packet_type {
	u8 kind;
	u8 flags;
	u8 hdr;
	u8 wr;
};

const struct mrsoft_packet_type *mrsoft_packet_find(u8 opcode,
						    enum ib_qp_type *service);
/* @where: MRSOFT_PKTF_FIRST and LAST as they apply.  -1: there is none. */
int mrsoft_packet_opcode(u32 wr_opcode, enum ib_qp_type type, u8 where);

/* Answers. */
#define MRSOFT_OPCODE_ACK		0x11
#define MRSOFT_OPCODE_ATOMIC_ACK	0x12
int mrsoft_packet_read_response(u8 where);

#endif /* MRSOFT_PACKET_H */
