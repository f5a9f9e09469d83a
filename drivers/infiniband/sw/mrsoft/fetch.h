/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fetch.h - requester: which WQE is next
 *
 * Layer 4, below sq.h.
 */
#ifndef MRSOFT_FETCH_H
#define MRSOFT_FETCH_H

#include "qp.h"

int mrsoft_fetch_init(struct mrsoft_sq *sq);
void mrsoft_fetch_destroy(struct mrsoft_sq *sq);

/* The next WQE becomes the current one; false when there is none. */
bool mrsoft_fetch_next(struct mrsoft_qp *qp);
/* May it be executed?  IB_WC_SUCCESS, or what it completes with. */
enum ib_wc_status mrsoft_fetch_validate(struct mrsoft_qp *qp);

/* The WQE @nth behind the current one, if it may go out early, or NULL. */
struct mrsoft_send *mrsoft_fetch_ahead(struct mrsoft_qp *qp, u32 nth);
/* Work on that one; 0: the current one, which is what everybody else expects. */
void mrsoft_fetch_select(struct mrsoft_sq *sq, u32 nth);
/* Nothing is fetched any more. */
void mrsoft_fetch_forget(struct mrsoft_sq *sq);

static inline struct mrsoft_send *mrsoft_fetch_nth(const struct mrsoft_sq *sq,
						   u32 nth)
{
	return sq->sends[(sq->head + nth) % MRSOFT_MAX_SENDS];
}

#endif /* MRSOFT_FETCH_H */
