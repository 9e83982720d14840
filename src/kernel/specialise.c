/* specialise.c: from the name of a kernel to kir: its constants, its buffers and parameters, then
 * its body. */
#include <stdio.h>
#include <string.h>

#include "kernel/check.h"

const struct kc_features kc_all_features = {.f16 = true,
                                            .f16_rounds = true,
                                            .nan_preserve = true,
                                            .small_preserve = true,
                                            .f64 = true,
                                            .int64 = true,
                                            .subgroups = true,
                                            .dot8 = true,
                                            .fma = true,
                                            .coop = true,
                                            .coop_group = true,
                                            .coop_bf16 = true,
                                            .coop_rows = true,
                                            .storage16 = true,
                                            .storage8 = true,
                                            .subgroup_size = 32,
                                            .max_group = 1024,
                                            .shared_bytes = 49152};
const struct kc_features kc_least_features = {.max_group = 256, .shared_bytes = 16384};

#define MAX_BUFFERS 32

/* ---- constants ---- */

static void add_constant(struct kc_checker *c, const char *name, struct kc_value v)
{
    struct kc_thing *t = kc_add(c, rlx_cstr(name), KC_IS_VALUE);

    if (t)
        t->value = v;
}

static void add_features(struct kc_checker *c)
{
    const struct kc_features *f = c->features;

    add_constant(c, "HAS_F16", kc_bool(f->f16));
    add_constant(c, "HAS_F64", kc_bool(f->f64));
    add_constant(c, "HAS_INT64", kc_bool(f->int64));
    add_constant(c, "HAS_SUBGROUPS", kc_bool(f->subgroups));
    add_constant(c, "HAS_DOT8", kc_bool(f->dot8));
    add_constant(c, "HAS_FMA", kc_bool(f->fma));
    add_constant(c, "HAS_COOP", kc_bool(f->coop));
    add_constant(c, "HAS_COOP_GROUP", kc_bool(f->coop_group));
    add_constant(c, "HAS_COOP_BF16", kc_bool(f->coop_bf16));
    add_constant(c, "HAS_COOP_ROWS", kc_bool(f->coop_rows));
    add_constant(c, "SUBGROUP_SIZE", kc_whole(f->subgroup_size));
    add_constant(c, "MAX_GROUP", kc_whole(f->max_group));
}

/* Constants of the files, those of the first first; each may use the ones before it. */
static void add_file_constants(struct kc_checker *c)
{
    for (const struct kc_file *f = c->program.file; f; f = f->next)
        for (const struct kc_decl *d = f->decl; d && !kc_bad(c); d = d->next) {
            if (d->kind != KC_D_CONST)
                continue;
            c->at = d->at;
            if (d->value->kind == KC_T_ARRAY) {
                kc_add_table(c, d->name, d->type, d->value);
                continue;
            }
            struct kc_value v = kc_check_expr(c, d->value);
            if (d->type)
                v = kc_fit(c, v, kc_resolve_type(c, d->type), d->at);
            if (!kc_bad(c) && !kc_is_constant(&v))
                kc_error(c, d->value->at, "this is not constant");
            struct kc_thing *t = kc_bad(c) ? NULL : kc_add(c, d->name, KC_IS_VALUE);
            if (t)
                t->value = v;
        }
}

/* ---- what the caller chooses ---- */

static bool is_kind(rlx_str kind, const char *a, const char *b)
{
    return str_eq(kind, rlx_cstr(a)) || (b && str_eq(kind, rlx_cstr(b)));
}

static void wrong_value(struct kc_checker *c, const struct kc_generic *g, rlx_str value)
{
    if (!kc_bad(c))
        c->status =
            diag_fail(c->program.diag, RLX_ERROR_ARGUMENT, "%.*s: \"%.*s\" is not a valid %.*s",
                      STR_ARG(g->name), STR_ARG(value), STR_ARG(g->kind));
}

static void define_type(struct kc_checker *c, const struct kc_generic *g, rlx_str value)
{
    struct kc_thing *t = kc_add(c, g->name, KC_IS_TYPE);
    enum kir_scalar s;

    if (!t)
        return;
    if (!kc_scalar_of_name(value, &t->type)) {
        wrong_value(c, g, value);
        return;
    }
    s = (enum kir_scalar)t->type.scalar;
    bool real = kc_is_float(s) || s == KIR_BF16;
    if ((is_kind(g->kind, "float", NULL) && !real) ||
        (is_kind(g->kind, "integer", NULL) && (real || s == KIR_BOOL)))
        wrong_value(c, g, value);
    else if (s == KIR_F64 && !c->features->f64)
        c->status = diag_fail(c->program.diag, RLX_ERROR_UNSUPPORTED, "the device has no f64");
}

static bool read_value(rlx_str kind, rlx_str text, struct kc_value *out)
{
    int64_t whole;
    double real;

    if (is_kind(kind, "flag", NULL)) {
        bool on = str_eq(text, STR("true")) || str_eq(text, STR("1"));
        *out = kc_bool(on);
        return on || str_eq(text, STR("false")) || str_eq(text, STR("0"));
    }
    if (is_kind(kind, "number", NULL)) {
        if (!str_to_f64(text, &real))
            return false;
        *out = (struct kc_value){.kind = KC_V_REAL, .real = real};
        return true;
    }
    if (!str_to_i64(text, &whole) || (is_kind(kind, "size", NULL) && whole < 0) ||
        whole > UINT32_MAX || whole < INT32_MIN)
        return false;
    *out = kc_whole(whole);
    return true;
}

static void define(struct kc_checker *c, const struct kc_generic *g, const struct kc_define *given,
                   size_t count)
{
    const struct kc_define *d = NULL;
    struct kc_thing *t;

    if (!is_kind(g->kind, "type", "float") && !is_kind(g->kind, "integer", "size") &&
        !is_kind(g->kind, "int", "number") && !is_kind(g->kind, "flag", NULL)) {
        kc_error(c, g->at, "a constant is a type, float, integer, size, int, number or flag");
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (str_eq(given[i].name, g->name))
            d = &given[i];
    bool type = is_kind(g->kind, "type", "float") || is_kind(g->kind, "integer", NULL);
    if (!d && !g->value) {
        c->status = diag_fail(c->program.diag, RLX_ERROR_ARGUMENT, "%.*s, a %.*s, is not given",
                              STR_ARG(g->name), STR_ARG(g->kind));
    } else if (type) {
        define_type(c, g, d ? d->value : g->value->name);
    } else if ((t = kc_add(c, g->name, KC_IS_VALUE)) != NULL) {
        if (!d)
            t->value = kc_check_expr(c, g->value);
        else if (!read_value(g->kind, d->value, &t->value))
            wrong_value(c, g, d->value);
    }
}

static rlx_status check_defines(struct kc_checker *c, const struct kc_decl *k,
                                const struct kc_define *given, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct kc_generic *g = k->generic;
        while (g && !str_eq(g->name, given[i].name))
            g = g->next;
        if (!g)
            return diag_fail(c->program.diag, RLX_ERROR_ARGUMENT,
                             "the kernel %.*s has no constant called %.*s", STR_ARG(k->name),
                             STR_ARG(given[i].name));
    }
    return RLX_OK;
}

/* ---- buffers and parameters ---- */

static void add_buffer(struct kc_checker *c, const struct kc_param *p)
{
    struct kir *k = c->out;
    struct kir_type type = kc_resolve_type(c, p->type);

    if (!kc_bad(c) && !p->type->open)
        kc_error(c, p->at, "a buffer has a type like [f32]");
    if (!kc_bad(c) && k->buffers == MAX_BUFFERS)
        kc_error(c, p->at, "a kernel takes at most %d buffers", MAX_BUFFERS);
    if (!kc_bad(c) && p->type->atomic &&
        (type.lanes > 1 || (type.scalar != KIR_I32 && type.scalar != KIR_U32)))
        kc_error(c, p->at, "atomics are i32 or u32");
    struct kc_thing *t = kc_bad(c) ? NULL : kc_add(c, p->name, KC_IS_BUFFER);
    if (!t)
        return;
    enum kir_mode mode = p->mode == KC_AS_IN ? KIR_IN : p->mode == KC_AS_OUT ? KIR_OUT : KIR_INOUT;
    t->index = k->buffers;
    t->type = type;
    if (type.scalar == KIR_BOOL)
        type.scalar = KIR_B8;
    k->buffer[k->buffers++] =
        (struct kir_buffer){.name = p->name, .type = type, .mode = mode, .atomic = p->type->atomic};
}

static void add_param(struct kc_checker *c, const struct kc_param *p)
{
    const struct kc_decl *s = kc_struct_of(c, p->type);

    if (s) {
        kc_add_struct_param(c, p, s);
        return;
    }
    uint32_t index = c->out->params;
    kc_add_param_words(c, p, p->name);
    struct kc_thing *t = kc_bad(c) ? NULL : kc_add(c, p->name, KC_IS_PARAM);
    if (t) {
        t->index = index;
        t->type = c->out->param[index].type;
    }
}

static void add_interface(struct kc_checker *c, const struct kc_decl *k)
{
    size_t count = 0;

    for (const struct kc_param *p = k->param; p; p = p->next) {
        const struct kc_decl *s = kc_struct_of(c, p->type);
        count++;
        for (const struct kc_param *f = s ? s->param : NULL; f; f = f->next)
            count++;
    }
    c->out->buffer = arena_array(c->program.arena, struct kir_buffer, count);
    c->out->param = arena_array(c->program.arena, struct kir_param, count);
    if (!c->out->buffer || !c->out->param) {
        c->status = diag_no_memory(c->program.diag, count);
        return;
    }
    for (const struct kc_param *p = k->param; p && !kc_bad(c); p = p->next)
        if (p->mode >= KC_AS_IN)
            add_buffer(c, p);
        else
            add_param(c, p);
}

static void set_group(struct kc_checker *c, const struct kc_decl *k)
{
    uint64_t all = 1;

    for (int i = 0; i < 3; i++) {
        c->out->group[i] = k->group[i] ? (uint32_t)kc_check_size(c, k->group[i], 1, 1024) : 1;
        all *= c->out->group[i];
    }
    if (!kc_bad(c) && c->features->max_group && all > c->features->max_group)
        c->status =
            diag_fail(c->program.diag, RLX_ERROR_LIMIT, "%.*s: groups of %llu; the device takes %u",
                      STR_ARG(k->name), (unsigned long long)all, c->features->max_group);
}

static void check_memory(struct kc_checker *c, const struct kc_decl *k)
{
    if (!kc_bad(c) && c->features->shared_bytes && c->out->shared_bytes > c->features->shared_bytes)
        c->status = diag_fail(c->program.diag, RLX_ERROR_LIMIT,
                              "%.*s: %u bytes of shared memory; the device has %u",
                              STR_ARG(k->name), c->out->shared_bytes, c->features->shared_bytes);
}

/* ---- all of it ---- */

static void note_types(struct kir *k)
{
    for (uint32_t i = 0; i < k->instrs; i++) {
        k->uses_f16 |= k->instr[i].type.scalar == KIR_F16;
        k->uses_f64 |= k->instr[i].type.scalar == KIR_F64;
        k->uses_int64 |= k->instr[i].type.scalar == KIR_I64 || k->instr[i].type.scalar == KIR_U64;
    }
}

rlx_status kc_specialise(const struct kc_sources *sources, rlx_str file, rlx_str kernel,
                         const struct kc_define *given, size_t count,
                         const struct kc_features *features, struct arena *arena, struct kir *out,
                         struct diag *d)
{
    struct kc_checker c = {.program = {.sources = sources, .arena = arena, .diag = d},
                           .features = features,
                           .out = out};
    struct kc_frame frame = {.result_var = KIR_NONE};

    *out = (struct kir){0};
    TRY(kc_parse(&c.program, file));
    const struct kc_decl *k = kc_find_decl(&c, kernel);
    if (!k || k->kind != KC_D_KERNEL)
        return diag_fail(d, RLX_ERROR_NAME, "%.*s has no kernel called %.*s", STR_ARG(file),
                         STR_ARG(kernel));
    TRY(check_defines(&c, k, given, count));
    out->name = k->name;
    c.at = k->at;
    add_features(&c);
    add_file_constants(&c);
    frame.decl = k;
    c.frame = &frame;
    for (const struct kc_generic *g = k->generic; g && !kc_bad(&c); g = g->next)
        define(&c, g, given, count);
    set_group(&c, k);
    add_interface(&c, k);
    if (!kc_bad(&c))
        kc_check_stmts(&c, k->body);
    check_memory(&c, k);
    note_types(out);
    return c.status;
}

rlx_status kc_kernels(const struct kc_sources *sources, rlx_str file, struct arena *arena,
                      rlx_str **names, size_t *count, struct diag *d)
{
    struct kc_program p = {.sources = sources, .arena = arena, .diag = d};

    *count = 0;
    TRY(kc_parse(&p, file));
    for (const struct kc_decl *k = p.file->decl; k; k = k->next)
        *count += k->kind == KC_D_KERNEL;
    *names = arena_array(arena, rlx_str, *count);
    if (!*names)
        return diag_no_memory(d, *count * sizeof **names);
    *count = 0;
    for (const struct kc_decl *k = p.file->decl; k; k = k->next)
        if (k->kind == KC_D_KERNEL)
            (*names)[(*count)++] = k->name;
    return RLX_OK;
}
