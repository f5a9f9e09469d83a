// SPDX-License-Identifier: GPL-2.0
/*
 * bulk.c - a GiB in one message between two hosts
 *
 * The bytes that are sent are a pattern that is mapped again and again, those that
 * come are real: a machine of 2 GiB has room for one of them only.  The length of
 * the pattern is not a power of two, so that no likely mistake shifts by it.  All of
 * it lies in blocks of neighbouring pages, as the ring of a packet socket does:
 * else each page would be a mapping of the host in UML, and those are counted.
 *
 * Environment: MRSOFT_DEV and MRSOFT_DEV2, the two hosts.
 *
 * Spec: IBA Vol 1, 9.7.7 (messages of up to 2^31 bytes)
 */
#include <linux/if_packet.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "lib.h"

#define LEN GiB
#define BLOCK MiB
#define PATTERN (17 * BLOCK)
#define TIMES ((LEN + PATTERN - 1) / PATTERN)
#define EDGE BLOCK		/* behind the message, which must not change */

struct bulk {
	struct ctx *ca, *cb;
	struct end a, b;
	/* of the one that has the bytes, and of the one that gets them */
	struct buf from, to;
};

/* @len bytes, mapped @times side by side. */
static struct buf blocks(struct ibv_pd *pd, size_t len, size_t times)
{
	struct tpacket_req req = {
		.tp_block_size = BLOCK,
		.tp_block_nr = len / BLOCK,
		.tp_frame_size = 4096,
		.tp_frame_nr = len / 4096,
	};
	struct buf b = { .len = len * times };
	/* no protocol: no packet comes */
	int fd = socket(AF_PACKET, SOCK_RAW, 0);
	size_t i;

	CHECK(fd >= 0);
	OK(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)));
	b.p = mmap(NULL, b.len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(b.p != MAP_FAILED);
	for (i = 0; i < times; i++)
		CHECK(mmap(b.p + i * len, len, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
	close(fd);
	b.mr = ibv_reg_mr(pd, b.p, b.len, MR_ALL);
	CHECK(b.mr);
	return b;
}

static void bulk_new(struct bulk *x, bool pull)
{
	struct conf conf = conf_of(RC);

	/* a slow machine loses nothing */
	conf.timeout = 20;
	conf.retry_cnt = 7;
	x->ca = ctx_open(NULL);
	x->cb = ctx_open(ctx_second());
	pair_new2(x->ca, x->cb, &conf, &x->a, &x->b);
	x->from = blocks(pull ? x->cb->pd : x->ca->pd, PATTERN, TIMES);
	x->to = blocks(pull ? x->ca->pd : x->cb->pd, LEN + EDGE, 1);
	fill(x->from.p, PATTERN, 1);
	memset(x->to.p + LEN, 0xee, EDGE);
}

static void bulk_check(const struct bulk *x)
{
	uint64_t at, len;

	for (at = 0; at < LEN; at += len) {
		len = LEN - at < PATTERN ? LEN - at : PATTERN;
		if (memcmp(x->to.p + at, x->from.p, len))
			t_fail(__FILE__, __LINE__,
			       "not the same behind %#llx",
			       (unsigned long long)at);
	}
	CHECK_EQ(only(x->to.p + LEN, EDGE, 0xee), -1);
}

static void bulk(const void *arg)
{
	const enum ibv_wr_opcode *opcode = arg;
	bool pull = *opcode == IBV_WR_RDMA_READ;
	struct op op = { .opcode = *opcode, .wr_id = 1, .len = LEN };
	uint64_t start, limit;
	struct bulk x;
	struct ibv_wc wc;

	bulk_new(&x, pull);
	op.laddr = pull ? x.to.p : x.from.p;
	op.lkey = pull ? x.to.mr->lkey : x.from.mr->lkey;
	op.raddr = (uintptr_t)(pull ? x.from.p : x.to.p);
	op.rkey = pull ? x.from.mr->rkey : x.to.mr->rkey;
	start = t_now();
	limit = start + 180000;
	OK(post(&x.a, &op));
	while (!wait_wc(x.a.scq, &wc, 1000))
		CHECK(t_now() < limit);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, 1);
	t_note("%llu ms", (unsigned long long)(t_now() - start));
	bulk_check(&x);
	pair_free(&x.a, &x.b);
	buf_free(&x.from);
	buf_free(&x.to);
	ctx_close(x.ca);
	ctx_close(x.cb);
}

static const enum ibv_wr_opcode op_write = IBV_WR_RDMA_WRITE,
	op_read = IBV_WR_RDMA_READ;

static const struct t_case cases[] = {
	{ "write_1_gib", bulk, &op_write, 120 },
	{ "read_1_gib", bulk, &op_read, 120 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
