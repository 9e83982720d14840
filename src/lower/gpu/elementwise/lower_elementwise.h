/* lower_elementwise.h: kernels that are made as text: one element of each result from one element
 * of each operand. What is computed stands in lines of the kernel language, on values that are
 * called x0, x1 .. (operands) and whatever the lines call theirs.
 *
 *     struct ew e;
 *     ew_begin(&e, c, c->out);
 *     struct ew_value x = ew_input(&e, gpu_in(c, 0), &c->in[0]);
 *     ew_line(&e, "let s = op_exp(%s)", x.name);
 *     ew_store(&e, gpu_out(c), c->out->dtype, "s");
 *     ew_end(&e);
 *
 * A value of f16 or bf16 is an f32 meanwhile, one of a narrow integer an i32 or u32 in range, and
 * c64 an f32x2. */
#ifndef LOWER_ELEMENTWISE_H
#define LOWER_ELEMENTWISE_H

#include "base/str.h"
#include "lower/gpu.h"

#define EW_RANK (RLX_MAX_RANK + 2) /* two axes may be split in two */
#define EW_WORDS 8

/* Files of kernels/lib that the lines need. */
enum ew_use {
    EW_USE_FLOAT = 1,
    EW_USE_CIRCLE = 2,
    EW_USE_INT = 4,
    EW_USE_CAST = 8,
    EW_USE_COMPLEX = 16,
    EW_USE_FMOD = 32,
    EW_USE_QUANT = 64
};

struct ew_value {
    char name[16];
    rlx_dtype dtype;
};

struct ew {
    struct gpu_call *c;
    struct text lines;
    int32_t weight; /* of the lines: about how long their code is */
    unsigned uses;
    int32_t rank;
    int64_t size[EW_RANK];
    int32_t ins, outs;
    struct ew_in {
        struct gpu_arg arg;
        rlx_dtype dtype;
        int64_t step[EW_RANK];
    } in[GPU_BUFFERS];
    struct ew_out {
        struct gpu_arg arg;
        rlx_dtype dtype;
        char name[16];
    } out[GPU_BUFFERS];
    uint32_t word[EW_WORDS];
    int32_t words;
};

/* Results have the shape of this type, whatever their dtypes. */
void ew_begin(struct ew *e, struct gpu_call *c, const struct ir_type *shape);
/* The same for any sizes. */
void ew_begin_sizes(struct ew *e, struct gpu_call *c, int32_t rank, const int64_t *size);
/* An operand that is broadcast to the shape. */
struct ew_value ew_input(struct ew *e, struct gpu_arg a, const struct ir_type *t);
/* One with steps of its own, an element count per axis. */
struct ew_value ew_input_steps(struct ew *e, struct gpu_arg a, rlx_dtype t, const int64_t *step);
void ew_line(struct ew *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A word that the lines find as w[the number given back]. */
int32_t ew_word(struct ew *e, uint32_t bits);
/* The value of that name is a result. */
void ew_store(struct ew *e, struct gpu_arg a, rlx_dtype t, const char *name);
void ew_end(struct ew *e);

/* What values of a dtype are called while they are computed with. */
const char *ew_carrier(rlx_dtype t);

/* A dtype of the same width, for elements that are only moved. */
static inline rlx_dtype ew_raw(rlx_dtype t)
{
    switch (rlx_dtype_size(t)) {
    case 1: return RLX_DTYPE_u8;
    case 2: return RLX_DTYPE_u16;
    case 4: return RLX_DTYPE_u32;
    default: return RLX_DTYPE_u64;
    }
}

/* Lines that give `name` the value of one step of a chain: a unary, binary, compare, cast or where
 * op. `to` is for casts. Returns what it gives. */
struct ew_value ew_step(struct ew *e, const char *name, rlx_op op, rlx_dtype to,
                        const struct ew_value *in);
int32_t ew_step_operands(rlx_op op);

#endif
