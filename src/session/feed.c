/* feed.c: outputs that become part of a handle after each run, without leaving the device. */
#include <string.h>

#include "base/str.h"
#include "ir/text/text.h"
#include "session/handle.h"

static const struct ir_graph *graph_of(const rlx_session *s)
{
    return ir_entry(s->model->mod);
}

static rlx_status parse_row(rlx_session *s, const char *text, const char *otherwise, ir_dim *out,
                            struct diag *d)
{
    return ir_parse_dim(s->dims, rlx_cstr(text ? text : otherwise), &s->model->ctx->mem, out, d);
}

/* All axes but the one rows are counted along must agree; symbolic ones are looked at in the run.
 */
static rlx_status check_feed(const rlx_session *s, const struct handle *h, const rlx_feed *feed,
                             int32_t axis, struct diag *d)
{
    const struct ir_graph *g = graph_of(s);
    const struct ir_type *in = ir_type_of(g, h->leaf);
    rlx_str name = handle_name(s, h);

    if (feed->output >= g->output.len)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "there are %zu outputs, no number %zu",
                         g->output.len, feed->output);
    const struct ir_type *out = ir_type_of(g, g->output.at[feed->output]);
    if (out->dtype != in->dtype)
        return diag_fail(d, RLX_ERROR_DTYPE, "handle \"%.*s\" is %s, output %zu is %s",
                         STR_ARG(name), rlx_dtype_name(in->dtype), feed->output,
                         rlx_dtype_name(out->dtype));
    if (out->rank != in->rank || (axis >= in->rank && feed->mode != RLX_FEED_WHOLE))
        return diag_fail(d, RLX_ERROR_SHAPE,
                         "handle \"%.*s\" has rank %d, output %zu has rank %d; rows are axis %d",
                         STR_ARG(name), in->rank, feed->output, out->rank, axis);
    for (int32_t i = 0; i < in->rank; i++)
        if ((i != axis || feed->mode == RLX_FEED_WHOLE) && dim_is_static(in->dim[i]) &&
            dim_is_static(out->dim[i]) && in->dim[i] != out->dim[i])
            return diag_fail(
                d, RLX_ERROR_SHAPE, "axis %d of handle \"%.*s\" is %lld, of output %zu it is %lld",
                i, STR_ARG(name), (long long)in->dim[i], feed->output, (long long)out->dim[i]);
    return RLX_OK;
}

rlx_status feed_set(struct rlx_session *s, const char *name, const rlx_feed *feed, struct diag *d)
{
    struct handle *h;
    struct feed f = {.is_set = true};

    TRY(session_check_idle(s, name, feed, d));
    f.output = feed->output;
    if (handle_is_state(s, name))
        return diag_fail(d, RLX_ERROR_STATE, "\"%s\" is a state: an op writes it, not a feed",
                         name);
    if ((unsigned)feed->mode > RLX_FEED_BATCH)
        return diag_fail(d, RLX_ERROR_ARGUMENT, "there is no feed mode %d", (int)feed->mode);
    TRY(handle_find_bound(s, name, &h, d));
    if (h->feed.is_set)
        return diag_fail(d, RLX_ERROR_STATE, "handle \"%s\" has a feed: clear it first", name);
    f.axis = feed->mode == RLX_FEED_BATCH ? 1 : 0;
    f.all = feed->mode == RLX_FEED_WHOLE || (feed->mode == RLX_FEED_PREFIX && !feed->rows);
    TRY(check_feed(s, h, feed, f.axis, d));
    TRY(parse_row(s, feed->src_row, "0", &f.from, d));
    TRY(parse_row(s, feed->dst_row, "0", &f.to, d));
    TRY(parse_row(s, feed->rows, "1", &f.rows, d));
    h->feed = f;
    return RLX_OK;
}

rlx_status feed_clear(struct rlx_session *s, const char *name, struct diag *d)
{
    struct handle *h;

    TRY(session_check_idle(s, name, name, d));
    TRY(handle_find_bound(s, name, &h, d));
    h->feed = (struct feed){0};
    return RLX_OK;
}

static rlx_status row(rlx_session *s, const struct handle *h, ir_dim expr, int64_t *out,
                      struct diag *d)
{
    const char *why = NULL;
    rlx_status status = dim_size(s->dims, expr, s->binding, s->symbol_count, out, &why);

    return status == RLX_OK ? RLX_OK
                            : diag_fail(d, status, "the feed of \"%.*s\": a row number: %s",
                                        STR_ARG(handle_name(s, h)), why);
}

/* The part of the output that is taken, and where it goes. */
struct feeding {
    int64_t dim[RLX_MAX_RANK], from[RLX_MAX_RANK], to[RLX_MAX_RANK];
};

static rlx_status measure(rlx_session *s, const struct handle *h, const struct ir_type *out,
                          struct feeding *k, struct diag *d)
{
    int64_t rows = 0;

    *k = (struct feeding){{0}, {0}, {0}};
    memcpy(k->dim, out->dim, (size_t)out->rank * sizeof k->dim[0]);
    if (!h->feed.all || out->rank) {
        TRY(row(s, h, h->feed.from, &k->from[h->feed.axis], d));
        TRY(row(s, h, h->feed.to, &k->to[h->feed.axis], d));
        TRY(row(s, h, h->feed.rows, &rows, d));
    }
    if (!h->feed.all)
        k->dim[h->feed.axis] = rows;
    for (int32_t i = 0; i < out->rank; i++)
        if (k->from[i] > out->dim[i] - k->dim[i] || k->to[i] > h->layout.dim[i] - k->dim[i])
            return diag_fail(
                d, RLX_ERROR_SIZE,
                "the feed of \"%.*s\": along axis %d, %lld from %lld on of %lld do not "
                "go to %lld on of %lld",
                STR_ARG(handle_name(s, h)), i, (long long)k->dim[i], (long long)k->from[i],
                (long long)out->dim[i], (long long)k->to[i], (long long)h->layout.dim[i]);
    return RLX_OK;
}

/* A whole value of another shape takes the handle's place if no bound forbids it. */
static rlx_status feed(rlx_session *s, struct handle *h, const struct flight *f, struct diag *d)
{
    const struct ir_type *type = &f->type[h->feed.output];
    struct span from = flight_span(f, h->feed.output);
    struct handle_mover m = {
        .backend = s->device->backend, .from = from.buffer, .from_offset = from.offset, .diag = d};
    struct feeding k;

    if (h->feed.all)
        TRY(handle_fit(s, h, type, d));
    TRY(measure(s, h, type, &k, d));
    m.to = h->buffer;
    const struct block block = {.rank = type->rank,
                                .dim = k.dim,
                                .size = rlx_dtype_size(type->dtype),
                                .to = {h->layout.dim, k.to},
                                .from = {type->dim, k.from}};
    TRY(block_each(&block, false, handle_move, &m));
    for (int32_t i = 0; i < type->rank; i++) {
        int64_t end = k.to[i] + k.dim[i];
        h->held.dim[i] = h->feed.all || end > h->held.dim[i] ? end : h->held.dim[i];
    }
    return RLX_OK;
}

/* In the order of their names, so that it does not depend on who was bound first. */
rlx_status handles_feed(rlx_session *s, struct flight *f, struct diag *d)
{
    struct handle *last = NULL;

    TRY(flight_before_feeds(s, f, d));
    for (size_t n = 0; n < s->handle_count; n++) {
        struct handle *next = NULL;
        for (size_t i = 0; i < s->handle_count; i++) {
            struct handle *h = &s->handle[i];
            if (h->feed.is_set && (!last || str_cmp(handle_name(s, h), handle_name(s, last)) > 0) &&
                (!next || str_cmp(handle_name(s, h), handle_name(s, next)) < 0))
                next = h;
        }
        if (!next)
            return RLX_OK;
        TRY(feed(s, next, f, d));
        last = next;
    }
    return RLX_OK;
}

/* What a feed asks for is known before the run; a whole one makes room for itself. */
rlx_status feeds_check(rlx_session *s, struct diag *d)
{
    struct feeding k;

    for (size_t i = 0; i < s->handle_count; i++) {
        const struct handle *h = &s->handle[i];
        if (h->feed.is_set && !h->feed.all)
            TRY(measure(s, h, &s->current->output[h->feed.output].type, &k, d));
    }
    return RLX_OK;
}
