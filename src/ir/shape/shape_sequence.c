/* shape_sequence.c: shape rules of scans, recurrent layers and spectra (ops-core.md 21,
 * ops-special.md 3 and 5). */
#include <inttypes.h>

#include "ir/shape/shape_need.h"

/* What the kernels of these scans keep in registers. */
#define SELECTIVE_SCAN_STATES 256
#define DELTA_NET_STATES 128
#define CAUSAL_CONV_TAPS 64

static rlx_status need_state_size(struct shape_call *c, int64_t n, int64_t cap)
{
    TRY(shape_need_range(c, "state_size", n, 1, INT64_MAX));
    if (n > cap)
        return SHAPE_FAIL(c, UNSUPPORTED, "%s: state_size %" PRId64 " is above %" PRId64, c->name,
                          n, cap);
    return RLX_OK;
}

static rlx_status need_all_f32(struct shape_call *c)
{
    for (int32_t i = 0; i < c->in_count; i++)
        TRY(shape_need_dtype(c, i, RLX_DTYPE_f32));
    return RLX_OK;
}

/* As many operands, and with carry a state after them. */
static rlx_status need_inputs(struct shape_call *c, int32_t count, bool carry)
{
    if (carry)
        return shape_need_inputs(c, count + 1, "carry_state");
    return shape_need_inputs(c, count, "carry_state off");
}

static rlx_status need_state(struct shape_call *c, int32_t operand, const ir_dim *dim, int32_t rank)
{
    TRY(shape_need_state(c, operand));
    return shape_need_dims(c, operand, dim, rank);
}

/* x and delta [b,s,h], a [h,n], b and c [b,s,n]. */
static rlx_status need_selective_scan(struct shape_call *c, int64_t n)
{
    const struct ir_type *x = c->in[0];

    TRY(need_all_f32(c));
    TRY(need_state_size(c, n, SELECTIVE_SCAN_STATES));
    TRY(shape_need_rank(c, 0, 3, 3));
    const ir_dim a[] = {x->dim[2], n}, bc[] = {x->dim[0], x->dim[1], n};
    TRY(shape_need_dims(c, 1, x->dim, 3));
    TRY(shape_need_dims(c, 2, a, 2));
    TRY(shape_need_dims(c, 3, bc, 3));
    return shape_need_dims(c, 4, bc, 3);
}

/* With carry there is the state [b,h,n]. */
rlx_status shape_selective_scan(struct shape_call *c)
{
    const struct attr_selective_scan *attr = &c->attr->selective_scan;
    const struct ir_type *x = c->in[0];

    TRY(need_inputs(c, 5, attr->carry_state));
    TRY(need_selective_scan(c, attr->state_size));
    if (attr->carry_state)
        TRY(need_state(c, 5, (const ir_dim[]){x->dim[0], x->dim[2], attr->state_size}, 3));
    return shape_result_like(c, 0);
}

rlx_status shape_selective_scan_backward(struct shape_call *c)
{
    TRY(need_selective_scan(c, c->attr->selective_scan_backward.state_size));
    TRY(shape_need_same_type(c, 5, 0));
    return shape_packed_gradients(c, 5);
}

/* q, k, v [b,s,h,n], decay and beta [b,s,h]; whatever else there is has their type. */
static rlx_status need_delta_net(struct shape_call *c, int64_t n)
{
    const struct ir_type *q = c->in[0];

    TRY(shape_need_floats(c, c->in_count));
    if (q->dtype == RLX_DTYPE_f64)
        return SHAPE_FAIL(c, DTYPE, "%s: q must be f32, f16 or bf16, not f64", c->name);
    TRY(need_state_size(c, n, DELTA_NET_STATES));
    TRY(shape_need_rank(c, 0, 4, 4));
    const ir_dim qkv[] = {q->dim[0], q->dim[1], q->dim[2], n};
    for (int32_t i = 0; i < 3; i++)
        TRY(shape_need_dims(c, i, qkv, 4));
    TRY(shape_need_dims(c, 3, qkv, 3));
    return shape_need_dims(c, 4, qkv, 3);
}

rlx_status shape_gated_delta_net(struct shape_call *c)
{
    const struct attr_gated_delta_net *attr = &c->attr->gated_delta_net;
    const struct ir_type *q = c->in[0];
    int64_t n = attr->state_size;

    TRY(need_inputs(c, 5, attr->carry_state));
    TRY(need_delta_net(c, n));
    if (attr->carry_state)
        TRY(need_state(c, 5, (const ir_dim[]){q->dim[0], q->dim[2], n, n}, 4));
    return shape_result_like(c, 0);
}

rlx_status shape_gated_delta_net_backward(struct shape_call *c)
{
    TRY(need_delta_net(c, c->attr->gated_delta_net_backward.state_size));
    TRY(shape_need_same_type(c, 5, 0));
    return shape_packed_gradients(c, 5);
}

/* x [b,s,h,d], dt [b,s,h], a [h], b and c [b,s,groups,n], state [b,h,d,n] -> like x. */
rlx_status shape_mamba2(struct shape_call *c)
{
    const struct attr_mamba2 *attr = &c->attr->mamba2;
    const struct ir_type *x = c->in[0];
    ir_dim groups;

    TRY(need_inputs(c, 5, attr->carry_state));
    TRY(need_all_f32(c));
    TRY(shape_need_range(c, "state_size", attr->state_size, 1, INT64_MAX));
    TRY(shape_need_range(c, "head_dim", attr->head_dim, 1, INT64_MAX));
    TRY(shape_need_rank(c, 0, 4, 4));
    TRY(shape_need_equal(c, x->dim[3], attr->head_dim, "head sizes of x and head_dim"));
    groups = x->dim[2];
    if (attr->groups != RLX_ABSENT) {
        TRY(shape_need_range(c, "groups", attr->groups, 1, INT64_MAX));
        TRY(shape_need_multiple(c, x->dim[2], attr->groups, "heads in groups"));
        groups = attr->groups;
    }
    const ir_dim bc[] = {x->dim[0], x->dim[1], groups, attr->state_size};
    const ir_dim state[] = {x->dim[0], x->dim[2], attr->head_dim, attr->state_size};
    TRY(shape_need_dims(c, 1, x->dim, 3));
    TRY(shape_need_dims(c, 2, &x->dim[2], 1));
    TRY(shape_need_dims(c, 3, bc, 4));
    TRY(shape_need_dims(c, 4, bc, 4));
    if (attr->carry_state)
        TRY(need_state(c, 5, state, 4));
    return shape_result_like(c, 0);
}

/* ---- causal_conv ---------------------------------------------------------------------------- */

/* w [c,taps] of x [b,s,c]. */
static rlx_status need_taps(struct shape_call *c, int64_t *taps)
{
    const struct ir_type *x = c->in[0], *w = c->in[1];

    TRY(shape_need_rank(c, 1, 2, 2));
    TRY(shape_need_equal(c, w->dim[0], x->dim[2], "channels of w and x"));
    TRY(shape_need_static(c, w->dim[1], "the taps of w"));
    *taps = w->dim[1];
    if (*taps < 1)
        return SHAPE_FAIL(c, SHAPE, "%s: w has no taps", c->name);
    if (*taps > CAUSAL_CONV_TAPS)
        return SHAPE_FAIL(c, UNSUPPORTED, "%s: w has %" PRId64 " taps, above %d", c->name, *taps,
                          CAUSAL_CONV_TAPS);
    return RLX_OK;
}

/* x [b,s,c], w [c,taps], with carry state [b,taps-1,c], maybe bias [c] -> like x. */
rlx_status shape_causal_conv(struct shape_call *c)
{
    const struct attr_causal_conv *attr = &c->attr->causal_conv;
    const struct ir_type *x = c->in[0];
    int32_t bias = attr->carry_state ? 3 : 2;
    int64_t taps;

    if (c->in_count < bias || c->in_count > bias + 1)
        return SHAPE_FAIL(c, GRAPH,
                          "%s: takes %d inputs, or %d with a bias, with carry_state%s, got %d",
                          c->name, bias, bias + 1, attr->carry_state ? "" : " off", c->in_count);
    TRY(shape_need_floats(c, c->in_count));
    if (x->dtype == RLX_DTYPE_f64)
        return SHAPE_FAIL(c, DTYPE, "%s: x must be f32, f16 or bf16, not f64", c->name);
    if (attr->activation != RLX_OP_none && attr->activation != RLX_OP_silu)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: activation must be none or silu, not %s", c->name,
                          op_info(attr->activation)->name);
    TRY(shape_need_rank(c, 0, 3, 3));
    TRY(need_taps(c, &taps));
    if (attr->carry_state)
        TRY(need_state(c, 2, (const ir_dim[]){x->dim[0], taps - 1, x->dim[2]}, 3));
    if (c->in_count > bias) {
        if (c->in[bias]->rank != 1)
            return SHAPE_FAIL(c, SHAPE, "%s: bias must have rank 1, not %d", c->name,
                              c->in[bias]->rank);
        TRY(shape_need_equal(c, c->in[bias]->dim[0], x->dim[2], "channels of bias and x"));
    }
    return shape_result_like(c, 0);
}

/* ---- lstm, gru, rnn ------------------------------------------------------------------------ */

static rlx_status need_recurrent_attrs(struct shape_call *c)
{
    const struct attr_recurrent *attr = &c->attr->recurrent;
    int32_t states = !attr->has_state ? 0 : c->op == RLX_OP_lstm ? 2 : 1;

    TRY(shape_need_inputs(c, 5 + states + (attr->has_lengths ? 1 : 0),
                          "these has_state and has_lengths"));
    TRY(shape_need_range(c, "hidden_size", attr->hidden_size, 1, INT64_MAX));
    if (attr->result == RLX_RNN_RESULT_c && c->op != RLX_OP_lstm)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: result c exists for lstm only", c->name);
    if (attr->activation != RLX_RNN_ACTIVATION_tanh && c->op != RLX_OP_rnn)
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: activation %s exists for rnn only", c->name,
                          enum_word("rnn_activation", attr->activation));
    return RLX_OK;
}

/* x [b,s,i], w_ih [dirs,g h,i], w_hh [dirs,g h,h], b_ih and b_hh [dirs,g h], states [dirs,b,h],
 * lengths [b] -> [b,s,dirs h], or the last state. */
rlx_status shape_recurrent(struct shape_call *c)
{
    const struct attr_recurrent *attr = &c->attr->recurrent;
    const struct ir_type *x = c->in[0];
    int32_t lengths = attr->has_lengths ? c->in_count - 1 : c->in_count;
    int64_t gates = c->op == RLX_OP_lstm ? 4 : c->op == RLX_OP_gru ? 3 : 1;
    int64_t dirs = attr->bidirectional ? 2 : 1, h = attr->hidden_size;

    TRY(need_recurrent_attrs(c));
    TRY(shape_need_floats(c, lengths));
    TRY(shape_need_rank(c, 0, 3, 3));
    ir_dim gh = dim_mul(c->mod->dims, gates, h);
    const ir_dim w_ih[] = {dirs, gh, x->dim[2]}, w_hh[] = {dirs, gh, h};
    const ir_dim state[] = {dirs, x->dim[0], h};
    TRY(shape_need_dims(c, 1, w_ih, 3));
    TRY(shape_need_dims(c, 2, w_hh, 3));
    TRY(shape_need_dims(c, 3, w_hh, 2));
    TRY(shape_need_dims(c, 4, w_hh, 2));
    for (int32_t i = 5; i < lengths; i++)
        TRY(shape_need_dims(c, i, state, 3));
    if (attr->has_lengths) {
        TRY(shape_need_class(c, lengths, CLASS_INT));
        TRY(shape_need_dims(c, lengths, x->dim, 1));
    }
    if (attr->result != RLX_RNN_RESULT_seq)
        return shape_result(c, x->dtype, 3, state);
    const ir_dim seq[] = {x->dim[0], x->dim[1], dim_mul(c->mod->dims, dirs, h)};
    return shape_result(c, x->dtype, 3, seq);
}

/* ---- spectra ------------------------------------------------------------------------------- */

/* fft: along the last axis; real types hold re... im..., so their extent is even. */
rlx_status shape_fft(struct shape_call *c)
{
    const struct ir_type *x = c->in[0];

    if (x->dtype != RLX_DTYPE_f32 && x->dtype != RLX_DTYPE_f64 && x->dtype != RLX_DTYPE_c64)
        return SHAPE_FAIL(c, DTYPE, "%s: x must be f32, f64 or c64, not %s", c->name,
                          rlx_dtype_name(x->dtype));
    TRY(shape_need_rank(c, 0, 1, RLX_MAX_RANK));
    TRY(shape_need_least(c, x->dim[x->rank - 1], 1, "points of the transform"));
    if (x->dtype != RLX_DTYPE_c64)
        TRY(shape_need_multiple(c, x->dim[x->rank - 1], 2, "real and imaginary parts"));
    return shape_result_like(c, 0);
}

/* spec [..., 2 n_fft], as real parts and then imaginary ones: *bins = n_fft/2 + 1. */
static rlx_status spectrum_bins(struct shape_call *c, ir_dim *bins)
{
    const struct ir_type *spec = c->in[0];
    struct dim_table *t = c->mod->dims;
    ir_dim n_fft;

    TRY(shape_divided(c, spec->dim[spec->rank - 1], 2, "real and imaginary parts", &n_fft));
    TRY(shape_need_least(c, n_fft, 1, "points of the spectrum"));
    *bins = dim_add(t, dim_floor_div(t, n_fft, 2), 1);
    return RLX_OK;
}

/* spec [..., 2 n_fft] and filt [n_mels, n_fft/2 + 1]. */
static rlx_status need_mel(struct shape_call *c)
{
    ir_dim bins;

    TRY(need_all_f32(c));
    TRY(shape_need_rank(c, 0, 1, RLX_MAX_RANK));
    TRY(shape_need_rank(c, 1, 2, 2));
    TRY(spectrum_bins(c, &bins));
    TRY(shape_need_equal(c, c->in[1]->dim[1], bins, "columns of filt and bins of spec"));
    return shape_need_least(c, c->in[1]->dim[0], 1, "mel bands");
}

rlx_status shape_log_mel(struct shape_call *c)
{
    TRY(need_mel(c));
    TRY(shape_result_like(c, 0));
    c->out->dim[c->out->rank - 1] = c->in[1]->dim[0];
    return RLX_OK;
}

/* spec, filt, dy [..., n_mels] -> like spec. */
rlx_status shape_log_mel_backward(struct shape_call *c)
{
    struct ir_type dy = *c->in[0];

    TRY(need_mel(c));
    dy.dim[dy.rank - 1] = c->in[1]->dim[0];
    TRY(shape_need_dims(c, 2, dy.dim, dy.rank));
    return shape_result_like(c, 0);
}

/* welch_peaks: spec [batch n_segments, 2 n_fft] -> [batch, 2k], pairs of bin and power. */
rlx_status shape_welch_peaks(struct shape_call *c)
{
    const struct attr_welch_peaks *attr = &c->attr->welch_peaks;
    ir_dim bins, batch;

    TRY(need_all_f32(c));
    TRY(shape_need_rank(c, 0, 2, 2));
    TRY(shape_need_range(c, "k", attr->k, 1, INT64_MAX));
    TRY(shape_need_range(c, "n_segments", attr->n_segments, 1, INT64_MAX));
    TRY(spectrum_bins(c, &bins));
    TRY(shape_need_most(c, bins, SHAPE_MAX_INDEXED, "bins"));
    if (!shape_check(c, CHECK_AT_LEAST, bins, attr->k, RLX_ERROR_ATTRIBUTE, "bins and k"))
        return SHAPE_FAIL(c, ATTRIBUTE, "%s: k %" PRId64 " is above the %s bins", c->name, attr->k,
                          dim_text(c, bins));
    TRY(shape_divided(c, c->in[0]->dim[0], attr->n_segments, "rows of spec in segments", &batch));
    const ir_dim dim[] = {batch, dim_mul(c->mod->dims, 2, attr->k)};
    return shape_result(c, RLX_DTYPE_f32, 2, dim);
}
