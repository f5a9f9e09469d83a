// SPDX-License-Identifier: GPL-2.0
/*
 * paging.c - see paging.h
 */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "paging.h"

void need_odp(struct ctx *c, uint64_t caps)
{
	struct ibv_device_attr_ex attr;

	OK(ibv_query_device_ex(c->ibv, NULL, &attr));
	if ((attr.odp_caps.general_caps & caps) != caps)
		t_skip("a kernel without on-demand paging");
}

void map_again(void *p, size_t len, int prot)
{
	CHECK(mmap(p, len, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		   0) == p);
}

void look_again(void)
{
	syscall(SYS_getppid);
}

static void *churning(void *arg)
{
	struct churn *c = arg;
	unsigned int seed = 1;

	while (!c->stop) {
		c->turn(c, rand_r(&seed) % (c->len / PAGE) * PAGE);
		c->rounds++;
	}
	return NULL;
}

void churn_start(struct churn *c, uint8_t *p, size_t len,
		 void (*turn)(struct churn *c, size_t at))
{
	*c = (struct churn){ .p = p, .len = len, .turn = turn };
	CHECK(!pthread_create(&c->thread, NULL, churning, c));
}

void churn_stop(struct churn *c)
{
	c->stop = true;
	CHECK(!pthread_join(c->thread, NULL));
}
