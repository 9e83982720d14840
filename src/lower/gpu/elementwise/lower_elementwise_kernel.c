/* lower_elementwise_kernel.c: lines of one element's computation become a kernel over all elements.
 *
 * Axes along which every operand is one run, or stands still, become one. Then each invocation
 * computes a few neighbours along the last axis, loaded as a vector where the operand allows it. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lower/gpu/elementwise/lower_elementwise.h"
#include "lower/gpu/gpu_core.h"

#define WIDE_FROM (UINT64_C(1) << 20) /* elements of a large tensor */
#define ROUNDS 4
#define MOST_WEIGHT 512 /* of an invocation's code, above which it does less at a time */

/* ---- collecting ---- */

void ew_begin_sizes(struct ew *e, struct gpu_call *c, int32_t rank, const int64_t *size)
{
    *e = (struct ew){.c = c, .rank = rank};
    memcpy(e->size, size, (size_t)rank * sizeof *size);
    gpu_take_text(c->device, &e->lines);
}

void ew_begin(struct ew *e, struct gpu_call *c, const struct ir_type *shape)
{
    ew_begin_sizes(e, c, shape->rank, shape->dim);
}

static bool same_input(const struct ew *e, const struct ew_in *a, const struct ew_in *b)
{
    return a->arg.operand == b->arg.operand && a->arg.offset == b->arg.offset &&
           a->arg.bytes == b->arg.bytes && a->dtype == b->dtype &&
           memcmp(a->step, b->step, (size_t)e->rank * sizeof *a->step) == 0;
}

struct ew_value ew_input_steps(struct ew *e, struct gpu_arg a, rlx_dtype t, const int64_t *step)
{
    struct ew_in in = {.arg = a, .dtype = t};
    struct ew_value v = {.dtype = t};
    int32_t i = 0;

    gpu_need_type(e->c, t);
    for (int32_t d = 0; d < e->rank; d++)
        in.step[d] = e->size[d] == 1 ? 0 : step[d];
    while (i < e->ins && !same_input(e, &e->in[i], &in))
        i++;
    if (i == GPU_BUFFERS)
        gpu_refuse(e->c, RLX_ERROR_INTERNAL, "%s: too many operands", op_info(e->c->op)->name);
    else if (i == e->ins)
        e->in[e->ins++] = in;
    snprintf(v.name, sizeof v.name, "x%d", i);
    return v;
}

struct ew_value ew_input(struct ew *e, struct gpu_arg a, const struct ir_type *t)
{
    int64_t step[EW_RANK] = {0}, at = 1;

    for (int32_t i = t->rank; i-- > 0;) {
        step[e->rank - t->rank + i] = t->dim[i] == 1 ? 0 : at;
        at *= t->dim[i];
    }
    return ew_input_steps(e, a, t->dtype, step);
}

void ew_line(struct ew *e, const char *format, ...)
{
    char line[512];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    text_addf(&e->lines, "            %s\n", line);
    e->weight++;
}

int32_t ew_word(struct ew *e, uint32_t bits)
{
    e->word[e->words] = bits;
    return e->words++;
}

void ew_store(struct ew *e, struct gpu_arg a, rlx_dtype t, const char *name)
{
    struct ew_out *o = &e->out[e->outs++];

    gpu_need_type(e->c, t);
    *o = (struct ew_out){.arg = a, .dtype = t};
    snprintf(o->name, sizeof o->name, "%s", name);
}

const char *ew_carrier(rlx_dtype t)
{
    switch (t) {
    case RLX_DTYPE_f16:
    case RLX_DTYPE_bf16: return "f32";
    case RLX_DTYPE_i8:
    case RLX_DTYPE_i16: return "i32";
    case RLX_DTYPE_u8:
    case RLX_DTYPE_u16: return "u32";
    default: return rlx_dtype_name(t);
    }
}

/* ---- axes ---- */

static bool is_one_run(const struct ew *e, int32_t outer, int32_t inner)
{
    for (int32_t i = 0; i < e->ins; i++)
        if (e->in[i].step[outer] != e->in[i].step[inner] * e->size[inner])
            return false;
    return true;
}

static void copy_axis(struct ew *e, int32_t to, int32_t from)
{
    e->size[to] = e->size[from];
    for (int32_t i = 0; i < e->ins; i++)
        e->in[i].step[to] = e->in[i].step[from];
}

/* At least one axis is left. */
static void join_axes(struct ew *e)
{
    int32_t kept = 0;

    for (int32_t d = 0; d < e->rank; d++) {
        if (e->size[d] == 1)
            continue;
        if (kept && is_one_run(e, kept - 1, d)) {
            int64_t outer = e->size[kept - 1];
            copy_axis(e, kept - 1, d);
            e->size[kept - 1] *= outer;
        } else {
            copy_axis(e, kept++, d);
        }
    }
    if (kept == 0) {
        e->size[0] = 1;
        for (int32_t i = 0; i < e->ins; i++)
            e->in[i].step[0] = 0;
        kept = 1;
    }
    e->rank = kept;
}

/* ---- vectors ---- */

static bool takes_vectors(const struct ew *e, struct gpu_arg a, rlx_dtype t, int64_t lanes)
{
    uint64_t bytes = rlx_dtype_size(t), wide = bytes * (uint64_t)lanes;
    bool pair = (t == RLX_DTYPE_i64 || t == RLX_DTYPE_u64) && !e->c->features->int64;

    return wide % 4 == 0 && wide <= 16 && t != RLX_DTYPE_c64 && !pair && gpu_aligned(e->c, a, wide);
}

static bool lanes_fit(const struct ew *e, int64_t lanes)
{
    int32_t last = e->rank - 1;

    if (e->size[last] % lanes)
        return false;
    for (int32_t i = 0; i < e->outs; i++)
        if (!takes_vectors(e, e->out[i].arg, e->out[i].dtype, lanes))
            return false;
    for (int32_t i = 0; i < e->ins; i++) {
        const struct ew_in *in = &e->in[i];
        if (in->step[last] == 0)
            continue; /* one element serves all lanes */
        if (in->step[last] != 1 || !takes_vectors(e, in->arg, in->dtype, lanes))
            return false;
        for (int32_t d = 0; d < last; d++)
            if (in->step[d] % lanes)
                return false;
    }
    return true;
}

static uint64_t elements(const struct ew *e)
{
    uint64_t n = 1;

    for (int32_t d = 0; d < e->rank; d++)
        n *= (uint64_t)e->size[d];
    return n;
}

/* How many elements an invocation computes at a time: sixteen bytes of them, of narrow ones in a
 * large tensor alone. Where there is much to compute, loads do not matter, and code should be
 * short. */
static int64_t lanes_of(const struct ew *e)
{
    for (int64_t lanes = elements(e) >= WIDE_FROM ? 8 : 4; lanes > 1; lanes /= 2)
        if (lanes * e->weight <= MOST_WEIGHT && lanes_fit(e, lanes))
            return lanes;
    return 1;
}

/* And how many times. */
static int rounds_of(const struct ew *e, int64_t lanes)
{
    bool large = elements(e) / (uint64_t)lanes >= WIDE_FROM;

    return large && ROUNDS * lanes * e->weight <= MOST_WEIGHT ? ROUNDS : 1;
}

/* ---- the text ---- */

struct maker {
    struct ew *e;
    struct text t;
    int64_t lanes;
    int rounds;                          /* how many times an invocation does that */
    bool walks;                          /* some operand needs the axes */
    int64_t step[GPU_BUFFERS * EW_RANK]; /* those that are words */
    int32_t steps;
};

/* Do its elements lie as the results do? */
static bool is_dense(const struct ew *e, const struct ew_in *in)
{
    int64_t step = 1;

    for (int32_t d = e->rank; d-- > 0; step *= e->size[d])
        if (in->step[d] != step)
            return false;
    return true;
}

static bool is_scalar(const struct ew *e, const struct ew_in *in)
{
    return e->rank == 1 && in->step[0] == 0;
}

static bool is_vector(const struct maker *m, const struct ew_in *in)
{
    return m->lanes > 1 && in->step[m->e->rank - 1] == 1;
}

static void add_uses(struct maker *m)
{
    static const char *const file[] = {"ops",         "ops_circle", "ops_int", "cast",
                                       "ops_complex", "fmod",       "quantise"};

    text_addf(&m->t, "use \"lib/grid\"\n");
    for (size_t i = 0; i < sizeof file / sizeof file[0]; i++)
        if (m->e->uses >> i & 1)
            text_addf(&m->t, "use \"lib/%s\"\n", file[i]);
}

/* What lies in a buffer: elements, vectors of them, or of narrow ones words that hold several. */
static void add_type(struct maker *m, rlx_dtype t, bool vector)
{
    int bytes = (int)rlx_dtype_size(t), words = bytes * (int)m->lanes / 4;

    if (!vector)
        text_addf(&m->t, "%s", rlx_dtype_name(t));
    else if (bytes >= 4)
        text_addf(&m->t, "vec<%s, %lld>", rlx_dtype_name(t), (long long)m->lanes);
    else
        text_addf(&m->t, words > 1 ? "u32x%d" : "u32", words);
}

/* Steps of 0 and 1 need no word. Where vectors are loaded, elements are counted in them. */
static void add_place(struct maker *m, const struct ew_in *in)
{
    struct ew *e = m->e;
    const char *plus = "";

    if (is_dense(e, in)) {
        text_addf(&m->t, "i");
        return;
    }
    for (int32_t d = 0; d < e->rank; d++) {
        int64_t step = in->step[d], unit = is_vector(m, in) ? m->lanes : 1;
        if (step == 0)
            continue;
        if (d == e->rank - 1 && is_vector(m, in))
            step = unit;
        if (step == unit) {
            text_addf(&m->t, "%sc%d", plus, d);
        } else {
            text_addf(&m->t, "%sc%d * step[%d]", plus, d, m->steps);
            m->step[m->steps++] = step / unit;
        }
        plus = " + ";
    }
    text_addf(&m->t, "%s", *plus ? "" : "0");
}

static void add_axes(struct maker *m)
{
    int32_t last = m->e->rank - 1;

    text_addf(&m->t, "            let r%d = i\n", last);
    for (int32_t d = last; d > 0; d--)
        text_addf(&m->t,
                  "            let r%d = r%d / size[%d]\n"
                  "            let c%d = r%d - r%d * size[%d]\n",
                  d - 1, d, d, d, d, d - 1, d);
    text_addf(&m->t, "            let c0 = r0\n");
}

static void begin_rounds(struct maker *m)
{
    text_addf(&m->t,
              "    unroll for u in 0..%d {\n        let i = first + u * %d\n"
              "        if i < count {\n",
              m->rounds, GPU_GROUP);
}

/* All rounds' loads come before anything else, so that they are under way together. One element
 * that serves all is loaded by itself. */
static void add_loads(struct maker *m)
{
    struct ew *e = m->e;

    for (int32_t i = 0; i < e->ins; i++) {
        const struct ew_in *in = &e->in[i];
        if (is_scalar(e, in)) {
            text_addf(&m->t, "    let l%d = %s(b%d[0])\n", i, ew_carrier(in->dtype), i);
            continue;
        }
        text_addf(&m->t, "    var l%d: [", i);
        if (is_vector(m, in))
            add_type(m, in->dtype, true);
        else
            text_addf(&m->t, "%s", ew_carrier(in->dtype));
        text_addf(&m->t, "; %d]\n", m->rounds);
    }
    begin_rounds(m);
    if (m->walks)
        add_axes(m);
    for (int32_t i = 0; i < e->ins; i++) {
        const struct ew_in *in = &e->in[i];
        if (is_scalar(e, in))
            continue;
        text_addf(&m->t, "            l%d[u] = %s(b%d[", i,
                  is_vector(m, in) ? "" : ew_carrier(in->dtype), i);
        add_place(m, in);
        text_addf(&m->t, "])\n");
    }
    text_addf(&m->t, "        }\n    }\n");
}

/* Element k of what was loaded in round u. */
static void add_element(struct maker *m, const struct ew_in *in, int32_t number)
{
    const char *carrier = ew_carrier(in->dtype);
    int bytes = (int)rlx_dtype_size(in->dtype), each = bytes < 4 ? 4 / bytes : 1;
    char word[48], bits[96];

    text_addf(&m->t, "            let x%d = ", number);
    if (!is_vector(m, in)) {
        text_addf(&m->t, "l%d%s\n", number, is_scalar(m->e, in) ? "" : "[u]");
        return;
    }
    if (bytes >= 4) {
        text_addf(&m->t, "%s(l%d[u][k])\n", carrier, number);
        return;
    }
    snprintf(word, sizeof word, m->lanes > each ? "l%d[u][k / %d]" : "l%d[u]", number, each);
    snprintf(bits, sizeof bits, "(%s >> (k %% %d * %d)) & %s", word, each, 8 * bytes,
             bytes == 1 ? "0xff" : "0xffff");
    if (in->dtype == RLX_DTYPE_bool)
        text_addf(&m->t, "(%s) != 0\n", bits);
    else
        text_addf(&m->t, "%s(from_bits(%s, %s))\n", carrier, rlx_dtype_name(in->dtype), bits);
}

/* Words of narrow elements, packed. */
static void store_words(struct maker *m, const struct ew_out *o, int32_t number)
{
    int bytes = (int)rlx_dtype_size(o->dtype), each = 4 / bytes, words = (int)m->lanes / each;
    bool truth = o->dtype == RLX_DTYPE_bool;

    if (words > 1)
        text_addf(&m->t, "u32x%d(", words);
    for (int k = 0; k < m->lanes; k++) {
        int shift = k % each * 8 * bytes;
        text_addf(&m->t, "%s", k == 0 ? "" : k % each ? " | " : ", ");
        if (truth)
            text_addf(&m->t, "(select(z%d[%d], u32(1), u32(0)) << %d)", number, k, shift);
        else
            text_addf(&m->t, "(to_bits(%s(z%d[%d])) << %d)", rlx_dtype_name(o->dtype), number, k,
                      shift);
    }
    text_addf(&m->t, words > 1 ? ")\n" : "\n");
}

static void add_store(struct maker *m, const struct ew_out *o, int32_t number)
{
    const char *type = rlx_dtype_name(o->dtype);

    text_addf(&m->t, "            y%d[i] = ", number);
    if (m->lanes == 1) {
        text_addf(&m->t, "%s(z%d[0])\n", type, number);
        return;
    }
    if (rlx_dtype_size(o->dtype) < 4) {
        store_words(m, o, number);
        return;
    }
    add_type(m, o->dtype, true);
    for (int64_t k = 0; k < m->lanes; k++)
        text_addf(&m->t, "%s%s(z%d[%lld])", k ? ", " : "(", type, number, (long long)k);
    text_addf(&m->t, ")\n");
}

static void add_computation(struct maker *m)
{
    struct ew *e = m->e;

    begin_rounds(m);
    for (int32_t i = 0; i < e->outs; i++)
        text_addf(&m->t, "            var z%d: [%s; %lld]\n", i, ew_carrier(e->out[i].dtype),
                  (long long)m->lanes);
    text_addf(&m->t, "            unroll for k in 0..%lld {\n", (long long)m->lanes);
    for (int32_t i = 0; i < e->ins; i++)
        add_element(m, &e->in[i], i);
    text_add(&m->t, (rlx_str){e->lines.at, e->lines.len});
    for (int32_t i = 0; i < e->outs; i++)
        text_addf(&m->t, "            z%d[k] = %s\n", i, e->out[i].name);
    text_addf(&m->t, "            }\n");
    for (int32_t i = 0; i < e->outs; i++)
        add_store(m, &e->out[i], i);
    text_addf(&m->t, "        }\n    }\n}\n");
}

/* The steps are known once the body is written, so it is written first. */
static void add_body(struct maker *m)
{
    text_addf(&m->t, "    let first = group_number() * %d + local.index\n", m->rounds * GPU_GROUP);
    add_loads(m);
    add_computation(m);
}

static void add_buffer(struct maker *m, const char *name, int32_t i, const char *mode, rlx_dtype t,
                       bool vector)
{
    text_addf(&m->t, "%s%d: %s [", name, i, mode);
    add_type(m, t, vector);
    text_addf(&m->t, "], ");
}

static void add_parameters(struct maker *m)
{
    struct ew *e = m->e;

    text_addf(&m->t, "kernel elementwise(");
    for (int32_t i = 0; i < e->ins; i++)
        add_buffer(m, "b", i, "in", e->in[i].dtype, is_vector(m, &e->in[i]));
    for (int32_t i = 0; i < e->outs; i++)
        add_buffer(m, "y", i, "out", e->out[i].dtype, m->lanes > 1);
    text_addf(&m->t, "count: u32");
    if (m->walks)
        text_addf(&m->t, ", size: [u32; %d]", e->rank);
    if (m->steps)
        text_addf(&m->t, ", step: [u32; %d]", m->steps);
    if (e->words)
        text_addf(&m->t, ", w: [u32; %d]", e->words);
    text_addf(&m->t, ") group(%d) {\n", GPU_GROUP);
}

/* ---- launches ---- */

static uint64_t inner_elements(const struct ew *e)
{
    uint64_t n = 1;

    for (int32_t d = 1; d < e->rank; d++)
        n *= (uint64_t)e->size[d];
    return n;
}

/* How many places of the first axis a kernel can see and count at once. */
static uint64_t rows_at_once(const struct maker *m)
{
    const struct ew *e = m->e;
    uint64_t inner = inner_elements(e), most = UINT32_MAX / inner;
    uint64_t seen = e->c->max_binding - GPU_ALIGN; /* a part may begin after where it is bound */

    for (int32_t i = 0; i < e->ins + e->outs; i++) {
        bool in = i < e->ins;
        uint64_t step = in ? (uint64_t)e->in[i].step[0] : inner;
        uint64_t row = step * rlx_dtype_size(in ? e->in[i].dtype : e->out[i - e->ins].dtype);
        if (row && seen / row < most)
            most = seen / row;
    }
    if (e->rank == 1) /* vectors stay whole, and bindings where they can */
        most -= most % (most < 1024 ? (uint64_t)m->lanes : 1024);
    return most ? most : e->rank == 1 ? (uint64_t)m->lanes : 1;
}

/* What `rows` places of the first axis, from `first` on, need of an argument. */
static struct gpu_arg rows_of(struct gpu_arg a, uint64_t row_bytes, uint64_t first, uint64_t rows)
{
    uint64_t offset = first * row_bytes, bytes = rows * row_bytes;

    if (row_bytes == 0 || offset >= a.bytes)
        return a;
    return gpu_part(a, offset, bytes < a.bytes - offset ? bytes : a.bytes - offset);
}

static void launch_rows(struct maker *m, rlx_str source, uint64_t first, uint64_t rows)
{
    struct ew *e = m->e;
    struct gpu_call *c = e->c;
    uint64_t inner = inner_elements(e), count = rows * inner / (uint64_t)m->lanes;

    gpu_generated(c, source, "elementwise");
    for (int32_t i = 0; i < e->ins; i++)
        gpu_bind(c,
                 rows_of(e->in[i].arg, (uint64_t)e->in[i].step[0] * rlx_dtype_size(e->in[i].dtype),
                         first, rows));
    for (int32_t i = 0; i < e->outs; i++)
        gpu_bind(c, rows_of(e->out[i].arg, inner * rlx_dtype_size(e->out[i].dtype), first, rows));
    gpu_u32(c, "count", count);
    for (int32_t d = 0; m->walks && d < e->rank; d++)
        gpu_u32(c, "size", (uint64_t)(d == e->rank - 1 ? e->size[d] / m->lanes : e->size[d]));
    gpu_dims(c, "step", m->step, m->steps);
    for (int32_t i = 0; i < e->words; i++)
        gpu_u32(c, "w", e->word[i]);
    gpu_invocations(c, gpu_ceil(count, (uint64_t)m->rounds), GPU_GROUP);
}

/* Tensors that are larger than what a kernel can see are gone through in parts. */
static void launch(struct maker *m, rlx_str source)
{
    uint64_t all = (uint64_t)m->e->size[0], most = rows_at_once(m);

    for (uint64_t first = 0; first < all; first += most)
        launch_rows(m, source, first, all - first < most ? all - first : most);
}

void ew_end(struct ew *e)
{
    struct maker m = {.e = e}, body = {.e = e};
    uint64_t count = elements(e);

    if (count == 0 || e->c->status != RLX_OK) {
        gpu_give_text(e->c->device, &e->lines);
        return;
    }
    join_axes(e);
    body.lanes = lanes_of(e);
    body.rounds = rounds_of(e, body.lanes);
    for (int32_t i = 0; i < e->ins; i++)
        body.walks |= !is_dense(e, &e->in[i]) && !is_scalar(e, &e->in[i]);
    gpu_take_text(e->c->device, &body.t);
    add_body(&body);
    m = body;
    gpu_take_text(e->c->device, &m.t);
    add_uses(&m);
    add_parameters(&m);
    text_add(&m.t, (rlx_str){body.t.at, body.t.len});
    if (m.t.failed || body.t.failed || e->lines.failed)
        gpu_refuse(e->c, RLX_ERROR_MEMORY, "%s: no memory for a kernel's text",
                   op_info(e->c->op)->name);
    else
        launch(&m, (rlx_str){m.t.at, m.t.len});
    gpu_give_text(e->c->device, &m.t);
    gpu_give_text(e->c->device, &body.t);
    gpu_give_text(e->c->device, &e->lines);
}
