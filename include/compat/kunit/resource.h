/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shadow of <kunit/resource.h>: deferred actions, which run when the test case
 * ends, last added first.
 */
#ifndef MRSOFT_COMPAT_KUNIT_RESOURCE_H
#define MRSOFT_COMPAT_KUNIT_RESOURCE_H

#if IS_ENABLED(CONFIG_KUNIT)
#include_next <kunit/resource.h>
#include <linux/slab.h>
#endif

#if !IS_ENABLED(CONFIG_KUNIT)
#include <kunit/mrsoft_small.h>
#elif !defined(MRSOFT_HAVE_KUNIT_ADD_ACTION)
typedef void (kunit_action_t)(void *);

#define KUNIT_DEFINE_ACTION_WRAPPER(wrapper, orig, arg_type)	\
	static void wrapper(void *in)				\
	{							\
		arg_type arg = (arg_type)in;			\
								\
		orig(arg);					\
	}

struct mrsoft_kunit_action {
	kunit_action_t *func;
	void *ctx;
};

static inline void mrsoft_kunit_action_run(struct kunit_resource *res)
{
	struct mrsoft_kunit_action *action = res->data;

	action->func(action->ctx);
	kfree(action);
}

static inline int mrsoft_kunit_action_init(struct kunit_resource *res, void *data)
{
	res->data = data;
	return 0;
}

static inline int kunit_add_action(struct kunit *test, kunit_action_t *func,
				   void *ctx)
{
	struct mrsoft_kunit_action *action;

	action = kzalloc_obj(*action);
	if (!action)
		return -ENOMEM;
	action->func = func;
	action->ctx = ctx;
	if (!kunit_alloc_resource(test, mrsoft_kunit_action_init,
				  mrsoft_kunit_action_run, GFP_KERNEL, action)) {
		kfree(action);
		return -ENOMEM;
	}
	return 0;
}

static inline int kunit_add_action_or_reset(struct kunit *test,
					    kunit_action_t *func, void *ctx)
{
	int ret = kunit_add_action(test, func, ctx);

	if (ret)
		func(ctx);
	return ret;
}
#endif

#endif
