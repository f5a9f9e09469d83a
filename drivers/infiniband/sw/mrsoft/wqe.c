// SPDX-License-Identifier: GPL-2.0
/*
 * wqe.c - send WQEs: from user space's layout and from ib_send_wr to ours
 *
 * Owns:     the layout of both kinds of send ring; copying a WQE out once; the
 *           rules that hold for any WQE (number of sges, bounds of the slot);
 *           the message that it asks for.
 * Not here: what a WQE may ask for (sq.c), the ring's indices (ring.c).
 * Locks:    fetch is for the runner of the queue; build is called with sq.lock.
 * Context:  fetch in process context, build in any.
 * Spec:     rxe user ABI 2 (abi.h)
 * Tests:    kunit/engine_kunit.c, tools/testing/selftests
 */
#include "psn.h"
#include "wqe.h"

/* A privileged Q_Key in a WR stands for the QP's own, IBA 10.2.5. */
#define QKEY_PRIVILEGED	BIT(31)

static void convert_user(const struct mrsoft_abi_swqe *abi,
			 struct mrsoft_swqe *wqe)
{
	wqe->wr_id = abi->wr_id;
	wqe->opcode = abi->opcode;
	wqe->flags = abi->send_flags;
	wqe->ex.inv_key = abi->ex.invalidate_rkey;
	switch (abi->opcode) {
	case IB_WR_BIND_MW:
		wqe->bind = (struct mrsoft_bind){
			.mw_key	 = abi->wr.mw.mw_rkey,
			.new_key = abi->wr.mw.rkey,
			.mr_key	 = abi->wr.mw.mr_lkey,
			.addr	 = abi->wr.mw.addr,
			.length	 = abi->wr.mw.length,
			.access	 = abi->wr.mw.access,
		};
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		wqe->atomic.addr = abi->wr.atomic.remote_addr;
		wqe->atomic.key = abi->wr.atomic.rkey;
		wqe->atomic.compare = abi->wr.atomic.compare_add;
		wqe->atomic.swap_add = abi->opcode == IB_WR_ATOMIC_CMP_AND_SWP ?
			abi->wr.atomic.swap : abi->wr.atomic.compare_add;
		break;
	case IB_WR_FLUSH:
		wqe->flush.addr = abi->wr.flush.remote_addr;
		wqe->flush.key = abi->wr.flush.rkey;
		wqe->flush.what = (struct mrsoft_flush){
			.length	= abi->dma.length,
			.type	= abi->wr.flush.type,
			.level	= abi->wr.flush.level,
		};
		break;
	default:
		wqe->rdma.addr = abi->wr.rdma.remote_addr;
		wqe->rdma.key = abi->wr.rdma.rkey;
	}
}

static bool fetch_sges(struct mrsoft_sq *sq, u32 nth, u32 num_sge,
		       struct mrsoft_swqe *wqe)
{
	u32 i;

	static_assert(sizeof(struct ib_sge) == sizeof(struct mrsoft_abi_sge));
	static_assert(offsetof(struct ib_sge, lkey) ==
		      offsetof(struct mrsoft_abi_sge, lkey));
	if (num_sge > sq->max_sge)
		return false;
	if (num_sge && mrsoft_ring_peek_nth(&sq->ring, nth,
					    sizeof(struct mrsoft_abi_swqe),
					    wqe->sge,
					    num_sge * sizeof(wqe->sge[0])))
		return false;
	wqe->num_sge = num_sge;
	for (i = 0; i < num_sge; i++)
		wqe->length += wqe->sge[i].length;
	return true;
}

static bool fetch_inline(struct mrsoft_sq *sq, u32 nth, u32 length,
			 struct mrsoft_swqe *wqe)
{
	if (length > sq->max_inline)
		return false;
	if (length && mrsoft_ring_peek_nth(&sq->ring, nth,
					   sizeof(struct mrsoft_abi_swqe),
					   wqe->data, length))
		return false;
	wqe->length = length;
	return true;
}

/* librxe's ring: everything in it is copied once and believed only then. */
static void fetch_user(struct mrsoft_qp *qp, u32 nth, struct mrsoft_swqe *wqe)
{
	struct mrsoft_sq *sq = &qp->sq;
	struct mrsoft_abi_swqe abi;
	bool ok;

	mrsoft_ring_peek_nth(&sq->ring, nth, 0, &abi, sizeof(abi));
	convert_user(&abi, wqe);
	wqe->length = 0;
	wqe->num_sge = 0;
	if (mrsoft_qp_is_datagram(qp)) {
		wqe->ud.qpn = abi.wr.ud.remote_qpn;
		wqe->ud.qkey = abi.wr.ud.remote_qkey;
		wqe->ud.ah_num = abi.wr.ud.ah_num;
	}
	/* The 8 bytes of an atomic write are always in the WQE. */
	if (wqe->opcode == IB_WR_ATOMIC_WRITE) {
		wqe->flags |= IB_SEND_INLINE;
		abi.dma.length = sizeof(u64);
	}
	/* The length field of old librxe is wrong for lists: sum the sges. */
	if (wqe->opcode == IB_WR_FLUSH)
		ok = !abi.dma.num_sge && mrsoft_flush_known(&wqe->flush.what);
	else if (wqe->flags & IB_SEND_INLINE)
		ok = fetch_inline(sq, nth, abi.dma.length, wqe);
	else
		ok = fetch_sges(sq, nth, abi.dma.num_sge, wqe);
	wqe->bad = !ok || wqe->opcode == IB_WR_REG_MR;
}

/**
 * mrsoft_wqe_fetch - copy a WQE of the queue
 * @qp: runner
 * @nth: 0 is the one at the head
 * @wqe: filled in; @wqe->bad when it is malformed
 *
 * The slot stays taken until the ring is popped.
 *
 * Context: process, runner only.
 * Return: false when the queue has no more than @nth.
 */
bool mrsoft_wqe_fetch(struct mrsoft_qp *qp, u32 nth, struct mrsoft_swqe *wqe)
{
	struct mrsoft_ring *ring = &qp->sq.ring;

	if (mrsoft_ring_pending(ring) <= nth)
		return false;
	if (qp->is_user)
		fetch_user(qp, nth, wqe);
	else
		mrsoft_ring_peek_nth(ring, nth, 0, wqe,
				     min_t(size_t, sizeof(*wqe),
					   1u << ring->shift));
	return true;
}

static int copy_inline(const struct mrsoft_sq *sq, const struct ib_send_wr *wr,
		       struct mrsoft_swqe *wqe)
{
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > sq->max_inline - wqe->length)
			return -EINVAL;
		/* Inline data is an address of the CPU, not of a region. */
		memcpy(wqe->data + wqe->length, (void *)(uintptr_t)sge->addr,
		       sge->length);
		wqe->length += sge->length;
	}
	return 0;
}

static void convert_kernel(const struct ib_send_wr *wr,
			   struct mrsoft_swqe *wqe)
{
	/* not over the enum: 6.1's lacks the last of these */
	switch ((u32)wr->opcode) {
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		wqe->atomic.addr = atomic_wr(wr)->remote_addr;
		wqe->atomic.key = atomic_wr(wr)->rkey;
		wqe->atomic.compare = atomic_wr(wr)->compare_add;
		wqe->atomic.swap_add = wr->opcode == IB_WR_ATOMIC_CMP_AND_SWP ?
			atomic_wr(wr)->swap : atomic_wr(wr)->compare_add;
		break;
	case IB_WR_REG_MR:
		wqe->reg.mr = mrsoft_mr(reg_wr(wr)->mr);
		wqe->reg.key = reg_wr(wr)->key;
		wqe->reg.access = reg_wr(wr)->access;
		break;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
	case IB_WR_ATOMIC_WRITE:
		wqe->rdma.addr = rdma_wr(wr)->remote_addr;
		wqe->rdma.key = rdma_wr(wr)->rkey;
		break;
	default:
		break;
	}
}

static int convert_datagram(const struct ib_send_wr *wr,
			    struct mrsoft_swqe *wqe)
{
	struct mrsoft_ah *ah;
	unsigned long flags;

	if (!ud_wr(wr)->ah)
		return -EINVAL;
	ah = mrsoft_ah(ud_wr(wr)->ah);
	wqe->ud.qpn = ud_wr(wr)->remote_qpn;
	wqe->ud.qkey = ud_wr(wr)->remote_qkey;
	spin_lock_irqsave(&ah->lock, flags);
	wqe->ud.av = ah->av;
	spin_unlock_irqrestore(&ah->lock, flags);
	return 0;
}

/**
 * mrsoft_wqe_build - a kernel consumer's work request as a WQE
 * @qp: a kernel consumer's QP
 * @wr: one work request
 * @wqe: filled in
 *
 * Inline data and the address of a datagram are copied now.
 *
 * Context: any.
 * Return: 0, or -EINVAL (opcode, sges, inline length, no AH).
 */
int mrsoft_wqe_build(const struct mrsoft_qp *qp, const struct ib_send_wr *wr,
		     struct mrsoft_swqe *wqe)
{
	const struct mrsoft_sq *sq = &qp->sq;
	int i;

	if (wr->num_sge < 0 || wr->num_sge > sq->max_sge ||
	    !mrsoft_op_find(wr->opcode, qp->type))
		return -EINVAL;
	/* The kernel has no work request that could say what to flush. */
	if ((u32)wr->opcode == IB_WR_FLUSH)
		return -EINVAL;
	memset(wqe, 0, offsetof(struct mrsoft_swqe, sge));
	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	wqe->flags = wr->send_flags;
	wqe->ex.inv_key = wr->ex.invalidate_rkey;
	if (!mrsoft_qp_is_datagram(qp))
		convert_kernel(wr, wqe);
	else if (convert_datagram(wr, wqe))
		return -EINVAL;
	if (wqe->flags & IB_SEND_INLINE)
		return copy_inline(sq, wr, wqe);
	wqe->num_sge = wr->num_sge;
	for (i = 0; i < wr->num_sge; i++) {
		wqe->sge[i] = wr->sg_list[i];
		wqe->length += wr->sg_list[i].length;
	}
	return 0;
}

/**
 * mrsoft_wqe_message - the message that a WQE asks for
 * @qp: the requester
 * @wqe: its copy, validated
 * @msg: filled in, but for the PSN; @msg->op is set
 *
 * Context: process, runner only.
 */
void mrsoft_wqe_message(const struct mrsoft_qp *qp,
			const struct mrsoft_swqe *wqe, struct mrsoft_msg *msg)
{
	msg->opcode = wqe->opcode;
	msg->solicited = wqe->flags & IB_SEND_SOLICITED;
	msg->src_qpn = qp->qpn;
	msg->length = wqe->length;
	msg->ex.inv_key = wqe->ex.inv_key;
	msg->done = 0;
	msg->copied = 0;
	msg->packets = 1;
	if (msg->op->kind == MRSOFT_OP_ATOMIC) {
		msg->raddr = wqe->atomic.addr;
		msg->rkey = wqe->atomic.key;
		msg->compare = wqe->atomic.compare;
		msg->swap_add = wqe->atomic.swap_add;
	} else if (msg->op->kind == MRSOFT_OP_FLUSH) {
		msg->raddr = wqe->flush.addr;
		msg->rkey = wqe->flush.key;
		msg->flush = wqe->flush.what;
	} else if (mrsoft_qp_is_datagram(qp)) {
		msg->qkey = wqe->ud.qkey & QKEY_PRIVILEGED ? qp->attr.qkey :
							     wqe->ud.qkey;
	} else {
		msg->raddr = wqe->rdma.addr;
		msg->rkey = wqe->rdma.key;
		msg->packets = mrsoft_psn_packets(wqe->length, qp->mtu);
	}
}
