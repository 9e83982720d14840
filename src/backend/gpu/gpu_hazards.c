/* gpu_hazards.c: where a barrier is needed: between a write and whatever touches the same bytes
 * next, and between a read and a write. */
#include "backend/gpu/gpu_run.h"

static bool must_wait(const struct gpu_hazards *h, const struct gpu_touch *t)
{
    for (size_t i = 0; i < h->touched.len; i++)
        if ((t->writes || h->touched.at[i].writes) && spans_overlap(t->span, h->touched.at[i].span))
            return true;
    return false;
}

rlx_status gpu_touch(struct gpu_hazards *h, const struct gpu_touch *touch, size_t count,
                     bool *barrier, struct diag *d)
{
    *barrier = false;
    for (size_t i = 0; i < count && !*barrier; i++)
        *barrier = must_wait(h, &touch[i]);
    if (*barrier)
        h->touched.len = 0;
    if (!vec_room_for(h->mem, &h->touched, count))
        return diag_no_memory(d, count * sizeof *touch);
    for (size_t i = 0; i < count; i++)
        h->touched.at[h->touched.len++] = touch[i];
    return RLX_OK;
}
