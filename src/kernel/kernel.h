/* kernel.h: the kernel compiler: .rlk source, made for one use, as SPIR-V or WGSL.
 *
 *     source  =>  tokens  =>  tree  =>  kir, for given types and constants  =>  SPIR-V, WGSL
 *
 * It knows no graphs and no devices; what a device can do comes in as a few flags. */
#ifndef KERNEL_KERNEL_H
#define KERNEL_KERNEL_H

#include "base/diag.h"
#include "kernel/kir.h"

/* Where `use "lib/math"` comes from: the text of a file; false: there is none of that name. */
struct kc_sources {
    bool (*find)(void *user, rlx_str name, rlx_str *text);
    void *user;
};
/* The kernels that are part of the library. */
extern const struct kc_sources kc_library;
/* The i-th of its files; NULL past the last, and only there. */
const char *kc_library_name(size_t i);

/* One of a kernel's constants or types: "WG", "256"; "T", "f16"; "HAS_BIAS", "true". */
struct kc_define {
    rlx_str name, value;
};

/* What the device has; each is a constant of that name in the source. */
struct kc_features {
    bool f16;                 /* HAS_F16: arithmetic in f16 */
    bool f16_rounds;          /* conversions to f16 round to nearest even */
    bool nan_preserve;        /* NaN and Inf can be asked to stay what they are */
    bool small_preserve;      /* and so can numbers below the normal ones */
    bool f64;                 /* HAS_F64 */
    bool int64;               /* HAS_INT64 */
    bool subgroups;           /* HAS_SUBGROUPS */
    bool dot8;                /* HAS_DOT8: packed products of bytes */
    bool fma;                 /* HAS_FMA */
    bool coop, coop_group;    /* HAS_COOP, HAS_COOP_GROUP: cooperative matrices, and of the group */
    bool coop_bf16;           /* HAS_COOP_BF16: and of bf16 */
    bool coop_rows;           /* HAS_COOP_ROWS: and functions of their rows and elements */
    bool storage16, storage8; /* buffers of 16 and 8 bits; else they are words */
    uint32_t subgroup_size;   /* SUBGROUP_SIZE; 0: it varies */
    uint32_t max_group;       /* MAX_GROUP: invocations */
    uint32_t shared_bytes;    /* of a group */
};
/* All there is, as a large Vulkan device has it; and what every WebGPU device has. */
extern const struct kc_features kc_all_features, kc_least_features;

/* A kernel of the file, for these constants. Everything lives in the arena. FORMAT, with line,
 * column and the line itself, where the source is wrong; ARGUMENT where a constant is; LIMIT. */
rlx_status kc_specialise(const struct kc_sources *sources, rlx_str file, rlx_str kernel,
                         const struct kc_define *given, size_t count,
                         const struct kc_features *features, struct arena *arena, struct kir *out,
                         struct diag *d);

/* The names of a file's kernels, in order. */
rlx_status kc_kernels(const struct kc_sources *sources, rlx_str file, struct arena *arena,
                      rlx_str **names, size_t *count, struct diag *d);

/* How a kernel's buffers are bound. */
struct kc_binding {
    const uint32_t *merge;   /* those that overlap are one binding: merge[i] is the first of those
                                that i is in; NULL: all are apart */
    const bool *offset;      /* elements of i begin after the start of its binding, as do those of
                                all merged ones; NULL: no others */
    const uint32_t *windows; /* of the first: it is so many bindings, one after the other; 0 or
                                NULL: one */
    uint64_t window;         /* bytes of each but the last; elements fit into it without a rest */
};
/* The same kernel with bindings for buffers; buffer i lies in those from first[i] on. Offsets, in
 * elements, are words of the parameter block after the kernel's own, in the order of the buffers.
 * LIMIT where a matrix is loaded through windows. */
rlx_status kc_bind(const struct kir *k, const struct kc_binding *how, struct arena *arena,
                   struct kir *out, uint32_t *first, struct diag *d);
/* Has buffer i of so many such an offset? */
bool kc_begins_inside(const struct kc_binding *how, uint32_t i, uint32_t buffers);

struct kc_emit {
    const struct kc_features *features;
    bool read_write;      /* WGSL: all buffers, as a device may see one in one way at a time */
    bool plain_subgroups; /* WGSL: a compiler that knows no `enable subgroups` */
};
/* Words of a module for Vulkan 1.1 (SPIR-V 1.3), or 1.6 where cooperative matrices are used.
 * Binding i is buffer i; the parameter block is push constants up to 128 bytes, else a buffer
 * after the last. */
rlx_status kc_emit_spirv(const struct kir *k, const struct kc_emit *how, struct arena *arena,
                         uint32_t **words, size_t *count, struct diag *d);
/* The same as WGSL; the parameter block is a uniform buffer, and its last word, after all others,
 * must be 0: the compiler is not to know what it is. */
rlx_status kc_emit_wgsl(const struct kir *k, const struct kc_emit *how, struct text *out,
                        struct diag *d);

#endif
