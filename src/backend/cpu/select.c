/* select.c: a node becomes one step that calls one kernel. */
#include "backend/cpu/cpu.h"

#include "base/str.h"
#include "ir/custom.h"

void cpu_tensor_of(const struct ir_type *t, struct cpu_tensor *out)
{
    *out = (struct cpu_tensor){.dtype = t->dtype, .rank = t->rank};
    for (int32_t i = 0; i < t->rank; i++)
        out->dim[i] = t->dim[i];
    type_count(t, &out->count);
}

/* Operand pointers in the order of the step: inputs, output, scratch. The output of an op whose
 * result is its state's own memory has no operand. */
void cpu_load_tensors(struct cpu_work *w, void *const *operand)
{
    int32_t n = w->call.in_count;

    for (int32_t i = 0; i < n; i++)
        w->in[i].data = operand[i];
    if (w->call.op == RLX_OP_cache_append) {
        w->out.data = operand[0];
        return;
    }
    w->out.data = operand[n];
    if (w->has_scratch)
        w->call.scratch = operand[n + 1];
}

static rlx_status run_kernel(struct cpu_work *w, struct diag *d)
{
    (void)d;
    w->kernel->run(&w->call);
    return RLX_OK;
}

static rlx_tensor tensor_view(const struct cpu_tensor *t)
{
    rlx_tensor v = {.dtype = t->dtype, .rank = t->rank, .data = t->data};

    for (int32_t i = 0; i < t->rank; i++)
        v.dim[i] = t->dim[i];
    v.bytes = (size_t)t->count * rlx_dtype_size(t->dtype);
    return v;
}

#define FEW_INPUTS 32

static rlx_status run_custom(struct cpu_work *w, struct diag *d)
{
    rlx_tensor in[FEW_INPUTS], out = tensor_view(&w->out);
    const struct ir_blob *attrs = &w->call.attr->custom.attrs;

    for (int32_t i = 0; i < w->call.in_count; i++)
        in[i] = tensor_view(&w->in[i]);
    rlx_status s =
        w->custom->cpu(w->custom->user, in, w->call.in_count, attrs->ptr, attrs->len, &out);
    if (s != RLX_OK)
        return diag_fail(d, s, "custom op \"%s\" failed: %s", w->custom->name, rlx_status_text(s));
    return RLX_OK;
}

rlx_status cpu_new_work(struct cpu_device *dev, struct select_call *c, struct cpu_work **out)
{
    const struct ir_node *n = c->node;
    struct cpu_work *w = arena_new(c->arena, struct cpu_work);
    struct cpu_tensor *in = arena_array(c->arena, struct cpu_tensor, (size_t)n->in_count);

    if (!w || !in)
        return diag_no_memory(c->diag, sizeof *w);
    for (int32_t i = 0; i < n->in_count; i++)
        cpu_tensor_of(ir_type_of(c->graph, n->in[i]), &in[i]);
    cpu_tensor_of(&n->type, &w->out);
    w->in = in;
    w->load = cpu_load_tensors;
    w->call = (struct cpu_call){
        .op = n->op,
        .attr = &n->attr,
        .in_count = n->in_count,
        .in = in,
        .out = &w->out,
        .pool = dev->pool,
        .fault = &w->fault,
        .check_indices = c->options->check_indices,
    };
    *out = w;
    return RLX_OK;
}

/* Overwriting an input is safe only if it has the output's exact shape: a broadcast one is read
 * more than once. */
static bool may_overwrite(const struct cpu_work *w, int32_t i, uint32_t in_place)
{
    const struct cpu_tensor *a = &w->in[i], *b = &w->out;

    if (i >= 32 || !(in_place >> i & 1) || a->rank != b->rank ||
        rlx_dtype_size(a->dtype) != rlx_dtype_size(b->dtype))
        return false;
    for (int32_t k = 0; k < a->rank; k++)
        if (a->dim[k] != b->dim[k])
            return false;
    return true;
}

rlx_status cpu_emit(struct select_call *c, struct cpu_work *w, uint32_t in_place, uint64_t scratch)
{
    const struct ir_node *n = c->node;
    ir_value state = op_is(n->op, OP_WRITES) ? ir_written_state(c->graph, n) : RLX_NO_VALUE;

    TRY(select_step(c, op_info(n->op)->name, w));
    for (int32_t i = 0; i < n->in_count; i++) {
        if (n->in[i] == state)
            TRY(select_update(c, n->in[i]));
        else
            TRY(select_read(c, n->in[i], may_overwrite(w, i, in_place)));
    }
    if (n->op != RLX_OP_cache_append)
        TRY(select_write(c, c->id));
    if (scratch) {
        w->has_scratch = true;
        TRY(select_scratch(c, scratch));
    }
    return RLX_OK;
}

static rlx_status select_custom(struct cpu_device *dev, struct select_call *c)
{
    struct cpu_work *w;
    rlx_str name = {c->node->attr.custom.name.ptr, c->node->attr.custom.name.len};
    const rlx_custom_op *op = custom_find(c->graph->mod->customs, name);

    if (!op || !op->cpu)
        return diag_fail(c->diag, RLX_ERROR_UNSUPPORTED,
                         "custom op \"%.*s\" has no CPU function; give one to rlx_custom_op.cpu",
                         STR_ARG(name));
    if (c->node->in_count > FEW_INPUTS)
        return diag_fail(c->diag, RLX_ERROR_LIMIT,
                         "custom op \"%.*s\" has %d inputs, at most %d fit", STR_ARG(name),
                         c->node->in_count, FEW_INPUTS);
    TRY(cpu_new_work(dev, c, &w));
    w->run = run_custom;
    w->custom = op;
    return cpu_emit(c, w, 0, 0);
}

rlx_status cpu_select(struct backend *b, struct select_call *c)
{
    struct cpu_device *dev = cpu_device_of(b);
    enum op_family family = op_info(c->node->op)->family;
    const struct cpu_kernel *k = dev->kernels->family[family];
    struct cpu_work *w;

    if (family == FAMILY_custom)
        return select_custom(dev, c);
    if (family == FAMILY_if_ || family == FAMILY_while_ || family == FAMILY_scan ||
        family == FAMILY_scan_backward)
        return cpu_select_control(dev, c);
    if (!k)
        return diag_fail(c->diag, RLX_ERROR_UNSUPPORTED, "the CPU has no kernel for %s (node %d)",
                         op_info(c->node->op)->name, c->id);
    TRY(cpu_new_work(dev, c, &w));
    w->run = run_kernel;
    w->kernel = k;
    return cpu_emit(c, w, k->in_place, k->scratch ? k->scratch(&w->call) : 0);
}
