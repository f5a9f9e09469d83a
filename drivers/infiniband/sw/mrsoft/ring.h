/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring.h - rings shared with user space: snapshot, index discipline
 *
 * Layer 2.  A ring has one producer side and one consumer side; one of them may
 * be user space.  Indices of ours are private and only published; those of the
 * other side are read, masked and never believed further.  Kernel consumers
 * use the same ring, in memory that is not mapped.
 */
#ifndef MRSOFT_RING_H
#define MRSOFT_RING_H

#include <linux/kref.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "abi.h"

/**
 * struct mrsoft_ring_mem - memory of a ring, and its mmap cookie
 * @entry: core's cookie, for rings of user space only
 * @ref: the object that uses the ring, and the cookie
 * @buf: U, vmalloc_user() memory, zeroed
 * @size: I, bytes, whole pages
 * @mapped: I, @entry is in use
 *
 * Mappings keep their pages by themselves.
 */
struct mrsoft_ring_mem {
	struct rdma_user_mmap_entry entry;
	struct kref ref;
	struct mrsoft_abi_ring *buf;
	size_t size;
	bool mapped;
};

/**
 * struct mrsoft_ring - a ring of 2^n slots, one of which stays free
 * @mem: its memory
 * @shift: log2 of the slot size in bytes
 * @mask: slots - 1
 * @prod: our producer index, when we produce (private copy)
 * @cons: our consumer index, when we consume (private copy)
 *
 * The caller's lock serialises each side.
 */
struct mrsoft_ring {
	struct mrsoft_ring_mem *mem;
	u32 shift;
	u32 mask;
	u32 prod;
	u32 cons;
};

/*
 * A ring for at least @entries elements of @elem_size bytes.  @ucontext: make
 * it mappable and fill @mi for the reply; NULL for a kernel consumer.
 * -EINVAL (too large), -ENOMEM, or an error of the core's mmap table.
 */
int mrsoft_ring_init(struct mrsoft_ring *ring, u32 entries, size_t elem_size,
		     struct ib_ucontext *ucontext, struct mrsoft_abi_mmap *mi);
void mrsoft_ring_destroy(struct mrsoft_ring *ring);
/* The mmap and mmap_free operations of the device end here. */
int mrsoft_ring_mmap(struct ib_ucontext *ucontext, struct vm_area_struct *vma);
void mrsoft_ring_mmap_free(struct rdma_user_mmap_entry *entry);

static inline u32 mrsoft_ring_capacity(const struct mrsoft_ring *ring)
{
	return ring->mask;
}

/* We consume: what the other side has produced. */
u32 mrsoft_ring_pending(const struct mrsoft_ring *ring);
/* Copies the first @len bytes of the oldest slot once; false when empty. */
bool mrsoft_ring_peek(const struct mrsoft_ring *ring, void *to, size_t len);
/* Copies @len bytes at @off of that slot (bounded by the slot: -EINVAL). */
int mrsoft_ring_peek_at(const struct mrsoft_ring *ring, size_t off, void *to,
			size_t len);
/* The same of the slot @nth behind the oldest. */
int mrsoft_ring_peek_nth(const struct mrsoft_ring *ring, u32 nth, size_t off,
			 void *to, size_t len);
/* The oldest slot is free again; published with release order. */
void mrsoft_ring_pop(struct mrsoft_ring *ring);

/* We produce: free slots, slots not yet consumed, and storing one. */
u32 mrsoft_ring_room(const struct mrsoft_ring *ring);
u32 mrsoft_ring_unread(const struct mrsoft_ring *ring);
bool mrsoft_ring_push(struct mrsoft_ring *ring, const void *elem, size_t len);

/*
 * Resize: @count elements of @from, beginning at index @first, become the whole
 * content of @to.  Both sides are kept out by the caller.  -EINVAL: no room.
 */
int mrsoft_ring_move(struct mrsoft_ring *to, const struct mrsoft_ring *from,
		     u32 first, u32 count);

/*
 * Kernel consumers hold both sides: the producer index is ours too and is
 * stored by push() and read by pending().  For CQs polled by the kernel see
 * cq.c.
 */

#endif /* MRSOFT_RING_H */
