// SPDX-License-Identifier: GPL-2.0
/*
 * mw.c - memory windows: bind, unbind, invalidate
 *
 * Owns:     the states of a window, which region it owns, which QP bound it.
 * Not here: the check of an access (key.c), regions (mr.c), completions.
 * Locks:    key.lock (mutex) of the window, inside it binder->lock (spin).  The
 *           lock of the region is not taken: a hold and an owner do.
 * Lifetime: free <-> bound -> dead -> freed after RCU; while bound it owns its
 *           region, so that dereg says busy.
 * Context:  process, sleeps.
 * Spec:     IBA Vol 1, 10.6.7 (memory windows), 11.2.9
 * Tests:    kunit/mw_kunit.c, kunit/model_kunit.c
 */
#include <linux/bug.h>
#include <linux/slab.h>

#include "mw.h"
#include "trace.h"

/*
 * Rights that a bind may name.  Local ones are taken, as other devices do, and
 * mean nothing: there is no local access through a window.
 */
#define MW_ACCESS_KNOWN	(MRSOFT_GRANTED_RIGHTS | IB_ACCESS_LOCAL_WRITE | \
			 IB_ZERO_BASED | IB_ACCESS_OPTIONAL)

/**
 * struct mw_target - a region that a window may be bound to
 * @mr: the region, owned
 * @pages: where its bytes are
 * @base: offset in @pages of the window's first byte
 *
 * Copied under a hold.  The owner keeps them true after the hold.
 */
struct mw_target {
	struct mrsoft_key *mr;
	struct mrsoft_pages *pages;
	u64 base;
};

static struct mrsoft_window *to_window(struct mrsoft_key *key)
{
	return container_of(key, struct mrsoft_window, key);
}

/**
 * mrsoft_mw_binder_init - a QP that may bind windows
 * @binder: memory for it
 * @qpn: the QP's number
 * @pd: the QP's PD
 *
 * Context: any.
 */
void mrsoft_mw_binder_init(struct mrsoft_mw_binder *binder, u32 qpn,
			   struct mrsoft_pd *pd)
{
	*binder = (struct mrsoft_mw_binder){ .qpn = qpn, .pd = pd };
	spin_lock_init(&binder->lock);
	INIT_LIST_HEAD(&binder->windows);
}

static void binder_add(struct mrsoft_mw_binder *binder,
		       struct mrsoft_window *window)
{
	lockdep_assert_held(&window->key.lock);
	window->binder = binder;
	spin_lock(&binder->lock);
	list_add(&window->entry, &binder->windows);
	spin_unlock(&binder->lock);
}

static void binder_del(struct mrsoft_window *window)
{
	struct mrsoft_mw_binder *binder = window->binder;

	lockdep_assert_held(&window->key.lock);
	if (!binder)
		return;
	window->binder = NULL;
	spin_lock(&binder->lock);
	list_del(&window->entry);
	/* from here on a drain may end and the QP be freed */
	spin_unlock(&binder->lock);
}

/* The old key is dead and no copy through it runs; then the region is let go. */
static void window_unbind(struct mrsoft_window *window, enum mrsoft_end how,
			  const struct mrsoft_who *by)
{
	struct mrsoft_key *mr = window->mr;

	lockdep_assert_held(&window->key.lock);
	if (!mr)
		return;
	mrsoft_key_unpublish(&window->key);
	binder_del(window);
	window->key.qpn = 0;
	window->mr = NULL;
	trace_mrsoft_unbind(window->key.key, READ_ONCE(mr->key), how);
	mrsoft_diary_end(window->key.table->stats, window->key.key, how, by);
	mrsoft_key_owner_put(mr);
}

/**
 * mrsoft_mw_binder_drain - a QP ends: kill the windows bound through it
 * @binder: the QP's; nobody binds through it any more
 *
 * Windows of type 2 belong to the QP that bound them; they become free.  Waits for
 * copies through them that run now, and for whoever is changing one of them,
 * which is short for the same reason.
 *
 * Context: process, sleeps.
 */
void mrsoft_mw_binder_drain(struct mrsoft_mw_binder *binder)
{
	struct mrsoft_window *window;

	might_sleep();
	for (;;) {
		spin_lock(&binder->lock);
		window = list_first_entry_or_null(&binder->windows,
						  struct mrsoft_window, entry);
		/* on the list, so its creator has not put it yet */
		if (window)
			refcount_inc(&window->key.users);
		spin_unlock(&binder->lock);
		if (!window)
			return;

		/* lock order: the window's lock is outside of the binder's */
		mutex_lock(&window->key.lock);
		if (window->binder == binder)
			window_unbind(window, MRSOFT_END_QP_GONE, binder->who);
		mutex_unlock(&window->key.lock);
		mrsoft_key_put(&window->key);
	}
}

/**
 * mrsoft_mw_init - a new window, not bound
 * @table: the device's table
 * @mw: memory for it; gets its first key
 * @pd: whose window it becomes
 * @type: IB_MW_TYPE_1 or IB_MW_TYPE_2
 *
 * Context: process, sleeps.
 * Return: 0; -EINVAL: no such type; -ENOMEM: no memory or no room.
 */
int mrsoft_mw_init(struct mrsoft_table *table, struct mrsoft_mw *mw,
		   struct mrsoft_pd *pd, enum ib_mw_type type)
{
	struct mrsoft_window *window;
	int err;

	if (type != IB_MW_TYPE_1 && type != IB_MW_TYPE_2)
		return -EINVAL;
	window = kzalloc_obj(*window, GFP_KERNEL_ACCOUNT);
	if (!window)
		return -ENOMEM;
	mrsoft_key_init(&window->key, type == IB_MW_TYPE_1 ?
			MRSOFT_KEY_MW_1 : MRSOFT_KEY_MW_2, pd);
	err = mrsoft_key_insert(table, &window->key);
	if (err)
		goto err_free;
	atomic_inc(&pd->regions);
	mw->window = window;
	mw->ib.rkey = window->key.key;
	mw->ib.type = type;
	return 0;

err_free:
	kfree(window);
	return err;
}

/**
 * mrsoft_mw_destroy - end a window, bound or not
 * @mw: the window; @mw->window is gone afterwards
 *
 * Context: process, sleeps: for copies through the window that run now.
 */
void mrsoft_mw_destroy(struct mrsoft_mw *mw)
{
	struct mrsoft_key *key = &mw->window->key;

	might_sleep();
	mutex_lock(&key->lock);
	/* a bind or drain that found it before gives up when it has the lock */
	key->dead = true;
	window_unbind(mw->window, MRSOFT_END_DEALLOC, NULL);
	mutex_unlock(&key->lock);

	mrsoft_key_remove(key);
	atomic_dec(&key->pd->regions);
	mw->window = NULL;
	mrsoft_key_put(key);
}

/* @mr is held. */
static enum mrsoft_reason region_check(const struct mrsoft_key *mr,
				       const struct mrsoft_pd *pd,
				       const struct mrsoft_bind *bind)
{
	if (mrsoft_key_is_mw(mr))
		return MRSOFT_R_KEY_KIND;
	if (mr->pd != pd)
		return MRSOFT_R_WRONG_PD;
	if (!(mr->access & IB_ACCESS_MW_BIND))
		return MRSOFT_R_NO_MW_BIND;
	if (bind->access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC) &&
	    !(mr->access & IB_ACCESS_LOCAL_WRITE))
		return MRSOFT_R_MW_RIGHTS;
	if (!mrsoft_key_covers(mr, bind->addr, bind->length))
		return MRSOFT_R_OUTSIDE;
	return MRSOFT_R_NONE;
}

/*
 * Find the region, check it, own it.  A dereg that claims the region first makes
 * owner_get fail; one that comes later finds the owner.  Either way what was
 * checked under the hold stays true while it is owned.
 */
static enum mrsoft_reason region_own(struct mrsoft_table *table,
				     const struct mrsoft_pd *pd,
				     const struct mrsoft_bind *bind,
				     struct mw_target *target)
{
	enum mrsoft_reason reason;
	struct mrsoft_key *mr;

	reason = mrsoft_key_enter(table, bind->mr_key, &mr);
	if (reason)
		return reason;
	reason = region_check(mr, pd, bind);
	if (!reason && !mrsoft_key_owner_get(mr))
		reason = MRSOFT_R_KEY_STALE;
	if (!reason)
		*target = (struct mw_target){
			.mr = mr,
			.pages = mr->pages,
			.base = mr->base + (bind->addr - mr->iova),
		};
	mrsoft_key_leave(mr);
	return reason;
}

static enum mrsoft_reason window_check(const struct mrsoft_window *window,
				       const struct mrsoft_mw_binder *binder,
				       const struct mrsoft_bind *bind)
{
	const struct mrsoft_key *key = &window->key;

	if (key->dead || key->key != bind->mw_key)
		return MRSOFT_R_KEY_STALE;
	if (key->pd != binder->pd)
		return MRSOFT_R_WRONG_PD;
	if (key->qpn && key->qpn != binder->qpn)
		return MRSOFT_R_WRONG_QP;
	/* "differs in the low byte only" */
	if (bind->new_key >> 8 != key->index)
		return MRSOFT_R_KEY_UNKNOWN;
	if (!bind->length)
		return MRSOFT_R_NONE;

	if (key->kind == MRSOFT_KEY_MW_2 && window->mr)
		return MRSOFT_R_MW_BOUND;
	if (window->used && bind->new_key == key->key)
		return MRSOFT_R_KEY_STALE;
	if (key->kind == MRSOFT_KEY_MW_1 && bind->access & IB_ZERO_BASED)
		return MRSOFT_R_MW_TYPE;
	if (bind->access & ~MW_ACCESS_KNOWN)
		return MRSOFT_R_MW_RIGHTS;
	return MRSOFT_R_NONE;
}

static void window_set(struct mrsoft_window *window,
		       struct mrsoft_mw_binder *binder,
		       const struct mrsoft_bind *bind,
		       const struct mw_target *target)
{
	struct mrsoft_key *key = &window->key;

	WRITE_ONCE(key->key, bind->new_key);
	key->access = bind->access & MRSOFT_REMOTE_RIGHTS;
	key->iova = bind->access & IB_ZERO_BASED ? 0 : bind->addr;
	key->length = bind->length;
	key->pages = target->pages;
	key->base = target->base;
	window->mr = target->mr;
	window->used = true;
	window->by_qpn = binder->qpn;
	if (key->kind == MRSOFT_KEY_MW_2) {
		key->qpn = binder->qpn;
		binder_add(binder, window);
	}
	mrsoft_key_publish(key);
	trace_mrsoft_bind(bind->new_key, bind->mr_key, binder->qpn, bind->addr,
			  bind->length);
}

/* With a refusal, *@culprit is the key that it is about. */
static enum mrsoft_reason bind_locked(struct mrsoft_table *table,
				      struct mrsoft_window *window,
				      struct mrsoft_mw_binder *binder,
				      const struct mrsoft_bind *bind,
				      u32 *culprit)
{
	struct mw_target target;
	enum mrsoft_reason reason;

	lockdep_assert_held(&window->key.lock);
	reason = window_check(window, binder, bind);
	if (reason)
		return reason;
	if (!bind->length) {
		window_unbind(window, MRSOFT_END_UNBOUND, binder->who);
		WRITE_ONCE(window->key.key, bind->new_key);
		return MRSOFT_R_NONE;
	}
	reason = region_own(table, binder->pd, bind, &target);
	if (reason) {
		*culprit = bind->mr_key;
		return reason;
	}
	/* nothing can fail now: type 1 leaves its old region for the new one */
	window_unbind(window, MRSOFT_END_UNBOUND, binder->who);
	window_set(window, binder, bind, &target);
	return MRSOFT_R_NONE;
}

/**
 * mrsoft_mw_bind - BIND_MW: bind a window to a range of a region, or unbind it
 * @table: the device's table
 * @binder: of the QP that executes it
 * @bind: what to bind; the window's key becomes @bind->new_key on success
 *
 * Type 1 may be bound again while it is bound.  Type 2 may not: it must be free,
 * and then is for @binder's QP alone.  On success no copy through the old key
 * is running any more; on a refusal the window is as before.  A refusal is
 * counted here.
 *
 * Context: process, sleeps.
 * Return: MRSOFT_R_NONE; window: MRSOFT_R_KEY_UNKNOWN, MRSOFT_R_KEY_STALE,
 * MRSOFT_R_KEY_KIND, MRSOFT_R_WRONG_PD, MRSOFT_R_WRONG_QP, MRSOFT_R_MW_BOUND,
 * MRSOFT_R_MW_TYPE (type 1 zero-based), MRSOFT_R_MW_RIGHTS; region: the same
 * of its key and MRSOFT_R_NO_MW_BIND, MRSOFT_R_OUTSIDE.  IBA 10.6.7.2.
 */
enum mrsoft_reason mrsoft_mw_bind(struct mrsoft_table *table,
				  struct mrsoft_mw_binder *binder,
				  const struct mrsoft_bind *bind)
{
	u32 culprit = bind->mw_key;
	enum mrsoft_reason reason;
	struct mrsoft_key *key;

	might_sleep();
	reason = mrsoft_key_get(table, bind->mw_key, &key);
	if (reason)
		goto refuse;
	if (mrsoft_key_is_mw(key)) {
		mutex_lock(&key->lock);
		reason = bind_locked(table, to_window(key), binder, bind,
				     &culprit);
		mutex_unlock(&key->lock);
	} else {
		reason = MRSOFT_R_KEY_KIND;
	}
	mrsoft_key_put(key);
	if (reason)
		goto refuse;
	return MRSOFT_R_NONE;

refuse:
	return mrsoft_diary_refuse(table->stats, &(struct mrsoft_refusal){
		.reason = reason, .qpn = binder->qpn, .who = binder->who,
		.op = "BIND_MW", .key = culprit, .addr = bind->addr,
		.length = bind->length,
	});
}

static enum mrsoft_end invalidated(bool remote)
{
	return remote ? MRSOFT_END_REMOTE_INV : MRSOFT_END_INVALIDATED;
}

static enum mrsoft_reason
window_invalidate_locked(struct mrsoft_window *window,
			 const struct mrsoft_mw_binder *binder, u32 rkey,
			 bool remote)
{
	struct mrsoft_key *key = &window->key;

	lockdep_assert_held(&key->lock);
	if (key->dead || key->key != rkey)
		return MRSOFT_R_KEY_STALE;
	if (key->pd != binder->pd)
		return MRSOFT_R_WRONG_PD;
	if (!window->mr)
		return MRSOFT_R_KEY_INVALID;
	if (window->binder != binder)
		return MRSOFT_R_WRONG_QP;
	window_unbind(window, invalidated(remote), binder->who);
	return MRSOFT_R_NONE;
}

static enum mrsoft_reason window_invalidate(struct mrsoft_window *window,
					    const struct mrsoft_mw_binder *b,
					    u32 rkey, bool remote)
{
	enum mrsoft_reason reason;

	mutex_lock(&window->key.lock);
	reason = window_invalidate_locked(window, b, rkey, remote);
	mutex_unlock(&window->key.lock);
	return reason;
}

/**
 * mrsoft_key_invalidate - LOCAL_INV, or a peer's SEND with invalidate
 * @table: the device's table
 * @binder: of the QP that executes it, or that the peer sent to
 * @key: the full key of a region or a window of type 2
 * @remote: a peer asks
 *
 * On success no copy through @key is running any more, IBA 10.6.5.  A refusal is
 * counted here and has no effect on anything.
 *
 * Context: process, sleeps.
 * Return: MRSOFT_R_NONE; MRSOFT_R_KEY_UNKNOWN, MRSOFT_R_KEY_STALE: no such key
 * now; MRSOFT_R_KEY_INVALID: not valid or not bound; MRSOFT_R_KEY_KIND: a
 * user's or DMA region, or remote and without remote rights;
 * MRSOFT_R_MW_TYPE: a window of type 1; MRSOFT_R_WRONG_PD;
 * MRSOFT_R_WRONG_QP; MRSOFT_R_MR_BUSY: windows are bound to the region.
 */
enum mrsoft_reason mrsoft_key_invalidate(struct mrsoft_table *table,
					 struct mrsoft_mw_binder *binder,
					 u32 key, bool remote)
{
	enum mrsoft_reason reason;
	struct mrsoft_key *entry;

	might_sleep();
	reason = mrsoft_key_get(table, key, &entry);
	if (reason)
		goto refuse;
	switch (entry->kind) {
	case MRSOFT_KEY_MW_1:
		reason = MRSOFT_R_MW_TYPE;
		break;
	case MRSOFT_KEY_MW_2:
		reason = window_invalidate(to_window(entry), binder, key,
					   remote);
		break;
	default:
		reason = mrsoft_mr_invalidate(entry, binder->pd, key, remote);
		if (!reason)
			mrsoft_diary_end(table->stats, key, invalidated(remote),
					 binder->who);
		break;
	}
	mrsoft_key_put(entry);
	if (reason)
		goto refuse;
	trace_mrsoft_invalidate(key, binder->qpn, remote);
	return MRSOFT_R_NONE;

refuse:
	return mrsoft_diary_refuse(table->stats, &(struct mrsoft_refusal){
		.reason = reason, .qpn = binder->qpn, .who = binder->who,
		.op = remote ? "SEND_WITH_INV" : "LOCAL_INV", .key = key,
	});
}
