/* random_graph.c: see random_graph.h. The makers, one per kind of step, are in random_ops.c and
 * random_patterns.c. */
#include "random_graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text/text.h"
#include "random_maker.h"

uint32_t maker_pick(struct maker *k, uint32_t n)
{
    return rng_philox_next(&k->rng) % n;
}

bool maker_chance(struct maker *k, uint32_t one_in)
{
    return maker_pick(k, one_in) == 0;
}

const struct ir_type *maker_type(const struct maker *k, ir_value v)
{
    return ir_type_of(k->g, v);
}

bool maker_is_float(const struct maker *k, ir_value v)
{
    return dtype_is(maker_type(k, v)->dtype, CLASS_F);
}

double maker_count(const struct maker *k, ir_dim d)
{
    enum { MOST_SYMBOLS = 64 };
    int64_t size[MOST_SYMBOLS];
    const char *why;

    for (int i = 0; i < MOST_SYMBOLS; i++)
        size[i] = RANDOM_SYMBOL_SIZE;
    return (double)dim_eval(k->m->dims, d, size, MOST_SYMBOLS, &why);
}

double maker_size(const struct random_value *v)
{
    return fmax(fabs(v->lo), fabs(v->hi));
}

/* What one rounding may do, with some room for kernels that are not correctly rounded. */
double maker_rounding(rlx_dtype t, double size)
{
    double unit = t == RLX_DTYPE_f16    ? 0x1p-11
                  : t == RLX_DTYPE_bf16 ? 0x1p-8
                  : t == RLX_DTYPE_f64  ? 0x1p-53
                                        : 0x1p-24;
    return 8 * unit * size + (t == RLX_DTYPE_f16 ? 0x1p-23 : 0);
}

/* ---- nodes ---- */

/* Ops that may return either zero (ops-core.md 1.6; the sign of -0 is open), and all after. */
static bool gives_either_zero(const struct maker *k, rlx_op op, const ir_value *in, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (k->either_zero[in[i]])
            return true;
    switch (op) {
    case RLX_OP_max:
    case RLX_OP_min:
    case RLX_OP_relu:
    case RLX_OP_clamp:
    case RLX_OP_reduce_max:
    case RLX_OP_reduce_min:
    case RLX_OP_pool:
    case RLX_OP_sign: return true;
    default: return false;
    }
}

ir_value maker_add(struct maker *k, rlx_op op, const ir_value *in, int32_t count,
                   const union ir_attr *attr, struct random_value value)
{
    struct ir_new_node n = {.op = op, .in = in, .in_count = count};
    struct diag d;
    ir_value v;
    double elements = 1;

    if (attr)
        n.attr = *attr;
    else
        attr_defaults(op, &n.attr);
    diag_init(&d, "random");
    if (k->g->node.len >= RANDOM_MOST_NODES || maker_size(&value) > 1000 || value.err > 0.05)
        return RLX_NO_VALUE;
    size_t before = k->g->node.len, checks = k->m->check.len;
    rlx_status s = ir_add(k->g, &n, &v, &d);
    if (s != RLX_OK) {
        k->no_memory |= s == RLX_ERROR_MEMORY;
        return RLX_NO_VALUE;
    }
    const struct ir_type *t = maker_type(k, v);
    for (int32_t i = 0; i < t->rank; i++)
        elements *= maker_count(k, t->dim[i]);
    /* A promotion would add casts of which we know nothing; a check, sizes that s need not have. */
    if (elements > 2000 || k->g->node.len != before + 1 || k->m->check.len != checks) {
        k->g->node.len = before;
        k->m->check.len = checks;
        return RLX_NO_VALUE;
    }
    k->info[v] = value;
    k->either_zero[v] = gives_either_zero(k, op, in, count);
    return v;
}

rlx_list maker_shape(struct maker *k, int32_t most_rank)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7};
    rlx_list shape = {.count = (int32_t)maker_pick(k, (uint32_t)most_rank + 1)};

    for (int32_t i = 0; i < shape.count; i++)
        shape.at[i] = sizes[maker_pick(k, 6)];
    return shape;
}

ir_value maker_leaf(struct maker *k, rlx_op op, rlx_dtype dtype, rlx_list shape)
{
    struct random_value value = {-1, 1, 0};
    union ir_attr attr;
    char name[24];

    attr_defaults(op, &attr);
    snprintf(name, sizeof name, "%c%zu", op == RLX_OP_param ? 'w' : 'x', k->g->node.len);
    attr.leaf.name = (struct ir_blob){name, strlen(name)};
    attr.leaf.dtype = dtype;
    attr.leaf.shape = shape;
    if (!dtype_is(dtype, CLASS_F))
        value = (struct random_value){0, dtype == RLX_DTYPE_bool ? 1 : 2, 0};
    return maker_add(k, op, NULL, 0, &attr, value);
}

/* Elements are lo .. hi, in steps that every float type holds exactly. */
ir_value maker_const(struct maker *k, rlx_dtype dtype, rlx_list shape, double lo, double hi)
{
    enum { MOST = 2048, STEPS = 32 };
    uint8_t data[MOST * 8];
    size_t count = 1, size = rlx_dtype_size(dtype);
    union ir_attr attr;

    for (int32_t i = 0; i < shape.count; i++)
        count *= (size_t)shape.at[i];
    if (count > MOST)
        return RLX_NO_VALUE;
    for (size_t i = 0; i < count; i++) {
        double v = lo + (hi - lo) * maker_pick(k, STEPS + 1) / STEPS;
        uint8_t *to = data + i * size;
        switch (dtype) {
        case RLX_DTYPE_f64: memcpy(to, &v, 8); break;
        case RLX_DTYPE_f16: memcpy(to, &(uint16_t){f64_to_f16(v)}, 2); break;
        case RLX_DTYPE_bf16: memcpy(to, &(uint16_t){f64_to_bf16(v)}, 2); break;
        case RLX_DTYPE_i32: memcpy(to, &(int32_t){(int32_t)floor(v)}, 4); break;
        case RLX_DTYPE_bool: *to = v > 0; break;
        default: memcpy(to, &(float){(float)v}, 4); break;
        }
    }
    attr_defaults(RLX_OP_const, &attr);
    attr.const_.dtype = dtype;
    attr.const_.shape = shape;
    attr.const_.data = (struct ir_blob){data, count * size};
    return maker_add(k, RLX_OP_const, NULL, 0, &attr, (struct random_value){lo, hi, 0});
}

/* A value that fits, rather a late one; RLX_NO_VALUE: there is none. */
ir_value maker_choose(struct maker *k, maker_fits fits, ir_value beside)
{
    ir_value found[RANDOM_MOST_NODES];
    uint32_t count = 0;

    for (size_t i = 0; i < k->g->node.len; i++)
        if (fits(k, (ir_value)i, beside))
            found[count++] = (ir_value)i;
    if (count == 0)
        return RLX_NO_VALUE;
    uint32_t a = maker_pick(k, count), b = maker_pick(k, count);
    return found[a > b ? a : b];
}

/* ---- whole graphs ---- */

static void add_leaves(struct maker *k)
{
    static const rlx_dtype types[] = {RLX_DTYPE_f32, RLX_DTYPE_f32,  RLX_DTYPE_f32, RLX_DTYPE_f32,
                                      RLX_DTYPE_f16, RLX_DTYPE_bf16, RLX_DTYPE_i32, RLX_DTYPE_bool};
    uint32_t count = 2 + maker_pick(k, 4);

    for (uint32_t i = 0; i < count; i++) {
        rlx_list shape = maker_shape(k, 4);
        if (k->symbolic && shape.count && maker_chance(k, 2))
            shape.at[maker_pick(k, (uint32_t)shape.count)] = dim_symbol(k->m->dims, rlx_cstr("s"));
        maker_leaf(k, RLX_OP_input, i ? types[maker_pick(k, 8)] : RLX_DTYPE_f32, shape);
    }
    for (uint32_t i = maker_pick(k, 3); i > 0; i--)
        maker_leaf(k, RLX_OP_param, RLX_DTYPE_f32, maker_shape(k, 3));
}

static void add_outputs(struct maker *k, struct random_graph *out)
{
    size_t nodes = k->g->node.len;
    struct diag d;

    diag_init(&d, "random");
    out->outputs = 1 + maker_pick(k, RANDOM_MOST_OUTPUTS);
    for (size_t i = 0; i < out->outputs; i++) {
        size_t back = i == 0 ? 0 : maker_pick(k, (uint32_t)(nodes < 12 ? nodes : 12));
        ir_value v = (ir_value)(nodes - 1 - back);
        k->no_memory |= ir_add_output(k->g, v, &d) != RLX_OK;
        out->out[i] = k->info[v];
        out->either_zero[i] = k->either_zero[v];
    }
}

static bool write_text(const struct maker *k, struct random_graph *out)
{
    struct text text;
    struct diag d;

    diag_init(&d, "random");
    text_init(&text, mem_default());
    if (ir_verify(k->m, &d) == RLX_OK && ir_print(k->m, NULL, &text, &d) == RLX_OK && !text.failed)
        out->text = strdup(text.at);
    else
        fprintf(stderr, "%s\n", d.first.message);
    text_free(&text);
    return out->text != NULL;
}

bool random_graph_make(uint64_t seed, struct random_graph *out)
{
    struct maker k = {0};
    struct diag d;

    *out = (struct random_graph){0};
    diag_init(&d, "random");
    rng_philox_init(&k.rng, seed);
    if (ir_module_create(mem_default(), &k.m, &d) != RLX_OK)
        return false;
    bool ok = ir_graph_add(k.m, rlx_cstr("random"), &k.g, &d) == RLX_OK;
    if (ok) {
        size_t wanted = 4 + maker_pick(&k, RANDOM_MOST_NODES - 4);
        k.symbolic = maker_chance(&k, 4);
        add_leaves(&k);
        for (int tries = 0; tries < 300 && k.g->node.len < wanted; tries++)
            maker_step(&k);
        add_outputs(&k, out);
        ok = !k.no_memory && write_text(&k, out);
        out->symbol = ok && strstr(out->text, "dim s") ? "s" : NULL;
    }
    ir_module_destroy(k.m);
    return ok;
}

void random_graph_free(struct random_graph *g)
{
    free(g->text);
    *g = (struct random_graph){0};
}
