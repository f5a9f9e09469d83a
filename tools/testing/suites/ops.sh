#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# ops.sh - every operation on every QP type; CQs and SRQs; atomics and CPUs
#
# machines: uml-plain uml-kasan uml-lockdep vm-6.1
# wire: uml-plain uml-kasan
# timeout: 400

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../selftests/selftest.sh"

selftest ops ops glob
