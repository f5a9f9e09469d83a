// SPDX-License-Identifier: GPL-2.0
/*
 * cm.c - librdmacm's own calls against their manual pages
 *
 * A server and a client in one process, each with a thread, on the address in
 * MRSOFT_CM_ADDR.
 *
 * Spec: rdma_create_ep(3), rdma_reg_msgs(3), rdma_reg_read(3), rdma_reg_write(3),
 * rdma_dereg_mr(3), rdma_destroy_ep(3), rdma_destroy_id(3).
 */
#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "lib.h"

#define LEN 4096

/* --- a connection ------------------------------------------------------------ */

/**
 * struct link - both ends of a connection
 * @listen: of the server
 * @server: accepted
 * @client: connected
 * @pd: of the client, NULL: what librdmacm gives
 * @in: the server's memory
 * @out: the client's memory
 */
struct link {
	struct rdma_cm_id *listen, *server, *client;
	struct ibv_pd *pd;
	uint8_t in[LEN], out[LEN];
	char port[8];
	pthread_t thread;
};

static struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr){
		.cap = {
			.max_send_wr = 8, .max_recv_wr = 8,
			.max_send_sge = 1, .max_recv_sge = 1,
			.max_inline_data = 16,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
}

static struct rdma_addrinfo *resolve(const struct link *l, int flags)
{
	struct rdma_addrinfo hints = {
		.ai_flags = flags, .ai_port_space = RDMA_PS_TCP,
	};
	struct rdma_addrinfo *res;

	CHECK_EQ(rdma_getaddrinfo(getenv("MRSOFT_CM_ADDR"), l->port, &hints,
				  &res), 0);
	return res;
}

static void listen_on(struct link *l)
{
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_addrinfo *res;

	snprintf(l->port, sizeof(l->port), "%u", 20000 + getpid() % 20000);
	res = resolve(l, RAI_PASSIVE);
	CHECK_EQ(rdma_create_ep(&l->listen, res, NULL, &attr), 0);
	rdma_freeaddrinfo(res);
	CHECK_EQ(rdma_listen(l->listen, 1), 0);
}

static void *accept_one(void *arg)
{
	struct link *l = arg;

	CHECK_EQ(rdma_get_request(l->listen, &l->server), 0);
	CHECK_EQ(rdma_accept(l->server, NULL), 0);
	return NULL;
}

static void make_client(struct link *l)
{
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_addrinfo *res = resolve(l, 0);

	CHECK_EQ(rdma_create_ep(&l->client, res, l->pd, &attr), 0);
	rdma_freeaddrinfo(res);
}

static void connect_both(struct link *l)
{
	CHECK_EQ(pthread_create(&l->thread, NULL, accept_one, l), 0);
	CHECK_EQ(rdma_connect(l->client, NULL), 0);
	CHECK_EQ(pthread_join(l->thread, NULL), 0);
}

static void link_open(struct link *l)
{
	memset(l, 0, sizeof(*l));
	listen_on(l);
	make_client(l);
	connect_both(l);
}

static void *disconnect_one(void *arg)
{
	struct link *l = arg;

	CHECK_EQ(rdma_disconnect(l->server), 0);
	return NULL;
}

/* Each waits for the other's word. */
static void disconnect_both(struct link *l)
{
	CHECK_EQ(pthread_create(&l->thread, NULL, disconnect_one, l), 0);
	CHECK_EQ(rdma_disconnect(l->client), 0);
	CHECK_EQ(pthread_join(l->thread, NULL), 0);
}

static void link_close(struct link *l)
{
	disconnect_both(l);
	rdma_destroy_ep(l->client);
	rdma_destroy_ep(l->server);
	rdma_destroy_ep(l->listen);
}

static void expect_send(struct rdma_cm_id *id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	CHECK_EQ(rdma_get_send_comp(id, &wc), 1);
	CHECK_EQ(wc.status, status);
}

static void expect_recv(struct rdma_cm_id *id, uint32_t len)
{
	struct ibv_wc wc;

	CHECK_EQ(rdma_get_recv_comp(id, &wc), 1);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, len);
}

static void say(struct link *l, struct ibv_mr *out, struct ibv_mr *in)
{
	fill(l->out, LEN, 5);
	memset(l->in, 0, LEN);
	CHECK_EQ(rdma_post_recv(l->server, NULL, l->in, LEN, in), 0);
	CHECK_EQ(rdma_post_send(l->client, NULL, l->out, LEN, out, 0), 0);
	expect_send(l->client, IBV_WC_SUCCESS);
	expect_recv(l->server, LEN);
	CHECK_EQ(filled(l->in, LEN, 5), -1);
}

/* --- cases ----------------------------------------------------------------- */

/* What rdma_reg_*() registers is of the id's PD, and rdma_dereg_mr() gives 0. */
static void messages(const void *arg)
{
	struct ibv_mr *in, *out;
	struct link l;

	(void)arg;
	link_open(&l);
	in = rdma_reg_msgs(l.server, l.in, LEN);
	out = rdma_reg_msgs(l.client, l.out, LEN);
	CHECK(in && out);
	CHECK(in->pd == l.server->pd && out->pd == l.client->pd);
	CHECK(l.client->pd == l.client->qp->pd);
	CHECK(out->addr == l.out);
	CHECK_EQ(out->length, LEN);
	say(&l, out, in);
	CHECK_EQ(rdma_dereg_mr(in), 0);
	CHECK_EQ(rdma_dereg_mr(out), 0);
	link_close(&l);
}

/* rdma_reg_read(): may be read by the peer, and not written. */
static void reg_read(const void *arg)
{
	struct ibv_mr *mine, *theirs;
	struct link l;

	(void)arg;
	link_open(&l);
	theirs = rdma_reg_read(l.server, l.in, LEN);
	mine = rdma_reg_msgs(l.client, l.out, LEN);
	CHECK(theirs && mine);
	CHECK(theirs->pd == l.server->pd);
	fill(l.in, LEN, 6);
	CHECK_EQ(rdma_post_read(l.client, NULL, l.out, LEN, mine, 0,
				(uintptr_t)l.in, theirs->rkey), 0);
	expect_send(l.client, IBV_WC_SUCCESS);
	CHECK_EQ(filled(l.out, LEN, 6), -1);
	CHECK_EQ(rdma_post_write(l.client, NULL, l.out, 8, mine, 0,
				 (uintptr_t)l.in, theirs->rkey), 0);
	expect_send(l.client, IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(rdma_dereg_mr(theirs), 0);
	CHECK_EQ(rdma_dereg_mr(mine), 0);
	link_close(&l);
}

/* rdma_reg_write(): may be written by the peer, and not read. */
static void reg_write(const void *arg)
{
	struct ibv_mr *mine, *theirs;
	struct link l;

	(void)arg;
	link_open(&l);
	theirs = rdma_reg_write(l.server, l.in, LEN);
	mine = rdma_reg_msgs(l.client, l.out, LEN);
	CHECK(theirs && mine);
	CHECK(theirs->pd == l.server->pd);
	fill(l.out, LEN, 7);
	CHECK_EQ(rdma_post_write(l.client, NULL, l.out, LEN, mine, 0,
				 (uintptr_t)l.in, theirs->rkey), 0);
	expect_send(l.client, IBV_WC_SUCCESS);
	CHECK_EQ(filled(l.in, LEN, 7), -1);
	CHECK_EQ(rdma_post_read(l.client, NULL, l.out, 8, mine, 0,
				(uintptr_t)l.in, theirs->rkey), 0);
	expect_send(l.client, IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(rdma_dereg_mr(theirs), 0);
	CHECK_EQ(rdma_dereg_mr(mine), 0);
	link_close(&l);
}

/* After rdma_dereg_mr() the key is refused. */
static void key_is_gone(const void *arg)
{
	struct ibv_mr *mine, *theirs;
	struct link l;
	uint32_t rkey;

	(void)arg;
	link_open(&l);
	theirs = rdma_reg_write(l.server, l.in, LEN);
	mine = rdma_reg_msgs(l.client, l.out, LEN);
	CHECK(theirs && mine);
	rkey = theirs->rkey;
	CHECK_EQ(rdma_dereg_mr(theirs), 0);
	memset(l.in, 0x33, LEN);
	CHECK_EQ(rdma_post_write(l.client, NULL, l.out, LEN, mine, 0,
				 (uintptr_t)l.in, rkey), 0);
	expect_send(l.client, IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(only(l.in, LEN, 0x33), -1);
	CHECK_EQ(rdma_dereg_mr(mine), 0);
	link_close(&l);
}

static void bind_window(struct link *l, struct ibv_mw *mw, struct ibv_mr *mr,
			uint64_t len)
{
	struct ibv_mw_bind_info info = {
		.mr = mr, .addr = (uintptr_t)l->out, .length = len,
		.mw_access_flags = IBV_ACCESS_REMOTE_READ,
	};
	struct ibv_mw_bind arg = { .bind_info = info };

	OK(ibv_bind_mw(l->client->qp, mw, &arg));
	expect_send(l->client, IBV_WC_SUCCESS);
}

/* -1 and EBUSY while a window is bound; the region is as it was; then 0. */
static void busy(const void *arg)
{
	struct ibv_mr *in, *out;
	struct ibv_mw *mw;
	struct link l;

	(void)arg;
	link_open(&l);
	in = rdma_reg_msgs(l.server, l.in, LEN);
	out = ibv_reg_mr(l.client->pd, l.out, LEN,
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			 IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(l.client->pd, IBV_MW_TYPE_1);
	CHECK(in && out && mw);
	bind_window(&l, mw, out, LEN);
	errno = 0;
	CHECK_EQ(rdma_dereg_mr(out), -1);
	CHECK_EQ(errno, EBUSY);
	say(&l, out, in);
	/* through the window too: the server reads */
	CHECK_EQ(rdma_post_read(l.server, NULL, l.in, LEN, in, 0,
				(uintptr_t)l.out, mw->rkey), 0);
	expect_send(l.server, IBV_WC_SUCCESS);
	CHECK_EQ(rdma_dereg_mr(out), -1);
	CHECK_EQ(errno, EBUSY);
	bind_window(&l, mw, out, 0);
	CHECK_EQ(rdma_dereg_mr(out), 0);
	CHECK_EQ(rdma_dereg_mr(in), 0);
	OK(ibv_dealloc_mw(mw));
	link_close(&l);
}

/* A PD of one's own: busy until every region is gone, whatever went before. */
static void pd_is_busy(const void *arg)
{
	struct ibv_context **devices;
	struct ibv_context *device = NULL;
	struct ibv_mr *a, *b;
	struct link l;
	int i, num;

	(void)arg;
	memset(&l, 0, sizeof(l));
	listen_on(&l);
	devices = rdma_get_devices(&num);
	CHECK(devices);
	for (i = 0; i < num; i++)
		if (devices[i] == l.listen->verbs)
			device = devices[i];
	CHECK(device);
	l.pd = ibv_alloc_pd(device);
	CHECK(l.pd);
	make_client(&l);
	CHECK(l.client->pd == l.pd);
	connect_both(&l);
	a = rdma_reg_msgs(l.client, l.out, LEN);
	b = rdma_reg_read(l.client, l.in, LEN);
	CHECK(a && b && a->pd == l.pd && b->pd == l.pd);
	CHECK_EQ(ibv_dealloc_pd(l.pd), EBUSY);
	CHECK_EQ(rdma_dereg_mr(a), 0);
	CHECK_EQ(ibv_dealloc_pd(l.pd), EBUSY);
	/* the wrong order: the region outlives its id */
	link_close(&l);
	CHECK_EQ(ibv_dealloc_pd(l.pd), EBUSY);
	CHECK_EQ(rdma_dereg_mr(b), 0);
	OK(ibv_dealloc_pd(l.pd));
	rdma_free_devices(devices);
}

/* Ids, QPs and regions go in any order, and the peer hears of it. */
static void orders(const void *arg)
{
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct link l;

	(void)arg;
	/* the listener before what it accepted; no disconnect */
	link_open(&l);
	rdma_destroy_ep(l.listen);
	rdma_destroy_ep(l.server);
	rdma_destroy_ep(l.client);

	/* an id before its QP and its region */
	link_open(&l);
	mr = rdma_reg_msgs(l.client, l.out, LEN);
	CHECK(mr);
	qp = l.client->qp;
	CHECK_EQ(rdma_destroy_id(l.client), 0);
	CHECK_EQ(rdma_dereg_mr(mr), 0);
	OK(ibv_destroy_qp(qp));
	rdma_destroy_ep(l.server);
	rdma_destroy_ep(l.listen);

	/* the QP alone first */
	link_open(&l);
	rdma_destroy_qp(l.server);
	disconnect_both(&l);
	rdma_destroy_ep(l.client);
	CHECK_EQ(rdma_destroy_id(l.server), 0);
	rdma_destroy_ep(l.listen);
}

/* Again and again, without a reject. */
static void reconnect(const void *arg)
{
	unsigned int i, n = t_rounds(300);
	struct link l;

	(void)arg;
	memset(&l, 0, sizeof(l));
	listen_on(&l);
	for (i = 0; i < n; i++) {
		make_client(&l);
		connect_both(&l);
		disconnect_both(&l);
		rdma_destroy_ep(l.client);
		rdma_destroy_ep(l.server);
	}
	rdma_destroy_ep(l.listen);
}

static const struct t_case cases[] = {
	{ "messages", messages, NULL, 0 },
	{ "reg_read", reg_read, NULL, 0 },
	{ "reg_write", reg_write, NULL, 0 },
	{ "key_is_gone", key_is_gone, NULL, 0 },
	{ "busy", busy, NULL, 0 },
	{ "pd_is_busy", pd_is_busy, NULL, 0 },
	{ "orders", orders, NULL, 0 },
	{ "reconnect", reconnect, NULL, 60 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
