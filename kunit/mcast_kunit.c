// SPDX-License-Identifier: GPL-2.0
/*
 * mcast_kunit.c - the table of multicast groups, without a netdev
 *
 * Attach and detach are counted, a datagram is copied to each QP once, the limits
 * are kept; then a random walk is compared with a plain array.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/slab.h>

#include "mcast.h"

#define DEVS	2
#define QPS	5
#define GROUPS	4
#define IFINDEX	7
#define STEPS	4000

/* Two devices with QPs, and the model: how often each is attached. */
struct fix {
	struct mrsoft_hca hca[DEVS];
	struct mrsoft_qp qp[DEVS][QPS];
	u32 copies[DEVS][QPS];
	u32 times[DEVS][QPS][GROUPS];
};

static int here, elsewhere;

/* half of them IPv6 */
static union ib_gid group_gid(u32 i)
{
	union ib_gid gid = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 239 } };

	if (i % 2)
		gid.raw[0] = 0xff;
	gid.raw[15] = i;
	return gid;
}

static int attach(struct fix *fix, u32 dev, u32 qp, u32 group)
{
	union ib_gid gid = group_gid(group);

	return mrsoft_mcast_attach(&fix->hca[dev], NULL, &gid,
				   fix->qp[dev][qp].qpn);
}

static int detach(struct fix *fix, u32 dev, u32 qp, u32 group)
{
	union ib_gid gid = group_gid(group);

	return mrsoft_mcast_detach(&fix->hca[dev], &gid,
				   fix->qp[dev][qp].qpn);
}

static void free_fix(void *data)
{
	struct fix *fix = data;
	u32 d, q, g;

	for (d = 0; d < DEVS; d++) {
		for (q = 0; q < QPS; q++) {
			for (g = 0; g < GROUPS; g++)
				while (!detach(fix, d, q, g))
					;
			mrsoft_qp_unpublish(&fix->qp[d][q]);
		}
		mrsoft_hca_destroy(&fix->hca[d]);
	}
}

static struct fix *fixture(struct kunit *test)
{
	struct fix *fix = kunit_kzalloc(test, sizeof(*fix), GFP_KERNEL);
	u32 d, q;

	KUNIT_ASSERT_NOT_NULL(test, fix);
	for (d = 0; d < DEVS; d++) {
		mrsoft_hca_init(&fix->hca[d], NULL);
		fix->hca[d].net = &here;
		fix->hca[d].ifindex = IFINDEX + d;
		for (q = 0; q < QPS; q++) {
			fix->qp[d][q].hca = &fix->hca[d];
			fix->qp[d][q].type = IB_QPT_UD;
		}
	}
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_fix, fix),
			0);
	for (d = 0; d < DEVS; d++)
		for (q = 0; q < QPS; q++)
			KUNIT_ASSERT_EQ(test,
					mrsoft_qp_publish(&fix->qp[d][q], 0), 0);
	return fix;
}

/* A datagram to @group that came in at the netdev of device @dev. */
static void send(struct fix *fix, u32 dev, u32 group)
{
	union ib_gid gid = group_gid(group);
	struct mrsoft_qp *qp;
	u32 d, next = 0;

	memset(fix->copies, 0, sizeof(fix->copies));
	while ((qp = mrsoft_mcast_next(&here, IFINDEX + dev, &gid, &next))) {
		d = qp->hca - fix->hca;
		fix->copies[d][qp - fix->qp[d]]++;
		mrsoft_qp_put(qp);
	}
}

static struct mrsoft_hca *find(const void *net, u32 ifindex, u32 group)
{
	union ib_gid gid = group_gid(group);
	struct mrsoft_hca *hca;

	rcu_read_lock();
	hca = mrsoft_mcast_find(net, ifindex, &gid);
	rcu_read_unlock();
	return hca;
}

static const struct gid_row {
	const char *name;
	union ib_gid gid;
	bool is_group;
} gid_rows[] = {
	{ "zero", { .raw = {} }, false },
	{ "ipv4 223.255.255.255", { .raw = { [10] = 0xff, 0xff, 223, 255, 255, 255 } }, false },
	{ "ipv4 224.0.0.0", { .raw = { [10] = 0xff, 0xff, 224 } }, true },
	{ "ipv4 239.255.255.255", { .raw = { [10] = 0xff, 0xff, 239, 255, 255, 255 } }, true },
	{ "ipv4 240.0.0.0", { .raw = { [10] = 0xff, 0xff, 240 } }, false },
	{ "not quite mapped", { .raw = { [9] = 1, 0xff, 0xff, 224 } }, false },
	{ "compatible, not mapped", { .raw = { [12] = 224 } }, false },
	{ "ipv6 ff00::", { .raw = { 0xff } }, true },
	{ "ipv6 ff02::1", { .raw = { 0xff, 2, [15] = 1 } }, true },
	{ "ipv6 feff::", { .raw = { 0xfe, 0xff } }, false },
	{ "ipv6 fe80::", { .raw = { 0xfe, 0x80 } }, false },
};

static void gid_desc(const struct gid_row *row, char *desc)
{
	strscpy(desc, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(gid, gid_rows, gid_desc);

static void mcast_gid(struct kunit *test)
{
	const struct gid_row *row = test->param_value;

	KUNIT_EXPECT_EQ(test, mrsoft_gid_is_group(&row->gid), row->is_group);
}

static void mcast_counted(struct kunit *test)
{
	struct fix *fix = fixture(test);

	KUNIT_EXPECT_EQ(test, detach(fix, 0, 0, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, attach(fix, 0, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, attach(fix, 0, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, fix->hca[0].num_groups, 1u);
	send(fix, 0, 0);
	KUNIT_EXPECT_EQ(test, fix->copies[0][0], 1u);
	KUNIT_EXPECT_EQ(test, detach(fix, 0, 1, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, detach(fix, 1, 0, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, detach(fix, 0, 0, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, detach(fix, 0, 0, 0), 0);
	send(fix, 0, 0);
	KUNIT_EXPECT_EQ(test, fix->copies[0][0], 1u);
	KUNIT_EXPECT_EQ(test, detach(fix, 0, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, detach(fix, 0, 0, 0), -EINVAL);
	send(fix, 0, 0);
	KUNIT_EXPECT_EQ(test, fix->copies[0][0], 0u);
	KUNIT_EXPECT_EQ(test, fix->hca[0].num_groups, 0u);
}

static void mcast_found(struct kunit *test)
{
	struct fix *fix = fixture(test);

	KUNIT_EXPECT_NULL(test, find(&here, IFINDEX, 0));
	KUNIT_ASSERT_EQ(test, attach(fix, 0, 0, 0), 0);
	KUNIT_EXPECT_PTR_EQ(test, find(&here, IFINDEX, 0), &fix->hca[0]);
	KUNIT_EXPECT_NULL(test, find(&here, IFINDEX + 1, 0));
	KUNIT_EXPECT_NULL(test, find(&elsewhere, IFINDEX, 0));
	KUNIT_EXPECT_NULL(test, find(&here, IFINDEX, 1));
}

/* Refused at the limit, and the group that was made for it is gone. */
static void mcast_limits(struct kunit *test)
{
	struct fix *fix = fixture(test);
	union ib_gid gid = group_gid(0);
	u32 i;

	for (i = 1; i <= MRSOFT_MAX_MCAST_QP_ATTACH; i++)
		KUNIT_ASSERT_EQ(test, mrsoft_mcast_attach(&fix->hca[0], NULL,
							  &gid, i), 0);
	KUNIT_EXPECT_EQ(test, mrsoft_mcast_attach(&fix->hca[0], NULL, &gid, i),
			-ENOMEM);
	/* it is there already */
	KUNIT_EXPECT_EQ(test, mrsoft_mcast_attach(&fix->hca[0], NULL, &gid, 1),
			0);
	/* numbers without a QP: nobody gets a copy */
	send(fix, 0, 0);
	for (i = 1; i <= MRSOFT_MAX_MCAST_QP_ATTACH; i++)
		KUNIT_EXPECT_EQ(test, mrsoft_mcast_detach(&fix->hca[0], &gid, i), 0);
	KUNIT_EXPECT_EQ(test, mrsoft_mcast_detach(&fix->hca[0], &gid, 1),
			0);
	KUNIT_EXPECT_EQ(test, fix->hca[0].num_groups, 0u);

	fix->hca[0].num_groups = MRSOFT_MAX_MCAST_GRP;
	KUNIT_EXPECT_EQ(test, attach(fix, 0, 0, 0), -ENOMEM);
	KUNIT_EXPECT_NULL(test, find(&here, IFINDEX, 0));
	fix->hca[0].num_groups = MRSOFT_MAX_MCAST_GRP - 1;
	KUNIT_EXPECT_EQ(test, attach(fix, 0, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, detach(fix, 0, 0, 0), 0);
	fix->hca[0].num_groups = 0;
}

static void expect_copies(struct kunit *test, struct fix *fix, u32 dev, u32 group)
{
	u32 d, q;

	send(fix, dev, group);
	for (d = 0; d < DEVS; d++)
		for (q = 0; q < QPS; q++)
			KUNIT_ASSERT_EQ(test, fix->copies[d][q],
					d == dev && fix->times[d][q][group] ?
						1u : 0u);
}

static void mcast_walk(struct kunit *test)
{
	struct fix *fix = fixture(test);
	struct rnd_state rnd;
	u32 i, d, q, g, *times;

	prandom_seed_state(&rnd, 0x6d63);
	for (i = 0; i < STEPS; i++) {
		d = prandom_u32_state(&rnd) % DEVS;
		q = prandom_u32_state(&rnd) % QPS;
		g = prandom_u32_state(&rnd) % GROUPS;
		times = &fix->times[d][q][g];
		if (prandom_u32_state(&rnd) % 2) {
			KUNIT_ASSERT_EQ(test, attach(fix, d, q, g), 0);
			++*times;
		} else {
			KUNIT_ASSERT_EQ(test, detach(fix, d, q, g),
					*times ? 0 : -EINVAL);
			*times -= !!*times;
		}
		expect_copies(test, fix, d, g);
	}
}

static struct kunit_case mcast_cases[] = {
	KUNIT_CASE_PARAM(mcast_gid, gid_gen_params),
	KUNIT_CASE(mcast_counted),
	KUNIT_CASE(mcast_found),
	KUNIT_CASE(mcast_limits),
	KUNIT_CASE(mcast_walk),
	{}
};

static struct kunit_suite mcast_suite = {
	.name = "mrsoft_mcast",
	.test_cases = mcast_cases,
};

kunit_test_suite(mcast_suite);

MODULE_DESCRIPTION("KUnit suite of mrsoft: multicast groups");
MODULE_LICENSE("GPL");
