#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# link.sh - a device from rdma link add to its end, whoever ends it
#
#        v0 ==== v1      d0 (dummy)   b0 (bridge)   o0 (bond)   t0 (tun)   lo
#        |
#        v0.5 (vlan)
#
# machines: uml-plain uml-kasan uml-lockdep vm-6.1
# fast: yes
# timeout: 400

# counters of loops are not read
# shellcheck disable=SC2034
# shellcheck source-path=SCRIPTDIR disable=SC2119
. "$(dirname "$0")/../lib/guest.sh"

SYS=/sys/class/infiniband

# for_all FUNCTION ARGUMENT... - call it with each
for_all()
{
	local fn=$1

	shift
	while [ $# -gt 0 ]; do
		"$fn" "$1"
		shift
	done
}

gone()
{
	[ ! -e "$SYS/$1" ]
}

# log_says WORDS - since the last clear_log
clear_log()
{
	dmesg | wc -l >/tmp/log-start
}

log_says()
{
	dmesg | tail -n +"$(($(cat /tmp/log-start) + 1))" | grep -F -- "$*"
}

state_of()
{
	cut -d' ' -f2 "$SYS/$1/ports/1/state"
}

is_state()
{
	[ "$(state_of "$1")" = "$2" ]
}

# devinfo DEVICE FIELD
devinfo()
{
	ibv_devinfo -v -d "$1" | sed -n "s/^[[:space:]]*$2:[[:space:]]*//p" |
		head -n 1
}

is_devinfo()
{
	local got

	got=$(devinfo "$1" "$2")
	echo "$2: $got, expected $3"
	[ "$got" = "$3" ]
}

# pingpong DEVICE GID - a client and a server, both on DEVICE
pingpong()
{
	local pid port=$((20000 + RANDOM % 10000))

	ibv_rc_pingpong -d "$1" -g "$2" -p $port -n 50 -e &
	pid=$!
	wait_for 10 listener_up $port || return 1
	timeout 20 ibv_rc_pingpong -d "$1" -g "$2" -p $port -n 50 -e localhost ||
		return 1
	wait $pid
}

# hold_open DEVICE - a process with a context, PD, CQ, QP and MR, that waits
hold_open()
{
	local port=$((30000 + RANDOM % 10000))

	ibv_rc_pingpong -d "$1" -g 0 -p $port >/tmp/holder.log 2>&1 &
	holder=$!
	wait_for 10 listener_up $port
}

holder_lives()
{
	kill -0 "$holder"
}

end_holder()
{
	kill "$holder" 2>/dev/null
	wait "$holder" 2>/dev/null
	true
}

make_netdevs()
{
	local module

	for module in 8021q bridge bonding tun ipip ip_gre sit; do
		modprobe $module 2>/dev/null
	done
	ip link add v0 type veth peer name v1 &&
		ip addr add 10.0.0.1/24 dev v0 &&
		ip link set v0 up && ip link set v1 up &&
		make_dummy d0 10.1.0.1/24 &&
		ip link add link v0 name v0.5 type vlan id 5 &&
		ip addr add 10.5.0.1/24 dev v0.5 && ip link set v0.5 up &&
		ip link add b0 type bridge &&
		ip addr add 10.2.0.1/24 dev b0 && ip link set b0 up &&
		ip link add o0 type bond mode active-backup &&
		ip link add d1 type dummy && ip link set d1 master o0 &&
		ip addr add 10.3.0.1/24 dev o0 && ip link set o0 up &&
		ip tuntap add t0 mode tun &&
		ip addr add 10.4.0.1/24 dev t0 && ip link set t0 up
}

# one device on one kind of netdev: made, described, removed
kind()
{
	local netdev=$1 guid

	rdma link add m0 type mrsoft netdev "$netdev" || return 1
	rdma link show m0/1 | grep -w "netdev $netdev" || return 1
	guid=$(cat $SYS/m0/node_guid)
	echo "guid $guid"
	[ "$guid" != 0000:0000:0000:0000 ] || return 1
	[ "$(cat $SYS/m0/sys_image_guid)" = "$guid" ] || return 1
	is_devinfo m0 link_layer Ethernet || return 1
	ibv_devices | grep -w m0 || return 1
	del_link m0 && gone m0
}

# traffic over a device on NETDEV with ADDRESS.  A device on a VLAN has its default
# GID only: the core gives the addresses of a VLAN to the device below it.
kind_traffic()
{
	local gid=0 rc=0

	add_link m0 "$1" || return 1
	if [ "$2" != default ]; then
		gid=$(gid_index m0 "$2") || rc=1
	fi
	echo "gid index $gid"
	pingpong m0 "$gid" || rc=1
	del_link m0 || rc=1
	return $rc
}

several()
{
	rdma link add m0 type mrsoft netdev v0 &&
		rdma link add m1 type mrsoft netdev v1 &&
		rdma link add m2 type mrsoft netdev v0.5 &&
		rdma link add m3 type mrsoft netdev d0 || return 1
	rdma link
	[ "$(cat $SYS/m?/node_guid | sort -u | wc -l)" -eq 4 ] || return 1
	for_all del_link m0 m1 m2 m3
	[ "$(ls $SYS)" = "" ]
}

# refused WORDS-OF-ERRNO WORDS-OF-LOG NAME NETDEV
refused()
{
	local out

	clear_log
	out=$(rdma link add "$3" type mrsoft netdev "$4" 2>&1) && return 1
	echo "$out"
	grep -q "$1" <<<"$out" || return 1
	[ -z "$2" ] || log_says "$2"
}

refusals()
{
	add_link m0 v0 || return 1
	t_run refused-netdev-used 60 refused 'File exists' \
		'v0 has an mrsoft device already' m1 v0
	t_run refused-name-used 60 refused 'File exists' \
		'an RDMA device of this name already' m0 d0
	t_run refused-no-netdev 60 refused 'No such device' '' m1 nonesuch
	if ip link add x0 type sit local 10.0.0.1 remote 10.0.0.2 2>/dev/null ||
	   ip link add x0 type ipip local 10.0.0.1 remote 10.0.0.2 2>/dev/null
	then
		t_run refused-no-ethernet 60 refused 'Invalid argument' \
			'x0 is neither Ethernet' m1 x0
		ip link del x0
	else
		t_skip refused-no-ethernet "this kernel has no IP tunnel"
	fi
	t_run next-add-works 60 add_link m1 d0
	for_all del_link m0 m1
}

port_follows_netdev()
{
	ip link set v0 down
	wait_for 5 is_state m0 DOWN || return 1
	ip link set v0 up
	wait_for 5 is_state m0 ACTIVE || return 1
	ip link set v1 down
	wait_for 5 is_state m0 DOWN || return 1
	ip link set v1 up
	wait_for 5 is_state m0 ACTIVE
}

# each change of the port is told once
port_events()
{
	local pid

	stdbuf -oL ibv_asyncwatch -d m0 >/tmp/events 2>&1 &
	pid=$!
	sleep 1
	ip link set v0 down
	sleep 0.5
	ip link set v0 up
	sleep 0.5
	# carrier and administrative state change: still one change
	ip link set v1 down
	sleep 0.5
	ip link set v0 down
	sleep 0.5
	ip link set v1 up
	ip link set v0 up
	sleep 1
	kill $pid
	cat /tmp/events
	[ "$(grep -c PORT_ACTIVE /tmp/events)" -eq 2 ] &&
		[ "$(grep -c PORT_ERR /tmp/events)" -eq 2 ]
}

mtu_follows_netdev()
{
	ip link set v0 mtu 9000
	is_devinfo m0 active_mtu '4096 (5)' || return 1
	ip link set v0 mtu 600
	is_devinfo m0 active_mtu '512 (2)' || return 1
	ip link set v0 mtu 1500
	is_devinfo m0 active_mtu '1024 (3)' || return 1
	# 1024 bytes and the headers of a WRITE with immediate over IPv6
	ip link set v0 mtu 1108
	is_devinfo m0 active_mtu '1024 (3)' || return 1
	ip link set v0 mtu 1107
	is_devinfo m0 active_mtu '512 (2)' || return 1
	ip link set v0 mtu 1500
}

# has_gid DEVICE GID - among the first ten: the table has 1024 entries, and a look at
# each takes long in a slow machine
has_gid()
{
	grep -qx "$2" "$SYS/$1"/ports/1/gids/[0-9]
}

no_gid()
{
	! has_gid "$1" "$2"
}

# ::ffff:10.9.0.1, which nothing else here has
GID_9=0000:0000:0000:0000:0000:ffff:0a09:0001

gid_comes_and_goes()
{
	local rc=0

	ip addr add 10.9.0.1/24 dev v0 || return 1
	wait_for 5 has_gid "$1" $GID_9 || rc=1
	ip addr del 10.9.0.1/24 dev v0
	wait_for 5 no_gid "$1" $GID_9 || rc=1
	return $rc
}

gids_follow_netdev()
{
	gid_comes_and_goes m0 || return 1
	# the addresses of a VLAN above are the port's as well
	gid_index m0 10.5.0.1
}

# no word in the log, however often a port without a speed is looked at
speed_is_quiet()
{
	local i

	clear_log
	rdma link add m1 type mrsoft netdev d0 || return 1
	for i in 1 2 3; do
		cat $SYS/m1/ports/1/rate
	done
	del_link m1
	! log_says speed
}

statistics()
{
	local before after

	rdma statistic show link m0/1 | grep -w refused_key_unknown || return 1
	before=$(cat $SYS/m0/ports/1/hw_counters/tx_msgs)
	pingpong m0 "$(gid_index m0 10.0.0.1)" || return 1
	sleep 0.1
	after=$(cat $SYS/m0/ports/1/hw_counters/tx_msgs)
	echo "tx_msgs $before $after"
	[ $((after - before)) -eq 100 ]
}

count_of()
{
	rdma -j resource show | python3 -c '
import json, sys
for dev in json.load(sys.stdin):
    if dev["ifname"] == sys.argv[1]:
        print(" ".join("%s=%d" % (k, dev[k]) for k in
              ("pd", "cq", "qp", "mr", "srq") if k in dev))' "$1"
}

resources()
{
	local idle busy rc=0

	idle=$(count_of m0)
	hold_open m0 || return 1
	busy=$(count_of m0)
	echo "idle $idle, busy $busy"
	[ "$idle" != "$busy" ] || rc=1
	for kind in pd cq qp mr; do
		rdma -dd resource show $kind
		rdma -dd resource show $kind | grep -w "pid $holder" || rc=1
	done
	rdma -dd resource show qp | grep -w 'drv_path none' || rc=1
	rdma -dd resource show mr | grep -w 'drv_state valid' || rc=1
	end_holder
	[ "$(count_of m0)" = "$idle" ] || rc=1
	return $rc
}

# --- what stands above a device in sysfs ----------------------------------------

# netdevs_of DEVICE - as ibdev2netdev and rdma-core's tests find them
netdevs_of()
{
	ls "$SYS/$1/device/net"
}

# parent_of DEVICE - its folder
parent_of()
{
	readlink -f "$SYS/$1/device"
}

# the netdev is there, and it is that one
shows()
{
	[ "$(netdevs_of "$1")" = "$2" ] &&
		[ "$(readlink -f "$SYS/$1/device/net/$2")" = \
			"$(readlink -f "/sys/class/net/$2")" ]
}

# no provider library for hardware finds anything that it knows
parent_is_plain()
{
	local dir file

	dir=$(parent_of m0) || return 1
	echo "$dir"
	[[ $dir != */pci* ]] || return 1
	for file in modalias subsystem driver vendor device; do
		[ ! -e "$dir/$file" ] || return 1
	done
	# and all that belongs to the device stands in it
	[ -e "$dir/infiniband/m0" ] &&
		ls "$dir"/infiniband_verbs/uverbs* "$dir"/infiniband_mad/umad*
}

# of several devices each has its own
parents_differ()
{
	local rc=0

	rdma link add m1 type mrsoft netdev d0 &&
		rdma link add m2 type mrsoft netdev v1 || return 1
	shows m0 v0 && shows m1 d0 && shows m2 v1 || rc=1
	[ "$(for_all parent_of m0 m1 m2 | sort -u | wc -l)" -eq 3 ] || rc=1
	for_all del_link m1 m2
	shows m0 v0 || rc=1
	return $rc
}

# one name goes to another netdev that has a device
parent_follows_names()
{
	local netdev rc=0

	make_dummy x0 && make_dummy x1 && add_link m1 x0 && add_link m2 x1 ||
		return 1
	for netdev in x0 x1; do
		ip link set $netdev down
	done
	ip link set x0 name x2 && shows m1 x2 && shows m2 x1 || rc=1
	ip link set x1 name x0 && shows m2 x0 && shows m1 x2 || rc=1
	ip link set x2 name x1 && shows m1 x1 && shows m2 x0 || rc=1
	# the device of another name: the folder is not called after it
	rdma dev set m1 name m3 && shows m3 x1 || rc=1
	add_link m1 d0 && shows m1 d0 && shows m3 x1 || rc=1
	for_all del_link m1 m2 m3
	ip link del x0
	ip link del x1
	return $rc
}

# with the device: when it is deleted, its netdev is, or moves
parent_goes()
{
	local dir rc=0

	make_dummy x0 && add_link m1 x0 || return 1
	dir=$(parent_of m1)
	del_link m1 && [ ! -e "$dir" ] || rc=1
	add_link m1 x0 || rc=1
	dir=$(parent_of m1)
	# somebody reads there meanwhile
	exec 5<"$dir/uevent" 6<"$dir/net"
	ip netns add ns0 && ip link set x0 netns ns0 && wait_for 5 gone m1 &&
		wait_for 5 test ! -e "$dir" || rc=1
	cat <&5 2>/dev/null && rc=1
	exec 5<&- 6<&-
	ip netns del ns0
	make_dummy x0 && add_link m1 x0 || rc=1
	dir=$(parent_of m1)
	ip link del x0
	wait_for 5 gone m1 && wait_for 5 test ! -e "$dir" || rc=1
	# a link that is refused leaves none behind
	rdma link add m0 type mrsoft netdev d0 2>/dev/null && rc=1
	rdma link add m1 type mrsoft netdev v0 2>/dev/null && rc=1
	[ "$(echo /sys/devices/mrsoft.*)" = "$(parent_of m0)" ] || rc=1
	return $rc
}

# in another network namespace the device has the same parent, the netdev none
parent_in_namespace()
{
	local rc=0

	ip netns add ns0 || return 1
	ip netns exec ns0 ls $SYS/m0/device/net || rc=1
	! ip netns exec ns0 test -e $SYS/m0/device/net/v0 || rc=1
	ip netns del ns0
	return $rc
}

# names, readers, removal of all kinds at once
parent_races()
{
	local readers i rounds=10

	# an emulated CPU takes ten seconds for each
	[[ $MRSOFT_MACHINE != vm-* ]] || rounds=3
	for i in $(seq $rounds); do
		# whatever its name is when it is deleted
		make_dummy x0 && ip link set x0 group 77 &&
			rdma link add m1 type mrsoft netdev x0 || return 1
		(while :; do
			cat $SYS/m1/device/uevent $SYS/m1/device/net/*/ifindex
			ls -l $SYS/m1/device/ $SYS/m1/device/net
		done >/dev/null 2>&1) &
		readers=$!
		(for _ in 1 2 3 4 5 6; do
			ip link set x0 down
			ip link set x0 name x1
			ip link set x1 name x0
		done) 2>/dev/null &
		sleep 0.0$((RANDOM % 10))
		case $((i % 3)) in
		0) del_link m1 ;;
		1) ip link del group 77 ;;
		2) rdma link del m1 & ip link del group 77 ;;
		esac 2>/dev/null
		wait_for 10 gone m1 || { kill $readers; return 1; }
		kill $readers
		# for the renaming too
		wait 2>/dev/null
		ip link del group 77 2>/dev/null
		[ "$(echo /sys/devices/mrsoft.*)" = "$(parent_of m0)" ] || return 1
	done
}

parents_end()
{
	[ "$(echo /sys/devices/mrsoft.*)" = "/sys/devices/mrsoft.*" ]
}

# the process that has the device open: told, not waited for
del_while_open()
{
	local watcher rc=0

	add_link m0 v0 && hold_open m0 || return 1
	stdbuf -oL ibv_asyncwatch -d m0 >/tmp/events 2>&1 &
	watcher=$!
	sleep 1
	timeout 10 rdma link del m0 || rc=1
	gone m0 || rc=1
	holder_lives || rc=1
	sleep 0.5
	cat /tmp/events
	grep -qi 'fatal' /tmp/events || rc=1
	kill $watcher 2>/dev/null
	end_holder
	return $rc
}

# a process whose device is gone gets EIO
eio_after_del()
{
	local rc

	add_link m0 v0 || return 1
	python3 - <<-'END'
	import os, subprocess, sys
	sys.path[:] = [p for p in sys.path if p != ""]
	from pyverbs.device import Context
	from pyverbs.pd import PD
	from pyverbs.pyverbs_error import PyverbsRDMAError
	import errno
	ctx = Context(name="m0")
	subprocess.check_call(["timeout", "10", "rdma", "link", "del", "m0"])
	try:
	    PD(ctx)
	except PyverbsRDMAError as e:
	    print(e)
	    os._exit(0 if e.error_code == errno.EIO else 1)
	os._exit(2)
	END
	rc=$?
	gone m0 || del_link m0
	return $rc
}

netdev_del_while_open()
{
	local rc=0

	make_dummy x0 10.8.0.1/24 && add_link m0 x0 && hold_open m0 || return 1
	clear_log
	timeout 10 ip link del x0 || rc=1
	wait_for 5 gone m0 || rc=1
	holder_lives || rc=1
	! log_says 'waiting for' || rc=1
	end_holder
	return $rc
}

netdev_leaves_namespace()
{
	local rc=0

	make_dummy x0 10.8.0.1/24 && add_link m0 x0 && ip netns add ns0 ||
		return 1
	ip link set x0 netns ns0 || rc=1
	wait_for 5 gone m0 || rc=1
	ip netns del ns0
	return $rc
}

rmmod_while_open()
{
	local rc=0

	add_link m0 v0 && add_link m1 d0 && hold_open m0 || return 1
	unload_mrsoft || rc=1
	gone m0 && gone m1 || rc=1
	holder_lives || rc=1
	end_holder
	load_mrsoft || rc=1
	return $rc
}

add_del_loop()
{

	for _ in $(seq 20); do
		rdma link add m0 type mrsoft netdev d0 &&
			rdma link del m0 || return 1
	done
}

# add, delete and the end of the netdev, all at once
race()
{

	for _ in $(seq 10); do
		ip link add x0 type dummy
		ip link set x0 up
		rdma link add m0 type mrsoft netdev x0 &
		ip link del x0 &
		rdma link del m0 &
		wait
		wait_for 10 gone m0 || return 1
	done
	true
}

# three ways to end one device at the same time
race_unload()
{

	for _ in 1 2 3 4 5; do
		load_mrsoft && make_dummy x0 && rdma link add m0 type mrsoft \
			netdev x0 || return 1
		rdma link del m0 &
		ip link del x0 &
		unload_mrsoft || return 1
		wait
		gone m0 || return 1
	done
	load_mrsoft
}

# what used it a moment ago may still hold the module
unload_rxe()
{
	wait_for 10 timeout 30 rmmod rdma_rxe
}

rxe_up()
{
	modprobe rdma_rxe && load_mrsoft || return 1
	# the second finds the UDP port taken: ours works without the wire
	add_link r0 v0 rxe && add_link m0 v0 || return 1
	rdma link
	[ "$(cat $SYS/m0/node_guid)" != "$(cat $SYS/r0/node_guid)" ]
}

rxe_events()
{
	ip link set v0 mtu 1400
	ip link set v0 down
	wait_for 5 is_state m0 DOWN || return 1
	wait_for 5 is_state r0 DOWN || return 1
	ip link set v0 mtu 1500
	ip link set v0 up
	wait_for 5 is_state m0 ACTIVE || return 1
	wait_for 5 is_state r0 ACTIVE || return 1
	gid_comes_and_goes m0 || return 1
	pingpong m0 "$(gid_index m0 10.0.0.1)"
}

mrsoft_leaves_rxe()
{
	rxe_up || return 1
	rxe_events || return 1
	unload_mrsoft || return 1
	gone m0 || return 1
	# rdma_rxe has kept its own
	is_state r0 ACTIVE || return 1
	ip link set v0 down
	ip link set v0 up
	rdma link del r0 && unload_rxe
}

# rdma_rxe's exit takes every device of its driver id along, ours too
rxe_leaves_mrsoft()
{
	rxe_up || return 1
	rxe_events || return 1
	# under lockdep a socket of a link is a user of rdma_rxe
	[ "$MRSOFT_MACHINE" != uml-lockdep ] || rdma link del r0
	unload_rxe || return 1
	gone r0 && gone m0 || return 1
	# and we go on
	add_link m0 v0 && pingpong m0 "$(gid_index m0 10.0.0.1)" || return 1
	unload_mrsoft && gone m0 && load_mrsoft
}

netdev_del_with_rxe()
{
	make_dummy x0 10.8.0.1/24 && modprobe rdma_rxe && load_mrsoft &&
		add_link r0 x0 rxe && add_link m0 x0 || return 1
	timeout 20 ip link del x0 || return 1
	wait_for 10 gone m0 && wait_for 10 gone r0 || return 1
	unload_rxe
}

t_plan_start link
t_run alias 60 modinfo -F alias "$MRSOFT_KO"
t_run load 60 load_mrsoft
t_run netdevs 60 make_netdevs
for netdev in v0 d0 v0.5 b0 o0 t0 lo; do
	t_run "add-$netdev" 60 kind $netdev
done
for item in v0:10.0.0.1 d0:10.1.0.1 v0.5:default b0:10.2.0.1 o0:10.3.0.1 \
	lo:127.0.0.1; do
	t_run "traffic-${item%:*}" 120 kind_traffic "${item%:*}" "${item#*:}"
done
t_run several-devices 60 several
refusals

t_run add-again 60 add_link m0 v0
t_run port-follows-netdev 60 port_follows_netdev
t_run port-events 60 port_events
t_run mtu-follows-netdev 60 mtu_follows_netdev
t_run gids-follow-netdev 60 gids_follow_netdev
t_run speed-is-quiet 60 speed_is_quiet
t_run statistics 120 statistics
t_run parent-shows 20 shows m0 v0
t_run parent-is-plain 20 parent_is_plain
t_run parents-differ 60 parents_differ
t_run parent-follows-names 60 parent_follows_names
t_run parent-goes 60 parent_goes
t_run parent-in-namespace 30 parent_in_namespace
t_run parent-races 150 parent_races
t_run resources 60 resources
t_run del 60 del_link m0

t_run del-while-open 80 del_while_open
t_run eio-after-del 80 eio_after_del
t_run netdev-del-while-open 80 netdev_del_while_open
t_run netdev-leaves-namespace 80 netdev_leaves_namespace
t_run rmmod-while-open 120 rmmod_while_open
t_run add-del-loop 120 add_del_loop
t_run race 120 race
t_run race-unload 120 race_unload

t_run mrsoft-leaves-rxe 180 mrsoft_leaves_rxe
t_run rxe-leaves-mrsoft 180 rxe_leaves_mrsoft
t_run netdev-del-with-rxe 120 netdev_del_with_rxe
t_run unload 60 unload_mrsoft
t_run parents-end 10 parents_end
t_done
