/* tpl_node.h: a template as a tree, its tokens, and what reads it. */
#ifndef TEXT_TEMPLATE_TPL_NODE_H
#define TEXT_TEMPLATE_TPL_NODE_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"

/* What a node holds is said in terms of its fields a, b, c, at[count], name, names. */
enum tpl_node_kind {
    /* statements */
    TPL_TEXT,      /* name: the text */
    TPL_OUTPUT,    /* {{ a }} */
    TPL_BODY,      /* at: one after the other */
    TPL_IF,        /* at: condition, body, condition, body, .. [, body of else] */
    TPL_FOR,       /* for a in b if c; at: body [, body of else] */
    TPL_SET,       /* a = b; a is a name, an attribute of a namespace, or a tuple of names */
    TPL_SET_BLOCK, /* a = body b, which goes through the filters c (NULL: none) */
    TPL_FILTERED,  /* body a goes through the filters b */
    TPL_SCOPED,    /* body a, with names of its own: generation */
    TPL_MACRO,     /* name, names: of parameters; at: their defaults, or NULL; a: body */
    TPL_BREAK,
    TPL_CONTINUE,
    /* expressions */
    TPL_CONST,    /* value */
    TPL_NAME,     /* name */
    TPL_LIST_OF,  /* at */
    TPL_TUPLE_OF, /* at */
    TPL_DICT_OF,  /* at: key, value, key, value .. */
    TPL_NOT,      /* a */
    TPL_NEGATE,   /* a */
    TPL_PLUS,     /* a */
    TPL_AND,      /* a, b */
    TPL_OR,       /* a, b */
    TPL_MATH,     /* a op b */
    TPL_CONCAT,   /* at, as text */
    TPL_COMPARE,  /* at, with ops[i] between i and i + 1 */
    TPL_CHOOSE,   /* a if b else c; c may be NULL */
    TPL_ATTR,     /* a.name */
    TPL_ITEM,     /* a[b] */
    TPL_SLICE,    /* a[at[0]:at[1]:at[2]], each may be NULL */
    TPL_CALL,     /* a(at.., names = at..): the last of at have the names */
    TPL_FILTER,   /* a | builtin(at.., names = at..); a NULL: of a block's text */
    TPL_TEST,     /* a is builtin(at..) */
};

enum tpl_op {
    TPL_ADD,
    TPL_SUB,
    TPL_MUL,
    TPL_DIV,
    TPL_FLOOR_DIV,
    TPL_MOD,
    TPL_POW,
    TPL_EQ,
    TPL_NE,
    TPL_LT,
    TPL_LE,
    TPL_GT,
    TPL_GE,
    TPL_IN,
    TPL_NOT_IN,
};

enum tpl_const { TPL_CONST_NONE, TPL_CONST_BOOL, TPL_CONST_INT, TPL_CONST_FLOAT, TPL_CONST_STR };

struct tpl_builtin; /* tpl_call.h */
struct tpl_node {
    enum tpl_node_kind kind;
    uint32_t place; /* in the source, for messages */
    rlx_str name;
    struct tpl_node *a, *b, *c;
    struct tpl_node **at;
    size_t count, room, name_count, name_room;
    rlx_str *names;
    uint8_t *ops;
    const struct tpl_builtin *builtin;
    uint8_t op; /* enum tpl_op, or enum tpl_const */
    union {
        bool b;
        int64_t i;
        double f;
    } value;
};

/* Room for one more in an array that lives in an arena, which keeps the smaller ones as well.
 * false: no memory. at: the address of the array's pointer. */
bool tpl_room(struct arena *a, void *at, size_t *cap, size_t len, size_t elem);

/* ---- tokens ------------------------------------------------------------------------------ */

enum tpl_token_kind {
    TPL_TOK_TEXT,        /* between tags; white space that tags eat is gone */
    TPL_TOK_OPEN_OUTPUT, /* {{ */
    TPL_TOK_OPEN_BLOCK,  /* {% */
    TPL_TOK_CLOSE,       /* of either kind */
    TPL_TOK_NAME,
    TPL_TOK_STRING, /* text: what it stands for */
    TPL_TOK_INT,
    TPL_TOK_FLOAT,
    TPL_TOK_SIGN, /* text: "==", "[", .. */
    TPL_TOK_END,
};

struct tpl_token {
    enum tpl_token_kind kind;
    uint32_t place;
    rlx_str text;
    int64_t i;
    double f;
};

struct tpl_lex {
    rlx_str source;
    size_t pos;
    enum { TPL_IN_TEXT, TPL_IN_OUTPUT, TPL_IN_BLOCK } in;
    uint32_t brackets;  /* open inside of the tag */
    bool line_starting; /* what came before the text ended a line */
    struct arena *arena;
    struct diag *d;
};
rlx_status tpl_next(struct tpl_lex *l, struct tpl_token *out);
/* Line breaks of any kind become \n, and one at the very end goes. */
rlx_status tpl_normalise(struct arena *a, rlx_str source, rlx_str *out, struct diag *d);

/* White space as Python has it. */
bool tpl_is_space(uint32_t c);
size_t tpl_char_before(const char *text, size_t end); /* where the character before end begins */
size_t tpl_end_without_space(const char *text, size_t end);

/* Notes a failure of this template, "template: line 3, column 5: ..". */
rlx_status tpl_fail(struct diag *d, rlx_str source, uint32_t place, rlx_status s, const char *fmt,
                    ...) __attribute__((format(printf, 5, 6)));

/* ---- reading ----------------------------------------------------------------------------- */

struct tpl_parse {
    struct tpl_lex lex;
    struct tpl_token now; /* the next one that nobody has taken */
    uint32_t depth;       /* of calls */
    uint32_t loops;       /* that we are in, in this macro */
    struct arena *arena;
    struct diag *d;
};
#define TPL_MOST_DEPTH 200 /* blocks and brackets in each other */

rlx_status tpl_parse_template(struct tpl_parse *p, struct tpl_node **out);

/* tpl_expr.c */
rlx_status tpl_parse_expression(struct tpl_parse *p, struct tpl_node **out);
/* Without "if .. else": what a loop goes through. */
rlx_status tpl_parse_or(struct tpl_parse *p, struct tpl_node **out);
/* One, or several with commas between them: a tuple. */
rlx_status tpl_parse_tuple(struct tpl_parse *p, bool with_if, struct tpl_node **out);
/* name, a tuple of them, or name.attribute */
rlx_status tpl_parse_target(struct tpl_parse *p, struct tpl_node **out);
/* "| f | g(1)" after what; what NULL: filters of a block, whose first has no bar before it. */
rlx_status tpl_parse_filters(struct tpl_parse *p, struct tpl_node *what, struct tpl_node **out);

/* What all of that is made of. */
rlx_status tpl_step(struct tpl_parse *p); /* takes the token */
bool tpl_is(const struct tpl_parse *p, enum tpl_token_kind kind, const char *text);
rlx_status tpl_take(struct tpl_parse *p, enum tpl_token_kind kind, const char *text);
rlx_status tpl_take_name(struct tpl_parse *p, rlx_str *out);
rlx_status tpl_unexpected(struct tpl_parse *p, const char *wanted);
rlx_status tpl_new(struct tpl_parse *p, enum tpl_node_kind kind, uint32_t place,
                   struct tpl_node **out);
rlx_status tpl_enter(struct tpl_parse *p); /* one deeper; p->depth-- leaves */
/* Adds to n->at, or n->names. */
rlx_status tpl_child(struct tpl_parse *p, struct tpl_node *n, struct tpl_node *child);
rlx_status tpl_child_name(struct tpl_parse *p, struct tpl_node *n, rlx_str name);

#endif
