// SPDX-License-Identifier: GPL-2.0
/*
 * recv.c - the receive WQE of a responder
 *
 * Owns:     taking it, checking where it points, placing bytes into it, what its
 *           completion says.
 * Not here: when that happens (resp.c), the queue that it comes from (rq.c).
 * Locks:    the caller has the responder: by its claim, or by resp.lock (UD).
 * Context:  any, but for mrsoft_recv_complete().
 * Spec:     IBA Vol 1, 9.7.4.1.5, 10.8.3.1 (receive completions)
 * Tests:    kunit/engine_kunit.c, tools/testing/selftests
 */
#include "copy.h"
#include "recv.h"

static struct mrsoft_rq *rq_of(struct mrsoft_qp *qp)
{
	return qp->srq ? &qp->srq->rq : &qp->rq;
}

/* So often, before one is blamed without having been looked at. */
#define MAX_UNSURE	16

/**
 * mrsoft_msg_absent - a copy found a page that is not present
 * @qp: the responder
 * @msg: gets what is to be faulted in, or the reason
 * @status: the answer if the responder's page cannot be had
 * @own: the responder's bytes, held
 * @write: they were the destination
 * @peer: the requester's bytes, held; NULL: the other side was not memory
 *
 * When both cannot be had the requester's are named, DESIGN.md section 6.
 *
 * Context: any.
 * Return: MRSOFT_S_FAULT; when the path cannot help any more: MRSOFT_S_LOC_PROT
 * for the requester's bytes, else @status.
 */
enum mrsoft_status mrsoft_msg_absent(struct mrsoft_qp *qp,
				     struct mrsoft_msg *msg,
				     enum mrsoft_status status,
				     const struct mrsoft_span *own, bool write,
				     const struct mrsoft_span *peer)
{
	int seen = 1;

	if (msg->no_fault && peer && peer->pages)
		seen = mrsoft_pages_present(peer->pages, peer->offset,
					    peer->length, !write);
	/* the fault that comes first waits until they can be seen */
	if (seen < 0 && msg->unsure < MAX_UNSURE) {
		msg->unsure++;
		msg->no_fault = false;
	}
	if (!msg->no_fault) {
		mrsoft_fault_note(&msg->fault, own, write);
		if (peer)
			mrsoft_fault_note(&msg->fault, peer, !write);
		if (msg->fault.num)
			return MRSOFT_S_FAULT;
	}
	if (!seen)
		status = MRSOFT_S_LOC_PROT;
	return mrsoft_msg_refuse(qp, msg, status, MRSOFT_R_PAGE_ABSENT);
}

/**
 * mrsoft_recv_complete - complete a receive WQE
 * @qp: the responder
 * @wc: the completion, but for what is the same in all
 * @solicited: the peer asked for an event
 *
 * A lost completion puts the QP into the error state.
 *
 * Context: process, without a lock of ours.
 */
void mrsoft_recv_complete(struct mrsoft_qp *qp, struct ib_wc *wc,
			  bool solicited)
{
	wc->qp = &qp->ib;
	wc->port_num = 1;
	if (mrsoft_cq_post(qp->recv_cq, wc, solicited) && mrsoft_qp_error(qp))
		mrsoft_qp_event(qp, IB_EVENT_QP_FATAL);
}

/**
 * mrsoft_recv_error_wc - the completion of a receive WQE that failed
 * @qp: the responder, with a WQE taken
 * @status: how
 * @reason: why
 * @wc: filled in
 *
 * Context: any, with the claim or the responder's lock.
 */
void mrsoft_recv_error_wc(const struct mrsoft_qp *qp, enum ib_wc_status status,
			  enum mrsoft_reason reason, struct ib_wc *wc)
{
	*wc = (struct ib_wc){
		.wr_id	    = qp->resp.rwqe.wr_id,
		.status	    = status,
		.opcode	    = IB_WC_RECV,
		.vendor_err = reason,
	};
}

static struct mrsoft_access recv_access(const struct mrsoft_qp *qp,
					const struct mrsoft_msg *msg,
					const struct ib_sge *sge, u32 off,
					u64 len)
{
	return mrsoft_qp_sge_access(qp, sge, off, len, IB_ACCESS_LOCAL_WRITE,
				    "RECV", msg->src_qpn);
}

/**
 * mrsoft_recv_check - may the receive WQE that was taken be written to
 * @qp: the responder
 * @msg: gets the reason
 * @length: bytes that will be placed
 *
 * Each piece is checked again when it is placed.
 *
 * Context: any, with the claim or the responder's lock.
 * Return: MRSOFT_S_OK or MRSOFT_S_REM_OP.
 */
enum mrsoft_status mrsoft_recv_check(struct mrsoft_qp *qp,
				     struct mrsoft_msg *msg, u64 length)
{
	struct mrsoft_rwqe *rwqe = &qp->resp.rwqe;
	enum mrsoft_reason reason;
	u32 i;

	for (i = 0; i < rwqe->num_sge && length; i++) {
		u64 n = min_t(u64, length, rwqe->sge[i].length);
		struct mrsoft_access req;

		if (!n)
			continue;
		req = recv_access(qp, msg, &rwqe->sge[i], 0, n);
		reason = mrsoft_key_probe(&qp->hca->keys, &req);
		if (reason)
			return mrsoft_msg_refused(msg, MRSOFT_S_REM_OP, reason);
		length -= n;
	}
	return MRSOFT_S_OK;
}

/**
 * mrsoft_recv_take - have a receive WQE
 * @qp: the responder
 * @msg: gets the reason and the RNR timer
 * @limit: the SRQ's limit event is due once no lock is held
 *
 * A WQE that an earlier message took and did not use is used first.
 *
 * Context: any, with the claim or the responder's lock.
 * Return: MRSOFT_S_OK, MRSOFT_S_RNR (RC) or MRSOFT_S_SILENT when there is none,
 * MRSOFT_S_REM_OP when it is malformed.
 */
enum mrsoft_status mrsoft_recv_take(struct mrsoft_qp *qp,
				    struct mrsoft_msg *msg, bool *limit)
{
	struct mrsoft_resp *resp = &qp->resp;

	*limit = false;
	if (!resp->has_rwqe &&
	    !mrsoft_rq_take_quiet(rq_of(qp), &resp->rwqe, limit)) {
		msg->rnr_timer = qp->attr.min_rnr_timer;
		return mrsoft_msg_refuse(qp, msg, qp->type == IB_QPT_RC ?
					 MRSOFT_S_RNR : MRSOFT_S_SILENT,
					 MRSOFT_R_NO_RECV);
	}
	resp->has_rwqe = true;
	resp->sge = 0;
	resp->sge_off = 0;
	if (resp->rwqe.bad)
		return mrsoft_msg_refuse(qp, msg, MRSOFT_S_REM_OP,
					 MRSOFT_R_RING_ENTRY);
	return MRSOFT_S_OK;
}

/* @n bytes from @done of @peer into the current sge, which has room for them. */
static enum mrsoft_status place(struct mrsoft_qp *qp, struct mrsoft_msg *msg,
				const struct mrsoft_span *peer, u64 done, u64 n)
{
	struct mrsoft_resp *resp = &qp->resp;
	enum mrsoft_status status = MRSOFT_S_OK;
	enum mrsoft_reason reason;
	struct mrsoft_access req;
	struct mrsoft_span span;

	req = recv_access(qp, msg, &resp->rwqe.sge[resp->sge],
			  resp->sge_off, n);
	reason = mrsoft_key_access(&qp->hca->keys, &req, &span);
	if (reason)
		return mrsoft_msg_refused(msg, MRSOFT_S_REM_OP, reason);
	reason = mrsoft_copy(&span, 0, peer, done, n);
	if (reason == MRSOFT_R_PAGE_ABSENT)
		status = mrsoft_msg_absent(qp, msg, MRSOFT_S_REM_OP, &span,
					   true, peer);
	else if (reason)
		status = mrsoft_msg_refuse(qp, msg, MRSOFT_S_REM_OP, reason);
	mrsoft_span_put(&span);
	return status;
}

/**
 * mrsoft_recv_place - bytes into the receive WQE that was taken
 * @qp: the responder
 * @msg: gets the reason
 * @peer: the bytes, held
 *
 * Goes on behind what was placed before, sge by sge.
 *
 * Context: any, with the claim or the responder's lock.
 * Return: MRSOFT_S_OK, MRSOFT_S_REM_OP, or MRSOFT_S_INV_REQ when the WQE is full;
 * MRSOFT_S_FAULT: once more from the start of @peer; MRSOFT_S_LOC_PROT.
 */
enum mrsoft_status mrsoft_recv_place(struct mrsoft_qp *qp,
				     struct mrsoft_msg *msg,
				     const struct mrsoft_span *peer)
{
	struct mrsoft_resp *resp = &qp->resp;
	struct mrsoft_rwqe *rwqe = &resp->rwqe;
	u32 sge = resp->sge, sge_off = resp->sge_off;
	enum mrsoft_status status;
	u64 done = 0, n;

	while (done < peer->length) {
		if (resp->sge >= rwqe->num_sge)
			return mrsoft_msg_refuse(qp, msg, MRSOFT_S_INV_REQ,
						 MRSOFT_R_RECV_TOO_SHORT);
		n = min_t(u64, peer->length - done,
			  rwqe->sge[resp->sge].length - resp->sge_off);
		status = n ? place(qp, msg, peer, done, n) : MRSOFT_S_OK;
		if (status)
			goto not_placed;
		done += n;
		resp->sge_off += n;
		if (resp->sge_off == rwqe->sge[resp->sge].length) {
			resp->sge++;
			resp->sge_off = 0;
		}
	}
	return MRSOFT_S_OK;

not_placed:
	if (status == MRSOFT_S_FAULT) {
		resp->sge = sge;
		resp->sge_off = sge_off;
	}
	return status;
}

/**
 * mrsoft_recv_wc - the completion of a message that was received
 * @qp: the responder, with a WQE taken
 * @msg: all of it is placed
 * @wc: filled in
 *
 * Context: any, with the claim or the responder's lock.
 */
void mrsoft_recv_wc(const struct mrsoft_qp *qp, const struct mrsoft_msg *msg,
		    struct ib_wc *wc)
{
	*wc = (struct ib_wc){
		.wr_id	  = qp->resp.rwqe.wr_id,
		.status	  = IB_WC_SUCCESS,
		.opcode	  = msg->op->recv_wc,
		.byte_len = msg->length,
		.src_qp	  = msg->src_qpn,
	};
	if (msg->op->flags & MRSOFT_OPF_IMM) {
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = msg->ex.imm;
	}
	if (msg->op->flags & MRSOFT_OPF_INV) {
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = msg->ex.inv_key;
	}
}
