// SPDX-License-Identifier: GPL-2.0
/*
 * rules.c - injection rules of MRSOFT_DEV
 */
#include <fcntl.h>
#include <stdarg.h>

#include "lib.h"
#include "rules.h"
#include "told.h"

struct rule_line {
	unsigned int id;
	unsigned long long seen, hits;
	char left[24];
};

int rule_write(const char *text, size_t n)
{
	char path[256];
	ssize_t ret;
	int fd, err;

	snprintf(path, sizeof(path), "/sys/kernel/debug/mrsoft/%s/inject",
		 ctx_first());
	fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	ret = write(fd, text, n);
	err = ret < 0 ? errno : 0;
	/* nothing at all never reaches the device, and is no rule */
	if (!n)
		err = EINVAL;
	else
		CHECK(ret < 0 || ret == (ssize_t)n);
	close(fd);
	return err;
}

void rule_add(const char *fmt, ...)
{
	char text[256];
	va_list args;
	int n, err;

	va_start(args, fmt);
	n = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	err = rule_write(text, n);
	if (err)
		t_fail(__FILE__, __LINE__, "'%s': %s", text, strerror(err));
}

void rules_clear(void)
{
	rule_add("clear\n");
}

static bool rule_at(unsigned int place, struct rule_line *rule)
{
	FILE *f = told_open("inject");
	char text[512];
	bool found = false;

	while (!found && fgets(text, sizeof(text), f))
		found = text[0] != '#' && !--place;
	fclose(f);
	if (found)
		CHECK_EQ(sscanf(text, "%u %llu %llu %23s", &rule->id,
				&rule->seen, &rule->hits, rule->left), 4);
	return found;
}

unsigned int rule_count(void)
{
	struct rule_line rule;
	unsigned int n = 0;

	while (rule_at(n + 1, &rule))
		n++;
	return n;
}

unsigned long long rule_hits(unsigned int place)
{
	struct rule_line rule;

	CHECK(rule_at(place, &rule));
	return rule.hits;
}

void rule_wait(unsigned int place, unsigned long long hits)
{
	uint64_t end = t_now() + t_patience();

	while (rule_hits(place) < hits && t_now() < end)
		t_sleep(1);
	CHECK_EQ(rule_hits(place), hits);
}

void expect_rule(unsigned int place, unsigned long long seen,
		 unsigned long long hits, const char *left)
{
	struct rule_line rule;

	CHECK(rule_at(place, &rule));
	CHECK_EQ(rule.seen, seen);
	CHECK_EQ(rule.hits, hits);
	if (strcmp(rule.left, left))
		t_fail(__FILE__, __LINE__, "left: %s, not %s", rule.left, left);
}

void expect_injected(const char *op, unsigned int qp, pid_t pid)
{
	struct diary_line line;
	FILE *f = told_open("diary");
	bool found = false;

	while (!found && diary_next(f, &line))
		found = line.reason == MRSOFT_R_INJECTED && line.qp == qp &&
			!strcmp(line.op, op) && line.pid == pid &&
			!strcmp(line.name, "injected");
	fclose(f);
	if (!found)
		t_fail(__FILE__, __LINE__, "no %s of QP %u, process %d in the diary",
		       op, qp, pid);
}
