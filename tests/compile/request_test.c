/* request_test.c: the compiler is given a request and nothing else: no session is needed. */
#include "compile/compile.h"
#include "session/required.h"

enum { MOST_SYMBOLS = 64 };

struct asked {
    struct place at;
    struct target target;
    struct store *store;
    rlx_session_desc desc;
    rlx_allocator mem;
    struct mem_bound bound;
    struct memory state;
    int64_t size[MOST_SYMBOLS], upper[MOST_SYMBOLS];
    bool by_value[MOST_SYMBOLS];
    rlx_compiled_info compiled;
    struct compile_request request;
    uint64_t most, taken; /* bytes that the device gives, and has given */
};

static struct buffer *no_buffer(void *user, rlx_str input)
{
    (void)user;
    (void)input;
    return NULL;
}

static rlx_status may_take(void *user, uint64_t bytes, struct diag *d)
{
    struct asked *a = user;

    if (bytes > a->most - a->taken)
        return diag_fail(d, RLX_ERROR_MEMORY, "%llu bytes are too many", (unsigned long long)bytes);
    a->taken += bytes;
    return RLX_OK;
}

/* The model's dim "n" may have any size up to 4. */
static bool ask(struct test *t, struct asked *a, const char *text)
{
    *a = (struct asked){.most = 1 << 20};
    if (!place_open(t, &a->at, "cpu", NULL))
        return false;
    if (!expect_ok(t, rlx_model_parse(a->at.ctx, rlx_cstr(text), &a->at.model, &a->at.err)))
        return fail(t, "%s", a->at.err.message);
    struct rlx_model *m = a->at.model;
    struct diag d;
    size_t n = 0;
    diag_init(&d, "compile");
    a->at.dev->backend->ops->describe(a->at.dev->backend, &a->target);
    a->mem = mem_bounded(&a->bound, &a->at.ctx->mem, 64 << 20);
    for (size_t i = 0; i < MOST_SYMBOLS; i++)
        a->size[i] = -1;
    if (!expect_ok(t, store_open(m, a->at.dev, 0, &a->store, &d)) ||
        !expect(t, dim_find_symbol(m->mod->dims, STR("n"), &n)) ||
        !expect(t, dim_symbol_count(m->mod->dims) <= MOST_SYMBOLS))
        return false;
    a->size[n] = SYMBOL_KEPT;
    a->upper[n] = 4;
    a->request = (struct compile_request){
        .model = m,
        .device = a->at.dev,
        .target = &a->target,
        .desc = &a->desc,
        .store = a->store,
        .mem = &a->mem,
        .mem_bound = &a->bound,
        .symbol_count = dim_symbol_count(m->mod->dims),
        .size = a->size,
        .bound = a->upper,
        .by_value = a->by_value,
        .state = &a->state,
        .input_buffer = no_buffer,
        .may_take = may_take,
        .may_take_locked = may_take,
        .user = a,
        .compiled = &a->compiled,
    };
    return true;
}

static void done(struct asked *a)
{
    if (a->store)
        store_close(a->store);
    place_close(&a->at);
}

TEST(request, a_program_is_compiled_without_a_session)
{
    struct asked a;
    struct compiled_program p;
    struct diag d;

    if (ask(t, &a,
            "rlx 1\ngraph (input %x: f32[n,2], param %w: f32[2,2])"
            " { %y = matmul %x, %w return %y }\n")) {
        diag_init(&d, "compile");
        if (expect_ok(t, compile(&a.request, &p, &d))) {
            expect_eq(t, p.program->input_count, 1);
            expect_eq(t, p.program->output[0].type.dim[0], 4);
            expect_eq(t, a.compiled.programs, 1);
            expect(t, p.program->symbolic != NULL);
            expect(t, a.taken > 0);
            compiled_program_destroy(&p);
        }
    }
    done(&a);
}

TEST(request, memory_is_asked_for_and_may_be_refused)
{
    struct asked a;
    struct compiled_program p;
    struct diag d;

    if (ask(t, &a, "rlx 1\ngraph (input %x: f32[n,2]) { %y = exp %x return %y }\n")) {
        a.most = 1;
        diag_init(&d, "compile");
        expect_eq(t, compile(&a.request, &p, &d), RLX_ERROR_MEMORY);
        expect(t, strstr(d.first.message, "bytes are too many") != NULL);
        expect_eq(t, a.compiled.programs, 0);
    }
    done(&a);
}

/* It says which symbols cannot stay, for whoever then asks for them by value. */
TEST(request, a_dim_that_cannot_shrink_is_named)
{
    struct asked a;
    struct compiled_program p;
    struct diag d;
    size_t n = 0;

    if (ask(t, &a,
            "rlx 1\ngraph (input %x: f32[n,4]) { %p = pad %x before=[0,0] after=[4-n,0]"
            " %s = narrow %p axis=0 start=n len=4-n %y = neg %s return %y }\n")) {
        diag_init(&d, "compile");
        rlx_status s = compile(&a.request, &p, &d);
        dim_find_symbol(a.at.model->mod->dims, STR("n"), &n);
        if (expect_eq(t, s, RLX_ERROR_EXTENT))
            expect(t, a.by_value[n]);
    }
    done(&a);
}
