// SPDX-License-Identifier: GPL-2.0
/*
 * diag.c - what a device tells in debugfs
 *
 * Owns:     /sys/kernel/debug/mrsoft/DEVICE and the form of its files: a line
 *           for each thing, columns that stay, "-" for what is not known.
 * Not here: remembering (diary.c), trace points (trace.h), counters.
 * Locks:    an entry is shown under its key.lock, so that its PD and its region
 *           are there; a QP under a hold.
 * Lifetime: a client of the core: the folder comes after the device is made and
 *           is gone before it is torn down.  Removal waits for readers inside,
 *           who print one line at a time and wait for nothing but a key.lock.
 * Context:  process.
 * Tests:    tools/testing/suites/diag.sh
 */
#include <linux/ctype.h>
#include <linux/debugfs.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/seq_file.h>

#include "dev.h"
#include "diag.h"
#include "diag_inject.h"
#include "diary.h"
#include "mw.h"
#include "qp.h"

static struct dentry *root;

static struct mrsoft_hca *hca_of(struct seq_file *m)
{
	return m->private;
}

/* Pid and name, in two columns without spaces. */
static void put_who(struct seq_file *m, const struct mrsoft_who *who)
{
	const char *c = who->comm;

	seq_printf(m, " %d ", who->pid);
	if (!*c)
		seq_putc(m, '-');
	for (; *c; c++)
		seq_putc(m, isgraph(*c) ? *c : '_');
}

static void put_time(struct seq_file *m, u64 ns)
{
	u32 rest;
	u64 s = div_u64_rem(ns, NSEC_PER_SEC, &rest);

	seq_printf(m, "%llu.%06u", s, rest / (u32)NSEC_PER_USEC);
}

/* --- diary: the last refusals, ended: the last keys that are gone -------- */

/* Into @entry, which is freed at the end. */
static void *diary_at(struct seq_file *m, loff_t *pos,
		      struct mrsoft_entry *entry)
{
	if (mrsoft_diary_read(hca_of(m)->stats.diary, *pos, entry)) {
		*pos = entry->seq;
		return entry;
	}
	kfree(entry);
	return NULL;
}

static void *diary_start(struct seq_file *m, loff_t *pos)
{
	struct mrsoft_entry *entry;

	if (!*pos)
		return SEQ_START_TOKEN;
	entry = kmalloc_obj(*entry);
	if (!entry)
		return ERR_PTR(-ENOMEM);
	return diary_at(m, pos, entry);
}

static void *diary_next(struct seq_file *m, void *v, loff_t *pos)
{
	struct mrsoft_entry *entry = v;

	++*pos;
	if (v == SEQ_START_TOKEN)
		return diary_start(m, pos);
	return diary_at(m, pos, entry);
}

static void diary_stop(struct seq_file *m, void *v)
{
	if (!IS_ERR_OR_NULL(v) && v != SEQ_START_TOKEN)
		kfree(v);
}

static int diary_show(struct seq_file *m, void *v)
{
	const struct mrsoft_entry *e = v;

	if (v == SEQ_START_TOKEN) {
		seq_puts(m, "# seq time times reason name qp peer pid comm op key addr length ended ago_us by_pid by_comm\n");
		return 0;
	}
	seq_printf(m, "%llu ", e->seq);
	put_time(m, e->ns);
	seq_printf(m, " %llu %d %s %u %u", e->times, e->what.reason,
		   mrsoft_reason_name(e->what.reason), e->what.qpn,
		   e->what.peer);
	put_who(m, &e->who);
	seq_printf(m, " %s %#x %#llx %llu %s %llu",
		   e->what.op ? e->what.op : "-", e->what.key, e->what.addr,
		   e->what.length, mrsoft_end_text(e->ended.how),
		   e->ended.how ? div_u64(e->ns - e->ended.ns,
					  NSEC_PER_USEC) : 0);
	put_who(m, &e->ended.by);
	seq_putc(m, '\n');
	return 0;
}

static const struct seq_operations diary_sops = {
	.start = diary_start,
	.next = diary_next,
	.stop = diary_stop,
	.show = diary_show,
};
DEFINE_SEQ_ATTRIBUTE(diary);

/* Into @ended, which is freed at the end. */
static void *ended_at(struct seq_file *m, loff_t *pos,
		      struct mrsoft_ended *ended)
{
	if (mrsoft_diary_read_end(hca_of(m)->stats.diary, *pos, ended)) {
		*pos = ended->seq;
		return ended;
	}
	kfree(ended);
	return NULL;
}

static void *ended_start(struct seq_file *m, loff_t *pos)
{
	struct mrsoft_ended *ended;

	if (!*pos)
		return SEQ_START_TOKEN;
	ended = kmalloc_obj(*ended);
	if (!ended)
		return ERR_PTR(-ENOMEM);
	return ended_at(m, pos, ended);
}

static void *ended_next(struct seq_file *m, void *v, loff_t *pos)
{
	struct mrsoft_ended *ended = v;

	++*pos;
	if (v == SEQ_START_TOKEN)
		return ended_start(m, pos);
	return ended_at(m, pos, ended);
}

static int ended_show(struct seq_file *m, void *v)
{
	const struct mrsoft_ended *ended = v;

	if (v == SEQ_START_TOKEN) {
		seq_puts(m, "# seq time key ended by_pid by_comm\n");
		return 0;
	}
	seq_printf(m, "%llu ", ended->seq);
	put_time(m, ended->ns);
	seq_printf(m, " %#x %s", ended->key, mrsoft_end_text(ended->how));
	put_who(m, &ended->by);
	seq_putc(m, '\n');
	return 0;
}

static const struct seq_operations ended_sops = {
	.start = ended_start,
	.next = ended_next,
	.stop = diary_stop,
	.show = ended_show,
};
DEFINE_SEQ_ATTRIBUTE(ended);

/* --- mrs: regions and windows; busy: what keeps regions and PDs ----------- */

/* The first entry at *@index or behind, with its memory kept; NULL: no more. */
static struct mrsoft_key *key_from(struct mrsoft_table *table,
				   unsigned long *index)
{
	struct mrsoft_key *key;

	rcu_read_lock();
	for (;; ++*index) {
		key = xa_find(&table->xa, index, ULONG_MAX, XA_PRESENT);
		if (!key || refcount_inc_not_zero(&key->users))
			break;
	}
	rcu_read_unlock();
	return key;
}

static struct mrsoft_window *window_of(struct mrsoft_key *key)
{
	return mrsoft_key_is_mw(key) ?
		container_of(key, struct mrsoft_window, key) : NULL;
}

static const char *kind_name(const struct mrsoft_key *key)
{
	static const char * const names[] = {
		[MRSOFT_KEY_MR_DMA]  = "dma",
		[MRSOFT_KEY_MR_USER] = "user",
		[MRSOFT_KEY_MR_FAST] = "fast",
		[MRSOFT_KEY_MR_DMABUF] = "dmabuf",
		[MRSOFT_KEY_MR_DM]   = "dm",
		[MRSOFT_KEY_MW_1]    = "mw1",
		[MRSOFT_KEY_MW_2]    = "mw2",
	};

	return key->kind < ARRAY_SIZE(names) ? names[key->kind] : "-";
}

static void *mrs_start(struct seq_file *m, loff_t *pos)
{
	unsigned long index = *pos;
	struct mrsoft_key *key;

	/* no entry has the index 0 */
	if (!*pos)
		return SEQ_START_TOKEN;
	key = key_from(&hca_of(m)->keys, &index);
	if (key)
		*pos = index;
	return key;
}

static void *mrs_next(struct seq_file *m, void *v, loff_t *pos)
{
	if (v != SEQ_START_TOKEN)
		mrsoft_key_put(v);
	++*pos;
	return mrs_start(m, pos);
}

static void mrs_stop(struct seq_file *m, void *v)
{
	if (v && v != SEQ_START_TOKEN)
		mrsoft_key_put(v);
}

/* Under key->lock, and not dead: its PD and, for a window, its region are there. */
static void show_key(struct seq_file *m, struct mrsoft_key *key)
{
	struct mrsoft_window *window = window_of(key);
	int owners = atomic_read(&key->owners);
	int holds = atomic_read(&key->holds);
	u64 pins = 0;

	lockdep_assert_held(&key->lock);
	if (!window)
		pins = mrsoft_pages_pins(key->pages);
	seq_printf(m, "%#x %s %s %u %#llx %llu %#x %d %d %llu %#x %u",
		   READ_ONCE(key->key), kind_name(key),
		   key->published ? "valid" : "free", key->pd->ib.res.id,
		   key->iova, key->length, key->access, max(owners, 0),
		   holds < 0 ? holds - MRSOFT_CLOSED : holds, pins,
		   window && window->mr ? READ_ONCE(window->mr->key) : 0,
		   window && window->mr ? window->by_qpn : 0);
	put_who(m, &key->who);
	seq_putc(m, '\n');
}

static int mrs_show(struct seq_file *m, void *v)
{
	struct mrsoft_key *key = v;

	if (v == SEQ_START_TOKEN) {
		seq_puts(m, "# key kind state pd addr length access owners holds pins mr qp pid comm\n");
		return 0;
	}
	/* ends: who has it changes one entry, which waits for copies only */
	mutex_lock(&key->lock);
	if (!key->dead)
		show_key(m, key);
	mutex_unlock(&key->lock);
	return 0;
}

static const struct seq_operations mrs_sops = {
	.start = mrs_start,
	.next = mrs_next,
	.stop = mrs_stop,
	.show = mrs_show,
};
DEFINE_SEQ_ATTRIBUTE(mrs);

static void busy_region(struct seq_file *m, struct mrsoft_key *key)
{
	struct mrsoft_window *window = window_of(key);

	if (!window || !window->mr)
		return;
	seq_printf(m, "mr %#x window %#x %s %u", READ_ONCE(window->mr->key),
		   READ_ONCE(key->key), kind_name(key), window->by_qpn);
	put_who(m, &key->who);
	seq_putc(m, '\n');
}

static void busy_pd(struct seq_file *m, struct mrsoft_key *key)
{
	seq_printf(m, "pd %u %s %#x %s 0", key->pd->ib.res.id,
		   mrsoft_key_is_mw(key) ? "window" : "mr",
		   READ_ONCE(key->key), kind_name(key));
	put_who(m, &key->who);
	seq_putc(m, '\n');
}

static void busy_keys(struct seq_file *m,
		      void (*show)(struct seq_file *m, struct mrsoft_key *key))
{
	struct mrsoft_key *key;
	unsigned long index;

	for (index = 0; (key = key_from(&hca_of(m)->keys, &index)); index++) {
		mutex_lock(&key->lock);
		if (!key->dead)
			show(m, key);
		mutex_unlock(&key->lock);
		mrsoft_key_put(key);
		cond_resched();
	}
}

static const char *qp_name(const struct mrsoft_qp *qp)
{
	switch (qp->type) {
	case IB_QPT_RC:
		return "rc";
	case IB_QPT_UC:
		return "uc";
	case IB_QPT_UD:
		return "ud";
	case IB_QPT_GSI:
		return "gsi";
	default:
		return "-";
	}
}

static void busy_qps(struct seq_file *m)
{
	struct mrsoft_hca *hca = hca_of(m);
	unsigned long qpn = 0;
	struct mrsoft_qp *qp;
	void *slot;

	for (;; qpn++) {
		slot = xa_find(&hca->qps, &qpn, ULONG_MAX, XA_PRESENT);
		if (!slot)
			return;
		qp = mrsoft_qp_get(hca, qpn);
		if (!qp)
			continue;
		seq_printf(m, "pd %u qp %u %s %u", qp->pd->ib.res.id, qp->qpn,
			   qp_name(qp), qp->qpn);
		put_who(m, &qp->who);
		seq_putc(m, '\n');
		mrsoft_qp_put(qp);
		cond_resched();
	}
}

/*
 * In one go: seq_file gives the reader all of it, and starts again with more room
 * when it does not fit.
 */
static int busy_show(struct seq_file *m, void *v)
{
	seq_puts(m, "# object id holder id kind qp pid comm\n");
	busy_keys(m, busy_region);
	busy_keys(m, busy_pd);
	busy_qps(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(busy);

/* --- folders -------------------------------------------------------------- */

static struct ib_client client;

static int add(struct ib_device *ibdev)
{
	struct mrsoft_hca *hca;
	struct dentry *dir;

	if (ibdev->ops.owner != THIS_MODULE)
		return -EOPNOTSUPP;
	hca = &mrsoft_dev(ibdev)->hca;
	dir = debugfs_create_dir(dev_name(&ibdev->dev), root);
	debugfs_create_file("diary", 0400, dir, hca, &diary_fops);
	debugfs_create_file("ended", 0400, dir, hca, &ended_fops);
	debugfs_create_file("mrs", 0400, dir, hca, &mrs_fops);
	debugfs_create_file("busy", 0400, dir, hca, &busy_fops);
	mrsoft_diag_inject_add(hca, dir);
	ib_set_client_data(ibdev, &client, dir);
	return 0;
}

static void remove(struct ib_device *ibdev, void *data)
{
	debugfs_remove_recursive(data);
	/* nobody writes one now */
	mrsoft_diag_inject_end(&mrsoft_dev(ibdev)->hca);
}

static void renamed(struct ib_device *ibdev, void *data)
{
	debugfs_change_name(data, "%s", dev_name(&ibdev->dev));
}

static struct ib_client client = {
	.name = "mrsoft",
	.add = add,
	.remove = remove,
	.rename = renamed,
};

/**
 * mrsoft_diag_init - devices that are made from now on have their folder
 *
 * Context: process.
 * Return: 0 or an error of the core.
 */
int mrsoft_diag_init(void)
{
	int err;

	root = debugfs_create_dir("mrsoft", NULL);
	err = ib_register_client(&client);
	if (err)
		debugfs_remove_recursive(root);
	return err;
}

/**
 * mrsoft_diag_exit - all devices are gone
 *
 * Context: process.
 */
void mrsoft_diag_exit(void)
{
	ib_unregister_client(&client);
	debugfs_remove_recursive(root);
}
