// SPDX-License-Identifier: GPL-2.0
/*
 * qp_live.c - QPs, SRQs, AHs and groups on live devices
 *
 * Spec: IBA Vol 1, 10.2.4, 10.2.5, 10.2.9 (QPs, AHs, SRQs), 10.3.1 (states),
 *	 10.5 (multicast), 11.4.1 (posting)
 */
#include <linux/delay.h>

#include "live.h"

/* Posting */

static void qp_post_list(struct kunit *test)
{
	struct live_setup setup = { .sge = 2 };
	struct live_pair *pair = live_pair(test, &setup);
	struct live_end *end = &pair->end[0], *peer = &pair->end[1];
	struct ib_sge sge = live_sge(end, 0, 8);
	const struct ib_send_wr *bad_send = NULL;
	const struct ib_recv_wr *bad_recv = NULL;
	struct ib_rdma_wr wr[4];
	struct ib_recv_wr recv[4];
	struct ib_sge many[64];
	int i;

	for (i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = live_sge(end, 0, 0);
	for (i = 0; i < 4; i++) {
		wr[i] = (struct ib_rdma_wr){
			.wr = {
				.next = i < 3 ? &wr[i + 1].wr : NULL,
				.wr_id = i, .sg_list = &sge, .num_sge = 1,
				.opcode = IB_WR_RDMA_WRITE,
				.send_flags = IB_SEND_SIGNALED,
			},
			.remote_addr = peer->addr, .rkey = peer->rkey,
		};
		recv[i] = (struct ib_recv_wr){
			.next = i < 3 ? &recv[i + 1] : NULL, .wr_id = i,
			.sg_list = many, .num_sge = i == 2 ? 33 : 0,
		};
	}
	/* the third: nobody knows it */
	wr[2].wr.opcode = IB_WR_RESERVED1;
	KUNIT_EXPECT_EQ(test, ib_post_send(end->qp, &wr[0].wr, &bad_send), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, bad_send, &wr[2].wr);
	KUNIT_EXPECT_EQ(test, live_wc(test, end->scq).wr_id, 0);
	KUNIT_EXPECT_EQ(test, live_wc(test, end->scq).wr_id, 1);
	live_quiet(test, end->scq);
	/* too many entries */
	wr[2].wr.opcode = IB_WR_RDMA_WRITE;
	wr[2].wr.sg_list = many;
	wr[2].wr.num_sge = 33;
	KUNIT_EXPECT_EQ(test, ib_post_send(end->qp, &wr[0].wr, &bad_send), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, bad_send, &wr[2].wr);
	KUNIT_EXPECT_EQ(test, live_wc(test, end->scq).wr_id, 0);
	KUNIT_EXPECT_EQ(test, live_wc(test, end->scq).wr_id, 1);
	live_quiet(test, end->scq);
	/* receives */
	KUNIT_EXPECT_EQ(test, ib_post_recv(end->qp, recv, &bad_recv), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, bad_recv, &recv[2]);
	KUNIT_EXPECT_EQ(test, live_state(end->qp, IB_QPS_ERR), 0);
	KUNIT_EXPECT_EQ(test, live_wc(test, end->rcq).wr_id, 0);
	KUNIT_EXPECT_EQ(test, live_wc(test, end->rcq).wr_id, 1);
	msleep(20);
	live_quiet(test, end->rcq);
}

/* No room: -ENOMEM, and what was posted is posted. */
static void qp_full(struct kunit *test)
{
	struct live_setup setup = { .wr = 8 };
	struct live_pair *pair = live_pair(test, &setup);
	struct live_end *end = &pair->end[0];
	struct ib_qp_init_attr init;
	struct ib_recv_wr recv = {};
	struct ib_send_wr send = { .opcode = IB_WR_SEND };
	struct ib_qp_attr attr;
	int i;

	KUNIT_ASSERT_EQ(test, ib_query_qp(end->qp, &attr, IB_QP_CAP, &init), 0);
	for (i = 0; i < attr.cap.max_recv_wr; i++)
		KUNIT_ASSERT_EQ(test, ib_post_recv(end->qp, &recv, NULL), 0);
	KUNIT_EXPECT_EQ(test, ib_post_recv(end->qp, &recv, NULL), -ENOMEM);
	/* nobody receives: they wait */
	for (i = 0; i < attr.cap.max_send_wr; i++)
		KUNIT_ASSERT_EQ(test, ib_post_send(end->qp, &send, NULL), 0);
	KUNIT_EXPECT_EQ(test, ib_post_send(end->qp, &send, NULL), -ENOMEM);
}

struct op_row {
	enum ib_qp_type type;
	enum ib_wr_opcode op;
	int err;
};

/* IBA table 37: which operation a service has. */
static const struct op_row op_rows[] = {
	{ IB_QPT_RC, IB_WR_SEND, 0 },
	{ IB_QPT_RC, IB_WR_SEND_WITH_IMM, 0 },
	{ IB_QPT_RC, IB_WR_RDMA_WRITE, 0 },
	{ IB_QPT_RC, IB_WR_RDMA_WRITE_WITH_IMM, 0 },
	{ IB_QPT_RC, IB_WR_RDMA_READ, 0 },
	{ IB_QPT_RC, IB_WR_ATOMIC_CMP_AND_SWP, 0 },
	{ IB_QPT_RC, IB_WR_ATOMIC_FETCH_AND_ADD, 0 },
	{ IB_QPT_RC, IB_WR_LSO, -EINVAL },
	{ IB_QPT_RC, IB_WR_RDMA_READ_WITH_INV, -EINVAL },
	{ IB_QPT_RC, IB_WR_MASKED_ATOMIC_CMP_AND_SWP, -EINVAL },
	{ IB_QPT_RC, IB_WR_REG_MR_INTEGRITY, -EINVAL },
	{ IB_QPT_UC, IB_WR_SEND, 0 },
	{ IB_QPT_UC, IB_WR_SEND_WITH_IMM, 0 },
	{ IB_QPT_UC, IB_WR_RDMA_WRITE, 0 },
	{ IB_QPT_UC, IB_WR_RDMA_WRITE_WITH_IMM, 0 },
	{ IB_QPT_UC, IB_WR_RDMA_READ, -EINVAL },
	{ IB_QPT_UC, IB_WR_ATOMIC_CMP_AND_SWP, -EINVAL },
	{ IB_QPT_UC, IB_WR_ATOMIC_FETCH_AND_ADD, -EINVAL },
	{ IB_QPT_UC, IB_WR_SEND_WITH_INV, -EINVAL },
	{ IB_QPT_UD, IB_WR_SEND, 0 },
	{ IB_QPT_UD, IB_WR_SEND_WITH_IMM, 0 },
	{ IB_QPT_UD, IB_WR_RDMA_WRITE, -EINVAL },
	{ IB_QPT_UD, IB_WR_RDMA_READ, -EINVAL },
	{ IB_QPT_UD, IB_WR_ATOMIC_FETCH_AND_ADD, -EINVAL },
	{ IB_QPT_UD, IB_WR_REG_MR, -EINVAL },
	{ IB_QPT_UD, IB_WR_LOCAL_INV, -EINVAL },
};

union any_wr {
	struct ib_send_wr wr;
	struct ib_rdma_wr rdma;
	struct ib_atomic_wr atomic;
	struct ib_ud_wr ud;
	struct ib_reg_wr reg;
};

/* The first page of @end's buffer, with all rights: the PD's rkey has no atomics. */
static u32 all_rights(struct kunit *test, struct live_end *end)
{
	struct ib_mr *mr = live_mr(test, end->pd, IB_MR_TYPE_MEM_REG, 1);
	struct scatterlist sg;

	sg_init_one(&sg, end->buf, PAGE_SIZE);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(end->dev, &sg, 1, DMA_BIDIRECTIONAL), 1);
	KUNIT_ASSERT_EQ(test, ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE), 1);
	KUNIT_ASSERT_EQ(test, live_reg(test, end, mr, mr->rkey, LIVE_ALL),
			IB_WC_SUCCESS);
	return mr->rkey;
}

static void try_op(struct kunit *test, struct live_pair *pair, struct ib_ah *ah,
		   const struct op_row *row, u32 rkey)
{
	struct live_end *end = &pair->end[0], *peer = &pair->end[1];
	struct ib_sge sge = live_sge(end, 0, 8);
	union any_wr wr = {
		.wr = {
			.wr_id = 0x77, .sg_list = &sge, .num_sge = 1,
			.opcode = row->op, .send_flags = IB_SEND_SIGNALED,
			.ex.imm_data = cpu_to_be32(0xabcd),
		},
	};
	struct ib_wc wc;
	int err;

	if (row->type == IB_QPT_UD) {
		wr.ud.ah = ah;
		wr.ud.remote_qpn = peer->qp->qp_num;
		wr.ud.remote_qkey = LIVE_QKEY;
	} else if (row->op == IB_WR_ATOMIC_CMP_AND_SWP ||
		   row->op == IB_WR_ATOMIC_FETCH_AND_ADD) {
		wr.atomic.remote_addr = peer->addr;
		wr.atomic.rkey = rkey;
	} else {
		wr.rdma.remote_addr = peer->addr;
		wr.rdma.rkey = peer->rkey;
	}
	if (!row->err)
		KUNIT_ASSERT_EQ(test, live_recv(test, peer, peer->addr, 256, peer->lkey,
						1), 0);
	err = ib_post_send(end->qp, &wr.wr, NULL);
	KUNIT_EXPECT_EQ_MSG(test, err, row->err, "type %d, opcode %d", row->type,
			    row->op);
	if (err)
		return;
	wc = live_wc(test, end->scq);
	KUNIT_EXPECT_EQ_MSG(test, wc.status, IB_WC_SUCCESS, "type %d, opcode %d",
			    row->type, row->op);
	if (row->op != IB_WR_SEND_WITH_IMM && row->op != IB_WR_RDMA_WRITE_WITH_IMM)
		return;
	do
		wc = live_wc(test, peer->rcq);
	while (!(wc.wc_flags & IB_WC_WITH_IMM));
	KUNIT_EXPECT_EQ(test, be32_to_cpu(wc.ex.imm_data), 0xabcd);
	KUNIT_EXPECT_EQ(test, wc.byte_len, row->type == IB_QPT_UD ? 48 : 8);
	KUNIT_EXPECT_EQ(test, wc.opcode, row->op == IB_WR_SEND_WITH_IMM ?
			IB_WC_RECV : IB_WC_RECV_RDMA_WITH_IMM);
}

static void destroy_ah(void *ah)
{
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
}

static struct ib_ah *make_ah(struct kunit *test, struct live_end *from,
			     struct live_end *to)
{
	struct rdma_ah_attr attr;
	struct ib_ah *ah;

	live_ah_attr(from, to, &attr);
	ah = rdma_create_ah(from->pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ah);
	kunit_add_action_or_reset(test, destroy_ah, ah);
	return ah;
}

static void qp_opcodes(struct kunit *test)
{
	static const enum ib_qp_type types[] = { IB_QPT_RC, IB_QPT_UC, IB_QPT_UD };
	u32 rkey = 0;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		struct live_setup setup = { .type = types[i] };
		struct live_pair *pair = live_pair(test, &setup);
		struct ib_ah *ah = make_ah(test, &pair->end[0], &pair->end[1]);

		if (types[i] == IB_QPT_RC)
			rkey = all_rights(test, &pair->end[1]);
		for (j = 0; j < ARRAY_SIZE(op_rows); j++)
			if (op_rows[j].type == types[i])
				try_op(test, pair, ah, &op_rows[j], rkey);
	}
}

/* Inline: read now, without a key, up to what was given. */
static void qp_inline(struct kunit *test)
{
	struct live_setup setup = { .inline_bytes = 100 };
	struct live_pair *pair = live_pair(test, &setup);
	struct live_end *end = &pair->end[0], *peer = &pair->end[1];
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	u8 *data = live_mem(test, SZ_4K);
	struct ib_sge sge = { .addr = (uintptr_t)data, .lkey = 0xdead };
	struct ib_rdma_wr wr = {
		.wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED | IB_SEND_INLINE,
		},
		.remote_addr = peer->addr, .rkey = peer->rkey,
	};

	KUNIT_ASSERT_EQ(test, ib_query_qp(end->qp, &attr, IB_QP_CAP, &init), 0);
	KUNIT_EXPECT_GE(test, attr.cap.max_inline_data, 100);
	live_fill(data, SZ_4K, 8);
	sge.length = attr.cap.max_inline_data;
	KUNIT_ASSERT_EQ(test, ib_post_send(end->qp, &wr.wr, NULL), 0);
	memset(data, 0, SZ_4K);
	KUNIT_EXPECT_EQ(test, live_wc(test, end->scq).status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_filled(peer->buf, sge.length, 8), sge.length);
	sge.length++;
	KUNIT_EXPECT_EQ(test, ib_post_send(end->qp, &wr.wr, NULL), -EINVAL);
}

/* Types and limits */

static struct ib_qp *try_qp(struct live_end *end, enum ib_qp_type type, u32 send_wr,
			    u32 recv_wr, u32 sge)
{
	struct ib_qp_init_attr init = {
		.send_cq = end->scq, .recv_cq = end->rcq, .port_num = 1,
		.cap = { .max_send_wr = send_wr, .max_recv_wr = recv_wr,
			 .max_send_sge = sge, .max_recv_sge = sge },
		.qp_type = type,
	};
	struct ib_qp *qp = ib_create_qp(end->pd, &init);

	if (!IS_ERR(qp) && (init.cap.max_send_wr < send_wr ||
			    init.cap.max_recv_wr < recv_wr ||
			    init.cap.max_send_sge < sge ||
			    init.cap.max_recv_sge < sge)) {
		ib_destroy_qp(qp);
		return ERR_PTR(-ERANGE);
	}
	return qp;
}

static int qp_err(struct live_end *end, enum ib_qp_type type, u32 send_wr,
		  u32 recv_wr, u32 sge)
{
	struct ib_qp *qp = try_qp(end, type, send_wr, recv_wr, sge);

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	return ib_destroy_qp(qp);
}

static void qp_types(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *end = &pair->end[0];

	KUNIT_EXPECT_EQ(test, qp_err(end, IB_QPT_RC, 1, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, qp_err(end, IB_QPT_UC, 1, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, qp_err(end, IB_QPT_UD, 1, 1, 1), 0);
	/* the core's MAD layer has the only one */
	KUNIT_EXPECT_EQ(test, qp_err(end, IB_QPT_GSI, 1, 1, 1), -EBUSY);
	/* no SMI on Ethernet */
	KUNIT_EXPECT_EQ(test, qp_err(end, IB_QPT_SMI, 1, 1, 1), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, qp_err(end, IB_QPT_RAW_PACKET, 1, 1, 1), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, qp_err(end, IB_QPT_XRC_INI, 1, 0, 1), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, qp_err(end, IB_QPT_DRIVER, 1, 1, 1), -EOPNOTSUPP);
}

static void qp_caps(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *end = &pair->end[0];
	u32 wr = end->dev->attrs.max_qp_wr, sge = end->dev->attrs.max_send_sge;

	KUNIT_EXPECT_EQ(test, qp_err(end, IB_QPT_RC, wr, wr, sge), 0);
	KUNIT_EXPECT_EQ(test, qp_err(end, IB_QPT_UD, wr, wr, sge), 0);
	KUNIT_EXPECT_EQ(test, qp_err(end, IB_QPT_RC, wr + 1, 1, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, qp_err(end, IB_QPT_RC, 1, wr + 1, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, qp_err(end, IB_QPT_RC, 1, 1, sge + 1), -EINVAL);
}

/* Without XRC no handle of a QP can be shared, and a QP is not such a handle. */
static void qp_open(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct ib_qp_open_attr open = {
		.qp_num = pair->end[0].qp->qp_num,
		.qp_type = IB_QPT_RC,
	};

	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_open_qp(NULL, &open)), -EINVAL);
	KUNIT_EXPECT_EQ(test, ib_close_qp(pair->end[0].qp), -EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_alloc_xrcd_user(live_dev(0), NULL, NULL)),
			-EOPNOTSUPP);
}

/* States */

static void expect_state(struct kunit *test, struct ib_qp *qp,
			 enum ib_qp_state state)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	KUNIT_ASSERT_EQ(test, ib_query_qp(qp, &attr, IB_QP_STATE, &init), 0);
	KUNIT_EXPECT_EQ(test, attr.qp_state, state);
	KUNIT_EXPECT_EQ(test, attr.cur_qp_state, state);
}

static void qp_states(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *end = &pair->end[0], *peer = &pair->end[1];
	struct ib_qp_attr sqd = { .qp_state = IB_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ib_send_wr send = { .opcode = IB_WR_SEND, .wr_id = 1,
				   .send_flags = IB_SEND_SIGNALED };
	struct ib_recv_wr recv = { .wr_id = 2 };
	int i;

	KUNIT_EXPECT_EQ(test, live_state(end->qp, IB_QPS_RESET), 0);
	expect_state(test, end->qp, IB_QPS_RESET);
	KUNIT_EXPECT_EQ(test, ib_post_send(end->qp, &send, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, ib_post_recv(end->qp, &recv, NULL), -EINVAL);
	/* not in one step */
	KUNIT_EXPECT_EQ(test, live_state(end->qp, IB_QPS_RTS), -EINVAL);
	KUNIT_EXPECT_EQ(test, live_rtr(pair, 0), -EINVAL);
	expect_state(test, end->qp, IB_QPS_RESET);
	KUNIT_EXPECT_EQ(test, live_init(end), 0);
	expect_state(test, end->qp, IB_QPS_INIT);
	KUNIT_EXPECT_EQ(test, ib_post_send(end->qp, &send, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, ib_post_recv(end->qp, &recv, NULL), 0);
	KUNIT_EXPECT_EQ(test, live_rtr(pair, 0), 0);
	expect_state(test, end->qp, IB_QPS_RTR);
	KUNIT_EXPECT_EQ(test, ib_post_send(end->qp, &send, NULL), -EINVAL);
	live_again(test, pair);
	expect_state(test, end->qp, IB_QPS_RTS);
	/* SQD: told when the queue is empty; what is posted then waits */
	KUNIT_EXPECT_EQ(test, ib_modify_qp(end->qp, &sqd, IB_QP_STATE |
					   IB_QP_EN_SQD_ASYNC_NOTIFY), 0);
	live_wait_event(test, end, IB_EVENT_SQ_DRAINED);
	expect_state(test, end->qp, IB_QPS_SQD);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, ib_post_recv(peer->qp, &recv, NULL), 0);
	KUNIT_EXPECT_EQ(test, ib_post_send(end->qp, &send, NULL), 0);
	msleep(20);
	live_quiet(test, end->scq);
	KUNIT_EXPECT_EQ(test, live_state(end->qp, IB_QPS_RTS), 0);
	KUNIT_EXPECT_EQ(test, live_wc(test, end->scq).status, IB_WC_SUCCESS);
	expect_state(test, end->qp, IB_QPS_RTS);
	/* ERR: all that is there is flushed, and all that comes, once and in order */
	for (i = 0; i < 3; i++) {
		recv.wr_id = 10 + i;
		KUNIT_EXPECT_EQ(test, ib_post_recv(end->qp, &recv, NULL), 0);
	}
	KUNIT_EXPECT_EQ(test, live_state(end->qp, IB_QPS_ERR), 0);
	expect_state(test, end->qp, IB_QPS_ERR);
	for (i = 0; i < 3; i++) {
		struct ib_wc wc = live_wc(test, end->rcq);

		KUNIT_EXPECT_EQ(test, wc.status, IB_WC_WR_FLUSH_ERR);
		KUNIT_EXPECT_EQ(test, wc.wr_id, 10 + i);
	}
	KUNIT_EXPECT_EQ(test, ib_post_send(end->qp, &send, NULL), 0);
	KUNIT_EXPECT_EQ(test, live_wc(test, end->scq).status, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, ib_post_recv(end->qp, &recv, NULL), 0);
	KUNIT_EXPECT_EQ(test, live_wc(test, end->rcq).status, IB_WC_WR_FLUSH_ERR);
	live_quiet(test, end->scq);
	live_quiet(test, end->rcq);
	KUNIT_EXPECT_EQ(test, live_state(end->qp, IB_QPS_RTS), -EINVAL);
	KUNIT_EXPECT_EQ(test, live_state(end->qp, IB_QPS_RESET), 0);
	expect_state(test, end->qp, IB_QPS_RESET);
}

static void qp_query(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *end = &pair->end[0], *peer = &pair->end[1];
	const struct ib_global_route *grh;
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	KUNIT_ASSERT_EQ(test, ib_query_qp(end->qp, &attr, 0, &init), 0);
	KUNIT_EXPECT_EQ(test, attr.path_mtu, IB_MTU_1024);
	KUNIT_EXPECT_EQ(test, attr.dest_qp_num, peer->qp->qp_num);
	KUNIT_EXPECT_EQ(test, attr.rq_psn, 0x101);
	KUNIT_EXPECT_EQ(test, attr.sq_psn, 0x100);
	KUNIT_EXPECT_EQ(test, attr.qp_access_flags, LIVE_ALL);
	KUNIT_EXPECT_EQ(test, attr.port_num, 1);
	KUNIT_EXPECT_EQ(test, attr.pkey_index, 0);
	KUNIT_EXPECT_EQ(test, attr.timeout, 15);
	KUNIT_EXPECT_EQ(test, attr.retry_cnt, 7);
	KUNIT_EXPECT_EQ(test, attr.rnr_retry, 7);
	KUNIT_EXPECT_EQ(test, attr.min_rnr_timer, 1);
	KUNIT_EXPECT_EQ(test, attr.max_rd_atomic, 16);
	KUNIT_EXPECT_EQ(test, attr.max_dest_rd_atomic, 16);
	KUNIT_EXPECT_EQ(test, attr.sq_draining, 0);
	KUNIT_EXPECT_EQ(test, attr.ah_attr.type, RDMA_AH_ATTR_TYPE_ROCE);
	grh = rdma_ah_read_grh(&attr.ah_attr);
	KUNIT_EXPECT_MEMEQ(test, grh->dgid.raw, peer->gid.raw, sizeof(grh->dgid));
	KUNIT_EXPECT_EQ(test, grh->sgid_index, end->gid_index);
	KUNIT_EXPECT_EQ(test, grh->hop_limit, 64);
	KUNIT_EXPECT_MEMEQ(test, attr.ah_attr.roce.dmac, peer->dmac, ETH_ALEN);
	KUNIT_EXPECT_PTR_EQ(test, init.send_cq, end->scq);
	KUNIT_EXPECT_PTR_EQ(test, init.recv_cq, end->rcq);
	KUNIT_EXPECT_EQ(test, init.qp_type, IB_QPT_RC);
	KUNIT_EXPECT_EQ(test, init.sq_sig_type, IB_SIGNAL_REQ_WR);
	KUNIT_EXPECT_GE(test, init.cap.max_send_wr, 64);
	KUNIT_EXPECT_GE(test, init.cap.max_recv_sge, 4);
}

/* Shared receive queues */

static struct ib_srq *make_srq(struct kunit *test, struct live_end *end, u32 wr,
			       u32 sge)
{
	struct ib_srq_init_attr init = {
		.attr = { .max_wr = wr, .max_sge = sge },
		.srq_type = IB_SRQT_BASIC,
	};

	return live_srq(test, end->pd, &init);
}

static void srq_post_list(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct ib_srq *srq = make_srq(test, &pair->end[1], 4, 2);
	const struct ib_recv_wr *bad = NULL;
	struct ib_recv_wr wr[4] = {};
	struct ib_srq_attr attr;
	struct ib_sge many[64] = {};
	u32 i;

	KUNIT_ASSERT_EQ(test, ib_query_srq(srq, &attr), 0);
	for (i = 0; i < 4; i++) {
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
		wr[i].sg_list = many;
		wr[i].num_sge = i == 2 ? attr.max_sge + 1 : 1;
	}
	KUNIT_EXPECT_EQ(test, ib_post_srq_recv(srq, wr, &bad), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, bad, &wr[2]);
	/* two are posted: so many are left */
	for (i = 2; i < attr.max_wr; i++)
		KUNIT_EXPECT_EQ(test, ib_post_srq_recv(srq, &wr[3], NULL), 0);
	KUNIT_EXPECT_EQ(test, ib_post_srq_recv(srq, &wr[3], &bad), -ENOMEM);
	KUNIT_EXPECT_PTR_EQ(test, bad, &wr[3]);
}

static void srq_limit(struct kunit *test)
{
	struct live_setup setup = { .srq = true, .wr = 15 };
	struct live_pair *pair = live_pair(test, &setup);
	struct live_end *end = &pair->end[0], *own = &pair->end[1];
	struct ib_srq_attr attr;
	int i;

	KUNIT_ASSERT_EQ(test, ib_query_srq(own->srq, &attr), 0);
	KUNIT_EXPECT_GE(test, attr.max_wr, 15);
	KUNIT_EXPECT_GE(test, attr.max_sge, 4);
	KUNIT_EXPECT_EQ(test, attr.srq_limit, 0);
	for (i = 0; i < 6; i++)
		KUNIT_EXPECT_EQ(test, live_recv(test, own, own->addr, 64, own->lkey, i),
				0);
	attr.srq_limit = attr.max_wr + 1;
	KUNIT_EXPECT_EQ(test, ib_modify_srq(own->srq, &attr, IB_SRQ_LIMIT), -EINVAL);
	attr.srq_limit = 4;
	KUNIT_EXPECT_EQ(test, ib_modify_srq(own->srq, &attr, IB_SRQ_LIMIT), 0);
	KUNIT_EXPECT_EQ(test, ib_query_srq(own->srq, &attr), 0);
	KUNIT_EXPECT_EQ(test, attr.srq_limit, 4);
	/* 5 and 4 are left: not fewer than 4 */
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, live_send(test, end, live_sge(end, 0, 8), 0),
				IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, live_wc(test, own->rcq).wr_id, i);
	}
	msleep(20);
	KUNIT_EXPECT_EQ(test, atomic_read(&own->events.count[IB_EVENT_SRQ_LIMIT_REACHED]),
			0);
	for (; i < 6; i++) {
		KUNIT_EXPECT_EQ(test, live_send(test, end, live_sge(end, 0, 8), 0),
				IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, live_wc(test, own->rcq).wr_id, i);
	}
	/* once */
	live_wait_event(test, own, IB_EVENT_SRQ_LIMIT_REACHED);
	KUNIT_EXPECT_EQ(test, ib_query_srq(own->srq, &attr), 0);
	KUNIT_EXPECT_EQ(test, attr.srq_limit, 0);
}

static void srq_resize(struct kunit *test)
{
	struct live_setup setup = { .srq = true, .wr = 7 };
	struct live_pair *pair = live_pair(test, &setup);
	struct live_end *end = &pair->end[0], *own = &pair->end[1];
	struct ib_srq_attr attr = { .max_wr = 60 };
	int i;

	for (i = 0; i < 6; i++)
		KUNIT_EXPECT_EQ(test, live_recv(test, own, own->addr, 64, own->lkey, i),
				0);
	KUNIT_EXPECT_EQ(test, ib_modify_srq(own->srq, &attr, IB_SRQ_MAX_WR), 0);
	KUNIT_EXPECT_EQ(test, ib_query_srq(own->srq, &attr), 0);
	KUNIT_EXPECT_GE(test, attr.max_wr, 60);
	for (; i < 40; i++)
		KUNIT_EXPECT_EQ(test, live_recv(test, own, own->addr, 64, own->lkey, i),
				0);
	/* fewer than are queued */
	attr.max_wr = 20;
	KUNIT_EXPECT_EQ(test, ib_modify_srq(own->srq, &attr, IB_SRQ_MAX_WR), -EINVAL);
	for (i = 0; i < 40; i++) {
		KUNIT_EXPECT_EQ(test, live_send(test, end, live_sge(end, 0, 8), 0),
				IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, live_wc(test, own->rcq).wr_id, i);
	}
}

static void srq_destroy_busy(struct kunit *test)
{
	struct live_setup setup = { .srq = true };
	struct live_pair *pair = live_pair(test, &setup);
	struct live_end *own = &pair->end[1];

	KUNIT_EXPECT_EQ(test, ib_destroy_srq_user(own->srq, NULL), -EBUSY);
	/* as it was */
	KUNIT_EXPECT_EQ(test, live_recv(test, own, own->addr, 64, own->lkey, 1), 0);
	KUNIT_EXPECT_EQ(test, live_send(test, &pair->end[0],
					live_sge(&pair->end[0], 0, 8), 0),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_wc(test, own->rcq).status, IB_WC_SUCCESS);
}

static void cq_destroy_busy(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);

	KUNIT_EXPECT_EQ(test, ib_destroy_cq_user(pair->end[0].scq, NULL), -EBUSY);
	KUNIT_EXPECT_EQ(test, live_rdma(test, &pair->end[0], IB_WR_RDMA_WRITE,
					live_sge(&pair->end[0], 0, 8),
					pair->end[1].addr, pair->end[1].rkey),
			IB_WC_SUCCESS);
}

/* Address handles */

static void expect_ah(struct kunit *test, struct ib_ah *ah,
		      const struct rdma_ah_attr *want)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(want), *has;
	struct rdma_ah_attr attr = {};

	KUNIT_ASSERT_EQ(test, rdma_query_ah(ah, &attr), 0);
	has = rdma_ah_read_grh(&attr);
	KUNIT_EXPECT_EQ(test, attr.type, RDMA_AH_ATTR_TYPE_ROCE);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_port_num(&attr), 1);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_sl(&attr), rdma_ah_get_sl(want));
	KUNIT_EXPECT_EQ(test, rdma_ah_get_static_rate(&attr),
			rdma_ah_get_static_rate(want));
	KUNIT_EXPECT_EQ(test, rdma_ah_get_ah_flags(&attr), IB_AH_GRH);
	KUNIT_EXPECT_MEMEQ(test, attr.roce.dmac, want->roce.dmac, ETH_ALEN);
	KUNIT_EXPECT_MEMEQ(test, has->dgid.raw, grh->dgid.raw, 16);
	KUNIT_EXPECT_EQ(test, has->sgid_index, grh->sgid_index);
	KUNIT_EXPECT_EQ(test, has->flow_label, grh->flow_label);
	KUNIT_EXPECT_EQ(test, has->traffic_class, grh->traffic_class);
	KUNIT_EXPECT_EQ(test, has->hop_limit, grh->hop_limit);
}

static void ah_query(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *end = &pair->end[0];
	int users = atomic_read(&end->pd->usecnt);
	struct rdma_ah_attr attr, other;
	unsigned long flags;
	struct ib_ah *ah;
	spinlock_t lock;	/* the consumer's */

	live_ah_attr(end, &pair->end[1], &attr);
	rdma_ah_set_grh(&attr, NULL, 0xabcde, end->gid_index, 17, 0x48);
	rdma_ah_set_dgid_raw(&attr, pair->end[1].gid.raw);
	rdma_ah_set_sl(&attr, 5);
	rdma_ah_set_static_rate(&attr, IB_RATE_10_GBPS);
	ah = rdma_create_ah(end->pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ah);
	KUNIT_EXPECT_EQ(test, atomic_read(&end->pd->usecnt), users + 1);
	expect_ah(test, ah, &attr);
	/* to another place */
	live_ah_attr(end, end, &other);
	rdma_ah_set_sl(&other, 1);
	KUNIT_EXPECT_EQ(test, rdma_modify_ah(ah, &other), 0);
	expect_ah(test, ah, &other);
	other.type = RDMA_AH_ATTR_TYPE_IB;
	KUNIT_EXPECT_EQ(test, rdma_modify_ah(ah, &other), -EINVAL);
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
	/* where nobody may sleep */
	spin_lock_init(&lock);
	spin_lock_irqsave(&lock, flags);
	ah = rdma_create_ah(end->pd, &attr, 0);
	spin_unlock_irqrestore(&lock, flags);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ah);
	expect_ah(test, ah, &attr);
	spin_lock_irqsave(&lock, flags);
	rdma_destroy_ah(ah, 0);
	spin_unlock_irqrestore(&lock, flags);
	KUNIT_EXPECT_EQ(test, atomic_read(&end->pd->usecnt), users);
	/* RoCE has no address but the GID; and there is one port */
	rdma_ah_set_ah_flags(&attr, 0);
	KUNIT_EXPECT_EQ(test, PTR_ERR(rdma_create_ah(end->pd, &attr, 0)), -EINVAL);
	rdma_ah_set_ah_flags(&attr, IB_AH_GRH);
	rdma_ah_set_port_num(&attr, 2);
	KUNIT_EXPECT_EQ(test, PTR_ERR(rdma_create_ah(end->pd, &attr, 0)), -EINVAL);
}

static void ud_send(struct kunit *test, struct live_end *from, struct ib_ah *ah,
		    u32 qpn, u32 off)
{
	struct ib_sge sge = live_sge(from, off, 64);
	struct ib_ud_wr wr = {
		.wr = { .wr_id = 9, .opcode = IB_WR_SEND, .sg_list = &sge,
			.num_sge = 1 },
		.ah = ah, .remote_qpn = qpn, .remote_qkey = LIVE_QKEY,
	};

	KUNIT_ASSERT_EQ(test, live_run(test, from, &wr.wr), IB_WC_SUCCESS);
}

/* The GIDs and the version that 40 bytes in front of a datagram tell. */
static void expect_header(struct kunit *test, struct live_end *to, u32 off,
			  const struct ib_wc *wc, const union ib_gid *from,
			  const union ib_gid *dest, int version)
{
	union rdma_network_hdr *hdr = (void *)(to->buf + off);
	union ib_gid sgid, dgid;

	KUNIT_EXPECT_TRUE(test, wc->wc_flags & IB_WC_GRH);
	KUNIT_EXPECT_EQ(test, wc->byte_len, 40 + 64);
	KUNIT_EXPECT_EQ(test, ib_get_rdma_header_version(hdr), version);
	KUNIT_EXPECT_EQ(test, ib_get_gids_from_rdma_hdr(hdr, version == 4 ?
							RDMA_NETWORK_IPV4 :
							RDMA_NETWORK_IPV6,
							&sgid, &dgid), 0);
	KUNIT_EXPECT_MEMEQ(test, sgid.raw, from->raw, 16);
	KUNIT_EXPECT_MEMEQ(test, dgid.raw, dest->raw, 16);
	if (version != 4)
		return;
	/* IBA A17.4.5.2: the first 20 bytes say nothing; the checksum decides */
	hdr->reserved[0] = 0x60;
	KUNIT_EXPECT_EQ(test, ib_get_rdma_header_version(hdr), 4);
	*(u8 *)&hdr->roce4grh.check ^= 1;
	KUNIT_EXPECT_EQ(test, ib_get_rdma_header_version(hdr), 6);
	*(u8 *)&hdr->roce4grh.check ^= 1;
	hdr->reserved[0] = 0;
}

/* The answer goes where the completion says that the question came from. */
static void ah_from_wc(struct kunit *test)
{
	struct live_setup setup = { .type = IB_QPT_UD };
	struct live_pair *pair = live_pair(test, &setup);
	struct live_end *end = &pair->end[0], *peer = &pair->end[1];
	struct ib_ah *ah = make_ah(test, end, peer);
	struct rdma_ah_attr attr;
	struct ib_wc wc;
	int i;

	for (i = 0; i < 10; i++) {
		KUNIT_ASSERT_EQ(test, live_recv(test, peer, peer->addr, 256, peer->lkey,
						i), 0);
		KUNIT_ASSERT_EQ(test, live_recv(test, end, end->addr + 1024, 256,
						end->lkey, i), 0);
		live_fill(end->buf, 64, i);
		ud_send(test, end, ah, peer->qp->qp_num, 0);
		wc = live_wc(test, peer->rcq);
		KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, wc.src_qp, end->qp->qp_num);
		KUNIT_EXPECT_EQ(test, live_filled(peer->buf + 40, 64, i), 64);
		expect_header(test, peer, 0, &wc, &end->gid, &peer->gid, 4);
		KUNIT_ASSERT_EQ(test, ib_init_ah_attr_from_wc(peer->dev, 1, &wc,
							      (void *)peer->buf,
							      &attr), 0);
		KUNIT_EXPECT_MEMEQ(test, rdma_ah_read_grh(&attr)->dgid.raw,
				   end->gid.raw, 16);
		KUNIT_EXPECT_EQ(test, rdma_ah_read_grh(&attr)->sgid_index,
				peer->gid_index);
		rdma_destroy_ah_attr(&attr);
		ah = ib_create_ah_from_wc(peer->pd, &wc, (void *)peer->buf, 1);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ah);
		kunit_add_action_or_reset(test, destroy_ah, ah);
		live_fill(peer->buf + 512, 64, i + 100);
		ud_send(test, peer, ah, wc.src_qp, 512);
		wc = live_wc(test, end->rcq);
		KUNIT_EXPECT_EQ(test, wc.src_qp, peer->qp->qp_num);
		KUNIT_EXPECT_EQ(test, live_filled(end->buf + 1024 + 40, 64, i + 100),
				64);
		expect_header(test, end, 1024, &wc, &peer->gid, &end->gid, 4);
		/* and now back to where that came from */
		ah = ib_create_ah_from_wc(end->pd, &wc, (void *)(end->buf + 1024), 1);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ah);
		kunit_add_action_or_reset(test, destroy_ah, ah);
	}
}

/* To another place, and back: the packets follow. */
static void ah_modify(struct kunit *test)
{
	struct live_setup setup = { .type = IB_QPT_UD };
	struct live_pair *pair = live_pair(test, &setup);
	struct live_end *end = &pair->end[0], *peer = &pair->end[1];
	struct ib_ah *ah = make_ah(test, end, peer);
	struct rdma_ah_attr attr;
	int i;

	for (i = 0; i < 4; i++) {
		struct live_end *to = i & 1 ? end : peer;

		live_ah_attr(end, to, &attr);
		KUNIT_ASSERT_EQ(test, rdma_modify_ah(ah, &attr), 0);
		KUNIT_ASSERT_EQ(test, live_recv(test, to, to->addr + 1024, 256, to->lkey,
						i), 0);
		live_fill(end->buf, 64, i);
		ud_send(test, end, ah, to->qp->qp_num, 0);
		KUNIT_EXPECT_EQ(test, live_wc(test, to->rcq).wr_id, i);
		KUNIT_EXPECT_EQ(test, live_filled(to->buf + 1024 + 40, 64, i), 64);
	}
}

/* The same with IPv6: a GID that is not link-local. */
static bool ipv6_gid(struct live_end *end)
{
	const struct ib_gid_attr *attr;
	bool found = false;
	int i;

	for (i = 0; i < 32 && !found; i++) {
		attr = rdma_get_gid_attr(end->dev, 1, i);
		if (IS_ERR(attr))
			continue;
		found = attr->gid.raw[0] == 0xfd;
		if (found) {
			end->gid = attr->gid;
			end->gid_index = i;
		}
		rdma_put_gid_attr(attr);
	}
	return found;
}

static void ah_header_ipv6(struct kunit *test)
{
	struct live_setup setup = { .type = IB_QPT_UD };
	struct live_pair *pair = live_pair(test, &setup);
	struct live_end *end = &pair->end[0], *peer = &pair->end[1];
	struct rdma_ah_attr attr;
	struct ib_ah *ah;
	struct ib_wc wc;

	KUNIT_ASSERT_TRUE(test, ipv6_gid(end));
	KUNIT_ASSERT_TRUE(test, ipv6_gid(peer));
	live_ah_attr(end, peer, &attr);
	rdma_ah_set_grh(&attr, NULL, 0x12345, end->gid_index, 33, 0x20);
	rdma_ah_set_dgid_raw(&attr, peer->gid.raw);
	ah = rdma_create_ah(end->pd, &attr, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ah);
	kunit_add_action_or_reset(test, destroy_ah, ah);
	KUNIT_ASSERT_EQ(test, live_recv(test, peer, peer->addr, 256, peer->lkey, 1), 0);
	ud_send(test, end, ah, peer->qp->qp_num, 0);
	wc = live_wc(test, peer->rcq);
	expect_header(test, peer, 0, &wc, &end->gid, &peer->gid, 6);
	KUNIT_ASSERT_EQ(test, ib_init_ah_attr_from_wc(peer->dev, 1, &wc,
						      (void *)peer->buf, &attr), 0);
	KUNIT_EXPECT_EQ(test, rdma_ah_read_grh(&attr)->flow_label, 0x12345);
	KUNIT_EXPECT_EQ(test, rdma_ah_read_grh(&attr)->traffic_class, 0x20);
	KUNIT_EXPECT_EQ(test, rdma_ah_read_grh(&attr)->sgid_index, peer->gid_index);
	rdma_destroy_ah_attr(&attr);
}

/* Multicast */

static const union ib_gid group = { .raw = {
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 9, 8, 7 } };

static void mcast(struct kunit *test)
{
	static const u8 mac[ETH_ALEN] = { 0x01, 0x00, 0x5e, 9, 8, 7 };
	struct live_setup setup = { .type = IB_QPT_UD };
	struct live_pair *pair = live_mem(test, sizeof(*pair));
	struct live_end *a = &pair->end[0], *b = &pair->end[1];
	union ib_gid gid = group;
	struct rdma_ah_attr attr;
	struct ib_ah *ah;
	int i;

	/* both on one device: a group does not cross from dummy to dummy */
	live_end_open(test, a, 0, &setup);
	live_end_open(test, b, 0, &setup);
	live_connect(test, pair);
	KUNIT_EXPECT_EQ(test, ib_detach_mcast(a->qp, &gid, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, ib_attach_mcast(a->qp, &a->gid, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, ib_attach_mcast(a->qp, &gid, 0), 0);
	KUNIT_EXPECT_EQ(test, ib_attach_mcast(b->qp, &gid, 0), 0);
	live_ah_attr(a, b, &attr);
	rdma_ah_set_dgid_raw(&attr, gid.raw);
	memcpy(attr.roce.dmac, mac, ETH_ALEN);
	ah = rdma_create_ah(a->pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ah);
	kunit_add_action_or_reset(test, destroy_ah, ah);
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, live_recv(test, a, a->addr + 1024, 256, a->lkey, i),
				0);
		KUNIT_ASSERT_EQ(test, live_recv(test, b, b->addr + 1024, 256, b->lkey, i),
				0);
	}
	live_fill(a->buf, 64, 44);
	ud_send(test, a, ah, 0xffffff, 0);
	KUNIT_EXPECT_EQ(test, live_wc(test, b->rcq).status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_filled(b->buf + 1024 + 40, 64, 44), 64);
	KUNIT_EXPECT_EQ(test, live_wc(test, a->rcq).status, IB_WC_SUCCESS);
	/* a member cannot go */
	KUNIT_EXPECT_EQ(test, ib_destroy_qp(b->qp), -EBUSY);
	KUNIT_EXPECT_EQ(test, ib_detach_mcast(b->qp, &gid, 0), 0);
	KUNIT_EXPECT_EQ(test, ib_detach_mcast(b->qp, &gid, 0), -EINVAL);
	ud_send(test, a, ah, 0xffffff, 0);
	KUNIT_EXPECT_EQ(test, live_wc(test, a->rcq).status, IB_WC_SUCCESS);
	msleep(20);
	live_quiet(test, b->rcq);
	KUNIT_EXPECT_EQ(test, ib_detach_mcast(a->qp, &gid, 0), 0);
}

static void mcast_rc(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	union ib_gid gid = group;

	KUNIT_EXPECT_EQ(test, ib_attach_mcast(pair->end[0].qp, &gid, 0), -EINVAL);
}

static struct kunit_case live_qp_cases[] = {
	KUNIT_CASE(qp_post_list),
	KUNIT_CASE(qp_full),
	KUNIT_CASE(qp_opcodes),
	KUNIT_CASE(qp_inline),
	KUNIT_CASE(qp_types),
	KUNIT_CASE(qp_caps),
	KUNIT_CASE(qp_open),
	KUNIT_CASE(qp_states),
	KUNIT_CASE(qp_query),
	KUNIT_CASE(srq_post_list),
	KUNIT_CASE(srq_limit),
	KUNIT_CASE(srq_resize),
	KUNIT_CASE(srq_destroy_busy),
	KUNIT_CASE(cq_destroy_busy),
	KUNIT_CASE(ah_query),
	KUNIT_CASE(ah_from_wc),
	KUNIT_CASE(ah_modify),
	KUNIT_CASE(ah_header_ipv6),
	KUNIT_CASE(mcast),
	KUNIT_CASE(mcast_rc),
	{}
};

struct kunit_suite live_qp_suite = {
	.name = "qp",
	.suite_init = live_client_register,
	.suite_exit = live_client_unregister,
	.test_cases = live_qp_cases,
};
