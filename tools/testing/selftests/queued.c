// SPDX-License-Identifier: GPL-2.0
/*
 * queued.c - a process whose packets wait in the queue of a netdev
 *
 *	queued DEVICE GID PEER	index of its GID; PEER is an IPv4 address
 *
 * Connects, says "connected", and waits for a line of input.  Then it sends on RC
 * and UD, says "posted", and waits for another.  Then each destroy must succeed,
 * with the messages on their way as they are; "done".  The caller sees whether the
 * packets are still queued, and has the time limit.
 */
#include <arpa/inet.h>

#include "lib.h"

#define LEN (64 * KiB)
#define NOBODY 0x123456

static void connect_to(struct end *e, struct ctx *c, enum ibv_qp_type type,
		       const char *address)
{
	struct addr peer = {
		.gid.raw = { [10] = 0xff, [11] = 0xff },
		.qpn = NOBODY,
	};
	struct conf conf = conf_of(type);

	CHECK_EQ(inet_pton(AF_INET, address, peer.gid.raw + 12), 1);
	/* 4 s, 7 times: it does not end by itself */
	conf.timeout = 20;
	conf.retry_cnt = 7;
	*e = end_new(c, &conf);
	end_connect(e, &peer);
}

static void say_and_wait(const char *what)
{
	puts(what);
	fflush(stdout);
	while (getchar() != '\n')
		CHECK(!feof(stdin));
}

int main(int argc, char **argv)
{
	struct op write = { .opcode = IBV_WR_RDMA_WRITE, .len = LEN };
	struct op send = { .opcode = IBV_WR_SEND, .len = 256 };
	struct end rc, ud;
	struct buf buf;
	struct ctx *c;

	if (argc != 4)
		return 2;
	c = ctx_open(argv[1]);
	/* a VLAN above the port may have the first of the table */
	c->gid_index = atoi(argv[2]);
	connect_to(&rc, c, RC, argv[3]);
	connect_to(&ud, c, UD, argv[3]);
	buf = buf_new(c->pd, LEN, REMOTE_ALL);
	say_and_wait("connected");
	write.laddr = send.laddr = buf.p;
	write.lkey = send.lkey = buf.mr->lkey;
	write.raddr = (uintptr_t)buf.p;
	write.rkey = buf.mr->rkey;
	OK(post(&rc, &write));
	OK(post(&ud, &send));
	/* a datagram is complete when it is on its way */
	EXPECT_WC(ud.scq, 0, IBV_WC_SUCCESS);
	say_and_wait("posted");
	OK(ibv_dereg_mr(buf.mr));
	buf.mr = NULL;
	end_free(&rc);
	end_free(&ud);
	ctx_close(c);
	puts("done");
	return 0;
}
