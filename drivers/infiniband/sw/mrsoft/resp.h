/* SPDX-License-Identifier: GPL-2.0 */
/*
 * resp.h - responder: executes messages
 *
 * Layer 4.  Passive: a path calls begin, then segment until the message is done,
 * then end; or abort.  The answer is a status; why is in msg->reason.
 */
#ifndef MRSOFT_RESP_H
#define MRSOFT_RESP_H

#include "qp.h"

void mrsoft_resp_init(struct mrsoft_qp *qp);
/* RESET, destroy: forget the message and the receive WQE.  May sleep. */
void mrsoft_resp_reset(struct mrsoft_qp *qp);

enum mrsoft_status mrsoft_resp_begin(struct mrsoft_qp *qp,
				     struct mrsoft_msg *msg);
/*
 * @peer: the requester's bytes, source of SEND and WRITE, sink of READ; all
 * of it is the next part of the message.
 */
enum mrsoft_status mrsoft_resp_segment(struct mrsoft_qp *qp,
				       struct mrsoft_msg *msg,
				       const struct mrsoft_span *peer);
/* ATOMIC, instead of segments: msg->old. */
enum mrsoft_status mrsoft_resp_atomic(struct mrsoft_qp *qp,
				      struct mrsoft_msg *msg);
enum mrsoft_status mrsoft_resp_end(struct mrsoft_qp *qp,
				   struct mrsoft_msg *msg);
void mrsoft_resp_abort(struct mrsoft_qp *qp, struct mrsoft_msg *msg);
/* A receive WQE for a message that asked for it later than at its begin. */
enum mrsoft_status mrsoft_resp_take_recv(struct mrsoft_qp *qp,
					 struct mrsoft_msg *msg);
/* What a path finds wrong with a message that is not, or no longer, begun. */
enum mrsoft_status mrsoft_resp_invalid(struct mrsoft_qp *qp,
				       struct mrsoft_msg *msg,
				       enum mrsoft_reason reason);
/* A READ once more, executed before: @peer is its part from @offset on. */
enum mrsoft_status mrsoft_resp_reread(struct mrsoft_qp *qp,
				      struct mrsoft_msg *msg, u64 offset,
				      const struct mrsoft_span *peer);
bool mrsoft_resp_can_receive(const struct mrsoft_qp *qp);

/* UD: all of a message at once, msg->length bytes at @payload. */
enum mrsoft_status mrsoft_resp_datagram(struct mrsoft_qp *qp,
					struct mrsoft_msg *msg,
					const void *payload);

/* In the error state: what is posted gets its flush completion soon. */
void mrsoft_resp_flush(struct mrsoft_qp *qp);

#endif /* MRSOFT_RESP_H */
