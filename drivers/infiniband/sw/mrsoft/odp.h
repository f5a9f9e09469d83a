/* SPDX-License-Identifier: GPL-2.0 */
/*
 * odp.h - user memory that is not pinned: pages come by fault, go by notifier
 *
 * Layer 1, below demand.h, the only one that uses it: a range of a process. Offsets
 * are bytes from the first byte of the range, already checked by the caller.
 */
#ifndef MRSOFT_ODP_H
#define MRSOFT_ODP_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/mutex.h>
#include <linux/types.h>

struct ib_device;
struct ib_umem;
struct ib_umem_odp;
struct mrsoft_odp;

/* How pages are to be faulted in. */
enum mrsoft_fault_how {
	MRSOFT_FAULT_WRITE	= 1 << 0,	/* they will be written */
	MRSOFT_FAULT_PEEK	= 1 << 1,	/* only what the process has */
	MRSOFT_FAULT_ADVICE	= 1 << 2,	/* nobody needs them yet */
};

/**
 * struct mrsoft_odp_region - what the ranges of one region share
 * @copies: A, copies inside; negative while pages are withdrawn
 * @drained: completed by the last copy that leaves then
 * @closer: one withdraws at a time
 * @faults: A, pages that came because they were needed
 * @prefetches: A, pages that came by advice
 * @invalidations: A, pages that the process took away
 * @emptied: I, a range has no page left: called by its notifier, with its lock
 *	held, must not sleep; may be NULL
 */
struct mrsoft_odp_region {
	atomic_t copies;
	struct completion drained;
	struct mutex closer;	/* one withdraws at a time */
	atomic64_t faults;
	atomic64_t prefetches;
	atomic64_t invalidations;
	void (*emptied)(struct mrsoft_odp_region *region);
};

void mrsoft_odp_region_init(struct mrsoft_odp_region *region,
			    void (*emptied)(struct mrsoft_odp_region *region));
/* Around map and all that is done with it.  False: a fault is needed. */
bool mrsoft_odp_enter(struct mrsoft_odp_region *region);
void mrsoft_odp_leave(struct mrsoft_odp_region *region);
/* Waits for whoever is inside now. */
void mrsoft_odp_quiesce(struct mrsoft_odp_region *region);

struct mrsoft_odp *mrsoft_odp_new(struct mrsoft_odp_region *region,
				  struct ib_device *ibdev, u64 start,
				  u64 length, int access);
struct mrsoft_odp *mrsoft_odp_child(struct mrsoft_odp_region *region,
				    struct ib_umem_odp *root, u64 start,
				    u64 length);
void mrsoft_odp_free(struct mrsoft_odp *odp);
/* The core's description of the range: address, length, mm, writable. */
struct ib_umem *mrsoft_odp_umem(struct mrsoft_odp *odp);
/* A hint, unless nobody faults. */
bool mrsoft_odp_empty(const struct mrsoft_odp *odp);

/* Inside: until leave() the page stays where it is. */
void *mrsoft_odp_map(struct mrsoft_odp *odp, u64 offset, size_t *len,
		     bool write);
bool mrsoft_odp_present(struct mrsoft_odp *odp, u64 offset, u64 length,
			bool write);
/* Sleeps, for as long as the process's page fault does. */
int mrsoft_odp_fault(struct mrsoft_odp *odp, u64 offset, u64 length,
		     unsigned int how);

#endif /* MRSOFT_ODP_H */
