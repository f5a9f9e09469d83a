#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# paths.sh - random work over both paths has the same end; see selftests/paths.c
#
# machines: uml-plain uml-kasan uml-lockdep
# timeout: 400

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"

# jumbo frames, so that each path MTU occurs
set_up()
{
	local n

	load_mrsoft
	for n in 0 1; do
		make_dummy pa$n 10.79.$n.1/24 &&
			ip link set pa$n mtu 4300 &&
			add_link padev$n pa$n &&
			wait_for 10 gid_index padev$n 10.79.$n.1 || return 1
	done
}

t_plan_start paths
t_run set_up 40 set_up
export MRSOFT_DEV=padev0 MRSOFT_DEV2=padev1
t_ktap paths 360 "$MRSOFT_BIN/paths"
for n in 0 1; do
	t_run link_del.$n 30 del_link padev$n
	ip link del pa$n
done
t_run unload 30 unload_mrsoft
t_done
