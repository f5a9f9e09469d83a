/* SPDX-License-Identifier: GPL-2.0 */
/*
 * verbs.h - verbs on contexts, PDs, CQs, SRQs, MRs and MWs
 *
 * Layer 6.
 */
#ifndef MRSOFT_VERBS_H
#define MRSOFT_VERBS_H

#include <rdma/ib_verbs.h>

#include "abi.h"

/**
 * struct mrsoft_ucontext - an open uverbs file
 * @ib: the core's part, must be first
 */
struct mrsoft_ucontext {
	struct ib_ucontext ib;
};

extern const struct ib_device_ops mrsoft_verbs_ops;

/* For all verbs with a reply: the context of a user's call, NULL for the kernel. */
struct ib_ucontext *mrsoft_verbs_ucontext(struct ib_udata *udata);
int mrsoft_verbs_check_udata(struct ib_udata *udata, size_t reply);

#endif /* MRSOFT_VERBS_H */
