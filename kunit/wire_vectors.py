#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
#
# wire_vectors.py - print the golden ICRCs of wire_kunit.c
#
# The sums come from scapy.contrib.roce (Debian: python3-scapy) and from zlib with
# the masks of IBA A17.3.3 written out here; where scapy knows the protocol the two
# must agree.  Older ones know IPv4 only.

import struct
import sys
import zlib

from scapy.all import IP, IPv6, UDP, Raw, raw
from scapy.contrib.roce import BTH

# opcode, bytes of the headers behind the BTH
OPCODES = [
    (0x00, 0), (0x01, 0), (0x02, 0), (0x03, 4), (0x04, 0), (0x05, 4),
    (0x06, 16), (0x07, 0), (0x08, 0), (0x09, 4), (0x0a, 16), (0x0b, 20),
    (0x0c, 16), (0x0d, 4), (0x0e, 0), (0x0f, 4), (0x10, 4), (0x11, 4),
    (0x12, 12), (0x13, 28), (0x14, 28), (0x16, 4), (0x17, 4), (0x1d, 16),
    (0x24, 0), (0x26, 16), (0x2b, 20), (0x64, 8), (0x65, 12),
]
BARE = {0x0c, 0x11, 0x12, 0x13, 0x14}


def own(head, udp, rest):
    head, udp, rest = bytearray(head), bytearray(udp), bytearray(rest)
    if head[0] >> 4 == 6:
        head[0] |= 0x0f
        head[1:4] = b'\xff' * 3
        head[7] = 0xff
    else:
        head[1] = head[8] = 0xff
        head[10:12] = b'\xff' * 2
    udp[6:8] = b'\xff' * 2
    rest[4] = 0xff
    return zlib.crc32(b'\xff' * 8 + head + udp + rest)


def vector(opcode, ext, length, ipv6):
    pad = -length % 4
    data = bytes(0x10 + i * 7 & 0xff for i in range(ext))
    data += bytes(0xa0 + i * 3 & 0xff for i in range(length)) + bytes(pad)
    if ipv6:
        net = IPv6(src='fd01::1', dst='fd01::2', tc=0xa5, fl=0x12345, hlim=61)
    else:
        net = IP(src='10.1.2.3', dst='192.168.255.1', tos=0xa5, ttl=61,
                 flags='DF', id=0x1234)
    packet = raw(net / UDP(sport=0xc123, dport=4791) /
                 BTH(opcode=opcode, solicited=1, migreq=1, padcount=pad,
                     pkey=0xffff, dqpn=0x123456, ackreq=1, psn=0xabcdef) /
                 Raw(data))
    n = 40 if ipv6 else 20
    crc = own(packet[:n], packet[n:n + 8], packet[n + 8:-4])
    theirs = struct.unpack('<I', packet[-4:])[0]
    # zero: it does not know the protocol
    if theirs not in (crc, 0) or (theirs == 0 and not ipv6):
        sys.exit('opcode %#x: scapy says %#x, zlib %#x' % (opcode, theirs, crc))
    return crc


for number, (opcode, ext) in enumerate(OPCODES):
    for length in [0] if opcode in BARE else [8] if opcode == 0x1d else \
            range(4) if opcode in (0x04, 0x0a, 0x64) else [number * 9 + 1]:
        print('\t{ 0x%02x, %d, %d, 0x%08x, 0x%08x },' %
              (opcode, ext, length, vector(opcode, ext, length, False),
               vector(opcode, ext, length, True)))
