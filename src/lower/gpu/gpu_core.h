/* gpu_core.h: what the files of this folder share: kernels by their names, what a kernel can see,
 * launches and loops as they are collected. */
#ifndef LOWER_GPU_CORE_H
#define LOWER_GPU_CORE_H

#include "base/map.h"
#include "lower/gpu.h"

/* The kernel of that key, made if there is none yet; it lives as long as the device. source: of a
 * generated one. how: its buffers are bound, which is part of the key. buffers, words: what the
 * caller passes; INTERNAL where the kernel wants more buffers, or fewer. */
rlx_status gpu_find_kernel(struct gpu_target *t, const char *key, rlx_str source,
                           const struct kc_binding *how, uint32_t buffers, uint32_t words,
                           const struct gpu_kernel **out, struct diag *d);

/* How many bytes of it a kernel can see: what begins after the start of what can be bound is shown
 * from there on. */
uint64_t gpu_seen(const struct gpu_call *c, struct gpu_arg a);
/* Through how many windows a kernel sees it. */
uint64_t gpu_windows(const struct gpu_call *c, struct gpu_arg a);
/* Rows of so many bytes begin where a buffer can, each so many. */
uint64_t gpu_aligned_rows(uint64_t row);
/* The lowering of the call's node, a few rows at a time where its tensors are larger than what a
 * kernel can see (gpu_parts.c). */
void gpu_lower_in_parts(struct gpu_call *c, gpu_lower_fn lower);

/* gpu_bind.c: where a launch's buffers lie, and its words with the offsets of those that begin
 * elsewhere; then they become its bindings. */
struct gpu_placed {
    struct span span[GPU_BUFFERS];
    uint32_t *word, words; /* word: the caller's */
};
rlx_status gpu_place_buffers(const struct gpu_work *w, const struct gpu_launch *l,
                             const struct command *c, struct span fault, uint64_t align,
                             struct gpu_placed *out, struct diag *d);
void gpu_open_windows(const struct gpu_kernel *k, const struct span *whole, struct gpu_bound *out);

/* A work's launches for the sizes of now. LIMIT if it needs more scratch than was planned. */
rlx_status gpu_lower_step(struct gpu_target *t, struct gpu_work *w, int32_t step, struct diag *d);
/* The launch's words are those of its kernel: they come to lie in its order (gpu_words.c). */
void gpu_check_words(struct gpu_call *c, const struct gpu_kernel *k);
/* Launches that were made elsewhere. The words' place is returned. */
uint32_t gpu_add_words(struct gpu_call *c, const uint32_t *word, uint32_t count);
void gpu_add_launch(struct gpu_call *c, const struct gpu_launch *l);

/* A loop of the launches that follow (struct gpu_loop): first those that tell whether to go on,
 * then those of a round. What begin returns names it. */
uint32_t gpu_begin_loop(struct gpu_call *c, const struct gpu_loop *l);
void gpu_begin_round(struct gpu_call *c, uint32_t loop);
void gpu_end_loop(struct gpu_call *c, uint32_t loop);

/* gpu_half_weights.c: 1 + the operand that the node wants in f16; 0: none. Its copy, the last
 * operand of the step. */
int32_t gpu_half_operand(const struct select_call *c);
rlx_status gpu_select_half(struct select_call *c, const struct gpu_work *w);

/* A text to write a kernel's source into, empty, and its end. Memory is kept for the next one, so
 * that sizes can change without asking for any. */
void gpu_take_text(struct gpu_target *t, struct text *out);
void gpu_give_text(struct gpu_target *t, struct text *text);

/* families.c; NULL: there is none. in_place: operands that the result may be written over. */
gpu_lower_fn gpu_lowering(enum op_family f, uint32_t *in_place);

#endif
