/* plans.c: memory plans, of sessions and of bare problems, as text, JSON and pictures. */
#include "base/str.h"
#include "compile/reports.h"
#include "inspect/inspect.h"
#include "plan/plan.h"

static void render(const struct plan *p, rlx_plan_format format, plan_name name, void *who,
                   struct text *t)
{
    switch (format) {
    case RLX_PLAN_TEXT: plan_print(p, name, who, t); break;
    case RLX_PLAN_JSON: plan_print_json(p, name, who, t); break;
    case RLX_PLAN_SVG: plan_draw(p, name, who, t); break;
    }
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

rlx_status session_plan(struct rlx_session *s, rlx_plan_format format, struct text *out,
                        rlx_plan_summary *summary, struct diag *d)
{
    TRY(session_is_whole(s, "show one plan", d));
    TRY(session_need_program(s, d));
    struct plan *p = s->current->plan;
    p->held[REGION_OUTSIDE] = store_copy_bytes(s->store); /* other programs may have more */
    render(p, format, plan_node_name, ir_entry(s->current->mod), out);
    summarise(p, summary);
    return RLX_OK;
}

static rlx_str csv_name(void *user, int32_t node)
{
    const struct plan_csv *csv = user;

    return node >= 0 && (size_t)node < csv->count ? csv->id[node] : STR("");
}

static rlx_status plan_in(struct arena *arena, rlx_str text, uint64_t capacity,
                          rlx_plan_format format, struct text *out, rlx_plan_summary *summary,
                          struct diag *d)
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
    render(plan, format, csv_name, &csv, out);
    summarise(plan, summary);
    return RLX_OK;
}

rlx_status plan_of_csv(rlx_context *ctx, rlx_str csv, uint64_t capacity, rlx_plan_format format,
                       struct text *out, rlx_plan_summary *summary, struct diag *d)
{
    struct arena arena;

    arena_init(&arena, &ctx->mem);
    rlx_status s = plan_in(&arena, csv, capacity, format, out, summary, d);
    arena_free(&arena);
    return s;
}
