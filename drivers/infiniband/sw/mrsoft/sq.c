// SPDX-License-Identifier: GPL-2.0
/*
 * sq.c - requester: runs a send queue
 *
 * Owns:     local operations, in-order completion, flush, when the queue runs and
 *           in whose context.
 * Not here: which WQE is next and what it may ask for (fetch.c), how a message
 *           travels (local.c, tx.c), what it does at the other end (resp.c).
 * Locks:    sq.lock covers the run flags and a kernel consumer's producer side.
 *           There is one runner at a time (sq.running); it owns the WQE, the
 *           message and the consumer side of the ring and holds no lock while
 *           it works.
 * Lifetime: stop() ends it: nobody runs it and nobody can start it.
 * Context:  the runner is in process context: a user's doorbell, or a worker.
 *           post and kick in any context.
 * Spec:     IBA Vol 1, 10.8.3 (completion), 10.3.1 (SQD, SQE, error)
 * Tests:    kunit/engine_kunit.c, tools/testing/selftests
 */
#include <linux/log2.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "fetch.h"
#include "mw.h"
#include "pagein.h"
#include "psn.h"
#include "sq.h"
#include "wqe.h"

/* Completing */

static void post_cqe(struct mrsoft_qp *qp, const struct mrsoft_swqe *wqe,
		     enum ib_wc_status status, enum mrsoft_reason reason)
{
	const struct mrsoft_op *op = mrsoft_op_find(wqe->opcode, qp->type);
	struct ib_wc wc = {
		.wr_id	    = wqe->wr_id,
		.status	    = status,
		.opcode	    = op ? op->wc : IB_WC_SEND,
		.vendor_err = reason,
		.byte_len   = status == IB_WC_SUCCESS ? wqe->length : 0,
		.qp	    = &qp->ib,
		.port_num   = 1,
	};

	if (mrsoft_cq_post(qp->send_cq, &wc, false) && mrsoft_qp_error(qp))
		mrsoft_qp_event(qp, IB_EVENT_QP_FATAL);
}

/*
 * Ends the current WQE.  The slot is free before the completion is seen, and the
 * QP is in its error state before the error is.
 */
static void complete_cur(struct mrsoft_qp *qp, enum ib_wc_status status)
{
	struct mrsoft_sq *sq = &qp->sq;
	struct mrsoft_swqe *wqe = sq->cur;
	bool signalled = sq->sig_all || (wqe->flags & IB_SEND_SIGNALED);

	sq->stage = MRSOFT_SQ_IDLE;
	mrsoft_pagein_forget(qp);
	mrsoft_ring_pop(&sq->ring);
	if (status == IB_WC_SUCCESS && sq->msg->op->kind != MRSOFT_OP_LOCAL) {
		WRITE_ONCE(sq->psn, mrsoft_psn_add(sq->psn, sq->msg->packets));
		mrsoft_qp_count(qp, sq->msg, true);
	}
	if (status == IB_WC_WR_FLUSH_ERR)
		sq->msg->reason = mrsoft_refuse(&qp->hca->stats,
						MRSOFT_R_FLUSHED);
	else if (status != IB_WC_SUCCESS)
		mrsoft_qp_sq_error(qp);
	if (status != IB_WC_SUCCESS || signalled)
		post_cqe(qp, wqe, status, sq->msg->reason);
}

static void abort_cur(struct mrsoft_qp *qp)
{
	if (qp->sq.stage == MRSOFT_SQ_BEGUN && qp->path)
		qp->path->abort(qp);
}

/* Every WQE once, in order; a turn's worth at a time. */
static bool flush(struct mrsoft_qp *qp)
{
	struct mrsoft_sq *sq = &qp->sq;

	while (sq->wqes-- > 0 && !READ_ONCE(sq->stopped)) {
		if (sq->stage == MRSOFT_SQ_IDLE && !mrsoft_fetch_next(qp))
			return false;
		abort_cur(qp);
		complete_cur(qp, IB_WC_WR_FLUSH_ERR);
	}
	return true;
}

/* Executing */

static enum ib_wc_status exec_local(struct mrsoft_qp *qp)
{
	struct mrsoft_swqe *wqe = qp->sq.cur;
	struct mrsoft_table *keys = &qp->hca->keys;
	enum mrsoft_reason reason;

	switch (wqe->opcode) {
	case IB_WR_LOCAL_INV:
		reason = mrsoft_key_invalidate(keys, &qp->binder,
					       wqe->ex.inv_key, false);
		break;
	case IB_WR_BIND_MW:
		reason = mrsoft_mw_bind(keys, &qp->binder, &wqe->bind);
		break;
	default:
		reason = mrsoft_mr_fast_reg(keys, qp->pd, wqe->reg.mr,
					    wqe->reg.key, wqe->reg.access);
	}
	qp->sq.msg->reason = reason;
	return reason ? IB_WC_MW_BIND_ERR : IB_WC_SUCCESS;
}

static int exec(struct mrsoft_qp *qp, enum ib_wc_status *status)
{
	if (qp->sq.msg->op->kind == MRSOFT_OP_LOCAL) {
		*status = exec_local(qp);
		return 0;
	}
	return qp->path->run(qp, status);
}

static bool start_next(struct mrsoft_qp *qp)
{
	enum ib_wc_status status;

	if (!mrsoft_fetch_next(qp))
		return false;
	status = mrsoft_fetch_validate(qp);
	if (status != IB_WC_SUCCESS)
		complete_cur(qp, status);
	return true;
}

static void drained(struct mrsoft_qp *qp)
{
	struct mrsoft_sq *sq = &qp->sq;
	unsigned long flags;
	bool first;

	spin_lock_irqsave(&sq->lock, flags);
	first = !sq->drained;
	sq->drained = true;
	spin_unlock_irqrestore(&sq->lock, flags);
	if (first && qp->attr.en_sqd_async_notify)
		mrsoft_qp_event(qp, IB_EVENT_SQ_DRAINED);
}

/* Has the message behind the current one begun as well? */
static bool next_has_begun(const struct mrsoft_sq *sq)
{
	return sq->ahead && mrsoft_fetch_nth(sq, 1)->begun;
}

/* One step.  False: nothing more to do now. */
static bool step(struct mrsoft_qp *qp, bool *more)
{
	struct mrsoft_sq *sq = &qp->sq;
	enum ib_wc_status status = IB_WC_SUCCESS;
	int ret;

	switch (mrsoft_qp_state(qp)) {
	case IB_QPS_ERR:
	case IB_QPS_SQE:
		*more = flush(qp);
		return false;
	case IB_QPS_SQD:
		if (sq->stage == MRSOFT_SQ_IDLE && !next_has_begun(sq)) {
			drained(qp);
			return false;
		}
		break;
	case IB_QPS_RTS:
		break;
	default:
		return false;
	}
	if (sq->stage == MRSOFT_SQ_IDLE) {
		if (sq->wqes-- <= 0) {
			*more = true;
			return false;
		}
		return start_next(qp);
	}
	ret = exec(qp, &status);
	if (!ret)
		complete_cur(qp, status);
	else if (ret == -EAGAIN)
		*more = true;
	return !ret;
}

/* Returns true when there is more to do and the turn is over. */
static bool turn(struct mrsoft_qp *qp)
{
	bool more = false;

	qp->sq.wqes = MRSOFT_TURN_WQES;
	qp->sq.bytes = MRSOFT_TURN_BYTES;
	while (!READ_ONCE(qp->sq.stopped) && step(qp, &more))
		;
	return more;
}

static bool run_enter(struct mrsoft_qp *qp)
{
	struct mrsoft_sq *sq = &qp->sq;
	enum ib_qp_state state = mrsoft_qp_state(qp);
	unsigned long flags;
	bool enter = false;

	spin_lock_irqsave(&sq->lock, flags);
	/* A flush does not wait for the RNR or retry timer. */
	if (state == IB_QPS_ERR || state == IB_QPS_SQE)
		sq->waiting = false;
	if (sq->posts)
		sq->waiting = false;
	if (sq->running) {
		sq->again = true;
	} else if (!sq->stopped && !sq->waiting) {
		sq->running = true;
		sq->again = false;
		enter = true;
	}
	spin_unlock_irqrestore(&sq->lock, flags);
	return enter;
}

static void run_leave(struct mrsoft_qp *qp, bool more)
{
	struct mrsoft_sq *sq = &qp->sq;
	enum ib_qp_state state = mrsoft_qp_state(qp);
	unsigned long flags;
	bool kick;

	spin_lock_irqsave(&sq->lock, flags);
	sq->running = false;
	kick = more || sq->again;
	if (sq->stopped ||
	    (sq->waiting && state != IB_QPS_ERR && state != IB_QPS_SQE))
		kick = false;
	/*
	 * Under the lock, so that stop(), which sees running false only with
	 * the lock, cancels this work as well.
	 */
	if (kick)
		queue_work(qp->hca->wq, &sq->work);
	spin_unlock_irqrestore(&sq->lock, flags);
	/* The flag before the look at the waiters, as mrsoft_sq_stop() waits. */
	smp_mb();
	wake_up_var(&sq->running);
}

static void run(struct mrsoft_qp *qp)
{
	if (run_enter(qp))
		run_leave(qp, turn(qp));
}

static void work_fn(struct work_struct *work)
{
	run(container_of(work, struct mrsoft_qp, sq.work));
}

static enum hrtimer_restart timer_fn(struct hrtimer *timer)
{
	struct mrsoft_qp *qp = container_of(timer, struct mrsoft_qp, sq.timer);
	unsigned long flags;

	spin_lock_irqsave(&qp->sq.lock, flags);
	qp->sq.waiting = false;
	spin_unlock_irqrestore(&qp->sq.lock, flags);
	queue_work(qp->hca->wq, &qp->sq.work);
	return HRTIMER_NORESTART;
}

/**
 * mrsoft_sq_doorbell - user space has posted
 * @qp: a user's QP
 *
 * Runs one turn here, so that a small message is done when the system call
 * returns; a worker does the rest.
 *
 * Context: process, may sleep for the length of a copy.
 */
void mrsoft_sq_doorbell(struct mrsoft_qp *qp)
{
	might_sleep();
	run(qp);
}

/**
 * mrsoft_sq_kick - have a worker look at the queue
 * @qp: any state
 *
 * Context: any.
 */
void mrsoft_sq_kick(struct mrsoft_qp *qp)
{
	struct mrsoft_sq *sq = &qp->sq;
	unsigned long flags;

	spin_lock_irqsave(&sq->lock, flags);
	if (!sq->stopped) {
		if (mrsoft_qp_state(qp) != IB_QPS_SQD)
			sq->drained = false;
		queue_work(qp->hca->wq, &sq->work);
	}
	spin_unlock_irqrestore(&sq->lock, flags);
}

/**
 * mrsoft_sq_stop - nobody runs the queue any more
 * @qp: with qp->verbs held, or being destroyed
 *
 * Context: process, sleeps.
 */
void mrsoft_sq_stop(struct mrsoft_qp *qp)
{
	struct mrsoft_sq *sq = &qp->sq;
	unsigned long flags;

	spin_lock_irqsave(&sq->lock, flags);
	sq->stopped = true;
	spin_unlock_irqrestore(&sq->lock, flags);
	/*
	 * Ends: the runner looks at stopped after each segment and each WQE,
	 * and waits for a copy at most, or a page of its own (pagein.c).
	 */
	wait_var_event(&sq->running, !READ_ONCE(sq->running));
	hrtimer_cancel(&sq->timer);
	cancel_work_sync(&sq->work);
	abort_cur(qp);
	mrsoft_pagein_forget(qp);
	mrsoft_fetch_forget(sq);
}

/**
 * mrsoft_sq_reset - empty and ready again
 * @qp: stopped
 *
 * Context: process.
 */
void mrsoft_sq_reset(struct mrsoft_qp *qp)
{
	struct mrsoft_sq *sq = &qp->sq;
	unsigned long flags;
	u32 n;

	/* As many as were there: user space may go on posting. */
	for (n = mrsoft_ring_pending(&sq->ring); n; n--)
		mrsoft_ring_pop(&sq->ring);
	spin_lock_irqsave(&sq->lock, flags);
	sq->waiting = false;
	sq->news = false;
	sq->again = false;
	sq->drained = false;
	sq->stopped = false;
	spin_unlock_irqrestore(&sq->lock, flags);
}

/* For paths */

/**
 * mrsoft_sq_charge - take bytes from the turn's budget
 * @qp: runner
 * @bytes: about to be copied
 *
 * Context: process, runner only.
 * Return: false when the turn is over: nothing was taken.
 */
bool mrsoft_sq_charge(struct mrsoft_qp *qp, u64 bytes)
{
	if (qp->sq.bytes <= 0 || READ_ONCE(qp->sq.stopped))
		return false;
	qp->sq.bytes -= bytes;
	return true;
}

/**
 * mrsoft_sq_wait - let the queue rest
 * @qp: runner, which leaves with -EINPROGRESS after this
 * @ns: for how long
 * @posts: a post ends it as well; one that came since the run began does so too
 *
 * Context: process, runner only.
 */
void mrsoft_sq_wait(struct mrsoft_qp *qp, u64 ns, bool posts)
{
	struct mrsoft_sq *sq = &qp->sq;
	unsigned long flags;

	spin_lock_irqsave(&sq->lock, flags);
	if (sq->news || (posts && sq->again)) {
		/* look again instead, once */
		sq->news = false;
		sq->again = true;
	} else if (!sq->stopped) {
		sq->waiting = true;
		sq->posts = posts;
		hrtimer_start(&sq->timer, ns_to_ktime(ns), HRTIMER_MODE_REL);
	}
	spin_unlock_irqrestore(&sq->lock, flags);
}

/**
 * mrsoft_sq_wake - there is something for the path to look at
 * @qp: held
 *
 * Context: any.
 */
void mrsoft_sq_wake(struct mrsoft_qp *qp)
{
	struct mrsoft_sq *sq = &qp->sq;
	unsigned long flags;

	spin_lock_irqsave(&sq->lock, flags);
	sq->news = true;
	/* who waits for a page is woken by it, and looks at the news then */
	if (!sq->stopped && !READ_ONCE(sq->job)) {
		sq->waiting = false;
		if (sq->running)
			sq->again = true;
		else
			queue_work(qp->hca->wq, &sq->work);
	}
	spin_unlock_irqrestore(&sq->lock, flags);
}

/**
 * mrsoft_sq_hear - the path looks now
 * @qp: runner
 *
 * What comes after this call wakes it again.
 *
 * Context: process, runner only.
 */
void mrsoft_sq_hear(struct mrsoft_qp *qp)
{
	struct mrsoft_sq *sq = &qp->sq;
	unsigned long flags;

	spin_lock_irqsave(&sq->lock, flags);
	sq->news = false;
	spin_unlock_irqrestore(&sq->lock, flags);
}

/* Kernel consumers */

static int post_one(struct mrsoft_qp *qp, const struct ib_send_wr *wr)
{
	struct mrsoft_sq *sq = &qp->sq;
	int ret;

	lockdep_assert_held(&sq->lock);
	ret = mrsoft_wqe_build(qp, wr, sq->post);
	if (ret)
		return ret;
	if (!mrsoft_ring_push(&sq->ring, sq->post,
			      min_t(size_t, sizeof(*sq->post),
				    1u << sq->ring.shift)))
		return -ENOMEM;
	return 0;
}

/**
 * mrsoft_sq_post - a kernel consumer posts a list
 * @qp: a kernel consumer's QP
 * @wr: the list
 * @bad: set to the first that was not taken
 *
 * Everything before *@bad is posted.  A worker runs the queue, so no upcall
 * comes from in here.
 *
 * Context: any.
 * Return: 0, -EINVAL (state, opcode, sges, inline length), -ENOMEM (full).
 */
int mrsoft_sq_post(struct mrsoft_qp *qp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad)
{
	struct mrsoft_sq *sq = &qp->sq;
	unsigned long flags;
	int ret = 0;

	switch (mrsoft_qp_state(qp)) {
	case IB_QPS_RESET:
	case IB_QPS_INIT:
	case IB_QPS_RTR:
		*bad = wr;
		return -EINVAL;
	default:
		break;
	}
	spin_lock_irqsave(&sq->lock, flags);
	for (; wr; wr = wr->next) {
		ret = post_one(qp, wr);
		if (ret) {
			*bad = wr;
			break;
		}
	}
	spin_unlock_irqrestore(&sq->lock, flags);
	mrsoft_sq_kick(qp);
	return ret;
}

/* Start and end */

static size_t wqe_bytes(const struct ib_qp_cap *cap, bool user)
{
	size_t head = user ? sizeof(struct mrsoft_abi_swqe) :
			     offsetof(struct mrsoft_swqe, sge);

	return head + max_t(size_t, cap->max_send_sge * sizeof(struct ib_sge),
			    cap->max_inline_data);
}

static void free_buffers(struct mrsoft_sq *sq)
{
	mrsoft_fetch_destroy(sq);
	kfree(sq->post);
	kfree(sq->bounce);
}

static int alloc_buffers(struct mrsoft_qp *qp)
{
	struct mrsoft_sq *sq = &qp->sq;
	bool ud = mrsoft_qp_is_datagram(qp);
	int ret;

	ret = mrsoft_fetch_init(sq);
	if (!qp->is_user)
		sq->post = kzalloc_obj(*sq->post);
	if (ud)
		sq->bounce = kmalloc(ib_mtu_enum_to_int(IB_MTU_4096),
				     GFP_KERNEL);
	if (!ret && (qp->is_user || sq->post) && (!ud || sq->bounce))
		return 0;
	free_buffers(sq);
	return -ENOMEM;
}

/**
 * mrsoft_sq_init - the start of a send queue
 * @qp: with type, is_user and hca set
 * @cap: asked for, within the device's limits; what was given on return
 * @sig_all: every WQE is signalled
 * @ucontext: of the user who maps the ring, or NULL
 * @mi: filled in for the user
 *
 * Context: process.
 * Return: 0, -ENOMEM, or an error of the mmap table.
 */
int mrsoft_sq_init(struct mrsoft_qp *qp, struct ib_qp_cap *cap, bool sig_all,
		   struct ib_ucontext *ucontext, struct mrsoft_abi_mmap *mi)
{
	struct mrsoft_sq *sq = &qp->sq;
	size_t head = wqe_bytes(&(struct ib_qp_cap){}, qp->is_user);
	size_t slot = roundup_pow_of_two(wqe_bytes(cap, qp->is_user));
	int ret;

	spin_lock_init(&sq->lock);
	INIT_WORK(&sq->work, work_fn);
	hrtimer_setup(&sq->timer, timer_fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	ret = alloc_buffers(qp);
	if (ret)
		return ret;
	ret = mrsoft_ring_init(&sq->ring, cap->max_send_wr, slot, ucontext, mi);
	if (ret) {
		free_buffers(sq);
		return ret;
	}
	/* What the slot has room for is given, within the limits. */
	slot = (1u << sq->ring.shift) - head;
	sq->max_wr = mrsoft_ring_capacity(&sq->ring);
	sq->max_sge = min_t(size_t, slot / sizeof(struct ib_sge),
			    MRSOFT_MAX_SGE);
	sq->max_inline = min_t(size_t, slot, MRSOFT_MAX_INLINE);
	sq->sig_all = sig_all;
	cap->max_send_wr = sq->max_wr;
	cap->max_send_sge = sq->max_sge;
	cap->max_inline_data = sq->max_inline;
	return 0;
}

/**
 * mrsoft_sq_destroy - the end of a send queue
 * @qp: stopped and unpublished
 *
 * Context: process.
 */
void mrsoft_sq_destroy(struct mrsoft_qp *qp)
{
	cancel_work_sync(&qp->sq.work);
	mrsoft_ring_destroy(&qp->sq.ring);
	free_buffers(&qp->sq);
}
