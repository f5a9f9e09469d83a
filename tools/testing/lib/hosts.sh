# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# hosts.sh - for suites with two hosts: two network namespaces and a wire
#
#	ns0: h0 on v0 (10.0.0.1, fd00::1) ==== v1 (10.0.0.2, fd00::2) on h1: ns1
#
# After guest.sh.  HOST0_TYPE and HOST1_TYPE (mrsoft) are the RDMA devices' types.
# HOST0_INIT=1: host 0 is the initial namespace.

# shellcheck disable=SC2034 # for the suites
HOST0_DEV=h0 HOST1_DEV=h1
HOST0_TYPE=${HOST0_TYPE:-mrsoft}
HOST1_TYPE=${HOST1_TYPE:-mrsoft}
HOST_MTU=4200

# on N CMD... - in the network namespace of host N
on()
{
	local n=$1

	shift
	if [ "$n" = 0 ] && [ -n "${HOST0_INIT:-}" ]; then
		"$@"
	else
		ip netns exec "ns$n" "$@"
	fi
}

# exec_on N CMD... - the same, and the shell becomes CMD
exec_on()
{
	local n=$1

	shift
	[ "$n" = 0 ] && [ -n "${HOST0_INIT:-}" ] || set -- ip netns exec "ns$n" "$@"
	exec "$@"
}

# host_dev N - the name of its device.  DEVS: another than h
host_dev()
{
	echo "${DEVS:-h}$1"
}

# host_gid N [FAMILY] - index of its GID; FAMILY 4 (default), 6, or ll: the
# link-local one.  NET4 and NET6: of other networks than the first; LL_NETDEV: of
# another netdev than the device's, with % for the host.
host_gid()
{
	local n=$1 dev

	dev=$(host_dev "$n")
	case ${2:-4} in
	ll)	netdev_ll_gid "$dev" "${LL_NETDEV:+${LL_NETDEV/\%/$n}}" ;;
	6)	gid_index "$dev" "${NET6:-fd00:}:$((n + 1))" ;;
	*)	gid_index "$dev" "${NET4:-10.0.0}.$((n + 1))" ;;
	esac
}

# netdev_ll_gid DEVICE [NETDEV] - among the first ten
netdev_ll_gid()
{
	local dir=/sys/class/infiniband/$1/ports/1 i

	for i in 0 1 2 3 4 5 6 7 8 9; do
		grep -q ^fe80 "$dir/gids/$i" || continue
		[ -n "${2:-}" ] && [ "$(cat "$dir/gid_attrs/ndevs/$i")" != "$2" ] ||
			{ echo $i; return 0; }
	done 2>/dev/null
	return 1
}

# host_stats N - counters of its device that are not zero
host_stats()
{
	grep -H -v '^0$' \
		"/sys/class/infiniband/$(host_dev "$1")/ports/1/hw_counters"/* |
		sed 's/.*hw_counters.//'
}

host_netdev()
{
	local n=$1 netdev=$2

	if [ "$n" = 0 ] && [ -n "${HOST0_INIT:-}" ]; then
		ip link set "$netdev" name v0 || return 1
	else
		ip link set "$netdev" netns "ns$n" name "v$n" || return 1
	fi
	on "$n" ip addr add "10.0.0.$((n + 1))/24" dev "v$n" &&
		on "$n" ip addr add "fd00::$((n + 1))/64" dev "v$n" nodad &&
		on "$n" ip link set "v$n" mtu $HOST_MTU up &&
		on "$n" ip link set lo up
}

host_link()
{
	local n=$1 type=$2

	on "$n" rdma link add "h$n" type "$type" netdev "v$n" || return 1
	if [ "$type" = mrsoft ] && [ -n "${MRSOFT_PATH:-}" ]; then
		echo "$MRSOFT_PATH" >"/sys/class/infiniband/h$n/path" || return 1
	fi
	wait_for 10 host_gid "$n" && wait_for 10 host_gid "$n" 6
}

# hosts_start [cable] - with "cable" the wire ends in va and vb, which a program
# joins (selftests/cable.c)
hosts_start()
{
	only_our_provider && load_mrsoft || return 1
	[ "$HOST0_TYPE$HOST1_TYPE" = mrsoftmrsoft ] || modprobe rdma_rxe ||
		return 1
	ip netns add ns0 && ip netns add ns1 || return 1
	if [ "${1:-}" = cable ]; then
		ip link add x0 type veth peer name va &&
			ip link add x1 type veth peer name vb &&
			ip link set va mtu $HOST_MTU arp off up &&
			ip link set vb mtu $HOST_MTU arp off up || return 1
		# a program sees frames as they are on the wire
		ethtool -K x0 tx off >/dev/null
		ethtool -K x1 tx off >/dev/null
	else
		ip link add x0 type veth peer name x1 || return 1
	fi
	host_netdev 0 x0 && host_netdev 1 x1 &&
		host_link 0 "$HOST0_TYPE" && host_link 1 "$HOST1_TYPE" || return 1
	# a neighbour that is asked for before the wire is up is not found
	[ "${1:-}" = cable ] ||
		{ wait_for 10 reaches 10.0.0.2 && wait_for 10 reaches fd00::2; }
}

# reaches ADDRESS - host 0 does: nobody listens there, and says so
reaches()
{
	on 0 timeout 2 bash -c ": >/dev/tcp/$1/9" 2>&1 | grep -q refused
}

hosts_end()
{
	local n

	for n in 0 1; do
		timeout 30 rdma link del "h$n"
	done
	ip link del v0 2>/dev/null
	ip netns del ns0
	ip netns del ns1
	all_providers
	# the far ends are gone with the namespaces
	! ip link show va >/dev/null 2>&1
}

# host_vlan N - v<N>.7 above the netdev, whose GIDs belong to its device
host_vlan()
{
	on "$1" ip link add link "v$1" name "v$1.7" type vlan id 7 &&
		on "$1" ip addr add "10.0.7.$(($1 + 1))/24" dev "v$1.7" &&
		on "$1" ip addr add "fd07::$(($1 + 1))/64" dev "v$1.7" nodad &&
		on "$1" ip link set "v$1.7" up &&
		wait_for 10 gid_index "h$1" "10.0.7.$(($1 + 1))" &&
		wait_for 10 gid_index "h$1" "fd07::$(($1 + 1))"
}

# netem ARGUMENT... - what both directions of the wire do to packets
netem()
{
	local n

	for n in 0 1; do
		on $n tc qdisc replace dev v$n root netem limit 100000 "$@" ||
			return 1
	done
}

# what host 0 sends waits in the queue of its netdev
slow_wire()
{
	on 0 tc qdisc add dev v0 root netem delay 30s
}

# listener_on N PORT
listener_on()
{
	[ -n "$(on "$1" ss -Hltn "sport = :$2")" ]
}

# between SERVER CMD... - CMD on host SERVER, and as its client on the other; it
# finds device and GID index in DEV and GID, and gets the server's address.
# ON_PORT: the TCP port, where several run at once
between()
{
	local server=$1 client=$((1 - $1))
	local port=${ON_PORT:-$((20000 + RANDOM % 10000))}
	local pid rc=0

	shift
	(
		export DEV GID PORT=$port SERVER=1
		DEV=$(host_dev "$server") GID=$(host_gid "$server" "${FAMILY:-4}")
		# the process is to be the one in the namespace
		exec_on "$server" timeout 60 "$@"
	) &
	pid=$!
	wait_for 10 listener_up "$port" $pid || return 1
	DEV=$(host_dev "$client") GID=$(host_gid "$client" "${FAMILY:-4}") PORT=$port \
		SERVER='' on "$client" timeout 60 "$@" "10.0.0.$((server + 1))" || rc=1
	[ $rc -eq 0 ] || kill $pid 2>/dev/null
	wait $pid || rc=1
	return $rc
}
