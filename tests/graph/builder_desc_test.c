/* builder_desc_test.c: builders that take their attributes in a struct. */
#include <math.h>

#include "graph/builder.h"
#include "graph_world.h"

/* Attributes at their defaults, as the builders' initialisers have them and as ops.def has them. */
#define SAME_I(family, field) expect_eq(t, (int64_t)d.field, (int64_t)attr.family.field)
#define SAME_F(family, field)                                                 \
    expect(t, (isnan((double)d.field) && isnan((double)attr.family.field)) || \
                  (double)d.field == (double)attr.family.field)

TEST(builder_desc, initialisers_hold_the_defaults_of_the_table)
{
    union ir_attr attr;

    {
        rlx_sample_desc d = RLX_SAMPLE_DESC_INIT;
        attr_defaults(RLX_OP_sample, &attr);
        expect_eq_u64(t, d.size, sizeof d);
        SAME_I(sample, top_k);
        SAME_F(sample, top_p);
        SAME_F(sample, temperature);
        SAME_I(sample, index_dtype);
    }
    {
        rlx_attention_desc d = RLX_ATTENTION_DESC_INIT;
        attr_defaults(RLX_OP_attention, &attr);
        SAME_I(attention, num_heads);
        SAME_I(attention, num_kv_heads);
        SAME_I(attention, mask_kind);
        SAME_I(attention, window);
        SAME_F(attention, score_scale);
        SAME_I(attention, layout);
    }
    {
        rlx_pool_desc d = RLX_POOL_DESC_INIT;
        attr_defaults(RLX_OP_pool, &attr);
        expect_eq(t, (int32_t)d.kind, attr.pool.kind); /* -1: it must be set */
        SAME_I(pool, kernel_size.count);
        SAME_I(pool, count_include_pad);
    }
    {
        rlx_gaussian_splat_desc d = RLX_GAUSSIAN_SPLAT_DESC_INIT;
        attr_defaults(RLX_OP_gaussian_splat_render, &attr);
        SAME_I(gaussian_splat, tile_size);
        SAME_F(gaussian_splat, radius_scale);
        SAME_F(gaussian_splat, alpha_cutoff);
    }
    {
        rlx_fused_transformer_layer_desc d = RLX_FUSED_TRANSFORMER_LAYER_DESC_INIT;
        attr_defaults(RLX_OP_fused_transformer_layer, &attr);
        SAME_F(fused_transformer_layer, eps1);
        SAME_I(fused_transformer_layer, activation);
    }
}

struct inputs {
    rlx_value x, w;
};

static struct inputs image_and_filter(rlx_graph *g)
{
    return (struct inputs){rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(1, 2, 6, 6)),
                           rlx_param(g, "w", RLX_DTYPE_f32, RLX_LIST(3, 2, 3, 3))};
}

static int64_t height_of(struct test *t, const rlx_graph *g, rlx_value v)
{
    rlx_dtype dtype;
    rlx_list shape = {0, {0}};

    expect_ok(t, rlx_value_type(g, v, &dtype, &shape, NULL));
    return shape.count == 4 ? shape.at[2] : -1;
}

TEST(builder_desc, null_and_the_initialiser_are_the_defaults)
{
    rlx_conv_desc d = RLX_CONV_DESC_INIT;
    struct world w;

    if (!open_world(t, &w))
        return close_world(&w);
    struct inputs in = image_and_filter(w.g);
    expect_eq(t, height_of(t, w.g, rlx_conv(w.g, in.x, in.w, NULL)), 4);
    expect_eq(t, height_of(t, w.g, rlx_conv(w.g, in.x, in.w, &d)), 4);
    d.padding = RLX_LIST(1, 1);
    expect_eq(t, height_of(t, w.g, rlx_conv(w.g, in.x, in.w, &d)), 6);
    close_world(&w);
}

TEST(builder_desc, an_older_program_gets_defaults_for_what_it_does_not_know)
{
    rlx_conv_desc d = RLX_CONV_DESC_INIT;
    struct world w;

    if (!open_world(t, &w))
        return close_world(&w);
    struct inputs in = image_and_filter(w.g);
    d.padding = RLX_LIST(1, 1);
    d.dilation = RLX_LIST(2, 2);
    d.groups = 77; /* not read */
    d.size = offsetof(rlx_conv_desc, dilation);
    expect_eq(t, height_of(t, w.g, rlx_conv(w.g, in.x, in.w, &d)), 6);
    expect_ok(t, rlx_graph_check(w.g, NULL));
    close_world(&w);
}

TEST(builder_desc, a_struct_that_was_not_begun_is_the_graphs_first_failure)
{
    rlx_conv_desc d = {0};
    struct world w;
    rlx_error err;

    if (!open_world(t, &w))
        return close_world(&w);
    struct inputs in = image_and_filter(w.g);
    expect_eq(t, rlx_conv(w.g, in.x, in.w, &d), RLX_NO_VALUE);
    expect_status(t, rlx_graph_check(w.g, &err), RLX_ERROR_ARGUMENT);
    expect_contains(t, err.message, "rlx_conv_desc.size is 0");
    expect_eq(t, rlx_conv(NULL, in.x, in.w, NULL), RLX_NO_VALUE);
    close_world(&w);
}

TEST(builder_desc, what_must_be_set_is_asked_for)
{
    rlx_pool_desc d = RLX_POOL_DESC_INIT;
    struct world w;
    rlx_error err;

    if (!open_world(t, &w))
        return close_world(&w);
    struct inputs in = image_and_filter(w.g);
    d.kernel_size = RLX_LIST(2, 2);
    expect_eq(t, rlx_pool(w.g, in.x, &d), RLX_NO_VALUE);
    expect_status(t, rlx_graph_check(w.g, &err), RLX_ERROR_ATTRIBUTE);
    expect_contains(t, err.message, "kind");
    close_world(&w);
}
