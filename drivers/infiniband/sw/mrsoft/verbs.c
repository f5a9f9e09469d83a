// SPDX-License-Identifier: GPL-2.0
/*
 * verbs.c - verbs on contexts, PDs, CQs, SRQs, MRs and MWs
 *
 * Owns:     argument checks; the order of create, reply and undo.
 * Not here: QPs (verbs_qp.c), AHs (verbs_ah.c), what the objects do.
 * Locks:    none; the core serialises destroy against use of an object.
 * Lifetime: an object exists for its user when the reply was written: a create
 *           whose reply fails has left nothing behind.
 * Context:  process, sleeps, except where noted.
 * Spec:     IBA Vol 1, chapter 11; include/uapi/rdma/rdma_user_rxe.h
 * Tests:    tools/testing/suites, pyverbs
 */
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>
#include <mrsoft_ops.h>

#include "cq.h"
#include "demand.h"
#include "dev.h"
#include "diary.h"
#include "dmabuf.h"
#include "fault.h"
#include "inject.h"
#include "limits.h"
#include "mr.h"
#include "mw.h"
#include "ring.h"
#include "rq.h"
#include "verbs.h"

/* What reg_user_mr understands; optional bits mean nothing to us and are taken. */
#define MR_ACCESS	(IB_ACCESS_LOCAL_WRITE | MRSOFT_GRANTED_RIGHTS | \
			 IB_ACCESS_MW_BIND | IB_ZERO_BASED | \
			 IB_ACCESS_ON_DEMAND | IB_ACCESS_HUGETLB | \
			 IB_ACCESS_OPTIONAL)

/**
 * mrsoft_verbs_ucontext - who calls
 * @udata: of the verb, NULL from the kernel
 *
 * Return: the context of a call from user space, NULL of one from the kernel.
 */
struct ib_ucontext *mrsoft_verbs_ucontext(struct ib_udata *udata)
{
	struct mrsoft_ucontext *context =
		rdma_udata_to_drv_context(udata, struct mrsoft_ucontext, ib);

	return context ? &context->ib : NULL;
}

/**
 * mrsoft_verbs_check_udata - before anything is made: can the reply be given
 * @udata: of the verb, NULL from the kernel
 * @reply: bytes of the reply
 *
 * Return: 0; -EOPNOTSUPP for input that we know nothing of; -EINVAL when there is
 * no room for the reply.
 */
int mrsoft_verbs_check_udata(struct ib_udata *udata, size_t reply)
{
	if (!udata)
		return 0;
	if (udata->outlen < reply)
		return -EINVAL;
	return ib_is_udata_in_empty(udata);
}

static int alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata)
{
	return ib_no_udata_io(udata);
}

static void dealloc_ucontext(struct ib_ucontext *ibuc)
{
}

/*
 * That we have it is what lets the device go while its users live.  Rings are
 * ordinary pages and stay mapped: nobody looks at them any more.
 */
static void disassociate_ucontext(struct ib_ucontext *ibuc)
{
}

static int alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct mrsoft_dev *dev = mrsoft_dev(ibpd->device);
	int err = ib_no_udata_io(udata);

	if (err)
		return err;
	err = mrsoft_dev_claim(dev, MRSOFT_OBJ_PD);
	if (err)
		return err;
	atomic_set(&mrsoft_pd(ibpd)->regions, 0);
	return 0;
}

/* The core counts what is in a user's PD; nobody else does in a kernel's. */
static int dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	int regions = atomic_read(&mrsoft_pd(ibpd)->regions);

	if (regions) {
		ibdev_dbg(ibpd->device,
			  "PD %u is busy: it has %d regions or windows\n",
			  ibpd->res.id, regions);
		return -EBUSY;
	}
	mrsoft_dev_release(mrsoft_dev(ibpd->device), MRSOFT_OBJ_PD);
	return 0;
}

static int create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		     struct uverbs_attr_bundle *attrs)
{
	struct ib_udata *udata = attrs ? &attrs->driver_udata : NULL;
	struct mrsoft_dev *dev = mrsoft_dev(ibcq->device);
	struct mrsoft_cq *cq = mrsoft_cq(ibcq);
	struct mrsoft_abi_cq_resp resp = {};
	int err;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->comp_vector >= ibcq->device->num_comp_vectors)
		return -EINVAL;
	err = mrsoft_verbs_check_udata(udata, sizeof(resp));
	if (err)
		return err;

	err = mrsoft_dev_claim(dev, MRSOFT_OBJ_CQ);
	if (err)
		return err;
	err = mrsoft_cq_init(cq, &dev->hca.stats, attr->cqe,
			     mrsoft_verbs_ucontext(udata), &resp.mi);
	if (err)
		goto release;
	if (!udata) {
		mrsoft_cq_steer(cq, attr->comp_vector);
		return 0;
	}
	err = ib_respond_udata(udata, resp);
	if (err)
		goto destroy;
	return 0;

destroy:
	mrsoft_cq_destroy(cq);
release:
	mrsoft_dev_release(dev, MRSOFT_OBJ_CQ);
	return err;
}

static int destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	mrsoft_cq_destroy(mrsoft_cq(ibcq));
	mrsoft_dev_release(mrsoft_dev(ibcq->device), MRSOFT_OBJ_CQ);
	return 0;
}

static int modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	mrsoft_cq_moderate(mrsoft_cq(ibcq), count, period);
	return 0;
}

/* Before the core ends the work that an event of a kernel consumer's CQ queues. */
static int pre_destroy_cq(struct ib_cq *ibcq)
{
	mrsoft_cq_quiet(mrsoft_cq(ibcq));
	return 0;
}

/* The reply comes first: with it unwritten the user would not find the new ring. */
static int resize_cq(struct ib_cq *ibcq, unsigned int cqe,
		     struct ib_udata *udata)
{
	struct mrsoft_cq *cq = mrsoft_cq(ibcq);
	struct mrsoft_abi_cq_resp resp = {};
	struct mrsoft_ring ring;
	int err;

	err = mrsoft_verbs_check_udata(udata, sizeof(resp));
	if (err)
		return err;
	err = mrsoft_cq_resize_begin(cq, cqe, mrsoft_verbs_ucontext(udata),
				     &resp.mi, &ring);
	if (err)
		return err;
	err = ib_respond_udata(udata, resp);
	if (err) {
		mrsoft_ring_destroy(&ring);
		return err;
	}
	return mrsoft_cq_resize_end(cq, &ring);
}

/* Any context. */
static int poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc)
{
	return mrsoft_cq_poll(mrsoft_cq(ibcq), n, wc);
}

/* Any context. */
static int req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	return mrsoft_cq_arm(mrsoft_cq(ibcq), flags);
}

static int check_srq(const struct ib_srq_init_attr *init)
{
	const struct ib_srq_attr *attr = &init->attr;

	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!attr->max_wr || attr->max_wr > MRSOFT_MAX_SRQ_WR ||
	    attr->max_sge > MRSOFT_MAX_SGE || attr->srq_limit > attr->max_wr)
		return -EINVAL;
	return 0;
}

static int create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		      struct ib_udata *udata)
{
	struct mrsoft_dev *dev = mrsoft_dev(ibsrq->device);
	struct mrsoft_srq *srq = mrsoft_srq(ibsrq);
	struct mrsoft_abi_create_srq_resp resp = {};
	int err;

	err = check_srq(init);
	if (err)
		return err;
	err = mrsoft_verbs_check_udata(udata, sizeof(resp));
	if (err)
		return err;

	err = mrsoft_dev_claim(dev, MRSOFT_OBJ_SRQ);
	if (err)
		return err;
	err = mrsoft_rq_init(&srq->rq, init->attr.max_wr, init->attr.max_sge,
			     mrsoft_verbs_ucontext(udata), &resp.mi);
	if (err)
		goto release;
	err = mrsoft_rq_set_limit(&srq->rq, init->attr.srq_limit);
	if (err)
		goto destroy;
	srq->srqn = mrsoft_dev_next_srqn(dev);
	if (udata) {
		resp.srq_num = srq->srqn;
		err = ib_respond_udata(udata, resp);
		if (err)
			goto destroy;
	}
	init->attr.max_wr = srq->rq.max_wr;
	init->attr.max_sge = srq->rq.max_sge;
	return 0;

destroy:
	mrsoft_rq_destroy(&srq->rq);
release:
	mrsoft_dev_release(dev, MRSOFT_OBJ_SRQ);
	return err;
}

/* The limit of the same call must fit the new size, and is set after it. */
static int resize_srq(struct mrsoft_srq *srq, const struct ib_srq_attr *attr,
		      struct ib_udata *udata)
{
	struct mrsoft_abi_modify_srq_cmd cmd;
	struct mrsoft_abi_mmap mi = {};
	struct mrsoft_ring ring;
	int err;

	if (attr->max_wr > MRSOFT_MAX_SRQ_WR)
		return -EINVAL;
	if (udata) {
		err = ib_copy_validate_udata_in(udata, cmd, mmap_info_addr);
		if (err)
			return err;
	}
	err = mrsoft_rq_resize_begin(&srq->rq, attr->max_wr,
				     mrsoft_verbs_ucontext(udata), &mi, &ring);
	if (err)
		return err;
	/* As with a CQ: without the reply the user would not find the ring. */
	if (udata && copy_to_user(u64_to_user_ptr(cmd.mmap_info_addr), &mi,
				  sizeof(mi))) {
		mrsoft_ring_destroy(&ring);
		return -EFAULT;
	}
	return mrsoft_rq_resize_end(&srq->rq, &ring);
}

static int modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		      enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct mrsoft_srq *srq = mrsoft_srq(ibsrq);
	int err;

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EOPNOTSUPP;
	if (mask & IB_SRQ_MAX_WR) {
		if ((mask & IB_SRQ_LIMIT) && attr->srq_limit > attr->max_wr)
			return -EINVAL;
		err = resize_srq(srq, attr, udata);
		if (err)
			return err;
		attr->max_wr = srq->rq.max_wr;
	}
	if (mask & IB_SRQ_LIMIT)
		return mrsoft_rq_set_limit(&srq->rq, attr->srq_limit);
	return 0;
}

static int query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	const struct mrsoft_rq *rq = &mrsoft_srq(ibsrq)->rq;

	attr->max_wr = READ_ONCE(rq->max_wr);
	attr->max_sge = rq->max_sge;
	attr->srq_limit = READ_ONCE(rq->limit);
	return 0;
}

static int destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	mrsoft_rq_destroy(&mrsoft_srq(ibsrq)->rq);
	mrsoft_dev_release(mrsoft_dev(ibsrq->device), MRSOFT_OBJ_SRQ);
	return 0;
}

/* Any context. */
static int post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad)
{
	/* A user posts by itself, this is then its empty command. */
	if (!wr)
		return 0;
	return mrsoft_rq_post(&mrsoft_srq(ibsrq)->rq, wr, bad);
}

static struct mrsoft_table *keys_of(struct ib_pd *ibpd)
{
	return &mrsoft_dev(ibpd->device)->hca.keys;
}

static struct ib_mr *mr_or_error(struct mrsoft_mr *mr)
{
	return IS_ERR(mr) ? ERR_CAST(mr) : &mr->ib;
}

static struct ib_mr *get_dma_mr(struct ib_pd *ibpd, int access)
{
	return mr_or_error(mrsoft_mr_get_dma(keys_of(ibpd), mrsoft_pd(ibpd),
					     access));
}

/*
 * What an injection rule has a verb on a region answer; 0: nothing.  A hold is over
 * when this returns.
 */
static int injected(struct ib_device *ibdev, enum mrsoft_event event, u32 key)
{
	struct mrsoft_stats *stats = &mrsoft_dev(ibdev)->hca.stats;
	struct mrsoft_occasion now = { .event = event, .key = key };
	struct mrsoft_injection in;
	struct mrsoft_who who;

	if (!mrsoft_inject(stats, &now, &in))
		return 0;
	mrsoft_who_set(&who, NULL);
	mrsoft_diary_refuse(stats, &(struct mrsoft_refusal){
		.reason = MRSOFT_R_INJECTED, .who = &who, .op = in.op,
		.key = key,
	});
	if (in.action != MRSOFT_DO_HOLD_DEREG)
		return -in.err;
	mrsoft_inject_hold(stats, &in);
	return 0;
}

static int check_range(u64 start, u64 length, u64 iova)
{
	u64 end;

	/* all of a process, if it is on demand: mr.c knows the rights */
	if (!start && length == U64_MAX)
		return 0;
	if (length > MRSOFT_MAX_MR_SIZE ||
	    check_add_overflow(start, length, &end) ||
	    check_add_overflow(iova, length, &end))
		return -EINVAL;
	return 0;
}

static struct ib_mr *reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				 u64 virt, int access, struct ib_dmah *dmah,
				 struct ib_udata *udata)
{
	int err;

	if (dmah || (access & ~MR_ACCESS))
		return ERR_PTR(-EOPNOTSUPP);
	err = check_range(start, length, virt);
	if (err)
		return ERR_PTR(err);
	err = ib_no_udata_io(udata);
	if (err)
		return ERR_PTR(err);
	err = injected(ibpd->device, MRSOFT_ON_REG, 0);
	if (err)
		return ERR_PTR(err);
	return mr_or_error(mrsoft_mr_reg_user(keys_of(ibpd), mrsoft_pd(ibpd),
					      start, length, virt, access));
}

/* The core lets only those access bits through that make sense for a buffer. */
static struct ib_mr *reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset,
					u64 length, u64 virt, int fd,
					int access, struct ib_dmah *dmah,
					struct uverbs_attr_bundle *attrs)
{
	struct mrsoft_pages *pages;
	int err;

	if (dmah || (access & ~MR_ACCESS))
		return ERR_PTR(-EOPNOTSUPP);
	err = check_range(offset, length, virt);
	if (err)
		return ERR_PTR(err);
	err = ib_no_udata_io(attrs ? &attrs->driver_udata : NULL);
	if (err)
		return ERR_PTR(err);
	pages = mrsoft_dmabuf_pages(fd, offset, length, access);
	return mr_or_error(mrsoft_mr_reg_pages(keys_of(ibpd), mrsoft_pd(ibpd),
					       MRSOFT_KEY_MR_DMABUF, pages,
					       length, virt, access));
}

/* In place: the core keeps the MR and writes its own copies of what changed. */
static struct ib_mr *rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				   u64 length, u64 virt, int access,
				   struct ib_pd *ibpd, struct ib_udata *udata)
{
	int err;

	if (flags & ~IB_MR_REREG_SUPPORTED)
		return ERR_PTR(-EOPNOTSUPP);
	if ((flags & IB_MR_REREG_ACCESS) && (access & ~MR_ACCESS))
		return ERR_PTR(-EOPNOTSUPP);
	if (flags & IB_MR_REREG_TRANS) {
		err = check_range(start, length, virt);
		if (err)
			return ERR_PTR(err);
	}
	err = ib_no_udata_io(udata);
	if (err)
		return ERR_PTR(err);
	err = injected(ibmr->device, MRSOFT_ON_REREG, ibmr->lkey);
	if (err)
		return ERR_PTR(err);
	return ERR_PTR(mrsoft_mr_rereg(mrsoft_mr(ibmr), flags, start, length,
				       virt, access, mrsoft_pd(ibpd)));
}

static int advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice,
		     u32 flags, struct ib_sge *sg_list, u32 num_sge,
		     struct uverbs_attr_bundle *attrs)
{
	struct mrsoft_advice how = {
		.write = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE,
		.peek = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
		.wait = flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH,
	};
	int err = 0;
	u32 i;

	if (!MRSOFT_ODP || (!how.write && !how.peek &&
			    advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH))
		return -EOPNOTSUPP;
	for (i = 0; i < num_sge && !err; i++)
		err = mrsoft_fault_advise(keys_of(ibpd), mrsoft_pd(ibpd), &how,
					  &sg_list[i]);
	return err;
}

/*
 * Did a process ask for it, which may be told no?  The core does not take no for
 * an answer when a process or the device is gone, when a registration is undone or
 * from most consumers in the kernel: a call then has no input, a region is not
 * listed yet, or has no user.
 */
static bool may_refuse(const struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct uverbs_attr_bundle *attrs = mrsoft_udata_to_attrs(udata);

	if (!attrs || !ibmr->uobject || list_empty(&ibmr->uobject->list))
		return false;
	return attrs->ucore.inlen ||
	       !bitmap_empty(attrs->attr_present, UVERBS_API_ATTR_BKEY_LEN);
}

static int dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	int err;

	if (may_refuse(ibmr, udata)) {
		err = injected(ibmr->device, MRSOFT_ON_DEREG, ibmr->lkey);
		if (err)
			return err;
	}
	return mrsoft_mr_dereg(mrsoft_mr(ibmr));
}

static struct ib_mr *alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			      u32 max_num_sg)
{
	int err;

	if (type != IB_MR_TYPE_MEM_REG && type != IB_MR_TYPE_SG_GAPS)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > MRSOFT_MAX_FAST_REG_PAGES)
		return ERR_PTR(-EINVAL);
	err = injected(ibpd->device, MRSOFT_ON_REG, 0);
	if (err)
		return ERR_PTR(err);
	return mr_or_error(mrsoft_mr_alloc_fast(keys_of(ibpd),
						mrsoft_pd(ibpd), max_num_sg,
						type == IB_MR_TYPE_SG_GAPS));
}

static int map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		     unsigned int *sg_offset)
{
	return mrsoft_mr_map_sg(mrsoft_mr(ibmr), sg, nents, sg_offset);
}

static int alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	int err = ib_no_udata_io(udata);

	if (err)
		return err;
	if (ibmw->type != IB_MW_TYPE_1 && ibmw->type != IB_MW_TYPE_2)
		return -EINVAL;
	return mrsoft_mw_init(keys_of(ibmw->pd), mrsoft_mw(ibmw),
			      mrsoft_pd(ibmw->pd), ibmw->type);
}

static int dealloc_mw(struct ib_mw *ibmw)
{
	mrsoft_mw_destroy(mrsoft_mw(ibmw));
	return 0;
}

MRSOFT_WRAP_CREATE_CQ(create_cq);
MRSOFT_WRAP_RESIZE_USER_CQ(resize_cq);
MRSOFT_WRAP_REG_USER_MR(reg_user_mr);
MRSOFT_WRAP_REG_USER_MR_DMABUF(reg_user_mr_dmabuf);

const struct ib_device_ops mrsoft_verbs_ops = {
	.advise_mr = advise_mr,
	.alloc_mr = alloc_mr,
	.alloc_mw = alloc_mw,
	.alloc_pd = alloc_pd,
	.alloc_ucontext = alloc_ucontext,
	.create_srq = create_srq,
	.dealloc_mw = dealloc_mw,
	.dealloc_pd = dealloc_pd,
	.dealloc_ucontext = dealloc_ucontext,
	.dereg_mr = dereg_mr,
	.destroy_cq = destroy_cq,
	.destroy_srq = destroy_srq,
	.disassociate_ucontext = disassociate_ucontext,
	.get_dma_mr = get_dma_mr,
	.map_mr_sg = map_mr_sg,
	.mmap = mrsoft_ring_mmap,
	.mmap_free = mrsoft_ring_mmap_free,
	.modify_cq = modify_cq,
	.modify_srq = modify_srq,
	.poll_cq = poll_cq,
	.post_srq_recv = post_srq_recv,
	.pre_destroy_cq = pre_destroy_cq,
	.query_srq = query_srq,
	.req_notify_cq = req_notify_cq,
	.rereg_user_mr = rereg_user_mr,
	MRSOFT_OP_CREATE_CQ(create_cq)
	MRSOFT_OP_REG_USER_MR(reg_user_mr)
	MRSOFT_OP_REG_USER_MR_DMABUF(reg_user_mr_dmabuf)
	MRSOFT_OP_RESIZE_USER_CQ(resize_cq)

	INIT_RDMA_OBJ_SIZE(ib_cq, mrsoft_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_mw, mrsoft_mw, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, mrsoft_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_srq, mrsoft_srq, ib),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, mrsoft_ucontext, ib),
};
