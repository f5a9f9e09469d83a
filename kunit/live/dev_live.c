// SPDX-License-Identifier: GPL-2.0
/*
 * dev_live.c - devices, ports, rates, DMA mapping, and what a device does not have
 *
 * Spec: IBA Vol 1, 11.2.1 (HCA and port attributes); Annex A17 (RoCEv2); kernel-doc
 *	 of the capabilities in include/rdma/ib_verbs.h
 */
#include <linux/bvec.h>
#include <linux/delay.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>

#include "live.h"

static void dev_client(struct kunit *test)
{
	struct ib_device *dev = live_dev(0);
	void *data = live_client_data(dev);

	KUNIT_ASSERT_NOT_NULL(test, data);
	KUNIT_EXPECT_PTR_EQ(test, *(struct ib_device **)data, dev);
	KUNIT_EXPECT_NE(test, (long)live_client_data(live_dev(1)), (long)data);
	KUNIT_EXPECT_TRUE(test, ib_device_try_get(dev));
	ib_device_put(dev);
	KUNIT_EXPECT_PTR_EQ(test, rdma_device_to_ibdev(&dev->dev), dev);
	/* a dummy is in no slot of any node */
	KUNIT_EXPECT_EQ(test, ibdev_to_node(dev), NUMA_NO_NODE);
	KUNIT_EXPECT_TRUE(test, dev->kverbs_provider);
}

/* A device that goes: what its clients see of it. */
struct goes {
	struct ib_device *dev;
	bool data_in_remove;
	struct completion gone;
};

static struct goes goes;
static struct ib_client goes_client;

static int goes_add(struct ib_device *dev)
{
	if (strcmp(dev_name(&dev->dev), live_spare()))
		return -EOPNOTSUPP;
	goes.dev = dev;
	ib_set_client_data(dev, &goes_client, &goes);
	return 0;
}

/* Its last moment: still there, and kept by a reference until that is put. */
static void goes_remove(struct ib_device *dev, void *data)
{
	goes.data_in_remove = data == &goes;
	complete(&goes.gone);
}

static struct ib_client goes_client = {
	.name = "kverbs-goes",
	.add = goes_add,
	.remove = goes_remove,
};

static void unregister_goes(void *client)
{
	ib_unregister_client(client);
}

static void put_goes(void *dev)
{
	put_device(dev);
}

static bool goes_alive(void)
{
	if (!ib_device_try_get(goes.dev))
		return false;
	ib_device_put(goes.dev);
	return true;
}

static void dev_goes(struct kunit *test)
{
	unsigned long limit = jiffies + LIVE_WAIT;

	goes = (struct goes){};
	init_completion(&goes.gone);
	KUNIT_ASSERT_EQ(test, ib_register_client(&goes_client), 0);
	kunit_add_action_or_reset(test, unregister_goes, &goes_client);
	KUNIT_ASSERT_NOT_NULL(test, goes.dev);
	KUNIT_EXPECT_PTR_EQ(test, ib_get_client_data(goes.dev, &goes_client), &goes);
	/* the memory, not the registration */
	kunit_add_action_or_reset(test, put_goes, get_device(&goes.dev->dev));
	KUNIT_ASSERT_TRUE(test, ib_device_try_get(goes.dev));
	ib_unregister_device_queued(goes.dev);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&goes.gone, LIVE_WAIT));
	KUNIT_EXPECT_TRUE(test, goes.data_in_remove);
	/* who has it keeps it */
	msleep(50);
	KUNIT_EXPECT_TRUE(test, goes_alive());
	ib_device_put(goes.dev);
	while (goes_alive() && time_before(jiffies, limit))
		usleep_range(100, 200);
	KUNIT_EXPECT_FALSE(test, goes_alive());
	KUNIT_EXPECT_NULL(test, ib_get_client_data(goes.dev, &goes_client));
}

static void dev_ports(struct kunit *test)
{
	struct ib_device *dev = live_dev(0);
	unsigned int port;
	int turns = 0;

	KUNIT_EXPECT_EQ(test, rdma_start_port(dev), 1);
	KUNIT_EXPECT_EQ(test, rdma_end_port(dev), 1);
	rdma_for_each_port(dev, port) {
		KUNIT_EXPECT_EQ(test, port, 1);
		turns++;
	}
	KUNIT_EXPECT_EQ(test, turns, 1);
	KUNIT_EXPECT_FALSE(test, rdma_cap_ib_switch(dev));
	KUNIT_EXPECT_TRUE(test, rdma_is_port_valid(dev, 1));
	KUNIT_EXPECT_FALSE(test, rdma_is_port_valid(dev, 0));
	KUNIT_EXPECT_FALSE(test, rdma_is_port_valid(dev, 2));
}

static void port_caps(struct kunit *test)
{
	struct ib_device *dev = live_dev(0);

	KUNIT_EXPECT_TRUE(test, rdma_cap_ib_mad(dev, 1));
	KUNIT_EXPECT_FALSE(test, rdma_cap_opa_mad(dev, 1));
	KUNIT_EXPECT_FALSE(test, rdma_cap_ib_smi(dev, 1));
	KUNIT_EXPECT_TRUE(test, rdma_cap_ib_cm(dev, 1));
	KUNIT_EXPECT_FALSE(test, rdma_cap_iw_cm(dev, 1));
	KUNIT_EXPECT_FALSE(test, rdma_cap_ib_sa(dev, 1));
	KUNIT_EXPECT_FALSE(test, rdma_cap_ib_mcast(dev, 1));
	KUNIT_EXPECT_TRUE(test, rdma_cap_af_ib(dev, 1));
	KUNIT_EXPECT_TRUE(test, rdma_cap_eth_ah(dev, 1));
	KUNIT_EXPECT_FALSE(test, rdma_cap_opa_ah(dev, 1));
	KUNIT_EXPECT_EQ(test, rdma_max_mad_size(dev, 1), 256);
	KUNIT_EXPECT_TRUE(test, rdma_cap_roce_gid_table(dev, 1));
	KUNIT_EXPECT_FALSE(test, rdma_core_cap_opa_port(dev, 1));
	KUNIT_EXPECT_TRUE(test, rdma_protocol_roce_udp_encap(dev, 1));
	KUNIT_EXPECT_FALSE(test, rdma_protocol_roce_eth_encap(dev, 1));
	KUNIT_EXPECT_EQ(test, rdma_ah_find_type(dev, 1), RDMA_AH_ATTR_TYPE_ROCE);
	KUNIT_EXPECT_EQ(test, rdma_port_get_link_layer(dev, 1),
			IB_LINK_LAYER_ETHERNET);
	KUNIT_EXPECT_EQ(test, ib_lid_cpu16(0), 0);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(ib_lid_be16(0)), 0);
}

static void port_rates(struct kunit *test)
{
	static const struct { enum ib_rate rate; int mult, mbps; } rows[] = {
		{ IB_RATE_2_5_GBPS, 1, 2500 }, { IB_RATE_5_GBPS, 2, 5000 },
		{ IB_RATE_10_GBPS, 4, 10000 }, { IB_RATE_20_GBPS, 8, 20000 },
		{ IB_RATE_40_GBPS, 16, 40000 }, { IB_RATE_120_GBPS, 48, 120000 },
		{ IB_RATE_14_GBPS, 6, 14062 }, { IB_RATE_25_GBPS, 10, 25781 },
		{ IB_RATE_100_GBPS, 40, 103125 }, { IB_RATE_50_GBPS, 20, 53125 },
		{ IB_RATE_400_GBPS, 160, 425000 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		KUNIT_EXPECT_EQ(test, ib_rate_to_mult(rows[i].rate), rows[i].mult);
		KUNIT_EXPECT_EQ(test, mult_to_ib_rate(rows[i].mult), rows[i].rate);
		KUNIT_EXPECT_EQ(test, ib_rate_to_mbps(rows[i].rate), rows[i].mbps);
	}
	KUNIT_EXPECT_EQ(test, mult_to_ib_rate(3), IB_RATE_PORT_CURRENT);
	KUNIT_EXPECT_EQ(test, ib_rate_to_mult(IB_RATE_PORT_CURRENT), -1);
}

static struct net_device *netdev_of(struct kunit *test, struct ib_device *dev)
{
	const struct ib_gid_attr *attr = rdma_get_gid_attr(dev, 1, 0);
	struct net_device *netdev;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, attr);
	rcu_read_lock();
	netdev = rcu_dereference(attr->ndev);
	rcu_read_unlock();
	rdma_put_gid_attr(attr);
	KUNIT_ASSERT_NOT_NULL(test, netdev);
	return netdev;
}

static int set_mtu(struct net_device *netdev, int mtu)
{
	int err;

	rtnl_lock();
	err = dev_set_mtu(netdev, mtu);
	rtnl_unlock();
	return err;
}

/* The largest of the IBA that fits a frame with all the headers. */
static void port_mtu(struct kunit *test)
{
	static const struct { int netdev, port; } rows[] = {
		{ 1500, 1024 }, { 4200, 4096 }, { 9000, 4096 }, { 576, 256 },
		{ 4179, 2048 }, { 4180, 4096 }, { 65000, 4096 },
	};
	struct ib_device *dev = live_dev(0);
	struct net_device *netdev = netdev_of(test, dev);
	int old = netdev->mtu, i;
	struct ib_port_attr attr;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		KUNIT_EXPECT_EQ(test, set_mtu(netdev, rows[i].netdev), 0);
		KUNIT_EXPECT_EQ(test, ib_query_port(dev, 1, &attr), 0);
		KUNIT_EXPECT_EQ_MSG(test, ib_mtu_enum_to_int(attr.active_mtu),
				    rows[i].port, "netdev %d", rows[i].netdev);
		/* this one is what the port could, whatever the netdev can now */
		KUNIT_EXPECT_EQ(test, rdma_mtu_from_attr(dev, 1, &attr), 4096);
		KUNIT_EXPECT_EQ(test, rdma_mtu_enum_to_int(dev, 1, attr.active_mtu),
				rows[i].port);
	}
	KUNIT_EXPECT_EQ(test, set_mtu(netdev, old), 0);
	for (i = IB_MTU_256; i <= IB_MTU_4096; i++)
		KUNIT_EXPECT_EQ(test, rdma_mtu_enum_to_int(dev, 1, i), 128 << i);
}

static void port_attr(struct kunit *test)
{
	struct ib_device *dev = live_dev(0);
	struct ib_port_attr attr;
	u16 pkey = 0;

	KUNIT_ASSERT_EQ(test, ib_query_port(dev, 1, &attr), 0);
	KUNIT_EXPECT_EQ(test, attr.state, IB_PORT_ACTIVE);
	KUNIT_EXPECT_EQ(test, attr.phys_state, IB_PORT_PHYS_STATE_LINK_UP);
	KUNIT_EXPECT_EQ(test, attr.max_msg_sz, 1u << 31);
	KUNIT_EXPECT_EQ(test, attr.lid, 0);
	KUNIT_EXPECT_TRUE(test, attr.ip_gids);
#ifdef MRSOFT_HAVE_IB_PORT_SPEED_INFO
	{
		struct ib_port_speed_info info = {};

		KUNIT_EXPECT_EQ(test, ib_port_attr_to_speed_info(&attr, &info), 0);
		KUNIT_EXPECT_GT(test, info.rate, 0);
	}
#endif
	KUNIT_EXPECT_EQ(test, ib_query_port(dev, 2, &attr), -EINVAL);
	KUNIT_EXPECT_EQ(test, ib_query_pkey(dev, 1, 0, &pkey), 0);
	KUNIT_EXPECT_EQ(test, pkey, 0xffff);
	KUNIT_EXPECT_NE(test, ib_query_pkey(dev, 1, 1, &pkey), 0);
}

/*
 * Looked for once more: what the table had it has, and work goes on meanwhile. An
 * address that comes at this time may be added.
 */
static void dev_rescan(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	union ib_gid before[16] = {}, after;
	struct ib_device *dev = live_dev(0);
	int i, turn;

	for (i = 0; i < ARRAY_SIZE(before); i++)
		rdma_query_gid(dev, 1, i, &before[i]);
	for (turn = 0; turn < 10; turn++) {
		rdma_roce_rescan_device(dev);
		KUNIT_EXPECT_EQ(test, live_rdma(test, &pair->end[0], IB_WR_RDMA_WRITE,
						live_sge(&pair->end[0], 0, 8),
						pair->end[1].addr, pair->end[1].rkey),
				IB_WC_SUCCESS);
	}
	msleep(200);
	for (i = 0; i < ARRAY_SIZE(before); i++) {
		if (!memchr_inv(&before[i], 0, sizeof(after)))
			continue;
		memset(&after, 0, sizeof(after));
		rdma_query_gid(dev, 1, i, &after);
		KUNIT_EXPECT_MEMEQ(test, after.raw, before[i].raw, sizeof(after));
	}
}

/* A device without DMA: addresses are the kernel's own. */
static void dma_identity(struct kunit *test)
{
	struct ib_device *dev = live_dev(0);
	struct page *page = live_pages(test, 0);
	u8 *at = page_address(page);
	u64 addr;

	KUNIT_EXPECT_TRUE(test, ib_uses_virt_dma(dev));
	addr = ib_dma_map_single(dev, at + 5, 100, DMA_TO_DEVICE);
	KUNIT_EXPECT_PTR_EQ(test, ib_virt_dma_to_ptr(addr), at + 5);
	KUNIT_EXPECT_PTR_EQ(test, ib_virt_dma_to_page(addr), page);
	KUNIT_EXPECT_EQ(test, ib_dma_mapping_error(dev, addr), 0);
	KUNIT_EXPECT_EQ(test, ib_dma_mapping_error(dev, 0), 0);
	KUNIT_EXPECT_EQ(test, ib_dma_mapping_error(dev, ~0ull), 0);
	live_fill(at, PAGE_SIZE, 1);
	ib_dma_sync_single_for_cpu(dev, addr, 100, DMA_FROM_DEVICE);
	ib_dma_sync_single_for_device(dev, addr, 100, DMA_TO_DEVICE);
	ib_dma_unmap_single(dev, addr, 100, DMA_TO_DEVICE);
	addr = ib_dma_map_page(dev, page, 33, 100, DMA_TO_DEVICE);
	KUNIT_EXPECT_PTR_EQ(test, ib_virt_dma_to_ptr(addr), at + 33);
	ib_dma_unmap_page(dev, addr, 100, DMA_TO_DEVICE);
#ifdef MRSOFT_HAVE_IB_DMA_MAP_BVEC
	{
		struct bio_vec bvec;

		bvec_set_page(&bvec, page, 100, 44);
		addr = ib_dma_map_bvec(dev, &bvec, DMA_TO_DEVICE);
		KUNIT_EXPECT_PTR_EQ(test, ib_virt_dma_to_ptr(addr), at + 44);
		ib_dma_unmap_bvec(dev, addr, 100, DMA_TO_DEVICE);
	}
#endif
	KUNIT_EXPECT_EQ(test, live_filled(at, PAGE_SIZE, 1), PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, ib_dma_max_seg_size(dev), UINT_MAX);
}

static void free_table(void *sgt)
{
	sg_free_table(sgt);
}

static void dma_lists(struct kunit *test)
{
	static const unsigned int lengths[] = { 1, 200, 400 };
	struct ib_device *dev = live_dev(0);
	struct page *page = live_pages(test, 0);
	struct scatterlist *sg;
	struct sg_table *sgt;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		sgt = live_mem(test, sizeof(*sgt));
		KUNIT_ASSERT_EQ(test, sg_alloc_table(sgt, lengths[i], GFP_KERNEL), 0);
		kunit_add_action_or_reset(test, free_table, sgt);
		for_each_sgtable_sg(sgt, sg, j)
			sg_set_page(sg, page, 8, 8 * j);
		/* neighbours are not joined */
		KUNIT_EXPECT_EQ(test, ib_dma_map_sg(dev, sgt->sgl, lengths[i],
						    DMA_TO_DEVICE), lengths[i]);
		for_each_sgtable_sg(sgt, sg, j) {
			KUNIT_EXPECT_PTR_EQ(test, ib_virt_dma_to_ptr(sg_dma_address(sg)),
					    sg_virt(sg));
			KUNIT_EXPECT_EQ(test, sg_dma_len(sg), 8);
		}
		ib_dma_unmap_sg(dev, sgt->sgl, lengths[i], DMA_TO_DEVICE);
		sgt->nents = 0;
		KUNIT_EXPECT_EQ(test, ib_dma_map_sgtable_attrs(dev, sgt, DMA_TO_DEVICE,
							       0), 0);
		KUNIT_EXPECT_EQ(test, sgt->nents, lengths[i]);
		ib_dma_unmap_sgtable_attrs(dev, sgt, DMA_TO_DEVICE, 0);
	}
}

/* A17.9.1: a source port from the dynamic range, for ECMP. */
static void udp_sport(struct kunit *test)
{
	u32 fl, a, b;

	for (fl = 0; fl <= 0xfffff; fl += 0x11) {
		KUNIT_EXPECT_GE(test, rdma_flow_label_to_udp_sport(fl), 0xc000);
		if (fl)
			KUNIT_EXPECT_EQ(test, rdma_flow_label_to_udp_sport(fl),
					rdma_get_udp_sport(fl, 1, 2));
	}
	KUNIT_EXPECT_EQ(test, rdma_flow_label_to_udp_sport(0), 0xc000);
	KUNIT_EXPECT_EQ(test, rdma_flow_label_to_udp_sport(1), 0xc001);
	KUNIT_EXPECT_EQ(test, rdma_flow_label_to_udp_sport(0xfffff),
			0xc000 | (0x3fff ^ 0x3f));
	for (a = 1; a < 0x1000000; a = a * 3 + 7) {
		for (b = 2; b < 0x1000000; b = b * 5 + 3) {
			fl = rdma_calc_flow_label(a, b);
			KUNIT_EXPECT_EQ(test, fl, rdma_calc_flow_label(b, a));
			KUNIT_EXPECT_LE(test, fl, 0xfffff);
			KUNIT_EXPECT_EQ(test, rdma_get_udp_sport(0, a, b),
					rdma_flow_label_to_udp_sport(fl));
		}
	}
}

/* The operations that the device has, of those from device_group on: these, no more. */
#define OP(name)	offsetof(struct ib_device, ops.name)
static const size_t ops_present[] = {
	OP(add_gid), OP(advise_mr), OP(alloc_dm), OP(alloc_hw_port_stats),
	OP(alloc_mr), OP(alloc_mw), OP(alloc_pd), OP(alloc_ucontext),
	OP(attach_mcast), OP(create_ah), OP(create_cq), OP(create_qp),
	OP(create_srq), OP(create_user_ah), OP(dealloc_dm), OP(dealloc_driver),
	OP(dealloc_mw), OP(dealloc_pd), OP(dealloc_ucontext), OP(del_gid),
	OP(dereg_mr), OP(destroy_ah), OP(destroy_cq), OP(destroy_qp),
	OP(destroy_srq), OP(detach_mcast), OP(device_group),
	OP(disassociate_ucontext), OP(fill_res_cq_entry),
	OP(fill_res_mr_entry), OP(fill_res_qp_entry), OP(fill_stat_mr_entry),
	OP(get_dev_fw_str), OP(get_dma_mr), OP(get_hw_stats),
	OP(get_link_layer), OP(get_netdev), OP(get_port_immutable),
	OP(map_mr_sg), OP(mmap), OP(mmap_free), OP(modify_ah), OP(modify_cq),
	OP(modify_device), OP(modify_qp), OP(modify_srq), OP(poll_cq),
	OP(post_recv), OP(post_send), OP(post_srq_recv), OP(pre_destroy_cq),
	OP(process_mad), OP(query_ah), OP(query_device), OP(query_pkey),
	OP(query_port), OP(query_qp), OP(query_srq), OP(reg_dm_mr),
	OP(reg_user_mr), OP(reg_user_mr_dmabuf), OP(req_notify_cq),
	OP(rereg_user_mr),
#ifdef MRSOFT_HAVE_RESIZE_USER_CQ
	OP(resize_user_cq),
#else
	OP(resize_cq),
#endif
#ifdef MRSOFT_HAVE_FILL_RES_SRQ_ENTRY
	OP(fill_res_srq_entry),
#endif
};

static bool op_is_listed(size_t offset)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(ops_present); i++)
		if (ops_present[i] == offset)
			return true;
	return false;
}

static void ops_list(struct kunit *test)
{
	const void *dev = live_dev(0);
	size_t at;

	for (at = OP(device_group); at < OP(size_ib_ah); at += sizeof(void *))
		KUNIT_EXPECT_EQ_MSG(test, *(void * const *)(dev + at) != NULL,
				    op_is_listed(at), "operation at byte %zu", at);
}

/* What the device has no operation for, the core says. */
static void ops_absent(struct kunit *test)
{
	struct ib_device *dev = live_dev(0);
	struct ib_pd *pd = live_pd(test, dev, 0);
	struct ib_mr *mr = live_mr(test, pd, IB_MR_TYPE_MEM_REG, 1);
	struct ib_wq_init_attr wq = { .wq_type = IB_WQT_RQ };
	struct ifla_vf_info vf = {};
	struct ib_mr_status status;

	KUNIT_EXPECT_NULL(test, dev->ops.check_mr_status);
	KUNIT_EXPECT_EQ(test, ib_check_mr_status(mr, IB_MR_CHECK_SIG_STATUS, &status),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_alloc_mr_integrity(pd, 1, 1)), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_alloc_xrcd_user(dev, NULL, NULL)),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_create_wq(pd, &wq)), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, ib_set_vf_link_state(dev, 0, 1, 0), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, ib_get_vf_config(dev, 0, 1, &vf), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, ib_set_vf_guid(dev, 0, 1, 0, 0), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, PTR_ERR(rdma_alloc_netdev(dev, 1, RDMA_NETDEV_IPOIB,
							"ib%d", NET_NAME_UNKNOWN,
							ether_setup)), -EOPNOTSUPP);
	/* those that the core must have of a device for the kernel's own use */
	KUNIT_EXPECT_TRUE(test, dev->ops.post_send && dev->ops.post_recv &&
			  dev->ops.poll_cq && dev->ops.req_notify_cq &&
			  dev->ops.get_dma_mr && dev->ops.map_mr_sg &&
			  dev->ops.alloc_mr && dev->ops.modify_cq &&
			  dev->ops.attach_mcast && dev->ops.detach_mcast);
}

static struct kunit_case live_dev_cases[] = {
	KUNIT_CASE(dev_client),
	KUNIT_CASE(dev_goes),
	KUNIT_CASE(dev_ports),
	KUNIT_CASE(dev_rescan),
	KUNIT_CASE(port_caps),
	KUNIT_CASE(port_rates),
	KUNIT_CASE(port_mtu),
	KUNIT_CASE(port_attr),
	KUNIT_CASE(dma_identity),
	KUNIT_CASE(dma_lists),
	KUNIT_CASE(udp_sport),
	KUNIT_CASE(ops_list),
	KUNIT_CASE(ops_absent),
	{}
};

struct kunit_suite live_dev_suite = {
	.name = "dev",
	.suite_init = live_client_register,
	.suite_exit = live_client_unregister,
	.test_cases = live_dev_cases,
};
