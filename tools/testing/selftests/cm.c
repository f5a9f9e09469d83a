// SPDX-License-Identifier: GPL-2.0
/*
 * cm.c - librdmacm's own calls against their manual pages
 *
 * A server and a client in one process, each with a thread, on the address in
 * MRSOFT_CM_ADDR, which is that of MRSOFT_DEV.
 *
 * Spec: rdma_create_id(3), rdma_create_ep(3), rdma_create_qp(3), rdma_reg_msgs(3),
 * rdma_reg_read(3), rdma_reg_write(3), rdma_dereg_mr(3), rdma_destroy_ep(3),
 * rdma_destroy_id(3), rdma_resolve_addr(3).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <infiniband/ib.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
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

/* @i: which of the ports of this process */
static void listen_at(struct link *l, int i)
{
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_addrinfo *res;

	snprintf(l->port, sizeof(l->port), "%u", 12000 + getpid() % 5000 * 4 + i);
	res = resolve(l, RAI_PASSIVE);
	CHECK_EQ(rdma_create_ep(&l->listen, res, NULL, &attr), 0);
	rdma_freeaddrinfo(res);
	CHECK_EQ(rdma_listen(l->listen, 1), 0);
}

static void listen_on(struct link *l)
{
	listen_at(l, 0);
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

/*
 * What rdma_reg_*() registers is of the id's PD, and rdma_dereg_mr() gives 0.  A
 * peer may neither read nor write what is for messages.
 */
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
	CHECK_EQ(rdma_post_read(l.client, NULL, l.out, 8, out, 0,
				(uintptr_t)l.in, in->rkey), 0);
	expect_send(l.client, IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(rdma_dereg_mr(in), 0);
	CHECK_EQ(rdma_dereg_mr(out), 0);
	link_close(&l);

	link_open(&l);
	in = rdma_reg_msgs(l.server, l.in, LEN);
	out = rdma_reg_msgs(l.client, l.out, LEN);
	CHECK(in && out);
	memset(l.in, 0x44, LEN);
	CHECK_EQ(rdma_post_write(l.client, NULL, l.out, 8, out, 0,
				 (uintptr_t)l.in, in->rkey), 0);
	expect_send(l.client, IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(only(l.in, LEN, 0x44), -1);
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

/* A handle that is gone: -1 and errno, and the call can be made. */
static void gone(const void *arg)
{
	struct ib_uverbs_dereg_mr cmd;
	struct ibv_mr *mr;
	struct link l;

	(void)arg;
	link_open(&l);
	mr = rdma_reg_msgs(l.client, l.out, LEN);
	CHECK(mr);
	cmd.mr_handle = mr->handle;
	OK(uverbs_write(mr->context, IB_USER_VERBS_CMD_DEREG_MR, &cmd,
			sizeof(cmd), NULL, 0));
	errno = 0;
	CHECK_EQ(rdma_dereg_mr(mr), -1);
	CHECK(errno == EINVAL || errno == ENOENT);
	link_close(&l);
}

static bool is_ours(const struct ibv_context *verbs)
{
	return verbs && !strcmp(ibv_get_device_name(verbs->device),
				getenv("MRSOFT_DEV"));
}

/* rdma_create_id(3): no device until an address has been resolved, then the right one. */
static void ids(const void *arg)
{
	struct ibv_qp_init_attr attr;
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	int i;

	(void)arg;
	CHECK(channel);
	CHECK_EQ(inet_pton(AF_INET, getenv("MRSOFT_CM_ADDR"), &in.sin_addr), 1);
	/* NULL: synchronous */
	for (i = 0; i < 2; i++) {
		CHECK_EQ(rdma_create_id(i ? channel : NULL, &id, &in,
					RDMA_PS_TCP), 0);
		CHECK(!id->verbs && !id->qp && !id->pd);
		CHECK(id->context == &in);
		CHECK_EQ(rdma_resolve_addr(id, NULL, (struct sockaddr *)&in,
					   5000), 0);
		if (i) {
			CHECK_EQ(rdma_get_cm_event(channel, &event), 0);
			CHECK_EQ(event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
			CHECK(event->id == id);
			CHECK_EQ(rdma_ack_cm_event(event), 0);
		}
		CHECK(is_ours(id->verbs));
		CHECK_EQ(id->port_num, 1);
		CHECK(!id->qp);
		/* to itself: both addresses are the one */
		CHECK(!memcmp(&id->route.addr.src_sin.sin_addr, &in.sin_addr,
			      sizeof(in.sin_addr)));
		attr = qp_attr();
		CHECK_EQ(rdma_create_qp(id, NULL, &attr), 0);
		CHECK(id->qp && id->pd && id->qp->pd == id->pd);
		rdma_destroy_qp(id);
		CHECK(!id->qp);
		CHECK_EQ(rdma_destroy_id(id), 0);
	}
	rdma_destroy_event_channel(channel);
}

/* What the caller was promised is at least what he asked for, and he is told. */
static void check_caps(struct rdma_cm_id *id, const struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr asked = qp_attr(), is;
	struct ibv_qp_attr now;

	CHECK(attr->cap.max_send_wr >= asked.cap.max_send_wr &&
	      attr->cap.max_recv_wr >= asked.cap.max_recv_wr &&
	      attr->cap.max_send_sge >= asked.cap.max_send_sge &&
	      attr->cap.max_recv_sge >= asked.cap.max_recv_sge &&
	      attr->cap.max_inline_data >= asked.cap.max_inline_data);
	OK(ibv_query_qp(id->qp, &now, IBV_QP_CAP | IBV_QP_STATE, &is));
	CHECK(!memcmp(&is.cap, &attr->cap, sizeof(is.cap)));
	CHECK_EQ(now.qp_state, IBV_QPS_INIT);
}

/* rdma_create_ep(3): active and passive, with attributes of a QP and without. */
static void endpoints(const void *arg)
{
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;
	struct link l;

	(void)arg;
	memset(&l, 0, sizeof(l));
	listen_on(&l);
	CHECK(is_ours(l.listen->verbs));
	CHECK(!l.listen->qp);
	res = resolve(&l, 0);
	CHECK_EQ(rdma_create_ep(&id, res, NULL, NULL), 0);
	CHECK(is_ours(id->verbs));
	CHECK(!id->qp);
	/* a QP may still come */
	CHECK_EQ(rdma_create_qp(id, NULL, &attr), 0);
	check_caps(id, &attr);
	rdma_destroy_ep(id);

	attr = qp_attr();
	CHECK_EQ(rdma_create_ep(&l.client, res, NULL, &attr), 0);
	CHECK(is_ours(l.client->verbs));
	check_caps(l.client, &attr);
	rdma_freeaddrinfo(res);
	/* what the listener was given comes with the request */
	connect_both(&l);
	CHECK(l.server->qp && l.server->qp->qp_type == IBV_QPT_RC);
	link_close(&l);

	/* without attributes */
	res = resolve(&l, RAI_PASSIVE);
	CHECK_EQ(rdma_create_ep(&l.listen, res, NULL, NULL), 0);
	rdma_freeaddrinfo(res);
	CHECK_EQ(rdma_listen(l.listen, 1), 0);
	rdma_destroy_ep(l.listen);
}

/* How many objects of a kind the device has, in the words of rdma(8). */
static long objects_of(const char *kind)
{
	char text[256], key[16];
	const char *at;

	t_objects(text, sizeof(text));
	snprintf(key, sizeof(key), " %s ", kind);
	at = strstr(text, key);
	CHECK(at);
	return strtol(at + strlen(key), NULL, 10);
}

/*
 * The note of rdma_dereg_mr(3): a PD goes only after its regions.  librdmacm's own
 * PD goes with the last id, if it can: a region that outlives that id keeps it.
 */
static void default_pd(const void *arg)
{
	long pds = objects_of("pd");
	struct ibv_mr *mr;
	struct link l;

	(void)arg;
	/* in order */
	memset(&l, 0, sizeof(l));
	snprintf(l.port, sizeof(l.port), "9");
	make_client(&l);
	CHECK_EQ(objects_of("pd"), pds + 1);
	mr = rdma_reg_msgs(l.client, l.out, LEN);
	CHECK(mr);
	CHECK_EQ(rdma_dereg_mr(mr), 0);
	rdma_destroy_ep(l.client);
	CHECK_EQ(objects_of("pd"), pds);

	/* the wrong way round: region and PD are still there, and sound */
	make_client(&l);
	mr = rdma_reg_msgs(l.client, l.out, LEN);
	CHECK(mr);
	rdma_destroy_ep(l.client);
	CHECK_EQ(objects_of("pd"), pds + 1);
	CHECK_EQ(rdma_dereg_mr(mr), 0);
}

/*
 * An address of AF_IB is found by its GID and has no netdev, without which there is
 * no route on RoCE: the core says so at once, whichever driver it is of.
 */
static void af_ib(const void *arg)
{
	struct sockaddr_ib ib = {
		.sib_family = AF_IB, .sib_pkey = htons(0xffff),
		.sib_sid = htobe64(0x01060000 | 9),
		.sib_sid_mask = htobe64(UINT64_MAX),
	};
	struct ctx *c = ctx_open(NULL);
	struct rdma_cm_id *id;

	(void)arg;
	memcpy(&ib.sib_addr, &c->gid, sizeof(ib.sib_addr));
	CHECK_EQ(rdma_create_id(NULL, &id, NULL, RDMA_PS_IB), 0);
	CHECK_EQ(rdma_resolve_addr(id, NULL, (struct sockaddr *)&ib, 2000), 0);
	CHECK_EQ(rdma_resolve_route(id, 2000), -1);
	CHECK_EQ(errno, ENODEV);
	CHECK_EQ(rdma_destroy_id(id), 0);
	ctx_close(c);
}

/* --- again and again -------------------------------------------------------- */

/* rounds on a fast machine, 1/10 of them to warm up */
static const unsigned int many = 10000, few = 300;

static int64_t meminfo_kib(const char *field)
{
	char line[128], key[32];
	int64_t value = -1;
	FILE *f = fopen("/proc/meminfo", "r");

	CHECK(f);
	snprintf(key, sizeof(key), "%s: %%lld", field);
	while (value < 0 && fgets(line, sizeof(line), f)) {
		long long v;

		if (sscanf(line, key, &v) == 1)
			value = v;
	}
	fclose(f);
	return value;
}

struct usage {
	int64_t allocated;	/* objects in slabs */
	int64_t available;	/* KiB */
	char objects[256];
};

/* After it the counts are exact: none is held back for a CPU. */
static void shrink_slabs(void)
{
	glob_t files;
	size_t i;

	if (glob("/sys/kernel/slab/*/shrink", GLOB_NOSORT, NULL, &files))
		return;
	for (i = 0; i < files.gl_pathc; i++) {
		int fd = open(files.gl_pathv[i], O_WRONLY);

		if (fd < 0)
			continue;
		if (write(fd, "1", 1) != 1)
			t_note("%s: %s", files.gl_pathv[i], strerror(errno));
		close(fd);
	}
	globfree(&files);
}

/*
 * Of all caches but one: areas of vmalloc are freed by the thousand, when enough have
 * come together.
 */
static int64_t slab_objects(void)
{
	FILE *f = fopen("/proc/slabinfo", "r");
	char line[512], name[64];
	int64_t sum = 0;
	long long n;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %lld", name, &n) == 2 &&
		    strcmp(name, "vmap_area"))
			sum += n;
	fclose(f);
	CHECK(sum);
	return sum;
}

/*
 * What is used once things have settled: for a second or two the CM remembers each
 * connection that has ended.
 */
static struct usage usage(void)
{
	uint64_t end = t_now() + 20000;
	struct usage u = { .allocated = INT64_MAX };
	unsigned int flat = 0;

	while (flat < 4 && t_now() < end) {
		int64_t now;

		t_sleep(500);
		shrink_slabs();
		now = slab_objects();
		flat = now < u.allocated ? 0 : flat + 1;
		if (now < u.allocated)
			u.allocated = now;
	}
	u.available = meminfo_kib("MemAvailable");
	t_objects(u.objects, sizeof(u.objects));
	return u;
}

/*
 * Flat: no RDMA object more; slabs grow by less than an object for four rounds, pages
 * by less than 3/4 of a page for each.  The kernel's own caches fill up for long
 * after the start; a leak is in each of the three parts that are measured.  It takes
 * many rounds to see; and with KASAN what was freed counts as used for a while: there
 * kmemleak looks.
 */
static void expect_flat(void (*run)(void *arg, unsigned int rounds), void *arg,
			unsigned int rounds)
{
	int64_t allocated = INT64_MAX, pages = INT64_MAX;
	unsigned int i, part = rounds * 3 / 10;
	struct usage before;

	run(arg, rounds - 3 * part);
	before = usage();
	for (i = 0; i < 3; i++) {
		struct usage after;
		int64_t more, gone;

		run(arg, part);
		after = usage();
		if (strcmp(after.objects, before.objects))
			t_fail(__FILE__, __LINE__, "objects '%s', before '%s'",
			       after.objects, before.objects);
		more = after.allocated - before.allocated;
		gone = before.available - after.available;
		t_note("%u rounds: %+lld in slabs, available %+lld KiB", part,
		       (long long)more, (long long)-gone);
		allocated = more < allocated ? more : allocated;
		pages = gone < pages ? gone : pages;
		before = after;
	}
	if (t_slow() > 1 || rounds < many)
		return;
	CHECK(4 * allocated < (int64_t)part);
	CHECK(pages < 3 * (int64_t)part);
}

static void make_clients(void *arg, unsigned int rounds)
{
	struct link *l = arg;

	while (rounds--) {
		make_client(l);
		rdma_destroy_ep(l->client);
	}
}

/* rdma_create_ep() and rdma_destroy_ep() */
static void endpoints_again(const void *arg)
{
	struct link l;

	memset(&l, 0, sizeof(l));
	/* an id that stays keeps the PD */
	listen_on(&l);
	expect_flat(make_clients, &l, t_rounds(*(const unsigned int *)arg));
	rdma_destroy_ep(l.listen);
}

/* Pairs at a time: each waits for threads of the kernel most of its time. */
#define PAIRS 4

struct pair {
	struct link l;
	unsigned int rounds;
	pthread_t server, client;
};

static void *serve_again(void *arg)
{
	struct pair *p = arg;
	struct link *l = &p->l;
	struct ibv_mr *mr;
	unsigned int i;

	for (i = 0; i < p->rounds; i++) {
		CHECK_EQ(rdma_get_request(l->listen, &l->server), 0);
		memset(l->in, 0, 64);
		mr = rdma_reg_msgs(l->server, l->in, 64);
		CHECK(mr);
		CHECK_EQ(rdma_post_recv(l->server, NULL, l->in, 64, mr), 0);
		CHECK_EQ(rdma_accept(l->server, NULL), 0);
		expect_recv(l->server, 64);
		CHECK_EQ(filled(l->in, 64, i), -1);
		CHECK_EQ(rdma_disconnect(l->server), 0);
		CHECK_EQ(rdma_dereg_mr(mr), 0);
		rdma_destroy_ep(l->server);
	}
	return NULL;
}

static void *connect_again(void *arg)
{
	struct pair *p = arg;
	struct link *l = &p->l;
	struct ibv_mr *mr;
	unsigned int i;

	for (i = 0; i < p->rounds; i++) {
		make_client(l);
		fill(l->out, 64, i);
		mr = rdma_reg_msgs(l->client, l->out, 64);
		CHECK(mr);
		CHECK_EQ(rdma_connect(l->client, NULL), 0);
		CHECK_EQ(rdma_post_send(l->client, NULL, l->out, 64, mr, 0), 0);
		expect_send(l->client, IBV_WC_SUCCESS);
		CHECK_EQ(rdma_disconnect(l->client), 0);
		CHECK_EQ(rdma_dereg_mr(mr), 0);
		rdma_destroy_ep(l->client);
	}
	return NULL;
}

static void connect_pairs(void *arg, unsigned int rounds)
{
	struct pair *pairs = arg, *p;

	for (p = pairs; p < pairs + PAIRS; p++) {
		p->rounds = rounds / PAIRS;
		CHECK_EQ(pthread_create(&p->server, NULL, serve_again, p), 0);
		CHECK_EQ(pthread_create(&p->client, NULL, connect_again, p), 0);
	}
	for (p = pairs; p < pairs + PAIRS; p++) {
		CHECK_EQ(pthread_join(p->client, NULL), 0);
		CHECK_EQ(pthread_join(p->server, NULL), 0);
	}
}

/* Resolve, connect, a message, disconnect, destroy, without a reject. */
static void connections(const void *arg)
{
	static struct pair pairs[PAIRS];
	int i;

	for (i = 0; i < PAIRS; i++)
		listen_at(&pairs[i].l, i);
	expect_flat(connect_pairs, pairs,
		    t_rounds(*(const unsigned int *)arg));
	for (i = 0; i < PAIRS; i++)
		rdma_destroy_ep(pairs[i].l.listen);
}

static const struct t_case cases[] = {
	{ "messages", messages, NULL, 0 },
	{ "reg_read", reg_read, NULL, 0 },
	{ "reg_write", reg_write, NULL, 0 },
	{ "key_is_gone", key_is_gone, NULL, 0 },
	{ "busy", busy, NULL, 0 },
	{ "pd_is_busy", pd_is_busy, NULL, 0 },
	{ "orders", orders, NULL, 0 },
	{ "handle_is_gone", gone, NULL, 0 },
	{ "ids", ids, NULL, 0 },
	{ "endpoints", endpoints, NULL, 0 },
	{ "default_pd", default_pd, NULL, 0 },
	{ "af_ib", af_ib, NULL, 0 },
	{ "endpoints_again", endpoints_again, &few, 60 },
	{ "reconnect", connections, &few, 60 },
	{ "many_create_ep", endpoints_again, &many, 150 },
	{ "many_connections", connections, &many, 250 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
