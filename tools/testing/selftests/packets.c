// SPDX-License-Identifier: GPL-2.0
/*
 * packets.c - a hostile peer: packets as no requester sends them
 *
 * The device is on one end of a veth pair; on the other there is no host, only
 * the packet socket of this program, which is the peer of each QP.  It builds and
 * reads packets by itself, checksum included, so that nothing of the driver is
 * believed.  What must be dropped is followed by a packet that must be answered:
 * silence is seen by what comes next, not by waiting.
 *
 * Spec: IBA Vol 1, 9.6 (packet checks), 9.7 (RC), 9.8 (UC, UD), tables 43-45, 58;
 * Annex A17.  Environment: suites/packets.sh sets up both ends; MRSOFT_SEED.
 */
#include <netinet/in.h>

#include "peer.h"
#include "raw.h"

/* --- one packet that must not be taken ------------------------------------ */

struct drop {
	const char *name;
	/* spoils a good SEND ONLY of 8 bytes */
	void (*spoil)(struct frame *f);
	/* done by @spoil itself, or wrong on purpose */
	bool sealed;
	enum mrsoft_reason reason;	/* NONE: IP or UDP dropped it */
	/* a second frame, sent behind the first */
	void (*second)(struct frame *f);
};

static void bad_version(struct frame *f)
{
	f->b[f->bth + 1] |= 1;
}

static void bad_version_15(struct frame *f)
{
	f->b[f->bth + 1] |= 15;
}

static void set_qpn(struct frame *f, uint32_t qpn)
{
	put32(f->b + f->bth + 4, qpn);
}

static void qpn_0(struct frame *f)
{
	set_qpn(f, 0);
}

static void qpn_1(struct frame *f)
{
	set_qpn(f, 1);
}

static void qpn_unknown(struct frame *f)
{
	set_qpn(f, 0xfedcba);
}

static void qpn_multicast(struct frame *f)
{
	set_qpn(f, 0xffffff);
}

static void other_source(struct frame *f)
{
	f->b[f->udp - (f->ipv6 ? 17 : 5)] ^= 4;
}

static void other_destination(struct frame *f)
{
	f->b[f->udp - 1] = 9;
}

static void other_pkey(struct frame *f)
{
	f->b[f->bth + 3] = 0xfe;
}

static void zero_pkey(struct frame *f)
{
	put16(f->b + f->bth + 2, 0);
}

static void no_bth(struct frame *f)
{
	f->len = f->bth;
}

static void only_icrc(struct frame *f)
{
	f->len = f->bth + 4;
}

static void half_bth(struct frame *f)
{
	f->len = f->bth + 11;
}

static void bth_without_icrc(struct frame *f)
{
	f->len = f->bth + 12;
}

static void no_reth(struct frame *f)
{
	f->b[f->bth] ^= SEND_ONLY ^ WRITE_ONLY;
}

static void no_atomiceth(struct frame *f)
{
	f->b[f->bth] ^= SEND_ONLY ^ FETCH_ADD;
}

static void not_of_four(struct frame *f)
{
	f->len -= 1;
}

static void pad_of_nothing(struct frame *f)
{
	f->len -= 8;
	f->b[f->bth + 1] |= 0x30;
}

static void read_with_bytes(struct frame *f)
{
	f->b[f->bth] ^= SEND_ONLY ^ READ_REQUEST;
	f->len += 12;
	memset(f->b + f->bth + 12, 0, 20);
}

static void flush_with_bytes(struct frame *f)
{
	f->b[f->bth] ^= SEND_ONLY ^ FLUSH;
	f->len += 16;
	memset(f->b + f->bth + 12, 0, 24);
}

static void flush_without_reth(struct frame *f)
{
	f->b[f->bth] ^= SEND_ONLY ^ FLUSH;
}

static void wrong_icrc(struct frame *f)
{
	f->b[f->len - 1] ^= 0x80;
}

static void no_icrc(struct frame *f)
{
	memset(f->b + f->len - 4, 0, 4);
}

static void swapped_icrc(struct frame *f)
{
	uint32_t crc = get32(f->b + f->len - 4);

	/* most sums are not their own mirror image */
	put32(f->b + f->len - 4, __builtin_bswap32(crc));
}

static void udp_short(struct frame *f)
{
	put16(f->b + f->udp + 4, f->len - f->udp - 4);
	put_icrc(f, f->len);
}

static void udp_long(struct frame *f)
{
	put16(f->b + f->udp + 4, f->len - f->udp + 4);
	put_icrc(f, f->len);
}

static void udp_tiny(struct frame *f)
{
	put16(f->b + f->udp + 4, 8 + 12);
	put_icrc(f, f->len);
}

static void insert(struct frame *f, size_t at, const uint8_t *bytes, size_t n)
{
	memmove(f->b + at + n, f->b + at, f->len - at);
	memcpy(f->b + at, bytes, n);
	f->len += n;
	f->udp += n;
	f->bth += n;
}

static void ip_options(struct frame *f)
{
	static const uint8_t nops[8] = { 1, 1, 1, 1, 1, 1, 1, 0 };
	static const uint8_t dest[8] = { IPPROTO_UDP, 0, 1, 4 };

	if (f->ipv6) {
		insert(f, f->udp, dest, sizeof(dest));
		f->b[f->net + 6] = IPPROTO_DSTOPTS;
	} else {
		insert(f, f->udp, nops, sizeof(nops));
		f->b[f->net] = 0x47;
	}
	seal(f);
}

/* 24 bytes of the UDP datagram, then the rest. */
#define CUT 24

static void fragment_1(struct frame *f)
{
	uint8_t head[8] = { IPPROTO_UDP, 0, 0, 1, 0, 0, 0x12, 0x34 };

	seal(f);
	f->len = f->udp + CUT;
	if (f->ipv6) {
		insert(f, f->udp, head, sizeof(head));
		f->b[f->net + 6] = IPPROTO_FRAGMENT;
	} else {
		put16(f->b + f->net + 6, 0x2000);
	}
	seal_ip(f);
}

static void fragment_2(struct frame *f)
{
	uint8_t head[8] = { IPPROTO_UDP, 0, 0, CUT, 0, 0, 0x12, 0x34 };
	size_t rest;

	seal(f);
	rest = f->len - f->udp - CUT;
	memmove(f->b + f->udp, f->b + f->udp + CUT, rest);
	f->len = f->udp + rest;
	if (f->ipv6) {
		insert(f, f->udp, head, sizeof(head));
		f->b[f->net + 6] = IPPROTO_FRAGMENT;
	} else {
		put16(f->b + f->net + 6, CUT / 8);
	}
	seal_ip(f);
}

static const struct drop drops[] = {
	{ "version 1", bad_version, false, MRSOFT_R_PKT_HEADER, NULL },
	{ "version 15", bad_version_15, false, MRSOFT_R_PKT_HEADER, NULL },
	{ "QPN 0", qpn_0, false, MRSOFT_R_NO_PEER, NULL },
	{ "QPN 1 is a datagram QP", qpn_1, false, MRSOFT_R_PKT_OPCODE, NULL },
	{ "QPN unknown", qpn_unknown, false, MRSOFT_R_NO_PEER, NULL },
	{ "QPN of multicast", qpn_multicast, false, MRSOFT_R_NO_PEER, NULL },
	{ "other source", other_source, false, MRSOFT_R_PKT_SOURCE, NULL },
	{ "other address of ours", other_destination, false,
	  MRSOFT_R_PKT_SOURCE, NULL },
	{ "other P_Key", other_pkey, false, MRSOFT_R_PKEY, NULL },
	{ "P_Key 0", zero_pkey, false, MRSOFT_R_PKEY, NULL },
	{ "no BTH", no_bth, false, MRSOFT_R_PKT_LENGTH, NULL },
	{ "4 bytes", only_icrc, false, MRSOFT_R_PKT_LENGTH, NULL },
	{ "half a BTH", half_bth, false, MRSOFT_R_PKT_LENGTH, NULL },
	{ "BTH without ICRC", bth_without_icrc, false, MRSOFT_R_PKT_LENGTH,
	  NULL },
	{ "WRITE without RETH", no_reth, false, MRSOFT_R_PKT_LENGTH, NULL },
	{ "ATOMIC without header", no_atomiceth, false, MRSOFT_R_PKT_LENGTH,
	  NULL },
	{ "not of four bytes", not_of_four, false, MRSOFT_R_PKT_LENGTH, NULL },
	{ "padding of nothing", pad_of_nothing, false, MRSOFT_R_PKT_LENGTH,
	  NULL },
	{ "READ with bytes", read_with_bytes, false, MRSOFT_R_PKT_LENGTH,
	  NULL },
	{ "FLUSH with bytes", flush_with_bytes, false, MRSOFT_R_PKT_LENGTH,
	  NULL },
	{ "FLUSH without RETH", flush_without_reth, false, MRSOFT_R_PKT_LENGTH,
	  NULL },
	{ "wrong ICRC", wrong_icrc, true, MRSOFT_R_PKT_ICRC, NULL },
	{ "ICRC 0", no_icrc, true, MRSOFT_R_PKT_ICRC, NULL },
	{ "ICRC in the other order", swapped_icrc, true, MRSOFT_R_PKT_ICRC,
	  NULL },
	{ "UDP shorter, sum of all", udp_short, true, MRSOFT_R_PKT_ICRC, NULL },
	{ "UDP longer than the data", udp_long, true, MRSOFT_R_NONE, NULL },
	{ "UDP without ICRC", udp_tiny, true, MRSOFT_R_PKT_LENGTH, NULL },
	{ "IP options", ip_options, true, MRSOFT_R_PKT_HEADER, NULL },
	{ "fragments", fragment_1, true, MRSOFT_R_PKT_HEADER, fragment_2 },
};

static void drop_one(struct peer *p, const struct drop *d)
{
	static const uint8_t payload[8] = "dropped";
	struct counts before;
	struct frame f;

	read_counts(&before);
	frame_of_send(p, &f, payload, sizeof(payload));
	d->spoil(&f);
	if (!d->sealed)
		seal(&f);
	frame_send(p, &f);
	if (d->second) {
		frame_of_send(p, &f, payload, sizeof(payload));
		d->second(&f);
		frame_send(p, &f);
	}
	expect_counts(&before, d->reason, d->name);
	works(p);
	expect_silence(p, d->name);
}

/* Whatever the QP is: dropped, counted, and the next packet is taken. */
static void dropped(const void *arg)
{
	const struct kind *k = arg;
	struct peer *p = peer_new(k);
	size_t i;

	works(p);
	for (i = 0; i < ARRAY_SIZE(drops); i++) {
		/* datagrams come from anywhere, and QP 1 takes them */
		if (k->type == UD && (drops[i].reason == MRSOFT_R_PKT_SOURCE ||
				      drops[i].spoil == qpn_1 ||
				      drops[i].spoil == no_atomiceth ||
				      drops[i].spoil == no_reth ||
				      drops[i].spoil == flush_with_bytes ||
				      drops[i].spoil == flush_without_reth ||
				      drops[i].spoil == read_with_bytes))
			continue;
		if (k->type == UC && (drops[i].spoil == no_atomiceth ||
				      drops[i].spoil == flush_with_bytes ||
				      drops[i].spoil == flush_without_reth ||
				      drops[i].spoil == read_with_bytes))
			continue;
		if (k->ipv6 && drops[i].spoil == other_destination)
			continue;
		drop_one(p, &drops[i]);
	}
	EXPECT_NO_EVENT(p->c, 0);
	peer_free(p);
}

/* --- opcodes -------------------------------------------------------------- */

static bool is_rc(unsigned int op)
{
	return op <= 0x17 && op != 0x15;
}

/* Does a QP of @type know it? */
static bool is_known(enum ibv_qp_type type, unsigned int op)
{
	if (type == RC)
		return is_rc(op) || op == FLUSH || op == 0x1d;
	if (type == UC)
		return op >= 0x20 && op <= 0x2b;
	return op == 0x64 || op == 0x65;
}

/* Does a responder of @type have to refuse it?  IBA table 58, class C. */
static bool is_reserved(enum ibv_qp_type type, unsigned int op)
{
	return type == RC && op < 0x20 && !is_known(RC, op);
}

/* Opcodes that no QP of this type knows, and answers that nobody asked for. */
static void opcodes(const void *arg)
{
	const struct kind *k = arg;
	struct peer *p = peer_new(k);
	uint8_t zeros[64] = {};
	struct counts before;
	unsigned int op;

	works(p);
	for (op = 0; op < 256; op++) {
		char name[40];

		if (is_known(k->type, op) &&
		    !(k->type == RC && op >= 0x0d && op <= 0x12))
			continue;
		if (is_reserved(k->type, op))
			continue;
		snprintf(name, sizeof(name), "opcode %#x", op);
		read_counts(&before);
		say(p, op, p->psn, NULL, 0, zeros, sizeof(zeros));
		/* these have no bytes, for whatever QP they are */
		if (op == 0x0c || (op >= 0x11 && op <= 0x14) || op == FLUSH)
			expect_counts(&before, MRSOFT_R_PKT_LENGTH, name);
		else if (k->type == RC && op >= 0x0d && op <= 0x10)
			expect_counts(&before, MRSOFT_R_NONE, name);
		else
			expect_counts(&before, MRSOFT_R_PKT_OPCODE, name);
		works(p);
		expect_silence(p, name);
	}
	EXPECT_NO_EVENT(p->c, 0);
	peer_free(p);
}

/* Reserved ones: refused where they are due, whatever comes with them. */
static void refuses_reserved(const void *arg)
{
	static const uint8_t bytes[MTU];
	struct peer *p = peer_new(arg);
	struct counts before;
	unsigned int op, n;

	for (op = 0, n = 0; op < 0x20; op++) {
		char name[40];

		if (!is_reserved(RC, op))
			continue;
		snprintf(name, sizeof(name), "reserved opcode %#x", op);
		peer_again(p);
		p->now = name;
		works(p);
		/* too early: that PSN is not due; and what went before stays so */
		read_counts(&before);
		say(p, op, psn_add(p->psn, 1), NULL, 0, bytes, 8);
		expect_counts(&before, MRSOFT_R_PSN, name);
		expect_aeth(p, p->psn, 0x60 | NAK_PSN);
		works(p);
		say(p, op, psn_add(p->psn, -1), NULL, 0, bytes, 8);
		works(p);
		expect_silence(p, name);
		OK(post_recv(&p->e, 1, p->buf.p, SIZE, p->buf.mr->lkey));
		/* also in the middle of a message */
		if (n & 1) {
			say(p, 0x00, p->psn, NULL, 0, bytes, MTU);
			p->psn = next_psn(p->psn);
		}
		read_counts(&before);
		say(p, op, p->psn, NULL, 0, bytes, n * 8);
		expect_counts(&before, MRSOFT_R_PKT_OPCODE, name);
		expect_nak(p, p->psn, NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR);
		EXPECT_WC(p->e.rcq, 1, IBV_WC_WR_FLUSH_ERR);
		/* from now on it is silent */
		read_counts(&before);
		say(p, op, p->psn, NULL, 0, bytes, 0);
		expect_counts(&before, MRSOFT_R_PEER_STATE, name);
		expect_silence(p, name);
		n++;
	}
	/* 0x15, 0x18 ... 0x1b, 0x1e, 0x1f */
	CHECK_EQ(n, 7);
	peer_free(p);
}

/* --- lengths and padding -------------------------------------------------- */

static void length_ok(struct peer *p, uint32_t len)
{
	uint8_t *data = p->buf.p + SIZE / 2;
	uint8_t payload[MTU];
	struct ibv_wc wc;

	memset(data, 0xee, MTU + 64);
	fill(payload, len, len);
	OK(post_recv(&p->e, len, data - GRH(p), MTU + 64, p->buf.mr->lkey));
	say_send(p, payload, len);
	wc = NEXT_WC(p->e.rcq);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, len + GRH(p));
	CHECK_EQ(filled(data, len, len), -1);
	CHECK_EQ(only(data + len, 64, 0xee), -1);
	if (p->k->type == RC)
		expect_ack(p, p->psn - 1);
}

static void lengths(const void *arg)
{
	const struct kind *k = arg;
	struct peer *p = peer_new(k);
	uint32_t len, step = t_slow() == 1 ? 1 : 13;

	for (len = 0; len <= MTU; len += len < 20 || len > MTU - 20 ? 1 : step)
		length_ok(p, len);
	peer_free(p);
}

/* RC: NAK; UC: the message is lost.  UD's limit is the link's, not the QP's. */
static void one_too_long(const void *arg)
{
	const struct kind *k = arg;
	struct peer *p = peer_new(k);
	uint8_t payload[MTU + 4] = {};
	struct counts before;

	works(p);
	read_counts(&before);
	OK(post_recv(&p->e, 1, p->buf.p, 2 * MTU, p->buf.mr->lkey));
	say_send(p, payload, MTU + 1);
	expect_counts(&before, MRSOFT_R_PKT_LENGTH, "MTU + 1");
	if (k->type == RC) {
		expect_nak(p, p->psn - 1, NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR);
		EXPECT_WC(p->e.rcq, 1, IBV_WC_WR_FLUSH_ERR);
	} else {
		EXPECT_EMPTY(p->e.rcq, 10);
		/* takes the WQE that is there */
		say_send(p, payload, 4);
		EXPECT_WC(p->e.rcq, 1, IBV_WC_SUCCESS);
	}
	peer_free(p);
}

static void paddings(const void *arg)
{
	const struct kind *k = arg;
	struct peer *p = peer_new(k);
	uint8_t payload[12];
	unsigned int pad;

	fill(payload, sizeof(payload), 5);
	for (pad = 0; pad < 4; pad++) {
		struct ibv_wc wc;
		struct frame f;

		memset(p->buf.p, 0xee, 64 + GRH(p));
		OK(post_recv(&p->e, pad, p->buf.p, 256, p->buf.mr->lkey));
		frame_of_send(p, &f, payload, sizeof(payload));
		f.b[f.bth + 1] |= pad << 4;
		seal(&f);
		frame_send(p, &f);
		p->psn = next_psn(p->psn);
		wc = NEXT_WC(p->e.rcq);
		CHECK_EQ(wc.byte_len, sizeof(payload) - pad + GRH(p));
		CHECK_EQ(filled(p->buf.p + GRH(p), 12 - pad, 5), -1);
		CHECK_EQ(only(p->buf.p + GRH(p) + 12 - pad, 8, 0xee), -1);
		if (k->type == RC)
			expect_ack(p, p->psn - 1);
	}
	peer_free(p);
}

/* --- order ---------------------------------------------------------------- */

struct step {
	uint8_t opcode;
	uint16_t length;
	uint32_t total;		/* RETH; 0: of this packet */
};

/* The last step is the one that is refused. */
struct order {
	const char *name;
	struct step steps[4];
	enum mrsoft_reason reason;
};

#define ORDER MRSOFT_R_PKT_ORDER
#define LENGTH MRSOFT_R_PKT_LENGTH

static const struct order orders[] = {
	{ "MIDDLE without FIRST", { { 0x01, MTU, 0 } }, ORDER },
	{ "LAST without FIRST", { { 0x02, 8, 0 } }, ORDER },
	{ "LAST IMM without FIRST", { { 0x03, 8, 0 } }, ORDER },
	{ "LAST INV without FIRST", { { 0x16, 8, 0 } }, ORDER },
	{ "WRITE MIDDLE without FIRST", { { 0x07, MTU, 0 } }, ORDER },
	{ "WRITE LAST without FIRST", { { 0x08, 8, 0 } }, ORDER },
	{ "WRITE LAST IMM without FIRST", { { 0x09, 8, 0 } }, ORDER },
	{ "MIDDLE after ONLY", { { 0x04, 8, 0 }, { 0x01, MTU, 0 } }, ORDER },
	{ "FIRST in SEND", { { 0x00, MTU, 0 }, { 0x00, MTU, 0 } }, ORDER },
	{ "ONLY in SEND", { { 0x00, MTU, 0 }, { 0x04, 8, 0 } }, ORDER },
	{ "FIRST in WRITE", { { 0x06, MTU, 2 * MTU }, { 0x06, MTU, 2 * MTU } },
	  ORDER },
	{ "ONLY in WRITE", { { 0x06, MTU, 2 * MTU }, { 0x0a, 8, 0 } }, ORDER },
	{ "WRITE MIDDLE in SEND", { { 0x00, MTU, 0 }, { 0x07, MTU, 0 } },
	  ORDER },
	{ "WRITE LAST in SEND", { { 0x00, MTU, 0 }, { 0x01, MTU, 0 },
	  { 0x08, 8, 0 } }, ORDER },
	{ "SEND LAST in WRITE", { { 0x06, MTU, 2 * MTU }, { 0x02, 8, 0 } },
	  ORDER },
	{ "READ in SEND", { { 0x00, MTU, 0 }, { 0x0c, 0, 8 } }, ORDER },
	{ "READ in WRITE", { { 0x06, MTU, 2 * MTU }, { 0x0c, 0, 8 } }, ORDER },
	{ "ATOMIC in WRITE", { { 0x06, MTU, 2 * MTU }, { 0x14, 0, 0 } },
	  ORDER },
	{ "ATOMIC WRITE in SEND", { { 0x00, MTU, 0 }, { 0x1d, 8, 8 } }, ORDER },
	{ "FLUSH in SEND", { { 0x00, MTU, 0 }, { 0x1c, 0, 8 } }, ORDER },
	{ "FLUSH in WRITE", { { 0x06, MTU, 2 * MTU }, { 0x1c, 0, 8 } }, ORDER },
	{ "FIRST short", { { 0x00, MTU - 4, 0 } }, LENGTH },
	{ "FIRST long", { { 0x00, MTU + 4, 0 } }, LENGTH },
	{ "FIRST padded", { { 0x00, MTU - 1, 0 } }, LENGTH },
	{ "FIRST empty", { { 0x00, 0, 0 } }, LENGTH },
	{ "MIDDLE short", { { 0x00, MTU, 0 }, { 0x01, MTU - 4, 0 } }, LENGTH },
	{ "LAST empty", { { 0x00, MTU, 0 }, { 0x02, 0, 0 } }, LENGTH },
	{ "LAST long", { { 0x00, MTU, 0 }, { 0x02, MTU + 1, 0 } }, LENGTH },
	{ "WRITE ONLY more than said", { { 0x0a, 12, 8 } }, LENGTH },
	{ "WRITE ONLY less than said", { { 0x0a, 8, 12 } }, LENGTH },
	{ "WRITE FIRST of one packet", { { 0x06, MTU, MTU } }, LENGTH },
	{ "WRITE MIDDLE at the end", { { 0x06, MTU, 2 * MTU },
	  { 0x07, MTU, 0 } }, LENGTH },
	{ "WRITE LAST less than said", { { 0x06, MTU, 2 * MTU },
	  { 0x08, MTU - 1, 0 } }, LENGTH },
	{ "WRITE LAST more than said", { { 0x06, MTU, MTU + 100 },
	  { 0x08, 101, 0 } }, LENGTH },
	{ "WRITE LAST empty", { { 0x06, MTU, MTU + 4 }, { 0x08, 0, 0 } },
	  LENGTH },
	{ "ATOMIC WRITE of 4", { { 0x1d, 4, 4 } }, LENGTH },
	{ "ATOMIC WRITE that says 4", { { 0x1d, 8, 4 } }, LENGTH },
	{ "WRITE of 2^31+1", { { 0x06, MTU, 0x80000001 } },
	  MRSOFT_R_MSG_TOO_LONG },
	{ "WRITE of 2^32-1", { { 0x06, MTU, 0xffffffff } },
	  MRSOFT_R_MSG_TOO_LONG },
	{ "READ of 2^31+1", { { 0x0c, 0, 0x80000001 } },
	  MRSOFT_R_MSG_TOO_LONG },
	{ "READ of 2^32-1", { { 0x0c, 0, 0xffffffff } },
	  MRSOFT_R_MSG_TOO_LONG },
};

static void take_step(struct peer *p, const struct step *s)
{
	static const uint8_t zeros[2 * MTU];
	uint8_t ext[28];
	size_t n = ext_of(p, ext, s->opcode, (uintptr_t)p->buf.p,
			  p->buf.mr->rkey, s->total ? s->total : s->length);

	say(p, s->opcode + service(p), p->psn, ext, n, zeros, s->length);
	p->psn = next_psn(p->psn);
}

static void take_steps(struct peer *p, const struct order *o)
{
	size_t k;

	for (k = 0; k < ARRAY_SIZE(o->steps); k++) {
		/* the table ends with zeros; FIRST is 0 as well */
		if (k && !o->steps[k].opcode && !o->steps[k].length)
			break;
		take_step(p, &o->steps[k]);
	}
}

static void orders_rc(const void *arg)
{
	struct peer *p = peer_new(arg);
	struct counts before;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		const struct order *o = &orders[i];

		peer_again(p);
		p->now = o->name;
		OK(post_recv(&p->e, 1, p->buf.p, SIZE, p->buf.mr->lkey));
		OK(post_recv(&p->e, 2, p->buf.p, SIZE, p->buf.mr->lkey));
		read_counts(&before);
		take_steps(p, o);
		expect_counts(&before, o->reason, o->name);
		/* the end of what was right before may be acknowledged */
		if (o->steps[0].opcode == SEND_ONLY)
			expect_ack(p, p->psn - 2);
		expect_nak(p, p->psn - 1, NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR);
		expect_silence(p, o->name);
	}
	peer_free(p);
}

/* UC says nothing, loses the message and goes on.  IBA 9.8.2.2. */
static void orders_uc(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint8_t bytes[61] = {};
	struct ibv_wc wc;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		const struct order *o = &orders[i];

		if (o->steps[0].opcode > 0x0b || o->steps[1].opcode > 0x0b)
			continue;
		p->now = o->name;
		for (; p->received < 4; p->received++)
			OK(post_recv(&p->e, 0, p->buf.p, SIZE,
				     p->buf.mr->lkey));
		take_steps(p, o);
		say_send(p, bytes, sizeof(bytes));
		/* a good ONLY among the steps was received as well */
		do {
			wc = NEXT_WC(p->e.rcq);
			p->received--;
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			CHECK(wc.byte_len == 61 || wc.byte_len == 8);
		} while (wc.byte_len != 61);
		expect_silence(p, o->name);
	}
	EXPECT_NO_EVENT(p->c, 0);
	peer_free(p);
}

/* --- requests that the memory does not allow ------------------------------ */

struct access {
	const char *name;
	uint8_t opcode;
	int64_t offset;		/* from the start of the region */
	uint32_t length, key_xor;
	uint8_t nak;
	enum mrsoft_reason reason;
};

#define OUTSIDE MRSOFT_R_OUTSIDE

static const struct access accesses[] = {
	{ "READ one behind", 0x0c, 1, SIZE, 0, NAK_ACCESS, OUTSIDE },
	{ "READ one before", 0x0c, -1, 8, 0, NAK_ACCESS, OUTSIDE },
	{ "READ of 2^31", 0x0c, 0, 1u << 31, 0, NAK_ACCESS, OUTSIDE },
	{ "READ far away", 0x0c, 1ll << 62, 8, 0, NAK_ACCESS, OUTSIDE },
	{ "READ of a stale key", 0x0c, 0, 8, 0x01, NAK_ACCESS,
	  MRSOFT_R_KEY_STALE },
	{ "READ of an unknown key", 0x0c, 0, 8, 0x7fffff00, NAK_ACCESS,
	  MRSOFT_R_KEY_UNKNOWN },
	{ "WRITE one behind", 0x0a, SIZE - 7, 8, 0, NAK_ACCESS, OUTSIDE },
	{ "WRITE one before", 0x0a, -1, 8, 0, NAK_ACCESS, OUTSIDE },
	{ "WRITE of 2^31", 0x06, 0, 1u << 31, 0, NAK_ACCESS, OUTSIDE },
	{ "WRITE of a stale key", 0x0a, 0, 8, 0x80, NAK_ACCESS,
	  MRSOFT_R_KEY_STALE },
	{ "ATOMIC behind", 0x14, SIZE, 0, 0, NAK_ACCESS, OUTSIDE },
	{ "ATOMIC before", 0x13, -8, 0, 0, NAK_ACCESS, OUTSIDE },
	{ "ATOMIC at 1", 0x14, 1, 0, 0, NAK_INV_REQ, MRSOFT_R_MISALIGNED },
	{ "ATOMIC at 4", 0x13, 4, 0, 0, NAK_INV_REQ, MRSOFT_R_MISALIGNED },
	{ "ATOMIC at 7", 0x14, SIZE - 1, 0, 0, NAK_INV_REQ,
	  MRSOFT_R_MISALIGNED },
	{ "ATOMIC WRITE at 4", 0x1d, 4, 8, 0, NAK_INV_REQ,
	  MRSOFT_R_MISALIGNED },
	{ "ATOMIC WRITE behind", 0x1d, SIZE, 8, 0, NAK_ACCESS, OUTSIDE },
	{ "FLUSH one behind", 0x1c, 1, SIZE, 0, NAK_ACCESS, OUTSIDE },
	{ "FLUSH one before", 0x1c, -1, 8, 0, NAK_ACCESS, OUTSIDE },
	{ "FLUSH of 2^32-1", 0x1c, 0, UINT32_MAX, 0, NAK_ACCESS, OUTSIDE },
	{ "FLUSH of a stale key", 0x1c, 0, 8, 0x01, NAK_ACCESS,
	  MRSOFT_R_KEY_STALE },
	{ "FLUSH of nothing, stale key", 0x1c, 0, 0, 0x01, NAK_ACCESS,
	  MRSOFT_R_KEY_STALE },
};

static void accesses_rc(const void *arg)
{
	struct peer *p = peer_new(arg);
	static const uint8_t bytes[MTU];
	struct counts before;
	uint8_t ext[28];
	size_t i, n;

	for (i = 0; i < ARRAY_SIZE(accesses); i++) {
		const struct access *a = &accesses[i];
		enum mrsoft_reason reason = a->reason;
		uint32_t len = a->opcode == 0x0a || a->opcode == 0x1d ? 8 :
			       a->opcode == 0x06 ? MTU : 0;

		if (a->opcode == FLUSH && !p->can_flush && reason == OUTSIDE)
			reason = MRSOFT_R_NO_REMOTE_FLUSH;
		peer_again(p);
		p->now = a->name;
		fill(p->buf.p, SIZE, i);
		read_counts(&before);
		n = ext_of(p, ext, a->opcode, (uintptr_t)p->buf.p + a->offset,
			   p->buf.mr->rkey ^ a->key_xor, a->length);
		say(p, a->opcode, p->psn, ext, n, bytes, len);
		expect_counts(&before, reason, a->name);
		expect_nak(p, p->psn, a->nak, a->nak == NAK_ACCESS ?
			   IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
		expect_silence(p, a->name);
		CHECK_EQ(filled(p->buf.p, SIZE, i), -1);
	}
	peer_free(p);
}

/* The same from UC: the message is lost, nothing else happens. */
static void accesses_uc(const void *arg)
{
	struct peer *p = peer_new(arg);
	static const uint8_t bytes[MTU];
	struct counts before;
	uint8_t ext[28];
	size_t i, n;

	fill(p->buf.p, SIZE, 3);
	for (i = 0; i < ARRAY_SIZE(accesses); i++) {
		const struct access *a = &accesses[i];

		if (a->opcode != 0x0a && a->opcode != 0x06)
			continue;
		p->now = a->name;
		read_counts(&before);
		n = ext_of(p, ext, a->opcode, (uintptr_t)p->buf.p + a->offset,
			   p->buf.mr->rkey ^ a->key_xor, a->length);
		say(p, a->opcode + service(p), p->psn, ext, n, bytes,
		    a->opcode == 0x06 ? MTU : 8);
		p->psn = next_psn(p->psn);
		expect_counts(&before, a->reason, a->name);
		CHECK_EQ(filled(p->buf.p, SIZE / 2, 3), -1);
		works(p);
		expect_silence(p, a->name);
	}
	EXPECT_NO_EVENT(p->c, 0);
	peer_free(p);
}

/* A SEND longer than its receive WQE: both sides hear of it. */
static void send_too_long(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint8_t bytes[64] = {};

	OK(post_recv(&p->e, 1, p->buf.p, 63, p->buf.mr->lkey));
	say_send(p, bytes, sizeof(bytes));
	expect_nak(p, p->psn - 1, NAK_INV_REQ, 0);
	EXPECT_WC(p->e.rcq, 1, IBV_WC_LOC_LEN_ERR);
	peer_free(p);
}

/* No receive WQE: RNR NAK with the QP's timer, then the same packet again. */
static void rnr(const void *arg)
{
	struct peer *p = peer_new(arg);
	struct counts before;
	uint8_t bytes[64];
	struct answer a;
	int i;

	fill(bytes, sizeof(bytes), 1);
	for (i = 0; i < 3; i++) {
		say(p, SEND_ONLY, p->psn | ACK_REQ, NULL, 0, bytes, 64);
		a = next_answer(p);
		CHECK_EQ(a.opcode, ACKNOWLEDGE);
		CHECK_EQ(a.syndrome, 0x20 | p->e.conf.min_rnr);
		CHECK_EQ(a.psn, p->psn);
		/*
		 * What follows is not answered before the peer starts again.
		 * The core reads the counters once in a tick.
		 */
		t_sleep(25);
		read_counts(&before);
		say(p, SEND_ONLY, next_psn(p->psn) | ACK_REQ, NULL, 0, bytes,
		    64);
		expect_counts(&before, MRSOFT_R_PSN, "behind an RNR NAK");
	}
	OK(post_recv(&p->e, 9, p->buf.p, 64, p->buf.mr->lkey));
	say_send(p, bytes, sizeof(bytes));
	EXPECT_WC(p->e.rcq, 9, IBV_WC_SUCCESS);
	expect_ack(p, p->psn - 1);
	CHECK_EQ(filled(p->buf.p, 64, 1), -1);
	works(p);
	peer_free(p);
}

/* --- PSNs ----------------------------------------------------------------- */

/* Ahead of what is due: one NAK that says what is due, then silence. */
static void ghosts(const void *arg)
{
	static const uint32_t ahead[] = { 1, 2, 100, 0x7ffffe, 0x7fffff };
	struct peer *p = peer_new(arg);
	uint8_t bytes[8] = {};
	struct answer a;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ahead); i++) {
		works(p);
		say(p, SEND_ONLY, psn_add(p->psn, ahead[i]), NULL, 0, bytes, 8);
		a = next_answer(p);
		CHECK_EQ(a.opcode, ACKNOWLEDGE);
		CHECK_EQ(a.syndrome, 0x60 | NAK_PSN);
		CHECK_EQ(a.psn, p->psn);
		say(p, SEND_ONLY, psn_add(p->psn, ahead[i]), NULL, 0, bytes, 8);
		t_sleep(5);
		expect_silence(p, "a second NAK");
	}
	works(p);
	EXPECT_NO_EVENT(p->c, 0);
	peer_free(p);
}

/* UC takes each FIRST and ONLY, whatever its PSN. */
static void ghosts_uc(const void *arg)
{
	static const uint32_t ahead[] = { 1, 100, 0x7fffff, 0x800000, 0xfffff0 };
	struct peer *p = peer_new(arg);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ahead); i++) {
		works(p);
		p->psn = psn_add(p->psn, ahead[i]);
	}
	works(p);
	peer_free(p);
}

/* SEND and WRITE again: acknowledged, not executed.  IBA 9.7.5.1.2. */
static void twice(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint8_t bytes[32], ext[16];
	uint32_t psn = p->psn;
	int i;

	fill(bytes, sizeof(bytes), 1);
	OK(post_recv(&p->e, 1, p->buf.p, 64, p->buf.mr->lkey));
	OK(post_recv(&p->e, 2, p->buf.p, 64, p->buf.mr->lkey));
	say_send(p, bytes, sizeof(bytes));
	EXPECT_WC(p->e.rcq, 1, IBV_WC_SUCCESS);
	expect_ack(p, psn);
	put_reth(ext, (uintptr_t)p->buf.p + 64, p->buf.mr->rkey, 32);
	say(p, WRITE_ONLY, p->psn | ACK_REQ, ext, 16, bytes, 32);
	expect_ack(p, p->psn);
	CHECK_EQ(filled(p->buf.p + 64, 32, 1), -1);
	p->psn = next_psn(p->psn);
	memset(p->buf.p, 0, 128);
	for (i = 0; i < 3; i++) {
		say(p, SEND_ONLY, psn | ACK_REQ, NULL, 0, bytes, 32);
		/* all that was executed is acknowledged at once */
		expect_ack(p, p->psn - 1);
		say(p, WRITE_ONLY, next_psn(psn) | ACK_REQ, ext, 16, bytes, 32);
		expect_ack(p, p->psn - 1);
	}
	EXPECT_EMPTY(p->e.rcq, 10);
	CHECK_EQ(only(p->buf.p, 128, 0), -1);
	say_send(p, bytes, sizeof(bytes));
	EXPECT_WC(p->e.rcq, 2, IBV_WC_SUCCESS);
	expect_ack(p, p->psn - 1);
	peer_free(p);
}

/* The answers to a READ of @len bytes of buffer, from @psn on. */
static void expect_data(struct peer *p, uint32_t psn, size_t offset, size_t len)
{
	size_t n = len ? (len + MTU - 1) / MTU : 1, i;

	for (i = 0; i < n; i++) {
		struct answer a = next_answer(p);
		size_t part = len - i * MTU < MTU ? len - i * MTU : MTU;

		CHECK_EQ(a.opcode, n == 1 ? 0x10 : !i ? 0x0d :
			 i + 1 == n ? 0x0f : 0x0e);
		CHECK_EQ(a.psn, psn_add(psn, i));
		CHECK_EQ(a.length, part);
		CHECK(!memcmp(a.payload, p->buf.p + offset + i * MTU, part));
	}
}

static void say_read(struct peer *p, uint32_t psn, size_t offset, uint32_t len)
{
	uint8_t ext[16];

	put_reth(ext, (uintptr_t)p->buf.p + offset, p->buf.mr->rkey, len);
	say(p, READ_REQUEST, psn, ext, 16, NULL, 0);
}

/* A READ again, all of it or from any packet on; never more than was allowed. */
static void read_again(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t psn = p->psn, len = 4 * MTU + 9, i;
	uint8_t ext[16];

	fill(p->buf.p, SIZE, 2);
	say_read(p, psn, 0, len);
	expect_data(p, psn, 0, len);
	p->psn = psn_add(psn, 5);
	works(p);
	for (i = 0; i < 5; i++) {
		say_read(p, psn_add(psn, i), i * MTU, len - i * MTU);
		expect_data(p, psn_add(psn, i), i * MTU, len - i * MTU);
	}
	say_read(p, psn_add(psn, 1), MTU, 2 * MTU);
	expect_data(p, psn_add(psn, 1), MTU, 2 * MTU);
	/* longer, elsewhere, with another key, of a PSN that was none */
	say_read(p, psn, 0, len + 1);
	say_read(p, psn, 1, len);
	say_read(p, psn_add(psn, 1), 0, MTU);
	say_read(p, psn_add(psn, 5), 5 * MTU, 8);
	say_read(p, psn_add(psn, -1), 0, 8);
	put_reth(ext, (uintptr_t)p->buf.p, p->buf.mr->rkey ^ 1, len);
	say(p, READ_REQUEST, psn, ext, 16, NULL, 0);
	works(p);
	expect_silence(p, "a READ that was none");
	peer_free(p);
}

static void say_add(struct peer *p, uint32_t psn, uint64_t add)
{
	uint8_t ext[28];

	put_atomic(ext, (uintptr_t)p->buf.p, p->buf.mr->rkey, add, 0);
	say(p, FETCH_ADD, psn, ext, 28, NULL, 0);
}

static void expect_old(struct peer *p, uint32_t psn, uint64_t old)
{
	struct answer a = next_answer(p);

	CHECK_EQ(a.opcode, ATOMIC_ACKNOWLEDGE);
	CHECK_EQ(a.psn, psn);
	CHECK_EQ(a.old, old);
}

/* An ATOMIC runs once, however often it comes, and is answered the same. */
static void atomic_again(const void *arg)
{
	struct peer *p = peer_new(arg);
	volatile uint64_t *word = (void *)p->buf.p;
	uint32_t psn = p->psn, n = p->e.conf.dest_rd_atomic, i, k;

	*word = 1000;
	for (i = 0; i < n; i++) {
		for (k = 0; k < 3; k++) {
			say_add(p, psn_add(psn, i), 1 + i);
			expect_old(p, psn_add(psn, i), 1000 + i * (i + 1) / 2);
		}
	}
	CHECK_EQ(*word, 1000 + n * (n + 1) / 2);
	p->psn = psn_add(psn, n);
	works(p);
	/* all that may be outstanding are remembered */
	for (i = 0; i < n; i++) {
		say_add(p, psn_add(psn, i), 77);
		expect_old(p, psn_add(psn, i), 1000 + i * (i + 1) / 2);
	}
	/* one that never was: a SEND had this PSN, or nothing */
	say_add(p, psn_add(p->psn, -1), 77);
	say_add(p, psn_add(psn, -1), 77);
	say_add(p, psn_add(p->psn, -0x800000), 77);
	works(p);
	expect_silence(p, "an ATOMIC that was none");
	CHECK_EQ(*word, 1000 + n * (n + 1) / 2);
	peer_free(p);
}

static void say_atomic_write(struct peer *p, uint32_t psn, uint64_t value)
{
	uint8_t ext[16];

	put_reth(ext, (uintptr_t)p->buf.p, p->buf.mr->rkey, 8);
	say(p, ATOMIC_WRITE, psn, ext, 16, &value, 8);
}

/* Annex A19: as an ATOMIC; the answer is a READ response without bytes. */
static void atomic_write_again(const void *arg)
{
	struct peer *p = peer_new(arg);
	volatile uint64_t *word = (void *)p->buf.p;
	uint32_t psn = p->psn;
	struct answer a;
	int i;

	*word = 1;
	for (i = 0; i < 3; i++) {
		say_atomic_write(p, psn, 2);
		a = next_answer(p);
		CHECK_EQ(a.opcode, 0x10);
		CHECK_EQ(a.psn, psn);
		CHECK_EQ(a.length, 0);
		CHECK_EQ(*word, 2 + i);
		/* who runs it twice writes this over */
		*word = 3 + i;
	}
	p->psn = next_psn(psn);
	works(p);
	/* a SEND had this PSN, and nothing that */
	say_atomic_write(p, psn_add(psn, 1), 77);
	say_atomic_write(p, psn_add(psn, -1), 77);
	works(p);
	expect_silence(p, "an ATOMIC WRITE that was none");
	CHECK_EQ(*word, 5);
	peer_free(p);
}

static void say_flush(struct peer *p, uint32_t psn, uint8_t type, uint8_t level)
{
	uint8_t ext[20];

	put_flush(ext, type, level, (uintptr_t)p->buf.p, p->buf.mr->rkey, 16);
	say(p, FLUSH, psn, ext, sizeof(ext), NULL, 0);
}

static void expect_flushed(struct peer *p, uint32_t psn)
{
	struct answer a = next_answer(p);

	CHECK_EQ(a.opcode, 0x10);
	CHECK_EQ(a.psn, psn);
	CHECK_EQ(a.syndrome, 0x1f);
	CHECK_EQ(a.length, 0);
}

/*
 * Annex A19: behind a WRITE, which is acknowledged first, and again; the answer is a
 * READ response without bytes.
 */
static void flush_again(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t psn = p->psn, n = p->e.conf.dest_rd_atomic, i;
	uint8_t ext[16], bytes[16];

	if (!p->can_flush) {
		say_flush(p, psn, 1, 0);
		expect_nak(p, psn, NAK_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
		peer_free(p);
		return;
	}
	fill(bytes, sizeof(bytes), 1);
	put_reth(ext, (uintptr_t)p->buf.p, p->buf.mr->rkey, sizeof(bytes));
	say(p, WRITE_ONLY, psn | ACK_REQ, ext, sizeof(ext), bytes,
	    sizeof(bytes));
	say_flush(p, psn_add(psn, 1), 1, 0);
	expect_ack(p, psn);
	expect_flushed(p, psn_add(psn, 1));
	CHECK_EQ(filled(p->buf.p, sizeof(bytes), 1), -1);
	for (i = 2; i < n; i++) {
		say_flush(p, psn_add(psn, i), 1, i & 1);
		expect_flushed(p, psn_add(psn, i));
	}
	p->psn = psn_add(psn, n);
	works(p);
	/* all that may be outstanding are answered again */
	for (i = 1; i < n; i++) {
		say_flush(p, psn_add(psn, i), 1, 0);
		expect_flushed(p, psn_add(psn, i));
	}
	/* a SEND had this PSN, and nothing that */
	say_flush(p, psn_add(p->psn, -1), 1, 0);
	say_flush(p, psn_add(psn, -1), 1, 0);
	works(p);
	expect_silence(p, "a FLUSH that was none");
	peer_free(p);
}

/* Annex A19: what is reserved is an invalid request, whatever the rights. */
static void flush_reserved(const void *arg)
{
	static const uint8_t bad[][2] = {
		{ 0, 0 }, { 4, 0 }, { 5, 0 }, { 8, 1 }, { 15, 0 }, { 1, 2 },
		{ 1, 3 }, { 0, 1 },
	};
	struct peer *p = peer_new(arg);
	struct counts before;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		peer_again(p);
		read_counts(&before);
		say_flush(p, p->psn, bad[i][0], bad[i][1]);
		expect_counts(&before, MRSOFT_R_PKT_HEADER, "a bad FETH");
		expect_nak(p, p->psn, NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR);
		expect_silence(p, "a bad FETH");
	}
	/* persistence: no region has the right, and the QP has it not */
	peer_again(p);
	say_flush(p, p->psn, 2, 0);
	expect_nak(p, p->psn, NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR);
	peer_free(p);
}

/* The end of a WRITE wants a receive WQE that comes late. */
static void late_receive(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint8_t bytes[MTU], ext[16], imm[4] = { 0xca, 0xfe, 0xba, 0xbe };
	struct ibv_wc wc;
	struct answer a;
	int i;

	fill(bytes, MTU, 1);
	memset(p->buf.p, 0, 2 * MTU);
	put_reth(ext, (uintptr_t)p->buf.p, p->buf.mr->rkey, MTU + 8);
	say(p, 0x06, p->psn, ext, 16, bytes, MTU);
	p->psn = next_psn(p->psn);
	for (i = 0; i < 3; i++) {
		say(p, 0x09, p->psn | ACK_REQ, imm, 4, bytes, 8);
		a = next_answer(p);
		CHECK_EQ(a.opcode, ACKNOWLEDGE);
		CHECK_EQ(a.syndrome, 0x20 | p->e.conf.min_rnr);
		CHECK_EQ(a.psn, p->psn);
	}
	OK(post_recv(&p->e, 3, NULL, 0, 0));
	say(p, 0x09, p->psn | ACK_REQ, imm, 4, bytes, 8);
	expect_ack(p, p->psn);
	p->psn = next_psn(p->psn);
	wc = NEXT_WC(p->e.rcq);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	CHECK_EQ(wc.byte_len, MTU + 8);
	CHECK_EQ(be32toh(wc.imm_data), 0xcafebabe);
	CHECK_EQ(filled(p->buf.p, MTU, 1), -1);
	CHECK_EQ(filled(p->buf.p + MTU, 8, 1), -1);
	works(p);
	peer_free(p);
}

/* --- answers -------------------------------------------------------------- */

static const uint32_t relations[] = {
	0, 1, 2, 63, 64, 0x7fffff, 0x800000, 0x800001, 0xffff00, 0xffffff,
};

/* Everything that is an answer, at @psn. */
static void all_answers(struct peer *p, uint32_t psn)
{
	static const uint8_t bytes[MTU];
	unsigned int syndrome;
	uint8_t op;

	for (syndrome = 0; syndrome < 256; syndrome += t_slow() > 1 ? 5 : 1)
		say_answer(p, ACKNOWLEDGE, psn, syndrome, NULL, 0);
	for (op = 0x0d; op <= 0x10; op++) {
		say_answer(p, op, psn, 0x1f, bytes, MTU);
		say_answer(p, op, psn, 0x1f, bytes, 0);
	}
	say_answer(p, ATOMIC_ACKNOWLEDGE, psn, 0x1f, NULL, 0);
}

static void unasked_idle(const void *arg)
{
	struct peer *p = peer_new(arg);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(relations); i++) {
		all_answers(p, psn_add(p->e.conf.psn, relations[i]));
		works(p);
		expect_silence(p, "an answer to an answer");
	}
	sends(p);
	EXPECT_NO_EVENT(p->c, 0);
	peer_free(p);
}

/* With a SEND on its way, only an answer to it may end it. */
static void unasked_busy(const void *arg)
{
	struct peer *p = peer_new(arg);
	static const uint8_t bytes[MTU];
	struct op op = {
		.opcode = IBV_WR_SEND, .wr_id = 7, .laddr = p->buf.p,
		.len = 8, .lkey = p->buf.mr->lkey,
	};
	uint32_t psn = p->e.conf.psn;
	size_t i;
	uint8_t o;

	OK(post(&p->e, &op));
	expect_request(p, SEND_ONLY, psn);
	for (i = 1; i < ARRAY_SIZE(relations); i++)
		all_answers(p, psn_add(psn, relations[i]));
	for (o = 0x0d; o <= 0x10; o++)
		say_answer(p, o, psn, 0x1f, bytes, MTU);
	say_answer(p, ATOMIC_ACKNOWLEDGE, psn, 0x1f, NULL, 0);
	works(p);
	EXPECT_EMPTY(p->e.scq, 10);
	say_answer(p, ACKNOWLEDGE, psn, 0x1f, NULL, 0);
	EXPECT_WC(p->e.scq, 7, IBV_WC_SUCCESS);
	peer_free(p);
}

struct nak {
	uint8_t code;
	enum ibv_wc_status status;
};

/* IBA 9.7.5.2, table 45; 11.6.2. */
static const struct nak naks[] = {
	{ NAK_INV_REQ, IBV_WC_REM_INV_REQ_ERR },
	{ NAK_ACCESS, IBV_WC_REM_ACCESS_ERR },
	{ NAK_OP, IBV_WC_REM_OP_ERR },
};

static const struct op requests[] = {
	{ .opcode = IBV_WR_SEND, .len = 8 },
	{ .opcode = IBV_WR_RDMA_WRITE, .len = 8 },
	{ .opcode = IBV_WR_RDMA_READ, .len = 8 },
	{ .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8 },
};

static uint8_t opcode_of(const struct op *op)
{
	switch (op->opcode) {
	case IBV_WR_SEND:
		return SEND_ONLY;
	case IBV_WR_RDMA_WRITE:
		return WRITE_ONLY;
	case IBV_WR_RDMA_READ:
		return READ_REQUEST;
	default:
		return FETCH_ADD;
	}
}

static uint32_t request(struct peer *p, const struct op *tmpl)
{
	struct op op = *tmpl;

	op.wr_id = 7;
	op.laddr = p->buf.p;
	op.lkey = p->buf.mr->lkey;
	op.raddr = 0x1000;
	op.rkey = 0x4242;
	OK(post(&p->e, &op));
	expect_request(p, opcode_of(tmpl), p->e.conf.psn);
	return p->e.conf.psn;
}

/* Each refusal for each request: its status, and the QP is in error. */
static void refused(const void *arg)
{
	struct peer *p = peer_new(arg);
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(naks); i++) {
		for (k = 0; k < ARRAY_SIZE(requests); k++) {
			uint32_t psn;

			peer_again(p);
			psn = request(p, &requests[k]);
			say_answer(p, ACKNOWLEDGE, psn, 0x60 | naks[i].code,
				   NULL, 0);
			EXPECT_WC_WHY(p->e.scq, 7, naks[i].status,
				      MRSOFT_R_PEER_REFUSED);
			expect_state(&p->e, IBV_QPS_ERR);
		}
	}
	peer_free(p);
}

/* READ, ATOMIC: only their own answer, whole and in order, ends them. */
static void wrong_results(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint64_t *word = (void *)p->buf.p;
	uint8_t bytes[16];
	uint32_t psn;

	fill(bytes, sizeof(bytes), 1);
	psn = request(p, &requests[3]);
	*word = 0;
	say_answer(p, ACKNOWLEDGE, psn, 0x1f, NULL, 0);
	say_answer(p, 0x10, psn, 0x1f, bytes, 8);
	EXPECT_EMPTY(p->e.scq, 10);
	CHECK_EQ(*word, 0);
	say_answer(p, ATOMIC_ACKNOWLEDGE, psn, 0x1f, NULL, 0);
	EXPECT_WC(p->e.scq, 7, IBV_WC_SUCCESS);
	CHECK_EQ(*word, 0x5a5a5a5a5a5a5a5all);

	peer_again(p);
	psn = request(p, &requests[2]);
	say_answer(p, ACKNOWLEDGE, psn, 0x1f, NULL, 0);
	say_answer(p, ATOMIC_ACKNOWLEDGE, psn, 0x1f, NULL, 0);
	EXPECT_EMPTY(p->e.scq, 10);
	say_answer(p, 0x10, psn, 0x1f, bytes, 8);
	EXPECT_WC(p->e.scq, 7, IBV_WC_SUCCESS);
	CHECK_EQ(filled(p->buf.p, 8, 1), -1);

	/* more or less than was asked for: IBA 9.7.6.2.3 */
	memset(p->buf.p, 0xee, 32);
	peer_again(p);
	psn = request(p, &requests[2]);
	say_answer(p, 0x10, psn, 0x1f, bytes, 12);
	EXPECT_WC(p->e.scq, 7, IBV_WC_BAD_RESP_ERR);
	peer_again(p);
	psn = request(p, &requests[2]);
	say_answer(p, 0x10, psn, 0x1f, bytes, 4);
	EXPECT_WC(p->e.scq, 7, IBV_WC_BAD_RESP_ERR);
	CHECK_EQ(only(p->buf.p, 32, 0xee), -1);
	peer_free(p);
}

static void sends_one(void *arg)
{
	sends(arg);
}

/* A FLUSH as it leaves, twice, and what alone is its answer. */
static void flush_request(const void *arg)
{
	static const uint8_t want[20] = {
		0, 0, 0, 0x13, 1, 2, 3, 4, 5, 6, 7, 8, 0xa, 0xb, 0xc, 0xd,
		0xff, 0xff, 0xff, 0xff,
	};
	struct flush f = {
		.wr_id = 7, .addr = 0x0102030405060708, .rkey = 0x0a0b0c0d,
		.length = UINT32_MAX, .type = 3, .level = 1,
	};
	struct peer *p = peer_new(arg);
	struct ring *sq = send_ring(sends_one, p);
	struct ibv_wc wc;
	struct answer a;
	int i;

	post_flush(&p->e, sq, &f);
	for (i = 0; i < 2; i++) {
		CHECK(hear(p, &a, t_patience()));
		CHECK_EQ(a.opcode, FLUSH);
		CHECK_EQ(a.psn, p->sq_psn);
		CHECK_EQ(a.length, sizeof(want));
		CHECK(!memcmp(a.payload, want, sizeof(want)));
		if (!i)
			say_answer(p, ACKNOWLEDGE, p->sq_psn, 0x60 | NAK_PSN,
				   NULL, 0);
	}
	say_answer(p, ACKNOWLEDGE, p->sq_psn, 0x1f, NULL, 0);
	say_answer(p, ATOMIC_ACKNOWLEDGE, p->sq_psn, 0x1f, NULL, 0);
	EXPECT_EMPTY(p->e.scq, 10);
	say_answer(p, 0x10, p->sq_psn, 0x1f, NULL, 0);
	wc = NEXT_WC(p->e.scq);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, 7);
	CHECK_EQ((int)wc.opcode, WC_FLUSH);
	p->sq_psn = next_psn(p->sq_psn);
	sends(p);

	/* refused */
	post_flush(&p->e, sq, &f);
	expect_request(p, FLUSH, p->sq_psn);
	say_answer(p, ACKNOWLEDGE, p->sq_psn, 0x60 | NAK_ACCESS, NULL, 0);
	EXPECT_WC_WHY(p->e.scq, 7, IBV_WC_REM_ACCESS_ERR,
		      MRSOFT_R_PEER_REFUSED);
	expect_state(&p->e, IBV_QPS_ERR);
	peer_free(p);
}

/* Answers that are not to the point must not make it send again either. */
static void stray_responses(const void *arg)
{
	struct peer *p = peer_new(arg);
	static const uint8_t bytes[MTU];
	uint32_t psn = p->e.conf.psn, i;
	struct op op = {
		.opcode = IBV_WR_SEND, .wr_id = 7, .laddr = p->buf.p,
		.len = 3 * MTU, .lkey = p->buf.mr->lkey,
	};
	struct answer a;

	OK(post(&p->e, &op));
	expect_request(p, 0x00, psn);
	expect_request(p, 0x01, psn_add(psn, 1));
	expect_request(p, 0x02, psn_add(psn, 2));
	for (i = 0; i < 3; i++) {
		say_answer(p, 0x0e, psn_add(psn, i), 0, bytes, MTU);
		say_answer(p, ATOMIC_ACKNOWLEDGE, psn_add(psn, i), 0x1f, NULL,
			   0);
	}
	if (hear(p, &a, 20))
		t_fail(__FILE__, __LINE__, "opcode %#x, PSN %#x was sent again",
		       a.opcode, a.psn);
	say_answer(p, ACKNOWLEDGE, psn_add(psn, 2), 0x1f, NULL, 0);
	EXPECT_WC(p->e.scq, 7, IBV_WC_SUCCESS);
	peer_free(p);
}

/* More answers than the QP would ever keep, while it has nothing to do. */
static void flood_of_answers(const void *arg)
{
	struct peer *p = peer_new(arg);
	unsigned int i;

	for (i = 0; i < 6000; i++)
		say_answer(p, ACKNOWLEDGE, p->sq_psn, 0x1f, NULL, 0);
	works(p);
	/* in time: none of them is taken for the answer, nor hides it */
	sends(p);
	sends(p);
	peer_free(p);
}

/* NAK of a PSN, RNR NAK: the same packet comes again.  IBA 9.7.5.2.8. */
static void sent_again(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t psn = request(p, &requests[0]);
	uint64_t start;

	say_answer(p, ACKNOWLEDGE, psn, 0x60 | NAK_PSN, NULL, 0);
	expect_request(p, SEND_ONLY, psn);
	start = t_now();
	/* code 20: 10.24 ms */
	say_answer(p, ACKNOWLEDGE, psn, 0x20 | 20, NULL, 0);
	expect_request(p, SEND_ONLY, psn);
	CHECK(t_now() - start >= 9);
	say_answer(p, ACKNOWLEDGE, psn, 0x1f, NULL, 0);
	EXPECT_WC(p->e.scq, 7, IBV_WC_SUCCESS);
	p->sq_psn = next_psn(p->sq_psn);
	sends(p);
	peer_free(p);
}

/* As often as rnr_retry says, and not for ever. */
static void rnr_exceeded(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t psn = request(p, &requests[0]);
	int i;

	for (i = 0; i < p->e.conf.rnr_retry; i++) {
		say_answer(p, ACKNOWLEDGE, psn, 0x21, NULL, 0);
		expect_request(p, SEND_ONLY, psn);
	}
	say_answer(p, ACKNOWLEDGE, psn, 0x21, NULL, 0);
	EXPECT_WC(p->e.scq, 7, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_state(&p->e, IBV_QPS_ERR);
	peer_free(p);
}

/* --- datagrams ------------------------------------------------------------ */

static void datagrams(const void *arg)
{
	struct peer *p = peer_new(arg);
	uint32_t qkeys[] = { 0, UD_QKEY ^ 1, UD_QKEY ^ 1u << 31, 0x80010000 };
	struct counts before;
	uint8_t deth[8] = {}, bytes[8] = {};
	struct frame f;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(qkeys); i++) {
		put32(deth, qkeys[i]);
		read_counts(&before);
		say(p, UD_SEND_ONLY, i, deth, 8, bytes, 8);
		expect_counts(&before, MRSOFT_R_QKEY, "wrong Q_Key");
		works(p);
	}
	/* to the GSI with a key that is not its own */
	put32(deth, UD_QKEY);
	read_counts(&before);
	frame(p, &f, UD_SEND_ONLY, 0, deth, 8, bytes, 8);
	qpn_1(&f);
	seal(&f);
	frame_send(p, &f);
	expect_counts(&before, MRSOFT_R_QKEY, "wrong Q_Key at QP 1");
	/* no receive WQE, and one that is too small, which stays */
	read_counts(&before);
	say_send(p, bytes, 8);
	expect_counts(&before, MRSOFT_R_NO_RECV, "no receive");
	OK(post_recv(&p->e, 1, p->buf.p, 47, p->buf.mr->lkey));
	read_counts(&before);
	say_send(p, bytes, 8);
	expect_counts(&before, MRSOFT_R_RECV_TOO_SHORT, "receive too short");
	say_send(p, bytes, 7);
	EXPECT_WC(p->e.rcq, 1, IBV_WC_SUCCESS);
	works(p);
	expect_silence(p, "an answer to a datagram");
	peer_free(p);
}

/* --- any packet ----------------------------------------------------------- */

static unsigned int seed;

static uint32_t rnd(void)
{
	return (uint32_t)rand_r(&seed) ^ (uint32_t)rand_r(&seed) << 16;
}

/* A good packet of any kind that the QP may get, at about the right PSN. */
static void some_frame(struct peer *p, struct frame *f)
{
	static const uint8_t rc_ops[] = {
		0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09,
		0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13,
		0x14, 0x16, 0x17, 0x1c, 0x1d, 0x04, 0x0a, 0x0c, 0x14,
	};
	uint8_t ext[28], bytes[2 * MTU];
	uint32_t psn, len = rnd() % 3 ? rnd() % 64 : rnd() % 4 ? MTU :
			    rnd() % (MTU + 8);
	uint8_t op = rc_ops[rnd() % (p->k->type == RC ? sizeof(rc_ops) : 12)];
	size_t n;

	if (p->k->type == UD)
		op = 0x04 + rnd() % 2;
	n = ext_of(p, ext, op, (uintptr_t)p->buf.p + rnd() % SIZE,
		   p->buf.mr->rkey, rnd() % 4 ? len : rnd() % (8 * MTU));
	if (op == 0x0c || (op >= 0x11 && op <= 0x14))
		len = 0;
	fill(bytes, len, rnd());
	psn = op >= 0x0d && op <= 0x12 ? p->e.conf.psn : p->psn;
	if (rnd() % 4 == 0)
		psn = psn_add(psn, rnd() % 16 - 8);
	if (rnd() % 2)
		psn |= ACK_REQ;
	frame(p, f, op + service(p), psn, ext, n, bytes, len);
}

static void mutate(struct frame *f)
{
	unsigned int n = rnd() % 4;

	while (n--) {
		/* mostly the headers of the transport */
		size_t at = rnd() % 3 ? f->bth + rnd() % 44 :
					f->net + rnd() % (f->len - f->net);

		if (at >= f->len)
			continue;
		f->b[at] = rnd() % 2 ? f->b[at] ^ 1u << rnd() % 8 : rnd();
	}
	if (rnd() % 8 == 0)
		f->len -= rnd() % (f->len - f->bth + 1);
	/* or else it would not come past the first check */
	if (rnd() % 10)
		seal(f);
	if (rnd() % 50 == 0)
		put16(f->b + f->udp + 4, rnd());
}

/* What the QP says, its PSN kept in step, and receive WQEs for it. */
static void keep_up(struct peer *p)
{
	struct answer a;
	struct ibv_wc wc;

	while (hear(p, &a, 0)) {
		if (a.opcode == ACKNOWLEDGE && a.syndrome < 0x20)
			p->psn = next_psn(a.psn);
	}
	while (ibv_poll_cq(p->e.scq, 1, &wc) > 0)
		p->posted--;
	while (ibv_poll_cq(p->e.rcq, 1, &wc) > 0)
		p->received--;
	if (p->k->type == RC && end_state(&p->e) == IBV_QPS_ERR)
		peer_again(p);
	for (; p->received < 16; p->received++)
		OK(post_recv(&p->e, 0, p->buf.p, 2 * MTU, p->buf.mr->lkey));
	if (p->posted < 16 && p->k->type == RC) {
		struct op op = requests[rnd() % ARRAY_SIZE(requests)];

		op.laddr = p->buf.p;
		op.lkey = p->buf.mr->lkey;
		if (!post(&p->e, &op))
			p->posted++;
	}
}

static void eat_events(struct ctx *c)
{
	struct ibv_async_event event;

	while (wait_event(c, &event, 0))
		;
}

static void fuzz(const void *arg)
{
	const struct kind *k = arg;
	const char *given = getenv("MRSOFT_SEED");
	unsigned int i, n = t_rounds(6000);
	struct peer *p = peer_new(k), *q;
	/* memory of the same PD that no packet may reach */
	struct buf guard = buf_new(p->c->pd, SIZE, IBV_ACCESS_LOCAL_WRITE);
	struct frame f;

	seed = given ? (unsigned int)strtoul(given, NULL, 0) : 4711;
	t_note("seed %u, %u packets", seed, n);
	fill(guard.p, SIZE, 6);
	for (i = 0; i < n; i++) {
		if (i % 16 == 0)
			keep_up(p);
		some_frame(p, &f);
		mutate(&f);
		frame_send(p, &f);
		if (i % 256 == 0)
			eat_events(p->c);
	}
	keep_up(p);
	CHECK_EQ(filled(guard.p, SIZE, 6), -1);
	buf_free(&guard);
	if (k->type != RC)
		CHECK_EQ(end_state(&p->e), IBV_QPS_RTS);
	eat_events(p->c);
	peer_again(p);
	works(p);
	peer_free(p);
	q = peer_new(k);
	works(q);
	sends(q);
	peer_free(q);
}

/* -------------------------------------------------------------------------- */

static const struct kind rc = { RC, false }, rc6 = { RC, true },
	uc = { UC, false }, uc6 = { UC, true }, ud = { UD, false },
	ud6 = { UD, true };

static const struct t_case cases[] = {
	{ "dropped_rc", dropped, &rc, 0 },
	{ "dropped_rc6", dropped, &rc6, 0 },
	{ "dropped_uc", dropped, &uc, 0 },
	{ "dropped_uc6", dropped, &uc6, 0 },
	{ "dropped_ud", dropped, &ud, 0 },
	{ "dropped_ud6", dropped, &ud6, 0 },
	{ "opcodes_rc", opcodes, &rc, 0 },
	{ "opcodes_uc", opcodes, &uc, 0 },
	{ "reserved_opcodes", refuses_reserved, &rc, 0 },
	{ "opcodes_ud", opcodes, &ud, 0 },
	{ "lengths_rc", lengths, &rc, 0 },
	{ "lengths_rc6", lengths, &rc6, 0 },
	{ "lengths_uc", lengths, &uc, 0 },
	{ "lengths_ud", lengths, &ud, 0 },
	{ "too_long_rc", one_too_long, &rc, 0 },
	{ "too_long_uc", one_too_long, &uc, 0 },
	{ "paddings_rc", paddings, &rc, 0 },
	{ "paddings_uc", paddings, &uc, 0 },
	{ "paddings_ud", paddings, &ud, 0 },
	{ "orders_rc", orders_rc, &rc, 0 },
	{ "orders_uc", orders_uc, &uc, 0 },
	{ "accesses_rc", accesses_rc, &rc, 0 },
	{ "accesses_uc", accesses_uc, &uc, 0 },
	{ "send_too_long", send_too_long, &rc, 0 },
	{ "rnr", rnr, &rc, 0 },
	{ "ghosts_rc", ghosts, &rc, 0 },
	{ "ghosts_uc", ghosts_uc, &uc, 0 },
	{ "twice", twice, &rc, 0 },
	{ "read_again", read_again, &rc, 0 },
	{ "atomic_again", atomic_again, &rc, 0 },
	{ "atomic_write_again", atomic_write_again, &rc, 0 },
	{ "flush_again", flush_again, &rc, 0 },
	{ "flush_reserved", flush_reserved, &rc, 0 },
	{ "flush_request", flush_request, &rc, 0 },
	{ "late_receive", late_receive, &rc, 0 },
	{ "unasked_idle", unasked_idle, &rc, 0 },
	{ "unasked_busy", unasked_busy, &rc, 0 },
	{ "refused", refused, &rc, 0 },
	{ "wrong_results", wrong_results, &rc, 0 },
	{ "stray_responses", stray_responses, &rc, 0 },
	{ "flood_of_answers", flood_of_answers, &rc, 0 },
	{ "sent_again", sent_again, &rc, 0 },
	{ "rnr_exceeded", rnr_exceeded, &rc, 0 },
	{ "datagrams", datagrams, &ud, 0 },
	{ "datagrams6", datagrams, &ud6, 0 },
	{ "fuzz_rc", fuzz, &rc, 60 },
	{ "fuzz_rc6", fuzz, &rc6, 60 },
	{ "fuzz_uc", fuzz, &uc, 60 },
	{ "fuzz_ud", fuzz, &ud, 60 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
