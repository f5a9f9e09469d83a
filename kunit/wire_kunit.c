// SPDX-License-Identifier: GPL-2.0
/*
 * wire_kunit.c - packets: table of opcodes, checksum, checks, order, replay
 *
 * The tables are copied from the IBA by hand, not from the driver.  The checksums
 * come from wire_vectors.py, which asks an implementation of somebody else.  What
 * needs no netdev and no QP is here, tools/testing/selftests/packets.c has the
 * rest.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/if_vlan.h>
#include <linux/module.h>

#include "rx.c"
#include "window.c"

/* --- opcodes -------------------------------------------------------------- */

#define F	MRSOFT_PKTF_FIRST
#define L	MRSOFT_PKTF_LAST
#define ONLY	(F | L)
#define IMM	MRSOFT_PKTF_IMM
#define INV	MRSOFT_PKTF_INV
#define DATA	MRSOFT_PKTF_PAYLOAD

struct opcode_row {
	u8 opcode;
	u8 kind;
	u8 flags;
	u8 ext;		/* bytes of the headers behind the BTH */
};

/* IBA 9.2, tables 38 and 39; Annex A19.  All of RC; UC is a part of it. */
static const struct opcode_row rc_rows[] = {
	{ 0x00, MRSOFT_PKT_SEND, F | DATA, 0 },
	{ 0x01, MRSOFT_PKT_SEND, DATA, 0 },
	{ 0x02, MRSOFT_PKT_SEND, L | DATA, 0 },
	{ 0x03, MRSOFT_PKT_SEND, L | IMM | DATA, 4 },
	{ 0x04, MRSOFT_PKT_SEND, ONLY | DATA, 0 },
	{ 0x05, MRSOFT_PKT_SEND, ONLY | IMM | DATA, 4 },
	{ 0x06, MRSOFT_PKT_WRITE, F | DATA, 16 },
	{ 0x07, MRSOFT_PKT_WRITE, DATA, 0 },
	{ 0x08, MRSOFT_PKT_WRITE, L | DATA, 0 },
	{ 0x09, MRSOFT_PKT_WRITE, L | IMM | DATA, 4 },
	{ 0x0a, MRSOFT_PKT_WRITE, ONLY | DATA, 16 },
	{ 0x0b, MRSOFT_PKT_WRITE, ONLY | IMM | DATA, 20 },
	{ 0x0c, MRSOFT_PKT_READ, ONLY, 16 },
	{ 0x0d, MRSOFT_PKT_READ_RESP, F | DATA, 4 },
	{ 0x0e, MRSOFT_PKT_READ_RESP, DATA, 0 },
	{ 0x0f, MRSOFT_PKT_READ_RESP, L | DATA, 4 },
	{ 0x10, MRSOFT_PKT_READ_RESP, ONLY | DATA, 4 },
	{ 0x11, MRSOFT_PKT_ACK, ONLY, 4 },
	{ 0x12, MRSOFT_PKT_ATOMIC_ACK, ONLY, 12 },
	{ 0x13, MRSOFT_PKT_ATOMIC, ONLY, 28 },
	{ 0x14, MRSOFT_PKT_ATOMIC, ONLY, 28 },
	{ 0x16, MRSOFT_PKT_SEND, L | INV | DATA, 4 },
	{ 0x17, MRSOFT_PKT_SEND, ONLY | INV | DATA, 4 },
	{ 0x1c, MRSOFT_PKT_FLUSH, ONLY, 20 },
	{ 0x1d, MRSOFT_PKT_ATOMIC_WRITE, ONLY | DATA, 16 },
};

static const struct opcode_row ud_rows[] = {
	{ 0x64, MRSOFT_PKT_SEND, ONLY | DATA, 8 },
	{ 0x65, MRSOFT_PKT_SEND, ONLY | IMM | DATA, 12 },
};

/* What the specification says of an opcode, or NULL. */
static const struct opcode_row *row_of(u8 opcode, enum ib_qp_type *service)
{
	const struct opcode_row *rows = rc_rows;
	int i, n = ARRAY_SIZE(rc_rows);

	*service = IB_QPT_RC;
	if (opcode >= 0x20 && opcode <= 0x2b) {
		*service = IB_QPT_UC;
		opcode -= 0x20;
	} else if (opcode >= 0x60) {
		*service = IB_QPT_UD;
		rows = ud_rows;
		n = ARRAY_SIZE(ud_rows);
	}
	for (i = 0; i < n; i++)
		if (rows[i].opcode == opcode)
			return &rows[i];
	return NULL;
}

static void wire_opcodes(struct kunit *test)
{
	const struct mrsoft_packet_type *type;
	enum ib_qp_type service, found;
	const struct opcode_row *row;
	int i, known = 0;

	for (i = 0; i < 256; i++) {
		found = IB_QPT_MAX;
		type = mrsoft_packet_find(i, &found);
		row = row_of(i, &service);
		if (!row && i < 0x20) {
			/* reserved: one of RC, which a responder refuses */
			KUNIT_ASSERT_NOT_NULL_MSG(test, type, "opcode %#x", i);
			KUNIT_EXPECT_EQ_MSG(test, found, IB_QPT_RC,
					    "opcode %#x", i);
			KUNIT_EXPECT_EQ_MSG(test, type->kind,
					    MRSOFT_PKT_RESERVED,
					    "opcode %#x", i);
			continue;
		}
		KUNIT_ASSERT_EQ_MSG(test, !!type, !!row, "opcode %#x", i);
		if (!row)
			continue;
		known++;
		KUNIT_EXPECT_EQ_MSG(test, found, service, "opcode %#x", i);
		KUNIT_EXPECT_EQ_MSG(test, type->kind, row->kind, "opcode %#x", i);
		KUNIT_EXPECT_EQ_MSG(test, type->flags, row->flags,
				    "opcode %#x", i);
		KUNIT_EXPECT_EQ_MSG(test, type->hdr, row->ext + 12,
				    "opcode %#x", i);
	}
	KUNIT_EXPECT_EQ(test, known, 25 + 12 + 2);
}

struct wr_row {
	const char *name;
	u32 wr;
	/* of RC: middle, first, last, only, as F and L count; 0xff: none */
	u8 opcode[4];
	bool uc;
	u8 ud;		/* 0xff: none */
};

/* IBA 9.3.3 (headers of each operation), table 38. */
static const struct wr_row wr_rows[] = {
	{ "write", IB_WR_RDMA_WRITE, { 0x07, 0x06, 0x08, 0x0a }, true, 0xff },
	{ "write imm", IB_WR_RDMA_WRITE_WITH_IMM, { 0x07, 0x06, 0x09, 0x0b },
	  true, 0xff },
	{ "send", IB_WR_SEND, { 0x01, 0x00, 0x02, 0x04 }, true, 0x64 },
	{ "send imm", IB_WR_SEND_WITH_IMM, { 0x01, 0x00, 0x03, 0x05 }, true,
	  0x65 },
	{ "send inv", IB_WR_SEND_WITH_INV, { 0x01, 0x00, 0x16, 0x17 }, false,
	  0xff },
	{ "read", IB_WR_RDMA_READ, { 0xff, 0xff, 0xff, 0x0c }, false, 0xff },
	{ "cmp swap", IB_WR_ATOMIC_CMP_AND_SWP, { 0xff, 0xff, 0xff, 0x13 },
	  false, 0xff },
	{ "fetch add", IB_WR_ATOMIC_FETCH_AND_ADD, { 0xff, 0xff, 0xff, 0x14 },
	  false, 0xff },
	{ "flush", IB_WR_FLUSH, { 0xff, 0xff, 0xff, 0x1c }, false, 0xff },
	{ "atomic write", IB_WR_ATOMIC_WRITE, { 0xff, 0xff, 0xff, 0x1d },
	  false, 0xff },
	{ "local inv", IB_WR_LOCAL_INV, { 0xff, 0xff, 0xff, 0xff }, false,
	  0xff },
	{ "reg", IB_WR_REG_MR, { 0xff, 0xff, 0xff, 0xff }, false, 0xff },
};

KUNIT_ARRAY_PARAM_DESC(wr, wr_rows, name);

/* There, and what is found there has the place and the operation asked for. */
static void expect_opcode(struct kunit *test, const struct wr_row *row,
			  enum ib_qp_type type, u8 where, int want)
{
	enum ib_qp_type service = type == IB_QPT_GSI ? IB_QPT_UD : type;
	int opcode = mrsoft_packet_opcode(row->wr, type, where);
	const struct mrsoft_packet_type *found;
	enum ib_qp_type back;

	KUNIT_EXPECT_EQ_MSG(test, opcode, want, "QP type %d, place %d", type,
			    where);
	if (opcode < 0)
		return;
	found = mrsoft_packet_find(opcode, &back);
	KUNIT_ASSERT_NOT_NULL(test, found);
	KUNIT_EXPECT_EQ(test, back, service);
	KUNIT_EXPECT_EQ(test, found->flags & ONLY, (int)where);
	if (where & L)
		KUNIT_EXPECT_EQ(test, (u32)found->wr, row->wr);
}

static void wire_wr_opcodes(struct kunit *test)
{
	const struct wr_row *row = test->param_value;
	u8 where;

	for (where = 0; where <= ONLY; where++) {
		int rc = row->opcode[where] == 0xff ? -1 : row->opcode[where];
		int ud = where != ONLY || row->ud == 0xff ? -1 : row->ud;

		expect_opcode(test, row, IB_QPT_RC, where, rc);
		expect_opcode(test, row, IB_QPT_UD, where, ud);
		expect_opcode(test, row, IB_QPT_GSI, where, ud);
		/* the start of a SEND does not say how it will end */
		if (row->wr != IB_WR_SEND_WITH_INV || (where & L))
			expect_opcode(test, row, IB_QPT_UC, where,
				      row->uc ? rc + 0x20 : -1);
	}
}

static void wire_read_response(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, mrsoft_packet_read_response(F), 0x0d);
	KUNIT_EXPECT_EQ(test, mrsoft_packet_read_response(0), 0x0e);
	KUNIT_EXPECT_EQ(test, mrsoft_packet_read_response(L), 0x0f);
	KUNIT_EXPECT_EQ(test, mrsoft_packet_read_response(ONLY), 0x10);
}

/* --- checksum ------------------------------------------------------------- */

struct icrc_row {
	u8 opcode;
	u8 ext;
	u16 length;
	u32 ipv4;
	u32 ipv6;
};

/* wire_vectors.py */
static const struct icrc_row icrc_rows[] = {
	{ 0x00, 0, 1, 0xedd212e1, 0x000ca475 },
	{ 0x01, 0, 10, 0x0233ed89, 0x12f6b667 },
	{ 0x02, 0, 19, 0xe54ee819, 0x57022a08 },
	{ 0x03, 4, 28, 0x5432033c, 0x212d2221 },
	{ 0x04, 0, 0, 0x9f82a3f6, 0x43065694 },
	{ 0x04, 0, 1, 0x39e35e66, 0xd43de8f2 },
	{ 0x04, 0, 2, 0xa6bf2210, 0x4b619484 },
	{ 0x04, 0, 3, 0x924598ae, 0x7f9b2e3a },
	{ 0x05, 4, 46, 0xbff4fe09, 0xed2206f3 },
	{ 0x06, 16, 55, 0x981ca0fc, 0xe0c3df7f },
	{ 0x07, 0, 64, 0xc2400f7f, 0xc57a6340 },
	{ 0x08, 0, 73, 0x4bd9c538, 0xe520b67b },
	{ 0x09, 4, 82, 0x47be8408, 0x2f23b4a2 },
	{ 0x0a, 16, 0, 0x6deee445, 0x09f07812 },
	{ 0x0a, 16, 1, 0x35002bc8, 0x874ce9d9 },
	{ 0x0a, 16, 2, 0x004045e1, 0xb20c87f0 },
	{ 0x0a, 16, 3, 0x11efcfff, 0xa3a30dee },
	{ 0x0b, 20, 100, 0xc91c1d26, 0xc5675d6c },
	{ 0x0c, 16, 0, 0x6852ea0b, 0x0c4c765c },
	{ 0x0d, 4, 118, 0xb8197c00, 0x3b6bbc2b },
	{ 0x0e, 0, 127, 0xe963ebad, 0x0e662aae },
	{ 0x0f, 4, 136, 0x4efc6adb, 0x894f05e9 },
	{ 0x10, 4, 145, 0x1dd30022, 0x23e190d5 },
	{ 0x11, 4, 0, 0xf2640cc8, 0x1fbaba5c },
	{ 0x12, 12, 0, 0x58cbb8fd, 0x480ee313 },
	{ 0x13, 28, 0, 0xf5a8d247, 0x84d19695 },
	{ 0x14, 28, 0, 0x0f952110, 0x7eec65c2 },
	{ 0x16, 4, 190, 0x02d0c66b, 0x9bd71a8f },
	{ 0x17, 4, 199, 0x8e3ac6ee, 0xb00538a5 },
	{ 0x1d, 16, 8, 0x06c5eac4, 0x8bd173dc },
	{ 0x24, 0, 217, 0xb708591e, 0x550792f9 },
	{ 0x26, 16, 226, 0x6cc68f4c, 0xa1e6e534 },
	{ 0x2b, 20, 235, 0xe5b3bc3b, 0xbf388c06 },
	{ 0x64, 8, 0, 0x25cf7187, 0x98e36b6a },
	{ 0x64, 8, 1, 0xdd366f3a, 0xcdf334d4 },
	{ 0x64, 8, 2, 0x077a0a4f, 0x17bf51a1 },
	{ 0x64, 8, 3, 0xfcb09bf4, 0xec75c01a },
	{ 0x65, 12, 253, 0x99f3348e, 0xa489ac65 },
};

static void icrc_desc(const struct icrc_row *row, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "opcode %#x, %u bytes",
		 row->opcode, row->length);
}

KUNIT_ARRAY_PARAM(icrc, icrc_rows, icrc_desc);

static const u8 head4[20] = {
	0x45, 0xa5, 0, 0, 0x12, 0x34, 0x40, 0, 61, 17, 0, 0, 10, 1, 2, 3, 192,
	168, 255, 1,
};

static const u8 head6[40] = {
	0x6a, 0x51, 0x23, 0x45, 0, 0, 17, 61, 0xfd, 1, [23] = 1, 0xfd, 1,
	[39] = 2,
};

#define MAX_VECTOR	512

/* A packet from its IP header to its padding; where the UDP header is. */
static size_t build(u8 *p, const struct icrc_row *row, bool ipv6)
{
	size_t net = ipv6 ? sizeof(head6) : sizeof(head4), n = net + 8, i;
	u8 pad = -row->length & 3;
	static const u8 ports[] = { 0xc1, 0x23, 0x12, 0xb7 };
	const u8 bth[] = {
		row->opcode, 0xc0 | pad << 4, 0xff, 0xff, 0, 0x12, 0x34, 0x56,
		0x80, 0xab, 0xcd, 0xef,
	};

	memset(p, 0, MAX_VECTOR);
	memcpy(p, ipv6 ? head6 : head4, net);
	memcpy(p + net, ports, sizeof(ports));
	memcpy(p + n, bth, sizeof(bth));
	n += sizeof(bth);
	for (i = 0; i < row->ext; i++)
		p[n++] = 0x10 + i * 7;
	for (i = 0; i < row->length; i++)
		p[n++] = 0xa0 + i * 3;
	n += pad;
	/* lengths include the checksum, which is not there yet */
	put_unaligned_be16(n + 4 - net, p + net + 4);
	if (ipv6)
		put_unaligned_be16(n + 4 - net, p + 4);
	else
		put_unaligned_be16(n + 4, p + 2);
	return n;
}

static u32 sum(const u8 *p, bool ipv6, size_t n)
{
	size_t net = ipv6 ? sizeof(head6) : sizeof(head4);

	return le32_to_cpu(mrsoft_icrc(p, ipv6, p + net, n - net - 8));
}

/* Behind an Ethernet header, with a VLAN tag and without, anywhere in memory. */
static void wire_icrc(struct kunit *test)
{
	static const size_t before[] = { 0, ETH_HLEN, VLAN_ETH_HLEN, 1, 2, 3 };
	const struct icrc_row *row = test->param_value;
	u8 *mem = kunit_kzalloc(test, MAX_VECTOR + 32, GFP_KERNEL);
	size_t n;
	int i, v6;

	KUNIT_ASSERT_NOT_NULL(test, mem);
	for (i = 0; i < ARRAY_SIZE(before); i++) {
		memset(mem, 0x81, MAX_VECTOR + 32);
		for (v6 = 0; v6 < 2; v6++) {
			n = build(mem + before[i], row, v6);
			KUNIT_EXPECT_EQ(test, sum(mem + before[i], v6, n),
					v6 ? row->ipv6 : row->ipv4);
		}
	}
}

/* IBA 7.8.1, A17.3.3: what routers and switches may change. */
static u8 may_change(size_t at, bool ipv6)
{
	size_t net = ipv6 ? sizeof(head6) : sizeof(head4);

	if (at == net + 6 || at == net + 7)
		return 0xff;	/* UDP checksum */
	if (at == net + 8 + 4)
		return 0xff;	/* FECN, BECN and what is reserved */
	if (!ipv6)
		return at == 1 || at == 8 || at == 10 || at == 11 ? 0xff : 0;
	if (!at)
		return 0x0f;	/* the version stays */
	return at <= 3 || at == 7 ? 0xff : 0;
}

static void wire_icrc_bits(struct kunit *test)
{
	static const struct icrc_row row = { 0x0b, 20, 37 };
	u8 *p = kunit_kzalloc(test, MAX_VECTOR, GFP_KERNEL);
	size_t n, bit;
	u32 crc;
	int v6;

	KUNIT_ASSERT_NOT_NULL(test, p);
	for (v6 = 0; v6 < 2; v6++) {
		n = build(p, &row, v6);
		crc = sum(p, v6, n);
		for (bit = 0; bit < n * 8; bit++) {
			bool may = may_change(bit / 8, v6) & BIT(bit % 8);

			p[bit / 8] ^= BIT(bit % 8);
			KUNIT_EXPECT_EQ_MSG(test, sum(p, v6, n) == crc, may,
					    "IPv%d, byte %zu", v6 ? 6 : 4,
					    bit / 8);
			p[bit / 8] ^= BIT(bit % 8);
		}
	}
}

/* --- checks of one packet ------------------------------------------------- */

/* What skb_linearize() leaves, with skb->data at the UDP header. */
static struct sk_buff *new_skb(struct kunit *test, const struct icrc_row *row,
			       bool ipv6, u8 *scratch)
{
	size_t net = ipv6 ? sizeof(head6) : sizeof(head4);
	size_t n = build(scratch, row, ipv6);
	struct sk_buff *skb = alloc_skb(MAX_VECTOR + 64, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_reserve(skb, 32);
	put_unaligned_le32(sum(scratch, ipv6, n), scratch + n);
	skb_put_data(skb, scratch, n + 4);
	skb_reset_network_header(skb);
	skb_pull(skb, net);
	return skb;
}

static void resum(struct sk_buff *skb, bool ipv6, u32 tail)
{
	u32 n = skb->len - tail;

	put_unaligned(mrsoft_icrc(skb_network_header(skb), ipv6, skb->data,
				  n - 12), (__le32 *)(skb->data + n - 4));
}

static void wire_check_good(struct kunit *test)
{
	const struct icrc_row *row = test->param_value;
	u8 *scratch = kunit_kzalloc(test, MAX_VECTOR, GFP_KERNEL);
	struct mrsoft_packet pkt;
	struct sk_buff *skb;
	int v6;

	KUNIT_ASSERT_NOT_NULL(test, scratch);
	for (v6 = 0; v6 < 2; v6++) {
		skb = new_skb(test, row, v6, scratch);
		KUNIT_EXPECT_EQ(test, check_packet(skb, v6, &pkt),
				MRSOFT_R_NONE);
		KUNIT_EXPECT_EQ(test, pkt.length, row->length);
		KUNIT_EXPECT_EQ(test, pkt.psn, 0xabcdefu);
		KUNIT_EXPECT_TRUE(test, pkt.ack_req);
		KUNIT_EXPECT_TRUE(test, pkt.solicited);
		KUNIT_EXPECT_PTR_EQ(test, pkt.hdr, (void *)skb->data + 20);
		KUNIT_EXPECT_PTR_EQ(test, pkt.payload,
				    (void *)skb->data + 20 + row->ext);
		/* bytes that Ethernet added behind are nobody's */
		skb_put_zero(skb, 7);
		KUNIT_EXPECT_EQ(test, check_packet(skb, v6, &pkt),
				MRSOFT_R_NONE);
		KUNIT_EXPECT_EQ(test, pkt.length, row->length);
		kfree_skb(skb);
	}
}

/* Cut anywhere, a packet is never read behind its end and never taken. */
static void wire_check_cut(struct kunit *test)
{
	const struct icrc_row *row = test->param_value;
	u8 *scratch = kunit_kzalloc(test, MAX_VECTOR, GFP_KERNEL);
	struct mrsoft_packet pkt;
	struct sk_buff *skb;
	u32 len, full;

	KUNIT_ASSERT_NOT_NULL(test, scratch);
	skb = new_skb(test, row, false, scratch);
	full = skb->len;
	for (len = 0; len < full; len++) {
		skb_trim(skb, len);
		KUNIT_EXPECT_NE_MSG(test, check_packet(skb, false, &pkt),
				    MRSOFT_R_NONE, "%u bytes", len);
		skb_put(skb, full - len);
	}
	kfree_skb(skb);
	/* the same with headers that say so and a sum that is right */
	for (len = 24; len < 20u + row->ext + 4; len++) {
		skb = new_skb(test, row, false, scratch);
		skb_trim(skb, len);
		put_unaligned_be16(len, skb->data + 4);
		resum(skb, false, 0);
		KUNIT_EXPECT_EQ_MSG(test, check_packet(skb, false, &pkt),
				    MRSOFT_R_PKT_LENGTH, "%u bytes", len);
		kfree_skb(skb);
	}
}

struct spoil_row {
	const char *name;
	u8 at;		/* from the UDP header */
	u8 value;
	enum mrsoft_reason reason;
	bool stale;	/* the sum is of the packet before */
};

/* A SEND ONLY of 5 bytes; IBA 9.6.1. */
static const struct spoil_row spoil_rows[] = {
	{ "as it was", 8, 0x04, MRSOFT_R_NONE, false },
	{ "version 1", 9, 0xf1, MRSOFT_R_PKT_HEADER, false },
	{ "version 15", 9, 0xff, MRSOFT_R_PKT_HEADER, false },
	{ "reserved opcode of RC", 8, 0x15, MRSOFT_R_NONE, false },
	{ "reserved opcode of UC", 8, 0x2c, MRSOFT_R_PKT_OPCODE, false },
	{ "RD", 8, 0x44, MRSOFT_R_PKT_OPCODE, false },
	{ "XRC", 8, 0xa4, MRSOFT_R_PKT_OPCODE, false },
	{ "CNP", 8, 0x81, MRSOFT_R_PKT_OPCODE, false },
	{ "limited member", 10, 0x7f, MRSOFT_R_NONE, false },
	{ "another partition", 11, 0xfe, MRSOFT_R_PKEY, false },
	{ "no partition", 10, 0, MRSOFT_R_PKEY, false },
	{ "no padding", 9, 0xc0, MRSOFT_R_NONE, false },
	{ "an ACK with bytes", 8, 0x11, MRSOFT_R_PKT_LENGTH, false },
	{ "headers longer than the packet", 8, 0x13, MRSOFT_R_PKT_LENGTH,
	  false },
	{ "no migration bit", 9, 0xb0, MRSOFT_R_NONE, false },
	{ "FECN on the way", 12, 0x80, MRSOFT_R_NONE, true },
	{ "a bit of the QPN turned", 15, 0x57, MRSOFT_R_PKT_ICRC, true },
	{ "a bit of the payload turned", 20, 0xa1, MRSOFT_R_PKT_ICRC, true },
	{ "a bit of the padding turned", 25, 1, MRSOFT_R_PKT_ICRC, true },
};

KUNIT_ARRAY_PARAM_DESC(spoil, spoil_rows, name);

static void wire_check_spoilt(struct kunit *test)
{
	static const struct icrc_row send = { 0x04, 0, 5 };
	const struct spoil_row *row = test->param_value;
	u8 *scratch = kunit_kzalloc(test, MAX_VECTOR, GFP_KERNEL);
	struct mrsoft_packet pkt;
	struct sk_buff *skb;
	int v6;

	KUNIT_ASSERT_NOT_NULL(test, scratch);
	for (v6 = 0; v6 < 2; v6++) {
		skb = new_skb(test, &send, v6, scratch);
		skb->data[row->at] = row->value;
		if (!row->stale)
			resum(skb, v6, 0);
		KUNIT_EXPECT_EQ(test, check_packet(skb, v6, &pkt), row->reason);
		kfree_skb(skb);
	}
}

/* The length of UDP counts: shorter than the data, never longer. */
static void wire_check_udp_length(struct kunit *test)
{
	static const struct icrc_row send = { 0x04, 0, 8 };
	u8 *scratch = kunit_kzalloc(test, MAX_VECTOR, GFP_KERNEL);
	struct mrsoft_packet pkt;
	struct sk_buff *skb;
	u32 len;

	KUNIT_ASSERT_NOT_NULL(test, scratch);
	for (len = 0; len < 64; len++) {
		skb = new_skb(test, &send, false, scratch);
		KUNIT_ASSERT_EQ(test, skb->len, 32u);
		put_unaligned_be16(len, skb->data + 4);
		if (len >= 24 && len <= 32)
			resum(skb, false, 32 - len);
		KUNIT_EXPECT_EQ_MSG(test, check_packet(skb, false, &pkt),
				    len < 24 || len > 32 || len % 4 ?
				    MRSOFT_R_PKT_LENGTH : MRSOFT_R_NONE,
				    "%u", len);
		kfree_skb(skb);
	}
}

/* --- order ---------------------------------------------------------------- */

static void queue(struct kunit *test, struct sk_buff_head *list, u32 psn,
		  u16 mark)
{
	struct sk_buff *skb = alloc_skb(0, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	mrsoft_packet(skb)->psn = psn & MRSOFT_PSN_MASK;
	mrsoft_packet(skb)->length = mark;
	spin_lock_bh(&list->lock);
	insert_sorted(list, skb);
	spin_unlock_bh(&list->lock);
}

/* Packets that overtook each other come out in the order of their PSNs. */
static void wire_sorted(struct kunit *test)
{
	struct sk_buff_head list;
	struct sk_buff *skb;
	u32 base, i;

	for (base = 0xfffff0; base <= 0x1000000; base += 8) {
		skb_queue_head_init(&list);
		/* 7 and 32 have no common factor: each of them twice */
		for (i = 0; i < 64; i++)
			queue(test, &list, base + i * 7 % 32, i / 32);
		for (i = 0; i < 64; i++) {
			skb = skb_dequeue(&list);
			KUNIT_ASSERT_NOT_NULL(test, skb);
			KUNIT_EXPECT_EQ(test, mrsoft_packet(skb)->psn,
					(base + i / 2) & MRSOFT_PSN_MASK);
			/* of the same PSN the first one first */
			KUNIT_EXPECT_EQ(test, mrsoft_packet(skb)->length,
					(u16)(i % 2));
			kfree_skb(skb);
		}
	}
}

struct order_row {
	const char *name;
	u32 begun;	/* enum ib_wr_opcode of the message before, or NO */
	u8 opcode;
	bool ok;
};

#define NO	U32_MAX

/* IBA table 48: what may follow what. */
static const struct order_row order_rows[] = {
	{ "first", NO, 0x00, true },
	{ "only", NO, 0x04, true },
	{ "read", NO, 0x0c, true },
	{ "atomic", NO, 0x14, true },
	{ "atomic write", NO, 0x1d, true },
	{ "flush", NO, 0x1c, true },
	{ "flush in a send", IB_WR_SEND, 0x1c, false },
	{ "flush in a write", IB_WR_RDMA_WRITE, 0x1c, false },
	{ "middle out of nothing", NO, 0x01, false },
	{ "last out of nothing", NO, 0x02, false },
	{ "last imm out of nothing", NO, 0x03, false },
	{ "last inv out of nothing", NO, 0x16, false },
	{ "write middle out of nothing", NO, 0x07, false },
	{ "write last out of nothing", NO, 0x09, false },
	{ "send goes on", IB_WR_SEND, 0x01, true },
	{ "send ends", IB_WR_SEND, 0x02, true },
	{ "send ends imm", IB_WR_SEND, 0x03, true },
	{ "send ends inv", IB_WR_SEND, 0x16, true },
	{ "first in a send", IB_WR_SEND, 0x00, false },
	{ "only in a send", IB_WR_SEND, 0x04, false },
	{ "write middle in a send", IB_WR_SEND, 0x07, false },
	{ "write last in a send", IB_WR_SEND, 0x08, false },
	{ "write first in a send", IB_WR_SEND, 0x06, false },
	{ "read in a send", IB_WR_SEND, 0x0c, false },
	{ "atomic in a send", IB_WR_SEND, 0x13, false },
	{ "write goes on", IB_WR_RDMA_WRITE, 0x07, true },
	{ "write ends", IB_WR_RDMA_WRITE, 0x08, true },
	{ "write ends imm", IB_WR_RDMA_WRITE, 0x09, true },
	{ "send middle in a write", IB_WR_RDMA_WRITE, 0x01, false },
	{ "send last in a write", IB_WR_RDMA_WRITE, 0x02, false },
	{ "send last inv in a write", IB_WR_RDMA_WRITE, 0x16, false },
	{ "write first in a write", IB_WR_RDMA_WRITE, 0x06, false },
	{ "write only in a write", IB_WR_RDMA_WRITE, 0x0b, false },
	{ "atomic write in a write", IB_WR_RDMA_WRITE, 0x1d, false },
};

KUNIT_ARRAY_PARAM_DESC(order, order_rows, name);

static void wire_order(struct kunit *test)
{
	const struct order_row *row = test->param_value;
	struct mrsoft_rx *rx = kunit_kzalloc(test, sizeof(*rx), GFP_KERNEL);
	struct mrsoft_packet pkt = {};
	enum mrsoft_reason want = row->ok ? MRSOFT_R_NONE : MRSOFT_R_PKT_ORDER;

	KUNIT_ASSERT_NOT_NULL(test, rx);
	pkt.type = mrsoft_packet_find(row->opcode, &pkt.service);
	KUNIT_ASSERT_NOT_NULL(test, pkt.type);
	if (row->begun != NO) {
		rx->begun = true;
		rx->msg.op = mrsoft_op_find(row->begun, IB_QPT_RC);
	}
	KUNIT_EXPECT_EQ(test, check_order(rx, &pkt), want);
}

/* IBA table 58: class C, wherever it stands. */
static void wire_reserved(struct kunit *test)
{
	struct mrsoft_rx *rx = kunit_kzalloc(test, sizeof(*rx), GFP_KERNEL);
	struct mrsoft_packet pkt = {};

	KUNIT_ASSERT_NOT_NULL(test, rx);
	pkt.type = mrsoft_packet_find(0x1f, &pkt.service);
	KUNIT_ASSERT_NOT_NULL(test, pkt.type);
	KUNIT_EXPECT_EQ(test, check_order(rx, &pkt), MRSOFT_R_PKT_OPCODE);
	rx->begun = true;
	rx->msg.op = mrsoft_op_find(IB_WR_SEND, IB_QPT_RC);
	KUNIT_EXPECT_EQ(test, check_order(rx, &pkt), MRSOFT_R_PKT_OPCODE);
}

struct length_row {
	const char *name;
	u8 opcode;
	u16 length;
	u32 total;	/* RETH; SEND: this packet included */
	u32 done;
	enum mrsoft_reason reason;
};

#define OK	MRSOFT_R_NONE
#define BAD	MRSOFT_R_PKT_LENGTH

/* IBA 9.7.4.1.7: lengths at a path MTU of 1024; table 44 of the text. */
static const struct length_row length_rows[] = {
	{ "send first", 0x00, 1024, 1024, 0, OK },
	{ "send first short", 0x00, 1023, 1023, 0, BAD },
	{ "send first empty", 0x00, 0, 0, 0, BAD },
	{ "send first long", 0x00, 1025, 1025, 0, BAD },
	{ "send middle short", 0x01, 1020, 2044, 1024, BAD },
	{ "send last 1", 0x02, 1, 1025, 1024, OK },
	{ "send last full", 0x02, 1024, 2048, 1024, OK },
	{ "send last empty", 0x02, 0, 1024, 1024, BAD },
	{ "send last long", 0x02, 1025, 2049, 1024, BAD },
	{ "send only empty", 0x04, 0, 0, 0, OK },
	{ "send only full", 0x04, 1024, 1024, 0, OK },
	{ "send only long", 0x04, 1025, 1025, 0, BAD },
	{ "write first", 0x06, 1024, 1025, 0, OK },
	{ "write first of one packet", 0x06, 1024, 1024, 0, BAD },
	{ "write first of less", 0x06, 1024, 1000, 0, BAD },
	{ "write first short", 0x06, 1020, 4096, 0, BAD },
	{ "write middle", 0x07, 1024, 2049, 1024, OK },
	{ "write middle at the end", 0x07, 1024, 2048, 1024, BAD },
	{ "write last", 0x08, 1, 1025, 1024, OK },
	{ "write last too little", 0x08, 1, 1026, 1024, BAD },
	{ "write last too much", 0x08, 2, 1025, 1024, BAD },
	{ "write last empty", 0x08, 0, 1024, 1024, BAD },
	{ "write only", 0x0a, 7, 7, 0, OK },
	{ "write only empty", 0x0a, 0, 0, 0, OK },
	{ "write only less than said", 0x0a, 7, 8, 0, BAD },
	{ "write only more than said", 0x0a, 8, 7, 0, BAD },
	{ "write of 2^31", 0x06, 1024, 1u << 31, 0, OK },
	{ "write of 2^31+1", 0x06, 1024, (1u << 31) + 1, 0,
	  MRSOFT_R_MSG_TOO_LONG },
	{ "write of 2^32-1", 0x06, 1024, U32_MAX, 0, MRSOFT_R_MSG_TOO_LONG },
	{ "read of 2^31", 0x0c, 0, 1u << 31, 0, OK },
	{ "read of 2^31+1", 0x0c, 0, (1u << 31) + 1, 0, MRSOFT_R_MSG_TOO_LONG },
	{ "atomic write", 0x1d, 8, 8, 0, OK },
	{ "atomic write of 4", 0x1d, 4, 4, 0, BAD },
	{ "atomic write of 16", 0x1d, 16, 16, 0, BAD },
	{ "atomic write that says 4", 0x1d, 8, 4, 0, BAD },
};

KUNIT_ARRAY_PARAM_DESC(length, length_rows, name);

static void wire_length(struct kunit *test)
{
	const struct length_row *row = test->param_value;
	struct mrsoft_wire *wire = kunit_kzalloc(test, sizeof(*wire),
						 GFP_KERNEL);
	struct mrsoft_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);
	struct mrsoft_packet pkt = { .length = row->length };

	KUNIT_ASSERT_NOT_NULL(test, wire);
	KUNIT_ASSERT_NOT_NULL(test, qp);
	wire->qp = qp;
	qp->mtu = 1024;
	pkt.type = mrsoft_packet_find(row->opcode, &pkt.service);
	KUNIT_ASSERT_NOT_NULL(test, pkt.type);
	wire->rx.msg.length = row->total;
	wire->rx.msg.done = row->done;
	KUNIT_EXPECT_EQ(test, check_length(wire, &pkt), row->reason);
}

struct feth_row {
	const char *name;
	u8 feth[4];
	u8 type;
	u8 level;
	enum mrsoft_reason reason;
};

/* Annex A19: bits 3-0 placement type, 5-4 selectivity level, the rest reserved. */
static const struct feth_row feth_rows[] = {
	{ "global, range", { 0, 0, 0, 0x01 }, 1, 0, OK },
	{ "persistent, range", { 0, 0, 0, 0x02 }, 2, 0, OK },
	{ "both, region", { 0, 0, 0, 0x13 }, 3, 1, OK },
	/* reserved bits mean nothing to who receives them */
	{ "reserved bits", { 0xff, 0xff, 0xff, 0xd1 }, 1, 1, OK },
	{ "no type", { 0, 0, 0, 0x00 }, 0, 0, MRSOFT_R_PKT_HEADER },
	{ "type 4", { 0, 0, 0, 0x04 }, 4, 0, MRSOFT_R_PKT_HEADER },
	{ "type 9", { 0, 0, 0, 0x09 }, 9, 0, MRSOFT_R_PKT_HEADER },
	{ "level 2", { 0, 0, 0, 0x21 }, 1, 2, MRSOFT_R_PKT_HEADER },
	{ "level 3", { 0, 0, 0, 0x31 }, 1, 3, MRSOFT_R_PKT_HEADER },
};

KUNIT_ARRAY_PARAM_DESC(feth, feth_rows, name);

static void wire_feth(struct kunit *test)
{
	const struct feth_row *row = test->param_value;
	struct mrsoft_wire *wire = kunit_kzalloc(test, sizeof(*wire),
						 GFP_KERNEL);
	struct mrsoft_msg *msg;
	u8 hdr[20] = {
		0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0xa, 0xb, 0xc, 0xd,
		/* no limit of bytes that move: none does */
		0xff, 0xff, 0xff, 0xff,
	};
	struct mrsoft_packet pkt = {};

	KUNIT_ASSERT_NOT_NULL(test, wire);
	msg = &wire->rx.msg;
	memcpy(hdr, row->feth, 4);
	pkt.type = mrsoft_packet_find(0x1c, &pkt.service);
	KUNIT_ASSERT_NOT_NULL(test, pkt.type);
	fill_flush(msg, hdr);
	KUNIT_EXPECT_EQ(test, msg->raddr, 0x0102030405060708ull);
	KUNIT_EXPECT_EQ(test, msg->rkey, 0x0a0b0c0du);
	KUNIT_EXPECT_EQ(test, msg->flush.length, U32_MAX);
	KUNIT_EXPECT_EQ(test, msg->flush.type, row->type);
	KUNIT_EXPECT_EQ(test, msg->flush.level, row->level);
	KUNIT_EXPECT_EQ(test, msg->length, 0ull);
	KUNIT_EXPECT_EQ(test, check_message(wire, &pkt), row->reason);
}

/* --- results that may be asked for again ---------------------------------- */

#define DEPTH	MRSOFT_MAX_RD_ATOM
#define RDREQ	MRSOFT_PKT_READ
#define ATOMIC	MRSOFT_PKT_ATOMIC

static struct mrsoft_replay *new_replay(struct kunit *test)
{
	struct mrsoft_replay *replay;

	replay = kunit_kzalloc(test, sizeof(*replay), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, replay);
	memset(replay, 0xee, sizeof(*replay));
	mrsoft_replay_reset(replay);
	return replay;
}

static void remember_one(struct mrsoft_replay *replay, u8 kind, u32 psn,
			 u32 packets, u64 mark)
{
	struct mrsoft_result result = {
		.psn = psn & MRSOFT_PSN_MASK, .packets = packets,
		.kind = kind, .old = mark,
	};

	mrsoft_replay_add(replay, &result);
}

/* The mark of what is found, or -1. */
static s64 find(const struct mrsoft_replay *replay, u8 kind, u32 psn)
{
	const struct mrsoft_result *r;

	r = mrsoft_replay_find(replay, kind, psn & MRSOFT_PSN_MASK);
	return r ? (s64)r->old : -1;
}

static void wire_replay_empty(struct kunit *test)
{
	struct mrsoft_replay *replay = new_replay(test);
	u32 psn;

	for (psn = 0; psn < 0x1000000; psn = psn * 2 + 1) {
		KUNIT_EXPECT_EQ(test, find(replay, RDREQ, psn), -1ll);
		KUNIT_EXPECT_EQ(test, find(replay, ATOMIC, psn), -1ll);
	}
	remember_one(replay, ATOMIC, 5, 1, 1);
	mrsoft_replay_reset(replay);
	KUNIT_EXPECT_EQ(test, find(replay, ATOMIC, 5), -1ll);
}

static void wire_replay_kind(struct kunit *test)
{
	struct mrsoft_replay *replay = new_replay(test);

	remember_one(replay, ATOMIC, 5, 1, 1);
	remember_one(replay, RDREQ, 6, 3, 2);
	KUNIT_EXPECT_EQ(test, find(replay, ATOMIC, 5), 1ll);
	KUNIT_EXPECT_EQ(test, find(replay, RDREQ, 5), -1ll);
	KUNIT_EXPECT_EQ(test, find(replay, RDREQ, 6), 2ll);
	KUNIT_EXPECT_EQ(test, find(replay, ATOMIC, 6), -1ll);
	KUNIT_EXPECT_EQ(test, find(replay, MRSOFT_PKT_ATOMIC_WRITE, 5), -1ll);
	remember_one(replay, MRSOFT_PKT_FLUSH, 9, 1, 3);
	KUNIT_EXPECT_EQ(test, find(replay, MRSOFT_PKT_FLUSH, 9), 3ll);
	KUNIT_EXPECT_EQ(test, find(replay, MRSOFT_PKT_ATOMIC_WRITE, 9), -1ll);
	KUNIT_EXPECT_EQ(test, find(replay, MRSOFT_PKT_FLUSH, 5), -1ll);
}

/* A requester asks for the rest of a READ from any of its packets on. */
static void wire_replay_middle(struct kunit *test)
{
	static const u32 bases[] = { 0, 100, 0x7ffffe, 0xfffffc, 0xffffff };
	struct mrsoft_replay *replay;
	int i, k;

	for (i = 0; i < ARRAY_SIZE(bases); i++) {
		replay = new_replay(test);
		remember_one(replay, RDREQ, bases[i], 8, 3);
		remember_one(replay, ATOMIC, bases[i] + 8, 1, 4);
		for (k = 0; k < 8; k++)
			KUNIT_EXPECT_EQ(test, find(replay, RDREQ, bases[i] + k),
					3ll);
		KUNIT_EXPECT_EQ(test, find(replay, RDREQ, bases[i] - 1), -1ll);
		KUNIT_EXPECT_EQ(test, find(replay, RDREQ, bases[i] + 8), -1ll);
		KUNIT_EXPECT_EQ(test, find(replay, ATOMIC, bases[i] + 8), 4ll);
		KUNIT_EXPECT_EQ(test, find(replay, ATOMIC, bases[i] + 9), -1ll);
	}
}

/* As many as max_dest_rd_atomic may be, and the oldest goes first. */
static void wire_replay_depth(struct kunit *test)
{
	struct mrsoft_replay *replay = new_replay(test);
	u32 i, k;

	for (i = 0; i < 3 * DEPTH; i++) {
		remember_one(replay, ATOMIC, 0xffff00 + i, 1, i);
		for (k = 0; k <= i; k++)
			KUNIT_EXPECT_EQ(test, find(replay, ATOMIC,
						   0xffff00 + k),
					i - k < DEPTH ? (s64)k : -1ll);
	}
}

/* A PSN comes again after 2^24 packets: the result of this turn counts. */
static void wire_replay_newest(struct kunit *test)
{
	struct mrsoft_replay *replay = new_replay(test);

	remember_one(replay, ATOMIC, 77, 1, 1);
	remember_one(replay, ATOMIC, 78, 1, 2);
	remember_one(replay, ATOMIC, 77, 1, 3);
	KUNIT_EXPECT_EQ(test, find(replay, ATOMIC, 77), 3ll);
	remember_one(replay, RDREQ, 70, 20, 4);
	remember_one(replay, RDREQ, 75, 1, 5);
	KUNIT_EXPECT_EQ(test, find(replay, RDREQ, 75), 5ll);
	KUNIT_EXPECT_EQ(test, find(replay, RDREQ, 76), 4ll);
	KUNIT_EXPECT_EQ(test, find(replay, ATOMIC, 77), 3ll);
}

/* --- end ------------------------------------------------------------------ */

struct closing {
	struct work_struct work;
	struct mrsoft_qp qp;
};

static void close_fn(struct work_struct *work)
{
	mrsoft_rx_close(&container_of(work, struct closing, work)->qp);
}

/*
 * A packet that found its queue open, and is in it only after the queue was closed:
 * close is not over before, and does not leave it there for the next connection.
 */
static void wire_close_late(struct kunit *test)
{
	struct closing *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct sk_buff *skb = alloc_skb(64, GFP_KERNEL);
	struct workqueue_struct *wq;
	struct sk_buff_head *list;
	int i;

	wq = alloc_workqueue("mrsoft-kunit", WQ_UNBOUND, 0);
	KUNIT_ASSERT_NOT_NULL(test, wq);
	KUNIT_ASSERT_NOT_NULL(test, c);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_ASSERT_EQ(test, mrsoft_rx_make(&c->qp), 0);
	list = &c->qp.wire->acks;
	WRITE_ONCE(c->qp.wire->open, true);
	INIT_WORK(&c->work, close_fn);

	/* as enqueue() does; on one CPU close has no chance to come early */
	spin_lock_bh(&list->lock);
	queue_work(wq, &c->work);
	for (i = 0; i < 1000 && READ_ONCE(c->qp.wire->open); i++)
		mdelay(1);
	mdelay(20);
	__skb_queue_tail(list, skb);
	spin_unlock_bh(&list->lock);

	destroy_workqueue(wq);
	KUNIT_EXPECT_EQ(test, skb_queue_len(list), 0u);
	mrsoft_rx_close(&c->qp);
	mrsoft_rx_free(&c->qp);
}

static struct kunit_case wire_cases[] = {
	KUNIT_CASE(wire_opcodes),
	KUNIT_CASE_PARAM(wire_wr_opcodes, wr_gen_params),
	KUNIT_CASE(wire_read_response),
	KUNIT_CASE_PARAM(wire_icrc, icrc_gen_params),
	KUNIT_CASE(wire_icrc_bits),
	KUNIT_CASE_PARAM(wire_check_good, icrc_gen_params),
	KUNIT_CASE_PARAM(wire_check_cut, icrc_gen_params),
	KUNIT_CASE_PARAM(wire_check_spoilt, spoil_gen_params),
	KUNIT_CASE(wire_check_udp_length),
	KUNIT_CASE(wire_sorted),
	KUNIT_CASE_PARAM(wire_order, order_gen_params),
	KUNIT_CASE(wire_reserved),
	KUNIT_CASE_PARAM(wire_length, length_gen_params),
	KUNIT_CASE_PARAM(wire_feth, feth_gen_params),
	KUNIT_CASE(wire_replay_empty),
	KUNIT_CASE(wire_replay_kind),
	KUNIT_CASE(wire_replay_middle),
	KUNIT_CASE(wire_replay_depth),
	KUNIT_CASE(wire_replay_newest),
	KUNIT_CASE(wire_close_late),
	{}
};

static struct kunit_suite wire_suite = {
	.name = "mrsoft_wire",
	.test_cases = wire_cases,
};

kunit_test_suite(wire_suite);

MODULE_DESCRIPTION("KUnit suite of mrsoft: packets, checksum, replay");
MODULE_LICENSE("GPL");
