/* report.c: sorting, naming and measuring for the three ways to show a plan. */
#include "plan/report.h"

#include <stdlib.h>
#include <string.h>

const char *const report_region[REGION_COUNT] = {"weights", "consts", "acts", "state", "copies"};

static int by_offset(const void *a, const void *b)
{
    const struct value *x = *(const struct value *const *)a, *y = *(const struct value *const *)b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->birth != y->birth)
        return x->birth < y->birth ? -1 : 1;
    return (x > y) - (x < y); /* of one array */
}

bool report_begin(struct report *r, const struct plan *p, plan_name name, void *user,
                  struct text *out, bool views)
{
    const struct steps *s = p->steps;

    *r = (struct report){.p = p, .name = name, .user = user, .out = out};
    if (!size_mul(s->value_count + 1, sizeof *r->value, &r->bytes) ||
        !(r->value = mem_alloc(out->mem, r->bytes))) {
        out->failed = true;
        return false;
    }
    for (size_t i = 0; i < s->value_count; i++) {
        const struct value *v = &s->value[i];
        if (v->region == REGION_ACTS && v->bytes > 0 && (views || v->root == (int32_t)i))
            r->value[r->count++] = v;
    }
    qsort(r->value, r->count, sizeof *r->value, by_offset);
    return true;
}

void report_end(struct report *r)
{
    mem_free(r->out->mem, r->value, r->bytes);
}

int32_t report_id(const struct report *r, const struct value *v)
{
    return (int32_t)(v - r->p->steps->value);
}

rlx_str report_name(const struct report *r, const struct value *v)
{
    rlx_str none = {"", 0};
    if (!r->name || v->node < 0)
        return none;
    rlx_str s = r->name(r->user, v->node);
    return s.ptr ? s : none;
}

void report_add_name(const struct report *r, const struct value *v)
{
    rlx_str s = report_name(r, v);
    size_t from = 0;

    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.ptr[i] >= 0x20 && s.ptr[i] != 0x7f)
            continue;
        text_add(r->out, (rlx_str){s.ptr + from, i - from});
        text_add(r->out, STR("?"));
        from = i + 1;
    }
    text_add(r->out, (rlx_str){s.ptr + from, s.len - from});
}

void report_node(const struct report *r, const struct value *v)
{
    if (v->node >= 0)
        text_addf(r->out, "%%%d", v->node);
    else
        text_add(r->out, STR("scratch"));
}

void report_bytes(struct text *out, uint64_t bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    unsigned u = 0;

    while (u < 6 && bytes >> (10 * (u + 1)))
        u++;
    unsigned long long whole = bytes >> (10 * u);
    if (u == 0 || (bytes & ((UINT64_C(1) << (10 * u)) - 1)) == 0) {
        text_addf(out, "%llu %s", whole, unit[u]);
        return;
    }
    uint64_t part = (bytes >> (10 * (u - 1))) & 1023;
    text_addf(out, "%llu.%02llu %s", whole, (unsigned long long)(part * 100 / 1024), unit[u]);
}

uint64_t report_total(const struct plan *p)
{
    uint64_t sum = 0;

    for (int i = 0; i < REGION_COUNT; i++)
        if (__builtin_add_overflow(sum, p->held[i], &sum))
            return UINT64_MAX;
    return sum;
}

size_t report_peak(const struct report *r, const struct value **out, size_t max)
{
    const struct value *all = r->p->steps->value;
    int32_t peak = r->p->peak;
    size_t n = 0;

    for (size_t i = 0; i < r->count; i++) {
        const struct value *v = r->value[i];
        if (report_id(r, v) != v->root || v->birth > peak || v->death < peak)
            continue;
        if (v->shares >= 0 && all[v->shares].death >= peak)
            continue; /* this very step hands the slot over: it is counted once */
        size_t at = n < max ? n : max;
        while (at > 0 && out[at - 1]->bytes < v->bytes)
            at--;
        if (at == max)
            continue;
        n = n < max ? n + 1 : max;
        memmove(&out[at + 1], &out[at], (n - at - 1) * sizeof *out);
        out[at] = v;
    }
    return n;
}
