/* artefact_program.c: a program as bytes: for which sizes, its steps, its plan.
 *
 * Nodes and values are numbered as they are: an optimised graph has its leaves first, as its text
 * does, so that a parse gives it the same numbers. */
#include <inttypes.h>
#include <string.h>

#include "compile/cache/artefact.h"
#include "ir/fingerprint.h"
#include "ir/text/text.h"

/* ---- writing ---- */

static void put_i32(struct text *out, int32_t v)
{
    put_u32(out, (uint32_t)v);
}

static void put_sizes(const struct dim_table *dims, const int64_t *binding, size_t count,
                      struct text *out)
{
    uint32_t bound = 0;

    for (size_t i = 0; i < count; i++)
        bound += binding[i] != -1;
    put_u32(out, bound);
    for (size_t i = 0; i < count; i++) {
        if (binding[i] == -1)
            continue;
        put_str(out, dim_symbol_name(dims, i));
        put_u64(out, (uint64_t)binding[i]);
    }
}

/* Where views lie follows from their roots and from the sizes of a run. */
static void put_steps(const struct steps *s, struct text *out)
{
    put_u32(out, (uint32_t)s->value_count);
    for (size_t i = 0; i < s->value_count; i++) {
        const struct value *v = &s->value[i];
        put_i32(out, v->node);
        put_i32(out, v->root);
        put_u32(out, v->region);
        put_u32(out, v->flags);
        put_u64(out, v->room);
        put_u64(out, v->offset);
    }
    put_u32(out, (uint32_t)s->step_count);
    for (size_t i = 0; i < s->step_count; i++) {
        put_str(out, rlx_cstr(s->step[i].name));
        put_i32(out, s->step[i].node);
        put_u32(out, s->step[i].count);
    }
    put_u32(out, (uint32_t)s->operand_count);
    for (size_t i = 0; i < s->operand_count; i++) {
        put_i32(out, s->operand[i].value);
        put_u32(out, (uint32_t)s->operand[i].role | (uint32_t)s->operand[i].in_place << 8);
    }
}

rlx_status saved_program_put(const struct compiled_program *p, uint64_t options,
                             const struct dim_table *dims, const int64_t *size, size_t count,
                             struct text *out, struct diag *d)
{
    const struct plan *plan = p->program->plan;
    uint64_t fingerprint;

    TRY(ir_fingerprint(p->optimised, true, &fingerprint, d));
    put_u64(out, options);
    put_u64(out, fingerprint);
    put_sizes(dims, size, count, out);
    put_u64(out, plan->align);
    for (int r = 0; r < REGION_COUNT; r++)
        put_u64(out, plan->size[r]);
    put_steps(p->program->steps, out);
    return out->failed ? diag_no_memory(d, out->len) : RLX_OK;
}

/* ---- reading ---- */

static rlx_status get_sizes(struct reader *r, struct arena *arena, struct saved_program *p,
                            struct diag *d)
{
    p->dim_count = get_count(r, 12);
    p->dim = arena_array(arena, rlx_str, p->dim_count);
    p->size = arena_array(arena, int64_t, p->dim_count);
    if (!p->dim || !p->size)
        return diag_no_memory(d, p->dim_count * sizeof(int64_t));
    for (size_t i = 0; i < p->dim_count; i++) {
        p->dim[i] = arena_str(arena, get_str(r));
        p->size[i] = (int64_t)get_u64(r);
        if (!p->dim[i].ptr)
            return diag_no_memory(d, p->dim[i].len);
        if (p->size[i] < 0 && p->size[i] > -3)
            reader_fail(r, "holds an invalid size");
    }
    return RLX_OK;
}

static rlx_status get_values(struct reader *r, struct arena *arena, struct steps *s, struct diag *d)
{
    s->value_count = get_count(r, 32);
    s->value = arena_array(arena, struct value, s->value_count);
    if (!s->value)
        return diag_no_memory(d, s->value_count * sizeof *s->value);
    for (size_t i = 0; i < s->value_count; i++) {
        struct value *v = &s->value[i];
        v->node = (int32_t)get_u32(r);
        v->root = (int32_t)get_u32(r);
        uint32_t region = get_u32(r);
        v->flags = get_u32(r);
        v->bytes = get_u64(r);
        v->offset = get_u64(r);
        if (region >= REGION_COUNT)
            reader_fail(r, "holds a value in a region that does not exist");
        v->region = region < REGION_COUNT ? (enum region)region : REGION_ACTS;
    }
    return RLX_OK;
}

static rlx_status get_steps(struct reader *r, struct arena *arena, struct steps *s, struct diag *d)
{
    uint64_t first = 0;

    s->step_count = get_count(r, 12);
    s->step = arena_array(arena, struct step, s->step_count);
    if (!s->step)
        return diag_no_memory(d, s->step_count * sizeof *s->step);
    for (size_t i = 0; i < s->step_count; i++) {
        struct step *st = &s->step[i];
        rlx_str name = arena_str(arena, get_str(r));
        if (!name.ptr)
            return diag_no_memory(d, name.len);
        st->name = name.ptr;
        st->node = (int32_t)get_u32(r);
        st->first = (uint32_t)first;
        st->count = get_u32(r);
        first += st->count;
        if (first > UINT32_MAX) {
            reader_fail(r, "holds steps with too many operands");
            return RLX_OK;
        }
    }
    s->operand_count = get_count(r, 8);
    if (first != s->operand_count)
        reader_fail(r, "holds another number of operands than its steps have");
    s->operand = arena_array(arena, struct operand, s->operand_count);
    if (!s->operand)
        return diag_no_memory(d, s->operand_count * sizeof *s->operand);
    for (size_t i = 0; i < s->operand_count; i++) {
        int32_t value = (int32_t)get_u32(r);
        uint32_t how = get_u32(r);
        if (how & ~UINT32_C(0x1ff))
            reader_fail(r, "holds an operand in a role that does not exist");
        s->operand[i] = (struct operand){value, (uint8_t)how, how >> 8 & 1};
    }
    return RLX_OK;
}

rlx_status saved_program_get(struct reader r, uint32_t number, struct arena *arena,
                             struct saved_program *out, struct diag *d)
{
    *out = (struct saved_program){.plan = {.steps = &out->steps}};
    out->options = get_u64(&r);
    out->fingerprint = get_u64(&r);
    TRY(get_sizes(&r, arena, out, d));
    out->plan.align = get_u64(&r);
    for (int i = 0; i < REGION_COUNT; i++)
        out->plan.size[i] = get_u64(&r);
    TRY(get_values(&r, arena, &out->steps, d));
    TRY(get_steps(&r, arena, &out->steps, d));
    return reader_end(&r, artefact_kind_name(SECTION_PROGRAM), number, d);
}

bool saved_program_has_sizes(const struct saved_program *p, const struct dim_table *dims,
                             const int64_t *binding, size_t count)
{
    size_t bound = 0, symbol;

    for (size_t i = 0; i < count; i++)
        bound += binding[i] != -1;
    if (bound != p->dim_count)
        return false;
    for (size_t i = 0; i < p->dim_count; i++)
        if (!dim_find_symbol(dims, p->dim[i], &symbol) || symbol >= count ||
            binding[symbol] != p->size[i])
            return false;
    return true;
}

/* ---- the graph of a program ---- */

/* Types of different modules: symbolic dims are compared as text. */
static bool same_type(const struct ir_module *m, const struct ir_type *a, const struct ir_module *n,
                      const struct ir_type *b, bool *no_memory)
{
    struct text x, y;

    if (type_is_static(a) && type_is_static(b))
        return type_same(a, b);
    text_init(&x, m->mem);
    text_init(&y, m->mem);
    ir_print_type(m, a, &x);
    ir_print_type(n, b, &y);
    *no_memory |= x.failed || y.failed;
    bool same = !x.failed && !y.failed && strcmp(x.at, y.at) == 0;
    text_free(&x);
    text_free(&y);
    return same;
}

/* Params and states are read and written where the model has them, inputs and outputs in the sizes
 * that callers are given: a graph that has them otherwise must not get that far. */
static rlx_status check_ends(const struct ir_module *mod, const struct ir_module *bound,
                             struct diag *d)
{
    const struct ir_graph *g = ir_entry(mod), *model = ir_entry(bound);
    bool no_memory = false;
    ir_value v;

    IR_EACH(n, g) {
        rlx_str name = ir_leaf_name(n);
        if (op_info(n->op)->family != FAMILY_leaf)
            continue;
        if (!ir_find_leaf(model, name, &v) || ir_node(model, v)->op != n->op ||
            !same_type(mod, &n->type, bound, ir_type_of(model, v), &no_memory))
            return no_memory ? diag_no_memory(d, 0)
                             : diag_fail(d, RLX_ERROR_FORMAT,
                                         "the optimised graph has a %s \"%.*s\" that the model has "
                                         "not, or of another type",
                                         op_info(n->op)->name, STR_ARG(name));
    }
    if (g->output.len != model->output.len)
        return diag_fail(d, RLX_ERROR_FORMAT, "the optimised graph has %zu outputs, the model %zu",
                         g->output.len, model->output.len);
    for (size_t i = 0; i < g->output.len; i++)
        if (!same_type(mod, ir_type_of(g, g->output.at[i]), bound,
                       ir_type_of(model, model->output.at[i]), &no_memory))
            return no_memory ? diag_no_memory(d, 0)
                             : diag_fail(d, RLX_ERROR_FORMAT,
                                         "output %zu of the optimised graph has another type", i);
    return RLX_OK;
}

static rlx_status check_graph(const struct ir_module *mod, const struct saved_program *p,
                              const struct ir_module *bound, struct diag *d)
{
    uint64_t fingerprint;

    TRY(ir_fingerprint(mod, true, &fingerprint, d));
    if (fingerprint != p->fingerprint)
        return diag_fail(d, RLX_ERROR_FORMAT,
                         "the optimised graph is not the one that was planned: its fingerprint is "
                         "%016" PRIx64 ", not %016" PRIx64,
                         fingerprint, p->fingerprint);
    return check_ends(mod, bound, d);
}

rlx_status saved_program_parse(const struct blobs *b, struct reader text,
                               const struct saved_program *p, const struct ir_module *bound,
                               bool copy, rlx_context *ctx, struct ir_module **out, struct diag *d)
{
    struct ir_module *mod;

    TRY(blobs_parse(b, text, copy, ctx, &mod, d));
    rlx_status s = check_graph(mod, p, bound, d);
    if (s != RLX_OK) {
        ir_module_destroy(mod);
        return s;
    }
    *out = mod;
    return RLX_OK;
}
