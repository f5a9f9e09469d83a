#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# build: the module compiles with W=1 and not one warning, for each kernel

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/host.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/ktap.sh"

clean_build()
{
	local log
	log=$(BUILD_STRICT=1 BUILD_LIVE=1 "$TESTING/kernels/build-module" "$1" 2>&1 >/dev/null) &&
		[ -z "$log" ] && return 0
	echo "$log"
	return 1
}

t_plan_start build
kernels=$KERNELS_X86
[ -z "${FAST:-}" ] || kernels=6.1
for kernel in $kernels; do
	t_run "$kernel" 900 clean_build "$kernel"
done
t_done
