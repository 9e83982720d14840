/* dims_test.c: the symbolic dims of a model, as a caller sees them before anything runs. */
#include <string.h>

#include "base/str.h"
#include "rlx/tools.h"
#include "test.h"

#define MODEL                                                                                   \
    "rlx 1\ndim seq <= 512\ngraph (input %ids: i32[batch,seq], input %past: f32[batch,past,4]," \
    " param %w: f32[4,8]) { %y = matmul %past, %w return %y, %ids }"

struct world {
    rlx_context *ctx;
    rlx_model *model;
    rlx_error err;
};

static bool open_world(struct test *t, struct world *w)
{
    *w = (struct world){0};
    return expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &w->ctx, &w->err)) &&
           expect_ok(t, rlx_model_parse(w->ctx, rlx_cstr(MODEL), &w->model, &w->err));
}

static void close_world(struct world *w)
{
    rlx_model_destroy(w->model);
    rlx_context_destroy(w->ctx);
}

static const rlx_model_dim *dim_of(const rlx_model_dim *dims, const char *name)
{
    for (size_t i = 0; i < 3; i++)
        if (str_eq(dims[i].name, rlx_cstr(name)))
            return &dims[i];
    return NULL;
}

TEST(dims, sizes_come_from_dims_and_shapes)
{
    struct world w;
    rlx_model_dim dims[3];
    const rlx_binding in = {"ids", {.dtype = RLX_DTYPE_i32, .rank = 2, .dim = {2, 7}}};
    const rlx_dim_size past = {"past", 5};

    if (open_world(t, &w) && expect_eq(t, rlx_model_dim_count(w.model), 3)) {
        expect_ok(t, rlx_model_dims(w.model, NULL, dims, &w.err));
        const rlx_model_dim *batch = dim_of(dims, "batch"), *seq = dim_of(dims, "seq");
        expect(t,
               batch && batch->size == -1 && batch->leads && batch->of_input && batch->bound == 0);
        expect(t, seq && seq->size == -1 && !seq->leads && seq->bound == 512);
        const rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .inputs = &in, .input_count = 1,
                                  .dims = &past, .dim_count = 1};
        expect_ok(t, rlx_model_dims(w.model, &run, dims, &w.err));
        expect(t, batch && batch->size == 2 && seq && seq->size == 7);
        expect(t, dim_of(dims, "past") && dim_of(dims, "past")->size == 5);
    }
    close_world(&w);
}

TEST(dims, what_does_not_fit_is_said_with_both_shapes)
{
    struct world w;
    rlx_model_dim dims[3];
    rlx_binding in = {"past", {.dtype = RLX_DTYPE_f32, .rank = 3, .dim = {1, 2, 3}}};
    rlx_dim_size size = {"bacth", 1};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .inputs = &in, .input_count = 1};

    if (open_world(t, &w)) {
        expect_status(t, rlx_model_dims(w.model, &run, dims, &w.err), RLX_ERROR_SHAPE);
        expect_error(t, RLX_ERROR_SHAPE,
                     "input \"past\": f32[batch,past,4] is wanted, f32[1,2,3] was given", &w.err);
        in.tensor.rank = 2;
        expect_status(t, rlx_model_dims(w.model, &run, dims, &w.err), RLX_ERROR_SHAPE);
        run = (rlx_run_desc){RLX_SIZED(rlx_run_desc), .dims = &size, .dim_count = 1};
        expect_status(t, rlx_model_dims(w.model, &run, dims, &w.err), RLX_ERROR_NAME);
        expect_error(t, RLX_ERROR_NAME,
                     "there is no dim \"bacth\"; there are: batch, seq, past; did you mean batch?",
                     &w.err);
        expect_status(t, rlx_model_dims(NULL, &run, dims, &w.err), RLX_ERROR_ARGUMENT);
        expect_status(t, rlx_model_dims(w.model, &run, NULL, &w.err), RLX_ERROR_ARGUMENT);
    }
    close_world(&w);
}

TEST(dims, types_are_written_as_in_the_text_form)
{
    struct world w;
    char text[64], small[6];

    if (open_world(t, &w)) {
        expect_str(t, rlx_model_io_type(w.model, RLX_IO_INPUT, 0, text, sizeof text),
                   "i32[batch,seq]");
        expect_str(t, rlx_model_io_type(w.model, RLX_IO_PARAM, 0, text, sizeof text), "f32[4,8]");
        expect_str(t, rlx_model_io_type(w.model, RLX_IO_OUTPUT, 0, text, sizeof text),
                   "f32[batch,past,8]");
        expect_str(t, rlx_model_io_type(w.model, RLX_IO_INPUT, 9, text, sizeof text), "");
        expect_str(t, rlx_model_io_type(w.model, RLX_IO_INPUT, 0, small, sizeof small), "i32[b");
        expect_str(t, rlx_model_io_type(w.model, RLX_IO_INPUT, 0, NULL, 0), "");
    }
    close_world(&w);
}
