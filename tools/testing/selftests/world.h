/* SPDX-License-Identifier: GPL-2.0 */
/*
 * world.h - what most programs begin with: a device, a pair, a region at each end
 *
 * Programs that need more have a struct world of their own.
 */
#ifndef MRSOFT_SELFTESTS_WORLD_H
#define MRSOFT_SELFTESTS_WORLD_H

#include "lib.h"

/* @mine is for a to use, @theirs for b; each may do all. */
struct world {
	struct ctx *c;
	struct end a, b;
	struct buf mine, theirs;
};

void world_open(struct world *w, const struct conf *conf, size_t size);
void world_free(struct world *w);

#endif /* MRSOFT_SELFTESTS_WORLD_H */
