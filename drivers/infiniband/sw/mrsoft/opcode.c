// SPDX-License-Identifier: GPL-2.0
/*
 * opcode.c - one const table of the operations a send queue may ask for
 *
 * Owns:     work request opcode -> kind, flags, QP types, rights, completion
 *           opcodes.
 * Not here: carrying any of it out (sq.c, resp.c).
 * Locks:    none, all data is const.
 * Context:  any.
 * Spec:     IBA Vol 1, 9.2 (opcodes and services), 10.8.2 (work requests);
 *           Annex A19 (FLUSH, ATOMIC WRITE)
 * Tests:    kunit/words_kunit.c
 */
#include <linux/nospec.h>

#include "opcode.h"

#define CONN	(MRSOFT_QPT_RC | MRSOFT_QPT_UC)
#define ANY	(MRSOFT_QPT_RC | MRSOFT_QPT_UC | MRSOFT_QPT_UD)

static const struct mrsoft_op ops[] = {
	[IB_WR_RDMA_WRITE] = {
		.name = "WRITE",
		.kind = MRSOFT_OP_WRITE, .flags = MRSOFT_OPF_INLINE,
		.qp_types = CONN, .rights = IB_ACCESS_REMOTE_WRITE,
		.wc = IB_WC_RDMA_WRITE,
	},
	[IB_WR_RDMA_WRITE_WITH_IMM] = {
		.name = "WRITE_WITH_IMM",
		.kind = MRSOFT_OP_WRITE,
		.flags = MRSOFT_OPF_INLINE | MRSOFT_OPF_IMM | MRSOFT_OPF_RECV,
		.qp_types = CONN, .rights = IB_ACCESS_REMOTE_WRITE,
		.wc = IB_WC_RDMA_WRITE, .recv_wc = IB_WC_RECV_RDMA_WITH_IMM,
	},
	[IB_WR_SEND] = {
		.name = "SEND",
		.kind = MRSOFT_OP_SEND,
		.flags = MRSOFT_OPF_INLINE | MRSOFT_OPF_RECV,
		.qp_types = ANY, .wc = IB_WC_SEND, .recv_wc = IB_WC_RECV,
	},
	[IB_WR_SEND_WITH_IMM] = {
		.name = "SEND_WITH_IMM",
		.kind = MRSOFT_OP_SEND,
		.flags = MRSOFT_OPF_INLINE | MRSOFT_OPF_IMM | MRSOFT_OPF_RECV,
		.qp_types = ANY, .wc = IB_WC_SEND, .recv_wc = IB_WC_RECV,
	},
	[IB_WR_SEND_WITH_INV] = {
		.name = "SEND_WITH_INV",
		.kind = MRSOFT_OP_SEND,
		.flags = MRSOFT_OPF_INLINE | MRSOFT_OPF_INV | MRSOFT_OPF_RECV,
		.qp_types = MRSOFT_QPT_RC,
		.wc = IB_WC_SEND, .recv_wc = IB_WC_RECV,
	},
	[IB_WR_RDMA_READ] = {
		.name = "READ",
		.kind = MRSOFT_OP_READ, .qp_types = MRSOFT_QPT_RC,
		.rights = IB_ACCESS_REMOTE_READ, .wc = IB_WC_RDMA_READ,
	},
	[IB_WR_ATOMIC_CMP_AND_SWP] = {
		.name = "CMP_SWAP",
		.kind = MRSOFT_OP_ATOMIC, .flags = MRSOFT_OPF_WORD,
		.qp_types = MRSOFT_QPT_RC,
		.rights = IB_ACCESS_REMOTE_ATOMIC, .wc = IB_WC_COMP_SWAP,
	},
	[IB_WR_ATOMIC_FETCH_AND_ADD] = {
		.name = "FETCH_ADD",
		.kind = MRSOFT_OP_ATOMIC, .flags = MRSOFT_OPF_WORD,
		.qp_types = MRSOFT_QPT_RC,
		.rights = IB_ACCESS_REMOTE_ATOMIC, .wc = IB_WC_FETCH_ADD,
	},
	[IB_WR_FLUSH] = {
		.name = "FLUSH",
		.kind = MRSOFT_OP_FLUSH, .qp_types = MRSOFT_QPT_RC,
		.rights = IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_FLUSH_PERSISTENT,
		.wc = IB_WC_FLUSH,
	},
	/* A write whose 8 bytes appear at once: mrsoft_copy() stores them so. */
	[IB_WR_ATOMIC_WRITE] = {
		.name = "ATOMIC_WRITE",
		.kind = MRSOFT_OP_WRITE,
		.flags = MRSOFT_OPF_INLINE | MRSOFT_OPF_WORD,
		.qp_types = MRSOFT_QPT_RC,
		.rights = IB_ACCESS_REMOTE_WRITE, .wc = IB_WC_ATOMIC_WRITE,
	},
	[IB_WR_LOCAL_INV] = {
		.name = "LOCAL_INV",
		.kind = MRSOFT_OP_LOCAL, .qp_types = CONN,
		.wc = IB_WC_LOCAL_INV,
	},
	[IB_WR_BIND_MW] = {
		.name = "BIND_MW",
		.kind = MRSOFT_OP_LOCAL, .qp_types = CONN,
		.wc = IB_WC_BIND_MW,
	},
	[IB_WR_REG_MR] = {
		.name = "REG_MR",
		.kind = MRSOFT_OP_LOCAL, .qp_types = CONN,
		.wc = IB_WC_REG_MR,
	},
};

static u8 qp_type_bit(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_RC:
		return MRSOFT_QPT_RC;
	case IB_QPT_UC:
		return MRSOFT_QPT_UC;
	case IB_QPT_UD:
	case IB_QPT_GSI:
		return MRSOFT_QPT_UD;
	default:
		return 0;
	}
}

/**
 * mrsoft_op_find - look an operation up
 * @wr_opcode: enum ib_wr_opcode, or anything that user space wrote
 * @type: type of the QP that was asked
 *
 * Context: any.
 * Return: the operation, or NULL if the device does not have it or a QP of
 * this type may not use it.
 */
const struct mrsoft_op *mrsoft_op_find(u32 wr_opcode, enum ib_qp_type type)
{
	const struct mrsoft_op *op;

	if (wr_opcode >= ARRAY_SIZE(ops))
		return NULL;
	op = &ops[array_index_nospec(wr_opcode, ARRAY_SIZE(ops))];
	if (op->kind == MRSOFT_OP_NONE || !(op->qp_types & qp_type_bit(type)))
		return NULL;
	return op;
}
