/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mcast.h - multicast groups and the QPs attached to them
 *
 * Layer 5.
 */
#ifndef MRSOFT_MCAST_H
#define MRSOFT_MCAST_H

#include "qp.h"

struct net_device;

/*
 * @netdev and the VLANs above are in the group, by MAC and by IP, while a QP is
 * attached; NULL: there is none.  Each attach wants its detach.  They sleep and take
 * RTNL.
 */
int mrsoft_mcast_attach(struct mrsoft_hca *hca, struct net_device *netdev,
			const union ib_gid *gid, u32 qpn);
int mrsoft_mcast_detach(struct mrsoft_hca *hca, const union ib_gid *gid,
			u32 qpn);
/* The netdev goes, QPs stay attached.  Under RTNL. */
void mrsoft_mcast_leave(struct mrsoft_hca *hca);
/* A VLAN above the netdev comes or goes.  Under RTNL. */
void mrsoft_mcast_vlan_comes(struct mrsoft_hca *hca, struct net_device *vlan);
void mrsoft_mcast_vlan_goes(struct mrsoft_hca *hca,
			    const struct net_device *vlan);

/* The device on @ifindex of @net if a QP of its is attached.  Under RCU. */
struct mrsoft_hca *mrsoft_mcast_find(const void *net, u32 ifindex,
				     const union ib_gid *gid);
/*
 * The first QP attached to @gid there whose number is *@qpn or higher; *@qpn moves
 * behind it.  Held, or NULL.
 */
struct mrsoft_qp *mrsoft_mcast_next(const void *net, u32 ifindex,
				    const union ib_gid *gid, u32 *qpn);

#endif /* MRSOFT_MCAST_H */
