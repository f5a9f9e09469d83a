// SPDX-License-Identifier: GPL-2.0
/*
 * fault.c - what must be faulted in before an access can go on
 *
 * Owns:     the needs of a copy that found a page not present; faults in the
 *           background.
 * Not here: why a page is not present and how it comes (odp.c), when a path
 *           tries again and when it gives up (local.c).
 * Locks:    job.lock (spin) orders the end of a job against who waits for it;
 *           inside it: what @wake takes.
 * Lifetime: a need keeps the description of the pages, not the region: dereg does
 *           not wait, and who faults drops the last reference.  A job belongs
 *           to its waiter and to the queue; who waits may leave at any time,
 *           since another process's page may take for ever (userfaultfd, a file
 *           of a server).  Unloading waits for jobs that run.
 * Context:  note in any; the rest process, sleeps.
 * Spec:     none
 * Tests:    kunit/odp_kunit.c, tools/testing/selftests/odp.c
 */
#include <linux/bug.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "demand.h"
#include "fault.h"
#include "limits.h"

/*
 * Apart from the queue where messages go on: that one has to make progress when
 * memory is short, and a page fault waits for memory.
 */
static struct workqueue_struct *fault_wq;

/**
 * struct mrsoft_fault_job - a fault in the background
 * @work: in @fault_wq
 * @users: the waiter and the queue
 * @fault: what; the work's alone
 * @lock: the rest
 * @wake: called once when it is done, NULL when nobody waits
 * @arg: for @wake
 * @done: yes
 * @err: with what result
 */
struct mrsoft_fault_job {
	struct work_struct work;
	refcount_t users;
	struct mrsoft_fault fault;
	spinlock_t lock;	/* wake, arg, done, err */
	void (*wake)(void *arg);
	void *arg;
	bool done;
	int err;
};

/**
 * mrsoft_fault_init - the module begins
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int mrsoft_fault_init(void)
{
	fault_wq = alloc_workqueue("mrsoft-fault", WQ_UNBOUND, 0);
	return fault_wq ? 0 : -ENOMEM;
}

/**
 * mrsoft_fault_exit - the module ends
 *
 * Waits for faults that run, and so for the processes whose pages they are.
 *
 * Context: process.
 */
void mrsoft_fault_exit(void)
{
	destroy_workqueue(fault_wq);
}

/**
 * mrsoft_fault_note - a copy needs the pages of a span
 * @fault: where to note it; empty, or with the other span of the same copy
 * @span: held
 * @write: it will be written
 *
 * Context: any.
 */
void mrsoft_fault_note(struct mrsoft_fault *fault,
		       const struct mrsoft_span *span, bool write)
{
	if (!span->pages || !mrsoft_pages_faultable(span->pages))
		return;
	if (WARN_ON_ONCE(fault->num == ARRAY_SIZE(fault->need)))
		return;
	mrsoft_pages_get(span->pages);
	fault->need[fault->num++] = (struct mrsoft_need){
		.pages	= span->pages,
		.offset	= span->offset,
		.length	= span->length,
		.how	= write ? MRSOFT_FAULT_WRITE : 0,
	};
}

/**
 * mrsoft_fault_drop - forget what was noted
 * @fault: empty afterwards
 *
 * Context: process, sleeps.
 */
void mrsoft_fault_drop(struct mrsoft_fault *fault)
{
	while (fault->num)
		mrsoft_pages_put(fault->need[--fault->num].pages);
}

/**
 * mrsoft_fault_own - is it all memory of the process that asks?
 * @fault: what was noted
 *
 * Then it may wait for it: it would have to wait for a fault of its own too.
 *
 * Context: any.
 * Return: false in a worker.
 */
bool mrsoft_fault_own(const struct mrsoft_fault *fault)
{
	unsigned int i;

	for (i = 0; i < fault->num; i++)
		if (!mrsoft_pages_own(fault->need[i].pages))
			return false;
	return true;
}

/**
 * mrsoft_fault_run - fault it in
 * @fault: what was noted; empty afterwards
 *
 * Context: process, sleeps.
 * Return: 0, or the first errno of mrsoft_pages_fault().
 */
int mrsoft_fault_run(struct mrsoft_fault *fault)
{
	struct mrsoft_need *need;
	unsigned int i;
	int ret, err = 0;

	/* all of it, so that what is absent then is what cannot be had */
	for (i = 0; i < fault->num; i++) {
		need = &fault->need[i];
		ret = mrsoft_pages_fault(need->pages, need->offset,
					 need->length, need->how);
		if (!err)
			err = ret;
	}
	mrsoft_fault_drop(fault);
	return err;
}

static void job_put(struct mrsoft_fault_job *job)
{
	if (refcount_dec_and_test(&job->users))
		kfree(job);
}

static void job_work(struct work_struct *work)
{
	struct mrsoft_fault_job *job =
		container_of(work, struct mrsoft_fault_job, work);
	int err = mrsoft_fault_run(&job->fault);

	spin_lock(&job->lock);
	job->done = true;
	job->err = err;
	/* under the lock, so that who leaves is not called afterwards */
	if (job->wake)
		job->wake(job->arg);
	spin_unlock(&job->lock);
	job_put(job);
}

/* Those who left may leave their jobs behind, but not without end. */
static bool crowded(const struct mrsoft_fault *fault)
{
	unsigned int i;

	for (i = 0; i < fault->num; i++)
		if (mrsoft_pages_users(fault->need[i].pages) >
		    MRSOFT_FAULT_JOBS)
			return true;
	return false;
}

/**
 * mrsoft_fault_start - fault it in, in the background
 * @fault: what was noted; taken over, empty afterwards
 * @wake: called once, when it is done, with a lock held: must not sleep
 * @arg: for @wake
 *
 * Context: process.
 * Return: the job, for mrsoft_fault_job_end(); NULL: no memory, or too many wait
 * for these pages: the needs are dropped.
 */
struct mrsoft_fault_job *mrsoft_fault_start(struct mrsoft_fault *fault,
					    void (*wake)(void *arg), void *arg)
{
	struct mrsoft_fault_job *job = NULL;

	if (!crowded(fault))
		job = kzalloc_obj(*job, GFP_NOWAIT);
	if (!job) {
		mrsoft_fault_drop(fault);
		return NULL;
	}
	INIT_WORK(&job->work, job_work);
	refcount_set(&job->users, 2);
	spin_lock_init(&job->lock);
	job->wake = wake;
	job->arg = arg;
	job->fault = *fault;
	fault->num = 0;
	queue_work(fault_wq, &job->work);
	return job;
}

/**
 * mrsoft_fault_job_end - take the result, or leave
 * @job: not to be touched afterwards
 *
 * On return @wake is not running and will not be called.
 *
 * Context: process.
 * Return: 0; an errno of mrsoft_fault_run(); -EINPROGRESS: not done, it goes on
 * without a waiter.
 */
int mrsoft_fault_job_end(struct mrsoft_fault_job *job)
{
	int ret;

	spin_lock(&job->lock);
	ret = job->done ? job->err : -EINPROGRESS;
	job->wake = NULL;
	spin_unlock(&job->lock);
	job_put(job);
	return ret;
}

/* ibv_advise_mr(3) */
static int advice_errno(enum mrsoft_reason reason)
{
	switch (reason) {
	case MRSOFT_R_NONE:
		return 0;
	case MRSOFT_R_KEY_UNKNOWN:
	case MRSOFT_R_KEY_STALE:
		return -ENOENT;
	case MRSOFT_R_WRONG_PD:
	case MRSOFT_R_NO_LOCAL_WRITE:
		return -EPERM;
	case MRSOFT_R_KEY_KIND:
	case MRSOFT_R_KEY_INVALID:
		return -EINVAL;
	default:
		return -EFAULT;
	}
}

/**
 * mrsoft_fault_advise - bytes of a region will be used soon
 * @table: the device's table
 * @pd: who says so
 * @advice: how
 * @sge: an lkey and a range of its region
 *
 * Without @advice->wait it is done, or fails, in the background; when much is on
 * its way there already it is not done: it is a hint.
 *
 * Context: process, sleeps.
 * Return: 0; -ENOENT: no such key; -EPERM: not of @pd, or not to be written;
 * -EFAULT: not in the region, or the process could not touch the bytes; -EINVAL:
 * a window, or the region is pinned; -EINTR.
 */
int mrsoft_fault_advise(struct mrsoft_table *table, const struct mrsoft_pd *pd,
			const struct mrsoft_advice *advice,
			const struct ib_sge *sge)
{
	struct mrsoft_access req = {
		.pd	= pd,
		.key	= sge->lkey,
		.rights	= advice->write ? IB_ACCESS_LOCAL_WRITE : 0,
		.iova	= sge->addr,
		.length	= sge->length,
	};
	struct mrsoft_fault_job *job;
	struct mrsoft_fault fault = {};
	struct mrsoft_span span;
	int err;

	err = advice_errno(mrsoft_key_access(table, &req, &span));
	if (err)
		return err;
	mrsoft_fault_note(&fault, &span, advice->write);
	mrsoft_span_put(&span);
	if (!fault.num)
		return -EINVAL;
	fault.need[0].how |= MRSOFT_FAULT_ADVICE;
	if (advice->peek)
		fault.need[0].how |= MRSOFT_FAULT_PEEK;
	if (advice->wait) {
		err = mrsoft_fault_run(&fault);
		return !err || err == -EINTR ? err : -EFAULT;
	}
	job = mrsoft_fault_start(&fault, NULL, NULL);
	if (job)
		mrsoft_fault_job_end(job);
	return 0;
}
