/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mr.h - memory regions
 *
 * Layer 1, above key.h, below mw.h and copy.h.
 */
#ifndef MRSOFT_MR_H
#define MRSOFT_MR_H

#include "key.h"

/**
 * struct mrsoft_mr - memory region
 * @key: entry in the table
 * @ib: the core's part.  @ib.lkey and @ib.rkey of a fast-reg MR belong to the ULP
 */
struct mrsoft_mr {
	struct mrsoft_key key;
	struct ib_mr ib;
};

/* mrsoft_key_put() frees the head, and so all of it */
static_assert(offsetof(struct mrsoft_mr, key) == 0);

static inline struct mrsoft_mr *mrsoft_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct mrsoft_mr, ib);
}

/* Regions, for the verbs.  ERR_PTR()s; each counts itself in its PD. */
struct mrsoft_mr *mrsoft_mr_reg_user(struct mrsoft_table *table,
				     struct mrsoft_pd *pd, u64 start,
				     u64 length, u64 iova, int access);
struct mrsoft_mr *mrsoft_mr_reg_pages(struct mrsoft_table *table,
				      struct mrsoft_pd *pd,
				      enum mrsoft_key_kind kind,
				      struct mrsoft_pages *pages, u64 length,
				      u64 iova, int access);
struct mrsoft_mr *mrsoft_mr_get_dma(struct mrsoft_table *table,
				    struct mrsoft_pd *pd, int access);
struct mrsoft_mr *mrsoft_mr_alloc_fast(struct mrsoft_table *table,
				       struct mrsoft_pd *pd, u32 max_pages,
				       bool gaps);
int mrsoft_mr_rereg(struct mrsoft_mr *mr, int flags, u64 start, u64 length,
		    u64 iova, int access, struct mrsoft_pd *pd);
/* 0 and the MR is gone, or -EBUSY and nothing changed.  Invariants 1 to 3. */
int mrsoft_mr_dereg(struct mrsoft_mr *mr);

/**
 * struct mrsoft_paging - pages of a region that is not pinned
 * @faults: came because they were needed
 * @prefetches: came by advice
 * @invalidations: were taken away by the process
 */
struct mrsoft_paging {
	u64 faults;
	u64 prefetches;
	u64 invalidations;
};

int mrsoft_mr_paging(struct mrsoft_mr *mr, struct mrsoft_paging *paging);
/* Bytes of its lookup table. */
int mrsoft_mr_table(struct mrsoft_mr *mr, u64 *bytes);

/* Fast registration: ib_map_mr_sg() of the ULP. */
int mrsoft_mr_map_sg(struct mrsoft_mr *mr, struct scatterlist *sg, int nents,
		     unsigned int *sg_offset);

/*
 * REG_MR and LOCAL_INV / remote invalidate of an MR, executed by a queue.  Both
 * sleep.  fast_reg counts a refusal, invalidate leaves that to mw.c.
 */
enum mrsoft_reason mrsoft_mr_fast_reg(struct mrsoft_table *table,
				      const struct mrsoft_pd *pd,
				      struct mrsoft_mr *mr, u32 key,
				      int access);
enum mrsoft_reason mrsoft_mr_invalidate(struct mrsoft_key *key,
					const struct mrsoft_pd *pd, u32 rkey,
					bool remote);

#endif /* MRSOFT_MR_H */
