/* SPDX-License-Identifier: GPL-2.0 */
/*
 * engine_kunit.h - two QPs in one kernel, made from nothing
 *
 * Two devices without an ib_device that is registered, each with a PD, CQs, a
 * QP and memory, connected by the local path.  What verbs_qp.c does around the
 * engines is repeated here in a few lines.
 *
 * local.c is compiled into the suite with its calls of the responder counted,
 * and with a place between two segments where a test may do what it likes: no
 * hold and no lock is had there.
 */
#ifndef MRSOFT_ENGINE_KUNIT_H
#define MRSOFT_ENGINE_KUNIT_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "abi.h"
#include "copy.h"
#include "limits.h"
#include "local.h"
#include "mw.h"
#include "psn.h"
#include "resp.h"
#include "sq.h"

/* --- local.c, watched ----------------------------------------------------- */

static struct {
	atomic_t begun;
	atomic_t closed;
	void (*between)(struct mrsoft_qp *qp);
} watch;

static enum mrsoft_status watched_begin(struct mrsoft_qp *qp,
					struct mrsoft_msg *msg)
{
	enum mrsoft_status status = mrsoft_resp_begin(qp, msg);

	if (status == MRSOFT_S_OK)
		atomic_inc(&watch.begun);
	return status;
}

static enum mrsoft_status watched_segment(struct mrsoft_qp *qp,
					  struct mrsoft_msg *msg,
					  const struct mrsoft_span *peer)
{
	enum mrsoft_status status = mrsoft_resp_segment(qp, msg, peer);

	if (status != MRSOFT_S_OK)
		atomic_inc(&watch.closed);
	return status;
}

static enum mrsoft_status watched_atomic(struct mrsoft_qp *qp,
					 struct mrsoft_msg *msg)
{
	enum mrsoft_status status = mrsoft_resp_atomic(qp, msg);

	if (status != MRSOFT_S_OK)
		atomic_inc(&watch.closed);
	return status;
}

static enum mrsoft_status watched_end(struct mrsoft_qp *qp,
				      struct mrsoft_msg *msg)
{
	atomic_inc(&watch.closed);
	return mrsoft_resp_end(qp, msg);
}

static void watched_abort(struct mrsoft_qp *qp, struct mrsoft_msg *msg)
{
	atomic_inc(&watch.closed);
	mrsoft_resp_abort(qp, msg);
}

static bool watched_charge(struct mrsoft_qp *qp, u64 bytes)
{
	if (watch.between)
		watch.between(qp);
	return mrsoft_sq_charge(qp, bytes);
}

#define mrsoft_resp_begin	watched_begin
#define mrsoft_resp_segment	watched_segment
#define mrsoft_resp_atomic	watched_atomic
#define mrsoft_resp_end		watched_end
#define mrsoft_resp_abort	watched_abort
#define mrsoft_sq_charge	watched_charge
#include "local.c"
#undef mrsoft_resp_begin
#undef mrsoft_resp_segment
#undef mrsoft_resp_atomic
#undef mrsoft_resp_end
#undef mrsoft_resp_abort
#undef mrsoft_sq_charge

/* --- the two ends --------------------------------------------------------- */

#define BUF	SZ_16K			/* bytes of memory at each end */
#define IOVA	0x123400010000ull	/* where the rkey has them */
#define POISON	0x5a
#define QKEY	0x11223344
#define MAX_MRS	16
#define SIG	IB_SEND_SIGNALED
#define ALL	(MRSOFT_GRANTED_RIGHTS | IB_ACCESS_LOCAL_WRITE | \
		 IB_ACCESS_MW_BIND)

struct engine;

/**
 * struct end - one side
 * @eng: both
 * @test: the case
 * @hca: its device
 * @pd: its PD, and another one
 * @qp: its QP
 * @scq: completions of sends
 * @rcq: completions of receives
 * @srq: used when @use_srq is set before the QP is made
 * @dma: lkey of all kernel memory, with local write
 * @mr: key of @buf at IOVA, all rights
 * @buf: BUF bytes
 * @gid_attr: its address
 * @mrs: what new_mr() made and was not deregistered
 * @events: how often, by enum ib_event_type
 * @on_comp: upcall of either CQ
 * @priv: the case's
 */
struct end {
	struct engine *eng;
	struct kunit *test;
	struct mrsoft_hca hca;
	struct mrsoft_pd pd[2];
	struct mrsoft_qp qp;
	struct mrsoft_cq scq;
	struct mrsoft_cq rcq;
	struct mrsoft_srq srq;
	bool use_srq;
	bool alive;
	struct mrsoft_mr *dma;
	struct mrsoft_mr *mr;
	u8 *buf;
	struct ib_gid_attr gid_attr;
	struct mrsoft_mr *mrs[MAX_MRS];
	atomic_t events[32];
	void (*on_comp)(struct end *end, struct mrsoft_cq *cq);
	void *priv;
};

/**
 * struct engine - both, and how they are connected
 * @end: the requester is usually end[0]
 * @attr: attributes for both when they are connected
 * @to: number of the QP that each is connected to, 0: the other's
 * @cqe: entries of each CQ
 * @user: end[0] has a send ring of user space's layout
 * @lost: messages whose responder went away, so that nobody closed them
 */
struct engine {
	struct ib_device *ibdev;
	struct workqueue_struct *wq;
	struct end end[2];
	struct ib_qp_attr attr;
	u32 to[2];
	u32 cqe;
	bool user;
	int lost;
};

static inline struct end *end_of(struct mrsoft_qp *qp)
{
	return container_of(qp, struct end, qp);
}

static void on_end_event(struct ib_event *event, void *context)
{
	struct end *end = context;

	if (event->event < ARRAY_SIZE(end->events))
		atomic_inc(&end->events[event->event]);
}

static void on_end_comp(struct ib_cq *ibcq, void *context)
{
	struct end *end = context;

	if (end->on_comp)
		end->on_comp(end, mrsoft_cq(ibcq));
}

static inline int events(struct end *end, enum ib_event_type type)
{
	return atomic_read(&end->events[type]);
}

static inline s64 refusals(struct end *end, enum mrsoft_reason reason)
{
	return atomic64_read(&end->hca.stats.reasons[reason]);
}

/* --- memory --------------------------------------------------------------- */

static inline enum mrsoft_reason reg_mr(struct end *end, struct mrsoft_mr *mr,
					void *addr, u32 len, u64 iova, u32 key,
					int access)
{
	struct scatterlist sg;

	sg_init_one(&sg, addr, len);
	sg_dma_address(&sg) = (uintptr_t)addr;
	sg_dma_len(&sg) = len;
	mr->ib.page_size = PAGE_SIZE;
	if (mrsoft_mr_map_sg(mr, &sg, 1, NULL) != 1)
		return MRSOFT_R_COUNT;
	mr->ib.iova = iova;
	return mrsoft_mr_fast_reg(&end->hca.keys, mr->key.pd, mr, key, access);
}

/* A region of @len bytes at @addr; @access 0: one that is not valid. */
static inline struct mrsoft_mr *new_mr(struct end *end, int pd, void *addr,
				       u32 len, u64 iova, int access)
{
	struct kunit *test = end->test;
	struct mrsoft_mr *mr;
	int i;

	mr = mrsoft_mr_alloc_fast(&end->hca.keys, &end->pd[pd],
				  len / PAGE_SIZE + 2, false);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	for (i = 0; i < MAX_MRS && end->mrs[i]; i++)
		;
	KUNIT_ASSERT_LT(test, i, MAX_MRS);
	end->mrs[i] = mr;
	if (access)
		KUNIT_ASSERT_EQ(test, reg_mr(end, mr, addr, len, iova,
					     mr->key.key, access),
				MRSOFT_R_NONE);
	return mr;
}

static inline int drop_mr(struct end *end, struct mrsoft_mr *mr)
{
	int ret = mrsoft_mr_dereg(mr);
	int i;

	for (i = 0; i < MAX_MRS; i++)
		if (!ret && end->mrs[i] == mr)
			end->mrs[i] = NULL;
	return ret;
}

/* --- states, as verbs_qp.c goes through them ------------------------------ */

static inline int modify(struct end *end, struct ib_qp_attr *attr, int mask)
{
	struct mrsoft_qp *qp = &end->qp;
	bool reset = (mask & IB_QP_STATE) && attr->qp_state == IB_QPS_RESET;
	int ret;

	mutex_lock(&qp->verbs);
	ret = mrsoft_qp_check(qp, attr, mask);
	if (ret)
		goto unlock;
	if (reset)
		mrsoft_sq_stop(qp);
	mrsoft_qp_apply(qp, attr, mask);
	if (reset) {
		mrsoft_resp_reset(qp);
		mrsoft_mw_binder_drain(&qp->binder);
		mrsoft_sq_reset(qp);
	} else if (mask & IB_QP_STATE) {
		if (attr->qp_state > IB_QPS_RTR)
			mrsoft_sq_kick(qp);
		if (attr->qp_state == IB_QPS_ERR)
			mrsoft_resp_flush(qp);
	}
unlock:
	mutex_unlock(&qp->verbs);
	return ret;
}

static inline int to_state(struct end *end, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return modify(end, &attr, IB_QP_STATE);
}

static inline bool is_datagram(const struct mrsoft_qp *qp)
{
	return qp->type == IB_QPT_UD || qp->type == IB_QPT_GSI;
}

static inline void set_address(struct ib_qp_attr *attr, struct end *from,
			       struct end *to)
{
	attr->ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_ah_flags(&attr->ah_attr, IB_AH_GRH);
	rdma_ah_set_port_num(&attr->ah_attr, 1);
	attr->ah_attr.grh.dgid = to->gid_attr.gid;
	attr->ah_attr.grh.sgid_attr = &from->gid_attr;
	attr->ah_attr.grh.hop_limit = 64;
}

static inline void to_rtr(struct engine *eng, int who, struct end *peer)
{
	struct end *end = &eng->end[who];
	struct ib_qp_attr attr = eng->attr;
	struct kunit *test = end->test;
	enum ib_qp_type type = end->qp.type;
	int mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT;

	attr.qp_state = IB_QPS_INIT;
	mask |= is_datagram(&end->qp) ? IB_QP_QKEY : IB_QP_ACCESS_FLAGS;
	KUNIT_ASSERT_EQ(test, modify(end, &attr, mask), 0);

	attr.qp_state = IB_QPS_RTR;
	attr.dest_qp_num = eng->to[who] ? eng->to[who] : peer->qp.qpn;
	set_address(&attr, end, peer);
	mask = IB_QP_STATE;
	if (!is_datagram(&end->qp))
		mask |= IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			IB_QP_RQ_PSN;
	if (type == IB_QPT_RC)
		mask |= IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	KUNIT_ASSERT_EQ(test, modify(end, &attr, mask), 0);
	end->qp.path = is_datagram(&end->qp) ? &mrsoft_datagram_path :
					       &mrsoft_local_path;
}

static inline void to_rts(struct engine *eng, int who)
{
	struct end *end = &eng->end[who];
	struct ib_qp_attr attr = eng->attr;
	int mask = IB_QP_STATE | IB_QP_SQ_PSN;

	attr.qp_state = IB_QPS_RTS;
	if (end->qp.type == IB_QPT_RC)
		mask |= IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			IB_QP_MAX_QP_RD_ATOMIC;
	KUNIT_ASSERT_EQ(end->test, modify(end, &attr, mask), 0);
}

static inline void connect_ends(struct engine *eng)
{
	int i;

	for (i = 0; i < 2; i++)
		to_rtr(eng, i, &eng->end[1 - i]);
	for (i = 0; i < 2; i++)
		to_rts(eng, i);
}

static inline enum ib_qp_state state_of(struct end *end)
{
	return mrsoft_qp_state(&end->qp);
}

/* --- making and ending ---------------------------------------------------- */

static inline void destroy_qp(struct end *end)
{
	if (!end->alive)
		return;
	end->alive = false;
	mrsoft_qp_unpublish(&end->qp);
	mrsoft_sq_stop(&end->qp);
	mrsoft_resp_reset(&end->qp);
	mrsoft_mw_binder_drain(&end->qp.binder);
	mrsoft_sq_destroy(&end->qp);
	mrsoft_rq_destroy(&end->qp.rq);
}

static inline void create_qp(struct end *end, enum ib_qp_type type, bool user)
{
	struct ib_qp_cap cap = {
		.max_send_wr = 255, .max_send_sge = 4, .max_inline_data = 64,
	};
	struct mrsoft_qp *qp = &end->qp;
	struct kunit *test = end->test;

	memset(qp, 0, sizeof(*qp));
	qp->ib.device = end->pd[0].ib.device;
	qp->ib.event_handler = on_end_event;
	qp->ib.qp_context = end;
	qp->hca = &end->hca;
	qp->pd = &end->pd[0];
	qp->type = type;
	qp->is_user = user;
	qp->send_cq = &end->scq;
	qp->recv_cq = &end->rcq;
	qp->srq = end->use_srq ? &end->srq : NULL;
	mutex_init(&qp->verbs);
	spin_lock_init(&qp->state_lock);
	mrsoft_resp_init(qp);
	mrsoft_mw_binder_init(&qp->binder, 0, qp->pd);
	KUNIT_ASSERT_EQ(test, mrsoft_rq_init(&qp->rq, 255, 4, NULL, NULL), 0);
	KUNIT_ASSERT_EQ(test, mrsoft_sq_init(qp, &cap, false, NULL, NULL), 0);
	KUNIT_ASSERT_EQ(test, mrsoft_qp_publish(qp, 0), 0);
	end->alive = true;
}

static inline void start_cq(struct engine *eng, struct end *end,
			    struct mrsoft_cq *cq)
{
	cq->ib.device = eng->ibdev;
	cq->ib.comp_handler = on_end_comp;
	cq->ib.event_handler = on_end_event;
	cq->ib.cq_context = end;
	KUNIT_ASSERT_EQ(end->test, mrsoft_cq_init(cq, &end->hca.stats, eng->cqe,
						  NULL, NULL), 0);
}

static inline void start_end(struct engine *eng, int who)
{
	static const union ib_gid gid = {
		.raw = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
	};
	struct end *end = &eng->end[who];
	struct kunit *test = end->test;
	int i;

	mrsoft_hca_init(&end->hca, eng->wq);
	end->hca.port_up = true;
	end->hca.mtu = 1024;
	end->hca.mac[5] = 0x10 + who;
	for (i = 0; i < 2; i++)
		end->pd[i].ib.device = eng->ibdev;
	end->gid_attr.gid = gid;
	end->gid_attr.gid.raw[15] += who;
	KUNIT_ASSERT_EQ(test, mrsoft_local_gid_add(&end->hca,
						   &end->gid_attr.gid), 0);
	start_cq(eng, end, &end->scq);
	start_cq(eng, end, &end->rcq);
	KUNIT_ASSERT_EQ(test, mrsoft_rq_init(&end->srq.rq, 255, 4, NULL, NULL),
			0);
	end->srq.ib.device = eng->ibdev;
	end->srq.ib.event_handler = on_end_event;
	end->srq.ib.srq_context = end;
	end->buf = kunit_kmalloc(test, BUF, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, end->buf);
	memset(end->buf, POISON, BUF);
	end->dma = mrsoft_mr_get_dma(&end->hca.keys, &end->pd[0],
				     IB_ACCESS_LOCAL_WRITE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(end->dma));
	end->mr = new_mr(end, 0, end->buf, BUF, IOVA, ALL);
}

static inline void stop_end(struct end *end)
{
	int i;

	destroy_qp(end);
	for (i = 0; i < MAX_MRS; i++)
		if (end->mrs[i])
			KUNIT_EXPECT_EQ(end->test, drop_mr(end, end->mrs[i]),
					0);
	KUNIT_EXPECT_EQ(end->test, mrsoft_mr_dereg(end->dma), 0);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(end->test, atomic_read(&end->pd[i].regions),
				0);
	mrsoft_cq_destroy(&end->scq);
	mrsoft_cq_destroy(&end->rcq);
	mrsoft_rq_destroy(&end->srq.rq);
	mrsoft_local_gid_del(&end->hca, &end->gid_attr.gid);
}

/* An engine with good attributes, without QPs: the case may change some. */
static inline struct engine *engine_new(struct kunit *test)
{
	struct engine *eng = kunit_kzalloc(test, sizeof(*eng), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, eng);
	eng->ibdev = kunit_kzalloc(test, sizeof(*eng->ibdev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, eng->ibdev);
	eng->wq = alloc_workqueue("mrsoft-kunit", WQ_MEM_RECLAIM | WQ_UNBOUND,
				  0);
	KUNIT_ASSERT_NOT_NULL(test, eng->wq);
	eng->cqe = 511;
	eng->attr = (struct ib_qp_attr){
		.path_mtu = IB_MTU_1024,
		.qkey = QKEY,
		.rq_psn = 0xfffffe,
		.sq_psn = 0xfffffe,
		.qp_access_flags = MRSOFT_REMOTE_RIGHTS,
		.max_rd_atomic = 8,
		.max_dest_rd_atomic = 8,
		.min_rnr_timer = 1,
		.port_num = 1,
		.timeout = 8,		/* 1 ms */
		.retry_cnt = 2,
		.rnr_retry = 2,
	};
	for (i = 0; i < 2; i++) {
		eng->end[i].test = test;
		eng->end[i].eng = eng;
	}
	atomic_set(&watch.begun, 0);
	atomic_set(&watch.closed, 0);
	watch.between = NULL;
	test->priv = eng;
	return eng;
}

static inline void engine_start(struct engine *eng, enum ib_qp_type type)
{
	int i;

	for (i = 0; i < 2; i++) {
		eng->end[i].use_srq |= eng->end[0].use_srq;
		start_end(eng, i);
		create_qp(&eng->end[i], type, eng->user && !i);
	}
}

static inline struct engine *engine_create(struct kunit *test,
					   enum ib_qp_type type)
{
	struct engine *eng = engine_new(test);

	engine_start(eng, type);
	connect_ends(eng);
	return eng;
}

/* A suite's exit: what was created is destroyed, what was begun is closed. */
static inline void engine_end(struct kunit *test)
{
	struct engine *eng = test->priv;
	int i;

	if (!eng)
		return;
	test->priv = NULL;
	watch.between = NULL;
	for (i = 0; i < 2; i++)
		stop_end(&eng->end[i]);
	/* lookups of the other device have ended */
	synchronize_rcu();
	for (i = 0; i < 2; i++)
		mrsoft_hca_destroy(&eng->end[i].hca);
	destroy_workqueue(eng->wq);
	KUNIT_EXPECT_EQ(test, atomic_read(&watch.begun),
			atomic_read(&watch.closed) + eng->lost);
}

/* --- work requests -------------------------------------------------------- */

/**
 * struct post - a send work request in short
 * @op: enum ib_wr_opcode
 * @wr_id: identifies it
 * @flags: IB_SEND_*
 * @addr: one piece of memory of @len bytes, with @lkey (0: the DMA region's)
 * @sges: or several
 * @raddr: remote address
 * @ex: immediate or key, host order
 * @qpn: UD
 * @mr: REG_MR with @rkey, @access
 */
struct post {
	u32 op;
	u64 wr_id;
	u32 flags;
	void *addr;
	u32 len;
	u32 lkey;
	const struct ib_sge *sges;
	int num_sge;
	u64 raddr;
	u32 rkey;
	u64 compare;
	u64 swap;
	u32 ex;
	u32 qpn;
	u32 qkey;
	struct ib_ah *ah;
	struct mrsoft_mr *mr;
	int access;
};

static inline int post_send(struct end *end, const struct post *p)
{
	union {
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
		struct ib_ud_wr ud;
		struct ib_reg_wr reg;
	} u = {};
	struct ib_send_wr *wr = &u.rdma.wr;
	const struct ib_send_wr *bad;
	struct ib_sge sge = {
		.addr = (uintptr_t)p->addr, .length = p->len,
		.lkey = p->lkey ? p->lkey : end->dma->key.key,
	};

	if (is_datagram(&end->qp)) {
		u.ud.ah = p->ah;
		u.ud.remote_qpn = p->qpn;
		u.ud.remote_qkey = p->qkey;
	} else if (p->op == IB_WR_REG_MR) {
		u.reg.mr = &p->mr->ib;
		u.reg.key = p->rkey;
		u.reg.access = p->access;
	} else if (p->op == IB_WR_ATOMIC_CMP_AND_SWP ||
		   p->op == IB_WR_ATOMIC_FETCH_AND_ADD) {
		u.atomic.remote_addr = p->raddr;
		u.atomic.rkey = p->rkey;
		u.atomic.compare_add = p->compare;
		u.atomic.swap = p->swap;
	} else {
		u.rdma.remote_addr = p->raddr;
		u.rdma.rkey = p->rkey;
	}
	wr->wr_id = p->wr_id;
	wr->opcode = p->op;
	wr->send_flags = p->flags;
	if (p->op == IB_WR_SEND_WITH_INV || p->op == IB_WR_LOCAL_INV)
		wr->ex.invalidate_rkey = p->ex;
	else
		wr->ex.imm_data = cpu_to_be32(p->ex);
	wr->sg_list = p->sges ? (struct ib_sge *)p->sges : &sge;
	wr->num_sge = p->sges ? p->num_sge : !!p->len;
	return mrsoft_sq_post(&end->qp, wr, &bad);
}

static inline int post_recv_key(struct end *end, u64 wr_id, void *addr, u32 len,
				u32 lkey)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)addr, .length = len, .lkey = lkey,
	};
	struct ib_recv_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = !!len,
	};
	const struct ib_recv_wr *bad;
	int ret;

	ret = mrsoft_rq_post(end->use_srq ? &end->srq.rq : &end->qp.rq, &wr,
			     &bad);
	if (state_of(end) == IB_QPS_ERR)
		mrsoft_resp_flush(&end->qp);
	return ret;
}

static inline void post_recv(struct end *end, u64 wr_id, void *addr, u32 len)
{
	KUNIT_ASSERT_EQ(end->test, post_recv_key(end, wr_id, addr, len,
						 end->dma->key.key), 0);
}

/* --- completions ---------------------------------------------------------- */

/* Waits for one; false after a time in which it would long have come. */
static inline bool get_wc(struct mrsoft_cq *cq, struct ib_wc *wc)
{
	unsigned long end = jiffies + 20 * HZ;

	memset(wc, 0, sizeof(*wc));
	while (!mrsoft_cq_poll(cq, 1, wc)) {
		if (time_after(jiffies, end))
			return false;
		usleep_range(50, 100);
	}
	return true;
}

static inline void expect_wc(struct end *end, struct mrsoft_cq *cq, u64 wr_id,
			     enum ib_wc_status status, struct ib_wc *wc)
{
	struct kunit *test = end->test;

	KUNIT_ASSERT_TRUE_MSG(test, get_wc(cq, wc), "no completion of %llu",
			      wr_id);
	KUNIT_EXPECT_EQ(test, wc->wr_id, wr_id);
	KUNIT_EXPECT_EQ_MSG(test, wc->status, status, "wr_id %llu, reason %s",
			    wr_id, mrsoft_reason_name(wc->vendor_err));
	KUNIT_EXPECT_PTR_EQ(test, wc->qp, &end->qp.ib);
	KUNIT_EXPECT_EQ(test, (u32)wc->port_num, 1u);
	if (status == IB_WC_SUCCESS)
		KUNIT_EXPECT_EQ(test, wc->vendor_err, (u32)MRSOFT_R_NONE);
	else
		KUNIT_EXPECT_NE(test, wc->vendor_err, (u32)MRSOFT_R_NONE);
}

static inline struct ib_wc expect_send(struct end *end, u64 wr_id,
				       enum ib_wc_status status)
{
	struct ib_wc wc;

	expect_wc(end, &end->scq, wr_id, status, &wc);
	return wc;
}

static inline struct ib_wc expect_recv(struct end *end, u64 wr_id,
				       enum ib_wc_status status)
{
	struct ib_wc wc;

	expect_wc(end, &end->rcq, wr_id, status, &wc);
	return wc;
}

/* Work that queues itself again comes to its end; timers are not waited for. */
static inline void settle(struct engine *eng)
{
	int i;

	for (i = 0; i < 10; i++)
		flush_workqueue(eng->wq);
}

/* Nothing else completes at either end. */
static inline void expect_silence(struct engine *eng)
{
	int i;

	settle(eng);
	for (i = 0; i < 2; i++) {
		struct end *end = &eng->end[i];

		KUNIT_EXPECT_EQ_MSG(end->test, mrsoft_cq_pending(&end->scq),
				    0u, "end %d", i);
		KUNIT_EXPECT_EQ_MSG(end->test, mrsoft_cq_pending(&end->rcq),
				    0u, "end %d", i);
	}
}

static inline bool wait_state(struct end *end, enum ib_qp_state state)
{
	unsigned long until = jiffies + 20 * HZ;

	while (state_of(end) != state) {
		if (time_after(jiffies, until))
			return false;
		usleep_range(50, 100);
	}
	return true;
}

static inline void fill(u8 *buf, size_t len, u8 seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = seed + i * 7 + (i >> 8);
}

/* @len bytes as fill() left them; what is around them is untouched. */
static inline bool filled(const u8 *buf, size_t len, u8 seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (buf[i] != (u8)(seed + i * 7 + (i >> 8)))
			return false;
	return true;
}

static inline bool untouched(const u8 *buf, size_t len)
{
	return !memchr_inv(buf, POISON, len);
}

#endif /* MRSOFT_ENGINE_KUNIT_H */
