#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# consumers - what is built on verbs: libfabric, UCX, qperf
#
# Within a host (the local path), then between two (the wire).
#
# machines: uml-plain
# fast: no
# timeout: 400

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts.sh"

# The server is on host 1, the client on host $from.
from=1
server=10.0.0.2
out=$(mktemp -d)

# serve PORT CMD... - on host 1; killing $pid kills it
serve()
{
	local port=$1

	shift
	(exec ip netns exec ns1 timeout 60 "$@") >"$out/server" 2>&1 &
	pid=$!
	wait_for 10 listener_up "$port" $pid
}

# client RC CMD... - with the server's end, and what both said if one of them failed
client()
{
	local rc=$1

	shift
	[ "$rc" -ne 0 ] || on $from timeout 60 "$@" >"$out/client" 2>&1 || rc=1
	[ "$rc" -eq 0 ] || kill $pid 2>/dev/null
	wait $pid || rc=1
	[ "$rc" -eq 0 ] || tail -n 8 "$out/server" "$out/client"
	return "$rc"
}

# fabric DOMAIN OPTION... - with the data checked; DOMAIN: behind the device's name.
# The universe is how many peers a completion queue is made for: with the 256 that
# libfabric assumes it is longer than a soft device's may be.
fabric()
{
	local domain=$1 pid rc=0

	shift
	export FI_UNIVERSE_SIZE=1
	serve 47592 fi_pingpong -d "h1$domain" -I 5 -c "$@" || rc=1
	client $rc fi_pingpong -d "h$from$domain" -I 5 -c "$@" $server
}

fabrics()
{
	t_run fabric.msg 60 fabric '' -p verbs -e msg
	t_run fabric.rdm 60 fabric '' -p 'verbs;ofi_rxm' -e rdm
	t_run fabric.rdm.tagged 60 fabric '' -p 'verbs;ofi_rxm' -e rdm -m tagged
	t_run fabric.dgram 60 fabric -dgram -p verbs -e dgram
	t_run fabric.dgram.rdm 60 fabric -dgram -p 'verbs;ofi_rxd' -e rdm
}

# ucx FAMILY TRANSPORTS OPTION...
ucx()
{
	local family=$1 pid rc=0

	export UCX_TLS=$2
	shift 2
	serve 13337 env UCX_NET_DEVICES=h1:1 UCX_IB_GID_INDEX="$(host_gid 1 "$family")" \
		ucx_perftest || rc=1
	client $rc env UCX_NET_DEVICES=h$from:1 \
		UCX_IB_GID_INDEX="$(host_gid $from "$family")" \
		ucx_perftest $server -n 100 -w 10 "$@"
}

# UCX takes the kind of a packet's header from the SL of its completion, where mlx5
# has it.  Elsewhere that is 0, and UCX looks for an IPv4 address where only IPv6 has
# it: its check of that address is for IPv6 only.
ucxs()
{
	local tls name

	for tls in rc_verbs,ud_verbs:aux ud_verbs; do
		name=ucx.${tls%%_*}
		export UCX_UD_VERBS_ETH_DGID_CHECK=n
		t_run "$name.tag_lat" 60 ucx 4 $tls -t tag_lat -s 8
		t_run "$name.tag_bw" 60 ucx 4 $tls -t tag_bw -s 100000
		t_run "$name.tag_sync" 60 ucx 4 $tls -t tag_sync_lat -s 3000
		t_run "$name.am" 60 ucx 4 $tls -t ucp_am_lat -s 1000
		t_run "$name.put" 60 ucx 4 $tls -t ucp_put_bw -s 20000
		t_run "$name.get" 60 ucx 4 $tls -t ucp_get -s 20000
		t_run "$name.fadd" 60 ucx 4 $tls -t ucp_fadd -s 8
		t_run "$name.cswap" 60 ucx 4 $tls -t ucp_cswap -s 8
		t_run "$name.stream" 60 ucx 4 $tls -t stream_bw -s 5000
		export UCX_UD_VERBS_ETH_DGID_CHECK=y
		t_run "$name.6.tag_bw" 60 ucx 6 $tls -t tag_bw -s 10000
	done
}

# qperf TEST - by rdma_cm: without it, qperf addresses by LID, which RoCE has not.
# With -t: seconds; the tests that begin with ver_ check the values.
qperf_cm()
{
	on $from timeout 60 qperf -t 1 -cm1 $server "$1" >"$out/client" 2>&1 &&
		! grep -E ' = +0 ' "$out/client" && return 0
	tail -n 8 "$out/client" "$out/qperf"
	return 1
}

qperfs()
{
	local name

	for name in rc_lat rc_bw rc_bi_bw rc_rdma_read_lat rc_rdma_read_bw \
		rc_rdma_write_lat rc_rdma_write_bw rc_rdma_write_poll_lat \
		rc_fetch_add_mr rc_compare_swap_mr ver_rc_fetch_add \
		ver_rc_compare_swap; do
		t_run "qperf.$name" 60 qperf_cm $name
	done
}

t_plan_start consumers
t_run start 60 hosts_start
(exec ip netns exec ns1 timeout 300 qperf) >"$out/qperf" 2>&1 &
qperf=$!
t_run qperf_server 20 wait_for 10 listener_on 1 19765
for from in 1 0; do
	# shellcheck disable=SC2034 # of ktap.sh
	[ $from = 0 ] && T_PREFIX=wire. || T_PREFIX=local.
	fabrics
	ucxs
	qperfs
done
# shellcheck disable=SC2034
T_PREFIX=
kill $qperf
wait $qperf
t_run end 60 hosts_end
t_run unload 40 unload_mrsoft
t_done
