/* check_stmt.c: statements. Names live as long as their block; conditions that are constant choose
 * a branch here and now. */
#include <string.h>

#include "kernel/check.h"

#define MAX_UNROLLED 1024  /* turns of one loop */
#define MAX_WORK (1 << 20) /* statements, each time one is looked at: constants cost time too */

static const struct kir_type none;

static void emit(struct kc_checker *c, enum kir_op op, kir_value a)
{
    kc_emit(c, op, none, a, KIR_NONE, KIR_NONE, 0);
}

static bool is_kernel(const struct kc_frame *f)
{
    return f->decl->kind == KC_D_KERNEL;
}

/* ---- names ---- */

static void let(struct kc_checker *c, const struct kc_stmt *s)
{
    struct kc_value v = {0};

    if (s->a->kind == KC_T_ARRAY) {
        kc_add_table(c, s->name, s->type, s->a);
        return;
    }
    v = kc_check_expr(c, s->a);
    if (s->type)
        v = kc_fit(c, v, kc_resolve_type(c, s->type), s->a->at);
    if (kc_bad(c))
        return;
    if (v.kind == KC_V_NONE)
        kc_error(c, s->a->at, "this gives no value");
    else if (s->kind == KC_S_CONST && !kc_is_constant(&v))
        kc_error(c, s->a->at, "this is not constant");
    struct kc_thing *t = kc_add(c, s->name, KC_IS_VALUE);
    if (t)
        t->value = v;
}

static void variable(struct kc_checker *c, const struct kc_stmt *s)
{
    struct kc_value v = {0};
    struct kir_type type = none;

    if (s->a)
        v = kc_check_expr(c, s->a);
    if (s->type)
        type = kc_resolve_type(c, s->type);
    else if (!kc_bad(c))
        type = kc_own_type(&v);
    if (kc_bad(c))
        return;
    if (type.scalar == KIR_VOID) {
        kc_error(c, s->at, "this gives no value");
        return;
    }
    if (s->a)
        v = kc_of(type, kc_id_as(c, v, type, s->a->at));
    uint32_t var = kc_new_var(c, s->name, type);
    struct kc_thing *t = kc_bad(c) ? NULL : kc_add(c, s->name, KC_IS_VAR);
    if (!t)
        return;
    t->index = var;
    t->type = type;
    if (s->a)
        kc_emit(c, KIR_STORE, none, KIR_NONE, v.id, KIR_NONE, var);
}

static void shared(struct kc_checker *c, const struct kc_stmt *s)
{
    struct kir_type type = kc_resolve_type(c, s->type);

    if (!kc_bad(c) && !is_kernel(c->frame))
        kc_error(c, s->at,
                 "shared memory is declared in a kernel, and passed to functions by name");
    bool atomic = s->atomic || s->type->atomic;
    enum kir_scalar scalar = (enum kir_scalar)type.scalar;
    bool wide = scalar == KIR_F64 || scalar == KIR_I64 || scalar == KIR_U64;
    if (!kc_bad(c) && ((scalar > KIR_F32 && !wide) || type.use || (scalar == KIR_BOOL)))
        kc_error(c, s->at, "shared memory holds numbers of 32 or 64 bits and vectors of them");
    if (!kc_bad(c) && atomic && (wide || scalar == KIR_F32 || type.lanes > 1))
        kc_error(c, s->at, "atomics are i32 or u32");
    uint32_t var = kc_new_var(c, s->name, type);
    struct kc_thing *t = kc_bad(c) ? NULL : kc_add(c, s->name, KC_IS_VAR);
    if (!t)
        return;
    uint32_t lanes = type.lanes == 3 ? 4 : type.lanes;
    c->out->shared_bytes += (wide ? 8 : 4) * lanes * (type.count ? type.count : 1);
    c->out->var[var].shared = true;
    c->out->var[var].atomic = atomic;
    t->index = var;
    t->type = type;
}

static void assign(struct kc_checker *c, const struct kc_stmt *s)
{
    struct kc_place p;
    char op[2] = {s->op[0], 0};

    if (!kc_check_place(c, s->a, &p))
        return;
    if (!p.buffer && c->out->var[p.index].table)
        kc_error(c, s->at, "a table is never written");
    if (p.buffer && !(c->out->buffer[p.index].mode & KIR_OUT))
        kc_error(c, s->at, "the buffer is only read");
    if ((p.buffer && p.at == KIR_NONE) || p.type.count)
        kc_error(c, s->at, "an element is expected: there is no assignment of all of it");
    if (s->op[1] == 0) {
        kc_store(c, &p, kc_check_expr(c, s->b), s->b->at);
        return;
    }
    if (p.buffer && !(c->out->buffer[p.index].mode & KIR_IN))
        kc_error(c, s->at, "the buffer is only written");
    struct kc_value old = kc_load(c, &p), v = kc_check_expr(c, s->b);
    c->at = s->at;
    kc_store(c, &p, kc_binary(c, op, old, v, s->at), s->at);
}

/* ---- choices ---- */

static bool block(struct kc_checker *c, const struct kc_stmt *s)
{
    struct kc_thing *names = c->frame->thing;
    bool ended;

    c->frame->nest++;
    ended = kc_check_stmts(c, s);
    c->frame->nest--;
    c->frame->thing = names;
    return ended;
}

/* The branch that a constant condition takes; the other one is not looked at. */
static bool chosen(struct kc_checker *c, const struct kc_stmt *s, bool taken)
{
    struct kc_thing *names = c->frame->thing;
    const struct kc_stmt *body = taken ? s->body : s->other;
    bool ended = body && kc_check_stmts(c, body);

    c->frame->thing = names;
    return ended;
}

/* *rest: the statements after it, which it may take as its other branch; then NULL. */
static bool if_else(struct kc_checker *c, const struct kc_stmt *s, const struct kc_stmt **rest)
{
    struct kc_value cond = kc_fit(c, kc_check_expr(c, s->a), kir_scalar_type(KIR_BOOL), s->a->at);
    bool known, first, second = false;

    if (kc_bad(c))
        return false;
    if (kc_as_bool(&cond, &known))
        return chosen(c, s, known);
    emit(c, KIR_IF, cond.id);
    first = block(c, s->body);
    if (s->other) {
        emit(c, KIR_ELSE, KIR_NONE);
        second = block(c, s->other);
    } else if (first && !is_kernel(c->frame) && *rest) {
        emit(c, KIR_ELSE, KIR_NONE);
        second = block(c, *rest);
        *rest = NULL;
    }
    emit(c, KIR_END_IF, KIR_NONE);
    if (first != second && s->other && !is_kernel(c->frame) && *rest)
        kc_error(c, s->at, "only one of the branches returns; write the rest into the other");
    return first && second;
}

/* ---- loops ---- */

static void unrolled(struct kc_checker *c, const struct kc_stmt *s)
{
    int64_t from = kc_check_size(c, s->a, INT32_MIN, UINT32_MAX);
    int64_t to = kc_check_size(c, s->b, INT32_MIN, UINT32_MAX);
    int64_t by = s->c ? kc_check_size(c, s->c, 1, INT32_MAX) : 1, turns = 0;

    c->frame->unrolls++;
    for (int64_t i = from; i < to && !kc_bad(c); i += by) {
        struct kc_thing *names = c->frame->thing, *t = kc_add(c, s->name, KC_IS_VALUE);
        if (!t)
            break;
        if (++turns > MAX_UNROLLED)
            kc_error(c, s->at, "more than %d iterations are not unrolled", MAX_UNROLLED);
        t->value = kc_whole(i);
        if (kc_check_stmts(c, s->body))
            kc_error(c, s->at, "an unrolled loop goes to its end");
        c->frame->thing = names;
    }
    c->frame->unrolls--;
}

static void body_of(struct kc_checker *c, const struct kc_stmt *s)
{
    uint32_t unrolls = c->frame->unrolls;

    c->frame->loops++;
    c->frame->unrolls = 0;
    block(c, s->body);
    c->frame->unrolls = unrolls;
    c->frame->loops--;
    emit(c, KIR_CONTINUING, KIR_NONE);
}

static void leave_unless(struct kc_checker *c, kir_value cond)
{
    struct kir_type truth = kir_scalar_type(KIR_BOOL);

    emit(c, KIR_IF, kc_emit(c, KIR_LOGIC_NOT, truth, cond, KIR_NONE, KIR_NONE, 0));
    emit(c, KIR_BREAK, KIR_NONE);
    emit(c, KIR_END_IF, KIR_NONE);
}

/* for i in a..b by s: i is a new value in each turn. */
static void counted(struct kc_checker *c, const struct kc_stmt *s)
{
    struct kc_value a = kc_check_expr(c, s->a), b = kc_check_expr(c, s->b), by = kc_whole(1);
    struct kir_type type, truth = kir_scalar_type(KIR_BOOL);
    struct kc_thing *names = c->frame->thing, *t;

    if (s->c)
        by = kc_check_expr(c, s->c);
    if (kc_bad(c))
        return;
    type = a.kind == KC_V_WHOLE ? kc_own_type(&b) : a.type;
    if (type.scalar != KIR_U32 && type.scalar != KIR_I32) {
        kc_error(c, s->at, "loops count in u32 or i32");
        return;
    }
    kir_value first = kc_id_as(c, a, type, s->a->at), last = kc_id_as(c, b, type, s->b->at);
    kir_value step = kc_id_as(c, by, type, s->at);
    uint32_t var = kc_new_var(c, s->name, type);
    kc_emit(c, KIR_STORE, none, KIR_NONE, first, KIR_NONE, var);
    emit(c, KIR_LOOP, KIR_NONE);
    kir_value i = kc_emit(c, KIR_LOAD, type, KIR_NONE, KIR_NONE, KIR_NONE, var);
    leave_unless(c, kc_emit(c, KIR_LT, truth, i, last, KIR_NONE, 0));
    if (!kc_bad(c) && (t = kc_add(c, s->name, KC_IS_VALUE)) != NULL) {
        t->value = kc_of(type, i);
        body_of(c, s);
    }
    i = kc_emit(c, KIR_LOAD, type, KIR_NONE, KIR_NONE, KIR_NONE, var);
    i = kc_emit(c, KIR_ADD, type, i, step, KIR_NONE, 0);
    kc_emit(c, KIR_STORE, none, KIR_NONE, i, KIR_NONE, var);
    emit(c, KIR_END_LOOP, KIR_NONE);
    c->frame->thing = names;
}

static void while_loop(struct kc_checker *c, const struct kc_stmt *s)
{
    struct kir_type truth = kir_scalar_type(KIR_BOOL);

    emit(c, KIR_LOOP, KIR_NONE);
    leave_unless(c, kc_id_as(c, kc_check_expr(c, s->a), truth, s->a->at));
    body_of(c, s);
    emit(c, KIR_END_LOOP, KIR_NONE);
}

static void jump(struct kc_checker *c, const struct kc_stmt *s)
{
    if (c->frame->unrolls)
        kc_error(c, s->at, "an unrolled loop cannot be left");
    else if (!c->frame->loops)
        kc_error(c, s->at, "there is no loop here");
    emit(c, s->kind == KC_S_BREAK ? KIR_BREAK : KIR_CONTINUE, KIR_NONE);
}

/* ---- returning ---- */

static void give_back(struct kc_checker *c, const struct kc_stmt *s)
{
    struct kc_frame *f = c->frame;

    if (is_kernel(f)) {
        if (s->a)
            kc_error(c, s->at, "a kernel returns no value");
        else if (f->unrolls)
            kc_error(c, s->at, "an unrolled loop goes to its end");
        emit(c, KIR_RETURN, KIR_NONE);
        return;
    }
    if (f->loops || f->unrolls)
        kc_error(c, s->at, "a function does not return from inside a loop");
    if ((s->a != NULL) != (f->result.scalar != KIR_VOID))
        kc_error(c, s->at, s->a ? "the function returns no value" : "a value is expected");
    if (!s->a || kc_bad(c))
        return;
    struct kc_value v = kc_fit(c, kc_check_expr(c, s->a), f->result, s->a->at);
    if (f->nest == 0) {
        f->returned = v;
        return;
    }
    if (f->result_var == KIR_NONE)
        f->result_var = kc_new_var(c, f->decl->name, f->result);
    kc_emit(c, KIR_STORE, none, KIR_NONE, kc_id(c, v, s->at), KIR_NONE, f->result_var);
}

/* ---- all of them ---- */

/* true: nothing after it is reached. */
static bool statement(struct kc_checker *c, const struct kc_stmt *s, const struct kc_stmt **rest)
{
    switch (s->kind) {
    case KC_S_LET:
    case KC_S_CONST: let(c, s); return false;
    case KC_S_VAR: variable(c, s); return false;
    case KC_S_SHARED: shared(c, s); return false;
    case KC_S_ASSIGN: assign(c, s); return false;
    case KC_S_CALL: kc_check_expr(c, s->a); return false;
    case KC_S_IF: return if_else(c, s, rest);
    case KC_S_FOR:
        if (s->unroll)
            unrolled(c, s);
        else
            counted(c, s);
        return false;
    case KC_S_WHILE: while_loop(c, s); return false;
    case KC_S_RETURN: give_back(c, s); return true;
    case KC_S_BLOCK: {
        struct kc_thing *names = c->frame->thing;
        bool ended = s->body && kc_check_stmts(c, s->body);
        c->frame->thing = names;
        return ended;
    }
    default: jump(c, s); return true;
    }
}

bool kc_check_stmts(struct kc_checker *c, const struct kc_stmt *s)
{
    bool ended = false;

    while (s && !kc_bad(c)) {
        const struct kc_stmt *rest = s->next;
        c->at = s->at;
        if (++c->work > MAX_WORK)
            kc_error(c, s->at, "the kernel takes more than %d statements to make", MAX_WORK);
        ended = statement(c, s, &rest);
        if (ended && rest)
            kc_error(c, rest->at, "this is never reached");
        s = rest;
    }
    return ended && !kc_bad(c);
}
