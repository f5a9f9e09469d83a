// SPDX-License-Identifier: GPL-2.0
/*
 * uverbs.c - methods of uverbs that librxe of the machine has no call for; see uverbs.h
 */
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <sys/ioctl.h>

#include "uverbs.h"

#define MAX_ATTRS 12u

/* Newer than the headers of the machine: the kernel's numbers. */
#define METHOD_REG_MR 5
enum {
	REG_MR_HANDLE, REG_MR_PD, REG_MR_DMA, REG_MR_IOVA, REG_MR_ADDR,
	REG_MR_LENGTH, REG_MR_ACCESS, REG_MR_FD, REG_MR_FD_OFFSET, REG_MR_LKEY,
	REG_MR_RKEY,
};

int uv_method(struct ibv_context *ibv, unsigned int object, unsigned int method,
	      struct ib_uverbs_attr *attrs, size_t n)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[MAX_ATTRS];
	} cmd = {
		.hdr = {
			.length = sizeof(cmd.hdr) + n * sizeof(*attrs),
			.object_id = object,
			.method_id = method,
			.num_attrs = n,
			.driver_id = RDMA_DRIVER_RXE,
		},
	};
	int err;

	CHECK(n <= MAX_ATTRS);
	memcpy(cmd.attrs, attrs, n * sizeof(*attrs));
	err = ioctl(ibv->cmd_fd, RDMA_VERBS_IOCTL, &cmd) ? errno : 0;
	memcpy(attrs, cmd.attrs, n * sizeof(*attrs));
	return err;
}

/* The first attribute is the new region's. */
static int reg(struct ibv_pd *pd, unsigned int method,
	       struct ib_uverbs_attr *attrs, size_t n, struct uv_mr *mr)
{
	int err = uv_method(pd->context, UVERBS_OBJECT_MR, method, attrs, n);

	mr->ibv = pd->context;
	mr->handle = attrs[0].data;
	return err;
}

int uv_reg_write(struct ibv_pd *pd, const void *addr, uint64_t len, uint64_t iova,
		 unsigned int access, struct uv_mr *mr)
{
	struct ib_uverbs_reg_mr cmd = {
		.start = (uintptr_t)addr,
		.length = len,
		.hca_va = iova,
		.pd_handle = pd->handle,
		.access_flags = access,
	};
	struct ib_uverbs_reg_mr_resp resp = {};
	int err = uverbs_write(pd->context, IB_USER_VERBS_CMD_REG_MR, &cmd,
			       sizeof(cmd), &resp, sizeof(resp));

	*mr = (struct uv_mr){ pd->context, resp.mr_handle, resp.lkey, resp.rkey };
	return err;
}

int uv_reg_mr(struct ibv_pd *pd, const void *addr, uint64_t len, uint64_t iova,
	      unsigned int access, struct uv_mr *mr)
{
	struct ib_uverbs_attr attrs[] = {
		UV_OBJECT(REG_MR_HANDLE, 0),
		UV_OBJECT(REG_MR_PD, pd->handle),
		UV_VALUE(REG_MR_IOVA, 8, iova),
		UV_VALUE(REG_MR_ADDR, 8, (uintptr_t)addr),
		UV_VALUE(REG_MR_LENGTH, 8, len),
		UV_VALUE(REG_MR_ACCESS, 4, access),
		UV_BYTES(REG_MR_LKEY, &mr->lkey, 4),
		UV_BYTES(REG_MR_RKEY, &mr->rkey, 4),
	};

	return reg(pd, METHOD_REG_MR, attrs, ARRAY_SIZE(attrs), mr);
}

int uv_reg_mr_fd(struct ibv_pd *pd, int fd, uint64_t offset, uint64_t len,
		 uint64_t iova, unsigned int access, struct uv_mr *mr)
{
	struct ib_uverbs_attr attrs[] = {
		UV_OBJECT(REG_MR_HANDLE, 0),
		UV_OBJECT(REG_MR_PD, pd->handle),
		UV_VALUE(REG_MR_IOVA, 8, iova),
		UV_VALUE(REG_MR_LENGTH, 8, len),
		UV_VALUE(REG_MR_ACCESS, 4, access),
		/* a raw fd: data_s64, no length */
		UV_VALUE(REG_MR_FD, 0, (int64_t)fd),
		UV_VALUE(REG_MR_FD_OFFSET, 8, offset),
		UV_BYTES(REG_MR_LKEY, &mr->lkey, 4),
		UV_BYTES(REG_MR_RKEY, &mr->rkey, 4),
	};

	return reg(pd, METHOD_REG_MR, attrs, ARRAY_SIZE(attrs), mr);
}

int uv_reg_dmabuf(struct ibv_pd *pd, int fd, uint64_t offset, uint64_t len,
		  uint64_t iova, unsigned int access, struct uv_mr *mr)
{
	struct ib_uverbs_attr attrs[] = {
		UV_OBJECT(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0),
		UV_OBJECT(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, pd->handle),
		UV_VALUE(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 8, offset),
		UV_VALUE(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, 8, len),
		UV_VALUE(UVERBS_ATTR_REG_DMABUF_MR_IOVA, 8, iova),
		UV_VALUE(UVERBS_ATTR_REG_DMABUF_MR_FD, 4, (uint32_t)fd),
		UV_VALUE(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, 4, access),
		UV_BYTES(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, &mr->lkey, 4),
		UV_BYTES(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, &mr->rkey, 4),
	};

	return reg(pd, UVERBS_METHOD_REG_DMABUF_MR, attrs, ARRAY_SIZE(attrs), mr);
}

int uv_dereg(const struct uv_mr *mr)
{
	struct ib_uverbs_attr attr =
		UV_OBJECT(UVERBS_ATTR_DESTROY_MR_HANDLE, mr->handle);

	return uv_method(mr->ibv, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY,
			 &attr, 1);
}

int uv_query(const struct uv_mr *mr, uint64_t *iova, uint64_t *len)
{
	uint32_t lkey = 0, rkey = 0;
	struct ib_uverbs_attr attrs[] = {
		UV_OBJECT(UVERBS_ATTR_QUERY_MR_HANDLE, mr->handle),
		UV_BYTES(UVERBS_ATTR_QUERY_MR_RESP_LKEY, &lkey, 4),
		UV_BYTES(UVERBS_ATTR_QUERY_MR_RESP_RKEY, &rkey, 4),
		UV_BYTES(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, len, 8),
		UV_BYTES(UVERBS_ATTR_QUERY_MR_RESP_IOVA, iova, 8),
	};
	int err = uv_method(mr->ibv, UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR,
			    attrs, ARRAY_SIZE(attrs));

	if (!err) {
		CHECK_EQ(lkey, mr->lkey);
		CHECK_EQ(rkey, mr->rkey);
	}
	return err;
}

int uv_rereg(const struct uv_mr *mr, unsigned int flags, struct ibv_pd *pd,
	     const void *addr, uint64_t len, uint64_t iova, unsigned int access)
{
	struct ibv_mr as = { .context = mr->ibv, .handle = mr->handle };

	return rereg(&as, flags, pd, addr, len, iova, access);
}

int uv_advise(struct ibv_pd *pd, unsigned int advice, unsigned int flags,
	      const struct ibv_sge *sges, unsigned int num)
{
	struct ib_uverbs_attr attrs[] = {
		UV_OBJECT(UVERBS_ATTR_ADVISE_MR_PD_HANDLE, pd->handle),
		UV_VALUE(UVERBS_ATTR_ADVISE_MR_ADVICE, 8, advice),
		UV_VALUE(UVERBS_ATTR_ADVISE_MR_FLAGS, 4, flags),
		UV_BYTES(UVERBS_ATTR_ADVISE_MR_SGE_LIST, sges,
			 num * sizeof(*sges)),
	};

	return uv_method(pd->context, UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR,
			 attrs, ARRAY_SIZE(attrs));
}

int uv_advise_range(struct ibv_pd *pd, unsigned int advice, unsigned int flags,
		    uint32_t lkey, const void *p, size_t len)
{
	struct ibv_sge sge = { (uintptr_t)p, len, lkey };

	return uv_advise(pd, advice, flags, &sge, 1);
}

/* Asks for what each kernel that has the method refuses: no attribute at all. */
bool uv_has_reg_mr(struct ibv_context *ibv)
{
	return uv_method(ibv, UVERBS_OBJECT_MR, METHOD_REG_MR, NULL, 0) !=
	       EPROTONOSUPPORT;
}

int uv_alloc_dm(struct ibv_context *ibv, uint64_t len, uint32_t log_align,
		uint32_t *handle)
{
	struct ib_uverbs_attr attrs[] = {
		UV_OBJECT(UVERBS_ATTR_ALLOC_DM_HANDLE, 0),
		UV_VALUE(UVERBS_ATTR_ALLOC_DM_LENGTH, 8, len),
		UV_VALUE(UVERBS_ATTR_ALLOC_DM_ALIGNMENT, 4, log_align),
	};
	int err = uv_method(ibv, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, attrs,
			    ARRAY_SIZE(attrs));

	*handle = attrs[0].data;
	return err;
}

int uv_free_dm(struct ibv_context *ibv, uint32_t handle)
{
	struct ib_uverbs_attr attr = UV_OBJECT(UVERBS_ATTR_FREE_DM_HANDLE, handle);

	return uv_method(ibv, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, &attr, 1);
}

int uv_reg_dm(struct ibv_pd *pd, uint32_t dm, uint64_t offset, uint64_t len,
	      unsigned int access, struct uv_mr *mr)
{
	struct ib_uverbs_attr attrs[] = {
		UV_OBJECT(UVERBS_ATTR_REG_DM_MR_HANDLE, 0),
		UV_VALUE(UVERBS_ATTR_REG_DM_MR_OFFSET, 8, offset),
		UV_VALUE(UVERBS_ATTR_REG_DM_MR_LENGTH, 8, len),
		UV_OBJECT(UVERBS_ATTR_REG_DM_MR_PD_HANDLE, pd->handle),
		UV_VALUE(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, 4, access),
		UV_OBJECT(UVERBS_ATTR_REG_DM_MR_DM_HANDLE, dm),
		UV_BYTES(UVERBS_ATTR_REG_DM_MR_RESP_LKEY, &mr->lkey, 4),
		UV_BYTES(UVERBS_ATTR_REG_DM_MR_RESP_RKEY, &mr->rkey, 4),
	};

	return reg(pd, UVERBS_METHOD_DM_MR_REG, attrs, ARRAY_SIZE(attrs), mr);
}
