/* print.c: a plan as text, a line per value by offset, and as JSON. */
#include "base/json.h"
#include "plan/report.h"
#include "plan/segments.h"

enum { PEAK_LINES = 10 };

static void print_note(const struct report *r, const struct value *v)
{
    const struct value *all = r->p->steps->value;
    if (report_id(r, v) != v->root) {
        text_add(r->out, STR("view of "));
        report_node(r, &all[v->root]);
    } else if (v->shares >= 0) {
        text_add(r->out, STR("in place of "));
        report_node(r, &all[v->shares]);
    } else if (v->flags & VALUE_INPUT) {
        text_add(r->out, STR("input"));
    } else if (v->flags & VALUE_OUTPUT) {
        text_add(r->out, STR("output"));
    }
}

static void print_values(const struct report *r)
{
    text_add(r->out, STR("offset\tsize\tnode\tname\tsteps\tnote\n"));
    for (size_t i = 0; i < r->count; i++) {
        const struct value *v = r->value[i];
        text_addf(r->out, "%llu\t%llu\t", (unsigned long long)v->offset,
                  (unsigned long long)v->bytes);
        report_node(r, v);
        text_add(r->out, STR("\t"));
        report_add_name(r, v);
        text_addf(r->out, "\t%d-%d\t", v->birth, v->death);
        print_note(r, v);
        text_add(r->out, STR("\n"));
    }
}

static void print_peak(const struct report *r)
{
    const struct value *top[PEAK_LINES];
    size_t n = report_peak(r, top, PEAK_LINES);

    text_addf(r->out, "# peak: %llu bytes live at step %d", (unsigned long long)r->p->lower_bound,
              r->p->peak);
    text_add(r->out, n ? STR("; the largest:\n") : STR("\n"));
    for (size_t i = 0; i < n; i++) {
        text_addf(r->out, "# %llu\t", (unsigned long long)top[i]->bytes);
        report_node(r, top[i]);
        text_add(r->out, STR("\t"));
        report_add_name(r, top[i]);
        text_add(r->out, STR("\n"));
    }
}

static uint64_t saved(const struct plan *p)
{
    uint64_t arena = p->held[REGION_ACTS];
    return p->unshared > arena ? p->unshared - arena : 0;
}

void plan_print(const struct plan *p, plan_name name, void *user, struct text *out)
{
    struct report r;

    if (!report_begin(&r, p, name, user, out, true))
        return;
    text_addf(out, "# arena_size=%llu total_unshared=%llu saved=%llu lower_bound=%llu\n",
              (unsigned long long)p->held[REGION_ACTS], (unsigned long long)p->unshared,
              (unsigned long long)saved(p), (unsigned long long)p->lower_bound);
    text_addf(out, "# align=%llu method=%s in_place=%u", (unsigned long long)p->align,
              p->method ? p->method : "none", p->in_place);
    for (int i = 0; i < REGION_COUNT; i++)
        if (i != REGION_ACTS)
            text_addf(out, " %s=%llu", report_region[i], (unsigned long long)p->held[i]);
    text_addf(out, " total=%llu", (unsigned long long)report_total(p));
    if (p->segment)
        text_addf(out, " buffers=%zu", segment_count(p->segment, p->size[REGION_ACTS]));
    text_add(out, STR("\n"));
    print_values(&r);
    print_peak(&r);
    report_end(&r);
}

/* ---- JSON ---- */

static void json_bytes(struct json *j, const char *key, uint64_t bytes)
{
    json_key(j, key);
    json_i64(j, bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes);
}

static void json_int(struct json *j, const char *key, int64_t v)
{
    json_key(j, key);
    json_i64(j, v);
}

static void json_value(const struct report *r, struct json *j, const struct value *v)
{
    int32_t id = report_id(r, v);
    rlx_str name = report_name(r, v);

    json_open(j, '{');
    json_int(j, "value", id);
    if (v->node >= 0)
        json_int(j, "node", v->node);
    if (name.len > 0) {
        json_key(j, "name");
        json_str(j, name);
    }
    json_bytes(j, "offset", v->offset);
    json_bytes(j, "bytes", v->bytes);
    json_int(j, "birth", v->birth);
    json_int(j, "death", v->death);
    if (id != v->root)
        json_int(j, "view_of", v->root);
    if (v->shares >= 0)
        json_int(j, "in_place_of", v->shares);
    json_close(j, '}');
}

void plan_print_json(const struct plan *p, plan_name name, void *user, struct text *out)
{
    struct report r;
    struct json j;

    if (!report_begin(&r, p, name, user, out, true))
        return;
    json_init(&j, out);
    json_open(&j, '{');
    json_bytes(&j, "arena_size", p->held[REGION_ACTS]);
    json_bytes(&j, "lower_bound", p->lower_bound);
    json_bytes(&j, "total_unshared", p->unshared);
    json_bytes(&j, "saved", saved(p));
    json_bytes(&j, "align", p->align);
    if (p->segment) {
        json_bytes(&j, "segment", p->segment);
        json_int(&j, "buffers", (int64_t)segment_count(p->segment, p->size[REGION_ACTS]));
    }
    json_int(&j, "peak", p->peak);
    json_int(&j, "in_place", p->in_place);
    json_key(&j, "method");
    json_str(&j, rlx_cstr(p->method));
    json_key(&j, "regions");
    json_open(&j, '{');
    for (int i = 0; i < REGION_COUNT; i++)
        json_bytes(&j, report_region[i], p->held[i]);
    json_close(&j, '}');
    json_bytes(&j, "total", report_total(p));
    json_key(&j, "values");
    json_open(&j, '[');
    for (size_t i = 0; i < r.count; i++)
        json_value(&r, &j, r.value[i]);
    json_close(&j, ']');
    json_close(&j, '}');
    report_end(&r);
}
