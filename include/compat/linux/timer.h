/* SPDX-License-Identifier: GPL-2.0 */
/* Shadow of <linux/timer.h>: timer_delete() and timer_container_of() everywhere. */
#ifndef MRSOFT_COMPAT_LINUX_TIMER_H
#define MRSOFT_COMPAT_LINUX_TIMER_H

#include_next <linux/timer.h>

#ifndef MRSOFT_HAVE_TIMER_DELETE
#define timer_delete(timer)		del_timer(timer)
#define timer_delete_sync(timer)	del_timer_sync(timer)
#endif

#ifndef timer_container_of
#define timer_container_of(var, callback_timer, timer_fieldname) \
	container_of(callback_timer, typeof(*var), timer_fieldname)
#endif

#endif
