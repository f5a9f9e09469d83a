/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * mrsoft.h - what user space may know of mrsoft beyond the rxe user ABI
 *
 * The numbers are stable: they are the vendor_err of a completion and appear
 * in counters, trace points and the fault diary.  New reasons are added at
 * the end.
 */
#ifndef _UAPI_RDMA_MRSOFT_H
#define _UAPI_RDMA_MRSOFT_H

/**
 * enum mrsoft_reason - why mrsoft refused an operation
 *
 * Short names and texts: mrsoft_reason_name(), mrsoft_reason_text().
 */
enum mrsoft_reason {
	MRSOFT_R_NONE			= 0,	/* not refused */
	/* the key table */
	MRSOFT_R_KEY_UNKNOWN		= 1,
	MRSOFT_R_KEY_STALE		= 2,
	MRSOFT_R_KEY_INVALID		= 3,
	MRSOFT_R_KEY_KIND		= 4,
	MRSOFT_R_WRONG_PD		= 5,
	MRSOFT_R_WRONG_QP		= 6,
	MRSOFT_R_OUTSIDE		= 7,
	MRSOFT_R_NO_LOCAL_WRITE		= 8,
	MRSOFT_R_NO_REMOTE_READ		= 9,
	MRSOFT_R_NO_REMOTE_WRITE	= 10,
	MRSOFT_R_NO_REMOTE_ATOMIC	= 11,
	MRSOFT_R_PAGE_ABSENT		= 12,
	MRSOFT_R_MISALIGNED		= 13,
	/* windows */
	MRSOFT_R_NO_MW_BIND		= 14,
	MRSOFT_R_MW_TYPE		= 15,
	MRSOFT_R_MW_BOUND		= 16,
	MRSOFT_R_MW_RIGHTS		= 17,
	MRSOFT_R_MR_BUSY		= 18,
	/* queues */
	MRSOFT_R_RING_ENTRY		= 19,
	MRSOFT_R_OPCODE			= 20,
	MRSOFT_R_MSG_TOO_LONG		= 21,
	MRSOFT_R_RECV_TOO_SHORT		= 22,
	MRSOFT_R_NO_RECV		= 23,
	MRSOFT_R_AH			= 24,
	MRSOFT_R_CQ_OVERFLOW		= 25,
	MRSOFT_R_FLUSHED		= 26,
	/* the peer */
	MRSOFT_R_QP_ACCESS		= 27,
	MRSOFT_R_NO_PATH		= 28,
	MRSOFT_R_NO_PEER		= 29,
	MRSOFT_R_PEER_STATE		= 30,
	MRSOFT_R_PSN			= 31,
	MRSOFT_R_QKEY			= 32,
	MRSOFT_R_RNR_EXCEEDED		= 33,
	MRSOFT_R_RETRY_EXCEEDED		= 34,
	MRSOFT_R_READ_DEPTH		= 35,
	MRSOFT_R_PORT_DOWN		= 36,
	MRSOFT_R_PEER_REFUSED		= 37,
	MRSOFT_R_PKEY			= 38,
	/* packets */
	MRSOFT_R_PKT_LENGTH		= 39,
	MRSOFT_R_PKT_HEADER		= 40,
	MRSOFT_R_PKT_ICRC		= 41,
	MRSOFT_R_PKT_OPCODE		= 42,
	MRSOFT_R_PKT_SOURCE		= 43,
	MRSOFT_R_PKT_ORDER		= 44,
	MRSOFT_R_PKT_QUEUE		= 45,
	/* the key table, later */
	MRSOFT_R_NO_REMOTE_FLUSH	= 46,
	/* no fault: somebody wrote a rule into debugfs */
	MRSOFT_R_INJECTED		= 47,

	MRSOFT_R_COUNT
};

#endif /* _UAPI_RDMA_MRSOFT_H */
