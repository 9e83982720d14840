/* attention_tile_core.h: the loops of attention_tile.c, for one type. Included once per type, with
 *
 *     AT(name)       the name of a function for this type
 *     AT_T, AT_V     an element, a vector of them
 *     AT_MADD        (a, b, c): c + a * b on vectors
 *     AT_LOAD, AT_STORE, AT_DTYPE
 *     AT_EXP, AT_TANH, AT_INF */

enum { AT(LANES) = sizeof(AT_V) / sizeof(AT_T) };
typedef AT_V AT(loose) __attribute__((aligned(sizeof(AT_T)), may_alias));

/* ---- rows in and out ----------------------------------------------------------------------- */

static char *AT(row_at)(const struct attention *a, const struct attention_operand *o,
                        const struct attention_tile *t, int64_t r)
{
    int64_t row = t->row + r, head = t->kv * a->group + row % a->group;
    int64_t at = t->batch * o->batch + head * o->head + row / a->group * o->position;
    return o->data + at * (int64_t)cpu_size(o->dtype);
}

static char *AT(key_at)(const struct attention_operand *o, const struct attention_tile *t,
                        int64_t j)
{
    int64_t at = t->batch * o->batch + t->kv * o->head + (t->key + j) * o->position;
    return o->data + at * (int64_t)cpu_size(o->dtype);
}

static void AT(panel)(const struct attention *a, const struct attention_operand *o,
                      const struct attention_tile *t, void *panel)
{
    AT_T *p = panel, tile[CPU_TILE];
    int64_t size = (int64_t)cpu_size(o->dtype);

    if (t->lanes > t->rows)
        memset(p, 0, (size_t)(o->dim * ATTENTION_ROWS) * sizeof *p);
    for (int64_t r = 0; r < t->rows; r++) {
        const char *src = AT(row_at)(a, o, t, r);
        for (int64_t d = 0; d < o->dim; d += CPU_TILE) {
            int64_t n = cpu_min_i64(CPU_TILE, o->dim - d);
            AT_LOAD(o->dtype, src + d * size, tile, n);
            for (int64_t i = 0; i < n; i++)
                p[(d + i) * ATTENTION_ROWS + r] = tile[i];
        }
    }
}

static void AT(widen)(const struct attention_operand *o, const void *src, AT_T *to)
{
    AT_LOAD(o->dtype, src, to, o->dim);
    for (int64_t d = o->dim; d < o->width; d++)
        to[d] = 0;
}

static void AT(gather)(const struct attention *a, const struct attention_operand *o,
                       const struct attention_tile *t, void *rows)
{
    for (int64_t r = 0; r < t->rows; r++)
        AT(widen)(o, AT(row_at)(a, o, t, r), (AT_T *)rows + r * o->width);
}

static const void *AT(keys)(const struct attention_operand *o, const struct attention_tile *t,
                            void *room)
{
    if (o->dtype == AT_DTYPE && o->position == o->width && o->dim == o->width)
        return AT(key_at)(o, t, 0);
    for (int64_t j = 0; j < t->keys; j++)
        AT(widen)(o, AT(key_at)(o, t, j), (AT_T *)room + j * o->width);
    return room;
}

static void AT(put_rows)(const struct attention *a, const struct attention_operand *o,
                         const struct attention_tile *t, const void *sum)
{
    for (int64_t r = 0; r < t->rows; r++)
        AT_STORE(o->dtype, (const AT_T *)sum + r * o->width, AT(row_at)(a, o, t, r), o->dim);
}

static void AT(put_keys)(const struct attention_operand *o, const struct attention_tile *t,
                         const void *sum)
{
    for (int64_t j = 0; j < t->keys; j++)
        AT_STORE(o->dtype, (const AT_T *)sum + j * o->width, AT(key_at)(o, t, j), o->dim);
}

/* 0 times a number is 0, times anything else NaN. */
static bool AT(finite)(const struct attention_operand *o, const void *rows, int64_t n)
{
    AT_T lane[AT(LANES)] = {0}, all = 0;

    for (int64_t k = 0; k < n; k++) {
        const AT_T *p = (const AT_T *)rows + k * o->width;
        int64_t d = 0;
        for (; d + AT(LANES) <= o->dim; d += AT(LANES))
            for (int l = 0; l < AT(LANES); l++)
                lane[l] += p[d + l] * 0;
        for (; d < o->dim; d++)
            all += p[d] * 0;
    }
    for (int l = 0; l < AT(LANES); l++)
        all += lane[l];
    return all == 0;
}

/* ---- products ------------------------------------------------------------------------------ */

/* mr rows of nv vectors of sums, which stay in registers over all of k. */
static AT_INLINE void AT(micro)(const struct attention_product *p, const AT_T *a, int64_t a_i,
                                int64_t a_k, const AT_T *b, AT_T *c, int mr, int nv)
{
    AT_V sum[MR][NV];

    GEMM_UNROLL
    for (int i = 0; i < mr; i++) {
        GEMM_UNROLL
        for (int v = 0; v < nv; v++)
            sum[i][v] = (AT_V){0};
    }
    for (int64_t k = 0; k < p->k; k++, a += a_k, b += p->b_ld) {
        AT_V bv[NV];
        GEMM_UNROLL
        for (int v = 0; v < nv; v++)
            bv[v] = ((const AT(loose) *)b)[v];
        GEMM_UNROLL
        for (int i = 0; i < mr; i++) {
            AT_V av = a[i * a_i] - (AT_V){0}; /* in every lane */
            GEMM_UNROLL
            for (int v = 0; v < nv; v++)
                sum[i][v] = AT_MADD(av, bv[v], sum[i][v]);
        }
    }
    GEMM_UNROLL
    for (int i = 0; i < mr; i++) {
        AT(loose) *row = (AT(loose) *)(c + i * p->c_ld);
        GEMM_UNROLL
        for (int v = 0; v < nv; v++)
            row[v] = p->add ? (AT_V)row[v] + sum[i][v] : sum[i][v];
    }
}

/* All rows of nv vectors of columns. */
static AT_INLINE void AT(strip)(const struct attention_product *p, const AT_T *b, AT_T *c, int nv)
{
    const AT_T *a = p->a;
    int64_t i = 0;

    if (p->a_i == 1) {
        for (; i + MR <= p->m; i += MR)
            AT(micro)(p, a + i, 1, p->a_k, b, c + i * p->c_ld, MR, nv);
        for (; i < p->m; i++)
            AT(micro)(p, a + i, 1, p->a_k, b, c + i * p->c_ld, 1, nv);
        return;
    }
    for (; i + MR <= p->m; i += MR)
        AT(micro)(p, a + i * p->a_i, p->a_i, 1, b, c + i * p->c_ld, MR, nv);
    for (; i < p->m; i++)
        AT(micro)(p, a + i * p->a_i, p->a_i, 1, b, c + i * p->c_ld, 1, nv);
}

static void AT(product_of_kept)(const struct attention_product *p)
{
    for (int64_t i = 0; i < p->m; i++) {
        AT_T *c = (AT_T *)p->c + i * p->c_ld;
        for (int64_t j = 0; j < p->n && !p->add; j++)
            c[j] = 0;
        for (int64_t k = 0; k < p->k; k++) {
            int64_t at = i * p->a_i + k * p->a_k;
            AT_T x = ((const AT_T *)p->a)[at];
            const AT_T *b = (const AT_T *)p->b + k * p->b_ld;
            for (int64_t j = 0; j < p->n && p->keep[at]; j++)
                c[j] += x * b[j];
        }
    }
}

static void AT(product)(const struct attention_product *p)
{
    int64_t j = 0;

    if (p->keep) {
        AT(product_of_kept)(p);
        return;
    }
    for (; j + NV * AT(LANES) <= p->n; j += NV * AT(LANES))
        AT(strip)(p, (const AT_T *)p->b + j, (AT_T *)p->c + j, NV);
    for (; j < p->n; j += AT(LANES))
        AT(strip)(p, (const AT_T *)p->b + j, (AT_T *)p->c + j, 1);
}

/* ---- scores -------------------------------------------------------------------------------- */

static void AT(scale)(const struct attention *a, const struct attention_tile *t, AT_T *z,
                      AT_T *slope)
{
    bool capped = a->cap > 0;
    AT_T scale = (AT_T)a->scale, cap = (AT_T)a->cap;
    AT_T inner = capped ? (AT_T)(a->scale / a->cap) : 0;

    for (int64_t j = 0; j < t->keys; j++, z += ATTENTION_ROWS) {
        if (!capped) {
            for (int64_t r = 0; r < t->lanes; r++)
                z[r] *= scale;
            continue;
        }
        for (int64_t r = 0; r < t->lanes; r++)
            z[r] = AT_TANH(z[r] * inner);
        if (slope) {
            for (int64_t r = 0; r < t->lanes; r++)
                slope[j * ATTENTION_ROWS + r] = 1 - z[r] * z[r];
        }
        for (int64_t r = 0; r < t->lanes; r++)
            z[r] *= cap;
    }
}

/* ALiBi: keys count for less the further away they are. */
static void AT(lean)(const struct attention *a, const struct attention_tile *t, AT_T *z)
{
    AT_T slope[ATTENTION_ROWS], place[ATTENTION_ROWS];

    for (int64_t r = 0; r < t->lanes; r++) {
        slope[r] = (AT_T)t->slope[r];
        const int64_t key = (t->row + r) / a->group + a->shift - t->key;
        place[r] = (AT_T)key;
    }
    for (int64_t j = 0; j < t->keys; j++, z += ATTENTION_ROWS) {
        for (int64_t r = 0; r < t->lanes; r++) {
            AT_T d = place[r] - (AT_T)j;
            z[r] -= slope[r] * (d < 0 ? -d : d);
        }
    }
}

static void AT(add_bias)(const struct attention *a, const struct attention_tile *t, const void *src,
                         AT_T *z, int64_t r)
{
    AT_T bias[ATTENTION_KEYS];

    AT_LOAD(a->mask->dtype, src, bias, t->keys);
    for (int64_t j = 0; j < t->keys; j++)
        z[j * ATTENTION_ROWS + r] += bias[j];
}

/* Returns whether the row's part of the mask excludes anything. */
static bool AT(obey)(const struct attention *a, const struct attention_tile *t, const void *src,
                     AT_T *z, uint8_t *keep, int64_t r)
{
    double value[ATTENTION_KEYS];
    bool excludes = false;

    cpu_load_f64(a->mask->dtype, src, value, t->keys);
    for (int64_t j = 0; j < t->keys; j++) {
        if (value[j] >= 0.5)
            continue;
        z[j * ATTENTION_ROWS + r] = -AT_INF;
        keep[j * ATTENTION_ROWS + r] = 0;
        excludes = true;
    }
    return excludes;
}

static void AT(mask)(const struct attention *a, struct attention_tile *t,
                     const struct attention_room *room)
{
    bool bias = a->mask_kind == RLX_MASK_KIND_bias;

    if (!bias)
        memset(room->keep, 1, (size_t)(t->keys * ATTENTION_ROWS));
    for (int64_t r = 0; r < t->rows; r++) {
        int64_t row = t->row + r, head = t->kv * a->group + row % a->group;
        int64_t at = t->batch * a->mask_batch + head * a->mask_head +
                     row / a->group * a->mask_query + t->key;
        if (bias)
            AT(add_bias)(a, t, cpu_at(a->mask, at), room->z, r);
        else if (AT(obey)(a, t, cpu_at(a->mask, at), room->z, room->keep, r))
            t->partial = true;
    }
}

/* Keys out of each row's range. Here and in `probability`, bytes and numbers have loops of their
 * own and nothing aliases: together they would be done one by one. */
static void AT(exclude)(struct attention_tile *t, const struct attention_room *room)
{
    int32_t low[ATTENTION_ROWS], high[ATTENTION_ROWS];
    const int64_t lanes = t->lanes;
    AT_T *restrict z = room->z;
    uint8_t *restrict keep = room->keep;

    for (int64_t r = 0; r < t->lanes; r++) {
        low[r] = (int32_t)cpu_max_i64(0, cpu_min_i64(t->low[r] - t->key, t->keys));
        high[r] = (int32_t)cpu_max_i64(0, cpu_min_i64(t->high[r] - t->key, t->keys));
        if (r < t->rows && (low[r] > 0 || high[r] < t->keys))
            t->partial = true;
    }
    if (!t->partial)
        return;
    for (int32_t j = 0; j < t->keys; j++, z += ATTENTION_ROWS, keep += ATTENTION_ROWS) {
        for (int64_t r = 0; r < lanes; r++)
            z[r] = ((j < low[r]) | (j >= high[r])) ? -AT_INF : z[r];
        for (int64_t r = 0; r < lanes; r++)
            keep[r] = (j >= low[r]) & (j < high[r]);
    }
}

static void AT(scores)(const struct attention *a, struct attention_tile *t, const void *k,
                       const struct attention_room *room)
{
    const struct attention_product p = {.m = t->keys,
                                        .n = t->lanes,
                                        .k = a->head_dim,
                                        .a = k,
                                        .a_i = a->k.width,
                                        .a_k = 1,
                                        .b = room->q_panel,
                                        .b_ld = ATTENTION_ROWS,
                                        .c = room->z,
                                        .c_ld = ATTENTION_ROWS};

    AT(product)(&p);
    AT(scale)(a, t, room->z, room->slope);
    if (a->max_bias > 0)
        AT(lean)(a, t, room->z);
    t->partial = false;
    if (a->mask)
        AT(mask)(a, t, room);
    else if (a->mask_kind != RLX_MASK_KIND_none)
        AT(exclude)(t, room);
}

/* ---- softmax ------------------------------------------------------------------------------- */

static void AT(start)(const struct attention_room *r, int64_t sums)
{
    AT_T *max = r->max, *total = r->total, *delta = r->delta;

    for (int64_t i = 0; i < ATTENTION_ROWS; i++) {
        max[i] = -AT_INF;
        total[i] = 0;
        if (delta)
            delta[i] = 0;
    }
    memset(r->sum, 0, (size_t)sums * sizeof(AT_T));
}

/* max grows to what the tile has; fix: what sums so far are worth then. base: max, or 0 where there
 * is none yet, so that e^(-Inf - base) is 0. */
static void AT(grow)(const struct attention_tile *t, const AT_T *z, AT_T *max, AT_T *base,
                     AT_T *fix)
{
    AT_T old[ATTENTION_ROWS];

    memcpy(old, max, sizeof old);
    for (int64_t j = 0; j < t->keys; j++, z += ATTENTION_ROWS)
        for (int64_t r = 0; r < t->lanes; r++)
            max[r] = z[r] > max[r] ? z[r] : max[r];
    for (int64_t r = 0; r < t->lanes; r++)
        base[r] = max[r] == -AT_INF ? 0 : max[r];
    for (int64_t r = 0; r < t->lanes; r++)
        fix[r] = AT_EXP(old[r] - base[r]);
}

/* dot[r] += the sum over keys of z dp. Keys without weight count for nothing, whatever dp is. */
static void AT(dot)(const struct attention_tile *t, const struct attention_room *room, AT_T *dot)
{
    const AT_T *z = room->z, *dp = room->dp;

    for (int64_t j = 0; j < t->keys; j++, z += ATTENTION_ROWS, dp += ATTENTION_ROWS) {
        for (int64_t r = 0; r < t->lanes; r++) {
            AT_T v = z[r] * dp[r];
            dot[r] += z[r] == 0 ? 0 : v;
        }
    }
}

static void AT(softmax)(const struct attention *a, const struct attention_tile *t,
                        const struct attention_room *room, int64_t rows)
{
    AT_T base[ATTENTION_ROWS], fix[ATTENTION_ROWS], total[ATTENTION_ROWS] = {0};
    AT_T dot[ATTENTION_ROWS] = {0};
    AT_T *z = room->z, *all = room->total, *delta = room->delta, *sum = room->sum;

    AT(grow)(t, z, room->max, base, fix);
    for (int64_t j = 0; j < t->keys; j++, z += ATTENTION_ROWS) {
        for (int64_t r = 0; r < t->lanes; r++) {
            z[r] = AT_EXP(z[r] - base[r]);
            total[r] += z[r];
        }
    }
    for (int64_t r = 0; r < t->lanes; r++)
        all[r] = all[r] * fix[r] + total[r];
    if (delta) {
        AT(dot)(t, room, dot);
        for (int64_t r = 0; r < t->lanes; r++)
            delta[r] = delta[r] * fix[r] + dot[r];
    }
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t d = 0; d < a->v.width && fix[r] != 1; d++)
            sum[r * a->v.width + d] *= fix[r];
    }
}

/* Weights are relative to the largest score of a key: a sink far above it leaves them nothing. */
static void AT(sink)(const struct attention *a, const struct attention_tile *t,
                     const struct attention_room *room)
{
    const AT_T *max = room->max;
    AT_T *total = room->total;

    for (int64_t r = 0; r < t->rows; r++) {
        double sink;
        cpu_load_f64(a->sinks->dtype, cpu_at(a->sinks, t->kv * a->group + (t->row + r) % a->group),
                     &sink, 1);
        if (total[r] != 0)
            total[r] += (AT_T)exp(sink - (double)max[r]);
    }
}

static void AT(divide)(const struct attention *a, const struct attention_tile *t,
                       const struct attention_room *room)
{
    const AT_T *total = room->total;

    for (int64_t r = 0; r < t->rows; r++) {
        AT_T *sum = (AT_T *)room->sum + r * a->v.width, inverse = 1 / total[r];
        for (int64_t d = 0; d < a->v.width; d++)
            sum[d] = total[r] == 0 ? 0 : sum[d] * inverse;
    }
}

/* ---- gradients ----------------------------------------------------------------------------- */

static void AT(invert)(const struct attention_tile *t, const struct attention_room *room)
{
    AT_T *max = room->max, *total = room->total, *delta = room->delta;

    for (int64_t r = 0; r < t->lanes; r++) {
        bool none = total[r] == 0;
        total[r] = none ? 0 : 1 / total[r];
        max[r] = max[r] == -AT_INF ? 0 : max[r];
        if (delta)
            delta[r] = none ? 0 : delta[r] * total[r];
    }
}

static void AT(probability)(const struct attention_tile *t, const struct attention_room *room)
{
    const AT_T *restrict max = room->max, *restrict inverse = room->total;
    const AT_T *restrict delta = room->delta, *restrict dp = room->dp;
    AT_T *restrict z = room->z;
    uint8_t *restrict keep = room->keep;
    const int64_t lanes = t->lanes;

    if (!t->partial)
        memset(keep, 1, (size_t)(t->keys * ATTENTION_ROWS));
    for (int64_t j = 0; j < t->keys; j++, z += ATTENTION_ROWS, keep += ATTENTION_ROWS) {
        for (int64_t r = 0; r < lanes; r++)
            z[r] = AT_EXP(z[r] - max[r]) * inverse[r];
        for (int64_t r = 0; r < lanes; r++)
            keep[r] = keep[r] & (z[r] != 0);
        for (int64_t r = 0; dp && r < lanes; r++)
            z[r] *= dp[j * ATTENTION_ROWS + r] - delta[r];
        for (int64_t r = 0; r < lanes; r++)
            z[r] = keep[r] ? z[r] : 0;
    }
}

static void AT(chain)(const struct attention *a, const struct attention_tile *t,
                      const struct attention_room *room)
{
    AT_T *z = room->z, scale = (AT_T)a->scale;
    const AT_T *slope = room->slope;
    const uint8_t *keep = room->keep;

    for (int64_t j = 0; j < t->keys; j++, z += ATTENTION_ROWS, keep += ATTENTION_ROWS) {
        for (int64_t r = 0; r < t->lanes; r++)
            z[r] *= scale;
        for (int64_t r = 0; slope && r < t->lanes; r++) {
            AT_T v = z[r] * slope[j * ATTENTION_ROWS + r];
            z[r] = keep[r] ? v : 0; /* the slope of an excluded pair may be NaN */
        }
    }
}

static const struct attention_math AT(math) = {
    .size = sizeof(AT_T),
    .lanes = AT(LANES),
    .dtype = AT_DTYPE,
    .panel = AT(panel),
    .gather = AT(gather),
    .keys = AT(keys),
    .put_rows = AT(put_rows),
    .put_keys = AT(put_keys),
    .finite = AT(finite),
    .product = AT(product),
    .scores = AT(scores),
    .start = AT(start),
    .softmax = AT(softmax),
    .sink = AT(sink),
    .divide = AT(divide),
    .invert = AT(invert),
    .probability = AT(probability),
    .chain = AT(chain),
};

#undef AT
#undef AT_T
#undef AT_V
#undef AT_MADD
#undef AT_LOAD
#undef AT_STORE
#undef AT_DTYPE
#undef AT_EXP
#undef AT_TANH
#undef AT_INF
