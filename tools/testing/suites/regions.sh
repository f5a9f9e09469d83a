#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# regions.sh - what a region can be made of, and every way to register
#
# machines: uml-plain uml-kasan
# wire: uml-plain uml-kasan
# timeout: 400

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../selftests/selftest.sh"

selftest regions regions dmabuf dm
