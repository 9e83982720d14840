/* page.c: a model as one HTML file: a graph to fold, search and look at, in any browser, without a
 * network. The page is src/inspect/page/; here is what it shows, as JSON.
 *
 *     {title, note, views: [{name, memory, steps, graphs: [{outputs, output_names, nodes}]}]}
 *
 * A view is the graph as written, or as a session runs it. A node has, under short names, as there
 * are thousands: o op, c category, n name, t type, i operands, a attributes, e elements, g
 * sub-graphs; of a session b bytes, r region, f offset, l [first, last step] it lives in, p whose
 * place, s step, ns its time, w FLOPs. All that comes from the model is text in JSON, in which '<',
 * '>' and '&' are escaped: nothing in it can end the script it stands in. */
#include "inspect/page.h"

#include <string.h>

#include "base/json.h"
#include "inspect/category.h"
#include "inspect/inspect.h"
#include "ir/cost.h"
#include "ir/text/text_fold.h"
#include "plan/report.h"
#include "session/session.h"

enum { SHOWN_ELEMENTS = 4, MOST_ATTRIBUTES = 2000 /* bytes of their text */ };

struct page {
    const rlx_page_desc *desc;
    struct json json;
    struct arena *arena;
    struct diag *diag;
};

/* What is known of the nodes of a view besides the graph: the program that runs them. */
struct run_of {
    const struct program *program; /* NULL: it is not compiled */
    int32_t *step;                 /* by node of the entry; -1: none */
};

static void number(struct json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_i64(j, v < INT64_MAX ? (int64_t)v : INT64_MAX);
}

static void string(struct json *j, const char *key, rlx_str s)
{
    json_key(j, key);
    json_str(j, s.ptr ? s : STR(""));
}

/* ---- a node ---- */

static void add_attributes(struct page *p, const struct ir_graph *g, const struct ir_node *n)
{
    struct text t;

    text_init(&t, p->json.out->mem);
    if (!op_is(n->op, OP_LEAF))
        ir_print_attrs(g->mod, n->op, &n->attr, &t);
    string(&p->json, "a", (rlx_str){t.at, t.len < MOST_ATTRIBUTES ? t.len : MOST_ATTRIBUTES});
    p->json.out->failed |= t.failed;
    text_free(&t);
}

/* The elements of a small constant, "{1 2.5}". */
static void add_elements(struct page *p, const struct ir_graph *g, const struct ir_node *n)
{
    struct text t;
    int64_t count;

    if (n->op != RLX_OP_const || !type_count(&n->type, &count) || count > SHOWN_ELEMENTS)
        return;
    text_init(&t, p->json.out->mem);
    text_print_const(g->mod, n, &(struct text_print_options){.elide = true}, &t);
    const char *brace = t.failed ? NULL : strchr(t.at, '{');
    if (brace)
        string(&p->json, "e", rlx_cstr(brace));
    text_free(&t);
}

/* The sub-graphs that a node runs. */
static void add_graphs(struct page *p, const struct ir_node *n)
{
    size_t count;
    const struct attr_info *a = family_attrs(op_info(n->op)->family, &count);
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        int32_t id = -1;
        if (a[i].kind == ATTR_GRAPH)
            memcpy(&id, (const char *)&n->attr + a[i].offset, sizeof id);
        if (id < 0)
            continue;
        if (!any) {
            json_key(&p->json, "g");
            json_open(&p->json, '[');
        }
        any = true;
        json_i64(&p->json, id);
    }
    if (any)
        json_close(&p->json, ']');
}

static void add_place(struct page *p, const struct program *program, const struct value *v)
{
    static const char *const names[REGION_COUNT] = {"weights", "constants", "activations", "states",
                                                    "a buffer of its own"};
    const struct value *all = program->steps->value, *root = &all[v->root];
    struct json *j = &p->json;

    number(j, "b", v->bytes);
    string(j, "r", rlx_cstr(names[v->region]));
    if (v->region != REGION_OUTSIDE)
        number(j, "f", v->offset);
    if (v->region == REGION_ACTS && v->bytes) {
        json_key(j, "l");
        json_open(j, '[');
        json_i64(j, root->birth);
        json_i64(j, root->death);
        json_close(j, ']');
    }
    if (root != v)
        string(j, "p", STR("a view"));
    else if (v->shares >= 0)
        string(j, "p", STR("taken over from an operand"));
}

static void add_run(struct page *p, const struct run_of *r, const struct ir_graph *g, ir_value id)
{
    int32_t step = r->step[id];
    uint64_t flops = ir_node_flops(g, ir_node(g, id));

    add_place(p, r->program, &r->program->steps->value[id]);
    if (flops)
        number(&p->json, "w", flops);
    if (step < 0)
        return;
    number(&p->json, "s", (uint64_t)step);
    if (p->desc->step_ns && (size_t)step < p->desc->step_count)
        number(&p->json, "ns", p->desc->step_ns[step]);
}

static void add_node(struct page *p, const struct run_of *r, const struct ir_graph *g,
                     const struct text_names *names, ir_value id)
{
    const struct ir_node *n = ir_node(g, id);
    struct json *j = &p->json;
    struct text type;

    text_init(&type, j->out->mem);
    ir_print_type(g->mod, &n->type, &type);
    json_open(j, '{');
    string(j, "o", rlx_cstr(op_info(n->op)->name));
    string(j, "c", rlx_cstr(category_name(op_info(n->op)->category)));
    string(j, "n", fold_name(g, names, id));
    string(j, "t", (rlx_str){type.at, type.len});
    json_key(j, "i");
    json_open(j, '[');
    for (int32_t i = 0; i < n->in_count; i++)
        json_i64(j, n->in[i]);
    json_close(j, ']');
    add_attributes(p, g, n);
    add_elements(p, g, n);
    add_graphs(p, n);
    if (r->program && g->id == 0)
        add_run(p, r, g, id);
    json_close(j, '}');
    j->out->failed |= type.failed;
    text_free(&type);
}

/* ---- graphs ---- */

static rlx_status add_graph(struct page *p, const struct run_of *r, const struct rlx_model *m,
                            const struct ir_graph *g)
{
    struct json *j = &p->json;
    struct text_names names;

    TRY(text_name_values(g, p->arena, &names, p->diag));
    json_open(j, '{');
    json_key(j, "outputs");
    json_open(j, '[');
    for (size_t i = 0; i < g->output.len; i++)
        json_i64(j, g->output.at[i]);
    json_close(j, ']');
    json_key(j, "output_names");
    json_open(j, '[');
    for (size_t i = 0; g->id == 0 && i < m->output_count && i < g->output.len; i++)
        json_str(j, m->output_name[i]);
    json_close(j, ']');
    json_key(j, "nodes");
    json_open(j, '[');
    for (size_t i = 0; i < g->node.len && !j->out->failed; i++)
        add_node(p, r, g, &names, (ir_value)i);
    json_close(j, ']');
    json_close(j, '}');
    return RLX_OK;
}

static rlx_status add_graphs_of(struct page *p, const struct run_of *r, const struct rlx_model *m,
                                const struct ir_module *mod)
{
    json_key(&p->json, "graphs");
    json_open(&p->json, '[');
    for (size_t i = 0; i < mod->graph.len; i++)
        TRY(add_graph(p, r, m, mod->graph.at[i]));
    json_close(&p->json, ']');
    return RLX_OK;
}

/* ---- views ---- */

static rlx_status add_written(struct page *p, const struct rlx_model *m)
{
    json_open(&p->json, '{');
    string(&p->json, "name", rlx_cstr(p->desc->view ? p->desc->view : "as written"));
    TRY(add_graphs_of(p, &(struct run_of){0}, m, m->mod));
    json_close(&p->json, '}');
    return RLX_OK;
}

static void add_memory(struct page *p, struct rlx_session *s)
{
    static const struct {
        enum region region;
        const char *name;
    } part[] = {{REGION_WEIGHTS, "weights"},
                {REGION_OUTSIDE, "copies of weights"},
                {REGION_CONSTS, "constants"},
                {REGION_ACTS, "arena"},
                {REGION_STATE, "states"}};
    struct plan *plan = s->current->plan;

    plan->held[REGION_OUTSIDE] = store_copy_bytes(s->store);
    json_key(&p->json, "memory");
    json_open(&p->json, '{');
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
        if (plan->held[part[i].region])
            number(&p->json, part[i].name, plan->held[part[i].region]);
    number(&p->json, "memory in all", report_total(plan));
    json_close(&p->json, '}');
}

static rlx_status add_program(struct page *p, struct rlx_session *s)
{
    const struct program *program = s->current;
    const struct ir_graph *g = ir_entry(program->mod);
    struct run_of r = {program, arena_array(p->arena, int32_t, g->node.len + 1)};
    struct text name;

    if (!r.step)
        return diag_no_memory(p->diag, g->node.len * sizeof *r.step);
    for (size_t i = 0; i < g->node.len; i++)
        r.step[i] = -1;
    for (size_t i = 0; i < program->steps->step_count; i++)
        r.step[program->steps->step[i].node] = (int32_t)i;
    text_init(&name, p->json.out->mem);
    text_addf(&name, "as it runs on %s", s->device->name);
    json_open(&p->json, '{');
    string(&p->json, "name", (rlx_str){name.at, name.len});
    text_free(&name);
    number(&p->json, "steps", program->steps->step_count);
    add_memory(p, s);
    TRY(add_graphs_of(p, &r, s->model, program->mod));
    json_close(&p->json, '}');
    return RLX_OK;
}

static rlx_status add_data(struct page *p, const struct rlx_model *m)
{
    const rlx_page_desc *desc = p->desc;

    json_open(&p->json, '{');
    string(&p->json, "title", rlx_cstr(desc->title ? desc->title : "a model"));
    if (desc->note)
        string(&p->json, "note", rlx_cstr(desc->note));
    json_key(&p->json, "views");
    json_open(&p->json, '[');
    TRY(add_written(p, m));
    if (desc->session)
        TRY(add_program(p, desc->session));
    json_close(&p->json, ']');
    json_close(&p->json, '}');
    return RLX_OK;
}

/* ---- the file ---- */

/* JSON in an HTML file: nothing in it looks like a tag or a character reference. */
static void add_safely(struct text *out, rlx_str s)
{
    for (size_t i = 0; i < s.len;) {
        size_t plain = i;
        while (plain < s.len && s.ptr[plain] != '<' && s.ptr[plain] != '>' && s.ptr[plain] != '&')
            plain++;
        text_add(out, (rlx_str){s.ptr + i, plain - i});
        if (plain < s.len)
            text_addf(out, "\\u%04x", (unsigned)s.ptr[plain]);
        i = plain + 1;
    }
}

/* The page with its marks replaced. */
static void assemble(struct text *out, rlx_str data)
{
    static const unsigned char *const scripts[] = {page_file_model_js, page_file_layout_js,
                                                   page_file_draw_js, page_file_page_js};
    const char *at = (const char *)page_file_page_html, *mark;

    while ((mark = strchr(at, '@'))) {
        text_add(out, (rlx_str){at, (size_t)(mark - at)});
        const char *end = strchr(mark + 1, '@');
        if (strncmp(mark, "@CSS@", 5) == 0) {
            text_add(out, rlx_cstr((const char *)page_file_page_css));
        } else if (strncmp(mark, "@DATA@", 6) == 0) {
            add_safely(out, data);
        } else {
            text_add(out, STR("\"use strict\";\n"));
            for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++)
                text_add(out, rlx_cstr((const char *)scripts[i]));
        }
        at = end + 1;
    }
    text_add(out, rlx_cstr(at));
}

static rlx_status check(const struct rlx_model *m, const rlx_page_desc *desc, struct diag *d)
{
    TRY(model_is_whole(m, "be shown on one page", d));
    if (desc->session && desc->session->model != m)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "the session is another model's");
    if (desc->session && !desc->session->current)
        return diag_fail(d, RLX_ERROR_STATE, "the model has symbolic dims: prepare the session");
    return RLX_OK;
}

rlx_status page_print(const struct rlx_model *m, const rlx_page_desc *desc, struct text *out,
                      struct diag *d)
{
    struct text data;
    struct arena arena;

    TRY(check(m, desc, d));
    text_init(&data, &m->ctx->mem);
    arena_init(&arena, &m->ctx->mem);
    struct page p = {.desc = desc, .arena = &arena, .diag = d};
    json_init(&p.json, &data);
    rlx_status s = add_data(&p, m);
    if (s == RLX_OK && data.failed)
        s = diag_no_memory(d, data.len);
    if (s == RLX_OK)
        assemble(out, (rlx_str){data.at, data.len});
    arena_free(&arena);
    text_free(&data);
    return s;
}
