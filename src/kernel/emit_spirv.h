/* emit_spirv.h: what the files that write SPIR-V share. */
#ifndef KERNEL_EMIT_SPIRV_H
#define KERNEL_EMIT_SPIRV_H

#include "kernel/spirv.h"

/* How the elements of a buffer lie there. */
enum spirv_layout {
    LAYOUT_PLAIN,  /* as values of their type */
    LAYOUT_SMALL,  /* integers of 8 or 16 bits, one each */
    LAYOUT_PACKED, /* several in a u32 word */
    LAYOUT_WORDS   /* a narrow vector in one word or two */
};

struct emit {
    struct spirv s;
    const struct kir *k;
    const struct kc_features *f;
    spirv_id *value;  /* by instruction */
    spirv_id *buffer; /* their variables */
    spirv_id *var;
    spirv_id params, builtin[13];
    bool params_pushed;
    spirv_id entry;      /* the function */
    bool open;           /* the block that is being written has no end yet */
    bool float_controls; /* how floats behave has been said */
};

/* ---- emit_spirv.c ---- */
spirv_id emit_type(struct emit *e, struct kir_type t); /* of a value */
static inline struct kir_type emit_type_of(const struct emit *e, kir_value v)
{
    return e->k->instr[v].type;
}
bool emit_is_pair(const struct emit *e, enum kir_scalar s); /* two u32 stand for it */

/* ---- emit_spirv_memory.c ---- */
rlx_status emit_interface(struct emit *e); /* buffers, parameters, variables */
spirv_id emit_param(struct emit *e, const struct kir_instr *n);
spirv_id emit_builtin(struct emit *e, enum kir_builtin b);
spirv_id emit_load(struct emit *e, const struct kir_instr *n);
void emit_store(struct emit *e, const struct kir_instr *n);
spirv_id emit_buffer_load(struct emit *e, const struct kir_instr *n);
void emit_buffer_store(struct emit *e, const struct kir_instr *n);
spirv_id emit_atomic(struct emit *e, const struct kir_instr *n);
/* How memory is accessed, as an operand: under the memory model of matrices, what the group shares
 * is marked as such. */
uint32_t emit_memory_of(const struct emit *e, enum spirv_storage storage);
/* An element's pointer; imm and index as in the instruction's. */
spirv_id emit_element(struct emit *e, uint64_t imm, kir_value index, enum spirv_storage *storage);

/* ---- emit_spirv_matrix.c ---- */
/* Where a tile of rows x cols lies in a matrix in memory. */
spirv_id emit_tile(struct emit *e, const struct kir_instr *n, uint32_t rows, uint32_t cols);
spirv_id emit_matrix(struct emit *e, const struct kir_instr *n);

/* ---- emit_spirv_math.c ---- */
spirv_id emit_math(struct emit *e, const struct kir_instr *n); /* everything that is a value */

#endif
