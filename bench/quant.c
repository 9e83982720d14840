/* quant.c: products with packed weights and activations of eight bits (act=q8).
 *
 * One row of x is bound by the memory: more than 512 MB of different weights are read in turn, and
 * held against a plain read of as much. Many rows are bound by the multipliers: of AMX, and of
 * AVX-512 where the device must do without AMX. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/ceilings.h"
#include "support/job.h"

enum { SIZE = 4096, MANY_ROWS = 256, NAME = 16 };

struct format {
    const char *name;
    rlx_quant_scheme scheme;
    int64_t elems, bytes; /* of a block */
    int64_t half[2];      /* where a block has its numbers of f16; -1: it has but one */
};

static const struct format formats[] = {
    {"Q4_0", RLX_QUANT_SCHEME_q4_0, 32, 18, {0, -1}},
    {"Q8_0", RLX_QUANT_SCHEME_q8_0, 32, 34, {0, -1}},
    {"Q4_K", RLX_QUANT_SCHEME_q4_k, 256, 144, {0, 2}},
    {"Q6_K", RLX_QUANT_SCHEME_q6_k, 256, 210, {208, -1}},
};

static int64_t row_bytes(const struct format *f)
{
    return SIZE / f->elems * f->bytes;
}

static double bytes_of(const struct format *f)
{
    return (double)(SIZE * row_bytes(f));
}

/* Any bytes, with scales of 2^-10. */
static unsigned char *weights(const struct format *f)
{
    unsigned char *w = malloc((size_t)bytes_of(f));
    unsigned seed = 1;

    if (!w)
        give_up("out of memory");
    for (int64_t i = 0; i < SIZE * row_bytes(f); i++) {
        seed = seed * 1664525u + 1013904223u;
        w[i] = (unsigned char)(seed >> 24);
    }
    for (int64_t b = 0; b < SIZE * row_bytes(f); b += f->bytes)
        for (int h = 0; h < 2; h++)
            if (f->half[h] >= 0)
                memcpy(w + b + f->half[h], &(unsigned short){0x1400}, 2);
    return w;
}

/* One x times `count` weights of one format. */
static void open_products(struct job *j, const struct options *o, const char *device,
                          const struct format *f, int64_t rows, int count)
{
    rlx_graph *g = job_begin_on(j, o->threads, device);
    rlx_value x = rlx_state(g, "x", RLX_DTYPE_f32, RLX_LIST(rows, SIZE));
    unsigned char *w = weights(f);
    rlx_tensor t = {.dtype = RLX_DTYPE_u8,
                    .rank = 2,
                    .dim = {SIZE, row_bytes(f)},
                    .data = w,
                    .bytes = (size_t)bytes_of(f)};
    char name[NAME];
    rlx_error err;

    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "w%d", i);
        rlx_value v = rlx_param(g, name, RLX_DTYPE_u8, RLX_LIST(SIZE, row_bytes(f)));
        rlx_dequant_matmul_desc d = RLX_DEQUANT_MATMUL_DESC_INIT;
        d.scheme = f->scheme;
        d.k = SIZE;
        d.act = RLX_ACT_PRECISION_q8;
        rlx_output(g, rlx_dequant_matmul(g, x, v, RLX_NO_VALUE, RLX_NO_VALUE, &d));
    }
    check(rlx_model_create(g, &j->model, &err), &err);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "w%d", i);
        check(rlx_model_set_param(j->model, name, &t, &err), &err);
    }
    free(w);
    job_open_filled(j);
}

static void one_row(const struct options *o, const struct format *f)
{
    int count = (int)((512 << 20) / bytes_of(f)) + 1;
    struct ceiling read;
    struct job j;
    char name[64];

    open_products(&j, o, "cpu", f, 1, count);
    ceiling_open(&read, CEILING_READ_WEIGHTS, o->threads);
    struct side side[] = {job_side(&j), ceiling_side(&read)};
    measure(side, 2, o);
    snprintf(name, sizeof name, "dequant_matmul q8 1 x 4096 x 4096, %s", f->name);
    compare_rates(name, o, "GB/s", bytes_of(f) * count, read.work, &side[0], &side[1], 0.85);
    ceiling_close(&read);
    job_close(&j);
}

static void many_rows(const struct options *o, const struct format *f, const char *device,
                      enum ceiling_kind kind, double wanted)
{
    const double ops = 2.0 * MANY_ROWS * SIZE * SIZE;
    struct ceiling most;
    struct job j;
    char name[80];

    open_products(&j, o, device, f, MANY_ROWS, 1);
    ceiling_open(&most, kind, o->threads);
    struct side side[] = {job_side(&j), ceiling_side(&most)};
    measure(side, 2, o);
    snprintf(name, sizeof name, "dequant_matmul q8 256 x 4096 x 4096, %s, %s", f->name, device);
    compare_rates(name, o, "GOP/s", ops, most.work, &side[0], &side[1], wanted);
    ceiling_close(&most);
    job_close(&j);
}

int main(int argc, char **argv)
{
    struct options o = options_read(argc, argv);
    struct ceiling amx, vnni;

    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        one_row(&o, &formats[i]);
    ceiling_open(&amx, CEILING_AMX_I8, 1);
    ceiling_open(&vnni, CEILING_VNNI_I8, 1);
    for (size_t i = 0; i < 3; i++) {
        if (!amx.missing)
            many_rows(&o, &formats[i], "cpu:amx", CEILING_AMX_I8, 0.2);
        if (!vnni.missing)
            many_rows(&o, &formats[i], "cpu:avx512", CEILING_VNNI_I8, 0.5);
    }
    ceiling_close(&amx);
    ceiling_close(&vnni);
    return 0;
}
