#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# wire - two hosts: the distribution's tools between two mrsoft devices
#
# Hosts with the kernel of a virtual machine are in interop.sh.
#
# machines: uml-plain
# fast: no
# timeout: 500

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts-cases.sh"

# how the path is chosen is seen and set in sysfs
path_attribute()
{
	local file=/sys/class/infiniband/h0/path

	[ "$(cat $file)" = "${MRSOFT_PATH:-auto}" ] || return 1
	! echo nonsense >$file 2>/dev/null || return 1
	echo local >$file && [ "$(cat $file)" = local ] || return 1
	echo auto >$file && [ "$(cat $file)" = auto ] || return 1
	[ "$(cat /sys/class/infiniband/h0/wire)" = on ]
}

# a QP on the wire says so
drv_path()
{
	local pid rc=0

	DEV=h1 GID=$(host_gid 1) on 1 timeout 30 \
		ibv_rc_pingpong -d h1 -g "$(host_gid 1)" -p 19999 -n 1000000 &
	pid=$!
	wait_for 10 listener_on 1 19999 || return 1
	timeout 30 ip netns exec ns0 ibv_rc_pingpong -d h0 -g "$(host_gid 0)" \
		-p 19999 -n 1000000 10.0.0.2 >/dev/null &
	wait_for 10 sh -c 'rdma -dd resource show qp link h0/1 |
		grep -w "drv_path wire"' || rc=1
	kill $pid %2 2>/dev/null
	wait
	return $rc
}

# h0 says at once that a QP cannot have that peer
refuses_peer()
{
	local rc=0

	# shellcheck disable=SC2016 # for the inner shell
	between 1 bash -c 'ibv_rc_pingpong -d $DEV -g $GID -p $PORT "$@"' x \
		>/tmp/refused 2>&1 && rc=1
	cat /tmp/refused
	grep -q 'Failed to modify QP to RTR' /tmp/refused || rc=1
	return $rc
}

# told to stay local, the device refuses a peer that is not
local_only()
{
	local rc=0

	echo local >/sys/class/infiniband/h0/path
	refuses_peer || rc=1
	echo auto >/sys/class/infiniband/h0/path
	return $rc
}

# the port is open exactly while a device of the namespace needs it
port_open()
{
	[ -n "$(on 0 ss -Hlun 'sport = :4791')" ]
}

port_closed()
{
	! port_open
}

port_follows_device()
{
	port_open || return 1
	rdma link del h0 && wait_for 5 port_closed || return 1
	host_link 0 mrsoft && port_open
}

# somebody else has the port: the local path works, and the wire comes later
port_taken()
{
	local pid rc=0

	rdma link del h0 && wait_for 5 port_closed || return 1
	ip netns exec ns0 python3 -Sc 'import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 4791))
time.sleep(60)' &
	pid=$!
	wait_for 10 port_open || return 1
	dmesg -C
	on 0 rdma link add h0 type mrsoft netdev v0 || rc=1
	dmesg | grep 'h0: UDP port 4791' || rc=1
	[ "$(cat /sys/class/infiniband/h0/wire)" = off ] || rc=1
	wait_for 10 host_gid 0 || rc=1
	on 0 "$(dirname "$0")/../lib/pingpong-self" h0 "$(host_gid 0)" || rc=1
	refuses_peer || rc=1
	! echo on >/sys/class/infiniband/h0/wire 2>/dev/null || rc=1
	kill $pid
	wait $pid 2>/dev/null
	echo on >/sys/class/infiniband/h0/wire || rc=1
	[ "$(cat /sys/class/infiniband/h0/wire)" = on ] || rc=1
	wait_for 10 host_gid 0 6 || rc=1
	return $rc
}

# without IPv6 in the namespace there are no sockets for it, and IPv4 works
no_ipv6()
{
	on 0 sysctl -qw net.ipv6.conf.v0.disable_ipv6=1 || return 1
	pingpong 1 rc -s 5000
}

# --- netdevs that go while packets are under way ---------------------------------

# a process with a QP in RTS and a message that will not be answered for long
busy_process()
{
	timeout 60 ip netns exec ns1 ibv_rc_pingpong -d h1 -g "$(host_gid 1)" \
		-p 18000 -n 1000000 >/dev/null 2>&1 &
	wait_for 10 listener_on 1 18000 || return 1
	ip netns exec ns0 ibv_rc_pingpong -d h0 -g "$(host_gid 0)" -p 18000 \
		-n 1000000 10.0.0.2 >/dev/null 2>&1 &
	busy=$!
	sleep 1
}

# a packet of it waits in the queue of the netdev: nobody waits for that
kill_with_slow_wire()
{
	local start end

	busy_process && slow_wire || return 1
	sleep 0.5
	start=$(date +%s%N)
	kill -9 "$(pgrep -P $busy || echo $busy)" $busy 2>/dev/null
	wait $busy 2>/dev/null
	wait_for 5 no_process_has h0 || return 1
	end=$(date +%s%N)
	echo "$(((end - start) / 1000000)) ms"
}

no_process_has()
{
	! rdma resource show qp link "$1/1" | grep -q ' pid '
}

netdev_goes()
{
	dmesg -C
	timeout 10 ip -n ns0 link del v0 || return 1
	wait_for 5 test ! -e /sys/class/infiniband/h0 || return 1
	! dmesg | grep 'waiting for'
}

t_plan_start wire
t_run start 60 hosts_start
t_run path_attribute 20 path_attribute
cases_pingpong 1 "1 4095 4096 4097 8193 1048576 67108864"
cases_perftest 1
FAMILY=6 t_run ipv6 60 pingpong 1 rc -s 10000
FAMILY=6 t_run ipv6.ud 60 pingpong 1 ud -s 1000
t_run no_refusals 20 no_refusals
t_run drv_path 60 drv_path
t_run local_only 60 local_only
t_run port_follows_device 30 port_follows_device
t_run port_taken 60 port_taken
t_run after_that 60 pingpong 0 rc -s 5000
t_run no_ipv6 60 no_ipv6
t_run kill_with_slow_wire 60 kill_with_slow_wire
t_run netdev_goes 40 netdev_goes
t_run end 60 hosts_end
t_run unload 40 unload_mrsoft
t_done
