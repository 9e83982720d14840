/* tpl_call.h: filters, tests, methods and functions: tables of what is built in, and how it is
 * called. */
#ifndef TEXT_TEMPLATE_TPL_CALL_H
#define TEXT_TEMPLATE_TPL_CALL_H

#include "text/template/tpl_node.h"
#include "text/template/tpl_value.h"

enum { TPL_MOST_ARGS = 4 };

/* Arguments as they were written. */
struct tpl_args {
    struct tpl_value *at; /* the last `names` of them have names */
    size_t count, names;
    const rlx_str *name;
};

struct tpl_call {
    struct tpl_run *r;
    const struct tpl_builtin *fn;
    struct tpl_value self;               /* what is filtered, tested, or has the method */
    struct tpl_value arg[TPL_MOST_ARGS]; /* by parameter; UNDEFINED: not given */
    struct tpl_args all;
    struct tpl_value out; /* NONE until the function sets it */
};

struct tpl_builtin {
    const char *name;   /* NULL ends a table */
    const char *params; /* "old new count", of which the first `need` must be given; "*": any */
    int need;
    rlx_status (*run)(struct tpl_call *c);
};

extern const struct tpl_builtin tpl_filters[], tpl_tests[], tpl_functions[];
extern const struct tpl_builtin tpl_str_methods[], tpl_list_methods[], tpl_tuple_methods[],
    tpl_dict_methods[], tpl_loop_methods[];

const struct tpl_builtin *tpl_find_builtin(const struct tpl_builtin *from, rlx_str name);
/* NULL: values of that kind have none of that name. */
const struct tpl_builtin *tpl_find_method(struct tpl_value v, rlx_str name);

rlx_status tpl_call_builtin(struct tpl_run *r, const struct tpl_builtin *fn, struct tpl_value self,
                            const struct tpl_args *args, struct tpl_value *out);
/* Anything that can be called. */
rlx_status tpl_call_value(struct tpl_run *r, struct tpl_value fn, const struct tpl_args *args,
                          struct tpl_value *out);

/* Arguments of a builtin. */
static inline bool tpl_given(const struct tpl_call *c, int i)
{
    return c->arg[i].kind != TPL_UNDEFINED;
}
rlx_status tpl_arg_int(struct tpl_call *c, int i, int64_t otherwise, int64_t *out);
rlx_status tpl_arg_str(struct tpl_call *c, int i, const struct tpl_str **out); /* must be one */
bool tpl_arg_bool(struct tpl_call *c, int i, bool otherwise);
/* Itself as text; numbers and others as they are printed. */
rlx_status tpl_self_str(struct tpl_call *c, const struct tpl_str **out);

/* tpl_run.c, tpl_eval.c */
rlx_status tpl_exec(struct tpl_run *r, const struct tpl_node *n);
rlx_status tpl_eval(struct tpl_run *r, const struct tpl_node *n, struct tpl_value *out);
/* Runs a body into a text of its own. */
rlx_status tpl_exec_to_str(struct tpl_run *r, const struct tpl_node *n, struct tpl_value *out);
rlx_status tpl_math(struct tpl_run *r, enum tpl_op op, struct tpl_value a, struct tpl_value b,
                    struct tpl_value *out);
/* v.name, as a template says it. */
rlx_status tpl_attribute(struct tpl_run *r, struct tpl_value v, rlx_str name,
                         const struct tpl_node *n, struct tpl_value *out);
/* An error that says what is undefined. */
rlx_status tpl_is_undefined(struct tpl_run *r, struct tpl_value v);

/* Names. A loop's body, a macro's and a block's text have their own. */
struct tpl_name {
    rlx_str name;
    struct tpl_value value;
};
struct tpl_scope {
    struct tpl_scope *up;
    struct tpl_name *at;
    size_t count, room;
    bool kept; /* a macro refers to it */
};
rlx_status tpl_scope_new(struct tpl_run *r, struct tpl_scope *up, struct tpl_scope **out);
rlx_status tpl_scope_set(struct tpl_run *r, struct tpl_scope *s, rlx_str name,
                         struct tpl_value value);
rlx_status tpl_scope_get(struct tpl_run *r, rlx_str name, struct tpl_value *out, bool *found);

#endif
