#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# lossy - two hosts and a wire that loses, doubles, reorders, spoils and delays
#
# mrsoft with mrsoft, then with rdma_rxe.  perftest ends with a word over TCP, so
# that no side leaves while the other still waits for an answer.
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

netem()
{
	local n

	for n in 0 1; do
		on $n tc qdisc replace dev v$n root netem limit 100000 "$@" ||
			return 1
	done
}

# 64 QPs at once, and nobody's watchdog barks
crowd()
{
	perftest 1 ib_write_bw -q 64 -s 4096 -n 20 --qp-timeout 17
}

all_hows()
{
	local how

	for how in "loss 1%" "loss 10%" "duplicate 10%" \
		"delay 1ms reorder 25% 50%" "corrupt 1%" "delay 20ms"; do
		T_PREFIX=$1.${how//[ %]/_}.
		# shellcheck disable=SC2086 # words
		t_run netem 20 netem $how
		t_run write 60 perftest 1 ib_write_bw -s 65536 -n 20
		t_run read 60 perftest 1 ib_read_bw -s 65536 -n 20
		t_run send 60 perftest 1 ib_send_bw -s 65536 -n 20
		t_run atomic 60 perftest 1 ib_atomic_bw -n 20
	done
	T_PREFIX=$1.
}

t_plan_start lossy
t_run start 60 hosts_start
all_hows mrsoft
t_run loss 20 netem loss 10%
t_run crowd 120 crowd
t_run end 60 hosts_end
# shellcheck disable=SC2034 # of hosts.sh
HOST0_TYPE=rxe
t_run start 60 hosts_start
all_hows rxe
t_run end 60 hosts_end
# shellcheck disable=SC2034 # of ktap.sh
T_PREFIX=
t_run unload_rxe 40 wait_for 20 rmmod rdma_rxe
t_run unload 40 unload_mrsoft
t_done
