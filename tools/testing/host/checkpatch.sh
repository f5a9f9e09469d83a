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
for file in $(sources); do
	[ -e "$file" ] || continue
	t_run "$file" 60 perl "$src/scripts/checkpatch.pl" --strict --no-tree \
		--no-summary --terse --show-types -f "$file"
done
[ "$t_count" -gt 0 ] || t_ok "no file changed"
t_done
