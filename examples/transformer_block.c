/* transformer_block.c: a pre-norm transformer block, its memory shown before it runs. */
#include "example.h"

enum { SEQ = 16, WIDTH = 64, HEADS = 4, HEAD = WIDTH / HEADS, FFN = 256 };

static rlx_value param(rlx_graph *g, const char *name, int64_t rows, int64_t cols)
{
    return rlx_param(g, name, RLX_DTYPE_f32, rows ? RLX_LIST(rows, cols) : RLX_LIST(cols));
}

static rlx_value linear(rlx_graph *g, rlx_value x, const char *name, int64_t in, int64_t out)
{
    return rlx_matmul(g, x, param(g, name, in, out), false, false);
}

static rlx_value attention(rlx_graph *g, rlx_value x)
{
    rlx_value q = linear(g, x, "wq", WIDTH, WIDTH), k = linear(g, x, "wk", WIDTH, WIDTH);
    rlx_value v = linear(g, x, "wv", WIDTH, WIDTH);
    rlx_attention_desc d = RLX_ATTENTION_DESC_INIT;
    d.num_heads = HEADS;
    d.head_dim = HEAD;
    d.mask_kind = RLX_MASK_KIND_causal;
    d.layout = RLX_ATTENTION_LAYOUT_packed;
    rlx_value y = rlx_attention(g, q, k, v, RLX_NO_VALUE, &d);
    return linear(g, y, "wo", WIDTH, WIDTH);
}

static rlx_value feed_forward(rlx_graph *g, rlx_value x)
{
    rlx_value gate = rlx_silu(g, linear(g, x, "w_gate", WIDTH, FFN));
    rlx_value up = linear(g, x, "w_up", WIDTH, FFN);

    return linear(g, rlx_mul(g, gate, up), "w_down", FFN, WIDTH);
}

int main(void)
{
    struct world world = open_world(NULL);
    rlx_graph *g;
    rlx_model *model;
    rlx_session *session;
    rlx_memory_info memory = {RLX_SIZED(rlx_memory_info)};
    rlx_error err;
    static float x[SEQ * WIDTH], y[SEQ * WIDTH];

    check(rlx_graph_create(world.ctx, &g, &err), &err);
    rlx_value in = rlx_input(g, "x", RLX_DTYPE_f32, RLX_LIST(1, SEQ, WIDTH));
    rlx_value n1 = rlx_rms_norm(g, in, param(g, "norm1", 0, WIDTH), RLX_NO_VALUE, -1, 1e-5f);
    rlx_value h = rlx_add(g, in, attention(g, n1));
    rlx_value n2 = rlx_rms_norm(g, h, param(g, "norm2", 0, WIDTH), RLX_NO_VALUE, -1, 1e-5f);
    rlx_output(g, rlx_add(g, h, feed_forward(g, n2)));
    check(rlx_model_create(g, &model, &err), &err);
    set_params(world.ctx, model);
    check(rlx_session_create(model, world.dev, NULL, &session, &err), &err);

    check(rlx_session_memory(session, &memory, &err), &err);
    printf("%u steps; activations %llu bytes (lower bound %llu, unshared %llu); weights %llu\n",
           memory.steps, (unsigned long long)memory.activations,
           (unsigned long long)memory.lower_bound, (unsigned long long)memory.unshared,
           (unsigned long long)memory.weights);

    for (size_t i = 0; i < SEQ * WIDTH; i++)
        x[i] = pattern(3, i);
    rlx_binding input = {"x", {RLX_DTYPE_f32, 3, {1, SEQ, WIDTH}, x, sizeof x}};
    rlx_binding output = {"out0", {RLX_DTYPE_f32, 3, {0}, y, sizeof y}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &input, 1, &output, 1, NULL, 0};
    check(rlx_session_run(session, &run, &err), &err);
    printf("y[0] = %.5f, y[last] = %.5f\n", (double)y[0], (double)y[SEQ * WIDTH - 1]);
    int bad = y[0] != y[0] || memory.activations != memory.lower_bound;
    rlx_session_destroy(session);
    rlx_model_destroy(model);
    close_world(world);
    return bad;
}
