#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# smc - sockets of SMC-R on mrsoft: the bytes, and that none fell back to TCP
#
#	u0 on v0 (10.9.1.1) ==== v1 (10.9.1.2) on u1, see lib/ulp.sh
#
# machines: uml-plain vm-6.1
# fast: no
# timeout: 200

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/ulp.sh"

BYTES=20000000
[ -z "$ULP_SHORT" ] || BYTES=1000000

modules()
{
	modprobe -a smc smc_diag
}

# With GIDs of RoCEv2 only there is SMC-R version 2 only, which wants an EID.
eid()
{
	"$MRSOFT_BIN/smc" eid MRSOFT-TEST-EID
}

# The link groups stay for ten minutes after their last socket: the device takes them
# along.
link_del_with_groups()
{
	rdma resource show qp link u0/1 | grep -i 'comm \[\?smc' || return 1
	del_link u1 && del_link u0 && ulp_gone u0 u1
}

link_del_under_load()
{
	local pid

	MRSOFT_PATH=wire add_link u0 v0 && MRSOFT_PATH=wire add_link u1 v1 &&
		wait_for 10 gid_index u0 10.9.1.1 &&
		wait_for 10 gid_index u1 10.9.1.2 || return 1
	"$MRSOFT_BIN/smc" run 10.9.1.2 2 100000000000 &
	pid=$!
	wait_for 20 sh -c 'rdma resource show qp link u0/1 | grep -i smc' || return 1
	sleep 1
	kill -0 $pid || return 1
	del_link u1 && ulp_gone u1 || return 1
	# its connections are broken, and it says so
	wait_for 60 sh -c "! kill -0 $pid" || return 1
	! wait $pid
}

cases()
{
	ulp_set "$1"
	t_run start 60 ulp_two "$1"
	t_run modules 20 modules
	t_run eid 20 eid
	t_run one 100 "$MRSOFT_BIN/smc" run 10.9.1.2 1 $BYTES
	t_run path 10 ulp_path u0 "$1"
	t_long back 100 "$MRSOFT_BIN/smc" run 10.9.1.1 1 $BYTES
	t_run many 100 "$MRSOFT_BIN/smc" run 10.9.1.2 16 $((BYTES / 16))
	t_run link_del_with_groups 60 link_del_with_groups
	t_run modules_end 60 unload smc_diag smc
	# Last: after it the module smc stays in use, on rdma_rxe as well.  Ours must
	# unload all the same.
	if [ "$1" = wire ] && [ -z "$ULP_SHORT" ]; then
		t_run modules_again 20 modules
		t_run eid_again 20 eid
		t_run link_del_under_load 100 link_del_under_load
	fi
	t_run end 60 ulp_wire_end
}

t_plan_start smc
[ -n "$ULP_SHORT" ] || T_PREFIX=local. cases local
T_PREFIX=wire. cases wire
t_run unload 40 unload_mrsoft
t_done
