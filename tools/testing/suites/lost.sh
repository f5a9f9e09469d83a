#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# lost - one packet at a time is lost, doubled, spoilt or late
#
#	ns0: lost0 (mrsoft) on v0 ==== va -- cable -- vb ==== v1 on lost1: ns1
#
# and once without the cable in between, where nothing may be sent twice.
#
# A slow machine has two of the four accidents for each packet.
#
# machines: uml-plain uml-kasan
# fast: no
# timeout: 400

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts.sh"

with_cable()
{
	hosts_start cable &&
		MRSOFT_DEV=$HOST0_DEV MRSOFT_DEV2=$HOST1_DEV \
		CABLE_A=va CABLE_B=vb t_ktap lost 360 "$MRSOFT_BIN/lost"
	hosts_end
}

without_cable()
{
	hosts_start &&
		MRSOFT_DEV=$HOST0_DEV MRSOFT_DEV2=$HOST1_DEV \
		t_ktap plain 120 "$MRSOFT_BIN/lost"
	hosts_end
}

t_plan_start lost
with_cable || t_fail with_cable
without_cable || t_fail without_cable
t_run unload 40 unload_mrsoft
t_done
