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
		sleep 0.1
	done
}

# load_rdma - the stock modules below and beside mrsoft.
load_rdma()
{
	local module

	# built in, in UML: modprobe finds nothing to do
	for module in ib_core ib_uverbs ib_umad rdma_cm rdma_ucm udp_tunnel \
		ip6_udp_tunnel dummy veth; do
		modprobe "$module" 2>/dev/null
	done
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

# listener_up PORT - does anybody listen on this TCP port?
listener_up()
{
	ss -Hltn "sport = :$1" | grep -q .
}

# gid_index DEVICE ADDRESS - the RoCEv2 GID index of an IPv4 or IPv6 address.
gid_index()
{
	local dir=/sys/class/infiniband/$1/ports/1 want

	case $2 in
	*:*)
		want=$(python3 -Sc 'import ipaddress, sys
print(ipaddress.IPv6Address(sys.argv[1]).exploded)' "$2")
		;;
	*)
		# shellcheck disable=SC2046,SC2183
		want=$(printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' \
			$(echo "$2" | tr . ' '))
		;;
	esac
	# The table is filled from below, and no suite has a hundred addresses: a look at
	# all 1024 entries takes seconds, again and again while an address is awaited.
	first_v2 "$dir" "$(grep -lx "$want" "$dir"/gids/[0-9])" ||
		first_v2 "$dir" "$(grep -lx "$want" "$dir"/gids/[0-9][0-9])"
}

# first_v2 DIRECTORY FILES - the index of the first that is of RoCEv2
first_v2()
{
	local dir=$1 i

	for i in $2; do
		i=${i##*/}
		grep -q v2 "$dir/gid_attrs/types/$i" 2>/dev/null || continue
		echo "$i"
		return 0
	done
	return 1
}
