// SPDX-License-Identifier: GPL-2.0
/*
 * main.c - the devices that the suites run on
 *
 * Owns:     the client of the core; which device is which.
 * Not here: objects (live.c), cases (*_live.c).
 * Lifetime: a suite has its devices from its start to its end; a device that goes
 *           before waits in remove for nobody, so do not remove one.
 * Context:  process.
 */
#include "live.h"

static char *devs = "mr0,mr1";
module_param(devs, charp, 0444);
MODULE_PARM_DESC(devs, "names of two devices");

static bool wire;
module_param(wire, bool, 0444);
MODULE_PARM_DESC(wire, "they talk in packets");

static char *spare = "";
module_param(spare, charp, 0444);
MODULE_PARM_DESC(spare, "name of a device that is unregistered");

#define LIVE_DEVS 2

static struct ib_device *live_devs[LIVE_DEVS];

static int which(const char *name)
{
	const char *comma = strchr(devs, ',');

	if (!comma)
		return -1;
	if (strlen(name) == comma - devs && !strncmp(name, devs, comma - devs))
		return 0;
	return strcmp(name, comma + 1) ? -1 : 1;
}

static struct ib_client client;

static int add_dev(struct ib_device *dev)
{
	int n = which(dev_name(&dev->dev));

	if (n < 0)
		return -EOPNOTSUPP;
	live_devs[n] = dev;
	ib_set_client_data(dev, &client, &live_devs[n]);
	return 0;
}

static void remove_dev(struct ib_device *dev, void *data)
{
	if (data)
		*(struct ib_device **)data = NULL;
}

static struct ib_client client = {
	.name = "kverbs",
	.add = add_dev,
	.remove = remove_dev,
};

int live_client_register(struct kunit_suite *suite)
{
	int err = ib_register_client(&client);

	if (err)
		return err;
	if (live_devs[0] && live_devs[1])
		return 0;
	pr_err("kverbs: no devices %s\n", devs);
	ib_unregister_client(&client);
	return -ENODEV;
}

/* Called after a start that failed as well. */
void live_client_unregister(struct kunit_suite *suite)
{
	if (live_devs[0] && live_devs[1])
		ib_unregister_client(&client);
}

struct ib_device *live_dev(int n)
{
	return live_devs[n];
}

void *live_client_data(struct ib_device *dev)
{
	return ib_get_client_data(dev, &client);
}

const char *live_spare(void)
{
	return spare;
}

bool live_is_wire(void)
{
	return wire;
}

/* The last takes the IPv6 addresses away: an MTU of 576 does. */
kunit_test_suites(&live_mr_suite, &live_cq_suite, &live_qp_suite, &live_rw_suite,
		  &live_dev_suite);

MODULE_DESCRIPTION("mrsoft: verbs of the kernel on live devices");
MODULE_LICENSE("GPL");
