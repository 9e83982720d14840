/* check_struct.c: words of the parameter block, and structs, by which a kernel names several at
 * once. After this stage there are words only: the field size of a parameter r is one called
 * "r.size". */
#include <string.h>

#include "kernel/check.h"

#define MAX_PARAM_WORDS 1024

static const struct kc_decl *struct_called(const struct kc_checker *c, rlx_str name)
{
    for (const struct kc_file *f = c->program.file; f; f = f->next)
        for (const struct kc_decl *d = f->decl; d; d = d->next)
            if (d->kind == KC_D_STRUCT && str_eq(d->name, name))
                return d;
    return NULL;
}

const struct kc_decl *kc_struct_of(const struct kc_checker *c, const struct kc_type_tree *t)
{
    const struct kc_thing *thing = t->array ? NULL : kc_find(c, t->name);

    if (t->array || t->args || (thing && thing->kind == KC_IS_TYPE))
        return NULL;
    return struct_called(c, t->name);
}

/* ---- parameters of a kernel ---- */

void kc_add_param_words(struct kc_checker *c, const struct kc_param *p, rlx_str name)
{
    struct kir *k = c->out;
    struct kir_type type = kc_resolve_type(c, p->type);
    uint32_t words = type.count ? type.count : 1;

    if (!kc_bad(c) && (p->mode != KC_BY_VALUE || type.lanes > 1 || p->type->open ||
                       type.scalar < KIR_I32 || type.scalar > KIR_F32))
        kc_error(c, p->at, "a parameter is a u32, i32 or f32, an array of them, or a struct");
    if (!kc_bad(c) && k->param_words + words > MAX_PARAM_WORDS)
        kc_error(c, p->at, "the parameters come to more than %d words", MAX_PARAM_WORDS);
    if (kc_bad(c))
        return;
    k->param[k->params++] = (struct kir_param){.name = name, .type = type, .word = k->param_words};
    k->param_words += words;
}

void kc_add_struct_param(struct kc_checker *c, const struct kc_param *p, const struct kc_decl *s)
{
    uint32_t first = c->out->params;

    if (p->mode != KC_BY_VALUE)
        kc_error(c, p->at, "%.*s is a struct: it is a parameter without a mode", STR_ARG(s->name));
    for (const struct kc_param *f = s->param; f && !kc_bad(c); f = f->next) {
        const char *name =
            arena_printf(c->program.arena, "%.*s.%.*s", STR_ARG(p->name), STR_ARG(f->name));
        if (!name)
            c->status = diag_no_memory(c->program.diag, p->name.len + f->name.len);
        else if (kc_struct_of(c, f->type))
            kc_error(c, f->at, "a field is a u32, i32 or f32, or an array of them, not a struct");
        else
            kc_add_param_words(c, f, rlx_cstr(name));
    }
    struct kc_thing *t = kc_bad(c) ? NULL : kc_add(c, p->name, KC_IS_STRUCT);
    if (t) {
        t->index = first;
        t->decl = s;
    }
}

/* ---- r.size ---- */

const struct kc_thing *kc_named(struct kc_checker *c, const struct kc_tree *t,
                                struct kc_thing *room)
{
    if (t->kind == KC_T_NAME)
        return kc_find(c, t->name);
    if (t->kind != KC_T_MEMBER || t->a->kind != KC_T_NAME)
        return NULL;
    const struct kc_thing *whole = kc_find(c, t->a->name);
    if (!whole || whole->kind != KC_IS_STRUCT)
        return NULL;
    uint32_t index = whole->index;
    const struct kc_param *f = whole->decl->param;
    while (f && !str_eq(f->name, t->name)) {
        f = f->next;
        index++;
    }
    if (!f) {
        kc_error(c, t->at, "%.*s has no field called %.*s", STR_ARG(whole->decl->name),
                 STR_ARG(t->name));
        return NULL;
    }
    *room = (struct kc_thing){
        .name = f->name, .kind = KC_IS_PARAM, .type = c->out->param[index].type, .index = index};
    return room;
}
