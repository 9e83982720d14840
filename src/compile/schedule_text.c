/* schedule_text.c: what a program will do, step by kind of step: how often, how many bytes, how
 * much arithmetic. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "compile/reports.h"
#include "ir/cost.h"
#include "ir/phase.h"

struct kind {
    const char *name;
    uint64_t count, read, written, flops;
};

static void note(struct kind *k, const struct program *p, const struct step *st)
{
    const struct steps *s = p->steps;
    const struct ir_graph *g = ir_entry(p->mod);

    k->name = st->name;
    k->count++;
    k->flops += ir_node_flops(g, ir_node(g, st->node));
    for (uint32_t i = 0; i < st->count; i++) {
        const struct operand *o = &s->operand[st->first + i];
        const struct value *v = &s->value[o->value];
        if (v->flags & VALUE_SCRATCH)
            continue;
        k->read += o->role != ROLE_WRITE ? v->bytes : 0;
        k->written += o->role != ROLE_READ ? v->bytes : 0;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct kind *)a)->name, ((const struct kind *)b)->name);
}

/* One kind per step name, sorted; *count of them. NULL: no memory. */
static struct kind *gather(const struct program *p, struct arena *arena, size_t *count)
{
    const struct steps *s = p->steps;
    struct kind *kind = arena_array(arena, struct kind, s->step_count);
    size_t n = 0;

    for (size_t i = 0; kind && i < s->step_count; i++) {
        size_t k = 0;
        while (k < n && strcmp(kind[k].name, s->step[i].name) != 0)
            k++;
        note(&kind[k], p, &s->step[i]);
        n += k == n;
    }
    if (n)
        qsort(kind, n, sizeof *kind, by_name);
    *count = n;
    return kind;
}

/* How many nodes are in each phase; false: no memory. */
static bool count_phases(const struct program *p, struct arena *arena, size_t count[PHASE_COUNT])
{
    const struct ir_graph *g = ir_entry(p->mod);
    enum ir_phase *phase = arena_array(arena, enum ir_phase, g->node.len);

    if (!phase)
        return false;
    ir_phases(g, phase);
    for (size_t i = 0; i < g->node.len; i++)
        count[phase[i]]++;
    return true;
}

static double plan_ratio(const struct plan *p)
{
    return p->lower_bound ? (double)p->held[REGION_ACTS] / (double)p->lower_bound : 1;
}

static void print_kinds(const struct program *p, const struct kind *kind, size_t count,
                        struct text *out)
{
    struct kind sum = {.name = "in all"};

    text_addf(out, "%zu steps, arena %.3f MiB, plan/lower bound %.3f, %u in place\n",
              p->steps->step_count, (double)p->plan->held[REGION_ACTS] / 1048576,
              plan_ratio(p->plan), p->plan->in_place);
    text_addf(out, "%7s  %-32s %12s %12s %12s\n", "count", "step", "kB read", "kB written",
              "MFLOP");
    for (size_t i = 0; i <= count; i++) {
        const struct kind *k = i < count ? &kind[i] : &sum;
        text_addf(out, "%5llu x  %-32s %12.3f %12.3f %12.3f\n", (unsigned long long)k->count,
                  k->name, (double)k->read / 1e3, (double)k->written / 1e3, (double)k->flops / 1e6);
        sum.count += k->count;
        sum.read += k->read;
        sum.written += k->written;
        sum.flops += k->flops;
    }
}

void schedule_text(const struct program *p, struct text *out)
{
    struct arena arena;
    size_t count, nodes[PHASE_COUNT] = {0};

    arena_init(&arena, p->mem);
    struct kind *kind = gather(p, &arena, &count);
    out->failed |= !kind || !count_phases(p, &arena, nodes);
    if (!out->failed) {
        print_kinds(p, kind, count, out);
        text_addf(out, "nodes: %zu prologue, %zu steady, %zu epilogue\n", nodes[PHASE_PROLOGUE],
                  nodes[PHASE_STEADY], nodes[PHASE_EPILOGUE]);
    }
    arena_free(&arena);
}

static void json_number(struct json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_i64(j, v < INT64_MAX ? (int64_t)v : INT64_MAX);
}

void schedule_json(const struct program *p, struct text *out)
{
    struct arena arena;
    struct json j;
    size_t count, nodes[PHASE_COUNT] = {0};

    arena_init(&arena, p->mem);
    struct kind *kind = gather(p, &arena, &count);
    out->failed |= !kind || !count_phases(p, &arena, nodes);
    json_init(&j, out);
    json_open(&j, '{');
    json_number(&j, "steps", p->steps->step_count);
    json_number(&j, "arena", p->plan->held[REGION_ACTS]);
    json_number(&j, "lower_bound", p->plan->lower_bound);
    json_number(&j, "in_place", p->plan->in_place);
    json_number(&j, "prologue_nodes", nodes[PHASE_PROLOGUE]);
    json_number(&j, "steady_nodes", nodes[PHASE_STEADY]);
    json_number(&j, "epilogue_nodes", nodes[PHASE_EPILOGUE]);
    json_key(&j, "kinds");
    json_open(&j, '[');
    for (size_t i = 0; kind && i < count; i++) {
        json_open(&j, '{');
        json_key(&j, "step");
        json_str(&j, rlx_cstr(kind[i].name));
        json_number(&j, "count", kind[i].count);
        json_number(&j, "bytes_read", kind[i].read);
        json_number(&j, "bytes_written", kind[i].written);
        json_number(&j, "flops", kind[i].flops);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    text_add(out, STR("\n"));
    arena_free(&arena);
}
