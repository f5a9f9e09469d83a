// SPDX-License-Identifier: GPL-2.0
/*
 * verbs_ah.c - verbs on address handles
 *
 * Owns:     argument checks and the reply of create_ah.
 * Not here: the address and the table of numbers (ah.c).
 * Locks:    ah->lock covers the address against a sender that copies it.
 * Lifetime: a user's AH is found by its number until destroy takes that back.
 * Context:  create_ah, modify, query and destroy in any context.
 * Spec:     IBA Vol 1, 11.2.2 (address handles)
 * Tests:    tools/testing/suites, pyverbs
 */
#include <rdma/uverbs_ioctl.h>

#include "ah.h"
#include "dev.h"
#include "verbs.h"
#include "verbs_ah.h"

static int check_attr(const struct rdma_ah_attr *attr)
{
	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE ||
	    rdma_ah_get_port_num(attr) != MRSOFT_PORT)
		return -EINVAL;
	/* RoCE has no address but the GID. */
	if (!(rdma_ah_get_ah_flags(attr) & IB_AH_GRH))
		return -EINVAL;
	return 0;
}

static void set_attr(struct mrsoft_ah *ah, const struct rdma_ah_attr *attr)
{
	unsigned long flags;

	spin_lock_irqsave(&ah->lock, flags);
	mrsoft_av_set(&ah->av, attr);
	ah->attr = *attr;
	/* The core's reference, not ours to hand on in query_ah. */
	ah->attr.grh.sgid_attr = NULL;
	spin_unlock_irqrestore(&ah->lock, flags);
}

/* From the kernel: any context. */
static int create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		     struct ib_udata *udata)
{
	struct mrsoft_dev *dev = mrsoft_dev(ibah->device);
	struct mrsoft_ah *ah = mrsoft_ah(ibah);
	int err;

	err = check_attr(init->ah_attr);
	if (err)
		return err;
	err = mrsoft_dev_claim(dev, MRSOFT_OBJ_AH);
	if (err)
		return err;
	spin_lock_init(&ah->lock);
	set_attr(ah, init->ah_attr);
	return 0;
}

static int create_user_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
			  struct ib_udata *udata)
{
	struct mrsoft_dev *dev = mrsoft_dev(ibah->device);
	struct mrsoft_ah *ah = mrsoft_ah(ibah);
	struct mrsoft_abi_create_ah_resp resp = {};
	int err;

	err = mrsoft_verbs_check_udata(udata, sizeof(resp));
	if (err)
		return err;
	err = create_ah(ibah, init, udata);
	if (err)
		return err;
	err = mrsoft_ah_publish(&dev->hca, ah);
	if (err)
		goto release;
	resp.ah_num = ah->ah_num;
	err = ib_respond_udata(udata, resp);
	if (err)
		goto unpublish;
	return 0;

unpublish:
	mrsoft_ah_unpublish(&dev->hca, ah);
release:
	mrsoft_dev_release(dev, MRSOFT_OBJ_AH);
	return err;
}

static int modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	int err = check_attr(attr);

	if (err)
		return err;
	set_attr(mrsoft_ah(ibah), attr);
	return 0;
}

static int query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	struct mrsoft_ah *ah = mrsoft_ah(ibah);
	unsigned long flags;

	spin_lock_irqsave(&ah->lock, flags);
	*attr = ah->attr;
	spin_unlock_irqrestore(&ah->lock, flags);
	return 0;
}

static int destroy_ah(struct ib_ah *ibah, u32 flags)
{
	struct mrsoft_dev *dev = mrsoft_dev(ibah->device);
	struct mrsoft_ah *ah = mrsoft_ah(ibah);

	if (ah->ah_num)
		mrsoft_ah_unpublish(&dev->hca, ah);
	mrsoft_dev_release(dev, MRSOFT_OBJ_AH);
	return 0;
}

const struct ib_device_ops mrsoft_verbs_ah_ops = {
	.create_ah = create_ah,
	.create_user_ah = create_user_ah,
	.destroy_ah = destroy_ah,
	.modify_ah = modify_ah,
	.query_ah = query_ah,

	INIT_RDMA_OBJ_SIZE(ib_ah, mrsoft_ah, ib),
};
