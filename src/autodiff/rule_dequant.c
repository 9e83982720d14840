/* rule_dequant.c: products with packed weights (ops-special.md 1.6). Only x has a gradient, G W^T,
 * and W is unpacked for it: block formats by the op there is for that, the others by looking their
 * codes up in a table and scaling them. */
#include "autodiff/rule.h"
#include "ir/quant/quant_decode.h"
#include "ir/quant/quant_scheme.h"

#define MUL(a, b) formula_2(f, RLX_OP_mul, (a), (b))
#define SHAPE(...)                                                             \
    rlx_list_of((int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                (const int64_t[]){__VA_ARGS__})

/* ---- block formats ---- */

/* w [e,n,row] -> [e,k,n] */
static ir_value unpack_blocks(struct formula *f, ir_value w, int32_t scheme, int64_t k)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_dequant_moe_weights, &attr);
    attr.dequant_moe_weights.scheme = scheme;
    attr.dequant_moe_weights.k = k;
    return formula_node(f, RLX_OP_dequant_moe_weights, &w, 1, &attr);
}

/* ---- codes with scales beside them ---- */

static float int8_value(uint8_t code)
{
    return code < 128 ? code : code - 256;
}

static float int4_value(uint8_t code)
{
    return code < 8 ? code : code - 16;
}

static float (*value_of(int32_t scheme))(uint8_t)
{
    switch (scheme) {
    case RLX_QUANT_SCHEME_int4_block: return int4_value;
    case RLX_QUANT_SCHEME_fp8_e4m3: return quant_e4m3;
    case RLX_QUANT_SCHEME_fp8_e5m2: return quant_e5m2;
    case RLX_QUANT_SCHEME_nvfp4_block: return quant_e2m1;
    default: return int8_value;
    }
}

/* The value of every code, in f32. */
static ir_value look_up(struct formula *f, ir_value code, float (*value)(uint8_t), int32_t codes)
{
    struct ir_new_node n = {.op = RLX_OP_const, .borrow_data = true};
    float *table = arena_array(&f->g->mod->arena, float, (size_t)codes);
    ir_value in[2] = {RLX_NO_VALUE, formula_cast(f, code, RLX_DTYPE_i32)};

    if (f->status != RLX_OK)
        return RLX_NO_VALUE;
    if (!table) {
        f->status = diag_no_memory(f->diag, (size_t)codes * sizeof *table);
        return RLX_NO_VALUE;
    }
    for (int32_t i = 0; i < codes; i++)
        table[i] = value((uint8_t)i);
    attr_defaults(RLX_OP_const, &n.attr);
    n.attr.const_.dtype = RLX_DTYPE_f32;
    n.attr.const_.shape = SHAPE(codes);
    n.attr.const_.data = (struct ir_blob){table, (size_t)codes * sizeof *table};
    f->status = ir_add(f->g, &n, &in[0], f->diag);
    return formula_node(f, RLX_OP_gather, in, 2, NULL);
}

/* Two codes per byte, the low half first; k n of them in all. */
static ir_value split_nibbles(struct formula *f, ir_value w, int64_t k, int64_t n)
{
    struct formula bytes = *f;
    ir_dim count = k * n / 2 + k * n % 2;

    bytes.dtype = RLX_DTYPE_u8;
    ir_value half[2] = {
        formula_2(&bytes, RLX_OP_bit_and, w, formula_number(&bytes, 15)),
        formula_2(&bytes, RLX_OP_shr, w, formula_number(&bytes, 4)),
    };
    for (int i = 0; i < 2; i++)
        half[i] = formula_reshape(&bytes, half[i], SHAPE(count, 1));
    f->status = bytes.status;
    ir_value all = formula_reshape(f, formula_concat(f, half, 2, 1), SHAPE(2 * count));
    return formula_reshape(f, formula_narrow(f, all, 0, 0, k * n), SHAPE(k, n));
}

/* A row per group, [ceil(k/each), n], as one per element, [k, n]. */
static ir_value spread(struct formula *f, ir_value side, int64_t each, int64_t k, ir_dim n)
{
    int64_t groups = k / each + (k % each != 0);

    if (groups <= 1) /* one row is broadcast */
        return side;
    side = formula_expand(f, formula_reshape(f, side, SHAPE(groups, 1, n)), SHAPE(groups, each, n));
    return formula_narrow(f, formula_reshape(f, side, SHAPE(groups * each, n)), 0, 0, k);
}

static bool is_empty(const struct ir_type *t)
{
    for (int32_t i = 0; i < t->rank; i++)
        if (t->dim[i] == 0)
            return true;
    return false;
}

/* W [k,n] */
static ir_value unpack_codes(struct vjp *v)
{
    struct formula *f = &v->f;
    const struct attr_dequant_matmul *a = &v->n->attr.dequant_matmul;
    const struct quant_scheme *s = quant_scheme(a->scheme);
    int64_t k = a->k, each = s->group ? s->group : a->block_size;
    ir_dim n = v->n->type.dim[v->n->type.rank - 1];
    ir_value code = s->nibbles ? split_nibbles(f, v->n->in[1], k, n) : v->n->in[1];
    ir_value w = look_up(f, code, value_of(a->scheme), s->nibbles ? 16 : 256);
    ir_value scale = v->n->in[2];

    if (!s->has_scale) /* FP8: one for all, one per column, or none */
        return is_empty(vjp_type(v, 2)) ? w : MUL(w, scale);
    if (s->has_zero_point)
        w = formula_2(f, RLX_OP_sub, w, spread(f, v->n->in[3], each, k, n));
    if (s->scale_is_fp8)
        scale = MUL(look_up(f, scale, quant_e4m3, 256), v->n->in[3]);
    return MUL(w, spread(f, scale, each, k, n));
}

/* ---- the rules ---- */

rlx_status vjp_dequant_matmul_check(const struct ir_graph *g, const struct ir_node *n,
                                    const bool *wanted, struct diag *d)
{
    (void)g;
    for (int32_t i = 1; i < n->in_count; i++)
        if (wanted[i])
            return diag_fail(d, RLX_ERROR_NO_RULE,
                             "dequant_matmul has a gradient for x alone, not for operand %d", i);
    return RLX_OK;
}

void vjp_dequant_matmul(struct vjp *v)
{
    struct formula *f = &v->f;
    const struct attr_dequant_matmul *a = &v->n->attr.dequant_matmul;
    const struct ir_type t = *vjp_type(v, 0);
    ir_dim n = v->n->type.dim[t.rank - 1];
    ir_value dy = v->dy, w;

    if (quant_scheme(a->scheme)->is_gguf) {
        const struct ir_type packed = *vjp_type(v, 1);
        w = formula_reshape(f, v->n->in[1], SHAPE(1, packed.dim[0], packed.dim[1]));
        w = formula_reshape(f, unpack_blocks(f, w, a->scheme, a->k), SHAPE(a->k, n));
    } else {
        w = unpack_codes(v);
    }
    if (t.rank == 1) /* one row */
        dy = formula_reshape(f, dy, SHAPE(1, n));
    vjp_add(v, 0, formula_reshape(f, formula_matmul(f, dy, w, false, true), formula_shape(&t)));
}

/* Row by row with its expert. */
void vjp_dequant_grouped_matmul(struct vjp *v)
{
    struct formula *f = &v->f;
    const struct attr_dequant_grouped_matmul *a = &v->n->attr.dequant_grouped_matmul;

    if (!vjp_wanted(v, 0))
        return;
    ir_value w = formula_swap(f, unpack_blocks(f, v->n->in[1], a->scheme, a->k));
    vjp_add(
        v, 0,
        formula_node(f, RLX_OP_grouped_matmul, (const ir_value[]){v->dy, w, v->n->in[2]}, 3, NULL));
}
