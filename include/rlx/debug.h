/* debug.h: what the compiler leaves out, checks or does otherwise, to find out where a result or
 * its speed comes from. Results stay the same, up to rounding; speed and memory do not.
 *
 * The fields follow the compiler, and may change with any version. Each is also a flag of the
 * environment and of the command (docs/debugging.md), and a row of src/base/options.def, in the
 * same order. */
#ifndef RLX_DEBUG_H
#define RLX_DEBUG_H

#ifndef RLX_UNSTABLE
#error "rlx/debug.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/rlx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where an op has both a kernel of its own and a body of simpler ops. */
typedef enum rlx_dispatch {
    RLX_DISPATCH_AUTO = 0,
    RLX_DISPATCH_COMMON = 1,
    RLX_DISPATCH_NATIVE = 2
} rlx_dispatch;

/* See rlx_session_desc.debug. Zero is every field's default. */
typedef struct rlx_debug_desc {
    uint32_t size;
    bool no_optimize;        /* only the passes without which the device cannot run the graph */
    bool no_fold;            /* constants are not computed beforehand */
    bool no_cse;             /* equal nodes stay apart */
    bool no_fusion;          /* none of the fusions, or not these: */
    bool no_matmul_fusion;   /* matmul and conv with bias and activation */
    bool no_residual_fusion; /* residual norms */
    bool no_weight_concat;   /* matmuls of one input as one, and the dual matmul of SwiGLU */
    bool no_regions;         /* chains of elementwise ops as one step */
    bool no_static_pack;     /* what depends on params alone is computed in every run */
    /* Nodes that would share a step stay apart: a product and the thirds of its columns, these and
     * the attention that reads them, a residual sum and the norm of it. */
    bool no_qkv_split, no_packed_qkv, no_norm_tee;
    bool assert_fusion_clean; /* GRAPH when a fusion was missed, with the list */
    bool verify_passes;       /* the graph is verified after every pass */
    rlx_dispatch dispatch;
    /* Exceptions from dispatch: names of ops with commas between them, which must outlive the
     * session; what stands in both lists is native. */
    const char *native_ops, *common_ops;
    bool no_packed_weights; /* kernels read weights as they are: slower, but no copies */
    uint64_t alignment; /* of slots, 16 to 65536; 0: the device's; GPUs take no less than theirs */
    bool no_reuse;      /* every tensor its own bytes */
    bool no_in_place;   /* no result takes the bytes of an operand */
    bool check_plan;    /* the memory plan is checked */
} rlx_debug_desc;

#ifdef __cplusplus
}
#endif
#endif
