/* legalise.c: replace ops the device has no kernels for by simpler ones.
 *
 *     %y = gated_residual %x, %h, %gate     =>     %t = mul %gate, %h
 *                                                  %y = add %x, %t
 *
 * Needs:  nothing.      Keeps: types, order, labels.
 * A row of the table says what a kind may become. From that each kind has a depth: 0 where nothing
 * rewrites it, else one more than the deepest of what it may become. A round rewrites everything
 * that needs it, so the largest depth among what is left falls from round to round; that is why
 * this comes to an end. */
#include <stdio.h>
#include <string.h>

#include "pass/expand/expand.h"
#include "pass/pass.h"

#define MAX_ROUNDS 16
#define F(name) FAMILY_##name

/* ---- forms of a kind that a rewriter takes ---- */

static bool reduces_more_than_last_axis(const struct ir_graph *g, const struct ir_node *n)
{
    const rlx_list *axes = &n->attr.reduce.axes;

    return axes->count != 1 || axes->at[0] != ir_type_of(g, n->in[0])->rank - 1;
}

static bool has_known_length(const struct ir_graph *g, const struct ir_node *n)
{
    (void)g;
    return dim_is_static(n->type.dim[1]);
}

static bool carries_nothing(const struct ir_graph *g, const struct ir_node *n)
{
    (void)g;
    return !attr_integer(n->op, &n->attr, "carry_state", false);
}

static bool can_unroll(const struct ir_graph *g, const struct ir_node *n)
{
    return has_known_length(g, n) && carries_nothing(g, n);
}

/* ---- the table ---- */

/* clang-format off */
static const struct rewriter rewriters[] = {
    {F(lora_matmul), REWRITE_COMPOSITE, "unfuse", expand_lora_matmul, NULL,
     {F(reshape), F(cast), F(matmul), F(binary), F(const_)}},
    {F(dot_general), REWRITE_COMPOSITE, "dot-general", expand_dot_general, NULL,
     {F(transpose), F(reshape), F(matmul)}},
    {F(fused_matmul_bias_act), REWRITE_COMPOSITE, "unfuse", expand_matmul_bias_act, NULL,
     {F(matmul), F(binary), F(unary)}},
    {F(fused_conv_bias_act), REWRITE_COMPOSITE, "unfuse", expand_conv_bias_act, NULL,
     {F(conv), F(reshape), F(binary), F(unary)}},
    {F(fused_residual_norm), REWRITE_COMPOSITE, "unfuse", expand_residual_norm, NULL,
     {F(binary), F(layer_norm), F(rms_norm)}},
    {F(fused_swiglu), REWRITE_COMPOSITE, "unfuse", expand_swiglu, NULL,
     {F(narrow), F(unary), F(binary), F(cast)}},
    {F(fused_attention_block), REWRITE_COMPOSITE, "unfuse", expand_attention_block, NULL,
     {F(matmul), F(binary), F(narrow), F(rope), F(attention)}},
    {F(fused_transformer_layer), REWRITE_COMPOSITE, "unfuse", expand_transformer_layer, NULL,
     {F(matmul), F(binary), F(narrow), F(attention), F(layer_norm), F(unary), F(const_)}},
    {F(elementwise_region), REWRITE_COMPOSITE, "region", expand_region, NULL,
     {F(unary), F(cast), F(binary), F(compare), F(where), F(resize_nearest_2x)}},
    {F(batch_elementwise_region), REWRITE_COMPOSITE, "region", expand_batch_region, NULL,
     {F(elementwise_region), F(concat)}},
    {F(transform_region), REWRITE_COMPOSITE, "region", expand_transform, NULL,
     {F(resize_nearest_2x)}},
    {F(layer_norm_2d), REWRITE_COMPOSITE, "norm", expand_layer_norm_2d, NULL,
     {F(layer_norm)}},
    {F(ada_layer_norm), REWRITE_COMPOSITE, "norm", expand_ada_layer_norm, NULL,
     {F(layer_norm), F(rms_norm), F(binary), F(cast), F(const_)}},
    {F(gated_residual), REWRITE_COMPOSITE, "norm", expand_gated_residual, NULL,
     {F(binary), F(fma)}},
    {F(group_norm), REWRITE_LOGICAL, "group-norm", expand_group_norm, NULL,
     {F(cast), F(reshape), F(reduce), F(binary), F(unary), F(const_)}},
    {F(resize_nearest_2x), REWRITE_LOGICAL, "resize", expand_resize_nearest_2x, NULL,
     {F(reshape), F(expand)}},
    {F(relu_backward), REWRITE_LACKING, "activation-gradient", expand_activation_backward, NULL,
     {F(compare), F(cast), F(binary), F(const_)}},
    {F(activation_backward), REWRITE_LACKING, "activation-gradient", expand_activation_backward, NULL,
     {F(unary), F(binary), F(compare), F(where), F(cast), F(const_)}},
    {F(reduce), REWRITE_PARTLY, "last-axis-reduce", expand_reduce, reduces_more_than_last_axis,
     {F(transpose), F(reshape), F(reduce)}},
    {F(selective_scan), REWRITE_LACKING, "unroll", expand_selective_scan, can_unroll,
     {F(narrow), F(reshape), F(unary), F(binary), F(reduce), F(concat), F(const_)}},
    {F(gated_delta_net), REWRITE_LACKING, "unroll", expand_gated_delta_net, can_unroll,
     {F(narrow), F(reshape), F(cast), F(unary), F(binary), F(reduce), F(concat), F(const_)}},
    {F(mamba2), REWRITE_LACKING, "scan", expand_mamba2, carries_nothing,
     {F(scan), F(reshape), F(transpose), F(expand), F(unary), F(binary), F(matmul), F(const_)}},
    {F(causal_conv), REWRITE_LACKING, "taps", expand_causal_conv, carries_nothing,
     {F(pad), F(narrow), F(reshape), F(cast), F(unary), F(binary)}},
    {F(recurrent), REWRITE_LACKING, "scan", expand_recurrent, NULL,
     {F(scan), F(cast), F(reshape), F(transpose), F(narrow), F(concat), F(expand), F(reverse),
      F(cumulative), F(compare), F(where), F(unary), F(binary), F(matmul), F(const_)}},
};
/* clang-format on */
#define REWRITER_COUNT (sizeof rewriters / sizeof rewriters[0])

/* ---- how deep it goes ---- */

const struct rewriter *rewriter_at(size_t i)
{
    return i < REWRITER_COUNT ? &rewriters[i] : NULL;
}

const struct rewriter *rewriter_of(enum op_family f)
{
    for (size_t i = 0; i < REWRITER_COUNT; i++)
        if (rewriters[i].kind == f)
            return &rewriters[i];
    return NULL;
}

/* Past MAX_ROUNDS the table goes in a circle. A kind that makes itself makes a form of itself that
 * needs no rewriting. */
static int depth_of(enum op_family f, int level)
{
    const struct rewriter *w = rewriter_of(f);
    int deepest = 0;

    if (!w || level > MAX_ROUNDS)
        return 0;
    for (size_t i = 0; i < sizeof w->makes / sizeof w->makes[0] && w->makes[i]; i++) {
        int depth = w->makes[i] == f ? 0 : depth_of(w->makes[i], level + 1);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

int rewriter_depth(enum op_family f)
{
    return depth_of(f, 0);
}

/* ---- the pass ---- */

bool pass_expands(enum op_family f)
{
    const struct rewriter *w = rewriter_of(f);

    return (w && !w->applies) || f == FAMILY_custom_fn || family_is_view(f);
}

static bool covers(const struct target *t, enum op_family f, int level)
{
    const struct rewriter *w = rewriter_of(f);

    if (t->native[f] || f == FAMILY_leaf || f == FAMILY_const_ || family_is_view(f))
        return true;
    if (f == FAMILY_if_)
        return t->native[FAMILY_where];
    if (f == FAMILY_custom_fn)
        return true;
    if (!w || w->applies || level > MAX_ROUNDS)
        return false;
    for (size_t i = 0; i < sizeof w->makes / sizeof w->makes[0] && w->makes[i]; i++)
        if (w->makes[i] != f && !covers(t, w->makes[i], level + 1))
            return false;
    return true;
}

bool pass_covers(const struct target *t, enum op_family f)
{
    return covers(t, f, 0);
}

bool pass_can_expand(const struct ir_graph *g, const struct ir_node *n)
{
    const struct rewriter *w = rewriter_of(op_info(n->op)->family);

    return w && (!w->applies || w->applies(g, n));
}

rlx_status pass_expand_node(struct ir_graph *g, ir_value node, ir_value *out, struct diag *d)
{
    const struct ir_node n = *ir_node(g, node); /* nodes move when others are added */
    struct rebuild r = rebuild_append(g, d);

    return rebuild_appended(&r, rewriter_of(op_info(n.op)->family)->expand(&r, &n, n.in, out));
}

/* The next of several names with commas between them; false: there are no more. */
static bool next_name(const char **list, rlx_str *out)
{
    if (!*list || !**list)
        return false;
    *out = (rlx_str){*list, strcspn(*list, ",")};
    *list += out->len + ((*list)[out->len] == ',');
    return true;
}

static bool is_named(const char *list, rlx_op op)
{
    rlx_str name;

    while (next_name(&list, &name))
        if (str_eq(name, rlx_cstr(op_info(op)->name)))
            return true;
    return false;
}

static rlx_status no_choice(rlx_str name, struct diag *d)
{
    char known[128] = "";
    size_t len = 0;

    for (size_t i = 0; i < REWRITER_COUNT && len < sizeof known; i++)
        if (rewriters[i].when == REWRITE_LOGICAL)
            len += (size_t)snprintf(known + len, sizeof known - len, "%s%s", len ? ", " : "",
                                    family_name(rewriters[i].kind));
    return diag_fail(d, RLX_ERROR_NAME, "\"%.*s\" has no common body to choose; these have: %s",
                     STR_ARG(name), known);
}

/* The exceptions must be ops that there is a choice for. */
static rlx_status check_names(const char *list, struct diag *d)
{
    rlx_str name;
    rlx_op op;

    while (next_name(&list, &name)) {
        const struct rewriter *w =
            op_from_name(name, &op) ? rewriter_of(op_info(op)->family) : NULL;
        if (!w || w->when != REWRITE_LOGICAL)
            return no_choice(name, d);
    }
    return RLX_OK;
}

static rlx_dispatch dispatch_of(const struct pass_options *o, rlx_op op)
{
    if (is_named(o->native_ops, op))
        return RLX_DISPATCH_NATIVE;
    return is_named(o->common_ops, op) ? RLX_DISPATCH_COMMON : o->dispatch;
}

bool pass_rewrites(const struct target *t, const struct pass_options *o, const struct ir_graph *g,
                   const struct ir_node *n)
{
    enum op_family f = op_info(n->op)->family;
    const struct rewriter *w = rewriter_of(f);

    if (!w || (w->applies && !w->applies(g, n)))
        return false;
    switch (w->when) {
    case REWRITE_COMPOSITE: return !t || !t->native[f];
    case REWRITE_LACKING: return t && !t->native[f];
    case REWRITE_LOGICAL:
        switch (dispatch_of(o, n->op)) {
        case RLX_DISPATCH_COMMON: return true;
        case RLX_DISPATCH_NATIVE: return false;
        default: return t && !t->native[f];
        }
    case REWRITE_PARTLY: return t && t->reduce_last_axis_only;
    }
    return false;
}

static bool needs_rewrite(const struct pass_run *p, const struct ir_graph *g,
                          const struct ir_node *n)
{
    return pass_rewrites(p->target, p->options, g, n);
}

static rlx_status replace(struct rebuild *r, const struct ir_node *n)
{
    ir_value *in = arena_array(&r->old->mod->arena, ir_value, (size_t)n->in_count), out;

    if (!in)
        return diag_no_memory(r->diag, (size_t)n->in_count * sizeof *in);
    for (int32_t i = 0; i < n->in_count; i++)
        in[i] = rebuild_map(r, n->in[i]);
    diag_at(r->diag, op_info(n->op)->name, ir_id(r->old, n), n->label);
    TRY(rewriter_of(op_info(n->op)->family)->expand(r, n, in, &out));
    rebuild_replace(r, n, out);
    return RLX_OK;
}

static rlx_status rewrite_graph(struct pass_run *p, struct ir_graph *g)
{
    struct rebuild r;
    rlx_status s = rebuild_begin(&r, g, p->diag);

    for (size_t i = 0; s == RLX_OK && i < g->node.len; i++) {
        const struct ir_node *n = &g->node.at[i];
        bool rewrite = needs_rewrite(p, g, n);
        p->changes += rewrite;
        s = rewrite ? replace(&r, n) : rebuild_keep(&r, n);
    }
    return rebuild_finish(&r, s);
}

/* The largest depth of what still needs rewriting; 0: nothing does. */
static int deepest_in(const struct pass_run *p, const struct ir_graph *g)
{
    int deepest = 0;

    IR_EACH(n, g) {
        int depth = needs_rewrite(p, g, n) ? rewriter_depth(op_info(n->op)->family) : 0;
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest;
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    TRY(check_names(p->options->native_ops, p->diag));
    TRY(check_names(p->options->common_ops, p->diag));
    for (size_t i = 0; i < m->graph.len; i++) {
        struct ir_graph *g = m->graph.at[i];
        int before = MAX_ROUNDS + 1, depth;
        while ((depth = deepest_in(p, g)) > 0) {
            if (depth >= before)
                return diag_fail(p->diag, RLX_ERROR_INTERNAL,
                                 "rewriting goes in a circle at depth %d", depth);
            TRY(rewrite_graph(p, g));
            before = depth;
        }
    }
    return RLX_OK;
}

const struct pass pass_expand = {"expand", "write ops without kernels as simpler ones", run};
