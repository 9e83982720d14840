/* ceiling_device.c: what a GPU can do at best: a product of matrices and an elementwise op, timed
 * by the device's own clock. They grow until they take long enough to measure, or fill an eighth of
 * its memory. The largest is repeated for a while, as a GPU that was idle runs slowly at first. The
 * best rate at any size counts. */
#include "context/ceiling.h"

#include <stdio.h>
#include <time.h>

#include "base/str.h"
#include "ir/text/text.h"
#include "pass/pass.h"
#include "run/program.h"

enum { TRIES = 4 };
static const uint64_t LONG_ENOUGH_NS = 20000000, ENOUGH_BYTES = UINT64_C(1) << 28;
static const uint64_t WARM_NS = 800000000;

struct load { /* what one program asks for */
    char graph[256];
    double work;    /* flops, or bytes read and written */
    uint64_t bytes; /* of its largest value */
};

static struct load product(uint64_t n)
{
    struct load l = {.work = 2.0 * (double)n * (double)n * (double)n, .bytes = n * n * 4};
    unsigned long long size = n;

    snprintf(l.graph, sizeof l.graph,
             "rlx 1\ngraph (input %%x: f32[%llu,%llu], input %%y: f32[%llu,%llu]) {\n"
             "    %%z = matmul %%x, %%y\n    return %%z\n}\n",
             size, size, size, size);
    return l;
}

static struct load copy(uint64_t n)
{
    struct load l = {.work = 8.0 * (double)n, .bytes = n * 4};

    snprintf(l.graph, sizeof l.graph,
             "rlx 1\ngraph (input %%x: f32[%llu]) {\n    %%y = neg %%x\n    return %%y\n}\n",
             (unsigned long long)n);
    return l;
}

/* ---- one program ---- */

struct clock {
    uint64_t ns; /* of all steps of a run */
};

static void after_step(void *user, int32_t step, uint64_t start, uint64_t end)
{
    struct clock *c = user;

    (void)step;
    c->ns += end - start;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A few times, and for at least so long. The first run is not counted: a driver may finish its
 * kernels then. */
static rlx_status time_program(struct program *p, uint64_t at_least, uint64_t *best, struct diag *d)
{
    uint64_t begin = now_ns();

    *best = UINT64_MAX;
    TRY(program_load(p, p->size, d));
    for (int i = 0; i <= TRIES || now_ns() - begin < at_least; i++) {
        struct clock clock = {0};
        const struct run_hooks hooks = {after_step, &clock, false};
        struct run_report report = {.step = -1};
        TRY(backend_run(p->backend, p->command, p->command_count, &hooks, &report, d));
        if (i > 0 && clock.ns && clock.ns < *best)
            *best = clock.ns;
    }
    return RLX_OK;
}

static rlx_status time_load(struct backend *b, const struct target *t, const rlx_allocator *mem,
                            const struct load *l, uint64_t at_least, uint64_t *ns, struct diag *d)
{
    static const struct pass_options only_required = {.no_optimize = true};
    const struct program_desc desc = {
        .backend = b, .mem = mem, .plan = {.align = t->alignment, .max_buffer = t->max_buffer}};
    struct ir_module *mod;
    struct program *p;

    TRY(ir_parse(rlx_cstr(l->graph), NULL, mem, &mod, d));
    rlx_status s = pass_all(mod, t, &only_required, d);
    if (s != RLX_OK) {
        ir_module_destroy(mod);
        return s;
    }
    TRY(program_create(&desc, mod, NULL, NULL, 0, &p, d));
    s = time_program(p, at_least, ns, d);
    program_destroy(p);
    return s;
}

/* ---- the best of several sizes ---- */

static rlx_status best_rate(struct backend *b, const struct target *t, const rlx_allocator *mem,
                            struct load (*make)(uint64_t n), uint64_t n, double *out,
                            struct diag *d)
{
    uint64_t most = ENOUGH_BYTES, ns;

    most = t->memory && t->memory / 8 < most ? t->memory / 8 : most;
    most = t->max_buffer && t->max_buffer / 2 < most ? t->max_buffer / 2 : most;
    *out = 0;
    for (bool last = false; !last; n *= 2) {
        struct load l = make(n);
        TRY(time_load(b, t, mem, &l, 0, &ns, d));
        last = ns >= LONG_ENOUGH_NS || make(2 * n).bytes > most;
        if (last)
            TRY(time_load(b, t, mem, &l, WARM_NS, &ns, d));
        double rate = l.work / ((double)ns * 1e-9);
        *out = rate > *out ? rate : *out;
    }
    return RLX_OK;
}

rlx_status ceiling_of_device(struct backend *b, const rlx_allocator *mem, struct rate *out,
                             struct diag *d)
{
    struct target t;

    b->ops->describe(b, &t);
    TRY(best_rate(b, &t, mem, product, 256, &out->flops, d));
    return best_rate(b, &t, mem, copy, 1 << 20, &out->copy, d);
}
