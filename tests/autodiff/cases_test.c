/* cases_test.c: every op's gradient, by the table in cases.def: an op or an operand that no row
 * holds is a failure, so that a new one cannot be forgotten. */
#include "fixed.h"

enum { OPERANDS = 16 };

/* Of one op: what the rows have shown. */
struct held {
    bool row, elsewhere;    /* there is one, of any kind; it names another test */
    bool present[OPERANDS]; /* it was there, of any type */
    bool floats[OPERANDS];  /* as a float */
    bool flows[OPERANDS];   /* something other than 0 was compared */
    bool nothing[OPERANDS]; /* a row says that nothing flows */
};

/* Which values of the entry graph depend on one of these? */
static bool *reached(struct central *c, const ir_value *wrt, size_t count, ir_value last)
{
    const struct ir_graph *g = ir_entry(c->s.run.mod);
    bool *on = arena_array(&c->s.run.arena, bool, g->node.len);

    for (size_t i = 0; on && i < count; i++)
        on[wrt[i]] = true;
    for (ir_value v = 0; on && v <= last; v++)
        for (int32_t i = 0; i < ir_node(g, v)->in_count; i++)
            on[v] |= on[ir_node(g, v)->in[i]];
    return on;
}

/* Notes the operands of `op` that depend on these inputs as held. */
static void note(struct central *c, struct held *h, rlx_op op, const ir_value *wrt, size_t count)
{
    const struct ir_graph *g = ir_entry(c->s.run.mod);
    const bool *on = reached(c, wrt, count, c->out);

    for (ir_value v = 0; on && v <= c->out; v++) {
        const struct ir_node *n = ir_node(g, v);
        for (int32_t i = 0; n->op == op && i < n->in_count && i < OPERANDS; i++) {
            h->row = true;
            h->present[i] = true;
            h->floats[i] |= dtype_is(ir_type_of(g, n->in[i])->dtype, CLASS_F | CLASS_C);
            h->flows[i] |= on[n->in[i]];
        }
    }
}

static bool is_zero(const struct eval_tensor *x)
{
    for (int64_t k = 0; x->at && k < x->count; k++)
        if (x->at[k].f != 0 || x->at[k].im != 0)
            return false;
    return true;
}

/* Which inputs get a gradient that is not 0? wrt: those inputs; answers how many there are. */
static size_t moved(struct test *t, struct central *c, ir_value *wrt)
{
    struct ir_graph *g = ir_entry(c->s.run.mod);
    struct diag *d = &c->s.run.diag;
    ir_value all[OPERANDS], dx[OPERANDS];
    size_t count = central_wrt(g, all, OPERANDS), kept = 0;

    if (central_seed(c, d) || grad_walk(g, 0, c->out, c->dy, all, count, dx, d) ||
        !central_inputs(c) || !central_run(t, c, 0, (ir_value)g->node.len - 1))
        return 0;
    for (size_t i = 0; i < count; i++)
        if (dx[i] != RLX_NO_VALUE && !is_zero(&c->value[dx[i]]))
            wrt[kept++] = all[i];
    return kept;
}

enum row { SLOPED, LEVEL, BY_HAND };

static void hold(struct test *t, struct held *all, rlx_op op, const char *graph, enum row row)
{
    struct central c = {0};
    ir_value wrt[OPERANDS];

    if (!central_open(t, &c, graph))
        return;
    size_t count = moved(t, &c, wrt);
    if (row == LEVEL ? count > 0 : row == SLOPED && count == 0)
        fail(t, "%s: the gradient is %s\n  in: %s", op_info(op)->name,
             count ? "not 0 everywhere" : "0 everywhere", graph);
    if (row != SLOPED)
        count = central_wrt(ir_entry(c.s.run.mod), wrt, OPERANDS);
    note(&c, &all[op], op, wrt, count);
    run_close(&c.s.run);
}

static void expect_held(struct test *t, const struct op_info *op, const struct held *h)
{
    if (!expect(t, h->row))
        fail(t, "%s: cases.def has no row for it", op->name);
    for (int i = 0; i < OPERANDS; i++) {
        if (h->floats[i] && !h->flows[i] && !h->nothing[i])
            fail(t, "%s: no row of cases.def holds the gradient of operand %d", op->name, i);
        if (!h->elsewhere && !h->present[i] && !h->nothing[i] && i < op->inputs_max)
            fail(t, "%s: no row of cases.def has an operand %d", op->name, i);
    }
}

TEST(grad_cases, every_op_and_operand_is_held)
{
    static struct held held[RLX_OP_count];

#define GRAD(op, tol, graph) hold(t, held, RLX_OP_##op, graph, SLOPED);
#define FLAT(op, graph) hold(t, held, RLX_OP_##op, graph, LEVEL);
#define LIKE(op, tol, graph, like) hold(t, held, RLX_OP_##op, graph, SLOPED);
#define GIVEN(op, graph, x, dy, want) hold(t, held, RLX_OP_##op, graph, BY_HAND);
#define NOTHING(op, operand, why) held[RLX_OP_##op].nothing[operand] = true;
#define ELSEWHERE(op, why) held[RLX_OP_##op] = (struct held){.row = true, .elsewhere = true};
#include "cases.def"

    for (int op = 0; op < RLX_OP_count; op++)
        if (op_info((rlx_op)op)->flags & OP_DIFF)
            expect_held(t, op_info((rlx_op)op), &held[op]);
}

TEST(grad_cases, agree_with_central_differences)
{
#define GRAD(op, tol, graph) agrees(t, tol, graph);
#define FLAT(op, graph) agrees(t, 1e-6, graph);
#define LIKE(op, tol, graph, like) agrees_with(t, tol, graph, like);
#define GIVEN(op, graph, x, dy, want) gives(t, graph, x, dy, want);
#include "cases.def"
}
