/* selftest.c: every case of the table through ir/eval and through the device, and the two compared.
 *
 * A case is a line of text, so it becomes a graph by the same parser that users' files take. */
#include "inspect/selftest/selftest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/desc.h"
#include "base/str.h"
#include "ir/text/text.h"
#include "model/save_onnx.h"
#include "rlx/debug.h"
#include "rlx/tools.h"
#include "session/session.h"

#define MAX_OPERANDS 16

struct tester {
    rlx_context *ctx;
    rlx_device *dev;
    const rlx_selftest_desc *desc;
    rlx_selftest_summary sum;
    size_t total, done;
    bool counting; /* first pass: only count */
    bool flushes;  /* the device may make small numbers zeros */
};

/* One graph with one set of values. */
struct trial {
    struct tester *t;
    const char *op, *what;
    rlx_model *model;
    rlx_model *run; /* what runs: the model, or what came back from ONNX */
    struct arena arena;
    struct value_spec spec[MAX_OPERANDS];
    enum value_profile profile;
    bool copies;
    uint64_t seed;
    char message[600];
    double worst;
    rlx_verdict verdict;
};

/* "T[2,3] i32[4]:index=2 state:T[5]" becomes a graph with one node. With copies, the node reads
 * copies of its operands that die with it, so that it may work in place. */
static void write_graph(struct trial *r, const struct case_row *row, const char *dtype,
                        struct text *out)
{
    rlx_str rest = rlx_cstr(row->operands);
    struct case_operand operand[MAX_OPERANDS];
    size_t count = 0;

    while (count < MAX_OPERANDS && selftest_operand(&rest, dtype, &operand[count])) {
        r->spec[count] = operand[count].spec;
        count++;
    }
    text_addf(out, "rlx 1\ngraph (");
    for (size_t i = 0; i < count; i++)
        text_addf(out, "%s%s %%x%zu: %.*s%.*s", i ? ", " : "", operand[i].state ? "state" : "input",
                  i, STR_ARG(operand[i].dtype), STR_ARG(operand[i].shape));
    text_addf(out, ") {\n");
    for (size_t i = 0; r->copies && i < count; i++)
        if (!operand[i].state)
            text_addf(out, "    %%c%zu = expand %%x%zu shape=%.*s\n", i, i,
                      STR_ARG(operand[i].shape));
    text_addf(out, "    %%y = %s", r->op);
    for (size_t i = 0; i < count; i++)
        text_addf(out, "%s %%%c%zu", i ? "," : "", r->copies && !operand[i].state ? 'c' : 'x', i);
    text_addf(out, " %s\n    return %%y\n}\n", row->attrs);
}

/* ---- one trial ---- */

static rlx_status fail(struct trial *r, rlx_verdict verdict, const char *what, const rlx_error *e)
{
    r->verdict = verdict;
    snprintf(r->message, sizeof r->message, "%s: %s", what, e->message);
    return e->status;
}

static rlx_status fill_leaves(struct trial *r, const struct ir_graph *g, struct eval_tensor **leaf,
                              struct diag *d)
{
    size_t k = 0;

    IR_EACH(n, g) {
        ir_value v = ir_id(g, n);
        if (op_info(n->op)->family != FAMILY_leaf)
            continue;
        leaf[v] = arena_new(&r->arena, struct eval_tensor);
        if (!leaf[v])
            return diag_no_memory(d, sizeof **leaf);
        TRY(eval_tensor_new(&r->arena, &n->type, leaf[v], d));
        struct value_spec spec = r->spec[k < MAX_OPERANDS ? k : 0];
        if (r->t->desc->through_onnx && spec.kind == KIND_INDEX)
            spec.kind = KIND_VALID; /* ONNX does not say what others do */
        selftest_fill(leaf[v], &spec, r->profile, r->seed + 1000 * k);
        if (r->t->flushes)
            selftest_flush(leaf[v]);
        k++;
    }
    return RLX_OK;
}

static rlx_tensor tensor_of(const struct ir_type *type, void *data)
{
    rlx_tensor t = {.dtype = type->dtype, .rank = type->rank, .data = data};
    uint64_t bytes = 0;

    memcpy(t.dim, type->dim, sizeof t.dim);
    type_bytes(type, &bytes);
    t.bytes = (size_t)bytes;
    return t;
}

static void *room_for(struct trial *r, const struct ir_type *type)
{
    uint64_t bytes = 0;

    type_bytes(type, &bytes);
    return arena_alloc(&r->arena, (size_t)bytes, 64);
}

/* The device's answer, as the definition's cells. */
static rlx_status run_device(struct trial *r, const struct ir_graph *g, struct eval_tensor **leaf,
                             struct eval_tensor *got, rlx_error *err)
{
    rlx_binding in[MAX_OPERANDS], out = {.name = "out0"};
    rlx_session *s;
    size_t count = 0;
    const struct ir_type *type = ir_type_of(g, g->output.at[0]);
    rlx_status status;

    /* Each op as it is written, by its own kernel: a copy that does nothing is here on purpose. */
    const rlx_debug_desc as_written = {RLX_SIZED(rlx_debug_desc), .check_plan = true,
                                       .no_optimize = true};
    status = rlx_session_create(
        r->run, r->t->dev, &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .debug = &as_written},
        &s, err);
    if (status != RLX_OK)
        return status;
    IR_EACH(n, g) {
        const struct eval_tensor *t = leaf[ir_id(g, n)];
        void *data = t ? room_for(r, &n->type) : NULL;
        if (!t || status != RLX_OK)
            continue;
        const char *name = arena_str(&r->arena, ir_leaf_name(n)).ptr;
        rlx_tensor tensor = tensor_of(&n->type, data);
        eval_store(t, data);
        if (n->op == RLX_OP_state && !r->t->desc->through_onnx) /* ONNX has inputs there */
            status = rlx_session_set_state(s, name, &tensor, err);
        else
            in[count++] = (rlx_binding){name, tensor};
    }
    out.tensor = tensor_of(type, room_for(r, type));
    if (status == RLX_OK)
        status = rlx_session_run(
            s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, count, &out, 1, NULL, 0}, err);
    rlx_session_destroy(s);
    if (status == RLX_OK)
        eval_load(got, out.tensor.data);
    return status;
}

/* A complex number becomes its modulus: that bounds the terms of both parts of a product. */
static void make_absolute(struct eval_tensor *const *leaf, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (int64_t k = 0; leaf[i] && k < leaf[i]->count; k++) {
            struct eval_cell *c = &leaf[i]->at[k];
            c->f = leaf[i]->type.dtype == RLX_DTYPE_c64 ? hypot(c->f, c->im) : fabs(c->f);
            c->im = 0;
        }
}

/* How a definition is read; from 0 on: that variant of it (selftest_vary). */
enum { AS_WRITTEN = -1, SIZES_OF_TERMS = -2 };

/* The last node, exactly: its operands rounded, its own result not. */
static rlx_status define(struct trial *r, const struct ir_graph *g, struct eval_tensor *const *leaf,
                         int reading, struct eval_tensor *out, struct diag *d)
{
    struct eval_tensor *all = arena_array(&r->arena, struct eval_tensor, g->node.len);
    const struct ir_node *n = ir_node(g, g->output.at[0]);
    const struct eval_tensor *in[MAX_OPERANDS];
    struct eval_tensor *state = NULL;

    if (!all)
        return diag_no_memory(d, g->node.len * sizeof *all);
    if (n->in_count > MAX_OPERANDS)
        return diag_fail(d, RLX_ERROR_LIMIT, "the case has too many operands");
    for (size_t i = 0; i < g->node.len; i++)
        if (leaf[i])
            all[i] = *leaf[i];
    for (size_t i = 0; i < g->node.len; i++) {
        struct ir_node k = g->node.at[i];
        bool last = (ir_value)i == g->output.at[0];
        if (leaf[i])
            continue;
        if (reading >= 0)
            selftest_vary(g, &k, reading);
        for (int32_t a = 0; a < k.in_count; a++) {
            in[a] = &all[k.in[a]];
            if (ir_written_state(g, &k) == k.in[a] && op_is(k.op, OP_WRITES))
                state = &all[k.in[a]];
        }
        TRY(eval_tensor_new(&r->arena, &k.type, &all[i], d));
        TRY((last && reading == SIZES_OF_TERMS ? eval_node_sizes : eval_node)(g, &k, in, &all[i],
                                                                              state, &r->arena, d));
        if (!last)
            eval_round(&all[i]);
        state = NULL;
    }
    *out = all[g->output.at[0]];
    return RLX_OK;
}

/* want becomes the answer nearest to got, of those that rounding may choose from. */
static rlx_status settle(struct trial *r, const struct ir_graph *g, struct eval_tensor *const *leaf,
                         struct eval_tensor *want, const struct eval_tensor *got, struct diag *d)
{
    const struct ir_node *n = ir_node(g, g->output.at[0]);
    struct eval_tensor other;

    for (int i = 0; i < selftest_variants(n->op); i++) {
        TRY(define(r, g, leaf, i, &other, d));
        if (r->t->flushes)
            selftest_flush(&other);
        TRY(selftest_settle(n, want, &other, got, &r->arena, d));
    }
    return RLX_OK;
}

/* What an operand was given: it is a leaf, or a copy of one. */
static const struct eval_tensor *given(const struct ir_graph *g, struct eval_tensor *const *leaf,
                                       ir_value v)
{
    while (!leaf[v] && ir_node(g, v)->in_count > 0)
        v = ir_node(g, v)->in[0];
    return leaf[v];
}

/* Not every device has 64-bit floats; all else must work everywhere. */
static bool has_f64(const struct ir_graph *g)
{
    IR_EACH(n, g) {
        if (n->type.dtype == RLX_DTYPE_f64)
            return true;
    }
    return false;
}

static rlx_status compare(struct trial *r, struct diag *d)
{
    const struct ir_graph *g = ir_entry(r->model->mod);
    const struct ir_node *n = ir_node(g, g->output.at[0]);
    struct eval_tensor **leaf = arena_array(&r->arena, struct eval_tensor *, g->node.len);
    struct eval_tensor want, sizes, got;
    struct comparison c;
    rlx_error err;
    bool sums = selftest_wants_abs(n->op);

    if (!leaf)
        return diag_no_memory(d, g->node.len * sizeof *leaf);
    TRY(fill_leaves(r, g, leaf, d));
    TRY(eval_tensor_new(&r->arena, &n->type, &got, d));
    if (run_device(r, g, leaf, &got, &err) != RLX_OK) {
        bool lacks = err.status == RLX_ERROR_UNSUPPORTED && has_f64(g);
        return fail(r, lacks ? RLX_SKIPPED : RLX_FAILED, "device", &err);
    }
    TRY(define(r, g, leaf, AS_WRITTEN, &want, d));
    if (sums) {
        make_absolute(leaf, g->node.len);
        TRY(define(r, g, leaf, SIZES_OF_TERMS, &sizes, d));
    }
    if (r->t->flushes) {
        selftest_flush(&want);
        selftest_flush(&got);
    }
    selftest_compare(g, n, &want, sums ? &sizes : NULL, &got, &c);
    if (!c.ok && selftest_variants(n->op)) {
        TRY(settle(r, g, leaf, &want, &got, d));
        selftest_compare(g, n, &want, NULL, &got, &c);
    }
    if (!c.ok && n->in_count > 0)
        TRY(selftest_compare_factors(n, given(g, leaf, n->in[0]), &want, &got, &r->arena, d, &c));
    r->worst = c.worst;
    /* Written out as simpler ops, it may be rounded between them. */
    if (r->t->desc->through_onnx &&
        (op_info(n->op)->category == CATEGORY_FUSED || rlx_dtype_size(n->type.dtype) == 2))
        c.ok |= c.worst < 4;
    if (!c.ok) {
        r->verdict = RLX_FAILED;
        snprintf(r->message, sizeof r->message,
                 "element %lld is %.9g, its definition gives %.9g (%.3g times what is allowed)",
                 (long long)c.position, c.got, c.want, c.worst);
    }
    return RLX_OK;
}

static void report(struct trial *r)
{
    struct tester *t = r->t;
    rlx_selftest_result result = {
        .op = r->op,
        .what = r->what,
        .verdict = r->verdict,
        .message = r->message,
        .max_error = r->worst,
        .done = ++t->done,
        .total = t->total,
    };

    t->sum.passed += r->verdict == RLX_PASSED;
    t->sum.failed += r->verdict == RLX_FAILED;
    t->sum.skipped += r->verdict == RLX_SKIPPED;
    if (t->desc->each)
        t->desc->each(t->desc->user, &result);
}

static void try_model(struct trial *r)
{
    struct diag d;

    diag_init(&d, "selftest");
    r->run = r->model;
    if (r->t->desc->through_onnx && model_through_onnx(r->model, &r->run, &d) != RLX_OK) {
        bool lacks = d.first.status == RLX_ERROR_UNSUPPORTED;
        fail(r, lacks ? RLX_SKIPPED : RLX_FAILED, "onnx", &d.first);
        return;
    }
    compare(r, &d);
    if (d.first.status != RLX_OK)
        fail(r, RLX_FAILED, "definition", &d.first);
    if (r->run != r->model)
        rlx_model_destroy(r->run);
}

static void try_graph(struct trial *r, rlx_str text)
{
    rlx_error err;

    if (r->t->counting) {
        r->t->total++;
        return;
    }
    arena_init(&r->arena, &r->t->ctx->mem);
    if (rlx_model_parse(r->t->ctx, text, &r->model, &err) != RLX_OK)
        fail(r, RLX_FAILED, "the case itself", &err);
    else {
        try_model(r);
        rlx_model_destroy(r->model);
    }
    arena_free(&r->arena);
    report(r);
}

/* ---- the table ---- */

static void try_values(struct tester *t, const struct case_row *row, const char *op,
                       const char *dtype, enum value_profile profile, bool copies, uint64_t seed)
{
    struct trial r = {.t = t, .op = op, .profile = profile, .copies = copies, .seed = seed};
    char what[256];
    struct text text;

    text_init(&text, &t->ctx->mem);
    if (row->dtypes) {
        snprintf(what, sizeof what, "%s: %s %s %s%s", dtype, row->operands, row->attrs,
                 profile_name(profile), copies ? ", copied operands" : "");
        write_graph(&r, row, dtype, &text);
    } else {
        snprintf(what, sizeof what, "graph %s", profile_name(profile));
        text_addf(&text, "%s", row->operands);
    }
    r.what = what;
    if (!text.failed)
        try_graph(&r, (rlx_str){text.at, text.len});
    text_free(&text);
}

/* Ops whose written form differs where values are not plain: x * sigmoid(x) at -Inf, 1 / sqrt(-0),
 * masks that are added to scores of NaN, products that overflow on the way, as do all steps of a
 * region in f16. */
static bool has_other_edges(const char *op, const char *dtype)
{
    return selftest_has_word("silu fused_swiglu rsqrt attention fused_conv_bias_act cumprod", op) ||
           (strcmp(op, "elementwise_region") == 0 && strcmp(dtype, "f16") == 0);
}

static void try_profiles(struct tester *t, const struct case_row *row, const char *op,
                         const char *dtype)
{
    for (int p = 0; p < VALUES_COUNT; p++) {
        uint64_t seed = selftest_seed(row, op, dtype, (enum value_profile)p, t->desc->seed);

        if (!selftest_has_word(row->profiles, profile_name((enum value_profile)p)) ||
            (t->desc->through_onnx && p != VALUES_PLAIN && has_other_edges(op, dtype)))
            continue;
        try_values(t, row, op, dtype, (enum value_profile)p, false, seed);
        if (row->dtypes && row->operands[0])
            try_values(t, row, op, dtype, (enum value_profile)p, true, seed);
    }
}

static void try_row(struct tester *t, const struct case_row *row)
{
    rlx_str ops = rlx_cstr(row->ops), op, dtypes, dtype;
    char op_name[64], dtype_name[16];

    while ((op = selftest_word(&ops)).len) {
        snprintf(op_name, sizeof op_name, "%.*s", STR_ARG(op));
        if (t->desc->op && strcmp(t->desc->op, op_name) != 0)
            continue;
        if (!row->dtypes) {
            try_profiles(t, row, op_name, "");
            continue;
        }
        dtypes = rlx_cstr(row->dtypes);
        while ((dtype = selftest_word(&dtypes)).len) {
            snprintf(dtype_name, sizeof dtype_name, "%.*s", STR_ARG(dtype));
            try_profiles(t, row, op_name, dtype_name);
        }
    }
}

static void refuse_op(const char *name, struct diag *d)
{
    rlx_nearest near = {.wanted = rlx_cstr(name)};
    char hint[RLX_NEAREST_HINT];

    for (int i = RLX_OP_none + 1; i < RLX_OP_count; i++)
        rlx_nearest_offer(&near, rlx_cstr(op_info((rlx_op)i)->name));
    diag_fail(d, RLX_ERROR_NAME, "there is no op \"%s\"%s (rlx ops lists them all)", name,
              rlx_nearest_hint(&near, hint));
}

rlx_status rlx_selftest(rlx_context *ctx, rlx_device *dev, const rlx_selftest_desc *theirs,
                        rlx_selftest_summary *out, rlx_error *err)
{
    rlx_selftest_desc own = {RLX_SIZED(rlx_selftest_desc)}, *desc = &own;
    struct diag d;
    rlx_op op;

    diag_init(&d, "selftest");
    if (!ctx || !dev || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", !ctx ? "ctx" : !dev ? "dev" : "out");
    else if (DESC_READ(rlx_selftest_desc, &own, theirs, &d) != RLX_OK)
        ;
    else if (desc->op && !op_from_name(rlx_cstr(desc->op), &op))
        refuse_op(desc->op, &d);
    else {
        struct tester t = {.ctx = ctx, .dev = dev, .desc = desc, .counting = true};
        struct target target;
        dev->backend->ops->describe(dev->backend, &target);
        t.flushes = target.flushes_small;
        for (size_t i = 0; selftest_row(i); i++)
            try_row(&t, selftest_row(i));
        t.counting = false;
        for (size_t i = 0; selftest_row(i); i++)
            try_row(&t, selftest_row(i));
        *out = t.sum;
    }
    return diag_report(&d, err);
}
