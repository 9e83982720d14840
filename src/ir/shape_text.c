/* shape_text.c: what messages of shape rules show: dims, types, lists and operand names.
 *
 * Texts live in a ring of eight inside the call, so one message may hold several of them. What does
 * not fit its buffer ends in "...". */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/shape.h"

#define TEXT_SIZE (sizeof((struct shape_call *)0)->text[0])
#define TEXT_COUNT (sizeof((struct shape_call *)0)->text / TEXT_SIZE)

static char *next_text(struct shape_call *c)
{
    return c->text[c->texts++ % TEXT_COUNT];
}

static const char *keep(struct shape_call *c, struct text *t)
{
    char *out = next_text(c);
    const char *from = t->failed || !t->at ? "?" : t->at;
    size_t len = strlen(from);

    if (len < TEXT_SIZE) {
        memcpy(out, from, len + 1);
    } else {
        memcpy(out, from, TEXT_SIZE - 4);
        memcpy(out + TEXT_SIZE - 4, "...", 4);
    }
    text_free(t);
    return out;
}

static void add_dims(struct shape_call *c, struct text *t, const ir_dim *dim, int32_t count)
{
    text_addf(t, "[");
    for (int32_t i = 0; i < count; i++) {
        if (i)
            text_addf(t, ",");
        dim_print(c->mod->dims, dim[i], t);
    }
    text_addf(t, "]");
}

const char *dim_text(struct shape_call *c, ir_dim d)
{
    struct text t;

    text_init(&t, c->mod->mem);
    dim_print(c->mod->dims, d, &t);
    return keep(c, &t);
}

const char *dims_text(struct shape_call *c, const ir_dim *dim, int32_t count)
{
    struct text t;

    text_init(&t, c->mod->mem);
    add_dims(c, &t, dim, count);
    return keep(c, &t);
}

const char *type_text(struct shape_call *c, const struct ir_type *type)
{
    struct text t;

    text_init(&t, c->mod->mem);
    text_addf(&t, "%s", rlx_dtype_name(type->dtype));
    add_dims(c, &t, type->dim, type->rank);
    return keep(c, &t);
}

const char *ints_text(struct shape_call *c, const rlx_list *list)
{
    struct text t;

    text_init(&t, c->mod->mem);
    text_addf(&t, "[");
    for (int32_t i = 0; i < list->count; i++)
        text_addf(&t, i ? ",%" PRId64 : "%" PRId64, list->at[i]);
    text_addf(&t, "]");
    return keep(c, &t);
}

/* ---- operand names ------------------------------------------------------------------------- */

/* The next word of an op's list of names, without brackets; len 0: there is none. */
static rlx_str next_name(const char **at, bool *bracketed)
{
    const char *p = *at;

    while (*p == ' ' || *p == '[' || *p == ']') {
        if (*p != ' ')
            *bracketed = *p == '[';
        p++;
    }
    rlx_str name = {p, strcspn(p, " []")};
    *at = p + name.len;
    return name;
}

/* Names in brackets are there together or not at all; with only some of them, positions from the
 * first bracket on have no certain name. */
const char *shape_operand_name(struct shape_call *c, int32_t operand)
{
    const struct op_info *o = op_info(c->op);
    int32_t total = 0, optional = 0, at = 0;
    bool bracketed = false, certain = true;
    const char *p = o->inputs;
    char *out = next_text(c);
    rlx_str name, last = {NULL, 0};

    while (next_name(&p, &bracketed).len) {
        total++;
        optional += bracketed;
    }
    bool all = optional == 0 || c->in_count == total;
    p = o->inputs;
    bracketed = false;
    while ((name = next_name(&p, &bracketed)).len) {
        last = name;
        if (bracketed && !all) {
            certain = c->in_count == total - optional;
            continue;
        }
        if (at++ != operand)
            continue;
        if (!certain || (o->inputs_max < 0 && at == total))
            break;
        snprintf(out, TEXT_SIZE, "%.*s", STR_ARG(name));
        return out;
    }
    if (o->inputs_max < 0 && last.len && operand >= total - 1)
        snprintf(out, TEXT_SIZE, "%.*s[%d]", STR_ARG(last), operand - (total - 1));
    else
        snprintf(out, TEXT_SIZE, "input %d", operand);
    return out;
}
