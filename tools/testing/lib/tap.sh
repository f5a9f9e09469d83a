# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# tap.sh - for suites in which a packet socket plays the other host
#
#	pkdev on pk0                      pk1, a packet socket plays the host
#	10.78.0.1 10.78.0.9 fd78::1 <---> 10.78.0.2 fd78::2
#
# After guest.sh.

DEV_MAC=02:00:00:00:78:01
TAP_MAC=02:00:00:00:78:02

# tap_start - makes pkdev.  The tap end has no address, so that the kernel's own stack
# is silent there.
tap_start()
{
	load_mrsoft
	ip link add pk0 address $DEV_MAC mtu 4300 type veth \
		peer name pk1 address $TAP_MAC mtu 4300 || return 1
	sysctl -qw net.ipv6.conf.pk1.disable_ipv6=1 \
		net.ipv6.conf.pk0.accept_dad=0 net.ipv4.conf.pk1.arp_ignore=8
	ip link set pk1 up &&
		ip addr add 10.78.0.1/24 dev pk0 &&
		ip addr add 10.78.0.9/24 dev pk0 &&
		ip addr add fd78::1/64 dev pk0 nodad &&
		ip link set pk0 up || return 1
	for to in 10.78.0.2 10.78.0.6 fd78::2; do
		ip neigh replace $to lladdr $TAP_MAC dev pk0 nud permanent ||
			return 1
	done
	add_link pkdev pk0 &&
		wait_for 10 gid_index pkdev 10.78.0.1 &&
		wait_for 10 gid_index pkdev 10.78.0.9 &&
		wait_for 10 gid_index pkdev fd78::1 &&
		fresh_counters pkdev
}

# tap_end - nothing may hold the device now, whatever came
tap_end()
{
	t_run link_del 30 del_link pkdev
	ip link del pk0
	# UML's KASAN does not clear the shadow of a module that goes: the next load at its
	# place is reported as a write out of bounds
	[ "$MRSOFT_MACHINE" = uml-kasan ] || t_run unload 30 unload_mrsoft
}
