/* SPDX-License-Identifier: GPL-2.0 */
/*
 * sgl.h - the list of the WQE that a send queue runs
 *
 * Layer 4, below sq.h.  All calls are the runner's.
 */
#ifndef MRSOFT_SGL_H
#define MRSOFT_SGL_H

#include "qp.h"

enum ib_wc_status mrsoft_sgl_check(struct mrsoft_qp *qp);
enum mrsoft_reason mrsoft_sgl_span(struct mrsoft_qp *qp, size_t max,
				   struct mrsoft_span *span);
void mrsoft_sgl_advance(struct mrsoft_qp *qp, u64 bytes);
void mrsoft_sgl_seek(struct mrsoft_qp *qp, u64 offset);
enum mrsoft_status mrsoft_sgl_move(struct mrsoft_qp *qp, u64 off, void *buf,
				   u32 n, bool write);

#endif /* MRSOFT_SGL_H */
