// SPDX-License-Identifier: GPL-2.0
/*
 * demand.c - memory on demand: a range of a process, or all of it
 *
 * Owns:     the children of an implicit region: ranges of one size, made when a
 *           fault comes to one, dropped when they are empty or too many.
 * Not here: pages, their rights and how they go (odp.c), who asks (fault.c).
 * Locks:    demand.lock (mutex) for the children; outside of what odp.c takes,
 *           and of mmap_lock: the first child of a process registers with it.
 *           Copies take none: a child that they found stays while they are inside
 *           the region (mrsoft_odp_enter()).
 * Lifetime: a child: made, found by copies, unlisted, waited for, freed; not while
 *           a fault uses it.  A notifier cannot drop its own child, so it wakes
 *           a work.  Free drops all children, then no notifier is left that could
 *           wake the work, then ends it.
 * Context:  map, unmap and present in any; the rest sleeps.
 * Spec:     none; ibv_reg_mr(3): address 0 and length SIZE_MAX
 * Tests:    kunit/odp_kunit.c, tools/testing/selftests/implicit.c
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_umem_odp.h>

#include "demand.h"
#include "limits.h"

/* Bytes of a child: its tables are a 256th of them, or less. */
#define CHILD_SHIFT	22
#define CHILD_SIZE	BIT_ULL(CHILD_SHIFT)

/**
 * struct child - one range of an implicit region
 * @odp: I, the range
 * @faults: faults that use it (demand.lock)
 */
struct child {
	struct mrsoft_odp *odp;
	unsigned int faults;
};

/**
 * struct mrsoft_demand - memory that is not pinned; all I unless said otherwise
 * @region: what its ranges share
 * @range: the one range; NULL: implicit, and what follows is used
 * @root: the core's part; no notifier of its own, so @mm is kept by us
 * @mm: whose memory it is, grabbed
 * @lock: the children
 * @children: address >> CHILD_SHIFT -> struct child; written under @lock, read
 *	under @lock or inside the region
 * @num: of them (@lock)
 * @hand: index behind the last one that had to go (@lock)
 * @reap: drops what is empty
 */
struct mrsoft_demand {
	struct mrsoft_odp_region region;
	struct mrsoft_odp *range;
	struct ib_umem_odp *root;
	struct mm_struct *mm;
	struct mutex lock;	/* children, num, hand */
	struct xarray children;
	unsigned int num;
	unsigned long hand;
	struct work_struct reap;
};

/* Nobody faults it.  Its pages are withdrawn, if it has any. */
static void child_drop(struct mrsoft_demand *demand, unsigned long index)
{
	struct child *child = xa_erase(&demand->children, index);

	lockdep_assert_held(&demand->lock);
	/* copies that found it */
	mrsoft_odp_quiesce(&demand->region);
	mrsoft_odp_free(child->odp);
	kfree(child);
	demand->num--;
}

static void reap(struct work_struct *work)
{
	struct mrsoft_demand *demand = container_of(work, struct mrsoft_demand,
						    reap);
	struct child *child;
	unsigned long index;

	mutex_lock(&demand->lock);
	xa_for_each(&demand->children, index, child)
		if (!child->faults && mrsoft_odp_empty(child->odp))
			child_drop(demand, index);
	mutex_unlock(&demand->lock);
}

static void emptied(struct mrsoft_odp_region *region)
{
	struct mrsoft_demand *demand = container_of(region,
						    struct mrsoft_demand,
						    region);

	queue_work(system_dfl_wq, &demand->reap);
}

/* One that nobody faults goes, the longest spared first; its pages come again. */
static void make_room(struct mrsoft_demand *demand)
{
	struct child *child;
	unsigned long index;
	int turn;

	lockdep_assert_held(&demand->lock);
	for (turn = 0; turn < 2; turn++) {
		xa_for_each_start(&demand->children, index, child,
				  demand->hand) {
			if (child->faults)
				continue;
			child_drop(demand, index);
			demand->hand = index + 1;
			return;
		}
		demand->hand = 0;
	}
}

static struct child *child_new(struct mrsoft_demand *demand,
			       unsigned long index)
{
	struct child *child;
	int err;

	lockdep_assert_held(&demand->lock);
	/* each that cannot go is a fault that runs: they are not many */
	if (demand->num >= MRSOFT_MAX_CHILDREN)
		make_room(demand);
	child = kzalloc_obj(*child, GFP_KERNEL_ACCOUNT);
	if (!child)
		return ERR_PTR(-ENOMEM);
	child->odp = mrsoft_odp_child(&demand->region, demand->root,
				      (u64)index << CHILD_SHIFT, CHILD_SIZE);
	if (IS_ERR(child->odp)) {
		err = PTR_ERR(child->odp);
		goto err_free;
	}
	err = xa_err(xa_store(&demand->children, index, child, GFP_KERNEL));
	if (err)
		goto err_odp;
	demand->num++;
	return child;

err_odp:
	mrsoft_odp_free(child->odp);
err_free:
	kfree(child);
	return ERR_PTR(err);
}

/* The child there, old or new, kept until child_put(). */
static struct child *child_get(struct mrsoft_demand *demand,
			       unsigned long index)
{
	struct child *child;

	mutex_lock(&demand->lock);
	child = xa_load(&demand->children, index);
	if (!child)
		child = child_new(demand, index);
	if (!IS_ERR(child))
		child->faults++;
	mutex_unlock(&demand->lock);
	return child;
}

/* A fault in vain leaves nothing behind. */
static void child_put(struct mrsoft_demand *demand, unsigned long index,
		      struct child *child)
{
	mutex_lock(&demand->lock);
	if (!--child->faults && mrsoft_odp_empty(child->odp))
		child_drop(demand, index);
	mutex_unlock(&demand->lock);
}

static int implicit_init(struct mrsoft_demand *demand, struct ib_device *ibdev,
			 int access)
{
	struct ib_umem_odp *root;

	root = ib_umem_odp_alloc_implicit(ibdev, access & ~IB_ACCESS_HUGETLB);
	if (IS_ERR(root))
		return PTR_ERR(root);
	/* what was registered, for a re-registration */
	root->umem.length = (size_t)U64_MAX;
	demand->root = root;
	get_device(&ibdev->dev);
	demand->mm = current->mm;
	mmgrab(demand->mm);
	mutex_init(&demand->lock);
	xa_init(&demand->children);
	INIT_WORK(&demand->reap, reap);
	return 0;
}

/* Faults have a reference of what is around this, so there is none. */
static void implicit_free(struct mrsoft_demand *demand)
{
	struct ib_device *ibdev = demand->root->umem.ibdev;
	struct child *child;
	unsigned long index;

	mutex_lock(&demand->lock);
	xa_for_each(&demand->children, index, child) {
		child_drop(demand, index);
		cond_resched();
	}
	mutex_unlock(&demand->lock);
	cancel_work_sync(&demand->reap);
	xa_destroy(&demand->children);
	mutex_destroy(&demand->lock);
	ib_umem_odp_release(demand->root);
	put_device(&ibdev->dev);
	mmdrop(demand->mm);
}

/**
 * mrsoft_demand_new - memory of the calling process, no page of it yet
 * @ibdev: the device
 * @start: user address of the first byte
 * @length: bytes, not 0; U64_MAX from 0 on: all that it has at any time, offsets
 *	are addresses
 * @access: IB_ACCESS_*, with IB_ACCESS_ON_DEMAND
 *
 * A range need not be mapped, now or ever.
 *
 * Context: process whose memory it is, sleeps.
 * Return: the memory or ERR_PTR: -ENOMEM; or as mrsoft_odp_new().
 */
struct mrsoft_demand *mrsoft_demand_new(struct ib_device *ibdev, u64 start,
					u64 length, int access)
{
	struct mrsoft_demand *demand;
	int err = 0;

	might_sleep();
	demand = kzalloc_obj(*demand, GFP_KERNEL_ACCOUNT);
	if (!demand)
		return ERR_PTR(-ENOMEM);
	if (mrsoft_demand_all(start, length, access)) {
		mrsoft_odp_region_init(&demand->region, emptied);
		err = implicit_init(demand, ibdev, access);
	} else {
		mrsoft_odp_region_init(&demand->region, NULL);
		demand->range = mrsoft_odp_new(&demand->region, ibdev, start,
					       length, access);
		if (IS_ERR(demand->range))
			err = PTR_ERR(demand->range);
	}
	if (!err)
		return demand;
	kfree(demand);
	return ERR_PTR(err);
}

/**
 * mrsoft_demand_free - let go of memory
 * @demand: nobody accesses it or faults any more
 *
 * Waits for notifiers that run now, which wait for nobody.
 *
 * Context: process, sleeps.
 */
void mrsoft_demand_free(struct mrsoft_demand *demand)
{
	if (demand->range)
		mrsoft_odp_free(demand->range);
	else
		implicit_free(demand);
	kfree(demand);
}

/**
 * mrsoft_demand_umem - the core's description
 * @demand: the memory
 *
 * Context: any.
 * Return: valid as long as @demand.
 */
struct ib_umem *mrsoft_demand_umem(struct mrsoft_demand *demand)
{
	if (demand->range)
		return mrsoft_odp_umem(demand->range);
	return &demand->root->umem;
}

/**
 * mrsoft_demand_region - counts of pages that came and went
 * @demand: the memory
 *
 * Context: any.
 * Return: valid as long as @demand.
 */
const struct mrsoft_odp_region *
mrsoft_demand_region(const struct mrsoft_demand *demand)
{
	return &demand->region;
}

/* The range that has the byte at *@offset, which becomes one in the range. */
static struct mrsoft_odp *range_at(struct mrsoft_demand *demand, u64 *offset)
{
	struct child *child;

	if (demand->range)
		return demand->range;
	child = xa_load(&demand->children, *offset >> CHILD_SHIFT);
	*offset &= CHILD_SIZE - 1;
	return child ? child->odp : NULL;
}

/**
 * mrsoft_demand_map - reach the bytes from an offset on
 * @demand: the memory
 * @offset: bytes from its first byte, below its length
 * @len: in: bytes wanted, not 0; out: bytes that can be reached in one go
 * @write: they will be written
 *
 * Until mrsoft_demand_unmap() the page stays the process's page.  Also refused for
 * the moment in which other pages of the region are withdrawn.
 *
 * Context: any.  No sleep until mrsoft_demand_unmap().
 * Return: address of the first byte; NULL: a fault is needed.
 */
void *mrsoft_demand_map(struct mrsoft_demand *demand, u64 offset, size_t *len,
			bool write)
{
	struct mrsoft_odp *odp;
	void *addr = NULL;

	if (!mrsoft_odp_enter(&demand->region))
		return NULL;
	odp = range_at(demand, &offset);
	if (odp)
		addr = mrsoft_odp_map(odp, offset, len, write);
	if (!addr)
		mrsoft_odp_leave(&demand->region);
	return addr;
}

/**
 * mrsoft_demand_unmap - undo mrsoft_demand_map()
 * @demand: the memory
 * @addr: what it returned, not NULL; newest mapping first
 *
 * Context: as mrsoft_demand_map().
 */
void mrsoft_demand_unmap(struct mrsoft_demand *demand, void *addr)
{
	kunmap_local(addr);
	mrsoft_odp_leave(&demand->region);
}

/* Bytes from @offset on, at most @length, that are in the same range. */
static u64 piece(const struct mrsoft_demand *demand, u64 offset, u64 length)
{
	if (demand->range)
		return length;
	return min_t(u64, length, CHILD_SIZE - (offset & (CHILD_SIZE - 1)));
}

/**
 * mrsoft_demand_present - could all of these bytes be mapped now?
 * @demand: the memory
 * @offset: bytes from its first byte
 * @length: bytes, inside
 * @write: they would be written
 *
 * Context: any.  Only a hint.
 * Return: 1: each of the pages is there; 0: one is not; -EAGAIN: others of the
 * region are being withdrawn, so that nobody may look.
 */
int mrsoft_demand_present(struct mrsoft_demand *demand, u64 offset, u64 length,
			  bool write)
{
	struct mrsoft_odp *odp;
	bool present = true;
	u64 n, at;

	if (!mrsoft_odp_enter(&demand->region))
		return -EAGAIN;
	for (; present && length; offset += n, length -= n) {
		n = piece(demand, offset, length);
		at = offset;
		odp = range_at(demand, &at);
		present = odp && mrsoft_odp_present(odp, at, n, write);
	}
	mrsoft_odp_leave(&demand->region);
	return present;
}

static int fault_child(struct mrsoft_demand *demand, u64 offset, u64 length,
		       unsigned int how)
{
	unsigned long index = offset >> CHILD_SHIFT;
	struct child *child = child_get(demand, index);
	int err;

	if (IS_ERR(child))
		return PTR_ERR(child);
	err = mrsoft_odp_fault(child->odp, offset & (CHILD_SIZE - 1), length,
			       how);
	child_put(demand, index, child);
	return err;
}

static int fault_implicit(struct mrsoft_demand *demand, u64 offset, u64 length,
			  unsigned int how)
{
	int err = 0;
	u64 n;

	/* no process has memory there */
	if (length > demand->mm->task_size ||
	    offset > demand->mm->task_size - length)
		return -EFAULT;
	/* for new children; see mrsoft_odp_fault() */
	if (!mmget_not_zero(demand->mm))
		return -EFAULT;
	for (; length && !err; offset += n, length -= n) {
		n = piece(demand, offset, length);
		err = fault_child(demand, offset, n, how);
	}
	mmput_async(demand->mm);
	return err;
}

/**
 * mrsoft_demand_fault - have pages of the process present
 * @demand: the memory, which the caller keeps: no hold of a key does
 * @offset: bytes from its first byte
 * @length: bytes, inside
 * @how: MRSOFT_FAULT_*
 *
 * Context: process, sleeps; no lock of ours.
 * Return: as mrsoft_odp_fault().
 */
int mrsoft_demand_fault(struct mrsoft_demand *demand, u64 offset, u64 length,
			unsigned int how)
{
	if (demand->range)
		return mrsoft_odp_fault(demand->range, offset, length, how);
	return fault_implicit(demand, offset, length, how);
}
