// SPDX-License-Identifier: GPL-2.0
/*
 * qp_kunit.c - numbers, holds and states of a QP
 *
 * The state machine is compared with two others: the core's, for every mask of
 * one or two attributes more or less than needed, and the table of the IBA,
 * written down here.  No queue runs: both work items only count.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "limits.h"
#include "psn.h"
#include "qp.h"

#define WAIT	(20 * HZ)

/* Everything that is needed of a device, and one QP of any type. */
struct fix {
	struct workqueue_struct *wq;
	struct mrsoft_hca hca;
	struct mrsoft_qp qp;
	struct ib_gid_attr sgid_attr;
	atomic_t sq_runs;
	atomic_t resp_runs;
	struct ib_event event;
	void *event_context;
	int events;
};

static void sq_run(struct work_struct *work)
{
	atomic_inc(&container_of(work, struct fix, qp.sq.work)->sq_runs);
}

static void resp_run(struct work_struct *work)
{
	atomic_inc(&container_of(to_delayed_work(work), struct fix,
				 qp.resp.work)->resp_runs);
}

static void init_qp(struct mrsoft_qp *qp, struct mrsoft_hca *hca,
		    enum ib_qp_type type)
{
	qp->hca = hca;
	qp->type = type;
	mutex_init(&qp->verbs);
	spin_lock_init(&qp->state_lock);
	spin_lock_init(&qp->sq.lock);
	spin_lock_init(&qp->resp.lock);
}

static void free_fix(void *data)
{
	struct fix *fix = data;

	destroy_workqueue(fix->wq);
	mrsoft_hca_destroy(&fix->hca);
}

static struct fix *fixture(struct kunit *test, enum ib_qp_type type)
{
	struct fix *fix = kunit_kzalloc(test, sizeof(*fix), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fix);
	fix->wq = alloc_workqueue("mrsoft-kunit", WQ_UNBOUND, 0);
	KUNIT_ASSERT_NOT_NULL(test, fix->wq);
	mrsoft_hca_init(&fix->hca, fix->wq);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_fix, fix),
			0);
	init_qp(&fix->qp, &fix->hca, type);
	INIT_WORK(&fix->qp.sq.work, sq_run);
	INIT_DELAYED_WORK(&fix->qp.resp.work, resp_run);
	return fix;
}

/* --- the state machine ---------------------------------------------------- */

#define STATES	(IB_QPS_ERR + 1)

static const struct type_row {
	const char *name;
	enum ib_qp_type type;
} type_rows[] = {
	{ "rc", IB_QPT_RC },
	{ "uc", IB_QPT_UC },
	{ "ud", IB_QPT_UD },
	{ "gsi", IB_QPT_GSI },
};

KUNIT_ARRAY_PARAM_DESC(type, type_rows, name);

/* IBA 10.3, figure 124 and table 91: a transition and what it must be given. */
static bool iba_legal(enum ib_qp_state cur, enum ib_qp_state next)
{
	static const u8 legal[STATES] = {
		[IB_QPS_RESET] = BIT(IB_QPS_INIT),
		[IB_QPS_INIT] = BIT(IB_QPS_INIT) | BIT(IB_QPS_RTR),
		[IB_QPS_RTR] = BIT(IB_QPS_RTS),
		[IB_QPS_RTS] = BIT(IB_QPS_RTS) | BIT(IB_QPS_SQD),
		[IB_QPS_SQD] = BIT(IB_QPS_RTS) | BIT(IB_QPS_SQD),
		[IB_QPS_SQE] = BIT(IB_QPS_RTS),
	};

	/* to the error state from anywhere but where nothing is yet */
	if (next == IB_QPS_ERR)
		return cur != IB_QPS_RESET;
	return next == IB_QPS_RESET || (legal[cur] & BIT(next));
}

static int iba_needed(enum ib_qp_type type, enum ib_qp_state cur,
		      enum ib_qp_state next)
{
	bool rc = type == IB_QPT_RC;
	bool conn = rc || type == IB_QPT_UC;

	if (cur == IB_QPS_RESET && next == IB_QPS_INIT)
		return IB_QP_PKEY_INDEX |
		       (type == IB_QPT_GSI ? 0 : IB_QP_PORT) |
		       (conn ? IB_QP_ACCESS_FLAGS : IB_QP_QKEY);
	if (cur == IB_QPS_INIT && next == IB_QPS_RTR)
		return (conn ? IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			       IB_QP_RQ_PSN : 0) |
		       (rc ? IB_QP_MAX_DEST_RD_ATOMIC |
			     IB_QP_MIN_RNR_TIMER : 0);
	if (cur == IB_QPS_RTR && next == IB_QPS_RTS)
		return IB_QP_SQ_PSN |
		       (rc ? IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			     IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC : 0);
	return 0;
}

/* Each value within its limits and different from what is there at first. */
static void good_attr(struct fix *fix, struct ib_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->path_mtu = IB_MTU_1024;
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->qkey = 0x11223344;
	attr->rq_psn = 0xabcdef;
	attr->sq_psn = 0xfedcba;
	attr->dest_qp_num = 0x123456;
	attr->qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_LOCAL_WRITE;
	attr->en_sqd_async_notify = 1;
	attr->max_rd_atomic = 5;
	attr->max_dest_rd_atomic = 6;
	attr->min_rnr_timer = 7;
	attr->port_num = 1;
	attr->timeout = 8;
	attr->retry_cnt = 3;
	attr->rnr_retry = 4;
	attr->ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_ah_flags(&attr->ah_attr, IB_AH_GRH);
	rdma_ah_set_port_num(&attr->ah_attr, 1);
	attr->ah_attr.grh.dgid.raw[15] = 77;
	attr->ah_attr.grh.sgid_attr = &fix->sgid_attr;
}

static int check(struct fix *fix, enum ib_qp_state cur, enum ib_qp_state next,
		 struct ib_qp_attr *attr, int mask)
{
	int ret;

	fix->qp.state = cur;
	attr->qp_state = next;
	attr->cur_qp_state = cur;
	mutex_lock(&fix->qp.verbs);
	ret = mrsoft_qp_check(&fix->qp, attr, mask);
	mutex_unlock(&fix->qp.verbs);
	return ret;
}

static int core_says(enum ib_qp_type type, enum ib_qp_state cur,
		     enum ib_qp_state next, int mask)
{
	if (!(mask & IB_QP_STATE))
		next = cur;
	if (!ib_modify_qp_is_ok(cur, next, type, mask))
		return -EINVAL;
	return mask & IB_QP_ALT_PATH ? -EOPNOTSUPP : 0;
}

/* With what is needed, and with each one or two attributes more or less. */
static int compare(struct fix *fix, enum ib_qp_state cur,
		   enum ib_qp_state next, struct ib_qp_attr *attr)
{
	enum ib_qp_type type = fix->qp.type;
	int base = IB_QP_STATE | iba_needed(type, cur, next);
	int a, b, wrong = 0;

	for (a = 0; a <= 20; a++)
		for (b = a; b <= 20; b++) {
			int mask = base ^ BIT(a) ^ (a == b ? 0 : BIT(b));

			wrong += check(fix, cur, next, attr, mask) !=
				 core_says(type, cur, next, mask);
		}
	return wrong;
}

static void qp_matrix(struct kunit *test)
{
	const struct type_row *row = test->param_value;
	struct fix *fix = fixture(test, row->type);
	struct ib_qp_attr *attr = kunit_kzalloc(test, sizeof(*attr),
						GFP_KERNEL);
	struct mrsoft_qp *before = kunit_kzalloc(test, sizeof(*before),
						 GFP_KERNEL);
	int cur, next;

	KUNIT_ASSERT_TRUE(test, attr && before);
	good_attr(fix, attr);
	fix->qp.state = IB_QPS_ERR;
	memcpy(&before->attr, &fix->qp.attr, sizeof(before->attr));
	for (cur = 0; cur < STATES; cur++)
		for (next = 0; next < STATES; next++) {
			int mask = IB_QP_STATE |
				   iba_needed(row->type, cur, next);

			KUNIT_EXPECT_EQ_MSG(test, check(fix, cur, next, attr,
							mask),
					    iba_legal(cur, next) ? 0 : -EINVAL,
					    "%d to %d", cur, next);
			KUNIT_EXPECT_EQ_MSG(test, compare(fix, cur, next, attr),
					    0, "%d to %d", cur, next);
		}
	/* a check changes nothing */
	KUNIT_EXPECT_MEMEQ(test, &before->attr, &fix->qp.attr,
			   sizeof(before->attr));
}

/* Each attribute that is needed is missed, whatever else is there. */
static void qp_needed(struct kunit *test)
{
	const struct type_row *row = test->param_value;
	struct fix *fix = fixture(test, row->type);
	struct ib_qp_attr *attr = kunit_kzalloc(test, sizeof(*attr),
						GFP_KERNEL);
	int cur, bit;

	KUNIT_ASSERT_NOT_NULL(test, attr);
	good_attr(fix, attr);
	for (cur = IB_QPS_RESET; cur <= IB_QPS_RTR; cur++) {
		int needed = iba_needed(row->type, cur, cur + 1);

		KUNIT_EXPECT_EQ(test, check(fix, cur, cur + 1, attr,
					    IB_QP_STATE | needed), 0);
		for (bit = 0; bit <= 20; bit++) {
			int mask = IB_QP_STATE | (needed & ~BIT(bit));

			if (needed & BIT(bit))
				KUNIT_EXPECT_EQ_MSG(test, check(fix, cur,
								cur + 1, attr,
								mask),
						    -EINVAL,
						    "%d without bit %d", cur,
						    bit);
		}
	}
}

static void qp_current_state(struct kunit *test)
{
	struct fix *fix = fixture(test, IB_QPT_UC);
	struct ib_qp_attr *attr = kunit_kzalloc(test, sizeof(*attr),
						GFP_KERNEL);
	int cur;

	KUNIT_ASSERT_NOT_NULL(test, attr);
	good_attr(fix, attr);
	mutex_lock(&fix->qp.verbs);
	fix->qp.state = IB_QPS_RTS;
	attr->qp_state = IB_QPS_RTS;
	for (cur = 0; cur < STATES; cur++) {
		attr->cur_qp_state = cur;
		KUNIT_EXPECT_EQ(test, mrsoft_qp_check(&fix->qp, attr,
						      IB_QP_STATE |
						      IB_QP_CUR_STATE),
				cur == IB_QPS_RTS ? 0 : -EINVAL);
	}
	mutex_unlock(&fix->qp.verbs);
}

/* --- values --------------------------------------------------------------- */

enum { TO_INIT, TO_RTR, TO_RTS };

#define AT(field)	offsetof(struct ib_qp_attr, field)

static const struct value_row {
	const char *name;
	size_t offset;
	size_t size;
	int mask;
	int step;
	u32 bad;
	u32 best;
} value_rows[] = {
	{ "port_num", AT(port_num), 1, IB_QP_PORT, TO_INIT, 0, 1 },
	{ "port_num", AT(port_num), 1, IB_QP_PORT, TO_INIT, 2, 1 },
	{ "pkey_index", AT(pkey_index), 2, IB_QP_PKEY_INDEX, TO_INIT, 1, 0 },
	{ "pkey_index", AT(pkey_index), 2, IB_QP_PKEY_INDEX, TO_INIT, 0xffff, 0 },
	{ "path_mtu", AT(path_mtu), 4, IB_QP_PATH_MTU, TO_RTR, 0, IB_MTU_256 },
	{ "path_mtu", AT(path_mtu), 4, IB_QP_PATH_MTU, TO_RTR, 6, IB_MTU_4096 },
	{ "dest_qp_num", AT(dest_qp_num), 4, IB_QP_DEST_QPN, TO_RTR, 0x1000000,
	  0xffffff },
	{ "dest_qp_num", AT(dest_qp_num), 4, IB_QP_DEST_QPN, TO_RTR, U32_MAX, 0 },
	{ "max_dest_rd_atomic", AT(max_dest_rd_atomic), 1, IB_QP_MAX_DEST_RD_ATOMIC,
	  TO_RTR, MRSOFT_MAX_RD_ATOM + 1, MRSOFT_MAX_RD_ATOM },
	{ "max_dest_rd_atomic", AT(max_dest_rd_atomic), 1, IB_QP_MAX_DEST_RD_ATOMIC,
	  TO_RTR, 255, 0 },
	{ "min_rnr_timer", AT(min_rnr_timer), 1, IB_QP_MIN_RNR_TIMER, TO_RTR, 32, 31 },
	{ "max_rd_atomic", AT(max_rd_atomic), 1, IB_QP_MAX_QP_RD_ATOMIC, TO_RTS,
	  MRSOFT_MAX_RD_ATOM + 1, MRSOFT_MAX_RD_ATOM },
	{ "timeout", AT(timeout), 1, IB_QP_TIMEOUT, TO_RTS, 32, 31 },
	{ "retry_cnt", AT(retry_cnt), 1, IB_QP_RETRY_CNT, TO_RTS, 8, 7 },
	{ "rnr_retry", AT(rnr_retry), 1, IB_QP_RNR_RETRY, TO_RTS, 8, 7 },
};

static void value_desc(const struct value_row *row, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s %u", row->name, row->bad);
}

KUNIT_ARRAY_PARAM(value, value_rows, value_desc);

static void set_value(struct ib_qp_attr *attr, const struct value_row *row,
		      u32 value)
{
	/* little or big endian: the low bytes of a number */
	switch (row->size) {
	case 1:
		*((u8 *)attr + row->offset) = value;
		break;
	case 2:
		*(u16 *)((u8 *)attr + row->offset) = value;
		break;
	default:
		*(u32 *)((u8 *)attr + row->offset) = value;
	}
}

static void qp_out_of_range(struct kunit *test)
{
	const struct value_row *row = test->param_value;
	struct fix *fix = fixture(test, IB_QPT_RC);
	struct ib_qp_attr *attr = kunit_kzalloc(test, sizeof(*attr),
						GFP_KERNEL);
	struct ib_qp_attr *before = kunit_kzalloc(test, sizeof(*before),
						  GFP_KERNEL);
	int cur = IB_QPS_RESET + row->step;
	int mask = IB_QP_STATE | iba_needed(IB_QPT_RC, cur, cur + 1);

	KUNIT_ASSERT_TRUE(test, attr && before);
	KUNIT_ASSERT_TRUE(test, mask & row->mask);
	good_attr(fix, attr);
	*before = fix->qp.attr;
	KUNIT_EXPECT_EQ(test, check(fix, cur, cur + 1, attr, mask), 0);
	set_value(attr, row, row->bad);
	KUNIT_EXPECT_EQ(test, check(fix, cur, cur + 1, attr, mask), -EINVAL);
	KUNIT_EXPECT_MEMEQ(test, &fix->qp.attr, before, sizeof(*before));
	set_value(attr, row, row->best);
	KUNIT_EXPECT_EQ(test, check(fix, cur, cur + 1, attr, mask), 0);
}

/* What is not in the mask is not looked at. */
static void qp_unmasked(struct kunit *test)
{
	struct fix *fix = fixture(test, IB_QPT_RC);
	struct ib_qp_attr *attr = kunit_kzalloc(test, sizeof(*attr),
						GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, attr);
	memset(attr, 0xff, sizeof(*attr));
	KUNIT_EXPECT_EQ(test, check(fix, IB_QPS_RTS, IB_QPS_SQD, attr,
				    IB_QP_STATE), 0);
	KUNIT_EXPECT_EQ(test, check(fix, IB_QPS_RTS, IB_QPS_ERR, attr,
				    IB_QP_STATE), 0);
	/* bits that are none of the specification's */
	KUNIT_EXPECT_NE(test, check(fix, IB_QPS_RTS, IB_QPS_SQD, attr,
				    IB_QP_STATE | IB_QP_RATE_LIMIT), 0);
	KUNIT_EXPECT_NE(test, check(fix, IB_QPS_RTS, IB_QPS_SQD, attr,
				    IB_QP_STATE | BIT(30)), 0);
}

static void qp_address(struct kunit *test)
{
	struct fix *fix = fixture(test, IB_QPT_RC);
	struct ib_qp_attr *attr = kunit_kzalloc(test, sizeof(*attr),
						GFP_KERNEL);
	int mask = IB_QP_STATE |
		   iba_needed(IB_QPT_RC, IB_QPS_INIT, IB_QPS_RTR);

	KUNIT_ASSERT_NOT_NULL(test, attr);
	good_attr(fix, attr);
	attr->ah_attr.type = RDMA_AH_ATTR_TYPE_IB;
	KUNIT_EXPECT_EQ(test, check(fix, IB_QPS_INIT, IB_QPS_RTR, attr, mask),
			-EINVAL);
	good_attr(fix, attr);
	rdma_ah_set_ah_flags(&attr->ah_attr, 0);
	KUNIT_EXPECT_EQ(test, check(fix, IB_QPS_INIT, IB_QPS_RTR, attr, mask),
			-EINVAL);
	good_attr(fix, attr);
	rdma_ah_set_port_num(&attr->ah_attr, 2);
	KUNIT_EXPECT_EQ(test, check(fix, IB_QPS_INIT, IB_QPS_RTR, attr, mask),
			-EINVAL);

	good_attr(fix, attr);
	attr->ah_attr.grh.dgid.raw[0] = 0xff;
	KUNIT_EXPECT_EQ(test, check(fix, IB_QPS_INIT, IB_QPS_RTR, attr, mask),
			-EINVAL);

	/* one port: nothing to migrate to */
	good_attr(fix, attr);
	KUNIT_EXPECT_EQ(test, check(fix, IB_QPS_RTS, IB_QPS_RTS, attr,
				    IB_QP_STATE | IB_QP_PATH_MIG_STATE), 0);
	attr->path_mig_state = IB_MIG_ARMED;
	KUNIT_EXPECT_EQ(test, check(fix, IB_QPS_RTS, IB_QPS_RTS, attr,
				    IB_QP_STATE | IB_QP_PATH_MIG_STATE),
			-EOPNOTSUPP);
}

/* --- apply and query ------------------------------------------------------ */

static const struct field_row {
	const char *name;
	size_t offset;
	size_t size;
	int mask;
} field_rows[] = {
	{ "qp_access_flags", AT(qp_access_flags), 4, IB_QP_ACCESS_FLAGS },
	{ "pkey_index", AT(pkey_index), 2, IB_QP_PKEY_INDEX },
	{ "port_num", AT(port_num), 1, IB_QP_PORT },
	{ "qkey", AT(qkey), 4, IB_QP_QKEY },
	{ "dgid", AT(ah_attr.grh.dgid), 16, IB_QP_AV },
	{ "path_mtu", AT(path_mtu), 4, IB_QP_PATH_MTU },
	{ "timeout", AT(timeout), 1, IB_QP_TIMEOUT },
	{ "retry_cnt", AT(retry_cnt), 1, IB_QP_RETRY_CNT },
	{ "rnr_retry", AT(rnr_retry), 1, IB_QP_RNR_RETRY },
	{ "rq_psn", AT(rq_psn), 4, IB_QP_RQ_PSN },
	{ "max_rd_atomic", AT(max_rd_atomic), 1, IB_QP_MAX_QP_RD_ATOMIC },
	{ "min_rnr_timer", AT(min_rnr_timer), 1, IB_QP_MIN_RNR_TIMER },
	{ "sq_psn", AT(sq_psn), 4, IB_QP_SQ_PSN },
	{ "max_dest_rd_atomic", AT(max_dest_rd_atomic), 1, IB_QP_MAX_DEST_RD_ATOMIC },
	{ "dest_qp_num", AT(dest_qp_num), 4, IB_QP_DEST_QPN },
	{ "en_sqd_async_notify", AT(en_sqd_async_notify), 1,
	  IB_QP_EN_SQD_ASYNC_NOTIFY },
};

static void apply(struct fix *fix, const struct ib_qp_attr *attr, int mask)
{
	mutex_lock(&fix->qp.verbs);
	mrsoft_qp_apply(&fix->qp, attr, mask);
	mutex_unlock(&fix->qp.verbs);
}

static bool same(const struct ib_qp_attr *a, const struct ib_qp_attr *b,
		 const struct field_row *row)
{
	return !memcmp((u8 *)a + row->offset, (u8 *)b + row->offset, row->size);
}

/* Each attribute alone: it comes back, and no other changes with it. */
static void qp_round_trip(struct kunit *test)
{
	struct fix *fix = fixture(test, IB_QPT_RC);
	struct ib_qp_attr *want = kunit_kzalloc(test, sizeof(*want),
						GFP_KERNEL);
	struct ib_qp_attr *got = kunit_kzalloc(test, sizeof(*got), GFP_KERNEL);
	struct ib_qp_attr *old = kunit_kzalloc(test, sizeof(*old), GFP_KERNEL);
	int i, k;

	KUNIT_ASSERT_TRUE(test, want && got && old);
	good_attr(fix, want);
	/* pkey index 0 is the only good one; apply does not check */
	want->pkey_index = 9;
	fix->qp.state = IB_QPS_RTS;
	for (i = 0; i < ARRAY_SIZE(field_rows); i++) {
		mrsoft_qp_query(&fix->qp, old);
		KUNIT_EXPECT_FALSE_MSG(test, same(old, want, &field_rows[i]),
				       "%s", field_rows[i].name);
		apply(fix, want, field_rows[i].mask);
		mrsoft_qp_query(&fix->qp, got);
		for (k = 0; k < ARRAY_SIZE(field_rows); k++)
			KUNIT_EXPECT_TRUE_MSG(test, same(got, k == i ? want :
							 old, &field_rows[k]),
					      "%s after %s", field_rows[k].name,
					      field_rows[i].name);
		KUNIT_EXPECT_EQ(test, got->qp_state, IB_QPS_RTS);
	}
	KUNIT_EXPECT_EQ(test, got->cur_qp_state, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, got->path_mig_state, IB_MIG_MIGRATED);
	KUNIT_EXPECT_EQ(test, fix->qp.mtu, 1024u);
	KUNIT_EXPECT_EQ(test, (u32)fix->qp.av.dgid.raw[15], 77u);
	/* the core drops its reference when modify returns */
	KUNIT_EXPECT_PTR_EQ(test, got->ah_attr.grh.sgid_attr, NULL);
}

static void qp_psn_24_bits(struct kunit *test)
{
	struct fix *fix = fixture(test, IB_QPT_RC);
	struct ib_qp_attr *attr = kunit_kzalloc(test, sizeof(*attr),
						GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, attr);
	attr->rq_psn = 0xff000001;
	attr->sq_psn = 0x12ffffff;
	apply(fix, attr, IB_QP_RQ_PSN | IB_QP_SQ_PSN);
	mrsoft_qp_query(&fix->qp, attr);
	KUNIT_EXPECT_EQ(test, attr->rq_psn, 1u);
	KUNIT_EXPECT_EQ(test, attr->sq_psn, 0xffffffu);
}

static void qp_draining(struct kunit *test)
{
	struct fix *fix = fixture(test, IB_QPT_RC);
	struct ib_qp_attr *attr = kunit_kzalloc(test, sizeof(*attr),
						GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, attr);
	fix->qp.state = IB_QPS_SQD;
	mrsoft_qp_query(&fix->qp, attr);
	KUNIT_EXPECT_TRUE(test, attr->sq_draining);
	fix->qp.sq.drained = true;
	mrsoft_qp_query(&fix->qp, attr);
	KUNIT_EXPECT_FALSE(test, attr->sq_draining);
	fix->qp.sq.drained = false;
	fix->qp.state = IB_QPS_RTS;
	mrsoft_qp_query(&fix->qp, attr);
	KUNIT_EXPECT_FALSE(test, attr->sq_draining);
}

/* An error that strikes between check and apply wins, but for RESET. */
static void qp_error_wins(struct kunit *test)
{
	struct fix *fix = fixture(test, IB_QPT_RC);
	struct ib_qp_attr *attr = kunit_kzalloc(test, sizeof(*attr),
						GFP_KERNEL);
	int next;

	KUNIT_ASSERT_NOT_NULL(test, attr);
	for (next = STATES - 1; next >= 0; next--) {
		fix->qp.state = IB_QPS_ERR;
		attr->qp_state = next;
		apply(fix, attr, IB_QP_STATE);
		KUNIT_EXPECT_EQ(test, mrsoft_qp_state(&fix->qp),
				next == IB_QPS_RESET ? IB_QPS_RESET :
						       IB_QPS_ERR);
		fix->qp.state = IB_QPS_RTS;
		apply(fix, attr, IB_QP_STATE);
		KUNIT_EXPECT_EQ(test, (int)mrsoft_qp_state(&fix->qp), next);
	}
}

/* --- errors --------------------------------------------------------------- */

/* From any state but RESET, once, and both queues are flushed. */
static void qp_error(struct kunit *test)
{
	const struct type_row *row = test->param_value;
	struct fix *fix = fixture(test, row->type);
	int cur, runs = 0;

	for (cur = 0; cur < STATES; cur++) {
		bool hit = cur != IB_QPS_RESET && cur != IB_QPS_ERR;

		fix->qp.state = cur;
		KUNIT_EXPECT_EQ(test, mrsoft_qp_error(&fix->qp), hit);
		KUNIT_EXPECT_FALSE(test, mrsoft_qp_error(&fix->qp));
		KUNIT_EXPECT_EQ(test, mrsoft_qp_state(&fix->qp),
				cur == IB_QPS_RESET ? IB_QPS_RESET :
						      IB_QPS_ERR);
		flush_workqueue(fix->wq);
		runs += hit;
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->sq_runs), runs);
		KUNIT_EXPECT_EQ(test, atomic_read(&fix->resp_runs), runs);
	}
}

/* IBA 10.3.1: a send that fails stops RC, and the send queue of the others. */
static void qp_sq_error(struct kunit *test)
{
	const struct type_row *row = test->param_value;
	struct fix *fix = fixture(test, row->type);
	bool rc = row->type == IB_QPT_RC;
	int cur;

	for (cur = 0; cur < STATES; cur++) {
		enum ib_qp_state want = cur;

		if (rc && cur != IB_QPS_RESET)
			want = IB_QPS_ERR;
		else if (!rc && (cur == IB_QPS_RTS || cur == IB_QPS_SQD))
			want = IB_QPS_SQE;
		fix->qp.state = cur;
		KUNIT_EXPECT_EQ(test, mrsoft_qp_sq_error(&fix->qp),
				want != cur);
		KUNIT_EXPECT_EQ_MSG(test, mrsoft_qp_state(&fix->qp), want,
				    "from %d", cur);
		KUNIT_EXPECT_FALSE(test, mrsoft_qp_sq_error(&fix->qp));
		flush_workqueue(fix->wq);
	}
}

static void on_event(struct ib_event *event, void *context)
{
	struct fix *fix = container_of(event->element.qp, struct fix, qp.ib);

	fix->event = *event;
	fix->event_context = context;
	fix->events++;
}

static void qp_event(struct kunit *test)
{
	struct fix *fix = fixture(test, IB_QPT_RC);
	struct ib_device *ibdev = kunit_kzalloc(test, sizeof(*ibdev),
						GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ibdev);
	/* nobody listens */
	mrsoft_qp_event(&fix->qp, IB_EVENT_QP_FATAL);
	fix->qp.ib.device = ibdev;
	fix->qp.ib.event_handler = on_event;
	fix->qp.ib.qp_context = &fix->hca;
	mrsoft_qp_event(&fix->qp, IB_EVENT_COMM_EST);
	KUNIT_EXPECT_EQ(test, fix->events, 1);
	KUNIT_EXPECT_EQ(test, fix->event.event, IB_EVENT_COMM_EST);
	KUNIT_EXPECT_PTR_EQ(test, fix->event.device, ibdev);
	KUNIT_EXPECT_PTR_EQ(test, fix->event_context, (void *)&fix->hca);
}

/* --- numbers -------------------------------------------------------------- */

#define REUSE	2000

static void qp_number_not_reused(struct kunit *test)
{
	struct fix *fix = fixture(test, IB_QPT_RC);
	u32 *qpns = kunit_kcalloc(test, REUSE, sizeof(*qpns), GFP_KERNEL);
	u32 i, k, twice = 0;

	KUNIT_ASSERT_NOT_NULL(test, qpns);
	for (i = 0; i < REUSE; i++) {
		KUNIT_ASSERT_EQ(test, mrsoft_qp_publish(&fix->qp, 0), 0);
		qpns[i] = fix->qp.qpn;
		KUNIT_EXPECT_GE(test, qpns[i], MRSOFT_QPN_MIN);
		KUNIT_EXPECT_LE(test, qpns[i], MRSOFT_QPN_MAX);
		KUNIT_EXPECT_EQ(test, fix->qp.ib.qp_num, qpns[i]);
		KUNIT_EXPECT_EQ(test, fix->qp.binder.qpn, qpns[i]);
		mrsoft_qp_unpublish(&fix->qp);
		/* a stale number finds nothing */
		KUNIT_EXPECT_NULL(test, mrsoft_qp_get(&fix->hca, qpns[i]));
		for (k = 0; k < i; k++)
			twice += qpns[k] == qpns[i];
	}
	KUNIT_EXPECT_EQ(test, twice, 0u);
	KUNIT_EXPECT_EQ(test, atomic_read(&fix->hca.num_qps), 0);
}

/* Round the end: never 0 (SMI), a special one, or the multicast number. */
static void qp_number_wraps(struct kunit *test)
{
	struct fix *fix = fixture(test, IB_QPT_RC);
	u32 want = 0xfffff0;
	int i;

	fix->hca.next_qpn = want;
	for (i = 0; i < 64; i++) {
		KUNIT_ASSERT_EQ(test, mrsoft_qp_publish(&fix->qp, 0), 0);
		KUNIT_EXPECT_EQ(test, fix->qp.qpn, want);
		want = want == 0xfffffe ? 0x10 : want + 1;
		mrsoft_qp_unpublish(&fix->qp);
	}
}

static void qp_number_first(struct kunit *test)
{
	struct fix *fix = fixture(test, IB_QPT_RC);
	struct mrsoft_hca *hca = kunit_kzalloc(test, sizeof(*hca), GFP_KERNEL);
	u32 i, last = 0, same_start = 0;

	KUNIT_ASSERT_NOT_NULL(test, hca);
	for (i = 0; i < 100; i++) {
		memset(hca, 0, sizeof(*hca));
		mrsoft_hca_init(hca, fix->wq);
		KUNIT_EXPECT_GE(test, hca->next_qpn, MRSOFT_QPN_MIN);
		KUNIT_EXPECT_LE(test, hca->next_qpn, MRSOFT_QPN_MAX);
		same_start += hca->next_qpn == last;
		last = hca->next_qpn;
		mrsoft_hca_destroy(hca);
	}
	KUNIT_EXPECT_LT(test, same_start, 5u);
}

static void qp_number_special(struct kunit *test)
{
	struct fix *fix = fixture(test, IB_QPT_GSI);
	struct mrsoft_qp *other = kunit_kzalloc(test, sizeof(*other),
						GFP_KERNEL);
	struct mrsoft_qp *found;

	KUNIT_ASSERT_NOT_NULL(test, other);
	init_qp(other, &fix->hca, IB_QPT_GSI);
	KUNIT_ASSERT_EQ(test, mrsoft_qp_publish(&fix->qp, 1), 0);
	KUNIT_EXPECT_EQ(test, fix->qp.qpn, 1u);
	KUNIT_EXPECT_EQ(test, mrsoft_qp_publish(other, 1), -EBUSY);
	KUNIT_EXPECT_EQ(test, atomic_read(&fix->hca.num_qps), 1);
	KUNIT_EXPECT_PTR_EQ(test, other->slot, NULL);
	/* one that was never published may be unpublished */
	mrsoft_qp_unpublish(other);
	KUNIT_EXPECT_EQ(test, atomic_read(&fix->hca.num_qps), 1);

	found = mrsoft_qp_get(&fix->hca, 1);
	KUNIT_EXPECT_PTR_EQ(test, found, &fix->qp);
	if (found)
		mrsoft_qp_put(found);
	mrsoft_qp_unpublish(&fix->qp);
	mrsoft_qp_unpublish(&fix->qp);
	KUNIT_EXPECT_EQ(test, atomic_read(&fix->hca.num_qps), 0);
	KUNIT_EXPECT_EQ(test, mrsoft_qp_publish(other, 1), 0);
	mrsoft_qp_unpublish(other);
}

static void qp_number_limit(struct kunit *test)
{
	struct fix *fix = fixture(test, IB_QPT_RC);

	atomic_set(&fix->hca.num_qps, MRSOFT_MAX_QP - 1);
	KUNIT_ASSERT_EQ(test, mrsoft_qp_publish(&fix->qp, 0), 0);
	mrsoft_qp_unpublish(&fix->qp);
	KUNIT_EXPECT_EQ(test, atomic_read(&fix->hca.num_qps),
			(int)MRSOFT_MAX_QP - 1);
	atomic_set(&fix->hca.num_qps, MRSOFT_MAX_QP);
	KUNIT_EXPECT_EQ(test, mrsoft_qp_publish(&fix->qp, 0), -ENOMEM);
	KUNIT_EXPECT_EQ(test, atomic_read(&fix->hca.num_qps),
			(int)MRSOFT_MAX_QP);
	KUNIT_EXPECT_TRUE(test, xa_empty(&fix->hca.qps));
}

/* --- holds ---------------------------------------------------------------- */

struct unpublisher {
	struct mrsoft_qp *qp;
	struct completion done;
};

static int unpublish_thread(void *data)
{
	struct unpublisher *u = data;

	mrsoft_qp_unpublish(u->qp);
	complete(&u->done);
	return 0;
}

/* Unpublish waits for who is inside, and nobody enters meanwhile. */
static void qp_unpublish_waits(struct kunit *test)
{
	struct fix *fix = fixture(test, IB_QPT_RC);
	struct unpublisher u = { .qp = &fix->qp };
	struct mrsoft_qp *held[2];
	int tries = 1000;
	u32 qpn;

	init_completion(&u.done);
	KUNIT_ASSERT_EQ(test, mrsoft_qp_publish(&fix->qp, 0), 0);
	qpn = fix->qp.qpn;
	held[0] = mrsoft_qp_get(&fix->hca, qpn);
	held[1] = mrsoft_qp_get(&fix->hca, qpn);
	KUNIT_ASSERT_TRUE(test, held[0] && held[1]);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(unpublish_thread, &u,
						    "mrsoft-unpub")));
	while (xa_load(&fix->hca.qps, qpn) && tries--)
		usleep_range(1000, 2000);
	KUNIT_EXPECT_NULL(test, mrsoft_qp_get(&fix->hca, qpn));
	KUNIT_EXPECT_FALSE(test, wait_for_completion_timeout(&u.done, HZ / 20));
	mrsoft_qp_put(held[0]);
	KUNIT_EXPECT_FALSE(test, wait_for_completion_timeout(&u.done, HZ / 20));
	mrsoft_qp_put(held[1]);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&u.done, WAIT));
}

#define ALIVE		0xa11fe
#define RACERS		2
#define RACE_ROUNDS	2000

struct race {
	struct fix *fix;
	struct task_struct *task[RACERS];
	u32 qpn;
	atomic_t found;
	atomic_t wrong;
};

/* @mtu says whether the QP is alive: who has a hold must find it so. */
static int race_thread(void *data)
{
	struct race *race = data;
	struct mrsoft_qp *qp;

	while (!kthread_should_stop()) {
		qp = mrsoft_qp_get(&race->fix->hca, READ_ONCE(race->qpn));
		if (qp) {
			bool alive = READ_ONCE(qp->mtu) == ALIVE;

			cpu_relax();
			if (!alive || READ_ONCE(qp->mtu) != ALIVE)
				atomic_inc(&race->wrong);
			atomic_inc(&race->found);
			mrsoft_qp_put(qp);
		}
		cond_resched();
	}
	return 0;
}

static void qp_hold_race(struct kunit *test)
{
	struct race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	unsigned long end = jiffies + HZ * 3 / 4;
	struct fix *fix = fixture(test, IB_QPT_RC);
	int i, failed = 0;

	KUNIT_ASSERT_NOT_NULL(test, race);
	race->fix = fix;
	for (i = 0; i < RACERS; i++) {
		race->task[i] = kthread_run(race_thread, race, "mrsoft-qp/%d",
					    i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(race->task[i]));
	}
	for (i = 0; i < RACE_ROUNDS && time_before(jiffies, end); i++) {
		WRITE_ONCE(fix->qp.mtu, ALIVE);
		failed += !!mrsoft_qp_publish(&fix->qp, 0);
		WRITE_ONCE(race->qpn, fix->qp.qpn);
		/* some rounds end before anybody is inside */
		if (i % 4)
			usleep_range(20, 100);
		mrsoft_qp_unpublish(&fix->qp);
		WRITE_ONCE(fix->qp.mtu, 0);
	}
	for (i = 0; i < RACERS; i++)
		kthread_stop(race->task[i]);
	KUNIT_EXPECT_EQ(test, failed, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&race->wrong), 0);
	KUNIT_EXPECT_GT(test, atomic_read(&race->found), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&fix->hca.num_qps), 0);
}

static struct kunit_case qp_cases[] = {
	KUNIT_CASE_PARAM(qp_matrix, type_gen_params),
	KUNIT_CASE_PARAM(qp_needed, type_gen_params),
	KUNIT_CASE(qp_current_state),
	KUNIT_CASE_PARAM(qp_out_of_range, value_gen_params),
	KUNIT_CASE(qp_unmasked),
	KUNIT_CASE(qp_address),
	KUNIT_CASE(qp_round_trip),
	KUNIT_CASE(qp_psn_24_bits),
	KUNIT_CASE(qp_draining),
	KUNIT_CASE(qp_error_wins),
	KUNIT_CASE_PARAM(qp_error, type_gen_params),
	KUNIT_CASE_PARAM(qp_sq_error, type_gen_params),
	KUNIT_CASE(qp_event),
	KUNIT_CASE(qp_number_not_reused),
	KUNIT_CASE(qp_number_wraps),
	KUNIT_CASE(qp_number_first),
	KUNIT_CASE(qp_number_special),
	KUNIT_CASE(qp_number_limit),
	KUNIT_CASE(qp_unpublish_waits),
	KUNIT_CASE(qp_hold_race),
	{}
};

static struct kunit_suite qp_suite = {
	.name = "mrsoft_qp",
	.test_cases = qp_cases,
};

kunit_test_suite(qp_suite);

MODULE_DESCRIPTION("KUnit suite of mrsoft: QP numbers, holds and states");
MODULE_LICENSE("GPL");
