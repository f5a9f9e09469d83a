#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# reasons.sh - each reason of a refusal, and all places where it is told
#
# machines: uml-plain uml-kasan vm-6.1
# timeout: 200

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/tap.sh"

t_plan_start reasons
t_run set_up 40 tap_start
export MRSOFT_DEV=pkdev MRSOFT_TAP=pk1
t_ktap reasons 190 "$MRSOFT_BIN/reasons"
tap_end
t_done
