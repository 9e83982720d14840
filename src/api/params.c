/* params.c: the values of params on the host: their one home, whatever devices have copies. */
#include <string.h>

#include "api/objects.h"

static bool is_own(const struct model_param *p, const void *data)
{
    return !p->borrowed && p->data == data;
}

rlx_status param_room(const struct model_param *p, const rlx_allocator *mem, void **out,
                      struct diag *d)
{
    *out = p->borrowed ? NULL : p->data;
    if (*out || p->bytes == 0)
        return RLX_OK;
    *out = mem_alloc(mem, (size_t)p->bytes);
    return *out ? RLX_OK : diag_no_memory(d, (size_t)p->bytes);
}

void param_drop_room(const struct model_param *p, const rlx_allocator *mem, void *room)
{
    if (!is_own(p, room))
        mem_free(mem, room, (size_t)p->bytes);
}

void param_take(struct param_values *v, size_t i, void *data, bool borrowed,
                const rlx_allocator *mem)
{
    struct model_param *p = &v->param[i];

    if (!p->borrowed && p->data != data)
        mem_free(mem, p->data, (size_t)p->bytes);
    p->data = data;
    p->borrowed = borrowed;
    p->changed = ++v->version;
}

/* Files are shared; the rest is copied. */
rlx_status params_copy(const struct param_values *from, const rlx_allocator *mem,
                       struct param_values *out, struct diag *d)
{
    size_t bytes = from->count * sizeof *from->param;

    *out = (struct param_values){.count = from->count, .version = from->version};
    out->param = mem_alloc(mem, bytes);
    if (!out->param && bytes)
        return diag_no_memory(d, bytes);
    for (size_t i = 0; i < from->count; i++) {
        struct model_param *p = &out->param[i];
        *p = from->param[i];
        if (p->borrowed || !p->data)
            continue;
        p->data = mem_alloc(mem, (size_t)p->bytes);
        if (!p->data) {
            out->count = i;
            params_free(out, mem);
            mem_free(mem, out->param, bytes);
            *out = (struct param_values){0};
            return diag_no_memory(d, (size_t)p->bytes);
        }
        memcpy(p->data, from->param[i].data, (size_t)p->bytes);
    }
    return RLX_OK;
}

void params_free(struct param_values *v, const rlx_allocator *mem)
{
    for (size_t i = 0; i < v->count; i++)
        if (!v->param[i].borrowed)
            mem_free(mem, v->param[i].data, (size_t)v->param[i].bytes);
}
