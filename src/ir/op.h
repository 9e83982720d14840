/* op.h: the op table: what ops.def says, as data. */
#ifndef IR_OP_H
#define IR_OP_H

#include "ir/type.h"

enum op_category {
    CATEGORY_IO,
    CATEGORY_ELEMENTWISE,
    CATEGORY_MOVEMENT,
    CATEGORY_INDEX,
    CATEGORY_REDUCTION,
    CATEGORY_RANDOM,
    CATEGORY_CONTRACTION,
    CATEGORY_NORMALISATION,
    CATEGORY_WINDOW,
    CATEGORY_SEQUENCE,
    CATEGORY_FUSED,
    CATEGORY_CONTROL,
    CATEGORY_GRADIENT
};

enum op_flags {
    OP_LEAF = 1,     /* no inputs, no step */
    OP_PROMOTES = 2, /* the builder casts its operands to their common type (ops-core.md 2.2) */
    OP_COMMUTES = 4,
    OP_DIFF = 8,     /* differentiable in at least one input */
    OP_WRITES = 16,  /* may write a state: never merged, folded or removed */
    OP_RANDOM = 32,  /* never folded or merged */
    OP_SPECIAL = 64, /* of the special-ops manual */
    OP_NO_STEP = 128 /* never a step of a region, although its family is (ops-core.md 5.1) */
};

/* In which of a precision policy's types floats are computed (pass/precision.c). */
enum precision_class {
    PRECISION_COMPUTE,
    PRECISION_REDUCTION,
    PRECISION_ELEMENTWISE,
    PRECISION_MOVEMENT,
    PRECISION_DECLARED, /* the type that the graph says */
    PRECISION_COUNT
};

/* How far a result may be from its definition (ops-core.md 22; inspect/selftest). */
enum tolerance_class {
    TOLERANCE_EXACT,
    TOLERANCE_ROUNDED,  /* correctly rounded; f16, bf16: one unit in the last place */
    TOLERANCE_ULP,      /* one unit */
    TOLERANCE_FUNCTION, /* exp, log and their kind */
    TOLERANCE_TRIG,
    TOLERANCE_SUM,       /* grows with the number and size of the terms */
    TOLERANCE_ACTIVATED, /* a sum, and a function of it whose slope is about 1 at most */
    TOLERANCE_PRODUCT,   /* of many factors */
    TOLERANCE_SOFTMAX,
    TOLERANCE_NORM,
    TOLERANCE_ATTENTION, /* relative to the largest |v|, where the caller knows it */
    TOLERANCE_GRADIENT,  /* relative to the largest value */
    TOLERANCE_SPECTRUM   /* relative to the row (ops-special.md 5.1) */
};

enum family_traits {
    IS_HEAVY = 1,    /* products, convolutions, attention, scans: the bulk of a model's work */
    IS_PRODUCT = 2,  /* what reads its result begins a region of its own (pass/mark_regions.c) */
    IS_STEP = 4,     /* may be a step of a region */
    IS_CHEAP = 8,    /* on weights alone it is computed once, when they are set (runtime.md 1.4) */
    IS_VIEW = 16,    /* the bytes of its operand, whatever that is */
    IS_CHOICE = 32,  /* picks from what a model computed: a decoder's last step (ir/phase.h) */
    BROADCASTS = 64, /* its operands need not have the shape of the result (ops-core.md 2.3) */
    RUNS_GRAPHS = 128, /* a backend runs its sub-graphs */
    CARRIES_I8 = 256   /* hands on the gradient of an i8, as if it were not rounded (19.2) */
};

enum operand_role {
    ROLE_PLAIN,
    ROLE_INDEX,    /* picks positions: exact, and so is whatever is computed to get it */
    ROLE_EXACT,    /* keeps its type: packed weights, scales of quantised values */
    ROLE_STATE,    /* the state that the op writes, if it is one; keeps its type */
    ROLE_SCALE,    /* may stay f32 beside halves: scales of norms, rotary tables, masks */
    ROLE_VARIANCE, /* a scale that is never negative */
    ROLE_WEIGHT,   /* a factor of sums of products: a copy in f16 may replace it (runtime.md 3.3) */
    ROLE_CONDITION /* chooses between other operands */
};

enum op_family {
    FAMILY_none,
#define FAMILY(name, ...) FAMILY_##name,
#include "ir/ops.def"
    FAMILY_count
};

enum attr_kind {
    ATTR_BOOL,
    ATTR_I64,
    ATTR_U64,
    ATTR_F32,
    ATTR_F64,
    ATTR_ENUM,
    ATTR_DTYPE,
    ATTR_DIM,
    ATTR_AXES,
    ATTR_INTS,
    ATTR_DIMS,
    ATTR_FLOATS,
    ATTR_BYTES,
    ATTR_STRING,
    ATTR_GRAPH,
    ATTR_CHAIN,
    ATTR_UNARY
};

/* FLOATS, BYTES, STRING, CHAIN: memory of the module, or longer lived; never written. */
struct ir_blob {
    const void *ptr;
    size_t len; /* bytes of BYTES and STRING, elements of FLOATS and CHAIN */
};

/* How each kind is stored. */
typedef bool attr_BOOL;
typedef int64_t attr_I64; /* RLX_ABSENT */
typedef uint64_t attr_U64;
typedef float attr_F32; /* NaN: absent */
typedef double attr_F64;
typedef int32_t attr_ENUM;
typedef rlx_dtype attr_DTYPE; /* RLX_ABSENT_DTYPE */
typedef ir_dim attr_DIM;
typedef rlx_list attr_AXES;
typedef rlx_list attr_INTS;
typedef rlx_list attr_DIMS;
typedef struct ir_blob attr_FLOATS;
typedef struct ir_blob attr_BYTES;
typedef struct ir_blob attr_STRING;
typedef int32_t attr_GRAPH; /* the sub-graph's number in its module; -1: absent */
typedef struct ir_blob attr_CHAIN;
typedef rlx_op attr_UNARY; /* RLX_OP_none */

/* struct attr_<family>, one field per ATTR row. A family without rows has an empty struct. */
struct attr_none {
#define FAMILY(name, ...) \
    }                     \
    ;                     \
    struct attr_##name {
#define ATTR(family, field, kind, def) attr_##kind field;
#define ENUM_ATTR(family, field, words, def) attr_ENUM field;
#include "ir/ops.def"
};

union ir_attr {
#define FAMILY(name, ...) struct attr_##name name;
#include "ir/ops.def"
};

struct attr_info {
    const char *name;
    enum attr_kind kind;
    const char *words;        /* the enum's name, for ATTR_ENUM */
    const char *default_text; /* "REQUIRED", "ABSENT", "EMPTY" or the value as text */
    size_t offset;            /* in union ir_attr */
};

struct family_info {
    const char *name;
    enum precision_class precision;
    enum tolerance_class tolerance;
    unsigned traits;
};

struct op_info {
    const char *name;
    enum op_family family;
    enum op_category category;
    int32_t inputs_min, inputs_max; /* max < 0: any number */
    const char *inputs;             /* names; [..] and those past min are optional */
    unsigned flags;
    const char *summary;
};

const struct op_info *op_info(rlx_op op); /* never NULL: an unknown op gives the row of none */
const struct family_info *family_info(enum op_family f); /* never NULL, likewise */
const char *family_name(enum op_family f);
/* The attributes of a family, in the order of ops.def; *count of them. */
const struct attr_info *family_attrs(enum op_family f, size_t *count);
bool op_from_name(rlx_str name, rlx_op *out);
static inline bool op_is(rlx_op op, unsigned flag)
{
    return (op_info(op)->flags & flag) != 0;
}
static inline bool op_has_trait(rlx_op op, enum family_traits trait)
{
    return (family_info(op_info(op)->family)->traits & trait) != 0;
}
int32_t op_input_names(rlx_op op); /* how many names ops.def lists */
/* The name of that operand of a node with so many; empty: it has none, or none that is certain. The
 * last name of an op with any number of operands is that of all the others. */
rlx_str op_input_name(rlx_op op, int32_t operand, int32_t in_count);
enum operand_role op_input_role(rlx_op op, int32_t operand, int32_t in_count);
enum tolerance_class op_tolerance(rlx_op op);

/* Words of an enum: the number of a word, the word of a number (NULL: there is none). */
bool enum_from_word(const char *words, rlx_str word, int32_t *out);
const char *enum_word(const char *words, int32_t value);

/* Bytes of one element of a blob: FLOATS, CHAIN, else 1. */
size_t attr_element_size(enum attr_kind kind);
/* Set every attribute of the op to its default; required ones to an empty value. */
void attr_defaults(rlx_op op, union ir_attr *out);
bool attr_is_default(const struct attr_info *a,
                     const union ir_attr *v); /* never for required ones */
/* The attribute of that name, of kind BOOL, I64 or ENUM; `otherwise` where the op has none. */
int64_t attr_integer(rlx_op op, const union ir_attr *v, const char *name, int64_t otherwise);
/* By value: blobs by content, NaN equal to NaN. */
bool attr_same(rlx_op op, const union ir_attr *x, const union ir_attr *y);
uint64_t attr_hash(rlx_op op, const union ir_attr *v);

#endif
