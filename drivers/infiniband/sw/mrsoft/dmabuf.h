/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dmabuf.h - regions in buffers that other drivers share as dma-buf
 *
 * Layer 1, above pages.h.
 */
#ifndef MRSOFT_DMABUF_H
#define MRSOFT_DMABUF_H

#include "pages.h"

struct mrsoft_pages *mrsoft_dmabuf_pages(int fd, u64 offset, u64 length,
					 int access);

#endif /* MRSOFT_DMABUF_H */
