// SPDX-License-Identifier: GPL-2.0
/*
 * counters.c - counters of a port, as rdma statistic shows them
 *
 * Owns:     the names and the order of the counters.
 * Not here: counting (struct mrsoft_stats, status.h).
 * Locks:    none; the core serialises readers, the counters are atomics.
 * Lifetime: the descriptions are written once, before the first device.
 * Context:  process context.
 * Spec:     none, these are ours
 * Tests:    tools/testing/suites/link.sh
 */
#include <linux/kernel.h>
#include <linux/stddef.h>

#include "counters.h"
#include "dev.h"

struct counter {
	const char *name;
	size_t offset;
};

#define COUNTER(field) { #field, offsetof(struct mrsoft_stats, field) }

static const struct counter counters[] = {
	COUNTER(tx_msgs),
	COUNTER(rx_msgs),
	COUNTER(tx_bytes),
	COUNTER(rx_bytes),
	COUNTER(tx_packets),
	COUNTER(rx_packets),
	COUNTER(rnr_waits),
	COUNTER(retries),
	COUNTER(retransmits),
	COUNTER(duplicates),
	COUNTER(page_faults),
};

/* Reason 0 is "not refused" and has no counter. */
#define REASONS		(MRSOFT_R_COUNT - 1)
#define DESCS		(ARRAY_SIZE(counters) + REASONS)

static char reason_names[REASONS][32];
static struct rdma_stat_desc descs[DESCS];

/**
 * mrsoft_counters_init - name the counters
 *
 * Context: once, before the first device is made.
 */
void mrsoft_counters_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(counters); i++)
		descs[i].name = counters[i].name;
	for (i = 0; i < REASONS; i++) {
		snprintf(reason_names[i], sizeof(reason_names[i]), "refused_%s",
			 mrsoft_reason_name(i + 1));
		descs[ARRAY_SIZE(counters) + i].name = reason_names[i];
	}
}

static struct rdma_hw_stats *alloc_hw_port_stats(struct ib_device *ibdev,
						 u32 port)
{
	return rdma_alloc_hw_stats_struct(descs, ARRAY_SIZE(descs),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static int get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
			u32 port, int index)
{
	struct mrsoft_stats *from = &mrsoft_dev(ibdev)->hca.stats;
	u64 *value = stats->value;
	unsigned int i;

	if (port != MRSOFT_PORT)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(counters); i++) {
		atomic64_t *counter = (void *)from + counters[i].offset;

		*value++ = atomic64_read(counter);
	}
	for (i = 0; i < REASONS; i++)
		*value++ = atomic64_read(&from->reasons[i + 1]);
	return ARRAY_SIZE(descs);
}

const struct ib_device_ops mrsoft_counters_ops = {
	.alloc_hw_port_stats = alloc_hw_port_stats,
	.get_hw_stats = get_hw_stats,
};
