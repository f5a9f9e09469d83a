// SPDX-License-Identifier: GPL-2.0
/*
 * small.c - runs suites where the kernel has no KUnit
 *
 * Owns:     the thread of a case, its deferred actions, KTAP in the log.
 * Not here: what KUnit has and kunit/live does not use.
 * Locks:    test->lock covers the actions and the verdict of a case.
 * Context:  process; a case runs in a thread of its own, which an assertion that
 *           fails ends.
 */
#include <kunit/test.h>

#if !IS_ENABLED(CONFIG_KUNIT)

#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/slab.h>

struct action {
	struct list_head entry;
	kunit_action_t *func;
	void *ctx;
};

struct run {
	struct kunit *test;
	struct kunit_suite *suite;
	struct kunit_case *test_case;
	struct completion ended;
};

/* An assertion ends the thread of its case: whose? */
static struct completion *ended;

void mrsoft_kunit_fail(struct kunit *test, bool abort, const char *where,
		       const char *fmt, ...)
{
	struct va_format text = { .fmt = fmt };
	unsigned long flags;
	va_list args;

	va_start(args, fmt);
	text.va = &args;
	pr_info("    # %s: %s: %pV\n", test->name, kbasename(where), &text);
	va_end(args);
	spin_lock_irqsave(&test->lock, flags);
	test->failed = true;
	spin_unlock_irqrestore(&test->lock, flags);
	if (abort)
		kthread_complete_and_exit(ended, 0);
}

int kunit_add_action_or_reset(struct kunit *test, kunit_action_t *func,
			      void *ctx)
{
	struct action *action = kzalloc_obj(*action);
	unsigned long flags;

	if (!action) {
		func(ctx);
		return -ENOMEM;
	}
	action->func = func;
	action->ctx = ctx;
	spin_lock_irqsave(&test->lock, flags);
	list_add(&action->entry, &test->actions);
	spin_unlock_irqrestore(&test->lock, flags);
	return 0;
}

static void run_action(struct kunit *test, struct action *action)
{
	unsigned long flags;

	spin_lock_irqsave(&test->lock, flags);
	list_del(&action->entry);
	spin_unlock_irqrestore(&test->lock, flags);
	action->func(action->ctx);
	kfree(action);
}

void kunit_release_action(struct kunit *test, kunit_action_t *func, void *ctx)
{
	struct action *action;

	list_for_each_entry(action, &test->actions, entry) {
		if (action->func == func && action->ctx == ctx) {
			run_action(test, action);
			return;
		}
	}
}

static int thread(void *data)
{
	struct run *run = data;

	if (!run->suite->init || !run->suite->init(run->test))
		run->test_case->run_case(run->test);
	else
		mrsoft_kunit_fail(run->test, false, MRSOFT_KUNIT_WHERE,
				  "no start");
	kthread_complete_and_exit(&run->ended, 0);
	return 0;
}

static bool run_case(struct kunit_suite *suite, struct kunit_case *test_case)
{
	struct kunit test = { .name = test_case->name };
	struct run run = {
		.test = &test,
		.suite = suite,
		.test_case = test_case,
	};
	struct task_struct *task;

	spin_lock_init(&test.lock);
	INIT_LIST_HEAD(&test.actions);
	init_completion(&run.ended);
	ended = &run.ended;
	task = kthread_run(thread, &run, "%s", test.name);
	if (IS_ERR(task))
		return false;
	wait_for_completion(&run.ended);
	if (suite->exit)
		suite->exit(&test);
	while (!list_empty(&test.actions))
		run_action(&test, list_first_entry(&test.actions,
						   struct action, entry));
	return !test.failed;
}

static void run_suite(struct kunit_suite *suite, int number)
{
	struct kunit_case *test_case = suite->test_cases;
	bool ok, all = true;
	int n = 0;

	pr_info("    KTAP version 1\n");
	pr_info("    # Subtest: %s\n", suite->name);
	if (suite->suite_init && suite->suite_init(suite)) {
		pr_info("    # no start of the suite\n");
		all = false;
	} else {
		for (; test_case->run_case; test_case++) {
			ok = run_case(suite, test_case);
			all &= ok;
			pr_info("    %sok %d %s\n", ok ? "" : "not ", ++n,
				test_case->name);
		}
	}
	if (suite->suite_exit)
		suite->suite_exit(suite);
	pr_info("%sok %d %s\n", all ? "" : "not ", number, suite->name);
}

static int __init small_init(void)
{
	int i, num = 0;

	while (mrsoft_kunit_suites[num])
		num++;
	pr_info("KTAP version 1\n1..%d\n", num);
	for (i = 0; i < num; i++)
		run_suite(mrsoft_kunit_suites[i], i + 1);
	return 0;
}

static void __exit small_exit(void)
{
}

module_init(small_init);
module_exit(small_exit);

#endif
