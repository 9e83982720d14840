/* readers.c: which weights a program reads as they are: plain_param_release (model/plain_params.c)
 * asks whether anybody still does. */
#include "base/str.h"
#include "compile/compile.h"
#include "pass/static_pack.h"

static rlx_status list_leaves(const struct rlx_model *m, struct compiled_program *p, struct diag *d)
{
    const struct ir_graph *g = ir_entry(p->program->mod);
    size_t bytes = m->param_count * sizeof *p->leaf;

    p->leaf = mem_alloc(p->mem, bytes);
    if (!p->leaf && bytes)
        return diag_no_memory(d, bytes);
    p->leaf_room = m->param_count;
    IR_EACH(n, g) {
        int32_t v = ir_id(g, n);
        if (n->op != RLX_OP_param || p->program->steps->value[v].region != REGION_WEIGHTS)
            continue;
        for (size_t i = 0; i < m->param_count; i++)
            if (str_eq(m->param[i].name, ir_leaf_name(n)))
                p->leaf[p->leaf_count++] =
                    (struct param_leaf){v, (uint32_t)i, program_reads(p->program, v)};
    }
    return RLX_OK;
}

static void find_packs(struct compiled_program *p)
{
    struct static_program *f = &p->fixed;

    for (size_t i = 0; i < f->count; i++) {
        ir_value v;
        if (!ir_find_leaf(ir_entry(p->program->mod), f->made[i].name, &v))
            v = -1;
        f->leaf[i] = (struct pack_leaf){v, v >= 0 && program_reads(p->program, v)};
    }
}

rlx_status readers_join(struct store *s, struct compiled_program *p, struct diag *d)
{
    TRY(list_leaves(s->model, p, d));
    find_packs(p);
    pthread_mutex_lock(&s->model->lock);
    for (size_t i = 0; i < p->leaf_count; i++)
        s->readers[p->leaf[i].param] += p->leaf[i].read;
    for (size_t i = 0; i < p->fixed.count; i++)
        p->fixed.pack[i]->readers += p->fixed.leaf[i].read;
    pthread_mutex_unlock(&s->model->lock);
    p->store = s;
    return RLX_OK;
}

void readers_leave(struct compiled_program *p)
{
    struct store *s = p->store;

    if (s) {
        pthread_mutex_lock(&s->model->lock);
        for (size_t i = 0; i < p->leaf_count; i++) {
            s->readers[p->leaf[i].param] -= p->leaf[i].read;
            plain_param_release(s, p->leaf[i].param);
        }
        for (size_t i = 0; i < p->fixed.count; i++)
            p->fixed.pack[i]->readers -= p->fixed.leaf[i].read;
        pthread_mutex_unlock(&s->model->lock);
    }
    if (p->leaf)
        mem_free(p->mem, p->leaf, p->leaf_room * sizeof *p->leaf);
    p->leaf = NULL;
    p->leaf_count = p->leaf_room = 0;
    p->store = NULL;
}
