/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ah.h - address handle: where a UD message goes
 *
 * Layer 3.  Looked up by number (user space) or by pointer (kernel).
 */
#ifndef MRSOFT_AH_H
#define MRSOFT_AH_H

#include <rdma/ib_addr.h>
#include <rdma/ib_verbs.h>

#include "limits.h"
#include "pd.h"

/* What the core says for a netdev that is no VLAN. */
#define MRSOFT_NO_VLAN	0xffff

/**
 * struct mrsoft_av - an address, resolved
 * @dgid: destination
 * @sgid: source
 * @dmac: destination MAC, as resolved by the core
 * @traffic_class: for the header
 * @hop_limit: for the header
 * @flow_label: for the header
 * @sgid_index: in our GID table
 * @sl: service level
 * @ipv4: both GIDs are IPv4-mapped
 * @ifindex: netdev that has the source GID, the port's or a VLAN above; 0: unknown
 * @vlan: of that netdev, or MRSOFT_NO_VLAN
 */
struct mrsoft_av {
	union ib_gid dgid;
	union ib_gid sgid;
	u8 dmac[ETH_ALEN];
	u8 traffic_class;
	u8 hop_limit;
	u32 flow_label;
	u8 sgid_index;
	u8 sl;
	bool ipv4;
	u32 ifindex;
	u16 vlan;
};

/**
 * struct mrsoft_ah - address handle
 * @ib: the core's part, must be first
 * @ah_num: number in hca->ahs for user space, 0 for a kernel AH
 * @lock: protects @av against modify_ah
 * @av: the address
 * @attr: as given, for query_ah
 */
struct mrsoft_ah {
	struct ib_ah ib;
	u32 ah_num;
	spinlock_t lock; /* av */
	struct mrsoft_av av;
	struct rdma_ah_attr attr;
};

static inline struct mrsoft_ah *mrsoft_ah(struct ib_ah *ibah)
{
	return container_of(ibah, struct mrsoft_ah, ib);
}

struct mrsoft_hca;

/* ::ffff:224.0.0.0/100, which is an IPv4 group, or ff00::/8 */
static inline bool mrsoft_gid_is_group(const union ib_gid *gid)
{
	return rdma_is_multicast_addr((struct in6_addr *)gid->raw);
}

void mrsoft_av_set(struct mrsoft_av *av, const struct rdma_ah_attr *attr);
/* The 40 bytes that a UD receive finds in front of its payload. */
void mrsoft_av_grh(const struct mrsoft_av *av, u32 payload, u8 *grh);

/* Numbers for user space: kernel AHs are not in the table. */
int mrsoft_ah_publish(struct mrsoft_hca *hca, struct mrsoft_ah *ah);
void mrsoft_ah_unpublish(struct mrsoft_hca *hca, struct mrsoft_ah *ah);
/* Copies the address of @ah_num; false if there is none in @pd. */
bool mrsoft_ah_read(struct mrsoft_hca *hca, u32 ah_num,
		    const struct mrsoft_pd *pd, struct mrsoft_av *av);

#endif /* MRSOFT_AH_H */
