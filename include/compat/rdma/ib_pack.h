/* SPDX-License-Identifier: GPL-2.0 */
/* Shadow of <rdma/ib_pack.h>: the opcodes of FLUSH and ATOMIC WRITE. */
#ifndef MRSOFT_COMPAT_RDMA_IB_PACK_H
#define MRSOFT_COMPAT_RDMA_IB_PACK_H

#include_next <rdma/ib_pack.h>

#ifndef MRSOFT_HAVE_IB_OPCODE_FLUSH
#define IB_OPCODE_FLUSH			0x1c
#define IB_OPCODE_ATOMIC_WRITE		0x1d
#define IB_OPCODE_RC_FLUSH		(IB_OPCODE_RC + IB_OPCODE_FLUSH)
#define IB_OPCODE_RC_ATOMIC_WRITE	(IB_OPCODE_RC + IB_OPCODE_ATOMIC_WRITE)
#define IB_OPCODE_RD_FLUSH		(IB_OPCODE_RD + IB_OPCODE_FLUSH)
#endif

#endif
