/* SPDX-License-Identifier: GPL-2.0 */
/*
 * inject.h - faults that somebody asked for: rules, and whose turn it is
 *
 * Layer 1: all above may be asked to fail.
 */
#ifndef MRSOFT_INJECT_H
#define MRSOFT_INJECT_H

#include <linux/prandom.h>

#include "status.h"

/* Rules of a device, and bytes of one as text, with the end. */
#define MRSOFT_MAX_RULES	32u
#define MRSOFT_RULE_TEXT	160u

/* The longest that a rule holds a call or a packet, and a packet that is overtaken. */
#define MRSOFT_INJECT_MAX_MS	10000u
#define MRSOFT_REORDER_MS	20u

/**
 * enum mrsoft_event - what a rule can count
 * @MRSOFT_ON_REG: a region is registered or allocated
 * @MRSOFT_ON_REREG: it is changed
 * @MRSOFT_ON_DEREG: it is deregistered, and may be refused
 * @MRSOFT_ON_PACKET: a packet leaves a QP, or has come for it
 * @MRSOFT_ON_REQUEST: the responder of an RC QP begins a message
 * @MRSOFT_ON_COMPLETION: a completion is added to a CQ
 */
enum mrsoft_event {
	MRSOFT_ON_REG,
	MRSOFT_ON_REREG,
	MRSOFT_ON_DEREG,
	MRSOFT_ON_PACKET,
	MRSOFT_ON_REQUEST,
	MRSOFT_ON_COMPLETION,
};

enum mrsoft_action {
	MRSOFT_DO_FAIL_REG,
	MRSOFT_DO_FAIL_REREG,
	MRSOFT_DO_FAIL_DEREG,
	MRSOFT_DO_HOLD_DEREG,
	MRSOFT_DO_DROP,
	MRSOFT_DO_DUPLICATE,
	MRSOFT_DO_REORDER,
	MRSOFT_DO_CORRUPT,
	MRSOFT_DO_DELAY,
	MRSOFT_DO_RNR,
	MRSOFT_DO_NAK,
	MRSOFT_DO_OVERFLOW,
	MRSOFT_DO_ERROR,
	MRSOFT_DO_COUNT
};

enum mrsoft_nak_code {
	MRSOFT_CODE_NONE,
	MRSOFT_CODE_SEQUENCE,
	MRSOFT_CODE_INVALID,
	MRSOFT_CODE_ACCESS,
	MRSOFT_CODE_OP,
	MRSOFT_CODE_COUNT
};

/**
 * struct mrsoft_rule - a rule, as it was written
 * @id: its number, from 1 on; 0: not added yet
 * @action: enum mrsoft_action
 * @given: which of the following were given
 * @qp: only events of this QP
 * @cq: only completions of this CQ, its number of rdma resource
 * @key: only this region
 * @nth: the first event that it strikes
 * @every: it strikes each event whose number this divides
 * @chance: it strikes so many
 * @of: of so many events, by chance
 * @seed: of the chance
 * @count: how often it strikes at most, 0: no end
 * @err: errno, positive
 * @code: enum mrsoft_nak_code
 * @rnr: timer code
 * @ms: milliseconds
 * @rx: packets that come, not those that leave
 */
struct mrsoft_rule {
	u32 id;
	u32 action;
	u32 given;
	u32 qp;
	u32 cq;
	u32 key;
	u32 nth;
	u32 every;
	u32 chance;
	u32 of;
	u64 seed;
	u32 count;
	u32 err;
	u32 code;
	u32 rnr;
	u32 ms;
	u32 rx;
};

/**
 * struct mrsoft_rule_state - a rule and what became of it
 * @rule: I
 * @seen: events that it counted
 * @hits: of them struck
 * @random: of its chance
 */
struct mrsoft_rule_state {
	struct mrsoft_rule rule;
	u64 seen;
	u64 hits;
	struct rnd_state random;
};

/**
 * struct mrsoft_occasion - an event
 * @event: what
 * @qpn: whose it is, 0: no QP's
 * @cq: COMPLETION
 * @key: REREG, DEREG
 * @rx: PACKET: it has come
 */
struct mrsoft_occasion {
	enum mrsoft_event event;
	u32 qpn;
	u32 cq;
	u32 key;
	bool rx;
};

/**
 * struct mrsoft_injection - what is to be done
 * @action: what
 * @op: its name, a constant without spaces
 * @err: FAIL: errno, positive
 * @code: NAK
 * @rnr: RNR: timer code, negative: that of the QP
 * @ms: HOLD, DELAY
 * @clears: for mrsoft_inject_hold()
 */
struct mrsoft_injection {
	enum mrsoft_action action;
	const char *op;
	int err;
	enum mrsoft_nak_code code;
	int rnr;
	u32 ms;
	u32 clears;
};

/* Text to rule and back; pure. */
int mrsoft_inject_parse(const char *text, struct mrsoft_rule *rule);
void mrsoft_inject_format(const struct mrsoft_rule *rule, char *text,
			  size_t size);
bool mrsoft_inject_is_now(const struct mrsoft_rule *rule);

struct mrsoft_inject *mrsoft_inject_new(void);
void mrsoft_inject_free(struct mrsoft_stats *stats);
int mrsoft_inject_add(struct mrsoft_stats *stats,
		      const struct mrsoft_rule *rule);
int mrsoft_inject_clear(struct mrsoft_stats *stats, u32 id);
bool mrsoft_inject_read(struct mrsoft_stats *stats, u32 index,
			struct mrsoft_rule_state *state);
void mrsoft_inject_hold(struct mrsoft_stats *stats,
			const struct mrsoft_injection *in);

bool mrsoft_inject_match(struct mrsoft_stats *stats,
			 const struct mrsoft_occasion *now,
			 struct mrsoft_injection *in);

/* Has the device any rule?  One load; a stale value is as an event a moment ago. */
static inline bool mrsoft_inject_on(const struct mrsoft_stats *stats)
{
	return unlikely(READ_ONCE(stats->injecting));
}

/**
 * mrsoft_inject - is something to be done on this occasion
 * @stats: the device's counters, which know its rules
 * @now: the event
 * @in: what, when true
 *
 * Who does it writes the diary, with MRSOFT_R_INJECTED and @in->op.
 *
 * Context: any.
 */
static inline bool mrsoft_inject(struct mrsoft_stats *stats,
				 const struct mrsoft_occasion *now,
				 struct mrsoft_injection *in)
{
	return mrsoft_inject_on(stats) && mrsoft_inject_match(stats, now, in);
}

#endif /* MRSOFT_INJECT_H */
