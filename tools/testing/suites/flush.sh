#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# flush.sh - RDMA FLUSH
#
# machines: uml-plain uml-kasan uml-lockdep vm-6.1
# wire: uml-plain uml-kasan
# timeout: 300

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../selftests/selftest.sh"

selftest flush flush
