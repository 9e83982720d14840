/* custom.h: ops of your own, for rlx_context_desc.custom_ops. */
#ifndef RLX_CUSTOM_H
#define RLX_CUSTOM_H

#include "rlx/rlx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An op of your own (ops-core.md 18.1). All pointers in it must outlive the context. */
typedef struct rlx_custom_op {
    uint32_t size;
    const char *name;
    int32_t inputs; /* how many it takes */
    /* Fill out's dtype, rank and dims from the inputs' (data is NULL); dims are sizes. A failure's
     * sentence goes to message (256 bytes). Pure: called when a graph is built and again later. In
     * a graph with symbolic dims it is first called with made-up sizes, to find out which sizes of
     * the result come from an input, and then with those of each binding. */
    rlx_status (*infer)(void *user, const rlx_tensor *in, int32_t in_count, const void *attrs,
                        size_t attrs_size, rlx_tensor *out, char *message);
    /* Read the inputs, write every element of out, which overlaps none of them. Deterministic. For
     * an op of several results, out is an array of all of them, here and in infer. Called on the
     * thread that runs: the caller's of rlx_session_run, the device's own after a submit. */
    rlx_status (*cpu)(void *user, const rlx_tensor *in, int32_t in_count, const void *attrs,
                      size_t attrs_size, rlx_tensor *out);
    void *user;
    /* Its gradient, in ordinary nodes that the builders of rlx/graph.h add to g: dy is that of its
     * value y; put that of in[i], a value of the same type, into dx[i], or leave RLX_NO_VALUE for
     * none. What the builders refuse is reported. NULL: asking for the gradient is an error. */
    rlx_status (*vjp)(void *user, rlx_graph *g, const rlx_value *in, int32_t in_count,
                      const void *attrs, size_t attrs_size, rlx_value y, rlx_value dy,
                      rlx_value *dx);
    bool non_differentiable; /* it has none, and nothing flows through it */
    /* For GPUs: source in the kernel language (docs/kernel-language.md) with a kernel named
     * `custom`. Its parameters: a buffer for each input, one for the result, `count: u32`, the
     * elements of the result, `dims: [u32; 8 * (inputs + 1)]`, the sizes of each, the result's
     * last, padded with ones, and, where there are attributes, their bytes as `attrs: [u32; n]`,
     * padded with zeros. There is an invocation per element, in groups of 256. NULL: no GPU runs
     * it. An op of several results has a buffer and eight sizes for each; count is of the first. */
    const char *kernel;
    /* How many results it has, 8 at most; 0 is 1. A node `custom` has the one that its attribute
     * `result` says, 0 if it says none, so nodes that differ in it alone give them all. */
    int32_t outputs;
    /* How many groups of its kernel there are, along x, y and z; the group's size is then whatever
     * the kernel declares. Any of them 0: the kernel has nothing to do. Pure. NULL: as above. */
    rlx_status (*grid)(void *user, const rlx_tensor *in, int32_t in_count, const void *attrs,
                       size_t attrs_size, const rlx_tensor *out, uint32_t groups[3]);
} rlx_custom_op;

#ifdef __cplusplus
}
#endif
#endif
