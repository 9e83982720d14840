/* program.c: steps and plan become memory and commands; slots are written and read. */
#include "run/program.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "pass/facts.h"
#include "plan/segments.h"
#include "run/convert.h"
#include "run/prepare.h"

/* Where the leaves lie, for the lowering. */
struct places {
    uint64_t *offset; /* by node */
    bool *is_outside;
    struct buffer **outside;
};

static rlx_status place_leaves(const struct program_desc *desc, struct program *p,
                               struct places *out, struct diag *d)
{
    const struct ir_graph *g = ir_entry(p->mod);

    out->offset = arena_array(&p->arena, uint64_t, g->node.len);
    out->is_outside = arena_array(&p->arena, bool, g->node.len);
    out->outside = arena_array(&p->arena, struct buffer *, g->node.len);
    if (!out->offset || !out->is_outside || !out->outside)
        return diag_no_memory(d, g->node.len * sizeof *out->offset);
    IR_EACH(n, g) {
        struct leaf_place place = {0};
        ir_value v = ir_id(g, n);
        if (!op_is(n->op, OP_LEAF) || n->op == RLX_OP_const)
            continue;
        if (desc->place_leaf)
            desc->place_leaf(desc->user, n, &place);
        out->offset[v] = place.offset;
        out->outside[v] = place.outside;
        out->is_outside[v] = place.is_outside;
    }
    return RLX_OK;
}

/* The node that a value belongs to: its own, or the one whose step works in it. */
static const struct ir_node *node_of(const struct program *p, size_t value)
{
    const struct steps *s = p->steps;
    int32_t node = s->value[value].node;

    for (size_t i = 0; i < s->step_count && node < 0; i++)
        for (uint32_t k = s->step[i].first; k < s->step[i].first + s->step[i].count; k++)
            if (s->operand[k].value == (int32_t)value)
                node = s->step[i].node;
    return node >= 0 ? ir_node(ir_entry(p->mod), node) : NULL;
}

static void blame(const struct program *p, const struct ir_node *n, struct diag *d)
{
    if (n)
        diag_at(d, op_info(n->op)->name, ir_id(ir_entry(p->mod), n), n->label);
}

/* A region can be cut between values, but not within one. */
static rlx_status check_sizes(const struct program *p, const struct plan_options *o, struct diag *d)
{
    const struct steps *s = p->steps;
    uint64_t segment;

    TRY(segment_size(o->max_buffer, o->align ? o->align : PLAN_ALIGN, &segment, d));
    for (size_t i = 0; segment && i < s->value_count; i++) {
        const struct value *v = &s->value[i];
        if ((v->region != REGION_ACTS && v->region != REGION_CONSTS) || v->root != (int32_t)i ||
            v->bytes <= segment)
            continue;
        const struct ir_node *n = node_of(p, i);
        const char *op = n ? op_info(n->op)->name : "a step";
        char what[64];
        blame(p, n, d);
        snprintf(what, sizeof what, "%s%s", v->flags & VALUE_SCRATCH ? "scratch of " : "", op);
        return memory_too_large(what, n ? n->label : STR(""), v->bytes, segment, d);
    }
    return RLX_OK;
}

/* When there is no room, the message names the largest value: changing that one helps most. */
static rlx_status name_largest(const struct program *p, rlx_status status, const struct diag *why,
                               struct diag *d)
{
    const struct steps *s = p->steps;
    size_t most = s->value_count;

    for (size_t i = 0; i < s->value_count; i++) {
        const struct value *v = &s->value[i];
        if ((v->region == REGION_ACTS || v->region == REGION_CONSTS) &&
            (most == s->value_count || v->bytes > s->value[most].bytes))
            most = i;
    }
    const struct ir_node *n = most < s->value_count ? node_of(p, most) : NULL;
    if (!n)
        return diag_fail(d, status, "%s", why->first.message);
    blame(p, n, d);
    return diag_fail(d, status,
                     "%s, for activations and constants; the largest is %s %%%.*s, %llu bytes",
                     why->first.message, op_info(n->op)->name, STR_ARG(n->label),
                     (unsigned long long)s->value[most].bytes);
}

/* How much each buffer of a region holds. */
struct sizes {
    uint64_t *bytes;
    size_t count;
};

static rlx_status find_sizes(struct program *p, enum region region, struct sizes *out,
                             uint64_t *sum, struct diag *d)
{
    TRY(segment_bytes(p->plan, region, &p->arena, &out->bytes, &out->count, d));
    for (size_t i = 0; i < out->count; i++)
        if (__builtin_add_overflow(*sum, out->bytes[i], sum))
            return diag_fail(d, RLX_ERROR_LIMIT, "activations and constants overflow 64 bits");
    return RLX_OK;
}

static rlx_status take_memory(const struct program_desc *desc, struct program *p, struct diag *d)
{
    struct sizes consts, acts;
    uint64_t sum = 0, segment = p->plan->segment;

    TRY(find_sizes(p, REGION_CONSTS, &consts, &sum, d));
    TRY(find_sizes(p, REGION_ACTS, &acts, &sum, d));
    if (desc->may_take)
        TRY(desc->may_take(desc->user, sum, d));
    TRY(memory_alloc(p->backend, p->mem, segment, consts.bytes, consts.count, &p->consts, d));
    return memory_alloc(p->backend, p->mem, segment, acts.bytes, acts.count, &p->acts, d);
}

static rlx_status allocate(const struct program_desc *desc, struct program *p, struct diag *d)
{
    struct diag own;

    p->memory[REGION_WEIGHTS] = desc->weights;
    p->memory[REGION_STATE] = desc->state;
    p->memory[REGION_CONSTS] = &p->consts;
    p->memory[REGION_ACTS] = &p->acts;
    diag_init(&own, "compile");
    rlx_status status = take_memory(desc, p, &own);
    return status == RLX_OK ? RLX_OK : name_largest(p, status, &own, d);
}

static rlx_status upload_consts(struct program *p, struct diag *d)
{
    const struct ir_graph *g = ir_entry(p->mod);

    IR_EACH(n, g) {
        if (n->op == RLX_OP_const && n->attr.const_.data.len)
            TRY(p->backend->ops->write(p->backend, program_span(p, ir_id(g, n)),
                                       n->attr.const_.data.ptr, d));
    }
    return RLX_OK;
}

/* ---- commands ---- */

static rlx_status make_commands(struct program *p, struct diag *d)
{
    const struct steps *s = p->steps;

    p->span = arena_array(&p->arena, struct span, s->operand_count);
    p->command = arena_array(&p->arena, struct command, s->step_count);
    if (!p->span || !p->command)
        return diag_no_memory(d, s->operand_count * sizeof *p->span);
    for (size_t i = 0; i < s->step_count; i++)
        p->command[i] = (struct command){
            .kind = COMMAND_DISPATCH,
            .work = (void *)s->step[i].work,
            .operand = p->span + s->step[i].first,
            .operand_count = s->step[i].count,
            .use = s->operand + s->step[i].first,
            .step = (int32_t)i,
        };
    p->command_count = s->step_count;
    return RLX_OK;
}

/* Nothing to write, and no other effect. */
static bool is_idle(const struct steps *s, const struct step *st)
{
    for (uint32_t i = st->first; i < st->first + st->count; i++) {
        const struct value *v = &s->value[s->operand[i].value];
        if (s->operand[i].role == ROLE_UPDATE ||
            (s->operand[i].role == ROLE_WRITE && !(v->flags & VALUE_SCRATCH) && v->bytes))
            return false;
    }
    return true;
}

static rlx_status load_commands(struct program *p, struct diag *d)
{
    const struct steps *s = p->steps;
    const struct ir_graph *g = ir_entry(p->mod);

    for (size_t i = 0; i < s->operand_count; i++)
        p->span[i] = program_span(p, s->operand[i].value);
    for (size_t i = 0; i < s->step_count; i++) {
        p->command[i].idle = is_idle(s, &s->step[i]);
        TRY(p->backend->ops->load(p->backend, &p->command[i], d));
    }
    for (size_t i = 0; i < p->input_count; i++)
        if (p->input[i].value >= 0)
            p->input[i].type = *ir_type_of(g, p->input[i].value);
    for (size_t i = 0; i < p->output_count; i++)
        p->output[i].type = *ir_type_of(g, p->output[i].value);
    p->loaded = true;
    return RLX_OK;
}

rlx_status program_load(struct program *p, const int64_t *size, struct diag *d)
{
    size_t bytes = p->symbol_count * sizeof *size;
    bool same = !p->symbolic || bytes == 0 || memcmp(p->size, size, bytes) == 0;

    if (p->loaded && same)
        return RLX_OK;
    if (p->backend->ops->settle)
        p->backend->ops->settle(p->backend, p->command);
    p->loaded = false;
    if (!same) {
        memset(p->size, 0xff, bytes); /* sizes are never negative, so nothing equals this */
        TRY(ir_resize(p->symbolic, p->mod, size, p->symbol_count, d));
        TRY(lower_resize(ir_entry(p->mod), p->steps, d));
        memcpy(p->size, size, bytes);
    }
    return load_commands(p, d);
}

void program_set_outside(struct program *p, int32_t value, struct buffer *buffer)
{
    if (p->outside[value] == buffer)
        return;
    p->outside[value] = buffer;
    p->loaded = false;
}

void program_set_plain(struct program *p, int32_t value, struct buffer *buffer)
{
    p->plain[value] = buffer; /* comparing is not enough: another buffer may have the same
                               * address */
    p->loaded = false;
}

/* Does the step read a copy in place of that operand? */
static bool reads_copy(const struct steps *s, size_t step, uint32_t operand)
{
    for (size_t i = 0; i < s->packing_count; i++)
        if (s->packing[i].alone && s->packing[i].step == step &&
            s->packing[i].operand == (int32_t)operand)
            return true;
    return false;
}

bool program_reads(const struct program *p, int32_t leaf)
{
    const struct steps *s = p->steps;

    for (size_t i = 0; i < s->step_count; i++)
        for (uint32_t k = 0; k < s->step[i].count; k++)
            if (s->value[s->operand[s->step[i].first + k].value].root == leaf &&
                !reads_copy(s, i, k))
                return true;
    const struct ir_graph *g = ir_entry(p->mod);
    for (size_t i = 0; i < g->output.len; i++)
        if (s->value[g->output.at[i]].root == leaf)
            return true;
    return false;
}

/* ---- making one ---- */

static rlx_status find_packed(const struct program_desc *desc, struct program *p, struct diag *d)
{
    const struct steps *s = p->steps;

    p->packed = arena_array(&p->arena, struct weight_copy *, s->packing_count);
    if (!p->packed)
        return diag_no_memory(d, s->packing_count * sizeof *p->packed);
    for (size_t i = 0; i < s->packing_count; i++) {
        const struct packing *k = &s->packing[i];
        TRY(desc->copy_of(desc->user, ir_node(ir_entry(p->mod), k->source), k,
                          s->value[k->value].bytes, &p->packed[i], d));
        p->outside[k->value] = p->packed[i]->buffer;
    }
    return RLX_OK;
}

static rlx_status note_ends(struct program *p, const struct program_slot *inputs, size_t count,
                            struct diag *d)
{
    const struct ir_graph *g = ir_entry(p->mod);

    p->input = arena_array(&p->arena, struct program_slot, count);
    p->output = arena_array(&p->arena, struct program_slot, g->output.len);
    if (!p->input || !p->output)
        return diag_no_memory(d, count * sizeof *p->input);
    p->input_count = count;
    p->output_count = g->output.len;
    for (size_t i = 0; i < count; i++) {
        ir_value v;
        p->input[i] = inputs[i];
        p->input[i].name = arena_str(&p->arena, inputs[i].name);
        p->input[i].value = ir_find_leaf(g, inputs[i].name, &v) ? v : -1;
        if (inputs[i].name.len && !p->input[i].name.ptr)
            return diag_no_memory(d, inputs[i].name.len);
    }
    for (size_t i = 0; i < p->output_count; i++) {
        ir_value v = g->output.at[i];
        p->output[i] = (struct program_slot){{NULL, 0}, *ir_type_of(g, v), v};
    }
    return RLX_OK;
}

/* ---- symbols ---- */

static void note_dim(struct program *p, ir_dim d)
{
    for (size_t i = 0; !dim_is_static(d) && i < p->symbol_count; i++)
        p->uses[i] |= dim_uses(p->symbolic->dims, d, i);
}

static void note_node(struct program *p, const struct ir_node *n)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(n->op)->family, &count);

    for (int32_t i = 0; i < n->type.rank; i++)
        note_dim(p, n->type.dim[i]);
    for (size_t i = 0; i < count; i++) {
        const void *at = (const char *)&n->attr + a[i].offset;
        const rlx_list *l = at;
        if (a[i].kind == ATTR_DIM)
            note_dim(p, *(const ir_dim *)at);
        for (int32_t k = 0; a[i].kind == ATTR_DIMS && k < l->count; k++)
            note_dim(p, l->at[k]);
    }
}

/* A run need not give the sizes of symbols that no longer occur. */
static rlx_status note_symbols(struct program *p, struct diag *d)
{
    size_t graphs = p->mod->graph.len;
    bool *used = arena_array(&p->arena, bool, graphs);

    p->uses = arena_array(&p->arena, bool, p->symbol_count);
    if (!p->uses || !used)
        return diag_no_memory(d, graphs + p->symbol_count);
    graphs_in_use(p->mod, used);
    for (size_t i = 0; p->symbolic && i < graphs; i++)
        if (used[i])
            IR_EACH(n, p->symbolic->graph.at[i])
                note_node(p, n);
    return RLX_OK;
}

static uint64_t weights_read(const struct program *p)
{
    uint64_t sum = 0;

    IR_EACH(n, ir_entry(p->mod)) {
        ir_value v = ir_id(ir_entry(p->mod), n);
        if (n->op == RLX_OP_param && p->steps->value[v].region == REGION_WEIGHTS &&
            program_reads(p, v))
            sum += p->steps->value[v].bytes;
    }
    return sum;
}

/* Weights and states do not belong to the program: all of them count, not only those it reads,
 * except where only weights that are read have memory. */
static void count_held(const struct program_desc *desc, struct program *p)
{
    p->plan->held[REGION_WEIGHTS] = desc->weights ? desc->weights->bytes : weights_read(p);
    p->plan->held[REGION_STATE] = desc->state ? desc->state->bytes : 0;
}

static rlx_status plan(const struct program_desc *desc, struct program *p, struct places *places,
                       struct diag *d)
{
    TRY(place_leaves(desc, p, places, d));
    const struct select_graph from = {.graph = ir_entry(p->mod),
                                      .symbolic = p->symbolic ? ir_entry(p->symbolic) : NULL,
                                      .probes = desc->probes,
                                      .leaf_offset = places->offset,
                                      .outside = places->is_outside};
    TRY(lower_select(&from, p->backend, &desc->select, &p->arena, &p->steps, d));
    TRY(check_sizes(p, &desc->plan, d));
    TRY(plan_build(p->steps, &desc->plan, &p->arena, &p->plan, d));
    count_held(desc, p);
    return RLX_OK;
}

static rlx_status build(const struct program_desc *desc, struct program *p,
                        const struct program_slot *inputs, size_t input_count, struct diag *d)
{
    struct places places;

    TRY(plan(desc, p, &places, d));
    if (!desc->plan_only) {
        TRY(allocate(desc, p, d));
        TRY(upload_consts(p, d));
    }
    p->outside = arena_array(&p->arena, struct buffer *, p->steps->value_count);
    p->size = arena_array(&p->arena, int64_t, desc->symbol_count);
    if (!desc->weights)
        p->plain = arena_array(&p->arena, struct buffer *, p->steps->value_count);
    if (!p->outside || !p->size || (!desc->weights && !p->plain))
        return diag_no_memory(d, p->steps->value_count * sizeof *p->outside);
    memset(p->size, 0xff, desc->symbol_count * sizeof *p->size);
    p->symbol_count = desc->symbol_count;
    memcpy(p->outside, places.outside, ir_entry(p->mod)->node.len * sizeof *p->outside);
    TRY(note_symbols(p, d));
    TRY(find_packed(desc, p, d));
    TRY(note_ends(p, inputs, input_count, d));
    if (desc->plan_only)
        return RLX_OK;
    TRY(make_commands(p, d));
    return program_prepare(p, desc->probes, d);
}

rlx_status program_create(const struct program_desc *desc, struct ir_module *mod,
                          struct ir_module *symbolic, const struct program_slot *inputs,
                          size_t input_count, struct program **out, struct diag *d)
{
    struct program *p = mem_alloc(desc->mem, sizeof *p);

    if (!p) {
        ir_module_destroy(mod);
        ir_module_destroy(symbolic);
        return diag_no_memory(d, sizeof *p);
    }
    p->mem = desc->mem;
    p->backend = desc->backend;
    p->mod = mod;
    p->symbolic = symbolic;
    arena_init(&p->arena, desc->mem);
    rlx_status s = build(desc, p, inputs, input_count, d);
    if (s != RLX_OK) {
        program_destroy(p);
        return s;
    }
    *out = p;
    return RLX_OK;
}

void program_destroy(struct program *p)
{
    if (!p)
        return;
    if (p->command && p->backend->ops->unload)
        p->backend->ops->unload(p->backend, p->command);
    memory_release(&p->consts);
    memory_release(&p->acts);
    ir_module_destroy(p->mod);
    ir_module_destroy(p->symbolic);
    arena_free(&p->arena);
    mem_free(p->mem, p, sizeof *p);
}

struct span program_span(const struct program *p, int32_t value)
{
    const struct value *v = &p->steps->value[value];

    if (v->region == REGION_WEIGHTS && p->plain)
        return p->plain[v->root] ? (struct span){p->plain[v->root], v->view_offset, v->bytes}
                                 : (struct span){0};
    if (v->region == REGION_OUTSIDE) /* without a buffer: nothing reads it */
        return p->outside[v->root] ? (struct span){p->outside[v->root], v->offset, v->bytes}
                                   : (struct span){0};
    return memory_span(p->memory[v->region], v->offset, v->bytes);
}

#define CHUNK_BYTES 16384 /* a device may need a while for each */

static rlx_status check_access(struct span s, rlx_dtype slot, rlx_dtype to, rlx_dtype from,
                               size_t count, struct diag *d)
{
    size_t bytes;

    if (!convert_allowed(to, from))
        return diag_fail(d, RLX_ERROR_DTYPE, "%s cannot become %s", rlx_dtype_name(from),
                         rlx_dtype_name(to));
    if (!size_mul(count, rlx_dtype_size(slot), &bytes) || bytes > s.bytes)
        return diag_fail(d, RLX_ERROR_SIZE, "%zu elements of %s do not fit into %llu bytes", count,
                         rlx_dtype_name(slot), (unsigned long long)s.bytes);
    return RLX_OK;
}

/* count elements of the slot, starting at element `first`. */
static struct span part_of(struct span s, size_t first, size_t count, rlx_dtype slot)
{
    size_t size = rlx_dtype_size(slot);

    return (struct span){s.buffer, s.offset + first * size, count * size};
}

rlx_status span_write(struct backend *b, struct span s, rlx_dtype slot, rlx_dtype dtype,
                      const void *data, size_t count, struct diag *d)
{
    uint64_t chunk[CHUNK_BYTES / sizeof(uint64_t)];
    const uint8_t *from = data;

    TRY(check_access(s, slot, slot, dtype, count, d));
    if (slot == dtype && slot != RLX_DTYPE_bool)
        return count ? b->ops->write(b, part_of(s, 0, count, slot), data, d) : RLX_OK;
    size_t step = CHUNK_BYTES / rlx_dtype_size(slot);
    for (size_t i = 0; i < count; i += step) {
        size_t n = count - i < step ? count - i : step;
        convert(slot, chunk, dtype, from + i * rlx_dtype_size(dtype), n);
        TRY(b->ops->write(b, part_of(s, i, n, slot), chunk, d));
    }
    return RLX_OK;
}

rlx_status span_read(struct backend *b, struct span s, rlx_dtype slot, rlx_dtype dtype, void *data,
                     size_t count, struct diag *d)
{
    uint64_t chunk[CHUNK_BYTES / sizeof(uint64_t)];
    uint8_t *to = data;

    TRY(check_access(s, slot, dtype, slot, count, d));
    if (slot == dtype)
        return count ? b->ops->read(b, part_of(s, 0, count, slot), data, d) : RLX_OK;
    size_t step = CHUNK_BYTES / rlx_dtype_size(slot);
    for (size_t i = 0; i < count; i += step) {
        size_t n = count - i < step ? count - i : step;
        TRY(b->ops->read(b, part_of(s, i, n, slot), chunk, d));
        convert(dtype, to + i * rlx_dtype_size(dtype), slot, chunk, n);
    }
    return RLX_OK;
}

rlx_status program_write(struct program *p, const struct program_slot *slot, rlx_dtype dtype,
                         const void *data, size_t count, struct diag *d)
{
    if (slot->value < 0)
        return RLX_OK; /* nothing reads it */
    return span_write(p->backend, program_span(p, slot->value), slot->type.dtype, dtype, data,
                      count, d);
}

rlx_status program_read(struct program *p, const struct program_slot *slot, rlx_dtype dtype,
                        void *data, size_t count, struct diag *d)
{
    return span_read(p->backend, program_span(p, slot->value), slot->type.dtype, dtype, data, count,
                     d);
}
