// SPDX-License-Identifier: GPL-2.0
/*
 * verbs_mcast.c - verbs on multicast groups
 *
 * Owns:     argument checks.
 * Not here: groups (mcast.c).
 * Locks:    none of its own.
 * Lifetime: the core refuses to destroy a QP that is attached, and detaches those
 *           of a process that dies first.
 * Context:  process.
 * Spec:     IBA Vol 1, 11.3.1 (attach and detach QP)
 * Tests:    tools/testing/selftests/mcast.c
 */
#include "dev.h"
#include "mcast.h"
#include "verbs_mcast.h"

/* The LID means nothing on Ethernet. */
static int attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct mrsoft_dev *dev = mrsoft_dev(ibqp->device);
	struct mrsoft_qp *qp = mrsoft_qp(ibqp);

	if (qp->type != IB_QPT_UD || !mrsoft_gid_is_group(gid))
		return -EINVAL;
	return mrsoft_mcast_attach(&dev->hca, dev->netdev, gid, qp->qpn);
}

static int detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct mrsoft_dev *dev = mrsoft_dev(ibqp->device);

	return mrsoft_mcast_detach(&dev->hca, gid, mrsoft_qp(ibqp)->qpn);
}

const struct ib_device_ops mrsoft_verbs_mcast_ops = {
	.attach_mcast = attach_mcast,
	.detach_mcast = detach_mcast,
};
