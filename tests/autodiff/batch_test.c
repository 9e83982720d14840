/* batch_test.c: every row of cases.def for several examples at once, against one run for each. */
#include "central.h"
#include "ir/formula.h"

enum { EXAMPLES = 3, INPUTS = 20 };

struct examples {
    struct central c;
    ir_value input[INPUTS], batched[INPUTS]; /* RLX_NO_VALUE: all examples share it */
    struct eval_tensor all[INPUTS];
    ir_value out, got;
    size_t count;
};

static rlx_status add_batched(struct ir_graph *g, const struct examples *e, size_t i, ir_value *out,
                              struct diag *d)
{
    const struct ir_type t = *ir_type_of(g, e->input[i]);
    char name[16];
    struct ir_new_node n = {.op = RLX_OP_input};

    snprintf(name, sizeof name, "batched%zu", i);
    attr_defaults(RLX_OP_input, &n.attr);
    n.attr.leaf.name = (struct ir_blob){name, strlen(name)};
    n.attr.leaf.dtype = t.dtype;
    n.attr.leaf.shape = (rlx_list){.count = 1, .at = {EXAMPLES}};
    for (int32_t k = 0; k < t.rank; k++)
        n.attr.leaf.shape.at[n.attr.leaf.shape.count++] = t.dim[k];
    return ir_add(g, &n, out, d);
}

/* which: a bit for each input that is batched. */
static rlx_status build(struct examples *e, unsigned which)
{
    struct ir_graph *g = ir_entry(e->c.s.run.mod);
    struct diag *d = &e->c.s.run.diag;
    ir_value wrt[INPUTS], to[INPUTS];
    size_t some = 0;

    e->out = g->output.at[0];
    for (size_t v = 0; v < g->node.len && e->count < INPUTS; v++)
        if (g->node.at[v].op == RLX_OP_input)
            e->input[e->count++] = (ir_value)v;
    for (size_t i = 0; i < e->count; i++) {
        e->batched[i] = RLX_NO_VALUE;
        if (!(which >> i & 1))
            continue;
        TRY(add_batched(g, e, i, &e->batched[i], d));
        wrt[some] = e->input[i];
        to[some++] = e->batched[i];
    }
    return grad_batch(g, &e->out, 1, wrt, to, some, EXAMPLES, &e->got, d);
}

/* Example k of a value of all of them. */
static struct eval_tensor example_of(const struct eval_tensor *all, int64_t k)
{
    struct eval_tensor one = *all;

    one.type.rank--;
    for (int32_t i = 0; i < one.type.rank; i++)
        one.type.dim[i] = all->type.dim[i + 1];
    one.count = all->count / EXAMPLES;
    one.at = all->at + k * one.count;
    return one;
}

static bool same_number(double a, double b, double tol)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tol * (1 + fabs(b));
}

static void compare(struct test *t, const struct examples *e, const struct eval_tensor *got,
                    int64_t k, const char *source)
{
    const struct eval_tensor *want = &e->c.value[e->out];
    const struct eval_tensor one = example_of(got, k);

    for (int64_t i = 0; i < want->count; i++)
        for (int part = 0; part < (is_complex(want) ? 2 : 1); part++) {
            double w = part               ? want->at[i].im
                       : is_complex(want) ? want->at[i].f
                                          : eval_real(want, i);
            double g = part ? one.at[i].im : is_complex(want) ? one.at[i].f : eval_real(&one, i);
            if (same_number(g, w, 1e-5))
                continue;
            fail(t, "example %d, element %d is %.9g, not %.9g\n  in: %s", (int)k, (int)i, g, w,
                 source);
            return;
        }
}

/* Each input has the numbers of its name, and other ones in each example. */
static bool fill(struct examples *e)
{
    struct ir_graph *g = ir_entry(e->c.s.run.mod);
    uint64_t seed = 11;

    if (!central_inputs(&e->c))
        return false;
    for (size_t i = 0; i < e->count; i++)
        if (e->batched[i] != RLX_NO_VALUE)
            central_fill(&e->c.value[e->batched[i]], ir_leaf_name(ir_node(g, e->input[i])), &seed);
    return true;
}

static void run_all(struct test *t, struct examples *e, bool everywhere, const char *source)
{
    struct ir_graph *g = ir_entry(e->c.s.run.mod);
    const struct ir_type one = *ir_type_of(g, e->out), all = *ir_type_of(g, e->got);

    if (!fill(e) || !central_run(t, &e->c, 0, (ir_value)g->node.len - 1))
        return;
    if (all.rank != one.rank + 1 || all.dim[0] != EXAMPLES || all.dtype != one.dtype ||
        memcmp(all.dim + 1, one.dim, (size_t)one.rank * sizeof one.dim[0]) != 0) {
        fail(t, "the value for all examples has another type\n  in: %s", source);
        return;
    }
    struct eval_tensor got = e->c.value[e->got];
    for (int64_t k = 0; k < EXAMPLES; k++) {
        for (size_t i = 0; i < e->count; i++)
            if (e->batched[i] != RLX_NO_VALUE)
                e->c.value[e->input[i]] = example_of(&e->c.value[e->batched[i]], k);
        if (!central_run(t, &e->c, 0, e->out))
            return;
        compare(t, e, &got, k, source);
    }
    e->c.value[e->got] = got;
    if (everywhere && dtype_is(all.dtype, CLASS_F | CLASS_C))
        on_cpu(t, e->c.s.run.mod, e->c.value, &e->got, 1, source);
}

/* False: there are no such inputs. */
static bool agree(struct test *t, unsigned which, bool everywhere, const char *graph)
{
    struct examples e = {0};

    if (!central_open(t, &e.c, graph))
        return false;
    rlx_status s = build(&e, which);
    bool there = which < 1u << e.count;
    if (there && s != RLX_OK)
        fail(t, "%s\n  in: %s", e.c.s.run.diag.first.message, graph);
    else if (there)
        run_all(t, &e, everywhere, graph);
    run_close(&e.c.s.run);
    return there;
}

static unsigned inputs_of(struct test *t, const char *graph)
{
    struct central c = {0};
    unsigned count = 0;

    if (!central_open(t, &c, graph))
        return 0;
    IR_EACH(n, ir_entry(c.s.run.mod))
        count += n->op == RLX_OP_input;
    run_close(&c.s.run);
    return count;
}

/* All inputs batched, and each of them alone. */
static void batches(struct test *t, const char *graph)
{
    unsigned count = inputs_of(t, graph);

    expect(t, agree(t, (1u << count) - 1, true, graph));
    for (unsigned i = 0; count > 1 && i < count; i++)
        agree(t, 1u << i, false, graph);
}

TEST(batch, every_op_as_one_example_after_another)
{
#define GRAD(op, tol, graph) batches(t, graph);
#define FLAT(op, graph) batches(t, graph);
#define LIKE(op, tol, graph, like) batches(t, graph);
#define GIVEN(op, graph, x, dy, want) batches(t, graph);
#include "cases.def"
}

TEST(batch, what_has_no_gradient)
{
    static const char *const graphs[] = {
        "(input %a: f32[2,1,3], input %b: f32[4,1]) { %p = lt %a, %b %q = cast %p to=f32 return %q "
        "}",
        "(input %x: f32[2,5]) { %i = argmax %x axis=0 %y = cast %i to=f32 return %y }",
        "(input %x: f32[2,5]) { %i = argsort %x axis=1 %y = cast %i to=f32 return %y }",
        "(input %x: f32[2,5]) { %i = topk %x k=2 %y = cast %i to=f32 return %y }",
        "(input %x: f32[3]) { %b = bitcast %x to=i32 %y = bitcast %b to=f32 return %y }",
        "(input %x: f64[2,3], input %idx5: i32[2,3], input %u: f64[2,3])"
        " { %y = scatter_elements %x, %idx5, %u axis=1 reduction=max return %y }",
        "(input %a: f64[4,3]) { %y = qr %a part=r return %y }",
        "(input %x: f64[4], input %idx9: i32[]) { %y = gather %x, %idx9 return %y }",
        "(input %x: f64[2,4,3], input %idx9: i64[2,3]) { %y = gather %x, %idx9 axis=1 return %y }",
        "(input %x: f64[2,3,8], input %c: f64[2,4,2], input %s: f64[2,4,2])"
        " { %y = rope %x, %c, %s head_dim=4 seq_axis=1 return %y }",
        "(input %q: f64[2,2,3,2], input %k: f64[2,2,4,2], input %v: f64[2,2,4,2], input %idx3: "
        "i32[1,4])"
        " { %y = attention %q, %k, %v, %idx3 num_heads=2 head_dim=2 mask_kind=custom return %y }",
        "(input %q: f64[4,3,2], input %k: f64[4,4,2], input %v: f64[4,4,2], input %m: f64[2,3,4])"
        " { %y = attention %q, %k, %v, %m num_heads=2 head_dim=2 layout=folded mask_kind=bias "
        "return %y }",
        "(input %a: f64[2,3,3], input %b: f64[2,3,2]) { %d = mul %a, %a %e = const f64[3,3] {9 0 0 "
        "0 9 0 0 0 9}"
        " %m = add %d, %e %y = batched_dense_solve %m, %b return %y }",
    };

    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++)
        batches(t, graphs[i]);
}

/* What does not depend on an example is there once for each of them all the same. */
TEST(batch, what_does_not_depend_is_repeated)
{
    expect(t, agree(t, 1, true, "(input %x: f32[2], input %b: f32[3]) { %y = exp %b return %y }"));
}

static void cannot(struct test *t, const char *part, const char *graph)
{
    struct examples e = {0};

    if (!central_open(t, &e.c, graph))
        return;
    expect_status(t, build(&e, 1), RLX_ERROR_NO_RULE);
    expect_contains(t, e.c.s.run.diag.first.message, part);
    run_close(&e.c.s.run);
}

TEST(batch, what_cannot_be_is_named)
{
    cannot(t, "sample", "(input %x: f32[2,5]) { %y = sample %x return %y }");
    cannot(t, "cache_append",
           "(input %x: f32[1,2], state %s: f32[4,2]) { %p = const i32[] {0}"
           " %y = cache_append %s, %x, %p return %y }");
}
