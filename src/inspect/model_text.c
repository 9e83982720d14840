/* model_text.c: models as text, as pictures, and as what differs between two of them. */
#include "base/diff.h"
#include "base/str.h"
#include "inspect/inspect.h"
#include "ir/text/text.h"

/* Parts one after the other, each as a graph that could be read again. */
void model_print(const struct rlx_model *m, bool elide, bool types, struct text *t, struct diag *d)
{
    const struct text_print_options o = {.elide = elide, .types = types};

    if (!m->parts)
        ir_print(m->mod, &o, t, d);
    for (size_t i = 0; m->parts && i < m->parts->count; i++) {
        char title[64];
        model_part_title(m->parts, i, title, sizeof title);
        text_add(t, rlx_cstr(title));
        ir_print(m->parts->part[i].model->mod, &o, t, d);
    }
}

void model_draw(const struct rlx_model *m, rlx_picture kind, struct text *out, struct diag *d)
{
    if (kind == RLX_PICTURE_DOT)
        ir_draw_dot(ir_entry(m->mod), out);
    else
        ir_draw_svg(ir_entry(m->mod), out, d);
}

static rlx_status diff(const rlx_model *a, const rlx_model *b, const char *name_a,
                       const char *name_b, struct text *ta, struct text *tb, struct text *out,
                       struct diag *d)
{
    const struct text_print_options o = {.elide = true, .types = true};

    TRY(ir_print(a->mod, &o, ta, d));
    TRY(ir_print(b->mod, &o, tb, d));
    if (ta->failed || tb->failed)
        return diag_no_memory(d, ta->len + tb->len);
    return diff_lines((rlx_str){ta->at, ta->len}, (rlx_str){tb->at, tb->len}, name_a, name_b,
                      &a->ctx->mem, out, d);
}

void model_diff(const struct rlx_model *a, const struct rlx_model *b, const char *name_a,
                const char *name_b, struct text *out, struct diag *d)
{
    struct text ta, tb;

    text_init(&ta, &a->ctx->mem);
    text_init(&tb, &a->ctx->mem);
    diff(a, b, name_a, name_b, &ta, &tb, out, d);
    text_free(&ta);
    text_free(&tb);
}
