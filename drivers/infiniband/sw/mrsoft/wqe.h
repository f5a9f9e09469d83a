/* SPDX-License-Identifier: GPL-2.0 */
/*
 * wqe.h - send WQEs
 *
 * Layer 4, below sq.h.
 */
#ifndef MRSOFT_WQE_H
#define MRSOFT_WQE_H

#include "qp.h"

bool mrsoft_wqe_fetch(struct mrsoft_qp *qp, u32 nth, struct mrsoft_swqe *wqe);
int mrsoft_wqe_build(const struct mrsoft_qp *qp, const struct ib_send_wr *wr,
		     struct mrsoft_swqe *wqe);
void mrsoft_wqe_message(const struct mrsoft_qp *qp,
			const struct mrsoft_swqe *wqe, struct mrsoft_msg *msg);

#endif /* MRSOFT_WQE_H */
