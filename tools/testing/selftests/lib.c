// SPDX-License-Identifier: GPL-2.0
/*
 * lib.c - what the selftests share; see lib.h
 */
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_verbs.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "lib.h"

#define EXIT_SKIP 4
#define SKIP_LEN 200

/* Shared with the process of the case. */
static char *skip_why;

/* --- cases ---------------------------------------------------------------- */

uint64_t t_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

void t_sleep(unsigned int ms)
{
	usleep(ms * 1000);
}

unsigned int t_slow(void)
{
	const char *machine = getenv("MRSOFT_MACHINE");

	if (!machine || !strcmp(machine, "uml-plain"))
		return 1;
	return strncmp(machine, "uml-", 4) ? 10 : 3;
}

bool t_wire(void)
{
	const char *path = getenv("MRSOFT_PATH");

	return path && !strcmp(path, "wire");
}

unsigned int t_rounds(unsigned int n)
{
	n /= t_slow();
	return n > 2 ? n : 2;
}

size_t t_span(void)
{
	const char *machine = getenv("MRSOFT_MACHINE");

	if (machine && !strncmp(machine, "vm-", 3))
		return GiB;
	return t_slow() > 1 ? 16 * MiB : 48 * MiB;
}

unsigned int t_patience(void)
{
	return 8000 + 4000 * t_slow();
}

static void say(const char *prefix, const char *fmt, va_list ap)
{
	char text[400];

	vsnprintf(text, sizeof(text), fmt, ap);
	printf("# %s%s\n", prefix, text);
	fflush(stdout);
}

void t_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
}

void t_skip(const char *why)
{
	snprintf(skip_why, SKIP_LEN, "%s", why);
	_exit(EXIT_SKIP);
}

void t_fail(const char *file, int line, const char *fmt, ...)
{
	char where[80];
	va_list ap;

	snprintf(where, sizeof(where), "%s:%d: ", file, line);
	va_start(ap, fmt);
	say(where, fmt, ap);
	va_end(ap);
	_exit(1);
}

static int64_t field_of(const char *file, const char *field)
{
	size_t len = strlen(field);
	int64_t value = 0;
	char line[256];
	FILE *f = fopen(file, "r");

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, field, len) &&
		    (line[len] == ' ' || line[len] == ':'))
			value = strtoll(line + len + 1, NULL, 10);
	}
	fclose(f);
	return value;
}

int64_t t_pinned(void)
{
	/* the counters are per CPU until somebody asks */
	int fd = open("/proc/sys/vm/stat_refresh", O_WRONLY);

	if (fd >= 0) {
		if (write(fd, "1", 1) != 1)
			t_note("stat_refresh: %s", strerror(errno));
		close(fd);
	}
	return field_of("/proc/vmstat", "nr_foll_pin_acquired") -
	       field_of("/proc/vmstat", "nr_foll_pin_released");
}

int64_t t_status_kib(const char *field)
{
	return field_of("/proc/self/status", field);
}

void t_objects(char *text, size_t size)
{
	char cmd[80];
	FILE *f;

	snprintf(cmd, sizeof(cmd), "exec rdma resource show %s 2>&1",
		 ctx_first());
	f = popen(cmd, "r");
	if (!f || !fgets(text, size, f))
		snprintf(text, size, "nothing");
	if (f)
		pclose(f);
	text[strcspn(text, "\n")] = 0;
}

uint64_t t_counter(const char *device, const char *name)
{
	unsigned long long value;
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path),
		 "/sys/class/infiniband/%s/ports/1/hw_counters/%s",
		 device, name);
	/* the core reads them at most every 10 ms, else an old value comes back */
	t_sleep(30);
	f = fopen(path, "r");
	CHECK(f);
	CHECK_EQ(fscanf(f, "%llu", &value), 1);
	fclose(f);
	return value;
}

/* Wait for a child; false if it had to be killed, and then if it would not die. */
static bool reap(pid_t pid, uint64_t ms, int *status)
{
	uint64_t end = t_now() + ms;

	while (waitpid(pid, status, WNOHANG) == 0) {
		if (t_now() > end)
			return false;
		usleep(2000);
	}
	return true;
}

/* @look: at the objects as well, which takes two processes */
static bool idle(int64_t pinned, const char *objects, bool look)
{
	uint64_t end = t_now() + 2000;
	char now[256] = "not looked at";
	int64_t pins;

	do {
		pins = t_pinned();
		if (look)
			t_objects(now, sizeof(now));
		if (pins == pinned && (!look || !strcmp(now, objects)))
			return true;
		usleep(50000);
	} while (t_now() < end);
	t_note("left behind: %lld pinned pages; objects '%s', before '%s'",
	       (long long)(pins - pinned), now, objects);
	return false;
}

static bool run_case(const struct t_case *c, size_t n, int64_t pinned,
		     const char *objects, bool look)
{
	unsigned int ms = (c->seconds ? c->seconds : 20) * 1000 *
			  (t_slow() > 1 ? t_slow() : 2);
	uint64_t start = t_now();
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		c->fn(c->arg);
		fflush(stdout);
		_exit(0);
	}
	setpgid(pid, pid);
	if (!reap(pid, ms, &status)) {
		t_note("no end after %u ms", ms);
		kill(-pid, SIGKILL);
		if (!reap(pid, 10000, &status)) {
			printf("not ok %zu %s\n", n, c->name);
			printf("Bail out! the process cannot be killed\n");
			fflush(stdout);
			_exit(1);
		}
		status = SIGKILL;
	}
	kill(-pid, SIGKILL);
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		t_note("killed by signal %d", WTERMSIG(status));
	if (!idle(pinned, objects, look) && !status)
		status = 1;
	if (t_now() - start > 3000)
		t_note("%s: %llu ms", c->name,
		       (unsigned long long)(t_now() - start));
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP) {
		printf("ok %zu %s # SKIP %s\n", n, c->name, skip_why);
		status = 0;
	} else {
		printf("%s %zu %s\n", status ? "not ok" : "ok", n, c->name);
	}
	fflush(stdout);
	return !status;
}

/**
 * t_main - run cases
 * @argc: of main
 * @argv: [program] PATTERN...: only cases whose name contains one of them
 * @cases: the table
 * @n: its length
 *
 * Return: exit status.
 */
int t_main(int argc, char **argv, const struct t_case *cases, size_t n)
{
	bool good = true;
	int64_t pinned = t_pinned();
	char objects[256];
	size_t i, done = 0;
	int j;

	skip_why = mmap(NULL, SKIP_LEN, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (skip_why == MAP_FAILED)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	t_objects(objects, sizeof(objects));
	printf("KTAP version 1\n");
	for (i = 0; i < n; i++) {
		bool chosen = argc < 2;

		for (j = 1; j < argc; j++)
			chosen |= strstr(cases[i].name, argv[j]) != NULL;
		if (!chosen)
			continue;
		/* where looking is slow: after some cases and after the last */
		done++;
		if (!run_case(&cases[i], done, pinned, objects,
			      t_slow() == 1 || done % 8 == 0 || i + 1 == n))
			good = false;
	}
	printf("1..%zu\n", done);
	return !good;
}

/* --- devices -------------------------------------------------------------- */

const char *ctx_first(void)
{
	const char *name = getenv("MRSOFT_DEV");

	return name ? name : "mr0";
}

const char *ctx_second(void)
{
	const char *name = getenv("MRSOFT_DEV2");

	return name ? name : "mr1";
}

static int gid_choose(struct ctx *c)
{
	struct ibv_gid_entry entry;
	int i, found = -1;

	for (i = 0; i < 32; i++) {
		if (ibv_query_gid_ex(c->ibv, 1, i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		if (found < 0 || (entry.gid.raw[10] == 0xff && !entry.gid.raw[0])) {
			found = i;
			c->gid = entry.gid;
		}
		if (entry.gid.raw[10] == 0xff && !entry.gid.raw[0])
			break;
	}
	return found;
}

struct ctx *ctx_open(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ctx *c = calloc(1, sizeof(*c));
	struct ibv_port_attr port;
	int i;

	if (!name)
		name = ctx_first();
	CHECK(list && c);
	for (i = 0; list[i]; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), name))
			c->ibv = ibv_open_device(list[i]);
	}
	ibv_free_device_list(list);
	if (!c->ibv)
		t_fail(__FILE__, __LINE__, "no device %s", name);
	OK(ibv_query_port(c->ibv, 1, &port));
	CHECK_EQ(port.state, IBV_PORT_ACTIVE);
	c->mtu = port.active_mtu;
	c->gid_index = gid_choose(c);
	CHECK(c->gid_index >= 0);
	c->pd = ibv_alloc_pd(c->ibv);
	CHECK(c->pd);
	return c;
}

void ctx_close(struct ctx *c)
{
	OK(ibv_dealloc_pd(c->pd));
	OK(ibv_close_device(c->ibv));
	free(c);
}

/* --- memory --------------------------------------------------------------- */

void *pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

struct buf buf_new(struct ibv_pd *pd, size_t len, int access)
{
	struct buf b = { .p = pages(len), .len = len };

	b.mr = ibv_reg_mr(pd, b.p, len, access);
	if (!b.mr)
		t_fail(__FILE__, __LINE__, "ibv_reg_mr(%zu, %#x): %s", len,
		       access, strerror(errno));
	return b;
}

struct buf buf_sparse(struct ibv_pd *pd, size_t len, size_t unit, int access)
{
	struct buf b = { .len = len };
	int fd = memfd_create("sparse", 0);
	size_t at;

	CHECK(fd >= 0 && !ftruncate(fd, unit));
	b.p = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(b.p != MAP_FAILED);
	for (at = 0; at < len; at += unit)
		CHECK(mmap(b.p + at, unit, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
	close(fd);
	if (!pd)
		return b;
	b.mr = ibv_reg_mr(pd, b.p, len, access);
	if (!b.mr)
		t_fail(__FILE__, __LINE__, "ibv_reg_mr(%zu, %#x): %s", len,
		       access, strerror(errno));
	return b;
}

void buf_free(struct buf *b)
{
	if (b->mr)
		OK(ibv_dereg_mr(b->mr));
	munmap(b->p, b->len);
	b->mr = NULL;
	b->p = NULL;
}

static uint8_t byte_of(size_t i, unsigned int seed)
{
	return (i * 131 + (i >> 8) * 7 + (i >> 16) * 13 + seed * 59 + 1) & 0xff;
}

void fill(void *p, size_t len, unsigned int seed)
{
	uint8_t *b = p;
	size_t i;

	for (i = 0; i < len; i++)
		b[i] = byte_of(i, seed);
}

ssize_t filled(const void *p, size_t len, unsigned int seed)
{
	const uint8_t *b = p;
	size_t i;

	for (i = 0; i < len; i++) {
		if (b[i] != byte_of(i, seed))
			return i;
	}
	return -1;
}

ssize_t only(const void *p, size_t len, uint8_t c)
{
	const uint8_t *b = p;
	size_t i;

	for (i = 0; i < len; i++) {
		if (b[i] != c)
			return i;
	}
	return -1;
}

/* --- QPs ------------------------------------------------------------------ */

struct conf conf_of(enum ibv_qp_type type)
{
	return (struct conf){
		.type = type,
		.cap = {
			.max_send_wr = 64,
			.max_recv_wr = 64,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 64,
		},
		.cqe = 256,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  (type == RC ? IBV_ACCESS_REMOTE_READ |
					IBV_ACCESS_REMOTE_ATOMIC : 0),
		/* 1 ms, which is too short for packets of a busy machine */
		.timeout = t_wire() ? 14 : 8,
		.retry_cnt = 3,
		.rnr_retry = 3,
		.min_rnr = 1,		/* 10 us */
		.rd_atomic = 16,
		.dest_rd_atomic = 16,
		.psn = 0x123456,
	};
}

struct end end_new(struct ctx *c, const struct conf *conf)
{
	struct end e = { .c = c, .conf = *conf };
	struct ibv_qp_init_attr_ex init = {
		.qp_type = conf->type,
		.cap = conf->cap,
		.srq = conf->srq,
		.sq_sig_all = conf->sig_all,
		.pd = conf->pd ? conf->pd : c->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
	};

	if (conf->ex) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = IBV_QP_EX_WITH_SEND |
			IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
			IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
			(conf->type == RC ? IBV_QP_EX_WITH_ATOMIC_WRITE : 0);
	}
	e.scq = ibv_create_cq(c->ibv, conf->cqe, NULL, conf->channel, 0);
	e.rcq = ibv_create_cq(c->ibv, conf->cqe, NULL, conf->channel, 0);
	CHECK(e.scq && e.rcq);
	init.send_cq = e.scq;
	init.recv_cq = e.rcq;
	e.qp = ibv_create_qp_ex(c->ibv, &init);
	CHECK(e.qp);
	if (conf->ex)
		e.qpx = ibv_qp_to_qp_ex(e.qp);
	return e;
}

struct addr end_addr(const struct end *e)
{
	return (struct addr){
		.gid = e->c->gid,
		.qpn = e->qp->qp_num,
		.psn = e->conf.psn,
	};
}

int end_init(struct end *e)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = e->conf.access,
		.qkey = UD_QKEY,
	};

	return ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			     IBV_QP_PORT | (e->conf.type == UD ? IBV_QP_QKEY :
					    IBV_QP_ACCESS_FLAGS));
}

static struct ibv_ah_attr ah_attr(const struct ctx *c, const union ibv_gid *gid)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = {
			.dgid = *gid,
			.sgid_index = c->gid_index,
			.hop_limit = c->hop_limit ? c->hop_limit : 64,
			.traffic_class = c->traffic_class,
			.flow_label = c->flow_label,
		},
	};
}

int end_rtr(struct end *e, const struct addr *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = e->c->mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = e->conf.dest_rd_atomic,
		.min_rnr_timer = e->conf.min_rnr,
		.ah_attr = ah_attr(e->c, &peer->gid),
	};
	int mask = IBV_QP_STATE;

	e->peer_qpn = peer->qpn;
	if (e->conf.type == UD) {
		if (e->ah)
			OK(ibv_destroy_ah(e->ah));
		e->ah = ibv_create_ah(e->qp->pd, &attr.ah_attr);
		CHECK(e->ah);
	} else {
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN;
	}
	if (e->conf.type == RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(e->qp, &attr, mask);
}

int end_rts(struct end *e)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = e->conf.psn,
		.timeout = e->conf.timeout,
		.retry_cnt = e->conf.retry_cnt,
		.rnr_retry = e->conf.rnr_retry,
		.max_rd_atomic = e->conf.rd_atomic,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (e->conf.type == RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(e->qp, &attr, mask);
}

int end_to(struct end *e, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(e->qp, &attr, IBV_QP_STATE);
}

void end_connect(struct end *e, const struct addr *peer)
{
	OK(end_init(e));
	OK(end_rtr(e, peer));
	OK(end_rts(e));
}

void pair_connect(struct end *a, struct end *b)
{
	struct addr at_a = end_addr(a), at_b = end_addr(b);

	OK(end_init(a));
	OK(end_init(b));
	OK(end_rtr(a, &at_b));
	OK(end_rtr(b, &at_a));
	OK(end_rts(a));
	OK(end_rts(b));
}

void pair_new2(struct ctx *ca, struct ctx *cb, const struct conf *conf,
	       struct end *a, struct end *b)
{
	*a = end_new(ca, conf);
	*b = end_new(cb, conf);
	b->conf.psn ^= 0xfff;
	pair_connect(a, b);
}

void pair_new(struct ctx *c, const struct conf *conf, struct end *a,
	      struct end *b)
{
	pair_new2(c, c, conf, a, b);
}

static void drop_all(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) > 0)
		;
}

void pair_again(struct end *a, struct end *b)
{
	OK(end_to(a, IBV_QPS_RESET));
	OK(end_to(b, IBV_QPS_RESET));
	drop_all(a->scq);
	drop_all(a->rcq);
	drop_all(b->scq);
	drop_all(b->rcq);
	pair_connect(a, b);
}

void end_free(struct end *e)
{
	if (e->qp)
		OK(ibv_destroy_qp(e->qp));
	if (e->ah)
		OK(ibv_destroy_ah(e->ah));
	OK(ibv_destroy_cq(e->scq));
	OK(ibv_destroy_cq(e->rcq));
	*e = (struct end){};
}

void pair_free(struct end *a, struct end *b)
{
	end_free(a);
	end_free(b);
}

const char *state_name(int state)
{
	static const char *const names[] = {
		"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
	};

	return state >= 0 && state < (int)ARRAY_SIZE(names) ? names[state] : "?";
}

enum ibv_qp_state end_state(const struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	OK(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

void expect_state(const struct end *e, enum ibv_qp_state state)
{
	uint64_t limit = t_now() + t_patience() / 4;
	enum ibv_qp_state now;

	while ((now = end_state(e)) != state && t_now() < limit)
		usleep(1000);
	if (now != state)
		t_fail(__FILE__, __LINE__, "the QP is in %s, not in %s",
		       state_name(now), state_name(state));
}

/* --- work ----------------------------------------------------------------- */

int post(struct end *e, const struct op *op)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)op->laddr,
		.length = op->len,
		.lkey = op->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = op->wr_id,
		.opcode = op->opcode,
		.sg_list = op->sges ? op->sges : &sge,
		.num_sge = op->sges ? op->num_sge : op->len != 0,
		.send_flags = op->flags | (op->quiet ? 0 : IBV_SEND_SIGNALED),
		.imm_data = htobe32(op->imm),
	};

	switch (op->opcode) {
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		wr.invalidate_rkey = op->rkey;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr.wr.atomic.remote_addr = op->raddr;
		wr.wr.atomic.rkey = op->rkey;
		wr.wr.atomic.compare_add = op->compare;
		wr.wr.atomic.swap = op->swap;
		break;
	case IBV_WR_BIND_MW:
		wr.bind_mw.mw = op->bind.mw;
		wr.bind_mw.rkey = op->bind.rkey;
		wr.bind_mw.bind_info.mr = op->bind.mr;
		wr.bind_mw.bind_info.addr = op->bind.addr;
		wr.bind_mw.bind_info.length = op->bind.length;
		wr.bind_mw.bind_info.mw_access_flags = op->bind.access;
		break;
	default:
		if (e->conf.type == UD) {
			wr.wr.ud.ah = e->ah;
			wr.wr.ud.remote_qpn = e->peer_qpn;
			wr.wr.ud.remote_qkey = UD_QKEY;
		} else {
			wr.wr.rdma.remote_addr = op->raddr;
			wr.wr.rdma.rkey = op->rkey;
		}
	}
	return ibv_post_send(e->qp, &wr, &bad);
}

int post_bind(struct end *e, struct ibv_mw *mw, uint32_t rkey,
	      struct ibv_mr *mr, const void *addr, uint64_t len,
	      unsigned int access)
{
	struct op op = {
		.opcode = IBV_WR_BIND_MW,
		.wr_id = 0xb1d,
		.bind = { mw, rkey, mr, (uintptr_t)addr, len, access },
	};

	return post(e, &op);
}

int post_recv(struct end *e, uint64_t wr_id, const void *p, uint32_t len,
	      uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)p, len, lkey };
	struct ibv_recv_wr *bad, wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = len != 0,
	};

	return ibv_post_recv(e->qp, &wr, &bad);
}

int post_srq(struct ibv_srq *srq, uint64_t wr_id, const void *p, uint32_t len,
	     uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)p, len, lkey };
	struct ibv_recv_wr *bad, wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = len != 0,
	};

	return ibv_post_srq_recv(srq, &wr, &bad);
}

bool wait_wc(struct ibv_cq *cq, struct ibv_wc *wc, unsigned int ms)
{
	uint64_t limit = t_now() + ms;
	unsigned int tries = 0;
	int n;

	for (;;) {
		n = ibv_poll_cq(cq, 1, wc);
		CHECK(n >= 0);
		if (n)
			return true;
		if (tries++ < 100) {
			sched_yield();
			continue;
		}
		if (t_now() >= limit)
			return false;
		usleep(200);
	}
}

struct ibv_wc next_wc(struct ibv_cq *cq, const char *file, int line)
{
	struct ibv_wc wc;

	if (!wait_wc(cq, &wc, t_patience()))
		t_fail(file, line, "no completion");
	return wc;
}

void arrive(enum ibv_qp_type type, const void *p, size_t len,
	    unsigned int seed)
{
	uint64_t limit = t_now() + t_patience();

	if (type != UC || !t_wire())
		return;
	while (filled(p, len, seed) != -1 && t_now() < limit)
		t_sleep(1);
}

/* A packet has no room for the responder's reason. */
static int reason_here(enum ibv_wc_status status, int reason)
{
	bool remote = status == IBV_WC_REM_ACCESS_ERR ||
		      status == IBV_WC_REM_INV_REQ_ERR ||
		      status == IBV_WC_REM_OP_ERR;

	return remote && reason >= 0 && t_wire() ? MRSOFT_R_PEER_REFUSED :
						   reason;
}

void expect_wc_at(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
		  int reason, const char *file, int line)
{
	struct ibv_wc wc = next_wc(cq, file, line);

	reason = reason_here(status, reason);
	if (wc.wr_id == wr_id && wc.status == status &&
	    (reason < 0 || wc.vendor_err == (uint32_t)reason))
		return;
	t_fail(file, line,
	       "completion wr_id %#llx '%s' (%d) reason %u, not %#llx '%s' (%d) reason %d",
	       (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status),
	       wc.status, wc.vendor_err, (unsigned long long)wr_id,
	       ibv_wc_status_str(status), status, reason);
}

void expect_empty_at(struct ibv_cq *cq, unsigned int ms, const char *file,
		     int line)
{
	struct ibv_wc wc;

	if (wait_wc(cq, &wc, ms))
		t_fail(file, line, "unexpected completion wr_id %#llx '%s'",
		       (unsigned long long)wc.wr_id,
		       ibv_wc_status_str(wc.status));
}

bool wait_event(struct ctx *c, struct ibv_async_event *event, unsigned int ms)
{
	struct pollfd pfd = { .fd = c->ibv->async_fd, .events = POLLIN };

	if (poll(&pfd, 1, ms) != 1)
		return false;
	OK(ibv_get_async_event(c->ibv, event));
	ibv_ack_async_event(event);
	return true;
}

void expect_event_at(struct ctx *c, enum ibv_event_type type, void *element,
		     const char *file, int line)
{
	struct ibv_async_event event;

	do {
		if (!wait_event(c, &event, t_patience()))
			t_fail(file, line, "no event %s",
			       ibv_event_type_str(type));
	/* any test may be told that a connection lives */
	} while (event.event_type == IBV_EVENT_COMM_EST &&
		 type != IBV_EVENT_COMM_EST);
	if (event.event_type != type)
		t_fail(file, line, "event '%s', not '%s'",
		       ibv_event_type_str(event.event_type),
		       ibv_event_type_str(type));
	if (element && event.element.qp != element)
		t_fail(file, line, "event '%s' of another object",
		       ibv_event_type_str(type));
}

void expect_no_event_at(struct ctx *c, unsigned int ms, const char *file,
			int line)
{
	struct ibv_async_event event;

	while (wait_event(c, &event, ms)) {
		if (event.event_type != IBV_EVENT_COMM_EST)
			t_fail(file, line, "unexpected event '%s'",
			       ibv_event_type_str(event.event_type));
	}
}

/* --- commands without a call ---------------------------------------------- */

int uverbs_write(struct ibv_context *ibv, uint32_t command, void *cmd,
		 size_t cmd_len, void *resp, size_t resp_len)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		uint8_t body[512];
	} msg = {
		.hdr = {
			.command = command,
			.in_words = (sizeof(msg.hdr) + cmd_len) / 4,
			.out_words = resp_len / 4,
		},
	};
	uint64_t response = (uintptr_t)resp;
	ssize_t len = sizeof(msg.hdr) + cmd_len;

	CHECK(cmd_len <= sizeof(msg.body));
	memcpy(msg.body, cmd, cmd_len);
	if (resp)
		memcpy(msg.body, &response, sizeof(response));
	return write(ibv->cmd_fd, &msg, len) == len ? 0 : errno;
}

int rereg(struct ibv_mr *mr, unsigned int flags, struct ibv_pd *pd,
	  const void *addr, size_t len, uint64_t iova, unsigned int access)
{
	struct ib_uverbs_rereg_mr cmd = {
		.mr_handle = mr->handle,
		.flags = flags,
		.start = (uintptr_t)addr,
		.length = len,
		.hca_va = iova,
		.pd_handle = pd ? pd->handle : 0,
		.access_flags = access,
	};
	struct ib_uverbs_rereg_mr_resp resp = {};
	int err;

	err = uverbs_write(mr->context, IB_USER_VERBS_CMD_REREG_MR, &cmd,
			   sizeof(cmd), &resp, sizeof(resp));
	if (err)
		return err;
	mr->lkey = resp.lkey;
	mr->rkey = resp.rkey;
	if (flags & REREG_TRANS) {
		mr->addr = (void *)addr;
		mr->length = len;
	}
	if (flags & REREG_PD)
		mr->pd = pd;
	return 0;
}
