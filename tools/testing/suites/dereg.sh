#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# dereg.sh - the deregistration contract and re-registration
#
# machines: uml-plain uml-kasan uml-lockdep vm-6.1
# timeout: 400

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"

t_plan_start dereg
load_mrsoft
make_dummy st0 10.77.0.1/24
add_link mr0 st0
export MRSOFT_DEV=mr0
t_ktap dereg 300 "$MRSOFT_BIN/dereg"
t_run "link del" 30 del_link mr0
ip link del st0
t_run "unload" 30 unload_mrsoft
t_done
