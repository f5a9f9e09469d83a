// SPDX-License-Identifier: GPL-2.0
/*
 * mad.c - performance management: questions to a port, by umad and by a QP
 *
 * Environment: MRSOFT_DEV asks; MRSOFT_DEV2 is asked, which may be the same; MAD_GID
 * and MAD_INDEX: its GID, and the index of the one it is asked from.  They are IPv6
 * addresses: ib_mad matches an answer by the GIDs of the 40 bytes in front of it,
 * where an IPv4 header is none, and so never finds the question.
 *
 * Spec: IBA Vol 1, 13.4 (MADs), 16.1 (performance management)
 */
#include <arpa/inet.h>
#include <poll.h>

#include "umad.h"

#define CLASS_PORT_INFO	0x0001
#define PORT_COUNTERS	0x0012
#define PORT_EXTENDED	0x001d
#define GRH 40

static union ibv_gid peer_gid(void)
{
	const char *address = getenv("MAD_GID");
	union ibv_gid gid;

	CHECK(address);
	CHECK_EQ(inet_pton(AF_INET6, address, &gid), 1);
	return gid;
}

static int peer_index(void)
{
	CHECK(getenv("MAD_INDEX"));
	return atoi(getenv("MAD_INDEX"));
}

/* --- asking ----------------------------------------------------------------- */

static int fd = -1, agent;
static uint32_t last_tid;

static void start(void)
{
	fd = umad_open(getenv("MRSOFT_DEV"));
	CHECK(fd >= 0);
	agent = umad_agent(fd, MAD_PERF, 1);
	CHECK(agent >= 0);
}

static void question(struct umad_packet *p, uint8_t method, uint16_t attr)
{
	union ibv_gid gid = peer_gid();

	umad_address(p, agent, &gid, peer_index());
	p->hdr.timeout_ms = 500;
	p->hdr.retries = 20;
	fill(p->mad, MAD_BYTES, attr + method);
	p->mad[0] = 1;
	p->mad[MAD_CLASS] = MAD_PERF;
	p->mad[MAD_CLASS_VERSION] = 1;
	p->mad[MAD_METHOD] = method;
	be_put(p->mad + MAD_STATUS, 2, 0);
	be_put(p->mad + MAD_TID, 8, ++last_tid);
	be_put(p->mad + MAD_ATTR, 2, attr);
	be_put(p->mad + MAD_MODIFIER, 4, 0);
	p->mad[MAD_DATA + 1] = 1;
}

/* False: nobody answered. */
static bool ask(struct umad_packet *p, struct umad_packet *answer)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	CHECK_EQ(write(fd, p, sizeof(*p)), sizeof(*p));
	CHECK_EQ(poll(&poll_fd, 1, 60000), 1);
	CHECK(read(fd, answer, sizeof(*answer)) > 0);
	CHECK_EQ(be_get(answer->mad + MAD_TID + 4, 4), last_tid);
	if (answer->hdr.status == ETIMEDOUT)
		return false;
	CHECK_EQ(answer->hdr.status, 0);
	CHECK_EQ(answer->hdr.length, sizeof(*answer));
	CHECK_EQ(ntohl(answer->hdr.qpn), 1);
	CHECK_EQ(memcmp(answer->hdr.gid, p->hdr.gid, 16), 0);
	return true;
}

static void expect_status(struct umad_packet *p, struct umad_packet *answer,
			  uint16_t status)
{
	CHECK(ask(p, answer));
	CHECK_EQ(answer->mad[MAD_METHOD], MAD_GET_RESP);
	CHECK_EQ(be_get(answer->mad + MAD_STATUS, 2), status);
	CHECK_EQ(memcmp(answer->mad, p->mad, MAD_METHOD), 0);
	CHECK_EQ(memcmp(answer->mad + MAD_ATTR, p->mad + MAD_ATTR,
			MAD_DATA - MAD_ATTR), 0);
}

/* As it was asked, but for method, status and what umad does to the TID. */
static void expect_refusal(struct umad_packet *p, uint16_t status)
{
	struct umad_packet answer;

	expect_status(p, &answer, status);
	CHECK_EQ(memcmp(answer.mad + MAD_DATA, p->mad + MAD_DATA,
			MAD_BYTES - MAD_DATA), 0);
}

static struct umad_packet get(uint16_t attr)
{
	struct umad_packet p, answer;

	question(&p, MAD_GET, attr);
	expect_status(&p, &answer, 0);
	return answer;
}

static uint64_t at(const struct umad_packet *p, unsigned int offset,
		   unsigned int bytes)
{
	return be_get(p->mad + MAD_DATA + offset, bytes);
}

/* A file of the port that is asked. */
static uint64_t port_file(const char *file)
{
	unsigned long long value;
	char name[160];
	FILE *f;

	snprintf(name, sizeof(name), "/sys/class/infiniband/%s/ports/1/%s",
		 getenv("MRSOFT_DEV2"), file);
	f = fopen(name, "r");
	CHECK(f);
	CHECK_EQ(fscanf(f, "%llu", &value), 1);
	fclose(f);
	return value;
}

/* The core keeps statistics for 10 ms. */
static uint64_t hw(const char *counter)
{
	char file[80];

	t_sleep(30);
	snprintf(file, sizeof(file), "hw_counters/%s", counter);
	return port_file(file);
}

/* --- cases ------------------------------------------------------------------ */

static void class_port_info(const void *arg)
{
	struct umad_packet p;

	(void)arg;
	start();
	p = get(CLASS_PORT_INFO);
	CHECK_EQ(at(&p, 0, 1), 1);
	CHECK_EQ(at(&p, 1, 1), 1);
	CHECK_EQ(at(&p, 2, 2), 1 << 8 | 1 << 10);
	CHECK_EQ(only(p.mad + MAD_DATA + 8, 64, 0), -1);
}

/* Bytes and packets that the asked port sends and receives. */
static void traffic(void)
{
	struct ctx *c = ctx_open(getenv("MRSOFT_DEV2"));
	struct conf conf = conf_of(RC);
	struct buf buf = buf_new(c->pd, 64 * KiB, MR_ALL);
	struct end a, b;

	pair_new(c, &conf, &a, &b);
	DO(&a, .opcode = IBV_WR_RDMA_WRITE, .laddr = buf.p, .len = 20001,
	   .lkey = buf.mr->lkey, .raddr = (uintptr_t)buf.p + 32768,
	   .rkey = buf.mr->rkey);
	DO(&a, .opcode = IBV_WR_RDMA_READ, .laddr = buf.p, .len = 4000,
	   .lkey = buf.mr->lkey, .raddr = (uintptr_t)buf.p + 32768,
	   .rkey = buf.mr->rkey);
	pair_free(&a, &b);
	buf_free(&buf);
	ctx_close(c);
}

static const struct shown {
	uint16_t attr;
	uint16_t select;
	unsigned int offset, bytes, unit;
	const char *hw, *file;
} shown[] = {
	{ PORT_COUNTERS, 0x1000, 24, 4, 4, "tx_bytes", "port_xmit_data" },
	{ PORT_COUNTERS, 0x2000, 28, 4, 4, "rx_bytes", "port_rcv_data" },
	{ PORT_COUNTERS, 0x4000, 32, 4, 1, "tx_packets", "port_xmit_packets" },
	{ PORT_COUNTERS, 0x8000, 36, 4, 1, "rx_packets", "port_rcv_packets" },
	{ PORT_EXTENDED, 0x0001, 8, 8, 4, "tx_bytes", "port_xmit_data" },
	{ PORT_EXTENDED, 0x0002, 16, 8, 4, "rx_bytes", "port_rcv_data" },
	{ PORT_EXTENDED, 0x0004, 24, 8, 1, "tx_packets", "port_xmit_packets" },
	{ PORT_EXTENDED, 0x0008, 32, 8, 1, "rx_packets", "port_rcv_packets" },
};

static void between(const char *what, uint64_t low, uint64_t value,
		    uint64_t high)
{
	t_note("%s: %llu, %llu, %llu", what, (unsigned long long)low,
	       (unsigned long long)value, (unsigned long long)high);
	CHECK(low <= value);
	CHECK(value <= high);
}

/* Before a counter is cleared it is the statistic, in sysfs as well. */
static void agree(const void *arg)
{
	uint64_t before, value, file, after, rx, tx;
	const struct shown *s;
	struct umad_packet p;

	(void)arg;
	start();
	rx = hw("rx_bytes");
	tx = hw("tx_bytes");
	traffic();
	CHECK(hw("rx_bytes") - rx >= 24001);
	CHECK(hw("tx_bytes") - tx >= 24001);
	for (s = shown; s < shown + ARRAY_SIZE(shown); s++) {
		before = hw(s->hw);
		p = get(s->attr);
		value = at(&p, s->offset, s->bytes);
		after = hw(s->hw);
		between(s->hw, before / s->unit, value, after / s->unit);
		if (s->attr != PORT_EXTENDED)
			continue;
		char name[80];

		snprintf(name, sizeof(name), "counters/%s", s->file);
		file = port_file(name);
		between(s->file, value, file, hw(s->hw) / s->unit);
	}
}

/* The selected counter starts again; the others and the statistics go on. */
static void set(const void *arg)
{
	const struct shown *s;

	(void)arg;
	start();
	for (s = shown; s < shown + ARRAY_SIZE(shown); s++) {
		const struct shown *other = s->select & 0x5005 ? s + 1 : s - 1;
		struct umad_packet p, answer;
		uint64_t stat, was;

		traffic();
		p = get(other->attr);
		was = at(&p, other->offset, other->bytes);
		stat = hw(s->hw);
		question(&p, MAD_SET, s->attr);
		be_put(p.mad + MAD_DATA + 2, 2, s->select);
		expect_status(&p, &answer, 0);
		CHECK_EQ(at(&answer, s->offset, s->bytes), 0);
		CHECK(at(&answer, other->offset, other->bytes) >= was);
		CHECK(hw(s->hw) >= stat);
		traffic();
		p = get(s->attr);
		was = at(&p, s->offset, s->bytes);
		CHECK(was > 0);
		CHECK(was <= (hw(s->hw) - stat) / s->unit + 1);
	}
}

static void refusals(const void *arg)
{
	struct umad_packet p;

	(void)arg;
	start();
	question(&p, MAD_GET, PORT_COUNTERS);
	p.mad[MAD_CLASS_VERSION] = 2;
	expect_refusal(&p, 0x0004);
	question(&p, 0x12, PORT_COUNTERS);
	expect_refusal(&p, 0x0008);
	question(&p, MAD_GET, 0x4242);
	expect_refusal(&p, 0x000c);
	question(&p, MAD_SET, CLASS_PORT_INFO);
	expect_refusal(&p, 0x000c);
	question(&p, MAD_GET, PORT_COUNTERS);
	p.mad[MAD_DATA + 1] = 2;
	expect_refusal(&p, 0x001c);
	question(&p, MAD_SET, PORT_EXTENDED);
	p.mad[MAD_DATA + 1] = 0;
	expect_refusal(&p, 0x001c);
	question(&p, MAD_GET, PORT_COUNTERS);
	be_put(p.mad + MAD_MODIFIER, 4, 1);
	expect_refusal(&p, 0x001c);
}

/* Another class, which has no agent: the core says so. */
static void other_class(const void *arg)
{
	struct umad_packet p;

	(void)arg;
	start();
	question(&p, MAD_GET, CLASS_PORT_INFO);
	p.mad[MAD_CLASS] = 0x06;
	expect_refusal(&p, 0x000c);
}

/* What has no answer has none: Trap. */
static void trap(const void *arg)
{
	struct umad_packet p, answer;

	(void)arg;
	start();
	question(&p, 0x05, 0x0002);
	p.hdr.timeout_ms = 200;
	p.hdr.retries = 1;
	CHECK(!ask(&p, &answer));
}

/* --- QP 1 and a QP of a user ------------------------------------------------- */

struct asker {
	struct ctx *c;
	struct end e;
	struct buf buf;
	struct ibv_ah *ah;
};

static void asker(struct asker *a, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .qkey = qkey };
	struct ibv_ah_attr ah = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = peer_gid(), .sgid_index = peer_index(),
			 .hop_limit = 64 },
	};
	struct conf conf = conf_of(UD);
	struct addr self;

	a->c = ctx_open(NULL);
	a->e = end_new(a->c, &conf);
	self = end_addr(&a->e);
	end_connect(&a->e, &self);
	OK(ibv_modify_qp(a->e.qp, &attr, IBV_QP_QKEY));
	a->buf = buf_new(a->c->pd, 8 * KiB, IBV_ACCESS_LOCAL_WRITE);
	a->ah = ibv_create_ah(a->c->pd, &ah);
	CHECK(a->ah);
}

static void asker_free(struct asker *a)
{
	OK(ibv_destroy_ah(a->ah));
	end_free(&a->e);
	buf_free(&a->buf);
	ctx_close(a->c);
}

static void send_mad(struct asker *a, uint32_t len, uint32_t qkey)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)a->buf.p, .length = len,
		.lkey = a->buf.mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = a->ah, .remote_qpn = 1, .remote_qkey = qkey },
	}, *bad;
	struct umad_packet p;

	question(&p, MAD_GET, CLASS_PORT_INFO);
	memcpy(a->buf.p, p.mad, MAD_BYTES);
	OK(ibv_post_send(a->e.qp, &wr, &bad));
	EXPECT_WC(a->e.scq, 1, IBV_WC_SUCCESS);
}

static bool grows(const char *counter, uint64_t from)
{
	unsigned int ms;

	for (ms = 0; ms < t_patience(); ms += 30)
		if (hw(counter) > from)
			return true;
	return false;
}

/* IBA 10.2.5: without the Q_Key of QP 1 nothing gets there, and it is counted. */
static void wrong_qkey(const void *arg)
{
	uint64_t before = hw("refused_qkey");
	struct asker a;

	(void)arg;
	asker(&a, UD_QKEY);
	CHECK(!post_recv(&a.e, 7, a.buf.p + 4096, GRH + MAD_BYTES,
			 a.buf.mr->lkey));
	send_mad(&a, MAD_BYTES, UD_QKEY);
	CHECK(grows("refused_qkey", before));
	before = hw("refused_qkey");
	/* that of QP 1 in a WR stands for the QP's own */
	send_mad(&a, MAD_BYTES, QP1_QKEY);
	CHECK(grows("refused_qkey", before));
	EXPECT_EMPTY(a.e.rcq, 50);
	asker_free(&a);
}

static void right_qkey(const void *arg)
{
	struct ibv_wc wc;
	struct asker a;
	uint8_t *mad;

	(void)arg;
	asker(&a, QP1_QKEY);
	CHECK(!post_recv(&a.e, 7, a.buf.p + 4096, GRH + MAD_BYTES,
			 a.buf.mr->lkey));
	send_mad(&a, MAD_BYTES, QP1_QKEY);
	wc = NEXT_WC(a.e.rcq);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.src_qp, 1);
	CHECK_EQ(wc.byte_len, GRH + MAD_BYTES);
	mad = a.buf.p + 4096 + GRH;
	CHECK_EQ(mad[MAD_METHOD], MAD_GET_RESP);
	CHECK_EQ(be_get(mad + MAD_TID, 8), last_tid);
	CHECK_EQ(be_get(mad + MAD_STATUS, 2), 0);
	CHECK_EQ(be_get(mad + MAD_DATA + 2, 2), 1 << 8 | 1 << 10);
	asker_free(&a);
}

/* 256 bytes are a MAD, nothing else is: dropped, counted, not answered. */
static void wrong_length(const void *arg)
{
	static const uint32_t lengths[] = { 0, 24, 255, 257, 1024 };
	struct asker a;
	unsigned int i;

	(void)arg;
	asker(&a, QP1_QKEY);
	CHECK(!post_recv(&a.e, 7, a.buf.p + 4096, GRH + 1024, a.buf.mr->lkey));
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint64_t before = hw("refused_pkt_length");

		send_mad(&a, lengths[i], QP1_QKEY);
		CHECK(grows("refused_pkt_length", before));
		EXPECT_EMPTY(a.e.rcq, 20);
	}
	send_mad(&a, MAD_BYTES, QP1_QKEY);
	EXPECT_WC(a.e.rcq, 7, IBV_WC_SUCCESS);
	asker_free(&a);
}

/* QP 0 and QP 1 are not for users: IBA 11.2.5.1. */
static void special_qps(const void *arg)
{
	struct ctx *c = ctx_open(NULL);
	struct ibv_cq *cq = ibv_create_cq(c->ibv, 4, NULL, NULL, 0);
	int type;

	(void)arg;
	CHECK(cq);
	for (type = 0; type < 2; type++) {
		struct ibv_qp_init_attr init = {
			.send_cq = cq, .recv_cq = cq, .qp_type = type,
			.cap = { 1, 1, 1, 1, 0 },
		};

		CHECK(!ibv_create_qp(c->pd, &init));
	}
	OK(ibv_destroy_cq(cq));
	ctx_close(c);
}

static const struct t_case cases[] = {
	{ "class_port_info", class_port_info, NULL, 0 },
	{ "agree", agree, NULL, 60 },
	{ "set", set, NULL, 120 },
	{ "refusals", refusals, NULL, 0 },
	{ "other_class", other_class, NULL, 0 },
	{ "trap", trap, NULL, 0 },
	{ "wrong_qkey", wrong_qkey, NULL, 0 },
	{ "right_qkey", right_qkey, NULL, 0 },
	{ "wrong_length", wrong_length, NULL, 0 },
	{ "special_qps", special_qps, NULL, 0 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
