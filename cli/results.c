/* results.c: see results.h. */
#include "results.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tensor_text.h"

/* ---- labels ---- */

int labels_load(struct cli *c, const char *path, struct labels *out)
{
    FILE *f = fopen(path, "rb");
    char *rest;
    size_t lines = 1;

    if (!f || !cli_read_all(f, &out->text)) {
        fprintf(stderr, "rlx %s: cannot read %s: %s\n", c->command->name, path, strerror(errno));
        if (f)
            fclose(f);
        return EXIT_FAILED;
    }
    fclose(f);
    for (size_t i = 0; i < out->text.len; i++)
        lines += out->text.at[i] == '\n';
    out->at = calloc(lines, sizeof *out->at);
    if (!out->at)
        return EXIT_FAILED;
    rest = out->text.at;
    for (char *line; rest && *rest && (line = strsep(&rest, "\n")) != NULL;) {
        line[strcspn(line, "\r")] = 0;
        out->at[out->count++] = line;
    }
    return EXIT_DONE;
}

void labels_free(struct labels *l)
{
    buffer_free(&l->text);
    free(l->at);
    *l = (struct labels){0};
}

/* ---- elements ---- */

static size_t count_of(const rlx_tensor *t)
{
    return t->bytes / rlx_dtype_size(t->dtype);
}

/* Element i as a number; complex ones as their parts, two for one. */
static void print_json_number(const rlx_tensor *t, size_t i)
{
    double v = tensor_element(t, i);

    if (t->dtype == RLX_DTYPE_bool)
        fputs(v != 0 ? "true" : "false", stdout);
    else if (!isfinite(v))
        fputs("null", stdout);
    else if (t->dtype > RLX_DTYPE_f64)
        printf("%.0f", v);
    else
        printf(t->dtype == RLX_DTYPE_f64 ? "%.17g" : "%.9g", v);
}

static void print_integer(const rlx_tensor *t, size_t i)
{
    if (t->dtype == RLX_DTYPE_i64)
        printf("%lld", (long long)((const int64_t *)t->data)[i]);
    else if (t->dtype == RLX_DTYPE_u64)
        printf("%llu", (unsigned long long)((const uint64_t *)t->data)[i]);
    else
        print_json_number(t, i);
}

static void print_json_values(const rlx_tensor *t, size_t shown)
{
    rlx_tensor parts = *t;
    bool complex = t->dtype == RLX_DTYPE_c64;

    parts.dtype = complex ? RLX_DTYPE_f32 : t->dtype;
    fputs(", \"values\": [", stdout);
    for (size_t i = 0; i < shown; i++) {
        fputs(i ? ", " : "", stdout);
        if (complex) {
            fputs("[", stdout);
            print_json_number(&parts, 2 * i);
            fputs(", ", stdout);
            print_json_number(&parts, 2 * i + 1);
            fputs("]", stdout);
        } else
            print_integer(&parts, i);
    }
    fputs("]", stdout);
}

/* ---- the largest ---- */

struct ranked {
    double value;
    size_t index;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->value != y->value)
        return x->value < y->value ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Orders a row's elements, the largest first; NaN is below all others. */
static void rank_row(const rlx_tensor *t, size_t row, size_t len, struct ranked *out)
{
    for (size_t i = 0; i < len; i++) {
        double v = tensor_element(t, row * len + i);
        out[i] = (struct ranked){isnan(v) ? -(double)INFINITY : v, i};
    }
    qsort(out, len, sizeof *out, by_value);
}

static const char *label_of(const struct result_options *opt, size_t i)
{
    return opt->labels && i < opt->labels->count ? opt->labels->at[i] : NULL;
}

static void print_top_json(const struct ranked *r, size_t count, size_t row,
                           const struct result_options *opt)
{
    printf("%s[", row ? ", " : "");
    for (size_t i = 0; i < count; i++) {
        const char *label = label_of(opt, r[i].index);
        printf("%s{\"index\": %zu, \"value\": ", i ? ", " : "", r[i].index);
        printf(isfinite(r[i].value) ? "%.9g" : "null", r[i].value);
        if (label) {
            fputs(", \"label\": ", stdout);
            cli_json_string(stdout, label, strlen(label));
        }
        fputs("}", stdout);
    }
    fputs("]", stdout);
}

static void print_top_text(const struct ranked *r, size_t count, size_t row, size_t rows,
                           const struct result_options *opt)
{
    for (size_t i = 0; i < count; i++) {
        const char *label = label_of(opt, r[i].index);
        if (rows > 1)
            printf("  row %-5zu", row);
        printf("  %6zu  %12.6g%s%s\n", r[i].index, r[i].value, label ? "  " : "",
               label ? label : "");
    }
}

/* The largest of every row along the last axis. */
static int print_top(struct cli *c, const rlx_tensor *t, const struct result_options *opt)
{
    size_t len = t->rank ? (size_t)t->dim[t->rank - 1] : 1, rows = len ? count_of(t) / len : 0;
    size_t count = (uint64_t)opt->top < len ? (size_t)opt->top : len;
    size_t shown = opt->limit && (uint64_t)opt->limit < rows ? (size_t)opt->limit : rows;
    struct ranked *ranked = calloc(len + 1, sizeof *ranked);

    if (!ranked) {
        fprintf(stderr, "rlx %s: out of memory: cannot rank %zu elements\n", c->command->name, len);
        return EXIT_FAILED;
    }
    if (opt->json)
        fputs(", \"top\": [", stdout);
    for (size_t row = 0; row < shown; row++) {
        rank_row(t, row, len, ranked);
        if (opt->json)
            print_top_json(ranked, count, row, opt);
        else
            print_top_text(ranked, count, row, rows, opt);
    }
    if (opt->json)
        fputs("]", stdout);
    else if (shown < rows)
        printf("  and %zu more rows; --limit 0 shows all\n", rows - shown);
    free(ranked);
    return EXIT_DONE;
}

/* ---- outputs ---- */

static int print_text(struct cli *c, const rlx_binding *b, const struct result_options *opt)
{
    const rlx_tensor *t = &b->tensor;
    bool readable = t->dtype != RLX_DTYPE_c64 && !opt->top;
    size_t count = count_of(t);
    size_t shown = opt->limit && (uint64_t)opt->limit < count ? (size_t)opt->limit : count;
    char shape[SHAPE_TEXT];

    printf("%-16s %s%s", b->name, rlx_dtype_name(t->dtype), shape_text(t->rank, t->dim, shape));
    for (size_t i = 0; readable && i < shown; i++)
        printf(" %.6g", tensor_element(t, i));
    printf("%s\n", readable && count > shown ? " ..." : "");
    return opt->top && t->dtype != RLX_DTYPE_c64 ? print_top(c, t, opt) : EXIT_DONE;
}

static int print_json(struct cli *c, const rlx_binding *b, const struct result_options *opt)
{
    const rlx_tensor *t = &b->tensor;
    size_t count = count_of(t);
    int code = EXIT_DONE;

    fputs("{\"name\": ", stdout);
    cli_json_string(stdout, b->name, strlen(b->name));
    printf(", \"dtype\": \"%s\", \"shape\": [", rlx_dtype_name(t->dtype));
    for (int32_t i = 0; i < t->rank; i++)
        printf("%s%lld", i ? ", " : "", (long long)t->dim[i]);
    printf("], \"count\": %zu", count);
    if (opt->top && t->dtype != RLX_DTYPE_c64)
        code = print_top(c, t, opt);
    else
        print_json_values(t,
                          opt->limit && (uint64_t)opt->limit < count ? (size_t)opt->limit : count);
    fputs("}", stdout);
    return code;
}

int results_print(struct cli *c, const struct opened *o, const struct result_options *opt)
{
    int code = EXIT_DONE;

    fputs(opt->json ? "{\"outputs\": [" : "", stdout);
    for (size_t i = 0; i < o->output_count && code == EXIT_DONE; i++) {
        fputs(opt->json && i ? ",\n " : "", stdout);
        code = (opt->json ? print_json : print_text)(c, &o->output[i], opt);
    }
    fputs(opt->json ? "]}\n" : "", stdout);
    return code;
}

/* A file name from an output's name: without separators, and not hidden. */
static void file_name(const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s", name);
    for (char *p = out; *p; p++)
        if (*p == '/' || (*p == '.' && p == out))
            *p = '_';
}

int results_save(struct cli *c, const struct opened *o, const char *dir)
{
    char path[4096], name[SHAPE_TEXT];
    rlx_error err;

    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "rlx run: cannot make the folder %s: %s\n", dir, strerror(errno));
        return EXIT_FAILED;
    }
    for (size_t i = 0; i < o->output_count; i++) {
        file_name(o->output[i].name, name, sizeof name);
        snprintf(path, sizeof path, "%s/%s.npy", dir, name);
        if (rlx_tensor_save(c->ctx, path, &o->output[i].tensor, &err) != RLX_OK)
            return cli_fail(c, &err, "cannot write", path);
    }
    return EXIT_DONE;
}
