/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hdr.h - what stands between the UDP header and the payload
 *
 * Layer 0: pure.  IBA Vol 1, 5.2 and 9.3; Annex A17 (RoCEv2), A19 (FLUSH,
 * ATOMIC WRITE).
 * All fields are in network order.  Byte aligned: a packet may start anywhere.
 */
#ifndef MRSOFT_HDR_H
#define MRSOFT_HDR_H

#include <linux/build_bug.h>
#include <linux/types.h>

#define MRSOFT_UDP_PORT		4791u
#define MRSOFT_ICRC_BYTES	4u

/* struct mrsoft_bth, flags */
#define MRSOFT_BTH_SOLICITED	0x80u
#define MRSOFT_BTH_MIGRATED	0x40u
#define MRSOFT_BTH_PAD_SHIFT	4
#define MRSOFT_BTH_PAD_MASK	0x30u
#define MRSOFT_BTH_VERSION	0x0fu
/* struct mrsoft_bth, apsn: the highest bit asks for an acknowledge */
#define MRSOFT_BTH_ACK_REQ	0x80000000u

/* Base transport header, in every packet. */
struct mrsoft_bth {
	u8 opcode;
	u8 flags;
	__be16 pkey;
	__be32 qpn;	/* 8 bits reserved (FECN, BECN), 24 bits destination */
	__be32 apsn;	/* ack request, 7 bits reserved, 24 bits PSN */
} __packed;

/* RDMA: first packet of a WRITE, READ request, ATOMIC WRITE, FLUSH. */
struct mrsoft_reth {
	__be64 va;
	__be32 rkey;
	__be32 length;	/* bytes of the whole message */
} __packed;

/* FLUSH: 26 bits reserved, 2 bits selectivity level, 4 bits placement type. */
struct mrsoft_feth {
	__be32 bits;
} __packed;

#define MRSOFT_FETH_PLT		0x0fu
#define MRSOFT_FETH_SEL		0x30u
#define MRSOFT_FETH_SEL_SHIFT	4

struct mrsoft_atomiceth {
	__be64 va;
	__be32 rkey;
	__be64 swap_add;
	__be64 compare;
} __packed;

/* 8 bits syndrome, 24 bits MSN. */
struct mrsoft_aeth {
	__be32 smsn;
} __packed;

struct mrsoft_atomicacketh {
	__be64 old;
} __packed;

/* Datagrams. */
struct mrsoft_deth {
	__be32 qkey;
	__be32 sqpn;
} __packed;

/* Immediate data (passed through as it is), or the rkey to invalidate. */
struct mrsoft_immeth {
	__be32 word;
} __packed;

static_assert(sizeof(struct mrsoft_bth) == 12);
static_assert(sizeof(struct mrsoft_reth) == 16);
static_assert(sizeof(struct mrsoft_feth) == 4);
static_assert(sizeof(struct mrsoft_atomiceth) == 28);
static_assert(sizeof(struct mrsoft_aeth) == 4);
static_assert(sizeof(struct mrsoft_atomicacketh) == 8);
static_assert(sizeof(struct mrsoft_deth) == 8);
static_assert(sizeof(struct mrsoft_immeth) == 4);

/* The longest: UC and RC, BTH + atomic. */
#define MRSOFT_MAX_HDR		(sizeof(struct mrsoft_bth) + \
				 sizeof(struct mrsoft_atomiceth))

/* Syndrome of an AETH: IBA table 43 to 45. */
#define MRSOFT_AETH_KIND	0xe0u
#define MRSOFT_AETH_ACK		0x00u
#define MRSOFT_AETH_RNR		0x20u
#define MRSOFT_AETH_NAK		0x60u
#define MRSOFT_AETH_VALUE	0x1fu
/* with ACK: end-to-end flow credits are not used */
#define MRSOFT_AETH_NO_CREDITS	0x1fu

/* With NAK. */
enum mrsoft_nak {
	MRSOFT_NAK_PSN		= 0,
	MRSOFT_NAK_INV_REQ	= 1,
	MRSOFT_NAK_REM_ACCESS	= 2,
	MRSOFT_NAK_REM_OP	= 3,
};

#endif /* MRSOFT_HDR_H */
