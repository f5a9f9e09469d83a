#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# machines: uml-plain uml-kasan uml-lockdep vm-6.1
# wire: uml-plain
# fast: no
# timeout: 900
#
# pyverbs - rdma-core's own Python tests, measured against rdma_rxe
#
# The suite that Debian ships (/usr/share/doc/rdma-core/tests) runs on mrsoft;
# what mrsoft skips or fails then runs on rdma_rxe in the same guest.  A case
# that passes there must pass here.  Two kinds of lines in accepted-skips:
#
#	pyverbs/GLOB  reason		the case may be skipped, as on rdma_rxe
#	pyverbs/GLOB  not yet: reason	the case may be skipped, or fail, even if
#					it passes on rdma_rxe; once it passes
#					here the line has to go
#
# On the debug kernels, which are there for splats, rdma_rxe does not run.
# The runner is pyverbs_run.py.

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"

SUITES=$(cd "$(dirname "$0")" && pwd)
TESTS=/tmp/tests
OURS=$MRSOFT_RESULTS/pyverbs.mrsoft
THEIRS=$MRSOFT_RESULTS/pyverbs.rdma_rxe
export PYVERBS_LIMIT=60

# run_on DEVICE ADDRESS RESULTS ONLY-FILE - all cases, or those in the file
run_on()
{
	local gid turn

	gid=$(gid_index "$1" "$2") || return 1
	rm -f "$3"
	# the interpreter may die; the case that killed it is known, go on behind
	for turn in 1 2 3 4 5; do
		PYVERBS_FILE=$4 /usr/bin/python3 "$SUITES/pyverbs_run.py" \
			$TESTS "$1" "$gid" "$3" >>"$3.log" 2>&1
		! grep -qx end "$3" || return 0
		echo "the interpreter died, turn $turn" | tee -a "$3.log"
	done
	return 1
}

# read_results FILE ARRAY - ARRAY[case] is "ok", "skip REASON" or "fail REASON"
read_results()
{
	local -n array=$2
	local word case reason

	# shellcheck disable=SC2034 # it is the caller's
	while read -r word case reason; do
		case $word in
		start) array[$case]="fail the interpreter died" ;;
		ok) array[$case]=ok ;;
		skip | fail) array[$case]="$word $reason" ;;
		esac
	done < <(cat "$1" 2>/dev/null)
}

# not_yet CASE - the reason of a "not yet" line that matches
not_yet()
{
	local i

	for i in "${!yet_globs[@]}"; do
		# shellcheck disable=SC2053
		[[ "pyverbs/$1" == ${yet_globs[i]} ]] || continue
		soon=${yet_reasons[i]}
		return 0
	done
	return 1
}

yet_globs=()
yet_reasons=()
while read -r glob reason; do
	[[ $glob == pyverbs/* && $reason == "not yet:"* ]] || continue
	yet_globs+=("$glob")
	yet_reasons+=("$reason")
done <"$SUITES/../accepted-skips"
declare -A ours theirs

t_plan_start pyverbs
rm -rf $TESTS
mkdir $TESTS && cp /usr/share/doc/rdma-core/tests/* $TESTS && gunzip $TESTS/*.gz ||
	t_fail copy "no rdma-core tests in /usr/share/doc/rdma-core/tests"

load_mrsoft && make_dummy py0 10.9.0.1/24 fd09::1/64 && add_link pymr py0 &&
	wait_for 10 gid_index pymr 10.9.0.1 && rdma resource show pymr >/tmp/idle ||
	t_fail setup
t_run mrsoft_to_the_end 400 run_on pymr 10.9.0.1 "$OURS" ''
t_run nothing_is_left 20 wait_for 10 \
	sh -c 'rdma resource show pymr | diff /tmp/idle - >&2'
t_run link_del 40 del_link pymr
t_run unload 40 unload_mrsoft

case $MRSOFT_MACHINE in
uml-plain | vm-*)
	grep -E '^(skip|fail) ' "$OURS" | cut -d' ' -f2 >/tmp/pyverbs.rest
	modprobe rdma_rxe 2>/dev/null
	make_dummy py1 10.9.1.1/24 fd09:1::1/64 && add_link pyrxe py1 rxe &&
		wait_for 10 gid_index pyrxe 10.9.1.1 || t_fail rdma_rxe_setup
	t_run rdma_rxe_to_the_end 400 \
		run_on pyrxe 10.9.1.1 "$THEIRS" /tmp/pyverbs.rest
	del_link pyrxe
	modprobe -r rdma_rxe 2>/dev/null
	ip link del py1
	;;
esac
ip link del py0

read_results "$OURS" ours
read_results "$THEIRS" theirs
passed=0
while read -r case; do
	what=${ours[$case]}
	if not_yet "$case"; then
		if [ "$what" = ok ]; then
			t_fail "$case" "passes now: take it off accepted-skips"
		else
			t_skip "$case" "$soon"
		fi
	elif [ "$what" = ok ]; then
		passed=$((passed + 1))
		t_ok "$case"
	elif [ "${theirs[$case]}" = ok ]; then
		t_fail "$case" "passes on rdma_rxe; here: $what"
	elif [[ $what == skip* ]]; then
		t_skip "$case" "${what#skip }"
	else
		[ -z "${theirs[$case]}" ] || t_note "on rdma_rxe: ${theirs[$case]}"
		t_fail "$case" "${what#fail }"
	fi
done < <(printf '%s\n' "${!ours[@]}" | sort)
# a suite in which all is skipped shows nothing
t_run at_least_80_pass 5 [ $passed -ge 80 ]
t_done
