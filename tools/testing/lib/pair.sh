# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# pair.sh - for suites that run a tool as server and client on one host
#
# After guest.sh.  pair_start sets PAIR_DEV, PAIR_GID4 and PAIR_GID6.

PAIR_DEV=pair0
PAIR_GID4=
PAIR_GID6=
PAIR_PORT=20000

# pair_start - a device over a dummy netdev, path MTU 4096
pair_start()
{
	# a suite that was ended by its time-out may have left them
	del_link $PAIR_DEV 2>/dev/null
	ip link del pairnet 2>/dev/null
	only_our_provider && load_mrsoft &&
		make_dummy pairnet 10.9.0.1/24 fd09::1/64 &&
		ip link set pairnet mtu 9000 &&
		add_link $PAIR_DEV pairnet &&
		wait_for 10 gid_index $PAIR_DEV 10.9.0.1 &&
		wait_for 10 gid_index $PAIR_DEV fd09::1 || return 1
	# shellcheck disable=SC2034 # for the suites
	PAIR_GID4=$(gid_index $PAIR_DEV 10.9.0.1)
	# shellcheck disable=SC2034
	PAIR_GID6=$(gid_index $PAIR_DEV fd09::1)
	pair_objects >/tmp/pair-objects
}

# pair_objects - how many objects of each kind the device has
pair_objects()
{
	rdma resource show $PAIR_DEV | sed 's/curr/\n&/'
}

# pair_idle - the device has what it had at the start
pair_idle()
{
	pair_objects | diff /tmp/pair-objects -
}

# pair_end - the tools are gone: so is all they made; module and netdev go too.
pair_end()
{
	t_run nothing_is_left 20 wait_for 10 pair_idle
	t_run link_del 40 del_link $PAIR_DEV
	t_run unload 40 unload_mrsoft
	ip link del pairnet
	all_providers
}

# pair CASE SECONDS PATTERN CMD... - CMD -p PORT as a server, CMD -p PORT
# localhost as its client, on the device: both must end with status 0, and the
# output of the client must match PATTERN.
pair()
{
	local name=$1 limit=$2

	shift 2
	PAIR_PORT=$((PAIR_PORT + 1))
	t_run "$name" "$limit" pair_both "$@"
}

pair_both()
{
	local pattern=$1 out server rc=0

	shift
	out=$(mktemp -d)
	"$@" -d $PAIR_DEV -p $PAIR_PORT >"$out/server" 2>&1 &
	server=$!
	if ! wait_for 20 listener_up $PAIR_PORT; then
		echo "the server does not listen"
		kill $server
		rc=1
	elif ! "$@" -d $PAIR_DEV -p $PAIR_PORT localhost >"$out/client" 2>&1; then
		echo "the client fails"
		# without its client it would wait for ever
		sleep 1
		kill $server 2>/dev/null
		rc=1
	fi
	if ! wait $server; then
		echo "the server fails"
		rc=1
	fi
	if [ $rc -eq 0 ] && ! grep -qE "$pattern" "$out/client"; then
		echo "the client does not say: $pattern"
		rc=1
	fi
	if grep -i 'invalid data' "$out/server" "$out/client"; then
		rc=1
	fi
	[ $rc -eq 0 ] || tail -n 8 "$out/server" "$out/client"
	rm -rf "$out"
	return $rc
}
