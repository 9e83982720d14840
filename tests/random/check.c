/* check.c: all that is asked of a graph, in the order of checks.def; the first that fails ends it.
 *
 * As written, with every value an output, each node is compared with its definition on the operands
 * that the device itself had: nothing piles up there. Optimised, the outputs must lie where the
 * definition may be carried (spread.c); should they not, more samples are drawn before anybody is
 * blamed. What must be the same is compared bit by bit. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspect/device_check.h"
#include "model/save_onnx.h"
#include "random.h"

/* Everything about one graph. */
struct asked {
    struct world *w;
    const struct question *q;
    struct outcome *out;
    struct arena arena;
    struct dice dice;
    struct ir_module *mod; /* parsed, for the definition */
    struct ir_graph *g;
    struct spread spread;
    int64_t size;             /* of the symbol; -1: there is none */
    rlx_model *model;         /* of the context with one thread */
    void *bits[MOST_OUTPUTS]; /* of the outputs: optimised, on the CPU */
};

const char *check_what(enum check c)
{
    static const char *const what[CHECK_COUNT] = {
#define CHECK(name, what) [CHECK_##name] = #name ": " what,
#include "checks.def"
    };
    return what[c] ? what[c] : "none";
}

static bool wants(const struct asked *a, enum check c)
{
    return a->out->failed == CHECK_NONE && a->q->checks >> c & 1;
}

static void blame(struct asked *a, enum check c, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void blame(struct asked *a, enum check c, const char *fmt, ...)
{
    va_list list;

    if (a->out->failed != CHECK_NONE)
        return;
    a->out->failed = c;
    va_start(list, fmt);
    vsnprintf(a->out->message, sizeof a->out->message, fmt, list);
    va_end(list);
}

/* ---- runs ---- */

static rlx_tensor leaf_tensor(struct asked *a, ir_value v)
{
    rlx_tensor t = tensor_of_type(ir_type_of(a->g, v), NULL);

    t.data = arena_alloc(&a->arena, t.bytes, 64);
    if (t.data)
        eval_store(&a->spread.center[v], t.data);
    return t;
}

static rlx_status set_params(struct asked *a, rlx_model *m, rlx_error *err)
{
    IR_EACH(n, a->g) {
        if (n->op != RLX_OP_param)
            continue;
        rlx_tensor t = leaf_tensor(a, ir_id(a->g, n));
        rlx_status s = rlx_model_set_param(m, arena_str(&a->arena, ir_leaf_name(n)).ptr, &t, err);
        if (s != RLX_OK && s != RLX_ERROR_NAME) /* ONNX has no place for what nothing reads */
            return s;
    }
    return RLX_OK;
}

static size_t inputs(struct asked *a, rlx_binding *in)
{
    size_t count = 0;

    IR_EACH(n, a->g)
        if (n->op == RLX_OP_input && count < MOST_OUTPUTS) {
            in[count].name = arena_str(&a->arena, ir_leaf_name(n)).ptr;
            in[count++].tensor = leaf_tensor(a, ir_id(a->g, n));
        }
    return count;
}

/* The session's outputs as bytes; types: as the model says. */
static rlx_status run_session(struct asked *a, rlx_session *s, const ir_value *node, size_t count,
                              void **bits, rlx_error *err)
{
    rlx_binding in[MOST_OUTPUTS], *out = arena_array(&a->arena, rlx_binding, count);
    size_t given = inputs(a, in);

    for (size_t i = 0; i < count; i++) {
        out[i].name = arena_printf(&a->arena, "out%zu", i);
        out[i].tensor = tensor_of_type(ir_type_of(a->g, node[i]), NULL);
        bits[i] = out[i].tensor.data = arena_alloc(&a->arena, out[i].tensor.bytes, 64);
    }
    const rlx_dim_size n = {"n", a->size};
    return rlx_session_run(
        s, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, given, out, count, &n, a->size >= 0}, err);
}

static rlx_status run_model(struct asked *a, rlx_model *m, rlx_device *dev,
                            const rlx_session_desc *desc, void **bits, rlx_error *err)
{
    rlx_session *s;
    rlx_status status = rlx_session_create(m, dev, desc, &s, err);

    if (status != RLX_OK)
        return status;
    status = run_session(a, s, a->g->output.at, a->g->output.len, bits, err);
    rlx_session_destroy(s);
    return status;
}

static rlx_model *parse(struct asked *a, rlx_context *ctx, rlx_error *err)
{
    rlx_model *m;

    if (rlx_model_parse(ctx, rlx_cstr(a->q->text), &m, err) != RLX_OK)
        return NULL;
    if (set_params(a, m, err) == RLX_OK)
        return m;
    rlx_model_destroy(m);
    return NULL;
}

/* ---- comparisons ---- */

static void compare_bits(struct asked *a, enum check c, void *const *bits)
{
    for (size_t i = 0; i < a->g->output.len; i++) {
        uint64_t bytes = 0;
        type_bytes(ir_type_of(a->g, a->g->output.at[i]), &bytes);
        if (bytes && memcmp(bits[i], a->bits[i], (size_t)bytes) != 0)
            blame(a, c, "output %zu has other bits", i);
    }
}

static bool flushes(const rlx_device *dev)
{
    struct target t;

    dev->backend->ops->describe(dev->backend, &t);
    return t.flushes_small;
}

static bool within(struct asked *a, struct spread *s, const rlx_device *dev, void *const *bits,
                   char *message, size_t room)
{
    for (size_t i = 0; i < a->g->output.len; i++) {
        struct eval_tensor got;
        char what[300];
        if (eval_tensor_new(&a->arena, ir_type_of(a->g, a->g->output.at[i]), &got, &s->diag))
            return true;
        eval_load(&got, bits[i]);
        if (!spread_allows(s, a->g->output.at[i], &got, flushes(dev), what, sizeof what)) {
            snprintf(message, room, "on %s: output %zu: %s", dev->name, i, what);
            return false;
        }
    }
    return true;
}

static void compare_spread(struct asked *a, enum check c, const rlx_device *dev, void *const *bits)
{
    char message[400];
    struct spread wide;

    if (within(a, &a->spread, dev, bits, message, sizeof message))
        return;
    spread_init(&wide, a->g, a->q->profile, a->q->values, 60, 4);
    bool blamed =
        spread_go_on(&wide) == RLX_OK && !within(a, &wide, dev, bits, message, sizeof message);
    spread_free(&wide);
    if (blamed)
        blame(a, c, "%s", message);
}

/* ---- the definition and the text ---- */

static bool read_text(struct asked *a)
{
    struct diag d;
    struct text again;

    diag_init(&d, "random");
    if (ir_parse(rlx_cstr(a->q->text), NULL, mem_default(), &a->mod, &d) || ir_verify(a->mod, &d)) {
        blame(a, CHECK_grow, "%s", d.first.message);
        return false;
    }
    a->g = ir_entry(a->mod);
    text_init(&again, mem_default());
    a->out->tried[CHECK_text]++;
    if (ir_print(a->mod, NULL, &again, &d) || strcmp(again.at, a->q->text) != 0)
        blame(a, CHECK_text, "printed again it is another text:\n%s", again.at);
    text_free(&again);
    return true;
}

static bool define(struct asked *a)
{
    spread_init(&a->spread, a->g, a->q->profile, a->q->values, 4, 2);
    if (spread_go_on(&a->spread) == RLX_OK)
        return true;
    blame(a, CHECK_grow, "the definition: %s", a->spread.diag.first.message);
    return false;
}

/* ---- node by node ---- */

/* The module with every value an output; node[k] is what output k is. */
static rlx_model *reveal(struct asked *a, ir_value *node, size_t *count, rlx_error *err)
{
    struct ir_module *mod;
    struct text text;
    struct diag d;
    rlx_model *m = NULL;

    diag_init(&d, "random");
    *count = 0;
    if (ir_module_copy(a->mod, mem_default(), &mod, &d) != RLX_OK)
        return NULL;
    struct ir_graph *g = ir_entry(mod);
    g->output.len = 0;
    for (size_t v = 0; v < g->node.len; v++)
        if (!op_is(g->node.at[v].op, OP_LEAF) && *count < MOST_OUTPUTS &&
            ir_add_output(g, (ir_value)v, &d) == RLX_OK)
            node[(*count)++] = (ir_value)v;
    text_init(&text, mem_default());
    if (ir_print(mod, NULL, &text, &d) == RLX_OK &&
        rlx_model_parse(a->w->one, (rlx_str){text.at, text.len}, &m, err) == RLX_OK &&
        set_params(a, m, err) != RLX_OK) {
        rlx_model_destroy(m);
        m = NULL;
    }
    text_free(&text);
    ir_module_destroy(mod);
    return m;
}

/* Is it what the definition gives for operands that differ in their last bits? */
static rlx_status judge_moved(struct asked *a, const struct ir_node *n,
                              const struct eval_tensor *const *in, const struct eval_tensor *want,
                              const struct eval_tensor *got, struct diag *d, bool *ok)
{
    const struct eval_tensor **at =
        arena_array(&a->arena, const struct eval_tensor *, (size_t)n->in_count + 1);
    double *reach = arena_array(&a->arena, double, (size_t)want->count + 1);

    if (!at || !reach)
        return diag_no_memory(d, sizeof *reach);
    for (int sample = 0; sample < 16; sample++) {
        struct eval_tensor out;
        for (int32_t i = 0; i < n->in_count; i++)
            TRY(moved_operand(&a->arena, in[i], &a->dice, &at[i], d));
        TRY(eval_tensor_new(&a->arena, &n->type, &out, d));
        TRY(eval_node(a->g, n, at, &out, NULL, &a->arena, d));
        for (int64_t k = 0; k < want->count; k++)
            reach[k] = fmax(reach[k], fabs(eval_real(&out, k) - eval_real(want, k)));
    }
    *ok = true;
    for (int64_t k = 0; k < want->count; k++) {
        double g = eval_real(got, k), w = eval_real(want, k);
        bool same = g == w || (isnan(g) && isnan(w));
        *ok &= same || fabs(g - w) <= 8 * reach[k] + 4 * unit_at(n->type.dtype, w);
    }
    return RLX_OK;
}

static rlx_status judge_node(struct asked *a, const struct ir_node *n,
                             const struct eval_tensor *value, struct diag *d)
{
    const struct eval_tensor **in =
        arena_array(&a->arena, const struct eval_tensor *, (size_t)n->in_count + 1);
    struct eval_tensor want, sizes;
    struct comparison c;
    bool sized;

    if (!in)
        return diag_no_memory(d, sizeof *in);
    for (int32_t i = 0; i < n->in_count; i++)
        in[i] = &value[n->in[i]];
    TRY(eval_tensor_new(&a->arena, &n->type, &want, d));
    TRY(eval_node(a->g, n, in, &want, NULL, &a->arena, d));
    TRY(node_sizes(a->g, n, in, &sizes, &sized, &a->arena, d));
    selftest_compare(a->g, n, &want, sized ? &sizes : NULL, &value[ir_id(a->g, n)], &c);
    if (!c.ok && n->in_count > 0)
        TRY(selftest_compare_factors(n, in[0], &want, &value[ir_id(a->g, n)], &a->arena, d, &c));
    if (!c.ok && node_is_composite(n) && n->type.dtype != RLX_DTYPE_c64)
        TRY(judge_moved(a, n, in, &want, &value[ir_id(a->g, n)], d, &c.ok));
    if (!c.ok)
        blame(a, CHECK_nodes,
              "node %d, %s: element %lld is %.9g, its definition gives %.9g (%.3g times what is "
              "allowed)",
              (int)ir_id(a->g, n), op_info(n->op)->name, (long long)c.position, c.got, c.want,
              c.worst);
    return RLX_OK;
}

static void check_nodes(struct asked *a)
{
    ir_value node[MOST_OUTPUTS];
    void *bits[MOST_OUTPUTS];
    size_t count;
    rlx_error err = {0};
    struct diag d;
    rlx_session *s = NULL;
    rlx_model *m = reveal(a, node, &count, &err);
    struct eval_tensor *value = arena_array(&a->arena, struct eval_tensor, a->g->node.len);

    diag_init(&d, "random");
    a->out->tried[CHECK_nodes]++;
    if (count > 0 && (!m || rlx_session_create(m, a->w->cpu, &as_written, &s, &err) != RLX_OK ||
                      run_session(a, s, node, count, bits, &err) != RLX_OK))
        blame(a, CHECK_nodes, "%s: %s", rlx_status_name(err.status), err.message);
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    if (a->out->failed != CHECK_NONE)
        return;
    for (size_t v = 0; v < a->g->node.len; v++)
        if (op_is(a->g->node.at[v].op, OP_LEAF))
            value[v] = a->spread.center[v];
    for (size_t i = 0; i < count; i++)
        if (eval_tensor_new(&a->arena, ir_type_of(a->g, node[i]), &value[node[i]], &d) == RLX_OK)
            eval_load(&value[node[i]], bits[i]);
    for (size_t i = 0; i < count && a->out->failed == CHECK_NONE; i++)
        if (judge_node(a, ir_node(a->g, node[i]), value, &d) != RLX_OK)
            blame(a, CHECK_nodes, "the definition: %s", d.first.message);
}

/* ---- the CPU ---- */

static void check_optimised(struct asked *a)
{
    rlx_error err;
    rlx_session *s = NULL;
    void *bits[MOST_OUTPUTS];
    const rlx_debug_desc debug = {RLX_SIZED(rlx_debug_desc), .check_plan = true};
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .debug = &debug};

    a->out->tried[CHECK_optimised]++;
    if (rlx_session_create(a->model, a->w->cpu, &desc, &s, &err) != RLX_OK ||
        run_session(a, s, a->g->output.at, a->g->output.len, a->bits, &err) != RLX_OK) {
        blame(a, CHECK_optimised, "%s: %s", rlx_status_name(err.status), err.message);
    } else {
        compare_spread(a, CHECK_optimised, a->w->cpu, a->bits);
        a->out->tried[CHECK_again]++;
        if (run_session(a, s, a->g->output.at, a->g->output.len, bits, &err) != RLX_OK)
            blame(a, CHECK_again, "%s: %s", rlx_status_name(err.status), err.message);
        else
            compare_bits(a, CHECK_again, bits);
    }
    rlx_session_destroy(s);
}

static void check_threads(struct asked *a)
{
    rlx_error err;
    void *bits[MOST_OUTPUTS];
    rlx_model *m = parse(a, a->w->several, &err);

    a->out->tried[CHECK_threads]++;
    if (!m || run_model(a, m, a->w->cpu_several, NULL, bits, &err) != RLX_OK)
        blame(a, CHECK_threads, "%s: %s", rlx_status_name(err.status), err.message);
    else
        compare_bits(a, CHECK_threads, bits);
    rlx_model_destroy(m);
}

/* The session as it comes back from a file; *s is destroyed, and is NULL where that fails. */
static rlx_status reload(rlx_device *dev, rlx_session **s, rlx_model **m, rlx_error *err)
{
    char path[] = "/tmp/rlx-random-XXXXXX";
    rlx_session *loaded = NULL;
    int file = mkstemp(path);

    if (file >= 0)
        close(file);
    rlx_status status = rlx_session_save(*s, path, RLX_SAVE_WEIGHTS, err);
    if (status == RLX_OK)
        status = rlx_session_load(dev, path, NULL, NULL, m, &loaded, err);
    rlx_session_destroy(*s);
    *s = loaded;
    unlink(path);
    return status;
}

static void check_artefact(struct asked *a)
{
    rlx_session *s = NULL;
    rlx_model *m = NULL;
    rlx_error err;
    void *bits[MOST_OUTPUTS];

    a->out->tried[CHECK_artefact]++;
    if (rlx_session_create(a->model, a->w->cpu, NULL, &s, &err) != RLX_OK ||
        reload(a->w->cpu, &s, &m, &err) != RLX_OK ||
        run_session(a, s, a->g->output.at, a->g->output.len, bits, &err) != RLX_OK)
        blame(a, CHECK_artefact, "%s: %s", rlx_status_name(err.status), err.message);
    else
        compare_bits(a, CHECK_artefact, bits);
    rlx_session_destroy(s);
    rlx_model_destroy(m);
}

struct options {
    rlx_session_desc session;
    rlx_debug_desc debug;
};

static void random_options(struct dice *d, struct options *out)
{
    rlx_debug_desc *o = &out->debug;
    bool *const flags[] = {
        &o->no_reuse,         &o->no_in_place,   &o->no_optimize,      &o->no_fold,
        &o->no_cse,           &o->no_fusion,     &o->no_matmul_fusion, &o->no_residual_fusion,
        &o->no_weight_concat, &o->no_regions,    &o->no_static_pack,   &o->no_packed_weights,
        &o->no_qkv_split,     &o->no_packed_qkv, &o->no_norm_tee};
    static const uint64_t alignments[] = {0, 16, 32, 64, 128, 256};

    *out = (struct options){
        .session = {RLX_SIZED(rlx_session_desc), .debug = o},
        .debug = {RLX_SIZED(rlx_debug_desc), .check_plan = true, .verify_passes = true}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        *flags[i] = dice_percent(d, 20);
    o->alignment = alignments[dice_below(d, 6)];
    if (dice_percent(d, 20))
        out->session.max_buffer = 1 << 20; /* more than any value or scratch has */
    if (dice_percent(d, 30))
        o->dispatch = (rlx_dispatch)dice_below(d, 3);
}

static void check_on(struct asked *a, enum check c, rlx_model *m, rlx_device *dev,
                     const rlx_session_desc *desc, bool lacks)
{
    rlx_error err;
    void *bits[MOST_OUTPUTS];
    rlx_status s = run_model(a, m, dev, desc, bits, &err);

    a->out->tried[c]++;
    if (s == RLX_ERROR_UNSUPPORTED && lacks)
        a->out->skipped[c]++;
    else if (s != RLX_OK)
        blame(a, c, "on %s: %s: %s", dev->name, rlx_status_name(err.status), err.message);
    else
        compare_spread(a, c, dev, bits);
}

static void check_onnx(struct asked *a)
{
    struct diag d;
    rlx_model *m = NULL;

    diag_init(&d, "random");
    if (a->q->profile != VALUES_PLAIN)
        return; /* what is written with simpler ops may differ where values are not plain */
    if (model_through_onnx(a->model, &m, &d) != RLX_OK) {
        a->out->tried[CHECK_onnx]++;
        if (d.first.status == RLX_ERROR_UNSUPPORTED)
            a->out->skipped[CHECK_onnx]++;
        else
            blame(a, CHECK_onnx, "%s: %s", rlx_status_name(d.first.status), d.first.message);
        return;
    }
    check_on(a, CHECK_onnx, m, a->w->cpu, NULL, false);
    rlx_model_destroy(m);
}

/* ---- sizes ---- */

enum { MOST_SIZES = 5 };

/* The graph with a size for its symbol; false: it is not one that it can have. */
static bool bind(struct asked *a, const struct ir_module *symbolic, int64_t n,
                 struct ir_module **out)
{
    int64_t size[64];
    struct diag d;

    diag_init(&d, "random");
    for (size_t i = 0; i < 64; i++)
        size[i] = n;
    *out = NULL;
    a->size = n;
    return ir_bind(symbolic, size, dim_symbol_count(symbolic->dims), mem_default(), out, &d) ==
               RLX_OK &&
           (a->g = ir_entry(*out), true);
}

static size_t choose_sizes(struct asked *a, int64_t *size)
{
    size_t symbol;
    int64_t bound = 0;

    if (dim_find_symbol(a->mod->dims, STR("n"), &symbol))
        bound = dim_symbol_bound(a->mod->dims, symbol);
    const int64_t sizes[MOST_SIZES] = {bound ? bound : 5, 1, 2 + dice_below(&a->dice, 3),
                                       dice_percent(&a->dice, 50) ? 0 : 1, bound ? bound : 3};
    size_t count = 0;
    for (size_t i = 0; i < MOST_SIZES; i++)
        if (!bound || sizes[i] <= bound)
            size[count++] = sizes[i];
    return count;
}

/* One session on a device, run at every size. To check artefacts, it goes through a file after the
 * first of them. */
static void check_sizes(struct asked *a, enum check c, rlx_device *dev,
                        const rlx_session_desc *desc, const int64_t *size, size_t count)
{
    struct ir_module *symbolic = a->mod, *bound;
    void *bits[MOST_OUTPUTS];
    rlx_session *s = NULL;
    rlx_model *loaded = NULL;
    rlx_error err;

    a->out->tried[c]++;
    rlx_status status = rlx_session_create(a->model, dev, desc, &s, &err);
    for (size_t i = 0; i < count && status == RLX_OK && a->out->failed == CHECK_NONE; i++) {
        if (bind(a, symbolic, size[i], &bound) && define(a)) {
            status = run_session(a, s, a->g->output.at, a->g->output.len, bits, &err);
            if (status == RLX_OK)
                compare_spread(a, c, dev, bits);
            if (a->out->failed == c)
                snprintf(a->out->message + strlen(a->out->message), 40, ", of size %d",
                         (int)size[i]);
            if (status != RLX_OK && status != RLX_ERROR_UNSUPPORTED)
                blame(a, c, "on %s, of size %d: %s: %s", dev->name, (int)size[i],
                      rlx_status_name(err.status), err.message);
            spread_free(&a->spread);
        }
        ir_module_destroy(bound);
        a->g = ir_entry(symbolic);
        if (c == CHECK_artefact && !loaded && status == RLX_OK)
            status = reload(dev, &s, &loaded, &err);
    }
    if (status == RLX_ERROR_UNSUPPORTED && c == CHECK_gpu)
        a->out->skipped[c]++;
    else if (status != RLX_OK)
        blame(a, c, "on %s: %s: %s", dev->name, rlx_status_name(err.status), err.message);
    rlx_session_destroy(s);
    rlx_model_destroy(loaded);
}

/* Params have sizes that are known, whatever the symbol's is. False: no size is one it can have. */
static bool give_params(struct asked *a, const int64_t *size, size_t count)
{
    struct ir_module *bound;
    rlx_error err;
    bool done = false;

    for (size_t i = 0; i < count && !done; i++) {
        done = bind(a, a->mod, size[i], &bound) && define(a);
        if (done && set_params(a, a->model, &err) != RLX_OK)
            blame(a, CHECK_grow, "%s", err.message);
        if (done)
            spread_free(&a->spread);
        ir_module_destroy(bound);
    }
    a->g = ir_entry(a->mod);
    return done;
}

static void ask_sizes(struct asked *a)
{
    struct options options;
    int64_t size[MOST_SIZES];
    size_t count;

    random_options(&a->dice, &options);
    count = choose_sizes(a, size);
    if (!give_params(a, size, count))
        return;
    if (wants(a, CHECK_sizes))
        check_sizes(a, CHECK_sizes, a->w->cpu, NULL, size, count);
    if (wants(a, CHECK_options))
        check_sizes(a, CHECK_options, a->w->cpu, &options.session, size, count);
    if (wants(a, CHECK_level) && a->w->levels > 0)
        check_sizes(a, CHECK_level, a->w->level[dice_below(&a->dice, (int64_t)a->w->levels)], NULL,
                    size, count);
    if (wants(a, CHECK_artefact))
        check_sizes(a, CHECK_artefact, a->w->cpu, NULL, size, count);
    const rlx_session_desc *gpu_options = dice_percent(&a->dice, 40) ? &options.session : NULL;
    for (size_t i = 0; i < a->w->gpus && wants(a, CHECK_gpu); i++)
        check_sizes(a, CHECK_gpu, a->w->gpu[i], gpu_options, size, count);
}

/* ---- all of it ---- */

static void ask_devices(struct asked *a)
{
    struct options options;

    random_options(&a->dice, &options);
    if (wants(a, CHECK_options))
        check_on(a, CHECK_options, a->model, a->w->cpu, &options.session, false);
    if (wants(a, CHECK_level) && a->w->levels > 0)
        check_on(a, CHECK_level, a->model, a->w->level[dice_below(&a->dice, (int64_t)a->w->levels)],
                 NULL, false);
    if (wants(a, CHECK_onnx))
        check_onnx(a);
    const rlx_session_desc *gpu_options = dice_percent(&a->dice, 40) ? &options.session : NULL;
    for (size_t i = 0; i < a->w->gpus && wants(a, CHECK_gpu); i++)
        check_on(a, CHECK_gpu, a->model, a->w->gpu[i], gpu_options, true);
}

static void ask_static(struct asked *a)
{
    rlx_error err;

    if (!define(a))
        return;
    if (set_params(a, a->model, &err) != RLX_OK)
        blame(a, CHECK_grow, "%s", err.message);
    if (wants(a, CHECK_nodes))
        check_nodes(a);
    if (a->out->failed == CHECK_NONE)
        check_optimised(a);
    if (wants(a, CHECK_threads))
        check_threads(a);
    if (wants(a, CHECK_artefact))
        check_artefact(a);
    ask_devices(a);
    spread_free(&a->spread);
}

void ask(struct world *w, const struct question *q, struct outcome *out)
{
    struct asked a = {.w = w, .q = q, .out = out, .dice = {q->choices}, .size = -1};
    rlx_error err;

    if (w->apart) {
        ask_apart(w->apart, q, out);
        return;
    }
    out->failed = CHECK_NONE;
    arena_init(&a.arena, mem_default());
    if (read_text(&a)) {
        if (rlx_model_parse(w->one, rlx_cstr(q->text), &a.model, &err) != RLX_OK)
            blame(&a, CHECK_grow, "%s", err.message);
        else if (ir_module_is_static(a.mod))
            ask_static(&a);
        else
            ask_sizes(&a);
        rlx_model_destroy(a.model);
    }
    ir_module_destroy(a.mod);
    arena_free(&a.arena);
}
