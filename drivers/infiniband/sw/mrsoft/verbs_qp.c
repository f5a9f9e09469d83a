// SPDX-License-Identifier: GPL-2.0
/*
 * verbs_qp.c - verbs on queue pairs
 *
 * Owns:     argument checks; the order in which the parts of a QP are started,
 *           stopped and freed; the choice of the path.
 * Not here: the state machine (qp.c), the engines (sq.c, resp.c).
 * Locks:    qp->verbs, outermost, serialises modify; the core keeps destroy
 *           apart from everything else.
 * Lifetime: published last and unpublished first: whom the table leads to a QP
 *           finds it whole.
 * Context:  process, sleeps; post_send and post_recv of a kernel consumer in any.
 * Spec:     IBA Vol 1, 10.2.4, 10.3, 11.2.5 (queue pairs)
 * Tests:    tools/testing/suites, pyverbs
 */
#include <rdma/uverbs_ioctl.h>

#include "dev.h"
#include "limits.h"
#include "local.h"
#include "resp.h"
#include "rx.h"
#include "sq.h"
#include "tx.h"
#include "trace.h"
#include "verbs.h"
#include "verbs_qp.h"

#define GSI_QPN		1u

static int check_type(const struct ib_qp_init_attr *init,
		      const struct ib_udata *udata)
{
	switch (init->qp_type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
		return 0;
	case IB_QPT_GSI:
		return udata ? -EPERM : 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int check_init(const struct ib_qp_init_attr *init,
		      const struct ib_udata *udata)
{
	const struct ib_qp_cap *cap = &init->cap;
	int err = check_type(init, udata);

	if (err)
		return err;
	if (init->create_flags || init->rwq_ind_tbl || init->xrcd)
		return -EOPNOTSUPP;
	if (!init->send_cq || !init->recv_cq)
		return -EINVAL;
	if (cap->max_send_wr > MRSOFT_MAX_QP_WR ||
	    cap->max_send_sge > MRSOFT_MAX_SGE ||
	    cap->max_inline_data > MRSOFT_MAX_INLINE)
		return -EINVAL;
	if (!init->srq && (cap->max_recv_wr > MRSOFT_MAX_QP_WR ||
			   cap->max_recv_sge > MRSOFT_MAX_SGE))
		return -EINVAL;
	return 0;
}

static void init_qp(struct mrsoft_qp *qp, const struct ib_qp_init_attr *init,
		    bool is_user)
{
	qp->hca = &mrsoft_dev(qp->ib.device)->hca;
	qp->pd = mrsoft_pd(qp->ib.pd);
	qp->type = init->qp_type;
	qp->is_user = is_user;
	mrsoft_who_set(&qp->who, is_user ? NULL : qp->ib.res.kern_name);
	qp->send_cq = mrsoft_cq(init->send_cq);
	qp->recv_cq = mrsoft_cq(init->recv_cq);
	qp->srq = init->srq ? mrsoft_srq(init->srq) : NULL;
	qp->state = IB_QPS_RESET;
	mutex_init(&qp->verbs);
	spin_lock_init(&qp->state_lock);
	if (mrsoft_qp_is_datagram(qp))
		qp->path = &mrsoft_datagram_path;
	mrsoft_resp_init(qp);
	/* The number follows when the QP is published. */
	mrsoft_mw_binder_init(&qp->binder, 0, qp->pd);
	qp->binder.who = &qp->who;
}

static int init_rq(struct mrsoft_qp *qp, struct ib_qp_cap *cap,
		   struct ib_ucontext *ucontext, struct mrsoft_abi_mmap *mi)
{
	int err;

	/* IBA 11.2.5.1: the receive attributes mean nothing with an SRQ. */
	if (qp->srq) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
		return 0;
	}
	err = mrsoft_rq_init(&qp->rq, cap->max_recv_wr, cap->max_recv_sge,
			     ucontext, mi);
	if (err)
		return err;
	cap->max_recv_wr = qp->rq.max_wr;
	cap->max_recv_sge = qp->rq.max_sge;
	return 0;
}

/* Nobody finds the QP or runs one of its queues when this returns. */
static void stop_qp(struct mrsoft_qp *qp)
{
	mrsoft_qp_unpublish(qp);
	mrsoft_sq_stop(qp);
	mrsoft_rx_close(qp);
	mrsoft_resp_reset(qp);
	mrsoft_mw_binder_drain(&qp->binder);
}

static void free_queues(struct mrsoft_qp *qp)
{
	mrsoft_rx_free(qp);
	mrsoft_sq_destroy(qp);
	mrsoft_rq_destroy(&qp->rq);
}

static int create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		     struct ib_udata *udata)
{
	struct ib_ucontext *ucontext = mrsoft_verbs_ucontext(udata);
	struct mrsoft_abi_create_qp_resp resp = {};
	struct mrsoft_qp *qp = mrsoft_qp(ibqp);
	struct ib_qp_cap cap = init->cap;
	int err;

	err = check_init(init, udata);
	if (err)
		return err;
	err = mrsoft_verbs_check_udata(udata, sizeof(resp));
	if (err)
		return err;

	init_qp(qp, init, udata);
	err = init_rq(qp, &cap, ucontext, &resp.rq_mi);
	if (err)
		return err;
	err = mrsoft_sq_init(qp, &cap, init->sq_sig_type == IB_SIGNAL_ALL_WR,
			     ucontext, &resp.sq_mi);
	if (err)
		goto destroy_rq;
	err = mrsoft_qp_publish(qp, init->qp_type == IB_QPT_GSI ? GSI_QPN : 0);
	if (err)
		goto free_queues;
	if (udata) {
		err = ib_respond_udata(udata, resp);
		if (err)
			goto stop;
	}
	init->cap = cap;
	return 0;

stop:
	stop_qp(qp);
free_queues:
	mrsoft_sq_destroy(qp);
destroy_rq:
	mrsoft_rq_destroy(&qp->rq);
	return err;
}

static int destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct mrsoft_qp *qp = mrsoft_qp(ibqp);

	/*
	 * The waits inside end after the copies that run at this moment: a
	 * window of another QP's, a peer or a timer is never waited for.
	 */
	stop_qp(qp);
	free_queues(qp);
	return 0;
}

static int check_port(const struct mrsoft_qp *qp,
		      const struct ib_qp_attr *attr, int mask)
{
	if ((mask & IB_QP_PATH_MTU) &&
	    ib_mtu_enum_to_int(attr->path_mtu) > (int)READ_ONCE(qp->hca->mtu))
		return -EINVAL;
	return 0;
}

/*
 * The way to @dgid, chosen when the QP goes to RTR.  A destination that cannot be
 * reached is refused now, and not after retries that nobody can answer.
 */
static int choose_path(struct mrsoft_qp *qp, const union ib_gid *dgid,
		       const struct mrsoft_path_ops **path)
{
	struct mrsoft_hca *hca = qp->hca;

	if (mrsoft_local_reaches(hca, dgid)) {
		*path = &mrsoft_local_path;
		return 0;
	}
	if (READ_ONCE(hca->path_mode) == MRSOFT_PATH_LOCAL ||
	    !mrsoft_hca_udp(hca)) {
		mrsoft_qp_refuse(qp, "connect", MRSOFT_R_NO_PATH);
		return -ENETUNREACH;
	}
	*path = &mrsoft_wire_path;
	return mrsoft_rx_make(qp);
}

static void set_path(struct mrsoft_qp *qp, const struct mrsoft_path_ops *path)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->state_lock, flags);
	WRITE_ONCE(qp->path, path);
	spin_unlock_irqrestore(&qp->state_lock, flags);
	trace_mrsoft_path(qp->qpn, qp->attr.dest_qp_num,
			  path ? path->name : "none");
	if (path == &mrsoft_wire_path)
		mrsoft_rx_open(qp);
}

/* To RTR, with attributes that passed the checks. */
static int make_ready(struct mrsoft_qp *qp, const struct ib_qp_attr *attr,
		      int mask)
{
	const struct mrsoft_path_ops *path;
	int err;

	if (mrsoft_qp_is_datagram(qp)) {
		err = mrsoft_rx_make(qp);
		if (err)
			return err;
		mrsoft_qp_apply(qp, attr, mask);
		mrsoft_rx_open(qp);
		return 0;
	}
	err = choose_path(qp, &rdma_ah_read_grh(&attr->ah_attr)->dgid, &path);
	if (err)
		return err;
	mrsoft_qp_apply(qp, attr, mask);
	set_path(qp, path);
	return 0;
}

/*
 * To RESET: in three steps.  The requester stops, then the state keeps messages
 * of peers out, then what is left is forgotten.
 */
static void reset_qp(struct mrsoft_qp *qp, const struct ib_qp_attr *attr,
		     int mask)
{
	mrsoft_sq_stop(qp);
	mrsoft_qp_apply(qp, attr, mask);
	mrsoft_rx_close(qp);
	mrsoft_resp_reset(qp);
	mrsoft_mw_binder_drain(&qp->binder);
	mrsoft_sq_reset(qp);
}

static int change_state(struct mrsoft_qp *qp, const struct ib_qp_attr *attr,
			int mask)
{
	if (attr->qp_state == IB_QPS_RESET) {
		reset_qp(qp, attr, mask);
		return 0;
	}
	if (attr->qp_state == IB_QPS_RTR)
		return make_ready(qp, attr, mask);

	mrsoft_qp_apply(qp, attr, mask);
	switch (attr->qp_state) {
	case IB_QPS_RTS:
	case IB_QPS_SQD:
		/* What was posted early starts; SQD: is there news to tell? */
		mrsoft_sq_kick(qp);
		break;
	case IB_QPS_ERR:
		mrsoft_sq_kick(qp);
		mrsoft_resp_flush(qp);
		break;
	default:
		break;
	}
	return 0;
}

static int modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		     struct ib_udata *udata)
{
	struct mrsoft_qp *qp = mrsoft_qp(ibqp);
	int err;

	if (udata) {
		err = ib_no_udata_io(udata);
		if (err)
			return err;
	}

	mutex_lock(&qp->verbs);
	err = mrsoft_qp_check(qp, attr, mask);
	if (err)
		goto unlock;
	err = check_port(qp, attr, mask);
	if (err)
		goto unlock;

	if (mask & IB_QP_STATE)
		err = change_state(qp, attr, mask);
	else
		mrsoft_qp_apply(qp, attr, mask);
unlock:
	mutex_unlock(&qp->verbs);
	return err;
}

static int query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init)
{
	struct mrsoft_qp *qp = mrsoft_qp(ibqp);

	mrsoft_qp_query(qp, attr);
	attr->cap = (struct ib_qp_cap) {
		.max_send_wr = qp->sq.max_wr,
		.max_send_sge = qp->sq.max_sge,
		.max_inline_data = qp->sq.max_inline,
		/* zero with an SRQ */
		.max_recv_wr = qp->rq.max_wr,
		.max_recv_sge = qp->rq.max_sge,
	};
	*init = (struct ib_qp_init_attr) {
		.event_handler = ibqp->event_handler,
		.qp_context = ibqp->qp_context,
		.send_cq = ibqp->send_cq,
		.recv_cq = ibqp->recv_cq,
		.srq = ibqp->srq,
		.cap = attr->cap,
		.sq_sig_type = qp->sq.sig_all ? IB_SIGNAL_ALL_WR :
						IB_SIGNAL_REQ_WR,
		.qp_type = ibqp->qp_type,
	};
	return 0;
}

/*
 * librxe stores its WQEs itself and then sends the command without any: the list
 * is empty.  A list on a user's QP is nobody's we know.
 */
static int post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad)
{
	struct mrsoft_qp *qp = mrsoft_qp(ibqp);

	if (!qp->is_user)
		return mrsoft_sq_post(qp, wr, bad);
	if (wr) {
		*bad = wr;
		return -EINVAL;
	}
	switch (mrsoft_qp_state(qp)) {
	case IB_QPS_RESET:
	case IB_QPS_INIT:
	case IB_QPS_RTR:
		return -EINVAL;
	default:
		break;
	}
	mrsoft_sq_doorbell(qp);
	/* librxe has no command for receives: those of a dead QP end now. */
	if (mrsoft_qp_state(qp) == IB_QPS_ERR)
		mrsoft_resp_flush(qp);
	return 0;
}

static int post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad)
{
	struct mrsoft_qp *qp = mrsoft_qp(ibqp);
	enum ib_qp_state state;
	int err = 0;

	if (wr && (qp->is_user || qp->srq ||
		   mrsoft_qp_state(qp) == IB_QPS_RESET)) {
		*bad = wr;
		return -EINVAL;
	}
	if (wr)
		err = mrsoft_rq_post(&qp->rq, wr, bad);
	/* After the post: an error that comes later flushes by itself. */
	state = mrsoft_qp_state(qp);
	if (state == IB_QPS_ERR)
		mrsoft_resp_flush(qp);
	return err;
}

const struct ib_device_ops mrsoft_verbs_qp_ops = {
	.create_qp = create_qp,
	.destroy_qp = destroy_qp,
	.modify_qp = modify_qp,
	.post_recv = post_recv,
	.post_send = post_send,
	.query_qp = query_qp,

	INIT_RDMA_OBJ_SIZE(ib_qp, mrsoft_qp, ib),
};
