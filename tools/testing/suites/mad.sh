#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# mad.sh - QP 1: performance management by /dev/infiniband/umadN, and nonsense
#
# A port is asked by itself, then by another host.  perfquery of infiniband-diags
# cannot ask: it opens an agent of the subnet management class first, which no RoCE
# port has, and addresses by LID.
#
# machines: uml-plain uml-kasan
# timeout: 500

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts.sh"

# links come and go while a process has files of theirs open and MADs under way
deleted_while_open()
{
	local pid rc=0

	for _ in 1 2 3 4 5 6; do
		"$MRSOFT_BIN/mad_fuzz" until_gone &
		pid=$!
		sleep 0.$((RANDOM % 10))
		del_link mad0 || rc=1
		sleep 0.$((RANDOM % 3))
		add_link mad0 md0 || rc=1
		sleep 0.2
		kill -0 $pid || rc=1
		kill -9 $pid
		wait $pid
		[ $rc -eq 0 ] || return 1
	done 2>/dev/null
}

# the netdev goes, and the module, with files open
netdev_goes_while_open()
{
	local pid rc=0

	"$MRSOFT_BIN/mad_fuzz" until_gone &
	pid=$!
	sleep 0.5
	timeout 20 ip link del md0 || rc=1
	wait_for 10 test ! -e /sys/class/infiniband/mad0 || rc=1
	unload_mrsoft || rc=1
	kill -9 $pid
	wait $pid 2>/dev/null
	return $rc
}

# one device: asks and answers
itself()
{
	# shellcheck disable=SC2119
	load_mrsoft && make_dummy md0 10.77.0.1/24 fd77::1/64 &&
		add_link mad0 md0 && wait_for 10 gid_index mad0 fd77::1 ||
		t_fail setup
	fresh_counters mad0
	export MRSOFT_DEV=mad0 MRSOFT_DEV2=mad0 MAD_GID=fd77::1
	MAD_INDEX=$(gid_index mad0 fd77::1)
	export MAD_INDEX
	t_ktap itself 300 "$MRSOFT_BIN/mad"
	t_ktap fuzz 250 "$MRSOFT_BIN/mad_fuzz"
	t_run deleted_while_open 120 deleted_while_open
}

# host 0 asks host 1
across()
{
	t_run hosts_start 60 hosts_start
	fresh_counters h0
	fresh_counters h1
	export MRSOFT_DEV=h0 MRSOFT_DEV2=h1 MAD_GID=fd00::2
	MAD_INDEX=$(host_gid 0 6)
	export MAD_INDEX
	t_ktap across 300 "$MRSOFT_BIN/mad"
	t_run hosts_end 60 hosts_end
}

t_plan_start mad
across
itself
# UML's KASAN does not clear the shadow of a module that goes
if [ "$MRSOFT_MACHINE" = uml-kasan ]; then
	t_run link_del 40 del_link mad0
	ip link del md0
else
	t_run netdev_goes_while_open 60 netdev_goes_while_open
fi
t_done
