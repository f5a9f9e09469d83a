#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# exit.sh - processes that end or are killed with everything in use
#
# machines: uml-plain uml-kasan uml-lockdep vm-6.1
# wire: uml-plain uml-lockdep
# timeout: 400

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../selftests/selftest.sh"

selftest exit exit
