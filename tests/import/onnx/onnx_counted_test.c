/* onnx_counted_test.c: ONNX ops whose result is as large as the data says, on data that is not
 * known at load: what ONNX's own tests leave out. */
#include <math.h>

#include "onnx_node_world.h"

#define F(...) ((const float[]){__VA_ARGS__})
#define I(...) ((const int64_t[]){__VA_ARGS__})

/* ---- NonZero ---- */

TEST(onnx_counted, non_zero_of_any_count)
{
    const float some[6] = {0, 2, 0, -1, NAN, 0}, none[6] = {0}, all[6] = {1, 1, 1, 1, 1, 1};

    for (int symbolic = -1; symbolic < 2; symbolic++) {
        struct one o = one_node("", "NonZero", 13, 1);
        o.symbolic = symbolic;
        one_in_f32(&o, RLX_LIST(2, 3), some);
        expect_one(t, &o, 0, 0, 6, F(0, 1, 1, 1, 0, 1));
        o.in[0].tensor.data = (void *)(uintptr_t)none;
        expect_one(t, &o, 0, 0, 0, NULL);
        o.in[0].tensor.data = (void *)(uintptr_t)all;
        expect_one(t, &o, 0, 0, 12, F(0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2));
    }
    struct one scalar = one_node("", "NonZero", 13, 1);
    one_in_f32(&scalar, RLX_EMPTY, some);
    expect_one_refused(t, &scalar, RLX_ERROR_UNSUPPORTED, "scalar");
    struct one empty = one_node("", "NonZero", 13, 1);
    one_in_f32(&empty, RLX_LIST(0, 3), some);
    expect_one(t, &empty, 0, 0, 0, NULL);
}

/* ---- Compress ---- */

TEST(onnx_counted, compress_takes_short_conditions)
{
    const uint8_t keep[3] = {1, 0, 1}, long_one[7] = {0};

    struct one o = one_node("", "Compress", 11, 1);
    one_in_f32(&o, RLX_LIST(2, 3), F(1, 2, 3, 4, 5, 6));
    one_in(&o, RLX_DTYPE_bool, RLX_LIST(3), keep);
    expect_one(t, &o, 0, 0, 2, F(1, 3)); /* of all six elements */
    one_int(&o, "axis", -1);
    expect_one(t, &o, 0, 0, 4, F(1, 3, 4, 6));

    struct one wide = one_node("", "Compress", 11, 1);
    one_in_f32(&wide, RLX_LIST(2, 3), F(1, 2, 3, 4, 5, 6));
    one_in(&wide, RLX_DTYPE_bool, RLX_LIST(7), long_one);
    expect_one_refused(t, &wide, RLX_ERROR_SHAPE, "7 elements, for 6");

    struct one numbers = one_node("", "Compress", 11, 1);
    one_in_f32(&numbers, RLX_LIST(3), F(1, 2, 3));
    one_in_f32(&numbers, RLX_LIST(3), F(1, 0, 1));
    expect_one_refused(t, &numbers, RLX_ERROR_SHAPE, "not a list of booleans");

    struct one axis = one_node("", "Compress", 11, 1);
    one_in_f32(&axis, RLX_LIST(3), F(1, 2, 3));
    one_in(&axis, RLX_DTYPE_bool, RLX_LIST(3), keep);
    one_int(&axis, "axis", 1);
    expect_one_refused(t, &axis, RLX_ERROR_ATTRIBUTE, "axis 1");
}

/* ---- Unique ---- */

TEST(onnx_counted, unique_in_either_order)
{
    const float x[6] = {2, 1, 1, 3, 4, 3};

    for (int symbolic = -1; symbolic < 1; symbolic++)
        for (int sorted = 0; sorted < 2; sorted++) {
            struct one o = one_node("", "Unique", 11, 4);
            o.symbolic = symbolic;
            one_in_f32(&o, RLX_LIST(6), x);
            one_int(&o, "sorted", sorted);
            expect_one(t, &o, 0, 0, 4, sorted ? F(1, 2, 3, 4) : F(2, 1, 3, 4));
            expect_one(t, &o, 1, 0, 4, sorted ? F(1, 0, 3, 4) : F(0, 1, 3, 4));
            expect_one(t, &o, 2, 0, 6, sorted ? F(1, 0, 0, 2, 3, 2) : F(0, 1, 1, 2, 3, 2));
            expect_one(t, &o, 3, 0, 4, sorted ? F(2, 1, 2, 1) : F(1, 2, 2, 1));
        }
    struct one nans = one_node("", "Unique", 11, 4);
    one_in_f32(&nans, RLX_LIST(4), F(NAN, 1, NAN, 1));
    expect_one(t, &nans, 3, 0, 2, F(2, 2));
    struct one none = one_node("", "Unique", 11, 4);
    one_in_f32(&none, RLX_LIST(0), x);
    expect_one(t, &none, 0, 0, 0, NULL);
}

TEST(onnx_counted, unique_slices)
{
    const float x[12] = {1, 0, 0, 0, 9, 9, 1, 0, 0, 0, 9, 8};

    for (int sorted = 0; sorted < 2; sorted++) {
        struct one o = one_node("", "Unique", 11, 4);
        o.symbolic = sorted ? 0 : -1;
        one_in_f32(&o, RLX_LIST(4, 3), x);
        one_int(&o, "axis", 0);
        one_int(&o, "sorted", sorted);
        expect_one(t, &o, 0, 0, 9,
                   sorted ? F(0, 9, 8, 0, 9, 9, 1, 0, 0) : F(1, 0, 0, 0, 9, 9, 0, 9, 8));
        expect_one(t, &o, 1, 0, 3, sorted ? F(3, 1, 0) : F(0, 1, 3));
        expect_one(t, &o, 2, 0, 4, sorted ? F(2, 1, 2, 0) : F(0, 1, 0, 2));
        expect_one(t, &o, 3, 0, 3, sorted ? F(1, 1, 2) : F(2, 1, 1));
    }
    struct one axis = one_node("", "Unique", 11, 1);
    one_in_f32(&axis, RLX_LIST(4, 3), x);
    one_int(&axis, "axis", 2);
    expect_one_refused(t, &axis, RLX_ERROR_ATTRIBUTE, "axis 2");
    struct one empty = one_node("", "Unique", 11, 1);
    one_in_f32(&empty, RLX_LIST(4, 0), x);
    one_int(&empty, "axis", 0);
    expect_one_refused(t, &empty, RLX_ERROR_UNSUPPORTED, "empty");
}

/* ---- NonMaxSuppression ---- */

static const float boxes[6 * 4] = {0, 0,  1, 1,  0, 0.1f,  1, 1.1f,  0, -0.1f, 1, 0.9f,
                                   0, 10, 1, 11, 0, 10.1f, 1, 11.1f, 0, 100,   1, 101};
static const float scores[6] = {0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f};

/* most, iou, least: NULL, left out. */
static struct one suppression(const int64_t *most, const float *iou, const float *least, bool known)
{
    struct one o = one_node("", "NonMaxSuppression", 11, 1);

    one_in_f32(&o, RLX_LIST(1, 6, 4), boxes);
    one_in_f32(&o, RLX_LIST(1, 1, 6), scores);
    if (most && known)
        one_known(&o, RLX_DTYPE_i64, RLX_LIST(1), most);
    else if (most)
        one_in(&o, RLX_DTYPE_i64, RLX_LIST(1), most);
    if (iou)
        one_in_f32(&o, RLX_LIST(1), iou);
    if (least)
        one_in_f32(&o, RLX_LIST(1), least);
    return o;
}

TEST(onnx_counted, suppression_of_boxes)
{
    for (int known = 0; known < 2; known++) {
        struct one o = suppression(I(3), F(0.5f), F(0), known);
        expect_one(t, &o, 0, 0, 9, F(0, 0, 3, 0, 0, 0, 0, 0, 5));
        o = suppression(I(100), F(0.5f), F(0.4f), known);
        expect_one(t, &o, 0, 0, 6, F(0, 0, 3, 0, 0, 0));
        o = suppression(I(2), F(0.99f), NULL, known);
        expect_one(t, &o, 0, 0, 6, F(0, 0, 3, 0, 0, 0));
        o = suppression(I(6), F(0.5f), F(2), known); /* no score is as high */
        expect_one(t, &o, 0, 0, 0, NULL);
        o = suppression(I(0), F(0.5f), NULL, known);
        expect_one(t, &o, 0, 0, 0, NULL);
        o = suppression(I(-4), F(0.5f), NULL, known);
        expect_one(t, &o, 0, 0, 0, NULL);
    }
    struct one none = suppression(NULL, NULL, NULL, false); /* its default is to give none */
    expect_one(t, &none, 0, 0, 0, NULL);
}

TEST(onnx_counted, suppression_by_symbolic_sizes)
{
    struct one o = one_node("", "NonMaxSuppression", 11, 1);

    o.symbolic = 1; /* of the boxes; it is the classes' that must not be it */
    one_in_f32(&o, RLX_LIST(1, 6, 4), boxes);
    o.symbolic = 2;
    one_in_f32(&o, RLX_LIST(1, 1, 6), scores);
    one_known(&o, RLX_DTYPE_i64, RLX_LIST(1), I(10));
    one_known(&o, RLX_DTYPE_f32, RLX_LIST(1), F(0.5f));
    expect_one(t, &o, 0, 0, 9, F(0, 0, 3, 0, 0, 0, 0, 0, 5));
}

TEST(onnx_counted, suppression_refuses_other_shapes)
{
    struct one o = one_node("", "NonMaxSuppression", 11, 1);
    one_in_f32(&o, RLX_LIST(6, 4), boxes);
    one_in_f32(&o, RLX_LIST(1, 1, 6), scores);
    expect_one_refused(t, &o, RLX_ERROR_SHAPE, "[batch, boxes, 4]");
    o = one_node("", "NonMaxSuppression", 11, 1);
    one_in(&o, RLX_DTYPE_f64, RLX_LIST(1, 6, 4), boxes);
    one_in_f32(&o, RLX_LIST(1, 1, 6), scores);
    expect_one_refused(t, &o, RLX_ERROR_DTYPE, "f32");
}

/* ---- Range ---- */

static void expect_range(struct test *t, rlx_dtype type, const void *at, size_t count,
                         const float *want)
{
    struct one o = one_node("", "Range", 11, 1);

    for (size_t i = 0; i < 3; i++)
        one_in(&o, type, RLX_EMPTY, (const char *)at + i * rlx_dtype_size(type));
    expect_one(t, &o, 0, 1e-6, count, want);
}

TEST(onnx_counted, ranges_of_numbers_that_are_inputs)
{
    expect_range(t, RLX_DTYPE_i64, I(2, 9, 3), 3, F(2, 5, 8));
    expect_range(t, RLX_DTYPE_i64, I(2, 11, 3), 3, F(2, 5, 8));
    expect_range(t, RLX_DTYPE_i64, I(3, -2, -2), 3, F(3, 1, -1));
    expect_range(t, RLX_DTYPE_i64, I(0, 5, -1), 0, NULL);
    expect_range(t, RLX_DTYPE_i64, I(5, 5, 1), 0, NULL);
    expect_range(t, RLX_DTYPE_i64, I(0, 5, 0), 0, NULL); /* steps of nothing lead nowhere */
    expect_range(t, RLX_DTYPE_i32, ((const int32_t[]){-1, 2, 1}), 3, F(-1, 0, 1));
    expect_range(t, RLX_DTYPE_f32, F(0, 1, 0.25f), 4, F(0, 0.25f, 0.5f, 0.75f));
    expect_range(t, RLX_DTYPE_f32, F(1, 0, 0.25f), 0, NULL);
    expect_range(t, RLX_DTYPE_f32, F(NAN, 1, 1), 0, NULL);
    struct one bytes = one_node("", "Range", 11, 1);
    for (size_t i = 0; i < 3; i++)
        one_in(&bytes, RLX_DTYPE_u8, RLX_EMPTY, "");
    expect_one_refused(t, &bytes, RLX_ERROR_UNSUPPORTED, "u8");
}

/* ---- a graph of several ---- */

/* NonZero of what Compress left, and a Range over its length: two sizes, one after the other. */
static struct bytes chain(void)
{
    struct bytes g = {.len = 0};

    put_value(&g, 11, "x", 1, (const char *const[]){"n", NULL});
    put_value(&g, 11, "keep", 9, (const char *const[]){"n", NULL});
    NODE(&g, "Compress", LIST("x", "keep"), "kept");
    NODE(&g, "NonZero", LIST("kept"), "at");
    NODE(&g, "Neg", LIST("kept"), "y");
    put_value(&g, 12, "at", 7, NULL);
    put_value(&g, 12, "y", 1, NULL);
    return finish(&g, 17);
}

TEST(onnx_counted, every_cut_is_written_down)
{
    struct bytes m = chain();
    struct result r = import(m.at, m.len);

    if (expect_ok(t, r.status) && expect_eq(t, r.m.cut.len, 2)) {
        const struct ir_graph *g = ir_entry(r.m.mod);
        expect(t, str_eq(dim_symbol_name(r.m.mod->dims, r.m.cut.at[0].symbol), STR("compress_1")));
        expect(t, str_eq(dim_symbol_name(r.m.mod->dims, r.m.cut.at[1].symbol), STR("nonzero_1")));
        expect(t, str_eq(ir_leaf_name(ir_node(g, r.m.cut.at[0].leaf)), STR("kept")));
        expect_eq(t, r.m.cut.at[1].axis, 1);
    }
    onnx_imported_free(&r.m);
}

static rlx_status import_chain(struct test *t, const rlx_allocator *mem, void *unused)
{
    struct bytes m = chain();
    struct onnx_import_options options = {.mode = FILE_READ};
    struct onnx_imported out;
    struct diag d;

    (void)t;
    (void)unused;
    diag_init(&d, "load");
    rlx_status s = onnx_import((rlx_str){(const char *)m.at, m.len}, &options, mem, &out, &d);
    onnx_imported_free(&out);
    return s;
}

TEST(onnx_counted, every_allocation_may_fail)
{
    expect_survives_no_memory(t, import_chain, NULL);
}
