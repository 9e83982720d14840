/* fft_tables_core.h: the tables of a plan, for one type: sines and cosines from f64, rounded once.
 * Included once per type, after fft_core.h. */

/* e^(-2 pi i j / n), 0 <= j < n: a whole number of quarter turns and an angle of at most an eighth,
 * so that the axes are met exactly. */
static void FFT(root)(int64_t j, int64_t n, FFT_T *to)
{
    const double quarter = 1.57079632679489661923;
    int64_t rest = 4 * j % n, low = cpu_min_i64(rest, n - rest);
    double angle = quarter * (double)low / (double)n, c = cos(angle), s = sin(angle);
    double x = low == rest ? c : s, y = low == rest ? s : c;

    switch (4 * j / n) {
    case 0: to[0] = (FFT_T)x, to[1] = (FFT_T)-y; break;
    case 1: to[0] = (FFT_T)-y, to[1] = (FFT_T)-x; break;
    case 2: to[0] = (FFT_T)-x, to[1] = (FFT_T)y; break;
    default: to[0] = (FFT_T)y, to[1] = (FFT_T)x; break;
    }
}

static void FFT(fill_columns)(const struct fft_columns *c, FFT_T *table)
{
    int64_t n = c->n;

    for (int32_t s = 0; s < c->stages - 1; n /= c->radix[s++]) {
        int32_t r = c->radix[s];
        FFT_T *to = table + c->twiddle[s];
        for (int64_t k = 0; k < n / r; k++)
            for (int32_t q = 1; q < r; q++, to += 2)
                FFT(root)(q * k % n, n, to);
    }
}

static void FFT(fill_twists)(const struct fft_plan *p, FFT_T *table)
{
    FFT_T *lane = table + p->lane_twist, *block = table + p->block_twist, w[2];

    for (int64_t k = 0; k < p->n1; k++)
        for (int64_t i = 0; i < p->lanes; i++) {
            FFT(root)(i * k % p->m, p->m, w);
            lane[(2 * k) * p->lanes + i] = w[0];
            lane[(2 * k + 1) * p->lanes + i] = w[1];
        }
    for (int64_t b = 0; b < fft_blocks(p->n2, p->lanes); b++)
        for (int64_t k = 0; k < p->n1; k++, block += 2)
            FFT(root)(b * p->lanes * k, p->m, block);
}

/* x in the order of its indices' bits reversed; n is a power of two. */
static void FFT(reverse_bits)(FFT_T *x, int64_t n)
{
    for (int64_t i = 1, j = 0; i < n; i++) {
        int64_t bit = n / 2;
        for (; j & bit; bit /= 2)
            j ^= bit;
        j ^= bit;
        if (i >= j)
            continue;
        FFT_T re = x[2 * i], im = x[2 * i + 1];
        x[2 * i] = x[2 * j], x[2 * i + 1] = x[2 * j + 1];
        x[2 * j] = re, x[2 * j + 1] = im;
    }
}

/* A plain transform of n points, a power of two, in place: no plan is needed to make one. */
static void FFT(plain)(FFT_T *x, int64_t n)
{
    FFT(reverse_bits)(x, n);
    for (int64_t half = 1; half < n; half *= 2)
        for (int64_t k = 0; k < half; k++) {
            FFT_T w[2];
            FFT(root)(k, 2 * half, w);
            for (int64_t i = k; i < n; i += 2 * half) {
                FFT_T *a = x + 2 * i, *b = a + 2 * half;
                FFT_T re = b[0] * w[0] - b[1] * w[1], im = b[0] * w[1] + b[1] * w[0];
                b[0] = a[0] - re, b[1] = a[1] - im;
                a[0] += re, a[1] += im;
            }
        }
}

/* The chirp e^(-pi i j j / n), and the spectrum of its conjugate to both sides of 0. */
static void FFT(fill_chirp)(const struct fft_plan *p, FFT_T *table)
{
    FFT_T *chirp = table + p->chirp, *spectrum = table + p->spectrum;
    int64_t square = 0; /* j j mod 2n: the angle stays small */

    memset(spectrum, 0, (size_t)(2 * p->m) * sizeof *spectrum);
    for (int64_t j = 0; j < p->n; j++) {
        FFT(root)(square, 2 * p->n, chirp + 2 * j);
        for (int side = 0; side < 2; side++) {
            FFT_T *to = spectrum + 2 * (side && j ? p->m - j : j);
            to[0] = chirp[2 * j];
            to[1] = -chirp[2 * j + 1];
        }
        square = (square + 2 * j + 1) % (2 * p->n);
    }
    FFT(plain)(spectrum, p->m);
    for (int64_t i = 0; i < 2 * p->m; i++)
        spectrum[i] /= (FFT_T)p->m;
}

void FFT(fill)(const struct fft_plan *p, FFT_T *table)
{
    if (!p->rows_are_lanes)
        FFT(fill_twists)(p, table);
    if (p->is_chirp)
        FFT(fill_chirp)(p, table);
    FFT(fill_columns)(&p->first, table);
    FFT(fill_columns)(&p->second, table);
}
