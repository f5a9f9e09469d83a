// SPDX-License-Identifier: GPL-2.0
/*
 * trace.c - the trace points of trace.h
 *
 * Owns:     their definitions.
 * Context:  any.
 * Tests:    tools/testing/suites/diag.sh
 */
#include "key.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
