/* trainer_evaluate.c: the loss without learning: a session of the graph as it was, whose states are
 * copied from the session that learns whenever that has run. */
#include "train/trainer.h"

static rlx_status bring_up_to_date(rlx_trainer *t, rlx_error *err)
{
    if (!t->evaluation) {
        rlx_session_desc desc = {RLX_SIZED(rlx_session_desc)};
        TRY(rlx_session_create(t->quiet, t->dev, &desc, &t->evaluation, err));
    }
    if (t->evaluated == t->runs)
        return RLX_OK;
    TRY(trainer_wait(t, err));
    TRY(trainer_copy_states(t, t->evaluation, t->quiet, err));
    t->evaluated = t->runs;
    return RLX_OK;
}

rlx_status rlx_trainer_evaluate(rlx_trainer *t, const rlx_binding *inputs, size_t count,
                                double *loss, rlx_error *err)
{
    float got = 0;
    rlx_binding out = {"loss", {.dtype = RLX_DTYPE_f32, .data = &got, .bytes = sizeof got}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), .inputs = inputs, .input_count = count,
                        .outputs = &out, .output_count = 1};

    if (!t || !loss || (count && !inputs))
        return trainer_fail(err, RLX_ERROR_ARGUMENT, "%s is NULL",
                            !t      ? "the trainer"
                            : !loss ? "loss"
                                    : "inputs");
    TRY(bring_up_to_date(t, err));
    TRY(rlx_session_run(t->evaluation, &run, err));
    *loss = (double)got;
    return RLX_OK;
}
