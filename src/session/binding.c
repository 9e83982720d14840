/* binding.c: from the shapes of a run's inputs to a size for every symbolic dim (ops-core.md 3.3).
 *
 * What the run says in dims comes first, then inputs, then handles that no input replaces. */
#include "base/str.h"
#include "model/dims.h"
#include "session/session.h"

struct binder {
    const struct rlx_model *model;
    struct rlx_session *s; /* with bounds and handles; NULL: there is none yet */
    struct dim_table *dims;
    int64_t *size; /* by symbol; -1: not known yet */
    size_t count;
    bool progress;
    struct diag *diag;
};

static rlx_status take(struct binder *b, size_t symbol, int64_t n, rlx_str source)
{
    if (b->size[symbol] == n)
        return RLX_OK;
    if (b->size[symbol] >= 0)
        return diag_fail(b->diag, RLX_ERROR_BINDING,
                         "dim \"%.*s\" is %lld so far, but %lld in \"%.*s\"",
                         STR_ARG(dim_symbol_name(b->dims, symbol)), (long long)b->size[symbol],
                         (long long)n, STR_ARG(source));
    b->size[symbol] = n;
    b->progress = true;
    return RLX_OK;
}

/* An axis whose symbols all have sizes already, but others than this input's shape asks for. */
static rlx_status contradiction(struct binder *b, ir_dim want, int64_t value, int64_t got,
                                int32_t axis, rlx_str name)
{
    struct text expr;

    text_init(&expr, &b->model->ctx->mem);
    dim_print(b->dims, want, &expr);
    rlx_status s = diag_fail(b->diag, RLX_ERROR_BINDING,
                             "input \"%.*s\": axis %d is %s, which is %lld by what dims or other "
                             "inputs say, but %lld was given",
                             STR_ARG(name), axis, expr.at ? expr.at : "symbolic", (long long)value,
                             (long long)got);
    text_free(&expr);
    return s;
}

/* false: the axis has a size, and it is another one. */
static bool is_free(ir_dim want, int64_t got)
{
    return want == RLX_DIM_UNKNOWN || !dim_is_static(want) || want == got;
}

static rlx_status match_dim(struct binder *b, ir_dim want, int64_t got, int32_t axis, rlx_str name)
{
    size_t unbound[2], n;
    int64_t value;

    if (want == RLX_DIM_UNKNOWN)
        return RLX_OK;
    n = dim_is_static(want) ? 0 : dim_unbound(b->dims, want, b->size, b->count, unbound, 2);
    if (n > 1)
        return RLX_OK; /* waits for another input */
    if (n == 1) {
        if (dim_solve(b->dims, want, got, b->size, b->count, unbound[0], &value))
            return take(b, unbound[0], value, name);
        return diag_fail(b->diag, RLX_ERROR_BINDING,
                         "input \"%.*s\": no size of \"%.*s\" gives axis %d the size %lld",
                         STR_ARG(name), STR_ARG(dim_symbol_name(b->dims, unbound[0])), axis,
                         (long long)got);
    }
    value = dim_is_static(want) ? want : dim_eval(b->dims, want, b->size, b->count, NULL);
    if (value == got)
        return RLX_OK;
    return contradiction(b, want, value, got, axis, name);
}

int64_t session_upper_dim(rlx_session *s, ir_dim dim)
{
    for (size_t i = 0; i < s->symbol_count; i++)
        s->upper[i] = s->bound[i] ? s->bound[i] : s->binding[i];
    return dim_is_static(dim) ? dim
                              : dim_eval(s->model->mod->dims, dim, s->upper, s->symbol_count, NULL);
}

/* All of an input's room at the bounds, where dims say how much of it counts. */
static bool is_upper_shape(struct binder *b, const struct ir_type *t, const rlx_tensor *in)
{
    bool some = false;

    for (int32_t i = 0; i < t->rank; i++) {
        size_t open;
        if (in->dim[i] != session_upper_dim(b->s, t->dim[i]))
            return false;
        some |= !dim_is_static(t->dim[i]);
        if (!dim_is_static(t->dim[i]) &&
            dim_unbound(b->dims, t->dim[i], b->size, b->count, &open, 1))
            return false; /* it is what tells the size */
    }
    return some;
}

static rlx_status match_input(struct binder *b, const rlx_binding *in)
{
    const struct ir_graph *g = ir_entry(b->model->mod);
    rlx_str name = rlx_cstr(in->name);
    bool fits;
    ir_value v;

    if (!ir_find_leaf(g, name, &v) || ir_node(g, v)->op != RLX_OP_input)
        return RLX_OK; /* reported where inputs are taken */
    const struct ir_type *t = ir_type_of(g, v);
    fits = in->tensor.rank == t->rank;
    for (int32_t i = 0; i < t->rank && fits; i++)
        fits = is_free(t->dim[i], in->tensor.dim[i]);
    if (!fits)
        return refuse_shape(b->model, "input", name, t, &in->tensor, b->diag);
    if (b->s && is_upper_shape(b, t, &in->tensor))
        return RLX_OK;
    for (int32_t i = 0; i < t->rank; i++)
        TRY(match_dim(b, t->dim[i], in->tensor.dim[i], i, name));
    return RLX_OK;
}

/* A handle tells what nothing else did: how much of it holds data. */
static rlx_status match_handles(struct binder *b, const rlx_run_desc *run)
{
    const struct ir_graph *g = ir_entry(b->model->mod);

    for (size_t i = 0; b->s && i < b->s->handle_count && !b->progress; i++) {
        const struct handle *h = &b->s->handle[i];
        const struct ir_type *t = ir_type_of(g, h->leaf);
        rlx_str name = ir_leaf_name(ir_node(g, h->leaf));
        bool given = !h->buffer;
        for (size_t k = 0; k < run->input_count; k++)
            given |= str_eq(rlx_cstr(run->inputs[k].name), name);
        for (int32_t a = 0; a < t->rank && !given; a++) {
            size_t open[2];
            if (!dim_is_static(t->dim[a]) &&
                dim_unbound(b->dims, t->dim[a], b->size, b->count, open, 2) == 1)
                TRY(match_dim(b, t->dim[a], h->held.dim[a], a, name));
        }
    }
    return RLX_OK;
}

static rlx_status take_given(struct binder *b, const rlx_run_desc *run)
{
    for (size_t i = 0; i < run->dim_count; i++) {
        size_t symbol;
        const rlx_dim_size *given = &run->dims[i];
        TRY(find_dim(b->dims, given->name, &symbol, b->diag));
        if (given->size < 0)
            return diag_fail(b->diag, RLX_ERROR_ARGUMENT, "dim \"%s\" cannot be %lld", given->name,
                             (long long)given->size);
        TRY(take(b, symbol, given->size, STR("dims")));
    }
    return RLX_OK;
}

/* rows stands for batch * seq unless something else fixed it. Where nothing has such an axis it
 * stays unbound, lest every product asks for a program of its own. */
static rlx_status derive_rows(struct binder *b)
{
    int64_t rows;

    if (!dim_symbol_is_used(b->dims, SYMBOL_ROWS) || b->size[SYMBOL_BATCH] < 0 ||
        b->size[SYMBOL_SEQ] < 0 || b->size[SYMBOL_ROWS] >= 0)
        return RLX_OK;
    if (__builtin_mul_overflow(b->size[SYMBOL_BATCH], b->size[SYMBOL_SEQ], &rows))
        return diag_fail(b->diag, RLX_ERROR_LIMIT, "batch * seq overflows 64 bits");
    return take(b, SYMBOL_ROWS, rows, STR("batch * seq"));
}

static rlx_status bind_all(struct binder *b, const rlx_run_desc *run)
{
    for (size_t i = 0; i < b->count; i++)
        b->size[i] = -1;
    TRY(take_given(b, run));
    do {
        b->progress = false;
        for (size_t i = 0; i < run->input_count; i++)
            TRY(match_input(b, &run->inputs[i]));
        TRY(derive_rows(b));
        if (!b->progress)
            TRY(match_handles(b, run));
    } while (b->progress);
    return RLX_OK;
}

rlx_status session_bind_symbols(struct rlx_session *s, const rlx_run_desc *run, struct diag *d)
{
    struct binder b = {.model = s->model,
                       .s = s,
                       .dims = s->model->mod->dims,
                       .size = s->binding,
                       .count = s->symbol_count,
                       .diag = d};

    return bind_all(&b, run);
}

/* ---- without a session ---- */

static rlx_status bind_shapes(const struct rlx_model *m, const rlx_run_desc *run, int64_t *size,
                              size_t count, struct diag *d)
{
    struct binder b = {.model = m, .dims = m->mod->dims, .size = size, .count = count, .diag = d};

    return bind_all(&b, run);
}

/* Is it part of the shape of an input that something reads? leads: the first axis of one. */
static bool is_of_inputs(const rlx_model *m, size_t symbol, bool *leads)
{
    const struct ir_graph *g = ir_entry(m->mod);
    bool found = false;

    *leads = false;
    IR_EACH(n, g) {
        if (n->op != RLX_OP_input || !model_is_input(m, ir_id(g, n)) || !m->used[ir_id(g, n)])
            continue;
        for (int32_t a = 0; a < n->type.rank; a++) {
            bool uses = !dim_is_static(n->type.dim[a]) && n->type.dim[a] != RLX_DIM_UNKNOWN &&
                        dim_uses(m->mod->dims, n->type.dim[a], symbol);
            found |= uses;
            *leads |= uses && a == 0;
        }
    }
    return found;
}

static rlx_status list_dims(const rlx_model *m, const rlx_run_desc *run, int64_t *size,
                            size_t symbols, rlx_model_dim *out, struct diag *d)
{
    size_t count = 0;

    TRY(bind_shapes(m, run, size, symbols, d));
    for (size_t i = 0; i < symbols; i++) {
        if (!model_uses_dim(m, i))
            continue;
        rlx_model_dim *info = &out[count++];
        *info = (rlx_model_dim){.name = dim_symbol_name(m->mod->dims, i),
                                .size = size[i],
                                .bound = dim_symbol_bound(m->mod->dims, i)};
        info->of_input = is_of_inputs(m, i, &info->leads);
    }
    return RLX_OK;
}

rlx_status binding_of_model(const struct rlx_model *m, const rlx_run_desc *run, rlx_model_dim *out,
                            struct diag *d)
{
    size_t symbols = dim_symbol_count(m->mod->dims), bytes = symbols * sizeof(int64_t);
    int64_t *size = mem_alloc(&m->ctx->mem, bytes);

    if (!size)
        return diag_no_memory(d, bytes);
    rlx_status s = list_dims(m, run, size, symbols, out, d);
    mem_free(&m->ctx->mem, size, bytes);
    return s;
}
