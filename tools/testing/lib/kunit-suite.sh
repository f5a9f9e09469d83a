#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# kunit: each kunit/*.ko runs its cases when it is loaded, KTAP in the log
#
# Parametrised cases nest: only the lines that stand deepest in the result of a
# suite are its cases.

# shellcheck source=tools/testing/lib/guest.sh
. "$MRSOFT_SRC/tools/testing/lib/guest.sh"
t_plan_start kunit

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

shopt -s nullglob
modules=("$MRSOFT_KUNIT"/*.ko)
[ ${#modules[@]} -gt 0 ] || t_fail modules "no kunit/*.ko was built"
for ko in "${modules[@]}"; do
	module=$(basename "$ko" .ko)
	log=$MRSOFT_RESULTS/kunit-$module.log
	dmesg -C
	timeout 240 insmod "$ko"
	rc=$?
	dmesg >"$log"
	rmmod "$module"
	if [ $rc -ne 0 ]; then
		tail -n 5 "$log" | while IFS= read -r line; do t_note "$line"; done
		t_fail "$module" "insmod: exit status $rc"
		continue
	fi
	# shellcheck disable=SC2154 # of ktap.sh
	before=$t_count
	while IFS=$'\t' read -r verdict name reason; do
		case $verdict in
		ok) t_ok "$name" ;;
		'not ok') t_fail "$name" ;;
		skip) t_skip "$name" "$reason" ;;
		note) t_note "$name" ;;
		esac
	done < <(leaves "$log")
	[ $t_count -gt "$before" ] || t_fail "$module" "no case ran"
	cat "$log" >>"$MRSOFT_RESULTS/kunit.dmesg-all"
done
t_done
