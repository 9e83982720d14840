/* conv_turned.h: a transposed convolution at stride 1 as an ordinary one. */
#ifndef BACKEND_CONV_TURNED_H
#define BACKEND_CONV_TURNED_H

#include "backend/cpu/kernels/conv/conv_core.h"

#define conv_turned_make CPU_NAME(conv_turned_make)
#define conv_turned_scratch CPU_NAME(conv_turned_scratch)
#define conv_turned_run CPU_NAME(conv_turned_run)

struct conv_turned {
    struct conv v;       /* forward; its w is the one below */
    struct cpu_tensor w; /* [groups * m, ch, taps]; no data yet */
    int64_t bytes;       /* of w */
};

/* How the transposed v is an ordinary one, which t refers to; false: it is not, or it is better
 * done as it is. */
bool conv_turned_make(const struct conv *v, struct conv_turned *t);
uint64_t conv_turned_scratch(const struct conv_turned *t, const struct pool *pool);
void conv_turned_run(const struct conv *v, struct conv_turned *t, struct pool *pool, void *scratch);

#endif
