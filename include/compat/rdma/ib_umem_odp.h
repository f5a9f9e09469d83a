/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shadow of <rdma/ib_umem_odp.h>: the array of pages and the access mask of
 * ib_umem_odp_map_dma_and_lock() are HMM's in new kernels and DMA addresses with
 * two bits of their own in old ones. Both behind one set of names.
 */
#ifndef MRSOFT_COMPAT_RDMA_IB_UMEM_ODP_H
#define MRSOFT_COMPAT_RDMA_IB_UMEM_ODP_H

#include <rdma/ib_verbs.h>
#include_next <rdma/ib_umem_odp.h>
#include <linux/hmm.h>
#include <linux/mm.h>

#ifdef MRSOFT_HAVE_ODP_HMM_MAP
#define MRSOFT_ODP_READ		HMM_PFN_VALID
#define MRSOFT_ODP_WRITE	HMM_PFN_WRITE
#else
#define MRSOFT_ODP_READ		ODP_READ_ALLOWED_BIT
#define MRSOFT_ODP_WRITE	ODP_WRITE_ALLOWED_BIT
#endif

/*
 * The page at byte @va of the process, or NULL if it is not mapped with all of
 * @access (MRSOFT_ODP_READ, MRSOFT_ODP_WRITE). @va lies inside the region, whose
 * page_shift is PAGE_SHIFT; the device has no DMA. Caller holds umem_mutex.
 */
static inline struct page *mrsoft_odp_page(struct ib_umem_odp *odp, u64 va,
					   u64 access)
{
	size_t index = (va - ib_umem_start(odp)) >> PAGE_SHIFT;
#ifdef MRSOFT_HAVE_ODP_HMM_MAP
	unsigned long pfn;
#else
	dma_addr_t addr;
#endif

	lockdep_assert_held(&odp->umem_mutex);
#ifdef MRSOFT_HAVE_ODP_HMM_MAP
	pfn = odp->map.pfn_list[index];
	if (~pfn & (access | MRSOFT_ODP_READ))
		return NULL;
	return hmm_pfn_to_page(pfn);
#else
	addr = odp->dma_list[index];
	if (~addr & (access | MRSOFT_ODP_READ))
		return NULL;
	return ib_virt_dma_to_page(addr & ODP_DMA_ADDR_MASK);
#endif
}

#endif
