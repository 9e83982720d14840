/* gpu_record.c: a program's launches as commands, recorded once and run again and again.
 *
 *     [zero the fault]  { [barrier] launch }...  [copy the fault]  barrier
 *
 * Between launches there is a barrier where they touch the same bytes and one of them writes. A
 * recording keeps its buffers when it is recorded again. */
#include <string.h>

#include "backend/gpu/gpu_run.h"

#define MOST_TOUCHES 256 /* noted since the last barrier */
#define MOST_SPARE 4     /* words that a driver may want after a launch's own */

/* ---- what there will be ---- */

/* An API that takes commands only once has none of its own, and keeps what it needs in order. */
static bool has_commands(const struct gpu_device *g)
{
    return g->driver->begin != NULL;
}

static bool words_in_buffer(const struct gpu_device *g, const struct gpu_kernel *k)
{
    return (k->all_words + g->driver->spare_words) * sizeof(uint32_t) > g->driver->push_bytes;
}

static uint64_t word_room(const struct gpu_kernel *k)
{
    uint64_t bytes = (k->words + GPU_BUFFERS + MOST_SPARE) * sizeof(uint32_t);

    return (bytes + GPU_ALIGN - 1) / GPU_ALIGN * GPU_ALIGN;
}

static void count_needs(const struct gpu_device *g, const struct gpu_piece *piece,
                        struct gpu_needs *n)
{
    for (size_t i = 0; i < piece->count; i++) {
        const struct gpu_work *w = piece->list[i].work;
        uint32_t k, end;
        for (gpu_piece_launches(piece, i, &k, &end); k < end; k++) {
            const struct gpu_launch *l = &w->launch[k];
            bool in_buffer = words_in_buffer(g, l->kernel);
            n->launches++;
            n->bindings += l->kernel->bindings + in_buffer;
            n->words += in_buffer ? word_room(l->kernel) : 0;
            for (uint32_t a = 0; a < l->kernel->buffers; a++)
                n->faults |= l->arg[a].operand == GPU_FAULT;
        }
    }
}

/* At most, at any sizes: works have room for the largest. */
rlx_status gpu_reserve(struct gpu_device *g, struct gpu_recording *r, const struct gpu_piece *p,
                       struct diag *d)
{
    uint64_t launches = 0;

    for (size_t i = 0; i < p->count; i++) {
        const struct gpu_work *w = p->list[i].work;
        launches += w->launch_room > w->launches ? w->launch_room : w->launches;
    }
    return g->driver->reserve ? g->driver->reserve(g, r, launches, d) : RLX_OK;
}

static rlx_status make_buffer(struct gpu_device *g, enum gpu_use use, uint64_t bytes,
                              struct buffer *buf, struct diag *d)
{
    if (buf->bytes >= bytes)
        return RLX_OK;
    if (buf->used > g->tickets) /* of a recording that failed */
        TRY(gpu_submit_batch(g, d));
    TRY(gpu_await(g, buf->used, d));
    gpu_drop_buffer(g, buf);
    return gpu_make_buffer(g, use, bytes, buf, d);
}

static rlx_status make_room(struct gpu_device *g, struct gpu_recording *r,
                            const struct gpu_needs *n, struct diag *d)
{
    TRY(g->driver->prepare(g, r, n, d));
    TRY(make_buffer(g, GPU_FOR_WORDS, n->words, &r->words, d));
    r->faults = n->faults;
    if (!n->faults)
        return RLX_OK;
    TRY(make_buffer(g, GPU_FOR_WORK, GPU_FAULT_BYTES, &r->fault, d));
    if (!has_commands(g))
        return RLX_OK;
    return make_buffer(g, GPU_FOR_READBACK, GPU_FAULT_BYTES, &r->fault_seen, d);
}

void gpu_drop_recording(struct gpu_device *g, struct gpu_recording *r)
{
    g->driver->drop(g, r);
    gpu_drop_buffer(g, &r->words);
    gpu_drop_buffer(g, &r->fault);
    gpu_drop_buffer(g, &r->fault_seen);
    memset(r, 0, g->driver->recording_bytes);
}

/* ---- commands ---- */

struct recorder {
    struct gpu_device *g;
    struct gpu_recording *r;
    uint64_t words_at, words_from; /* [from, at) of the words are on their way, in the device's */
    bool any;                      /* a launch was recorded */
    struct diag *diag;
};

static void barrier(struct recorder *c, int from, int to)
{
    if (has_commands(c->g))
        c->g->driver->barrier(c->g, c->r->commands, from, to);
}

/* So that a run knows what it makes busy. */
static void note_buffer(struct gpu_recording *r, struct buffer *buf)
{
    for (uint32_t i = 0; i < r->touches && i < GPU_TOUCHED; i++)
        if (r->touched[i] == buf)
            return;
    if (r->touches < GPU_TOUCHED)
        r->touched[r->touches] = buf;
    if (r->touches <= GPU_TOUCHED)
        r->touches++;
}

static rlx_status note_hazards(struct recorder *c, const struct gpu_bound *bound)
{
    struct gpu_hazards *h = &c->g->hazards;
    struct gpu_touch touch[GPU_BINDINGS];
    bool wait;
    bool full = c->g->options.full_barrier || h->touched.len + bound->bindings > MOST_TOUCHES;

    for (uint32_t i = 0; i < bound->bindings; i++) {
        touch[i] = (struct gpu_touch){bound->span[i], bound->writes[i]};
        if (bound->span[i].buffer && bound->span[i].buffer != &c->r->fault)
            note_buffer(c->r, bound->span[i].buffer);
    }
    if (!has_commands(c->g))
        return RLX_OK;
    if (full)
        h->touched.len = 0;
    TRY(gpu_touch(h, touch, bound->bindings, &wait, c->diag));
    if (c->any && (wait || full))
        barrier(c, GPU_BY_KERNELS, GPU_BY_KERNELS);
    c->any = true;
    return RLX_OK;
}

/* ---- one launch ---- */

static rlx_status bind(struct gpu_device *g, const struct command *c, const struct gpu_launch *l,
                       struct span fault, uint32_t *word, struct gpu_bound *out,
                       const struct gpu_kernel **kernel, struct diag *d)
{
    *kernel = l->kernel;
    if (g->driver->apart)
        return gpu_bind_apart(&g->kernels.target, c->work, l, c, fault, g->align, word, out, kernel,
                              d);
    return gpu_bind_launch(c->work, l, c, fault, g->align, word, out, d);
}

rlx_status gpu_prepare_launches(struct gpu_device *g, const struct command *c, struct diag *d)
{
    const struct gpu_work *w = c->work;
    const struct gpu_kernel *kernel;
    uint32_t word[GPU_WORDS + GPU_BUFFERS];
    struct gpu_bound bound;

    for (uint32_t i = 0; i < w->launches && g->driver->apart; i++)
        TRY(bind(g, c, &w->launch[i], (struct span){NULL, 0, GPU_FAULT_BYTES}, word, &bound,
                 &kernel, d));
    return RLX_OK;
}

static rlx_status send_words(struct recorder *c)
{
    struct span to = {&c->r->words, c->words_from, c->words_at - c->words_from};

    c->words_from = c->words_at;
    return to.bytes ? c->g->driver->transfers->put(c->g, to, c->g->words, c->diag) : RLX_OK;
}

/* Words that do not go with the launch get their place in the buffer. */
static rlx_status place_words(struct recorder *c, const struct gpu_kernel *k, const uint32_t *word,
                              uint32_t count, struct span *place)
{
    uint64_t room = word_room(k);

    *place = (struct span){0};
    if (!words_in_buffer(c->g, k))
        return RLX_OK;
    if (c->words_at - c->words_from + room > sizeof c->g->words)
        TRY(send_words(c));
    uint8_t *to = c->g->words + (c->words_at - c->words_from);
    memset(to, 0, (size_t)room);
    memcpy(to, word, count * sizeof *word);
    *place = (struct span){&c->r->words, c->words_at, count * sizeof *word};
    c->words_at += room;
    return RLX_OK;
}

static rlx_status record_launch(struct recorder *c, const struct command *cmd, size_t command,
                                const struct gpu_launch *l)
{
    struct gpu_device *g = c->g;
    struct span fault = {&c->r->fault, 0, GPU_FAULT_BYTES};
    uint32_t word[GPU_WORDS + GPU_BUFFERS + MOST_SPARE] = {0};
    struct gpu_bound bound;
    struct gpu_dispatch out = {
        .span = bound.span, .word = word, .grid = l->grid, .command = (uint32_t)command};

    TRY(bind(g, cmd, l, fault, word, &bound, &out.kernel, c->diag));
    TRY(note_hazards(c, &bound));
    for (uint32_t i = 0; i < bound.bindings; i++)
        if (bound.span[i].bytes == 0) /* nobody looks, but something must be there */
            bound.span[i] = (struct span){&g->nothing, i * GPU_ALIGN, GPU_ALIGN};
    out.spans = bound.bindings;
    out.words = bound.words + g->driver->spare_words;
    TRY(place_words(c, l->kernel, word, out.words, &out.place));
    return g->driver->launch(g, c->r, &out, c->diag);
}

/* ---- all of them ---- */

static rlx_status begin(struct recorder *c)
{
    const struct gpu_driver *driver = c->g->driver;

    if (!has_commands(c->g))
        return RLX_OK;
    TRY(driver->begin(c->g, c->r->commands, false, c->diag));
    if (!c->r->faults)
        return RLX_OK;
    driver->fill(c->g, c->r->commands, (struct span){&c->r->fault, 0, GPU_FAULT_BYTES}, 0);
    barrier(c, GPU_BY_COPIES, GPU_BY_KERNELS);
    return RLX_OK;
}

/* The results are for the host, and for whatever is submitted next. */
static rlx_status end(struct recorder *c)
{
    const struct gpu_driver *driver = c->g->driver;

    if (!has_commands(c->g))
        return RLX_OK;
    if (c->r->faults) {
        barrier(c, GPU_BY_KERNELS, GPU_BY_COPIES);
        driver->copy(c->g, c->r->commands, (struct span){&c->r->fault_seen, 0, GPU_FAULT_BYTES},
                     (struct span){&c->r->fault, 0, GPU_FAULT_BYTES});
    }
    barrier(c, GPU_BY_KERNELS | GPU_BY_COPIES, GPU_BY_KERNELS | GPU_BY_COPIES | GPU_BY_HOST);
    return driver->end(c->g, c->r->commands, c->diag);
}

/* A time is taken when all before it is done: what a step takes is its own then. */
static void note_time(struct recorder *c, size_t i, bool ends)
{
    if (!c->r->timed || !c->g->driver->time)
        return;
    if (!ends)
        barrier(c, GPU_BY_KERNELS, GPU_BY_KERNELS);
    c->g->driver->time(c->g, c->r, (uint32_t)(2 * i + ends));
}

static rlx_status record_all(struct recorder *c, const struct gpu_piece *p)
{
    TRY(begin(c));
    for (size_t i = 0; i < p->count; i++) {
        const struct gpu_work *w = p->list[i].work;
        uint32_t k, last;
        note_time(c, i, false);
        for (gpu_piece_launches(p, i, &k, &last); k < last; k++)
            TRY(record_launch(c, &p->list[i], i, &w->launch[k]));
        note_time(c, i, true);
    }
    TRY(send_words(c));
    return end(c);
}

rlx_status gpu_record(struct gpu_device *g, struct gpu_recording *r, const struct gpu_piece *p,
                      struct diag *d)
{
    struct recorder c = {.g = g, .r = r, .diag = d};
    struct gpu_needs needs = {.times = r->timed ? 2 * (uint32_t)p->count : 0};

    r->valid = false;
    r->touches = 0;
    r->count = p->count;
    g->hazards.touched.len = 0;
    if (!vec_room_for(g->base.mem, &g->hazards.touched, MOST_TOUCHES + GPU_BINDINGS))
        return diag_no_memory(d, MOST_TOUCHES * sizeof(struct gpu_touch));
    count_needs(g, p, &needs);
    TRY(make_room(g, r, &needs, d));
    TRY(record_all(&c, p));
    r->valid = true;
    return RLX_OK;
}

/* ---- a run ---- */

/* What the program uses is busy until its ticket is done; its uploads go before it. */
rlx_status gpu_run(struct gpu_device *g, struct gpu_recording *r, const struct gpu_piece *p,
                   struct diag *d)
{
    void *both[2];
    uint32_t n = 0;

    if (g->driver->transfers->stale)
        g->driver->transfers->stale(g);
    TRY(gpu_end_batch(g, &both[0], d));
    n += both[0] != NULL;
    both[n++] = r->commands;
    TRY(gpu_queue(g, both, n, d));
    r->ticket = g->tickets;
    for (uint32_t i = 0; i < r->touches && r->touches <= GPU_TOUCHED; i++)
        r->touched[i]->used = r->ticket;
    for (size_t i = 0; i < p->count && r->touches > GPU_TOUCHED; i++)
        for (uint32_t k = 0; k < p->list[i].operand_count; k++)
            if (p->list[i].operand[k].buffer)
                p->list[i].operand[k].buffer->used = r->ticket;
    return RLX_OK;
}

rlx_status gpu_read_fault(struct gpu_device *g, struct gpu_recording *r, uint32_t *word,
                          uint32_t words, struct diag *d)
{
    uint64_t bytes = words * sizeof *word;

    if (!r->fault_seen.mapped)
        return g->driver->transfers->get(g, (struct span){&r->fault, 0, bytes}, word, d);
    gpu_invalidate(g, &r->fault_seen, 0, bytes);
    memcpy(word, r->fault_seen.mapped, bytes);
    return RLX_OK;
}
