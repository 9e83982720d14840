/* spirv.h: a SPIR-V module under construction: sections that grow apart and are joined at the end,
 * ids, types and constants that exist once. Numbers are those of the SPIR-V specification. */
#ifndef KERNEL_SPIRV_H
#define KERNEL_SPIRV_H

#include "base/diag.h"
#include "kernel/kernel.h"

typedef uint32_t spirv_id; /* 0: none */

enum spirv_section {
    SPIRV_CAPABILITIES,
    SPIRV_EXTENSIONS,
    SPIRV_IMPORTS,
    SPIRV_MODEL,
    SPIRV_ENTRY,
    SPIRV_MODES,
    SPIRV_NAMES,
    SPIRV_DECORATIONS,
    SPIRV_GLOBALS, /* types, constants, variables */
    SPIRV_LOCALS,  /* the start of the function, and its variables */
    SPIRV_CODE,
    SPIRV_FUNCTIONS, /* those that instructions name */
    SPIRV_SECTIONS
};

enum spirv_storage {
    SPIRV_INPUT = 1,
    SPIRV_WORKGROUP = 4,
    SPIRV_PRIVATE = 6,
    SPIRV_FUNCTION = 7,
    SPIRV_PUSH = 9,
    SPIRV_STORAGE = 12
};

enum spirv_op {
    OP_UNDEF = 1,
    OP_NAME = 5,
    OP_EXTENSION = 10,
    OP_EXT_INST_IMPORT = 11,
    OP_EXT_INST = 12,
    OP_MEMORY_MODEL = 14,
    OP_ENTRY_POINT = 15,
    OP_EXECUTION_MODE = 16,
    OP_CAPABILITY = 17,
    OP_TYPE_VOID = 19,
    OP_TYPE_BOOL = 20,
    OP_TYPE_INT = 21,
    OP_TYPE_FLOAT = 22,
    OP_TYPE_VECTOR = 23,
    OP_TYPE_ARRAY = 28,
    OP_TYPE_RUNTIME_ARRAY = 29,
    OP_TYPE_STRUCT = 30,
    OP_TYPE_POINTER = 32,
    OP_TYPE_FUNCTION = 33,
    OP_CONSTANT_TRUE = 41,
    OP_CONSTANT_FALSE = 42,
    OP_CONSTANT = 43,
    OP_CONSTANT_COMPOSITE = 44,
    OP_FUNCTION = 54,
    OP_FUNCTION_PARAMETER = 55,
    OP_FUNCTION_END = 56,
    OP_VARIABLE = 59,
    OP_LOAD = 61,
    OP_STORE = 62,
    OP_ACCESS_CHAIN = 65,
    OP_DECORATE = 71,
    OP_MEMBER_DECORATE = 72,
    OP_VECTOR_EXTRACT = 77,
    OP_COMPOSITE_CONSTRUCT = 80,
    OP_COMPOSITE_EXTRACT = 81,
    OP_COMPOSITE_INSERT = 82,
    OP_CONVERT_F_TO_U = 109,
    OP_CONVERT_F_TO_S = 110,
    OP_CONVERT_S_TO_F = 111,
    OP_CONVERT_U_TO_F = 112,
    OP_U_CONVERT = 113,
    OP_S_CONVERT = 114,
    OP_F_CONVERT = 115,
    OP_BITCAST = 124,
    OP_S_NEGATE = 126,
    OP_F_NEGATE = 127,
    OP_I_ADD = 128,
    OP_F_ADD = 129,
    OP_I_SUB = 130,
    OP_F_SUB = 131,
    OP_I_MUL = 132,
    OP_F_MUL = 133,
    OP_U_DIV = 134,
    OP_S_DIV = 135,
    OP_F_DIV = 136,
    OP_U_MOD = 137,
    OP_S_REM = 138,
    OP_LOGICAL_EQUAL = 164,
    OP_LOGICAL_NOT_EQUAL = 165,
    OP_LOGICAL_OR = 166,
    OP_LOGICAL_AND = 167,
    OP_LOGICAL_NOT = 168,
    OP_SELECT = 169,
    OP_I_EQUAL = 170,
    OP_I_NOT_EQUAL = 171,
    OP_U_GREATER = 172,
    OP_S_GREATER = 173,
    OP_U_GREATER_EQUAL = 174,
    OP_S_GREATER_EQUAL = 175,
    OP_U_LESS = 176,
    OP_S_LESS = 177,
    OP_U_LESS_EQUAL = 178,
    OP_S_LESS_EQUAL = 179,
    OP_F_ORD_EQUAL = 180,
    OP_F_UNORD_NOT_EQUAL = 183,
    OP_F_ORD_LESS = 184,
    OP_F_ORD_GREATER = 186,
    OP_F_ORD_LESS_EQUAL = 188,
    OP_F_ORD_GREATER_EQUAL = 190,
    OP_SHIFT_RIGHT_LOGICAL = 194,
    OP_SHIFT_RIGHT_ARITHMETIC = 195,
    OP_SHIFT_LEFT = 196,
    OP_BITWISE_OR = 197,
    OP_BITWISE_XOR = 198,
    OP_BITWISE_AND = 199,
    OP_NOT = 200,
    OP_BIT_COUNT = 205,
    OP_CONTROL_BARRIER = 224,
    OP_ATOMIC_LOAD = 227,
    OP_ATOMIC_STORE = 228,
    OP_ATOMIC_EXCHANGE = 229,
    OP_ATOMIC_COMPARE_EXCHANGE = 230,
    OP_ATOMIC_I_ADD = 234,
    OP_ATOMIC_S_MIN = 236,
    OP_ATOMIC_U_MIN = 237,
    OP_ATOMIC_S_MAX = 238,
    OP_ATOMIC_U_MAX = 239,
    OP_ATOMIC_AND = 240,
    OP_ATOMIC_OR = 241,
    OP_ATOMIC_XOR = 242,
    OP_LOOP_MERGE = 246,
    OP_SELECTION_MERGE = 247,
    OP_LABEL = 248,
    OP_BRANCH = 249,
    OP_BRANCH_CONDITIONAL = 250,
    OP_RETURN = 253,
    OP_RETURN_VALUE = 254,
    OP_GROUP_ALL = 334,
    OP_GROUP_ANY = 335,
    OP_GROUP_BROADCAST_FIRST = 338,
    OP_GROUP_SHUFFLE = 345,
    OP_GROUP_SHUFFLE_XOR = 346,
    OP_GROUP_I_ADD = 349,
    OP_GROUP_F_ADD = 350,
    OP_GROUP_S_MIN = 353,
    OP_GROUP_U_MIN = 354,
    OP_GROUP_F_MIN = 355,
    OP_GROUP_S_MAX = 356,
    OP_GROUP_U_MAX = 357,
    OP_GROUP_F_MAX = 358,
    OP_S_DOT = 4450,
    OP_U_DOT = 4451,
    OP_TYPE_COOP = 4456,
    OP_COOP_LOAD = 4457,
    OP_COOP_STORE = 4458,
    OP_COOP_MULADD = 4459,
    OP_COOP_CONVERT = 5293,
    OP_COOP_REDUCE = 5366,
    OP_COOP_LOAD_TENSOR = 5367,
    OP_COOP_STORE_TENSOR = 5368,
    OP_COOP_PER_ELEMENT = 5369,
    OP_TYPE_TENSOR_LAYOUT = 5370,
    OP_TYPE_TENSOR_VIEW = 5371,
    OP_CREATE_TENSOR_LAYOUT = 5372,
    OP_TENSOR_LAYOUT_DIMENSION = 5373,
    OP_TENSOR_LAYOUT_STRIDE = 5374,
    OP_TENSOR_LAYOUT_SLICE = 5375,
    OP_CREATE_TENSOR_VIEW = 5377
};

enum spirv_capability {
    CAP_SHADER = 1,
    CAP_FLOAT16 = 9,
    CAP_FLOAT64 = 10,
    CAP_INT64 = 11,
    CAP_GROUP = 61,
    CAP_GROUP_VOTE = 62,
    CAP_GROUP_ARITHMETIC = 63,
    CAP_GROUP_BALLOT = 64,
    CAP_GROUP_SHUFFLE = 65,
    CAP_STORAGE16 = 4433,
    CAP_STORAGE8 = 4448,
    CAP_SMALL_PRESERVE = 4464,
    CAP_NAN_PRESERVE = 4466,
    CAP_ROUND_EVEN = 4467,
    CAP_BF16 = 5116,
    CAP_COOP_BF16 = 5118,
    CAP_MEMORY_MODEL = 5345,
    CAP_COOP_REDUCTIONS = 5430,
    CAP_COOP_CONVERSIONS = 5431,
    CAP_COOP_ELEMENTS = 5432,
    CAP_COOP_TENSOR = 5433,
    CAP_TENSOR = 5439,
    CAP_DOT_PACKED = 6018,
    CAP_DOT = 6019,
    CAP_COOP = 6022
};

struct spirv_words {
    uint32_t *at;
    size_t len, room;
};

/* A type, constant or extended instruction set that is there already. */
struct spirv_known {
    uint32_t op, part[4];
    spirv_id id;
};

struct spirv {
    struct arena *arena;
    struct diag *diag;
    struct spirv_words section[SPIRV_SECTIONS];
    struct spirv_known *known;
    size_t knowns, known_room;
    spirv_id next, glsl;
    rlx_status status;
};

/* Add an instruction: op and these words. */
void spirv_add(struct spirv *s, enum spirv_section to, enum spirv_op op, const uint32_t *word,
               size_t count);
#define SPIRV(s, to, op, ...)                             \
    spirv_add((s), (to), (op), (uint32_t[]){__VA_ARGS__}, \
              sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
/* The same with a text after the words (and `more` after that). */
void spirv_add_text(struct spirv *s, enum spirv_section to, enum spirv_op op, const uint32_t *word,
                    size_t count, rlx_str text, const uint32_t *more, size_t more_count);
static inline spirv_id spirv_new(struct spirv *s)
{
    return s->next++;
}
/* An instruction of the function that makes a value. */
spirv_id spirv_make(struct spirv *s, enum spirv_op op, spirv_id type, const uint32_t *word,
                    size_t count);
#define SPIRV_MAKE(s, op, type, ...)                         \
    spirv_make((s), (op), (type), (uint32_t[]){__VA_ARGS__}, \
               sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

void spirv_capability(struct spirv *s, enum spirv_capability c, const char *extension);
/* What exists once. */
spirv_id spirv_type(struct spirv *s, enum spirv_op op, uint32_t a, uint32_t b, uint32_t c);
spirv_id spirv_int(struct spirv *s, uint32_t bits, bool is_signed);
spirv_id spirv_float(struct spirv *s, uint32_t bits);
spirv_id spirv_vector(struct spirv *s, spirv_id element, uint32_t lanes);
spirv_id spirv_pointer(struct spirv *s, enum spirv_storage storage, spirv_id to);
spirv_id spirv_bool(struct spirv *s);
spirv_id spirv_word(struct spirv *s, uint32_t v); /* a constant u32 */
spirv_id spirv_constant(struct spirv *s, spirv_id type, uint64_t bits, bool wide);
/* Note one that was made by hand, so that it is found again. */
void spirv_remember(struct spirv *s, uint32_t op, const uint32_t part[4], spirv_id id);
/* The module's words: a header and all sections. */
rlx_status spirv_finish(struct spirv *s, uint32_t version, uint32_t **words, size_t *count);

#endif
