/* SPDX-License-Identifier: GPL-2.0 */
/*
 * raw.h - work requests that librxe of the machine cannot write
 *
 * It has no FLUSH: a test writes it into the ring that librxe has mapped, as a newer
 * librxe does, and rings the bell.
 */
#ifndef MRSOFT_SELFTESTS_RAW_H
#define MRSOFT_SELFTESTS_RAW_H

#include "lib.h"

/* Newer than the headers of the machine: the kernel's numbers. */
#define ACCESS_FLUSH_GLOBAL 0x100
#define ACCESS_FLUSH_PERSISTENT 0x200
#define DEVICE_FLUSH_GLOBAL 0x4000000000ull
#define DEVICE_FLUSH_PERSISTENT 0x8000000000ull
#define ODP_SUPPORT_FLUSH 0x40
#define WC_FLUSH 8
#define FLUSH_GLOBAL 1
#define FLUSH_PERSISTENT 2
#define FLUSH_RANGE 0
#define FLUSH_MR 1

/* struct rxe_queue_buf of the ABI */
struct ring {
	uint32_t log2_elem_size;
	uint32_t index_mask;
	uint32_t pad_1[30];
	uint32_t producer_index;
	uint32_t pad_2[31];
	uint32_t consumer_index;
	uint32_t pad_3[31];
	uint8_t data[];
};

/* What the process has mapped of devices; returns how many, at most @max. */
size_t find_rings(struct ring **rings, size_t *lens, size_t max);
/* The ring to which @one adds a send WR. */
struct ring *send_ring(void (*one)(void *arg), void *arg);
void doorbell(const struct end *e);

/* struct rxe_send_wr, wr.flush; the length goes where librxe has it */
struct flush {
	uint64_t wr_id, addr;
	uint32_t length, rkey;
	uint8_t type, level;
};

void post_flush(const struct end *e, struct ring *sq, const struct flush *f);
uint64_t device_caps(const struct ctx *c);

#endif /* MRSOFT_SELFTESTS_RAW_H */
