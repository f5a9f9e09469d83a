/* SPDX-License-Identifier: GPL-2.0 */
/*
 * limits.h - every limit of the device, with its unit and why
 *
 * Layer 0.  What query_device reports comes from here, so a limit that is
 * raised here must have a test that reaches it.
 */
#ifndef MRSOFT_LIMITS_H
#define MRSOFT_LIMITS_H

#include <linux/bits.h>
#include <linux/sizes.h>
#include <linux/time64.h>
#include <linux/types.h>

/* Keys: 24 bits of index, 8 bits that change.  Index 0 is never given. */
#define MRSOFT_KEY_INDEX_MIN		1u
#define MRSOFT_KEY_INDEX_MAX		0xffffffu
#define MRSOFT_MAX_MR			SZ_1M	/* regions */
#define MRSOFT_MAX_MW			SZ_1M	/* windows */
#define MRSOFT_MAX_MR_SIZE		BIT_ULL(48)	/* bytes */
/* Device memory is the kernel's and never swapped, so the pool is small. */
#define MRSOFT_MAX_DM_SIZE		SZ_64M	/* bytes of a device, all buffers */
#define MRSOFT_MAX_FAST_REG_PAGES	4096u		/* pages, 16 MiB */

/* QPN 0 is SMI, 1 is GSI; 0xffffff is the multicast QPN. */
#define MRSOFT_QPN_MIN			0x10u
#define MRSOFT_QPN_MAX			0xfffffeu
#define MRSOFT_QPN_MCAST		0xffffffu
#define MRSOFT_MAX_QP			SZ_64K	/* queue pairs */

/* Work requests: a power of two of slots, of which one stays free. */
#define MRSOFT_MAX_QP_WR		16383u		/* work requests */
#define MRSOFT_MAX_SGE			32u		/* scatter/gather entries */
#define MRSOFT_MAX_INLINE		512u		/* bytes, MAX_SGE sges */
#define MRSOFT_MAX_MSG			BIT(31)	/* bytes, IBA 9.7.6.1.1 */
#define MRSOFT_MAX_RD_ATOM		128u		/* outstanding, per QP */

#define MRSOFT_MAX_CQ			SZ_64K	/* completion queues */
#define MRSOFT_MAX_CQE			(SZ_256K - 1) /* entries */
#define MRSOFT_MAX_SRQ			SZ_64K	/* shared receive queues */
#define MRSOFT_MAX_SRQ_WR		16383u		/* work requests */
#define MRSOFT_MAX_PD			SZ_64K	/* protection domains */
#define MRSOFT_MAX_AH			SZ_1M	/* address handles */
/* Each packet to a group is copied for each of its QPs, in softirq. */
#define MRSOFT_MAX_MCAST_GRP		1024u	/* groups of a device */
#define MRSOFT_MAX_MCAST_QP_ATTACH	256u	/* queue pairs of a group */
#define MRSOFT_MAX_MCAST_TOTAL		SZ_256K	/* of all groups: no limit more */
#define MRSOFT_MAX_PKEYS		1u		/* table entries */
#define MRSOFT_GID_TBL_LEN		1024u		/* table entries */

/*
 * A segment is what is checked, held and copied in one go on the local path:
 * large enough that the check does not count, small enough that dereg, which
 * waits for it, returns soon.
 */
#define MRSOFT_SEGMENT			SZ_256K		/* bytes */

/*
 * One turn of a send queue: what a doorbell does in the caller's context
 * before it hands the rest to a worker.
 */
#define MRSOFT_TURN_WQES		128u		/* work requests */
#define MRSOFT_TURN_BYTES		SZ_1M		/* bytes */

/* Messages of a QP that may be on the wire path at a time. */
#define MRSOFT_MAX_SENDS		32u		/* work requests */

/*
 * Pages that are not pinned may go as fast as they come.  How often a copy is
 * tried with a page fault between before the page is called absent, and after
 * how many tries it is cut down to a page, which is nearly sure to succeed.
 */
#define MRSOFT_FAULT_TRIES		1024u		/* page faults */
#define MRSOFT_FAULT_BATCHES		8u		/* page faults */

/*
 * A region of a whole process has tables for the parts that were used last: of 4
 * MiB each, so for 8 GiB at a time, a few tens of MiB.
 */
#define MRSOFT_MAX_CHILDREN		2048u		/* parts */

/* Another's pages: how many may be waited for, in one region. */
#define MRSOFT_FAULT_JOBS		16u		/* page faults */

/* An ack timeout of zero means for ever: how often a silent peer is asked then. */
#define MRSOFT_FOREVER_POLL_NS		(100 * NSEC_PER_MSEC)	/* ns */
/* RNR retry count that does not count, IBA 9.7.5.2.8. */
#define MRSOFT_RNR_FOREVER		7

#define MRSOFT_GRH_BYTES		40u		/* in front of a UD receive */
#define MRSOFT_PKEY_DEFAULT		0xffffu

#endif /* MRSOFT_LIMITS_H */
