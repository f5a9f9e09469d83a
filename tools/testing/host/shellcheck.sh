#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# one case for each shell script of the tree

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/host.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/ktap.sh"

cd "$MRSOFT_SRC" || exit 1
t_plan_start shellcheck
for file in $(git ls-files --cached --others --exclude-standard | sort -u); do
	[ -f "$file" ] && head -n 2 "$file" |
		grep -qaE '^#!/bin/(ba)?sh|shellcheck shell=' || continue
	# SC1091: a sourced file that is not there when it is checked alone
	t_run "$file" 60 shellcheck -S warning -e SC1091 "$file"
done
t_done
