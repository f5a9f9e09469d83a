// SPDX-License-Identifier: GPL-2.0
/*
 * pages.c - where the bytes of a region are
 *
 * Owns:     pins of user pages, the table offset -> page, the page lists of fast
 *           registration.
 * Not here: who may touch the bytes (mr.c, mw.c), moving them (copy.c), pages
 *           that are not pinned (demand.c), buffers of others (dmabuf.c).
 * Locks:    struct page_list.lock (spin, IRQ) orders map against commit; all
 *           else does not change between construction and free.
 * Lifetime: the region drains accesses before commit and before its put.  A
 *           fault has a reference of its own, since nobody waits for it; the
 *           last put frees.
 * Context:  constructors, fault and put sleep; map, unmap and commit never do.
 * Spec:     IBA Vol 1, 10.6.4 (registration), 10.6.3 (fast registration)
 * Tests:    kunit/pages_kunit.c
 */
#include <linux/highmem.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <rdma/ib_umem.h>

#include "demand.h"
#include "pages.h"

enum pages_kind {
	PAGES_TABLE,
	PAGES_KERNEL,
	PAGES_LIST,
	PAGES_ODP,
	PAGES_MAPPED,
};

/* Page frame numbers in one page: the unit that a table is allocated in. */
#define PIECE_ENTRIES	(PAGE_SIZE / sizeof(unsigned long))
#define PIECE_SHIFT	(PAGE_SHIFT - ilog2(sizeof(unsigned long)))

/* Largest block: more would make no difference. */
#define BLOCK_SHIFT_MAX	40u

/**
 * struct mrsoft_pages - where the bytes are; all I unless said otherwise
 * @users: A, the region and faults; says nothing about accesses
 * @kind: enum pages_kind
 * @shift: a block is 1 << @shift bytes, contiguous in physical memory
 * @first: offset of the region's first byte in the first block
 * @umem: the pins, NULL if the pages are not ours to unpin; PAGES_ODP: what
 *	the core knows of the range
 * @demand: PAGES_ODP: where the pages come from
 * @pieces: PAGES_TABLE: pages of frame numbers, one for each block
 * @num_pieces: entries of @pieces
 * @addr: PAGES_MAPPED: kernel address of the region's first byte
 * @release: PAGES_MAPPED: lets go of it; NULL if nobody need be told
 * @owner: argument of @release
 */
struct mrsoft_pages {
	refcount_t users;
	u8 kind;
	u8 shift;
	u64 first;
	struct ib_umem *umem;
	struct mrsoft_demand *demand;
	unsigned long **pieces;
	u32 num_pieces;
	void *addr;
	void (*release)(void *owner);
	void *owner;
};

/**
 * struct page_map - one mapping of a fast-reg list
 * @addr: kernel address of each MR page, aligned down to the page size; with
 *	@end: of the first byte of each entry
 * @end: of a list with gaps: offset in the region of the first byte behind each
 *	entry; else NULL
 * @num: entries used
 * @shift: MR page size, 1 << @shift bytes; it need not be the kernel's
 * @first: offset of the first byte in the first MR page
 * @iova: where ib_sg_to_pages() placed the first byte
 * @length: bytes
 */
struct page_map {
	u64 *addr;
	u64 *end;
	u32 num;
	u8 shift;
	u64 first;
	u64 iova;
	u64 length;
};

/**
 * struct page_list - PAGES_LIST
 * @pages: common head
 * @lock: orders a ULP that maps against a queue that commits
 * @max: I, entries that each map has room for
 * @fresh: the pending map is newer than the live one (@lock)
 * @live: what accesses see; changes only in commit, with accesses drained
 * @pending: what the next commit makes live (@lock)
 * @walker: stands in for the ULP's ib_mr, so that page_list_add() finds the
 *	list (@lock)
 */
struct page_list {
	struct mrsoft_pages pages;
	spinlock_t lock;	/* fresh, pending, walker */
	u32 max;
	bool fresh;
	struct page_map live;
	struct page_map pending;
	struct ib_mr walker;
};

static void pages_init(struct mrsoft_pages *pages, enum pages_kind kind)
{
	refcount_set(&pages->users, 1);
	pages->kind = kind;
}

static struct page_list *to_list(struct mrsoft_pages *pages)
{
	return container_of(pages, struct page_list, pages);
}

/*
 * A run is physically contiguous bytes of an sg table.  sg entries are split at
 * the largest segment size, which says nothing about the memory, so neighbours
 * are joined.
 */
struct run {
	struct scatterlist *sg;
	unsigned int left;
	u64 start;
	u64 end;
};

static void run_init(struct run *run, const struct sg_table *sgt)
{
	*run = (struct run){ .sg = sgt->sgl, .left = sgt->orig_nents };
}

static bool run_next(struct run *run)
{
	if (!run->left)
		return false;
	run->start = sg_phys(run->sg);
	run->end = run->start;
	while (run->left && sg_phys(run->sg) == run->end) {
		run->end += run->sg->length;
		run->sg = sg_next(run->sg);
		run->left--;
	}
	return true;
}

/*
 * The largest block that all inner boundaries of the runs are multiples of.
 * With one run there are none, and one block is enough.
 */
static unsigned int table_shift(const struct sg_table *sgt)
{
	u64 bits = 0, last_end = 0;
	bool first = true;
	struct run run;

	run_init(&run, sgt);
	while (run_next(&run)) {
		if (!first)
			bits |= last_end | run.start;
		last_end = run.end;
		first = false;
		cond_resched();
	}
	bits |= 1ull << BLOCK_SHIFT_MAX;
	return __ffs64(bits);
}

static u64 table_blocks(const struct sg_table *sgt, unsigned int shift)
{
	struct run run;
	u64 blocks = 0;

	run_init(&run, sgt);
	while (run_next(&run)) {
		blocks += ((run.end - 1) >> shift) - (run.start >> shift) + 1;
		cond_resched();
	}
	return blocks;
}

static void table_free(struct mrsoft_pages *pages)
{
	u32 i;

	for (i = 0; i < pages->num_pieces; i++) {
		free_page((unsigned long)pages->pieces[i]);
		cond_resched();
	}
	kvfree(pages->pieces);
}

static int table_alloc(struct mrsoft_pages *pages, u64 blocks)
{
	u64 num = (blocks + PIECE_ENTRIES - 1) >> PIECE_SHIFT;
	unsigned long page;

	if (num > U32_MAX)
		return -EINVAL;
	pages->pieces = kvcalloc(num, sizeof(*pages->pieces),
				 GFP_KERNEL_ACCOUNT);
	if (!pages->pieces)
		return -ENOMEM;
	while (pages->num_pieces < num) {
		page = __get_free_page(GFP_KERNEL_ACCOUNT);
		if (!page)
			goto err_free;
		pages->pieces[pages->num_pieces++] = (unsigned long *)page;
		cond_resched();
	}
	return 0;

err_free:
	table_free(pages);
	return -ENOMEM;
}

static void table_fill(struct mrsoft_pages *pages, const struct sg_table *sgt)
{
	u64 size = 1ull << pages->shift;
	u64 at, block = 0;
	struct run run;

	run_init(&run, sgt);
	while (run_next(&run)) {
		for (at = round_down(run.start, size); at < run.end;
		     at += size) {
			pages->pieces[block >> PIECE_SHIFT]
				     [block & (PIECE_ENTRIES - 1)] =
				PHYS_PFN(at);
			block++;
		}
		cond_resched();
	}
}

/**
 * mrsoft_pages_sgt - look up pages by an sg table
 * @sgt: pages, all but the first and last entry whole; not needed afterwards
 * @skip: bytes before the first byte of the region
 *
 * The pages stay the caller's, who keeps them until after mrsoft_pages_put().
 *
 * Context: process, sleeps.
 * Return: the pages or ERR_PTR: -ENOMEM; -EINVAL: more than can be counted.
 */
struct mrsoft_pages *mrsoft_pages_sgt(const struct sg_table *sgt, u32 skip)
{
	struct mrsoft_pages *pages;
	unsigned int shift;
	int err;

	shift = table_shift(sgt);
	if (WARN_ON_ONCE(shift < PAGE_SHIFT))
		return ERR_PTR(-EINVAL);

	pages = kzalloc_obj(*pages, GFP_KERNEL_ACCOUNT);
	if (!pages)
		return ERR_PTR(-ENOMEM);
	pages_init(pages, PAGES_TABLE);
	pages->shift = shift;
	pages->first = (sg_phys(sgt->sgl) & ((1ull << shift) - 1)) + skip;

	err = table_alloc(pages, table_blocks(sgt, shift));
	if (err)
		goto err_free;
	table_fill(pages, sgt);
	return pages;

err_free:
	kfree(pages);
	return ERR_PTR(err);
}

/**
 * mrsoft_pages_pin - pin memory of the calling process
 * @ibdev: the device, for the core's accounting
 * @start: user address of the first byte
 * @length: bytes, not 0
 * @access: IB_ACCESS_*, decides whether the pages are pinned for writing
 *
 * Context: process whose memory it is, sleeps.
 * Return: the pages or ERR_PTR: what ib_umem_get_va() says, unchanged, or
 * -ENOMEM.
 */
struct mrsoft_pages *mrsoft_pages_pin(struct ib_device *ibdev, u64 start,
				      u64 length, int access)
{
	struct mrsoft_pages *pages;
	struct ib_umem *umem;

	might_sleep();
	if (start != (unsigned long)start || length != (size_t)length)
		return ERR_PTR(-EINVAL);
	umem = ib_umem_get_va(ibdev, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);

	pages = mrsoft_pages_sgt(&umem->sgt_append.sgt, ib_umem_offset(umem));
	if (IS_ERR(pages))
		goto err_release;
	pages->umem = umem;
	return pages;

err_release:
	ib_umem_release(umem);
	return pages;
}

/**
 * mrsoft_pages_odp - memory of the calling process that is not pinned
 * @ibdev: the device
 * @start: user address of the first byte
 * @length: bytes, not 0; U64_MAX from 0 on: whatever it has at any time
 * @access: IB_ACCESS_*, with IB_ACCESS_ON_DEMAND
 *
 * Context: process whose memory it is, sleeps.
 * Return: the pages or ERR_PTR: as mrsoft_demand_new().
 */
struct mrsoft_pages *mrsoft_pages_odp(struct ib_device *ibdev, u64 start,
				      u64 length, int access)
{
	struct mrsoft_demand *demand;
	struct mrsoft_pages *pages;

	pages = kzalloc_obj(*pages, GFP_KERNEL_ACCOUNT);
	if (!pages)
		return ERR_PTR(-ENOMEM);
	demand = mrsoft_demand_new(ibdev, start, length, access);
	if (IS_ERR(demand)) {
		kfree(pages);
		return ERR_CAST(demand);
	}
	pages_init(pages, PAGES_ODP);
	pages->demand = demand;
	pages->umem = mrsoft_demand_umem(demand);
	return pages;
}

/**
 * mrsoft_pages_repin - pin the same addresses with other rights
 * @old: pages from mrsoft_pages_pin() or mrsoft_pages_odp(), stays as it is
 * @access: IB_ACCESS_*; whether they are pinned is decided anew
 *
 * Context: process whose memory it is, sleeps.
 * Return: new pages or ERR_PTR: -EACCES: another process pinned them, its
 * addresses mean nothing here; or as mrsoft_pages_pin().
 */
struct mrsoft_pages *mrsoft_pages_repin(const struct mrsoft_pages *old,
					int access)
{
	struct ib_umem *umem = old->umem;

	if (!umem || umem->owning_mm != current->mm)
		return ERR_PTR(-EACCES);
	if (access & IB_ACCESS_ON_DEMAND)
		return mrsoft_pages_odp(umem->ibdev, umem->address,
					umem->length, access);
	return mrsoft_pages_pin(umem->ibdev, umem->address, umem->length,
				access);
}

/**
 * mrsoft_pages_kernel - all of the kernel's memory
 *
 * The device has no DMA of its own, so a DMA address is a kernel address (see
 * ib_uses_virt_dma()).  Kernel consumers are trusted with it.
 *
 * Context: process, sleeps.
 * Return: the pages or ERR_PTR: -ENOMEM.
 */
struct mrsoft_pages *mrsoft_pages_kernel(void)
{
	struct mrsoft_pages *pages = kzalloc_obj(*pages);

	if (!pages)
		return ERR_PTR(-ENOMEM);
	pages_init(pages, PAGES_KERNEL);
	return pages;
}

/**
 * mrsoft_pages_mapped - bytes that the kernel has mapped, one behind the other
 * @addr: of the first byte
 * @release: called once when the pages are freed, not if this fails; may sleep
 *	and may be NULL
 * @owner: its argument
 *
 * Context: process, sleeps.
 * Return: the pages or ERR_PTR: -ENOMEM.
 */
struct mrsoft_pages *mrsoft_pages_mapped(void *addr, void (*release)(void *owner),
					 void *owner)
{
	struct mrsoft_pages *pages;

	pages = kzalloc_obj(*pages, GFP_KERNEL_ACCOUNT);
	if (!pages)
		return ERR_PTR(-ENOMEM);
	pages_init(pages, PAGES_MAPPED);
	pages->addr = addr;
	pages->release = release;
	pages->owner = owner;
	return pages;
}

static int page_map_alloc(struct page_map *map, u32 max, bool gaps)
{
	map->addr = kvcalloc(max, sizeof(u64), GFP_KERNEL);
	if (!map->addr)
		return -ENOMEM;
	if (!gaps)
		return 0;
	map->end = kvcalloc(max, sizeof(u64), GFP_KERNEL);
	return map->end ? 0 : -ENOMEM;
}

static void page_map_free(struct page_map *map)
{
	kvfree(map->addr);
	kvfree(map->end);
}

/**
 * mrsoft_pages_list - an empty list for fast registration
 * @max: MR pages that it has room for, with @gaps entries
 * @gaps: entries may begin and end anywhere
 *
 * Context: process, sleeps.
 * Return: the pages or ERR_PTR: -ENOMEM.
 */
struct mrsoft_pages *mrsoft_pages_list(u32 max, bool gaps)
{
	struct page_list *list = kzalloc_obj(*list);

	if (!list)
		return ERR_PTR(-ENOMEM);
	pages_init(&list->pages, PAGES_LIST);
	spin_lock_init(&list->lock);
	list->max = max;
	if (page_map_alloc(&list->live, max, gaps) ||
	    page_map_alloc(&list->pending, max, gaps))
		goto err_free;
	return &list->pages;

err_free:
	mrsoft_pages_put(&list->pages);
	return ERR_PTR(-ENOMEM);
}

static void pages_free(struct mrsoft_pages *pages)
{
	struct page_list *list;

	switch (pages->kind) {
	case PAGES_TABLE:
		table_free(pages);
		if (pages->umem)
			ib_umem_release(pages->umem);
		kfree(pages);
		break;
	case PAGES_KERNEL:
		kfree(pages);
		break;
	case PAGES_LIST:
		list = to_list(pages);
		page_map_free(&list->live);
		page_map_free(&list->pending);
		kfree(list);
		break;
	case PAGES_ODP:
		mrsoft_demand_free(pages->demand);
		kfree(pages);
		break;
	case PAGES_MAPPED:
		if (pages->release)
			pages->release(pages->owner);
		kfree(pages);
		break;
	}
}

/**
 * mrsoft_pages_get - keep the pages' description
 * @pages: a region has them, or the caller has a reference
 *
 * Not the bytes: they are not to be accessed with this.  Context: any.
 */
void mrsoft_pages_get(struct mrsoft_pages *pages)
{
	refcount_inc(&pages->users);
}

/**
 * mrsoft_pages_users - how many references are there?
 * @pages: from any constructor
 *
 * Return: 1 for the region until it is gone, 1 for each fault.  Context: any.
 */
unsigned int mrsoft_pages_users(const struct mrsoft_pages *pages)
{
	return refcount_read(&pages->users);
}

/**
 * mrsoft_pages_put - drop a reference; the last one unpins and frees
 * @pages: the region drops its own with nobody accessing them any more
 *
 * Context: process, sleeps.
 */
void mrsoft_pages_put(struct mrsoft_pages *pages)
{
	might_sleep();
	if (refcount_dec_and_test(&pages->users))
		pages_free(pages);
}

/**
 * mrsoft_pages_writable - may the pages be written?
 * @pages: from any constructor
 *
 * Context: any.
 * Return: false for pages of a region for reading, and for those of no user.
 */
bool mrsoft_pages_writable(const struct mrsoft_pages *pages)
{
	return pages->umem && pages->umem->writable;
}

/**
 * mrsoft_pages_pins - pages that are pinned
 * @pages: from any constructor
 *
 * Context: any.
 * Return: a count of PAGE_SIZE; 0 for pages of no user and on demand.
 */
u64 mrsoft_pages_pins(const struct mrsoft_pages *pages)
{
	if (!pages->umem || pages->kind == PAGES_ODP)
		return 0;
	return ib_umem_num_pages(pages->umem);
}

/**
 * mrsoft_pages_table - memory that the lookup of pinned pages takes
 * @pages: the pages
 *
 * Context: any.
 * Return: bytes, without what the core keeps for the pins; 0 for pages that are
 * found without a table or in a list of fixed size.
 */
u64 mrsoft_pages_table(const struct mrsoft_pages *pages)
{
	if (pages->kind != PAGES_TABLE)
		return 0;
	return (u64)pages->num_pieces *
	       (PAGE_SIZE + sizeof(*pages->pieces));
}

/**
 * mrsoft_pages_shift - size of the blocks of the lookup
 * @pages: from mrsoft_pages_pin() or mrsoft_pages_sgt()
 *
 * Return: log2 of the bytes.  Context: any.
 */
unsigned int mrsoft_pages_shift(const struct mrsoft_pages *pages)
{
	return pages->shift;
}

/* ib_sg_to_pages() gives one MR page; an error ends the walk there. */
static int page_list_add(struct ib_mr *walker, u64 addr)
{
	struct page_list *list = container_of(walker, struct page_list, walker);

	lockdep_assert_held(&list->lock);
	if (list->pending.num == list->max)
		return -ENOMEM;
	list->pending.addr[list->pending.num++] = addr;
	return 0;
}

/* As ib_sg_to_pages(), but each entry is taken as it is. */
static int list_fill_gaps(struct page_list *list, struct scatterlist *sgl,
			  int nents, unsigned int *sg_offset)
{
	struct page_map *map = &list->pending;
	unsigned int skip = sg_offset ? *sg_offset : 0;
	struct scatterlist *sg;
	u64 end = 0;
	int i;

	lockdep_assert_held(&list->lock);
	if (nents <= 0 || skip > sg_dma_len(sgl))
		return -EINVAL;
	nents = min_t(u32, nents, list->max);
	for_each_sg(sgl, sg, nents, i) {
		map->addr[i] = sg_dma_address(sg) + skip;
		end += sg_dma_len(sg) - skip;
		map->end[i] = end;
		skip = 0;
	}
	map->num = nents;
	list->walker.iova = map->addr[0];
	list->walker.length = end;
	if (sg_offset)
		*sg_offset = 0;
	return nents;
}

/**
 * mrsoft_pages_list_map - fill the list that the next commit makes live
 * @pages: from mrsoft_pages_list()
 * @ibmr: its @page_size says the size of an MR page; gets @iova and @length
 * @sg: DMA mapped entries
 * @nents: entries of @sg
 * @sg_offset: bytes to skip in the first entry, and out: in the first entry not
 *	taken; may be NULL
 *
 * The live list, which a valid key may be using, is not touched.
 *
 * Context: any.
 * Return: entries taken whole, or -EINVAL: page size or offset make no sense;
 * -ENOMEM: not even one entry fits.
 */
int mrsoft_pages_list_map(struct mrsoft_pages *pages, struct ib_mr *ibmr,
			  struct scatterlist *sg, int nents,
			  unsigned int *sg_offset)
{
	struct page_list *list = to_list(pages);
	struct page_map *map = &list->pending;
	unsigned long flags;
	int num;

	if (!is_power_of_2(ibmr->page_size))
		return -EINVAL;

	spin_lock_irqsave(&list->lock, flags);
	list->fresh = false;
	map->num = 0;
	list->walker.page_size = ibmr->page_size;
	if (map->end)
		num = list_fill_gaps(list, sg, nents, sg_offset);
	else
		num = ib_sg_to_pages(&list->walker, sg, nents, sg_offset,
				     page_list_add);
	if (num >= 0) {
		map->shift = ilog2(ibmr->page_size);
		map->iova = list->walker.iova;
		map->length = list->walker.length;
		map->first = map->iova & (ibmr->page_size - 1);
		list->fresh = true;
		ibmr->iova = map->iova;
		ibmr->length = map->length;
	}
	spin_unlock_irqrestore(&list->lock, flags);
	return num;
}

/**
 * mrsoft_pages_list_commit - make the mapped list live
 * @pages: from mrsoft_pages_list(); nobody accesses it now
 * @iova: out, first address as it was mapped
 * @length: out, bytes
 *
 * Without a new map since the last commit the old mapping stays.
 *
 * Context: any.
 */
void mrsoft_pages_list_commit(struct mrsoft_pages *pages, u64 *iova,
			      u64 *length)
{
	struct page_list *list = to_list(pages);
	unsigned long flags;

	spin_lock_irqsave(&list->lock, flags);
	if (list->fresh)
		swap(list->live, list->pending);
	list->fresh = false;
	*iova = list->live.iova;
	*length = list->live.length;
	spin_unlock_irqrestore(&list->lock, flags);
}

static void *table_map(const struct mrsoft_pages *pages, u64 offset,
		       size_t *len)
{
	u64 at = pages->first + offset;
	u64 block = at >> pages->shift;
	u64 in_block = at & ((1ull << pages->shift) - 1);
	u64 room = (1ull << pages->shift) - in_block;
	unsigned long pfn;

	if (WARN_ON_ONCE(block >> PIECE_SHIFT >= pages->num_pieces))
		return NULL;
	pfn = pages->pieces[block >> PIECE_SHIFT][block & (PIECE_ENTRIES - 1)];
	pfn += in_block >> PAGE_SHIFT;
	/* where mappings are made page by page the next page is elsewhere */
	if (IS_ENABLED(CONFIG_KMAP_LOCAL))
		room = PAGE_SIZE - offset_in_page(at);
	*len = min_t(u64, *len, room);
	return kmap_local_page(pfn_to_page(pfn)) + offset_in_page(at);
}

/* The entry is the first that ends behind the offset; an empty one is none. */
static void *gaps_map(const struct page_map *map, u64 offset, size_t *len)
{
	u32 low = 0, high = map->num, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (map->end[mid] > offset)
			high = mid;
		else
			low = mid + 1;
	}
	if (WARN_ON_ONCE(low >= map->num))
		return NULL;
	*len = min_t(u64, *len, map->end[low] - offset);
	if (low)
		offset -= map->end[low - 1];
	return ib_virt_dma_to_ptr(map->addr[low] + offset);
}

static void *list_map(const struct page_map *map, u64 offset, size_t *len)
{
	u64 at = map->first + offset;
	u64 size = 1ull << map->shift;
	u64 in_page = at & (size - 1);

	if (WARN_ON_ONCE(at >> map->shift >= map->num))
		return NULL;
	*len = min_t(u64, *len, size - in_page);
	return ib_virt_dma_to_ptr(map->addr[at >> map->shift] + in_page);
}

/**
 * mrsoft_pages_map - reach the bytes from an offset on
 * @pages: from any constructor
 * @offset: bytes from the first byte of the region, below its length
 * @len: in: bytes wanted, not 0; out: bytes that can be reached in one go
 * @write: they will be written
 *
 * Kernel addresses are handed out as they are: mrsoft_pages_unmap() ignores
 * them, like kunmap_local() ignores a page that was never in high memory.
 *
 * Context: any.  No sleep until mrsoft_pages_unmap().
 * Return: address of the first byte; NULL: mrsoft_pages_fault() may help.
 */
void *mrsoft_pages_map(struct mrsoft_pages *pages, u64 offset, size_t *len,
		       bool write)
{
	switch (pages->kind) {
	case PAGES_TABLE:
		return table_map(pages, offset, len);
	case PAGES_LIST:
		if (to_list(pages)->live.end)
			return gaps_map(&to_list(pages)->live, offset, len);
		return list_map(&to_list(pages)->live, offset, len);
	case PAGES_ODP:
		return mrsoft_demand_map(pages->demand, offset, len, write);
	case PAGES_MAPPED:
		return pages->addr + offset;
	default:
		return ib_virt_dma_to_ptr(offset);
	}
}

/**
 * mrsoft_pages_unmap - undo mrsoft_pages_map()
 * @pages: as then
 * @addr: what it returned, not NULL; newest mapping first
 *
 * Context: as mrsoft_pages_map().
 */
void mrsoft_pages_unmap(struct mrsoft_pages *pages, void *addr)
{
	if (pages->kind == PAGES_ODP)
		mrsoft_demand_unmap(pages->demand, addr);
	else
		kunmap_local(addr);
}

/**
 * mrsoft_pages_faultable - can a fault make pages present?
 * @pages: from any constructor
 *
 * Return: false: they always are, or never will be.  Context: any.
 */
bool mrsoft_pages_faultable(const struct mrsoft_pages *pages)
{
	return pages->kind == PAGES_ODP;
}

/**
 * mrsoft_pages_present - could these bytes be mapped at this moment?
 * @pages: from any constructor
 * @offset: bytes from the first byte of the region
 * @length: bytes, inside the region
 * @write: they would be written
 *
 * Return: 1: they could; 0: a fault is needed, or was a moment ago; -EAGAIN: this
 * cannot be said now, other pages of the region are on their way out.
 * Context: any.
 */
int mrsoft_pages_present(struct mrsoft_pages *pages, u64 offset, u64 length,
			 bool write)
{
	if (pages->kind != PAGES_ODP)
		return 1;
	return mrsoft_demand_present(pages->demand, offset, length, write);
}

/**
 * mrsoft_pages_fault - have pages present, for a moment at least
 * @pages: the caller has a reference
 * @offset: bytes from the first byte of the region
 * @length: bytes, inside the region
 * @how: MRSOFT_FAULT_*
 *
 * Context: process, sleeps for as long as the process's page fault does: no hold
 * on a key or a QP.
 * Return: 0, or an errno: the process could not touch these bytes either.
 */
int mrsoft_pages_fault(struct mrsoft_pages *pages, u64 offset, u64 length,
		       unsigned int how)
{
	if (pages->kind != PAGES_ODP)
		return 0;
	return mrsoft_demand_fault(pages->demand, offset, length, how);
}

/**
 * mrsoft_pages_region - counts of pages that came and went
 * @pages: from any constructor
 *
 * Return: NULL for pages that are always present.  Context: any.
 */
const struct mrsoft_odp_region *
mrsoft_pages_region(const struct mrsoft_pages *pages)
{
	if (pages->kind != PAGES_ODP)
		return NULL;
	return mrsoft_demand_region(pages->demand);
}

/**
 * mrsoft_pages_own - is it memory of the process that asks?
 * @pages: from any constructor
 *
 * Return: false in a worker and for memory of no user.  Context: any.
 */
bool mrsoft_pages_own(const struct mrsoft_pages *pages)
{
	return pages->umem && current->mm == pages->umem->owning_mm;
}
