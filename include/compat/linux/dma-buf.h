/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shadow of <linux/dma-buf.h>: mapping without the reservation lock held was the
 * plain function before the locked one was set apart.
 */
#ifndef MRSOFT_COMPAT_LINUX_DMA_BUF_H
#define MRSOFT_COMPAT_LINUX_DMA_BUF_H

#include_next <linux/dma-buf.h>

#ifndef MRSOFT_HAVE_DMA_BUF_VMAP_UNLOCKED
#define dma_buf_vmap_unlocked(dmabuf, map)	dma_buf_vmap(dmabuf, map)
#define dma_buf_vunmap_unlocked(dmabuf, map)	dma_buf_vunmap(dmabuf, map)
#endif

#endif
