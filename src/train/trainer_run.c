/* trainer_run.c: steps, what is heard of them, and which node gave the first NaN.
 *
 * A step submits its inputs and reads nothing back. Runs are waited for without their outputs,
 * which stay on the device, but for the last one before a report. */
#include <string.h>

#include "base/desc.h"
#include "rlx/debug.h"
#include "train/trainer.h"

static rlx_binding number(const char *name, void *to, rlx_dtype dtype, int64_t count)
{
    rlx_tensor t = {.dtype = dtype, .rank = 1, .dim = {count}, .data = to};

    t.bytes = (size_t)count * rlx_dtype_size(dtype);
    return (rlx_binding){name, t};
}

/* The oldest run, whether it was fine or not, is no longer on its way. */
static rlx_status wait_oldest(rlx_trainer *t, rlx_run_desc *run, rlx_error *err)
{
    uint64_t ticket = t->ticket[0];

    t->flying--;
    memmove(t->ticket, t->ticket + 1, t->flying * sizeof *t->ticket);
    return rlx_session_wait(t->session, ticket, run, err);
}

rlx_status trainer_wait(rlx_trainer *t, rlx_error *err)
{
    rlx_run_desc none = {RLX_SIZED(rlx_run_desc)};
    rlx_binding seen[] = {number("grad_norm", &t->grad_norm, RLX_DTYPE_f32, 1),
                          number("rate", &t->rate, RLX_DTYPE_f32, 1)};
    rlx_run_desc last = {RLX_SIZED(rlx_run_desc), .outputs = seen, .output_count = 2};

    while (t->flying)
        TRY(wait_oldest(t, t->flying == 1 ? &last : &none, err));
    return RLX_OK;
}

rlx_status rlx_trainer_step(rlx_trainer *t, const rlx_binding *inputs, size_t count, rlx_error *err)
{
    rlx_run_desc none = {RLX_SIZED(rlx_run_desc)};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .inputs = inputs, .input_count = count};

    if (!t || (count && !inputs))
        return trainer_fail(err, RLX_ERROR_ARGUMENT, "%s is NULL", t ? "inputs" : "the trainer");
    if (t->flying == t->in_flight)
        TRY(wait_oldest(t, &none, err));
    TRY(rlx_session_submit(t->session, &run, &t->ticket[t->flying], err));
    t->flying++;
    t->runs++;
    return RLX_OK;
}

/* ---- reports ---- */

rlx_status trainer_bad(rlx_trainer *t, int32_t bad[2], rlx_error *err)
{
    rlx_binding b = number("train.bad", bad, RLX_DTYPE_i32, 2);

    return rlx_session_get_state(t->session, b.name, &b.tensor, err);
}

/* The sum of the losses since the last report, and their number; then they are 0. */
static rlx_status take_loss(rlx_trainer *t, float loss[2], rlx_error *err)
{
    float zero[2] = {0, 0};
    rlx_binding b = number("train.loss", loss, RLX_DTYPE_f32, 2);
    rlx_binding z = number("train.loss", zero, RLX_DTYPE_f32, 2);

    TRY(rlx_session_get_state(t->session, b.name, &b.tensor, err));
    return rlx_session_set_state(t->session, z.name, &z.tensor, err);
}

static rlx_status report(rlx_trainer *t, rlx_train_report *out, rlx_error *err)
{
    int32_t step = 0, bad[2] = {0, 0};
    float loss[2] = {0, 0};
    rlx_binding b = number("train.step", &step, RLX_DTYPE_i32, 1);

    TRY(trainer_wait(t, err));
    TRY(rlx_session_get_state(t->session, b.name, &b.tensor, err));
    TRY(trainer_bad(t, bad, err));
    if (bad[0] > 0) {
        t->bad_run = t->runs - bad[0];
        return trainer_fail(err, RLX_ERROR_NUMERIC,
                            "the loss or the gradients of update %d are not finite: it was not "
                            "made, and params are as update %d left them",
                            bad[1] + 1, bad[1]);
    }
    TRY(take_loss(t, loss, err));
    *out =
        (rlx_train_report){RLX_SIZED(rlx_train_report), .updates = step,
                           .runs = (int64_t)loss[1],    .loss = (double)loss[0] / (double)loss[1],
                           .grad_norm = t->grad_norm,   .rate = t->rate};
    return RLX_OK;
}

rlx_status rlx_trainer_report(rlx_trainer *t, rlx_train_report *out, rlx_error *err)
{
    rlx_train_report own = {RLX_SIZED(rlx_train_report), .updates = 0};
    struct diag d;

    if (!t)
        return trainer_fail(err, RLX_ERROR_ARGUMENT, "the trainer is NULL");
    diag_init(&d, "train");
    if (INFO_CHECK(rlx_train_report, out, &d) != RLX_OK)
        return diag_report(&d, err);
    TRY(report(t, &own, err));
    INFO_WRITE(rlx_train_report, &own, out, &d);
    return diag_report(&d, err);
}

int64_t rlx_trainer_bad_run(const rlx_trainer *t)
{
    return t ? t->bad_run : -1;
}

int64_t rlx_trainer_runs(const rlx_trainer *t)
{
    return t ? t->runs : 0;
}

rlx_session *rlx_trainer_session(rlx_trainer *t)
{
    return t ? t->session : NULL;
}

/* ---- the first NaN ---- */

/* A session of its own, in which nothing is fused, so that nodes are those of the graph. */
static rlx_status open_probe(rlx_trainer *t, rlx_error *err)
{
    static const rlx_debug_desc plain = {RLX_SIZED(rlx_debug_desc), .no_optimize = true};
    rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .check_numerics = RLX_NUMERICS_REPORT,
                             .debug = &plain};

    if (t->probe)
        return RLX_OK;
    return rlx_session_create(t->model, t->dev, &desc, &t->probe, err);
}

rlx_status rlx_trainer_find_bad(rlx_trainer *t, const rlx_binding *inputs, size_t count,
                                rlx_numerics *out, rlx_error *err)
{
    int32_t none[2] = {0, 0};
    rlx_binding bad = number("train.bad", none, RLX_DTYPE_i32, 2);
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .inputs = inputs, .input_count = count};

    if (!t || !out || (count && !inputs))
        return trainer_fail(err, RLX_ERROR_ARGUMENT, "%s is NULL",
                            !t     ? "the trainer"
                            : !out ? "out"
                                   : "inputs");
    TRY(trainer_wait(t, err));
    TRY(open_probe(t, err));
    TRY(trainer_copy_states(t, t->probe, t->model, err));
    TRY(rlx_session_set_state(t->probe, bad.name, &bad.tensor, err));
    TRY(rlx_session_run(t->probe, &run, err));
    return rlx_session_numerics(t->probe, out, err);
}
