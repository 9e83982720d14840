/* rule_attention_test.c: attention and rotary embeddings, against central differences. */
#include "central.h"

TEST(grad, attention)
{
    static const char *const graphs[] = {
        "(input %q: f64[1,2,3,4], input %k: f64[1,2,5,4], input %v: f64[1,2,5,4])"
        " { %y = attention %q, %k, %v num_heads=2 head_dim=4 return %y }",
        "(input %q: f64[1,3,4,2], input %k: f64[1,5,2,2], input %v: f64[1,5,2,2])"
        " { %y = attention %q, %k, %v num_heads=4 num_kv_heads=2 head_dim=2 layout=bshd"
        " mask_kind=causal return %y }",
        "(input %q: f64[2,3,6], input %k: f64[2,4,3], input %v: f64[2,4,3])"
        " { %y = attention %q, %k, %v num_heads=2 num_kv_heads=1 head_dim=3 layout=packed"
        " mask_kind=sliding_window window=1 logit_softcap=2 return %y }",
        "(input %q: f64[4,2,3], input %k: f64[2,3,3], input %v: f64[2,3,3])"
        " { %y = attention %q, %k, %v num_heads=2 num_kv_heads=1 head_dim=3 layout=folded"
        " score_scale=0.7 return %y }",
        "(input %q: f64[1,2,3,2], input %k: f64[1,2,3,2], input %v: f64[1,2,3,2],"
        " input %m: f64[1,2,3,3]) { %y = attention %q, %k, %v, %m num_heads=2 head_dim=2"
        " mask_kind=bias return %y }",
        "(input %q: f64[2,2,3,2], input %k: f64[2,2,2,2], input %v: f64[2,2,2,2],"
        " input %m: f64[2,2]) { %y = attention %q, %k, %v, %m num_heads=2 head_dim=2"
        " mask_kind=bias logit_softcap=1.5 return %y }",
        "(input %q: f64[2,2,3,2], input %k: f64[2,2,2,2], input %v: f64[2,2,2,2],"
        " input %m: f64[1,3,2]) { %y = attention %q, %k, %v, %m num_heads=2 head_dim=2"
        " mask_kind=bias return %y }",
        "(input %q: f64[1,2,3,2], input %k: f64[1,2,4,2], input %v: f64[1,2,4,2],"
        " input %skipm: f64[1,1,3,4]) { %y = attention %q, %k, %v, %skipm num_heads=2 head_dim=2"
        " mask_kind=custom return %y }",
        "(input %q: f64[1,5,4,2], input %k: f64[1,6,2,2], input %v: f64[1,6,2,2])"
        " { %y = attention %q, %k, %v num_heads=4 num_kv_heads=2 head_dim=2 layout=bshd"
        " mask_kind=symmetric_window window=1 return %y }",
        "(input %q: f64[1,5,4,2], input %k: f64[1,6,2,2], input %v: f64[1,6,2,2])"
        " { %y = attention %q, %k, %v num_heads=4 num_kv_heads=2 head_dim=2 layout=bshd"
        " mask_kind=chunked_window window=3 return %y }",
        "(input %q: f64[1,3,3,2], input %k: f64[1,1,4,2], input %v: f64[1,1,4,2], input %s: f64[3])"
        " { %y = attention %q, %k, %v, %s num_heads=3 num_kv_heads=1 head_dim=2 mask_kind=causal"
        " has_sinks=true alibi_max_bias=4 return %y }",
        "(input %q: f64[2,3,4], input %k: f64[2,4,4], input %v: f64[2,4,4], input %m: f64[2,4],"
        " input %s: f64[2]) { %y = attention %q, %k, %v, %m, %s num_heads=2 head_dim=2"
        " mask_kind=bias layout=packed has_sinks=true logit_softcap=2 return %y }",
        "(input %q: f64[1,3,8], input %k: f64[1,4,4], input %v: f64[1,4,6])"
        " { %y = attention %q, %k, %v num_heads=4 num_kv_heads=2 head_dim=2 value_dim=3"
        " mask_kind=causal layout=packed return %y }",
        "(input %h: f64[1,3,4], input %w: f64[4,8], input %o: f64[4,4], input %idx2: i32[1,3])"
        " { %y = fused_attention_block %h, %w, %o, %idx2 num_heads=2 num_kv_heads=1 head_dim=2"
        " return %y }",
    };

    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++)
        agrees(t, 1e-5, graphs[i]);
}

TEST(grad, rotations)
{
    static const char *const ops[] = {"rope", "rope_backward"};
    char graph[256];

    for (size_t i = 0; i < 2; i++) {
        snprintf(graph, sizeof graph,
                 "(input %%x: f64[2,3,8], input %%skipc: f64[3,2], input %%skips: f64[3,2])"
                 " { %%y = %s %%x, %%skipc, %%skips head_dim=4 return %%y }",
                 ops[i]);
        agrees(t, 1e-6, graph);
        snprintf(graph, sizeof graph,
                 "(input %%x: f64[2,3,2,6], input %%skipc: f64[2,4,3], input %%skips: f64[2,4,3])"
                 " { %%y = %s %%x, %%skipc, %%skips head_dim=6 n_rot=4 style=interleaved"
                 " seq_axis=1 return %%y }",
                 ops[i]);
        agrees(t, 1e-6, graph);
    }
    agrees(t, 1e-6,
           "(input %x: f64[2,12,16]) { %y = axial_rope_2d %x end_x=3 end_y=2 head_dim=8"
           " num_heads=2 theta=100 repeat_factor=2 return %y }");
}
