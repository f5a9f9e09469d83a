/* SPDX-License-Identifier: GPL-2.0 */
/*
 * status.h - what a responder answers, and the reasons behind a refusal
 *
 * Layer 0: pure.  Statuses map by table to ib_wc_status; reasons have a name
 * and a text and are counted in struct mrsoft_stats.
 */
#ifndef MRSOFT_STATUS_H
#define MRSOFT_STATUS_H

#include <linux/atomic.h>
#include <rdma/ib_verbs.h>
#include <uapi/rdma/mrsoft.h>

/**
 * enum mrsoft_status - the responder's answer to a message or a part of it
 * @MRSOFT_S_OK: done as asked
 * @MRSOFT_S_RNR: no receive WQE now, try again after the RNR timer
 * @MRSOFT_S_SILENT: nobody answers: no such QP, not ready, wrong PSN
 * @MRSOFT_S_INV_REQ: invalid request (NAK 1)
 * @MRSOFT_S_REM_ACCESS: remote access error (NAK 2)
 * @MRSOFT_S_REM_OP: remote operational error (NAK 3)
 * @MRSOFT_S_LOC_PROT: the requester's own side of a segment was refused
 * @MRSOFT_S_FAULT: no answer yet: a page must be faulted in, which sleeps; then the
 *	same call again
 */
enum mrsoft_status {
	MRSOFT_S_OK,
	MRSOFT_S_RNR,
	MRSOFT_S_SILENT,
	MRSOFT_S_INV_REQ,
	MRSOFT_S_REM_ACCESS,
	MRSOFT_S_REM_OP,
	MRSOFT_S_LOC_PROT,
	MRSOFT_S_FAULT,
	MRSOFT_S_COUNT
};

/**
 * enum mrsoft_end - what became of a key
 * @MRSOFT_END_NONE: nothing is known of it
 * @MRSOFT_END_DEREG: its region was deregistered
 * @MRSOFT_END_DEALLOC: its window was deallocated
 * @MRSOFT_END_INVALIDATED: its owner invalidated it
 * @MRSOFT_END_REMOTE_INV: a peer invalidated it
 * @MRSOFT_END_UNBOUND: its window was unbound or bound anew
 * @MRSOFT_END_QP_GONE: the QP that it was bound to was reset or destroyed
 */
enum mrsoft_end {
	MRSOFT_END_NONE,
	MRSOFT_END_DEREG,
	MRSOFT_END_DEALLOC,
	MRSOFT_END_INVALIDATED,
	MRSOFT_END_REMOTE_INV,
	MRSOFT_END_UNBOUND,
	MRSOFT_END_QP_GONE,
	MRSOFT_END_COUNT
};

struct mrsoft_diary;
struct mrsoft_inject;

/**
 * struct mrsoft_stats - what a device counts
 * @reasons: refusals, by &enum mrsoft_reason
 * @tx_msgs: messages finished by requesters
 * @rx_msgs: messages finished by responders
 * @tx_bytes: payload bytes sent: of SENDs, WRITEs, and of READs served
 * @rx_bytes: payload bytes received: the same from the other side
 * @tx_packets: packets of messages and of READ responses, at the path MTU; what
 *	answers or is sent again does not count
 * @rx_packets: the same from the other side
 * @rnr_waits: times that a requester waited for a receive WQE
 * @retries: times that a requester tried a message again
 * @retransmits: packets that were sent again
 * @duplicates: requests that had come before
 * @page_faults: times that a message needed a page that was not present
 * @diary: I, where refusals are written down, or NULL
 * @inject: I, faults that are asked for, or NULL
 * @injecting: A, @inject has rules (READ_ONCE)
 *
 * All lock-free; readers may see one counter ahead of another.
 */
struct mrsoft_stats {
	atomic64_t reasons[MRSOFT_R_COUNT];
	atomic64_t tx_msgs;
	atomic64_t rx_msgs;
	atomic64_t tx_bytes;
	atomic64_t rx_bytes;
	atomic64_t tx_packets;
	atomic64_t rx_packets;
	atomic64_t rnr_waits;
	atomic64_t retries;
	atomic64_t retransmits;
	atomic64_t duplicates;
	atomic64_t page_faults;
	struct mrsoft_diary *diary;
	struct mrsoft_inject *inject;
	bool injecting;
};

/**
 * mrsoft_refuse - count a refusal
 * @stats: the device's counters
 * @reason: why
 *
 * By itself only for what is the consequence of another refusal: a flush.  All
 * else goes through mrsoft_diary_refuse().
 *
 * Context: any.
 * Return: @reason, so that a refusal reads `return mrsoft_refuse(...)`.
 */
static inline enum mrsoft_reason mrsoft_refuse(struct mrsoft_stats *stats,
					       enum mrsoft_reason reason)
{
	atomic64_inc(&stats->reasons[reason]);
	return reason;
}

enum ib_wc_status mrsoft_status_to_wc(enum mrsoft_status status);
u64 mrsoft_rnr_ns(u8 code);
u64 mrsoft_ack_ns(u8 code);
const char *mrsoft_reason_name(enum mrsoft_reason reason);
const char *mrsoft_reason_text(enum mrsoft_reason reason);
const char *mrsoft_end_text(enum mrsoft_end how);

#endif /* MRSOFT_STATUS_H */
