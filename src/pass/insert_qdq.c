/* insert_qdq.c: quantise and dequantise after calibrated values (runtime.md 7.4).
 *
 *     %h = matmul %x, %w         =>      %h = matmul %x, %w
 *     %y = relu %h                       %h.q = quantize %h scales=[0.02]
 *                                        %h.dq = dequantize %h.q scales=[0.02]
 *                                        %y = relu %h.dq
 *
 * Needs:  nothing.      Keeps: order, labels, types: a value that is not f32 is cast back to its
 * own type. An output keeps its name: %y.dq is called %y then, and what was %y is %y.raw. */
#include "pass/insert_qdq.h"

#include <string.h>

#include "pass/expand/expand.h"

struct inserter {
    struct rebuild r;
    struct ir_graph *g;
    const rlx_qdq_record *record;
    size_t count;
    struct diag *diag;
    int32_t *of; /* by node: its record; -1: none */
};

static rlx_str value_name(const struct ir_node *n)
{
    rlx_str leaf = ir_leaf_name(n);

    return leaf.len ? leaf : n->label;
}

static rlx_status check_record(const struct inserter *s, size_t i)
{
    const rlx_qdq_record *r = &s->record[i];

    if (!r->name || !r->scales || r->count == 0)
        return diag_fail(s->diag, RLX_ERROR_ARGUMENT, "record %zu: %s", i,
                         !r->name     ? "name is NULL"
                         : !r->scales ? "scales is NULL"
                                      : "there are no scales");
    return RLX_OK;
}

static bool record_has_name(const void *owner, uint32_t value, const void *key)
{
    const rlx_qdq_record *records = owner;
    const rlx_str *name = key;

    return str_eq(rlx_cstr(records[value].name), *name);
}

static rlx_status index_records(struct inserter *s, struct map *by_name)
{
    for (size_t i = 0; i < s->count; i++) {
        uint32_t other;
        TRY(check_record(s, i));
        rlx_str name = rlx_cstr(s->record[i].name);
        uint64_t hash = hash_bytes(name.ptr, name.len);
        if (map_find(by_name, hash, record_has_name, s->record, &name, &other))
            return diag_fail(s->diag, RLX_ERROR_NAME, "records %u and %zu both name \"%.*s\"",
                             (unsigned)other, i, STR_ARG(name));
        if (!map_add(by_name, hash, (uint32_t)i))
            return diag_no_memory(s->diag, 0);
    }
    return RLX_OK;
}

/* Which node each record means. */
static rlx_status find_values(struct inserter *s, const struct map *by_name, bool *found)
{
    IR_EACH(n, s->g) {
        rlx_str name = value_name(n);
        uint32_t i;
        s->of[ir_id(s->g, n)] = -1;
        if (!name.len || !map_find(by_name, hash_bytes(name.ptr, name.len), record_has_name,
                                   s->record, &name, &i))
            continue;
        if (found[i])
            return diag_fail(s->diag, RLX_ERROR_NAME, "\"%.*s\" names several values",
                             STR_ARG(name));
        if (n->op == RLX_OP_state)
            return diag_fail(s->diag, RLX_ERROR_GRAPH, "\"%.*s\" is a state, which stays as it is",
                             STR_ARG(name));
        found[i] = true;
        s->of[ir_id(s->g, n)] = (int32_t)i;
    }
    for (size_t i = 0; i < s->count; i++)
        if (!found[i])
            return diag_fail(s->diag, RLX_ERROR_NAME, "there is no value \"%s\"",
                             s->record[i].name);
    return RLX_OK;
}

static rlx_status label(struct inserter *s, ir_value v, rlx_str name, const char *ending)
{
    const char *text = arena_printf(&s->g->mod->arena, "%.*s.%s", STR_ARG(name), ending);

    if (!text)
        return diag_no_memory(s->diag, name.len);
    ir_node(&s->r.made, v)->label = rlx_cstr(text);
    return RLX_OK;
}

static bool is_output(const struct ir_graph *g, ir_value v)
{
    for (size_t i = 0; i < g->output.len; i++)
        if (g->output.at[i] == v)
            return true;
    return false;
}

/* The attributes, floats included, become the module's own when the node is added. */
static rlx_status insert(struct inserter *s, const struct ir_node *n, const rlx_qdq_record *record)
{
    ir_value id = ir_id(s->g, n), v = rebuild_map(&s->r, id), q, dq;
    rlx_str name = value_name(n);
    union ir_attr attr;

    attr_defaults(RLX_OP_quantize, &attr);
    attr.quantize.axis = record->per_channel ? record->axis : RLX_ABSENT;
    attr.quantize.scales = (struct ir_blob){record->scales, record->count};
    if (record->zero_points)
        attr.quantize.zero_points = (struct ir_blob){record->zero_points, record->count};
    TRY(rebuild_add(&s->r, RLX_OP_quantize, &v, 1, &attr, &q));
    TRY(rebuild_add(&s->r, RLX_OP_dequantize, &q, 1, &attr, &dq));
    TRY(label(s, q, name, "q"));
    TRY(label(s, dq, name, "dq"));
    TRY(expand_cast(&s->r, dq, n->type.dtype, &dq));
    if (is_output(s->g, id) && !op_is(n->op, OP_LEAF)) {
        TRY(label(s, v, name, "raw"));
        ir_node(&s->r.made, dq)->label = name;
    }
    s->r.map[id] = dq;
    return RLX_OK;
}

static rlx_status rewrite(struct inserter *s)
{
    rlx_status status = rebuild_begin(&s->r, s->g, s->diag);

    for (size_t i = 0; status == RLX_OK && i < s->g->node.len; i++) {
        const struct ir_node *n = &s->g->node.at[i];
        status = rebuild_keep(&s->r, n);
        if (status == RLX_OK && s->of[i] >= 0)
            status = insert(s, n, &s->record[s->of[i]]);
    }
    return rebuild_finish(&s->r, status);
}

rlx_status pass_insert_qdq(struct ir_module *m, const rlx_qdq_record *records, size_t count,
                           struct diag *d)
{
    struct inserter s = {.g = ir_entry(m), .record = records, .count = count, .diag = d};
    struct map by_name;
    struct arena scratch;
    rlx_status status;

    if (count > INT32_MAX)
        return diag_fail(d, RLX_ERROR_LIMIT, "%zu records are too many", count);
    arena_init(&scratch, m->mem);
    map_init(&by_name, m->mem);
    s.of = arena_array(&scratch, int32_t, s.g->node.len);
    bool *found = arena_array(&scratch, bool, count);
    status = s.of && found ? index_records(&s, &by_name) : diag_no_memory(d, s.g->node.len);
    if (status == RLX_OK)
        status = find_values(&s, &by_name, found);
    if (status == RLX_OK && count)
        status = rewrite(&s);
    map_free(&by_name);
    arena_free(&scratch);
    return status;
}
