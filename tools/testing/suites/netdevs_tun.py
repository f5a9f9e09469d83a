#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
netdevs_tun.py MODE - two interfaces and a wire between them

Makes v0 in the namespace ns0 and v1 in ns1, MODE tun or tap, carries packets from
each to the other until it is killed, and says "ready" when both are there.
"""

import ctypes
import fcntl
import os
import select
import struct
import sys

TUNSETIFF = 0x400454CA
IFF_TUN = 1
IFF_TAP = 2
IFF_NO_PI = 0x1000
CLONE_NEWNET = 0x40000000


def enter(namespace):
    fd = os.open("/run/netns/" + namespace, os.O_RDONLY)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, CLONE_NEWNET):
        sys.exit(os.strerror(ctypes.get_errno()))
    os.close(fd)


def interface(namespace, name, flags):
    enter(namespace)
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name, flags))
    return fd


def carry(source, sink):
    try:
        os.write(sink, os.read(source, 65536))
    except BlockingIOError:
        pass
    except OSError:
        pass  # the other end is down: a wire would lose it as well


def main():
    flags = IFF_NO_PI | (IFF_TAP if sys.argv[1] == "tap" else IFF_TUN)
    ends = [interface("ns0", b"v0", flags), interface("ns1", b"v1", flags)]
    print("ready", flush=True)
    poll = select.poll()
    for fd in ends:
        poll.register(fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            carry(fd, ends[fd == ends[0]])


main()
