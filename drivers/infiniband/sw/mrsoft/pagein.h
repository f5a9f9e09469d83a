/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pagein.h - a send queue waits for pages
 *
 * Layer 4, below sq.h.  For paths; all calls are the runner's.
 */
#ifndef MRSOFT_PAGEIN_H
#define MRSOFT_PAGEIN_H

#include "qp.h"

/*
 * A copy found the requester's own bytes, in a span that is held, not all present:
 * MRSOFT_S_FAULT, or MRSOFT_S_LOC_PROT when they cannot be had.
 */
enum mrsoft_status mrsoft_pagein_absent(struct mrsoft_qp *qp,
					const struct mrsoft_span *span,
					bool write);
/* After MRSOFT_S_FAULT.  0: try again; -EINPROGRESS: leave with it; -ETIMEDOUT. */
int mrsoft_pagein(struct mrsoft_qp *qp, u64 ns);
/* When the queue runs again.  -EINPROGRESS: the pages did not come in time. */
int mrsoft_pagein_result(struct mrsoft_qp *qp);
/* Bytes of the message were placed. */
void mrsoft_pagein_placed(struct mrsoft_qp *qp);
/* The message is over. */
void mrsoft_pagein_forget(struct mrsoft_qp *qp);

#endif /* MRSOFT_PAGEIN_H */
