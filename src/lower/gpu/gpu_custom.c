/* gpu_custom.c: an op that the program registered, by the kernel it brought. */
#include <string.h>

#include "base/str.h"
#include "ir/custom.h"
#include "lower/gpu/gpu_core.h"

static uint64_t elements(const rlx_tensor *t)
{
    return t->bytes / rlx_dtype_size(t->dtype);
}

/* The kernel is the program's, and so are the names of its words: they go by their order. */
static void add_word(struct gpu_call *c, uint64_t value)
{
    uint32_t word = (uint32_t)value;

    if (value > UINT32_MAX)
        gpu_refuse(c, RLX_ERROR_LIMIT, "%s: %llu is more than a kernel can count",
                   op_info(c->op)->name, (unsigned long long)value);
    gpu_add_words(c, &word, 1);
}

static void add_dims(struct gpu_call *c, const rlx_tensor *t)
{
    for (int32_t i = 0; i < RLX_MAX_RANK; i++)
        add_word(c, i < t->rank ? (uint64_t)t->dim[i] : 1);
}

static void add_attributes(struct gpu_call *c)
{
    const struct ir_blob *attrs = &c->attr->custom.attrs;

    for (size_t i = 0; i < attrs->len; i += sizeof(uint32_t)) {
        size_t left = attrs->len - i;
        uint32_t word = 0;
        memcpy(&word, (const uint8_t *)attrs->ptr + i, left < sizeof word ? left : sizeof word);
        add_word(c, word);
    }
}

/* What a node of it needs to know at these sizes. */
struct custom {
    const rlx_custom_op *op;
    rlx_tensor in[GPU_BUFFERS], out[CUSTOM_RESULTS];
    uint32_t groups[3];
};

static rlx_status describe(const struct gpu_call *c, struct custom *k)
{
    const struct ir_blob *attrs = &c->attr->custom.attrs;
    const rlx_custom_op *op = k->op;

    if (c->in_count + custom_results(op) > GPU_BUFFERS)
        return diag_fail(c->diag, RLX_ERROR_LIMIT,
                         "custom op \"%s\" has %d inputs and %d results, and a kernel sees %d of "
                         "them at most",
                         op->name, c->in_count, custom_results(op), GPU_BUFFERS);
    for (int32_t i = 0; i < c->in_count; i++)
        custom_tensor(&c->in[i], &k->in[i]);
    TRY(custom_infer(op, k->in, c->in_count, attrs, k->out, c->diag));
    if (!op->grid)
        return RLX_OK;
    rlx_status s =
        op->grid(op->user, k->in, c->in_count, attrs->ptr, attrs->len, k->out, k->groups);
    return s == RLX_OK ? RLX_OK : custom_failed(op, "grid", s, NULL, c->diag);
}

/* Results that are not this node's are written, and forgotten. */
static struct gpu_arg place_of(struct gpu_call *c, const struct custom *k, int32_t result)
{
    if (result == c->attr->custom.result)
        return gpu_out(c);
    return gpu_temp(c, k->out[result].bytes ? k->out[result].bytes : 1);
}

static void launch(struct gpu_call *c, const struct custom *k)
{
    gpu_generated(c, rlx_cstr(k->op->kernel), "custom");
    for (int32_t i = 0; i < c->in_count; i++)
        gpu_bind(c, gpu_in(c, i));
    for (int32_t i = 0; i < custom_results(k->op); i++)
        gpu_bind(c, place_of(c, k, i));
    add_word(c, elements(&k->out[0]));
    for (int32_t i = 0; i < c->in_count; i++)
        add_dims(c, &k->in[i]);
    for (int32_t i = 0; i < custom_results(k->op); i++)
        add_dims(c, &k->out[i]);
    add_attributes(c);
    if (k->op->grid)
        gpu_grid(c, k->groups);
    else
        gpu_invocations(c, elements(&k->out[0]), GPU_GROUP);
}

static bool is_of_the_device(rlx_status s)
{
    return s == RLX_ERROR_LIMIT || s == RLX_ERROR_MEMORY || s == RLX_ERROR_UNSUPPORTED ||
           s == RLX_ERROR_DEVICE_LOST;
}

/* Whatever is wrong with the kernel is the program's mistake, and is reported under the op's name:
 * that of the source is one of ours. */
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
    struct custom k = {.op = custom_find(c->graph->mod->customs, name)};
    struct diag *outer = c->diag, own;

    if (!k.op || !k.op->kernel) {
        gpu_refuse(c, RLX_ERROR_UNSUPPORTED,
                   "custom op \"%.*s\" has no kernel for GPUs; give one to rlx_custom_op.kernel",
                   STR_ARG(name));
        return;
    }
    c->status = describe(c, &k);
    if (c->status != RLX_OK)
        return;
    diag_init(&own, NULL);
    c->diag = &own;
    launch(c, &k);
    c->diag = outer;
    if (c->status != RLX_OK)
        c->status = blame(c, name, &own.first, outer);
}
