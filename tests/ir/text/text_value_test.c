/* text_value_test.c: attributes, constants and dims in the text form, both ways. */
#include <stdio.h>
#include <string.h>

#include "text_check.h"

/* ---- attributes ---------------------------------------------------------------------------- */

static void expect_attrs(struct test *t, rlx_op op, const char *source, const char *want)
{
    struct ir_module *m = NULL;
    struct ir_graph *g;
    union ir_attr attr;
    struct text out;
    struct diag d;

    test_note(t, "%s %s", op_info(op)->name, source);
    diag_init(&d, "test");
    text_init(&out, mem_default());
    require_ok(t, ir_module_create(mem_default(), &m, &d));
    ir_graph_add(m, STR("main"), &g, &d);
    ir_graph_add(m, STR("body"), &g, &d);
    attr_defaults(op, &attr);
    rlx_status s = ir_parse_attrs(m, op, rlx_cstr(source), &attr, &d);
    if (s != RLX_OK)
        fail(t, "%s", d.first.message);
    text_add(&out, STR("")); /* so that there is text, if only an empty one */
    ir_print_attrs(m, op, &attr, &out);
    expect_str(t, out.at, want);
    text_free(&out);
    ir_module_destroy(m);
    test_note(t, "%s", "");
}

TEST(text, every_kind_of_attribute)
{
    expect_attrs(t, RLX_OP_softmax, "", "");
    expect_attrs(t, RLX_OP_softmax, "axis=-1", "");
    expect_attrs(t, RLX_OP_softmax, "axis=-9223372036854775807", "axis=-9223372036854775807");
    expect_attrs(t, RLX_OP_sample, "seed=18446744073709551615 top_p=0.1",
                 "top_p=0.1 seed=18446744073709551615");
    expect_attrs(t, RLX_OP_layer_norm, "eps=1e-5", "");
    expect_attrs(t, RLX_OP_layer_norm, "eps=3.4028235e38", "eps=3.4028235e38");
    expect_attrs(t, RLX_OP_clamp, "min=-0.1 max=inf", "min=-0.1");
    expect_attrs(t, RLX_OP_clamp, "min=-inf max=-inf", "max=-inf");
    expect_attrs(t, RLX_OP_pad, "mode=circular before=[] after=[0,n*2-1] value=-0",
                 "before=[] after=[0,2*n-1] mode=circular value=-0");
    expect_attrs(t, RLX_OP_cast, "to=bf16", "to=bf16");
    expect_attrs(t, RLX_OP_narrow, "axis=0 len=past+1 start=(a+b)*2",
                 "axis=0 start=2*a+2*b len=past+1");
    expect_attrs(t, RLX_OP_reshape, "shape=[-1,?,n/2]", "shape=[-1,?,n/2]");
    expect_attrs(t, RLX_OP_tile, "reps=[1,2,-3]", "reps=[1,2,-3]");
    expect_attrs(t, RLX_OP_quantize, "scales=[0.1,nan,inf,-inf,-0] zero_points=[]",
                 "scales=[0.1,nan,inf,-inf,-0]");
    expect_attrs(t, RLX_OP_custom, "attrs=0x00FFab name=\"\"", "name=\"\" attrs=0x00ffab");
    expect_attrs(t, RLX_OP_custom, "name=\"x\" attrs=0x", "name=\"x\"");
    expect_attrs(t, RLX_OP_scan, "body=@body length=n", "body=@body length=n");
    expect_attrs(t, RLX_OP_elementwise_region,
                 "chain=[[add,i0,i1],[relu,s0],[cast,s1,f16],[where,i2,s2,s0]]",
                 "chain=[[add,i0,i1],[relu,s0],[cast,s1,f16],[where,i2,s2,s0]]");
    expect_attrs(t, RLX_OP_fused_matmul_bias_act, "activation=gelu", "activation=gelu");
    expect_attrs(t, RLX_OP_fused_matmul_bias_act, "activation=none", "");
    expect_attrs(t, RLX_OP_fused_transformer_layer,
                 "num_heads=1 head_dim=2 intermediate_size=3 activation=none",
                 "num_heads=1 head_dim=2 intermediate_size=3 activation=none");
    expect_attrs(t, RLX_OP_attention, "num_heads=1 head_dim=2 score_scale=nan",
                 "num_heads=1 head_dim=2");
}

TEST(text, attributes_that_are_wrong)
{
    static const struct {
        rlx_op op;
        const char *source;
        rlx_status status;
        const char *part;
    } row[] = {
        {RLX_OP_softmax, "axes=1", RLX_ERROR_FORMAT,
         "1:1: softmax has no attribute 'axes'; it has axis"},
        {RLX_OP_relu, "axis=1", RLX_ERROR_FORMAT, "relu has no attributes"},
        {RLX_OP_softmax, "axis=1 axis=2", RLX_ERROR_FORMAT,
         "1:8: the attribute axis is given twice"},
        {RLX_OP_softmax, "axis=1.5", RLX_ERROR_FORMAT, "1:6: expected an integer, got '1.5'"},
        {RLX_OP_softmax, "axis=", RLX_ERROR_FORMAT, "1:6: expected an integer, but the text ends"},
        {RLX_OP_softmax, "axis=- 1", RLX_ERROR_FORMAT, "1:6: expected an integer, got '-'"},
        {RLX_OP_softmax, "axis=9223372036854775808", RLX_ERROR_FORMAT, "out of range"},
        {RLX_OP_softmax, "axis 1", RLX_ERROR_FORMAT, "1:1: expected an attribute"},
        {RLX_OP_sample, "seed=-1", RLX_ERROR_FORMAT,
         "-1 is out of range: 0 to 18446744073709551615"},
        {RLX_OP_sample, "seed=18446744073709551616", RLX_ERROR_FORMAT, "out of range"},
        {RLX_OP_layer_norm, "eps=1e39", RLX_ERROR_FORMAT, "1:5: the number is too large for f32"},
        {RLX_OP_clamp, "min=1e999", RLX_ERROR_FORMAT, "infinity is spelled inf"},
        {RLX_OP_clamp, "min=-nan", RLX_ERROR_FORMAT, "expected a number"},
        {RLX_OP_reduce_sum, "axes=[0] keep_dim=1", RLX_ERROR_FORMAT,
         "expected true or false, got '1'"},
        {RLX_OP_reduce_sum, "keep_dim=true", RLX_ERROR_ATTRIBUTE, "the attribute axes is missing"},
        {RLX_OP_pool, "kernel_size=[2] kind=median", RLX_ERROR_FORMAT,
         "1:22: expected one of sum, mean, max, min, prod, got 'median'"},
        {RLX_OP_cast, "to=f33", RLX_ERROR_FORMAT,
         "1:4: expected an element type such as f32, got 'f33'"},
        {RLX_OP_tile, "reps=[1,2,3,4,5,6,7,8,9]", RLX_ERROR_LIMIT, "at most 8 entries"},
        {RLX_OP_tile, "reps=[1,]", RLX_ERROR_FORMAT, "expected an integer, got ']'"},
        {RLX_OP_tile, "reps=[1 2]", RLX_ERROR_FORMAT, "expected ',' or ']', got '2'"},
        {RLX_OP_custom, "name=\"x\" attrs=0x123", RLX_ERROR_FORMAT, "two hex digits"},
        {RLX_OP_custom, "name=\"\\q\"", RLX_ERROR_FORMAT, "1:7: unknown escape"},
        {RLX_OP_custom, "name=\"\\x00\"", RLX_ERROR_FORMAT, "no NUL"},
        {RLX_OP_custom, "name=\"x", RLX_ERROR_FORMAT, "no closing quote"},
        {RLX_OP_scan, "length=3 body=@nobody", RLX_ERROR_FORMAT, "there is no sub-graph @nobody"},
        {RLX_OP_scan, "length=3 body=@main", RLX_ERROR_FORMAT, "there is no sub-graph @main"},
        {RLX_OP_scan, "length=3 body=main", RLX_ERROR_FORMAT, "expected a graph such as @body"},
        {RLX_OP_elementwise_region, "chain=[[add,i0]]", RLX_ERROR_FORMAT, "expected ','"},
        {RLX_OP_elementwise_region, "chain=[[add,i0,x1]]", RLX_ERROR_FORMAT, "expected an operand"},
        {RLX_OP_elementwise_region, "chain=[[concat,i0]]", RLX_ERROR_FORMAT, "cannot be a step"},
        {RLX_OP_elementwise_region, "chain=[[relu,s99999999999]]", RLX_ERROR_FORMAT, "an operand"},
        {RLX_OP_fused_matmul_bias_act, "activation=add", RLX_ERROR_FORMAT, "add is not a unary op"},
        {RLX_OP_narrow, "axis=0 start=0 len=n/0", RLX_ERROR_FORMAT, "1:22: a size is divided by"},
        {RLX_OP_narrow, "axis=0 start=0 len=n/m", RLX_ERROR_FORMAT, "a constant of at least 1"},
        {RLX_OP_narrow, "axis=0 start=0 len=2-3", RLX_ERROR_FORMAT, "the size '2-3' is negative"},
    };

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct ir_module *m = NULL;
        struct ir_graph *g;
        union ir_attr attr, before;
        struct diag d;
        diag_init(&d, "test");
        test_note(t, "%s", row[i].source);
        require_ok(t, ir_module_create(mem_default(), &m, &d));
        ir_graph_add(m, STR("main"), &g, &d);
        attr_defaults(row[i].op, &attr);
        before = attr;
        expect_status(t, ir_parse_attrs(m, row[i].op, rlx_cstr(row[i].source), &attr, &d),
                      row[i].status);
        expect_error(t, row[i].status, row[i].part, &d.first);
        expect(t, attr_same(row[i].op, &attr, &before));
        ir_module_destroy(m);
    }
}

/* ---- constants ----------------------------------------------------------------------------- */

static void expect_const(struct test *t, const char *source, const char *want)
{
    char text[4096];

    snprintf(text, sizeof text, "rlx 1\ngraph () {\n    %%c = const %s\n    return %%c\n}\n",
             source);
    char printed[4096];
    snprintf(printed, sizeof printed, "rlx 1\ngraph () {\n    %%c = const %s\n    return %%c\n}\n",
             want);
    expect_print(t, text, printed);
}

TEST(text, constants)
{
    expect_const(t, "f32[2,2] {1,2, 3 4}", "f32[2,2] {1 2 3 4}");
    expect_const(t, "f32[4] {nan inf -inf -0}", "f32[4] {nan inf -inf -0}");
    expect_const(t, "f32[2] bytes 0x000080FF01000000", "f32[2] {-inf 1e-45}");
    expect_const(t, "f32[1] bytes 0x0000c07f", "f32[1] {nan}");
    expect_const(t, "f32[1] bytes 0x0000c0ff", "f32[1] bytes 0x0000c0ff");
    expect_const(t, "f32[1] bytes 0x0100c07f", "f32[1] bytes 0x0100c07f");
    expect_const(t, "f16[3] {0.1 65519 6e-8}", "f16[3] {0.1 65504 6e-8}");
    expect_const(t, "f16[1] bytes 0x017e", "f16[1] bytes 0x017e");
    expect_const(t, "bf16[3] {3.1415926 1e-40 nan}", "bf16[3] {3.14 9e-41 nan}");
    expect_const(t, "f64[2] {0.1 1e-320}", "f64[2] {0.1 1e-320}");
    expect_const(t, "i8[2] {-128 127}", "i8[2] {-128 127}");
    expect_const(t, "u8[2] bytes 0x00ff", "u8[2] {0 255}");
    expect_const(t, "u64[1] {18446744073709551615}", "u64[1] {18446744073709551615}");
    expect_const(t, "i64[1] {-9223372036854775808}", "i64[1] {-9223372036854775808}");
    expect_const(t, "bool[4] {true,false,1,0}", "bool[4] {true false true false}");
    expect_const(t, "c64[2] {1 2 nan -inf}", "c64[2] {1 2 nan -inf}");
    expect_const(t, "c64[1] bytes 0x000000000100c07f", "c64[1] bytes 0x000000000100c07f");
    expect_const(t, "f32[] {7}", "f32[] {7}");
    expect_const(t, "f32[0,9] {}", "f32[0,9] {}");
    expect_const(t, "f32[0,9223372036854775807] bytes 0x", "f32[0,9223372036854775807] {}");
}

/* Every pattern of the two-byte floats, printed and read, comes back to the bit. A short run takes
 * some of them, near all powers of two. */
TEST(text, all_16_bit_floats_read_back)
{
    static const char *const names[] = {"f16", "bf16"};
    struct text source;

    for (int k = 0; k < 2; k++) {
        for (unsigned base = 0; base < 0x10000; base += test_full() ? 64 : 512) {
            text_init(&source, mem_default());
            text_addf(&source, "rlx 1 graph () { %%c = const %s[64] bytes 0x", names[k]);
            for (unsigned i = base; i < base + 64; i++)
                text_addf(&source, "%02x%02x", i & 255, i >> 8);
            text_addf(&source, " return %%c }");
            struct ir_module *m = parse(t, source.at), *again = NULL;
            struct text out = print(t, m, false, false);
            again = parse(t, out.at);
            if (m && again)
                expect_bytes(t, again->graph.at[0]->node.at[0].attr.const_.data.ptr,
                             m->graph.at[0]->node.at[0].attr.const_.data.ptr, 128);
            text_free(&out);
            text_free(&source);
            ir_module_destroy(m);
            ir_module_destroy(again);
        }
    }
}

TEST(text, large_constants_are_bytes_or_shortened)
{
    struct text source;

    text_init(&source, mem_default());
    text_add(&source, STR("rlx 1 graph () { %c = const i32[65] {"));
    for (int i = 0; i < 65; i++)
        text_addf(&source, " %d", i);
    text_add(&source, STR("} return %c }"));
    struct ir_module *m = parse(t, source.at);
    require(t, m != NULL);
    struct text out = print(t, m, false, false);
    expect_contains(t, out.at, "const i32[65] bytes 0x0000000001000000");
    text_free(&out);
    out = print(t, m, false, true);
    expect_contains(t, out.at, "const i32[65] {0 1 2 3 4 5 6 7 ...}");
    expect_refusal(t, out.at, RLX_ERROR_FORMAT, "this text was shortened for reading");
    text_free(&out);
    ir_module_destroy(m);
    expect_print(t, source.at, NULL);
    text_free(&source);
}

struct npy_user {
    const char *asked;
    bool wrong;
};

static rlx_status load_npy(void *user, rlx_str name, struct arena *arena, struct ir_type *type,
                           const void **data, struct diag *d)
{
    struct npy_user *u = user;
    float *v = arena_array(arena, float, 2);

    if (!v)
        return diag_no_memory(d, 8);
    if (!str_eq(name, STR("w.npy")))
        return diag_fail(d, RLX_ERROR_IO, "there is no file %.*s", STR_ARG(name));
    u->asked = "w.npy";
    v[0] = 1.5f, v[1] = -2;
    *type = (struct ir_type){RLX_DTYPE_f32, 1, {u->wrong ? 1 : 2}};
    *data = v;
    return RLX_OK;
}

TEST(text, constants_from_files)
{
    static const char source[] = "rlx 1 graph () { %c = const f32[2] npy \"w.npy\" return %c }";
    struct npy_user user = {0};
    const struct text_parse_options o = {.load_npy = load_npy, .user = &user};
    struct ir_module *m = NULL;
    struct diag d;

    diag_init(&d, "parse");
    require_ok(t, ir_parse(rlx_cstr(source), &o, mem_default(), &m, &d));
    expect_str(t, user.asked, "w.npy");
    struct text out = print(t, m, false, false);
    expect_contains(t, out.at, "%c = const f32[2] {1.5 -2}");
    text_free(&out);
    ir_module_destroy(m);
    user.wrong = true;
    expect_status(t, ir_parse(rlx_cstr(source), &o, mem_default(), &m, &d), RLX_ERROR_FORMAT);
    expect_contains(t, d.first.message, "1:40: the file \"w.npy\" holds another type");
    diag_init(&d, "parse");
    expect_status(t,
                  ir_parse(STR("rlx 1 graph () { %c = const f32[2] npy \"x\" return %c }"), &o,
                           mem_default(), &m, &d),
                  RLX_ERROR_IO);
    expect_contains(t, d.first.message, "1:40: there is no file x");
    expect_refusal(t, source, RLX_ERROR_FORMAT, "files named by a text are not opened here");
}

/* ---- dims ---------------------------------------------------------------------------------- */

static ir_dim random_dim(struct dim_table *dims, uint64_t *rng, int depth)
{
    static const char *const names[] = {"a", "b", "len", "batch"};
    uint64_t r = *rng = *rng * 6364136223846793005u + 1442695040888963407u;
    unsigned pick = (unsigned)(r >> 40);

    if (depth == 0)
        return pick % 3 ? dim_symbol(dims, rlx_cstr(names[pick % 4])) : (ir_dim)(pick % 9);
    ir_dim x = random_dim(dims, rng, depth - 1), y = random_dim(dims, rng, depth - 1);
    switch (pick % 5) {
    case 0: return dim_add(dims, x, y);
    case 1: return dim_sub(dims, x, y);
    case 2: return dim_mul(dims, x, y);
    default: return dim_floor_div(dims, x, 1 + pick % 7);
    }
}

TEST(text, printed_dims_parse_to_the_same_handle)
{
    uint64_t rng = 1;
    int done = 0;

    for (int i = 0; i < 2000; i++) {
        struct ir_module *m = NULL;
        union ir_attr attr;
        struct text out;
        struct diag d;
        diag_init(&d, "test");
        require_ok(t, ir_module_create(mem_default(), &m, &d));
        ir_dim dim = random_dim(m->dims, &rng, i % 5);
        text_init(&out, mem_default());
        text_add(&out, STR("out_dim="));
        dim_print(m->dims, dim, &out);
        attr_defaults(RLX_OP_scatter_add, &attr);
        if (dim != RLX_DIM_FAILED) {
            test_note(t, "%s", out.at);
            expect_ok(t,
                      ir_parse_attrs(m, RLX_OP_scatter_add, (rlx_str){out.at, out.len}, &attr, &d));
            expect_eq(t, attr.scatter_add.out_dim, dim);
            done++;
        }
        text_free(&out);
        ir_module_destroy(m);
    }
    expect(t, done > 1000);
}

TEST(text, order_of_symbols_is_kept)
{
    expect_print(
        t, "rlx 1 graph (input %x: f32[z*y+z,y*a]) { return %x }",
        "rlx 1\ndim z\ndim y\ndim a\ngraph (input %x: f32[z*y+z,y*a]) {\n    return %x\n}\n");
    expect_print(
        t, "rlx 1 dim a dim y dim z graph (input %x: f32[z*y+z,y*a]) { return %x }",
        "rlx 1\ndim a\ndim y\ndim z\ngraph (input %x: f32[y*z+z,a*y]) {\n    return %x\n}\n");
}

/* ---- constants whose bytes stand elsewhere ---- */

static bool name_large(void *user, const struct ir_node *n, char name[32])
{
    (void)user;
    snprintf(name, 32, "blob %zu", n->attr.const_.data.len);
    return n->attr.const_.data.len >= 12;
}

static rlx_status find_blob(void *user, rlx_str name, struct arena *arena, struct ir_type *type,
                            const void **data, struct diag *d)
{
    (void)arena, (void)d;
    *type = (struct ir_type){RLX_DTYPE_f32, 1, {3}};
    *data = str_eq(name, STR("blob 12")) ? user : NULL;
    return RLX_OK;
}

TEST(text, constants_may_stand_elsewhere)
{
    struct text_print_options o = {.elsewhere = name_large};
    struct ir_module *m = parse(t, "rlx 1\ngraph () {\n    %a = const f32[3] {1 2 3}\n"
                                   "    %b = const f32[2] {1 2}\n    return %a, %b\n}\n");
    struct ir_module *again = NULL;
    float blob[3] = {1, 2, 3};
    struct text_parse_options read = {.load_npy = find_blob, .user = blob};
    struct text out;

    require(t, m);
    text_init(&out, mem_default());
    expect_ok(t, ir_print(m, &o, &out, NULL));
    expect_str(t, out.at,
               "rlx 1\ngraph () {\n    %a = const f32[3] npy \"blob 12\"\n"
               "    %b = const f32[2] {1 2}\n    return %a, %b\n}\n");
    require_ok(t, ir_parse((rlx_str){out.at, out.len}, &read, mem_default(), &again, NULL));
    expect(t, attr_same(RLX_OP_const, &ir_entry(m)->node.at[0].attr,
                        &ir_entry(again)->node.at[0].attr));
    text_free(&out);
    ir_module_destroy(again);
    ir_module_destroy(m);
}
