/* SPDX-License-Identifier: GPL-2.0 */
/*
 * uverbs.h - methods of uverbs that librxe of the machine has no call for
 *
 * Registration by each way there is: the write command, the methods REG_MR (not on
 * every kernel), REG_DMABUF_MR and DM_MR_REG; device memory; QUERY_MR, ADVISE_MR.  All
 * return 0 or an errno.
 */
#ifndef MRSOFT_SELFTESTS_UVERBS_H
#define MRSOFT_SELFTESTS_UVERBS_H

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "lib.h"

/* --- any method ------------------------------------------------------------- */

/* Input: a value of at most 8 bytes, or bytes; output: where it goes; an object. */
#define UV_VALUE(id, size, value) ((struct ib_uverbs_attr){ \
	.attr_id = (id), .len = (size), .flags = UVERBS_ATTR_F_MANDATORY, \
	.data = (value) })
#define UV_BYTES(id, p, size) UV_VALUE(id, size, (uintptr_t)(p))
#define UV_OBJECT(id, handle) UV_VALUE(id, 0, handle)

/* What is new of an object's kind gets its handle in @attrs[i].data. */
int uv_method(struct ibv_context *ibv, unsigned int object, unsigned int method,
	      struct ib_uverbs_attr *attrs, size_t n);

/* --- regions ---------------------------------------------------------------- */

/* A region that no struct ibv_mr stands for. */
struct uv_mr {
	struct ibv_context *ibv;
	uint32_t handle, lkey, rkey;
};

int uv_reg_write(struct ibv_pd *pd, const void *addr, uint64_t len, uint64_t iova,
		 unsigned int access, struct uv_mr *mr);
int uv_reg_mr(struct ibv_pd *pd, const void *addr, uint64_t len, uint64_t iova,
	      unsigned int access, struct uv_mr *mr);
int uv_reg_dmabuf(struct ibv_pd *pd, int fd, uint64_t offset, uint64_t len,
		  uint64_t iova, unsigned int access, struct uv_mr *mr);
/* The same by REG_MR, which has a dma-buf as a variant. */
int uv_reg_mr_fd(struct ibv_pd *pd, int fd, uint64_t offset, uint64_t len,
		 uint64_t iova, unsigned int access, struct uv_mr *mr);
int uv_dereg(const struct uv_mr *mr);
/* What the core keeps of it. */
int uv_query(const struct uv_mr *mr, uint64_t *iova, uint64_t *len);
int uv_rereg(const struct uv_mr *mr, unsigned int flags, struct ibv_pd *pd,
	     const void *addr, uint64_t len, uint64_t iova, unsigned int access);
/* ibv_advise_mr(3); @num may be 0. */
int uv_advise(struct ibv_pd *pd, unsigned int advice, unsigned int flags,
	      const struct ibv_sge *sges, unsigned int num);
int uv_advise_range(struct ibv_pd *pd, unsigned int advice, unsigned int flags,
		    uint32_t lkey, const void *p, size_t len);
#define PREFETCH IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH
#define PREFETCH_WRITE IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE
#define NO_FAULT IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT
#define FLUSH IB_UVERBS_ADVISE_MR_FLAG_FLUSH
/* False on kernels without the method REG_MR. */
bool uv_has_reg_mr(struct ibv_context *ibv);

/* --- device memory ---------------------------------------------------------- */

int uv_alloc_dm(struct ibv_context *ibv, uint64_t len, uint32_t log_align,
		uint32_t *handle);
int uv_free_dm(struct ibv_context *ibv, uint32_t handle);
int uv_reg_dm(struct ibv_pd *pd, uint32_t dm, uint64_t offset, uint64_t len,
	      unsigned int access, struct uv_mr *mr);

#endif /* MRSOFT_SELFTESTS_UVERBS_H */
