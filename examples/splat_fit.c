/* splat_fit.c: Gaussian splats learn a picture. One graph renders them, compares the image with the
 * picture and gives the gradients of every splat; Adam, here in C, takes a step along them. The
 * picture, the first image and the last go side by side into a PNG file: the first argument, or one
 * beside the program. */
#include "example.h"
#include "png.h"

enum { SIDE = 96, PIXELS = SIDE * SIDE, GRID = 18, COUNT = GRID * GRID, STEPS = 150 };
enum {
    TOTAL = 14 * COUNT
}; /* all that is learnt: positions, scales, rotations, opacities, colours */

static float splats[TOTAL], gradients[TOTAL + 3 * COUNT], mean[TOTAL], square[TOTAL];
static float target[PIXELS * 4], image[PIXELS * 4];

/* The parts of `splats`, in the order of the gradients; how far a step of each goes. */
static const struct part {
    const char *name;
    int64_t each, at;
    double rate;
} parts[] = {{"positions", 3, 0, 0.01},
             {"scales", 3, 3 * COUNT, 0.03},
             {"rotations", 4, 6 * COUNT, 0.03},
             {"opacities", 1, 10 * COUNT, 0.03},
             {"colors", 3, 11 * COUNT, 0.02}};

static double mix(double a, double b, double t)
{
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return a + (b - a) * t;
}

/* A sun over the sea. */
static void paint(void)
{
    const double top[3] = {0.16, 0.2, 0.5}, low[3] = {0.98, 0.6, 0.35}, sun[3] = {1, 0.93, 0.6};
    const double sea[3] = {0.1, 0.26, 0.42}, rock[3] = {0.08, 0.06, 0.12};

    for (int i = 0; i < PIXELS; i++) {
        int column = i % SIDE, row = i / SIDE;
        double x = (column + 0.5) / SIDE, y = (row + 0.5) / SIDE;
        double disc = 40 * (0.17 - hypot(x - 0.62, y - 0.45)), ridge = 0.62 - 0.28 * x;
        double glint = 0.6 * exp(-40 * (x - 0.62) * (x - 0.62)) * (0.5 + 0.5 * sin(90 * y * y));
        ridge += 0.03 * sin(23 * x) + (x > 0.45 ? 40 * (x - 0.45) * (x - 0.45) : 0);
        for (int k = 0; k < 3; k++) {
            double v = mix(mix(top[k], low[k], y / 0.6), sun[k], disc);
            v = mix(v, mix(sea[k], low[k], glint), 60 * (y - 0.62));
            v = mix(v, rock[k], y < 0.66 ? 60 * (y - ridge) : 0);
            target[4 * i + k] = (float)(v < 0.01 ? 0.01 : v > 0.99 ? 0.99 : v);
        }
    }
}

/* Grey balls on a grid, where the camera sees all of them. */
static void scatter(void)
{
    for (int i = 0; i < COUNT; i++) {
        float *p = splats + 3 * i, *s = splats + parts[1].at + 3 * i;
        int column = i % GRID, row = i / GRID;
        p[0] = 2.2f * ((float)column + 0.5f) / GRID - 1.1f;
        p[1] = 2.2f * ((float)row + 0.5f) / GRID - 1.1f;
        p[2] = 0.4f * pattern(1, (size_t)i);
        s[0] = s[1] = s[2] = -3.4f;
        splats[parts[2].at + 4 * i] = 1;
        splats[parts[3].at + i] = 0.7f;
        for (int k = 0; k < 3; k++)
            splats[parts[4].at + 3 * i + k] = 0.5f;
    }
}

/* The render is linear light, x to the power 2.2; its root is what the gradients are those of, over
 * a black background. */
static rlx_model *build(rlx_context *ctx)
{
    const float root = 1 / 2.2f, see[4] = {1, 1, 1, 0};
    const float meta[23] = {0, 0, -3, 0, 0, 0, 0, 1, 0, 40, 0.1f, 100};
    rlx_error err;
    rlx_graph *g;
    rlx_model *model;
    rlx_value v[5];

    check(rlx_graph_create(ctx, &g, &err), &err);
    for (int i = 0; i < 5; i++)
        v[i] = rlx_input(g, parts[i].name, RLX_DTYPE_f32, RLX_LIST(COUNT, parts[i].each));
    rlx_value want = rlx_input(g, "target", RLX_DTYPE_f32, RLX_LIST(PIXELS, 4));
    rlx_value none = rlx_const(g, RLX_DTYPE_f32, RLX_LIST(0), NULL, 0);
    rlx_value camera = rlx_const(g, RLX_DTYPE_f32, RLX_LIST(23), meta, sizeof meta);
    rlx_value power = rlx_const(g, RLX_DTYPE_f32, RLX_LIST(1), &root, sizeof root);
    rlx_value mask = rlx_const(g, RLX_DTYPE_f32, RLX_LIST(4), see, sizeof see);
    rlx_gaussian_splat_desc size = RLX_GAUSSIAN_SPLAT_DESC_INIT;
    size.width = size.height = SIDE;
    size.max_splat_steps = 0;
    size.max_list_entries = 1 << 15;
    rlx_value seen =
        rlx_gaussian_splat_render(g, v[0], v[1], v[2], v[3], v[4], none, camera, &size);
    rlx_value got = rlx_pow(g, rlx_reshape(g, seen, RLX_LIST(PIXELS, 4)), power);
    rlx_value off = rlx_mul(g, rlx_sub(g, got, want), mask);
    rlx_value loss = rlx_reduce_mean(g, rlx_mul(g, off, off), RLX_LIST(0, 1), false);
    rlx_gaussian_splat_render_backward_desc back = RLX_GAUSSIAN_SPLAT_RENDER_BACKWARD_DESC_INIT;
    back.width = back.height = SIDE;
    back.max_splat_steps = 0;
    back.max_list_entries = 1 << 15;
    rlx_value d = rlx_gaussian_splat_render_backward(g, v[0], v[1], v[2], v[3], v[4], none, camera,
                                                     off, &back);
    rlx_output(g, loss);
    rlx_output(g, d);
    rlx_output(g, seen);
    check(rlx_model_create(g, &model, &err), &err);
    return model;
}

static float render(rlx_session *session)
{
    rlx_binding in[6], out[3];
    float loss;
    rlx_error err;

    for (int i = 0; i < 5; i++)
        in[i] = (rlx_binding){parts[i].name,
                              {RLX_DTYPE_f32,
                               2,
                               {COUNT, parts[i].each},
                               splats + parts[i].at,
                               sizeof(float) * COUNT * (size_t)parts[i].each}};
    in[5] = (rlx_binding){"target", {RLX_DTYPE_f32, 2, {PIXELS, 4}, target, sizeof target}};
    out[0] = (rlx_binding){"out0", {RLX_DTYPE_f32, 0, {0}, &loss, sizeof loss}};
    out[1] = (rlx_binding){"out1", {RLX_DTYPE_f32, 1, {0}, gradients, sizeof gradients}};
    out[2] = (rlx_binding){"out2", {RLX_DTYPE_f32, 1, {0}, image, sizeof image}};
    check(rlx_session_run(session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 6, out, 3, NULL, 0},
                          &err),
          &err);
    return loss;
}

static float held(float v, float low, float high)
{
    return v < low ? low : v > high ? high : v;
}

/* Adam; then back to where opacities and colours have a gradient, and to unit quaternions. */
static void step(int number)
{
    double bias1 = 1 - pow(0.9, number), bias2 = 1 - pow(0.999, number);

    for (int p = 0; p < 5; p++)
        for (int64_t k = parts[p].at; k < parts[p].at + COUNT * parts[p].each; k++) {
            mean[k] = 0.9f * mean[k] + 0.1f * gradients[k];
            square[k] = 0.999f * square[k] + 0.001f * gradients[k] * gradients[k];
            splats[k] -= (float)(parts[p].rate * ((double)mean[k] / bias1) /
                                 (sqrt((double)square[k] / bias2) + 1e-8));
        }
    for (int64_t k = parts[3].at; k < TOTAL; k++)
        splats[k] = held(splats[k], 0.01f, 0.99f);
    for (float *q = splats + parts[2].at; q < splats + parts[3].at; q += 4) {
        float length = sqrtf(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]) + 1e-9f;
        for (int k = 0; k < 4; k++)
            q[k] /= length;
    }
}

/* One of the three pictures, side by side. */
static void show(uint8_t *rgb, int place, const float *picture, bool linear)
{
    for (int i = 0; i < PIXELS; i++)
        for (int k = 0; k < 3; k++) {
            float v = picture[4 * i + k];
            rgb[3 * (i / SIDE * 3 * SIDE + place * SIDE + i % SIDE) + k] =
                png_level(linear ? v : powf(v, 2.2f));
        }
}

int main(int argc, char **argv)
{
    static uint8_t rgb[3 * PIXELS * 3];
    struct world world = open_world(NULL);
    rlx_model *model = build(world.ctx);
    rlx_session *session;
    rlx_error err;
    char beside[1024];

    check(rlx_session_create(model, world.dev, NULL, &session, &err), &err);
    paint();
    scatter();
    float first = render(session), loss = first;
    show(rgb, 0, target, false);
    show(rgb, 1, image, true);
    for (int i = 1; i <= STEPS; i++) {
        step(i);
        loss = render(session);
        if (i % 25 == 0)
            printf("step %3d: mean squared error %.6f\n", i, (double)loss);
    }
    show(rgb, 2, image, true);
    snprintf(beside, sizeof beside, "%s.png", argv[0]);
    const char *path = argc > 1 ? argv[1] : beside;
    int failed = png_write(path, rgb, 3 * SIDE, SIDE);
    printf("%d splats, error from %.6f to %.6f, in %s\n", COUNT, (double)first, (double)loss, path);
    rlx_session_destroy(session);
    rlx_model_destroy(model);
    close_world(world);
    return failed || !(loss < 0.1f * first);
}
