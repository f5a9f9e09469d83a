#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# machines: uml-plain uml-kasan vm-6.1
# fast: yes
# timeout: 600
#
# pingpong - rdma-core's ibv_{rc,uc,ud,srq}_pingpong between two processes
#
#	server ---- pair0 (mrsoft) on pairnet (dummy) ---- client
#
# Polling and with events, from one byte to a MiB, both kinds of address, each
# path MTU, with the data checked (-c).  Sizes that UD cannot send and features
# the device does not claim are refused, not ignored.

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/pair.sh"

# A case costs a second where the kernel is slow: fewer sizes there.
case $MRSOFT_MACHINE in
uml-plain)
	iters=100
	sizes="1 64 4096 65536 1048576"
	ud_sizes="1 64 1024 4096"
	;;
*)
	iters=20
	sizes="1 4096 1048576"
	ud_sizes="1 4096"
	;;
esac

# pingpong CASE ITERS KIND OPTION...
pingpong()
{
	local name=$1 n=$2 tool=ibv_$3_pingpong

	shift 3
	pair "$name" 60 'iters in [0-9.]+ seconds' "$tool" -n "$n" -c "$@"
}

# refused PATTERN CMD... - CMD fails, and says why
refused()
{
	local pattern=$1

	shift
	if timeout 20 "$@"; then
		echo "not refused"
		return 1
	fi 2>&1 | tee /tmp/refused
	grep -qE "$pattern" /tmp/refused
}

t_plan_start pingpong
pair_start || t_fail setup

for kind in rc uc srq ud; do
	list=$sizes
	[ $kind != ud ] || list=$ud_sizes
	for size in $list; do
		n=$iters
		[ "$size" -lt 1000000 ] || n=5
		# srq: 16 QPs unless told
		args=(-g "$PAIR_GID4" -s "$size" -r 50)
		[ $kind != srq ] || args+=(-q 4)
		pingpong "$kind.poll.$size" "$n" $kind "${args[@]}"
		pingpong "$kind.events.$size" "$n" $kind "${args[@]}" -e
	done
	pingpong "$kind.ipv6" "$iters" $kind -g "$PAIR_GID6" -r 50
done
for mtu in 256 512 1024 2048 4096; do
	pingpong "rc.mtu.$mtu" "$iters" rc -g "$PAIR_GID4" -m $mtu -s 10000
done
pingpong rc.new_send "$iters" rc -g "$PAIR_GID4" -N
pingpong rc.new_send.events "$iters" rc -g "$PAIR_GID4" -N -e
pingpong rc.odp "$iters" rc -g "$PAIR_GID4" -o
pingpong rc.implicit_odp "$iters" rc -g "$PAIR_GID4" -O
pingpong rc.one_receive "$iters" rc -g "$PAIR_GID4" -r 2
pingpong srq.16_qps 10 srq -g "$PAIR_GID4" -q 16

rc=(ibv_rc_pingpong -d "$PAIR_DEV" -g "$PAIR_GID4")
t_run ud.too_long 30 refused 'larger than port MTU' \
	ibv_ud_pingpong -d "$PAIR_DEV" -g "$PAIR_GID4" -s 4097
t_run rc.device_memory_refused 30 refused 'dm' "${rc[@]}" -j
t_run rc.timestamp_refused 30 refused 'timestamp' "${rc[@]}" -t

pair_end
t_done
