/* shape_b_attention_test.c: attention and rotary embeddings: layouts, masks, refusals. */
#include <math.h>

#include "ir/attention.h"
#include "shape_given.h"

static union ir_attr heads(int64_t num, int64_t kv, int64_t dim)
{
    union ir_attr a = defaults(RLX_OP_attention);

    a.attention.num_heads = num;
    a.attention.num_kv_heads = kv;
    a.attention.head_dim = dim;
    return a;
}

/* auto takes these operands for that layout, and naming it gives the same; -1: it is refused. */
static void resolves(struct build *b, const union ir_attr *base, const char *q, const char *kv,
                     int32_t layout)
{
    ir_value x = given(b, q), y = given(b, kv);
    union ir_attr named = *base;

    test_note(b->t, "%s and %s", q, kv);
    if (layout < 0) {
        fails(b, attention, base, SHAPE, "q", x, y, y);
        return;
    }
    ir_value v = gives(b, attention, base, q, x, y, y);
    if (v == RLX_NO_VALUE)
        return;
    expect_eq(b->t, ir_node(b->g, v)->attr.attention.layout, layout);
    expect_eq(b->t, ir_node(b->g, v)->attr.attention.num_kv_heads,
              base->attention.num_kv_heads == RLX_ABSENT ? base->attention.num_heads
                                                         : base->attention.num_kv_heads);
    expect(b->t, isnan(ir_node(b->g, v)->attr.attention.score_scale));
    expect(b->t, isnan(ir_node(b->g, v)->attr.attention.logit_softcap));
    named.attention.layout = layout;
    gives(b, attention, &named, q, x, y, y);
    test_note(b->t, "%s", "");
}

TEST(shape_attention, layouts)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr plain = heads(4, RLX_ABSENT, 8), grouped = heads(4, 2, 8),
                  single = heads(1, RLX_ABSENT, 8);

    resolves(&b, &plain, "f32[2,4,5,8]", "f32[2,4,7,8]", RLX_ATTENTION_LAYOUT_bhsd);
    resolves(&b, &plain, "f32[2,5,4,8]", "f32[2,7,4,8]", RLX_ATTENTION_LAYOUT_bshd);
    resolves(&b, &plain, "f32[2,4,4,8]", "f32[2,4,4,8]", RLX_ATTENTION_LAYOUT_bhsd); /* a draw */
    resolves(&b, &plain, "f32[2,5,32]", "f32[2,7,32]", RLX_ATTENTION_LAYOUT_packed);
    resolves(&b, &plain, "f32[8,5,8]", "f32[8,7,8]", RLX_ATTENTION_LAYOUT_folded);
    resolves(&b, &grouped, "f32[2,4,5,8]", "f32[2,2,7,8]", RLX_ATTENTION_LAYOUT_bhsd);
    resolves(&b, &grouped, "f32[2,4,4,8]", "f32[2,7,2,8]", RLX_ATTENTION_LAYOUT_bshd);
    resolves(&b, &grouped, "f32[2,5,32]", "f32[2,7,16]", RLX_ATTENTION_LAYOUT_packed);
    resolves(&b, &grouped, "f32[8,5,8]", "f32[4,7,8]", RLX_ATTENTION_LAYOUT_folded);
    resolves(&b, &single, "f32[2,5,8]", "f32[2,7,8]", RLX_ATTENTION_LAYOUT_packed); /* not folded */
    resolves(&b, &plain, "f16[0,4,5,8]", "f16[0,4,0,8]", RLX_ATTENTION_LAYOUT_bhsd);
    resolves(&b, &plain, "f32[batch,4,seq,8]", "f32[batch,4,past,8]", RLX_ATTENTION_LAYOUT_bhsd);
    resolves(&b, &plain, "f32[batch,seq,4,8]", "f32[batch,past,4,8]", RLX_ATTENTION_LAYOUT_bshd);
    resolves(&b, &grouped, "f32[4*batch,seq,8]", "f32[2*batch,past,8]",
             RLX_ATTENTION_LAYOUT_folded);

    resolves(&b, &plain, "f32[2,5,5,8]", "f32[2,7,7,8]", -1);
    resolves(&b, &plain, "f32[2,n,n,8]", "f32[2,n,n,8]", -1);
    resolves(&b, &plain, "f32[2,5,31]", "f32[2,7,31]", -1);
    resolves(&b, &plain, "f32[7,5,8]", "f32[7,7,8]", -1);
    resolves(&b, &plain, "f32[5,8]", "f32[7,8]", -1);
    resolves(&b, &plain, "f32[1,2,4,5,8]", "f32[1,2,4,5,8]", -1);
    build_close(&b);
}

TEST(shape_attention, operands)
{
    struct build b;
    struct ir_type type = {0};
    require(t, build_open(t, &b));
    union ir_attr base = heads(4, 2, 8), bhsd = base, packed = base, folded = base;
    bhsd.attention.layout = RLX_ATTENTION_LAYOUT_bhsd;
    packed.attention.layout = RLX_ATTENTION_LAYOUT_packed;
    folded.attention.layout = RLX_ATTENTION_LAYOUT_folded;
    ir_value q = given(&b, "f32[2,4,5,8]"), k = given(&b, "f32[2,2,7,8]");

    gives(&b, attention, &base, "f32[2,4,5,8]", q, given(&b, "f16[2,2,7,8]"), k);
    fails(&b, attention, &base, SHAPE, "k and v", q, k, given(&b, "f32[2,2,6,8]"));
    fails(&b, attention, &bhsd, SHAPE, "heads of q and num_heads differ: 3 and 4",
          given(&b, "f32[2,3,5,8]"), k, k);
    fails(&b, attention, &bhsd, SHAPE, "heads of k and num_kv_heads differ: 4 and 2", q, q, q);
    fails(&b, attention, &bhsd, SHAPE, "batch sizes of q and k differ: 2 and 3", q,
          given(&b, "f32[3,2,7,8]"), given(&b, "f32[3,2,7,8]"));
    fails(&b, attention, &bhsd, SHAPE, "head sizes of q and head_dim differ: 9 and 8",
          given(&b, "f32[2,4,5,9]"), k, k);
    fails(&b, attention, &bhsd, SHAPE, "head sizes of k and head_dim differ: 9 and 8", q,
          given(&b, "f32[2,2,7,9]"), given(&b, "f32[2,2,7,9]"));
    fails(&b, attention, &packed, SHAPE, "layout packed needs rank 3, q has rank 4", q, k, k);
    fails(&b, attention, &packed, SHAPE, "columns of k", given(&b, "f32[2,5,32]"),
          given(&b, "f32[2,7,32]"), given(&b, "f32[2,7,32]"));
    fails(&b, attention, &packed, SHAPE, "batch sizes", given(&b, "f32[2,5,32]"),
          given(&b, "f32[3,7,16]"), given(&b, "f32[3,7,16]"));
    fails(&b, attention, &folded, SHAPE, "6 is not a multiple of 4", given(&b, "f32[6,5,8]"),
          given(&b, "f32[3,7,8]"), given(&b, "f32[3,7,8]"));
    fails(&b, attention, &folded, SHAPE, "rows of k and batch * num_kv_heads differ: 8 and 4",
          given(&b, "f32[8,5,8]"), given(&b, "f32[8,7,8]"), given(&b, "f32[8,7,8]"));
    fails(&b, attention, &base, SHAPE, "rank", q, given(&b, "f32[2,7,16]"), k);
    fails(&b, attention, &base, DTYPE, "i32", given(&b, "i32[2,4,5,8]"), given(&b, "i32[2,2,7,8]"),
          given(&b, "i32[2,2,7,8]"));
    fails(&b, attention, &base, DTYPE, "f64", given(&b, "f64[2,4,5,8]"), k, k);

    /* rows of a folded q, not known to be a multiple of the heads until bound */
    ir_value kr = given(&b, "f32[r,7,8]");
    union ir_attr same = heads(4, 4, 8);
    gives(&b, attention, &same, "f32[r,5,8]", given(&b, "f32[r,5,8]"), kr, kr);
    expect_ok(t, bind_symbols(&b, "r", 8, NULL, 0, &type, NULL));
    expect_status(t, bind_symbols(&b, "r", 6, NULL, 0, NULL, NULL), RLX_ERROR_SHAPE);
    build_close(&b);
}

TEST(shape_attention, attributes)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = heads(4, RLX_ABSENT, 8);
    ir_value q = given(&b, "f32[2,4,5,8]"), m = given(&b, "f32[2,5]");

    refuses(&b, attention, base, attr.attention.num_heads = 0, ATTRIBUTE, "num_heads is 0", q, q,
            q);
    refuses(&b, attention, base, attr.attention.num_heads = RLX_ABSENT, ATTRIBUTE, "num_heads", q,
            q, q);
    refuses(&b, attention, base, attr.attention.num_kv_heads = 0, ATTRIBUTE, "num_kv_heads is 0", q,
            q, q);
    refuses(&b, attention, base, attr.attention.num_kv_heads = 3, ATTRIBUTE,
            "num_kv_heads 3 does not divide num_heads 4", q, q, q);
    refuses(&b, attention, base, attr.attention.head_dim = 0, ATTRIBUTE, "head_dim is 0", q, q, q);
    refuses(&b, attention, base, attr.attention.head_dim = INT64_MAX, LIMIT, "overflow", q, q, q);
    refuses(&b, attention, base, attr.attention.window = 3, ATTRIBUTE, "window 3 without", q, q, q);
    refuses(&b, attention, base, attr.attention.mask_kind = RLX_MASK_KIND_sliding_window, ATTRIBUTE,
            "needs window", q, q, q);
    refuses(&b, attention, base,
            (attr.attention.mask_kind = RLX_MASK_KIND_sliding_window, attr.attention.window = -1),
            ATTRIBUTE, "window is -1", q, q, q);
    accepts(&b, attention, base,
            (attr.attention.mask_kind = RLX_MASK_KIND_sliding_window, attr.attention.window = 0),
            "f32[2,4,5,8]", q, q, q);
    accepts(&b, attention, base,
            (attr.attention.mask_kind = RLX_MASK_KIND_symmetric_window, attr.attention.window = 0),
            "f32[2,4,5,8]", q, q, q);
    refuses(&b, attention, base, attr.attention.mask_kind = RLX_MASK_KIND_chunked_window, ATTRIBUTE,
            "chunked_window needs window", q, q, q);
    refuses(&b, attention, base,
            (attr.attention.mask_kind = RLX_MASK_KIND_chunked_window, attr.attention.window = 0),
            ATTRIBUTE, "window is 0", q, q, q);
    accepts(&b, attention, base,
            (attr.attention.mask_kind = RLX_MASK_KIND_chunked_window, attr.attention.window = 1),
            "f32[2,4,5,8]", q, q, q);
    accepts(&b, attention, base, attr.attention.mask_kind = RLX_MASK_KIND_causal, "f32[2,4,5,8]", q,
            q, q);
    refuses(&b, attention, base, attr.attention.score_scale = INFINITY, ATTRIBUTE, "score_scale", q,
            q, q);
    accepts(&b, attention, base, attr.attention.score_scale = -2, "f32[2,4,5,8]", q, q, q);
    refuses(&b, attention, base, attr.attention.logit_softcap = 0, ATTRIBUTE, "logit_softcap is 0",
            q, q, q);
    refuses(&b, attention, base, attr.attention.logit_softcap = -1, ATTRIBUTE,
            "logit_softcap is -1", q, q, q);
    refuses(&b, attention, base, attr.attention.logit_softcap = INFINITY, ATTRIBUTE,
            "logit_softcap", q, q, q);
    accepts(&b, attention, base, attr.attention.logit_softcap = 50, "f32[2,4,5,8]", q, q, q);
    refuses(&b, attention, base, attr.attention.layout = 5, ATTRIBUTE, "layout", q, q, q);
    fails(&b, attention, &base, GRAPH, "takes 3 inputs", q, q, q, m);
    refuses(&b, attention, base, attr.attention.mask_kind = RLX_MASK_KIND_causal, GRAPH,
            "takes 3 inputs", q, q, q, m);
    refuses(&b, attention, base, attr.attention.mask_kind = RLX_MASK_KIND_bias, GRAPH,
            "takes 4 inputs", q, q, q);
    refuses(&b, attention, base, attr.attention.mask_kind = RLX_MASK_KIND_custom, GRAPH,
            "takes 4 inputs", q, q, q);
    build_close(&b);
}

TEST(shape_attention, masks)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr custom = heads(4, RLX_ABSENT, 8), bias;
    custom.attention.mask_kind = RLX_MASK_KIND_custom;
    bias = custom;
    bias.attention.mask_kind = RLX_MASK_KIND_bias;
    ir_value q = given(&b, "f16[2,4,5,8]"), k = given(&b, "f16[2,4,7,8]");
    const char *good[] = {"f32[2,7]",     "f32[1,7]",     "f32[2,5,7]",   "f32[1,1,7]",
                          "f32[2,4,5,7]", "f32[1,4,5,7]", "f32[2,1,5,7]", "f32[1,1,1,7]",
                          "f16[2,4,1,7]", "f16[2,m]"};
    const char *bad[] = {"f32[7]",       "f32[2,1]",     "f32[3,7]",     "f32[2,4,7]",
                         "f32[2,2,5,7]", "f32[2,4,5,1]", "f32[2,4,5,8]", "f32[1,2,4,5,7]"};

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        test_note(t, "%s", good[i]);
        gives(&b, attention, &bias, "f16[2,4,5,8]", q, k, k, given(&b, good[i]));
        gives(&b, attention, &custom, "f16[2,4,5,8]", q, k, k, given(&b, good[i]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        test_note(t, "%s", bad[i]);
        fails(&b, attention, &bias, SHAPE, "mask", q, k, k, given(&b, bad[i]));
    }
    test_note(t, "%s", "");
    gives(&b, attention, &custom, "f16[2,4,5,8]", q, k, k, given(&b, "bool[2,7]"));
    gives(&b, attention, &custom, "f16[2,4,5,8]", q, k, k, given(&b, "i64[2,7]"));
    fails(&b, attention, &custom, DTYPE, "c64", q, k, k, given(&b, "c64[2,7]"));
    fails(&b, attention, &bias, DTYPE, "bool", q, k, k, given(&b, "bool[2,7]"));
    fails(&b, attention, &bias, DTYPE, "f64", q, k, k, given(&b, "f64[2,7]"));
    fails(&b, attention, &bias, DTYPE, "bf16", q, k, k, given(&b, "bf16[2,7]"));

    /* the batch of folded rows, and of symbolic ones */
    ir_value fq = given(&b, "f32[8,5,8]"), fk = given(&b, "f32[8,7,8]");
    gives(&b, attention, &bias, "f32[8,5,8]", fq, fk, fk, given(&b, "f32[2,5,7]"));
    fails(&b, attention, &bias, SHAPE, "mask", fq, fk, fk, given(&b, "f32[8,5,7]"));
    ir_value sq = given(&b, "f32[n,4,s,8]");
    gives(&b, attention, &custom, "f32[n,4,s,8]", sq, sq, sq, given(&b, "bool[n,1,s,s]"));
    build_close(&b);
}

TEST(shape_attention, sinks)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = heads(4, RLX_ABSENT, 8), biased;
    base.attention.has_sinks = true;
    biased = base;
    biased.attention.mask_kind = RLX_MASK_KIND_bias;
    ir_value q = given(&b, "f16[2,4,5,8]"), m = given(&b, "f32[2,5]");

    gives(&b, attention, &base, "f16[2,4,5,8]", q, q, q, given(&b, "f32[4]"));
    gives(&b, attention, &base, "f16[2,4,5,8]", q, q, q, given(&b, "f16[4]"));
    gives(&b, attention, &biased, "f16[2,4,5,8]", q, q, q, m, given(&b, "f32[4]"));
    fails(&b, attention, &base, GRAPH, "takes 4 inputs", q, q, q);
    fails(&b, attention, &base, GRAPH, "takes 4 inputs", q, q, q, m, given(&b, "f32[4]"));
    fails(&b, attention, &biased, GRAPH, "takes 5 inputs", q, q, q, m);
    fails(&b, attention, &base, SHAPE, "sinks and num_heads", q, q, q, given(&b, "f32[3]"));
    fails(&b, attention, &base, SHAPE, "rank", q, q, q, given(&b, "f32[4,1]"));
    fails(&b, attention, &base, DTYPE, "sinks must be f32 or like q", q, q, q,
          given(&b, "bf16[4]"));
    fails(&b, attention, &base, DTYPE, "sinks", q, q, q, given(&b, "i32[4]"));

    union ir_attr lean = heads(4, RLX_ABSENT, 8);
    accepts(&b, attention, lean, attr.attention.alibi_max_bias = 8, "f16[2,4,5,8]", q, q, q);
    refuses(&b, attention, lean, attr.attention.alibi_max_bias = 0, ATTRIBUTE,
            "alibi_max_bias is 0", q, q, q);
    refuses(&b, attention, lean, attr.attention.alibi_max_bias = INFINITY, ATTRIBUTE,
            "alibi_max_bias", q, q, q);
    build_close(&b);
}

TEST(shape_attention, values_of_their_own_size)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = heads(4, 2, 8), same = base, back = defaults(RLX_OP_attention_backward);
    base.attention.value_dim = 3;
    same.attention.value_dim = 8;
    ir_value q = given(&b, "f32[2,4,5,8]"), k = given(&b, "f32[2,2,7,8]"),
             v = given(&b, "f32[2,2,7,3]"), dy = given(&b, "f32[2,4,5,3]");

    gives(&b, attention, &base, "f32[2,4,5,3]", q, k, v);
    ir_value y = gives(&b, attention, &same, "f32[2,4,5,8]", q, k, k);
    expect_eq(t, ir_node(b.g, y)->attr.attention.value_dim, RLX_ABSENT);
    gives(&b, attention, &base, "f32[2,5,12]", given(&b, "f32[2,5,32]"), given(&b, "f32[2,7,16]"),
          given(&b, "f32[2,7,6]"));
    gives(&b, attention, &base, "f32[8,5,3]", given(&b, "f32[8,5,8]"), given(&b, "f32[4,7,8]"),
          given(&b, "f32[4,7,3]"));
    gives(&b, attention, &base, "f32[2,5,4,3]", given(&b, "f32[2,5,4,8]"),
          given(&b, "f32[2,7,2,8]"), given(&b, "f32[2,7,2,3]"));
    fails(&b, attention, &base, SHAPE, "value_dim", q, k, k);
    fails(&b, attention, &base, SHAPE, "k and v", q, k, given(&b, "f32[2,2,6,3]"));
    refuses(&b, attention, base, attr.attention.value_dim = 0, ATTRIBUTE, "value_dim is 0", q, k,
            v);
    refuses(&b, attention, base, attr.attention.value_dim = INT64_MAX, LIMIT, "overflow", q, k, v);

    attention_to_backward(&base.attention, &back.attention_backward);
    back.attention_backward.wrt = RLX_ATTENTION_WRT_value;
    gives(&b, attention_backward, &back, "f32[2,2,7,3]", q, k, v, dy);
    fails(&b, attention_backward, &back, SHAPE, "dy", q, k, v, q);
    back.attention_backward.wrt = RLX_ATTENTION_WRT_query;
    gives(&b, attention_backward, &back, "f32[2,4,5,8]", q, k, v, dy);
    build_close(&b);
}

/* Queries in f32 take the halves of a cache as they are; whatever else differs is cast. */
TEST(shape_attention, narrow_cache)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = heads(4, 2, 8);
    ir_value q = given(&b, "f32[2,4,5,8]"), k = given(&b, "f16[2,2,7,8]"),
             v = given(&b, "bf16[2,2,7,8]"), h = given(&b, "f16[2,4,5,8]");

    ir_value y = gives(&b, attention, &base, "f32[2,4,5,8]", q, k, k);
    expect_eq(t, ir_node(b.g, y)->in[1], k);
    y = gives(&b, attention, &base, "f32[2,4,5,8]", q, v, v);
    expect_eq(t, ir_node(b.g, y)->in[2], v);
    y = gives(&b, attention, &base, "f32[2,4,5,8]", q, k, v);
    expect(t, ir_node(b.g, y)->in[1] != k);
    y = gives(&b, attention, &base, "f32[2,4,5,8]", h, v, v);
    expect(t, ir_node(b.g, y)->in[1] != v);
    build_close(&b);
}

TEST(shape_attention, backward)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_attention_backward), bias;
    base.attention_backward.num_heads = 4;
    base.attention_backward.num_kv_heads = 2;
    base.attention_backward.head_dim = 8;
    base.attention_backward.wrt = RLX_ATTENTION_WRT_query;
    bias = base;
    bias.attention_backward.mask_kind = RLX_MASK_KIND_bias;
    bias.attention_backward.wrt = RLX_ATTENTION_WRT_bias;
    ir_value q = given(&b, "f32[2,4,5,8]"), k = given(&b, "f32[2,2,7,8]"),
             m = given(&b, "f32[2,1,5,7]");

    ir_value v = gives(&b, attention_backward, &base, "f32[2,4,5,8]", q, k, k, q);
    expect_eq(t, ir_node(b.g, v)->attr.attention_backward.layout, RLX_ATTENTION_LAYOUT_bhsd);
    accepts(&b, attention_backward, base, attr.attention_backward.wrt = RLX_ATTENTION_WRT_key,
            "f32[2,2,7,8]", q, k, k, q);
    accepts(&b, attention_backward, base, attr.attention_backward.wrt = RLX_ATTENTION_WRT_value,
            "f32[2,2,7,8]", q, k, k, q);
    gives(&b, attention_backward, &bias, "f32[2,1,5,7]", q, k, k, q, m);
    refuses(&b, attention_backward, base, attr.attention_backward.wrt = RLX_ATTENTION_WRT_bias,
            ATTRIBUTE, "wrt bias needs mask_kind bias, not none", q, k, k, q);
    refuses(&b, attention_backward, bias, attr.attention_backward.mask_kind = RLX_MASK_KIND_custom,
            ATTRIBUTE, "not custom", q, k, k, q, m);
    refuses(&b, attention_backward, base, attr.attention_backward.wrt = 4, ATTRIBUTE, "wrt", q, k,
            k, q);
    refuses(&b, attention_backward, base, attr.attention_backward.window = 4, ATTRIBUTE, "window",
            q, k, k, q);
    fails(&b, attention_backward, &base, SHAPE, "dy", q, k, k, k);
    fails(&b, attention_backward, &base, GRAPH, "takes 4 inputs", q, k, k, q, m);
    fails(&b, attention_backward, &bias, GRAPH, "takes 5 inputs", q, k, k, q);
    fails(&b, attention_backward, &bias, SHAPE, "mask", q, k, k, q, given(&b, "f32[2,2,5,7]"));
    build_close(&b);
}

TEST(shape_attention, rope)
{
    struct build b;
    struct ir_type type = {0};
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_rope);
    base.rope.head_dim = 4;
    ir_value x = given(&b, "f32[2,7,12]"), c = given(&b, "f32[9,2]"), bc = given(&b, "f32[2,7,5]");

    ir_value y = gives(&b, rope, &base, "f32[2,7,12]", x, c, c);
    expect_eq(t, ir_node(b.g, y)->attr.rope.n_rot, 4);
    expect_eq(t, ir_node(b.g, y)->attr.rope.seq_axis, 1);
    gives(&b, rope, &base, "f32[2,7,12]", x, bc, bc);
    gives(&b, rope, &base, "f16[2,7,12]", given(&b, "f16[2,7,12]"), c, c);
    gives(&b, rope_backward, &base, "f32[2,7,12]", x, c, c);
    accepts(&b, rope, base, attr.rope.n_rot = 0, "f32[2,7,12]", x, given(&b, "f32[7,0]"),
            given(&b, "f32[7,0]"));
    accepts(&b, rope, base, attr.rope.seq_axis = 1, "f32[2,7,3,4]", given(&b, "f32[2,7,3,4]"), c,
            c);
    accepts(&b, rope, base, attr.rope.style = RLX_ROPE_STYLE_interleaved, "f32[2,7,12]", x, c, c);

    refuses(&b, rope, base, attr.rope.head_dim = 3, ATTRIBUTE, "head_dim 3 is odd", x, c, c);
    refuses(&b, rope, base, attr.rope.head_dim = 0, ATTRIBUTE, "head_dim is 0", x, c, c);
    refuses(&b, rope, base, attr.rope.n_rot = 3, ATTRIBUTE, "n_rot 3 is odd", x, c, c);
    refuses(&b, rope, base, attr.rope.n_rot = 6, ATTRIBUTE, "n_rot is 6", x, c, c);
    refuses(&b, rope, base, attr.rope.n_rot = -2, ATTRIBUTE, "n_rot is -2", x, c, c);
    refuses(&b, rope, base, attr.rope.seq_axis = -1, ATTRIBUTE, "last axis", x, c, c);
    refuses(&b, rope, base, attr.rope.seq_axis = 3, ATTRIBUTE, "seq_axis is 3", x, c, c);
    refuses(&b, rope, base, attr.rope.style = 2, ATTRIBUTE, "style", x, c, c);
    fails(&b, rope, &base, SHAPE, "13 is not a multiple of 4", given(&b, "f32[2,7,13]"), c, c);
    fails(&b, rope, &base, SHAPE, "6 is less than 7", x, given(&b, "f32[6,2]"),
          given(&b, "f32[6,2]"));
    fails(&b, rope, &base, SHAPE, "1 is less than 2", x, given(&b, "f32[7,1]"),
          given(&b, "f32[7,1]"));
    fails(&b, rope, &base, SHAPE, "cos and sin", x, c, given(&b, "f32[7,2]"));
    fails(&b, rope, &base, SHAPE, "batch sizes of the tables and x differ: 3 and 2", x,
          given(&b, "f32[3,7,2]"), given(&b, "f32[3,7,2]"));
    fails(&b, rope, &base, SHAPE, "rank", x, given(&b, "f32[9]"), given(&b, "f32[9]"));
    fails(&b, rope, &base, SHAPE, "rank", given(&b, "f32[12]"), c, c);
    fails(&b, rope, &base, DTYPE, "f16", x, given(&b, "f16[9,2]"), given(&b, "f16[9,2]"));
    fails(&b, rope_backward, &base, DTYPE, "i32", given(&b, "i32[2,7,12]"), c, c);

    gives(&b, rope, &base, "f32[n,s,4]", given(&b, "f32[n,s,4]"), c, c);
    expect_ok(t, bind_symbols(&b, "n", 2, "s", 9, &type, NULL));
    expect_status(t, bind_symbols(&b, "n", 2, "s", 10, NULL, NULL), RLX_ERROR_SHAPE);
    build_close(&b);
}

TEST(shape_attention, axial_rope_2d)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_axial_rope_2d);
    base.axial_rope_2d.end_x = 3;
    base.axial_rope_2d.end_y = 5;
    base.axial_rope_2d.head_dim = 8;
    base.axial_rope_2d.num_heads = 2;
    ir_value x = given(&b, "f32[n,15,16]");

    gives(&b, axial_rope_2d, &base, "f32[n,15,16]", x);
    accepts(&b, axial_rope_2d, base, attr.axial_rope_2d.repeat_factor = 2, "f32[1,30,16]",
            given(&b, "f32[1,30,16]"));
    refuses(&b, axial_rope_2d, base, attr.axial_rope_2d.repeat_factor = 2, SHAPE, "15 and 30", x);
    refuses(&b, axial_rope_2d, base, attr.axial_rope_2d.head_dim = 6, ATTRIBUTE,
            "head_dim 6 is not a multiple of 4", x);
    refuses(&b, axial_rope_2d, base, attr.axial_rope_2d.head_dim = 0, ATTRIBUTE, "head_dim is 0",
            x);
    refuses(&b, axial_rope_2d, base, attr.axial_rope_2d.num_heads = 3, SHAPE, "16 and 24", x);
    refuses(&b, axial_rope_2d, base, attr.axial_rope_2d.num_heads = 0, ATTRIBUTE, "num_heads", x);
    refuses(&b, axial_rope_2d, base, attr.axial_rope_2d.end_x = 0, ATTRIBUTE, "end_x", x);
    refuses(&b, axial_rope_2d, base, attr.axial_rope_2d.end_y = -1, ATTRIBUTE, "end_y", x);
    refuses(&b, axial_rope_2d, base, attr.axial_rope_2d.end_y = INT64_MAX, LIMIT, "overflow", x);
    refuses(&b, axial_rope_2d, base, attr.axial_rope_2d.theta = 0, ATTRIBUTE, "theta", x);
    fails(&b, axial_rope_2d, &base, SHAPE, "rank must be 3", given(&b, "f32[15,16]"));
    fails(&b, axial_rope_2d, &base, DTYPE, "i32", given(&b, "i32[1,15,16]"));
    build_close(&b);
}
