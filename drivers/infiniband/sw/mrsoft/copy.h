/* SPDX-License-Identifier: GPL-2.0 */
/*
 * copy.h - moving bytes between spans
 *
 * Layer 1, above mr.h.  Every kmap_local, memcpy and cmpxchg on the memory of a
 * region is in copy.c.
 */
#ifndef MRSOFT_COPY_H
#define MRSOFT_COPY_H

#include "mr.h"

/*
 * Copies @len bytes.  The caller has both spans and keeps to their lengths (a
 * WARN otherwise).  Ascending order, the last bytes last, with release order
 * towards a user that polls the tail.  Does not sleep.
 * MRSOFT_R_PAGE_ABSENT if a page is not present: some bytes may be copied.  The
 * caller may have it faulted in (fault.h) and copy again from the start.
 */
enum mrsoft_reason mrsoft_copy(const struct mrsoft_span *dst, u64 dst_off,
			       const struct mrsoft_span *src, u64 src_off,
			       size_t len);

enum mrsoft_atomic_op { MRSOFT_ATOMIC_CMP_SWAP, MRSOFT_ATOMIC_FETCH_ADD };

/*
 * An atomic of the CPU on the 8 aligned bytes of @span, host byte order.
 * *@old gets the value before.
 */
enum mrsoft_reason mrsoft_copy_atomic(const struct mrsoft_span *span,
				      enum mrsoft_atomic_op op, u64 compare,
				      u64 swap_add, u64 *old);

#endif /* MRSOFT_COPY_H */
