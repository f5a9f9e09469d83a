# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# guest.sh - for suites that run in a test machine: reporting and set-up
#
# A suite (tools/testing/suites/NAME.sh) sources this, calls t_plan_start NAME,
# reports each case and ends with t_done.  The report is KTAP in
# $MRSOFT_RESULTS/NAME.ktap; without its plan line the suite has failed.
#
# Environment, from the machine:
#   MRSOFT_KO       mrsoft.ko for this kernel     MRSOFT_KUNIT  kunit/*.ko
#   MRSOFT_LIVE     kunit/live/*.ko, if the suite kverbs is to run
#   MRSOFT_BIN      programs of selftests/        MRSOFT_SRC    the tree
#   MRSOFT_RESULTS  writable, kept on the host    MRSOFT_MACHINE  uml-plain, vm-6.1, ...

# shellcheck source-path=SCRIPTDIR
. "$(dirname "${BASH_SOURCE[0]}")/ktap.sh"

# wait_for SECONDS CMD... - poll until CMD succeeds.
wait_for()
{
	local limit=$1 end

	shift
	end=$((SECONDS + limit))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		t_pause 0.1
	done
}

# load_rdma - the stock modules below and beside mrsoft.
load_rdma()
{
	# built in, in UML: modprobe finds nothing to do
	modprobe -a -q ib_core ib_uverbs ib_umad rdma_cm rdma_ucm udp_tunnel \
		ip6_udp_tunnel dummy veth
	wait_for 5 test -e /dev/infiniband/rdma_cm
}

# only_our_provider - Each process that opens a device would load a dozen libraries
# for hardware first; the suite devinfo has them all.  Undo: all_providers
only_our_provider()
{
	# a suite that was ended by its time-out may have left it
	umount /etc/libibverbs.d 2>/dev/null
	mkdir -p /tmp/providers &&
		cp /etc/libibverbs.d/rxe.driver /tmp/providers &&
		mount --bind /tmp/providers /etc/libibverbs.d
}

all_providers()
{
	umount /etc/libibverbs.d
}

# load_mrsoft [PARAMETER=VALUE...]
load_mrsoft()
{
	load_rdma
	grep -q '^mrsoft ' /proc/modules || insmod "$MRSOFT_KO" "$@"
}

# unload_mrsoft - must end soon, whoever has a device open.
unload_mrsoft()
{
	timeout 30 rmmod mrsoft
}

# make_dummy NAME [ADDRESS/LEN...] - a dummy netdev that is up.
make_dummy()
{
	local name=$1 address

	shift
	ip link add "$name" type dummy || return 1
	for address in "$@"; do
		ip addr add "$address" dev "$name" || return 1
	done
	ip link set "$name" up
}

# add_link NAME NETDEV [TYPE] - an RDMA device; returns when its port is active
# and its GID table is filled.  TYPE is mrsoft, or LINK_TYPE.  MRSOFT_PATH is
# the path that a device of ours takes.
add_link()
{
	local type=${3:-${LINK_TYPE:-mrsoft}}

	rdma link add "$1" type "$type" netdev "$2" || return 1
	if [ "$type" = mrsoft ] && [ -n "${MRSOFT_PATH:-}" ]; then
		echo "$MRSOFT_PATH" >"/sys/class/infiniband/$1/path" || return 1
	fi
	wait_for 10 grep -q ACTIVE "/sys/class/infiniband/$1/ports/1/state" &&
		wait_for 10 grep -qv '^0000:0000:0000:0000:0000:0000:0000:0000$' \
			"/sys/class/infiniband/$1/ports/1/gids/0"
}

del_link()
{
	timeout 30 rdma link del "$1"
}

# fresh_counters DEVICE - each reader sees them as they are: the core keeps them for
# 10 ms, counted in jiffies, which come late in a busy guest
fresh_counters()
{
	echo 0 >"/sys/class/infiniband/$1/ports/1/hw_counters/lifespan"
}

# listener_up PORT [PID] - does anybody listen on this TCP port, in the network
# namespace of process PID?  Without a process, as gid_index.
listener_up()
{
	local file port line lines

	printf -v port %04X "$1"
	for file in tcp tcp6; do
		mapfile -t lines <"/proc/${2:-self}/net/$file"
		for line in "${lines[@]}"; do
			[[ $line =~ ^\ *[0-9]+:\ [0-9A-F]+:$port\ [0-9A-F]+:0000\ 0A ]] &&
				return 0
		done
	done 2>/dev/null
	return 1
}

# gid_index DEVICE ADDRESS - the RoCEv2 GID index of an IPv4 or IPv6 address.
# Without a process: suites ask again and again while an address is awaited.
gid_index()
{
	local dir=/sys/class/infiniband/$1/ports/1 want gid type a b c d i

	if [[ $2 == *:* ]]; then
		ipv6_in_full "$2"
	else
		IFS=. read -r a b c d <<<"$2"
		printf -v want '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' \
			"$a" "$b" "$c" "$d"
	fi
	# the table is filled from below, and no suite has a hundred addresses
	for ((i = 0; i < 100; i++)); do
		read -r gid <"$dir/gids/$i" && [ "$gid" = "$want" ] &&
			read -r type <"$dir/gid_attrs/types/$i" &&
			[[ $type == *v2* ]] || continue
		echo $i
		return 0
	done 2>/dev/null
	return 1
}

# ipv6_in_full ADDRESS - in $want: eight groups of four digits
ipv6_in_full()
{
	local head=${1%%::*} tail='' group groups=() last=()

	[[ $1 != *::* ]] || tail=${1#*::}
	IFS=: read -ra groups <<<"$head"
	IFS=: read -ra last <<<"$tail"
	while [ $((${#groups[@]} + ${#last[@]})) -lt 8 ]; do
		groups+=(0)
	done
	want=
	for group in "${groups[@]}" "${last[@]}"; do
		printf -v group %04x "0x$group"
		want+=${want:+:}$group
	done
}
