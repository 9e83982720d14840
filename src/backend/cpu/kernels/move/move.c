/* move.c: strided copies, cut into two-dimensional pieces.
 *
 * The piece's inner axis `a` is the last of the move, along which the destination usually lies
 * dense. Its outer axis `b` is the one along which the source lies dense, if that is another: the
 * piece is then a transpose, kept small enough for both sides to stay in the cache. Otherwise `b`
 * is simply the next axis out. */
#include "backend/cpu/kernels/move/move.h"

void move_axis(struct move *m, int64_t n, int64_t to, int64_t from)
{
    int32_t last = m->rank - 1;

    if (n == 1)
        return;
    if (last >= 0 && m->to[last] == to * n && m->from[last] == from * n) {
        m->dim[last] *= n;
    } else {
        last = m->rank++;
        m->dim[last] = n;
    }
    m->to[last] = to;
    m->from[last] = from;
}

/* nb x na elements; element (b, a) goes from b * fb + a * fa to b * tb + a * ta. */
struct piece {
    int64_t nb, na, tb, fb, ta, fa;
    bool streams; /* the result goes past the caches */
};

/* ---- squares ------------------------------------------------------------------------------- */

/* A square of as many elements as 16 bytes hold is transposed in registers: interleaving row i with
 * row i + half, for all rows at once, as often as halving the side gives 1. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAVE_SHUFFLE 1
#endif
#endif

#ifdef HAVE_SHUFFLE
#define LOW_8 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_8 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW_16 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_16 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_32 0, 4, 1, 5
#define HIGH_32 2, 6, 3, 7
#define LOW_64 0, 2
#define HIGH_64 1, 3

#define SQUARE(bits)                                                                         \
    typedef uint##bits##_t row_##bits __attribute__((vector_size(16)));                      \
                                                                                             \
    static inline void square_##bits(move_u##bits *dst, int64_t tb, const move_u##bits *src, \
                                     int64_t fa)                                             \
    {                                                                                        \
        enum { SIDE = 128 / (bits) };                                                        \
        row_##bits x[SIDE], y[SIDE];                                                         \
                                                                                             \
        for (int i = 0; i < SIDE; i++)                                                       \
            memcpy(&x[i], src + i * fa, sizeof x[i]);                                        \
        for (int n = SIDE; n > 1; n /= 2) {                                                  \
            for (int i = 0; i < SIDE / 2; i++) {                                             \
                y[2 * i] = __builtin_shufflevector(x[i], x[i + SIDE / 2], LOW_##bits);       \
                y[2 * i + 1] = __builtin_shufflevector(x[i], x[i + SIDE / 2], HIGH_##bits);  \
            }                                                                                \
            for (int i = 0; i < SIDE; i++)                                                   \
                x[i] = y[i];                                                                 \
        }                                                                                    \
        for (int i = 0; i < SIDE; i++)                                                       \
            memcpy(dst + i * tb, &x[i], sizeof x[i]);                                        \
    }
#else
#define SQUARE(bits)                                                                         \
    static inline void square_##bits(move_u##bits *dst, int64_t tb, const move_u##bits *src, \
                                     int64_t fa)                                             \
    {                                                                                        \
        for (int b = 0; b < 128 / (bits); b++)                                               \
            for (int a = 0; a < 128 / (bits); a++)                                           \
                dst[b * tb + a] = src[a * fa + b];                                           \
    }
#endif

SQUARE(8)
SQUARE(16)
SQUARE(32)
SQUARE(64)

/* ---- transposed pieces --------------------------------------------------------------------- */

/* A piece is copied into rows close together, transposed from there to others, and copied to its
 * place: rows far apart by a power of two would push one another out of the cache. */
enum { TURN_BYTES = 256, TURN_ROWS = 64 }; /* of the source: bytes of a row, rows */

/* n rows of `bytes`, from and to so far apart. */
static void copy_rows(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n,
                      int64_t bytes)
{
    if (bytes == TURN_BYTES) {
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_step, from + i * from_step, TURN_BYTES);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * to_step, from + i * from_step, (size_t)bytes);
}

static void stream_rows(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n,
                        int64_t bytes)
{
    for (int64_t i = 0; i < n; i++)
        cpu_stream_out(to + i * to_step, from + i * from_step, bytes);
}

/* ---- pieces -------------------------------------------------------------------------------- */

#define PIECE_FUNCTIONS(bits)                                                                  \
    static void transpose_##bits(move_u##bits *dst, const move_u##bits *src,                   \
                                 const struct piece *p)                                        \
    {                                                                                          \
        enum { SIDE = 128 / (bits) };                                                          \
        int64_t nb = p->nb / SIDE * SIDE, na = p->na / SIDE * SIDE;                            \
                                                                                               \
        for (int64_t b = 0; b < nb; b += SIDE)                                                 \
            for (int64_t a = 0; a < na; a += SIDE)                                             \
                square_##bits(dst + b * p->tb + a, p->tb, src + a * p->fa + b, p->fa);         \
        for (int64_t b = 0; b < p->nb; b++)                                                    \
            for (int64_t a = b < nb ? na : 0; a < p->na; a++)                                  \
                dst[b * p->tb + a] = src[a * p->fa + b];                                       \
    }                                                                                          \
                                                                                               \
    static void turn_##bits(move_u##bits *dst, const move_u##bits *src, const struct piece *p) \
    {                                                                                          \
        enum { SIZE = (bits) / 8, BS = TURN_BYTES / SIZE };                                    \
        _Alignas(64) move_u##bits in[BS * TURN_ROWS], out[BS * TURN_ROWS];                     \
        struct piece q = {.nb = p->nb, .na = p->na, .tb = TURN_ROWS, .fa = BS};                \
                                                                                               \
        if (p->nb > BS || p->na > TURN_ROWS) {                                                 \
            transpose_##bits(dst, src, p);                                                     \
            return;                                                                            \
        }                                                                                      \
        copy_rows((char *)in, TURN_BYTES, (const char *)src, p->fa *SIZE, p->na, p->nb *SIZE); \
        transpose_##bits(out, in, &q);                                                         \
        (p->streams ? stream_rows : copy_rows)((char *)dst, p->tb * SIZE, (const char *)out,   \
                                               TURN_ROWS * SIZE, p->nb, p->na * SIZE);         \
    }                                                                                          \
                                                                                               \
    static void piece_##bits(void *to, const void *from, const struct piece *p)                \
    {                                                                                          \
        move_u##bits *restrict dst = to;                                                       \
        const move_u##bits *restrict src = from;                                               \
                                                                                               \
        if (p->ta == 1 && p->fa == 1 && p->streams && p->na * (bits) / 8 >= 256) {             \
            stream_rows(to, p->tb *((bits) / 8), from, p->fb *((bits) / 8), p->nb,             \
                        p->na *((bits) / 8));                                                  \
        } else if (p->ta == 1 && p->fa == 1 && p->na * (bits) / 8 >= 64) {                     \
            for (int64_t b = 0; b < p->nb; b++)                                                \
                memcpy(dst + b * p->tb, src + b * p->fb, (size_t)p->na * (bits) / 8);          \
        } else if (p->ta == 1 && p->fa == 1) {                                                 \
            for (int64_t b = 0; b < p->nb; b++)                                                \
                for (int64_t a = 0; a < p->na; a++)                                            \
                    dst[b * p->tb + a] = src[b * p->fb + a];                                   \
        } else if (p->ta == 1 && p->fa == 0 && p->na == 2 && p->tb == 2 && p->fb == 1) {       \
            for (int64_t b = 0; b < p->nb; b++) {                                              \
                dst[2 * b] = src[b];                                                           \
                dst[2 * b + 1] = src[b];                                                       \
            }                                                                                  \
        } else if (p->ta == 1 && p->fa == 0) {                                                 \
            for (int64_t b = 0; b < p->nb; b++) {                                              \
                move_u##bits v = src[b * p->fb];                                               \
                for (int64_t a = 0; a < p->na; a++)                                            \
                    dst[b * p->tb + a] = v;                                                    \
            }                                                                                  \
        } else if (p->ta == 1 && p->fb == 1) {                                                 \
            turn_##bits(dst, src, p);                                                          \
        } else {                                                                               \
            for (int64_t b = 0; b < p->nb; b++)                                                \
                for (int64_t a = 0; a < p->na; a++)                                            \
                    dst[b * p->tb + a * p->ta] = src[b * p->fb + a * p->fa];                   \
        }                                                                                      \
    }

PIECE_FUNCTIONS(8)
PIECE_FUNCTIONS(16)
PIECE_FUNCTIONS(32)
PIECE_FUNCTIONS(64)

static void piece(int32_t size, void *dst, const void *src, const struct piece *p)
{
    switch (size) {
    case 1: piece_8(dst, src, p); break;
    case 2: piece_16(dst, src, p); break;
    case 4: piece_32(dst, src, p); break;
    default: piece_64(dst, src, p); break;
    }
}

struct job {
    const struct move *m;
    struct piece all;           /* the whole plane of the two axes */
    int64_t step_b, step_a;     /* a piece's size */
    int64_t pieces_b, pieces_a; /* how many of them */
    int32_t rank;               /* the other axes */
    int64_t dim[MOVE_MAX_RANK], to[MOVE_MAX_RANK], from[MOVE_MAX_RANK];
};

/* Where the work is: a piece of a plane, and the index of the plane on each of the other axes. */
struct place {
    int64_t pa, pb, to, from; /* to, from: of the plane */
    int64_t index[MOVE_MAX_RANK];
};

static struct place locate(const struct job *j, int64_t unit)
{
    struct place at = {.pa = unit % j->pieces_a};

    unit /= j->pieces_a;
    at.pb = unit % j->pieces_b;
    unit /= j->pieces_b;
    for (int32_t i = j->rank - 1; i >= 0; i--) {
        at.index[i] = unit % j->dim[i];
        unit /= j->dim[i];
        at.to += at.index[i] * j->to[i];
        at.from += at.index[i] * j->from[i];
    }
    return at;
}

static void advance(const struct job *j, struct place *at)
{
    if (++at->pa < j->pieces_a)
        return;
    at->pa = 0;
    if (++at->pb < j->pieces_b)
        return;
    at->pb = 0;
    for (int32_t i = j->rank - 1; i >= 0; i--) {
        at->to += j->to[i];
        at->from += j->from[i];
        if (++at->index[i] < j->dim[i])
            return;
        at->to -= j->dim[i] * j->to[i];
        at->from -= j->dim[i] * j->from[i];
        at->index[i] = 0;
    }
}

static void move_units(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct job *j = ctx;
    const struct move *m = j->m;
    struct place at = locate(j, begin);

    (void)worker;
    for (int64_t u = begin; u < end; u++, advance(j, &at)) {
        struct piece p = j->all;
        int64_t b = at.pb * j->step_b, a = at.pa * j->step_a;
        p.nb = cpu_min_i64(j->step_b, p.nb - b);
        p.na = cpu_min_i64(j->step_a, p.na - a);
        int64_t to = at.to + b * p.tb + a * p.ta, from = at.from + b * p.fb + a * p.fa;
        piece(m->size, m->dst + to * m->size, m->src + from * m->size, &p);
    }
    if (j->all.streams)
        cpu_stream_end();
}

static int32_t choose_b(const struct move *m)
{
    int32_t last = m->rank - 1;

    if (m->from[last] != 1 && m->from[last] != 0)
        for (int32_t i = 0; i < last; i++)
            if (m->from[i] == 1)
                return i;
    return last - 1;
}

static void cut(struct job *j)
{
    const struct piece *p = &j->all;
    bool transposes = p->ta == 1 && p->fb == 1 && p->fa != 1 && p->fa != 0;

    if (transposes) {
        j->step_b = cpu_min_i64(p->nb, TURN_BYTES / j->m->size);
        j->step_a = cpu_min_i64(p->na, TURN_ROWS);
    } else {
        j->step_a = cpu_min_i64(p->na, MOVE_BLOCK);
        j->step_b = cpu_min_i64(p->nb, MOVE_BLOCK / j->step_a);
    }
    j->pieces_a = (p->na + j->step_a - 1) / j->step_a;
    j->pieces_b = (p->nb + j->step_b - 1) / j->step_b;
}

static int64_t count_of(const struct move *m)
{
    int64_t n = 1;

    for (int32_t i = 0; i < m->rank; i++)
        n *= m->dim[i];
    return n;
}

void move_run(struct pool *pool, const struct move *m)
{
    int32_t a = m->rank - 1, b = m->rank ? choose_b(m) : -1;
    struct job j = {.m = m, .all = {.nb = 1, .na = 1, .tb = 0, .fb = 0, .ta = 1, .fa = 1}};

    if (a >= 0) {
        j.all.na = m->dim[a];
        j.all.ta = m->to[a];
        j.all.fa = m->from[a];
    }
    if (b >= 0) {
        j.all.nb = m->dim[b];
        j.all.tb = m->to[b];
        j.all.fb = m->from[b];
    }
    int64_t units = 1;
    j.all.streams = cpu_stream_worth((uint64_t)(count_of(m) * m->size));
    for (int32_t i = 0; i < a; i++) {
        if (i == b)
            continue;
        j.dim[j.rank] = m->dim[i];
        j.to[j.rank] = m->to[i];
        j.from[j.rank++] = m->from[i];
        units *= m->dim[i];
    }
    cut(&j);
    units *= j.pieces_a * j.pieces_b;
    cpu_for(pool, units, cpu_grain(MOVE_BLOCK, j.step_a * j.step_b), move_units, &j);
}

void move_dense(struct pool *pool, void *dst, const void *src, int64_t count, size_t size)
{
    struct move m = {.dst = dst, .src = src, .size = (int32_t)size};

    if (count == 0)
        return;
    move_axis(&m, count, 1, 1);
    move_run(pool, &m);
}

struct zero_job {
    char *dst;
    size_t size;
};

static void zero_range(void *ctx, int64_t begin, int64_t end, int worker)
{
    const struct zero_job *z = ctx;

    (void)worker;
    memset(z->dst + (size_t)begin * z->size, 0, (size_t)(end - begin) * z->size);
}

void move_zero(struct pool *pool, void *dst, int64_t count, size_t size)
{
    struct zero_job z = {dst, size};

    cpu_for(pool, count, 4 * MOVE_BLOCK, zero_range, &z);
}
