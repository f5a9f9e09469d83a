/* SPDX-License-Identifier: GPL-2.0 */
/*
 * request.h - wire path, requester: messages as packets
 *
 * Layer 5, below tx.h.
 */
#ifndef MRSOFT_REQUEST_H
#define MRSOFT_REQUEST_H

#include "psn.h"
#include "wire.h"

/* Packets that may be on their way: half of it is asked an acknowledge for. */
#define MRSOFT_TX_WINDOW	64u

/* Packets of a message in front of @psn, which is not older than its first. */
static inline u32 mrsoft_request_index(const struct mrsoft_msg *msg, u32 psn)
{
	return (psn - msg->psn) & MRSOFT_PSN_MASK;
}

/* Bytes of qp->sq.msg in front of that packet. */
static inline u64 mrsoft_request_offset(const struct mrsoft_qp *qp, u32 psn)
{
	return (u64)mrsoft_request_index(qp->sq.msg, psn) * qp->mtu;
}

enum mrsoft_status mrsoft_request_data(struct mrsoft_qp *qp, u32 psn, u32 n);
void mrsoft_request_read(struct mrsoft_qp *qp, u32 psn, u32 packets);
void mrsoft_request_atomic(struct mrsoft_qp *qp, u32 psn);
/* UD: qp->sq.msg, with its bytes at @payload. */
void mrsoft_request_datagram(struct mrsoft_qp *qp, const struct mrsoft_av *av,
			     const void *payload);

#endif /* MRSOFT_REQUEST_H */
