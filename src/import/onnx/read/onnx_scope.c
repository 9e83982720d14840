/* onnx_scope.c: see onnx_scope.h. */
#include "import/onnx/read/onnx_scope.h"

rlx_status onnx_scope_begin(struct onnx_import *im, struct onnx_scope *s, struct onnx_scope *outer,
                            struct ir_graph *g, struct diag *d)
{
    *s = (struct onnx_scope){.outer = outer, .g = g};
    map_init(&s->names, im->mem);
    if (outer) {
        s->opset = outer->opset;
        s->function = outer->function;
        s->definition = outer->definition;
        s->depth = outer->depth + 1;
    }
    if (s->depth > ONNX_MAX_DEPTH)
        return diag_fail(d, RLX_ERROR_LIMIT, "graphs nest deeper than %d", ONNX_MAX_DEPTH);
    return RLX_OK;
}

void onnx_scope_end(struct onnx_scope *s)
{
    vec_free(s->names.mem, &s->value);
    map_free(&s->names);
}

static bool same_name(const void *owner, uint32_t value, const void *key)
{
    const struct onnx_scope *s = owner;

    return str_eq(s->value.at[value]->name, *(const rlx_str *)key);
}

static struct onnx_value *find_here(const struct onnx_scope *s, rlx_str name)
{
    uint32_t i;

    if (!map_find(&s->names, hash_bytes(name.ptr, name.len), same_name, s, &name, &i))
        return NULL;
    return s->value.at[i];
}

static struct onnx_value *add(struct onnx_import *im, struct onnx_scope *s, rlx_str name,
                              const struct onnx_value *v)
{
    struct onnx_value *own = arena_new(im->arena, struct onnx_value);

    if (!own || !vec_room(im->mem, &s->value) ||
        !map_add(&s->names, hash_bytes(name.ptr, name.len), (uint32_t)s->value.len))
        return NULL;
    *own = *v;
    own->name = name;
    s->value.at[s->value.len++] = own;
    return own;
}

struct onnx_value *onnx_find(struct onnx_import *im, struct onnx_scope *s, rlx_str name)
{
    for (struct onnx_scope *o = s; o; o = o->outer) {
        struct onnx_value *v = find_here(o, name);
        if (!v)
            continue;
        if (o->g == s->g)
            return v;
        if (!v->data && !v->size && !v->failed)
            return NULL;
        struct onnx_value here = *v;
        here.node = RLX_NO_VALUE;
        here.is_weight = false;
        return add(im, s, name, &here);
    }
    return NULL;
}

rlx_status onnx_bind(struct onnx_import *im, struct onnx_scope *s, rlx_str name,
                     const struct onnx_value *v, struct diag *d)
{
    if (find_here(s, name))
        return diag_fail(d, RLX_ERROR_FORMAT, "the name \"%.*s\" is given twice", STR_ARG(name));
    return add(im, s, name, v) ? RLX_OK : diag_no_memory(d, sizeof *v);
}
