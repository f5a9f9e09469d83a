// SPDX-License-Identifier: GPL-2.0
/*
 * cq_live.c - completions and events on live devices: arming, moderation, contexts,
 *	       draining
 *
 * That an event does not come is looked at a moment later: such a case can miss a
 * fault, and cannot fail for being slow.
 *
 * Spec: IBA Vol 1, 10.8 (completion queues), 11.4.2 (completion events); kernel-doc
 *	 of ib_req_notify_cq(), ib_drain_qp(), ib_alloc_cq_any()
 */
#include <linux/delay.h>
#include <linux/timer.h>

#include "live.h"

/* The context of a CQ: errors stands first, see live_plain_cq(). */
struct watch {
	atomic_t errors;
	atomic_t events;
	struct completion woken;
	atomic_t first;		/* entries that the first event found */
	bool poll;
	/* re-posting from the handler */
	struct live_end *end;
	struct ib_rdma_wr *wr;
	atomic_t left;
	atomic_t bad;
};

static void count(struct ib_cq *cq, void *context)
{
	struct watch *w = context;
	struct ib_wc wc;

	if (atomic_inc_return(&w->events) == 1 && w->poll)
		while (ib_poll_cq(cq, 1, &wc) > 0)
			atomic_inc(&w->first);
	complete(&w->woken);
}

static struct watch *watch(struct kunit *test)
{
	struct watch *w = live_mem(test, sizeof(*w));

	init_completion(&w->woken);
	return w;
}

static struct live_pair *watched(struct kunit *test, struct watch *w,
				 ib_comp_handler comp, u32 cqe)
{
	struct live_setup setup = { .comp = comp, .cq_context = w, .cqe = cqe,
				    .wr = 128 };

	return live_pair(test, &setup);
}

/* A WRITE of 8 bytes, to be posted as often as wanted. */
struct write {
	struct ib_sge sge;
	struct ib_rdma_wr wr;
};

static struct write *make_write(struct kunit *test, struct live_pair *pair)
{
	struct write *w = live_mem(test, sizeof(*w));

	w->sge = live_sge(&pair->end[0], 0, 8);
	w->wr.wr.sg_list = &w->sge;
	w->wr.wr.num_sge = 1;
	w->wr.wr.opcode = IB_WR_RDMA_WRITE;
	w->wr.wr.send_flags = IB_SEND_SIGNALED;
	w->wr.remote_addr = pair->end[1].addr;
	w->wr.rkey = pair->end[1].rkey;
	return w;
}

static void post_writes(struct kunit *test, struct live_pair *pair,
			struct write *w, int n)
{
	for (; n; n--)
		KUNIT_ASSERT_EQ(test, ib_post_send(pair->end[0].qp, &w->wr.wr, NULL),
				0);
}

static void take(struct kunit *test, struct ib_cq *cq, int n)
{
	for (; n; n--)
		KUNIT_ASSERT_EQ(test, live_wc(test, cq).status, IB_WC_SUCCESS);
}

static void woken(struct kunit *test, struct watch *w)
{
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&w->woken, LIVE_WAIT));
}

static void cq_poll_order(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct write *w = make_write(test, pair);
	struct ib_cq *cq = pair->end[0].scq;
	struct ib_wc wc[8];
	int i, got = 0;

	for (i = 0; i < 5; i++) {
		w->wr.wr.wr_id = i + 1;
		/* the third and the fifth */
		w->wr.wr.send_flags = i == 2 || i == 4 ? IB_SEND_SIGNALED : 0;
		post_writes(test, pair, w, 1);
	}
	w->wr.wr.send_flags = IB_SEND_SIGNALED;
	for (i = 6; i <= 8; i++) {
		w->wr.wr.wr_id = i;
		post_writes(test, pair, w, 1);
	}
	KUNIT_EXPECT_EQ(test, ib_poll_cq(cq, 0, wc), 0);
	/* no more than asked for, whatever is there */
	while (got < 4) {
		i = ib_poll_cq(cq, min(2, 4 - got), wc + got);
		KUNIT_ASSERT_TRUE(test, i >= 0 && i <= 2);
		got += i;
		usleep_range(50, 100);
	}
	wc[4] = live_wc(test, cq);
	live_quiet(test, cq);
	KUNIT_EXPECT_EQ(test, wc[0].wr_id, 3);
	KUNIT_EXPECT_EQ(test, wc[1].wr_id, 5);
	KUNIT_EXPECT_EQ(test, wc[2].wr_id, 6);
	KUNIT_EXPECT_EQ(test, wc[3].wr_id, 7);
	KUNIT_EXPECT_EQ(test, wc[4].wr_id, 8);
	KUNIT_EXPECT_EQ(test, wc[4].opcode, IB_WC_RDMA_WRITE);
}

static void cq_arm(struct kunit *test)
{
	struct watch *w = watch(test);
	struct live_pair *pair = watched(test, w, count, 0);
	struct write *write = make_write(test, pair);
	struct ib_cq *cq = pair->end[0].scq;

	/* not asked for */
	post_writes(test, pair, write, 1);
	take(test, cq, 1);
	msleep(20);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->events), 0);
	/* once asked, once told */
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(cq, IB_CQ_NEXT_COMP), 0);
	post_writes(test, pair, write, 3);
	woken(test, w);
	take(test, cq, 3);
	msleep(20);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->events), 1);
	/* asked again */
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(cq, IB_CQ_NEXT_COMP), 0);
	post_writes(test, pair, write, 1);
	woken(test, w);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->events), 2);
	take(test, cq, 1);
}

static void cq_missed(struct kunit *test)
{
	struct watch *w = watch(test);
	struct live_pair *pair = watched(test, w, count, 0);
	struct write *write = make_write(test, pair);
	struct ib_cq *cq = pair->end[0].scq;

	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(cq, IB_CQ_NEXT_COMP |
					       IB_CQ_REPORT_MISSED_EVENTS), 0);
	post_writes(test, pair, write, 1);
	woken(test, w);
	/* one entry is there */
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(cq, IB_CQ_NEXT_COMP), 0);
	KUNIT_EXPECT_GT(test, ib_req_notify_cq(cq, IB_CQ_NEXT_COMP |
					       IB_CQ_REPORT_MISSED_EVENTS), 0);
	KUNIT_EXPECT_GT(test, ib_req_notify_cq(cq, IB_CQ_SOLICITED |
					       IB_CQ_REPORT_MISSED_EVENTS), 0);
	take(test, cq, 1);
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(cq, IB_CQ_NEXT_COMP |
					       IB_CQ_REPORT_MISSED_EVENTS), 0);
}

static void send_flagged(struct kunit *test, struct live_pair *pair, int flags)
{
	struct ib_sge sge = live_sge(&pair->end[0], 0, 8);
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1,
		.send_flags = flags,
	};

	KUNIT_ASSERT_EQ(test, live_recv(test, &pair->end[1], pair->end[1].addr, 8,
					pair->end[1].lkey, 1), 0);
	KUNIT_ASSERT_EQ(test, live_run(test, &pair->end[0], &wr), IB_WC_SUCCESS);
	take(test, pair->end[1].rcq, 1);
}

static void cq_solicited(struct kunit *test)
{
	struct watch *w = watch(test);
	struct live_pair *pair = watched(test, w, count, 0);
	struct ib_cq *cq = pair->end[1].rcq;

	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(cq, IB_CQ_SOLICITED), 0);
	send_flagged(test, pair, 0);
	msleep(20);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->events), 0);
	send_flagged(test, pair, IB_SEND_SOLICITED);
	woken(test, w);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->events), 1);
	/* IBA 11.4.2.2: a wish for the next one is not made smaller */
	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	ib_req_notify_cq(cq, IB_CQ_SOLICITED);
	send_flagged(test, pair, 0);
	woken(test, w);
	/* and an error is one in any case */
	ib_req_notify_cq(cq, IB_CQ_SOLICITED);
	KUNIT_ASSERT_EQ(test, live_recv(test, &pair->end[1], pair->end[1].addr, 8,
					pair->end[1].lkey, 1), 0);
	KUNIT_EXPECT_EQ(test, live_state(pair->end[1].qp, IB_QPS_ERR), 0);
	woken(test, w);
	KUNIT_EXPECT_EQ(test, live_wc(test, cq).status, IB_WC_WR_FLUSH_ERR);
}

/* Poll until empty, arm, poll again if told to, else sleep: no wake-up is lost. */
static void cq_no_lost_wakeup(struct kunit *test)
{
	u32 batches = LIVE_SLOW ? 1000 : 10000, got, want, i, slept = 0;
	struct watch *w = watch(test);
	struct live_pair *pair = watched(test, w, count, 0);
	struct write *write = make_write(test, pair);
	struct ib_cq *cq = pair->end[0].scq;
	struct ib_wc wc;

	for (i = 0; i < batches; i++) {
		want = 1 + i % 5;
		post_writes(test, pair, write, want);
		for (got = 0; got < want;) {
			if (ib_poll_cq(cq, 1, &wc) == 1) {
				got++;
				continue;
			}
			if (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP |
					     IB_CQ_REPORT_MISSED_EVENTS) > 0)
				continue;
			KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&w->woken,
									    LIVE_WAIT));
			slept++;
		}
	}
	kunit_info(test, "slept %u times", slept);
	KUNIT_EXPECT_GT(test, slept, 0);
}

/* How many entries does an event find, with @count for one, of @posts? */
static int found(struct kunit *test, u16 count_, u16 period, int posts)
{
	struct watch *w = watch(test);
	struct live_pair *pair = watched(test, w, count, 0);
	struct write *write = make_write(test, pair);
	struct ib_cq *cq = pair->end[0].scq;

	w->poll = true;
	KUNIT_ASSERT_EQ(test, rdma_set_cq_moderation(cq, count_, period), 0);
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(cq, IB_CQ_NEXT_COMP), 0);
	post_writes(test, pair, write, posts);
	woken(test, w);
	/* the others are not lost */
	take(test, cq, posts - atomic_read(&w->first));
	KUNIT_EXPECT_EQ(test, atomic_read(&w->events), 1);
	return atomic_read(&w->first);
}

/* A slow machine may need some tries until all of them come within the period. */
static void cq_moderation(struct kunit *test)
{
	int i, n = 0;

	/* 7 of 8: the period ends it, and finds all of them */
	for (i = 0; i < 20 && n != 7; i++)
		n = found(test, 8, U16_MAX, 7);
	KUNIT_EXPECT_EQ(test, n, 7);
	/* the 8th ends it, and nothing later does */
	for (n = 0, i = 0; i < 20 && n != 8; i++)
		n = found(test, 8, U16_MAX, 8);
	KUNIT_EXPECT_EQ(test, n, 8);
	/* none: the first does */
	for (n = 0, i = 0; i < 20 && n != 1; i++)
		n = found(test, 0, 0, 8);
	KUNIT_EXPECT_EQ(test, n, 1);
}

/* Turned off: what was held back is told now, and not when the period ends. */
static void cq_moderation_off(struct kunit *test)
{
	struct watch *w = watch(test);
	struct live_pair *pair = watched(test, w, count, 0);
	struct write *write = make_write(test, pair);
	struct ib_cq *cq = pair->end[0].scq;

	KUNIT_ASSERT_EQ(test, rdma_set_cq_moderation(cq, 100, U16_MAX), 0);
	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	post_writes(test, pair, write, 1);
	take(test, cq, 1);
	KUNIT_ASSERT_EQ(test, rdma_set_cq_moderation(cq, 0, 0), 0);
	woken(test, w);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->events), 1);
	/* a CQ that goes while its timer runs */
	KUNIT_ASSERT_EQ(test, rdma_set_cq_moderation(cq, 100, U16_MAX), 0);
	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	post_writes(test, pair, write, 1);
	take(test, cq, 1);
}

static void cq_moderation_shared(struct kunit *test)
{
	struct ib_device *dev = live_dev(0);
	struct ib_cq *cq = ib_cq_pool_get(dev, 4, -1, IB_POLL_WORKQUEUE);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, cq);
	KUNIT_EXPECT_EQ(test, rdma_set_cq_moderation(cq, 8, 100), -EOPNOTSUPP);
	ib_cq_pool_put(cq, 4);
	KUNIT_EXPECT_EQ(test, dev->attrs.cq_caps.max_cq_moderation_count, U16_MAX);
}

/* Work that completes through an ib_cqe. */
struct job {
	struct ib_cqe cqe;
	struct completion done;
	atomic_t ended;
	atomic_t softirq;
	atomic_t worker;
	atomic_t flushed;
	atomic_t bad;
	/* for those that post the next one from their handler */
	struct ib_qp *qp;
	struct write *write;
	atomic_t left;
};

static void job_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct job *job = container_of(wc->wr_cqe, struct job, cqe);

	if (in_serving_softirq())
		atomic_inc(&job->softirq);
	else if (current->flags & PF_WQ_WORKER)
		atomic_inc(&job->worker);
	if (wc->status == IB_WC_WR_FLUSH_ERR)
		atomic_inc(&job->flushed);
	else if (wc->status)
		atomic_inc(&job->bad);
	atomic_inc(&job->ended);
	if (atomic_dec_if_positive(&job->left) >= 0 &&
	    ib_post_send(job->qp, &job->write->wr.wr, NULL))
		atomic_inc(&job->bad);
	complete(&job->done);
}

static struct job *make_job(struct kunit *test)
{
	struct job *job = live_mem(test, sizeof(*job));

	job->cqe.done = job_done;
	init_completion(&job->done);
	return job;
}

static void wait_job(struct kunit *test, struct job *job, struct ib_cq *cq, int n)
{
	unsigned long limit = jiffies + LIVE_WAIT;

	while (atomic_read(&job->ended) < n && time_before(jiffies, limit)) {
		if (cq->poll_ctx == IB_POLL_DIRECT)
			ib_process_cq_direct(cq, -1);
		usleep_range(50, 100);
	}
	KUNIT_ASSERT_EQ(test, atomic_read(&job->ended), n);
}

static const enum ib_poll_context contexts[] = {
	IB_POLL_DIRECT, IB_POLL_SOFTIRQ, IB_POLL_WORKQUEUE, IB_POLL_UNBOUND_WORKQUEUE,
};

/* Each context delivers, in the context it says, and its handler may post. */
static void cq_contexts(struct kunit *test)
{
	int i, n = 100;

	for (i = 0; i < ARRAY_SIZE(contexts); i++) {
		struct live_setup setup = { .handlers = true, .ctx = contexts[i] };
		struct live_pair *pair = live_pair(test, &setup);
		struct write *write = make_write(test, pair);
		struct job *job = make_job(test);

		write->wr.wr.wr_cqe = &job->cqe;
		job->qp = pair->end[0].qp;
		job->write = write;
		atomic_set(&job->left, n - 8);
		post_writes(test, pair, write, 8);
		wait_job(test, job, pair->end[0].scq, n);
		KUNIT_EXPECT_EQ_MSG(test, atomic_read(&job->bad), 0, "context %d", i);
		KUNIT_EXPECT_EQ_MSG(test, atomic_read(&job->flushed), 0, "context %d", i);
		if (contexts[i] == IB_POLL_SOFTIRQ)
			KUNIT_EXPECT_EQ(test, atomic_read(&job->softirq), n);
		else if (contexts[i] == IB_POLL_DIRECT)
			KUNIT_EXPECT_EQ(test, atomic_read(&job->softirq) +
					atomic_read(&job->worker), 0);
		else
			KUNIT_EXPECT_EQ(test, atomic_read(&job->worker), n);
	}
}

/* From the event itself: poll, re-arm, post the next; no lock of ours is held. */
static void again(struct ib_cq *cq, void *context)
{
	struct watch *w = context;
	struct ib_wc wc;

	atomic_inc(&w->events);
	do {
		while (ib_poll_cq(cq, 1, &wc) > 0) {
			if (wc.status)
				atomic_inc(&w->bad);
			if (atomic_dec_if_positive(&w->left) < 0)
				complete(&w->woken);
			else if (ib_post_send(w->end->qp, &w->wr->wr, NULL))
				atomic_inc(&w->bad);
		}
	} while (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP |
				  IB_CQ_REPORT_MISSED_EVENTS) > 0);
}

static void cq_handler_posts(struct kunit *test)
{
	struct watch *w = watch(test);
	struct live_pair *pair = watched(test, w, again, 0);
	struct write *write = make_write(test, pair);

	w->end = &pair->end[0];
	w->wr = &write->wr;
	atomic_set(&w->left, 200);
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(w->end->scq, IB_CQ_NEXT_COMP), 0);
	post_writes(test, pair, write, 1);
	woken(test, w);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->bad), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->left), 0);
	live_quiet(test, w->end->scq);
}

struct late {
	struct timer_list timer;
	struct live_end *end;
	struct write *write;
	struct ib_recv_wr recv;
	int err;
	struct completion done;
};

static void post_from_softirq(struct timer_list *timer)
{
	struct late *late = container_of(timer, struct late, timer);

	late->err = ib_post_send(late->end->qp, &late->write->wr.wr, NULL);
	late->err |= ib_post_recv(late->end->qp, &late->recv, NULL);
	complete(&late->done);
}

static void cq_post_atomic(struct kunit *test)
{
	struct live_pair *pair = live_pair(test, NULL);
	struct write *write = make_write(test, pair);
	struct late *late = live_mem(test, sizeof(*late));
	spinlock_t lock;	/* the consumer's */
	unsigned long flags;
	int err;

	/* interrupts off, a lock held */
	spin_lock_init(&lock);
	spin_lock_irqsave(&lock, flags);
	err = ib_post_send(pair->end[0].qp, &write->wr.wr, NULL);
	spin_unlock_irqrestore(&lock, flags);
	KUNIT_EXPECT_EQ(test, err, 0);
	take(test, pair->end[0].scq, 1);
	/* softirq */
	late->end = &pair->end[0];
	late->write = write;
	init_completion(&late->done);
	timer_setup(&late->timer, post_from_softirq, 0);
	mod_timer(&late->timer, jiffies + 1);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&late->done, LIVE_WAIT));
	timer_delete_sync(&late->timer);
	KUNIT_EXPECT_EQ(test, late->err, 0);
	take(test, pair->end[0].scq, 1);
	/* and in the error state, where it flushes */
	KUNIT_EXPECT_EQ(test, live_state(late->end->qp, IB_QPS_ERR), 0);
	KUNIT_EXPECT_EQ(test, live_wc(test, late->end->rcq).status,
			IB_WC_WR_FLUSH_ERR);
	spin_lock_irqsave(&lock, flags);
	err = ib_post_send(late->end->qp, &write->wr.wr, NULL);
	err |= ib_post_recv(late->end->qp, &late->recv, NULL);
	spin_unlock_irqrestore(&lock, flags);
	KUNIT_EXPECT_EQ(test, err, 0);
	KUNIT_EXPECT_EQ(test, live_wc(test, late->end->scq).status,
			IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, live_wc(test, late->end->rcq).status,
			IB_WC_WR_FLUSH_ERR);
}

/* As many as there are vectors land on as many. */
static void cq_any(struct kunit *test)
{
	struct ib_device *dev = live_dev(0);
	struct ib_cq_init_attr attr = { .cqe = 4 };
	int n = dev->num_comp_vectors, i;
	unsigned long seen = 0;
	struct ib_cq *cq;

	KUNIT_EXPECT_GE(test, n, 1);
	for (i = 0; i < n; i++) {
		cq = ib_alloc_cq_any(dev, NULL, 4, IB_POLL_WORKQUEUE);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, cq);
		KUNIT_EXPECT_GE(test, cq->cqe, 4);
		seen |= 1ul << cq->comp_vector;
		ib_free_cq(cq);
	}
	KUNIT_EXPECT_EQ(test, seen, (1ul << n) - 1);
	attr.comp_vector = n;
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_create_cq(dev, NULL, NULL, NULL, &attr)),
			-EINVAL);
	attr.comp_vector = 0;
	attr.cqe = dev->attrs.max_cqe + 1;
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_create_cq(dev, NULL, NULL, NULL, &attr)),
			-EINVAL);
}

static void note_cpu(struct ib_cq *cq, void *context)
{
	struct watch *w = context;

	atomic_set(&w->first, raw_smp_processor_id());
	complete(&w->woken);
}

/*
 * The event of a CQ comes on the CPU of its vector, each vector has another, and it does
 * not matter from which CPU the work is posted.
 */
static void cq_vector(struct kunit *test)
{
	struct watch *w = watch(test);
	struct live_setup setup = { .comp = note_cpu, .cq_context = w, .wr = 128 };
	int n = live_dev(0)->num_comp_vectors, from, i;
	struct cpumask *seen = live_mem(test, cpumask_size());
	struct live_pair *pair;
	struct write *write;
	int cpu;

	for (setup.vector = 0; setup.vector < n; setup.vector++) {
		pair = live_pair(test, &setup);
		write = make_write(test, pair);
		cpu = -1;
		for (i = 0; i < 20; i++) {
			for_each_online_cpu(from) {
				KUNIT_ASSERT_EQ(test, ib_req_notify_cq(pair->end[0].scq,
								       IB_CQ_NEXT_COMP),
						0);
				KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current,
									   cpumask_of(from)),
						0);
				post_writes(test, pair, write, 1);
				woken(test, w);
				take(test, pair->end[0].scq, 1);
				if (cpu < 0)
					cpu = atomic_read(&w->first);
				KUNIT_ASSERT_EQ(test, atomic_read(&w->first), cpu);
			}
		}
		KUNIT_EXPECT_FALSE(test, cpumask_test_cpu(cpu, seen));
		cpumask_set_cpu(cpu, seen);
	}
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

/* One more than it holds: told once, and the QP is in error. */
static void cq_overflow(struct kunit *test)
{
	struct watch *w = watch(test);
	struct live_pair *pair = watched(test, w, count, 3);
	struct write *write = make_write(test, pair);
	struct live_end *end = &pair->end[0];
	unsigned long limit = jiffies + LIVE_WAIT;
	int i;

	post_writes(test, pair, write, end->scq->cqe + 1);
	while (live_query_state(test, end->qp) != IB_QPS_ERR &&
	       time_before(jiffies, limit))
		usleep_range(100, 200);
	KUNIT_EXPECT_EQ(test, live_query_state(test, end->qp), IB_QPS_ERR);
	live_wait_event(test, end, IB_EVENT_QP_FATAL);
	KUNIT_EXPECT_EQ(test, atomic_read(&w->errors), 1);
	for (i = 0; i < end->scq->cqe; i++)
		KUNIT_EXPECT_EQ(test, live_wc(test, end->scq).status, IB_WC_SUCCESS);
	live_quiet(test, end->scq);
}

/* After a drain nothing of the queue is on its way any more. */
static void drain_in(struct kunit *test, enum ib_poll_context ctx, bool srq)
{
	struct live_setup setup = { .handlers = true, .ctx = ctx, .srq = srq,
				    .wr = 128 };
	struct live_pair *pair = live_pair(test, &setup);
	struct live_end *end = &pair->end[1], *peer = &pair->end[0];
	struct job *sends = make_job(test), *recvs = make_job(test);
	struct write *write = make_write(test, pair);
	struct ib_recv_wr recv = { .wr_cqe = &recvs->cqe };
	int i;

	write->sge = live_sge(end, 0, 8);
	write->wr.remote_addr = peer->addr;
	write->wr.rkey = peer->rkey;
	write->wr.wr.wr_cqe = &sends->cqe;
	for (i = 0; i < 32; i++) {
		KUNIT_ASSERT_EQ(test, srq ? ib_post_srq_recv(end->srq, &recv, NULL) :
				ib_post_recv(end->qp, &recv, NULL), 0);
		KUNIT_ASSERT_EQ(test, ib_post_send(end->qp, &write->wr.wr, NULL), 0);
	}
	ib_drain_qp(end->qp);
	KUNIT_EXPECT_EQ(test, atomic_read(&sends->ended), 32);
	KUNIT_EXPECT_EQ(test, atomic_read(&sends->bad), 0);
	if (srq) {
		/* what lies in the SRQ is nobody's */
		KUNIT_EXPECT_EQ(test, atomic_read(&recvs->ended), 0);
		live_wait_event(test, end, IB_EVENT_QP_LAST_WQE_REACHED);
	} else {
		KUNIT_EXPECT_EQ(test, atomic_read(&recvs->ended), 32);
		KUNIT_EXPECT_EQ(test, atomic_read(&recvs->flushed), 32);
	}
	KUNIT_EXPECT_EQ(test, live_query_state(test, end->qp), IB_QPS_ERR);
	/* in the error state too */
	ib_drain_sq(end->qp);
	if (!srq)
		ib_drain_rq(end->qp);
	live_destroy_qp(test, end->qp);
	KUNIT_EXPECT_EQ(test, atomic_read(&sends->ended), 32);
}

static void cq_drain(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(contexts); i++)
		drain_in(test, contexts[i], false);
}

/* Not in DIRECT: who drains polls a CQ that polls itself, and the core refuses. */
static void cq_drain_srq(struct kunit *test)
{
	drain_in(test, IB_POLL_DIRECT, true);
}

/* One side at a time. */
static void cq_drain_one(struct kunit *test)
{
	struct live_setup setup = { .handlers = true, .ctx = IB_POLL_WORKQUEUE };
	struct live_pair *pair = live_pair(test, &setup);
	struct job *recvs = make_job(test), *sends = make_job(test);
	struct ib_recv_wr recv = { .wr_cqe = &recvs->cqe };
	struct write *write = make_write(test, pair);
	int i;

	for (i = 0; i < 8; i++)
		KUNIT_ASSERT_EQ(test, ib_post_recv(pair->end[1].qp, &recv, NULL), 0);
	ib_drain_rq(pair->end[1].qp);
	KUNIT_EXPECT_EQ(test, atomic_read(&recvs->flushed), 8);
	write->wr.wr.wr_cqe = &sends->cqe;
	post_writes(test, pair, write, 8);
	ib_drain_sq(pair->end[0].qp);
	KUNIT_EXPECT_EQ(test, atomic_read(&sends->ended), 8);
}

static struct kunit_case live_cq_cases[] = {
	KUNIT_CASE(cq_poll_order),
	KUNIT_CASE(cq_arm),
	KUNIT_CASE(cq_missed),
	KUNIT_CASE(cq_solicited),
	KUNIT_CASE(cq_no_lost_wakeup),
	KUNIT_CASE(cq_moderation),
	KUNIT_CASE(cq_moderation_off),
	KUNIT_CASE(cq_moderation_shared),
	KUNIT_CASE(cq_contexts),
	KUNIT_CASE(cq_handler_posts),
	KUNIT_CASE(cq_post_atomic),
	KUNIT_CASE(cq_any),
	KUNIT_CASE(cq_vector),
	KUNIT_CASE(cq_overflow),
	KUNIT_CASE(cq_drain),
	KUNIT_CASE(cq_drain_srq),
	KUNIT_CASE(cq_drain_one),
	{}
};

struct kunit_suite live_cq_suite = {
	.name = "cq",
	.suite_init = live_client_register,
	.suite_exit = live_client_unregister,
	.test_cases = live_cq_cases,
};
