#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
. "$(dirname "$0")/../lib/guest.sh"
t_plan_start ${SUITE:-lossy}
stats() { rdma statistic show link $1/1 | tr ' ' '\n' | paste - - | grep -v '	0$' | grep -v "^link"; }
pp() { # server-first: S/C  tool args
	local way=$1 tool=$2 port=$((20000 + RANDOM % 10000)) pid rc=0
	shift 2
	if [ $way = server ]; then # mrsoft serves
		timeout 30 $tool -d m0 -g $gm -p $port "$@" & pid=$!
		wait_for 10 listener_up $port || return 1
		timeout 30 ip netns exec ns1 $tool -d r0 -g $gr -p $port "$@" 10.0.0.1 || rc=1
	else
		timeout 30 ip netns exec ns1 $tool -d r0 -g $gr -p $port "$@" & pid=$!
		wait_for 10 ip netns exec ns1 bash -c "ss -Hltn 'sport = :$port' | grep -q ." || return 1
		timeout 30 $tool -d m0 -g $gm -p $port "$@" 10.0.0.2 || rc=1
	fi
	[ $rc = 0 ] || { kill $pid; stats m0; stats r0; wait $pid; return 1; }
	wait $pid
}
perf() { # mrsoft-role tool args
	local way=$1 tool=$2 port=$((20000 + RANDOM % 10000)) pid rc=0
	shift 2
	if [ $way = server ]; then
		timeout 40 $tool -F -d m0 -x $gm -p $port "$@" & pid=$!
		wait_for 10 listener_up $port || return 1
		timeout 40 ip netns exec ns1 $tool -F -d r0 -x $gr -p $port "$@" 10.0.0.1 || rc=1
	else
		timeout 40 ip netns exec ns1 $tool -F -d r0 -x $gr -p $port "$@" & pid=$!
		wait_for 10 ip netns exec ns1 bash -c "ss -Hltn 'sport = :$port' | grep -q ." || return 1
		timeout 40 $tool -F -d m0 -x $gm -p $port "$@" 10.0.0.2 || rc=1
	fi
	[ $rc = 0 ] || { kill $pid; stats m0; stats r0; wait $pid; return 1; }
	wait $pid
}
setup() {
	load_mrsoft
	modprobe rdma_rxe
	ip netns add ns1
	ip link add v0 type veth peer name v1
	ip link set v1 netns ns1
	ip addr add 10.0.0.1/24 dev v0
	ip link set v0 mtu 4200 up
	ip -n ns1 addr add 10.0.0.2/24 dev v1
	ip -n ns1 link set v1 mtu 4200 up
	ip -n ns1 link set lo up
	add_link m0 v0
	if [ "${PEER:-rxe}" = rxe ]; then
	ip netns exec ns1 rdma link add r0 type rxe netdev v1
	else
	ip netns exec ns1 rdma link add r0 type mrsoft netdev v1
	fi
	wait_for 10 gid_index r0 10.0.0.2
	rdma link
}
setup
gm=$(gid_index m0 10.0.0.1)
gr=$(gid_index r0 10.0.0.2)
netem() { # args for both ends
	tc qdisc replace dev v0 root netem limit 100000 "$@"
	ip netns exec ns1 tc qdisc replace dev v1 root netem limit 100000 "$@"
}
nonetem() { tc qdisc del dev v0 root; ip netns exec ns1 tc qdisc del dev v1 root; }
for how in "loss 1%" "loss 10%" "duplicate 10%" "delay 1ms reorder 25% 50%" "corrupt 1%" "delay 5ms"; do
netem $how
n=${how// /_}
for way in server client; do
	t_run $n-$way-rc-1024 60 pp $way ibv_rc_pingpong -n 20 -c -s 1024
	t_run $n-$way-rc-100000 60 pp $way ibv_rc_pingpong -n 10 -c -s 100000
	t_run $n-$way-srq 60 pp $way ibv_srq_pingpong -n 10 -c -s 5000
	t_run $n-$way-write 60 perf $way ib_write_bw -s 65536 -n 100
	t_run $n-$way-read 60 perf $way ib_read_bw -s 65536 -n 100
	t_run $n-$way-send 60 perf $way ib_send_bw -s 65536 -n 100
	t_run $n-$way-atomic 60 perf $way ib_atomic_bw -n 100
done
nonetem
stats m0; stats r0
done
stats m0
echo; stats r0
t_run del 30 del_link m0
t_run del2 30 del_link r0
t_run unload 30 unload_mrsoft
t_done
