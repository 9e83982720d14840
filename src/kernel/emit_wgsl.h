/* emit_wgsl.h: what the files that write WGSL share. Names: b0 buffers, m0 variables, v0 values. */
#ifndef KERNEL_EMIT_WGSL_H
#define KERNEL_EMIT_WGSL_H

#include "base/diag.h"
#include "kernel/kernel.h"

struct wgsl {
    const struct kir *k;
    const struct kc_features *f;
    const struct kc_emit *how;
    struct text *out;
    struct diag *diag;
    rlx_status status;
    uint32_t param_words;
    int indent;
};

void wgsl_line(struct wgsl *w); /* a new one, indented */
void wgsl_type(struct wgsl *w, struct kir_type t);
void wgsl_value(struct wgsl *w, kir_value v); /* a name, or a number */

void wgsl_hex(struct wgsl *w, double v, char suffix); /* a finite number */

/* ---- emit_wgsl_memory.c ---- */
rlx_status wgsl_interface(struct wgsl *w);
bool wgsl_memory(struct wgsl *w, const struct kir_instr *n,
                 uint32_t i); /* false: not one of these */
/* A parameter word by its number, or v words further. */
void wgsl_param_word(struct wgsl *w, uint32_t word, kir_value more);

#endif
