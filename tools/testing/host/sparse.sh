#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# sparse: C=2 finds nothing in our files (what it finds in the kernel's headers
# is not ours to mend)

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/host.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib/ktap.sh"

sparse_clean()
{
	local kernel=$1 log=$MRSOFT_RESULTS/sparse-$1.log
	local dir=$MRSOFT_CACHE/build/$kernel-sparse

	# 7.3 would leave Debian's sparse out: it does not know __typeof_unqual__
	BUILD_TAG=sparse BUILD_LIVE=1 "$TESTING/kernels/build-module" "$kernel" C=2 \
		CHECK="sparse -D__typeof_unqual__=__typeof__" \
		>"$log.out" 2>&1 || { tail -n 20 "$log.out"; return 1; }
	cp "$dir/build.log" "$log"
	grep -q '^  CHECK ' "$log" || { echo "sparse saw no file"; return 1; }
	! grep -E "^($dir/|drivers/|kunit/|include/(compat|uapi/rdma/mrsoft)).*(warning|error):" "$log"
}

t_plan_start sparse
for kernel in $KERNELS_X86; do
	t_run "$kernel" 900 sparse_clean "$kernel"
done
t_done
