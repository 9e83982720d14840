/* cse.c: equal nodes become one.
 *
 *     %a = exp %x
 *     %b = exp %x                =>      uses of %b become uses of %a
 *
 * Needs:  nothing.      Keeps: types, order, the first one's label. Leaves: the nodes; dce takes
 * them. Equal: the same op, attributes, type and operands, where operands of ops that commute are
 * taken in the order of their ids; constants by their bytes. A node that reads a state before its
 * writer is not equal to one that reads it afterwards. Leaves with names, writers, random and
 * custom ops are equal to nothing. */
#include <string.h>

#include "pass/facts.h"
#include "pass/pass.h"

struct table {
    const struct ir_graph *g;
    struct map seen;
    int32_t *reads_new; /* by node: how many of its operands are states written before it */
    bool *written;      /* by value: a state whose writer has come */
};

#define SAMPLE_BYTES 1024 /* of a large constant: enough to tell most apart */

/* Equal constants have equal hashes; the bytes themselves are compared afterwards. */
static uint64_t const_hash(const struct ir_node *n)
{
    const struct attr_const_ *c = &n->attr.const_;
    const uint8_t *at = c->data.ptr;
    size_t len = c->data.len;
    uint64_t h = hash_mix(len, (uint64_t)c->dtype);

    if (len <= 2 * SAMPLE_BYTES)
        return len ? hash_mix(h, hash_bytes(at, len)) : h;
    h = hash_mix(h, hash_bytes(at, SAMPLE_BYTES));
    return hash_mix(h, hash_bytes(at + len - SAMPLE_BYTES, SAMPLE_BYTES));
}

/* Operand k of a node in the order that equality sees. */
static ir_value operand(const struct ir_node *n, int32_t k)
{
    if (n->in_count == 2 && op_is(n->op, OP_COMMUTES) && n->in[0] > n->in[1])
        return n->in[1 - k];
    return n->in[k];
}

static uint64_t node_hash(const struct ir_node *n)
{
    uint64_t h = hash_mix((uint64_t)n->op, (uint64_t)n->in_count);

    h = hash_mix(h, n->op == RLX_OP_const ? const_hash(n) : attr_hash(n->op, &n->attr));
    for (int32_t k = 0; k < n->in_count; k++)
        h = hash_mix(h, (uint64_t)operand(n, k));
    return h;
}

static bool node_same(const void *owner, uint32_t value, const void *key)
{
    const struct table *t = owner;
    const struct ir_node *a = ir_node(t->g, (ir_value)value), *b = key;

    if (a->op != b->op || a->in_count != b->in_count || !type_same(&a->type, &b->type) ||
        t->reads_new[value] != t->reads_new[ir_id(t->g, b)])
        return false;
    for (int32_t k = 0; k < a->in_count; k++)
        if (operand(a, k) != operand(b, k))
            return false;
    return attr_same(a->op, &a->attr, &b->attr);
}

/* States only go from not written to written, so of two nodes with the same operands those with the
 * same count read the same content. */
static void note_states(struct table *t, const struct ir_node *n)
{
    ir_value id = ir_id(t->g, n), state;

    for (int32_t k = 0; k < n->in_count; k++)
        t->reads_new[id] += t->written[n->in[k]];
    if (op_is(n->op, OP_WRITES) && (state = ir_written_state(t->g, n)) != RLX_NO_VALUE)
        t->written[state] = true;
}

static rlx_status merge(struct pass_run *p, struct table *t, struct forward *f)
{
    IR_EACH(n, f->g) {
        uint32_t first;
        forward_operands(f, n);
        note_states(t, n);
        if (n->op != RLX_OP_const && !node_is_pure(f->g->mod, n))
            continue;
        uint64_t hash = node_hash(n);
        if (map_find(&t->seen, hash, node_same, t, n, &first)) {
            forward_to(f, n, (ir_value)first);
            p->changes++;
        } else if (!map_add(&t->seen, hash, (uint32_t)ir_id(f->g, n))) {
            return diag_no_memory(p->diag, 0);
        }
    }
    return RLX_OK;
}

static rlx_status merge_graph(struct pass_run *p, struct ir_graph *g)
{
    const rlx_allocator *mem = g->mod->mem;
    size_t room = g->node.len + 1;
    struct table t = {.g = g,
                      .reads_new = mem_alloc(mem, room * sizeof *t.reads_new),
                      .written = mem_alloc(mem, room)};
    struct forward f = {0};

    map_init(&t.seen, mem);
    rlx_status s = t.reads_new && t.written ? RLX_OK : diag_no_memory(p->diag, room);
    if (s == RLX_OK)
        s = forward_begin(&f, g, p->diag);
    if (s == RLX_OK)
        s = merge(p, &t, &f);
    forward_end(&f); /* also when memory ran out: what was redirected so far stands */
    map_free(&t.seen);
    mem_free(mem, t.reads_new, room * sizeof *t.reads_new);
    mem_free(mem, t.written, room);
    return s;
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    for (size_t i = 0; !p->options->no_cse && i < m->graph.len; i++)
        TRY(merge_graph(p, m->graph.at[i]));
    return RLX_OK;
}

const struct pass pass_cse = {"cse", "merge equal nodes", run};
