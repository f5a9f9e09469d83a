// SPDX-License-Identifier: GPL-2.0
/*
 * raw.c - work requests that librxe of the machine cannot write; see raw.h
 */
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>

#include "raw.h"

#define MAX_RINGS 64
#define WR_FLUSH 14

size_t find_rings(struct ring **rings, size_t *lens, size_t max)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[400];
	size_t n = 0;

	CHECK(f);
	while (n < max && fgets(line, sizeof(line), f)) {
		if (!strstr(line, "/uverbs") ||
		    sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		rings[n] = (struct ring *)from;
		lens[n++] = to - from;
	}
	fclose(f);
	CHECK(n);
	return n;
}

struct ring *send_ring(void (*one)(void *arg), void *arg)
{
	struct ring *rings[MAX_RINGS], *found = NULL;
	uint32_t before[MAX_RINGS];
	size_t lens[MAX_RINGS];
	size_t i, n = find_rings(rings, lens, MAX_RINGS);

	for (i = 0; i < n; i++)
		before[i] = rings[i]->producer_index;
	one(arg);
	for (i = 0; i < n; i++) {
		/* a completion is shorter than any send WQE */
		if (1u << rings[i]->log2_elem_size <=
		    sizeof(struct rxe_send_wqe) ||
		    before[i] == rings[i]->producer_index)
			continue;
		CHECK(!found);
		found = rings[i];
	}
	CHECK(found);
	return found;
}

void doorbell(const struct end *e)
{
	struct ib_uverbs_post_send cmd = {
		.qp_handle = e->qp->handle,
		.wqe_size = sizeof(struct ib_uverbs_send_wr),
	};
	struct ib_uverbs_post_send_resp resp;

	uverbs_write(e->c->ibv, IB_USER_VERBS_CMD_POST_SEND, &cmd, sizeof(cmd),
		     &resp, sizeof(resp));
}

void post_flush(const struct end *e, struct ring *sq, const struct flush *f)
{
	uint32_t producer = sq->producer_index & sq->index_mask;
	struct rxe_send_wqe *wqe;
	struct {
		uint64_t remote_addr;
		uint32_t length;
		uint32_t rkey;
		uint8_t type;
		uint8_t level;
	} wr = { f->addr, 0, f->rkey, f->type, f->level };

	CHECK(((producer + 1 - sq->consumer_index) & sq->index_mask) != 0);
	wqe = (void *)(sq->data + ((size_t)producer << sq->log2_elem_size));
	memset(wqe, 0, sizeof(*wqe));
	wqe->wr.wr_id = f->wr_id;
	wqe->wr.opcode = WR_FLUSH;
	wqe->wr.send_flags = IBV_SEND_SIGNALED;
	memcpy(&wqe->wr.wr, &wr, sizeof(wr));
	wqe->dma.length = f->length;
	wqe->dma.resid = f->length;
	wqe->iova = f->addr;
	__atomic_store_n(&sq->producer_index, (producer + 1) & sq->index_mask,
			 __ATOMIC_RELEASE);
	doorbell(e);
}

uint64_t device_caps(const struct ctx *c)
{
	struct ibv_device_attr_ex attr;

	OK(ibv_query_device_ex(c->ibv, NULL, &attr));
	return attr.device_cap_flags_ex;
}
