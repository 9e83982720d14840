/* spread.c: how far rounding may carry a value.
 *
 * Errors pile up through a graph, and where one decides a comparison or an order they become large
 * at once. So the definition is run several times over, with every node's result moved at random by
 * what its class of op may be off (selftest_compare.c). What a device gives must lie among these
 * samples: an element that they agree on must be that one, an element that they scatter says
 * nothing. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "random.h"

/* ---- leaves ---- */

static const char *const kinds[] = {
    [KIND_ANY] = "any",           [KIND_INDEX] = "index",       [KIND_VALID] = "valid",
    [KIND_POSITIVE] = "positive", [KIND_UNIT] = "unit",         [KIND_SPD] = "spd",
    [KIND_TRIANGLE] = "triangle", [KIND_DISTINCT] = "distinct", [KIND_BYTES] = "bytes",
    [KIND_LOW_RANK] = "lowrank",  [KIND_REPEATED] = "repeated", [KIND_LOG] = "log",
    [KIND_TURN] = "turn",         [KIND_CAMERA] = "camera",     [KIND_SMALL] = "small",
    [KIND_LAYER] = "layer",       [KIND_PACKED] = "packed",
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

void leaf_name(const struct value_spec *spec, int64_t number, char out[48])
{
    snprintf(out, 48, "%s_%lld_x%lld", kinds[spec->kind], (long long)spec->n, (long long)number);
}

struct value_spec leaf_spec(rlx_str name)
{
    struct value_spec spec = {KIND_ANY, 0};
    char text[48];
    long long n = 0;

    for (int k = 0; k < KINDS; k++) {
        size_t len = strlen(kinds[k]);
        if (!str_starts(name, rlx_cstr(kinds[k])) || name.len <= len || name.ptr[len] != '_')
            continue;
        snprintf(text, sizeof text, "%.*s", (int)(name.len - len - 1), name.ptr + len + 1);
        if (sscanf(text, "%lld_", &n) == 1)
            spec = (struct value_spec){(enum value_kind)k, n};
    }
    return spec;
}

static uint64_t hash(rlx_str name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (unsigned char)name.ptr[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* ---- one node ---- */

static rlx_status absolute(struct arena *a, const struct eval_tensor *from, struct eval_tensor *to,
                           struct diag *d)
{
    TRY(eval_tensor_new(a, &from->type, to, d));
    for (int64_t k = 0; k < from->count; k++) {
        to->at[k] = from->at[k];
        to->at[k].f = from->type.dtype == RLX_DTYPE_c64 ? hypot(from->at[k].f, from->at[k].im)
                                                        : fabs(from->at[k].f);
        to->at[k].im = 0;
    }
    return RLX_OK;
}

static rlx_status term_sizes(const struct ir_graph *g, const struct ir_node *n,
                             const struct eval_tensor *const *in, struct eval_tensor *out,
                             struct arena *a, struct diag *d)
{
    struct eval_tensor *copy = arena_array(a, struct eval_tensor, (size_t)n->in_count);
    const struct eval_tensor **at =
        arena_array(a, const struct eval_tensor *, (size_t)n->in_count + 1);

    if (!copy || !at)
        return diag_no_memory(d, sizeof *copy);
    for (int32_t i = 0; i < n->in_count; i++) {
        TRY(absolute(a, in[i], &copy[i], d));
        at[i] = &copy[i];
    }
    return eval_node_sizes(g, n, at, out, NULL, a, d);
}

/* The largest |v| of attention, which its tolerance goes by. */
static void fill_largest(const struct eval_tensor *v, struct eval_tensor *out)
{
    double most = 0;

    for (int64_t k = 0; k < v->count; k++)
        most = isfinite(v->at[k].f) ? fmax(most, fabs(v->at[k].f)) : most;
    for (int64_t k = 0; k < out->count; k++)
        out->at[k].f = most;
}

rlx_status node_sizes(const struct ir_graph *g, const struct ir_node *n,
                      const struct eval_tensor *const *in, struct eval_tensor *out, bool *has,
                      struct arena *a, struct diag *d)
{
    *has = selftest_wants_abs(n->op) || n->op == RLX_OP_attention;
    if (!*has)
        return RLX_OK;
    TRY(eval_tensor_new(a, &n->type, out, d));
    if (n->op != RLX_OP_attention)
        return term_sizes(g, n, in, out, a, d);
    fill_largest(in[2], out);
    return RLX_OK;
}

double unit_at(rlx_dtype t, double v)
{
    double unit = t == RLX_DTYPE_f16    ? 0x1p-10
                  : t == RLX_DTYPE_bf16 ? 0x1p-7
                  : t == RLX_DTYPE_f64  ? 0x1p-52
                                        : 0x1p-23;
    double least = t == RLX_DTYPE_f16    ? 0x1p-24
                   : t == RLX_DTYPE_bf16 ? 0x1p-133
                   : t == RLX_DTYPE_f64  ? 0x1p-1074
                                         : 0x1p-149;

    return fmax(unit * fabs(v), least);
}

bool node_is_composite(const struct ir_node *n)
{
    switch (op_info(n->op)->category) {
    case CATEGORY_CONTRACTION:
    case CATEGORY_NORMALISATION:
    case CATEGORY_SEQUENCE:
    case CATEGORY_FUSED:
    case CATEGORY_CONTROL:
    case CATEGORY_GRADIENT: return true;
    default: return false;
    }
}

rlx_status moved_operand(struct arena *a, const struct eval_tensor *x, struct dice *dice,
                         const struct eval_tensor **out, struct diag *d)
{
    struct eval_tensor *to = arena_new(a, struct eval_tensor);

    if (!to)
        return diag_no_memory(d, sizeof *to);
    TRY(eval_tensor_new(a, &x->type, to, d));
    for (int64_t k = 0; k < x->count; k++) {
        to->at[k] = x->at[k];
        if (dtype_is(x->type.dtype, CLASS_F | CLASS_C)) {
            to->at[k].f += 4 * dice_unit(dice) * unit_at(x->type.dtype, x->at[k].f);
            to->at[k].im += 4 * dice_unit(dice) * unit_at(x->type.dtype, x->at[k].im);
        }
    }
    *out = to;
    return RLX_OK;
}

/* What moves elements about rounds nothing; all else may, once it is fused with others. */
static bool computes(const struct ir_node *n)
{
    return op_info(n->op)->category != CATEGORY_MOVEMENT && !op_is(n->op, OP_LEAF) &&
           dtype_is(n->type.dtype, CLASS_F | CLASS_C);
}

/* ---- the spread ---- */

void spread_init(struct spread *s, struct ir_graph *g, enum value_profile profile, uint64_t seed,
                 int samples, double reach)
{
    *s = (struct spread){.graph = g,
                         .dice = {seed ^ 0x5eed},
                         .profile = profile,
                         .seed = seed,
                         .samples = samples,
                         .reach = reach};
    arena_init(&s->arena, mem_default());
    diag_init(&s->diag, "random");
}

void spread_free(struct spread *s)
{
    arena_free(&s->arena);
}

void spread_back(struct spread *s, size_t v)
{
    if (s->done > v)
        s->done = v;
}

static rlx_status make_room(struct spread *s)
{
    size_t room = 2 * s->graph->node.len + 64;

    if (s->room >= s->graph->node.len)
        return RLX_OK;
    for (int i = -1; i < s->samples; i++) {
        struct eval_tensor *to = arena_array(&s->arena, struct eval_tensor, room);
        struct eval_tensor *from = i < 0 ? s->center : s->moved ? s->moved[i] : NULL;
        if (!s->moved)
            s->moved = arena_array(&s->arena, struct eval_tensor *, (size_t)s->samples + 1);
        if (!to || !s->moved)
            return diag_no_memory(&s->diag, room * sizeof *to);
        if (from)
            memcpy(to, from, s->done * sizeof *to);
        *(i < 0 ? &s->center : &s->moved[i]) = to;
    }
    s->room = room;
    return RLX_OK;
}

static rlx_status fill_leaf(struct spread *s, ir_value v)
{
    const struct ir_node *n = ir_node(s->graph, v);
    struct value_spec spec = leaf_spec(ir_leaf_name(n));

    TRY(eval_tensor_new(&s->arena, &n->type, &s->center[v], &s->diag));
    if (n->op == RLX_OP_const)
        eval_load(&s->center[v], n->attr.const_.data.ptr);
    else
        selftest_fill(&s->center[v], &spec, s->profile, s->seed ^ hash(ir_leaf_name(n)));
    for (int i = 0; i < s->samples; i++)
        s->moved[i][v] = s->center[v];
    return RLX_OK;
}

/* x moved by what is allowed; zeros stay. */
static double moved_by(struct spread *s, const struct ir_node *n, double x, double size,
                       double allowed)
{
    double unit = computes(n) && x != 0 ? unit_at(n->type.dtype, size) : 0;

    return isfinite(x) ? x + dice_unit(&s->dice) * s->reach * fmax(allowed, unit) : x;
}

static void shake(struct spread *s, const struct ir_node *n, const double *allowed,
                  struct eval_tensor *t)
{
    bool pairs = n->type.dtype == RLX_DTYPE_c64;

    for (int64_t k = 0; k < t->count && dtype_is(n->type.dtype, CLASS_F | CLASS_C); k++) {
        struct eval_cell *c = &t->at[k];
        double size = pairs ? hypot(c->f, c->im) : c->f;
        c->f = moved_by(s, n, c->f, size, allowed[k]);
        if (pairs)
            c->im = moved_by(s, n, c->im, size, allowed[k]);
    }
    eval_round(t);
}

static rlx_status run_node(struct spread *s, ir_value v)
{
    const struct ir_node *n = ir_node(s->graph, v);
    const struct eval_tensor **in =
        arena_array(&s->arena, const struct eval_tensor *, (size_t)n->in_count + 1);
    struct eval_tensor sizes, exact;
    bool sized, fixed = true;

    if (!in)
        return diag_no_memory(&s->diag, sizeof *in);
    for (int32_t i = 0; i < n->in_count; i++) {
        in[i] = &s->center[n->in[i]];
        for (int k = 0; k < s->samples; k++)
            fixed &= s->moved[k][n->in[i]].at == in[i]->at;
    }
    TRY(eval_tensor_new(&s->arena, &n->type, &exact, &s->diag));
    TRY(eval_node(s->graph, n, in, &exact, NULL, &s->arena, &s->diag));
    TRY(node_sizes(s->graph, n, in, &sizes, &sized, &s->arena, &s->diag));
    double *allowed = arena_array(&s->arena, double, (size_t)exact.count + 1);
    if (!allowed)
        return diag_no_memory(&s->diag, (size_t)exact.count * sizeof *allowed);
    selftest_allowed(s->graph, n, &exact, sized ? &sizes : NULL, allowed);
    TRY(eval_tensor_new(&s->arena, &n->type, &s->center[v], &s->diag));
    eval_copy(&s->center[v], &exact);
    eval_round(&s->center[v]);
    bool still = fixed && !dtype_is(n->type.dtype, CLASS_F | CLASS_C);
    for (int k = 0; k < s->samples; k++) {
        struct eval_tensor *to = &s->moved[k][v];
        if (still || (fixed && !computes(n))) {
            *to = s->center[v];
            continue;
        }
        for (int32_t i = 0; i < n->in_count; i++) {
            in[i] = &s->moved[k][n->in[i]];
            if (node_is_composite(n))
                TRY(moved_operand(&s->arena, in[i], &s->dice, &in[i], &s->diag));
        }
        TRY(eval_tensor_new(&s->arena, &n->type, to, &s->diag));
        if (fixed && !node_is_composite(n))
            eval_copy(to, &exact);
        else
            TRY(eval_node(s->graph, n, in, to, NULL, &s->arena, &s->diag));
        shake(s, n, allowed, to);
    }
    return RLX_OK;
}

rlx_status spread_go_on(struct spread *s)
{
    TRY(make_room(s));
    for (; s->done < s->graph->node.len; s->done++) {
        ir_value v = (ir_value)s->done;
        if (op_is(ir_node(s->graph, v)->op, OP_LEAF))
            TRY(fill_leaf(s, v));
        else
            TRY(run_node(s, v));
    }
    return RLX_OK;
}

/* ---- questions ---- */

/* The numbers of an element: one, or the parts of a complex one. */
static double part(const struct eval_tensor *t, int64_t k, int i)
{
    return dtype_is(t->type.dtype, CLASS_INT | CLASS_B) ? (double)t->at[k].i
           : i                                          ? t->at[k].im
                                                        : t->at[k].f;
}

/* Where the samples lie around the center; infinite where they do not agree on what is a number. */
static double reach_at(const struct spread *s, ir_value v, int64_t k, int i)
{
    double c = part(&s->center[v], k, i), most = 0;

    for (int j = 0; j < s->samples; j++) {
        double m = part(&s->moved[j][v], k, i);
        if (m == c || (isnan(m) && isnan(c)))
            continue;
        if (!isfinite(m) || !isfinite(c))
            return (double)INFINITY;
        most = fmax(most, fabs(m - c));
    }
    return most;
}

double spread_width(const struct spread *s, ir_value v)
{
    const struct eval_tensor *t = &s->center[v];
    int parts = t->type.dtype == RLX_DTYPE_c64 ? 2 : 1;
    double most = 0, size = 0;

    for (int64_t k = 0; k < t->count; k++)
        for (int i = 0; i < parts; i++) {
            if (!isfinite(part(t, k, i)))
                return (double)INFINITY;
            most = fmax(most, reach_at(s, v, k, i));
            size = fmax(size, fabs(part(t, k, i)));
        }
    return size > 0 ? most / size : most;
}

static bool same_number(double got, double want, bool flushes)
{
    if (got == want || (isnan(got) && isnan(want)))
        return true;
    return flushes && fabs(got) <= (double)FLT_MIN && fabs(want) <= (double)FLT_MIN;
}

bool spread_allows(const struct spread *s, ir_value v, const struct eval_tensor *got, bool flushes,
                   char *message, size_t room)
{
    const struct eval_tensor *want = &s->center[v];
    int parts = want->type.dtype == RLX_DTYPE_c64 ? 2 : 1;
    bool whole = dtype_is(want->type.dtype, CLASS_INT | CLASS_B);

    for (int64_t k = 0; k < want->count; k++)
        for (int i = 0; i < parts; i++) {
            double g = part(got, k, i), w = part(want, k, i), r = reach_at(s, v, k, i);
            if (same_number(g, w, flushes) || (whole ? r > 0 : isinf(r)))
                continue;
            double slack = whole ? 0 : 3 * r + 2 * unit_at(want->type.dtype, w);
            if (isfinite(g) && isfinite(w) && fabs(g - w) <= slack)
                continue;
            snprintf(message, room,
                     "element %lld is %.9g, its definition gives %.9g (may be off %.3g)",
                     (long long)k, g, w, slack);
            return false;
        }
    return true;
}
