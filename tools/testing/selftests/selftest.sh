# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# selftest.sh - suites of programs of selftests/: two devices, programs, unload

# shellcheck source-path=SCRIPTDIR
. "$(dirname "${BASH_SOURCE[0]}")/../lib/guest.sh"

# selftest SUITE PROGRAM... - the whole suite.
selftest()
{
	local suite=$1 program

	shift
	t_plan_start "$suite"
	# shellcheck disable=SC2119
	load_mrsoft
	make_dummy st0 10.77.0.1/24
	make_dummy st1 10.77.1.1/24
	add_link stdev0 st0
	add_link stdev1 st1
	export MRSOFT_DEV=stdev0 MRSOFT_DEV2=stdev1
	for program in "$@"; do
		t_ktap "$program" 360 "$MRSOFT_BIN/$program"
	done
	# nothing may hold the devices now
	t_run "link-del" 30 del_link stdev0
	t_run "link-del-2" 30 del_link stdev1
	ip link del st0
	ip link del st1
	t_run "unload" 30 unload_mrsoft
	t_done
}
