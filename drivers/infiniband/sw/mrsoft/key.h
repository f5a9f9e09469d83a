/* SPDX-License-Identifier: GPL-2.0 */
/*
 * key.h - translation table: which bytes a key may touch
 *
 * Layer 1, above pages.h, below mr.h, mw.h and copy.h.
 */
#ifndef MRSOFT_KEY_H
#define MRSOFT_KEY_H

#include <linux/completion.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "diary.h"
#include "pages.h"
#include "pd.h"
#include "status.h"

/* Rights that a peer asks for; everything else is local. */
#define MRSOFT_REMOTE_RIGHTS \
	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | \
	 IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_FLUSH_GLOBAL | \
	 IB_ACCESS_FLUSH_PERSISTENT)

/*
 * Those that the device grants: nothing tells it that a user's memory is persistent,
 * and where the kernel does not know FLUSH the device claims none.
 */
#define MRSOFT_GRANTED_RIGHTS \
	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | \
	 IB_ACCESS_REMOTE_ATOMIC | \
	 (IB_DEVICE_FLUSH_GLOBAL ? IB_ACCESS_FLUSH_GLOBAL : 0))

/**
 * struct mrsoft_table - all keys of one device
 * @xa: index (key >> 8) -> struct mrsoft_key; changed under its lock (spin, BH),
 *	read under RCU
 * @next: where the cyclic allocation goes on (xa lock)
 * @first: I, where it began, at random
 * @wraps: how often it went round (xa lock); makes the low byte of a key differ
 *	from that of the last owner of the index
 * @seed: I, makes the low byte hard to guess
 * @regions: A, MRs in the table
 * @windows: A, MWs in the table
 * @stats: where refusals are counted
 */
struct mrsoft_table {
	struct xarray xa;
	u32 next;
	u32 first;
	u32 wraps;
	u32 seed;
	atomic_t regions;
	atomic_t windows;
	struct mrsoft_stats *stats;
};

enum mrsoft_key_kind {
	MRSOFT_KEY_MR_DMA,
	MRSOFT_KEY_MR_USER,
	MRSOFT_KEY_MR_FAST,
	MRSOFT_KEY_MR_DMABUF,
	MRSOFT_KEY_MR_DM,
	MRSOFT_KEY_MW_1,
	MRSOFT_KEY_MW_2,
};

/**
 * struct mrsoft_key - common head of MR and MW: what the table finds
 *
 * Letters: I set before the entry is in the table; A atomic; H stable while the
 * caller has a hold, changed only under @lock with holds drained; L @lock.
 *
 * Must be the first member of what it is the head of.
 *
 * @table: I, the table that it is in
 * @index: I, its place in the table
 * @kind: I, enum mrsoft_key_kind
 * @key: A, the live key: index << 8 | variant.  Changes in the low byte only,
 *	as if marked H
 * @holds: A, copies running now; MRSOFT_CLOSED is added while not published, so
 *	that nobody enters any more, however many are inside
 * @drained: completed by the last hold that leaves an unpublished entry
 * @owners: A, bound windows; MRSOFT_RETIRED once dereg has won, and while the
 *	fields below are changed
 * @users: A, who needs this memory: its creator and whoever called
 *	mrsoft_key_get().  Says nothing about the bytes of the region
 * @rcu: frees the memory after lookups that may still see it
 * @lock: one change of state at a time.  Process context; accesses do not take
 *	it.  Inside it: a window's binder->lock, the table lock, mmap_lock.
 *	Nobody holds two of them
 * @published: L, accesses may enter
 * @dead: L, destroyed; the memory waits for the last of @users
 * @pd: H, whose it is
 * @access: H, IB_ACCESS_*
 * @iova: H, first address
 * @length: H, bytes
 * @pages: H, where the bytes are
 * @base: H, offset in @pages of the byte at @iova
 * @qpn: H, MW_2: the one QP that may use it, 0 for any QP of the PD
 * @who: I, who made it
 */
struct mrsoft_key {
	struct mrsoft_table *table;
	u32 index;
	u8 kind;
	u32 key;
	atomic_t holds;
	struct completion drained;
	atomic_t owners;
	refcount_t users;
	struct rcu_head rcu;
	struct mutex lock;	/* changes of state */
	bool published;
	bool dead;
	struct mrsoft_pd *pd;
	int access;
	u64 iova;
	u64 length;
	struct mrsoft_pages *pages;
	u64 base;
	u32 qpn;
	struct mrsoft_who who;
};

/* owners: set in the same atomic step that finds no window bound. */
#define MRSOFT_RETIRED		INT_MIN
/* holds: added in one atomic step, so that an access is before it or refused. */
#define MRSOFT_CLOSED		INT_MIN

/**
 * struct mrsoft_access - what somebody wants to do to memory
 * @pd: PD of the QP that asks
 * @qpn: number of that QP
 * @key: lkey or rkey
 * @rights: IB_ACCESS_* needed; 0 is a local read.  Any remote right makes it
 *	a remote access.
 * @iova: first address
 * @length: bytes
 * @whole: all that the key names, @iova and @length mean nothing; only for
 *	mrsoft_key_probe()
 * @peer: the QP at the other end, 0: not known.  This and what follows is for the
 *	diary alone
 * @who: whose the asking QP is
 * @op: what it is for, a constant
 */
struct mrsoft_access {
	const struct mrsoft_pd *pd;
	u32 qpn;
	u32 key;
	int rights;
	u64 iova;
	u64 length;
	bool whole;
	u32 peer;
	const struct mrsoft_who *who;
	const char *op;
};

/**
 * struct mrsoft_span - bytes that passed the one check and are held
 * @key: the hold, NULL for memory of the driver's own (@addr)
 * @pages: where the bytes are
 * @offset: of the first byte in @pages
 * @addr: a kernel buffer, when @key is NULL
 * @length: bytes
 *
 * Lives on the stack, never across a sleep, a packet or a timer.
 */
struct mrsoft_span {
	struct mrsoft_key *key;
	struct mrsoft_pages *pages;
	u64 offset;
	void *addr;
	u64 length;
};

void mrsoft_table_init(struct mrsoft_table *table, struct mrsoft_stats *stats);
void mrsoft_table_destroy(struct mrsoft_table *table);

/* The one check.  On MRSOFT_R_NONE *@span is held until mrsoft_span_put(). */
enum mrsoft_reason __must_check
mrsoft_key_access(struct mrsoft_table *table, const struct mrsoft_access *req,
		  struct mrsoft_span *span);
void mrsoft_span_put(struct mrsoft_span *span);

/* Would the access pass now? */
static inline enum mrsoft_reason
mrsoft_key_probe(struct mrsoft_table *table, const struct mrsoft_access *req)
{
	enum mrsoft_reason reason;
	struct mrsoft_span span;

	reason = mrsoft_key_access(table, req, &span);
	if (reason == MRSOFT_R_NONE)
		mrsoft_span_put(&span);
	return reason;
}

static inline void mrsoft_span_kernel(struct mrsoft_span *span, void *addr,
				      u64 length)
{
	*span = (struct mrsoft_span){ .addr = addr, .length = length };
}

/*
 * For mr.c and mw.c.  get/put keep the memory of an entry (not its bytes), RCU
 * inside.  enter/leave are a hold on its bytes.
 * publish/unpublish: see struct mrsoft_key.  unpublish drains, so it sleeps.
 */
void mrsoft_key_init(struct mrsoft_key *key, enum mrsoft_key_kind kind,
		     struct mrsoft_pd *pd);
int mrsoft_key_insert(struct mrsoft_table *table, struct mrsoft_key *key);
void mrsoft_key_remove(struct mrsoft_key *key);
enum mrsoft_reason __must_check
mrsoft_key_get(struct mrsoft_table *table, u32 key, struct mrsoft_key **found);
void mrsoft_key_put(struct mrsoft_key *key);
enum mrsoft_reason __must_check
mrsoft_key_enter(struct mrsoft_table *table, u32 key,
		 struct mrsoft_key **found);
void mrsoft_key_leave(struct mrsoft_key *key);
void mrsoft_key_publish(struct mrsoft_key *key);
void mrsoft_key_unpublish(struct mrsoft_key *key);
bool __must_check mrsoft_key_owner_get(struct mrsoft_key *key);
void mrsoft_key_owner_put(struct mrsoft_key *key);
bool __must_check mrsoft_key_claim(struct mrsoft_key *key);
void mrsoft_key_release(struct mrsoft_key *key);

static inline bool mrsoft_key_is_mw(const struct mrsoft_key *key)
{
	return key->kind == MRSOFT_KEY_MW_1 || key->kind == MRSOFT_KEY_MW_2;
}

/* Is @length at @iova inside?  Subtracts, so nothing wraps. */
static inline bool mrsoft_key_covers(const struct mrsoft_key *key, u64 iova,
				     u64 length)
{
	return iova >= key->iova && iova - key->iova <= key->length &&
	       length <= key->length - (iova - key->iova);
}

#endif /* MRSOFT_KEY_H */
