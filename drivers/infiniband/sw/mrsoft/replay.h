/* SPDX-License-Identifier: GPL-2.0 */
/*
 * replay.h - results of READ and ATOMIC that may be asked for again
 *
 * Layer 5.
 */
#ifndef MRSOFT_REPLAY_H
#define MRSOFT_REPLAY_H

#include <linux/types.h>

#include "limits.h"

/**
 * struct mrsoft_result - one request with a result that was executed
 * @psn: first PSN of its answer
 * @packets: of its answer; 0: no result is here
 * @kind: enum mrsoft_packet_kind of the request
 * @rkey: READ
 * @raddr: READ
 * @length: READ, bytes
 * @old: ATOMIC, the value before
 */
struct mrsoft_result {
	u32 psn;
	u32 packets;
	u8 kind;
	u32 rkey;
	u64 raddr;
	u32 length;
	u64 old;
};

/**
 * struct mrsoft_replay - the youngest results
 * @results: as many as a peer may have outstanding
 * @next: where the next one goes
 */
struct mrsoft_replay {
	struct mrsoft_result results[MRSOFT_MAX_RD_ATOM];
	u32 next;
};

void mrsoft_replay_reset(struct mrsoft_replay *replay);
void mrsoft_replay_add(struct mrsoft_replay *replay,
		       const struct mrsoft_result *result);
/* The result that @psn is a part of, or NULL. */
const struct mrsoft_result *mrsoft_replay_find(const struct mrsoft_replay *replay,
					       u8 kind, u32 psn);

#endif /* MRSOFT_REPLAY_H */
