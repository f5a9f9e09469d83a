// SPDX-License-Identifier: GPL-2.0
/*
 * inject.c - faults that somebody asked for: rules, and whose turn it is
 *
 * Owns:     the form of a rule, the rules of a device, their counts and their
 *           chance.
 * Not here: doing it: packets (impair.c), requests (resp.c), completions (cq.c),
 *           regions (verbs.c); the file (diag_inject.c).
 * Locks:    inject.lock (spin, irqsave, a leaf) covers the rules.
 * Lifetime: as long as the device's counters; readers that come late are under
 *           RCU.
 * Context:  matching in any; the rest in process.
 * Spec:     none, the rules are ours
 * Tests:    kunit/inject_kunit.c, tools/testing/suites/inject.sh
 */
#include <linux/errno.h>
#include <linux/kstrtox.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/wait.h>

#include "inject.h"
#include "limits.h"

/**
 * struct mrsoft_inject - rules of a device
 * @lock: all below
 * @num: rules
 * @last_id: number of the youngest rule
 * @clears: how often rules were removed
 * @cleared: woken by that
 * @rcu: a late packet may still look
 * @rules: in the order in which they were added
 */
struct mrsoft_inject {
	spinlock_t lock; /* the rules */
	u32 num;
	u32 last_id;
	u32 clears;
	wait_queue_head_t cleared;
	struct rcu_head rcu;
	struct mrsoft_rule_state rules[MRSOFT_MAX_RULES];
};

/* --- the form of a rule --------------------------------------------------- */

enum param {
	P_QP, P_CQ, P_KEY, P_NTH, P_EVERY, P_CHANCE, P_SEED, P_COUNT, P_ERRNO,
	P_CODE, P_RNR, P_MS, P_DIR, P_NUM
};

#define SCHEDULE	(BIT(P_NTH) | BIT(P_EVERY) | BIT(P_CHANCE))
#define WHEN		(SCHEDULE | BIT(P_SEED) | BIT(P_COUNT))
#define PACKETS		(BIT(P_QP) | BIT(P_DIR) | WHEN)

/**
 * struct form - what is known of an action
 * @words: as it is written
 * @op: as the diary has it
 * @event: what it counts
 * @may: parameters that it may have
 * @must: and that it must have
 */
struct form {
	const char *words;
	const char *op;
	enum mrsoft_event event;
	u32 may;
	u32 must;
};

static const struct form forms[MRSOFT_DO_COUNT] = {
	[MRSOFT_DO_FAIL_REG] = {
		"fail reg", "fail-reg", MRSOFT_ON_REG, WHEN | BIT(P_ERRNO), 0,
	},
	[MRSOFT_DO_FAIL_REREG] = {
		"fail rereg", "fail-rereg", MRSOFT_ON_REREG,
		WHEN | BIT(P_KEY) | BIT(P_ERRNO), 0,
	},
	[MRSOFT_DO_FAIL_DEREG] = {
		"fail dereg", "fail-dereg", MRSOFT_ON_DEREG,
		WHEN | BIT(P_KEY) | BIT(P_ERRNO), 0,
	},
	[MRSOFT_DO_HOLD_DEREG] = {
		"hold dereg", "hold-dereg", MRSOFT_ON_DEREG,
		WHEN | BIT(P_KEY) | BIT(P_MS), BIT(P_MS),
	},
	[MRSOFT_DO_DROP] = {
		"drop", "drop", MRSOFT_ON_PACKET, PACKETS, 0,
	},
	[MRSOFT_DO_DUPLICATE] = {
		"duplicate", "duplicate", MRSOFT_ON_PACKET, PACKETS, 0,
	},
	[MRSOFT_DO_REORDER] = {
		"reorder", "reorder", MRSOFT_ON_PACKET, PACKETS, 0,
	},
	[MRSOFT_DO_CORRUPT] = {
		"corrupt", "corrupt", MRSOFT_ON_PACKET, PACKETS, 0,
	},
	[MRSOFT_DO_DELAY] = {
		"delay", "delay", MRSOFT_ON_PACKET, PACKETS | BIT(P_MS),
		BIT(P_MS),
	},
	[MRSOFT_DO_RNR] = {
		"rnr", "rnr", MRSOFT_ON_REQUEST, WHEN | BIT(P_QP) | BIT(P_RNR),
		0,
	},
	[MRSOFT_DO_NAK] = {
		"nak", "nak", MRSOFT_ON_REQUEST, WHEN | BIT(P_QP) | BIT(P_CODE),
		BIT(P_CODE),
	},
	[MRSOFT_DO_OVERFLOW] = {
		"overflow", "overflow", MRSOFT_ON_COMPLETION,
		WHEN | BIT(P_QP) | BIT(P_CQ), 0,
	},
	[MRSOFT_DO_ERROR] = {
		"error", "error", MRSOFT_ON_REQUEST, WHEN | BIT(P_QP), 0,
	},
};

static const char * const names[P_NUM] = {
	[P_QP] = "qp", [P_CQ] = "cq", [P_KEY] = "key", [P_NTH] = "nth",
	[P_EVERY] = "every", [P_CHANCE] = "chance", [P_SEED] = "seed",
	[P_COUNT] = "count", [P_ERRNO] = "errno", [P_CODE] = "code",
	[P_RNR] = "rnr", [P_MS] = "ms", [P_DIR] = "dir",
};

static const char * const codes[MRSOFT_CODE_COUNT] = {
	[MRSOFT_CODE_SEQUENCE] = "sequence", [MRSOFT_CODE_INVALID] = "invalid",
	[MRSOFT_CODE_ACCESS] = "access", [MRSOFT_CODE_OP] = "op",
};

/* Those of man pages that a program may meet; each has a name, none a number. */
static const struct {
	const char *name;
	int err;
} errnos[] = {
	{ "EPERM", EPERM }, { "ENOENT", ENOENT }, { "EINTR", EINTR },
	{ "EIO", EIO }, { "EAGAIN", EAGAIN }, { "ENOMEM", ENOMEM },
	{ "EACCES", EACCES }, { "EFAULT", EFAULT }, { "EBUSY", EBUSY },
	{ "ENODEV", ENODEV }, { "EINVAL", EINVAL }, { "ENFILE", ENFILE },
	{ "EMFILE", EMFILE }, { "ENOSPC", ENOSPC }, { "ERANGE", ERANGE },
	{ "EOPNOTSUPP", EOPNOTSUPP }, { "ETIMEDOUT", ETIMEDOUT },
};

static bool has(const struct mrsoft_rule *rule, enum param param)
{
	return rule->given & BIT(param);
}

/* A number without a sign, between @min and @max. */
static int number(const char *text, u32 min, u32 max, u32 *to)
{
	u32 value;

	if (*text < '0' || *text > '9' || kstrtou32(text, 0, &value) ||
	    value < min || value > max)
		return -EINVAL;
	*to = value;
	return 0;
}

static int parse_chance(char *text, struct mrsoft_rule *rule)
{
	char *of = strchr(text, '/');

	if (!of)
		return -EINVAL;
	*of++ = '\0';
	return number(of, 1, 1000000, &rule->of) ||
	       number(text, 1, rule->of, &rule->chance) ? -EINVAL : 0;
}

static int parse_errno(const char *text, struct mrsoft_rule *rule)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(errnos); i++) {
		if (strcmp(text, errnos[i].name))
			continue;
		rule->err = errnos[i].err;
		return 0;
	}
	return -EINVAL;
}

static int parse_code(const char *text, struct mrsoft_rule *rule)
{
	u32 i;

	for (i = MRSOFT_CODE_NONE + 1; i < MRSOFT_CODE_COUNT; i++) {
		if (strcmp(text, codes[i]))
			continue;
		rule->code = i;
		return 0;
	}
	return -EINVAL;
}

static int parse_dir(const char *text, struct mrsoft_rule *rule)
{
	rule->rx = !strcmp(text, "rx");
	return rule->rx || !strcmp(text, "tx") ? 0 : -EINVAL;
}

static int parse_value(enum param param, char *text, struct mrsoft_rule *rule)
{
	switch (param) {
	case P_QP:
		return number(text, 1, MRSOFT_QPN_MAX, &rule->qp);
	case P_CQ:
		return number(text, 0, U32_MAX, &rule->cq);
	case P_KEY:
		return number(text, 1, U32_MAX, &rule->key);
	case P_NTH:
		return number(text, 1, U32_MAX, &rule->nth);
	case P_EVERY:
		return number(text, 1, U32_MAX, &rule->every);
	case P_CHANCE:
		return parse_chance(text, rule);
	case P_SEED:
		return *text < '0' || *text > '9' ||
		       kstrtou64(text, 0, &rule->seed) ? -EINVAL : 0;
	case P_COUNT:
		return number(text, 1, U32_MAX, &rule->count);
	case P_ERRNO:
		return parse_errno(text, rule);
	case P_CODE:
		return parse_code(text, rule);
	case P_RNR:
		return number(text, 0, 31, &rule->rnr);
	case P_MS:
		return number(text, 1, MRSOFT_INJECT_MAX_MS, &rule->ms);
	case P_DIR:
		return parse_dir(text, rule);
	default:
		return -EINVAL;
	}
}

/* NAME=VALUE, each name once. */
static int parse_param(char *text, struct mrsoft_rule *rule)
{
	char *value = strchr(text, '=');
	u32 param;

	if (!value)
		return -EINVAL;
	*value++ = '\0';
	for (param = 0; param < P_NUM; param++)
		if (!strcmp(text, names[param]))
			break;
	if (param == P_NUM || has(rule, param))
		return -EINVAL;
	rule->given |= BIT(param);
	return parse_value(param, value, rule);
}

/* The next word, or NULL. */
static char *next_word(char **rest)
{
	char *word;

	do {
		word = strsep(rest, " \t");
	} while (word && !*word);
	return word;
}

static int parse_action(char **rest, struct mrsoft_rule *rule)
{
	char words[32], *word = next_word(rest), *second;
	u32 i;

	if (!word)
		return -EINVAL;
	if (!strcmp(word, "fail") || !strcmp(word, "hold")) {
		second = next_word(rest);
		if (!second)
			return -EINVAL;
		snprintf(words, sizeof(words), "%s %s", word, second);
		word = words;
	}
	for (i = 0; i < MRSOFT_DO_COUNT; i++) {
		if (strcmp(word, forms[i].words))
			continue;
		rule->action = i;
		return 0;
	}
	return -EINVAL;
}

/* What its parameters say together; what is not said is filled in. */
static int check_rule(struct mrsoft_rule *rule)
{
	const struct form *form = &forms[rule->action];

	if ((rule->given & ~form->may) || (form->must & ~rule->given))
		return -EINVAL;
	if (hweight32(rule->given & SCHEDULE) > 1)
		return -EINVAL;
	if (has(rule, P_SEED) && !has(rule, P_CHANCE))
		return -EINVAL;
	/* a refused dereg is tried again by some: that must come to an end */
	if (rule->action == MRSOFT_DO_FAIL_DEREG && !has(rule, P_COUNT) &&
	    (has(rule, P_EVERY) || has(rule, P_CHANCE)))
		return -EINVAL;
	/* at once: which one?  QP 1 is the core's */
	if (mrsoft_inject_is_now(rule) && rule->qp < MRSOFT_QPN_MIN)
		return -EINVAL;
	if (!(rule->given & SCHEDULE))
		rule->nth = 1;
	if (rule->nth && !has(rule, P_COUNT))
		rule->count = 1;
	if (!rule->err)
		rule->err = rule->action == MRSOFT_DO_FAIL_DEREG ? EBUSY :
								   ENOMEM;
	return 0;
}

/**
 * mrsoft_inject_parse - read a rule
 * @text: one line, without its end
 * @rule: filled in
 *
 * ACTION [PARAMETER=VALUE]..., see Documentation/testing-your-app.rst.  Nothing
 * is taken that is not understood.
 *
 * Context: process.
 * Return: 0; -EINVAL; -ENOMEM.
 */
int mrsoft_inject_parse(const char *text, struct mrsoft_rule *rule)
{
	char *copy, *rest, *word;
	int err;

	if (strlen(text) >= MRSOFT_RULE_TEXT)
		return -EINVAL;
	copy = kstrdup(text, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	rest = copy;
	*rule = (struct mrsoft_rule){};
	err = parse_action(&rest, rule);
	while (!err && (word = next_word(&rest)))
		err = parse_param(word, rule);
	kfree(copy);
	return err ? err : check_rule(rule);
}

static const char *errno_name(int err)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(errnos); i++)
		if (errnos[i].err == err)
			return errnos[i].name;
	return "-";
}

static int put_param(const struct mrsoft_rule *rule, enum param param,
		     char *to, size_t size)
{
	const char *name = names[param];

	switch (param) {
	case P_QP:
		return scnprintf(to, size, " %s=%u", name, rule->qp);
	case P_CQ:
		return scnprintf(to, size, " %s=%u", name, rule->cq);
	case P_KEY:
		return scnprintf(to, size, " %s=%#x", name, rule->key);
	case P_NTH:
		return scnprintf(to, size, " %s=%u", name, rule->nth);
	case P_EVERY:
		return scnprintf(to, size, " %s=%u", name, rule->every);
	case P_CHANCE:
		return scnprintf(to, size, " %s=%u/%u", name, rule->chance,
				 rule->of);
	case P_SEED:
		return scnprintf(to, size, " %s=%llu", name, rule->seed);
	case P_COUNT:
		return scnprintf(to, size, " %s=%u", name, rule->count);
	case P_ERRNO:
		return scnprintf(to, size, " %s=%s", name,
				 errno_name(rule->err));
	case P_CODE:
		return scnprintf(to, size, " %s=%s", name, codes[rule->code]);
	case P_RNR:
		return scnprintf(to, size, " %s=%u", name, rule->rnr);
	case P_MS:
		return scnprintf(to, size, " %s=%u", name, rule->ms);
	case P_DIR:
		return scnprintf(to, size, " %s=%s", name,
				 rule->rx ? "rx" : "tx");
	default:
		return 0;
	}
}

/**
 * mrsoft_inject_format - write a rule
 * @rule: of mrsoft_inject_parse()
 * @text: gets what that takes
 * @size: bytes, MRSOFT_RULE_TEXT is enough
 *
 * Context: any.
 */
void mrsoft_inject_format(const struct mrsoft_rule *rule, char *text,
			  size_t size)
{
	size_t n;
	u32 param;

	n = scnprintf(text, size, "%s", forms[rule->action].words);
	for (param = 0; param < P_NUM; param++)
		if (has(rule, param))
			n += put_param(rule, param, text + n, size - n);
}

/**
 * mrsoft_inject_is_now - is it done at once, and not a rule to keep
 * @rule: of mrsoft_inject_parse()
 *
 * Context: any.
 * Return: true for an error of a QP without anything that it waits for.
 */
bool mrsoft_inject_is_now(const struct mrsoft_rule *rule)
{
	return rule->action == MRSOFT_DO_ERROR && !(rule->given & WHEN);
}

/* --- the rules of a device ------------------------------------------------ */

/**
 * mrsoft_inject_new - no rules
 *
 * Context: process, sleeps.
 * Return: for stats->inject, or NULL: no memory.
 */
struct mrsoft_inject *mrsoft_inject_new(void)
{
	struct mrsoft_inject *inject = kvzalloc_obj(*inject);

	if (!inject)
		return NULL;
	spin_lock_init(&inject->lock);
	init_waitqueue_head(&inject->cleared);
	return inject;
}

/**
 * mrsoft_inject_free - the end of the rules
 * @stats: nobody asks any more, but packets under RCU; nobody is held
 *
 * Context: process.
 */
void mrsoft_inject_free(struct mrsoft_stats *stats)
{
	WRITE_ONCE(stats->injecting, false);
	if (stats->inject)
		kvfree_rcu(stats->inject, rcu);
}

/**
 * mrsoft_inject_add - one rule more
 * @stats: of the device
 * @rule: of mrsoft_inject_parse()
 *
 * Context: process.
 * Return: 0, or -ENOSPC: there are MRSOFT_MAX_RULES, used up ones included.
 */
int mrsoft_inject_add(struct mrsoft_stats *stats,
		      const struct mrsoft_rule *rule)
{
	struct mrsoft_inject *inject = stats->inject;
	struct mrsoft_rule_state *state;
	unsigned long flags;
	int err = -ENOSPC;

	spin_lock_irqsave(&inject->lock, flags);
	if (inject->num < MRSOFT_MAX_RULES) {
		state = &inject->rules[inject->num++];
		*state = (struct mrsoft_rule_state){ .rule = *rule };
		state->rule.id = ++inject->last_id;
		prandom_seed_state(&state->random, rule->seed);
		WRITE_ONCE(stats->injecting, true);
		err = 0;
	}
	spin_unlock_irqrestore(&inject->lock, flags);
	return err;
}

/**
 * mrsoft_inject_clear - remove rules
 * @stats: of the device
 * @id: which one, 0: all
 *
 * Who is held goes on.
 *
 * Context: process.
 * Return: 0, or -ENOENT: there is no such rule.
 */
int mrsoft_inject_clear(struct mrsoft_stats *stats, u32 id)
{
	struct mrsoft_inject *inject = stats->inject;
	struct mrsoft_rule_state *rules = inject->rules;
	unsigned long flags;
	u32 i, kept = 0;
	bool found;

	spin_lock_irqsave(&inject->lock, flags);
	for (i = 0; i < inject->num; i++)
		if (id && rules[i].rule.id != id)
			rules[kept++] = rules[i];
	found = !id || kept < inject->num;
	inject->num = kept;
	WRITE_ONCE(stats->injecting, kept);
	if (found)
		WRITE_ONCE(inject->clears, inject->clears + 1);
	spin_unlock_irqrestore(&inject->lock, flags);
	wake_up_all(&inject->cleared);
	return found ? 0 : -ENOENT;
}

/**
 * mrsoft_inject_read - copy a rule out
 * @stats: of the device
 * @index: which one, from 0 on
 * @state: out
 *
 * Context: any.
 * Return: false: there are no more.
 */
bool mrsoft_inject_read(struct mrsoft_stats *stats, u32 index,
			struct mrsoft_rule_state *state)
{
	struct mrsoft_inject *inject = stats->inject;
	unsigned long flags;
	bool found;

	spin_lock_irqsave(&inject->lock, flags);
	found = index < inject->num;
	if (found)
		*state = inject->rules[index];
	spin_unlock_irqrestore(&inject->lock, flags);
	return found;
}

static bool is_about(const struct mrsoft_rule *rule,
		     const struct mrsoft_occasion *now)
{
	if (forms[rule->action].event != now->event)
		return false;
	/* QP 1 is of the core's management: only by its number */
	if (has(rule, P_QP) ? rule->qp != now->qpn : now->qpn == 1)
		return false;
	if (has(rule, P_CQ) && rule->cq != now->cq)
		return false;
	if (has(rule, P_KEY) && rule->key != now->key)
		return false;
	return now->event != MRSOFT_ON_PACKET || !!rule->rx == now->rx;
}

/* Counts the event.  The chance of each event is drawn, struck or not. */
static bool is_its_turn(struct mrsoft_rule_state *state)
{
	const struct mrsoft_rule *rule = &state->rule;
	bool turn;
	u32 rest;

	state->seen++;
	if (rule->nth) {
		turn = state->seen >= rule->nth;
	} else if (rule->every) {
		div_u64_rem(state->seen, rule->every, &rest);
		turn = !rest;
	} else {
		turn = prandom_u32_state(&state->random) % rule->of <
		       rule->chance;
	}
	return turn && (!rule->count || state->hits < rule->count);
}

/**
 * mrsoft_inject_match - is something to be done on this occasion
 * @stats: the device's counters, with rules
 * @now: the event
 * @in: what, when true
 *
 * Each rule that is about it counts the event.  The first of those whose turn it
 * is strikes; the others let it pass.
 *
 * Context: any.
 * Return: true if a rule strikes.
 */
bool mrsoft_inject_match(struct mrsoft_stats *stats,
			 const struct mrsoft_occasion *now,
			 struct mrsoft_injection *in)
{
	struct mrsoft_inject *inject = stats->inject;
	const struct mrsoft_rule *rule = NULL;
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&inject->lock, flags);
	for (i = 0; i < inject->num; i++) {
		struct mrsoft_rule_state *state = &inject->rules[i];

		if (!is_about(&state->rule, now) || !is_its_turn(state) || rule)
			continue;
		state->hits++;
		rule = &state->rule;
	}
	if (rule)
		*in = (struct mrsoft_injection){
			.action	= rule->action,
			.op	= forms[rule->action].op,
			.err	= rule->err,
			.code	= rule->code,
			.rnr	= has(rule, P_RNR) ? (int)rule->rnr : -1,
			.ms	= rule->ms,
			.clears	= inject->clears,
		};
	spin_unlock_irqrestore(&inject->lock, flags);
	return rule;
}

/**
 * mrsoft_inject_hold - wait for as long as a rule says
 * @stats: of the device
 * @in: of mrsoft_inject()
 *
 * Ends when rules are removed, as they are with the device, or when the process is
 * killed.
 *
 * Context: process, sleeps.
 */
void mrsoft_inject_hold(struct mrsoft_stats *stats,
			const struct mrsoft_injection *in)
{
	struct mrsoft_inject *inject = stats->inject;

	wait_event_killable_timeout(inject->cleared,
				    READ_ONCE(inject->clears) != in->clears,
				    msecs_to_jiffies(in->ms));
}
