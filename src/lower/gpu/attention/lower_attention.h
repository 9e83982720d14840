/* lower_attention.h: what attention and its gradients have in common on a GPU: sizes, strides,
 * tiles. */
#ifndef LOWER_ATTENTION_H
#define LOWER_ATTENTION_H

#include "ir/attention.h"
#include "lower/gpu.h"

/* Strides of q, k, v, or of y and dy, in elements; a head's own elements lie together. */
struct gpu_attention_lines {
    uint64_t batch, head, line;
};

/* MASK of kernels/lib/attention. */
enum gpu_attention_mask {
    GPU_MASK_NONE,
    GPU_MASK_RANGE,
    GPU_MASK_BIAS,
    GPU_MASK_BOOL,
    GPU_MASK_WHOLE,
    GPU_MASK_REAL,
    GPU_MASK_NEAR,
    GPU_MASK_CHUNK
};

struct gpu_attention {
    uint64_t batch, heads, kv_heads, head_dim, value_dim, queries, keys;
    rlx_dtype dtype, kv_dtype, sums; /* of q and y, of k and v, what is computed in */
    double scale, cap;               /* cap 0: none */
    enum gpu_attention_mask mask;
    rlx_dtype mask_dtype;
    struct gpu_arg mask_arg, sinks_arg; /* where there are none, q: kernels do not look at it */
    bool has_sinks;
    rlx_dtype sinks_dtype;
    double max_bias;                   /* of ALiBi; 0: none */
    uint64_t alibi_period, first_head; /* first_head: where only some heads are done */
    uint64_t mask_batches, mask_heads, mask_queries; /* its sizes; 1 broadcasts */
    struct gpu_attention_lines q, k, v, y, m;        /* m: 0 where it broadcasts */
    uint64_t shift, window;
};

/* Lines of a group, those it meets at a time, and how much of them is staged: see
 * kernels/lib/attention. */
struct gpu_attention_tile {
    uint32_t own, other;
    uint32_t depth;   /* elements of lines for products */
    uint32_t lines;   /* lines for sums */
    uint32_t columns; /* of a result, for one group */
    uint32_t slices;  /* groups that it takes for all of head_dim */
};

/* Operands from `first` on are the mask and the sinks. */
void gpu_attention_describe(struct gpu_attention *a, const struct gpu_call *c,
                            const struct attr_attention *attr, int32_t first);
struct gpu_arg gpu_attention_no_sinks(struct gpu_arg q);
/* For so many own lines, and results whose lines have so many elements. */
struct gpu_attention_tile gpu_attention_tiles(const struct gpu_attention *a,
                                              const struct gpu_call *c, uint64_t own_lines,
                                              uint64_t elements);
/* The constants that all kernels take. */
void gpu_attention_constants(struct gpu_call *c, const struct gpu_attention *a,
                             const struct gpu_attention_tile *t);
/* Constants and types of what all forward kernels and `measure` know about sinks; after the mask
 * they have the sinks. */
void gpu_attention_sinks(struct gpu_call *c, const struct gpu_attention *a);
/* The words that all kernels end with: those of `how`, and strides. */
void gpu_attention_words(struct gpu_call *c, const struct gpu_attention *a);
/* Three words: batch, head and line. */
void gpu_attention_line_words(struct gpu_call *c, const char *const name[3],
                              const struct gpu_attention_lines *l);

/* With cooperative matrices, so many heads at a time; false: these do not fit. Blocks with results
 * that are not finite must be done again otherwise. */
bool gpu_coop_attention(struct gpu_call *c, const struct gpu_attention *a, uint64_t heads);

#endif
