/* SPDX-License-Identifier: GPL-2.0 */
/*
 * diag.h - what a device tells in debugfs
 *
 * Layer 6.
 */
#ifndef MRSOFT_DIAG_H
#define MRSOFT_DIAG_H

int mrsoft_diag_init(void);
void mrsoft_diag_exit(void);

#endif /* MRSOFT_DIAG_H */
