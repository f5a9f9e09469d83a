// SPDX-License-Identifier: GPL-2.0
/*
 * odp_kunit.c - pages that come and go: the table, withdrawing, faults
 *
 * The first half publishes and withdraws kernel pages by itself, as faults and
 * the notifier do.  The second half has memory of a process, the third all of it.
 */
#include <linux/mman.h>

#include "fault.h"
#include "limits.h"
#include "mem_kunit.h"
#include "odp.c"

/* So few that it takes little to have more. */
#undef MRSOFT_MAX_CHILDREN
#define MRSOFT_MAX_CHILDREN	3u
#include "demand.c"

#define NUM	8
#define SKIP	100
#define BYTES	(NUM * PAGE_SIZE - SKIP - 50)

struct table {
	struct mrsoft_odp_region region;
	struct mrsoft_odp *odp;
	struct page *page[NUM];
};

static int odp_init(struct kunit *test)
{
	struct table *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	mrsoft_odp_region_init(&t->region, NULL);
	t->odp = odp_alloc(&t->region, SKIP, NUM);
	KUNIT_ASSERT_NOT_NULL(test, t->odp);
	for (i = 0; i < NUM; i++) {
		t->page[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		KUNIT_ASSERT_NOT_NULL(test, t->page[i]);
	}
	test->priv = t;
	return 0;
}

static void odp_exit(struct kunit *test)
{
	struct table *t = test->priv;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, atomic_read(&t->region.copies), 0);
	for (i = 0; i < NUM; i++) {
		ClearPageDirty(t->page[i]);
		__free_page(t->page[i]);
	}
	KUNIT_EXPECT_TRUE(test, mrsoft_odp_empty(t->odp));
	odp_discard(t->odp);
}

/* As demand.c does. */
static void *map(struct mrsoft_odp *odp, u64 offset, size_t *n, bool write)
{
	void *p;

	if (!mrsoft_odp_enter(odp->region))
		return NULL;
	p = mrsoft_odp_map(odp, offset, n, write);
	if (!p)
		mrsoft_odp_leave(odp->region);
	return p;
}

static void unmap(struct mrsoft_odp *odp, void *p)
{
	kunmap_local(p);
	mrsoft_odp_leave(odp->region);
}

/* Bytes that can be reached at @offset, 0 if none. */
static size_t reach(struct table *t, u64 offset, bool write)
{
	size_t n = SIZE_MAX;
	void *p = map(t->odp, offset, &n, write);

	if (!p)
		return 0;
	unmap(t->odp, p);
	return n;
}

static void rights(struct kunit *test)
{
	struct table *t = test->priv;

	KUNIT_EXPECT_EQ(test, reach(t, 0, false), 0);
	KUNIT_EXPECT_EQ(test, reach(t, 0, true), 0);
	publish(t->odp, 0, t->page[0], false);
	KUNIT_EXPECT_EQ(test, reach(t, 0, false), PAGE_SIZE - SKIP);
	KUNIT_EXPECT_EQ(test, reach(t, 0, true), 0);
	/* a page that is there for reading gets the right to write */
	publish(t->odp, 0, t->page[0], true);
	KUNIT_EXPECT_EQ(test, reach(t, 0, true), PAGE_SIZE - SKIP);
	/* and keeps it when it is faulted for reading again */
	publish(t->odp, 0, t->page[0], false);
	KUNIT_EXPECT_EQ(test, reach(t, 10, true), PAGE_SIZE - SKIP - 10);
	KUNIT_EXPECT_EQ(test, reach(t, PAGE_SIZE - SKIP, false), 0);
	withdraw(t->odp, 0, NUM);
	KUNIT_EXPECT_EQ(test, reach(t, 0, false), 0);
}

static void right_bytes(struct kunit *test)
{
	struct table *t = test->priv;
	unsigned int i;
	size_t n = 7;
	u8 *p;

	for (i = 0; i < NUM; i++)
		publish(t->odp, i, t->page[i], true);
	p = map(t->odp, 3 * PAGE_SIZE, &n, true);
	KUNIT_ASSERT_NOT_NULL(test, p);
	KUNIT_EXPECT_EQ(test, n, 7);
	KUNIT_EXPECT_PTR_EQ(test, p, (u8 *)page_address(t->page[3]) + SKIP);
	unmap(t->odp, p);
	withdraw(t->odp, 0, NUM);
}

struct present_row {
	const char *name;
	u64 offset, length;
	bool write, present;
};

/* Pages 1 to 5 are there, 3 for reading only. */
static const struct present_row present_rows[] = {
	{ "first page", 0, 1, false, false },
	{ "last byte of the first page", PAGE_SIZE - SKIP - 1, 1, false, false },
	{ "across into the second", PAGE_SIZE - SKIP - 1, 2, false, false },
	{ "second page", PAGE_SIZE - SKIP, PAGE_SIZE, true, true },
	{ "to before the third is wanted", PAGE_SIZE - SKIP, 2 * PAGE_SIZE, true, true },
	{ "one byte into the read-only one", PAGE_SIZE - SKIP, 2 * PAGE_SIZE + 1, true, false },
	{ "the same for reading", PAGE_SIZE - SKIP, 2 * PAGE_SIZE + 1, false, true },
	{ "all that is there", PAGE_SIZE - SKIP, 5 * PAGE_SIZE, false, true },
	{ "one byte more", PAGE_SIZE - SKIP, 5 * PAGE_SIZE + 1, false, false },
	{ "nothing", 0, 0, true, false },
	{ "last byte of all", BYTES - 1, 1, false, false },
};

KUNIT_ARRAY_PARAM_DESC(present_rows, present_rows, name);

static void present(struct kunit *test)
{
	const struct present_row *row = test->param_value;
	struct table *t = test->priv;
	unsigned int i;

	for (i = 1; i < 6; i++)
		publish(t->odp, i, t->page[i], i != 3);
	KUNIT_EXPECT_EQ(test, mrsoft_odp_present(t->odp, row->offset,
						 row->length, row->write),
			row->present);
	withdraw(t->odp, 0, NUM);
}

/* Only what was written is marked, and it is when it goes. */
static void written(struct kunit *test)
{
	struct table *t = test->priv;
	unsigned int i;

	for (i = 0; i < NUM; i++)
		publish(t->odp, i, t->page[i], true);
	reach(t, 0, false);
	reach(t, PAGE_SIZE, true);
	/* a fault of a page in use does not forget it */
	publish(t->odp, 1, t->page[1], true);
	KUNIT_EXPECT_FALSE(test, PageDirty(t->page[1]));
	withdraw(t->odp, 0, 1);
	KUNIT_EXPECT_FALSE(test, PageDirty(t->page[0]));
	withdraw(t->odp, 1, NUM);
	KUNIT_EXPECT_TRUE(test, PageDirty(t->page[1]));
	for (i = 2; i < NUM; i++)
		KUNIT_EXPECT_FALSE(test, PageDirty(t->page[i]));
}

static void take_first(void *arg)
{
	struct table *t = arg;

	withdraw(t->odp, 0, 1);
}

static void take_last(void *arg)
{
	struct table *t = arg;

	withdraw(t->odp, NUM - 1, NUM);
}

/* A page does not go while it is mapped; nobody else gets in meanwhile. */
static void withdraw_waits(struct kunit *test)
{
	struct table *t = test->priv;
	struct waiter absent, w;
	size_t n = 1;
	void *p;

	publish(t->odp, 0, t->page[0], true);
	publish(t->odp, 1, t->page[1], true);
	p = map(t->odp, 0, &n, true);
	KUNIT_ASSERT_NOT_NULL(test, p);
	/* who takes what is not there waits for nobody */
	waiter_start(test, &absent, take_last, t);
	KUNIT_EXPECT_TRUE(test, waiter_ends(&absent));
	waiter_start(test, &w, take_first, t);
	KUNIT_EXPECT_TRUE(test, waiter_waits(&w));
	KUNIT_EXPECT_EQ(test, reach(t, 0, false), 0);
	KUNIT_EXPECT_EQ(test, reach(t, PAGE_SIZE, false), 0);
	unmap(t->odp, p);
	KUNIT_EXPECT_TRUE(test, waiter_ends(&w));
	KUNIT_EXPECT_EQ(test, reach(t, 0, false), 0);
	KUNIT_EXPECT_NE(test, reach(t, PAGE_SIZE, false), 0);
	withdraw(t->odp, 0, NUM);
}

/* The owner writes where it has nothing published: no copy may see that. */
static int map_turn(void *arg, unsigned int who)
{
	struct table *t = arg;
	size_t n = sizeof(u64);
	int wrong = 0;
	u64 *p;

	p = map(t->odp, PAGE_SIZE - SKIP, &n, who & 1);
	if (p) {
		wrong = READ_ONCE(*p) != 0;
		cpu_relax();
		wrong |= READ_ONCE(*p) != 0;
		unmap(t->odp, p);
	}
	return wrong;
}

static void withdrawn_is_gone(struct kunit *test)
{
	int i, rounds = MEM_SLOW ? 2000 : 20000;
	struct table *t = test->priv;
	struct crowd crowd;
	u64 *word = page_address(t->page[1]);

	crowd_start(test, &crowd, 3, map_turn, t);
	for (i = 0; i < rounds; i++) {
		publish(t->odp, 1, t->page[1], true);
		cpu_relax();
		withdraw(t->odp, 1, 2);
		WRITE_ONCE(*word, 1);
		WRITE_ONCE(*word, 0);
		if (!(i % 100))
			cond_resched();
	}
	KUNIT_EXPECT_EQ(test, crowd_stop(&crowd), 0);
}

static struct kunit_case table_cases[] = {
	KUNIT_CASE(rights),
	KUNIT_CASE(right_bytes),
	KUNIT_CASE_PARAM(present, present_rows_gen_params),
	KUNIT_CASE(written),
	KUNIT_CASE(withdraw_waits),
	KUNIT_CASE(withdrawn_is_gone),
	{}
};

static struct kunit_suite table_suite = {
	.name = "mrsoft_odp",
	.init = odp_init,
	.exit = odp_exit,
	.test_cases = table_cases,
};

/* --- memory of a process -------------------------------------------------- */

struct world {
	struct mem *m;
	struct mrsoft_mr *mr;
	unsigned long at;
	u8 *buf;
};

static int fault_init(struct kunit *test)
{
	struct world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->m = mem_create(test);
	w->buf = kunit_kzalloc(test, BYTES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, w->buf);
	w->at = kunit_vm_mmap(test, NULL, 0, NUM * PAGE_SIZE,
			      PROT_READ | PROT_WRITE,
			      MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, w->at, 0ul);
	w->at += SKIP;
	w->mr = mrsoft_mr_reg_user(&w->m->table, &w->m->pd[0], w->at, BYTES,
				   w->at, ALL_RIGHTS | IB_ACCESS_ON_DEMAND);
	KUNIT_ASSERT_FALSE(test, IS_ERR(w->mr));
	KUNIT_ASSERT_EQ(test, mrsoft_fault_init(), 0);
	test->priv = w;
	return 0;
}

static void fault_exit(struct kunit *test)
{
	struct world *w = test->priv;

	if (!w)
		return;
	if (w->mr)
		KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(w->mr), 0);
	mem_check_empty(test, w->m);
	mrsoft_fault_exit();
}

static enum mrsoft_reason rw(struct world *w, bool write)
{
	return mem_rw(w->m, 0, 0, w->mr->key.key,
		      write ? IB_ACCESS_LOCAL_WRITE : 0, w->at, w->buf, BYTES,
		      write);
}

/* Note the whole region, as a path does with what it could not copy. */
static void note(struct kunit *test, struct world *w, bool write,
		 struct mrsoft_fault *fault)
{
	struct mrsoft_access req = {
		.pd = &w->m->pd[0], .key = w->mr->key.key, .iova = w->at,
		.length = BYTES,
	};
	struct mrsoft_span span;

	KUNIT_ASSERT_EQ(test, mrsoft_key_access(&w->m->table, &req, &span),
			MRSOFT_R_NONE);
	mrsoft_fault_note(fault, &span, write);
	mrsoft_span_put(&span);
	KUNIT_ASSERT_EQ(test, fault->num, 1);
}

static void fault_then_copy(struct kunit *test)
{
	struct world *w = test->priv;
	struct mrsoft_fault fault = {};
	unsigned int i;

	KUNIT_EXPECT_EQ(test, rw(w, false), MRSOFT_R_PAGE_ABSENT);
	note(test, w, false, &fault);
	KUNIT_EXPECT_TRUE(test, mrsoft_fault_own(&fault));
	KUNIT_EXPECT_EQ(test, mrsoft_fault_run(&fault), 0);
	KUNIT_EXPECT_EQ(test, fault.num, 0);
	memset(w->buf, 1, BYTES);
	KUNIT_EXPECT_EQ(test, rw(w, false), MRSOFT_R_NONE);
	KUNIT_EXPECT_NULL(test, memchr_inv(w->buf, 0, BYTES));
	/* what was read are pages of zeroes, the same for everybody */
	KUNIT_EXPECT_EQ(test, rw(w, true), MRSOFT_R_PAGE_ABSENT);
	note(test, w, true, &fault);
	KUNIT_EXPECT_EQ(test, mrsoft_fault_run(&fault), 0);
	for (i = 0; i < BYTES; i++)
		w->buf[i] = i * 7 + (i >> 8);
	KUNIT_EXPECT_EQ(test, rw(w, true), MRSOFT_R_NONE);
	memset(w->buf, 0, BYTES);
	KUNIT_EXPECT_EQ(test, copy_from_user(w->buf, (void __user *)w->at,
					     BYTES), 0ul);
	for (i = 0; i < BYTES; i++)
		if (w->buf[i] != (u8)(i * 7 + (i >> 8)))
			break;
	KUNIT_EXPECT_EQ(test, i, BYTES);
}

/* Dereg waits for copies only: who faults keeps what it needs. */
static void dereg_before_fault(struct kunit *test)
{
	struct world *w = test->priv;
	struct mrsoft_fault fault = {};

	note(test, w, true, &fault);
	KUNIT_EXPECT_EQ(test, mrsoft_mr_dereg(w->mr), 0);
	w->mr = NULL;
	KUNIT_EXPECT_EQ(test, mrsoft_pages_users(fault.need[0].pages), 1u);
	KUNIT_EXPECT_EQ(test, mrsoft_fault_run(&fault), 0);
}

static void unmapped(struct kunit *test)
{
	struct world *w = test->priv;
	struct mrsoft_fault fault = {};

	KUNIT_ASSERT_EQ(test, vm_munmap(w->at - SKIP + PAGE_SIZE, PAGE_SIZE), 0);
	note(test, w, false, &fault);
	KUNIT_EXPECT_NE(test, mrsoft_fault_run(&fault), 0);
	KUNIT_EXPECT_EQ(test, fault.num, 0);
	KUNIT_EXPECT_EQ(test, rw(w, false), MRSOFT_R_PAGE_ABSENT);
}

static void wake(void *arg)
{
	complete(arg);
}

static void in_background(struct kunit *test)
{
	struct world *w = test->priv;
	struct mrsoft_fault_job *job;
	struct mrsoft_fault fault = {};
	struct completion done;

	init_completion(&done);
	note(test, w, true, &fault);
	job = mrsoft_fault_start(&fault, wake, &done);
	KUNIT_ASSERT_NOT_NULL(test, job);
	KUNIT_EXPECT_EQ(test, fault.num, 0);
	KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&done, 60 * HZ), 0ul);
	KUNIT_EXPECT_EQ(test, mrsoft_fault_job_end(job), 0);
	KUNIT_EXPECT_EQ(test, rw(w, true), MRSOFT_R_NONE);
}

/* Who leaves is not called, done or not; what is left ends by itself. */
static void left(struct kunit *test)
{
	struct world *w = test->priv;
	struct mrsoft_fault_job *job;
	struct mrsoft_fault fault = {};
	struct completion done;
	int i, ret;

	for (i = 0; i < 200; i++) {
		init_completion(&done);
		note(test, w, true, &fault);
		job = mrsoft_fault_start(&fault, wake, &done);
		/* crowded: as many as may be are left already */
		if (!job)
			continue;
		ret = mrsoft_fault_job_end(job);
		KUNIT_EXPECT_TRUE(test, !ret || ret == -EINPROGRESS);
		KUNIT_EXPECT_EQ(test, completion_done(&done), !ret);
	}
	KUNIT_EXPECT_EQ(test, fault.num, 0);
}

/* Only memory that may be absent is noted. */
static void nothing_to_fault(struct kunit *test)
{
	struct world *w = test->priv;
	struct mrsoft_fault fault = {};
	struct mrsoft_span span;

	mrsoft_span_kernel(&span, w->buf, 8);
	mrsoft_fault_note(&fault, &span, true);
	KUNIT_EXPECT_EQ(test, fault.num, 0);
	KUNIT_EXPECT_EQ(test, mrsoft_fault_run(&fault), 0);
}

static struct kunit_case fault_cases[] = {
	KUNIT_CASE(fault_then_copy),
	KUNIT_CASE(dereg_before_fault),
	KUNIT_CASE(unmapped),
	KUNIT_CASE(in_background),
	KUNIT_CASE(left),
	KUNIT_CASE(nothing_to_fault),
	{}
};

static struct kunit_suite fault_suite = {
	.name = "mrsoft_odp_fault",
	.init = fault_init,
	.exit = fault_exit,
	.test_cases = fault_cases,
};

/* --- all of a process ----------------------------------------------------- */

#define PARTS	6

struct whole {
	struct mem *m;
	struct mrsoft_demand *demand;
	/* of a part, PARTS of them mapped from here on */
	unsigned long at;
};

static int whole_init(struct kunit *test)
{
	struct whole *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->m = mem_create(test);
	w->at = kunit_vm_mmap(test, NULL, 0, (PARTS + 1) * CHILD_SIZE,
			      PROT_READ | PROT_WRITE,
			      MAP_ANONYMOUS | MAP_PRIVATE | MAP_NORESERVE, 0);
	KUNIT_ASSERT_NE(test, w->at, 0ul);
	w->at = ALIGN(w->at, CHILD_SIZE);
	w->demand = mrsoft_demand_new(w->m->ibdev, 0, U64_MAX,
				      ALL_RIGHTS | IB_ACCESS_ON_DEMAND);
	KUNIT_ASSERT_FALSE(test, IS_ERR(w->demand));
	test->priv = w;
	return 0;
}

static void whole_exit(struct kunit *test)
{
	struct whole *w = test->priv;

	if (!w)
		return;
	KUNIT_EXPECT_EQ(test, atomic_read(&w->demand->region.copies), 0);
	mrsoft_demand_free(w->demand);
	mem_check_empty(test, w->m);
}

static int fault_part(struct whole *w, unsigned int part)
{
	return mrsoft_demand_fault(w->demand, w->at + part * CHILD_SIZE,
				   PAGE_SIZE, MRSOFT_FAULT_WRITE);
}

static bool part_there(struct whole *w, unsigned int part)
{
	return mrsoft_demand_present(w->demand, w->at + part * CHILD_SIZE,
				     PAGE_SIZE, true) > 0;
}

/* Where more is used than there may be tables for, parts go and come again. */
static void parts_are_few(struct kunit *test)
{
	struct whole *w = test->priv;
	unsigned int i, round;

	for (round = 0; round < 3; round++)
		for (i = 0; i < PARTS; i++) {
			KUNIT_EXPECT_EQ(test, fault_part(w, i), 0);
			KUNIT_EXPECT_TRUE(test, part_there(w, i));
			KUNIT_EXPECT_LE(test, w->demand->num,
					MRSOFT_MAX_CHILDREN);
		}
	KUNIT_EXPECT_EQ(test, w->demand->num, MRSOFT_MAX_CHILDREN);
}

/* What the process has not any more costs nothing. */
static void empty_parts_go(struct kunit *test)
{
	struct whole *w = test->priv;

	KUNIT_EXPECT_EQ(test, fault_part(w, 0), 0);
	KUNIT_EXPECT_EQ(test, fault_part(w, 1), 0);
	KUNIT_EXPECT_EQ(test, w->demand->num, 2u);
	KUNIT_ASSERT_EQ(test, vm_munmap(w->at, 2 * CHILD_SIZE), 0);
	flush_work(&w->demand->reap);
	KUNIT_EXPECT_EQ(test, w->demand->num, 0u);
	KUNIT_EXPECT_TRUE(test, xa_empty(&w->demand->children));
	KUNIT_EXPECT_FALSE(test, part_there(w, 0));
	KUNIT_EXPECT_EQ(test, atomic64_read(&w->demand->region.faults), 2);
	KUNIT_EXPECT_EQ(test, atomic64_read(&w->demand->region.invalidations),
			2);
}

static void faults_in_vain(struct kunit *test)
{
	struct whole *w = test->priv;

	KUNIT_ASSERT_EQ(test, vm_munmap(w->at, CHILD_SIZE), 0);
	KUNIT_EXPECT_NE(test, fault_part(w, 0), 0);
	KUNIT_EXPECT_EQ(test, w->demand->num, 0u);
	KUNIT_EXPECT_EQ(test, mrsoft_demand_fault(w->demand, TASK_SIZE, 1, 0),
			-EFAULT);
	KUNIT_EXPECT_EQ(test, mrsoft_demand_fault(w->demand, TASK_SIZE - 1, 2,
						  0), -EFAULT);
	KUNIT_EXPECT_EQ(test, mrsoft_demand_fault(w->demand, U64_MAX - 1, 1, 0),
			-EFAULT);
	KUNIT_EXPECT_EQ(test, w->demand->num, 0u);
	/* half of it is there: not all, so it is none */
	KUNIT_EXPECT_NE(test, mrsoft_demand_fault(w->demand, w->at + CHILD_SIZE -
						  1, 2, 0), 0);
	KUNIT_EXPECT_EQ(test, fault_part(w, 1), 0);
}

static struct kunit_case whole_cases[] = {
	KUNIT_CASE(parts_are_few),
	KUNIT_CASE(empty_parts_go),
	KUNIT_CASE(faults_in_vain),
	{}
};

static struct kunit_suite whole_suite = {
	.name = "mrsoft_demand",
	.init = whole_init,
	.exit = whole_exit,
	.test_cases = whole_cases,
};

kunit_test_suites(&table_suite, &fault_suite, &whole_suite);

MODULE_DESCRIPTION("KUnit tests of mrsoft's pages that are not pinned");
MODULE_LICENSE("GPL");
