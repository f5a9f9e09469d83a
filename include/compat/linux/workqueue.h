/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shadow of <linux/workqueue.h>: WQ_PERCPU (without it a queue is per CPU anyway)
 * and the new names of the system queues.
 */
#ifndef MRSOFT_COMPAT_LINUX_WORKQUEUE_H
#define MRSOFT_COMPAT_LINUX_WORKQUEUE_H

#include_next <linux/workqueue.h>

#ifndef MRSOFT_HAVE_WQ_PERCPU
#define WQ_PERCPU		0
#endif

#ifndef MRSOFT_HAVE_SYSTEM_DFL_WQ
#define system_percpu_wq	system_wq
#define system_dfl_wq		system_unbound_wq
#endif

#endif
