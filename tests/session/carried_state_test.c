/* carried_state_test.c: ops that begin from a state and write it back: a sequence in pieces gives
 * what it gives at once, and leaves the same state, with programs that are compiled for a bound. */
#include "sized.h"

enum { TOTAL = 10, ITEMS = 2, MOST_FLOATS = 4096 };

struct graph {
    const char *leaves, *body;
    int64_t state[4]; /* its shape; 0 ends it */
};

/* n counts the steps. */
static const struct graph graphs[] = {
    {"input %x: f32[2,n,6,5], input %d: f32[2,n,6], param %a: f32[6], input %b: f32[2,n,2,3], "
     "input %c: f32[2,n,2,3], state %s: f32[2,6,5,3]",
     "%dt = sigmoid %d %e = exp %a %m = neg %e "
     "%y = mamba2 %x, %dt, %m, %b, %c, %s head_dim=5 state_size=3 groups=2 carry_state=true",
     {2, 6, 5, 3}},
    {"input %x: f32[2,n,2,64], input %d: f32[2,n,2], param %a: f32[2], input %b: f32[2,n,2,16], "
     "state %s: f32[2,2,64,16]",
     "%dt = sigmoid %d %e = exp %a %m = neg %e "
     "%y = mamba2 %x, %dt, %m, %b, %b, %s head_dim=64 state_size=16 carry_state=true",
     {2, 2, 64, 16}},
    {"input %x: f32[2,n,37], input %d: f32[2,n,37], param %a: f32[37,16], input %b: f32[2,n,16], "
     "input %c: f32[2,n,16], state %s: f32[2,37,16]",
     "%dt = sigmoid %d %e = exp %a %m = neg %e "
     "%y = selective_scan %x, %dt, %m, %b, %c, %s state_size=16 carry_state=true",
     {2, 37, 16}},
    {"input %x: f32[2,n,3], input %d: f32[2,n,3], param %a: f32[3,5], input %b: f32[2,n,5], "
     "state %s: f32[2,3,5]",
     "%dt = sigmoid %d %e = exp %a %m = neg %e "
     "%y = selective_scan %x, %dt, %m, %b, %b, %s state_size=5 carry_state=true",
     {2, 3, 5}},
    {"input %x: f32[2,n,37], param %w: f32[37,4], param %b: f32[37], state %s: f32[2,3,37]",
     "%y = causal_conv %x, %w, %s, %b activation=silu carry_state=true",
     {2, 3, 37}},
    {"input %x: f32[2,n,5], param %w: f32[5,16], state %s: f32[2,15,5]",
     "%y = causal_conv %x, %w, %s carry_state=true",
     {2, 15, 5}},
    {"input %x: f32[2,n,5], param %w: f32[5,2], state %s: f32[2,1,5]",
     "%y = causal_conv %x, %w, %s carry_state=true",
     {2, 1, 5}},
    {"input %q: f32[2,n,2,5], input %k: f32[2,n,2,5], input %g: f32[2,n,2], state %s: "
     "f32[2,2,5,5]",
     "%b = sigmoid %g %d = neg %b %u = tanh %k "
     "%y = gated_delta_net %q, %u, %q, %d, %b, %s state_size=5 carry_state=true",
     {2, 2, 5, 5}},
};

static rlx_tensor state_of(const struct graph *g, float *data)
{
    rlx_tensor s = {.dtype = RLX_DTYPE_f32, .data = data};

    for (; s.rank < 4 && g->state[s.rank]; s.rank++)
        s.dim[s.rank] = g->state[s.rank];
    s.bytes = sized_count(&s) * sizeof(float);
    return s;
}

/* What a sequence of TOTAL steps holds; a run takes some of them. */
static float whole[SIZED_INPUTS][MOST_FLOATS];

/* Steps [first, first + steps) of x [ITEMS, TOTAL, ..]. */
static void take(float *to, const float *x, size_t width, int64_t first, int64_t steps)
{
    for (int64_t item = 0; item < ITEMS; item++)
        memcpy(to + (size_t)(item * steps) * width, x + (size_t)(item * TOTAL + first) * width,
               (size_t)steps * width * sizeof *x);
}

static bool run(struct test *t, struct place *p, int64_t first, int64_t steps, float *y)
{
    static float some[SIZED_INPUTS][MOST_FLOATS], out[MOST_FLOATS];
    const rlx_dim_size dim = {"n", steps}, all = {"n", TOTAL};
    rlx_binding in[SIZED_INPUTS], to = {"out0", {.dtype = RLX_DTYPE_f32, .data = out}};
    size_t inputs = rlx_model_io_count(p->model, RLX_IO_INPUT);
    char name[SIZED_INPUTS][8];

    to.tensor.bytes = sizeof out;
    for (size_t i = 0; i < inputs; i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        rlx_tensor shape;
        rlx_model_io(p->model, RLX_IO_INPUT, i, &info, NULL);
        snprintf(name[i], sizeof name[i], "%.*s", (int)info.name.len, info.name.ptr);
        in[i].name = name[i];
        if (!expect_ok(t, rlx_model_input_shape(p->model, i, &all, 1, &shape, &p->err)) ||
            !expect_ok(t, rlx_model_input_shape(p->model, i, &dim, 1, &in[i].tensor, &p->err)))
            return false;
        sized_fill(whole[i], sized_count(&shape), i, false);
        take(some[i], whole[i], sized_count(&shape) / (ITEMS * TOTAL), first, steps);
        in[i].tensor.dtype = RLX_DTYPE_f32;
        in[i].tensor.data = some[i];
        in[i].tensor.bytes = sized_count(&in[i].tensor) * sizeof(float);
    }
    if (!expect_ok(t, rlx_session_run(
                          p->session,
                          &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, inputs, &to, 1, &dim, 1},
                          &p->err)))
        return fail(t, "%s", p->err.message);
    size_t width = sized_count(&to.tensor) / (size_t)(ITEMS * (steps ? steps : 1));
    for (int64_t item = 0; item < ITEMS; item++)
        memcpy(y + (size_t)(item * TOTAL + first) * width, out + (size_t)(item * steps) * width,
               (size_t)steps * width * sizeof *y);
    return true;
}

/* A sequence in pieces of these sizes, from the same state on. */
static bool run_pieces(struct test *t, struct place *p, const struct graph *g, const int64_t *piece,
                       float *y, rlx_tensor *state)
{
    static float begin[MOST_FLOATS];
    char text[1024];
    int64_t first = 0;

    snprintf(text, sizeof text, "dim n <= 12 graph (%s) { %s return %%y }", g->leaves, g->body);
    if (!expect_ok(t, place_build(p, text, NULL)) || !sized_params(t, p))
        return fail(t, "%s", p->err.message);
    *state = state_of(g, state->data);
    rlx_tensor from = *state;
    from.data = begin;
    sized_fill(begin, sized_count(state), 9, false);
    bool ok = expect_ok(t, rlx_session_set_state(p->session, "s", &from, &p->err));
    for (; ok && first < TOTAL; first += *piece++)
        ok = run(t, p, first, *piece, y);
    return ok && expect_ok(t, rlx_session_get_state(p->session, "s", state, &p->err));
}

TEST_DEVICES(carried_state, pieces_give_what_the_whole_gives)
{
    static const int64_t pieces[][12] = {
        {TOTAL}, {1, 2, 7}, {7, 0, 2, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {5, 5}};
    static float y[2][MOST_FLOATS], s[2][MOST_FLOATS];
    struct place p;

    if (!place_open(t, &p, test_device(t), NULL))
        return;
    for (size_t i = 0; i < COUNT_OF(graphs); i++)
        for (size_t k = 0; k < COUNT_OF(pieces); k++) {
            rlx_tensor state = {.data = s[k > 0]};
            test_note(t, "%s, pieces %zu", graphs[i].body, k);
            memset(y[k > 0], 0, sizeof y[0]);
            bool ok = run_pieces(t, &p, &graphs[i], pieces[k], y[k > 0], &state);
            place_drop(&p);
            if (!ok)
                break;
            expect_close(t, y[k > 0], y[0], MOST_FLOATS, 1e-5, 1e-5);
            expect_close(t, s[k > 0], s[0], sized_count(&state), 1e-5, 1e-5);
        }
    place_close(&p);
}

/* ---- a state that is an operand too ---- */

/* Z is the state, or an input of the same numbers: as an operand the state is read as it was before
 * the op. */
static const struct graph both[] = {
    {"input %f: f32[2,4,4,4], input %d: f32[2,4,4], param %a: f32[4], input %b: f32[2,4,4,4], "
     "state %s: f32[2,4,4,4]",
     "%y = mamba2 Z, %d, %a, %b, Z, %s head_dim=4 state_size=4 carry_state=true",
     {2, 4, 4, 4}},
    {"input %f: f32[1,6,3,3], input %d: f32[1,3,6], param %a: f32[6], input %x: f32[1,3,6,3], "
     "state %s: f32[1,6,3,3]",
     "%r = reshape Z shape=[1,3,6,3] "
     "%y = mamba2 %x, %d, %a, %x, %r, %s head_dim=3 state_size=3 carry_state=true",
     {1, 6, 3, 3}},
    {"input %f: f32[2,7,5], input %x: f32[2,7,7], param %a: f32[7,5], state %s: f32[2,7,5]",
     "%y = selective_scan %x, %x, %a, Z, Z, %s state_size=5 carry_state=true",
     {2, 7, 5}},
    {"input %f: f32[2,3,5], param %w: f32[5,4], state %s: f32[2,3,5]",
     "%y = causal_conv Z, %w, %s carry_state=true",
     {2, 3, 5}},
    {"input %f: f32[1,8,8,8], input %g: f32[1,8,8], input %k: f32[1,8,8,8], "
     "state %s: f32[1,8,8,8]",
     "%y = gated_delta_net Z, %k, %k, %g, %g, %s state_size=8 carry_state=true",
     {1, 8, 8, 8}},
};

/* With `name` for Z. */
static void put_operand(char *text, size_t size, const char *from, const char *name)
{
    size_t n = 0;

    for (; *from && n + 4 < size; from++) {
        if (*from != 'Z')
            text[n++] = *from;
        for (const char *at = name; *from == 'Z' && *at; at++)
            text[n++] = *at;
    }
    text[n] = 0;
}

static bool run_both(struct test *t, struct place *p, const struct graph *g, const char *name,
                     struct sized *y, rlx_tensor *state)
{
    char text[1024], body[512];

    put_operand(body, sizeof body, g->body, name);
    snprintf(text, sizeof text, "graph (%s) { %s return %%y }", g->leaves, body);
    if (!expect_ok(t, place_build(p, text, NULL)) || !sized_params(t, p))
        return fail(t, "%s", p->err.message);
    *state = state_of(g, state->data);
    sized_fill(state->data, sized_count(state), 0, false); /* as the first input is */
    if (!expect_ok(t, rlx_session_set_state(p->session, "s", state, &p->err)))
        return false;
    sized_run(p, NULL, 0, y);
    return expect_ok(t, rlx_session_get_state(p->session, "s", state, &p->err));
}

TEST_DEVICES(carried_state, may_be_an_operand_too)
{
    static float s[2][SIZED_ROOM];
    static struct sized y[2];
    struct place p;

    if (!place_open(t, &p, test_device(t), NULL))
        return;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        rlx_tensor state[2] = {{.data = s[0]}, {.data = s[1]}};
        bool ok = true;
        test_note(t, "%s", both[i].body);
        for (int k = 0; ok && k < 2; k++) {
            ok = run_both(t, &p, &both[i], k ? "%f" : "%s", &y[k], &state[k]);
            place_drop(&p);
        }
        if (ok && sized_same(t, &y[0], &y[1]))
            expect_bytes(t, s[0], s[1], state[0].bytes);
    }
    place_close(&p);
}
