/* SPDX-License-Identifier: GPL-2.0 */
/*
 * umad.h - management datagrams through /dev/infiniband/umadN
 */
#ifndef MRSOFT_SELFTESTS_UMAD_H
#define MRSOFT_SELFTESTS_UMAD_H

#include <rdma/ib_user_mad.h>

#include "lib.h"

#define MAD_BYTES 256
#define MAD_GET 0x01
#define MAD_SET 0x02
#define MAD_GET_RESP 0x81
#define MAD_PERF 0x04
#define QP1_QKEY 0x80010000u

/* offsets in a MAD: IBA 13.4.2, 16.1.1 */
#define MAD_CLASS 1
#define MAD_CLASS_VERSION 2
#define MAD_METHOD 3
#define MAD_STATUS 4
#define MAD_TID 8
#define MAD_ATTR 16
#define MAD_MODIFIER 20
#define MAD_DATA 64

/* A packet as the file has it. */
struct umad_packet {
	struct ib_user_mad_hdr hdr;
	uint8_t mad[MAD_BYTES];
};

uint64_t be_get(const void *p, unsigned int bytes);
void be_put(void *p, unsigned int bytes, uint64_t value);
/* The file of @device, or -1. */
int umad_open(const char *device);
/* The id of an agent for answers, or -1. */
int umad_agent(int fd, uint8_t class, uint8_t version);
/* To QP 1 at a GID; the rest of the packet is zero. */
void umad_address(struct umad_packet *p, int agent, const union ibv_gid *gid,
		  int gid_index);

#endif /* MRSOFT_SELFTESTS_UMAD_H */
