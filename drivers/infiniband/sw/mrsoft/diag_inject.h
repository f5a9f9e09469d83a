/* SPDX-License-Identifier: GPL-2.0 */
/*
 * diag_inject.h - the file in debugfs that asks for faults
 *
 * Layer 6.
 */
#ifndef MRSOFT_DIAG_INJECT_H
#define MRSOFT_DIAG_INJECT_H

struct dentry;
struct mrsoft_hca;

void mrsoft_diag_inject_add(struct mrsoft_hca *hca, struct dentry *dir);
void mrsoft_diag_inject_end(struct mrsoft_hca *hca);

#endif /* MRSOFT_DIAG_INJECT_H */
