#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# pyverbs_odp - rdma-core's on-demand paging cases again and again, and a bystander
#
# Another process sums pages of files meanwhile, which nobody writes: they stay as
# they are.
#
# By hand, since it takes long.  A line "machines: uml-plain" here adds it, or
# tools/testing/uml/run plain tools/testing/suites/pyverbs_odp.sh; ROUNDS is how
# often (50).
#
# timeout: 900

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"

SUITES=$(cd "$(dirname "$0")" && pwd)
TESTS=/tmp/tests
FILES=/tmp/bystander
RESULTS=$MRSOFT_RESULTS/pyverbs_odp
export PYVERBS_LIMIT=60 PYVERBS_ONLY='test_odp.*'

bystander()
{
	while [ ! -e /tmp/enough ]; do
		sha256sum --quiet -c /tmp/sums || touch /tmp/changed
		echo >>/tmp/summed
	done
}

# one ROUND - no case fails, and some pass
one()
{
	local gid

	gid=$(gid_index pymr 10.9.0.1) || return 1
	rm -f "$RESULTS"
	/usr/bin/python3 "$SUITES/pyverbs_run.py" $TESTS pymr "$gid" "$RESULTS" \
		>"$RESULTS.log" 2>&1
	grep -qx end "$RESULTS" || return 1
	! grep '^fail ' "$RESULTS" >&2 || return 1
	[ "$(grep -c '^ok ' "$RESULTS")" -ge 8 ]
}

t_plan_start pyverbs_odp
rm -rf $TESTS
mkdir $TESTS && cp /usr/share/doc/rdma-core/tests/* $TESTS && gunzip $TESTS/*.gz ||
	t_fail copy "no rdma-core tests in /usr/share/doc/rdma-core/tests"
load_mrsoft && make_dummy py0 10.9.0.1/24 fd09::1/64 && add_link pymr py0 &&
	wait_for 10 gid_index pymr 10.9.0.1 || t_fail setup

# of a file system in memory, and of one that has a disk below
mkdir $FILES
for n in 1 2 3 4 5 6; do
	dd if=/dev/urandom of=$FILES/$n bs=64k count=16 status=none
done
sha256sum $FILES/* /usr/lib/x86_64-linux-gnu/libibverbs.so.1 >/tmp/sums
bystander &
for n in $(seq "${ROUNDS:-50}"); do
	t_run "round.$n" 60 one
done
touch /tmp/enough
wait
t_run files_summed 5 [ -s /tmp/summed ]
t_run files_unchanged 5 [ ! -e /tmp/changed ]
t_note "$(grep -c '^ok ' "$RESULTS") cases passed in the last round," \
	"$(wc -l </tmp/summed) times summed"
t_run link_del 40 del_link pymr
ip link del py0
t_run unload 40 unload_mrsoft
t_done
