#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# kunit: each kunit/*.ko runs its cases when it is loaded, KTAP in the log

# shellcheck source=tools/testing/lib/guest.sh
. "$MRSOFT_SRC/tools/testing/lib/guest.sh"
# shellcheck source=tools/testing/lib/kunit.sh
. "$MRSOFT_SRC/tools/testing/lib/kunit.sh"
t_plan_start kunit

shopt -s nullglob
modules=("$MRSOFT_KUNIT"/*.ko)
[ ${#modules[@]} -gt 0 ] || t_fail modules "no kunit/*.ko was built"
for ko in "${modules[@]}"; do
	kunit_load "$ko"
done
t_done
