/* cpu_sub_program.c: compile a sub-graph with the same stages as a program, and run it in place. */
#include "backend/cpu/cpu_sub_program.h"

#include <stdatomic.h>
#include <string.h>

static rlx_status fill_consts(const struct ir_graph *g, struct cpu_sub_program *p,
                              struct arena *arena, struct diag *d)
{
    uint64_t bytes = p->plan->size[REGION_CONSTS];

    p->consts = arena_alloc(arena, (size_t)bytes, CPU_ALIGN);
    if (!p->consts)
        return diag_no_memory(d, (size_t)bytes);
    IR_EACH(n, g) {
        const struct value *v = &p->steps->value[ir_id(g, n)];
        if (n->op == RLX_OP_const && v->bytes)
            memcpy(p->consts + v->offset, n->attr.const_.data.ptr, (size_t)v->bytes);
    }
    return RLX_OK;
}

static rlx_status note_ends(const struct ir_graph *g, struct cpu_sub_program *p,
                            struct arena *arena, struct diag *d)
{
    size_t most = 0, k = 0;

    p->in_count = ir_inputs(g, NULL, 0);
    p->out_count = g->output.len;
    for (size_t i = 0; i < p->steps->step_count; i++)
        most = p->steps->step[i].count > most ? p->steps->step[i].count : most;
    p->in = arena_array(arena, struct cpu_sub_value, p->in_count);
    p->out = arena_array(arena, struct cpu_sub_value, p->out_count);
    p->pointers = arena_array(arena, void *, most);
    if (!p->in || !p->out || !p->pointers)
        return diag_no_memory(d, most * sizeof(void *));
    IR_EACH(n, g) {
        if (n->op == RLX_OP_input)
            p->in[k++].value = ir_id(g, n);
    }
    for (size_t i = 0; i < p->out_count; i++)
        p->out[i].value = g->output.at[i];
    return RLX_OK;
}

rlx_status cpu_sub_build(struct cpu_device *dev, struct select_call *c, int32_t graph,
                         struct cpu_sub_program **out)
{
    const struct ir_graph *g = c->graph->mod->graph.at[graph];
    const struct ir_graph *symbolic = c->symbolic ? c->symbolic->mod->graph.at[graph] : NULL;
    const struct select_graph from = {
        .graph = g, .symbolic = symbolic, .probes = c->probes, .sub = c->sub};
    const struct plan_options options = {.align = CPU_ALIGN};
    struct select_options select = *c->options;
    struct cpu_sub_program *p;

    *out = c->sub[graph];
    if (*out)
        return RLX_OK;
    p = arena_new(c->arena, struct cpu_sub_program);
    if (!p)
        return diag_no_memory(c->diag, sizeof *p);
    p->graph = g;
    select.pack_weights = false; /* copies belong to programs */
    select.slot_align = 0;       /* its plan has the alignment that kernels rely on */
    TRY(lower_select(&from, &dev->base, &select, c->arena, &p->steps, c->diag));
    TRY(plan_build(p->steps, &options, c->arena, &p->plan, c->diag));
    TRY(fill_consts(g, p, c->arena, c->diag));
    TRY(note_ends(g, p, c->arena, c->diag));
    c->sub[graph] = *out = p;
    return RLX_OK;
}

uint64_t cpu_sub_bytes(const struct cpu_sub_program *p)
{
    return (p->plan->size[REGION_ACTS] + CPU_ALIGN - 1) / CPU_ALIGN * CPU_ALIGN;
}

static uint8_t *address(const struct cpu_sub_program *p, uint8_t *memory, int32_t value)
{
    const struct value *v = &p->steps->value[value];

    if (v->bytes == 0)
        return (uint8_t *)cpu_nothing;
    return (v->region == REGION_CONSTS ? p->consts : memory) + v->offset;
}

static void load_value(struct cpu_sub_program *p, uint8_t *memory, struct cpu_sub_value *v)
{
    v->type = *ir_type_of(p->graph, v->value);
    v->bytes = p->steps->value[v->value].bytes;
    v->data = address(p, memory, v->value);
}

static rlx_status load(struct cpu_sub_program *p, uint8_t *memory, struct diag *d)
{
    TRY(lower_resize(p->graph, p->steps, d));
    for (size_t i = 0; i < p->steps->step_count; i++) {
        const struct step *s = &p->steps->step[i];
        struct cpu_work *w = (struct cpu_work *)s->work;
        for (uint32_t k = 0; k < s->count; k++)
            p->pointers[k] = address(p, memory, p->steps->operand[s->first + k].value);
        TRY(w->load(w, p->pointers, d));
    }
    for (size_t i = 0; i < p->in_count; i++)
        load_value(p, memory, &p->in[i]);
    for (size_t i = 0; i < p->out_count; i++)
        load_value(p, memory, &p->out[i]);
    return RLX_OK;
}

rlx_status cpu_sub_enter(struct cpu_sub_program *p, uint8_t *memory, struct diag *d)
{
    if (p->is_loaded && p->memory == memory)
        return RLX_OK;
    p->is_loaded = false;
    TRY(load(p, memory, d));
    p->memory = memory;
    p->is_loaded = true;
    return RLX_OK;
}

static void pass_on(const struct cpu_fault *from, struct cpu_fault *to)
{
    int64_t position = atomic_load_explicit(&from->position, memory_order_relaxed);

    if (position == INT64_MAX ||
        atomic_load_explicit(&to->position, memory_order_relaxed) != INT64_MAX)
        return;
    atomic_store_explicit(&to->position, position, memory_order_relaxed);
    atomic_store_explicit(&to->value, atomic_load_explicit(&from->value, memory_order_relaxed),
                          memory_order_relaxed);
}

rlx_status cpu_sub_run(struct cpu_sub_program *p, struct cpu_fault *fault, struct diag *d)
{
    for (size_t i = 0; i < p->steps->step_count; i++) {
        struct cpu_work *w = (struct cpu_work *)p->steps->step[i].work;
        if (w->out.count == 0)
            continue; /* for the sizes of this run; writers are not allowed here */
        atomic_store_explicit(&w->fault.position, INT64_MAX, memory_order_relaxed);
        TRY(w->run(w, d));
        pass_on(&w->fault, fault);
    }
    return RLX_OK;
}
