#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# crowd - 64 QPs between two hosts at once, on a good wire and a bad one
#
#	ns0: h0 on v0 (10.0.0.1) ==== v1 (10.0.0.2) on h1: ns1
#
# Either requests or answers are lost: with a tenth of both gone, a fifth of all tries
# fail, and of so many messages one would now and then fail in all its eight.
#
# machines: uml-plain
# fast: no
# timeout: 500

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/guest.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/hosts.sh"

lossy()
{
	local n=$1

	t_run loss.$n 20 on "$n" tc qdisc replace dev "v$n" root \
		netem limit 100000 loss 10%
	LOSSY=1 t_ktap "from_$n" 300 "$MRSOFT_BIN/crowd"
	t_run no_loss.$n 20 on "$n" tc qdisc del dev "v$n" root
}

t_plan_start crowd
t_run start 60 hosts_start
export MRSOFT_DEV=$HOST0_DEV MRSOFT_DEV2=$HOST1_DEV
t_ktap good 200 "$MRSOFT_BIN/crowd"
lossy 0
lossy 1
t_run end 60 hosts_end
t_run unload 40 unload_mrsoft
t_done
