/* hand_out.h: text made in memory on its way to the caller. */
#ifndef INSPECT_HAND_OUT_H
#define INSPECT_HAND_OUT_H

#include "base/str.h"
#include "rlx/tools.h"

/* In one piece, unless memory ran out on the way or something else went wrong; frees it. */
static inline void hand_out(struct text *t, rlx_write_fn write, void *user, struct diag *d)
{
    if (d->first.status == RLX_OK && t->failed)
        diag_no_memory(d, t->len);
    if (d->first.status == RLX_OK && t->len)
        write(user, t->at, t->len);
    text_free(t);
}

#endif
