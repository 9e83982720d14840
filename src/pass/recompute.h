/* recompute.h: what computing values again costs and saves: see recompute.c. */
#ifndef PASS_RECOMPUTE_H
#define PASS_RECOMPUTE_H

#include <stddef.h>
#include <stdint.h>

/* Zero: nothing was asked for. */
struct recompute_report {
    size_t nodes;               /* that run once more */
    uint64_t flops, flops_once; /* of those, and of all the others */
    uint64_t bytes, bytes_kept; /* alive at once, and if everything were kept */
};

#endif
