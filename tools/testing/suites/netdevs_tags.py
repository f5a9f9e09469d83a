#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
netdevs_tags.py NETDEV COUNT - which RoCEv2 packets have a VLAN tag

Looks at the next COUNT packets to UDP port 4791 that NETDEV sends or receives.
Says "ready", and at the end one line for each tag that it saw, 0 for none:

    VLAN-ID PACKETS
"""

import collections
import socket
import struct
import sys

SOL_PACKET = 263
PACKET_AUXDATA = 8
TP_STATUS_VLAN_VALID = 0x10
ETH_P_ALL = 3
ETH_P_8021Q = 0x8100
ETH_P_IP = 0x0800
ETH_P_IPV6 = 0x86DD
UDP = 17
ROCE = 4791


def vlan_of(ancillary):
    """The tag, which the netdev has taken out of the packet."""
    for level, kind, data in ancillary:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
            status, _, _, _, _, tci = struct.unpack_from("IIIHHH", data)
            return tci & 0xFFF if status & TP_STATUS_VLAN_VALID else 0
    return 0


def is_roce(proto, packet):
    if proto == ETH_P_IP:
        at, found = 4 * (packet[0] & 15), packet[9]
    elif proto == ETH_P_IPV6:
        at, found = 40, packet[6]
    else:
        return False
    return found == UDP and packet[at + 2:at + 4] == struct.pack(">H", ROCE)


def main():
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    sock.bind((sys.argv[1], ETH_P_ALL))
    print("ready", flush=True)
    seen = collections.Counter()
    while sum(seen.values()) < int(sys.argv[2]):
        frame, ancillary, _, _ = sock.recvmsg(256, 256)
        vlan, at = vlan_of(ancillary), 12
        if frame[at:at + 2] == struct.pack(">H", ETH_P_8021Q):
            vlan, at = struct.unpack_from(">H", frame, at + 2)[0] & 0xFFF, at + 4
        if is_roce(struct.unpack_from(">H", frame, at)[0], frame[at + 2:]):
            seen[vlan] += 1
    for vlan, n in seen.items():
        print(vlan, n)


main()
