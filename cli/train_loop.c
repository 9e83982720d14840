/* train_loop.c: the steps of a training. The host hears of the loss every `log` steps; every
 * `every` steps what is held out is looked at, and a checkpoint is written. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "train.h"

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t wanted_to_stop;

static void note_stop(int number)
{
    (void)number;
    wanted_to_stop = 1;
}

/* Once: the second time the process ends as it always does. */
static void catch_stop(void)
{
    struct sigaction a = {.sa_handler = note_stop, .sa_flags = (int)SA_RESETHAND};

    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a file that grows too large is a failure to write it */
}

/* ---- progress ---- */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int runs_of(const struct training *t)
{
    return t->desc.accumulate > 1 ? t->desc.accumulate : 1;
}

static const char *left_text(double seconds, char out[32])
{
    long long s = (long long)(seconds + 0.5);

    if (s >= 3600)
        snprintf(out, 32, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, 32, "%lld:%02lld", s / 60, s % 60);
    return out;
}

static const char *loss_text(const struct curve *k, char out[32])
{
    double x = k->count ? k->at[k->count - 1].loss : NAN;

    snprintf(out, 32, fabs(x) < 1e4 ? "%.4f" : "%.4g", x);
    return out;
}

/* On a terminal the line is written over, as long as nothing was held out at this step. */
static void show(const struct training *t, bool held)
{
    char left[32], loss[32];

    fprintf(stderr, "%sstep %lld/%lld  loss %s", t->c->progress ? "\r\033[K" : "",
            (long long)t->step, (long long)t->total, loss_text(&t->loss, loss));
    if (held)
        fprintf(stderr, "  validation %s", loss_text(&t->held, loss));
    double per_step = t->seconds / (double)(t->step - t->start);
    fprintf(stderr, "  %.0f %s/s  %s left", t->rate, t->units,
            left_text(per_step * (double)(t->total - t->step), left));
    fputs(t->c->progress && !held && t->step < t->total ? "" : "\n", stderr);
    fflush(stderr);
}

/* ---- now and then ---- */

/* The batch that went wrong, once more, with every node looked at. */
static int explain_bad(struct training *t, const rlx_error *why)
{
    int64_t bad = rlx_trainer_bad_run(t->trainer);
    const rlx_binding *in;
    rlx_numerics found;
    rlx_error err;
    size_t count;
    int code = cli_fail(t->c, why, "cannot train", t->what);

    if (bad < 0)
        return code;
    if (rlx_dataset_batch(t->data, RLX_SPLIT_TRAIN, (uint64_t)bad, &in, &count, &err) != RLX_OK ||
        rlx_trainer_find_bad(t->trainer, in, count, &found, &err) != RLX_OK)
        return cli_fail(t->c, &err, "cannot look for the node in", t->what);
    if (found.step < 0) /* otherwise it was logged */
        rlx_numerics_print(&found, cli_write, stderr);
    if (t->opt->checkpoint && t->saved)
        fprintf(stderr, "%s is the checkpoint of before\n", t->opt->checkpoint);
    return code;
}

static int report(struct training *t, double *since)
{
    rlx_train_report r = {RLX_SIZED(rlx_train_report)};
    rlx_error err;

    if (rlx_trainer_report(t->trainer, &r, &err) != RLX_OK)
        return explain_bad(t, &err);
    if (r.runs == 0)
        return EXIT_DONE;
    double took = now() - *since;
    t->seconds += took;
    double amount = (double)r.runs * (double)(t->info.tokens ? t->info.tokens : t->info.batch);
    t->rate = took > 0 ? amount / took : 0;
    *since = now();
    if (!curve_add(&t->loss, t->step, r.loss))
        return EXIT_FAILED;
    return EXIT_DONE;
}

static int validate(struct training *t)
{
    double sum = 0, one = 0;
    rlx_error err;

    for (int64_t i = 0; i < t->info.validation; i++) {
        const rlx_binding *in;
        size_t count;
        if (rlx_dataset_batch(t->data, RLX_SPLIT_VALIDATION, (uint64_t)i, &in, &count, &err) !=
                RLX_OK ||
            rlx_trainer_evaluate(t->trainer, in, count, &one, &err) != RLX_OK)
            return cli_fail(t->c, &err, "cannot evaluate", t->what);
        sum += one;
    }
    if (t->info.validation && !curve_add(&t->held, t->step, sum / (double)t->info.validation))
        return EXIT_FAILED;
    return EXIT_DONE;
}

static int save_checkpoint(struct training *t)
{
    rlx_checkpoint at = {RLX_SIZED(rlx_checkpoint),
                         .cursor = (uint64_t)t->step * (uint64_t)runs_of(t), .seed = t->seed};
    rlx_error err;

    if (!t->opt->checkpoint)
        return EXIT_DONE;
    memcpy(at.note, t->note, sizeof at.note);
    if (rlx_trainer_save(t->trainer, t->opt->checkpoint, &at, &err) != RLX_OK)
        return cli_fail(t->c, &err, "cannot save", t->opt->checkpoint);
    t->saved = true;
    return EXIT_DONE;
}

static int draw(const struct training *t)
{
    struct buffer text = {0};
    char title[256];

    if (!t->opt->plot)
        return EXIT_DONE;
    snprintf(title, sizeof title, "%s: loss", t->what);
    curve_draw(&t->loss, &t->held, title, &text);
    int code = text.failed ? EXIT_FAILED
                           : cli_write_file(t->c, t->opt->plot, text.at ? text.at : "", text.len);
    buffer_free(&text);
    return code;
}

/* ---- the loop ---- */

static int one_step(struct training *t)
{
    for (int r = 0; r < runs_of(t); r++) {
        uint64_t i = (uint64_t)t->step * (uint64_t)runs_of(t) + (uint64_t)r;
        const rlx_binding *in;
        rlx_error err;
        size_t count;
        if (rlx_dataset_batch(t->data, RLX_SPLIT_TRAIN, i, &in, &count, &err) != RLX_OK ||
            rlx_trainer_step(t->trainer, in, count, &err) != RLX_OK)
            return cli_fail(t->c, &err, "cannot train", t->what);
    }
    t->step++;
    return EXIT_DONE;
}

/* After a step, maybe the last; *since: when the steps that were not reported yet began. */
static int look(struct training *t, bool last, double *since)
{
    bool rest = t->step % t->every == 0 || last;
    int code = EXIT_DONE;

    if (t->step % t->log != 0 && !rest)
        return EXIT_DONE;
    if ((code = report(t, since)) != EXIT_DONE)
        return code;
    if (rest && ((code = validate(t)) != EXIT_DONE || (code = save_checkpoint(t)) != EXIT_DONE ||
                 (code = draw(t)) != EXIT_DONE))
        return code;
    show(t, rest && t->info.validation > 0);
    *since = now();
    return EXIT_DONE;
}

int training_run(struct training *t)
{
    double since = now();
    int code = EXIT_DONE;

    wanted_to_stop = 0;
    catch_stop();
    if (t->step >= t->total)
        fprintf(stderr, "all %lld steps were made already\n", (long long)t->total);
    while (code == EXIT_DONE && t->step < t->total && !t->stopped)
        if ((code = one_step(t)) == EXIT_DONE) {
            t->stopped = wanted_to_stop && t->step < t->total;
            code = look(t, t->stopped || t->step == t->total, &since);
        }
    signal(SIGINT, SIG_DFL);
    if (code == EXIT_DONE && t->stopped) {
        fprintf(stderr, "stopped after step %lld%s%s%s\n", (long long)t->step,
                t->opt->checkpoint ? "; --resume goes on from " : "",
                t->opt->checkpoint ? t->opt->checkpoint : "",
                t->opt->checkpoint ? "" : ": nothing is kept without --checkpoint FILE");
        return EXIT_FAILED;
    }
    return code;
}

/* ---- the summary ---- */

static void put_curve(const char *name, const struct curve *k, FILE *out)
{
    fprintf(out, ", \"%s\": [", name);
    for (size_t i = 0; i < k->count; i++)
        fprintf(out, "%s[%lld, %.9g]", i ? ", " : "", (long long)k->at[i].step, k->at[i].loss);
    fputs("]", out);
}

void training_json(const struct training *t, FILE *out)
{
    fprintf(out, "{\"steps\": %lld, \"first_step\": %lld, \"stopped\": %s, \"seconds\": %.3f, ",
            (long long)t->step, (long long)t->start + 1, t->stopped ? "true" : "false", t->seconds);
    fprintf(out, "\"%s_per_second\": %.1f, \"loss\": ", t->units, t->rate);
    fprintf(out, t->loss.count ? "%.9g" : "null",
            t->loss.count ? t->loss.at[t->loss.count - 1].loss : 0);
    fputs(", \"validation\": ", out);
    fprintf(out, t->held.count ? "%.9g" : "null",
            t->held.count ? t->held.at[t->held.count - 1].loss : 0);
    put_curve("losses", &t->loss, out);
    put_curve("validations", &t->held, out);
    fputs("}\n", out);
}
