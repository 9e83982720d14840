/* gpu_words.c: the words of a launch. Lowering functions give them by the names of the kernel's
 * parameters, in any order; when the launch ends, they are compared with its signature and put
 * where the kernel looks for them. */
#include <string.h>

#include "base/str.h"
#include "lower/gpu/gpu_core.h"

/* ---- giving them ---- */

static void give(struct gpu_call *c, const char *name, enum kir_scalar type, uint32_t value)
{
    struct gpu_given *last = c->givens ? &c->given[c->givens - 1] : NULL;
    uint32_t first = c->work->words - c->now.first_word;

    gpu_add_words(c, &value, 1);
    if (c->status != RLX_OK)
        return;
    if (last && strcmp(last->name, name) == 0 && last->type == type) {
        last->count++;
    } else if (c->givens == GPU_GIVEN) {
        gpu_refuse(c, RLX_ERROR_INTERNAL, "%s: kernel %s is given words of more than %d names",
                   op_info(c->op)->name, c->key, GPU_GIVEN);
    } else {
        c->given[c->givens++] =
            (struct gpu_given){.name = name, .type = (uint8_t)type, .first = first, .count = 1};
    }
}

void gpu_u32(struct gpu_call *c, const char *name, uint64_t value)
{
    if (value > UINT32_MAX)
        gpu_refuse(c, RLX_ERROR_LIMIT, "%s: %llu is more than a kernel can count",
                   op_info(c->op)->name, (unsigned long long)value);
    give(c, name, KIR_U32, (uint32_t)value);
}

void gpu_i32(struct gpu_call *c, const char *name, int64_t value)
{
    if (value > INT32_MAX || value < INT32_MIN)
        gpu_refuse(c, RLX_ERROR_LIMIT, "%s: %lld is more than a kernel can count",
                   op_info(c->op)->name, (long long)value);
    give(c, name, KIR_I32, (uint32_t)(int32_t)value);
}

void gpu_f32(struct gpu_call *c, const char *name, double value)
{
    float f = (float)value;
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    give(c, name, KIR_F32, bits);
}

void gpu_u32s(struct gpu_call *c, const char *name, const uint64_t *value, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        gpu_u32(c, name, value[i]);
}

void gpu_i32s(struct gpu_call *c, const char *name, const int64_t *value, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        gpu_i32(c, name, value[i]);
}

void gpu_dims(struct gpu_call *c, const char *name, const int64_t *dim, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        gpu_u32(c, name, (uint64_t)dim[i]);
}

/* ---- comparing them with the kernel's ---- */

static bool fits(const struct gpu_given *g, const struct gpu_param *p)
{
    return g->type == p->type && g->count == p->count && strcmp(g->name, p->name) == 0;
}

/* Most are given in the kernel's order, so that they lie where they should. */
static bool in_order(const struct gpu_call *c, const struct gpu_kernel *k)
{
    if (c->givens != k->params)
        return false;
    for (uint32_t i = 0; i < c->givens; i++)
        if (!fits(&c->given[i], &k->param[i]))
            return false;
    return true;
}

static const struct gpu_given *given_for(const struct gpu_call *c, const struct gpu_param *p)
{
    for (uint32_t i = 0; i < c->givens; i++)
        if (strcmp(c->given[i].name, p->name) == 0)
            return &c->given[i];
    return NULL;
}

static const struct gpu_param *param_for(const struct gpu_kernel *k, const char *name)
{
    for (uint32_t i = 0; i < k->params; i++)
        if (strcmp(k->param[i].name, name) == 0)
            return &k->param[i];
    return NULL;
}

/* What is wrong with one of them, if anything is. */
static void check(struct gpu_call *c, const struct gpu_kernel *k, const struct gpu_given *g)
{
    const struct gpu_param *p = param_for(k, g->name);
    const char *op = op_info(c->op)->name;

    if (!p)
        gpu_refuse(c, RLX_ERROR_INTERNAL, "%s: kernel %s has no word called \"%s\"", op, k->key,
                   g->name);
    else if (given_for(c, p) != g || (g->count > 1 && p->count == 1))
        gpu_refuse(c, RLX_ERROR_INTERNAL, "%s: kernel %s is given \"%s\" twice", op, k->key,
                   g->name);
    else if (g->type != p->type)
        gpu_refuse(c, RLX_ERROR_INTERNAL, "%s: \"%s\" of kernel %s is %s, and is given as %s", op,
                   g->name, k->key, kir_scalar_name((enum kir_scalar)p->type),
                   kir_scalar_name((enum kir_scalar)g->type));
    else if (g->count != p->count)
        gpu_refuse(c, RLX_ERROR_INTERNAL,
                   "%s: \"%s\" of kernel %s has %u elements, and is given %u", op, g->name, k->key,
                   p->count, g->count);
}

static void put_in_order(struct gpu_call *c, const struct gpu_kernel *k)
{
    uint32_t *word = c->work->word + c->now.first_word, was[GPU_WORDS];

    memcpy(was, word, k->words * sizeof *word);
    for (uint32_t i = 0; i < k->params; i++) {
        const struct gpu_param *p = &k->param[i];
        memcpy(word + p->first, was + given_for(c, p)->first, p->count * sizeof *word);
    }
}

void gpu_check_words(struct gpu_call *c, const struct gpu_kernel *k)
{
    uint32_t words = c->work->words - c->now.first_word;
    const char *op = op_info(c->op)->name;

    if (k->words > GPU_WORDS) {
        gpu_refuse(c, RLX_ERROR_LIMIT, "%s: kernel %s takes %u words, at most %d fit", op, k->key,
                   k->words, GPU_WORDS);
        return;
    }
    if (words && !c->givens) { /* without names: of a custom op */
        if (words != k->words)
            gpu_refuse(c, RLX_ERROR_INTERNAL, "%s: kernel %s takes %u words, and is given %u", op,
                       k->key, k->words, words);
        return;
    }
    if (in_order(c, k))
        return;
    for (uint32_t i = 0; i < c->givens; i++)
        check(c, k, &c->given[i]);
    for (uint32_t i = 0; i < k->params; i++)
        if (!given_for(c, &k->param[i]))
            gpu_refuse(c, RLX_ERROR_INTERNAL, "%s: kernel %s is not given \"%s\"", op, k->key,
                       k->param[i].name);
    if (c->status == RLX_OK)
        put_in_order(c, k);
}
