/* rule_index_test.c: elements picked and placed by index, against central differences. Writes past
 * the end are dropped, and of two to one place the later stays. */
#include "central.h"

TEST(grad, gathers)
{
    agrees(t, 1e-6,
           "(input %x: f64[5,3], input %idx5: i32[2,4]) { %y = gather %x, %idx5 return %y }");
    agrees(
        t, 1e-6,
        "(input %x: f64[2,4,3], input %idx4: i64[6]) { %y = gather %x, %idx4 axis=-2 return %y }");
    agrees(t, 1e-6, "(input %x: c64[4], input %idx4: u8[]) { %y = gather %x, %idx4 return %y }");
    agrees(t, 1e-6,
           "(input %x: f64[3,4], input %idx3: i32[5,2])"
           " { %y = gather_elements %x, %idx3 axis=0 return %y }");
    agrees(t, 1e-6,
           "(input %x: f64[3,4], input %skipx: f64[2,6], input %idx4: i32[2,6])"
           " { %y = gather_elements %x, %idx4 axis=1 return %y }");
    agrees(t, 1e-6,
           "(input %x: f64[3,3,2], input %idx3: i32[4,2]) { %y = gather_nd %x, %idx3 return %y }");
    agrees(t, 1e-6,
           "(input %x: f64[2,3,3], input %idx3: u8[2,5,1])"
           " { %y = gather_nd %x, %idx3 batch_dims=1 return %y }");
    agrees(t, 1e-6,
           "(input %x: f64[2,3,4], input %idx4: i32[2,3,2,1])"
           " { %y = gather_nd %x, %idx4 batch_dims=2 return %y }");
}

TEST(grad, scatter_add_and_gather_backward)
{
    agrees(t, 1e-6,
           "(input %u: f64[6,2], input %idx6: i32[6]) { %y = scatter_add %u, %idx6 out_dim=4 "
           "return %y }");
    agrees(t, 1e-6,
           "(input %u: f64[3,4,2], input %idx5: f32[3,4])"
           " { %y = scatter_add %u, %idx5 out_dim=3 return %y }");
    agrees(t, 1e-6,
           "(input %u: f64[2,5,3], input %idx6: i32[5])"
           " { %y = gather_backward %u, %idx6 axis=1 table_dim=4 return %y }");
    agrees(t, 1e-6,
           "(input %u: f64[5], input %idx300: u16[5])"
           " { %y = gather_backward %u, %idx300 axis=0 table_dim=150 return %y }");
    agrees(t, 1e-6,
           "(input %u: f64[2,3], input %x: f64[2,3], input %idx3: i32[2])"
           " { %s = scatter_add %u, %idx3 out_dim=0 %p = pad %s before=[2,0] after=[0,0]"
           " %y = add %p, %x return %y }");
}

TEST(grad, scatters)
{
    agrees(t, 1e-6,
           "(input %x: f64[4,3], input %idx5: i32[6,3], input %u: f64[6,3])"
           " { %y = scatter_elements %x, %idx5, %u axis=0 return %y }");
    agrees(t, 1e-6,
           "(input %x: f64[3,4], input %idx5: i32[2,3], input %u: f64[2,3])"
           " { %y = scatter_elements %x, %idx5, %u axis=1 reduction=add return %y }");
    agrees(t, 1e-6,
           "(input %x: f64[3,3,2], input %idx4: i32[5,2], input %u: f64[5,2])"
           " { %y = scatter_nd %x, %idx4, %u return %y }");
    agrees(t, 1e-6,
           "(input %x: f64[3,2], input %idx4: i32[2,4,1], input %u: f64[2,4,2])"
           " { %y = scatter_nd %x, %idx4, %u reduction=add return %y }");
    agrees(t, 1e-6,
           "(input %x: f64[3], input %idx4: i32[4,1], input %u: f64[4])"
           " { %y = scatter_nd %x, %idx4, %u return %y }");
    agrees(t, 1e-6,
           "(input %x: f64[2,3], input %idx1: i32[2,0], input %u: f64[2,2,3])"
           " { %y = scatter_nd %x, %idx1, %u reduction=add return %y }");
    agrees(t, 1e-6,
           "(input %x: f64[2,3], input %idx1: i32[2,0], input %u: f64[2,2,3])"
           " { %y = scatter_nd %x, %idx1, %u return %y }");
    refuses(t, RLX_ERROR_NO_RULE, "scatter_elements",
            "(input %x: f64[3], input %idx3: i32[2], input %u: f64[2])"
            " { %y = scatter_elements %x, %idx3, %u reduction=max return %y }");
    refuses(t, RLX_ERROR_NO_RULE, "cache_append",
            "(input %x: f32[2,3], state %s: f32[4,3])"
            " { %p = const i32[] {1} %y = cache_append %s, %x, %p return %y }");
    refuses(t, RLX_ERROR_NO_RULE, "scatter_nd",
            "(input %x: f64[3], input %idx3: i32[2,1], input %u: f64[2])"
            " { %y = scatter_nd %x, %idx3, %u reduction=mul return %y }");
}
