// SPDX-License-Identifier: GPL-2.0
/*
 * sgl.c - the list of the WQE that a send queue runs
 *
 * Owns:     which bytes of the requester's memory are next, and moving them.
 * Not here: running the queue (sq.c), what the bytes are for (local.c, tx.c).
 * Locks:    none: the runner of the send queue is the only user.
 * Lifetime: a span is held by the caller, and put before anything can wait.
 * Context:  process.
 * Spec:     IBA Vol 1, 10.8.2.2 (gather and scatter lists)
 * Tests:    kunit/engine_kunit.c, kunit/fault_kunit.c
 */
#include "copy.h"
#include "pagein.h"
#include "sgl.h"

static int sge_rights(const struct mrsoft_op *op)
{
	return op->kind == MRSOFT_OP_READ || op->kind == MRSOFT_OP_ATOMIC ?
		IB_ACCESS_LOCAL_WRITE : 0;
}

static struct mrsoft_access sge_access(struct mrsoft_qp *qp,
				       const struct ib_sge *sge, u32 off,
				       u64 len)
{
	const struct mrsoft_op *op = qp->sq.msg->op;

	return mrsoft_qp_sge_access(qp, sge, off, len, sge_rights(op),
				    op->name, mrsoft_qp_peer(qp));
}

/**
 * mrsoft_sgl_check - may the whole list be used
 * @qp: runner
 *
 * The own side first: when both are wrong, the local error is reported.  Each piece
 * is checked again when it is used.
 *
 * Context: process, runner only.
 * Return: IB_WC_SUCCESS, or IB_WC_LOC_PROT_ERR with the reason in qp->sq.msg->
 */
enum ib_wc_status mrsoft_sgl_check(struct mrsoft_qp *qp)
{
	struct mrsoft_swqe *wqe = qp->sq.cur;
	struct mrsoft_access req;
	u32 i;

	if (wqe->flags & IB_SEND_INLINE)
		return IB_WC_SUCCESS;
	for (i = 0; i < wqe->num_sge; i++) {
		if (!wqe->sge[i].length)
			continue;
		req = sge_access(qp, &wqe->sge[i], 0, wqe->sge[i].length);
		qp->sq.msg->reason = mrsoft_key_probe(&qp->hca->keys, &req);
		if (qp->sq.msg->reason)
			return IB_WC_LOC_PROT_ERR;
	}
	return IB_WC_SUCCESS;
}

/**
 * mrsoft_sgl_span - the next bytes of the current WQE
 * @qp: runner
 * @max: bytes at most
 * @span: held, to be put by the caller
 *
 * Context: process, runner only.
 * Return: MRSOFT_R_NONE, or why the list may not be used (any more).
 */
enum mrsoft_reason mrsoft_sgl_span(struct mrsoft_qp *qp, size_t max,
				   struct mrsoft_span *span)
{
	struct mrsoft_sq *sq = &qp->sq;
	struct mrsoft_swqe *wqe = sq->cur;
	struct mrsoft_access req;
	const struct ib_sge *sge;

	if (wqe->flags & IB_SEND_INLINE) {
		mrsoft_span_kernel(span, wqe->data + sq->sge_off,
				   min_t(u64, max, wqe->length - sq->sge_off));
		return MRSOFT_R_NONE;
	}
	while (sq->sge < wqe->num_sge &&
	       sq->sge_off == wqe->sge[sq->sge].length) {
		sq->sge++;
		sq->sge_off = 0;
	}
	if (WARN_ON_ONCE(sq->sge >= wqe->num_sge))
		return MRSOFT_R_RING_ENTRY;
	sge = &wqe->sge[sq->sge];
	req = sge_access(qp, sge, sq->sge_off,
			 min_t(u64, max, sge->length - sq->sge_off));
	sq->msg->reason = mrsoft_key_access(&qp->hca->keys, &req, span);
	return sq->msg->reason;
}

/**
 * mrsoft_sgl_advance - bytes of the current WQE are done
 * @qp: runner
 * @bytes: not more than the last span had
 *
 * Context: process, runner only.
 */
void mrsoft_sgl_advance(struct mrsoft_qp *qp, u64 bytes)
{
	qp->sq.sge_off += bytes;
}

/**
 * mrsoft_sgl_seek - go on at another place of the current WQE
 * @qp: runner
 * @offset: bytes from the start of the message, not more than it has
 *
 * Context: process, runner only.
 */
void mrsoft_sgl_seek(struct mrsoft_qp *qp, u64 offset)
{
	struct mrsoft_sq *sq = &qp->sq;
	struct mrsoft_swqe *wqe = sq->cur;

	sq->sge = 0;
	if (!(wqe->flags & IB_SEND_INLINE))
		while (sq->sge < wqe->num_sge &&
		       offset >= wqe->sge[sq->sge].length)
			offset -= wqe->sge[sq->sge++].length;
	sq->sge_off = offset;
}

/**
 * mrsoft_sgl_move - bytes of the message from or to a buffer
 * @qp: runner
 * @off: bytes from the start of the message
 * @buf: kernel memory
 * @n: bytes
 * @write: from @buf to the list, else from the list to @buf
 *
 * Copied now, with all checks.
 *
 * Context: process, runner only.
 * Return: MRSOFT_S_OK; MRSOFT_S_LOC_PROT; MRSOFT_S_FAULT: all of them once more
 * when qp->sq.msg->fault was run.
 */
enum mrsoft_status mrsoft_sgl_move(struct mrsoft_qp *qp, u64 off, void *buf,
				   u32 n, bool write)
{
	enum mrsoft_status status = MRSOFT_S_OK;
	struct mrsoft_span kernel, span;
	enum mrsoft_reason reason;
	u32 done = 0;

	mrsoft_span_kernel(&kernel, buf, n);
	mrsoft_sgl_seek(qp, off);
	while (done < n && !status) {
		if (mrsoft_sgl_span(qp, n - done, &span))
			return MRSOFT_S_LOC_PROT;
		if (write)
			reason = mrsoft_copy(&span, 0, &kernel, done,
					     span.length);
		else
			reason = mrsoft_copy(&kernel, done, &span, 0,
					     span.length);
		/* memory of a region fails in no other way */
		if (reason)
			status = mrsoft_pagein_absent(qp, &span, write);
		done += span.length;
		mrsoft_sgl_advance(qp, span.length);
		mrsoft_span_put(&span);
	}
	return status;
}
