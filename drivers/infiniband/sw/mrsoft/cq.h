/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cq.h - completion queues
 *
 * Layer 2.
 */
#ifndef MRSOFT_CQ_H
#define MRSOFT_CQ_H

#include <linux/hrtimer.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#include "ring.h"
#include "status.h"

/**
 * struct mrsoft_cq - completion queue
 * @ib: the core's part, must be first
 * @stats: I, the device's counters
 * @lock: C, spin, irqsave: producer side, @notify, resize; for kernel CQs both sides
 * @ring: C, elements are struct ib_uverbs_wc (user) or struct ib_wc (kernel)
 * @is_user: I, layout
 * @notify: C, what the consumer armed: IB_CQ_SOLICITED, IB_CQ_NEXT_COMP, 0
 * @overflow: C, an entry was lost; the CQ accepts nothing more
 * @mod_count: C, completions that make one event; 0: each does
 * @mod_period: C, microseconds that an event may be late
 * @held: C, completions that have not made their event yet
 * @timer: the event of those
 * @cpu: I, where events are raised; -1: where the work is done
 * @called: A, a call to @cpu is asked for and has not begun
 * @calls: A, calls that have not ended
 * @call: of the owner of @called
 */
struct mrsoft_cq {
	struct ib_cq ib;
	struct mrsoft_stats *stats;
	spinlock_t lock; /* as above */
	struct mrsoft_ring ring;
	bool is_user;
	u8 notify;
	bool overflow;
	u16 mod_count;
	u16 mod_period;
	u16 held;
	struct hrtimer timer;
	int cpu;
	atomic_t called;
	atomic_t calls;
	struct __call_single_data call;
};

static inline struct mrsoft_cq *mrsoft_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct mrsoft_cq, ib);
}

/* Slots for @cqe entries; @ucontext NULL for the kernel.  Sets ib.cqe. */
int mrsoft_cq_init(struct mrsoft_cq *cq, struct mrsoft_stats *stats, u32 cqe,
		   struct ib_ucontext *ucontext, struct mrsoft_abi_mmap *mi);
void mrsoft_cq_destroy(struct mrsoft_cq *cq);
/* -EINVAL when fewer than the entries not yet polled. */
int mrsoft_cq_resize(struct mrsoft_cq *cq, u32 cqe,
		     struct ib_ucontext *ucontext, struct mrsoft_abi_mmap *mi);
/*
 * The same in two steps, for a caller that must write the reply in between and
 * leave the CQ as it was when that fails: begin, reply, then end or, to give
 * up, mrsoft_ring_destroy(@ring).  end has used up @ring in any case.
 */
int mrsoft_cq_resize_begin(struct mrsoft_cq *cq, u32 cqe,
			   struct ib_ucontext *ucontext,
			   struct mrsoft_abi_mmap *mi,
			   struct mrsoft_ring *ring);
int mrsoft_cq_resize_end(struct mrsoft_cq *cq, struct mrsoft_ring *ring);

/* What is due to the consumer after mrsoft_cq_add(). */
#define MRSOFT_CQ_DUE_EVENT	BIT(0)	/* completion event */
#define MRSOFT_CQ_DUE_ERROR	BIT(1)	/* CQ_ERR */

/* For callers with a lock of their own: add under it, upcall after it. */
int mrsoft_cq_add(struct mrsoft_cq *cq, const struct ib_wc *wc, bool solicited,
		  unsigned int *due);
void mrsoft_cq_upcall(struct mrsoft_cq *cq, unsigned int due);

/*
 * Adds a completion and makes the upcall that is due, after unlocking.
 * Called without any lock of ours, any context but a kernel consumer's own
 * post call.  -EOVERFLOW: the CQ was full: CQ_ERR was raised (once), the caller
 * puts its QP into the error state.
 */
int mrsoft_cq_post(struct mrsoft_cq *cq, const struct ib_wc *wc,
		   bool solicited);

/* The verbs poll_cq, req_notify_cq, peek end here.  Kernel CQs only for poll. */
int mrsoft_cq_poll(struct mrsoft_cq *cq, int n, struct ib_wc *wc);
int mrsoft_cq_arm(struct mrsoft_cq *cq, enum ib_cq_notify_flags flags);
void mrsoft_cq_moderate(struct mrsoft_cq *cq, u16 count, u16 period);
void mrsoft_cq_steer(struct mrsoft_cq *cq, unsigned int vector);
void mrsoft_cq_quiet(struct mrsoft_cq *cq);
u32 mrsoft_cq_pending(struct mrsoft_cq *cq);

#endif /* MRSOFT_CQ_H */
