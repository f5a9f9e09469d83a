#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# netdevs - every kind of netdev as a port, and what happens to it under traffic
#
#	ns0: h0 on v0 ---- p0 ==== p1 ---- v1 with h1: ns1
#	               (q0 ==== q1, for the bond)
#
# v0 and v1 are of the kind in question, p0 and p1 a veth pair.
#
# machines: uml-plain
# fast: no
# timeout: 300

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts-cases.sh"

SYS=/sys/class/infiniband

# both CMD... - with N of host 0 and 1 as the last argument
both()
{
	"$@" 0 && "$@" 1
}

# --- kinds --------------------------------------------------------------------

namespaces()
{
	ip netns add ns0 && ip netns add ns1 && pair p && pair q
}

pair()
{
	ip link add "$1"0 netns ns0 mtu $HOST_MTU type veth \
		peer name "$1"1 netns ns1 mtu $HOST_MTU &&
		on 0 ip link set "$1"0 up && on 1 ip link set "$1"1 up
}

# make_KIND N - v0 or v1
make_veth()
{
	on "$1" ip link set "p$1" down && on "$1" ip link set "p$1" name "v$1"
}

make_vlan()
{
	on "$1" ip link add link "p$1" name "v$1" type vlan id 5
}

make_bridge()
{
	on "$1" ip link add "v$1" type bridge &&
		on "$1" ip link set "p$1" master "v$1"
}

make_bond()
{
	local port

	on "$1" ip link add "v$1" type bond mode active-backup miimon 10 ||
		return 1
	for port in p q; do
		on "$1" ip link set "$port$1" down &&
			on "$1" ip link set "$port$1" master "v$1" || return 1
	done
	on "$1" ip link set "v$1" type bond active_slave "p$1"
}

make_macvlan()
{
	on "$1" ip link add link "p$1" name "v$1" type macvlan mode bridge
}

# the wire is a program
make_tun()
{
	[ "$1" = 0 ] || return 0
	pump "$kind"
}

make_tap()
{
	make_tun "$1"
}

pump()
{
	rm -f /tmp/pump
	/usr/bin/python3 "$(dirname "$0")/netdevs_tun.py" "$1" >/tmp/pump 2>&1 &
	echo $! >/tmp/pump.pid
	wait_for 10 grep -q ready /tmp/pump || { cat /tmp/pump; return 1; }
}

addresses()
{
	on "$1" ip addr add "10.0.0.$(($1 + 1))/24" dev "v$1" &&
		on "$1" ip addr add "fd00::$(($1 + 1))/64" dev "v$1" nodad &&
		on "$1" ip link set "v$1" mtu $HOST_MTU &&
		on "$1" ip link set "v$1" addrgenmode eui64 &&
		on "$1" ip link set "v$1" up &&
		on "$1" ip link set lo up
}

is_active()
{
	grep -q ACTIVE "$SYS/$1/ports/1/state"
}

# link N - its device, which has a GID of each of $families
link()
{
	local family

	on "$1" rdma link add "h$1" type mrsoft netdev "v$1" || return 1
	[ -z "${MRSOFT_PATH:-}" ] || echo "$MRSOFT_PATH" >"$SYS/h$1/path"
	for family in $families; do
		wait_for 10 host_gid "$1" "$family" || return 1
	done
	wait_for 10 is_active "h$1"
}

# gone N - its device
gone()
{
	[ ! -e "$SYS/h$1" ]
}

# ways N - the namespace of host N forgets all netdevs of the kind before
start_kind()
{
	families=$2
	namespaces && both "make_$kind" && both addresses && both link
}

unlink_both()
{
	both del_rdma && both gone
}

del_rdma()
{
	timeout 30 rdma link del "h$1"
}

end_kind()
{
	[ ! -e /tmp/pump.pid ] || kill "$(cat /tmp/pump.pid)"
	rm -f /tmp/pump.pid
	ip netns del ns0
	ip netns del ns1
}

# packets N NETDEV - that have come there
packets()
{
	on "$1" cat "/sys/class/net/$2/statistics/rx_packets"
}

# travels NETDEV LEAST CMD... - CMD ends well, and at least LEAST packets came to
# each host by that netdev (%: the host)
travels()
{
	local netdev=$1 least=$2 n before=() after

	shift 2
	for n in 0 1; do
		before[n]=$(packets $n "${netdev/\%/$n}")
	done
	"$@" || { host_stats 0; host_stats 1; return 1; }
	for n in 0 1; do
		after=$(packets $n "${netdev/\%/$n}")
		echo "host $n: $((after - before[n])) packets, expected $least"
		[ $((after - before[n])) -ge "$least" ] || return 1
	done
}

# cases_traffic NAME NETDEV - of $families; messages have several packets where they
# can
cases_traffic()
{
	local family name

	for family in $families; do
		name=$1.$family
		FAMILY=$family t_run "$name.rc" 60 travels "$2" 50 \
			pingpong 0 rc -n 10 -s 20001 -m 4096
		# one way to each address is enough
		[ "$family" != ll ] || [ "$families" = ll ] || continue
		FAMILY=$family t_run "$name.uc" 60 travels "$2" 200 \
			pingpong 1 uc -n 10 -s 20001
		FAMILY=$family t_run "$name.ud" 60 travels "$2" 20 \
			pingpong 1 ud -n 20 -s 2000
	done
}

# a kind of netdev between two hosts
kind()
{
	kind=$1
	t_run "$kind.start" 40 start_kind "$1" "${3:-4 6 ll}" || {
		rdma link
		unlink_both
		end_kind
		return
	}
	families=${3:-4 6 ll}
	cases_traffic "$kind" "$2"
	t_run "$kind.end" 40 unlink_both
	end_kind
}

kinds()
{
	kind veth v%
	# the core gives the addresses of a VLAN to the device below it
	kind vlan v% ll
	kind bridge p%
	kind bond p%
	kind macvlan p%
	kind tap v%
	kind tun v% "4 6"
}

t_plan_start netdevs
t_run load 60 load_mrsoft
kinds
t_run unload 40 unload_mrsoft
t_done
