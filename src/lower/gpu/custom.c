/* custom.c: an op that the program registered, by the kernel it brought. */
#include <string.h>

#include "base/str.h"
#include "ir/custom.h"
#include "lower/gpu.h"

static void add_dims(struct gpu_call *c, const struct ir_type *t)
{
    for (int32_t i = 0; i < RLX_MAX_RANK; i++)
        gpu_u32(c, i < t->rank ? (uint64_t)t->dim[i] : 1);
}

static void add_attributes(struct gpu_call *c)
{
    const struct ir_blob *attrs = &c->attr->custom.attrs;

    for (size_t i = 0; i < attrs->len; i += sizeof(uint32_t)) {
        size_t left = attrs->len - i;
        uint32_t word = 0;
        memcpy(&word, (const uint8_t *)attrs->ptr + i, left < sizeof word ? left : sizeof word);
        gpu_u32(c, word);
    }
}

static void launch(struct gpu_call *c, const rlx_custom_op *op)
{
    gpu_generated(c, rlx_cstr(op->kernel), "custom");
    for (int32_t i = 0; i < c->in_count; i++)
        gpu_bind(c, gpu_in(c, i));
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, gpu_count(c->out));
    for (int32_t i = 0; i < c->in_count; i++)
        add_dims(c, &c->in[i]);
    add_dims(c, c->out);
    add_attributes(c);
    gpu_invocations(c, gpu_count(c->out), GPU_GROUP);
}

static bool is_of_the_device(rlx_status s)
{
    return s == RLX_ERROR_LIMIT || s == RLX_ERROR_MEMORY || s == RLX_ERROR_UNSUPPORTED ||
           s == RLX_ERROR_DEVICE_LOST;
}

/* Whatever is wrong with the kernel is the program's mistake, and is told by the op's name: that of
 * the source is one of ours. */
static rlx_status blame(const struct gpu_call *c, rlx_str name, const rlx_error *e, struct diag *to)
{
    size_t len = strcspn(c->key, ":");
    const char *at = strchr(e->message, c->key[0]);
    bool found = at && strncmp(at, c->key, len) == 0;

    if (is_of_the_device(e->status))
        return diag_again(to, e, e->status);
    if (!found)
        at = e->message, len = 0;
    return diag_fail(to, RLX_ERROR_ARGUMENT, "the kernel of custom op \"%.*s\": %.*s%s%s",
                     STR_ARG(name), (int)(at - e->message), e->message, found ? "its source" : "",
                     at + len);
}

void gpu_lower_custom(struct gpu_call *c)
{
    rlx_str name = {c->attr->custom.name.ptr, c->attr->custom.name.len};
    const rlx_custom_op *op = custom_find(c->graph->mod->customs, name);
    struct diag *outer = c->diag, own;

    if (!op || !op->kernel) {
        gpu_refuse(c, RLX_ERROR_UNSUPPORTED,
                   "custom op \"%.*s\" has no kernel for GPUs; give one to rlx_custom_op.kernel",
                   STR_ARG(name));
        return;
    }
    diag_init(&own, NULL);
    c->diag = &own;
    launch(c, op);
    c->diag = outer;
    if (c->status != RLX_OK)
        c->status = blame(c, name, &own.first, outer);
}
