// SPDX-License-Identifier: GPL-2.0
/*
 * words_kunit.c - layer 0 and addresses against the specification
 *
 * Each table below is copied from the IBA or from the published header by hand,
 * not from the driver: status and reason words, operations, 24-bit arithmetic,
 * timer codes, the GRH of a datagram.
 */
#include <kunit/test.h>
#include <linux/ctype.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/dsfield.h>
#include <net/ipv6.h>

#include "ah.h"
#include "hca.h"
#include "opcode.h"
#include "psn.h"
#include "status.h"

/* --- statuses and reasons ------------------------------------------------- */

/* include/uapi/rdma/mrsoft.h promises these numbers to user space for ever. */
static const char * const reason_names[] = {
	"none", "key_unknown", "key_stale", "key_invalid", "key_kind",
	"wrong_pd", "wrong_qp", "outside", "no_local_write", "no_remote_read",
	"no_remote_write", "no_remote_atomic", "page_absent", "misaligned",
	"no_mw_bind", "mw_type", "mw_bound", "mw_rights", "mr_busy",
	"ring_entry", "opcode", "msg_too_long", "recv_too_short", "no_recv",
	"ah", "cq_overflow", "flushed", "qp_access", "no_path", "no_peer",
	"peer_state", "psn", "qkey", "rnr_exceeded", "retry_exceeded",
	"read_depth", "port_down", "peer_refused", "pkey", "pkt_length",
	"pkt_header", "pkt_icrc", "pkt_opcode", "pkt_source", "pkt_order",
	"pkt_queue", "no_remote_flush", "injected",
};

static void words_reason_numbers(struct kunit *test)
{
	u32 i;

	KUNIT_EXPECT_GE(test, (u32)MRSOFT_R_COUNT,
			(u32)ARRAY_SIZE(reason_names));
	for (i = 0; i < ARRAY_SIZE(reason_names); i++)
		KUNIT_EXPECT_STREQ(test, mrsoft_reason_name(i),
				   reason_names[i]);
}

/* A counter of this name is a file in sysfs and a word of rdma statistic. */
static void expect_name(struct kunit *test, const char *name)
{
	const char *c;

	KUNIT_EXPECT_GT(test, strlen(name), (size_t)1);
	KUNIT_EXPECT_LT(test, strlen(name), (size_t)32);
	for (c = name; *c; c++)
		KUNIT_EXPECT_TRUE_MSG(test, islower(*c) || *c == '_',
				      "%s", name);
}

static void expect_text(struct kunit *test, const char *text)
{
	size_t len = strlen(text);

	KUNIT_ASSERT_GT(test, len, (size_t)3);
	KUNIT_EXPECT_LT(test, len, (size_t)80);
	KUNIT_EXPECT_NE_MSG(test, text[len - 1], '.', "%s", text);
	KUNIT_EXPECT_NULL_MSG(test, strpbrk(text, "\n\t%"), "%s", text);
	KUNIT_EXPECT_FALSE_MSG(test, isspace(text[0]) ||
			       isspace(text[len - 1]), "%s", text);
}

static void words_reason_words(struct kunit *test)
{
	u32 i, k;

	for (i = 0; i < MRSOFT_R_COUNT; i++) {
		const char *name = mrsoft_reason_name(i);
		const char *text = mrsoft_reason_text(i);

		expect_name(test, name);
		expect_text(test, text);
		KUNIT_EXPECT_STRNEQ(test, name, "invalid");
		KUNIT_EXPECT_STRNEQ(test, text, "unknown reason");
		for (k = 0; k < i; k++) {
			KUNIT_EXPECT_STRNEQ(test, name, mrsoft_reason_name(k));
			KUNIT_EXPECT_STRNEQ(test, text, mrsoft_reason_text(k));
		}
	}
}

static void words_reason_foreign(struct kunit *test)
{
	static const u32 foreign[] = {
		MRSOFT_R_COUNT, MRSOFT_R_COUNT + 1, 255, 0x7fffffff,
		0x80000000, U32_MAX,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(foreign); i++) {
		KUNIT_EXPECT_STREQ(test, mrsoft_reason_name(foreign[i]),
				   "invalid");
		KUNIT_EXPECT_STREQ(test, mrsoft_reason_text(foreign[i]),
				   "unknown reason");
	}
}

static void words_refuse_counts(struct kunit *test)
{
	struct mrsoft_stats *stats = kunit_kzalloc(test, sizeof(*stats),
						   GFP_KERNEL);
	u32 i, k;

	KUNIT_ASSERT_NOT_NULL(test, stats);
	for (i = 0; i < MRSOFT_R_COUNT; i++)
		for (k = 0; k <= i; k++)
			KUNIT_EXPECT_EQ(test, (u32)mrsoft_refuse(stats, i), i);
	for (i = 0; i < MRSOFT_R_COUNT; i++)
		KUNIT_EXPECT_EQ(test, atomic64_read(&stats->reasons[i]),
				(s64)i + 1);
	KUNIT_EXPECT_EQ(test, atomic64_read(&stats->tx_msgs), 0);
}

/* IBA 9.7.5.2: NAK code -> 11.6.2: completion status of the requester. */
static void words_status_wc(struct kunit *test)
{
	static const struct {
		enum mrsoft_status status;
		enum ib_wc_status wc;
	} rows[] = {
		{ MRSOFT_S_OK, IB_WC_SUCCESS },
		{ MRSOFT_S_RNR, IB_WC_RNR_RETRY_EXC_ERR },
		{ MRSOFT_S_SILENT, IB_WC_RETRY_EXC_ERR },
		{ MRSOFT_S_INV_REQ, IB_WC_REM_INV_REQ_ERR },
		{ MRSOFT_S_REM_ACCESS, IB_WC_REM_ACCESS_ERR },
		{ MRSOFT_S_REM_OP, IB_WC_REM_OP_ERR },
		{ MRSOFT_S_LOC_PROT, IB_WC_LOC_PROT_ERR },
		{ MRSOFT_S_FAULT, IB_WC_GENERAL_ERR },
	};
	u32 seen = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		KUNIT_EXPECT_EQ(test, mrsoft_status_to_wc(rows[i].status),
				rows[i].wc);
		seen |= BIT(rows[i].status);
	}
	KUNIT_EXPECT_EQ_MSG(test, seen, (u32)BIT(MRSOFT_S_COUNT) - 1,
			    "a status without a row in this test");
}

/* --- timers --------------------------------------------------------------- */

/* IBA 9.7.5.2.8, table 45, in units of 10 us as printed there in ms. */
static const u32 rnr_table[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256,
	384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
	24576, 32768, 49152,
};

static void words_rnr_timer(struct kunit *test)
{
	u32 code;

	for (code = 0; code < 32; code++)
		KUNIT_EXPECT_EQ_MSG(test, mrsoft_rnr_ns(code),
				    rnr_table[code] * 10000ull, "%u", code);
	/* the core names some of the codes by their ms */
	KUNIT_EXPECT_EQ(test, mrsoft_rnr_ns(IB_RNR_TIMER_655_36),
			655360000ull);
	KUNIT_EXPECT_EQ(test, mrsoft_rnr_ns(IB_RNR_TIMER_000_64), 640000ull);
	KUNIT_EXPECT_EQ(test, mrsoft_rnr_ns(IB_RNR_TIMER_491_52),
			491520000ull);
	/* five bits, whatever is around them */
	for (code = 32; code < 256; code++)
		KUNIT_EXPECT_EQ(test, mrsoft_rnr_ns(code),
				mrsoft_rnr_ns(code & 31));
}

/* IBA 9.7.6.1.3: 4.096 us * 2^code; 0 waits for ever. */
static void words_ack_timer(struct kunit *test)
{
	u64 ns = 4096;
	u32 code;

	KUNIT_EXPECT_EQ(test, mrsoft_ack_ns(0), 0ull);
	for (code = 1; code < 32; code++) {
		ns *= 2;
		KUNIT_EXPECT_EQ_MSG(test, mrsoft_ack_ns(code), ns, "%u", code);
	}
	KUNIT_EXPECT_EQ(test, mrsoft_ack_ns(14), 67108864ull);
	KUNIT_EXPECT_EQ(test, mrsoft_ack_ns(32), 0ull);
	KUNIT_EXPECT_EQ(test, mrsoft_ack_ns(33), 8192ull);
}

/* --- sequence numbers ----------------------------------------------------- */

static void words_psn_add(struct kunit *test)
{
	static const struct {
		u32 psn, n, sum;
	} rows[] = {
		{ 0, 0, 0 },
		{ 0, 1, 1 },
		{ 0xfffffe, 1, 0xffffff },
		{ 0xffffff, 1, 0 },
		{ 0xffffff, 0x1000000, 0xffffff },
		{ 0x800000, 0x800000, 0 },
		{ 0xffffff, 0xffffff, 0xfffffe },
		/* a message of 2^31 bytes at an MTU of 256 */
		{ 0x123456, 0x800000, 0x923456 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		KUNIT_EXPECT_EQ_MSG(test, mrsoft_psn_add(rows[i].psn,
							 rows[i].n),
				    rows[i].sum, "row %d", i);
}

static void words_psn_diff(struct kunit *test)
{
	static const struct {
		u32 a, b;
		s32 diff;
	} rows[] = {
		{ 0, 0, 0 },
		{ 1, 0, 1 },
		{ 0, 1, -1 },
		{ 0, 0xffffff, 1 },
		{ 0xffffff, 0, -1 },
		{ 0x7fffff, 0, 0x7fffff },
		{ 0x800000, 0, -0x800000 },
		{ 0, 0x800000, -0x800000 },
		{ 0x800001, 0, -0x7fffff },
		{ 5, 0xfffffb, 10 },
		{ 0xfffffb, 5, -10 },
	};
	u32 base, n;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		KUNIT_EXPECT_EQ_MSG(test, mrsoft_psn_diff(rows[i].a, rows[i].b),
				    rows[i].diff, "row %d", i);
	/* what is added is the difference, from any start */
	for (base = 0xfffff0; base < 0x1000010; base++)
		for (n = 0; n < 0x800000; n = n * 3 + 1) {
			u32 psn = base & MRSOFT_PSN_MASK;
			u32 sum = mrsoft_psn_add(psn, n);

			KUNIT_EXPECT_EQ(test, mrsoft_psn_diff(sum, psn), (s32)n);
		}
}

/* IBA 9.7.2: an empty message is one packet too. */
static void words_psn_packets(struct kunit *test)
{
	u32 mtu;

	for (mtu = 256; mtu <= 4096; mtu *= 2) {
		KUNIT_EXPECT_EQ(test, mrsoft_psn_packets(0, mtu), 1u);
		KUNIT_EXPECT_EQ(test, mrsoft_psn_packets(1, mtu), 1u);
		KUNIT_EXPECT_EQ(test, mrsoft_psn_packets(mtu - 1, mtu), 1u);
		KUNIT_EXPECT_EQ(test, mrsoft_psn_packets(mtu, mtu), 1u);
		KUNIT_EXPECT_EQ(test, mrsoft_psn_packets(mtu + 1, mtu), 2u);
		KUNIT_EXPECT_EQ(test, mrsoft_psn_packets(2 * mtu, mtu), 2u);
		KUNIT_EXPECT_EQ(test, mrsoft_psn_packets(1ull << 31, mtu),
				(1u << 31) / mtu);
	}
}

/* --- operations ----------------------------------------------------------- */

#define RC	BIT(IB_QPT_RC)
#define UC	BIT(IB_QPT_UC)
#define UD	(BIT(IB_QPT_UD) | BIT(IB_QPT_GSI))
#define IMM	MRSOFT_OPF_IMM
#define INV	MRSOFT_OPF_INV
#define RECV	MRSOFT_OPF_RECV
#define INL	MRSOFT_OPF_INLINE

struct op_row {
	const char *name;
	u32 opcode;
	u32 types;
	u32 kind;
	u32 flags;
	int rights;
	u32 wc;
	u32 recv_wc;
};

/*
 * IBA 9.2, table 38 (operations of the services), 10.8.2 (modifiers), 11.4.1.1
 * (work completions); Annex A19.  User space's numbers: enum ibv_wr_opcode, ibv_wc_opcode.
 */
static const struct op_row op_rows[] = {
	{ "write", 0, RC | UC, MRSOFT_OP_WRITE, INL, IB_ACCESS_REMOTE_WRITE,
	  IB_WC_RDMA_WRITE, 0 },
	{ "write with immediate", 1, RC | UC, MRSOFT_OP_WRITE,
	  INL | IMM | RECV, IB_ACCESS_REMOTE_WRITE, IB_WC_RDMA_WRITE,
	  IB_WC_RECV_RDMA_WITH_IMM },
	{ "send", 2, RC | UC | UD, MRSOFT_OP_SEND, INL | RECV, 0, IB_WC_SEND,
	  IB_WC_RECV },
	{ "send with immediate", 3, RC | UC | UD, MRSOFT_OP_SEND,
	  INL | IMM | RECV, 0, IB_WC_SEND, IB_WC_RECV },
	{ "read", 4, RC, MRSOFT_OP_READ, 0, IB_ACCESS_REMOTE_READ,
	  IB_WC_RDMA_READ, 0 },
	{ "compare and swap", 5, RC, MRSOFT_OP_ATOMIC, 0,
	  IB_ACCESS_REMOTE_ATOMIC, IB_WC_COMP_SWAP, 0 },
	{ "fetch and add", 6, RC, MRSOFT_OP_ATOMIC, 0,
	  IB_ACCESS_REMOTE_ATOMIC, IB_WC_FETCH_ADD, 0 },
	{ "local invalidate", 7, RC | UC, MRSOFT_OP_LOCAL, 0, 0,
	  IB_WC_LOCAL_INV, 0 },
	{ "bind window", 8, RC | UC, MRSOFT_OP_LOCAL, 0, 0, IB_WC_BIND_MW, 0 },
	{ "send with invalidate", 9, RC, MRSOFT_OP_SEND, INL | INV | RECV, 0,
	  IB_WC_SEND, IB_WC_RECV },
	{ "flush", 14, RC, MRSOFT_OP_FLUSH, 0,
	  IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_FLUSH_PERSISTENT, IB_WC_FLUSH, 0 },
	{ "atomic write", 15, RC, MRSOFT_OP_WRITE, INL, IB_ACCESS_REMOTE_WRITE,
	  IB_WC_ATOMIC_WRITE, 0 },
	{ "register", 0x20, RC | UC, MRSOFT_OP_LOCAL, 0, 0, IB_WC_REG_MR, 0 },
};

KUNIT_ARRAY_PARAM_DESC(op, op_rows, name);

static const enum ib_qp_type qp_types[] = {
	IB_QPT_SMI, IB_QPT_GSI, IB_QPT_RC, IB_QPT_UC, IB_QPT_UD,
	IB_QPT_RAW_PACKET, IB_QPT_XRC_INI, IB_QPT_XRC_TGT, IB_QPT_DRIVER,
};

static void words_op_row(struct kunit *test)
{
	const struct op_row *row = test->param_value;
	int i;

	for (i = 0; i < ARRAY_SIZE(qp_types); i++) {
		const struct mrsoft_op *op;
		bool allowed = qp_types[i] < 32 &&
			       (row->types & BIT(qp_types[i]));

		op = mrsoft_op_find(row->opcode, qp_types[i]);
		KUNIT_ASSERT_EQ_MSG(test, !!op, allowed, "QP type %d",
				    qp_types[i]);
		if (!op)
			continue;
		KUNIT_EXPECT_EQ(test, op->kind, row->kind);
		KUNIT_EXPECT_EQ(test, op->flags & (INL | IMM | INV | RECV),
				row->flags);
		KUNIT_EXPECT_EQ(test, op->rights, row->rights);
		KUNIT_EXPECT_EQ(test, (u32)op->wc, row->wc);
		KUNIT_EXPECT_EQ(test, (u32)op->recv_wc, row->recv_wc);
	}
}

static bool op_known(u32 opcode)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(op_rows); i++)
		if (op_rows[i].opcode == opcode)
			return true;
	return false;
}

/* Any number that a user may write, and those of the kernel alone. */
static void words_op_unknown(struct kunit *test)
{
	static const u32 far[] = {
		256, 257, 0x100 + IB_WR_SEND, 0x10000, 0x7fffffff, 0x80000000,
		0x80000002, U32_MAX,
	};
	int i, t;

	for (t = 0; t < ARRAY_SIZE(qp_types); t++) {
		enum ib_qp_type type = qp_types[t];

		for (i = 0; i < 256; i++)
			KUNIT_EXPECT_TRUE_MSG(test, op_known(i) ||
					      !mrsoft_op_find(i, type),
					      "opcode %d, QP type %d", i, type);
		for (i = 0; i < ARRAY_SIZE(far); i++)
			KUNIT_EXPECT_NULL(test, mrsoft_op_find(far[i], type));
	}
}

/* Annex A19: two placement types, which may be combined, and two levels. */
static void words_flush(struct kunit *test)
{
	struct mrsoft_flush flush = {};
	int type, level;

	for (type = 0; type < 256; type++) {
		flush.type = type;
		for (level = 0; level < 256; level++) {
			flush.level = level;
			KUNIT_EXPECT_EQ_MSG(test, mrsoft_flush_known(&flush),
					    type >= 1 && type <= 3 && level <= 1,
					    "type %#x, level %#x", type, level);
		}
	}
	flush.type = 1;
	KUNIT_EXPECT_EQ(test, mrsoft_flush_rights(&flush), 1 << 8);
	flush.type = 2;
	KUNIT_EXPECT_EQ(test, mrsoft_flush_rights(&flush), 1 << 9);
	flush.type = 3;
	KUNIT_EXPECT_EQ(test, mrsoft_flush_rights(&flush), 3 << 8);
}

/* --- addresses ------------------------------------------------------------ */

#define IP4(a, b, c, d) \
	{ .raw = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d } }

static const struct av_row {
	const char *name;
	union ib_gid sgid;
	union ib_gid dgid;
	u32 payload;
	u32 packet;	/* IP payload of the packet on a wire, bytes */
	bool ipv4;
} av_rows[] = {
	{ "ipv4 empty", IP4(10, 1, 2, 3), IP4(192, 168, 255, 1), 0, 32, true },
	{ "ipv4 padded", IP4(10, 1, 2, 3), IP4(127, 0, 0, 1), 13, 48, true },
	{ "ipv4 4096", IP4(1, 0, 0, 2), IP4(223, 5, 6, 7), 4096, 4128, true },
	{ "ipv6 empty",
	  { .raw = { 0xfe, 0x80, [8] = 1, 2, 3, 0xff, 0xfe, 4, 5, 6 } },
	  { .raw = { 0xfe, 0x80, [15] = 9 } }, 0, 32, false },
	{ "ipv6 100",
	  { .raw = { 0x20, 1, 0xd, 0xb8, [15] = 1 } },
	  { .raw = { 0x20, 1, 0xd, 0xb8, [15] = 2 } }, 100, 132, false },
	/* the source GID looks like the start of an IPv4 header */
	{ "ipv6 ambiguous",
	  { .raw = { 0x20, 1, [12] = 0x45, 0, 0, 60 } },
	  { .raw = { 0x20, 1, [6] = 0x40, 0x11, [15] = 2 } }, 4095, 4128,
	  false },
};

KUNIT_ARRAY_PARAM_DESC(av, av_rows, name);

static void fill_av(struct mrsoft_av *av, struct ib_gid_attr *sgid_attr,
		    const struct av_row *row)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_ROCE };

	sgid_attr->gid = row->sgid;
	rdma_ah_set_grh(&attr, NULL, 0xfedcba, 3, 61, 0xa5);
	rdma_ah_set_dgid_raw(&attr, (void *)row->dgid.raw);
	rdma_ah_set_sl(&attr, 5);
	attr.grh.dgid = row->dgid;
	attr.grh.sgid_attr = sgid_attr;
	memset(attr.roce.dmac, 0x6a, ETH_ALEN);
	mrsoft_av_set(av, &attr);
}

static void words_av_set(struct kunit *test)
{
	const struct av_row *row = test->param_value;
	struct ib_gid_attr sgid_attr = {};
	struct mrsoft_av av;
	u8 mac[ETH_ALEN];

	memset(&av, 0xee, sizeof(av));
	memset(mac, 0x6a, sizeof(mac));
	fill_av(&av, &sgid_attr, row);
	KUNIT_EXPECT_MEMEQ(test, &av.sgid, &row->sgid, sizeof(av.sgid));
	KUNIT_EXPECT_MEMEQ(test, &av.dgid, &row->dgid, sizeof(av.dgid));
	KUNIT_EXPECT_MEMEQ(test, av.dmac, mac, sizeof(mac));
	KUNIT_EXPECT_EQ(test, av.ipv4, row->ipv4);
	KUNIT_EXPECT_EQ(test, av.hop_limit, (u8)61);
	KUNIT_EXPECT_EQ(test, av.traffic_class, (u8)0xa5);
	KUNIT_EXPECT_EQ(test, av.sgid_index, (u8)3);
	KUNIT_EXPECT_EQ(test, av.sl, (u8)5);
	/* 20 bits */
	KUNIT_EXPECT_EQ(test, av.flow_label, 0xedcbau);
}

/* Without a source GID an address is taken and sends nothing. */
static void words_av_no_source(struct kunit *test)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_ROCE };
	struct mrsoft_av av;

	memset(&av, 0xee, sizeof(av));
	mrsoft_av_set(&av, &attr);
	KUNIT_EXPECT_TRUE(test, !memchr_inv(&av.sgid, 0, sizeof(av.sgid)));
}

/* The core, as a consumer, must find out what kind of header it is, A17.4.3. */
static void words_grh(struct kunit *test)
{
	const struct av_row *row = test->param_value;
	union {
		union rdma_network_hdr hdr;
		u8 raw[MRSOFT_GRH_BYTES + 8];
	} *buf = kunit_kzalloc(test, sizeof(*buf), GFP_KERNEL);
	struct ib_gid_attr sgid_attr = {};
	union ib_gid sgid, dgid;
	struct mrsoft_av av;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	memset(buf, 0xee, sizeof(*buf));
	fill_av(&av, &sgid_attr, row);
	mrsoft_av_grh(&av, row->payload, buf->raw);

	KUNIT_EXPECT_EQ(test, ib_get_rdma_header_version(&buf->hdr),
			row->ipv4 ? 4 : 6);
	KUNIT_EXPECT_EQ(test, ib_get_gids_from_rdma_hdr(&buf->hdr, row->ipv4 ?
			RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6, &sgid, &dgid),
			0);
	KUNIT_EXPECT_MEMEQ(test, &sgid, &row->sgid, sizeof(sgid));
	KUNIT_EXPECT_MEMEQ(test, &dgid, &row->dgid, sizeof(dgid));
	KUNIT_EXPECT_TRUE(test, !memchr_inv(buf->raw + MRSOFT_GRH_BYTES, 0xee,
					    8));
	if (row->ipv4) {
		struct iphdr *ip = (struct iphdr *)&buf->hdr.roce4grh;

		KUNIT_EXPECT_TRUE(test, !memchr_inv(buf->raw, 0, 20));
		KUNIT_EXPECT_EQ(test, (u32)ntohs(ip->tot_len),
				row->packet + 20);
		KUNIT_EXPECT_EQ(test, ip->protocol, (u8)IPPROTO_UDP);
		KUNIT_EXPECT_EQ(test, ip->ttl, (u8)61);
		KUNIT_EXPECT_EQ(test, ip->tos, (u8)0xa5);
		KUNIT_EXPECT_EQ(test, (__force u16)ip_fast_csum(ip, ip->ihl),
				(u16)0);
	} else {
		struct ipv6hdr *ip = (struct ipv6hdr *)&buf->hdr.ibgrh;

		KUNIT_EXPECT_EQ(test, (u32)ntohs(ip->payload_len),
				row->packet);
		KUNIT_EXPECT_EQ(test, ip->nexthdr, (u8)IPPROTO_UDP);
		KUNIT_EXPECT_EQ(test, ip->hop_limit, (u8)61);
		KUNIT_EXPECT_EQ(test, ipv6_get_dsfield(ip), (u8)0xa5);
		KUNIT_EXPECT_EQ(test, ntohl(ip6_flowlabel(ip)), 0xedcbau);
	}
}

/* Numbers of AHs: only in their own PD, gone at once, not soon again. */
static void words_ah_numbers(struct kunit *test)
{
	struct mrsoft_hca *hca = kunit_kzalloc(test, sizeof(*hca), GFP_KERNEL);
	struct mrsoft_ah *ah = kunit_kzalloc(test, 2 * sizeof(*ah), GFP_KERNEL);
	struct mrsoft_pd *pd = kunit_kzalloc(test, 2 * sizeof(*pd), GFP_KERNEL);
	struct mrsoft_av av;
	u32 old, i;

	KUNIT_ASSERT_TRUE(test, hca && ah && pd);
	xa_init_flags(&hca->ahs, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
	for (i = 0; i < 2; i++) {
		spin_lock_init(&ah[i].lock);
		ah[i].ib.pd = &pd[i].ib;
		ah[i].av.hop_limit = 10 + i;
		KUNIT_ASSERT_EQ(test, mrsoft_ah_publish(hca, &ah[i]), 0);
		KUNIT_EXPECT_NE(test, ah[i].ah_num, 0u);
	}
	KUNIT_EXPECT_NE(test, ah[0].ah_num, ah[1].ah_num);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_TRUE(test, mrsoft_ah_read(hca, ah[i].ah_num,
						       &pd[i], &av));
		KUNIT_EXPECT_EQ(test, (u32)av.hop_limit, 10 + i);
		KUNIT_EXPECT_FALSE(test, mrsoft_ah_read(hca, ah[i].ah_num,
							&pd[1 - i], &av));
	}
	KUNIT_EXPECT_FALSE(test, mrsoft_ah_read(hca, 0, &pd[0], &av));
	KUNIT_EXPECT_FALSE(test, mrsoft_ah_read(hca, U32_MAX, &pd[0], &av));

	old = ah[0].ah_num;
	for (i = 0; i < 100; i++) {
		mrsoft_ah_unpublish(hca, &ah[0]);
		KUNIT_EXPECT_FALSE(test, mrsoft_ah_read(hca, old, &pd[0], &av));
		KUNIT_EXPECT_EQ(test, mrsoft_ah_publish(hca, &ah[0]), 0);
		KUNIT_EXPECT_NE(test, ah[0].ah_num, old);
	}
	mrsoft_ah_unpublish(hca, &ah[0]);
	mrsoft_ah_unpublish(hca, &ah[1]);
	KUNIT_EXPECT_TRUE(test, xa_empty(&hca->ahs));
}

static struct kunit_case words_cases[] = {
	KUNIT_CASE(words_reason_numbers),
	KUNIT_CASE(words_reason_words),
	KUNIT_CASE(words_reason_foreign),
	KUNIT_CASE(words_refuse_counts),
	KUNIT_CASE(words_status_wc),
	KUNIT_CASE(words_rnr_timer),
	KUNIT_CASE(words_ack_timer),
	KUNIT_CASE(words_psn_add),
	KUNIT_CASE(words_psn_diff),
	KUNIT_CASE(words_psn_packets),
	KUNIT_CASE_PARAM(words_op_row, op_gen_params),
	KUNIT_CASE(words_op_unknown),
	KUNIT_CASE(words_flush),
	KUNIT_CASE_PARAM(words_av_set, av_gen_params),
	KUNIT_CASE(words_av_no_source),
	KUNIT_CASE_PARAM(words_grh, av_gen_params),
	KUNIT_CASE(words_ah_numbers),
	{}
};

static struct kunit_suite words_suite = {
	.name = "mrsoft_words",
	.test_cases = words_cases,
};

kunit_test_suite(words_suite);

MODULE_DESCRIPTION("KUnit suite of mrsoft: words, timers, operations, addresses");
MODULE_LICENSE("GPL");
