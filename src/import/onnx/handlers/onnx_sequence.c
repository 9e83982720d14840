/* onnx_sequence.c: lists of tensors of ONNX. How many there are is known at load, so that a list is
 * nothing but its tensors. Optionals likewise: a value, or none. */
#include <string.h>

#include "base/str.h"
#include "import/onnx/read/onnx_build.h"
#include "import/onnx/read/onnx_scope.h"

static bool sequence_in(struct onnx_call *c, size_t i)
{
    if (!onnx_has(c, i) || !c->in[i]->is_sequence)
        formula_fail(&c->f, RLX_ERROR_FORMAT, "input %zu is not a sequence", i);
    return !onnx_failed(c);
}

struct onnx_value *onnx_give_items(struct onnx_call *c, size_t i, size_t count)
{
    if (onnx_failed(c))
        return NULL;
    if (count > ONNX_MAX_ITEMS || count > ONNX_ALL_ITEMS - c->im->items) {
        formula_fail(&c->f, RLX_ERROR_LIMIT, "a sequence of %zu tensors, or too many in all",
                     count);
        return NULL;
    }
    struct onnx_value *item = arena_array(onnx_arena(c), struct onnx_value, count);
    if (!item) {
        c->f.status = diag_no_memory(c->f.diag, count * sizeof *item);
        return NULL;
    }
    c->im->items += count;
    if (i < c->out_count)
        c->out[i] = (struct onnx_value){
            .node = RLX_NO_VALUE, .is_sequence = true, .item = item, .item_count = count};
    return item;
}

/* Input i as an item. A weight becomes a node first, so that all uses refer to one param. */
static struct onnx_value item_of(struct onnx_call *c, size_t i)
{
    if (!onnx_has(c, i) || c->in[i]->is_sequence || c->in[i]->is_weight)
        onnx_in(c, i);
    return onnx_failed(c) ? (struct onnx_value){.node = RLX_NO_VALUE} : *c->in[i];
}

void onnx_sequence_construct(struct onnx_call *c)
{
    struct onnx_value *item = onnx_give_items(c, 0, c->in_count);

    for (size_t i = 0; item && i < c->in_count; i++)
        item[i] = item_of(c, i);
}

void onnx_sequence_empty(struct onnx_call *c)
{
    onnx_give_items(c, 0, 0);
}

/* A place in the list, from its end where negative; `end` is one of them if it is allowed. */
static bool position(struct onnx_call *c, size_t input, size_t count, bool end, size_t *out)
{
    double at = (double)count;

    if (onnx_has(c, input)) {
        if (!onnx_number_in(c, input, &at))
            return false;
        at = at < 0 ? at + (double)count : at;
    } else if (!end)
        at = (double)count - 1;
    if (!(at >= 0 && at < (double)count + (end ? 1 : 0))) {
        formula_fail(&c->f, RLX_ERROR_INDEX, "there are %zu items", count);
        return false;
    }
    *out = (size_t)at;
    return true;
}

void onnx_sequence_insert(struct onnx_call *c)
{
    size_t at;

    if (!sequence_in(c, 0) || !position(c, 2, c->in[0]->item_count, true, &at))
        return;
    size_t count = c->in[0]->item_count;
    struct onnx_value *item = onnx_give_items(c, 0, count + 1);
    for (size_t i = 0; item && i < count; i++)
        item[i < at ? i : i + 1] = c->in[0]->item[i];
    if (item)
        item[at] = item_of(c, 1);
}

void onnx_sequence_erase(struct onnx_call *c)
{
    size_t at;

    if (!sequence_in(c, 0) || !position(c, 1, c->in[0]->item_count, false, &at))
        return;
    struct onnx_value *item = onnx_give_items(c, 0, c->in[0]->item_count - 1);
    for (size_t i = 0; item && i < c->in[0]->item_count; i++)
        if (i != at)
            item[i < at ? i : i - 1] = c->in[0]->item[i];
}

void onnx_sequence_at(struct onnx_call *c)
{
    size_t at;

    if (sequence_in(c, 0) && position(c, 1, c->in[0]->item_count, false, &at) && c->out_count)
        c->out[0] = c->in[0]->item[at];
}

void onnx_sequence_length(struct onnx_call *c)
{
    if (!sequence_in(c, 0))
        return;
    struct onnx_size n = {.number = (int64_t)c->in[0]->item_count};
    onnx_give_sizes(c, 0, 0, &n, 1);
}

/* ---- a body for each item ---- */

/* What the body reads for item k: that of every sequence, and every tensor as it is. */
static void take_items(struct onnx_call *c, struct onnx_value *in, size_t k)
{
    for (size_t i = 0; i < c->in_count; i++)
        in[i] = c->in[i]->is_sequence ? c->in[i]->item[k] : *c->in[i];
}

/* Are they all there, and the sequences of one length? */
static bool fit_together(struct onnx_call *c)
{
    for (size_t i = 1; i < c->in_count && !onnx_failed(c); i++) {
        if (!onnx_has(c, i))
            onnx_in(c, i);
        else if (c->in[i]->is_sequence && c->in[i]->item_count != c->in[0]->item_count)
            formula_fail(&c->f, RLX_ERROR_SHAPE, "sequences of %zu and of %zu items",
                         c->in[0]->item_count, c->in[i]->item_count);
    }
    return !onnx_failed(c);
}

void onnx_sequence_map(struct onnx_call *c)
{
    const struct onnx_graph *body = onnx_body(c, "body");
    struct onnx_value *in = onnx_make_values(c, c->in_count);
    struct onnx_value *out = onnx_make_values(c, c->out_count);

    if (!in || !out || !sequence_in(c, 0) || !fit_together(c))
        return;
    size_t count = c->in[0]->item_count;
    for (size_t i = 0; i < c->out_count; i++)
        if (!onnx_give_items(c, i, count))
            return;
    for (size_t k = 0; k < count; k++) {
        take_items(c, in, k);
        if (!onnx_run_body(c, body, in, c->in_count, out, c->out_count))
            return;
        for (size_t i = 0; i < c->out_count; i++) {
            if (out[i].is_sequence || out[i].is_absent)
                formula_fail(&c->f, RLX_ERROR_FORMAT, "the body's output %zu is not a tensor", i);
            c->out[i].item[k] = out[i];
            c->out[i].failed |= out[i].failed;
        }
    }
}

/* ---- from and to tensors ---- */

static void take_part(struct onnx_call *c, struct onnx_value *item, int32_t axis, int64_t at,
                      int64_t len, bool keep)
{
    struct formula *f = &c->f;
    ir_value v = formula_narrow(f, onnx_in(c, 0), axis, at, len);
    rlx_list shape = {0};

    if (onnx_failed(c))
        return;
    const struct ir_type t = *formula_type(f, v);
    for (int32_t i = 0; i < t.rank; i++)
        if (keep || i != axis)
            shape.at[shape.count++] = t.dim[i];
    v = formula_reshape(f, v, shape);
    *item = (struct onnx_value){.node = v, .narrow = c->in[0]->narrow};
    if (!onnx_failed(c))
        item->type = *formula_type(f, v);
}

void onnx_split_to_sequence(struct onnx_call *c)
{
    const struct ir_type t = *onnx_type(c, 0);
    int32_t axis = onnx_axis(c, onnx_int(c, "axis", 0), t.rank);
    size_t count = 0;
    const int64_t *len = onnx_has(c, 1) ? onnx_i64s(c, 1, &count) : NULL;
    bool keep = onnx_has(c, 1) || onnx_int(c, "keepdims", 1) != 0;

    if (onnx_failed(c))
        return;
    if ((onnx_has(c, 1) && !len) || !dim_is_static(t.dim[axis])) {
        onnx_unsupported(c, "sizes that are not known at load");
        return;
    }
    int64_t each = !len ? 1 : onnx_type(c, 1)->rank == 0 ? len[0] : 0, n = t.dim[axis], at = 0;
    if (len && onnx_type(c, 1)->rank == 0 && each < 1) {
        formula_fail(&c->f, RLX_ERROR_ATTRIBUTE, "parts of %lld", (long long)each);
        return;
    }
    if (each)
        count = (size_t)(n / each + (n % each != 0));
    struct onnx_value *item = onnx_give_items(c, 0, count);
    for (size_t i = 0; i < count && !onnx_failed(c); i++) {
        int64_t size = each ? (n - at < each ? n - at : each) : len[i];
        if (size < 0 || size > n - at) {
            formula_fail(&c->f, RLX_ERROR_SHAPE, "a part of %lld where %lld are left",
                         (long long)size, (long long)(n - at));
            return;
        }
        take_part(c, &item[i], axis, at, size, keep);
        at += size;
    }
    if (at != n)
        formula_fail(&c->f, RLX_ERROR_SHAPE, "parts of %lld in all, of an axis of %lld",
                     (long long)at, (long long)n);
}

void onnx_concat_from_sequence(struct onnx_call *c)
{
    struct formula *f = &c->f;
    bool is_new = onnx_int(c, "new_axis", 0) != 0;
    ir_value part[ONNX_MAX_ITEMS];

    if (!sequence_in(c, 0))
        return;
    size_t count = c->in[0]->item_count;
    if (count < 1 || count > ONNX_MAX_ITEMS) {
        onnx_unsupported(c, "a sequence of %zu tensors", count);
        return;
    }
    int32_t rank = c->in[0]->item[0].type.rank + (is_new ? 1 : 0), axis;
    axis = onnx_axis(c, onnx_int(c, "axis", 0), rank);
    for (size_t i = 0; i < count && !onnx_failed(c); i++) {
        struct onnx_value *v = &c->in[0]->item[i];
        rlx_list shape = {0};
        part[i] = onnx_node_of(c->im, c->scope, f, v);
        for (int32_t k = 0; k < rank && k < RLX_MAX_RANK; k++)
            shape.at[shape.count++] = k == axis ? 1 : v->type.dim[k < axis ? k : k - 1];
        if (is_new)
            part[i] = formula_reshape(f, part[i], shape);
    }
    onnx_give(c, 0, formula_concat(f, part, (int32_t)count, axis));
}

/* ---- optionals: a value, or none, which is known at load ---- */

void onnx_optional(struct onnx_call *c)
{
    if (!c->out_count)
        return;
    if (onnx_has(c, 0))
        c->out[0] = *c->in[0];
    else
        c->out[0].is_absent = true;
}

void onnx_optional_has(struct onnx_call *c)
{
    struct ir_type type = {.dtype = RLX_DTYPE_bool};
    uint8_t *has = arena_new(onnx_arena(c), uint8_t);

    if (!has) {
        c->f.status = diag_no_memory(c->f.diag, 1);
        return;
    }
    *has = onnx_has(c, 0);
    onnx_give_known(c, 0, &type, has);
}

void onnx_optional_get(struct onnx_call *c)
{
    if (!onnx_has(c, 0))
        formula_fail(&c->f, RLX_ERROR_FORMAT, "the optional has no value");
    else if (c->out_count)
        c->out[0] = *c->in[0];
}
