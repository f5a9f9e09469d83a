// SPDX-License-Identifier: GPL-2.0
/*
 * rw_live.c - the core's RDMA READ and WRITE contexts and its pools of regions
 *
 * As targets use them (NVMe-oF, iSER, nfsd): the second end is the target, the
 * first one has the memory.
 *
 * Spec: include/rdma/rw.h, kernel-doc of rdma_rw_ctx_init()
 */
#include <rdma/mr_pool.h>
#include <rdma/rw.h>

#include "live.h"

struct rw_job {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

static void rw_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rw_job *job = container_of(wc->wr_cqe, struct rw_job, cqe);

	job->status = wc->status;
	complete(&job->done);
}

struct rw {
	struct live_pair *pair;
	struct sg_table sgt;
	unsigned int nents;
	size_t bytes;
};

static void free_table(void *sgt)
{
	sg_free_table(sgt);
}

static struct rw *rw_open(struct kunit *test, unsigned int nents)
{
	struct live_setup setup = {
		.handlers = true, .ctx = IB_POLL_WORKQUEUE, .rdma_ctxs = 4,
		.wr = 128,
	};
	struct rw *rw = live_mem(test, sizeof(*rw));
	struct scatterlist *sg;
	int i;

	rw->pair = live_pair(test, &setup);
	KUNIT_ASSERT_EQ(test, sg_alloc_table(&rw->sgt, nents, GFP_KERNEL), 0);
	kunit_add_action_or_reset(test, free_table, &rw->sgt);
	for_each_sgtable_sg(&rw->sgt, sg, i)
		sg_set_page(sg, live_pages(test, 0), PAGE_SIZE, 0);
	/* not from the start of the first page on */
	rw->sgt.sgl->offset = 8;
	rw->sgt.sgl->length -= 8;
	rw->nents = nents;
	rw->bytes = nents * PAGE_SIZE - 8;
	return rw;
}

/* One context, @dir as the target sees it; the bytes of the other side. */
static void rw_run(struct kunit *test, struct rw *rw, enum dma_data_direction dir)
{
	struct live_end *own = &rw->pair->end[1], *peer = &rw->pair->end[0];
	struct rdma_rw_ctx *ctx = live_mem(test, sizeof(*ctx));
	struct rw_job *job = live_mem(test, sizeof(*job));
	u8 *bytes = live_mem(test, rw->bytes);
	int ret;

	job->cqe.done = rw_done;
	init_completion(&job->done);
	KUNIT_ASSERT_TRUE(test, rw->bytes <= LIVE_BYTES);
	if (dir == DMA_TO_DEVICE) {
		live_fill(bytes, rw->bytes, 31);
		sg_copy_from_buffer(rw->sgt.sgl, rw->nents, bytes, rw->bytes);
		memset(peer->buf, 0, LIVE_BYTES);
	} else {
		live_fill(peer->buf, LIVE_BYTES, 32);
	}
	ret = rdma_rw_ctx_init(ctx, own->qp, 1, rw->sgt.sgl, rw->nents, 0, peer->addr,
			       peer->rkey, dir);
	KUNIT_ASSERT_TRUE(test, ret > 0);
	ret = rdma_rw_ctx_post(ctx, own->qp, 1, &job->cqe, NULL);
	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&job->done, LIVE_WAIT));
	KUNIT_EXPECT_EQ(test, job->status, IB_WC_SUCCESS);
	rdma_rw_ctx_destroy(ctx, own->qp, 1, rw->sgt.sgl, rw->nents, dir);
	if (dir == DMA_TO_DEVICE) {
		KUNIT_EXPECT_EQ(test, live_filled(peer->buf, rw->bytes, 31), rw->bytes);
		return;
	}
	sg_copy_to_buffer(rw->sgt.sgl, rw->nents, bytes, rw->bytes);
	KUNIT_EXPECT_EQ(test, live_filled(bytes, rw->bytes, 32), rw->bytes);
}

static void rw_both(struct kunit *test, unsigned int nents)
{
	struct rw *rw = rw_open(test, nents);
	int i;

	/* more often than there are contexts: each gives back what it took */
	for (i = 0; i < 8; i++) {
		rw_run(test, rw, DMA_TO_DEVICE);
		rw_run(test, rw, DMA_FROM_DEVICE);
	}
}

static void rw_one(struct kunit *test)
{
	rw_both(test, 1);
}

static void rw_list(struct kunit *test)
{
	/* more entries than a WQE of this QP has */
	rw_both(test, 15);
}

static void restore(void *max)
{
	live_dev(1)->attrs.max_sgl_rd = 0;
}

/*
 * READs through regions: the core registers, reads and invalidates. A device asks
 * for that by max_sgl_rd; ib_core.force_mr would for WRITEs as well, but only at
 * boot.
 */
static void rw_force_mr(struct kunit *test)
{
	struct live_end *own;
	struct rw *rw;
	int i;

	KUNIT_ASSERT_EQ(test, live_dev(1)->attrs.max_sgl_rd, 0);
	kunit_add_action_or_reset(test, restore, NULL);
	live_dev(1)->attrs.max_sgl_rd = 1;
	rw = rw_open(test, 15);
	own = &rw->pair->end[1];
	KUNIT_EXPECT_FALSE(test, list_empty(&own->qp->rdma_mrs));
	for (i = 0; i < 12; i++) {
		rw_run(test, rw, DMA_FROM_DEVICE);
		KUNIT_EXPECT_EQ(test, own->qp->mrs_used, 0);
	}
	rw_run(test, rw, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, rdma_rw_mr_factor(own->dev, 1, 512),
			DIV_ROUND_UP(512, min(own->dev->attrs.max_fast_reg_page_list_len,
					      256)));
}

/* Without regions a context has as many pages as a READ has entries. */
static void rw_mr_factor(struct kunit *test)
{
	struct ib_device *dev = live_dev(0);

	KUNIT_EXPECT_EQ(test, rdma_rw_mr_factor(dev, 1, 1), 1);
	KUNIT_EXPECT_GE(test, rdma_rw_mr_factor(dev, 1, 512), 2);
}

static void mr_pool(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct live_end *end = &pair->end[1];
	struct ib_qp *qp = end->qp;
	struct ib_mr *mr[3];
	LIST_HEAD(pool);
	int i;

	KUNIT_ASSERT_EQ(test, ib_mr_pool_init(qp, &pool, 3, IB_MR_TYPE_MEM_REG, 16, 0),
			0);
	for (i = 0; i < 3; i++) {
		mr[i] = ib_mr_pool_get(qp, &pool);
		KUNIT_EXPECT_TRUE(test, mr[i]);
	}
	KUNIT_EXPECT_NULL(test, ib_mr_pool_get(qp, &pool));
	KUNIT_EXPECT_EQ(test, qp->mrs_used, 3);
	for (i = 0; i < 3; i++)
		if (mr[i])
			ib_mr_pool_put(qp, &pool, mr[i]);
	KUNIT_EXPECT_EQ(test, qp->mrs_used, 0);
	ib_mr_pool_destroy(qp, &pool);
	KUNIT_EXPECT_TRUE(test, list_empty(&pool));
}

static struct kunit_case live_rw_cases[] = {
	KUNIT_CASE(rw_one),
	KUNIT_CASE(rw_list),
	KUNIT_CASE(rw_force_mr),
	KUNIT_CASE(rw_mr_factor),
	KUNIT_CASE(mr_pool),
	{}
};

struct kunit_suite live_rw_suite = {
	.name = "rw",
	.suite_init = live_client_register,
	.suite_exit = live_client_unregister,
	.test_cases = live_rw_cases,
};
