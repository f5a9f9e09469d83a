// SPDX-License-Identifier: GPL-2.0
/*
 * mcast.c - multicast: attach and detach, who gets a copy, the netdev's filter
 *
 * On one host.  Every case but the limits runs for a group of IPv4 and for one of
 * IPv6.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include "lib.h"

#define MCAST_QPN 0xffffff
#define GRH 40
#define SLOTS 4
#define LEN 64
#define SLOT (GRH + LEN)
/* What must not come is waited for so long, in ms. */
#define QUIET 50

/**
 * struct family - addresses of one IP version
 * @group: the group of the case
 * @other: another group
 * @mac: where frames to @group go, as in /proc/net/dev_mcast
 * @ip: @group as in /proc/net/igmp or igmp6
 */
struct family {
	int af;
	const char *group, *other, *mac, *ip;
};

static const struct family v4 = {
	AF_INET, "239.129.2.3", "239.1.2.3", "01005e010203",
	/* the hexadecimal number is the address as the CPU reads it */
	"030281EF",
};

static const struct family v6 = {
	AF_INET6, "ff0e::4d52:8001:203", "ff0e::4d52:1:203", "333380010203",
	"ff0e00000000000000004d5280010203",
};

/* A UD QP that is ready, with SLOTS receives posted: 0, 1, ... */
struct member {
	struct end e;
	struct buf buf;
	union ibv_gid gid;
};

static union ibv_gid gid_of(const struct family *f, const char *address)
{
	union ibv_gid gid = {};

	if (f->af == AF_INET) {
		gid.raw[10] = 0xff;
		gid.raw[11] = 0xff;
		CHECK_EQ(inet_pton(AF_INET, address, gid.raw + 12), 1);
	} else {
		CHECK_EQ(inet_pton(AF_INET6, address, &gid), 1);
	}
	return gid;
}

/* A GID of ours of the same IP version. */
static int source_of(struct ctx *c, int af, union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_gid_entry entry;
	bool ipv4;
	int i;

	for (i = 0; i < 16; i++) {
		if (ibv_query_gid_ex(c->ibv, 1, i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		ipv4 = !memcmp(&entry.gid, mapped, sizeof(mapped));
		if (af == (ipv4 ? AF_INET : AF_INET6)) {
			*gid = entry.gid;
			return i;
		}
	}
	t_fail(__FILE__, __LINE__, "no GID of this family");
}

static void aim(struct member *m, const struct family *f, const char *group)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = gid_of(f, group), .hop_limit = 1 },
	};

	attr.grh.sgid_index = source_of(m->e.c, f->af, &m->gid);
	if (m->e.ah)
		OK(ibv_destroy_ah(m->e.ah));
	m->e.ah = ibv_create_ah(m->e.c->pd, &attr);
	CHECK(m->e.ah);
	m->e.peer_qpn = MCAST_QPN;
}

static struct member member_with(struct ctx *c, const struct family *f,
				 int access)
{
	struct conf conf = conf_of(UD);
	struct member m = {};
	struct addr self;
	int i;

	m.e = end_new(c, &conf);
	self = end_addr(&m.e);
	end_connect(&m.e, &self);
	aim(&m, f, f->group);
	m.buf = buf_new(c->pd, SLOTS * SLOT, IBV_ACCESS_LOCAL_WRITE | access);
	for (i = 0; i < SLOTS; i++)
		OK(post_recv(&m.e, i, m.buf.p + i * SLOT, SLOT,
			     m.buf.mr->lkey));
	return m;
}

static struct member member_new(struct ctx *c, const struct family *f)
{
	return member_with(c, f, 0);
}

static void member_free(struct member *m)
{
	end_free(&m->e);
	buf_free(&m->buf);
}

static int attach(struct member *m, const struct family *f, const char *group)
{
	union ibv_gid gid = gid_of(f, group);

	return ibv_attach_mcast(m->e.qp, &gid, 0);
}

static int detach(struct member *m, const struct family *f, const char *group)
{
	union ibv_gid gid = gid_of(f, group);

	return ibv_detach_mcast(m->e.qp, &gid, 0);
}

/* LEN bytes of @seed to where @m aims. */
static void say(struct member *m, unsigned int seed)
{
	struct buf b = buf_new(m->e.c->pd, LEN, IBV_ACCESS_LOCAL_WRITE);

	fill(b.p, LEN, seed);
	DO(&m->e, .opcode = IBV_WR_SEND, .laddr = b.p, .len = LEN,
	   .lkey = b.mr->lkey);
	buf_free(&b);
}

/* The header in front of the bytes: from @from to the group. */
static void check_grh(const uint8_t *grh, const struct family *f,
		      const union ibv_gid *from)
{
	union ibv_gid group = gid_of(f, f->group);

	if (f->af == AF_INET) {
		CHECK_EQ(grh[20], 0x45);
		CHECK(!memcmp(grh + 32, from->raw + 12, 4));
		CHECK(!memcmp(grh + 36, group.raw + 12, 4));
		return;
	}
	CHECK_EQ(grh[0] >> 4, 6);
	CHECK(!memcmp(grh + 8, from, 16));
	CHECK(!memcmp(grh + 24, &group, 16));
}

/* @m gets it, into its receive @slot. */
static void hears(struct member *m, const struct family *f,
		  const struct member *from, unsigned int slot,
		  unsigned int seed)
{
	struct ibv_wc wc = NEXT_WC(m->e.rcq);

	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, slot);
	CHECK_EQ(wc.byte_len, SLOT);
	CHECK(wc.wc_flags & IBV_WC_GRH);
	CHECK_EQ(wc.src_qp, from->e.qp->qp_num);
	CHECK_EQ(filled(m->buf.p + slot * SLOT + GRH, LEN, seed), -1);
	check_grh(m->buf.p + slot * SLOT, f, &from->gid);
}

#define DEAF(m) EXPECT_EMPTY((m)->e.rcq, QUIET)

/* --- the netdev --------------------------------------------------------------- */

static void netdev_of(struct ctx *c, char *name, size_t size)
{
	char path[200];
	FILE *file;

	snprintf(path, sizeof(path),
		 "/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/0",
		 ibv_get_device_name(c->ibv->device));
	file = fopen(path, "r");
	CHECK(file && fgets(name, size, file));
	name[strcspn(name, "\n")] = 0;
	fclose(file);
}

/* Is there a line with @netdev and later @word; for igmp: any line with @word? */
static bool has_line(const char *path, const char *netdev, const char *word)
{
	FILE *file = fopen(path, "r");
	bool found = false;
	char line[256];

	CHECK(file);
	while (!found && fgets(line, sizeof(line), file))
		found = strstr(line, word) && (!netdev || strstr(line, netdev));
	fclose(file);
	return found;
}

/* MAC filter and IP membership of the device's netdev. */
static void expect_member(struct ctx *c, const struct family *f, bool is)
{
	char netdev[64];

	netdev_of(c, netdev, sizeof(netdev));
	CHECK_EQ(has_line("/proc/net/dev_mcast", netdev, f->mac), is);
	if (f->af == AF_INET6)
		CHECK_EQ(has_line("/proc/net/igmp6", netdev, f->ip), is);
	else if (!access("/proc/net/igmp", R_OK))
		CHECK_EQ(has_line("/proc/net/igmp", NULL, f->ip), is);
}

/* --- attach and detach -------------------------------------------------------- */

static void rules(const void *arg)
{
	const struct family *f = arg;
	union ibv_gid group = gid_of(f, f->group);
	struct ctx *c = ctx_open(NULL);
	struct conf conf = conf_of(RC);
	struct end rc = end_new(c, &conf);
	struct member m = member_new(c, f);

	CHECK_EQ(ibv_attach_mcast(rc.qp, &group, 0), EINVAL);
	CHECK_EQ(ibv_attach_mcast(m.e.qp, &m.gid, 0), EINVAL);
	CHECK_EQ(detach(&m, f, f->group), EINVAL);
	expect_member(c, f, false);
	OK(attach(&m, f, f->group));
	CHECK_EQ(detach(&m, f, f->other), EINVAL);
	/* the core knows that it is */
	OK(attach(&m, f, f->group));
	CHECK_EQ(ibv_destroy_qp(m.e.qp), EBUSY);
	OK(detach(&m, f, f->group));
	CHECK_EQ(detach(&m, f, f->group), EINVAL);
	/* and again */
	OK(attach(&m, f, f->group));
	OK(detach(&m, f, f->group));
	member_free(&m);
	end_free(&rc);
	ctx_close(c);
}

/* For the core another LID is another group, for us it is the same. */
static void lids(const void *arg)
{
	const struct family *f = arg;
	union ibv_gid group = gid_of(f, f->group);
	struct ctx *c = ctx_open(NULL);
	struct member m = member_new(c, f);

	OK(ibv_attach_mcast(m.e.qp, &group, 1));
	OK(ibv_attach_mcast(m.e.qp, &group, 2));
	say(&m, 1);
	hears(&m, f, &m, 0, 1);
	DEAF(&m);
	OK(ibv_detach_mcast(m.e.qp, &group, 1));
	say(&m, 2);
	hears(&m, f, &m, 1, 2);
	OK(ibv_detach_mcast(m.e.qp, &group, 2));
	say(&m, 3);
	DEAF(&m);
	expect_member(c, f, false);
	member_free(&m);
	ctx_close(c);
}

static void filter(const void *arg)
{
	const struct family *f = arg;
	struct ctx *c = ctx_open(NULL);
	struct member a = member_new(c, f), b = member_new(c, f);

	expect_member(c, f, false);
	OK(attach(&a, f, f->group));
	expect_member(c, f, true);
	OK(attach(&b, f, f->group));
	OK(detach(&a, f, f->group));
	expect_member(c, f, true);
	OK(detach(&b, f, f->group));
	expect_member(c, f, false);
	member_free(&a);
	member_free(&b);
	ctx_close(c);
}

static void dies(const void *arg)
{
	const struct family *f = arg;
	struct ctx *c = ctx_open(NULL);
	int fds[2];
	char ch;
	pid_t pid;

	CHECK(!pipe(fds));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		struct ctx *mine = ctx_open(NULL);
		struct member a = member_new(mine, f), b = member_new(mine, f);

		OK(attach(&a, f, f->group));
		OK(attach(&b, f, f->group));
		OK(attach(&b, f, f->other));
		expect_member(mine, f, true);
		_exit(0);
	}
	/* the end of the child's end is that of its device file */
	close(fds[1]);
	CHECK_EQ(read(fds[0], &ch, 1), 0);
	for (uint64_t end = t_now() + t_patience(); t_now() < end; t_sleep(10)) {
		char netdev[64];

		netdev_of(c, netdev, sizeof(netdev));
		if (!has_line("/proc/net/dev_mcast", netdev, f->mac))
			break;
	}
	expect_member(c, f, false);
	ctx_close(c);
}

/* --- who gets a copy ---------------------------------------------------------- */

static void copies(const void *arg)
{
	const struct family *f = arg;
	struct ctx *c = ctx_open(NULL);
	struct member from = member_new(c, f), m[4];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(m); i++)
		m[i] = member_new(c, f);
	say(&from, 1);
	for (i = 0; i < 3; i++)
		OK(attach(&m[i], f, f->group));
	OK(attach(&m[3], f, f->other));
	say(&from, 2);
	say(&from, 3);
	for (i = 0; i < 3; i++) {
		hears(&m[i], f, &from, 0, 2);
		hears(&m[i], f, &from, 1, 3);
		DEAF(&m[i]);
	}
	/* not attached, and attached elsewhere */
	DEAF(&from);
	DEAF(&m[3]);
	OK(detach(&m[1], f, f->group));
	say(&from, 4);
	hears(&m[0], f, &from, 2, 4);
	hears(&m[2], f, &from, 2, 4);
	DEAF(&m[1]);
	OK(detach(&m[0], f, f->group));
	OK(detach(&m[2], f, f->group));
	OK(detach(&m[3], f, f->other));
	say(&from, 5);
	for (i = 0; i < ARRAY_SIZE(m); i++) {
		DEAF(&m[i]);
		member_free(&m[i]);
	}
	member_free(&from);
	ctx_close(c);
}

/* A sender that is attached gets its own, as from a HCA. */
static void own(const void *arg)
{
	const struct family *f = arg;
	struct ctx *c = ctx_open(NULL);
	struct member m = member_new(c, f);

	OK(attach(&m, f, f->group));
	say(&m, 1);
	hears(&m, f, &m, 0, 1);
	DEAF(&m);
	OK(detach(&m, f, f->group));
	member_free(&m);
	ctx_close(c);
}

static void qkey(const void *arg)
{
	const struct family *f = arg;
	struct ibv_qp_attr attr = { .qkey = UD_QKEY + 1 };
	struct ctx *c = ctx_open(NULL);
	struct member from = member_new(c, f), a = member_new(c, f),
		      b = member_new(c, f);

	OK(attach(&a, f, f->group));
	OK(attach(&b, f, f->group));
	OK(ibv_modify_qp(a.e.qp, &attr, IBV_QP_QKEY));
	say(&from, 1);
	hears(&b, f, &from, 0, 1);
	DEAF(&a);
	OK(detach(&a, f, f->group));
	OK(detach(&b, f, f->group));
	member_free(&a);
	member_free(&b);
	member_free(&from);
	ctx_close(c);
}

/* A group has one QPN, even where a QP has another. */
static void wrong_qpn(const void *arg)
{
	const struct family *f = arg;
	struct ctx *c = ctx_open(NULL);
	struct member m = member_new(c, f);

	OK(attach(&m, f, f->group));
	m.e.peer_qpn = m.e.qp->qp_num;
	say(&m, 1);
	DEAF(&m);
	OK(detach(&m, f, f->group));
	member_free(&m);
	ctx_close(c);
}

/* Pages that are not there are waited for, and nobody gets a second copy. */
static void demand_paged(const void *arg)
{
	const struct family *f = arg;
	struct ibv_device_attr_ex attr;
	struct member from, m[5];
	struct ctx *c = ctx_open(NULL);
	unsigned int i;

	OK(ibv_query_device_ex(c->ibv, NULL, &attr));
	if (!(attr.odp_caps.per_transport_caps.ud_odp_caps &
	      IBV_ODP_SUPPORT_RECV))
		t_skip("no on-demand paging");
	from = member_new(c, f);
	for (i = 0; i < ARRAY_SIZE(m); i++) {
		m[i] = member_with(c, f, i % 2 ? IBV_ACCESS_ON_DEMAND : 0);
		OK(attach(&m[i], f, f->group));
	}
	say(&from, 1);
	say(&from, 2);
	for (i = 0; i < ARRAY_SIZE(m); i++) {
		hears(&m[i], f, &from, 0, 1);
		hears(&m[i], f, &from, 1, 2);
		DEAF(&m[i]);
		OK(detach(&m[i], f, f->group));
		member_free(&m[i]);
	}
	member_free(&from);
	ctx_close(c);
}

/* Another device of the host is reached by a wire or not at all. */
static void two_devices(const void *arg)
{
	const struct family *f = arg;
	struct ctx *ca = ctx_open(NULL), *cb = ctx_open(ctx_second());
	struct member a = member_new(ca, f), b = member_new(cb, f);

	OK(attach(&a, f, f->group));
	OK(attach(&b, f, f->group));
	say(&a, 1);
	hears(&a, f, &a, 0, 1);
	DEAF(&b);
	say(&b, 2);
	hears(&b, f, &b, 0, 2);
	DEAF(&a);
	OK(detach(&a, f, f->group));
	say(&b, 3);
	hears(&b, f, &b, 1, 3);
	OK(detach(&b, f, f->group));
	member_free(&a);
	member_free(&b);
	ctx_close(ca);
	ctx_close(cb);
}

/* --- limits ------------------------------------------------------------------- */

static void max_qps(const void *arg)
{
	union ibv_gid group = gid_of(&v4, v4.group);
	struct ctx *c = ctx_open(NULL);
	struct member m = member_new(c, &v4);
	struct ibv_device_attr attr;
	struct ibv_qp_init_attr init = {
		.send_cq = m.e.scq, .recv_cq = m.e.rcq, .qp_type = UD,
		.cap = { 1, 1, 1, 1, 0 },
	};
	struct ibv_qp **qps;
	int i;

	(void)arg;
	OK(ibv_query_device(c->ibv, &attr));
	CHECK(attr.max_mcast_qp_attach > 1);
	CHECK(attr.max_mcast_grp > 1);
	CHECK(attr.max_total_mcast_qp_attach >= attr.max_mcast_qp_attach);
	qps = calloc(attr.max_mcast_qp_attach, sizeof(*qps));
	for (i = 0; i < attr.max_mcast_qp_attach; i++) {
		qps[i] = ibv_create_qp(c->pd, &init);
		CHECK(qps[i]);
		OK(ibv_attach_mcast(qps[i], &group, 0));
	}
	CHECK_EQ(attach(&m, &v4, v4.group), ENOMEM);
	OK(attach(&m, &v4, v4.other));
	OK(detach(&m, &v4, v4.other));
	OK(ibv_detach_mcast(qps[0], &group, 0));
	OK(attach(&m, &v4, v4.group));
	say(&m, 1);
	hears(&m, &v4, &m, 0, 1);
	for (i = 1; i < attr.max_mcast_qp_attach; i++)
		OK(ibv_detach_mcast(qps[i], &group, 0));
	OK(detach(&m, &v4, v4.group));
	for (i = 0; i < attr.max_mcast_qp_attach; i++)
		OK(ibv_destroy_qp(qps[i]));
	free(qps);
	member_free(&m);
	ctx_close(c);
}

static void max_groups(const void *arg)
{
	union ibv_gid group = gid_of(&v4, "239.77.0.0");
	struct ctx *c = ctx_open(NULL);
	struct member m = member_new(c, &v4);
	struct ibv_device_attr attr;
	int i;

	(void)arg;
	OK(ibv_query_device(c->ibv, &attr));
	CHECK(attr.max_mcast_grp <= 0xffff);
	for (i = 0; i < attr.max_mcast_grp; i++) {
		group.raw[14] = i >> 8;
		group.raw[15] = i;
		OK(ibv_attach_mcast(m.e.qp, &group, 0));
	}
	CHECK_EQ(attach(&m, &v4, v4.group), ENOMEM);
	CHECK_EQ(attach(&m, &v6, v6.group), ENOMEM);
	expect_member(c, &v4, false);
	expect_member(c, &v6, false);
	OK(ibv_detach_mcast(m.e.qp, &group, 0));
	OK(attach(&m, &v4, v4.group));
	say(&m, 1);
	hears(&m, &v4, &m, 0, 1);
	/* the rest goes with the process */
}

#define IPV4(n, f) { n "_ipv4", f, &v4, 0 }
#define IPV6(n, f) { n "_ipv6", f, &v6, 0 }
static const struct t_case cases[] = {
	IPV4("rules", rules),
	IPV6("rules", rules),
	IPV4("one_copy_with_two_lids", lids),
	IPV6("one_copy_with_two_lids", lids),
	IPV4("mac_and_ip_membership", filter),
	IPV6("mac_and_ip_membership", filter),
	IPV4("process_dies_attached", dies),
	IPV6("process_dies_attached", dies),
	IPV4("copy_for_each_qp", copies),
	IPV6("copy_for_each_qp", copies),
	IPV4("own_copy", own),
	IPV6("own_copy", own),
	IPV4("qkey_mismatch", qkey),
	IPV6("qkey_mismatch", qkey),
	IPV4("wrong_qpn", wrong_qpn),
	IPV6("wrong_qpn", wrong_qpn),
	IPV4("demand_paged", demand_paged),
	IPV6("demand_paged", demand_paged),
	IPV4("two_devices", two_devices),
	IPV6("two_devices", two_devices),
	{ "max_qps_of_a_group", max_qps, NULL, 60 },
	{ "max_groups", max_groups, NULL, 60 },
};

int main(int argc, char **argv)
{
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
