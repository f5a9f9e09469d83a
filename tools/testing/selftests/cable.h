/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cable.h - a cable between two netdevs that loses what it is told to
 *
 * A thread passes frames between CABLE_A and CABLE_B, the far ends of the veth
 * pairs of two devices, and counts RoCEv2 packets by their opcode.
 */
#ifndef MRSOFT_SELFTESTS_CABLE_H
#define MRSOFT_SELFTESTS_CABLE_H

#include <stdint.h>

enum cable_act {
	CABLE_PASS,
	CABLE_DROP,
	CABLE_TWICE,	/* the same once more */
	CABLE_SPOIL,	/* one bit of the last byte before the ICRC changes */
	CABLE_LATE,	/* behind the next one of the same direction */
};

/**
 * struct cable_rule - what happens to which packet
 * @act: what
 * @opcode: of the BTH, or -1 for any
 * @nth: the first that it strikes, counted from 1
 * @count: how many, -1: all that follow
 */
struct cable_rule {
	enum cable_act act;
	int opcode;
	int nth;
	int count;
};

/* Starts the thread, once for a process; @rule may be NULL. */
void cable_start(const struct cable_rule *rule);
/* Another rule; counts start again. */
void cable_set(const struct cable_rule *rule);
/* How many with @opcode came, -1: any. */
unsigned int cable_seen(int opcode);
/* How many the rule struck. */
unsigned int cable_struck(void);
/* From now on all RoCEv2 packets are added to @path as well, in pcap format. */
void cable_capture(const char *path);

#endif /* MRSOFT_SELFTESTS_CABLE_H */
