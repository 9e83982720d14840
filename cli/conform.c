/* conform.c: `rlx conform`, the tests that ONNX keeps for its backends.
 *
 *     DIR/.../test_add/model.onnx
 *                      test_data_set_0/input_0.pb, output_0.pb ...
 *
 * A file holds a tensor, a sequence of them, or an optional. */
#include <dirent.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "compare.h"
#include "conform_data.h"
#include "rlx/onnx.h"

#define MAX_DEPTH 8 /* of folders below DIR */
#define MAX_TENSORS 256

static struct {
    const char *device, *match;
    bool json, verbose, rewrite;
} opt = {.device = "auto", .match = "*"};

static const struct flag *flags(void)
{
    static const struct flag list[] = {
        {"--device", FLAG_TEXT, &opt.device, "D", "where to run (auto); rlx devices lists them"},
        {"--match", FLAG_TEXT, &opt.match, "GLOB", "only tests whose name matches (*)"},
        {"--rewrite", FLAG_SWITCH, &opt.rewrite, NULL,
         "each model is written as ONNX and read back before it runs"},
        {"--verbose", FLAG_SWITCH, &opt.verbose, NULL, "show tests that pass too"},
        {"--json", FLAG_SWITCH, &opt.json, NULL, "one JSON object"},
        {0}};
    return list;
}

enum verdict { PASSED, FAILED, SKIPPED };
static const char *const verdicts[] = {"passed", "failed", "skipped"};

struct outcome {
    enum verdict verdict;
    char why[640];
};

struct suite {
    struct cli *c;
    rlx_device *device;
    size_t count[3];
};

/* ---- one test ---- */

static void fail(struct outcome *o, const rlx_error *e, const char *doing)
{
    o->verdict = e->status == RLX_ERROR_UNSUPPORTED ? SKIPPED : FAILED;
    snprintf(o->why, sizeof o->why, "%s: %s", doing, e->message);
}

/* The values of one set; outputs are those that the model gave. */
struct data_set {
    struct data_files in_files, out_files;
    rlx_binding in[MAX_TENSORS], out[MAX_TENSORS];
    char in_name[MAX_TENSORS][256], out_name[MAX_TENSORS][256];
    bool random[MAX_TENSORS]; /* of outputs */
    size_t inputs, outputs;
};

static void free_data(struct suite *s, struct data_set *d)
{
    data_files_free(s->c->ctx, &d->in_files);
    data_files_free(s->c->ctx, &d->out_files);
    for (size_t i = 0; i < d->outputs; i++)
        rlx_tensor_free(s->c->ctx, &d->out[i].tensor);
}

static bool exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

/* Older sets store bf16 as its bits. */
static void as_bf16(rlx_tensor *t, rlx_dtype wanted)
{
    if (wanted == RLX_DTYPE_bf16 && t->dtype == RLX_DTYPE_u16)
        t->dtype = RLX_DTYPE_bf16;
}

static bool has_symbol(const rlx_io_info *info)
{
    for (int32_t i = 0; i < info->rank; i++)
        if (info->dim[i] < 0)
            return true;
    return false;
}

/* The files' tensors for the model's inputs, in their order. */
static bool bind_inputs(rlx_model *m, struct data_set *d, struct outcome *o)
{
    size_t count = rlx_model_io_count(m, RLX_IO_INPUT);

    if (count > MAX_TENSORS) {
        *o = (struct outcome){FAILED, "too many inputs"};
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        rlx_error err;
        rlx_model_io(m, RLX_IO_INPUT, i, &info, NULL);
        if (!info.used && !has_symbol(&info))
            continue; /* some sets have other shapes there than the model */
        const rlx_tensor *t = data_files_tensor(&d->in_files, i, &err);
        if (err.status != RLX_OK) {
            fail(o, &err, "cannot read an input");
            return false;
        }
        if (!t)
            break; /* the others have a default, or the run reports them missing */
        rlx_binding *b = &d->in[d->inputs];
        b->tensor = *t;
        as_bf16(&b->tensor, info.dtype);
        b->name = d->in_name[d->inputs];
        snprintf(d->in_name[d->inputs++], sizeof d->in_name[0], "%.*s", (int)info.name.len,
                 info.name.ptr);
    }
    return true;
}

static bool make_outputs(struct suite *s, rlx_model *m, rlx_session *session, struct data_set *d,
                         struct outcome *o)
{
    size_t count = rlx_model_io_count(m, RLX_IO_OUTPUT);

    for (size_t i = 0; i < count && i < MAX_TENSORS; i++) {
        rlx_io_info info = {RLX_SIZED(rlx_io_info)};
        rlx_error err;
        rlx_model_io(m, RLX_IO_OUTPUT, i, &info, NULL);
        if (rlx_session_output_shape(session, i, &d->out[i].tensor, &err) != RLX_OK ||
            rlx_tensor_alloc(s->c->ctx, &d->out[i].tensor, &err) != RLX_OK) {
            fail(o, &err, "cannot make room for an output");
            return false;
        }
        snprintf(d->out_name[i], sizeof d->out_name[i], "%.*s", (int)info.name.len, info.name.ptr);
        d->out[i].name = d->out_name[i];
        d->random[i] = info.random;
        d->outputs++;
    }
    return true;
}

static bool compare_outputs(const struct data_set *d, struct outcome *o)
{
    size_t wanted = data_files_tensors(&d->out_files);
    bool random = false; /* another generator gives different numbers */

    o->verdict = FAILED;
    if (wanted != d->outputs) {
        snprintf(o->why, sizeof o->why, "%zu outputs, but %zu are expected", d->outputs, wanted);
        return false;
    }
    for (size_t i = 0; i < wanted; i++) {
        char why[256];
        rlx_error err;
        const rlx_tensor *t = data_files_tensor(&d->out_files, i, &err);
        if (!t) {
            fail(o, &err, "cannot read an output");
            return false;
        }
        rlx_tensor want = *t;
        as_bf16(&want, d->out[i].tensor.dtype);
        bool same = d->random[i] ? compare_types(&d->out[i].tensor, &want, why, sizeof why)
                                 : compare_tensors(&d->out[i].tensor, &want, why, sizeof why);
        random |= d->random[i];
        if (!same) {
            snprintf(o->why, sizeof o->why, "output \"%.100s\": %s", d->out[i].name, why);
            return false;
        }
    }
    o->verdict = random ? SKIPPED : PASSED;
    if (random)
        snprintf(o->why, sizeof o->why, "random: only shapes and types were compared");
    return true;
}

static bool run_set(struct suite *s, rlx_model *m, rlx_session *session, const char *dir,
                    struct data_set *d, struct outcome *o)
{
    rlx_error err;
    uint64_t ticket;

    data_files_load(s->c->ctx, dir, "input", &d->in_files);
    data_files_load(s->c->ctx, dir, "output", &d->out_files);
    if (!bind_inputs(m, d, o))
        return false;
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .inputs = d->in, .input_count = d->inputs};
    if (rlx_session_prepare(session, &run, &err) != RLX_OK) {
        fail(o, &err, "cannot compile");
        return false;
    }
    /* Sizes of outputs may depend on data: they are known once it runs. */
    if (rlx_session_submit(session, &run, &ticket, &err) != RLX_OK) {
        fail(o, &err, "cannot run");
        return false;
    }
    if (!make_outputs(s, m, session, d, o))
        return false;
    run.outputs = d->out;
    run.output_count = d->outputs;
    if (rlx_session_wait(session, ticket, &run, &err) != RLX_OK) {
        fail(o, &err, "cannot run");
        return false;
    }
    return compare_outputs(d, o);
}

static void run_sets(struct suite *s, rlx_model *m, const char *path, struct outcome *o)
{
    rlx_session *session;
    rlx_error err;
    struct data_set *d = malloc(sizeof *d);
    size_t sets = 0;

    if (!d || rlx_session_create(m, s->device, NULL, &session, &err) != RLX_OK) {
        if (d)
            fail(o, &err, "cannot compile");
        free(d);
        return;
    }
    *o = (struct outcome){SKIPPED, "no data next to the model"};
    for (bool ok = true; ok; sets++) {
        char dir[4096 + 64];
        snprintf(dir, sizeof dir, "%s/test_data_set_%zu", path, sets);
        if (!exists(dir))
            break;
        memset(d, 0, sizeof *d);
        o->verdict = PASSED;
        ok = run_set(s, m, session, dir, d, o);
        free_data(s, d);
    }
    rlx_session_destroy(session);
    free(d);
}

/* How much of a test's values is made known when its model is loaded. */
enum known_inputs {
    KNOW_COUNTS, /* of the items of sequences, and which optionals are absent */
    KNOW_WHOLES, /* also items' shapes, and the values of inputs of a few integers: shapes, axes and
                  * the like are inputs in many tests, where models have constants */
    KNOW_ALL,    /* also of a few numbers of any type */
};

static bool is_known(const rlx_tensor *t, enum known_inputs how)
{
    bool whole = t->dtype > RLX_DTYPE_f64 && t->dtype < RLX_DTYPE_c64;

    return t->rank <= 1 && t->bytes <= 512 && (how == KNOW_ALL || (how == KNOW_WHOLES && whole));
}

static rlx_status load_with_known_inputs(struct suite *s, const char *file,
                                         const struct data_files *data, enum known_inputs how,
                                         rlx_model **m, rlx_error *err)
{
    rlx_binding known[MAX_FILES] = {{0}};
    rlx_load_input input[MAX_FILES] = {{0}};
    rlx_load_desc desc = {RLX_SIZED(rlx_load_desc), .known = known, .known_count = data->count,
                          .inputs = input, .input_count = data->count};
    char none;

    for (size_t i = 0; i < data->count; i++) {
        const struct data_file *f = &data->at[i];
        if (f->err.status != RLX_OK)
            continue;
        if (f->is_list)
            input[i] = (rlx_load_input){.absent = f->list.absent,
                                        .item_count = f->list.count,
                                        .shape = how == KNOW_COUNTS ? NULL : f->list.at};
        else if (is_known(f->list.at, how)) {
            known[i].tensor = *f->list.at;
            if (!known[i].tensor.bytes)
                known[i].tensor.data = &none; /* an empty list is also known */
        }
    }
    return rlx_model_load(s->c->ctx, file, &desc, m, err);
}

/* With as little made known as possible. */
static rlx_status load_model(struct suite *s, const char *path, rlx_model **m, rlx_error *err)
{
    rlx_status status = RLX_ERROR_UNSUPPORTED;
    struct data_files *data = calloc(1, sizeof *data);
    char text[8192];

    if (!data) {
        *err = (rlx_error){.status = RLX_ERROR_MEMORY, .message = "no memory"};
        return RLX_ERROR_MEMORY;
    }
    snprintf(text, sizeof text, "%s/test_data_set_0", path);
    data_files_load(s->c->ctx, text, "input", data);
    snprintf(text, sizeof text, "%s/model.onnx", path);
    for (int how = KNOW_COUNTS; status == RLX_ERROR_UNSUPPORTED && how <= KNOW_ALL; how++)
        status = load_with_known_inputs(s, text, data, (enum known_inputs)how, m, err);
    if (status != RLX_OK && data_files_broken(data))
        *err = *data_files_broken(data); /* which may be the reason */
    data_files_free(s->c->ctx, data);
    free(data);
    return status;
}

/* The model, written to a file and read back. */
static bool rewrite(struct suite *s, rlx_model **m, struct outcome *o)
{
    const char *dir = getenv("TMPDIR");
    char path[4096];
    rlx_model *again = NULL;
    rlx_error err;

    snprintf(path, sizeof path, "%s/rlx-conform-XXXXXX", dir && *dir ? dir : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0) {
        snprintf(o->why, sizeof o->why, "cannot make %.200s", path);
        return false;
    }
    close(fd);
    if (rlx_model_save_onnx(*m, path, NULL, &err) != RLX_OK)
        fail(o, &err, "cannot write");
    else if (rlx_model_load(s->c->ctx, path, NULL, &again, &err) != RLX_OK) {
        fail(o, &err, "cannot read what was written");
        o->verdict = FAILED;
    }
    unlink(path); /* mapped files stay valid */
    if (!again)
        return false;
    rlx_model_destroy(*m);
    *m = again;
    return true;
}

static struct outcome run_test(struct suite *s, const char *path)
{
    struct outcome o = {FAILED, "out of memory"};
    rlx_model *m;
    rlx_error err;

    if (load_model(s, path, &m, &err) != RLX_OK) {
        fail(&o, &err, "cannot import");
        return o;
    }
    if (!opt.rewrite || rewrite(s, &m, &o))
        run_sets(s, m, path, &o);
    rlx_model_destroy(m);
    return o;
}

/* ---- all of them ---- */

static void report(struct suite *s, const char *name, const struct outcome *o)
{
    size_t before = s->count[0] + s->count[1] + s->count[2];

    s->count[o->verdict]++;
    if (opt.json) {
        printf("%s\n  {\"name\": ", before ? "," : "");
        cli_json_string(stdout, name, strlen(name));
        printf(", \"verdict\": \"%s\"", verdicts[o->verdict]);
        if (o->verdict != PASSED) {
            printf(", \"why\": ");
            cli_json_string(stdout, o->why, strlen(o->why));
        }
        printf("}");
    } else if (o->verdict != PASSED)
        printf("%-8s %s: %s\n", verdicts[o->verdict], name, o->why);
    else if (opt.verbose)
        printf("%-8s %s\n", verdicts[o->verdict], name);
    fflush(stdout);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void walk(struct suite *s, const char *path, int depth)
{
    struct dirent **entry;
    char file[8192];

    snprintf(file, sizeof file, "%s/model.onnx", path);
    if (exists(file)) {
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        if (fnmatch(opt.match, name, 0) != 0)
            return;
        cli_progress(s->c, name, s->count[0] + s->count[1] + s->count[2], 0);
        struct outcome o = run_test(s, path);
        cli_progress_end(s->c);
        report(s, name, &o);
        return;
    }
    int n = depth < MAX_DEPTH ? scandir(path, &entry, NULL, by_name) : -1;
    for (int i = 0; i < n; i++) {
        struct stat st;
        snprintf(file, sizeof file, "%s/%s", path, entry[i]->d_name);
        if (entry[i]->d_name[0] != '.' && stat(file, &st) == 0 && S_ISDIR(st.st_mode))
            walk(s, file, depth + 1);
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
}

static int run(struct cli *c, int argc, char **argv)
{
    struct suite s = {.c = c};
    struct texts args;
    rlx_error err;
    int code;

    if (!cli_parse(c, flags(), argc, argv, &args, &code))
        return code;
    if (args.count != 1)
        return cli_misuse(c, "takes one folder of tests");
    if ((code = cli_context(c)) != EXIT_DONE)
        return code;
    if (!exists(args.at[0])) {
        fprintf(stderr, "rlx conform: there is no folder %s\n", args.at[0]);
        return EXIT_FAILED;
    }
    if (rlx_device_open(c->ctx, opt.device, &s.device, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot open device", opt.device);
    c->quiet = true; /* every refusal is in the line of its test */
    if (opt.json)
        printf("{\"tests\": [");
    walk(&s, args.at[0], 0);
    if (opt.json)
        printf("],\n \"passed\": %zu, \"failed\": %zu, \"skipped\": %zu}\n", s.count[PASSED],
               s.count[FAILED], s.count[SKIPPED]);
    else
        printf("%zu passed, %zu failed, %zu skipped\n", s.count[PASSED], s.count[FAILED],
               s.count[SKIPPED]);
    rlx_device_close(s.device);
    if (s.count[PASSED] + s.count[FAILED] + s.count[SKIPPED] == 0) {
        fprintf(stderr, "rlx conform: no folder below %s has a model.onnx%s%s\n", args.at[0],
                strcmp(opt.match, "*") == 0 ? "" : " and matches ",
                strcmp(opt.match, "*") == 0 ? "" : opt.match);
        return EXIT_FAILED;
    }
    return s.count[FAILED] ? EXIT_FAILED : EXIT_DONE;
}

const struct command cmd_conform = {
    .name = "conform",
    .summary = "Run a folder of ONNX backend tests",
    .usage = "rlx conform DIR [--device D] [--match GLOB] [--rewrite]",
    .details =
        "Every folder below DIR with a model.onnx is a test; its test_data_set_* hold inputs\n"
        "and the outputs they must give, within 1e-3 of each element and 1e-7. The number of "
        "items\n"
        "in their sequences is made known at load, and so are inputs of few elements where a\n"
        "model cannot be imported otherwise. Of random outputs only shapes and types are\n"
        "compared; such a test is skipped. Prints what fails, with the first element that\n"
        "differs, and what rlx cannot import. Exits with 1 if a test fails.",
    .examples = "rlx conform onnx/backend/test/data/node --match 'test_matmul*'",
    .run = run,
    .flags = flags,
};
