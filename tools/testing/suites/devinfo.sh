#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# machines: uml-plain uml-kasan uml-lockdep vm-6.1
# fast: yes
# timeout: 400
#
# devinfo - what ibv_devices and ibv_devinfo say of a device
#
#	di0 on n0 (dummy, MTU 1500)   di1 on n1 (dummy, MTU 9000)   di2 on a PCI NIC
#
# The PCI NIC exists in the VM only; with it a provider library for hardware
# could take the device for its own.

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"

# look DEVICE - keep what ibv_devinfo says now: a run of it takes seconds where
# the processor is emulated
look()
{
	ibv_devinfo -v -d "$1" >"/tmp/devinfo.$1"
}

# fresh CMD DEVICE ARG... - look, then CMD
fresh()
{
	look "$2" && "$@"
}

# info DEVICE FIELD - the first value of a field
info()
{
	sed -n "s/^[[:space:]]*$2:[[:space:]]*//p" "/tmp/devinfo.$1" | head -n 1
}

# says DEVICE FIELD PATTERN
says()
{
	local value

	value=$(info "$1" "$2")
	echo "$2: $value"
	[[ $value =~ ^($3)$ ]]
}

# says_all DEVICE - FIELD PATTERN pairs from standard input
says_all()
{
	local field pattern rc=0

	while read -r field pattern; do
		says "$1" "$field" "$pattern" || { echo "not $pattern"; rc=1; }
	done
	return $rc
}

capable()
{
	grep -qE "^[[:space:]]*$2$" "/tmp/devinfo.$1"
}

differ()
{
	local a b

	a=$(info "$1" "$3")
	b=$(info "$2" "$3")
	echo "$3: $a, $b"
	[ -n "$a" ] && [ "$a" != "$b" ]
}

has_gid()
{
	grep -qE "GID\[ *[0-9]+\]:[[:space:]]*$2, RoCE v2$" "/tmp/devinfo.$1"
}

has_no_gid()
{
	! has_gid "$@"
}

listed()
{
	ibv_devices | grep -E "^[[:space:]]*$1[[:space:]]+[0-9a-f]{16}$" |
		grep -vE '0{16}'
}

not_listed()
{
	! ibv_devices | grep -w "$1"
}

fails()
{
	! "$@"
}

identity()
{
	says_all "$1" <<-'END'
		transport	InfiniBand \(0\)
		fw_ver	[^ ].*
		node_guid	[0-9a-f:]*[1-9a-f][0-9a-f:]*
		sys_image_guid	[0-9a-f:]*[1-9a-f][0-9a-f:]*
		vendor_id	0x[0-9a-f]+
		vendor_part_id	[1-9][0-9]*
		phys_port_cnt	1
	END
}

port()
{
	says_all "$1" <<-'END'
		state	PORT_ACTIVE \(4\)
		phys_state	LINK_UP \(5\)
		link_layer	Ethernet
		max_mtu	4096 \(5\)
		max_msg_sz	0x80000000
		pkey_tbl_len	[1-9][0-9]*
		gid_tbl_len	[1-9][0-9]*
		active_width	[1-9].*
		active_speed	[1-9].*
	END
}

limits()
{
	local field

	for field in max_mr_size max_qp max_qp_wr max_sge max_sge_rd max_cq max_cqe \
		max_mr max_pd max_qp_rd_atom max_qp_init_rd_atom max_mw max_ah \
		max_srq max_srq_wr max_srq_sge max_pkeys num_comp_vectors; do
		says "$1" $field '[1-9][0-9]*|0x0*[1-9a-f][0-9a-f]*' || return 1
	done
}

# what is not there is not claimed
no_claims()
{
	says_all "$1" <<-'END'
		max_fmr	0
		max_ee	0
		max_rdd	0
		max_raw_ethy_qp	0
		max_tso	0
		max_wq_type_rq	0
	END
}

t_plan_start devinfo
# a run that its time-out ended may have left them
for i in 0 1; do
	del_link di$i 2>/dev/null
	ip link del n$i 2>/dev/null
done
load_mrsoft || t_fail load
make_dummy n0 10.9.0.1/24 fd09::1/64 && make_dummy n1 10.9.1.1/24 || t_fail netdevs
ip link set n1 mtu 9000
add_link di0 n0 && add_link di1 n1 || t_fail links

t_run ibv_devices 40 listed di0
t_run ibv_devices.second 40 listed di1
t_run default_device 40 sh -c 'ibv_devinfo | grep -w hca_id'
t_run list 40 sh -c 'test $(ibv_devinfo -l | grep -cw "di[01]") -eq 2'
t_run unknown_device 40 fails ibv_devinfo -d nosuch
t_run unknown_port 40 fails sh -c 'ibv_devinfo -d di0 -i 2 | grep state'
t_run devinfo 40 look di0
t_run devinfo.second 40 look di1
t_run identity 40 identity di0
t_run node_guids_differ 40 differ di0 di1 node_guid
t_run port 40 port di0
t_run limits 30 limits di0
t_run no_claims 40 no_claims di0
for cap in MEM_WINDOW MEM_WINDOW_TYPE_2B MEM_MGT_EXTENSIONS RC_RNR_NAK_GEN; do
	t_run "claims.$cap" 40 capable di0 $cap
done
t_run atomics 40 says di0 atomic_cap 'ATOMIC_GLOB \(2\)'

t_run mtu.1500 40 says di0 active_mtu '1024 \(3\)'
t_run mtu.9000 40 says di1 active_mtu '4096 \(5\)'
ip link set n1 mtu 2300
t_run mtu.follows 40 wait_for 20 fresh says di1 active_mtu '2048 \(4\)'

t_run gid.ipv4 40 wait_for 20 fresh has_gid di0 ::ffff:10.9.0.1
t_run gid.ipv6 40 wait_for 20 fresh has_gid di0 fd09::1
ip addr add 10.9.0.2/24 dev n0
t_run gid.added 40 wait_for 20 fresh has_gid di0 ::ffff:10.9.0.2
ip addr del 10.9.0.2/24 dev n0
t_run gid.removed 40 wait_for 20 fresh has_no_gid di0 ::ffff:10.9.0.2

ip link set n0 down
t_run port.down 40 wait_for 20 fresh says di0 state 'PORT_DOWN \(1\)'
ip link set n0 up
t_run port.up_again 40 wait_for 20 fresh says di0 state 'PORT_ACTIVE \(4\)'

# the first netdev below a PCI device
pci=$(for dir in /sys/class/net/*; do
	[ -e "$dir/device" ] && [[ $(readlink -f "$dir/device") == */pci* ]] &&
		basename "$dir" && break
done)
if [ -n "$pci" ]; then
	ip addr add 10.9.2.1/24 dev "$pci"
	ip link set "$pci" up
	t_run pci.add 40 add_link di2 "$pci"
	t_run pci.devinfo 40 look di2
	t_run pci.identity 40 identity di2
	t_run pci.port 40 port di2
	t_run pci.provider 40 sh -c 'ibv_devinfo -d di2 2>&1 | grep -i warn && exit 1
		ibv_devinfo -d di2'
	t_run pci.del 40 del_link di2
	ip link set "$pci" down
	ip addr del 10.9.2.1/24 dev "$pci"
elif [[ $MRSOFT_MACHINE == vm-* ]]; then
	t_fail pci.add "no PCI netdev in this machine"
fi

t_run del 40 del_link di0
t_run gone 40 not_listed di0
t_run other_stays 40 listed di1
t_run unload 40 unload_mrsoft
t_run all_gone 40 sh -c '[ -z "$(ls /sys/class/infiniband)" ]'
ip link del n0
ip link del n1
t_done
