/* gpu_device.h: what the files of this folder share about a GPU. */
#ifndef LOWER_GPU_DEVICE_H
#define LOWER_GPU_DEVICE_H

#include "base/map.h"
#include "base/str.h"
#include "lower/gpu.h"

uint32_t gpu_device_max_groups(const struct gpu_device *g);
size_t gpu_device_kernels(struct gpu_device *g); /* made so far */
const struct gpu_device_desc *gpu_device_desc(const struct gpu_device *g);

/* The kernel of that key, made if there is none yet; it lives as long as the device. source: of a
 * generated one. how: its buffers are bound, which is part of the key. buffers, words: what the
 * caller passes; INTERNAL where the kernel wants more buffers, or fewer. */
rlx_status gpu_find_kernel(struct gpu_device *g, const char *key, rlx_str source,
                           const struct kc_binding *how, uint32_t buffers, uint32_t words,
                           const struct gpu_kernel **out, struct diag *d);

/* A kernel that was made elsewhere, for one use; drop it after. No two of its buffers may overlap,
 * and all begin where a buffer can. */
rlx_status gpu_build_kernel(struct gpu_device *g, const struct kir *k, const char *key,
                            struct arena *scratch, struct gpu_kernel *out, struct diag *d);
void gpu_drop_kernel(struct gpu_device *g, struct gpu_kernel *k);

/* So many groups in up to three dimensions of at most `limit` each, as few as will do, with some to
 * spare; false: too many. */
bool gpu_fold_grid(uint64_t count, uint32_t limit, uint32_t grid[3]);

/* How many bytes of it a kernel can see: what begins behind the start of what can be bound is shown
 * from there on. */
uint64_t gpu_seen(const struct gpu_call *c, struct gpu_arg a);
/* Through how many windows a kernel sees it. */
uint64_t gpu_windows(const struct gpu_call *c, struct gpu_arg a);
/* Rows of so many bytes begin where a buffer can, each so many. */
uint64_t gpu_aligned_rows(uint64_t row);
/* The lowering of the call's node, a few rows at a time where its tensors are larger than what a
 * kernel can see (parts.c). */
void gpu_lower_in_parts(struct gpu_call *c, gpu_lower_fn lower);

/* The same kernel for buffers that overlap; merge and windows as in struct kc_binding. */
rlx_status gpu_find_variant(struct gpu_device *g, const struct gpu_kernel *k, const uint32_t *merge,
                            const uint32_t *windows, const struct gpu_kernel **out, struct diag *d);

/* bind.c: where a launch's buffers lie, and its words with the offsets of those that begin
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
rlx_status gpu_lower_step(struct gpu_device *g, struct gpu_work *w, int32_t step, struct diag *d);
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

/* half_weights.c: 1 + the operand that the node wants in f16; 0: none. Its copy, the last operand
 * of the step. */
int32_t gpu_half_operand(const struct select_call *c);
rlx_status gpu_select_half(struct select_call *c, const struct gpu_work *w);

/* A text to write a kernel's source into, empty, and its end. Memory is kept for the next one, so
 * that sizes can change without asking for any. */
void gpu_take_text(struct gpu_device *g, struct text *out);
void gpu_give_text(struct gpu_device *g, struct text *t);

/* families.c; NULL: there is none. in_place: operands that the result may be written over. */
gpu_lower_fn gpu_lowering(enum op_family f, uint32_t *in_place);

#endif
