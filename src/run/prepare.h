/* prepare.h: the kernels that a program with bounds may need at smaller sizes. */
#ifndef RUN_PREPARE_H
#define RUN_PREPARE_H

#include "lower/lower.h"
#include "run/program.h"

/* The device makes all kernels that the program may need, so that no run waits for one. For a
 * program that is not loaded yet. Sizes that it could not run at are skipped. */
rlx_status program_prepare(struct program *p, const struct size_probes *probes, struct diag *d);

/* The next size to look at after v: every size up to some number, and above that those that differ
 * in what kernels depend on: how often a size can be halved, and whether a tile is full. */
int64_t prepare_next(int64_t v);

#endif
