/* SPDX-License-Identifier: GPL-2.0 */
/*
 * window.h - wire path, responder: the PSN window, messages from packets
 *
 * Layer 5, below rx.h.
 */
#ifndef MRSOFT_WINDOW_H
#define MRSOFT_WINDOW_H

#include "wire.h"

void mrsoft_window_work(struct work_struct *work);

#endif /* MRSOFT_WINDOW_H */
