/* recurrent_units.h: the gates of lstm, gru and rnn, for one type of sum. Included once per type,
 * with
 *
 *     UNITS(name)    the name of a function for this type
 *     UNITS_T        a sum
 *     UNITS_DTYPE    the dtype that UNITS_T is
 *
 * x and h are what the input and the state before bring to the gates of n units, without the biases
 * bx and bh; gate g begins at g * x_gate, g * h_gate and g * n. Functions go over rows of their
 * own, which are vector code. `cell` is updated in place; `old` and `next` are states, and differ.
 */

#define APPLY(op, row, count) cpu_row_unary(RLX_OP_##op, UNITS_DTYPE, row, row, count)

/* z[g] = all that is brought to gate g. */
static void UNITS(add_up)(int64_t n, const UNITS_T *x, const UNITS_T *h, const UNITS_T *bx,
                          const UNITS_T *bh, UNITS_T *z)
{
    for (int64_t u = 0; u < n; u++)
        z[u] = (x[u] + bx[u]) + (h[u] + bh[u]);
}

static void UNITS(lstm)(int64_t n, const UNITS_T *x, int64_t x_gate, const UNITS_T *h,
                        int64_t h_gate, const UNITS_T *bx, const UNITS_T *bh, UNITS_T *cell,
                        UNITS_T *next)
{
    UNITS_T z[GATES_MOST * UNITS_MOST] = {0}; /* gcc does not see that n is at least 1 */
    const UNITS_T *i = z, *f = z + n, *g = z + 2 * n, *o = z + 3 * n;

    for (int64_t k = 0; k < 4; k++)
        UNITS(add_up)(n, x + k * x_gate, h + k * h_gate, bx + k * n, bh + k * n, z + k * n);
    APPLY(sigmoid, z, 2 * n);
    APPLY(tanh, z + 2 * n, n);
    APPLY(sigmoid, z + 3 * n, n);
    for (int64_t u = 0; u < n; u++)
        cell[u] = f[u] * cell[u] + i[u] * g[u];
    cpu_row_unary(RLX_OP_tanh, UNITS_DTYPE, cell, next, n);
    for (int64_t u = 0; u < n; u++)
        next[u] *= o[u];
}

/* r bears on what n gets from the state, its bias included. */
static void UNITS(gru)(int64_t n, const UNITS_T *x, int64_t x_gate, const UNITS_T *h,
                       int64_t h_gate, const UNITS_T *bx, const UNITS_T *bh, const UNITS_T *old,
                       UNITS_T *next)
{
    UNITS_T a[3 * UNITS_MOST];
    const UNITS_T *r = a, *z = a + n;
    UNITS_T *m = a + 2 * n;

    for (int64_t k = 0; k < 2; k++)
        UNITS(add_up)(n, x + k * x_gate, h + k * h_gate, bx + k * n, bh + k * n, a + k * n);
    APPLY(sigmoid, a, 2 * n);
    for (int64_t u = 0; u < n; u++)
        m[u] = (x[2 * x_gate + u] + bx[2 * n + u]) + r[u] * (h[2 * h_gate + u] + bh[2 * n + u]);
    APPLY(tanh, m, n);
    for (int64_t u = 0; u < n; u++)
        next[u] = (1 - z[u]) * m[u] + z[u] * old[u];
}

static void UNITS(rnn)(int64_t n, bool relu, const UNITS_T *x, const UNITS_T *h, const UNITS_T *bx,
                       const UNITS_T *bh, UNITS_T *next)
{
    UNITS(add_up)(n, x, h, bx, bh, next);
    if (relu)
        APPLY(relu, next, n);
    else
        APPLY(tanh, next, n);
}

#undef APPLY
#undef UNITS
#undef UNITS_T
#undef UNITS_DTYPE
