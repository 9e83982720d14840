/* conv_micro.h: the inner loop of conv_tiles_run.c, for one shape of tile. Included once per shape,
 * with
 *
 *     MICRO      the function's name
 *     MICRO_M    rows: output channels
 *     MICRO_V    vectors: positions, VEC_LANES in each
 *
 * The sums stay in registers over all channels and taps of a stretch. */

/* a: MICRO_M weights for each tap of each channel; x: the first position in the first channel. The
 * sums go to `tile`, whose rows are TILE_COLS apart, or are added to what is there. */
static void MICRO(const struct stretch *s, const float *a, const float *x, float *tile, bool add)
{
    vec_f32 sum[MICRO_M][MICRO_V];

    GEMM_UNROLL
    for (int i = 0; i < MICRO_M; i++) {
        GEMM_UNROLL
        for (int v = 0; v < MICRO_V; v++)
            sum[i][v] = (vec_f32){0};
    }
    for (int64_t c = 0; c < s->channels; c++, x += s->channel) {
        for (int64_t t = 0; t < s->taps; t++, a += MICRO_M) {
            const loose_f32 *from = (const loose_f32 *)(x + s->offset[t]);
            vec_f32 xv[MICRO_V];
            GEMM_UNROLL
            for (int v = 0; v < MICRO_V; v++)
                xv[v] = from[v];
            GEMM_UNROLL
            for (int i = 0; i < MICRO_M; i++) {
                vec_f32 av = a[i] - (vec_f32){0}; /* in every lane; x - 0 is x, -0 too */
                GEMM_UNROLL
                for (int v = 0; v < MICRO_V; v++)
                    sum[i][v] = F32_MADD(av, xv[v], sum[i][v]);
            }
        }
    }
    GEMM_UNROLL
    for (int i = 0; i < MICRO_M; i++) {
        vec_f32 *row = (vec_f32 *)(tile + i * TILE_COLS);
        GEMM_UNROLL
        for (int v = 0; v < MICRO_V; v++)
            row[v] = add ? row[v] + sum[i][v] : sum[i][v];
    }
}

#undef MICRO
#undef MICRO_M
#undef MICRO_V
