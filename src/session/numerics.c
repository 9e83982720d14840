/* numerics.c: the first NaN or Inf of a run, and what led to it.
 *
 * Right after each step its results are read back in pieces and counted. The counts of every value
 * are kept to the end of the run, so that the operands of the first step that went wrong can be
 * shown even where their bytes have been taken over since. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "run/convert.h"
#include "session/observe.h"

static rlx_dtype dtype_of(const struct rlx_session *s, int32_t value)
{
    const struct value *v = &s->current->steps->value[value];

    return ir_type_of(ir_entry(s->current->mod), v->node)->dtype;
}

void stats_of_value(struct rlx_session *s, int32_t value, struct scan *scan)
{
    struct backend *b = s->device->backend;
    struct span span = program_span(s->current, value), part = span;
    rlx_dtype dtype = dtype_of(s, value);
    size_t size = rlx_dtype_size(dtype), room = sizeof s->observer->chunk / size * size;

    scan_begin(scan);
    for (uint64_t at = 0; at + size <= span.bytes; at += part.bytes) {
        part.offset = span.offset + at;
        part.bytes = span.bytes - at < room ? (span.bytes - at) / size * size : room;
        if (b->ops->read(b, part, s->observer->chunk, NULL) != RLX_OK)
            return;
        scan_add(scan, dtype, s->observer->chunk, (size_t)part.bytes / size);
    }
}

static void name_value(const struct ir_graph *g, const struct ir_node *n, char *out, size_t size)
{
    rlx_str leaf = ir_leaf_name(n), name = n->label.len ? n->label : leaf;

    if (name.len)
        snprintf(out, size, "%.*s", STR_ARG(name));
    else
        snprintf(out, size, "%s#%d", op_info(n->op)->name, ir_id(g, n));
}

void stats_describe(const struct rlx_session *s, int32_t value, const struct scan *scan,
                    rlx_value_stats *out)
{
    const struct ir_graph *g = ir_entry(s->current->mod);
    const struct ir_node *n = ir_node(g, s->current->steps->value[value].node);

    *out = (rlx_value_stats){.node = ir_id(g, n), .dtype = n->type.dtype, .rank = n->type.rank};
    name_value(g, n, out->name, sizeof out->name);
    snprintf(out->op, sizeof out->op, "%s", op_info(n->op)->name);
    for (int32_t i = 0; i < n->type.rank; i++)
        out->dim[i] = dim_is_static(n->type.dim[i]) ? n->type.dim[i] : -1;
    out->first_index = -1;
    if (!scan)
        return;
    bool any = scan->min <= scan->max;
    out->known = true;
    out->count = scan->count;
    out->nan_count = scan->nan;
    out->inf_count = scan->inf;
    out->nonzero = scan->nonzero;
    out->first_index = scan->first_bad;
    out->min = any ? scan->min : 0;
    out->max = any ? scan->max : 0;
    out->max_abs = scan->max_abs;
}

/* The first bad element with two either side. */
static void look_around(struct rlx_session *s, int32_t value, rlx_value_stats *out)
{
    int64_t first = out->first_index > 2 ? out->first_index - 2 : 0;
    int64_t last = out->first_index + 3;
    struct diag quiet;

    last = last < (int64_t)out->count ? last : (int64_t)out->count;
    out->around_first = first;
    diag_init(&quiet, "numerics");
    if (observe_peek(s, s->current->steps->value[value].node, (uint64_t)first,
                     (size_t)(last - first), out->around, &quiet) == RLX_OK)
        out->around_count = (int32_t)(last - first);
}

/* ---- the first step that went wrong ---- */

/* Counts of an operand: those taken when it was made; a leaf, or a view of one, is looked at now,
 * as nothing overwrites it during a run. */
static bool operand_scan(struct rlx_session *s, int32_t value, struct scan *out)
{
    const struct steps *steps = s->current->steps;
    const struct value *v = &steps->value[value], *root = &steps->value[v->root];
    const struct record *record = s->observer->record;
    bool leaf =
        root->node >= 0 && op_is(ir_node(ir_entry(s->current->mod), root->node)->op, OP_LEAF);

    if (record[value].known)
        *out = record[value].scan;
    else if (leaf && v->node >= 0)
        stats_of_value(s, value, out);
    else if (record[v->root].known)
        *out = record[v->root].scan;
    else
        return false;
    return true;
}

static void describe_operands(struct rlx_session *s, const struct step *st)
{
    const struct steps *steps = s->current->steps;
    rlx_numerics *f = s->observer->now;
    struct scan scan;

    for (uint32_t i = 0; i < st->count && f->operand_count < RLX_NUMERICS_OPERANDS; i++) {
        const struct operand *o = &steps->operand[st->first + i];
        if (o->role == ROLE_WRITE || steps->value[o->value].node < 0)
            continue;
        bool known = operand_scan(s, o->value, &scan);
        stats_describe(s, o->value, known ? &scan : NULL, &f->operand[f->operand_count++]);
    }
}

static void note_bad(struct rlx_session *s, int32_t step, int32_t value, const struct scan *scan)
{
    const struct step *st = &s->current->steps->step[step];
    struct observer *o = s->observer;
    rlx_numerics *f = o->now;

    if (f->step < 0) {
        f->step = step;
        f->step_name = st->name;
        describe_operands(s, st);
        if (o->previous >= 0) {
            stats_describe(s, o->previous, &o->record[o->previous].scan, &f->previous);
            f->has_previous = true;
        }
    }
    if (f->bad_count < RLX_NUMERICS_SHOWN) {
        stats_describe(s, value, scan, &f->bad[f->bad_count]);
        look_around(s, value, &f->bad[f->bad_count++]);
    }
    f->bad_values++;
}

void numerics_begin(struct rlx_session *s, const struct flight *f)
{
    struct observer *o = s->observer;

    o->now = &o->found[f - s->flight];
    *o->now = (rlx_numerics){.step = -1};
    o->previous = -1;
}

void numerics_step(struct rlx_session *s, int32_t step)
{
    const struct steps *steps = s->current->steps;
    const struct step *st = &steps->step[step];
    struct observer *o = s->observer;

    o->now->steps++;
    for (uint32_t i = 0; i < st->count; i++) {
        const struct operand *w = &steps->operand[st->first + i];
        if (w->role == ROLE_READ || steps->value[w->value].node < 0)
            continue;
        struct record r = {.known = true};
        stats_of_value(s, w->value, &r.scan);
        if (!scan_is_finite(&r.scan))
            note_bad(s, step, w->value, &r.scan);
        else if (r.scan.count && dtype_is(dtype_of(s, w->value), CLASS_F | CLASS_C))
            o->previous = w->value;
        o->record[w->value] = r;
    }
}

static void log_line(void *user, const char *text, size_t len)
{
    context_log_text(user, 1, (rlx_str){text, len});
}

rlx_status numerics_end(struct rlx_session *s, const struct flight *flight, rlx_status so_far,
                        struct diag *d)
{
    struct observer *o = s->observer;
    const rlx_numerics *f = &o->last;

    o->last = o->found[flight - s->flight];
    if (so_far != RLX_OK || f->step < 0)
        return so_far;
    const struct step *st = &flight->program->steps->step[f->step];
    if (o->mode == RLX_NUMERICS_REPORT) {
        numerics_print(f, log_line, s->model->ctx);
        return RLX_OK;
    }
    diag_at(d, st->name, st->node, ir_node(ir_entry(flight->program->mod), st->node)->label);
    return diag_fail(
        d, RLX_ERROR_NUMERIC,
        "step %d (%s) is the first to give NaN or Inf: %llu NaN and %llu Inf among %llu "
        "elements of %s, the first at %lld",
        f->step, st->name, (unsigned long long)f->bad[0].nan_count,
        (unsigned long long)f->bad[0].inf_count, (unsigned long long)f->bad[0].count,
        f->bad[0].name, (long long)f->bad[0].first_index);
}

/* ---- for people ---- */

struct writer {
    rlx_write_fn write;
    void *user;
};

__attribute__((format(printf, 2, 3))) static void put(const struct writer *w, const char *fmt, ...)
{
    char line[512];
    va_list args;

    va_start(args, fmt);
    int len = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (len > 0)
        w->write(w->user, line, (size_t)len < sizeof line ? (size_t)len : sizeof line - 1);
}

static const char *number(char out[32], double v)
{
    str_from_f32(out, (float)v);
    return out;
}

static const char *shape_text(const rlx_value_stats *v, char *out, size_t size)
{
    size_t len = (size_t)snprintf(out, size, "%s[", rlx_dtype_name(v->dtype));

    for (int32_t i = 0; i < v->rank && len < size; i++)
        len +=
            (size_t)snprintf(out + len, size - len, "%s%lld", i ? "," : "", (long long)v->dim[i]);
    if (len < size)
        snprintf(out + len, size - len, "]");
    return out;
}

/* A line at a time: whoever listens may take it for one. */
static void put_range(const struct writer *w, const char *what, const rlx_value_stats *v)
{
    char shape[128], lo[32], hi[32], most[32];

    shape_text(v, shape, sizeof shape);
    if (!v->known)
        put(w, "  %s %s (%s) %s: not looked at\n", what, v->name, v->op, shape);
    else
        put(w, "  %s %s (%s) %s: min %s, max %s, |max| %s, %llu NaN, %llu Inf of %llu\n", what,
            v->name, v->op, shape, number(lo, v->min), number(hi, v->max), number(most, v->max_abs),
            (unsigned long long)v->nan_count, (unsigned long long)v->inf_count,
            (unsigned long long)v->count);
}

static void put_bad(const struct writer *w, const rlx_value_stats *v)
{
    char shape[128], text[32], line[256];
    size_t len = 0;

    for (int32_t i = 0; i < v->around_count; i++)
        len += (size_t)snprintf(line + len, sizeof line - len, " %s", number(text, v->around[i]));
    put(w, "  %s (%s) %s: %llu NaN, %llu Inf of %llu, the first at %lld; from %lld on:%.*s\n",
        v->name, v->op, shape_text(v, shape, sizeof shape), (unsigned long long)v->nan_count,
        (unsigned long long)v->inf_count, (unsigned long long)v->count, (long long)v->first_index,
        (long long)v->around_first, (int)len, line);
}

void numerics_print(const rlx_numerics *n, rlx_write_fn write, void *user)
{
    struct writer w = {write, user};

    if (n->step < 0) {
        put(&w, "numerics: clean; %llu steps were looked at\n", (unsigned long long)n->steps);
        return;
    }
    put(&w, "numerics: step %d (%s) is the first of %llu values with NaN or Inf\n", n->step,
        n->step_name, (unsigned long long)n->bad_values);
    for (int32_t i = 0; i < n->bad_count; i++)
        put_bad(&w, &n->bad[i]);
    for (int32_t i = 0; i < n->operand_count; i++)
        put_range(&w, "operand", &n->operand[i]);
    if (n->has_previous)
        put_range(&w, "last finite value:", &n->previous);
}

rlx_status numerics_of(struct rlx_session *s, rlx_numerics *out, struct diag *d)
{
    struct session_list l = s->kind->parts(&s);
    size_t i = 0;

    if (!s->observer || s->observer->mode == RLX_NUMERICS_OFF)
        return diag_fail(d, RLX_ERROR_STATE, "the session was made without check_numerics");
    while (i + 1 < l.count && l.at[i]->observer->last.step < 0)
        i++; /* the first part that has something to show */
    *out = l.at[i]->observer->last;
    return RLX_OK;
}
