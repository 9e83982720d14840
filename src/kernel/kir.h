/* kir.h: a kernel made for one use: types known, constants folded, functions written out. What the
 * emitters read. Instructions stand in one list; a value is the number of the instruction that
 * makes it, and is made before it is used, in the same block or one around it. */
#ifndef KERNEL_KIR_H
#define KERNEL_KIR_H

#include "base/arena.h"
#include "base/str.h"

enum kir_scalar {
    KIR_VOID,
    KIR_BOOL,
    KIR_I32,
    KIR_U32,
    KIR_F32,
    /* Computed with where the device can. Elsewhere f16 is a narrow type, a 64-bit integer is a
     * pair of u32 that only moves (LOAD, STORE, SELECT, BITCAST to and from u32x2), and f64 is
     * refused. */
    KIR_F16,
    KIR_F64,
    KIR_I64,
    KIR_U64,
    /* Narrow: loaded, stored, and turned into bits and back; a value is a u32 of that many bits. */
    KIR_BF16,
    KIR_I8,
    KIR_U8,
    KIR_I16,
    KIR_U16,
    KIR_B8, /* a bool of one byte */
    KIR_SCALARS
};

enum kir_use { KIR_NO_MATRIX, KIR_MATRIX_A, KIR_MATRIX_B, KIR_MATRIX_ACC };

struct kir_type {
    uint8_t scalar; /* enum kir_scalar */
    uint8_t lanes;  /* 1: a scalar; 2, 3, 4 */
    uint8_t use;    /* enum kir_use: of a cooperative matrix of rows x cols, held by the group or */
    uint8_t group;  /* by the subgroup */
    uint16_t rows, cols;
    uint32_t count; /* elements of an array; 0: it is none */
};
bool kir_type_same(struct kir_type a, struct kir_type b);
uint32_t kir_scalar_bytes(enum kir_scalar s);
const char *kir_scalar_name(enum kir_scalar s);
static inline struct kir_type kir_scalar_type(enum kir_scalar s)
{
    return (struct kir_type){.scalar = (uint8_t)s, .lanes = 1};
}

enum kir_op {
#define KIR(op, shape, operands, meaning) KIR_##op,
#include "kernel/kir.def"
    KIR_OPS
};

enum kir_builtin {
    KIR_GROUP_X, /* number of the group */
    KIR_GROUP_Y,
    KIR_GROUP_Z,
    KIR_GROUPS_X, /* how many there are */
    KIR_GROUPS_Y,
    KIR_GROUPS_Z,
    KIR_LOCAL_X, /* number in the group */
    KIR_LOCAL_Y,
    KIR_LOCAL_Z,
    KIR_LOCAL_INDEX,
    KIR_SUBGROUP_LANE,
    KIR_SUBGROUP_SIZE,
    KIR_SUBGROUP_ID
};

typedef uint32_t kir_value;
#define KIR_NONE UINT32_MAX
#define KIR_IN_BUFFER (UINT32_C(1) << 31)
#define KIR_INSIDE (UINT64_C(1) << 32) /* of a tile: nothing of it lies outside */

struct kir_instr {
    uint16_t op;
    struct kir_type type; /* of its value; KIR_VOID: it has none */
    kir_value a, b, c, d; /* KIR_NONE: not there */
    uint64_t imm;
    uint32_t at; /* in the source, for messages and listings */
};

struct kir_var {
    rlx_str name;
    struct kir_type type;
    bool shared; /* by the group; else of each invocation */
    bool atomic;
    const uint64_t *table; /* the bits of its elements, which never change; NULL: a variable */
};

enum kir_mode { KIR_IN = 1, KIR_OUT = 2, KIR_INOUT = 3 };
struct kir_buffer {
    rlx_str name;
    struct kir_type type; /* of an element */
    enum kir_mode mode;
    bool atomic;
};

/* Scalars and arrays of them, in words of 32 bits, one after the other. */
struct kir_param {
    rlx_str name;
    struct kir_type type; /* u32, i32 or f32; count: of an array */
    uint32_t word;
};

struct kir {
    rlx_str name;
    uint32_t group[3];
    struct kir_buffer *buffer;
    uint32_t buffers;
    struct kir_param *param;
    uint32_t params, param_words;
    struct kir_var *var;
    uint32_t vars;
    struct kir_instr *instr;
    uint32_t instrs;
    uint32_t shared_bytes;
    bool uses_subgroups, uses_coop, uses_f16, uses_f64, uses_int64;
};

const char *kir_op_name(enum kir_op op);
/* A listing, one instruction a line. */
void kir_print(const struct kir *k, struct text *out);

#endif
