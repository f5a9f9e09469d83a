#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# odp.sh - regions whose pages are not pinned: on-demand paging
#
# machines: uml-plain uml-kasan uml-lockdep vm-6.1
# wire: uml-plain
# timeout: 400

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../selftests/selftest.sh"

# somewhere to page out to
swap=/dev/nullb0
modprobe null_blk memory_backed=1 gb=1 nr_devices=1 &&
	mkswap $swap >/dev/null && swapon $swap
trap 'swapoff $swap; modprobe -r null_blk' EXIT

selftest odp odp implicit invalidate
