/* SPDX-License-Identifier: GPL-2.0 */
/*
 * opcode.h - one const table of the operations a send queue may ask for
 *
 * Layer 0: pure.
 */
#ifndef MRSOFT_OPCODE_H
#define MRSOFT_OPCODE_H

#include <rdma/ib_verbs.h>

/**
 * enum mrsoft_op_kind - what a work request does
 * @MRSOFT_OP_NONE: not an operation of this device
 * @MRSOFT_OP_SEND: bytes into the peer's receive WQE
 * @MRSOFT_OP_WRITE: bytes into the peer's memory
 * @MRSOFT_OP_READ: bytes out of the peer's memory
 * @MRSOFT_OP_ATOMIC: 8 bytes changed in the peer's memory, old value back
 * @MRSOFT_OP_FLUSH: no bytes: what was placed in the peer's memory is made visible
 * @MRSOFT_OP_LOCAL: no message: invalidate, bind, register
 */
enum mrsoft_op_kind {
	MRSOFT_OP_NONE,
	MRSOFT_OP_SEND,
	MRSOFT_OP_WRITE,
	MRSOFT_OP_READ,
	MRSOFT_OP_ATOMIC,
	MRSOFT_OP_FLUSH,
	MRSOFT_OP_LOCAL,
};

#define MRSOFT_OPF_IMM		BIT(0)	/* carries immediate data */
#define MRSOFT_OPF_INV		BIT(1)	/* invalidates an rkey of the peer */
#define MRSOFT_OPF_RECV		BIT(2)	/* consumes a receive WQE */
#define MRSOFT_OPF_INLINE	BIT(3)	/* may carry its bytes in the WQE */
#define MRSOFT_OPF_WORD		BIT(4)	/* exactly 8 bytes, to an aligned address */

#define MRSOFT_QPT_RC		BIT(0)
#define MRSOFT_QPT_UC		BIT(1)
#define MRSOFT_QPT_UD		BIT(2)

/**
 * struct mrsoft_op - what there is to know of an operation
 * @kind: what it does
 * @flags: MRSOFT_OPF_*
 * @qp_types: MRSOFT_QPT_* that may use it, IBA table 38 and 9.2
 * @rights: IB_ACCESS_* that the rkey (and the responder QP) must grant; FLUSH: of
 *	these the ones of its placement types, mrsoft_flush_rights()
 * @wc: completion opcode on the requester
 * @recv_wc: completion opcode on the responder, with MRSOFT_OPF_RECV
 * @name: for people
 */
struct mrsoft_op {
	u8 kind;
	u8 flags;
	u8 qp_types;
	int rights;
	enum ib_wc_opcode wc;
	enum ib_wc_opcode recv_wc;
	const char *name;
};

/**
 * struct mrsoft_flush - what a FLUSH asks for
 * @length: bytes of the range, for IB_FLUSH_RANGE
 * @type: placement types: IB_FLUSH_GLOBAL, IB_FLUSH_PERSISTENT
 * @level: IB_FLUSH_RANGE, or IB_FLUSH_MR: all that the key names
 */
struct mrsoft_flush {
	u32 length;
	u8 type;
	u8 level;
};

/* Nothing that is reserved, and not nothing at all.  Annex A19. */
static inline bool mrsoft_flush_known(const struct mrsoft_flush *flush)
{
	return flush->type &&
	       !(flush->type & ~(IB_FLUSH_GLOBAL | IB_FLUSH_PERSISTENT)) &&
	       flush->level <= IB_FLUSH_MR;
}

/* IB_ACCESS_* that the placement types need. */
static inline int mrsoft_flush_rights(const struct mrsoft_flush *flush)
{
	return (flush->type & IB_FLUSH_GLOBAL ? IB_ACCESS_FLUSH_GLOBAL : 0) |
	       (flush->type & IB_FLUSH_PERSISTENT ?
			IB_ACCESS_FLUSH_PERSISTENT : 0);
}

/* READ and what else takes a place among the results that may be asked for again. */
static inline bool mrsoft_op_needs_depth(const struct mrsoft_op *op)
{
	return op->kind == MRSOFT_OP_READ || op->kind == MRSOFT_OP_ATOMIC ||
	       op->kind == MRSOFT_OP_FLUSH;
}

const struct mrsoft_op *mrsoft_op_find(u32 wr_opcode, enum ib_qp_type type);
const char *mrsoft_op_name(u32 wr_opcode);

#endif /* MRSOFT_OPCODE_H */
