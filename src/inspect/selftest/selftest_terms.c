/* selftest_terms.c: how many terms are added up for an element of a result: the TERMS rows of
 * ops.def. */
#include "inspect/selftest/selftest.h"

struct adding {
    const struct ir_node *n;
    const struct ir_type *a; /* of its first operand */
    const struct ir_graph *g;
};

static int64_t product_of(const rlx_list *l)
{
    int64_t k = 1;

    for (int32_t i = 0; i < l->count; i++)
        k *= l->at[i];
    return k;
}

static int64_t count_of(const struct ir_type *t)
{
    int64_t count = 1;

    type_count(t, &count);
    return count;
}

static int64_t terms_all(const struct adding *s)
{
    return count_of(s->a);
}

static int64_t terms_reduced(const struct adding *s)
{
    int64_t out = count_of(&s->n->type);

    return out ? count_of(s->a) / out : 1;
}

static int64_t terms_inner(const struct adding *s)
{
    bool turned = attr_integer(s->n->op, &s->n->attr, "transpose_a", false);

    return s->a->dim[s->a->rank - (turned ? 2 : 1)];
}

static int64_t terms_rows(const struct adding *s)
{
    return s->a->dim[0];
}

static int64_t terms_contracted(const struct adding *s)
{
    const rlx_list *axes = &s->n->attr.dot_general.lhs_contracting;
    int64_t k = 1;

    for (int32_t i = 0; i < axes->count; i++)
        k *= s->a->dim[axes->at[i]];
    return k;
}

/* Those of one channel of the result. */
static int64_t terms_weights(const struct adding *s)
{
    const struct ir_type *w = ir_type_of(s->g, s->n->in[1]);
    int64_t k = 1;

    for (int32_t i = 1; i < w->rank; i++)
        k *= w->dim[i];
    return k;
}

static int64_t terms_axis(const struct adding *s)
{
    return s->a->dim[attr_integer(s->n->op, &s->n->attr, "axis", 0)];
}

static int64_t terms_window(const struct adding *s)
{
    return product_of(&s->n->attr.pool.kernel_size);
}

static int64_t terms_pair(const struct adding *s)
{
    (void)s;
    return 2;
}

static int64_t (*const terms_of[FAMILY_count])(const struct adding *s) = {
#define TERMS(family, count) [FAMILY_##family] = terms_##count,
#include "ir/ops.def"
};

double selftest_terms(const struct ir_graph *g, const struct ir_node *n)
{
    struct adding s = {n, n->in_count ? ir_type_of(g, n->in[0]) : &n->type, g};
    enum op_family family = op_info(n->op)->family;
    int64_t k = terms_of[family] ? terms_of[family](&s) : terms_all(&s);

    return (double)(k < 1 ? 1 : k);
}
