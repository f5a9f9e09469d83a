# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# host.sh - what the host side of the test harness shares
#
# Sourced by the scripts below tools/testing.  Sets MRSOFT_SRC (the tree) and
# MRSOFT_CACHE (everything that is fetched or built once).

MRSOFT_SRC=${MRSOFT_SRC:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd -P)}
MRSOFT_CACHE=${MRSOFT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mrsoft}
export MRSOFT_SRC MRSOFT_CACHE
# shellcheck disable=SC2034
TESTING=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
JOBS=${JOBS:-$(nproc)}

# shellcheck disable=SC2034
KERNELS_X86="6.1 6.12 7.3"
# shellcheck disable=SC2034
KERNELS_UML="uml-plain uml-kasan uml-lockdep"

say()
{
	echo "$*" >&2
}

die()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

# locked NAME CMD... - run CMD while holding the cache's lock NAME.  Whoever
# loses the race waits, then finds the work done.  The descriptor is closed for
# CMD's children by --close, or a daemon of theirs would keep the lock.
locked()
{
	local name=$1 fd rc
	shift
	mkdir -p "$MRSOFT_CACHE/lock"
	exec {fd}>"$MRSOFT_CACHE/lock/$name"
	flock "$fd"
	"$@" {fd}>&-
	rc=$?
	exec {fd}>&-
	return $rc
}

# quietly LOG CMD... - run CMD with its output in LOG; show the end on failure.
quietly()
{
	local log=$1
	shift
	"$@" >"$log" 2>&1 </dev/null && return 0
	say "failed: $*"
	tail -n 25 "$log" >&2
	return 1
}
