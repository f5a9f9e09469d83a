/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mw.h - memory windows: bind, unbind, invalidate
 *
 * Layer 1, above mr.h.
 */
#ifndef MRSOFT_MW_H
#define MRSOFT_MW_H

#include <linux/list.h>
#include <linux/spinlock.h>

#include "mr.h"

/**
 * struct mrsoft_window - what a memory window is to the table and to queues
 * @key: entry in the table; published while bound
 * @mr: the region that it owns while bound, else NULL (key.lock)
 * @binder: type 2 while bound: the QP's list that it is on (key.lock)
 * @entry: in @binder->windows (binder->lock)
 * @used: it was bound once, so its present key is known to peers (key.lock)
 * @by_qpn: the QP that bound it, for people (key.lock)
 *
 * Apart from struct mrsoft_mw because the core frees that one as soon as
 * dealloc_mw returns, while lookups and queues may still be looking at this one.
 */
struct mrsoft_window {
	struct mrsoft_key key;
	struct mrsoft_key *mr;
	struct mrsoft_mw_binder *binder;
	struct list_head entry;
	bool used;
	u32 by_qpn;
};

/* mrsoft_key_put() frees the head, and so all of it */
static_assert(offsetof(struct mrsoft_window, key) == 0);

/**
 * struct mrsoft_mw - memory window of the verbs
 * @ib: the core's part, must be first.  @ib.rkey is the first key; user space
 *	counts on from there by itself
 * @window: all the rest
 */
struct mrsoft_mw {
	struct ib_mw ib;
	struct mrsoft_window *window;
};

static inline struct mrsoft_mw *mrsoft_mw(struct ib_mw *ibmw)
{
	return container_of(ibmw, struct mrsoft_mw, ib);
}

/**
 * struct mrsoft_mw_binder - a QP as windows of type 2 see it
 * @qpn: its number
 * @pd: its PD
 * @lock: protects @windows
 * @windows: windows of type 2 bound through it
 * @who: I, whose QP it is, or NULL
 */
struct mrsoft_mw_binder {
	u32 qpn;
	struct mrsoft_pd *pd;
	spinlock_t lock;	/* windows */
	struct list_head windows;
	const struct mrsoft_who *who;
};

/**
 * struct mrsoft_bind - a BIND_MW work request
 * @mw_key: the window's current key
 * @new_key: the key that it gets; differs in the low byte only
 * @mr_key: lkey of the region
 * @addr: first address, in the region's address space
 * @length: bytes; 0 unbinds
 * @access: IB_ACCESS_*, with IB_ZERO_BASED
 */
struct mrsoft_bind {
	u32 mw_key;
	u32 new_key;
	u32 mr_key;
	u64 addr;
	u64 length;
	int access;
};

void mrsoft_mw_binder_init(struct mrsoft_mw_binder *binder, u32 qpn,
			   struct mrsoft_pd *pd);
/* QP destroy, reset: every window bound through it is dead on return. */
void mrsoft_mw_binder_drain(struct mrsoft_mw_binder *binder);

int mrsoft_mw_init(struct mrsoft_table *table, struct mrsoft_mw *mw,
		   struct mrsoft_pd *pd, enum ib_mw_type type);
/* Never refuses: unbinds, then takes the key out of the table. */
void mrsoft_mw_destroy(struct mrsoft_mw *mw);

enum mrsoft_reason mrsoft_mw_bind(struct mrsoft_table *table,
				  struct mrsoft_mw_binder *binder,
				  const struct mrsoft_bind *bind);

/*
 * LOCAL_INV (@remote false) or SEND with invalidate (@remote true) of the MR or
 * type 2 window that @key names.  May sleep: drains copies.
 */
enum mrsoft_reason mrsoft_key_invalidate(struct mrsoft_table *table,
					 struct mrsoft_mw_binder *binder,
					 u32 key, bool remote);

#endif /* MRSOFT_MW_H */
