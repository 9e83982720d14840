/* selftest_undecided_test.c: that answers which rounding may choose between are taken, and others
 * are not. */
#include "inspect/selftest/selftest.h"
#include "ir/eval/eval_splat_scene.h"

static const struct ir_node *last_node(const struct special *s)
{
    const struct ir_graph *g = ir_entry(s->run.mod);

    return ir_node(g, g->output.at[0]);
}

/* The last node, whose operands are leaves; variant -1: as it is. */
static bool define(struct test *t, struct special *s, int variant, struct eval_tensor *out)
{
    const struct ir_graph *g = ir_entry(s->run.mod);
    const struct eval_tensor *in[8];
    struct ir_node n = *last_node(s);

    if (variant >= 0)
        selftest_vary(g, &n, variant);
    for (int32_t i = 0; i < n.in_count; i++)
        in[i] = s->leaf[n.in[i]];
    return expect_ok(t, eval_tensor_new(&s->run.arena, &n.type, out, &s->run.diag)) &&
           expect_ok(t, eval_node(g, &n, in, out, NULL, &s->run.arena, &s->run.diag));
}

/* Does the self-test take this for the node's result? */
static bool taken(struct test *t, struct special *s, const double *got)
{
    const struct ir_node *n = last_node(s);
    struct eval_tensor want, other, result;
    struct comparison c;

    if (!define(t, s, -1, &want) ||
        !expect_ok(t, eval_tensor_new(&s->run.arena, &n->type, &result, &s->run.diag)))
        return false;
    for (int64_t k = 0; k < result.count; k++)
        result.at[k].f = got[k];
    for (int i = 0; i < selftest_variants(n->op); i++)
        if (!define(t, s, i, &other) ||
            !expect_ok(t, selftest_settle(n, &want, &other, &result, &s->run.arena, &s->run.diag)))
            return false;
    selftest_compare(ir_entry(s->run.mod), n, &want, NULL, &result, &c);
    return c.ok;
}

/* ---- splats -------------------------------------------------------------------------------- */

/* The one pixel of a scene with its splat that far from the middle; is the splat in it? */
static bool draw(struct test *t, struct special *s, float x, double *pixel)
{
    struct eval_tensor out;

    special_leaf(t, s, "positions")->at[0].f = (double)x;
    if (!define(t, s, -1, &out))
        return false;
    for (int k = 0; k < 4; k++)
        pixel[k] = out.at[k].f;
    return pixel[3] > 0 && pixel[3] < 1; /* with an empty list it is 1 */
}

TEST(selftest_undecided, splat_at_the_cutoff)
{
    double inside[4], outside[4], between[4];
    float near = 0, far = 4;
    struct special s;

    if (!scene_open(t, &s, "render", 1, 0, "width=1 height=1 tile_size=1"))
        return;
    scene_default(t, &s);
    for (int k = 0; k < 3; k++)
        special_leaf(t, &s, "colors")->at[k].f = 1;
    expect(t, draw(t, &s, near, inside) && !draw(t, &s, far, outside));
    while (nextafterf(near, far) < far) {
        float x = near + (far - near) / 2;
        *(draw(t, &s, x, inside) ? &near : &far) = x;
    }
    draw(t, &s, far, outside);
    draw(t, &s, near, inside);
    /* Alpha is the cutoff but for rounding: either is right, and nothing between them. */
    expect(t, taken(t, &s, inside) && taken(t, &s, outside));
    for (int k = 0; k < 4; k++)
        between[k] = (inside[k] + outside[k]) / 2;
    expect(t, !taken(t, &s, between));
    /* A thousandth away it is decided. */
    draw(t, &s, near * 0.999f, inside);
    expect(t, taken(t, &s, inside) && !taken(t, &s, outside));
    draw(t, &s, near * 1.001f, outside);
    expect(t, taken(t, &s, outside) && !taken(t, &s, inside));
    special_close(&s);
}

/* ---- welch_peaks --------------------------------------------------------------------------- */

/* Two segments of 4 bins, whose powers are those of re alone. */
static bool peaks_open(struct test *t, struct special *s, const float *re)
{
    if (!special_open(t, s,
                      "rlx 1 graph (input %x: f32[2,12]) { "
                      "%y = welch_peaks %x k=3 n_segments=2 return %y }"))
        return false;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            special_leaf(t, s, "x")->at[12 * i + j].f = (double)re[j];
    return true;
}

#define TAKEN(s, ...) taken(t, &(s), (const double[]){__VA_ARGS__})

TEST(selftest_undecided, peaks_of_nearly_equal_power)
{
    /* P = 1, 18, a little more than 18, 4 */
    const float close[] = {1, 3, nextafterf(3, 4), 2}, apart[] = {1, 3, 3.00001f, 2};
    struct special s;

    if (!peaks_open(t, &s, close))
        return;
    expect(t, TAKEN(s, 2, 18, 1, 18, 3, 4) && TAKEN(s, 1, 18, 2, 18, 3, 4));
    expect(t, !TAKEN(s, 1, 18, 1, 18, 3, 4)); /* each once */
    expect(t, !TAKEN(s, 1, 18, 3, 4, 2, 18)); /* in order */
    expect(t, !TAKEN(s, 1, 18, 2, 18, 0, 1)); /* the strongest */
    expect(t, !TAKEN(s, 1, 19, 2, 18, 3, 4)); /* with their powers */
    expect(t, !TAKEN(s, 1, 18, 4, 18, 3, 4) && !TAKEN(s, NAN, 18, 1, 18, 3, 4));
    special_close(&s);
    if (!peaks_open(t, &s, apart))
        return;
    expect(t, TAKEN(s, 2, 18.00012, 1, 18, 3, 4) && !TAKEN(s, 1, 18, 2, 18.00012, 3, 4));
    special_close(&s);
}

TEST(selftest_undecided, peaks_that_rounding_cannot_touch)
{
    const float zeros[] = {0, 0, 0, 0}, gaps[] = {NAN, 1, NAN, INFINITY};
    struct special s;

    if (!peaks_open(t, &s, zeros))
        return;
    expect(t, TAKEN(s, 0, 0, 1, 0, 2, 0) && !TAKEN(s, 1, 0, 0, 0, 2, 0));
    special_close(&s);
    if (!peaks_open(t, &s, gaps))
        return;
    expect(t, TAKEN(s, 3, INFINITY, 1, 2, 0, NAN) && !TAKEN(s, 3, INFINITY, 1, 2, 2, NAN));
    special_close(&s);
}
