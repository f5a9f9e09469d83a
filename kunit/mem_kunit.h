/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mem_kunit.h - what the suites of the memory layer share
 *
 * A device without an ib_device that is registered, two PDs, and regions over
 * kernel memory: fast registration makes a valid key of any iova without a
 * process whose pages could be pinned.
 */
#ifndef MRSOFT_MEM_KUNIT_H
#define MRSOFT_MEM_KUNIT_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "copy.h"
#include "mr.h"

#define ALL_REMOTE	MRSOFT_GRANTED_RIGHTS
#define ALL_RIGHTS	(MRSOFT_GRANTED_RIGHTS | IB_ACCESS_LOCAL_WRITE | \
			 IB_ACCESS_MW_BIND)

/* The debugging kernels are slow and look for other things: fewer rounds do. */
#define MEM_SLOW	(IS_ENABLED(CONFIG_PROVE_LOCKING) || \
			 IS_ENABLED(CONFIG_KASAN))

struct mem {
	struct ib_device *ibdev;
	struct mrsoft_stats stats;
	struct mrsoft_table table;
	struct mrsoft_pd pd[2];
};

static inline struct mem *mem_create(struct kunit *test)
{
	struct mem *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->ibdev = kunit_kzalloc(test, sizeof(*m->ibdev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, m->ibdev);
	/* for who keeps it: the last reference stays with the test */
	device_initialize(&m->ibdev->dev);
	m->pd[0].ib.device = m->ibdev;
	m->pd[1].ib.device = m->ibdev;
	mrsoft_table_init(&m->table, &m->stats);
	return m;
}

/* What was created is destroyed: each suite's exit calls it. */
static inline void mem_check_empty(struct kunit *test, struct mem *m)
{
	KUNIT_EXPECT_EQ(test, atomic_read(&m->table.regions), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&m->table.windows), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&m->pd[0].regions), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&m->pd[1].regions), 0);
	KUNIT_EXPECT_TRUE(test, xa_empty(&m->table.xa));
	mrsoft_table_destroy(&m->table);
}

static inline s64 mem_refusals(struct mem *m, enum mrsoft_reason reason)
{
	return atomic64_read(&m->stats.reasons[reason]);
}

static inline void mem_sg(struct scatterlist *sg, void *addr, u32 len)
{
	sg_init_one(sg, addr, len);
	sg_dma_address(sg) = (uintptr_t)addr;
	sg_dma_len(sg) = len;
}

/* ib_map_mr_sg() and REG_MR of @len bytes at @addr with @key. */
static inline enum mrsoft_reason mem_fast_reg(struct mem *m,
					      struct mrsoft_mr *mr, void *addr,
					      u32 len, u64 iova, u32 key,
					      int access)
{
	struct scatterlist sg;

	mem_sg(&sg, addr, len);
	mr->ib.page_size = PAGE_SIZE;
	if (mrsoft_mr_map_sg(mr, &sg, 1, NULL) != 1)
		return MRSOFT_R_COUNT;
	mr->ib.iova = iova;
	return mrsoft_mr_fast_reg(&m->table, mr->key.pd, mr, key, access);
}

/* A valid region of @len bytes of kernel memory at @addr. */
static inline struct mrsoft_mr *mem_region(struct kunit *test, struct mem *m,
					   int pd, void *addr, u32 len,
					   u64 iova, int access)
{
	struct mrsoft_mr *mr;

	mr = mrsoft_mr_alloc_fast(&m->table, &m->pd[pd], len / PAGE_SIZE + 2, false);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_ASSERT_EQ(test, mem_fast_reg(m, mr, addr, len, iova, mr->key.key,
					   access), MRSOFT_R_NONE);
	return mr;
}

/* A region of any range and without memory: for checks, not for copies. */
static inline struct mrsoft_mr *mem_bare_region(struct kunit *test,
						struct mem *m, int pd, u64 iova,
						u64 length, int access)
{
	struct mrsoft_mr *mr;

	mr = mrsoft_mr_alloc_fast(&m->table, &m->pd[pd], 1, false);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	mr->key.iova = iova;
	mr->key.length = length;
	mr->key.access = access;
	mrsoft_key_publish(&mr->key);
	return mr;
}

/* The reason that an access gets; a hold is put at once. */
static inline enum mrsoft_reason mem_try(struct mem *m, int pd, u32 qpn,
					 u32 key, int rights, u64 iova,
					 u64 length)
{
	struct mrsoft_access req = {
		.pd = &m->pd[pd], .qpn = qpn, .key = key, .rights = rights,
		.iova = iova, .length = length,
	};
	enum mrsoft_reason reason;
	struct mrsoft_span span;

	reason = mrsoft_key_access(&m->table, &req, &span);
	if (!reason)
		mrsoft_span_put(&span);
	return reason;
}

/* One copy through a key: @write from @buf, or read into @buf. */
static inline enum mrsoft_reason mem_rw(struct mem *m, int pd, u32 qpn, u32 key,
					int rights, u64 iova, void *buf,
					u64 length, bool write)
{
	struct mrsoft_access req = {
		.pd = &m->pd[pd], .qpn = qpn, .key = key, .rights = rights,
		.iova = iova, .length = length,
	};
	struct mrsoft_span span, mine;
	enum mrsoft_reason reason;

	reason = mrsoft_key_access(&m->table, &req, &span);
	if (reason)
		return reason;
	mrsoft_span_kernel(&mine, buf, length);
	if (write)
		reason = mrsoft_copy(&span, 0, &mine, 0, length);
	else
		reason = mrsoft_copy(&mine, 0, &span, 0, length);
	mrsoft_span_put(&span);
	return reason;
}

/*
 * Something that must wait for a hold, run by a thread of its own so that the
 * test can watch it wait.
 */
struct waiter {
	void (*fn)(void *arg);
	void *arg;
	struct completion done;
};

static inline int waiter_thread(void *data)
{
	struct waiter *w = data;

	w->fn(w->arg);
	complete(&w->done);
	return 0;
}

static inline void waiter_start(struct kunit *test, struct waiter *w,
				void (*fn)(void *arg), void *arg)
{
	w->fn = fn;
	w->arg = arg;
	init_completion(&w->done);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(waiter_thread, w,
						    "mrsoft-wait")));
}

/* Threads may be slow to start on a busy host, so conditions are waited for. */
#define mem_eventually(cond)					\
({								\
	int __ms = 20000;					\
								\
	while (!(cond) && --__ms)				\
		usleep_range(900, 1000);			\
	__ms > 0;						\
})

/* Is it still waiting after a time in which it would long have ended? */
static inline bool waiter_waits(struct waiter *w)
{
	return !wait_for_completion_timeout(&w->done, msecs_to_jiffies(30));
}

/* The hold is gone, so it ends; a hang fails the test instead of the machine. */
static inline bool waiter_ends(struct waiter *w)
{
	return wait_for_completion_timeout(&w->done, msecs_to_jiffies(20000));
}

/* Threads that do the same until they are told to stop. */
struct crowd {
	int (*turn)(void *arg, unsigned int who);
	void *arg;
	struct task_struct *task[4];
	unsigned int num;
	atomic_t started;
	atomic_t ids;
	atomic_t wrong;
};

static inline int crowd_thread(void *data)
{
	struct crowd *crowd = data;
	unsigned int who = atomic_inc_return(&crowd->ids) - 1;

	atomic_inc(&crowd->started);
	while (!kthread_should_stop()) {
		if (crowd->turn(crowd->arg, who))
			atomic_inc(&crowd->wrong);
		cond_resched();
	}
	return 0;
}

static inline void crowd_start(struct kunit *test, struct crowd *crowd,
			       unsigned int num,
			       int (*turn)(void *arg, unsigned int who),
			       void *arg)
{
	*crowd = (struct crowd){ .turn = turn, .arg = arg };
	while (crowd->num < num) {
		struct task_struct *task;

		task = kthread_run(crowd_thread, crowd, "mrsoft-crowd");
		KUNIT_ASSERT_FALSE(test, IS_ERR(task));
		crowd->task[crowd->num++] = task;
	}
	while (atomic_read(&crowd->started) < num)
		usleep_range(100, 200);
}

/* How many turns saw something wrong. */
static inline int crowd_stop(struct crowd *crowd)
{
	while (crowd->num)
		kthread_stop(crowd->task[--crowd->num]);
	return atomic_read(&crowd->wrong);
}

#endif /* MRSOFT_MEM_KUNIT_H */
