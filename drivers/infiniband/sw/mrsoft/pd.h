/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pd.h - protection domain
 *
 * Layer 1.  A PD is an identity that keys and QPs are compared by, and a count
 * of the regions in it: the core does not look at its own count when a kernel
 * consumer frees a PD.
 */
#ifndef MRSOFT_PD_H
#define MRSOFT_PD_H

#include <linux/atomic.h>
#include <rdma/ib_verbs.h>

/**
 * struct mrsoft_pd - protection domain
 * @ib: the core's part, must be first
 * @regions: MRs and MWs that live in it
 */
struct mrsoft_pd {
	struct ib_pd ib;
	atomic_t regions;
};

static inline struct mrsoft_pd *mrsoft_pd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct mrsoft_pd, ib);
}

#endif /* MRSOFT_PD_H */
