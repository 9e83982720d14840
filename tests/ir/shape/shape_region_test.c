/* shape_region_test.c: chains of steps: their types, their legality, the shapes around them. */
#include "ir/shape/shape.h"
#include "shape_build.h"

#define IN RLX_CHAIN_INPUT
#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static union ir_attr region(const rlx_chain_step *step, size_t count)
{
    union ir_attr a = defaults(RLX_OP_elementwise_region);

    a.elementwise_region.chain = (struct ir_blob){step, count};
    return a;
}

TEST(shape_region, worked_example)
{
    static const rlx_chain_step chain[] = {
        {RLX_OP_add, 0, {IN(0), IN(1), 0}},
        {RLX_OP_relu, 0, {0, 0, 0}},
        {RLX_OP_mul, 0, {1, IN(2), 0}},
    };
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 3));
    ir_value v = build_input(&b, RLX_DTYPE_f32, RLX_LIST(3));
    ir_value s = build_input(&b, RLX_DTYPE_f32, SCALAR);
    ir_value bad = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2));
    ir_value open = build_input(&b, RLX_DTYPE_f32, RLX_LIST(symbol(&b, "n"), 1));
    union ir_attr a = region(chain, 3);

    gives(&b, elementwise_region, &a, "f32[2,3]", x, v, s);
    gives(&b, elementwise_region, &a, "f32[2,3]", s, v, x);
    gives(&b, elementwise_region, &a, "f32[n,3]", open, v, s);
    fails(&b, elementwise_region, &a, SHAPE, "do not broadcast", x, v, bad);
    fails(&b, elementwise_region, &a, ATTRIBUTE, "step 2 reads input 2 of 2", x, v);
    fails(&b, elementwise_region, &a, GRAPH, "at least 1", NONE);
    build_close(&b);
}

TEST(shape_region, step_types)
{
    static const rlx_chain_step chain[] = {
        {RLX_OP_add, 0, {IN(0), IN(1), 0}},      /* f16 + i8 -> f32 */
        {RLX_OP_cast, RLX_DTYPE_f16, {0, 0, 0}}, /* f16 */
        {RLX_OP_lt, 0, {1, IN(1), 0}},           /* bool */
        {RLX_OP_where, 0, {2, 1, IN(0)}},        /* f16 */
        {RLX_OP_not, 0, {2, 0, 0}},              /* bool */
        {RLX_OP_mul, 0, {3, 4, 0}},              /* f16 * bool -> f16 */
        {RLX_OP_where, 0, {IN(1), 5, IN(1)}},    /* f16, i8 -> f32 */
        {RLX_OP_cast, RLX_DTYPE_c64, {6, 0, 0}}, /* c64 */
    };
    static const rlx_dtype want[] = {RLX_DTYPE_f32,  RLX_DTYPE_f16, RLX_DTYPE_bool, RLX_DTYPE_f16,
                                     RLX_DTYPE_bool, RLX_DTYPE_f16, RLX_DTYPE_f32,  RLX_DTYPE_c64};
    static const struct ir_type half = {.dtype = RLX_DTYPE_f16}, byte = {.dtype = RLX_DTYPE_i8};
    const struct ir_type *const in[] = {&half, &byte};
    struct ir_blob blob = {chain, COUNT(chain)};
    rlx_dtype got[COUNT(chain)];
    struct diag d;

    diag_init(&d, "test");
    require_ok(t, shape_chain_types("region", &blob, in, 2, got, &d));
    for (size_t i = 0; i < COUNT(chain); i++)
        expect_eq(t, got[i], want[i]);
}

TEST(shape_region, malformed_chains)
{
    static const struct {
        rlx_chain_step step;
        rlx_status status;
        const char *part;
    } rows[] = {
        {{RLX_OP_exp, 0, {0, 0, 0}}, RLX_ERROR_ATTRIBUTE, "reads step 0"},
        {{RLX_OP_exp, 0, {INT32_MAX, 0, 0}}, RLX_ERROR_ATTRIBUTE, "reads step 2147483647"},
        {{RLX_OP_exp, 0, {INT32_MIN, 0, 0}}, RLX_ERROR_ATTRIBUTE, "input 2147483647 of 3"},
        {{RLX_OP_exp, 0, {IN(3), 0, 0}}, RLX_ERROR_ATTRIBUTE, "input 3 of 3"},
        {{RLX_OP_add, 0, {IN(0), IN(3), 0}}, RLX_ERROR_ATTRIBUTE, "input 3 of 3"},
        {{RLX_OP_where, 0, {IN(0), IN(0), 1}}, RLX_ERROR_ATTRIBUTE, "reads step 1"},
        {{RLX_OP_none, 0, {IN(0), 0, 0}}, RLX_ERROR_ATTRIBUTE, "none"},
        {{RLX_OP_fma, 0, {IN(0), IN(0), IN(0)}}, RLX_ERROR_ATTRIBUTE, "fma"},
        {{RLX_OP_softmax, 0, {IN(0), 0, 0}}, RLX_ERROR_ATTRIBUTE, "softmax"},
        {{RLX_OP_count, 0, {IN(0), 0, 0}}, RLX_ERROR_ATTRIBUTE, "steps are"},
        {{-5, 0, {IN(0), 0, 0}}, RLX_ERROR_ATTRIBUTE, "steps are"},
        {{RLX_OP_cast, RLX_DTYPE_count, {IN(0), 0, 0}}, RLX_ERROR_ATTRIBUTE, "no element type"},
        {{RLX_OP_cast, -1, {IN(0), 0, 0}}, RLX_ERROR_ATTRIBUTE, "no element type"},
        {{RLX_OP_cast, RLX_DTYPE_f32, {IN(2), 0, 0}}, RLX_ERROR_DTYPE, "cast does not take c64"},
        {{RLX_OP_exp, 0, {IN(1), 0, 0}}, RLX_ERROR_DTYPE, "exp does not take u64"},
        {{RLX_OP_neg, 0, {IN(1), 0, 0}}, RLX_ERROR_DTYPE, "neg does not take u64"},
        {{RLX_OP_lt, 0, {IN(0), IN(2), 0}}, RLX_ERROR_DTYPE, "lt does not take c64"},
        {{RLX_OP_where, 0, {IN(2), IN(0), IN(0)}}, RLX_ERROR_DTYPE, "where does not take c64"},
        {{RLX_OP_pow, 0, {IN(0), IN(2), 0}}, RLX_ERROR_DTYPE, "pow does not take c64"},
    };
    static const rlx_chain_step signs[] = {{RLX_OP_cast, RLX_DTYPE_i8, {IN(0), 0, 0}},
                                           {RLX_OP_add, 0, {0, IN(1), 0}}};
    struct build b;
    require(t, build_open(t, &b));
    ir_value f = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2));
    ir_value u = build_input(&b, RLX_DTYPE_u64, RLX_LIST(2));
    ir_value z = build_input(&b, RLX_DTYPE_c64, RLX_LIST(2));
    union ir_attr a = region(NULL, 0);

    fails(&b, elementwise_region, &a, ATTRIBUTE, "no steps", f);
    a = region(signs, 2);
    fails(&b, elementwise_region, &a, DTYPE, "step 1: i8 and u64 have no common type", f, u);
    for (size_t i = 0; i < COUNT(rows); i++) {
        test_note(t, "row %zu", i);
        a = region(&rows[i].step, 1);
        check_fails(&b, __FILE__, __LINE__, RLX_OP_elementwise_region, &a, rows[i].status,
                    rows[i].part, (const ir_value[]){f, u, z, RLX_NO_VALUE});
    }
    build_close(&b);
}

TEST(shape_region, long_chain)
{
    enum { STEPS = 1000 };
    rlx_chain_step chain[STEPS];
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(5));
    for (int i = 0; i < STEPS; i++)
        chain[i] = (rlx_chain_step){RLX_OP_tanh, 0, {i ? i - 1 : IN(0), 0, 0}};
    union ir_attr a = region(chain, STEPS);

    gives(&b, elementwise_region, &a, "f32[5]", x);
    chain[STEPS - 1].op = RLX_OP_gt;
    chain[STEPS - 1].in[1] = IN(0);
    gives(&b, elementwise_region, &a, "bool[5]", x);
    chain[STEPS - 1].in[1] = STEPS - 1;
    fails(&b, elementwise_region, &a, ATTRIBUTE, "reads step 999", x);
    build_close(&b);
}

TEST(shape_region, prologue)
{
    static const rlx_chain_step chain[] = {{RLX_OP_add, 0, {IN(0), IN(1), 0}}};
    struct build b;
    require(t, build_open(t, &b));
    ir_dim n = symbol(&b, "n");
    ir_value image = build_input(&b, RLX_DTYPE_f32, RLX_LIST(1, 3, 4, 5));
    ir_value open = build_input(&b, RLX_DTYPE_f32, RLX_LIST(n, 3, 4, n));
    ir_value bias = build_input(&b, RLX_DTYPE_f32, RLX_LIST(3, 1, 1));
    ir_value skip = build_input(&b, RLX_DTYPE_f32, RLX_LIST(1, 3, 8, 10));
    ir_value more = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 3, 8, 10));
    ir_value flat = build_input(&b, RLX_DTYPE_f32, RLX_LIST(3, 4, 5));
    union ir_attr a = region(chain, 1);

    a.elementwise_region.prologue = RLX_REGION_PROLOGUE_resize_nearest_2x;
    gives(&b, elementwise_region, &a, "f32[1,3,8,10]", image, bias);
    gives(&b, elementwise_region, &a, "f32[1,3,8,10]", image, skip);
    gives(&b, elementwise_region, &a, "f32[n,3,8,2*n]", open, bias);
    fails(&b, elementwise_region, &a, SHAPE, "does not broadcast to [1,3,8,10]", image, more);
    fails(&b, elementwise_region, &a, SHAPE, "does not broadcast to [1,3,8,10]", image, image);
    fails(&b, elementwise_region, &a, SHAPE, "rank must be 4", flat, bias);
    a.elementwise_region.prologue_input = 1;
    gives(&b, elementwise_region, &a, "f32[1,3,8,10]", bias, image);
    fails(&b, elementwise_region, &a, SHAPE, "rank must be 4", image, bias);
    a.elementwise_region.prologue_input = 2;
    fails(&b, elementwise_region, &a, ATTRIBUTE, "prologue_input is 2", image, bias);
    a.elementwise_region.prologue_input = -1;
    fails(&b, elementwise_region, &a, ATTRIBUTE, "prologue_input is -1", image, bias);
    a.elementwise_region.prologue = 2;
    fails(&b, elementwise_region, &a, ATTRIBUTE, "prologue", image, bias);
    build_close(&b);
}

TEST(shape_region, batch)
{
    static const rlx_chain_step chain[] = {{RLX_OP_exp, 0, {IN(0), 0, 0}},
                                           {RLX_OP_lt, 0, {0, IN(0), 0}}};
    static const rlx_chain_step two[] = {{RLX_OP_add, 0, {IN(0), IN(1), 0}}};
    struct build b;
    require(t, build_open(t, &b));
    ir_dim n = symbol(&b, "n");
    ir_value x = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 3));
    ir_value open = build_input(&b, RLX_DTYPE_f32, RLX_LIST(n, 3));
    ir_value wide = build_input(&b, RLX_DTYPE_f32, RLX_LIST(2, 4));
    ir_value half = build_input(&b, RLX_DTYPE_f16, RLX_LIST(2, 3));
    ir_value one = build_input(&b, RLX_DTYPE_f32, SCALAR);
    ir_value image = build_input(&b, RLX_DTYPE_f32, RLX_LIST(n, 3, 4, 5));
    union ir_attr a = defaults(RLX_OP_batch_elementwise_region);

    fails(&b, batch_elementwise_region, &a, ATTRIBUTE, "no steps", x);
    a.batch_elementwise_region.chain = (struct ir_blob){chain, 2};
    gives(&b, batch_elementwise_region, &a, "bool[2,3]", x);
    gives(&b, batch_elementwise_region, &a, "bool[6,3]", x, x, x);
    gives(&b, batch_elementwise_region, &a, "bool[2*n,3]", open, open);
    fails(&b, batch_elementwise_region, &a, SHAPE, "f32[2,4]", x, wide);
    fails(&b, batch_elementwise_region, &a, DTYPE, "f16", x, half);
    fails(&b, batch_elementwise_region, &a, SHAPE, "rank must be at least 1", one);
    a.batch_elementwise_region.chain = (struct ir_blob){two, 1};
    fails(&b, batch_elementwise_region, &a, ATTRIBUTE, "input 1 of 1", x, x);
    a.batch_elementwise_region.chain = (struct ir_blob){chain, 1};
    a.batch_elementwise_region.prologue = RLX_REGION_PROLOGUE_resize_nearest_2x;
    gives(&b, batch_elementwise_region, &a, "f32[2*n,3,8,10]", image, image);
    fails(&b, batch_elementwise_region, &a, SHAPE, "rank must be 4", x);
    build_close(&b);
}

TEST(shape_region, transform)
{
    rlx_chain_step chain[64];
    struct build b;
    require(t, build_open(t, &b));
    ir_value x = build_input(&b, RLX_DTYPE_u8, RLX_LIST(1, 3, symbol(&b, "h"), 5));
    ir_value flat = build_input(&b, RLX_DTYPE_u8, RLX_LIST(5));
    union ir_attr a = defaults(RLX_OP_transform_region);

    for (int i = 0; i < 64; i++)
        chain[i] = (rlx_chain_step){RLX_OP_resize_nearest_2x, 0, {i ? i - 1 : IN(0), 0, 0}};
    fails(&b, transform_region, &a, ATTRIBUTE, "no steps", x);
    a.transform_region.chain = (struct ir_blob){chain, 2};
    gives(&b, transform_region, &a, "u8[1,3,4*h,20]", x);
    fails(&b, transform_region, &a, SHAPE, "rank must be 4", flat);
    a.transform_region.chain.len = 64;
    fails(&b, transform_region, &a, LIMIT, "overflows at step", x);
    a.transform_region.chain.len = 2;
    chain[1].in[0] = IN(0);
    fails(&b, transform_region, &a, ATTRIBUTE, "step 1 reads -1", x);
    chain[1] = chain[0];
    chain[1].op = RLX_OP_relu;
    fails(&b, transform_region, &a, ATTRIBUTE, "only resize_nearest_2x", x);
    build_close(&b);
}
