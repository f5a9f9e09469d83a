// SPDX-License-Identifier: GPL-2.0
/*
 * world.c - see world.h
 */
#include "world.h"

void world_open(struct world *w, const struct conf *conf, size_t size)
{
	w->c = ctx_open(NULL);
	pair_new(w->c, conf, &w->a, &w->b);
	w->mine = buf_new(w->c->pd, size, MR_ALL);
	w->theirs = buf_new(w->c->pd, size, MR_ALL);
}

void world_free(struct world *w)
{
	pair_free(&w->a, &w->b);
	buf_free(&w->mine);
	buf_free(&w->theirs);
	ctx_close(w->c);
}
