/* SPDX-License-Identifier: GPL-2.0 */
/*
 * udp.h - sockets, routes, IP and UDP headers
 *
 * Layer 5.
 */
#ifndef MRSOFT_UDP_H
#define MRSOFT_UDP_H

#include <net/dst.h>

#include "ah.h"
#include "hdr.h"

struct mrsoft_hca;
struct mrsoft_udp;
struct net;
struct sk_buff;

/**
 * struct mrsoft_route - a route that was looked up before
 * @dst: held, or NULL
 * @cookie: for dst->ops->check()
 *
 * One user at a time.
 */
struct mrsoft_route {
	struct dst_entry *dst;
	u32 cookie;
};

/* Module start and end. */
int mrsoft_udp_init(void);
void mrsoft_udp_exit(void);

/* @rx: a packet has arrived; in softirq, under RCU; it owns the skb. */
void mrsoft_udp_set_rx(void (*rx)(const void *net, struct sk_buff *skb));

/*
 * The sockets of a network namespace, opened with its first user.  May sleep.
 * -EADDRINUSE: somebody else has the port.
 */
int mrsoft_udp_get(struct net *net, struct mrsoft_udp **udp);
void mrsoft_udp_put(struct mrsoft_udp *udp);

/*
 * A packet to be: @head bytes of BTH and more headers and @payload bytes, which
 * the caller fills in at skb->data.  NULL: no memory.
 */
struct sk_buff *mrsoft_udp_alloc(size_t head, size_t payload, gfp_t gfp);
/*
 * Pads, sums and sends; frees @skb in any case.  Any context but hard interrupt.
 * False: there is no way to @av's destination.
 */
bool mrsoft_udp_xmit(struct mrsoft_udp *udp, const struct mrsoft_av *av,
		     u16 sport, u32 oif, struct mrsoft_route *route,
		     struct sk_buff *skb);
/* What is sent of @skb, of mrsoft_udp_alloc(), has a bit that its ICRC belies. */
void mrsoft_udp_spoil(struct sk_buff *skb);
void mrsoft_route_reset(struct mrsoft_route *route);

#endif /* MRSOFT_UDP_H */
