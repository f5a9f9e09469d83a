/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shadow of <rdma/uverbs_ioctl.h>: helpers that take a driver's private input and
 * give its private output by the rules of the uAPI: input may be longer than the
 * kernel's struct if the rest is zero (else -EOPNOTSUPP), shorter down to the
 * first version (else -EINVAL); output is cut to the shorter, the rest zeroed.
 */
#ifndef MRSOFT_COMPAT_RDMA_UVERBS_IOCTL_H
#define MRSOFT_COMPAT_RDMA_UVERBS_IOCTL_H

#include_next <rdma/uverbs_ioctl.h>

#ifndef MRSOFT_HAVE_UDATA_HELPERS
#include <linux/minmax.h>
#include <linux/uaccess.h>

static inline int _ib_copy_validate_udata_in(struct ib_udata *udata, void *req,
					     size_t kernel_size,
					     size_t minimum_size)
{
	int err;

	if (udata->inlen < minimum_size)
		return -EINVAL;
	err = copy_struct_from_user(req, kernel_size, udata->inbuf,
				    udata->inlen);
	return err == -E2BIG ? -EOPNOTSUPP : err;
}

static inline int _ib_respond_udata(struct ib_udata *udata, const void *src,
				    size_t len)
{
	size_t copy_len = min(len, udata->outlen);

	if (copy_to_user(udata->outbuf, src, copy_len))
		return -EFAULT;
	if (copy_len < udata->outlen &&
	    clear_user(udata->outbuf + copy_len, udata->outlen - copy_len))
		return -EFAULT;
	return 0;
}

#define ib_copy_validate_udata_in(_udata, _req, _end_member)      \
	_ib_copy_validate_udata_in(_udata, &(_req), sizeof(_req), \
				   offsetofend(typeof(_req), _end_member))

#define ib_copy_validate_udata_in_cm(_udata, _req, _end_member, _valid_cm)    \
	({                                                                    \
		typeof((_req).comp_mask) __valid_cm = _valid_cm;              \
		int ret =                                                     \
			ib_copy_validate_udata_in(_udata, _req, _end_member); \
		if (!ret && ((_req).comp_mask & ~__valid_cm))                 \
			ret = -EOPNOTSUPP;                                    \
		ret;                                                          \
	})

static inline int ib_is_udata_in_empty(struct ib_udata *udata)
{
	if (!udata || udata->inlen == 0)
		return 0;
	return _ib_copy_validate_udata_in(udata, NULL, 0, 0);
}

#define ib_respond_udata(_udata, _rep) \
	_ib_respond_udata(_udata, &(_rep), sizeof(_rep))

static inline int ib_respond_empty_udata(struct ib_udata *udata)
{
	if (udata && udata->outlen && clear_user(udata->outbuf, udata->outlen))
		return -EFAULT;
	return 0;
}

static inline int ib_no_udata_io(struct ib_udata *udata)
{
	int ret = ib_is_udata_in_empty(udata);

	if (ret)
		return ret;
	return ib_respond_empty_udata(udata);
}
#endif

#endif
