/* batch_make.c: what goes into the next batch: sequences that decode first, then prompts, in
 * pieces. */
#include "serve/serve.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

size_t batch_make(const rlx_waiting *waiting, size_t count, const rlx_batch_limits *limits,
                  rlx_batch_entry *out)
{
    int64_t room = limits && limits->tokens > 0 ? limits->tokens : INT64_MAX;
    int64_t chunk = limits && limits->chunk > 0 ? limits->chunk : INT64_MAX;
    size_t most = limits && limits->entries > 0 ? limits->entries : SIZE_MAX, made = 0;

    for (int decodes = 1; decodes >= 0; decodes--)
        for (size_t i = 0; i < count && made < most && room > 0; i++) {
            const rlx_waiting *w = &waiting[i];
            if (w->pending <= 0 || w->decodes != (decodes == 1))
                continue;
            int64_t tokens = decodes ? 1 : least(least(w->pending, chunk), room);
            out[made++] = (rlx_batch_entry){.waiting = i, .first = w->done, .count = tokens};
            room -= tokens;
        }
    return made;
}
