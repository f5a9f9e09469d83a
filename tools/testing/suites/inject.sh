#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# inject - faults that are asked for strike what they name and nothing else
#
# machines: uml-plain uml-kasan vm-6.1
# wire: uml-plain uml-kasan
# timeout: 400

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"

dev=ij0
told=/sys/kernel/debug/mrsoft/$dev

start()
{
	# shellcheck disable=SC2119
	load_mrsoft &&
		make_dummy ij0 10.77.0.1/24 &&
		add_link $dev ij0 || return 1
	# each reader sees the counters as they are
	echo 0 >/sys/class/infiniband/$dev/ports/1/hw_counters/lifespan
}

# root alone
not_for_all()
{
	[ "$(stat -c %a $told/inject)" = 600 ]
}

t_plan_start inject
t_run start 40 start
export MRSOFT_DEV=$dev
t_ktap inject 200 "$MRSOFT_BIN/inject"
t_run not_for_all 20 not_for_all
t_run del 30 del_link $dev
t_run unload 30 unload_mrsoft
t_done
