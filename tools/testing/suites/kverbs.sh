#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# machines: uml-plain uml-kasan uml-lockdep vm-6.1
# fast: yes
# timeout: 500
#
# kverbs - the verbs of the kernel on live devices, kunit/live, on both paths
#
#	mr0 on d0 (10.9.0.1, fd00:9::1)    mr1 on d1 (10.9.1.1, fd00:9:1::1)
#	mr2 on d2: a case unregisters it
#
# Where KUnit can choose cases (UML), one of them comes again with packets lost.

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/kunit.sh"

# devices PATH
devices()
{
	make_dummy d0 10.9.0.1/24 fd00:9::1/64 || return 1
	make_dummy d1 10.9.1.1/24 fd00:9:1::1/64 || return 1
	ip link set d0 mtu 4200 && ip link set d1 mtu 4200 || return 1
	export MRSOFT_PATH=$1
	make_dummy d2 && add_link mr0 d0 && add_link mr1 d1 && add_link mr2 d2 || return 1
	wait_for 10 gid_index mr0 10.9.0.1 && wait_for 10 gid_index mr1 10.9.1.1 &&
		wait_for 10 gid_index mr0 fd00:9::1 &&
		wait_for 10 gid_index mr1 fd00:9:1::1
}

# All that the cases made is gone: what is left is the idle device's.  Not CQs: the
# core's pool keeps those that it made.
objects()
{
	rdma resource show | sed '/mr2/d; s/ cq [0-9]*//; s/^[0-9]*: //'
}

# written without a newline, which would be part of it
FILTER=/sys/module/kunit/parameters/filter_glob

# what goes from one device to another of this host goes over lo
loss_on()
{
	printf mr.mr_once >$FILTER && tc qdisc add dev lo root netem loss 20%
}

loss_off()
{
	printf '*.*' >$FILTER
	tc qdisc del dev lo root
}

# something was lost, and sent again
sent_again()
{
	[ "$(cat /sys/class/infiniband/mr0/ports/1/hw_counters/retransmits)" -gt "$1" ]
}

# Local operations run once, whatever is sent again around them
once()
{
	local before

	before=$(cat /sys/class/infiniband/mr0/ports/1/hw_counters/retransmits)
	t_run wire.loss 20 loss_on
	KUNIT_PREFIX=wire.loss. kunit_load "$MRSOFT_LIVE/kverbs.ko" devs=mr0,mr1 \
		spare=mr1 wire=1
	t_run wire.loss.sent_again 20 sent_again "$before"
	t_run wire.loss.end 20 loss_off
}

no_devices()
{
	del_link mr0 && del_link mr1 && ip link del d0 && ip link del d1 &&
		ip link del d2
}

t_plan_start kverbs
t_run load 60 load_mrsoft
for path in local wire; do
	t_run "$path.devices" 60 devices $path
	idle=$(objects)
	KUNIT_PREFIX=$path. kunit_load "$MRSOFT_LIVE/kverbs.ko" devs=mr0,mr1 \
		spare=mr2 wire="$([ $path = wire ] && echo 1 || echo 0)"
	[ $path = local ] || [ ! -e $FILTER ] || once
	left=$(objects)
	t_run "$path.nothing_left" 10 test "$left" = "$idle"
	t_run "$path.remove" 60 no_devices
done
# UML's KASAN does not clear the shadow of a module that goes
[ "$MRSOFT_MACHINE" = uml-kasan ] || t_run unload 40 unload_mrsoft
t_done
