/* SPDX-License-Identifier: GPL-2.0 */
/* Shadow of <linux/unaligned.h>, which was <asm/unaligned.h>. */
#ifdef MRSOFT_HAVE_LINUX_UNALIGNED_H
#include_next <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif
