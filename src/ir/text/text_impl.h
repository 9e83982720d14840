/* text_impl.h: what the text_*.c files share: tokens, the parser's state, names of values. */
#ifndef IR_TEXT_IMPL_H
#define IR_TEXT_IMPL_H

#include "ir/text/text.h"

/* ---- tokens (text_lex.c) ------------------------------------------------------------------- */

enum text_kind {
    TEXT_END,
    TEXT_WORD,   /* name: letters, digits, '_' */
    TEXT_VALUE,  /* %name, '.' allowed too */
    TEXT_GRAPH,  /* @name, likewise */
    TEXT_NUMBER, /* 12, 0.5, 1e-5: no sign */
    TEXT_HEX,    /* 0x00ff */
    TEXT_STRING, /* "..." as written */
    TEXT_MARK,   /* one character, or "<=" */
    TEXT_BAD     /* what is wrong is in `why` */
};

struct text_token {
    enum text_kind kind;
    rlx_str text;    /* as it stands in the source; of values and graphs without % and @ */
    size_t at;       /* where it begins in the source */
    const char *why; /* of TEXT_BAD */
};

struct text_lexer {
    rlx_str source;
    size_t at;
};

struct text_token text_lex(struct text_lexer *l);
bool text_token_is(const struct text_token *t, const char *mark_or_word); /* not a string */
/* 1-based; columns count characters. */
void text_position(rlx_str source, size_t at, size_t *line, size_t *column);
bool text_is_name(rlx_str s); /* [A-Za-z_][A-Za-z0-9_.]* */

/* ---- parsing ------------------------------------------------------------------------------- */

struct text_parser {
    struct text_lexer lex;
    struct text_token tok; /* the one in front */
    struct ir_module *mod;
    struct arena *scratch; /* until the end of the parse */
    struct diag *diag;
    const struct text_parse_options *options;
    /* The number of the graph named by the token in front, which must be whole by then. */
    rlx_status (*find_graph)(struct text_parser *p, int32_t *id);
    int depth; /* of parentheses */
};

void text_start(struct text_parser *p, rlx_str source);
void text_next(struct text_parser *p);
struct text_token text_peek(const struct text_parser *p); /* after the one in front */
/* Fails with "line:column: " and the message. */
rlx_status text_fail(struct text_parser *p, size_t at, rlx_status s, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* "expected `what`, got ..." at the token in front. */
rlx_status text_unexpected(struct text_parser *p, const char *what);
rlx_status text_need(struct text_parser *p, const char *mark); /* and go past it */
bool text_take(struct text_parser *p, const char *mark);       /* go past it if it is there */
/* What a callee said, with a position in front of it. */
rlx_status text_fail_with(struct text_parser *p, size_t at, const struct diag *inner);

/* text_type.c. A negative constant is refused, but -1 alone is RLX_DIM_INFER where infer is set. */
rlx_status text_parse_dim(struct text_parser *p, bool infer, ir_dim *out);
rlx_status text_parse_type(struct text_parser *p, struct ir_type *out);

/* text_value.c: numbers and strings, both ways. A sign must touch its number. */
rlx_status text_parse_number(struct text_parser *p, const char *what, rlx_str *out);
rlx_status text_parse_i64(struct text_parser *p, int64_t low, int64_t high, int64_t *out);
rlx_status text_parse_u64(struct text_parser *p, uint64_t high, uint64_t *out);
rlx_status text_parse_f64(struct text_parser *p, double *out);
rlx_status text_parse_f32(struct text_parser *p, float *out);
rlx_status text_parse_string(struct text_parser *p, rlx_str *out); /* in scratch */
/* Exactly `bytes` of them to `to`; the count was checked. */
size_t text_hex_count(const struct text_token *t); /* SIZE_MAX: an odd number of digits */
void text_hex_bytes(const struct text_token *t, unsigned char *to);
void text_print_string(rlx_str s, struct text *out); /* quoted */
void text_print_hex(const void *data, size_t bytes, struct text *out);
void text_print_f32(float v, struct text *out); /* reads back through text_parse_f32 as v */
void text_print_f64(double v, struct text *out);

/* text_const.c: after the word const, to its end. */
rlx_status text_parse_const(struct text_parser *p, struct ir_new_node *n);
void text_print_const(const struct ir_module *m, const struct ir_node *n,
                      const struct text_print_options *o, struct text *out);

/* text_attr.c: all attributes in front, over attr's present values. */
rlx_status text_parse_attrs(struct text_parser *p, rlx_op op, union ir_attr *attr);

/* ---- names (text_names.c) ------------------------------------------------------------------ */

/* What the values of a graph are called, and the order they are printed in: leaves first. */
struct text_names {
    rlx_str *name;   /* by node id */
    ir_value *order; /* ids */
    size_t leaves;   /* how many of them come first */
};
rlx_status text_name_values(const struct ir_graph *g, struct arena *arena, struct text_names *out,
                            struct diag *d);
bool text_is_numbered(rlx_str name); /* v<number>: says nothing */
void text_print_graph_name(const struct ir_module *m, int32_t id, struct text *out);

#endif
