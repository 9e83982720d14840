/* splat_grad_test.c: the CPU's gradients of splats, against central differences of the linear
 * training image as rays see it (ops-special.md 7.10, 11.5). */
#include "splat_world.h"

enum { WIDTH = 12, HEIGHT = 9, PIXELS = WIDTH * HEIGHT, COUNT = 6 };

#define SCREEN "width=12 height=9 tile_size=4 max_list_entries=400 "
#define ATTRS SCREEN "transmittance_threshold=0.0001 loss_grad_clip=1e9 "

static void draw_dl(float *dl, uint64_t seed)
{
    for (int64_t k = 0; k < 4 * PIXELS; k++)
        dl[k] = (float)draw_number(seed + 77, k, -1, 1);
}

static float *backward(struct test *t, const struct splats *s, const char *attrs, float *dl)
{
    size_t n = 0;
    float *g = splats_run(t, NULL, "backward", s, attrs, dl, PIXELS, &n);

    expect_eq(t, n, s->n * (14 + 3 * (s->coeffs > 1 ? s->coeffs : 1)));
    return g;
}

/* Where the gradients of a part begin. */
static int64_t part_at(const struct splats *s, int part)
{
    static const int64_t at[PARTS] = {0, 3, 6, 10, 11, 14};

    return at[part] * s->n;
}

/* ---- differences --------------------------------------------------------------------------- */

struct held {
    struct ray_hits hits[PIXELS];
};

/* What each pixel hits; held fixed while the splats move. */
static bool hold(struct test *t, const struct splats *s, int64_t most, struct held *h)
{
    int64_t order[MOST_SPLATS], seen;
    size_t n;
    float *prepared = splats_run(t, NULL, "prepare", s, SCREEN, NULL, 0, &n);

    if (!prepared)
        return false;
    seen = by_distance(s, prepared + 4 * s->n, order);
    expect_eq(t, seen, COUNT);
    for (int64_t k = 0; k < PIXELS; k++) {
        double ray[3];
        pixel_ray(s, WIDTH, HEIGHT, k, ray);
        find_hits(s, order, seen, ray, (double)0.0001f, most, &h->hits[k]);
    }
    free(prepared);
    return true;
}

static double loss_of(const struct splats *s, const struct held *h, const float *dl)
{
    double loss = 0, background[3];

    for (int ch = 0; ch < 3; ch++)
        background[ch] = pow(s->meta[12 + ch], 2.2);
    for (int64_t k = 0; k < PIXELS; k++) {
        double ray[3], rgb[3];
        pixel_ray(s, WIDTH, HEIGHT, k, ray);
        add_light(s, &h->hits[k], ray, background, rgb);
        for (int ch = 0; ch < 3; ch++)
            loss += rgb[ch] * (double)dl[4 * k + ch];
    }
    return loss;
}

static void check_part(struct test *t, struct splats *s, int part, const struct held *h,
                       const float *dl, const float *got)
{
    int64_t count = s->n * part_each(s, part);
    double step = 1e-5, largest = 1e-3;

    got += part_at(s, part);
    for (int64_t k = 0; k < count; k++)
        largest = fmax(largest, fabs((double)got[k]));
    for (int64_t k = 0; k < count; k++) {
        double was = s->part[part][k], loss[2];
        for (int side = 0; side < 2; side++) {
            s->part[part][k] = was + (side ? step : -step);
            loss[side] = loss_of(s, h, dl);
        }
        s->part[part][k] = was;
        test_note(t, "part %d, element %d", part, (int)k);
        expect_near(t, got[k], (loss[1] - loss[0]) / (2 * step), 1e-4 * largest);
    }
    test_note(t, "%s", "");
}

TEST(cpu_splat_grad, agrees_with_differences)
{
    static struct held h;
    struct splats s;
    float dl[4 * PIXELS];

    for (uint64_t seed = 1; seed <= 6; seed++) {
        bool all = seed % 2;
        splats_random(&s, COUNT, seed % 3 ? 4 : 0, 1.2, seed);
        draw_dl(dl, seed);
        float *g = backward(
            t, &s, all ? ATTRS "max_splat_steps=0 sh_band=1" : ATTRS "max_splat_steps=2 sh_band=3",
            dl);
        if (g && hold(t, &s, all ? 0 : 2, &h))
            for (int part = 0; part < PARTS; part++)
                if (part != (s.coeffs ? COLOURS : COEFFS))
                    check_part(t, &s, part, &h, dl, g);
        free(g);
    }
}

/* ---- rules --------------------------------------------------------------------------------- */

TEST(cpu_splat_grad, order_of_splats_permutes_it)
{
    struct splats s, turned;
    float dl[4 * PIXELS];

    splats_random(&s, 30, 4, 3, 4);
    splats_turn_round(&s, &turned);
    draw_dl(dl, 4);
    float *a = backward(t, &s, SCREEN "sh_band=1", dl);
    float *b = backward(t, &turned, SCREEN "sh_band=1", dl);
    for (int part = 0; a && b && part < PARTS; part++)
        for (int64_t i = 0; i < s.n; i++) {
            int64_t each = part_each(&s, part), at = part_at(&s, part);
            expect_bytes(t, b + at + (s.n - 1 - i) * each, a + at + i * each,
                         (size_t)each * sizeof *a);
        }
    free(a);
    free(b);
}

TEST(cpu_splat_grad, large_losses_are_clipped)
{
    struct splats s;
    float dl[4 * PIXELS];

    splats_random(&s, COUNT, 4, 1, 2);
    for (int64_t k = 0; k < 4 * PIXELS; k++)
        dl[k] = k % 3 ? 0.5f : -0.5f;
    float *once = backward(t, &s, SCREEN "loss_grad_clip=0.5", dl);
    for (int64_t k = 0; k < 4 * PIXELS; k++)
        dl[k] *= k % 7 == 0 ? INFINITY : k % 2 ? 1000 : 1;
    float *more = backward(t, &s, SCREEN "loss_grad_clip=0.5", dl);
    if (once && more)
        expect_bytes(t, more, once, COUNT * 26 * sizeof *once);
    free(once);
    free(more);
}

TEST(cpu_splat_grad, bands_and_plain_colours)
{
    struct splats s;
    float dl[4 * PIXELS], *g;

    draw_dl(dl, 1);
    splats_random(&s, COUNT, 4, 1, 2); /* sh_band=0: the constant band alone */
    g = backward(t, &s, SCREEN, dl);
    for (int64_t k = 0; g && k < COUNT * 12; k++)
        expect(t, k % 12 < 3 ? g[COUNT * 14 + k] != 0 : g[COUNT * 14 + k] == 0);
    for (int64_t k = 0; g && k < COUNT * 3; k++)
        expect_near(t, g[COUNT * 11 + k], 0, 0);
    free(g);
    splats_random(&s, COUNT, 1, 1, 2); /* the constant band is 0: colours stand in */
    memset(s.part[COEFFS], 0, sizeof s.part[COEFFS]);
    s.part[COLOURS][0] = 1.5; /* held at 1 */
    g = backward(t, &s, SCREEN, dl);
    for (int64_t k = 0; g && k < COUNT * 3; k++) {
        expect(t, (g[COUNT * 11 + k] != 0) == (k > 0));
        expect_near(t, g[COUNT * 14 + k], 0, 0);
    }
    free(g);
}

/* Out of sight, not a number, too opaque: nothing spreads from there. */
TEST(cpu_splat_grad, what_is_not_hit_has_none)
{
    struct splats s;
    float dl[4 * PIXELS], *g;

    draw_dl(dl, 3);
    splats_random(&s, COUNT, 4, 1, 3);
    s.part[POSITIONS][2] = -50;               /* splat 0 behind the camera */
    s.part[TURNS][4] = (double)NAN;           /* splat 1 nowhere */
    s.part[POSITIONS][6] = -(double)INFINITY; /* nor splat 2 */
    s.part[OPACITIES][3] = 1.5;               /* held at 1 */
    g = backward(t, &s, SCREEN "sh_band=1", dl);
    for (int part = 0; g && part < PARTS; part++)
        for (int64_t k = 0; k < s.n * part_each(&s, part); k++) {
            float v = g[part_at(&s, part) + k];
            expect(t, isfinite(v));
            if (k / part_each(&s, part) < 3)
                expect_near(t, v, 0, 0);
        }
    expect_near(t, g ? g[COUNT * 10 + 3] : 1, 0, 0);
    free(g);
}

/* A pixel without a gradient spoils those that it hits, and no others. */
TEST(cpu_splat_grad, a_nan_stays_where_it_is_hit)
{
    struct splats s;
    float dl[4 * PIXELS], *g;

    draw_dl(dl, 3);
    splats_random(&s, 2, 0, 0, 3);
    for (int k = 0; k < 6; k++)
        s.part[SCALES][k] = -3;
    s.part[POSITIONS][0] = -1.5; /* one to each side */
    s.part[POSITIONS][3] = 1.5;
    for (int64_t k = 0; k < PIXELS; k++)
        if (k % WIDTH < WIDTH / 2)
            dl[4 * k] = NAN;
    g = backward(t, &s, SCREEN, dl);
    for (int64_t i = 0; g && i < 2; i++) {
        double sum = (double)g[3 * i] + (double)g[20 + i];
        expect(t, isnan(sum) == (i == 0));
    }
    free(g);
}
