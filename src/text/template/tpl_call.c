/* tpl_call.c: how macros and what is built in get their arguments. */
#include "text/template/tpl_call.h"

#include <string.h>

const struct tpl_builtin *tpl_find_builtin(const struct tpl_builtin *from, rlx_str name)
{
    for (; name.len && from->name; from++)
        if (*from->name == *name.ptr && str_eq(name, rlx_cstr(from->name)))
            return from;
    return NULL;
}

const struct tpl_builtin *tpl_find_method(struct tpl_value v, rlx_str name)
{
    switch (v.kind) {
    case TPL_STR: return tpl_find_builtin(tpl_str_methods, name);
    case TPL_LIST: return tpl_find_builtin(tpl_list_methods, name);
    case TPL_TUPLE: return tpl_find_builtin(tpl_tuple_methods, name);
    case TPL_DICT: return tpl_find_builtin(tpl_dict_methods, name);
    case TPL_LOOP: return tpl_find_builtin(tpl_loop_methods, name);
    default: return NULL;
    }
}

/* ---- what is built in -------------------------------------------------------------------- */

/* The position of a name among words with a space after each; -1: it is none of them. */
static int position(const char *words, rlx_str name, int *count)
{
    int at = -1;

    for (*count = 0; *words; ++*count) {
        const size_t len = strcspn(words, " ");
        if (str_eq(name, (rlx_str){words, len}))
            at = *count;
        words += len + (words[len] == ' ');
    }
    return at;
}

static rlx_status bind(struct tpl_call *c)
{
    const struct tpl_builtin *fn = c->fn;
    const size_t plain = c->all.count - c->all.names;
    int count;

    position(fn->params, (rlx_str){0}, &count);
    if (plain > (size_t)count)
        return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "%s takes %d arguments at most, and gets %zu",
                       fn->name, count, plain);
    for (size_t i = 0; i < c->all.count; i++) {
        int at = (int)i;
        if (i >= plain && (at = position(fn->params, c->all.name[i - plain], &count)) < 0)
            return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "%s has no parameter \"%.*s\"", fn->name,
                           STR_ARG(c->all.name[i - plain]));
        c->arg[at] = c->all.at[i];
    }
    for (int i = 0; i < fn->need; i++)
        if (!tpl_given(c, i))
            return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "%s needs %d argument%s (%s)", fn->name,
                           fn->need, fn->need == 1 ? "" : "s", fn->params);
    return RLX_OK;
}

rlx_status tpl_call_builtin(struct tpl_run *r, const struct tpl_builtin *fn, struct tpl_value self,
                            const struct tpl_args *args, struct tpl_value *out)
{
    struct tpl_call c = {.r = r, .fn = fn, .self = self, .all = *args, .out = tpl_none()};

    TRY(tpl_charge(r, 1));
    if (*fn->params != '*')
        TRY(bind(&c));
    TRY(fn->run(&c));
    *out = c.out;
    return RLX_OK;
}

rlx_status tpl_arg_int(struct tpl_call *c, int i, int64_t otherwise, int64_t *out)
{
    *out = otherwise;
    if (!tpl_given(c, i) || c->arg[i].kind == TPL_NONE || tpl_as_int(c->arg[i], out))
        return RLX_OK;
    return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "%s takes an integer here, and gets %s", c->fn->name,
                   tpl_kind_name(c->arg[i].kind));
}

rlx_status tpl_arg_str(struct tpl_call *c, int i, const struct tpl_str **out)
{
    if (c->arg[i].kind != TPL_STR)
        return tpl_bad(c->r, RLX_ERROR_ARGUMENT, "%s takes a string here, and gets %s", c->fn->name,
                       tpl_kind_name(c->arg[i].kind));
    *out = c->arg[i].u.s;
    return RLX_OK;
}

bool tpl_arg_bool(struct tpl_call *c, int i, bool otherwise)
{
    return tpl_given(c, i) ? tpl_truth(c->arg[i]) : otherwise;
}

rlx_status tpl_self_str(struct tpl_call *c, const struct tpl_str **out)
{
    return tpl_to_str(c->r, c->self, out);
}

/* ---- macros ------------------------------------------------------------------------------ */

/* The value of parameter i: given by position or by name, or its default, which may use parameters
 * before it. */
static rlx_status parameter(struct tpl_run *r, const struct tpl_node *n, size_t i,
                            const struct tpl_args *args)
{
    const size_t plain = args->count - args->names;
    struct tpl_value v = tpl_undefined(NULL);
    bool given = i < plain;

    if (given)
        v = args->at[i];
    for (size_t k = 0; !given && k < args->names; k++) {
        if (str_eq(args->name[k], n->names[i])) {
            given = true;
            v = args->at[plain + k];
        }
    }
    if (!given && n->at[i])
        TRY(tpl_eval(r, n->at[i], &v));
    return tpl_scope_set(r, r->scope, n->names[i], v);
}

static rlx_status check_names(struct tpl_run *r, const struct tpl_node *n,
                              const struct tpl_args *args)
{
    for (size_t k = 0; k < args->names; k++) {
        bool known = false;
        for (size_t i = 0; i < n->count; i++)
            known = known || str_eq(args->name[k], n->names[i]);
        TRY(tpl_charge(r, n->count));
        if (!known)
            return tpl_bad(r, RLX_ERROR_ARGUMENT, "the macro \"%.*s\" has no parameter \"%.*s\"",
                           STR_ARG(n->name), STR_ARG(args->name[k]));
    }
    return RLX_OK;
}

static rlx_status call_macro(struct tpl_run *r, const struct tpl_macro *m,
                             const struct tpl_args *args, struct tpl_value *out)
{
    const struct tpl_node *n = m->node;
    struct tpl_scope *before = r->scope;
    rlx_status s = RLX_OK;

    if (args->count - args->names > n->count)
        return tpl_bad(r, RLX_ERROR_ARGUMENT,
                       "the macro \"%.*s\" takes %zu arguments, and gets %zu", STR_ARG(n->name),
                       n->count, args->count - args->names);
    TRY(check_names(r, n, args));
    TRY(tpl_scope_new(r, m->scope, &r->scope));
    for (size_t i = 0; s == RLX_OK && i < n->count; i++)
        s = parameter(r, n, i, args);
    if (s == RLX_OK)
        s = tpl_exec_to_str(r, n->a, out);
    r->scope = before;
    return s;
}

rlx_status tpl_call_value(struct tpl_run *r, struct tpl_value fn, const struct tpl_args *args,
                          struct tpl_value *out)
{
    switch (fn.kind) {
    case TPL_FUNCTION: return tpl_call_builtin(r, fn.u.fn, tpl_none(), args, out);
    case TPL_METHOD: return tpl_call_builtin(r, fn.u.method->fn, fn.u.method->self, args, out);
    case TPL_MACRO_VALUE: return call_macro(r, fn.u.macro, args, out);
    case TPL_UNDEFINED: return tpl_is_undefined(r, fn);
    default: return tpl_bad(r, RLX_ERROR_ARGUMENT, "%s cannot be called", tpl_kind_name(fn.kind));
    }
}
