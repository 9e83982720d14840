/* world.c: contexts of one thread and of several, and the devices of this machine. */
#include <stdio.h>
#include <string.h>

#include "random.h"

static bool is_in(const char *list, const char *kind)
{
    return list && strstr(list, kind);
}

/* Those that this machine has. */
static void open_levels(struct world *w)
{
    static const char *const names[] = {"cpu:baseline", "cpu:avx2", "cpu:avx512", "cpu:amx",
                                        "cpu:neon"};
    rlx_error err;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (rlx_device_open(w->one, names[i], &w->level[w->levels], &err) == RLX_OK)
            w->levels++;
}

bool world_open(struct world *w, const char *gpus, rlx_error *err)
{
    static const char *const kinds[] = {"vulkan", "webgpu"};
    const rlx_context_desc one = {RLX_SIZED(rlx_context_desc), .threads = 1},
                           several = {RLX_SIZED(rlx_context_desc), .threads = 3};

    *w = (struct world){0};
    if (rlx_context_create(RLX_VERSION, &one, &w->one, err) ||
        rlx_context_create(RLX_VERSION, &several, &w->several, err) ||
        rlx_device_open(w->one, "cpu", &w->cpu, err) ||
        rlx_device_open(w->several, "cpu", &w->cpu_several, err))
        return false;
    open_levels(w);
    for (int i = 0; i < 2; i++)
        if (is_in(gpus, kinds[i])) {
            rlx_status s = rlx_device_open(w->one, kinds[i], &w->gpu[w->gpus], err);
            if (s == RLX_OK)
                w->gpus++;
            else
                fprintf(stderr, "without %s: %s\n", kinds[i], err->message);
        }
    return true;
}

void world_close(struct world *w)
{
    for (size_t i = 0; i < w->gpus; i++)
        rlx_device_close(w->gpu[i]);
    for (size_t i = 0; i < w->levels; i++)
        rlx_device_close(w->level[i]);
    rlx_device_close(w->cpu_several);
    rlx_device_close(w->cpu);
    rlx_context_destroy(w->several);
    rlx_context_destroy(w->one);
}
