// SPDX-License-Identifier: GPL-2.0
/*
 * status.c - tables of statuses and reasons
 *
 * Owns:     the map responder status -> requester's completion status; the
 *           name and text of each reason and of what becomes of keys; timer
 *           codes.
 * Not here: counting (struct mrsoft_stats, status.h), completions (cq.c).
 * Locks:    none, all data is const.
 * Context:  any.
 * Spec:     IBA Vol 1, 10.8.3 and 11.6.2 (completion errors)
 * Tests:    kunit/words_kunit.c
 */
#include <linux/kernel.h>

#include "status.h"

static const enum ib_wc_status status_wc[MRSOFT_S_COUNT] = {
	[MRSOFT_S_OK]		= IB_WC_SUCCESS,
	[MRSOFT_S_RNR]		= IB_WC_RNR_RETRY_EXC_ERR,
	[MRSOFT_S_SILENT]	= IB_WC_RETRY_EXC_ERR,
	[MRSOFT_S_INV_REQ]	= IB_WC_REM_INV_REQ_ERR,
	[MRSOFT_S_REM_ACCESS]	= IB_WC_REM_ACCESS_ERR,
	[MRSOFT_S_REM_OP]	= IB_WC_REM_OP_ERR,
	[MRSOFT_S_LOC_PROT]	= IB_WC_LOC_PROT_ERR,
	/* the paths do not let it come to a completion */
	[MRSOFT_S_FAULT]	= IB_WC_GENERAL_ERR,
};

/* RNR NAK timer codes in units of 10 us, IBA 9.7.5.2.8 table 45. */
static const u32 rnr_10us[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
	16384, 24576, 32768, 49152,
};

struct reason_words {
	const char *name;
	const char *text;
};

static const struct reason_words reasons[MRSOFT_R_COUNT] = {
	[MRSOFT_R_NONE] = {
		"none",
		"not refused",
	},
	[MRSOFT_R_KEY_UNKNOWN] = {
		"key_unknown",
		"no such key",
	},
	[MRSOFT_R_KEY_STALE] = {
		"key_stale",
		"the key was deregistered, invalidated or rebound",
	},
	[MRSOFT_R_KEY_INVALID] = {
		"key_invalid",
		"the region or window is not in the valid state",
	},
	[MRSOFT_R_KEY_KIND] = {
		"key_kind",
		"the key is of another kind than the operation needs",
	},
	[MRSOFT_R_WRONG_PD] = {
		"wrong_pd",
		"the key belongs to another protection domain",
	},
	[MRSOFT_R_WRONG_QP] = {
		"wrong_qp",
		"the window is bound to another QP",
	},
	[MRSOFT_R_OUTSIDE] = {
		"outside",
		"the bytes are outside the region or window",
	},
	[MRSOFT_R_NO_LOCAL_WRITE] = {
		"no_local_write",
		"the region does not allow local writes",
	},
	[MRSOFT_R_NO_REMOTE_READ] = {
		"no_remote_read",
		"the key does not allow remote reads",
	},
	[MRSOFT_R_NO_REMOTE_WRITE] = {
		"no_remote_write",
		"the key does not allow remote writes",
	},
	[MRSOFT_R_NO_REMOTE_ATOMIC] = {
		"no_remote_atomic",
		"the key does not allow remote atomics",
	},
	[MRSOFT_R_PAGE_ABSENT] = {
		"page_absent",
		"a page of the region is not present",
	},
	[MRSOFT_R_MISALIGNED] = {
		"misaligned",
		"an atomic's address is not a multiple of 8",
	},
	[MRSOFT_R_NO_MW_BIND] = {
		"no_mw_bind",
		"the region does not allow binding windows",
	},
	[MRSOFT_R_MW_TYPE] = {
		"mw_type",
		"the operation does not fit the window's type",
	},
	[MRSOFT_R_MW_BOUND] = {
		"mw_bound",
		"the window is bound already",
	},
	[MRSOFT_R_MW_RIGHTS] = {
		"mw_rights",
		"the window asks for rights that the region lacks",
	},
	[MRSOFT_R_MR_BUSY] = {
		"mr_busy",
		"windows are bound to the region",
	},
	[MRSOFT_R_RING_ENTRY] = {
		"ring_entry",
		"a work queue entry is malformed",
	},
	[MRSOFT_R_OPCODE] = {
		"opcode",
		"the operation is not allowed on this QP",
	},
	[MRSOFT_R_MSG_TOO_LONG] = {
		"msg_too_long",
		"the message is longer than the device or path allows",
	},
	[MRSOFT_R_RECV_TOO_SHORT] = {
		"recv_too_short",
		"the message is longer than the receive buffer",
	},
	[MRSOFT_R_NO_RECV] = {
		"no_recv",
		"no receive was posted",
	},
	[MRSOFT_R_AH] = {
		"ah",
		"no such address handle in this protection domain",
	},
	[MRSOFT_R_CQ_OVERFLOW] = {
		"cq_overflow",
		"the completion queue was full",
	},
	[MRSOFT_R_FLUSHED] = {
		"flushed",
		"the QP was in the error state",
	},
	[MRSOFT_R_QP_ACCESS] = {
		"qp_access",
		"the QP's access flags do not allow the operation",
	},
	[MRSOFT_R_NO_PATH] = {
		"no_path",
		"no path to the destination address",
	},
	[MRSOFT_R_NO_PEER] = {
		"no_peer",
		"no such QP at the destination",
	},
	[MRSOFT_R_PEER_STATE] = {
		"peer_state",
		"the destination QP is not ready to receive",
	},
	[MRSOFT_R_PSN] = {
		"psn",
		"the packet sequence number was not the expected one",
	},
	[MRSOFT_R_QKEY] = {
		"qkey",
		"the Q_Key does not match",
	},
	[MRSOFT_R_RNR_EXCEEDED] = {
		"rnr_exceeded",
		"no receive was posted within the RNR retries",
	},
	[MRSOFT_R_RETRY_EXCEEDED] = {
		"retry_exceeded",
		"no answer within the retries",
	},
	[MRSOFT_R_READ_DEPTH] = {
		"read_depth",
		"the responder allows no READ, atomic or FLUSH",
	},
	[MRSOFT_R_PORT_DOWN] = {
		"port_down",
		"the port is down",
	},
	[MRSOFT_R_PEER_REFUSED] = {
		"peer_refused",
		"the responder refused, see its own reason",
	},
	[MRSOFT_R_PKEY] = {
		"pkey",
		"the P_Key does not match",
	},
	[MRSOFT_R_PKT_LENGTH] = {
		"pkt_length",
		"a packet is shorter or longer than its kind allows",
	},
	[MRSOFT_R_PKT_HEADER] = {
		"pkt_header",
		"a packet has IP options, was in fragments or has reserved values",
	},
	[MRSOFT_R_PKT_ICRC] = {
		"pkt_icrc",
		"the checksum of a packet is wrong",
	},
	[MRSOFT_R_PKT_OPCODE] = {
		"pkt_opcode",
		"a packet is of a kind that the QP does not know",
	},
	[MRSOFT_R_PKT_SOURCE] = {
		"pkt_source",
		"a packet does not come from the QP's peer",
	},
	[MRSOFT_R_PKT_ORDER] = {
		"pkt_order",
		"a packet does not go on where its message is",
	},
	[MRSOFT_R_PKT_QUEUE] = {
		"pkt_queue",
		"too many packets wait at the QP",
	},
	[MRSOFT_R_NO_REMOTE_FLUSH] = {
		"no_remote_flush",
		"the key does not allow remote flushes of this type",
	},
	[MRSOFT_R_INJECTED] = {
		"injected",
		"an injection rule asked for it",
	},
};

/**
 * mrsoft_status_to_wc - the requester's completion for a responder's answer
 * @status: what the responder answered
 *
 * MRSOFT_S_RNR and MRSOFT_S_SILENT map to what they become once the retries
 * are used up.
 *
 * Context: any.
 * Return: the completion status, IBA 11.6.2.
 */
enum ib_wc_status mrsoft_status_to_wc(enum mrsoft_status status)
{
	if (WARN_ON_ONCE(status >= ARRAY_SIZE(status_wc)))
		return IB_WC_FATAL_ERR;
	return status_wc[status];
}

/**
 * mrsoft_rnr_ns - how long an RNR NAK asks the requester to wait
 * @code: 5 bits, IB_QP_MIN_RNR_TIMER of the responder
 *
 * Context: any.
 * Return: nanoseconds.
 */
u64 mrsoft_rnr_ns(u8 code)
{
	return rnr_10us[code & 31] * 10000ull;
}

/**
 * mrsoft_ack_ns - how long a requester waits for an answer
 * @code: 5 bits, IB_QP_TIMEOUT; 4.096 us * 2^code, IBA 9.7.6.1.3
 *
 * Context: any.
 * Return: nanoseconds; 0 for code 0, which means for ever.
 */
u64 mrsoft_ack_ns(u8 code)
{
	return code & 31 ? 4096ull << (code & 31) : 0;
}

/**
 * mrsoft_reason_name - short name of a reason, fit for a counter or a script
 * @reason: any value, also one from outside
 *
 * Context: any.
 * Return: a name without blanks, "invalid" for an unknown value.
 */
const char *mrsoft_reason_name(enum mrsoft_reason reason)
{
	if ((u32)reason >= MRSOFT_R_COUNT || !reasons[reason].name)
		return "invalid";
	return reasons[reason].name;
}

/**
 * mrsoft_reason_text - a reason as a person reads it
 * @reason: any value, also one from outside
 *
 * Context: any.
 * Return: a phrase without a full stop.
 */
const char *mrsoft_reason_text(enum mrsoft_reason reason)
{
	if ((u32)reason >= MRSOFT_R_COUNT || !reasons[reason].text)
		return "unknown reason";
	return reasons[reason].text;
}

/**
 * mrsoft_end_text - a word for what became of a key
 * @how: what
 *
 * Context: any.
 * Return: a constant without spaces.
 */
const char *mrsoft_end_text(enum mrsoft_end how)
{
	static const char * const texts[MRSOFT_END_COUNT] = {
		[MRSOFT_END_NONE]	 = "-",
		[MRSOFT_END_DEREG]	 = "deregistered",
		[MRSOFT_END_DEALLOC]	 = "deallocated",
		[MRSOFT_END_INVALIDATED] = "invalidated",
		[MRSOFT_END_REMOTE_INV]	 = "invalidated-by-peer",
		[MRSOFT_END_UNBOUND]	 = "unbound",
		[MRSOFT_END_QP_GONE]	 = "qp-gone",
	};

	return how < MRSOFT_END_COUNT ? texts[how] : "-";
}
