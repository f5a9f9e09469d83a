// SPDX-License-Identifier: GPL-2.0
/*
 * dmabuf.c - regions in buffers that other drivers share as dma-buf
 *
 * Owns:     the reference to the buffer, its mapping in the kernel.
 * Not here: what a copy does with the mapping (pages.c), keys and rights (mr.c).
 * Locks:    none of its own; the exporter has its reservation lock.
 * Lifetime: the exporter keeps a mapped buffer where it is, so nothing is moved or
 *           revoked under a copy.  Reference and mapping end with the pages, once.
 * Context:  process, sleeps.
 * Spec:     Documentation/driver-api/dma-buf.rst of the kernel, CPU access
 * Tests:    kunit/dmabuf_kunit.c, tools/testing/selftests/dmabuf.c
 */
#include <linux/dma-buf.h>
#include <linux/iosys-map.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "dmabuf.h"

/**
 * struct dmabuf - a buffer that a region is in; all I
 * @buf: referenced
 * @map: all of it, in the kernel's memory
 * @dir: what the CPU may do with it
 */
struct dmabuf {
	struct dma_buf *buf;
	struct iosys_map map;
	enum dma_data_direction dir;
};

static void dmabuf_release(void *owner)
{
	struct dmabuf *d = owner;

	dma_buf_end_cpu_access(d->buf, d->dir);
	dma_buf_vunmap_unlocked(d->buf, &d->map);
	dma_buf_put(d->buf);
	kfree(d);
}

static int dmabuf_check(const struct dma_buf *buf, u64 offset, u64 length,
			bool write)
{
	if (!length || length > buf->size || offset > buf->size - length)
		return -EINVAL;
	/* as for mmap() of it */
	if (write && !(buf->file->f_mode & FMODE_WRITE))
		return -EACCES;
	if (!buf->ops->vmap)
		return -EOPNOTSUPP;
	return 0;
}

/* The mapping, ready for the CPU for as long as the region lives. */
static int dmabuf_map(struct dmabuf *d)
{
	int err;

	err = dma_buf_vmap_unlocked(d->buf, &d->map);
	if (err)
		return err;
	/* memory of a device must not be touched by memcpy() */
	if (d->map.is_iomem) {
		err = -EOPNOTSUPP;
		goto err_vunmap;
	}
	err = dma_buf_begin_cpu_access(d->buf, d->dir);
	if (err)
		goto err_vunmap;
	return 0;

err_vunmap:
	dma_buf_vunmap_unlocked(d->buf, &d->map);
	return err;
}

/* Has the reference to @buf from here on, also if it fails. */
static struct mrsoft_pages *dmabuf_pages(struct dma_buf *buf, u64 offset,
					 u64 length, bool write)
{
	struct mrsoft_pages *pages;
	struct dmabuf *d;
	int err;

	err = dmabuf_check(buf, offset, length, write);
	if (err)
		goto err_put;
	d = kzalloc_obj(*d, GFP_KERNEL_ACCOUNT);
	if (!d) {
		err = -ENOMEM;
		goto err_put;
	}
	d->buf = buf;
	d->dir = write ? DMA_BIDIRECTIONAL : DMA_FROM_DEVICE;
	err = dmabuf_map(d);
	if (err)
		goto err_free;
	pages = mrsoft_pages_mapped(d->map.vaddr + offset, dmabuf_release, d);
	if (IS_ERR(pages))
		dmabuf_release(d);
	return pages;

err_free:
	kfree(d);
err_put:
	dma_buf_put(buf);
	return ERR_PTR(err);
}

/**
 * mrsoft_dmabuf_pages - a part of a dma-buf
 * @fd: file descriptor of the calling process; it may be closed afterwards
 * @offset: bytes in front of the region
 * @length: bytes, not 0
 * @access: IB_ACCESS_*, decides whether the buffer will be written
 *
 * The exporter is told of CPU access to the buffer until the pages are freed.
 *
 * Context: process, sleeps; waits for devices that have the buffer in use now.
 * Return: the pages or ERR_PTR: -EBADF: @fd is no file; -EINVAL: it is no dma-buf,
 * or the range is not inside; -EACCES: write access, opened for reading;
 * -EOPNOTSUPP: the CPU cannot reach it as memory; -ENOMEM; or what the exporter
 * says, unchanged.
 */
struct mrsoft_pages *mrsoft_dmabuf_pages(int fd, u64 offset, u64 length,
					 int access)
{
	struct dma_buf *buf = dma_buf_get(fd);

	if (IS_ERR(buf))
		return ERR_CAST(buf);
	return dmabuf_pages(buf, offset, length, ib_access_writable(access));
}

MODULE_IMPORT_NS("DMA_BUF");
