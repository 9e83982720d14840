/* Chains of elementwise steps: values, types, tiles that serve again, threads. */
#define CPU_ISA baseline
#include <stdlib.h>

#include "backend/cpu/kernels/elementwise/row.h"
#include "base/mem.h"
#include "test.h"

extern const struct cpu_kernel CPU_NAME(cpu_elementwise_region);

static struct cpu_tensor tensor(rlx_dtype dtype, const void *data, rlx_list shape)
{
    struct cpu_tensor t = {
        .dtype = dtype, .data = (void *)(uintptr_t)data, .rank = shape.count, .count = 1};

    for (int32_t a = 0; a < shape.count; a++) {
        t.dim[a] = shape.at[a];
        t.count *= shape.at[a];
    }
    return t;
}

static void run(struct test *t, const rlx_chain_step *chain, size_t len, int32_t prologue,
                const struct cpu_tensor *in, int32_t in_count, const struct cpu_tensor *out,
                int threads)
{
    const struct cpu_kernel *k = &CPU_NAME(cpu_elementwise_region);
    union ir_attr attr = {.elementwise_region = {.chain = {chain, len}, .prologue = prologue}};
    struct cpu_call c = {
        .op = RLX_OP_elementwise_region, .attr = &attr, .in_count = in_count, .in = in, .out = out};

    require_ok(t, pool_create(&c.pool, threads, mem_default(), NULL));
    size_t bytes = (size_t)k->scratch(&c);
    c.scratch = mem_alloc_aligned(mem_default(), bytes, 64);
    if (expect(t, c.scratch != NULL))
        k->run(&c);
    mem_free_aligned(mem_default(), c.scratch, bytes, 64);
    pool_destroy(c.pool);
}

TEST(cpu_region, the_example_of_the_manual)
{
    const float x[6] = {-1, 0, 1, 2, -3, 4}, b[3] = {1, 1, 1}, s = 2;
    const double want[6] = {0, 2, 4, 6, 0, 10};
    const rlx_chain_step chain[3] = {
        {.op = RLX_OP_add, .in = {RLX_CHAIN_INPUT(0), RLX_CHAIN_INPUT(1)}},
        {.op = RLX_OP_relu, .in = {0}},
        {.op = RLX_OP_mul, .in = {1, RLX_CHAIN_INPUT(2)}},
    };
    float y[6] = {0};
    const struct cpu_tensor in[3] = {tensor(RLX_DTYPE_f32, x, RLX_LIST(2, 3)),
                                     tensor(RLX_DTYPE_f32, b, RLX_LIST(3)),
                                     tensor(RLX_DTYPE_f32, &s, RLX_EMPTY)};
    struct cpu_tensor out = tensor(RLX_DTYPE_f32, y, RLX_LIST(2, 3));

    run(t, chain, 3, RLX_REGION_PROLOGUE_none, in, 3, &out, 1);
    for (int i = 0; i < 6; i++)
        expect_near(t, y[i], want[i], 0);
}

/* f32 to f16 and back inside a chain loses bits; f16 without a cast does not until the end. */
TEST(cpu_region, casts_round_and_nothing_else_does)
{
    const float x[1] = {2049.0f};
    const uint16_t h[1] = {f32_to_f16(2048.0f)};
    const rlx_chain_step there_and_back[2] = {
        {.op = RLX_OP_cast, .to = RLX_DTYPE_f16, .in = {RLX_CHAIN_INPUT(0)}},
        {.op = RLX_OP_cast, .to = RLX_DTYPE_f32, .in = {0}},
    };
    const rlx_chain_step carried[3] = {
        {.op = RLX_OP_exp, .in = {RLX_CHAIN_INPUT(1)}}, /* 1, of f16 */
        {.op = RLX_OP_add, .in = {RLX_CHAIN_INPUT(0), 0}},
        {.op = RLX_OP_sub, .in = {1, RLX_CHAIN_INPUT(0)}},
    };
    const uint16_t zero = 0;
    float y = 0;
    uint16_t yh = 0;
    struct cpu_tensor one = tensor(RLX_DTYPE_f32, x, RLX_LIST(1));
    const struct cpu_tensor two[2] = {tensor(RLX_DTYPE_f16, h, RLX_LIST(1)),
                                      tensor(RLX_DTYPE_f16, &zero, RLX_EMPTY)};
    struct cpu_tensor out = tensor(RLX_DTYPE_f32, &y, RLX_LIST(1));
    struct cpu_tensor out16 = tensor(RLX_DTYPE_f16, &yh, RLX_LIST(1));

    run(t, there_and_back, 2, RLX_REGION_PROLOGUE_none, &one, 1, &out, 1);
    expect_near(t, y, 2048, 0);
    run(t, carried, 3, RLX_REGION_PROLOGUE_none, two, 2, &out16, 1);
    expect_near(t, f16_to_f32(yh), 1, 0);
}

enum { STEPS = 1000, WIDE = 3001 };

/* Step k adds step k/2 and 1 (the steps in between wait in tiles of their own), so that step k is
 * x plus the number of halvings of k, plus 1. */
TEST(cpu_region, a_long_chain_gives_the_same_for_any_number_of_threads)
{
    static rlx_chain_step chain[STEPS];
    static int32_t x[WIDE], y[WIDE];
    const int32_t one = 1;
    const struct cpu_tensor in[2] = {tensor(RLX_DTYPE_i32, x, RLX_LIST(WIDE)),
                                     tensor(RLX_DTYPE_i32, &one, RLX_EMPTY)};
    struct cpu_tensor out = tensor(RLX_DTYPE_i32, y, RLX_LIST(WIDE));
    int32_t add = 1;

    for (int32_t k = 0; k < STEPS; k++)
        chain[k] = (rlx_chain_step){.op = RLX_OP_add,
                                    .in = {k ? k / 2 : RLX_CHAIN_INPUT(0), RLX_CHAIN_INPUT(1)}};
    chain[1].in[0] = 0;
    for (int32_t k = STEPS - 1; k > 0; k /= 2)
        add++;
    for (int i = 0; i < WIDE; i++)
        x[i] = 7 * i;
    for (int threads = 1; threads <= 3; threads++) {
        int wrong = 0;
        for (int i = 0; i < WIDE; i++)
            y[i] = -1;
        run(t, chain, STEPS, RLX_REGION_PROLOGUE_none, in, 2, &out, threads);
        for (int i = 0; i < WIDE; i++)
            wrong += y[i] != x[i] + add;
        expect_eq(t, wrong, 0);
    }
}

/* where(x < b, x, b), of two types, with the image doubled. */
TEST(cpu_region, a_resized_image_meets_a_broadcast_row)
{
    const int8_t x[4] = {1, 2, 3, 4};
    const float b[4] = {1.5f, 1.5f, 2.5f, 2.5f};
    const double want[16] = {1, 1, 2, 2, 1, 1, 2, 2, 1.5, 1.5, 2.5, 2.5, 1.5, 1.5, 2.5, 2.5};
    const rlx_chain_step chain[2] = {
        {.op = RLX_OP_lt, .in = {RLX_CHAIN_INPUT(0), RLX_CHAIN_INPUT(1)}},
        {.op = RLX_OP_where, .in = {0, RLX_CHAIN_INPUT(0), RLX_CHAIN_INPUT(1)}},
    };
    float y[16] = {0};
    const struct cpu_tensor in[2] = {tensor(RLX_DTYPE_i8, x, RLX_LIST(1, 1, 2, 2)),
                                     tensor(RLX_DTYPE_f32, b, RLX_LIST(4))};
    struct cpu_tensor out = tensor(RLX_DTYPE_f32, y, RLX_LIST(1, 1, 4, 4));

    run(t, chain, 2, RLX_REGION_PROLOGUE_resize_nearest_2x, in, 2, &out, 2);
    for (int i = 0; i < 16; i++)
        expect_near(t, y[i], want[i], 0);
}

TEST(cpu_region, an_empty_output_is_left_alone)
{
    const rlx_chain_step chain[1] = {{.op = RLX_OP_neg, .in = {RLX_CHAIN_INPUT(0)}}};
    struct cpu_tensor none = tensor(RLX_DTYPE_f32, NULL, RLX_LIST(0, 3));

    run(t, chain, 1, RLX_REGION_PROLOGUE_none, &none, 1, &none, 1);
    expect_eq(t, none.count, 0);
}
