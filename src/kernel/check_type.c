/* check_type.c: names, and what types are called. */
#include "kernel/check.h"

/* ---- names ---- */

static struct kc_thing *in_list(struct kc_thing *t, rlx_str name)
{
    while (t && !str_eq(t->name, name))
        t = t->next;
    return t;
}

struct kc_thing *kc_find(const struct kc_checker *c, rlx_str name)
{
    struct kc_thing *t = c->frame ? in_list(c->frame->thing, name) : NULL;

    return t ? t : in_list(c->global, name);
}

struct kc_thing *kc_add(struct kc_checker *c, rlx_str name, enum kc_thing_kind kind)
{
    struct kc_thing *t = arena_new(c->program.arena, struct kc_thing);
    struct kc_thing **list = c->frame ? &c->frame->thing : &c->global;

    if (!t) {
        c->status = diag_no_memory(c->program.diag, sizeof *t);
        return NULL;
    }
    *t = (struct kc_thing){.name = name, .kind = kind, .next = *list};
    *list = t;
    return t;
}

/* ---- types ---- */

static const struct {
    const char *name;
    uint8_t scalar, lanes;
} words[] = {
    {"f32", KIR_F32, 1},   {"i32", KIR_I32, 1},   {"u32", KIR_U32, 1},   {"bool", KIR_BOOL, 1},
    {"f16", KIR_F16, 1},   {"bf16", KIR_BF16, 1}, {"f64", KIR_F64, 1},   {"i64", KIR_I64, 1},
    {"u64", KIR_U64, 1},   {"i8", KIR_I8, 1},     {"u8", KIR_U8, 1},     {"i16", KIR_I16, 1},
    {"u16", KIR_U16, 1},   {"c64", KIR_F32, 2},   {"f32x2", KIR_F32, 2}, {"f32x3", KIR_F32, 3},
    {"f32x4", KIR_F32, 4}, {"u32x2", KIR_U32, 2}, {"u32x3", KIR_U32, 3}, {"u32x4", KIR_U32, 4},
    {"i32x2", KIR_I32, 2}, {"i32x3", KIR_I32, 3}, {"i32x4", KIR_I32, 4}, {"f16x2", KIR_F16, 2},
    {"f16x4", KIR_F16, 4}};

bool kc_scalar_of_name(rlx_str name, struct kir_type *out)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (str_eq(name, rlx_cstr(words[i].name))) {
            *out = (struct kir_type){.scalar = words[i].scalar, .lanes = words[i].lanes};
            return true;
        }
    return false;
}

static bool named_type(const struct kc_checker *c, rlx_str name, struct kir_type *out)
{
    const struct kc_thing *t = kc_find(c, name);

    if (t && t->kind == KC_IS_TYPE) {
        *out = t->type;
        return true;
    }
    return !t && kc_scalar_of_name(name, out);
}

static struct kir_type argument_type(struct kc_checker *c, const struct kc_tree *t)
{
    struct kir_type type = {0};

    if (t->kind != KC_T_NAME || !named_type(c, t->name, &type) || type.lanes != 1)
        kc_error(c, t->at, "the type of a scalar is expected");
    return type;
}

/* vec<T, n>, matrix_a<T, rows, cols>, with "group" after them held by the whole group */
static struct kir_type built_type(struct kc_checker *c, const struct kc_type_tree *t)
{
    bool vec = str_eq(t->name, STR("vec"));
    struct kir_type type = {0};

    if (t->args < (vec ? 2u : 3u)) {
        kc_error(c, t->at,
                 vec ? "vec takes a type and a number of lanes"
                     : "a matrix takes a type, rows and columns");
        return type;
    }
    type = argument_type(c, t->arg[0]);
    if (vec) {
        type.lanes = (uint8_t)kc_check_size(c, t->arg[1], 1, 4);
        return type;
    }
    type.use = str_eq(t->name, STR("matrix_a"))   ? KIR_MATRIX_A
               : str_eq(t->name, STR("matrix_b")) ? KIR_MATRIX_B
                                                  : KIR_MATRIX_ACC;
    type.rows = (uint16_t)kc_check_size(c, t->arg[1], 1, 1024);
    type.cols = (uint16_t)kc_check_size(c, t->arg[2], 1, 1024);
    type.group = t->args == 4;
    c->out->uses_coop = true;
    if (!c->features->coop || (type.group && !c->features->coop_group) ||
        (type.scalar == KIR_BF16 && !c->features->coop_bf16))
        kc_error(c, t->at, "the device has no such cooperative matrices");
    return type;
}

struct kir_type kc_resolve_type(struct kc_checker *c, const struct kc_type_tree *t)
{
    struct kir_type type = {0};

    if (kc_bad(c))
        return type;
    if (t->array) {
        type = kc_resolve_type(c, t->element);
        if (!kc_bad(c) && (type.count || (type.use && t->open)))
            kc_error(c, t->at, "an array holds scalars or vectors, or matrices in a variable");
        if (!t->open)
            type.count = (uint32_t)kc_check_size(c, t->count, 1, 1 << 20);
        return type;
    }
    if (t->args > 0)
        return built_type(c, t);
    if (!named_type(c, t->name, &type))
        kc_error(c, t->at,
                 kc_struct_of(c, t) ? "%.*s is a struct, which only a parameter can be"
                                    : "%.*s is not a type",
                 STR_ARG(t->name));
    else if (type.scalar == KIR_F64 && !c->features->f64)
        kc_error(c, t->at, "the device has no f64");
    return type;
}

/* ---- inferring ---- */

static bool is_generic(const struct kc_checker *c, rlx_str name)
{
    for (const struct kc_generic *g = c->frame->decl->generic; g; g = g->next)
        if (str_eq(g->name, name))
            return true;
    return false;
}

/* A name stands for that type, if it stands for nothing yet. */
static void bind_type(struct kc_checker *c, rlx_str name, struct kir_type type)
{
    struct kc_thing *t = kc_find(c, name);

    if (!t && is_generic(c, name) && (t = kc_add(c, name, KC_IS_TYPE)) != NULL)
        t->type = type;
}

static void bind_size(struct kc_checker *c, const struct kc_tree *size, uint32_t value)
{
    if (!size || size->kind != KC_T_NAME || kc_find(c, size->name) || !is_generic(c, size->name))
        return;
    struct kc_thing *t = kc_add(c, size->name, KC_IS_VALUE);
    if (t)
        t->value = kc_whole(value);
}

bool kc_infer(struct kc_checker *c, const struct kc_type_tree *t, struct kir_type given)
{
    if (t->array) {
        bind_size(c, t->count, given.count);
        given.count = 0;
        return kc_infer(c, t->element, given);
    }
    if (str_eq(t->name, STR("vec")) && t->args == 2) {
        bind_size(c, t->arg[1], given.lanes);
        if (t->arg[0]->kind == KC_T_NAME)
            bind_type(c, t->arg[0]->name, kir_scalar_type((enum kir_scalar)given.scalar));
    } else if (t->args == 0) {
        bind_type(c, t->name, given);
    }
    return !kc_bad(c);
}
