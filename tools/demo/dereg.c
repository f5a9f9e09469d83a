// SPDX-License-Identifier: GPL-2.0
/*
 * dereg.c - a region, a window, and what deregistration says and does
 *
 * Usage: dereg DEVICE GID-INDEX
 *
 * Two RC queue pairs of this process are connected to each other: "the peer"
 * writes, the other one owns the memory.  Each step says what is done and what
 * has to come of it; the exit status is 0 if all came so.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#define REGION_BYTES	4096
#define WINDOW_BYTES	64
#define TEXT_BYTES	16
#define PSN		0x1234

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static union ibv_gid gid;
static int gid_index;
static struct ibv_qp *owner_qp, *peer_qp;

static char *region;			/* what the story is about */
static char text[TEXT_BYTES];		/* what the peer sends */
static struct ibv_mr *text_mr;

static __attribute__((noreturn, format(printf, 1, 2)))
void wrong(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("   WRONG: ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
	exit(1);
}

static __attribute__((format(printf, 1, 2)))
void step(const char *format, ...)
{
	static int number;
	va_list args;

	va_start(args, format);
	printf("\n%d. ", ++number);
	vprintf(format, args);
	printf("\n");
	va_end(args);
}

/* QPs */

static void to_rts(struct ibv_qp *qp, unsigned int dest)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ,
	};

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			  IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		wrong("cannot move a QP to INIT: %s", strerror(errno));
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = dest;
	attr.rq_psn = PSN;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 1;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = gid;
	attr.ah_attr.grh.sgid_index = gid_index;
	attr.ah_attr.grh.hop_limit = 1;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV |
			  IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		wrong("cannot move a QP to RTR: %s", strerror(errno));
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.sq_psn = PSN;
	attr.max_rd_atomic = 1;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
			  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		wrong("cannot move a QP to RTS: %s", strerror(errno));
}

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {
			.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	if (!qp)
		wrong("cannot create a QP: %s", strerror(errno));
	return qp;
}

/* A refusal moves both QPs to the error state: make two new ones. */
static void connect_peers(void)
{
	if (peer_qp && (ibv_destroy_qp(peer_qp) || ibv_destroy_qp(owner_qp)))
		wrong("cannot destroy the QPs: %s", strerror(errno));
	peer_qp = make_qp();
	owner_qp = make_qp();
	to_rts(peer_qp, owner_qp->qp_num);
	to_rts(owner_qp, peer_qp->qp_num);
}

static enum ibv_wc_status wait_completion(void)
{
	struct ibv_wc wc;
	int i, n;

	for (i = 0; i < 10000; i++) {
		n = ibv_poll_cq(cq, 1, &wc);
		if (n < 0)
			wrong("cannot poll the CQ");
		if (n)
			return wc.status;
		usleep(1000);
	}
	wrong("no completion in ten seconds");
}

/* The peer writes @words to the region at @offset through @key. */
static enum ibv_wc_status peer_writes(const char *words, int offset,
				      unsigned int key)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)text,
		.length = TEXT_BYTES,
		.lkey = text_mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma.remote_addr = (uintptr_t)region + offset,
		.wr.rdma.rkey = key,
	};

	memset(text, 0, TEXT_BYTES);
	strncpy(text, words, TEXT_BYTES - 1);
	if (ibv_post_send(peer_qp, &wr, &bad))
		wrong("cannot post the write: %s", strerror(errno));
	return wait_completion();
}

static void told(const char *words, unsigned int key,
		 enum ibv_wc_status status, const char *when, int offset)
{
	printf("   The peer writes \"%s\" with key 0x%08x: %s.\n"
	       "      The memory %s holds \"%.*s\".\n",
	       words, key, ibv_wc_status_str(status), when, TEXT_BYTES,
	       region + offset);
}

static void write_works(const char *words, int offset, unsigned int key)
{
	enum ibv_wc_status status = peer_writes(words, offset, key);

	told(words, key, status, "now", offset);
	if (status != IBV_WC_SUCCESS || strcmp(region + offset, words))
		wrong("this write had to work");
}

static void write_is_refused(const char *words, int offset, unsigned int key)
{
	char before[TEXT_BYTES];
	enum ibv_wc_status status;

	memcpy(before, region + offset, TEXT_BYTES);
	status = peer_writes(words, offset, key);
	told(words, key, status, "still", offset);
	if (status != IBV_WC_REM_ACCESS_ERR)
		wrong("this had to be a remote access error");
	if (memcmp(before, region + offset, TEXT_BYTES))
		wrong("the memory changed");
}

/* Bind @mw over the first @length bytes of the region; 0: unbind. */
static void bind_window(struct ibv_mw *mw, struct ibv_mr *mr, size_t length)
{
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = mr,
			.addr = length ? (uintptr_t)region : 0,
			.length = length,
			.mw_access_flags = length ? IBV_ACCESS_REMOTE_WRITE : 0,
		},
	};
	enum ibv_wc_status status;

	if (ibv_bind_mw(owner_qp, mw, &bind))
		wrong("cannot post the bind: %s", strerror(errno));
	status = wait_completion();
	if (status != IBV_WC_SUCCESS)
		wrong("the bind failed: %s", ibv_wc_status_str(status));
}

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	if (!context)
		wrong("cannot open the device %s", name);
	ibv_free_device_list(list);
	if (ibv_query_gid(context, 1, gid_index, &gid))
		wrong("no GID %d: %s", gid_index, strerror(errno));
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	if (!pd || !cq)
		wrong("cannot create a PD and a CQ: %s", strerror(errno));
	text_mr = ibv_reg_mr(pd, text, sizeof(text), IBV_ACCESS_LOCAL_WRITE);
	if (!text_mr)
		wrong("cannot register the peer's buffer: %s", strerror(errno));
}

static void close_device(void)
{
	int err = ibv_destroy_qp(peer_qp) | ibv_destroy_qp(owner_qp) |
		  ibv_dereg_mr(text_mr) | ibv_destroy_cq(cq);

	/* EBUSY if anything of the region were left in it */
	err |= ibv_dealloc_pd(pd);
	err |= ibv_close_device(context);
	if (err)
		wrong("something is still in use: %s", strerror(err));
}

int main(int argc, char **argv)
{
	unsigned int region_key, window_key;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	int err;

	if (argc != 3) {
		fprintf(stderr, "usage: %s DEVICE GID-INDEX\n", argv[0]);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	gid_index = atoi(argv[2]);
	open_device(argv[1]);
	connect_peers();
	region = aligned_alloc(4096, REGION_BYTES);
	if (!region)
		wrong("no memory");
	memset(region, 0, REGION_BYTES);

	step("Register %d bytes.  The region gets a key; who has the key may write.",
	     REGION_BYTES);
	mr = ibv_reg_mr(pd, region, REGION_BYTES,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_MW_BIND);
	if (!mr)
		wrong("cannot register: %s", strerror(errno));
	region_key = mr->rkey;
	write_works("region", 1024, region_key);

	step("Bind a memory window to the first %d bytes.  It has a key of its own.",
	     WINDOW_BYTES);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	if (!mw)
		wrong("cannot allocate a window: %s", strerror(errno));
	bind_window(mw, mr, WINDOW_BYTES);
	window_key = mw->rkey;
	write_works("window", 0, window_key);

	step("Deregister the region while the window stands on it.");
	err = ibv_dereg_mr(mr);
	printf("   ibv_dereg_mr: %s.\n", err ? strerror(err) : "done");
	if (err != EBUSY)
		wrong("this had to be EBUSY");
	printf("   The answer is no, and nothing has changed: both keys still work.\n");
	write_works("region again", 1024, region_key);
	write_works("window again", 0, window_key);

	step("Unbind the window, and deregister again.");
	bind_window(mw, mr, 0);
	err = ibv_dereg_mr(mr);
	printf("   ibv_dereg_mr: %s.\n", err ? strerror(err) : "done");
	if (err)
		wrong("this had to succeed");

	step("The keys are dead at once: the peer still has them, but cannot write.");
	write_is_refused("too late", 1024, region_key);
	connect_peers();
	write_is_refused("too late", 0, window_key);

	step("Give everything back.");
	err = ibv_dealloc_mw(mw);
	if (err)
		wrong("cannot free the window: %s", strerror(err));
	close_device();
	free(region);
	printf("   Done: window, QPs, CQ, PD, device.\n");
	return 0;
}
