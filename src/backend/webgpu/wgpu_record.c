/* wgpu_record.c: a program's launches with their bind groups and words, made once and encoded for
 * each run, as WebGPU takes a command buffer only once.
 *
 *     [zero the fault]  { pipeline, bind group, dispatch }... */
#include <string.h>

#include "backend/webgpu/webgpu.h"

#define FAULT_BYTES 64
#define MOST_WORDS 256 /* of one launch */
#define PART_ALIGN 256 /* of words in their buffer */

static uint64_t word_room(const struct gpu_launch *l)
{
    uint64_t bytes = (l->kernel->words + GPU_BUFFERS + 1 + 3) / 4 * 16;

    return (bytes + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
}

struct needs {
    uint64_t launches, words; /* bytes, each launch's aligned */
    bool faults;
};

static void count_needs(const struct gpu_piece *p, struct needs *n)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct gpu_work *w = p->list[i].work;
        uint32_t k, end;
        for (gpu_piece_launches(p, i, &k, &end); k < end; k++) {
            n->launches++;
            n->words += word_room(&w->launch[k]);
            for (uint32_t a = 0; a < w->launch[k].kernel->buffers; a++)
                n->faults |= w->launch[k].arg[a].operand == GPU_FAULT;
        }
    }
}

/* At most, at any sizes: works have room for the largest. */
static void count_most(const struct gpu_piece *p, struct needs *n)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct gpu_work *w = p->list[i].work;
        uint64_t launches = w->launch_room > w->launches ? w->launch_room : w->launches;
        uint64_t words = w->word_room > w->words ? w->word_room : w->words;
        n->launches += launches;
        n->words += words * sizeof *w->word + launches * 2 * PART_ALIGN;
    }
}

static void forget(struct wg_device *dev, struct wg_recording *r)
{
    for (size_t i = 0; i < r->launch.len; i++)
        if (r->launch.at[i].group)
            dev->wg.BindGroupRelease(r->launch.at[i].group);
    r->launch.len = 0;
    r->base.valid = false;
}

void wg_drop_recording(struct backend *b, struct gpu_recording *base)
{
    struct wg_device *dev = wg_device_of(b);
    struct wg_recording *r = wg_recording_of(base);

    forget(dev, r);
    vec_free(dev->base.mem, &r->launch);
    wg_drop_buffer(dev, &r->words);
    wg_drop_buffer(dev, &r->fault);
    wg_close_times(dev, &r->times);
    *r = (struct wg_recording){0};
}

static rlx_status make_buffer(struct wg_device *dev, WGPUBufferUsage use, uint64_t bytes,
                              struct buffer *buf, struct diag *d)
{
    if (buf->bytes >= bytes)
        return RLX_OK;
    wg_drop_buffer(dev, buf);
    return wg_make_buffer(dev, use, bytes, buf, d);
}

/* Of the host. */
static rlx_status take_memory(struct wg_device *dev, struct wg_recording *r, const struct needs *n,
                              struct diag *d)
{
    if (n->launches > r->launch.cap &&
        !vec_room_for(dev->base.mem, &r->launch, n->launches - r->launch.len))
        return diag_no_memory(d, n->launches * sizeof(struct wg_launch));
    if (n->words > dev->words.cap && !vec_room_for(dev->base.mem, &dev->words, n->words))
        return diag_no_memory(d, n->words);
    return RLX_OK;
}

rlx_status wg_reserve(struct backend *b, struct gpu_recording *r, const struct gpu_piece *p,
                      struct diag *d)
{
    struct needs most = {0};

    count_most(p, &most);
    return take_memory(wg_device_of(b), wg_recording_of(r), &most, d);
}

static rlx_status make_room(struct wg_device *dev, struct wg_recording *r, const struct needs *n,
                            struct diag *d)
{
    TRY(take_memory(dev, r, n, d));
    TRY(make_buffer(dev, WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst, n->words, &r->words,
                    d));
    r->base.faults = n->faults;
    return n->faults ? make_buffer(dev, WG_FOR_WORK, FAULT_BYTES, &r->fault, d) : RLX_OK;
}

/* ---- one launch ---- */

struct recorder {
    struct wg_device *dev;
    struct wg_recording *r;
    uint8_t *words; /* of all launches, as they will lie in their buffer */
    uint64_t words_at;
    struct diag *diag;
};

static WGPUBindGroup make_group(struct recorder *c, const struct wg_pipeline *p,
                                const struct gpu_bound *bound)
{
    WGPUBindGroupEntry entry[GPU_BINDINGS + 1];
    size_t count = 0;

    for (uint32_t i = 0; i < p->buffers; i++) {
        struct span s = bound->span[i];
        if (s.bytes == 0) /* nobody looks, but something must be there */
            s = (struct span){&c->dev->nothing, i * GPU_ALIGN, GPU_ALIGN};
        uint64_t bytes = (s.bytes + 15) / 16 * 16, most = s.buffer->bytes - s.offset;
        entry[count++] = (WGPUBindGroupEntry){.binding = i,
                                              .buffer = s.buffer->handle,
                                              .offset = s.offset,
                                              .size = bytes < most ? bytes : most};
    }
    if (p->words)
        entry[count++] = (WGPUBindGroupEntry){.binding = p->buffers,
                                              .buffer = c->r->words.handle,
                                              .offset = c->words_at,
                                              .size = (p->words + 3) / 4 * 16};
    return c->dev->wg.DeviceCreateBindGroup(
        c->dev->device,
        &(WGPUBindGroupDescriptor){.layout = p->layout, .entryCount = count, .entries = entry});
}

static rlx_status record_launch(struct recorder *c, const struct command *cmd, size_t command,
                                const struct gpu_launch *l)
{
    const struct gpu_kernel *kernel;
    struct span fault = {&c->r->fault, 0, FAULT_BYTES};
    uint32_t word[MOST_WORDS + GPU_BUFFERS] = {0};
    struct wg_launch *out = &c->r->launch.at[c->r->launch.len];
    struct gpu_bound bound;

    if (l->kernel->words > MOST_WORDS)
        return diag_fail(c->diag, RLX_ERROR_INTERNAL, "kernel %s has %u words", l->kernel->key,
                         l->kernel->words);
    TRY(gpu_bind_apart(&c->dev->kernels.target, cmd->work, l, cmd, fault, GPU_ALIGN, word, &bound,
                       &kernel, c->diag));
    const struct wg_pipeline *p = kernel->pipeline;
    memset(c->words + c->words_at, 0, (size_t)word_room(l));
    memcpy(c->words + c->words_at, word, bound.words * sizeof *word);
    *out = (struct wg_launch){
        .pipeline = p->handle, .group = make_group(c, p, &bound), .command = (uint32_t)command};
    memcpy(out->grid, l->grid, sizeof out->grid);
    c->r->launch.len++;
    c->words_at += word_room(l);
    return RLX_OK;
}

rlx_status wg_prepare_launches(struct wg_device *dev, const struct command *c, struct diag *d)
{
    const struct gpu_work *w = c->work;
    const struct gpu_kernel *kernel;
    uint32_t word[MOST_WORDS + GPU_BUFFERS];
    struct gpu_bound bound;

    for (uint32_t i = 0; i < w->launches; i++)
        if (w->launch[i].kernel->words <= MOST_WORDS)
            TRY(gpu_bind_apart(&dev->kernels.target, w, &w->launch[i], c,
                               (struct span){NULL, 0, FAULT_BYTES}, GPU_ALIGN, word, &bound,
                               &kernel, d));
    return RLX_OK;
}

static rlx_status record_all(struct recorder *c, const struct gpu_piece *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct gpu_work *w = p->list[i].work;
        uint32_t k, end;
        for (gpu_piece_launches(p, i, &k, &end); k < end; k++)
            TRY(record_launch(c, &p->list[i], i, &w->launch[k]));
    }
    if (c->words_at)
        c->dev->wg.QueueWriteBuffer(c->dev->queue, c->r->words.handle, 0, c->words,
                                    (size_t)c->words_at);
    return wg_check(c->dev, c->diag);
}

rlx_status wg_record(struct backend *b, struct gpu_recording *base, const struct gpu_piece *p,
                     struct diag *d)
{
    struct wg_device *dev = wg_device_of(b);
    struct wg_recording *r = wg_recording_of(base);
    struct recorder c = {.dev = dev, .r = r, .diag = d};
    struct needs needs = {0};

    forget(dev, r);
    count_needs(p, &needs);
    TRY(make_room(dev, r, &needs, d));
    if (r->base.timed)
        TRY(wg_make_times(dev, &r->times, p->count, d));
    c.words = dev->words.at;
    rlx_status s = record_all(&c, p);
    r->base.valid = s == RLX_OK;
    return s;
}

/* ---- a run ---- */

void wg_encode_launch(struct wg_device *dev, WGPUComputePassEncoder pass, const struct wg_launch *l)
{
    dev->wg.ComputePassEncoderSetPipeline(pass, l->pipeline);
    dev->wg.ComputePassEncoderSetBindGroup(pass, 0, l->group, 0, NULL);
    dev->wg.ComputePassEncoderDispatchWorkgroups(pass, l->grid[0], l->grid[1], l->grid[2]);
}

static void encode_all(struct wg_device *dev, const struct wg_recording *r, WGPUCommandEncoder e)
{
    WGPUComputePassEncoder pass = dev->wg.CommandEncoderBeginComputePass(e, NULL);

    for (size_t i = 0; i < r->launch.len; i++)
        wg_encode_launch(dev, pass, &r->launch.at[i]);
    dev->wg.ComputePassEncoderEnd(pass);
    dev->wg.ComputePassEncoderRelease(pass);
}

rlx_status wg_run(struct backend *b, struct gpu_recording *base, const struct gpu_piece *p,
                  struct diag *d)
{
    struct wg_device *dev = wg_device_of(b);
    struct wg_recording *r = wg_recording_of(base);
    WGPUCommandEncoder e = dev->wg.DeviceCreateCommandEncoder(dev->device, NULL);

    wg_forget_fetched(dev);
    if (r->base.faults)
        dev->wg.CommandEncoderClearBuffer(e, r->fault.handle, 0, FAULT_BYTES);
    if (r->base.timed)
        wg_encode_timed(dev, r, p->count, e);
    else
        encode_all(dev, r, e);
    TRY(wg_queue(dev, e, d));
    base->ticket = dev->tickets;
    return RLX_OK;
}

rlx_status wg_read_fault(struct backend *b, struct gpu_recording *r, uint32_t *word, uint32_t words,
                         struct diag *d)
{
    struct span fault = {&wg_recording_of(r)->fault, 0, words * sizeof *word};

    return wg_get(wg_device_of(b), fault, word, d);
}
