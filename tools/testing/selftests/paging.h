/* SPDX-License-Identifier: GPL-2.0 */
/*
 * paging.h - what the programs about memory on demand share
 */
#ifndef MRSOFT_SELFTESTS_PAGING_H
#define MRSOFT_SELFTESTS_PAGING_H

#include <pthread.h>

#include "lib.h"

#define ODP (MR_ALL | IBV_ACCESS_ON_DEMAND)
#define PAGE 4096u

/* Skips the case on a device without @caps, IBV_ODP_SUPPORT or with _IMPLICIT. */
void need_odp(struct ctx *c, uint64_t caps);
/* New pages there, in place of what is. */
void map_again(void *p, size_t len, int prot);

/*
 * A successful completion.  User Mode Linux shows a process what another CPU did to
 * its page tables at its next system call, not at once: a worker that faulted a
 * page in may have been that CPU.
 */
#define DONE(cq, wr_id) do {						\
	EXPECT_WC(cq, wr_id, IBV_WC_SUCCESS);				\
	look_again();							\
} while (0)
void look_again(void);

/**
 * struct churn - a thread that takes pages away as fast as it can
 * @p: where
 * @len: bytes there
 * @turn: takes some from @at on
 * @rounds: turns so far
 */
struct churn {
	pthread_t thread;
	uint8_t *p;
	size_t len;
	void (*turn)(struct churn *c, size_t at);
	volatile bool stop;
	unsigned long rounds;
};

void churn_start(struct churn *c, uint8_t *p, size_t len,
		 void (*turn)(struct churn *c, size_t at));
void churn_stop(struct churn *c);

#endif /* MRSOFT_SELFTESTS_PAGING_H */
