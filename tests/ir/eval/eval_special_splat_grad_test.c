/* eval_special_splat_grad_test.c: the gradients of splats against central differences of the linear
 * training image (ops-special.md 7.10, 11.5). */
#include "eval_splat_scene.h"
#include "ir/eval/eval_splat.h"

enum { COUNT = 6, WIDTH = 12, HEIGHT = 9 };

#define ATTRS                                                                            \
    "width=12 height=9 tile_size=4 max_list_entries=400 transmittance_threshold=0.0001 " \
    "loss_grad_clip=1e9 "

static const struct operand {
    const char *name;
    int64_t each, at; /* elements per splat, and where its gradients begin */
} operand[] = {{"positions", 3, 0},  {"scales", 3, 3},  {"rotations", 4, 6},
               {"opacities", 1, 10}, {"colors", 3, 11}, {"sh", 12, 14}};

/* dl . (acc + T bgl), straight from the hits and with nothing rounded. */
static double training_loss(struct test *t, struct special *s)
{
    const struct ir_graph *g = ir_entry(s->run.mod);
    const struct ir_node *n = ir_node(g, g->output.at[0]);
    const struct eval_cell *dl = special_leaf(t, s, "dl")->at;
    const struct eval_tensor *in[8];
    struct arena scratch;
    struct splat_scene scene;
    struct splat_hit *hit;
    double loss = NAN;

    for (int i = 0; i < 8; i++)
        in[i] = &s->value[n->in[i]];
    arena_init(&scratch, mem_default());
    struct eval_call c = {.graph = g,
                          .node = n,
                          .op = n->op,
                          .attr = &n->attr,
                          .in_count = 8,
                          .in = in,
                          .arena = &scratch,
                          .diag = &s->run.diag};
    if (splat_scene_make(&c, &scene) == RLX_OK && splat_hits_new(&c, &scene, &hit) == RLX_OK) {
        loss = 0;
        for (int64_t k = 0; k < WIDTH * HEIGHT; k++) {
            double left;
            int64_t most = n->attr.gaussian_splat_render_backward.max_splat_steps;
            int64_t hits = splat_trace(&scene, k % WIDTH, k / WIDTH, most, hit, &left);
            struct v3 sum = {pow(scene.background.x, 2.2), pow(scene.background.y, 2.2),
                             pow(scene.background.z, 2.2)};
            sum = v3_scale(sum, left);
            for (int64_t i = 0; i < hits; i++)
                sum = v3_add(sum,
                             v3_scale(scene.splat[hit[i].splat].rgb, hit[i].before * hit[i].alpha));
            loss += v3_dot(sum, v3_at(dl + 4 * k));
        }
    }
    arena_free(&scratch);
    return loss;
}

static void check_operand(struct test *t, struct special *s, const struct operand *o, int64_t each)
{
    struct eval_tensor *x = special_leaf(t, s, o->name);
    double h = 1e-5, largest = 1e-3;
    const struct eval_tensor *got = run_output(&s->run, 0);

    for (int64_t k = 0; k < COUNT * each; k++)
        largest = fmax(largest, fabs(got->at[COUNT * o->at + k].f));
    for (int64_t k = 0; k < COUNT * each; k++) {
        double was = x->at[k].f, loss[2];
        for (int side = 0; side < 2; side++) {
            x->at[k].f = was + (side ? h : -h);
            loss[side] = training_loss(t, s);
        }
        x->at[k].f = was;
        test_note(t, "%s %d", o->name, (int)k);
        expect_near(t, got->at[COUNT * o->at + k].f, (loss[1] - loss[0]) / (2 * h), 1e-4 * largest);
    }
}

static bool open_scene(struct test *t, struct special *s, uint64_t coeffs, const char *attrs,
                       uint64_t seed)
{
    if (!scene_open(t, s, "backward", COUNT, coeffs, attrs))
        return false;
    scene_random(t, s, seed);
    struct eval_tensor *p = special_leaf(t, s, "positions");
    for (int64_t k = 0; k < p->count; k++) /* all of them in sight */
        p->at[k].f *= 0.3;
    eval_round(p);
    fill_reals(special_leaf(t, s, "dl"), seed, -1, 1);
    return true;
}

TEST(splat_grad, agrees_with_differences)
{
    static const char *const attrs[] = {ATTRS "max_splat_steps=0 sh_band=1",
                                        ATTRS "max_splat_steps=2 sh_band=3"};

    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct special s;
        if (!open_scene(t, &s, 4, attrs[seed % 2], seed))
            return;
        if (special_run(t, &s))
            for (int i = 0; i < 6; i++)
                if (i != 4)
                    check_operand(t, &s, &operand[i], operand[i].each);
        special_close(&s);
    }
}

TEST(splat_grad, plain_colours_get_it)
{
    struct special s;

    if (!open_scene(t, &s, 1, ATTRS, 3))
        return;
    struct eval_tensor *sh = special_leaf(t, &s, "sh");
    for (int64_t k = 0; k < sh->count; k++)
        sh->at[k].f = 0;
    special_leaf(t, &s, "colors")->at[0].f = 1.5; /* held at 1: no gradient */
    if (special_run(t, &s)) {
        check_operand(t, &s, &operand[0], 3);
        check_operand(t, &s, &operand[4], 3);
        test_note(t, "%s", "");
        expect_near(t, special_out(&s, 0, COUNT * 11), 0, 0);
        for (int64_t k = COUNT * 14; k < COUNT * 17; k++)
            expect_near(t, special_out(&s, 0, k), 0, 0);
    }
    special_close(&s);
}

TEST(splat_grad, bands_that_are_not_asked_for)
{
    struct special s;

    if (!open_scene(t, &s, 4, ATTRS, 2))
        return;
    if (special_run(t, &s))
        for (int64_t k = 0; k < COUNT * 12; k++) { /* sh_band=0: the constant one only */
            double g = special_out(&s, 0, COUNT * 14 + k);
            expect(t, k % 12 < 3 ? g != 0 : g == 0);
        }
    special_close(&s);
}

TEST(splat_grad, large_losses_are_clipped)
{
    struct special s;
    double once[COUNT * 26];

    if (!open_scene(t, &s, 4, "width=12 height=9 tile_size=4 loss_grad_clip=0.5", 2))
        return;
    struct eval_tensor *dl = special_leaf(t, &s, "dl");
    for (int64_t k = 0; k < dl->count; k++)
        dl->at[k].f = k % 3 ? 0.5 : -0.5;
    if (special_run(t, &s)) {
        for (int64_t k = 0; k < COUNT * 26; k++)
            once[k] = special_out(&s, 0, k);
        for (int64_t k = 0; k < dl->count; k++)
            dl->at[k].f *= k % 2 ? 1000 : 1;
        special_run(t, &s);
        for (int64_t k = 0; k < COUNT * 26; k++)
            expect_near(t, special_out(&s, 0, k), once[k], 0);
    }
    special_close(&s);
}

TEST(splat_grad, opacity_outside_of_its_range)
{
    struct special s;

    if (!open_scene(t, &s, 4, ATTRS, 2))
        return;
    for (int64_t i = 0; i < COUNT; i++)
        special_leaf(t, &s, "opacities")->at[i].f = i % 2 ? 0.5 : 1.5;
    if (special_run(t, &s))
        for (int64_t i = 0; i < COUNT; i += 2)
            expect_near(t, special_out(&s, 0, COUNT * 10 + i), 0, 0);
    special_close(&s);
}

TEST(splat_grad, order_of_splats_permutes_it)
{
    struct special a, b;

    if (!open_scene(t, &a, 4, ATTRS "sh_band=1", 4))
        return;
    if (open_scene(t, &b, 4, ATTRS "sh_band=1", 4)) {
        for (int i = 0; i < 6; i++)
            for (int64_t k = 0; k < COUNT * operand[i].each; k++)
                special_leaf(t, &b, operand[i].name)->at[k] =
                    special_leaf(t, &a, operand[i].name)
                        ->at[(COUNT - 1 - k / operand[i].each) * operand[i].each +
                             k % operand[i].each];
        if (special_run(t, &a) && special_run(t, &b))
            for (int i = 0; i < 6; i++)
                for (int64_t k = 0; k < COUNT * operand[i].each; k++) {
                    int64_t e = operand[i].each, from = COUNT * operand[i].at;
                    expect_near(t, special_out(&a, 0, from + k),
                                special_out(&b, 0, from + (COUNT - 1 - k / e) * e + k % e), 1e-6);
                }
        special_close(&b);
    }
    special_close(&a);
}

TEST(splat_grad, what_is_not_hit_has_none)
{
    struct special s;

    if (!open_scene(t, &s, 4, ATTRS "sh_band=1", 4))
        return;
    struct eval_tensor *p = special_leaf(t, &s, "positions");
    p->at[2].f = -50; /* splat 0 behind the camera */
    p->at[3].f = NAN;
    special_leaf(t, &s, "rotations")->at[4].f = NAN; /* splat 1 nowhere */
    if (special_run(t, &s))
        for (int i = 0; i < 6; i++)
            for (int64_t k = 0; k < 2 * operand[i].each; k++)
                expect_near(t, special_out(&s, 0, COUNT * operand[i].at + k), 0, 0);
    special_close(&s);
}
