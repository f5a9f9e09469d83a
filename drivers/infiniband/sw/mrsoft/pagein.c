// SPDX-License-Identifier: GPL-2.0
/*
 * pagein.c - a send queue waits for pages
 *
 * Owns:     whether the runner of a queue faults itself or rests meanwhile, how
 *           often it tries, when a page that does not come is called absent.
 * Not here: which pages (fault.c, noted by whoever copies), what the message
 *           does then (local.c).
 * Locks:    sq.lock for the run flags; the job's lock is outside of it.
 * Lifetime: a job may end or be left at any time; forget() comes before the WQE
 *           is completed and, with the queue stopped, before the QP is gone.
 * Context:  process, the runner; the wake-up in a worker.
 * Spec:     none: IBA knows no pages that are not there
 * Tests:    tools/testing/selftests/odp.c
 */
#include "limits.h"
#include "pagein.h"

/* No memory for a job, or too many of them: when to try again. */
#define POLL_NS		NSEC_PER_MSEC

/* The end of a page fault, under the job's lock. */
static void wake(void *arg)
{
	struct mrsoft_qp *qp = arg;
	struct mrsoft_sq *sq = &qp->sq;
	unsigned long flags;

	spin_lock_irqsave(&sq->lock, flags);
	sq->waiting = false;
	/* or it would end the next wait; one that runs now may, for a datagram */
	hrtimer_try_to_cancel(&sq->timer);
	if (!sq->stopped)
		queue_work(qp->hca->wq, &sq->work);
	spin_unlock_irqrestore(&sq->lock, flags);
}

/* The queue is not run until wake(), or the timer if @ns is not 0. */
static void rest(struct mrsoft_sq *sq, u64 ns)
{
	unsigned long flags;

	spin_lock_irqsave(&sq->lock, flags);
	if (!sq->stopped) {
		sq->waiting = true;
		sq->posts = false;
		if (ns)
			hrtimer_start(&sq->timer, ns_to_ktime(ns),
				      HRTIMER_MODE_REL);
	}
	spin_unlock_irqrestore(&sq->lock, flags);
}

/* Not resting after all. */
static void rise(struct mrsoft_sq *sq)
{
	unsigned long flags;

	spin_lock_irqsave(&sq->lock, flags);
	sq->waiting = false;
	hrtimer_try_to_cancel(&sq->timer);
	spin_unlock_irqrestore(&sq->lock, flags);
}

static int in_background(struct mrsoft_qp *qp, u64 ns)
{
	struct mrsoft_sq *sq = &qp->sq;

	rest(sq, ns);
	/* it may be done before we have left: then the queue runs again */
	sq->job = mrsoft_fault_start(&sq->msg->fault, wake, qp);
	if (sq->job)
		return -EINPROGRESS;
	/* a fault that did not run is no try */
	sq->faults--;
	if (ns) {
		rise(sq);
		return -ETIMEDOUT;
	}
	rest(sq, POLL_NS);
	return -EINPROGRESS;
}

/**
 * mrsoft_pagein_absent - the requester's own bytes are not all present
 * @qp: runner
 * @span: the bytes, held
 * @write: they were the destination
 *
 * Context: any, runner only.
 * Return: MRSOFT_S_FAULT, or MRSOFT_S_LOC_PROT when they cannot be had.
 */
enum mrsoft_status mrsoft_pagein_absent(struct mrsoft_qp *qp,
					const struct mrsoft_span *span,
					bool write)
{
	struct mrsoft_msg *msg = qp->sq.msg;

	if (!msg->no_fault)
		mrsoft_fault_note(&msg->fault, span, write);
	if (msg->fault.num)
		return MRSOFT_S_FAULT;
	msg->reason = mrsoft_qp_refuse_send(qp, MRSOFT_R_PAGE_ABSENT);
	return MRSOFT_S_LOC_PROT;
}

/**
 * mrsoft_pagein - have what the message needs faulted in
 * @qp: runner; its message was answered with MRSOFT_S_FAULT
 * @ns: how long to wait for pages of another process, 0: as long as it takes
 *
 * A process waits here for its own pages only.  Others', and all when a worker
 * runs the queue, come in the background: they may take for ever, and whoever
 * destroys this QP does not wait for them.
 *
 * The caller tries again, and again: it ends, since after MRSOFT_FAULT_TRIES
 * without a byte placed between them msg->no_fault makes the absence final. A
 * queue that rests may rest for ever, but is stopped at any time.
 *
 * Context: process, sleeps, runner only; no hold on a key or a QP.
 * Return: 0: try again; -EINPROGRESS: leave with it; -ETIMEDOUT: too many wait
 * for these pages already, only if @ns is not 0.
 */
int mrsoft_pagein(struct mrsoft_qp *qp, u64 ns)
{
	struct mrsoft_sq *sq = &qp->sq;
	struct mrsoft_msg *msg = sq->msg;

	atomic64_inc(&qp->hca->stats.page_faults);
	if (++sq->faults > MRSOFT_FAULT_TRIES) {
		mrsoft_fault_drop(&msg->fault);
		msg->no_fault = true;
		return 0;
	}
	if (mrsoft_fault_own(&msg->fault)) {
		if (mrsoft_fault_run(&msg->fault))
			msg->no_fault = true;
		return 0;
	}
	return in_background(qp, ns);
}

/**
 * mrsoft_pagein_result - the queue runs again: how did the fault end
 * @qp: runner
 *
 * Context: process, runner only.
 * Return: 0: try again, or there was none; -EINPROGRESS: the time is over.
 */
int mrsoft_pagein_result(struct mrsoft_qp *qp)
{
	struct mrsoft_sq *sq = &qp->sq;
	int ret;

	if (!sq->job)
		return 0;
	ret = mrsoft_fault_job_end(sq->job);
	sq->job = NULL;
	if (ret == -EINPROGRESS)
		return ret;
	if (ret)
		sq->msg->no_fault = true;
	return 0;
}

/**
 * mrsoft_pagein_placed - bytes were placed: page faults are counted anew
 * @qp: runner
 *
 * Context: process, runner only.
 */
void mrsoft_pagein_placed(struct mrsoft_qp *qp)
{
	qp->sq.faults = 0;
	qp->sq.msg->no_fault = false;
}

/**
 * mrsoft_pagein_forget - nobody waits for a page fault any more
 * @qp: runner, or the queue is stopped
 *
 * The fault may go on for a while.
 *
 * Context: process.
 */
void mrsoft_pagein_forget(struct mrsoft_qp *qp)
{
	if (qp->sq.job)
		mrsoft_fault_job_end(qp->sq.job);
	qp->sq.job = NULL;
}
