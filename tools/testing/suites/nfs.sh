#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# nfs - NFS over RDMA: the kernel's server and client on mrsoft, versions 3 and 4
#
# What is exported is a tmpfs.  local: server and client on one device; wire: the
# server in the initial namespace, the client in another, see lib/hosts.sh.
#
# machines: uml-plain
# fast: no
# timeout: 200

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/ulp.sh"

# shellcheck disable=SC2034 # of hosts.sh
HOST0_INIT=1
EXPORT=/run/export
MNT=/run/nfs-mnt
TREE=$MRSOFT_SRC/drivers
VERSIONS="3 4.1"
[ -z "$ULP_SHORT" ] || TREE=$MRSOFT_SRC/include VERSIONS=4.1
# Since 6.15 a client outside the initial namespace takes a network that is out of reach
# for gone, even with a hard mount; without an RDMA device it is.
OPTIONS=proto=rdma,port=20049,nolock,timeo=50
[ "$MRSOFT_MACHINE" = vm-6.1 ] || OPTIONS+=,fatal_neterrors=none
# server, and prefix of commands of the client
server=10.9.0.1
client=()

nfsd_start()
{
	rpc.nfsd --no-udp --rdma=20049 --grace-time 10 --lease-time 10 4 &&
		grep 'rdma 20049' /proc/fs/nfsd/portlist
}

server_start()
{
	modprobe -a nfsd rpcrdma nfsv3 nfsv4 || return 1
	mkdir -p $EXPORT $MNT /run/rpc_pipefs /var/lib/nfs/nfsdcld &&
		mount -t tmpfs tmpfs $EXPORT &&
		mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs || return 1
	# who has been here: without, each start begins with ten seconds of grace
	nfsdcld -p /run/rpc_pipefs || return 1
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd || return 1
	rpcbind -w || return 1
	wait_for 10 rpcinfo -p 127.0.0.1 || return 1
	rpc.mountd
	exportfs -o rw,no_root_squash,insecure,fsid=0,no_subtree_check "*:$EXPORT" &&
		nfsd_start
}

server_end()
{
	local name

	rpc.nfsd 0
	exportfs -ua
	for name in rpc.mountd rpcbind nfsdcld; do
		kill "$(pidof $name)"
	done
	umount /proc/fs/nfsd
	umount $EXPORT
	wait_for 10 umount /run/rpc_pipefs
	unload nfsv3 nfs_layout_flexfiles nfs_layout_nfsv41_files nfsv4 nfs nfsd rpcrdma
}

do_mount()
{
	local what=$server:/

	[ "$1" != 3 ] || what=$server:$EXPORT
	timeout 60 "${client[@]}" mount -t nfs -o "vers=$1,$OPTIONS" "$what" $MNT &&
		grep "$MNT nfs.*proto=rdma" /proc/mounts
}

do_umount()
{
	timeout 60 umount $MNT
}

# the client's page cache does not answer
drop()
{
	sync
	echo 3 >/proc/sys/vm/drop_caches
}

tree()
{
	cp -r "$TREE" $MNT/tree && drop &&
		diff -r "$TREE" $MNT/tree && diff -r "$TREE" $EXPORT/tree &&
		rm -r $MNT/tree && [ ! -e $EXPORT/tree ]
}

# whole pages and not, longer than one request
file()
{
	head -c 5000001 /dev/urandom >/dev/shm/file &&
		cp /dev/shm/file $MNT/file && cmp /dev/shm/file $EXPORT/file &&
		drop && cmp /dev/shm/file $MNT/file &&
		rm $MNT/file
}

# not through the page cache: the client registers the program's memory
direct()
{
	head -c 4M /dev/urandom >/dev/shm/file &&
		dd status=none if=/dev/shm/file of=$MNT/direct bs=1M oflag=direct &&
		cmp /dev/shm/file $EXPORT/direct &&
		dd status=none if=$MNT/direct of=/dev/shm/back bs=256k iflag=direct &&
		cmp /dev/shm/file /dev/shm/back && rm $MNT/direct
}

# long directories, long names: answers that do not fit into a message
names()
{
	local i name

	name=$(printf 'n%.0s' $(seq 200))
	# not into a directory that is no mount
	mkdir $MNT/names && [ -d $EXPORT/names ] || return 1
	for i in $(seq 200); do
		: >"$EXPORT/names/$name.$i"
	done
	ln -s "$name$name$name" $EXPORT/names/link
	drop
	[ "$(find $MNT/names -type f | wc -l)" = 200 ] &&
		[ "$(readlink $MNT/names/link)" = "$name$name$name" ] &&
		rm -r $MNT/names
}

load_begin()
{
	: >/dev/shm/load
	head -c 1M /dev/urandom >/dev/shm/in
	(while [ -e /dev/shm/load ]; do
		dd if=/dev/shm/in of=$MNT/load bs=64k oflag=direct &&
			dd if=$MNT/load of=/dev/shm/load.out bs=64k iflag=direct &&
			cmp /dev/shm/in /dev/shm/load.out &&
			echo >>/dev/shm/loads || break
	done) >/dev/null 2>&1 &
	LOAD=$!
}

load_start()
{
	load_begin
	load_goes_on
}

# a round that begins after now comes to its end
load_goes_on()
{
	: >/dev/shm/loads
	wait_for 60 sh -c '[ $(wc -l </dev/shm/loads) -ge 2 ]'
}

load_end()
{
	rm -f /dev/shm/load
	wait_for 60 sh -c "! kill -0 $LOAD" && wait "$LOAD" && rm -f $MNT/load
}

# A hard mount waits for its server.  It is stopped between requests: a connection that
# is asked for while it stops stays in the queue of the listener that goes (sc_accept_q
# of svcrdma), neither accepted nor rejected, and the client waits for the CM's
# answer; on rdma_rxe as well.
server_restart()
{
	rpc.nfsd 0 || return 1
	load_begin
	sleep 1
	nfsd_start && load_goes_on && load_end && file
}

cable()
{
	load_start && ip link set v0 down || return 1
	sleep 1
	ip link set v0 up && load_goes_on && load_end && file
}

add_again()
{
	case $1 in
	local)	add_link u0 ulpnet && wait_for 10 gid_index u0 $server ;;
	wire)	host_link 1 mrsoft ;;
	esac
}

# The client's requests wait; when there is a device again they go on
link_del()
{
	local dev=u0

	[ "$1" = local ] || dev=h1
	load_start && del_link $dev && ulp_gone $dev || return 1
	add_again "$1" && load_goes_on && load_end && file
}

cases()
{
	local vers

	t_run server 60 server_start
	for vers in $VERSIONS; do
		t_run v$vers.mount 60 do_mount $vers
		t_run v$vers.tree 100 tree
		t_run v$vers.file 100 file
		t_run v$vers.direct 100 direct
		t_long v$vers.names 100 names
		t_run v$vers.umount 60 do_umount
	done
	t_run mount 60 do_mount 3
	t_run path 10 ulp_path "$2" "$1"
	t_long server_restart 100 server_restart
	[ "$1" = local ] || t_long cable 100 cable
	t_run link_del 100 link_del "$1"
	t_run umount 60 do_umount
}

t_plan_start nfs
ulp_set local
if [ -z "$ULP_SHORT" ]; then
	t_run local.start 60 ulp_local
	T_PREFIX=local. cases local u0
	t_run local.server_end 60 server_end
	t_run local.end 60 ulp_local_end
fi

server=10.0.0.1 client=(nsenter --net=/run/netns/ns1)
t_run wire.start 60 hosts_start
T_PREFIX=wire. cases wire h0
t_run wire.server_end 60 server_end
t_run wire.end 60 hosts_end
t_run unload 40 unload_mrsoft
t_done
