// SPDX-License-Identifier: GPL-2.0
/*
 * resp.c - responder: executes messages
 *
 * Owns:     what a QP does with a message that reaches it: state, PSN, rights,
 *           order of the steps, reading, atomics, consequences, flush.
 * Not here: the receive WQE (recv.c), how the message got here (local.c), the
 *           checks of memory (key.c).
 * Locks:    resp.lock covers the claim: one message has the responder from
 *           begin to end (resp.active), one call works for it (resp.busy), and
 *           only that call touches the receive WQE.  No lock is held while
 *           bytes are copied or a completion is made.
 * Lifetime: the caller has a hold on the QP.
 * Context:  process.
 * Spec:     IBA Vol 1, 9.7.4 (responder), 9.7.5 (acknowledge), 9.8.2 (UC),
 *           9.8.3 (UD), 10.3.1 (flush), 13.4 (MADs); Annex A19 (FLUSH)
 * Tests:    kunit/engine_kunit.c, tools/testing/selftests
 */
#include <linux/sched.h>
#include <linux/wait_bit.h>
#include <rdma/ib_mad.h>

#include "copy.h"
#include "inject.h"
#include "psn.h"
#include "recv.h"
#include "resp.h"

/* How much a flush does before it lets others have the worker. */
#define FLUSH_TURN	256

/**
 * mrsoft_resp_can_receive - is the QP in a state in which requests are heard
 * @qp: any
 *
 * Context: any.
 * Return: true from RTR on, but not in the error state.  IBA 10.3.1.
 */
bool mrsoft_resp_can_receive(const struct mrsoft_qp *qp)
{
	switch (mrsoft_qp_state(qp)) {
	case IB_QPS_RTR:
	case IB_QPS_RTS:
	case IB_QPS_SQD:
	case IB_QPS_SQE:
		return true;
	default:
		return false;
	}
}

/*
 * Claim.  A message is admitted by begin; later calls of the same message get
 * in as long as nobody took the claim away (reset, flush, another message).  The
 * peer sends one message after the other, so the claim of one that begins is
 * newer than any that is left: that one's GID went away under it.
 */
static enum mrsoft_status admit(struct mrsoft_qp *qp, struct mrsoft_msg *msg)
{
	struct mrsoft_resp *resp = &qp->resp;

	lockdep_assert_held(&resp->lock);
	if (!mrsoft_resp_can_receive(qp) || resp->busy)
		return mrsoft_msg_refuse(qp, msg, MRSOFT_S_SILENT,
					 MRSOFT_R_PEER_STATE);
	if (qp->type == IB_QPT_RC && msg->psn != resp->psn)
		return mrsoft_msg_refuse(qp, msg, MRSOFT_S_SILENT,
					 MRSOFT_R_PSN);
	resp->active = msg;
	resp->busy = true;
	return MRSOFT_S_OK;
}

static enum mrsoft_status enter(struct mrsoft_qp *qp, struct mrsoft_msg *msg)
{
	struct mrsoft_resp *resp = &qp->resp;
	enum mrsoft_status status = MRSOFT_S_OK;

	spin_lock_bh(&resp->lock);
	if (resp->active != msg || resp->busy || !mrsoft_resp_can_receive(qp))
		status = mrsoft_msg_refuse(qp, msg, MRSOFT_S_SILENT,
					   MRSOFT_R_PEER_STATE);
	else
		resp->busy = true;
	spin_unlock_bh(&resp->lock);
	return status;
}

static void leave(struct mrsoft_qp *qp, bool done)
{
	struct mrsoft_resp *resp = &qp->resp;
	bool flush;

	spin_lock_bh(&resp->lock);
	resp->busy = false;
	flush = mrsoft_qp_state(qp) == IB_QPS_ERR;
	if (done || flush)
		resp->active = NULL;
	spin_unlock_bh(&resp->lock);
	/* The flag before the look at the waiters, as mrsoft_resp_reset() waits. */
	smp_mb();
	wake_up_var(&resp->busy);
	if (flush)
		mrsoft_resp_flush(qp);
}

/* What a receive WQE that is wrong itself completes with. */
static enum ib_wc_status recv_error(const struct mrsoft_msg *msg)
{
	return msg->reason == MRSOFT_R_RING_ENTRY ? IB_WC_LOC_QP_OP_ERR :
						    IB_WC_LOC_PROT_ERR;
}

/*
 * The consequences of a refusal for the responder's own side, DESIGN.md section
 * 6.  UC drops what is wrong in the request and keeps its receive WQE.
 */
static enum mrsoft_status fail(struct mrsoft_qp *qp, struct mrsoft_msg *msg,
			       enum mrsoft_status status)
{
	enum ib_wc_status wc = IB_WC_SUCCESS;
	struct ib_wc cqe;

	if (status == MRSOFT_S_OK || status == MRSOFT_S_RNR ||
	    status == MRSOFT_S_SILENT || status == MRSOFT_S_LOC_PROT ||
	    status == MRSOFT_S_FAULT)
		return status;
	if (status == MRSOFT_S_REM_OP)
		wc = recv_error(msg);
	else if (msg->reason == MRSOFT_R_RECV_TOO_SHORT)
		wc = IB_WC_LOC_LEN_ERR;

	if (qp->type != IB_QPT_RC && status != MRSOFT_S_REM_OP)
		return MRSOFT_S_SILENT;
	mrsoft_qp_error(qp);
	if (wc != IB_WC_SUCCESS && qp->resp.has_rwqe) {
		mrsoft_recv_error_wc(qp, wc, msg->reason, &cqe);
		qp->resp.has_rwqe = false;
		mrsoft_recv_complete(qp, &cqe, false);
	} else if (status == MRSOFT_S_REM_ACCESS) {
		mrsoft_qp_event(qp, IB_EVENT_QP_ACCESS_ERR);
	} else {
		mrsoft_qp_event(qp, IB_EVENT_QP_REQ_ERR);
	}
	return status;
}

static int remote_rights(const struct mrsoft_msg *msg)
{
	return msg->op->kind == MRSOFT_OP_FLUSH ?
		mrsoft_flush_rights(&msg->flush) : msg->op->rights;
}

static u64 remote_length(const struct mrsoft_msg *msg)
{
	switch (msg->op->kind) {
	case MRSOFT_OP_ATOMIC:
		return sizeof(u64);
	case MRSOFT_OP_FLUSH:
		return msg->flush.length;
	default:
		return msg->length;
	}
}

static struct mrsoft_access remote_access(const struct mrsoft_qp *qp,
					  const struct mrsoft_msg *msg,
					  u64 off, u64 len)
{
	return (struct mrsoft_access){
		.pd	= qp->pd,
		.qpn	= qp->qpn,
		.key	= msg->rkey,
		.rights	= remote_rights(msg),
		.iova	= msg->raddr + off,
		.length	= len,
		.whole	= msg->op->kind == MRSOFT_OP_FLUSH &&
			  msg->flush.level == IB_FLUSH_MR,
		.peer	= msg->src_qpn,
		.who	= &qp->who,
		.op	= msg->op->name,
	};
}

static enum mrsoft_status check_remote(struct mrsoft_qp *qp,
				       struct mrsoft_msg *msg)
{
	const struct mrsoft_op *op = msg->op;
	struct mrsoft_access req;
	enum mrsoft_reason reason;
	u64 len = remote_length(msg);

	if (!op->rights)
		return MRSOFT_S_OK;
	if (remote_rights(msg) & ~qp->attr.qp_access_flags)
		return mrsoft_msg_refuse(qp, msg, MRSOFT_S_INV_REQ,
					 MRSOFT_R_QP_ACCESS);
	if (mrsoft_op_needs_depth(op) && !qp->attr.max_dest_rd_atomic)
		return mrsoft_msg_refuse(qp, msg, MRSOFT_S_INV_REQ,
					 MRSOFT_R_READ_DEPTH);
	if ((op->flags & MRSOFT_OPF_WORD) && !IS_ALIGNED(msg->raddr, sizeof(u64)))
		return mrsoft_msg_refuse(qp, msg, MRSOFT_S_INV_REQ,
					 MRSOFT_R_MISALIGNED);
	/*
	 * An empty request does not name memory: its key is not looked at.  That
	 * of a FLUSH is: nothing says that it need not be.
	 */
	if (!len && op->kind != MRSOFT_OP_FLUSH)
		return MRSOFT_S_OK;
	req = remote_access(qp, msg, 0, len);
	reason = mrsoft_key_probe(&qp->hca->keys, &req);
	if (reason)
		return mrsoft_msg_refused(msg, MRSOFT_S_REM_ACCESS, reason);
	return MRSOFT_S_OK;
}

static enum mrsoft_status check_message(struct mrsoft_qp *qp,
					struct mrsoft_msg *msg)
{
	enum mrsoft_status status;
	bool limit;

	status = check_remote(qp, msg);
	if (status || !(msg->op->flags & MRSOFT_OPF_RECV))
		return status;
	status = mrsoft_recv_take(qp, msg, &limit);
	if (limit)
		mrsoft_srq_raise_limit(qp->srq);
	if (status || msg->op->kind != MRSOFT_OP_SEND)
		return status;
	if (msg->length > qp->resp.rwqe.length)
		return mrsoft_msg_refuse(qp, msg, MRSOFT_S_INV_REQ,
			      MRSOFT_R_RECV_TOO_SHORT);
	return mrsoft_recv_check(qp, msg, msg->length);
}

/* What a rule has the responder answer, instead of what it would. */
static enum mrsoft_status answer_injected(struct mrsoft_qp *qp,
					  struct mrsoft_msg *msg,
					  const struct mrsoft_injection *in)
{
	static const enum mrsoft_status naks[MRSOFT_CODE_COUNT] = {
		/* the wire path sends its NAK; the local one has none to send */
		[MRSOFT_CODE_SEQUENCE]	= MRSOFT_S_SILENT,
		[MRSOFT_CODE_INVALID]	= MRSOFT_S_INV_REQ,
		[MRSOFT_CODE_ACCESS]	= MRSOFT_S_REM_ACCESS,
		[MRSOFT_CODE_OP]	= MRSOFT_S_REM_OP,
	};
	enum mrsoft_status status = MRSOFT_S_SILENT;

	switch (in->action) {
	case MRSOFT_DO_RNR:
		msg->rnr_timer = in->rnr < 0 ? qp->attr.min_rnr_timer : in->rnr;
		status = MRSOFT_S_RNR;
		break;
	case MRSOFT_DO_NAK:
		status = naks[in->code];
		break;
	default:
		if (mrsoft_qp_error(qp))
			mrsoft_qp_event(qp, IB_EVENT_QP_FATAL);
	}
	/* a SEND that the responder itself fails has its receive WQE: that completes */
	if (status == MRSOFT_S_REM_OP)
		check_message(qp, msg);
	return mrsoft_msg_refuse(qp, msg, status, MRSOFT_R_INJECTED);
}

static enum mrsoft_status check_or_inject(struct mrsoft_qp *qp,
					  struct mrsoft_msg *msg)
{
	struct mrsoft_occasion now = {
		.event = MRSOFT_ON_REQUEST, .qpn = qp->qpn,
	};
	struct mrsoft_injection in;

	if (qp->type == IB_QPT_RC &&
	    mrsoft_inject(&qp->hca->stats, &now, &in))
		return answer_injected(qp, msg, &in);
	return check_message(qp, msg);
}

/**
 * mrsoft_resp_begin - a message arrives
 * @qp: RC or UC, held
 * @msg: filled in by the path
 *
 * On MRSOFT_S_OK the message has the responder until end or abort, or until a
 * later call fails.  Otherwise nothing is owed.
 *
 * Context: process.
 * Return: what to tell the requester; msg->reason says why.  With
 * MRSOFT_S_RNR msg->rnr_timer is the wait.
 */
enum mrsoft_status mrsoft_resp_begin(struct mrsoft_qp *qp,
				     struct mrsoft_msg *msg)
{
	struct mrsoft_resp *resp = &qp->resp;
	enum mrsoft_status status;
	bool established = false;

	msg->done = 0;
	msg->reason = MRSOFT_R_NONE;
	spin_lock_bh(&resp->lock);
	status = admit(qp, msg);
	if (!status && mrsoft_qp_state(qp) == IB_QPS_RTR && !resp->heard) {
		resp->heard = true;
		established = true;
	}
	spin_unlock_bh(&resp->lock);
	if (status)
		return status;
	if (established)
		mrsoft_qp_event(qp, IB_EVENT_COMM_EST);
	status = fail(qp, msg, check_or_inject(qp, msg));
	leave(qp, status != MRSOFT_S_OK);
	return status;
}

/* Between the requester's bytes and the region that the rkey names. */
static enum mrsoft_status move(struct mrsoft_qp *qp, struct mrsoft_msg *msg,
			       const struct mrsoft_span *peer)
{
	struct mrsoft_access req = remote_access(qp, msg, msg->done,
						 peer->length);
	enum mrsoft_status status = MRSOFT_S_OK;
	bool read = msg->op->kind == MRSOFT_OP_READ;
	enum mrsoft_reason reason;
	struct mrsoft_span span;

	reason = mrsoft_key_access(&qp->hca->keys, &req, &span);
	if (reason)
		return mrsoft_msg_refused(msg, MRSOFT_S_REM_ACCESS, reason);
	if (read)
		reason = mrsoft_copy(peer, 0, &span, 0, peer->length);
	else
		reason = mrsoft_copy(&span, 0, peer, 0, peer->length);
	if (reason == MRSOFT_R_PAGE_ABSENT)
		status = mrsoft_msg_absent(qp, msg, MRSOFT_S_REM_ACCESS, &span,
					   !read, peer);
	else if (reason)
		status = mrsoft_msg_refuse(qp, msg, MRSOFT_S_REM_OP, reason);
	mrsoft_span_put(&span);
	return status;
}

/**
 * mrsoft_resp_segment - the next part of a message
 * @qp: held
 * @msg: begun
 * @peer: the requester's bytes, held: source of SEND and WRITE, sink of READ
 *
 * Checks, holds, copies and lets go; at most MRSOFT_SEGMENT bytes.
 *
 * Context: process, does not sleep.
 * Return: see mrsoft_resp_begin(); other than MRSOFT_S_OK ends the message, but
 * for MRSOFT_S_FAULT: the same bytes again, once @msg->fault was run.
 */
enum mrsoft_status mrsoft_resp_segment(struct mrsoft_qp *qp,
				       struct mrsoft_msg *msg,
				       const struct mrsoft_span *peer)
{
	enum mrsoft_status status;

	if (peer->length > msg->length - msg->done)
		return mrsoft_msg_refuse(qp, msg, MRSOFT_S_INV_REQ,
					 MRSOFT_R_MSG_TOO_LONG);
	status = enter(qp, msg);
	if (status)
		return status;
	if (msg->op->kind == MRSOFT_OP_SEND)
		status = mrsoft_recv_place(qp, msg, peer);
	else
		status = move(qp, msg, peer);
	status = fail(qp, msg, status);
	if (!status)
		msg->done += peer->length;
	leave(qp, status != MRSOFT_S_OK && status != MRSOFT_S_FAULT);
	return status;
}

static enum mrsoft_status do_atomic(struct mrsoft_qp *qp,
				    struct mrsoft_msg *msg)
{
	bool swap = msg->opcode == IB_WR_ATOMIC_CMP_AND_SWP;
	struct mrsoft_access req = remote_access(qp, msg, 0, sizeof(u64));
	enum mrsoft_status status = MRSOFT_S_OK;
	enum mrsoft_reason reason;
	struct mrsoft_span span;

	reason = mrsoft_key_access(&qp->hca->keys, &req, &span);
	if (reason)
		return mrsoft_msg_refused(msg, MRSOFT_S_REM_ACCESS, reason);
	reason = mrsoft_copy_atomic(&span, swap ? MRSOFT_ATOMIC_CMP_SWAP :
						  MRSOFT_ATOMIC_FETCH_ADD,
				    msg->compare, msg->swap_add, &msg->old);
	if (reason == MRSOFT_R_PAGE_ABSENT)
		status = mrsoft_msg_absent(qp, msg, MRSOFT_S_REM_ACCESS, &span,
					   true, NULL);
	else if (reason)
		status = mrsoft_msg_refuse(qp, msg, MRSOFT_S_REM_OP, reason);
	mrsoft_span_put(&span);
	return status;
}

/**
 * mrsoft_resp_atomic - execute an atomic
 * @qp: held
 * @msg: begun; msg->old gets the value before
 *
 * Context: process, does not sleep.
 * Return: see mrsoft_resp_begin(); other than MRSOFT_S_OK ends the message, but
 * for MRSOFT_S_FAULT: it was not executed, again once @msg->fault was run.
 */
enum mrsoft_status mrsoft_resp_atomic(struct mrsoft_qp *qp,
				      struct mrsoft_msg *msg)
{
	enum mrsoft_status status;

	status = enter(qp, msg);
	if (status)
		return status;
	status = fail(qp, msg, do_atomic(qp, msg));
	leave(qp, status != MRSOFT_S_OK && status != MRSOFT_S_FAULT);
	return status;
}

static void advance(struct mrsoft_qp *qp, const struct mrsoft_msg *msg)
{
	struct mrsoft_resp *resp = &qp->resp;

	spin_lock_bh(&resp->lock);
	WRITE_ONCE(resp->psn, mrsoft_psn_add(msg->psn, msg->packets));
	resp->msn = mrsoft_psn_add(resp->msn, 1);
	spin_unlock_bh(&resp->lock);
	mrsoft_qp_count(qp, msg, false);
}

/**
 * mrsoft_resp_end - the message is complete
 * @qp: held
 * @msg: begun, all its bytes are placed
 *
 * Invalidates what the message asks for, advances the PSN and makes the
 * receiver's completion.
 *
 * Context: process.  When it invalidates it may sleep for the length of a copy,
 * with the caller's hold on the QP: who destroys the QP waits for that copy too,
 * which ends by itself.
 * Return: see mrsoft_resp_begin(); the message is over in any case.
 */
enum mrsoft_status mrsoft_resp_end(struct mrsoft_qp *qp,
				   struct mrsoft_msg *msg)
{
	enum mrsoft_status status;
	enum mrsoft_reason reason = MRSOFT_R_NONE;
	struct ib_wc wc;

	status = enter(qp, msg);
	if (status)
		return status;
	if (msg->op->flags & MRSOFT_OPF_INV)
		reason = mrsoft_key_invalidate(&qp->hca->keys, &qp->binder,
					       msg->ex.inv_key, true);
	if (reason) {
		status = mrsoft_msg_refused(msg, MRSOFT_S_REM_ACCESS, reason);
		status = fail(qp, msg, status);
		leave(qp, true);
		return status;
	}
	if (msg->op->kind == MRSOFT_OP_FLUSH) {
		/*
		 * Global visibility: all that messages before placed is there for
		 * every CPU and device before anybody is told.  Pairs with
		 * whatever those who are told use.
		 */
		mb();
	}
	advance(qp, msg);
	if (msg->op->flags & MRSOFT_OPF_RECV) {
		mrsoft_recv_wc(qp, msg, &wc);
		qp->resp.has_rwqe = false;
		mrsoft_recv_complete(qp, &wc, msg->solicited);
	}
	leave(qp, true);
	return MRSOFT_S_OK;
}

/**
 * mrsoft_resp_abort - the rest of a message will not come
 * @qp: held
 * @msg: begun
 *
 * The receive WQE stays taken: the next message uses it, or the flush
 * completes it.
 *
 * Context: process.
 */
void mrsoft_resp_abort(struct mrsoft_qp *qp, struct mrsoft_msg *msg)
{
	if (enter(qp, msg) == MRSOFT_S_OK)
		leave(qp, true);
}

/**
 * mrsoft_resp_take_recv - a message wants a receive WQE after all
 * @qp: held
 * @msg: begun without one, a WRITE whose last packet has immediate data
 *
 * Context: process.
 * Return: MRSOFT_S_OK; MRSOFT_S_RNR: none now, the message goes on; anything else
 * ends it, see mrsoft_resp_begin().
 */
enum mrsoft_status mrsoft_resp_take_recv(struct mrsoft_qp *qp,
					 struct mrsoft_msg *msg)
{
	enum mrsoft_status status;
	bool limit;

	status = enter(qp, msg);
	if (status)
		return status;
	status = mrsoft_recv_take(qp, msg, &limit);
	if (limit)
		mrsoft_srq_raise_limit(qp->srq);
	status = fail(qp, msg, status);
	leave(qp, status != MRSOFT_S_OK && status != MRSOFT_S_RNR);
	return status;
}

/**
 * mrsoft_resp_invalid - a path finds a message malformed
 * @qp: held
 * @msg: not begun, or aborted
 * @reason: what is wrong
 *
 * Context: process.
 * Return: what to tell the requester.
 */
enum mrsoft_status mrsoft_resp_invalid(struct mrsoft_qp *qp,
				       struct mrsoft_msg *msg,
				       enum mrsoft_reason reason)
{
	enum mrsoft_status status;

	status = mrsoft_msg_refuse(qp, msg, MRSOFT_S_INV_REQ, reason);
	if (qp->type != IB_QPT_RC)
		return MRSOFT_S_SILENT;
	/* the receive WQE of such a message is flushed with the others */
	mrsoft_qp_error(qp);
	mrsoft_qp_event(qp, IB_EVENT_QP_REQ_ERR);
	return status;
}

/**
 * mrsoft_resp_reread - bytes of a READ that was executed before
 * @qp: held
 * @msg: the READ
 * @offset: bytes from its start
 * @peer: kernel memory, where they go
 *
 * The key is checked anew: what was deregistered meanwhile is not read.
 *
 * Context: any.
 * Return: MRSOFT_S_OK, or what to tell the requester.
 */
enum mrsoft_status mrsoft_resp_reread(struct mrsoft_qp *qp,
				      struct mrsoft_msg *msg, u64 offset,
				      const struct mrsoft_span *peer)
{
	if (!mrsoft_resp_can_receive(qp))
		return MRSOFT_S_SILENT;
	if (!peer->length)
		return MRSOFT_S_OK;
	msg->done = offset;
	return fail(qp, msg, move(qp, msg, peer));
}

/* A MAD has 256 bytes: of a shorter one the rest would be what was there before. */
static bool is_mad_length(const struct mrsoft_qp *qp,
			  const struct mrsoft_msg *msg)
{
	return qp->type != IB_QPT_GSI || msg->length == IB_MGMT_MAD_SIZE;
}

static bool datagram_allowed(struct mrsoft_qp *qp, struct mrsoft_msg *msg)
{
	if (!mrsoft_resp_can_receive(qp))
		mrsoft_msg_refuse(qp, msg, MRSOFT_S_SILENT, MRSOFT_R_PEER_STATE);
	else if (msg->qkey != qp->attr.qkey)
		mrsoft_msg_refuse(qp, msg, MRSOFT_S_SILENT, MRSOFT_R_QKEY);
	else if (!is_mad_length(qp, msg))
		mrsoft_msg_refuse(qp, msg, MRSOFT_S_SILENT,
				  MRSOFT_R_PKT_LENGTH);
	else
		return true;
	return false;
}

/* Header and payload into the receive WQE, under the lock: 4 KiB at most. */
static enum mrsoft_status place_datagram(struct mrsoft_qp *qp,
					 struct mrsoft_msg *msg,
					 const void *payload, bool *limit)
{
	struct mrsoft_span grh, body;
	enum mrsoft_status status;

	status = mrsoft_recv_take(qp, msg, limit);
	if (status)
		return status;
	if (msg->length + MRSOFT_GRH_BYTES > qp->resp.rwqe.length)
		return mrsoft_msg_refuse(qp, msg, MRSOFT_S_SILENT,
			      MRSOFT_R_RECV_TOO_SHORT);
	status = mrsoft_recv_check(qp, msg, msg->length + MRSOFT_GRH_BYTES);
	if (status)
		return status;
	mrsoft_span_kernel(&grh, msg->grh, MRSOFT_GRH_BYTES);
	status = mrsoft_recv_place(qp, msg, &grh);
	if (status || !msg->length)
		return status;
	mrsoft_span_kernel(&body, (void *)payload, msg->length);
	return mrsoft_recv_place(qp, msg, &body);
}

static void datagram_wc(const struct mrsoft_qp *qp,
			const struct mrsoft_msg *msg, struct ib_wc *wc)
{
	mrsoft_recv_wc(qp, msg, wc);
	wc->byte_len += MRSOFT_GRH_BYTES;
	wc->wc_flags |= IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE |
			IB_WC_WITH_SMAC;
	wc->network_hdr_type = msg->ipv4 ? RDMA_NETWORK_IPV4 :
					   RDMA_NETWORK_IPV6;
	memcpy(wc->smac, msg->smac, ETH_ALEN);
	/* the core finds the GID for an answer by it: the CM, for one */
	if (msg->tagged) {
		wc->wc_flags |= IB_WC_WITH_VLAN;
		wc->vlan_id = msg->vlan;
	}
}

/**
 * mrsoft_resp_datagram - a UD message arrives
 * @qp: UD or GSI, held
 * @msg: filled in by the path
 * @payload: msg->length bytes
 *
 * What is wrong with the message drops it silently and keeps the receive WQE;
 * a receive WQE that is wrong itself completes in error.  IBA 9.8.3.
 *
 * Context: process.
 * Return: MRSOFT_S_OK if it was delivered, for the counters; the requester is
 * told nothing.  MRSOFT_S_FAULT: nothing was delivered, the receive WQE waits
 * for the next message; this one again, once @msg->fault was run.
 */
enum mrsoft_status mrsoft_resp_datagram(struct mrsoft_qp *qp,
					struct mrsoft_msg *msg,
					const void *payload)
{
	enum mrsoft_status status = MRSOFT_S_SILENT;
	struct mrsoft_resp *resp = &qp->resp;
	bool limit = false, lost = false;
	unsigned int due = 0;
	struct ib_wc wc;

	msg->reason = MRSOFT_R_NONE;
	spin_lock_bh(&resp->lock);
	if (datagram_allowed(qp, msg))
		status = place_datagram(qp, msg, payload, &limit);
	if (status == MRSOFT_S_OK)
		datagram_wc(qp, msg, &wc);
	else
		mrsoft_recv_error_wc(qp, recv_error(msg), msg->reason, &wc);
	/*
	 * Senders may meet here: what is taken under the lock is completed under
	 * it, so that completions come in the order of the receive queue.
	 */
	if (status == MRSOFT_S_OK || status == MRSOFT_S_REM_OP) {
		resp->has_rwqe = false;
		wc.qp = &qp->ib;
		wc.port_num = 1;
		lost = mrsoft_cq_add(qp->recv_cq, &wc, msg->solicited, &due);
	}
	spin_unlock_bh(&resp->lock);

	if (status == MRSOFT_S_OK)
		mrsoft_qp_count(qp, msg, false);
	if (status == MRSOFT_S_REM_OP)
		mrsoft_qp_error(qp);
	mrsoft_cq_upcall(qp->recv_cq, due);
	if (lost && mrsoft_qp_error(qp))
		mrsoft_qp_event(qp, IB_EVENT_QP_FATAL);
	if (limit)
		mrsoft_srq_raise_limit(qp->srq);
	return status;
}

/* One flushed receive WQE.  False: none left, or a call is busy with one. */
static bool flush_one(struct mrsoft_qp *qp)
{
	struct mrsoft_resp *resp = &qp->resp;
	struct ib_wc wc = {
		.status	    = IB_WC_WR_FLUSH_ERR,
		.opcode	    = IB_WC_RECV,
		.vendor_err = MRSOFT_R_FLUSHED,
	};
	bool got;

	spin_lock_bh(&resp->lock);
	/* leave() starts the flush again. */
	if (resp->busy) {
		spin_unlock_bh(&resp->lock);
		return false;
	}
	resp->active = NULL;
	got = resp->has_rwqe ||
	      (!qp->srq && mrsoft_rq_take(&qp->rq, NULL, &resp->rwqe));
	wc.wr_id = resp->rwqe.wr_id;
	resp->has_rwqe = false;
	spin_unlock_bh(&resp->lock);
	if (got) {
		mrsoft_refuse(&qp->hca->stats, MRSOFT_R_FLUSHED);
		mrsoft_recv_complete(qp, &wc, false);
	}
	return got;
}

/* Ends with the error state: reset and destroy cancel it. */
static void look_again(struct mrsoft_qp *qp)
{
	struct mrsoft_resp *resp = &qp->resp;
	unsigned long delay = READ_ONCE(resp->delay);

	WRITE_ONCE(resp->delay, min_t(unsigned long, delay * 2, HZ));
	queue_delayed_work(qp->hca->wq, &resp->work, delay);
}

static void flush_work_fn(struct work_struct *work)
{
	struct mrsoft_qp *qp = container_of(to_delayed_work(work),
					    struct mrsoft_qp, resp.work);
	struct mrsoft_resp *resp = &qp->resp;
	bool last = false;
	u32 n = 0;

	if (mrsoft_qp_state(qp) != IB_QPS_ERR)
		return;
	while (flush_one(qp)) {
		if (++n >= FLUSH_TURN) {
			mrsoft_resp_flush(qp);
			return;
		}
	}
	spin_lock_bh(&resp->lock);
	if (qp->srq && !resp->busy && !resp->last_wqe) {
		resp->last_wqe = true;
		last = true;
	}
	spin_unlock_bh(&resp->lock);
	if (last)
		mrsoft_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
	/* User space posts receives without a system call: look again. */
	if (qp->is_user && !qp->srq)
		look_again(qp);
}

/**
 * mrsoft_resp_flush - complete what is posted, as flushed
 * @qp: in the error state, else nothing happens
 *
 * Done by a worker; destroy and reset cancel it.
 *
 * Context: any.
 */
void mrsoft_resp_flush(struct mrsoft_qp *qp)
{
	WRITE_ONCE(qp->resp.delay, 1);
	mod_delayed_work(qp->hca->wq, &qp->resp.work, 0);
}

/**
 * mrsoft_resp_init - the start of a responder
 * @qp: not published yet
 *
 * Context: process.
 */
void mrsoft_resp_init(struct mrsoft_qp *qp)
{
	spin_lock_init(&qp->resp.lock);
	qp->resp.delay = 1;
	INIT_DELAYED_WORK(&qp->resp.work, flush_work_fn);
}

/**
 * mrsoft_resp_reset - forget the message and the receive WQE
 * @qp: in the reset state, or unpublished
 *
 * Context: process, sleeps.
 */
void mrsoft_resp_reset(struct mrsoft_qp *qp)
{
	struct mrsoft_resp *resp = &qp->resp;
	u32 n;

	spin_lock_bh(&resp->lock);
	while (resp->busy) {
		spin_unlock_bh(&resp->lock);
		/* Ends: a call copies one segment at most, then wakes us. */
		wait_var_event(&resp->busy, !READ_ONCE(resp->busy));
		spin_lock_bh(&resp->lock);
	}
	resp->active = NULL;
	resp->has_rwqe = false;
	resp->heard = false;
	resp->last_wqe = false;
	resp->msn = 0;
	spin_unlock_bh(&resp->lock);
	cancel_delayed_work_sync(&resp->work);
	if (qp->srq)
		return;
	/* As many as were there: user space may go on posting. */
	for (n = mrsoft_rq_pending(&qp->rq); n; n--)
		mrsoft_rq_take(&qp->rq, NULL, &resp->rwqe);
}
