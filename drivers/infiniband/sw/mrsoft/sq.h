/* SPDX-License-Identifier: GPL-2.0 */
/*
 * sq.h - requester: runs a send queue
 *
 * Layer 4.
 */
#ifndef MRSOFT_SQ_H
#define MRSOFT_SQ_H

#include "qp.h"

/* @cap is read and, with what was really given, written. */
int mrsoft_sq_init(struct mrsoft_qp *qp, struct ib_qp_cap *cap, bool sig_all,
		   struct ib_ucontext *ucontext, struct mrsoft_abi_mmap *mi);
void mrsoft_sq_destroy(struct mrsoft_qp *qp);

/* A user's doorbell: one turn in the caller's context.  May sleep. */
void mrsoft_sq_doorbell(struct mrsoft_qp *qp);
/* A kernel consumer's post: -EINVAL, -ENOMEM with *bad; any context. */
int mrsoft_sq_post(struct mrsoft_qp *qp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad);

/* Start the runner in a worker, from any context. */
void mrsoft_sq_kick(struct mrsoft_qp *qp);
/*
 * Stop: on return nobody runs the queue and nobody can start it; the current
 * message is aborted.  May sleep; waits for one segment at most.
 */
void mrsoft_sq_stop(struct mrsoft_qp *qp);
/* After a stop: empty and ready again (RESET). */
void mrsoft_sq_reset(struct mrsoft_qp *qp);

/* For paths. */
bool mrsoft_sq_charge(struct mrsoft_qp *qp, u64 bytes);
void mrsoft_sq_wait(struct mrsoft_qp *qp, u64 ns, bool posts);
/* News for a path, from any context: ends its wait; hear: they are looked at now. */
void mrsoft_sq_wake(struct mrsoft_qp *qp);
void mrsoft_sq_hear(struct mrsoft_qp *qp);

#endif /* MRSOFT_SQ_H */
