// SPDX-License-Identifier: GPL-2.0
/*
 * ops.c - every operation on every QP type, byte for byte; CQs and SRQs
 */
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

#include "world.h"

#define SIZE (2 * MiB)

static void world_new(struct world *w, enum ibv_qp_type type)
{
	struct conf conf = conf_of(type);

	world_open(w, &conf, SIZE);
}

static struct op op_of(struct world *w, enum ibv_wr_opcode opcode,
		       uint32_t len)
{
	return (struct op){
		.opcode = opcode, .wr_id = 1, .laddr = w->mine.p,
		.lkey = w->mine.mr->lkey, .len = len,
		.raddr = (uintptr_t)w->theirs.p, .rkey = w->theirs.mr->rkey,
	};
}

static void do_op(struct world *w, const struct op *op)
{
	OK(post(&w->a, op));
	EXPECT_WC(w->a.scq, op->wr_id, IBV_WC_SUCCESS);
}

static const uint32_t sizes[] = {
	0, 1, 3, 7, 8, 63, 64, 65, 255, 256, 257, 511, 512, 513, 1023, 1024,
	1025, 2047, 2048, 2049, 4095, 4096, 4097, 8191, 65535, 65537,
	256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1, 1024 * 1024 + 3,
};

/* --- data --------------------------------------------------------------------- */

static void send_sizes(const void *arg)
{
	const enum ibv_qp_type *type = arg;
	uint32_t grh = *type == UD ? 40 : 0, limit;
	struct world w;
	struct ibv_wc wc;
	size_t i;
	int imm;

	world_new(&w, *type);
	limit = *type == UD ? 128u << w.c->mtu : SIZE;
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint32_t len = sizes[i], off = i * 37 % 4096;

		if (len > limit)
			break;
		for (imm = 0; imm < 2; imm++) {
			struct op op = op_of(&w, imm ? IBV_WR_SEND_WITH_IMM :
						       IBV_WR_SEND, len);

			op.laddr = w.mine.p + off;
			op.imm = 0xfeed0000 + i;
			fill(w.mine.p + off, len, i);
			memset(w.theirs.p, 0x77, off + grh + len + 64);
			OK(post_recv(&w.b, 9, w.theirs.p + off, len + grh + 9,
				     w.theirs.mr->lkey));
			do_op(&w, &op);
			wc = NEXT_WC(w.b.rcq);
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			CHECK_EQ(wc.wr_id, 9);
			CHECK_EQ(wc.opcode, IBV_WC_RECV);
			CHECK_EQ(wc.byte_len, len + grh);
			CHECK_EQ(wc.qp_num, w.b.qp->qp_num);
			CHECK_EQ(!!(wc.wc_flags & IBV_WC_WITH_IMM), imm);
			CHECK_EQ(!!(wc.wc_flags & IBV_WC_GRH), *type == UD);
			if (imm)
				CHECK_EQ(be32toh(wc.imm_data), op.imm);
			if (*type == UD)
				CHECK_EQ(wc.src_qp, w.a.qp->qp_num);
			CHECK_EQ(filled(w.theirs.p + off + grh, len, i), -1);
			CHECK_EQ(only(w.theirs.p, off, 0x77), -1);
			CHECK_EQ(only(w.theirs.p + off + grh + len, 64, 0x77),
				 -1);
		}
	}
	world_free(&w);
}

static void write_sizes(const void *arg)
{
	const enum ibv_qp_type *type = arg;
	struct world w;
	struct ibv_wc wc;
	size_t i;
	int imm;

	world_new(&w, *type);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint32_t len = sizes[i], off = i * 53 % 4096;

		for (imm = 0; imm < 2; imm++) {
			struct op op = op_of(&w, imm ?
					     IBV_WR_RDMA_WRITE_WITH_IMM :
					     IBV_WR_RDMA_WRITE, len);

			op.raddr += off;
			op.imm = i;
			fill(w.mine.p, len, i);
			memset(w.theirs.p, 0x77, off + len + 64);
			OK(post_recv(&w.b, i, NULL, 0, 0));
			do_op(&w, &op);
			arrive(*type, w.theirs.p + off, len, i);
			CHECK_EQ(filled(w.theirs.p + off, len, i), -1);
			CHECK_EQ(only(w.theirs.p, off, 0x77), -1);
			CHECK_EQ(only(w.theirs.p + off + len, 64, 0x77), -1);
			if (imm) {
				wc = NEXT_WC(w.b.rcq);
				CHECK_EQ(wc.status, IBV_WC_SUCCESS);
				CHECK_EQ(wc.opcode,
					 IBV_WC_RECV_RDMA_WITH_IMM);
				CHECK_EQ(wc.byte_len, len);
				CHECK_EQ(be32toh(wc.imm_data), i);
			}
		}
	}
	world_free(&w);
}

static void read_sizes(const void *arg)
{
	struct world w;
	size_t i;

	(void)arg;
	world_new(&w, RC);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint32_t len = sizes[i], off = i * 41 % 4096;
		struct op op = op_of(&w, IBV_WR_RDMA_READ, len);

		op.laddr = w.mine.p + off;
		op.raddr += i;
		fill(w.theirs.p + i, len, i);
		memset(w.mine.p, 0x66, off + len + 64);
		do_op(&w, &op);
		CHECK_EQ(filled(w.mine.p + off, len, i), -1);
		CHECK_EQ(only(w.mine.p, off, 0x66), -1);
		CHECK_EQ(only(w.mine.p + off + len, 64, 0x66), -1);
	}
	world_free(&w);
}

static void atomics(const void *arg)
{
	uint64_t *far, *old;
	struct world w;
	struct op op;

	(void)arg;
	world_new(&w, RC);
	far = (uint64_t *)(w.theirs.p + 4088);
	old = (uint64_t *)w.mine.p;
	op = op_of(&w, IBV_WR_ATOMIC_CMP_AND_SWP, 8);
	op.raddr += 4088;
	*far = 0x1122334455667788ull;
	op.compare = 1;
	op.swap = 2;
	do_op(&w, &op);
	CHECK_EQ(*old, 0x1122334455667788ull);
	CHECK_EQ(*far, 0x1122334455667788ull);
	op.compare = *far;
	op.swap = ~0ull;
	do_op(&w, &op);
	CHECK_EQ(*old, 0x1122334455667788ull);
	CHECK_EQ(*far, ~0ull);
	op.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	op.compare = 3;
	do_op(&w, &op);
	CHECK_EQ(*old, ~0ull);
	CHECK_EQ(*far, 2);
	world_free(&w);
}

/* Two QPs and the CPU add to one word: nothing is lost. */
static void *adder(void *arg)
{
	uint64_t *word = arg;
	unsigned int i;

	for (i = 0; i < 5000; i++)
		__atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void atomics_add_up(const void *arg)
{
	struct conf conf = conf_of(RC);
	unsigned int i, n = t_rounds(1000);
	pthread_t thread;
	struct end x, y;
	struct world w;
	struct op op;

	(void)arg;
	world_new(&w, RC);
	pair_new(w.c, &conf, &x, &y);
	op = op_of(&w, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
	op.compare = 1;
	CHECK(!pthread_create(&thread, NULL, adder, w.theirs.p));
	for (i = 0; i < n; i++) {
		OK(post(&w.a, &op));
		OK(post(&x, &op));
		EXPECT_WC(w.a.scq, 1, IBV_WC_SUCCESS);
		EXPECT_WC(x.scq, 1, IBV_WC_SUCCESS);
	}
	pthread_join(thread, NULL);
	CHECK_EQ(*(uint64_t *)w.theirs.p, 5000 + 2 * n);
	pair_free(&x, &y);
	world_free(&w);
}

/* As many pieces as the device says, of odd lengths, on both sides. */
static void many_pieces(const void *arg)
{
	const enum ibv_wr_opcode *opcode = arg;
	struct conf conf = conf_of(RC);
	struct ibv_device_attr dev;
	struct ibv_sge from[64], to[64];
	struct ibv_recv_wr *bad, recv = { .wr_id = 3, .sg_list = to };
	uint32_t total = 0;
	struct world w;
	struct op op;
	uint8_t *expect;
	int i, n;

	conf.cap.max_send_wr = conf.cap.max_recv_wr = 4;
	w.c = ctx_open(NULL);
	OK(ibv_query_device(w.c->ibv, &dev));
	n = dev.max_sge;
	CHECK(n <= 64);
	conf.cap.max_send_sge = conf.cap.max_recv_sge = n;
	ctx_close(w.c);
	world_open(&w, &conf, SIZE);
	fill(w.mine.p, SIZE, 2);
	fill(w.theirs.p, SIZE, 3);
	expect = malloc(SIZE);
	for (i = 0; i < n; i++) {
		uint32_t len = i == 5 ? 0 : (i * 1237) % 9000 + 1;

		from[i] = (struct ibv_sge){
			(uintptr_t)w.mine.p + i * 20011, len, w.mine.mr->lkey,
		};
		if (*opcode == IBV_WR_RDMA_READ)
			memcpy(expect + total, w.theirs.p + total, len);
		else
			memcpy(expect + total, w.mine.p + i * 20011, len);
		total += len;
	}
	/* the receiver cuts it elsewhere */
	for (i = 0; i < n; i++)
		to[i] = (struct ibv_sge){
			(uintptr_t)w.theirs.p + i * 30011, total / (n - 1) + 1,
			w.theirs.mr->lkey,
		};
	recv.num_sge = n;
	op = op_of(&w, *opcode, total);
	op.sges = from;
	op.num_sge = n;
	if (*opcode == IBV_WR_SEND)
		OK(ibv_post_recv(w.b.qp, &recv, &bad));
	do_op(&w, &op);
	switch (*opcode) {
	case IBV_WR_SEND: {
		uint32_t at = 0, len = total / (n - 1) + 1;

		EXPECT_WC(w.b.rcq, 3, IBV_WC_SUCCESS);
		for (i = 0; at < total; i++, at += len)
			CHECK_EQ(memcmp(w.theirs.p + i * 30011, expect + at,
					at + len > total ? total - at : len),
				 0);
		break;
	}
	case IBV_WR_RDMA_WRITE:
		CHECK_EQ(memcmp(w.theirs.p, expect, total), 0);
		CHECK_EQ(filled(w.theirs.p + total, 1, 3) == -1, 0);
		break;
	default: {
		uint32_t at = 0;

		for (i = 0; i < n; at += from[i++].length)
			CHECK_EQ(memcmp(w.mine.p + i * 20011, expect + at,
					from[i].length), 0);
	}
	}
	free(expect);
	world_free(&w);
}

/* Inline data is taken when it is posted, whatever its lkey. */
static void inline_data(const void *arg)
{
	const enum ibv_qp_type *type = arg;
	struct conf conf = conf_of(*type);
	uint32_t grh = *type == UD ? 40 : 0, len, max;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint8_t small[4096];
	struct world w;
	struct op op;

	conf.cap.max_inline_data = 200;
	world_open(&w, &conf, SIZE);
	OK(ibv_query_qp(w.a.qp, &attr, 0, &init));
	max = init.cap.max_inline_data;
	CHECK(max >= 200);
	for (len = 0; len <= max; len += len < 8 ? 1 : 31) {
		op = op_of(&w, IBV_WR_SEND, len);
		op.laddr = small;
		op.lkey = 0xdead;
		op.flags = IBV_SEND_INLINE;
		fill(small, len, len);
		OK(post_recv(&w.b, 2, w.theirs.p, len + grh,
			     w.theirs.mr->lkey));
		OK(post(&w.a, &op));
		memset(small, 0, sizeof(small));
		EXPECT_WC(w.a.scq, 1, IBV_WC_SUCCESS);
		EXPECT_WC(w.b.rcq, 2, IBV_WC_SUCCESS);
		CHECK_EQ(filled(w.theirs.p + grh, len, len), -1);
		if (*type == UD)
			continue;
		op.opcode = IBV_WR_RDMA_WRITE;
		fill(small, len, len + 1);
		OK(post(&w.a, &op));
		memset(small, 0, sizeof(small));
		EXPECT_WC(w.a.scq, 1, IBV_WC_SUCCESS);
		arrive(*type, w.theirs.p, len, len + 1);
		CHECK_EQ(filled(w.theirs.p, len, len + 1), -1);
	}
	op.len = max + 1;
	CHECK(post(&w.a, &op));
	world_free(&w);
}

/* An empty message names no memory: its keys may be anything. */
static void empty(const void *arg)
{
	struct world w;

	(void)arg;
	world_new(&w, RC);
	DO(&w.a, .opcode = IBV_WR_RDMA_WRITE, .rkey = 0x999, .raddr = 5);
	DO(&w.a, .opcode = IBV_WR_RDMA_READ, .rkey = 0x999, .raddr = 5);
	OK(post_recv(&w.b, 1, NULL, 0, 0));
	DO(&w.a, .opcode = IBV_WR_SEND);
	EXPECT_WC(w.b.rcq, 1, IBV_WC_SUCCESS);
	OK(post_recv(&w.b, 1, NULL, 0, 0));
	DO(&w.a, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .rkey = 0x999);
	EXPECT_WC(w.b.rcq, 1, IBV_WC_SUCCESS);
	world_free(&w);
}

/* IBA 9.7.6.1: 2^31 bytes and not one more. */
static void longest(const void *arg)
{
	struct conf conf = conf_of(RC);
	size_t len = 1ull << 31, unit = 1 * MiB;
	struct world w;
	struct ibv_sge two[2];
	struct buf far, near;
	struct op op;

	(void)arg;
	world_open(&w, &conf, SIZE);
	op = op_of(&w, IBV_WR_RDMA_WRITE, 0x80000001u);
	FAIL_WITH(&w.a, IBV_WC_LOC_LEN_ERR, MRSOFT_R_MSG_TOO_LONG,
		  .opcode = IBV_WR_RDMA_WRITE, .laddr = w.mine.p,
		  .lkey = w.mine.mr->lkey, .len = 0x80000001u,
		  .raddr = (uintptr_t)w.theirs.p, .rkey = w.theirs.mr->rkey);
	pair_again(&w.a, &w.b);
	/* a sum that has no 32 bits */
	two[0] = two[1] = (struct ibv_sge){ (uintptr_t)w.mine.p, 0xffffffff,
					    w.mine.mr->lkey };
	op.sges = two;
	op.num_sge = 2;
	OK(post(&w.a, &op));
	EXPECT_WC(w.a.scq, 1, IBV_WC_LOC_LEN_ERR);
	pair_again(&w.a, &w.b);
	/* small regions: refused by their bounds */
	op = op_of(&w, IBV_WR_RDMA_READ, 0x80000000u);
	OK(post(&w.a, &op));
	EXPECT_WC_WHY(w.a.scq, 1, IBV_WC_LOC_PROT_ERR, MRSOFT_R_OUTSIDE);
	pair_again(&w.a, &w.b);
	if (t_span() < GiB) {
		t_note("2^31 bytes themselves: only where there is room");
		world_free(&w);
		return;
	}
	far = buf_sparse(w.c->pd, len, unit, MR_ALL);
	near = buf_sparse(w.c->pd, len, unit, MR_ALL);
	fill(near.p, unit, 9);
	DO(&w.a, .opcode = IBV_WR_RDMA_WRITE, .laddr = near.p,
	   .lkey = near.mr->lkey, .len = 0x80000000u,
	   .raddr = (uintptr_t)far.p, .rkey = far.mr->rkey);
	CHECK_EQ(filled(far.p + len - unit, unit, 9), -1);
	buf_free(&far);
	buf_free(&near);
	world_free(&w);
}

/* A user polls the last bytes: what lies before them is there already. */
static void last_bytes_last(const void *arg)
{
	unsigned int i, n = t_rounds(300);
	size_t len = 300 * KiB;
	struct world w;
	struct op op;

	(void)arg;
	world_new(&w, RC);
	op = op_of(&w, IBV_WR_RDMA_WRITE, len);
	for (i = 1; i <= n; i++) {
		volatile uint8_t *tail = w.theirs.p + len - 1;
		uint64_t limit = t_now() + t_patience();

		memset(w.mine.p, i, len);
		OK(post(&w.a, &op));
		while (*tail != (i & 0xff))
			CHECK(t_now() < limit);
		CHECK_EQ(only(w.theirs.p, len, i), -1);
		EXPECT_WC(w.a.scq, 1, IBV_WC_SUCCESS);
	}
	world_free(&w);
}

/* --- queues ---------------------------------------------------------------------- */

static void unsignalled(const void *arg)
{
	unsigned int i, n = t_rounds(2000);
	struct world w;
	struct op op;

	(void)arg;
	world_new(&w, RC);
	op = op_of(&w, IBV_WR_RDMA_WRITE, 64);
	for (i = 0; i < n; i++) {
		uint64_t limit = t_now() + t_patience();
		int err;

		op.quiet = i % 50 != 49;
		op.wr_id = i;
		/* full for the moment: the slots come back without a CQE */
		while ((err = post(&w.a, &op)) == ENOMEM)
			CHECK(t_now() < limit);
		OK(err);
		if (!op.quiet)
			EXPECT_WC(w.a.scq, i, IBV_WC_SUCCESS);
	}
	EXPECT_EMPTY(w.a.scq, 5);
	world_free(&w);
}

static void signal_all(const void *arg)
{
	struct conf conf = conf_of(RC);
	struct world w;
	struct op op;

	(void)arg;
	conf.sig_all = 1;
	world_open(&w, &conf, SIZE);
	op = op_of(&w, IBV_WR_RDMA_WRITE, 64);
	op.quiet = true;
	do_op(&w, &op);
	world_free(&w);
}

/* A fenced SEND carries what the READ before it brought. */
static void fence(const void *arg)
{
	unsigned int i, n = t_rounds(100);
	struct world w;

	(void)arg;
	world_new(&w, RC);
	for (i = 0; i < n; i++) {
		struct op get = op_of(&w, IBV_WR_RDMA_READ, 100000);
		struct op tell = op_of(&w, IBV_WR_SEND, 100000);

		get.quiet = true;
		tell.flags = IBV_SEND_FENCE;
		tell.wr_id = 2;
		fill(w.theirs.p, 100000, i);
		OK(post_recv(&w.b, 5, w.theirs.p + MiB, 100000,
			     w.theirs.mr->lkey));
		OK(post(&w.a, &get));
		OK(post(&w.a, &tell));
		EXPECT_WC(w.a.scq, 2, IBV_WC_SUCCESS);
		EXPECT_WC(w.b.rcq, 5, IBV_WC_SUCCESS);
		CHECK_EQ(filled(w.theirs.p + MiB, 100000, i), -1);
	}
	world_free(&w);
}

static void queue_full(const void *arg)
{
	struct conf conf = conf_of(RC);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	unsigned int i;
	struct world w;
	struct op op;

	(void)arg;
	conf.rnr_retry = 7;
	conf.min_rnr = 12;
	conf.cap.max_send_wr = 5;
	conf.cap.max_recv_wr = 6;
	world_open(&w, &conf, SIZE);
	OK(ibv_query_qp(w.a.qp, &attr, 0, &init));
	op = op_of(&w, IBV_WR_SEND, 0);
	/* the first waits for a receive, and the slot is taken until then */
	for (i = 0; i < init.cap.max_send_wr; i++) {
		op.wr_id = i;
		OK(post(&w.a, &op));
	}
	CHECK(post(&w.a, &op));
	for (i = 0; i < init.cap.max_recv_wr; i++)
		OK(post_recv(&w.b, i, NULL, 0, 0));
	CHECK(post_recv(&w.b, i, NULL, 0, 0));
	for (i = 0; i < init.cap.max_send_wr; i++) {
		if (i >= init.cap.max_recv_wr)
			OK(post_recv(&w.b, i, NULL, 0, 0));
		EXPECT_WC(w.a.scq, i, IBV_WC_SUCCESS);
		EXPECT_WC(w.b.rcq, i, IBV_WC_SUCCESS);
	}
	world_free(&w);
}

/* --- completion channels ----------------------------------------------------------- */

static bool cq_event(struct ibv_comp_channel *channel, unsigned int ms)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&pfd, 1, ms) != 1)
		return false;
	OK(ibv_get_cq_event(channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	return true;
}

static void arming(const void *arg)
{
	struct conf conf = conf_of(RC);
	struct ctx *c = ctx_open(NULL);
	struct buf buf = buf_new(c->pd, 4096, MR_ALL);
	struct ibv_comp_channel *ch = ibv_create_comp_channel(c->ibv);
	struct end a, b;
	unsigned int i;

	(void)arg;
	CHECK(ch);
	a = end_new(c, &conf);
	conf.channel = ch;
	b = end_new(c, &conf);
	pair_connect(&a, &b);
#define SEND(f) do { \
	OK(post_recv(&b, 1, NULL, 0, 0)); \
	DO(&a, .opcode = IBV_WR_SEND, .flags = f); \
	EXPECT_WC(b.rcq, 1, IBV_WC_SUCCESS); \
} while (0)
	/* not armed: nothing; armed: once */
	SEND(0);
	CHECK(!cq_event(ch, 20));
	OK(ibv_req_notify_cq(b.rcq, 0));
	SEND(0);
	CHECK(cq_event(ch, t_patience()));
	SEND(0);
	CHECK(!cq_event(ch, 20));
	/* solicited only */
	OK(ibv_req_notify_cq(b.rcq, 1));
	SEND(0);
	CHECK(!cq_event(ch, 20));
	SEND(IBV_SEND_SOLICITED);
	CHECK(cq_event(ch, t_patience()));
	SEND(IBV_SEND_SOLICITED);
	CHECK(!cq_event(ch, 20));
	/* an error counts as solicited */
	OK(ibv_req_notify_cq(b.rcq, 1));
	OK(post_recv(&b, 2, NULL, 0, 0));
	OK(end_to(&b, IBV_QPS_ERR));
	CHECK(cq_event(ch, t_patience()));
	EXPECT_WC(b.rcq, 2, IBV_WC_WR_FLUSH_ERR);
	pair_again(&a, &b);

	/* arm, poll, wait: no wake-up is lost */
	for (i = 0; i < t_rounds(300); i++) {
		struct op op = { .opcode = IBV_WR_SEND };

		OK(ibv_req_notify_cq(b.rcq, 0));
		OK(post_recv(&b, i, NULL, 0, 0));
		OK(post(&a, &op));
		CHECK(cq_event(ch, t_patience()));
		EXPECT_WC(b.rcq, i, IBV_WC_SUCCESS);
		EXPECT_WC(a.scq, 0, IBV_WC_SUCCESS);
	}
	pair_free(&a, &b);
	OK(ibv_destroy_comp_channel(ch));
	buf_free(&buf);
	ctx_close(c);
}

/* librxe has no ibv_modify_cq: the command by hand. */
static int moderate(struct ibv_cq *cq, uint16_t count, uint16_t period)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
		struct ib_uverbs_ex_modify_cq cmd;
	} msg = {
		.hdr.command = IB_USER_VERBS_CMD_FLAG_EXTENDED |
			       IB_USER_VERBS_EX_CMD_MODIFY_CQ,
		.hdr.in_words = sizeof(msg.cmd) / 8,
		.cmd.cq_handle = cq->handle,
		.cmd.attr_mask = IBV_CQ_ATTR_MODERATE,
		.cmd.attr.cq_count = count,
		.cmd.attr.cq_period = period,
	};
	int fd = cq->context->cmd_fd;

	return write(fd, &msg, sizeof(msg)) == sizeof(msg) ? 0 : errno;
}

/* Fewer than the count: the event is late, by the period at most, and not lost. */
static void moderation(const void *arg)
{
	struct conf conf = conf_of(RC);
	struct ctx *c = ctx_open(NULL);
	struct ibv_comp_channel *ch = ibv_create_comp_channel(c->ibv);
	struct ibv_device_attr_ex attr;
	unsigned int i, late = 0;
	struct end a, b;

	(void)arg;
	CHECK(ch);
	OK(ibv_query_device_ex(c->ibv, NULL, &attr));
	CHECK(attr.cq_mod_caps.max_cq_count == UINT16_MAX);
	CHECK(attr.cq_mod_caps.max_cq_period == UINT16_MAX);
	a = end_new(c, &conf);
	conf.channel = ch;
	b = end_new(c, &conf);
	pair_connect(&a, &b);
	OK(moderate(b.rcq, 8, UINT16_MAX));
	/* a slow machine may take longer than the period, but not each time */
	for (i = 0; i < 20; i++) {
		OK(ibv_req_notify_cq(b.rcq, 0));
		SEND(0);
		SEND(0);
		late += !cq_event(ch, 0) && cq_event(ch, t_patience());
	}
	CHECK(late);
	OK(moderate(b.rcq, 0, 0));
	OK(ibv_req_notify_cq(b.rcq, 0));
	SEND(0);
	CHECK(cq_event(ch, t_patience()));
	pair_free(&a, &b);
	OK(ibv_destroy_comp_channel(ch));
	ctx_close(c);
}

static void cq_resize(const void *arg)
{
	struct conf conf = conf_of(RC);
	unsigned int i, next = 0, sent = 0;
	struct world w;

	(void)arg;
	conf.cqe = 31;
	world_open(&w, &conf, SIZE);
	for (i = 0; i < 20; i++)
		DO(&w.a, .opcode = IBV_WR_RDMA_WRITE, .quiet = true,
		   .wr_id = sent);
	for (i = 0; i < t_rounds(40); i++) {
		struct op op = { .opcode = IBV_WR_RDMA_WRITE };
		int j, size = i & 1 ? 31 : 1023, n = 20;

		for (j = 0; j < n; j++) {
			op.wr_id = sent++;
			OK(post(&w.a, &op));
			if (j == n / 2)
				OK(ibv_resize_cq(w.a.scq, size));
		}
		CHECK(w.a.scq->cqe >= size);
		while (next < sent)
			EXPECT_WC(w.a.scq, next++, IBV_WC_SUCCESS);
	}
	/* too small for what is in it */
	OK(ibv_resize_cq(w.a.scq, 63));
	for (i = 0; i < 20; i++)
		OK(post(&w.a, &(struct op){ .opcode = IBV_WR_RDMA_WRITE,
					    .wr_id = sent++ }));
	t_sleep(50);
	CHECK_EQ(ibv_resize_cq(w.a.scq, 5), EINVAL);
	CHECK_EQ(ibv_resize_cq(w.a.scq, 1 << 30), EINVAL);
	while (next < sent)
		EXPECT_WC(w.a.scq, next++, IBV_WC_SUCCESS);
	OK(ibv_resize_cq(w.a.scq, 5));
	EXPECT_EMPTY(w.a.scq, 5);
	world_free(&w);
}

/* A full CQ: the event of the CQ, the QP is lost, nothing else is. */
static void cq_overflow(const void *arg)
{
	struct conf conf = conf_of(RC);
	unsigned int i, size, fatal = 0, cq_err = 0;
	struct ibv_async_event event;
	struct end x, y;
	struct world w;
	struct ibv_wc wc;

	(void)arg;
	world_new(&w, RC);
	conf.cqe = 7;
	pair_new(w.c, &conf, &x, &y);
	size = x.scq->cqe;
	for (i = 0; i < size + 2 && i < 60; i++)
		OK(post(&x, &(struct op){ .opcode = IBV_WR_RDMA_WRITE,
					  .wr_id = i }));
	while (!cq_err || !fatal) {
		CHECK(wait_event(w.c, &event, t_patience()));
		if (event.event_type == IBV_EVENT_CQ_ERR) {
			CHECK(event.element.cq == x.scq);
			cq_err++;
		} else if (event.event_type == IBV_EVENT_QP_FATAL) {
			CHECK(event.element.qp == x.qp);
			fatal++;
		} else {
			CHECK_EQ(event.event_type, IBV_EVENT_COMM_EST);
		}
	}
	expect_state(&x, IBV_QPS_ERR);
	for (i = 0; i < size; i++) {
		wc = NEXT_WC(x.scq);
		CHECK_EQ(wc.wr_id, i);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	}
	DO(&w.a, .opcode = IBV_WR_RDMA_WRITE);
	pair_free(&x, &y);
	world_free(&w);
}

/* --- shared receive queues ------------------------------------------------------------ */

static void srq_limit(const void *arg)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = 20, .max_sge = 3 },
	};
	struct conf conf = conf_of(RC);
	struct ctx *c = ctx_open(NULL);
	struct ibv_srq_attr attr = { .srq_limit = 5 };
	struct ibv_srq *srq = ibv_create_srq(c->pd, &init);
	struct end a, b;
	int i, round;

	(void)arg;
	CHECK(srq);
	conf.srq = srq;
	pair_new(c, &conf, &a, &b);
	CHECK_EQ(ibv_destroy_srq(srq), EBUSY);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 10; i++)
			OK(post_srq(srq, i, NULL, 0, 0));
		OK(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
		OK(ibv_query_srq(srq, &attr));
		CHECK_EQ(attr.srq_limit, 5);
		CHECK(attr.max_wr >= 20);
		CHECK(attr.max_sge >= 3);
		for (i = 0; i < 10; i++) {
			DO(&a, .opcode = IBV_WR_SEND);
			EXPECT_WC(b.rcq, i, IBV_WC_SUCCESS);
			if (i < 5)
				EXPECT_NO_EVENT(c, 5);
			else if (i == 5)
				EXPECT_EVENT(c, IBV_EVENT_SRQ_LIMIT_REACHED,
					     srq);
		}
		EXPECT_NO_EVENT(c, 10);
		OK(ibv_query_srq(srq, &attr));
		CHECK_EQ(attr.srq_limit, 0);
		attr.srq_limit = 5;
	}
	attr.srq_limit = 1 << 20;
	CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	pair_free(&a, &b);
	OK(ibv_destroy_srq(srq));
	ctx_close(c);
}

static void srq_resize(const void *arg)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = 7, .max_sge = 1 },
	};
	struct conf conf = conf_of(RC);
	struct ctx *c = ctx_open(NULL);
	struct ibv_srq_attr attr = {};
	struct ibv_srq *srq = ibv_create_srq(c->pd, &init);
	unsigned int i, in = 0, out = 0, cap = init.attr.max_wr;
	struct buf buf = buf_new(c->pd, 4096, MR_ALL);
	struct end a, b;

	(void)arg;
	CHECK(srq);
	conf.srq = srq;
	pair_new(c, &conf, &a, &b);
	for (i = 0; i < cap; i++)
		OK(post_srq(srq, in++, buf.p, 8, buf.mr->lkey));
	CHECK(post_srq(srq, in, NULL, 0, 0));
	attr.max_wr = 60;
	OK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	OK(ibv_query_srq(srq, &attr));
	CHECK(attr.max_wr >= 60);
	while (in < 60)
		OK(post_srq(srq, in++, buf.p, 8, buf.mr->lkey));
	/* fewer slots than entries: refused, nothing lost */
	attr.max_wr = 20;
	CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = 1 << 28;
	CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	while (out < 50) {
		DO(&a, .opcode = IBV_WR_SEND);
		EXPECT_WC(b.rcq, out++, IBV_WC_SUCCESS);
	}
	attr.max_wr = 15;
	OK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	while (out < in) {
		DO(&a, .opcode = IBV_WR_SEND);
		EXPECT_WC(b.rcq, out++, IBV_WC_SUCCESS);
	}
	pair_free(&a, &b);
	OK(ibv_destroy_srq(srq));
	buf_free(&buf);
	ctx_close(c);
}

/* --- who talks to whom ------------------------------------------------------------------- */

static void itself(const void *arg)
{
	const enum ibv_qp_type *type = arg;
	struct conf conf = conf_of(*type);
	uint32_t grh = *type == UD ? 40 : 0;
	struct addr self;
	struct world w;
	struct end e;

	world_new(&w, *type);
	e = end_new(w.c, &conf);
	self = end_addr(&e);
	end_connect(&e, &self);
	fill(w.mine.p, 300, 1);
	OK(post_recv(&e, 4, w.theirs.p, 300 + grh, w.theirs.mr->lkey));
	DO(&e, .opcode = IBV_WR_SEND, .laddr = w.mine.p, .len = 300,
	   .lkey = w.mine.mr->lkey);
	EXPECT_WC(e.rcq, 4, IBV_WC_SUCCESS);
	CHECK_EQ(filled(w.theirs.p + grh, 300, 1), -1);
	if (*type != UD)
		DO(&e, .opcode = IBV_WR_RDMA_WRITE, .laddr = w.mine.p,
		   .len = MiB, .lkey = w.mine.mr->lkey,
		   .raddr = (uintptr_t)w.theirs.p, .rkey = w.theirs.mr->rkey);
	if (*type == RC) {
		DO(&e, .opcode = IBV_WR_RDMA_READ, .laddr = w.mine.p,
		   .len = MiB, .lkey = w.mine.mr->lkey,
		   .raddr = (uintptr_t)w.theirs.p, .rkey = w.theirs.mr->rkey);
		/* over the very same bytes */
		DO(&e, .opcode = IBV_WR_RDMA_READ, .laddr = w.mine.p,
		   .len = MiB, .lkey = w.mine.mr->lkey,
		   .raddr = (uintptr_t)w.mine.p, .rkey = w.mine.mr->rkey);
		DO(&e, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		   .laddr = w.mine.p, .len = 8, .lkey = w.mine.mr->lkey,
		   .raddr = (uintptr_t)w.mine.p, .rkey = w.mine.mr->rkey);
		/* on a wire the QP is in error before the answer reaches it */
		FAIL_WITH(&e, t_wire() ? IBV_WC_WR_FLUSH_ERR :
					 IBV_WC_REM_ACCESS_ERR, -1,
			  .opcode = IBV_WR_RDMA_READ, .laddr = w.mine.p,
			  .len = 8, .lkey = w.mine.mr->lkey, .rkey = 0x999);
		expect_state(&e, IBV_QPS_ERR);
	}
	end_free(&e);
	world_free(&w);
}

static void two_devices(const void *arg)
{
	const enum ibv_qp_type *type = arg;
	struct conf conf = conf_of(*type);
	uint32_t grh = *type == UD ? 40 : 0;
	struct ctx *ca = ctx_open(NULL), *cb = ctx_open(ctx_second());
	struct buf mine = buf_new(ca->pd, 64 * KiB, MR_ALL);
	struct buf theirs = buf_new(cb->pd, 64 * KiB, MR_ALL);
	struct end a, b;

	pair_new2(ca, cb, &conf, &a, &b);
	fill(mine.p, 1000, 7);
	OK(post_recv(&b, 4, theirs.p, 1000 + grh, theirs.mr->lkey));
	DO(&a, .opcode = IBV_WR_SEND, .laddr = mine.p, .len = 1000,
	   .lkey = mine.mr->lkey);
	EXPECT_WC(b.rcq, 4, IBV_WC_SUCCESS);
	CHECK_EQ(filled(theirs.p + grh, 1000, 7), -1);
	if (*type == RC) {
		DO(&b, .opcode = IBV_WR_RDMA_READ, .laddr = theirs.p,
		   .len = 64 * KiB, .lkey = theirs.mr->lkey,
		   .raddr = (uintptr_t)mine.p, .rkey = mine.mr->rkey);
		/* a key of one device means nothing to the other */
		FAIL_WITH(&a, IBV_WC_LOC_PROT_ERR, -1,
			  .opcode = IBV_WR_RDMA_WRITE, .laddr = theirs.p,
			  .len = 64, .lkey = 0x7ffff00,
			  .raddr = (uintptr_t)theirs.p,
			  .rkey = theirs.mr->rkey);
	}
	pair_free(&a, &b);
	buf_free(&mine);
	buf_free(&theirs);
	ctx_close(ca);
	ctx_close(cb);
}

/* UD: the header names the sender, and an AH made of it answers. */
static void ud_answer(const void *arg)
{
	struct world w;
	struct ibv_wc wc;
	struct ibv_ah *ah;

	(void)arg;
	world_new(&w, UD);
	OK(post_recv(&w.b, 1, w.theirs.p, 140, w.theirs.mr->lkey));
	DO(&w.a, .opcode = IBV_WR_SEND, .laddr = w.mine.p, .len = 100,
	   .lkey = w.mine.mr->lkey);
	wc = NEXT_WC(w.b.rcq);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	ah = ibv_create_ah_from_wc(w.c->pd, &wc,
				   (struct ibv_grh *)w.theirs.p, 1);
	CHECK(ah);
	OK(ibv_destroy_ah(w.b.ah));
	w.b.ah = ah;
	w.b.peer_qpn = wc.src_qp;
	OK(post_recv(&w.a, 2, w.theirs.p, 140, w.theirs.mr->lkey));
	DO(&w.b, .opcode = IBV_WR_SEND, .laddr = w.mine.p, .len = 100,
	   .lkey = w.mine.mr->lkey);
	EXPECT_WC(w.a.rcq, 2, IBV_WC_SUCCESS);
	world_free(&w);
}

/* Many pairs at once, both ways, all kinds, nobody starves. */
static void crowd(const void *arg)
{
	struct conf conf = conf_of(RC);
	unsigned int i, j, n = t_slow() > 3 ? 8 : 32;
	struct end *a = calloc(n, sizeof(*a)), *b = calloc(n, sizeof(*b));
	struct world w;

	(void)arg;
	conf.cap.max_send_wr = conf.cap.max_recv_wr = 16;
	conf.cqe = 32;
	/* half a second: it is about who gets a turn, not about when */
	if (t_wire())
		conf.timeout = 17;
	world_new(&w, RC);
	for (i = 0; i < n; i++)
		pair_new(w.c, &conf, &a[i], &b[i]);
	for (j = 0; j < 10; j++) {
		for (i = 0; i < n; i++) {
			struct op op = op_of(&w, j & 1 ? IBV_WR_RDMA_READ :
					     IBV_WR_RDMA_WRITE, 100000);

			op.wr_id = j;
			OK(post(&a[i], &op));
			OK(post(&b[i], &op));
		}
	}
	for (i = 0; i < n; i++) {
		for (j = 0; j < 10; j++) {
			EXPECT_WC(a[i].scq, j, IBV_WC_SUCCESS);
			EXPECT_WC(b[i].scq, j, IBV_WC_SUCCESS);
		}
		pair_free(&a[i], &b[i]);
	}
	world_free(&w);
}

static const enum ibv_qp_type rc = RC, uc = UC, ud = UD;
static const enum ibv_wr_opcode op_send = IBV_WR_SEND,
	op_write = IBV_WR_RDMA_WRITE, op_read = IBV_WR_RDMA_READ;

static const struct t_case cases[] = {
	{ "rc_send", send_sizes, &rc, 0 },
	{ "uc_send", send_sizes, &uc, 0 },
	{ "ud_send", send_sizes, &ud, 0 },
	{ "rc_write", write_sizes, &rc, 0 },
	{ "uc_write", write_sizes, &uc, 0 },
	{ "rc_read", read_sizes, NULL, 0 },
	{ "atomics", atomics, NULL, 0 },
	{ "atomics_add_up", atomics_add_up, NULL, 0 },
	{ "many_pieces_send", many_pieces, &op_send, 0 },
	{ "many_pieces_write", many_pieces, &op_write, 0 },
	{ "many_pieces_read", many_pieces, &op_read, 0 },
	{ "rc_inline", inline_data, &rc, 0 },
	{ "uc_inline", inline_data, &uc, 0 },
	{ "ud_inline", inline_data, &ud, 0 },
	{ "empty", empty, NULL, 0 },
	{ "longest", longest, NULL, 60 },
	{ "last_bytes_last", last_bytes_last, NULL, 0 },
	{ "unsignalled", unsignalled, NULL, 0 },
	{ "signal_all", signal_all, NULL, 0 },
	{ "fence", fence, NULL, 0 },
	{ "queue_full", queue_full, NULL, 0 },
	{ "arming", arming, NULL, 0 },
	{ "moderation", moderation, NULL, 0 },
	{ "cq_resize", cq_resize, NULL, 0 },
	{ "cq_overflow", cq_overflow, NULL, 0 },
	{ "srq_limit", srq_limit, NULL, 0 },
	{ "srq_resize", srq_resize, NULL, 0 },
	{ "rc_itself", itself, &rc, 0 },
	{ "uc_itself", itself, &uc, 0 },
	{ "ud_itself", itself, &ud, 0 },
	{ "rc_two_devices", two_devices, &rc, 0 },
	{ "ud_two_devices", two_devices, &ud, 0 },
	{ "ud_answer", ud_answer, NULL, 0 },
	{ "crowd", crowd, NULL, 30 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
