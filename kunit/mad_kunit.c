// SPDX-License-Identifier: GPL-2.0
/*
 * mad_kunit.c - answers of the performance management class
 *
 * Requests and answers are bytes here, at the offsets of the tables of IBA Vol 1,
 * 13.4.2 (header), 16.1.3.5 (PortCounters), 16.1.4.11 (PortCountersExtended), so
 * that no structure of the kernel is trusted.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/unaligned.h>

#include "mad.h"

#define GET		0x01
#define SET		0x02
#define GET_RESP	0x81
#define PMA		0x04

#define CLASS_PORT_INFO	0x0001
#define PORT_COUNTERS	0x0012
#define PORT_EXTENDED	0x001d

/* offsets in a MAD */
#define BASE_VERSION	0
#define CLASS		1
#define CLASS_VERSION	2
#define METHOD		3
#define STATUS		4
#define TID		8
#define ATTR		16
#define MODIFIER	20
#define DATA		64

#define BYTES		256

struct fix {
	struct mrsoft_pma pma;
	struct mrsoft_stats stats;
	u8 in[BYTES] __aligned(8);
	u8 out[BYTES] __aligned(8);
};

static struct fix *fixture(struct kunit *test)
{
	struct fix *fix = kunit_kzalloc(test, sizeof(*fix), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fix);
	mrsoft_pma_init(&fix->pma);
	return fix;
}

/* A request whose bytes are random where they mean nothing. */
static void request(struct fix *fix, u8 method, u16 attr)
{
	get_random_bytes(fix->in, BYTES);
	fix->in[BASE_VERSION] = 1;
	fix->in[CLASS] = PMA;
	fix->in[CLASS_VERSION] = 1;
	fix->in[METHOD] = method;
	put_unaligned_be16(0, fix->in + STATUS);
	put_unaligned_be16(attr, fix->in + ATTR);
	put_unaligned_be32(0, fix->in + MODIFIER);
	fix->in[DATA + 1] = 1;
}

static bool ask(struct fix *fix)
{
	memset(fix->out, 0xa5, BYTES);
	return mrsoft_mad_answer(&fix->pma, &fix->stats, (void *)fix->in,
				 (void *)fix->out);
}

/* All of the header that is the requester's comes back. */
static void expect_answer(struct kunit *test, struct fix *fix, u16 status)
{
	KUNIT_ASSERT_TRUE(test, ask(fix));
	KUNIT_EXPECT_EQ(test, fix->out[METHOD], GET_RESP);
	KUNIT_EXPECT_EQ(test, get_unaligned_be16(fix->out + STATUS), status);
	KUNIT_EXPECT_EQ(test, memcmp(fix->out, fix->in, METHOD), 0);
	KUNIT_EXPECT_EQ(test, memcmp(fix->out + TID, fix->in + TID,
				     DATA - TID), 0);
}

/* A refusal changes method and status, and not one byte more. */
static void expect_refusal(struct kunit *test, struct fix *fix, u16 status)
{
	expect_answer(test, fix, status);
	KUNIT_EXPECT_EQ(test, memcmp(fix->out + DATA, fix->in + DATA,
				     BYTES - DATA), 0);
}

static void expect_no_answer(struct kunit *test, struct fix *fix)
{
	KUNIT_EXPECT_FALSE(test, ask(fix));
	KUNIT_EXPECT_NULL(test, memchr_inv(fix->out, 0xa5, BYTES));
}

static u32 at32(const struct fix *fix, int offset)
{
	return get_unaligned_be32(fix->out + DATA + offset);
}

static u16 at16(const struct fix *fix, int offset)
{
	return get_unaligned_be16(fix->out + DATA + offset);
}

static u64 at64(const struct fix *fix, int offset)
{
	return get_unaligned_be64(fix->out + DATA + offset);
}

static void get(struct kunit *test, struct fix *fix, u16 attr)
{
	request(fix, GET, attr);
	expect_answer(test, fix, 0);
}

static void set(struct kunit *test, struct fix *fix, u16 attr, u16 select)
{
	request(fix, SET, attr);
	put_unaligned_be16(select, fix->in + DATA + 2);
	expect_answer(test, fix, 0);
}

/* --- what is counted ------------------------------------------------------- */

static void mad_class_port_info(struct kunit *test)
{
	struct fix *fix = fixture(test);

	get(test, fix, CLASS_PORT_INFO);
	KUNIT_EXPECT_EQ(test, fix->out[DATA], 1);
	KUNIT_EXPECT_EQ(test, fix->out[DATA + 1], 1);
	/* AllPortSelect; 64-bit counters but those of unicast and multicast */
	KUNIT_EXPECT_EQ(test, at16(fix, 2), BIT(8) | BIT(10));
	/* 27 bits CapabilityMask2, 5 bits RespTimeValue */
	KUNIT_EXPECT_EQ(test, at32(fix, 4) >> 5, 0u);
	KUNIT_EXPECT_LE(test, at32(fix, 4) & 31, 20u);
	KUNIT_EXPECT_NE(test, at32(fix, 4) & 31, 0u);
	/* neither redirection nor traps */
	KUNIT_EXPECT_NULL(test, memchr_inv(fix->out + DATA + 8, 0, 64));
}

static void fill_stats(struct fix *fix)
{
	atomic64_set(&fix->stats.tx_bytes, 4000);
	atomic64_set(&fix->stats.rx_bytes, 8003);
	atomic64_set(&fix->stats.tx_packets, 11);
	atomic64_set(&fix->stats.rx_packets, 22);
	atomic64_set(&fix->stats.reasons[MRSOFT_R_PKT_LENGTH], 1);
	atomic64_set(&fix->stats.reasons[MRSOFT_R_PKT_HEADER], 10);
	atomic64_set(&fix->stats.reasons[MRSOFT_R_PKT_ICRC], 100);
	atomic64_set(&fix->stats.reasons[MRSOFT_R_PKT_QUEUE], 1000);
	atomic64_set(&fix->stats.reasons[MRSOFT_R_PORT_DOWN], 7);
	/* no error of the port */
	atomic64_set(&fix->stats.reasons[MRSOFT_R_QKEY], 5);
	atomic64_set(&fix->stats.reasons[MRSOFT_R_OUTSIDE], 5);
}

static void mad_port_counters(struct kunit *test)
{
	struct fix *fix = fixture(test);
	static const u8 ports[] = { 1, 255 };
	int i;

	fill_stats(fix);
	for (i = 0; i < ARRAY_SIZE(ports); i++) {
		request(fix, GET, PORT_COUNTERS);
		fix->in[DATA + 1] = ports[i];
		expect_answer(test, fix, 0);
		KUNIT_EXPECT_EQ(test, fix->out[DATA + 1], ports[i]);
		KUNIT_EXPECT_EQ(test, at16(fix, 4), 0);	/* symbol errors */
		KUNIT_EXPECT_EQ(test, at16(fix, 6), 0);	/* link errors */
		KUNIT_EXPECT_EQ(test, at16(fix, 8), 1111); /* PortRcvErrors */
		KUNIT_EXPECT_EQ(test, at32(fix, 10), 0u); /* remote, relay */
		KUNIT_EXPECT_EQ(test, at16(fix, 14), 7); /* PortXmitDiscards */
		KUNIT_EXPECT_EQ(test, at32(fix, 16), 0u); /* constraints */
		KUNIT_EXPECT_EQ(test, at32(fix, 20), 0u); /* VL15Dropped */
		/* words of 4 bytes */
		KUNIT_EXPECT_EQ(test, at32(fix, 24), 1000u); /* PortXmitData */
		KUNIT_EXPECT_EQ(test, at32(fix, 28), 2000u); /* PortRcvData */
		KUNIT_EXPECT_EQ(test, at32(fix, 32), 11u); /* PortXmitPkts */
		KUNIT_EXPECT_EQ(test, at32(fix, 36), 22u); /* PortRcvPkts */
		KUNIT_EXPECT_EQ(test, at32(fix, 40), 0u); /* PortXmitWait */
	}
}

static void mad_port_extended(struct kunit *test)
{
	struct fix *fix = fixture(test);

	fill_stats(fix);
	atomic64_set(&fix->stats.tx_bytes, S64_MAX);
	atomic64_set(&fix->stats.tx_packets, S64_MAX);
	get(test, fix, PORT_EXTENDED);
	KUNIT_EXPECT_EQ(test, fix->out[DATA + 1], 1);
	KUNIT_EXPECT_EQ(test, at64(fix, 8), S64_MAX / 4ull);
	KUNIT_EXPECT_EQ(test, at64(fix, 16), 2000ull);
	KUNIT_EXPECT_EQ(test, at64(fix, 24), (u64)S64_MAX);
	KUNIT_EXPECT_EQ(test, at64(fix, 32), 22ull);
	/* not counted, as ClassPortInfo says */
	KUNIT_EXPECT_NULL(test, memchr_inv(fix->out + DATA + 40, 0, 32));
}

/* The largest number that fits, and there it stays: IBA 16.1.3.5. */
static void mad_saturates(struct kunit *test)
{
	struct fix *fix = fixture(test);
	struct mrsoft_stats *stats = &fix->stats;
	static const struct {
		u64 count;
		u32 packets;
		u32 words;
		u16 errors;
	} rows[] = {
		{ 0, 0, 0, 0 },
		{ 65534, 65534, 16383, 65534 },
		{ 65535, 65535, 16383, 65535 },
		{ 65536, 65536, 16384, 65535 },
		{ 0xfffffffe, 0xfffffffe, 0x3fffffff, 65535 },
		{ 0xffffffff, 0xffffffff, 0x3fffffff, 65535 },
		{ 0x100000000, 0xffffffff, 0x40000000, 65535 },
		{ 0x100000001, 0xffffffff, 0x40000000, 65535 },
		{ 0x3fffffffb, 0xffffffff, 0xfffffffe, 65535 },
		{ 0x3fffffffc, 0xffffffff, 0xffffffff, 65535 },
		{ 0x400000000, 0xffffffff, 0xffffffff, 65535 },
		{ 0x7fffffffffffffff, 0xffffffff, 0xffffffff, 65535 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		atomic64_set(&stats->tx_bytes, rows[i].count);
		atomic64_set(&stats->rx_bytes, rows[i].count);
		atomic64_set(&stats->tx_packets, rows[i].count);
		atomic64_set(&stats->rx_packets, rows[i].count);
		atomic64_set(&stats->reasons[MRSOFT_R_PKT_ICRC], rows[i].count);
		atomic64_set(&stats->reasons[MRSOFT_R_PORT_DOWN],
			     rows[i].count);
		get(test, fix, PORT_COUNTERS);
		KUNIT_EXPECT_EQ_MSG(test, at16(fix, 8), rows[i].errors, "%d", i);
		KUNIT_EXPECT_EQ_MSG(test, at16(fix, 14), rows[i].errors, "%d", i);
		KUNIT_EXPECT_EQ_MSG(test, at32(fix, 24), rows[i].words, "%d", i);
		KUNIT_EXPECT_EQ_MSG(test, at32(fix, 28), rows[i].words, "%d", i);
		KUNIT_EXPECT_EQ_MSG(test, at32(fix, 32), rows[i].packets, "%d", i);
		KUNIT_EXPECT_EQ_MSG(test, at32(fix, 36), rows[i].packets, "%d", i);
	}
}

/* --- Set ---------------------------------------------------------------------- */

/* A counter: its bit in CounterSelect, where it stands, and what adds one. */
static const struct counter {
	const char *name;
	u16 attr;
	u16 select;
	u8 offset;
	u8 size;
	size_t stat;
	u8 unit;
} counters[] = {
#define STAT(field) offsetof(struct mrsoft_stats, field)
	{ "rcv_errors", PORT_COUNTERS, 0x0008, 8, 2,
	  STAT(reasons[MRSOFT_R_PKT_ICRC]), 1 },
	{ "xmit_discards", PORT_COUNTERS, 0x0040, 14, 2,
	  STAT(reasons[MRSOFT_R_PORT_DOWN]), 1 },
	{ "xmit_data", PORT_COUNTERS, 0x1000, 24, 4, STAT(tx_bytes), 4 },
	{ "rcv_data", PORT_COUNTERS, 0x2000, 28, 4, STAT(rx_bytes), 4 },
	{ "xmit_packets", PORT_COUNTERS, 0x4000, 32, 4, STAT(tx_packets), 1 },
	{ "rcv_packets", PORT_COUNTERS, 0x8000, 36, 4, STAT(rx_packets), 1 },
	{ "ext xmit_data", PORT_EXTENDED, 0x0001, 8, 8, STAT(tx_bytes), 4 },
	{ "ext rcv_data", PORT_EXTENDED, 0x0002, 16, 8, STAT(rx_bytes), 4 },
	{ "ext xmit_packets", PORT_EXTENDED, 0x0004, 24, 8, STAT(tx_packets), 1 },
	{ "ext rcv_packets", PORT_EXTENDED, 0x0008, 32, 8, STAT(rx_packets), 1 },
};

KUNIT_ARRAY_PARAM_DESC(counter, counters, name);

static atomic64_t *stat_of(struct fix *fix, const struct counter *c)
{
	return (void *)&fix->stats + c->stat;
}

static u64 value_of(struct fix *fix, const struct counter *c)
{
	switch (c->size) {
	case 2:
		return at16(fix, c->offset);
	case 4:
		return at32(fix, c->offset);
	default:
		return at64(fix, c->offset);
	}
}

static void count_up(struct fix *fix, u32 n)
{
	int i;

	/* both attributes show the same four: add to each statistic once */
	for (i = 0; i < ARRAY_SIZE(counters); i++)
		if (counters[i].attr == PORT_COUNTERS)
			atomic64_add(n * counters[i].unit,
				     stat_of(fix, &counters[i]));
}

/* Only the selected one, in no other attribute, and no statistic. */
static void mad_set_one(struct kunit *test)
{
	const struct counter *c = test->param_value, *other;
	struct fix *fix = fixture(test);
	struct mrsoft_stats *before;

	before = kunit_kzalloc(test, sizeof(*before), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, before);
	count_up(fix, 50);
	memcpy(before, &fix->stats, sizeof(*before));
	set(test, fix, c->attr, c->select);
	/* the answer has what a Get has */
	KUNIT_EXPECT_EQ(test, value_of(fix, c), 0ull);
	KUNIT_EXPECT_EQ(test, memcmp(before, &fix->stats, sizeof(*before)), 0);
	count_up(fix, 3);
	for (other = counters; other < counters + ARRAY_SIZE(counters);
	     other++) {
		if (other->attr != c->attr)
			continue;
		get(test, fix, other->attr);
		KUNIT_EXPECT_EQ_MSG(test, value_of(fix, other),
				    other == c ? 3ull : 53ull, "%s",
				    other->name);
	}
	/* once more, from there */
	set(test, fix, c->attr, c->select);
	count_up(fix, 2);
	get(test, fix, c->attr);
	KUNIT_EXPECT_EQ(test, value_of(fix, c), 2ull);
}

/* No bit, bits of counters that we do not have, and all. */
static void mad_set_masks(struct kunit *test)
{
	struct fix *fix = fixture(test);
	static const struct {
		u16 attr, mask;
	} rows[] = {
		{ PORT_COUNTERS, 0 },
		{ PORT_COUNTERS, 0x0fb7 },
		{ PORT_EXTENDED, 0 },
		{ PORT_EXTENDED, 0xfff0 },
	};
	const struct counter *c;
	int i;

	count_up(fix, 9);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		set(test, fix, rows[i].attr, rows[i].mask);
		for (c = counters; c < counters + ARRAY_SIZE(counters); c++)
			if (c->attr == rows[i].attr)
				KUNIT_EXPECT_EQ_MSG(test, value_of(fix, c),
						    9ull, "%s %#x", c->name,
						    rows[i].mask);
	}
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		set(test, fix, rows[i].attr, 0xffff);
		for (c = counters; c < counters + ARRAY_SIZE(counters); c++)
			if (c->attr == rows[i].attr)
				KUNIT_EXPECT_EQ_MSG(test, value_of(fix, c),
						    0ull, "%s", c->name);
	}
}

/* A counter that had come to its end counts again. */
static void mad_set_saturated(struct kunit *test)
{
	struct fix *fix = fixture(test);

	atomic64_set(&fix->stats.tx_packets, 1ll << 40);
	get(test, fix, PORT_COUNTERS);
	KUNIT_EXPECT_EQ(test, at32(fix, 32), U32_MAX);
	set(test, fix, PORT_COUNTERS, 0x4000);
	atomic64_inc(&fix->stats.tx_packets);
	get(test, fix, PORT_COUNTERS);
	KUNIT_EXPECT_EQ(test, at32(fix, 32), 1u);
}

/* Data that is no multiple of 4 is not lost where counters are cleared. */
static void mad_words(struct kunit *test)
{
	struct fix *fix = fixture(test);
	int i;

	set(test, fix, PORT_COUNTERS, 0xffff);
	for (i = 0; i < 8; i++)
		atomic64_add(3, &fix->stats.tx_bytes);
	get(test, fix, PORT_COUNTERS);
	KUNIT_EXPECT_EQ(test, at32(fix, 24), 6u);
}

/* --- refusals ------------------------------------------------------------------ */

static void mad_class_version(struct kunit *test)
{
	struct fix *fix = fixture(test);
	u32 version;

	for (version = 0; version < 256; version++) {
		request(fix, GET, PORT_COUNTERS);
		fix->in[CLASS_VERSION] = version;
		if (version != 1)
			expect_refusal(test, fix, 0x0004);
		else
			expect_answer(test, fix, 0);
	}
}

/* Every method: IBA table 113; answers, TrapRepress and Trap are for others. */
static void mad_methods(struct kunit *test)
{
	struct fix *fix = fixture(test);
	u32 method;

	for (method = 0; method < 256; method++) {
		request(fix, method, PORT_COUNTERS);
		put_unaligned_be16(0, fix->in + DATA + 2);
		if (method == GET || method == SET)
			expect_answer(test, fix, 0);
		else if ((method & 0x80) || method == 0x05 || method == 0x07)
			expect_no_answer(test, fix);
		else
			expect_refusal(test, fix, 0x0008);
	}
}

static void mad_attributes(struct kunit *test)
{
	static const u8 methods[] = { GET, SET };
	struct fix *fix = fixture(test);
	u32 attr;
	int i;

	for (i = 0; i < ARRAY_SIZE(methods); i++) {
		for (attr = 0; attr < 0x10000; attr++) {
			if (attr == PORT_COUNTERS || attr == PORT_EXTENDED ||
			    (attr == CLASS_PORT_INFO && methods[i] == GET))
				continue;
			/* the header of the one before will do */
			if (!(attr & 0xff))
				request(fix, methods[i], attr);
			put_unaligned_be16(attr, fix->in + ATTR);
			expect_refusal(test, fix, 0x000c);
		}
	}
}

static void mad_ports(struct kunit *test)
{
	static const u16 attrs[] = { PORT_COUNTERS, PORT_EXTENDED };
	static const u8 methods[] = { GET, SET };
	struct fix *fix = fixture(test);
	u32 port;
	int i, k;

	count_up(fix, 5);
	for (i = 0; i < ARRAY_SIZE(attrs); i++) {
		for (k = 0; k < ARRAY_SIZE(methods); k++) {
			for (port = 0; port < 255; port++) {
				if (port == 1)
					continue;
				request(fix, methods[k], attrs[i]);
				put_unaligned_be16(0xffff, fix->in + DATA + 2);
				fix->in[DATA + 1] = port;
				expect_refusal(test, fix, 0x001c);
			}
		}
	}
	/* and nothing was cleared */
	get(test, fix, PORT_COUNTERS);
	KUNIT_EXPECT_EQ(test, at32(fix, 32), 5u);
	get(test, fix, PORT_EXTENDED);
	KUNIT_EXPECT_EQ(test, at64(fix, 24), 5ull);
}

static void mad_modifier(struct kunit *test)
{
	static const u16 attrs[] = { CLASS_PORT_INFO, PORT_COUNTERS,
				     PORT_EXTENDED };
	struct fix *fix = fixture(test);
	int i, bit;

	for (i = 0; i < ARRAY_SIZE(attrs); i++) {
		for (bit = 0; bit < 32; bit++) {
			request(fix, GET, attrs[i]);
			put_unaligned_be32(1u << bit, fix->in + MODIFIER);
			expect_refusal(test, fix, 0x001c);
		}
	}
}

/* What is not of our class is not touched. */
static void mad_other_classes(struct kunit *test)
{
	struct fix *fix = fixture(test);
	u32 class, method;

	for (class = 0; class < 256; class++) {
		if (class == PMA)
			continue;
		for (method = 1; method < 4; method++) {
			request(fix, method, CLASS_PORT_INFO);
			fix->in[CLASS] = class;
			expect_no_answer(test, fix);
		}
	}
}

static struct kunit_case mad_cases[] = {
	KUNIT_CASE(mad_class_port_info),
	KUNIT_CASE(mad_port_counters),
	KUNIT_CASE(mad_port_extended),
	KUNIT_CASE(mad_saturates),
	KUNIT_CASE_PARAM(mad_set_one, counter_gen_params),
	KUNIT_CASE(mad_set_masks),
	KUNIT_CASE(mad_set_saturated),
	KUNIT_CASE(mad_words),
	KUNIT_CASE(mad_class_version),
	KUNIT_CASE(mad_methods),
	KUNIT_CASE(mad_attributes),
	KUNIT_CASE(mad_ports),
	KUNIT_CASE(mad_modifier),
	KUNIT_CASE(mad_other_classes),
	{}
};

static struct kunit_suite mad_suite = {
	.name = "mrsoft_mad",
	.test_cases = mad_cases,
};

kunit_test_suite(mad_suite);

MODULE_DESCRIPTION("KUnit suite of mrsoft: management datagrams");
MODULE_LICENSE("GPL");
