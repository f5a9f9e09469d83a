#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# cm - connections made by rdma_cm: librdmacm's calls and its tools
#
# Within a host (the local path), then between two (the wire).
#
# machines: uml-plain
# timeout: 400

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts.sh"

# The server is on host 1, the client on host $from.
from=1
server=10.0.0.2
port=7000

# listens PORT - an rdma_cm id does
listens()
{
	rdma resource show cm_id | grep -E "LISTEN .*:$1( |$)"
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
	wait_for 10 listens $port >/dev/null || rc=1
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

# cmtime's server does not end by itself
times()
{
	local pid rc=0

	serve cmtime -p $port -c 100
	wait_for 10 listens $port >/dev/null &&
		on $from timeout 60 cmtime -p $port -c 100 -s $server || rc=1
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
	run rstream same rstream -S 65536 -C 50 -I 2
	run riostream same riostream -S 65536 -C 50 -I 2
	run rcopy rcopy_file
	run cmtime times
	run ib_write_bw perftest_cm ib_write_bw -s 65536 -n 160
	run ib_read_lat perftest_cm ib_read_lat -n 100
	run ib_send_bw perftest_cm ib_send_bw -s 4096 -n 160
	run ib_send_lat.ud perftest_cm ib_send_lat -c UD -n 100
}

t_plan_start cm
t_run start 60 hosts_start
for from in 1 0; do
	[ $from = 0 ] && T_PREFIX=wire. || T_PREFIX=local.
	tools
done
# shellcheck disable=SC2034 # of ktap.sh
T_PREFIX=
export MRSOFT_CM_ADDR=10.0.0.2
t_ktap calls 150 ip netns exec ns1 "$MRSOFT_BIN/cm"
t_run path 5 sh -c 'echo wire >/sys/class/infiniband/h1/path'
t_ktap calls_wire 150 ip netns exec ns1 "$MRSOFT_BIN/cm"
# nothing may be left, whoever ended how
t_run no_ids 20 wait_for 10 no_ids
t_run end 60 hosts_end
t_run unload 40 unload_mrsoft
t_done
