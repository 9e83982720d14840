/* train_setup.c: from the command line to a trainer and its data. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train.h"

/* Batches of text that are looked at: of a long text they say as much as all of them. */
enum { MOST_VALIDATION = 64 };

/* ---- numbers and words ---- */

bool train_real(const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return *text && !*end && *out >= 0 && *out < 1e30;
}

static int take_real(struct cli *c, const char *flag, const char *text, float *out)
{
    double v = 0;

    if (text && !train_real(text, &v))
        return cli_misuse(c, "%s takes a number of at least 0, not \"%s\"", flag, text);
    if (text)
        *out = (float)v;
    return EXIT_DONE;
}

/* The number of a word in the list; *out stays as it is where there is none. */
static int take_word(struct cli *c, const char *flag, const char *word, const char *const *list,
                     size_t count, int *out)
{
    rlx_nearest near = {.wanted = rlx_cstr(word)};
    char hint[RLX_NEAREST_HINT];

    for (size_t i = 0; word && i < count; i++) {
        rlx_nearest_offer(&near, rlx_cstr(list[i]));
        if (strcmp(word, list[i]) == 0) {
            *out = (int)i;
            return EXIT_DONE;
        }
    }
    return word ? cli_misuse(c, "%s: there is no \"%s\"%s", flag, word,
                             rlx_nearest_hint(&near, hint))
                : EXIT_DONE;
}

static int take_words(struct training *t)
{
    static const char *const optimisers[] = {"adamw", "adam", "sgd", "lion", "muon"};
    static const char *const schedules[] = {"constant", "linear", "cosine", "one-cycle"};
    int optimiser = RLX_OPTIMISER_ADAMW, schedule = RLX_SCHEDULE_CONSTANT;
    int code = take_word(t->c, "--optimiser", t->opt->optimiser, optimisers, 5, &optimiser);

    if (code == EXIT_DONE)
        code = take_word(t->c, "--schedule", t->opt->schedule, schedules, 4, &schedule);
    t->desc.optimiser = (rlx_optimiser)optimiser;
    t->desc.schedule = (rlx_schedule)schedule;
    return code;
}

static int check_counts(struct training *t)
{
    const struct train_options *o = t->opt;
    const struct {
        const char *flag;
        int64_t value, most;
    } counts[] = {{"--batch", o->batch, INT32_MAX}, {"--epochs", o->epochs, INT32_MAX},
                  {"--steps", o->steps, INT32_MAX}, {"--warmup", o->warmup, INT32_MAX},
                  {"--every", o->every, INT32_MAX}, {"--accumulate", o->accumulate, 1 << 20},
                  {"--log", o->log, INT32_MAX}};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (counts[i].value < 0 || counts[i].value > counts[i].most)
            return cli_misuse(t->c, "%s cannot be %lld", counts[i].flag,
                              (long long)counts[i].value);
    if (o->epochs && o->steps)
        return cli_misuse(t->c, "--epochs and --steps both say when to stop; give one");
    if (o->resume && !o->checkpoint)
        return cli_misuse(t->c, "--resume goes with --checkpoint FILE");
    return EXIT_DONE;
}

/* A training of hours should not end with a file that cannot be written. */
static int check_folder(struct training *t, const char *flag, const char *path)
{
    char folder[4096] = ".";
    const char *slash = path ? strrchr(path, '/') : NULL;

    if (slash && (size_t)(slash - path) + 2 <= sizeof folder)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);
    if (!path || access(folder, W_OK) == 0)
        return EXIT_DONE;
    fprintf(stderr, "rlx %s: %s %s: cannot write there: %s\n", t->c->command->name, flag, path,
            strerror(errno));
    return EXIT_FAILED;
}

static int check_files(struct training *t)
{
    const struct train_options *o = t->opt;
    int code = check_folder(t, "--save", o->save);

    if (code == EXIT_DONE)
        code = check_folder(t, "--checkpoint", o->checkpoint);
    return code == EXIT_DONE ? check_folder(t, "--plot", o->plot) : code;
}

int training_options(struct training *t)
{
    const struct train_options *o = t->opt;
    int code = check_counts(t);
    rlx_error err;

    t->desc = (rlx_train_desc){RLX_SIZED(rlx_train_desc),
                               .warmup_steps = o->warmup,
                               .accumulate = (int32_t)o->accumulate,
                               .train = o->train.at,
                               .train_count = o->train.count,
                               .keep = o->keep.at,
                               .keep_count = o->keep.count};
    t->session = (rlx_session_desc){RLX_SIZED(rlx_session_desc)};
    t->seed = (uint64_t)o->seed;
    if (code != EXIT_DONE || (code = take_words(t)) != EXIT_DONE ||
        (code = take_real(t->c, "--rate", o->rate, &t->desc.rate)) != EXIT_DONE ||
        (code = take_real(t->c, "--decay", o->decay, &t->desc.decay)) != EXIT_DONE ||
        (code = take_real(t->c, "--momentum", o->momentum, &t->desc.momentum)) != EXIT_DONE ||
        (code = take_real(t->c, "--clip", o->clip, &t->desc.clip_norm)) != EXIT_DONE ||
        (code = take_real(t->c, "--loss-scale", o->loss_scale, &t->desc.loss_scale)) != EXIT_DONE ||
        (code = take_real(t->c, "--final-ratio", o->final_ratio, &t->desc.final_ratio)) !=
            EXIT_DONE)
        return code;
    if (o->precision && rlx_precision_parse(o->precision, &t->session, &err) != RLX_OK)
        return cli_misuse(t->c, "--precision: %s", err.message);
    return check_files(t);
}

/* ---- data ---- */

/* Steps in all, and between what is done now and then. */
static void plan_steps(struct training *t)
{
    const struct train_options *o = t->opt;
    int64_t runs = t->desc.accumulate > 1 ? t->desc.accumulate : 1;

    t->total = o->steps ? o->steps : (o->epochs ? o->epochs : 1) * t->info.epoch / runs;
    if (t->total < 1)
        t->total = 1;
    t->log = o->log ? o->log : t->total / 20 > 0 ? t->total / 20 : 1;
    t->every = o->every ? o->every : 2 * (t->total / 20 > 0 ? t->total / 20 : 1);
    t->desc.total_steps = t->total;
    if (t->desc.warmup_steps > t->total)
        t->desc.warmup_steps = t->total;
}

int training_data(struct training *t, rlx_model *m, rlx_dataset_desc *desc)
{
    rlx_error err;

    desc->batch = t->opt->batch;
    desc->seed = t->seed;
    if (t->opt->validate &&
        (!train_real(t->opt->validate, &desc->validation) || desc->validation >= 1))
        return cli_misuse(t->c, "--validate takes a part of the examples, such as 0.1, not \"%s\"",
                          t->opt->validate);
    rlx_dataset_destroy(t->data);
    t->data = NULL;
    t->info = (rlx_dataset_info){RLX_SIZED(rlx_dataset_info)};
    if (rlx_dataset_create(t->c->ctx, desc, &t->data, &err) != RLX_OK ||
        rlx_dataset_fit(t->data, m, &err) != RLX_OK ||
        rlx_dataset_describe(t->data, &t->info, &err) != RLX_OK)
        return cli_fail(t->c, &err, "cannot train", t->what);
    if (t->info.tokens && t->info.validation > MOST_VALIDATION)
        t->info.validation = MOST_VALIDATION;
    t->units = t->info.tokens ? "tokens" : "examples";
    snprintf(t->note, sizeof t->note, "batch %lld, %lld to train on, %lld held out",
             (long long)t->info.batch, (long long)t->info.examples, (long long)t->info.held_out);
    plan_steps(t);
    return EXIT_DONE;
}

/* ---- the trainer ---- */

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* A checkpoint that would be written over by a training that does not go on from it is kept. */
static int check_checkpoint(struct training *t)
{
    const char *path = t->opt->checkpoint;

    if (!path || t->opt->resume || !exists(path))
        return EXIT_DONE;
    fprintf(stderr,
            "rlx %s: %s already exists: --resume continues from it; remove it to start over\n",
            t->c->command->name, path);
    return EXIT_FAILED;
}

static int resume(struct training *t)
{
    const char *path = t->opt->checkpoint;
    rlx_checkpoint at = {RLX_SIZED(rlx_checkpoint)};
    int64_t runs = t->desc.accumulate > 1 ? t->desc.accumulate : 1;
    rlx_error err;

    if (!t->opt->resume)
        return EXIT_DONE;
    if (!exists(path)) {
        fprintf(stderr, "%s does not exist yet: training begins at step 1\n", path);
        return EXIT_DONE;
    }
    if (rlx_trainer_load(t->trainer, path, &at, &err) != RLX_OK)
        return cli_fail(t->c, &err, "cannot go on from", path);
    if (strcmp(at.note, t->note) != 0 || at.seed != t->seed)
        fprintf(stderr,
                "rlx %s: warning: %s was written with other data (%s, seed %llu; now %s, seed "
                "%llu): batches differ from those of a training in one go\n",
                t->c->command->name, path, at.note, (unsigned long long)at.seed, t->note,
                (unsigned long long)t->seed);
    t->start = t->step = (int64_t)at.cursor / runs;
    t->saved = true;
    fprintf(stderr, "%s: going on after step %lld\n", path, (long long)t->start);
    return EXIT_DONE;
}

int training_open(struct training *t, rlx_model *m, const rlx_init_rule *init, size_t init_count)
{
    const rlx_trainer_desc desc = {RLX_SIZED(rlx_trainer_desc),
                                   .loss = t->opt->loss,
                                   .train = &t->desc,
                                   .session = &t->session,
                                   .seed = (uint64_t)t->opt->seed,
                                   .init = init,
                                   .init_count = init_count,
                                   .name = t->what};
    int code = check_checkpoint(t);
    rlx_error err;

    if (code != EXIT_DONE)
        return code;
    if (rlx_device_open(t->c->ctx, t->opt->device, &t->device, &err) != RLX_OK)
        return cli_fail(t->c, &err, "cannot open device", t->opt->device);
    cli_doing(t->c, "compiling", t->what);
    rlx_status s = rlx_trainer_create(m, t->device, &desc, &t->trainer, &err);
    cli_progress_end(t->c);
    if (s != RLX_OK)
        return cli_fail(t->c, &err, "cannot train", t->what);
    return resume(t);
}

void training_close(struct training *t)
{
    rlx_dataset_destroy(t->data);
    rlx_trainer_destroy(t->trainer);
    rlx_device_close(t->device);
    curve_free(&t->loss);
    curve_free(&t->held);
}
