// SPDX-License-Identifier: GPL-2.0
/*
 * mr_live.c - fast registration, PDs and their keys on live devices
 *
 * The second end owns the regions; the first reads and writes them.
 *
 * Spec: IBA Vol 1, 10.6 (memory management), 11.2.8, 11.6.2 (statuses);
 *	 kernel-doc of ib_map_mr_sg() and ib_alloc_pd()
 */
#include <linux/delay.h>
#include <linux/kthread.h>

#include "live.h"

struct region {
	struct ib_mr *mr;
	struct sg_table sgt;
	struct page *page;
	u8 *at;		/* its first byte */
	size_t bytes;
};

static void free_table(void *sgt)
{
	sg_free_table(sgt);
}

static void table(struct kunit *test, struct sg_table *sgt, unsigned int nents)
{
	KUNIT_ASSERT_EQ(test, sg_alloc_table(sgt, nents, GFP_KERNEL), 0);
	kunit_add_action_or_reset(test, free_table, sgt);
}

/* One contiguous piece, in @nents entries from @skip bytes on. */
static struct region *region(struct kunit *test, struct live_end *end,
			     unsigned int order, unsigned int nents, u32 skip,
			     unsigned int page_size)
{
	struct region *r = live_mem(test, sizeof(*r));
	size_t size = (PAGE_SIZE << order) / nents;
	struct scatterlist *sg;
	int i;

	r->page = live_pages(test, order);
	table(test, &r->sgt, nents);
	for_each_sgtable_sg(&r->sgt, sg, i)
		sg_set_page(sg, r->page + i * (size >> PAGE_SHIFT), size, 0);
	/* skip at the start, and as much at the end */
	r->sgt.sgl->offset += skip;
	r->sgt.sgl->length -= skip;
	sg_last(r->sgt.sgl, nents)->length -= skip;
	r->at = (u8 *)page_address(r->page) + skip;
	r->bytes = (PAGE_SIZE << order) - 2 * skip;
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(end->dev, r->sgt.sgl, nents,
					    DMA_BIDIRECTIONAL), nents);
	r->mr = live_mr(test, end->pd, IB_MR_TYPE_MEM_REG, 64);
	KUNIT_ASSERT_EQ(test, ib_map_mr_sg(r->mr, r->sgt.sgl, nents, NULL,
					   page_size), nents);
	KUNIT_EXPECT_EQ(test, r->mr->length, r->bytes);
	return r;
}

/* All of @r is what the first end writes, and reads back; nothing around it. */
static void check_bytes(struct kunit *test, struct live_pair *pair,
			struct region *r)
{
	struct live_end *end = &pair->end[0];
	size_t bytes = min_t(size_t, r->bytes, LIVE_BYTES / 2);
	size_t off = r->bytes - bytes;
	u64 iova = r->mr->iova;

	live_fill(end->buf, bytes, 1);
	memset(r->at, 0, r->bytes);
	KUNIT_EXPECT_EQ(test, live_rdma(test, end, IB_WR_RDMA_WRITE,
					live_sge(end, 0, bytes), iova,
					r->mr->rkey), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_filled(r->at, bytes, 1), bytes);
	live_fill(end->buf, bytes, 9);
	KUNIT_EXPECT_EQ(test, live_rdma(test, end, IB_WR_RDMA_WRITE,
					live_sge(end, 0, bytes), iova + off,
					r->mr->rkey), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_filled(r->at + off, bytes, 9), bytes);
	memset(end->buf, 0, LIVE_BYTES);
	KUNIT_EXPECT_EQ(test, live_rdma(test, end, IB_WR_RDMA_READ,
					live_sge(end, 0, bytes), iova + off,
					r->mr->rkey), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_filled(end->buf, bytes, 9), bytes);
}

static enum ib_wc_status write8(struct kunit *test, struct live_pair *pair,
				u64 addr, u32 rkey)
{
	struct live_end *end = &pair->end[0];

	return live_rdma(test, end, IB_WR_RDMA_WRITE, live_sge(end, 0, 8), addr,
			 rkey);
}

/* Refused; the pair is connected anew. */
static void expect_refused(struct kunit *test, struct live_pair *pair, u64 addr,
			   u32 rkey)
{
	KUNIT_EXPECT_EQ(test, write8(test, pair, addr, rkey),
			IB_WC_REM_ACCESS_ERR);
	live_again(test, pair);
}

static void mr_alloc(struct kunit *test)
{
	struct ib_device *dev = live_dev(0);
	struct ib_pd *pd = live_pd(test, dev, 0);
	u32 max = dev->attrs.max_fast_reg_page_list_len;
	struct ib_mr *mr;

	mr = live_mr(test, pd, IB_MR_TYPE_MEM_REG, 1);
	KUNIT_EXPECT_EQ(test, mr->type, IB_MR_TYPE_MEM_REG);
	KUNIT_EXPECT_PTR_EQ(test, mr->pd, pd);
	mr = live_mr(test, pd, IB_MR_TYPE_MEM_REG, max);
	KUNIT_EXPECT_EQ(test, mr->lkey, mr->rkey);
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 0)),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG,
						  max + 1)), -EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_alloc_mr(pd, IB_MR_TYPE_USER, 1)),
			-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_alloc_mr(pd, 99, 1)), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_alloc_mr_integrity(pd, 1, 1)),
			-EOPNOTSUPP);
}

static void mr_whole(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *own = &pair->end[1];
	struct region *r = region(test, own, 3, 8, 0, PAGE_SIZE);

	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey, LIVE_ALL),
			IB_WC_SUCCESS);
	check_bytes(test, pair, r);
	expect_refused(test, pair, r->mr->iova + r->bytes - 7, r->mr->rkey);
	expect_refused(test, pair, r->mr->iova - 1, r->mr->rkey);
	check_bytes(test, pair, r);
}

/* The iova is the ULP's to choose once it has mapped. */
static void mr_iova(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *own = &pair->end[1];
	struct region *r = region(test, own, 2, 4, 24, PAGE_SIZE);

	r->mr->iova = 0x123456789018ull;
	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey, LIVE_ALL),
			IB_WC_SUCCESS);
	check_bytes(test, pair, r);
}

static void mr_odd(struct kunit *test)
{
	static const u32 skips[] = { 1, 100, 511, 4095 };
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *own = &pair->end[1];
	struct region *r;
	int i;

	for (i = 0; i < ARRAY_SIZE(skips); i++) {
		r = region(test, own, 2, 4, skips[i], PAGE_SIZE);
		KUNIT_EXPECT_EQ(test, r->mr->iova & ~PAGE_MASK, skips[i]);
		KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey,
					       LIVE_ALL), IB_WC_SUCCESS);
		check_bytes(test, pair, r);
		expect_refused(test, pair, r->mr->iova - 1, r->mr->rkey);
	}
}

static void mr_page_sizes(struct kunit *test)
{
	static const unsigned int shifts[] = { 13, 16, 18, 20 };
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *own = &pair->end[1];
	struct region *r;
	int i;

	for (i = 0; i < ARRAY_SIZE(shifts); i++) {
		r = region(test, own, shifts[i] + 1 - PAGE_SHIFT, 2, 40,
			   1u << shifts[i]);
		KUNIT_EXPECT_EQ(test, r->mr->page_size, 1u << shifts[i]);
		KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey,
					       LIVE_ALL), IB_WC_SUCCESS);
		check_bytes(test, pair, r);
	}
}

/* sg_offset: where it starts, and then where it stopped. */
static void mr_sg_offset(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *own = &pair->end[1];
	struct region *r = region(test, own, 2, 4, 0, PAGE_SIZE);
	unsigned int offset = 1000;

	KUNIT_EXPECT_EQ(test, ib_map_mr_sg(r->mr, r->sgt.sgl, 4, &offset,
					   PAGE_SIZE), 4);
	KUNIT_EXPECT_EQ(test, offset, 0);
	KUNIT_EXPECT_EQ(test, r->mr->length, r->bytes - 1000);
	KUNIT_EXPECT_EQ(test, r->mr->iova,
			sg_dma_address(r->sgt.sgl) + 1000);
	r->at += 1000;
	r->bytes -= 1000;
	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey, LIVE_ALL),
			IB_WC_SUCCESS);
	check_bytes(test, pair, r);
	offset = PAGE_SIZE + 1;
	KUNIT_EXPECT_EQ(test, ib_map_mr_sg(r->mr, r->sgt.sgl, 4, &offset,
					   PAGE_SIZE), -EINVAL);
	KUNIT_EXPECT_EQ(test, ib_map_mr_sg(r->mr, r->sgt.sgl, 0, NULL,
					   PAGE_SIZE), -EINVAL);
}

/* What does not fit is left over, and is not part of the region. */
static void mr_too_many(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *own = &pair->end[1];
	struct region *r = region(test, own, 3, 8, 0, PAGE_SIZE);

	r->mr = live_mr(test, own->pd, IB_MR_TYPE_MEM_REG, 5);
	KUNIT_EXPECT_EQ(test, ib_map_mr_sg(r->mr, r->sgt.sgl, 8, NULL,
					   PAGE_SIZE), 5);
	KUNIT_EXPECT_EQ(test, r->mr->length, 5 * PAGE_SIZE);
	r->bytes = 5 * PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey, LIVE_ALL),
			IB_WC_SUCCESS);
	check_bytes(test, pair, r);
	expect_refused(test, pair, r->mr->iova + 5 * PAGE_SIZE, r->mr->rkey);
}

/* A gap ends what a region of the plain kind can map. */
static void mr_stops_at_gap(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *own = &pair->end[1];
	struct region *r = region(test, own, 2, 4, 0, PAGE_SIZE);
	struct scatterlist *sg = sg_next(sg_next(r->sgt.sgl));

	sg->offset = 8;
	sg->length -= 8;
	ib_dma_map_sg(own->dev, r->sgt.sgl, 4, DMA_BIDIRECTIONAL);
	KUNIT_EXPECT_EQ(test, ib_map_mr_sg(r->mr, r->sgt.sgl, 4, NULL,
					   PAGE_SIZE), 2);
	KUNIT_EXPECT_EQ(test, r->mr->length, 2 * PAGE_SIZE);
}

/* More entries than a page of them has. */
static void mr_chained(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *own = &pair->end[1];
	struct region *r = live_mem(test, sizeof(*r));
	unsigned int n = 3 * SG_MAX_SINGLE_ALLOC + 5, i, page;
	struct scatterlist *sg;

	table(test, &r->sgt, n);
	for_each_sgtable_sg(&r->sgt, sg, i)
		sg_set_page(sg, live_pages(test, 0), PAGE_SIZE, 0);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(own->dev, r->sgt.sgl, n,
					    DMA_BIDIRECTIONAL), n);
	r->mr = live_mr(test, own->pd, IB_MR_TYPE_MEM_REG, n);
	KUNIT_ASSERT_EQ(test, ib_map_mr_sg(r->mr, r->sgt.sgl, n, NULL,
					   PAGE_SIZE), n);
	KUNIT_EXPECT_EQ(test, r->mr->length, n * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey, LIVE_ALL),
			IB_WC_SUCCESS);
	/* across the last two links of the chain */
	for (page = n - 2 * SG_MAX_SINGLE_ALLOC; page < n; page += 64) {
		live_fill(pair->end[0].buf, LIVE_BYTES, page);
		i = min_t(unsigned int, n - page, LIVE_BYTES / PAGE_SIZE);
		KUNIT_EXPECT_EQ(test, live_rdma(test, &pair->end[0],
						IB_WR_RDMA_WRITE,
						live_sge(&pair->end[0], 0, i * PAGE_SIZE),
						r->mr->iova + page * PAGE_SIZE,
						r->mr->rkey), IB_WC_SUCCESS);
	}
	for_each_sgtable_sg(&r->sgt, sg, i) {
		page = n - 2 * SG_MAX_SINGLE_ALLOC;
		if (i < page || (i - page) % 64 >= LIVE_BYTES / PAGE_SIZE)
			continue;
		page += (i - page) / 64 * 64;
		live_fill(pair->end[0].buf, LIVE_BYTES, page);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(sg_virt(sg), pair->end[0].buf +
						 (i - page) * PAGE_SIZE, PAGE_SIZE), 0,
				    "page %u", i);
	}
}

#define BIG_ORDER	10	/* the largest that there is everywhere */
#define BIG_TRIES	16

/* ib_dma_max_seg_size() sets no limit: 8 MiB in one entry. */
static void mr_big_segment(struct kunit *test)
{
	size_t half = PAGE_SIZE << BIG_ORDER;
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *own = &pair->end[1];
	struct region *r = live_mem(test, sizeof(*r));
	struct page *pages[BIG_TRIES];
	int i, j;

	for (i = 0; i < BIG_TRIES && !r->page; i++) {
		pages[i] = live_pages(test, BIG_ORDER);
		for (j = 0; j < i; j++)
			if (page_to_pfn(pages[i]) - page_to_pfn(pages[j]) ==
			    1 << BIG_ORDER)
				r->page = pages[j];
			else if (page_to_pfn(pages[j]) - page_to_pfn(pages[i]) ==
				 1 << BIG_ORDER)
				r->page = pages[i];
	}
	KUNIT_ASSERT_NOT_NULL(test, r->page);
	KUNIT_EXPECT_GE(test, ib_dma_max_seg_size(own->dev), 2 * half);
	table(test, &r->sgt, 1);
	sg_set_page(r->sgt.sgl, r->page, 2 * half, 0);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(own->dev, r->sgt.sgl, 1,
					    DMA_BIDIRECTIONAL), 1);
	r->mr = live_mr(test, own->pd, IB_MR_TYPE_MEM_REG, 2048);
	KUNIT_ASSERT_EQ(test, ib_map_mr_sg(r->mr, r->sgt.sgl, 1, NULL, PAGE_SIZE),
			1);
	KUNIT_EXPECT_EQ(test, r->mr->length, 2 * half);
	r->at = page_address(r->page);
	r->bytes = 2 * half;
	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey, LIVE_ALL),
			IB_WC_SUCCESS);
	check_bytes(test, pair, r);
}

/* Entries of any length, anywhere: the region has their bytes one after another. */
static void mr_gaps(struct kunit *test)
{
	static const struct { u32 off, len; } parts[] = {
		{ 100, 1 }, { 4000, 96 }, { 0, 4096 }, { 17, 333 }, { 1, 4095 },
		{ 8, 2000 },
	};
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *own = &pair->end[1];
	struct region *r = live_mem(test, sizeof(*r));
	struct scatterlist *sg;
	u8 *all = live_mem(test, LIVE_BYTES);
	u32 at = 0;
	int i;

	KUNIT_EXPECT_TRUE(test, own->dev->attrs.kernel_cap_flags & IBK_SG_GAPS_REG);
	table(test, &r->sgt, ARRAY_SIZE(parts));
	for_each_sgtable_sg(&r->sgt, sg, i)
		sg_set_page(sg, live_pages(test, 0), parts[i].len, parts[i].off);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(own->dev, r->sgt.sgl, ARRAY_SIZE(parts),
					    DMA_BIDIRECTIONAL), ARRAY_SIZE(parts));
	r->mr = live_mr(test, own->pd, IB_MR_TYPE_SG_GAPS, ARRAY_SIZE(parts));
	KUNIT_ASSERT_EQ(test, ib_map_mr_sg(r->mr, r->sgt.sgl, ARRAY_SIZE(parts), NULL,
					   PAGE_SIZE), ARRAY_SIZE(parts));
	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey, LIVE_ALL),
			IB_WC_SUCCESS);
	r->bytes = r->mr->length;
	live_fill(pair->end[0].buf, r->bytes, 3);
	/* in two writes, the second from the middle of an entry on */
	KUNIT_EXPECT_EQ(test, live_rdma(test, &pair->end[0], IB_WR_RDMA_WRITE,
					live_sge(&pair->end[0], 0, 2000),
					r->mr->iova, r->mr->rkey), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_rdma(test, &pair->end[0], IB_WR_RDMA_WRITE,
					live_sge(&pair->end[0], 2000, r->bytes - 2000),
					r->mr->iova + 2000, r->mr->rkey), IB_WC_SUCCESS);
	for_each_sgtable_sg(&r->sgt, sg, i) {
		u8 *page = page_address(sg_page(sg));

		memcpy(all + at, page + parts[i].off, parts[i].len);
		at += parts[i].len;
		/* not a byte beside it */
		if (parts[i].off)
			KUNIT_EXPECT_EQ(test, page[parts[i].off - 1], 0);
		if (parts[i].off + parts[i].len < PAGE_SIZE)
			KUNIT_EXPECT_EQ(test, page[parts[i].off + parts[i].len], 0);
	}
	KUNIT_EXPECT_EQ(test, r->bytes, at);
	KUNIT_EXPECT_EQ(test, live_filled(all, at, 3), at);
	expect_refused(test, pair, r->mr->iova + at - 7, r->mr->rkey);
}

static void mr_access(struct kunit *test)
{
	static const int rights[] = {
		IB_ACCESS_LOCAL_WRITE,
		IB_ACCESS_REMOTE_READ,
		IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
		IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_ATOMIC,
		LIVE_ALL,
	};
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *end = &pair->end[0], *own = &pair->end[1];
	struct region *r = region(test, own, 0, 1, 0, PAGE_SIZE);
	enum ib_wc_status status;
	int i, has;

	for (i = 0; i < ARRAY_SIZE(rights); i++) {
		has = rights[i];
		KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey, has),
				IB_WC_SUCCESS);
		status = live_rdma(test, end, IB_WR_RDMA_READ, live_sge(end, 0, 64),
				   r->mr->iova, r->mr->rkey);
		KUNIT_EXPECT_EQ_MSG(test, status, has & IB_ACCESS_REMOTE_READ ?
				    IB_WC_SUCCESS : IB_WC_REM_ACCESS_ERR,
				    "READ, rights %x", has);
		live_again(test, pair);
		status = write8(test, pair, r->mr->iova, r->mr->rkey);
		KUNIT_EXPECT_EQ_MSG(test, status, has & IB_ACCESS_REMOTE_WRITE ?
				    IB_WC_SUCCESS : IB_WC_REM_ACCESS_ERR,
				    "WRITE, rights %x", has);
		live_again(test, pair);
		status = live_atomic(test, end, live_sge(end, 0, 8), r->mr->iova,
				     r->mr->rkey, 1);
		KUNIT_EXPECT_EQ_MSG(test, status, has & IB_ACCESS_REMOTE_ATOMIC ?
				    IB_WC_SUCCESS : IB_WC_REM_ACCESS_ERR,
				    "atomic, rights %x", has);
		live_again(test, pair);
		KUNIT_EXPECT_EQ(test, live_inv(test, own, r->mr->rkey),
				IB_WC_SUCCESS);
	}
	/* IBA 10.6.3.2: remote write and atomic need local write */
	KUNIT_EXPECT_NE(test, live_reg(test, own, r->mr, r->mr->rkey,
				       IB_ACCESS_REMOTE_WRITE), IB_WC_SUCCESS);
	live_again(test, pair);
	KUNIT_EXPECT_NE(test, live_reg(test, own, r->mr, r->mr->rkey,
				       IB_ACCESS_REMOTE_ATOMIC), IB_WC_SUCCESS);
	live_again(test, pair);
	expect_refused(test, pair, r->mr->iova, r->mr->rkey);
}

/* The lkey: source of a send, and sink of a receive if it may be written. */
static void mr_local(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *end = &pair->end[0], *own = &pair->end[1];
	struct region *r = region(test, own, 0, 1, 16, PAGE_SIZE);
	struct ib_sge sge = { r->mr->iova, 256, r->mr->lkey };

	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey, 0),
			IB_WC_SUCCESS);
	live_fill(r->at, 256, 5);
	KUNIT_EXPECT_EQ(test, live_recv(test, end, end->addr, 256, end->lkey, 1), 0);
	KUNIT_EXPECT_EQ(test, live_send(test, own, sge, 0), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_wc(test, end->rcq).status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_filled(end->buf, 256, 5), 256);
	/* not for writing */
	KUNIT_EXPECT_EQ(test, live_recv(test, own, sge.addr, 256, sge.lkey, 2), 0);
	KUNIT_EXPECT_EQ(test, live_send(test, end, live_sge(end, 0, 256), 0),
			IB_WC_REM_OP_ERR);
	KUNIT_EXPECT_EQ(test, live_wc(test, own->rcq).status, IB_WC_LOC_PROT_ERR);
	live_again(test, pair);
	KUNIT_EXPECT_EQ(test, live_inv(test, own, r->mr->rkey), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey,
				       IB_ACCESS_LOCAL_WRITE), IB_WC_SUCCESS);
	live_fill(end->buf, 256, 6);
	KUNIT_EXPECT_EQ(test, live_recv(test, own, sge.addr, 256, sge.lkey, 3), 0);
	KUNIT_EXPECT_EQ(test, live_send(test, end, live_sge(end, 0, 256), 0),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_wc(test, own->rcq).status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_filled(r->at, 256, 6), 256);
	/* one past its end */
	sge.addr = r->mr->iova + r->bytes - 255;
	KUNIT_EXPECT_EQ(test, live_send(test, own, sge, 0), IB_WC_LOC_PROT_ERR);
}

static void mr_local_inv(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *own = &pair->end[1];
	struct region *r = region(test, own, 0, 1, 0, PAGE_SIZE);
	struct ib_sge sge = { r->mr->iova, 8, r->mr->lkey };

	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey, LIVE_ALL),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, write8(test, pair, r->mr->iova, r->mr->rkey),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_inv(test, own, r->mr->rkey), IB_WC_SUCCESS);
	expect_refused(test, pair, r->mr->iova, r->mr->rkey);
	KUNIT_EXPECT_EQ(test, live_send(test, own, sge, 0), IB_WC_LOC_PROT_ERR);
	live_again(test, pair);
	/* it is not valid any more */
	KUNIT_EXPECT_NE(test, live_inv(test, own, r->mr->rkey), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_query_state(test, own->qp), IB_QPS_ERR);
	live_again(test, pair);
	/* not a region of this kind */
	KUNIT_EXPECT_NE(test, live_inv(test, own, own->lkey), IB_WC_SUCCESS);
}

static void mr_remote_inv(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *end = &pair->end[0], *own = &pair->end[1];
	struct region *r = region(test, own, 0, 1, 0, PAGE_SIZE);
	struct ib_wc wc;

	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey, LIVE_ALL),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_recv(test, own, own->addr, 64, own->lkey, 7), 0);
	KUNIT_EXPECT_EQ(test, live_send(test, end, live_sge(end, 0, 64),
					r->mr->rkey), IB_WC_SUCCESS);
	wc = live_wc(test, own->rcq);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_RECV);
	KUNIT_EXPECT_TRUE(test, wc.wc_flags & IB_WC_WITH_INVALIDATE);
	KUNIT_EXPECT_FALSE(test, wc.wc_flags & IB_WC_WITH_IMM);
	KUNIT_EXPECT_EQ(test, wc.ex.invalidate_rkey, r->mr->rkey);
	expect_refused(test, pair, r->mr->iova, r->mr->rkey);
	/* not valid: the peer's mistake */
	KUNIT_EXPECT_EQ(test, live_recv(test, own, own->addr, 64, own->lkey, 8), 0);
	KUNIT_EXPECT_EQ(test, live_send(test, end, live_sge(end, 0, 64),
					r->mr->rkey), IB_WC_REM_ACCESS_ERR);
	live_again(test, pair);
	/* and it can be made valid again */
	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey, LIVE_ALL),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, write8(test, pair, r->mr->iova, r->mr->rkey),
			IB_WC_SUCCESS);
}

static void mr_same_map(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *own = &pair->end[1];
	struct region *r = region(test, own, 1, 2, 12, PAGE_SIZE);
	int i;

	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey,
					       LIVE_ALL), IB_WC_SUCCESS);
		check_bytes(test, pair, r);
		KUNIT_EXPECT_EQ(test, live_inv(test, own, r->mr->rkey),
				IB_WC_SUCCESS);
	}
}

/* A map does not touch what is valid: that changes with REG_MR. */
static void mr_map_while_valid(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *own = &pair->end[1];
	struct region *r = region(test, own, 1, 2, 0, PAGE_SIZE);
	struct region *other = region(test, own, 1, 2, 0, PAGE_SIZE);
	u64 iova = r->mr->iova;

	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey, LIVE_ALL),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ib_map_mr_sg(r->mr, other->sgt.sgl, 2, NULL,
					   PAGE_SIZE), 2);
	live_fill(pair->end[0].buf, 8, 4);
	KUNIT_EXPECT_EQ(test, write8(test, pair, iova, r->mr->rkey), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_filled(r->at, 8, 4), 8);
	KUNIT_EXPECT_EQ(test, live_inv(test, own, r->mr->rkey), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey, LIVE_ALL),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, write8(test, pair, r->mr->iova, r->mr->rkey),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_filled(other->at, 8, 4), 8);
}

static void mr_update_key(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *own = &pair->end[1];
	struct region *r = region(test, own, 0, 1, 0, PAGE_SIZE);
	u32 old = r->mr->rkey;

	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, old, LIVE_ALL),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_inv(test, own, old), IB_WC_SUCCESS);
	ib_update_fast_reg_key(r->mr, 0xa5);
	KUNIT_EXPECT_EQ(test, r->mr->rkey, (old & ~0xffu) | 0xa5);
	KUNIT_EXPECT_EQ(test, r->mr->lkey, r->mr->rkey);
	if (old == r->mr->rkey)
		ib_update_fast_reg_key(r->mr, 0xa6);
	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey, LIVE_ALL),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, write8(test, pair, r->mr->iova, r->mr->rkey),
			IB_WC_SUCCESS);
	expect_refused(test, pair, r->mr->iova, old);
	/* 0xff and one more stay within the byte */
	ib_update_fast_reg_key(r->mr, 0xff);
	KUNIT_EXPECT_EQ(test, ib_inc_rkey(r->mr->rkey), old & ~0xffu);
	/* a key of another region is not one for this */
	KUNIT_EXPECT_EQ(test, live_inv(test, own, (old & ~0xffu) |
				       (old == ((old & ~0xffu) | 0xa5) ? 0xa6 : 0xa5)),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_NE(test, live_reg(test, own, r->mr, old + 0x100, LIVE_ALL),
			IB_WC_SUCCESS);
}

static void mr_reg_valid(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *own = &pair->end[1];
	struct region *r = region(test, own, 0, 1, 0, PAGE_SIZE);

	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey, LIVE_ALL),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, ib_inc_rkey(r->mr->rkey),
				       LIVE_ALL), IB_WC_MW_BIND_ERR);
	live_again(test, pair);
	/* nothing has changed */
	KUNIT_EXPECT_EQ(test, write8(test, pair, r->mr->iova, r->mr->rkey),
			IB_WC_SUCCESS);
	expect_refused(test, pair, r->mr->iova, ib_inc_rkey(r->mr->rkey));
}

/* A region of another PD is not this QP's, local or remote. */
static void mr_other_pd(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *own = &pair->end[1];
	struct region *r = region(test, own, 0, 1, 0, PAGE_SIZE);
	struct ib_pd *pd = live_pd(test, own->dev, 0);

	r->mr = live_mr(test, pd, IB_MR_TYPE_MEM_REG, 1);
	KUNIT_EXPECT_EQ(test, ib_map_mr_sg(r->mr, r->sgt.sgl, 1, NULL, PAGE_SIZE),
			1);
	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey, LIVE_ALL),
			IB_WC_MW_BIND_ERR);
	live_again(test, pair);
	KUNIT_EXPECT_EQ(test, live_send(test, own, (struct ib_sge){ own->addr, 8,
					pd->local_dma_lkey }, 0),
			IB_WC_LOC_PROT_ERR);
}

static void mr_dereg_valid(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *own = &pair->end[1];
	struct region *r = region(test, own, 0, 1, 0, PAGE_SIZE);
	u32 rkey = r->mr->rkey;
	u64 iova = r->mr->iova;
	int users;

	KUNIT_EXPECT_EQ(test, live_reg(test, own, r->mr, rkey, LIVE_ALL),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, write8(test, pair, iova, rkey), IB_WC_SUCCESS);
	users = atomic_read(&own->pd->usecnt);
	live_destroy_mr(test, r->mr);
	KUNIT_EXPECT_EQ(test, atomic_read(&own->pd->usecnt), users - 1);
	expect_refused(test, pair, iova, rkey);
}

#define STREAM_WRS	32

/* The first end writes and writes: how many were done, and how the rest ended. */
struct stream {
	struct live_end *end;
	struct ib_rdma_wr wr[STREAM_WRS];
	struct ib_sge sge;
	u32 done;
	u32 refused;
	u32 flushed;
	u32 other;
	bool posted_all;
};

static void stream_post(struct kunit *test, struct stream *s, u64 raddr, u32 rkey)
{
	int i;

	s->sge = live_sge(s->end, 0, LIVE_BYTES);
	for (i = 0; i < STREAM_WRS; i++) {
		s->wr[i].wr.next = i + 1 < STREAM_WRS ? &s->wr[i + 1].wr : NULL;
		s->wr[i].wr.sg_list = &s->sge;
		s->wr[i].wr.num_sge = 1;
		s->wr[i].wr.opcode = IB_WR_RDMA_WRITE;
		s->wr[i].wr.send_flags = IB_SEND_SIGNALED;
		s->wr[i].remote_addr = raddr;
		s->wr[i].rkey = rkey;
	}
	KUNIT_ASSERT_EQ(test, ib_post_send(s->end->qp, &s->wr[0].wr, NULL), 0);
}

static bool stream_take(struct stream *s, u32 total)
{
	struct ib_wc wc;

	while (s->done + s->refused + s->flushed + s->other < total) {
		if (!live_poll(s->end->scq, &wc))
			return false;
		if (wc.status == IB_WC_SUCCESS)
			s->done++;
		else if (wc.status == IB_WC_REM_ACCESS_ERR)
			s->refused++;
		else if (wc.status == IB_WC_WR_FLUSH_ERR)
			s->flushed++;
		else
			s->other++;
	}
	return true;
}

static bool poisoned(const u8 *at, size_t bytes)
{
	return !memchr_inv(at, 0x6b, bytes);
}

/* @dereg, or LOCAL_INV: when it is done not one byte more comes. */
static void under_traffic(struct kunit *test, bool dereg)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *own = &pair->end[1];
	u32 rounds = LIVE_SLOW ? 8 : 64, cut = 0, whole = 0, i;
	struct region *r = NULL;
	struct stream *s;

	memset(pair->end[0].buf, 0xaa, LIVE_BYTES);
	/* on a busy machine the whole stream may be over before we run again */
	for (i = 0; i < rounds || (!cut && i < 40 * rounds); i++) {
		if (!r || dereg)
			r = region(test, own, get_order(LIVE_BYTES), 1, 0, PAGE_SIZE);
		s = live_mem(test, sizeof(*s));
		s->end = &pair->end[0];
		KUNIT_ASSERT_EQ(test, live_reg(test, own, r->mr, r->mr->rkey,
					       LIVE_ALL), IB_WC_SUCCESS);
		stream_post(test, s, r->mr->iova, r->mr->rkey);
		KUNIT_ASSERT_TRUE(test, stream_take(s, i % 5));
		if (dereg)
			live_destroy_mr(test, r->mr);
		else
			KUNIT_EXPECT_EQ(test, live_inv(test, own, r->mr->rkey),
					IB_WC_SUCCESS);
		memset(r->at, 0x6b, r->bytes);
		KUNIT_ASSERT_TRUE(test, stream_take(s, STREAM_WRS));
		KUNIT_EXPECT_TRUE(test, poisoned(r->at, r->bytes));
		KUNIT_EXPECT_EQ(test, s->other, 0);
		if (s->done < STREAM_WRS) {
			KUNIT_EXPECT_EQ(test, s->refused, 1);
			KUNIT_EXPECT_EQ(test, s->flushed, STREAM_WRS - s->done - 1);
			cut++;
		} else {
			whole++;
		}
		live_again(test, pair);
	}
	kunit_info(test, "%u cut, %u whole", cut, whole);
	KUNIT_EXPECT_GT(test, cut, 0);
}

static void mr_dereg_traffic(struct kunit *test)
{
	under_traffic(test, true);
}

static void mr_inv_traffic(struct kunit *test)
{
	under_traffic(test, false);
}

/*
 * Local operations around a SEND that is tried again and again for want of a
 * receive: run twice, REG_MR would find its region valid and LOCAL_INV not.
 */
static void mr_once(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *end = &pair->end[0], *own = &pair->end[1];
	struct region *r = region(test, end, 0, 1, 0, PAGE_SIZE);
	struct ib_sge sge = live_sge(end, 0, 64);
	struct ib_sge mapped = { r->mr->iova, 64, r->mr->lkey };
	struct ib_reg_wr reg = {
		.wr = { .wr_id = 1, .opcode = IB_WR_REG_MR },
		.mr = r->mr, .key = r->mr->rkey, .access = LIVE_ALL,
	};
	struct ib_send_wr send = {
		.wr_id = 2, .opcode = IB_WR_SEND, .sg_list = &mapped, .num_sge = 1,
	};
	struct ib_send_wr inv = {
		.wr_id = 3, .opcode = IB_WR_LOCAL_INV,
		.ex.invalidate_rkey = r->mr->rkey,
	};
	struct ib_reg_wr again = reg;
	struct ib_send_wr last = {
		.wr_id = 5, .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1,
	};
	struct ib_send_wr *wrs[] = { &reg.wr, &send, &inv, &again.wr, &last };
	u32 round, i;

	again.wr.wr_id = 4;
	for (round = 0; round < 10; round++) {
		for (i = 0; i < ARRAY_SIZE(wrs); i++) {
			wrs[i]->next = i + 1 < ARRAY_SIZE(wrs) ? wrs[i + 1] : NULL;
			wrs[i]->send_flags = IB_SEND_SIGNALED;
		}
		KUNIT_ASSERT_EQ(test, ib_post_send(end->qp, &reg.wr, NULL), 0);
		msleep(20);
		KUNIT_EXPECT_EQ(test, live_recv(test, own, own->addr, 64,
						own->lkey, 1), 0);
		msleep(20);
		KUNIT_EXPECT_EQ(test, live_recv(test, own, own->addr, 64,
						own->lkey, 2), 0);
		for (i = 0; i < ARRAY_SIZE(wrs); i++) {
			struct ib_wc wc = live_wc(test, end->scq);

			KUNIT_EXPECT_EQ(test, wc.wr_id, i + 1);
			KUNIT_ASSERT_EQ(test, wc.status, IB_WC_SUCCESS);
		}
		live_quiet(test, end->scq);
		KUNIT_EXPECT_EQ(test, live_wc(test, own->rcq).wr_id, 1);
		KUNIT_EXPECT_EQ(test, live_wc(test, own->rcq).wr_id, 2);
		live_quiet(test, own->rcq);
		KUNIT_EXPECT_EQ(test, live_inv(test, end, r->mr->rkey),
				IB_WC_SUCCESS);
	}
}

static void pd_flags(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *end = &pair->end[0], *own = &pair->end[1];
	struct ib_pd *plain = live_pd(test, own->dev, 0);

	/* with the flag: every byte of the kernel, for the peer */
	KUNIT_EXPECT_EQ(test, own->pd->flags, IB_PD_UNSAFE_GLOBAL_RKEY);
	live_fill(end->buf, 64, 2);
	KUNIT_EXPECT_EQ(test, live_rdma(test, end, IB_WR_RDMA_WRITE,
					live_sge(end, 0, 64), own->addr, own->rkey),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_filled(own->buf, 64, 2), 64);
	/* without it there is no rkey, and the lkey is none */
	KUNIT_EXPECT_EQ(test, plain->flags, 0);
	KUNIT_EXPECT_EQ(test, plain->unsafe_global_rkey, 0);
	live_destroy_qp(test, own->qp);
	own->pd = plain;
	own->qp = live_qp(test, plain, &(struct ib_qp_init_attr){
		.send_cq = own->scq, .recv_cq = own->rcq, .port_num = 1,
		.cap = { .max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = 4,
			 .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
	});
	own->lkey = plain->local_dma_lkey;
	live_again(test, pair);
	expect_refused(test, pair, own->addr, own->lkey);
	expect_refused(test, pair, own->addr, own->rkey);
	KUNIT_EXPECT_EQ(test, live_recv(test, end, end->addr + 512, 64, end->lkey, 1),
			0);
	KUNIT_EXPECT_EQ(test, live_send(test, own, live_sge(own, 0, 64), 0),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_wc(test, end->rcq).status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, live_filled(end->buf + 512, 64, 2), 64);
}

static struct kunit_case live_mr_cases[] = {
	KUNIT_CASE(mr_alloc),
	KUNIT_CASE(mr_whole),
	KUNIT_CASE(mr_iova),
	KUNIT_CASE(mr_odd),
	KUNIT_CASE(mr_page_sizes),
	KUNIT_CASE(mr_sg_offset),
	KUNIT_CASE(mr_too_many),
	KUNIT_CASE(mr_stops_at_gap),
	KUNIT_CASE(mr_chained),
	KUNIT_CASE(mr_big_segment),
	KUNIT_CASE(mr_gaps),
	KUNIT_CASE(mr_access),
	KUNIT_CASE(mr_local),
	KUNIT_CASE(mr_local_inv),
	KUNIT_CASE(mr_remote_inv),
	KUNIT_CASE(mr_same_map),
	KUNIT_CASE(mr_map_while_valid),
	KUNIT_CASE(mr_update_key),
	KUNIT_CASE(mr_reg_valid),
	KUNIT_CASE(mr_other_pd),
	KUNIT_CASE(mr_dereg_valid),
	KUNIT_CASE(mr_dereg_traffic),
	KUNIT_CASE(mr_inv_traffic),
	KUNIT_CASE(mr_once),
	KUNIT_CASE(pd_flags),
	{}
};

struct kunit_suite live_mr_suite = {
	.name = "mr",
	.suite_init = live_client_register,
	.suite_exit = live_client_unregister,
	.test_cases = live_mr_cases,
};
