/* SPDX-License-Identifier: GPL-2.0 */
/*
 * impair.h - packets that injection rules lose, double, spoil or hold back
 *
 * Layer 5.
 */
#ifndef MRSOFT_IMPAIR_H
#define MRSOFT_IMPAIR_H

#include "qp.h"
#include "udp.h"

/* A device's part: start; let go what is held; nothing is held any more. */
void mrsoft_impair_init(struct mrsoft_hca *hca);
void mrsoft_impair_release(struct mrsoft_hca *hca);
void mrsoft_impair_close(struct mrsoft_hca *hca);

/*
 * @deliver: what rx.c does with a packet that has come; any reason: the packet is
 * still the caller's.
 */
typedef enum mrsoft_reason mrsoft_deliver_fn(struct mrsoft_qp *qp,
					     struct sk_buff *skb,
					     const union ib_gid *sgid,
					     const union ib_gid *dgid);
void mrsoft_impair_set_rx(mrsoft_deliver_fn *deliver);

/* In place of mrsoft_udp_xmit() and of @deliver: as those, but for the rules. */
bool mrsoft_impair_xmit(struct mrsoft_qp *qp, const struct mrsoft_av *av,
			u16 sport, struct mrsoft_route *route,
			struct sk_buff *skb);
enum mrsoft_reason mrsoft_impair_rx(struct mrsoft_qp *qp, struct sk_buff *skb,
				    const union ib_gid *sgid,
				    const union ib_gid *dgid);

#endif /* MRSOFT_IMPAIR_H */
