/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shadow of <net/flow.h>: the DSCP of an IPv4 flow. The field changed its name and
 * its type, so it is set by a function.
 */
#ifndef MRSOFT_COMPAT_NET_FLOW_H
#define MRSOFT_COMPAT_NET_FLOW_H

#include_next <net/flow.h>
#include <net/inet_dscp.h>

static inline void mrsoft_flowi4_set_dscp(struct flowi4 *fl4, dscp_t dscp)
{
#ifdef MRSOFT_HAVE_FLOWI4_DSCP
	fl4->flowi4_dscp = dscp;
#else
	fl4->flowi4_tos = inet_dscp_to_dsfield(dscp);
#endif
}

#endif
