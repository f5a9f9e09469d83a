/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mrsoft_ops.h - operations whose arguments differ between kernels
 *
 * The driver defines each function in the form of the newest kernel. Two lines
 * put it into the table: MRSOFT_WRAP_x(fn); before the table, which makes an
 * adapter where the kernel has another form, and MRSOFT_OP_x(fn) among the
 * initialisers, which brings its own comma. Where the kernel has no such
 * operation both vanish and fn may stay unused. fn may be static or not.
 *
 *	static int create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
 *			     struct uverbs_attr_bundle *attrs);
 *
 *	MRSOFT_WRAP_CREATE_CQ(create_cq);
 *	MRSOFT_WRAP_FILL_RES_SRQ_ENTRY(mrsoft_resource_fill_srq);
 *
 *	static const struct ib_device_ops mrsoft_dev_ops = {
 *		.owner = THIS_MODULE,
 *		MRSOFT_OP_CREATE_CQ(create_cq)
 *		MRSOFT_OP_FILL_RES_SRQ_ENTRY(mrsoft_resource_fill_srq)
 *		.destroy_cq = destroy_cq,
 *	};
 *
 * x, and the form of fn:
 *
 * CREATE_CQ		int (struct ib_cq *, const struct ib_cq_init_attr *,
 *			     struct uverbs_attr_bundle *): NULL from the kernel
 * RESIZE_USER_CQ	int (struct ib_cq *, unsigned int cqe, struct ib_udata *):
 *			never from the kernel
 * REG_USER_MR		struct ib_mr *(struct ib_pd *, u64 start, u64 length,
 *			u64 virt, int access, struct ib_dmah *, struct ib_udata *)
 * REG_USER_MR_DMABUF	struct ib_mr *(struct ib_pd *, u64 offset, u64 length,
 *			u64 virt, int fd, int access, struct ib_dmah *,
 *			struct uverbs_attr_bundle *)
 * COUNTER_BIND_QP	int (struct rdma_counter *, struct ib_qp *, u32 port)
 * COUNTER_UNBIND_QP	int (struct ib_qp *, u32 port)
 * FILL_RES_SRQ_ENTRY	int (struct sk_buff *, struct ib_srq *), may vanish
 * QUERY_PORT_SPEED	int (struct ib_device *, u32 port, u64 *), may vanish
 * UFILE_HW_CLEANUP	void (struct ib_uverbs_file *), may vanish
 * ROBUST_UDATA		no fn and no WRAP: the promise of uverbs_robust_udata
 *
 * and for struct rdma_link_ops MRSOFT_WRAP_LINK_DELLINK(fn); with
 * MRSOFT_LINK_OP_DELLINK(fn), int (struct ib_device *), may vanish.
 */
#ifndef MRSOFT_OPS_H
#define MRSOFT_OPS_H

#include <rdma/ib_verbs.h>
#include <rdma/rdma_netlink.h>
#include <rdma/uverbs_ioctl.h>

/* Nothing to adapt; the reference keeps an unused static fn from a warning. */
#define MRSOFT_WRAP_NONE(fn) \
	static_assert(__same_type(fn, fn))

/* Every uverbs command keeps its udata in the bundle; the kernel has neither. */
static inline struct uverbs_attr_bundle *
mrsoft_udata_to_attrs(struct ib_udata *udata)
{
	if (!udata)
		return NULL;
	return container_of(udata, struct uverbs_attr_bundle, driver_udata);
}

#ifdef MRSOFT_HAVE_CREATE_CQ_ATTRS
#define MRSOFT_WRAP_CREATE_CQ(fn)	MRSOFT_WRAP_NONE(fn)
#define MRSOFT_OP_CREATE_CQ(fn)		.create_cq = fn,
#else
#define MRSOFT_WRAP_CREATE_CQ(fn)					\
	static int fn##_wrap(struct ib_cq *cq,				\
			     const struct ib_cq_init_attr *attr,	\
			     struct ib_udata *udata)			\
	{								\
		return fn(cq, attr, mrsoft_udata_to_attrs(udata));	\
	}								\
	MRSOFT_WRAP_NONE(fn)
#define MRSOFT_OP_CREATE_CQ(fn)		.create_cq = fn##_wrap,
#endif

#ifdef MRSOFT_HAVE_RESIZE_USER_CQ
#define MRSOFT_WRAP_RESIZE_USER_CQ(fn)	MRSOFT_WRAP_NONE(fn)
#define MRSOFT_OP_RESIZE_USER_CQ(fn)	.resize_user_cq = fn,
#else
#define MRSOFT_WRAP_RESIZE_USER_CQ(fn)					\
	static int fn##_wrap(struct ib_cq *cq, int cqe,			\
			     struct ib_udata *udata)			\
	{								\
		if (!udata)						\
			return -EOPNOTSUPP;				\
		return fn(cq, cqe, udata);				\
	}								\
	MRSOFT_WRAP_NONE(fn)
#define MRSOFT_OP_RESIZE_USER_CQ(fn)	.resize_cq = fn##_wrap,
#endif

#ifdef MRSOFT_HAVE_REG_USER_MR_DMAH
#define MRSOFT_WRAP_REG_USER_MR(fn)	MRSOFT_WRAP_NONE(fn)
#define MRSOFT_OP_REG_USER_MR(fn)	.reg_user_mr = fn,
#else
#define MRSOFT_WRAP_REG_USER_MR(fn)					\
	static struct ib_mr *fn##_wrap(struct ib_pd *pd, u64 start,	\
				       u64 length, u64 virt,		\
				       int access,			\
				       struct ib_udata *udata)		\
	{								\
		return fn(pd, start, length, virt, access, NULL,	\
			  udata);					\
	}								\
	MRSOFT_WRAP_NONE(fn)
#define MRSOFT_OP_REG_USER_MR(fn)	.reg_user_mr = fn##_wrap,
#endif

#if defined(MRSOFT_HAVE_REG_USER_MR_DMABUF_DMAH)
#define MRSOFT_WRAP_REG_USER_MR_DMABUF(fn)	MRSOFT_WRAP_NONE(fn)
#define MRSOFT_OP_REG_USER_MR_DMABUF(fn)	.reg_user_mr_dmabuf = fn,
#elif defined(MRSOFT_HAVE_REG_USER_MR_DMABUF_ATTRS)
#define MRSOFT_WRAP_REG_USER_MR_DMABUF(fn)				\
	static struct ib_mr *						\
	fn##_wrap(struct ib_pd *pd, u64 offset, u64 length, u64 virt,	\
		  int fd, int access, struct uverbs_attr_bundle *attrs)	\
	{								\
		return fn(pd, offset, length, virt, fd, access, NULL,	\
			  attrs);					\
	}								\
	MRSOFT_WRAP_NONE(fn)
#define MRSOFT_OP_REG_USER_MR_DMABUF(fn)	.reg_user_mr_dmabuf = fn##_wrap,
#else
#define MRSOFT_WRAP_REG_USER_MR_DMABUF(fn)				\
	static struct ib_mr *						\
	fn##_wrap(struct ib_pd *pd, u64 offset, u64 length, u64 virt,	\
		  int fd, int access, struct ib_udata *udata)		\
	{								\
		return fn(pd, offset, length, virt, fd, access, NULL,	\
			  mrsoft_udata_to_attrs(udata));		\
	}								\
	MRSOFT_WRAP_NONE(fn)
#define MRSOFT_OP_REG_USER_MR_DMABUF(fn)	.reg_user_mr_dmabuf = fn##_wrap,
#endif

#ifdef MRSOFT_HAVE_COUNTER_BIND_QP_PORT
#define MRSOFT_WRAP_COUNTER_BIND_QP(fn)		MRSOFT_WRAP_NONE(fn)
#define MRSOFT_OP_COUNTER_BIND_QP(fn)		.counter_bind_qp = fn,
#define MRSOFT_WRAP_COUNTER_UNBIND_QP(fn)	MRSOFT_WRAP_NONE(fn)
#define MRSOFT_OP_COUNTER_UNBIND_QP(fn)		.counter_unbind_qp = fn,
#else
#define MRSOFT_WRAP_COUNTER_BIND_QP(fn)					\
	static int fn##_wrap(struct rdma_counter *counter,		\
			     struct ib_qp *qp)				\
	{								\
		return fn(counter, qp, qp->port);			\
	}								\
	MRSOFT_WRAP_NONE(fn)
#define MRSOFT_OP_COUNTER_BIND_QP(fn)		.counter_bind_qp = fn##_wrap,
#define MRSOFT_WRAP_COUNTER_UNBIND_QP(fn)				\
	static int fn##_wrap(struct ib_qp *qp)				\
	{								\
		return fn(qp, qp->port);				\
	}								\
	MRSOFT_WRAP_NONE(fn)
#define MRSOFT_OP_COUNTER_UNBIND_QP(fn)		.counter_unbind_qp = fn##_wrap,
#endif

#define MRSOFT_WRAP_FILL_RES_SRQ_ENTRY(fn)	MRSOFT_WRAP_NONE(fn)
#ifdef MRSOFT_HAVE_FILL_RES_SRQ_ENTRY
#define MRSOFT_OP_FILL_RES_SRQ_ENTRY(fn)	.fill_res_srq_entry = fn,
#else
#define MRSOFT_OP_FILL_RES_SRQ_ENTRY(fn)
#endif

#define MRSOFT_WRAP_QUERY_PORT_SPEED(fn)	MRSOFT_WRAP_NONE(fn)
#ifdef MRSOFT_HAVE_QUERY_PORT_SPEED
#define MRSOFT_OP_QUERY_PORT_SPEED(fn)		.query_port_speed = fn,
#else
#define MRSOFT_OP_QUERY_PORT_SPEED(fn)
#endif

#define MRSOFT_WRAP_UFILE_HW_CLEANUP(fn)	MRSOFT_WRAP_NONE(fn)
#ifdef MRSOFT_HAVE_UFILE_HW_CLEANUP
#define MRSOFT_OP_UFILE_HW_CLEANUP(fn)		.ufile_hw_cleanup = fn,
#else
#define MRSOFT_OP_UFILE_HW_CLEANUP(fn)
#endif

#ifdef MRSOFT_HAVE_UVERBS_ROBUST_UDATA
#define MRSOFT_OP_ROBUST_UDATA			.uverbs_robust_udata = 1,
#else
#define MRSOFT_OP_ROBUST_UDATA
#endif

#define MRSOFT_WRAP_LINK_DELLINK(fn)		MRSOFT_WRAP_NONE(fn)
#ifdef MRSOFT_HAVE_LINK_DELLINK
#define MRSOFT_LINK_OP_DELLINK(fn)		.dellink = fn,
#else
#define MRSOFT_LINK_OP_DELLINK(fn)
#endif

#endif
