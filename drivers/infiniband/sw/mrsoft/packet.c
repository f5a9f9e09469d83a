// SPDX-License-Identifier: GPL-2.0
/*
 * packet.c - one const table of the packets that travel
 *
 * Owns:     opcode of the BTH -> service, kind, place in the message, headers; and
 *           back.
 * Not here: building and reading packets (tx.c, ack.c, rx.c), work requests
 *           (opcode.c).
 * Locks:    none, all data is const.
 * Context:  any.
 * Spec:     IBA Vol 1, 9.2, table 38; Annex A19 (FLUSH, ATOMIC WRITE)
 * Tests:    kunit/wire_kunit.c
 */
#include <rdma/ib_pack.h>

#include "packet.h"

#define F		MRSOFT_PKTF_FIRST
#define L		MRSOFT_PKTF_LAST
#define ONLY		MRSOFT_PKTF_ONLY
#define IMM		MRSOFT_PKTF_IMM
#define INV		MRSOFT_PKTF_INV
#define DATA		MRSOFT_PKTF_PAYLOAD

#define BTH		sizeof(struct mrsoft_bth)
#define RETH		sizeof(struct mrsoft_reth)
#define FETH		sizeof(struct mrsoft_feth)
#define AETH		sizeof(struct mrsoft_aeth)
#define DETH		sizeof(struct mrsoft_deth)
#define IMMETH		sizeof(struct mrsoft_immeth)

#define PKT(_kind, _flags, _hdr, _wr) {					\
	.kind = MRSOFT_PKT_##_kind, .flags = (_flags),			\
	.hdr = BTH + (_hdr), .wr = (_wr),				\
}

/* An opcode is three bits of service and five of operation. */
#define OPERATION		0x1f
/* UC has the operations of RC up to this one. */
#define LAST_OF_UC		IB_OPCODE_RDMA_WRITE_ONLY_WITH_IMMEDIATE
/* Annex A19; older headers do not name them. */
#define FLUSH			0x1c
#define ATOMIC_WRITE		0x1d

static const struct mrsoft_packet_type connected[OPERATION + 1] = {
	[IB_OPCODE_SEND_FIRST] = PKT(SEND, F | DATA, 0, IB_WR_SEND),
	[IB_OPCODE_SEND_MIDDLE] = PKT(SEND, DATA, 0, IB_WR_SEND),
	[IB_OPCODE_SEND_LAST] = PKT(SEND, L | DATA, 0, IB_WR_SEND),
	[IB_OPCODE_SEND_LAST_WITH_IMMEDIATE] =
		PKT(SEND, L | IMM | DATA, IMMETH, IB_WR_SEND_WITH_IMM),
	[IB_OPCODE_SEND_ONLY] = PKT(SEND, ONLY | DATA, 0, IB_WR_SEND),
	[IB_OPCODE_SEND_ONLY_WITH_IMMEDIATE] =
		PKT(SEND, ONLY | IMM | DATA, IMMETH, IB_WR_SEND_WITH_IMM),
	[IB_OPCODE_RDMA_WRITE_FIRST] =
		PKT(WRITE, F | DATA, RETH, IB_WR_RDMA_WRITE),
	[IB_OPCODE_RDMA_WRITE_MIDDLE] = PKT(WRITE, DATA, 0, IB_WR_RDMA_WRITE),
	[IB_OPCODE_RDMA_WRITE_LAST] = PKT(WRITE, L | DATA, 0, IB_WR_RDMA_WRITE),
	[IB_OPCODE_RDMA_WRITE_LAST_WITH_IMMEDIATE] =
		PKT(WRITE, L | IMM | DATA, IMMETH, IB_WR_RDMA_WRITE_WITH_IMM),
	[IB_OPCODE_RDMA_WRITE_ONLY] =
		PKT(WRITE, ONLY | DATA, RETH, IB_WR_RDMA_WRITE),
	[IB_OPCODE_RDMA_WRITE_ONLY_WITH_IMMEDIATE] =
		PKT(WRITE, ONLY | IMM | DATA, RETH + IMMETH,
		    IB_WR_RDMA_WRITE_WITH_IMM),
	/* RC only */
	[IB_OPCODE_RDMA_READ_REQUEST] = PKT(READ, ONLY, RETH, IB_WR_RDMA_READ),
	[IB_OPCODE_RDMA_READ_RESPONSE_FIRST] = PKT(READ_RESP, F | DATA, AETH, 0),
	[IB_OPCODE_RDMA_READ_RESPONSE_MIDDLE] = PKT(READ_RESP, DATA, 0, 0),
	[IB_OPCODE_RDMA_READ_RESPONSE_LAST] = PKT(READ_RESP, L | DATA, AETH, 0),
	[IB_OPCODE_RDMA_READ_RESPONSE_ONLY] =
		PKT(READ_RESP, ONLY | DATA, AETH, 0),
	[IB_OPCODE_ACKNOWLEDGE] = PKT(ACK, ONLY, AETH, 0),
	[IB_OPCODE_ATOMIC_ACKNOWLEDGE] =
		PKT(ATOMIC_ACK, ONLY, AETH + sizeof(struct mrsoft_atomicacketh),
		    0),
	[IB_OPCODE_COMPARE_SWAP] =
		PKT(ATOMIC, ONLY, sizeof(struct mrsoft_atomiceth),
		    IB_WR_ATOMIC_CMP_AND_SWP),
	[IB_OPCODE_FETCH_ADD] =
		PKT(ATOMIC, ONLY, sizeof(struct mrsoft_atomiceth),
		    IB_WR_ATOMIC_FETCH_AND_ADD),
	[IB_OPCODE_SEND_LAST_WITH_INVALIDATE] =
		PKT(SEND, L | INV | DATA, IMMETH, IB_WR_SEND_WITH_INV),
	[IB_OPCODE_SEND_ONLY_WITH_INVALIDATE] =
		PKT(SEND, ONLY | INV | DATA, IMMETH, IB_WR_SEND_WITH_INV),
	[FLUSH] = PKT(FLUSH, ONLY, FETH + RETH, IB_WR_FLUSH),
	[ATOMIC_WRITE] =
		PKT(ATOMIC_WRITE, ONLY | DATA, RETH, IB_WR_ATOMIC_WRITE),
};

static const struct mrsoft_packet_type datagram[OPERATION + 1] = {
	[IB_OPCODE_SEND_ONLY] = PKT(SEND, ONLY | DATA, DETH, IB_WR_SEND),
	[IB_OPCODE_SEND_ONLY_WITH_IMMEDIATE] =
		PKT(SEND, ONLY | IMM | DATA, DETH + IMMETH,
		    IB_WR_SEND_WITH_IMM),
};

/* What an operation that nobody has defined carries is not known. */
static const struct mrsoft_packet_type reserved = PKT(RESERVED, DATA, 0, 0);

static_assert(IB_OPCODE_RC_ACKNOWLEDGE == MRSOFT_OPCODE_ACK);
static_assert(IB_OPCODE_RC_ATOMIC_ACKNOWLEDGE == MRSOFT_OPCODE_ATOMIC_ACK);

/**
 * mrsoft_packet_find - look up what a packet is
 * @opcode: of the BTH, from outside
 * @service: set to RC, UC or UD
 *
 * RC answers what it does not know (IBA 9.7.4.1.3 and 9.9.3), the others are silent.
 *
 * Context: any.
 * Return: its type, or NULL for one that this device does not know.
 */
const struct mrsoft_packet_type *mrsoft_packet_find(u8 opcode,
						    enum ib_qp_type *service)
{
	const struct mrsoft_packet_type *type;
	u8 operation = opcode & OPERATION;

	switch (opcode & ~OPERATION) {
	case IB_OPCODE_RC:
		*service = IB_QPT_RC;
		type = &connected[operation];
		return type->kind == MRSOFT_PKT_NONE ? &reserved : type;
	case IB_OPCODE_UC:
		if (operation > LAST_OF_UC)
			return NULL;
		*service = IB_QPT_UC;
		type = &connected[operation];
		break;
	case IB_OPCODE_UD:
		*service = IB_QPT_UD;
		type = &datagram[operation];
		break;
	default:
		return NULL;
	}
	return type->kind == MRSOFT_PKT_NONE ? NULL : type;
}

/* What stands in the packets of a message that are not its last. */
static u32 plain(u32 wr_opcode)
{
	switch (wr_opcode) {
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_SEND_WITH_INV:
		return IB_WR_SEND;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return IB_WR_RDMA_WRITE;
	default:
		return wr_opcode;
	}
}

/**
 * mrsoft_packet_opcode - the opcode of a request packet
 * @wr_opcode: enum ib_wr_opcode of the message
 * @type: RC, UC, UD or GSI
 * @where: MRSOFT_PKTF_FIRST and MRSOFT_PKTF_LAST as they apply
 *
 * Context: any.
 * Return: the opcode, or -1 if this service has no such packet.
 */
int mrsoft_packet_opcode(u32 wr_opcode, enum ib_qp_type type, u8 where)
{
	u32 wr = where & MRSOFT_PKTF_LAST ? wr_opcode : plain(wr_opcode);
	const struct mrsoft_packet_type *types = connected;
	u8 service = IB_OPCODE_RC;
	int i, n = ARRAY_SIZE(connected);

	if (type == IB_QPT_UC) {
		service = IB_OPCODE_UC;
		n = LAST_OF_UC + 1;
	} else if (type != IB_QPT_RC) {
		service = IB_OPCODE_UD;
		types = datagram;
	}
	for (i = 0; i < n; i++)
		if (types[i].kind != MRSOFT_PKT_NONE &&
		    types[i].kind < MRSOFT_PKT_ACK && types[i].wr == wr &&
		    (types[i].flags & MRSOFT_PKTF_ONLY) == where)
			return service | i;
	return -1;
}

/**
 * mrsoft_packet_read_response - the opcode of a READ response
 * @where: MRSOFT_PKTF_FIRST and MRSOFT_PKTF_LAST as they apply
 *
 * Context: any.
 * Return: the opcode.
 */
int mrsoft_packet_read_response(u8 where)
{
	switch (where) {
	case MRSOFT_PKTF_FIRST:
		return IB_OPCODE_RC_RDMA_READ_RESPONSE_FIRST;
	case MRSOFT_PKTF_LAST:
		return IB_OPCODE_RC_RDMA_READ_RESPONSE_LAST;
	case MRSOFT_PKTF_ONLY:
		return IB_OPCODE_RC_RDMA_READ_RESPONSE_ONLY;
	default:
		return IB_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE;
	}
}
