/* SPDX-License-Identifier: GPL-2.0 */
/*
 * diary.h - what was refused last, and what became of keys that are gone
 *
 * Layer 1, lowest: all above may refuse.
 */
#ifndef MRSOFT_DIARY_H
#define MRSOFT_DIARY_H

#include <linux/sched.h>

#include "status.h"

/* Refusals and ended keys that a device remembers. */
#define MRSOFT_DIARY_REFUSALS	256u
#define MRSOFT_DIARY_ENDS	1024u

/**
 * struct mrsoft_who - whose an object is
 * @pid: of the process, 0: a consumer in the kernel
 * @comm: name of the process, or of the consumer's module
 */
struct mrsoft_who {
	pid_t pid;
	char comm[TASK_COMM_LEN];
};

/**
 * struct mrsoft_refusal - a refusal, as much as is known of it
 * @reason: why
 * @qpn: the QP whose access or request was refused, 0: none
 * @peer: the QP at the other end, 0: not known
 * @who: whose @qpn is, or who called; NULL: not known
 * @op: what was asked for, a constant; NULL: not known
 * @key: lkey or rkey, 0: no key has to do with it
 * @addr: first address
 * @length: bytes
 */
struct mrsoft_refusal {
	enum mrsoft_reason reason;
	u32 qpn;
	u32 peer;
	const struct mrsoft_who *who;
	const char *op;
	u32 key;
	u64 addr;
	u64 length;
};

/**
 * struct mrsoft_ended - a key that is gone
 * @seq: its number, from 1 on
 * @how: what became of it
 * @key: the full key
 * @ns: when, ktime_get_ns()
 * @by: who did it
 */
struct mrsoft_ended {
	u64 seq;
	enum mrsoft_end how;
	u32 key;
	u64 ns;
	struct mrsoft_who by;
};

/**
 * struct mrsoft_entry - an entry of the diary
 * @seq: its number, from 1 on
 * @ns: when it was last refused, ktime_get_ns()
 * @times: how often in a row, with the same but for @what.addr and @what.length
 * @what: what was refused; @what.who is NULL
 * @who: its who; an empty name: not known
 * @ended: what became of the key, when it is gone
 */
struct mrsoft_entry {
	u64 seq;
	u64 ns;
	u64 times;
	struct mrsoft_refusal what;
	struct mrsoft_who who;
	struct mrsoft_ended ended;
};

struct mrsoft_diary *mrsoft_diary_new(void);
void mrsoft_diary_free(struct mrsoft_diary *diary);

/* The consumer in the kernel of that name; NULL: the process that calls. */
void mrsoft_who_set(struct mrsoft_who *who, const char *consumer);

/* Counts, traces and writes down.  Returns the reason. */
enum mrsoft_reason mrsoft_diary_refuse(struct mrsoft_stats *stats,
				       const struct mrsoft_refusal *what);
void mrsoft_diary_end(struct mrsoft_stats *stats, u32 key, enum mrsoft_end how,
		      const struct mrsoft_who *by);

/* Readers: the first entry from @seq on. */
bool mrsoft_diary_read(struct mrsoft_diary *diary, u64 seq,
		       struct mrsoft_entry *entry);
bool mrsoft_diary_read_end(struct mrsoft_diary *diary, u64 seq,
			   struct mrsoft_ended *ended);

#endif /* MRSOFT_DIARY_H */
