# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# machine.sh - what uml/run and vm/run share: the job, the verdict
#
# A machine gets a results directory, the only place of the host that it can
# write to.  There it leaves its verdict in "status"; the console is kept there.

# What a sound kernel never prints.
SPLAT='WARNING: |BUG: |BUG at|KASAN: |UBSAN: |INFO: (possible|task|rcu|suspicious|lockdep|trying)|suspicious RCU|[Cc]all [Tt]race:|unreferenced object|waiting for .* to become free|Kernel panic|Oops|general protection fault|kernel NULL pointer|refcount_t: |DEBUG_LOCKS_WARN_ON|held lock freed|blocked for more than'

# machine_job MACHINE RELEASE-ROOT KERNEL SCRIPT ARGS... - write the job file;
# RELEASE-ROOT holds lib/modules.  Sets RESULTS and JOB.
machine_job()
{
	local machine=$1 root=$2 kernel=$3 ko dir
	shift 3
	RESULTS=${RESULTS:-$MRSOFT_CACHE/results/$(date +%Y%m%d-%H%M%S)-$machine-$$}
	mkdir -p "$RESULTS" || return 1
	RESULTS=$(readlink -f "$RESULTS")
	JOB=$RESULTS/job
	rm -f "$RESULTS/status" "$RESULTS/console" "$RESULTS/kmemleak" "$RESULTS/dmesg"

	# the machine has copies: a later build must not change them under it
	mkdir -p "$RESULTS/modules/kunit" "$RESULTS/modules/live" "$RESULTS/bin"
	if [ -n "${MRSOFT_NO_KO:-}" ] || [ ! -e "$MRSOFT_SRC/Kbuild" ]; then
		say "no mrsoft.ko for this run"
	else
		ko=$("$TESTING/kernels/build-module" "$kernel") || return 1
		cp "$ko" "$RESULTS/modules/"
		dir=${ko%/drivers/*}/kunit
		[ -z "${BUILD_KUNIT:-}" ] || find "$dir" -maxdepth 1 -name '*.ko' \
			-exec cp -t "$RESULTS/modules/kunit" {} +
		[ -z "${BUILD_LIVE:-}" ] || cp "$dir"/live/*.ko \
			"$RESULTS/modules/live/" || return 1
	fi
	"$TESTING/lib/build-selftests" "$RESULTS/bin" || return 1

	local script_dir=
	if [ $# -gt 0 ]; then
		script_dir=$(dirname "$(readlink -f "$1")")
		set -- "$script_dir/$(basename "$1")" "${@:2}"
		[ -x "$1" ] || set -- /bin/bash "$@"
	fi
	{
		printf '%s=%q\n' MRSOFT_SRC "$MRSOFT_SRC" \
			MRSOFT_CACHE "$MRSOFT_CACHE" \
			MRSOFT_RESULTS "$RESULTS" \
			MRSOFT_MACHINE "$machine" \
			MRSOFT_KO "$RESULTS/modules/mrsoft.ko" \
			MRSOFT_KUNIT "$RESULTS/modules/kunit" \
			MRSOFT_LIVE "$RESULTS/modules/live" \
			MRSOFT_BIN "$RESULTS/bin" \
			JOB_MODULES "$root/lib/modules" \
			JOB_SCRIPT_DIR "$script_dir"
		printf 'JOB_CMD=('
		[ $# -eq 0 ] || printf ' %q' "$@"
		printf ' )\n'
	} >"$JOB"
}

# splats FILE... - print what a kernel should not have said; true if there is any.
splats()
{
	grep -hE "$SPLAT" "$@" 2>/dev/null | tr -d '\r' | sort -u | head -n 20 | grep .
}

# splat_text FILE... - the first complaint of the kernel, with what it said of it
splat_text()
{
	cat "$@" 2>/dev/null | tr -d '\r' | grep -m 1 -A 40 -B 3 -E "$SPLAT"
}

# machine_verdict - the exit status of the machine: its script's, or 1 if the
# kernel complained, or 2 if the machine never said anything.
machine_verdict()
{
	local status

	status=$(cat "$RESULTS/status" 2>/dev/null)
	if [ -z "$status" ]; then
		say "machine: no verdict: it hung, died or ran out of time ($RESULTS/console)"
		tail -n 15 "$RESULTS/console" 2>/dev/null | tr -d '\r' >&2
		return 2
	fi
	if splats "$RESULTS/console" "$RESULTS/dmesg" "$RESULTS/kmemleak" >&2; then
		say "machine: the kernel complained (console, dmesg, kmemleak in $RESULTS)"
		return 1
	fi
	return "$status"
}
