#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# mcast.sh - multicast groups: on one host by every path, and between two
#
# rdma_rxe of 6.1 receives in the initial network namespace only, so that one of
# the hosts is that namespace there.
#
# machines: uml-plain uml-kasan
# timeout: 650

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts.sh"

# --- one host -----------------------------------------------------------------

one_host()
{
	local path dev

	# shellcheck disable=SC2119
	load_mrsoft
	make_dummy mc0 10.77.0.1/24
	make_dummy mc1 10.77.1.1/24
	add_link mcdev0 mc0
	add_link mcdev1 mc1
	export MRSOFT_DEV=mcdev0 MRSOFT_DEV2=mcdev1
	for path in auto local wire; do
		for dev in mcdev0 mcdev1; do
			echo $path >/sys/class/infiniband/$dev/path
		done
		t_ktap $path 300 "$MRSOFT_BIN/mcast"
	done
	t_run link-del 30 del_link mcdev0
	t_run link-del-2 30 del_link mcdev1
	ip link del mc0
	ip link del mc1
}

# --- two hosts ----------------------------------------------------------------

GROUP4=239.129.2.3
GROUP6=ff0e::4d52:8001:203
peer=$MRSOFT_BIN/mcast_peer
out=$(mktemp -d)

# start N NAME CMD... - in the background; its output is $out/NAME
start()
{
	local n=$1 name=$2

	shift 2
	# what another said before
	rm -f "$out/$name"
	on "$n" timeout 300 stdbuf -oL "$@" >"$out/$name" 2>&1 &
}

says()
{
	grep -q "$2" "$out/$1"
}

# join N NETDEV GROUP - as a program on host N
join()
{
	start "$1" "join$3" "$peer" join "$2" "$3" 0
	wait_for 20 says "join$3" ready
}

# release - what holds or has joined a group ends; each has said its PID
release()
{
	local file

	for file in "$out"/hold* "$out"/join*; do
		[ -e "$file" ] || continue
		kill "$(sed -n 's/ready //p' "$file")"
		rm -f "$file"
	done
}

# rdma_rxe leaves it to others to make its host a member
join_for_rxe()
{
	local n

	for n in 0 1; do
		[ "$([ $n = 0 ] && echo "$HOST0_TYPE" || echo "$HOST1_TYPE")" = rxe ] ||
			continue
		join $n v$n $GROUP4 && join $n v$n $GROUP6 || return 1
	done
}

source_of() # N GROUP
{
	case $2 in
	*:*) echo "fd00::$(($1 + 1))" ;;
	*) echo "10.0.0.$(($1 + 1))" ;;
	esac
}

send() # N GROUP COUNT [SOURCE]
{
	on "$1" timeout 60 "$peer" send "h$1" "$2" "$3" "${4:-$(source_of "$1" "$2")}"
}

# to SENDER GROUP RECEIVER... - each receiver hears all, once
to()
{
	local sender=$1 group=$2 n rc=0 pids=()

	shift 2
	for n in "$@"; do
		start "$n" "recv$n" "$peer" recv "h$n" "$group" 20
		pids+=($!)
		wait_for 20 says "recv$n" ready || rc=1
	done
	[ $rc -ne 0 ] || send "$sender" "$group" 20 || rc=1
	for n in "${pids[@]}"; do
		wait "$n" || rc=1
	done
	[ $rc -eq 0 ] || { cat "$out"/recv*; host_stats 0; host_stats 1; }
	return $rc
}

# what a device on the local path sends does not leave the host
stays()
{
	local pid rc=0

	start 1 recv1 "$peer" recv h1 $GROUP4 5
	pid=$!
	wait_for 20 says recv1 ready || rc=1
	echo local >/sys/class/infiniband/h0/path
	send 0 $GROUP4 5 || rc=1
	echo auto >/sys/class/infiniband/h0/path
	send 0 $GROUP4 5 || rc=1
	wait $pid || rc=1
	return $rc
}

# vlan GROUP SOURCE [later] - between VLANs above the netdevs, whose GIDs belong to
# the devices: an attached QP hears what comes on the VLAN, though nobody else has
# joined there; later: the VLAN comes after the QP
vlan()
{
	local pid rc=0

	host_vlan 0 || return 1
	[ "${3:-}" = later ] || host_vlan 1 || return 1
	start 1 recv1 "$peer" recv h1 "$1" 20
	pid=$!
	wait_for 20 says recv1 ready || rc=1
	[ "${3:-}" != later ] || host_vlan 1 || rc=1
	send 0 "$1" 20 "$2" || rc=1
	wait $pid || rc=1
	[ $rc -eq 0 ] || { cat "$out/recv1"; host_stats 0; host_stats 1; }
	no_groups 1 v1.7 || rc=1
	on 0 ip link del v0.7
	on 1 ip link del v1.7
	return $rc
}

# the VLAN goes while QPs are attached, which keep the port's groups
vlan_del_attached()
{
	host_vlan 1 && attached 1 || return 1
	! no_groups 1 v1.7 && timeout 20 ip -n ns1 link del v1.7 &&
		! no_groups 1 || return 1
	release
	wait_for 60 no_groups 1
}

# mckey SENDER RECEIVER - joins of rdma_cm's and ours together
mckey_pair()
{
	local sender=$1 receiver=$2 pid rc=0

	start "$receiver" mckey_r mckey -m 239.77.1.2 -C 10 -S 512 \
		-b "10.0.0.$((receiver + 1))"
	pid=$!
	wait_for 20 says mckey_r joined || rc=1
	sleep 0.5
	start "$sender" mckey_s mckey -s -m 239.77.1.2 -C 10 -S 512 \
		-b "10.0.0.$((sender + 1))"
	wait $! || rc=1
	wait $pid || rc=1
	says mckey_r 'return status 0' && says mckey_s 'return status 0' || rc=1
	[ $rc -eq 0 ] || { tail "$out"/mckey_*; host_stats 0; host_stats 1; }
	return $rc
}

# no_groups N [NETDEV] - the netdev has no group of ours
no_groups()
{
	! on "$1" ip maddr show dev "${2:-v$1}" |
		grep -E '01:00:5e:01:02|33:33:80:01:02|239.129.2|ff0e:'
}

# attached N - a process on it with groups of both kinds, until it is killed
attached()
{
	start "$1" "hold4$1" "$peer" hold "h$1" $GROUP4 5
	wait_for 20 says "hold4$1" ready || return 1
	start "$1" "hold6$1" "$peer" hold "h$1" $GROUP6 5
	wait_for 20 says "hold6$1" ready || return 1
	! no_groups "$1"
}

killed_attached()
{
	attached 0 || return 1
	release
	wait_for 60 no_groups 0
}

link_del_attached()
{
	attached 0 || return 1
	del_link h0 || return 1
	no_groups 0 || return 1
	release
	host_link 0 mrsoft && to 1 $GROUP4 0
}

# the groups stay behind when the netdev goes to another namespace
moved_attached()
{
	attached 0 || return 1
	on 0 ip link set v0 netns ns1 || return 1
	wait_for 10 gone h0 || return 1
	! on 1 ip maddr show dev v0 | grep -E '01:00:5e:01:02|33:33:80:01:02' ||
		return 1
	release
	on 1 ip link set v0 netns ns0 && host_netdev_again 0 &&
		host_link 0 mrsoft && to 1 $GROUP4 0
}

host_netdev_again()
{
	on 0 ip addr add 10.0.0.1/24 dev v0 &&
		on 0 ip addr add fd00::1/64 dev v0 nodad &&
		on 0 ip link set v0 up
}

gone()
{
	[ ! -e "/sys/class/infiniband/$1" ]
}

netdev_del_attached()
{
	attached 0 && attached 1 || return 1
	on 0 timeout 20 ip link del v0 || return 1
	wait_for 10 gone h0 && wait_for 10 gone h1 || return 1
	release
}

directions()
{
	local group

	for group in $GROUP4 $GROUP6; do
		t_run "0_to_1.$group" 80 to 0 "$group" 1
		t_run "1_to_0.$group" 80 to 1 "$group" 0
		t_run "0_to_all.$group" 80 to 0 "$group" 0 1
		t_run "1_to_all.$group" 80 to 1 "$group" 0 1
	done
	# mckey on rdma_rxe sends nothing, to another rdma_rxe neither
	[ "$HOST0_TYPE" = rxe ] || t_run mckey.0_to_1 80 mckey_pair 0 1
	t_run mckey.1_to_0 80 mckey_pair 1 0
}

two_hosts()
{
	local path

	t_run start 60 hosts_start
	T_PREFIX=mrsoft.
	directions
	echo wire >/sys/class/infiniband/h0/path
	t_run 0_to_all.path_wire 80 to 0 $GROUP4 0 1
	echo auto >/sys/class/infiniband/h0/path
	t_run path_local_stays 80 stays
	t_run vlan 80 vlan $GROUP4 10.0.7.1
	t_run vlan.6 80 vlan $GROUP6 fd07::1
	t_run vlan_later 80 vlan $GROUP4 10.0.7.1 later
	t_run vlan_later.6 80 vlan $GROUP6 fd07::1 later
	t_run vlan_del_attached 120 vlan_del_attached
	t_run killed_attached 120 killed_attached
	t_run link_del_attached 80 link_del_attached
	t_run moved_attached 80 moved_attached
	t_run netdev_del_attached 80 netdev_del_attached
	T_PREFIX=
	ip netns del ns0
	ip netns del ns1
}

with_rxe()
{
	HOST0_TYPE=rxe
	# shellcheck disable=SC2034 # for hosts.sh
	case $MRSOFT_MACHINE in
	vm-6.1) HOST0_INIT=1 ;;
	esac
	t_run start_rxe 60 hosts_start
	t_run join_rxe 20 join_for_rxe
	T_PREFIX=rxe.
	directions
	# shellcheck disable=SC2034 # for ktap.sh
	T_PREFIX=
	release
	t_run end 60 hosts_end
	t_run unload_rxe 40 wait_for 20 rmmod rdma_rxe
}

t_plan_start mcast
one_host
two_hosts
# the same groups once more; what is KASAN's is seen without
[ "$MRSOFT_MACHINE" = uml-kasan ] || with_rxe
# UML's KASAN does not clear the shadow of a module that goes
[ "$MRSOFT_MACHINE" = uml-kasan ] || t_run unload 40 unload_mrsoft
t_done
