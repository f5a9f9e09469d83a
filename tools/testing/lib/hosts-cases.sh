# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# hosts-cases.sh - cases with the distribution's tools between two hosts
#
# After guest.sh and hosts.sh.

# pingpong SERVER KIND OPTION... - with the data checked; IBV_OPTIONS, FAMILY
pingpong()
{
	local server=$1 tool=ibv_$2_pingpong

	shift 2
	# shellcheck disable=SC2016 # for the inner shell
	between "$server" bash -c 'tool=$1; shift
		n=$#; address=; [ -n "$SERVER" ] || { address=${!n}; set -- "${@:1:n-1}"; }
		exec $tool -d $DEV -g $GID -p $PORT -c "$@" $address' x "$tool" "$@"
}

# perftest SERVER TOOL OPTION...
perftest()
{
	local server=$1 tool=$2

	shift 2
	# shellcheck disable=SC2016
	between "$server" bash -c 'tool=$1; shift
		exec $tool -F -d $DEV -x $GID -p $PORT "$@"' x "$tool" "$@"
}

# cases_pingpong SERVER SIZES
cases_pingpong()
{
	local server=$1 size kind n

	for kind in rc uc srq; do
		for size in $2; do
			n=10
			[ "$size" -lt 1000000 ] || n=2
			# uc may lose, and then waits for ever: once is enough
			[ $kind = rc ] || [ "$size" -lt 1000000 ] || continue
			t_run "$kind.$size" 120 pingpong "$server" $kind \
				-n $n -s "$size" -r 20
		done
	done
	for size in 1 1000 2048; do
		t_run "ud.$size" 60 pingpong "$server" ud -n 10 -s $size
	done
	for mtu in 256 512 1024 2048 4096; do
		t_run "rc.mtu.$mtu" 60 pingpong "$server" rc -n 5 -s 20001 -m $mtu
	done
	t_run rc.events 60 pingpong "$server" rc -n 50 -e
}

# cases_perftest SERVER
cases_perftest()
{
	local server=$1 tool

	for tool in ib_write_bw ib_read_bw ib_send_bw; do
		t_run "$tool" 120 perftest "$server" $tool -s 65536 -n 100
	done
	for tool in ib_write_lat ib_read_lat ib_send_lat; do
		t_run "$tool" 120 perftest "$server" $tool -s 64 -n 100
	done
	t_run ib_atomic_bw 120 perftest "$server" ib_atomic_bw -n 100
	t_run ib_atomic_bw.cas 120 perftest "$server" ib_atomic_bw -A CMP_AND_SWAP \
		-n 100
	t_run ib_send_bw.uc 120 perftest "$server" ib_send_bw -c UC -s 4096 -n 50
	t_run ib_send_bw.ud 120 perftest "$server" ib_send_bw -c UD -s 1024 -n 50
	t_run ib_write_bw.8_qps 120 perftest "$server" ib_write_bw -q 8 -s 32768 \
		-n 50
}

# few_pingpong SERVER - one of each service, for a slow machine
few_pingpong()
{
	t_run rc.1 120 pingpong "$1" rc -n 5 -s 1 -r 5
	t_run rc.20001 120 pingpong "$1" rc -n 5 -s 20001 -r 5
	t_run uc.4097 120 pingpong "$1" uc -n 5 -s 4097 -r 5
	t_run ud.2048 120 pingpong "$1" ud -n 5 -s 2048 -r 5
}

# few_perftest SERVER - one of each operation
few_perftest()
{
	local tool

	for tool in ib_write_bw ib_read_bw ib_send_bw; do
		t_run "$tool" 120 perftest "$1" $tool -s 20000 -n 10
	done
	t_run ib_atomic_bw 120 perftest "$1" ib_atomic_bw -n 10
}

# No packet was wrong.  Some may have been sent again: the tools' time-out is 67 ms,
# and a busy machine may be slower (lost.c has one that counts them).
no_refusals()
{
	local n bad=0

	for n in 0 1; do
		host_stats $n
		# what comes for a QP of a process that has ended is no fault
		host_stats $n | grep -vE '(_peer|_peer_state|flushed|no_path):' |
			grep -E 'refused' && bad=1
	done
	return $bad
}
