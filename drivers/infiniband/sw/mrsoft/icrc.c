// SPDX-License-Identifier: GPL-2.0
/*
 * icrc.c - invariant checksum of a packet
 *
 * Owns:     which bits of the headers count, and the sum.
 * Not here: where the sum stands in the packet (udp.c, rx.c).
 * Locks:    none.
 * Context:  any.
 * Spec:     IBA Vol 1, 7.8.1; Annex A17, A17.3.3
 * Tests:    kunit/wire_kunit.c
 */
#include <linux/crc32.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/string.h>
#include <linux/udp.h>

#include "hdr.h"
#include "icrc.h"

/* A LRH that RoCEv2 does not have: 8 bytes of ones. */
#define LRH_BYTES	8

/* What a router may change counts as ones. */
static size_t mask_ipv4(void *to, const void *from)
{
	struct iphdr *ip = to;

	memcpy(ip, from, sizeof(*ip));
	ip->tos = 0xff;
	ip->ttl = 0xff;
	ip->check = (__force __sum16)0xffff;
	return sizeof(*ip);
}

static size_t mask_ipv6(void *to, const void *from)
{
	struct ipv6hdr *ip = to;

	memcpy(ip, from, sizeof(*ip));
	ip->priority = 0xf;
	memset(ip->flow_lbl, 0xff, sizeof(ip->flow_lbl));
	ip->hop_limit = 0xff;
	return sizeof(*ip);
}

/**
 * mrsoft_icrc - sum a packet
 * @net: its IP header, without options
 * @ipv6: it is an IPv6 header
 * @udp: its UDP header, with the BTH and the rest behind it
 * @length: bytes from the BTH to the end of the padding, at least a BTH
 *
 * Context: any.
 * Return: the sum as it stands in the packet.
 */
__le32 mrsoft_icrc(const void *net, bool ipv6, const void *udp, size_t length)
{
	u8 head[LRH_BYTES + sizeof(struct ipv6hdr) + sizeof(struct udphdr) +
		sizeof(struct mrsoft_bth)] __aligned(8);
	struct mrsoft_bth *bth;
	struct udphdr *uh;
	size_t n = LRH_BYTES;
	u32 crc;

	memset(head, 0xff, LRH_BYTES);
	n += ipv6 ? mask_ipv6(head + n, net) : mask_ipv4(head + n, net);
	uh = memcpy(head + n, udp, sizeof(*uh) + sizeof(*bth));
	uh->check = (__force __sum16)0xffff;
	bth = (void *)(uh + 1);
	/* FECN and BECN */
	bth->qpn |= cpu_to_be32(0xff000000);
	n += sizeof(*uh) + sizeof(*bth);
	crc = crc32_le(~0, head, n);
	crc = crc32_le(crc, udp + sizeof(*uh) + sizeof(*bth),
		       length - sizeof(*bth));
	return cpu_to_le32(~crc);
}
