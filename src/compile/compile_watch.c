/* compile_watch.c: see compile_watch.h. */
#include "compile/compile_watch.h"

#include <stdio.h>
#include <string.h>

#include "base/diff.h"
#include "base/file.h"
#include "compile/reports.h"
#include "context/trace.h"
#include "ir/text/text.h"

static int64_t verbosity(const struct compile_watch *w)
{
    return w->ctx->log ? context_flag(w->ctx, FLAG_VERBOSE)->number : 0;
}

/* Is it asked for, and does anybody listen? */
static bool reports(const struct compile_watch *w, enum flag_id id)
{
    return w->ctx->log && context_flag(w->ctx, id)->on;
}

static const char *dump_path(const struct compile_watch *w)
{
    return context_flag(w->ctx, FLAG_IR_DUMP)->text;
}

static void span(struct compile_watch *w, const char *name, uint64_t start)
{
    trace_span(w->ctx->trace, name, start, 0,
               &(struct trace_args){.category = w->backend->ops->name});
    w->last = trace_now(w->ctx->trace);
}

void compile_watch_begin(struct compile_watch *w, const struct rlx_context *ctx,
                         struct backend *backend, const struct target *target,
                         const struct pass_options *options, const struct joint_options *joint)
{
    *w = (struct compile_watch){
        .ctx = ctx, .backend = backend, .target = target, .options = options, .joint = joint};
    text_init(&w->before, &ctx->mem);
    text_init(&w->dump, &ctx->mem);
    w->start = w->last = trace_now(ctx->trace);
}

static void print_graph(const struct ir_module *mod, struct text *out)
{
    struct diag d;

    diag_init(&d, "dump");
    ir_print(mod, &(struct text_print_options){.elide = true, .types = true}, out, &d);
}

static void log_graph(const struct compile_watch *w, const char *title, const struct ir_module *mod)
{
    struct text t;

    if (verbosity(w) < 2)
        return;
    text_init(&t, &w->ctx->mem);
    text_addf(&t, "%s\n", title);
    print_graph(mod, &t);
    if (!t.failed)
        context_log_text(w->ctx, 3, (rlx_str){t.at, t.len});
    text_free(&t);
}

/* Passes change it, and what they were given is what reports are about. */
static void keep_built(struct compile_watch *w, const struct ir_module *mod)
{
    struct diag d;

    diag_init(&d, "report");
    if (*dump_path(w) || verbosity(w) || reports(w, FLAG_FUSION_REPORT) ||
        reports(w, FLAG_DISPATCH_REPORT))
        ir_module_copy(mod, &w->ctx->mem, &w->built, &d);
}

void compile_watch_bound(struct compile_watch *w, const struct ir_module *mod)
{
    span(w, "bind", w->last);
    log_graph(w, "graph as built:", mod);
    if (*dump_path(w))
        print_graph(mod, &w->before);
    keep_built(w, mod);
}

void compile_watch_pass(void *user, const struct pass *pass, const struct ir_module *m,
                        uint64_t changes)
{
    struct compile_watch *w = user;
    char line[160];

    span(w, pass->name, w->last);
    if (verbosity(w) < 1)
        return;
    snprintf(line, sizeof line, "pass %s: %llu changes, %zu nodes", pass->name,
             (unsigned long long)changes, ir_entry(m)->node.len);
    context_log(w->ctx, 2, "%s", line);
}

/* ---- the dump ---- */

static void count_ops(const struct ir_module *mod, struct text *out)
{
    for (int op = 0; op < RLX_OP_count; op++) {
        size_t count = 0;
        for (size_t i = 0; i < mod->graph.len; i++)
            IR_EACH(n, mod->graph.at[i])
                count += n->op == (rlx_op)op;
        if (count)
            text_addf(out, "%6zu  %s\n", count, op_info((rlx_op)op)->name);
    }
}

void compile_watch_passed(struct compile_watch *w, const struct ir_module *mod)
{
    struct text after;
    struct diag d;

    log_graph(w, "graph after all passes:", mod);
    if (!*dump_path(w) || w->before.failed)
        return;
    diag_init(&d, "dump");
    text_init(&after, &w->ctx->mem);
    print_graph(mod, &after);
    text_addf(&w->dump, "==== graph as built\n\n");
    text_add(&w->dump, (rlx_str){w->before.at, w->before.len});
    text_addf(&w->dump, "\n==== what the passes changed\n\n");
    if (!after.failed)
        diff_lines((rlx_str){w->before.at, w->before.len}, (rlx_str){after.at, after.len},
                   "as built", "optimised", &w->ctx->mem, &w->dump, &d);
    text_addf(&w->dump, "\n==== optimised graph\n\n");
    text_add(&w->dump, (rlx_str){after.at, after.len});
    text_addf(&w->dump, "\n==== fusion\n\n");
    fusion_text(w->built, w->target, w->options, w->joint, w->backend, &w->dump);
    text_addf(&w->dump, "\n==== ops\n\n");
    count_ops(mod, &w->dump);
    text_free(&after);
}

/* "dir/" means a file in it, named after the graph; the graph's name comes from a stranger. */
static void file_name(const struct compile_watch *w, const struct ir_graph *g, char *out,
                      size_t size)
{
    const char *path = dump_path(w);
    size_t len = strlen(path);
    rlx_str name = g->name.len ? g->name : STR("main");

    if (path[len - 1] != '/' || len + 120 > size) {
        snprintf(out, size, "%s", path);
        return;
    }
    snprintf(out, size, "%s", path);
    size_t at = len;
    for (size_t i = 0; i < name.len && i < 100 && at + 8 < size; i++) {
        char c = name.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        out[at++] = plain || c == '-' ? c : '_';
    }
    snprintf(out + at, size - at, ".ir.txt");
}

static void write_dump(struct compile_watch *w, const struct program *p)
{
    char path[1024];
    struct diag d;

    text_addf(&w->dump, "\n==== schedule\n\n");
    schedule_text(p, &w->dump);
    text_addf(&w->dump, "\n==== plan\n\n");
    plan_print(p->plan, plan_node_name, ir_entry(p->mod), &w->dump);
    if (w->dump.failed)
        return;
    diag_init(&d, "dump");
    file_name(w, ir_entry(p->mod), path, sizeof path);
    if (file_write(path, w->dump.at, w->dump.len, &d) != RLX_OK)
        context_log(w->ctx, 1, "%s", d.first.message);
}

/* ---- the end ---- */

static void log_program(const struct compile_watch *w, const struct program *p)
{
    char line[160];

    snprintf(line, sizeof line, "compiled %zu steps; activations %llu bytes, lower bound %llu",
             p->steps->step_count, (unsigned long long)p->plan->held[REGION_ACTS],
             (unsigned long long)p->plan->lower_bound);
    context_log(w->ctx, 2, "%s", line);
}

static void log_recomputed(const struct compile_watch *w, const struct recompute_report *r)
{
    char line[200];

    if (r->bytes_kept == 0)
        return;
    snprintf(line, sizeof line,
             "%zu nodes run again, %.1f %% more arithmetic: %llu bytes alive at once, not %llu",
             r->nodes, r->flops_once ? 100 * (double)r->flops / (double)r->flops_once : 0,
             (unsigned long long)r->bytes, (unsigned long long)r->bytes_kept);
    context_log(w->ctx, 2, "%s", line);
}

static void log_schedule(const struct compile_watch *w, const struct program *p)
{
    struct text t;

    if (!reports(w, FLAG_GPU_SCHEDULE) && !reports(w, FLAG_DISPATCH_REPORT))
        return;
    text_init(&t, &w->ctx->mem);
    schedule_text(p, &t);
    if (!t.failed)
        context_log_text(w->ctx, 2, (rlx_str){t.at, t.len});
    text_free(&t);
}

static void log_reports(const struct compile_watch *w)
{
    struct text t;

    text_init(&t, &w->ctx->mem);
    if (reports(w, FLAG_FUSION_REPORT))
        fusion_text(w->built, w->target, w->options, w->joint, w->backend, &t);
    if (reports(w, FLAG_DISPATCH_REPORT) || verbosity(w))
        dispatch_text(w->built, w->target, w->options, &t);
    if (!t.failed && t.len)
        context_log_text(w->ctx, 2, (rlx_str){t.at, t.len});
    text_free(&t);
}

void compile_watch_end(struct compile_watch *w, const struct compiled_program *made)
{
    if (made) {
        const struct program *p = made->program;
        span(w, "select, plan and load", w->last);
        log_program(w, p);
        log_recomputed(w, &made->recomputed);
        log_reports(w);
        log_schedule(w, p);
        if (*dump_path(w))
            write_dump(w, p);
    }
    span(w, "compile", w->start);
    ir_module_destroy(w->built);
    text_free(&w->before);
    text_free(&w->dump);
}
