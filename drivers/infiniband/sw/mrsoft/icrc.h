/* SPDX-License-Identifier: GPL-2.0 */
/*
 * icrc.h - invariant checksum of a packet
 *
 * Layer 5.
 */
#ifndef MRSOFT_ICRC_H
#define MRSOFT_ICRC_H

#include <linux/types.h>

/*
 * @net: IP header, 20 bytes or (@ipv6) 40; the UDP header and the rest stand
 * at @udp.  @length: bytes from the BTH to the end of the padding.
 */
__le32 mrsoft_icrc(const void *net, bool ipv6, const void *udp, size_t length);

#endif /* MRSOFT_ICRC_H */
