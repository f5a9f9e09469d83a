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
		add_link $dev ij0 &&
		fresh_counters $dev
}

# expect STATUS CMD...
expect()
{
	local want=$1 rc=0

	shift
	"$@" >/tmp/expect 2>&1 || rc=$?
	[ $rc -eq "$want" ] || { echo "$*: $rc"; cat /tmp/expect; return 1; }
}

ctl()
{
	"$MRSOFT_SRC/tools/mrsoftctl/mrsoftctl" "$@"
}

ctl_inject()
{
	expect 0 ctl inject clear &&
		expect 0 ctl inject fail reg nth=7 &&
		expect 0 ctl -d $dev inject drop qp=17 count=2 &&
		expect 1 ctl inject drop qp=0 &&
		expect 1 ctl inject nonsense &&
		expect 3 ctl -d none inject drop &&
		ctl -d $dev inject >/tmp/rules || return 1
	cat /tmp/rules
	# only the numbers of rules are not known here
	sed 1d /tmp/rules | cut -d' ' -f2- >/tmp/rules.now
	printf '%s\n' "0 0 1 fail reg nth=7" "0 0 2 drop qp=17 count=2" |
		diff - /tmp/rules.now || return 1
	expect 0 ctl inject clear "$(tail -n 1 /tmp/rules | cut -d' ' -f1)" &&
		expect 1 ctl inject clear 1 &&
		[ "$(ctl inject | wc -l)" = 2 ] &&
		expect 0 ctl inject clear && [ "$(ctl inject | wc -l)" = 1 ]
}

# with a second device it must be said which
doc_start()
{
	make_dummy net0 10.9.0.1/24 && add_link mr0 net0 &&
		wait_for 10 test "$(gid_index mr0 10.9.0.1)" = 1 &&
		expect 2 ctl inject drop
}

# root alone
not_for_all()
{
	[ "$(stat -c %a $told/inject)" = 600 ]
}

# A device that goes takes with it what it holds back, and lets go who is held
del_with_delayed()
{
	local pid rc=0

	"$MRSOFT_BIN/impair" --hold >/tmp/hold 2>&1 &
	pid=$!
	wait_for 20 grep held /tmp/hold || rc=1
	cat /tmp/hold
	timeout 8 rdma link del $dev || rc=1
	wait $pid
	[ ! -e $told ] || rc=1
	return $rc
}

t_plan_start inject
t_run start 40 start
export MRSOFT_DEV=$dev
t_ktap inject 200 "$MRSOFT_BIN/inject"
# packets go by the wire whatever the path of the others
echo wire >/sys/class/infiniband/$dev/path
MRSOFT_PATH=wire t_ktap impair 200 "$MRSOFT_BIN/impair"
t_run not_for_all 20 not_for_all
t_run ctl 60 ctl_inject
t_run doc_start 40 doc_start
mkdir -p /tmp/doc
t_run del_with_delayed 60 del_with_delayed
PATH=$PATH:$MRSOFT_SRC/tools/mrsoftctl t_ktap doc 200 \
	/usr/bin/python3 "$MRSOFT_SRC/tools/testing/suites/inject_doc.py" \
	"$MRSOFT_SRC/Documentation/testing-your-app.rst" /tmp/doc
t_run del_doc 30 del_link mr0
t_run unload 30 unload_mrsoft
t_done
