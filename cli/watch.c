/* watch.c: see watch.h. */
#include "watch.h"

#include <stdlib.h>
#include <string.h>

void watch_note(void *user, const rlx_watch_event *e)
{
    struct watch *w = user;
    const rlx_value_stats *v = &e->value;

    if (strcmp(v->op, "reshape") == 0 || strcmp(v->op, "cast") == 0)
        return;
    if (w->count == w->cap) {
        size_t cap = w->cap * 2 + 64;
        struct watch_row *more = realloc(w->row, cap * sizeof *more);
        w->failed = w->failed || !more;
        if (!more)
            return;
        w->row = more;
        w->cap = cap;
    }
    struct watch_row *r = &w->row[w->count++];
    *r = (struct watch_row){.node = v->node,
                            .max_abs = v->max_abs,
                            .nonzero = v->nonzero,
                            .count = v->count,
                            .bad = v->nan_count + v->inf_count};
    memcpy(r->name, v->name, sizeof r->name);
    memcpy(r->op, v->op, sizeof r->op);
    r->has_at = w->flat >= 0 && (uint64_t)w->flat < v->count &&
                rlx_session_peek(e->session, v->node, (uint64_t)w->flat, 1, &r->at, NULL) == RLX_OK;
}

static int by_node(const void *a, const void *b)
{
    const struct watch_row *x = a, *y = b;

    return (x->node > y->node) - (x->node < y->node);
}

void watch_print(FILE *out, struct watch *w, int64_t limit)
{
    size_t shown = limit > 0 && (uint64_t)limit < w->count ? (size_t)limit : w->count;

    if (w->count)
        qsort(w->row, w->count, sizeof *w->row, by_node);
    fprintf(out, "%5s %-24s %-20s %12s %20s\n", "node", "op", "name", "max |x|", "not zero");
    for (size_t i = 0; i < shown; i++) {
        const struct watch_row *r = &w->row[i];
        fprintf(out, "%5d %-24s %-20s %12.6g %9llu/%-10llu", r->node, r->op, r->name, r->max_abs,
                (unsigned long long)r->nonzero, (unsigned long long)r->count);
        if (r->bad)
            fprintf(out, " %llu NaN or Inf", (unsigned long long)r->bad);
        if (r->has_at)
            fprintf(out, " [%lld] = %.6g", (long long)w->flat, r->at);
        fputs("\n", out);
    }
    if (shown < w->count)
        fprintf(out, "%zu more\n", w->count - shown);
}

void watch_free(struct watch *w)
{
    free(w->row);
    *w = (struct watch){0};
}
