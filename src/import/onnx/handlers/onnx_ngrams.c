/* onnx_ngrams.c: TfIdfVectorizer of ONNX, on integers.
 *
 * An n-gram of the pool is looked for in windows of the row: its elements i, i + s, i + 2s .. for
 * every distance s up to the largest skip. All windows are compared with all n-grams of a length at
 * once, [N, windows, grams], and what agrees is counted. */
#include "base/str.h"
#include "import/onnx/handlers/onnx_ml.h"

#define MAX_LOOKS 4096 /* lengths times distances */

struct ngrams {
    ir_value x;  /* [N, C], i64 */
    ir_dim rows; /* N */
    int64_t len; /* C */
    const int64_t *pool;
    size_t pool_len, lengths; /* lengths: of n-grams that the pool may have */
    const int64_t *begins;    /* of those of length 1, 2 ..: lengths of them */
    int64_t least, most, skips;
};

/* Where those of length n begin and end in the pool. */
static void range_of(const struct ngrams *g, int64_t n, size_t *from, size_t *to)
{
    *from = (size_t)n <= g->lengths ? (size_t)g->begins[n - 1] : g->pool_len;
    *to = (size_t)n < g->lengths ? (size_t)g->begins[n] : g->pool_len;
}

static bool check_pool(struct onnx_call *c, const struct ngrams *g, size_t *grams)
{
    size_t from, to, before = 0;

    *grams = 0;
    for (size_t i = 0; i < g->lengths; i++) {
        if (g->begins[i] < 0 || (uint64_t)g->begins[i] > g->pool_len ||
            (size_t)g->begins[i] < before || (i == 0 && g->begins[0] != 0)) {
            formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "ngram_counts: entry %zu is %lld of %zu", i,
                         (long long)g->begins[i], g->pool_len);
            return false;
        }
        before = (size_t)g->begins[i];
    }
    for (size_t n = 1; n <= g->lengths; n++) {
        range_of(g, (int64_t)n, &from, &to);
        if ((to - from) % n) {
            formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "%zu entries of %zu-grams", to - from, n);
            return false;
        }
        *grams += (to - from) / n;
    }
    return true;
}

static bool begin(struct onnx_call *c, struct ngrams *g)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);
    const struct onnx_attr *pool = onnx_attr(c, "pool_int64s"), *at = onnx_attr(c, "ngram_counts");

    *g = (struct ngrams){.least = onnx_int(c, "min_gram_length", 1),
                         .most = onnx_int(c, "max_gram_length", 1),
                         .skips = onnx_int(c, "max_skip_count", 0)};
    if (!pool || !pool->ints.count || !at || !at->ints.count) {
        onnx_unsupported(c, "a pool of n-grams that are not integers");
        return false;
    }
    if (t.rank < 1 || t.rank > 2 || !dim_is_static(t.dim[t.rank - 1]) || g->least < 1 ||
        g->most < g->least || g->skips < 0) {
        onnx_unsupported(c, "rows of rank %d or symbolic length, or n-grams of length %lld to %lld",
                         t.rank, (long long)g->least, (long long)g->most);
        return false;
    }
    g->pool = pool->ints.at;
    g->pool_len = pool->ints.count;
    g->begins = at->ints.at;
    g->lengths = at->ints.count;
    g->len = t.dim[t.rank - 1];
    g->rows = t.rank == 1 ? 1 : t.dim[0];
    g->x = formula_reshape(f, formula_cast(f, onnx_in(c, 0), RLX_DTYPE_i64),
                           RLX_LIST(g->rows, g->len));
    return !onnx_failed(c);
}

/* Element k of the n-grams from `from` on, [1, 1, grams]. */
static ir_value element(struct onnx_call *c, const struct ngrams *g, size_t from, size_t n,
                        size_t grams, size_t k)
{
    struct ir_type t = {.dtype = RLX_DTYPE_i64, .rank = 3, .dim = {1, 1, (ir_dim)grams}};
    int64_t *at = arena_array(onnx_arena(c), int64_t, grams);

    if (!at) {
        c->f.status = diag_no_memory(c->f.diag, grams * sizeof *at);
        return RLX_NO_VALUE;
    }
    for (size_t i = 0; i < grams; i++)
        at[i] = g->pool[from + i * n + k];
    return onnx_table_of(c, &t, at);
}

/* How often each n-gram of length n is there with elements that far apart, [N, grams]. */
static ir_value count_at(struct onnx_call *c, const struct ngrams *g, size_t from, int64_t n,
                         size_t grams, int64_t apart)
{
    struct formula *f = &c->f;
    int64_t windows = g->len - (n - 1) * apart;
    ir_value all = RLX_NO_VALUE;

    for (int64_t k = 0; k < n && !onnx_failed(c); k++) {
        ir_value part = formula_reshape(f, formula_narrow(f, g->x, 1, k * apart, windows),
                                        RLX_LIST(g->rows, windows, 1));
        ir_value is =
            formula_2(f, RLX_OP_eq, part, element(c, g, from, (size_t)n, grams, (size_t)k));
        all = k ? formula_2(f, RLX_OP_bit_and, all, is) : is;
    }
    return formula_reduce(f, RLX_OP_reduce_sum, formula_cast(f, all, RLX_DTYPE_f32), RLX_LIST(1),
                          false);
}

static ir_value zeros(struct onnx_call *c, const struct ngrams *g, size_t grams)
{
    struct ir_type t = {.dtype = RLX_DTYPE_f32, .rank = 2, .dim = {g->rows, (ir_dim)grams}};

    return formula_fill(&c->f, &t, 0);
}

/* The counts of all n-grams of the pool in its order, [N, grams + 1]; the last is 0. */
static ir_value count_all(struct onnx_call *c, const struct ngrams *g)
{
    struct formula *f = &c->f;
    ir_value *part = arena_array(onnx_arena(c), ir_value, g->lengths + 1);
    int64_t looks = 0, parts = 0;
    size_t from, to;

    if (!part) {
        f->status = diag_no_memory(f->diag, (g->lengths + 1) * sizeof *part);
        return RLX_NO_VALUE;
    }
    for (int64_t n = 1; (size_t)n <= g->lengths && !onnx_failed(c); n++) {
        range_of(g, n, &from, &to);
        size_t grams = (to - from) / (size_t)n;
        ir_value sum = RLX_NO_VALUE;
        int64_t most = n == 1 ? 1 : g->skips < g->len ? g->skips + 1 : g->len;
        bool wanted = n >= g->least && n <= g->most && n <= g->len;
        if (grams == 0)
            continue;
        for (int64_t apart = 1; wanted && apart <= most && (n - 1) * apart < g->len; apart++) {
            looks += n;
            if (looks > MAX_LOOKS) {
                onnx_unsupported(c, "n-grams of too many lengths and skips");
                return RLX_NO_VALUE;
            }
            ir_value own = count_at(c, g, from, n, grams, apart);
            sum = sum == RLX_NO_VALUE ? own : formula_2(f, RLX_OP_add, sum, own);
        }
        part[parts++] = sum == RLX_NO_VALUE ? zeros(c, g, grams) : sum;
    }
    part[parts++] = zeros(c, g, 1);
    return onnx_failed(c) ? RLX_NO_VALUE : formula_concat(f, part, (int32_t)parts, 1);
}

/* Which n-gram each column of the result counts: `grams` where none does. NULL: a failure. */
static int32_t *columns(struct onnx_call *c, size_t grams, int64_t *count)
{
    const struct onnx_attr *a = onnx_attr(c, "ngram_indexes");
    int64_t last = -1;

    for (size_t i = 0; a && i < a->ints.count; i++)
        last = a->ints.at[i] > last ? a->ints.at[i] : last;
    /* Columns that nothing counts are a few at most; a file may not ask for any number of them. */
    if (!a || a->ints.count != grams || grams > INT32_MAX - 1 ||
        last >= (int64_t)grams * 64 + 65536) {
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "ngram_indexes has %zu entries up to %lld for %zu",
                     a ? a->ints.count : 0, (long long)last, grams);
        return NULL;
    }
    int32_t *at = arena_array(onnx_arena(c), int32_t, (size_t)(last + 1));
    if (!at) {
        c->f.status = diag_no_memory(c->f.diag, (size_t)(last + 1) * sizeof *at);
        return NULL;
    }
    for (int64_t i = 0; i <= last; i++)
        at[i] = (int32_t)grams;
    for (size_t i = 0; i < grams; i++) {
        int64_t to = a->ints.at[i];
        if (to < 0 || at[to] != (int32_t)grams) {
            onnx_unsupported(c, "two n-grams for column %lld", (long long)to);
            return NULL;
        }
        at[to] = (int32_t)i;
    }
    *count = last + 1;
    return at;
}

/* TF: counts; IDF: weights of those that are there; TFIDF: counts times weights. */
static ir_value weigh(struct onnx_call *c, ir_value y, size_t grams)
{
    struct formula *f = &c->f;
    rlx_str mode = onnx_text(c, "mode", "TF");
    size_t count;
    const double *weight = onnx_numbers(c, "weights", &count);

    f->dtype = RLX_DTYPE_f32;
    if (str_eq(mode, STR("TF")))
        return y;
    if (str_eq(mode, STR("IDF")))
        y = formula_2(f, RLX_OP_min, y, formula_number(f, 1));
    else if (!str_eq(mode, STR("TFIDF")))
        formula_fail(f, RLX_ERROR_ATTRIBUTE, "mode \"%.*s\"", STR_ARG(mode));
    if (!weight || onnx_failed(c))
        return y;
    if (count != grams) {
        formula_fail(f, RLX_ERROR_ATTRIBUTE, "weights has %zu entries, not %zu", count, grams);
        return y;
    }
    ir_value w = onnx_list_of(c, weight, f->dtype, RLX_LIST((int64_t)count));
    ir_value part[] = {w, formula_reshape(f, formula_number(f, 0), RLX_LIST(1))};
    return formula_2(f, RLX_OP_mul, y, formula_concat(f, part, 2, 0));
}

void onnx_tf_idf(struct onnx_call *c)
{
    struct formula *f = &c->f;
    struct ir_type t = {.dtype = RLX_DTYPE_i32, .rank = 1};
    struct ngrams g;
    union ir_attr attr;
    size_t grams;

    if (!begin(c, &g) || !check_pool(c, &g, &grams))
        return;
    int32_t *column = columns(c, grams, &t.dim[0]);
    if (!column)
        return;
    ir_value in[] = {weigh(c, count_all(c, &g), grams), onnx_table_of(c, &t, column)};
    attr_defaults(RLX_OP_gather, &attr);
    attr.gather.axis = 1;
    ir_value y = formula_node(f, RLX_OP_gather, in, 2, &attr);
    onnx_give(c, 0, onnx_type(c, 0)->rank == 1 ? formula_reshape(f, y, RLX_LIST(t.dim[0])) : y);
}
