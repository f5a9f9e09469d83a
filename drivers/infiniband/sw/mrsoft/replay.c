// SPDX-License-Identifier: GPL-2.0
/*
 * replay.c - results of READ and ATOMIC that may be asked for again
 *
 * Owns:     the last results of a responder.  It stands in front of the responder,
 *           so that an atomic cannot run twice.
 * Not here: executing and answering (resp.c, ack.c).
 * Locks:    none: the responder's worker is the only user.
 * Context:  any.
 * Spec:     IBA Vol 1, 9.4.5, 9.7.5.1.2 (duplicate requests)
 * Tests:    kunit/wire_kunit.c
 */
#include <linux/string.h>

#include "psn.h"
#include "replay.h"

/**
 * mrsoft_replay_reset - forget all results
 * @replay: of a QP that starts again
 *
 * Context: any.
 */
void mrsoft_replay_reset(struct mrsoft_replay *replay)
{
	memset(replay, 0, sizeof(*replay));
}

/**
 * mrsoft_replay_add - remember a result
 * @replay: of the responder
 * @result: takes the place of the oldest
 *
 * Context: any.
 */
void mrsoft_replay_add(struct mrsoft_replay *replay,
		       const struct mrsoft_result *result)
{
	replay->results[replay->next] = *result;
	replay->next = (replay->next + 1) % MRSOFT_MAX_RD_ATOM;
}

/**
 * mrsoft_replay_find - find a result again
 * @replay: of the responder
 * @kind: enum mrsoft_packet_kind of the request
 * @psn: of the request that came again; of a READ it may be in the middle
 *
 * Context: any.
 * Return: the youngest such result, or NULL.
 */
const struct mrsoft_result *mrsoft_replay_find(const struct mrsoft_replay *replay,
					       u8 kind, u32 psn)
{
	u32 i;

	for (i = 1; i <= MRSOFT_MAX_RD_ATOM; i++) {
		const struct mrsoft_result *r;
		s32 diff;

		r = &replay->results[(replay->next - i) % MRSOFT_MAX_RD_ATOM];
		if (!r->packets)
			return NULL;
		diff = mrsoft_psn_diff(psn, r->psn);
		if (r->kind == kind && diff >= 0 && (u32)diff < r->packets)
			return r;
	}
	return NULL;
}
