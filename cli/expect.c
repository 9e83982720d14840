/* expect.c: `rlx run --expect`: outputs compared with what they should be. */
#include <math.h>
#include <string.h>

#include "results.h"
#include "tensor_text.h"

struct difference {
    double abs, rel; /* the largest of each */
    size_t worst;    /* where it is furthest outside the tolerance */
    double over;     /* how far: as a multiple of the tolerance */
    size_t apart;    /* elements outside the tolerance */
};

static double usual_tolerance(rlx_dtype d)
{
    return d == RLX_DTYPE_f16 || d == RLX_DTYPE_bf16  ? 1e-2
           : d <= RLX_DTYPE_f64 || d == RLX_DTYPE_c64 ? 1e-4
                                                      : 0;
}

static void note(struct difference *d, size_t i, double have, double want, double tolerance)
{
    bool equal = have == want || (isnan(have) && isnan(want));
    double abs = equal ? 0 : fabs(have - want), allowed = tolerance + tolerance * fabs(want);

    if (!equal && !isfinite(abs)) /* NaN or Inf on one side */
        abs = (double)INFINITY;
    double over = abs == 0 ? 0 : isfinite(abs) && allowed > 0 ? abs / allowed : (double)INFINITY;
    d->abs = fmax(d->abs, abs);
    if (want != 0 && isfinite(want))
        d->rel = fmax(d->rel, abs / fabs(want));
    d->apart += over > 1;
    if (over > d->over) {
        d->over = over;
        d->worst = i;
    }
}

static bool same_shape(const rlx_tensor *a, const rlx_tensor *b)
{
    bool same = a->rank == b->rank;

    for (int32_t i = 0; same && i < a->rank; i++)
        same = a->dim[i] == b->dim[i];
    return same && (a->dtype == RLX_DTYPE_c64) == (b->dtype == RLX_DTYPE_c64);
}

/* Prints one line; true: it is as expected. */
static bool compare(FILE *out, const char *name, const rlx_tensor *have, const rlx_tensor *want,
                    double tolerance)
{
    struct difference d = {0};
    rlx_tensor a = *have, b = *want;
    char shape[SHAPE_TEXT], other[SHAPE_TEXT];

    if (!same_shape(have, want)) {
        fprintf(out, "%s: DIFFERS: it is %s%s, but %s%s was expected\n", name,
                rlx_dtype_name(have->dtype), shape_text(have->rank, have->dim, shape),
                rlx_dtype_name(want->dtype), shape_text(want->rank, want->dim, other));
        return false;
    }
    if (tolerance < 0)
        tolerance = fmax(usual_tolerance(have->dtype), usual_tolerance(want->dtype));
    if (a.dtype == RLX_DTYPE_c64) /* pairs */
        a.dtype = b.dtype = RLX_DTYPE_f32;
    size_t count = a.bytes / rlx_dtype_size(a.dtype);
    for (size_t i = 0; i < count; i++)
        note(&d, i, tensor_element(&a, i), tensor_element(&b, i), tolerance);
    fprintf(out, "%s: %s: max abs error %.3g, max rel error %.3g, tolerance %.3g", name,
            d.apart ? "DIFFERS" : "as expected", d.abs, d.rel, tolerance);
    if (d.apart)
        fprintf(out, "; %zu of %zu are off, worst is element %zu: %.9g, not %.9g", d.apart, count,
                d.worst, tensor_element(&a, d.worst), tensor_element(&b, d.worst));
    fprintf(out, "\n");
    return d.apart == 0;
}

struct expectation {
    struct cli *c;
    FILE *out;
    double tolerance;
    size_t differ; /* outputs that differ */
};

/* Compares with the tensor of the output's name, or with the only one in the file. */
static int compare_with(struct expectation *e, const rlx_binding *b, const char *file)
{
    rlx_tensor want = {0};
    int code = cli_load_array(e->c, file, rlx_cstr(b->name), &want);

    if (code == EXIT_DONE)
        e->differ += !compare(e->out, b->name, &b->tensor, &want, e->tolerance);
    rlx_tensor_free(e->c->ctx, &want);
    return code;
}

static const rlx_binding *find_output(const struct opened *o, const char *text, size_t len)
{
    for (size_t i = 0; i < o->output_count; i++)
        if (strlen(o->output[i].name) == len && memcmp(o->output[i].name, text, len) == 0)
            return &o->output[i];
    return NULL;
}

static int unknown_output(struct cli *c, const struct opened *o, rlx_str name)
{
    rlx_nearest near = {.wanted = name};
    struct buffer known = {0};
    char hint[RLX_NEAREST_HINT];

    for (size_t i = 0; i < o->output_count; i++) {
        rlx_nearest_offer(&near, rlx_cstr(o->output[i].name));
        buffer_add(&known, ", ", i ? 2 : 0);
        buffer_add(&known, o->output[i].name, strlen(o->output[i].name));
    }
    int code =
        cli_misuse(c, "--expect: the model has no output \"%.*s\"; it has: %s%s", (int)name.len,
                   name.ptr, known.at ? known.at : "none", rlx_nearest_hint(&near, hint));
    buffer_free(&known);
    return code;
}

/* One array would be taken for every output, whatever it is called. */
static bool holds_one(struct cli *c, const char *file)
{
    rlx_weights_info info = {RLX_SIZED(rlx_weights_info)};
    rlx_weights *w;

    if (rlx_weights_open(c->ctx, file, &c->load, &w, NULL) != RLX_OK)
        return false;
    rlx_weights_describe(w, &info, NULL);
    rlx_weights_close(w);
    return info.tensor_count == 1;
}

static int expect_one(struct expectation *e, const struct opened *o, const char *text)
{
    const char *equals = strchr(text, '=');
    int code = EXIT_DONE;

    if (equals) {
        const rlx_binding *b = find_output(o, text, (size_t)(equals - text));
        return b ? compare_with(e, b, equals + 1)
                 : unknown_output(e->c, o, (rlx_str){text, (size_t)(equals - text)});
    }
    if (o->output_count > 1 && holds_one(e->c, text))
        return cli_misuse(e->c,
                          "--expect: %s holds one array, and the model has %zu outputs: NAME=%s "
                          "compares it with that one",
                          text, o->output_count, text);
    for (size_t i = 0; i < o->output_count && code == EXIT_DONE; i++)
        code = compare_with(e, &o->output[i], text);
    return code;
}

int results_expect(struct cli *c, const struct opened *o, const struct texts *texts,
                   double tolerance, FILE *out)
{
    struct expectation e = {.c = c, .out = out, .tolerance = tolerance};
    int code = EXIT_DONE;

    for (size_t i = 0; i < texts->count && code == EXIT_DONE; i++)
        code = expect_one(&e, o, texts->at[i]);
    if (code == EXIT_DONE && e.differ) {
        fprintf(stderr, "rlx %s: %zu output%s not as expected\n", c->command->name, e.differ,
                e.differ == 1 ? " is" : "s are");
        code = EXIT_FAILED;
    }
    return code;
}
