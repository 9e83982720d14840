/* fusion_report.c: counts before and after fusing, and the contract that nothing was missed. */
#include "pass/fusion_report.h"

#include <stdio.h>

#include "base/str.h"

extern const struct pass pass_check_fusion, pass_mark_regions;

const rlx_op fusion_kind[FUSION_KINDS] = {
    RLX_OP_matmul,
    RLX_OP_attention,
    RLX_OP_rope,
    RLX_OP_narrow,
    RLX_OP_silu,
    RLX_OP_mul,
    RLX_OP_fused_matmul_bias_act,
    RLX_OP_fused_conv_bias_act,
    RLX_OP_fused_residual_ln,
    RLX_OP_fused_residual_rms_norm,
    RLX_OP_fused_swiglu,
    RLX_OP_fused_attention_block,
    RLX_OP_fused_transformer_layer,
    RLX_OP_elementwise_region,
    RLX_OP_batch_elementwise_region,
};

const char *fusion_reason_text(enum fusion_reason r)
{
    static const char *const text[] = {
#define X(name, words) words,
        FUSION_REASON_MAP(X)
#undef X
    };
    return text[r];
}

static void count(const struct ir_module *m, struct fusion_counts *out)
{
    *out = (struct fusion_counts){0};
    for (size_t i = 0; i < m->graph.len; i++) {
        IR_EACH(n, m->graph.at[i]) {
            out->nodes += !op_is(n->op, OP_LEAF);
            for (int k = 0; k < FUSION_KINDS; k++)
                out->of[k] += n->op == fusion_kind[k];
        }
    }
}

/* ---- the report ---- */

struct listener {
    struct fusion_report *report;
    const struct target *target;
    const struct pass_options *options;
    struct diag *diag;
    rlx_status status;
};

/* What was missed shows before regions are made; what was made, right after. */
static void on_pass(void *user, const struct pass *pass, const struct ir_module *m,
                    uint64_t changes)
{
    struct listener *l = user;

    (void)changes;
    if (pass == &pass_check_fusion && l->status == RLX_OK)
        l->status = fusion_find_missed(m, l->target, l->options, l->report, l->diag);
    if (pass == &pass_mark_regions)
        count(m, &l->report->after);
}

rlx_status fusion_report(struct ir_module *m, const struct target *t, const struct pass_options *o,
                         struct fusion_report *out, struct diag *d)
{
    struct pass_options options = *o;
    struct listener l = {out, t, &options, d, RLX_OK};

    *out = (struct fusion_report){.mem = m->mem};
    count(m, &out->before);
    out->after = out->before; /* unless fusing is left out */
    options.assert_fusion_clean = false;
    options.after = on_pass;
    options.after_user = &l;
    TRY(pass_all(m, t, &options, d));
    return l.status;
}

void fusion_report_free(struct fusion_report *r)
{
    vec_free(r->mem, &r->missed);
}

/* ---- the contract ---- */

/* "%q (matmul): multi-consumer; ..." */
static void list_missed(const struct fusion_report *r, struct text *out)
{
    for (size_t i = 0; i < r->missed.len; i++) {
        const struct fusion_missed *m = &r->missed.at[i];
        text_addf(out, "%s", i ? "; " : "");
        if (m->label.len)
            text_addf(out, "%%%.*s (%s)", STR_ARG(m->label), op_info(m->op)->name);
        else
            text_addf(out, "node %d (%s)", m->node, op_info(m->op)->name);
        text_addf(out, ": %s", fusion_reason_text(m->reason));
    }
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    struct fusion_report r = {.mem = m->mem};
    struct text list;
    rlx_status s;

    if (!p->options->assert_fusion_clean)
        return RLX_OK;
    text_init(&list, m->mem);
    s = fusion_find_missed(m, p->target, p->options, &r, p->diag);
    if (s == RLX_OK && r.missed.len) {
        list_missed(&r, &list);
        s = diag_fail(p->diag, RLX_ERROR_GRAPH, "%zu fusion%s missed: %s", r.missed.len,
                      r.missed.len == 1 ? " was" : "s were", list.failed ? "" : list.at);
    }
    text_free(&list);
    fusion_report_free(&r);
    return s;
}

const struct pass pass_check_fusion = {
    "check-fusion", "fail where a fusion was missed, if that was asked for", run};
