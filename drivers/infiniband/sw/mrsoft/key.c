// SPDX-License-Identifier: GPL-2.0
/*
 * key.c - translation table: which bytes a key may touch
 *
 * Owns:     key -> entry table, entry lifetime, the only bounds and rights check.
 * Not here: regions (mr.c), windows (mw.c), where bytes are (pages.c), moving
 *           them (copy.c).
 * Locks:    key.lock (mutex) orders changes of an entry; the table lock (spin, BH)
 *           is a leaf; accesses use RCU and key.holds only.
 * Lifetime: inserted -> published <-> unpublished -> removed -> freed after RCU.
 * Context:  access in any context; all that changes an entry sleeps.
 * Spec:     IBA Vol 1, 10.6 (memory management)
 * Tests:    kunit/mr_kunit.c, kunit/model_kunit.c
 */
#include <linux/bug.h>
#include <linux/hash.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "key.h"
#include "limits.h"

/* --- the table ------------------------------------------------------------ */

/**
 * mrsoft_table_init - an empty table
 * @table: memory for it
 * @stats: where refusals are counted
 *
 * Context: any.
 */
void mrsoft_table_init(struct mrsoft_table *table, struct mrsoft_stats *stats)
{
	*table = (struct mrsoft_table){ .stats = stats };
	xa_init_flags(&table->xa, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_BH);
	table->seed = get_random_u32();
	table->first = clamp(get_random_u32() & MRSOFT_KEY_INDEX_MAX,
			     MRSOFT_KEY_INDEX_MIN, MRSOFT_KEY_INDEX_MAX);
	table->next = table->first;
}

/**
 * mrsoft_table_destroy - free an empty table
 * @table: all entries were destroyed
 *
 * Context: any.
 */
void mrsoft_table_destroy(struct mrsoft_table *table)
{
	WARN_ON_ONCE(!xa_empty(&table->xa));
	xa_destroy(&table->xa);
}

static atomic_t *table_count(struct mrsoft_table *table,
			     const struct mrsoft_key *key)
{
	return mrsoft_key_is_mw(key) ? &table->windows : &table->regions;
}

/**
 * mrsoft_key_init - fill in the head of a new MR or MW
 * @key: zeroed memory
 * @kind: what it is the head of
 * @pd: whose it is
 *
 * Context: process.
 */
void mrsoft_key_init(struct mrsoft_key *key, enum mrsoft_key_kind kind,
		     struct mrsoft_pd *pd)
{
	key->kind = kind;
	key->pd = pd;
	mrsoft_who_set(&key->who, pd->ib.res.kern_name);
	atomic_set(&key->holds, MRSOFT_CLOSED);
	init_completion(&key->drained);
	refcount_set(&key->users, 1);
	mutex_init(&key->lock);
}

/**
 * mrsoft_key_insert - give an entry its place in the table and its first key
 * @table: the table
 * @key: initialised, not published
 *
 * Indices go round through all 24 bits before one comes back, and then the low
 * byte differs, so that a stale key is recognised.
 *
 * Context: process, sleeps.
 * Return: 0; -ENOMEM: no memory, or the device's limit is reached.
 */
int mrsoft_key_insert(struct mrsoft_table *table, struct mrsoft_key *key)
{
	atomic_t *count = table_count(table, key);
	int max = mrsoft_key_is_mw(key) ? MRSOFT_MAX_MW : MRSOFT_MAX_MR;
	int ret;

	if (atomic_inc_return(count) > max) {
		ret = -ENOMEM;
		goto err_count;
	}
	key->table = table;
	xa_lock_bh(&table->xa);
	ret = __xa_alloc_cyclic(&table->xa, &key->index, key,
				XA_LIMIT(MRSOFT_KEY_INDEX_MIN,
					 MRSOFT_KEY_INDEX_MAX),
				&table->next, GFP_KERNEL);
	if (ret == 1)
		table->wraps++;
	if (ret >= 0)
		WRITE_ONCE(key->key, key->index << 8 |
			   (u8)(hash_32(key->index ^ table->seed, 8) +
				table->wraps));
	xa_unlock_bh(&table->xa);
	if (ret < 0) {
		ret = -ENOMEM;
		goto err_count;
	}
	return 0;

err_count:
	atomic_dec(count);
	return ret;
}

/**
 * mrsoft_key_remove - take an entry out of the table
 * @key: unpublished
 *
 * Context: process.
 */
void mrsoft_key_remove(struct mrsoft_key *key)
{
	WARN_ON_ONCE(atomic_read(&key->holds) != MRSOFT_CLOSED);
	xa_erase_bh(&key->table->xa, key->index);
	atomic_dec(table_count(key->table, key));
}

/*
 * No entry: was there ever one?  Reading without the lock at worst takes a key
 * that has just gone for one that never was.
 */
static enum mrsoft_reason table_absent(const struct mrsoft_table *table,
				       u32 index)
{
	u32 given = (READ_ONCE(table->next) - table->first) &
		    MRSOFT_KEY_INDEX_MAX;
	u32 asked = (index - table->first) & MRSOFT_KEY_INDEX_MAX;

	if (index && (READ_ONCE(table->wraps) > 1 || asked < given))
		return MRSOFT_R_KEY_STALE;
	return MRSOFT_R_KEY_UNKNOWN;
}

/* --- memory of an entry --------------------------------------------------- */

/**
 * mrsoft_key_get - find an entry and keep its memory
 * @table: the table
 * @key: a key; only its index must be right
 * @found: out, the entry, for mrsoft_key_put()
 *
 * The caller takes @found->lock and looks at its state again.
 *
 * Context: any.
 * Return: MRSOFT_R_NONE; MRSOFT_R_KEY_UNKNOWN or MRSOFT_R_KEY_STALE: no entry.
 */
enum mrsoft_reason mrsoft_key_get(struct mrsoft_table *table, u32 key,
				  struct mrsoft_key **found)
{
	enum mrsoft_reason reason = MRSOFT_R_NONE;
	struct mrsoft_key *entry;

	rcu_read_lock();
	entry = xa_load(&table->xa, key >> 8);
	if (!entry)
		reason = table_absent(table, key >> 8);
	else if (!refcount_inc_not_zero(&entry->users))
		reason = MRSOFT_R_KEY_STALE;
	else
		*found = entry;
	rcu_read_unlock();
	return reason;
}

/**
 * mrsoft_key_put - let go of an entry's memory
 * @key: from mrsoft_key_get(), or created by the caller
 *
 * The last one frees it after RCU: lookups may still be looking at it.
 *
 * Context: any.
 */
void mrsoft_key_put(struct mrsoft_key *key)
{
	if (refcount_dec_and_test(&key->users))
		kfree_rcu(key, rcu);
}

/* --- bytes of an entry ---------------------------------------------------- */

/**
 * mrsoft_key_publish - let accesses in
 * @key: unpublished, all fields set
 *
 * Context: process, under @key->lock or before anybody else knows it.
 */
void mrsoft_key_publish(struct mrsoft_key *key)
{
	WARN_ON_ONCE(atomic_read(&key->holds) != MRSOFT_CLOSED);
	reinit_completion(&key->drained);
	key->published = true;
	/* fields before holds; pairs with the increment in mrsoft_key_enter() */
	atomic_set_release(&key->holds, 0);
}

/**
 * mrsoft_key_unpublish - nobody enters any more, and nobody is inside
 * @key: published or not
 *
 * From the one atomic step on every access is refused, so the wait does not
 * depend on how many keep coming.  Who may still be inside: copies that passed
 * mrsoft_key_enter() before and have not come to mrsoft_key_leave().  They are
 * on other CPUs, or preempted, in a copy of at most MRSOFT_SEGMENT bytes that
 * does not sleep and waits for nothing; the last of them completes @drained.
 *
 * Context: process, sleeps, under @key->lock.
 */
void mrsoft_key_unpublish(struct mrsoft_key *key)
{
	might_sleep();
	lockdep_assert_held(&key->lock);
	if (!key->published)
		return;
	key->published = false;
	if (atomic_add_return(MRSOFT_CLOSED, &key->holds) != MRSOFT_CLOSED)
		wait_for_completion(&key->drained);
}

/**
 * mrsoft_key_enter - find a published entry and hold it
 * @table: the table
 * @key: its full key
 * @found: out, the entry, for mrsoft_key_leave(); fields marked H are stable
 *
 * Context: any.  No sleep until mrsoft_key_leave().
 * Return: MRSOFT_R_NONE; MRSOFT_R_KEY_UNKNOWN, MRSOFT_R_KEY_STALE,
 * MRSOFT_R_KEY_INVALID: no such key now.
 */
enum mrsoft_reason mrsoft_key_enter(struct mrsoft_table *table, u32 key,
				    struct mrsoft_key **found)
{
	enum mrsoft_reason reason = MRSOFT_R_NONE;
	struct mrsoft_key *entry;

	rcu_read_lock();
	entry = xa_load(&table->xa, key >> 8);
	if (!entry) {
		reason = table_absent(table, key >> 8);
		goto unlock;
	}
	/* a full barrier on success: holds before fields */
	if (!atomic_inc_unless_negative(&entry->holds)) {
		/* a stale answer only changes the name of the refusal */
		reason = READ_ONCE(entry->key) == key ? MRSOFT_R_KEY_INVALID :
							MRSOFT_R_KEY_STALE;
		goto unlock;
	}
	if (READ_ONCE(entry->key) != key) {
		mrsoft_key_leave(entry);
		reason = MRSOFT_R_KEY_STALE;
		goto unlock;
	}
	*found = entry;
unlock:
	rcu_read_unlock();
	return reason;
}

/**
 * mrsoft_key_leave - end a hold
 * @key: from mrsoft_key_enter(); not to be touched afterwards
 *
 * Context: any.
 */
void mrsoft_key_leave(struct mrsoft_key *key)
{
	if (atomic_dec_return(&key->holds) == MRSOFT_CLOSED)
		complete(&key->drained);
}

static enum mrsoft_reason remote_rights(int have, int want)
{
	int missing = want & ~have & MRSOFT_REMOTE_RIGHTS;

	if (missing & IB_ACCESS_REMOTE_WRITE)
		return MRSOFT_R_NO_REMOTE_WRITE;
	if (missing & IB_ACCESS_REMOTE_READ)
		return MRSOFT_R_NO_REMOTE_READ;
	if (missing & IB_ACCESS_REMOTE_ATOMIC)
		return MRSOFT_R_NO_REMOTE_ATOMIC;
	if (missing)
		return MRSOFT_R_NO_REMOTE_FLUSH;
	return MRSOFT_R_NONE;
}

/* @key is held.  Rights of a window include those of its MR: mw.c sees to it. */
static enum mrsoft_reason key_check(const struct mrsoft_key *key,
				    const struct mrsoft_access *req)
{
	enum mrsoft_reason reason;

	if (key->pd != req->pd)
		return MRSOFT_R_WRONG_PD;
	if (key->qpn && key->qpn != req->qpn)
		return MRSOFT_R_WRONG_QP;
	if (req->rights & MRSOFT_REMOTE_RIGHTS) {
		reason = remote_rights(key->access, req->rights);
		if (reason)
			return reason;
	} else if (mrsoft_key_is_mw(key)) {
		return MRSOFT_R_KEY_KIND;
	} else if (req->rights & ~key->access & IB_ACCESS_LOCAL_WRITE) {
		return MRSOFT_R_NO_LOCAL_WRITE;
	}
	if (!req->whole && !mrsoft_key_covers(key, req->iova, req->length))
		return MRSOFT_R_OUTSIDE;
	return MRSOFT_R_NONE;
}

/**
 * mrsoft_key_access - the one check: from a key to bytes that may be copied
 * @table: the device's table
 * @req: who wants to do what to which bytes
 * @span: out, the bytes, held until mrsoft_span_put(); empty on a refusal
 *
 * Hold short: at most MRSOFT_SEGMENT bytes, and put before anything can sleep.
 * A refusal is counted here.
 *
 * Context: any.  No sleep until mrsoft_span_put().
 * Return: MRSOFT_R_NONE or the reason of the refusal, IBA 10.6.3, 11.2.8.
 */
enum mrsoft_reason mrsoft_key_access(struct mrsoft_table *table,
				     const struct mrsoft_access *req,
				     struct mrsoft_span *span)
{
	enum mrsoft_reason reason;
	struct mrsoft_key *key;

	reason = mrsoft_key_enter(table, req->key, &key);
	if (unlikely(reason))
		goto refuse;
	reason = key_check(key, req);
	if (unlikely(reason))
		goto leave;
	*span = (struct mrsoft_span){
		.key = key,
		.pages = key->pages,
		.offset = key->base + (req->whole ? 0 : req->iova - key->iova),
		.length = req->whole ? key->length : req->length,
	};
	return MRSOFT_R_NONE;

leave:
	mrsoft_key_leave(key);
refuse:
	*span = (struct mrsoft_span){};
	return mrsoft_diary_refuse(table->stats, &(struct mrsoft_refusal){
		.reason = reason, .qpn = req->qpn, .peer = req->peer,
		.who = req->who, .op = req->op, .key = req->key,
		.addr = req->iova, .length = req->length,
	});
}

/**
 * mrsoft_span_put - end the hold on a span
 * @span: from mrsoft_key_access() or mrsoft_span_kernel(); empty afterwards
 *
 * Context: any.
 */
void mrsoft_span_put(struct mrsoft_span *span)
{
	struct mrsoft_key *key = span->key;

	*span = (struct mrsoft_span){};
	if (key)
		mrsoft_key_leave(key);
}

/* --- owners --------------------------------------------------------------- */

/**
 * mrsoft_key_owner_get - a window becomes bound to a region
 * @key: the region's, held
 *
 * Until mrsoft_key_owner_put() the region is not deregistered, re-registered or
 * invalidated: its fields marked H and its pages do not change.
 *
 * Context: any.
 * Return: false: one of those has won.
 */
bool mrsoft_key_owner_get(struct mrsoft_key *key)
{
	return atomic_inc_unless_negative(&key->owners);
}

/**
 * mrsoft_key_owner_put - a window is no longer bound to a region
 * @key: the region's; not to be touched afterwards
 *
 * Context: any.
 */
void mrsoft_key_owner_put(struct mrsoft_key *key)
{
	/* release: what was done through the window is done */
	WARN_ON_ONCE(atomic_dec_return(&key->owners) < 0);
}

/**
 * mrsoft_key_claim - win the region against binds, to change or end it
 * @key: the region's
 *
 * The one step that decides between a bind and dereg, rereg or invalidate.  Under
 * @key->lock, so that two of the latter never meet here.
 *
 * Context: process, under @key->lock.
 * Return: true: no window is bound, and none will be until mrsoft_key_release();
 * false: windows are bound, nothing has changed.
 */
bool mrsoft_key_claim(struct mrsoft_key *key)
{
	lockdep_assert_held(&key->lock);
	return atomic_cmpxchg(&key->owners, 0, MRSOFT_RETIRED) == 0;
}

/**
 * mrsoft_key_release - let windows be bound again
 * @key: from mrsoft_key_claim(), changed and consistent
 *
 * Context: process, under @key->lock.
 */
void mrsoft_key_release(struct mrsoft_key *key)
{
	lockdep_assert_held(&key->lock);
	atomic_set_release(&key->owners, 0);
}
