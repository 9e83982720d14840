/* control_flow_test.c: branches and loops as straight lines give what the CPU's own control flow
 * gives, bit for bit. */
#include "model_run.h"

#define STEP                                             \
    "graph @step (input %x: f32[3], input %n: f32[1]) {" \
    " %y = sin %x %one = const f32[1] {1} %m = add %n, %one return %y, %m }"
#define BODY                                                               \
    "graph @body (input %c: f32[2], input %b: f32[2], input %x: f32[2]) {" \
    " %s = mul %c, %b %y = add %s, %x return %y }"
#define SIDES                                                                                   \
    "graph @yes (input %x: f32[3], input %z: f32[3]) { %a = log %x %b = exp %z return %a, %b }" \
    "graph @no (input %x: f32[3], input %z: f32[3]) { %a = neg %z %b = sub %x, %z return %a, %b }"

static const char *const graphs[] = {
    "graph @main (input %p: bool[], input %x: f32[3], input %z: f32[3]) {"
    " %y = if %p, %x, %z then_graph=@yes else_graph=@no result=1 return %y }" SIDES,
    "graph @main (input %p: f32[1,1], input %x: f32[3], input %z: f32[3]) { %n = const f32[] {nan}"
    " %q = mul %p, %n %o = const f32[1] {0} %a = if %q, %x, %z then_graph=@yes else_graph=@no"
    " %b = if %o, %x, %z then_graph=@yes else_graph=@no return %a, %b }" SIDES,
    "graph @main (input %x: f32[3]) { %n = const f32[1] {0}"
    " %a = while %x, %n cond_graph=@more body_graph=@step max_iterations=7"
    " %b = while %x, %n cond_graph=@more body_graph=@step max_iterations=7 result=1"
    " %c = while %x, %n cond_graph=@more body_graph=@step max_iterations=0"
    " return %a, %b, %c }"
    "graph @more (input %x: f32[3], input %n: f32[1]) { %l = const f32[1] {4} %y = lt %n, %l"
    " return %y }" STEP,
    /* All elements must hold; numbers that are not booleans; of these, NaN is true. */
    "graph @main (input %x: f32[3]) { %n = const f32[1] {0}"
    " %a = while %x, %n cond_graph=@more body_graph=@step max_iterations=5 result=1 return %a }"
    "graph @more (input %x: f32[3], input %n: f32[1]) { %l = const f32[3] {nan 3 4}"
    " %y = sub %l, %n return %y }" STEP,
    "graph @main (input %c: f32[2], input %b: f32[2], input %xs: f32[5,2]) {"
    " %a = scan %c, %b, %xs body=@body length=5 num_bcast=1 num_xs=1"
    " %t = scan %c, %b, %xs body=@body length=5 num_bcast=1 num_xs=1 save_trajectory=true"
    " %k = scan %c, %b, %xs body=@body length=5 num_bcast=1 num_xs=1 save_trajectory=true"
    " num_checkpoints=3 return %a, %t, %k }" BODY,
    "graph @main (input %c: f32[2], input %b: f32[2], input %xs: f32[0,2]) {"
    " %a = scan %c, %b, %xs body=@body length=0 num_bcast=1 num_xs=1"
    " %t = scan %c, %b, %xs body=@body length=0 num_bcast=1 num_xs=1 save_trajectory=true"
    " return %a, %t }" BODY,
    /* A branch in a loop. */
    "graph @main (input %x: f32[3]) { %n = const f32[1] {0}"
    " %a = while %x, %n cond_graph=@more body_graph=@pick max_iterations=4 return %a }"
    "graph @more (input %x: f32[3], input %n: f32[1]) { %l = const f32[1] {3} %y = lt %n, %l"
    " return %y }"
    "graph @pick (input %x: f32[3], input %n: f32[1]) { %one = const f32[1] {1} %m = add %n, %one"
    " %p = eq %n, %one %y = if %p, %x, %x then_graph=@yes else_graph=@no return %y, %m }" SIDES,
};

static void collect(void *user, const char *text, size_t len)
{
    char *at = user;

    if (strlen(at) + len < 8192)
        strncat(at, text, len);
}

static void expect_straight(struct test *t, const rlx_model *m)
{
    char text[8192] = "";

    expect_ok(t, rlx_model_print(m, false, false, collect, text, NULL));
    expect(t, strlen(text) > 0);
    expect(t, !strstr(text, " = if ") && !strstr(text, " = while ") && !strstr(text, " = scan "));
}

TEST(pass, lowered_control_flow_is_the_same)
{
    static struct outputs native, lowered;
    rlx_context *ctx = NULL;
    rlx_device *dev = NULL;
    rlx_error err = {0};

    require_ok(t, rlx_context_create(RLX_VERSION, NULL, &ctx, &err));
    require_ok(t, rlx_device_open(ctx, "cpu", &dev, &err));
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
        char text[2048] = "rlx 1\n";
        rlx_model *m = NULL, *made = NULL;
        strcat(text, graphs[i]);
        test_note(t, "graph %zu", i);
        if (rlx_model_parse(ctx, rlx_cstr(text), &m, &err) != RLX_OK ||
            rlx_model_transform(m, "lower-control-flow,simplify,cse,dce", NULL, &made, &err) !=
                RLX_OK ||
            run_outputs(m, dev, NULL, &native, &err) != RLX_OK ||
            run_outputs(made, dev, NULL, &lowered, &err) != RLX_OK)
            fail(t, "%s", err.message);
        else
            expect_outputs(t, &lowered, &native);
        expect_straight(t, made);
        rlx_model_destroy(m);
        rlx_model_destroy(made);
    }
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
}
