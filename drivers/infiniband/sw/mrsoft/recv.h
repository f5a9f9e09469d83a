/* SPDX-License-Identifier: GPL-2.0 */
/*
 * recv.h - the receive WQE of a responder
 *
 * Layer 4, below resp.h.
 */
#ifndef MRSOFT_RECV_H
#define MRSOFT_RECV_H

#include "qp.h"

/* A refusal that nobody has counted yet. */
static inline enum mrsoft_status mrsoft_msg_refuse(struct mrsoft_qp *qp,
						   struct mrsoft_msg *msg,
						   enum mrsoft_status status,
						   enum mrsoft_reason reason)
{
	msg->reason = mrsoft_qp_refuse_msg(qp, msg, reason);
	return status;
}

/* A refusal by the memory check, which has counted it. */
static inline enum mrsoft_status mrsoft_msg_refused(struct mrsoft_msg *msg,
						    enum mrsoft_status status,
						    enum mrsoft_reason reason)
{
	msg->reason = reason;
	return status;
}

/* A page was not present: a fault that the path must see to, or a refusal. */
enum mrsoft_status mrsoft_msg_absent(struct mrsoft_qp *qp,
				     struct mrsoft_msg *msg,
				     enum mrsoft_status status,
				     const struct mrsoft_span *own, bool write,
				     const struct mrsoft_span *peer);

enum mrsoft_status mrsoft_recv_take(struct mrsoft_qp *qp,
				    struct mrsoft_msg *msg, bool *limit);
enum mrsoft_status mrsoft_recv_check(struct mrsoft_qp *qp,
				     struct mrsoft_msg *msg, u64 length);
enum mrsoft_status mrsoft_recv_place(struct mrsoft_qp *qp,
				     struct mrsoft_msg *msg,
				     const struct mrsoft_span *peer);
void mrsoft_recv_wc(const struct mrsoft_qp *qp, const struct mrsoft_msg *msg,
		    struct ib_wc *wc);
void mrsoft_recv_error_wc(const struct mrsoft_qp *qp, enum ib_wc_status status,
			  enum mrsoft_reason reason, struct ib_wc *wc);
void mrsoft_recv_complete(struct mrsoft_qp *qp, struct ib_wc *wc,
			  bool solicited);

#endif /* MRSOFT_RECV_H */
