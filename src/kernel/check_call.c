/* check_call.c: conversions, and functions written out where they are called.
 *
 * All of a function's code goes to its caller: arguments by value are values already, variables,
 * shared memory and buffers go by name, and a function may return from the ends of its paths only,
 * so that no jump is needed. */
#include <string.h>

#include "kernel/check.h"

#define MAX_CALLS 32 /* inside of one another */
#define MAX_ARGS 24

const struct kc_decl *kc_find_decl(const struct kc_checker *c, rlx_str name)
{
    for (const struct kc_file *f = c->program.file; f; f = f->next)
        for (const struct kc_decl *d = f->decl; d; d = d->next)
            if (d->kind != KC_D_STRUCT && str_eq(d->name, name))
                return d;
    return NULL;
}

/* ---- conversions ---- */

static struct kc_value from_lanes(struct kc_checker *c, const struct kc_tree *t,
                                  struct kir_type type)
{
    struct kir_type one = kir_scalar_type((enum kir_scalar)type.scalar);
    kir_value lane[4] = {KIR_NONE, KIR_NONE, KIR_NONE, KIR_NONE};

    if (t->args != type.lanes) {
        kc_error(c, t->at, "a vector of %d lanes is made of 1 or %d values, not %u", type.lanes,
                 type.lanes, t->args);
        return (struct kc_value){0};
    }
    for (uint32_t i = 0; i < t->args; i++)
        lane[i] = kc_id_as(c, kc_check_expr(c, t->arg[i]), one, t->arg[i]->at);
    kir_value made = kc_emit(c, KIR_VECTOR, type, lane[0], lane[1], lane[2], 0);
    if (!kc_bad(c))
        c->out->instr[made].d = lane[3];
    return kc_of(type, made);
}

static struct kc_value conversion(struct kc_checker *c, const struct kc_tree *t,
                                  struct kir_type type)
{
    if (kc_bad(c))
        return (struct kc_value){0};
    if (t->args != 1)
        return from_lanes(c, t, type);
    struct kc_value v = kc_check_expr(c, t->arg[0]);
    if (!type.use)
        return kc_convert(c, v, type, t->at);
    if (v.type.use == KIR_MATRIX_ACC && type.use == KIR_MATRIX_ACC && v.type.rows == type.rows &&
        v.type.cols == type.cols && v.type.group == type.group)
        return kc_of(type, kc_emit(c, KIR_CONVERT, type, v.id, KIR_NONE, KIR_NONE, 0));
    if (v.type.use == KIR_MATRIX_ACC && type.use && v.type.rows == type.rows &&
        v.type.cols == type.cols && v.type.group == type.group && v.type.scalar == type.scalar) {
        if (!c->features->coop_rows)
            kc_error(c, t->at, "the device cannot multiply with sums");
        return kc_of(type, kc_emit(c, KIR_COOP_USE_AS, type, v.id, KIR_NONE, KIR_NONE, 0));
    }
    kir_value id = kc_id_as(c, v, kir_scalar_type((enum kir_scalar)type.scalar), t->at);
    return kc_of(type, kc_emit(c, KIR_COOP_FILL, type, id, KIR_NONE, KIR_NONE, 0));
}

static bool is_type(struct kc_checker *c, const struct kc_tree *t, struct kir_type *out)
{
    const struct kc_thing *thing = kc_find(c, t->name);

    if (t->type) {
        *out = kc_resolve_type(c, t->type);
        return true;
    }
    if (thing && thing->kind == KC_IS_TYPE) {
        *out = thing->type;
        return true;
    }
    return !thing && kc_scalar_of_name(t->name, out);
}

/* ---- arguments ---- */

struct argument {
    struct kc_value value;
    struct kc_thing thing; /* of what goes by name */
    uint32_t at;
};

/* Arrays without a mode are those of the parameter block, as are structs. */
static bool by_name(const struct kc_checker *c, const struct kc_param *p)
{
    return p->type->array || kc_struct_of(c, p->type) ||
           (p->mode != KC_BY_VALUE && p->mode != KC_AS_CONST);
}

static enum kc_thing_kind wanted(enum kc_param_mode m)
{
    switch (m) {
    case KC_BY_VALUE:
    case KC_AS_CONST: return KC_IS_PARAM;
    case KC_AS_IN:
    case KC_AS_OUT:
    case KC_AS_INOUT: return KC_IS_BUFFER;
    default: return KC_IS_VAR;
    }
}

static void take_struct(struct kc_checker *c, const struct kc_param *p, const struct kc_decl *s,
                        const struct kc_tree *t, struct argument *out)
{
    const struct kc_thing *thing = t->kind == KC_T_NAME ? kc_find(c, t->name) : NULL;

    if (p->mode != KC_BY_VALUE)
        kc_error(c, p->at, "%.*s is a struct: it is a parameter without a mode", STR_ARG(s->name));
    else if (!thing || thing->kind != KC_IS_STRUCT || thing->decl != s)
        kc_error(c, t->at, "the name of a parameter that is a struct %.*s is expected",
                 STR_ARG(s->name));
    else
        out->thing = *thing;
}

static void take_name(struct kc_checker *c, const struct kc_param *p, const struct kc_tree *t,
                      struct argument *out)
{
    struct kc_thing field;
    const struct kc_thing *thing = kc_named(c, t, &field);
    enum kc_thing_kind want = wanted(p->mode);
    bool buffer = want == KC_IS_BUFFER;

    if (!thing || thing->kind != want) {
        kc_error(c, t->at, "the name of a %s is expected",
                 buffer                ? "buffer"
                 : want == KC_IS_PARAM ? "parameter"
                                       : "variable");
        return;
    }
    bool shared = want == KC_IS_VAR && c->out->var[thing->index].shared;
    if (p->mode == KC_AS_SHARED && !shared)
        kc_error(c, t->at, "%.*s is not shared", STR_ARG(t->name));
    int have = buffer ? (int)c->out->buffer[thing->index].mode : 0;
    int need = p->mode == KC_AS_IN ? KIR_IN : p->mode == KC_AS_OUT ? KIR_OUT : KIR_INOUT;
    if (buffer && (have & need) != need)
        kc_error(c, t->at, "%.*s cannot be used here: it is %s", STR_ARG(t->name),
                 have == KIR_IN ? "only read" : "only written");
    out->thing = *thing;
}

static bool take_arguments(struct kc_checker *c, const struct kc_decl *d, const struct kc_tree *t,
                           struct argument *out)
{
    const struct kc_param *p = d->param;
    uint32_t i = 0;

    for (; p && i < t->args && i < MAX_ARGS; p = p->next, i++) {
        const struct kc_decl *s = kc_struct_of(c, p->type);
        out[i] = (struct argument){.at = t->arg[i]->at};
        if (s)
            take_struct(c, p, s, t->arg[i], &out[i]);
        else if (by_name(c, p))
            take_name(c, p, t->arg[i], &out[i]);
        else
            out[i].value = kc_check_expr(c, t->arg[i]);
    }
    if (p || i < t->args)
        kc_error(c, t->at, "%.*s takes a different number of arguments", STR_ARG(d->name));
    return !kc_bad(c);
}

/* The sizes of its arrays are those that were given. */
static void bind_struct(struct kc_checker *c, const struct kc_param *p, const struct argument *a)
{
    uint32_t index = a->thing.index;
    struct kc_thing *t;

    for (const struct kc_param *f = a->thing.decl->param; f; f = f->next)
        kc_infer(c, f->type, c->out->param[index++].type);
    if (!kc_bad(c) && (t = kc_add(c, p->name, KC_IS_STRUCT)) != NULL) {
        t->index = a->thing.index;
        t->decl = a->thing.decl;
    }
}

static void bind(struct kc_checker *c, const struct kc_param *p, const struct argument *a)
{
    if (a->thing.decl) {
        bind_struct(c, p, a);
        return;
    }
    struct kir_type given = by_name(c, p) ? a->thing.type : kc_own_type(&a->value);
    char have[64], want[64];

    kc_infer(c, p->type, given);
    struct kir_type type = kc_resolve_type(c, p->type);
    struct kc_thing *t = kc_bad(c) ? NULL : kc_add(c, p->name, KC_IS_VALUE);
    if (!t)
        return;
    if (by_name(c, p)) {
        rlx_str name = t->name;
        struct kc_thing *next = t->next;
        *t = a->thing;
        t->name = name;
        t->next = next;
        if (!kir_type_same(given, type)) {
            kc_type_text(given, have);
            kc_type_text(type, want);
            kc_error(c, a->at, "%s is expected here, this is %s", want, have);
        }
        return;
    }
    t->value = kc_fit(c, a->value, type, a->at);
    if (p->mode == KC_AS_CONST && !kc_is_constant(&t->value))
        kc_error(c, a->at, "%.*s takes a constant", STR_ARG(p->name));
}

/* ---- functions ---- */

static struct kc_value result_of(struct kc_checker *c, const struct kc_frame *f)
{
    if (f->result.scalar == KIR_VOID || f->result_var == KIR_NONE)
        return f->returned;
    return kc_of(f->result,
                 kc_emit(c, KIR_LOAD, f->result, KIR_NONE, KIR_NONE, KIR_NONE, f->result_var));
}

static struct kc_value write_out(struct kc_checker *c, const struct kc_decl *d,
                                 const struct argument *arg, uint32_t at)
{
    struct kc_frame f = {.decl = d, .caller = c->frame, .result_var = KIR_NONE};
    struct kc_value none = {0};
    uint32_t i = 0;

    if (++c->depth > MAX_CALLS)
        kc_error(c, at, "functions call one another too deeply; recursion is not possible");
    c->frame = &f;
    for (const struct kc_param *p = d->param; p && !kc_bad(c); p = p->next)
        bind(c, p, &arg[i++]);
    if (d->type)
        f.result = kc_resolve_type(c, d->type);
    bool ended = !kc_bad(c) && kc_check_stmts(c, d->body);
    if (!ended && f.result.scalar != KIR_VOID)
        kc_error(c, d->at, "%.*s does not return a value on all its paths", STR_ARG(d->name));
    struct kc_value result = kc_bad(c) ? none : result_of(c, &f);
    c->frame = f.caller;
    c->depth--;
    c->at = at;
    return result;
}

struct kc_value kc_call(struct kc_checker *c, const struct kc_tree *t)
{
    struct argument arg[MAX_ARGS];
    struct kc_value v = {0};
    struct kir_type type;

    if (is_type(c, t, &type))
        return conversion(c, t, type);
    const struct kc_decl *d = kc_find_decl(c, t->name);
    if (!d && kc_builtin(c, t, &v))
        return v;
    if (!d || d->kind != KC_D_FN) {
        kc_error(c, t->at, "no function is called %.*s", STR_ARG(t->name));
        return v;
    }
    return take_arguments(c, d, t, arg) ? write_out(c, d, arg, t->at) : v;
}

struct kc_value kc_call_library(struct kc_checker *c, const char *file, const char *name,
                                const struct kc_value *arg, uint32_t args, uint32_t at)
{
    const struct kc_decl *d = kc_find_decl(c, rlx_cstr(name));
    struct argument a[4] = {{.at = at}};

    if (!d && !kc_bad(c)) {
        c->status = kc_parse(&c->program, rlx_cstr(file));
        d = kc_bad(c) ? NULL : kc_find_decl(c, rlx_cstr(name));
        if (!d)
            kc_error(c, at, "%s has no function %s", file, name);
    }
    if (kc_bad(c) || !d)
        return (struct kc_value){0};
    for (uint32_t i = 0; i < args && i < 4; i++)
        a[i] = (struct argument){.value = arg[i], .at = at};
    return write_out(c, d, a, at);
}

/* ---- tables ---- */

struct kc_thing *kc_add_table(struct kc_checker *c, rlx_str name, const struct kc_type_tree *type,
                              const struct kc_tree *values)
{
    struct kir_type t = {0};
    uint64_t *bits = arena_array(c->program.arena, uint64_t, values->args);

    if (!bits)
        c->status = diag_no_memory(c->program.diag, values->args * sizeof *bits);
    if (!type)
        kc_error(c, values->at, "a table needs a type, as [i32; 16]");
    else
        t = kc_resolve_type(c, type);
    if (!kc_bad(c) && (t.count != values->args || t.lanes != 1 || t.scalar > KIR_F32))
        kc_error(c, values->at, "%u values do not make that", values->args);
    struct kir_type one = kir_scalar_type((enum kir_scalar)t.scalar);
    for (uint32_t i = 0; !kc_bad(c) && i < values->args; i++) {
        struct kc_value v = kc_fit(c, kc_check_expr(c, values->arg[i]), one, values->arg[i]->at);
        if (!kc_bad(c) && v.kind != KC_V_CONST)
            kc_error(c, values->arg[i]->at, "a constant is expected");
        bits[i] = v.bits;
    }
    uint32_t var = kc_new_var(c, name, t);
    struct kc_thing *made = kc_bad(c) ? NULL : kc_add(c, name, KC_IS_VAR);
    if (made) {
        c->out->var[var].table = bits;
        made->index = var;
        made->type = t;
    }
    return made;
}
