#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# netdevs - every kind of netdev as a port, and what happens to it under traffic
#
#	ns0: h0 on v0 ---- p0 ==== p1 ---- v1 with h1: ns1
#	               (q0 ==== q1, for the bond)
#
# v0 and v1 are of the kind in question, p0 and p1 a veth pair.
#
# uml-lockdep: the events of one family.
#
# machines: uml-plain uml-lockdep
# fast: no
# timeout: 600

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts-cases.sh"

SYS=/sys/class/infiniband
# not all families and services
FEW=
[ "$MRSOFT_MACHINE" = uml-plain ] || FEW=1

# both CMD... - with N of host 0 and 1 as the last argument
both()
{
	"$@" 0 && "$@" 1
}

# --- kinds --------------------------------------------------------------------

namespaces()
{
	ip netns add ns0 && ip netns add ns1 && pair p && pair q
}

pair()
{
	ip link add "$1"0 netns ns0 mtu $HOST_MTU type veth \
		peer name "$1"1 netns ns1 mtu $HOST_MTU &&
		on 0 ip link set "$1"0 up && on 1 ip link set "$1"1 up
}

# make_KIND N - v0 or v1
make_veth()
{
	on "$1" ip link set "p$1" down && on "$1" ip link set "p$1" name "v$1"
}

make_vlan()
{
	on "$1" ip link add link "p$1" name "v$1" type vlan id 5
}

make_bridge()
{
	on "$1" ip link add "v$1" type bridge &&
		on "$1" ip link set "p$1" master "v$1"
}

make_bond()
{
	local port

	on "$1" ip link add "v$1" type bond mode active-backup miimon 10 ||
		return 1
	for port in p q; do
		on "$1" ip link set "$port$1" down &&
			on "$1" ip link set "$port$1" master "v$1" || return 1
	done
	on "$1" ip link set "v$1" type bond active_slave "p$1"
}

make_macvlan()
{
	on "$1" ip link add link "p$1" name "v$1" type macvlan mode bridge
}

# the wire is a program
make_tun()
{
	[ "$1" = 0 ] || return 0
	pump "$kind"
}

make_tap()
{
	make_tun "$1"
}

pump()
{
	rm -f /tmp/pump
	/usr/bin/python3 "$(dirname "$0")/netdevs_tun.py" "$1" >/tmp/pump 2>&1 &
	echo $! >/tmp/pump.pid
	wait_for 10 grep -q ready /tmp/pump || { cat /tmp/pump; return 1; }
}

addresses()
{
	# seconds for the link-local address of each netdev
	on "$1" sysctl -qw "net.ipv6.conf.v$1.accept_dad=0" &&
		on "$1" ip addr add "10.0.0.$(($1 + 1))/24" dev "v$1" &&
		on "$1" ip addr add "fd00::$(($1 + 1))/64" dev "v$1" nodad &&
		on "$1" ip link set "v$1" mtu $HOST_MTU &&
		on "$1" ip link set "v$1" addrgenmode eui64 &&
		on "$1" ip link set "v$1" up &&
		on "$1" ip link set lo up
}

is_active()
{
	grep -q ACTIVE "$SYS/$1/ports/1/state"
}

# link N - its device, which has a GID of each of $families
link()
{
	on "$1" rdma link add "h$1" type mrsoft netdev "v$1" || return 1
	[ -z "${MRSOFT_PATH:-}" ] || echo "$MRSOFT_PATH" >"$SYS/h$1/path"
	# shellcheck disable=SC2086 # words
	has_gids "$1" $families && wait_for 10 is_active "h$1"
}

# gone N - its device
gone()
{
	[ ! -e "$SYS/h$1" ]
}

start_kind()
{
	families=$1
	namespaces && both "make_$kind" && both addresses && both link
}

# a device may have gone with its netdev
unlink_both()
{
	both del_rdma && both gone
}

del_rdma()
{
	gone "$1" || timeout 30 rdma link del "h$1"
}

end_kind()
{
	[ ! -e /tmp/pump.pid ] || kill "$(cat /tmp/pump.pid)"
	rm -f /tmp/pump.pid
	ip netns del ns0
	ip netns del ns1
}

# packets N NETDEV - that have come there
packets()
{
	on "$1" cat "/sys/class/net/$2/statistics/rx_packets"
}

# travels NETDEV LEAST CMD... - CMD ends well, and at least LEAST packets came to
# each host by that netdev (%: the host)
travels()
{
	local netdev=$1 least=$2 n before=() after

	shift 2
	for n in 0 1; do
		before[n]=$(packets $n "${netdev/\%/$n}")
	done
	"$@" || { host_stats 0; host_stats 1; return 1; }
	for n in 0 1; do
		after=$(packets $n "${netdev/\%/$n}")
		echo "host $n: $((after - before[n])) packets, expected $least"
		[ $((after - before[n])) -ge "$least" ] || return 1
	done
}

# case_KIND FAMILY NAME NETDEV - messages have several packets where they can
case_rc()
{
	FAMILY=$1 t_run "$2.$1.rc" 60 travels "$3" 50 \
		pingpong 0 rc -n 10 -s 20001 -m 4096
}

case_uc()
{
	FAMILY=$1 t_run "$2.$1.uc" 60 travels "$3" 200 \
		pingpong 1 uc -n 10 -s 20001
}

case_ud()
{
	FAMILY=$1 t_run "$2.$1.ud" 60 travels "$3" 20 \
		pingpong 1 ud -n 20 -s 2000
}

# cases_traffic NAME NETDEV - RC of all $families, UC of the first and UD of the last
# address; a veth pair has all of them
cases_traffic()
{
	local family first=${families%% *} last=${families% ll}

	last=${last##* }
	for family in $families; do
		[ -n "$FEW" ] && [ "$family" != "$first" ] ||
			case_rc "$family" "$@"
	done
	[ -n "$FEW" ] || case_uc "$first" "$@"
	case_ud "$last" "$@"
	if [ -z "$FEW" ] && [ "$1" = veth ]; then
		case_ud "$first" "$@"
		case_uc "$last" "$@"
	fi
}

# a kind of netdev between two hosts: kind KIND NETDEV [FAMILIES [MORE-CASES...]]
kind()
{
	kind=$1 families=${3:-4 6 ll}
	if t_run "$kind.start" 40 start_kind "$families"; then
		cases_traffic "$kind" "$2"
		[ $# -lt 4 ] || "${@:4}"
	fi
	t_run "$kind.end" 40 unlink_both
	end_kind
}

# --- a VLAN above the port -------------------------------------------------------

vlans_above()
{
	both vlan_above && NET4=10.5.0 NET6=fd05: has_gids 0 4 6 &&
		NET4=10.5.0 NET6=fd05: has_gids 1 4 6
}

vlan_above()
{
	on "$1" ip link add link "v$1" name "v$1.5" type vlan id 5 &&
		on "$1" ip addr add "10.5.0.$(($1 + 1))/24" dev "v$1.5" &&
		on "$1" ip addr add "fd05::$(($1 + 1))/64" dev "v$1.5" nodad &&
		on "$1" ip link set "v$1.5" up
}

# has_gids N FAMILY...
has_gids()
{
	local n=$1 family

	shift
	for family in "$@"; do
		wait_for 10 host_gid "$n" "$family" || return 1
	done
}

# tagged TAG CMD... - CMD's packets have this tag, both ways, and no other
tagged()
{
	local tag=$1 pid rc=0 out

	shift
	out=$(mktemp)
	ip netns exec ns1 timeout 30 /usr/bin/python3 \
		"$(dirname "$0")/netdevs_tags.py" v1 100 >"$out" &
	pid=$!
	wait_for 10 grep -q ready "$out" && "$@" || rc=1
	wait $pid || rc=1
	cat "$out"
	[ "$(sed 1d "$out")" = "$tag 100" ] || rc=1
	return $rc
}

# two devices with one link-local address, on the port and on the VLAN: a packet is
# for the one where it came in
vlan_and_port()
{
	both vlan_link && LL_NETDEV=v% FAMILY=ll tagged 0 \
		pingpong 1 rc -n 10 -s 20001 && DEVS=k FAMILY=ll tagged 5 \
		pingpong 1 rc -n 10 -s 20001
}

vlan_link()
{
	on "$1" rdma link add "k$1" type mrsoft netdev "v$1.5" &&
		wait_for 10 is_active "k$1"
}

cases_vlan_above()
{
	local family datagrams=${families% ll}

	[ -z "$FEW" ] || datagrams=4
	t_run vlan_above.start 40 vlans_above || return
	export NET4=10.5.0 NET6=fd05: LL_NETDEV=v%.5
	for family in 4 6 ll; do
		FAMILY=$family t_run "vlan_above.$family.rc" 60 tagged 5 \
			pingpong 1 rc -n 10 -s 20001
	done
	for family in $datagrams; do
		FAMILY=$family t_run "vlan_above.$family.uc" 60 tagged 5 \
			pingpong 1 uc -n 10 -s 20001
		FAMILY=$family t_run "vlan_above.$family.ud" 60 tagged 5 \
			pingpong 1 ud -n 60 -s 1000
	done
	unset NET4 NET6 LL_NETDEV
	t_run vlan_above.port_has_none 60 tagged 0 pingpong 1 rc -n 10 -s 20001
	t_run vlan_above.and_port 60 vlan_and_port
	timeout 30 rdma link del k0
	timeout 30 rdma link del k1
}

# --- a bridge with a device on its port ------------------------------------------

# The core gives the addresses of a bridge to devices on its ports as well.
port_of_bridge()
{
	on 0 rdma link add k0 type mrsoft netdev p0 &&
		wait_for 10 gid_index k0 10.0.0.1 &&
		pingpong 1 rc -n 10 -s 20001 && pingpong 0 ud -n 10 -s 2000
}

cases_bridge()
{
	t_run bridge.and_port 60 port_of_bridge
	timeout 30 rdma link del k0
}

# --- traffic that does not end by itself --------------------------------------------

# A short ACK timeout, with which an RC QP gives up after about 0.1 s, and a long one,
# which outlives whatever a case does: codes of the IBA.
SHORT=12
LONG=19

# traffic NAME TIMEOUT - host 0 sends to host 1, messages of several packets
traffic()
{
	local name=$1 port=$((20000 + RANDOM % 10000)) n

	set -- ib_send_bw -F -e -p $port -u "$2" -s 10000 -n 5000000
	ip netns exec ns1 "$@" -d h1 -x "$(host_gid 1 "${FAMILY:-4}")" \
		>"/tmp/$name.1" 2>&1 &
	echo $! >"/tmp/$name.pid1"
	wait_for 10 listener_on 1 $port || { cat "/tmp/$name.1"; return 1; }
	ip netns exec ns0 "$@" -d h0 -x "$(host_gid 0 "${FAMILY:-4}")" 10.0.0.2 \
		>"/tmp/$name.0" 2>&1 &
	echo $! >"/tmp/$name.pid0"
	goes_on || { cat "/tmp/$name.0"; return 1; }
}

messages()
{
	cat $SYS/h0/ports/1/hw_counters/tx_msgs
}

more_messages()
{
	[ "$(messages)" -gt "$1" ]
}

# more than what was under way is acknowledged
goes_on()
{
	wait_for 40 more_messages $(($(messages) + 50))
}

# runs NAME - its client
runs()
{
	kill -0 "$(cat "/tmp/$1.pid0")" 2>/dev/null
}

has_ended()
{
	! runs "$1"
}

traffic_end()
{
	local n

	for n in 0 1; do
		kill -9 "$(cat "/tmp/$1.pid$n")" 2>/dev/null
	done
	wait_for 10 has_ended "$1"
}

# gives_up NAME - nobody answers, and the completion says so
gives_up()
{
	wait_for 30 has_ended "$1"
	cat "/tmp/$1.0"
	grep -q 'Failed status 12' "/tmp/$1.0" || return 1
	traffic_end "$1"
}

# watch_events - those of h0, from now on
watch_events()
{
	ip netns exec ns0 timeout 120 stdbuf -oL ibv_asyncwatch -d h0 \
		>/tmp/events 2>&1 &
	echo $! >/tmp/watch.pid
	wait_for 10 grep -q h0 /tmp/events
}

has_event()
{
	wait_for 10 grep -qi "$1" /tmp/events || { cat /tmp/events; return 1; }
}

watch_end()
{
	kill "$(cat /tmp/watch.pid)" 2>/dev/null
}

# --- events --------------------------------------------------------------------------

second_address() # add|del N
{
	local nodad=()

	[ "$1" = del ] || nodad=(nodad)
	on "$2" ip addr "$1" "10.9.0.$(($2 + 1))/24" dev "v$2" &&
		on "$2" ip addr "$1" "fd09::$(($2 + 1))/64" dev "v$2" \
			"${nodad[@]}"
}

no_gid()
{
	! NET4=10.9.0 NET6=fd09: host_gid "$1" "$FAMILY"
}

second_gids()
{
	NET4=10.9.0 NET6=fd09: has_gids 0 4 6 &&
		NET4=10.9.0 NET6=fd09: has_gids 1 4 6
}

# the address of one side of QP a goes: a gives up, b lives on, and goes on below
address_removed()
{
	local n=$1

	second_gids && NET4=10.9.0 NET6=fd09: traffic a $SHORT &&
		traffic b $LONG && runs a || return 1
	second_address del "$n"
	gives_up a && wait_for 10 no_gid "$n" && goes_on && runs b || return 1
	second_address add "$n" && second_gids &&
		NET4=10.9.0 NET6=fd09: pingpong 0 rc -n 10 -s 20001
}

# it comes back before the QP gives up
address_returns()
{
	second_gids && NET4=10.9.0 NET6=fd09: traffic a $LONG || return 1
	second_address del "$1" && wait_for 10 no_gid "$1" &&
		second_address add "$1" && goes_on && runs a && traffic_end a
}

# ip_count N NAME - a counter of host N, of IPv4 and IPv6 together
ip_count()
{
	on "$1" /usr/bin/python3 -Sc 'import sys
name = sys.argv[1]
lines = [line.split() for line in open("/proc/net/snmp") if line.startswith("Ip:")]
v4 = dict(zip(*lines))
v6 = dict(line.split() for line in open("/proc/net/snmp6"))
print(int(v4[name]) + int(v6["Ip6" + name]))' "$2"
}

# --- to QP b of address_removed

# packets of host 0 that did not fit the netdev
too_long()
{
	ip_count 0 FragFails
}

more_too_long()
{
	[ "$(too_long)" -gt "$1" ]
}

active_mtu()
{
	ibv_devinfo -d h0 | grep -q "active_mtu:.*$1 "
}

# packets of the path MTU do not fit for a while: none leaves, in pieces neither
mtu_lowered()
{
	local before

	before=$(too_long)
	on 0 ip link set v0 mtu 1500
	active_mtu 1024 && wait_for 20 more_too_long "$before" || return 1
	on 0 ip link set v0 mtu $HOST_MTU
	active_mtu 4096 && goes_on && runs b || return 1
	[ "$(ip_count 1 ReasmReqds)" = 0 ]
}

is_down()
{
	grep -q DOWN "$SYS/$1/ports/1/state"
}

# carrier N - host N's netdev goes down and comes back, which the other side sees as
# the loss of its carrier
carrier_short()
{
	on "$1" ip link set "v$1" down
	wait_for 10 is_down h0 && wait_for 10 is_down h1 || return 1
	on "$1" ip link set "v$1" up
	wait_for 10 is_active h0 && wait_for 10 is_active h1 && goes_on &&
		runs b
}

carrier_long()
{
	watch_events && traffic a $SHORT || return 1
	on 1 ip link set v1 down
	gives_up a && has_event PORT_ERR || return 1
	on 1 ip link set v1 up
	has_event PORT_ACTIVE && wait_for 10 is_active h1 || return 1
	watch_end
	pingpong 0 rc -n 10 -s 20001
}

renamed()
{
	on 0 ip link set v0 name w0 || return 1
	on 0 rdma link show h0/1 | grep -w 'netdev w0' && goes_on || return 1
	on 0 ip link set w0 name v0
	on 0 rdma link show h0/1 | grep -w 'netdev v0' && goes_on && runs b
}

quiet()
{
	! dmesg | grep 'waiting for'
}

# moved to another namespace: the device goes, and its processes hear of it
moved()
{
	dmesg -C
	watch_events && traffic a $LONG || return 1
	timeout 20 ip -n ns0 link set v0 netns ns1 name w0 || return 1
	wait_for 10 gone 0 && has_event fatal || return 1
	watch_end
	traffic_end a && quiet || return 1
	on 1 ip link set w0 netns ns0 name v0 && addresses 0 && link 0 &&
		pingpong 0 rc -n 10 -s 20001
}

# --- 30 seconds in a queue --------------------------------------------------------

# packets wait in the queue of v0
queue_full()
{
	on 0 tc -s qdisc show dev v0 | grep -E 'backlog [1-9]'
}

# dereg, destroy and close while they wait: done before the queue is empty
queued()
{
	local pid

	rm -f /tmp/go
	mkfifo /tmp/go
	ip netns exec ns0 timeout 20 "$MRSOFT_BIN/queued" h0 \
		"$(host_gid 0)" 10.0.0.2 </tmp/go >/tmp/queued 2>&1 &
	pid=$!
	exec 9>/tmp/go
	# its ARP is over when the wire gets slow
	wait_for 10 grep connected /tmp/queued || { cat /tmp/queued; return 1; }
	slow_wire && echo >&9 || return 1
	wait_for 10 grep posted /tmp/queued || { cat /tmp/queued; return 1; }
	queue_full || return 1
	echo >&9
	wait $pid || { cat /tmp/queued; return 1; }
	exec 9>&-
	grep 'done' /tmp/queued && queue_full
}

fast_wire()
{
	on 0 tc qdisc del dev v0 root
}

# the netdev goes with a full queue, under a QP that goes on sending
deleted()
{
	dmesg -C
	watch_events && traffic a $LONG && slow_wire &&
		wait_for 10 queue_full || return 1
	timeout 20 ip -n ns0 link del v0 || return 1
	wait_for 10 gone 0 && wait_for 10 gone 1 && has_event fatal || return 1
	watch_end
	traffic_end a && quiet
}

keep_addresses()
{
	on "$1" sysctl -qw "net.ipv6.conf.v$1.keep_addr_on_down=1"
}

second_addresses()
{
	both second_address add && both keep_addresses && second_gids
}

cases_events()
{
	local family n hosts="0 1"

	[ -z "$FEW" ] || hosts=1
	t_run events.start 20 second_addresses || return
	# which side it happens to differs with the family, to keep this short
	for n in $hosts; do
		family=$((n ? 6 : 4))
		export FAMILY=$family
		t_run "address_returns.$family" 80 address_returns $((1 - n))
		t_run "address_removed.$family" 80 address_removed $n
		t_run "carrier_short.$family" 80 carrier_short $n
		t_run "mtu_lowered.$family" 80 mtu_lowered
		[ $n = 0 ] || t_run renamed 80 renamed
		t_run "traffic_end.$family" 20 traffic_end b
	done
	unset FAMILY
	t_run carrier_long 80 carrier_long
	t_run moved 80 moved
	t_run queued 60 queued
	t_run fast_wire 10 fast_wire
	t_run deleted 80 deleted
}

# --- the other port of a bond takes over -------------------------------------------

active_port()
{
	[ "$(on "$1" cat "/sys/class/net/v$1/bonding/active_slave")" = "$2$1" ]
}

fail_over()
{
	traffic a $LONG || return 1
	on 0 ip link set p0 down
	wait_for 10 active_port 0 q && wait_for 10 active_port 1 q || return 1
	travels q% 50 goes_on && runs a || return 1
	on 0 ip link set p0 up
	on 1 ip link set q1 down
	wait_for 10 active_port 0 p && wait_for 10 active_port 1 p || return 1
	travels p% 50 goes_on && runs a && traffic_end a
}

cases_bond()
{
	t_run bond.fail_over 80 fail_over
}

# --- two ports of one host ------------------------------------------------------------

# ns1 is another name of ns0
start_one_host()
{
	local n

	export MRSOFT_PATH=wire
	families="4 6 ll"
	ip netns add ns0 && touch /run/netns/ns1 &&
		mount --bind /run/netns/ns0 /run/netns/ns1 &&
		on 0 ip link add v0 type veth peer name v1 || return 1
	# the core asks by ARP for the MAC of the other port, whose host is its own
	for n in 0 1; do
		on 0 sysctl -qw net.ipv4.conf.v$n.accept_local=1 \
			net.ipv4.conf.v$n.rp_filter=0
	done
	both addresses && both link
}

# what goes to an address of the host leaves it all the same, by the other port
through_the_wire()
{
	local family n

	for family in 4 6; do
		for n in 0 1; do
			way $family $n $((1 - n)) || return 1
		done
		on 0 ip -$family rule add pref 100 lookup local &&
			on 0 ip -$family rule del pref 0 || return 1
	done
}

way() # FAMILY FROM TO
{
	local address=(10.0.0.1 10.0.0.2)

	[ "$1" = 4 ] || address=(fd00::1 fd00::2)
	on 0 ip "-$1" rule add pref 10 iif "v$3" lookup local &&
		on 0 ip "-$1" rule add pref 20 from "${address[$2]}" \
			to "${address[$3]}" lookup "10$2" &&
		on 0 ip "-$1" route add "${address[$3]}" dev "v$2" table "10$2"
}

one_host()
{
	t_run one_host.start 40 start_one_host || return
	families="4 6"
	cases_traffic one_host.lo lo
	families="4 6 ll"
	t_run one_host.rules 20 through_the_wire
	cases_traffic one_host.wire v%
	t_run one_host.end 40 unlink_both
	end_kind
	unset MRSOFT_PATH
}

# --- the suite ----------------------------------------------------------------------

kinds()
{
	# the core gives the addresses of a VLAN to the device below it
	kind vlan v% ll
	kind macvlan p%
	kind tap v%
	kind bridge p% "4 6 ll" cases_bridge
	kind tun v% "4 6"
	kind bond p% "4 6 ll" cases_bond
	kind veth v% "4 6 ll" cases_veth
}

cases_veth()
{
	cases_vlan_above
	cases_events
}

t_plan_start netdevs
t_run load 60 load_mrsoft
case $MRSOFT_MACHINE in
uml-plain)
	kinds
	one_host
	;;
*)
	kind veth v% "4 6 ll" cases_events
	;;
esac
t_run unload 40 unload_mrsoft
t_done
