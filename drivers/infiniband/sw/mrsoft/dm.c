// SPDX-License-Identifier: GPL-2.0
/*
 * dm.c - verbs on device memory
 *
 * Owns:     buffers that belong to no process, and how many bytes of them there are.
 * Not here: keys and rights of a region in one (mr.c).
 * Locks:    none; the pool is one atomic count.
 * Lifetime: the core refuses to free a buffer while a region is in it, and frees
 *           those of a process that ends after its regions.
 * Context:  process, sleeps.
 * Spec:     ibv_alloc_dm(3), ibv_reg_dm_mr(3)
 * Tests:    tools/testing/selftests/dm.c
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "dev.h"
#include "dm.h"
#include "limits.h"
#include "mr.h"

/**
 * struct dm - device memory
 * @ib: the core's part
 * @mem: I, whole pages, zeroed when they were given out
 * @size: I, bytes of @mem
 */
struct dm {
	struct ib_dm ib;
	void *mem;
	u64 size;
};

static struct dm *to_dm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct dm, ib);
}

static int pool_take(struct mrsoft_dev *dev, u64 size)
{
	if (atomic64_add_return(size, &dev->dm_bytes) <= MRSOFT_MAX_DM_SIZE)
		return 0;
	atomic64_sub(size, &dev->dm_bytes);
	return -ENOMEM;
}

static void pool_give(struct mrsoft_dev *dev, u64 size)
{
	atomic64_sub(size, &dev->dm_bytes);
}

/* What the memory is charged to is the caller's memory cgroup. */
static struct ib_dm *alloc_dm(struct ib_device *ibdev,
			      struct ib_ucontext *context,
			      struct ib_dm_alloc_attr *attr,
			      struct uverbs_attr_bundle *attrs)
{
	struct mrsoft_dev *dev = mrsoft_dev(ibdev);
	struct dm *dm;
	int err;

	/* alignment is a power of two; a buffer begins with a page */
	if (!attr->length || attr->alignment > PAGE_SHIFT)
		return ERR_PTR(-EINVAL);
	if (attr->length > MRSOFT_MAX_DM_SIZE)
		return ERR_PTR(-ENOMEM);
	dm = kzalloc_obj(*dm, GFP_KERNEL_ACCOUNT);
	if (!dm)
		return ERR_PTR(-ENOMEM);
	dm->size = PAGE_ALIGN(attr->length);
	err = pool_take(dev, dm->size);
	if (err)
		goto err_free;
	dm->mem = __vmalloc(dm->size, GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!dm->mem) {
		err = -ENOMEM;
		goto err_give;
	}
	return &dm->ib;

err_give:
	pool_give(dev, dm->size);
err_free:
	kfree(dm);
	return ERR_PTR(err);
}

static int dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	struct dm *dm = to_dm(ibdm);

	vfree(dm->mem);
	pool_give(mrsoft_dev(ibdm->device), dm->size);
	kfree(dm);
	return 0;
}

/* The core has seen that the range is inside and that the region is zero-based. */
static struct ib_mr *reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
			       struct ib_dm_mr_attr *attr,
			       struct uverbs_attr_bundle *attrs)
{
	struct mrsoft_pages *pages;
	struct mrsoft_mr *mr;

	pages = mrsoft_pages_mapped(to_dm(ibdm)->mem + attr->offset, NULL, NULL);
	mr = mrsoft_mr_reg_pages(&mrsoft_dev(ibpd->device)->hca.keys,
				 mrsoft_pd(ibpd), MRSOFT_KEY_MR_DM, pages,
				 attr->length, 0, attr->access_flags);
	return IS_ERR(mr) ? ERR_CAST(mr) : &mr->ib;
}

const struct ib_device_ops mrsoft_dm_ops = {
	.alloc_dm = alloc_dm,
	.dealloc_dm = dealloc_dm,
	.reg_dm_mr = reg_dm_mr,
};
