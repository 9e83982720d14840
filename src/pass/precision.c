/* precision.c: compute floats in the type that the session asked for (runtime.md 1.12).
 *
 *     %y = matmul %x, %w                     =>     %a = cast %x to=f16
 *     return %y                                     %b = cast %w to=f16
 *                                                   %y = matmul %a, %b
 *                                                   %r = cast %y to=f32
 *                                                   return %r
 *
 * Every op belongs to a class, and the policy gives each class a type. Floats take part, nothing
 * else does. Leaves keep their type, and so do operands whose values must be exact: indices,
 * labels, states that are written, scales of quantised values. What is computed only to be an index
 * stays as declared, too. An op that does not take halves is computed in f32, or as declared.
 * Sub-graphs stay as they are, with casts in front of and after the op that names them.
 *
 * Needs:  nothing; before folding, which converts the constants.      Keeps: order, labels, and
 * the types of leaves and outputs. */
#include "pass/expand/expand.h"
#include "pass/pass.h"

#include "ir/infer.h"

static enum precision_class class_of(rlx_op op)
{
    return family_info(op_info(op)->family)->precision;
}

/* A state that is written keeps its type whatever else the operand is. */
static enum operand_role role_of(const struct ir_graph *g, const struct ir_node *n, int32_t i)
{
    return ir_written_state(g, n) == n->in[i] ? ROLE_EXACT : op_input_role(n->op, i, n->in_count);
}

/* ---- the rewrite ---- */

enum { FLOAT_TYPES = 4, FEW_INPUTS = 16 };

struct precise {
    struct pass_run *p;
    struct rebuild r;
    struct ir_graph *g;
    rlx_dtype type_of_class[PRECISION_COUNT];
    bool *exact;                   /* by node: computed to be an index */
    ir_value (*cast)[FLOAT_TYPES]; /* by node: its casts so far; RLX_NO_VALUE: none */
    uint64_t changes;
};

static bool is_float(rlx_dtype t)
{
    return dtype_is(t, CLASS_F);
}

static bool is_half(rlx_dtype t)
{
    return t == RLX_DTYPE_f16 || t == RLX_DTYPE_bf16;
}

static int cast_slot(rlx_dtype t)
{
    return t == RLX_DTYPE_f32 ? 0 : t == RLX_DTYPE_f16 ? 1 : t == RLX_DTYPE_bf16 ? 2 : 3;
}

static rlx_status choose_types(const struct pass_options *o, rlx_dtype *of, struct diag *d)
{
    const rlx_precision_map *map = &o->precision_map;
    rlx_dtype all = RLX_DTYPE_f16;

    switch (o->precision) {
    case RLX_PRECISION_F32: all = RLX_DTYPE_f32; break;
    case RLX_PRECISION_F16:
    case RLX_PRECISION_MIXED:
    case RLX_PRECISION_MIXED_CONSERVATIVE: break;
    case RLX_PRECISION_MIXED_BF16: all = RLX_DTYPE_bf16; break;
    case RLX_PRECISION_AS_DECLARED:
    case RLX_PRECISION_CUSTOM: break;
    default:
        return diag_fail(d, RLX_ERROR_ARGUMENT, "there is no precision policy number %d",
                         (int)o->precision);
    }
    for (int i = 0; i < PRECISION_COUNT; i++)
        of[i] = all;
    if (o->precision == RLX_PRECISION_MIXED_CONSERVATIVE)
        of[PRECISION_REDUCTION] = RLX_DTYPE_f32;
    if (o->precision != RLX_PRECISION_CUSTOM)
        return RLX_OK;
    of[PRECISION_COMPUTE] = map->compute;
    of[PRECISION_REDUCTION] = map->reduction;
    of[PRECISION_ELEMENTWISE] = map->elementwise;
    of[PRECISION_MOVEMENT] = map->movement;
    for (int i = 0; i < PRECISION_DECLARED; i++)
        if (of[i] != RLX_DTYPE_f32 && !is_half(of[i]))
            return diag_fail(d, RLX_ERROR_ARGUMENT,
                             "a precision map holds f32, f16 and bf16, not %s",
                             rlx_dtype_name(of[i]));
    return RLX_OK;
}

/* Floats that become an index, and the chain of cheap ops that makes them. */
static void mark_exact(struct precise *s)
{
    for (size_t i = s->g->node.len; i-- > 0;) {
        const struct ir_node *n = &s->g->node.at[i];
        enum precision_class class = class_of(n->op);
        bool passes_on =
            s->exact[i] && (class == PRECISION_ELEMENTWISE || class == PRECISION_MOVEMENT);
        for (int32_t k = 0; k < n->in_count; k++)
            if (is_float(ir_type_of(s->g, n->in[k])->dtype) &&
                (passes_on || role_of(s->g, n, k) == ROLE_INDEX))
                s->exact[n->in[k]] = true;
    }
}

/* The value in that type. Casts of a state are not kept: it may be written meanwhile. */
static rlx_status in_type(struct precise *s, ir_value old, rlx_dtype t, ir_value *out)
{
    ir_value v = rebuild_map(&s->r, old), *kept = &s->cast[old][cast_slot(t)];

    *out = v;
    if (expand_type(&s->r, v)->dtype == t)
        return RLX_OK;
    if (*kept != RLX_NO_VALUE) {
        *out = *kept;
        return RLX_OK;
    }
    TRY(expand_cast(&s->r, v, t, out));
    s->changes++;
    if (ir_node(s->g, old)->op != RLX_OP_state)
        *kept = *out;
    return RLX_OK;
}

/* The type operand i is wanted in when the op is computed in `in`; RLX_ABSENT_DTYPE: as declared.
 */
static rlx_dtype wanted_type(const struct precise *s, const struct ir_node *n, int32_t i,
                             rlx_dtype in)
{
    rlx_dtype declared = ir_type_of(s->g, n->in[i])->dtype;
    enum operand_role role = role_of(s->g, n, i);

    if (in == RLX_ABSENT_DTYPE || !is_float(declared) || role == ROLE_INDEX || role == ROLE_EXACT ||
        role == ROLE_STATE)
        return declared;
    bool may_stay = role == ROLE_SCALE || role == ROLE_VARIANCE;
    return may_stay && declared == RLX_DTYPE_f32 && is_half(in) ? declared : in;
}

static void adjust_attr(const struct ir_node *n, rlx_dtype in, union ir_attr *attr)
{
    *attr = n->attr;
    if (n->op == RLX_OP_fused_swiglu && in != RLX_ABSENT_DTYPE &&
        attr->fused_swiglu.cast_to != RLX_ABSENT_DTYPE && is_float(attr->fused_swiglu.cast_to))
        attr->fused_swiglu.cast_to = in;
}

/* Does the op take its operands in that type? */
static rlx_status accepts(struct precise *s, const struct ir_node *n, rlx_dtype in, bool *out)
{
    size_t count = (size_t)n->in_count;
    struct arena scratch;
    struct diag quiet;
    struct ir_type type;
    union ir_attr attr;

    arena_init(&scratch, s->g->mod->mem);
    struct ir_type *types = arena_array(&scratch, struct ir_type, count);
    const struct ir_type **at = arena_array(&scratch, const struct ir_type *, count);
    ir_value *id = arena_array(&scratch, ir_value, count);
    if (!types || !at || !id) {
        arena_free(&scratch);
        return diag_no_memory(s->p->diag, count * sizeof *types);
    }
    for (int32_t i = 0; i < n->in_count; i++) {
        id[i] = rebuild_map(&s->r, n->in[i]);
        types[i] = *expand_type(&s->r, id[i]);
        types[i].dtype = wanted_type(s, n, i, in);
        at[i] = &types[i];
    }
    adjust_attr(n, in, &attr);
    diag_init(&quiet, "pass");
    rlx_status status = ir_infer_types(&s->r.made, n->op, &attr, at, id, n->in_count,
                                       (int32_t)s->r.made.node.len, false, &type, &quiet);
    arena_free(&scratch);
    *out = status == RLX_OK;
    return status == RLX_ERROR_MEMORY ? diag_no_memory(s->p->diag, 0) : RLX_OK;
}

/* The type to compute the node in; RLX_ABSENT_DTYPE: as declared. */
static rlx_status choose_type(struct precise *s, const struct ir_node *n, rlx_dtype *out)
{
    enum precision_class class = class_of(n->op);
    rlx_dtype target = s->type_of_class[class];
    bool ok;

    *out = RLX_ABSENT_DTYPE;
    if (class == PRECISION_DECLARED || s->exact[ir_id(s->g, n)])
        return RLX_OK;
    TRY(accepts(s, n, target, &ok));
    if (!ok && is_half(target)) {
        target = RLX_DTYPE_f32;
        TRY(accepts(s, n, target, &ok));
    }
    if (ok)
        *out = target;
    return RLX_OK;
}

static rlx_status rewrite_op(struct precise *s, const struct ir_node *n)
{
    ir_value few[FEW_INPUTS], *in = few, v = RLX_NO_VALUE;
    rlx_dtype type;
    union ir_attr attr;

    TRY(choose_type(s, n, &type));
    if (n->in_count > FEW_INPUTS) {
        in = arena_array(&s->g->mod->arena, ir_value, (size_t)n->in_count);
        if (!in)
            return diag_no_memory(s->p->diag, (size_t)n->in_count * sizeof *in);
    }
    for (int32_t i = 0; i < n->in_count; i++)
        TRY(in_type(s, n->in[i], wanted_type(s, n, i, type), &in[i]));
    adjust_attr(n, type, &attr);
    TRY(rebuild_add(&s->r, n->op, in, n->in_count, &attr, &v));
    rebuild_replace(&s->r, n, v);
    s->changes += expand_type(&s->r, v)->dtype != n->type.dtype;
    return RLX_OK;
}

static bool is_output(const struct ir_graph *g, ir_value v)
{
    for (size_t i = 0; i < g->output.len; i++)
        if (g->output.at[i] == v)
            return true;
    return false;
}

/* A cast reads its operand in whatever type that is. Between floats it goes to the policy's type,
 * and is gone where the operand has that already. */
static rlx_status rewrite_cast(struct precise *s, const struct ir_node *n)
{
    ir_value in = rebuild_map(&s->r, n->in[0]), v;
    rlx_dtype to = n->attr.cast.to;

    if (is_float(to) && !s->exact[ir_id(s->g, n)])
        to = s->type_of_class[PRECISION_MOVEMENT];
    if (ir_node(s->g, n->in[0])->op == RLX_OP_state || is_output(s->g, ir_id(s->g, n))) {
        /* It holds what the state was at this point, or an output's name: it stays in any case. */
        union ir_attr attr = {.cast.to = to};
        TRY(rebuild_add(&s->r, RLX_OP_cast, &in, 1, &attr, &v));
    } else {
        TRY(expand_cast(&s->r, in, to, &v));
    }
    s->changes += v == in || to != n->attr.cast.to;
    rebuild_replace(&s->r, n, v);
    return RLX_OK;
}

/* An output in its declared type, under its name: "y" is the cast then, and "y.f16" what it casts.
 */
static rlx_status restore_output(struct precise *s, ir_value old)
{
    const struct ir_node *n = ir_node(s->g, old);
    ir_value now = rebuild_map(&s->r, old), v;

    TRY(in_type(s, old, n->type.dtype, &v));
    if (v == now)
        return RLX_OK;
    struct ir_node *computed = ir_node(&s->r.made, now);
    if (n->label.len && str_eq(computed->label, n->label) && !op_is(computed->op, OP_LEAF)) {
        const char *name = arena_printf(&s->g->mod->arena, "%.*s.%s", STR_ARG(n->label),
                                        rlx_dtype_name(computed->type.dtype));
        if (!name)
            return diag_no_memory(s->p->diag, n->label.len);
        computed->label = rlx_cstr(name);
    }
    ir_node(&s->r.made, v)->label = n->label;
    s->r.map[old] = v; /* nothing but outputs is left to look at it */
    return RLX_OK;
}

static rlx_status rewrite(struct precise *s)
{
    IR_EACH(n, s->g) {
        if (op_is(n->op, OP_LEAF))
            TRY(rebuild_keep(&s->r, n));
        else if (n->op == RLX_OP_cast)
            TRY(rewrite_cast(s, n));
        else
            TRY(rewrite_op(s, n));
    }
    for (size_t i = 0; i < s->g->output.len; i++)
        TRY(restore_output(s, s->g->output.at[i]));
    return RLX_OK;
}

static rlx_status rewrite_graph(struct precise *s, struct arena *scratch)
{
    size_t nodes = s->g->node.len;

    s->exact = arena_array(scratch, bool, nodes);
    s->cast = arena_alloc_array(scratch, nodes, sizeof *s->cast, _Alignof(ir_value));
    if (!s->exact || !s->cast)
        return diag_no_memory(s->p->diag, nodes * sizeof *s->cast);
    for (size_t i = 0; i < nodes; i++)
        for (int k = 0; k < FLOAT_TYPES; k++)
            s->cast[i][k] = RLX_NO_VALUE;
    mark_exact(s);
    rlx_status status = rebuild_begin(&s->r, s->g, s->p->diag);
    if (status == RLX_OK)
        status = rewrite(s);
    if (s->changes)
        return rebuild_finish(&s->r, status);
    rebuild_drop(&s->r);
    return status;
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    struct precise s = {.p = p, .g = ir_entry(m)};
    struct arena scratch;

    TRY(choose_types(p->options, s.type_of_class, p->diag));
    if (p->options->precision == RLX_PRECISION_AS_DECLARED)
        return RLX_OK;
    arena_init(&scratch, m->mem);
    rlx_status status = rewrite_graph(&s, &scratch);
    arena_free(&scratch);
    p->changes += s.changes;
    return status;
}

const struct pass pass_precision = {"precision", "compute floats in the types of a policy", run};
