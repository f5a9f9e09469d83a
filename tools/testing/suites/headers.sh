#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# headers - packets of every kind, field by field, as tshark and we see them
#
#	ns0: h0 (mrsoft) on v0 ==== va -- cable -- vb ==== v1 on h1: ns1
#
# IPv4 and IPv6, without and with a VLAN tag.
#
# machines: uml-plain
# fast: no
# timeout: 400

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts.sh"

CHECK=$(cd "$(dirname "$0")" && pwd)/headers_check.py
VLAN=1234
# hop limits of the routes between the hosts
HOPS=(37 41)

mac_of() # N
{
	on "$1" cat "/sys/class/net/v$1/address"
}

set_up()
{
	local n

	hosts_start cable || return 1
	for n in 0 1; do
		on $n ip link add link v$n name v$n.$VLAN type vlan id $VLAN &&
			on $n ip addr add 10.0.7.$((n + 1))/24 dev v$n.$VLAN &&
			on $n ip addr add fd07::$((n + 1))/64 dev v$n.$VLAN nodad &&
			on $n ip link set v$n.$VLAN up &&
			wait_for 10 gid_index h$n 10.0.7.$((n + 1)) &&
			wait_for 10 gid_index h$n fd07::$((n + 1)) || return 1
		# more special than those of the addresses
		on $n ip route add 10.0.0.$((2 - n)) dev v$n hoplimit ${HOPS[$n]} &&
			on $n ip route add 10.0.7.$((2 - n)) dev v$n.$VLAN \
				hoplimit ${HOPS[$n]} &&
			on $n ip route add fd00::$((2 - n)) dev v$n \
				hoplimit ${HOPS[$n]} &&
			on $n ip route add fd07::$((2 - n)) dev v$n.$VLAN \
				hoplimit ${HOPS[$n]} || return 1
	done
}

# network NAME ADDRESS-A ADDRESS-B VLAN - traffic between them, then look at it
network()
{
	export HEADERS_OUT=$MRSOFT_RESULTS/headers-$1
	export HEADERS_GID_A=$2 HEADERS_GID_B=$3

	rm -f "$HEADERS_OUT".{pcap,txt}
	t_ktap "$1.traffic" 90 "$MRSOFT_BIN/headers"
	t_ktap "$1" 60 python3 "$CHECK" "$HEADERS_OUT" \
		"a.mac=$(mac_of 0) b.mac=$(mac_of 1) a.hops=${HOPS[0]} b.hops=${HOPS[1]} vlan=$4"
}

t_plan_start headers
t_run set_up 60 set_up
export MRSOFT_DEV=$HOST0_DEV MRSOFT_DEV2=$HOST1_DEV CABLE_A=va CABLE_B=vb
network ipv4 10.0.0.1 10.0.0.2 0
network ipv6 fd00::1 fd00::2 0
network ipv4-vlan 10.0.7.1 10.0.7.2 $VLAN
network ipv6-vlan fd07::1 fd07::2 $VLAN
t_run end 60 hosts_end
t_run unload 40 unload_mrsoft
t_done
