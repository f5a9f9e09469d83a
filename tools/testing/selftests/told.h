/* SPDX-License-Identifier: GPL-2.0 */
/*
 * told.h - what the device tells of itself in debugfs and tracefs
 */
#ifndef MRSOFT_SELFTESTS_TOLD_H
#define MRSOFT_SELFTESTS_TOLD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A line of the diary, in the order of its columns. */
struct diary_line {
	unsigned long long seq;
	double time;
	unsigned long long times;
	int reason;
	char name[32];
	unsigned int qp, peer;
	int pid;
	char comm[32], op[32];
	unsigned int key;
	unsigned long long addr, length;
	char ended[32];
	unsigned long long ago_us;
	int by_pid;
	char by_comm[32];
};

/* A line of mrs. */
struct mrs_line {
	unsigned int key;
	char kind[16], state[16];
	unsigned int pd;
	unsigned long long addr, length;
	unsigned int access;
	int owners, holds;
	unsigned long long pins;
	unsigned int mr, qp;
	int pid;
	char comm[32];
};

/* File @name of device MRSOFT_DEV. */
FILE *told_open(const char *name);
/* The next line, false at the end. */
bool diary_next(FILE *f, struct diary_line *line);
/* The last line that is about @qp, or a failure. */
struct diary_line diary_of(unsigned int qp);
/* The last line about @qp, @peer (0: any) and @reason, or a failure. */
struct diary_line expect_diary(unsigned int qp, unsigned int peer, int reason);
/* Is @key listed? */
bool mrs_find(unsigned int key, struct mrs_line *line);
/* Is there a line in file @name that begins like this?  Copied to @line. */
bool told(const char *name, const char *start, char line[512]);
/* Is there a line with these words in file @name? */
bool told_of(const char *name, const char *words);

/* Write @value to file @name of tracefs. */
void tracing_set(const char *name, const char *value);
/* Is there a line with these words in the trace? */
bool traced(const char *words);

#endif /* MRSOFT_SELFTESTS_TOLD_H */
