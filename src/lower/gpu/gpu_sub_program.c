/* gpu_sub_program.c: compile a sub-graph with the same stages as a program, and let its launches be
 * those of the step it belongs to. */
#include "lower/gpu/gpu_sub_program.h"

/* ---- select ---- */

bool gpu_has_subs(enum op_family f)
{
    return (family_info(f)->traits & RUNS_GRAPHS) != 0;
}

static rlx_status note_inputs(struct gpu_sub_program *p, struct arena *arena, struct diag *d)
{
    size_t k = 0;

    p->in_count = ir_inputs(p->graph, NULL, 0);
    p->in = arena_array(arena, ir_value, p->in_count);
    if (!p->in)
        return diag_no_memory(d, p->in_count * sizeof *p->in);
    IR_EACH(n, p->graph) {
        if (n->op == RLX_OP_input)
            p->in[k++] = ir_id(p->graph, n);
    }
    return RLX_OK;
}

static rlx_status make_sub(struct gpu_target *t, struct select_call *c, int32_t graph,
                           struct gpu_sub_program *p)
{
    const struct select_graph from = {.graph = c->graph->mod->graph.at[graph],
                                      .symbolic =
                                          c->symbolic ? c->symbolic->mod->graph.at[graph] : NULL,
                                      .probes = c->probes,
                                      .sub = c->sub};
    const struct plan_options options = {.align = GPU_ALIGN};

    p->graph = from.graph;
    TRY(lower_select(&from, t->backend, c->options, c->arena, &p->steps, c->diag));
    TRY(plan_build(p->steps, &options, c->arena, &p->plan, c->diag));
    return note_inputs(p, c->arena, c->diag);
}

static rlx_status build_sub(struct gpu_target *t, struct select_call *c, int32_t graph,
                            struct gpu_control *k, struct gpu_sub_program **out)
{
    const struct gpu_sub_program *made = c->sub[graph];
    struct gpu_sub_program *p = *out = arena_new(c->arena, struct gpu_sub_program);

    if (!p)
        return diag_no_memory(c->diag, sizeof *p);
    if (made)
        *p = *made;
    else
        TRY(make_sub(t, c, graph, p));
    c->sub[graph] = p;
    k->table_key = k->table_key << 32 | (uint32_t)graph;
    p->consts_at = k->table;
    uint64_t bytes = gpu_ceil(p->plan->size[REGION_CONSTS], GPU_ALIGN) * GPU_ALIGN;
    if (__builtin_add_overflow(k->table, bytes, &k->table))
        return diag_fail(c->diag, RLX_ERROR_LIMIT, "the constants of sub-graphs overflow 64 bits");
    return RLX_OK;
}

rlx_status gpu_build_subs(struct gpu_target *t, struct select_call *c, struct gpu_work *w)
{
    const union ir_attr *a = &c->node->attr;
    struct gpu_control *k = w->control = arena_new(c->arena, struct gpu_control);

    if (!k)
        return diag_no_memory(c->diag, sizeof *k);
    k->loop_limit = c->options->loop_limit;
    switch (op_info(c->node->op)->family) {
    case FAMILY_if_:
        TRY(build_sub(t, c, a->if_.then_graph, k, &k->sub[0]));
        TRY(build_sub(t, c, a->if_.else_graph, k, &k->sub[1]));
        break;
    case FAMILY_while_:
        TRY(build_sub(t, c, a->while_.cond_graph, k, &k->sub[0]));
        TRY(build_sub(t, c, a->while_.body_graph, k, &k->sub[1]));
        break;
    case FAMILY_scan: TRY(build_sub(t, c, a->scan.body, k, &k->sub[0])); break;
    default:
        TRY(build_sub(t, c, a->scan_backward.body, k, &k->sub[0]));
        TRY(build_sub(t, c, a->scan_backward.body_vjp, k, &k->sub[1]));
    }
    diag_at(c->diag, op_info(c->node->op)->name, c->id, c->node->label);
    return RLX_OK;
}

/* ---- load ---- */

static rlx_status fill_tables(struct gpu_target *t, const struct gpu_control *k, struct span table,
                              struct diag *d);

/* Its constants, and the tables of steps that have sub-graphs themselves. */
static rlx_status fill_consts(struct gpu_target *t, const struct gpu_sub_program *p,
                              struct span table, struct diag *d)
{
    struct backend *b = t->backend;

    IR_EACH(n, p->graph) {
        const struct value *v = &p->steps->value[ir_id(p->graph, n)];
        const struct span to = {table.buffer, table.offset + p->consts_at + v->offset, v->bytes};
        if (n->op == RLX_OP_const && v->bytes)
            TRY(b->ops->write(b, to, n->attr.const_.data.ptr, d));
    }
    for (size_t i = 0; i < p->steps->step_count; i++) {
        const struct step *s = &p->steps->step[i];
        const struct gpu_work *w = s->work;
        if (!w->control || w->control->table == 0 || !w->control->table_is_own)
            continue;
        const struct operand *o = &p->steps->operand[s->first + (uint32_t)w->table_operand];
        struct span inner = table;
        inner.offset += p->consts_at + p->steps->value[o->value].offset;
        TRY(fill_tables(t, w->control, inner, d));
    }
    return RLX_OK;
}

static rlx_status fill_tables(struct gpu_target *t, const struct gpu_control *k, struct span table,
                              struct diag *d)
{
    for (int i = 0; i < 2; i++)
        if (k->sub[i])
            TRY(fill_consts(t, k->sub[i], table, d));
    return RLX_OK;
}

rlx_status gpu_fill_table(struct gpu_target *t, struct command *c, struct diag *d)
{
    const struct gpu_work *w = c->work;
    struct gpu_control *k = w->control;

    if (k->table == 0 || !k->table_is_own || k->table_filled)
        return RLX_OK;
    TRY(fill_tables(t, k, c->operand[w->table_operand], d));
    k->table_filled = true;
    return RLX_OK;
}

/* ---- lowering ---- */

uint64_t gpu_sub_bytes(const struct gpu_sub_program *p)
{
    return p->plan->size[REGION_ACTS];
}

void gpu_sub_place(struct gpu_call *c, struct gpu_sub_program *p)
{
    if (c->status != RLX_OK)
        return;
    c->status = lower_resize(p->graph, p->steps, c->diag);
    for (size_t i = 0; i < p->steps->step_count && c->status == RLX_OK; i++)
        c->status =
            gpu_lower_step(c->device, (struct gpu_work *)p->steps->step[i].work, c->step, c->diag);
}

struct gpu_arg gpu_sub_arg(const struct gpu_call *c, const struct gpu_sub_program *p,
                           struct gpu_arg memory, ir_value v)
{
    const struct value *at = &p->steps->value[v];

    if (at->region == REGION_CONSTS)
        return (struct gpu_arg){c->work->table_operand, p->consts_at + at->offset, at->bytes};
    return gpu_part(memory, at->offset, at->bytes);
}

/* What an argument of a sub-step is in the parent. */
static struct gpu_arg parent_arg(const struct gpu_call *c, const struct gpu_sub_program *p,
                                 struct gpu_arg memory, const struct step *s, struct gpu_arg a)
{
    if (a.operand == GPU_FAULT)
        return a;
    int32_t value = p->steps->operand[s->first + (uint32_t)a.operand].value;
    return gpu_part(gpu_sub_arg(c, p, memory, value), a.offset, a.bytes);
}

static void splice(struct gpu_call *c, const struct gpu_sub_program *p, struct gpu_arg memory,
                   const struct step *s, const struct gpu_launch *l)
{
    const struct gpu_work *w = s->work;
    struct gpu_launch mine = *l;

    mine.first_word = gpu_add_words(c, w->word + l->first_word, l->kernel->words);
    for (uint32_t i = 0; i < l->kernel->buffers; i++)
        mine.arg[i] = parent_arg(c, p, memory, s, l->arg[i]);
    gpu_add_launch(c, &mine);
}

/* The loops of a sub-step whose launches are the parent's from `first` on. */
static void splice_loops(struct gpu_call *c, const struct gpu_sub_program *p, struct gpu_arg memory,
                         const struct step *s, uint32_t first)
{
    const struct gpu_work *w = s->work;

    for (uint32_t k = 0; k < w->loops; k++) {
        struct gpu_loop l = w->loop[k];
        l.go_on = parent_arg(c, p, memory, s, l.go_on);
        uint32_t mine = gpu_begin_loop(c, &l);
        if (c->status != RLX_OK)
            return;
        c->work->loop[mine].first = first + l.first;
        c->work->loop[mine].body = first + l.body;
        c->work->loop[mine].end = first + l.end;
    }
}

void gpu_sub_run(struct gpu_call *c, const struct gpu_sub_program *p, struct gpu_arg memory)
{
    for (size_t i = 0; i < p->steps->step_count; i++) {
        const struct step *s = &p->steps->step[i];
        const struct gpu_work *w = s->work;
        splice_loops(c, p, memory, s, c->work->launches);
        for (uint32_t k = 0; k < w->launches && c->status == RLX_OK; k++)
            splice(c, p, memory, s, &w->launch[k]);
    }
}

uint64_t gpu_sub_launches(const struct gpu_sub_program *p)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < p->steps->step_count; i++)
        sum += ((const struct gpu_work *)p->steps->step[i].work)->launches;
    return sum;
}

bool gpu_sub_loops(const struct gpu_sub_program *p)
{
    for (size_t i = 0; i < p->steps->step_count; i++)
        if (((const struct gpu_work *)p->steps->step[i].work)->loops)
            return true;
    return false;
}
