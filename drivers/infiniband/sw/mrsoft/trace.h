/* SPDX-License-Identifier: GPL-2.0 */
/*
 * trace.h - trace points: what happens to memory, and what is refused
 *
 * Layer 1.  Each line reads as a sentence.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM mrsoft

#if !defined(MRSOFT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define MRSOFT_TRACE_H

#include <linux/tracepoint.h>
#include <mrsoft_trace.h>

#include "diary.h"

struct mrsoft_key;

TRACE_EVENT(mrsoft_refuse,
	TP_PROTO(const struct mrsoft_refusal *what),
	TP_ARGS(what),
	TP_STRUCT__entry(
		__field(int, reason)
		__field(u32, qpn)
		__field(u32, peer)
		__field(pid_t, pid)
		__field(u32, key)
		__field(u64, addr)
		__field(u64, length)
		__string(op, what->op ? what->op : "request")
		__string(why, mrsoft_reason_text(what->reason))
	),
	TP_fast_assign(
		__entry->reason = what->reason;
		__entry->qpn = what->qpn;
		__entry->peer = what->peer;
		__entry->pid = what->who ? what->who->pid : 0;
		__entry->key = what->key;
		__entry->addr = what->addr;
		__entry->length = what->length;
		mrsoft_assign_str(op, what->op ? what->op : "request");
		mrsoft_assign_str(why, mrsoft_reason_text(what->reason));
	),
	TP_printk("%s on QP %u of process %d refused (%d): %s; peer QP %u key %#x addr %#llx length %llu",
		  __get_str(op), __entry->qpn, __entry->pid, __entry->reason,
		  __get_str(why), __entry->peer, __entry->key, __entry->addr,
		  __entry->length)
);

TRACE_EVENT(mrsoft_register,
	TP_PROTO(const struct mrsoft_key *key, u64 ns),
	TP_ARGS(key, ns),
	TP_STRUCT__entry(
		__field(u32, key)
		__field(u64, iova)
		__field(u64, length)
		__field(int, access)
		__field(u64, ns)
	),
	TP_fast_assign(
		__entry->key = READ_ONCE(key->key);
		__entry->iova = key->iova;
		__entry->length = key->length;
		__entry->access = key->access;
		__entry->ns = ns;
	),
	TP_printk("MR %#x registered: %llu bytes at %#llx access %#x in %llu ns",
		  __entry->key, __entry->length, __entry->iova,
		  __entry->access, __entry->ns)
);

TRACE_EVENT(mrsoft_deregister,
	TP_PROTO(u32 key, int err, u64 ns, u64 waited_ns),
	TP_ARGS(key, err, ns, waited_ns),
	TP_STRUCT__entry(
		__field(u32, key)
		__field(int, err)
		__field(u64, ns)
		__field(u64, waited_ns)
	),
	TP_fast_assign(
		__entry->key = key;
		__entry->err = err;
		__entry->ns = ns;
		__entry->waited_ns = waited_ns;
	),
	TP_printk("MR %#x deregistered: %d in %llu ns, of which %llu ns for copies that ran",
		  __entry->key, __entry->err, __entry->ns, __entry->waited_ns)
);

TRACE_EVENT(mrsoft_bind,
	TP_PROTO(u32 window, u32 mr, u32 qpn, u64 addr, u64 length),
	TP_ARGS(window, mr, qpn, addr, length),
	TP_STRUCT__entry(
		__field(u32, window)
		__field(u32, mr)
		__field(u32, qpn)
		__field(u64, addr)
		__field(u64, length)
	),
	TP_fast_assign(
		__entry->window = window;
		__entry->mr = mr;
		__entry->qpn = qpn;
		__entry->addr = addr;
		__entry->length = length;
	),
	TP_printk("MW %#x bound to MR %#x by QP %u: %llu bytes at %#llx",
		  __entry->window, __entry->mr, __entry->qpn, __entry->length,
		  __entry->addr)
);

TRACE_EVENT(mrsoft_unbind,
	TP_PROTO(u32 window, u32 mr, enum mrsoft_end how),
	TP_ARGS(window, mr, how),
	TP_STRUCT__entry(
		__field(u32, window)
		__field(u32, mr)
		__string(how, mrsoft_end_text(how))
	),
	TP_fast_assign(
		__entry->window = window;
		__entry->mr = mr;
		mrsoft_assign_str(how, mrsoft_end_text(how));
	),
	TP_printk("MW %#x no longer bound to MR %#x: %s", __entry->window,
		  __entry->mr, __get_str(how))
);

TRACE_EVENT(mrsoft_invalidate,
	TP_PROTO(u32 key, u32 qpn, bool remote),
	TP_ARGS(key, qpn, remote),
	TP_STRUCT__entry(
		__field(u32, key)
		__field(u32, qpn)
		__field(bool, remote)
	),
	TP_fast_assign(
		__entry->key = key;
		__entry->qpn = qpn;
		__entry->remote = remote;
	),
	TP_printk("key %#x invalidated through QP %u by %s", __entry->key,
		  __entry->qpn, __entry->remote ? "its peer" : "its owner")
);

TRACE_EVENT(mrsoft_path,
	TP_PROTO(u32 qpn, u32 peer, const char *path),
	TP_ARGS(qpn, peer, path),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u32, peer)
		__string(path, path)
	),
	TP_fast_assign(
		__entry->qpn = qpn;
		__entry->peer = peer;
		mrsoft_assign_str(path, path);
	),
	TP_printk("QP %u to QP %u takes the path %s", __entry->qpn,
		  __entry->peer, __get_str(path))
);

TRACE_EVENT(mrsoft_retransmit,
	TP_PROTO(u32 qpn, u32 peer, u32 psn, u32 left),
	TP_ARGS(qpn, peer, psn, left),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u32, peer)
		__field(u32, psn)
		__field(u32, left)
	),
	TP_fast_assign(
		__entry->qpn = qpn;
		__entry->peer = peer;
		__entry->psn = psn;
		__entry->left = left;
	),
	TP_printk("QP %u sends again to QP %u from PSN %u on, %u tries left",
		  __entry->qpn, __entry->peer, __entry->psn, __entry->left)
);

#endif /* MRSOFT_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
