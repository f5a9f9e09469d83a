# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# kunit.sh - for suites that load modules whose cases run when they are loaded
#
# Parametrised cases nest: only the lines that stand deepest in the result of a
# suite are its cases.

# leaves LOG - "ok|not ok|skip|note TAB name [TAB reason]" for each leaf in LOG.
# A result that follows a deeper one sums that up, and is no case of its own.
leaves()
{
	awk '
	{ sub(/^\[ *[0-9.]+\] /, "") }
	/^ *# Subtest: / {
		match($0, /^ */)
		title[RLENGTH] = substr($0, RLENGTH + 12)
		next
	}
	/^ *(not )?ok [0-9]+ / {
		match($0, /^ */); depth = RLENGTH
		bad = ($0 ~ /^ *not ok/)
		sums = (last > depth); last = depth
		if (sums && !(bad && !failed)) {
			if (depth == 0) failed = 0
			next
		}
		if (bad) failed = 1
		name = $0
		sub(/^ *(not )?ok [0-9]+ (- )?/, "", name)
		reason = ""
		skip = match(name, / *# SKIP/)
		if (skip) {
			reason = substr(name, RSTART + RLENGTH + 1)
			name = substr(name, 1, RSTART - 1)
		}
		path = ""
		for (d = 4; d <= depth; d += 4)
			if (d in title) path = path title[d] "."
		printf "%s\t%s\t%s\n", bad ? "not ok" : skip ? "skip" : "ok",
			path name, reason
		next
	}
	/^ *# / { sub(/^ *# /, ""); printf "note\t%s\n", $0 }' "$1"
}

# kunit_load KO [PARAMETER=VALUE...] - load a module, report its cases, unload it.
# KUNIT_PREFIX stands in front of each name.
kunit_load()
{
	local module log rc before verdict name reason prefix=${KUNIT_PREFIX:-}

	module=$(basename "$1" .ko)
	log=$MRSOFT_RESULTS/kunit-$prefix$module.log
	dmesg -C
	timeout 240 insmod "$@"
	rc=$?
	dmesg >"$log"
	rmmod "$module"
	if [ $rc -ne 0 ]; then
		tail -n 5 "$log" | while IFS= read -r line; do t_note "$line"; done
		t_fail "$prefix$module" "insmod: exit status $rc"
		return
	fi
	# shellcheck disable=SC2154 # of ktap.sh
	before=$t_count
	while IFS=$'\t' read -r verdict name reason; do
		case $verdict in
		ok) t_ok "$prefix$name" ;;
		'not ok') t_fail "$prefix$name" ;;
		skip) t_skip "$prefix$name" "$reason" ;;
		note) t_note "$name" ;;
		esac
	done < <(leaves "$log")
	[ $t_count -gt "$before" ] || t_fail "$prefix$module" "no case ran"
	cat "$log" >>"$MRSOFT_RESULTS/${MRSOFT_SUITE:-kunit}.dmesg-all"
}
