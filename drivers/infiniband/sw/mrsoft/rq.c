// SPDX-License-Identifier: GPL-2.0
/*
 * rq.c - receive queues: taking a receive WQE from an RQ or an SRQ
 *
 * Owns:     the layout of a receive WQE, its validation, the SRQ limit event.
 * Not here: what happens to the bytes and to the completion (resp.c).
 * Locks:    rq.lock (spin, irqsave), cq.lock may be taken inside, not the
 *           other way; the event is raised after it.
 * Lifetime: QPs count on their SRQ in the core, so nobody takes after destroy.
 * Context:  post and take in any context; init, resize and destroy sleep.
 * Spec:     IBA Vol 1, 10.2.9 shared receive queue
 * Tests:    kunit/rq_kunit.c
 */
#include <linux/lockdep.h>
#include <linux/string.h>

#include "rq.h"

/* The sges are copied from the ring straight into struct ib_sge. */
static_assert(sizeof(struct mrsoft_abi_sge) == sizeof(struct ib_sge));
static_assert(offsetof(struct mrsoft_abi_sge, addr) ==
	      offsetof(struct ib_sge, addr));
static_assert(offsetof(struct mrsoft_abi_sge, length) ==
	      offsetof(struct ib_sge, length));
static_assert(offsetof(struct mrsoft_abi_sge, lkey) ==
	      offsetof(struct ib_sge, lkey));

/* A whole element, as kernel consumers' are built before they are stored. */
struct rq_elem {
	struct mrsoft_abi_rwqe head;
	struct mrsoft_abi_sge sge[MRSOFT_MAX_SGE];
};

static_assert(offsetof(struct rq_elem, sge) == sizeof(struct mrsoft_abi_rwqe));

static int rq_ring_init(struct mrsoft_ring *ring, u32 max_wr, u32 max_sge,
			struct ib_ucontext *ucontext,
			struct mrsoft_abi_mmap *mi)
{
	if (max_wr > max(MRSOFT_MAX_QP_WR, MRSOFT_MAX_SRQ_WR))
		return -EINVAL;
	return mrsoft_ring_init(ring, max_wr,
				offsetof(struct rq_elem, sge[max_sge]),
				ucontext, mi);
}

/* Who posts and the mapping apart, so that a test can have one of them. */
static int rq_setup(struct mrsoft_rq *rq, u32 max_wr, u32 max_sge,
		    bool is_user, struct ib_ucontext *ucontext,
		    struct mrsoft_abi_mmap *mi)
{
	int err;

	spin_lock_init(&rq->lock);
	rq->is_user = is_user;
	rq->limit = 0;
	rq->max_wr = 0;
	rq->max_sge = 0;
	rq->ring.mem = NULL;
	if (max_sge > MRSOFT_MAX_SGE)
		return -EINVAL;
	err = rq_ring_init(&rq->ring, max_wr, max_sge, ucontext, mi);
	if (err)
		return err;
	rq->max_wr = mrsoft_ring_capacity(&rq->ring);
	rq->max_sge = max_sge;
	return 0;
}

/**
 * mrsoft_rq_init - set up a receive queue
 * @rq: memory, zeroed or not
 * @max_wr: work requests wanted, 0 is a queue that holds none; more may be had
 * @max_sge: scatter entries of one of them
 * @ucontext: who posts to it, NULL for the kernel
 * @mi: with @ucontext: the reply
 *
 * Context: process, sleeps.
 * Return: 0; -EINVAL for more than limits.h allows; -ENOMEM.  @rq is safe to
 * destroy in each case.
 */
int mrsoft_rq_init(struct mrsoft_rq *rq, u32 max_wr, u32 max_sge,
		   struct ib_ucontext *ucontext, struct mrsoft_abi_mmap *mi)
{
	return rq_setup(rq, max_wr, max_sge, ucontext, ucontext, mi);
}

/**
 * mrsoft_rq_destroy - give up a receive queue
 * @rq: nobody takes from it any more
 *
 * Context: process, sleeps.
 */
void mrsoft_rq_destroy(struct mrsoft_rq *rq)
{
	mrsoft_ring_destroy(&rq->ring);
}

static int rq_post_one(struct mrsoft_rq *rq, const struct ib_recv_wr *wr)
{
	struct rq_elem elem;
	u64 length = 0;
	int i;

	lockdep_assert_held(&rq->lock);

	if (wr->num_sge < 0 || wr->num_sge > rq->max_sge)
		return -EINVAL;

	memset(&elem.head, 0, sizeof(elem.head));
	for (i = 0; i < wr->num_sge; i++) {
		elem.sge[i].addr = wr->sg_list[i].addr;
		elem.sge[i].length = wr->sg_list[i].length;
		elem.sge[i].lkey = wr->sg_list[i].lkey;
		length += wr->sg_list[i].length;
	}
	elem.head.wr_id = wr->wr_id;
	elem.head.dma.num_sge = wr->num_sge;
	elem.head.dma.length = min_t(u64, length, U32_MAX);

	if (!mrsoft_ring_push(&rq->ring, &elem,
			      offsetof(struct rq_elem, sge[wr->num_sge])))
		return -ENOMEM;
	return 0;
}

/**
 * mrsoft_rq_post - queue receives of a kernel consumer
 * @rq: the queue
 * @wr: list of work requests
 * @bad: the first that was not queued, on failure
 *
 * Context: any.
 * Return: 0; -EINVAL for too many sges, or for a queue of user space, which
 * posts by itself; -ENOMEM when the queue is full.
 */
int mrsoft_rq_post(struct mrsoft_rq *rq, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad)
{
	unsigned long flags;
	int err = 0;

	if (rq->is_user) {
		*bad = wr;
		return -EINVAL;
	}

	spin_lock_irqsave(&rq->lock, flags);
	for (; wr; wr = wr->next) {
		err = rq_post_one(rq, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	spin_unlock_irqrestore(&rq->lock, flags);
	return err;
}

/*
 * The oldest element, copied once.  The length field of the head is not looked
 * at: librxe writes nonsense there at times, so the sges say how long it is.
 */
static void rq_snapshot_sges(struct mrsoft_rq *rq, u32 num_sge,
			     struct mrsoft_rwqe *rwqe)
{
	u32 i;

	lockdep_assert_held(&rq->lock);

	if (num_sge > rq->max_sge ||
	    mrsoft_ring_peek_at(&rq->ring, offsetof(struct rq_elem, sge),
				rwqe->sge, num_sge * sizeof(rwqe->sge[0]))) {
		rwqe->bad = true;
		return;
	}
	for (i = 0; i < num_sge; i++)
		rwqe->length += rwqe->sge[i].length;
	rwqe->num_sge = num_sge;
}

/* Armed and fewer left than the limit: the event is due, and used up. */
static bool rq_take_limit(struct mrsoft_rq *rq)
{
	lockdep_assert_held(&rq->lock);

	if (!rq->limit || mrsoft_ring_pending(&rq->ring) >= rq->limit)
		return false;
	rq->limit = 0;
	return true;
}

/**
 * mrsoft_srq_raise_limit - tell the consumer that receives run low
 * @srq: mrsoft_rq_take_quiet() said so
 *
 * Context: any, without a lock of ours.
 */
void mrsoft_srq_raise_limit(struct mrsoft_srq *srq)
{
	struct ib_event event = {
		.device = srq->ib.device,
		.element.srq = &srq->ib,
		.event = IB_EVENT_SRQ_LIMIT_REACHED,
	};

	if (srq->ib.event_handler)
		srq->ib.event_handler(&event, srq->ib.srq_context);
}

/**
 * mrsoft_rq_take_quiet - take the oldest receive WQE, without telling anybody
 * @rq: the queue
 * @rwqe: filled; with @rwqe->bad set only wr_id means anything
 * @limit: the SRQ's limit event is due, and used up
 *
 * Whatever user space does to the element or to the index, @rwqe is consistent in
 * itself and within max_sge.
 *
 * Context: any.
 * Return: false when the queue is empty (@rwqe is undefined).
 */
bool mrsoft_rq_take_quiet(struct mrsoft_rq *rq, struct mrsoft_rwqe *rwqe,
			  bool *limit)
{
	struct mrsoft_abi_rwqe head;
	unsigned long flags;
	bool got;

	*limit = false;
	spin_lock_irqsave(&rq->lock, flags);
	got = mrsoft_ring_peek(&rq->ring, &head, sizeof(head));
	if (got) {
		rwqe->wr_id = head.wr_id;
		rwqe->length = 0;
		rwqe->num_sge = 0;
		rwqe->bad = false;
		rq_snapshot_sges(rq, head.dma.num_sge, rwqe);
		mrsoft_ring_pop(&rq->ring);
		*limit = rq_take_limit(rq);
	}
	spin_unlock_irqrestore(&rq->lock, flags);
	return got;
}

/**
 * mrsoft_rq_take - take the oldest receive WQE
 * @rq: the queue
 * @srq: the SRQ that @rq belongs to, NULL for the queue of a QP
 * @rwqe: see mrsoft_rq_take_quiet()
 *
 * The limit event is raised once per arming, after unlocking.
 *
 * Context: any, without a lock of ours that an event handler could want.
 * Return: false when the queue is empty (@rwqe is undefined).
 */
bool mrsoft_rq_take(struct mrsoft_rq *rq, struct mrsoft_srq *srq,
		    struct mrsoft_rwqe *rwqe)
{
	bool limit, got;

	got = mrsoft_rq_take_quiet(rq, rwqe, &limit);
	if (limit && srq)
		mrsoft_srq_raise_limit(srq);
	return got;
}

/**
 * mrsoft_rq_pending - receives that are queued
 * @rq: the queue
 *
 * Context: any.
 * Return: work requests, 0 .. max_wr; a hint, since user space posts unasked.
 */
u32 mrsoft_rq_pending(struct mrsoft_rq *rq)
{
	unsigned long flags;
	u32 pending;

	spin_lock_irqsave(&rq->lock, flags);
	pending = mrsoft_ring_pending(&rq->ring);
	spin_unlock_irqrestore(&rq->lock, flags);
	return pending;
}

/**
 * mrsoft_rq_resize_begin - allocate the ring that an SRQ is to move to
 * @rq: the queue, in use
 * @max_wr: work requests wanted, not 0
 * @ucontext: who posts to it, NULL for the kernel
 * @mi: with @ucontext: the reply
 * @ring: the new ring
 *
 * Context: process, sleeps.
 * Return: 0; -EINVAL for none or more than limits.h allows; -ENOMEM.  @rq is as it
 * was.
 */
int mrsoft_rq_resize_begin(struct mrsoft_rq *rq, u32 max_wr,
			   struct ib_ucontext *ucontext,
			   struct mrsoft_abi_mmap *mi,
			   struct mrsoft_ring *ring)
{
	if (!max_wr)
		return -EINVAL;
	return rq_ring_init(ring, max_wr, rq->max_sge, ucontext, mi);
}

/**
 * mrsoft_rq_resize_end - move an SRQ to its new ring
 * @rq: the queue, in use; user space does not post meanwhile
 * @ring: from mrsoft_rq_resize_begin(), used up in any case
 *
 * The producer index is user space's, so it is a snapshot of it that counts as
 * queued, and the copy's index is written for user space to go on from.
 *
 * Context: process, sleeps.
 * Return: 0; -EINVAL when what is queued or the armed limit does not fit: @rq is as
 * it was.
 */
int mrsoft_rq_resize_end(struct mrsoft_rq *rq, struct mrsoft_ring *ring)
{
	u32 capacity = mrsoft_ring_capacity(ring);
	unsigned long flags;
	int err = -EINVAL;

	spin_lock_irqsave(&rq->lock, flags);
	if (rq->limit <= capacity)
		err = mrsoft_ring_move(ring, &rq->ring, rq->ring.cons,
				       mrsoft_ring_pending(&rq->ring));
	if (!err) {
		swap(rq->ring, *ring);
		rq->max_wr = capacity;
	}
	spin_unlock_irqrestore(&rq->lock, flags);

	mrsoft_ring_destroy(ring);
	return err;
}

/**
 * mrsoft_rq_resize - change the size of an SRQ
 * @rq: the queue, in use; user space does not post meanwhile
 * @max_wr: work requests wanted; more may be had, rq->max_wr says how many
 * @ucontext: who posts to it, NULL for the kernel
 * @mi: with @ucontext: the reply
 *
 * Context: process, sleeps.
 * Return: 0; -EINVAL for none, more than limits.h allows, or less than is queued or
 * armed; -ENOMEM.  On failure @rq is as it was.
 */
int mrsoft_rq_resize(struct mrsoft_rq *rq, u32 max_wr,
		     struct ib_ucontext *ucontext, struct mrsoft_abi_mmap *mi)
{
	struct mrsoft_ring ring;
	int err;

	err = mrsoft_rq_resize_begin(rq, max_wr, ucontext, mi, &ring);
	if (err)
		return err;
	return mrsoft_rq_resize_end(rq, &ring);
}

/**
 * mrsoft_rq_set_limit - arm the limit event of an SRQ
 * @rq: the queue
 * @limit: raise the event when a receive is taken and fewer are left; 0 disarms
 *
 * Context: any.
 * Return: 0; -EINVAL when @limit is above max_wr.
 */
int mrsoft_rq_set_limit(struct mrsoft_rq *rq, u32 limit)
{
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&rq->lock, flags);
	if (limit > rq->max_wr)
		err = -EINVAL;
	else
		rq->limit = limit;
	spin_unlock_irqrestore(&rq->lock, flags);
	return err;
}
