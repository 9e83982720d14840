/* recurrent_units.h: the gates of lstm, gru and rnn, for one type of sum. Included once per type,
 * with
 *
 *     UNITS(name)                the name of a function for this type
 *     UNITS_T                    a sum
 *     UNITS_SIGMOID, UNITS_TANH  functions of one
 *
 * x and h are what the input and the state before bring to the gates of n units, without the biases
 * bx and bh; gate g begins at g * x_gate, g * h_gate and g * n. Loops read before they write, so
 * `cell` may be updated in place; `old` and `next` are states, and differ. */

static void UNITS(lstm)(int64_t n, const UNITS_T *x, int64_t x_gate, const UNITS_T *h,
                        int64_t h_gate, const UNITS_T *bx, const UNITS_T *bh, UNITS_T *cell,
                        UNITS_T *next)
{
    CPU_INDEPENDENT
    for (int64_t u = 0; u < n; u++) {
        UNITS_T i = (x[u] + bx[u]) + (h[u] + bh[u]);
        UNITS_T f = (x[x_gate + u] + bx[n + u]) + (h[h_gate + u] + bh[n + u]);
        UNITS_T g = (x[2 * x_gate + u] + bx[2 * n + u]) + (h[2 * h_gate + u] + bh[2 * n + u]);
        UNITS_T o = (x[3 * x_gate + u] + bx[3 * n + u]) + (h[3 * h_gate + u] + bh[3 * n + u]);
        UNITS_T c = UNITS_SIGMOID(f) * cell[u] + UNITS_SIGMOID(i) * UNITS_TANH(g);
        cell[u] = c;
        next[u] = UNITS_SIGMOID(o) * UNITS_TANH(c);
    }
}

/* r bears on what n gets from the state, its bias included. */
static void UNITS(gru)(int64_t n, const UNITS_T *x, int64_t x_gate, const UNITS_T *h,
                       int64_t h_gate, const UNITS_T *bx, const UNITS_T *bh, const UNITS_T *old,
                       UNITS_T *next)
{
    CPU_INDEPENDENT
    for (int64_t u = 0; u < n; u++) {
        UNITS_T r = UNITS_SIGMOID((x[u] + bx[u]) + (h[u] + bh[u]));
        UNITS_T z = UNITS_SIGMOID((x[x_gate + u] + bx[n + u]) + (h[h_gate + u] + bh[n + u]));
        UNITS_T m = UNITS_TANH((x[2 * x_gate + u] + bx[2 * n + u]) +
                               r * (h[2 * h_gate + u] + bh[2 * n + u]));
        next[u] = (1 - z) * m + z * old[u];
    }
}

static void UNITS(rnn)(int64_t n, bool relu, const UNITS_T *x, const UNITS_T *h, const UNITS_T *bx,
                       const UNITS_T *bh, UNITS_T *next)
{
    if (relu)
        for (int64_t u = 0; u < n; u++) {
            UNITS_T z = (x[u] + bx[u]) + (h[u] + bh[u]);
            next[u] = z < 0 ? 0 : z; /* NaN stays */
        }
    else
        for (int64_t u = 0; u < n; u++)
            next[u] = UNITS_TANH((x[u] + bx[u]) + (h[u] + bh[u]));
}

#undef UNITS
#undef UNITS_T
#undef UNITS_SIGMOID
#undef UNITS_TANH
