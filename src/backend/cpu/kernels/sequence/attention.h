/* attention.h: scores of some queries with some keys, a tile at a time (ops-core.md 13).
 *
 * Query heads that share a key head are done together: a row is one query of one head of such a
 * group, and a tile is up to ATTENTION_ROWS rows by ATTENTION_KEYS keys. Tiles are stored by keys,
 *
 *     z[key][row]
 *
 * so that rows are the lanes of vectors: maxima and sums over keys need no shuffling, keys and
 * values are read where they lie, and only the rows of q are ever transposed (a panel, [d][row]).
 *
 * Everything is computed in f32, or f64 for f64; struct attention_math holds the functions of
 * either type, and buffers are void pointers to it. Pairs that a mask excludes contribute nothing,
 * whatever their keys and values hold: a tile that has some says so, and marks the others in
 * `keep`. */
#ifndef BACKEND_ATTENTION_H
#define BACKEND_ATTENTION_H

#include "backend/cpu/kernels/common.h"
#include "ir/attention.h"

enum { ATTENTION_ROWS = 64, ATTENTION_KEYS = 96 };

/* q, k, v, dy or a result: strides in elements, the head's own elements lie together. */
struct attention_operand {
    char *data;
    rlx_dtype dtype;
    int64_t batch, head, position;
    int64_t dim, width; /* elements of a head; the same rounded up to whole vectors */
};

struct attention {
    int64_t batch, heads, kv_heads, group, head_dim, value_dim, queries, keys;
    int64_t rows;      /* queries of a group */
    int64_t blocks;    /* of ATTENTION_ROWS rows */
    double scale, cap; /* cap 0: none */
    int32_t layout, mask_kind;
    int64_t window;
    int64_t shift; /* what position the first query has */
    struct attention_operand q, k, v;
    const struct cpu_tensor *mask;             /* NULL: none */
    int64_t mask_batch, mask_head, mask_query; /* strides; 0 where it broadcasts */
    const struct cpu_tensor *sinks;            /* NULL: none */
    double max_bias;                           /* of ALiBi; 0: none */
    const struct attention_math *math;
};

struct attention_tile {
    int64_t batch, kv;
    int64_t row, rows, lanes; /* lanes: rows, rounded up to whole vectors */
    int64_t key, keys;
    int64_t low[ATTENTION_ROWS], high[ATTENTION_ROWS]; /* keys that causality lets each row see */
    int64_t first, end;                                /* keys that any row sees */
    bool partial;                                      /* some pairs are excluded */
    double slope[ATTENTION_ROWS]; /* what ALiBi takes from scores, by distance */
};

/* c[i][j] = (add ? c[i][j] : 0) + sum over k of a[i * a_i + k * a_k] * b[k * b_ld + j]. One of a's
 * strides is 1; n is a multiple of a vector. */
struct attention_product {
    int64_t m, n, k;
    const void *a, *b;
    int64_t a_i, a_k, b_ld;
    void *c;
    int64_t c_ld;
    bool add;
    const uint8_t *keep; /* laid out as a is, or NULL; 0: that element of a takes no part */
};

/* A worker's private memory; what is not needed is NULL. */
enum attention_needs {
    ATTENTION_NEEDS_DP = 1, /* dy_panel, dp, delta */
    ATTENTION_NEEDS_SLOPE = 2,
    ATTENTION_NEEDS_GATHER = 4
};
struct attention_room {
    void *q_panel, *dy_panel;  /* [head_dim or value_dim][ROWS] */
    void *z, *dp, *slope;      /* [KEYS][ROWS]; slope: the derivative of the cap */
    uint8_t *keep;             /* [KEYS][ROWS], where the tile is partial: 0 for excluded pairs */
    void *k, *v;               /* [KEYS][their width] */
    void *gathered;            /* [ROWS][the larger width] */
    void *sum;                 /* [ROWS or KEYS, whichever is more][the larger width] */
    void *max, *total, *delta; /* [ROWS] */
};

struct attention_math {
    int64_t size, lanes;
    rlx_dtype dtype;

    /* The tile's rows of an operand as a panel, or one after another, its width apart. */
    void (*panel)(const struct attention *a, const struct attention_operand *o,
                  const struct attention_tile *t, void *panel);
    void (*gather)(const struct attention *a, const struct attention_operand *o,
                   const struct attention_tile *t, void *rows);
    /* The tile's keys of an operand, its width apart: in place, or copied to room. */
    const void *(*keys)(const struct attention_operand *o, const struct attention_tile *t,
                        void *room);
    /* Sums, the operand's width apart, to its rows or keys. */
    void (*put_rows)(const struct attention *a, const struct attention_operand *o,
                     const struct attention_tile *t, const void *sum);
    void (*put_keys)(const struct attention_operand *o, const struct attention_tile *t,
                     const void *sum);
    /* n rows like those of the operand. */
    bool (*finite)(const struct attention_operand *o, const void *rows, int64_t n);

    void (*product)(const struct attention_product *p);
    /* z, and slope if there is room for it, from q_panel and keys k. Excluded pairs get -Inf. */
    void (*scores)(const struct attention *a, struct attention_tile *t, const void *k,
                   const struct attention_room *r);

    void (*start)(const struct attention_room *r, int64_t sums); /* no keys seen yet */
    /* z becomes e^(z - max). total, delta (the sum of that times dp; room may have none) and sum
     * (rows of it, unless rows is 0) follow when max grows. */
    void (*softmax)(const struct attention *a, const struct attention_tile *t,
                    const struct attention_room *r, int64_t rows);
    /* total grows by what the sinks of the rows' heads have of it; max is only of keys. */
    void (*sink)(const struct attention *a, const struct attention_tile *t,
                 const struct attention_room *r);
    /* sum /= total; rows that saw no key give 0. */
    void (*divide)(const struct attention *a, const struct attention_tile *t,
                   const struct attention_room *r);
    /* total becomes 1 / total, 0 for rows that saw no key; delta is divided by it. */
    void (*invert)(const struct attention_tile *t, const struct attention_room *r);
    /* z becomes P, or dz if there is a dp; keep is 0 where P is, and z is 0 there. */
    void (*probability)(const struct attention_tile *t, const struct attention_room *r);
    /* z *= scale, and slope where there is one. */
    void (*chain)(const struct attention *a, const struct attention_tile *t,
                  const struct attention_room *r);
};

#define attention_describe CPU_NAME(attention_describe)
#define attention_math_of CPU_NAME(attention_math_of)
#define attention_carve CPU_NAME(attention_carve)
#define attention_rows CPU_NAME(attention_rows)
#define attention_operand_of CPU_NAME(attention_operand_of)

/* Operands from `first` on are the mask and the sinks. */
void attention_describe(struct attention *a, const struct cpu_call *c,
                        const struct attr_attention *attr, int32_t first);
/* t with the rows of q or the keys of k, and heads of so many elements. */
struct attention_operand attention_operand_of(const struct attention *a, const struct cpu_tensor *t,
                                              bool like_q, int64_t dim);
const struct attention_math *attention_math_of(rlx_dtype dtype);

/* Where a worker's buffers are from base on; returns their bytes. base NULL: only that. */
uint64_t attention_carve(const struct attention *a, unsigned needs, char *base,
                         struct attention_room *r);

/* The tile of rows from `row` on, up to `end`; keys are yet to be chosen. */
void attention_rows(const struct attention *a, struct attention_tile *t, int64_t batch, int64_t kv,
                    int64_t row, int64_t end);
/* Keys from `key` on, up to `end`. */
static inline void attention_keys(struct attention_tile *t, int64_t key, int64_t end)
{
    t->key = key;
    t->keys = cpu_min_i64(ATTENTION_KEYS, end - key);
}

#endif
