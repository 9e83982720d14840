/* lower_loss.c: cross entropies of rows of logits (kernels/loss.rlk), from the tops and sums of the
 * rows.
 */
#include "lower/gpu/gpu_index_check.h"
#include "lower/gpu/rows/lower_rows.h"

/* Rows of the logits; false: there is no class, and every loss is 0. */
static bool logit_rows(struct gpu_call *c, struct gpu_rows *r, bool vectors)
{
    const struct ir_type *x = &c->in[0];
    const struct gpu_reduction zero = {.sum = gpu_sum_type(c->out->dtype), .result = c->out->dtype};

    gpu_rows_along(r, x, x->rank - 1);
    gpu_share_rows(r, x->dtype, 1, vectors && gpu_by_four(c, gpu_in(c, 0), x->dtype));
    if (r->size == 0)
        gpu_reduce_nothing(c, &zero, gpu_out(c), gpu_count(c->out));
    return r->size > 0 && gpu_count(c->out) > 0;
}

/* Negative labels are padding; in checked mode nothing else may be out of range. */
static void check_labels(struct gpu_call *c, const struct gpu_rows *r)
{
    if (c->check_indices)
        gpu_check_indices(c, gpu_in(c, 1), c->in[1].dtype, r->rows, INT64_MIN, (int64_t)r->size);
}

static void logit_types(struct gpu_call *c)
{
    gpu_type(c, "T", c->in[0].dtype);
    gpu_type(c, "A", gpu_sum_type(c->in[0].dtype));
    gpu_type(c, "U", c->out->dtype);
}

void gpu_lower_softmax_cross_entropy_with_logits(struct gpu_call *c)
{
    struct gpu_rows r;

    if (!logit_rows(c, &r, true))
        return;
    check_labels(c, &r);
    struct gpu_arg stats = gpu_softmax_stats(c, &r, c->in[0].dtype, gpu_in(c, 0));
    gpu_kernel(c, "loss", "labels");
    logit_types(c);
    gpu_index_type(c, c->in[1].dtype);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, stats);
    gpu_bind(c, gpu_out(c));
    gpu_u32(c, "rows", r.rows);
    gpu_u32(c, "classes", r.size);
    gpu_invocations(c, r.rows, GPU_GROUP);
}

static void launch_targets(struct gpu_call *c, const struct gpu_sets *s, rlx_dtype result,
                           struct gpu_arg stats, struct gpu_arg y)
{
    gpu_kernel(c, "loss", "targets");
    gpu_type(c, "T", c->in[0].dtype);
    gpu_type(c, "P", c->in[1].dtype);
    gpu_type(c, "A", gpu_sum_type(c->in[0].dtype));
    gpu_type(c, "U", result);
    gpu_const(c, "LANES", (int64_t)s->lanes);
    gpu_const(c, "TURN", (int64_t)s->turn);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, stats);
    gpu_bind(c, y);
    gpu_u32(c, "rows", s->kept.count);
    gpu_u32(c, "classes", s->gone.count);
    gpu_u32(c, "chunk", s->chunk);
    gpu_u32(c, "chunks", s->chunks);
    gpu_groups(c, gpu_set_groups(s));
}

void gpu_lower_softmax_cross_entropy(struct gpu_call *c)
{
    const struct ir_type *x = &c->in[0];
    const struct gpu_reduction sum = {.sum = gpu_sum_type(x->dtype), .result = c->out->dtype};
    struct gpu_rows r;
    struct gpu_sets s;

    if (!logit_rows(c, &r, true))
        return;
    struct gpu_arg stats = gpu_softmax_stats(c, &r, x->dtype, gpu_in(c, 0));
    struct gpu_arg room = gpu_chunk_room(c, gpu_count(x));
    const struct ir_type rows = {.rank = 2, .dim = {(int64_t)r.rows, (int64_t)r.size}};
    gpu_find_sets(&s, &rows, 2);
    if (s.chunks == 1) {
        launch_targets(c, &s, c->out->dtype, stats, gpu_out(c));
        return;
    }
    room.bytes = s.kept.count * s.chunks * rlx_dtype_size(sum.sum);
    launch_targets(c, &s, sum.sum, stats, room);
    gpu_join_chunks(c, &sum, &s, room, gpu_out(c));
}

void gpu_lower_softmax_cross_entropy_backward(struct gpu_call *c)
{
    rlx_dtype type = c->in[0].dtype;
    struct gpu_rows r;

    if (!logit_rows(c, &r, gpu_by_four(c, gpu_out(c), type)))
        return;
    check_labels(c, &r);
    struct gpu_arg stats = gpu_softmax_stats(c, &r, type, gpu_in(c, 0));
    gpu_kernel(c, "loss", "gradient");
    gpu_type(c, "T", type);
    gpu_type(c, "D", c->in[2].dtype);
    gpu_index_type(c, c->in[1].dtype);
    gpu_row_consts(c, &r, type);
    gpu_bind(c, gpu_in(c, 0));
    gpu_bind(c, gpu_in(c, 1));
    gpu_bind(c, gpu_in(c, 2));
    gpu_bind(c, stats);
    gpu_bind(c, gpu_out(c));
    gpu_row_words(c, &r);
    gpu_u32(c, "chunks", r.chunks);
    gpu_groups(c, gpu_row_groups(&r));
}
