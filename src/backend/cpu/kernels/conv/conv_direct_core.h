/* conv_direct_core.h: the loops of conv_direct.c, for one type of sum. Included once per type, with
 *
 *     DIRECT(name)     the name of a function for this type
 *     DIRECT_T         the type, and DIRECT_DTYPE its dtype
 *     DIRECT_LOAD      cpu_load_f32 or cpu_load_f64
 *     DIRECT_MADD      (a, b, c): c + a * b */

/* n elements of t, `step` apart from element `at` on: *out_step apart at the result. */
static const DIRECT_T *DIRECT(read)(const struct cpu_tensor *t, int64_t at, int64_t step, int64_t n,
                                    DIRECT_T *buffer, int64_t *out_step)
{
    CPU_TILE_OF(uint16_t, dense);
    const void *src = cpu_at(t, at);

    *out_step = step;
    if (t->dtype == DIRECT_DTYPE)
        return src;
    if (step != 1) {
        cpu_copy_strided(dense, src, (int32_t)cpu_size(t->dtype), n, step);
        src = dense;
    }
    DIRECT_LOAD(t->dtype, src, buffer, n);
    *out_step = 1;
    return buffer;
}

/* One weight times what n positions see through one tap, onto their sums. */
static void DIRECT(add_tap)(const struct conv *v, DIRECT_T weight, int64_t at, int64_t step,
                            int64_t n, DIRECT_T *restrict sum)
{
    CPU_TILE_OF(DIRECT_T, buffer);
    const DIRECT_T *x = DIRECT(read)(v->src, at, step, n, buffer, &step);

    if (step == 1) {
        for (int64_t j = 0; j < n; j++)
            sum[j] = DIRECT_MADD(weight, x[j], sum[j]);
    } else {
        for (int64_t j = 0; j < n; j++)
            sum[j] = DIRECT_MADD(weight, x[j * step], sum[j]);
    }
}

/* Positions pos2 .. pos2+n-1 of a row of outputs: all taps of one channel that meet the plane. */
static void DIRECT(add_channel)(const struct direct_row *r, int64_t ch, int64_t pos2, int64_t n,
                                DIRECT_T *sum)
{
    const struct conv *v = r->v;
    const struct windows *w = &r->c->win;
    int64_t plane = (r->image * v->groups + r->group) * v->ch + ch;

    for (int64_t t0 = 0; t0 < w->taps[0]; t0++) {
        int64_t i0 = r->pos[0] * w->step[0] + w->base[0] + t0 * w->delta[0];
        for (int64_t t1 = 0; t1 < w->taps[1]; t1++) {
            int64_t i1 = r->pos[1] * w->step[1] + w->base[1] + t1 * w->delta[1];
            if ((uint64_t)i0 >= (uint64_t)w->in[0] || (uint64_t)i1 >= (uint64_t)w->in[1])
                continue;
            int64_t row = ((plane * w->in[0] + i0) * w->in[1] + i1) * w->in[2];
            for (int64_t t2 = 0; t2 < w->taps[2]; t2++) {
                int64_t lo, hi, start = pos2 * w->step[2] + w->base[2] + t2 * w->delta[2];
                int64_t tap = t0 * r->c->w_tap[0] + t1 * r->c->w_tap[1] + t2 * r->c->w_tap[2];
                DIRECT_T weight;
                windows_inside(start, w->step[2], w->in[2], n, &lo, &hi);
                if (lo == hi)
                    continue;
                DIRECT_LOAD(v->w->dtype, cpu_at(v->w, r->weights + ch * v->w_ch + tap), &weight, 1);
                DIRECT(add_tap)
                (v, weight, row + start + lo * w->step[2], w->step[2], hi - lo, sum + lo);
            }
        }
    }
}

/* A row of outputs, a tile at a time. Sums are added up in parts of some hundred terms. */
static void DIRECT(row)(const struct direct_row *r)
{
    const struct conv *v = r->v;
    const struct conv_class *c = r->c;
    int64_t per_part = cpu_max_i64(1, 64 / (windows_volume(c->win.taps) + 1));

    for (int64_t pos2 = 0; pos2 < c->win.pos[2]; pos2 += CPU_TILE) {
        CPU_TILE_OF(DIRECT_T, sum);
        CPU_TILE_OF(DIRECT_T, part);
        int64_t n = cpu_min_i64(CPU_TILE, c->win.pos[2] - pos2);
        memset(sum, 0, (size_t)n * sizeof *sum);
        for (int64_t ch = 0; ch < v->ch; ch += per_part) {
            memset(part, 0, (size_t)n * sizeof *part);
            for (int64_t i = ch; i < cpu_min_i64(v->ch, ch + per_part); i++)
                DIRECT(add_channel)(r, i, pos2, n, part);
            for (int64_t j = 0; j < n; j++)
                sum[j] += part[j];
        }
        conv_store_row(v, sum, r->out + c->first[2] + pos2 * c->step[2], c->step[2], n);
    }
}

/* Sum of products of n pairs, in 16 sums side by side. */
static DIRECT_T DIRECT(dot)(const DIRECT_T *a, int64_t a_step, const DIRECT_T *b, int64_t n)
{
    DIRECT_T sum[16] = {0}, total = 0;
    int64_t j = 0;

    if (a_step == 1) {
        for (; j + 16 <= n; j += 16)
            for (int i = 0; i < 16; i++)
                sum[i] = DIRECT_MADD(a[j + i], b[j + i], sum[i]);
    }
    for (; j < n; j++)
        sum[j % 16] = DIRECT_MADD(a[j * a_step], b[j], sum[j % 16]);
    for (int i = 0; i < 16; i++)
        total += sum[i];
    return total;
}

/* One row of dy with the row of x that a tap sees; position 0 sees element `start` of it. */
static DIRECT_T DIRECT(dot_row)(const struct conv *v, const struct windows *w, int64_t x_row,
                                int64_t start, int64_t dy_row)
{
    CPU_TILE_OF(DIRECT_T, x_buffer);
    CPU_TILE_OF(DIRECT_T, dy_buffer);
    int64_t lo, hi, x_step, dy_step;
    DIRECT_T total = 0;

    windows_inside(start, w->step[2], w->in[2], w->pos[2], &lo, &hi);
    for (int64_t j = lo; j < hi; j += CPU_TILE) {
        int64_t n = cpu_min_i64(CPU_TILE, hi - j);
        const DIRECT_T *x =
            DIRECT(read)(v->src, x_row + start + j * w->step[2], w->step[2], n, x_buffer, &x_step);
        const DIRECT_T *dy = DIRECT(read)(v->out, dy_row + j, 1, n, dy_buffer, &dy_step);
        total += DIRECT(dot)(x, x_step, dy, n);
    }
    return total;
}

/* The gradient of one weight: all images, all rows of positions. */
static double DIRECT(weight)(const struct conv *v, const struct windows *w, int64_t co, int64_t ch,
                             const int64_t *tap)
{
    DIRECT_T total = 0;
    int64_t group = co / v->m;

    for (int64_t image = 0; image < v->images; image++) {
        int64_t x_plane = (image * v->groups + group) * v->ch + ch;
        int64_t dy_plane = image * v->groups * v->m + co;
        DIRECT_T part = 0;
        for (int64_t p0 = 0; p0 < w->pos[0]; p0++) {
            int64_t i0 = p0 * w->step[0] + w->base[0] + tap[0] * w->delta[0];
            for (int64_t p1 = 0; p1 < w->pos[1]; p1++) {
                int64_t i1 = p1 * w->step[1] + w->base[1] + tap[1] * w->delta[1];
                if ((uint64_t)i0 >= (uint64_t)w->in[0] || (uint64_t)i1 >= (uint64_t)w->in[1])
                    continue;
                part +=
                    DIRECT(dot_row)(v, w, ((x_plane * w->in[0] + i0) * w->in[1] + i1) * w->in[2],
                                    w->base[2] + tap[2] * w->delta[2],
                                    ((dy_plane * w->pos[0] + p0) * w->pos[1] + p1) * w->pos[2]);
            }
        }
        total += part;
    }
    return total;
}

#undef DIRECT
#undef DIRECT_T
#undef DIRECT_DTYPE
#undef DIRECT_LOAD
#undef DIRECT_MADD
