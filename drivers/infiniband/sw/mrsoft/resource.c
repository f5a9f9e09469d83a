// SPDX-License-Identifier: GPL-2.0
/*
 * resource.c - what rdma resource and statistic show beyond what the core knows
 *
 * Owns:     the driver's part of each entry of the netlink dump (rdma -dd).
 * Not here: the entries themselves, which the core keeps.
 * Locks:    none; each value is read once and may be a moment old.
 * Lifetime: the core holds the object while it asks.
 * Context:  process context.
 * Spec:     none
 * Tests:    tools/testing/suites/link.sh, tools/testing/selftests/odp.c
 */
#include <linux/netlink.h>
#include <rdma/restrack.h>
#include <rdma/rdma_netlink.h>
#include <mrsoft_ops.h>

#include "qp.h"
#include "resource.h"

/* Closes the driver's table, or takes it back when @err says that it is cut off. */
static int table_end(struct sk_buff *msg, struct nlattr *table, int err)
{
	if (err) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}

static struct nlattr *table_start(struct sk_buff *msg)
{
	return nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
}

static int fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	const struct mrsoft_key *key = &mrsoft_mr(ibmr)->key;
	struct nlattr *table = table_start(msg);
	int windows = atomic_read(&key->owners);
	u64 bytes;
	int err;

	if (!table)
		return -EMSGSIZE;
	err = mrsoft_mr_table(mrsoft_mr(ibmr), &bytes);
	if (err) {
		nla_nest_cancel(msg, table);
		return err;
	}
	err = rdma_nl_put_driver_u32_hex(msg, "key", READ_ONCE(key->key)) ||
	      rdma_nl_put_driver_u32_hex(msg, "access", key->access) ||
	      rdma_nl_put_driver_string(msg, "state",
					READ_ONCE(key->published) ?
						"valid" : "free") ||
	      rdma_nl_put_driver_u32(msg, "windows", max(windows, 0)) ||
	      rdma_nl_put_driver_u64(msg, "table", bytes);
	return table_end(msg, table, err);
}

/* Names as the tool's users know them. */
static int fill_stat_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct mrsoft_paging paging;
	struct nlattr *table;
	int err = mrsoft_mr_paging(mrsoft_mr(ibmr), &paging);

	if (err)
		return err == -ENODATA ? 0 : err;
	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	if (!table)
		return -EMSGSIZE;
	err = rdma_nl_stat_hwcounter_entry(msg, "page_faults",
					   paging.faults) ||
	      rdma_nl_stat_hwcounter_entry(msg, "page_invalidations",
					   paging.invalidations) ||
	      rdma_nl_stat_hwcounter_entry(msg, "page_prefetch",
					   paging.prefetches);
	return table_end(msg, table, err);
}

static int fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct mrsoft_cq *cq = mrsoft_cq(ibcq);
	struct nlattr *table = table_start(msg);
	int err;

	if (!table)
		return -EMSGSIZE;
	err = rdma_nl_put_driver_u32(msg, "pending", mrsoft_cq_pending(cq)) ||
	      rdma_nl_put_driver_u32(msg, "overflow", READ_ONCE(cq->overflow));
	return table_end(msg, table, err);
}

static const char *path_name(struct mrsoft_qp *qp)
{
	const struct mrsoft_path_ops *path = READ_ONCE(qp->path);

	return path ? path->name : "none";
}

static int fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct mrsoft_qp *qp = mrsoft_qp(ibqp);
	struct nlattr *table = table_start(msg);
	int err;

	if (!table)
		return -EMSGSIZE;
	err = rdma_nl_put_driver_string(msg, "path", path_name(qp)) ||
	      rdma_nl_put_driver_u32(msg, "mtu", READ_ONCE(qp->mtu));
	return table_end(msg, table, err);
}

static int fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct mrsoft_rq *rq = &mrsoft_srq(ibsrq)->rq;
	struct nlattr *table = table_start(msg);
	int err;

	if (!table)
		return -EMSGSIZE;
	err = rdma_nl_put_driver_u32(msg, "pending", mrsoft_rq_pending(rq)) ||
	      rdma_nl_put_driver_u32(msg, "max_wr", READ_ONCE(rq->max_wr)) ||
	      rdma_nl_put_driver_u32(msg, "limit", READ_ONCE(rq->limit));
	return table_end(msg, table, err);
}

MRSOFT_WRAP_FILL_RES_SRQ_ENTRY(fill_res_srq_entry);

const struct ib_device_ops mrsoft_resource_ops = {
	.fill_res_mr_entry = fill_res_mr_entry,
	.fill_res_cq_entry = fill_res_cq_entry,
	.fill_res_qp_entry = fill_res_qp_entry,
	.fill_stat_mr_entry = fill_stat_mr_entry,
	MRSOFT_OP_FILL_RES_SRQ_ENTRY(fill_res_srq_entry)
};
