/* shape_b_sequence_test.c: scans, recurrent layers and spectra: what they give and refuse. */
#include "shape_given.h"

TEST(shape_sequence, selective_scan)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_selective_scan);
    base.selective_scan.state_size = 2;
    ir_value x = given(&b, "f32[1,7,3]"), m = given(&b, "f32[3,2]"), s = given(&b, "f32[1,7,2]");

    gives(&b, selective_scan, &base, "f32[1,7,3]", x, x, m, s, s);
    gives(&b, selective_scan, &base, "f32[n,q,3]", given(&b, "f32[n,q,3]"), given(&b, "f32[n,q,3]"),
          m, given(&b, "f32[n,q,2]"), given(&b, "f32[n,q,2]"));
    gives(&b, selective_scan, &base, "f32[1,0,3]", given(&b, "f32[1,0,3]"), given(&b, "f32[1,0,3]"),
          m, given(&b, "f32[1,0,2]"), given(&b, "f32[1,0,2]"));
    refuses(&b, selective_scan, base, attr.selective_scan.state_size = 0, ATTRIBUTE,
            "state_size is 0", x, x, m, s, s);
    refuses(&b, selective_scan, base, attr.selective_scan.state_size = 257, UNSUPPORTED,
            "state_size 257 is above 256", x, x, m, s, s);
    refuses(&b, selective_scan, base, attr.selective_scan.state_size = 3, SHAPE, "a must be", x, x,
            m, s, s);
    union ir_attr carry = base;
    carry.selective_scan.carry_state = true;
    ir_value state = given_leaf(&b, RLX_OP_state, "f32[1,3,2]");
    gives(&b, selective_scan, &carry, "f32[1,7,3]", x, x, m, s, s, state);
    fails(&b, selective_scan, &carry, GRAPH, "takes 6 inputs with carry_state", x, x, m, s, s);
    fails(&b, selective_scan, &base, GRAPH, "takes 5 inputs", x, x, m, s, s, state);
    fails(&b, selective_scan, &carry, GRAPH, "state must be a state leaf", x, x, m, s, s,
          given(&b, "f32[1,3,2]"));
    fails(&b, selective_scan, &carry, SHAPE, "state must be f32[1,3,2], not f32[1,7,3]", x, x, m, s,
          s, given_leaf(&b, RLX_OP_state, "f32[1,7,3]"));
    fails(&b, selective_scan, &base, SHAPE, "delta must be f32[1,7,3], not f32[1,7,2]", x, s, m, s,
          s);
    fails(&b, selective_scan, &base, SHAPE, "b must be", x, x, m, x, s);
    fails(&b, selective_scan, &base, SHAPE, "c must be", x, x, m, s, x);
    fails(&b, selective_scan, &base, SHAPE, "rank must be 3", m, x, m, s, s);
    fails(&b, selective_scan, &base, DTYPE, "a must be f32, not f16", x, x, given(&b, "f16[3,2]"),
          s, s);
    build_close(&b);
}

TEST(shape_sequence, gated_delta_net)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_gated_delta_net), carry;
    base.gated_delta_net.state_size = 2;
    carry = base;
    carry.gated_delta_net.carry_state = true;
    ir_value q = given(&b, "f32[1,7,3,2]"), g = given(&b, "f32[1,7,3]"),
             plain = given(&b, "f32[1,3,2,2]"),
             state = given_leaf(&b, RLX_OP_state, "f32[1,3,2,2]"),
             other = given_leaf(&b, RLX_OP_state, "f32[1,3,2,3]"), h = given(&b, "f16[1,7,3,2]"),
             hg = given(&b, "f16[1,7,3]");

    gives(&b, gated_delta_net, &base, "f32[1,7,3,2]", q, q, q, g, g);
    gives(&b, gated_delta_net, &base, "f16[1,7,3,2]", h, h, h, hg, hg);
    gives(&b, gated_delta_net, &carry, "f32[1,7,3,2]", q, q, q, g, g, state);
    fails(&b, gated_delta_net, &carry, GRAPH, "state must be a state leaf", q, q, q, g, g, plain);
    fails(&b, gated_delta_net, &carry, GRAPH, "takes 6 inputs", q, q, q, g, g);
    fails(&b, gated_delta_net, &base, GRAPH, "takes 5 inputs", q, q, q, g, g, state);
    fails(&b, gated_delta_net, &carry, SHAPE, "state must be f32[1,3,2,2], not f32[1,3,2,3]", q, q,
          q, g, g, other);
    fails(&b, gated_delta_net, &base, SHAPE, "v must be", q, q, given(&b, "f32[1,7,4,2]"), g, g);
    fails(&b, gated_delta_net, &base, SHAPE, "beta must be", q, q, q, g, given(&b, "f32[1,7,2]"));
    fails(&b, gated_delta_net, &base, SHAPE, "rank must be 4", g, q, q, g, g);
    fails(&b, gated_delta_net, &base, DTYPE, "f16", q, h, q, g, g);
    fails(&b, gated_delta_net, &base, DTYPE, "f64", given(&b, "f64[1,7,3,2]"),
          given(&b, "f64[1,7,3,2]"), given(&b, "f64[1,7,3,2]"), given(&b, "f64[1,7,3]"),
          given(&b, "f64[1,7,3]"));
    refuses(&b, gated_delta_net, base, attr.gated_delta_net.state_size = 0, ATTRIBUTE, "state_size",
            q, q, q, g, g);
    refuses(&b, gated_delta_net, base, attr.gated_delta_net.state_size = 129, UNSUPPORTED,
            "state_size 129 is above 128", q, q, q, g, g);
    refuses(&b, gated_delta_net, base, attr.gated_delta_net.state_size = 3, SHAPE, "q must be", q,
            q, q, g, g);
    build_close(&b);
}

TEST(shape_sequence, gradients)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr scan = defaults(RLX_OP_selective_scan_backward),
                  delta = defaults(RLX_OP_gated_delta_net_backward);
    scan.selective_scan_backward.state_size = delta.gated_delta_net_backward.state_size = 2;
    ir_value x = given(&b, "f32[n,7,3]"), m = given(&b, "f32[3,2]"), s = given(&b, "f32[n,7,2]");
    ir_value q = given(&b, "f32[1,7,3,2]"), g = given(&b, "f32[1,7,3]"),
             h = given(&b, "f16[1,7,3,2]"), hg = given(&b, "f16[1,7,3]");

    /* 2 of [n,7,3], [3,2], 2 of [n,7,2] */
    gives(&b, selective_scan_backward, &scan, "f32[70*n+6]", x, x, m, s, s, x);
    fails(&b, selective_scan_backward, &scan, SHAPE, "dy and x must have one shape", x, x, m, s, s,
          s);
    fails(&b, selective_scan_backward, &scan, SHAPE, "b must be", x, x, m, x, s, x);
    fails(&b, selective_scan_backward, &scan, DTYPE, "f16", x, x, m, s, s, hg);
    refuses(&b, selective_scan_backward, scan, attr.selective_scan_backward.state_size = 0,
            ATTRIBUTE, "state_size", x, x, m, s, s, x);
    refuses(&b, selective_scan_backward, scan, attr.selective_scan_backward.state_size = 257,
            UNSUPPORTED, "state_size 257 is above 256", x, x, m, s, s, x);
    gives(&b, gated_delta_net_backward, &delta, "f32[168]", q, q, q, g, g, q);
    gives(&b, gated_delta_net_backward, &delta, "f16[168]", h, h, h, hg, hg, h);
    fails(&b, gated_delta_net_backward, &delta, SHAPE, "dy and q must have one shape", q, q, q, g,
          g, g);
    fails(&b, gated_delta_net_backward, &delta, DTYPE, "f16", q, q, q, g, g, h);
    refuses(&b, gated_delta_net_backward, delta, attr.gated_delta_net_backward.state_size = 129,
            UNSUPPORTED, "state_size 129 is above 128", q, q, q, g, g, q);
    refuses(&b, gated_delta_net_backward, delta, attr.gated_delta_net_backward.state_size = 0,
            ATTRIBUTE, "state_size", q, q, q, g, g, q);
    build_close(&b);
}

TEST(shape_sequence, causal_conv)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_causal_conv), carry = base;
    carry.causal_conv.carry_state = true;
    ir_value x = given(&b, "f32[2,7,3]"), w = given(&b, "f32[3,4]"), bias = given(&b, "f32[3]"),
             state = given_leaf(&b, RLX_OP_state, "f32[2,3,3]"), h = given(&b, "f16[2,7,3]"),
             hw = given(&b, "f16[3,4]");

    gives(&b, causal_conv, &base, "f32[2,7,3]", x, w);
    gives(&b, causal_conv, &base, "f32[2,7,3]", x, w, bias);
    gives(&b, causal_conv, &base, "f16[2,7,3]", h, hw);
    /* A bias may be a state: it is only read, by any number of ops. */
    ir_value resident = given_leaf(&b, RLX_OP_state, "f32[3]");
    gives(&b, causal_conv, &base, "f32[2,7,3]", x, w, resident);
    gives(&b, causal_conv, &base, "f32[2,7,3]", x, w, resident);
    gives(&b, causal_conv, &base, "f32[2,n,3]", given(&b, "f32[2,n,3]"), w);
    gives(&b, causal_conv, &carry, "f32[2,7,3]", x, w, state);
    gives(&b, causal_conv, &carry, "f32[2,7,3]", x, w, given_leaf(&b, RLX_OP_state, "f32[2,3,3]"),
          bias);
    gives(&b, causal_conv, &carry, "f32[2,7,3]", x, given(&b, "f32[3,1]"),
          given_leaf(&b, RLX_OP_state, "f32[2,0,3]"));
    fails(&b, causal_conv, &base, GRAPH, "takes 2 inputs, or 3 with a bias", x, w, state, bias);
    fails(&b, causal_conv, &carry, GRAPH, "takes 3 inputs, or 4 with a bias", x, w);
    fails(&b, causal_conv, &carry, GRAPH, "state must be a state leaf", x, w, x);
    fails(&b, causal_conv, &carry, SHAPE, "state must be f32[2,3,3], not f32[2,2,3]", x, w,
          given_leaf(&b, RLX_OP_state, "f32[2,2,3]"));
    fails(&b, causal_conv, &base, SHAPE, "channels of w and x differ: 4 and 3", x,
          given(&b, "f32[4,4]"));
    fails(&b, causal_conv, &base, SHAPE, "w has no taps", x, given(&b, "f32[3,0]"));
    fails(&b, causal_conv, &base, UNSUPPORTED, "w has 65 taps, above 64", x,
          given(&b, "f32[3,65]"));
    fails(&b, causal_conv, &base, SHAPE, "channels of bias and x differ: 4 and 3", x, w,
          given(&b, "f32[4]"));
    fails(&b, causal_conv, &base, SHAPE, "bias must have rank 1, not 2", x, w, w);
    fails(&b, causal_conv, &base, DTYPE, "f16", x, hw);
    fails(&b, causal_conv, &base, DTYPE, "f64", given(&b, "f64[2,7,3]"), given(&b, "f64[3,4]"));
    refuses(&b, causal_conv, base, attr.causal_conv.activation = RLX_OP_gelu, ATTRIBUTE,
            "activation must be none or silu, not gelu", x, w);
    build_close(&b);
}

TEST(shape_sequence, mamba2)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_mamba2);
    base.mamba2.head_dim = 4;
    base.mamba2.state_size = 2;
    ir_value x = given(&b, "f32[n,7,3,4]"), dt = given(&b, "f32[n,7,3]"), h = given(&b, "f32[3]"),
             s = given(&b, "f32[n,7,3,2]");

    gives(&b, mamba2, &base, "f32[n,7,3,4]", x, dt, h, s, s);
    refuses(&b, mamba2, base, attr.mamba2.head_dim = 5, SHAPE, "differ: 4 and 5", x, dt, h, s, s);
    refuses(&b, mamba2, base, attr.mamba2.head_dim = 0, ATTRIBUTE, "head_dim", x, dt, h, s, s);
    refuses(&b, mamba2, base, attr.mamba2.state_size = 0, ATTRIBUTE, "state_size", x, dt, h, s, s);
    refuses(&b, mamba2, base, attr.mamba2.state_size = 5, SHAPE, "b must be", x, dt, h, s, s);
    refuses(&b, mamba2, base, attr.mamba2.groups = 0, ATTRIBUTE, "groups", x, dt, h, s, s);
    refuses(&b, mamba2, base, attr.mamba2.groups = 2, SHAPE, "3 is not a multiple of 2", x, dt, h,
            s, s);
    refuses(&b, mamba2, base, attr.mamba2.groups = 1, SHAPE, "b must be f32[n,7,1,2]", x, dt, h, s,
            s);
    union ir_attr group = base, carry = base;
    group.mamba2.groups = 1;
    carry.mamba2.carry_state = true;
    ir_value one = given(&b, "f32[n,7,1,2]"), y = given(&b, "f32[2,7,3,4]"),
             d = given(&b, "f32[2,7,3]"), r = given(&b, "f32[2,7,3,2]");
    ir_value state = given_leaf(&b, RLX_OP_state, "f32[2,3,4,2]"),
             small = given_leaf(&b, RLX_OP_state, "f32[2,3,4,3]");
    gives(&b, mamba2, &group, "f32[n,7,3,4]", x, dt, h, one, one);
    fails(&b, mamba2, &group, SHAPE, "c must be f32[n,7,1,2]", x, dt, h, one, s);
    gives(&b, mamba2, &carry, "f32[2,7,3,4]", y, d, h, r, r, state);
    fails(&b, mamba2, &carry, GRAPH, "takes 6 inputs with carry_state", y, d, h, r, r);
    fails(&b, mamba2, &base, GRAPH, "takes 5 inputs with carry_state off", y, d, h, r, r, state);
    fails(&b, mamba2, &carry, GRAPH, "state must be a state leaf", y, d, h, r, r,
          given(&b, "f32[2,3,4,2]"));
    fails(&b, mamba2, &carry, SHAPE, "state must be f32[2,3,4,2], not f32[2,3,4,3]", y, d, h, r, r,
          small);
    fails(&b, mamba2, &base, SHAPE, "dt must be", x, x, h, s, s);
    fails(&b, mamba2, &base, SHAPE, "a must be f32[3], not f32[n,7,3]", x, dt, dt, s, s);
    fails(&b, mamba2, &base, SHAPE, "c must be", x, dt, h, s, x);
    fails(&b, mamba2, &base, DTYPE, "f64", given(&b, "f64[n,7,3,4]"), dt, h, s, s);
    build_close(&b);
}

TEST(shape_sequence, recurrent_layers)
{
    struct build b;
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_lstm), both, full;
    base.recurrent.hidden_size = 5;
    both = base;
    both.recurrent.bidirectional = true;
    full = base;
    full.recurrent.has_state = full.recurrent.has_lengths = true;
    ir_value x = given(&b, "f32[2,7,3]"), h0 = given(&b, "f32[1,2,5]"), len = given(&b, "i32[2]");
    ir_value wi = given(&b, "f32[1,20,3]"), wh = given(&b, "f32[1,20,5]"),
             bi = given(&b, "f32[1,20]");
    ir_value wi2 = given(&b, "f32[2,20,3]"), wh2 = given(&b, "f32[2,20,5]"),
             bi2 = given(&b, "f32[2,20]");
    ir_value gi = given(&b, "f32[1,15,3]"), gh = given(&b, "f32[1,15,5]"),
             gb = given(&b, "f32[1,15]");
    ir_value ri = given(&b, "f32[1,5,3]"), rh = given(&b, "f32[1,5,5]"), rb = given(&b, "f32[1,5]");

    gives(&b, lstm, &base, "f32[2,7,5]", x, wi, wh, bi, bi);
    gives(&b, lstm, &both, "f32[2,7,10]", x, wi2, wh2, bi2, bi2);
    accepts(&b, lstm, both, attr.recurrent.result = RLX_RNN_RESULT_h, "f32[2,2,5]", x, wi2, wh2,
            bi2, bi2);
    accepts(&b, lstm, base, attr.recurrent.result = RLX_RNN_RESULT_c, "f32[1,2,5]", x, wi, wh, bi,
            bi);
    gives(&b, lstm, &full, "f32[2,7,5]", x, wi, wh, bi, bi, h0, h0, len);
    gives(&b, gru, &base, "f32[2,7,5]", x, gi, gh, gb, gb);
    gives(&b, gru, &full, "f32[2,7,5]", x, gi, gh, gb, gb, h0, len);
    accepts(&b, rnn, base, attr.recurrent.activation = RLX_RNN_ACTIVATION_relu, "f32[2,7,5]", x, ri,
            rh, rb, rb);
    accepts(&b, rnn, base, attr.recurrent.has_lengths = true, "f32[n,s,5]", given(&b, "f32[n,s,3]"),
            ri, rh, rb, rb, given(&b, "i64[n]"));

    fails(&b, lstm, &full, GRAPH, "takes 8 inputs", x, wi, wh, bi, bi, h0, len);
    fails(&b, gru, &full, GRAPH, "takes 7 inputs", x, gi, gh, gb, gb, h0);
    fails(&b, lstm, &base, GRAPH, "takes 5 inputs", x, wi, wh, bi, bi, h0);
    fails(&b, lstm, &full, DTYPE, "lengths", x, wi, wh, bi, bi, h0, h0, given(&b, "f32[2]"));
    fails(&b, lstm, &full, SHAPE, "lengths must be i32[2]", x, wi, wh, bi, bi, h0, h0,
          given(&b, "i32[3]"));
    fails(&b, lstm, &full, SHAPE, "c0 must be", x, wi, wh, bi, bi, h0, x, len);
    fails(&b, lstm, &base, SHAPE, "w_ih must be f32[1,20,3], not f32[1,15,3]", x, gi, wh, bi, bi);
    fails(&b, lstm, &both, SHAPE, "w_ih must be f32[2,20,3], not f32[1,20,3]", x, wi, wh2, bi2,
          bi2);
    fails(&b, lstm, &base, SHAPE, "w_hh", x, wi, wi, bi, bi);
    fails(&b, lstm, &base, SHAPE, "b_hh", x, wi, wh, bi, gb);
    fails(&b, lstm, &base, SHAPE, "rank must be 3", bi, wi, wh, bi, bi);
    fails(&b, lstm, &base, DTYPE, "f16", x, wi, wh, bi, given(&b, "f16[1,20]"));
    refuses(&b, lstm, base, attr.recurrent.hidden_size = 0, ATTRIBUTE, "hidden_size", x, wi, wh, bi,
            bi);
    refuses(&b, lstm, base, attr.recurrent.hidden_size = INT64_MAX / 2, LIMIT, "overflow", x, wi,
            wh, bi, bi);
    refuses(&b, gru, base, attr.recurrent.result = RLX_RNN_RESULT_c, ATTRIBUTE, "result c", x, gi,
            gh, gb, gb);
    refuses(&b, gru, base, attr.recurrent.result = 3, ATTRIBUTE, "result", x, gi, gh, gb, gb);
    refuses(&b, lstm, base, attr.recurrent.activation = RLX_RNN_ACTIVATION_relu, ATTRIBUTE,
            "activation relu exists for rnn only", x, wi, wh, bi, bi);
    build_close(&b);
}

TEST(shape_sequence, fft)
{
    struct build b;
    struct ir_type type = {0};
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_fft);

    gives(&b, fft, NULL, "f32[3,8]", given(&b, "f32[3,8]"));
    gives(&b, fft, NULL, "f64[2]", given(&b, "f64[2]"));
    gives(&b, fft, NULL, "c64[3,7]", given(&b, "c64[3,7]"));
    gives(&b, fft, NULL, "c64[0,7]", given(&b, "c64[0,7]"));
    fails(&b, fft, NULL, SHAPE, "7 is not a multiple of 2", given(&b, "f32[3,7]"));
    fails(&b, fft, NULL, SHAPE, "0 is less than 1", given(&b, "f32[3,0]"));
    fails(&b, fft, NULL, SHAPE, "0 is less than 1", given(&b, "c64[0]"));
    fails(&b, fft, NULL, SHAPE, "rank", given(&b, "c64[]"));
    fails(&b, fft, NULL, DTYPE, "f16", given(&b, "f16[8]"));
    refuses(&b, fft, base, attr.fft.norm = 3, ATTRIBUTE, "norm", given(&b, "f32[8]"));

    gives(&b, fft, NULL, "f32[n]", given(&b, "f32[n]"));
    expect_ok(t, bind_symbols(&b, "n", 6, NULL, 0, &type, NULL));
    expect_status(t, bind_symbols(&b, "n", 7, NULL, 0, NULL, NULL), RLX_ERROR_SHAPE);
    expect_status(t, bind_symbols(&b, "n", 0, NULL, 0, NULL, NULL), RLX_ERROR_SHAPE);
    build_close(&b);
}

TEST(shape_sequence, log_mel)
{
    struct build b;
    require(t, build_open(t, &b));
    ir_value s = given(&b, "f32[n,5,8]"), f = given(&b, "f32[2,3]"), dy = given(&b, "f32[n,5,2]");

    gives(&b, log_mel, NULL, "f32[n,5,2]", s, f);
    gives(&b, log_mel, NULL, "f32[2]", given(&b, "f32[6]"), given(&b, "f32[2,2]"));
    gives(&b, log_mel_backward, NULL, "f32[n,5,8]", s, f, dy);
    gives(&b, log_mel, NULL, "f32[2]", given(&b, "f32[4*m]"), given(&b, "f32[2,m+1]"));
    fails(&b, log_mel, NULL, SHAPE, "columns of filt and bins of spec differ: 4 and 3", s,
          given(&b, "f32[2,4]"));
    fails(&b, log_mel, NULL, SHAPE, "7 is not a multiple of 2", given(&b, "f32[7]"), f);
    fails(&b, log_mel, NULL, SHAPE, "points", given(&b, "f32[0]"), given(&b, "f32[2,1]"));
    fails(&b, log_mel, NULL, SHAPE, "mel bands", s, given(&b, "f32[0,3]"));
    fails(&b, log_mel, NULL, SHAPE, "rank", given(&b, "f32[]"), f);
    fails(&b, log_mel, NULL, SHAPE, "rank", s, given(&b, "f32[3]"));
    fails(&b, log_mel, NULL, DTYPE, "filt must be f32", s, given(&b, "f64[2,3]"));
    fails(&b, log_mel_backward, NULL, SHAPE, "dy must be f32[n,5,2]", s, f, s);
    fails(&b, log_mel_backward, NULL, DTYPE, "dy", s, f, given(&b, "f16[n,5,2]"));
    build_close(&b);
}

TEST(shape_sequence, welch_peaks)
{
    struct build b;
    struct ir_type type = {0};
    require(t, build_open(t, &b));
    union ir_attr base = defaults(RLX_OP_welch_peaks);
    base.welch_peaks.k = 2;
    base.welch_peaks.n_segments = 3;
    ir_value s = given(&b, "f32[12,8]");

    gives(&b, welch_peaks, &base, "f32[4,4]", s);
    accepts(&b, welch_peaks, base, attr.welch_peaks.k = 3, "f32[4,6]", s);
    gives(&b, welch_peaks, &base, "f32[0,4]", given(&b, "f32[0,8]"));
    gives(&b, welch_peaks, &base, "f32[m,4]", given(&b, "f32[3*m,8]"));
    refuses(&b, welch_peaks, base, attr.welch_peaks.k = 4, ATTRIBUTE, "k 4 is above the 3 bins", s);
    refuses(&b, welch_peaks, base, attr.welch_peaks.k = 0, ATTRIBUTE, "k is 0", s);
    refuses(&b, welch_peaks, base, attr.welch_peaks.n_segments = 0, ATTRIBUTE, "n_segments is 0",
            s);
    refuses(&b, welch_peaks, base, attr.welch_peaks.n_segments = 5, SHAPE,
            "12 is not a multiple of 5", s);
    fails(&b, welch_peaks, &base, SHAPE, "7 is not a multiple of 2", given(&b, "f32[12,7]"));
    fails(&b, welch_peaks, &base, SHAPE, "points", given(&b, "f32[12,0]"));
    fails(&b, welch_peaks, &base, SHAPE, "too many bins", given(&b, "f32[3,134217728]"));
    fails(&b, welch_peaks, &base, SHAPE, "rank must be 2", given(&b, "f32[1,12,8]"));
    fails(&b, welch_peaks, &base, DTYPE, "f64", given(&b, "f64[12,8]"));

    gives(&b, welch_peaks, &base, "f32[r/3,4]", given(&b, "f32[r,8]"));
    expect_ok(t, bind_symbols(&b, "r", 6, "m", 1, &type, NULL));
    expect_eq(t, type.dim[0], 2);
    expect_status(t, bind_symbols(&b, "r", 7, "m", 1, NULL, NULL), RLX_ERROR_SHAPE);
    build_close(&b);
}
