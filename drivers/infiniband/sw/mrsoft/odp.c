// SPDX-License-Identifier: GPL-2.0
/*
 * odp.c - user memory that is not pinned: pages come by fault, go by notifier
 *
 * Owns:     the table page of the region -> page of the process, its rights and
 *           whether it was written; the MMU notifier; the faults.
 * Not here: who asks for a fault and in which context (fault.c, the paths), keys.
 * Locks:    umem_mutex (the core's) orders the notifier, publishing and free.
 *           odp.faults (mutex) is outside of it: one fault at a time, since the
 *           core writes its array of pages before it has umem_mutex.  Only
 *           umem_mutex is taken by the notifier, and nothing is allocated under
 *           it: the notifier may be called to free memory.  Copies take no lock:
 *           odp.copies lets them in or refuses them.
 * Lifetime: the notifier and the table live until free, and a fault that runs
 *           has a reference of its own on what is around this (pages.c).  A
 *           page is valid from publishing until withdraw(), which first waits
 *           for copies: of this region, that run now, at most a segment each,
 *           and that wait for nothing.
 * Context:  map, unmap and present in any; the rest sleeps.
 * Spec:     IBA Vol 1, Annex A18 has no rules for it; ibv_reg_mr(3),
 *           Documentation/mm/mmu_notifier.rst, hmm.rst of the kernel
 * Tests:    kunit/odp_kunit.c, tools/testing/selftests/odp.c
 */
#include <linux/completion.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
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

/* Added to odp.copies while nobody may enter. */
#define CLOSED			INT_MIN

/**
 * struct mrsoft_odp - user memory that is not pinned
 *
 * Letters: I set before anybody else knows it; A atomic; U umem->umem_mutex.
 *
 * @umem: I, the core's part
 * @ibdev: I, its device, held: a fault may outlive the region and the device
 * @faults: one fault at a time
 * @copies: A, mappings in use; CLOSED is added while pages are withdrawn
 * @drained: completed by the last mapping that ends while closed
 * @skip: I, bytes from the start of the first page to the region's first
 * @num: I, pages
 * @entries: the table: written under U, but for the dirty bit, which a mapping
 *	in use may set; 0 if the page is not present
 */
struct mrsoft_odp {
	struct ib_umem_odp *umem;
	struct ib_device *ibdev;
	struct mutex faults;	/* one fault at a time */
	atomic_t copies;
	struct completion drained;
	u32 skip;
	size_t num;
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

static bool copy_enter(struct mrsoft_odp *odp)
{
	/* a full barrier on success: pairs with close() and open() */
	return atomic_inc_unless_negative(&odp->copies);
}

static void copy_leave(struct mrsoft_odp *odp)
{
	if (atomic_dec_return(&odp->copies) == CLOSED)
		complete(&odp->drained);
}

/* Nobody enters any more, nobody is inside.  See Lifetime above. */
static void close(struct mrsoft_odp *odp)
{
	reinit_completion(&odp->drained);
	if (atomic_add_return(CLOSED, &odp->copies) != CLOSED)
		wait_for_completion(&odp->drained);
}

static void open(struct mrsoft_odp *odp)
{
	/* what was withdrawn before who enters; pairs with copy_enter() */
	atomic_set_release(&odp->copies, 0);
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
 * nothing of our writes.
 */
static void withdraw(struct mrsoft_odp *odp, size_t first, size_t end)
{
	size_t i;

	/* who has none of them mapped is not waited for */
	if (!any_present(odp, first, end))
		return;
	close(odp);
	for (i = first; i < end; i++) {
		unsigned long entry = odp->entries[i];

		if (entry & BIT(ENTRY_DIRTY_BIT))
			set_page_dirty(compound_head(entry_page(entry)));
		WRITE_ONCE(odp->entries[i], 0);
	}
	open(odp);
}

/*
 * Lets copies have @page, under umem_mutex.  An entry that is there already is
 * of the same page, or the notifier would have come between; it may be in use,
 * so only a right is added to it.
 */
static void publish(struct mrsoft_odp *odp, size_t i, struct page *page,
		    bool write)
{
	unsigned long entry = READ_ONCE(odp->entries[i]);

	if (entry && WARN_ON_ONCE(entry_page(entry) != page)) {
		withdraw(odp, i, i + 1);
	} else if (entry) {
		if (write)
			set_bit(ENTRY_WRITE_BIT, &odp->entries[i]);
		return;
	}
	entry = (unsigned long)page | (write ? ENTRY_WRITE : 0);
	/* the page's first bytes before the page; pairs with READ_ONCE() */
	smp_store_release(&odp->entries[i], entry);
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

	if (!mmu_notifier_range_blockable(range))
		return false;
	mutex_lock(&umem->umem_mutex);
	/* whoever is faulting sees it and faults again */
	mmu_interval_set_seq(mni, seq);
	start = max_t(u64, ib_umem_start(umem), range->start);
	end = min_t(u64, ib_umem_end(umem), range->end);
	odp = umem->private;
	/* not there yet: nothing was faulted in */
	if (odp)
		withdraw(odp, (start - ib_umem_start(umem)) >> PAGE_SHIFT,
			 (end - ib_umem_start(umem)) >> PAGE_SHIFT);
	ib_umem_odp_unmap_dma_pages(umem, start, end);
	mutex_unlock(&umem->umem_mutex);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = invalidate,
};

static struct mrsoft_odp *odp_alloc(u32 skip, u64 num)
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
	init_completion(&odp->drained);
	odp->skip = skip;
	odp->num = num;
	return odp;
}

/**
 * mrsoft_odp_new - a range of the calling process, no page of it yet
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
struct mrsoft_odp *mrsoft_odp_new(struct ib_device *ibdev, u64 start,
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
	odp = odp_alloc(offset_in_page(start),
			(PAGE_ALIGN(end) - (start & PAGE_MASK)) >> PAGE_SHIFT);
	if (!odp)
		return ERR_PTR(-ENOMEM);

	/* huge pages too are looked up, and may come and go, one by one */
	umem = ib_umem_odp_get(ibdev, start, length,
			       access & ~IB_ACCESS_HUGETLB, &notifier_ops);
	if (IS_ERR(umem))
		goto err_free;
	odp->umem = umem;
	odp->ibdev = ibdev;
	get_device(&ibdev->dev);
	/* from here on the notifier looks at the table */
	mutex_lock(&umem->umem_mutex);
	umem->private = odp;
	mutex_unlock(&umem->umem_mutex);
	return odp;

err_free:
	kvfree(odp->entries);
	kfree(odp);
	return ERR_CAST(umem);
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
	mutex_destroy(&odp->faults);
	kvfree(odp->entries);
	kfree(odp);
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
 * Until mrsoft_odp_unmap() the page stays the process's page.  Also refused for
 * the moment in which other pages of the range are withdrawn.
 *
 * Context: any.  No sleep until mrsoft_odp_unmap().
 * Return: address of the first byte; NULL: a fault is needed.
 */
void *mrsoft_odp_map(struct mrsoft_odp *odp, u64 offset, size_t *len,
		     bool write)
{
	u64 at = odp->skip + offset;
	size_t i = at >> PAGE_SHIFT;
	unsigned long entry;

	if (WARN_ON_ONCE(i >= odp->num))
		return NULL;
	if (!copy_enter(odp))
		return NULL;
	entry = READ_ONCE(odp->entries[i]);
	if (!entry_allows(entry, write)) {
		copy_leave(odp);
		return NULL;
	}
	if (write && !(entry & BIT(ENTRY_DIRTY_BIT)))
		set_bit(ENTRY_DIRTY_BIT, &odp->entries[i]);
	*len = min_t(u64, *len, PAGE_SIZE - offset_in_page(at));
	return kmap_local_page(entry_page(entry)) + offset_in_page(at);
}

/**
 * mrsoft_odp_unmap - undo mrsoft_odp_map()
 * @odp: the range
 * @addr: what it returned, not NULL; newest mapping first
 *
 * Context: as mrsoft_odp_map().
 */
void mrsoft_odp_unmap(struct mrsoft_odp *odp, void *addr)
{
	kunmap_local(addr);
	copy_leave(odp);
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

static void publish_range(struct mrsoft_odp *odp, u64 va, u64 length)
{
	struct ib_umem_odp *umem = odp->umem;
	u64 at = va & PAGE_MASK;

	lockdep_assert_held(&umem->umem_mutex);
	for (; at < va + length; at += PAGE_SIZE) {
		size_t i = (at - ib_umem_start(umem)) >> PAGE_SHIFT;
		struct page *page = mrsoft_odp_page(umem, at, MRSOFT_ODP_READ);

		if (page)
			publish(odp, i, page, mrsoft_odp_page(umem, at,
							      MRSOFT_ODP_WRITE));
	}
}

/* All at once.  The notifier may withdraw them again before we are back. */
static int fault_locked(struct mrsoft_odp *odp, u64 offset, u64 length,
			bool write, bool populate)
{
	u64 access = MRSOFT_ODP_READ | (write ? MRSOFT_ODP_WRITE : 0);
	struct ib_umem_odp *umem = odp->umem;
	u64 va = umem->umem.address + offset;
	bool present;
	int ret;

	lockdep_assert_held(&odp->faults);
	/*
	 * Somebody else was faster, or the copy was refused because other pages
	 * were withdrawn: the mutex waits for the end of that.
	 */
	mutex_lock(&umem->umem_mutex);
	present = mrsoft_odp_present(odp, offset, length, write);
	mutex_unlock(&umem->umem_mutex);
	if (present)
		return 0;
	ret = ib_umem_odp_map_dma_and_lock(umem, va, length, access, populate);
	/* page tables that did not keep still for long enough: tried again */
	if (ret == -EBUSY)
		return 0;
	if (ret < 0)
		return ret;
	publish_range(odp, va, length);
	mutex_unlock(&umem->umem_mutex);
	return 0;
}

/* Piece by piece: a region may be prefetched whole. */
static int fault_pieces(struct mrsoft_odp *odp, u64 offset, u64 length,
			bool write, bool populate)
{
	int err = 0;
	u64 n;

	for (; length && !err; offset += n, length -= n) {
		n = min_t(u64, length, FAULT_PIECE);
		err = fault_locked(odp, offset, n, write, populate);
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
 * @write: they will be written: a page shared for reading is copied first
 * @populate: false: only what the process has already, which is no error
 *
 * Context: process, sleeps; no lock of ours.
 * Return: 0: they were present for a moment, if any; -EFAULT: the process is gone;
 * -EINTR: killed; or what the core says of a range that cannot be had (not
 * mapped, not writable).
 */
int mrsoft_odp_fault(struct mrsoft_odp *odp, u64 offset, u64 length,
		     bool write, bool populate)
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
		err = fault_pieces(odp, offset, length, write, populate);
		mutex_unlock(&odp->faults);
	}
	mmput_async(mm);
	return err;
}
