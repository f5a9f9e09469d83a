#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# iser - iSCSI extensions for RDMA: the kernel's target and initiator on mrsoft
#
# The disk of the target is a file on a tmpfs.  Topology: lib/ulp.sh.
#
# By hand: the LIO target warned in iscsit_release_cmd() at the end of a session, twice
# in some thirty runs (README.md).
#
# fast: no
# timeout: 200

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/ulp.sh"

CFG=/sys/kernel/config/target
IQN=iqn.2024-01.org.mrsoft:t
TPG=$CFG/iscsi/$IQN/tpgt_1
HBA=$CFG/core/fileio_0/disk
STORE=/dev/shm/iser
SIZE_MIB=8
[ -z "$ULP_SHORT" ] || SIZE_MIB=2

target_start()
{
	modprobe -a target_core_mod target_core_file iscsi_target_mod ib_isert \
		ib_iser sd_mod || return 1
	mountpoint -q /sys/kernel/config ||
		mount -t configfs configfs /sys/kernel/config || return 1
	truncate -s 32M $STORE &&
		mkdir -p $HBA &&
		echo "fd_dev_name=$STORE,fd_dev_size=$((32 << 20)),fd_buffered_io=1" \
			>$HBA/control &&
		echo 1 >$HBA/enable || return 1
	mkdir -p $TPG/lun/lun_0 "$TPG/np/$ULP_TARGET:3260" &&
		ln -s $HBA $TPG/lun/lun_0/disk &&
		echo 1 >"$TPG/np/$ULP_TARGET:3260/iser" || return 1
	# anybody may log in, without a password, and write
	echo 1 >$TPG/attrib/generate_node_acls &&
		echo 0 >$TPG/attrib/authentication &&
		echo 0 >$TPG/attrib/demo_mode_write_protect &&
		echo 1 >$TPG/attrib/cache_dynamic_acls &&
		echo 1 >$TPG/enable
}

target_end()
{
	echo 0 >$TPG/enable
	rm $TPG/lun/lun_0/disk && rmdir $TPG/lun/lun_0 $TPG/np/* $TPG \
		$CFG/iscsi/$IQN $CFG/iscsi && rmdir $HBA $CFG/core/fileio_0 &&
		rm $STORE || return 1
	unload ib_iser ib_isert
}

daemon_start()
{
	mkdir -p /run/lock/iscsi /etc/iscsi
	echo "InitiatorName=iqn.2024-01.org.mrsoft:h" >/etc/iscsi/initiatorname.iscsi
	iscsid -c /etc/iscsi/iscsid.conf -i /etc/iscsi/initiatorname.iscsi || return 1
	wait_for 10 iscsiadm -m iface
}

daemon_end()
{
	iscsiadm -k 0
	wait_for 10 sh -c '! pidof iscsid'
}

node()
{
	timeout 60 iscsiadm -m node -T $IQN -p "$ULP_TARGET:3260" "$@"
}

login()
{
	node -I iser -o new && node -o update -n iface.transport_name -v iser &&
		node -o update -n node.session.timeo.replacement_timeout -v 30 &&
		node -o update -n node.conn[0].timeo.noop_out_interval -v 2 &&
		node -o update -n node.conn[0].timeo.noop_out_timeout -v 3 &&
		node -l && wait_for 20 disk || return 1
	iscsiadm -m session | grep '^iser:'
}

logout()
{
	node -u && wait_for 20 no_disk && node -o delete
}

# disk - the block device, once it is there
disk()
{
	local dev

	for dev in /sys/block/sd*; do
		[ -e "$dev" ] && grep -q LIO-ORG "$dev/device/vendor" || continue
		echo "/dev/${dev##*/}"
		return 0
	done
	return 1
}

no_disk()
{
	! disk
}

# write_read BLOCK - new bytes there and back; the store has them too
write_read()
{
	local dev block=$1 bytes=$((SIZE_MIB << 20))

	dev=$(disk) || return 1
	[ "$block" != 4096 ] || bytes=$((1 << 19))
	head -c $bytes /dev/urandom >/dev/shm/in
	dd status=none if=/dev/shm/in of="$dev" bs="$block" oflag=direct &&
		dd status=none if="$dev" of=/dev/shm/out bs="$block" \
			count=$((bytes / block)) iflag=direct &&
		cmp /dev/shm/in /dev/shm/out && cmp -n $bytes /dev/shm/in $STORE
}

cases()
{
	ulp_set "$1"
	t_run start 60 "ulp_$1"
	t_run target 60 target_start
	t_run login 90 login
	t_run path 10 ulp_path u0 "$1"
	t_run write_read.64k 60 write_read 65536
	t_run write_read.1m 60 write_read 1048576
	t_long write_read.4k 60 write_read 4096
	t_run logout 60 logout
	t_long login_again 90 login
	t_long data_again 60 write_read 65536
	t_long logout_again 60 logout
	t_run target_end 60 target_end
	t_run end 60 "ulp_$1_end"
}

t_plan_start iser
t_run daemon 30 daemon_start
[ -n "$ULP_SHORT" ] || T_PREFIX=local. cases local
T_PREFIX=wire. cases wire
t_run daemon_end 30 daemon_end
t_run unload 40 unload_mrsoft
t_done
