/* grow_flow.c: sub-graphs and what runs them; and the patterns that passes look for, which random
 * nodes would hardly ever make. */
#include <stdio.h>
#include <string.h>

#include "grow.h"

static const struct value_spec any = {KIND_ANY, 0}, unit = {KIND_UNIT, 0},
                               positive = {KIND_POSITIVE, 0};

static struct ir_type type_2(rlx_dtype t, int64_t a, int64_t b)
{
    return (struct ir_type){.dtype = t, .rank = 2, .dim = {a, b}};
}

static struct ir_type type_1(rlx_dtype t, int64_t a)
{
    return (struct ir_type){.dtype = t, .rank = 1, .dim = {a}};
}

static ir_value new_leaf(struct grower *g, struct ir_type t, struct value_spec spec)
{
    return add_leaf(g, &t, &spec);
}

/* ---- patterns ---- */

/* A float of at least two axes. */
static ir_value rows(struct grower *g)
{
    ir_value x = pick_of(g, CLASS_F);

    if (x >= 0 && type_of(g, x)->rank >= 2 && type_is_static(type_of(g, x)))
        return x;
    int64_t a = 1 + dice_below(g->dice, 6), b = 2 * (1 + dice_below(g->dice, 8));
    struct ir_type t = type_2(RLX_DTYPE_f32, a, b);
    return adapt(g, x, &t);
}

static int64_t last_dim(const struct grower *g, ir_value x)
{
    return type_of(g, x)->dim[type_of(g, x)->rank - 1];
}

static ir_value act(struct grower *g, ir_value x)
{
    static const rlx_op ops[] = {RLX_OP_relu, RLX_OP_gelu,    RLX_OP_silu,
                                 RLX_OP_tanh, RLX_OP_sigmoid, RLX_OP_gelu_approx};

    return put_1(g, ops[dice_below(g->dice, sizeof ops / sizeof ops[0])], x);
}

static ir_value linear(struct grower *g, ir_value x, int64_t n)
{
    union ir_attr attr;

    if (x < 0)
        return x;
    int64_t k = last_dim(g, x);
    attr_defaults(RLX_OP_matmul, &attr);
    attr.matmul.transpose_b = dice_percent(g->dice, 50);
    ir_value w = new_leaf(g,
                          attr.matmul.transpose_b ? type_2(type_of(g, x)->dtype, n, k)
                                                  : type_2(type_of(g, x)->dtype, k, n),
                          unit);
    return put(g, RLX_OP_matmul, (ir_value[]){x, w}, 2, &attr);
}

static ir_value biased(struct grower *g, ir_value x, int64_t n)
{
    ir_value y = linear(g, x, n);

    return y < 0 ? y : put_2(g, RLX_OP_add, y, new_leaf(g, type_1(type_of(g, y)->dtype, n), any));
}

static ir_value swiglu(struct grower *g, ir_value x)
{
    int64_t n = 1 + dice_below(g->dice, 6);
    union ir_attr attr;
    ir_value y = linear(g, x, 2 * n), half[2];

    if (y < 0)
        return y;
    for (int i = 0; i < 2; i++) {
        attr_defaults(RLX_OP_narrow, &attr);
        attr.narrow.axis = -1;
        attr.narrow.start = i * n;
        attr.narrow.len = n;
        half[i] = put(g, RLX_OP_narrow, &y, 1, &attr);
    }
    return put_2(g, RLX_OP_mul, put_1(g, RLX_OP_silu, half[0]), half[1]);
}

static ir_value residual_norm(struct grower *g, ir_value x)
{
    struct ir_type t = *type_of(g, x);
    ir_value sum = put_2(g, RLX_OP_add, x, adapt(g, pick_like(g, &t), &t));
    struct ir_type row = type_1(t.dtype, t.dim[t.rank - 1]);

    if (sum < 0)
        return sum;
    bool rms = dice_percent(g->dice, 50);
    ir_value gamma = add_leaf(g, &row, &any), beta = add_leaf(g, &row, &any);
    ir_value y = put(g, rms ? RLX_OP_rms_norm : RLX_OP_layer_norm, (ir_value[]){sum, gamma, beta},
                     rms && dice_percent(g->dice, 50) ? 2 : 3, NULL);
    return dice_percent(g->dice, 50) ? put_2(g, RLX_OP_add, sum, y) : y;
}

/* Queries, keys and values as thirds of one product. */
static ir_value attention(struct grower *g)
{
    int64_t heads = 1 + dice_below(g->dice, 3), size = 2 * (1 + dice_below(g->dice, 4));
    int64_t d = heads * size;
    struct ir_type t = {.dtype = RLX_DTYPE_f32,
                        .rank = 3,
                        .dim = {1 + dice_below(g->dice, 2), 1 + dice_below(g->dice, 5), d}};
    union ir_attr attr;
    ir_value part[3], x = adapt(g, pick_like(g, &t), &t);
    ir_value y = dice_percent(g->dice, 50) ? linear(g, x, 3 * d) : biased(g, x, 3 * d);

    for (int i = 0; i < 3; i++) {
        attr_defaults(RLX_OP_narrow, &attr);
        attr.narrow.axis = 2;
        attr.narrow.start = i * d;
        attr.narrow.len = d;
        part[i] = put(g, RLX_OP_narrow, &y, 1, &attr);
    }
    attr_defaults(RLX_OP_attention, &attr);
    attr.attention.num_heads = heads;
    attr.attention.head_dim = size;
    attr.attention.layout = RLX_ATTENTION_LAYOUT_packed;
    if (dice_percent(g->dice, 50))
        attr.attention.mask_kind = RLX_MASK_KIND_causal;
    y = put(g, RLX_OP_attention, part, 3, &attr);
    return y < 0 ? y : linear(g, y, d);
}

static ir_value convolution(struct grower *g)
{
    int64_t c = 1 + dice_below(g->dice, 4), n = 1 + dice_below(g->dice, 5);
    struct ir_type t = {.dtype = RLX_DTYPE_f32,
                        .rank = 4,
                        .dim = {1 + dice_below(g->dice, 2), c, 3 + dice_below(g->dice, 5),
                                3 + dice_below(g->dice, 5)}};
    struct ir_type w = {.dtype = RLX_DTYPE_f32,
                        .rank = 4,
                        .dim = {n, c, 1 + dice_below(g->dice, 3), 1 + dice_below(g->dice, 3)}};
    struct ir_type b = {.dtype = RLX_DTYPE_f32, .rank = 3, .dim = {n, 1, 1}};
    union ir_attr attr;

    attr_defaults(RLX_OP_conv, &attr);
    attr.conv.padding = RLX_LIST(dice_below(g->dice, 2), dice_below(g->dice, 2));
    attr.conv.stride = RLX_LIST(1 + dice_below(g->dice, 2), 1 + dice_below(g->dice, 2));
    ir_value x = adapt(g, pick_like(g, &t), &t);
    ir_value y = put(g, RLX_OP_conv, (ir_value[]){x, add_leaf(g, &w, &unit)}, 2, &attr);
    if (dice_percent(g->dice, 70))
        y = put_2(g, RLX_OP_add, y, add_leaf(g, &b, &any));
    return act(g, y);
}

static ir_value chain(struct grower *g, ir_value x)
{
    static const rlx_op ops[] = {RLX_OP_add, RLX_OP_sub, RLX_OP_mul, RLX_OP_max, RLX_OP_div};

    for (int64_t i = 2 + dice_below(g->dice, 4); i > 0 && x >= 0; i--) {
        struct ir_type t = *type_of(g, x);
        if (dice_percent(g->dice, 40)) {
            x = act(g, x);
            continue;
        }
        rlx_op op = ops[dice_below(g->dice, sizeof ops / sizeof ops[0])];
        if (dice_percent(g->dice, 40))
            t = type_1(t.dtype, t.rank ? t.dim[t.rank - 1] : 1);
        x = put_2(g, op, x, add_leaf(g, &t, op == RLX_OP_div ? &positive : &any));
    }
    return x;
}

bool grow_motif(struct grower *g, rlx_op op)
{
    ir_value x = rows(g), y;

    (void)op;
    if (x < 0 || g->inner || g->symbol)
        return false;
    switch (dice_below(g->dice, 6)) {
    case 0: y = act(g, biased(g, x, 1 + dice_below(g->dice, 12))); break;
    case 1: y = swiglu(g, x); break;
    case 2: y = residual_norm(g, x); break;
    case 3: y = attention(g); break;
    case 4: y = convolution(g); break;
    default: y = chain(g, x);
    }
    return y >= 0;
}

/* ---- sub-graphs ---- */

enum { MOST_INNER = 5 };

struct inner {
    struct grower g;
    ir_value in[MOST_INNER];
};

static bool open_inner(struct grower *g, struct inner *s, const struct ir_type *type, int count)
{
    struct ir_graph *sub;
    struct diag d;
    char name[16];

    diag_init(&d, "grow");
    rlx_str free_name = ir_free_graph_name(g->g->mod, STR("s"));
    if (ir_graph_add(g->g->mod, free_name, &sub, &d) != RLX_OK)
        return false;
    s->g = (struct grower){.g = sub, .dice = g->dice, .leaves = g->leaves, .inner = true};
    for (int i = 0; i < count; i++) {
        struct ir_new_node n = {.op = RLX_OP_input};
        attr_defaults(n.op, &n.attr);
        snprintf(name, sizeof name, "a%d", i);
        n.attr.leaf.name = (struct ir_blob){name, strlen(name)};
        n.attr.leaf.dtype = type[i].dtype;
        n.attr.leaf.shape = rlx_list_of(type[i].rank, type[i].dim);
        if (ir_add(sub, &n, &s->in[i], &d) != RLX_OK)
            return false;
    }
    return true;
}

/* A value of that type, made of what the sub-graph has; a float stays within -1 and 1. */
static bool give_back(struct inner *s, const struct ir_type *type)
{
    struct diag d;

    diag_init(&d, "grow");
    for (int64_t i = 1 + dice_below(s->g.dice, 3); i > 0; i--)
        for (int k = 0; k < 20 && !grow_free(&s->g, (rlx_op)dice_below(s->g.dice, RLX_OP_count));)
            k++;
    ir_value y = adapt(&s->g, pick_like(&s->g, type), type);
    if (y < 0)
        y = add_leaf(&s->g, type, &any);
    if (dtype_is(type->dtype, CLASS_F))
        y = put_1(&s->g, RLX_OP_tanh, y);
    return y >= 0 && ir_add_output(s->g.g, y, &d) == RLX_OK;
}

/* All floats of a sub-graph have one type: errors of a narrow one would not be expected in a wide
 * result. */
static rlx_dtype draw_float(struct grower *g)
{
    static const rlx_dtype rare[] = {RLX_DTYPE_f16, RLX_DTYPE_bf16, RLX_DTYPE_f64};

    return dice_percent(g->dice, 80) ? RLX_DTYPE_f32 : rare[dice_below(g->dice, 3)];
}

/* Operands of a sub-graph: small floats. */
static int operands(struct grower *g, rlx_dtype dtype, ir_value *in, struct ir_type *type, int most)
{
    int count = 1 + (int)dice_below(g->dice, most);

    for (int i = 0; i < count; i++) {
        in[i] = pick_of(g, CLASS_F);
        struct ir_type t = in[i] >= 0 ? *type_of(g, in[i]) : (struct ir_type){0};
        t.dtype = dtype;
        in[i] = adapt(g, in[i], &t);
        int64_t elements;
        if (in[i] < 0 || !type_count(type_of(g, in[i]), &elements) || elements > 300)
            return 0;
        type[i] = *type_of(g, in[i]);
    }
    return count;
}

static bool flow_if(struct grower *g)
{
    rlx_dtype dtype = draw_float(g);
    ir_value in[MOST_INNER + 1];
    struct ir_type type[MOST_INNER], out, truth = {.dtype = RLX_DTYPE_bool};
    int count = operands(g, dtype, in + 1, type, 3);
    union ir_attr attr;
    struct inner s;

    if (count == 0)
        return false;
    in[0] = dice_percent(g->dice, 50) ? add_leaf(g, &truth, &any)
                                      : adapt(g, pick_of(g, CLASS_B), &truth);
    out = random_type(g, dtype);
    attr_defaults(RLX_OP_if, &attr);
    for (int i = 0; i < 2; i++) {
        if (!open_inner(g, &s, type, count) || !give_back(&s, &out))
            return false;
        *(i ? &attr.if_.else_graph : &attr.if_.then_graph) = s.g.g->id;
    }
    return put(g, RLX_OP_if, in, count + 1, &attr) >= 0;
}

/* i < n */
static bool counts_to(struct inner *s, int64_t n)
{
    struct ir_type number = {.dtype = RLX_DTYPE_i32};
    union ir_attr attr;
    struct diag d;
    int32_t value = (int32_t)n;

    diag_init(&d, "grow");
    attr_defaults(RLX_OP_const, &attr);
    attr.const_.dtype = number.dtype;
    attr.const_.shape = RLX_EMPTY;
    attr.const_.data = (struct ir_blob){&value, sizeof value};
    ir_value limit = put(&s->g, RLX_OP_const, NULL, 0, &attr);
    ir_value more = put_2(&s->g, RLX_OP_lt, s->in[0], limit);
    return more >= 0 && ir_add_output(s->g.g, more, &d) == RLX_OK;
}

static ir_value number(struct grower *g, int32_t value)
{
    union ir_attr attr;

    attr_defaults(RLX_OP_const, &attr);
    attr.const_.dtype = RLX_DTYPE_i32;
    attr.const_.shape = RLX_EMPTY;
    attr.const_.data = (struct ir_blob){&value, sizeof value};
    return put(g, RLX_OP_const, NULL, 0, &attr);
}

static bool flow_while(struct grower *g)
{
    ir_value in[MOST_INNER + 1];
    struct ir_type type[MOST_INNER + 1] = {{.dtype = RLX_DTYPE_i32}};
    int count = operands(g, draw_float(g), in + 1, type + 1, 2) + 1;
    union ir_attr attr;
    struct inner s;
    struct diag d;

    diag_init(&d, "grow");
    if (count == 1 || !open_inner(g, &s, type, count) || !counts_to(&s, dice_below(g->dice, 5)))
        return false;
    attr_defaults(RLX_OP_while, &attr);
    attr.while_.cond_graph = s.g.g->id;
    if (!open_inner(g, &s, type, count))
        return false;
    ir_value next = put_2(&s.g, RLX_OP_add, s.in[0], number(&s.g, 1));
    if (next < 0 || ir_add_output(s.g.g, next, &d) != RLX_OK)
        return false;
    for (int i = 1; i < count; i++)
        if (!give_back(&s, &type[i]))
            return false;
    attr.while_.body_graph = s.g.g->id;
    if (dice_percent(g->dice, 70))
        attr.while_.max_iterations = 1 + dice_below(g->dice, 6);
    attr.while_.result = dice_below(g->dice, count);
    in[0] = number(g, 0);
    return put(g, RLX_OP_while, in, count, &attr) >= 0;
}

static bool flow_scan(struct grower *g)
{
    rlx_dtype dtype = draw_float(g);
    ir_value in[MOST_INNER + 1];
    struct ir_type type[MOST_INNER + 1];
    int count = operands(g, dtype, in, type, 2), xs = (int)dice_below(g->dice, 3);
    int64_t length = dice_percent(g->dice, 5) ? 0 : 1 + dice_below(g->dice, 5);
    union ir_attr attr;
    struct inner s;

    if (count == 0)
        return false;
    attr_defaults(RLX_OP_scan, &attr);
    attr.scan.length = length;
    attr.scan.num_bcast = count - 1;
    attr.scan.num_xs = xs;
    attr.scan.save_trajectory = dice_percent(g->dice, 50);
    for (int i = 0; i < xs; i++) {
        type[count] = random_type(g, dtype);
        if (type[count].rank > 2)
            type[count].rank = 2;
        struct ir_type all = type[count];
        memmove(all.dim + 1, all.dim, (size_t)all.rank * sizeof *all.dim);
        all.dim[0] = length;
        all.rank++;
        ir_value x = adapt(g, pick_like(g, &all), &all);
        in[count++] = x >= 0 ? x : add_leaf(g, &all, &any);
    }
    if (!open_inner(g, &s, type, count) || !give_back(&s, &type[0]))
        return false;
    attr.scan.body = s.g.g->id;
    return put(g, RLX_OP_scan, in, count, &attr) >= 0;
}

/* A function of the graph's own, called. */
static bool flow_call(struct grower *g)
{
    rlx_dtype dtype = draw_float(g);
    ir_value in[MOST_INNER];
    struct ir_type type[MOST_INNER], out = random_type(g, dtype);
    int count = operands(g, dtype, in, type, 3);
    union ir_attr attr;
    struct inner s;

    if (count == 0 || !open_inner(g, &s, type, count) || !give_back(&s, &out))
        return false;
    attr_defaults(RLX_OP_custom_fn, &attr);
    attr.custom_fn.fwd_graph = s.g.g->id;
    return put(g, RLX_OP_custom_fn, in, count, &attr) >= 0;
}

void module_drop_graphs(struct ir_module *m, size_t keep)
{
    while (m->graph.len > keep) {
        struct ir_graph *g = m->graph.at[--m->graph.len];
        vec_free(m->mem, &g->node);
        vec_free(m->mem, &g->output);
        vec_free(m->mem, &g->written);
        map_free(&g->leaves);
    }
}

bool grow_flow(struct grower *g, rlx_op op)
{
    size_t graphs = g->g->mod->graph.len;
    bool done;

    (void)op;
    if (g->inner || g->symbol)
        return false;
    switch (dice_below(g->dice, 4)) {
    case 0: done = flow_if(g); break;
    case 1: done = flow_while(g); break;
    case 2: done = flow_scan(g); break;
    default: done = flow_call(g);
    }
    if (!done)
        module_drop_graphs(g->g->mod, graphs); /* they were opened for what did not work out */
    return done;
}
