/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rx.h - wire path: packets that come, responder
 *
 * Layer 5, the top of it.
 */
#ifndef MRSOFT_RX_H
#define MRSOFT_RX_H

#include "wire.h"

/* Once, before the first device. */
void mrsoft_rx_init(void);

/*
 * The wire path of a connected QP.  make: before it is chosen, -ENOMEM; open: at
 * RTR, packets may come; close: none comes, none is worked on; free: the end.
 */
int mrsoft_rx_make(struct mrsoft_qp *qp);
void mrsoft_rx_open(struct mrsoft_qp *qp);
void mrsoft_rx_close(struct mrsoft_qp *qp);
void mrsoft_rx_free(struct mrsoft_qp *qp);

#endif /* MRSOFT_RX_H */
