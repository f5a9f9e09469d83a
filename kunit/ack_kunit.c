// SPDX-License-Identifier: GPL-2.0
/*
 * ack_kunit.c - answers of a responder, with memory that runs out
 *
 * ack.c is compiled in with its two ways to udp.c watched: each packet is kept
 * instead of sent, and the nth allocation fails.  IBA 9.7.4.2, 9.7.5.1.
 */
#include "engine_kunit.h"
#include "wire.h"

static struct {
	int fail_in;	/* allocations that succeed before one fails; -1: all */
	struct sk_buff_head sent;
} net;

static struct sk_buff *watched_alloc(size_t head, size_t payload, gfp_t gfp)
{
	struct sk_buff *skb;

	if (!net.fail_in--)
		return NULL;
	skb = alloc_skb(head + payload, gfp);
	if (skb)
		skb_put(skb, head + payload);
	return skb;
}

static bool watched_xmit(struct mrsoft_qp *qp, const struct mrsoft_av *av,
			 u16 sport, struct mrsoft_route *route,
			 struct sk_buff *skb)
{
	skb_queue_tail(&net.sent, skb);
	return true;
}

#define mrsoft_udp_alloc	watched_alloc
#define mrsoft_wire_xmit	watched_xmit
#include "ack.c"
#undef mrsoft_udp_alloc
#undef mrsoft_wire_xmit

#define PSN	0xfffffe	/* of engine_kunit.h: the READ wraps */
#define MTU	1024
#define PACKETS	4
#define LENGTH	((PACKETS - 1) * MTU + 9)

static struct mrsoft_wire *new_wire(struct kunit *test, struct end *end)
{
	struct mrsoft_wire *wire = kunit_kzalloc(test, sizeof(*wire),
						 GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, wire);
	wire->qp = &end->qp;
	skb_queue_head_init(&net.sent);
	net.fail_in = -1;
	return wire;
}

static struct mrsoft_msg read_msg(struct end *end, u32 psn)
{
	return (struct mrsoft_msg){
		.op = mrsoft_op_find(IB_WR_RDMA_READ, IB_QPT_RC),
		.opcode = IB_WR_RDMA_READ, .psn = psn, .packets = PACKETS,
		.length = LENGTH, .raddr = IOVA, .rkey = end->mr->key.key,
	};
}

/* What window.c does when a READ request is the next packet. */
static void begin_read(struct kunit *test, struct mrsoft_wire *wire,
		       struct end *end, u32 psn)
{
	struct mrsoft_read *read = &wire->rx.read;

	wire->rx.msg = read_msg(end, psn);
	KUNIT_ASSERT_EQ(test, mrsoft_resp_begin(&end->qp, &wire->rx.msg),
			MRSOFT_S_OK);
	wire->rx.begun = true;
	read->msg = &wire->rx.msg;
	read->psn = psn;
	read->first = psn;
	read->end = mrsoft_psn_add(psn, PACKETS);
	wire->rx.epsn = read->end;
}

/*
 * The next packet that was sent; its payload is @len bytes from @off on.  @msn: of
 * the last one, 0: not looked at.
 */
static void expect_data(struct kunit *test, struct end *end, u8 opcode,
			u32 psn, u32 off, u32 len, u32 msn)
{
	struct sk_buff *skb = skb_dequeue(&net.sent);
	const struct mrsoft_aeth *aeth;
	const struct mrsoft_bth *bth;
	u32 head = opcode == 0x0e ? 12 : 16;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	bth = (void *)skb->data;
	KUNIT_EXPECT_EQ(test, bth->opcode, opcode);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(bth->apsn), psn & MRSOFT_PSN_MASK);
	KUNIT_EXPECT_EQ(test, (u32)skb->len, head + len);
	KUNIT_EXPECT_MEMEQ(test, skb->data + head, end->buf + off, len);
	aeth = (void *)(bth + 1);
	if (msn)
		KUNIT_EXPECT_EQ(test, be32_to_cpu(aeth->smsn),
				0x1f000000u | msn);
	kfree_skb(skb);
}

static void ack_read(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *end = &eng->end[1];
	struct mrsoft_wire *wire = new_wire(test, end);

	fill(end->buf, LENGTH, 3);
	begin_read(test, wire, end, PSN);
	KUNIT_EXPECT_EQ(test, mrsoft_ack_read(wire), MRSOFT_S_OK);
	expect_data(test, end, 0x0d, PSN, 0, MTU, 0);
	expect_data(test, end, 0x0e, PSN + 1, MTU, MTU, 0);
	expect_data(test, end, 0x0e, PSN + 2, 2 * MTU, MTU, 0);
	expect_data(test, end, 0x0f, PSN + 3, 3 * MTU, 9, 1);
	KUNIT_EXPECT_TRUE(test, skb_queue_empty(&net.sent));
	KUNIT_EXPECT_FALSE(test, wire->rx.begun);
	KUNIT_EXPECT_EQ(test, end->qp.resp.psn, wire->rx.epsn);
	KUNIT_EXPECT_EQ(test, end->qp.resp.msn, 1u);
}

/*
 * A response for which there is no memory is as one that the network lost: the
 * peer asks for it again, and what it asks for next is served as well.
 */
static void ack_read_no_memory(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *end = &eng->end[1];
	struct mrsoft_wire *wire = new_wire(test, end);
	u32 psn = PSN, i;

	fill(end->buf, LENGTH, 3);
	for (i = 0; i < PACKETS; i++) {
		begin_read(test, wire, end, psn);
		net.fail_in = i;
		KUNIT_EXPECT_EQ(test, mrsoft_ack_read(wire), MRSOFT_S_OK);
		KUNIT_EXPECT_EQ_MSG(test, skb_queue_len(&net.sent), i,
				    "packet %u", i);
		skb_queue_purge(&net.sent);
		KUNIT_EXPECT_FALSE(test, wire->rx.begun);
		KUNIT_EXPECT_NULL(test, wire->rx.read.msg);
		psn = wire->rx.epsn;
		KUNIT_ASSERT_EQ_MSG(test, end->qp.resp.psn, psn, "packet %u",
				    i);
	}
	net.fail_in = -1;
	begin_read(test, wire, end, psn);
	KUNIT_EXPECT_EQ(test, mrsoft_ack_read(wire), MRSOFT_S_OK);
	KUNIT_EXPECT_EQ(test, skb_queue_len(&net.sent), (u32)PACKETS);
	skb_queue_purge(&net.sent);
}

/* Asked for again from the second packet on: it does not count as a message. */
static void ack_read_again(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *end = &eng->end[1];
	struct mrsoft_wire *wire = new_wire(test, end);
	struct mrsoft_read *read = &wire->rx.read;

	fill(end->buf, LENGTH, 3);
	read->again = read_msg(end, PSN + 1);
	read->again.raddr += MTU;
	read->again.length -= MTU;
	read->msg = &read->again;
	read->first = PSN + 1;
	read->psn = PSN + 1;
	read->end = mrsoft_psn_add(PSN, PACKETS);
	KUNIT_EXPECT_EQ(test, mrsoft_ack_read(wire), MRSOFT_S_OK);
	expect_data(test, end, 0x0d, PSN + 1, MTU, MTU, 0);
	expect_data(test, end, 0x0e, PSN + 2, 2 * MTU, MTU, 0);
	expect_data(test, end, 0x0f, PSN + 3, 3 * MTU, 9, 0);
	KUNIT_EXPECT_EQ(test, end->qp.resp.psn, (u32)PSN);
	KUNIT_EXPECT_EQ(test, end->qp.resp.msn, 0u);
}

/* The region goes while its bytes are sent: a NAK in the place of the next. */
static void ack_read_dereg(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *end = &eng->end[1];
	struct mrsoft_wire *wire = new_wire(test, end);
	const struct mrsoft_aeth *aeth;
	struct sk_buff *skb;

	begin_read(test, wire, end, PSN);
	KUNIT_ASSERT_EQ(test, read_one(wire), MRSOFT_S_OK);
	skb_queue_purge(&net.sent);
	KUNIT_ASSERT_EQ(test, drop_mr(end, end->mr), 0);
	KUNIT_EXPECT_EQ(test, mrsoft_ack_read(wire), MRSOFT_S_OK);
	skb = skb_dequeue(&net.sent);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	aeth = (void *)skb->data + sizeof(struct mrsoft_bth);
	KUNIT_EXPECT_EQ(test, skb->data[0], (u8)0x11);
	/* IBA table 45: remote access error */
	KUNIT_EXPECT_EQ(test, be32_to_cpu(aeth->smsn) >> 24, 0x62u);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(((struct mrsoft_bth *)skb->data)->apsn),
			PSN + 1u);
	kfree_skb(skb);
	KUNIT_EXPECT_TRUE(test, skb_queue_empty(&net.sent));
	KUNIT_EXPECT_EQ(test, state_of(end), IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, events(end, IB_EVENT_QP_ACCESS_ERR), 1);
}

/* What the responder says and what travels, IBA tables 43 to 45, 58. */
static void ack_refusals(struct kunit *test)
{
	static const struct {
		enum mrsoft_status status;
		int syndrome;
	} rows[] = {
		{ MRSOFT_S_OK, -1 },
		{ MRSOFT_S_RNR, 0x2d },
		{ MRSOFT_S_SILENT, -1 },
		{ MRSOFT_S_INV_REQ, 0x61 },
		{ MRSOFT_S_REM_ACCESS, 0x62 },
		{ MRSOFT_S_REM_OP, 0x63 },
	};
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *end = &eng->end[1];
	struct mrsoft_wire *wire = new_wire(test, end);
	struct sk_buff *skb;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		mrsoft_ack_refuse(wire, PSN, rows[i].status, 13);
		skb = skb_dequeue(&net.sent);
		KUNIT_EXPECT_EQ_MSG(test, skb ? skb->data[12] : -1,
				    rows[i].syndrome, "row %d", i);
		kfree_skb(skb);
	}
	/* UC never answers */
	end->qp.type = IB_QPT_UC;
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		mrsoft_ack_refuse(wire, PSN, rows[i].status, 13);
	end->qp.type = IB_QPT_RC;
	KUNIT_EXPECT_TRUE(test, skb_queue_empty(&net.sent));
}

static struct kunit_case ack_cases[] = {
	KUNIT_CASE(ack_read),
	KUNIT_CASE(ack_read_no_memory),
	KUNIT_CASE(ack_read_again),
	KUNIT_CASE(ack_read_dereg),
	KUNIT_CASE(ack_refusals),
	{}
};

static struct kunit_suite ack_suite = {
	.name = "mrsoft_ack",
	.exit = engine_end,
	.test_cases = ack_cases,
};

kunit_test_suite(ack_suite);

MODULE_DESCRIPTION("KUnit suite of mrsoft: answers of a responder");
MODULE_LICENSE("GPL");
