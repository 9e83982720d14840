/* fuse_gate_test.c: a fusion is made only where the device has the op it makes and no option
 * forbids it. */
#include "../test.h"
#include "ir/text/text.h"
#include "pass/pass.h"

/* Something for every fusion. */
static const char source[] =
    "rlx 1\n"
    "graph (input %x: f32[2,3,8], param %w: f32[8,8], param %u: f32[8,8], param %b: f32[8],"
    "       input %i: f32[1,2,4,4], param %f: f32[2,2,1,1], param %c: f32[2,1,1]) {\n"
    "    %m = matmul %x, %w  %a = add %m, %b\n"
    "    %v = conv %i, %f  %p = add %v, %c\n"
    "    %s = add %x, %a  %l = layer_norm %s, %b, %b\n"
    "    %t = add %l, %x  %r = rms_norm %t, %b\n"
    "    %o = rms_norm %x, %b  %h = reshape %o shape=[6,8]  %n = neg %h\n"
    "    %g = matmul %r, %w  %k = matmul %r, %u  %e = silu %g  %y = mul %e, %k\n"
    "    %q1 = matmul %y, %w  %q2 = matmul %y, %u\n"
    "    %lo = narrow %y axis=2 start=0 len=4  %hi = narrow %y axis=2 start=4 len=4\n"
    "    %j = silu %hi  %d = mul %j, %lo\n"
    "    %e1 = exp %q1  %e2 = cos %e1\n"
    "    return %p, %n, %d, %q2, %e2\n"
    "}\n";

static const struct {
    const char *pass;
    enum op_family made; /* FAMILY_none: no device is needed */
    struct pass_options off;
} row[] = {
    {"fuse-matmul-bias", FAMILY_fused_matmul_bias_act, {.no_matmul_fusion = true}},
    {"fuse-conv-bias", FAMILY_fused_conv_bias_act, {.no_matmul_fusion = true}},
    {"fuse-residual-ln", FAMILY_fused_residual_norm, {.no_residual_fusion = true}},
    {"fuse-residual-rms", FAMILY_fused_residual_norm, {.no_residual_fusion = true}},
    {"move-norm-reshape", FAMILY_none, {.no_fusion = true}},
    {"fuse-dual-matmul", FAMILY_fused_swiglu, {.no_weight_concat = true}},
    {"fuse-shared-matmul", FAMILY_matmul, {.no_weight_concat = true}},
    {"fuse-swiglu", FAMILY_fused_swiglu, {.no_fusion = true}},
    {"mark-regions", FAMILY_elementwise_region, {.no_regions = true}},
};

static uint64_t changes(struct test *t, const char *pass, const struct target *target,
                        const struct pass_options *o)
{
    struct ir_module *m = NULL;
    struct diag d;
    uint64_t made = 0;
    const struct pass *p = pass_find(rlx_cstr(pass));

    diag_init(&d, "pass");
    if (!expect(t, p != NULL) ||
        !expect_ok(
            t, ir_parse(rlx_cstr(source), &(struct text_parse_options){0}, mem_default(), &m, &d)))
        return 0;
    expect_ok(t, pass_one(p, m, target, o, &made, &d));
    ir_module_destroy(m);
    return made;
}

TEST(pass, fusions_are_made_for_devices_that_have_them)
{
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct target has = {.backend = "some"}, lacks = {.backend = "other"};
        test_note(t, "%s", row[i].pass);
        for (int f = 0; f < FAMILY_count; f++) {
            has.native[f] = f == (int)row[i].made;
            lacks.native[f] = !has.native[f];
        }
        expect(t, changes(t, row[i].pass, NULL, NULL) > 0);
        expect(t, changes(t, row[i].pass, &has, NULL) > 0);
        expect_eq(t, changes(t, row[i].pass, &lacks, NULL) > 0, row[i].made == FAMILY_none);
    }
}

TEST(pass, fusions_are_left_out_where_an_option_says_so)
{
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        test_note(t, "%s", row[i].pass);
        expect_eq_u64(t, changes(t, row[i].pass, NULL, &row[i].off), 0);
        expect_eq_u64(t, changes(t, row[i].pass, NULL, &(struct pass_options){.no_fusion = true}),
                      0);
    }
}

/* Weights that would be put side by side in every run stay as they are. */
TEST(pass, weights_are_concatenated_once_or_never)
{
    static const struct pass_options every_run = {.no_static_pack = true};

    expect_eq_u64(t, changes(t, "fuse-dual-matmul", NULL, &every_run), 0);
    expect_eq_u64(t, changes(t, "fuse-shared-matmul", NULL, &every_run), 0);
}
