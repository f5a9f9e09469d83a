// SPDX-License-Identifier: GPL-2.0
/*
 * headers.c - packets of every kind, and beside them what they must be
 *
 *	MRSOFT_DEV (CABLE_A's netdev) ---- cable ---- MRSOFT_DEV2 (CABLE_B's)
 *
 * The cable adds the packets to HEADERS_OUT.pcap; a line for each packet that the
 * specification wants, in the order of its direction, goes to HEADERS_OUT.txt.
 * suites/headers_check.py compares them: which numbers follow from others (padding,
 * lengths, ports, checksums) it knows by itself.  A line is
 *
 *	FAMILY NAME=VALUE...
 *
 * with the words that begin() and its neighbours write.  "maybe=1": the packet may
 * be there or not; "3|4": one of them.
 *
 * Spec: IBA Vol 1, 5.2, 9.2 to 9.8; Annex A17, A19.  Environment: suites/headers.sh,
 * HEADERS_GID_A and _B are the addresses of the two ends.
 */
#include <arpa/inet.h>

#include "cable.h"
#include "lib.h"

#define MTU 1024u
#define SIZE (64 * KiB)
#define UD_GRH 40
#define UD_MAX 4096u
#define MULTICAST_QPN 0xffffffu
/* wraps in the first case of many packets */
#define FIRST_PSN 0xfffff5u

/* IBA table 38, without the bits of the service. */
enum {
	SEND_FIRST = 0x00, SEND_MIDDLE = 0x01, SEND_LAST = 0x02,
	SEND_LAST_IMM = 0x03, SEND_ONLY = 0x04, SEND_ONLY_IMM = 0x05,
	WRITE_FIRST = 0x06, WRITE_MIDDLE = 0x07, WRITE_LAST = 0x08,
	WRITE_LAST_IMM = 0x09, WRITE_ONLY = 0x0a, WRITE_ONLY_IMM = 0x0b,
	READ_REQUEST = 0x0c, READ_FIRST = 0x0d, READ_MIDDLE = 0x0e,
	READ_LAST = 0x0f, READ_ONLY = 0x10, ACK = 0x11, ATOMIC_ACK = 0x12,
	CMP_SWAP = 0x13, FETCH_ADD = 0x14, SEND_LAST_INV = 0x16,
	SEND_ONLY_INV = 0x17, ATOMIC_WRITE = 0x1d,
	OF_UC = 0x20, OF_UD = 0x60,
};

/* AETH, IBA tables 43 to 45 */
#define SYN_ACK 0x1f
#define SYN_RNR 0x20
#define SYN_NAK 0x60
enum { NAK_PSN = 0, NAK_INV_REQ = 1, NAK_ACCESS = 2, NAK_OP = 3 };

/* each length mod 4, below, at and above the MTU, and three packets and more */
static const uint32_t lengths[] = {
	0, 1, 2, 3, 4, 5, MTU - 1, MTU, MTU + 1, MTU + 2, 2 * MTU, 2 * MTU + 3,
	3 * MTU + 4, 3 * MTU + 5,
};

static const uint32_t ud_lengths[] = {
	0, 1, 2, 3, 4, 5, UD_MAX - 3, UD_MAX - 2, UD_MAX - 1, UD_MAX,
};

/**
 * struct net - both ends, and where the next packets are
 * @psn: of a's next request
 * @msn: messages of a that b has finished
 * @out: the lines
 * @group: UD: instead of b's address
 */
struct net {
	struct ctx *ca, *cb;
	struct buf mine, theirs;
	struct end a, b;
	uint32_t psn, msn;
	FILE *out;
	const union ibv_gid *group;
};

static union ibv_gid parse(const char *address)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	CHECK(address);
	if (inet_pton(AF_INET, address, gid.raw + 12) == 1)
		return gid;
	CHECK_EQ(inet_pton(AF_INET6, address, &gid), 1);
	return gid;
}

static bool is_ipv4(const union ibv_gid *gid)
{
	return !gid->raw[0] && gid->raw[10] == 0xff;
}

static struct ctx *open_at(const char *device, const char *variable)
{
	struct ctx *c = ctx_open(device);
	struct ibv_gid_entry entry;
	int i;

	c->gid = parse(getenv(variable));
	c->mtu = IBV_MTU_1024;
	for (i = 0; i < 32; i++) {
		if (ibv_query_gid_ex(c->ibv, 1, i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    memcmp(&entry.gid, &c->gid, sizeof(c->gid)))
			continue;
		c->gid_index = i;
		return c;
	}
	t_fail(__FILE__, __LINE__, "no GID %s", getenv(variable));
}

static const char *out_name(const char *suffix)
{
	static char name[2][256];
	static unsigned int i;

	CHECK(getenv("HEADERS_OUT"));
	i ^= 1;
	snprintf(name[i], sizeof(name[i]), "%s%s", getenv("HEADERS_OUT"),
		 suffix);
	return name[i];
}

/* Two QPs with nothing that is sent again because a machine is slow. */
static struct conf patient(enum ibv_qp_type type)
{
	struct conf conf = conf_of(type);

	conf.timeout = 21;	/* 8.6 s */
	conf.retry_cnt = 1;
	conf.min_rnr = 14;
	conf.psn = FIRST_PSN;
	conf.ex = type == RC;
	return conf;
}

static void net_open(struct net *n)
{
	*n = (struct net){ .psn = FIRST_PSN };
	n->ca = open_at(NULL, "HEADERS_GID_A");
	n->cb = open_at(ctx_second(), "HEADERS_GID_B");
	/* ECN-capable; both differ in each field */
	n->ca->traffic_class = 0xba;
	n->ca->hop_limit = 93;
	n->ca->flow_label = 0xabcde;
	n->cb->traffic_class = 0x2d;
	n->cb->hop_limit = 201;
	n->cb->flow_label = 0x50003;
	n->mine = buf_new(n->ca->pd, SIZE, MR_ALL);
	n->theirs = buf_new(n->cb->pd, SIZE, MR_ALL);
	n->out = fopen(out_name(".txt"), "a");
	CHECK(n->out);
	cable_start(NULL);
	cable_capture(out_name(".pcap"));
}

static void net_connect(struct net *n, const struct conf *conf)
{
	pair_new2(n->ca, n->cb, conf, &n->a, &n->b);
}

static void net_new(struct net *n, enum ibv_qp_type type)
{
	struct conf conf = patient(type);

	net_open(n);
	net_connect(n, &conf);
}

static void net_close(struct net *n)
{
	CHECK(!fclose(n->out));
	buf_free(&n->mine);
	buf_free(&n->theirs);
	ctx_close(n->ca);
	ctx_close(n->cb);
}

static void net_free(struct net *n)
{
	pair_free(&n->a, &n->b);
	net_close(n);
}

/* --- lines ---------------------------------------------------------------- */

static void put_gid(FILE *out, const char *name, const union ibv_gid *gid)
{
	char text[INET6_ADDRSTRLEN];

	if (is_ipv4(gid))
		CHECK(inet_ntop(AF_INET, gid->raw + 12, text, sizeof(text)));
	else
		CHECK(inet_ntop(AF_INET6, gid, text, sizeof(text)));
	fprintf(out, " %s=%s", name, text);
}

/* Addresses, BTH: a line of a packet from @from to @to. */
static void begin(struct net *n, const char *family, const struct end *from,
		  uint8_t op, uint32_t psn, bool solicited)
{
	const struct end *to = from == &n->a ? &n->b : &n->a;
	const struct ctx *c = from->c;
	uint32_t qpn = n->group ? MULTICAST_QPN : to->qp->qp_num;

	fprintf(n->out, "%s from=%c", family, from == &n->a ? 'a' : 'b');
	put_gid(n->out, "src", &c->gid);
	put_gid(n->out, "dst", n->group ? n->group : &to->c->gid);
	fprintf(n->out, " tclass=%u hops=%u flow=%u lqpn=%u", c->traffic_class,
		c->hop_limit, c->flow_label, from->qp->qp_num);
	fprintf(n->out, " op=%u psn=%u qpn=%u se=%d", op, psn & 0xffffff, qpn,
		solicited);
}

static void put_reth(struct net *n, uint64_t va, uint32_t rkey, uint32_t len)
{
	fprintf(n->out, " reth.va=%llu reth.rkey=%u reth.length=%u",
		(unsigned long long)va, rkey, len);
}

static void put_aeth(struct net *n, uint8_t syndrome, uint32_t msn)
{
	fprintf(n->out, " aeth.syndrome=%u aeth.msn=%u", syndrome, msn);
}

static void finish(struct net *n, const uint8_t *data, uint32_t len)
{
	uint32_t i;

	fprintf(n->out, " data=");
	for (i = 0; i < len; i++)
		fprintf(n->out, "%02x", data[i]);
	fprintf(n->out, "\n");
}

static void expect_answer(struct net *n, const char *family, uint32_t psn,
			  uint8_t syndrome, bool maybe)
{
	begin(n, family, &n->b, ACK, psn, false);
	put_aeth(n, syndrome, n->msn);
	if (maybe)
		fprintf(n->out, " maybe=1");
	finish(n, NULL, 0);
}

/* What a message of several packets is made of, and its last headers. */
struct message {
	const char *family;
	enum ibv_wr_opcode wr;
	uint8_t first, middle, last, only;
	bool recv, reth;
};

static const struct message rc_send = {
	"rc-send", IBV_WR_SEND,
	SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY, true, false,
};

static const struct message rc_send_imm = {
	"rc-send-imm", IBV_WR_SEND_WITH_IMM,
	SEND_FIRST, SEND_MIDDLE, SEND_LAST_IMM, SEND_ONLY_IMM, true, false,
};

static const struct message rc_send_inv = {
	"rc-send-inv", IBV_WR_SEND_WITH_INV,
	SEND_FIRST, SEND_MIDDLE, SEND_LAST_INV, SEND_ONLY_INV, true, false,
};

static const struct message rc_write = {
	"rc-write", IBV_WR_RDMA_WRITE,
	WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY, false, true,
};

static const struct message rc_write_imm = {
	"rc-write-imm", IBV_WR_RDMA_WRITE_WITH_IMM,
	WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST_IMM, WRITE_ONLY_IMM, true, true,
};

static const struct message uc_send = {
	"uc-send", IBV_WR_SEND, OF_UC | SEND_FIRST, OF_UC | SEND_MIDDLE,
	OF_UC | SEND_LAST, OF_UC | SEND_ONLY, true, false,
};

static const struct message uc_send_imm = {
	"uc-send-imm", IBV_WR_SEND_WITH_IMM, OF_UC | SEND_FIRST,
	OF_UC | SEND_MIDDLE, OF_UC | SEND_LAST_IMM, OF_UC | SEND_ONLY_IMM,
	true, false,
};

static const struct message uc_write = {
	"uc-write", IBV_WR_RDMA_WRITE, OF_UC | WRITE_FIRST,
	OF_UC | WRITE_MIDDLE, OF_UC | WRITE_LAST, OF_UC | WRITE_ONLY,
	false, true,
};

static const struct message uc_write_imm = {
	"uc-write-imm", IBV_WR_RDMA_WRITE_WITH_IMM, OF_UC | WRITE_FIRST,
	OF_UC | WRITE_MIDDLE, OF_UC | WRITE_LAST_IMM, OF_UC | WRITE_ONLY_IMM,
	true, true,
};

static uint32_t packets_of(uint32_t len)
{
	return len ? (len + MTU - 1) / MTU : 1;
}

static uint8_t opcode_at(const struct message *m, uint32_t i, uint32_t packets)
{
	if (packets == 1)
		return m->only;
	if (!i)
		return m->first;
	return i + 1 == packets ? m->last : m->middle;
}

/* IBA 9.2.3: in the last packet of what takes a receive WQE, if it is asked for. */
static bool solicits(const struct message *m, const struct op *op, bool last)
{
	return last && m->recv && (op->flags & IBV_SEND_SOLICITED);
}

static void expect_request(struct net *n, const struct message *m,
			   const struct op *op, uint32_t i)
{
	uint32_t packets = packets_of(op->len), off = i * MTU;
	bool last = i + 1 == packets;

	begin(n, m->family, &n->a, opcode_at(m, i, packets), n->psn + i,
	      solicits(m, op, last));
	if (m->reth && !i)
		put_reth(n, op->raddr, op->rkey, op->len);
	if (last && (op->opcode == IBV_WR_SEND_WITH_IMM ||
		     op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM))
		fprintf(n->out, " imm=%u", op->imm);
	if (last && op->opcode == IBV_WR_SEND_WITH_INV)
		fprintf(n->out, " ieth=%u", op->rkey);
	finish(n, op->laddr + off, last ? op->len - off : MTU);
}

/* The packets of one message that nothing happens to. */
static void expect_message(struct net *n, const struct message *m,
			   const struct op *op)
{
	uint32_t i, packets = packets_of(op->len);
	bool rc = n->a.conf.type == RC;

	for (i = 0; i < packets; i++) {
		expect_request(n, m, op, i);
		/* asked for or not, a packet may be acknowledged */
		if (rc && i + 1 < packets)
			expect_answer(n, "rc-ack", n->psn + i, SYN_ACK, true);
	}
	n->psn += packets;
	n->msn++;
	if (rc)
		expect_answer(n, "rc-ack", n->psn - 1, SYN_ACK, false);
}

static void receive(struct net *n, uint32_t len, uint32_t imm, bool has_imm)
{
	struct ibv_wc wc = NEXT_WC(n->b.rcq);

	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, len);
	if (has_imm)
		CHECK_EQ(be32toh(wc.imm_data), imm);
}

/* Of a UC WRITE nobody is told that it is there. */
static void wait_filled(const uint8_t *p, uint32_t len, unsigned int seed)
{
	uint64_t end = t_now() + t_patience();

	while (filled(p, len, seed) != -1 && t_now() < end)
		t_sleep(1);
	CHECK_EQ(filled(p, len, seed), -1);
}

static void run_message(struct net *n, const struct message *m, uint32_t len,
			uint32_t inv_key, unsigned int i)
{
	bool imm = m->wr == IBV_WR_SEND_WITH_IMM ||
		   m->wr == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct op op = {
		.opcode = m->wr, .laddr = n->mine.p, .len = len,
		.lkey = n->mine.mr->lkey, .imm = 0xf1020304 + i,
		.raddr = (uintptr_t)n->theirs.p + 8 * i,
		.rkey = inv_key ? inv_key : n->theirs.mr->rkey,
		.flags = i % 2 ? IBV_SEND_SOLICITED : 0,
	};

	fill(n->mine.p, len, i);
	if (m->recv)
		OK(post_recv(&n->b, i, m->reth ? NULL : n->theirs.p,
			     m->reth ? 0 : SIZE / 2, n->theirs.mr->lkey));
	expect_message(n, m, &op);
	OK(post(&n->a, &op));
	EXPECT_WC(n->a.scq, 0, IBV_WC_SUCCESS);
	if (m->recv)
		receive(n, len, op.imm, imm);
	else if (n->a.conf.type == UC)
		wait_filled(n->theirs.p + 8 * i, len, i);
}

static void messages(const void *arg)
{
	const struct message *m = arg;
	struct net n;
	unsigned int i;

	net_new(&n, m->first & OF_UC ? UC : RC);
	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		run_message(&n, m, lengths[i], 0, i);
	net_free(&n);
}

static void send_inv(const void *arg)
{
	struct ibv_mw *mw;
	struct net n;
	unsigned int i;

	net_new(&n, RC);
	mw = ibv_alloc_mw(n.cb->pd, IBV_MW_TYPE_2);
	CHECK(mw);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint32_t rkey = ibv_inc_rkey(mw->rkey);

		OK(post_bind(&n.b, mw, rkey, n.theirs.mr, n.theirs.p, 4096,
			     IBV_ACCESS_REMOTE_WRITE));
		EXPECT_WC(n.b.scq, 0xb1d, IBV_WC_SUCCESS);
		mw->rkey = rkey;
		run_message(&n, arg, lengths[i], rkey, i);
	}
	OK(ibv_dealloc_mw(mw));
	net_free(&n);
}

/* --- READ, atomics -------------------------------------------------------- */

/*
 * IBA 9.7.7.1: the MSN of the last and the only response counts the READ, that of
 * the first may.
 */
static void expect_read(struct net *n, const struct op *op, uint8_t *bytes)
{
	static const struct message response = {
		.first = READ_FIRST, .middle = READ_MIDDLE,
		.last = READ_LAST, .only = READ_ONLY,
	};
	uint32_t i, packets = packets_of(op->len);

	begin(n, "rc-read", &n->a, READ_REQUEST, n->psn, false);
	put_reth(n, op->raddr, op->rkey, op->len);
	finish(n, NULL, 0);
	n->msn++;
	for (i = 0; i < packets; i++) {
		bool last = i + 1 == packets;

		begin(n, "rc-read-response", &n->b,
		      opcode_at(&response, i, packets), n->psn + i, false);
		if (last)
			put_aeth(n, SYN_ACK, n->msn);
		else if (!i)
			fprintf(n->out, " aeth.syndrome=%u aeth.msn=%u|%u",
				SYN_ACK, n->msn - 1, n->msn);
		finish(n, bytes + i * MTU, last ? op->len - i * MTU : MTU);
	}
	n->psn += packets;
}

static void reads(const void *arg)
{
	struct net n;
	unsigned int i;

	(void)arg;
	net_new(&n, RC);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct op op = {
			.opcode = IBV_WR_RDMA_READ, .laddr = n.mine.p,
			.len = lengths[i], .lkey = n.mine.mr->lkey,
			.raddr = (uintptr_t)n.theirs.p + 3 * i,
			.rkey = n.theirs.mr->rkey,
			.flags = i % 2 ? IBV_SEND_SOLICITED : 0,
		};

		fill(n.theirs.p + 3 * i, lengths[i], i);
		expect_read(&n, &op, n.theirs.p + 3 * i);
		OK(post(&n.a, &op));
		EXPECT_WC(n.a.scq, 0, IBV_WC_SUCCESS);
		CHECK_EQ(filled(n.mine.p, lengths[i], i), -1);
	}
	net_free(&n);
}

static void expect_atomic(struct net *n, const char *family, uint8_t opcode,
			  const struct op *op, uint64_t old)
{
	bool swap = opcode == CMP_SWAP;

	begin(n, family, &n->a, opcode, n->psn, false);
	fprintf(n->out, " atomic.va=%llu atomic.rkey=%u",
		(unsigned long long)op->raddr, op->rkey);
	fprintf(n->out, " atomic.swap=%llu",
		(unsigned long long)(swap ? op->swap : op->compare));
	/* that of a FETCH AND ADD means nothing */
	if (swap)
		fprintf(n->out, " atomic.compare=%llu",
			(unsigned long long)op->compare);
	finish(n, NULL, 0);
	n->msn++;
	begin(n, "rc-atomic-ack", &n->b, ATOMIC_ACK, n->psn, false);
	put_aeth(n, SYN_ACK, n->msn);
	fprintf(n->out, " old=%llu", (unsigned long long)old);
	finish(n, NULL, 0);
	n->psn++;
}

static void atomics(const void *arg)
{
	struct net n;
	unsigned int i;

	(void)arg;
	net_new(&n, RC);
	for (i = 0; i < 6; i++) {
		uint64_t *word = (uint64_t *)n.theirs.p + i;
		uint64_t old = 0xf123456789abcdefull + i;
		bool swap = i % 2;
		struct op op = {
			.opcode = swap ? IBV_WR_ATOMIC_CMP_AND_SWP :
					 IBV_WR_ATOMIC_FETCH_AND_ADD,
			.laddr = n.mine.p, .len = 8, .lkey = n.mine.mr->lkey,
			.raddr = (uintptr_t)word, .rkey = n.theirs.mr->rkey,
			.compare = swap ? old : 0x8070605040302010ull + i,
			.swap = 0xfedcba9876543210ull - i,
			.flags = i % 3 ? IBV_SEND_SOLICITED : 0,
		};

		*word = old;
		expect_atomic(&n, swap ? "rc-cmp-swap" : "rc-fetch-add",
			      swap ? CMP_SWAP : FETCH_ADD, &op, old);
		OK(post(&n.a, &op));
		EXPECT_WC(n.a.scq, 0, IBV_WC_SUCCESS);
		CHECK_EQ(*(uint64_t *)n.mine.p, old);
	}
	net_free(&n);
}

/* Annex A19: answered by a READ response without bytes. */
static void atomic_writes(const void *arg)
{
	struct net n;
	unsigned int i;

	(void)arg;
	net_new(&n, RC);
	for (i = 0; i < 4; i++) {
		uint8_t *at = n.theirs.p + 8 * i;
		uint8_t value[8];

		fill(value, sizeof(value), i);
		begin(&n, "rc-atomic-write", &n.a, ATOMIC_WRITE, n.psn, false);
		put_reth(&n, (uintptr_t)at, n.theirs.mr->rkey, sizeof(value));
		finish(&n, value, sizeof(value));
		n.msn++;
		begin(&n, "rc-atomic-write-response", &n.b, READ_ONLY, n.psn++,
		      false);
		put_aeth(&n, SYN_ACK, n.msn);
		finish(&n, NULL, 0);

		ibv_wr_start(n.a.qpx);
		n.a.qpx->wr_id = i;
		n.a.qpx->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_atomic_write(n.a.qpx, n.theirs.mr->rkey, (uintptr_t)at,
				    value);
		OK(ibv_wr_complete(n.a.qpx));
		EXPECT_WC(n.a.scq, i, IBV_WC_SUCCESS);
		CHECK(!memcmp(at, value, sizeof(value)));
	}
	net_free(&n);
}

/* --- refusals ------------------------------------------------------------- */

/* A SEND without a receive WQE. */
static void not_ready(const void *arg)
{
	struct conf conf = patient(RC);
	struct net n;
	struct op op;

	(void)arg;
	conf.rnr_retry = 0;
	net_open(&n);
	net_connect(&n, &conf);
	fill(n.mine.p, 7, 1);
	op = (struct op){
		.opcode = IBV_WR_SEND, .laddr = n.mine.p, .len = 7,
		.lkey = n.mine.mr->lkey,
	};
	expect_request(&n, &rc_send, &op, 0);
	expect_answer(&n, "rc-rnr-nak", n.psn, SYN_RNR | conf.min_rnr, false);
	OK(post(&n.a, &op));
	EXPECT_WC(n.a.scq, 0, IBV_WC_RNR_RETRY_EXC_ERR);
	net_free(&n);
}

struct refusal {
	enum ibv_wr_opcode wr;
	uint8_t code;
	enum ibv_wc_status status;
};

/*
 * INV_REQ: longer than the receive WQE; REM_ACCESS: a wrong key; REM_OP: the
 * receive WQE's key is wrong.  A good message before, so that the MSN is not 0.
 */
static void refused(const void *arg)
{
	const struct refusal *r = arg;
	const struct message *m = r->wr == IBV_WR_SEND ? &rc_send : &rc_write;
	struct op op;
	struct net n;

	net_new(&n, RC);
	run_message(&n, &rc_write, 3, 0, 0);
	fill(n.mine.p, 9, 1);
	op = (struct op){
		.opcode = r->wr, .laddr = n.mine.p, .len = 9,
		.lkey = n.mine.mr->lkey, .raddr = (uintptr_t)n.theirs.p,
		.rkey = n.theirs.mr->rkey ^ 1,
	};
	if (r->wr == IBV_WR_SEND)
		OK(post_recv(&n.b, 1, n.theirs.p,
			     r->code == NAK_INV_REQ ? 8 : 64,
			     n.theirs.mr->lkey ^ (r->code == NAK_OP)));
	expect_request(&n, m, &op, 0);
	expect_answer(&n, "rc-nak", n.psn, SYN_NAK | r->code, false);
	OK(post(&n.a, &op));
	EXPECT_WC(n.a.scq, 0, r->status);
	net_free(&n);
}

static const struct refusal invalid_request = {
	IBV_WR_SEND, NAK_INV_REQ, IBV_WC_REM_INV_REQ_ERR,
};

static const struct refusal remote_access = {
	IBV_WR_RDMA_WRITE, NAK_ACCESS, IBV_WC_REM_ACCESS_ERR,
};

static const struct refusal remote_operation = {
	IBV_WR_SEND, NAK_OP, IBV_WC_REM_OP_ERR,
};

/* The middle one of three packets is lost: NAK, and from there on again. */
static void sequence(const void *arg)
{
	struct cable_rule rule = { CABLE_DROP, SEND_MIDDLE, 1, 1 };
	struct conf conf = patient(RC);
	struct net n;
	struct op op;

	(void)arg;
	conf.psn = 0;
	net_open(&n);
	net_connect(&n, &conf);
	n.psn = 0;
	fill(n.mine.p, 3 * MTU, 1);
	OK(post_recv(&n.b, 1, n.theirs.p, SIZE, n.theirs.mr->lkey));
	op = (struct op){
		.opcode = IBV_WR_SEND, .laddr = n.mine.p, .len = 3 * MTU,
		.lkey = n.mine.mr->lkey,
	};
	expect_request(&n, &rc_send, &op, 0);
	expect_request(&n, &rc_send, &op, 1);
	expect_request(&n, &rc_send, &op, 2);
	expect_answer(&n, "rc-nak", 1, SYN_NAK | NAK_PSN, false);
	expect_request(&n, &rc_send, &op, 1);
	expect_request(&n, &rc_send, &op, 2);
	n.msn = 1;
	expect_answer(&n, "rc-ack", 2, SYN_ACK, false);
	cable_set(&rule);
	OK(post(&n.a, &op));
	EXPECT_WC(n.a.scq, 0, IBV_WC_SUCCESS);
	CHECK_EQ(cable_struck(), 1);
	receive(&n, 3 * MTU, 0, false);
	net_free(&n);
}

/* --- UD ------------------------------------------------------------------- */

static void expect_datagram(struct net *n, const char *family,
			    const struct op *op)
{
	bool imm = op->opcode == IBV_WR_SEND_WITH_IMM;

	begin(n, family, &n->a, OF_UD | (imm ? SEND_ONLY_IMM : SEND_ONLY),
	      n->psn++, op->flags & IBV_SEND_SOLICITED);
	fprintf(n->out, " deth.qkey=%u deth.source=%u", UD_QKEY,
		n->a.qp->qp_num);
	if (imm)
		fprintf(n->out, " imm=%u", op->imm);
	finish(n, op->laddr, op->len);
}

static void run_datagram(struct net *n, const char *family,
			 enum ibv_wr_opcode wr, uint32_t len, unsigned int i)
{
	struct op op = {
		.opcode = wr, .laddr = n->mine.p, .len = len,
		.lkey = n->mine.mr->lkey, .imm = 0xf1020304 + i,
		.flags = i % 2 ? IBV_SEND_SOLICITED : 0,
	};

	fill(n->mine.p, len, i);
	OK(post_recv(&n->b, i, n->theirs.p, SIZE / 2, n->theirs.mr->lkey));
	expect_datagram(n, family, &op);
	OK(post(&n->a, &op));
	EXPECT_WC(n->a.scq, 0, IBV_WC_SUCCESS);
	receive(n, len + UD_GRH, op.imm, wr == IBV_WR_SEND_WITH_IMM);
}

static void datagrams(const void *arg)
{
	unsigned int i;
	struct net n;

	(void)arg;
	net_new(&n, UD);
	for (i = 0; i < ARRAY_SIZE(ud_lengths); i++) {
		run_datagram(&n, "ud-send", IBV_WR_SEND, ud_lengths[i], i);
		run_datagram(&n, "ud-send-imm", IBV_WR_SEND_WITH_IMM,
			     ud_lengths[i], i);
	}
	net_free(&n);
}

/* IBA 10.2.5: with the highest bit set the Q_Key of the QP is taken. */
static void qkey_of_qp(const void *arg)
{
	struct ibv_sge sge = { .length = 6 };
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct op op = { .opcode = IBV_WR_SEND, .len = 6 };
	struct net n;

	(void)arg;
	net_new(&n, UD);
	fill(n.mine.p, 6, 6);
	op.laddr = n.mine.p;
	sge.addr = (uintptr_t)n.mine.p;
	sge.lkey = n.mine.mr->lkey;
	wr.wr.ud.ah = n.a.ah;
	wr.wr.ud.remote_qpn = n.b.qp->qp_num;
	wr.wr.ud.remote_qkey = 0x80000000;
	OK(post_recv(&n.b, 1, n.theirs.p, SIZE, n.theirs.mr->lkey));
	expect_datagram(&n, "ud-send-qkey", &op);
	OK(ibv_post_send(n.a.qp, &wr, &bad));
	EXPECT_WC(n.a.scq, 0, IBV_WC_SUCCESS);
	receive(&n, 6 + UD_GRH, 0, false);
	net_free(&n);
}

static void wait_seen(unsigned int count)
{
	uint64_t end = t_now() + t_patience();

	while (cable_seen(-1) < count && t_now() < end)
		t_sleep(1);
	CHECK_EQ(cable_seen(-1), count);
}

/* Whoever has joined it: the packets pass the cable. */
static void to_group(const void *arg)
{
	union ibv_gid group;
	unsigned int i;
	struct net n;

	(void)arg;
	net_new(&n, UD);
	group = parse(is_ipv4(&n.ca->gid) ? "239.129.131.5" :
					    "ff0e::4d52:8183:485");
	OK(ibv_destroy_ah(n.a.ah));
	n.a.ah = ibv_create_ah(n.ca->pd, &(struct ibv_ah_attr){
		.is_global = 1, .port_num = 1,
		.grh = {
			.dgid = group, .sgid_index = n.ca->gid_index,
			.hop_limit = n.ca->hop_limit,
			.traffic_class = n.ca->traffic_class,
			.flow_label = n.ca->flow_label,
		},
	});
	CHECK(n.a.ah);
	n.a.peer_qpn = MULTICAST_QPN;
	n.group = &group;
	for (i = 0; i < ARRAY_SIZE(ud_lengths); i++) {
		struct op op = {
			.opcode = i % 2 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM,
			.laddr = n.mine.p, .len = ud_lengths[i], .imm = i,
			.lkey = n.mine.mr->lkey,
		};

		fill(n.mine.p, ud_lengths[i], i);
		expect_datagram(&n, "ud-multicast", &op);
		OK(post(&n.a, &op));
		EXPECT_WC(n.a.scq, 0, IBV_WC_SUCCESS);
	}
	wait_seen(ARRAY_SIZE(ud_lengths));
	net_free(&n);
}

/* --- addresses ------------------------------------------------------------ */

struct path {
	uint8_t traffic_class, hop_limit;
	uint32_t flow_label;
};

/* Without a flow label the source port comes of the QP numbers. */
static const struct path paths[] = {
	{ 0x00, 64, 0x00000 },
	{ 0xff, 255, 0xfffff },
	{ 0xe0, 1, 0x00001 },
	{ 0x01, 2, 0xfc000 },
	{ 0x04, 128, 0x03fff },
	{ 0x02, 77, 0x80000 },
	{ 0xfc, 64, 0x00000 },
};

static void set_path(struct ctx *c, const struct path *p)
{
	c->traffic_class = p->traffic_class;
	c->hop_limit = p->hop_limit;
	c->flow_label = p->flow_label;
}

/* Some packets of each service to each address, answers included. */
static void addresses(const void *arg)
{
	const struct message *m = arg;
	struct conf conf = patient(m ? m->first & OF_UC ? UC : RC : UD);
	const size_t last = ARRAY_SIZE(paths) - 1;
	struct net n;
	size_t i;

	net_open(&n);
	for (i = 0; i <= last; i++) {
		struct message path = m ? *m : rc_send;
		char family[40];

		set_path(n.ca, &paths[i]);
		set_path(n.cb, &paths[last - i]);
		net_connect(&n, &conf);
		n.psn = FIRST_PSN;
		n.msn = 0;
		snprintf(family, sizeof(family), "%s-path",
			 m ? m->family : "ud-send");
		path.family = family;
		if (m)
			run_message(&n, &path, 1001 + i, 0, i);
		else
			run_datagram(&n, family, IBV_WR_SEND, 1001 + i, i);
		pair_free(&n.a, &n.b);
	}
	net_close(&n);
}

static const struct t_case cases[] = {
	{ "rc_send", messages, &rc_send, 0 },
	{ "rc_send_imm", messages, &rc_send_imm, 0 },
	{ "rc_send_inv", send_inv, &rc_send_inv, 0 },
	{ "rc_write", messages, &rc_write, 0 },
	{ "rc_write_imm", messages, &rc_write_imm, 0 },
	{ "rc_read", reads, NULL, 0 },
	{ "rc_atomic", atomics, NULL, 0 },
	{ "rc_atomic_write", atomic_writes, NULL, 0 },
	{ "rc_rnr_nak", not_ready, NULL, 0 },
	{ "rc_nak_invalid_request", refused, &invalid_request, 0 },
	{ "rc_nak_remote_access", refused, &remote_access, 0 },
	{ "rc_nak_remote_operation", refused, &remote_operation, 0 },
	{ "rc_nak_sequence", sequence, NULL, 0 },
	{ "uc_send", messages, &uc_send, 0 },
	{ "uc_send_imm", messages, &uc_send_imm, 0 },
	{ "uc_write", messages, &uc_write, 0 },
	{ "uc_write_imm", messages, &uc_write_imm, 0 },
	{ "ud_send", datagrams, NULL, 0 },
	{ "ud_qkey_of_qp", qkey_of_qp, NULL, 0 },
	{ "ud_multicast", to_group, NULL, 0 },
	{ "rc_paths", addresses, &rc_send, 0 },
	{ "uc_paths", addresses, &uc_send, 0 },
	{ "ud_paths", addresses, NULL, 0 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
