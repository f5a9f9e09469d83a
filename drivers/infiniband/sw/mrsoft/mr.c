// SPDX-License-Identifier: GPL-2.0
/*
 * mr.c - memory regions: register, re-register, deregister, fast registration
 *
 * Owns:     the states of a region and what may change them.
 * Not here: the table and its check (key.c), where bytes are (pages.c), windows
 *           (mw.c), verbs arguments.
 * Locks:    key.lock (mutex) orders changes of a region; accesses do not take it.
 * Lifetime: published -> unpublished -> drained -> unpinned -> freed after RCU.
 * Context:  process, sleeps.
 * Spec:     IBA Vol 1, 10.6 (memory management), 11.2.8 (verbs)
 * Tests:    kunit/mr_kunit.c, kunit/model_kunit.c
 */
#include <linux/bug.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "demand.h"
#include "limits.h"
#include "mr.h"
#include "trace.h"

/* Granted by the device; the optional range is accepted and forgotten. */
#define MR_ACCESS	(IB_ACCESS_LOCAL_WRITE | MRSOFT_GRANTED_RIGHTS | \
			 IB_ACCESS_MW_BIND)
#define MR_ACCESS_KNOWN	(MR_ACCESS | IB_ZERO_BASED | IB_ACCESS_HUGETLB | \
			 IB_ACCESS_OPTIONAL)

static int access_check(int access)
{
	if (access & ~MR_ACCESS_KNOWN)
		return -EOPNOTSUPP;
	if (access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IB_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return 0;
}

/* A user's memory need not be pinned, where the kernel can do without. */
static int user_access_check(int access)
{
	if (MRSOFT_ODP)
		access &= ~IB_ACCESS_ON_DEMAND;
	return access_check(access);
}

static struct mrsoft_pages *user_pages(struct ib_device *ibdev, u64 start,
				       u64 length, int access)
{
	if (access & IB_ACCESS_ON_DEMAND)
		return mrsoft_pages_odp(ibdev, start, length, access);
	return mrsoft_pages_pin(ibdev, start, length, access);
}

static int range_check(u64 length, u64 iova)
{
	if (!length || length > MRSOFT_MAX_MR_SIZE)
		return -EINVAL;
	if (length - 1 > U64_MAX - iova)
		return -EINVAL;
	return 0;
}

static int user_range_check(u64 start, u64 length, u64 iova, int access)
{
	/* all of a process: where the process has it */
	if (mrsoft_demand_all(start, length, access))
		return iova ? -EINVAL : 0;
	return range_check(length, iova);
}

/*
 * An MR around @pages, in the table and counted in its PD, not published.
 * @pages may be an ERR_PTR(); they are freed if this fails.
 */
static struct mrsoft_mr *mr_create(struct mrsoft_table *table,
				   struct mrsoft_pd *pd,
				   enum mrsoft_key_kind kind,
				   struct mrsoft_pages *pages)
{
	struct mrsoft_mr *mr;
	int err;

	if (IS_ERR(pages))
		return ERR_CAST(pages);
	mr = kzalloc_obj(*mr, GFP_KERNEL_ACCOUNT);
	if (!mr) {
		err = -ENOMEM;
		goto err_pages;
	}
	mrsoft_key_init(&mr->key, kind, pd);
	mr->key.pages = pages;
	err = mrsoft_key_insert(table, &mr->key);
	if (err)
		goto err_mr;
	atomic_inc(&pd->regions);
	mr->ib.lkey = mr->key.key;
	mr->ib.rkey = mr->key.key;
	mr->ib.page_size = PAGE_SIZE;
	return mr;

err_mr:
	kfree(mr);
err_pages:
	mrsoft_pages_put(pages);
	return ERR_PTR(err);
}

static void mr_set_range(struct mrsoft_mr *mr, u64 iova, u64 length)
{
	mr->key.iova = iova;
	mr->key.length = length;
	mr->ib.iova = iova;
	mr->ib.length = length;
}

/* A checked range of @pages, as mr_create(), published; work on it @began. */
static struct mrsoft_mr *mr_register(struct mrsoft_table *table,
				     struct mrsoft_pd *pd,
				     enum mrsoft_key_kind kind,
				     struct mrsoft_pages *pages, u64 length,
				     u64 iova, int access, u64 began)
{
	struct mrsoft_mr *mr = mr_create(table, pd, kind, pages);

	if (IS_ERR(mr))
		return mr;
	mr_set_range(mr, iova, length);
	mr->key.access = access & (MR_ACCESS | IB_ACCESS_ON_DEMAND);
	mrsoft_key_publish(&mr->key);
	trace_mrsoft_register(&mr->key, ktime_get_ns() - began);
	return mr;
}

/**
 * mrsoft_mr_reg_user - register memory of the calling process
 * @table: the device's table
 * @pd: whose region it becomes
 * @start: user address of the first byte
 * @length: bytes; U64_MAX from 0 on with IB_ACCESS_ON_DEMAND: all of the process
 * @iova: address of the first byte in work requests; 0 with IB_ZERO_BASED, and of
 *	all of the process
 * @access: IB_ACCESS_*
 *
 * Context: process, sleeps.
 * Return: the region or ERR_PTR: -EINVAL: empty, too long, wraps, or remote
 * write without local write; -EOPNOTSUPP: unknown access bits, or on demand on a
 * kernel without; -ENOMEM; or what pinning says, unchanged.  IBA 11.2.8.2.
 */
struct mrsoft_mr *mrsoft_mr_reg_user(struct mrsoft_table *table,
				     struct mrsoft_pd *pd, u64 start,
				     u64 length, u64 iova, int access)
{
	u64 began = ktime_get_ns();
	int err;

	if (access & IB_ZERO_BASED)
		iova = 0;
	err = user_access_check(access);
	if (!err)
		err = user_range_check(start, length, iova, access);
	if (err)
		return ERR_PTR(err);

	return mr_register(table, pd, MRSOFT_KEY_MR_USER,
			   user_pages(pd->ib.device, start, length, access),
			   length, iova, access, began);
}

/**
 * mrsoft_mr_reg_pages - a region of memory that is no part of a process
 * @table: the device's table
 * @pd: whose region it becomes
 * @kind: MRSOFT_KEY_MR_DMABUF or MRSOFT_KEY_MR_DM
 * @pages: where its bytes are, at least @length, or an ERR_PTR() to be returned;
 *	put if this fails
 * @length: bytes
 * @iova: address of the first byte in work requests; 0 with IB_ZERO_BASED
 * @access: IB_ACCESS_*
 *
 * Context: process, sleeps.
 * Return: the region or ERR_PTR: -EINVAL, -EOPNOTSUPP, -ENOMEM as
 * mrsoft_mr_reg_user(), but on demand is never known.  IBA 11.2.8.2.
 */
struct mrsoft_mr *mrsoft_mr_reg_pages(struct mrsoft_table *table,
				      struct mrsoft_pd *pd,
				      enum mrsoft_key_kind kind,
				      struct mrsoft_pages *pages, u64 length,
				      u64 iova, int access)
{
	u64 began = ktime_get_ns();
	int err;

	if (IS_ERR(pages))
		return ERR_CAST(pages);
	if (access & IB_ZERO_BASED)
		iova = 0;
	err = access_check(access);
	if (!err)
		err = range_check(length, iova);
	if (err) {
		mrsoft_pages_put(pages);
		return ERR_PTR(err);
	}

	return mr_register(table, pd, kind, pages, length, iova, access, began);
}

/**
 * mrsoft_mr_get_dma - all of the kernel's memory, for its own consumers
 * @table: the device's table
 * @pd: a PD of the kernel
 * @access: IB_ACCESS_*
 *
 * A user's QP is in another PD, so it cannot use this key.
 *
 * Context: process, sleeps.
 * Return: the region or ERR_PTR: -EINVAL, -EOPNOTSUPP: access; -ENOMEM.
 */
struct mrsoft_mr *mrsoft_mr_get_dma(struct mrsoft_table *table,
				    struct mrsoft_pd *pd, int access)
{
	struct mrsoft_mr *mr;
	int err = access_check(access);

	if (err)
		return ERR_PTR(err);
	mr = mr_create(table, pd, MRSOFT_KEY_MR_DMA, mrsoft_pages_kernel());
	if (IS_ERR(mr))
		return mr;
	mr_set_range(mr, 0, U64_MAX);
	mr->key.access = access & MR_ACCESS & ~IB_ACCESS_MW_BIND;
	mrsoft_key_publish(&mr->key);
	trace_mrsoft_register(&mr->key, 0);
	return mr;
}

/**
 * mrsoft_mr_alloc_fast - a region for fast registration, not valid yet
 * @table: the device's table
 * @pd: whose region it becomes
 * @max_pages: MR pages that it can map, with @gaps entries
 * @gaps: entries may begin and end anywhere
 *
 * Context: process, sleeps.
 * Return: the region or ERR_PTR: -EINVAL: none or too many pages; -ENOMEM.
 */
struct mrsoft_mr *mrsoft_mr_alloc_fast(struct mrsoft_table *table,
				       struct mrsoft_pd *pd, u32 max_pages,
				       bool gaps)
{
	if (!max_pages || max_pages > MRSOFT_MAX_FAST_REG_PAGES)
		return ERR_PTR(-EINVAL);
	return mr_create(table, pd, MRSOFT_KEY_MR_FAST,
			 mrsoft_pages_list(max_pages, gaps));
}

/* A kernel consumer's region ends in whatever process is there. */
static const struct mrsoft_who *by_consumer(const struct mrsoft_key *key)
{
	return key->who.pid ? NULL : &key->who;
}

static int refuse_busy(struct mrsoft_key *key, const char *op)
{
	mrsoft_diary_refuse(key->table->stats, &(struct mrsoft_refusal){
		.reason = MRSOFT_R_MR_BUSY, .who = &key->who, .op = op,
		.key = key->key, .addr = key->iova, .length = key->length,
	});
	return -EBUSY;
}

/**
 * mrsoft_mr_dereg - deregister a region
 * @mr: the region; gone on success
 *
 * Unpublish, drain, free: on success no key resolves to the region, no copy
 * through it is running or will ever run, its pages are unpinned and its PD
 * does not count it.  Waits only for copies that run now, and for whoever
 * is changing this entry, which is short for the same reason.
 *
 * Context: process, sleeps.
 * Return: 0; -EBUSY: windows are bound, nothing has changed.  IBA 11.2.8.5.
 */
int mrsoft_mr_dereg(struct mrsoft_mr *mr)
{
	struct mrsoft_key *key = &mr->key;
	u64 start = ktime_get_ns(), waited;

	might_sleep();
	mutex_lock(&key->lock);
	if (!mrsoft_key_claim(key)) {
		mutex_unlock(&key->lock);
		trace_mrsoft_deregister(key->key, -EBUSY,
					ktime_get_ns() - start, 0);
		return refuse_busy(key, "deregister");
	}
	key->dead = true;
	waited = ktime_get_ns();
	mrsoft_key_unpublish(key);
	waited = ktime_get_ns() - waited;
	mutex_unlock(&key->lock);

	mrsoft_diary_end(key->table->stats, key->key, MRSOFT_END_DEREG,
			 by_consumer(key));
	mrsoft_key_remove(key);
	mrsoft_pages_put(key->pages);
	trace_mrsoft_deregister(key->key, 0, ktime_get_ns() - start, waited);
	atomic_dec(&key->pd->regions);
	/* lookups and an invalidate that came too late may look at the head */
	mrsoft_key_put(key);
	return 0;
}

/* New pages for a rereg, NULL if the old ones do.  Nothing has changed yet. */
static struct mrsoft_pages *rereg_pages(struct mrsoft_mr *mr, int flags,
					u64 start, u64 length, int access,
					struct mrsoft_pd *pd)
{
	struct mrsoft_pages *pages = mr->key.pages;

	if (flags & IB_MR_REREG_TRANS)
		return user_pages(pd->ib.device, start, length, access);
	if ((ib_access_writable(access) && !mrsoft_pages_writable(pages)) ||
	    (access ^ mr->key.access) & IB_ACCESS_ON_DEMAND)
		return mrsoft_pages_repin(pages, access);
	return NULL;
}

/* @access: what it has afterwards */
static int rereg_check(const struct mrsoft_mr *mr, int flags, u64 start,
		       u64 length, u64 iova, int access)
{
	int err = 0;

	/* a rereg names addresses of a process, which a buffer has not */
	if (mr->key.kind == MRSOFT_KEY_MR_DMABUF)
		return -EOPNOTSUPP;
	if (mr->key.kind != MRSOFT_KEY_MR_USER)
		return -EINVAL;
	if (!flags)
		return -EINVAL;
	if (flags & ~IB_MR_REREG_SUPPORTED)
		return -EOPNOTSUPP;
	if (flags & IB_MR_REREG_ACCESS)
		err = user_access_check(access);
	if (!err && flags & IB_MR_REREG_TRANS)
		err = user_range_check(start, length, iova, access);
	return err;
}

/**
 * mrsoft_mr_rereg - change PD, access or translation of a region
 * @mr: a user's region
 * @flags: IB_MR_REREG_*, any combination; the rest is used as it says
 * @start: user address of the first byte
 * @length: bytes
 * @iova: address of the first byte in work requests; 0 with IB_ZERO_BASED
 * @access: IB_ACCESS_*
 * @pd: the new PD
 *
 * The key stays the same.  Accesses while the region changes are refused or see
 * all of the old or all of the new one.
 *
 * Context: process whose memory it is, sleeps.  The core keeps dereg of @mr away
 * meanwhile (the uobject is locked for writing).
 * Return: 0, or the region is as before: -EBUSY: windows are bound; -EOPNOTSUPP: a
 * dma-buf, or as mrsoft_mr_reg_user(); -EINVAL: not a user's region; -EACCES: write
 * access to memory that another process pinned for reading; or as
 * mrsoft_mr_reg_user().  IBA 11.2.8.6.
 */
int mrsoft_mr_rereg(struct mrsoft_mr *mr, int flags, u64 start, u64 length,
		    u64 iova, int access, struct mrsoft_pd *pd)
{
	struct mrsoft_key *key = &mr->key;
	struct mrsoft_pages *pages;
	int err;

	might_sleep();
	if (flags & IB_MR_REREG_ACCESS && access & IB_ZERO_BASED)
		iova = 0;

	mutex_lock(&key->lock);
	if (!(flags & IB_MR_REREG_ACCESS))
		access = key->access;
	if (!(flags & IB_MR_REREG_PD))
		pd = key->pd;
	err = rereg_check(mr, flags, start, length, iova, access);
	if (err)
		goto unlock;
	pages = rereg_pages(mr, flags, start, length, access, pd);
	if (IS_ERR(pages)) {
		err = PTR_ERR(pages);
		goto unlock;
	}
	if (!mrsoft_key_claim(key)) {
		err = refuse_busy(key, "reregister");
		goto free_pages;
	}

	mrsoft_key_unpublish(key);
	if (pages)
		swap(key->pages, pages);
	if (flags & IB_MR_REREG_TRANS)
		mr_set_range(mr, iova, length);
	key->access = access & (MR_ACCESS | IB_ACCESS_ON_DEMAND);
	atomic_inc(&pd->regions);
	atomic_dec(&key->pd->regions);
	key->pd = pd;
	mrsoft_key_publish(key);
	mrsoft_key_release(key);
free_pages:
	if (pages)
		mrsoft_pages_put(pages);
unlock:
	mutex_unlock(&key->lock);
	return err;
}

/**
 * mrsoft_mr_paging - what came and went
 * @mr: a region
 * @paging: out: since it was registered, or got its pages by a re-registration
 *
 * Context: process, sleeps: for a re-registration that runs.
 * Return: 0; -ENODATA: its pages stay; -EINTR: killed.
 */
int mrsoft_mr_paging(struct mrsoft_mr *mr, struct mrsoft_paging *paging)
{
	const struct mrsoft_odp_region *region;

	/* a re-registration frees the counts with the pages */
	if (mutex_lock_killable(&mr->key.lock))
		return -EINTR;
	region = mrsoft_pages_region(mr->key.pages);
	if (region)
		*paging = (struct mrsoft_paging){
			.faults = atomic64_read(&region->faults),
			.prefetches = atomic64_read(&region->prefetches),
			.invalidations = atomic64_read(&region->invalidations),
		};
	mutex_unlock(&mr->key.lock);
	return region ? 0 : -ENODATA;
}

/**
 * mrsoft_mr_table - memory of a region's lookup table
 * @mr: a region
 * @bytes: out: see mrsoft_pages_table()
 *
 * Context: process, sleeps: for a re-registration that runs.
 * Return: 0; -EINTR: killed.
 */
int mrsoft_mr_table(struct mrsoft_mr *mr, u64 *bytes)
{
	/* a re-registration frees the old table */
	if (mutex_lock_killable(&mr->key.lock))
		return -EINTR;
	*bytes = mrsoft_pages_table(mr->key.pages);
	mutex_unlock(&mr->key.lock);
	return 0;
}

/* --- fast registration ---------------------------------------------------- */

/**
 * mrsoft_mr_map_sg - say what the next REG_MR will map
 * @mr: from mrsoft_mr_alloc_fast(), with @mr->ib.page_size set by the core
 * @sg: DMA mapped entries
 * @nents: entries of @sg
 * @sg_offset: bytes to skip in the first entry, may be NULL
 *
 * Does not touch what a valid key maps now.
 *
 * Context: any.
 * Return: entries taken, or -EINVAL, -ENOMEM as mrsoft_pages_list_map().
 */
int mrsoft_mr_map_sg(struct mrsoft_mr *mr, struct scatterlist *sg, int nents,
		     unsigned int *sg_offset)
{
	if (mr->key.kind != MRSOFT_KEY_MR_FAST)
		return -EINVAL;
	return mrsoft_pages_list_map(mr->key.pages, &mr->ib, sg, nents,
				     sg_offset);
}

static enum mrsoft_reason fast_reg_locked(struct mrsoft_mr *mr,
					  const struct mrsoft_pd *pd,
					  u32 new_key, int access)
{
	struct mrsoft_key *key = &mr->key;
	u64 iova, length;

	if (key->dead)
		return MRSOFT_R_KEY_STALE;
	if (key->pd != pd)
		return MRSOFT_R_WRONG_PD;
	if (key->published)
		return MRSOFT_R_KEY_INVALID;
	if (new_key >> 8 != key->index)
		return MRSOFT_R_KEY_UNKNOWN;
	switch (access_check(access)) {
	case 0:
		break;
	case -EINVAL:
		return MRSOFT_R_NO_LOCAL_WRITE;
	default:
		return MRSOFT_R_OPCODE;
	}
	mrsoft_pages_list_commit(key->pages, &iova, &length);
	/* the ULP may have chosen other addresses for the same bytes */
	key->iova = access & IB_ZERO_BASED ? 0 : mr->ib.iova;
	key->length = length;
	key->access = access & MR_ACCESS;
	WRITE_ONCE(key->key, new_key);
	mrsoft_key_publish(key);
	return MRSOFT_R_NONE;
}

static enum mrsoft_reason refuse_reg(struct mrsoft_table *table,
				     const struct mrsoft_mr *mr, u32 key,
				     enum mrsoft_reason reason)
{
	return mrsoft_diary_refuse(table->stats, &(struct mrsoft_refusal){
		.reason = reason, .who = &mr->key.who, .op = "REG_MR",
		.key = key, .addr = mr->ib.iova, .length = mr->ib.length,
	});
}

/**
 * mrsoft_mr_fast_reg - REG_MR: make a mapped region valid
 * @table: the device's table
 * @pd: of the QP that executes it
 * @mr: the region, not valid now
 * @key: its key from now on; differs from the last one in the low byte only
 * @access: IB_ACCESS_*
 *
 * Without a new map since the last time the old mapping becomes valid again.
 * A refusal is counted here.
 *
 * Context: process, sleeps.
 * Return: MRSOFT_R_NONE; MRSOFT_R_KEY_KIND: not for fast registration;
 * MRSOFT_R_WRONG_PD; MRSOFT_R_KEY_INVALID: valid already;
 * MRSOFT_R_KEY_UNKNOWN: @key is not one of this region;
 * MRSOFT_R_NO_LOCAL_WRITE: remote write or atomic without it;
 * MRSOFT_R_OPCODE: unknown access bits.  IBA 10.6.3.
 */
enum mrsoft_reason mrsoft_mr_fast_reg(struct mrsoft_table *table,
				      const struct mrsoft_pd *pd,
				      struct mrsoft_mr *mr, u32 key,
				      int access)
{
	enum mrsoft_reason reason;

	might_sleep();
	if (mr->key.kind != MRSOFT_KEY_MR_FAST || mr->key.table != table)
		return refuse_reg(table, mr, key, MRSOFT_R_KEY_KIND);
	mutex_lock(&mr->key.lock);
	reason = fast_reg_locked(mr, pd, key, access);
	mutex_unlock(&mr->key.lock);
	if (reason)
		return refuse_reg(table, mr, key, reason);
	trace_mrsoft_register(&mr->key, 0);
	return MRSOFT_R_NONE;
}

static enum mrsoft_reason invalidate_locked(struct mrsoft_key *key,
					    const struct mrsoft_pd *pd,
					    u32 rkey, bool remote)
{
	lockdep_assert_held(&key->lock);
	if (key->dead || key->key != rkey)
		return MRSOFT_R_KEY_STALE;
	if (key->pd != pd)
		return MRSOFT_R_WRONG_PD;
	if (!key->published)
		return MRSOFT_R_KEY_INVALID;
	/* a region without remote rights has no rkey that a peer could name */
	if (remote && !(key->access & MRSOFT_REMOTE_RIGHTS))
		return MRSOFT_R_KEY_KIND;
	if (!mrsoft_key_claim(key))
		return MRSOFT_R_MR_BUSY;
	mrsoft_key_unpublish(key);
	mrsoft_key_release(key);
	return MRSOFT_R_NONE;
}

/**
 * mrsoft_mr_invalidate - make a fast-registered region not valid
 * @key: its entry, from mrsoft_key_get()
 * @pd: of the QP that executes it
 * @rkey: the full key that was named
 * @remote: a peer named it
 *
 * On success no copy through the old key is running any more.  The caller
 * counts a refusal.
 *
 * Context: process, sleeps.
 * Return: MRSOFT_R_NONE; MRSOFT_R_KEY_KIND: a user's or DMA region, or remote and
 * without remote rights; MRSOFT_R_KEY_STALE: another key is the live one,
 * or the region is gone; MRSOFT_R_WRONG_PD; MRSOFT_R_KEY_INVALID: not valid
 * now; MRSOFT_R_MR_BUSY: windows are bound.  Nothing has changed then.
 * IBA 10.6.5.
 */
enum mrsoft_reason mrsoft_mr_invalidate(struct mrsoft_key *key,
					const struct mrsoft_pd *pd, u32 rkey,
					bool remote)
{
	enum mrsoft_reason reason;

	might_sleep();
	if (key->kind != MRSOFT_KEY_MR_FAST)
		return MRSOFT_R_KEY_KIND;
	mutex_lock(&key->lock);
	reason = invalidate_locked(key, pd, rkey, remote);
	mutex_unlock(&key->lock);
	return reason;
}
