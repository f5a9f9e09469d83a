#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# bulk - one message of a GiB between two hosts; see selftests/bulk.c
#
# machines: uml-plain
# fast: no
# timeout: 500

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts.sh"

t_plan_start bulk
t_run start 60 hosts_start
export MRSOFT_DEV=$HOST0_DEV MRSOFT_DEV2=$HOST1_DEV
t_ktap bulk 480 "$MRSOFT_BIN/bulk"
t_run end 60 hosts_end
t_run unload 40 unload_mrsoft
t_done
