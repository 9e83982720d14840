/* fold_eval.c: a graph of one node and its constants, compiled and run like any other. */
#include "compile/fold_eval.h"

#include "base/str.h"
#include "pass/pass.h"
#include "run/program.h"

void fold_eval_init(struct fold_eval *f, const rlx_allocator *mem, struct backend *device)
{
    bool is_cpu = device && device->ops == backend_find(STR("cpu"));

    *f = (struct fold_eval){.mem = mem, .cpu = is_cpu ? device : NULL};
}

void fold_eval_free(struct fold_eval *f)
{
    if (f->own)
        f->cpu->ops->close(f->cpu);
    *f = (struct fold_eval){.mem = f->mem};
}

static rlx_status open_cpu(struct fold_eval *f, struct diag *d)
{
    const struct device_desc desc = {.mem = f->mem, .threads = 1};

    if (f->cpu)
        return RLX_OK;
    TRY(backend_find(STR("cpu"))->open(&desc, &f->cpu, d));
    f->own = true;
    return RLX_OK;
}

static rlx_status add_const(struct ir_graph *g, const struct ir_node *like, const void *data,
                            ir_value *out, struct diag *d)
{
    struct ir_new_node c = {.op = RLX_OP_const, .attr = like->attr, .borrow_data = true};

    c.attr.const_.data.ptr = data;
    return ir_add(g, &c, out, d);
}

static rlx_status add_node(struct ir_module *mod, const struct ir_graph *from,
                           const struct ir_node *n, const void *const *data, struct diag *d)
{
    struct ir_new_node copy = {
        .op = n->op, .in_count = n->in_count, .attr = n->attr, .borrow_data = true};
    ir_value *in = arena_array(&mod->arena, ir_value, (size_t)n->in_count), v;
    struct ir_graph *g;

    if (!in)
        return diag_no_memory(d, (size_t)n->in_count * sizeof *in);
    TRY(ir_graph_add(mod, STR("fold"), &g, d));
    for (int32_t k = 0; k < n->in_count; k++)
        TRY(add_const(g, ir_node(from, n->in[k]), data[k], &in[k], d));
    copy.in = in;
    TRY(ir_add(g, &copy, &v, d));
    return ir_add_output(g, v, d);
}

static rlx_status run_program(struct program *p, const struct ir_node *n, void *out, struct diag *d)
{
    struct run_report report = {.step = -1};
    int64_t count;

    TRY(program_load(p, p->size, d));
    TRY(backend_run(p->backend, p->command, p->command_count, NULL, &report, d));
    if (report.step >= 0)
        return diag_fail(d, RLX_ERROR_INDEX, "an index is out of range");
    if (!type_count(&n->type, &count) || !type_same(&n->type, &p->output[0].type))
        return diag_fail(d, RLX_ERROR_INTERNAL, "the folded node has another type");
    return program_read(p, &p->output[0], n->type.dtype, out, (size_t)count, d);
}

rlx_status fold_eval_node(void *user, const struct ir_graph *g, const struct ir_node *n,
                          const void *const *in, void *out, struct diag *d)
{
    struct fold_eval *f = user;
    static const struct pass_options only_required = {.no_optimize = true};
    struct ir_module *mod;
    struct program *p = NULL;
    struct target target;

    TRY(open_cpu(f, d));
    TRY(ir_module_create(f->mem, &mod, d));
    f->cpu->ops->describe(f->cpu, &target);
    rlx_status s = add_node(mod, g, n, in, d);
    if (s == RLX_OK)
        s = pass_all(mod, &target, &only_required, d);
    if (s != RLX_OK) {
        ir_module_destroy(mod);
        return s;
    }
    const struct program_desc desc = {.backend = f->cpu,
                                      .mem = f->mem,
                                      .plan = {.align = target.alignment},
                                      .select = {.check_indices = true}};
    TRY(program_create(&desc, mod, NULL, NULL, 0, &p, d));
    s = run_program(p, n, out, d);
    program_destroy(p);
    return s;
}
