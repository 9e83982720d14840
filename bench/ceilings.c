/* ceilings.c: what the machine can do at most, to set the other figures beside. */
#include "support/ceilings.h"

#include <stdio.h>
#include <string.h>

#include "support/job.h"

static void print_device(void)
{
    rlx_context *ctx;
    rlx_device_info info = {RLX_SIZED(rlx_device_info)};
    rlx_error err;

    check(rlx_context_create(RLX_VERSION, NULL, &ctx, &err), &err);
    for (size_t i = 0; rlx_device_at(ctx, i, &info, NULL) == RLX_OK; i++)
        if (strcmp(info.name, "cpu") == 0)
            break;
    printf("{\"device\": \"%s\", \"features\": \"%s\"}\n", info.description, info.features);
    rlx_context_destroy(ctx);
}

int main(int argc, char **argv)
{
    struct options o = options_read(argc, argv);
    struct ceiling ceilings[CEILING_COUNT];
    struct side sides[CEILING_COUNT];

    print_device();
    for (int i = 0; i < CEILING_COUNT; i++) {
        ceiling_open(&ceilings[i], (enum ceiling_kind)i, o.threads);
        sides[i] = ceiling_side(&ceilings[i]);
    }
    measure(sides, CEILING_COUNT, &o);
    for (int i = 0; i < CEILING_COUNT; i++) {
        double best = sides[i].times.best, median = sides[i].times.median;
        struct line l = {.name = ceilings[i].what,
                         .threads = o.threads,
                         .unit = ceilings[i].unit,
                         .missing = sides[i].missing,
                         .spread = sides[i].times.spread};
        if (best > 0)
            l.value = ceilings[i].work / best * 1e-9, l.median = ceilings[i].work / median * 1e-9;
        line_print(&l);
        ceiling_close(&ceilings[i]);
    }
    return 0;
}
