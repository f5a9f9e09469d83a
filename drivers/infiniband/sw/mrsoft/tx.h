/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tx.h - wire path, requester: window, answers, retries
 *
 * Layer 5.
 */
#ifndef MRSOFT_TX_H
#define MRSOFT_TX_H

#include "wire.h"

extern const struct mrsoft_path_ops mrsoft_wire_path;	/* RC, UC */

#endif /* MRSOFT_TX_H */
