/* describe.c: what is in a model, as a table or JSON: inputs, outputs, ops, parts, programs. */
#include "base/json.h"
#include "base/str.h"
#include "compile/cache/artefact.h"
#include "inspect/inspect.h"
#include "ir/text/text.h"

static const struct {
    const char *title, *key;
    rlx_io_kind kind;
} io_kinds[] = {
    {"inputs", "inputs", RLX_IO_INPUT},
    {"params", "params", RLX_IO_PARAM},
    {"states", "states", RLX_IO_STATE},
    {"outputs", "outputs", RLX_IO_OUTPUT},
};

static ir_value io_node(const rlx_model *m, rlx_io_kind kind, size_t i, const rlx_io_info *info)
{
    ir_value v = 0;

    if (kind == RLX_IO_OUTPUT)
        return ir_entry(m->mod)->output.at[i];
    ir_find_leaf(ir_entry(m->mod), info->name, &v);
    return v;
}

static void describe_artefact_text(const rlx_model *m, struct text *t)
{
    rlx_artefact_info a;
    rlx_artefact_program p;

    if (!m->artefact)
        return;
    artefact_describe(m->artefact, &a);
    text_addf(t, "\nartefact\n  format %u, written by %u.%u.%u for %s (%s)\n", a.format,
              a.library / 10000, a.library / 100 % 100, a.library % 100, a.backend, a.device);
    if (a.weights)
        text_addf(t, "  weights of %u params, %.3f MB%s\n", a.weights, (double)a.weight_bytes / 1e6,
                  a.weights_beside ? ", in a file beside it" : "");
    else
        text_addf(t, "  no weights\n");
    for (size_t i = 0; artefact_describe_program(m->artefact, i, &p); i++)
        text_addf(t, "  program %zu: %s%s%u steps, activations %llu bytes\n", i, p.sizes,
                  p.sizes[0] ? ", " : "", p.steps, (unsigned long long)p.activations);
}

static void json_number(struct json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_i64(j, (int64_t)v);
}

static void describe_artefact_json(const rlx_model *m, struct json *j)
{
    rlx_artefact_info a;
    rlx_artefact_program p;

    if (!m->artefact)
        return;
    artefact_describe(m->artefact, &a);
    json_key(j, "artefact");
    json_open(j, '{');
    json_number(j, "format", a.format);
    json_number(j, "library", a.library);
    json_key(j, "backend");
    json_str(j, rlx_cstr(a.backend));
    json_key(j, "device");
    json_str(j, rlx_cstr(a.device));
    json_number(j, "weights", a.weights);
    json_number(j, "weight_bytes", a.weight_bytes);
    json_key(j, "weights_beside");
    json_bool(j, a.weights_beside);
    json_key(j, "programs");
    json_open(j, '[');
    for (size_t i = 0; artefact_describe_program(m->artefact, i, &p); i++) {
        json_open(j, '{');
        json_key(j, "sizes");
        json_str(j, rlx_cstr(p.sizes));
        json_number(j, "steps", p.steps);
        json_number(j, "activations", p.activations);
        json_number(j, "constants", p.constants);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

/* What runs after what, and the sizes that only the data tells. */
static void describe_parts_text(const rlx_model *m, struct text *t)
{
    const struct model_parts *p = m->parts;

    if (!p)
        return;
    text_addf(t, "\nparts, one after the other\n");
    for (size_t i = 0; i < p->count; i++)
        text_addf(t, "  %-24zu %6zu nodes\n", i + 1, ir_entry(p->part[i].model->mod)->node.len);
    text_addf(t, "\nsizes that depend on data\n");
    for (size_t i = 0; i < p->cut_count; i++) {
        int64_t bound = dim_symbol_bound(m->mod->dims, p->cut[i].symbol);
        if (i && p->cut[i].symbol == p->cut[i - 1].symbol)
            continue;
        text_addf(t, "  %-*.*s", bound ? 24 : 0,
                  STR_ARG(dim_symbol_name(m->mod->dims, p->cut[i].symbol)));
        if (bound)
            text_addf(t, " at most %lld", (long long)bound);
        text_addf(t, "\n");
    }
}

static void describe_parts_json(const rlx_model *m, struct json *j)
{
    const struct model_parts *p = m->parts;

    if (!p)
        return;
    json_key(j, "parts");
    json_open(j, '[');
    for (size_t i = 0; i < p->count; i++) {
        json_open(j, '{');
        json_number(j, "nodes", ir_entry(p->part[i].model->mod)->node.len);
        json_close(j, '}');
    }
    json_close(j, ']');
}

/* Of the params themselves, without the padding between them in a store. */
static uint64_t param_bytes(const rlx_model *m)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < m->param_count; i++)
        bytes += m->param[i].bytes;
    return bytes;
}

static void describe_text(const rlx_model *m, struct text *t)
{
    const struct ir_graph *g = ir_entry(m->mod);

    text_addf(t, "%zu nodes, %zu sub-graphs, %.3f MB of params\n", g->node.len,
              m->mod->graph.len - 1, (double)param_bytes(m) / 1e6);
    for (size_t k = 0; k < sizeof io_kinds / sizeof io_kinds[0]; k++) {
        size_t count = model_io_count(m, io_kinds[k].kind);
        if (count)
            text_addf(t, "\n%s\n", io_kinds[k].title);
        for (size_t i = 0; i < count; i++) {
            rlx_io_info info = {RLX_SIZED(rlx_io_info)};
            model_io(m, io_kinds[k].kind, i, &info, NULL);
            text_addf(t, "  %-24.*s ", STR_ARG(info.name));
            ir_print_type(m->mod, ir_type_of(g, io_node(m, io_kinds[k].kind, i, &info)), t);
            text_addf(t, "%s\n", info.used ? "" : "  (unused)");
        }
    }
    describe_parts_text(m, t);
    text_addf(t, "\nops\n");
    for (int op = 0; op < RLX_OP_count; op++) {
        size_t count = 0;
        for (size_t i = 0; i < m->mod->graph.len; i++)
            IR_EACH(n, m->mod->graph.at[i])
                count += n->op == (rlx_op)op;
        if (count)
            text_addf(t, "  %-32s %6zu\n", op_info((rlx_op)op)->name, count);
    }
    describe_artefact_text(m, t);
}

static void describe_io(const rlx_model *m, rlx_io_kind kind, size_t i, struct json *j)
{
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};

    model_io(m, kind, i, &info, NULL);
    const struct ir_type *type = ir_type_of(ir_entry(m->mod), io_node(m, kind, i, &info));
    json_open(j, '{');
    json_key(j, "name");
    json_str(j, info.name);
    json_key(j, "dtype");
    json_str(j, rlx_cstr(rlx_dtype_name(info.dtype)));
    json_key(j, "shape");
    json_open(j, '[');
    for (int32_t a = 0; a < type->rank; a++) {
        struct text dim;
        if (dim_is_static(type->dim[a])) {
            json_i64(j, type->dim[a]);
            continue;
        }
        text_init(&dim, &m->ctx->mem);
        dim_print(m->mod->dims, type->dim[a], &dim);
        json_str(j, (rlx_str){dim.at, dim.len});
        text_free(&dim);
    }
    json_close(j, ']');
    json_key(j, "used");
    json_bool(j, info.used);
    json_close(j, '}');
}

static void describe_json(const rlx_model *m, struct text *t)
{
    struct json j;

    json_init(&j, t);
    json_open(&j, '{');
    json_key(&j, "nodes");
    json_i64(&j, (int64_t)ir_entry(m->mod)->node.len);
    json_key(&j, "sub_graphs");
    json_i64(&j, (int64_t)m->mod->graph.len - 1);
    json_key(&j, "param_bytes");
    json_i64(&j, (int64_t)param_bytes(m));
    for (size_t k = 0; k < sizeof io_kinds / sizeof io_kinds[0]; k++) {
        json_key(&j, io_kinds[k].key);
        json_open(&j, '[');
        for (size_t i = 0; i < model_io_count(m, io_kinds[k].kind); i++)
            describe_io(m, io_kinds[k].kind, i, &j);
        json_close(&j, ']');
    }
    describe_parts_json(m, &j);
    describe_artefact_json(m, &j);
    json_close(&j, '}');
    text_add(t, STR("\n"));
}

void model_describe(const struct rlx_model *m, bool json, struct text *out)
{
    (json ? describe_json : describe_text)(m, out);
}
