/* onnx_counted.c: results that are as large as the data says (ir/cut.h). What a handler gave with a
 * count becomes a leaf of the graph, with a symbol for its size. */
#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "import/onnx/read/onnx_scope.h"

/* A bound is worth its memory only where it is small; above it programs are made for each size. */
#define MAX_BOUND 4096

void onnx_give_counted(struct onnx_call *c, size_t i, ir_value padded, int32_t axis, ir_value count)
{
    onnx_give(c, i, padded);
    if (i >= c->out_count || onnx_failed(c))
        return;
    c->out[i].is_counted = true;
    c->out[i].count = count;
    c->out[i].count_axis = axis;
}

/* "nonzero_1": the op, and a number that makes it one that nothing has. */
static rlx_str free_symbol(struct onnx_call *c)
{
    struct dim_table *dims = onnx_dims(c);
    char *op = (char *)arena_str(onnx_arena(c), c->node->op).ptr;
    size_t unused;

    for (char *p = op; p && *p; p++)
        *p = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '_';
    for (int number = 1; op; number++) {
        const char *name = arena_printf(onnx_arena(c), "%s_%d", op, number);
        if (!name)
            break;
        if (!dim_find_symbol(dims, rlx_cstr(name), &unused))
            return rlx_cstr(name);
    }
    return (rlx_str){0};
}

/* The cut's symbol: the one that already has this count, or a new one. */
static ir_dim symbol_of(struct onnx_call *c, struct ir_cut *cut)
{
    rlx_str name = {0};

    for (size_t i = 0; i < c->im->out->cut.len; i++)
        if (c->im->out->cut.at[i].count == cut->count)
            name = dim_symbol_name(onnx_dims(c), c->im->out->cut.at[i].symbol);
    if (!name.len)
        name = free_symbol(c);
    ir_dim d = name.len ? dim_symbol(onnx_dims(c), name) : RLX_DIM_FAILED;
    if (d == RLX_DIM_FAILED || !dim_find_symbol(onnx_dims(c), name, &cut->symbol)) {
        c->f.status = diag_no_memory(c->f.diag, 0);
        return 0;
    }
    return d;
}

static void add_cut(struct onnx_call *c, const struct ir_cut *cut)
{
    struct onnx_imported *out = c->im->out;

    if (onnx_failed(c))
        return;
    if (out->cut.len >= MAX_CUTS)
        formula_fail(&c->f, RLX_ERROR_LIMIT, "more than %d sizes depend on data", MAX_CUTS);
    else if (!vec_room(c->im->mem, &out->cut))
        c->f.status = diag_no_memory(c->f.diag, sizeof *cut);
    else
        out->cut.at[out->cut.len++] = *cut;
}

static bool may_cut(struct onnx_call *c)
{
    if (!onnx_failed(c) && c->f.g->id != 0)
        onnx_unsupported(c, "a size that depends on data, in a body that is not part of the graph");
    return !onnx_failed(c);
}

ir_dim onnx_counted_dim(struct onnx_call *c, ir_value count)
{
    struct ir_cut cut = {.count = count, .padded = RLX_NO_VALUE, .leaf = RLX_NO_VALUE};

    if (!may_cut(c))
        return 0;
    ir_dim d = symbol_of(c, &cut);
    add_cut(c, &cut);
    return d;
}

/* Called after the output, or after its size where that has no name. */
static rlx_str leaf_name(struct onnx_call *c, size_t i, const struct ir_cut *cut)
{
    rlx_str name = c->node->output.at[i];
    ir_value unused;

    if (!str_is_utf8(name))
        name = dim_symbol_name(onnx_dims(c), cut->symbol);
    while (name.ptr && ir_find_leaf(c->f.g, name, &unused))
        name = rlx_cstr(arena_printf(onnx_arena(c), "%.*s_", STR_ARG(name)));
    return name;
}

static rlx_status cut_output(struct onnx_call *c, size_t i)
{
    struct onnx_value *v = &c->out[i];
    struct ir_cut cut = {.count = v->count, .padded = v->node, .axis = v->count_axis};
    struct ir_type t = v->type;
    union ir_attr attr;

    if (!may_cut(c))
        return c->f.status;
    ir_dim room = t.dim[cut.axis];
    t.dim[cut.axis] = symbol_of(c, &cut);
    TRY(c->f.status);
    if (dim_is_static(room) && room >= 1 && room <= MAX_BOUND)
        dim_set_bound(onnx_dims(c), cut.symbol, room);
    rlx_str name = leaf_name(c, i, &cut);
    if (!name.ptr)
        return diag_no_memory(c->f.diag, 32);
    attr_defaults(RLX_OP_input, &attr);
    attr.leaf.name = (struct ir_blob){name.ptr, name.len};
    attr.leaf.dtype = t.dtype;
    attr.leaf.shape = formula_shape(&t);
    cut.leaf = formula_node(&c->f, RLX_OP_input, NULL, 0, &attr);
    add_cut(c, &cut);
    v->is_counted = false;
    onnx_give(c, i, cut.leaf);
    return c->f.status;
}

rlx_status onnx_cut_outputs(struct onnx_call *c)
{
    for (size_t i = 0; i < c->out_count; i++)
        if (c->out[i].is_counted && c->node->output.at[i].len)
            TRY(cut_output(c, i));
    return RLX_OK;
}
