// SPDX-License-Identifier: GPL-2.0
/*
 * engine_kunit.c - every operation, between two QPs of one kernel
 *
 * What arrives, and what both sides are told.  What goes wrong is in
 * fault_kunit.c, states, waits and races in flow_kunit.c.
 */
#include "engine_kunit.h"

/* --- SEND and WRITE ------------------------------------------------------- */

#define CASE_LEN	5000

static const struct send_row {
	const char *name;
	enum ib_qp_type type;
	u32 op;
	u32 len;
	int pieces;	/* sges on both sides; 0: none, for no bytes */
	u32 flags;
} send_rows[] = {
	{ "rc send", IB_QPT_RC, IB_WR_SEND, CASE_LEN, 1, 0 },
	{ "rc send 1", IB_QPT_RC, IB_WR_SEND, 1, 1, 0 },
	{ "rc send empty", IB_QPT_RC, IB_WR_SEND, 0, 0, 0 },
	{ "rc send lists", IB_QPT_RC, IB_WR_SEND, CASE_LEN, 4, 0 },
	{ "rc send inline", IB_QPT_RC, IB_WR_SEND, 64, 1, IB_SEND_INLINE },
	{ "rc send inline lists", IB_QPT_RC, IB_WR_SEND, 60, 4,
	  IB_SEND_INLINE },
	{ "rc send imm", IB_QPT_RC, IB_WR_SEND_WITH_IMM, CASE_LEN, 1, 0 },
	{ "rc send imm empty", IB_QPT_RC, IB_WR_SEND_WITH_IMM, 0, 0, 0 },
	{ "rc write", IB_QPT_RC, IB_WR_RDMA_WRITE, CASE_LEN, 1, 0 },
	{ "rc write lists", IB_QPT_RC, IB_WR_RDMA_WRITE, CASE_LEN, 4, 0 },
	{ "rc write inline", IB_QPT_RC, IB_WR_RDMA_WRITE, 33, 1,
	  IB_SEND_INLINE },
	{ "rc write empty", IB_QPT_RC, IB_WR_RDMA_WRITE, 0, 0, 0 },
	{ "rc write imm", IB_QPT_RC, IB_WR_RDMA_WRITE_WITH_IMM, CASE_LEN, 2,
	  0 },
	{ "rc write imm empty", IB_QPT_RC, IB_WR_RDMA_WRITE_WITH_IMM, 0, 0, 0 },
	{ "uc send", IB_QPT_UC, IB_WR_SEND, CASE_LEN, 1, 0 },
	{ "uc send imm lists", IB_QPT_UC, IB_WR_SEND_WITH_IMM, CASE_LEN, 4, 0 },
	{ "uc write", IB_QPT_UC, IB_WR_RDMA_WRITE, CASE_LEN, 1, 0 },
	{ "uc write imm", IB_QPT_UC, IB_WR_RDMA_WRITE_WITH_IMM, CASE_LEN, 1,
	  0 },
};

KUNIT_ARRAY_PARAM_DESC(send, send_rows, name);

/* @pieces unequal parts of @len bytes; those of the two sides differ. */
static int cut(struct ib_sge *sge, u8 *buf, u32 len, int pieces, int uneven,
	       u32 lkey)
{
	int i;

	for (i = 0; i < pieces; i++) {
		u32 n = i == pieces - 1 ? len : len / (pieces + uneven);

		sge[i] = (struct ib_sge){ (uintptr_t)buf, n, lkey };
		buf += n;
		len -= n;
	}
	return pieces;
}

static bool is_write(u32 op)
{
	return op == IB_WR_RDMA_WRITE || op == IB_WR_RDMA_WRITE_WITH_IMM;
}

static bool has_imm(u32 op)
{
	return op == IB_WR_SEND_WITH_IMM || op == IB_WR_RDMA_WRITE_WITH_IMM;
}

static void check_recv_wc(struct kunit *test, struct engine *eng,
			  const struct send_row *row)
{
	struct ib_wc wc = expect_recv(&eng->end[1], 0x77, IB_WC_SUCCESS);

	KUNIT_EXPECT_EQ(test, wc.opcode, is_write(row->op) ?
			IB_WC_RECV_RDMA_WITH_IMM : IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, wc.byte_len, row->len);
	KUNIT_EXPECT_EQ(test, wc.src_qp, eng->end[0].qp.qpn);
	KUNIT_EXPECT_EQ(test, wc.wc_flags, has_imm(row->op) ? IB_WC_WITH_IMM :
							      0);
	if (has_imm(row->op))
		KUNIT_EXPECT_EQ(test, be32_to_cpu(wc.ex.imm_data), 0x01020304u);
}

/* @len bytes have gone from one to the other, in packets of the path MTU. */
static void expect_counts(struct kunit *test, struct end *from, struct end *to,
			  u32 len)
{
	s64 packets = len ? DIV_ROUND_UP(len, 1024) : 1;

	KUNIT_EXPECT_EQ(test, atomic64_read(&from->hca.stats.tx_bytes),
			(s64)len);
	KUNIT_EXPECT_EQ(test, atomic64_read(&from->hca.stats.rx_bytes), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&from->hca.stats.tx_packets),
			packets);
	KUNIT_EXPECT_EQ(test, atomic64_read(&to->hca.stats.rx_bytes),
			(s64)len);
	KUNIT_EXPECT_EQ(test, atomic64_read(&to->hca.stats.tx_bytes), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&to->hca.stats.rx_packets),
			packets);
}

static void eng_send(struct kunit *test)
{
	const struct send_row *row = test->param_value;
	struct engine *eng = engine_create(test, row->type);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct ib_sge from[4], to[4];
	struct ib_recv_wr recv = { .wr_id = 0x77, .sg_list = to };
	const struct ib_recv_wr *bad;
	struct post p = {
		.op = row->op, .wr_id = 0x55, .flags = row->flags | SIG,
		.sges = from, .ex = 0x01020304, .raddr = IOVA + 9,
		/* no byte, no memory: the key of a write does not matter */
		.rkey = row->len ? b->mr->key.key : 0xdead,
	};
	struct ib_wc wc;

	fill(a->buf + 3, row->len, 1);
	p.num_sge = cut(from, a->buf + 3, row->len, row->pieces, 1,
			a->dma->key.key);
	recv.num_sge = cut(to, b->buf + 9, row->len, row->pieces, 0,
			   b->dma->key.key);
	if (row->op != IB_WR_RDMA_WRITE)
		KUNIT_ASSERT_EQ(test, mrsoft_rq_post(&b->qp.rq, &recv, &bad), 0);
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);

	wc = expect_send(a, 0x55, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, is_write(row->op) ? IB_WC_RDMA_WRITE :
							     IB_WC_SEND);
	if (row->op != IB_WR_RDMA_WRITE)
		check_recv_wc(test, eng, row);
	expect_silence(eng);
	KUNIT_EXPECT_TRUE(test, untouched(b->buf, 9));
	KUNIT_EXPECT_TRUE(test, filled(b->buf + 9, row->len, 1));
	KUNIT_EXPECT_TRUE(test, untouched(b->buf + 9 + row->len,
					  BUF - 9 - row->len));
	KUNIT_EXPECT_EQ(test, state_of(a), IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, state_of(b), IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, atomic64_read(&a->hca.stats.tx_msgs), 1);
	KUNIT_EXPECT_EQ(test, atomic64_read(&b->hca.stats.rx_msgs), 1);
	expect_counts(test, a, b, row->len);
}

/* --- READ and atomics ----------------------------------------------------- */

static void eng_read(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct ib_sge to[4];
	struct post p = {
		.op = IB_WR_RDMA_READ, .wr_id = 1, .flags = SIG, .sges = to,
		.raddr = IOVA + 100, .rkey = b->mr->key.key,
	};
	struct ib_wc wc;

	fill(b->buf + 100, CASE_LEN, 9);
	p.num_sge = cut(to, a->buf + 5, CASE_LEN, 3, 1, a->mr->key.key);
	to[0].addr = IOVA + 5;
	to[1].addr = IOVA + 5 + to[0].length;
	to[2].addr = to[1].addr + to[1].length;
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	wc = expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_RDMA_READ);
	KUNIT_EXPECT_EQ(test, wc.byte_len, (u32)CASE_LEN);
	KUNIT_EXPECT_TRUE(test, untouched(a->buf, 5));
	KUNIT_EXPECT_TRUE(test, filled(a->buf + 5, CASE_LEN, 9));
	KUNIT_EXPECT_TRUE(test, untouched(a->buf + 5 + CASE_LEN, 1000));
	KUNIT_EXPECT_EQ(test, atomic64_read(&a->hca.stats.tx_msgs), 1);
	expect_counts(test, b, a, CASE_LEN);

	/* nothing asked for, nothing looked at */
	p.num_sge = 0;
	p.rkey = 0xdead;
	p.wr_id = 2;
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	wc = expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.byte_len, 0u);
	expect_silence(eng);
}

static const struct atomic_row {
	const char *name;
	u32 op;
	u64 before;
	u64 compare;	/* or what is added */
	u64 swap;
	u64 after;
} atomic_rows[] = {
	{ "swap", IB_WR_ATOMIC_CMP_AND_SWP, 5, 5, 0x1122334455667788,
	  0x1122334455667788 },
	{ "no swap", IB_WR_ATOMIC_CMP_AND_SWP, 5, 6, 9, 5 },
	{ "high half differs", IB_WR_ATOMIC_CMP_AND_SWP, 1ull << 40, 0, 9,
	  1ull << 40 },
	{ "add", IB_WR_ATOMIC_FETCH_AND_ADD, 0xffffffff, 1, 77, 0x100000000 },
	{ "add wraps", IB_WR_ATOMIC_FETCH_AND_ADD, U64_MAX, 2, 0, 1 },
};

KUNIT_ARRAY_PARAM_DESC(atomic, atomic_rows, name);

static void eng_atomic(struct kunit *test)
{
	const struct atomic_row *row = test->param_value;
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct ib_sge to[2];
	struct post p = {
		.op = row->op, .wr_id = 1, .flags = SIG, .sges = to,
		.raddr = IOVA + 16, .rkey = b->mr->key.key,
		.compare = row->compare, .swap = row->swap,
	};
	u64 *word = (u64 *)(b->buf + 16);
	struct ib_wc wc;

	*word = row->before;
	/* the answer comes back in two pieces, not aligned */
	p.num_sge = cut(to, a->buf + 1, 8, 2, 1, a->dma->key.key);
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	wc = expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, row->op == IB_WR_ATOMIC_CMP_AND_SWP ?
			IB_WC_COMP_SWAP : IB_WC_FETCH_ADD);
	KUNIT_EXPECT_EQ(test, wc.byte_len, 8u);
	KUNIT_EXPECT_EQ(test, *word, row->after);
	KUNIT_EXPECT_MEMEQ(test, a->buf + 1, &row->before, sizeof(u64));
	KUNIT_EXPECT_TRUE(test, untouched(a->buf, 1));
	KUNIT_EXPECT_TRUE(test, untouched(a->buf + 9, 100));
	KUNIT_EXPECT_TRUE(test, untouched(b->buf + 8, 8));
	KUNIT_EXPECT_TRUE(test, untouched(b->buf + 24, 100));
	expect_silence(eng);
}

/* Eight bytes that appear at once, from a list or inline. */
static void eng_atomic_write(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct ib_sge from[2];
	struct post p = {
		.op = IB_WR_ATOMIC_WRITE, .wr_id = 1, .flags = SIG,
		.sges = from, .raddr = IOVA + 16, .rkey = b->mr->key.key,
	};
	struct ib_wc wc;

	fill(a->buf + 1, 16, 5);
	p.num_sge = cut(from, a->buf + 1, 8, 2, 1, a->dma->key.key);
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	wc = expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_ATOMIC_WRITE);
	KUNIT_EXPECT_EQ(test, wc.byte_len, 8u);
	KUNIT_EXPECT_TRUE(test, untouched(b->buf, 16));
	KUNIT_EXPECT_TRUE(test, filled(b->buf + 16, 8, 5));
	KUNIT_EXPECT_TRUE(test, untouched(b->buf + 24, 8));

	p.flags |= IB_SEND_INLINE;
	p.raddr = IOVA + 32;
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, filled(b->buf + 32, 8, 5));
	expect_silence(eng);
}

/* --- operations on keys --------------------------------------------------- */

static void eng_send_inv(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	u32 key = b->mr->key.key;
	struct post p = {
		.op = IB_WR_SEND_WITH_INV, .wr_id = 1, .flags = SIG,
		.addr = a->buf, .len = 10, .ex = key,
	};
	struct post q = {
		.op = IB_WR_RDMA_WRITE, .wr_id = 2, .addr = a->buf, .len = 10,
		.raddr = IOVA, .rkey = key,
	};
	struct ib_wc wc;

	post_recv(b, 7, b->buf, 100);
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	wc = expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_SEND);
	wc = expect_recv(b, 7, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, wc.wc_flags, IB_WC_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, wc.ex.invalidate_rkey, key);
	KUNIT_EXPECT_EQ(test, wc.byte_len, 10u);
	/* and the key is dead */
	KUNIT_ASSERT_EQ(test, post_send(a, &q), 0);
	wc = expect_send(a, 2, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, wc.vendor_err, (u32)MRSOFT_R_KEY_INVALID);
}

static void eng_reg_and_inv(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct mrsoft_mr *mr = new_mr(a, 0, NULL, BUF, 0, 0);
	struct scatterlist sg;
	u32 old = mr->key.key;
	struct post p = {
		.op = IB_WR_REG_MR, .wr_id = 1, .flags = SIG, .mr = mr,
		.rkey = ib_inc_rkey(old), .access = IB_ACCESS_REMOTE_READ,
	};
	struct ib_wc wc;

	sg_init_one(&sg, a->buf, BUF);
	sg_dma_address(&sg) = (uintptr_t)a->buf;
	sg_dma_len(&sg) = BUF;
	mr->ib.page_size = PAGE_SIZE;
	KUNIT_ASSERT_EQ(test, mrsoft_mr_map_sg(mr, &sg, 1, NULL), 1);
	mr->ib.iova = IOVA * 2;
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	wc = expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_REG_MR);

	/* the peer reads through the new key */
	fill(a->buf, 100, 3);
	p = (struct post){
		.op = IB_WR_RDMA_READ, .wr_id = 2, .flags = SIG,
		.addr = b->buf, .len = 100, .raddr = IOVA * 2,
		.rkey = ib_inc_rkey(old),
	};
	KUNIT_ASSERT_EQ(test, post_send(b, &p), 0);
	expect_send(b, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, filled(b->buf, 100, 3));

	p = (struct post){
		.op = IB_WR_LOCAL_INV, .wr_id = 3, .flags = SIG,
		.ex = ib_inc_rkey(old),
	};
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	wc = expect_send(a, 3, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_LOCAL_INV);
	KUNIT_EXPECT_FALSE(test, mr->key.published);
	KUNIT_EXPECT_EQ(test, state_of(a), IB_QPS_RTS);
}

/* --- the ring of user space ----------------------------------------------- */

struct user_wqe {
	struct mrsoft_abi_swqe head;
	union {
		struct mrsoft_abi_sge sge[4];
		u8 data[64];
	};
};

/* What librxe does: store, move the index, ring. */
static void user_post(struct end *end, const struct user_wqe *wqe)
{
	KUNIT_ASSERT_TRUE(end->test, mrsoft_ring_push(&end->qp.sq.ring, wqe,
						      sizeof(*wqe)));
	mrsoft_sq_doorbell(&end->qp);
}

static struct engine *user_engine(struct kunit *test, enum ib_qp_type type)
{
	struct engine *eng = engine_new(test);

	eng->user = true;
	engine_start(eng, type);
	connect_ends(eng);
	return eng;
}

static struct user_wqe user_wqe(u32 opcode, u64 wr_id, u32 flags)
{
	return (struct user_wqe){
		.head = {
			.wr_id = wr_id, .opcode = opcode, .send_flags = flags,
		},
	};
}

static void user_sge(struct user_wqe *wqe, struct end *end, void *addr, u32 len)
{
	wqe->sge[wqe->head.dma.num_sge++] = (struct mrsoft_abi_sge){
		.addr = (uintptr_t)addr, .length = len,
		.lkey = end->dma->key.key,
	};
	wqe->head.dma.length += len;
}

/* A small message is done when the doorbell returns. */
static void eng_user_send(struct kunit *test)
{
	struct engine *eng = user_engine(test, IB_QPT_RC);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct user_wqe wqe = user_wqe(IB_WR_SEND_WITH_IMM, 1, SIG);
	struct ib_wc wc;

	fill(a->buf, 300, 5);
	user_sge(&wqe, a, a->buf, 100);
	user_sge(&wqe, a, a->buf + 100, 200);
	/* librxe's length is wrong for lists in some versions */
	wqe.head.dma.length = 1;
	wqe.head.ex.imm_data = cpu_to_be32(0xabcd);
	post_recv(b, 7, b->buf, 400);
	user_post(a, &wqe);
	KUNIT_EXPECT_EQ(test, mrsoft_cq_pending(&a->scq), 1u);
	KUNIT_EXPECT_EQ(test, mrsoft_cq_pending(&b->rcq), 1u);
	expect_send(a, 1, IB_WC_SUCCESS);
	wc = expect_recv(b, 7, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.byte_len, 300u);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(wc.ex.imm_data), 0xabcdu);
	KUNIT_EXPECT_TRUE(test, filled(b->buf, 300, 5));

	wqe = user_wqe(IB_WR_RDMA_WRITE, 2, SIG | IB_SEND_INLINE);
	fill(wqe.data, 64, 6);
	wqe.head.dma.length = 64;
	wqe.head.wr.rdma.remote_addr = IOVA + 1000;
	wqe.head.wr.rdma.rkey = b->mr->key.key;
	user_post(a, &wqe);
	expect_send(a, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, filled(b->buf + 1000, 64, 6));

	/* its 8 bytes are in the WQE, whatever flags and length say */
	wqe = user_wqe(IB_WR_ATOMIC_WRITE, 4, SIG);
	fill(wqe.data, 8, 7);
	wqe.head.wr.rdma.remote_addr = IOVA + 3000;
	wqe.head.wr.rdma.rkey = b->mr->key.key;
	user_post(a, &wqe);
	expect_send(a, 4, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, filled(b->buf + 3000, 8, 7));
	KUNIT_EXPECT_TRUE(test, untouched(b->buf + 3008, 8));

	wqe = user_wqe(IB_WR_ATOMIC_FETCH_AND_ADD, 3, SIG);
	*(u64 *)(b->buf + 2000) = 40;
	user_sge(&wqe, a, a->buf, 8);
	wqe.head.wr.atomic.remote_addr = IOVA + 2000;
	wqe.head.wr.atomic.rkey = b->mr->key.key;
	wqe.head.wr.atomic.compare_add = 2;
	user_post(a, &wqe);
	expect_send(a, 3, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, *(u64 *)(b->buf + 2000), 42ull);
	KUNIT_EXPECT_EQ(test, *(u64 *)a->buf, 40ull);
}

#define FG	IB_ACCESS_FLUSH_GLOBAL
#define FP	IB_ACCESS_FLUSH_PERSISTENT
#define ANY	(FG | FP)

static const struct flush_row {
	const char *name;
	u8 type;
	u8 level;
	s64 offset;	/* from the region's first byte */
	u32 length;
	u32 key_xor;
	int mr_access;
	int qp_access;
	int depth;
	enum ib_wc_status status;
	enum mrsoft_reason reason;
} flush_rows[] = {
	/* Annex A19: what is asked for, rights of the key, of the QP */
	{ "range", 1, 0, 8, 100, 0, FG, FG, 8, IB_WC_SUCCESS },
	{ "whole range", 1, 0, 0, BUF, 0, FG, FG, 8, IB_WC_SUCCESS },
	{ "last byte", 1, 0, BUF - 1, 1, 0, FG, FG, 8, IB_WC_SUCCESS },
	{ "nothing, at the end", 1, 0, BUF, 0, 0, FG, FG, 8, IB_WC_SUCCESS },
	{ "region", 1, 1, 0, 0, 0, FG, FG, 8, IB_WC_SUCCESS },
	{ "region, address elsewhere", 1, 1, 1ll << 40, U32_MAX, 0, FG, FG, 8,
	  IB_WC_SUCCESS },
	{ "one past", 1, 0, 1, BUF, 0, FG, FG, 8, IB_WC_REM_ACCESS_ERR,
	  MRSOFT_R_OUTSIDE },
	{ "one below", 1, 0, -1, 8, 0, FG, FG, 8, IB_WC_REM_ACCESS_ERR,
	  MRSOFT_R_OUTSIDE },
	{ "4 GiB", 1, 0, 0, U32_MAX, 0, FG, FG, 8, IB_WC_REM_ACCESS_ERR,
	  MRSOFT_R_OUTSIDE },
	{ "stale key", 1, 0, 0, 8, 1, FG, FG, 8, IB_WC_REM_ACCESS_ERR,
	  MRSOFT_R_KEY_STALE },
	{ "stale key, no byte", 1, 0, 0, 0, 1, FG, FG, 8, IB_WC_REM_ACCESS_ERR,
	  MRSOFT_R_KEY_STALE },
	{ "stale key, region", 1, 1, 0, 0, 1, FG, FG, 8, IB_WC_REM_ACCESS_ERR,
	  MRSOFT_R_KEY_STALE },
	{ "no right", 1, 0, 0, 8, 0, ALL & ~FG, FG, 8, IB_WC_REM_ACCESS_ERR,
	  MRSOFT_R_NO_REMOTE_FLUSH },
	{ "no right, region", 1, 1, 0, 0, 0, ALL & ~FG, FG, 8,
	  IB_WC_REM_ACCESS_ERR, MRSOFT_R_NO_REMOTE_FLUSH },
	{ "persistent", 2, 0, 0, 8, 0, ALL, ANY, 8, IB_WC_REM_ACCESS_ERR,
	  MRSOFT_R_NO_REMOTE_FLUSH },
	{ "both", 3, 1, 0, 0, 0, ALL, ANY, 8, IB_WC_REM_ACCESS_ERR,
	  MRSOFT_R_NO_REMOTE_FLUSH },
	{ "QP without right", 1, 0, 0, 8, 0, FG, MRSOFT_REMOTE_RIGHTS & ~FG, 8,
	  IB_WC_REM_INV_REQ_ERR, MRSOFT_R_QP_ACCESS },
	{ "QP without one of two", 3, 0, 0, 8, 0, FG, FG, 8,
	  IB_WC_REM_INV_REQ_ERR, MRSOFT_R_QP_ACCESS },
	{ "no type", 0, 0, 0, 8, 0, FG, FG, 8, IB_WC_LOC_QP_OP_ERR,
	  MRSOFT_R_RING_ENTRY },
	{ "reserved type", 4, 0, 0, 8, 0, FG, FG, 8, IB_WC_LOC_QP_OP_ERR,
	  MRSOFT_R_RING_ENTRY },
	{ "type beyond its bits", 0x11, 0, 0, 8, 0, FG, FG, 8,
	  IB_WC_LOC_QP_OP_ERR, MRSOFT_R_RING_ENTRY },
	{ "reserved level", 1, 2, 0, 8, 0, FG, FG, 8, IB_WC_LOC_QP_OP_ERR,
	  MRSOFT_R_RING_ENTRY },
	{ "no depth", 1, 0, 0, 8, 0, FG, FG, 0, IB_WC_LOC_QP_OP_ERR,
	  MRSOFT_R_READ_DEPTH },
};

KUNIT_ARRAY_PARAM_DESC(flush, flush_rows, name);

static struct user_wqe flush_wqe(u64 wr_id, u8 type, u8 level, u64 addr,
				 u32 length, u32 key)
{
	struct user_wqe wqe = user_wqe(IB_WR_FLUSH, wr_id, SIG);

	wqe.head.wr.flush.remote_addr = addr;
	wqe.head.wr.flush.rkey = key;
	wqe.head.wr.flush.type = type;
	wqe.head.wr.flush.level = level;
	/* where librxe puts it */
	wqe.head.dma.length = length;
	return wqe;
}

static void eng_user_flush(struct kunit *test)
{
	const struct flush_row *row = test->param_value;
	struct engine *eng = engine_new(test);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct user_wqe wqe;
	struct mrsoft_mr *mr;
	struct ib_wc wc;

	eng->user = true;
	eng->attr.qp_access_flags = row->qp_access | IB_ACCESS_REMOTE_WRITE;
	eng->attr.max_rd_atomic = row->depth;
	engine_start(eng, IB_QPT_RC);
	connect_ends(eng);
	mr = new_mr(b, 0, b->buf, BUF, IOVA, row->mr_access);
	wqe = flush_wqe(1, row->type, row->level, IOVA + row->offset,
			row->length, mr->key.key ^ row->key_xor);
	user_post(a, &wqe);
	wc = expect_send(a, 1, row->status);
	KUNIT_EXPECT_EQ_MSG(test, wc.vendor_err, (u32)row->reason, "%s",
			    mrsoft_reason_name(wc.vendor_err));
	KUNIT_EXPECT_EQ(test, (u32)wc.opcode, (u32)IB_WC_FLUSH);
	KUNIT_EXPECT_EQ(test, wc.byte_len, 0u);
	KUNIT_EXPECT_TRUE(test, untouched(b->buf, BUF));
	KUNIT_EXPECT_EQ(test, state_of(a), row->status ? IB_QPS_ERR :
							 IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, state_of(b),
			row->status == IB_WC_REM_ACCESS_ERR ||
			row->status == IB_WC_REM_INV_REQ_ERR ? IB_QPS_ERR :
							       IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, atomic64_read(&b->hca.stats.rx_msgs),
			row->status ? 0 : 1);
	KUNIT_EXPECT_EQ(test, atomic64_read(&a->hca.stats.tx_bytes), 0);
}

static void connect_again(struct engine *eng)
{
	int i;

	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(eng->end[i].test,
				to_state(&eng->end[i], IB_QPS_RESET), 0);
	connect_ends(eng);
}

/* In order with the rest; what it needs at the other end; what it has not. */
static void eng_user_flush_among(struct kunit *test)
{
	struct engine *eng = user_engine(test, IB_QPT_RC);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	u32 key = b->mr->key.key;
	struct user_wqe wqe;
	struct ib_wc wc;
	int i;

	for (i = 1; i <= 5; i++) {
		wqe = user_wqe(IB_WR_RDMA_WRITE, 0, 0);
		fill(a->buf, 300, i);
		user_sge(&wqe, a, a->buf, 300);
		wqe.head.wr.rdma.remote_addr = IOVA;
		wqe.head.wr.rdma.rkey = key;
		user_post(a, &wqe);
		wqe = flush_wqe(i, 1, i & 1, IOVA, 300, key);
		user_post(a, &wqe);
		wc = expect_send(a, i, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, (u32)wc.opcode, (u32)IB_WC_FLUSH);
		KUNIT_EXPECT_TRUE(test, filled(b->buf, 300, i));
	}
	expect_silence(eng);

	/* it has neither list nor inline data */
	wqe = flush_wqe(6, 1, 0, IOVA, 300, key);
	wqe.head.dma.num_sge = 1;
	user_post(a, &wqe);
	wc = expect_send(a, 6, IB_WC_LOC_QP_OP_ERR);
	KUNIT_EXPECT_EQ(test, wc.vendor_err, (u32)MRSOFT_R_RING_ENTRY);
	connect_again(eng);
	wqe = flush_wqe(7, 1, 0, IOVA, 8, key);
	wqe.head.send_flags |= IB_SEND_INLINE;
	user_post(a, &wqe);
	wc = expect_send(a, 7, IB_WC_LOC_QP_OP_ERR);
	KUNIT_EXPECT_EQ(test, wc.vendor_err, (u32)MRSOFT_R_RING_ENTRY);

	/* a responder that serves no READ serves no FLUSH */
	connect_again(eng);
	b->qp.attr.max_dest_rd_atomic = 0;
	wqe = flush_wqe(8, 1, 0, IOVA, 8, key);
	user_post(a, &wqe);
	wc = expect_send(a, 8, IB_WC_REM_INV_REQ_ERR);
	KUNIT_EXPECT_EQ(test, wc.vendor_err, (u32)MRSOFT_R_READ_DEPTH);
}

/* The kernel has no struct ib_flush_wr: its consumers cannot say what. */
static void eng_kernel_flush(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct post p = { .op = IB_WR_FLUSH, .wr_id = 1, .flags = SIG };

	KUNIT_EXPECT_EQ(test, post_send(&eng->end[0], &p), -EINVAL);
	expect_silence(eng);
}

static const struct window_row {
	const char *name;
	enum ib_mw_type type;
	int access;
} window_rows[] = {
	{ "type 1", IB_MW_TYPE_1, IB_ACCESS_REMOTE_WRITE },
	{ "type 2", IB_MW_TYPE_2, IB_ACCESS_REMOTE_WRITE },
	{ "type 2 zero based", IB_MW_TYPE_2,
	  IB_ACCESS_REMOTE_WRITE | IB_ZERO_BASED },
};

KUNIT_ARRAY_PARAM_DESC(window, window_rows, name);

static void bind(struct end *a, u64 wr_id, struct mrsoft_mw *mw, u32 key,
		 u64 len, int access)
{
	struct user_wqe wqe = user_wqe(IB_WR_BIND_MW, wr_id, SIG);

	wqe.head.wr.mw.mw_rkey = mw->window->key.key;
	wqe.head.wr.mw.rkey = key;
	wqe.head.wr.mw.mr_lkey = a->mr->key.key;
	wqe.head.wr.mw.addr = IOVA + 512;
	wqe.head.wr.mw.length = len;
	wqe.head.wr.mw.access = access;
	user_post(a, &wqe);
}

/* Bind, write through the window, busy, unbind, dead. */
static void eng_bind(struct kunit *test)
{
	const struct window_row *row = test->param_value;
	struct engine *eng = user_engine(test, IB_QPT_RC);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct mrsoft_mw mw = {};
	struct post p = {
		.op = IB_WR_RDMA_WRITE, .wr_id = 2, .flags = SIG,
		.addr = b->buf, .len = 100,
		.raddr = row->access & IB_ZERO_BASED ? 0 : IOVA + 512,
	};
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, mrsoft_mw_init(&a->hca.keys, &mw, &a->pd[0],
					     row->type), 0);
	bind(a, 1, &mw, ib_inc_rkey(mw.ib.rkey), 100, row->access);
	wc = expect_send(a, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_BIND_MW);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(a->mr), -EBUSY);

	fill(b->buf, 100, 8);
	p.rkey = ib_inc_rkey(mw.ib.rkey);
	KUNIT_ASSERT_EQ(test, post_send(b, &p), 0);
	expect_send(b, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, filled(a->buf + 512, 100, 8));
	KUNIT_EXPECT_TRUE(test, untouched(a->buf + 612, 100));

	/* without a byte it unbinds, and the key is another one */
	bind(a, 3, &mw, ib_inc_rkey(p.rkey), 0, 0);
	wc = expect_send(a, 3, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_BIND_MW);
	p.wr_id = 4;
	KUNIT_ASSERT_EQ(test, post_send(b, &p), 0);
	expect_send(b, 4, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, drop_mr(a, a->mr), 0);
	mrsoft_mw_destroy(&mw);
}

/* What a ring may hold that is no work request: refused, and the QP is dead. */
static const struct malformed_row {
	const char *name;
	u32 opcode;
	u32 flags;
	u32 num_sge;
	u32 length;
} malformed_rows[] = {
	{ "opcode 200", 200, 0, 0, 0 },
	{ "opcode 2^31", 0x80000002, 0, 0, 0 },
	{ "kernel's register", IB_WR_REG_MR, 0, 0, 0 },
	{ "masked atomic", IB_WR_MASKED_ATOMIC_CMP_AND_SWP, 0, 0, 0 },
	{ "too many sges", IB_WR_SEND, 0, 33, 0 },
	{ "2^32-1 sges", IB_WR_SEND, 0, U32_MAX, 0 },
	{ "inline too long", IB_WR_SEND, IB_SEND_INLINE, 0, 65536 },
	{ "inline 2^32-1", IB_WR_RDMA_WRITE, IB_SEND_INLINE, 0, U32_MAX },
	{ "inline read", IB_WR_RDMA_READ, IB_SEND_INLINE, 0, 8 },
	{ "inline atomic", IB_WR_ATOMIC_FETCH_AND_ADD, IB_SEND_INLINE, 0, 8 },
};

KUNIT_ARRAY_PARAM_DESC(malformed, malformed_rows, name);

static void eng_user_malformed(struct kunit *test)
{
	const struct malformed_row *row = test->param_value;
	struct engine *eng = user_engine(test, IB_QPT_RC);
	struct end *a = &eng->end[0];
	struct user_wqe wqe = user_wqe(row->opcode, 1, row->flags);

	wqe.head.dma.num_sge = row->num_sge;
	wqe.head.dma.length = row->length;
	user_post(a, &wqe);
	expect_send(a, 1, IB_WC_LOC_QP_OP_ERR);
	KUNIT_EXPECT_EQ(test, state_of(a), IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, state_of(&eng->end[1]), IB_QPS_RTS);
	expect_silence(eng);
}

/* A user's address handle: the number counts, in its own PD only. */
static void eng_user_datagram(struct kunit *test)
{
	struct engine *eng = user_engine(test, IB_QPT_UD);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct user_wqe wqe = user_wqe(IB_WR_SEND, 1, SIG);
	struct mrsoft_ah *ah = kunit_kzalloc(test, sizeof(*ah), GFP_KERNEL);
	struct ib_qp_attr attr = {};
	struct ib_wc wc;

	KUNIT_ASSERT_NOT_NULL(test, ah);
	spin_lock_init(&ah->lock);
	ah->ib.pd = &a->pd[0].ib;
	set_address(&attr, a, b);
	mrsoft_av_set(&ah->av, &attr.ah_attr);
	KUNIT_ASSERT_EQ(test, mrsoft_ah_publish(&a->hca, ah), 0);

	user_sge(&wqe, a, a->buf, 50);
	wqe.head.wr.ud.remote_qpn = b->qp.qpn;
	wqe.head.wr.ud.remote_qkey = QKEY;
	wqe.head.wr.ud.ah_num = ah->ah_num;
	post_recv(b, 7, b->buf, 90);
	user_post(a, &wqe);
	expect_send(a, 1, IB_WC_SUCCESS);
	expect_recv(b, 7, IB_WC_SUCCESS);

	ah->ib.pd = &a->pd[1].ib;
	wqe.head.wr_id = 2;
	user_post(a, &wqe);
	wc = expect_send(a, 2, IB_WC_LOC_QP_OP_ERR);
	KUNIT_EXPECT_EQ(test, wc.vendor_err, (u32)MRSOFT_R_AH);
	KUNIT_EXPECT_EQ(test, state_of(a), IB_QPS_SQE);
	mrsoft_ah_unpublish(&a->hca, ah);
	expect_silence(eng);
}

/* --- datagrams ------------------------------------------------------------ */

static const struct ud_row {
	const char *name;
	u32 op;
	u32 len;
	bool ipv6;
	u32 qkey;	/* that the work request names */
	u32 flags;
} ud_rows[] = {
	{ "ipv4", IB_WR_SEND, 700, false, QKEY, 0 },
	{ "ipv6", IB_WR_SEND, 700, true, QKEY, 0 },
	{ "imm", IB_WR_SEND_WITH_IMM, 1, false, QKEY, 0 },
	{ "empty", IB_WR_SEND, 0, true, QKEY, 0 },
	{ "mtu", IB_WR_SEND, 1024, false, QKEY, 0 },
	{ "inline", IB_WR_SEND, 40, false, QKEY, IB_SEND_INLINE },
	/* the highest bit stands for the QP's own, IBA 10.2.5 */
	{ "own qkey", IB_WR_SEND, 10, false, 0x80000000, 0 },
};

KUNIT_ARRAY_PARAM_DESC(ud, ud_rows, name);

static struct ib_ah *new_ah(struct end *from, struct end *to)
{
	struct mrsoft_ah *ah = kunit_kzalloc(from->test, sizeof(*ah),
					     GFP_KERNEL);
	struct ib_qp_attr attr = {};

	KUNIT_ASSERT_NOT_NULL(from->test, ah);
	spin_lock_init(&ah->lock);
	ah->ib.pd = &from->pd[0].ib;
	set_address(&attr, from, to);
	mrsoft_av_set(&ah->av, &attr.ah_attr);
	return &ah->ib;
}

static void use_ipv6(struct engine *eng)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct end *end = &eng->end[i];

		mrsoft_local_gid_del(&end->hca, &end->gid_attr.gid);
		end->gid_attr.gid.raw[0] = 0xfd;
		KUNIT_ASSERT_EQ(end->test,
				mrsoft_local_gid_add(&end->hca,
						     &end->gid_attr.gid), 0);
	}
}

static void check_grh(struct kunit *test, struct engine *eng,
		      const struct ud_row *row)
{
	const union rdma_network_hdr *hdr = (void *)eng->end[1].buf;
	union ib_gid sgid, dgid;

	KUNIT_EXPECT_EQ(test, ib_get_rdma_header_version(hdr),
			row->ipv6 ? 6 : 4);
	ib_get_gids_from_rdma_hdr(hdr, row->ipv6 ? RDMA_NETWORK_IPV6 :
						   RDMA_NETWORK_IPV4,
				  &sgid, &dgid);
	KUNIT_EXPECT_MEMEQ(test, &sgid, &eng->end[0].gid_attr.gid, 16);
	KUNIT_EXPECT_MEMEQ(test, &dgid, &eng->end[1].gid_attr.gid, 16);
}

static void eng_datagram(struct kunit *test)
{
	const struct ud_row *row = test->param_value;
	struct engine *eng = engine_create(test, IB_QPT_UD);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = {
		.op = row->op, .wr_id = 1, .flags = SIG | row->flags,
		.addr = a->buf, .len = row->len, .ex = 0x99,
		.qpn = b->qp.qpn, .qkey = row->qkey,
	};
	struct ib_wc wc;

	if (row->ipv6)
		use_ipv6(eng);
	p.ah = new_ah(a, b);
	fill(a->buf, row->len, 4);
	post_recv(b, 7, b->buf, 1064);
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	expect_send(a, 1, IB_WC_SUCCESS);
	wc = expect_recv(b, 7, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, wc.byte_len, row->len + 40);
	KUNIT_EXPECT_EQ(test, wc.src_qp, a->qp.qpn);
	KUNIT_EXPECT_TRUE(test, wc.wc_flags & IB_WC_GRH);
	KUNIT_EXPECT_EQ(test, !!(wc.wc_flags & IB_WC_WITH_IMM),
			has_imm(row->op));
	if (has_imm(row->op))
		KUNIT_EXPECT_EQ(test, be32_to_cpu(wc.ex.imm_data), 0x99u);
	KUNIT_EXPECT_TRUE(test, wc.wc_flags & IB_WC_WITH_NETWORK_HDR_TYPE);
	KUNIT_EXPECT_EQ(test, (int)wc.network_hdr_type, row->ipv6 ?
			RDMA_NETWORK_IPV6 : RDMA_NETWORK_IPV4);
	KUNIT_EXPECT_TRUE(test, wc.wc_flags & IB_WC_WITH_SMAC);
	KUNIT_EXPECT_EQ(test, (u32)wc.smac[5], 0x10u);
	check_grh(test, eng, row);
	KUNIT_EXPECT_TRUE(test, filled(b->buf + 40, row->len, 4));
	KUNIT_EXPECT_TRUE(test, untouched(b->buf + 40 + row->len, 100));
	expect_silence(eng);
}

/* IBA 13.4.2: a MAD has 256 bytes; what has not is none, and is dropped. */
static void eng_gsi_length(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_UD);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	static const u32 lengths[] = { 0, 1, 24, 255, 257, 1024 };
	atomic64_t *dropped = &b->hca.stats.reasons[MRSOFT_R_PKT_LENGTH];
	struct post p = {
		.op = IB_WR_SEND, .wr_id = 1, .flags = SIG, .addr = a->buf,
		.qpn = b->qp.qpn, .qkey = QKEY, .ah = new_ah(a, b),
	};
	int i;

	b->qp.type = IB_QPT_GSI;
	post_recv(b, 7, b->buf, 1064);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		p.len = lengths[i];
		KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
		expect_send(a, 1, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, atomic64_read(dropped), i + 1);
		expect_silence(eng);
	}
	/* the receive WQE is still there */
	p.len = 256;
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	expect_send(a, 1, IB_WC_SUCCESS);
	expect_recv(b, 7, IB_WC_SUCCESS);
	expect_silence(eng);
}

/* --- connected to itself -------------------------------------------------- */

static void eng_self(struct kunit *test)
{
	struct engine *eng = engine_new(test);
	struct end *a = &eng->end[0];
	struct post p = {
		.op = IB_WR_SEND, .flags = SIG,
	};
	u64 i;

	engine_start(eng, IB_QPT_RC);
	to_rtr(eng, 0, a);
	to_rts(eng, 0);
	fill(a->buf, 1000, 2);
	p.addr = a->buf;
	p.len = 1000;
	for (i = 0; i < 20; i++)
		post_recv(a, 100 + i, a->buf + 2000, 1000);
	for (i = 0; i < 20; i++) {
		p.wr_id = i;
		KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	}
	for (i = 0; i < 20; i++) {
		expect_send(a, i, IB_WC_SUCCESS);
		expect_recv(a, 100 + i, IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_TRUE(test, filled(a->buf + 2000, 1000, 2));
	/* an error of its own doing strikes both sides of it */
	p.op = IB_WR_RDMA_READ;
	p.rkey = 0xdead00;
	p.wr_id = 50;
	post_recv(a, 200, a->buf + 2000, 1000);
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	expect_send(a, 50, IB_WC_REM_ACCESS_ERR);
	expect_recv(a, 200, IB_WC_WR_FLUSH_ERR);
	expect_silence(eng);
}

/* --- completions and upcalls ---------------------------------------------- */

/* Only what is signalled completes; order is that of posting. */
static void eng_unsignalled(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = {
		.op = IB_WR_RDMA_WRITE, .addr = a->buf, .len = 8,
		.raddr = IOVA, .rkey = b->mr->key.key,
	};
	u64 i;

	for (i = 0; i < 200; i++) {
		p.wr_id = i;
		p.flags = i % 50 == 49 ? SIG : 0;
		KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	}
	for (i = 49; i < 200; i += 50)
		expect_send(a, i, IB_WC_SUCCESS);
	expect_silence(eng);
	KUNIT_EXPECT_EQ(test, atomic64_read(&a->hca.stats.tx_msgs), 200);
	/* the ring of 255 has room again for what never completed */
	for (i = 0; i < 255; i++) {
		p.wr_id = 1000 + i;
		p.flags = i == 254 ? SIG : 0;
		KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	}
	expect_send(a, 1254, IB_WC_SUCCESS);
}

struct chain {
	spinlock_t lock; /* all of it */
	struct post p;
	int left;
	int failed;
	bool posting;
	int inside;
};

/* Polls, arms and posts: all that a consumer does in its handler. */
static void chain_comp(struct end *end, struct mrsoft_cq *cq)
{
	struct chain *chain = end->priv;
	struct ib_wc wc;

	if (cq != &end->scq)
		return;
	/* the consumer's own lock, which it has around its posts */
	spin_lock_irq(&chain->lock);
	chain->inside += chain->posting;
	mrsoft_cq_arm(cq, IB_CQ_NEXT_COMP);
	while (mrsoft_cq_poll(cq, 1, &wc) == 1) {
		chain->failed += wc.status != IB_WC_SUCCESS;
		if (chain->left-- > 0)
			chain->failed += !!post_send(end, &chain->p);
	}
	spin_unlock_irq(&chain->lock);
}

/* Invariant 9: no upcall from inside a post, none with a lock of ours held. */
static void eng_post_in_upcall(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct chain *chain = kunit_kzalloc(test, sizeof(*chain), GFP_KERNEL);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	unsigned long end = jiffies + 20 * HZ;
	int i, ret;

	KUNIT_ASSERT_NOT_NULL(test, chain);
	spin_lock_init(&chain->lock);
	chain->left = 200;
	chain->p = (struct post){
		.op = IB_WR_RDMA_WRITE, .flags = SIG, .addr = a->buf, .len = 8,
		.raddr = IOVA, .rkey = b->mr->key.key,
	};
	a->priv = chain;
	a->on_comp = chain_comp;
	mrsoft_cq_arm(&a->scq, IB_CQ_NEXT_COMP);
	spin_lock_irq(&chain->lock);
	chain->posting = true;
	ret = post_send(a, &chain->p);
	/* the worker has time to start meanwhile */
	for (i = 0; i < 10000; i++)
		cpu_relax();
	chain->posting = false;
	spin_unlock_irq(&chain->lock);
	KUNIT_ASSERT_EQ(test, ret, 0);
	while (READ_ONCE(chain->left) >= 0 && time_before(jiffies, end))
		usleep_range(50, 100);
	settle(eng);
	KUNIT_EXPECT_EQ(test, chain->left, -1);
	KUNIT_EXPECT_EQ(test, chain->failed, 0);
	KUNIT_EXPECT_EQ(test, chain->inside, 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&a->hca.stats.tx_msgs), 201);
}

static void count_comp(struct end *end, struct mrsoft_cq *cq)
{
	if (cq == &end->rcq)
		atomic_inc(&end->events[31]);
}

/* IBA 11.4.2.2: an armed CQ fires for what was marked, and for errors. */
static void eng_solicited(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = { .op = IB_WR_SEND, .flags = SIG };
	int i;

	b->on_comp = count_comp;
	for (i = 0; i < 4; i++)
		post_recv(b, i, b->buf, 8);
	mrsoft_cq_arm(&b->rcq, IB_CQ_SOLICITED);
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	expect_recv(b, 0, IB_WC_SUCCESS);
	settle(eng);
	KUNIT_EXPECT_EQ(test, atomic_read(&b->events[31]), 0);
	p.flags |= IB_SEND_SOLICITED;
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	expect_recv(b, 1, IB_WC_SUCCESS);
	settle(eng);
	KUNIT_EXPECT_EQ(test, atomic_read(&b->events[31]), 1);
	mrsoft_cq_arm(&b->rcq, IB_CQ_SOLICITED);
	to_state(b, IB_QPS_ERR);
	expect_recv(b, 2, IB_WC_WR_FLUSH_ERR);
	expect_recv(b, 3, IB_WC_WR_FLUSH_ERR);
	settle(eng);
	KUNIT_EXPECT_EQ(test, atomic_read(&b->events[31]), 2);
}

/* --- what post refuses ---------------------------------------------------- */

static void eng_post_refused(struct kunit *test)
{
	struct engine *eng = engine_new(test);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct ib_sge sges[MRSOFT_MAX_SGE + 1] = {};
	struct post p = { .op = IB_WR_SEND, .sges = sges };
	int i;

	engine_start(eng, IB_QPT_UC);
	/* IBA 10.3.1: not before RTS */
	KUNIT_EXPECT_EQ(test, post_send(a, &p), -EINVAL);
	to_rtr(eng, 0, b);
	KUNIT_EXPECT_EQ(test, post_send(a, &p), -EINVAL);
	to_rtr(eng, 1, a);
	to_rts(eng, 0);
	to_rts(eng, 1);

	/* more may be given than was asked for */
	KUNIT_EXPECT_GE(test, a->qp.sq.max_sge, 4u);
	p.num_sge = a->qp.sq.max_sge + 1;
	KUNIT_EXPECT_EQ(test, post_send(a, &p), -EINVAL);
	p.num_sge = -1;
	KUNIT_EXPECT_EQ(test, post_send(a, &p), -EINVAL);
	p.num_sge = 0;
	p.op = IB_WR_RDMA_READ;
	KUNIT_EXPECT_EQ(test, post_send(a, &p), -EINVAL);
	p.op = 250;
	KUNIT_EXPECT_EQ(test, post_send(a, &p), -EINVAL);
	p.op = IB_WR_SEND;
	p.flags = IB_SEND_INLINE;
	p.num_sge = 2;
	sges[0] = (struct ib_sge){ (uintptr_t)a->buf, a->qp.sq.max_inline, 0 };
	sges[1] = (struct ib_sge){ (uintptr_t)a->buf, 1, 0 };
	KUNIT_EXPECT_EQ(test, post_send(a, &p), -EINVAL);
	expect_silence(eng);
	KUNIT_EXPECT_EQ(test, state_of(a), IB_QPS_RTS);

	/* full: held back by SQD, so that none is taken */
	KUNIT_ASSERT_EQ(test, to_state(a, IB_QPS_SQD), 0);
	p = (struct post){ .op = IB_WR_SEND };
	for (i = 0; i < 255; i++)
		KUNIT_EXPECT_EQ(test, post_send(a, &p), 0);
	KUNIT_EXPECT_EQ(test, post_send(a, &p), -ENOMEM);
}

static struct kunit_case engine_cases[] = {
	KUNIT_CASE_PARAM(eng_send, send_gen_params),
	KUNIT_CASE(eng_read),
	KUNIT_CASE_PARAM(eng_atomic, atomic_gen_params),
	KUNIT_CASE(eng_atomic_write),
	KUNIT_CASE(eng_send_inv),
	KUNIT_CASE(eng_reg_and_inv),
	KUNIT_CASE(eng_user_send),
	KUNIT_CASE_PARAM(eng_user_flush, flush_gen_params),
	KUNIT_CASE(eng_user_flush_among),
	KUNIT_CASE(eng_kernel_flush),
	KUNIT_CASE_PARAM(eng_bind, window_gen_params),
	KUNIT_CASE_PARAM(eng_user_malformed, malformed_gen_params),
	KUNIT_CASE(eng_user_datagram),
	KUNIT_CASE_PARAM(eng_datagram, ud_gen_params),
	KUNIT_CASE(eng_gsi_length),
	KUNIT_CASE(eng_self),
	KUNIT_CASE(eng_unsignalled),
	KUNIT_CASE(eng_post_in_upcall),
	KUNIT_CASE(eng_solicited),
	KUNIT_CASE(eng_post_refused),
	{}
};

static struct kunit_suite engine_suite = {
	.name = "mrsoft_engine",
	.exit = engine_end,
	.test_cases = engine_cases,
};

kunit_test_suite(engine_suite);

MODULE_DESCRIPTION("KUnit suite of mrsoft: operations between two QPs");
MODULE_LICENSE("GPL");
