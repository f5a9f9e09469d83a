/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shadow of <net/udp_tunnel.h>: a tunnel is a struct sock, not a struct socket, and
 * the senders take control block flags, which older kernels have no room for.
 */
#ifndef MRSOFT_COMPAT_NET_UDP_TUNNEL_H
#define MRSOFT_COMPAT_NET_UDP_TUNNEL_H

#include_next <net/udp_tunnel.h>

#ifndef MRSOFT_HAVE_UDP_TUNNEL_SOCK
#define setup_udp_tunnel_sock(net, sk, cfg) \
	setup_udp_tunnel_sock(net, (sk)->sk_socket, cfg)
#define udp_tunnel_sock_release(sk) \
	udp_tunnel_sock_release((sk)->sk_socket)
#endif

#ifndef MRSOFT_HAVE_UDP_TUNNEL_IPCB_FLAGS
#define udp_tunnel_xmit_skb(rt, sk, skb, src, dst, tos, ttl, df, src_port,	\
			    dst_port, xnet, nocheck, ipcb_flags)		\
	udp_tunnel_xmit_skb(rt, sk, skb, src, dst, tos, ttl, df, src_port,	\
			    dst_port, xnet, nocheck)
/* saddr and daddr are not const in 6.1, and are only read there as well */
#define udp_tunnel6_xmit_skb(dst, sk, skb, dev, saddr, daddr, prio, ttl, label,	\
			     src_port, dst_port, nocheck, ip6cb_flags)		\
	((void)udp_tunnel6_xmit_skb(dst, sk, skb, dev,				\
				    (struct in6_addr *)(saddr),			\
				    (struct in6_addr *)(daddr), prio, ttl,	\
				    label, src_port, dst_port, nocheck))
#endif

#endif
