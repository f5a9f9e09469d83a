/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rq.h - receive queues: of a QP, or shared
 *
 * Layer 2.
 */
#ifndef MRSOFT_RQ_H
#define MRSOFT_RQ_H

#include <linux/spinlock.h>

#include "limits.h"
#include "ring.h"
#include "status.h"

/**
 * struct mrsoft_rwqe - the kernel's copy of a receive WQE, validated
 * @wr_id: as posted
 * @length: sum of the sges, bytes
 * @num_sge: entries in @sge
 * @bad: malformed: consume it and complete it with a local error
 * @sge: where the bytes go
 */
struct mrsoft_rwqe {
	u64 wr_id;
	u64 length;
	u32 num_sge;
	bool bad;
	struct ib_sge sge[MRSOFT_MAX_SGE];
};

/**
 * struct mrsoft_rq - a receive queue
 * @lock: R, spin, irqsave: both sides
 * @ring: R, elements are struct mrsoft_abi_rwqe and sges
 * @max_wr: I for a QP, R for an SRQ: capacity, work requests
 * @max_sge: I, per work request
 * @limit: R, SRQ: raise the limit event when fewer are left; 0 is disarmed
 * @is_user: I, user space posts by itself
 */
struct mrsoft_rq {
	spinlock_t lock; /* as above */
	struct mrsoft_ring ring;
	u32 max_wr;
	u32 max_sge;
	u32 limit;
	bool is_user;
};

/**
 * struct mrsoft_srq - shared receive queue
 * @ib: the core's part, must be first
 * @rq: the queue
 * @srqn: its number, for user space
 */
struct mrsoft_srq {
	struct ib_srq ib;
	struct mrsoft_rq rq;
	u32 srqn;
};

static inline struct mrsoft_srq *mrsoft_srq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct mrsoft_srq, ib);
}

/* @max_wr is rounded up: the real capacity is in rq->max_wr. */
int mrsoft_rq_init(struct mrsoft_rq *rq, u32 max_wr, u32 max_sge,
		   struct ib_ucontext *ucontext, struct mrsoft_abi_mmap *mi);
void mrsoft_rq_destroy(struct mrsoft_rq *rq);

/* Kernel consumers: -EINVAL (too many sges), -ENOMEM (full), with *bad. */
int mrsoft_rq_post(struct mrsoft_rq *rq, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad);

/*
 * Takes the oldest receive WQE: snapshot, validate, pop.  False when there is
 * none.  With @srq the limit event is raised after unlocking.
 */
bool mrsoft_rq_take(struct mrsoft_rq *rq, struct mrsoft_srq *srq,
		    struct mrsoft_rwqe *rwqe);
/* For callers with a lock of their own. */
bool mrsoft_rq_take_quiet(struct mrsoft_rq *rq, struct mrsoft_rwqe *rwqe,
			  bool *limit);
void mrsoft_srq_raise_limit(struct mrsoft_srq *srq);
u32 mrsoft_rq_pending(struct mrsoft_rq *rq);

/* SRQ: resize keeps what is queued, in order; -EINVAL when it does not fit. */
int mrsoft_rq_resize(struct mrsoft_rq *rq, u32 max_wr,
		     struct ib_ucontext *ucontext, struct mrsoft_abi_mmap *mi);
/*
 * The same in two steps, for a caller that must write the reply in between and
 * leave the SRQ as it was when that fails: begin, reply, then end or, to give
 * up, mrsoft_ring_destroy(@ring).  end has used up @ring in any case.
 */
int mrsoft_rq_resize_begin(struct mrsoft_rq *rq, u32 max_wr,
			   struct ib_ucontext *ucontext,
			   struct mrsoft_abi_mmap *mi,
			   struct mrsoft_ring *ring);
int mrsoft_rq_resize_end(struct mrsoft_rq *rq, struct mrsoft_ring *ring);
/* Arms the limit event, 0 disarms; -EINVAL beyond the capacity. */
int mrsoft_rq_set_limit(struct mrsoft_rq *rq, u32 limit);

#endif /* MRSOFT_RQ_H */
