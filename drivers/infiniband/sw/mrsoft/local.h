/* SPDX-License-Identifier: GPL-2.0 */
/*
 * local.h - same-host path
 *
 * Layer 5.
 */
#ifndef MRSOFT_LOCAL_H
#define MRSOFT_LOCAL_H

#include "qp.h"

/*
 * GIDs of this kernel's devices, kept by the device's add_gid and del_gid.  The same
 * GID may be added several times (other type or index).
 */
int mrsoft_local_gid_add(struct mrsoft_hca *hca, const union ib_gid *gid);
void mrsoft_local_gid_del(struct mrsoft_hca *hca, const union ib_gid *gid);
/* Under RCU: the device of this namespace that has @gid, if possible on @ifindex. */
struct mrsoft_hca *mrsoft_local_find(const void *net, u32 ifindex,
				     const union ib_gid *gid);
bool mrsoft_local_reaches(const struct mrsoft_hca *hca,
			  const union ib_gid *gid);

extern const struct mrsoft_path_ops mrsoft_local_path;	/* RC, UC */
extern const struct mrsoft_path_ops mrsoft_datagram_path; /* UD, GSI */

#endif /* MRSOFT_LOCAL_H */
