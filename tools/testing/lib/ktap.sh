# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# ktap.sh - how a suite reports, in a guest or on the host
#
# The report is KTAP in $MRSOFT_RESULTS/NAME.ktap and, for the eye, on standard
# output with the seconds since the result before.  Without its plan line, the last,
# the suite has failed.

t_count=0
t_failures=0
t_file=/dev/stdout
t_last=${EPOCHREALTIME/./}

# MRSOFT_SUITE: the name of this run of the suite, if it has one of its own
t_plan_start()
{
	t_file=$MRSOFT_RESULTS/${MRSOFT_SUITE:-$1}.ktap
	echo "KTAP version 1" >"$t_file"
}

t_line()
{
	echo "$*" >>"$t_file"
	echo "$*"
}

# t_note TEXT... - a diagnostic; it belongs to the next result.
t_note()
{
	t_line "# $*"
}

# t_result TEXT... - a line of the report with its time
t_result()
{
	local now=${EPOCHREALTIME/./}

	echo "$*" >>"$t_file"
	printf '%s  (%d.%d s)\n' "$*" $(((now - t_last) / 1000000)) \
		$(((now - t_last) / 100000 % 10))
	t_last=$now
}

t_ok()
{
	t_count=$((t_count + 1))
	t_result "ok $t_count $1"
}

# t_fail NAME [WHY]
t_fail()
{
	t_count=$((t_count + 1))
	t_failures=$((t_failures + 1))
	[ -z "${2:-}" ] || t_note "$2"
	t_result "not ok $t_count $1"
}

# t_skip NAME REASON - counts as a failure unless accepted-skips lists it.
t_skip()
{
	t_count=$((t_count + 1))
	t_result "ok $t_count $1 # SKIP $2"
}

# t_run NAME TIMEOUT CMD... - CMD must exit 0 within TIMEOUT seconds.  CMD may
# be a function.  T_PREFIX stands in front of the name.
t_run()
{
	local name=${T_PREFIX:-}$1 limit=$2 log rc

	shift 2
	log=$(mktemp)
	t_limit "$limit" "$@" >"$log" 2>&1 </dev/null
	rc=$?
	if [ $rc -eq 0 ]; then
		t_ok "$name"
	else
		t_note "$*"
		tail -n 20 "$log" | while IFS= read -r line; do t_note "  $line"; done
		if [ $rc -eq 124 ] || [ $rc -eq 137 ]; then
			t_fail "$name" "no end after $limit s"
		else
			t_fail "$name" "exit status $rc"
		fi
	fi
	rm -f "$log"
	return $rc
}

# t_limit SECONDS CMD... - timeout(1) that also knows functions: 124 after the
# time-out, and then nothing of CMD's process group is left.
t_limit()
{
	local limit=$1 pid watch late rc

	shift
	late=$(mktemp -u)
	set -m
	("$@") &
	pid=$!
	(
		sleep "$limit"
		: >"$late"
		kill -TERM -- -$pid
		sleep 2
		kill -KILL -- -$pid
	) >/dev/null 2>&1 </dev/null &
	watch=$!
	set +m
	wait $pid
	rc=$?
	if [ -e "$late" ]; then
		rc=124
		kill -KILL -- -$pid
	fi 2>/dev/null
	kill -KILL -- -$watch 2>/dev/null
	wait $watch 2>/dev/null
	rm -f "$late"
	return $rc
}

# t_ktap NAME TIMEOUT CMD... - CMD prints KTAP itself: its cases become ours,
# each called NAME.CASE.
t_ktap()
{
	local name=$1 limit=$2 log rc before=$t_count line

	shift 2
	log=$(mktemp)
	t_limit "$limit" "$@" >"$log" 2>&1 </dev/null
	rc=$?
	while IFS= read -r line; do
		# "ok 3 - name # SKIP why", "not ok 4 name"; notes stay notes
		if [[ $line =~ ^[[:space:]]*ok\ [0-9]+\ (-\ )?(.*)$ ]]; then
			line=${BASH_REMATCH[2]}
			if [[ $line =~ ^(.*[^[:space:]])[[:space:]]*#\ *[Ss][Kk][Ii][Pp]\ *(.*)$ ]]; then
				t_skip "$name.${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
			else
				t_ok "$name.$line"
			fi
		elif [[ $line =~ ^[[:space:]]*not\ ok\ [0-9]+\ (-\ )?(.*)$ ]]; then
			t_fail "$name.${BASH_REMATCH[2]}"
		elif [[ $line =~ ^[[:space:]]*(KTAP|TAP|1\.\.) ]]; then
			:
		else
			t_note "${line#\# }"
		fi
	done <"$log"
	if [ $rc -eq 124 ] || [ $rc -eq 137 ]; then
		t_fail "$name.end" "no end after $limit s"
	elif ! grep -qE '^[[:space:]]*1\.\.[0-9]+' "$log"; then
		t_fail "$name.plan" "no plan line, exit status $rc"
	elif [ $t_count -eq $before ]; then
		t_fail "$name.cases" "no case ran, exit status $rc"
	elif [ $rc -ne 0 ] && ! grep -qE '^[[:space:]]*not ok' "$log"; then
		t_fail "$name.exit" "exit status $rc"
	fi
	rm -f "$log"
	return $rc
}

# t_done - the plan line; without it the suite has failed.
t_done()
{
	t_line "1..$t_count"
	[ $t_failures -eq 0 ]
}
