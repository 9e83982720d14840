/* control_test.c: graphs within graphs, on every kind of device: their constants, their views,
 * loops in loops. loop_test.c has those whose rounds the host counts. */
#include "session/required.h"

static const struct {
    const char *graph, *numbers, *want;
} rows[] = {
    /* a body with constants of its own, used in every round */
    {"graph @main (input %c: f32[2], input %x: f32[3,2])"
     " { %y = scan %c, %x body=@b length=3 num_xs=1 return %y }"
     " graph @b (input %c: f32[2], input %x: f32[2])"
     " { %k = const f32[2] {2 3} %m = mul %c, %k %a = add %m, %x return %a }",
     "1 1 | 1 2 3 4 5 6", "23 63"},
    /* the whole way, from a constant */
    {"graph @main (input %x: f32[4])"
     " { %c = const f32[] {10}"
     " %y = scan %c, %x body=@b length=4 num_xs=1 save_trajectory=true return %y }"
     " graph @b (input %c: f32[], input %x: f32[])"
     " { %o = const f32[] {1} %a = add %c, %x %r = sub %a, %o return %r }",
     "1 2 3 4", "10 11 13 16"},
    /* a body that gives back what it got, and one that gives back a constant */
    {"graph @main (input %c: f32[2], input %x: f32[3,2])"
     " { %y = scan %c, %x body=@b length=3 num_xs=1 return %y }"
     " graph @b (input %c: f32[2], input %x: f32[2]) { return %x }",
     "1 1 | 1 2 3 4 5 6", "5 6"},
    {"graph @main (input %c: f32[2], input %x: f32[3,2])"
     " { %y = scan %c, %x body=@b length=3 num_xs=1 return %y }"
     " graph @b (input %c: f32[2], input %x: f32[2]) { %k = const f32[2] {8 9} return %k }",
     "1 1 | 1 2 3 4 5 6", "8 9"},
    /* no round at all */
    {"graph @main (input %c: f32[2], input %x: f32[0,2])"
     " { %y = scan %c, %x body=@b length=0 num_xs=1 return %y }"
     " graph @b (input %c: f32[2], input %x: f32[2]) { %a = add %c, %x return %a }",
     "4 5 |", "4 5"},
    /* views within: a part of what is carried, turned */
    {"graph @main (input %c: f32[2,2], input %x: f32[2,1,2])"
     " { %y = scan %c, %x body=@b length=2 num_xs=1 return %y }"
     " graph @b (input %c: f32[2,2], input %x: f32[1,2])"
     " { %n = narrow %c axis=0 start=1 len=1 %s = concat %n, %x axis=0"
     " %t = transpose %s perm=[1,0] return %t }",
     "1 2 3 4 | 5 6 7 8", "4 7 6 8"},
    /* a loop in a loop, and a branch in it */
    {"graph @main (input %c: f32[], input %x: f32[2,3])"
     " { %y = scan %c, %x body=@o length=2 num_xs=1 return %y }"
     " graph @o (input %c: f32[], input %x: f32[3])"
     " { %r = scan %c, %x body=@i length=3 num_xs=1 return %r }"
     " graph @i (input %c: f32[], input %x: f32[])"
     " { %z = const f32[] {0} %p = lt %x, %z %r = if %p, %c, %x then_graph=@f else_graph=@g"
     " return %r }"
     " graph @f (input %c: f32[], input %x: f32[]) { %d = mul %c, %x return %d }"
     " graph @g (input %c: f32[], input %x: f32[]) { %d = add %c, %x return %d }",
     "1 | 1 2 -1 3 -2 5", "7"},
    /* a loop in a loop, each with constants of its own */
    {"graph @main (input %c: f32[], input %x: f32[2,3])"
     " { %y = scan %c, %x body=@o length=2 num_xs=1 return %y }"
     " graph @o (input %c: f32[], input %x: f32[3])"
     " { %k = const f32[] {2} %r = scan %c, %x body=@i length=3 num_xs=1 %m = mul %r, %k"
     " return %m }"
     " graph @i (input %c: f32[], input %x: f32[])"
     " { %k = const f32[] {10} %m = mul %x, %k %a = add %c, %m return %a }",
     "1 | 1 2 3 4 5 6", "544"},
    /* rounds end by a value, and at the most allowed */
    {"graph @main (input %x: f32[])"
     " { %y = while %x cond_graph=@c body_graph=@b max_iterations=9 return %y }"
     " graph @c (input %x: f32[]) { %z = const f32[] {100} %a = lt %x, %z return %a }"
     " graph @b (input %x: f32[]) { %t = const f32[] {3} %a = mul %x, %t return %a }",
     "5", "135"},
    {"graph @main (input %x: f32[])"
     " { %y = while %x cond_graph=@c body_graph=@b max_iterations=2 return %y }"
     " graph @c (input %x: f32[]) { %z = const f32[] {100} %a = lt %x, %z return %a }"
     " graph @b (input %x: f32[]) { %t = const f32[] {3} %a = mul %x, %t return %a }",
     "5", "45"},
    /* what did not run leaves no trace, though it would be infinite */
    {"graph @main (input %x: f32[2])"
     " { %o = const f32[] {0} %s = reduce_sum %x axes=[0] %p = lt %s, %o"
     " %y = if %p, %x then_graph=@f else_graph=@g return %y }"
     " graph @f (input %x: f32[2]) { %z = const f32[2] {0 0} %a = div %x, %z return %a }"
     " graph @g (input %x: f32[2]) { %a = neg %x return %a }",
     "1 2", "-1 -2"},
};

TEST_DEVICES(gpu_control, graphs_within_graphs)
{
    struct place p;

    if (!place_open(t, &p, test_device(t), NULL))
        return;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        test_note(t, "row %zu", i);
        expect_numbers(t, &p, rows[i].graph, rows[i].numbers, rows[i].want);
    }
    place_close(&p);
}
