/* splat_render.c: a knot of a few hundred Gaussian splats over a floor, rendered to a PNG file: the
 * first argument, or one beside the program. */
#include "example.h"
#include "png.h"

enum { WIDTH = 320, HEIGHT = 240, KNOT = 480, FLOOR = 21, COUNT = KNOT + FLOOR * FLOOR };

static float positions[COUNT][3], scales[COUNT][3], turns[COUNT][4], opacities[COUNT];
static float colours[COUNT][3];

#define TAU 6.283185307179586

/* Where the knot is: twice around the axis while it goes three times through the hole. */
static void knot_at(double turn, double *p)
{
    double r = 1.3 + 0.55 * cos(3 * TAU * turn);

    p[0] = r * cos(2 * TAU * turn);
    p[1] = r * sin(2 * TAU * turn);
    p[2] = 0.55 * sin(3 * TAU * turn);
}

static void place(int i, double x, double y, double z, double opacity)
{
    positions[i][0] = (float)x;
    positions[i][1] = (float)y;
    positions[i][2] = (float)z;
    opacities[i] = (float)opacity;
    turns[i][0] = 1;
}

/* A long splat lies along the knot: its first axis is turned towards where the knot goes. */
static void lay_knot(int i)
{
    double at[3], next[3], length = 0, turn = (double)i / KNOT;
    const double sizes[3] = {0.024, 0.03, 0.03};

    knot_at(turn, at);
    knot_at(turn + 1e-4, next);
    place(i, at[0], at[1], at[2], 0.85);
    for (int k = 0; k < 3; k++)
        length += (next[k] - at[k]) * (next[k] - at[k]);
    double d[3] = {(next[0] - at[0]) / sqrt(length), (next[1] - at[1]) / sqrt(length),
                   (next[2] - at[2]) / sqrt(length)};
    double w = sqrt(0.5 * (1 + d[0])); /* half the angle from (1,0,0) to d */
    turns[i][0] = (float)w;
    turns[i][2] = (float)(-d[2] / (2 * w + 1e-9));
    turns[i][3] = (float)(d[1] / (2 * w + 1e-9));
    for (int k = 0; k < 3; k++) {
        scales[i][k] = (float)log(sizes[k]);
        colours[i][k] = (float)(0.55 + 0.45 * cos(TAU * (turn - k / 3.0)));
    }
}

/* Flat, pale, and checkered. */
static void lay_floor(int i)
{
    int middle = FLOOR / 2, column = i % FLOOR - middle, row = i / FLOOR - middle;
    double x = 0.42 * column, z = 0.42 * row;
    double fade = exp(-(x * x + z * z) / 9), light = (column + row) % 2 ? 0.42 : 0.72;

    i += KNOT;
    place(i, x, -2.05, z, 0.9 * fade);
    for (int k = 0; k < 3; k++) {
        scales[i][k] = (float)log(k == 1 ? 0.01 : 0.075);
        colours[i][k] = (float)(light * (k == 2 ? 1.05 : 0.95));
    }
}

int main(int argc, char **argv)
{
    /* Camera, target, up, field of view, near, far, background. Rows of the image go along up, so
     * up is the world's down. */
    float meta[23] = {2.4f, 1.6f, -6.6f, 0, -0.3f, 0, 0, -1, 0, 42, 0.1f, 100, 0.05f, 0.06f, 0.1f};
    static float image[WIDTH * HEIGHT * 4];
    static uint8_t rgb[WIDTH * HEIGHT * 3];
    struct world world = open_world(NULL);
    rlx_graph *g;
    rlx_model *model;
    rlx_session *session;
    rlx_error err;
    char beside[1024];

    for (int i = 0; i < KNOT; i++)
        lay_knot(i);
    for (int i = 0; i < FLOOR * FLOOR; i++)
        lay_floor(i);

    check(rlx_graph_create(world.ctx, &g, &err), &err);
    rlx_value p = rlx_input(g, "positions", RLX_DTYPE_f32, RLX_LIST(COUNT, 3));
    rlx_value s = rlx_input(g, "scales", RLX_DTYPE_f32, RLX_LIST(COUNT, 3));
    rlx_value q = rlx_input(g, "rotations", RLX_DTYPE_f32, RLX_LIST(COUNT, 4));
    rlx_value o = rlx_input(g, "opacities", RLX_DTYPE_f32, RLX_LIST(COUNT));
    rlx_value c = rlx_input(g, "colors", RLX_DTYPE_f32, RLX_LIST(COUNT, 3));
    rlx_value h = rlx_input(g, "sh", RLX_DTYPE_f32, RLX_LIST(0)); /* none: plain colours */
    rlx_value m = rlx_input(g, "meta", RLX_DTYPE_f32, RLX_LIST(23));
    rlx_gaussian_splat_desc d = RLX_GAUSSIAN_SPLAT_DESC_INIT;
    d.width = WIDTH;
    d.height = HEIGHT;
    d.max_splat_steps = 0;
    d.max_list_entries = 1 << 16;
    rlx_value picture = rlx_gaussian_splat_render(g, p, s, q, o, c, h, m, &d);
    rlx_label(g, picture, "picture");
    rlx_output(g, picture);
    check(rlx_model_create(g, &model, &err), &err);
    check(rlx_session_create(model, world.dev, NULL, &session, &err), &err);

    const rlx_binding in[] = {
        {"positions", {RLX_DTYPE_f32, 2, {COUNT, 3}, positions, sizeof positions}},
        {"scales", {RLX_DTYPE_f32, 2, {COUNT, 3}, scales, sizeof scales}},
        {"rotations", {RLX_DTYPE_f32, 2, {COUNT, 4}, turns, sizeof turns}},
        {"opacities", {RLX_DTYPE_f32, 1, {COUNT}, opacities, sizeof opacities}},
        {"colors", {RLX_DTYPE_f32, 2, {COUNT, 3}, colours, sizeof colours}},
        {"sh", {RLX_DTYPE_f32, 1, {0}, NULL, 0}},
        {"meta", {RLX_DTYPE_f32, 1, {23}, meta, sizeof meta}},
    };
    rlx_binding out = {"picture", {RLX_DTYPE_f32, 1, {0}, image, sizeof image}};
    check(rlx_session_run(session,
                          &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, 7, &out, 1, NULL, 0}, &err),
          &err);

    int lit = 0;
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        for (int k = 0; k < 3; k++)
            rgb[3 * i + k] = png_level(image[4 * i + k]);
        lit += rgb[3 * i] > 60 || rgb[3 * i + 1] > 60 || rgb[3 * i + 2] > 60;
    }
    snprintf(beside, sizeof beside, "%s.png", argv[0]);
    const char *path = argc > 1 ? argv[1] : beside;
    int failed = png_write(path, rgb, WIDTH, HEIGHT);
    printf("%d splats, %d of %d pixels lit, in %s\n", COUNT, lit, WIDTH * HEIGHT, path);
    rlx_session_destroy(session);
    rlx_model_destroy(model);
    close_world(world);
    return failed || lit < WIDTH * HEIGHT / 10;
}
