/* grow.c: a random graph, node by node.
 *
 * Every node goes in through ir_add, which refuses what is not legal, and is evaluated at once:
 * where values should stay tame, a node whose values are not, or whose errors have grown too large
 * to tell anything, is taken out again. So most graphs end with numbers that can be compared. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "grow.h"

/* ---- nodes ---- */

static bool is_half(rlx_dtype t)
{
    return t == RLX_DTYPE_f16 || t == RLX_DTYPE_bf16;
}

static bool is_tame(struct grower *g, ir_value v)
{
    const struct eval_tensor *t = &g->spread->center[v];
    double limit = is_half(t->type.dtype) ? 0.2 : 0.01;
    double most = t->type.dtype == RLX_DTYPE_f16 ? 1e3 : 1e5;

    if (t->count > 5000)
        return false;
    if (!g->tame)
        return true;
    for (int64_t k = 0; k < t->count; k++)
        if (dtype_is(t->type.dtype, CLASS_F | CLASS_C) &&
            !(fabs(t->at[k].f) <= most && fabs(t->at[k].im) <= most))
            return false;
    return spread_width(g->spread, v) <= limit;
}

/* The sizes of a node's attributes, where the symbol has one. */
static void give_sizes(const struct grower *g, rlx_op op, union ir_attr *attr)
{
    struct dim_table *dims = g->g->mod->dims;
    size_t count, symbols = dim_symbol_count(dims);
    const struct attr_info *a = family_attrs(op_info(op)->family, &count);
    int64_t size[64];

    for (size_t i = 0; i < 64; i++)
        size[i] = g->size;
    for (size_t i = 0; i < count; i++) {
        void *at = (char *)attr + a[i].offset;
        if (a[i].kind == ATTR_DIM)
            *(ir_dim *)at = dim_substitute(dims, *(ir_dim *)at, size, symbols);
        for (int32_t k = 0; a[i].kind == ATTR_DIMS && k < ((rlx_list *)at)->count; k++)
            ((rlx_list *)at)->at[k] = dim_substitute(dims, ((rlx_list *)at)->at[k], size, symbols);
    }
}

static bool add_to_twin(struct grower *g, struct ir_new_node n, ir_value v)
{
    struct diag d;
    ir_value same;

    diag_init(&d, "grow");
    give_sizes(g, n.op, &n.attr);
    return ir_add(g->twin, &n, &same, &d) == RLX_OK && same == v;
}

/* Small enough, and as tame as it should be. */
static bool is_fit(struct grower *g, rlx_op op, size_t first, ir_value v)
{
    const struct ir_type *t = ir_type_of(g->twin ? g->twin : g->g, v);
    int64_t elements = 1;

    if (type_is_static(t) && (!type_count(t, &elements) || elements > 5000))
        return false;
    if (!g->spread)
        return true;
    if (spread_go_on(g->spread) != RLX_OK)
        return false;
    for (ir_value k = (ir_value)first; k <= v && !op_is(op, OP_LEAF); k++)
        if (!is_tame(g, k))
            return false;
    return true;
}

static void take_back(struct grower *g, size_t nodes, size_t checks)
{
    g->g->node.len = nodes;
    g->g->mod->check.len = checks;
    if (g->twin && g->twin->node.len > nodes)
        g->twin->node.len = nodes;
    if (g->spread) {
        spread_back(g->spread, nodes);
        diag_init(&g->spread->diag, "random");
    }
}

ir_value put(struct grower *g, rlx_op op, const ir_value *in, int32_t count,
             const union ir_attr *attr)
{
    struct ir_new_node n = {.op = op, .in = in, .in_count = count};
    size_t nodes = g->g->node.len, checks = g->g->mod->check.len;
    struct diag d;
    ir_value v;

    for (int32_t i = 0; i < count; i++)
        if (in[i] < 0)
            return RLX_NO_VALUE;
    diag_init(&d, "grow");
    attr_defaults(op, &n.attr);
    if (attr)
        n.attr = *attr;
    if (ir_add(g->g, &n, &v, &d) == RLX_OK && (!g->twin || add_to_twin(g, n, v)) &&
        is_fit(g, op, nodes, v))
        return v;
    take_back(g, nodes, checks);
    return RLX_NO_VALUE;
}

ir_value put_1(struct grower *g, rlx_op op, ir_value x)
{
    return put(g, op, &x, 1, NULL);
}

ir_value put_2(struct grower *g, rlx_op op, ir_value x, ir_value y)
{
    return put(g, op, (ir_value[]){x, y}, 2, NULL);
}

/* ---- leaves ---- */

static ir_value add_const(struct grower *g, const struct ir_type *type,
                          const struct value_spec *spec)
{
    union ir_attr attr;
    struct eval_tensor t;
    struct arena a;
    struct diag d;
    uint64_t bytes;
    ir_value v = RLX_NO_VALUE;

    diag_init(&d, "grow");
    arena_init(&a, mem_default());
    attr_defaults(RLX_OP_const, &attr);
    attr.const_.dtype = type->dtype;
    attr.const_.shape = rlx_list_of(type->rank, type->dim);
    if (type_bytes(type, &bytes) && eval_tensor_new(&a, type, &t, &d) == RLX_OK) {
        void *data = arena_alloc(&a, (size_t)bytes, 64);
        selftest_fill(&t, spec, VALUES_PLAIN, (uint64_t)dice_next(g->dice));
        eval_store(&t, data);
        attr.const_.data = (struct ir_blob){data, (size_t)bytes};
        v = put(g, RLX_OP_const, NULL, 0, &attr);
    }
    arena_free(&a);
    return v;
}

ir_value add_leaf(struct grower *g, const struct ir_type *type, const struct value_spec *spec)
{
    int64_t roll = dice_below(g->dice, 10);
    rlx_op op = roll < 6 ? RLX_OP_input : RLX_OP_param;
    union ir_attr attr;
    char name[48];

    if (g->inner || (roll == 9 && type_is_static(type)))
        return add_const(g, type, spec);
    leaf_name(spec, (*g->leaves)++, name);
    attr_defaults(op, &attr);
    attr.leaf.name = (struct ir_blob){name, strlen(name)};
    attr.leaf.dtype = type->dtype;
    attr.leaf.shape = rlx_list_of(type->rank, type->dim);
    if (!type_is_static(type))
        op = RLX_OP_input; /* params have sizes */
    return put(g, op, NULL, 0, &attr);
}

int64_t random_size(struct grower *g)
{
    static const int64_t sizes[] = {1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 33};

    if (dice_percent(g->dice, 1))
        return 0;
    return sizes[dice_below(g->dice, sizeof sizes / sizeof sizes[0])];
}

static rlx_dtype random_dtype(struct grower *g)
{
    static const rlx_dtype rare[] = {RLX_DTYPE_f16, RLX_DTYPE_bf16, RLX_DTYPE_f64, RLX_DTYPE_i32,
                                     RLX_DTYPE_i64, RLX_DTYPE_i8,   RLX_DTYPE_u8,  RLX_DTYPE_bool,
                                     RLX_DTYPE_i16, RLX_DTYPE_u16,  RLX_DTYPE_u32, RLX_DTYPE_u64,
                                     RLX_DTYPE_c64};

    if (dice_percent(g->dice, 65))
        return RLX_DTYPE_f32;
    return rare[dice_below(g->dice, sizeof rare / sizeof rare[0])];
}

struct ir_type random_type(struct grower *g, rlx_dtype dtype)
{
    struct ir_type t = {.dtype = dtype, .rank = (int32_t)dice_below(g->dice, 5)};
    int64_t count = 1;

    for (int32_t i = 0; i < t.rank; i++) {
        do
            t.dim[i] = random_size(g);
        while (count * t.dim[i] > 1000);
        count *= t.dim[i];
    }
    if (g->symbol && t.rank && dice_percent(g->dice, 80))
        t.dim[dice_below(g->dice, t.rank)] = g->symbol;
    return t;
}

/* ---- values ---- */

ir_value pick(struct grower *g)
{
    int64_t n = (int64_t)g->g->node.len;

    if (n == 0 || (!g->inner && dice_percent(g->dice, 5))) {
        struct ir_type t = random_type(g, random_dtype(g));
        return add_leaf(g, &t, &(struct value_spec){KIND_ANY, 0});
    }
    ir_value v = 0;
    for (int i = 0; i < 4; i++) { /* late ones more often, and what was computed */
        int64_t a = dice_below(g->dice, n), b = dice_below(g->dice, n);
        v = (ir_value)(a > b ? a : b);
        if (!op_is(ir_node(g->g, v)->op, OP_LEAF))
            break;
    }
    return v;
}

ir_value pick_of(struct grower *g, unsigned classes)
{
    for (int i = 0; i < 6; i++) {
        ir_value v = pick(g);
        if (v >= 0 && dtype_is(type_of(g, v)->dtype, classes))
            return v;
    }
    rlx_dtype dtype = classes & CLASS_F   ? RLX_DTYPE_f32
                      : classes & CLASS_I ? RLX_DTYPE_i32
                      : classes & CLASS_U ? RLX_DTYPE_u8
                      : classes & CLASS_B ? RLX_DTYPE_bool
                                          : RLX_DTYPE_c64;
    struct ir_type t = random_type(g, dtype);
    return add_leaf(g, &t, &(struct value_spec){KIND_ANY, 0});
}

ir_value pick_like(struct grower *g, const struct ir_type *type)
{
    ir_value found = pick_of(g, (unsigned)dtype_class(type->dtype));
    int64_t want, have;

    for (int i = 0; i < 12 && found >= 0 && !type_same(type_of(g, found), type); i++) {
        ir_value v = pick(g);
        if (v < 0 || type_of(g, v)->dtype != type->dtype)
            continue;
        if (type_same(type_of(g, v), type) ||
            (type_count(type, &want) && type_count(type_of(g, v), &have) && have == want) ||
            type_of(g, found)->dtype != type->dtype)
            found = v;
    }
    return found;
}

static ir_value to_shape(struct grower *g, rlx_op op, ir_value x, int32_t rank, const ir_dim *dim)
{
    union ir_attr attr;

    if (x >= 0 && type_of(g, x)->rank == rank &&
        memcmp(type_of(g, x)->dim, dim, (size_t)rank * sizeof *dim) == 0)
        return x;
    attr_defaults(op, &attr);
    if (op == RLX_OP_reshape)
        attr.reshape.shape = rlx_list_of(rank, dim);
    else
        attr.expand.shape = rlx_list_of(rank, dim);
    return put(g, op, &x, 1, &attr);
}

static ir_value cut_or_repeat(struct grower *g, ir_value x, int64_t have, int64_t want)
{
    union ir_attr attr;

    x = to_shape(g, RLX_OP_reshape, x, 1, (ir_dim[]){have});
    if (have < want) {
        attr_defaults(RLX_OP_tile, &attr);
        attr.tile.reps = RLX_LIST((want + have - 1) / have);
        x = put(g, RLX_OP_tile, &x, 1, &attr);
    }
    if (x < 0 || type_of(g, x)->dim[0] == want)
        return x;
    attr_defaults(RLX_OP_narrow, &attr);
    attr.narrow.len = want;
    attr.narrow.start = dice_below(g->dice, type_of(g, x)->dim[0] - want + 1);
    return put(g, RLX_OP_narrow, &x, 1, &attr);
}

ir_value adapt(struct grower *g, ir_value x, const struct ir_type *type)
{
    struct ir_type wanted = *type; /* it may be a node's own, and these move */
    union ir_attr attr;
    int64_t have, want;

    if (x >= 0 && type_of(g, x)->dtype != wanted.dtype) {
        attr_defaults(RLX_OP_cast, &attr);
        attr.cast.to = wanted.dtype;
        x = put(g, RLX_OP_cast, &x, 1, &attr);
    }
    if (x < 0 || type_same(type_of(g, x), &wanted))
        return x;
    if (!type_count(type_of(g, x), &have) || !type_count(&wanted, &want))
        return to_shape(g, RLX_OP_expand, x, wanted.rank, wanted.dim);
    if (have != want) {
        ir_value wide = to_shape(g, RLX_OP_expand, x, wanted.rank, wanted.dim);
        if (wide >= 0 || have == 0 || want == 0)
            return wide;
        x = cut_or_repeat(g, x, have, want);
    }
    return to_shape(g, RLX_OP_reshape, x, wanted.rank, wanted.dim);
}

/* ---- the whole ---- */

static const struct {
    rlx_op op;
    const char *why;
} without[] = {
    {RLX_OP_state, "runs of one graph are compared, and a state outlives them"},
    {RLX_OP_cache_append, "it writes a state"},
    {RLX_OP_custom, "it needs an op that the program registered"},
    {RLX_OP_qr, "its factors are not unique, so nothing can be said of what reads them"},
    {RLX_OP_eigh, "its vectors are not unique"},
    {RLX_OP_eigh_batch, "its vectors are not unique"},
    {RLX_OP_gaussian_splat_rasterize, "it reads what gaussian_splat_prepare packs"},
    {RLX_OP_scan_backward, "it needs a sub-graph's gradient: rule_control_test.c"},
    {RLX_OP_scan_backward_xs, "it needs a sub-graph's gradient: rule_control_test.c"},
};

const char *left_out(rlx_op op)
{
    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++)
        if (without[i].op == op)
            return without[i].why;
    return NULL;
}

static rlx_op random_op(struct grower *g)
{
    return (rlx_op)dice_below(g->dice, RLX_OP_count);
}

/* One try; what it leaves behind without a result is taken out, unless a leaf is part of it. */
static bool grow_once(struct grower *g, bool (*how)(struct grower *g, rlx_op op), rlx_op op)
{
    size_t nodes = g->g->node.len, checks = g->g->mod->check.len;
    int64_t leaves = *g->leaves;

    if (how(g, op))
        return true;
    if (*g->leaves == leaves)
        take_back(g, nodes, checks);
    return false;
}

static void grow_step(struct grower *g)
{
    int64_t roll = dice_below(g->dice, 100);
    bool (*how)(struct grower *, rlx_op) = roll < 6    ? grow_flow
                                           : roll < 20 ? grow_motif
                                           : roll < 24 ? grow_again
                                           : roll < 60 ? grow_free
                                                       : grow_row;

    for (int i = 0; i < 20 && !grow_once(g, how, random_op(g));)
        i++;
}

/* How many nodes each value is made of, roughly: the longest way to it, and a bit for each operand.
 */
static int depth_of(const struct ir_graph *g, ir_value v, int *depth)
{
    const struct ir_node *n = ir_node(g, v);
    int most = 0;

    for (int32_t i = 0; i < n->in_count; i++)
        most = depth[n->in[i]] > most ? depth[n->in[i]] : most;
    return op_is(n->op, OP_LEAF) ? 0 : most + 1 + (n->in_count > 1);
}

/* The deepest of what nothing reads, and now and then something that is read, too. */
static rlx_status choose_outputs(struct grower *g, struct diag *d)
{
    size_t count = g->g->node.len;
    int *depth = arena_array(&g->g->mod->arena, int, count + 1);

    if (!depth)
        return diag_no_memory(d, count * sizeof *depth);
    for (size_t v = 0; v < count; v++)
        depth[v] = depth_of(g->g, (ir_value)v, depth);
    if (dice_percent(g->dice, 30))
        TRY(ir_add_output(g->g, (ir_value)dice_below(g->dice, (int64_t)count), d));
    IR_EACH(n, g->g)
        for (int32_t i = 0; i < n->in_count; i++)
            depth[n->in[i]] = -1; /* it is part of a deeper one */
    for (int64_t left = 2 + dice_below(g->dice, 4); left > 0; left--) {
        size_t best = 0;
        for (size_t v = 0; v < count; v++)
            best = depth[v] > depth[best] ? v : best;
        if (depth[best] < 0)
            break;
        TRY(ir_add_output(g->g, (ir_value)best, d));
        depth[best] = -1;
    }
    return g->g->output.len ? RLX_OK : ir_add_output(g->g, (ir_value)count - 1, d);
}

/* Each op has its turn, so that rare ones are not left to chance. */
static void grow_in_turn(struct grower *g, uint64_t seed)
{
    const rlx_op op = (rlx_op)(1 + seed % (RLX_OP_count - 1));

    for (int i = 0; i < 8 && !grow_once(g, grow_row, op); i++)
        continue;
}

static void grow_nodes(struct grower *g)
{
    size_t nodes = 10 + (size_t)dice_below(g->dice, 90); /* much of it nothing will read */

    for (int i = 0; i < 400 && g->g->node.len < nodes; i++)
        grow_step(g);
}

/* A size that is not known, but is bounded, or is not. */
static void name_symbol(struct grower *g)
{
    struct dim_table *dims = g->g->mod->dims;
    size_t number;

    g->symbol = dim_symbol(dims, STR("n"));
    g->size = 2 + dice_below(g->dice, 4);
    if (dim_find_symbol(dims, STR("n"), &number) && dice_percent(g->dice, 80))
        dim_set_bound(dims, number, g->size + dice_below(g->dice, 5));
}

rlx_status grow(uint64_t seed, struct grown *out, struct diag *d)
{
    struct dice dice = {seed * UINT64_C(0x2545f4914f6cdd1d) + 1};
    struct ir_module *twin = NULL;
    int64_t leaves = 0;
    struct spread spread;
    struct grower g = {.dice = &dice, .spread = &spread, .leaves = &leaves};

    *out = (struct grown){.values = seed};
    out->profile = dice_percent(&dice, 85) ? VALUES_PLAIN : VALUES_SPECIAL;
    g.tame = out->profile == VALUES_PLAIN;
    TRY(ir_module_create(mem_default(), &out->mod, d));
    TRY(ir_graph_add(out->mod, STR(""), &g.g, d));
    if (dice_percent(&dice, 25)) {
        TRY(ir_module_create(mem_default(), &twin, d));
        TRY(ir_graph_add(twin, STR(""), &g.twin, d));
        name_symbol(&g);
    }
    spread_init(&spread, g.twin ? g.twin : g.g, out->profile, out->values, 2, 1);
    grow_in_turn(&g, seed);
    grow_nodes(&g);
    rlx_status s = choose_outputs(&g, d);
    spread_free(&spread);
    ir_module_destroy(twin);
    return s;
}
