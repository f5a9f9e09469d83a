#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# packets.sh - packets as no requester sends them; see selftests/packets.c
#
# machines: uml-plain uml-kasan uml-lockdep vm-6.1
# timeout: 500

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/tap.sh"

t_plan_start packets
t_run set_up 40 tap_start
export MRSOFT_DEV=pkdev MRSOFT_TAP=pk1
t_ktap packets 400 "$MRSOFT_BIN/packets"
t_ktap ahead 100 "$MRSOFT_BIN/ahead"
tap_end
t_done
