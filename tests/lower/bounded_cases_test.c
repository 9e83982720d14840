/* bounded_cases_test.c: every case of the self-test with its sizes replaced by a bounded symbol:
 * each dim of its operands alone, and all dims that are equal. At every size from 0 to the bound an
 * op runs on every device, or is refused by name on all of them. */
#include "gpu/no_driver.h"

enum { MOST_DIMS = 256, MOST_OPERANDS = 96, TEXT = 8192, DENSE = 9, ROOM = 1 << 22, SMALL = 12 };

/* ---- the cases as text ---- */

struct row {
    const char *ops, *dtypes, *operands, *attrs;
};
static const struct row rows[] = {
#define CASE(ops, dtypes, operands, attrs, profiles) {ops, dtypes, operands, attrs},
#define GRAPH_CASE(op, profiles, text) {op, NULL, text, NULL},
#include "inspect/selftest/selftest_cases.def"
};

/* The word at `at`, up to a blank. */
static rlx_str word_at(const char *at)
{
    return (rlx_str){at, strcspn(at, " ")};
}

/* What follows the word: the next one, or the end. */
static const char *after(rlx_str word)
{
    const char *at = word.ptr + word.len;

    return at + strspn(at, " ");
}

/* "state:T[2,3]:index=2" as the leaf %xI. */
static size_t write_leaf(char *out, size_t room, rlx_str word, rlx_str dtype, int i)
{
    bool state = word.len > 6 && memcmp(word.ptr, "state:", 6) == 0;
    const char *at = word.ptr + (state ? 6 : 0);
    size_t len = strcspn(at, ": "), type = strcspn(at, "[");

    if (*at == 'T' && type == 1)
        return (size_t)snprintf(out, room, "%s%s %%x%d: %.*s%.*s", i ? ", " : "",
                                state ? "state" : "input", i, (int)dtype.len, dtype.ptr,
                                (int)(len - type), at + type);
    return (size_t)snprintf(out, room, "%s%s %%x%d: %.*s", i ? ", " : "", state ? "state" : "input",
                            i, (int)len, at);
}

/* A graph of one node, as the self-test makes it, without the file's first line. */
static void write_case(char *out, const struct row *r, rlx_str op, rlx_str dtype)
{
    size_t n = (size_t)snprintf(out, TEXT, "graph (");
    int count = 0;

    for (const char *at = r->operands; *at; at = after(word_at(at)))
        n += write_leaf(out + n, TEXT - n, word_at(at), dtype, count++);
    n += (size_t)snprintf(out + n, TEXT - n, ") {\n    %%y = %.*s", (int)op.len, op.ptr);
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(out + n, TEXT - n, "%s %%x%d", i ? "," : "", i);
    snprintf(out + n, TEXT - n, " %s\n    return %%y\n}\n", r->attrs);
}

/* ---- a symbol in place of sizes ---- */

struct dims {
    size_t count;
    const char *at[MOST_DIMS]; /* where its digits begin */
    long long size[MOST_DIMS];
};

/* The sizes in the types of leaves: "%x: f32[2,3]". */
static void find_dims(const char *text, struct dims *out)
{
    out->count = 0;
    for (const char *at = text; (at = strstr(at, ": ")) != NULL;) {
        at += 2;
        at += strcspn(at, "[,)");
        while ((*at == '[' || *at == ',') && out->count < MOST_DIMS) {
            char *end;
            long long size = strtoll(at + 1, &end, 10);
            if (end == at + 1)
                break;
            out->at[out->count] = at + 1;
            out->size[out->count++] = size;
            at = end;
        }
    }
}

/* With t for dim `which`, or for all that are as large. */
static void put_symbol(char *out, const char *text, const struct dims *d, size_t which, bool all)
{
    size_t n = (size_t)snprintf(out, TEXT, "dim t <= %lld\n", d->size[which]);

    for (size_t i = 0; i < d->count; i++) {
        if (i != which && !(all && d->size[i] == d->size[which]))
            continue;
        n += (size_t)snprintf(out + n, TEXT - n, "%.*st", (int)(d->at[i] - text), text);
        text = d->at[i] + strspn(d->at[i], "0123456789");
    }
    snprintf(out + n, TEXT - n, "%s", text);
}

/* ---- running one ---- */

struct values {
    float *x, *zeros, *cpu, *gpu; /* ROOM of each */
};

struct devices {
    struct place cpu, gpu;
    struct values v;
    bool computes;     /* the GPU does, so that results are compared */
    size_t tried, ran; /* graphs, and runs that succeeded */
};

static size_t elements(const rlx_tensor *t)
{
    size_t n = 1;

    for (int32_t i = 0; i < t->rank; i++)
        n *= (size_t)t->dim[i];
    return n;
}

/* Zeros where they may be indices. */
static void give_values(rlx_tensor *t, float *x, float *zeros)
{
    bool whole = t->dtype != RLX_DTYPE_f32 && t->dtype != RLX_DTYPE_f16 &&
                 t->dtype != RLX_DTYPE_bf16 && t->dtype != RLX_DTYPE_f64;

    t->dtype = RLX_DTYPE_f32;
    t->data = whole ? zeros : x;
    t->bytes = elements(t) * sizeof(float);
}

/* One run at these sizes; its output in floats. */
static rlx_status run_sizes(struct place *p, const rlx_dim_size *dims, size_t dim_count, float *x,
                            float *zeros, rlx_tensor *out)
{
    rlx_binding in[MOST_OPERANDS] = {0}, y = {"out0", *out};
    char name[MOST_OPERANDS][32];
    size_t count = rlx_model_io_count(p->model, RLX_IO_INPUT);
    rlx_status s = RLX_OK;
    rlx_io_info info = {RLX_SIZED(rlx_io_info)};

    memset(&p->err, 0, sizeof p->err);
    for (size_t i = 0; i < count && s == RLX_OK; i++) {
        rlx_model_io(p->model, RLX_IO_INPUT, i, &info, NULL);
        snprintf(name[i], sizeof name[i], "%.*s", (int)info.name.len, info.name.ptr);
        in[i].name = name[i];
        s = rlx_model_input_shape(p->model, i, dims, dim_count, &in[i].tensor, &p->err);
        give_values(&in[i].tensor, x, zeros);
    }
    rlx_model_io(p->model, RLX_IO_OUTPUT, 0, &info, NULL);
    y.tensor.dtype = info.dtype == RLX_DTYPE_c64 ? RLX_DTYPE_c64 : RLX_DTYPE_f32;
    if (s == RLX_OK)
        s = rlx_session_run(
            p->session, &(rlx_run_desc){RLX_SIZED(rlx_run_desc), in, count, &y, 1, dims, dim_count},
            &p->err);
    *out = y.tensor;
    return s;
}

static rlx_status run_at(struct place *p, int64_t size, const struct values *v, rlx_tensor *out)
{
    return run_sizes(p, &(rlx_dim_size){"t", size}, 1, v->x, v->zeros, out);
}

/* A run that did not succeed was refused for its sizes, and the op is named. */
static bool is_refusal(const rlx_error *e)
{
    bool sizes = e->status == RLX_ERROR_SHAPE || e->status == RLX_ERROR_EXTENT ||
                 e->status == RLX_ERROR_ATTRIBUTE;

    return sizes && e->op[0] && strstr(e->message, e->op);
}

/* Indices out of range are found by a device that computes; and not every device has f64. */
static bool may_differ(const struct devices *d)
{
    const rlx_error *cpu = &d->cpu.err, *gpu = &d->gpu.err;

    return (!d->computes && cpu->status == RLX_ERROR_INDEX) ||
           (gpu->status == RLX_ERROR_UNSUPPORTED && strstr(gpu->message, "64-bit"));
}

static void compare_at(struct test *t, struct devices *d, int64_t size)
{
    rlx_tensor a = {.data = d->v.cpu, .bytes = ROOM * sizeof(float)};
    rlx_tensor b = {.data = d->v.gpu, .bytes = ROOM * sizeof(float)};
    rlx_status cpu = run_at(&d->cpu, size, &d->v, &a), gpu = run_at(&d->gpu, size, &d->v, &b);
    if (may_differ(d))
        return;
    if (cpu != gpu || (cpu != RLX_OK && cpu != RLX_ERROR_INDEX && !is_refusal(&d->cpu.err)))
        fail(t, "size %lld: cpu %s (%s), gpu %s (%s)", (long long)size, rlx_status_name(cpu),
             d->cpu.err.message, rlx_status_name(gpu), d->gpu.err.message);
    if (cpu != RLX_OK)
        return;
    d->ran++;
    size_t floats = elements(&a) * (a.dtype == RLX_DTYPE_c64 ? 2 : 1);
    if (d->computes && expect_eq(t, elements(&a), elements(&b)))
        expect_close(t, d->v.gpu, d->v.cpu, floats, 2e-3, 1e-3);
}

static void try_graph(struct test *t, struct devices *d, const char *text, int64_t bound)
{
    const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc),
                                   .debug = DEBUG(.no_optimize = true, .check_plan = true)};
    int64_t size = 0;

    test_note(t, "%s", text);
    if (place_build(&d->cpu, text, &desc) != RLX_OK)
        return; /* it cannot vary */
    d->tried++;
    if (!expect_ok(t, place_build(&d->gpu, text, &desc)))
        return (void)fail(t, "%s", d->gpu.err.message);
    while (size <= bound) {
        compare_at(t, d, size);
        size = size < DENSE || size >= bound - 1 ? size + 1 : bound - 1;
    }
}

static void try_case(struct test *t, struct devices *d, const char *text)
{
    static char variant[TEXT];
    struct dims dims;

    find_dims(text, &dims);
    for (size_t i = 0; i < dims.count; i++) {
        bool first = true, shared = false;
        for (size_t k = 0; k < dims.count; k++) {
            first &= k >= i || dims.size[k] != dims.size[i];
            shared |= k != i && dims.size[k] == dims.size[i];
        }
        if (dims.size[i] == 0)
            continue;
        put_symbol(variant, text, &dims, i, false);
        try_graph(t, d, variant, dims.size[i]);
        if (!first || !shared)
            continue;
        put_symbol(variant, text, &dims, i, true);
        try_graph(t, d, variant, dims.size[i]);
    }
}

/* Kernels take a driver long to make: where there is one, an op has one case, a small one. Factors
 * that are not unique are left to the self-test. */
static bool takes(const struct devices *d, rlx_str op, const char *text)
{
    static char seen[1 << 14]; /* " add sub mul" */
    char name[80];
    struct dims dims;

    if (!d->computes)
        return true;
    if (!d->tried)
        snprintf(seen, sizeof seen, " svd qr eigh ");
    snprintf(name, sizeof name, " %.*s ", (int)op.len, op.ptr);
    find_dims(text, &dims);
    for (size_t i = 0; i < dims.count; i++)
        if (dims.size[i] > SMALL)
            return false;
    if (strstr(seen, name))
        return false;
    strncat(seen, name, sizeof seen - strlen(seen) - 1);
    return true;
}

static void try_rows(struct test *t, struct devices *d)
{
    static char text[TEXT];

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (const char *op = rows[i].ops; *op; op = after(word_at(op))) {
            if (rows[i].dtypes)
                write_case(text, &rows[i], word_at(op), word_at(rows[i].dtypes));
            else
                snprintf(text, TEXT, "%s", rows[i].operands + strlen("rlx 1\n"));
            if (takes(d, word_at(op), text))
                try_case(t, d, text);
        }
    test_note(t, "%s", "");
    expect(t, d->tried > 500 && d->ran > 2 * d->tried);
}

static void with_values(struct test *t, struct devices *d)
{
    float *room = calloc(4 * ROOM, sizeof *room);

    if (!expect(t, room != NULL))
        return;
    for (size_t i = 0; i < ROOM; i++)
        room[i] = d->computes ? (float)((i * 7919 + 13) % 101) / 101 + 0.5f : 1;
    d->v = (struct values){room, room + ROOM, room + 2 * ROOM, room + 3 * ROOM};
    try_rows(t, d);
    free(room);
}

static void check_lowering(struct test *t, const struct kc_features *features)
{
    struct devices d = {0};

    if (!place_open(t, &d.cpu, "cpu", NULL))
        return;
    if (no_driver_open(t, &d.gpu, features)) {
        with_values(t, &d);
        no_driver_close(&d.gpu);
    }
    place_close(&d.cpu);
}

TEST_SLOW(bounded_cases, lowered_as_for_vulkan)
{
    check_lowering(t, &kc_all_features);
}

TEST_SLOW(bounded_cases, lowered_as_for_webgpu)
{
    check_lowering(t, &kc_least_features);
}

/* Each case as it is, in each of its dtypes: what cannot be lowered is refused, and whatever is
 * launched has the words of its kernel. */
static void lower_all(struct test *t, const struct kc_features *features)
{
    static const rlx_debug_desc as_written = {RLX_SIZED(rlx_debug_desc), .no_optimize = true};
    static const rlx_session_desc desc = {RLX_SIZED(rlx_session_desc), .debug = &as_written};
    static char text[TEXT];
    struct place gpu;

    if (!no_driver_open(t, &gpu, features))
        return;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (const char *op = rows[i].ops; *op; op = after(word_at(op)))
            for (const char *type = rows[i].dtypes ? rows[i].dtypes : "f32"; *type;
                 type = after(word_at(type))) {
                if (rows[i].dtypes)
                    write_case(text, &rows[i], word_at(op), word_at(type));
                else
                    snprintf(text, TEXT, "%s", rows[i].operands + strlen("rlx 1\n"));
                test_note(t, "%s", text);
                if (place_build(&gpu, text, &desc) == RLX_ERROR_INTERNAL)
                    fail(t, "%s", gpu.err.message);
            }
    no_driver_close(&gpu);
}

TEST(bounded_cases, launches_have_the_words_of_their_kernels)
{
    lower_all(t, &kc_all_features);
}

TEST(bounded_cases, so_have_they_without_features)
{
    lower_all(t, &kc_least_features);
}

/* WebGPU has the same kernels, and takes minutes to make these. */
TEST_SLOW(bounded_cases, run_on_vulkan_as_on_the_cpu)
{
    struct devices d = {.computes = true};

    if (!place_open(t, &d.cpu, "cpu", NULL))
        return;
    if (place_open(t, &d.gpu, "vulkan", NULL)) {
        with_values(t, &d);
        place_close(&d.gpu);
    }
    place_close(&d.cpu);
}

/* ---- what is refused ---- */

static const char *const refused_graphs[] = {
    /* at t = 0 alone */
    "dim t <= 4 graph (input %x: f32[2,t]) { %y = topk %x k=1 result=values return %y }",
    "dim t <= 4 graph (input %x: f32[2,t]) { %y = argmax %x axis=1 return %y }",
    "dim t <= 4 graph (input %x: f32[2,t]) { %y = sample %x seed=3 return %y }",
    "dim t <= 3 graph (input %x: f32[t,1]) { %y = expand %x shape=[2,3,4] return %y }",
    "dim t <= 4 graph (input %x: f32[6,5], input %w: f32[t,5,3], input %e: i32[6])"
    " { %y = grouped_matmul %x, %w, %e return %y }",
    "dim t <= 4 graph (input %x: f32[7,32], input %w: u8[t,3,34], input %e: i32[7])"
    " { %y = dequant_grouped_matmul %x, %w, %e scheme=q8_0 k=32 return %y }",
    /* and where the result would be empty otherwise */
    "dim t <= 4 dim n <= 3 graph (input %x: f32[t,2], input %i: i32[n])"
    " { %y = gather %x, %i axis=0 return %y }",
    "dim t <= 4 dim n <= 3 graph (input %x: f32[t,2], input %i: i32[n,2])"
    " { %y = gather_elements %x, %i axis=0 return %y }",
    "dim t <= 4 dim n <= 3 graph (input %x: f32[t,2], input %i: i32[n,1])"
    " { %y = gather_nd %x, %i return %y }",
    "dim t <= 4 dim n <= 3 graph (input %x: f32[n,t]) { %y = argmin %x axis=1 return %y }",
    "dim t <= 4 dim n <= 3 graph (input %w: u8[t,34], input %i: i32[n])"
    " { %y = dequant_gather %w, %i scheme=q8_0 k=32 return %y }",
};

/* Sizes for which an op has no answer are refused by its name, whatever was compiled before, and
 * all others run. */
TEST_DEVICES(bounded_cases, sizes_without_an_answer)
{
    static float zeros[1024], out[1024];
    struct place p;

    if (!place_open(t, &p, test_device(t), NULL))
        return;
    for (size_t i = 0; i < COUNT_OF(refused_graphs); i++) {
        bool two = strstr(refused_graphs[i], "dim n") != NULL;
        test_note(t, "%s", refused_graphs[i]);
        if (!expect_ok(t, place_build(&p, refused_graphs[i], NULL)))
            continue;
        for (int64_t size = 3; size >= 0; size--) {
            const rlx_dim_size dims[] = {{"t", size}, {"n", two ? 2 : 0}};
            bool expands = strstr(refused_graphs[i], "expand") != NULL;
            rlx_tensor y = {.data = out, .bytes = sizeof out};
            rlx_status s = run_sizes(&p, dims, two ? 2 : 1, zeros, zeros, &y);
            if (size == 0 || (expands && size == 2))
                expect(t, is_refusal(&p.err) && s == p.err.status);
            else if (!expect_ok(t, s))
                fail(t, "%s", p.err.message);
        }
    }
    place_close(&p);
}
