/* fingerprint_test.c: what changes a module's number, and what does not. */
#include "ir/fingerprint.h"

#include <string.h>

#include "ir/text/text_check.h"

/* Of the text; 0, with a failure noted, if it does not parse. */
static uint64_t number(struct test *t, const char *source, bool names)
{
    struct ir_module *m = parse(t, source);
    uint64_t h = 0;

    if (m)
        expect_ok(t, ir_fingerprint(m, names, &h, NULL));
    ir_module_destroy(m);
    return h;
}

#define HEAD "rlx 1\ndim seq <= 512\n"
#define LEAVES "graph (input %x: f32[seq,4], param %w: f32[4,8]) {\n"
#define CONST "    %c = const f32[8] {1 2 3 4 5 6 7 8}\n"
#define BODY                            \
    "    %y = matmul %x, %w\n"          \
    "    %z = add %y, %c\n"             \
    "    %s = softmax %z axis=1\n"      \
    "    %r = reduce_sum %s axes=[1]\n" \
    "    %e = clamp %r min=0.25 max=1\n"
#define END "    return %e, %z\n}\n"

TEST(fingerprint, any_single_change_changes_it)
{
    static const char *const text[] = {
        HEAD LEAVES CONST BODY END,
        "rlx 1\ndim seq <= 511\n" LEAVES CONST BODY END, /* a bound */
        "rlx 1\ndim seq\n" LEAVES CONST BODY END,        /* no bound */
        "rlx 1\ndim len <= 512\n"                        /* another symbol */
        "graph (input %x: f32[len,4], param %w: f32[4,8]) {\n" CONST BODY END,
        HEAD "graph (input %x: f32[seq+1,4], param %w: f32[4,8]) {\n" CONST BODY END,
        HEAD "graph (input %x: f32[16,4], param %w: f32[4,8]) {\n" CONST BODY END,
        HEAD "graph (input %x: f32[seq,4], state %w: f32[4,8]) {\n" CONST BODY END, /* a kind */
        HEAD "graph (input %x: f16[seq,4], param %w: f16[4,8]) {\n" CONST BODY END, /* a dtype */
        HEAD LEAVES "    %c = const f32[8] {1 2 3 4 5 6 7 9}\n" BODY END,   /* constant bytes */
        HEAD LEAVES "    %c = const f32[1,8] {1 2 3 4 5 6 7 8}\n" BODY END, /* its shape */
        HEAD LEAVES CONST "    %y = matmul %x, %w\n    %z = sub %y, %c\n"   /* an op */
                          "    %s = softmax %z axis=1\n    %r = reduce_sum %s axes=[1]\n"
                          "    %e = clamp %r min=0.25 max=1\n" END,
        HEAD LEAVES CONST "    %y = matmul %x, %w\n    %z = add %c, %y\n" /* an edge */
                          "    %s = softmax %z axis=1\n    %r = reduce_sum %s axes=[1]\n"
                          "    %e = clamp %r min=0.25 max=1\n" END,
        HEAD LEAVES CONST "    %y = matmul %x, %w\n    %z = add %y, %c\n" /* attributes */
                          "    %s = softmax %z axis=0\n    %r = reduce_sum %s axes=[1]\n"
                          "    %e = clamp %r min=0.25 max=1\n" END,
        HEAD LEAVES CONST "    %y = matmul %x, %w\n    %z = add %y, %c\n"
                          "    %s = softmax %z axis=1\n    %r = reduce_sum %s axes=[0]\n"
                          "    %e = clamp %r min=0.25 max=1\n" END,
        HEAD LEAVES CONST "    %y = matmul %x, %w\n    %z = add %y, %c\n"
                          "    %s = softmax %z axis=1\n    %r = reduce_sum %s axes=[1]\n"
                          "    %e = clamp %r min=0.125 max=1\n" END,
        HEAD LEAVES CONST BODY "    return %z, %e\n}\n", /* outputs */
        HEAD LEAVES CONST BODY "    return %e\n}\n",
        HEAD LEAVES CONST BODY "    %d = neg %z\n" END, /* a dead node */
        HEAD LEAVES CONST BODY END "graph @sub (input %a: f32[2]) {\n    return %a\n}\n",
        HEAD LEAVES CONST BODY END "graph @sub (input %a: f32[3]) {\n    return %a\n}\n",
    };
    enum { COUNT = sizeof text / sizeof text[0] };
    uint64_t h[COUNT];

    for (size_t i = 0; i < COUNT; i++) {
        test_note(t, "text %zu", i);
        h[i] = number(t, text[i], false);
        for (size_t k = 0; k < i; k++)
            expect(t, h[i] != h[k]);
    }
}

TEST(fingerprint, names_count_only_when_asked_for)
{
    const char *a = "rlx 1\ngraph (input %x: f32[2]) {\n    %y = neg %x\n    return %y\n}\n";
    const char *label = "rlx 1\ngraph (input %x: f32[2]) {\n    %q = neg %x\n    return %q\n}\n";
    const char *leaf = "rlx 1\ngraph (input %z: f32[2]) {\n    %y = neg %z\n    return %y\n}\n";

    expect_eq_u64(t, number(t, a, false), number(t, label, false));
    expect_eq_u64(t, number(t, a, true), number(t, label, true));
    expect_eq_u64(t, number(t, a, false), number(t, leaf, false));
    expect(t, number(t, a, true) != number(t, leaf, true));
    expect(t, number(t, a, true) != number(t, a, false));
}

/* The number itself: it is written into files, so it may not depend on a process or a machine. */
TEST(fingerprint, is_the_same_everywhere)
{
    const char *text = HEAD LEAVES CONST BODY END;

    expect_eq_u64(t, number(t, text, false), UINT64_C(0xa5548e4802e1a574));
    expect_eq_u64(t, fingerprint_str(fingerprint_u64(0, 1), STR("rlx")),
                  UINT64_C(0x8b613e3c25bb86e4));
}

/* Leaves may stand anywhere in a graph that was built by hand; its text has them first. */
TEST(fingerprint, a_module_has_the_number_of_its_text)
{
    struct ir_module *m, *again;
    struct ir_graph *g;
    uint64_t h[2] = {0};
    ir_value v;

    require_ok(t, ir_module_create(mem_default(), &m, NULL));
    require_ok(t, ir_graph_add(m, STR("main"), &g, NULL));
    for (int i = 0; i < 3; i++) {
        struct ir_new_node n = {.op = i % 2 ? RLX_OP_neg : RLX_OP_input};
        ir_value in = 0;
        attr_defaults(n.op, &n.attr);
        if (i % 2) {
            n.in = &in;
            n.in_count = 1;
        } else {
            n.attr.leaf.name = (struct ir_blob){i ? "b" : "a", 1};
            n.attr.leaf.dtype = RLX_DTYPE_f32;
            n.attr.leaf.shape = (rlx_list){.count = 1, .at = {3 + i}};
        }
        require_ok(t, ir_add(g, &n, &v, NULL));
    }
    require_ok(t, ir_add_output(g, 1, NULL));
    require_ok(t, ir_add_output(g, 2, NULL));
    struct text text = print(t, m, false, false);
    again = parse(t, text.at);
    require(t, again);
    expect(t, ir_entry(m)->node.at[1].op != ir_entry(again)->node.at[1].op);
    expect_ok(t, ir_fingerprint(m, true, &h[0], NULL));
    expect_ok(t, ir_fingerprint(again, true, &h[1], NULL));
    expect_eq_u64(t, h[0], h[1]);
    text_free(&text);
    ir_module_destroy(again);
    ir_module_destroy(m);
}

static rlx_status under(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct ir_module *m = NULL;
    struct diag d;
    uint64_t h;

    (void)t, (void)ctx;
    diag_init(&d, "test");
    rlx_status s = ir_parse(STR(HEAD LEAVES CONST BODY END), NULL, mem, &m, &d);
    if (s == RLX_OK)
        s = ir_fingerprint(m, true, &h, &d);
    ir_module_destroy(m);
    return s;
}

TEST(fingerprint, survives_no_memory)
{
    expect_survives_no_memory(t, under, NULL);
}
