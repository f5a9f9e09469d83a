#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# probe.sh SRCTREE - which parts of the newest interface does this kernel have?
#
# Prints one -DMRSOFT_HAVE_<name> for each that it finds in the headers below
# SRCTREE/include. Kbuild adds them to the command line and the shadow headers
# beside this script supply what is missing. Headers are read, versions are not
# compared: stable and distribution kernels carry back-ports.
#
# A macro needs no probe: its shadow header says #ifndef.

inc=${1:?usage: probe.sh SRCTREE}/include
[ -f "$inc/rdma/ib_verbs.h" ] || exit 1

have() {
	printf ' -DMRSOFT_HAVE_%s' "$1"
}

# word NAME HEADER WORD: the header contains WORD
word() {
	grep -qsw -e "$3" "$inc/$2" && have "$1"
}

# proto NAME HEADER FUNCTION PATTERN: PATTERN stands in the prototype of FUNCTION
# or operation (from its name to the next semicolon)
proto() {
	sed -n "/[ *]$3)\{0,1\}(/,/;/p" "$inc/$2" | grep -qsw -e "$4" && have "$1"
}

v=rdma/ib_verbs.h

# operations: include/compat/mrsoft_ops.h
proto CREATE_CQ_ATTRS		$v create_cq		uverbs_attr_bundle
word  RESIZE_USER_CQ		$v resize_user_cq
proto REG_USER_MR_DMAH		$v reg_user_mr		ib_dmah
proto REG_USER_MR_DMABUF_ATTRS	$v reg_user_mr_dmabuf	uverbs_attr_bundle
proto REG_USER_MR_DMABUF_DMAH	$v reg_user_mr_dmabuf	ib_dmah
proto COUNTER_BIND_QP_PORT	$v counter_bind_qp	port
word  FILL_RES_SRQ_ENTRY	$v fill_res_srq_entry
word  QUERY_PORT_SPEED		$v query_port_speed
word  UFILE_HW_CLEANUP		$v ufile_hw_cleanup
word  UVERBS_ROBUST_UDATA	$v uverbs_robust_udata
word  LINK_DELLINK		rdma/rdma_netlink.h dellink

# verbs
word  IB_DMAH			$v 'struct ib_dmah {'
word  IB_DEVICE_GET_NETDEV	$v ib_device_get_netdev
word  IB_MARK_NAME		$v ib_mark_name_assigned_by_user
word  IB_VIRT_DMA_TO_PTR	$v ib_virt_dma_to_ptr
word  IB_GET_CURR_PORT_STATE	$v ib_get_curr_port_state
word  IB_WR_FLUSH		$v IB_WR_FLUSH
word  IB_ODP_SUPPORT_FLUSH	$v IB_ODP_SUPPORT_FLUSH
word  IB_OPCODE_FLUSH		rdma/ib_pack.h IB_OPCODE_FLUSH
word  IB_UVERBS_WR_FLUSH	uapi/rdma/ib_user_verbs.h IB_UVERBS_WR_FLUSH
word  IB_UVERBS_ACCESS_FLUSH	uapi/rdma/ib_user_ioctl_verbs.h IB_UVERBS_ACCESS_FLUSH_GLOBAL
word  IB_UMEM_GET_VA		rdma/ib_umem.h ib_umem_get_va
word  UDATA_HELPERS		rdma/uverbs_ioctl.h ib_copy_validate_udata_in
grep -qs '^u32 rdma_restrack_count' "$inc/rdma/restrack.h" && have RESTRACK_COUNT_U32

# core kernel
word  TIMER_DELETE		linux/timer.h timer_delete
word  HRTIMER_SETUP		linux/hrtimer.h hrtimer_setup
word  WQ_PERCPU			linux/workqueue.h WQ_PERCPU
word  SYSTEM_DFL_WQ		linux/workqueue.h 'struct workqueue_struct \*system_dfl_wq'
word  VM_FLAGS_SET		linux/mm.h vm_flags_set
[ -f "$inc/linux/unaligned.h" ] && have LINUX_UNALIGNED_H
grep -qs 'MODULE_IMPORT_NS(ns).*__stringify' "$inc/linux/module.h" || have STRING_NS
grep -qs 'define __assign_str(dst)' "$inc/trace/stages/stage6_event_callback.h" && have ASSIGN_STR_1

# KUnit
word  KUNIT_ADD_ACTION		kunit/resource.h kunit_add_action

echo
