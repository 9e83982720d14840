/* rule_movement_test.c: elements moved, cut, joined and repeated, against central differences. */
#include "central.h"

/* y = op of x. */
static void moves(struct test *t, const char *x, const char *op)
{
    char graph[256];

    snprintf(graph, sizeof graph, "(input %%x: %s) { %%y = %s return %%y }", x, op);
    agrees(t, 1e-6, graph);
}

TEST(grad, reshape_transpose_expand)
{
    moves(t, "f64[2,6]", "reshape %x shape=[3,-1]");
    moves(t, "f64[2,6]", "reshape %x shape=[12]");
    moves(t, "f64[2,3,4]", "transpose %x perm=[2,0,1]");
    moves(t, "f64[2,3,4]", "transpose %x perm=[0,2,-2]");
    moves(t, "c64[2,3]", "transpose %x perm=[1,0]");
    moves(t, "f64[3,1]", "expand %x shape=[2,3,4]");
    moves(t, "f64[]", "expand %x shape=[2,2]");
    moves(t, "f64[2,3]", "reverse %x axes=[1]");
    moves(t, "f64[2,3,2]", "reverse %x axes=[0,-1]");
    moves(t, "f64[2,3,4]", "trilu %x upper=false diagonal=1");
    moves(t, "f64[4,4]", "trilu %x diagonal=-1");
}

TEST(grad, parts_of_an_axis)
{
    moves(t, "f64[3,5]", "narrow %x axis=1 start=1 len=3");
    moves(t, "f64[3,5]", "narrow %x axis=0 start=0 len=3");
    moves(t, "f64[9]", "slice %x axis=0 start=1 len=3 step=3");
    moves(t, "f64[2,9,2]", "slice %x axis=1 start=0 len=5 step=2");
    moves(t, "f64[2,9,2]", "slice %x axis=-2 start=8 len=4 step=-2");
    moves(t, "f64[2,9]", "slice %x axis=1 start=4 len=5 step=-1");
    moves(t, "f64[2,9]", "slice %x axis=1 start=3 len=1 step=7");
    moves(t, "f64[1,1,2,1,3,1,1,2]", "slice %x axis=4 start=2 len=2 step=-2");
    agrees(t, 1e-6,
           "(input %x: f64[5]) { %a = slice %x axis=0 start=0 len=0 step=2"
           " %y = concat %a, %x axis=0 return %y }");
    agrees(t, 1e-6,
           "(input %a: f64[2,1], input %b: f64[2,3], input %c: f64[2,0])"
           " { %y = concat %a, %b, %c, %a axis=-1 return %y }");
    agrees(t, 1e-6, "(input %a: f64[2]) { %y = concat %a axis=0 return %y }");
}

TEST(grad, padding)
{
    moves(t, "f64[2,3]", "pad %x before=[1,0] after=[0,2] value=3");
    moves(t, "f64[2,4]", "pad %x before=[1,3] after=[0,2] mode=reflect");
    moves(t, "f64[2,4]", "pad %x before=[1,3] after=[2,0] mode=replicate");
    moves(t, "f64[2,4]", "pad %x before=[2,3] after=[1,4] mode=circular");
    moves(t, "f64[4]", "pad %x before=[3] after=[3] mode=reflect");
}

TEST(grad, repetition)
{
    moves(t, "f64[2,3]", "tile %x reps=[2,3]");
    moves(t, "f64[1,2,1,2,1,1,2,1]", "tile %x reps=[2,1,2,2,1,2,1,2]");
    moves(t, "f64[2,1,2,3]", "resize_nearest_2x %x");
    moves(t, "f64[1,2,2,3,2]", "interpolate_3d %x size=[3,2,5]");
    moves(t, "f64[1,1,5,3,4]", "interpolate_3d %x size=[2,3,3]");
}
