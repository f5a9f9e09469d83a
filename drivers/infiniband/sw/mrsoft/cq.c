// SPDX-License-Identifier: GPL-2.0
/*
 * cq.c - completion queues: building a CQE, arming, moderation, overflow, resize,
 *        upcall
 *
 * Owns:     the layout of a CQE (user and kernel), what is armed, the overflow state,
 *           the CPU of an event.
 * Not here: when a work request completes and with what (sq.c, resp.c).
 * Locks:    cq.lock (spin, irqsave) is the innermost of all; upcalls are made after it.
 * Lifetime: QPs count in the core, so nobody posts once destroy_cq gets here.
 * Context:  post, arm and poll in any context; init, resize and destroy sleep.
 *           A moderated event may come from a timer, in softirq, one for another
 *           CPU comes there in hardirq.
 * Spec:     IBA Vol 1, 10.8 completion queues, 11.4.2 completion event request
 * Tests:    kunit/cq_kunit.c, kunit/live/cq_live.c
 */
#include <linux/cpumask.h>
#include <linux/lockdep.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/ib_user_verbs.h>

#include "cq.h"
#include "diary.h"
#include "inject.h"
#include "limits.h"

/*
 * Flags as libibverbs numbers them (enum ibv_wc_flags).  The kernel's own numbers
 * differ from the third on, and librxe hands over what it finds.
 */
#define CQ_UWC_GRH		BIT(0)
#define CQ_UWC_WITH_IMM		BIT(1)
#define CQ_UWC_IP_CSUM_OK	BIT(2)
#define CQ_UWC_WITH_INV		BIT(3)

static u32 cq_user_flags(int flags)
{
	u32 user = 0;

	if (flags & IB_WC_GRH)
		user |= CQ_UWC_GRH;
	if (flags & IB_WC_WITH_IMM)
		user |= CQ_UWC_WITH_IMM;
	if (flags & IB_WC_IP_CSUM_OK)
		user |= CQ_UWC_IP_CSUM_OK;
	if (flags & IB_WC_WITH_INVALIDATE)
		user |= CQ_UWC_WITH_INV;
	return user;
}

/* A union of one word: immediate data in wire order, or an rkey in ours. */
static void cq_build_user(struct ib_uverbs_wc *uwc, const struct ib_wc *wc)
{
	memset(uwc, 0, sizeof(*uwc));
	uwc->wr_id = wc->wr_id;
	uwc->status = wc->status;
	uwc->opcode = wc->opcode;
	uwc->vendor_err = wc->vendor_err;
	uwc->byte_len = wc->byte_len;
	if (wc->wc_flags & IB_WC_WITH_INVALIDATE)
		uwc->ex.invalidate_rkey = wc->ex.invalidate_rkey;
	else if (wc->wc_flags & IB_WC_WITH_IMM)
		uwc->ex.imm_data = wc->ex.imm_data;
	uwc->qp_num = wc->qp->qp_num;
	uwc->src_qp = wc->src_qp;
	uwc->wc_flags = cq_user_flags(wc->wc_flags);
	uwc->pkey_index = wc->pkey_index;
	uwc->slid = wc->slid;
	uwc->sl = wc->sl;
	uwc->dlid_path_bits = wc->dlid_path_bits;
	uwc->port_num = wc->port_num;
}

static bool cq_push(struct mrsoft_cq *cq, const struct ib_wc *wc)
{
	struct ib_uverbs_wc uwc;

	lockdep_assert_held(&cq->lock);

	if (!cq->is_user)
		return mrsoft_ring_push(&cq->ring, wc, sizeof(*wc));

	cq_build_user(&uwc, wc);
	return mrsoft_ring_push(&cq->ring, &uwc, sizeof(uwc));
}

/*
 * The consumer's request is used up by the completion that meets it; with
 * moderation by the last of some, or by the timer that the first of them starts.
 */
static bool cq_take_notify(struct mrsoft_cq *cq, bool solicited)
{
	lockdep_assert_held(&cq->lock);

	if (!cq->notify)
		return false;
	if (cq->notify == IB_CQ_SOLICITED && !solicited)
		return false;
	if (cq->mod_count && ++cq->held < cq->mod_count) {
		if (cq->held == 1)
			hrtimer_start(&cq->timer,
				      ns_to_ktime(cq->mod_period * NSEC_PER_USEC),
				      HRTIMER_MODE_REL_SOFT);
		return false;
	}
	cq->held = 0;
	cq->notify = 0;
	return true;
}

/* What was held back is due now, if anything was. */
static unsigned int cq_take_held(struct mrsoft_cq *cq)
{
	lockdep_assert_held(&cq->lock);

	if (!cq->held)
		return 0;
	cq->held = 0;
	cq->notify = 0;
	return MRSOFT_CQ_DUE_EVENT;
}

/* A timer that was started for an event that has been given finds nothing held. */
static enum hrtimer_restart timer_fn(struct hrtimer *timer)
{
	struct mrsoft_cq *cq = container_of(timer, struct mrsoft_cq, timer);
	unsigned long flags;
	unsigned int due;

	spin_lock_irqsave(&cq->lock, flags);
	due = cq_take_held(cq);
	spin_unlock_irqrestore(&cq->lock, flags);
	mrsoft_cq_upcall(cq, due);
	return HRTIMER_NORESTART;
}

/* On the CPU of the CQ, in hardirq.  The call may be used again: it is unlocked first. */
static void call_fn(void *info)
{
	struct mrsoft_cq *cq = info;

	/* pairs with cq_call(): what finds it clear is not told by this call */
	atomic_xchg(&cq->called, 0);
	cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
	/* pairs with mrsoft_cq_quiet(): the last look at the CQ */
	atomic_dec_return_release(&cq->calls);
}

/* False: the event is to be raised here, since this is the CPU or that one is gone. */
static bool cq_call(struct mrsoft_cq *cq)
{
	bool sent;

	if (cq->cpu < 0)
		return false;
	sent = cq->cpu != get_cpu();
	/* pairs with call_fn(): one that has not begun will find this completion too */
	if (sent && !atomic_xchg(&cq->called, 1)) {
		atomic_inc(&cq->calls);
		if (smp_call_function_single_async(cq->cpu, &cq->call)) {
			atomic_set(&cq->called, 0);
			atomic_dec(&cq->calls);
			sent = false;
		}
	}
	put_cpu();
	return sent;
}

static int cq_ring_init(struct mrsoft_ring *ring, u32 cqe, bool is_user,
			struct ib_ucontext *ucontext,
			struct mrsoft_abi_mmap *mi)
{
	if (!cqe || cqe > MRSOFT_MAX_CQE)
		return -EINVAL;
	return mrsoft_ring_init(ring, cqe, is_user ? sizeof(struct ib_uverbs_wc)
						   : sizeof(struct ib_wc),
				ucontext, mi);
}

/* The layout and the mapping apart, so that a test can have one of them. */
static int cq_setup(struct mrsoft_cq *cq, struct mrsoft_stats *stats, u32 cqe,
		    bool is_user, struct ib_ucontext *ucontext,
		    struct mrsoft_abi_mmap *mi)
{
	int err;

	spin_lock_init(&cq->lock);
	hrtimer_setup(&cq->timer, timer_fn, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_SOFT);
	INIT_CSD(&cq->call, call_fn, cq);
	cq->cpu = -1;
	cq->stats = stats;
	cq->is_user = is_user;
	cq->notify = 0;
	cq->overflow = false;
	err = cq_ring_init(&cq->ring, cqe, is_user, ucontext, mi);
	if (err)
		return err;
	cq->ib.cqe = mrsoft_ring_capacity(&cq->ring);
	return 0;
}

/**
 * mrsoft_cq_init - set up a completion queue
 * @cq: zeroed by the core
 * @stats: where an overflow is counted
 * @cqe: entries wanted; more may be had, ib.cqe says how many
 * @ucontext: who polls it, NULL for the kernel
 * @mi: with @ucontext: the reply
 *
 * Context: process, sleeps.
 * Return: 0; -EINVAL for no entries or more than MRSOFT_MAX_CQE; -ENOMEM.
 */
int mrsoft_cq_init(struct mrsoft_cq *cq, struct mrsoft_stats *stats, u32 cqe,
		   struct ib_ucontext *ucontext, struct mrsoft_abi_mmap *mi)
{
	return cq_setup(cq, stats, cqe, ucontext, ucontext, mi);
}

/**
 * mrsoft_cq_moderate - have some completions make one event
 * @cq: the CQ, in use
 * @count: completions for an event; 0 and 1: no moderation
 * @period: microseconds after which fewer do as well; 0: no moderation, since
 *	the last completions would have no event
 *
 * Only completions that would have made an event count.  What is held back by
 * the old rule is told now if the new one has no timer.
 *
 * Context: process, without a lock of ours.
 */
void mrsoft_cq_moderate(struct mrsoft_cq *cq, u16 count, u16 period)
{
	unsigned int due = 0;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	cq->mod_count = count > 1 && period ? count : 0;
	cq->mod_period = period;
	if (cq->held >= cq->mod_count)
		due = cq_take_held(cq);
	spin_unlock_irqrestore(&cq->lock, flags);
	mrsoft_cq_upcall(cq, due);
}

/**
 * mrsoft_cq_steer - have completion events raised on the CPU of a vector
 * @cq: a CQ of a kernel consumer, not in use yet
 * @vector: of the device, which has one for each CPU that was online
 *
 * For consumers of the kernel, whose work goes on where the event comes. A program is
 * woken, and runs where the scheduler wants it.
 *
 * Context: process.
 */
void mrsoft_cq_steer(struct mrsoft_cq *cq, unsigned int vector)
{
	cq->cpu = cpumask_local_spread(vector, NUMA_NO_NODE);
}

/**
 * mrsoft_cq_quiet - no event comes from the timer or another CPU any more
 * @cq: no QP uses it any more
 *
 * Context: process, sleeps.
 */
void mrsoft_cq_quiet(struct mrsoft_cq *cq)
{
	hrtimer_cancel(&cq->timer);
	/* Pairs with call_fn(), which runs as soon as its CPU takes interrupts. */
	while (atomic_read_acquire(&cq->calls)) {
		cpu_relax();
		cond_resched();
	}
}

/**
 * mrsoft_cq_destroy - give up a completion queue
 * @cq: no QP uses it any more
 *
 * Context: process, sleeps.
 */
void mrsoft_cq_destroy(struct mrsoft_cq *cq)
{
	mrsoft_cq_quiet(cq);
	mrsoft_ring_destroy(&cq->ring);
}

/**
 * mrsoft_cq_resize_begin - allocate the ring that a CQ is to move to
 * @cq: the CQ, in use
 * @cqe: entries wanted
 * @ucontext: who polls it, NULL for the kernel
 * @mi: with @ucontext: the reply
 * @ring: the new ring
 *
 * Context: process, sleeps.
 * Return: 0; -EINVAL for no entries or more than MRSOFT_MAX_CQE; -ENOMEM.  @cq is
 * as it was.
 */
int mrsoft_cq_resize_begin(struct mrsoft_cq *cq, u32 cqe,
			   struct ib_ucontext *ucontext,
			   struct mrsoft_abi_mmap *mi,
			   struct mrsoft_ring *ring)
{
	return cq_ring_init(ring, cqe, cq->is_user, ucontext, mi);
}

/**
 * mrsoft_cq_resize_end - move a CQ to its new ring
 * @cq: the CQ, in use; a user does not poll it meanwhile
 * @ring: from mrsoft_cq_resize_begin(), used up in any case
 *
 * What is not polled moves along in order; what is armed stays armed; a CQ that
 * has overflowed stays in error.
 *
 * Context: process, sleeps.
 * Return: 0; -EINVAL when more entries are queued than fit: @cq is as it was.
 */
int mrsoft_cq_resize_end(struct mrsoft_cq *cq, struct mrsoft_ring *ring)
{
	unsigned long flags;
	u32 unread;
	int err;

	spin_lock_irqsave(&cq->lock, flags);
	unread = mrsoft_ring_unread(&cq->ring);
	err = mrsoft_ring_move(ring, &cq->ring, cq->ring.prod - unread, unread);
	if (!err) {
		swap(cq->ring, *ring);
		cq->ib.cqe = mrsoft_ring_capacity(&cq->ring);
	}
	spin_unlock_irqrestore(&cq->lock, flags);

	mrsoft_ring_destroy(ring);
	return err;
}

/**
 * mrsoft_cq_resize - change the size of a CQ
 * @cq: the CQ, in use; a user does not poll it meanwhile
 * @cqe: entries wanted; more may be had, ib.cqe says how many
 * @ucontext: who polls it, NULL for the kernel
 * @mi: with @ucontext: the reply
 *
 * Context: process, sleeps.
 * Return: 0; -EINVAL for no entries, more than MRSOFT_MAX_CQE or fewer than are
 * queued; -ENOMEM.  On failure @cq is as it was.
 */
int mrsoft_cq_resize(struct mrsoft_cq *cq, u32 cqe,
		     struct ib_ucontext *ucontext, struct mrsoft_abi_mmap *mi)
{
	struct mrsoft_ring ring;
	int err;

	err = mrsoft_cq_resize_begin(cq, cqe, ucontext, mi, &ring);
	if (err)
		return err;
	return mrsoft_cq_resize_end(cq, &ring);
}

static void cq_raise_error(struct mrsoft_cq *cq)
{
	struct ib_event event = {
		.device = cq->ib.device,
		.element.cq = &cq->ib,
		.event = IB_EVENT_CQ_ERR,
	};

	if (cq->ib.event_handler)
		cq->ib.event_handler(&event, cq->ib.cq_context);
}

/* Does a rule have the CQ be full now? */
static bool is_injected(struct mrsoft_cq *cq, const struct ib_wc *wc)
{
	struct mrsoft_occasion now = {
		.event = MRSOFT_ON_COMPLETION, .cq = cq->ib.res.id,
		.qpn = wc->qp ? wc->qp->qp_num : 0,
	};
	struct mrsoft_injection in;

	return mrsoft_inject(cq->stats, &now, &in);
}

/**
 * mrsoft_cq_add - add a completion, without telling anybody
 * @cq: the CQ
 * @wc: the completion in the kernel's form, with its QP
 * @solicited: the peer asked for an event; an error counts as one, IBA 11.4.2.2
 * @due: what mrsoft_cq_upcall() has to do once no lock is held
 *
 * The event cannot be lost: the entry is published and what is armed is looked at
 * under one lock, and mrsoft_cq_arm() arms and looks at the entries under the
 * same.
 *
 * Context: any.
 * Return: 0; -EOVERFLOW when the CQ was full, now or before: the completion is
 * lost.
 */
int mrsoft_cq_add(struct mrsoft_cq *cq, const struct ib_wc *wc, bool solicited,
		  unsigned int *due)
{
	enum mrsoft_reason reason = MRSOFT_R_CQ_OVERFLOW;
	unsigned long flags;

	*due = 0;
	solicited |= wc->status != IB_WC_SUCCESS;
	if (is_injected(cq, wc))
		reason = MRSOFT_R_INJECTED;

	spin_lock_irqsave(&cq->lock, flags);
	if (reason == MRSOFT_R_INJECTED || cq->overflow || !cq_push(cq, wc))
		goto overflow;
	if (cq_take_notify(cq, solicited))
		*due = MRSOFT_CQ_DUE_EVENT;
	spin_unlock_irqrestore(&cq->lock, flags);
	return 0;

overflow:
	if (!cq->overflow)
		*due = MRSOFT_CQ_DUE_ERROR;
	cq->overflow = true;
	spin_unlock_irqrestore(&cq->lock, flags);

	mrsoft_diary_refuse(cq->stats, &(struct mrsoft_refusal){
		.reason = reason, .qpn = wc->qp ? wc->qp->qp_num : 0,
		.peer = wc->src_qp,
		.op = reason == MRSOFT_R_INJECTED ? "overflow" : "completion",
	});
	return -EOVERFLOW;
}

/**
 * mrsoft_cq_upcall - tell the consumer what mrsoft_cq_add() found due
 * @cq: the CQ
 * @due: from mrsoft_cq_add()
 *
 * Context: any, without a lock of ours and not from a kernel consumer's own
 * post call.
 */
void mrsoft_cq_upcall(struct mrsoft_cq *cq, unsigned int due)
{
	if ((due & MRSOFT_CQ_DUE_EVENT) && cq->ib.comp_handler && !cq_call(cq))
		cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
	if (due & MRSOFT_CQ_DUE_ERROR)
		cq_raise_error(cq);
}

/**
 * mrsoft_cq_post - add a completion, and tell the consumer if it asked for that
 * @cq: the CQ
 * @wc: the completion in the kernel's form, with its QP
 * @solicited: the peer asked for an event; an error counts as one
 *
 * Context: any, without a lock of ours and not from a kernel consumer's own
 * post call.
 * Return: 0; -EOVERFLOW when the CQ was full, now or before: the completion is
 * lost, IB_EVENT_CQ_ERR was raised the first time.
 */
int mrsoft_cq_post(struct mrsoft_cq *cq, const struct ib_wc *wc,
		   bool solicited)
{
	unsigned int due;
	int err;

	err = mrsoft_cq_add(cq, wc, solicited, &due);
	mrsoft_cq_upcall(cq, due);
	return err;
}

/**
 * mrsoft_cq_poll - take completions off a CQ of the kernel
 * @cq: the CQ
 * @n: at most so many
 * @wc: filled
 *
 * Context: any.
 * Return: how many, 0 when there are none; -EINVAL for a CQ of user space, which
 * polls by itself.
 */
int mrsoft_cq_poll(struct mrsoft_cq *cq, int n, struct ib_wc *wc)
{
	unsigned long flags;
	int i;

	if (cq->is_user)
		return -EINVAL;

	spin_lock_irqsave(&cq->lock, flags);
	for (i = 0; i < n; i++) {
		if (!mrsoft_ring_peek(&cq->ring, &wc[i], sizeof(*wc)))
			break;
		mrsoft_ring_pop(&cq->ring);
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return i;
}

/**
 * mrsoft_cq_arm - ask for an event
 * @cq: the CQ
 * @flags: IB_CQ_SOLICITED or IB_CQ_NEXT_COMP, with IB_CQ_REPORT_MISSED_EVENTS
 *
 * A request for the next completion is not weakened by a later one for the next
 * solicited completion, IBA 11.4.2.2.
 *
 * Context: any.
 * Return: 1 when missed events are asked for and entries are queued (poll
 * again), else 0.
 */
int mrsoft_cq_arm(struct mrsoft_cq *cq, enum ib_cq_notify_flags flags)
{
	unsigned long irq;
	int missed = 0;

	spin_lock_irqsave(&cq->lock, irq);
	if (cq->notify != IB_CQ_NEXT_COMP)
		cq->notify = flags & IB_CQ_SOLICITED_MASK;
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		missed = mrsoft_ring_unread(&cq->ring) > 0;
	spin_unlock_irqrestore(&cq->lock, irq);
	return missed;
}

/**
 * mrsoft_cq_pending - completions that are queued
 * @cq: the CQ; of user space: as far as its consumer index tells
 *
 * Context: any.
 * Return: entries, 0 .. ib.cqe.
 */
u32 mrsoft_cq_pending(struct mrsoft_cq *cq)
{
	unsigned long flags;
	u32 unread;

	spin_lock_irqsave(&cq->lock, flags);
	unread = mrsoft_ring_unread(&cq->ring);
	spin_unlock_irqrestore(&cq->lock, flags);
	return unread;
}
