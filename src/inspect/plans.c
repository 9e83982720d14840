/* plans.c: memory plans, of sessions and of bare problems, as text, JSON and pictures. */
#include "rlx/tools.h"

#include "base/str.h"
#include "compile/reports.h"
#include "session/session.h"

static void render(const struct plan *p, rlx_plan_format format, plan_name name, void *who,
                   struct text *t)
{
    switch (format) {
    case RLX_PLAN_TEXT: plan_print(p, name, who, t); break;
    case RLX_PLAN_JSON: plan_print_json(p, name, who, t); break;
    case RLX_PLAN_SVG: plan_draw(p, name, who, t); break;
    }
}

static rlx_status hand_out(const struct plan *p, rlx_plan_format format, plan_name name, void *who,
                           const rlx_allocator *mem, rlx_write_fn write, void *user, struct diag *d)
{
    struct text t;
    rlx_status s = RLX_OK;

    if (!write)
        return RLX_OK;
    text_init(&t, mem);
    render(p, format, name, who, &t);
    if (t.failed)
        s = diag_no_memory(d, t.len);
    else
        write(user, t.at, t.len);
    text_free(&t);
    return s;
}

static void summarise(const struct plan *p, rlx_plan_summary *out)
{
    if (out)
        *out = (rlx_plan_summary){
            .arena = p->held[REGION_ACTS],
            .lower_bound = p->lower_bound,
            .unshared = p->unshared,
            .values = p->steps->value_count,
            .method = p->method,
        };
}

rlx_status rlx_session_plan(rlx_session *s, rlx_plan_format format, rlx_write_fn write, void *user,
                            rlx_plan_summary *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "plan");
    if (!s)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "s is NULL");
    else if (session_is_whole(s, "show one plan", &d) == RLX_OK && !s->current)
        diag_fail(&d, RLX_ERROR_STATE, "the model has symbolic dims: run it once first");
    else if (s->current) {
        struct plan *p = s->current->plan;
        p->held[REGION_OUTSIDE] = store_copy_bytes(s->store); /* other programs may have more */
        if (hand_out(p, format, plan_node_name, ir_entry(s->current->mod), &s->model->ctx->mem,
                     write, user, &d) == RLX_OK)
            summarise(p, out);
    }
    return diag_report(&d, err);
}

static rlx_str csv_name(void *user, int32_t node)
{
    const struct plan_csv *csv = user;

    return node >= 0 && (size_t)node < csv->count ? csv->id[node] : STR("");
}

static rlx_status plan_csv(rlx_context *ctx, rlx_str text, uint64_t capacity,
                           rlx_plan_format format, rlx_write_fn write, void *user,
                           rlx_plan_summary *out, struct arena *arena, struct diag *d)
{
    struct plan_csv csv;
    struct plan_fit fit;
    struct plan *plan;

    TRY(plan_csv_read(text, arena, &csv, d));
    struct plan_problem problem = {.item = csv.item,
                                   .count = csv.count,
                                   .align = 1,
                                   .capacity = capacity,
                                   .budget = PLAN_BUDGET_THOROUGH};
    TRY(plan_assign(&problem, arena, &fit, d));
    TRY(plan_from_fit(csv.item, csv.count, &fit, arena, &plan, d));
    TRY(hand_out(plan, format, csv_name, &csv, &ctx->mem, write, user, d));
    summarise(plan, out);
    return RLX_OK;
}

rlx_status rlx_plan_csv(rlx_context *ctx, rlx_str csv, uint64_t capacity, rlx_plan_format format,
                        rlx_write_fn write, void *user, rlx_plan_summary *out, rlx_error *err)
{
    struct diag d;
    struct arena arena;

    diag_init(&d, "plan");
    if (!ctx || !csv.ptr) {
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", ctx ? "csv" : "ctx");
        return diag_report(&d, err);
    }
    arena_init(&arena, &ctx->mem);
    plan_csv(ctx, csv, capacity, format, write, user, out, &arena, &d);
    arena_free(&arena);
    return diag_report(&d, err);
}

rlx_status rlx_session_schedule(rlx_session *s, bool json, rlx_write_fn write, void *user,
                                rlx_error *err)
{
    struct diag d;
    struct text t;

    diag_init(&d, "schedule");
    if (!s || !write)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", s ? "write" : "s");
    else if (session_is_whole(s, "show one schedule", &d) == RLX_OK && !s->current)
        diag_fail(&d, RLX_ERROR_STATE, "the model has symbolic dims: run it once first");
    else if (s->current) {
        text_init(&t, &s->model->ctx->mem);
        (json ? schedule_json : schedule_text)(s->current, &t);
        if (t.failed)
            diag_no_memory(&d, t.len);
        else
            write(user, t.at, t.len);
        text_free(&t);
    }
    return diag_report(&d, err);
}
