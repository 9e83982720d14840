/* gemm_kind.h: the inner loops of gemm, one row per kind of element. */
#ifndef BACKEND_GEMM_KIND_H
#define BACKEND_GEMM_KIND_H

#include "backend/cpu/kernels/gemm/gemm.h"

/* m x n sums, m <= mr and n <= nr, of one panel of a and one of b, over `lanes` lanes of k. They go
 * to c, or are added to what is there; rows of c are `ld` sums apart. width: lines of a's panel. */
typedef void (*gemm_micro_fn)(int64_t lanes, const void *a, int64_t width, const void *b, void *c,
                              int64_t ld, bool add, int64_t m, int64_t n);

struct gemm_loop {
    gemm_micro_fn micro;
    int64_t mr, nr;  /* lines of a panel of a, of b */
    int64_t sum;     /* bytes of a sum */
    int64_t size;    /* bytes of an element in a panel */
    int64_t step;    /* k per lane; a panel has whole lanes, with zeros past the last k */
    int64_t stretch; /* k that sums stay in registers for, at most */
    /* For b's panels of f16, of bf16; NULL: they are widened first. */
    gemm_micro_fn with_f16, with_bf16;
    /* Around the work of one thread; NULL: nothing to do. */
    void (*enter)(void);
    void (*leave)(void);
};

#define gemm_loop_of CPU_NAME(gemm_loop_of)
const struct gemm_loop *gemm_loop_of(enum gemm_kind kind);

static inline int64_t gemm_lanes(const struct gemm_loop *l, int64_t ks)
{
    return (ks + l->step - 1) / l->step;
}

/* Lines of a's panels in a product of m rows. Where one panel holds all of them it is no wider than
 * they are: empty lines would be read along with the others. Tiles of AMX are always whole. */
static inline int64_t gemm_a_width(const struct gemm_loop *l, int64_t m)
{
    return l->enter ? l->mr : cpu_min_i64(l->mr, m);
}

/* Bytes of ks of k of one line in a panel. */
static inline int64_t gemm_line_bytes(const struct gemm_loop *l, int64_t ks)
{
    return gemm_lanes(l, ks) * l->step * l->size;
}

/* k of a whole stretch, where there are k in all. */
static inline int64_t gemm_stretch(const struct gemm_loop *l, int64_t k)
{
    return gemm_up(cpu_min_i64(l->stretch, cpu_max_i64(k, 1)), l->step);
}

/* Panels of some lines over all of k, one stretch after another:
 *
 *     stretch 0: panel 0, 1, ..    stretch 1: panel 0, 1, ..
 *
 * Where the part of lines from `line` on, a multiple of the panel's width, begins in the stretch at
 * k: bytes from the first. lines: of all panels. */
static inline int64_t gemm_panels_at(const struct gemm_loop *l, int64_t lines, int64_t all_k,
                                     int64_t line, int64_t k)
{
    int64_t stretch = gemm_stretch(l, all_k), ks = cpu_min_i64(stretch, all_k - k);
    return k / stretch * lines * gemm_line_bytes(l, stretch) + line * gemm_line_bytes(l, ks);
}

/* Bytes of all of them. */
static inline int64_t gemm_panels_bytes(const struct gemm_loop *l, int64_t lines, int64_t all_k)
{
    int64_t stretch = gemm_stretch(l, all_k), whole = all_k / stretch;
    return lines * (whole * gemm_line_bytes(l, stretch) + gemm_line_bytes(l, all_k % stretch));
}

#endif
