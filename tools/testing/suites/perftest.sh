#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# machines: uml-plain vm-6.1
# fast: no
# timeout: 900
#
# perftest - ib_{write,read,send,atomic}_{lat,bw} between two processes
#
#	server ---- pair0 (mrsoft) on pairnet (dummy) ---- client
#
# Every operation over every transport that has it; inline, events, several
# QPs, both directions, lists of work requests, a shared receive queue.  The
# counts are small: this is about results that arrive, not about speed.

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/pair.sh"

# bw is a multiple of 16: with -t 16 perftest counts 16 for each completion, also for
# the last of a QP, and with several QPs it may stop polling before the end.
case $MRSOFT_MACHINE in
uml-plain) lat=100 bw=192 qps=8 again="RC UC UD" ;;
*) lat=10 bw=32 qps=4 again=RC ;;
esac

# end - nothing is left; and out
end()
{
	pair_end
	t_done
	exit
}

# perf CASE TOOL OPTION... ; -F: virtual machines show no CPU frequency
perf()
{
	local name=$1 tool=$2

	shift 2
	# the last line of the table: bytes, iterations, figures
	pair "$name" 60 '^ *[0-9]+ +[0-9]+ +(inf|[0-9])' \
		"$tool" -F -x "$PAIR_GID4" "$@"
}

t_plan_start perftest
pair_start || t_fail setup

for connection in RC UC UD; do
	ops="write read send atomic"
	[ $connection != UC ] || ops="write send"
	[ $connection != UD ] || ops=send
	for op in $ops; do
		c=(-c "$connection")
		# perftest takes the size of an atomic as given
		s=(-s 4096)
		[ "$op" != atomic ] || s=()
		perf "$op.lat.$connection" "ib_${op}_lat" "${c[@]}" "${s[@]}" -n $lat
		perf "$op.bw.$connection" "ib_${op}_bw" "${c[@]}" "${s[@]}" -n $bw -t 16
	done
done

for connection in $again; do
	c=(-c "$connection")
	perf "send.lat.$connection.inline" ib_send_lat "${c[@]}" -s 64 -I 64 -n $lat
	perf "send.lat.$connection.events" ib_send_lat "${c[@]}" -s 64 -n $lat -e
	perf "send.bw.$connection.events" ib_send_bw "${c[@]}" -s 1024 -n $bw -t 16 -e
	perf "send.bw.$connection.qps" ib_send_bw "${c[@]}" -s 1024 -n $bw -t 16 -q $qps
	perf "send.bw.$connection.both_ways" ib_send_bw "${c[@]}" -s 1024 -n $bw -t 16 -b
done
perf read.bw.RC.qps ib_read_bw -s 65536 -n $bw -t 16 -q $qps
perf atomic.bw.RC.qps ib_atomic_bw -n $bw -t 16 -q $qps
perf send.bw.RC.srq ib_send_bw -s 1024 -n $bw -t 16 -q $qps --use-srq
perf write.bw.RC.large ib_write_bw -s 8388608 -n 5 -t 2

# perftest measures the CPU's clock for half a second in each run: the
# rest only where that is not twice as long
[ "$MRSOFT_MACHINE" = uml-plain ] || end

perf write.lat.RC.inline ib_write_lat -s 64 -I 64 -n $lat
perf write.lat.UC.inline ib_write_lat -c UC -s 64 -I 64 -n $lat
perf read.lat.RC.events ib_read_lat -s 64 -n $lat -e
perf atomic.lat.RC.compare_and_swap ib_atomic_lat -A CMP_AND_SWAP -n $lat
perf atomic.bw.RC.compare_and_swap ib_atomic_bw -A CMP_AND_SWAP -n $bw -t 16
perf write.bw.RC.qps ib_write_bw -s 65536 -n $bw -t 16 -q $qps
perf read.bw.RC.events ib_read_bw -s 4096 -n $bw -t 16 -e
perf write.bw.RC.both_ways ib_write_bw -s 65536 -n $bw -t 16 -b
perf write.bw.RC.list ib_write_bw -s 4096 -n 64 -t 16 -l 8
perf write.bw.UC.qps ib_write_bw -c UC -s 65536 -n $bw -t 16 -q $qps
perf read.bw.RC.both_ways ib_read_bw -s 65536 -n $bw -t 16 -b
perf read.bw.RC.one_outstanding ib_read_bw -s 4096 -n $bw -t 16 -o 1
perf send.bw.RC.mr_per_qp ib_send_bw -s 1024 -n $bw -t 16 -q $qps --mr_per_qp
perf send.bw.RC.old_post ib_send_bw -s 1024 -n $bw -t 16 --use_old_post_send
perf send.bw.RC.rare_cqe ib_send_bw -s 1024 -n 64 -t 64 -Q 16
perf send.bw.RC.mtu ib_send_bw -s 65536 -n $bw -t 16 -m 256
perf send.bw.RC.large ib_send_bw -s 8388608 -n 5 -t 2
perf read.bw.RC.large ib_read_bw -s 8388608 -n 5 -t 2
perf write.bw.RC.all_sizes ib_write_bw -a -n 5 -t 4
perf send.lat.RC.all_sizes ib_send_lat -a -n 5
perf read.lat.RC.all_sizes ib_read_lat -a -n 5
end
