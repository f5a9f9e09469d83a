// SPDX-License-Identifier: GPL-2.0
/*
 * tx.c - wire path, requester: window, answers, retries
 *
 * Owns:     what is sent and not answered yet, answers, time-outs, RNR waits.
 * Not here: packets (request.c), WQEs (fetch.c) and their completions (sq.c), how
 *           an answer got here (rx.c).
 * Locks:    none: the runner of the send queue is the only user of wire->tx.
 *           Answers come through the queue wire->acks, which has its own.
 * Lifetime: a packet has copies of the bytes; a lost one is built anew from
 *           memory, with all checks.
 * Context:  process.
 * Spec:     IBA Vol 1, 9.7.2 (PSN), 9.7.5.2 (NAK), 9.7.6 (time-out), 9.7.7
 * Tests:    tools/testing/selftests/packets.c,
 *           tools/testing/suites/wire.sh
 */
#include <linux/unaligned.h>

#include "fetch.h"
#include "pagein.h"
#include "psn.h"
#include "request.h"
#include "sgl.h"
#include "sq.h"
#include "trace.h"
#include "tx.h"

/* Packets of the answer that one READ request asks for. */
#define READ_CHUNK	64u
/* A time-out doubles with each one that follows, up to eight times. */
#define MAX_BACKOFF	3

static struct mrsoft_tx *tx_of(struct mrsoft_qp *qp)
{
	return &qp->wire->tx;
}

static bool is_behind(const struct mrsoft_msg *msg, u32 psn)
{
	return mrsoft_request_index(msg, psn) >= msg->packets;
}

static const struct mrsoft_msg *nth_msg(const struct mrsoft_qp *qp, u32 nth)
{
	return &mrsoft_fetch_nth(&qp->sq, nth)->msg;
}

/* Is it done by a response of its own, not by an acknowledge? */
static bool has_response(const struct mrsoft_msg *msg)
{
	return mrsoft_op_needs_depth(msg->op) ||
	       (msg->op->flags & MRSOFT_OPF_WORD);
}

/* How many requests of max_rd_atomic are taken by one that is all asked for. */
static u32 responses(const struct mrsoft_qp *qp, const struct mrsoft_msg *msg)
{
	if (!has_response(msg))
		return 0;
	return msg->packets > READ_CHUNK && qp->attr.max_rd_atomic > 1 ? 2 : 1;
}

static void arm(struct mrsoft_qp *qp)
{
	struct mrsoft_tx *tx = tx_of(qp);
	u64 ns = mrsoft_ack_ns(qp->attr.timeout);

	if (!ns)
		ns = MRSOFT_FOREVER_POLL_NS;
	tx->due = ktime_add_ns(ktime_get(), ns << tx->backoff);
}

/* The peer is there and has got on. */
static void progress(struct mrsoft_qp *qp, u32 una)
{
	struct mrsoft_tx *tx = tx_of(qp);

	tx->una = una;
	/* what was sent again may be answered before it is sent */
	if (mrsoft_psn_diff(tx->next, una) < 0)
		tx->next = una;
	tx->backoff = 0;
	tx->gap = false;
	tx->rnr = false;
	qp->sq.retries = qp->attr.retry_cnt;
	mrsoft_pagein_placed(qp);
	arm(qp);
}

static int give_up(struct mrsoft_qp *qp, enum ib_wc_status *status,
		   enum ib_wc_status wc, enum mrsoft_reason reason)
{
	mrsoft_qp_refuse_send(qp, reason);
	/* The reason of the last try says more than the count. */
	if (!qp->sq.msg->reason)
		qp->sq.msg->reason = reason;
	*status = wc;
	return 0;
}

/* Sends again, from the oldest packet without an answer.  0: no more retries. */
static int retry(struct mrsoft_qp *qp, enum ib_wc_status *status)
{
	struct mrsoft_tx *tx = tx_of(qp);

	if (qp->attr.timeout && !qp->sq.retries--)
		return give_up(qp, status, IB_WC_RETRY_EXC_ERR,
			       MRSOFT_R_RETRY_EXCEEDED);
	atomic64_inc(&qp->hca->stats.retries);
	trace_mrsoft_retransmit(qp->qpn, qp->attr.dest_qp_num, tx->una,
				qp->sq.retries);
	tx->next = tx->una;
	arm(qp);
	return -EINPROGRESS;
}

/* A response is lost: asked for once, then the rest of what comes is old news. */
static int missing(struct mrsoft_qp *qp, enum ib_wc_status *status)
{
	struct mrsoft_tx *tx = tx_of(qp);

	if (tx->gap)
		return -EINPROGRESS;
	tx->gap = true;
	return retry(qp, status);
}

static int wait_rnr(struct mrsoft_qp *qp, u8 timer, enum ib_wc_status *status)
{
	struct mrsoft_tx *tx = tx_of(qp);
	struct mrsoft_sq *sq = &qp->sq;

	if (sq->rnr_retries != MRSOFT_RNR_FOREVER && !sq->rnr_retries--)
		return give_up(qp, status, IB_WC_RNR_RETRY_EXC_ERR,
			       MRSOFT_R_RNR_EXCEEDED);
	atomic64_inc(&qp->hca->stats.rnr_waits);
	tx->next = tx->una;
	tx->rnr = true;
	tx->due = ktime_add_ns(ktime_get(), mrsoft_rnr_ns(timer));
	return -EINPROGRESS;
}

/* How many PSNs may be used up by the next request; 0: not now. */
static u32 room(const struct mrsoft_qp *qp)
{
	const struct mrsoft_tx *tx = &qp->wire->tx;
	const struct mrsoft_msg *msg = qp->sq.msg;
	u32 sent, out = mrsoft_psn_diff(tx->next, tx->una);

	if (tx->rnr || is_behind(msg, tx->next))
		return 0;
	if (msg->op->kind != MRSOFT_OP_READ)
		return qp->type == IB_QPT_UC || out < MRSOFT_TX_WINDOW ? 1 : 0;
	/* The next chunk is asked for early if the peer takes two. */
	if (out && (out > READ_CHUNK / 2 || qp->attr.max_rd_atomic < 2))
		return 0;
	/* What is asked for again is the rest of one request, IBA 9.7.5.1.2. */
	sent = mrsoft_request_index(msg, tx->next);
	return min(msg->packets - sent, READ_CHUNK - sent % READ_CHUNK);
}

static enum mrsoft_status send_one(struct mrsoft_qp *qp, u32 n, u32 bytes)
{
	struct mrsoft_tx *tx = tx_of(qp);
	enum mrsoft_status answer = MRSOFT_S_OK;

	if (tx->next == tx->una)
		arm(qp);
	switch (qp->sq.msg->op->kind) {
	case MRSOFT_OP_READ:
		mrsoft_request_read(qp, tx->next, n);
		break;
	case MRSOFT_OP_ATOMIC:
		mrsoft_request_atomic(qp, tx->next);
		break;
	default:
		answer = mrsoft_request_data(qp, tx->next, bytes);
	}
	if (answer)
		return answer;
	if (mrsoft_psn_diff(tx->next, tx->high) < 0)
		atomic64_inc(&qp->hca->stats.retransmits);
	tx->next = mrsoft_psn_add(tx->next, n);
	if (mrsoft_psn_diff(tx->next, tx->high) > 0)
		tx->high = tx->next;
	return MRSOFT_S_OK;
}

/*
 * What may go out now of the message that is worked on.  0: it is over; -ENODATA:
 * no more now; -EFAULT: a page is absent; -EAGAIN: the turn is over.
 */
static int send_msg(struct mrsoft_qp *qp, enum ib_wc_status *status)
{
	struct mrsoft_msg *msg = qp->sq.msg;
	struct mrsoft_tx *tx = tx_of(qp);
	enum mrsoft_status answer;
	u32 n, bytes;

	while ((n = room(qp))) {
		bytes = min_t(u64, (u64)n * qp->mtu,
			      msg->length - mrsoft_request_offset(qp, tx->next));
		if (!mrsoft_sq_charge(qp, bytes))
			return -EAGAIN;
		answer = send_one(qp, n, bytes);
		if (answer == MRSOFT_S_FAULT)
			return -EFAULT;
		if (answer) {
			*status = IB_WC_LOC_PROT_ERR;
			return 0;
		}
		cond_resched();
	}
	return -ENODATA;
}

/* The current message.  0: it is over; -ENODATA: no more now; else leave. */
static int send_cur(struct mrsoft_qp *qp, enum ib_wc_status *status)
{
	int ret, err;

	while ((ret = send_msg(qp, status)) == -EFAULT) {
		err = mrsoft_pagein(qp, 0);
		if (err)
			return err;
	}
	return ret;
}

/* May the message @nth behind the current one go out, with @reads before it? */
static bool may_go_ahead(const struct mrsoft_qp *qp,
			 const struct mrsoft_send *send, u32 reads)
{
	u32 own = responses(qp, &send->msg);

	/* what has begun goes on in SQD */
	if (!send->begun && mrsoft_qp_state(qp) != IB_QPS_RTS)
		return false;
	if (reads && (send->wqe.flags & IB_SEND_FENCE))
		return false;
	return !own || reads + own <= qp->attr.max_rd_atomic;
}

/*
 * Messages behind the current one.  What goes wrong with one of them is dealt
 * with when it is the current one.  -ENODATA: no more now; -EAGAIN.
 */
static int send_ahead(struct mrsoft_qp *qp)
{
	struct mrsoft_tx *tx = tx_of(qp);
	struct mrsoft_sq *sq = &qp->sq;
	struct mrsoft_send *send;
	int ret = -ENODATA;
	u32 n, reads = 0;

	for (n = 1; ret == -ENODATA; n++) {
		if (!is_behind(nth_msg(qp, n - 1), tx->next) ||
		    mrsoft_psn_diff(tx->next, tx->una) >= MRSOFT_TX_WINDOW || tx->rnr)
			break;
		reads += responses(qp, nth_msg(qp, n - 1));
		send = mrsoft_fetch_ahead(qp, n);
		if (!send)
			break;
		if (is_behind(&send->msg, tx->next))
			continue;
		if (!may_go_ahead(qp, send, reads))
			break;
		mrsoft_fetch_select(sq, n);
		ret = send_msg(qp, &send->status);
		mrsoft_fetch_select(sq, 0);
		if (tx->next != send->msg.psn)
			send->begun = true;
		if (!ret)
			send->early = false;
		else if (ret == -EFAULT)
			mrsoft_fault_drop(&send->msg.fault);
	}
	return ret == -EAGAIN ? ret : -ENODATA;
}

/* Answers */

static u8 take_syndrome(const struct mrsoft_packet *pkt)
{
	const struct mrsoft_aeth *aeth = pkt->hdr;

	return be32_to_cpu(aeth->smsn) >> 24;
}

/* Is it of a packet that was sent and not answered yet?  @nth: of which message. */
static bool awaited(const struct mrsoft_qp *qp, u32 psn, u32 *nth)
{
	const struct mrsoft_tx *tx = &qp->wire->tx;

	if (mrsoft_psn_diff(psn, tx->una) < 0 ||
	    mrsoft_psn_diff(psn, tx->high) >= 0)
		return false;
	for (*nth = 0; is_behind(nth_msg(qp, *nth), psn); ++*nth)
		if (*nth == qp->sq.ahead)
			return false;
	return true;
}

/*
 * An answer to message @nth says that all before @psn has arrived.  False: the
 * response of an earlier message has not.
 */
static bool arrived(struct mrsoft_qp *qp, u32 nth, u32 psn)
{
	u32 n, una = tx_of(qp)->una;

	for (n = 0; n <= nth; n++) {
		if (has_response(nth_msg(qp, n))) {
			psn = n ? nth_msg(qp, n)->psn : una;
			break;
		}
	}
	if (psn != una)
		progress(qp, psn);
	return n >= nth;
}

static int hear_nak(struct mrsoft_qp *qp, u8 code, enum ib_wc_status *status)
{
	static const enum mrsoft_status answers[] = {
		[MRSOFT_NAK_INV_REQ]	= MRSOFT_S_INV_REQ,
		[MRSOFT_NAK_REM_ACCESS]	= MRSOFT_S_REM_ACCESS,
		[MRSOFT_NAK_REM_OP]	= MRSOFT_S_REM_OP,
	};

	/* an RNR wait ends with a try anyway */
	if (code == MRSOFT_NAK_PSN)
		return tx_of(qp)->rnr ? -EINPROGRESS : retry(qp, status);
	/* reserved codes: the peer will not answer otherwise */
	*status = mrsoft_status_to_wc(code < ARRAY_SIZE(answers) ?
				      answers[code] : MRSOFT_S_REM_OP);
	qp->sq.msg->reason = mrsoft_qp_refuse_send(qp, MRSOFT_R_PEER_REFUSED);
	return 0;
}

static int hear_ack(struct mrsoft_qp *qp, const struct mrsoft_packet *pkt,
		    u32 nth, enum ib_wc_status *status)
{
	u8 syndrome = take_syndrome(pkt), value = syndrome & MRSOFT_AETH_VALUE;

	switch (syndrome & MRSOFT_AETH_KIND) {
	case MRSOFT_AETH_ACK:
		if (!arrived(qp, nth, mrsoft_psn_add(pkt->psn, 1)))
			return missing(qp, status);
		return -EINPROGRESS;
	case MRSOFT_AETH_RNR:
	case MRSOFT_AETH_NAK:
		if (!arrived(qp, nth, pkt->psn))
			return missing(qp, status);
		if (nth)
			return -EBUSY;
		if ((syndrome & MRSOFT_AETH_KIND) == MRSOFT_AETH_NAK)
			return hear_nak(qp, value, status);
		return tx_of(qp)->rnr ? -EINPROGRESS :
					wait_rnr(qp, value, status);
	default:
		return -EINPROGRESS;
	}
}

/* Bytes of an answer into the memory of the current WQE. */
static int place(struct mrsoft_qp *qp, const struct mrsoft_packet *pkt, u64 off,
		 void *from, u32 n, enum ib_wc_status *status)
{
	switch (mrsoft_sgl_move(qp, off, from, n, true)) {
	case MRSOFT_S_OK:
		progress(qp, mrsoft_psn_add(pkt->psn, 1));
		return -EINPROGRESS;
	case MRSOFT_S_FAULT:
		return -EFAULT;
	default:
		*status = IB_WC_LOC_PROT_ERR;
		return 0;
	}
}

static int hear_read(struct mrsoft_qp *qp, const struct mrsoft_packet *pkt,
		     enum ib_wc_status *status)
{
	const struct mrsoft_msg *msg = qp->sq.msg;
	struct mrsoft_tx *tx = tx_of(qp);
	u64 off, n;

	if (pkt->psn != tx->una)
		return mrsoft_psn_diff(tx->next, pkt->psn) > 0 ?
			missing(qp, status) : -EINPROGRESS;
	n = msg->op->kind != MRSOFT_OP_READ ? 0 :
	    min_t(u64, qp->mtu, msg->length - mrsoft_request_offset(qp, pkt->psn));
	off = mrsoft_request_offset(qp, pkt->psn);
	if (pkt->length != n)
		return give_up(qp, status, IB_WC_BAD_RESP_ERR,
			       MRSOFT_R_PKT_LENGTH);
	return place(qp, pkt, off, pkt->payload, n, status);
}

static int hear_atomic(struct mrsoft_qp *qp, const struct mrsoft_packet *pkt,
		       enum ib_wc_status *status)
{
	struct mrsoft_msg *msg = qp->sq.msg;

	msg->old = get_unaligned_be64(pkt->hdr + sizeof(struct mrsoft_aeth));
	return place(qp, pkt, 0, &msg->old, sizeof(msg->old), status);
}

static int hear_response(struct mrsoft_qp *qp, const struct mrsoft_packet *pkt,
			 u32 nth, enum ib_wc_status *status)
{
	const struct mrsoft_msg *msg = nth_msg(qp, nth);
	u8 kind = msg->op->kind == MRSOFT_OP_ATOMIC ? MRSOFT_PKT_ATOMIC_ACK :
						      MRSOFT_PKT_READ_RESP;

	if (!has_response(msg) || pkt->type->kind != kind)
		return -EINPROGRESS;
	if (nth)
		return arrived(qp, nth, msg->psn) ? -EBUSY :
						    missing(qp, status);
	return kind == MRSOFT_PKT_ATOMIC_ACK ? hear_atomic(qp, pkt, status) :
					       hear_read(qp, pkt, status);
}

/*
 * What an answer means: 0: the message is over; -EINPROGRESS: it goes on; -EFAULT:
 * the same once more when the pages are there; -EBUSY: once more when a later
 * message is the current one.
 */
static int hear_one(struct mrsoft_qp *qp, const struct mrsoft_packet *pkt,
		    enum ib_wc_status *status)
{
	u32 nth;

	/* Answered before, or never asked for. */
	if (!awaited(qp, pkt->psn, &nth))
		return -EINPROGRESS;
	switch (pkt->type->kind) {
	case MRSOFT_PKT_ACK:
		return hear_ack(qp, pkt, nth, status);
	case MRSOFT_PKT_READ_RESP:
	case MRSOFT_PKT_ATOMIC_ACK:
		return hear_response(qp, pkt, nth, status);
	default:
		return -EINPROGRESS;
	}
}

/* All that has come.  0: the message is over; 1: it goes on; else leave. */
static int hear(struct mrsoft_qp *qp, enum ib_wc_status *status)
{
	struct mrsoft_tx *tx = tx_of(qp);
	struct sk_buff *skb;
	int ret = -EINPROGRESS, leave;

	while (ret && !is_behind(qp->sq.msg, tx->una) &&
	       (skb = skb_dequeue(&qp->wire->acks))) {
		ret = hear_one(qp, mrsoft_packet(skb), status);
		if (ret == -EBUSY) {
			/* the current one is done, which ends this */
			skb_queue_head(&qp->wire->acks, skb);
			continue;
		}
		if (ret == -EFAULT) {
			skb_queue_head(&qp->wire->acks, skb);
			leave = mrsoft_pagein(qp, 0);
			if (!leave && READ_ONCE(qp->sq.stopped))
				leave = -EAGAIN;
			if (leave)
				return leave;
			continue;
		}
		kfree_skb(skb);
	}
	if (!ret)
		return 0;
	if (!is_behind(qp->sq.msg, tx->una))
		return 1;
	qp->sq.msg->reason = MRSOFT_R_NONE;
	*status = IB_WC_SUCCESS;
	return 0;
}

/* Running */

static void start(struct mrsoft_qp *qp)
{
	struct mrsoft_tx *tx = tx_of(qp);
	struct mrsoft_msg *msg = qp->sq.msg;

	qp->sq.stage = MRSOFT_SQ_BEGUN;
	if (mrsoft_fetch_nth(&qp->sq, 0)->begun)
		return;
	tx->una = msg->psn;
	tx->next = msg->psn;
	tx->high = msg->psn;
	tx->rnr = false;
	tx->gap = false;
	tx->backoff = 0;
}

/* Has the peer been silent for too long, or is the RNR wait over? */
static int look_at_clock(struct mrsoft_qp *qp, enum ib_wc_status *status)
{
	struct mrsoft_tx *tx = tx_of(qp);

	if (ktime_before(ktime_get(), tx->due))
		return -EINPROGRESS;
	if (tx->rnr) {
		tx->rnr = false;
		arm(qp);
		return -EINPROGRESS;
	}
	if (qp->type == IB_QPT_UC || tx->una == tx->next)
		return -EINPROGRESS;
	/* what comes now may be old news: it uses up no second retry */
	tx->gap = true;
	if (tx->backoff < MAX_BACKOFF)
		tx->backoff++;
	return retry(qp, status);
}

/* Would a WQE that is posted now go out at once? */
static bool may_send_more(const struct mrsoft_qp *qp)
{
	const struct mrsoft_tx *tx = &qp->wire->tx;

	return !tx->rnr && mrsoft_fetch_nth(&qp->sq, qp->sq.ahead)->early &&
	       mrsoft_psn_diff(tx->next, tx->una) < MRSOFT_TX_WINDOW;
}

static int wire_run(struct mrsoft_qp *qp, enum ib_wc_status *status)
{
	struct mrsoft_tx *tx = tx_of(qp);
	s64 ns;
	int ret;

	mrsoft_pagein_result(qp);
	if (qp->sq.stage == MRSOFT_SQ_FETCHED)
		start(qp);
	mrsoft_sq_hear(qp);
	ret = hear(qp, status);
	if (ret <= 0)
		return ret;
	if (!look_at_clock(qp, status))
		return 0;
	ret = send_cur(qp, status);
	if (ret == -ENODATA && qp->type == IB_QPT_RC)
		ret = send_ahead(qp);
	if (ret != -ENODATA)
		return ret;
	if (qp->type == IB_QPT_UC && is_behind(qp->sq.msg, tx->next)) {
		/* Sent or lost: UC is never told. */
		qp->sq.msg->reason = MRSOFT_R_NONE;
		*status = IB_WC_SUCCESS;
		return 0;
	}
	ns = ktime_to_ns(ktime_sub(tx->due, ktime_get()));
	mrsoft_sq_wait(qp, max_t(s64, ns, 1), may_send_more(qp));
	return -EINPROGRESS;
}

/* Nothing to tell the peer: the rest does not come. */
static void wire_abort(struct mrsoft_qp *qp)
{
}

const struct mrsoft_path_ops mrsoft_wire_path = {
	.name	= "wire",
	.run	= wire_run,
	.abort	= wire_abort,
};
