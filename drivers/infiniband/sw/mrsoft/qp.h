/* SPDX-License-Identifier: GPL-2.0 */
/*
 * qp.h - queue pairs: numbers, holds, the state machine
 *
 * Layer 3.  The members of the send queue and of the responder are here, what
 * they do is in sq.c and resp.c.
 */
#ifndef MRSOFT_QP_H
#define MRSOFT_QP_H

#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "ah.h"
#include "cq.h"
#include "fault.h"
#include "hca.h"
#include "mw.h"
#include "opcode.h"
#include "rq.h"

struct mrsoft_qp;
struct mrsoft_wire;

/**
 * struct mrsoft_swqe - the kernel's copy of a send WQE
 * @wr_id: as posted
 * @opcode: enum ib_wr_opcode
 * @flags: IB_SEND_*
 * @ex: immediate or key to invalidate
 * @rdma: WRITE, READ
 * @flush: FLUSH
 * @atomic: compare-and-swap (compare, swap_add), fetch-and-add (swap_add)
 * @ud: datagram; @ud.ah_num 0: @ud.av is filled in
 * @bind: BIND_MW
 * @reg: REG_MR, kernel consumers only
 * @length: bytes of the message, sum of the sges or of the inline data
 * @num_sge: entries in @sge; 0 with IB_SEND_INLINE
 * @bad: malformed; completes with a local QP operation error
 * @sge: gather or scatter list
 * @data: inline data
 */
struct mrsoft_swqe {
	u64 wr_id;
	u32 opcode;
	u32 flags;
	union {
		__be32 imm;
		u32 inv_key;
	} ex;
	union {
		struct {
			u64 addr;
			u32 key;
		} rdma;
		struct {
			u64 addr;
			u32 key;
			struct mrsoft_flush what;
		} flush;
		struct {
			u64 addr;
			u64 compare;
			u64 swap_add;
			u32 key;
		} atomic;
		struct {
			u32 qpn;
			u32 qkey;
			u32 ah_num;
			struct mrsoft_av av;
		} ud;
		struct mrsoft_bind bind;
		struct {
			struct mrsoft_mr *mr;
			u32 key;
			int access;
		} reg;
	};
	u64 length;
	u32 num_sge;
	bool bad;
	union {
		struct ib_sge sge[MRSOFT_MAX_SGE];
		u8 data[MRSOFT_MAX_INLINE];
	};
};

/**
 * struct mrsoft_msg - a message, on its way from requester to responder
 * @op: what it is
 * @opcode: enum ib_wr_opcode
 * @solicited: the receiver's CQE is a solicited one
 * @src_qpn: who sends
 * @psn: of its first packet
 * @packets: that it takes at the path MTU
 * @length: bytes
 * @raddr: first remote address
 * @rkey: key for it
 * @flush: FLUSH
 * @compare: compare-and-swap
 * @swap_add: atomic operand
 * @ex: immediate or key to invalidate
 * @qkey: UD
 * @grh: UD: the 40 bytes in front of the payload
 * @smac: UD: the sender's MAC
 * @ipv4: UD: @grh is an IPv4 header
 * @tagged: UD: came on a VLAN
 * @vlan: UD: its ID, with @tagged
 * @rnr_timer: code of the wait, with MRSOFT_S_RNR
 * @old: ATOMIC: the value before, filled in by the responder
 * @done: bytes placed or read so far
 * @copied: UD to a group: QPs of this host below that number have their copies
 * @fault: with MRSOFT_S_FAULT: what is not present
 * @no_fault: set by the path: it could not be had, so its absence is a refusal
 * @unsure: how often it could not be said whose bytes are absent
 * @reason: why the last call did not answer MRSOFT_S_OK
 *
 * Lives with the requester.  Remembers a key and a range, never a span.
 */
struct mrsoft_msg {
	const struct mrsoft_op *op;
	u32 opcode;
	bool solicited;
	u32 src_qpn;
	u32 psn;
	u32 packets;
	u64 length;
	u64 raddr;
	u32 rkey;
	struct mrsoft_flush flush;
	u64 compare;
	u64 swap_add;
	union {
		__be32 imm;
		u32 inv_key;
	} ex;
	u32 qkey;
	u8 grh[MRSOFT_GRH_BYTES];
	u8 smac[ETH_ALEN];
	bool ipv4;
	bool tagged;
	u16 vlan;
	u8 rnr_timer;
	u64 old;
	u64 done;
	u32 copied;
	struct mrsoft_fault fault;
	bool no_fault;
	u8 unsure;
	enum mrsoft_reason reason;
};

/**
 * struct mrsoft_send - a send WQE that was fetched
 * @wqe: the copy
 * @msg: its message
 * @status: not IB_WC_SUCCESS: what it completes with when its turn comes
 * @ready: it was validated, and the rest of this is set
 * @early: what is behind it may go out before it is answered, and it may itself
 * @begun: packets of it went out before it was the current one
 */
struct mrsoft_send {
	struct mrsoft_swqe wqe;
	struct mrsoft_msg msg;
	enum ib_wc_status status;
	bool ready;
	bool early;
	bool begun;
};

/* Where the runner of a send queue is with its current WQE. */
enum mrsoft_sq_stage {
	MRSOFT_SQ_IDLE,		/* no current WQE */
	MRSOFT_SQ_FETCHED,	/* validated, nothing sent */
	MRSOFT_SQ_BEGUN,	/* the responder has begun the message */
	MRSOFT_SQ_ENDED,	/* it has ended it; the result is to be stored */
};

/**
 * struct mrsoft_sq - send queue and its runner
 * @lock: S, spin, irqsave: kernel producer side, the run flags
 * @ring: S producer side of kernel consumers; consumer side: the runner
 * @running: S, somebody runs it
 * @again: S, look again before leaving
 * @waiting: S, a timer (RNR or retry wait) or the end of a page fault will start
 *	it again
 * @posts: S, with @waiting: a post does as well
 * @news: S, the path was woken and has not looked yet
 * @stopped: S, nobody may start it
 * @drained: S, in SQD: the last message is done and the event was raised
 * @work: goes on where a turn ended
 * @timer: end of an RNR or retry wait
 * @max_wr: I, capacity
 * @max_sge: I
 * @max_inline: I, bytes
 * @sig_all: I, every WQE is signalled
 * @sends: runner, WQEs that were fetched: from @head on the current one and @ahead
 *	more; allocated when first used
 * @head: runner
 * @ahead: runner
 * @cur: runner, copy of the WQE at the head
 * @post: S, where a kernel consumer's WQE is built
 * @bounce: runner, UD: payload on its way
 * @stage: runner, how far @cur is
 * @msg: runner, its message
 * @sge: runner, sge of @cur that is next
 * @sge_off: runner, bytes of it that are done
 * @psn: runner, next PSN
 * @retries: runner, tries left of @cur without an answer
 * @rnr_retries: runner, tries left of @cur after RNR
 * @faults: runner, page faults since the last bytes of @cur were placed
 * @job: runner, page fault that @cur waits for, or NULL
 * @wqes: runner, WQEs left in this turn
 * @bytes: runner, bytes left in this turn
 */
struct mrsoft_sq {
	spinlock_t lock; /* run flags, kernel producer side */
	struct mrsoft_ring ring;
	bool running;
	bool again;
	bool waiting;
	bool posts;
	bool news;
	bool stopped;
	bool drained;
	struct work_struct work;
	struct hrtimer timer;
	u32 max_wr;
	u32 max_sge;
	u32 max_inline;
	bool sig_all;
	struct mrsoft_send *sends[MRSOFT_MAX_SENDS];
	u32 head;
	u32 ahead;
	struct mrsoft_swqe *cur;
	struct mrsoft_swqe *post;
	u8 *bounce;
	enum mrsoft_sq_stage stage;
	struct mrsoft_msg *msg;
	u32 sge;
	u32 sge_off;
	u32 psn;
	u8 retries;
	u8 rnr_retries;
	u32 faults;
	struct mrsoft_fault_job *job;
	s32 wqes;
	s64 bytes;
};

/**
 * struct mrsoft_resp - responder side of a QP
 * @lock: spin, BH: everything here
 * @active: message that has the responder between begin and end or abort;
 *	only compared
 * @busy: a call works for @active right now, without the lock
 * @psn: next PSN expected
 * @msn: messages finished
 * @rwqe: receive WQE taken and not completed yet
 * @sge: sge of @rwqe that is next
 * @sge_off: bytes of it that are done
 * @has_rwqe: @rwqe is one
 * @heard: a message came in RTR, COMM_EST was raised
 * @last_wqe: LAST_WQE_REACHED was raised since RESET
 * @work: flush after an error
 * @delay: jiffies until a user's receive queue is looked at again in the error
 *	state; may be stale, then the look comes a little late
 */
struct mrsoft_resp {
	spinlock_t lock; /* the claim */
	const struct mrsoft_msg *active;
	bool busy;
	u32 psn;
	u32 msn;
	struct mrsoft_rwqe rwqe;
	u32 sge;
	u32 sge_off;
	bool has_rwqe;
	bool heard;
	bool last_wqe;
	struct delayed_work work;
	unsigned long delay;
};

/**
 * struct mrsoft_path_ops - how messages of a connected QP travel
 * @name: for people
 * @run: goes on with the current message of @qp.  0: done, with the result in
 *	*@status and msg->reason; -EAGAIN: the turn's budget is used up;
 *	-EINPROGRESS: waits, the runner is started again when there is news.
 * @abort: the current message will not go on
 */
struct mrsoft_path_ops {
	const char *name;
	int (*run)(struct mrsoft_qp *qp, enum ib_wc_status *status);
	void (*abort)(struct mrsoft_qp *qp);
};

/**
 * struct mrsoft_qp_slot - what the QPN table finds
 * @holds: A, 1 for the table + those who use the QP right now
 * @drained: completed by the last hold
 * @qp: valid while a hold is had
 * @rcu: frees it after lookups that may still see it
 *
 * Apart from the QP since the core frees that one as soon as destroy returns.
 */
struct mrsoft_qp_slot {
	refcount_t holds;
	struct completion drained;
	struct mrsoft_qp *qp;
	struct rcu_head rcu;
};

/**
 * struct mrsoft_qp - queue pair
 * @ib: the core's part, must be first
 * @hca: I
 * @pd: I
 * @slot: I, place in the QPN table
 * @qpn: I
 * @type: I
 * @is_user: I, rings are mapped by user space
 * @verbs: one modify or destroy at a time; outermost lock
 * @state_lock: spin, irqsave: @state, @attr, @av, @path
 * @state: current state; may be read without the lock, a reader that acts on a
 *	stale value is as one that was a moment earlier
 * @attr: as modified
 * @av: primary path
 * @path: chosen at RTR, kept until RESET
 * @wire: wire path, from the first RTR that chose it; NULL before
 * @send_cq: I
 * @recv_cq: I
 * @srq: I, or NULL
 * @rq: own receive queue, without @srq
 * @sq: send queue
 * @resp: responder
 * @binder: windows of type 2 bound through it
 * @mtu: bytes of the path MTU
 * @who: I, whose it is
 */
struct mrsoft_qp {
	struct ib_qp ib;
	struct mrsoft_hca *hca;
	struct mrsoft_pd *pd;
	struct mrsoft_qp_slot *slot;
	u32 qpn;
	enum ib_qp_type type;
	bool is_user;
	struct mutex verbs; /* modify, destroy */
	spinlock_t state_lock; /* state, attributes, path */
	enum ib_qp_state state;
	struct ib_qp_attr attr;
	struct mrsoft_av av;
	const struct mrsoft_path_ops *path;
	struct mrsoft_wire *wire;
	struct mrsoft_cq *send_cq;
	struct mrsoft_cq *recv_cq;
	struct mrsoft_srq *srq;
	struct mrsoft_rq rq;
	struct mrsoft_sq sq;
	struct mrsoft_resp resp;
	struct mrsoft_mw_binder binder;
	u32 mtu;
	struct mrsoft_who who;
};

static inline struct mrsoft_qp *mrsoft_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct mrsoft_qp, ib);
}

/* UD, and GSI, which is UD with a fixed number. */
static inline bool mrsoft_qp_is_datagram(const struct mrsoft_qp *qp)
{
	return qp->type == IB_QPT_UD || qp->type == IB_QPT_GSI;
}

static inline enum ib_qp_state mrsoft_qp_state(const struct mrsoft_qp *qp)
{
	return READ_ONCE(qp->state);
}

/*
 * Bytes of @sge, of the user's own memory; @rights: IB_ACCESS_* that they need;
 * @op and @peer: what for.
 */
static inline struct mrsoft_access
mrsoft_qp_sge_access(const struct mrsoft_qp *qp, const struct ib_sge *sge,
		     u32 off, u64 len, int rights, const char *op, u32 peer)
{
	return (struct mrsoft_access){
		.pd	= qp->pd,
		.qpn	= qp->qpn,
		.key	= sge->lkey,
		.rights	= rights,
		.iova	= sge->addr + off,
		.length	= len,
		.peer	= peer,
		.who	= &qp->who,
		.op	= op,
	};
}

/* The QP at the other end of the message that the runner works on. */
static inline u32 mrsoft_qp_peer(const struct mrsoft_qp *qp)
{
	return mrsoft_qp_is_datagram(qp) ? qp->sq.cur->ud.qpn :
					   qp->attr.dest_qp_num;
}

/*
 * Refusals: of what the runner sends, of a message that came, of a packet or of the
 * QP itself.  Each counts and returns the reason.
 */
enum mrsoft_reason mrsoft_qp_refuse_send(struct mrsoft_qp *qp,
					 enum mrsoft_reason reason);
enum mrsoft_reason mrsoft_qp_refuse_msg(struct mrsoft_qp *qp,
					const struct mrsoft_msg *msg,
					enum mrsoft_reason reason);
enum mrsoft_reason mrsoft_qp_refuse(struct mrsoft_qp *qp, const char *op,
				    enum mrsoft_reason reason);

/* hca.c */
void mrsoft_hca_init(struct mrsoft_hca *hca, struct workqueue_struct *wq);
void mrsoft_hca_destroy(struct mrsoft_hca *hca);

/* The QPN table.  @qpn 0: any free one, else just that one (GSI: 1). */
int mrsoft_qp_publish(struct mrsoft_qp *qp, u32 qpn);
void mrsoft_qp_unpublish(struct mrsoft_qp *qp);
/* A short hold: dropped before anything sleeps or waits. */
struct mrsoft_qp *mrsoft_qp_get(struct mrsoft_hca *hca, u32 qpn);
void mrsoft_qp_put(struct mrsoft_qp *qp);

/*
 * The state machine.  check: -EINVAL, -EOPNOTSUPP, nothing changed; apply: after
 * a check, under qp->verbs.  Engines are stopped and started by the caller.
 */
int mrsoft_qp_check(const struct mrsoft_qp *qp, const struct ib_qp_attr *attr,
		    int mask);
void mrsoft_qp_apply(struct mrsoft_qp *qp, const struct ib_qp_attr *attr,
		     int mask);
void mrsoft_qp_query(struct mrsoft_qp *qp, struct ib_qp_attr *attr);
void mrsoft_qp_count(struct mrsoft_qp *qp, const struct mrsoft_msg *msg,
		     bool requester);

/*
 * To the error state (or SQE), from any context: starts the flush.  True when
 * this call did it.
 */
bool mrsoft_qp_error(struct mrsoft_qp *qp);
bool mrsoft_qp_sq_error(struct mrsoft_qp *qp);
void mrsoft_qp_event(struct mrsoft_qp *qp, enum ib_event_type type);

#endif /* MRSOFT_QP_H */
