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
t_logs=0
t_ends=
t_never=
t_logs=0
t_file=/dev/stdout
t_last=${EPOCHREALTIME/./}

# MRSOFT_SUITE: the name of this run of the suite, if it has one of its own
t_plan_start()
{
	t_file=$MRSOFT_RESULTS/${MRSOFT_SUITE:-$1}.ktap
	echo "KTAP version 1" >"$t_file"
	t_open_fifo t_ends && t_open_fifo t_never
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
	t_log
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
	return $rc
}

# t_limit SECONDS CMD... - timeout(1) that also knows functions: 124 after the
# time-out, and then nothing of CMD's process group is left.  A process costs much in
# a slow machine, and cases are many: there is one, CMD's, which tells of its end.
t_limit()
{
	local end=$((SECONDS + $1)) pid line rc late=

	shift
	[ -n "$t_ends" ] || t_open_fifo t_ends
	set -m
	(
		# shellcheck disable=SC2064 # it is the one of now
		trap "echo \$BASHPID >&$t_ends" EXIT
		t_ends=
		"$@"
	) &
	pid=$!
	set +m
	# one that was killed tells nothing
	until read -r -t 0.2 -u "$t_ends" line && [ "$line" = $pid ]; do
		kill -0 $pid || break
		if [ $SECONDS -ge $end ] && [ -z "$late" ]; then
			late=yes
			kill -TERM -- -$pid
			end=$((end + 2))
		elif [ $SECONDS -ge $end ]; then
			kill -KILL -- -$pid
			break
		fi
	done 2>/dev/null
	wait $pid
	rc=$?
	if [ -n "$late" ]; then
		rc=124
		kill -KILL -- -$pid 2>/dev/null
	fi
	return $rc
}

# t_open_fifo VARIABLE - gets the descriptor of a FIFO that nobody else has
t_open_fifo()
{
	local -n t_fd=$1
	local fifo

	fifo=$(mktemp -u)
	# shellcheck disable=SC2034 # the caller's
	mkfifo "$fifo" && exec {t_fd}<>"$fifo" && rm "$fifo"
}

# t_pause SECONDS - sleep(1) without a process; nobody writes there
t_pause()
{
	[ -n "$t_never" ] || t_open_fifo t_never
	read -r -t "$1" -u "$t_never" || true
}

# Where the next case's output goes: processes that an earlier one left behind still
# write to theirs.
t_log()
{
	t_logs=$((t_logs + 1))
	log=${TMPDIR:-/tmp}/t-log.$BASHPID.$t_logs
}

# t_ktap NAME TIMEOUT CMD... - CMD prints KTAP itself: its cases become ours,
# each called NAME.CASE.
t_ktap()
{
	local name=$1 limit=$2 log rc before=$t_count line

	shift 2
	t_log
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
	return $rc
}

# t_done - the plan line; without it the suite has failed.
t_done()
{
	rm -f "${TMPDIR:-/tmp}/t-log.$BASHPID".*
	rm -f "${TMPDIR:-/tmp}/t-log.$BASHPID".*
	t_line "1..$t_count"
	[ $t_failures -eq 0 ]
}
