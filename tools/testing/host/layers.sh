#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# layers: no object of the driver needs a symbol of a higher layer

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/host.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/ktap.sh"

t_plan_start layers
if ko=$("$TESTING/kernels/build-module" uml-plain 2>/dev/null); then
	t_ktap objects 120 python3 "$TESTING/layers/check-layers" "$(dirname "$ko")"
	t_run self-test 120 python3 "$TESTING/layers/check-layers" --self-test
else
	t_fail objects "the module does not build"
fi
t_done
