// SPDX-License-Identifier: GPL-2.0
/*
 * live.c - objects, connections and work of the suites
 *
 * Owns:     making and giving back; the one way to post, poll and wait.
 * Not here: what is right (the cases).
 * Locks:    none.
 * Lifetime: an action of the case gives each object back, newest first.
 * Context:  process.
 * Spec:     IBA Vol 1, 10.3.1 (states of a QP)
 */
#include <linux/delay.h>
#include <rdma/ib_addr.h>

#include "live.h"

/* Objects */

static void dealloc_pd(void *pd)
{
	ib_dealloc_pd(pd);
}

static void free_cq(void *cq)
{
	ib_free_cq(cq);
}

static void dereg_mr(void *mr)
{
	ib_dereg_mr(mr);
}

static void destroy_qp(void *qp)
{
	ib_destroy_qp(qp);
}

static void destroy_srq(void *srq)
{
	ib_destroy_srq(srq);
}

static void free_mem(void *mem)
{
	kvfree(mem);
}

struct ib_pd *live_pd(struct kunit *test, struct ib_device *dev, unsigned int flags)
{
	struct ib_pd *pd = ib_alloc_pd(dev, flags);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, pd);
	kunit_add_action_or_reset(test, dealloc_pd, pd);
	return pd;
}

struct ib_cq *live_cq(struct kunit *test, struct ib_device *dev, int cqe,
		      enum ib_poll_context ctx)
{
	struct ib_cq *cq = ib_alloc_cq(dev, NULL, cqe, 0, ctx);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, cq);
	kunit_add_action_or_reset(test, free_cq, cq);
	return cq;
}

struct ib_mr *live_mr(struct kunit *test, struct ib_pd *pd, enum ib_mr_type type,
		      u32 max)
{
	struct ib_mr *mr = ib_alloc_mr(pd, type, max);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, mr);
	kunit_add_action_or_reset(test, dereg_mr, mr);
	return mr;
}

struct ib_qp *live_qp(struct kunit *test, struct ib_pd *pd,
		      struct ib_qp_init_attr *init)
{
	struct ib_qp *qp = ib_create_qp(pd, init);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, qp);
	kunit_add_action_or_reset(test, destroy_qp, qp);
	return qp;
}

struct ib_srq *live_srq(struct kunit *test, struct ib_pd *pd,
			struct ib_srq_init_attr *init)
{
	struct ib_srq *srq = ib_create_srq(pd, init);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, srq);
	kunit_add_action_or_reset(test, destroy_srq, srq);
	return srq;
}

void live_destroy_mr(struct kunit *test, struct ib_mr *mr)
{
	kunit_release_action(test, dereg_mr, mr);
}

void live_destroy_qp(struct kunit *test, struct ib_qp *qp)
{
	kunit_release_action(test, destroy_qp, qp);
}

void *live_mem(struct kunit *test, size_t bytes)
{
	void *mem = kvzalloc(bytes, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mem);
	kunit_add_action_or_reset(test, free_mem, mem);
	return mem;
}

static void put_pages(void *page)
{
	__free_pages(page, compound_order(page));
}

struct page *live_pages(struct kunit *test, unsigned int order)
{
	struct page *page = alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_COMP,
					order);

	KUNIT_ASSERT_NOT_NULL(test, page);
	kunit_add_action_or_reset(test, put_pages, page);
	return page;
}

/* Ends */

static void event(struct ib_event *event, void *context)
{
	struct live_events *events = context;

	if (event->event < ARRAY_SIZE(events->count))
		atomic_inc(&events->count[event->event]);
}

/* The IPv4 address of the port: what stands there first is its link-local one. */
static void find_gid(struct kunit *test, struct live_end *end)
{
	const struct ib_gid_attr *attr;
	struct net_device *netdev;
	int i;

	for (i = 0; i < 32; i++) {
		attr = rdma_get_gid_attr(end->dev, 1, i);
		if (IS_ERR(attr))
			continue;
		if (ipv6_addr_v4mapped((struct in6_addr *)&attr->gid)) {
			end->gid = attr->gid;
			end->gid_index = i;
			rcu_read_lock();
			netdev = rcu_dereference(attr->ndev);
			if (netdev)
				memcpy(end->dmac, netdev->dev_addr, ETH_ALEN);
			rcu_read_unlock();
			rdma_put_gid_attr(attr);
			return;
		}
		rdma_put_gid_attr(attr);
	}
	KUNIT_ASSERT_TRUE(test, i < 32);
}

static void destroy_cq(void *cq)
{
	ib_destroy_cq(cq);
}

static void cq_event(struct ib_event *event, void *context)
{
	/* the CQ says who: its context is the case's */
	atomic_t *errors = event->element.cq->cq_context;

	if (event->event == IB_EVENT_CQ_ERR && errors)
		atomic_inc(errors);
}

/* @setup->cq_context begins with an atomic_t, where errors are counted. */
struct ib_cq *live_plain_cq(struct kunit *test, struct live_end *end,
			    const struct live_setup *setup)
{
	struct ib_cq_init_attr attr = { .cqe = setup->cqe ? setup->cqe : 256,
					.comp_vector = setup->vector };
	struct ib_cq *cq = ib_create_cq(end->dev, setup->comp, cq_event,
					setup->cq_context, &attr);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, cq);
	kunit_add_action_or_reset(test, destroy_cq, cq);
	return cq;
}

static void open_srq(struct kunit *test, struct live_end *end, u32 wr)
{
	struct ib_srq_init_attr init = {
		.event_handler = event,
		.srq_context = &end->events,
		.attr = { .max_wr = wr, .max_sge = 4 },
		.srq_type = IB_SRQT_BASIC,
	};

	end->srq = live_srq(test, end->pd, &init);
}

void live_end_open(struct kunit *test, struct live_end *end, int n,
		   const struct live_setup *setup)
{
	enum ib_poll_context ctx = setup->handlers ? setup->ctx : IB_POLL_DIRECT;
	u32 wr = setup->wr ? setup->wr : 64;
	struct ib_qp_init_attr init = {
		.event_handler = event,
		.qp_context = &end->events,
		.cap = {
			.max_send_wr = wr,
			.max_recv_wr = wr,
			.max_send_sge = setup->sge ? setup->sge : 4,
			.max_recv_sge = setup->sge ? setup->sge : 4,
			.max_inline_data = setup->inline_bytes,
			.max_rdma_ctxs = setup->rdma_ctxs,
		},
		.port_num = 1,
		.sq_sig_type = setup->sig_all ? IB_SIGNAL_ALL_WR :
						IB_SIGNAL_REQ_WR,
		.qp_type = setup->type ? setup->type : IB_QPT_RC,
	};

	end->dev = live_dev(n);
	find_gid(test, end);
	end->pd = live_pd(test, end->dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	end->lkey = end->pd->local_dma_lkey;
	end->rkey = end->pd->unsafe_global_rkey;
	end->buf = page_address(live_pages(test, get_order(LIVE_BYTES)));
	end->addr = ib_dma_map_single(end->dev, end->buf, LIVE_BYTES,
				      DMA_BIDIRECTIONAL);
	end->scq = setup->comp ? live_plain_cq(test, end, setup) :
				 live_cq(test, end->dev, 2 * wr, ctx);
	end->rcq = setup->comp ? live_plain_cq(test, end, setup) :
				 live_cq(test, end->dev, 2 * wr, ctx);
	if (setup->srq && n)
		open_srq(test, end, wr);
	init.send_cq = end->scq;
	init.recv_cq = end->rcq;
	init.srq = end->srq;
	end->qp = live_qp(test, end->pd, &init);
}

void live_ah_attr(const struct live_end *from, const struct live_end *to,
		  struct rdma_ah_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(attr, 1);
	rdma_ah_set_grh(attr, NULL, 0, from->gid_index, 64, 0);
	rdma_ah_set_dgid_raw(attr, (void *)to->gid.raw);
	memcpy(attr->roce.dmac, to->dmac, ETH_ALEN);
}

int live_init(struct live_end *end)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qkey = LIVE_QKEY,
		.qp_access_flags = LIVE_ALL,
	};
	int mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT;

	if (end->qp->qp_type == IB_QPT_UD || end->qp->qp_type == IB_QPT_GSI)
		mask |= IB_QP_QKEY;
	else
		mask |= IB_QP_ACCESS_FLAGS;
	if (end->qp->qp_type == IB_QPT_GSI)
		mask &= ~IB_QP_PORT;
	return ib_modify_qp(end->qp, &attr, mask);
}

int live_rtr(const struct live_pair *pair, int n)
{
	const struct live_end *end = &pair->end[n], *peer = &pair->end[!n];
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = 0x100 + !n,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
	};
	int mask = IB_QP_STATE;

	if (end->qp->qp_type == IB_QPT_UD)
		return ib_modify_qp(end->qp, &attr, mask);
	live_ah_attr(end, peer, &attr.ah_attr);
	mask |= IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN;
	if (end->qp->qp_type == IB_QPT_RC)
		mask |= IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	return ib_modify_qp(end->qp, &attr, mask);
}

int live_rts(const struct live_pair *pair, int n)
{
	const struct live_end *end = &pair->end[n];
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.sq_psn = 0x100 + n,
		.timeout = 15,
		.retry_cnt = 7,
		.rnr_retry = pair->rnr_retry ? pair->rnr_retry - 1 : 7,
		.max_rd_atomic = 16,
	};
	int mask = IB_QP_STATE | IB_QP_SQ_PSN;

	if (end->qp->qp_type == IB_QPT_RC)
		mask |= IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			IB_QP_MAX_QP_RD_ATOMIC;
	return ib_modify_qp(end->qp, &attr, mask);
}

void live_connect(struct kunit *test, struct live_pair *pair)
{
	KUNIT_ASSERT_EQ(test, live_init(&pair->end[0]), 0);
	KUNIT_ASSERT_EQ(test, live_init(&pair->end[1]), 0);
	KUNIT_ASSERT_EQ(test, live_rtr(pair, 0), 0);
	KUNIT_ASSERT_EQ(test, live_rtr(pair, 1), 0);
	KUNIT_ASSERT_EQ(test, live_rts(pair, 0), 0);
	KUNIT_ASSERT_EQ(test, live_rts(pair, 1), 0);
}

struct live_pair *live_pair(struct kunit *test, const struct live_setup *setup)
{
	static const struct live_setup plain;
	struct live_pair *pair = live_mem(test, sizeof(*pair));

	if (!setup)
		setup = &plain;
	pair->rnr_retry = setup->rnr_retry;
	live_end_open(test, &pair->end[0], 0, setup);
	live_end_open(test, &pair->end[1], 1, setup);
	live_connect(test, pair);
	return pair;
}

int live_state(struct ib_qp *qp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return ib_modify_qp(qp, &attr, IB_QP_STATE);
}

enum ib_qp_state live_query_state(struct kunit *test, struct ib_qp *qp)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	KUNIT_ASSERT_EQ(test, ib_query_qp(qp, &attr, IB_QP_STATE, &init), 0);
	return attr.qp_state;
}

/* After an error: nothing is left of what went before. */
void live_again(struct kunit *test, struct live_pair *pair)
{
	struct ib_wc wc;
	int i;

	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, live_state(pair->end[i].qp,
						 IB_QPS_RESET), 0);
	for (i = 0; i < 2; i++) {
		while (ib_poll_cq(pair->end[i].scq, 1, &wc) > 0)
			;
		while (ib_poll_cq(pair->end[i].rcq, 1, &wc) > 0)
			;
	}
	live_connect(test, pair);
}

void live_wait_event(struct kunit *test, struct live_end *end,
		     enum ib_event_type type)
{
	unsigned long limit = jiffies + LIVE_WAIT;

	while (!atomic_read(&end->events.count[type]) &&
	       time_before(jiffies, limit))
		usleep_range(100, 200);
	KUNIT_EXPECT_EQ_MSG(test, atomic_read(&end->events.count[type]), 1,
			    "event %d", type);
}

/* Work */

bool live_poll(struct ib_cq *cq, struct ib_wc *wc)
{
	unsigned long limit = jiffies + LIVE_WAIT;
	int got;

	do {
		got = ib_poll_cq(cq, 1, wc);
		if (got)
			return got == 1;
		usleep_range(50, 100);
	} while (time_before(jiffies, limit));
	return false;
}

struct ib_wc live_wc(struct kunit *test, struct ib_cq *cq)
{
	struct ib_wc wc = {};

	KUNIT_ASSERT_TRUE(test, live_poll(cq, &wc));
	return wc;
}

/* Nothing is there that nobody waits for. */
void live_quiet(struct kunit *test, struct ib_cq *cq)
{
	struct ib_wc wc;

	KUNIT_EXPECT_EQ(test, ib_poll_cq(cq, 1, &wc), 0);
}

int live_recv(struct kunit *test, struct live_end *end, u64 addr, u32 len, u32 lkey,
	      u64 id)
{
	struct ib_sge sge = { .addr = addr, .length = len, .lkey = lkey };
	struct ib_recv_wr wr = {
		.wr_id = id,
		.sg_list = &sge,
		.num_sge = 1,
	};

	if (end->srq)
		return ib_post_srq_recv(end->srq, &wr, NULL);
	return ib_post_recv(end->qp, &wr, NULL);
}

enum ib_wc_status live_run(struct kunit *test, struct live_end *end,
			   struct ib_send_wr *wr)
{
	struct ib_wc wc;

	wr->send_flags |= IB_SEND_SIGNALED;
	KUNIT_ASSERT_EQ(test, ib_post_send(end->qp, wr, NULL), 0);
	wc = live_wc(test, end->scq);
	KUNIT_EXPECT_EQ(test, wc.wr_id, wr->wr_id);
	KUNIT_EXPECT_PTR_EQ(test, wc.qp, end->qp);
	return wc.status;
}

enum ib_wc_status live_rdma(struct kunit *test, struct live_end *end,
			    enum ib_wr_opcode op, struct ib_sge sge, u64 raddr,
			    u32 rkey)
{
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_id = 0x1000 + op,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = op,
		},
		.remote_addr = raddr,
		.rkey = rkey,
	};

	return live_run(test, end, &wr.wr);
}

enum ib_wc_status live_atomic(struct kunit *test, struct live_end *end,
			      struct ib_sge sge, u64 raddr, u32 rkey, u64 add)
{
	struct ib_atomic_wr wr = {
		.wr = {
			.wr_id = 0x2000,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IB_WR_ATOMIC_FETCH_AND_ADD,
		},
		.remote_addr = raddr,
		.rkey = rkey,
		.compare_add = add,
	};

	return live_run(test, end, &wr.wr);
}

enum ib_wc_status live_send(struct kunit *test, struct live_end *end,
			    struct ib_sge sge, u32 inv)
{
	struct ib_send_wr wr = {
		.wr_id = 0x3000,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = inv ? IB_WR_SEND_WITH_INV : IB_WR_SEND,
		.ex.invalidate_rkey = inv,
	};

	return live_run(test, end, &wr);
}

enum ib_wc_status live_reg(struct kunit *test, struct live_end *end,
			   struct ib_mr *mr, u32 key, int access)
{
	struct ib_reg_wr wr = {
		.wr = { .wr_id = 0x4000, .opcode = IB_WR_REG_MR },
		.mr = mr,
		.key = key,
		.access = access,
	};

	return live_run(test, end, &wr.wr);
}

enum ib_wc_status live_inv(struct kunit *test, struct live_end *end, u32 key)
{
	struct ib_send_wr wr = {
		.wr_id = 0x5000,
		.opcode = IB_WR_LOCAL_INV,
		.ex.invalidate_rkey = key,
	};

	return live_run(test, end, &wr);
}
