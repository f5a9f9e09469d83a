// SPDX-License-Identifier: GPL-2.0
/*
 * mad.c - management datagrams: the performance counters of the port
 *
 * Owns:     answers of the performance management class.
 * Not here: QP 1 and all other classes (ib_mad and its agents), counting
 *           (struct mrsoft_stats, status.h).
 * Locks:    pma->lock, leaf, so that a clear is one step for who reads.
 * Lifetime: part of the device.
 * Context:  process; readers of sysfs, and ib_mad's worker.
 * Spec:     IBA Vol 1, 13.4 (MADs), 16.1 (performance management)
 * Tests:    kunit/mad_kunit.c, tools/testing/suites/mad.sh
 */
#include <linux/unaligned.h>
#include <rdma/ib_pma.h>

#include "dev.h"
#include "mad.h"

#define PMA_CLASS_VERSION	1

/* 4.096 us * 2^18: one second, for a busy machine. */
#define PMA_RESP_TIME		18

/* PortSelect of every port at once. */
#define PMA_ALL_PORTS		0xff

/**
 * struct field - a counter in an attribute
 * @select: its bit in CounterSelect
 * @offset: bytes from the start of the attribute
 * @size: bytes; the counter stays at the largest number that they hold
 * @value: where it comes from, enum mrsoft_pma_value
 */
struct field {
	__be16 select;
	u8 offset;
	u8 size;
	u8 value;
};

#define FIELD(type, name, bytes, sel, from) {				\
	.select = (sel), .offset = offsetof(struct type, name),		\
	.size = (bytes), .value = (from) }

/* A counter that is in no list never counts: there is no such thing here. */
static const struct field fields[] = {
	FIELD(ib_pma_portcounters, port_rcv_errors, 2,
	      IB_PMA_SEL_PORT_RCV_ERRORS, MRSOFT_PMA_RCV_ERRORS),
	FIELD(ib_pma_portcounters, port_xmit_discards, 2,
	      IB_PMA_SEL_PORT_XMIT_DISCARDS, MRSOFT_PMA_XMIT_DISCARDS),
	FIELD(ib_pma_portcounters, port_xmit_data, 4,
	      IB_PMA_SEL_PORT_XMIT_DATA, MRSOFT_PMA_XMIT_DATA),
	FIELD(ib_pma_portcounters, port_rcv_data, 4,
	      IB_PMA_SEL_PORT_RCV_DATA, MRSOFT_PMA_RCV_DATA),
	FIELD(ib_pma_portcounters, port_xmit_packets, 4,
	      IB_PMA_SEL_PORT_XMIT_PACKETS, MRSOFT_PMA_XMIT_PACKETS),
	FIELD(ib_pma_portcounters, port_rcv_packets, 4,
	      IB_PMA_SEL_PORT_RCV_PACKETS, MRSOFT_PMA_RCV_PACKETS),
};

static const struct field fields_ext[] = {
	FIELD(ib_pma_portcounters_ext, port_xmit_data, 8,
	      IB_PMA_SELX_PORT_XMIT_DATA, MRSOFT_PMA_XMIT_DATA),
	FIELD(ib_pma_portcounters_ext, port_rcv_data, 8,
	      IB_PMA_SELX_PORT_RCV_DATA, MRSOFT_PMA_RCV_DATA),
	FIELD(ib_pma_portcounters_ext, port_xmit_packets, 8,
	      IB_PMA_SELX_PORT_XMIT_PACKETS, MRSOFT_PMA_XMIT_PACKETS),
	FIELD(ib_pma_portcounters_ext, port_rcv_packets, 8,
	      IB_PMA_SELX_PORT_RCV_PACKETS, MRSOFT_PMA_RCV_PACKETS),
};

static u64 reason(const struct mrsoft_stats *stats, enum mrsoft_reason why)
{
	return atomic64_read(&stats->reasons[why]);
}

static void read_values(const struct mrsoft_stats *stats, u64 *values)
{
	/* what came damaged or malformed, or found no room: IBA 16.1.3.5 */
	values[MRSOFT_PMA_RCV_ERRORS] = reason(stats, MRSOFT_R_PKT_LENGTH) +
					reason(stats, MRSOFT_R_PKT_HEADER) +
					reason(stats, MRSOFT_R_PKT_ICRC) +
					reason(stats, MRSOFT_R_PKT_QUEUE);
	values[MRSOFT_PMA_XMIT_DISCARDS] = reason(stats, MRSOFT_R_PORT_DOWN);
	values[MRSOFT_PMA_XMIT_DATA] = atomic64_read(&stats->tx_bytes);
	values[MRSOFT_PMA_RCV_DATA] = atomic64_read(&stats->rx_bytes);
	values[MRSOFT_PMA_XMIT_PACKETS] = atomic64_read(&stats->tx_packets);
	values[MRSOFT_PMA_RCV_PACKETS] = atomic64_read(&stats->rx_packets);
}

static bool is_data(const struct field *field)
{
	return field->value == MRSOFT_PMA_XMIT_DATA ||
	       field->value == MRSOFT_PMA_RCV_DATA;
}

static void put_counter(const struct field *field, u64 count, void *attr)
{
	void *to = attr + field->offset;

	/* data is counted in words of 4 bytes */
	if (is_data(field))
		count /= 4;
	switch (field->size) {
	case 2:
		put_unaligned_be16(min_t(u64, count, U16_MAX), to);
		break;
	case 4:
		put_unaligned_be32(min_t(u64, count, U32_MAX), to);
		break;
	default:
		put_unaligned_be64(count, to);
	}
}

/* @base: of this attribute.  What a Set selects starts from zero again. */
static void counters(struct mrsoft_pma *pma, const struct mrsoft_stats *stats,
		     const struct field *field, size_t n, u64 *base,
		     __be16 clear, void *attr)
{
	u64 now[MRSOFT_PMA_VALUES];

	spin_lock(&pma->lock);
	/* under the lock, so that nobody's base is ahead of our values */
	read_values(stats, now);
	for (; n--; field++) {
		if (field->select & clear)
			base[field->value] = now[field->value];
		put_counter(field, now[field->value] - base[field->value],
			    attr);
	}
	spin_unlock(&pma->lock);
}

static __be16 answer_class_port_info(const struct ib_mad *in, void *data)
{
	struct ib_class_port_info *info = data;

	if (in->mad_hdr.method != IB_MGMT_METHOD_GET)
		return cpu_to_be16(IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);
	*info = (struct ib_class_port_info) {
		.base_version = IB_MGMT_BASE_VERSION,
		.class_version = PMA_CLASS_VERSION,
		/* 64 bits wide, without those of unicast and multicast */
		.capability_mask = IB_PMA_CLASS_CAP_ALLPORTSELECT |
				   IB_PMA_CLASS_CAP_EXT_WIDTH_NOIETF,
		.cap_mask2_resp_time = cpu_to_be32(PMA_RESP_TIME),
	};
	return 0;
}

/* Both attributes have it in the same place. */
static bool port_selected(const void *data)
{
	const struct ib_pma_portcounters *attr = data;

	static_assert(offsetof(struct ib_pma_portcounters, port_select) ==
		      offsetof(struct ib_pma_portcounters_ext, port_select));
	static_assert(offsetof(struct ib_pma_portcounters, counter_select) ==
		      offsetof(struct ib_pma_portcounters_ext, counter_select));
	return attr->port_select == MRSOFT_PORT ||
	       attr->port_select == PMA_ALL_PORTS;
}

static __be16 answer_counters(struct mrsoft_pma *pma,
			      const struct mrsoft_stats *stats,
			      const struct ib_mad *in, void *data)
{
	struct ib_pma_portcounters_ext *wide = data;
	struct ib_pma_portcounters *attr = data;
	__be16 select = attr->counter_select, clear = 0;
	u8 port = attr->port_select;

	if (!port_selected(data))
		return cpu_to_be16(IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE);
	if (in->mad_hdr.method == IB_MGMT_METHOD_SET)
		clear = select;
	if (in->mad_hdr.attr_id == IB_PMA_PORT_COUNTERS_EXT) {
		*wide = (struct ib_pma_portcounters_ext) {
			.port_select = port,
			.counter_select = select,
		};
		counters(pma, stats, fields_ext, ARRAY_SIZE(fields_ext),
			 pma->base_ext, clear, wide);
		return 0;
	}
	*attr = (struct ib_pma_portcounters) {
		.port_select = port,
		.counter_select = select,
	};
	counters(pma, stats, fields, ARRAY_SIZE(fields), pma->base, clear,
		 attr);
	return 0;
}

/* The status of the answer, whose @data may be written over.  IBA 13.4.7. */
static __be16 answer(struct mrsoft_pma *pma, const struct mrsoft_stats *stats,
		     const struct ib_mad *in, void *data)
{
	const struct ib_mad_hdr *hdr = &in->mad_hdr;

	if (hdr->class_version != PMA_CLASS_VERSION)
		return cpu_to_be16(IB_MGMT_MAD_STATUS_BAD_VERSION);
	if (hdr->method != IB_MGMT_METHOD_GET &&
	    hdr->method != IB_MGMT_METHOD_SET)
		return cpu_to_be16(IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD);
	/* not a switch: constants of that byte order are none for sparse */
	if (hdr->attr_id != IB_PMA_CLASS_PORT_INFO &&
	    hdr->attr_id != IB_PMA_PORT_COUNTERS &&
	    hdr->attr_id != IB_PMA_PORT_COUNTERS_EXT)
		return cpu_to_be16(IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);
	/* no attribute of this class has a modifier that means something */
	if (hdr->attr_mod)
		return cpu_to_be16(IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE);
	if (hdr->attr_id == IB_PMA_CLASS_PORT_INFO)
		return answer_class_port_info(in, data);
	return answer_counters(pma, stats, in, data);
}

/* Are there no answers to it? */
static bool is_unanswered(const struct ib_mad_hdr *hdr)
{
	return ib_response_mad(hdr) || hdr->method == IB_MGMT_METHOD_TRAP;
}

/**
 * mrsoft_pma_init - counters start at zero
 * @pma: zeroed memory
 *
 * Context: any.
 */
void mrsoft_pma_init(struct mrsoft_pma *pma)
{
	spin_lock_init(&pma->lock);
}

/**
 * mrsoft_mad_answer - answer a MAD of the performance management class
 * @pma: of the port
 * @stats: what the device has counted; not changed by a Set
 * @in: what came
 * @out: the answer, may be any memory
 *
 * A refusal is the request with another method and status.
 *
 * Context: process.
 * Return: true if there is an answer; else @out is as it was and somebody else
 * may want @in.
 */
bool mrsoft_mad_answer(struct mrsoft_pma *pma, struct mrsoft_stats *stats,
		       const struct ib_mad *in, struct ib_mad *out)
{
	struct ib_pma_mad *mad = (void *)out;

	static_assert(sizeof(*mad) == sizeof(*out));
	if (in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT ||
	    is_unanswered(&in->mad_hdr))
		return false;
	*out = *in;
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	out->mad_hdr.status = answer(pma, stats, in, mad->data);
	return true;
}

static int process_mad(struct ib_device *ibdev, int flags, u32 port,
		       const struct ib_wc *wc, const struct ib_grh *grh,
		       const struct ib_mad *in, struct ib_mad *out,
		       size_t *out_size, u16 *out_pkey_index)
{
	struct mrsoft_dev *dev = mrsoft_dev(ibdev);

	if (port != MRSOFT_PORT)
		return IB_MAD_RESULT_FAILURE;
	if (mrsoft_mad_answer(&dev->pma, &dev->hca.stats, in, out))
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
	return IB_MAD_RESULT_SUCCESS;
}

const struct ib_device_ops mrsoft_mad_ops = {
	.process_mad = process_mad,
};
