/* train_desc.c: what is asked of training, with its defaults in place, and refused where it makes
 * no sense. */
#include "base/desc.h"
#include "base/str.h"
#include "train/train.h"

static rlx_status check_number(const char *name, float v, double most, struct diag *d)
{
    char text[32], most_text[32];

    if (v >= 0 && (double)v <= most)
        return RLX_OK;
    str_from_f32(text, v);
    str_from_f32(most_text, (float)most);
    return diag_fail(d, RLX_ERROR_ATTRIBUTE, "%s is %s; it must be from 0 to %s", name, text,
                     most_text);
}

static void put_default(float *v, double otherwise)
{
    if (*v == 0)
        *v = (float)otherwise;
}

static rlx_status check_schedule(const rlx_train_desc *o, struct diag *d)
{
    if ((int)o->schedule < 0 || o->schedule > RLX_SCHEDULE_ONE_CYCLE)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "there is no schedule number %d", (int)o->schedule);
    if (o->warmup_steps < 0 || o->total_steps < 0)
        return diag_fail(d, RLX_ERROR_ATTRIBUTE, "warmup_steps and total_steps must be at least 0");
    if (o->schedule != RLX_SCHEDULE_CONSTANT && o->total_steps == 0)
        return diag_fail(d, RLX_ERROR_ATTRIBUTE,
                         "a schedule that ends needs total_steps, the number of updates");
    if (o->total_steps && o->warmup_steps > o->total_steps)
        return diag_fail(d, RLX_ERROR_ATTRIBUTE, "%lld warmup_steps are more than %lld total_steps",
                         (long long)o->warmup_steps, (long long)o->total_steps);
    return RLX_OK;
}

rlx_status train_read_desc(const rlx_train_desc *theirs, rlx_train_desc *o, struct diag *d)
{
    static const float rates[] = {1e-3f, 1e-3f, 1e-2f, 1e-4f, 2e-2f};

    *o = (rlx_train_desc){RLX_SIZED(rlx_train_desc)};
    TRY(desc_read(o, sizeof *o, theirs, "rlx_train_desc", d));
    if ((int)o->optimiser < 0 || o->optimiser > RLX_OPTIMISER_MUON)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "there is no optimiser number %d",
                         (int)o->optimiser);
    TRY(check_schedule(o, d));
    put_default(&o->rate, (double)rates[o->optimiser]);
    put_default(&o->plain_rate, 1e-3);
    put_default(&o->beta1, 0.9);
    put_default(&o->beta2, o->optimiser == RLX_OPTIMISER_LION ? 0.99 : 0.999);
    put_default(&o->eps, 1e-8);
    put_default(&o->start_ratio, 1.0 / 25);
    if (o->optimiser == RLX_OPTIMISER_MUON)
        put_default(&o->momentum, 0.95);
    o->accumulate = o->accumulate ? o->accumulate : 1;
    o->loss_scale_steps = o->loss_scale_steps ? o->loss_scale_steps : 2000;
    TRY(check_number("rate", o->rate, 1e6, d));
    TRY(check_number("plain_rate", o->plain_rate, 1e6, d));
    TRY(check_number("decay", o->decay, 1e6, d));
    TRY(check_number("beta1", o->beta1, 0.999999, d));
    TRY(check_number("beta2", o->beta2, 0.999999, d));
    TRY(check_number("eps", o->eps, 1e6, d));
    TRY(check_number("momentum", o->momentum, 1, d));
    TRY(check_number("final_ratio", o->final_ratio, 1e6, d));
    TRY(check_number("start_ratio", o->start_ratio, 1e6, d));
    TRY(check_number("clip_norm", o->clip_norm, TRAIN_F32_MAX, d));
    TRY(check_number("loss_scale", o->loss_scale, 0x1p100, d));
    if (o->accumulate < 1 || o->loss_scale_steps < 1)
        return diag_fail(d, RLX_ERROR_ATTRIBUTE,
                         "accumulate is %d and loss_scale_steps %d; both must be positive",
                         o->accumulate, o->loss_scale_steps);
    return RLX_OK;
}
