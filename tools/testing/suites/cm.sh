#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# cm - connections made by rdma_cm: librdmacm's calls and its tools
#
# Within a host (the local path), then between two (the wire); IPv6 and a VLAN.  Slow
# machines have one tool of each kind.
#
# machines: uml-plain
# timeout: 600

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts.sh"

# The server is on host 1, the client on host $from.
from=1
server=10.0.0.2
port=7000

# all but the ten thousand of the suite reconnect, and, on the other path, what a path
# may change
calls='messages reg_ key_is busy orders handle_is ids default_pd af_ib endpoints
	reconnect'
wire_calls='messages reg_ key_is busy orders reconnect'

# listens PORT - an rdma_cm id does.  The core shows it before the CM has been told.
listens()
{
	rdma resource show cm_id | grep -E "LISTEN .*:$1( |$)" && sleep 0.3
}

# rdma_xserver's has no port in that list
xserver_listens()
{
	rdma resource show cm_id | grep 'LISTEN.*rdma_xserver' && sleep 0.3
}

# serve CMD... - on host 1; killing $pid kills it
serve()
{
	(exec ip netns exec ns1 timeout 60 "$@") >/tmp/cm-server 2>&1 &
	pid=$!
}

# cm SERVER... -- CLIENT... - both end with status 0
cm()
{
	local pid rc=0 cmd=()

	while [ "$1" != -- ]; do
		cmd+=("$1")
		shift
	done
	shift
	serve "${cmd[@]}"
	wait_for 10 "${ready:-listens}" $port >/dev/null || rc=1
	[ $rc -ne 0 ] || on $from timeout 60 "$@" || rc=1
	[ $rc -eq 0 ] || kill $pid 2>/dev/null
	wait $pid || rc=1
	[ $rc -eq 0 ] || cat /tmp/cm-server
	return $rc
}

# same TOOL OPTION... - the same for both, and -s for the client
same()
{
	cm "$@" -p $port -- "$@" -p $port -s $server
}

rping_pair()
{
	cm rping -s -a $server -p $port -C 50 -V "$@" -- \
		rping -c -a $server -p $port -C 50 -V "$@"
}

client_server()
{
	cm rdma_server -s $server -p $port -- rdma_client -s $server -p $port
}

# a large file comes through as it is
rcopy_file()
{
	local rc=0 pid

	rm -rf /tmp/rcopy && mkdir /tmp/rcopy &&
		head -c 20000000 /dev/urandom >/tmp/rcopy/file || return 1
	serve sh -c "cd /tmp/rcopy && exec rcopy -p $port"
	wait_for 10 listens $port >/dev/null &&
		on $from timeout 60 rcopy /tmp/rcopy/file \
			$server:/tmp/rcopy/copy -p $port &&
		cmp /tmp/rcopy/file /tmp/rcopy/copy || rc=1
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null
	return $rc
}

# times CONNECTIONS - cmtime's server does not end by itself
times()
{
	local pid rc=0

	serve cmtime -p $port -c "$1"
	wait_for 10 listens $port >/dev/null &&
		on $from timeout 60 cmtime -p $port -c "$1" -s $server || rc=1
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null
	return $rc
}

perftest_cm()
{
	local pid rc=0

	serve "$@" -F -R -d h1 -p $port
	wait_for 10 listens $port >/dev/null || rc=1
	[ $rc -ne 0 ] || on $from timeout 60 "$@" -F -R -d h$from -p $port \
		$server || rc=1
	[ $rc -eq 0 ] || kill $pid 2>/dev/null
	wait $pid || rc=1
	[ $rc -eq 0 ] || cat /tmp/cm-server
	return $rc
}

# refused WHY N CMD... - on host N: it says why, with an error, and at once
refused()
{
	local why=$1 n=$2 rc

	shift 2
	on "$n" timeout 20 "$@" >/tmp/cm-refused 2>&1
	rc=$?
	cat /tmp/cm-refused
	[ $rc -ne 0 ] && [ $rc -ne 124 ] && { [ $rc -lt 128 ] || [ $rc -eq 255 ]; } &&
		grep -qi "$why" /tmp/cm-refused
}

make_vlans()
{
	host_vlan 0 && host_vlan 1
}

# each with a port of its own: one that has just been used may be busy
run()
{
	port=$((port + 1))
	t_run "$1" 90 "${@:2}"
}

no_ids()
{
	! rdma resource show cm_id | grep .
}

# with_address TOOL OPTION... - the server on $server and no other address
with_address()
{
	cm "$@" -p $port -b "$server" -- "$@" -p $port -s "$server"
}

# one of each kind; any address
few_tools()
{
	run rping rping_pair
	run ucmatose with_address ucmatose -c 3 -C 10 -S 4096
	port=7174 t_run udaddy 90 cm udaddy -c 2 -C 5 -S 1000 -b "$server" -- \
		udaddy -c 2 -C 5 -S 1000 -s "$server"
	run rstream with_address rstream -S 65536 -C 20 -I 2 -T v
}

tools()
{
	run rping rping_pair
	run ucmatose same ucmatose -c 3 -C 10 -S 4096
	port=7174 t_run udaddy 90 cm udaddy -c 2 -C 5 -S 1000 -- \
		udaddy -c 2 -C 5 -S 1000 -s $server
	run rstream same rstream -S 65536 -C 20 -I 2
}

tools()
{
	run rping rping_pair
	run rping.large rping_pair -S 65000
	run rping.own_qp rping_pair -q
	run ucmatose same ucmatose -c 10 -C 20 -S 4096
	run ucmatose.empty same ucmatose -c 20 -C 0
	# its -p is something else
	port=7174 t_run udaddy 90 cm udaddy -c 5 -C 20 -S 1000 -- \
		udaddy -c 5 -C 20 -S 1000 -s $server
	run rdma_client client_server
	ready=xserver_listens run rdma_xclient cm rdma_xserver -p $port -c r -- \
		rdma_xclient -s $server -p $port -c r
	run rstream same rstream -S 65536 -C 50 -I 2
	run riostream same riostream -S 65536 -C 50 -I 2
	run rcopy rcopy_file
	run cmtime times 1000
	run ib_write_bw perftest_cm ib_write_bw -s 65536 -n 160
	run ib_read_lat perftest_cm ib_read_lat -n 100
	run ib_send_bw perftest_cm ib_send_bw -s 4096 -n 160
	run ib_atomic_bw perftest_cm ib_atomic_bw -n 160
	run ib_send_lat.ud perftest_cm ib_send_lat -c UD -n 100
}

slow_tools()
{
	few_tools
	run rdma_client client_server
	run cmtime times 20
	run ib_atomic_bw perftest_cm ib_atomic_bw -n 16
}

# What librxe (XRC) or the core on RoCE has not, whichever driver it is of: routes
# between addresses of AF_IB, and groups that rdma_cm does not map from IPv4.  The
# server for XRC listens, since it makes nothing before a client comes.
refusals()
{
	local gid

	gid=$(cat "/sys/class/infiniband/h1/ports/1/gids/$(host_gid 1)")
	t_run xrc 30 refused 'not supported' 0 rdma_xclient -s $server \
		-p 7900 -c x
	t_run af_ib.server 30 refused 'no such device' 1 ucmatose -f gid \
		-b "$gid" -P ib -p 7901
	t_run af_ib.client 30 refused 'no such device' 0 ucmatose -f gid \
		-s "$gid" -P ib -p 7901
	t_run mckey.unmapped 30 refused 'failure joining' 0 mckey \
		-M ff0e::4d52:8001:333 -b 10.0.0.1 -s
}

t_plan_start cm
t_run start 60 hosts_start
if [ "$MRSOFT_MACHINE" = uml-plain ]; then
	for from in 1 0; do
		[ $from = 0 ] && T_PREFIX=wire. || T_PREFIX=local.
		tools
	done
	for from in 1 0; do
		[ $from = 0 ] && T_PREFIX=wire.6. || T_PREFIX=local.6.
		server=fd00::2 few_tools
	done
	T_PREFIX=vlan.
	t_run start 40 make_vlans
	server=10.0.7.2 few_tools
	T_PREFIX=vlan.6.
	server=fd07::2 few_tools
else
	from=0
	T_PREFIX=wire.
	slow_tools
fi
# shellcheck disable=SC2034 # of ktap.sh
T_PREFIX=
refusals
export MRSOFT_CM_ADDR=10.0.0.2 MRSOFT_DEV=h1
# shellcheck disable=SC2086 # words
t_ktap calls 300 ip netns exec ns1 "$MRSOFT_BIN/cm" $calls
t_run path 5 sh -c 'echo wire >/sys/class/infiniband/h1/path'
# shellcheck disable=SC2086 # words
t_ktap calls_wire 300 ip netns exec ns1 "$MRSOFT_BIN/cm" $wire_calls
# nothing may be left, whoever ended how
t_run no_ids 20 wait_for 10 no_ids
t_run end 60 hosts_end
t_run unload 40 unload_mrsoft
t_done
