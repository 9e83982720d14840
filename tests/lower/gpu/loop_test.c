/* loop_test.c: loops whose rounds the host counts: in one another, in branches and scans, their
 * limits, what becomes of a run that is watched, or whose device is lost in a round, and of others
 * meanwhile. */
#include <pthread.h>

#include "session/required.h"

#define BELOW(name, n) \
    " graph @" name " (input %x: f32[]) { %z = const f32[] {" n "} %a = lt %x, %z return %a }"
#define TWICE " graph @twice (input %x: f32[]) { %a = add %x, %x return %a }"
#define SAME " graph @same (input %x: f32[]) { return %x }"
/* goes on for ever from 0 */
#define GROW                                                                                       \
    " graph @grow (input %x: f32[]) { %y = while %x cond_graph=@c100 body_graph=@twice return %y " \
    "}"

static const struct {
    const char *graph, *numbers, *want;
} rows[] = {
    /* no round, and some; what comes before and after is computed on its own */
    {"graph @main (input %x: f32[]) { %y = while %x cond_graph=@c100 body_graph=@twice return %y "
     "}" BELOW("c100", "100") TWICE,
     "100", "100"},
    {"graph @main (input %x: f32[]) { %n = neg %x"
     " %y = while %n cond_graph=@c100 body_graph=@twice %z = neg %y return %z }" BELOW("c100",
                                                                                       "100") TWICE,
     "-3", "-192"},
    /* two of them: what the first leaves is where the second begins */
    {"graph @main (input %x: f32[])"
     " { %a = while %x cond_graph=@c10 body_graph=@twice"
     " %b = while %a cond_graph=@c100 body_graph=@more return %b }" BELOW("c10", "10")
         BELOW("c100", "100") TWICE
     " graph @more (input %x: f32[]) { %k = const f32[] {30} %a = add %x, %k return %a }",
     "3", "102"},
    /* several values, of which a later one counts; the condition is of many elements */
    {"graph @main (input %x: f32[3], input %n: f32[])"
     " { %y = while %x, %n cond_graph=@all body_graph=@step result=1 return %y }"
     " graph @all (input %x: f32[3], input %n: f32[]) { return %x }"
     " graph @step (input %x: f32[3], input %n: f32[]) { %k = const f32[3] {1 1 1}"
     " %one = const f32[] {1} %a = sub %x, %k %b = add %n, %one return %a, %b }",
     "7 4 9 | 10", "14"},
    /* values that change places */
    {"graph @main (input %x: f32[2], input %y: f32[2])"
     " { %r = while %x, %y cond_graph=@few body_graph=@turn return %r }"
     " graph @few (input %x: f32[2], input %y: f32[2])"
     " { %s = reduce_sum %y axes=[0] %k = const f32[] {50} %a = lt %s, %k return %a }"
     " graph @turn (input %x: f32[2], input %y: f32[2]) { %a = add %x, %y return %y, %a }",
     "1 0 | 1 2", "21 26"},
    /* in one another, and in the condition */
    {"graph @main (input %x: f32[]) { %y = while %x cond_graph=@c1000 body_graph=@outer return %y }"
     " graph @outer (input %x: f32[])"
     " { %y = while %x cond_graph=@c100 body_graph=@twice %k = const f32[] {7} %a = mul %y, %k"
     " return %a }" BELOW("c1000", "1000") BELOW("c100", "100") TWICE,
     "3", "1344"},
    {"graph @main (input %x: f32[]) { %y = while %x cond_graph=@c body_graph=@twice return %y }"
     " graph @c (input %x: f32[])"
     " { %y = while %x cond_graph=@c100 body_graph=@three %k = const f32[] {200} %a = lt %y, %k"
     " return %a }"
     " graph @three (input %x: f32[]) { %k = const f32[] {3} %a = mul %x, %k return %a }" BELOW(
         "c100", "100") TWICE,
     "5", "10"},
    /* in a loop with a bound, whose body would not end for what the last round leaves */
    {"graph @main (input %x: f32[])"
     " { %y = while %x cond_graph=@some body_graph=@outer max_iterations=4 return %y }"
     " graph @some (input %x: f32[]) { return %x }"
     " graph @outer (input %x: f32[])"
     " { %y = while %x cond_graph=@c100 body_graph=@twice %k = const f32[] {128} %a = sub %y, %k"
     " return %a }" BELOW("c100", "100") TWICE,
     "4", "0"},
    /* in a scan, with steps around it */
    {"graph @main (input %c: f32[], input %x: f32[3])"
     " { %y = scan %c, %x body=@b length=3 num_xs=1 save_trajectory=true return %y }"
     " graph @b (input %c: f32[], input %x: f32[])"
     " { %s = add %c, %x %y = while %s cond_graph=@c100 body_graph=@twice"
     " %k = const f32[] {0.5} %a = mul %y, %k return %a }" BELOW("c100", "100") TWICE,
     "1 | 2 100 3", "96 98 50.5"},
    /* so many rounds that they are not written out, though there is a bound */
    {"graph @main (input %x: f32[])"
     " { %y = while %x cond_graph=@c100 body_graph=@twice max_iterations=100000000 return %y "
     "}" BELOW("c100", "100") TWICE,
     "3", "192"},
    {"graph @main (input %x: f32[])"
     " { %y = while %x cond_graph=@ever body_graph=@more max_iterations=5000 return %y }"
     " graph @ever (input %x: f32[]) { %k = const bool[] {true} return %k }"
     " graph @more (input %x: f32[]) { %k = const f32[] {1} %a = add %x, %k return %a }",
     "3", "5003"},
    /* the branch that is not taken would not end */
    {"graph @main (input %p: f32[], input %x: f32[])"
     " { %y = if %p, %x then_graph=@grow else_graph=@same return %y }" GROW SAME BELOW("c100",
                                                                                       "100") TWICE,
     "0 | 0", "0"},
    {"graph @main (input %p: f32[], input %x: f32[])"
     " { %y = if %p, %x then_graph=@grow else_graph=@same return %y }" GROW SAME BELOW("c100",
                                                                                       "100") TWICE,
     "nan | 3", "192"},
    {"graph @main (input %p: f32[], input %x: f32[])"
     " { %y = if %p, %x then_graph=@same else_graph=@grow return %y }" GROW SAME BELOW("c100",
                                                                                       "100") TWICE,
     "1 | 0", "0"},
    {"graph @main (input %p: f32[], input %x: f32[]) { %b = cast %p to=bool"
     " %y = if %b, %x then_graph=@same else_graph=@grow return %y }" GROW SAME BELOW("c100", "100")
         TWICE,
     "0 | 5", "160"},
    /* a branch in a round, a round in the branch */
    {"graph @main (input %x: f32[]) { %y = while %x cond_graph=@c1000 body_graph=@b return %y }"
     " graph @b (input %x: f32[]) { %k = const f32[] {100} %p = lt %x, %k"
     " %y = if %p, %x then_graph=@grow else_graph=@twice return %y }" GROW BELOW("c1000", "1000")
         BELOW("c100", "100") TWICE,
     "3", "1536"},
};

static void check_rows(struct test *t, const char *device)
{
    struct place p;

    if (!place_open(t, &p, device, NULL))
        return;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        test_note(t, "%s, row %zu", device, i);
        expect_numbers(t, &p, rows[i].graph, rows[i].numbers, rows[i].want);
    }
    place_close(&p);
}

TEST_DEVICES(gpu_loop, rounds)
{
    check_rows(t, test_device(t));
}

/* ---- the same bits everywhere ---- */

/* Products until one is too large, counted; a weight, a state and sizes within a bound. */
static const char growth[] =
    "graph @main (input %x: f32[n], param %w: f32[], state %s: f32[4,1])"
    " { %at = const i32[] {2} %g = mul %x, %w %z = sub %g, %g"
    " %r = while %g, %w, %z cond_graph=@small body_graph=@step"
    " %c = while %g, %w, %z cond_graph=@small body_graph=@step result=2"
    " %m = reduce_max %r axes=[0] %v = reshape %m shape=[1,1]"
    " %k = cache_append %s, %v, %at axis=0 return %r, %c, %k }"
    " graph @small (input %g: f32[n], input %w: f32[], input %c: f32[n])"
    " { %k = const f32[] {1000} %m = reduce_max %g axes=[0] %a = lt %m, %k return %a }"
    " graph @step (input %g: f32[n], input %w: f32[], input %c: f32[n])"
    " { %o = const f32[] {1} %a = mul %g, %w %b = add %c, %o return %a, %w, %b }";

enum { MOST = 37 };
struct grown {
    float value[MOST], rounds[MOST], state[4];
};

static bool grow(struct test *t, struct place *p, int64_t n, struct grown *out)
{
    float x[MOST];

    for (int64_t i = 0; i < n; i++)
        x[i] = 0.1f + (float)(i * i % 7) * 1.7f + (float)n;
    memset(out, 0, sizeof *out);
    rlx_binding in = {"x", {RLX_DTYPE_f32, 1, {n}, x, (size_t)n * 4}};
    rlx_binding got[] = {{"out0", {RLX_DTYPE_f32, 1, {n}, out->value, (size_t)n * 4}},
                         {"out1", {RLX_DTYPE_f32, 1, {n}, out->rounds, (size_t)n * 4}},
                         {"out2", {RLX_DTYPE_f32, 2, {4, 1}, out->state, sizeof out->state}}};
    const rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, got, COUNT_OF(got), NULL, 0};
    if (!expect_ok(t, rlx_session_run(p->session, &run, &p->err)))
        return fail(t, "%s", p->err.message);
    return true;
}

static bool open_growth(struct test *t, struct place *p, const char *device, const rlx_flag *flag)
{
    static float weight = 1.37f;
    const rlx_tensor w = {RLX_DTYPE_f32, 0, {0}, &weight, 4};

    if (!place_open(t, p, device,
                    &(rlx_context_desc){RLX_SIZED(rlx_context_desc), .flags = flag,
                                        .flag_count = flag != NULL}))
        return false;
    if (expect_ok(
            t, place_build(p, growth,
                           &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .loop_limit = 1000})) &&
        expect_ok(t, rlx_session_set_param(p->session, "w", &w, &p->err)) &&
        expect_ok(t, rlx_session_set_bound(p->session, "n", MOST, &p->err)))
        return true;
    fail(t, "%s", p->err.message);
    place_close(p);
    return false;
}

static void check_bits(struct test *t, const char *device)
{
    static const int64_t sizes[] = {1, 5, 37, 2, 5, 36};
    struct grown want, got;
    struct place cpu, p;

    if (!open_growth(t, &cpu, "cpu", NULL))
        return;
    if (open_growth(t, &p, device, NULL)) {
        for (size_t i = 0; i < COUNT_OF(sizes); i++)
            if (grow(t, &cpu, sizes[i], &want) && grow(t, &p, sizes[i], &got)) {
                expect(t, memcmp(&want, &got, sizeof got) == 0);
                expect(t, got.rounds[0] > 5);
            }
        place_close(&p);
    }
    place_close(&cpu);
}

TEST_DEVICES(gpu_loop, the_bits_of_the_cpu)
{
    check_bits(t, test_device(t));
}

/* ---- watched, limited, lost ---- */

static void hear_step(void *user, const rlx_profile_event *e)
{
    int *heard = user;

    heard[strcmp(e->step, "while") == 0]++;
}

/* A loop is one step for whoever watches, and gives the same. */
static void check_profile(struct test *t, const char *device)
{
    struct grown want, got;
    int heard[2] = {0, 0};
    struct place p;

    if (!open_growth(t, &p, device, NULL))
        return;
    if (grow(t, &p, 9, &want)) {
        rlx_session_set_profile(p.session, hear_step, heard);
        grow(t, &p, 9, &got);
        expect(t, memcmp(&want, &got, sizeof got) == 0);
        expect_eq(t, heard[1], 2);
        expect(t, heard[0] > 0);
        rlx_session_set_profile(p.session, NULL, NULL);
        grow(t, &p, 9, &got);
        expect_eq(t, heard[1], 2);
        expect(t, memcmp(&want, &got, sizeof got) == 0);
    }
    place_close(&p);
}

TEST_DEVICES(gpu_loop, a_step_in_the_profile)
{
    check_profile(t, test_device(t));
}

/* An index that is out of range in some round is reported, and ends with its run. */
static void check_index(struct test *t, const char *device)
{
    static const char graph[] =
        "graph @main (input %i: i32[1]) { %y = while %i cond_graph=@c body_graph=@b return %y }"
        " graph @c (input %i: i32[1]) { %k = const i32[] {3} %a = ne %i, %k return %a }"
        " graph @b (input %i: i32[1]) { %next = const i32[5] {1 2 3 9 3}"
        " %a = gather %next, %i axis=0 return %a }";
    struct place p;
    int32_t i, y;

    if (!place_open(t, &p, device, NULL))
        return;
    rlx_binding in = {"i", {RLX_DTYPE_i32, 1, {1}, &i, 4}};
    rlx_binding out = {"out0", {RLX_DTYPE_i32, 1, {1}, &y, 4}};
    const rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .check_indices = true,
                                   .loop_limit = 20};
    if (expect_ok(t, place_build(&p, graph, &desc)))
        for (int round = 0; round < 3; round++) {
            i = round == 1 ? 7 : 0;
            rlx_status s = rlx_session_run(p.session, &run, &p.err);
            expect_status(t, s, round == 1 ? RLX_ERROR_INDEX : RLX_OK);
            if (round == 1)
                expect_contains(t, p.err.message, "7");
            else
                expect_eq(t, y, 3);
        }
    place_close(&p);
}

TEST_DEVICES(gpu_loop, a_bad_index_in_a_round)
{
    check_index(t, test_device(t));
}

/* Lost in the first round, in a later one, after the loops: the run says so and all can be freed;
 * the device is as good as new when it is opened again. */
static void check_lost(struct test *t, const char *device)
{
    static const char *const after[] = {"1", "4", "12"};
    struct grown got;
    struct place p;

    for (size_t i = 0; i < COUNT_OF(after); i++) {
        const rlx_flag flag = {"GPU_LOSE_AFTER", after[i]};
        if (!open_growth(t, &p, device, &flag))
            return;
        float x = 1;
        rlx_binding in = {"x", {RLX_DTYPE_f32, 1, {1}, &x, 4}};
        const rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, NULL, 0, NULL, 0};
        expect_status(t, rlx_session_run(p.session, &run, &p.err), RLX_ERROR_DEVICE_LOST);
        expect_contains(t, p.err.message, "lost");
        expect_status(t, rlx_session_run(p.session, &run, &p.err), RLX_ERROR_DEVICE_LOST);
        place_close(&p);
        if (open_growth(t, &p, device, NULL)) {
            grow(t, &p, 3, &got);
            place_close(&p);
        }
    }
}

TEST(gpu_loop, a_device_lost_in_a_round)
{
    check_lost(t, "vulkan");
}

TEST(gpu_loop, a_device_lost_in_a_round_on_webgpu)
{
    check_lost(t, "webgpu");
}

/* ---- beside others ---- */

struct looping {
    rlx_session *session;
    rlx_status status;
    rlx_error err;
};

static void *run_endless(void *user)
{
    struct looping *l = user;
    float x = 1;
    rlx_binding in = {"x", {RLX_DTYPE_f32, 0, {0}, &x, 4}};

    l->status = rlx_session_run(
        l->session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, NULL, 0, NULL, 0}, &l->err);
    return NULL;
}

/* A loop that would not end leaves the device to others, and stops at its limit. */
TEST_DEVICES(gpu_loop, others_run_meanwhile)
{
    static const char endless[] =
        "graph @main (input %x: f32[]) { %y = while %x cond_graph=@ever body_graph=@b return %y }"
        " graph @ever (input %x: f32[]) { %k = const bool[] {true} return %k }"
        " graph @b (input %x: f32[]) { %a = neg %x return %a }";
    struct looping l = {0};
    pthread_t thread;
    struct place p;

    if (!place_open(t, &p, test_device(t), NULL))
        return;
    if (expect_ok(
            t, place_build(&p, endless,
                           &(rlx_session_desc){RLX_SIZED(rlx_session_desc), .loop_limit = 1000}))) {
        rlx_model *model = p.model;
        l.session = p.session;
        p.model = NULL;
        p.session = NULL;
        require(t, pthread_create(&thread, NULL, run_endless, &l) == 0);
        for (int i = 0; i < 5; i++)
            expect_working(t, &p);
        pthread_join(thread, NULL);
        expect_status(t, l.status, RLX_ERROR_LIMIT);
        expect_contains(t, l.err.message, "1000");
        rlx_session_destroy(l.session);
        rlx_model_destroy(model);
    }
    place_close(&p);
}
