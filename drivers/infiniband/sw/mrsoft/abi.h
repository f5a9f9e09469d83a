/* SPDX-License-Identifier: GPL-2.0 */
/*
 * abi.h - rings and replies as librxe of rdma-core knows them
 *
 * Layer 0.  The layout is that of uverbs ABI 2 of the rxe driver id, see
 * include/uapi/rdma/rdma_user_rxe.h of the kernel.  Our own structures, since
 * that header differs between kernels; the asserts below hold them together.
 * All memory that they describe is writable by user space: copy once, then
 * check the copy.
 */
#ifndef MRSOFT_ABI_H
#define MRSOFT_ABI_H

#include <linux/stddef.h>
#include <linux/types.h>
#include <rdma/rdma_user_rxe.h>

#define MRSOFT_ABI_VERSION	2

/* Ring header.  The kernel writes the first two once and believes none. */
struct mrsoft_abi_ring {
	__u32 log2_elem_size;
	__u32 index_mask;
	__u32 pad_1[30];
	__u32 producer_index;
	__u32 pad_2[31];
	__u32 consumer_index;
	__u32 pad_3[31];
	__u8 data[];
};

static_assert(sizeof(struct mrsoft_abi_ring) == sizeof(struct rxe_queue_buf));
static_assert(offsetof(struct mrsoft_abi_ring, producer_index) ==
	      offsetof(struct rxe_queue_buf, producer_index));
static_assert(offsetof(struct mrsoft_abi_ring, consumer_index) ==
	      offsetof(struct rxe_queue_buf, consumer_index));

struct mrsoft_abi_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

/* struct rxe_dma_info: head of a scatter/gather list or inline data. */
struct mrsoft_abi_dma {
	__u32 length;
	__u32 scratch[2];
	__u32 num_sge;
	__u32 scratch_2;
	__u32 reserved;
};

static_assert(sizeof(struct mrsoft_abi_dma) ==
	      offsetof(struct rxe_dma_info, sge));
static_assert(offsetof(struct mrsoft_abi_dma, num_sge) ==
	      offsetof(struct rxe_dma_info, num_sge));

/* struct rxe_send_wqe without what follows dma: sges or inline data. */
struct mrsoft_abi_swqe {
	__aligned_u64 wr_id;
	__u32 reserved;
	__u32 opcode;
	__u32 send_flags;
	union {
		__be32 imm_data;
		__u32 invalidate_rkey;
	} ex;
	union {
		/* librxe leaves the length at 0: it is in dma.length */
		struct {
			__aligned_u64 remote_addr;
			__u32 length;
			__u32 rkey;
			__u8 type;
			__u8 level;
		} flush;
		struct {
			__aligned_u64 remote_addr;
			__u32 rkey;
			__u32 reserved;
		} rdma;
		struct {
			__aligned_u64 remote_addr;
			__aligned_u64 compare_add;
			__aligned_u64 swap;
			__u32 rkey;
			__u32 reserved;
		} atomic;
		struct {
			__u32 remote_qpn;
			__u32 remote_qkey;
			__u16 pkey_index;
			__u16 reserved;
			__u32 ah_num;
			__u32 pad[4];
			struct rxe_av av;
		} ud;
		struct {
			__aligned_u64 addr;
			__aligned_u64 length;
			__u32 mr_lkey;
			__u32 mw_rkey;
			__u32 rkey;
			__u32 access;
		} mw;
	} wr;
	__u32 scratch[2];
	__aligned_u64 iova;
	__u32 scratch_2[6];
	struct mrsoft_abi_dma dma;
};

static_assert(sizeof(struct mrsoft_abi_swqe) ==
	      offsetof(struct rxe_send_wqe, dma) +
	      offsetof(struct rxe_dma_info, sge));
static_assert(offsetof(struct mrsoft_abi_swqe, dma) ==
	      offsetof(struct rxe_send_wqe, dma));
static_assert(offsetof(struct mrsoft_abi_swqe, wr) ==
	      offsetof(struct rxe_send_wqe, wr.wr));

/* struct rxe_recv_wqe without the sges that follow. */
struct mrsoft_abi_rwqe {
	__aligned_u64 wr_id;
	__u32 reserved;
	__u32 padding;
	struct mrsoft_abi_dma dma;
};

static_assert(sizeof(struct mrsoft_abi_rwqe) ==
	      offsetof(struct rxe_recv_wqe, dma) +
	      offsetof(struct rxe_dma_info, sge));

/* Replies. */
struct mrsoft_abi_mmap {
	__aligned_u64 offset;
	__u32 size;
	__u32 pad;
};

struct mrsoft_abi_create_ah_resp {
	__u32 ah_num;
	__u32 reserved;
};

struct mrsoft_abi_cq_resp {
	struct mrsoft_abi_mmap mi;
};

struct mrsoft_abi_create_qp_resp {
	struct mrsoft_abi_mmap rq_mi;
	struct mrsoft_abi_mmap sq_mi;
};

struct mrsoft_abi_create_srq_resp {
	struct mrsoft_abi_mmap mi;
	__u32 srq_num;
	__u32 reserved;
};

struct mrsoft_abi_modify_srq_cmd {
	__aligned_u64 mmap_info_addr;
};

static_assert(sizeof(struct mrsoft_abi_mmap) == sizeof(struct mminfo));
static_assert(sizeof(struct mrsoft_abi_create_qp_resp) ==
	      sizeof(struct rxe_create_qp_resp));
static_assert(sizeof(struct mrsoft_abi_create_srq_resp) ==
	      sizeof(struct rxe_create_srq_resp));

#endif /* MRSOFT_ABI_H */
