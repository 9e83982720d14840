/* check.h: the tree made into kir, for given types and constants. What the files of this stage
 * share.
 *
 * Checking is specialising: a name that stands for a constant is that constant, a condition that
 * is constant chooses its branch and the other is not looked at, functions are written out where
 * they are called, loops marked so are unrolled. The result has no names left. */
#ifndef KERNEL_CHECK_H
#define KERNEL_CHECK_H

#include "kernel/syntax.h"

/* What an expression is. Numbers without a type take that of what they meet. */
enum kc_value_kind { KC_V_NONE, KC_V_WHOLE, KC_V_REAL, KC_V_CONST, KC_V_VALUE };
struct kc_value {
    enum kc_value_kind kind;
    struct kir_type type; /* of CONST (a scalar) and VALUE */
    int64_t whole;
    double real;
    uint64_t bits; /* of CONST, as kir has them */
    kir_value id;  /* of VALUE */
};

/* What a name is. */
enum kc_thing_kind {
    KC_IS_VALUE, /* a let, a constant, an argument */
    KC_IS_TYPE,
    KC_IS_VAR, /* var, shared, a table */
    KC_IS_BUFFER,
    KC_IS_PARAM,
    KC_IS_STRUCT /* a parameter that is one */
};
struct kc_thing {
    rlx_str name;
    enum kc_thing_kind kind;
    struct kc_value value;
    struct kir_type type;
    uint32_t index; /* of the variable, buffer or parameter; of a struct's first field */
    const struct kc_decl *decl; /* of a struct */
    struct kc_thing *next;
};

/* A function that is being written out, or the kernel itself. */
struct kc_frame {
    const struct kc_decl *decl;
    struct kc_thing *thing; /* the names in sight, the last first */
    struct kc_frame *caller;
    uint32_t nest;    /* blocks that kir has open, within this frame */
    uint32_t loops;   /* of those that can be left */
    uint32_t unrolls; /* loops that cannot, around the place */
    struct kir_type result;
    struct kc_value returned;
    uint32_t result_var; /* KIR_NONE: not needed so far */
};

struct kc_checker {
    struct kc_program program;
    const struct kc_features *features;
    struct kc_frame *frame;
    struct kc_thing *global; /* features and constants of files */
    uint32_t depth;          /* of functions */
    uint32_t work;           /* statements looked at so far */
    struct kir *out;
    uint32_t instr_room, var_room;
    uint32_t at; /* what is being looked at */
    rlx_status status;
};

static inline bool kc_bad(const struct kc_checker *c)
{
    return c->status != RLX_OK;
}
void kc_error(struct kc_checker *c, uint32_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- check_value.c: values, constants, conversions ---- */

kir_value kc_emit(struct kc_checker *c, enum kir_op op, struct kir_type type, kir_value a,
                  kir_value b, kir_value d, uint64_t imm);
uint32_t kc_new_var(struct kc_checker *c, rlx_str name, struct kir_type type);
struct kc_value kc_of(struct kir_type type, kir_value id);
struct kc_value kc_whole(int64_t v);
struct kc_value kc_const(struct kir_type type, uint64_t bits);
struct kc_value kc_bool(bool v);
bool kc_is_constant(const struct kc_value *v);
/* A constant as an integer, a number, a truth value; false: it is not one. */
bool kc_as_whole(const struct kc_value *v, int64_t *out);
bool kc_as_real(const struct kc_value *v, double *out);
bool kc_as_bool(const struct kc_value *v, bool *out);
/* In that type: numbers take it, other values must have it (a scalar fills a vector). */
struct kc_value kc_fit(struct kc_checker *c, struct kc_value v, struct kir_type type, uint32_t at);
/* The type that a value has by itself: u32 for integers (i32 below zero), f32 for others. */
struct kir_type kc_own_type(const struct kc_value *v);
kir_value kc_id(struct kc_checker *c, struct kc_value v, uint32_t at); /* as an instruction */
kir_value kc_id_as(struct kc_checker *c, struct kc_value v, struct kir_type type, uint32_t at);
struct kc_value kc_convert(struct kc_checker *c, struct kc_value v, struct kir_type type,
                           uint32_t at);
bool kc_is_float(enum kir_scalar s);
bool kc_is_integer(enum kir_scalar s); /* of 32 or 64 bits */
bool kc_is_narrow(const struct kc_checker *c, enum kir_scalar s);
void kc_type_text(struct kir_type t, char out[64]); /* for messages */

/* ---- check_type.c ---- */

bool kc_scalar_of_name(rlx_str name, struct kir_type *out); /* f32, f32x4, c64 ... */
struct kir_type kc_resolve_type(struct kc_checker *c, const struct kc_type_tree *t);
/* Give the names among a function's generics the types and sizes that make t the given type. */
bool kc_infer(struct kc_checker *c, const struct kc_type_tree *t, struct kir_type given);
struct kc_thing *kc_find(const struct kc_checker *c, rlx_str name); /* NULL: no such name */
struct kc_thing *kc_add(struct kc_checker *c, rlx_str name, enum kc_thing_kind kind);

/* ---- check_struct.c ---- */

/* The struct that the type names; NULL: it names none. */
const struct kc_decl *kc_struct_of(const struct kc_checker *c, const struct kc_type_tree *t);
/* What a name or a field, as r.size, stands for; that of a field is written to `room`. NULL: it is
 * neither, or there is no such thing, and where it is a struct's field the check has failed. */
const struct kc_thing *kc_named(struct kc_checker *c, const struct kc_tree *t,
                                struct kc_thing *room);
/* A kernel's parameter that is a struct: its fields become parameters, by the names that
 * "parameter.field" gives. */
void kc_add_struct_param(struct kc_checker *c, const struct kc_param *p, const struct kc_decl *s);
/* A kernel's parameter of words: the name is its own, or its struct's and its own. */
void kc_add_param_words(struct kc_checker *c, const struct kc_param *p, rlx_str name);

/* ---- check_expr.c, check_math.c, check_builtin.c, check_call.c ---- */

struct kc_value kc_check_expr(struct kc_checker *c, const struct kc_tree *t);
int64_t kc_check_size(struct kc_checker *c, const struct kc_tree *t, int64_t least, int64_t most);
struct kc_value kc_binary(struct kc_checker *c, const char *op, struct kc_value a,
                          struct kc_value b, uint32_t at);
struct kc_value kc_unary(struct kc_checker *c, char op, struct kc_value a, uint32_t at);
/* The place that an assignment or an atomic means. */
struct kc_place {
    bool buffer;
    uint32_t index;
    struct kir_type type; /* of what is there; that of the whole where lane is not -1 */
    kir_value at;         /* KIR_NONE: all of a variable */
    int32_t lane;
    bool atomic;
};
bool kc_check_place(struct kc_checker *c, const struct kc_tree *t, struct kc_place *out);
struct kc_value kc_load(struct kc_checker *c, const struct kc_place *p);
void kc_store(struct kc_checker *c, const struct kc_place *p, struct kc_value v, uint32_t at);
/* A builtin of that name; false: there is none. */
bool kc_builtin(struct kc_checker *c, const struct kc_tree *t, struct kc_value *out);
struct kc_value kc_call(struct kc_checker *c, const struct kc_tree *t);
/* A function of the library on these values: lib/<file>. */
struct kc_value kc_call_library(struct kc_checker *c, const char *file, const char *name,
                                const struct kc_value *arg, uint32_t args, uint32_t at);

/* The declaration of that name in any of the files; NULL: there is none. */
const struct kc_decl *kc_find_decl(const struct kc_checker *c, rlx_str name);
/* A table of constants as a variable that is never written. */
struct kc_thing *kc_add_table(struct kc_checker *c, rlx_str name, const struct kc_type_tree *type,
                              const struct kc_tree *values);

/* ---- check_stmt.c ---- */

/* Statements up to the end of their block, whose names end with it. true: what would come after
 * them is never reached. */
bool kc_check_stmts(struct kc_checker *c, const struct kc_stmt *s);

#endif
