#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# stress - random work, and random things that are done to those who do it
#
#	ns0: h0 on v0 (10.0.0.1) ==== v1 (10.0.0.2) on h1: ns1
#
# machines: uml-plain uml-kasan uml-lockdep
# fast: no
# timeout: 400

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts.sh"

# link_goes N - the device of host N goes while it is at work
link_goes()
{
	local pid rc=0

	"$MRSOFT_BIN/stress" victim &
	pid=$!
	sleep 1
	timeout 30 rdma link del "h$1" || rc=1
	kill -9 $pid 2>/dev/null
	wait $pid
	[ $rc -eq 0 ] && host_link "$1" mrsoft
}

t_plan_start stress
t_run start 60 hosts_start
export MRSOFT_DEV=$HOST0_DEV MRSOFT_DEV2=$HOST1_DEV
t_run loss 20 netem loss 2%
t_ktap stress 200 "$MRSOFT_BIN/stress"
t_run link_goes.0 60 link_goes 0
t_run link_goes.1 60 link_goes 1
t_run end 60 hosts_end
# UML's KASAN does not clear the shadow of a module that goes
[ "$MRSOFT_MACHINE" = uml-kasan ] || t_run unload 40 unload_mrsoft
t_done
