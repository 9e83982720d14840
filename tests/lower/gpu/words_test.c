/* words_test.c: the words of a launch are bound by name, and compared with the kernel's. */
#include <string.h>

#include "backend/gpu/gpu_kernels.h"
#include "lower/gpu/gpu_core.h"
#include "no_driver.h"

static const char source[] = "struct rows { rows: u32, size: [u32; 2] }\n"
                             "kernel k(y: out [f32], n: u32, low: i32, scale: f32, r: rows)"
                             " group(1) { y[n + r.rows + r.size[1]] = scale + f32(low) }\n";

/* A launch of that kernel. */
struct launch {
    struct backend backend;
    struct arena arena;
    struct gpu_kernels kernels;
    struct gpu_work work;
    struct gpu_call call;
    struct diag diag;
};

static bool launch_open(struct test *t, struct launch *l)
{
    static const struct gpu_pipelines pipelines = {no_driver_build, no_driver_drop};

    *l = (struct launch){.backend = {.mem = mem_default()}};
    l->kernels.target = (struct gpu_target){.backend = &l->backend,
                                            .features = kc_least_features,
                                            .max_groups = 65535,
                                            .max_binding = 1 << 20,
                                            .max_bindings = GPU_BUFFERS};
    arena_init(&l->arena, mem_default());
    diag_init(&l->diag, "test");
    l->work.arena = &l->arena;
    if (!expect_ok(t, gpu_kernels_open(&l->kernels, &pipelines, &l->diag)))
        return false;
    l->call = (struct gpu_call){.op = RLX_OP_add,
                                .features = &kc_least_features,
                                .max_binding = l->kernels.target.max_binding,
                                .max_bindings = GPU_BUFFERS,
                                .device = &l->kernels.target,
                                .work = &l->work,
                                .diag = &l->diag};
    gpu_generated(&l->call, rlx_cstr(source), "k");
    gpu_bind(&l->call, (struct gpu_arg){0, 0, 64});
    return true;
}

static void launch_close(struct launch *l)
{
    gpu_kernels_close(&l->kernels);
    arena_free(&l->arena);
}

static void give_sizes(struct gpu_call *c)
{
    gpu_u32s(c, "r.size", (const uint64_t[]){5, 6}, 2);
}

static void all_in_order(struct gpu_call *c)
{
    gpu_u32(c, "n", 1);
    gpu_i32(c, "low", -2);
    gpu_f32(c, "scale", 3);
    gpu_u32(c, "r.rows", 4);
    give_sizes(c);
}

static void all_in_another_order(struct gpu_call *c)
{
    give_sizes(c);
    gpu_f32(c, "scale", 3);
    gpu_u32(c, "r.rows", 4);
    gpu_i32(c, "low", -2);
    gpu_u32(c, "n", 1);
}

static void one_unknown(struct gpu_call *c)
{
    all_in_order(c);
    gpu_u32(c, "m", 1);
}

static void one_swapped_for_another(struct gpu_call *c)
{
    gpu_u32(c, "m", 1);
    gpu_i32(c, "low", -2);
    gpu_f32(c, "scale", 3);
    gpu_u32(c, "r.rows", 4);
    give_sizes(c);
}

static void one_twice_in_a_row(struct gpu_call *c)
{
    gpu_u32(c, "n", 1);
    all_in_order(c);
}

static void one_twice_apart(struct gpu_call *c)
{
    all_in_order(c);
    gpu_u32(c, "n", 1);
}

static void one_missing(struct gpu_call *c)
{
    gpu_u32(c, "n", 1);
    gpu_i32(c, "low", -2);
    gpu_u32(c, "r.rows", 4);
    give_sizes(c);
}

static void float_for_u32(struct gpu_call *c)
{
    gpu_f32(c, "n", 1);
    gpu_i32(c, "low", -2);
    gpu_f32(c, "scale", 3);
    gpu_u32(c, "r.rows", 4);
    give_sizes(c);
}

static void u32_for_i32(struct gpu_call *c)
{
    gpu_u32(c, "n", 1);
    gpu_u32(c, "low", 2);
    gpu_f32(c, "scale", 3);
    gpu_u32(c, "r.rows", 4);
    give_sizes(c);
}

static void array_too_long(struct gpu_call *c)
{
    all_in_order(c);
    gpu_u32(c, "r.size", 7);
}

static void none(struct gpu_call *c)
{
    (void)c;
}

TEST(gpu_words, land_where_the_kernel_looks_for_them)
{
    static void (*const give[])(struct gpu_call *) = {all_in_order, all_in_another_order};

    for (size_t i = 0; i < COUNT_OF(give); i++) {
        struct launch l;
        const uint32_t want[] = {1, (uint32_t)-2, 0x40400000, 4, 5, 6};
        if (!launch_open(t, &l))
            return;
        give[i](&l.call);
        gpu_groups(&l.call, 1);
        expect_ok(t, l.call.status);
        expect_eq_u64(t, l.work.launches, 1);
        if (expect_eq_u64(t, l.work.words, COUNT_OF(want)))
            expect(t, memcmp(l.work.word, want, sizeof want) == 0);
        launch_close(&l);
    }
}

TEST(gpu_words, mistakes_are_refused)
{
    static const struct {
        void (*give)(struct gpu_call *c);
        const char *says;
    } rows[] = {{one_unknown, "has no word called \"m\""},
                {one_swapped_for_another, "has no word called \"m\""},
                {one_twice_in_a_row, "is given \"n\" twice"},
                {one_twice_apart, "is given \"n\" twice"},
                {one_missing, "is not given \"scale\""},
                {float_for_u32, ":k is u32, and is given as f32"},
                {u32_for_i32, ":k is i32, and is given as u32"},
                {array_too_long, ":k has 2 elements, and is given 3"},
                {none, "is not given \"n\""}};

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct launch l;
        if (!launch_open(t, &l))
            return;
        test_note(t, "%s", rows[i].says);
        rows[i].give(&l.call);
        gpu_groups(&l.call, 1);
        expect_status(t, l.call.status, RLX_ERROR_INTERNAL);
        expect_contains(t, l.diag.first.message, rows[i].says);
        expect_contains(t, l.diag.first.message, "add: ");
        expect_eq_u64(t, l.work.launches, 0);
        launch_close(&l);
    }
}
