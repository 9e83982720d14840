/* undo_moves.c: what a static part did to a param, undone one node after the other.
 *
 *     param %q: f32[k,a], param %k: f32[k,b]        input %made: f32[a+b,k]
 *     %j = concat %q, %k axis=1                     %j = transpose %made perm=[1,0]
 *     %made = transpose %j perm=[1,0]               %k = narrow %j axis=1 start=a len=b
 */
#include "model/undo_moves.h"

#include "base/str.h"
#include "ir/formula.h"
#include "pass/pass.h"
#include "run/program.h"

static const char made_name[] = "made";

static bool only_moves(const struct ir_node *n)
{
    return n->op == RLX_OP_concat || n->op == RLX_OP_transpose || n->op == RLX_OP_reshape;
}

/* By node: is it the param, or made of it by moving elements alone? */
static void mark(const struct ir_graph *part, ir_value param, bool *has)
{
    IR_EACH(n, part) {
        ir_value v = ir_id(part, n);
        has[v] = v == param;
        for (int32_t i = 0; only_moves(n) && i < n->in_count; i++)
            has[v] = has[v] || has[n->in[i]];
    }
}

static ir_value untranspose(struct formula *f, const struct ir_node *n, ir_value now)
{
    rlx_list back = n->attr.transpose.perm;

    for (int32_t i = 0; i < back.count; i++)
        back.at[n->attr.transpose.perm.at[i]] = i;
    return formula_transpose(f, now, back);
}

/* The operand of n that has the param, out of n's value. */
static ir_value step_back(struct formula *f, const struct ir_graph *part, const struct ir_node *n,
                          const bool *has, ir_value now, ir_value *operand)
{
    int32_t which = 0;
    ir_dim before = 0;
    int64_t axis = n->op == RLX_OP_concat ? n->attr.concat.axis : 0;

    for (; !has[n->in[which]]; which++)
        before += ir_type_of(part, n->in[which])->dim[axis];
    *operand = n->in[which];
    const struct ir_type *type = ir_type_of(part, *operand);
    if (n->op == RLX_OP_transpose)
        return untranspose(f, n, now);
    if (n->op == RLX_OP_reshape)
        return formula_reshape(f, now, formula_shape(type));
    return formula_narrow(f, now, axis, before, type->dim[axis]);
}

static rlx_status write_way(struct ir_module *mod, const struct ir_graph *part, ir_value made,
                            ir_value param, const bool *has, struct diag *d)
{
    struct ir_graph *g;
    const struct ir_type *type = ir_type_of(part, made);
    struct ir_new_node leaf = {.op = RLX_OP_input};
    ir_value now;

    TRY(ir_graph_add(mod, STR("undo"), &g, d));
    attr_defaults(RLX_OP_input, &leaf.attr);
    leaf.attr.leaf.name = (struct ir_blob){made_name, sizeof made_name - 1};
    leaf.attr.leaf.dtype = type->dtype;
    leaf.attr.leaf.shape = formula_shape(type);
    TRY(ir_add(g, &leaf, &now, d));
    struct formula f = {.g = g, .diag = d, .dtype = type->dtype};
    while (made != param && f.status == RLX_OK)
        now = step_back(&f, part, ir_node(part, made), has, now, &made);
    TRY(f.status);
    return ir_add_output(g, now, d);
}

rlx_status undo_moves_find(const struct ir_graph *part, ir_value made, ir_value param,
                           const struct target *t, const rlx_allocator *mem, struct ir_module **out,
                           struct diag *d)
{
    static const struct pass_options only_required = {.no_optimize = true};
    struct ir_module *mod = NULL;
    bool *has = mem_alloc(mem, part->node.len);
    rlx_status status = has ? RLX_OK : diag_no_memory(d, part->node.len);

    *out = NULL;
    if (has)
        mark(part, param, has);
    if (has && has[made]) {
        status = ir_module_create(mem, &mod, d);
        if (status == RLX_OK)
            status = write_way(mod, part, made, param, has, d);
        if (status == RLX_OK)
            status = pass_all(mod, t, &only_required, d);
    }
    mem_free(mem, has, part->node.len);
    if (status == RLX_OK)
        *out = mod;
    else
        ir_module_destroy(mod);
    return status;
}

static rlx_status go(struct program *p, const void *from, void *to, struct diag *d)
{
    const struct program_slot *in = &p->input[0], *out = &p->output[0];
    struct run_report report;
    int64_t from_count = 0, to_count = 0;

    type_count(&in->type, &from_count);
    type_count(&out->type, &to_count);
    TRY(program_load(p, p->size, d));
    TRY(program_write(p, in, in->type.dtype, from, (size_t)from_count, d));
    TRY(backend_run(p->backend, p->command, p->command_count, NULL, &report, d));
    return program_read(p, out, out->type.dtype, to, (size_t)to_count, d);
}

rlx_status undo_moves_run(const struct ir_module *undo, struct backend *b, const rlx_allocator *mem,
                          const void *from, void *to, struct diag *d)
{
    struct target target;
    struct ir_module *mod;
    struct program *p;
    ir_value leaf = 0;

    b->ops->describe(b, &target);
    ir_find_leaf(ir_entry(undo), rlx_cstr(made_name), &leaf);
    const struct program_slot in = {rlx_cstr(made_name), *ir_type_of(ir_entry(undo), leaf), leaf};
    const struct program_desc desc = {
        .backend = b, .mem = mem, .plan = {.align = target.alignment}};
    TRY(ir_module_copy(undo, mem, &mod, d));
    TRY(program_create(&desc, mod, NULL, &in, 1, &p, d));
    rlx_status status = go(p, from, to, d);
    program_destroy(p);
    return status;
}
