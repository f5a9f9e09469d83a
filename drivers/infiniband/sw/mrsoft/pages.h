/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pages.h - where the bytes of a region are
 *
 * Layer 1, below mr.h.  Knows nothing of keys, rights or QPs: offsets here are
 * bytes from the first byte of the region, already checked by the caller.
 */
#ifndef MRSOFT_PAGES_H
#define MRSOFT_PAGES_H

#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>

struct mrsoft_odp_region;
struct mrsoft_pages;

/*
 * Sources of bytes.  Each returns an ERR_PTR() on failure and leaves nothing
 * behind; mrsoft_pages_put() undoes it (may sleep, unpins).
 */
struct mrsoft_pages *mrsoft_pages_pin(struct ib_device *ibdev, u64 start,
				      u64 length, int access);
/* The same addresses of the same process once more, with other rights. */
struct mrsoft_pages *mrsoft_pages_repin(const struct mrsoft_pages *old,
					int access);
/* All of the kernel's linear map; offset is then a kernel virtual address. */
struct mrsoft_pages *mrsoft_pages_kernel(void);
/* An empty list for fast registration: @max pages, or entries of any length. */
struct mrsoft_pages *mrsoft_pages_list(u32 max, bool gaps);
/* Memory that is mapped at @addr; @release(@owner) when it is not needed more. */
struct mrsoft_pages *mrsoft_pages_mapped(void *addr, void (*release)(void *owner),
					 void *owner);
/* Pages that somebody else keeps, as @sgt lists them, from byte @skip on. */
struct mrsoft_pages *mrsoft_pages_sgt(const struct sg_table *sgt, u32 skip);
/*
 * Memory of the calling process that is not pinned, a range or all of it (0,
 * U64_MAX); its pages come by fault.
 * Only this one needs mrsoft_pages_fault(), see there.
 */
struct mrsoft_pages *mrsoft_pages_odp(struct ib_device *ibdev, u64 start,
				      u64 length, int access);
/* The creator has a reference.  The last put unpins and frees; may sleep. */
void mrsoft_pages_get(struct mrsoft_pages *pages);
void mrsoft_pages_put(struct mrsoft_pages *pages);

/* May the pages be written, by their umem?  False for those without one. */
bool mrsoft_pages_writable(const struct mrsoft_pages *pages);
/* Pages that are pinned for it. */
u64 mrsoft_pages_pins(const struct mrsoft_pages *pages);
/* Bytes of the table in which they are looked up. */
u64 mrsoft_pages_table(const struct mrsoft_pages *pages);
/* Size of the blocks that the pages are looked up in, as a power of two. */
unsigned int mrsoft_pages_shift(const struct mrsoft_pages *pages);

/*
 * Fast registration: fill the list that the next REG_MR will use, then make it
 * live.  map() returns the number of sg entries taken, like ib_map_mr_sg().
 * commit() may run in any context and is called with the key unpublished.
 * *@iova is where map() found the first byte: the ULP may have moved
 * ib_mr.iova since.
 */
int mrsoft_pages_list_map(struct mrsoft_pages *pages, struct ib_mr *ibmr,
			  struct scatterlist *sg, int nents,
			  unsigned int *sg_offset);
void mrsoft_pages_list_commit(struct mrsoft_pages *pages, u64 *iova,
			      u64 *length);

/*
 * One contiguous piece: the address of the byte at @offset and in *@len how many
 * bytes (at most *@len) follow it in the same mapping.  The address is a
 * kmap_local mapping; NULL if the page is not present, or not for writing.
 * Pieces are unmapped in reverse order of mapping.
 */
void *mrsoft_pages_map(struct mrsoft_pages *pages, u64 offset, size_t *len,
		       bool write);
void mrsoft_pages_unmap(struct mrsoft_pages *pages, void *addr);

/*
 * Pages that map() may find not present.  fault() sleeps and needs a reference,
 * not a hold on a key; what it made present may be gone again at once.
 */
unsigned int mrsoft_pages_users(const struct mrsoft_pages *pages);
bool mrsoft_pages_faultable(const struct mrsoft_pages *pages);
int mrsoft_pages_present(struct mrsoft_pages *pages, u64 offset, u64 length,
			 bool write);
int mrsoft_pages_fault(struct mrsoft_pages *pages, u64 offset, u64 length,
		       unsigned int how);
/* What came and went; NULL: they do not. */
const struct mrsoft_odp_region *
mrsoft_pages_region(const struct mrsoft_pages *pages);
/* Are they of the process that asks? */
bool mrsoft_pages_own(const struct mrsoft_pages *pages);

#endif /* MRSOFT_PAGES_H */
