/* onnx_microsoft_fused.c: ops of com.microsoft that an optimiser made of several, and a few that it
 * needs besides. */
#include "base/str.h"
#include "import/onnx/handlers/onnx_window.h"

/* ---- an activation after the op ---- */

/* alpha and beta: what the activation takes, if any; `given` of them are there. */
static ir_value activated(struct onnx_call *c, ir_value y, double alpha, double beta, size_t given)
{
    static const struct {
        const char *name;
        rlx_op op;
    } plain[] = {{"Relu", RLX_OP_relu},         {"Tanh", RLX_OP_tanh},
                 {"Sigmoid", RLX_OP_sigmoid},   {"Softplus", RLX_OP_softplus},
                 {"Softsign", RLX_OP_softsign}, {"HardSwish", RLX_OP_hard_swish}};
    struct formula *f = &c->f;
    rlx_str name = onnx_text(c, "activation", "");

    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (str_eq(name, rlx_cstr(plain[i].name)))
            return formula_1(f, plain[i].op, y);
    if (str_eq(name, STR("LeakyRelu"))) {
        ir_value below = formula_2(f, RLX_OP_lt, y, formula_number(f, 0));
        return formula_where(f, below, onnx_times(f, y, given > 0 ? alpha : 0.01), y);
    }
    if (str_eq(name, STR("HardSigmoid"))) {
        ir_value line = onnx_times(f, y, given > 0 ? alpha : 0.2);
        return onnx_clamp_of(f, onnx_plus(f, line, given > 1 ? beta : 0.5), 0, 1);
    }
    if (str_eq(name, STR("Clip")) && given > 1)
        return onnx_clamp_of(f, y, alpha, beta);
    if (name.len)
        onnx_unsupported(c, "activation %.*s", STR_ARG(name));
    return y;
}

/* x, weights, bias, and what is added before the activation */
void onnx_ms_fused_conv(struct onnx_call *c)
{
    struct formula *f = &c->f;
    size_t given;
    const double *at = onnx_numbers(c, "activation_params", &given);
    ir_value y = onnx_convolve(c, onnx_in(c, 0), onnx_in(c, 1));

    if (onnx_has(c, 2))
        y = formula_2(f, RLX_OP_add, y, onnx_per_channel(f, onnx_in(c, 2), onnx_type(c, 0)->rank));
    if (onnx_has(c, 3))
        y = formula_2(f, RLX_OP_add, y, onnx_in(c, 3));
    f->dtype = onnx_type(c, 0)->dtype;
    onnx_give(c, 0, activated(c, y, given > 0 ? at[0] : 0, given > 1 ? at[1] : 0, given));
}

void onnx_ms_fused_gemm(struct onnx_call *c)
{
    size_t given = onnx_attr(c, "activation_beta") ? 2 : onnx_attr(c, "activation_alpha") ? 1 : 0;
    ir_value y = onnx_gemm_of(c);

    c->f.dtype = onnx_type(c, 0)->dtype;
    onnx_give(c, 0,
              activated(c, y, onnx_float(c, "activation_alpha", 0),
                        onnx_float(c, "activation_beta", 0), given));
}

/* ---- channels last ---- */

void onnx_ms_nhwc_max_pool(struct onnx_call *c)
{
    struct formula *f = &c->f;
    int32_t rank = onnx_type(c, 0)->rank;
    rlx_list in = {.count = rank}, out = {.count = rank};

    if (rank < 3) {
        formula_fail(f, RLX_ERROR_SHAPE, "a picture of rank %d", rank);
        return;
    }
    for (int32_t i = 0; i < rank; i++) {
        in.at[i] = i == 0 ? 0 : i == 1 ? rank - 1 : i - 1;
        out.at[i] = i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
    }
    ir_value y = onnx_largest(c, formula_transpose(f, onnx_in(c, 0), in));
    onnx_give(c, 0, formula_transpose(f, y, out));
}

/* ---- matrices ---- */

void onnx_ms_inverse(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, 0);

    f->dtype = formula_dtype(t.dtype);
    if (t.rank < 2 || t.dim[t.rank - 1] != t.dim[t.rank - 2]) {
        formula_fail(f, RLX_ERROR_SHAPE, "matrices that are not square");
        return;
    }
    ir_dim n = t.dim[t.rank - 1], all = onnx_product(c, &t, 0, t.rank - 2);
    ir_value i = onnx_iota(c, n, RLX_DTYPE_i32);
    ir_value one = formula_2(f, RLX_OP_eq, formula_reshape(f, i, RLX_LIST(n, 1)), i);
    one = formula_reshape(f, formula_cast(f, one, f->dtype), RLX_LIST(1, n, n));
    ir_value in[] = {
        formula_reshape(f, formula_cast(f, onnx_in(c, 0), f->dtype), RLX_LIST(all, n, n)),
        formula_expand(f, one, RLX_LIST(all, n, n))};
    ir_value y = formula_node(f, RLX_OP_batched_dense_solve, in, 2, NULL);
    onnx_give(c, 0, formula_cast(f, formula_reshape(f, y, formula_shape(&t)), t.dtype));
}

/* ---- embeddings ---- */

enum embed_input {
    WORDS,
    SEGMENTS,
    WORD_TABLE,
    PLACE_TABLE,
    SEGMENT_TABLE,
    GAMMA,
    BETA,
    MASK,
    PLACES
};

/* How many words an item has: where its mask is 0 first. [B], i32 */
static ir_value word_count(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, MASK);
    rlx_dtype i32 = RLX_DTYPE_i32;

    if (t.rank != 2) {
        formula_fail(f, RLX_ERROR_SHAPE, "a mask of rank %d", t.rank);
        return RLX_NO_VALUE;
    }
    ir_value shown = formula_2(f, RLX_OP_ne, onnx_in(c, MASK), formula_number_of(f, t.dtype, 0));
    ir_value at =
        formula_where(f, shown, onnx_dim_value(f, t.dim[1], i32), onnx_iota(c, t.dim[1], i32));
    return formula_reduce(f, RLX_OP_reduce_min, at, RLX_LIST(1), false);
}

/* Rows of words, of their places and of the segments they are in, added up and normalised. */
void onnx_ms_embed_layer_norm(struct onnx_call *c)
{
    struct formula *f = &c->f;
    const struct ir_type t = *onnx_type(c, WORDS), rows = *onnx_type(c, PLACE_TABLE);
    union ir_attr attr;
    ir_value place;

    if (t.rank != 2 || rows.rank != 2) {
        formula_fail(f, RLX_ERROR_SHAPE, "words of rank %d, places of rank %d", t.rank, rows.rank);
        return;
    }
    if (onnx_has(c, PLACES))
        place = formula_2(f, RLX_OP_gather, onnx_in(c, PLACE_TABLE), onnx_in(c, PLACES));
    else
        place = formula_narrow(f, onnx_in(c, PLACE_TABLE), 0, 0, t.dim[1]);
    ir_value sum =
        formula_2(f, RLX_OP_add,
                  formula_2(f, RLX_OP_gather, onnx_in(c, WORD_TABLE), onnx_in(c, WORDS)), place);
    if (onnx_has(c, SEGMENTS) && onnx_has(c, SEGMENT_TABLE))
        sum =
            formula_2(f, RLX_OP_add, sum,
                      formula_2(f, RLX_OP_gather, onnx_in(c, SEGMENT_TABLE), onnx_in(c, SEGMENTS)));
    ir_value in[] = {sum, onnx_in(c, GAMMA), onnx_in(c, BETA)};
    attr_defaults(RLX_OP_layer_norm, &attr);
    attr.layer_norm.eps = (float)onnx_float(c, "epsilon", 1e-12);
    onnx_give(c, 0, formula_node(f, RLX_OP_layer_norm, in, 3, &attr));
    struct ir_type none = {.dtype = RLX_DTYPE_i32, .rank = 1, .dim = {t.dim[0]}};
    if (c->out_count > 1)
        onnx_give(c, 1, onnx_has(c, MASK) ? word_count(c) : formula_fill(f, &none, 0));
    onnx_give(c, 2, sum);
}
