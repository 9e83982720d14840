/* fingerprint.c: a structural hash of modules.
 *
 * A running hash is the key under which the next piece is hashed, so order counts and every piece
 * is distinct from its neighbours. Numbers go in as little-endian bytes, ops, dtypes and words of
 * enums by name, symbolic dims as their canonical text: nothing here depends on addresses, on the
 * process's hash key or on how the tables are numbered. */
#include "ir/fingerprint.h"

#include <math.h>
#include <string.h>

#include "base/map.h"
#include "base/str.h"

uint64_t fingerprint_bytes(uint64_t h, const void *data, size_t len)
{
    const uint64_t key[2] = {h, UINT64_C(0x726c782066696e67)};

    return hash_bytes_keyed(key, len ? data : "", len);
}

uint64_t fingerprint_u64(uint64_t h, uint64_t v)
{
    unsigned char bytes[8];

    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(v >> (8 * i));
    return fingerprint_bytes(h, bytes, sizeof bytes);
}

uint64_t fingerprint_str(uint64_t h, rlx_str s)
{
    return fingerprint_bytes(fingerprint_u64(h, s.len), s.ptr, s.len);
}

struct hasher {
    const struct ir_module *mod;
    bool names;
    uint64_t h;
    struct text dim;    /* scratch: a dim as text */
    ir_value *place;    /* scratch: by node of the graph at hand, its place in the text */
    size_t place_count; /* room */
};

static void add_u64(struct hasher *s, uint64_t v)
{
    s->h = fingerprint_u64(s->h, v);
}

static void add_str(struct hasher *s, rlx_str text)
{
    s->h = fingerprint_str(s->h, text);
}

static void add_word(struct hasher *s, const char *text)
{
    add_str(s, rlx_cstr(text));
}

static void add_dim(struct hasher *s, ir_dim d)
{
    add_u64(s, dim_is_static(d));
    if (dim_is_static(d)) {
        add_u64(s, (uint64_t)d);
        return;
    }
    s->dim.len = 0;
    dim_print(s->mod->dims, d, &s->dim);
    if (!s->dim.failed)
        add_str(s, (rlx_str){s->dim.at, s->dim.len});
}

static void add_type(struct hasher *s, const struct ir_type *t)
{
    add_word(s, rlx_dtype_name(t->dtype));
    add_u64(s, (uint64_t)t->rank);
    for (int32_t i = 0; i < t->rank; i++)
        add_dim(s, t->dim[i]);
}

/* ---- attributes ---- */

static void add_f32(struct hasher *s, float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof bits);
    add_u64(s, isnan(v) ? UINT64_MAX : bits);
}

static void add_f64(struct hasher *s, double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    add_u64(s, isnan(v) ? UINT64_MAX : bits);
}

static void add_list(struct hasher *s, const rlx_list *list, bool dims)
{
    add_u64(s, (uint64_t)list->count);
    for (int32_t i = 0; i < list->count; i++) {
        if (dims)
            add_dim(s, list->at[i]);
        else
            add_u64(s, (uint64_t)list->at[i]);
    }
}

static void add_floats(struct hasher *s, const struct ir_blob *b)
{
    const float *v = b->ptr;

    add_u64(s, b->len);
    for (size_t i = 0; i < b->len; i++)
        add_f32(s, v[i]);
}

static void add_chain(struct hasher *s, const struct ir_blob *b)
{
    const rlx_chain_step *step = b->ptr;

    add_u64(s, b->len);
    for (size_t i = 0; i < b->len; i++) {
        add_word(s, op_info((rlx_op)step[i].op)->name);
        add_word(s, rlx_dtype_name((rlx_dtype)step[i].to));
        for (int k = 0; k < 3; k++)
            add_u64(s, (uint64_t)(int64_t)step[i].in[k]);
    }
}

static void add_enum(struct hasher *s, const struct attr_info *a, int32_t value)
{
    const char *word = enum_word(a->words, value);

    if (word)
        add_word(s, word);
    else
        add_u64(s, (uint64_t)(int64_t)value);
}

static void add_attr(struct hasher *s, const struct attr_info *a, const void *at)
{
    const struct ir_blob *blob = at;

    switch (a->kind) {
    case ATTR_BOOL: add_u64(s, *(const attr_BOOL *)at); break;
    case ATTR_I64: add_u64(s, (uint64_t) * (const attr_I64 *)at); break;
    case ATTR_U64: add_u64(s, *(const attr_U64 *)at); break;
    case ATTR_F32: add_f32(s, *(const attr_F32 *)at); break;
    case ATTR_F64: add_f64(s, *(const attr_F64 *)at); break;
    case ATTR_ENUM: add_enum(s, a, *(const attr_ENUM *)at); break;
    case ATTR_DTYPE: add_word(s, rlx_dtype_name(*(const attr_DTYPE *)at)); break;
    case ATTR_DIM: add_dim(s, *(const attr_DIM *)at); break;
    case ATTR_AXES:
    case ATTR_INTS: add_list(s, at, false); break;
    case ATTR_DIMS: add_list(s, at, true); break;
    case ATTR_FLOATS: add_floats(s, blob); break;
    case ATTR_BYTES:
    case ATTR_STRING: add_str(s, (rlx_str){blob->ptr, blob->len}); break;
    case ATTR_GRAPH: add_u64(s, (uint64_t)(int64_t) * (const attr_GRAPH *)at); break;
    case ATTR_CHAIN: add_chain(s, blob); break;
    case ATTR_UNARY: add_word(s, op_info(*(const attr_UNARY *)at)->name); break;
    }
}

static void add_attrs(struct hasher *s, const struct ir_node *n)
{
    size_t count;
    enum op_family family = op_info(n->op)->family;
    const struct attr_info *a = family_attrs(family, &count);

    for (size_t i = 0; i < count; i++) {
        if (family == FAMILY_leaf && !s->names && strcmp(a[i].name, "name") == 0)
            continue;
        add_word(s, a[i].name);
        add_attr(s, &a[i], (const char *)&n->attr + a[i].offset);
    }
}

/* ---- graphs ---- */

static bool is_leaf(const struct ir_node *n)
{
    return op_info(n->op)->family == FAMILY_leaf;
}

static void add_node(struct hasher *s, const struct ir_node *n)
{
    add_word(s, op_info(n->op)->name);
    add_u64(s, (uint64_t)n->in_count);
    for (int32_t i = 0; i < n->in_count; i++)
        add_u64(s, (uint64_t)s->place[n->in[i]]);
    add_type(s, &n->type);
    add_attrs(s, n);
}

/* Leaves first, as text has them: where they stood among the others says nothing. */
static void add_graph(struct hasher *s, const struct ir_graph *g)
{
    ir_value next = 0;

    for (int others = 0; others < 2; others++)
        IR_EACH(n, g) {
            if (is_leaf(n) != (bool)others)
                s->place[ir_id(g, n)] = next++;
        }
    add_u64(s, g->node.len);
    for (int others = 0; others < 2; others++)
        IR_EACH(n, g) {
            if (is_leaf(n) != (bool)others)
                add_node(s, n);
        }
    add_u64(s, g->output.len);
    for (size_t i = 0; i < g->output.len; i++)
        add_u64(s, (uint64_t)s->place[g->output.at[i]]);
}

static void add_bounds(struct hasher *s)
{
    const struct dim_table *dims = s->mod->dims;

    for (size_t i = 0; i < dim_symbol_count(dims); i++) {
        int64_t bound = dim_symbol_bound(dims, i);
        if (bound == 0)
            continue;
        add_str(s, dim_symbol_name(dims, i));
        add_u64(s, (uint64_t)bound);
    }
}

rlx_status ir_fingerprint(const struct ir_module *m, bool names, uint64_t *out, struct diag *d)
{
    struct hasher s = {.mod = m, .names = names};

    for (size_t i = 0; i < m->graph.len; i++)
        if (m->graph.at[i]->node.len > s.place_count)
            s.place_count = m->graph.at[i]->node.len;
    s.place = mem_alloc(m->mem, s.place_count * sizeof *s.place);
    if (s.place_count && !s.place)
        return diag_no_memory(d, s.place_count * sizeof *s.place);
    text_init(&s.dim, m->mem);
    add_bounds(&s);
    add_u64(&s, m->graph.len);
    for (size_t i = 0; i < m->graph.len; i++)
        add_graph(&s, m->graph.at[i]);
    bool failed = s.dim.failed;
    text_free(&s.dim);
    mem_free(m->mem, s.place, s.place_count * sizeof *s.place);
    if (failed)
        return diag_no_memory(d, 0);
    *out = s.h;
    return RLX_OK;
}
