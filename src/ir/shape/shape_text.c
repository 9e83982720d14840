/* shape_text.c: what messages of shape rules show: dims, types, lists and operand names.
 *
 * Texts live in a ring of eight inside the call, so one message may hold several of them. What does
 * not fit its buffer ends in "...". */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/shape/shape.h"

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

const char *shape_operand_name(struct shape_call *c, int32_t operand)
{
    const struct op_info *o = op_info(c->op);
    rlx_str name = op_input_name(c->op, operand, c->in_count);
    int32_t listed = op_input_names(c->op);
    char *out = next_text(c);

    if (!name.len)
        snprintf(out, TEXT_SIZE, "input %d", operand);
    else if (o->inputs_max < 0 && operand >= listed - 1)
        snprintf(out, TEXT_SIZE, "%.*s[%d]", STR_ARG(name), operand - (listed - 1));
    else
        snprintf(out, TEXT_SIZE, "%.*s", STR_ARG(name));
    return out;
}
