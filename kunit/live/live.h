/* SPDX-License-Identifier: GPL-2.0 */
/*
 * live.h - what the suites on live devices share
 *
 * Each object is given back when its case ends, however it ends. What a helper
 * cannot do is an assertion that ends the case; what it returns is for the case
 * to judge.
 */
#ifndef MRSOFT_LIVE_H
#define MRSOFT_LIVE_H

#include <kunit/resource.h>
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

/* The debugging kernels, and a processor that is emulated, are slow. */
#define LIVE_SLOW	(IS_ENABLED(CONFIG_PROVE_LOCKING) || \
			 IS_ENABLED(CONFIG_KASAN) || !IS_ENABLED(CONFIG_UML))
#define LIVE_WAIT	(30 * HZ)	/* against a hang, never a measure */
#define LIVE_BYTES	SZ_64K		/* of each end's buffer */
#define LIVE_QKEY	0x1234
#define LIVE_ALL	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | \
			 IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)

/* How a pair is made; zero is: RC, 64 WQEs, 4 sges, polled CQs. */
struct live_setup {
	enum ib_qp_type type;
	bool handlers;		/* CQs poll themselves, in @ctx: work has an ib_cqe */
	enum ib_poll_context ctx;
	ib_comp_handler comp;	/* CQs of the plain kind, with this; see @cq_context */
	void *cq_context;
	u32 cqe;		/* of such CQs */
	u32 vector;
	bool sig_all;
	bool srq;		/* the second end receives from one */
	u32 wr;
	u32 sge;
	u32 inline_bytes;
	u32 rdma_ctxs;
	u8 rnr_retry;		/* 0: for ever */
};

struct live_events {
	atomic_t count[IB_EVENT_WQ_FATAL + 1];
};

struct live_end {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_cq *scq, *rcq;
	struct ib_srq *srq;
	struct ib_qp *qp;
	struct live_events events;
	int gid_index;
	union ib_gid gid;
	u8 dmac[ETH_ALEN];	/* of the netdev */
	u8 *buf;
	u64 addr;		/* of @buf, in an sge */
	u32 lkey, rkey;		/* all of memory */
};

struct live_pair {
	struct live_end end[2];
	u8 rnr_retry;
};

/* main.c: the devices of this run */
struct ib_device *live_dev(int n);
bool live_is_wire(void);
const char *live_spare(void);
void *live_client_data(struct ib_device *dev);
int live_client_register(struct kunit_suite *suite);
void live_client_unregister(struct kunit_suite *suite);
extern struct kunit_suite live_mr_suite;
extern struct kunit_suite live_cq_suite;
extern struct kunit_suite live_qp_suite;
extern struct kunit_suite live_dev_suite;
extern struct kunit_suite live_rw_suite;

/* objects, each for the time of the case */
struct ib_pd *live_pd(struct kunit *test, struct ib_device *dev, unsigned int flags);
struct ib_cq *live_cq(struct kunit *test, struct ib_device *dev, int cqe,
		      enum ib_poll_context ctx);
struct ib_cq *live_plain_cq(struct kunit *test, struct live_end *end,
			    const struct live_setup *setup);
struct ib_mr *live_mr(struct kunit *test, struct ib_pd *pd, enum ib_mr_type type,
		      u32 max);
struct ib_qp *live_qp(struct kunit *test, struct ib_pd *pd,
		      struct ib_qp_init_attr *init);
struct ib_srq *live_srq(struct kunit *test, struct ib_pd *pd,
			struct ib_srq_init_attr *init);
void *live_mem(struct kunit *test, size_t bytes);
struct page *live_pages(struct kunit *test, unsigned int order);
void live_destroy_mr(struct kunit *test, struct ib_mr *mr);
void live_destroy_qp(struct kunit *test, struct ib_qp *qp);

/* ends and pairs */
void live_end_open(struct kunit *test, struct live_end *end, int n,
		   const struct live_setup *setup);
struct live_pair *live_pair(struct kunit *test, const struct live_setup *setup);
void live_ah_attr(const struct live_end *from, const struct live_end *to,
		  struct rdma_ah_attr *attr);
int live_init(struct live_end *end);
int live_rtr(const struct live_pair *pair, int n);
int live_rts(const struct live_pair *pair, int n);
void live_connect(struct kunit *test, struct live_pair *pair);
void live_again(struct kunit *test, struct live_pair *pair);
int live_state(struct ib_qp *qp, enum ib_qp_state state);
enum ib_qp_state live_query_state(struct kunit *test, struct ib_qp *qp);
void live_wait_event(struct kunit *test, struct live_end *end,
		     enum ib_event_type type);

/* work: each of these is signalled and waited for, and says how it ended */
bool live_poll(struct ib_cq *cq, struct ib_wc *wc);
struct ib_wc live_wc(struct kunit *test, struct ib_cq *cq);
void live_quiet(struct kunit *test, struct ib_cq *cq);
int live_recv(struct kunit *test, struct live_end *end, u64 addr, u32 len, u32 lkey,
	      u64 id);
enum ib_wc_status live_run(struct kunit *test, struct live_end *end,
			   struct ib_send_wr *wr);
enum ib_wc_status live_rdma(struct kunit *test, struct live_end *end,
			    enum ib_wr_opcode op, struct ib_sge sge, u64 raddr,
			    u32 rkey);
enum ib_wc_status live_atomic(struct kunit *test, struct live_end *end,
			      struct ib_sge sge, u64 raddr, u32 rkey, u64 add);
enum ib_wc_status live_send(struct kunit *test, struct live_end *end,
			    struct ib_sge sge, u32 inv);
enum ib_wc_status live_reg(struct kunit *test, struct live_end *end,
			   struct ib_mr *mr, u32 key, int access);
enum ib_wc_status live_inv(struct kunit *test, struct live_end *end, u32 key);

static inline struct ib_sge live_sge(const struct live_end *end, u32 off, u32 len)
{
	return (struct ib_sge){ end->addr + off, len, end->lkey };
}

static inline void live_fill(void *to, size_t bytes, u8 seed)
{
	u8 *at = to;
	size_t i;

	for (i = 0; i < bytes; i++)
		at[i] = seed + i * 7 + (i >> 8);
}

/* The number of bytes, from the first, that are as live_fill() made them. */
static inline size_t live_filled(const void *from, size_t bytes, u8 seed)
{
	const u8 *at = from;
	size_t i;

	for (i = 0; i < bytes; i++)
		if (at[i] != (u8)(seed + i * 7 + (i >> 8)))
			break;
	return i;
}

#endif
