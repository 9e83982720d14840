/* tpl_value.h: what templates compute with. Everything lives in the arena of one rendering.
 *
 * A string knows of each of its bytes whether the template or somebody else wrote it (data):
 *
 *     "<|user|>" ~ message.content     text   <|user|>hello
 *                                      data   --------#####   = {first false, cut {8}}
 *
 * and keeps that through whatever is done to it. */
#ifndef TEXT_TEMPLATE_TPL_VALUE_H
#define TEXT_TEMPLATE_TPL_VALUE_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"

enum tpl_kind {
    TPL_UNDEFINED,
    TPL_NONE,
    TPL_BOOL,
    TPL_INT,
    TPL_FLOAT,
    TPL_STR,
    TPL_LIST,
    TPL_TUPLE,
    TPL_DICT,
    TPL_NAMESPACE,
    TPL_LOOP,
    TPL_FUNCTION, /* built in */
    TPL_METHOD,
    TPL_MACRO_VALUE,
};

struct tpl_node;
struct tpl_value {
    enum tpl_kind kind;
    union {
        bool b;
        int64_t i;
        double f;
        const struct tpl_str *s;
        struct tpl_list *list; /* of a tuple, too */
        struct tpl_dict *dict; /* of a namespace, too */
        struct tpl_loop *loop;
        const struct tpl_builtin *fn;
        const struct tpl_method *method;
        const struct tpl_macro *macro;
        const struct tpl_node *missing; /* UNDEFINED: what was asked for, or NULL */
    } u;
};

struct tpl_str {
    rlx_str text;
    const size_t *cut; /* places, ascending, 0 < cut < len, where the origin changes */
    size_t cuts;
    bool data; /* the first byte is */
};

struct tpl_list {
    struct tpl_value *at;
    size_t count, room;
};

struct tpl_pair {
    struct tpl_value key, value;
};
struct tpl_dict { /* in the order in which keys came */
    struct tpl_pair *at;
    size_t count, room;
    uint32_t *index; /* hash to position + 1; NULL while there are few */
    size_t slots;    /* of index, a power of two */
};

struct tpl_loop {
    const struct tpl_list *items;
    size_t at;
    struct tpl_value last; /* what changed() was given before */
};

struct tpl_method {
    const struct tpl_builtin *fn;
    struct tpl_value self;
};

struct tpl_scope;
struct tpl_macro {
    const struct tpl_node *node;
    struct tpl_scope *scope; /* where it was defined */
};

/* ---- one rendering ----------------------------------------------------------------------- */

struct tpl_run {
    struct arena *arena;
    struct diag *d;
    rlx_str source; /* for messages */
    uint32_t place; /* in it, of what is being done */
    uint64_t steps, most_steps;
    size_t most_output;
    uint32_t depth; /* of nodes in each other, macros included */
    struct tpl_scope *scope;
    struct tpl_text *out; /* what is written goes there */
    enum { TPL_FLOW_ON, TPL_FLOW_BREAK, TPL_FLOW_CONTINUE } flow;
    int64_t now;
};
#define TPL_MOST_EVAL 800 /* nodes in each other */
#define TPL_MOST_NESTING                                                     \
    100 /* lists and dicts in each other, where they are written or compared \
         */

/* A failure where the run is. */
#define tpl_bad(r, s, ...) tpl_fail((r)->d, (r)->source, (r)->place, (s), __VA_ARGS__)
rlx_status tpl_no_memory(struct tpl_run *r, size_t bytes);
/* Work that was done, in the time of a node; LIMIT: it is too much. */
rlx_status tpl_charge(struct tpl_run *r, size_t steps);
rlx_status tpl_charge_bytes(struct tpl_run *r, size_t bytes); /* copied or compared */
rlx_status tpl_charge_chars(struct tpl_run *r, size_t bytes); /* looked at one by one */

static inline struct tpl_value tpl_none(void)
{
    return (struct tpl_value){.kind = TPL_NONE};
}
static inline struct tpl_value tpl_bool(bool b)
{
    return (struct tpl_value){.kind = TPL_BOOL, .u.b = b};
}
static inline struct tpl_value tpl_int(int64_t i)
{
    return (struct tpl_value){.kind = TPL_INT, .u.i = i};
}
static inline struct tpl_value tpl_float(double f)
{
    return (struct tpl_value){.kind = TPL_FLOAT, .u.f = f};
}
static inline struct tpl_value tpl_undefined(const struct tpl_node *n)
{
    return (struct tpl_value){.kind = TPL_UNDEFINED, .u.missing = n};
}
static inline bool tpl_is_list(struct tpl_value v)
{
    return v.kind == TPL_LIST || v.kind == TPL_TUPLE;
}
const char *tpl_kind_name(enum tpl_kind k); /* "a list" */

/* tpl_value.c */
bool tpl_truth(struct tpl_value v);
/* INT and BOOL as a number; false: it is neither. */
bool tpl_as_int(struct tpl_value v, int64_t *out);
bool tpl_as_float(struct tpl_value v, double *out); /* those and FLOAT */
rlx_status tpl_equal(struct tpl_run *r, struct tpl_value a, struct tpl_value b, bool *out);
/* Below 0, 0, above 0. ARGUMENT: nothing says which is less. */
rlx_status tpl_order(struct tpl_run *r, struct tpl_value a, struct tpl_value b, int *out);
rlx_status tpl_contains(struct tpl_run *r, struct tpl_value in, struct tpl_value what, bool *out);
/* What a loop goes through: of a dict its keys, of a string its characters. Never the list itself.
 */
rlx_status tpl_items_of(struct tpl_run *r, struct tpl_value v, struct tpl_list **out);
rlx_status tpl_length(struct tpl_run *r, struct tpl_value v, int64_t *out);
/* v[key]; UNDEFINED: there is none. */
rlx_status tpl_item(struct tpl_run *r, struct tpl_value v, struct tpl_value key,
                    struct tpl_value *out);
/* v[from:to:step], each may be NONE. */
rlx_status tpl_slice(struct tpl_run *r, struct tpl_value v, const struct tpl_value part[3],
                     struct tpl_value *out);

rlx_status tpl_list_new(struct tpl_run *r, struct tpl_list **out);
rlx_status tpl_list_add(struct tpl_run *r, struct tpl_list *l, struct tpl_value v);
rlx_status tpl_pair_new(struct tpl_run *r, struct tpl_value a, struct tpl_value b,
                        struct tpl_value *out); /* a tuple */

/* tpl_dict.c */
rlx_status tpl_dict_new(struct tpl_run *r, struct tpl_dict **out);
rlx_status tpl_dict_set(struct tpl_run *r, struct tpl_dict *t, struct tpl_value key,
                        struct tpl_value value);
rlx_status tpl_dict_get(struct tpl_run *r, const struct tpl_dict *t, struct tpl_value key,
                        struct tpl_value *out, bool *found);
rlx_status tpl_dict_set_name(struct tpl_run *r, struct tpl_dict *t, rlx_str name,
                             struct tpl_value value);
rlx_status tpl_dict_get_name(struct tpl_run *r, const struct tpl_dict *t, rlx_str name,
                             struct tpl_value *out, bool *found);
rlx_status tpl_dict_remove(struct tpl_run *r, struct tpl_dict *t, struct tpl_value key,
                           struct tpl_value *out, bool *found);
/* tpl_sort.c: a copy in the order of the keys; those that are equal stay in theirs. */
rlx_status tpl_sorted(struct tpl_run *r, const struct tpl_pair *pairs, size_t count, bool reverse,
                      struct tpl_pair **out);

/* ---- strings (tpl_text.c) ---------------------------------------------------------------- */

/* Text under construction. After a failure it only remembers that: look at `failed`, or end it. */
struct tpl_text {
    struct tpl_run *r;
    char *at;
    size_t len, room;
    size_t *cut, cuts, cut_room;
    bool data, last; /* of the first byte, of the last one */
    rlx_status failed;
};
void tpl_text_begin(struct tpl_text *t, struct tpl_run *r);
void tpl_text_reserve(struct tpl_text *t, size_t bytes); /* where it is known how many will come */
void tpl_text_add(struct tpl_text *t, rlx_str s, bool data);
void tpl_text_add_str(struct tpl_text *t, const struct tpl_str *s);
void tpl_text_add_part(struct tpl_text *t, const struct tpl_str *s, size_t from, size_t to);
void tpl_text_add_char(struct tpl_text *t, uint32_t c, bool data);
rlx_status tpl_text_end(struct tpl_text *t, struct tpl_value *out);

/* The text is not copied. */
rlx_status tpl_string(struct tpl_run *r, rlx_str text, bool data, struct tpl_value *out);
rlx_status tpl_substring(struct tpl_run *r, const struct tpl_str *s, size_t from, size_t to,
                         struct tpl_value *out);
/* Pieces of one origin, one after the other: start with *pos = 0. false: that was all. */
bool tpl_next_piece(const struct tpl_str *s, size_t *pos, rlx_str *piece, bool *data);
size_t tpl_char_count(rlx_str s);
/* Characters changed one by one, by what came before. */
enum tpl_case {
    TPL_LOWER,
    TPL_UPPER,
    TPL_TITLE,       /* as Python: words are made of letters */
    TPL_TITLE_WORDS, /* as the filter: they are what is between spaces, dashes and brackets */
    TPL_CAPITALIZE,
};
rlx_status tpl_change_case(struct tpl_run *r, const struct tpl_str *s, enum tpl_case to,
                           struct tpl_value *out);

/* ---- as text ----------------------------------------------------------------------------- */

/* tpl_print.c: as {{ v }} writes it, and as it is written inside of a list. */
rlx_status tpl_print(struct tpl_text *t, struct tpl_value v);
rlx_status tpl_repr(struct tpl_text *t, struct tpl_value v, uint32_t depth);
/* Strings stay what they are. */
rlx_status tpl_to_str(struct tpl_run *r, struct tpl_value v, const struct tpl_str **out);
size_t tpl_float_text(double f, char out[40]); /* as Python writes it */

/* tpl_json.c */
struct tpl_json_style {
    rlx_str item, key;            /* what is between items, and after keys */
    const struct tpl_str *indent; /* NULL: all on one line */
    bool ascii, sorted;
};
rlx_status tpl_to_json(struct tpl_text *t, struct tpl_value v, const struct tpl_json_style *s);
/* data: the origin of all strings in it. what: whose JSON it is, for messages. */
rlx_status tpl_from_json(struct tpl_run *r, rlx_str text, bool data, const char *what,
                         struct tpl_value *out);

#endif
