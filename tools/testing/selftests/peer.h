/* SPDX-License-Identifier: GPL-2.0 */
/*
 * peer.h - a peer made of a packet socket: its packets, its QP, what it hears
 *
 * The other end of the netdev's veth pair is MRSOFT_TAP.  MACs and addresses are
 * those of suites/packets.sh.  A peer speaks to one QP of the device.
 */
#ifndef MRSOFT_SELFTESTS_PEER_H
#define MRSOFT_SELFTESTS_PEER_H

#include "lib.h"

#define MTU 1024u
#define SIZE (64 * KiB)
#define PEER_QPN 0x4711u

/* BTH: IBA 9.2 */
#define SEND_ONLY 0x04
#define WRITE_ONLY 0x0a
#define READ_REQUEST 0x0c
#define ACKNOWLEDGE 0x11
#define ATOMIC_ACKNOWLEDGE 0x12
#define FETCH_ADD 0x14
#define FLUSH 0x1c
#define ATOMIC_WRITE 0x1d
#define UD_SEND_ONLY 0x64
#define ACK_REQ 0x80000000u

/* NAK codes: IBA table 45 */
#define NAK_PSN 0
#define NAK_INV_REQ 1
#define NAK_ACCESS 2
#define NAK_OP 3

struct kind {
	enum ibv_qp_type type;
	bool ipv6;
};

/**
 * struct peer - a QP of the device and who pretends to be its peer
 * @k: what it is
 * @c: the device, opened
 * @e: the QP
 * @buf: region that the peer may do everything with
 * @can_flush: FLUSH as well, where the kernel knows it
 * @scratch: of works()
 * @sock: packet socket
 * @psn: next PSN that the QP expects
 * @sq_psn: next PSN of the QP's own requests
 * @posted: send WRs, kept by the test
 * @received: receive WRs, kept by the test
 * @now: for the report, what is being done
 */
struct peer {
	const struct kind *k;
	struct ctx *c;
	struct end e;
	struct buf buf, scratch;
	bool can_flush;
	int sock;
	uint32_t psn, sq_psn;
	int posted, received;
	const char *now;
};

struct peer *peer_new(const struct kind *k);
/* RESET, and to RTS again. */
void peer_again(struct peer *p);
void peer_free(struct peer *p);

/* What stands in front of a received payload. */
static inline uint32_t GRH(const struct peer *p)
{
	return p->k->type == UD ? 40 : 0;
}

static inline uint32_t psn_add(uint32_t psn, int32_t n)
{
	return (psn + n) & 0xffffff;
}

static inline uint32_t next_psn(uint32_t psn)
{
	return psn_add(psn, 1);
}

/* The service's bits of an opcode. */
static inline uint8_t service(const struct peer *p)
{
	return p->k->type == RC ? 0 : p->k->type == UC ? 0x20 : 0x60;
}

/* --- packets -------------------------------------------------------------- */

#define FRAME_MAX 6000

/* From the Ethernet header to the ICRC; offsets of the headers. */
struct frame {
	uint8_t b[FRAME_MAX];
	size_t len, net, udp, bth;
	bool ipv6;
};

void put16(uint8_t *to, uint16_t v);
void put32(uint8_t *to, uint32_t v);
uint32_t get32(const uint8_t *from);
void put_reth(uint8_t *to, uint64_t va, uint32_t rkey, uint32_t len);
/* FLUSH: @type and @level as they stand in the FETH. */
void put_flush(uint8_t *to, uint8_t type, uint8_t level, uint64_t va,
	       uint32_t rkey, uint32_t len);
void put_atomic(uint8_t *to, uint64_t va, uint32_t rkey, uint64_t swap_add,
		uint64_t compare);
/*
 * The headers that @opcode has behind the BTH, bits of the service aside; returns
 * their length.
 */
size_t ext_of(const struct peer *p, uint8_t *ext, uint8_t opcode, uint64_t va,
	      uint32_t rkey, uint32_t len);

/* A good packet.  @psn may have ACK_REQ. */
void frame(const struct peer *p, struct frame *f, uint8_t opcode, uint32_t psn,
	   const void *ext, size_t n, const void *payload, size_t len);
/* A SEND ONLY that the QP takes next. */
void frame_of_send(const struct peer *p, struct frame *f, const void *payload,
		   size_t len);
/* Lengths and sums anew: of IP only; the ICRC of a packet of @len; all. */
void seal_ip(struct frame *f);
void put_icrc(struct frame *f, size_t len);
void seal(struct frame *f);
void frame_send(const struct peer *p, const struct frame *f);
void say(const struct peer *p, uint8_t opcode, uint32_t psn, const void *ext,
	 size_t n, const void *payload, size_t len);
/* AETH and more behind it, to any PSN. */
void say_answer(struct peer *p, uint8_t opcode, uint32_t psn,
		uint8_t syndrome, const void *bytes, size_t n);
/* frame_of_send(), and the PSN is used up. */
void say_send(struct peer *p, const void *payload, size_t len);

/* --- what comes back ------------------------------------------------------ */

struct answer {
	uint8_t opcode, syndrome;
	uint32_t psn, msn;
	uint64_t old;
	size_t length;
	uint8_t payload[FRAME_MAX];
};

/* Any packet of the device.  False: none within @ms. */
bool hear(struct peer *p, struct answer *a, unsigned int ms);
/* The next that is no request. */
struct answer next_answer(struct peer *p);
void expect_request(struct peer *p, uint8_t opcode, uint32_t psn);
void expect_ack(struct peer *p, uint32_t psn);
/* An ACK or NAK with this PSN and syndrome. */
void expect_aeth(struct peer *p, uint32_t psn, uint8_t syndrome);
/* NAK, QP in error, @event unless 0. */
void expect_nak(struct peer *p, uint32_t psn, uint8_t code,
		enum ibv_event_type event);
/* No answer has come so far. */
void expect_silence(struct peer *p, const char *what);

/* The QP takes a SEND, and an RC one acknowledges it. */
void works(struct peer *p);
/* The QP sends, the peer answers. */
void sends(struct peer *p);

/* --- counters of refusals ------------------------------------------------- */

struct counts {
	uint64_t v[MRSOFT_R_COUNT];
};

void read_counts(struct counts *c);
/* @reason, unless NONE, was counted once since @before, and no other but flushes. */
void expect_counts(const struct counts *before, enum mrsoft_reason reason,
		   const char *what);

#endif /* MRSOFT_SELFTESTS_PEER_H */
