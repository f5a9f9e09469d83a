#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# diag - the device says why: debugfs, trace points, mrsoftctl
#
# machines: uml-plain uml-kasan uml-lockdep vm-6.1
# wire: uml-plain
# timeout: 400

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"

ctl=$MRSOFT_SRC/tools/mrsoftctl/mrsoftctl
told=/sys/kernel/debug/mrsoft

# an example of a key that is gone, and that somebody was refused by
gone_key()
{
	awk '!/^#/ && $14 == "deregistered" { key = $11 } END { print key }' \
		$told/dg0/diary
}

ctl_status()
{
	"$ctl" status | grep '^dg0: port ACTIVE, path ' &&
		"$ctl" status | grep '^  refused key_stale: [1-9]' &&
		"$ctl" status | grep '^dg1: ' &&
		! "$ctl" -d dg0 status | grep '^dg1'
}

ctl_why()
{
	local key

	key=$(gone_key)
	[ -n "$key" ] || return 1
	"$ctl" why "$key" | tee /tmp/why || return 1
	grep "^$key was deregistered at .* by who_did_it/" /tmp/why &&
		grep "refused: .* WRITE of QP .*: key_stale, key $key .*; the key was deregistered .* ms before by who_did_it/" /tmp/why &&
		"$ctl" -d dg0 why $((key)) >/dev/null || return 1
	! "$ctl" why 0x7fffff01 >/dev/null
}

# expect STATUS CMD...
expect()
{
	local want=$1 rc=0

	shift
	"$@" >/dev/null 2>&1 || rc=$?
	[ $rc -eq "$want" ]
}

ctl_statuses()
{
	expect 0 "$ctl" -h && expect 2 "$ctl" && expect 2 "$ctl" nonsense &&
		expect 2 "$ctl" why && expect 2 "$ctl" why xyz &&
		expect 3 "$ctl" -d none status && expect 1 "$ctl" why 0x7fffff01 &&
		expect 3 env MRSOFT_DEBUGFS=/nowhere "$ctl" status &&
		expect 2 "$ctl" diary -x && expect 0 "$ctl" diary -n 3
}

# the first line is from before
followed()
{
	tail -n +2 /tmp/follow | grep "the key was deregistered"
}

# what comes is shown while it is followed
ctl_follow()
{
	local pid rc=0

	# not what was there before the truncation below
	rm -f /tmp/follow
	(exec "$ctl" -d dg0 diary -n 1 -f) >/tmp/follow 2>&1 &
	pid=$!
	wait_for 40 test -s /tmp/follow || rc=1
	[ "$(wc -l </tmp/follow)" = 1 ] || rc=1
	"$MRSOFT_BIN/diag" gone_region >/dev/null
	wait_for 40 followed || rc=1
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null
	pkill -f "mrsoftctl -d dg0 diary"
	return $rc
}

ctl_lists()
{
	"$ctl" mrs | grep '^dg0: # key kind' &&
		"$ctl" -d dg0 busy | grep '^# object' &&
		"$ctl" -d dg0 ended | grep ' deregistered '
}

# the folder has the name of the device
rename_device()
{
	rdma dev set dg1 name dg9 && wait_for 20 test -d $told/dg9 &&
		[ ! -d $told/dg1 ] && rdma dev set dg9 name dg1 &&
		wait_for 20 test -d $told/dg1
}

# root alone
not_for_all()
{
	[ "$(stat -c %a $told/dg0/diary $told/dg0/mrs $told/dg0/busy \
		$told/dg0/ended | sort -u)" = 400 ]
}

# who has a file open does not keep the device, and gets an end or an error
del_while_read()
{
	local fd rc=0

	exec {fd}<$told/dg1/mrs
	timeout 30 rdma link del dg1 || rc=1
	timeout 20 cat <&$fd >/dev/null 2>&1
	[ $? -ne 124 ] || rc=1
	exec {fd}<&-
	[ ! -d $told/dg1 ] || rc=1
	return $rc
}

t_plan_start diag
# shellcheck disable=SC2119
load_mrsoft
make_dummy dg0 10.77.0.1/24
make_dummy dg1 10.77.1.1/24
add_link dg0 dg0
add_link dg1 dg1
export MRSOFT_DEV=dg0 MRSOFT_DEV2=dg1
t_ktap diag 150 "$MRSOFT_BIN/diag"
t_run ctl_status 60 ctl_status
t_run ctl_why 60 ctl_why
t_run ctl_statuses 90 ctl_statuses
t_run ctl_follow 120 ctl_follow
t_run ctl_lists 60 ctl_lists
t_run not_for_all 20 not_for_all
t_run rename 60 rename_device
t_run del_while_read 90 del_while_read
t_run del 30 del_link dg0
t_run unload 30 unload_mrsoft
t_run nothing_left 20 test ! -e $told
t_done
