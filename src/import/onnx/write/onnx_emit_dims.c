/* onnx_emit_dims.c: sizes that hold symbols, as nodes that compute them.
 *
 *     [batch*seq, 8]     =>     Concat(Mul(Shape(x)[0:1], Shape(x)[1:2]), const [8])
 *
 * A symbol is read off an input that has an axis of just that size. All of it is written into the
 * outermost graph, once, where graphs within it see it, too. */
#include <string.h>

#include "import/onnx/write/onnx_emit.h"

static rlx_str size_of(struct emit *e, ir_dim d);

static bool is_symbol(const struct dim_table *t, ir_dim d, size_t symbol)
{
    struct dim_atom atom[DIM_MAX_ATOMS];
    size_t atoms;

    return !dim_is_static(d) && dim_term_count(t, d) == 1 &&
           dim_term_at(t, d, 0, atom, &atoms) == 1 && atoms == 1 && atom[0].is_symbol &&
           atom[0].symbol == symbol;
}

static rlx_str symbol_size(struct emit *e, size_t symbol)
{
    const struct dim_table *t = e->w->mod->dims;
    const struct ir_graph *entry = ir_entry(e->w->mod);

    IR_EACH(n, entry) {
        for (int32_t i = 0; n->op == RLX_OP_input && i < n->type.rank; i++) {
            if (!is_symbol(t, n->type.dim[i], symbol))
                continue;
            rlx_str size = emit_1(e, "Shape", ir_leaf_name(n));
            emit_int(e, "start", i);
            emit_int(e, "end", i + 1);
            return size;
        }
    }
    return STR("");
}

static rlx_str atom_size(struct emit *e, const struct dim_atom *a)
{
    if (a->is_symbol)
        return symbol_size(e, a->symbol);
    rlx_str of = size_of(e, a->of);
    return of.len ? emit_2(e, "Div", of, emit_i64(e, a->by)) : of;
}

/* Without its sign; "": it holds a symbol that no input has. */
static rlx_str term_size(struct emit *e, int64_t coef, const struct dim_atom *atom, size_t atoms)
{
    rlx_str product = coef == 1 && atoms ? STR("") : emit_i64(e, coef);

    for (size_t i = 0; i < atoms; i++) {
        rlx_str a = atom_size(e, &atom[i]);
        if (!a.len)
            return a;
        product = product.len ? emit_2(e, "Mul", product, a) : a;
    }
    return product;
}

/* Terms above 0 come first, so that nothing is negative on the way to a size. */
static rlx_str expression_size(struct emit *e, ir_dim d)
{
    const struct dim_table *t = e->w->mod->dims;
    struct dim_atom atom[DIM_MAX_ATOMS];
    size_t atoms;
    rlx_str sum = STR("");

    for (int sign = 1; sign >= -1; sign -= 2) {
        for (size_t i = 0; i < dim_term_count(t, d); i++) {
            int64_t coef = dim_term_at(t, d, i, atom, &atoms);
            if ((coef > 0) != (sign > 0))
                continue;
            rlx_str term = term_size(e, coef * sign, atom, atoms);
            if (!term.len)
                return term;
            sum = sum.len ? emit_2(e, sign > 0 ? "Add" : "Sub", sum, term) : term;
        }
    }
    return sum;
}

static rlx_str size_of(struct emit *e, ir_dim d)
{
    struct onnx_writer *w = e->w;

    if (dim_is_static(d) || d == RLX_DIM_INFER)
        return emit_i64(e, dim_is_static(d) ? d : -1);
    for (size_t i = 0; i < w->dim.len; i++)
        if (w->dim.at[i].dim == d)
            return w->dim.at[i].name;
    rlx_str name = expression_size(e, d);
    if (name.len && vec_room(w->mem, &w->dim))
        w->dim.at[w->dim.len++] = (struct emit_dim){d, name};
    return name;
}

rlx_str emit_dim(struct emit *e, ir_dim d)
{
    struct emit top = {.w = e->w, .to = e->w->top};
    rlx_str size = size_of(&top, d);
    struct text t;

    if (size.len || e->w->no_memory)
        return size;
    text_init(&t, e->w->mem);
    dim_print(e->w->mod->dims, d, &t);
    emit_refuse(e, "no input has an axis that gives the size %s", t.at ? t.at : "?");
    text_free(&t);
    return STR("?");
}

rlx_str emit_dim_sum(struct emit *e, ir_dim a, ir_dim b)
{
    if (dim_is_static(a) && dim_is_static(b))
        return emit_i64(e, a + b);
    return emit_2(e, "Add", emit_dim(e, a), emit_dim(e, b));
}

rlx_str emit_dims(struct emit *e, rlx_list dims)
{
    rlx_str part[RLX_MAX_RANK];
    bool known = true;

    for (int32_t i = 0; i < dims.count; i++)
        known &= dims.at[i] >= 0 || dims.at[i] == RLX_DIM_INFER;
    if (known) {
        for (int32_t i = 0; i < dims.count; i++)
            dims.at[i] = dims.at[i] == RLX_DIM_INFER ? -1 : dims.at[i];
        return emit_i64s(e, dims.at, (size_t)dims.count);
    }
    for (int32_t i = 0; i < dims.count; i++)
        part[i] = emit_dim(e, dims.at[i]);
    return emit_concat(e, part, (size_t)dims.count, 0);
}
