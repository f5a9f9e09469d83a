#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# reconnect - ten thousand connections by rdma_cm, and nothing stays behind
#
# Within a host; cm has a few of them on both paths and all machines.
#
# By hand until it has been seen whole: a line "machines: uml-plain" here adds it.
#
# timeout: 700

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts.sh"

t_plan_start reconnect
t_run start 60 hosts_start
export MRSOFT_CM_ADDR=10.0.0.2 MRSOFT_DEV=h1
t_ktap calls 600 ip netns exec ns1 "$MRSOFT_BIN/cm" many_
t_run end 60 hosts_end
t_run unload 40 unload_mrsoft
t_done
