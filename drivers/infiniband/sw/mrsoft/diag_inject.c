// SPDX-License-Identifier: GPL-2.0
/*
 * diag_inject.c - the file in debugfs that asks for faults
 *
 * Owns:     /sys/kernel/debug/mrsoft/DEVICE/inject: a rule a write, a rule a line.
 * Not here: the form of rules (inject.c), the folder (diag.c).
 * Locks:    none.
 * Lifetime: the file goes before the device does, then the rules.
 * Context:  process.
 * Tests:    tools/testing/suites/inject.sh
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "diag_inject.h"
#include "impair.h"
#include "inject.h"
#include "qp.h"

static void show_rule(struct seq_file *m, const struct mrsoft_rule_state *state)
{
	const struct mrsoft_rule *rule = &state->rule;
	char text[MRSOFT_RULE_TEXT];

	mrsoft_inject_format(rule, text, sizeof(text));
	seq_printf(m, "%u %llu %llu ", rule->id, state->seen, state->hits);
	if (rule->count)
		seq_printf(m, "%llu", rule->count - state->hits);
	else
		seq_putc(m, '-');
	seq_printf(m, " %s\n", text);
}

static int inject_show(struct seq_file *m, void *v)
{
	struct mrsoft_hca *hca = m->private;
	struct mrsoft_rule_state state;
	u32 i;

	seq_puts(m, "# id seen hits left rule; packets: on the wire path only\n");
	for (i = 0; mrsoft_inject_read(&hca->stats, i, &state); i++)
		show_rule(m, &state);
	return 0;
}

static int inject_open(struct inode *inode, struct file *file)
{
	return single_open(file, inject_show, inode->i_private);
}

/* As hardware that gave up: the QP's owner is told. */
static int fail_qp(struct mrsoft_hca *hca, u32 qpn)
{
	struct mrsoft_qp *qp = mrsoft_qp_get(hca, qpn);
	int err = -EINVAL;

	if (!qp)
		return -ENOENT;
	/* not in RESET, nor twice */
	if (mrsoft_qp_error(qp)) {
		mrsoft_qp_refuse(qp, "error", MRSOFT_R_INJECTED);
		mrsoft_qp_event(qp, IB_EVENT_QP_FATAL);
		err = 0;
	}
	mrsoft_qp_put(qp);
	return err;
}

static int clear(struct mrsoft_hca *hca, const char *id)
{
	u32 number = 0;

	if (*id && (kstrtou32(id, 10, &number) || !number))
		return -EINVAL;
	if (mrsoft_inject_clear(&hca->stats, number))
		return -ENOENT;
	if (!number)
		mrsoft_impair_release(hca);
	return 0;
}

static int obey(struct mrsoft_hca *hca, const char *text)
{
	struct mrsoft_rule rule;
	int err;

	if (!strcmp(text, "clear"))
		return clear(hca, "");
	if (!strncmp(text, "clear ", 6))
		return text[6] ? clear(hca, text + 6) : -EINVAL;
	err = mrsoft_inject_parse(text, &rule);
	if (err)
		return err;
	if (mrsoft_inject_is_now(&rule))
		return fail_qp(hca, rule.qp);
	return mrsoft_inject_add(&hca->stats, &rule);
}

static ssize_t inject_write(struct file *file, const char __user *from,
			    size_t n, loff_t *pos)
{
	struct seq_file *m = file->private_data;
	char text[MRSOFT_RULE_TEXT + 1];
	int err;

	if (!n || n >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, n))
		return -EFAULT;
	if (text[n - 1] == '\n')
		text[n - 1] = '\0';
	text[n] = '\0';
	/* one line, and no byte that hides what is behind it */
	if (strlen(text) < n - 1 || strchr(text, '\n'))
		return -EINVAL;
	err = obey(m->private, text);
	return err ? err : n;
}

static const struct file_operations inject_fops = {
	.owner = THIS_MODULE,
	.open = inject_open,
	.read = seq_read,
	.write = inject_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/**
 * mrsoft_diag_inject_add - a device can be asked for faults
 * @hca: the device
 * @dir: its folder
 *
 * Context: process.
 */
void mrsoft_diag_inject_add(struct mrsoft_hca *hca, struct dentry *dir)
{
	debugfs_create_file("inject", 0600, dir, hca, &inject_fops);
}

/**
 * mrsoft_diag_inject_end - the end of all rules
 * @hca: the device, whose folder is gone
 *
 * Who is held goes on; packets that are held back are lost.
 *
 * Context: process.
 */
void mrsoft_diag_inject_end(struct mrsoft_hca *hca)
{
	mrsoft_inject_clear(&hca->stats, 0);
	mrsoft_impair_close(hca);
}
