/* driver_test.c: all that GPU backends share, with a driver that works in the host's memory:
 * commands are done when somebody waits for them, so that whatever does not wait where it must is
 * found out. It is also how little a driver is. No GPU is needed. */
#include <stdlib.h>
#include <string.h>

#include "../../test.h"
#include "backend/gpu/gpu_run.h"

enum { MOST = 64, SETS = 16, ROOM = 256 };

struct slow_command {
    enum { SLOW_COPY, SLOW_FILL, SLOW_LAUNCH } kind;
    struct span dst, src;
    uint32_t word; /* of a launch: what is added to each of dst's */
    struct span place;
};
struct slow_list {
    struct slow_command at[MOST];
    size_t count, barriers; /* barriers: between kernels */
    uint64_t ticket;        /* 0: it is not in the queue */
};
struct slow_device {
    struct gpu_device gpu;
    struct slow_list list[SETS];
    size_t lists;
    uint64_t finished;
};

static struct slow_device *slow_of(struct gpu_device *g)
{
    return (struct slow_device *)g;
}

/* ---- the device and its memory ---- */

static rlx_status slow_open(struct gpu_device *g, const struct device_desc *desc, struct diag *d)
{
    (void)d;
    g->mode = str_eq(desc->variant, STR("mapped")) ? GPU_MODE_MAPPED
              : str_eq(desc->variant, STR("bar"))  ? GPU_MODE_BAR
                                                   : GPU_MODE_STAGING;
    g->max_buffer = g->max_binding = UINT64_C(1) << 30;
    g->max_bindings = GPU_BUFFERS;
    g->align = GPU_ALIGN;
    g->is_cpu = true;
    return RLX_OK;
}

static void slow_close(struct gpu_device *g)
{
    (void)g;
}

static rlx_status slow_make_buffer(struct gpu_device *g, enum gpu_use use, struct buffer *buf,
                                   struct diag *d)
{
    buf->handle = malloc((size_t)buf->bytes);
    if (!buf->handle)
        return gpu_no_memory(g, buf->bytes, 0, d);
    memset(buf->handle, 0xcc, (size_t)buf->bytes);
    if (use == GPU_FOR_UPLOAD || use == GPU_FOR_READBACK || g->mode != GPU_MODE_STAGING)
        buf->mapped = buf->handle;
    buf->coherent = true;
    return RLX_OK;
}

static void slow_drop_buffer(struct gpu_device *g, struct buffer *buf)
{
    (void)g;
    free(buf->handle);
}

static rlx_status slow_make(struct backend *b, const struct kir *k, const struct kc_emit *how,
                            const char *key, void **pipeline, struct diag *d)
{
    (void)b, (void)k, (void)how, (void)key, (void)d;
    *pipeline = NULL;
    return RLX_OK;
}

static void slow_drop(struct backend *b, void *pipeline)
{
    (void)b, (void)pipeline;
}

/* ---- the queue ---- */

static uint8_t *bytes_at(struct span s)
{
    return (uint8_t *)s.buffer->handle + s.offset;
}

static void do_command(const struct slow_command *c)
{
    uint32_t word = c->word, old;

    if (c->kind == SLOW_COPY) {
        memcpy(bytes_at(c->dst), bytes_at(c->src), (size_t)c->dst.bytes);
        return;
    }
    if (c->kind == SLOW_LAUNCH && c->place.buffer)
        memcpy(&word, bytes_at(c->place), sizeof word);
    for (uint64_t i = 0; i < c->dst.bytes; i += sizeof word) {
        memcpy(&old, bytes_at(c->dst) + i, sizeof old);
        old = c->kind == SLOW_FILL ? word : old + word;
        memcpy(bytes_at(c->dst) + i, &old, sizeof old);
    }
}

static rlx_status slow_wait(struct gpu_device *g, uint64_t ticket, uint64_t ns, struct diag *d)
{
    struct slow_device *s = slow_of(g);

    (void)ns, (void)d;
    for (uint64_t next = s->finished + 1; next <= ticket; next++)
        for (size_t i = 0; i < s->lists; i++)
            for (size_t k = 0; s->list[i].ticket == next && k < s->list[i].count; k++)
                do_command(&s->list[i].at[k]);
    s->finished = ticket > s->finished ? ticket : s->finished;
    return RLX_OK;
}

static uint64_t slow_done(struct gpu_device *g)
{
    return slow_of(g)->finished;
}

/* A list that is under way is not submitted again before it is done: this driver runs it. */
static rlx_status slow_submit(struct gpu_device *g, void *const *commands, uint32_t count,
                              uint64_t ticket, struct diag *d)
{
    for (uint32_t i = 0; i < count; i++) {
        struct slow_list *l = commands[i];
        if (l->ticket > slow_of(g)->finished)
            slow_wait(g, l->ticket, 0, d);
        l->ticket = ticket + i;
    }
    return RLX_OK;
}

/* ---- commands ---- */

static rlx_status slow_new(struct gpu_device *g, void **out, struct diag *d)
{
    struct slow_device *s = slow_of(g);

    if (s->lists == SETS)
        return diag_fail(d, RLX_ERROR_LIMIT, "too many lists of commands");
    *out = &s->list[s->lists++];
    return RLX_OK;
}

static rlx_status slow_begin(struct gpu_device *g, void *commands, bool once, struct diag *d)
{
    (void)g, (void)once, (void)d;
    *(struct slow_list *)commands = (struct slow_list){0};
    return RLX_OK;
}

static rlx_status slow_end(struct gpu_device *g, void *commands, struct diag *d)
{
    (void)g, (void)commands, (void)d;
    return RLX_OK;
}

static void slow_barrier(struct gpu_device *g, void *commands, int from, int to)
{
    (void)g;
    ((struct slow_list *)commands)->barriers += from == GPU_BY_KERNELS && to == GPU_BY_KERNELS;
}

static void add(struct slow_list *l, struct slow_command c)
{
    l->at[l->count++ % MOST] = c;
}

static void slow_copy(struct gpu_device *g, void *commands, struct span dst, struct span src)
{
    (void)g;
    add(commands, (struct slow_command){.kind = SLOW_COPY, .dst = dst, .src = src});
}

static void slow_fill(struct gpu_device *g, void *commands, struct span dst, uint32_t word)
{
    (void)g;
    add(commands, (struct slow_command){.kind = SLOW_FILL, .dst = dst, .word = word});
}

static rlx_status slow_prepare(struct gpu_device *g, struct gpu_recording *r,
                               const struct gpu_needs *needs, struct diag *d)
{
    (void)needs;
    return r->commands ? RLX_OK : slow_new(g, &r->commands, d);
}

static rlx_status slow_launch(struct gpu_device *g, struct gpu_recording *r,
                              const struct gpu_dispatch *l, struct diag *d)
{
    (void)g, (void)d;
    add(r->commands,
        (struct slow_command){
            .kind = SLOW_LAUNCH, .dst = l->span[0], .word = l->word[0], .place = l->place});
    return RLX_OK;
}

static void slow_drop_recording(struct gpu_device *g, struct gpu_recording *r)
{
    (void)g, (void)r;
}

static const struct gpu_driver slow = {
    .device_bytes = sizeof(struct slow_device),
    .recording_bytes = sizeof(struct gpu_recording),
    .push_bytes = 4,
    .transfers = &gpu_batched,
    .pipelines = {slow_make, slow_drop},
    .open = slow_open,
    .close = slow_close,
    .make_buffer = slow_make_buffer,
    .drop_buffer = slow_drop_buffer,
    .submit = slow_submit,
    .done = slow_done,
    .wait = slow_wait,
    .new_commands = slow_new,
    .begin = slow_begin,
    .end = slow_end,
    .barrier = slow_barrier,
    .copy = slow_copy,
    .fill = slow_fill,
    .prepare = slow_prepare,
    .launch = slow_launch,
    .drop = slow_drop_recording,
};
static const struct backend_ops slow_backend = {.name = "slow", GPU_BACKEND_OPS};

/* ---- programs ---- */

struct program {
    struct gpu_launch launch;
    struct gpu_work work;
    struct span span;
    uint32_t word[2];
    struct command command;
};

/* x[i] += n, with so many words to say it: two are too many to go with the launch. */
static bool make_program(struct test *t, struct backend *b, struct program *p, struct span x,
                         uint32_t n, uint32_t words)
{
    static const char *const source[] = {
        "kernel grow(x: inout [u32], n: u32) group(64) { x[local.x] += n }",
        "kernel grow(x: inout [u32], n: u32, m: u32) group(64) { x[local.x] += n + m }"};
    const struct kc_binding whole = {.window = UINT64_C(1) << 30};
    struct diag d;

    diag_init(&d, "test");
    *p = (struct program){.span = x, .word = {n, 0}};
    p->launch = (struct gpu_launch){.grid = {1, 1, 1}, .arg = {{0, 0, x.bytes}}};
    if (!expect_ok(t, gpu_kernels_find(gpu_kernels_of(b), words == 1 ? "=one:grow" : "=two:grow",
                                       rlx_cstr(source[words - 1]), &whole, 1, words,
                                       &p->launch.kernel, &d)))
        return fail(t, "%s", d.first.message);
    p->work = (struct gpu_work){.launch = &p->launch,
                                .launches = 1,
                                .word = p->word,
                                .words = words,
                                .stamp = 7 + n + words};
    p->command = (struct command){
        .kind = COMMAND_DISPATCH, .work = &p->work, .operand = &p->span, .operand_count = 1};
    return true;
}

static bool open_slow(struct test *t, const char *mode, struct backend **b)
{
    const struct device_desc desc = {.mem = mem_default(), .variant = rlx_cstr(mode)};
    struct diag d;

    diag_init(&d, "test");
    test_note(t, "%s", mode);
    return expect_ok(t, gpu_open(&slow, &slow_backend, &desc, b, &d));
}

/* Nothing is done before somebody waits, and what is read is as if each had waited for the last. */
static void check_order(struct test *t, struct backend *b, uint32_t words)
{
    struct buffer *x = NULL, *y = NULL;
    struct run_report report[4];
    struct program p;
    struct diag d;
    uint32_t got[ROOM / 4], data[ROOM / 4];
    uint64_t ticket = 0;

    diag_init(&d, "test");
    require_ok(t, gpu_alloc(b, ROOM, &x, &d));
    require_ok(t, gpu_alloc(b, ROOM, &y, &d));
    const struct span all = {x, 0, ROOM}, other = {y, 0, ROOM};
    expect_ok(t, gpu_read_bytes(b, all, got, &d));
    expect_eq_u64(t, got[0], 0);
    if (make_program(t, b, &p, all, 1000, words))
        for (uint32_t round = 0; round < 4; round++) {
            for (uint32_t i = 0; i < ROOM / 4; i++)
                data[i] = 100 * round + i;
            expect_ok(t, gpu_write_bytes(b, all, data, &d));
            memset(data, 0xee, sizeof data);
            expect_ok(t, gpu_submit(b, &p.command, 1, NULL, &report[round], &ticket, &d));
            expect_ok(t, gpu_copy_bytes(b, other, all, &d));
            expect_ok(t, gpu_fill_bytes(b, (struct span){x, 4, 8}, 0, &d));
        }
    expect_ok(t, gpu_read_bytes(b, other, got, &d));
    for (uint32_t i = 0; i < ROOM / 4; i++)
        expect_eq_u64(t, got[i], 1300 + i);
    expect_ok(t, gpu_read_bytes(b, all, got, &d));
    expect(t, got[0] == 1300 && got[1] == 0 && got[2] == 0 && got[3] == 1303);
    expect_ok(t, gpu_wait(b, ticket, &d));
    gpu_unload(b, &p.command);
    gpu_release(b, x);
    gpu_release(b, y);
}

TEST(gpu_driver, work_keeps_its_order)
{
    static const char *const modes[] = {"mapped", "bar", "staging"};
    struct backend *b;

    for (size_t i = 0; i < 3; i++)
        for (uint32_t words = 1; words <= 2; words++) {
            if (!open_slow(t, modes[i], &b))
                return;
            check_order(t, b, words);
            gpu_close(b);
        }
}

/* A barrier is where two launches meet, and nowhere else. */
TEST(gpu_driver, barriers_are_where_bytes_meet)
{
    struct buffer *x = NULL;
    struct program p[2];
    struct command list[2];
    struct run_report report;
    struct backend *b;
    struct diag d;
    uint64_t ticket;

    diag_init(&d, "test");
    for (uint64_t apart = 0; apart < 2; apart++) {
        if (!open_slow(t, "mapped", &b))
            return;
        require_ok(t, gpu_alloc(b, 2 * ROOM, &x, &d));
        if (make_program(t, b, &p[0], (struct span){x, 0, ROOM}, 1, 1) &&
            make_program(t, b, &p[1], (struct span){x, apart * ROOM, ROOM}, 2, 1)) {
            list[0] = p[0].command;
            list[1] = p[1].command;
            expect_ok(t, gpu_submit(b, list, 2, NULL, &report, &ticket, &d));
            const struct slow_device *s = slow_of(gpu_device_of(b));
            expect_eq_u64(t, s->list[s->lists - 1].count, 2);
            expect_eq_u64(t, s->list[s->lists - 1].barriers, !apart);
        }
        gpu_unload(b, list);
        gpu_release(b, x);
        gpu_close(b);
    }
}
