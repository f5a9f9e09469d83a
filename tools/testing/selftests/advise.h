/* SPDX-License-Identifier: GPL-2.0 */
/*
 * advise.h - ibv_advise_mr(3) by the raw command, which librxe 44 does not send
 */
#ifndef MRSOFT_SELFTESTS_ADVISE_H
#define MRSOFT_SELFTESTS_ADVISE_H

#include <rdma/ib_user_ioctl_verbs.h>

#include "lib.h"

#define PREFETCH IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH
#define PREFETCH_WRITE IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE
#define NO_FAULT IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT
#define FLUSH IB_UVERBS_ADVISE_MR_FLAG_FLUSH

/* 0 or an errno.  @num may be 0. */
int advise(struct ibv_pd *pd, unsigned int advice, unsigned int flags,
	   const struct ibv_sge *sges, unsigned int num);
int advise_range(struct ibv_pd *pd, unsigned int advice, unsigned int flags,
		 uint32_t lkey, const void *p, size_t len);

#endif /* MRSOFT_SELFTESTS_ADVISE_H */
