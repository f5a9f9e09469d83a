#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# nvme - NVMe over Fabrics: the kernel's target and host on mrsoft
#
# The namespace of the target is a file on a tmpfs, so what was written can be
# compared behind the target's back.  Topology: lib/ulp.sh.
#
# machines: uml-plain
# fast: no
# timeout: 300

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/ulp.sh"

NQN=nqn.2024-01.org.mrsoft:t
HOSTNQN=nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-000000000001
CFG=/sys/kernel/config/nvmet
SUBSYS=$CFG/subsystems/$NQN
STORE=/dev/shm/nvme
SIZE_MIB=16
[ -z "$ULP_SHORT" ] || SIZE_MIB=2

target_start()
{
	modprobe -a nvmet-rdma nvme-rdma || return 1
	mountpoint -q /sys/kernel/config ||
		mount -t configfs configfs /sys/kernel/config || return 1
	truncate -s 32M $STORE &&
		mkdir $SUBSYS $SUBSYS/namespaces/1 $CFG/ports/1 &&
		echo 1 >$SUBSYS/attr_allow_any_host &&
		echo $STORE >$SUBSYS/namespaces/1/device_path &&
		echo 1 >$SUBSYS/namespaces/1/buffered_io &&
		echo 1 >$SUBSYS/namespaces/1/enable &&
		echo rdma >$CFG/ports/1/addr_trtype &&
		echo ipv4 >$CFG/ports/1/addr_adrfam &&
		echo "$ULP_TARGET" >$CFG/ports/1/addr_traddr &&
		echo 4420 >$CFG/ports/1/addr_trsvcid &&
		port_open
}

port_open()
{
	ln -s $SUBSYS $CFG/ports/1/subsystems/$NQN
}

port_close()
{
	rm $CFG/ports/1/subsystems/$NQN
}

target_end()
{
	port_close 2>/dev/null
	rmdir $CFG/ports/1 && echo 0 >$SUBSYS/namespaces/1/enable &&
		rmdir $SUBSYS/namespaces/1 $SUBSYS && rm $STORE &&
		unload nvme-rdma nvmet-rdma
}

# disk - the block device, once it is there.  With multipath it is not the first again
# when somebody has not yet let go of the one before.
disk()
{
	local dev

	for dev in /dev/nvme[0-9]*n[0-9]*; do
		[ ! -b "$dev" ] || { echo "$dev"; return 0; }
	done
	return 1
}

no_disk()
{
	! disk
}

ctrl()
{
	echo /sys/class/nvme/nvme[0-9]*
}

is_live()
{
	[ "$(cat "$(ctrl)/state")" = live ]
}

connect()
{
	timeout 60 nvme connect -t rdma -a "$ULP_TARGET" -s 4420 -n $NQN \
		--hostnqn=$HOSTNQN --nr-io-queues=2 --reconnect-delay=1 \
		--ctrl-loss-tmo=60 --keep-alive-tmo=5 || return 1
	wait_for 20 disk || return 1
	# the administrative queue counts
	[ "$(cat "$(ctrl)/queue_count")" = 3 ]
}

disconnect()
{
	timeout 60 nvme disconnect -n $NQN && wait_for 20 no_disk
}

# dd with what every use here needs
copy()
{
	timeout 60 dd status=none "$@"
}

# write_read BLOCK - new bytes through one CPU's queue and back through the other's;
# the store has them too
write_read()
{
	local dev block=$1 bytes=$((SIZE_MIB << 20))

	dev=$(disk) || return 1
	[ "$block" != 4096 ] || bytes=$((1 << 20))
	head -c $bytes /dev/urandom >/dev/shm/in
	taskset -c 0 timeout 60 dd status=none if=/dev/shm/in of="$dev" bs="$block" \
		oflag=direct &&
		taskset -c 1 timeout 60 dd status=none if="$dev" of=/dev/shm/out \
			bs="$block" count=$((bytes / block)) iflag=direct &&
		cmp /dev/shm/in /dev/shm/out && cmp -n $bytes /dev/shm/in $STORE
}

# unaligned memory: lists whose first and last page are not whole, and a file system
# that writes from its own pages
file_system()
{
	local dev rc=0

	dev=$(disk) || return 1
	mke2fs -q -t ext4 "$dev" && mkdir -p /run/nvme-mnt &&
		mount "$dev" /run/nvme-mnt || return 1
	cp -r "$MRSOFT_SRC/drivers" /run/nvme-mnt/ && sync -f /run/nvme-mnt || rc=1
	umount /run/nvme-mnt && mount "$dev" /run/nvme-mnt &&
		diff -r "$MRSOFT_SRC/drivers" /run/nvme-mnt/drivers || rc=1
	umount /run/nvme-mnt
	return $rc
}

both_queues()
{
	local dev i pids=() rc=0

	dev=$(disk) || return 1
	for i in 0 1 2 3; do
		head -c 2M /dev/urandom >/dev/shm/in.$i
		(taskset -c $((i % 2)) timeout 60 dd status=none if=/dev/shm/in.$i \
			of="$dev" bs=16k seek=$((i * 128)) oflag=direct &&
			taskset -c $((1 - i % 2)) timeout 60 dd status=none if="$dev" \
				bs=16k skip=$((i * 128)) count=128 iflag=direct |
			cmp - /dev/shm/in.$i) &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || rc=1
	done
	return $rc
}

# What runs while something is taken away: writes and reads until told to stop, or
# an error.
load_start()
{
	local dev

	dev=$(disk) || return 1
	: >/dev/shm/load
	(while [ -e /dev/shm/load ]; do
		dd if=/dev/shm/in of="$dev" bs=64k count=64 oflag=direct &&
			dd if="$dev" of=/dev/null bs=64k count=64 iflag=direct &&
			echo >>/dev/shm/loads || break
	done) >/dev/null 2>&1 &
	LOAD=$!
	load_goes_on
}

# a round that begins after now comes to its end
load_goes_on()
{
	: >/dev/shm/loads
	wait_for 40 sh -c '[ $(wc -l </dev/shm/loads) -ge 2 ]'
}

load_end()
{
	rm -f /dev/shm/load
	wait_for 60 sh -c "! kill -0 $LOAD" && wait "$LOAD"
}

disconnect_under_load()
{
	load_start || return 1
	timeout 60 nvme disconnect -n $NQN || return 1
	load_end
	wait_for 20 no_disk
}

reset_under_load()
{
	load_start || return 1
	echo 1 >"$(ctrl)/reset_controller" &&
		wait_for 40 is_live && load_goes_on && load_end && write_read 65536
}

# The target ends its controllers; the host comes back when the port does
port_under_load()
{
	load_start && port_close || return 1
	wait_for 40 sh -c "! grep live $(ctrl)/state" || return 1
	port_open && wait_for 60 is_live && load_goes_on && load_end &&
		write_read 65536
}

# shorter than the retries last: nothing but time is lost
cable_under_load()
{
	load_start && ulp_cable down || return 1
	sleep 1
	ulp_cable up && load_goes_on && load_end && write_read 65536
}

# The host's controller goes with its device; where that is the target's as well, the
# target's queues too.
link_del_under_load()
{
	load_start && del_link u0 && ulp_gone u0 || return 1
	load_end
	wait_for 20 no_disk
}

# The host goes on trying until it is told to stop
target_link_del_under_load()
{
	MRSOFT_PATH=wire add_link u0 v0 && wait_for 10 gid_index u0 10.9.1.1 &&
		connect && load_start && del_link u1 && ulp_gone u1 || return 1
	wait_for 40 sh -c "! grep live $(ctrl)/state" && disconnect || return 1
	load_end
	true
}

# cases local|wire
cases()
{
	ulp_set "$1"
	t_run start 60 "ulp_$1"
	t_run target 60 target_start
	t_run connect 60 connect
	t_run path 10 ulp_path u0 "$1"
	t_run write_read.64k 100 write_read 65536
	t_run write_read.1m 100 write_read 1048576
	t_long write_read.4k 100 write_read 4096
	t_long both_queues 100 both_queues
	# that of UML has no such file system
	[[ $MRSOFT_MACHINE == uml-* ]] || t_run file_system 100 file_system
	t_run reset_under_load 150 reset_under_load
	t_long disconnect 100 disconnect
	t_long connect_again 60 connect
	t_long data_again 100 write_read 65536
	t_run disconnect_under_load 150 disconnect_under_load
	t_run connect_for_port 60 connect
	t_long port_under_load 200 port_under_load
	[ "$1" = local ] || t_long cable_under_load 150 cable_under_load
	t_run link_del_under_load 150 link_del_under_load
	[ "$1" = local ] ||
		t_long target_link_del_under_load 150 target_link_del_under_load
	t_run target_end 60 target_end
	t_run end 60 "ulp_$1_end"
}

t_plan_start nvme
[ -n "$ULP_SHORT" ] || T_PREFIX=local. cases local
T_PREFIX=wire. cases wire
t_run unload 40 unload_mrsoft
t_done
