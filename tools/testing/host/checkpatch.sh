#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# checkpatch: --strict has nothing to say, one case for each source file
#
# FAST: only the files that differ from the last commit but one.

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/host.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/ktap.sh"

src=$("$TESTING/kernels/get" src-7.3) || exit 1
cd "$MRSOFT_SRC" || exit 1

# rdma_user_rxe.h is the kernel's own
sources()
{
	if [ -n "${FAST:-}" ]; then
		git diff --name-only HEAD~1 2>/dev/null || git ls-files
		git ls-files --others --exclude-standard
	else
		git ls-files --cached --others --exclude-standard
	fi | grep -E '^(drivers|include|kunit|tools)/.*\.[ch]$' |
		grep -v 'include/uapi/rdma/rdma_user_rxe\.h$' | sort -u
}

# a directory or an older tree may list what is gone
t_plan_start checkpatch
ignore()
{
	case $1 in
	# the macros mirror those of the kernel, arguments and all
	include/compat/*) echo MACRO_ARG_REUSE,MACRO_ARG_PRECEDENCE,MACRO_ARG_UNUSED ;;
	# TRACE_EVENT() is written as in the rest of the kernel
	*/trace.h) echo OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT,LONG_LINE ;;
	# programs of user space, whose memory a device changes
	tools/*) echo VOLATILE,PREFER_DEFINED_ATTRIBUTE_MACRO,MULTIPLE_ASSIGNMENTS,MACRO_ARG_REUSE,COMPARISON_TO_NULL,REPEATED_WORD,PARENTHESIS_ALIGNMENT ;;
	*) echo NONE ;;
	esac
}

# What was clean is clean: the same bytes, name, options and checker as before.
check()
{
	local file=$1 checker=$src/scripts/checkpatch.pl ignored stamp

	ignored=$(ignore "$file")
	stamp=$MRSOFT_CACHE/checkpatch/$(
		{ echo "$file $ignored"; cat "$checker" "$file"; } |
			sha256sum | cut -d' ' -f1)
	[ ! -e "$stamp" ] || return 0
	perl "$checker" --strict --no-tree --no-summary --terse --show-types \
		--ignore "$ignored" -f "$file" || return 1
	mkdir -p "${stamp%/*}" && : >"$stamp"
}

for file in $(sources); do
	[ -e "$file" ] || continue
	t_run "$file" 60 check "$file"
done
# shellcheck disable=SC2154
[ "$t_count" -gt 0 ] || t_ok "no file changed"
t_done
