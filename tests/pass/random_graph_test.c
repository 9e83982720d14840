/* random_graph_test.c: random graphs give what the definitions of their ops say: as they are, after
 * each pass alone, and after all of them.
 *
 * A failure names the seed; RLX_RANDOM_SEED=N in the environment makes that graph alone. */
#include "random_graph.h"

#include <math.h>
#include <stdio.h>

#include "ir/eval/eval.h"
#include "ir/text/text.h"
#include "pass/static_pack.h"
#include "run_model.h"

enum { GRAPHS = 300, GRAPHS_FULL = 5000 };

struct bed {
    rlx_context *ctx;
    rlx_device *dev;
    uint64_t seed;
    struct random_graph graph;
    rlx_model *model;
    struct ran want;
    rlx_error err;
};

static const rlx_session_desc plain = {RLX_SIZED(rlx_session_desc),
                                       .debug = DEBUG(.no_optimize = true)};

static bool bed_open(struct test *t, struct bed *b)
{
    *b = (struct bed){0};
    return expect_ok(
               t, rlx_context_create(RLX_VERSION,
                                     &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .threads = 1},
                                     &b->ctx, &b->err)) &&
           expect_ok(t, rlx_device_open(b->ctx, "cpu", &b->dev, &b->err));
}

static void bed_close(struct bed *b)
{
    rlx_device_close(b->dev);
    rlx_context_destroy(b->ctx);
}

static rlx_status run(struct bed *b, const rlx_model *m, const rlx_session_desc *desc,
                      struct ran *out)
{
    return run_model(m, b->dev, desc, b->graph.symbol, RANDOM_SYMBOL_SIZE, b->seed, out, &b->err);
}

static bool broken(struct test *t, const struct bed *b, const char *doing, const char *what)
{
    return fail(t, "seed %llu, %s: %s\n%s", (unsigned long long)b->seed, doing, what,
                b->graph.text ? b->graph.text : "");
}

/* ---- comparing ---- */

static bool is_float(rlx_dtype t)
{
    return t == RLX_DTYPE_f32 || t == RLX_DTYPE_f16 || t == RLX_DTYPE_bf16 || t == RLX_DTYPE_f64;
}

static bool is_same_shape(const rlx_tensor *a, const rlx_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && a->bytes == b->bytes &&
           memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]) == 0;
}

/* The first element that differs by more than is allowed; -1: none. */
static int64_t first_difference(const rlx_tensor *got, const rlx_tensor *want, double allowed,
                                bool either_zero)
{
    size_t size = rlx_dtype_size(got->dtype), count = got->bytes / size;

    for (size_t i = 0; i < count; i++) {
        const char *a = (const char *)got->data + i * size,
                   *b = (const char *)want->data + i * size;
        double x = ran_element(got, i), y = ran_element(want, i);
        if (memcmp(a, b, size) == 0 || (isnan(x) && isnan(y)))
            continue;
        if (allowed == 0 && x == 0 && y == 0 && either_zero)
            continue;
        if (!is_float(got->dtype) || !(fabs(x - y) <= allowed) || allowed == 0)
            return (int64_t)i;
    }
    return -1;
}

static bool compare(struct test *t, const struct bed *b, const struct ran *got, const char *doing)
{
    char what[160];

    if (got->count != b->want.count)
        return broken(t, b, doing, "another number of outputs");
    for (size_t i = 0; i < got->count; i++) {
        const rlx_tensor *g = &got->out[i], *w = &b->want.out[i];
        if (!is_same_shape(g, w))
            return broken(t, b, doing, "an output has another type");
        int64_t at = first_difference(g, w, 2 * b->graph.out[i].err, b->graph.either_zero[i]);
        if (at < 0)
            continue;
        snprintf(what, sizeof what, "output %zu, element %lld: %.9g, not %.9g; %.3g is allowed", i,
                 (long long)at, ran_element(g, (size_t)at), ran_element(w, (size_t)at),
                 2 * b->graph.out[i].err);
        return broken(t, b, doing, what);
    }
    return true;
}

/* The graph's own claims hold, or the comparisons mean nothing. */
static bool check_claims(struct test *t, const struct bed *b)
{
    for (size_t i = 0; i < b->want.count; i++) {
        const struct random_value *v = &b->graph.out[i];
        const rlx_tensor *w = &b->want.out[i];
        double slack = v->err + 1e-6 * fmax(fabs(v->lo), fabs(v->hi));
        for (size_t k = 0; k < w->bytes / rlx_dtype_size(w->dtype); k++) {
            double x = ran_element(w, k);
            if (!(x >= v->lo - slack && x <= v->hi + slack))
                return broken(t, b, "by definition", "a value is outside of its interval");
        }
    }
    return true;
}

/* ---- what the graph means ---- */

static rlx_status define_leaf(const struct ir_node *n, uint64_t seed, struct arena *arena,
                              struct eval_tensor **out, struct diag *d)
{
    rlx_io_info io = {RLX_SIZED(rlx_io_info), .name = ir_leaf_name(n), .dtype = n->type.dtype};
    struct run_leaf l = {.value.rank = n->type.rank};

    memcpy(l.value.dim, n->type.dim, sizeof n->type.dim);
    *out = arena_new(arena, struct eval_tensor);
    if (!*out || !run_fill(&l, &io, seed))
        return RLX_ERROR_MEMORY;
    rlx_status s = eval_tensor_new(arena, &n->type, *out, d);
    for (int64_t i = 0; s == RLX_OK && i < (*out)->count; i++)
        eval_set(*out, i, (double)((const float *)l.value.data)[i]);
    if (s == RLX_OK)
        eval_round(*out);
    free(l.value.data);
    return s;
}

static rlx_status keep_results(const struct ir_graph *g, const struct eval_tensor *result,
                               struct ran *out)
{
    for (size_t i = 0; i < g->output.len; i++) {
        const struct eval_tensor *r = &result[g->output.at[i]];
        rlx_tensor *to = &out->out[i];
        *to = (rlx_tensor){.dtype = r->type.dtype, .rank = r->type.rank};
        memcpy(to->dim, r->type.dim, sizeof r->type.dim);
        to->bytes = (size_t)r->count * rlx_dtype_size(r->type.dtype);
        to->data = malloc(to->bytes + 1);
        out->count = i + 1;
        if (!to->data)
            return RLX_ERROR_MEMORY;
        eval_store(r, to->data);
    }
    return RLX_OK;
}

static rlx_status evaluate(const struct ir_graph *g, uint64_t seed, struct arena *arena,
                           struct ran *out, struct diag *d)
{
    struct eval_tensor **leaf = arena_array(arena, struct eval_tensor *, g->node.len);
    struct eval_tensor *result = arena_array(arena, struct eval_tensor, g->node.len);

    if (!leaf || !result)
        return RLX_ERROR_MEMORY;
    IR_EACH(n, g) {
        if (ir_leaf_name(n).len)
            TRY(define_leaf(n, seed, arena, &leaf[ir_id(g, n)], d));
    }
    TRY(eval_graph(g, leaf, result, arena, d));
    return keep_results(g, result, out);
}

/* The outputs by the definition of each op. */
static rlx_status define(struct bed *b, struct diag *d)
{
    enum { MOST_SYMBOLS = 64 };
    struct ir_module *m = NULL, *bound = NULL;
    int64_t size[MOST_SYMBOLS];
    struct arena arena;

    for (int i = 0; i < MOST_SYMBOLS; i++)
        size[i] = RANDOM_SYMBOL_SIZE;
    arena_init(&arena, mem_default());
    rlx_status s = ir_parse(rlx_cstr(b->graph.text), NULL, mem_default(), &m, d);
    if (s == RLX_OK)
        s = ir_bind(m, size, dim_symbol_count(m->dims), mem_default(), &bound, d);
    if (s == RLX_OK)
        s = evaluate(ir_entry(bound), b->seed, &arena, &b->want, d);
    arena_free(&arena);
    ir_module_destroy(bound);
    ir_module_destroy(m);
    return s;
}

/* ---- one graph ---- */

static bool begin(struct test *t, struct bed *b, uint64_t seed)
{
    struct ran got = {0};
    struct diag d;

    diag_init(&d, "eval");
    b->seed = seed;
    if (!random_graph_make(seed, &b->graph))
        return broken(t, b, "making it", "no graph");
    if (rlx_model_parse(b->ctx, rlx_cstr(b->graph.text), &b->model, &b->err) != RLX_OK)
        return broken(t, b, "parsing it", b->err.message);
    if (define(b, &d) != RLX_OK)
        return broken(t, b, "by definition", d.first.message);
    bool ok =
        check_claims(t, b) &&
        (run(b, b->model, &plain, &got) == RLX_OK || broken(t, b, "as it is", b->err.message)) &&
        compare(t, b, &got, "as it is");
    ran_free(&got);
    return ok;
}

static void end(struct bed *b)
{
    ran_free(&b->want);
    rlx_model_destroy(b->model);
    b->model = NULL;
    random_graph_free(&b->graph);
}

typedef bool (*graph_check)(struct test *t, struct bed *b);

static void for_random_graphs(struct test *t, uint64_t first, graph_check check)
{
    const char *only = getenv("RLX_RANDOM_SEED");
    uint64_t count = test_full() ? GRAPHS_FULL : GRAPHS;
    struct bed b;
    bool ok = bed_open(t, &b);

    if (only && *only) {
        first = strtoull(only, NULL, 10);
        count = 1;
    }
    for (uint64_t i = 0; ok && i < count; i++) {
        ok = begin(t, &b, first + i) && check(t, &b);
        end(&b);
        ran_free(&b.want);
    }
    expect(t, ok);
    bed_close(&b);
}

/* ---- every pass ---- */

static void count_text(void *user, const char *text, size_t len)
{
    uint64_t *h = user;

    for (size_t i = 0; i < len; i++)
        *h = (*h ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
}

static uint64_t hash_of(const rlx_model *m)
{
    uint64_t h = 14695981039346656037u;

    rlx_model_print(m, false, true, count_text, &h, NULL);
    return h;
}

static bool try_passes(struct test *t, struct bed *b, const char *passes, rlx_device *dev)
{
    rlx_model *made = NULL;
    struct ran got = {0};
    bool ok = true;

    if (rlx_model_transform(b->model, passes, dev, &made, &b->err) != RLX_OK)
        return broken(t, b, passes, b->err.message);
    if (hash_of(made) != hash_of(b->model))
        ok = (run(b, made, &plain, &got) == RLX_OK || broken(t, b, passes, b->err.message)) &&
             compare(t, b, &got, passes);
    ran_free(&got);
    rlx_model_destroy(made);
    return ok;
}

static bool try_every_pass(struct test *t, struct bed *b)
{
    const rlx_session_desc optimised = {RLX_SIZED(rlx_session_desc),
                                        .debug = DEBUG(.check_plan = true)};
    const char *name;
    char all[512] = "";
    struct ran got = {0};

    for (size_t i = 0; rlx_pass_at(i, &name, NULL); i++) {
        size_t len = strlen(all);
        if (!try_passes(t, b, name, NULL) || !try_passes(t, b, name, b->dev))
            return false;
        snprintf(all + len, sizeof all - len, "%s%s", len ? "," : "", name);
    }
    bool ok = try_passes(t, b, all, NULL) &&
              (run(b, b->model, &optimised, &got) == RLX_OK ||
               broken(t, b, "optimised", b->err.message)) &&
              compare(t, b, &got, "optimised");
    ran_free(&got);
    return ok;
}

TEST(random_graph, passes_keep_results)
{
    for_random_graphs(t, 1, try_every_pass);
}

/* ---- precision ---- */

/* Under every policy a graph compiles, runs, and gives outputs of the declared types. Under f32 a
 * graph without halves is what it was. */
static bool try_policies(struct test *t, struct bed *b)
{
    static const char *const policies[] = {"f32", "f16", "mixed-conservative", "mixed-bf16",
                                           "elementwise=f16,movement=bf16"};
    bool ok = true, halves = strstr(b->graph.text, "f16") != NULL;

    for (size_t i = 0; ok && i < sizeof policies / sizeof policies[0]; i++) {
        rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .debug = DEBUG(.check_plan = true)};
        struct ran got = {0};
        expect_ok(t, rlx_precision_parse(policies[i], &desc, &b->err));
        ok = run(b, b->model, &desc, &got) == RLX_OK || broken(t, b, policies[i], b->err.message);
        for (size_t k = 0; ok && k < got.count; k++)
            ok = is_same_shape(&got.out[k], &b->want.out[k]) ||
                 broken(t, b, policies[i], "an output has another type");
        if (ok && i == 0 && !halves)
            ok = compare(t, b, &got, policies[i]);
        ran_free(&got);
    }
    return ok;
}

TEST(random_graph, every_policy_runs)
{
    for_random_graphs(t, 100001, try_policies);
}

/* ---- the static part ---- */

/* A model of the module's text. */
static rlx_status model_of(struct bed *b, const struct ir_module *mod, rlx_model **out)
{
    struct text text;
    struct diag d;

    diag_init(&d, "print");
    text_init(&text, mem_default());
    rlx_status s = ir_print(mod, NULL, &text, &d);
    if (s == RLX_OK)
        s = rlx_model_parse(b->ctx, (rlx_str){text.at, text.len}, out, &b->err);
    text_free(&text);
    return s;
}

/* The packs from the part, then the rest with the packs as its params. */
static bool run_split(struct test *t, struct bed *b, const struct ir_module *rest,
                      const struct static_part *part)
{
    rlx_model *first = NULL, *second = NULL;
    struct ran packs = {0}, got = {0};
    struct run_given given[RUN_MOST_LEAVES];
    bool ok = model_of(b, part->mod, &first) == RLX_OK && model_of(b, rest, &second) == RLX_OK &&
              run_model(first, b->dev, &plain, NULL, 0, b->seed, &packs, &b->err) == RLX_OK;

    for (size_t i = 0; ok && i < part->count; i++)
        given[i] = (struct run_given){part->pack[i].name, &packs.out[i]};
    ok = ok && run_model_given(second, b->dev, &plain, b->graph.symbol, RANDOM_SYMBOL_SIZE, b->seed,
                               given, part->count, &got, &b->err) == RLX_OK;
    ok = ok ? compare(t, b, &got, "split") : broken(t, b, "split", b->err.message);
    ran_free(&packs);
    ran_free(&got);
    rlx_model_destroy(first);
    rlx_model_destroy(second);
    return ok;
}

static bool try_split(struct test *t, struct bed *b)
{
    struct ir_module *m = NULL;
    struct static_part part = {0};
    struct diag d;
    bool ok = true;

    diag_init(&d, "pack");
    if (ir_parse(rlx_cstr(b->graph.text), NULL, mem_default(), &m, &d) != RLX_OK ||
        pass_split_static(m, mem_default(), &part, &d) != RLX_OK || ir_verify(m, &d) != RLX_OK)
        ok = broken(t, b, "split", d.first.message);
    if (ok && part.mod && part.count <= RUN_MOST_OUTPUTS)
        ok = run_split(t, b, m, &part);
    ir_module_destroy(part.mod);
    ir_module_destroy(m);
    return ok;
}

TEST(random_graph, static_parts_make_the_packs)
{
    for_random_graphs(t, 200001, try_split);
}

/* ---- the graphs themselves ---- */

TEST(random_graph, graphs_are_varied)
{
    static bool seen[1024];
    size_t kinds = 0, symbolic = 0, nodes = 0, large = 0;
    rlx_op_row row;

    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        struct random_graph g;
        require(t, random_graph_make(seed, &g));
        for (size_t i = 0; rlx_op_at(i, &row) && i < 1024; i++) {
            char word[64];
            snprintf(word, sizeof word, " = %s ", row.name);
            seen[i] |= strstr(g.text, word) != NULL;
        }
        size_t here = 0;
        for (const char *at = g.text; (at = strstr(at, " = ")) != NULL; at++)
            here++;
        nodes += here;
        large += here >= 40;
        symbolic += g.symbol != NULL;
        random_graph_free(&g);
    }
    for (size_t i = 0; i < 1024; i++)
        kinds += seen[i];
    expect(t, kinds >= 55);
    expect(t, symbolic >= GRAPHS / 10);
    expect(t, large >= GRAPHS / 10);
    expect(t, nodes >= (size_t)GRAPHS * 15);
}

TEST(random_graph, same_seed_same_graph)
{
    struct random_graph a, b, c;

    require(t, random_graph_make(7, &a) && random_graph_make(7, &b) && random_graph_make(8, &c));
    expect_str(t, a.text, b.text);
    expect(t, strcmp(a.text, c.text) != 0);
    random_graph_free(&a);
    random_graph_free(&b);
    random_graph_free(&c);
}
