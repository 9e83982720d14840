/* lower_epilogue.h: what becomes of sums before they are stored (kernels/lib/epilogue). */
#ifndef LOWER_EPILOGUE_H
#define LOWER_EPILOGUE_H

#include "lower/gpu.h"

struct gpu_epilogue {
    int32_t bias;     /* operand that is added, broadcast to the result; -1: none */
    uint32_t act;     /* a number of kernels/lib/epilogue; 0: none */
    rlx_op after;     /* an activation that these kernels do not have, for a launch of its own */
    rlx_dtype stored; /* the result's, or the sums' where something comes after */
    int32_t rank;     /* of the walk through the bias, at least 1 */
    uint64_t size[RLX_MAX_RANK], step[RLX_MAX_RANK];
};

/* None. */
struct gpu_epilogue gpu_no_epilogue(const struct gpu_call *c);
/* bias -1: none. */
struct gpu_epilogue gpu_epilogue_of(struct gpu_call *c, int32_t bias, rlx_op act);

/* BIAS, BRANK and ACT; then the buffer; then the words of the walk. */
void gpu_epilogue_constants(struct gpu_call *c, const struct gpu_epilogue *e);
void gpu_epilogue_bind(struct gpu_call *c, const struct gpu_epilogue *e);
void gpu_epilogue_words(struct gpu_call *c, const struct gpu_epilogue *e);

/* Where the kernel stores: the result, or scratch that finish makes the result of. */
struct gpu_arg gpu_epilogue_result(struct gpu_call *c, const struct gpu_epilogue *e);
void gpu_epilogue_finish(struct gpu_call *c, const struct gpu_epilogue *e, struct gpu_arg y);

#endif
