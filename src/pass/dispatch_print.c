/* dispatch_print.c: a dispatch report as a table and as JSON. */
#include "base/json.h"
#include "pass/dispatch.h"

static const char *const policies[] = {"auto", "common", "native"};
static const char *const paths[] = {"native", "common", "rewritten", "unsupported"};

void dispatch_print(const struct dispatch_report *r, struct text *out)
{
    text_addf(out, "%s, policy %s, kernels for %zu ops: %s\n\n", r->backend, policies[r->policy],
              r->claims, r->compile_ready ? "everything runs" : "some of it cannot run");
    text_addf(out, "%-32s %6s  %-12s %s\n", "op", "nodes", "path", "handled by");
    for (size_t i = 0; i < r->row_count; i++) {
        const struct dispatch_row *row = &r->row[i];
        text_addf(out, "%-32s %6zu  %-*s", op_info(row->op)->name, row->count,
                  row->rewriter || row->logical ? 12 : 0, paths[row->path]);
        text_addf(out, "%s%s%s\n", row->rewriter ? " " : "", row->rewriter ? row->rewriter : "",
                  row->logical ? " (logical)" : "");
    }
    if (r->offender_count)
        text_addf(out, "\nwithout a kernel\n");
    for (size_t i = 0; i < r->offender_count; i++) {
        const struct dispatch_offender *o = &r->offender[i];
        text_addf(out, "  node %d of graph %d %s%.*s: %s", o->node, o->graph,
                  o->label.len ? "%" : "", STR_ARG(o->label), op_info(o->op)->name);
        text_addf(out, "%s%.*s%s\n", o->custom.len ? " \"" : "", STR_ARG(o->custom),
                  o->custom.len ? "\": needs a kernel in its rlx_custom_op" : "");
    }
}

static void print_row(struct json *j, const struct dispatch_row *row)
{
    json_open(j, '{');
    json_key(j, "op");
    json_str(j, rlx_cstr(op_info(row->op)->name));
    json_key(j, "count");
    json_i64(j, (int64_t)row->count);
    json_key(j, "path");
    json_str(j, rlx_cstr(paths[row->path]));
    json_key(j, "logical");
    json_str(j, row->logical ? rlx_cstr(op_info(row->op)->name) : (rlx_str){NULL, 0});
    json_key(j, "rewriter");
    json_str(j, row->rewriter ? rlx_cstr(row->rewriter) : (rlx_str){NULL, 0});
    json_close(j, '}');
}

static void print_offender(struct json *j, const struct dispatch_offender *o)
{
    json_open(j, '{');
    json_key(j, "graph");
    json_i64(j, o->graph);
    json_key(j, "node");
    json_i64(j, o->node);
    json_key(j, "op");
    json_str(j, rlx_cstr(op_info(o->op)->name));
    json_key(j, "label");
    json_str(j, o->label);
    json_key(j, "custom");
    json_str(j, o->custom);
    json_close(j, '}');
}

void dispatch_print_json(const struct dispatch_report *r, struct text *out)
{
    struct json j;

    json_init(&j, out);
    json_open(&j, '{');
    json_key(&j, "backend");
    json_str(&j, rlx_cstr(r->backend));
    json_key(&j, "policy");
    json_str(&j, rlx_cstr(policies[r->policy]));
    json_key(&j, "claims");
    json_i64(&j, (int64_t)r->claims);
    json_key(&j, "compile_ready");
    json_bool(&j, r->compile_ready);
    json_key(&j, "ops");
    json_open(&j, '[');
    for (size_t i = 0; i < r->row_count; i++)
        print_row(&j, &r->row[i]);
    json_close(&j, ']');
    json_key(&j, "common");
    json_open(&j, '[');
    for (size_t i = 0; i < r->row_count; i++)
        if (r->row[i].path == DISPATCH_COMMON)
            json_str(&j, rlx_cstr(op_info(r->row[i].op)->name));
    json_close(&j, ']');
    json_key(&j, "offenders");
    json_open(&j, '[');
    for (size_t i = 0; i < r->offender_count; i++)
        print_offender(&j, &r->offender[i]);
    json_close(&j, ']');
    json_close(&j, '}');
    text_add(out, STR("\n"));
}
