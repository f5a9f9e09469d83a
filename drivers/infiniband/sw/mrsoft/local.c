// SPDX-License-Identifier: GPL-2.0
/*
 * local.c - same-host path
 *
 * Owns:     which GIDs belong to devices of this kernel; feeding a message to a
 *           QP of this kernel; RNR and retry waits.
 * Not here: what a message does (resp.c), the send queue (sq.c), UDP.
 * Locks:    gid_lock orders changes of the GID table; lookups use RCU.
 * Lifetime: a peer is looked up and held anew for each call into its responder
 *           and let go before anything can wait.
 * Context:  process: the runner of a send queue.
 * Spec:     IBA Vol 1, 9.7.5.2.8 (RNR), 9.7.6.1.3 (retries), 9.8.3 (UD)
 * Tests:    kunit/engine_kunit.c, tools/testing/selftests
 */
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "local.h"
#include "mcast.h"
#include "pagein.h"
#include "request.h"
#include "resp.h"
#include "sgl.h"
#include "sq.h"

/* One receiver whose page does not come must not hold up all the others. */
#define RECEIVER_WAIT_NS	(100 * NSEC_PER_MSEC)

struct local_gid {
	struct hlist_node node;
	union ib_gid gid;
	struct mrsoft_hca *hca;
	u32 users;
	struct rcu_head rcu;
};

static DEFINE_HASHTABLE(gids, 8);
static DEFINE_SPINLOCK(gid_lock);

static u32 gid_hash(const union ib_gid *gid)
{
	return jhash(gid, sizeof(*gid), 0);
}

static struct local_gid *gid_find(const struct mrsoft_hca *hca,
				  const union ib_gid *gid)
{
	struct local_gid *g;

	lockdep_assert_held(&gid_lock);
	hash_for_each_possible(gids, g, node, gid_hash(gid))
		if (g->hca == hca && !memcmp(&g->gid, gid, sizeof(*gid)))
			return g;
	return NULL;
}

/**
 * mrsoft_local_gid_add - a device has a GID
 * @hca: the device
 * @gid: may be added several times, and is then deleted as often
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int mrsoft_local_gid_add(struct mrsoft_hca *hca, const union ib_gid *gid)
{
	struct local_gid *new, *old;

	new = kzalloc_obj(*new);
	if (!new)
		return -ENOMEM;
	new->gid = *gid;
	new->hca = hca;
	new->users = 1;
	spin_lock_bh(&gid_lock);
	old = gid_find(hca, gid);
	if (old)
		old->users++;
	else
		hash_add_rcu(gids, &new->node, gid_hash(gid));
	spin_unlock_bh(&gid_lock);
	if (old)
		kfree(new);
	return 0;
}

/**
 * mrsoft_local_gid_del - a device has a GID no more
 * @hca: the device; stays in memory for a grace period after its last GID
 * @gid: added before
 *
 * Context: process.
 */
void mrsoft_local_gid_del(struct mrsoft_hca *hca, const union ib_gid *gid)
{
	struct local_gid *g;

	spin_lock_bh(&gid_lock);
	g = gid_find(hca, gid);
	if (g && !--g->users) {
		hash_del_rcu(&g->node);
		kfree_rcu(g, rcu);
	}
	spin_unlock_bh(&gid_lock);
}

/*
 * The device that has @gid, seen from the netdev @ifindex: the one there if it has,
 * else another of the same network namespace.  Several may: the core gives the
 * addresses of a VLAN, a bridge or a bond to devices below as well, and a VLAN has
 * the link-local address of its port.
 */
static struct mrsoft_hca *find_in(const void *net, u32 ifindex,
				  const union ib_gid *gid)
{
	struct mrsoft_hca *found = NULL;
	struct local_gid *g;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "GID lookup without RCU");
	hash_for_each_possible_rcu(gids, g, node, gid_hash(gid)) {
		if (memcmp(&g->gid, gid, sizeof(*gid)) || g->hca->net != net)
			continue;
		found = g->hca;
		if (found->ifindex == ifindex)
			break;
	}
	return found;
}

static struct mrsoft_hca *find_hca(const struct mrsoft_hca *from,
				   const union ib_gid *gid)
{
	return find_in(from->net, from->ifindex, gid);
}

/**
 * mrsoft_local_find - whose is a GID
 * @net: network namespace
 * @ifindex: of the netdev where a packet came in
 * @gid: its destination
 *
 * Context: any, under RCU, which keeps the device in memory.
 * Return: the device, or NULL.
 */
struct mrsoft_hca *mrsoft_local_find(const void *net, u32 ifindex,
				     const union ib_gid *gid)
{
	return find_in(net, ifindex, gid);
}

/**
 * mrsoft_local_reaches - can a GID be reached without the wire
 * @hca: the device that asks
 * @gid: destination
 *
 * Context: any.
 * Return: true if it belongs to a device of this kernel in the same network
 * namespace, and neither is told to use the wire.
 */
bool mrsoft_local_reaches(const struct mrsoft_hca *hca,
			  const union ib_gid *gid)
{
	const struct mrsoft_hca *peer;
	bool reached;

	rcu_read_lock();
	peer = find_hca(hca, gid);
	reached = peer && READ_ONCE(peer->path_mode) != MRSOFT_PATH_WIRE &&
		  READ_ONCE(hca->path_mode) != MRSOFT_PATH_WIRE;
	rcu_read_unlock();
	return reached;
}

static struct mrsoft_qp *find_peer(struct mrsoft_qp *qp,
				   const union ib_gid *dgid, u32 qpn,
				   enum mrsoft_reason *why)
{
	struct mrsoft_qp *peer = NULL;
	struct mrsoft_hca *hca;

	rcu_read_lock();
	hca = find_hca(qp->hca, dgid);
	if (!hca) {
		*why = MRSOFT_R_NO_PATH;
	} else if (!READ_ONCE(hca->port_up) || !READ_ONCE(qp->hca->port_up)) {
		*why = MRSOFT_R_PORT_DOWN;
	} else {
		peer = mrsoft_qp_get(hca, qpn);
		*why = MRSOFT_R_NO_PEER;
	}
	rcu_read_unlock();
	return peer;
}

/* Would the peer's answers come back to us? */
static bool connected(struct mrsoft_qp *peer, const struct mrsoft_qp *qp)
{
	unsigned long flags;
	bool ret;

	if (peer->type != qp->type)
		return false;
	spin_lock_irqsave(&peer->state_lock, flags);
	ret = peer->attr.dest_qp_num == qp->qpn &&
	      !memcmp(&peer->av.dgid, &qp->av.sgid, sizeof(peer->av.dgid));
	spin_unlock_irqrestore(&peer->state_lock, flags);
	return ret;
}

static struct mrsoft_qp *get_peer(struct mrsoft_qp *qp)
{
	enum mrsoft_reason why;
	struct mrsoft_qp *peer;

	peer = find_peer(qp, &qp->av.dgid, qp->attr.dest_qp_num, &why);
	if (peer && !connected(peer, qp)) {
		mrsoft_qp_put(peer);
		peer = NULL;
		why = MRSOFT_R_PEER_STATE;
	}
	if (!peer)
		qp->sq.msg->reason = mrsoft_qp_refuse_send(qp, why);
	return peer;
}

/* Waiting and giving up */

static int wait_rnr(struct mrsoft_qp *qp, enum ib_wc_status *status)
{
	struct mrsoft_sq *sq = &qp->sq;

	if (sq->rnr_retries != MRSOFT_RNR_FOREVER && !sq->rnr_retries--) {
		sq->msg->reason = mrsoft_qp_refuse_send(qp,
							MRSOFT_R_RNR_EXCEEDED);
		*status = IB_WC_RNR_RETRY_EXC_ERR;
		return 0;
	}
	atomic64_inc(&qp->hca->stats.rnr_waits);
	mrsoft_sq_wait(qp, mrsoft_rnr_ns(sq->msg->rnr_timer), false);
	return -EINPROGRESS;
}

static int wait_answer(struct mrsoft_qp *qp, enum ib_wc_status *status)
{
	struct mrsoft_sq *sq = &qp->sq;
	u64 ns = mrsoft_ack_ns(qp->attr.timeout);

	if (ns && !sq->retries--) {
		/* The reason of the last try says more than the count. */
		mrsoft_qp_refuse_send(qp, MRSOFT_R_RETRY_EXCEEDED);
		*status = IB_WC_RETRY_EXC_ERR;
		return 0;
	}
	atomic64_inc(&qp->hca->stats.retries);
	mrsoft_sq_wait(qp, ns ? ns : MRSOFT_FOREVER_POLL_NS, false);
	return -EINPROGRESS;
}

/*
 * What an answer means for the requester.  A message that failed starts again from
 * its first byte, if at all.  UC hears nothing and is content.
 */
static int answered(struct mrsoft_qp *qp, enum mrsoft_status answer,
		    enum ib_wc_status *status)
{
	struct mrsoft_sq *sq = &qp->sq;

	sq->stage = MRSOFT_SQ_FETCHED;
	mrsoft_sgl_seek(qp, 0);
	if (qp->type == IB_QPT_UC && answer != MRSOFT_S_LOC_PROT) {
		sq->msg->reason = MRSOFT_R_NONE;
		*status = IB_WC_SUCCESS;
		return 0;
	}
	if (answer == MRSOFT_S_RNR)
		return wait_rnr(qp, status);
	if (answer == MRSOFT_S_SILENT)
		return wait_answer(qp, status);
	*status = mrsoft_status_to_wc(answer);
	return 0;
}

/* Feeding a message */

static enum mrsoft_status begin(struct mrsoft_qp *qp)
{
	struct mrsoft_qp *peer = get_peer(qp);
	enum mrsoft_status answer;

	if (!peer)
		return MRSOFT_S_SILENT;
	answer = mrsoft_resp_begin(peer, qp->sq.msg);
	mrsoft_qp_put(peer);
	if (!answer)
		qp->sq.stage = MRSOFT_SQ_BEGUN;
	return answer;
}

/* Also when no answer could come back: the claim is of this host, not a packet. */
static void local_abort(struct mrsoft_qp *qp)
{
	struct mrsoft_qp *peer = NULL;
	struct mrsoft_hca *hca;

	rcu_read_lock();
	hca = find_hca(qp->hca, &qp->av.dgid);
	if (hca)
		peer = mrsoft_qp_get(hca, qp->attr.dest_qp_num);
	rcu_read_unlock();
	if (!peer)
		return;
	mrsoft_resp_abort(peer, qp->sq.msg);
	mrsoft_qp_put(peer);
}

/*
 * The peer of a message that has begun.  One that is out of reach is left free
 * for the next try or message.
 */
static struct mrsoft_qp *get_begun_peer(struct mrsoft_qp *qp)
{
	struct mrsoft_qp *peer = get_peer(qp);

	if (!peer)
		local_abort(qp);
	return peer;
}

static enum mrsoft_status segment(struct mrsoft_qp *qp)
{
	u64 max = qp->sq.faults < MRSOFT_FAULT_BATCHES ? MRSOFT_SEGMENT :
							 PAGE_SIZE;
	struct mrsoft_span span;
	enum mrsoft_status answer;
	struct mrsoft_qp *peer;

	if (mrsoft_sgl_span(qp, max, &span)) {
		local_abort(qp);
		return MRSOFT_S_LOC_PROT;
	}
	peer = get_begun_peer(qp);
	if (!peer) {
		mrsoft_span_put(&span);
		return MRSOFT_S_SILENT;
	}
	answer = mrsoft_resp_segment(peer, qp->sq.msg, &span);
	mrsoft_qp_put(peer);
	if (!answer) {
		mrsoft_sgl_advance(qp, span.length);
		mrsoft_pagein_placed(qp);
	}
	mrsoft_span_put(&span);
	return answer;
}

/*
 * The old value goes to the requester's own list, 8 bytes in 1 to 8 sges: all of
 * it once more after a page fault.
 */
static enum mrsoft_status store_result(struct mrsoft_qp *qp)
{
	return mrsoft_sgl_move(qp, 0, &qp->sq.msg->old, sizeof(u64), true);
}

/* Executed once: after that only the result is missing. */
static enum mrsoft_status atomic(struct mrsoft_qp *qp)
{
	enum mrsoft_status answer;
	struct mrsoft_qp *peer;

	if (qp->sq.stage == MRSOFT_SQ_ENDED)
		return store_result(qp);
	peer = get_begun_peer(qp);
	if (!peer)
		return MRSOFT_S_SILENT;
	answer = mrsoft_resp_atomic(peer, qp->sq.msg);
	if (!answer)
		answer = mrsoft_resp_end(peer, qp->sq.msg);
	mrsoft_qp_put(peer);
	if (answer)
		return answer;
	qp->sq.stage = MRSOFT_SQ_ENDED;
	mrsoft_pagein_placed(qp);
	return store_result(qp);
}

static int run_atomic(struct mrsoft_qp *qp, enum ib_wc_status *status)
{
	enum mrsoft_status answer;
	int ret;

	/* mrsoft_pagein() says why it ends */
	while ((answer = atomic(qp)) == MRSOFT_S_FAULT) {
		ret = mrsoft_pagein(qp, 0);
		if (ret)
			return ret;
		if (READ_ONCE(qp->sq.stopped))
			return -EAGAIN;
	}
	return answered(qp, answer, status);
}

static enum mrsoft_status end(struct mrsoft_qp *qp)
{
	struct mrsoft_qp *peer = get_begun_peer(qp);
	enum mrsoft_status answer;

	if (!peer)
		return MRSOFT_S_SILENT;
	answer = mrsoft_resp_end(peer, qp->sq.msg);
	mrsoft_qp_put(peer);
	return answer;
}

static int local_run(struct mrsoft_qp *qp, enum ib_wc_status *status)
{
	struct mrsoft_sq *sq = &qp->sq;
	struct mrsoft_msg *msg = sq->msg;
	enum mrsoft_status answer;
	int ret;

	mrsoft_pagein_result(qp);
	if (sq->stage == MRSOFT_SQ_FETCHED) {
		mrsoft_pagein_placed(qp);
		answer = begin(qp);
		if (answer)
			return answered(qp, answer, status);
	}
	if (msg->op->kind == MRSOFT_OP_ATOMIC)
		return run_atomic(qp, status);
	while (msg->done < msg->length) {
		/* The state is looked at again before the next turn. */
		if (!mrsoft_sq_charge(qp, min_t(u64, MRSOFT_SEGMENT,
						msg->length - msg->done)))
			return -EAGAIN;
		answer = segment(qp);
		if (answer == MRSOFT_S_FAULT) {
			ret = mrsoft_pagein(qp, 0);
			if (ret)
				return ret;
		} else if (answer) {
			return answered(qp, answer, status);
		}
		cond_resched();
	}
	return answered(qp, end(qp), status);
}

const struct mrsoft_path_ops mrsoft_local_path = {
	.name	= "local",
	.run	= local_run,
	.abort	= local_abort,
};

/* Datagrams */

static enum mrsoft_status gather(struct mrsoft_qp *qp)
{
	return mrsoft_sgl_move(qp, 0, qp->sq.bounce, qp->sq.msg->length, false);
}

static bool find_av(struct mrsoft_qp *qp, struct mrsoft_av *av)
{
	struct mrsoft_swqe *wqe = qp->sq.cur;

	if (qp->is_user)
		return mrsoft_ah_read(qp->hca, wqe->ud.ah_num, qp->pd, av);
	*av = wqe->ud.av;
	return true;
}

static bool has_wire(const struct mrsoft_hca *hca)
{
	return READ_ONCE(hca->path_mode) != MRSOFT_PATH_LOCAL &&
	       mrsoft_hca_udp(hca);
}

/* What a receiver on the same host is told of the sender. */
static void fill_header(struct mrsoft_qp *qp, const struct mrsoft_av *av)
{
	struct mrsoft_msg *msg = qp->sq.msg;

	mrsoft_av_grh(av, msg->length, msg->grh);
	msg->ipv4 = av->ipv4;
	msg->tagged = av->vlan != MRSOFT_NO_VLAN;
	msg->vlan = av->vlan;
	memcpy(msg->smac, qp->hca->mac, ETH_ALEN);
}

/* Once for each message: the port, the wire.  True: QPs of this device hear it. */
static bool start_group(struct mrsoft_qp *qp, const struct mrsoft_av *av)
{
	struct mrsoft_hca *hca = qp->hca;

	if (!READ_ONCE(hca->port_up)) {
		mrsoft_qp_refuse_send(qp, MRSOFT_R_PORT_DOWN);
		return false;
	}
	if (has_wire(hca)) {
		mrsoft_request_datagram(qp, av, qp->sq.bounce);
		/* what is sent there comes in again */
		if (hca->ifindex == LOOPBACK_IFINDEX)
			return false;
	}
	if (qp->sq.cur->ud.qpn == MRSOFT_QPN_MCAST)
		return true;
	mrsoft_qp_refuse_send(qp, MRSOFT_R_NO_PEER);
	return false;
}

/*
 * To a group: by the wire to others, and a copy for each QP of this device.  After
 * a receiver's page fault it goes on with that one.
 */
static enum mrsoft_status deliver_group(struct mrsoft_qp *qp,
					const struct mrsoft_av *av)
{
	struct mrsoft_msg *msg = qp->sq.msg;
	struct mrsoft_hca *hca = qp->hca;
	enum mrsoft_status answer;
	struct mrsoft_qp *peer;
	u32 next;

	if (!msg->copied) {
		if (!start_group(qp, av))
			return MRSOFT_S_SILENT;
		msg->copied = MRSOFT_QPN_MIN;
	}
	fill_header(qp, av);
	for (next = msg->copied;
	     (peer = mrsoft_mcast_next(hca->net, hca->ifindex, &av->dgid, &next));
	     msg->copied = next) {
		answer = mrsoft_resp_datagram(peer, msg, qp->sq.bounce);
		msg->copied = peer->qpn;
		mrsoft_qp_put(peer);
		if (answer == MRSOFT_S_FAULT)
			return answer;
		mrsoft_pagein_placed(qp);
	}
	return MRSOFT_S_OK;
}

static enum mrsoft_status deliver(struct mrsoft_qp *qp,
				  const struct mrsoft_av *av)
{
	struct mrsoft_msg *msg = qp->sq.msg;
	enum mrsoft_status answer = MRSOFT_S_SILENT;
	enum mrsoft_reason why;
	struct mrsoft_qp *peer;

	if (mrsoft_gid_is_group(&av->dgid))
		return deliver_group(qp, av);
	if (!mrsoft_local_reaches(qp->hca, &av->dgid) && has_wire(qp->hca)) {
		mrsoft_request_datagram(qp, av, qp->sq.bounce);
		return MRSOFT_S_OK;
	}
	fill_header(qp, av);
	peer = find_peer(qp, &av->dgid, qp->sq.cur->ud.qpn, &why);
	if (!peer) {
		mrsoft_qp_refuse_send(qp, why);
		return answer;
	}
	if (mrsoft_qp_is_datagram(peer))
		answer = mrsoft_resp_datagram(peer, msg, qp->sq.bounce);
	else
		mrsoft_qp_refuse_send(qp, MRSOFT_R_NO_PEER);
	mrsoft_qp_put(peer);
	return answer;
}

/* Both sides' pages.  False: @ns is how long they may be waited for. */
static bool try_datagram(struct mrsoft_qp *qp, enum ib_wc_status *status,
			 u64 *ns)
{
	struct mrsoft_msg *msg = qp->sq.msg;
	enum mrsoft_status answer;
	struct mrsoft_av av;

	if (!find_av(qp, &av)) {
		msg->reason = mrsoft_qp_refuse_send(qp, MRSOFT_R_AH);
		*status = IB_WC_LOC_QP_OP_ERR;
		return true;
	}
	answer = gather(qp);
	if (answer == MRSOFT_S_LOC_PROT) {
		*status = IB_WC_LOC_PROT_ERR;
		return true;
	}
	*ns = 0;
	if (answer == MRSOFT_S_FAULT)
		return false;
	*ns = RECEIVER_WAIT_NS;
	if (deliver(qp, &av) == MRSOFT_S_FAULT)
		return false;
	/* Delivered or lost: the sender of a datagram is never told. */
	msg->reason = MRSOFT_R_NONE;
	*status = IB_WC_SUCCESS;
	return true;
}

/* The receiver's page did not come in time.  True: there may be other receivers. */
static bool lose_copy(struct mrsoft_qp *qp)
{
	struct mrsoft_msg *msg = qp->sq.msg;

	mrsoft_qp_refuse_send(qp, MRSOFT_R_PAGE_ABSENT);
	msg->reason = MRSOFT_R_NONE;
	if (!msg->copied)
		return false;
	msg->copied++;
	mrsoft_pagein_placed(qp);
	return true;
}

static int datagram_run(struct mrsoft_qp *qp, enum ib_wc_status *status)
{
	int ret = mrsoft_pagein_result(qp);
	u64 ns;

	for (;;) {
		if (ret && !lose_copy(qp)) {
			*status = IB_WC_SUCCESS;
			return 0;
		}
		if (try_datagram(qp, status, &ns))
			return 0;
		/* mrsoft_pagein() says why it ends; receivers are counted */
		ret = mrsoft_pagein(qp, ns);
		if (ret == -EINPROGRESS)
			return ret;
		if (READ_ONCE(qp->sq.stopped))
			return -EAGAIN;
	}
}

static void no_abort(struct mrsoft_qp *qp)
{
}

const struct mrsoft_path_ops mrsoft_datagram_path = {
	.name	= "datagram",
	.run	= datagram_run,
	.abort	= no_abort,
};
