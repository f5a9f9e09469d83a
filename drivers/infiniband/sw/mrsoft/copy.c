// SPDX-License-Identifier: GPL-2.0
/*
 * copy.c - moving bytes between spans
 *
 * Owns:     every memcpy and compare-and-exchange on the memory of a region, and
 *           the order in which its bytes become visible.
 * Not here: keys and rights (a span has passed mr.c), where bytes are (pages.c).
 * Locks:    none; users may read and write the same bytes at any time.
 * Lifetime: the caller holds the spans.
 * Context:  any, never sleeps.
 * Spec:     IBA Vol 1, 9.5 o9-20 (order of placement), 9.4.5 (ATOMIC)
 * Tests:    kunit/copy_kunit.c
 */
#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/log2.h>
#include <linux/string.h>

#include "copy.h"

/* Bytes that a CPU stores in one go when they are aligned. */
#define WORD	sizeof(u64)

static void *span_map(const struct mrsoft_span *span, u64 off, size_t *len,
		      bool write)
{
	if (!span->pages)
		return span->addr + off;
	return mrsoft_pages_map(span->pages, span->offset + off, len, write);
}

static void span_unmap(const struct mrsoft_span *span, void *addr)
{
	if (span->pages)
		mrsoft_pages_unmap(span->pages, addr);
}

static bool span_fits(const struct mrsoft_span *span, u64 off, u64 len)
{
	return off <= span->length && len <= span->length - off;
}

/* Bytes from @span into @buf, ascending. */
static enum mrsoft_reason copy_out(void *buf, const struct mrsoft_span *span,
				   u64 off, size_t len)
{
	size_t n;
	void *s;

	for (; len; buf += n, off += n, len -= n) {
		n = len;
		s = span_map(span, off, &n, false);
		if (unlikely(!s))
			return MRSOFT_R_PAGE_ABSENT;
		memcpy(buf, s, n);
		span_unmap(span, s);
	}
	return MRSOFT_R_NONE;
}

static enum mrsoft_reason copy_bulk(const struct mrsoft_span *dst, u64 dst_off,
				    const struct mrsoft_span *src, u64 src_off,
				    size_t len)
{
	enum mrsoft_reason reason;
	size_t n;
	void *d;

	for (; len; dst_off += n, src_off += n, len -= n) {
		n = len;
		d = span_map(dst, dst_off, &n, true);
		if (unlikely(!d))
			return MRSOFT_R_PAGE_ABSENT;
		reason = copy_out(d, src, src_off, n);
		span_unmap(dst, d);
		if (unlikely(reason))
			return reason;
	}
	return MRSOFT_R_NONE;
}

/*
 * How many of the last bytes can be stored in one go: a power of two that the
 * end of the destination is aligned to.  They never cross a page.
 */
static size_t tail_bytes(const void *end, size_t len)
{
	size_t tail = min_t(size_t, WORD, rounddown_pow_of_two(len));

	return min_t(size_t, tail, 1ul << __ffs((unsigned long)end | WORD));
}

/* @tail is 1, 2, 4 or 8 and @d aligned to it. */
static void store_tail(void *d, const u8 *bytes, size_t tail)
{
	/*
	 * A user may poll the last byte and then read the rest.  Pairs with the
	 * read barrier in that loop, in user space.
	 */
	smp_wmb();
	switch (tail) {
	case 8:
		WRITE_ONCE(*(u64 *)d, *(const u64 *)bytes);
		break;
	case 4:
		WRITE_ONCE(*(u32 *)d, *(const u32 *)bytes);
		break;
	case 2:
		WRITE_ONCE(*(u16 *)d, *(const u16 *)bytes);
		break;
	default:
		WRITE_ONCE(*(u8 *)d, *bytes);
		break;
	}
}

/**
 * mrsoft_copy - copy bytes from span to span
 * @dst: held, with the right to write
 * @dst_off: bytes from the start of @dst
 * @src: held
 * @src_off: bytes from the start of @src
 * @len: bytes; the caller keeps to the spans
 *
 * The last bytes become visible last, with release order: up to 8 of them in a
 * single store, as far as their alignment in @dst allows.  Spans may overlap;
 * which of the bytes arrive is then undefined.
 *
 * Context: any.
 * Return: MRSOFT_R_NONE; MRSOFT_R_PAGE_ABSENT: a page is not present, or not for
 * writing (fault.h), some bytes may be copied but not the last;
 * MRSOFT_R_OUTSIDE: the caller is wrong, nothing is copied.
 */
enum mrsoft_reason mrsoft_copy(const struct mrsoft_span *dst, u64 dst_off,
			       const struct mrsoft_span *src, u64 src_off,
			       size_t len)
{
	u8 bytes[WORD] __aligned(WORD);
	enum mrsoft_reason reason;
	size_t n = 1, tail;
	void *last;

	if (WARN_ON_ONCE(!span_fits(dst, dst_off, len) ||
			 !span_fits(src, src_off, len)))
		return MRSOFT_R_OUTSIDE;
	if (!len)
		return MRSOFT_R_NONE;

	/* the last byte stays mapped; what is below in its word is in reach */
	last = span_map(dst, dst_off + len - 1, &n, true);
	if (unlikely(!last))
		return MRSOFT_R_PAGE_ABSENT;
	tail = tail_bytes(last + 1, len);

	reason = copy_bulk(dst, dst_off, src, src_off, len - tail);
	if (unlikely(reason))
		goto unmap;
	reason = copy_out(bytes, src, src_off + len - tail, tail);
	if (unlikely(reason))
		goto unmap;
	store_tail(last + 1 - tail, bytes, tail);
unmap:
	span_unmap(dst, last);
	return reason;
}

/**
 * mrsoft_copy_atomic - compare and swap, or fetch and add, on memory
 * @span: 8 bytes, held, with the right to do it
 * @op: which
 * @compare: CMP_SWAP: expected value, host order
 * @swap_add: CMP_SWAP: new value; FETCH_ADD: what is added; host order
 * @old: out: the value before, host order
 *
 * Atomic towards the CPUs too (IB_ATOMIC_GLOB), and a full barrier.
 *
 * Context: any.
 * Return: MRSOFT_R_NONE; MRSOFT_R_MISALIGNED: not on 8 bytes in memory;
 * MRSOFT_R_PAGE_ABSENT; MRSOFT_R_OUTSIDE: the caller is wrong, not 8 bytes.
 */
enum mrsoft_reason mrsoft_copy_atomic(const struct mrsoft_span *span,
				      enum mrsoft_atomic_op op, u64 compare,
				      u64 swap_add, u64 *old)
{
	enum mrsoft_reason reason = MRSOFT_R_NONE;
	size_t n = WORD;
	void *p;

	if (WARN_ON_ONCE(!span_fits(span, 0, WORD)))
		return MRSOFT_R_OUTSIDE;
	p = span_map(span, 0, &n, true);
	if (unlikely(!p))
		return MRSOFT_R_PAGE_ABSENT;
	if (unlikely(!IS_ALIGNED((unsigned long)p, WORD))) {
		reason = MRSOFT_R_MISALIGNED;
		goto unmap;
	}
	switch (op) {
	case MRSOFT_ATOMIC_CMP_SWAP:
		*old = cmpxchg64((u64 *)p, compare, swap_add);
		break;
	case MRSOFT_ATOMIC_FETCH_ADD:
		*old = atomic64_fetch_add(swap_add, (atomic64_t *)p);
		break;
	}
unmap:
	span_unmap(span, p);
	return reason;
}
