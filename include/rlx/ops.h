/* ops.h: a function for every op. Inputs come first, then attributes in the order of docs/ops.md.
 * Optional inputs may be RLX_NO_VALUE.
 *
 * An op with more than four attributes takes them in a struct, which begins as its initialiser says,
 * with every attribute at its default. NULL is the same as a struct that nothing was set in.
 *
 *     rlx_conv_desc d = RLX_CONV_DESC_INIT;
 *     d.padding = RLX_LIST(1, 1);
 *     rlx_value y = rlx_conv(g, x, w, &d);
 *
 * Attributes that later versions add come at the end of a struct, or, where there is none, are set
 * through rlx_graph_node. */
/* Made by tools/gen-ops from src/ir/ops.def and src/ir/enums.def: edit those. */
#ifndef RLX_OPS_H
#define RLX_OPS_H

#include "rlx/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rlx_op {
    RLX_OP_none = 0,
    RLX_OP_input = 1,
    RLX_OP_param = 2,
    RLX_OP_state = 3,
    RLX_OP_const = 4,
    RLX_OP_add = 5,
    RLX_OP_sub = 6,
    RLX_OP_mul = 7,
    RLX_OP_div = 8,
    RLX_OP_max = 9,
    RLX_OP_min = 10,
    RLX_OP_pow = 11,
    RLX_OP_mod = 12,
    RLX_OP_atan2 = 13,
    RLX_OP_bit_and = 14,
    RLX_OP_bit_or = 15,
    RLX_OP_bit_xor = 16,
    RLX_OP_shl = 17,
    RLX_OP_shr = 18,
    RLX_OP_eq = 19,
    RLX_OP_ne = 20,
    RLX_OP_lt = 21,
    RLX_OP_le = 22,
    RLX_OP_gt = 23,
    RLX_OP_ge = 24,
    RLX_OP_relu = 25,
    RLX_OP_sigmoid = 26,
    RLX_OP_tanh = 27,
    RLX_OP_exp = 28,
    RLX_OP_log = 29,
    RLX_OP_sqrt = 30,
    RLX_OP_rsqrt = 31,
    RLX_OP_neg = 32,
    RLX_OP_abs = 33,
    RLX_OP_gelu = 34,
    RLX_OP_gelu_approx = 35,
    RLX_OP_silu = 36,
    RLX_OP_round = 37,
    RLX_OP_sin = 38,
    RLX_OP_cos = 39,
    RLX_OP_tan = 40,
    RLX_OP_atan = 41,
    RLX_OP_recip = 42,
    RLX_OP_floor = 43,
    RLX_OP_ceil = 44,
    RLX_OP_sign = 45,
    RLX_OP_softplus = 46,
    RLX_OP_elu = 47,
    RLX_OP_erf = 48,
    RLX_OP_hard_swish = 49,
    RLX_OP_hard_sigmoid = 50,
    RLX_OP_mish = 51,
    RLX_OP_softsign = 52,
    RLX_OP_log_sigmoid = 53,
    RLX_OP_not = 54,
    RLX_OP_cast = 55,
    RLX_OP_bitcast = 56,
    RLX_OP_where = 57,
    RLX_OP_clamp = 58,
    RLX_OP_fma = 59,
    RLX_OP_stop_gradient = 60,
    RLX_OP_complex_norm_sq = 61,
    RLX_OP_conjugate = 62,
    RLX_OP_reshape = 63,
    RLX_OP_transpose = 64,
    RLX_OP_narrow = 65,
    RLX_OP_concat = 66,
    RLX_OP_expand = 67,
    RLX_OP_slice = 68,
    RLX_OP_reverse = 69,
    RLX_OP_pad = 70,
    RLX_OP_tile = 71,
    RLX_OP_trilu = 72,
    RLX_OP_resize_nearest_2x = 73,
    RLX_OP_interpolate_3d = 74,
    RLX_OP_gather = 75,
    RLX_OP_scatter_add = 76,
    RLX_OP_gather_elements = 77,
    RLX_OP_gather_nd = 78,
    RLX_OP_scatter_elements = 79,
    RLX_OP_scatter_nd = 80,
    RLX_OP_cache_append = 81,
    RLX_OP_reduce_sum = 82,
    RLX_OP_reduce_mean = 83,
    RLX_OP_reduce_max = 84,
    RLX_OP_reduce_min = 85,
    RLX_OP_reduce_prod = 86,
    RLX_OP_argmax = 87,
    RLX_OP_argmin = 88,
    RLX_OP_topk = 89,
    RLX_OP_sort = 90,
    RLX_OP_argsort = 91,
    RLX_OP_softmax = 92,
    RLX_OP_cumsum = 93,
    RLX_OP_cumprod = 94,
    RLX_OP_cummax = 95,
    RLX_OP_sample = 96,
    RLX_OP_rng_normal = 97,
    RLX_OP_rng_uniform = 98,
    RLX_OP_matmul = 99,
    RLX_OP_dot_general = 100,
    RLX_OP_grouped_matmul = 101,
    RLX_OP_lora_matmul = 102,
    RLX_OP_dense_solve = 103,
    RLX_OP_batched_dense_solve = 104,
    RLX_OP_cholesky = 105,
    RLX_OP_triangular_solve = 106,
    RLX_OP_det = 107,
    RLX_OP_logdet = 108,
    RLX_OP_svd = 109,
    RLX_OP_qr = 110,
    RLX_OP_eigh = 111,
    RLX_OP_eigh_batch = 112,
    RLX_OP_layer_norm = 113,
    RLX_OP_rms_norm = 114,
    RLX_OP_group_norm = 115,
    RLX_OP_layer_norm_2d = 116,
    RLX_OP_batch_norm_inference = 117,
    RLX_OP_ada_layer_norm = 118,
    RLX_OP_gated_residual = 119,
    RLX_OP_conv = 120,
    RLX_OP_conv_transpose = 121,
    RLX_OP_pool = 122,
    RLX_OP_im2col = 123,
    RLX_OP_attention = 124,
    RLX_OP_rope = 125,
    RLX_OP_axial_rope_2d = 126,
    RLX_OP_selective_scan = 127,
    RLX_OP_gated_delta_net = 128,
    RLX_OP_mamba2 = 129,
    RLX_OP_causal_conv = 203,
    RLX_OP_lstm = 130,
    RLX_OP_gru = 131,
    RLX_OP_rnn = 132,
    RLX_OP_fft = 133,
    RLX_OP_log_mel = 134,
    RLX_OP_welch_peaks = 135,
    RLX_OP_fused_matmul_bias_act = 136,
    RLX_OP_fused_conv_bias_act = 137,
    RLX_OP_fused_residual_ln = 138,
    RLX_OP_fused_residual_rms_norm = 139,
    RLX_OP_fused_swiglu = 140,
    RLX_OP_fused_attention_block = 141,
    RLX_OP_fused_transformer_layer = 142,
    RLX_OP_elementwise_region = 143,
    RLX_OP_batch_elementwise_region = 144,
    RLX_OP_transform_region = 145,
    RLX_OP_if = 146,
    RLX_OP_while = 147,
    RLX_OP_scan = 148,
    RLX_OP_custom = 149,
    RLX_OP_custom_fn = 150,
    RLX_OP_softmax_cross_entropy_with_logits = 151,
    RLX_OP_softmax_cross_entropy = 152,
    RLX_OP_quantize = 153,
    RLX_OP_dequantize = 154,
    RLX_OP_fake_quantize = 155,
    RLX_OP_fake_quantize_lsq = 156,
    RLX_OP_qmatmul = 157,
    RLX_OP_qconv_2d = 158,
    RLX_OP_dequant_matmul = 159,
    RLX_OP_dequant_grouped_matmul = 160,
    RLX_OP_dequant_moe_weights = 161,
    RLX_OP_dequant_gather = 162,
    RLX_OP_group_limited_gate = 163,
    RLX_OP_knn = 164,
    RLX_OP_gaussian_splat_render = 165,
    RLX_OP_gaussian_splat_prepare = 166,
    RLX_OP_gaussian_splat_rasterize = 167,
    RLX_OP_relu_backward = 168,
    RLX_OP_activation_backward = 169,
    RLX_OP_complex_real = 170,
    RLX_OP_gather_backward = 171,
    RLX_OP_cumsum_backward = 172,
    RLX_OP_grouped_matmul_backward_weight = 173,
    RLX_OP_layer_norm_backward_input = 174,
    RLX_OP_layer_norm_backward_gamma = 175,
    RLX_OP_rms_norm_backward_input = 176,
    RLX_OP_rms_norm_backward_gamma = 177,
    RLX_OP_rms_norm_backward_beta = 178,
    RLX_OP_group_norm_backward_input = 179,
    RLX_OP_group_norm_backward_gamma = 180,
    RLX_OP_group_norm_backward_beta = 181,
    RLX_OP_batch_norm_inference_backward_input = 182,
    RLX_OP_batch_norm_inference_backward_gamma = 183,
    RLX_OP_batch_norm_inference_backward_beta = 184,
    RLX_OP_ada_layer_norm_backward = 185,
    RLX_OP_gated_residual_backward = 186,
    RLX_OP_conv_backward_input = 187,
    RLX_OP_conv_backward_weight = 188,
    RLX_OP_max_pool_backward = 189,
    RLX_OP_attention_backward = 190,
    RLX_OP_rope_backward = 191,
    RLX_OP_softmax_cross_entropy_backward = 192,
    RLX_OP_fake_quantize_backward = 193,
    RLX_OP_fake_quantize_lsq_backward_x = 194,
    RLX_OP_fake_quantize_lsq_backward_scale = 195,
    RLX_OP_scan_backward = 196,
    RLX_OP_scan_backward_xs = 197,
    RLX_OP_selective_scan_backward = 198,
    RLX_OP_gated_delta_net_backward = 199,
    RLX_OP_log_mel_backward = 200,
    RLX_OP_knn_backward = 201,
    RLX_OP_gaussian_splat_render_backward = 202,
    RLX_OP_count = 204 /* grows with every op */
} rlx_op;

typedef enum rlx_pad_mode {
    RLX_PAD_MODE_constant = 0,
    RLX_PAD_MODE_reflect = 1,
    RLX_PAD_MODE_replicate = 2,
    RLX_PAD_MODE_circular = 3
} rlx_pad_mode;

typedef enum rlx_scatter_reduction {
    RLX_SCATTER_REDUCTION_none = 0,
    RLX_SCATTER_REDUCTION_add = 1,
    RLX_SCATTER_REDUCTION_mul = 2,
    RLX_SCATTER_REDUCTION_max = 3,
    RLX_SCATTER_REDUCTION_min = 4
} rlx_scatter_reduction;

typedef enum rlx_topk_result {
    RLX_TOPK_RESULT_indices = 0,
    RLX_TOPK_RESULT_values = 1
} rlx_topk_result;

typedef enum rlx_svd_part {
    RLX_SVD_PART_u = 0,
    RLX_SVD_PART_s = 1,
    RLX_SVD_PART_vt = 2
} rlx_svd_part;

typedef enum rlx_qr_part {
    RLX_QR_PART_q = 0,
    RLX_QR_PART_r = 1
} rlx_qr_part;

typedef enum rlx_norm_kind {
    RLX_NORM_KIND_layer = 0,
    RLX_NORM_KIND_rms = 1
} rlx_norm_kind;

typedef enum rlx_pool_kind {
    RLX_POOL_KIND_sum = 0,
    RLX_POOL_KIND_mean = 1,
    RLX_POOL_KIND_max = 2,
    RLX_POOL_KIND_min = 3,
    RLX_POOL_KIND_prod = 4
} rlx_pool_kind;

typedef enum rlx_mask_kind {
    RLX_MASK_KIND_none = 0,
    RLX_MASK_KIND_causal = 1,
    RLX_MASK_KIND_sliding_window = 2,
    RLX_MASK_KIND_custom = 3,
    RLX_MASK_KIND_bias = 4,
    RLX_MASK_KIND_symmetric_window = 5,
    RLX_MASK_KIND_chunked_window = 6
} rlx_mask_kind;

typedef enum rlx_attention_layout {
    RLX_ATTENTION_LAYOUT_auto = 0,
    RLX_ATTENTION_LAYOUT_bhsd = 1,
    RLX_ATTENTION_LAYOUT_bshd = 2,
    RLX_ATTENTION_LAYOUT_packed = 3,
    RLX_ATTENTION_LAYOUT_folded = 4
} rlx_attention_layout;

typedef enum rlx_attention_wrt {
    RLX_ATTENTION_WRT_query = 0,
    RLX_ATTENTION_WRT_key = 1,
    RLX_ATTENTION_WRT_value = 2,
    RLX_ATTENTION_WRT_bias = 3
} rlx_attention_wrt;

typedef enum rlx_rope_style {
    RLX_ROPE_STYLE_half = 0,
    RLX_ROPE_STYLE_interleaved = 1
} rlx_rope_style;

typedef enum rlx_rnn_activation {
    RLX_RNN_ACTIVATION_tanh = 0,
    RLX_RNN_ACTIVATION_relu = 1
} rlx_rnn_activation;

typedef enum rlx_rnn_result {
    RLX_RNN_RESULT_seq = 0,
    RLX_RNN_RESULT_h = 1,
    RLX_RNN_RESULT_c = 2
} rlx_rnn_result;

typedef enum rlx_fft_norm {
    RLX_FFT_NORM_backward = 0,
    RLX_FFT_NORM_forward = 1,
    RLX_FFT_NORM_ortho = 2
} rlx_fft_norm;

typedef enum rlx_region_prologue {
    RLX_REGION_PROLOGUE_none = 0,
    RLX_REGION_PROLOGUE_resize_nearest_2x = 1
} rlx_region_prologue;

typedef enum rlx_ste_kind {
    RLX_STE_KIND_identity = 0,
    RLX_STE_KIND_clipped = 1,
    RLX_STE_KIND_tanh = 2,
    RLX_STE_KIND_hard_tanh = 3
} rlx_ste_kind;

typedef enum rlx_scale_mode {
    RLX_SCALE_MODE_per_batch = 0,
    RLX_SCALE_MODE_ema = 1,
    RLX_SCALE_MODE_fixed = 2
} rlx_scale_mode;

typedef enum rlx_act_precision {
    RLX_ACT_PRECISION_exact = 0,
    RLX_ACT_PRECISION_q8 = 1
} rlx_act_precision;

typedef enum rlx_quant_scheme {
    RLX_QUANT_SCHEME_int8_block = 0,
    RLX_QUANT_SCHEME_int8_block_asym = 1,
    RLX_QUANT_SCHEME_int4_block = 2,
    RLX_QUANT_SCHEME_fp8_e4m3 = 3,
    RLX_QUANT_SCHEME_fp8_e5m2 = 4,
    RLX_QUANT_SCHEME_nvfp4_block = 5,
    RLX_QUANT_SCHEME_q4_0 = 6,
    RLX_QUANT_SCHEME_q4_1 = 7,
    RLX_QUANT_SCHEME_q5_0 = 8,
    RLX_QUANT_SCHEME_q5_1 = 9,
    RLX_QUANT_SCHEME_q8_0 = 10,
    RLX_QUANT_SCHEME_q8_1 = 11,
    RLX_QUANT_SCHEME_q2_k = 12,
    RLX_QUANT_SCHEME_q3_k = 13,
    RLX_QUANT_SCHEME_q4_k = 14,
    RLX_QUANT_SCHEME_q5_k = 15,
    RLX_QUANT_SCHEME_q6_k = 16,
    RLX_QUANT_SCHEME_q8_k = 17,
    RLX_QUANT_SCHEME_iq4_nl = 18,
    RLX_QUANT_SCHEME_iq4_xs = 19,
    RLX_QUANT_SCHEME_mxfp4 = 20,
    RLX_QUANT_SCHEME_nvfp4 = 21,
    RLX_QUANT_SCHEME_tq1_0 = 22,
    RLX_QUANT_SCHEME_tq2_0 = 23
} rlx_quant_scheme;

/* Of rlx_sample. */
typedef struct rlx_sample_desc {
    uint32_t size;
    int64_t top_k;
    float top_p;
    float min_p;
    float temperature;
    uint64_t seed;
    rlx_dtype index_dtype;
} rlx_sample_desc;
#define RLX_SAMPLE_DESC_INIT                                \
    {sizeof(rlx_sample_desc), 0, 1, 0, 1, 0, RLX_DTYPE_i32}

/* Of rlx_conv. */
typedef struct rlx_conv_desc {
    uint32_t size;
    rlx_list kernel_size;
    rlx_list stride;
    rlx_list padding;
    rlx_list dilation;
    int64_t groups;
} rlx_conv_desc;
#define RLX_CONV_DESC_INIT                                             \
    {sizeof(rlx_conv_desc), {0, {0}}, {0, {0}}, {0, {0}}, {0, {0}}, 1}

/* Of rlx_conv_transpose. */
typedef struct rlx_conv_transpose_desc {
    uint32_t size;
    rlx_list kernel_size;
    rlx_list stride;
    rlx_list padding;
    rlx_list dilation;
    rlx_list output_padding;
    int64_t groups;
} rlx_conv_transpose_desc;
#define RLX_CONV_TRANSPOSE_DESC_INIT                                                       \
    {sizeof(rlx_conv_transpose_desc), {0, {0}}, {0, {0}}, {0, {0}}, {0, {0}}, {0, {0}}, 1}

/* Of rlx_pool. */
typedef struct rlx_pool_desc {
    uint32_t size;
    rlx_pool_kind kind; /* must be set */
    rlx_list kernel_size; /* must be set */
    rlx_list stride;
    rlx_list padding;
    bool count_include_pad;
} rlx_pool_desc;
#define RLX_POOL_DESC_INIT                                                         \
    {sizeof(rlx_pool_desc), (rlx_pool_kind)-1, {0, {0}}, {0, {0}}, {0, {0}}, true}

/* Of rlx_attention. */
typedef struct rlx_attention_desc {
    uint32_t size;
    int64_t num_heads; /* must be set */
    int64_t num_kv_heads;
    int64_t head_dim; /* must be set */
    rlx_mask_kind mask_kind;
    int64_t window;
    float score_scale;
    float logit_softcap;
    rlx_attention_layout layout;
    int64_t value_dim;
    bool has_sinks;
    float alibi_max_bias;
} rlx_attention_desc;
#define RLX_ATTENTION_DESC_INIT                                                            \
    {sizeof(rlx_attention_desc), RLX_ABSENT, RLX_ABSENT, RLX_ABSENT, RLX_MASK_KIND_none,   \
     RLX_ABSENT, RLX_ABSENT_F, RLX_ABSENT_F, RLX_ATTENTION_LAYOUT_auto, RLX_ABSENT, false, \
     RLX_ABSENT_F}

/* Of rlx_axial_rope_2d. */
typedef struct rlx_axial_rope_2d_desc {
    uint32_t size;
    int64_t end_x; /* must be set */
    int64_t end_y; /* must be set */
    int64_t head_dim; /* must be set */
    int64_t num_heads; /* must be set */
    float theta;
    int64_t repeat_factor;
} rlx_axial_rope_2d_desc;
#define RLX_AXIAL_ROPE_2D_DESC_INIT                                                            \
    {sizeof(rlx_axial_rope_2d_desc), RLX_ABSENT, RLX_ABSENT, RLX_ABSENT, RLX_ABSENT, 10000, 1}

/* Of rlx_lstm and rlx_gru and rlx_rnn. */
typedef struct rlx_recurrent_desc {
    uint32_t size;
    int64_t hidden_size; /* must be set */
    bool bidirectional;
    rlx_rnn_activation activation;
    bool has_state;
    bool has_lengths;
    rlx_rnn_result result;
} rlx_recurrent_desc;
#define RLX_RECURRENT_DESC_INIT                                                            \
    {sizeof(rlx_recurrent_desc), RLX_ABSENT, false, RLX_RNN_ACTIVATION_tanh, false, false, \
     RLX_RNN_RESULT_seq}

/* Of rlx_fused_conv_bias_act. */
typedef struct rlx_fused_conv_bias_act_desc {
    uint32_t size;
    rlx_list kernel_size;
    rlx_list stride;
    rlx_list padding;
    rlx_list dilation;
    int64_t groups;
    rlx_op activation;
    bool has_residual;
} rlx_fused_conv_bias_act_desc;
#define RLX_FUSED_CONV_BIAS_ACT_DESC_INIT                                             \
    {sizeof(rlx_fused_conv_bias_act_desc), {0, {0}}, {0, {0}}, {0, {0}}, {0, {0}}, 1, \
     RLX_OP_none, false}

/* Of rlx_fused_attention_block. */
typedef struct rlx_fused_attention_block_desc {
    uint32_t size;
    int64_t num_heads; /* must be set */
    int64_t num_kv_heads;
    int64_t head_dim; /* must be set */
    float score_scale;
    float logit_softcap;
    bool has_bias;
    bool has_rope;
} rlx_fused_attention_block_desc;
#define RLX_FUSED_ATTENTION_BLOCK_DESC_INIT                                                    \
    {sizeof(rlx_fused_attention_block_desc), RLX_ABSENT, RLX_ABSENT, RLX_ABSENT, RLX_ABSENT_F, \
     RLX_ABSENT_F, false, false}

/* Of rlx_fused_transformer_layer. */
typedef struct rlx_fused_transformer_layer_desc {
    uint32_t size;
    int64_t num_heads; /* must be set */
    int64_t head_dim; /* must be set */
    int64_t intermediate_size; /* must be set */
    float eps1;
    float eps2;
    rlx_op activation;
    bool has_bias;
} rlx_fused_transformer_layer_desc;
#define RLX_FUSED_TRANSFORMER_LAYER_DESC_INIT                                                    \
    {sizeof(rlx_fused_transformer_layer_desc), RLX_ABSENT, RLX_ABSENT, RLX_ABSENT, 1e-5f, 1e-5f, \
     RLX_OP_gelu, false}

/* Of rlx_scan. */
typedef struct rlx_scan_desc {
    uint32_t size;
    const rlx_graph *body; /* must be set */
    rlx_dim length; /* must be set */
    int64_t num_bcast;
    int64_t num_xs;
    bool save_trajectory;
    int64_t num_checkpoints;
} rlx_scan_desc;
#define RLX_SCAN_DESC_INIT                                        \
    {sizeof(rlx_scan_desc), NULL, RLX_DIM_FAILED, 0, 0, false, 0}

/* Of rlx_fake_quantize. */
typedef struct rlx_fake_quantize_desc {
    uint32_t size;
    int64_t bits;
    int64_t axis;
    rlx_ste_kind ste;
    rlx_scale_mode scale_mode;
    float decay;
} rlx_fake_quantize_desc;
#define RLX_FAKE_QUANTIZE_DESC_INIT                                        \
    {sizeof(rlx_fake_quantize_desc), 8, RLX_ABSENT, RLX_STE_KIND_identity, \
     RLX_SCALE_MODE_per_batch, 0.99f}

/* Of rlx_qconv_2d. */
typedef struct rlx_qconv_2d_desc {
    uint32_t size;
    rlx_list kernel_size;
    rlx_list stride;
    rlx_list padding;
    rlx_list dilation;
    int64_t groups;
    int64_t x_zp;
    int64_t w_zp;
    int64_t out_zp;
    float mult; /* must be set */
} rlx_qconv_2d_desc;
#define RLX_QCONV_2D_DESC_INIT                                                      \
    {sizeof(rlx_qconv_2d_desc), {0, {0}}, {0, {0}}, {0, {0}}, {0, {0}}, 1, 0, 0, 0, \
     RLX_ABSENT_F}

/* Of rlx_dequant_matmul. */
typedef struct rlx_dequant_matmul_desc {
    uint32_t size;
    rlx_quant_scheme scheme; /* must be set */
    int64_t block_size;
    int64_t k; /* must be set */
    int64_t n;
    rlx_act_precision act;
} rlx_dequant_matmul_desc;
#define RLX_DEQUANT_MATMUL_DESC_INIT                                                    \
    {sizeof(rlx_dequant_matmul_desc), (rlx_quant_scheme)-1, 32, RLX_ABSENT, RLX_ABSENT, \
     RLX_ACT_PRECISION_exact}

/* Of rlx_gaussian_splat_render and rlx_gaussian_splat_prepare. */
typedef struct rlx_gaussian_splat_desc {
    uint32_t size;
    int64_t width;
    int64_t height;
    int64_t tile_size;
    int64_t max_splat_steps;
    int64_t max_list_entries;
    float radius_scale;
    float alpha_cutoff;
    float transmittance_threshold;
} rlx_gaussian_splat_desc;
#define RLX_GAUSSIAN_SPLAT_DESC_INIT                                                  \
    {sizeof(rlx_gaussian_splat_desc), 64, 64, 16, 32, 576, 1.6f, 0.003921569f, 0.01f}

/* Of rlx_gaussian_splat_rasterize. */
typedef struct rlx_gaussian_splat_rasterize_desc {
    uint32_t size;
    int64_t width;
    int64_t height;
    int64_t tile_size;
    int64_t max_splat_steps;
    int64_t max_list_entries;
    float alpha_cutoff;
    float transmittance_threshold;
} rlx_gaussian_splat_rasterize_desc;
#define RLX_GAUSSIAN_SPLAT_RASTERIZE_DESC_INIT                                            \
    {sizeof(rlx_gaussian_splat_rasterize_desc), 64, 64, 16, 32, 576, 0.003921569f, 0.01f}

/* Of rlx_conv_backward_input. */
typedef struct rlx_conv_backward_input_desc {
    uint32_t size;
    rlx_list kernel_size;
    rlx_list stride;
    rlx_list padding;
    rlx_list dilation;
    int64_t groups;
    rlx_list x_shape; /* must be set */
} rlx_conv_backward_input_desc;
#define RLX_CONV_BACKWARD_INPUT_DESC_INIT                                                       \
    {sizeof(rlx_conv_backward_input_desc), {0, {0}}, {0, {0}}, {0, {0}}, {0, {0}}, 1, {0, {0}}}

/* Of rlx_conv_backward_weight. */
typedef struct rlx_conv_backward_weight_desc {
    uint32_t size;
    rlx_list kernel_size; /* must be set */
    rlx_list stride;
    rlx_list padding;
    rlx_list dilation;
    int64_t groups;
} rlx_conv_backward_weight_desc;
#define RLX_CONV_BACKWARD_WEIGHT_DESC_INIT                                             \
    {sizeof(rlx_conv_backward_weight_desc), {0, {0}}, {0, {0}}, {0, {0}}, {0, {0}}, 1}

/* Of rlx_attention_backward. */
typedef struct rlx_attention_backward_desc {
    uint32_t size;
    int64_t num_heads; /* must be set */
    int64_t num_kv_heads;
    int64_t head_dim; /* must be set */
    rlx_mask_kind mask_kind;
    int64_t window;
    float score_scale;
    float logit_softcap;
    rlx_attention_layout layout;
    rlx_attention_wrt wrt; /* must be set */
    int64_t value_dim;
    bool has_sinks;
    float alibi_max_bias;
} rlx_attention_backward_desc;
#define RLX_ATTENTION_BACKWARD_DESC_INIT                                                    \
    {sizeof(rlx_attention_backward_desc), RLX_ABSENT, RLX_ABSENT, RLX_ABSENT,               \
     RLX_MASK_KIND_none, RLX_ABSENT, RLX_ABSENT_F, RLX_ABSENT_F, RLX_ATTENTION_LAYOUT_auto, \
     (rlx_attention_wrt)-1, RLX_ABSENT, false, RLX_ABSENT_F}

/* Of rlx_scan_backward and rlx_scan_backward_xs. */
typedef struct rlx_scan_backward_desc {
    uint32_t size;
    const rlx_graph *body; /* must be set */
    const rlx_graph *body_vjp; /* must be set */
    rlx_dim length; /* must be set */
    int64_t num_xs;
    bool save_trajectory;
    int64_t num_checkpoints;
    int64_t xs_idx;
} rlx_scan_backward_desc;
#define RLX_SCAN_BACKWARD_DESC_INIT                                              \
    {sizeof(rlx_scan_backward_desc), NULL, NULL, RLX_DIM_FAILED, 0, false, 0, 0}

/* Of rlx_gaussian_splat_render_backward. */
typedef struct rlx_gaussian_splat_render_backward_desc {
    uint32_t size;
    int64_t width;
    int64_t height;
    int64_t tile_size;
    int64_t max_splat_steps;
    int64_t max_list_entries;
    float radius_scale;
    float alpha_cutoff;
    float transmittance_threshold;
    float loss_grad_clip;
    int64_t sh_band;
    float max_anisotropy;
} rlx_gaussian_splat_render_backward_desc;
#define RLX_GAUSSIAN_SPLAT_RENDER_BACKWARD_DESC_INIT                                           \
    {sizeof(rlx_gaussian_splat_render_backward_desc), 64, 64, 16, 32, 576, 1.6f, 0.003921569f, \
     0.01f, 1, 0, 10}

/* a + b */
RLX_API rlx_value rlx_add(rlx_graph *g, rlx_value a, rlx_value b);
/* a - b */
RLX_API rlx_value rlx_sub(rlx_graph *g, rlx_value a, rlx_value b);
/* a * b */
RLX_API rlx_value rlx_mul(rlx_graph *g, rlx_value a, rlx_value b);
/* a / b; integers truncate, x / 0 = 0 */
RLX_API rlx_value rlx_div(rlx_graph *g, rlx_value a, rlx_value b);
/* the larger; NaN propagates */
RLX_API rlx_value rlx_max(rlx_graph *g, rlx_value a, rlx_value b);
/* the smaller; NaN propagates */
RLX_API rlx_value rlx_min(rlx_graph *g, rlx_value a, rlx_value b);
/* a to the power b */
RLX_API rlx_value rlx_pow(rlx_graph *g, rlx_value a, rlx_value b);
/* remainder with the sign of a */
RLX_API rlx_value rlx_mod(rlx_graph *g, rlx_value a, rlx_value b);
/* the angle of (b, a) */
RLX_API rlx_value rlx_atan2(rlx_graph *g, rlx_value a, rlx_value b);
/* bitwise and */
RLX_API rlx_value rlx_bit_and(rlx_graph *g, rlx_value a, rlx_value b);
/* bitwise or */
RLX_API rlx_value rlx_bit_or(rlx_graph *g, rlx_value a, rlx_value b);
/* bitwise exclusive or */
RLX_API rlx_value rlx_bit_xor(rlx_graph *g, rlx_value a, rlx_value b);
/* a shifted left by b */
RLX_API rlx_value rlx_shl(rlx_graph *g, rlx_value a, rlx_value b);
/* a shifted right by b, arithmetic on signed types */
RLX_API rlx_value rlx_shr(rlx_graph *g, rlx_value a, rlx_value b);
/* a = b */
RLX_API rlx_value rlx_eq(rlx_graph *g, rlx_value a, rlx_value b);
/* a differs from b, or either is NaN */
RLX_API rlx_value rlx_ne(rlx_graph *g, rlx_value a, rlx_value b);
/* a < b */
RLX_API rlx_value rlx_lt(rlx_graph *g, rlx_value a, rlx_value b);
/* a <= b */
RLX_API rlx_value rlx_le(rlx_graph *g, rlx_value a, rlx_value b);
/* a > b */
RLX_API rlx_value rlx_gt(rlx_graph *g, rlx_value a, rlx_value b);
/* a >= b */
RLX_API rlx_value rlx_ge(rlx_graph *g, rlx_value a, rlx_value b);
/* max(x, 0) */
RLX_API rlx_value rlx_relu(rlx_graph *g, rlx_value x);
/* 1 / (1 + e^-x) */
RLX_API rlx_value rlx_sigmoid(rlx_graph *g, rlx_value x);
/* hyperbolic tangent */
RLX_API rlx_value rlx_tanh(rlx_graph *g, rlx_value x);
/* e^x */
RLX_API rlx_value rlx_exp(rlx_graph *g, rlx_value x);
/* natural logarithm */
RLX_API rlx_value rlx_log(rlx_graph *g, rlx_value x);
/* square root */
RLX_API rlx_value rlx_sqrt(rlx_graph *g, rlx_value x);
/* 1 / square root */
RLX_API rlx_value rlx_rsqrt(rlx_graph *g, rlx_value x);
/* -x */
RLX_API rlx_value rlx_neg(rlx_graph *g, rlx_value x);
/* absolute value */
RLX_API rlx_value rlx_abs(rlx_graph *g, rlx_value x);
/* x * Phi(x), exact (erf) */
RLX_API rlx_value rlx_gelu(rlx_graph *g, rlx_value x);
/* gelu by its tanh formula */
RLX_API rlx_value rlx_gelu_approx(rlx_graph *g, rlx_value x);
/* x * sigmoid(x) */
RLX_API rlx_value rlx_silu(rlx_graph *g, rlx_value x);
/* nearest integer, ties to even */
RLX_API rlx_value rlx_round(rlx_graph *g, rlx_value x);
/* sine */
RLX_API rlx_value rlx_sin(rlx_graph *g, rlx_value x);
/* cosine */
RLX_API rlx_value rlx_cos(rlx_graph *g, rlx_value x);
/* tangent */
RLX_API rlx_value rlx_tan(rlx_graph *g, rlx_value x);
/* arc tangent */
RLX_API rlx_value rlx_atan(rlx_graph *g, rlx_value x);
/* 1 / x */
RLX_API rlx_value rlx_recip(rlx_graph *g, rlx_value x);
/* round down */
RLX_API rlx_value rlx_floor(rlx_graph *g, rlx_value x);
/* round up */
RLX_API rlx_value rlx_ceil(rlx_graph *g, rlx_value x);
/* -1, 0 or 1; NaN stays */
RLX_API rlx_value rlx_sign(rlx_graph *g, rlx_value x);
/* ln(1 + e^x) */
RLX_API rlx_value rlx_softplus(rlx_graph *g, rlx_value x);
/* x if x > 0 else e^x - 1 */
RLX_API rlx_value rlx_elu(rlx_graph *g, rlx_value x);
/* error function */
RLX_API rlx_value rlx_erf(rlx_graph *g, rlx_value x);
/* x * clamp(x + 3, 0, 6) / 6 */
RLX_API rlx_value rlx_hard_swish(rlx_graph *g, rlx_value x);
/* clamp(x / 6 + 1/2, 0, 1) */
RLX_API rlx_value rlx_hard_sigmoid(rlx_graph *g, rlx_value x);
/* x * tanh(softplus(x)) */
RLX_API rlx_value rlx_mish(rlx_graph *g, rlx_value x);
/* x / (1 + |x|) */
RLX_API rlx_value rlx_softsign(rlx_graph *g, rlx_value x);
/* ln(sigmoid(x)) */
RLX_API rlx_value rlx_log_sigmoid(rlx_graph *g, rlx_value x);
/* logical negation */
RLX_API rlx_value rlx_not(rlx_graph *g, rlx_value x);
/* convert the element type */
RLX_API rlx_value rlx_cast(rlx_graph *g, rlx_value x, rlx_dtype to);
/* the same bits as another type of that size */
RLX_API rlx_value rlx_bitcast(rlx_graph *g, rlx_value x, rlx_dtype to);
/* a where cond holds, else b */
RLX_API rlx_value rlx_where(rlx_graph *g, rlx_value cond, rlx_value a, rlx_value b);
/* min(max(x, min), max) */
RLX_API rlx_value rlx_clamp(rlx_graph *g, rlx_value x, double min, double max);
/* a * b + c, rounded once */
RLX_API rlx_value rlx_fma(rlx_graph *g, rlx_value a, rlx_value b, rlx_value c);
/* x; no gradient flows */
RLX_API rlx_value rlx_stop_gradient(rlx_graph *g, rlx_value x);
/* re^2 + im^2 */
RLX_API rlx_value rlx_complex_norm_sq(rlx_graph *g, rlx_value z);
/* complex conjugate */
RLX_API rlx_value rlx_conjugate(rlx_graph *g, rlx_value z);
/* the same elements in another shape */
RLX_API rlx_value rlx_reshape(rlx_graph *g, rlx_value x, rlx_list shape);
/* reorder the axes */
RLX_API rlx_value rlx_transpose(rlx_graph *g, rlx_value x, rlx_list perm);
/* a contiguous part along one axis */
RLX_API rlx_value rlx_narrow(rlx_graph *g, rlx_value x, int64_t axis, rlx_dim start, rlx_dim len);
/* the parts one after another along an axis */
RLX_API rlx_value rlx_concat(rlx_graph *g, const rlx_value *parts, size_t parts_count,
                            int64_t axis);
/* broadcast to a shape */
RLX_API rlx_value rlx_expand(rlx_graph *g, rlx_value x, rlx_list shape);
/* every step-th element along an axis */
RLX_API rlx_value rlx_slice(rlx_graph *g, rlx_value x, int64_t axis, rlx_dim start, rlx_dim len,
                            int64_t step);
/* back to front along the axes */
RLX_API rlx_value rlx_reverse(rlx_graph *g, rlx_value x, rlx_list axes);
/* add elements around */
RLX_API rlx_value rlx_pad(rlx_graph *g, rlx_value x, rlx_list before, rlx_list after,
                          rlx_pad_mode mode, double value);
/* repeat along each axis */
RLX_API rlx_value rlx_tile(rlx_graph *g, rlx_value x, rlx_list reps);
/* keep a triangle of the last two axes */
RLX_API rlx_value rlx_trilu(rlx_graph *g, rlx_value x, bool upper, int64_t diagonal);
/* each pixel becomes 2 x 2 */
RLX_API rlx_value rlx_resize_nearest_2x(rlx_graph *g, rlx_value x);
/* nearest-neighbour resize of a volume */
RLX_API rlx_value rlx_interpolate_3d(rlx_graph *g, rlx_value x, rlx_list size);
/* slices of a table picked by index */
RLX_API rlx_value rlx_gather(rlx_graph *g, rlx_value table, rlx_value indices, int64_t axis);
/* sum updates into rows of zeros */
RLX_API rlx_value rlx_scatter_add(rlx_graph *g, rlx_value updates, rlx_value indices,
                            rlx_dim out_dim);
/* pick single elements along an axis */
RLX_API rlx_value rlx_gather_elements(rlx_graph *g, rlx_value data, rlx_value indices,
                            int64_t axis);
/* pick slices by coordinate */
RLX_API rlx_value rlx_gather_nd(rlx_graph *g, rlx_value data, rlx_value indices,
                            int64_t batch_dims);
/* write single elements along an axis */
RLX_API rlx_value rlx_scatter_elements(rlx_graph *g, rlx_value data, rlx_value indices,
                            rlx_value updates, int64_t axis, rlx_scatter_reduction reduction);
/* write slices by coordinate */
RLX_API rlx_value rlx_scatter_nd(rlx_graph *g, rlx_value data, rlx_value indices, rlx_value updates,
                            rlx_scatter_reduction reduction);
/* write rows into a state, in place */
RLX_API rlx_value rlx_cache_append(rlx_graph *g, rlx_value state, rlx_value rows,
                            rlx_value position, int64_t axis);
/* sum over axes */
RLX_API rlx_value rlx_reduce_sum(rlx_graph *g, rlx_value x, rlx_list axes, bool keep_dim);
/* mean over axes */
RLX_API rlx_value rlx_reduce_mean(rlx_graph *g, rlx_value x, rlx_list axes, bool keep_dim);
/* maximum over axes; NaN propagates */
RLX_API rlx_value rlx_reduce_max(rlx_graph *g, rlx_value x, rlx_list axes, bool keep_dim);
/* minimum over axes; NaN propagates */
RLX_API rlx_value rlx_reduce_min(rlx_graph *g, rlx_value x, rlx_list axes, bool keep_dim);
/* product over axes */
RLX_API rlx_value rlx_reduce_prod(rlx_graph *g, rlx_value x, rlx_list axes, bool keep_dim);
/* index of the largest; NaN wins */
RLX_API rlx_value rlx_argmax(rlx_graph *g, rlx_value x, int64_t axis, bool keep_dim,
                            rlx_dtype index_dtype);
/* index of the smallest; NaN wins */
RLX_API rlx_value rlx_argmin(rlx_graph *g, rlx_value x, int64_t axis, bool keep_dim,
                            rlx_dtype index_dtype);
/* the k largest, in order */
RLX_API rlx_value rlx_topk(rlx_graph *g, rlx_value x, int64_t k, int64_t axis,
                           rlx_topk_result result, rlx_dtype index_dtype);
/* stable sort along an axis */
RLX_API rlx_value rlx_sort(rlx_graph *g, rlx_value x, int64_t axis, bool descending);
/* the order a stable sort would give */
RLX_API rlx_value rlx_argsort(rlx_graph *g, rlx_value x, int64_t axis, bool descending,
                            rlx_dtype index_dtype);
/* exp(x - max) / its sum; all -Inf gives zeros */
RLX_API rlx_value rlx_softmax(rlx_graph *g, rlx_value x, int64_t axis);
/* running sum */
RLX_API rlx_value rlx_cumsum(rlx_graph *g, rlx_value x, int64_t axis, bool exclusive);
/* running product */
RLX_API rlx_value rlx_cumprod(rlx_graph *g, rlx_value x, int64_t axis, bool exclusive);
/* running maximum; NaN sticks */
RLX_API rlx_value rlx_cummax(rlx_graph *g, rlx_value x, int64_t axis, bool exclusive);
/* draw one index per row of logits */
RLX_API rlx_value rlx_sample(rlx_graph *g, rlx_value logits, rlx_value offset,
                            const rlx_sample_desc *desc);
/* normal random numbers, f32 */
RLX_API rlx_value rlx_rng_normal(rlx_graph *g, rlx_value offset, rlx_list shape, float mean,
                            float scale, uint64_t seed);
/* uniform random numbers, f32 */
RLX_API rlx_value rlx_rng_uniform(rlx_graph *g, rlx_value offset, rlx_list shape, float low,
                            float high, uint64_t seed);
/* batched matrix product */
RLX_API rlx_value rlx_matmul(rlx_graph *g, rlx_value a, rlx_value b, bool transpose_a,
                            bool transpose_b);
/* contraction over any axes */
RLX_API rlx_value rlx_dot_general(rlx_graph *g, rlx_value a, rlx_value b, rlx_list lhs_contracting,
                            rlx_list rhs_contracting, rlx_list lhs_batch, rlx_list rhs_batch);
/* each row times its expert's matrix */
RLX_API rlx_value rlx_grouped_matmul(rlx_graph *g, rlx_value x, rlx_value w, rlx_value expert);
/* x w + scale (x a) b */
RLX_API rlx_value rlx_lora_matmul(rlx_graph *g, rlx_value x, rlx_value w, rlx_value a, rlx_value b,
                            float scale);
/* solve a x = b by LU */
RLX_API rlx_value rlx_dense_solve(rlx_graph *g, rlx_value a, rlx_value b);
/* the same per batch item */
RLX_API rlx_value rlx_batched_dense_solve(rlx_graph *g, rlx_value a, rlx_value b);
/* lower L with a = L L^T */
RLX_API rlx_value rlx_cholesky(rlx_graph *g, rlx_value a);
/* solve with a triangle of a */
RLX_API rlx_value rlx_triangular_solve(rlx_graph *g, rlx_value a, rlx_value b, bool lower,
                            bool transpose);
/* determinant */
RLX_API rlx_value rlx_det(rlx_graph *g, rlx_value a);
/* ln |determinant| */
RLX_API rlx_value rlx_logdet(rlx_graph *g, rlx_value a);
/* thin singular value decomposition, one part */
RLX_API rlx_value rlx_svd(rlx_graph *g, rlx_value a, rlx_svd_part part);
/* thin QR decomposition, one part */
RLX_API rlx_value rlx_qr(rlx_graph *g, rlx_value a, rlx_qr_part part);
/* eigenvalues, then eigenvectors, of a symmetric matrix */
RLX_API rlx_value rlx_eigh(rlx_graph *g, rlx_value a);
/* the same per batch item */
RLX_API rlx_value rlx_eigh_batch(rlx_graph *g, rlx_value a);
/* zero mean, unit variance, scale and shift */
RLX_API rlx_value rlx_layer_norm(rlx_graph *g, rlx_value x, rlx_value gamma, rlx_value beta,
                            int64_t axis, float eps);
/* unit root mean square, scale and shift */
RLX_API rlx_value rlx_rms_norm(rlx_graph *g, rlx_value x, rlx_value gamma, rlx_value beta,
                            int64_t axis, float eps);
/* layer norm over groups of channels */
RLX_API rlx_value rlx_group_norm(rlx_graph *g, rlx_value x, rlx_value gamma, rlx_value beta,
                            int64_t num_groups, float eps);
/* layer norm over the channels of an image */
RLX_API rlx_value rlx_layer_norm_2d(rlx_graph *g, rlx_value x, rlx_value gamma, rlx_value beta,
                            float eps);
/* normalise with given statistics */
RLX_API rlx_value rlx_batch_norm_inference(rlx_graph *g, rlx_value x, rlx_value gamma,
                            rlx_value beta, rlx_value mean, rlx_value var, int64_t axis, float eps);
/* norm(x) (1 + scale) + shift */
RLX_API rlx_value rlx_ada_layer_norm(rlx_graph *g, rlx_value x, rlx_value scale, rlx_value shift,
                            rlx_norm_kind norm, float eps);
/* x + gate y */
RLX_API rlx_value rlx_gated_residual(rlx_graph *g, rlx_value x, rlx_value y, rlx_value gate);
/* convolution, channels first */
RLX_API rlx_value rlx_conv(rlx_graph *g, rlx_value x, rlx_value w, const rlx_conv_desc *desc);
/* transposed convolution */
RLX_API rlx_value rlx_conv_transpose(rlx_graph *g, rlx_value x, rlx_value w,
                            const rlx_conv_transpose_desc *desc);
/* sum, mean, max, min or product of each window */
RLX_API rlx_value rlx_pool(rlx_graph *g, rlx_value x, const rlx_pool_desc *desc);
/* each window of an image as a row */
RLX_API rlx_value rlx_im2col(rlx_graph *g, rlx_value x, rlx_list kernel_size, rlx_list stride,
                            rlx_list padding, rlx_list dilation);
/* softmax(scale q k^T + mask) v */
RLX_API rlx_value rlx_attention(rlx_graph *g, rlx_value q, rlx_value k, rlx_value v, rlx_value mask,
                            const rlx_attention_desc *desc);
/* softmax(scale q k^T + mask) v, with sinks */
RLX_API rlx_value rlx_attention_with_sinks(rlx_graph *g, rlx_value q, rlx_value k, rlx_value v,
                            rlx_value mask, rlx_value sinks, const rlx_attention_desc *desc);
/* turn pairs of channels by the tables' angles */
RLX_API rlx_value rlx_rope(rlx_graph *g, rlx_value x, rlx_value cos, rlx_value sin,
                           int64_t head_dim, int64_t n_rot, rlx_rope_style style, int64_t seq_axis);
/* rotary embedding on a grid */
RLX_API rlx_value rlx_axial_rope_2d(rlx_graph *g, rlx_value x, const rlx_axial_rope_2d_desc *desc);
/* selective state-space scan; with carry it writes its state */
RLX_API rlx_value rlx_selective_scan(rlx_graph *g, rlx_value x, rlx_value delta, rlx_value a,
                            rlx_value b, rlx_value c, rlx_value state, int64_t state_size,
                            bool carry_state);
/* gated delta rule; with carry it writes its state */
RLX_API rlx_value rlx_gated_delta_net(rlx_graph *g, rlx_value q, rlx_value k, rlx_value v,
                            rlx_value decay, rlx_value beta, rlx_value state, int64_t state_size,
                            bool carry_state);
/* state-space duality layer; with carry it writes its state */
RLX_API rlx_value rlx_mamba2(rlx_graph *g, rlx_value x, rlx_value dt, rlx_value a, rlx_value b,
                            rlx_value c, rlx_value state, int64_t head_dim, int64_t state_size,
                            bool carry_state, int64_t groups);
/* each channel with its taps along time; with carry it keeps its last rows */
RLX_API rlx_value rlx_causal_conv(rlx_graph *g, rlx_value x, rlx_value w, rlx_value state,
                            rlx_value bias, rlx_op activation, bool carry_state);
/* long short-term memory layer */
RLX_API rlx_value rlx_lstm(rlx_graph *g, rlx_value x, rlx_value w_ih, rlx_value w_hh,
                           rlx_value b_ih, rlx_value b_hh, rlx_value h0, rlx_value c0,
                           rlx_value lengths, const rlx_recurrent_desc *desc);
/* gated recurrent unit layer */
RLX_API rlx_value rlx_gru(rlx_graph *g, rlx_value x, rlx_value w_ih, rlx_value w_hh, rlx_value b_ih,
                          rlx_value b_hh, rlx_value h0, rlx_value lengths,
                          const rlx_recurrent_desc *desc);
/* plain recurrent layer */
RLX_API rlx_value rlx_rnn(rlx_graph *g, rlx_value x, rlx_value w_ih, rlx_value w_hh, rlx_value b_ih,
                          rlx_value b_hh, rlx_value h0, rlx_value lengths,
                          const rlx_recurrent_desc *desc);
/* Fourier transform along the last axis */
RLX_API rlx_value rlx_fft(rlx_graph *g, rlx_value x, bool inverse, rlx_fft_norm norm);
/* log mel features of spectra */
RLX_API rlx_value rlx_log_mel(rlx_graph *g, rlx_value spec, rlx_value filt);
/* strongest bins of an averaged spectrum */
RLX_API rlx_value rlx_welch_peaks(rlx_graph *g, rlx_value spec, int64_t k, int64_t n_segments);
/* act(a b + bias) */
RLX_API rlx_value rlx_fused_matmul_bias_act(rlx_graph *g, rlx_value a, rlx_value b, rlx_value bias,
                            rlx_op activation, bool transpose_a, bool transpose_b);
/* act(conv(x, w) + bias + residual) */
RLX_API rlx_value rlx_fused_conv_bias_act(rlx_graph *g, rlx_value x, rlx_value w, rlx_value bias,
                            rlx_value residual, const rlx_fused_conv_bias_act_desc *desc);
/* layer norm of x + residual + bias */
RLX_API rlx_value rlx_fused_residual_ln(rlx_graph *g, rlx_value x, rlx_value residual,
                            rlx_value bias, rlx_value gamma, rlx_value beta, bool has_bias,
                            float eps);
/* rms norm of x + residual + bias */
RLX_API rlx_value rlx_fused_residual_rms_norm(rlx_graph *g, rlx_value x, rlx_value residual,
                            rlx_value bias, rlx_value gamma, rlx_value beta, bool has_bias,
                            float eps);
/* silu(gate half) times the other half */
RLX_API rlx_value rlx_fused_swiglu(rlx_graph *g, rlx_value packed, bool gate_first,
                            rlx_dtype cast_to);
/* project, rotate, attend, project */
RLX_API rlx_value rlx_fused_attention_block(rlx_graph *g, rlx_value hidden, rlx_value qkv_w,
                            rlx_value out_w, rlx_value mask, rlx_value qkv_b, rlx_value out_b,
                            rlx_value cos, rlx_value sin,
                            const rlx_fused_attention_block_desc *desc);
/* a post-norm transformer layer */
RLX_API rlx_value rlx_fused_transformer_layer(rlx_graph *g, rlx_value hidden, rlx_value qkv_w,
                            rlx_value qkv_b, rlx_value out_w, rlx_value out_b, rlx_value ln1_g,
                            rlx_value ln1_b, rlx_value fc1_w, rlx_value fc1_b, rlx_value fc2_w,
                            rlx_value fc2_b, rlx_value ln2_g, rlx_value ln2_b, rlx_value mask,
                            const rlx_fused_transformer_layer_desc *desc);
/* a chain of elementwise ops in one pass */
RLX_API rlx_value rlx_elementwise_region(rlx_graph *g, const rlx_value *inputs, size_t inputs_count,
                            const rlx_chain_step *chain, size_t chain_count,
                            rlx_region_prologue prologue, int64_t prologue_input);
/* one chain on several inputs, results stacked */
RLX_API rlx_value rlx_batch_elementwise_region(rlx_graph *g, const rlx_value *inputs,
                            size_t inputs_count, const rlx_chain_step *chain, size_t chain_count,
                            rlx_region_prologue prologue);
/* a chain of geometric steps */
RLX_API rlx_value rlx_transform_region(rlx_graph *g, rlx_value x, const rlx_chain_step *chain,
                            size_t chain_count);
/* one of two sub-graphs */
RLX_API rlx_value rlx_if(rlx_graph *g, rlx_value predicate, const rlx_value *captures,
                         size_t captures_count, const rlx_graph *then_graph,
                         const rlx_graph *else_graph, int64_t result);
/* repeat a sub-graph while another holds */
RLX_API rlx_value rlx_while(rlx_graph *g, const rlx_value *values, size_t values_count,
                            const rlx_graph *cond_graph, const rlx_graph *body_graph,
                            int64_t max_iterations, int64_t result);
/* carry a value through a sequence */
RLX_API rlx_value rlx_scan(rlx_graph *g, rlx_value init, const rlx_value *bcasts_and_xs,
                           size_t bcasts_and_xs_count, const rlx_scan_desc *desc);
/* an op the program registered */
RLX_API rlx_value rlx_custom(rlx_graph *g, const rlx_value *inputs, size_t inputs_count,
                            const char *name, const void *attrs, size_t attrs_count);
/* a sub-graph with its own derivative */
RLX_API rlx_value rlx_custom_fn(rlx_graph *g, const rlx_value *inputs, size_t inputs_count,
                            const rlx_graph *fwd_graph, const rlx_graph *vjp_graph,
                            const rlx_graph *jvp_graph);
/* lse(x) - x[label] per row */
RLX_API rlx_value rlx_softmax_cross_entropy_with_logits(rlx_graph *g, rlx_value logits,
                            rlx_value labels);
/* -sum t (x - lse(x)) per row */
RLX_API rlx_value rlx_softmax_cross_entropy(rlx_graph *g, rlx_value logits, rlx_value targets);
/* float to i8 by scale and zero point */
RLX_API rlx_value rlx_quantize(rlx_graph *g, rlx_value x, int64_t axis, const float *scales,
                            size_t scales_count, const float *zero_points,
                            size_t zero_points_count);
/* i8 to f32 by scale and zero point */
RLX_API rlx_value rlx_dequantize(rlx_graph *g, rlx_value q, int64_t axis, const float *scales,
                            size_t scales_count, const float *zero_points,
                            size_t zero_points_count);
/* quantise and dequantise; ema writes its state */
RLX_API rlx_value rlx_fake_quantize(rlx_graph *g, rlx_value x, rlx_value scales,
                            const rlx_fake_quantize_desc *desc);
/* fake quantisation with a learned scale */
RLX_API rlx_value rlx_fake_quantize_lsq(rlx_graph *g, rlx_value x, rlx_value scale, int64_t bits,
                            int64_t axis);
/* i8 matrix product with rescaling */
RLX_API rlx_value rlx_qmatmul(rlx_graph *g, rlx_value x, rlx_value w, rlx_value bias, int64_t x_zp,
                            int64_t w_zp, int64_t out_zp, float mult);
/* i8 convolution with rescaling */
RLX_API rlx_value rlx_qconv_2d(rlx_graph *g, rlx_value x, rlx_value w, rlx_value bias,
                            const rlx_qconv_2d_desc *desc);
/* product with a packed weight */
RLX_API rlx_value rlx_dequant_matmul(rlx_graph *g, rlx_value x, rlx_value w, rlx_value scale,
                            rlx_value zp, const rlx_dequant_matmul_desc *desc);
/* each row times its expert's packed weight */
RLX_API rlx_value rlx_dequant_grouped_matmul(rlx_graph *g, rlx_value x, rlx_value w,
                            rlx_value expert, rlx_quant_scheme scheme, int64_t k,
                            rlx_act_precision act);
/* packed expert weights as f32 */
RLX_API rlx_value rlx_dequant_moe_weights(rlx_graph *g, rlx_value w, rlx_quant_scheme scheme,
                            int64_t k);
/* rows of a packed table as f32 */
RLX_API rlx_value rlx_dequant_gather(rlx_graph *g, rlx_value table, rlx_value indices,
                            rlx_quant_scheme scheme, int64_t k);
/* choose experts, best groups first */
RLX_API rlx_value rlx_group_limited_gate(rlx_graph *g, rlx_value sig, rlx_value route,
                            int64_t n_group, int64_t topk_group, int64_t top_k, float scaling);
/* nearest neighbours from a distance matrix */
RLX_API rlx_value rlx_knn(rlx_graph *g, rlx_value d, int64_t k);
/* render splats to RGBA */
RLX_API rlx_value rlx_gaussian_splat_render(rlx_graph *g, rlx_value positions, rlx_value scales,
                            rlx_value rotations, rlx_value opacities, rlx_value colors,
                            rlx_value sh_coeffs, rlx_value meta,
                            const rlx_gaussian_splat_desc *desc);
/* project, sort and bin splats */
RLX_API rlx_value rlx_gaussian_splat_prepare(rlx_graph *g, rlx_value positions, rlx_value scales,
                            rlx_value rotations, rlx_value opacities, rlx_value colors,
                            rlx_value sh_coeffs, rlx_value meta,
                            const rlx_gaussian_splat_desc *desc);
/* composite prepared splats */
RLX_API rlx_value rlx_gaussian_splat_rasterize(rlx_graph *g, rlx_value prep, rlx_value meta,
                            const rlx_gaussian_splat_rasterize_desc *desc);
/* gradient of relu */
RLX_API rlx_value rlx_relu_backward(rlx_graph *g, rlx_value x, rlx_value dy);
/* gradient of a unary op */
RLX_API rlx_value rlx_activation_backward(rlx_graph *g, rlx_value x, rlx_value dy, rlx_op kind);
/* the real part: gradient of a cast to c64 */
RLX_API rlx_value rlx_complex_real(rlx_graph *g, rlx_value z);
/* gradient of gather for the table */
RLX_API rlx_value rlx_gather_backward(rlx_graph *g, rlx_value dy, rlx_value indices, int64_t axis,
                            rlx_dim table_dim);
/* running sum from the end */
RLX_API rlx_value rlx_cumsum_backward(rlx_graph *g, rlx_value dy, int64_t axis, bool exclusive);
/* gradient of grouped_matmul for w */
RLX_API rlx_value rlx_grouped_matmul_backward_weight(rlx_graph *g, rlx_value x, rlx_value dy,
                            rlx_value expert, rlx_dim experts);
/* gradient of layer_norm for x */
RLX_API rlx_value rlx_layer_norm_backward_input(rlx_graph *g, rlx_value x, rlx_value gamma,
                            rlx_value dy, int64_t axis, float eps);
/* gradient of layer_norm for gamma */
RLX_API rlx_value rlx_layer_norm_backward_gamma(rlx_graph *g, rlx_value x, rlx_value dy,
                            int64_t axis, float eps);
/* gradient of rms_norm for x */
RLX_API rlx_value rlx_rms_norm_backward_input(rlx_graph *g, rlx_value x, rlx_value gamma,
                            rlx_value beta, rlx_value dy, int64_t axis, float eps);
/* gradient of rms_norm for gamma */
RLX_API rlx_value rlx_rms_norm_backward_gamma(rlx_graph *g, rlx_value x, rlx_value gamma,
                            rlx_value beta, rlx_value dy, int64_t axis, float eps);
/* gradient of rms_norm for beta */
RLX_API rlx_value rlx_rms_norm_backward_beta(rlx_graph *g, rlx_value x, rlx_value gamma,
                            rlx_value beta, rlx_value dy, int64_t axis, float eps);
/* gradient of group_norm for x */
RLX_API rlx_value rlx_group_norm_backward_input(rlx_graph *g, rlx_value x, rlx_value gamma,
                            rlx_value dy, int64_t num_groups, float eps);
/* gradient of group_norm for gamma */
RLX_API rlx_value rlx_group_norm_backward_gamma(rlx_graph *g, rlx_value x, rlx_value dy,
                            int64_t num_groups, float eps);
/* gradient of group_norm for beta */
RLX_API rlx_value rlx_group_norm_backward_beta(rlx_graph *g, rlx_value x, rlx_value dy,
                            int64_t num_groups, float eps);
/* gradient of batch_norm_inference for x */
RLX_API rlx_value rlx_batch_norm_inference_backward_input(rlx_graph *g, rlx_value x,
                            rlx_value gamma, rlx_value mean, rlx_value var, rlx_value dy,
                            int64_t axis, float eps);
/* gradient of batch_norm_inference for gamma */
RLX_API rlx_value rlx_batch_norm_inference_backward_gamma(rlx_graph *g, rlx_value x, rlx_value mean,
                            rlx_value var, rlx_value dy, int64_t axis, float eps);
/* gradient of batch_norm_inference for beta */
RLX_API rlx_value rlx_batch_norm_inference_backward_beta(rlx_graph *g, rlx_value x, rlx_value dy,
                            int64_t axis, float eps);
/* gradients of ada_layer_norm, packed flat */
RLX_API rlx_value rlx_ada_layer_norm_backward(rlx_graph *g, rlx_value x, rlx_value scale,
                            rlx_value shift, rlx_value dy, rlx_norm_kind norm, float eps);
/* gradients of gated_residual, packed flat */
RLX_API rlx_value rlx_gated_residual_backward(rlx_graph *g, rlx_value x, rlx_value y,
                            rlx_value gate, rlx_value dy);
/* gradient of conv for x */
RLX_API rlx_value rlx_conv_backward_input(rlx_graph *g, rlx_value dy, rlx_value w,
                            const rlx_conv_backward_input_desc *desc);
/* gradient of conv for w */
RLX_API rlx_value rlx_conv_backward_weight(rlx_graph *g, rlx_value x, rlx_value dy,
                            const rlx_conv_backward_weight_desc *desc);
/* gradient of max pooling */
RLX_API rlx_value rlx_max_pool_backward(rlx_graph *g, rlx_value x, rlx_value dy,
                            rlx_list kernel_size, rlx_list stride, rlx_list padding);
/* gradient of attention for one operand */
RLX_API rlx_value rlx_attention_backward(rlx_graph *g, rlx_value q, rlx_value k, rlx_value v,
                            rlx_value dy, rlx_value mask, const rlx_attention_backward_desc *desc);
/* turn back */
RLX_API rlx_value rlx_rope_backward(rlx_graph *g, rlx_value dy, rlx_value cos, rlx_value sin,
                            int64_t head_dim, int64_t n_rot, rlx_rope_style style,
                            int64_t seq_axis);
/* (softmax - onehot) dloss */
RLX_API rlx_value rlx_softmax_cross_entropy_backward(rlx_graph *g, rlx_value logits,
                            rlx_value labels, rlx_value dloss);
/* gradient of fake_quantize for x */
RLX_API rlx_value rlx_fake_quantize_backward(rlx_graph *g, rlx_value x, rlx_value scales,
                            rlx_value dy, int64_t bits, int64_t axis, rlx_ste_kind ste,
                            rlx_scale_mode scale_mode);
/* gradient of fake_quantize_lsq for x */
RLX_API rlx_value rlx_fake_quantize_lsq_backward_x(rlx_graph *g, rlx_value x, rlx_value scale,
                            rlx_value dy, int64_t bits, int64_t axis);
/* gradient of fake_quantize_lsq for the scale */
RLX_API rlx_value rlx_fake_quantize_lsq_backward_scale(rlx_graph *g, rlx_value x, rlx_value scale,
                            rlx_value dy, int64_t bits, int64_t axis);
/* gradient of scan for its start */
RLX_API rlx_value rlx_scan_backward(rlx_graph *g, rlx_value init, rlx_value trajectory,
                            rlx_value upstream, const rlx_value *xs, size_t xs_count,
                            const rlx_scan_backward_desc *desc);
/* gradient of scan for one sequence */
RLX_API rlx_value rlx_scan_backward_xs(rlx_graph *g, rlx_value init, rlx_value trajectory,
                            rlx_value upstream, const rlx_value *xs, size_t xs_count,
                            const rlx_scan_backward_desc *desc);
/* gradients of selective_scan, packed flat */
RLX_API rlx_value rlx_selective_scan_backward(rlx_graph *g, rlx_value x, rlx_value delta,
                            rlx_value a, rlx_value b, rlx_value c, rlx_value dy,
                            int64_t state_size);
/* gradients of gated_delta_net without carry, packed flat */
RLX_API rlx_value rlx_gated_delta_net_backward(rlx_graph *g, rlx_value q, rlx_value k, rlx_value v,
                            rlx_value decay, rlx_value beta, rlx_value dy, int64_t state_size);
/* gradient of log_mel for the spectra */
RLX_API rlx_value rlx_log_mel_backward(rlx_graph *g, rlx_value spec, rlx_value filt, rlx_value dy);
/* gradient of knn for the distances */
RLX_API rlx_value rlx_knn_backward(rlx_graph *g, rlx_value d, rlx_value dd, int64_t k);
/* gradients of splat rendering, packed flat */
RLX_API rlx_value rlx_gaussian_splat_render_backward(rlx_graph *g, rlx_value positions,
                            rlx_value scales, rlx_value rotations, rlx_value opacities,
                            rlx_value colors, rlx_value sh_coeffs, rlx_value meta, rlx_value dl,
                            const rlx_gaussian_splat_render_backward_desc *desc);

#ifdef __cplusplus
}
#endif
#endif
