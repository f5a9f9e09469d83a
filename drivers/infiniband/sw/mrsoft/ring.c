// SPDX-License-Identifier: GPL-2.0
/*
 * ring.c - rings shared with user space: snapshot, index discipline
 *
 * Owns:     ring memory, its mmap cookie, every load and store of an index or a slot.
 * Not here: what an element means (cq.c, rq.c, sq.c), which side is whose.
 * Locks:    none; the caller's lock serialises each side, acquire and release
 *           order the two sides.
 * Lifetime: memory goes with the last of: the object, the cookie. Mappings keep
 *           their pages by themselves and may outlive both.
 * Context:  init and destroy sleep; the rest runs in any context.
 * Spec:     librxe's queue layout, uverbs ABI 2 of the rxe driver id
 * Tests:    kunit/ring_kunit.c
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "ring.h"

/* librxe wants a slot to be a power of two, at least a cache line of its own. */
#define RING_MIN_SLOT	64u		/* bytes */
#define RING_MAX_BYTES	SZ_64M		/* far above what limits.h can ask for */

static void ring_mem_free(struct kref *ref)
{
	struct mrsoft_ring_mem *mem =
		container_of(ref, struct mrsoft_ring_mem, ref);

	vfree(mem->buf);
	kfree(mem);
}

static struct mrsoft_ring_mem *ring_mem_alloc(u32 shift, u32 mask)
{
	size_t size = sizeof(struct mrsoft_abi_ring);
	struct mrsoft_ring_mem *mem;

	size = PAGE_ALIGN(size + (((size_t)mask + 1) << shift));
	mem = kzalloc_obj(*mem);
	if (!mem)
		return NULL;

	mem->buf = vmalloc_user(size);
	if (!mem->buf) {
		kfree(mem);
		return NULL;
	}
	mem->size = size;
	kref_init(&mem->ref);
	mem->buf->log2_elem_size = shift;
	mem->buf->index_mask = mask;
	return mem;
}

/* Cookie 0 is never given, so that an offset of 0 can mean "none". */
static int ring_mem_publish(struct mrsoft_ring_mem *mem,
			    struct ib_ucontext *ucontext,
			    struct mrsoft_abi_mmap *mi)
{
	int err;

	/* The cookie's reference; mrsoft_ring_mmap_free() drops it. */
	kref_get(&mem->ref);
	err = rdma_user_mmap_entry_insert_range(ucontext, &mem->entry,
						mem->size, 1, U32_MAX);
	if (err) {
		kref_put(&mem->ref, ring_mem_free);
		return err;
	}
	mem->mapped = true;
	mi->offset = rdma_user_mmap_get_offset(&mem->entry);
	mi->size = mem->size;
	mi->pad = 0;
	return 0;
}

/**
 * mrsoft_ring_init - allocate a ring and, for user space, a cookie to map it
 * @ring: filled; no more than zeroed memory is expected
 * @entries: elements that it must hold at least, 0 is a ring that holds none
 * @elem_size: bytes of an element; the slot is the next power of two
 * @ucontext: context that may map it, NULL for a ring of the kernel
 * @mi: reply, with @ucontext only: cookie and exact size of the mapping
 *
 * Context: process, sleeps.
 * Return: 0; -EINVAL for a size beyond reason; -ENOMEM.  @ring is safe to destroy
 * in each case.
 */
int mrsoft_ring_init(struct mrsoft_ring *ring, u32 entries, size_t elem_size,
		     struct ib_ucontext *ucontext, struct mrsoft_abi_mmap *mi)
{
	int err;

	memset(ring, 0, sizeof(*ring));
	if (entries >= RING_MAX_BYTES / RING_MIN_SLOT ||
	    elem_size > RING_MAX_BYTES)
		return -EINVAL;

	ring->shift = order_base_2(max_t(size_t, elem_size, RING_MIN_SLOT));
	ring->mask = roundup_pow_of_two(entries + 1) - 1;
	if (((u64)ring->mask + 1) << ring->shift > RING_MAX_BYTES)
		return -EINVAL;

	ring->mem = ring_mem_alloc(ring->shift, ring->mask);
	if (!ring->mem)
		return -ENOMEM;
	if (!ucontext)
		return 0;

	err = ring_mem_publish(ring->mem, ucontext, mi);
	if (err)
		mrsoft_ring_destroy(ring);
	return err;
}

/**
 * mrsoft_ring_destroy - give up a ring
 * @ring: nobody uses either side any more; a ring never set up is fine
 *
 * The cookie dies at once.  Existing mappings stay, of memory that means nothing
 * any more; an mmap() that runs now finishes with the memory still there.
 *
 * Context: process, sleeps.
 */
void mrsoft_ring_destroy(struct mrsoft_ring *ring)
{
	struct mrsoft_ring_mem *mem = ring->mem;

	might_sleep();
	if (!mem)
		return;
	ring->mem = NULL;
	if (mem->mapped)
		rdma_user_mmap_entry_remove(&mem->entry);
	kref_put(&mem->ref, ring_mem_free);
}

/**
 * mrsoft_ring_mmap - map a ring into a process: the mmap operation of a device
 * @ucontext: the context of the file
 * @vma: where; its offset is the cookie, its size must be that of the ring
 *
 * Return: 0; -EINVAL for an unknown or dead cookie, another size, or a private
 * mapping; an error of the memory manager.
 */
int mrsoft_ring_mmap(struct ib_ucontext *ucontext, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	struct mrsoft_ring_mem *mem;
	int err;

	entry = rdma_user_mmap_entry_get(ucontext, vma);
	if (!entry)
		return -EINVAL;

	mem = container_of(entry, struct mrsoft_ring_mem, entry);
	err = remap_vmalloc_range(vma, mem->buf, 0);
	rdma_user_mmap_entry_put(entry);
	return err;
}

/**
 * mrsoft_ring_mmap_free - the core has forgotten a cookie: mmap_free operation
 * @entry: the cookie
 */
void mrsoft_ring_mmap_free(struct rdma_user_mmap_entry *entry)
{
	struct mrsoft_ring_mem *mem =
		container_of(entry, struct mrsoft_ring_mem, entry);

	kref_put(&mem->ref, ring_mem_free);
}

static void *ring_slot(const struct mrsoft_ring *ring, u32 index)
{
	return ring->mem->buf->data +
	       ((size_t)(index & ring->mask) << ring->shift);
}

/*
 * The other side writes to @from while we read.  The barrier forbids the compiler
 * to go back to @from for what has been copied, even when all of this is inlined.
 */
static void ring_snapshot(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	barrier();
}

/**
 * mrsoft_ring_pending - elements that wait for us, the consumer
 * @ring: the ring
 *
 * The acquire pairs with the release of the producer: in user space, or
 * mrsoft_ring_push().  A stale value shows too few, and the producer's doorbell
 * or next element makes up for it.  A forged one shows garbage, mask elements at
 * most.
 *
 * Return: 0 .. capacity.
 */
u32 mrsoft_ring_pending(const struct mrsoft_ring *ring)
{
	/* pairs with the producer's release */
	u32 prod = smp_load_acquire(&ring->mem->buf->producer_index);

	return (prod - ring->cons) & ring->mask;
}

/**
 * mrsoft_ring_peek - copy the head of the oldest element
 * @ring: the ring that we consume
 * @to: kernel memory, the only copy to look at from then on
 * @len: bytes, at most the slot
 *
 * Return: false when the ring is empty (@to is untouched).
 */
bool mrsoft_ring_peek(const struct mrsoft_ring *ring, void *to, size_t len)
{
	if (!mrsoft_ring_pending(ring))
		return false;
	return !mrsoft_ring_peek_at(ring, 0, to, len);
}

/**
 * mrsoft_ring_peek_at - copy a part of the oldest element
 * @ring: the ring that we consume, in which mrsoft_ring_peek() saw an element
 * @off: bytes from the start of the slot
 * @to: kernel memory
 * @len: bytes
 *
 * Does not look at the producer's index again, which may have been moved back
 * since: the slot is memory of the ring in any case.
 *
 * Return: 0; -EINVAL when the part is not within the slot (nothing copied).
 */
int mrsoft_ring_peek_at(const struct mrsoft_ring *ring, size_t off, void *to,
			size_t len)
{
	return mrsoft_ring_peek_nth(ring, 0, off, to, len);
}

/**
 * mrsoft_ring_peek_nth - copy a part of any element that waits
 * @ring: the ring that we consume, in which mrsoft_ring_pending() saw more than
 *	@nth elements
 * @nth: 0 is the oldest one
 * @off: bytes from the start of the slot
 * @to: kernel memory
 * @len: bytes
 *
 * Return: as mrsoft_ring_peek_at().
 */
int mrsoft_ring_peek_nth(const struct mrsoft_ring *ring, u32 nth, size_t off,
			 void *to, size_t len)
{
	size_t slot = (size_t)1 << ring->shift;

	if (off > slot || len > slot - off)
		return -EINVAL;

	ring_snapshot(to, ring_slot(ring, ring->cons + nth) + off, len);
	return 0;
}

/**
 * mrsoft_ring_pop - give the oldest slot back to the producer
 * @ring: the ring that we consume, not empty
 *
 * The release pairs with the acquire of the producer (user space, or
 * mrsoft_ring_room()): the slot is not overwritten before we have copied it.
 */
void mrsoft_ring_pop(struct mrsoft_ring *ring)
{
	ring->cons = (ring->cons + 1) & ring->mask;
	/* pairs with the producer's acquire: the slot is copied by now */
	smp_store_release(&ring->mem->buf->consumer_index, ring->cons);
}

/**
 * mrsoft_ring_unread - elements that the consumer has not taken
 * @ring: the ring that we fill
 *
 * The acquire pairs with the release of the consumer: in user space, or
 * mrsoft_ring_pop().  A stale value shows too many.  A forged one is within the
 * ring: the consumer loses elements of its own.
 *
 * Return: 0 .. capacity.
 */
u32 mrsoft_ring_unread(const struct mrsoft_ring *ring)
{
	/* pairs with the consumer's release */
	u32 cons = smp_load_acquire(&ring->mem->buf->consumer_index);

	return (ring->prod - cons) & ring->mask;
}

/**
 * mrsoft_ring_room - elements that we, the producer, may still store
 * @ring: the ring
 *
 * Return: 0 .. capacity.
 */
u32 mrsoft_ring_room(const struct mrsoft_ring *ring)
{
	return ring->mask - mrsoft_ring_unread(ring);
}

/**
 * mrsoft_ring_push - store an element and publish it
 * @ring: the ring that we fill
 * @elem: the element
 * @len: bytes, at most the slot
 *
 * The release pairs with the acquire of the consumer (user space, or
 * mrsoft_ring_pending()): who sees the index sees the element.
 *
 * Return: false when the ring is full or the element is larger than a slot.
 */
bool mrsoft_ring_push(struct mrsoft_ring *ring, const void *elem, size_t len)
{
	if (len > (size_t)1 << ring->shift || !mrsoft_ring_room(ring))
		return false;

	memcpy(ring_slot(ring, ring->prod), elem, len);
	ring->prod = (ring->prod + 1) & ring->mask;
	/* pairs with the consumer's acquire: the element is complete */
	smp_store_release(&ring->mem->buf->producer_index, ring->prod);
	return true;
}

/**
 * mrsoft_ring_move - carry what is queued over to a new ring
 * @to: fresh ring with slots of the same size
 * @from: the old ring, left as it is
 * @first: index of the oldest element in @from, masked here
 * @count: elements
 *
 * Both indices of @to are set, whoever owns them: the new ring is not in use on
 * either side before the caller says so.
 *
 * Return: 0; -EINVAL when @to is too small (nothing copied).
 */
int mrsoft_ring_move(struct mrsoft_ring *to, const struct mrsoft_ring *from,
		     u32 first, u32 count)
{
	u32 i;

	if (count > to->mask || count > from->mask || to->shift != from->shift)
		return -EINVAL;

	for (i = 0; i < count; i++)
		memcpy(ring_slot(to, i), ring_slot(from, first + i),
		       (size_t)1 << to->shift);

	to->cons = 0;
	to->prod = count;
	/* pairs with the acquire of either side, once the ring is handed over */
	smp_store_release(&to->mem->buf->consumer_index, 0);
	/* the same */
	smp_store_release(&to->mem->buf->producer_index, count);
	return 0;
}
