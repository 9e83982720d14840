/* trained.h: what examples that train share: params from where they are learnt to where they are
 * used. Include it after defining RLX_UNSTABLE. */
#ifndef TRAINED_H
#define TRAINED_H

#include "example.h"
#include "rlx/trainer.h"

/* What a param of f32 holds now, to be freed, under its name as a string. */
struct learnt {
    char name[64];
    size_t count;
    rlx_tensor value;
};

static inline struct learnt learnt_param(rlx_trainer *t, const rlx_trainer_value *v)
{
    struct learnt l = {.count = 1, .value = {.dtype = RLX_DTYPE_f32}};
    rlx_error err;

    for (int32_t i = 0; i < v->rank; i++)
        l.count *= (size_t)v->dim[i];
    l.value.bytes = l.count * sizeof(float);
    l.value.data = malloc(l.value.bytes);
    if (!l.value.data)
        exit(1);
    snprintf(l.name, sizeof l.name, "%.*s", (int)v->name.len, v->name.ptr);
    check(rlx_trainer_get(t, l.name, &l.value, &err), &err);
    return l;
}

/* Sets params of the model to what the trainer has learnt: it has all that the trainer has. */
static inline void give_params(rlx_trainer *from, rlx_model *to)
{
    rlx_trainer_value v;
    rlx_error err;

    for (size_t i = 0; rlx_trainer_value_at(from, i, &v); i++) {
        if (!v.param)
            continue;
        struct learnt l = learnt_param(from, &v);
        check(rlx_model_set_param(to, l.name, &l.value, &err), &err);
        free(l.value.data);
    }
}

#endif
