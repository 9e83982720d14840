/* cpu_select.c: a node becomes one step that calls one kernel. */
#include "backend/cpu/cpu.h"

#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "ir/custom.h"

void cpu_tensor_of(const struct ir_type *t, struct cpu_tensor *out)
{
    *out = (struct cpu_tensor){.dtype = t->dtype, .rank = t->rank};
    for (int32_t i = 0; i < t->rank; i++)
        out->dim[i] = t->dim[i];
    type_count(t, &out->count);
}

static void take_sizes(struct cpu_work *w)
{
    for (int32_t i = 0; i < w->call.in_count; i++)
        cpu_tensor_of(ir_type_of(w->graph, w->read[i]), &w->in[i]);
    cpu_tensor_of(ir_type_of(w->graph, w->node), &w->out);
    if (w->call.also)
        cpu_tensor_of(ir_type_of(w->graph, w->with), &w->also);
}

/* Slots may be aligned less strictly than kernels need their scratch and tables. Those are then
 * planned with room to spare, and begin where CPU_ALIGN allows. */
static uint64_t with_slack(const struct select_call *c, uint64_t bytes)
{
    return c->options->slot_align ? bytes + CPU_ALIGN - c->options->slot_align : bytes;
}

static void *align_up(void *p)
{
    return (uint8_t *)p + (-(uintptr_t)p & (CPU_ALIGN - 1));
}

const uint8_t cpu_nothing[CPU_ALIGN] __attribute__((aligned(CPU_ALIGN)));

/* Operand pointers in the order of the step. The output of an op whose result is its state's own
 * memory has no operand. */
void cpu_load_tensors(struct cpu_work *w, void *const *operand)
{
    int32_t n = w->call.in_count, at = n;

    take_sizes(w);
    for (int32_t i = 0; i < n; i++)
        w->in[i].data = operand[i];
    w->out.data = operand[w->call.op == RLX_OP_cache_append ? 0 : at++];
    if (w->call.also)
        w->also.data = operand[at++];
    if (w->scratch_bytes)
        w->call.scratch = align_up(operand[at++]);
    if (w->table_bytes)
        w->call.table = align_up(operand[at++]);
    for (int32_t i = 0; i < w->packed_count; i++)
        w->in[w->packed[i]].packed = operand[at++];
}

static rlx_status need_room(const struct cpu_work *w, const char *what, uint64_t need,
                            uint64_t planned, struct diag *d)
{
    if (need <= planned)
        return RLX_OK;
    return diag_fail(
        d, RLX_ERROR_LIMIT, "%s needs %llu bytes of %s for these sizes, %llu were planned",
        op_info(w->call.op)->name, (unsigned long long)need, what, (unsigned long long)planned);
}

static rlx_status load_kernel(struct cpu_work *w, void *const *operand, struct diag *d)
{
    const struct cpu_kernel *k = w->kernel;

    cpu_load_tensors(w, operand);
    TRY(need_room(w, "scratch", k->scratch ? k->scratch(&w->call) : 0, w->scratch_bytes, d));
    TRY(need_room(w, "tables", k->table_size ? k->table_size(&w->call) : 0, w->table_bytes, d));
    if (w->table_bytes)
        k->make_table(&w->call, w->call.table);
    return RLX_OK;
}

/* A custom op's other results follow one another in the scratch. */
static uint64_t place_results(struct cpu_work *w)
{
    int64_t own = w->call.attr->custom.result;
    uint64_t at = 0;

    for (int32_t i = 0; i < custom_results(w->custom); i++) {
        rlx_tensor *t = &w->results[i];
        if (i == own) {
            t->data = w->out.data;
            continue;
        }
        t->data = w->call.scratch ? (uint8_t *)w->call.scratch + at : NULL;
        at += (t->bytes + CPU_ALIGN - 1) / CPU_ALIGN * CPU_ALIGN;
    }
    return at;
}

static rlx_status load_custom(struct cpu_work *w, void *const *operand, struct diag *d)
{
    (void)d;
    cpu_load_tensors(w, operand);
    place_results(w);
    return RLX_OK;
}

static rlx_status check_values(struct cpu_work *w, struct diag *d)
{
    const struct ir_node *n = ir_node(w->graph, w->node);

    diag_at(d, op_info(n->op)->name, w->node, n->label);
    TRY(w->kernel->check(&w->call, d));
    diag_at(d, NULL, -1, (rlx_str){NULL, 0});
    return RLX_OK;
}

static rlx_status run_kernel(struct cpu_work *w, struct diag *d)
{
    if (w->kernel->check)
        TRY(check_values(w, d));
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
    rlx_tensor in[FEW_INPUTS], out[CUSTOM_RESULTS];
    const struct ir_blob *attrs = &w->call.attr->custom.attrs;

    for (int32_t i = 0; i < w->call.in_count; i++)
        in[i] = tensor_view(&w->in[i]);
    memcpy(out, w->results, sizeof out); /* it may write into what it is given */
    rlx_status s =
        w->custom->cpu(w->custom->user, in, w->call.in_count, attrs->ptr, attrs->len, out);
    return s == RLX_OK ? RLX_OK : custom_failed(w->custom, "cpu", s, NULL, d);
}

rlx_status cpu_new_work(struct cpu_device *dev, struct select_call *c, struct cpu_work **out)
{
    const struct ir_node *n = c->node;
    enum joint joint = c->joints->as[c->id];
    bool tee = joint == JOINT_TEE;
    int32_t in_count = n->in_count + tee;
    struct cpu_work *w = arena_new(c->arena, struct cpu_work);
    struct cpu_tensor *in = arena_array(c->arena, struct cpu_tensor, (size_t)in_count);
    const ir_value *read = tee ? joint_tee_operands(c->graph, n, c->arena) : n->in;

    if (!w || !in || (tee && !read))
        return diag_no_memory(c->diag, sizeof *w);
    w->graph = c->graph;
    w->node = c->id;
    w->with = c->joints->with[c->id];
    w->in = in;
    w->read = read;
    w->joint = joint;
    w->call = (struct cpu_call){
        .op = n->op,
        .attr = &n->attr,
        .in_count = in_count,
        .in = in,
        .out = &w->out,
        .also = joint_writes_both(joint) ? &w->also : NULL,
        .thirds = joint == JOINT_SPLIT,
        .pool = dev->pool,
        .fault = &w->fault,
        .check_indices = c->options->check_indices,
    };
    take_sizes(w);
    *out = w;
    return RLX_OK;
}

rlx_status cpu_emit(struct select_call *c, struct cpu_work *w, uint32_t in_place, uint64_t scratch)
{
    const char *name = joint_step_name(w->joint);

    if (name)
        TRY(select_joint(c, name, w->read, w->call.in_count, w));
    else
        TRY(select_node(c, w, in_place));
    if (scratch) {
        w->scratch_bytes = scratch;
        TRY(select_scratch(c, with_slack(c, scratch)));
    }
    return RLX_OK;
}

static rlx_status select_custom(struct cpu_device *dev, struct select_call *c)
{
    rlx_tensor in[FEW_INPUTS];
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
    w->load = load_custom;
    w->custom = op;
    w->results = arena_array(c->arena, rlx_tensor, CUSTOM_RESULTS);
    if (!w->results)
        return diag_no_memory(c->diag, CUSTOM_RESULTS * sizeof *w->results);
    for (int32_t i = 0; i < w->call.in_count; i++)
        in[i] = tensor_view(&w->in[i]);
    TRY(custom_infer(op, in, w->call.in_count, &c->node->attr.custom.attrs, w->results, c->diag));
    return cpu_emit(c, w, 0, place_results(w));
}

/* ---- packed weights ---- */

/* The same in every run, and of one size: a symbolic weight would need a copy per size. */
static bool is_weight(const struct select_call *c, ir_value v)
{
    rlx_op op = ir_node(c->graph, v)->op;

    return (op == RLX_OP_param || op == RLX_OP_const) &&
           (!c->symbolic || type_is_static(ir_type_of(c->symbolic, v)));
}

/* Which inputs the kernel asks for copies of. While it is asked about scratch, such an input has
 * something that is not NULL in `packed`. */
static int32_t choose_packed(struct select_call *c, struct cpu_work *w, struct cpu_pack *out)
{
    int32_t count = 0;

    if (!c->options->pack_weights || !w->kernel->pack_size)
        return 0;
    for (int32_t i = 0; i < c->node->in_count && count < CPU_MAX_PACKED; i++) {
        if (!is_weight(c, c->node->in[i]))
            continue;
        struct cpu_pack p = w->kernel->pack_size(&w->call, i);
        if (p.bytes == 0 || (c->options->max_buffer && p.bytes > c->options->max_buffer))
            continue;
        w->in[i].packed = w;
        w->packed[count] = i;
        out[count++] = p;
    }
    return count;
}

/* A copy is for the kernels of one level and one element type. */
static uint64_t layout_of(const struct cpu_device *dev, const struct cpu_work *w, int32_t i,
                          uint64_t layout)
{
    return hash_bytes(dev->kernels->isa, strlen(dev->kernels->isa)) ^
           (layout * 1000003 + (uint64_t)op_info(w->call.op)->family * 64 +
            (uint64_t)w->in[i].dtype);
}

static rlx_status select_copy(struct cpu_device *dev, struct select_call *c,
                              const struct cpu_work *w, int32_t operand, const struct cpu_pack *p)
{
    const struct packing what = {
        .source = c->node->in[operand],
        .operand = operand,
        .layout = layout_of(dev, w, operand, p->layout),
        .alone = p->alone,
        .form = {p->whole, (uint32_t)op_info(w->call.op)->family, p->layout}};

    return select_packed(c, &what, p->bytes);
}

/* ---- scratch and tables ---- */

typedef uint64_t (*bytes_fn)(const struct cpu_call *c);

/* What the kernel asks for at one probe; the packed marks stay. */
static uint64_t bytes_at(struct select_call *c, struct cpu_work *w, bytes_fn bytes, size_t probe)
{
    struct ir_type t;

    for (int32_t i = 0; i < w->call.in_count; i++) {
        const void *packed = w->in[i].packed;
        if (!select_type_at(c, w->read[i], probe, &t))
            return 0;
        cpu_tensor_of(&t, &w->in[i]);
        w->in[i].packed = packed;
    }
    if (!select_type_at(c, c->id, probe, &t))
        return 0;
    cpu_tensor_of(&t, &w->out);
    return bytes(&w->call);
}

/* The most it may need, whatever the sizes of a run turn out to be. */
static uint64_t most_bytes(struct select_call *c, struct cpu_work *w, bytes_fn bytes)
{
    uint64_t most = bytes ? bytes(&w->call) : 0;

    if (!bytes || !c->symbolic || !c->probes)
        return most;
    for (size_t i = 0; i < c->probes->count; i++) {
        uint64_t need = bytes_at(c, w, bytes, i);
        most = need > most ? need : most;
    }
    take_sizes(w);
    return most;
}

/* Has an operand or the result a size that runs choose? */
static bool may_shrink(const struct select_call *c)
{
    if (!c->symbolic)
        return false;
    for (int32_t i = 0; i < c->node->in_count; i++)
        if (!type_is_static(ir_type_of(c->symbolic, c->node->in[i])))
            return true;
    return !type_is_static(ir_type_of(c->symbolic, c->id));
}

/* The kernel of a tee has rows along the last axis. */
static bool can_tee(const struct ir_node *n)
{
    int64_t axis = n->op == RLX_OP_layer_norm ? n->attr.layer_norm.axis : n->attr.rms_norm.axis;

    return axis == n->type.rank - 1;
}

bool cpu_joins(struct backend *b, enum joint kind, const struct ir_graph *g, ir_value v)
{
    (void)b;
    switch (kind) {
    case JOINT_SPLIT:
    case JOINT_LAYER: return true;
    case JOINT_TEE: return can_tee(ir_node(g, v));
    default: return false;
    }
}

static enum op_family family_of(const struct select_call *c)
{
    bool tee = c->joints->as[c->id] == JOINT_TEE;

    return tee ? FAMILY_fused_residual_norm : op_info(c->node->op)->family;
}

rlx_status cpu_select(struct backend *b, struct select_call *c)
{
    struct cpu_device *dev = cpu_device_of(b);
    enum op_family family = family_of(c);
    const struct cpu_kernel *k = dev->kernels->family[family];
    struct cpu_pack pack[CPU_MAX_PACKED] = {{0}};
    struct cpu_work *w;

    if (family == FAMILY_custom)
        return select_custom(dev, c);
    if (op_has_trait(c->node->op, RUNS_GRAPHS))
        return cpu_select_control(dev, c);
    if (!k)
        return diag_fail(c->diag, RLX_ERROR_UNSUPPORTED, "the CPU has no kernel for %s (node %d)",
                         op_info(c->node->op)->name, c->id);
    TRY(cpu_new_work(dev, c, &w));
    w->run = run_kernel;
    w->load = load_kernel;
    w->kernel = k;
    w->packed_count = choose_packed(c, w, pack);
    w->call.bounded = may_shrink(c);
    TRY(cpu_emit(c, w, k->in_place, most_bytes(c, w, k->scratch)));
    w->table_bytes = most_bytes(c, w, k->table_size);
    if (w->table_bytes)
        TRY(select_table(c, with_slack(c, w->table_bytes)));
    for (int32_t i = 0; i < w->packed_count; i++)
        TRY(select_copy(dev, c, w, w->packed[i], &pack[i]));
    return RLX_OK;
}
