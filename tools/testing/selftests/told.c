// SPDX-License-Identifier: GPL-2.0
/*
 * told.c - what the device tells of itself in debugfs and tracefs
 */
#include <stdlib.h>
#include <string.h>

#include "lib.h"
#include "told.h"

#define TRACING "/sys/kernel/tracing/"

FILE *told_open(const char *name)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/mrsoft/%s/%s",
		 ctx_first(), name);
	f = fopen(path, "r");
	if (!f)
		t_fail(__FILE__, __LINE__, "cannot open %s", path);
	return f;
}

bool diary_next(FILE *f, struct diary_line *l)
{
	char text[512];
	int n;

	do {
		if (!fgets(text, sizeof(text), f))
			return false;
	} while (text[0] == '#');
	n = sscanf(text, "%llu %lf %llu %d %31s %u %u %d %31s %31s %x %llx %llu %31s %llu %d %31s",
		   &l->seq, &l->time, &l->times, &l->reason, l->name, &l->qp,
		   &l->peer, &l->pid, l->comm, l->op, &l->key, &l->addr,
		   &l->length, l->ended, &l->ago_us, &l->by_pid, l->by_comm);
	if (n != 17)
		t_fail(__FILE__, __LINE__, "%d columns: %s", n, text);
	return true;
}

struct diary_line diary_of(unsigned int qp)
{
	struct diary_line line, found = { 0 };
	FILE *f = told_open("diary");

	while (diary_next(f, &line))
		if (line.qp == qp)
			found = line;
	fclose(f);
	if (!found.seq)
		t_fail(__FILE__, __LINE__, "QP %u is not in the diary", qp);
	return found;
}

struct diary_line expect_diary(unsigned int qp, unsigned int peer, int reason)
{
	struct diary_line line, found = { 0 };
	FILE *f = told_open("diary");

	while (diary_next(f, &line))
		if (line.qp == qp && line.reason == reason &&
		    (!peer || line.peer == peer))
			found = line;
	fclose(f);
	if (!found.seq) {
		line = diary_of(qp);
		t_fail(__FILE__, __LINE__,
		       "diary of QP %u: no reason %d with peer %u, at last %d (%s), %u",
		       qp, reason, peer, line.reason, line.name, line.peer);
	}
	return found;
}

bool mrs_find(unsigned int key, struct mrs_line *l)
{
	char start[32], line[512];
	int n;

	snprintf(start, sizeof(start), "%#x ", key);
	if (!told("mrs", start, line))
		return false;
	n = sscanf(line, "%x %15s %15s %u %llx %llu %x %d %d %llu %x %u %d %31s",
		   &l->key, l->kind, l->state, &l->pd, &l->addr, &l->length,
		   &l->access, &l->owners, &l->holds, &l->pins, &l->mr, &l->qp,
		   &l->pid, l->comm);
	if (n != 14)
		t_fail(__FILE__, __LINE__, "%d columns: %s", n, line);
	return true;
}

bool told(const char *name, const char *start, char line[512])
{
	FILE *f = told_open(name);
	bool found = false;

	while (!found && fgets(line, 512, f))
		found = !strncmp(line, start, strlen(start));
	fclose(f);
	return found;
}

static bool has_line(FILE *f, const char *words)
{
	bool found = false;
	char line[512];

	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, words);
	fclose(f);
	return found;
}

bool told_of(const char *name, const char *words)
{
	return has_line(told_open(name), words);
}

void tracing_set(const char *name, const char *value)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), TRACING "%s", name);
	f = fopen(path, "w");
	CHECK(f);
	CHECK(fputs(value, f) >= 0);
	CHECK(!fclose(f));
}

bool traced(const char *words)
{
	FILE *f = fopen(TRACING "trace", "r");

	CHECK(f);
	return has_line(f, words);
}
