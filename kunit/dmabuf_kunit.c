// SPDX-License-Identifier: GPL-2.0
/*
 * dmabuf_kunit.c - buffers of an exporter that keeps count
 *
 * What user space has no exporter for: one without a mapping, one whose mapping is
 * memory of a device, one that refuses the CPU; and each of its calls has its end.
 */
#include <kunit/test.h>
#include <linux/file.h>
#include <linux/vmalloc.h>

#include "dmabuf.c"

#define BYTES	(3 * PAGE_SIZE)

struct exporter {
	u8 *mem;
	bool iomem;
	int cpu_error;
	int vmaps, begins, releases;
	enum dma_data_direction dir;
};

static struct sg_table *map_never(struct dma_buf_attachment *at,
				  enum dma_data_direction dir)
{
	return ERR_PTR(-EIO);
}

static void unmap_never(struct dma_buf_attachment *at, struct sg_table *sgt,
			enum dma_data_direction dir)
{
}

static int count_vmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct exporter *x = buf->priv;

	x->vmaps++;
	if (x->iomem)
		iosys_map_set_vaddr_iomem(map, (void __iomem *)x->mem);
	else
		iosys_map_set_vaddr(map, x->mem);
	return 0;
}

static void count_vunmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct exporter *x = buf->priv;

	x->vmaps--;
}

static int count_begin(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct exporter *x = buf->priv;

	if (x->cpu_error)
		return x->cpu_error;
	x->dir = dir;
	x->begins++;
	return 0;
}

static int count_end(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct exporter *x = buf->priv;

	x->begins -= dir == x->dir;
	return 0;
}

static void count_release(struct dma_buf *buf)
{
	struct exporter *x = buf->priv;

	x->releases++;
}

static const struct dma_buf_ops counting = {
	.map_dma_buf = map_never,
	.unmap_dma_buf = unmap_never,
	.vmap = count_vmap,
	.vunmap = count_vunmap,
	.begin_cpu_access = count_begin,
	.end_cpu_access = count_end,
	.release = count_release,
};

static const struct dma_buf_ops unmappable = {
	.map_dma_buf = map_never,
	.unmap_dma_buf = unmap_never,
	.release = count_release,
};

static struct dma_buf *export(struct kunit *test, const struct dma_buf_ops *ops,
			      int flags)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *buf;

	info.ops = ops;
	info.size = BYTES;
	info.flags = flags;
	info.priv = test->priv;
	buf = dma_buf_export(&info);
	KUNIT_ASSERT_FALSE(test, IS_ERR(buf));
	return buf;
}

/* The last reference of a file ends when its task next leaves the kernel. */
static void expect_idle(struct kunit *test)
{
	struct exporter *x = test->priv;

	flush_delayed_fput();
	KUNIT_EXPECT_EQ(test, x->vmaps, 0);
	KUNIT_EXPECT_EQ(test, x->begins, 0);
	KUNIT_EXPECT_EQ(test, x->releases, 1);
}

/* The bytes are those of the buffer from the offset on; all is given back once. */
static void bytes(struct kunit *test)
{
	struct exporter *x = test->priv;
	struct mrsoft_pages *pages;
	size_t len = 5000;
	u8 *p;

	pages = dmabuf_pages(export(test, &counting, O_RDWR), 101, 5000, true);
	KUNIT_ASSERT_FALSE(test, IS_ERR(pages));
	KUNIT_EXPECT_EQ(test, x->vmaps, 1);
	KUNIT_EXPECT_EQ(test, x->begins, 1);
	KUNIT_EXPECT_EQ(test, (int)x->dir, (int)DMA_BIDIRECTIONAL);
	KUNIT_EXPECT_FALSE(test, mrsoft_pages_faultable(pages));
	KUNIT_EXPECT_EQ(test, mrsoft_pages_pins(pages), 0ull);
	KUNIT_EXPECT_EQ(test, PTR_ERR(mrsoft_pages_repin(pages, 0)), -EACCES);

	p = mrsoft_pages_map(pages, 0, &len, true);
	KUNIT_EXPECT_PTR_EQ(test, p, x->mem + 101);
	KUNIT_EXPECT_EQ(test, len, (size_t)5000);
	mrsoft_pages_unmap(pages, p);
	len = 1;
	p = mrsoft_pages_map(pages, 4999, &len, true);
	KUNIT_EXPECT_PTR_EQ(test, p, x->mem + 5100);
	mrsoft_pages_unmap(pages, p);

	KUNIT_EXPECT_EQ(test, x->releases, 0);
	mrsoft_pages_put(pages);
	expect_idle(test);
}

/* Regions share a buffer; it goes with the last. */
static void shared(struct kunit *test)
{
	struct dma_buf *buf = export(test, &counting, O_RDWR);
	struct exporter *x = test->priv;
	struct mrsoft_pages *one, *two;

	get_dma_buf(buf);
	one = dmabuf_pages(buf, 0, BYTES, true);
	two = dmabuf_pages(buf, PAGE_SIZE, 1, true);
	KUNIT_ASSERT_FALSE(test, IS_ERR(one) || IS_ERR(two));
	/* the core of dma-buf maps it once */
	KUNIT_EXPECT_EQ(test, x->vmaps, 1);
	KUNIT_EXPECT_EQ(test, x->begins, 2);
	mrsoft_pages_put(one);
	flush_delayed_fput();
	KUNIT_EXPECT_EQ(test, x->vmaps, 1);
	KUNIT_EXPECT_EQ(test, x->begins, 1);
	KUNIT_EXPECT_EQ(test, x->releases, 0);
	mrsoft_pages_put(two);
	expect_idle(test);
}

struct refusal {
	const char *name;
	u64 offset, length;
	bool write;
	int flags;
	bool unmappable, iomem;
	int cpu_error;
	int err;
};

static const struct refusal refusals[] = {
	{ "empty", 0, 0, true, O_RDWR, .err = -EINVAL },
	{ "one byte too long", 0, BYTES + 1, true, O_RDWR, .err = -EINVAL },
	{ "one byte too far", 1, BYTES, true, O_RDWR, .err = -EINVAL },
	{ "begins behind the end", BYTES + 1, 1, true, O_RDWR, .err = -EINVAL },
	{ "the sum wraps", U64_MAX, 2, true, O_RDWR, .err = -EINVAL },
	{ "the sum wraps by a page", U64_MAX - 0xfff, 0x1fff, true, O_RDWR, .err = -EINVAL },
	{ "writes what was opened for reading", 0, 8, true, O_RDONLY, .err = -EACCES },
	{ "no mapping", 0, 8, true, O_RDWR, .unmappable = true, .err = -EOPNOTSUPP },
	{ "memory of a device", 0, 8, true, O_RDWR, .iomem = true, .err = -EOPNOTSUPP },
	{ "exporter says no", 0, 8, true, O_RDWR, .cpu_error = -EBUSY, .err = -EBUSY },
};

KUNIT_ARRAY_PARAM_DESC(refusals, refusals, name);

/* A refusal leaves no reference, no mapping and no CPU access begun. */
static void refused(struct kunit *test)
{
	const struct refusal *row = test->param_value;
	struct exporter *x = test->priv;
	struct mrsoft_pages *pages;

	x->iomem = row->iomem;
	x->cpu_error = row->cpu_error;
	pages = dmabuf_pages(export(test, row->unmappable ? &unmappable : &counting,
				    row->flags), row->offset, row->length,
			     row->write);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(pages), row->err);
	expect_idle(test);
}

/* Reading what was opened for reading; the exporter knows that nothing is written. */
static void for_reading(struct kunit *test)
{
	struct exporter *x = test->priv;
	struct mrsoft_pages *pages;

	pages = dmabuf_pages(export(test, &counting, O_RDONLY), 0, BYTES, false);
	KUNIT_ASSERT_FALSE(test, IS_ERR(pages));
	KUNIT_EXPECT_EQ(test, (int)x->dir, (int)DMA_FROM_DEVICE);
	mrsoft_pages_put(pages);
	expect_idle(test);
}

static int dmabuf_init(struct kunit *test)
{
	struct exporter *x = kunit_kzalloc(test, sizeof(*x), GFP_KERNEL);

	if (!x)
		return -ENOMEM;
	x->mem = vmalloc(BYTES);
	test->priv = x;
	return x->mem ? 0 : -ENOMEM;
}

static void dmabuf_exit(struct kunit *test)
{
	struct exporter *x = test->priv;

	vfree(x->mem);
}

static struct kunit_case dmabuf_cases[] = {
	KUNIT_CASE(bytes),
	KUNIT_CASE(shared),
	KUNIT_CASE(for_reading),
	KUNIT_CASE_PARAM(refused, refusals_gen_params),
	{}
};

static struct kunit_suite dmabuf_suite = {
	.name = "mrsoft_dmabuf",
	.init = dmabuf_init,
	.exit = dmabuf_exit,
	.test_cases = dmabuf_cases,
};

kunit_test_suite(dmabuf_suite);

MODULE_DESCRIPTION("KUnit tests of mrsoft's dma-buf regions");
MODULE_LICENSE("GPL");
