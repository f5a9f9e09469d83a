// SPDX-License-Identifier: GPL-2.0
/*
 * reasons.c - each reason for which the device refuses, one case each
 *
 * A user provokes it, and finds it where it is promised: in the completion (where
 * there is one: the work request's own, at the end that the reason is about), in the
 * counter refused_NAME, in the diary and in the trace.  What hits a packet is provoked
 * by a peer made of a packet socket.  Other suites look at each reason's many forms.
 *
 * Nothing is cleaned up: the end of each case's process does it.
 *
 * Environment: suites/reasons.sh sets up both ends.
 */
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "peer.h"
#include "raw.h"
#include "rules.h"
#include "told.h"
#include "world.h"

#define PAGE 4096u

/* --- two QPs of the device, and a peer outside ------------------------------ */

static struct world w;

static void pair(const struct conf *conf)
{
	world_open(&w, conf, SIZE);
}

static void rc_pair(void)
{
	struct conf conf = conf_of(RC);

	pair(&conf);
}

static void ud_pair(void)
{
	struct conf conf = conf_of(UD);

	pair(&conf);
}

static struct op op_of(enum ibv_wr_opcode opcode)
{
	return (struct op){
		.opcode = opcode, .wr_id = 1, .laddr = w.mine.p, .len = 8,
		.lkey = w.mine.mr->lkey, .raddr = (uintptr_t)w.theirs.p,
		.rkey = w.theirs.mr->rkey, .compare = 1,
	};
}

static void refused(struct end *e, const struct op *op, enum ibv_wc_status status,
		    enum mrsoft_reason reason)
{
	OK(post(e, op));
	EXPECT_WC_WHY(e->scq, op->wr_id, status, reason);
}

static void refused_key(enum ibv_wr_opcode opcode, uint32_t rkey,
			enum mrsoft_reason reason)
{
	struct op op = op_of(opcode);

	op.rkey = rkey;
	refused(&w.a, &op, IBV_WC_REM_ACCESS_ERR, reason);
}

static struct ibv_mr *region(struct ibv_pd *pd, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, w.theirs.p, SIZE, access);

	CHECK(mr);
	return mr;
}

static struct ibv_mw *window(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(w.c->pd, IBV_MW_TYPE_2);

	CHECK(mw);
	return mw;
}

static void bind_ends(struct ibv_mw *mw, uint32_t rkey, struct ibv_mr *mr,
		      unsigned int access, enum ibv_wc_status status,
		      enum mrsoft_reason reason)
{
	struct ibv_wc wc;

	OK(post_bind(&w.b, mw, rkey, mr, w.theirs.p, PAGE, access));
	wc = NEXT_WC(w.b.scq);
	CHECK_EQ(wc.status, status);
	CHECK_EQ(wc.vendor_err, reason);
}

static void bind_ok(struct ibv_mw *mw)
{
	uint32_t rkey = ibv_inc_rkey(mw->rkey);

	bind_ends(mw, rkey, w.theirs.mr, IBV_ACCESS_REMOTE_READ, IBV_WC_SUCCESS,
		  MRSOFT_R_NONE);
	mw->rkey = rkey;
}

static void bind_refused(struct ibv_mr *mr, unsigned int access,
			 enum mrsoft_reason reason)
{
	struct ibv_mw *mw = window();

	bind_ends(mw, ibv_inc_rkey(mw->rkey), mr, access, IBV_WC_MW_BIND_ERR,
		  reason);
}

static struct peer *peer_of(enum ibv_qp_type type)
{
	static struct kind kind;

	kind.type = type;
	return peer_new(&kind);
}

/* --- keys ------------------------------------------------------------------- */

static void key_unknown(void)
{
	rc_pair();
	refused_key(IBV_WR_RDMA_WRITE, 0x7fffff01, MRSOFT_R_KEY_UNKNOWN);
}

static void key_stale(void)
{
	uint32_t rkey;

	rc_pair();
	rkey = w.theirs.mr->rkey;
	OK(ibv_dereg_mr(w.theirs.mr));
	refused_key(IBV_WR_RDMA_WRITE, rkey, MRSOFT_R_KEY_STALE);
}

static void key_invalid(void)
{
	struct ibv_mw *mw;

	rc_pair();
	mw = window();
	bind_ok(mw);
	DO(&w.b, .opcode = IBV_WR_LOCAL_INV, .rkey = mw->rkey);
	refused_key(IBV_WR_RDMA_READ, mw->rkey, MRSOFT_R_KEY_INVALID);
}

/* a window is no region */
static void key_kind(void)
{
	struct ibv_mw *mw;
	struct op op;

	rc_pair();
	mw = window();
	bind_ok(mw);
	op = op_of(IBV_WR_SEND);
	op.laddr = w.theirs.p;
	op.lkey = mw->rkey;
	refused(&w.b, &op, IBV_WC_LOC_PROT_ERR, MRSOFT_R_KEY_KIND);
}

static void wrong_pd(void)
{
	struct ibv_pd *pd;

	rc_pair();
	pd = ibv_alloc_pd(w.c->ibv);
	CHECK(pd);
	refused_key(IBV_WR_RDMA_WRITE, region(pd, MR_ALL)->rkey,
		    MRSOFT_R_WRONG_PD);
}

/* a window of type 2 is its QP's */
static void wrong_qp(void)
{
	struct conf conf = conf_of(RC);
	struct end x, y;
	struct ibv_mw *mw;
	struct op op;

	rc_pair();
	mw = window();
	bind_ok(mw);
	pair_new(w.c, &conf, &x, &y);
	op = op_of(IBV_WR_RDMA_READ);
	op.rkey = mw->rkey;
	refused(&x, &op, IBV_WC_REM_ACCESS_ERR, MRSOFT_R_WRONG_QP);
}

static void outside(void)
{
	struct op op;

	rc_pair();
	op = op_of(IBV_WR_RDMA_WRITE);
	op.raddr += SIZE - 7;
	refused(&w.a, &op, IBV_WC_REM_ACCESS_ERR, MRSOFT_R_OUTSIDE);
}

static void no_local_write(void)
{
	struct op op;

	rc_pair();
	op = op_of(IBV_WR_RDMA_READ);
	op.laddr = w.theirs.p;
	op.lkey = region(w.c->pd, IBV_ACCESS_REMOTE_READ)->lkey;
	refused(&w.a, &op, IBV_WC_LOC_PROT_ERR, MRSOFT_R_NO_LOCAL_WRITE);
}

static void without(enum ibv_wr_opcode opcode, int right,
		    enum mrsoft_reason reason)
{
	rc_pair();
	refused_key(opcode, region(w.c->pd, MR_ALL & ~right)->rkey, reason);
}

static void no_remote_read(void)
{
	without(IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ,
		MRSOFT_R_NO_REMOTE_READ);
}

static void no_remote_write(void)
{
	without(IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE,
		MRSOFT_R_NO_REMOTE_WRITE);
}

static void no_remote_atomic(void)
{
	without(IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC,
		MRSOFT_R_NO_REMOTE_ATOMIC);
}

static struct ring *raw_ring(void (*one)(void *arg))
{
	return send_ring(one, NULL);
}

static void one_send(void *arg)
{
	(void)arg;
	OK(post_recv(&w.b, 7, w.theirs.p, 8, w.theirs.mr->lkey));
	DO(&w.a, .opcode = IBV_WR_SEND, .laddr = w.mine.p, .len = 8,
	   .lkey = w.mine.mr->lkey);
	EXPECT_WC(w.b.rcq, 7, IBV_WC_SUCCESS);
}

static void refused_flush(enum ibv_wc_status status, enum mrsoft_reason reason,
			  uint8_t level)
{
	struct flush f = {
		.wr_id = 1, .addr = (uintptr_t)w.theirs.p, .length = 8,
		.rkey = w.theirs.mr->rkey, .type = FLUSH_GLOBAL, .level = level,
	};

	post_flush(&w.a, raw_ring(one_send), &f);
	EXPECT_WC_WHY(w.a.scq, 1, status, reason);
}

/* the region has not the right; where the kernel knows of it, its QP has */
static void no_remote_flush(void)
{
	struct conf conf = conf_of(RC);

	conf.access |= ACCESS_FLUSH_GLOBAL;
	pair(&conf);
	refused_flush(IBV_WC_REM_ACCESS_ERR, MRSOFT_R_NO_REMOTE_FLUSH,
		      FLUSH_RANGE);
}

static void page_absent(void)
{
	struct buf gone;
	struct op op;

	rc_pair();
	gone = buf_new(w.c->pd, SIZE, MR_ALL | IBV_ACCESS_ON_DEMAND);
	CHECK(!munmap(gone.p + PAGE, PAGE));
	op = op_of(IBV_WR_RDMA_WRITE);
	op.raddr = (uintptr_t)gone.p + PAGE;
	op.rkey = gone.mr->rkey;
	refused(&w.a, &op, IBV_WC_REM_ACCESS_ERR, MRSOFT_R_PAGE_ABSENT);
}

static void misaligned(void)
{
	struct conf conf = conf_of(RC);

	conf.ex = true;
	pair(&conf);
	ibv_wr_start(w.a.qpx);
	w.a.qpx->wr_id = 1;
	w.a.qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_fetch_add(w.a.qpx, w.theirs.mr->rkey,
				(uintptr_t)w.theirs.p + 4, 1);
	ibv_wr_set_sge(w.a.qpx, w.mine.mr->lkey, (uintptr_t)w.mine.p, 8);
	OK(ibv_wr_complete(w.a.qpx));
	EXPECT_WC_WHY(w.a.scq, 1, IBV_WC_REM_INV_REQ_ERR, MRSOFT_R_MISALIGNED);
}

/* --- windows ---------------------------------------------------------------- */

static void no_mw_bind(void)
{
	rc_pair();
	bind_refused(region(w.c->pd, REMOTE_ALL), IBV_ACCESS_REMOTE_READ,
		     MRSOFT_R_NO_MW_BIND);
}

/* a zero-based window is of type 2; librxe knows that, and is passed by */
static void mw_type(void)
{
	struct ibv_mw *mw;

	rc_pair();
	mw = ibv_alloc_mw(w.c->pd, IBV_MW_TYPE_1);
	CHECK(mw);
	bind_ends(mw, ibv_inc_rkey(mw->rkey), w.theirs.mr,
		  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED,
		  IBV_WC_MW_BIND_ERR, MRSOFT_R_MW_TYPE);
}

static void mw_bound(void)
{
	struct ibv_mw *mw;

	rc_pair();
	mw = window();
	bind_ok(mw);
	bind_ends(mw, ibv_inc_rkey(mw->rkey), w.theirs.mr, IBV_ACCESS_REMOTE_READ,
		  IBV_WC_MW_BIND_ERR, MRSOFT_R_MW_BOUND);
}

static void mw_rights(void)
{
	rc_pair();
	bind_refused(region(w.c->pd, IBV_ACCESS_MW_BIND), IBV_ACCESS_REMOTE_WRITE,
		     MRSOFT_R_MW_RIGHTS);
}

static void mr_busy(void)
{
	rc_pair();
	bind_ok(window());
	CHECK_EQ(ibv_dereg_mr(w.theirs.mr), EBUSY);
}

/* --- work requests ---------------------------------------------------------- */

/* what librxe would never write: a level of FLUSH that the IBA does not have */
static void ring_entry(void)
{
	rc_pair();
	refused_flush(IBV_WC_LOC_QP_OP_ERR, MRSOFT_R_RING_ENTRY, 3);
}

/* UC has no FLUSH */
static void opcode(void)
{
	struct conf conf = conf_of(UC);

	pair(&conf);
	refused_flush(IBV_WC_LOC_QP_OP_ERR, MRSOFT_R_OPCODE, FLUSH_RANGE);
}

static void msg_too_long(void)
{
	struct op op;

	ud_pair();
	op = op_of(IBV_WR_SEND);
	op.len = (128u << w.c->mtu) + 1;
	refused(&w.a, &op, IBV_WC_LOC_LEN_ERR, MRSOFT_R_MSG_TOO_LONG);
}

static void recv_too_short(void)
{
	struct op op;

	rc_pair();
	op = op_of(IBV_WR_SEND);
	OK(post_recv(&w.b, 2, w.theirs.p, 7, w.theirs.mr->lkey));
	refused(&w.a, &op, IBV_WC_REM_INV_REQ_ERR, MRSOFT_R_RECV_TOO_SHORT);
	EXPECT_WC_WHY(w.b.rcq, 2, IBV_WC_LOC_LEN_ERR, MRSOFT_R_RECV_TOO_SHORT);
}

/* The sender of a datagram is never told. */
static void no_recv(void)
{
	struct op op;

	ud_pair();
	op = op_of(IBV_WR_SEND);
	OK(post(&w.a, &op));
	EXPECT_WC(w.a.scq, 1, IBV_WC_SUCCESS);
}

/* its address handle is gone when the QP comes to it */
static void ah(void)
{
	struct conf conf = conf_of(UD);
	struct op op;

	pair(&conf);
	op = op_of(IBV_WR_SEND);
	OK(ibv_destroy_ah(w.a.ah));
	refused(&w.a, &op, IBV_WC_LOC_QP_OP_ERR, MRSOFT_R_AH);
}

static void cq_overflow(void)
{
	struct conf conf = conf_of(RC);
	struct op op;
	int i;

	conf.cqe = 1;
	pair(&conf);
	op = op_of(IBV_WR_RDMA_WRITE);
	/* the core may have given more than was asked for */
	for (i = 0; i <= w.a.scq->cqe; i++)
		OK(post(&w.a, &op));
	EXPECT_EVENT(w.c, IBV_EVENT_CQ_ERR, w.a.scq);
}

static void flushed(void)
{
	struct op op;

	rc_pair();
	OK(end_to(&w.a, IBV_QPS_ERR));
	op = op_of(IBV_WR_RDMA_WRITE);
	refused(&w.a, &op, IBV_WC_WR_FLUSH_ERR, MRSOFT_R_FLUSHED);
}

/* --- connections ------------------------------------------------------------ */

static void qp_access(void)
{
	struct conf conf = conf_of(RC);
	struct op op;

	conf.access &= ~IBV_ACCESS_REMOTE_WRITE;
	pair(&conf);
	op = op_of(IBV_WR_RDMA_WRITE);
	refused(&w.a, &op, IBV_WC_REM_INV_REQ_ERR, MRSOFT_R_QP_ACCESS);
}

static void sh(const char *command)
{
	if (system(command))
		t_fail(__FILE__, __LINE__, "%s", command);
}

/* the route goes while the address handle is there */
static void no_path(void)
{
	struct ibv_ah_attr to = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = { .raw = { [10] = 0xff, 0xff, 198, 51, 100, 7 } },
			 .hop_limit = 64 },
	};
	struct op op;

	ud_pair();
	to.grh.sgid_index = w.c->gid_index;
	sh("ip route add 198.51.100.7/32 via 10.78.0.2 dev pk0");
	OK(ibv_destroy_ah(w.a.ah));
	w.a.ah = ibv_create_ah(w.c->pd, &to);
	CHECK(w.a.ah);
	sh("ip route del 198.51.100.7/32");
	op = op_of(IBV_WR_SEND);
	OK(post(&w.a, &op));
	EXPECT_WC(w.a.scq, 1, IBV_WC_SUCCESS);
}

static void no_peer(void)
{
	struct op op;

	ud_pair();
	w.a.peer_qpn = 0x777777;
	op = op_of(IBV_WR_SEND);
	OK(post(&w.a, &op));
	EXPECT_WC(w.a.scq, 1, IBV_WC_SUCCESS);
}

static void peer_state(void)
{
	struct peer *p = peer_of(RC);

	OK(end_to(&p->e, IBV_QPS_ERR));
	say_send(p, "12345678", 8);
}

static void psn(void)
{
	struct peer *p = peer_of(RC);

	say(p, SEND_ONLY, psn_add(p->psn, 1), NULL, 0, "12345678", 8);
	expect_aeth(p, p->psn, 0x60 | NAK_PSN);
}

static void qkey(void)
{
	struct ibv_qp_attr attr = { .qkey = UD_QKEY + 1 };
	struct op op;

	ud_pair();
	OK(ibv_modify_qp(w.b.qp, &attr, IBV_QP_QKEY));
	op = op_of(IBV_WR_SEND);
	OK(post(&w.a, &op));
	EXPECT_WC(w.a.scq, 1, IBV_WC_SUCCESS);
}

static void rnr_exceeded(void)
{
	struct conf conf = conf_of(RC);
	struct op op;

	conf.rnr_retry = 1;
	conf.min_rnr = 1;
	pair(&conf);
	op = op_of(IBV_WR_SEND);
	refused(&w.a, &op, IBV_WC_RNR_RETRY_EXC_ERR, MRSOFT_R_RNR_EXCEEDED);
}

/* a peer that hears and does not answer */
static void retry_exceeded(void)
{
	struct peer *p = peer_of(RC);
	struct ibv_qp_attr attr = { .timeout = 12, .retry_cnt = 1 };
	struct op op = { .opcode = IBV_WR_SEND, .wr_id = 1, .laddr = p->buf.p,
			 .len = 8, .lkey = p->buf.mr->lkey };

	OK(end_to(&p->e, IBV_QPS_RESET));
	p->e.conf.timeout = attr.timeout;
	p->e.conf.retry_cnt = attr.retry_cnt;
	peer_again(p);
	refused(&p->e, &op, IBV_WC_RETRY_EXC_ERR, MRSOFT_R_RETRY_EXCEEDED);
}

/* more READs at a time than the peer has said it can take */
static void read_depth(void)
{
	struct conf conf = conf_of(RC);
	struct op op;

	conf.dest_rd_atomic = 0;
	pair(&conf);
	op = op_of(IBV_WR_RDMA_READ);
	refused(&w.a, &op, IBV_WC_REM_INV_REQ_ERR, MRSOFT_R_READ_DEPTH);
}

static void port_down(void)
{
	struct op op;

	ud_pair();
	op = op_of(IBV_WR_SEND);
	sh("ip link set pk0 down");
	OK(post(&w.a, &op));
	EXPECT_WC(w.a.scq, 1, IBV_WC_SUCCESS);
}

/* The peer says no; why is not in a NAK. */
static void peer_refused(void)
{
	struct peer *p = peer_of(RC);
	struct op op = { .opcode = IBV_WR_SEND, .wr_id = 1, .laddr = p->buf.p,
			 .len = 8, .lkey = p->buf.mr->lkey };

	OK(post(&p->e, &op));
	expect_request(p, SEND_ONLY, p->sq_psn);
	say_answer(p, ACKNOWLEDGE, p->sq_psn, 0x60 | NAK_ACCESS, NULL, 0);
	EXPECT_WC_WHY(p->e.scq, 1, IBV_WC_REM_ACCESS_ERR, MRSOFT_R_PEER_REFUSED);
}

/* Somebody has asked for it: testing-your-app.rst. */
static void injected(void)
{
	struct op op;

	rc_pair();
	rule_add("nak qp=%u code=access\n", w.b.qp->qp_num);
	op = op_of(IBV_WR_RDMA_WRITE);
	refused(&w.a, &op, IBV_WC_REM_ACCESS_ERR, MRSOFT_R_INJECTED);
	rules_clear();
}

/* --- packets: none completes anything --------------------------------------- */

static void bad_packet(void (*spoil)(struct frame *f), bool sealed)
{
	struct peer *p = peer_of(RC);
	struct frame f;

	frame_of_send(p, &f, "12345678", 8);
	spoil(&f);
	if (!sealed)
		seal(&f);
	frame_send(p, &f);
	works(p);
}

static void other_pkey(struct frame *f)
{
	f->b[f->bth + 3] = 0xfe;
}

static void pkey(void)
{
	bad_packet(other_pkey, false);
}

static void half_bth(struct frame *f)
{
	f->len = f->bth + 8;
}

static void pkt_length(void)
{
	bad_packet(half_bth, false);
}

static void version_1(struct frame *f)
{
	f->b[f->bth + 1] |= 1;
}

static void pkt_header(void)
{
	bad_packet(version_1, false);
}

static void one_bit(struct frame *f)
{
	f->b[f->len - 1] ^= 1;
}

static void pkt_icrc(void)
{
	bad_packet(one_bit, true);
}

/* of UC, and the QP is one of RC */
static void uc_opcode(struct frame *f)
{
	f->b[f->bth] = 0x20 | SEND_ONLY;
}

static void pkt_opcode(void)
{
	bad_packet(uc_opcode, false);
}

static void other_source(struct frame *f)
{
	f->b[f->udp - 5] ^= 4;
}

static void pkt_source(void)
{
	bad_packet(other_source, false);
}

/* a MIDDLE that no FIRST came before */
static void pkt_order(void)
{
	struct peer *p = peer_of(RC);
	uint8_t bytes[MTU] = {};

	OK(post_recv(&p->e, 1, p->buf.p, SIZE, p->buf.mr->lkey));
	say(p, 0x01, p->psn, NULL, 0, bytes, MTU);
	expect_nak(p, p->psn, NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR);
}

/* How all ksoftirqd run. */
static void softirqs_run(int policy, int priority)
{
	struct sched_param param = { .sched_priority = priority };
	char comm[32] = "";
	glob_t files;
	size_t i;

	CHECK(!glob("/proc/[0-9]*/comm", GLOB_NOSORT, NULL, &files));
	for (i = 0; i < files.gl_pathc; i++) {
		FILE *f = fopen(files.gl_pathv[i], "r");

		if (f && fgets(comm, sizeof(comm), f) &&
		    !strncmp(comm, "ksoftirqd/", 10))
			CHECK(!sched_setscheduler(atoi(files.gl_pathv[i] + 6),
						  policy, &param));
		if (f)
			fclose(f);
	}
	globfree(&files);
}

static void *flood(void *arg)
{
	static const uint8_t deth[8] = { 0x11, 0x22, 0x33, 0x44, [7] = 1 };
	struct sched_param first = { .sched_priority = 1 };
	struct peer *p = arg;
	int i;

	CHECK(!sched_setscheduler(0, SCHED_FIFO, &first));
	for (i = 0; i < 5000; i++)
		say(p, UD_SEND_ONLY, i, deth, 8, deth, 8);
	return NULL;
}

/*
 * Real-time threads take all CPUs, so that packets come and the QP's worker does not
 * get on.
 */
static void pkt_queue(void)
{
	long i, n = sysconf(_SC_NPROCESSORS_ONLN);
	struct peer *p = peer_of(UD);
	pthread_t threads[16];

	CHECK(n > 0 && n <= (long)ARRAY_SIZE(threads));
	sh("echo -1 >/proc/sys/kernel/sched_rt_runtime_us");
	softirqs_run(SCHED_FIFO, 2);
	for (i = 0; i < n; i++)
		OK(pthread_create(&threads[i], NULL, flood, p));
	for (i = 0; i < n; i++)
		OK(pthread_join(threads[i], NULL));
	softirqs_run(SCHED_OTHER, 0);
	sh("echo 950000 >/proc/sys/kernel/sched_rt_runtime_us");
}

/* --- where it is found ------------------------------------------------------ */

struct row {
	const char *name;
	enum mrsoft_reason reason;
	void (*provoke)(void);
	bool no_diary;	/* work that a QP in ERR gives back is no refusal */
};

static unsigned long long last_entry(enum mrsoft_reason reason)
{
	unsigned long long seq = 0;
	struct diary_line line;
	FILE *f = told_open("diary");

	while (diary_next(f, &line))
		if (!reason || line.reason == (int)reason)
			seq = line.seq;
	fclose(f);
	return seq;
}

static void found(const void *arg)
{
	const struct row *row = arg;
	uint64_t end = t_now() + t_patience();
	unsigned long long seq = last_entry(0);
	struct counts before, now;
	char words[32];

	tracing_set("trace", "");
	tracing_set("events/mrsoft/mrsoft_refuse/enable", "1");
	read_counts(&before);
	row->provoke();
	do {
		t_sleep(1);
		read_counts(&now);
	} while (now.v[row->reason] == before.v[row->reason] && t_now() < end);
	CHECK(now.v[row->reason] > before.v[row->reason]);
	CHECK_EQ(last_entry(row->reason) > seq, !row->no_diary);
	snprintf(words, sizeof(words), " refused (%d): ", row->reason);
	CHECK_EQ(traced(words), !row->no_diary);
}

#define ROW(name, NAME) { #name, MRSOFT_R_##NAME, name, false }

static const struct row rows[] = {
	ROW(key_unknown, KEY_UNKNOWN),
	ROW(key_stale, KEY_STALE),
	ROW(key_invalid, KEY_INVALID),
	ROW(key_kind, KEY_KIND),
	ROW(wrong_pd, WRONG_PD),
	ROW(wrong_qp, WRONG_QP),
	ROW(outside, OUTSIDE),
	ROW(no_local_write, NO_LOCAL_WRITE),
	ROW(no_remote_read, NO_REMOTE_READ),
	ROW(no_remote_write, NO_REMOTE_WRITE),
	ROW(no_remote_atomic, NO_REMOTE_ATOMIC),
	ROW(page_absent, PAGE_ABSENT),
	ROW(misaligned, MISALIGNED),
	ROW(no_mw_bind, NO_MW_BIND),
	ROW(mw_type, MW_TYPE),
	ROW(mw_bound, MW_BOUND),
	ROW(mw_rights, MW_RIGHTS),
	ROW(mr_busy, MR_BUSY),
	ROW(ring_entry, RING_ENTRY),
	ROW(opcode, OPCODE),
	ROW(msg_too_long, MSG_TOO_LONG),
	ROW(recv_too_short, RECV_TOO_SHORT),
	ROW(no_recv, NO_RECV),
	ROW(ah, AH),
	ROW(cq_overflow, CQ_OVERFLOW),
	{ "flushed", MRSOFT_R_FLUSHED, flushed, true },
	ROW(qp_access, QP_ACCESS),
	ROW(no_path, NO_PATH),
	ROW(no_peer, NO_PEER),
	ROW(peer_state, PEER_STATE),
	ROW(psn, PSN),
	ROW(qkey, QKEY),
	ROW(rnr_exceeded, RNR_EXCEEDED),
	ROW(retry_exceeded, RETRY_EXCEEDED),
	ROW(read_depth, READ_DEPTH),
	ROW(peer_refused, PEER_REFUSED),
	ROW(injected, INJECTED),
	ROW(pkey, PKEY),
	ROW(pkt_length, PKT_LENGTH),
	ROW(pkt_header, PKT_HEADER),
	ROW(pkt_icrc, PKT_ICRC),
	ROW(pkt_opcode, PKT_OPCODE),
	ROW(pkt_source, PKT_SOURCE),
	ROW(pkt_order, PKT_ORDER),
	ROW(pkt_queue, PKT_QUEUE),
	ROW(no_remote_flush, NO_REMOTE_FLUSH),
	/* the last: the peer is gone */
	ROW(port_down, PORT_DOWN),
};

/* A new reason wants a case here. */
static void all(const void *arg)
{
	bool has[MRSOFT_R_COUNT] = { [MRSOFT_R_NONE] = true };
	int reason;
	size_t i;

	(void)arg;
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		has[rows[i].reason] = true;
	for (reason = 0; reason < MRSOFT_R_COUNT; reason++)
		if (!has[reason])
			t_fail(__FILE__, __LINE__, "reason %d", reason);
}

int main(int argc, char **argv)
{
	struct t_case cases[ARRAY_SIZE(rows) + 1] = { { "all", all, NULL, 0 } };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		cases[i + 1] = (struct t_case){ rows[i].name, found, &rows[i], 0 };
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
