/* share_recurrent.c: the last state of a recurrent layer whose sequence another node has is the end
 * of that sequence.
 *
 *     %s = gru %x, .. hidden_size=4                     %s = gru %x, .. hidden_size=4
 *     %h = gru %x, .. hidden_size=4 result=h    =>      %l = narrow %s axis=1 start=T-1 len=1
 *                                                       %h = reshape %l shape=[1,B,4]
 *
 * The layer that goes backwards ends at the first step. The cell of an lstm is in no sequence: it
 * stays a node of its own, which shares the sequence's step (lower/joint.h).
 *
 * Needs:  dead nodes to be gone, else a sequence may be made for a state alone.
 * Keeps:  types, labels. Only where there is a last step, the same for all rows, and where nothing
 * is read that is written in between. */
#include "pass/expand/expand.h"
#include "pass/share.h"

static bool is_recurrent(const struct ir_node *n, int64_t result)
{
    return op_info(n->op)->family == FAMILY_recurrent && n->attr.recurrent.result == result;
}

static bool same_layer(const struct ir_graph *g, const struct ir_node *a, const struct ir_node *b)
{
    union ir_attr attr = b->attr;

    attr.recurrent.result = a->attr.recurrent.result;
    return a->op == b->op && attr_same(a->op, &a->attr, &attr) && share_operands(g, a, b);
}

/* The node with the sequence that n is the end of; NULL: there is none. */
static const struct ir_node *sequence_of(const struct ir_graph *g, const struct ir_node *n)
{
    if (!is_recurrent(n, RLX_RNN_RESULT_h) || n->attr.recurrent.has_lengths)
        return NULL;
    ir_dim steps = ir_type_of(g, n->in[0])->dim[1];
    if (!dim_is_static(steps) || steps == 0)
        return NULL;
    IR_EACH(k, g) {
        if (is_recurrent(k, RLX_RNN_RESULT_seq) && same_layer(g, n, k))
            return k;
    }
    return NULL;
}

/* The state of one direction, [1, B, H]. */
static rlx_status end_of(struct rebuild *r, const struct ir_node *n, ir_value seq, int64_t dir,
                         ir_value *out)
{
    int64_t hidden = n->attr.recurrent.hidden_size;
    ir_dim last = expand_type(r, seq)->dim[1] - 1;

    TRY(expand_narrow(r, seq, 1, dir ? 0 : last, 1, out));
    if (n->attr.recurrent.bidirectional)
        TRY(expand_narrow(r, *out, 2, dir * hidden, hidden, out));
    return expand_reshape(r, *out, RLX_LIST(1, n->type.dim[1], hidden), out);
}

static rlx_status last_state(struct rebuild *r, const struct ir_node *n, ir_value seq,
                             ir_value *out)
{
    ir_value dir[2];
    union ir_attr attr;

    TRY(end_of(r, n, seq, 0, &dir[0]));
    *out = dir[0];
    if (!n->attr.recurrent.bidirectional)
        return RLX_OK;
    TRY(end_of(r, n, seq, 1, &dir[1]));
    attr_defaults(RLX_OP_concat, &attr);
    attr.concat.axis = 0;
    return rebuild_add(r, RLX_OP_concat, dir, 2, &attr, out);
}

static rlx_status run(struct pass_run *p, struct ir_module *m)
{
    return share_nodes(p, m, &(struct sharing){sequence_of, last_state});
}

const struct pass pass_share_recurrent = {
    "share-recurrent", "states that are the end of another layer's sequence", run};
