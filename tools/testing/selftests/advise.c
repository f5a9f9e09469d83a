// SPDX-License-Identifier: GPL-2.0
/*
 * advise.c - see advise.h
 */
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>

#include "advise.h"

int advise(struct ibv_pd *pd, unsigned int advice, unsigned int flags,
	   const struct ibv_sge *sges, unsigned int num)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[4];
	} cmd = {
		.hdr = {
			.length = sizeof(cmd),
			.object_id = UVERBS_OBJECT_MR,
			.method_id = UVERBS_METHOD_ADVISE_MR,
			.num_attrs = 4,
			.driver_id = RDMA_DRIVER_RXE,
		},
		.attrs = {
			{ .attr_id = UVERBS_ATTR_ADVISE_MR_PD_HANDLE,
			  .flags = UVERBS_ATTR_F_MANDATORY, .data = pd->handle },
			{ .attr_id = UVERBS_ATTR_ADVISE_MR_ADVICE, .len = 8,
			  .flags = UVERBS_ATTR_F_MANDATORY, .data = advice },
			{ .attr_id = UVERBS_ATTR_ADVISE_MR_FLAGS, .len = 4,
			  .flags = UVERBS_ATTR_F_MANDATORY, .data = flags },
			{ .attr_id = UVERBS_ATTR_ADVISE_MR_SGE_LIST,
			  .flags = UVERBS_ATTR_F_MANDATORY,
			  .len = num * sizeof(*sges), .data = (uintptr_t)sges },
		},
	};

	return ioctl(pd->context->cmd_fd, RDMA_VERBS_IOCTL, &cmd) ? errno : 0;
}

int advise_range(struct ibv_pd *pd, unsigned int advice, unsigned int flags,
		 uint32_t lkey, const void *p, size_t len)
{
	struct ibv_sge sge = { (uintptr_t)p, len, lkey };

	return advise(pd, advice, flags, &sge, 1);
}
