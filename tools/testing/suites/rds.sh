#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# rds - sockets of RDS on mrsoft: messages, RDMA, and which transport they took
#
# Topology: lib/ulp.sh.
#
# By hand: rds_ib_recv_exit() has warned once, when the modules were unloaded, that
# not all it had received was freed, and whose fault that is is open.  A line
# "machines: uml-plain" here adds it.
#
# timeout: 200

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/ulp.sh"

MESSAGES=400
[ -z "$ULP_SHORT" ] || MESSAGES=50

modules()
{
	modprobe -a rds rds_rdma
}

cases()
{
	local from=$2 to=$3

	ulp_set "$1"
	t_run start 60 "ulp_$1"
	t_run modules 20 modules
	t_run messages 100 "$MRSOFT_BIN/rds" send "$from" "$to" $MESSAGES
	t_run path 10 ulp_path u0 "$1"
	t_run rdma 100 "$MRSOFT_BIN/rds" rdma "$from" "$to"
	t_long rdma_back 100 "$MRSOFT_BIN/rds" rdma "$to" "$from"
	t_run modules_end 60 unload rds_rdma rds
	t_run end 60 "ulp_$1_end"
}

t_plan_start rds
[ -n "$ULP_SHORT" ] || T_PREFIX=local. cases local 10.9.0.1 10.9.0.1
T_PREFIX=wire. cases wire 10.9.1.1 10.9.1.2
t_run unload 40 unload_mrsoft
t_done
