/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rules.h - injection rules of MRSOFT_DEV
 *
 * Rules are named by their place, from 1 on.
 */
#ifndef MRSOFT_SELFTESTS_RULES_H
#define MRSOFT_SELFTESTS_RULES_H

#include <stddef.h>
#include <sys/types.h>

/* 0 or an errno. */
int rule_write(const char *text, size_t n);
void rule_add(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void rules_clear(void);
unsigned int rule_count(void);
unsigned long long rule_hits(unsigned int place);
/* Waits until it has struck so often. */
void rule_wait(unsigned int place, unsigned long long hits);
/* @left: how often it may strike still, "-": no end */
void expect_rule(unsigned int place, unsigned long long seen,
		 unsigned long long hits, const char *left);
/* The diary has it: @qp 0: of no QP, but of process @pid. */
void expect_injected(const char *op, unsigned int qp, pid_t pid);

#endif /* MRSOFT_SELFTESTS_RULES_H */
