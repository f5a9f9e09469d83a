# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# ulp.sh - for suites of kernel consumers: a target and its host in one kernel
#
#	local:	u0 on ulpnet (10.9.0.1), target and host
#	wire:	u0 on v0 (10.9.1.1) ==== v1 (10.9.1.2) on u1, both in the initial
#		namespace, since most consumers know no other
#
# After guest.sh.  The target has the address $ULP_TARGET, of the device $ULP_TDEV.

ULP_TARGET=
ULP_TDEV=
# A kernel that is emulated gets less to do: the wire only, and not what t_long has.
ULP_SHORT=
[[ $MRSOFT_MACHINE != vm-* ]] || ULP_SHORT=1

# t_long CASE SECONDS COMMAND... - as t_run
t_long()
{
	[ -n "$ULP_SHORT" ] || t_run "$@"
}

# ulp_set local|wire - the names
ulp_set()
{
	# shellcheck disable=SC2034 # for the suites
	case $1 in
	local)	ULP_TARGET=10.9.0.1 ULP_TDEV=u0 ;;
	wire)	ULP_TARGET=10.9.1.2 ULP_TDEV=u1 ;;
	esac
}

# ulp_local - one device; messages are copied
ulp_local()
{
	load_mrsoft && make_dummy ulpnet 10.9.0.1/24 && add_link u0 ulpnet &&
		wait_for 10 gid_index u0 10.9.0.1
}

ulp_local_end()
{
	del_link u0 2>/dev/null
	ip link del ulpnet
}

# An address of this kernel is reached by way of the other one's netdev.
ulp_routes()
{
	ip route replace 10.9.1.2 dev v0 src 10.9.1.1 table 101 &&
		ip route replace 10.9.1.1 dev v1 src 10.9.1.2 table 102
}

ulp_wire_rules()
{
	local verb=$1

	ip rule "$verb" pref 1 iif v0 lookup local &&
		ip rule "$verb" pref 2 iif v1 lookup local &&
		ip rule "$verb" pref 3 to 10.9.1.2 lookup 101 &&
		ip rule "$verb" pref 4 to 10.9.1.1 lookup 102
}

# ulp_wire - two devices that talk by packets over a veth pair
ulp_wire()
{
	ulp_two wire
}

# ulp_two PATH - two devices, for consumers to which an own address is no RDMA
ulp_two()
{
	local n path=${MRSOFT_PATH:-}

	load_mrsoft && ip link add v0 type veth peer name v1 || return 1
	for n in 0 1; do
		sysctl -qw net.ipv4.conf.v$n.accept_local=1 \
			net.ipv4.conf.v$n.rp_filter=0 net.ipv4.conf.all.rp_filter=0 &&
			ip addr add "10.9.1.$((n + 1))/24" dev v$n &&
			ip link set v$n mtu 4200 up || return 1
	done
	ip rule add pref 100 lookup local && ip rule del pref 0 &&
		ulp_wire_rules add && ulp_routes || return 1
	MRSOFT_PATH=$1
	for n in 0 1; do
		add_link u$n v$n && wait_for 10 gid_index u$n "10.9.1.$((n + 1))" ||
			return 1
	done
	MRSOFT_PATH=$path
}

ulp_wire_end()
{
	del_link u0 2>/dev/null
	del_link u1 2>/dev/null
	ip link del v0
	ulp_wire_rules del
	ip rule add pref 0 lookup local && ip rule del pref 100
}

# ulp_cable down|up - of the wire
ulp_cable()
{
	ip link set v0 "$1" || return 1
	[ "$1" != up ] || ulp_routes
}

# ulp_gone DEVICE...
ulp_gone()
{
	while [ $# -gt 0 ]; do
		[ ! -e "/sys/class/infiniband/$1" ] || return 1
		shift
	done
}

# ulp_path DEVICE local|wire - the QPs that the consumer has there now take this one
ulp_path()
{
	rdma -dd resource show qp link "$1/1" | grep RTS | grep "drv_path $2"
}

# unload MODULE... - what used it a moment ago may still hold it
unload()
{
	while [ $# -gt 0 ]; do
		if grep -q "^${1//-/_} " /proc/modules; then
			wait_for 20 timeout 30 rmmod "$1" || return 1
		fi
		shift
	done
}
