// SPDX-License-Identifier: GPL-2.0
/*
 * paths.c - the same work over both paths: the same memory, the same completions
 *
 * A seed makes a sequence: bursts of work requests of one side or the other, and the
 * receives of both.  It runs on fresh QPs by copies and once more by packets; then
 * all bytes of both sides and all completions must be equal.  What the
 * specification leaves open is kept out (what READs and atomics have in hand is not
 * touched again without a fence, lists do not overlap themselves) or made equal
 * afterwards (the buffers of a receive that failed, the IP header of a datagram).
 *
 * MRSOFT_SEED: another first seed.  With a seed as its first argument: that one
 * sequence, told step by step.
 */
#include <ctype.h>
#include <fcntl.h>
#include <poll.h>

#include "lib.h"

#define AREA (1024 * 1024u)	/* bytes of each side */
#define LONGEST (256 * 1024u)	/* bytes of a message */
#define PIECES 4u		/* of a list, each in a quarter of the area */
#define INLINE 256u
#define BURSTS 4u
#define WRS 12u			/* of a burst */
#define RECVS (BURSTS * WRS)	/* of a side */
#define GRH 40u
#define WRONG 0x55u		/* what makes a key another */

/* What is wrong with a work request, or with the receive that it meets. */
enum wrong {
	NOTHING,
	LOCAL_KEY,
	LOCAL_RANGE,
	REMOTE_KEY,
	REMOTE_RANGE,
	MISALIGNED,
	RECV_SHORT,
	RECV_KEY,
	WRONGS
};

struct piece {
	uint32_t off, len;
};

struct list {
	struct piece piece[PIECES];
	unsigned int n;
};

struct wr {
	int opcode;		/* enum ibv_wr_opcode */
	struct list list;
	uint32_t len;
	int flags;
	uint32_t roff;
	bool window;		/* through the peer's, not its region */
	uint32_t imm;
	uint64_t operand;
	bool match;		/* compare with what is there */
	enum wrong wrong;
	unsigned int bad;	/* piece */
};

struct burst {
	unsigned int side, n;
	bool chained;
	struct wr wr[WRS];
	unsigned int cqes;	/* of its send queue */
	unsigned int first, recvs; /* of the peer that complete */
	bool solicited;		/* the peer is woken */
};

struct recv {
	struct list list;
	bool spoilt;		/* what is in it afterwards is undefined */
	bool bad_key;
	unsigned int bad;
};

struct seq {
	uint64_t seed;
	enum ibv_qp_type type;
	enum ibv_mtu mtu;
	bool srq, sig_all;
	unsigned int bursts;
	struct burst burst[BURSTS];
	unsigned int recvs[2];
	struct recv recv[2][RECVS];
	bool fails;		/* in its last work request */
};

/* A completion as far as it must be the same. */
struct done {
	uint64_t wr_id;
	enum ibv_wc_status status;
	uint32_t reason;
	int opcode;
	uint32_t byte_len, imm;
	unsigned int flags;
	bool named;		/* by its own QP and the peer's */
};

#define DONES (2 * RECVS)

struct result {
	uint8_t *mem[2];
	struct done done[2][2][DONES];	/* of a side: sent, received */
	unsigned int dones[2][2];
};

struct side {
	struct ctx *c;
	struct end e;
	struct buf buf;
	struct ibv_comp_channel *channel;
	struct ibv_srq *srq;
	struct ibv_mw *mw;
	uint32_t window_key;
	int path_fd;
};

static uint64_t base, only_this;
static enum ibv_mtu port_mtu;

/* --- chance --------------------------------------------------------------- */

static uint64_t state;

/* splitmix64 */
static uint64_t rnd(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static uint32_t below(uint32_t n)
{
	return n ? rnd() % n : 0;
}

static bool one_in(uint32_t n)
{
	return !below(n);
}

/* --- making a sequence ---------------------------------------------------- */

/* What the device still has in hand in the area of each side. */
static struct piece in_hand[2][WRS * (PIECES + 1)];
static unsigned int in_hands[2];

/* The windows: where, and length 0 while they are not bound. */
static struct piece windows[2];

static void take_in_hand(unsigned int side, uint32_t off, uint32_t len)
{
	if (len)
		in_hand[side][in_hands[side]++] = (struct piece){ off, len };
}

static bool is_in_hand(unsigned int side, uint32_t off, uint32_t len)
{
	unsigned int i;

	for (i = 0; i < in_hands[side]; i++) {
		const struct piece *p = &in_hand[side][i];

		if (len && off < p->off + p->len && p->off < off + len)
			return true;
	}
	return false;
}

static uint32_t some_length(const struct seq *s)
{
	uint32_t mtu = 128u << s->mtu, len;

	switch (below(12)) {
	case 0:
		len = 0;
		break;
	case 1:
		len = 1;
		break;
	case 2:
	case 3:
	case 4:
		len = below(64);
		break;
	case 5:
		len = mtu - 1 + below(3);
		break;
	case 6:
	case 7:
		len = (2 + below(6)) * mtu - 1 + below(3);
		break;
	case 8:
		len = one_in(3) ? below(LONGEST + 1) : below(20000);
		break;
	default:
		len = below(6000);
	}
	if (s->type == UD && len > mtu)
		len = mtu - below(3);
	/* nothing waits for UC: what comes at once must have room */
	if (s->type == UC && len > 128 * mtu)
		len = 128 * mtu;
	return len;
}

/* In pieces of at least a byte, which do not overlap. */
static struct list some_list(uint32_t len)
{
	static const unsigned int turns[][PIECES] = {
		{ 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 2, 0, 3, 1 }, { 1, 3, 0, 2 },
	};
	const unsigned int *quarter = turns[below(ARRAY_SIZE(turns))];
	unsigned int want = 1 + below(PIECES), i;
	struct list l = { .n = 0 };
	uint32_t room = AREA / PIECES;

	for (i = 0; i < want && len; i++) {
		uint32_t n = i + 1 == want ? len : 1 + below(len);

		l.piece[i].len = n;
		l.piece[i].off = quarter[i] * room + below(room - n + 1);
		l.n++;
		len -= n;
	}
	return l;
}

static bool consumes(const struct wr *w)
{
	return w->opcode == IBV_WR_SEND || w->opcode == IBV_WR_SEND_WITH_IMM ||
	       w->opcode == IBV_WR_SEND_WITH_INV ||
	       w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_send(const struct wr *w)
{
	return consumes(w) && w->opcode != IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_atomic(const struct wr *w)
{
	return w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_local(const struct wr *w)
{
	return w->opcode == IBV_WR_BIND_MW || w->opcode == IBV_WR_LOCAL_INV;
}

/* bytes come back */
static bool fetches(const struct wr *w)
{
	return is_atomic(w) || w->opcode == IBV_WR_RDMA_READ;
}

static int some_opcode(const struct seq *s, bool last, unsigned int side)
{
	static const int rc[] = {
		IBV_WR_SEND, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_ATOMIC_WRITE,
	};
	static const int uc[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_WRITE,
	};

	if (s->type == UD)
		return uc[below(2)];
	/* the last one is waited for by its receive, and may be the one that fails */
	if (s->type == UC)
		return uc[below(last || s->fails ? 3 : 4)];
	if (!windows[side].len && one_in(6))
		return IBV_WR_BIND_MW;
	if (windows[side].len && one_in(24))
		return IBV_WR_LOCAL_INV;
	if (windows[!side].len && one_in(6))
		return IBV_WR_SEND_WITH_INV;
	return rc[below(ARRAY_SIZE(rc))];
}

static enum wrong some_wrong(const struct seq *s, const struct wr *w)
{
	enum wrong wrong = 1 + below(WRONGS - 1);

	switch (wrong) {
	case LOCAL_KEY:
	case LOCAL_RANGE:
		return w->opcode == IBV_WR_ATOMIC_WRITE ||
		       w->flags & IBV_SEND_INLINE ? NOTHING : wrong;
	case REMOTE_KEY:
	case REMOTE_RANGE:
		/* UC and UD drop what is wrong and nobody is told */
		return s->type == RC && !is_send(w) ? wrong : NOTHING;
	case MISALIGNED:
		return w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? wrong :
								  NOTHING;
	case RECV_SHORT:
		return s->type == RC && is_send(w) ? wrong : NOTHING;
	default:
		/* an immediate alone looks at no list */
		return is_send(w) ? wrong : NOTHING;
	}
}

static void make_recv(struct seq *s, unsigned int side, const struct wr *w)
{
	struct recv *r = &s->recv[side][s->recvs[side]++];
	uint32_t len = is_send(w) ? w->len : 0;

	if (s->type == UD)
		len += GRH;
	if (w->wrong == RECV_SHORT)
		len = below(len);
	else if (one_in(2))
		len += below(5000);
	if (len > LONGEST)
		len = LONGEST;
	if (w->wrong == RECV_SHORT && len >= w->len)
		len = w->len - 1;
	r->list = some_list(len);
	r->spoilt = w->wrong == RECV_SHORT || w->wrong == RECV_KEY;
	r->bad_key = w->wrong == RECV_KEY;
	/* the first: it is needed, however long the message is */
	r->bad = 0;
}

static bool needs_fence(const struct wr *w, unsigned int side)
{
	unsigned int i;

	for (i = 0; i < w->list.n; i++)
		if (is_in_hand(side, w->list.piece[i].off, w->list.piece[i].len))
			return true;
	return !is_send(w) && !is_local(w) && is_in_hand(!side, w->roff, w->len);
}

static void note_in_hand(const struct wr *w, unsigned int side)
{
	unsigned int i;

	if (w->flags & IBV_SEND_FENCE)
		in_hands[0] = in_hands[1] = 0;
	if (!fetches(w))
		return;
	for (i = 0; i < w->list.n; i++)
		take_in_hand(side, w->list.piece[i].off, w->list.piece[i].len);
	take_in_hand(!side, w->roff, w->len);
}

/* What becomes of the windows; and some requests go through the peer's. */
static void make_window(struct wr *w, unsigned int side)
{
	struct piece *mine = &windows[side], *theirs = &windows[!side];

	switch (w->opcode) {
	case IBV_WR_BIND_MW:
		w->roff = below(AREA / 2);
		w->len = AREA / 2;
		*mine = (struct piece){ w->roff, w->len };
		break;
	case IBV_WR_LOCAL_INV:
		mine->len = 0;
		break;
	case IBV_WR_SEND_WITH_INV:
		theirs->len = 0;
		break;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
		if (theirs->len < w->len || one_in(2))
			break;
		w->window = true;
		w->roff = theirs->off + below(theirs->len - w->len + 1);
		break;
	}
}

static void make_wr(struct seq *s, struct wr *w, unsigned int side, bool last)
{
	bool fail = last && s->fails;

	w->opcode = some_opcode(s, last, side);
	if (fail && (is_local(w) || w->opcode == IBV_WR_SEND_WITH_INV))
		w->opcode = IBV_WR_SEND;
	w->imm = rnd();
	w->operand = rnd();
	w->match = one_in(2);
	if (!is_local(w))
		w->len = some_length(s);
	if (fail && w->len < 16)
		w->len = 16 + below(100);
	if (is_atomic(w) || w->opcode == IBV_WR_ATOMIC_WRITE)
		w->len = 8;
	w->roff = below(AREA - w->len + 1);
	if (w->len == 8)
		w->roff &= ~7u;
	if (w->opcode != IBV_WR_ATOMIC_WRITE)
		w->list = some_list(w->len);
	if (is_atomic(w)) {
		w->list.n = 1;
		w->list.piece[0] = (struct piece){ below(AREA - 8), 8 };
	}
	make_window(w, side);
	if (last || one_in(2))
		w->flags |= IBV_SEND_SIGNALED;
	if (consumes(w) && one_in(4))
		w->flags |= IBV_SEND_SOLICITED;
	if (!fail && !fetches(w) && !is_local(w) && w->len <= INLINE &&
	    one_in(2) && w->opcode != IBV_WR_ATOMIC_WRITE)
		w->flags |= IBV_SEND_INLINE;
	if (s->type == RC && (one_in(8) || needs_fence(w, side)))
		w->flags |= IBV_SEND_FENCE;
	while (fail && !w->wrong)
		w->wrong = some_wrong(s, w);
	w->bad = below(w->list.n);
	if (w->wrong == REMOTE_RANGE && !w->window)
		w->roff = AREA - w->len / 2 / 8 * 8;
	else if (w->wrong == REMOTE_RANGE)
		w->roff = windows[!side].off + windows[!side].len - w->len + 1;
	if (w->wrong == MISALIGNED)
		w->roff += 1 + below(7);
	note_in_hand(w, side);
}

static void make_burst(struct seq *s, struct burst *b, bool last)
{
	unsigned int i;

	b->side = below(2);
	b->chained = one_in(2);
	b->n = 1 + below(WRS);
	b->first = s->recvs[!b->side];
	in_hands[0] = in_hands[1] = 0;
	for (i = 0; i < b->n; i++) {
		struct wr *w = &b->wr[i];
		bool end = i + 1 == b->n, failed;

		/* a fault is only in the very last one */
		if (end && !last) {
			failed = s->fails;
			s->fails = false;
			make_wr(s, w, b->side, true);
			s->fails = failed;
		} else {
			make_wr(s, w, b->side, end);
		}
		if (s->sig_all || w->flags & IBV_SEND_SIGNALED || w->wrong)
			b->cqes++;
		if (!consumes(w) || w->wrong == LOCAL_KEY ||
		    w->wrong == LOCAL_RANGE || w->wrong == REMOTE_KEY ||
		    w->wrong == REMOTE_RANGE)
			continue;
		make_recv(s, !b->side, w);
		b->recvs++;
		b->solicited |= w->flags & IBV_SEND_SOLICITED || w->wrong;
	}
}

static void make_seq(struct seq *s, enum ibv_qp_type type, uint64_t seed)
{
	unsigned int i, j;

	memset(s, 0, sizeof(*s));
	memset(windows, 0, sizeof(windows));
	state = seed;
	s->seed = seed;
	s->type = type;
	s->mtu = one_in(2) ? port_mtu : IBV_MTU_256 + below(port_mtu);
	s->srq = one_in(3);
	s->sig_all = one_in(4);
	s->fails = one_in(3);
	s->bursts = 1 + below(BURSTS);
	for (i = 0; i < s->bursts; i++)
		make_burst(s, &s->burst[i], i + 1 == s->bursts);
	/* some that nobody asks for: they are flushed */
	for (i = 0; i < 2; i++)
		for (j = below(4); j && s->recvs[i] < RECVS; j--)
			s->recv[i][s->recvs[i]++].list = some_list(below(100));
}

/* --- running it ----------------------------------------------------------- */

static void side_open(struct side *x, const char *name)
{
	char file[80];

	x->c = ctx_open(name);
	x->buf = buf_new(x->c->pd, AREA, MR_ALL);
	snprintf(file, sizeof(file), "/sys/class/infiniband/%s/path",
		 ibv_get_device_name(x->c->ibv->device));
	x->path_fd = open(file, O_WRONLY);
	CHECK(x->path_fd >= 0);
}

static void side_close(struct side *x)
{
	close(x->path_fd);
	buf_free(&x->buf);
	ctx_close(x->c);
}

static void side_start(struct side *x, const struct seq *s, const char *path)
{
	struct ibv_srq_init_attr srq = {
		.attr = { .max_wr = RECVS, .max_sge = PIECES },
	};
	struct conf conf = conf_of(s->type);

	CHECK(pwrite(x->path_fd, path, strlen(path), 0) > 0);
	x->channel = ibv_create_comp_channel(x->c->ibv);
	CHECK(x->channel);
	x->srq = s->srq ? ibv_create_srq(x->c->pd, &srq) : NULL;
	CHECK(x->srq || !s->srq);
	x->c->mtu = s->mtu;
	conf.cap.max_inline_data = INLINE;
	conf.srq = x->srq;
	conf.sig_all = s->sig_all;
	conf.channel = x->channel;
	/* a busy machine is slow, which is no loss: 1 s */
	conf.timeout = 18;
	conf.retry_cnt = 7;
	conf.ex = s->type == RC;
	x->e = end_new(x->c, &conf);
	x->mw = NULL;
	if (s->type == RC) {
		x->mw = ibv_alloc_mw(x->c->pd, IBV_MW_TYPE_2);
		CHECK(x->mw);
		x->window_key = x->mw->rkey;
	}
}

static void side_end(struct side *x)
{
	end_free(&x->e);
	if (x->mw)
		OK(ibv_dealloc_mw(x->mw));
	if (x->srq)
		OK(ibv_destroy_srq(x->srq));
	OK(ibv_destroy_comp_channel(x->channel));
}

static unsigned int sges_of(const struct side *x, const struct list *l,
			    struct ibv_sge *sge)
{
	unsigned int i;

	for (i = 0; i < l->n; i++)
		sge[i] = (struct ibv_sge){
			.addr = (uintptr_t)x->buf.p + l->piece[i].off,
			.length = l->piece[i].len,
			.lkey = x->buf.mr->lkey,
		};
	return l->n;
}

static void post_recvs(struct side *x, const struct seq *s, unsigned int side)
{
	unsigned int i;

	for (i = 0; i < s->recvs[side]; i++) {
		const struct recv *r = &s->recv[side][i];
		struct ibv_sge sge[PIECES];
		struct ibv_recv_wr *bad, wr = {
			.wr_id = i,
			.sg_list = sge,
			.num_sge = sges_of(x, &r->list, sge),
		};

		if (r->bad_key)
			sge[r->bad].lkey ^= WRONG;
		if (x->srq)
			OK(ibv_post_srq_recv(x->srq, &wr, &bad));
		else
			OK(ibv_post_recv(x->e.qp, &wr, &bad));
	}
}

static void fill_wr(struct side *x, struct side *peer, const struct wr *w,
		    struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	uint32_t rkey = w->window ? peer->window_key : peer->buf.mr->rkey;
	uint64_t raddr = (uintptr_t)peer->buf.p + w->roff, there = 0;

	if (w->wrong == REMOTE_KEY)
		rkey ^= WRONG;
	if (w->wrong == LOCAL_KEY)
		sge[w->bad].lkey ^= WRONG;
	if (w->wrong == LOCAL_RANGE)
		sge[w->bad].addr = (uintptr_t)x->buf.p + AREA -
				   sge[w->bad].length + 1;
	switch (w->opcode) {
	case IBV_WR_BIND_MW:
		x->window_key = ibv_inc_rkey(x->window_key);
		wr->num_sge = 0;
		wr->bind_mw.mw = x->mw;
		wr->bind_mw.rkey = x->window_key;
		wr->bind_mw.bind_info = (struct ibv_mw_bind_info){
			.mr = x->buf.mr,
			.addr = (uintptr_t)x->buf.p + w->roff,
			.length = w->len,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_READ,
		};
		return;
	case IBV_WR_LOCAL_INV:
		wr->invalidate_rkey = x->window_key;
		return;
	case IBV_WR_SEND_WITH_INV:
		wr->invalidate_rkey = peer->window_key;
		return;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		if (w->match && w->roff + 8 <= AREA)
			memcpy(&there, peer->buf.p + w->roff, 8);
		wr->wr.atomic.remote_addr = raddr;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add = w->match ? there : w->operand;
		wr->wr.atomic.swap = w->operand;
		return;
	default:
		wr->imm_data = w->imm;
	}
	if (x->e.conf.type == UD) {
		wr->wr.ud.ah = x->e.ah;
		wr->wr.ud.remote_qpn = x->e.peer_qpn;
		wr->wr.ud.remote_qkey = UD_QKEY;
	} else {
		wr->wr.rdma.remote_addr = raddr;
		wr->wr.rdma.rkey = rkey;
	}
}

/* What ibv_post_send() of librxe does not have, or refuses by itself. */
static bool is_ex(const struct wr *w)
{
	return w->opcode == IBV_WR_ATOMIC_WRITE || w->wrong == MISALIGNED;
}

static void post_ex(struct side *x, const struct side *peer,
		    const struct wr *w, uint64_t wr_id)
{
	uint64_t raddr = (uintptr_t)peer->buf.p + w->roff;
	uint32_t rkey = peer->buf.mr->rkey;
	struct ibv_qp_ex *qp = x->e.qpx;

	if (w->wrong == REMOTE_KEY)
		rkey ^= WRONG;

	ibv_wr_start(qp);
	qp->wr_id = wr_id;
	qp->wr_flags = w->flags;
	if (w->opcode == IBV_WR_ATOMIC_WRITE) {
		ibv_wr_atomic_write(qp, rkey, raddr, &w->operand);
	} else {
		ibv_wr_atomic_fetch_add(qp, rkey, raddr, w->operand);
		ibv_wr_set_sge(qp, x->buf.mr->lkey,
			       (uintptr_t)x->buf.p + w->list.piece[0].off, 8);
	}
	OK(ibv_wr_complete(qp));
}

static void post_burst(struct side *x, struct side *peer, const struct seq *s,
		       unsigned int n)
{
	const struct burst *b = &s->burst[n];
	struct ibv_sge sge[WRS][PIECES];
	struct ibv_send_wr wr[WRS], *bad, *first = NULL, *last = NULL;
	unsigned int i;

	/* first of all: what the memory holds before may be an operand */
	for (i = 0; i < b->n; i++) {
		const struct wr *w = &b->wr[i];

		wr[i] = (struct ibv_send_wr){
			.wr_id = n << 8 | i,
			.opcode = w->opcode,
			.send_flags = w->flags,
			.sg_list = sge[i],
			.num_sge = sges_of(x, &w->list, sge[i]),
		};
		fill_wr(x, peer, w, &wr[i], sge[i]);
	}
	for (i = 0; i < b->n; i++) {
		const struct wr *w = &b->wr[i];
		bool bind = w->opcode == IBV_WR_BIND_MW;

		if (first && (is_ex(w) || bind || !b->chained)) {
			OK(ibv_post_send(x->e.qp, first, &bad));
			first = NULL;
		}
		if (is_ex(w)) {
			post_ex(x, peer, w, n << 8 | i);
			continue;
		}
		if (first)
			last->next = &wr[i];
		else
			first = &wr[i];
		last = &wr[i];
		/* librxe takes the old key from the window when it posts */
		if (bind) {
			OK(ibv_post_send(x->e.qp, first, &bad));
			x->mw->rkey = wr[i].bind_mw.rkey;
			first = NULL;
		}
	}
	if (first)
		OK(ibv_post_send(x->e.qp, first, &bad));
}

static void record(struct side *x, const struct side *peer, struct done *d,
		   const struct ibv_wc *wc)
{
	*d = (struct done){
		.wr_id = wc->wr_id,
		.status = wc->status,
		.reason = wc->vendor_err,
		.named = wc->qp_num == x->e.qp->qp_num,
	};
	/* of a failure nothing else is said */
	if (wc->status)
		return;
	d->opcode = wc->opcode;
	d->byte_len = wc->byte_len;
	d->flags = wc->wc_flags;
	if (wc->wc_flags & IBV_WC_WITH_INV)
		d->imm = wc->invalidated_rkey == x->window_key;
	else if (wc->wc_flags & IBV_WC_WITH_IMM)
		d->imm = wc->imm_data;
	if (x->e.conf.type == UD && wc->opcode & IBV_WC_RECV)
		d->named &= wc->src_qp == peer->e.qp->qp_num;
}

static void tell_failures(const struct result *r)
{
	unsigned int i, j;

	for (i = 0; i < 4; i++) {
		for (j = 0; j < r->dones[i / 2][i % 2]; j++) {
			const struct done *d = &r->done[i / 2][i % 2][j];

			if (d->status)
				t_note("side %u: %s %llx: %s, reason %u", i / 2,
				       i % 2 ? "receive" : "send",
				       (unsigned long long)d->wr_id,
				       ibv_wc_status_str(d->status), d->reason);
		}
	}
}

/* Until @n completions of this queue are there. */
static void collect(struct side *x, const struct side *peer, struct result *r,
		    unsigned int side, bool recv, unsigned int n,
		    const struct seq *s)
{
	unsigned int *got = &r->dones[side][recv];
	struct ibv_cq *cq = recv ? x->e.rcq : x->e.scq;
	struct ibv_wc wc;

	while (*got < n) {
		if (!wait_wc(cq, &wc, t_patience())) {
			tell_failures(r);
			t_fail(__FILE__, __LINE__,
			       "seed %#llx: side %u has %u of %u completions of %s",
			       (unsigned long long)s->seed, side, *got, n,
			       recv ? "receives" : "sends");
		}
		record(x, peer, &r->done[side][recv][(*got)++], &wc);
	}
}

static void clear_piece(struct side *x, const struct list *l, uint32_t from,
			uint32_t to)
{
	uint32_t at = 0;
	unsigned int i;

	for (i = 0; i < l->n; i++) {
		uint32_t len = l->piece[i].len;
		uint32_t a = from > at ? from - at : 0;
		uint32_t b = to > at ? to - at : 0;

		b = b < len ? b : len;
		if (a < b)
			memset(x->buf.p + l->piece[i].off + a, 0, b - a);
		at += len;
	}
}

/* What may differ does not matter, and must not get anywhere else. */
static void clear_open(struct side *x, const struct seq *s,
		       const struct burst *b)
{
	unsigned int i;

	for (i = b->first; i < b->first + b->recvs; i++) {
		const struct recv *r = &s->recv[!b->side][i];

		if (r->spoilt)
			clear_piece(x, &r->list, 0, AREA);
		else if (s->type == UD)
			/* all but the two addresses of IPv4 */
			clear_piece(x, &r->list, 0, GRH - 8);
	}
}

static bool woken(struct side *x, bool expected)
{
	struct pollfd pfd = { .fd = x->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&pfd, 1, expected ? t_patience() : 0) != 1)
		return false;
	OK(ibv_get_cq_event(x->channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	return true;
}

static void run(struct side *x, const struct seq *s, const char *path,
		struct result *r)
{
	unsigned int i, got[2] = {};
	struct ibv_wc wc;

	memset(r->dones, 0, sizeof(r->dones));
	for (i = 0; i < 2; i++) {
		fill(x[i].buf.p, AREA, s->seed + i);
		side_start(&x[i], s, path);
	}
	x[1].e.conf.psn ^= 0xfff;
	pair_connect(&x[0].e, &x[1].e);
	for (i = 0; i < 2; i++)
		post_recvs(&x[i], s, i);
	for (i = 0; i < s->bursts; i++) {
		const struct burst *b = &s->burst[i];
		struct side *from = &x[b->side], *to = &x[!b->side];

		OK(ibv_req_notify_cq(to->e.rcq, 1));
		post_burst(from, to, s, i);
		got[!b->side] += b->recvs;
		collect(from, to, r, b->side, false,
			r->dones[b->side][0] + b->cqes, s);
		collect(to, from, r, !b->side, true, got[!b->side], s);
		/* a QP that fails flushes its receives, sooner or later */
		if (!(s->fails && i + 1 == s->bursts) &&
		    woken(to, b->solicited) != b->solicited)
			t_fail(__FILE__, __LINE__, "seed %#llx: burst %u %s",
			       (unsigned long long)s->seed, i, b->solicited ?
			       "wakes nobody" : "wakes for nothing");
		clear_open(to, s, b);
	}
	/* the rest of the receives, but for those of an SRQ */
	for (i = 0; i < 2; i++)
		OK(end_to(&x[i].e, IBV_QPS_ERR));
	for (i = 0; i < 2; i++) {
		collect(&x[i], &x[!i], r, i, true,
			s->srq ? got[i] : s->recvs[i], s);
		CHECK_EQ(ibv_poll_cq(x[i].e.scq, 1, &wc), 0);
		CHECK_EQ(ibv_poll_cq(x[i].e.rcq, 1, &wc), 0);
		memcpy(r->mem[i], x[i].buf.p, AREA);
	}
	for (i = 0; i < 2; i++)
		side_end(&x[i]);
}

/* --- comparing ------------------------------------------------------------ */

static void tell_list(const struct list *l)
{
	unsigned int i;

	for (i = 0; i < l->n; i++)
		t_note("      %#x + %u", l->piece[i].off, l->piece[i].len);
}

static void tell(const struct seq *s)
{
	unsigned int i, j;

	t_note("seed %#llx: %s mtu %u%s%s", (unsigned long long)s->seed,
	       s->type == RC ? "RC" : s->type == UC ? "UC" : "UD",
	       128u << s->mtu, s->srq ? " srq" : "", s->sig_all ? " all" : "");
	for (i = 0; i < s->bursts; i++) {
		const struct burst *b = &s->burst[i];

		for (j = 0; j < b->n; j++) {
			const struct wr *w = &b->wr[j];

			t_note("  %x: side %u opcode %d len %u roff %#x flags %#x wrong %d at %u",
			       i << 8 | j, b->side, w->opcode, w->len, w->roff,
			       w->flags, w->wrong, w->bad);
			tell_list(&w->list);
		}
	}
	for (i = 0; i < 2; i++) {
		for (j = 0; j < s->recvs[i]; j++) {
			t_note("  side %u receive %u%s", i, j,
			       s->recv[i][j].bad_key ? " bad key" : "");
			tell_list(&s->recv[i][j].list);
		}
	}
}

/*
 * A NAK has no room for a reason (IBA 9.7.5.2): a requester that was refused by its
 * peer knows the status only.
 */
static bool same_reason(const struct done *copy, const struct done *packet)
{
	switch (copy->status) {
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
		return packet->reason == MRSOFT_R_PEER_REFUSED;
	default:
		return copy->reason == packet->reason;
	}
}

static void compare_done(const struct seq *s, const struct result *copy,
			 const struct result *packet, unsigned int side,
			 bool recv)
{
	unsigned int i;

	CHECK_EQ(copy->dones[side][recv], packet->dones[side][recv]);
	for (i = 0; i < copy->dones[side][recv]; i++) {
		const struct done *a = &copy->done[side][recv][i];
		const struct done *b = &packet->done[side][recv][i];

		if (a->wr_id == b->wr_id && a->status == b->status &&
		    a->opcode == b->opcode && a->byte_len == b->byte_len &&
		    a->imm == b->imm && a->flags == b->flags && a->named &&
		    b->named && same_reason(a, b))
			continue;
		tell(s);
		t_fail(__FILE__, __LINE__,
		       "%s %u of side %u: copy %llx %u %u %d %u %x %x, wire %llx %u %u %d %u %x %x",
		       recv ? "receive" : "send", i, side,
		       (unsigned long long)a->wr_id, a->status, a->reason,
		       a->opcode, a->byte_len, a->flags, a->imm,
		       (unsigned long long)b->wr_id, b->status, b->reason,
		       b->opcode, b->byte_len, b->flags, b->imm);
	}
}

/* All is well but what was made to fail, which does. */
static void check_status(const struct seq *s, const struct result *r)
{
	const struct burst *last = &s->burst[s->bursts - 1];
	unsigned int side, i;

	for (side = 0; side < 2; side++) {
		for (i = 0; i < r->dones[side][0]; i++) {
			const struct done *d = &r->done[side][0][i];
			bool end = d->wr_id == ((s->bursts - 1) << 8 |
						(last->n - 1));

			if (!d->status == !(end && s->fails &&
					    (s->type == RC ||
					     last->wr[last->n - 1].wrong !=
					     RECV_KEY)))
				continue;
			tell(s);
			t_fail(__FILE__, __LINE__, "send %llx: %s",
			       (unsigned long long)d->wr_id,
			       ibv_wc_status_str(d->status));
		}
	}
}

static void compare(const struct seq *s, const struct result *copy,
		    const struct result *packet)
{
	unsigned int side, i;

	for (side = 0; side < 2; side++) {
		compare_done(s, copy, packet, side, false);
		compare_done(s, copy, packet, side, true);
		if (!memcmp(copy->mem[side], packet->mem[side], AREA))
			continue;
		for (i = 0; copy->mem[side][i] == packet->mem[side][i]; i++)
			;
		tell(s);
		t_fail(__FILE__, __LINE__,
		       "memory of side %u differs at %#x: %#x by copy, %#x by packet",
		       side, i, copy->mem[side][i], packet->mem[side][i]);
	}
}

/* --- cases ---------------------------------------------------------------- */

static void both(const void *arg)
{
	enum ibv_qp_type type = *(const enum ibv_qp_type *)arg;
	unsigned int rounds = t_rounds(200), i, j, failing = 0;
	struct result *r = calloc(2, sizeof(*r));
	struct seq *s = malloc(sizeof(*s));
	struct side x[2];

	CHECK(r && s);
	side_open(&x[0], NULL);
	side_open(&x[1], ctx_second());
	port_mtu = x[0].c->mtu;
	for (i = 0; i < 2; i++)
		for (j = 0; j < 2; j++)
			r[i].mem[j] = pages(AREA);
	t_note("seed %#llx and %u that follow", (unsigned long long)base,
	       rounds - 1);
	for (i = 0; i < rounds; i++) {
		make_seq(s, type, only_this ? only_this : base + i);
		failing += s->fails;
		if (only_this)
			tell(s);
		run(x, s, "local", &r[0]);
		check_status(s, &r[0]);
		run(x, s, "wire", &r[1]);
		compare(s, &r[0], &r[1]);
		if (only_this)
			break;
	}
	t_note("%u of them end with a failure", failing);
	for (i = 0; i < 2; i++) {
		CHECK(pwrite(x[i].path_fd, "auto", 4, 0) > 0);
		side_close(&x[i]);
	}
}

static const enum ibv_qp_type rc = RC, uc = UC, ud = UD;

static const struct t_case cases[] = {
	{ "rc", both, &rc, 60 },
	{ "uc", both, &uc, 60 },
	{ "ud", both, &ud, 60 },
};

int main(int argc, char **argv)
{
	const char *given = getenv("MRSOFT_SEED");

	base = given ? strtoull(given, NULL, 0) : 4711;
	if (argc > 1 && isdigit(argv[1][0])) {
		only_this = strtoull(argv[1], NULL, 0);
		argc--;
		argv++;
	}
	return t_main(argc, argv, cases, ARRAY_SIZE(cases));
}
