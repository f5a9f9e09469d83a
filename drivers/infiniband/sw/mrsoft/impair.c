// SPDX-License-Identifier: GPL-2.0
/*
 * impair.c - packets that injection rules lose, double, spoil or hold back
 *
 * Owns:     what is done to a packet; packets that are held back.
 * Not here: which packet it is (inject.c), sending (udp.c), what comes (rx.c).
 * Locks:    late.lock (spin, BH, a leaf) covers the packets of a device that are
 *           held back.
 * Lifetime: a packet that is held back refers to nothing of ours: its QP is looked
 *           up anew.  Removing rules lets all go; after mrsoft_impair_close(),
 *           before the device is torn down, none is held.
 * Context:  xmit in process, rx in softirq or process.
 * Spec:     none; what a network may do, IBA Annex A17
 * Tests:    tools/testing/selftests/impair.c
 */
#include <linux/slab.h>

#include "impair.h"
#include "inject.h"

/* More are not held back but go on. */
#define MAX_LATE	1024u

/**
 * struct late - a packet that is held back
 * @entry: of mrsoft_late.packets
 * @skb: from BTH to payload; @rx: as rx.c has it
 * @qpn: whose it is
 * @rx: it has come
 * @behind: goes on behind the next one of its QP and direction
 * @due: jiffies, when it goes on in any case
 * @av: tx: where to
 * @sport: tx: UDP source port
 * @sgid: rx: where from
 * @dgid: rx: where to
 */
struct late {
	struct list_head entry;
	struct sk_buff *skb;
	u32 qpn;
	bool rx;
	bool behind;
	unsigned long due;
	struct mrsoft_av av;
	u16 sport;
	union ib_gid sgid;
	union ib_gid dgid;
};

static mrsoft_deliver_fn *deliver;

/**
 * mrsoft_impair_set_rx - packets that come are delivered so
 * @fn: called in softirq or process context
 *
 * Context: once, before the first device.
 */
void mrsoft_impair_set_rx(mrsoft_deliver_fn *fn)
{
	deliver = fn;
}

/* Sends or delivers.  The QP of a packet that came may be gone. */
static void go_on(struct mrsoft_hca *hca, struct late *late)
{
	struct mrsoft_qp *qp = NULL;

	if (!late->rx) {
		mrsoft_udp_xmit(hca->udp, &late->av, late->sport, hca->ifindex,
				NULL, late->skb);
	} else {
		qp = mrsoft_qp_get(hca, late->qpn);
		if (!qp || deliver(qp, late->skb, &late->sgid, &late->dgid))
			kfree_skb(late->skb);
	}
	if (qp)
		mrsoft_qp_put(qp);
	kfree(late);
}

/* When the next one is due, with the lock held; -1: there is none. */
static long next_due(const struct mrsoft_late *lates)
{
	const struct late *late;
	long delay = -1, left;

	lockdep_assert_held(&lates->lock);
	list_for_each_entry(late, &lates->packets, entry) {
		left = max_t(long, late->due - jiffies, 0);
		if (delay < 0 || left < delay)
			delay = left;
	}
	return delay;
}

static void late_work(struct work_struct *work)
{
	struct mrsoft_late *lates = container_of(to_delayed_work(work),
						 struct mrsoft_late, work);
	struct mrsoft_hca *hca = container_of(lates, struct mrsoft_hca, late);
	struct late *late, *next;
	LIST_HEAD(due);
	long delay;

	spin_lock_bh(&lates->lock);
	list_for_each_entry_safe(late, next, &lates->packets, entry) {
		if (time_before(jiffies, late->due))
			continue;
		list_move_tail(&late->entry, &due);
		lates->num--;
	}
	delay = next_due(lates);
	if (delay >= 0 && !lates->closed)
		mod_delayed_work(hca->wq, &lates->work, delay);
	spin_unlock_bh(&lates->lock);
	list_for_each_entry_safe(late, next, &due, entry)
		go_on(hca, late);
}

/**
 * mrsoft_impair_init - nothing is held back
 * @hca: a new device
 *
 * Context: process.
 */
void mrsoft_impair_init(struct mrsoft_hca *hca)
{
	spin_lock_init(&hca->late.lock);
	INIT_LIST_HEAD(&hca->late.packets);
	INIT_DELAYED_WORK(&hca->late.work, late_work);
}

/**
 * mrsoft_impair_release - what is held back goes on now
 * @hca: the device
 *
 * Context: process.
 */
void mrsoft_impair_release(struct mrsoft_hca *hca)
{
	struct mrsoft_late *lates = &hca->late;
	struct late *late;

	spin_lock_bh(&lates->lock);
	list_for_each_entry(late, &lates->packets, entry)
		late->due = jiffies;
	if (!lates->closed)
		mod_delayed_work(hca->wq, &lates->work, 0);
	spin_unlock_bh(&lates->lock);
}

/**
 * mrsoft_impair_close - nothing is held back any more
 * @hca: on its way out
 *
 * What is held is lost.  May be called again.
 *
 * Context: process, sleeps.
 */
void mrsoft_impair_close(struct mrsoft_hca *hca)
{
	struct mrsoft_late *lates = &hca->late;
	struct late *late, *next;
	LIST_HEAD(lost);

	spin_lock_bh(&lates->lock);
	lates->closed = true;
	list_splice_init(&lates->packets, &lost);
	lates->num = 0;
	spin_unlock_bh(&lates->lock);
	/* it is not queued again: closed */
	cancel_delayed_work_sync(&lates->work);
	list_for_each_entry_safe(late, next, &lost, entry) {
		kfree_skb(late->skb);
		kfree(late);
	}
}

/* False: it goes on now. */
static bool hold_back(struct mrsoft_hca *hca, struct late *late,
		      const struct mrsoft_injection *in)
{
	struct mrsoft_late *lates = &hca->late;
	bool held;

	late->behind = in->action == MRSOFT_DO_REORDER;
	late->due = jiffies + msecs_to_jiffies(late->behind ?
					       MRSOFT_REORDER_MS : in->ms);
	spin_lock_bh(&lates->lock);
	held = !lates->closed && lates->num < MAX_LATE;
	if (held) {
		lates->num++;
		list_add_tail(&late->entry, &lates->packets);
		mod_delayed_work(hca->wq, &lates->work, next_due(lates));
	}
	spin_unlock_bh(&lates->lock);
	return held;
}

/* A packet of @qp has passed: those that were to be overtaken follow. */
static void follow(struct mrsoft_qp *qp, bool rx)
{
	struct mrsoft_late *lates = &qp->hca->late;
	struct late *late, *next;
	LIST_HEAD(list);

	spin_lock_bh(&lates->lock);
	list_for_each_entry_safe(late, next, &lates->packets, entry) {
		if (!late->behind || late->rx != rx || late->qpn != qp->qpn)
			continue;
		list_move_tail(&late->entry, &list);
		lates->num--;
	}
	spin_unlock_bh(&lates->lock);
	list_for_each_entry_safe(late, next, &list, entry)
		go_on(qp->hca, late);
}

/* True: a rule strikes, and the diary knows. */
static bool struck(struct mrsoft_qp *qp, bool rx, struct mrsoft_injection *in)
{
	struct mrsoft_occasion now = {
		.event = MRSOFT_ON_PACKET, .qpn = qp->qpn, .rx = rx,
	};

	if (!mrsoft_inject(&qp->hca->stats, &now, in))
		return false;
	mrsoft_qp_refuse(qp, in->op, MRSOFT_R_INJECTED);
	return true;
}

static struct late *new_late(struct mrsoft_qp *qp, struct sk_buff *skb, bool rx)
{
	struct late *late = kzalloc_obj(*late, GFP_ATOMIC);

	if (!late)
		return NULL;
	late->skb = skb;
	late->qpn = qp->qpn;
	late->rx = rx;
	return late;
}

static bool xmit_now(struct mrsoft_qp *qp, const struct mrsoft_av *av,
		     u16 sport, struct mrsoft_route *route, struct sk_buff *skb)
{
	bool ok = mrsoft_udp_xmit(qp->hca->udp, av, sport, qp->hca->ifindex,
				  route, skb);

	if (mrsoft_inject_on(&qp->hca->stats))
		follow(qp, false);
	return ok;
}

/* Without memory, or with too many held, it is as if no rule had been. */
static bool xmit_late(struct mrsoft_qp *qp, const struct mrsoft_av *av,
		      u16 sport, struct mrsoft_route *route, struct sk_buff *skb,
		      const struct mrsoft_injection *in)
{
	struct late *late = new_late(qp, skb, false);

	if (!late)
		return xmit_now(qp, av, sport, route, skb);
	late->av = *av;
	late->sport = sport;
	if (hold_back(qp->hca, late, in))
		return true;
	kfree(late);
	return xmit_now(qp, av, sport, route, skb);
}

/**
 * mrsoft_impair_xmit - send a packet, as the rules say
 * @qp: whose it is
 * @av: where to
 * @sport: UDP source port
 * @route: remembers the way, or NULL
 * @skb: see mrsoft_udp_xmit()
 *
 * Context: process.
 * Return: as mrsoft_udp_xmit(); a packet that a rule lost is sent, as far as its
 * sender knows.
 */
bool mrsoft_impair_xmit(struct mrsoft_qp *qp, const struct mrsoft_av *av,
			u16 sport, struct mrsoft_route *route,
			struct sk_buff *skb)
{
	struct mrsoft_injection in;
	struct sk_buff *copy;

	if (!struck(qp, false, &in))
		return xmit_now(qp, av, sport, route, skb);
	switch (in.action) {
	case MRSOFT_DO_DROP:
		kfree_skb(skb);
		return true;
	case MRSOFT_DO_CORRUPT:
		mrsoft_udp_spoil(skb);
		break;
	case MRSOFT_DO_DUPLICATE:
		/* not a clone: headers come in front */
		copy = skb_copy(skb, GFP_KERNEL);
		if (copy)
			mrsoft_udp_xmit(qp->hca->udp, av, sport,
					qp->hca->ifindex, route, copy);
		break;
	default:
		return xmit_late(qp, av, sport, route, skb, &in);
	}
	return xmit_now(qp, av, sport, route, skb);
}

static enum mrsoft_reason rx_now(struct mrsoft_qp *qp, struct sk_buff *skb,
				 const union ib_gid *sgid,
				 const union ib_gid *dgid)
{
	enum mrsoft_reason reason = deliver(qp, skb, sgid, dgid);

	if (mrsoft_inject_on(&qp->hca->stats))
		follow(qp, true);
	return reason;
}

static enum mrsoft_reason rx_late(struct mrsoft_qp *qp, struct sk_buff *skb,
				  const union ib_gid *sgid,
				  const union ib_gid *dgid,
				  const struct mrsoft_injection *in)
{
	struct late *late = new_late(qp, skb, true);

	if (!late)
		return rx_now(qp, skb, sgid, dgid);
	late->sgid = *sgid;
	late->dgid = *dgid;
	if (hold_back(qp->hca, late, in))
		return MRSOFT_R_NONE;
	kfree(late);
	return rx_now(qp, skb, sgid, dgid);
}

/**
 * mrsoft_impair_rx - a packet has come, and goes as the rules say
 * @qp: for whom, held
 * @skb: checked
 * @sgid: where it comes from
 * @dgid: where it went
 *
 * Context: softirq or process, without a lock of ours.
 * Return: as the function of mrsoft_impair_set_rx().
 */
enum mrsoft_reason mrsoft_impair_rx(struct mrsoft_qp *qp, struct sk_buff *skb,
				    const union ib_gid *sgid,
				    const union ib_gid *dgid)
{
	struct mrsoft_injection in;
	struct sk_buff *copy;

	if (!struck(qp, true, &in))
		return rx_now(qp, skb, sgid, dgid);
	switch (in.action) {
	case MRSOFT_DO_DROP:
		kfree_skb(skb);
		return MRSOFT_R_NONE;
	case MRSOFT_DO_CORRUPT:
		/* it was right, and is refused as if it had not been */
		return MRSOFT_R_PKT_ICRC;
	case MRSOFT_DO_DUPLICATE:
		/* shares the bytes, which nobody changes */
		copy = skb_clone(skb, GFP_ATOMIC);
		if (copy && deliver(qp, copy, sgid, dgid))
			kfree_skb(copy);
		break;
	default:
		return rx_late(qp, skb, sgid, dgid, &in);
	}
	return rx_now(qp, skb, sgid, dgid);
}
