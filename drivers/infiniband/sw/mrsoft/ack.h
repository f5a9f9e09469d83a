/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ack.h - answers of the responder: ACK, NAK, READ responses
 *
 * Layer 5.  Process context, the responder's worker.
 */
#ifndef MRSOFT_ACK_H
#define MRSOFT_ACK_H

#include "wire.h"

/* Everything up to @psn; @syndrome: MRSOFT_AETH_*. */
void mrsoft_ack_send(struct mrsoft_wire *wire, u32 psn, u8 syndrome);
/* What @status asks for, if anything: for the packet with @psn. */
void mrsoft_ack_refuse(struct mrsoft_wire *wire, u32 psn,
		       enum mrsoft_status status, u8 rnr_timer);
void mrsoft_ack_atomic(struct mrsoft_wire *wire, u32 psn, u64 old);
/* The end of an ATOMIC WRITE or FLUSH: a READ response without bytes. */
void mrsoft_ack_done(struct mrsoft_wire *wire, u32 psn);
/*
 * wire->rx.read is set: a turn of responses, after which it may still be set.
 * MRSOFT_S_FAULT: go on when the pages of its message are there.
 */
enum mrsoft_status mrsoft_ack_read(struct mrsoft_wire *wire);

#endif /* MRSOFT_ACK_H */
