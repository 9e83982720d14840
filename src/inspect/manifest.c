/* manifest.c: what goes in and out of a program, and where it lies: names, types, offsets, and how
 * many bytes each group of weights takes. */
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "inspect/inspect.h"
#include "ir/text/text.h"
#include "rlx/tools.h"

struct row {
    const char *kind, *region;
    rlx_str name;
    const struct ir_type *type;
    uint64_t offset, bytes;
    bool placed; /* false: nothing reads it, and it has no place */
};

/* Params whose names agree up to their last dot. */
struct group {
    rlx_str name; /* none: names without a dot */
    uint64_t count, bytes;
};

struct manifest {
    struct row *row;
    struct group *group;
    size_t row_count, group_count;
};

static const char *const regions[REGION_COUNT] = {
    [REGION_WEIGHTS] = "weights",
    [REGION_CONSTS] = "constants",
    [REGION_ACTS] = "activations",
    [REGION_STATE] = "states",
};

static void add_slot(struct manifest *m, const struct program *p, const char *kind, rlx_str name,
                     const struct program_slot *slot)
{
    struct row r = {.kind = kind, .region = "", .name = name, .type = &slot->type};

    if (slot->value >= 0) {
        const struct value *v = &p->steps->value[slot->value];
        r.region = regions[v->region];
        r.offset = v->offset;
        r.bytes = v->bytes;
        r.placed = true;
    }
    m->row[m->row_count++] = r;
}

static rlx_str prefix(rlx_str name)
{
    while (name.len && name.ptr[name.len - 1] != '.')
        name.len--;
    name.len -= name.len > 0;
    return name;
}

static void add_to_group(struct manifest *m, rlx_str name, uint64_t bytes)
{
    size_t i = 0;

    while (i < m->group_count && !str_eq(m->group[i].name, name))
        i++;
    m->group[i].name = name;
    m->group[i].count++;
    m->group[i].bytes += bytes;
    m->group_count += i == m->group_count;
}

static void add_leaves(struct manifest *m, const struct rlx_session *s)
{
    const struct rlx_model *model = s->model;
    const struct ir_graph *g = ir_entry(model->mod);

    for (size_t i = 0; i < model->param_count; i++) {
        const struct model_param *p = &model->param[i];
        m->row[m->row_count++] = (struct row){"param",
                                              regions[REGION_WEIGHTS],
                                              p->name,
                                              ir_type_of(g, p->node),
                                              s->store->offset[i],
                                              p->bytes,
                                              true};
        add_to_group(m, prefix(p->name), p->bytes);
    }
    IR_EACH(n, g) {
        struct row r = {"state", regions[REGION_STATE], ir_leaf_name(n), &n->type, 0, 0, true};
        if (n->op != RLX_OP_state)
            continue;
        r.offset = s->state_offset[ir_id(g, n)];
        type_bytes(&n->type, &r.bytes);
        m->row[m->row_count++] = r;
    }
}

static rlx_status collect(const struct rlx_session *s, struct arena *arena, struct manifest *m,
                          struct diag *d)
{
    const struct program *p = s->current;
    size_t most = p->input_count + p->output_count + ir_entry(s->model->mod)->node.len;

    *m = (struct manifest){.row = arena_array(arena, struct row, most),
                           .group = arena_array(arena, struct group, s->model->param_count)};
    if (!m->row || !m->group)
        return diag_no_memory(d, most * sizeof *m->row);
    for (size_t i = 0; i < p->input_count; i++)
        add_slot(m, p, "input", p->input[i].name, &p->input[i]);
    add_leaves(m, s);
    for (size_t i = 0; i < p->output_count; i++)
        add_slot(m, p, "output", s->model->output_name[i], &p->output[i]);
    return RLX_OK;
}

static void print_text(const struct rlx_session *s, const struct manifest *m, struct text *out)
{
    text_addf(out, "%-7s %-28s %-24s %-12s %14s %14s\n", "kind", "name", "type", "region", "offset",
              "bytes");
    for (size_t i = 0; i < m->row_count; i++) {
        const struct row *r = &m->row[i];
        struct text type;
        text_init(&type, out->mem);
        ir_print_type(s->model->mod, r->type, &type);
        text_addf(out, "%-7s %-28.*s %-24s %-12s", r->kind, STR_ARG(r->name),
                  type.at ? type.at : "", r->placed ? r->region : "unused");
        if (r->placed)
            text_addf(out, " %14llu %14llu", (unsigned long long)r->offset,
                      (unsigned long long)r->bytes);
        text_addf(out, "\n");
        text_free(&type);
    }
    if (m->group_count)
        text_addf(out, "\n%-36s %8s %14s\n", "weights", "params", "bytes");
    for (size_t i = 0; i < m->group_count; i++) {
        rlx_str name = m->group[i].name.len ? m->group[i].name : STR("(no group)");
        text_addf(out, "%-36.*s %8llu %14llu\n", STR_ARG(name),
                  (unsigned long long)m->group[i].count, (unsigned long long)m->group[i].bytes);
    }
}

static void json_pair(struct json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_i64(j, v < INT64_MAX ? (int64_t)v : INT64_MAX);
}

static void json_row(const struct rlx_session *s, const struct row *r, struct json *j)
{
    struct text type;

    text_init(&type, j->out->mem);
    ir_print_type(s->model->mod, r->type, &type);
    json_open(j, '{');
    json_key(j, "kind");
    json_str(j, rlx_cstr(r->kind));
    json_key(j, "name");
    json_str(j, r->name);
    json_key(j, "type");
    json_str(j, (rlx_str){type.at, type.len});
    json_key(j, "region");
    json_str(j, rlx_cstr(r->placed ? r->region : "unused"));
    json_pair(j, "offset", r->offset);
    json_pair(j, "bytes", r->bytes);
    json_close(j, '}');
    text_free(&type);
}

static void print_json(const struct rlx_session *s, const struct manifest *m, struct text *out)
{
    struct json j;

    json_init(&j, out);
    json_open(&j, '{');
    json_key(&j, "bindings");
    json_open(&j, '[');
    for (size_t i = 0; i < m->row_count; i++)
        json_row(s, &m->row[i], &j);
    json_close(&j, ']');
    json_key(&j, "groups");
    json_open(&j, '[');
    for (size_t i = 0; i < m->group_count; i++) {
        json_open(&j, '{');
        json_key(&j, "name");
        json_str(&j, m->group[i].name.len ? m->group[i].name : STR(""));
        json_pair(&j, "params", m->group[i].count);
        json_pair(&j, "bytes", m->group[i].bytes);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    text_add(out, STR("\n"));
}

rlx_status session_bindings(struct rlx_session *s, bool json, struct text *out, struct diag *d)
{
    struct manifest m;
    struct arena arena;

    TRY(session_is_whole(s, "show its bindings", d));
    TRY(session_need_program(s, d));
    arena_init(&arena, &s->model->ctx->mem);
    rlx_status status = collect(s, &arena, &m, d);
    if (status == RLX_OK)
        (json ? print_json : print_text)(s, &m, out);
    arena_free(&arena);
    return status;
}
