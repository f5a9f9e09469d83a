/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tx.h - wire path, requester: packets, window, retries
 *
 * Layer 5.
 */
#ifndef MRSOFT_TX_H
#define MRSOFT_TX_H

#include "wire.h"

extern const struct mrsoft_path_ops mrsoft_wire_path;	/* RC, UC */

/* UD: qp->sq.msg, with its bytes at @payload. */
void mrsoft_tx_datagram(struct mrsoft_qp *qp, const struct mrsoft_av *av,
			const void *payload);

#endif /* MRSOFT_TX_H */
