/* SPDX-License-Identifier: GPL-2.0 */
/*
 * lib.h - what the selftests share: cases, QPs, waits that end
 *
 * A program is a table of cases.  Each case runs in a process of its own under a
 * time limit; a CHECK that fails ends it.  After each case the parent looks that
 * no pinned page and no RDMA object is left (objects: after every eighth where
 * that is slow).  Reports are KTAP.
 *
 * Environment: MRSOFT_DEV (mr0), MRSOFT_DEV2 (mr1), MRSOFT_MACHINE (how slow).
 */
#ifndef MRSOFT_SELFTESTS_LIB_H
#define MRSOFT_SELFTESTS_LIB_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "../../../include/uapi/rdma/mrsoft.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define KiB 1024ull
#define MiB (KiB * KiB)
#define GiB (KiB * MiB)

/* --- cases ---------------------------------------------------------------- */

/**
 * struct t_case - one line of the report
 * @name: what holds if it passes
 * @fn: ends by returning (passed), or by CHECK or t_skip()
 * @arg: for @fn
 * @seconds: limit on a fast machine, 0 for 20
 */
struct t_case {
	const char *name;
	void (*fn)(const void *arg);
	const void *arg;
	unsigned int seconds;
};

int t_main(int argc, char **argv, const struct t_case *cases, size_t n);

/* How many times slower than UML this machine is: 1, 3 or 10. */
unsigned int t_slow(void);
/* all traffic takes the packet path */
bool t_wire(void);
/* How often to do something: @n on a fast machine, less on others, at least 2. */
unsigned int t_rounds(unsigned int n);
/*
 * The longest region of pages that are not neighbours in memory: each of them
 * is a mapping of the host in UML, and those are counted (vm.max_map_count).
 */
size_t t_span(void);
/* The time to wait for what must come, in ms: generous, scaled. */
unsigned int t_patience(void);
/* Monotonic milliseconds. */
uint64_t t_now(void);
void t_sleep(unsigned int ms);
void t_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void t_skip(const char *why) __attribute__((noreturn));
void t_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), noreturn));

#define CHECK(cond) do {						\
	if (!(cond))							\
		t_fail(__FILE__, __LINE__, "%s (errno %d %s)", #cond,	\
		       errno, strerror(errno));				\
} while (0)

/* Integers, both of which the report shows. */
#define CHECK_EQ(a, b) do {						\
	long long t_a = (long long)(a), t_b = (long long)(b);		\
	if (t_a != t_b)							\
		t_fail(__FILE__, __LINE__, "%s is %lld (%#llx), not %s, %lld", \
		       #a, t_a, (unsigned long long)t_a, #b, t_b);	\
} while (0)

/* A verb that returns 0 or an errno. */
#define OK(call) do {							\
	int t_ret = (call);						\
	if (t_ret)							\
		t_fail(__FILE__, __LINE__, "%s: %d %s", #call, t_ret,	\
		       strerror(t_ret < 0 ? errno : t_ret));		\
} while (0)

/* /proc/vmstat: pages pinned now, and VmPin/VmLck of this process in KiB. */
int64_t t_pinned(void);
int64_t t_status_kib(const char *field);
/* The objects of MRSOFT_DEV in the core's own words, one line. */
void t_objects(char *text, size_t size);

/* A counter of port 1 of @device, as it is now. */
uint64_t t_counter(const char *device, const char *name);

/* --- devices -------------------------------------------------------------- */

/* The rest is for the addresses that its QPs are given; hop_limit 0: 64. */
struct ctx {
	struct ibv_context *ibv;
	struct ibv_pd *pd;
	union ibv_gid gid;
	int gid_index;
	enum ibv_mtu mtu;
	uint8_t traffic_class, hop_limit;
	uint32_t flow_label;
};

/* Opens @name (NULL: MRSOFT_DEV), with a PD. */
struct ctx *ctx_open(const char *name);
const char *ctx_first(void);
const char *ctx_second(void);
void ctx_close(struct ctx *c);

/* --- memory --------------------------------------------------------------- */

#define REMOTE_ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | \
		    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define MR_ALL (REMOTE_ALL | IBV_ACCESS_MW_BIND)

struct buf {
	uint8_t *p;
	size_t len;
	struct ibv_mr *mr;
};

/* Anonymous pages, registered in @pd with @access. */
struct buf buf_new(struct ibv_pd *pd, size_t len, int access);
/* As long as you like: one memfd of @unit bytes mapped side by side, MR or not. */
struct buf buf_sparse(struct ibv_pd *pd, size_t len, size_t unit, int access);
void buf_free(struct buf *b);
void fill(void *p, size_t len, unsigned int seed);
/* Offset of the first byte that is not as fill() left it, or -1. */
ssize_t filled(const void *p, size_t len, unsigned int seed);
/* Offset of the first byte that is not @c, or -1. */
ssize_t only(const void *p, size_t len, uint8_t c);
void *pages(size_t len);

/* --- QPs ------------------------------------------------------------------ */

/* The name of an enum ibv_qp_type is too long. */
#define RC IBV_QPT_RC
#define UC IBV_QPT_UC
#define UD IBV_QPT_UD
#define UD_QKEY 0x11223344

/**
 * struct conf - how a QP is made
 *
 * conf_of() fills in working values; a test changes what it is about.
 */
struct conf {
	enum ibv_qp_type type;
	struct ibv_qp_cap cap;
	struct ibv_srq *srq;
	struct ibv_pd *pd;
	int cqe;
	int sig_all;
	int access;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr, rd_atomic, dest_rd_atomic;
	uint32_t psn;
	struct ibv_comp_channel *channel;
	bool ex;	/* with the ibv_wr_*() calls, which librxe checks less */
};

struct conf conf_of(enum ibv_qp_type type);

/* A QP and its CQs. */
struct end {
	struct ctx *c;
	struct conf conf;
	struct ibv_cq *scq, *rcq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;	/* with conf.ex */
	struct ibv_ah *ah;	/* UD: to the peer */
	uint32_t peer_qpn;
};

struct addr {
	union ibv_gid gid;
	uint32_t qpn, psn;
};

struct end end_new(struct ctx *c, const struct conf *conf);
struct addr end_addr(const struct end *e);
int end_init(struct end *e);
int end_rtr(struct end *e, const struct addr *peer);
int end_rts(struct end *e);
int end_to(struct end *e, enum ibv_qp_state state);
/* INIT, RTR, RTS. */
void end_connect(struct end *e, const struct addr *peer);
/* Both ends ready to send. */
void pair_new(struct ctx *c, const struct conf *conf, struct end *a,
	      struct end *b);
void pair_new2(struct ctx *ca, struct ctx *cb, const struct conf *conf,
	       struct end *a, struct end *b);
void pair_connect(struct end *a, struct end *b);
/* RESET, then connected again, CQs emptied. */
void pair_again(struct end *a, struct end *b);
void end_free(struct end *e);
void pair_free(struct end *a, struct end *b);
/* After RTS: is it in @state now, or soon? */
void expect_state(const struct end *e, enum ibv_qp_state state);
enum ibv_qp_state end_state(const struct end *e);
const char *state_name(int state);

/* --- work ----------------------------------------------------------------- */

/**
 * struct op - a send WR with one sge, for designated initialisers
 *
 * Without a length there is no sge.  Signalled unless @quiet.
 */
struct op {
	enum ibv_wr_opcode opcode;
	uint64_t wr_id;
	const void *laddr;
	uint32_t len, lkey;
	uint64_t raddr;
	uint32_t rkey;
	uint32_t imm;
	uint64_t compare, swap;
	int flags;
	bool quiet;
	struct ibv_sge *sges;
	int num_sge;
	struct {
		struct ibv_mw *mw;
		uint32_t rkey;
		struct ibv_mr *mr;
		uint64_t addr, length;
		unsigned int access;
	} bind;
};

int post(struct end *e, const struct op *op);
/*
 * A WRITE of UC is done when its last packet is on the way: waits until the bytes
 * of fill() are there, or for too long.
 */
void arrive(enum ibv_qp_type type, const void *p, size_t len,
	    unsigned int seed);
int post_recv(struct end *e, uint64_t wr_id, const void *p, uint32_t len,
	      uint32_t lkey);
int post_srq(struct ibv_srq *srq, uint64_t wr_id, const void *p, uint32_t len,
	     uint32_t lkey);
/* BIND_MW of type 2 as a WR; length 0 unbinds. */
int post_bind(struct end *e, struct ibv_mw *mw, uint32_t rkey,
	      struct ibv_mr *mr, const void *addr, uint64_t len,
	      unsigned int access);

/* False when nothing came within @ms. */
bool wait_wc(struct ibv_cq *cq, struct ibv_wc *wc, unsigned int ms);
/* The next completion, with patience. */
struct ibv_wc next_wc(struct ibv_cq *cq, const char *file, int line);
void expect_wc_at(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
		  int reason, const char *file, int line);
/* @reason: enum mrsoft_reason, or -1 for any */
#define NEXT_WC(cq) next_wc(cq, __FILE__, __LINE__)
#define EXPECT_WC(cq, wr_id, status) \
	expect_wc_at(cq, wr_id, status, -1, __FILE__, __LINE__)
#define EXPECT_WC_WHY(cq, wr_id, status, reason) \
	expect_wc_at(cq, wr_id, status, reason, __FILE__, __LINE__)
void expect_empty_at(struct ibv_cq *cq, unsigned int ms, const char *file,
		     int line);
#define EXPECT_EMPTY(cq, ms) expect_empty_at(cq, ms, __FILE__, __LINE__)
/* Post and see it succeed. */
#define DO(e, ...) do {							\
	struct op t_op = { __VA_ARGS__ };				\
	OK(post(e, &t_op));						\
	if (!t_op.quiet)						\
		EXPECT_WC((e)->scq, t_op.wr_id, IBV_WC_SUCCESS);	\
} while (0)
/* Post and see it fail. */
#define FAIL_WITH(e, status, reason, ...) do {				\
	struct op t_op = { __VA_ARGS__ };				\
	OK(post(e, &t_op));						\
	EXPECT_WC_WHY((e)->scq, t_op.wr_id, status, reason);		\
} while (0)

/* Asynchronous events; @qp, @srq, @cq by their pointers, NULL: any. */
void expect_event_at(struct ctx *c, enum ibv_event_type type, void *element,
		     const char *file, int line);
#define EXPECT_EVENT(c, type, element) \
	expect_event_at(c, type, element, __FILE__, __LINE__)
bool wait_event(struct ctx *c, struct ibv_async_event *event, unsigned int ms);
void expect_no_event_at(struct ctx *c, unsigned int ms, const char *file,
			int line);
#define EXPECT_NO_EVENT(c, ms) expect_no_event_at(c, ms, __FILE__, __LINE__)

/* --- commands without a call ---------------------------------------------- */

/* 0 or an errno.  @pd NULL: none. */
int rereg(struct ibv_mr *mr, unsigned int flags, struct ibv_pd *pd,
	  const void *addr, size_t len, uint64_t iova, unsigned int access);
#define REREG_TRANS 1u
#define REREG_PD 2u
#define REREG_ACCESS 4u
/* A legacy command: header in front of @cmd, @resp set into its first word. */
int uverbs_write(struct ibv_context *ibv, uint32_t command, void *cmd,
		 size_t cmd_len, void *resp, size_t resp_len);

#endif /* MRSOFT_SELFTESTS_LIB_H */
