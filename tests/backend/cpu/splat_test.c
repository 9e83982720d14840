/* splat_test.c: images of splats from the CPU's kernels: against a ray caster that knows no tiles,
 * in one step and in two, at every instruction set, with any number of threads (ops-special.md 7,
 * 11.5). */
#include "splat_world.h"

#define WIDTH 20
#define HEIGHT 13
#define PIXELS (WIDTH * HEIGHT)

static const char *const levels[] = {"cpu:baseline", "cpu:avx2", "cpu:avx512", "cpu:neon"};
enum { LEVELS = 4 };

static float *render(struct test *t, const struct how *how, const struct splats *s, int tile,
                     size_t *n)
{
    char attrs[160];

    snprintf(attrs, sizeof attrs, "width=20 height=13 tile_size=%d max_list_entries=8000", tile);
    return splats_run(t, how, "render", s, attrs, NULL, 0, n);
}

/* ---- the image ----------------------------------------------------------------------------- */

static void check_image(struct test *t, const struct how *how, const struct splats *s,
                        const float *image)
{
    int64_t order[MOST_SPLATS], seen = 0;
    size_t n;
    float *prepared = splats_run(
        t, how, "prepare", s, "width=20 height=13 tile_size=8 max_list_entries=8000", NULL, 0, &n);

    if (!prepared)
        return;
    seen = by_distance(s, prepared + 4 * s->n, order);
    expect(t, seen > 5);
    for (int64_t k = 0; k < PIXELS; k++) {
        struct ray_hits hits;
        double ray[3], rgb[3];
        pixel_ray(s, WIDTH, HEIGHT, k, ray);
        find_hits(s, order, seen, ray, (double)0.01f, 0, &hits);
        add_light(s, &hits, ray, s->meta + 12, rgb);
        for (int ch = 0; ch < 3; ch++)
            expect_near(t, image[4 * k + ch], pow(fmax(rgb[ch], 0), 2.2), 5e-5);
    }
    free(prepared);
}

TEST(cpu_splat, is_what_rays_see_whatever_the_tiles)
{
    static const int sizes[] = {8, 4, 16, 32, 3};
    struct splats s;
    size_t n;

    for (int level = 0; level < LEVELS; level++)
        for (uint64_t seed = 1; has_device(levels[level]) && seed <= 3; seed++) {
            struct how how = {levels[level], 0};
            float *first;
            test_note(t, "%s, seed %d", levels[level], (int)seed);
            splats_random(&s, 40, seed == 2 ? 0 : 4, 4, seed);
            if (!(first = render(t, &how, &s, sizes[0], &n)))
                return;
            check_image(t, &how, &s, first);
            for (int i = 1; i < 5; i++) { /* but for A, which says 1 where a tile is empty */
                float *other = render(t, &how, &s, sizes[i], &n);
                for (int64_t k = 0; other && k < PIXELS; k++)
                    expect_bytes(t, other + 4 * k, first + 4 * k, 3 * sizeof *first);
                free(other);
            }
            free(first);
        }
}

TEST(cpu_splat, two_steps_are_one_bit_for_bit)
{
    static const char *const attrs[] = {
        "width=20 height=13 tile_size=4 max_list_entries=8000",
        "width=20 height=13 tile_size=16 max_list_entries=7",
        "width=1 height=1 tile_size=3 max_list_entries=1",
        "width=33 height=70 tile_size=50 alpha_cutoff=0.1 transmittance_threshold=0",
    };
    struct splats s;
    size_t n, m;

    for (int level = 0; level < LEVELS; level++)
        for (uint64_t seed = 1; has_device(levels[level]) && seed <= 8; seed++) {
            struct how how = {levels[level], 0};
            test_note(t, "%s, seed %d", levels[level], (int)seed);
            splats_random(&s, 40, (int64_t)seed % 5, 4, seed);
            float *one = splats_run(t, &how, "render", &s, attrs[seed % 4], NULL, 0, &n);
            float *two = splats_run(t, &how, "two steps", &s, attrs[seed % 4], NULL, 0, &m);
            expect_eq(t, m, n);
            if (one && two)
                expect_bytes(t, two, one, n * sizeof *one);
            free(one);
            free(two);
        }
}

TEST(cpu_splat, threads_do_not_show)
{
    static const char *const ops[] = {"render", "prepare", "backward"};
    struct splats s;
    float dl[4 * PIXELS];
    size_t n;

    splats_random(&s, 60, 4, 3, 4);
    for (int64_t k = 0; k < 4 * PIXELS; k++)
        dl[k] = (float)draw_number(9, k, -1, 1);
    for (int i = 0; i < 3; i++) {
        bool gradient = i == 2;
        const char *attrs = "width=20 height=13 tile_size=4 max_list_entries=3000";
        float *one = splats_run(t, &(struct how){NULL, 1}, ops[i], &s, attrs, gradient ? dl : NULL,
                                PIXELS, &n);
        float *three = splats_run(t, &(struct how){NULL, 3}, ops[i], &s, attrs,
                                  gradient ? dl : NULL, PIXELS, &n);
        if (one && three)
            expect_bytes(t, three, one, n * sizeof *one);
        free(one);
        free(three);
    }
}

TEST(cpu_splat, order_of_splats_does_not_show)
{
    struct splats s, turned;
    size_t n;

    splats_random(&s, 40, 4, 3, 5);
    splats_turn_round(&s, &turned);
    float *a = render(t, NULL, &s, 8, &n), *b = render(t, NULL, &turned, 8, &n);
    if (a && b)
        expect_bytes(t, b, a, n * sizeof *a);
    free(a);
    free(b);
}

TEST(cpu_splat, one_program_for_any_number_of_splats)
{
    const char *attrs = "width=20 height=13 tile_size=8 max_list_entries=900";
    struct splats s;
    rlx_error err;
    size_t n;

    for (int64_t count = 1; count <= 40; count += 13) {
        splats_random(&s, count, 0, 2, 3);
        float *fixed = splats_run(t, NULL, "render", &s, attrs, NULL, 0, &n);
        float *bound = splats_try(NULL, "render", &s, "dim n <= 64", attrs, NULL, 0, &n, &err);
        expect(t, bound != NULL);
        if (fixed && bound)
            expect_bytes(t, bound, fixed, n * sizeof *fixed);
        free(fixed);
        free(bound);
    }
}

/* ---- lists --------------------------------------------------------------------------------- */

enum { TILES = 3 * 2, ROOM = 2000 };

/* Where a prepared scene of n splats has its list and its ranges. */
static const float *list_of(const float *prepared, int64_t n)
{
    return prepared + 15 * n;
}

/* Whether a tile's list names the splat. */
static bool is_listed(const float *list, const float *range, int64_t tile, int64_t splat)
{
    for (float i = range[2 * tile]; i < range[2 * tile + 1]; i++)
        if ((int64_t)list[(int64_t)i] == splat)
            return true;
    return false;
}

/* The first `most` of the splats' tiles, in the order of the splats, are what a short list has. */
static void check_short_list(struct test *t, const struct splats *s, const float *whole,
                             const float *some, int64_t most)
{
    const float *list = list_of(whole, s->n), *range = list + ROOM;
    const float *short_range = list_of(some, s->n) + most;
    int64_t order[MOST_SPLATS], seen = by_distance(s, whole + 4 * s->n, order), left = most;
    int64_t want[TILES][MOST_SPLATS], count[TILES] = {0}, at = 0;

    for (int64_t i = 0; i < seen; i++)
        for (int64_t tile = 0; tile < TILES && left > 0; tile++)
            if (is_listed(list, range, tile, order[i])) {
                want[tile][count[tile]++] = order[i];
                left--;
            }
    for (int64_t tile = 0; tile < TILES; tile++) {
        bool empty = count[tile] == 0;
        expect_near(t, short_range[2 * tile], empty ? 4294967296.0 : (double)at, 0);
        expect_near(t, short_range[2 * tile + 1], empty ? 0 : (double)(at + count[tile]), 0);
        for (int64_t i = 0; i < count[tile]; i++)
            expect_eq(t, (int64_t)list_of(some, s->n)[at++], want[tile][i]);
    }
    for (; at < most; at++)
        expect_near(t, list_of(some, s->n)[at], 0, 0);
}

TEST(cpu_splat, a_full_list_loses_the_farthest)
{
    static const int64_t most[] = {1, 2, 17, 60, 300};
    struct splats s;
    size_t n;
    char attrs[128];

    splats_random(&s, 50, 0, 3, 8);
    float *whole = splats_run(t, NULL, "prepare", &s,
                              "width=20 height=13 tile_size=8 max_list_entries=2000", NULL, 0, &n);
    for (int i = 0; whole && i < 5; i++) {
        test_note(t, "%d entries", (int)most[i]);
        snprintf(attrs, sizeof attrs, "width=20 height=13 tile_size=8 max_list_entries=%d",
                 (int)most[i]);
        float *some = splats_run(t, NULL, "prepare", &s, attrs, NULL, 0, &n);
        if (some)
            check_short_list(t, &s, whole, some, most[i]);
        free(some);
    }
    free(whole);
}

/* ---- what is refused, and what is not ------------------------------------------------------- */

TEST(cpu_splat, not_finite_is_not_seen)
{
    static const double odd[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    struct splats s;
    size_t n;

    for (int part = POSITIONS; part <= COLOURS; part++)
        for (int i = 0; i < 3; i++) {
            splats_random(&s, 2, 0, 0.2, 1);
            s.part[POSITIONS][2] = -1; /* in front of the other */
            s.part[part][0] = odd[i];
            test_note(t, "part %d: %g", part, odd[i]);
            float *a = splats_run(t, NULL, "prepare", &s, "width=8 height=8", NULL, 0, &n);
            float *b = splats_run(t, NULL, "render", &s, "width=8 height=8", NULL, 0, &n);
            /* an infinite colour is clamped, so that splat is seen */
            bool seen = part == COLOURS && i > 0;
            expect_near(t, a ? a[8] : 2, seen, 0);
            expect_near(t, a ? a[9] : 2, 1, 0);
            for (int64_t k = 0; b && k < 8 * 8 * 4; k++)
                expect(t, isfinite(b[k]));
            free(a);
            free(b);
        }
}

TEST(cpu_splat, the_field_of_view_is_one)
{
    static const struct {
        double fov;
        const char *part;
    } odd[] = {{0, "meta[9] is 0,"}, {180, "180"}, {-3, "-3"}, {(double)NAN, "nan"}};
    static const char *const ops[] = {"render", "prepare", "backward"};
    struct splats s;
    float dl[16 * 4] = {0};
    rlx_error err;
    size_t n;

    splats_random(&s, 2, 0, 1, 1);
    for (int op = 0; op < 3; op++)
        for (int i = 0; i < 4; i++) {
            s.meta[9] = odd[i].fov;
            err = (rlx_error){0};
            expect(t, splats_try(NULL, ops[op], &s, "", "width=4 height=4", op == 2 ? dl : NULL, 16,
                                 &n, &err) == NULL);
            expect_error(t, RLX_ERROR_ATTRIBUTE, odd[i].part, &err);
            expect_contains(t, err.op, "gaussian_splat");
            expect(t, err.node >= 0);
        }
}

static void rasterize(struct test *t, float *prepared, size_t n, float *meta, rlx_status want,
                      const char *part)
{
    char text[256];
    rlx_binding in[2] = {f32_input("a", prepared, (int64_t)n), f32_input("m", meta, 23)};
    rlx_error err = {0};
    size_t elements;

    snprintf(
        text, sizeof text,
        "rlx 1 graph (input %%a: f32[%d], input %%m: f32[23]) { %%y = gaussian_splat_rasterize "
        "%%a, %%m width=20 height=13 tile_size=8 max_list_entries=100 return %%y }",
        (int)n);
    float *image = run_text(NULL, text, in, 2, &elements, &err);
    expect_status(t, err.status, want);
    expect(t, (image != NULL) == (want == RLX_OK));
    if (want != RLX_OK)
        expect_error(t, want, part, &err);
    free(image);
}

TEST(cpu_splat, lists_that_name_no_splat)
{
    struct splats s;
    float meta[23] = {0}, *a;
    size_t n;

    splats_random(&s, 9, 0, 1, 1);
    a = splats_run(t, NULL, "prepare", &s, "width=20 height=13 tile_size=8 max_list_entries=100",
                   NULL, 0, &n);
    if (!a)
        return;
    float *list = a + 15 * 9, *range = list + 100, was = list[0];
    rasterize(t, a, n, meta, RLX_OK, "");
    list[0] = 9;
    rasterize(t, a, n, meta, RLX_ERROR_INDEX, "index 9 at position 135");
    list[0] = -1;
    rasterize(t, a, n, meta, RLX_ERROR_INDEX, "index -1 at position 135");
    list[0] = NAN;
    rasterize(t, a, n, meta, RLX_ERROR_INDEX, "position 135");
    list[0] = was;
    list[99] = 100; /* nobody's */
    rasterize(t, a, n, meta, RLX_OK, "");
    range[0] = -1;
    rasterize(t, a, n, meta, RLX_ERROR_INDEX, "index -1 at position 235");
    range[0] = 0;
    range[1] = 101;
    rasterize(t, a, n, meta, RLX_ERROR_INDEX, "index 101 at position 236");
    range[1] = INFINITY;
    rasterize(t, a, n, meta, RLX_ERROR_INDEX, "position 236");
    range[1] = NAN; /* before the start: empty */
    rasterize(t, a, n, meta, RLX_OK, "");
    free(a);
}
