#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# fuzz.sh - a hostile process must not harm the kernel or its neighbours
#
# machines: uml-plain uml-kasan uml-lockdep vm-6.1
# wire: uml-plain uml-kasan
# timeout: 400

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../selftests/selftest.sh"

selftest fuzz fuzz
