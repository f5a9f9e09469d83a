// SPDX-License-Identifier: GPL-2.0
/*
 * peer.c - a peer made of a packet socket; see peer.h
 *
 * Spec: IBA Vol 1, 5.2, 7.8 (ICRC), 9.2; Annex A17.3
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include "peer.h"
#include "raw.h"

#define UDP_PORT 4791
#define RQ_PSN 0xfffff8u	/* wraps soon */

static const uint8_t dev_mac[6] = { 2, 0, 0, 0, 0x78, 1 };
static const uint8_t tap_mac[6] = { 2, 0, 0, 0, 0x78, 2 };
static const uint8_t dev_ip4[4] = { 10, 78, 0, 1 };
static const uint8_t tap_ip4[4] = { 10, 78, 0, 2 };
static const uint8_t dev_ip6[16] = { 0xfd, 0x78, [15] = 1 };
static const uint8_t tap_ip6[16] = { 0xfd, 0x78, [15] = 2 };

/* --- bytes ---------------------------------------------------------------- */

void put16(uint8_t *to, uint16_t v)
{
	to[0] = v >> 8;
	to[1] = v;
}

void put32(uint8_t *to, uint32_t v)
{
	put16(to, v >> 16);
	put16(to + 2, v);
}

static void put64(uint8_t *to, uint64_t v)
{
	put32(to, v >> 32);
	put32(to + 4, v);
}

static uint16_t get16(const uint8_t *from)
{
	return from[0] << 8 | from[1];
}

uint32_t get32(const uint8_t *from)
{
	return (uint32_t)get16(from) << 16 | get16(from + 2);
}

void put_reth(uint8_t *to, uint64_t va, uint32_t rkey, uint32_t len)
{
	put64(to, va);
	put32(to + 8, rkey);
	put32(to + 12, len);
}

void put_flush(uint8_t *to, uint8_t type, uint8_t level, uint64_t va,
	       uint32_t rkey, uint32_t len)
{
	put32(to, level << 4 | type);
	put_reth(to + 4, va, rkey, len);
}

void put_atomic(uint8_t *to, uint64_t va, uint32_t rkey, uint64_t swap_add,
		uint64_t compare)
{
	put64(to, va);
	put32(to + 8, rkey);
	put64(to + 12, swap_add);
	put64(to + 20, compare);
}

size_t ext_of(const struct peer *p, uint8_t *ext, uint8_t opcode, uint64_t va,
	      uint32_t rkey, uint32_t len)
{
	memset(ext, 0, 28);
	if (p->k->type == UD) {
		put32(ext, UD_QKEY);
		put32(ext + 4, PEER_QPN);
		return opcode == 0x05 ? 12 : 8;
	}
	switch (opcode) {
	case 0x03:
	case 0x05:
	case 0x09:
		return 4;
	case 0x16:
	case 0x17:
		put32(ext, rkey);
		return 4;
	case 0x0d:
	case 0x0f ... 0x11:
		ext[0] = 0x1f;
		return 4;
	case 0x12:
		ext[0] = 0x1f;
		return 12;
	case 0x13:
	case 0x14:
		put_atomic(ext, va, rkey, 1, 0);
		return 28;
	case FLUSH:
		put_flush(ext, 1, 0, va, rkey, len);
		return 20;
	case 0x06:
	case 0x0a:
	case 0x0b:
	case 0x0c:
	case 0x1d:
		put_reth(ext, va, rkey, len);
		return opcode == 0x0b ? 20 : 16;
	default:
		return 0;
	}
}

/* --- packets -------------------------------------------------------------- */

static uint32_t crc32(uint32_t crc, const uint8_t *p, size_t n)
{
	static uint32_t table[256];
	uint32_t i, k;

	if (!table[1]) {
		for (i = 0; i < 256; i++) {
			table[i] = i;
			for (k = 0; k < 8; k++)
				table[i] = table[i] >> 1 ^
					   (table[i] & 1 ? 0xedb88320 : 0);
		}
	}
	while (n--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return crc;
}

/* Over @len bytes of the frame less four; what may change on the way is ones. */
static uint32_t icrc(const struct frame *f, size_t len)
{
	static const uint8_t ones[8] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	};
	uint8_t b[FRAME_MAX];

	memcpy(b, f->b, len);
	if (f->ipv6) {
		b[f->net] |= 0x0f;
		memset(b + f->net + 1, 0xff, 3);
		b[f->net + 7] = 0xff;
	} else {
		b[f->net + 1] = 0xff;
		b[f->net + 8] = 0xff;
		memset(b + f->net + 10, 0xff, 2);
	}
	memset(b + f->udp + 6, 0xff, 2);
	b[f->bth + 4] = 0xff;
	return ~crc32(crc32(~0u, ones, 8), b + f->net, len - 4 - f->net);
}

void put_icrc(struct frame *f, size_t len)
{
	uint32_t crc;

	if (len < f->bth + 16)
		return;
	crc = icrc(f, len);
	/* the lowest byte first, unlike all else */
	put32(f->b + len - 4, __builtin_bswap32(crc));
}

void seal_ip(struct frame *f)
{
	uint8_t *ip = f->b + f->net;
	uint32_t sum = 0;
	int i;

	if (f->ipv6) {
		put16(ip + 4, f->len - f->net - 40);
		return;
	}
	put16(ip + 2, f->len - f->net);
	put16(ip + 10, 0);
	for (i = 0; i < (ip[0] & 15) * 4; i += 2)
		sum += get16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 10, ~(sum + (sum >> 16)));
}

void seal(struct frame *f)
{
	put16(f->b + f->udp + 4, f->len - f->udp);
	seal_ip(f);
	put_icrc(f, f->len);
}

static void frame_ip(const struct peer *p, struct frame *f)
{
	uint8_t *ip = f->b + 14;

	memcpy(f->b, dev_mac, 6);
	memcpy(f->b + 6, tap_mac, 6);
	f->net = 14;
	f->ipv6 = p->k->ipv6;
	if (f->ipv6) {
		put16(f->b + 12, ETHERTYPE_IPV6);
		ip[0] = 0x60;
		ip[6] = IPPROTO_UDP;
		ip[7] = 64;
		memcpy(ip + 8, tap_ip6, 16);
		memcpy(ip + 24, dev_ip6, 16);
		f->udp = 14 + 40;
	} else {
		put16(f->b + 12, ETHERTYPE_IP);
		ip[0] = 0x45;
		put16(ip + 4, 0x1234);
		ip[8] = 64;
		ip[9] = IPPROTO_UDP;
		memcpy(ip + 12, tap_ip4, 4);
		memcpy(ip + 16, dev_ip4, 4);
		f->udp = 14 + 20;
	}
	put16(f->b + f->udp, 0xc123);
	put16(f->b + f->udp + 2, UDP_PORT);
	f->bth = f->udp + 8;
}

void frame(const struct peer *p, struct frame *f, uint8_t opcode, uint32_t psn,
	   const void *ext, size_t n, const void *payload, size_t len)
{
	uint8_t *bth;

	memset(f, 0, sizeof(*f));
	frame_ip(p, f);
	bth = f->b + f->bth;
	bth[0] = opcode;
	bth[1] = 0x40 | (-len & 3) << 4;
	put16(bth + 2, 0xffff);
	put32(bth + 4, p->e.qp->qp_num);
	put32(bth + 8, psn);
	if (n)
		memcpy(bth + 12, ext, n);
	if (len)
		memcpy(bth + 12 + n, payload, len);
	f->len = f->bth + 12 + n + len + (-len & 3) + 4;
	seal(f);
}

void frame_of_send(const struct peer *p, struct frame *f, const void *payload,
		   size_t len)
{
	uint8_t ext[28];
	size_t n = ext_of(p, ext, SEND_ONLY, 0, 0, 0);

	frame(p, f, SEND_ONLY + service(p),
	      p->psn | (p->k->type == RC ? ACK_REQ : 0), ext, n, payload, len);
}

void frame_send(const struct peer *p, const struct frame *f)
{
	CHECK_EQ(send(p->sock, f->b, f->len, 0), f->len);
}

void say(const struct peer *p, uint8_t opcode, uint32_t psn, const void *ext,
	 size_t n, const void *payload, size_t len)
{
	struct frame f;

	frame(p, &f, opcode, psn, ext, n, payload, len);
	frame_send(p, &f);
}

void say_answer(struct peer *p, uint8_t opcode, uint32_t psn,
		uint8_t syndrome, const void *bytes, size_t n)
{
	uint8_t ext[12] = { syndrome };
	size_t len = 4;

	if (opcode == 0x0e)
		len = 0;
	if (opcode == ATOMIC_ACKNOWLEDGE) {
		len = 12;
		memset(ext + 4, 0x5a, 8);
	}
	say(p, opcode, psn, ext, len, bytes, n);
}

void say_send(struct peer *p, const void *payload, size_t len)
{
	struct frame f;

	frame_of_send(p, &f, payload, len);
	frame_send(p, &f);
	p->psn = next_psn(p->psn);
}

/* --- what comes back ------------------------------------------------------ */

static void parse(const struct peer *p, const struct frame *f, struct answer *a)
{
	const uint8_t *bth = f->b + f->bth, *at = bth + 12;

	a->opcode = bth[0];
	a->psn = get32(bth + 8) & 0xffffff;
	CHECK_EQ(bth[1] & 0x0f, 0);
	CHECK_EQ(get16(bth + 2), 0xffff);
	CHECK_EQ(get32(bth + 4), PEER_QPN);
	if (p->k->type == UD) {
		at += 8;
	} else if (a->opcode == 0x0d || (a->opcode >= 0x0f && a->opcode <= 0x12)) {
		a->syndrome = at[0];
		a->msn = get32(at) & 0xffffff;
		at += 4;
	}
	if (a->opcode == ATOMIC_ACKNOWLEDGE) {
		a->old = (uint64_t)get32(at) << 32 | get32(at + 4);
		at += 8;
	}
	a->length = f->b + f->len - 4 - (bth[1] >> 4 & 3) - at;
	memcpy(a->payload, at, a->length);
}

/* Of RoCEv2, from the device; then its lengths and sums are right. */
static bool is_ours(struct frame *f)
{
	size_t len;

	f->net = 14;
	f->ipv6 = get16(f->b + 12) == ETHERTYPE_IPV6;
	if (!f->ipv6 && get16(f->b + 12) != ETHERTYPE_IP)
		return false;
	f->udp = f->ipv6 ? 54 : 34;
	f->bth = f->udp + 8;
	if (f->len < f->bth + 16 ||
	    f->b[f->net + (f->ipv6 ? 6 : 9)] != IPPROTO_UDP ||
	    get16(f->b + f->udp + 2) != UDP_PORT)
		return false;
	len = f->udp + get16(f->b + f->udp + 4);
	CHECK(len <= f->len);
	f->len = len;
	CHECK_EQ(__builtin_bswap32(get32(f->b + len - 4)), icrc(f, len));
	return true;
}

bool hear(struct peer *p, struct answer *a, unsigned int ms)
{
	uint64_t limit = t_now() + ms;
	struct frame f;

	for (;;) {
		struct pollfd pfd = { .fd = p->sock, .events = POLLIN };
		struct sockaddr_ll from;
		socklen_t size = sizeof(from);
		uint64_t now = t_now();
		ssize_t n;

		if (poll(&pfd, 1, now < limit ? limit - now : 0) != 1)
			return false;
		n = recvfrom(p->sock, f.b, sizeof(f.b), 0,
			     (struct sockaddr *)&from, &size);
		CHECK(n >= 0);
		f.len = n;
		if (from.sll_pkttype == PACKET_OUTGOING || !is_ours(&f))
			continue;
		memset(a, 0, offsetof(struct answer, payload));
		parse(p, &f, a);
		return true;
	}
}

static bool is_answer(const struct peer *p, const struct answer *a)
{
	return p->k->type == RC && a->opcode >= 0x0d && a->opcode <= 0x12;
}

static void note_now(const struct peer *p)
{
	if (p->now)
		t_note("in: %s", p->now);
}

struct answer next_answer(struct peer *p)
{
	struct answer a;

	do {
		if (hear(p, &a, t_patience()))
			continue;
		note_now(p);
		t_fail(__FILE__, __LINE__, "no answer; the QP is in %s",
		       state_name(end_state(&p->e)));
	} while (!is_answer(p, &a));
	return a;
}

void expect_aeth(struct peer *p, uint32_t psn, uint8_t syndrome)
{
	struct answer a = next_answer(p);

	psn &= 0xffffff;
	if (a.opcode == ACKNOWLEDGE && a.syndrome == syndrome && a.psn == psn)
		return;
	note_now(p);
	t_fail(__FILE__, __LINE__,
	       "opcode %#x, syndrome %#x, PSN %#x, not ACK with %#x, %#x",
	       a.opcode, a.syndrome, a.psn, syndrome, psn);
}

void expect_ack(struct peer *p, uint32_t psn)
{
	expect_aeth(p, psn, 0x1f);
}

void expect_nak(struct peer *p, uint32_t psn, uint8_t code,
		enum ibv_event_type event)
{
	expect_aeth(p, psn, 0x60 | code);
	expect_state(&p->e, IBV_QPS_ERR);
	if (event)
		EXPECT_EVENT(p->c, event, p->e.qp);
}

void expect_request(struct peer *p, uint8_t opcode, uint32_t psn)
{
	struct answer a;

	CHECK(hear(p, &a, t_patience()));
	CHECK_EQ(a.opcode, opcode);
	CHECK_EQ(a.psn, psn);
}

void expect_silence(struct peer *p, const char *what)
{
	struct answer a;

	while (hear(p, &a, 0)) {
		if (is_answer(p, &a))
			t_fail(__FILE__, __LINE__,
			       "%s: answered by opcode %#x, syndrome %#x, PSN %#x",
			       what, a.opcode, a.syndrome, a.psn);
	}
}

void works(struct peer *p)
{
	static unsigned int turn;
	uint8_t bytes[24];
	struct ibv_wc wc;

	turn++;
	fill(bytes, sizeof(bytes), turn);
	memset(p->scratch.p, 0xee, 128);
	OK(post_recv(&p->e, turn, p->scratch.p, 128, p->scratch.mr->lkey));
	say_send(p, bytes, sizeof(bytes));
	if (!wait_wc(p->e.rcq, &wc, t_patience())) {
		note_now(p);
		t_fail(__FILE__, __LINE__, "a SEND was lost; the QP is in %s",
		       state_name(end_state(&p->e)));
	}
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, turn);
	CHECK_EQ(wc.byte_len, sizeof(bytes) + GRH(p));
	CHECK_EQ(filled(p->scratch.p + GRH(p), sizeof(bytes), turn), -1);
	if (p->k->type == RC)
		expect_ack(p, p->psn - 1);
}

void sends(struct peer *p)
{
	uint8_t ext[4] = { 0x1f };

	OK(post(&p->e, &(struct op){
		.opcode = IBV_WR_SEND, .wr_id = 0x5e4d, .laddr = p->scratch.p,
		.len = 24, .lkey = p->scratch.mr->lkey }));
	expect_request(p, SEND_ONLY + service(p), p->sq_psn);
	if (p->k->type == RC)
		say(p, ACKNOWLEDGE, p->sq_psn, ext, 4, NULL, 0);
	EXPECT_WC(p->e.scq, 0x5e4d, IBV_WC_SUCCESS);
	p->sq_psn = next_psn(p->sq_psn);
}

/* --- counters ------------------------------------------------------------- */

/* enum mrsoft_reason */
static const char *const reasons[] = {
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

/* Kept open: there are many, and they are read often. */
static int open_count(enum mrsoft_reason reason)
{
	static int fds[ARRAY_SIZE(reasons)];
	char path[128];

	if (!fds[reason]) {
		snprintf(path, sizeof(path),
			 "/sys/class/infiniband/%s/ports/1/hw_counters/refused_%s",
			 ctx_first(), reasons[reason]);
		fds[reason] = open(path, O_RDONLY | O_CLOEXEC);
		CHECK(fds[reason] > 0);
	}
	return fds[reason];
}

static uint64_t count(enum mrsoft_reason reason)
{
	char text[32];
	ssize_t n = pread(open_count(reason), text, sizeof(text) - 1, 0);

	CHECK(n > 0);
	text[n] = 0;
	return strtoull(text, NULL, 10);
}

void read_counts(struct counts *c)
{
	size_t i;

	c->v[0] = 0;
	for (i = 1; i < ARRAY_SIZE(reasons); i++)
		c->v[i] = count(i);
}

void expect_counts(const struct counts *before, enum mrsoft_reason reason,
		   const char *what)
{
	uint64_t limit = t_now() + t_patience() / 4;
	struct counts now;
	size_t i;

	while (reason && count(reason) == before->v[reason] && t_now() < limit)
		t_sleep(1);
	read_counts(&now);
	for (i = 1; i < ARRAY_SIZE(reasons); i++) {
		uint64_t want = before->v[i] + (i == reason);

		if (now.v[i] != want && i != MRSOFT_R_FLUSHED)
			t_fail(__FILE__, __LINE__,
			       "%s: refused_%s is %llu, not %llu", what,
			       reasons[i], (unsigned long long)now.v[i],
			       (unsigned long long)want);
	}
}

/* --- start and end -------------------------------------------------------- */

static int open_socket(void)
{
	const char *name = getenv("MRSOFT_TAP");
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
	};
	int sock = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)), size = 1 << 22;

	CHECK(sock >= 0);
	setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	at.sll_ifindex = if_nametoindex(name ? name : "tap0");
	CHECK(at.sll_ifindex);
	CHECK(!bind(sock, (struct sockaddr *)&at, sizeof(at)));
	return sock;
}

static union ibv_gid gid_of(bool ipv6, const uint8_t *ip4, const uint8_t *ip6)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, 0xff } };

	if (ipv6)
		memcpy(gid.raw, ip6, 16);
	else
		memcpy(gid.raw + 12, ip4, 4);
	return gid;
}

static void find_gid(struct ctx *c, bool ipv6)
{
	struct ibv_gid_entry entry;
	int i;

	c->gid = gid_of(ipv6, dev_ip4, dev_ip6);
	for (i = 0; i < 64; i++) {
		if (ibv_query_gid_ex(c->ibv, 1, i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    memcmp(&entry.gid, &c->gid, sizeof(c->gid)))
			continue;
		c->gid_index = i;
		return;
	}
	t_fail(__FILE__, __LINE__, "the device does not have the address");
}

static void connect_peer(struct peer *p)
{
	struct addr peer = {
		.gid = gid_of(p->k->ipv6, tap_ip4, tap_ip6),
		.qpn = PEER_QPN,
		.psn = RQ_PSN,
	};

	end_connect(&p->e, &peer);
	p->psn = RQ_PSN;
	p->sq_psn = p->e.conf.psn;
	p->posted = 0;
	p->received = 0;
}

struct peer *peer_new(const struct kind *k)
{
	struct peer *p = calloc(1, sizeof(*p));
	struct conf conf = conf_of(k->type);

	CHECK(p);
	p->k = k;
	p->sock = open_socket();
	p->c = ctx_open(NULL);
	p->c->mtu = IBV_MTU_1024;
	find_gid(p->c, k->ipv6);
	p->can_flush = device_caps(p->c) & DEVICE_FLUSH_GLOBAL;
	p->buf = buf_new(p->c->pd, SIZE, REMOTE_ALL |
			 (p->can_flush ? ACCESS_FLUSH_GLOBAL : 0));
	p->scratch = buf_new(p->c->pd, 4 * KiB, IBV_ACCESS_LOCAL_WRITE);
	/* this peer may take its time */
	conf.timeout = 18;
	conf.retry_cnt = 7;
	conf.access |= ACCESS_FLUSH_GLOBAL;
	p->e = end_new(p->c, &conf);
	connect_peer(p);
	return p;
}

static void drop_wcs(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) > 0)
		;
}

void peer_again(struct peer *p)
{
	struct answer a;

	OK(end_to(&p->e, IBV_QPS_RESET));
	drop_wcs(p->e.scq);
	drop_wcs(p->e.rcq);
	while (hear(p, &a, 0))
		;
	connect_peer(p);
}

void peer_free(struct peer *p)
{
	end_free(&p->e);
	buf_free(&p->buf);
	buf_free(&p->scratch);
	ctx_close(p->c);
	close(p->sock);
	free(p);
}
