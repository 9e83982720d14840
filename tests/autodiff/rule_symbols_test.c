/* rule_symbols_test.c: gradients of graphs with symbolic dims, made before the sizes are known and
 * then held against central differences with sizes. */
#include "central.h"

static void each(struct test *t, const char *const *graph, size_t count, double tol)
{
    for (size_t i = 0; i < count; i++) {
        agrees_at(t, tol, 4, graph[i]);
        agrees_at(t, tol, 1, graph[i]);
    }
}

#define EACH(t, list, tol) each((t), (list), sizeof(list) / sizeof(list)[0], (tol))

TEST(grad_symbols, movement)
{
    static const char *const graphs[] = {
        "(input %x: f64[n,6]) { %y = reshape %x shape=[2*n,3] return %y }",
        "(input %x: f64[n,2,3]) { %y = transpose %x perm=[2,0,1] return %y }",
        "(input %x: f64[n+3,2]) { %y = narrow %x axis=0 start=n len=2 return %y }",
        "(input %x: f64[n+3,2]) { %y = narrow %x axis=0 start=1 len=n return %y }",
        "(input %a: f64[n], input %b: f64[2]) { %y = concat %a, %b, %a axis=0 return %y }",
        "(input %x: f64[1,3]) { %y = expand %x shape=[n,3] return %y }",
        "(input %x: f64[2,2*n]) { %y = slice %x axis=1 start=1 len=n step=2 return %y }",
        "(input %x: f64[2*n,2]) { %y = slice %x axis=0 start=2*n-1 len=n step=-2 return %y }",
        "(input %x: f64[n+4]) { %y = slice %x axis=0 start=1 len=2 step=3 return %y }",
        "(input %x: f64[n,3]) { %y = pad %x before=[1,0] after=[n,1] value=2 return %y }",
        "(input %x: f64[n+2]) { %y = pad %x before=[1] after=[2] mode=reflect return %y }",
        "(input %x: f64[n]) { %y = pad %x before=[n] after=[1] mode=circular return %y }",
        "(input %x: f64[2,n]) { %y = pad %x before=[0,2] after=[0,n] mode=replicate return %y }",
        "(input %x: f64[n,2]) { %y = tile %x reps=[3,2] return %y }",
        "(input %x: f64[n,n]) { %y = trilu %x diagonal=1 return %y }",
        "(input %x: f64[1,2,n,3]) { %y = resize_nearest_2x %x return %y }",
        "(input %x: f64[1,1,n,2,n]) { %y = interpolate_3d %x size=[3,2,5] return %y }",
    };

    EACH(t, graphs, 1e-6);
}

TEST(grad_symbols, indexing)
{
    static const char *const graphs[] = {
        "(input %x: f64[n,3], input %idx1: i32[5]) { %y = gather %x, %idx1 return %y }",
        "(input %u: f64[5,2], input %idx6: i32[5]) { %y = scatter_add %u, %idx6 out_dim=n return "
        "%y }",
        "(input %u: f64[2,n], input %idx3: i32[n])"
        " { %y = gather_backward %u, %idx3 axis=1 table_dim=2 return %y }",
        "(input %x: f64[n,3], input %idx3: i32[n,2])"
        " { %y = gather_elements %x, %idx3 axis=1 return %y }",
        "(input %x: f64[n,3,2], input %idx3: i32[n,2,1])"
        " { %y = gather_nd %x, %idx3 batch_dims=1 return %y }",
        "(input %x: f64[n,2], input %idx5: i32[6,2], input %u: f64[6,2])"
        " { %y = scatter_elements %x, %idx5, %u return %y }",
        "(input %x: f64[n,2], input %idx5: i32[6,2], input %u: f64[6,2])"
        " { %y = scatter_elements %x, %idx5, %u reduction=add return %y }",
        "(input %x: f64[n,2], input %idx5: i32[6,1], input %u: f64[6,2])"
        " { %y = scatter_nd %x, %idx5, %u return %y }",
        "(input %x: f64[n,2], input %idx5: i32[6,1], input %u: f64[6,2])"
        " { %y = scatter_nd %x, %idx5, %u reduction=add return %y }",
    };

    EACH(t, graphs, 1e-6);
}

TEST(grad_symbols, reductions)
{
    static const char *const graphs[] = {
        "(input %x: f64[2,n]) { %y = reduce_sum %x axes=[1] return %y }",
        "(input %x: f64[n,2,n]) { %y = reduce_mean %x axes=[0,2] return %y }",
        "(input %x: f64[n,3]) { %y = reduce_max %x axes=[0] keep_dim=true return %y }",
        "(input %x: f64[2,n,3]) { %y = reduce_prod %x axes=[0,1] return %y }",
        "(input %x: f64[n,3]) { %y = topk %x k=2 result=values return %y }",
        "(input %x: f64[2,n]) { %y = sort %x return %y }",
        "(input %x: f64[2,n]) { %y = softmax %x return %y }",
        "(input %x: f64[n,2]) { %y = cumsum %x axis=0 return %y }",
        "(input %x: f64[n,2]) { %y = cummax %x axis=0 return %y }",
        "(input %x: f64[n,3]) { %y = cumprod %x axis=1 return %y }",
        "(input %x: f64[n,4], input %idx4: i32[n])"
        " { %y = softmax_cross_entropy_with_logits %x, %idx4 return %y }",
        "(input %x: f64[n,4], input %t: f64[n,4])"
        " { %y = softmax_cross_entropy %x, %t return %y }",
    };

    EACH(t, graphs, 1e-6);
}

TEST(grad_symbols, layers)
{
    static const char *const graphs[] = {
        "(input %a: f64[n,2,3], input %b: f64[3,4]) { %y = matmul %a, %b return %y }",
        "(input %a: f64[2,n], input %b: f64[n,n]) { %y = matmul %a, %b return %y }",
        "(input %x: f64[n,3], input %w: f64[2,3,2], input %idx2: i32[n])"
        " { %y = grouped_matmul %x, %w, %idx2 return %y }",
        "(input %dom: f64[n,n], input %b: f64[n,2]) { %y = dense_solve %dom, %b return %y }",
        "(input %dom: f64[n,n]) { %y = logdet %dom return %y }",
        "(input %x: f64[n,4], input %g: f64[4], input %b: f64[4])"
        " { %y = layer_norm %x, %g, %b return %y }",
        "(input %x: f64[n,4], input %g: f64[4]) { %y = rms_norm %x, %g return %y }",
        "(input %x: f64[n,4,n], input %g: f64[4], input %b: f64[4])"
        " { %y = group_norm %x, %g, %b num_groups=2 return %y }",
        "(input %x: f64[n,2,n+4], input %w: f64[2,2,3])"
        " { %y = conv %x, %w stride=[2] padding=[1] return %y }",
        "(input %x: f64[1,2,n,2], input %w: f64[2,1,3,2])"
        " { %y = conv_transpose %x, %w stride=[2,1] output_padding=[1,0] return %y }",
        "(input %x: f64[n,2,n+2]) { %y = pool %x kind=mean kernel_size=[2] stride=[2] padding=[1]"
        " count_include_pad=false return %y }",
        "(input %x: f64[n,2,n+2]) { %y = pool %x kind=max kernel_size=[3] return %y }",
        "(input %x: f64[1,2,n+2]) { %y = pool %x kind=prod kernel_size=[2] stride=[2] return %y }",
        "(input %x: f64[1,2,n+2,3]) { %y = im2col %x kernel_size=[2,2] stride=[2,1] return %y }",
        "(input %q: f64[1,2,n,2], input %k: f64[1,2,n+1,2], input %v: f64[1,2,n+1,2])"
        " { %y = attention %q, %k, %v num_heads=2 head_dim=2 mask_kind=causal return %y }",
        "(input %x: f64[2,n,4], input %skipc: f64[n,2], input %skips: f64[n,2])"
        " { %y = rope %x, %skipc, %skips head_dim=4 return %y }",
    };

    EACH(t, graphs, 1e-5);
}
