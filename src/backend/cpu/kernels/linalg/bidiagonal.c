/* bidiagonal.c: sweeps of rotations that make a bidiagonal matrix diagonal (bidiagonal.h).
 *
 * A sweep is a step of the QR method on B^T B that never forms it: a rotation of two columns puts
 * an entry below the diagonal, one of two rows takes it away and puts one above, and so on down the
 * matrix. Without a shift the same can be written so that nothing is ever subtracted; this is used
 * where the shift would be too small to matter, and whenever the diagonal has a zero, which one
 * such sweep brings down to the corner. */
#include "backend/cpu/kernels/linalg/bidiagonal.h"

enum { SWEEPS_EACH = 40 }; /* per value; two are usual */

static void note_turn(double *angle, int64_t i, double cosine, double sine)
{
    if (angle) {
        angle[2 * i] = cosine;
        angle[2 * i + 1] = sine;
    }
}

/* Rows and columns p .. q; the rotations of rows go to `left`, those of columns to `right`. */
static void sweep_without_shift(struct bidiagonal *b, int64_t p, int64_t q, double *left,
                                double *right)
{
    double *d = b->d, *e = b->e;
    double cr = 1, sr = 0, cl = 1, sl = 0;

    for (int64_t i = p; i < q; i++) {
        double r = decompose_turn(d[i] * cr, e[i], &cr, &sr);
        if (i > p)
            e[i - 1] = sl * r;
        d[i] = decompose_turn(cl * r, d[i + 1] * sr, &cl, &sl);
        note_turn(right, i - p, cr, sr);
        note_turn(left, i - p, cl, sl);
    }
    double last = d[q] * cr;
    d[q] = last * cl;
    e[q - 1] = last * sl;
}

static void sweep_with_shift(struct bidiagonal *b, int64_t p, int64_t q, double shift, double *left,
                             double *right)
{
    double *d = b->d, *e = b->e;
    double x = (fabs(d[p]) - shift) * ((d[p] < 0 ? -1 : 1) + shift / d[p]), y = e[p], c, s;

    for (int64_t i = p; i < q; i++) {
        double r = decompose_turn(x, y, &c, &s);
        if (i > p)
            e[i - 1] = r;
        note_turn(right, i - p, c, s);
        x = c * d[i] + s * e[i];
        y = s * d[i + 1]; /* below the diagonal */
        e[i] = c * e[i] - s * d[i];
        d[i + 1] *= c;

        d[i] = decompose_turn(x, y, &c, &s);
        note_turn(left, i - p, c, s);
        x = c * e[i] + s * d[i + 1];
        d[i + 1] = c * d[i + 1] - s * e[i];
        e[i] = x;
        if (i + 1 < q) {
            y = s * e[i + 1]; /* two above the diagonal */
            e[i + 1] *= c;
        }
    }
}

/* The smaller singular value of the last two rows and columns; 0: better without a shift. */
static double shift_of(const struct bidiagonal *b, int64_t p, int64_t q)
{
    double f = fabs(b->d[q - 1]), h = fabs(b->d[q]), g = b->e[q - 1];
    double sum = hypot(f + h, g) + hypot(f - h, g); /* twice the larger one */
    double shift = sum > 0 ? 2 * f * (h / sum) : 0;

    for (int64_t i = p; i <= q; i++)
        if (fabs(b->d[i]) < 0x1p-200) /* a zero; the shift is divided by the first of them */
            return 0;
    return shift > 1e-8 * fabs(b->d[p]) ? shift : 0;
}

/* Beside its neighbours, or beside the matrix, which is near 1. */
static bool is_small(const struct bidiagonal *b, int64_t i)
{
    double e = fabs(b->e[i]);

    return !(e > 0x1p-53 * (fabs(b->d[i]) + fabs(b->d[i + 1])) && e > 0x1p-60);
}

static bool make_diagonal(struct bidiagonal *b, struct turns *left, struct turns *right)
{
    int64_t q = b->n - 1, sweeps = SWEEPS_EACH * b->n;

    while (q > 0) {
        int64_t p = q;
        while (p > 0 && !is_small(b, p - 1))
            p--;
        if (p == q) {
            q--;
            continue;
        }
        if (sweeps-- == 0)
            return false;
        double shift = shift_of(b, p, q);
        double *l = turns_add(left, p, q - p), *r = turns_add(right, p, q - p);
        if (shift > 0)
            sweep_with_shift(b, p, q, shift, l, r);
        else
            sweep_without_shift(b, p, q, l, r);
    }
    return true;
}

static void set_identity(double *x, int64_t n)
{
    memset(x, 0, (size_t)(n * n) * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i * n + i] = 1;
}

bool bidiagonal_decompose(struct bidiagonal *b)
{
    struct turns left = {.x = b->ut, .n = b->n, .angle = b->angle, .pool = b->pool};
    struct turns right = {.x = b->vt, .n = b->n, .pool = b->pool};

    if (b->ut)
        set_identity(b->ut, b->n);
    if (b->vt) {
        set_identity(b->vt, b->n);
        right.angle = b->angle + 2 * TURNS_SWEEPS * b->n;
    }
    if (!make_diagonal(b, &left, &right))
        return false;
    turns_end(&left);
    turns_end(&right);
    for (int64_t i = 0; i < b->n; i++) {
        if (!(b->d[i] < 0))
            continue;
        b->d[i] = -b->d[i];
        for (int64_t j = 0; b->vt && j < b->n; j++)
            b->vt[i * b->n + j] = -b->vt[i * b->n + j];
    }
    return true;
}
