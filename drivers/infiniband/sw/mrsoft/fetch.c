// SPDX-License-Identifier: GPL-2.0
/*
 * fetch.c - requester: which WQE is next
 *
 * Owns:     copies of WQEs, validating them, and looking ahead: the wire path
 *           sends messages before those in front of them are answered.
 * Not here: the layout of a WQE (wqe.c), running the queue (sq.c), packets (tx.c).
 * Locks:    none: the runner of the send queue is the only user.
 * Lifetime: a WQE has its slot in the ring until it is completed; its copy is
 *           used from the first packet to the last.
 * Context:  process.
 * Spec:     IBA Vol 1, 10.8.3 (order), 9.7.2 (PSN)
 * Tests:    kunit/engine_kunit.c, tools/testing/selftests/ahead.c
 */
#include <linux/slab.h>

#include "fetch.h"
#include "pagein.h"
#include "psn.h"
#include "sgl.h"
#include "wqe.h"

static enum mrsoft_reason refuse(struct mrsoft_qp *qp,
				 enum mrsoft_reason reason)
{
	const struct mrsoft_op *op = qp->sq.msg->op;

	qp->sq.msg->reason = mrsoft_qp_refuse(qp, op ? op->name : NULL, reason);
	return reason;
}

static enum ib_wc_status check_length(struct mrsoft_qp *qp)
{
	const struct mrsoft_op *op = qp->sq.msg->op;
	u64 length = qp->sq.cur->length;
	u64 max = MRSOFT_MAX_MSG;

	if (mrsoft_qp_is_datagram(qp))
		max = READ_ONCE(qp->hca->mtu);
	if (length <= max &&
	    (!(op->flags & MRSOFT_OPF_WORD) || length == sizeof(u64)))
		return IB_WC_SUCCESS;
	refuse(qp, MRSOFT_R_MSG_TOO_LONG);
	return IB_WC_LOC_LEN_ERR;
}

static enum ib_wc_status validate(struct mrsoft_qp *qp)
{
	struct mrsoft_sq *sq = &qp->sq;
	struct mrsoft_swqe *wqe = sq->cur;
	const struct mrsoft_op *op = mrsoft_op_find(wqe->opcode, qp->type);
	enum ib_wc_status status;

	sq->msg->op = op;
	sq->msg->reason = MRSOFT_R_NONE;
	if (!op || (mrsoft_op_needs_depth(op) && !qp->attr.max_rd_atomic)) {
		refuse(qp, op ? MRSOFT_R_READ_DEPTH : MRSOFT_R_OPCODE);
		return IB_WC_LOC_QP_OP_ERR;
	}
	if (wqe->bad || ((wqe->flags & IB_SEND_INLINE) &&
			 op->kind != MRSOFT_OP_LOCAL &&
			 !(op->flags & MRSOFT_OPF_INLINE))) {
		refuse(qp, MRSOFT_R_RING_ENTRY);
		return IB_WC_LOC_QP_OP_ERR;
	}
	if (op->kind == MRSOFT_OP_LOCAL)
		return IB_WC_SUCCESS;
	status = check_length(qp);
	return status ? status : mrsoft_sgl_check(qp);
}

/* The selected one. */
static void prepare(struct mrsoft_qp *qp, struct mrsoft_send *send, u32 psn)
{
	send->status = validate(qp);
	send->ready = true;
	send->begun = false;
	send->early = false;
	if (send->status != IB_WC_SUCCESS)
		return;
	mrsoft_wqe_message(qp, &send->wqe, &send->msg);
	send->msg.psn = psn;
	send->msg.no_fault = false;
	send->msg.unsure = 0;
	/* local operations find all before them done */
	send->early = send->msg.op->kind != MRSOFT_OP_LOCAL;
}

/**
 * mrsoft_fetch_select - work on one of the WQEs that were fetched
 * @sq: runner
 * @nth: how far behind the current one
 *
 * Context: process, runner only.
 */
void mrsoft_fetch_select(struct mrsoft_sq *sq, u32 nth)
{
	struct mrsoft_send *send = mrsoft_fetch_nth(sq, nth);

	sq->cur = &send->wqe;
	sq->msg = &send->msg;
}

/**
 * mrsoft_fetch_next - the next WQE becomes the current one
 * @qp: runner, whose last WQE is completed
 *
 * Context: process, runner only.
 * Return: false when the queue is empty.
 */
bool mrsoft_fetch_next(struct mrsoft_qp *qp)
{
	struct mrsoft_sq *sq = &qp->sq;

	if (sq->ahead) {
		sq->head = (sq->head + 1) % MRSOFT_MAX_SENDS;
		sq->ahead--;
		mrsoft_fetch_select(sq, 0);
	} else {
		if (!mrsoft_wqe_fetch(qp, 0, sq->cur))
			return false;
		mrsoft_fetch_nth(sq, 0)->ready = false;
	}
	sq->stage = MRSOFT_SQ_FETCHED;
	return true;
}

/**
 * mrsoft_fetch_validate - may the current WQE be executed?
 * @qp: runner
 *
 * If so its message is filled in.
 *
 * Context: process, runner only.
 * Return: IB_WC_SUCCESS, or what it completes with.
 */
enum ib_wc_status mrsoft_fetch_validate(struct mrsoft_qp *qp)
{
	struct mrsoft_sq *sq = &qp->sq;
	struct mrsoft_send *send = mrsoft_fetch_nth(sq, 0);

	if (!send->ready)
		prepare(qp, send, sq->psn);
	if (send->status != IB_WC_SUCCESS)
		return send->status;
	mrsoft_sgl_seek(qp, 0);
	sq->retries = qp->attr.retry_cnt;
	sq->rnr_retries = qp->attr.rnr_retry;
	mrsoft_pagein_placed(qp);
	return IB_WC_SUCCESS;
}

/* One more behind those that were fetched. */
static struct mrsoft_send *fetch_more(struct mrsoft_qp *qp)
{
	struct mrsoft_sq *sq = &qp->sq;
	u32 nth = sq->ahead + 1, slot = (sq->head + nth) % MRSOFT_MAX_SENDS;
	const struct mrsoft_msg *last = &mrsoft_fetch_nth(sq, sq->ahead)->msg;
	struct mrsoft_send *send;

	if (nth == MRSOFT_MAX_SENDS || mrsoft_qp_state(qp) != IB_QPS_RTS)
		return NULL;
	if (!sq->sends[slot])
		sq->sends[slot] = kzalloc_obj(*send, GFP_KERNEL | __GFP_NOWARN);
	send = sq->sends[slot];
	if (!send || !mrsoft_wqe_fetch(qp, nth, &send->wqe))
		return NULL;
	mrsoft_fetch_select(sq, nth);
	prepare(qp, send, mrsoft_psn_add(last->psn, last->packets));
	mrsoft_fetch_select(sq, 0);
	sq->ahead = nth;
	return send;
}

/**
 * mrsoft_fetch_ahead - what may be sent before the current message is answered
 * @qp: runner, with a current message
 * @nth: how far behind it, 1 or more; all between may go early as well
 *
 * A WQE is validated when it is fetched; if it is refused it completes so in its
 * turn.  Its message and its PSNs are fixed from then on.
 *
 * Context: process, sleeps, runner only.
 * Return: NULL: none, or it has to wait for its turn.
 */
struct mrsoft_send *mrsoft_fetch_ahead(struct mrsoft_qp *qp, u32 nth)
{
	struct mrsoft_send *send;

	if (!mrsoft_fetch_nth(&qp->sq, nth - 1)->early)
		return NULL;
	send = nth <= qp->sq.ahead ? mrsoft_fetch_nth(&qp->sq, nth) :
				     fetch_more(qp);
	return send && send->early ? send : NULL;
}

/**
 * mrsoft_fetch_forget - nothing is fetched any more
 * @sq: stopped
 *
 * What has not completed is in the ring still.
 *
 * Context: process.
 */
void mrsoft_fetch_forget(struct mrsoft_sq *sq)
{
	sq->ahead = 0;
	sq->stage = MRSOFT_SQ_IDLE;
}

/**
 * mrsoft_fetch_init - room for the current WQE
 * @sq: new
 *
 * Context: process, sleeps.
 * Return: 0 or -ENOMEM.
 */
int mrsoft_fetch_init(struct mrsoft_sq *sq)
{
	sq->sends[0] = kzalloc_obj(*sq->sends[0]);
	if (!sq->sends[0])
		return -ENOMEM;
	sq->head = 0;
	sq->ahead = 0;
	mrsoft_fetch_select(sq, 0);
	return 0;
}

/**
 * mrsoft_fetch_destroy - give up the copies
 * @sq: stopped; one never set up is fine
 *
 * Context: process.
 */
void mrsoft_fetch_destroy(struct mrsoft_sq *sq)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sq->sends); i++)
		kfree(sq->sends[i]);
}
