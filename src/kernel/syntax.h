/* syntax.h: a source file as tokens and as a tree. Nothing here is checked beyond grammar. */
#ifndef KERNEL_SYNTAX_H
#define KERNEL_SYNTAX_H

#include "base/diag.h"
#include "kernel/kernel.h"

/* One file. Places are offsets into all sources of a compile, one after the other. */
struct kc_file {
    rlx_str name, text;
    uint32_t base; /* of its first byte */
    struct kc_file *next;
    struct kc_decl *decl; /* in order */
};

/* ---- tokens ---- */

enum kc_token_kind {
    KC_END,
    KC_NAME,
    KC_INT,
    KC_FLOAT,
    KC_STRING,
    KC_PUNCT, /* one or two characters, in text */
    KC_BAD
};
struct kc_token {
    enum kc_token_kind kind;
    rlx_str text;
    uint32_t at;
    bool first;      /* on its line: a statement may end before it */
    const char *why; /* of KC_BAD */
};
struct kc_lexer {
    rlx_str text;
    size_t at;
    uint32_t base;
};
struct kc_token kc_next(struct kc_lexer *l);

/* ---- types and expressions ---- */

/* f32, T, f32x4, vec<T, V>, [f32; N], [T], matrix_a<f16, 16, 16> */
struct kc_type_tree {
    uint32_t at;
    rlx_str name;                 /* of what is not an array */
    bool array, open;             /* [..; n], [..] */
    bool atomic;                  /* [atomic u32] */
    struct kc_type_tree *element; /* of an array */
    struct kc_tree *arg[4];       /* of the brackets; a name there may be a type */
    uint32_t args;
    struct kc_tree *count; /* of an array that is not open */
};

enum kc_tree_kind {
    KC_T_INT,
    KC_T_FLOAT,
    KC_T_BOOL,
    KC_T_NAME,
    KC_T_UNARY,  /* op: - ! ~ */
    KC_T_BINARY, /* op */
    KC_T_CALL,   /* name(args), also conversions */
    KC_T_INDEX,  /* a[b] */
    KC_T_MEMBER, /* a.name */
    KC_T_ARRAY   /* [a, b, ...]: a table of constants */
};
struct kc_tree {
    enum kc_tree_kind kind;
    uint32_t at;
    char op[3];
    rlx_str name;
    struct kc_tree *a, *b;
    struct kc_tree **arg;
    uint32_t args;
    struct kc_type_tree *type; /* of a call that converts, where the name alone does not say it */
    uint64_t whole;
    double real;
};

/* ---- statements ---- */

enum kc_stmt_kind {
    KC_S_LET,
    KC_S_VAR,
    KC_S_SHARED,
    KC_S_CONST,
    KC_S_ASSIGN, /* op: "=", "+=" and so on; a: place; b: value */
    KC_S_CALL,
    KC_S_IF,
    KC_S_FOR, /* name in a .. b by c; unroll */
    KC_S_WHILE,
    KC_S_BREAK,
    KC_S_CONTINUE,
    KC_S_RETURN,
    KC_S_BLOCK
};
struct kc_stmt {
    enum kc_stmt_kind kind;
    uint32_t at;
    rlx_str name;
    char op[4];
    struct kc_type_tree *type;
    struct kc_tree *a, *b, *c;
    struct kc_stmt *body, *other; /* first statements of the blocks */
    bool unroll, atomic;
    struct kc_stmt *next;
};

/* ---- declarations ---- */

enum kc_param_mode {
    KC_BY_VALUE,
    KC_BY_NAME, /* var: the caller's variable */
    KC_AS_CONST,
    KC_AS_SHARED,
    KC_AS_IN,
    KC_AS_OUT,
    KC_AS_INOUT
};
struct kc_param {
    uint32_t at;
    rlx_str name;
    enum kc_param_mode mode;
    struct kc_type_tree *type;
    struct kc_param *next;
};
/* <T: float, WG: size = 256> */
struct kc_generic {
    uint32_t at;
    rlx_str name, kind;
    struct kc_tree *value; /* NULL: it must be given */
    struct kc_generic *next;
};
enum kc_decl_kind { KC_D_CONST, KC_D_FN, KC_D_KERNEL, KC_D_STRUCT };
struct kc_decl {
    enum kc_decl_kind kind;
    uint32_t at;
    rlx_str name;
    struct kc_generic *generic;
    struct kc_param *param;    /* of a function or a kernel; the fields of a struct */
    struct kc_type_tree *type; /* of a constant, or the result of a function; may be NULL */
    struct kc_tree *value;     /* of a constant */
    struct kc_tree *group[3];  /* of a kernel */
    struct kc_stmt *body;
    struct kc_file *file;
    struct kc_decl *next;
};

/* ---- all sources of a compile ---- */

struct kc_program {
    const struct kc_sources *sources;
    struct arena *arena;
    struct diag *diag;
    struct kc_file *file; /* the first is the one asked for; then what it uses */
    uint32_t end;         /* bytes of all */
};
/* Read and parse the file and what it uses. */
rlx_status kc_parse(struct kc_program *p, rlx_str name);
/* One file: its declarations, and the names of the files it uses, at most KC_MAX_USES. */
#define KC_MAX_USES 32
rlx_status kc_parse_file(struct kc_program *p, struct kc_file *f, rlx_str *uses, size_t *count);
/* FORMAT: "file:line:column: message", then the line and a caret. */
rlx_status kc_fail(const struct kc_program *p, uint32_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
