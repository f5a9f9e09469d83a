// SPDX-License-Identifier: GPL-2.0
/*
 * qp.c - queue pairs: numbers, holds, the state machine
 *
 * Owns:     QPN table and holds; which state changes and attributes are legal;
 *           who may change the state.
 * Not here: running queues (sq.c), executing messages (resp.c), verbs order
 *           (verbs_qp.c).
 * Locks:    qp->verbs (mutex, outermost) serialises modify and destroy;
 *           qp->state_lock (irqsave, leaf) covers state, attributes and path.
 *           The QPN table is written under its xa_lock and read under RCU.
 * Lifetime: published -> unpublished -> drained -> freed by the core.  A hold
 *           is taken through struct mrsoft_qp_slot, which is freed after RCU.
 * Context:  get, put, error and event in any context; the rest may sleep.
 * Spec:     IBA Vol 1, 10.3 (QP states), 11.2.5 (modify)
 * Tests:    kunit/qp_kunit.c
 */
#include <linux/slab.h>

#include "limits.h"
#include "psn.h"
#include "qp.h"

#define MAX_TIMER_CODE	31	/* 5 bits: RNR timer, ack timeout */
#define MAX_RETRY	7	/* 3 bits: retry counts */

static int slot_insert(struct mrsoft_hca *hca, struct mrsoft_qp_slot *slot,
		       u32 *qpn)
{
	int ret;

	if (*qpn)
		return xa_insert_irq(&hca->qps, *qpn, slot, GFP_KERNEL);
	ret = xa_alloc_cyclic_irq(&hca->qps, qpn, slot,
				  XA_LIMIT(MRSOFT_QPN_MIN, MRSOFT_QPN_MAX),
				  &hca->next_qpn, GFP_KERNEL);
	return ret < 0 ? ret : 0;
}

/**
 * mrsoft_qp_publish - let messages find the QP
 * @qp: ready to receive them
 * @qpn: 0 for the next number, or a special number (GSI: 1)
 *
 * Context: process, may sleep.
 * Return: 0, -ENOMEM (too many QPs, or no memory), -EBUSY when @qpn is taken.
 */
int mrsoft_qp_publish(struct mrsoft_qp *qp, u32 qpn)
{
	struct mrsoft_hca *hca = qp->hca;
	struct mrsoft_qp_slot *slot;
	int ret = -ENOMEM;

	if (atomic_inc_return(&hca->num_qps) > MRSOFT_MAX_QP)
		goto err_count;
	slot = kzalloc_obj(*slot);
	if (!slot)
		goto err_count;
	refcount_set(&slot->holds, 1);
	init_completion(&slot->drained);
	slot->qp = qp;
	qp->slot = slot;
	/* The table may be read at once: the number is set under its lock. */
	qp->qpn = qpn;
	ret = slot_insert(hca, slot, &qp->qpn);
	if (ret)
		goto err_slot;
	qp->ib.qp_num = qp->qpn;
	qp->binder.qpn = qp->qpn;
	return 0;

err_slot:
	qp->slot = NULL;
	kfree(slot);
err_count:
	atomic_dec(&hca->num_qps);
	return ret;
}

static void slot_put(struct mrsoft_qp_slot *slot)
{
	if (refcount_dec_and_test(&slot->holds))
		complete(&slot->drained);
}

/**
 * mrsoft_qp_unpublish - no message finds the QP any more
 * @qp: published
 *
 * On return nobody has a hold.  A second call does nothing.
 *
 * Context: process, sleeps.
 */
void mrsoft_qp_unpublish(struct mrsoft_qp *qp)
{
	struct mrsoft_qp_slot *slot = qp->slot;

	if (!slot)
		return;
	xa_erase_irq(&qp->hca->qps, qp->qpn);
	slot_put(slot);
	/*
	 * Ends: new lookups fail, and who has a hold is inside one segment of
	 * one message and drops it without sleeping or waiting.
	 */
	wait_for_completion(&slot->drained);
	qp->slot = NULL;
	kfree_rcu(slot, rcu);
	atomic_dec(&qp->hca->num_qps);
}

/**
 * mrsoft_qp_get - find a QP and hold it
 * @hca: the device
 * @qpn: 24 bits
 *
 * The hold must be dropped before anything sleeps or waits.
 *
 * Context: any.
 * Return: the QP, or NULL.
 */
struct mrsoft_qp *mrsoft_qp_get(struct mrsoft_hca *hca, u32 qpn)
{
	struct mrsoft_qp_slot *slot;
	struct mrsoft_qp *qp = NULL;

	rcu_read_lock();
	slot = xa_load(&hca->qps, qpn);
	if (slot && refcount_inc_not_zero(&slot->holds))
		qp = slot->qp;
	rcu_read_unlock();
	return qp;
}

/**
 * mrsoft_qp_put - drop a hold
 * @qp: held
 *
 * Context: any.
 */
void mrsoft_qp_put(struct mrsoft_qp *qp)
{
	slot_put(qp->slot);
}

static int check_numbers(const struct ib_qp_attr *attr, int mask)
{
	if ((mask & IB_QP_PORT) && attr->port_num != 1)
		return -EINVAL;
	if ((mask & IB_QP_PKEY_INDEX) &&
	    attr->pkey_index >= MRSOFT_MAX_PKEYS)
		return -EINVAL;
	if ((mask & IB_QP_DEST_QPN) && attr->dest_qp_num > MRSOFT_PSN_MASK)
		return -EINVAL;
	if ((mask & IB_QP_MAX_QP_RD_ATOMIC) &&
	    attr->max_rd_atomic > MRSOFT_MAX_RD_ATOM)
		return -EINVAL;
	if ((mask & IB_QP_MAX_DEST_RD_ATOMIC) &&
	    attr->max_dest_rd_atomic > MRSOFT_MAX_RD_ATOM)
		return -EINVAL;
	if ((mask & IB_QP_MIN_RNR_TIMER) &&
	    attr->min_rnr_timer > MAX_TIMER_CODE)
		return -EINVAL;
	if ((mask & IB_QP_TIMEOUT) && attr->timeout > MAX_TIMER_CODE)
		return -EINVAL;
	if ((mask & IB_QP_RETRY_CNT) && attr->retry_cnt > MAX_RETRY)
		return -EINVAL;
	if ((mask & IB_QP_RNR_RETRY) && attr->rnr_retry > MAX_RETRY)
		return -EINVAL;
	return 0;
}

static int check_path(const struct ib_qp_attr *attr, int mask)
{
	if ((mask & IB_QP_AV) &&
	    (attr->ah_attr.type != RDMA_AH_ATTR_TYPE_ROCE ||
	     !(rdma_ah_get_ah_flags(&attr->ah_attr) & IB_AH_GRH) ||
	     rdma_ah_get_port_num(&attr->ah_attr) != 1))
		return -EINVAL;
	/* a connection has one peer */
	if ((mask & IB_QP_AV) && mrsoft_gid_is_group(&rdma_ah_read_grh(&attr->ah_attr)->dgid))
		return -EINVAL;
	if ((mask & IB_QP_PATH_MTU) &&
	    (attr->path_mtu < IB_MTU_256 || attr->path_mtu > IB_MTU_4096))
		return -EINVAL;
	/* There is one port and so no second path to migrate to. */
	if (mask & (IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE)) {
		if ((mask & IB_QP_ALT_PATH) ||
		    attr->path_mig_state != IB_MIG_MIGRATED)
			return -EOPNOTSUPP;
	}
	return 0;
}

/**
 * mrsoft_qp_check - is a modify legal
 * @qp: with qp->verbs held
 * @attr: new attributes
 * @mask: IB_QP_*, which of them
 *
 * Nothing is changed.
 *
 * Context: process.
 * Return: 0, -EINVAL, or -EOPNOTSUPP for path migration.
 */
int mrsoft_qp_check(const struct mrsoft_qp *qp, const struct ib_qp_attr *attr,
		    int mask)
{
	enum ib_qp_state cur = mrsoft_qp_state(qp);
	enum ib_qp_state next = mask & IB_QP_STATE ? attr->qp_state : cur;
	int ret;

	lockdep_assert_held(&qp->verbs);
	if ((mask & IB_QP_CUR_STATE) && attr->cur_qp_state != cur)
		return -EINVAL;
	if (!ib_modify_qp_is_ok(cur, next, qp->type,
				mask & IB_QP_ATTR_STANDARD_BITS))
		return -EINVAL;
	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	ret = check_numbers(attr, mask);
	return ret ? ret : check_path(attr, mask);
}

static void apply_path(struct mrsoft_qp *qp, const struct ib_qp_attr *attr,
		       int mask)
{
	struct ib_qp_attr *own = &qp->attr;

	if (mask & IB_QP_AV) {
		mrsoft_av_set(&qp->av, &attr->ah_attr);
		own->ah_attr = attr->ah_attr;
		/* The core's reference, not ours to keep. */
		own->ah_attr.grh.sgid_attr = NULL;
	}
	if (mask & IB_QP_PATH_MTU) {
		own->path_mtu = attr->path_mtu;
		qp->mtu = ib_mtu_enum_to_int(attr->path_mtu);
	}
	if (mask & IB_QP_PORT)
		own->port_num = attr->port_num;
	if (mask & IB_QP_PKEY_INDEX)
		own->pkey_index = attr->pkey_index;
	if (mask & IB_QP_DEST_QPN)
		own->dest_qp_num = attr->dest_qp_num;
	if (mask & IB_QP_TIMEOUT)
		own->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		own->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		own->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_MIN_RNR_TIMER)
		own->min_rnr_timer = attr->min_rnr_timer;
}

/**
 * mrsoft_qp_apply - carry a modify out
 * @qp: with qp->verbs held, after a check that passed
 * @attr: new attributes
 * @mask: IB_QP_*, which of them
 *
 * The caller has stopped the engines where the new state demands it, and starts
 * them after.
 *
 * Context: process.
 */
void mrsoft_qp_apply(struct mrsoft_qp *qp, const struct ib_qp_attr *attr,
		     int mask)
{
	struct ib_qp_attr *own = &qp->attr;
	unsigned long flags;

	lockdep_assert_held(&qp->verbs);
	spin_lock_irqsave(&qp->state_lock, flags);
	apply_path(qp, attr, mask);
	if (mask & IB_QP_ACCESS_FLAGS)
		own->qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_QKEY)
		own->qkey = attr->qkey;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		own->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		own->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	/* It belongs to one transition, IBA 11.2.5.3. */
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		own->en_sqd_async_notify = attr->en_sqd_async_notify;
	else if ((mask & IB_QP_STATE) && attr->qp_state == IB_QPS_SQD)
		own->en_sqd_async_notify = 0;
	/* Both engines rest in the states in which these may be given. */
	if (mask & IB_QP_RQ_PSN)
		qp->resp.psn = attr->rq_psn & MRSOFT_PSN_MASK;
	if (mask & IB_QP_SQ_PSN)
		qp->sq.psn = attr->sq_psn & MRSOFT_PSN_MASK;
	/* An error that came between check and here must not be undone. */
	if ((mask & IB_QP_STATE) &&
	    (qp->state != IB_QPS_ERR || attr->qp_state == IB_QPS_RESET))
		WRITE_ONCE(qp->state, attr->qp_state);
	spin_unlock_irqrestore(&qp->state_lock, flags);
}

/**
 * mrsoft_qp_query - attributes as they are now
 * @qp: any state
 * @attr: filled in
 *
 * Context: any.
 */
void mrsoft_qp_query(struct mrsoft_qp *qp, struct ib_qp_attr *attr)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->state_lock, flags);
	*attr = qp->attr;
	attr->qp_state = qp->state;
	spin_unlock_irqrestore(&qp->state_lock, flags);
	attr->cur_qp_state = attr->qp_state;
	attr->sq_psn = READ_ONCE(qp->sq.psn);
	attr->rq_psn = READ_ONCE(qp->resp.psn);
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->sq_draining = attr->qp_state == IB_QPS_SQD &&
			    !READ_ONCE(qp->sq.drained);
}

/**
 * mrsoft_qp_count - a message is finished
 * @qp: whose device counts it
 * @msg: the message
 * @requester: @qp sent it, else it was sent to @qp
 *
 * By whichever path: packets are those that it takes on a wire.
 *
 * Context: any.
 */
void mrsoft_qp_count(struct mrsoft_qp *qp, const struct mrsoft_msg *msg,
		     bool requester)
{
	struct mrsoft_stats *stats = &qp->hca->stats;
	bool read = msg->op->kind == MRSOFT_OP_READ;
	/* operands and results of atomics stand in headers */
	u64 bytes = msg->op->kind == MRSOFT_OP_ATOMIC ? 0 : msg->length;

	atomic64_inc(requester ? &stats->tx_msgs : &stats->rx_msgs);
	/* the bytes of a READ travel against it, the request has a packet */
	if (read)
		atomic64_inc(requester ? &stats->tx_packets :
					 &stats->rx_packets);
	if (requester != read) {
		atomic64_add(bytes, &stats->tx_bytes);
		atomic64_add(msg->packets, &stats->tx_packets);
	} else {
		atomic64_add(bytes, &stats->rx_bytes);
		atomic64_add(msg->packets, &stats->rx_packets);
	}
}

/**
 * mrsoft_qp_error - put a QP into the error state
 * @qp: held or owned
 *
 * Queues the work that flushes both queues.
 *
 * Context: any.
 * Return: true when this call changed the state.
 */
bool mrsoft_qp_error(struct mrsoft_qp *qp)
{
	unsigned long flags;
	bool changed;

	spin_lock_irqsave(&qp->state_lock, flags);
	changed = qp->state != IB_QPS_RESET && qp->state != IB_QPS_ERR;
	if (changed)
		WRITE_ONCE(qp->state, IB_QPS_ERR);
	spin_unlock_irqrestore(&qp->state_lock, flags);
	if (changed) {
		queue_work(qp->hca->wq, &qp->sq.work);
		mod_delayed_work(qp->hca->wq, &qp->resp.work, 0);
	}
	return changed;
}

/**
 * mrsoft_qp_sq_error - a send failed
 * @qp: the requester
 *
 * RC goes to the error state; the send queue of UC and UD to SQE, from
 * which the user brings it back to RTS.  IBA 10.3.1.
 *
 * Context: any.
 * Return: true when this call changed the state.
 */
bool mrsoft_qp_sq_error(struct mrsoft_qp *qp)
{
	unsigned long flags;
	bool changed;

	if (qp->type == IB_QPT_RC)
		return mrsoft_qp_error(qp);

	spin_lock_irqsave(&qp->state_lock, flags);
	changed = qp->state == IB_QPS_RTS || qp->state == IB_QPS_SQD;
	if (changed)
		WRITE_ONCE(qp->state, IB_QPS_SQE);
	spin_unlock_irqrestore(&qp->state_lock, flags);
	return changed;
}

/**
 * mrsoft_qp_event - tell the consumer
 * @qp: held or owned
 * @type: an affiliated event
 *
 * Context: any, without any lock of ours.
 */
void mrsoft_qp_event(struct mrsoft_qp *qp, enum ib_event_type type)
{
	struct ib_event event = {
		.device	    = qp->ib.device,
		.element.qp = &qp->ib,
		.event	    = type,
	};

	if (qp->ib.event_handler)
		qp->ib.event_handler(&event, qp->ib.qp_context);
}

/* Keys mean something with the operations that name the peer's memory. */
static struct mrsoft_refusal refusal(const struct mrsoft_qp *qp,
				     const struct mrsoft_msg *msg,
				     enum mrsoft_reason reason)
{
	struct mrsoft_refusal what = {
		.reason = reason, .qpn = qp->qpn, .who = &qp->who,
		.op = msg->op ? msg->op->name : NULL,
	};

	if (msg->op && msg->op->rights) {
		what.key = msg->rkey;
		what.addr = msg->raddr;
		what.length = msg->length;
	}
	return what;
}

/**
 * mrsoft_qp_refuse_send - the requester's side refuses or gives up
 * @qp: runner, with a message that was filled in
 * @reason: why
 *
 * Context: any, runner only.
 * Return: @reason.
 */
enum mrsoft_reason mrsoft_qp_refuse_send(struct mrsoft_qp *qp,
					 enum mrsoft_reason reason)
{
	struct mrsoft_refusal what = refusal(qp, qp->sq.msg, reason);

	what.peer = mrsoft_qp_peer(qp);
	return mrsoft_diary_refuse(&qp->hca->stats, &what);
}

/**
 * mrsoft_qp_refuse_msg - the responder's side refuses
 * @qp: held
 * @msg: the message that came
 * @reason: why
 *
 * Context: any.
 * Return: @reason.
 */
enum mrsoft_reason mrsoft_qp_refuse_msg(struct mrsoft_qp *qp,
					const struct mrsoft_msg *msg,
					enum mrsoft_reason reason)
{
	struct mrsoft_refusal what = refusal(qp, msg, reason);

	what.peer = msg->src_qpn;
	return mrsoft_diary_refuse(&qp->hca->stats, &what);
}

/**
 * mrsoft_qp_refuse - something is refused that is not a message yet
 * @qp: held or not published
 * @op: what, a constant
 * @reason: why
 *
 * Context: any.
 * Return: @reason.
 */
enum mrsoft_reason mrsoft_qp_refuse(struct mrsoft_qp *qp, const char *op,
				    enum mrsoft_reason reason)
{
	return mrsoft_diary_refuse(&qp->hca->stats, &(struct mrsoft_refusal){
		.reason = reason, .qpn = qp->qpn, .who = &qp->who, .op = op,
		.peer = mrsoft_qp_is_datagram(qp) ? 0 : qp->attr.dest_qp_num,
	});
}
