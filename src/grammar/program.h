/* program.h: a grammar as it is matched.
 *
 *     rlx_grammar       rules, each a web of nodes; built once, then only read
 *       gram_node       a character, a choice, a call of a rule, or the end of the rule
 *       gram_byte_state a character's place in UTF-8: which bytes may come, and what after each
 *
 *     root ::= "a" x* | [0-9]
 *
 *         SPLIT --> CHAR a --> SPLIT --> CALL x --,
 *           |                   | ^--------------'
 *           '--> CHAR 0-9 ----> END
 *
 * Characters are matched byte by byte, so a token may begin and end inside of one. */
#ifndef GRAMMAR_PROGRAM_H
#define GRAMMAR_PROGRAM_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "grammar/grammar.h"

enum gram_op {
    GRAM_END,   /* of the rule: goes on after the call of it */
    GRAM_CHAR,  /* a: the byte state that a character begins in; then b */
    GRAM_SPLIT, /* a or b */
    GRAM_CALL,  /* rule a; then b */
};
struct gram_node {
    uint32_t op;
    uint32_t a, b;
    uint32_t rule; /* that it belongs to */
};
#define GRAM_NODE_END 0u /* the one node of op END, which all rules share */

struct gram_rule {
    rlx_str name;
    uint32_t start;       /* node */
    uint32_t first, last; /* its nodes are those in [first, last) */
};

/* Bytes from lo to hi lead to the byte state `next`, or end the character. */
struct gram_bytes {
    uint32_t lo, hi, next;
};
#define GRAM_WHOLE UINT32_MAX /* the character is complete */
struct gram_byte_state {
    uint32_t first, count; /* of gram_bytes, rising */
};

struct rlx_grammar {
    const rlx_allocator *mem;
    void *owner; /* of mem: for src/api */
    atomic_int refs;
    struct arena arena;
    rlx_str text; /* GBNF */
    VEC(struct gram_node) node;
    VEC(struct gram_rule) rule;
    uint32_t root; /* rule */
    VEC(struct gram_byte_state) byte_state;
    VEC(struct gram_bytes) bytes;
    struct map by_bytes; /* byte states by what they are */
    /* Bytes of one class lead to the same from everywhere. */
    uint8_t class_of[256];
    uint32_t classes;
};

enum {
    GRAM_MOST_RULES = 1 << 14,
    GRAM_MOST_NODES = 1 << 19,
    GRAM_MOST_BYTE_STATES = 1 << 18,
    GRAM_MOST_TEXT = 1 << 24,    /* bytes of GBNF */
    GRAM_MOST_REPEATS = 1 << 14, /* of {n,m} */
    GRAM_MOST_DEPTH = 128,       /* of parentheses */
};

/* ---- characters: chars.c ---- */

struct gram_range {
    uint32_t lo, hi;
};
struct gram_chars {
    const rlx_allocator *mem;
    VEC(struct gram_range) range;
};
#define GRAM_LAST_CHAR 0x10ffffu
bool gram_chars_add(struct gram_chars *c, uint32_t lo, uint32_t hi); /* false: no memory */
/* Sorts and merges ranges; negate: those that were not there. Surrogates are left out. */
bool gram_chars_finish(struct gram_chars *c, bool negate);
/* The byte state in which such a character begins; c is finished, and not empty. */
rlx_status gram_chars_state(struct rlx_grammar *g, const struct gram_chars *c, uint32_t *state,
                            struct diag *d);
/* Once all byte states are there. */
void gram_byte_classes(struct rlx_grammar *g);
/* What byte leads to from a byte state; false: nothing. */
bool gram_next_byte(const struct rlx_grammar *g, uint32_t state, uint8_t byte, uint32_t *next);

/* ---- a grammar while it is read: gbnf.c, to compile_rules.c ---- */

enum gram_item_kind { GRAM_ITEM_CHAR, GRAM_ITEM_RULE, GRAM_ITEM_GROUP };
#define GRAM_NO_MOST UINT32_MAX
struct gram_item {
    enum gram_item_kind kind;
    uint32_t value;       /* byte state, or rule */
    struct gram_alt *alt; /* of a group */
    uint32_t min, max;    /* how often; GRAM_NO_MOST: as often as one likes */
    struct gram_item *next;
};
struct gram_alt { /* one of several sequences */
    struct gram_item *item;
    struct gram_alt *next;
};
struct gram_draft_rule {
    rlx_str name;
    struct gram_alt *alt;
    bool defined;
    size_t pos; /* in the text, where it was first used or defined */
};
struct gram_draft {
    struct arena arena;
    VEC(struct gram_draft_rule) rule;
    struct map by_name;
};

/* Nodes of every rule. Groups that are repeated become rules of their own. */
rlx_status gram_compile_rules(struct rlx_grammar *g, struct gram_draft *draft, struct diag *d);
/* check_rules.c. FORMAT: a rule that begins with itself, or that no finite text follows. */
rlx_status gram_check_rules(const struct rlx_grammar *g, struct diag *d);

#endif
