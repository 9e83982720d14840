/* eval_special_splat_test.c: images of splats against a ray caster that knows nothing of tiles, and
 * that prepared and direct rendering agree (ops-special.md 7, 11.5). */
#include "eval_splat_scene.h"

/* ---- one splat ----------------------------------------------------------------------------- */

TEST(splat, one_round_splat)
{
    struct special s;

    if (!scene_open(t, &s, "render", 1, 0, "width=9 height=7 tile_size=16 radius_scale=1"))
        return;
    scene_default(t, &s);
    special_leaf(t, &s, "scales")->at[0].f = log(0.8);
    special_leaf(t, &s, "scales")->at[1].f = log(0.8);
    special_leaf(t, &s, "scales")->at[2].f = log(0.8);
    special_leaf(t, &s, "opacities")->at[0].f = 0.75;
    special_leaf(t, &s, "colors")->at[0].f = 1;
    special_leaf(t, &s, "colors")->at[1].f = 0.5;
    require(t, special_run(t, &s));
    double f = 3.5 / tan(30 * M_PI / 180), seen = 0;
    for (int64_t k = 0; k < 63; k++) {
        double x = ((double)(k % 9) + 0.5 - 4.5) / f, y = ((double)(k / 9) + 0.5 - 3.5) / f;
        double square = 25 * (x * x + y * y) / (x * x + y * y + 1); /* of the ray from the centre */
        double alpha = 0.75 * exp(-square / (2 * 0.8 * 0.8));
        alpha = alpha >= 1.0 / 255 ? alpha : 0;
        expect_near(t, special_out(&s, 0, 4 * k), pow(alpha, 2.2), 1e-5);
        expect_near(t, special_out(&s, 0, 4 * k + 1), pow(alpha * 0.5, 2.2), 1e-5);
        expect_near(t, special_out(&s, 0, 4 * k + 2), 0, 1e-7);
        expect_near(t, special_out(&s, 0, 4 * k + 3), alpha, 1e-5);
        seen += alpha > 0;
    }
    expect(t, seen > 2 && seen < 60);
    special_close(&s);
}

TEST(splat, nothing_to_see_is_background)
{
    struct special s;

    if (!scene_open(t, &s, "render", 1, 0, "width=3 height=2 tile_size=4"))
        return;
    scene_default(t, &s);
    special_leaf(t, &s, "positions")->at[2].f = -9; /* behind the camera */
    special_leaf(t, &s, "meta")->at[12].f = 0.5;
    special_leaf(t, &s, "meta")->at[13].f = -1;
    require(t, special_run(t, &s));
    for (int64_t k = 0; k < 6; k++) {
        expect_near(t, special_out(&s, 0, 4 * k), pow(0.5, 2.2), 1e-7);
        expect_near(t, special_out(&s, 0, 4 * k + 1), 0, 0);
        expect_near(t, special_out(&s, 0, 4 * k + 3), 1, 0);
    }
    special_close(&s);
}

TEST(splat, camera_inside_a_splat_sees_it_everywhere)
{
    struct special s;

    if (!scene_open(t, &s, "prepare", 1, 0, "width=8 height=8 tile_size=4 max_list_entries=9"))
        return;
    scene_default(t, &s);
    special_leaf(t, &s, "positions")->at[2].f = -4.9; /* just before the camera at -5 */
    require(t, special_run(t, &s));
    expect_near(t, special_out(&s, 0, 4), 1, 0); /* valid */
    for (int64_t tile = 0; tile < 4; tile++) {   /* behind 15 of the splat and 9 entries */
        expect_near(t, special_out(&s, 0, 24 + 2 * tile), (double)tile, 0);
        expect_near(t, special_out(&s, 0, 25 + 2 * tile), (double)tile + 1, 0);
    }
    special_close(&s);
}

/* ---- any scene ----------------------------------------------------------------------------- */

/* The splats that are valid, nearest first; returns how many. */
static int64_t in_order(struct test *t, struct special *s, const bool *valid, int64_t count,
                        int64_t *order)
{
    int64_t found = 0;

    for (int64_t i = 0; i < count; i++) {
        int64_t at = found;
        if (!valid[i])
            continue;
        for (; at > 0 && scene_distance(t, s, i) < scene_distance(t, s, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = i;
        found++;
    }
    return found;
}

/* Colour of pixel k by going through all of them. */
static void cast_ray(struct test *t, struct special *s, const int64_t *order, int64_t count,
                     int64_t k, double *rgb)
{
    double ray[3], left = 1;

    scene_ray(t, s, 20, 13, k, ray);
    rgb[0] = rgb[1] = rgb[2] = 0;
    for (int64_t i = 0; i < count && left >= (double)0.01f; i++) {
        double alpha = scene_alpha(t, s, order[i], ray);
        if (alpha < (double)(1.0f / 255))
            continue;
        for (int ch = 0; ch < 3; ch++)
            rgb[ch] += left * alpha * scene_colour(t, s, order[i], ch);
        left *= 1 - alpha;
    }
    for (int ch = 0; ch < 3; ch++)
        rgb[ch] += left * special_leaf(t, s, "meta")->at[12 + ch].f;
}

static bool find_valid(struct test *t, int64_t count, uint64_t seed, bool *valid)
{
    struct special s;

    if (!scene_open(t, &s, "prepare", count, 4,
                    "width=20 height=13 tile_size=8 max_list_entries=4000"))
        return false;
    scene_random(t, &s, seed);
    bool ran = special_run(t, &s);
    for (int64_t i = 0; ran && i < count; i++)
        valid[i] = special_out(&s, 0, 4 * count + i) != 0;
    special_close(&s);
    return ran;
}

static void check_tiles(struct test *t, uint64_t seed, int tile_size)
{
    enum { COUNT = 30 };
    bool valid[COUNT];
    int64_t order[COUNT], seen = 0;
    char attrs[160];
    struct special s;

    test_note(t, "seed %d, tile_size %d", (int)seed, tile_size);
    snprintf(attrs, sizeof attrs, "width=20 height=13 tile_size=%d max_list_entries=4000",
             tile_size);
    if (!find_valid(t, COUNT, seed, valid) || !scene_open(t, &s, "render", COUNT, 4, attrs))
        return;
    scene_random(t, &s, seed);
    seen = in_order(t, &s, valid, COUNT, order);
    expect(t, seen > 5);
    if (special_run(t, &s))
        for (int64_t k = 0; k < 20 * 13; k++) {
            double rgb[3];
            cast_ray(t, &s, order, seen, k, rgb);
            for (int ch = 0; ch < 3; ch++)
                expect_near(t, special_out(&s, 0, 4 * k + ch), pow(fmax(rgb[ch], 0), 2.2), 2e-4);
        }
    special_close(&s);
}

TEST(splat, tiles_do_not_show)
{
    static const int sizes[] = {4, 8, 16, 32};

    for (int i = 0; i < 4; i++)
        for (uint64_t seed = 1; seed <= 3; seed++)
            check_tiles(t, seed, sizes[i]);
}

/* A splat that is left out has nothing to show. */
TEST(splat, what_is_invisible_would_not_be_seen)
{
    enum { COUNT = 40 };
    struct special s;
    bool valid[COUNT];
    int64_t hidden = 0;

    for (uint64_t seed = 10; seed < 14; seed++) {
        if (!find_valid(t, COUNT, seed, valid) ||
            !scene_open(t, &s, "render", COUNT, 4, "width=20 height=13"))
            return;
        scene_random(t, &s, seed);
        for (int64_t i = 0; i < COUNT; i++) {
            double most = 0;
            for (int64_t k = 0; k < 20 * 13; k++) {
                double ray[3];
                scene_ray(t, &s, 20, 13, k, ray);
                most = fmax(most, scene_alpha(t, &s, i, ray));
            }
            if (!valid[i] && scene_depth(t, &s, i) > 1e-4)
                expect(t, most < (double)(1.0f / 255));
            hidden += !valid[i];
        }
        special_close(&s);
    }
    expect(t, hidden > 0);
}

TEST(splat, prepared_is_direct_bit_for_bit)
{
    static const char *const attrs[] = {
        "width=20 height=13 tile_size=4 max_list_entries=4000",
        "width=20 height=13 tile_size=16 max_list_entries=7",
        "width=1 height=1 tile_size=3 max_list_entries=1",
    };

    for (uint64_t seed = 1; seed <= 6; seed++) {
        const char *a = attrs[seed % 3];
        struct special s;
        if (!scene_open(t, &s, "both", 25, seed % 5, a))
            return;
        scene_random(t, &s, seed);
        if (special_run(t, &s))
            for (int64_t k = 0; k < run_output(&s.run, 0)->count; k++)
                expect_near(t, special_out(&s, 1, k), special_out(&s, 0, k), 0);
        special_close(&s);
    }
}

TEST(splat, order_of_splats_does_not_show)
{
    enum { COUNT = 12 };
    struct special a, b;
    static const struct {
        const char *name;
        int each;
    } part[] = {{"positions", 3}, {"scales", 3}, {"rotations", 4},
                {"opacities", 1}, {"colors", 3}, {"sh", 12}};

    if (!scene_open(t, &a, "render", COUNT, 4, "width=16 height=16"))
        return;
    scene_random(t, &a, 5);
    if (scene_open(t, &b, "render", COUNT, 4, "width=16 height=16")) {
        scene_random(t, &b, 5);
        for (size_t i = 0; i < 6; i++)
            for (int64_t k = 0; k < COUNT * part[i].each; k++) /* the last splat first */
                special_leaf(t, &b, part[i].name)->at[k] =
                    special_leaf(t, &a, part[i].name)
                        ->at[(COUNT - 1 - k / part[i].each) * part[i].each + k % part[i].each];
        if (special_run(t, &a) && special_run(t, &b))
            for (int64_t k = 0; k < 16 * 16 * 4; k++)
                expect_near(t, special_out(&a, 0, k), special_out(&b, 0, k), 0);
        special_close(&b);
    }
    special_close(&a);
}

TEST(splat, a_full_list_loses_the_farthest)
{
    struct special s;

    if (!scene_open(t, &s, "render", 2, 0, "width=8 height=8 tile_size=8 max_list_entries=1"))
        return;
    scene_default(t, &s);
    special_leaf(t, &s, "positions")->at[2].f = 2; /* the first is farther, and red */
    special_leaf(t, &s, "colors")->at[0].f = 1;
    special_leaf(t, &s, "colors")->at[4].f = 1; /* the other is green */
    require(t, special_run(t, &s));
    expect_near(t, special_out(&s, 0, 4 * 36), 0, 0);
    expect(t, special_out(&s, 0, 4 * 36 + 1) > 0.06);
    special_close(&s);
}

/* ---- colour -------------------------------------------------------------------------------- */

/* rgb of the only splat, as prepare has it. */
static void expect_rgb(struct test *t, int coeffs, double sh0, double sh1, double colour,
                       double want)
{
    struct special s;

    if (!scene_open(t, &s, "prepare", 1, (uint64_t)coeffs, "width=4 height=4"))
        return;
    scene_default(t, &s);
    for (int k = 0; k < 3; k++) {
        special_leaf(t, &s, "positions")->at[k].f = k == 1 ? 5 : k == 2 ? -5 : 0; /* above it */
        special_leaf(t, &s, "colors")->at[k].f = colour;
        if (coeffs)
            special_leaf(t, &s, "sh")->at[k].f = sh0;
        if (coeffs > 1)
            special_leaf(t, &s, "sh")->at[3 + k].f = sh1;
    }
    if (special_run(t, &s))
        for (int k = 0; k < 3; k++)
            expect_near(t, special_out(&s, 0, k), want, 1e-6);
    special_close(&s);
}

TEST(splat, colours)
{
    double c0 = 0.28209479177387814, c1 = 0.4886025119029199;

    expect_rgb(t, 0, 0, 0, 0.3, 0.3);
    expect_rgb(t, 0, 0, 0, 7, 1); /* clamped */
    expect_rgb(t, 1, 0, 0, 0.3, 0.3);
    expect_rgb(t, 1, 1e-9, 0, 0.3, 0.3);
    expect_rgb(t, 1, 1, 0, 0.3, 0.5 + c0);
    expect_rgb(t, 16, 0, 0, 0.3, 0.5);
    expect_rgb(t, 2, 1, 2, 0.3, 0.5 + c0 + c1 * 2); /* the camera is below: dir.y = -1 */
    expect_rgb(t, 4, 0, 2, 0.3, 0.3 + c1 * 2);      /* the colour stands for band 0 only */
}

/* ---- refusals ------------------------------------------------------------------------------ */

TEST(splat, not_finite_is_not_seen)
{
    static const char *const name[] = {"positions", "scales", "rotations", "opacities", "colors"};
    static const double odd[] = {NAN, INFINITY, -INFINITY};

    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 3; k++) {
            struct special s;
            if (!scene_open(t, &s, "render", 2, 0, "width=8 height=8"))
                return;
            scene_default(t, &s);
            special_leaf(t, &s, "positions")->at[2].f = -1; /* in front of the other */
            special_leaf(t, &s, "colors")->at[4].f = 1;
            special_leaf(t, &s, name[i])->at[0].f = odd[k];
            if (special_run(t, &s))
                for (int64_t p = 0; p < 8 * 8 * 4; p++)
                    expect(t, isfinite(special_out(&s, 0, p)));
            /* an infinite colour is clamped, so that splat is seen */
            bool seen = i == 4 && k > 0;
            expect(t, (special_out(&s, 0, 4 * 36 + 1) > 0.06) == !seen);
            special_close(&s);
        }
}

TEST(splat, the_field_of_view_is_one)
{
    static const double odd[] = {0, 180, -3, NAN};
    struct special s;

    for (int i = 0; i < 4; i++) {
        if (!scene_open(t, &s, "prepare", 1, 0, "width=4 height=4"))
            return;
        scene_default(t, &s);
        special_leaf(t, &s, "meta")->at[9].f = odd[i];
        expect_status(t, run_graph(&s.run, s.leaf), RLX_ERROR_ATTRIBUTE);
        expect_contains(t, s.run.diag.first.message, "field of view");
        special_close(&s);
    }
}

TEST(splat, lists_from_strangers)
{
    /* one splat (15), two entries, one tile (2), one pixel (3), 11 params */
    static const struct {
        double id, start, end;
        rlx_status want;
    } row[] = {
        {0, 0, 1, RLX_OK},          {0, 4294967296.0, 0, RLX_OK},      {9, 1, 1, RLX_OK},
        {1, 0, 1, RLX_ERROR_INDEX}, {-1, 0, 1, RLX_ERROR_INDEX},       {NAN, 0, 1, RLX_ERROR_INDEX},
        {0, 0, 3, RLX_ERROR_INDEX}, {0, -1, 1, RLX_ERROR_INDEX},       {0, NAN, 1, RLX_ERROR_INDEX},
        {0, 0, NAN, RLX_OK},        {0, 0, INFINITY, RLX_ERROR_INDEX},
    };
    struct special s;

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        if (!special_open(t, &s,
                          "rlx 1 graph (input %p: f32[33], input %m: f32[23]) { %y = "
                          "gaussian_splat_rasterize %p, %m width=1 height=1 max_list_entries=2 "
                          "return %y }"))
            return;
        test_note(t, "row %d", (int)i);
        special_leaf(t, &s, "p")->at[15].f = row[i].id;
        special_leaf(t, &s, "p")->at[17].f = row[i].start;
        special_leaf(t, &s, "p")->at[18].f = row[i].end;
        expect_status(t, run_graph(&s.run, s.leaf), row[i].want);
        special_close(&s);
    }
}
