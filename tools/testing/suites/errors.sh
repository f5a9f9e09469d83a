#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# errors.sh - what a failure looks like, at both ends; QP states
#
# machines: uml-plain uml-kasan uml-lockdep vm-6.1
# wire: uml-plain uml-kasan
# timeout: 400

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../selftests/selftest.sh"

selftest errors errors
