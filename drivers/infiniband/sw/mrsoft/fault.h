/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fault.h - what must be faulted in before an access can go on
 *
 * Layer 1, above key.h.  A copy that finds a page not present: note its spans,
 * put them, run or start the fault, and begin again with the check of the key.
 */
#ifndef MRSOFT_FAULT_H
#define MRSOFT_FAULT_H

#include "key.h"

/**
 * struct mrsoft_need - bytes that must be present
 * @pages: of which region, referenced
 * @offset: bytes from its first byte
 * @length: bytes
 * @how: MRSOFT_FAULT_*
 */
struct mrsoft_need {
	struct mrsoft_pages *pages;
	u64 offset;
	u64 length;
	unsigned int how;
};

/**
 * struct mrsoft_fault - all that one copy needs: its source and its destination
 * @need: what
 * @num: entries used
 */
struct mrsoft_fault {
	struct mrsoft_need need[2];
	unsigned int num;
};

struct mrsoft_fault_job;

int mrsoft_fault_init(void);
void mrsoft_fault_exit(void);

/* Nothing happens for memory that is always present. */
void mrsoft_fault_note(struct mrsoft_fault *fault,
		       const struct mrsoft_span *span, bool write);
/* May sleep: drops references. */
void mrsoft_fault_drop(struct mrsoft_fault *fault);
bool mrsoft_fault_own(const struct mrsoft_fault *fault);
int mrsoft_fault_run(struct mrsoft_fault *fault);

/* In the background; @wake is called at its end unless mrsoft_fault_job_end(). */
struct mrsoft_fault_job *mrsoft_fault_start(struct mrsoft_fault *fault,
					    void (*wake)(void *arg), void *arg);
int mrsoft_fault_job_end(struct mrsoft_fault_job *job);

/**
 * struct mrsoft_advice - what will be used soon
 * @write: for writing
 * @peek: without a fault
 * @wait: until it is there
 */
struct mrsoft_advice {
	bool write;
	bool peek;
	bool wait;
};

/* Errnos: what is asked for is not one's own, or cannot be had. */
int mrsoft_fault_advise(struct mrsoft_table *table, const struct mrsoft_pd *pd,
			const struct mrsoft_advice *advice,
			const struct ib_sge *sge);

#endif /* MRSOFT_FAULT_H */
