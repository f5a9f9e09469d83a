// SPDX-License-Identifier: GPL-2.0
/*
 * mcast_peer.c - one side of a multicast test between two hosts
 *
 *	mcast_peer recv DEVICE GROUP COUNT	two QPs attached, another with a wrong
 *						Q_Key; says "ready"
 *	mcast_peer send DEVICE GROUP COUNT SOURCE	from this address of ours
 *	mcast_peer hold DEVICE GROUP COUNT	COUNT groups from GROUP on, attached
 *						until it is killed; says "ready PID"
 *	mcast_peer join NETDEV GROUP 0		as any socket, until it is killed; says
 *						"ready PID"
 *
 * On any RDMA device.  The receiver ends with status 0 if each QP got each datagram
 * once, in order, and nothing else.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <netinet/in.h>

#include "lib.h"

#define MCAST_QPN 0xffffff
#define GRH 40
#define LEN 200
#define SLOT (GRH + LEN)

struct peer {
	struct ctx *c;
	struct end e;
	struct buf buf;
};

static union ibv_gid parse(const char *address)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, address, gid.raw + 12) == 1)
		return gid;
	CHECK_EQ(inet_pton(AF_INET6, address, &gid), 1);
	return gid;
}

static bool mapped(const union ibv_gid *gid)
{
	return !gid->raw[0] && gid->raw[10] == 0xff;
}

static int index_of(struct ctx *c, const union ibv_gid *gid)
{
	struct ibv_gid_entry entry;
	int i;

	for (i = 0; i < 16; i++) {
		if (!ibv_query_gid_ex(c->ibv, 1, i, &entry, 0) &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(&entry.gid, gid, sizeof(*gid)))
			return i;
	}
	t_fail(__FILE__, __LINE__, "no such GID");
}

static void ready(struct peer *p, struct ctx *c, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .qkey = qkey };
	struct conf conf = conf_of(UD);
	struct addr self;

	p->c = c;
	p->e = end_new(c, &conf);
	self = end_addr(&p->e);
	end_connect(&p->e, &self);
	OK(ibv_modify_qp(p->e.qp, &attr, IBV_QP_QKEY));
	p->buf = buf_new(c->pd, 64 * SLOT, IBV_ACCESS_LOCAL_WRITE);
}

static void done(struct peer *p)
{
	end_free(&p->e);
	buf_free(&p->buf);
}

static void aim(struct peer *p, const union ibv_gid *group,
		const union ibv_gid *source)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = *group, .hop_limit = 1 },
	};

	attr.grh.sgid_index = index_of(p->c, source);
	OK(ibv_destroy_ah(p->e.ah));
	p->e.ah = ibv_create_ah(p->c->pd, &attr);
	CHECK(p->e.ah);
	p->e.peer_qpn = MCAST_QPN;
}

static void check_group(const uint8_t *grh, const union ibv_gid *group)
{
	if (mapped(group))
		CHECK(!memcmp(grh + 36, group->raw + 12, 4));
	else
		CHECK(!memcmp(grh + 24, group->raw, 16));
}

static void hear(struct peer *p, const union ibv_gid *group, unsigned int n)
{
	struct ibv_wc wc = NEXT_WC(p->e.rcq);

	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, n);
	CHECK_EQ(wc.byte_len, SLOT);
	check_group(p->buf.p + n * SLOT, group);
	CHECK_EQ(filled(p->buf.p + n * SLOT + GRH, LEN, n), -1);
}

static void receive(struct ctx *c, const union ibv_gid *group, unsigned int n)
{
	struct peer p[3];
	unsigned int i, j;

	for (j = 0; j < 3; j++) {
		ready(&p[j], c, j == 2 ? UD_QKEY + 1 : UD_QKEY);
		for (i = 0; i < n; i++)
			OK(post_recv(&p[j].e, i, p[j].buf.p + i * SLOT, SLOT,
				     p[j].buf.mr->lkey));
		OK(ibv_attach_mcast(p[j].e.qp, group, 0));
	}
	printf("ready\n");
	fflush(stdout);
	for (i = 0; i < n; i++) {
		hear(&p[0], group, i);
		hear(&p[1], group, i);
	}
	EXPECT_EMPTY(p[0].e.rcq, 100);
	EXPECT_EMPTY(p[1].e.rcq, 10);
	EXPECT_EMPTY(p[2].e.rcq, 10);
	for (j = 0; j < 3; j++) {
		OK(ibv_detach_mcast(p[j].e.qp, group, 0));
		done(&p[j]);
	}
}

static void send_all(struct ctx *c, const union ibv_gid *group, unsigned int n,
		     const union ibv_gid *source)
{
	struct peer p;
	unsigned int i;

	ready(&p, c, UD_QKEY);
	aim(&p, group, source);
	for (i = 0; i < n; i++) {
		fill(p.buf.p, LEN, i);
		DO(&p.e, .opcode = IBV_WR_SEND, .laddr = p.buf.p, .len = LEN,
		   .lkey = p.buf.mr->lkey);
	}
	done(&p);
}

static void wait_for_kill(void)
{
	printf("ready %d\n", getpid());
	fflush(stdout);
	pause();
}

static void hold(struct ctx *c, union ibv_gid *group, unsigned int n)
{
	struct peer p;
	unsigned int i;

	ready(&p, c, UD_QKEY);
	for (i = 0; i < n; i++) {
		OK(ibv_attach_mcast(p.e.qp, group, 0));
		group->raw[15]++;
	}
	wait_for_kill();
}

static void join(const char *netdev, const union ibv_gid *group)
{
	struct group_req req = { .gr_interface = if_nametoindex(netdev) };
	struct sockaddr_in6 *in6 = (void *)&req.gr_group;
	struct sockaddr_in *in = (void *)&req.gr_group;
	bool ipv4 = mapped(group);
	int fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM, 0);

	CHECK(fd >= 0 && req.gr_interface);
	if (ipv4) {
		in->sin_family = AF_INET;
		memcpy(&in->sin_addr, group->raw + 12, 4);
	} else {
		in6->sin6_family = AF_INET6;
		memcpy(&in6->sin6_addr, group, 16);
	}
	CHECK(!setsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6,
			  MCAST_JOIN_GROUP, &req, sizeof(req)));
	wait_for_kill();
}

int main(int argc, char **argv)
{
	union ibv_gid group, source;
	unsigned int n;
	struct ctx *c;

	if (argc != (argc > 1 && !strcmp(argv[1], "send") ? 6 : 5))
		return 2;
	group = parse(argv[3]);
	if (!strcmp(argv[1], "join"))
		join(argv[2], &group);
	c = ctx_open(argv[2]);
	n = atoi(argv[4]);
	CHECK(n <= 64);
	if (!strcmp(argv[1], "recv")) {
		receive(c, &group, n);
	} else if (!strcmp(argv[1], "send")) {
		source = parse(argv[5]);
		send_all(c, &group, n, &source);
	} else {
		hold(c, &group, n);
	}
	ctx_close(c);
	return 0;
}
