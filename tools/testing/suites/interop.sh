#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# interop - two hosts: mrsoft and rdma_rxe, each as server and as client
#
# rdma_rxe of 6.1 receives in the initial network namespace only, so that one of
# the hosts is that namespace there.  A virtual machine is slow: few sizes, few
# messages, one perftest of each operation.
#
# machines: uml-plain vm-6.1
# fast: no
# timeout: 500

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts-cases.sh"

# shellcheck disable=SC2034 # of hosts.sh
HOST0_TYPE=rxe
# shellcheck disable=SC2034
[ "$MRSOFT_MACHINE" != vm-6.1 ] || HOST0_INIT=1

t_plan_start interop
t_run start 60 hosts_start
for server in 0 1; do
	T_PREFIX=mrsoft_serves.
	[ $server = 1 ] || T_PREFIX=rxe_serves.
	if [ "$MRSOFT_MACHINE" = uml-plain ]; then
		cases_pingpong $server "1 1000 4096 100000 1000000"
		cases_perftest $server
	else
		few_pingpong $server
		few_perftest $server
	fi
done
# shellcheck disable=SC2034 # of ktap.sh
T_PREFIX=
t_run end 60 hosts_end
t_run unload_rxe 40 wait_for 20 rmmod rdma_rxe
t_run unload 40 unload_mrsoft
t_done
