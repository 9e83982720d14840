/* slots_test.c: typed access to slots through sessions: inputs, outputs, states, params, constants
 * and views, in every type, on every kind of device. */
#include <stdio.h>
#include <stdlib.h>

#include "device_memory.h"
#include "rlx/graph.h"
#include "run/convert.h"

/* Bytes that make tame and wild numbers in every type. */
static void fill(uint8_t *at, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        at[i] = (uint8_t)(seed >> 56);
    }
}

#define MOST 4097

struct rooms {
    uint8_t host[MOST * 8], want[MOST * 8], got[MOST * 8 + 16], all[MOST * 8];
};

struct world {
    rlx_context *ctx;
    rlx_device *dev;
    rlx_model *model;
    rlx_session *session;
    rlx_error err;
};

static bool world_open(struct test *t, struct world *w, const char *device)
{
    *w = (struct world){0};
    return expect_ok(t, rlx_context_create(RLX_VERSION, NULL, &w->ctx, &w->err)) &&
           !test_no_device(t, device, rlx_device_open(w->ctx, device, &w->dev, &w->err),
                           w->err.message);
}

static void world_drop(struct world *w)
{
    rlx_session_destroy(w->session);
    rlx_model_destroy(w->model);
    w->session = NULL;
    w->model = NULL;
}

static bool world_build(struct test *t, struct world *w, const char *text)
{
    world_drop(w);
    return (expect_ok(t, rlx_model_parse(w->ctx, rlx_cstr(text), &w->model, &w->err)) &&
            expect_ok(t, rlx_session_create(w->model, w->dev, NULL, &w->session, &w->err))) ||
           fail(t, "%s: %s", text, w->err.message);
}

static void world_close(struct world *w)
{
    world_drop(w);
    rlx_device_close(w->dev);
    rlx_context_destroy(w->ctx);
}

static rlx_tensor vector(rlx_dtype dtype, void *data, size_t count)
{
    return (rlx_tensor){dtype, 1, {(int64_t)count}, data, count * rlx_dtype_size(dtype)};
}

/* An input that is an output: what is written in one type is read in another. */
static void check_round_trip(struct test *t, struct world *w, struct rooms *r, rlx_dtype slot,
                             rlx_dtype in, rlx_dtype out, size_t count)
{
    rlx_binding given = {"x", vector(in, r->host, count)};
    rlx_binding wanted = {"x", vector(out, r->got, count)};

    test_note(t, "%zu of %s, through %s, as %s", count, rlx_dtype_name(in), rlx_dtype_name(slot),
              rlx_dtype_name(out));
    convert(slot, r->all, in, r->host, count);
    convert(out, r->want, slot, r->all, count);
    memset(r->got, 0xee, sizeof r->got);
    expect_ok(
        t, rlx_session_run(w->session,
                           &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &given, 1, &wanted, 1, NULL, 0},
                           &w->err));
    expect(t, memcmp(r->got, r->want, count * rlx_dtype_size(out)) == 0);
    expect_eq(t, r->got[count * rlx_dtype_size(out)], 0xee);
    expect(t, wanted.tensor.rank == 1 && wanted.tensor.dim[0] == (int64_t)count);
}

static void check_type(struct test *t, struct world *w, struct rooms *r, rlx_dtype slot)
{
    static const size_t few[] = {0, 1, 5, MOST};
    const rlx_dtype f32 = RLX_DTYPE_f32;
    char text[80];

    snprintf(text, sizeof text, "rlx 1 graph (input %%x: %s[n]) { return %%x }",
             rlx_dtype_name(slot));
    if (!world_build(t, w, text))
        return;
    for (size_t i = 0; i < 4; i++) {
        check_round_trip(t, w, r, slot, slot, slot, few[i]);
        check_round_trip(t, w, r, slot, f32, slot, few[i]);
        if (slot != RLX_DTYPE_c64) {
            check_round_trip(t, w, r, slot, slot, f32, few[i]);
            check_round_trip(t, w, r, slot, f32, f32, few[i]);
        }
    }
    test_note(t, "%s", "");
}

TEST_DEVICES_SLOW(slots, inputs_and_outputs_convert)
{
    const struct device_names devices = devices_of(t);
    struct rooms *r = malloc(sizeof *r);

    require(t, r != NULL);
    fill(r->host, sizeof r->host, 5);
    for (size_t k = 0; k < devices.count; k++) {
        struct world w;
        if (world_open(t, &w, devices.at[k]))
            for (int slot = 0; slot < RLX_DTYPE_count; slot++)
                check_type(t, &w, r, (rlx_dtype)slot);
        world_close(&w);
    }
    free(r);
}

static void check_kept(struct test *t, struct world *w, rlx_dtype slot, rlx_dtype in, rlx_dtype out)
{
    uint8_t host[40], stored[40], want[40], got[41];
    rlx_tensor given = vector(in, host, 5), wanted = vector(out, got, 5);

    test_note(t, "%s, through %s, as %s", rlx_dtype_name(in), rlx_dtype_name(slot),
              rlx_dtype_name(out));
    fill(host, sizeof host, 3);
    convert(slot, stored, in, host, 5);
    convert(out, want, slot, stored, 5);
    for (int param = 0; param < 2; param++) {
        memset(got, 0xee, sizeof got);
        expect_ok(t, param ? rlx_session_set_param(w->session, "w", &given, &w->err)
                           : rlx_session_set_state(w->session, "s", &given, &w->err));
        expect_ok(t, param ? rlx_session_get_param(w->session, "w", &wanted, &w->err)
                           : rlx_session_get_state(w->session, "s", &wanted, &w->err));
        expect_bytes(t, got, want, 5 * rlx_dtype_size(out));
        expect_eq(t, got[5 * rlx_dtype_size(out)], 0xee);
    }
}

TEST_DEVICES_SLOW(slots, states_and_params_convert)
{
    static const rlx_dtype types[] = {RLX_DTYPE_f32, RLX_DTYPE_f16,  RLX_DTYPE_bf16, RLX_DTYPE_i8,
                                      RLX_DTYPE_u16, RLX_DTYPE_bool, RLX_DTYPE_f64};
    const struct device_names devices = devices_of(t);
    const size_t n = sizeof types / sizeof types[0];

    for (size_t k = 0; k < devices.count; k++) {
        struct world w;
        bool open = world_open(t, &w, devices.at[k]);
        for (size_t slot = 0; slot < n && open; slot++) {
            char text[160];
            snprintf(text, sizeof text,
                     "rlx 1 graph (state %%s: %s[5], param %%w: %s[5]) { return %%s, %%w }",
                     rlx_dtype_name(types[slot]), rlx_dtype_name(types[slot]));
            open = world_build(t, &w, text);
            for (size_t i = 0; open && i < n * n; i++)
                check_kept(t, &w, types[slot], types[i / n], types[i % n]);
        }
        world_close(&w);
    }
    test_note(t, "%s", "");
}

/* A complex slot is not read as something real, nor cut down to its real part. */
TEST_DEVICES_SLOW(slots, complex_values_stay_complex)
{
    float z[4] = {1, 2, 3, 4}, x[2] = {5, 6}, got[4] = {0};
    const struct device_names devices = devices_of(t);
    struct world w;

    for (size_t k = 0; k < devices.count; k++) {
        if (world_open(t, &w, devices.at[k]) &&
            world_build(t, &w,
                        "rlx 1 graph (state %s: c64[2], param %w: c64[2]) { return %s, %w }")) {
            rlx_tensor complex = vector(RLX_DTYPE_c64, z, 2), real = vector(RLX_DTYPE_f32, x, 2);
            rlx_tensor out = vector(RLX_DTYPE_c64, got, 2);
            expect_ok(t, rlx_session_set_state(w.session, "s", &complex, &w.err));
            expect_ok(t, rlx_session_set_param(w.session, "w", &complex, &w.err));
            expect_status(t, rlx_session_get_state(w.session, "s", &real, &w.err), RLX_ERROR_DTYPE);
            expect_status(t, rlx_session_get_param(w.session, "w", &real, &w.err), RLX_ERROR_DTYPE);
            expect_near(t, x[0], 5, 0);
            expect_ok(t, rlx_session_set_state(w.session, "s", &real, &w.err));
            expect_ok(t, rlx_session_get_state(w.session, "s", &out, &w.err));
            expect_close(t, got, ((const float[]){5, 0, 6, 0}), 4, 0, 0);
        }
        world_close(&w);
    }
}

/* Constants keep their bytes, f64 too; a state is zero until it is set; views are read in place. */
TEST_DEVICES_SLOW(slots, constants_states_and_views_are_read)
{
    const struct device_names devices = devices_of(t);
    struct world w;

    for (size_t k = 0; k < devices.count; k++) {
        double c[3] = {0}, v[1] = {0};
        float s[2] = {9, 9};
        if (world_open(t, &w, devices.at[k]) &&
            world_build(t, &w,
                        "rlx 1 graph (state %s: f32[2]) { %c = const f64[3] {0.1 -1e300 3}"
                        " %v = narrow %c axis=0 start=1 len=1 return %c, %v, %s }")) {
            rlx_binding out[3] = {{"c", vector(RLX_DTYPE_f64, c, 3)},
                                  {"v", vector(RLX_DTYPE_f64, v, 1)},
                                  {"s", vector(RLX_DTYPE_f32, s, 2)}};
            expect_ok(t, rlx_session_run(w.session,
                                         &(rlx_run_desc){RLX_SIZED(rlx_run_desc), .outputs = out,
                                                         .output_count = 3},
                                         &w.err));
            expect(t, c[0] == 0.1 && c[1] == -1e300 && c[2] == 3 && v[0] == -1e300);
            expect(t, s[0] == 0 && s[1] == 0);
        }
        world_close(&w);
    }
}
