// SPDX-License-Identifier: GPL-2.0
/*
 * odp.c - user memory that is not pinned: pages come by fault, go by notifier
 *
 * Owns:     the table page of the region -> page of the process, its rights and
 *           whether it was written; the MMU notifier; the faults.
 * Not here: which range of a region (demand.c), who asks for a fault and in which
 *           context (fault.c, the paths), keys.
 * Locks:    umem_mutex (the core's) orders the notifier, publishing and free.
 *           odp.faults (mutex) is outside of it: one fault at a time, since the
 *           core writes its array of pages before it has umem_mutex.  The
 *           notifier takes umem_mutex and inside it region.closer (mutex), and
 *           nothing is allocated under them: it may be called to free memory.
 *           Copies take no lock: region.copies lets them in or refuses them.
 * Lifetime: the notifier and the table live until free, and a fault that runs
 *           has a reference of its own on what is around this (pages.c).  A
 *           page is valid from publishing until withdraw(), which first waits
 *           for copies: of the region, that run now, at most a segment each,
 *           and that wait for nothing.
 * Context:  map, unmap and present in any; the rest sleeps.
 * Spec:     IBA Vol 1, Annex A18 has no rules for it; ibv_reg_mr(3),
 *           Documentation/mm/mmu_notifier.rst, hmm.rst of the kernel
 * Tests:    kunit/odp_kunit.c, tools/testing/selftests/odp.c
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <rdma/ib_umem_odp.h>

#include "odp.h"

/* In the low bits of an entry, which is the address of a struct page. */
#define ENTRY_WRITE_BIT		0
#define ENTRY_DIRTY_BIT		1
#define ENTRY_WRITE		BIT(ENTRY_WRITE_BIT)
#define ENTRY_BITS		(ENTRY_WRITE | BIT(ENTRY_DIRTY_BIT))

/* Bytes that are faulted in at once. */
#define FAULT_PIECE		SZ_4M

/* Added to region.copies while nobody may enter. */
#define CLOSED			INT_MIN

/**
 * struct mrsoft_odp - a range of user memory that is not pinned
 *
 * Letters: I set before anybody else knows it; A atomic; U umem->umem_mutex.
 *
 * @umem: I, the core's part
 * @ibdev: I, its device, held: a fault may outlive the region and the device
 * @region: I, what it shares
 * @faults: one fault at a time
 * @skip: I, bytes from the start of the first page to the region's first
 * @num: I, pages
 * @there: entries that are not 0 (U; read without a lock as a hint)
 * @entries: the table: written under U, but for the dirty bit, which a mapping
 *	in use may set; 0 if the page is not present
 */
struct mrsoft_odp {
	struct ib_umem_odp *umem;
	struct ib_device *ibdev;
	struct mrsoft_odp_region *region;
	struct mutex faults;	/* one fault at a time */
	u32 skip;
	size_t num;
	size_t there;
	unsigned long *entries;
};

static struct page *entry_page(unsigned long entry)
{
	return (struct page *)(entry & ~ENTRY_BITS);
}

/* Is this page there, and may it be written if that is wanted? */
static bool entry_allows(unsigned long entry, bool write)
{
	return entry && (!write || (entry & ENTRY_WRITE));
}

/**
 * mrsoft_odp_region_init - a region without ranges
 * @region: its memory
 * @emptied: see struct mrsoft_odp_region
 *
 * Context: any.
 */
void mrsoft_odp_region_init(struct mrsoft_odp_region *region,
			    void (*emptied)(struct mrsoft_odp_region *region))
{
	*region = (struct mrsoft_odp_region){ .emptied = emptied };
	mutex_init(&region->closer);
	init_completion(&region->drained);
}

/**
 * mrsoft_odp_enter - begin to look at pages of a region
 * @region: the region
 *
 * Also refused for the moment in which other pages of the region are withdrawn.
 *
 * Context: any.  No sleep until mrsoft_odp_leave().
 * Return: false: a fault is needed.
 */
bool mrsoft_odp_enter(struct mrsoft_odp_region *region)
{
	/* a full barrier on success: pairs with close() and open() */
	return atomic_inc_unless_negative(&region->copies);
}

/**
 * mrsoft_odp_leave - done with the pages
 * @region: entered
 *
 * Context: any.
 */
void mrsoft_odp_leave(struct mrsoft_odp_region *region)
{
	if (atomic_dec_return(&region->copies) == CLOSED)
		complete(&region->drained);
}

/* Nobody enters any more, nobody is inside.  See Lifetime above. */
static void close(struct mrsoft_odp_region *region)
{
	mutex_lock(&region->closer);
	reinit_completion(&region->drained);
	if (atomic_add_return(CLOSED, &region->copies) != CLOSED)
		wait_for_completion(&region->drained);
}

static void open(struct mrsoft_odp_region *region)
{
	/* what was withdrawn before who enters; pairs with mrsoft_odp_enter() */
	atomic_set_release(&region->copies, 0);
	mutex_unlock(&region->closer);
}

/**
 * mrsoft_odp_quiesce - whoever is inside leaves
 * @region: the region
 *
 * Context: process, sleeps; for copies only, which wait for nothing.
 */
void mrsoft_odp_quiesce(struct mrsoft_odp_region *region)
{
	close(region);
	open(region);
}

static bool any_present(const struct mrsoft_odp *odp, size_t first, size_t end)
{
	size_t i;

	for (i = first; i < end; i++)
		if (READ_ONCE(odp->entries[i]))
			return true;
	return false;
}

/*
 * Takes pages [@first, @end) away from copies, under umem_mutex.  Their
 * translations in the process are still there, so that a page which was written
 * can be marked so before it may be freed: the bit in the page table says
 * nothing of our writes.  How many there were.
 */
static size_t withdraw(struct mrsoft_odp *odp, size_t first, size_t end)
{
	size_t i, n = 0;

	/* who has none of them mapped is not waited for */
	if (!any_present(odp, first, end))
		return 0;
	close(odp->region);
	for (i = first; i < end; i++) {
		unsigned long entry = odp->entries[i];

		if (!entry)
			continue;
		if (entry & BIT(ENTRY_DIRTY_BIT))
			set_page_dirty(compound_head(entry_page(entry)));
		WRITE_ONCE(odp->entries[i], 0);
		n++;
	}
	WRITE_ONCE(odp->there, odp->there - n);
	open(odp->region);
	return n;
}

/*
 * Lets copies have @page, under umem_mutex.  An entry that is there already is
 * of the same page, or the notifier would have come between; it may be in use,
 * so only a right is added to it.  True: copies may do more than before.
 */
static bool publish(struct mrsoft_odp *odp, size_t i, struct page *page,
		    bool write)
{
	unsigned long entry = READ_ONCE(odp->entries[i]);

	if (entry && WARN_ON_ONCE(entry_page(entry) != page)) {
		withdraw(odp, i, i + 1);
	} else if (entry) {
		if (!write || entry & ENTRY_WRITE)
			return false;
		set_bit(ENTRY_WRITE_BIT, &odp->entries[i]);
		return true;
	}
	WRITE_ONCE(odp->there, odp->there + 1);
	entry = (unsigned long)page | (write ? ENTRY_WRITE : 0);
	/* the page's first bytes before the page; pairs with READ_ONCE() */
	smp_store_release(&odp->entries[i], entry);
	return true;
}

/*
 * The process's page tables change: called with them still as they were.  False:
 * the caller must not sleep (the OOM reaper) and comes again.
 */
static bool invalidate(struct mmu_interval_notifier *mni,
		       const struct mmu_notifier_range *range,
		       unsigned long seq)
{
	struct ib_umem_odp *umem = container_of(mni, struct ib_umem_odp,
						notifier);
	struct mrsoft_odp *odp;
	u64 start, end;
	size_t n;

	if (!mmu_notifier_range_blockable(range))
		return false;
	mutex_lock(&umem->umem_mutex);
	/* whoever is faulting sees it and faults again */
	mmu_interval_set_seq(mni, seq);
	start = max_t(u64, ib_umem_start(umem), range->start);
	end = min_t(u64, ib_umem_end(umem), range->end);
	odp = umem->private;
	/* not there yet: nothing was faulted in */
	if (odp) {
		n = withdraw(odp, (start - ib_umem_start(umem)) >> PAGE_SHIFT,
			     (end - ib_umem_start(umem)) >> PAGE_SHIFT);
		atomic64_add(n, &odp->region->invalidations);
		if (n && !odp->there && odp->region->emptied)
			odp->region->emptied(odp->region);
	}
	ib_umem_odp_unmap_dma_pages(umem, start, end);
	mutex_unlock(&umem->umem_mutex);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = invalidate,
};

static struct mrsoft_odp *odp_alloc(struct mrsoft_odp_region *region, u32 skip,
				    u64 num)
{
	struct mrsoft_odp *odp;

	if (num > SIZE_MAX / sizeof(*odp->entries))
		return NULL;
	odp = kzalloc_obj(*odp, GFP_KERNEL_ACCOUNT);
	if (!odp)
		return NULL;
	/* no warning: its size is what a user asks for */
	odp->entries = kvcalloc(num, sizeof(*odp->entries),
				GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!odp->entries) {
		kfree(odp);
		return NULL;
	}
	mutex_init(&odp->faults);
	odp->region = region;
	odp->skip = skip;
	odp->num = num;
	return odp;
}

static void odp_discard(struct mrsoft_odp *odp)
{
	mutex_destroy(&odp->faults);
	kvfree(odp->entries);
	kfree(odp);
}

/* From here on the notifier looks at the table. */
static void odp_attach(struct mrsoft_odp *odp, struct ib_umem_odp *umem)
{
	odp->umem = umem;
	odp->ibdev = umem->umem.ibdev;
	get_device(&odp->ibdev->dev);
	mutex_lock(&umem->umem_mutex);
	umem->private = odp;
	mutex_unlock(&umem->umem_mutex);
}

/**
 * mrsoft_odp_new - a range of the calling process, no page of it yet
 * @region: what it shares, stays until after mrsoft_odp_free()
 * @ibdev: the device
 * @start: user address of the first byte
 * @length: bytes, not 0
 * @access: IB_ACCESS_*
 *
 * The range need not be mapped, now or ever.
 *
 * Context: process whose memory it is, sleeps.
 * Return: the range or ERR_PTR: -EINVAL: beyond the address space; -ENOMEM; or
 * what ib_umem_odp_get() says, unchanged.
 */
struct mrsoft_odp *mrsoft_odp_new(struct mrsoft_odp_region *region,
				  struct ib_device *ibdev, u64 start,
				  u64 length, int access)
{
	struct ib_umem_odp *umem;
	struct mrsoft_odp *odp;
	unsigned long end;

	might_sleep();
	if (start != (unsigned long)start || length != (size_t)length ||
	    check_add_overflow((unsigned long)start, (unsigned long)length,
			       &end) || PAGE_ALIGN(end) < end)
		return ERR_PTR(-EINVAL);
	odp = odp_alloc(region, offset_in_page(start),
			(PAGE_ALIGN(end) - (start & PAGE_MASK)) >> PAGE_SHIFT);
	if (!odp)
		return ERR_PTR(-ENOMEM);

	/* huge pages too are looked up, and may come and go, one by one */
	umem = ib_umem_odp_get(ibdev, start, length,
			       access & ~IB_ACCESS_HUGETLB, &notifier_ops);
	if (IS_ERR(umem)) {
		odp_discard(odp);
		return ERR_CAST(umem);
	}
	odp_attach(odp, umem);
	return odp;
}

/**
 * mrsoft_odp_child - a range of the process of another description
 * @region: what it shares, stays until after mrsoft_odp_free()
 * @root: from ib_umem_odp_alloc_implicit(), stays as long; the caller keeps its
 *	address space alive during the call
 * @start: user address, of a page
 * @length: bytes, whole pages
 *
 * Context: process, sleeps.
 * Return: the range or ERR_PTR: -ENOMEM; or what ib_umem_odp_alloc_child() says.
 */
struct mrsoft_odp *mrsoft_odp_child(struct mrsoft_odp_region *region,
				    struct ib_umem_odp *root, u64 start,
				    u64 length)
{
	struct mrsoft_odp *odp = odp_alloc(region, 0, length >> PAGE_SHIFT);
	struct ib_umem_odp *umem;

	if (!odp)
		return ERR_PTR(-ENOMEM);
	umem = ib_umem_odp_alloc_child(root, start, length, &notifier_ops);
	if (IS_ERR(umem)) {
		odp_discard(odp);
		return ERR_CAST(umem);
	}
	odp_attach(odp, umem);
	return odp;
}

/**
 * mrsoft_odp_free - let go of a range
 * @odp: nobody accesses it or faults any more
 *
 * Waits for a notifier that runs now, which waits for nobody.
 *
 * Context: process, sleeps.
 */
void mrsoft_odp_free(struct mrsoft_odp *odp)
{
	mutex_lock(&odp->umem->umem_mutex);
	withdraw(odp, 0, odp->num);
	mutex_unlock(&odp->umem->umem_mutex);
	ib_umem_odp_release(odp->umem);
	put_device(&odp->ibdev->dev);
	odp_discard(odp);
}

/**
 * mrsoft_odp_empty - has it no page now?
 * @odp: the range
 *
 * Context: any.
 * Return: true stays so unless there is a fault.
 */
bool mrsoft_odp_empty(const struct mrsoft_odp *odp)
{
	return !READ_ONCE(odp->there);
}

/**
 * mrsoft_odp_umem - the core's description of a range
 * @odp: the range
 *
 * Context: any.
 * Return: valid as long as @odp.
 */
struct ib_umem *mrsoft_odp_umem(struct mrsoft_odp *odp)
{
	return &odp->umem->umem;
}

/**
 * mrsoft_odp_map - reach the bytes from an offset on
 * @odp: the range
 * @offset: bytes from its first byte, below its length
 * @len: in: bytes wanted, not 0; out: bytes that can be reached in one go
 * @write: they will be written
 *
 * The page stays the process's page as long as the caller is inside the region.
 *
 * Context: any; between mrsoft_odp_enter() and mrsoft_odp_leave().
 * Return: address of the first byte, a kmap_local mapping; NULL: a fault is needed.
 */
void *mrsoft_odp_map(struct mrsoft_odp *odp, u64 offset, size_t *len,
		     bool write)
{
	u64 at = odp->skip + offset;
	size_t i = at >> PAGE_SHIFT;
	unsigned long entry;

	if (WARN_ON_ONCE(i >= odp->num))
		return NULL;
	entry = READ_ONCE(odp->entries[i]);
	if (!entry_allows(entry, write))
		return NULL;
	if (write && !(entry & BIT(ENTRY_DIRTY_BIT)))
		set_bit(ENTRY_DIRTY_BIT, &odp->entries[i]);
	*len = min_t(u64, *len, PAGE_SIZE - offset_in_page(at));
	return kmap_local_page(entry_page(entry)) + offset_in_page(at);
}

/**
 * mrsoft_odp_present - could all of these bytes be mapped now?
 * @odp: the range
 * @offset: bytes from its first byte
 * @length: bytes, inside the range
 * @write: they would be written
 *
 * Context: any.  Only a hint, unless umem_mutex is held.
 * Return: true: each of the pages is there.
 */
bool mrsoft_odp_present(struct mrsoft_odp *odp, u64 offset, u64 length,
			bool write)
{
	size_t i = (odp->skip + offset) >> PAGE_SHIFT;
	size_t end = (odp->skip + offset + length + PAGE_SIZE - 1) >> PAGE_SHIFT;

	for (; i < end; i++)
		if (!entry_allows(READ_ONCE(odp->entries[i]), write))
			return false;
	return true;
}

/* How many came, or came to be writable. */
static size_t publish_range(struct mrsoft_odp *odp, u64 va, u64 length)
{
	struct ib_umem_odp *umem = odp->umem;
	u64 at = va & PAGE_MASK;
	size_t n = 0;

	lockdep_assert_held(&umem->umem_mutex);
	for (; at < va + length; at += PAGE_SIZE) {
		size_t i = (at - ib_umem_start(umem)) >> PAGE_SHIFT;
		struct page *page = mrsoft_odp_page(umem, at, MRSOFT_ODP_READ);

		if (page)
			n += publish(odp, i, page,
				     mrsoft_odp_page(umem, at,
						     MRSOFT_ODP_WRITE));
	}
	return n;
}

/* All at once.  The notifier may withdraw them again before we are back. */
static int fault_locked(struct mrsoft_odp *odp, u64 offset, u64 length,
			unsigned int how)
{
	struct mrsoft_odp_region *region = odp->region;
	bool write = how & MRSOFT_FAULT_WRITE;
	u64 access = MRSOFT_ODP_READ | (write ? MRSOFT_ODP_WRITE : 0);
	struct ib_umem_odp *umem = odp->umem;
	u64 va = umem->umem.address + offset;
	bool present;
	size_t n;
	int ret;

	lockdep_assert_held(&odp->faults);
	mutex_lock(&umem->umem_mutex);
	present = mrsoft_odp_present(odp, offset, length, write);
	mutex_unlock(&umem->umem_mutex);
	if (present) {
		/*
		 * Somebody else was faster, or the copy was refused because
		 * other pages were withdrawn: until the end of that.
		 */
		mutex_lock(&region->closer);
		mutex_unlock(&region->closer);
		return 0;
	}
	ret = ib_umem_odp_map_dma_and_lock(umem, va, length, access,
					   !(how & MRSOFT_FAULT_PEEK));
	/* page tables that did not keep still for long enough: tried again */
	if (ret == -EBUSY)
		return 0;
	if (ret < 0)
		return ret;
	n = publish_range(odp, va, length);
	mutex_unlock(&umem->umem_mutex);
	atomic64_add(n, how & MRSOFT_FAULT_ADVICE ? &region->prefetches :
						    &region->faults);
	return 0;
}

/* Piece by piece: a region may be prefetched whole. */
static int fault_pieces(struct mrsoft_odp *odp, u64 offset, u64 length,
			unsigned int how)
{
	int err = 0;
	u64 n;

	for (; length && !err; offset += n, length -= n) {
		n = min_t(u64, length, FAULT_PIECE);
		err = fault_locked(odp, offset, n, how);
		if (!err && fatal_signal_pending(current))
			err = -EINTR;
		cond_resched();
	}
	return err;
}

/**
 * mrsoft_odp_fault - have pages of the process present
 * @odp: the range, which the caller keeps: no hold of a key does
 * @offset: bytes from its first byte
 * @length: bytes, inside the range
 * @how: MRSOFT_FAULT_*; WRITE: a page shared for reading is copied first; PEEK:
 *	what the process has not is no error
 *
 * Context: process, sleeps; no lock of ours.
 * Return: 0: they were present for a moment, if any; -EFAULT: the process is gone;
 * -EINTR: killed; or what the core says of a range that cannot be had (not
 * mapped, not writable).
 */
int mrsoft_odp_fault(struct mrsoft_odp *odp, u64 offset, u64 length,
		     unsigned int how)
{
	struct mm_struct *mm = odp->umem->umem.owning_mm;
	int err;

	might_sleep();
	/*
	 * Ours is dropped last and without umem_mutex: the last one ends all
	 * mappings, which calls the notifier, and old cores drop theirs with
	 * the mutex held.
	 */
	if (!mmget_not_zero(mm))
		return -EFAULT;
	/* killable: the fault that runs may wait for who waits here */
	err = mutex_lock_killable(&odp->faults);
	if (!err) {
		err = fault_pieces(odp, offset, length, how);
		mutex_unlock(&odp->faults);
	}
	mmput_async(mm);
	return err;
}
