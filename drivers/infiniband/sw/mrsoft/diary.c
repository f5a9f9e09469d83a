// SPDX-License-Identifier: GPL-2.0
/*
 * diary.c - what was refused last, and what became of keys that are gone
 *
 * Owns:     two rings of a device: refusals and ended keys.
 * Not here: showing them (diag.c), counting (status.h).
 * Locks:    diary.lock (spin, irqsave, a leaf) covers both rings.
 * Lifetime: as long as the device's counters.
 * Context:  any.
 * Tests:    kunit/diary_kunit.c, tools/testing/suites/diag.sh
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "diary.h"
#include "trace.h"

/**
 * struct mrsoft_diary - memory of a device
 * @lock: all below
 * @refused: entries so far; the last one is number @refused
 * @ended: keys so far; number n is in place n % MRSOFT_DIARY_ENDS
 * @rcu: a late packet may still be refused
 * @entries: ring, entry n is in place n % MRSOFT_DIARY_REFUSALS
 * @ends: ring
 */
struct mrsoft_diary {
	spinlock_t lock; /* both rings */
	u64 refused;
	u64 ended;
	struct rcu_head rcu;
	struct mrsoft_entry entries[MRSOFT_DIARY_REFUSALS];
	struct mrsoft_ended ends[MRSOFT_DIARY_ENDS];
};

/**
 * mrsoft_diary_new - an empty diary
 *
 * Context: process, sleeps.
 * Return: for mrsoft_diary_free(), or NULL: no memory.
 */
struct mrsoft_diary *mrsoft_diary_new(void)
{
	struct mrsoft_diary *diary = kvzalloc(sizeof(*diary), GFP_KERNEL);

	if (diary)
		spin_lock_init(&diary->lock);
	return diary;
}

/**
 * mrsoft_diary_free - nobody writes or reads it any more, but packets under RCU
 * @diary: of mrsoft_diary_new(), or NULL
 *
 * Context: process.
 */
void mrsoft_diary_free(struct mrsoft_diary *diary)
{
	if (diary)
		kvfree_rcu(diary, rcu);
}

/**
 * mrsoft_who_set - remember whose something is
 * @who: filled in
 * @consumer: name of the consumer in the kernel, or NULL: the calling process
 *
 * Context: any; process without @consumer.
 */
void mrsoft_who_set(struct mrsoft_who *who, const char *consumer)
{
	who->pid = consumer ? 0 : task_tgid_nr(current);
	strscpy_pad(who->comm, consumer ? consumer : current->comm,
		    sizeof(who->comm));
}

static const struct mrsoft_ended *find_end(const struct mrsoft_diary *diary,
					   u32 key)
{
	u64 have = min_t(u64, diary->ended, MRSOFT_DIARY_ENDS), i;
	const struct mrsoft_ended *ended;

	lockdep_assert_held(&diary->lock);
	/* the latest first: a key may come back */
	for (i = 0; i < have; i++) {
		ended = &diary->ends[(diary->ended - i) % MRSOFT_DIARY_ENDS];
		if (ended->key == key)
			return ended;
	}
	return NULL;
}

static struct mrsoft_entry *entry_at(struct mrsoft_diary *diary, u64 seq)
{
	return &diary->entries[seq % MRSOFT_DIARY_REFUSALS];
}

/* A peer that asks again and again does not push out what was before. */
static bool is_again(const struct mrsoft_entry *last,
		     const struct mrsoft_refusal *what)
{
	return last->what.reason == what->reason &&
	       last->what.qpn == what->qpn && last->what.peer == what->peer &&
	       last->what.op == what->op && last->what.key == what->key &&
	       last->who.pid == (what->who ? what->who->pid : 0);
}

static void write_down(struct mrsoft_diary *diary,
		       const struct mrsoft_refusal *what, u64 now)
{
	struct mrsoft_entry *entry = entry_at(diary, diary->refused);
	const struct mrsoft_ended *ended;

	lockdep_assert_held(&diary->lock);
	if (!diary->refused || !is_again(entry, what)) {
		entry = entry_at(diary, ++diary->refused);
		*entry = (struct mrsoft_entry){ .seq = diary->refused };
		if (what->who)
			entry->who = *what->who;
		ended = what->key ? find_end(diary, what->key) : NULL;
		if (ended)
			entry->ended = *ended;
	}
	entry->what = *what;
	entry->what.who = NULL;
	entry->ns = now;
	entry->times++;
}

/**
 * mrsoft_diary_refuse - count a refusal, trace it, and write it down
 * @stats: the device's counters, which know its diary
 * @what: what was refused
 *
 * Context: any.
 * Return: @what->reason.
 */
enum mrsoft_reason mrsoft_diary_refuse(struct mrsoft_stats *stats,
				       const struct mrsoft_refusal *what)
{
	struct mrsoft_diary *diary = stats->diary;
	unsigned long flags;

	mrsoft_refuse(stats, what->reason);
	trace_mrsoft_refuse(what);
	if (!diary)
		return what->reason;
	spin_lock_irqsave(&diary->lock, flags);
	write_down(diary, what, ktime_get_ns());
	spin_unlock_irqrestore(&diary->lock, flags);
	return what->reason;
}

/**
 * mrsoft_diary_end - a key is gone
 * @stats: the device's counters, which know its diary
 * @key: the full key
 * @how: what became of it
 * @by: who did it; NULL: the calling process
 *
 * Context: any; process without @by.
 */
void mrsoft_diary_end(struct mrsoft_stats *stats, u32 key, enum mrsoft_end how,
		      const struct mrsoft_who *by)
{
	struct mrsoft_ended ended = { .how = how, .key = key };
	struct mrsoft_diary *diary = stats->diary;
	unsigned long flags;

	if (!diary)
		return;
	if (by)
		ended.by = *by;
	else
		mrsoft_who_set(&ended.by, NULL);
	ended.ns = ktime_get_ns();
	spin_lock_irqsave(&diary->lock, flags);
	ended.seq = ++diary->ended;
	diary->ends[diary->ended % MRSOFT_DIARY_ENDS] = ended;
	spin_unlock_irqrestore(&diary->lock, flags);
}

/* The number that a reader who wants @seq gets from a ring of @size; 0: none. */
static u64 first_there(u64 seq, u64 last, u32 size)
{
	if (last > size)
		seq = max(seq, last - size + 1);
	seq = max(seq, 1ull);
	return seq <= last ? seq : 0;
}

/**
 * mrsoft_diary_read - copy a refusal out
 * @diary: the diary
 * @seq: number of the first entry that is wanted; older ones may be gone
 * @entry: out
 *
 * Context: any.
 * Return: false: there is no entry of that number or a later one yet.
 */
bool mrsoft_diary_read(struct mrsoft_diary *diary, u64 seq,
		       struct mrsoft_entry *entry)
{
	unsigned long flags;

	spin_lock_irqsave(&diary->lock, flags);
	seq = first_there(seq, diary->refused, MRSOFT_DIARY_REFUSALS);
	if (seq)
		*entry = *entry_at(diary, seq);
	spin_unlock_irqrestore(&diary->lock, flags);
	return seq;
}

/**
 * mrsoft_diary_read_end - copy a key that is gone out
 * @diary: the diary
 * @seq: number of the first one that is wanted; older ones may be gone
 * @ended: out
 *
 * Context: any.
 * Return: false: there is none of that number or a later one yet.
 */
bool mrsoft_diary_read_end(struct mrsoft_diary *diary, u64 seq,
			   struct mrsoft_ended *ended)
{
	unsigned long flags;

	spin_lock_irqsave(&diary->lock, flags);
	seq = first_there(seq, diary->ended, MRSOFT_DIARY_ENDS);
	if (seq)
		*ended = diary->ends[seq % MRSOFT_DIARY_ENDS];
	spin_unlock_irqrestore(&diary->lock, flags);
	return seq;
}
