// SPDX-License-Identifier: GPL-2.0
/*
 * udp.c - sockets, routes, IP and UDP headers
 *
 * Owns:     one pair of sockets for each network namespace with a device in it;
 *           everything of a packet in front of the BTH; padding and checksum.
 * Not here: the BTH and what follows (tx.c, ack.c), reading packets (rx.c).
 * Locks:    udps_lock (mutex) protects the list and the user counts; senders
 *           find the sockets under RCU.
 * Lifetime: opened with the first device of a namespace, closed with the last or
 *           with the namespace; freed by the last user.
 * Context:  xmit in process or softirq; the rest in process.
 * Spec:     IBA Annex A17 (RoCEv2), A17.3.1 (IP headers), A17.3.3 (ICRC)
 * Tests:    kunit/wire_kunit.c, tools/testing/suites/wire.sh
 */
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <net/inet_dscp.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/route.h>
#include <net/udp_tunnel.h>

#include "icrc.h"
#include "udp.h"

/* Room for Ethernet and VLAN headers, and what a tunnel below may add. */
#define LINK_ROOM	64
#define IP_ROOM		(sizeof(struct ipv6hdr) + sizeof(struct udphdr))
/* What the specification asks for when the user does not say. */
#define DEFAULT_HOPS	64

/**
 * struct mrsoft_udp - sockets of a network namespace
 * @entry: udps_lock
 * @net: I, not held: the sockets are closed when it goes
 * @users: udps_lock, devices
 * @sk4: RCU, NULL when closed
 * @sk6: RCU, NULL when closed or without IPv6
 */
struct mrsoft_udp {
	struct list_head entry;
	struct net *net;
	unsigned int users;
	struct sock __rcu *sk4;
	struct sock __rcu *sk6;
};

static DEFINE_MUTEX(udps_lock);
static LIST_HEAD(udps);
static void (*arrival)(const void *net, struct sk_buff *skb);

void mrsoft_udp_set_rx(void (*rx)(const void *net, struct sk_buff *skb))
{
	arrival = rx;
}

static int encap_rcv(struct sock *sk, struct sk_buff *skb)
{
	arrival(sock_net(sk), skb);
	return 0;
}

/*
 * local.c makes the copies of this host.  Sockets of tunnels have no loopback of
 * multicast anyway if they are IPv4.
 */
static int no_mc_loop(struct socket *sock)
{
	int off = 0;

	return sock->ops->setsockopt(sock, SOL_IPV6, IPV6_MULTICAST_LOOP,
				     KERNEL_SOCKPTR(&off), sizeof(off));
}

static struct sock *open_sock(struct net *net, bool ipv6)
{
	struct udp_port_cfg cfg = {
		.family = ipv6 ? AF_INET6 : AF_INET,
		.local_udp_port = htons(MRSOFT_UDP_PORT),
		.ipv6_v6only = ipv6,
		/* The ICRC is the checksum; RoCEv2 sends none of UDP. */
		.use_udp6_rx_checksums = false,
	};
	struct udp_tunnel_sock_cfg tunnel = {
		.encap_type = 1,
		.encap_rcv = encap_rcv,
	};
	struct socket *sock;
	int err;

	err = udp_sock_create(net, &cfg, &sock);
	if (err)
		return ERR_PTR(err);
	setup_udp_tunnel_sock(net, sock->sk, &tunnel);
	err = ipv6 ? no_mc_loop(sock) : 0;
	if (err) {
		udp_tunnel_sock_release(sock->sk);
		return ERR_PTR(err);
	}
	return sock->sk;
}

static int open_socks(struct mrsoft_udp *udp)
{
	struct sock *sk4, *sk6;

	lockdep_assert_held(&udps_lock);
	sk4 = open_sock(udp->net, false);
	if (IS_ERR(sk4))
		return PTR_ERR(sk4);
	sk6 = open_sock(udp->net, true);
	if (IS_ERR(sk6)) {
		/* a kernel without IPv6, or one told not to use it */
		if (PTR_ERR(sk6) != -EAFNOSUPPORT &&
		    PTR_ERR(sk6) != -EPFNOSUPPORT) {
			udp_tunnel_sock_release(sk4);
			return PTR_ERR(sk6);
		}
		sk6 = NULL;
	}
	rcu_assign_pointer(udp->sk4, sk4);
	rcu_assign_pointer(udp->sk6, sk6);
	return 0;
}

static void close_socks(struct mrsoft_udp *udp)
{
	struct sock *sk4, *sk6;

	lockdep_assert_held(&udps_lock);
	sk4 = rcu_replace_pointer(udp->sk4, NULL, lockdep_is_held(&udps_lock));
	sk6 = rcu_replace_pointer(udp->sk6, NULL, lockdep_is_held(&udps_lock));
	/* Senders that still see them. */
	synchronize_rcu();
	if (sk4)
		udp_tunnel_sock_release(sk4);
	if (sk6)
		udp_tunnel_sock_release(sk6);
}

static struct mrsoft_udp *find_udp(struct net *net)
{
	struct mrsoft_udp *udp;

	lockdep_assert_held(&udps_lock);
	list_for_each_entry(udp, &udps, entry)
		if (udp->net == net)
			return udp;
	return NULL;
}

/**
 * mrsoft_udp_get - use the sockets of a namespace
 * @net: alive
 * @udp: set on success
 *
 * Context: process, sleeps.
 * Return: 0, -ENOMEM, -EADDRINUSE when somebody else has the port, or an error of
 * the sockets.
 */
int mrsoft_udp_get(struct net *net, struct mrsoft_udp **udp)
{
	struct mrsoft_udp *u;
	int err = 0;

	mutex_lock(&udps_lock);
	u = find_udp(net);
	if (u) {
		u->users++;
		goto found;
	}
	err = -ENOMEM;
	u = kzalloc_obj(*u);
	if (!u)
		goto unlock;
	u->net = net;
	u->users = 1;
	err = open_socks(u);
	if (err) {
		kfree(u);
		goto unlock;
	}
	list_add(&u->entry, &udps);
found:
	*udp = u;
unlock:
	mutex_unlock(&udps_lock);
	return err;
}

/**
 * mrsoft_udp_put - use them no more
 * @udp: of mrsoft_udp_get(); nobody sends through it for this user
 *
 * Context: process, sleeps.
 */
void mrsoft_udp_put(struct mrsoft_udp *udp)
{
	mutex_lock(&udps_lock);
	if (!--udp->users) {
		list_del(&udp->entry);
		close_socks(udp);
		kfree(udp);
	}
	mutex_unlock(&udps_lock);
}

/* Devices are on their way out, and may take longer than their namespace. */
static void __net_exit net_exit(struct net *net)
{
	struct mrsoft_udp *udp;

	mutex_lock(&udps_lock);
	udp = find_udp(net);
	if (udp) {
		close_socks(udp);
		/* not found again: another namespace may get this address */
		udp->net = NULL;
	}
	mutex_unlock(&udps_lock);
}

static struct pernet_operations net_ops = {
	.exit = net_exit,
};

/**
 * mrsoft_udp_init - hear of the end of namespaces
 *
 * Context: process.
 * Return: 0 or an error of the core.
 */
int mrsoft_udp_init(void)
{
	return register_pernet_device(&net_ops);
}

/**
 * mrsoft_udp_exit - all devices are gone
 *
 * Context: process.
 */
void mrsoft_udp_exit(void)
{
	unregister_pernet_device(&net_ops);
}

/* Routes */

/**
 * mrsoft_route_reset - forget a route
 * @route: nobody sends with it now
 *
 * Context: any.
 */
void mrsoft_route_reset(struct mrsoft_route *route)
{
	dst_release(route->dst);
	route->dst = NULL;
}

static struct dst_entry *lookup4(struct net *net, struct sock *sk,
				 const struct mrsoft_av *av, u16 sport, u32 oif)
{
	struct flowi4 fl = {
		.flowi4_proto = IPPROTO_UDP,
		.fl4_sport = htons(sport),
		.fl4_dport = htons(MRSOFT_UDP_PORT),
	};
	struct rtable *rt;

	memcpy(&fl.saddr, &av->sgid.raw[12], sizeof(fl.saddr));
	memcpy(&fl.daddr, &av->dgid.raw[12], sizeof(fl.daddr));
	if (ipv4_is_multicast(fl.daddr))
		fl.flowi4_oif = oif;
	mrsoft_flowi4_set_dscp(&fl, inet_dsfield_to_dscp(av->traffic_class));
	rt = ip_route_output_flow(net, &fl, sk);
	return IS_ERR(rt) ? NULL : &rt->dst;
}

static struct dst_entry *lookup6(struct net *net, struct sock *sk,
				 const struct mrsoft_av *av, u16 sport, u32 oif)
{
#if IS_ENABLED(CONFIG_IPV6)
	struct flowi6 fl = {
		.flowi6_proto = IPPROTO_UDP,
		.fl6_sport = htons(sport),
		.fl6_dport = htons(MRSOFT_UDP_PORT),
	};
	struct dst_entry *dst;

	memcpy(&fl.saddr, &av->sgid, sizeof(fl.saddr));
	memcpy(&fl.daddr, &av->dgid, sizeof(fl.daddr));
	/* a group, or an address that means something on one link only */
	if (ipv6_addr_is_multicast(&fl.daddr) ||
	    __ipv6_addr_needs_scope_id(ipv6_addr_type(&fl.daddr)))
		fl.flowi6_oif = oif;
	dst = ip6_dst_lookup_flow(net, sk, &fl, NULL);
	return IS_ERR(dst) ? NULL : dst;
#else
	return NULL;
#endif
}

static struct dst_entry *get_route(struct mrsoft_udp *udp, struct sock *sk,
				   const struct mrsoft_av *av, u16 sport,
				   u32 oif, struct mrsoft_route *route)
{
	struct dst_entry *dst = route ? route->dst : NULL;

	if (dst) {
		if (dst_check(dst, route->cookie))
			return dst_clone(dst);
		mrsoft_route_reset(route);
	}
	if (av->ifindex)
		oif = av->ifindex;
	dst = av->ipv4 ? lookup4(udp->net, sk, av, sport, oif) :
			 lookup6(udp->net, sk, av, sport, oif);
	if (dst && route) {
		route->dst = dst_clone(dst);
		route->cookie = 0;
#if IS_ENABLED(CONFIG_IPV6)
		if (!av->ipv4)
			route->cookie = rt6_get_cookie(dst_rt6_info(dst));
#endif
	}
	return dst;
}

/* Packets */

/**
 * mrsoft_udp_alloc - memory for a packet
 * @head: bytes from the BTH to the payload
 * @payload: bytes
 * @gfp: as the caller's context allows
 *
 * Context: as @gfp says.
 * Return: an skb of head + payload bytes, not initialised; or NULL.
 */
struct sk_buff *mrsoft_udp_alloc(size_t head, size_t payload, gfp_t gfp)
{
	size_t tail = ALIGN(payload, 4) - payload + MRSOFT_ICRC_BYTES;
	struct sk_buff *skb;

	skb = alloc_skb(LINK_ROOM + IP_ROOM + head + payload + tail, gfp);
	if (!skb)
		return NULL;
	skb_reserve(skb, LINK_ROOM + IP_ROOM);
	skb_put(skb, head + payload);
	return skb;
}

/* In skb->cb until it is sent; all zero in a new skb. */
struct mark {
	bool spoilt;
};

static struct mark *mark(struct sk_buff *skb)
{
	return (struct mark *)skb->cb;
}

/**
 * mrsoft_udp_spoil - a packet is to arrive damaged
 * @skb: of mrsoft_udp_alloc(), not sent yet
 *
 * Context: any.
 */
void mrsoft_udp_spoil(struct sk_buff *skb)
{
	mark(skb)->spoilt = true;
}

static void push_udp(struct sk_buff *skb, u16 sport)
{
	u16 length = skb->len + sizeof(struct udphdr);
	struct udphdr *uh = skb_push(skb, sizeof(*uh));

	skb_reset_transport_header(skb);
	uh->source = htons(sport);
	uh->dest = htons(MRSOFT_UDP_PORT);
	uh->len = htons(length);
	uh->check = 0;
}

static void push_ipv4(struct sk_buff *skb, const struct mrsoft_av *av)
{
	struct iphdr *ip = skb_push(skb, sizeof(*ip));

	skb_reset_network_header(skb);
	memset(ip, 0, sizeof(*ip));
	ip->version = IPVERSION;
	ip->ihl = sizeof(*ip) / 4;
	ip->tos = av->traffic_class;
	ip->tot_len = htons(skb->len);
	/* never in fragments, so that the identification means nothing */
	ip->frag_off = htons(IP_DF);
	ip->ttl = av->hop_limit ? av->hop_limit : DEFAULT_HOPS;
	ip->protocol = IPPROTO_UDP;
	memcpy(&ip->saddr, &av->sgid.raw[12], sizeof(ip->saddr));
	memcpy(&ip->daddr, &av->dgid.raw[12], sizeof(ip->daddr));
	skb->protocol = htons(ETH_P_IP);
}

static void push_ipv6(struct sk_buff *skb, const struct mrsoft_av *av)
{
	u16 length = skb->len;
	struct ipv6hdr *ip = skb_push(skb, sizeof(*ip));

	skb_reset_network_header(skb);
	ip6_flow_hdr(ip, av->traffic_class, htonl(av->flow_label));
	ip->payload_len = htons(length);
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = av->hop_limit ? av->hop_limit : DEFAULT_HOPS;
	memcpy(&ip->saddr, &av->sgid, sizeof(ip->saddr));
	memcpy(&ip->daddr, &av->dgid, sizeof(ip->daddr));
	skb->protocol = htons(ETH_P_IPV6);
}

/* Everything around the BTH and the payload. */
static void finish(struct sk_buff *skb, const struct mrsoft_av *av, u16 sport)
{
	struct mrsoft_bth *bth = (void *)skb->data;
	u32 pad = (bth->flags & MRSOFT_BTH_PAD_MASK) >> MRSOFT_BTH_PAD_SHIFT;
	size_t length;
	__le32 *icrc;

	skb_put_zero(skb, pad);
	length = skb->len;
	icrc = skb_put(skb, MRSOFT_ICRC_BYTES);
	push_udp(skb, sport);
	if (av->ipv4)
		push_ipv4(skb, av);
	else
		push_ipv6(skb, av);
	put_unaligned(mrsoft_icrc(skb_network_header(skb), !av->ipv4,
				  skb_transport_header(skb), length), icrc);
	if (unlikely(mark(skb)->spoilt))
		*((u8 *)icrc - 1) ^= 1;
	skb->ip_summed = CHECKSUM_NONE;
}

/**
 * mrsoft_udp_xmit - send a packet
 * @udp: of the device's namespace
 * @av: where to
 * @sport: UDP source port
 * @oif: the device's netdev, for groups and addresses with a scope, if @av does
 *	not know better
 * @route: remembers the way, or NULL
 * @skb: of mrsoft_udp_alloc(), from BTH to payload, the pad count set
 *
 * The padding and the ICRC are added here.  Nothing of @skb refers to memory of a
 * region: wherever it is queued, for however long, no dereg waits for it.
 *
 * Context: process or softirq.
 * Return: false if there is no route or no socket; @skb is gone in any case.
 */
bool mrsoft_udp_xmit(struct mrsoft_udp *udp, const struct mrsoft_av *av,
		     u16 sport, u32 oif, struct mrsoft_route *route,
		     struct sk_buff *skb)
{
	struct dst_entry *dst;
	struct sock *sk;

	rcu_read_lock();
	sk = av->ipv4 ? rcu_dereference(udp->sk4) : rcu_dereference(udp->sk6);
	dst = sk ? get_route(udp, sk, av, sport, oif, route) : NULL;
	if (!dst) {
		rcu_read_unlock();
		kfree_skb(skb);
		return false;
	}
	finish(skb, av, sport);
	skb_dst_set(skb, dst);
	memset(skb->cb, 0, sizeof(skb->cb));
	if (av->ipv4)
		ip_local_out(udp->net, sk, skb);
	else
		ip6_local_out(udp->net, sk, skb);
	rcu_read_unlock();
	return true;
}
