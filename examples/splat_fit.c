/* splat_fit.c: Gaussian splats learn a picture. The graph renders them and compares the image with
 * the picture; rlx_train_graph makes a step of training of it. The picture, the first image and the
 * last go side by side into a PNG file: the first argument, or one beside the program. */
#define RLX_UNSTABLE
#include "example.h"
#include "png.h"
#include "rlx/train.h"

enum { SIDE = 96, PIXELS = SIDE * SIDE, GRID = 18, COUNT = GRID * GRID, STEPS = 150 };

static float target[PIXELS * 3], image[PIXELS * 4];

/* What is learnt of each splat, and how far a step goes in it. */
enum { POSITIONS, SCALES, ROTATIONS, OPACITIES, COLORS, PARTS };
static const struct part {
    const char *name;
    int64_t each;
    double far;
} parts[PARTS] = {{"positions", 3, 0.01},
                  {"scales", 3, 0.03},
                  {"rotations", 4, 0.03},
                  {"opacities", 1, 0.15},
                  {"colors", 3, 0.1}};

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
            target[3 * i + k] = (float)(v < 0.01 ? 0.01 : v > 0.99 ? 0.99 : v);
        }
    }
}

/* Where the splats begin: grey balls on a grid, where the camera sees all of them. Opacities and
 * colours are those whose sigmoid is taken. */
static float start(int part, int i, int k)
{
    const int64_t at[] = {i % GRID, i / GRID};

    switch (part) {
    case POSITIONS:
        return k < 2 ? 2.2f * ((float)at[k] + 0.5f) / GRID - 1.1f : 0.4f * pattern(1, (size_t)i);
    case SCALES: return -3.4f;
    case ROTATIONS: return k == 0;
    case OPACITIES: return 0.85f;
    default: return 0;
    }
}

/* The param says how many steps it is away from the start: 0 at first, as states are. */
static rlx_value part_of(rlx_graph *g, int part)
{
    static float from[4 * COUNT];
    const int64_t each = parts[part].each;

    for (int i = 0; i < COUNT * each; i++)
        from[i] = start(part, i / (int)each, i % (int)each);
    rlx_value begin = rlx_const(g, RLX_DTYPE_f32, RLX_LIST(COUNT, each), from,
                                sizeof *from * COUNT * (size_t)each);
    rlx_value p = rlx_param(g, parts[part].name, RLX_DTYPE_f32, RLX_LIST(COUNT, each));
    rlx_value v = rlx_add(g, begin, rlx_mul(g, p, rlx_scalar(g, p, parts[part].far)));
    if (part == ROTATIONS) { /* of length 1 */
        rlx_value square = rlx_reduce_sum(g, rlx_mul(g, v, v), RLX_LIST(1), true);
        return rlx_div(g, v, rlx_sqrt(g, square));
    }
    return part < OPACITIES ? v : rlx_sigmoid(g, v); /* between 0 and 1 */
}

/* The render is linear light, x to the power 2.2, but its gradients are those of x: so the root
 * that is taken here changes the image, and gradients go past it as they are. */
static rlx_model *build(rlx_context *ctx)
{
    const float meta[23] = {0, 0, -3, 0, 0, 0, 0, 1, 0, 40, 0.1f, 100};
    rlx_gaussian_splat_desc size = RLX_GAUSSIAN_SPLAT_DESC_INIT;
    rlx_train_desc adam = {RLX_SIZED(rlx_train_desc), .rate = 1, .eps = 1e-12f};
    rlx_model *model;
    rlx_value v[PARTS];
    rlx_error err;
    rlx_graph *g;

    check(rlx_graph_create(ctx, &g, &err), &err);
    for (int i = 0; i < PARTS; i++)
        v[i] = part_of(g, i);
    rlx_value want = rlx_input(g, "target", RLX_DTYPE_f32, RLX_LIST(PIXELS, 3));
    rlx_value none = rlx_const(g, RLX_DTYPE_f32, RLX_LIST(0), NULL, 0);
    rlx_value camera = rlx_const(g, RLX_DTYPE_f32, RLX_LIST(23), meta, sizeof meta);
    size.width = size.height = SIDE;
    size.max_splat_steps = 0;
    size.max_list_entries = 1 << 15;
    rlx_value seen =
        rlx_gaussian_splat_render(g, v[0], v[1], v[2], v[3], v[4], none, camera, &size);
    rlx_value rgb = rlx_narrow(g, rlx_reshape(g, seen, RLX_LIST(PIXELS, 4)), 1, 0, 3);
    rlx_value root = rlx_pow(g, rgb, rlx_scalar(g, rgb, 1 / 2.2));
    rlx_value got = rlx_add(g, rgb, rlx_stop_gradient(g, rlx_sub(g, root, rgb)));
    rlx_output(g, seen);
    check(rlx_train_graph(g, rlx_mse(g, got, want), &adam, &err), &err);
    check(rlx_model_create(g, &model, &err), &err);
    return model;
}

/* A step of training: gives the loss and, in `image`, the render before it. */
static float step(rlx_session *session)
{
    float loss;
    rlx_error err;
    rlx_binding in = {"target", {RLX_DTYPE_f32, 2, {PIXELS, 3}, target, sizeof target}};
    rlx_binding out[] = {{"loss", {.dtype = RLX_DTYPE_f32, .data = &loss, .bytes = sizeof loss}},
                         {"out0", {RLX_DTYPE_f32, 1, {0}, image, sizeof image}}};

    check(rlx_session_run(session,
                          &(rlx_run_desc){RLX_SIZED(rlx_run_desc), &in, 1, out, 2, NULL, 0}, &err),
          &err);
    return loss;
}

/* One of the three pictures, side by side; of so many numbers to a pixel. */
static void show(uint8_t *rgb, int place, const float *picture, int each)
{
    for (int i = 0; i < PIXELS; i++)
        for (int k = 0; k < 3; k++) {
            float v = picture[each * i + k];
            rgb[3 * (i / SIDE * 3 * SIDE + place * SIDE + i % SIDE) + k] =
                png_level(each == 4 ? v : powf(v, 2.2f)); /* a render is linear light */
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
    float first = step(session), loss = first;
    show(rgb, 0, target, 3);
    show(rgb, 1, image, 4);
    for (int i = 1; i <= STEPS; i++) {
        loss = step(session);
        if (i % 25 == 0)
            printf("step %3d: mean squared error %.6f\n", i, (double)loss);
    }
    show(rgb, 2, image, 4);
    snprintf(beside, sizeof beside, "%s.png", argv[0]);
    const char *path = argc > 1 ? argv[1] : beside;
    int failed = png_write(path, rgb, 3 * SIDE, SIDE);
    printf("%d splats, error from %.6f to %.6f, in %s\n", COUNT, (double)first, (double)loss, path);
    rlx_session_destroy(session);
    rlx_model_destroy(model);
    close_world(world);
    return failed || !(loss < 0.1f * first);
}
