#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# lossy - two hosts and a wire that loses, doubles, reorders, spoils and delays
#
# mrsoft with mrsoft, then with rdma_rxe, four operations at once: most of the time is
# waiting.  perftest ends with a word over TCP, so that no side leaves while the other
# still waits for an answer.  Many QPs on such a wire: crowd.sh.
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

port=31000

# operation NAME OPTION... - in the background
operation()
{
	local name=$1

	shift
	port=$((port + 1))
	rm -f "/tmp/lossy.$name.rc"
	(
		ON_PORT=$port perftest 1 "ib_${name}_bw" "$@" -n 20
		echo $? >"/tmp/lossy.$name.rc"
	) >"/tmp/lossy.$name" 2>&1 &
}

# ended NAME - and how
ended()
{
	local rc

	wait_for 80 test -s "/tmp/lossy.$1.rc" || return 1
	rc=$(cat "/tmp/lossy.$1.rc")
	cat "/tmp/lossy.$1"
	return "$rc"
}

all_hows()
{
	local how name

	for how in "loss 1%" "loss 10%" "duplicate 10%" \
		"delay 1ms reorder 25% 50%" "corrupt 1%" "delay 20ms"; do
		T_PREFIX=$1.${how//[ %]/_}.
		# shellcheck disable=SC2086 # words
		t_run netem 20 netem $how
		operation write -s 65536
		operation read -s 65536
		operation send -s 65536
		operation atomic
		for name in write read send atomic; do
			t_run $name 90 ended $name
		done
		wait
	done
	T_PREFIX=$1.
}

t_plan_start lossy
t_run start 60 hosts_start
all_hows mrsoft
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
