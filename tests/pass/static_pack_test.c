/* static_pack_test.c: what is cut out of a module to be computed once, and what is left. */
#include "pass/static_pack.h"

#include <stdio.h>
#include <string.h>

#include "ir/text/text_check.h"

/* want with $0, $1, ... replaced by the names of the packs. */
static void fill_names(const char *want, const struct static_part *part, char *out, size_t room)
{
    size_t len = 0;

    for (; *want && len + 64 < room; want++) {
        size_t i = (size_t)(want[1] - '0');
        if (*want == '$' && i < part->count) {
            len += (size_t)snprintf(out + len, room - len, "%.*s", STR_ARG(part->pack[i].name));
            want++;
        } else {
            out[len++] = *want;
        }
    }
    out[len] = 0;
}

static void expect_module(struct test *t, const struct ir_module *m, const char *want,
                          const struct static_part *part)
{
    char source[2048];
    struct diag d = {0};

    fill_names(want, part, source, sizeof source);
    struct ir_module *wanted = parse(t, source);
    if (!wanted)
        return;
    struct text got = print(t, m, true, false), expected = print(t, wanted, true, false);
    expect_str(t, got.at, expected.at);
    expect_ok(t, ir_verify(m, &d));
    text_free(&got);
    text_free(&expected);
    ir_module_destroy(wanted);
}

/* NULL, or the module after the split; both are the caller's. */
static struct ir_module *split(struct test *t, const char *source, struct static_part *part)
{
    struct ir_module *m = parse(t, source);
    struct diag d;

    diag_init(&d, "pack");
    if (m && pass_split_static(m, mem_default(), part, &d) != RLX_OK) {
        fail(t, "%s", d.first.message);
        ir_module_destroy(m);
        return NULL;
    }
    return m;
}

static void expect_split(struct test *t, const char *source, const char *want, const char *packs)
{
    struct static_part part = {0};

    test_note(t, "%s", source);
    struct ir_module *m = split(t, source, &part);
    if (m) {
        expect_module(t, m, want, &part);
        expect(t, (part.mod == NULL) == (packs == NULL));
        if (part.mod && packs)
            expect_module(t, part.mod, packs, &part);
    }
    ir_module_destroy(part.mod);
    ir_module_destroy(m);
    test_note(t, "%s", "");
}

#define splits(source, want, packs) expect_split(t, "rlx 1 " source, "rlx 1 " want, "rlx 1 " packs)
#define stays(source) expect_split(t, "rlx 1 " source, "rlx 1 " source, NULL)

TEST(static_pack, weights_are_prepared_once)
{
    splits("graph (input %x: f32[2,4], param %w: f32[3,4]) {"
           "%h = cast %w to=f16 %t = transpose %h perm=[1,0] %c = cast %x to=f16"
           "%y = matmul %c, %t return %y }",
           "graph (input %x: f32[2,4], param %$0: f16[4,3]) {"
           "%c = cast %x to=f16 %y = matmul %c, %$0 return %y }",
           "graph @static (param %w: f32[3,4]) {"
           "%h = cast %w to=f16 %t = transpose %h perm=[1,0] return %t }");
}

TEST(static_pack, views_stay_where_they_are)
{
    stays("graph (input %x: f32[2,4], param %w: f32[12]) {"
          "%m = reshape %w shape=[4,3] %y = matmul %x, %m return %y }");
    /* Behind a step they stay as well: both readers share one pack. */
    splits("graph (input %x: f32[6], param %w: f32[2,3]) {"
           "%t = transpose %w perm=[1,0] %f = reshape %t shape=[6] %y = add %x, %f"
           "%z = reduce_sum %x axes=[0] %u = mul %t, %z return %y, %u }",
           "graph (input %x: f32[6], param %$0: f32[3,2]) {"
           "%f = reshape %$0 shape=[6] %y = add %x, %f"
           "%z = reduce_sum %x axes=[0] %u = mul %$0, %z return %y, %u }",
           "graph @static (param %w: f32[2,3]) { %t = transpose %w perm=[1,0] return %t }");
    /* The first rows of a matrix are a view, its first columns are not. */
    stays("graph (input %x: f32[1,3], param %w: f32[4,3]) {"
          "%r = narrow %w axis=0 start=1 len=1 %y = add %x, %r return %y }");
    splits("graph (input %x: f32[4,1], param %w: f32[4,3]) {"
           "%r = narrow %w axis=1 start=1 len=1 %y = add %x, %r return %y }",
           "graph (input %x: f32[4,1], param %$0: f32[4,1]) {"
           "%y = add %x, %$0 return %y }",
           "graph @static (param %w: f32[4,3]) {"
           "%r = narrow %w axis=1 start=1 len=1 return %r }");
}

TEST(static_pack, equal_expressions_are_one_pack)
{
    splits("graph (input %x: f32[4], param %w: f32[4]) {"
           "%a = exp %w %b = exp %w %y = add %x, %a %z = mul %y, %b return %z }",
           "graph (input %x: f32[4], param %$0: f32[4]) {"
           "%y = add %x, %$0 %z = mul %y, %$0 return %z }",
           "graph @static (param %w: f32[4]) { %a = exp %w return %a }");
    /* One pack may be computed from another. */
    splits("graph (input %x: f32[4], param %w: f32[4]) {"
           "%a = exp %w %b = neg %a %y = add %x, %a %z = mul %y, %b return %z }",
           "graph (input %x: f32[4], param %$0: f32[4], param %$1: f32[4]) {"
           "%y = add %x, %$0 %z = mul %y, %$1 return %z }",
           "graph @static (param %w: f32[4]) { %a = exp %w %b = neg %a return %a, %b }");
}

TEST(static_pack, constants_alone_are_left_to_folding)
{
    stays("graph (input %x: f32[2]) { %c = const f32[2] {1, 2} %e = exp %c"
          "%y = add %x, %e return %y }");
    splits("graph (input %x: f32[2], param %w: f32[2]) {"
           "%c = const f32[2] {1, 2} %e = exp %c %s = mul %w, %e"
           "%y = add %x, %s %z = add %y, %e return %z }",
           "graph (input %x: f32[2], param %$0: f32[2]) {"
           "%c = const f32[2] {1, 2} %e = exp %c"
           "%y = add %x, %$0 %z = add %y, %e return %z }",
           "graph @static (param %w: f32[2]) {"
           "%c = const f32[2] {1, 2} %e = exp %c %s = mul %w, %e return %s }");
}

TEST(static_pack, params_may_be_read_directly_too)
{
    splits("graph (input %x: f32[2], param %w: f32[2], param %v: f32[2]) {"
           "%s = add %w, %v %y = mul %x, %s %z = mul %y, %w return %z }",
           "graph (input %x: f32[2], param %w: f32[2], param %$0: f32[2]) {"
           "%y = mul %x, %$0 %z = mul %y, %w return %z }",
           "graph @static (param %w: f32[2], param %v: f32[2]) { %s = add %w, %v return %s }");
}

TEST(static_pack, outputs_may_be_packs)
{
    splits("graph (input %x: f32[2], param %w: f32[2]) {"
           "%e = exp %w %r = reshape %e shape=[1,2] return %e, %r, %w, %e }",
           "graph (input %x: f32[2], param %w: f32[2], param %$0: f32[2]) {"
           "%r = reshape %$0 shape=[1,2] return %$0, %r, %w, %$0 }",
           "graph @static (param %w: f32[2]) { %e = exp %w return %e }");
}

TEST(static_pack, states_inputs_and_random_numbers_are_not_static)
{
    stays("graph (state %s: f32[2], param %w: f32[2]) { %y = add %s, %w return %y }");
    stays("graph (input %x: f32[2], param %w: f32[2]) { %y = add %x, %w return %y }");
    stays("graph (param %w: f32[2]) { %r = rng_uniform shape=[2] %y = add %r, %w return %y }");
    stays("graph (param %w: f32[2,4]) { %y = sample %w seed=3 return %y }");
    stays("graph (state %s: f32[1], param %w: f32[2]) {"
          "%y = fake_quantize %w, %s scale_mode=ema return %y }");
}

TEST(static_pack, captures_of_control_flow_are_packed)
{
    splits("graph (input %c: bool[], param %w: f32[2]) {"
           "%e = exp %w %y = if %c, %e then_graph=@a else_graph=@b return %y }"
           "graph @a (input %x: f32[2]) { return %x }"
           "graph @b (input %x: f32[2]) { %n = neg %x return %n }",
           "graph (input %c: bool[], param %$0: f32[2]) {"
           "%y = if %c, %$0 then_graph=@a else_graph=@b return %y }"
           "graph @a (input %x: f32[2]) { return %x }"
           "graph @b (input %x: f32[2]) { %n = neg %x return %n }",
           "graph @static (param %w: f32[2]) { %e = exp %w return %e }");
}

TEST(static_pack, packs_are_not_much_larger_than_params)
{
    stays("graph (input %x: f32[5,4], param %b: f32[4]) {"
          "%e = expand %b shape=[5,4] %y = mul %x, %e return %y }");
    splits("graph (input %x: f32[4,4], param %b: f32[4]) {"
           "%e = expand %b shape=[4,4] %y = mul %x, %e return %y }",
           "graph (input %x: f32[4,4], param %$0: f32[4,4]) {"
           "%y = mul %x, %$0 return %y }",
           "graph @static (param %b: f32[4]) { %e = expand %b shape=[4,4] return %e }");
    /* What a param is read for twice counts once. */
    stays("graph (input %x: f32[10], param %b: f32[1]) {"
          "%c = concat %b, %b, %b, %b, %b axis=0 %d = concat %x, %c axis=0 return %d }");
}

TEST(static_pack, unknown_sizes_stay)
{
    stays("dim s graph (input %x: f32[s,2], param %w: f32[1,2]) {"
          "%e = expand %w shape=[s,2] %y = add %x, %e return %y }");
    stays("dim s graph (input %x: f32[s,4], param %w: f32[4,8]) {"
          "%n = narrow %w axis=1 start=s len=4 %y = matmul %x, %n return %y }");
    splits("dim s graph (input %x: f32[s,2], param %w: f32[2]) {"
           "%e = exp %w %y = add %x, %e return %y }",
           "dim s graph (input %x: f32[s,2], param %$0: f32[2]) {"
           "%y = add %x, %$0 return %y }",
           "graph @static (param %w: f32[2]) { %e = exp %w return %e }");
}

/* ---- names and keys ---- */

static uint64_t key_of(struct test *t, const char *source)
{
    struct static_part part = {0};
    struct ir_module *m = split(t, source, &part);
    uint64_t key = part.count == 1 ? part.pack[0].key : 0;

    expect_eq_u64(t, part.count, 1);
    ir_module_destroy(part.mod);
    ir_module_destroy(m);
    return key;
}

#define KEY(leaves, nodes)                                   \
    key_of(t, "rlx 1 graph (input %x: f32[4], " leaves ") {" \
              "%c = const f32[4] {1, 2, 3, 4} " nodes " return %y }")

TEST(static_pack, keys_tell_expressions_apart)
{
    uint64_t key = KEY("param %w: f32[4]", "%a = mul %w, %c %y = add %x, %a");

    /* Neither labels, nor what else the graph does, nor where the param stands. */
    expect_eq_u64(t, KEY("param %w: f32[4]", "%b = mul %w, %c %z = exp %x %y = sub %z, %b"), key);
    expect_eq_u64(
        t, KEY("param %v: f32[9], param %q \"w\": f32[4]", "%a = mul %q, %c %y = add %x, %a"), key);
    expect(t, KEY("param %v: f32[4]", "%a = mul %v, %c %y = add %x, %a") != key);
    expect(t, KEY("param %w: f32[4]", "%a = add %w, %c %y = add %x, %a") != key);
    expect(t, KEY("param %w: f32[4]", "%a = mul %c, %w %y = add %x, %a") != key);
    expect(t, KEY("param %w: f32[1]", "%a = mul %w, %c %y = add %x, %a") != key);
    expect(t, KEY("param %w: f32[4]", "%d = const f32[4] {1, 2, 3, 5} %a = mul %w, %d"
                                      "%y = add %x, %a") != key);
    /* The same in every process: programs may be kept in files. */
    expect_eq_u64(t, key, UINT64_C(0xae1d03299b168bed));
}

TEST(static_pack, names_step_aside)
{
    struct static_part part = {0}, again = {0};
    struct ir_module *m = split(t,
                                "rlx 1 graph (input %x: f32[4], param %w: f32[4]) {"
                                "%e = exp %w %y = add %x, %e return %y }",
                                &part),
                     *n;
    char source[512];

    require(t, m && part.count == 1);
    snprintf(source, sizeof source,
             "rlx 1 graph (input %%x: f32[4], param %%w: f32[4], param %%p \"%.*s\": f32[4]) {"
             "%%e = exp %%w %%y = add %%x, %%e %%z = add %%y, %%p return %%z }",
             STR_ARG(part.pack[0].name));
    n = split(t, source, &again);
    if (n && expect_eq_u64(t, again.count, 1)) {
        expect_eq_u64(t, again.pack[0].key, part.pack[0].key);
        expect(t, !str_eq(again.pack[0].name, part.pack[0].name));
    }
    ir_module_destroy(again.mod);
    ir_module_destroy(n);
    ir_module_destroy(part.mod);
    ir_module_destroy(m);
}

/* ---- memory ---- */

static const char several[] =
    "rlx 1 graph (input %x: f32[2,4], param %w: f32[3,4], param %b: f32[3]) {"
    "%c = const f32[3] {1, 2, 3} %s = mul %b, %c %t = transpose %w perm=[1,0]"
    "%y = matmul %x, %t %z = add %y, %s %k = concat %s, %s, %s axis=0 return %z, %k }";

static rlx_status split_with(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct static_part part = {0};
    struct ir_module *m = NULL;
    struct diag d;

    (void)ctx;
    diag_init(&d, "pack");
    TRY(ir_parse(rlx_cstr(several), NULL, mem, &m, &d));
    size_t nodes = ir_entry(m)->node.len;
    rlx_status s = pass_split_static(m, mem, &part, &d);
    if (s == RLX_OK) {
        expect_eq_u64(t, part.count, 3);
    } else {
        expect(t, part.mod == NULL);
        expect_eq_u64(t, ir_entry(m)->node.len, nodes);
        expect_eq(t, ir_node(ir_entry(m), 1)->op, RLX_OP_param);
    }
    ir_module_destroy(part.mod);
    ir_module_destroy(m);
    return s;
}

TEST(static_pack, survives_no_memory)
{
    expect_survives_no_memory(t, split_with, NULL);
}

/* The part has its own constants and may outlive the module. */
TEST(static_pack, part_outlives_the_module)
{
    struct static_part part = {0};
    struct ir_module *m = split(t, several, &part);

    ir_module_destroy(m);
    require(t, part.mod != NULL);
    expect_module(t, part.mod,
                  "rlx 1 graph @static (param %w: f32[3,4], param %b: f32[3]) {"
                  "%c = const f32[3] {1, 2, 3} %s = mul %b, %c %t = transpose %w perm=[1,0]"
                  "%k = concat %s, %s, %s axis=0 return %s, %t, %k }",
                  &part);
    ir_module_destroy(part.mod);
}
