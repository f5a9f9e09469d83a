// SPDX-License-Identifier: GPL-2.0
/*
 * fault_kunit.c - what a failure looks like: DESIGN.md section 6, row by row
 *
 * For each fault: the requester's completion and its vendor_err, the
 * responder's completion or event, the states afterwards, and what became of
 * the work requests behind it.  Unless said otherwise the request that fails was
 * not signalled: an error completes all the same.
 */
#include "engine_kunit.h"

#define LEN	100

/* --- keys ----------------------------------------------------------------- */

enum bad_key {
	UNKNOWN,	/* never given to anybody */
	GONE,		/* of a region that was deregistered */
	VARIANT,	/* the low byte is another one */
	NOT_VALID,	/* of a region that is not registered */
	OTHER_PD,
	NO_RIGHT,
	OUTSIDE,
	WINDOW,		/* as an lkey */
};

static const struct key_row {
	const char *name;
	enum bad_key kind;
	enum mrsoft_reason reason;	/* NO_RIGHT: depends on the operation */
} key_rows[] = {
	{ "unknown", UNKNOWN, MRSOFT_R_KEY_UNKNOWN },
	{ "gone", GONE, MRSOFT_R_KEY_STALE },
	{ "variant", VARIANT, MRSOFT_R_KEY_STALE },
	{ "not valid", NOT_VALID, MRSOFT_R_KEY_INVALID },
	{ "other pd", OTHER_PD, MRSOFT_R_WRONG_PD },
	{ "no right", NO_RIGHT, MRSOFT_R_COUNT },
	{ "outside", OUTSIDE, MRSOFT_R_OUTSIDE },
};

KUNIT_ARRAY_PARAM_DESC(key, key_rows, name);

/* A key of @end that is bad for LEN bytes at IOVA; @rights are missing. */
static u32 bad_key(struct end *end, enum bad_key kind, int rights)
{
	struct mrsoft_mr *mr = end->mr;
	u32 key;

	switch (kind) {
	case UNKNOWN:
		key = (end->hca.keys.next + 1000) & MRSOFT_KEY_INDEX_MAX;
		return (key ? key : 5) << 8 | 0x12;
	case GONE:
		mr = new_mr(end, 0, end->buf, BUF, IOVA, ALL);
		key = mr->key.key;
		KUNIT_EXPECT_EQ(end->test, drop_mr(end, mr), 0);
		return key;
	case VARIANT:
		return ib_inc_rkey(mr->key.key);
	case NOT_VALID:
		return new_mr(end, 0, end->buf, BUF, IOVA, 0)->key.key;
	case OTHER_PD:
		return new_mr(end, 1, end->buf, BUF, IOVA, ALL)->key.key;
	case NO_RIGHT:
		/* remote write and atomic need local write: take those, too */
		if (rights & IB_ACCESS_LOCAL_WRITE)
			rights |= IB_ACCESS_REMOTE_WRITE |
				  IB_ACCESS_REMOTE_ATOMIC;
		return new_mr(end, 0, end->buf, BUF, IOVA,
			      (ALL & ~rights) | IB_ACCESS_MW_BIND)->key.key;
	default:
		return new_mr(end, 0, end->buf, LEN - 1, IOVA, ALL)->key.key;
	}
}

static bool is_atomic(u32 op)
{
	return op == IB_WR_ATOMIC_CMP_AND_SWP ||
	       op == IB_WR_ATOMIC_FETCH_AND_ADD;
}

static u32 length_of(u32 op)
{
	return is_atomic(op) || op == IB_WR_ATOMIC_WRITE ? 8 : LEN;
}

/* A request that would succeed. */
static struct post good(struct engine *eng, u32 op)
{
	struct end *a = &eng->end[0], *b = &eng->end[1];

	return (struct post){
		.op = op, .wr_id = 1, .addr = (void *)(uintptr_t)IOVA,
		.len = length_of(op), .lkey = a->mr->key.key, .raddr = IOVA,
		.rkey = b->mr->key.key, .ex = b->mr->key.key,
		.qpn = b->qp.qpn, .qkey = QKEY,
	};
}

static void give_ah(struct engine *eng, struct post *p)
{
	struct mrsoft_ah *ah = kunit_kzalloc(eng->end[0].test, sizeof(*ah),
					     GFP_KERNEL);
	struct ib_qp_attr attr = {};

	KUNIT_ASSERT_NOT_NULL(eng->end[0].test, ah);
	spin_lock_init(&ah->lock);
	set_address(&attr, &eng->end[0], &eng->end[1]);
	mrsoft_av_set(&ah->av, &attr.ah_attr);
	p->ah = &ah->ib;
}

/* Posts @p and two harmless ones behind it. */
static void post_with_followers(struct engine *eng, const struct post *p)
{
	struct post next = good(eng, IB_WR_SEND);
	struct end *a = &eng->end[0];
	int i;

	next.ah = p->ah;
	next.len = 0;
	KUNIT_ASSERT_EQ(a->test, post_send(a, p), 0);
	for (i = 2; i <= 3; i++) {
		next.wr_id = i;
		next.flags = i == 2 ? SIG : 0;
		KUNIT_ASSERT_EQ(a->test, post_send(a, &next), 0);
	}
}

static void expect_flushed_sends(struct end *a)
{
	struct ib_wc wc;
	int i;

	for (i = 2; i <= 3; i++) {
		wc = expect_send(a, i, IB_WC_WR_FLUSH_ERR);
		KUNIT_EXPECT_EQ(a->test, wc.vendor_err, (u32)MRSOFT_R_FLUSHED);
	}
}

static void expect_events(struct end *end, int access, int request)
{
	KUNIT_EXPECT_EQ(end->test, events(end, IB_EVENT_QP_ACCESS_ERR), access);
	KUNIT_EXPECT_EQ(end->test, events(end, IB_EVENT_QP_REQ_ERR), request);
	KUNIT_EXPECT_EQ(end->test, events(end, IB_EVENT_QP_FATAL), 0);
}

/* --- the requester's own key ---------------------------------------------- */

static enum mrsoft_reason local_reason(const struct key_row *row)
{
	return row->kind == NO_RIGHT ? MRSOFT_R_NO_LOCAL_WRITE : row->reason;
}

static void local_fault(struct kunit *test, const struct key_row *row,
			enum ib_qp_type type, u32 op)
{
	struct engine *eng = engine_create(test, type);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = good(eng, op);
	struct ib_wc wc;

	p.lkey = bad_key(a, row->kind, IB_ACCESS_LOCAL_WRITE);
	if (row->kind == OUTSIDE)
		p.addr += LEN - length_of(op);
	if (is_datagram(&a->qp))
		give_ah(eng, &p);
	post_recv(b, 7, b->buf, LEN + 40);
	post_with_followers(eng, &p);

	wc = expect_send(a, 1, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ_MSG(test, wc.vendor_err, (u32)local_reason(row),
			    "op %u", op);
	KUNIT_EXPECT_EQ(test, wc.byte_len, 0u);
	expect_flushed_sends(a);
	KUNIT_EXPECT_EQ(test, state_of(a), type == IB_QPT_RC ? IB_QPS_ERR :
							       IB_QPS_SQE);
	/* the responder sees nothing */
	expect_silence(eng);
	KUNIT_EXPECT_EQ(test, state_of(b), IB_QPS_RTS);
	expect_events(b, 0, 0);
	KUNIT_EXPECT_EQ(test, mrsoft_rq_pending(&b->qp.rq), 1u);
	KUNIT_EXPECT_TRUE(test, untouched(b->buf, BUF));
	KUNIT_EXPECT_GT(test, refusals(a, local_reason(row)), 0);
	engine_end(test);
}

static void fault_local_key(struct kunit *test)
{
	const struct key_row *row = test->param_value;

	/* a source needs no right */
	if (row->kind != NO_RIGHT) {
		local_fault(test, row, IB_QPT_RC, IB_WR_SEND);
		local_fault(test, row, IB_QPT_RC, IB_WR_RDMA_WRITE);
		local_fault(test, row, IB_QPT_UC, IB_WR_SEND);
		local_fault(test, row, IB_QPT_UC, IB_WR_RDMA_WRITE_WITH_IMM);
		local_fault(test, row, IB_QPT_UD, IB_WR_SEND);
	}
	local_fault(test, row, IB_QPT_RC, IB_WR_RDMA_READ);
	local_fault(test, row, IB_QPT_RC, IB_WR_ATOMIC_CMP_AND_SWP);
	local_fault(test, row, IB_QPT_RC, IB_WR_ATOMIC_FETCH_AND_ADD);
}

/* The last of four sges; and a window's key, which is no lkey. */
static void fault_local_list(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct ib_sge sges[4];
	struct post p = good(eng, IB_WR_RDMA_WRITE);
	int i;

	for (i = 0; i < 4; i++)
		sges[i] = (struct ib_sge){ IOVA + i, 10, a->mr->key.key };
	sges[3].lkey = bad_key(a, GONE, 0);
	p.sges = sges;
	p.num_sge = 4;
	post_with_followers(eng, &p);
	expect_send(a, 1, IB_WC_LOC_PROT_ERR);
	expect_flushed_sends(a);
	expect_silence(eng);
	/* not one byte before the whole list was looked at */
	KUNIT_EXPECT_TRUE(test, untouched(b->buf, BUF));
}

/* Both keys are wrong: the own one is reported. */
static void fault_both_keys(struct kunit *test)
{
	static const u32 ops[] = {
		IB_WR_RDMA_WRITE, IB_WR_RDMA_READ, IB_WR_ATOMIC_FETCH_AND_ADD,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		struct engine *eng = engine_create(test, IB_QPT_RC);
		struct end *a = &eng->end[0], *b = &eng->end[1];
		struct post p = good(eng, ops[i]);

		p.lkey = bad_key(a, GONE, 0);
		p.rkey = bad_key(b, GONE, 0);
		KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
		expect_send(a, 1, IB_WC_LOC_PROT_ERR);
		expect_silence(eng);
		KUNIT_EXPECT_EQ(test, state_of(b), IB_QPS_RTS);
		engine_end(test);
	}
}

/* --- the rkey ------------------------------------------------------------- */

static enum mrsoft_reason remote_reason(const struct key_row *row, u32 op)
{
	if (row->kind != NO_RIGHT)
		return row->reason;
	if (op == IB_WR_RDMA_READ)
		return MRSOFT_R_NO_REMOTE_READ;
	return is_atomic(op) ? MRSOFT_R_NO_REMOTE_ATOMIC :
			       MRSOFT_R_NO_REMOTE_WRITE;
}

static int right_of(u32 op)
{
	if (op == IB_WR_RDMA_READ)
		return IB_ACCESS_REMOTE_READ;
	return is_atomic(op) ? IB_ACCESS_REMOTE_ATOMIC : IB_ACCESS_REMOTE_WRITE;
}

static void remote_fault(struct kunit *test, const struct key_row *row, u32 op)
{
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = good(eng, op);
	struct ib_wc wc;

	p.rkey = bad_key(b, row->kind, right_of(op));
	/* of a word: 8 bytes on 8 that are not all inside */
	if (row->kind == OUTSIDE && length_of(op) == 8)
		p.raddr += 96;
	post_recv(b, 7, b->buf, LEN);
	post_with_followers(eng, &p);

	wc = expect_send(a, 1, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ_MSG(test, wc.vendor_err, (u32)remote_reason(row, op),
			    "op %u", op);
	expect_flushed_sends(a);
	/* no completion of its own, an event, and what is posted is flushed */
	expect_recv(b, 7, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_TRUE(test, wait_state(b, IB_QPS_ERR));
	expect_silence(eng);
	expect_events(b, 1, 0);
	expect_events(a, 0, 0);
	KUNIT_EXPECT_EQ(test, state_of(a), IB_QPS_ERR);
	KUNIT_EXPECT_TRUE(test, untouched(b->buf, BUF));
	KUNIT_EXPECT_TRUE(test, untouched(a->buf, BUF));
	KUNIT_EXPECT_GT(test, refusals(b, remote_reason(row, op)), 0);
	engine_end(test);
}

static void fault_remote_key(struct kunit *test)
{
	const struct key_row *row = test->param_value;

	remote_fault(test, row, IB_WR_RDMA_WRITE);
	remote_fault(test, row, IB_WR_RDMA_WRITE_WITH_IMM);
	remote_fault(test, row, IB_WR_ATOMIC_WRITE);
	remote_fault(test, row, IB_WR_RDMA_READ);
	remote_fault(test, row, IB_WR_ATOMIC_CMP_AND_SWP);
	remote_fault(test, row, IB_WR_ATOMIC_FETCH_AND_ADD);
}

/* IBA 9.9.3: UC drops it, keeps the receive WQE, and nobody is told. */
static void fault_remote_key_uc(struct kunit *test)
{
	const struct key_row *row = test->param_value;
	struct engine *eng = engine_create(test, IB_QPT_UC);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = good(eng, IB_WR_RDMA_WRITE_WITH_IMM);

	p.rkey = bad_key(b, row->kind, IB_ACCESS_REMOTE_WRITE);
	p.flags = SIG;
	post_recv(b, 7, NULL, 0);
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	expect_send(a, 1, IB_WC_SUCCESS);
	expect_silence(eng);
	KUNIT_EXPECT_TRUE(test, untouched(b->buf, BUF));
	KUNIT_EXPECT_GT(test, refusals(b, remote_reason(row, p.op)), 0);
	p.rkey = b->mr->key.key;
	p.wr_id = 2;
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	expect_send(a, 2, IB_WC_SUCCESS);
	expect_recv(b, 7, IB_WC_SUCCESS);
	expect_events(b, 0, 0);
	KUNIT_EXPECT_EQ(test, state_of(b), IB_QPS_RTS);
}

/* --- the receive WQE's key ------------------------------------------------ */

static void recv_fault(struct kunit *test, const struct key_row *row,
		       enum ib_qp_type type)
{
	struct engine *eng = engine_create(test, type);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = good(eng, IB_WR_SEND);
	bool rc = type == IB_QPT_RC;
	struct ib_wc wc;
	u32 lkey = bad_key(b, row->kind, IB_ACCESS_LOCAL_WRITE);

	if (is_datagram(&a->qp)) {
		give_ah(eng, &p);
		p.len -= MRSOFT_GRH_BYTES;
	}
	p.flags = SIG;
	KUNIT_ASSERT_EQ(test, post_recv_key(b, 7, (void *)(uintptr_t)IOVA, LEN,
					    lkey), 0);
	post_recv(b, 8, b->buf, LEN);
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);

	wc = expect_send(a, 1, rc ? IB_WC_REM_OP_ERR : IB_WC_SUCCESS);
	if (rc)
		KUNIT_EXPECT_EQ(test, wc.vendor_err, (u32)local_reason(row));
	wc = expect_recv(b, 7, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, wc.vendor_err, (u32)local_reason(row));
	expect_recv(b, 8, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, state_of(a), rc ? IB_QPS_ERR : IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, state_of(b), IB_QPS_ERR);
	expect_silence(eng);
	expect_events(b, 0, 0);
	KUNIT_EXPECT_TRUE(test, untouched(b->buf, BUF));
	engine_end(test);
}

static void fault_recv_key(struct kunit *test)
{
	const struct key_row *row = test->param_value;

	recv_fault(test, row, IB_QPT_RC);
	recv_fault(test, row, IB_QPT_UC);
	recv_fault(test, row, IB_QPT_UD);
}

/* --- single faults -------------------------------------------------------- */

/*
 * @arrange makes the fault when the ends are connected, @early before, in their
 * attributes.  A status of the receive WQE that is 0 means that there is no
 * completion and that it is still posted.
 */
struct fault_row {
	const char *name;
	enum ib_qp_type type;
	u32 op;
	void (*early)(struct engine *eng);
	void (*arrange)(struct engine *eng, struct post *p);
	enum ib_wc_status status;
	enum mrsoft_reason reason;
	enum ib_wc_status recv;
	int req_err;
	enum ib_qp_state req_state;
	enum ib_qp_state resp_state;
};

static void long_message(struct engine *eng, struct post *p)
{
	p->len = LEN + 1;
}

static void unaligned(struct engine *eng, struct post *p)
{
	p->raddr += 4;
}

static void short_atomic(struct engine *eng, struct post *p)
{
	p->len = 4;
}

static void long_atomic(struct engine *eng, struct post *p)
{
	p->len = 16;
}

static void inline_read(struct engine *eng, struct post *p)
{
	p->flags |= IB_SEND_INLINE;
	p->addr = eng->end[0].buf;
	p->len = 8;
}

static void beyond_2g(struct engine *eng, struct post *p)
{
	p->len = (1u << 31) + 1;
}

static void beyond_mtu(struct engine *eng, struct post *p)
{
	p->len = 1025;
}

static void no_access(struct engine *eng)
{
	eng->attr.qp_access_flags = 0;
}

static void no_read_here(struct engine *eng)
{
	eng->attr.max_rd_atomic = 0;
}

static void no_read_there(struct engine *eng)
{
	eng->attr.max_dest_rd_atomic = 0;
}

static void take_recv_away(struct engine *eng)
{
	struct mrsoft_rwqe rwqe;

	KUNIT_EXPECT_TRUE(eng->end[1].test,
			  mrsoft_rq_take(&eng->end[1].qp.rq, NULL, &rwqe));
}

static void no_recv(struct engine *eng, struct post *p)
{
	take_recv_away(eng);
}

static void wrong_psn(struct engine *eng, struct post *p)
{
	eng->end[0].qp.sq.psn = 0x123;
}

static void wrong_qpn(struct engine *eng)
{
	eng->to[0] = 5;
}

static void not_to_us(struct engine *eng)
{
	eng->to[1] = 5;
}

static void peer_reset(struct engine *eng, struct post *p)
{
	KUNIT_EXPECT_EQ(eng->end[1].test, to_state(&eng->end[1], IB_QPS_RESET),
			0);
	post_recv(&eng->end[1], 7, eng->end[1].buf, LEN);
}

static void peer_error(struct engine *eng, struct post *p)
{
	take_recv_away(eng);
	KUNIT_EXPECT_EQ(eng->end[1].test, to_state(&eng->end[1], IB_QPS_ERR),
			0);
}

static void peer_gone(struct engine *eng, struct post *p)
{
	struct mrsoft_rq *rq = &eng->end[1].qp.rq;

	mrsoft_qp_unpublish(&eng->end[1].qp);
	KUNIT_EXPECT_EQ(eng->end[1].test, mrsoft_rq_pending(rq), 1u);
}

static void peer_other_type(struct engine *eng, struct post *p)
{
	eng->end[1].qp.type = IB_QPT_UC;
}

static void port_down(struct engine *eng, struct post *p)
{
	eng->end[0].hca.port_up = false;
}

static void peer_port_down(struct engine *eng, struct post *p)
{
	eng->end[1].hca.port_up = false;
}

static void other_namespace(struct engine *eng, struct post *p)
{
	eng->end[1].hca.net = eng;
}

static void not_local(struct engine *eng, struct post *p)
{
	/* nobody's address, or not any more */
	eng->end[0].qp.av.dgid.raw[15] ^= 0x80;
}

static void bad_invalidate(struct engine *eng, struct post *p)
{
	p->ex = bad_key(&eng->end[1], GONE, 0);
}

static void bad_local_invalidate(struct engine *eng, struct post *p)
{
	p->ex = bad_key(&eng->end[0], GONE, 0);
	p->len = 0;
}

static void reg_twice(struct engine *eng, struct post *p)
{
	p->mr = eng->end[0].mr;
	p->rkey = ib_inc_rkey(p->mr->key.key);
	p->access = IB_ACCESS_LOCAL_WRITE;
	p->len = 0;
}

/* A kernel consumer has no way to say what to bind: it names key 0. */
static void bind_nothing(struct engine *eng, struct post *p)
{
	p->len = 0;
}

#define RC	IB_QPT_RC
#define UC	IB_QPT_UC
#define UD	IB_QPT_UD
#define RTS	IB_QPS_RTS
#define ERR	IB_QPS_ERR
#define SQE	IB_QPS_SQE
#define FLUSH	IB_WC_WR_FLUSH_ERR

static const struct fault_row fault_rows[] = {
	{ "receive too short", RC, IB_WR_SEND, NULL, long_message,
	  IB_WC_REM_INV_REQ_ERR, MRSOFT_R_RECV_TOO_SHORT, IB_WC_LOC_LEN_ERR, 0,
	  ERR, ERR },
	{ "receive too short, imm", RC, IB_WR_SEND_WITH_IMM, NULL,
	  long_message, IB_WC_REM_INV_REQ_ERR, MRSOFT_R_RECV_TOO_SHORT,
	  IB_WC_LOC_LEN_ERR, 0, ERR, ERR },
	{ "atomic on 4 bytes", RC, IB_WR_ATOMIC_FETCH_AND_ADD, NULL, unaligned,
	  IB_WC_REM_INV_REQ_ERR, MRSOFT_R_MISALIGNED, FLUSH, 1, ERR, ERR },
	{ "write not allowed", RC, IB_WR_RDMA_WRITE, no_access, NULL,
	  IB_WC_REM_INV_REQ_ERR, MRSOFT_R_QP_ACCESS, FLUSH, 1, ERR, ERR },
	{ "read not allowed", RC, IB_WR_RDMA_READ, no_access, NULL,
	  IB_WC_REM_INV_REQ_ERR, MRSOFT_R_QP_ACCESS, FLUSH, 1, ERR, ERR },
	{ "atomic not allowed", RC, IB_WR_ATOMIC_CMP_AND_SWP, no_access, NULL,
	  IB_WC_REM_INV_REQ_ERR, MRSOFT_R_QP_ACCESS, FLUSH, 1, ERR, ERR },
	{ "read depth there", RC, IB_WR_RDMA_READ, no_read_there, NULL,
	  IB_WC_REM_INV_REQ_ERR, MRSOFT_R_READ_DEPTH, FLUSH, 1, ERR, ERR },
	{ "read depth here", RC, IB_WR_RDMA_READ, no_read_here, NULL,
	  IB_WC_LOC_QP_OP_ERR, MRSOFT_R_READ_DEPTH, 0, 0, ERR, RTS },
	{ "atomic of 4 bytes", RC, IB_WR_ATOMIC_FETCH_AND_ADD, NULL,
	  short_atomic, IB_WC_LOC_LEN_ERR, MRSOFT_R_MSG_TOO_LONG, 0, 0, ERR,
	  RTS },
	{ "atomic of 16 bytes", RC, IB_WR_ATOMIC_CMP_AND_SWP, NULL,
	  long_atomic, IB_WC_LOC_LEN_ERR, MRSOFT_R_MSG_TOO_LONG, 0, 0, ERR,
	  RTS },
	{ "atomic write on 4 bytes", RC, IB_WR_ATOMIC_WRITE, NULL, unaligned,
	  IB_WC_REM_INV_REQ_ERR, MRSOFT_R_MISALIGNED, FLUSH, 1, ERR, ERR },
	{ "atomic write of 4 bytes", RC, IB_WR_ATOMIC_WRITE, NULL,
	  short_atomic, IB_WC_LOC_LEN_ERR, MRSOFT_R_MSG_TOO_LONG, 0, 0, ERR,
	  RTS },
	{ "atomic write of 16 bytes", RC, IB_WR_ATOMIC_WRITE, NULL,
	  long_atomic, IB_WC_LOC_LEN_ERR, MRSOFT_R_MSG_TOO_LONG, 0, 0, ERR,
	  RTS },
	{ "inline read", RC, IB_WR_RDMA_READ, NULL, inline_read,
	  IB_WC_LOC_QP_OP_ERR, MRSOFT_R_RING_ENTRY, 0, 0, ERR, RTS },
	{ "beyond 2 GiB", RC, IB_WR_SEND, NULL, beyond_2g, IB_WC_LOC_LEN_ERR,
	  MRSOFT_R_MSG_TOO_LONG, 0, 0, ERR, RTS },
	{ "uc beyond 2 GiB", UC, IB_WR_RDMA_WRITE, NULL, beyond_2g,
	  IB_WC_LOC_LEN_ERR, MRSOFT_R_MSG_TOO_LONG, 0, 0, SQE, RTS },
	{ "ud beyond mtu", UD, IB_WR_SEND, NULL, beyond_mtu, IB_WC_LOC_LEN_ERR,
	  MRSOFT_R_MSG_TOO_LONG, 0, 0, SQE, RTS },
	{ "no receive", RC, IB_WR_SEND, NULL, no_recv,
	  IB_WC_RNR_RETRY_EXC_ERR, MRSOFT_R_RNR_EXCEEDED, 0, 0, ERR, RTS },
	{ "no receive for imm", RC, IB_WR_RDMA_WRITE_WITH_IMM, NULL, no_recv,
	  IB_WC_RNR_RETRY_EXC_ERR, MRSOFT_R_RNR_EXCEEDED, 0, 0, ERR, RTS },
	{ "wrong psn", RC, IB_WR_SEND, NULL, wrong_psn, IB_WC_RETRY_EXC_ERR,
	  MRSOFT_R_PSN, 0, 0, ERR, RTS },
	{ "wrong qpn", RC, IB_WR_SEND, wrong_qpn, NULL, IB_WC_RETRY_EXC_ERR,
	  MRSOFT_R_NO_PEER, 0, 0, ERR, RTS },
	{ "not connected to us", RC, IB_WR_SEND, not_to_us, NULL,
	  IB_WC_RETRY_EXC_ERR, MRSOFT_R_PEER_STATE, 0, 0, ERR, RTS },
	{ "peer in reset", RC, IB_WR_SEND, NULL, peer_reset,
	  IB_WC_RETRY_EXC_ERR, MRSOFT_R_PEER_STATE, 0, 0, ERR, IB_QPS_RESET },
	{ "peer in error", RC, IB_WR_SEND, NULL, peer_error,
	  IB_WC_RETRY_EXC_ERR, MRSOFT_R_PEER_STATE, 0, 0, ERR, ERR },
	{ "peer gone", RC, IB_WR_SEND, NULL, peer_gone, IB_WC_RETRY_EXC_ERR,
	  MRSOFT_R_NO_PEER, 0, 0, ERR, RTS },
	{ "peer of other type", RC, IB_WR_SEND, NULL, peer_other_type,
	  IB_WC_RETRY_EXC_ERR, MRSOFT_R_PEER_STATE, 0, 0, ERR, RTS },
	{ "port down", RC, IB_WR_SEND, NULL, port_down, IB_WC_RETRY_EXC_ERR,
	  MRSOFT_R_PORT_DOWN, 0, 0, ERR, RTS },
	{ "peer's port down", RC, IB_WR_SEND, NULL, peer_port_down,
	  IB_WC_RETRY_EXC_ERR, MRSOFT_R_PORT_DOWN, 0, 0, ERR, RTS },
	{ "other namespace", RC, IB_WR_SEND, NULL, other_namespace,
	  IB_WC_RETRY_EXC_ERR, MRSOFT_R_NO_PATH, 0, 0, ERR, RTS },
	{ "not local", RC, IB_WR_SEND, NULL, not_local, IB_WC_RETRY_EXC_ERR,
	  MRSOFT_R_NO_PATH, 0, 0, ERR, RTS },
	{ "remote invalidate", RC, IB_WR_SEND_WITH_INV, NULL, bad_invalidate,
	  IB_WC_REM_ACCESS_ERR, MRSOFT_R_KEY_STALE, FLUSH, 0, ERR, ERR },
	{ "local invalidate", RC, IB_WR_LOCAL_INV, NULL, bad_local_invalidate,
	  IB_WC_MW_BIND_ERR, MRSOFT_R_KEY_STALE, 0, 0, ERR, RTS },
	{ "uc local invalidate", UC, IB_WR_LOCAL_INV, NULL,
	  bad_local_invalidate, IB_WC_MW_BIND_ERR, MRSOFT_R_KEY_STALE, 0, 0,
	  SQE, RTS },
	{ "register twice", RC, IB_WR_REG_MR, NULL, reg_twice,
	  IB_WC_MW_BIND_ERR, MRSOFT_R_KEY_INVALID, 0, 0, ERR, RTS },
};

KUNIT_ARRAY_PARAM_DESC(fault, fault_rows, name);

static void fault_row(struct kunit *test)
{
	const struct fault_row *row = test->param_value;
	struct engine *eng = engine_new(test);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p;
	struct ib_wc wc;

	if (row->early)
		row->early(eng);
	engine_start(eng, row->type);
	connect_ends(eng);
	p = good(eng, row->op);
	if (is_datagram(&a->qp))
		give_ah(eng, &p);
	post_recv(b, 7, b->buf, LEN);
	if (row->arrange)
		row->arrange(eng, &p);
	post_with_followers(eng, &p);

	wc = expect_send(a, 1, row->status);
	KUNIT_EXPECT_EQ_MSG(test, wc.vendor_err, (u32)row->reason, "%s",
			    mrsoft_reason_name(wc.vendor_err));
	KUNIT_EXPECT_EQ(test, wc.byte_len, 0u);
	expect_flushed_sends(a);
	if (row->recv)
		expect_recv(b, 7, row->recv);
	expect_silence(eng);
	KUNIT_EXPECT_EQ(test, state_of(a), row->req_state);
	KUNIT_EXPECT_EQ(test, state_of(b), row->resp_state);
	expect_events(a, 0, 0);
	expect_events(b, row->status == IB_WC_REM_ACCESS_ERR && !row->req_err &&
		      row->op != IB_WR_SEND_WITH_INV ? 1 :
		      events(b, IB_EVENT_QP_ACCESS_ERR), row->req_err);
	if (row->op != IB_WR_SEND_WITH_INV)
		KUNIT_EXPECT_TRUE(test, untouched(b->buf, BUF));
	KUNIT_EXPECT_GT(test, refusals(a, row->reason) +
			refusals(b, row->reason), 0);
}

/* A receive WQE that is malformed fails alike in each type of QP. */
static void fault_datagram_bad_receive(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_UD);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = good(eng, IB_WR_SEND);
	struct mrsoft_abi_ring *buf = b->qp.rq.ring.mem->buf;
	struct mrsoft_abi_rwqe *elem = (void *)(buf->data +
			(buf->producer_index << buf->log2_elem_size));
	struct ib_wc wc;

	p.flags = SIG;
	give_ah(eng, &p);
	post_recv(b, 7, b->buf, 100);
	memset(elem, 0, sizeof(*elem));
	elem->wr_id = 7;
	elem->dma.num_sge = MRSOFT_MAX_SGE + 1;
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	expect_send(a, 1, IB_WC_SUCCESS);
	wc = expect_recv(b, 7, IB_WC_LOC_QP_OP_ERR);
	KUNIT_EXPECT_EQ(test, wc.vendor_err, (u32)MRSOFT_R_RING_ENTRY);
	settle(eng);
	KUNIT_EXPECT_EQ(test, state_of(b), IB_QPS_ERR);
}

/* --- UC and UD lose what is wrong ----------------------------------------- */

static void no_match(struct engine *eng, struct post *p)
{
	p->qkey = QKEY + 1;
}

static void no_such_qp(struct engine *eng, struct post *p)
{
	p->qpn = 5;
}

static void a_connected_qp(struct engine *eng, struct post *p)
{
	eng->end[1].qp.type = IB_QPT_RC;
}

static const struct lost_row {
	const char *name;
	enum ib_qp_type type;
	u32 op;
	void (*arrange)(struct engine *eng, struct post *p);
	enum mrsoft_reason reason;
	u32 recv;	/* bytes of the receive WQE; 0: none is posted */
} lost_rows[] = {
	{ "uc no receive", UC, IB_WR_SEND, NULL, MRSOFT_R_NO_RECV, 0 },
	{ "uc receive too short", UC, IB_WR_SEND, long_message,
	  MRSOFT_R_RECV_TOO_SHORT, LEN },
	{ "uc peer gone", UC, IB_WR_SEND, peer_gone, MRSOFT_R_NO_PEER, LEN },
	{ "uc port down", UC, IB_WR_RDMA_WRITE, port_down, MRSOFT_R_PORT_DOWN,
	  LEN },
	{ "uc not local", UC, IB_WR_SEND, not_local, MRSOFT_R_NO_PATH, LEN },
	{ "ud no receive", UD, IB_WR_SEND, NULL, MRSOFT_R_NO_RECV, 0 },
	{ "ud receive too short", UD, IB_WR_SEND, NULL,
	  MRSOFT_R_RECV_TOO_SHORT, LEN + 39 },
	{ "ud qkey", UD, IB_WR_SEND, no_match, MRSOFT_R_QKEY, LEN + 40 },
	{ "ud qpn", UD, IB_WR_SEND, no_such_qp, MRSOFT_R_NO_PEER, LEN + 40 },
	{ "ud to rc", UD, IB_WR_SEND, a_connected_qp, MRSOFT_R_NO_PEER,
	  LEN + 40 },
	{ "ud port down", UD, IB_WR_SEND, peer_port_down, MRSOFT_R_PORT_DOWN,
	  LEN + 40 },
};

KUNIT_ARRAY_PARAM_DESC(lost, lost_rows, name);

/* The sender is content; the receive WQE stays where it is. */
static void fault_lost(struct kunit *test)
{
	const struct lost_row *row = test->param_value;
	struct engine *eng = engine_create(test, row->type);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = good(eng, row->op);

	p.flags = SIG;
	if (is_datagram(&a->qp))
		give_ah(eng, &p);
	if (row->recv)
		post_recv(b, 7, b->buf, row->recv);
	if (row->arrange)
		row->arrange(eng, &p);
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	expect_send(a, 1, IB_WC_SUCCESS);
	expect_silence(eng);
	KUNIT_EXPECT_EQ(test, state_of(a), IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, state_of(b), IB_QPS_RTS);
	KUNIT_EXPECT_TRUE(test, untouched(b->buf, BUF));
	KUNIT_EXPECT_GT(test, refusals(a, row->reason) +
			refusals(b, row->reason), 0);
	expect_events(b, 0, 0);
	/* what was posted is still there, once */
	b->qp.type = row->type;
	to_state(b, IB_QPS_ERR);
	if (row->recv)
		expect_recv(b, 7, IB_WC_WR_FLUSH_ERR);
	expect_silence(eng);
}

/* A message that is too long leaves the receive WQE for the next one. */
static void fault_lost_keeps_receive(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_UD);
	struct end *a = &eng->end[0], *b = &eng->end[1];
	struct post p = good(eng, IB_WR_SEND);
	struct ib_wc wc;

	p.flags = SIG;
	give_ah(eng, &p);
	fill(a->buf, LEN, 1);
	post_recv(b, 7, b->buf, LEN + 40);
	post_recv(b, 8, b->buf + 1000, LEN + 40);
	p.len = LEN + 1;
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	expect_send(a, 1, IB_WC_SUCCESS);
	p.len = LEN;
	KUNIT_ASSERT_EQ(test, post_send(a, &p), 0);
	expect_send(a, 1, IB_WC_SUCCESS);
	wc = expect_recv(b, 7, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.byte_len, (u32)LEN + 40);
	KUNIT_EXPECT_TRUE(test, filled(b->buf + 40, LEN, 1));
	expect_silence(eng);
}

/* No window, no way to say which: the verb of a kernel consumer is refused. */
static void fault_bind(struct kunit *test)
{
	struct engine *eng = engine_create(test, IB_QPT_RC);
	struct end *a = &eng->end[0];
	struct post p = good(eng, IB_WR_BIND_MW);

	bind_nothing(eng, &p);
	if (post_send(a, &p))
		return;
	expect_send(a, 1, IB_WC_MW_BIND_ERR);
	expect_silence(eng);
	KUNIT_EXPECT_EQ(test, state_of(a), IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, state_of(&eng->end[1]), IB_QPS_RTS);
}

static struct kunit_case fault_cases[] = {
	KUNIT_CASE_PARAM(fault_local_key, key_gen_params),
	KUNIT_CASE(fault_local_list),
	KUNIT_CASE(fault_both_keys),
	KUNIT_CASE_PARAM(fault_remote_key, key_gen_params),
	KUNIT_CASE_PARAM(fault_remote_key_uc, key_gen_params),
	KUNIT_CASE_PARAM(fault_recv_key, key_gen_params),
	KUNIT_CASE_PARAM(fault_row, fault_gen_params),
	KUNIT_CASE(fault_datagram_bad_receive),
	KUNIT_CASE_PARAM(fault_lost, lost_gen_params),
	KUNIT_CASE(fault_lost_keeps_receive),
	KUNIT_CASE(fault_bind),
	{}
};

static struct kunit_suite fault_suite = {
	.name = "mrsoft_fault",
	.exit = engine_end,
	.test_cases = fault_cases,
};

kunit_test_suite(fault_suite);

MODULE_DESCRIPTION("KUnit suite of mrsoft: what a failure looks like");
MODULE_LICENSE("GPL");
