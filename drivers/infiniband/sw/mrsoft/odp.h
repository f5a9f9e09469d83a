/* SPDX-License-Identifier: GPL-2.0 */
/*
 * odp.h - user memory that is not pinned: pages come by fault, go by notifier
 *
 * Layer 1, below pages.h.  Offsets are bytes from the first byte of the region,
 * already checked by the caller.
 */
#ifndef MRSOFT_ODP_H
#define MRSOFT_ODP_H

#include <linux/err.h>
#include <linux/kconfig.h>
#include <linux/types.h>

struct ib_device;
struct ib_umem;
struct mrsoft_odp;

/* Kernels may be built without; nothing is offered then. */
#define MRSOFT_ODP	IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING)

#if MRSOFT_ODP

struct mrsoft_odp *mrsoft_odp_new(struct ib_device *ibdev, u64 start,
				  u64 length, int access);
void mrsoft_odp_free(struct mrsoft_odp *odp);
/* The core's description of the range: address, length, mm, writable. */
struct ib_umem *mrsoft_odp_umem(struct mrsoft_odp *odp);

/* As mrsoft_pages_map(); while it is mapped the page stays where it is. */
void *mrsoft_odp_map(struct mrsoft_odp *odp, u64 offset, size_t *len,
		     bool write);
void mrsoft_odp_unmap(struct mrsoft_odp *odp, void *addr);
bool mrsoft_odp_present(struct mrsoft_odp *odp, u64 offset, u64 length,
			bool write);
/* Sleeps, for as long as the process's page fault does. */
int mrsoft_odp_fault(struct mrsoft_odp *odp, u64 offset, u64 length,
		     bool write, bool populate);

#else

static inline struct mrsoft_odp *mrsoft_odp_new(struct ib_device *ibdev,
						u64 start, u64 length,
						int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void mrsoft_odp_free(struct mrsoft_odp *odp)
{
}

static inline struct ib_umem *mrsoft_odp_umem(struct mrsoft_odp *odp)
{
	return NULL;
}

static inline void *mrsoft_odp_map(struct mrsoft_odp *odp, u64 offset,
				   size_t *len, bool write)
{
	return NULL;
}

static inline void mrsoft_odp_unmap(struct mrsoft_odp *odp, void *addr)
{
}

static inline bool mrsoft_odp_present(struct mrsoft_odp *odp, u64 offset,
				      u64 length, bool write)
{
	return false;
}

static inline int mrsoft_odp_fault(struct mrsoft_odp *odp, u64 offset,
				   u64 length, bool write, bool populate)
{
	return -EFAULT;
}

#endif

#endif /* MRSOFT_ODP_H */
