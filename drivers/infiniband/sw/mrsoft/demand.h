/* SPDX-License-Identifier: GPL-2.0 */
/*
 * demand.h - memory on demand: a range of a process, or all of it
 *
 * Layer 1, above odp.h, below pages.h.  Offsets are bytes from the first byte of
 * the region, already checked by the caller.
 */
#ifndef MRSOFT_DEMAND_H
#define MRSOFT_DEMAND_H

#include <linux/err.h>
#include <linux/kconfig.h>
#include <linux/limits.h>
#include <rdma/ib_verbs.h>

#include "odp.h"

struct mrsoft_demand;

/* Kernels may be built without; nothing is offered then. */
#define MRSOFT_ODP	IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING)

/* Is it a registration of all that the process has, now and later (implicit)? */
static inline bool mrsoft_demand_all(u64 start, u64 length, int access)
{
	return !start && length == U64_MAX && access & IB_ACCESS_ON_DEMAND;
}

#if MRSOFT_ODP

struct mrsoft_demand *mrsoft_demand_new(struct ib_device *ibdev, u64 start,
					u64 length, int access);
void mrsoft_demand_free(struct mrsoft_demand *demand);
/* The core's description: address, length, mm, writable. */
struct ib_umem *mrsoft_demand_umem(struct mrsoft_demand *demand);
/* What came and went. */
const struct mrsoft_odp_region *
mrsoft_demand_region(const struct mrsoft_demand *demand);

/* As mrsoft_pages_map(); while it is mapped the page stays where it is. */
void *mrsoft_demand_map(struct mrsoft_demand *demand, u64 offset, size_t *len,
			bool write);
void mrsoft_demand_unmap(struct mrsoft_demand *demand, void *addr);
int mrsoft_demand_present(struct mrsoft_demand *demand, u64 offset, u64 length,
			  bool write);
/* Sleeps, for as long as the process's page fault does. */
int mrsoft_demand_fault(struct mrsoft_demand *demand, u64 offset, u64 length,
			unsigned int how);

#else

static inline struct mrsoft_demand *
mrsoft_demand_new(struct ib_device *ibdev, u64 start, u64 length, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void mrsoft_demand_free(struct mrsoft_demand *demand)
{
}

static inline struct ib_umem *mrsoft_demand_umem(struct mrsoft_demand *demand)
{
	return NULL;
}

static inline const struct mrsoft_odp_region *
mrsoft_demand_region(const struct mrsoft_demand *demand)
{
	return NULL;
}

static inline void *mrsoft_demand_map(struct mrsoft_demand *demand, u64 offset,
				      size_t *len, bool write)
{
	return NULL;
}

static inline void mrsoft_demand_unmap(struct mrsoft_demand *demand,
				       void *addr)
{
}

static inline int mrsoft_demand_present(struct mrsoft_demand *demand,
					u64 offset, u64 length, bool write)
{
	return 0;
}

static inline int mrsoft_demand_fault(struct mrsoft_demand *demand, u64 offset,
				      u64 length, unsigned int how)
{
	return -EFAULT;
}

#endif

#endif /* MRSOFT_DEMAND_H */
