// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz.c - a hostile process: rings that change under the device, bad commands
 *
 * The hostile one is a process of its own that writes into its mapped rings
 * itself and rings the bell by the raw command, so that librxe's own trust in
 * the rings does not kill it.  A neighbour with honest QPs must not notice.
 */
#include <fcntl.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_rxe.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "raw.h"

#define SIZE (64 * KiB)

struct mapped {
	struct ring *ring;
	size_t len;
	/* what was true when it was made */
	uint32_t elem, mask;
};

#define MAX_RINGS 32
static struct mapped rings[MAX_RINGS];
static unsigned int num_rings;
static unsigned int seed;

static uint32_t rnd(void)
{
	return (uint32_t)rand_r(&seed) ^ (uint32_t)rand_r(&seed) << 16;
}

/* A number that somebody may not have thought of. */
static uint32_t odd(void)
{
	static const uint32_t values[] = {
		0, 1, 2, 7, 31, 32, 33, 63, 64, 127, 128, 255, 256, 4095, 4096,
		0xffff, 0x10000, 0x7fffffff, 0x80000000, 0x80000001,
		0xfffffff0, 0xfffffffe, 0xffffffff,
	};

	switch (rnd() % 4) {
	case 0:
		return rnd();
	case 1:
		return rnd() % 64;
	default:
		return values[rnd() % ARRAY_SIZE(values)];
	}
}

/* What the process has mapped of the device and is not in the list yet. */
static void add_rings(void)
{
	struct ring *found[2 * MAX_RINGS];
	size_t lens[2 * MAX_RINGS];
	size_t k, n = find_rings(found, lens, ARRAY_SIZE(found));
	unsigned int i;

	for (k = 0; k < n; k++) {
		struct mapped *m = &rings[num_rings];

		for (i = 0; i < num_rings; i++) {
			if (rings[i].ring == found[k])
				break;
		}
		if (i < num_rings || num_rings == MAX_RINGS)
			continue;
		m->ring = found[k];
		m->len = lens[k];
		m->elem = 1u << m->ring->log2_elem_size;
		m->mask = m->ring->index_mask;
		num_rings++;
	}
	CHECK(num_rings);
}

struct evil {
	struct ctx *c;
	struct end a, b;
	struct buf buf;
	struct ibv_srq *srq;
	struct ibv_mw *mw;
	volatile bool stop;
};

static uint32_t some_key(const struct evil *x)
{
	switch (rnd() % 6) {
	case 0:
		return rnd();
	case 1:
		return x->mw->rkey;
	case 2:
		return x->buf.mr->rkey ^ (1u << rnd() % 32);
	default:
		return x->buf.mr->rkey;
	}
}

static uint64_t some_addr(const struct evil *x)
{
	uint64_t addr = (uintptr_t)x->buf.p + rnd() % SIZE;

	switch (rnd() % 6) {
	case 0:
		return addr ^ 1ull << rnd() % 64;
	case 1:
		return -(uint64_t)odd();
	default:
		return addr;
	}
}

static void some_sges(const struct evil *x, struct rxe_dma_info *dma,
		      uint32_t elem_left)
{
	uint32_t i, n = rnd() % 5;

	dma->num_sge = rnd() % 8 ? n : odd();
	dma->length = rnd() % 4 ? rnd() % 512 : odd();
	dma->resid = odd();
	dma->cur_sge = odd();
	dma->sge_offset = odd();
	for (i = 0; i < n && (i + 1) * sizeof(struct rxe_sge) <= elem_left;
	     i++) {
		dma->sge[i].addr = some_addr(x);
		dma->sge[i].length = rnd() % 4 ? rnd() % 9000 : odd();
		dma->sge[i].lkey = some_key(x);
	}
}

static void some_send(const struct evil *x, void *at, uint32_t elem)
{
	struct rxe_send_wqe *wqe = at;

	wqe->wr.wr_id = rnd();
	wqe->wr.opcode = rnd() % 8 ? rnd() % 16 : odd();
	wqe->wr.send_flags = rnd() % 4 ? IBV_SEND_SIGNALED : rnd();
	wqe->wr.ex.invalidate_rkey = some_key(x);
	if (wqe->wr.opcode == IBV_WR_BIND_MW) {
		wqe->wr.wr.mw.addr = some_addr(x);
		wqe->wr.wr.mw.length = rnd() % 3 ? rnd() % SIZE : odd();
		wqe->wr.wr.mw.mr_lkey = some_key(x);
		wqe->wr.wr.mw.mw_rkey = some_key(x);
		wqe->wr.wr.mw.rkey = some_key(x);
		wqe->wr.wr.mw.access = rnd() % 3 ? rnd() % 64 : odd();
	} else if (x->a.conf.type == UD) {
		wqe->wr.wr.ud.remote_qpn = rnd() % 2 ? x->b.qp->qp_num : odd();
		wqe->wr.wr.ud.remote_qkey = rnd() % 2 ? UD_QKEY : odd();
		wqe->wr.wr.ud.ah_num = rnd() % 2 ? rnd() % 8 : odd();
	} else {
		wqe->wr.wr.atomic.remote_addr = some_addr(x);
		wqe->wr.wr.rdma.rkey = some_key(x);
		wqe->wr.wr.atomic.rkey = rnd() % 2 ? some_key(x) :
						    wqe->wr.wr.atomic.rkey;
	}
	wqe->status = odd();
	wqe->state = odd();
	wqe->has_rd_atomic = odd();
	some_sges(x, &wqe->dma, elem - sizeof(*wqe));
}

static void some_recv(const struct evil *x, void *at, uint32_t elem)
{
	struct rxe_recv_wqe *wqe = at;

	wqe->wr_id = rnd();
	some_sges(x, &wqe->dma, elem - sizeof(*wqe));
}

/* Fill the next slot of each ring and move the index. */
static void post_some(const struct evil *x)
{
	unsigned int i;

	for (i = 0; i < num_rings; i++) {
		struct mapped *m = &rings[i];
		uint32_t producer = m->ring->producer_index & m->mask;
		uint8_t *at = m->ring->data + producer * m->elem;

		if (at + m->elem > (uint8_t *)m->ring + m->len)
			continue;
		if (m->elem > sizeof(struct rxe_send_wqe))
			some_send(x, at, m->elem);
		else if (m->elem > sizeof(struct rxe_recv_wqe) + 48)
			some_recv(x, at, m->elem);
		else if (rnd() % 4)	/* a CQ: what was there is read */
			m->ring->consumer_index = m->ring->producer_index;
		__atomic_store_n(&m->ring->producer_index,
				 rnd() % 16 ? (producer + 1) & m->mask : odd(),
				 __ATOMIC_RELEASE);
	}
}

/* Beside the posting: any word of any ring, at any time. */
static void *flip(void *arg)
{
	struct evil *x = arg;
	unsigned int n = 0;

	while (!x->stop) {
		struct mapped *m = &rings[rnd() % num_rings];
		volatile uint32_t *words = (void *)m->ring;
		size_t at = rnd() % (m->len / 4);

		switch (rnd() % 8) {
		case 0:
			at = rnd() % 2;			/* size, mask */
			break;
		case 1:
			at = 32;			/* producer */
			break;
		case 2:
			at = 64;			/* consumer */
			break;
		}
		words[at] = rnd() % 2 ? odd() : words[at] ^ 1u << rnd() % 32;
		if (++n % 64 == 0)
			usleep(20);
	}
	return NULL;
}

static void revive(struct evil *x)
{
	struct addr at_a = end_addr(&x->a), at_b = end_addr(&x->b);

	end_to(&x->a, IBV_QPS_RESET);
	if (rnd() % 2)
		end_to(&x->b, IBV_QPS_ERR);
	end_to(&x->b, IBV_QPS_RESET);
	end_init(&x->a);
	end_init(&x->b);
	/* the AH of UD stays */
	if (x->a.conf.type != UD || !x->a.ah) {
		end_rtr(&x->a, &at_b);
		end_rtr(&x->b, &at_a);
	} else {
		end_to(&x->a, IBV_QPS_RTR);
		end_to(&x->b, IBV_QPS_RTR);
	}
	end_rts(&x->a);
	end_rts(&x->b);
}

struct attack {
	enum ibv_qp_type type;
	bool srq, flip;
};

static volatile sig_atomic_t enough;

static void on_term(int sig)
{
	(void)sig;
	enough = 1;
}

static void hostile(const struct attack *t)
{
	struct ibv_srq_init_attr srq_init = {
		.attr = { .max_wr = 15, .max_sge = 4 },
	};
	struct conf conf = conf_of(t->type);
	struct evil x = { .c = ctx_open(NULL) };
	pthread_t thread;
	unsigned int i;

	signal(SIGTERM, on_term);
	conf.cap.max_send_wr = conf.cap.max_recv_wr = 15;
	conf.cqe = 31;
	conf.timeout = 4;
	conf.retry_cnt = 1;
	if (t->srq) {
		x.srq = ibv_create_srq(x.c->pd, &srq_init);
		CHECK(x.srq);
		conf.srq = x.srq;
	}
	pair_new(x.c, &conf, &x.a, &x.b);
	x.buf = buf_new(x.c->pd, SIZE, MR_ALL);
	x.mw = ibv_alloc_mw(x.c->pd, IBV_MW_TYPE_2);
	CHECK(x.mw);
	add_rings();
	if (t->flip)
		CHECK(!pthread_create(&thread, NULL, flip, &x));
	for (i = 0; !enough; i++) {
		post_some(&x);
		if (rnd() % 4)
			doorbell(rnd() % 2 ? &x.a : &x.b);
		if (i % 16 == 15)
			revive(&x);
	}
	x.stop = true;
	if (t->flip)
		pthread_join(thread, NULL);
	t_note("%u rounds of posting", i);
	pair_free(&x.a, &x.b);
	if (x.srq)
		OK(ibv_destroy_srq(x.srq));
	OK(ibv_dealloc_mw(x.mw));
	buf_free(&x.buf);
	ctx_close(x.c);
}

static void attacked(const void *arg)
{
	const struct attack *t = arg;
	struct conf conf = conf_of(RC);
	unsigned int i, n = 0;
	struct buf mine, theirs;
	uint64_t end, limit;
	struct ctx *c;
	struct end a, b;
	pid_t pids[2];
	int status;

	/* first: a child would have our rings as well */
	for (i = 0; i < 2; i++) {
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		if (!pids[i]) {
			seed = 77 + i;
			hostile(t);
			_exit(0);
		}
	}
	c = ctx_open(NULL);
	pair_new(c, &conf, &a, &b);
	mine = buf_new(c->pd, SIZE, MR_ALL);
	theirs = buf_new(c->pd, SIZE, MR_ALL);
	end = t_now() + 1500 + 500 * t_slow();
	while (t_now() < end) {
		fill(mine.p, SIZE, n);
		DO(&a, .opcode = IBV_WR_RDMA_WRITE, .laddr = mine.p,
		   .len = SIZE, .lkey = mine.mr->lkey,
		   .raddr = (uintptr_t)theirs.p, .rkey = theirs.mr->rkey);
		CHECK_EQ(filled(theirs.p, SIZE, n), -1);
		OK(post_recv(&b, n, theirs.p, 100, theirs.mr->lkey));
		DO(&a, .opcode = IBV_WR_SEND, .laddr = mine.p, .len = 100,
		   .lkey = mine.mr->lkey);
		EXPECT_WC(b.rcq, n, IBV_WC_SUCCESS);
		n++;
	}
	t_note("%u honest rounds beside it", n);
	kill(pids[0], SIGTERM);
	kill(pids[1], SIGKILL);
	for (i = 0; i < 2; i++) {
		limit = t_now() + t_patience();
		while (!waitpid(pids[i], &status, WNOHANG)) {
			CHECK(t_now() < limit);
			usleep(1000);
		}
		/* one ends as it should, the other had no time to */
		if (!i)
			CHECK_EQ(status, 0);
	}
	pair_free(&a, &b);
	buf_free(&mine);
	buf_free(&theirs);
	ctx_close(c);
}

/* --- commands ------------------------------------------------------------------ */

static void create_qp_args(const void *arg)
{
	struct ctx *c = ctx_open(NULL);
	struct ibv_cq *cq = ibv_create_cq(c->ibv, 10, NULL, NULL, 0);
	static const struct {
		const char *what;
		struct ibv_qp_cap cap;
		int type;
	} rows[] = {
		{ "send_wr", { .max_send_wr = 1 << 20 }, RC },
		{ "send_wr -1", { .max_send_wr = ~0u }, RC },
		{ "recv_wr", { .max_recv_wr = 1 << 20 }, RC },
		{ "send_sge", { .max_send_sge = 33 }, RC },
		{ "recv_sge -1", { .max_recv_sge = ~0u }, UD },
		{ "inline", { .max_inline_data = ~0u }, RC },
		{ "raw packet", { .max_send_wr = 1 }, IBV_QPT_RAW_PACKET },
		{ "xrc", { .max_send_wr = 1 }, IBV_QPT_XRC_SEND },
		{ "driver", { .max_send_wr = 1 }, IBV_QPT_DRIVER },
		{ "smi", { .max_send_wr = 1 }, 0 },
		{ "gsi", { .max_send_wr = 1 }, 1 },
		{ "type 99", { .max_send_wr = 1 }, 99 },
	};
	struct ib_uverbs_create_qp_resp resp[4];
	size_t i;

	(void)arg;
	CHECK(cq);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ib_uverbs_create_qp cmd = {
			.pd_handle = c->pd->handle,
			.send_cq_handle = cq->handle,
			.recv_cq_handle = cq->handle,
			.max_send_wr = rows[i].cap.max_send_wr,
			.max_recv_wr = rows[i].cap.max_recv_wr,
			.max_send_sge = rows[i].cap.max_send_sge,
			.max_recv_sge = rows[i].cap.max_recv_sge,
			.max_inline_data = rows[i].cap.max_inline_data,
			.qp_type = rows[i].type,
		};
		int err = uverbs_write(c->ibv, IB_USER_VERBS_CMD_CREATE_QP,
				       &cmd, sizeof(cmd), resp, sizeof(resp));

		if (err != EINVAL && err != EOPNOTSUPP && err != EPERM)
			t_fail(__FILE__, __LINE__, "%s: %d %s", rows[i].what,
			       err, strerror(err));
	}
	/* good but for the reply: too short for librxe's part, or nowhere */
	for (i = 0; i < 2; i++) {
		struct ib_uverbs_create_qp cmd = {
			.pd_handle = c->pd->handle,
			.send_cq_handle = cq->handle,
			.recv_cq_handle = cq->handle,
			.max_send_wr = 1, .qp_type = RC,
		};

		CHECK(uverbs_write(c->ibv, IB_USER_VERBS_CMD_CREATE_QP, &cmd,
				   sizeof(cmd), i ? (void *)8 : resp,
				   i ? sizeof(resp) : sizeof(resp[0])));
	}
	OK(ibv_destroy_cq(cq));
	ctx_close(c);
}

static void create_others_args(const void *arg)
{
	struct ibv_srq_init_attr init = { .attr = { .max_sge = 1 } };
	struct ctx *c = ctx_open(NULL);
	struct ib_uverbs_create_cq cmd = { .comp_channel = -1 };
	uint8_t resp[64];
	struct ibv_cq *cq;

	(void)arg;
	CHECK(!ibv_create_cq(c->ibv, 0, NULL, NULL, 0));
	CHECK(!ibv_create_cq(c->ibv, 1 << 20, NULL, NULL, 0));
	CHECK(!ibv_create_cq(c->ibv, 0x7fffffff, NULL, NULL, 0));
	CHECK(!ibv_create_cq(c->ibv, 10, NULL, NULL, 4711));
	cmd.cqe = 10;
	CHECK(uverbs_write(c->ibv, IB_USER_VERBS_CMD_CREATE_CQ, &cmd,
			   sizeof(cmd), resp, 8));
	CHECK(uverbs_write(c->ibv, IB_USER_VERBS_CMD_CREATE_CQ, &cmd,
			   sizeof(cmd), (void *)8, 32));
	init.attr.max_wr = ~0u;
	CHECK(!ibv_create_srq(c->pd, &init));
	init.attr.max_wr = 8;
	init.attr.max_sge = 1000;
	CHECK(!ibv_create_srq(c->pd, &init));
	CHECK(!ibv_alloc_mw(c->pd, 3));
	cq = ibv_create_cq(c->ibv, 10, NULL, NULL, 0);
	CHECK(cq);
	OK(ibv_destroy_cq(cq));
	ctx_close(c);
}

/* librxe's reply goes where the user says: a bad place changes nothing. */
static void srq_reply_nowhere(const void *arg)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = 7, .max_sge = 1 },
	};
	struct ctx *c = ctx_open(NULL);
	struct ibv_srq *srq = ibv_create_srq(c->pd, &init);
	struct {
		struct ib_uverbs_modify_srq base;
		uint64_t mmap_info_addr;
	} cmd = {};
	struct conf conf = conf_of(RC);
	struct ibv_srq_attr attr;
	struct end a, b;

	(void)arg;
	CHECK(srq);
	conf.srq = srq;
	pair_new(c, &conf, &a, &b);
	OK(post_srq(srq, 5, NULL, 0, 0));
	cmd.base.srq_handle = srq->handle;
	cmd.base.attr_mask = IBV_SRQ_MAX_WR;
	cmd.base.max_wr = 60;
	cmd.mmap_info_addr = 8;
	CHECK_EQ(uverbs_write(c->ibv, IB_USER_VERBS_CMD_MODIFY_SRQ, &cmd,
			      sizeof(cmd), NULL, 0), EFAULT);
	CHECK(uverbs_write(c->ibv, IB_USER_VERBS_CMD_MODIFY_SRQ, &cmd,
			   sizeof(cmd.base), NULL, 0));
	OK(ibv_query_srq(srq, &attr));
	CHECK(attr.max_wr < 60);
	DO(&a, .opcode = IBV_WR_SEND);
	EXPECT_WC(b.rcq, 5, IBV_WC_SUCCESS);
	pair_free(&a, &b);
	OK(ibv_destroy_srq(srq));
	ctx_close(c);
}

/* A list of WRs in the doorbell of a user's QP. */
static void post_by_command(const void *arg)
{
	struct {
		struct ib_uverbs_post_send base;
		struct ib_uverbs_send_wr wr[2];
		struct ib_uverbs_sge sge[2];
	} cmd = {};
	struct ib_uverbs_post_send_resp resp;
	struct conf conf = conf_of(RC);
	struct ctx *c = ctx_open(NULL);
	struct end a, b;
	unsigned int i;

	(void)arg;
	pair_new(c, &conf, &a, &b);
	for (i = 0; i < 200; i++) {
		cmd.base.qp_handle = a.qp->handle;
		cmd.base.wqe_size = sizeof(cmd.wr[0]);
		cmd.base.wr_count = i % 4;
		cmd.base.sge_count = i % 3;
		cmd.wr[0].num_sge = i % 3;
		cmd.wr[0].opcode = i % 20;
		uverbs_write(c->ibv, IB_USER_VERBS_CMD_POST_SEND, &cmd,
			     sizeof(cmd), &resp, sizeof(resp));
	}
	OK(post_recv(&b, 1, NULL, 0, 0));
	DO(&a, .opcode = IBV_WR_SEND);
	EXPECT_WC(b.rcq, 1, IBV_WC_SUCCESS);
	pair_free(&a, &b);
	ctx_close(c);
}

/* Any command with any content: the device of the others is unharmed. */
static void any_command(const void *arg)
{
	const bool *by_ioctl = arg;
	unsigned int i, j, n = t_rounds(20000);
	struct conf conf = conf_of(RC);
	struct ctx *c = ctx_open(NULL), *honest = ctx_open(NULL);
	struct end a, b, x, y;
	struct buf buf;
	int fd;

	pair_new(honest, &conf, &a, &b);
	/* something for the handles to hit; librxe will not see it again */
	pair_new(c, &conf, &x, &y);
	buf = buf_new(c->pd, SIZE, MR_ALL);
	(void)buf;
	fd = c->ibv->cmd_fd;
	seed = 4711;
	for (i = 0; i < n; i++) {
		uint64_t words[40];
		uint64_t place[40];

		for (j = 0; j < ARRAY_SIZE(words); j++)
			words[j] = rnd() % 3 ? rnd() % 8 : odd();
		if (*by_ioctl) {
			struct ib_uverbs_ioctl_hdr *hdr = (void *)words;
			unsigned int attrs = rnd() % 6;

			hdr->object_id = rnd() % 24;
			hdr->method_id = rnd() % 12;
			hdr->num_attrs = attrs;
			hdr->length = sizeof(*hdr) +
				      attrs * sizeof(hdr->attrs[0]);
			hdr->driver_id = RDMA_DRIVER_RXE;
			for (j = 0; j < attrs; j++) {
				hdr->attrs[j].attr_id = rnd() % 10 |
					(rnd() % 4 ? 0 : 0x1000);
				hdr->attrs[j].len = rnd() % 64;
				hdr->attrs[j].flags = rnd() % 2;
				hdr->attrs[j].data = rnd() % 2 ? rnd() % 8 :
					(uintptr_t)place;
			}
			/*
			 * The core of 7.3 loses a reference to the caller's
			 * task when a file that has a context asks for one:
			 * kmemleak would call that ours.
			 */
			if (hdr->object_id == UVERBS_OBJECT_DEVICE &&
			    hdr->method_id == UVERBS_METHOD_GET_CONTEXT)
				continue;
			ioctl(fd, RDMA_VERBS_IOCTL, hdr);
		} else {
			struct ib_uverbs_cmd_hdr *hdr = (void *)words;
			unsigned int len = rnd() % 36 + 2;
			ssize_t got;

			hdr->command = rnd() % 48;
			hdr->in_words = len * 2;
			hdr->out_words = rnd() % 32;
			words[1] = (uintptr_t)place;
			got = write(fd, words, len * 8);
			(void)got;
		}
	}
	for (i = 0; i < 20; i++) {
		OK(post_recv(&b, 1, NULL, 0, 0));
		DO(&a, .opcode = IBV_WR_SEND);
		EXPECT_WC(b.rcq, 1, IBV_WC_SUCCESS);
	}
	pair_free(&a, &b);
	ctx_close(honest);
}

/* The cookies of mmap: none that was not given, and each for its size. */
static void *make_cqs(void *arg)
{
	struct evil *x = arg;

	while (!x->stop) {
		struct ibv_cq *cq = ibv_create_cq(x->c->ibv, 100, NULL, NULL,
						  0);

		/* the other thread may have taken its cookie */
		if (cq)
			OK(ibv_destroy_cq(cq));
	}
	return NULL;
}

static void mmap_races(const void *arg)
{
	struct evil x = { .c = ctx_open(NULL) };
	struct ib_uverbs_create_cq cmd = { .cqe = 100, .comp_channel = -1 };
	unsigned int i, hits = 0, n = t_rounds(3000);
	struct {
		struct ib_uverbs_create_cq_resp base;
		struct mminfo mi;
	} resp;
	pthread_t thread;

	(void)arg;
	/* where cookies are to be found */
	OK(uverbs_write(x.c->ibv, IB_USER_VERBS_CMD_CREATE_CQ, &cmd,
			sizeof(cmd), &resp, sizeof(resp)));
	CHECK(resp.mi.size);
	CHECK(mmap(NULL, resp.mi.size + 4096, PROT_READ, MAP_SHARED,
		   x.c->ibv->cmd_fd, resp.mi.offset) == MAP_FAILED);
	CHECK(mmap(NULL, 1 << 20, PROT_READ, MAP_SHARED, x.c->ibv->cmd_fd,
		   1ull << 40) == MAP_FAILED);
	CHECK(!pthread_create(&thread, NULL, make_cqs, &x));
	for (i = 0; i < n; i++) {
		/* only the size of the ring itself is right */
		size_t len = i % 4 ? resp.mi.size : 4096u << i % 3;
		uint32_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
				   MAP_SHARED, x.c->ibv->cmd_fd,
				   resp.mi.offset + i % 64 * 4096ull);

		if (p == MAP_FAILED)
			continue;
		hits++;
		p[0] = 1;
		p[len / 4 - 1] = 1;
		munmap(p, len);
	}
	x.stop = true;
	pthread_join(thread, NULL);
	/* that CQ has no struct ibv_cq: it goes with the process */
	t_note("%u of %u guesses hit", hits, n);
}

static const struct attack rc_fields = { .type = RC },
	rc_flips = { .type = RC, .flip = true },
	uc_flips = { .type = UC, .flip = true },
	ud_flips = { .type = UD, .flip = true },
	srq_flips = { .type = RC, .srq = true, .flip = true },
	ud_srq_flips = { .type = UD, .srq = true, .flip = true };
static const bool by_write = false, by_ioctl = true;

static const struct t_case cases[] = {
	{ "rc_fields", attacked, &rc_fields, 0 },
	{ "rc_flips", attacked, &rc_flips, 0 },
	{ "uc_flips", attacked, &uc_flips, 0 },
	{ "ud_flips", attacked, &ud_flips, 0 },
	{ "srq_flips", attacked, &srq_flips, 0 },
	{ "ud_srq_flips", attacked, &ud_srq_flips, 0 },
	{ "create_qp_args", create_qp_args, NULL, 0 },
	{ "create_others_args", create_others_args, NULL, 0 },
	{ "srq_reply_nowhere", srq_reply_nowhere, NULL, 0 },
	{ "post_by_command", post_by_command, NULL, 0 },
	{ "any_write_command", any_command, &by_write, 0 },
	{ "any_ioctl", any_command, &by_ioctl, 0 },
	{ "mmap_races", mmap_races, NULL, 0 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
