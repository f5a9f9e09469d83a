/* SPDX-License-Identifier: GPL-2.0 */
/*
 * psn.h - 24-bit sequence arithmetic
 *
 * Layer 0: pure.  PSN and MSN are compared modulo 2^24, IBA 9.7.2.
 */
#ifndef MRSOFT_PSN_H
#define MRSOFT_PSN_H

#include <linux/types.h>

#define MRSOFT_PSN_MASK		0xffffffu

/**
 * mrsoft_psn_add - advance a PSN
 * @psn: a 24-bit PSN
 * @n: packets
 *
 * Return: the PSN @n packets later, 24 bits.
 */
static inline u32 mrsoft_psn_add(u32 psn, u32 n)
{
	return (psn + n) & MRSOFT_PSN_MASK;
}

/**
 * mrsoft_psn_diff - signed distance of two PSNs
 * @a: a 24-bit PSN
 * @b: a 24-bit PSN
 *
 * Return: @a - @b in -2^23 .. 2^23-1: negative when @a is older than @b.
 */
static inline s32 mrsoft_psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

/**
 * mrsoft_psn_packets - packets of a message
 * @length: bytes
 * @mtu: path MTU in bytes, a power of two
 *
 * Return: the number of packets; an empty message has one.
 */
static inline u32 mrsoft_psn_packets(u64 length, u32 mtu)
{
	return length ? (u32)((length + mtu - 1) / mtu) : 1;
}

#endif /* MRSOFT_PSN_H */
