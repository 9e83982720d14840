/* gpu_call.c: what lowering functions say, collected as launches. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "lower/gpu/gpu_core.h"

void gpu_refuse(struct gpu_call *c, rlx_status status, const char *format, ...)
{
    char text[400];
    va_list args;

    if (c->status != RLX_OK)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    c->status = diag_fail(c->diag, status, "%s", text);
}

void *gpu_room(struct gpu_call *c, size_t bytes)
{
    struct gpu_work *w = c->work;

    if (w->room_bytes < bytes) {
        w->room = arena_array(w->arena, uint64_t, (bytes + 7) / 8);
        w->room_bytes = w->room ? bytes : 0;
    }
    if (!w->room && bytes)
        gpu_refuse(c, RLX_ERROR_MEMORY, "%s: no memory", op_info(c->op)->name);
    return w->room;
}

/* ---- arguments ---- */

struct gpu_arg gpu_temp(struct gpu_call *c, uint64_t bytes)
{
    struct gpu_arg a = {c->work->scratch_operand, c->scratch, bytes};
    uint64_t room = (bytes + GPU_ALIGN - 1) / GPU_ALIGN * GPU_ALIGN;

    if (room < bytes || __builtin_add_overflow(c->scratch, room, &c->scratch))
        gpu_refuse(c, RLX_ERROR_LIMIT, "%s: scratch overflows 64 bits", op_info(c->op)->name);
    return a;
}

struct gpu_arg gpu_part(struct gpu_arg a, uint64_t offset, uint64_t bytes)
{
    return (struct gpu_arg){a.operand, a.offset + offset, bytes};
}

/* What the operand is known to begin at a multiple of. */
static uint64_t grain_of(const struct gpu_call *c, int32_t operand)
{
    uint8_t begins = operand < 0 ? 0 : operand < GPU_PLACES ? c->work->begins[operand] : 1;

    return begins ? UINT64_C(1) << (begins - 1) : GPU_ALIGN;
}

bool gpu_aligned(const struct gpu_call *c, struct gpu_arg a, uint64_t bytes)
{
    return grain_of(c, a.operand) % bytes == 0 && a.offset % bytes == 0;
}

/* ---- constants ---- */

__attribute__((format(printf, 2, 3))) static void add_key(struct gpu_call *c, const char *format,
                                                          ...)
{
    va_list args;
    size_t room = sizeof c->key - c->key_len;

    va_start(args, format);
    int n = vsnprintf(c->key + c->key_len, room, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= room)
        gpu_refuse(c, RLX_ERROR_INTERNAL, "%s: the constants of a kernel do not fit",
                   op_info(c->op)->name);
    else
        c->key_len += (size_t)n;
}

void gpu_kernel(struct gpu_call *c, const char *file, const char *kernel)
{
    c->now = (struct gpu_launch){.first_word = c->work->words};
    c->bound = 0;
    c->givens = 0;
    c->key_len = 0;
    c->source = (rlx_str){NULL, 0};
    add_key(c, "%s:%s", file, kernel);
}

void gpu_generated(struct gpu_call *c, rlx_str source, const char *kernel)
{
    char name[40];

    /* The hash stands for the text; the same text has the same name in this process. */
    snprintf(name, sizeof name, "=%016llx", (unsigned long long)hash_bytes(source.ptr, source.len));
    gpu_kernel(c, name, kernel);
    c->source = source;
}

void gpu_name(struct gpu_call *c, const char *name, const char *value)
{
    add_key(c, " %s=%s", name, value);
}

void gpu_need_type(struct gpu_call *c, rlx_dtype t)
{
    if (t == RLX_DTYPE_f64 && !c->features->f64)
        gpu_refuse(c, RLX_ERROR_UNSUPPORTED, "%s of f64: this device has no 64-bit floats",
                   op_info(c->op)->name);
}

void gpu_type(struct gpu_call *c, const char *name, rlx_dtype t)
{
    gpu_need_type(c, t);
    gpu_name(c, name, rlx_dtype_name(t));
}

void gpu_const(struct gpu_call *c, const char *name, int64_t value)
{
    add_key(c, " %s=%lld", name, (long long)value);
}

void gpu_flag(struct gpu_call *c, const char *name, bool value)
{
    gpu_name(c, name, value ? "true" : "false");
}

/* ---- buffers and words ---- */

uint64_t gpu_seen(const struct gpu_call *c, struct gpu_arg a)
{
    return gpu_aligned(c, a, GPU_ALIGN) ? c->max_binding : c->max_binding - GPU_ALIGN;
}

uint64_t gpu_windows(const struct gpu_call *c, struct gpu_arg a)
{
    uint64_t room = a.bytes + (gpu_aligned(c, a, GPU_ALIGN) ? 0 : GPU_ALIGN);

    return room > c->max_binding ? gpu_ceil(room, c->max_binding) : 1;
}

void gpu_bind(struct gpu_call *c, struct gpu_arg a)
{
    if (c->bound == GPU_BUFFERS) {
        gpu_refuse(c, RLX_ERROR_INTERNAL, "%s: kernel %s has more than %d buffers",
                   op_info(c->op)->name, c->key, GPU_BUFFERS);
        return;
    }
    c->now.arg[c->bound++] = a;
}

static void add_word(struct gpu_call *c, uint32_t value)
{
    struct gpu_work *w = c->work;

    if (c->status != RLX_OK)
        return;
    if (w->words == w->word_room) {
        uint32_t room = w->word_room ? w->word_room * 2 : 32;
        uint32_t *more = arena_array(w->arena, uint32_t, room);
        if (!more) {
            c->status = diag_no_memory(c->diag, room * sizeof *more);
            return;
        }
        if (w->words)
            memcpy(more, w->word, w->words * sizeof *more);
        w->word = more;
        w->word_room = room;
    }
    w->word[w->words++] = value;
}

/* ---- the end of a launch ---- */

bool gpu_fold_grid(uint64_t count, uint32_t limit, uint32_t grid[3])
{
    uint64_t rows = gpu_ceil(count, limit), planes = gpu_ceil(rows, limit);

    if (planes > limit)
        return false;
    grid[0] = (uint32_t)(count < limit ? count : limit);
    grid[1] = (uint32_t)(rows < limit ? rows : limit);
    grid[2] = (uint32_t)planes;
    return true;
}

uint32_t gpu_add_words(struct gpu_call *c, const uint32_t *word, uint32_t count)
{
    uint32_t first = c->work->words;

    for (uint32_t i = 0; i < count; i++)
        add_word(c, word[i]);
    return first;
}

void gpu_add_launch(struct gpu_call *c, const struct gpu_launch *l)
{
    struct gpu_work *w = c->work;

    if (w->launches >= GPU_LAUNCHES) {
        gpu_refuse(c, RLX_ERROR_LIMIT, "%s becomes more than %d launches; a step has at most that",
                   op_info(c->op)->name, GPU_LAUNCHES);
        return;
    }
    if (w->launches == w->launch_room) {
        uint32_t room = w->launch_room ? w->launch_room * 2 : 2;
        struct gpu_launch *more = arena_array(w->arena, struct gpu_launch, room);
        if (!more) {
            c->status = diag_no_memory(c->diag, room * sizeof *more);
            return;
        }
        if (w->launches)
            memcpy(more, w->launch, w->launches * sizeof *more);
        w->launch = more;
        w->launch_room = room;
    }
    w->launch[w->launches++] = *l;
}

/* ---- loops ---- */

uint32_t gpu_begin_loop(struct gpu_call *c, const struct gpu_loop *l)
{
    struct gpu_work *w = c->work;

    if (c->status == RLX_OK && w->loops == w->loop_room) {
        uint32_t room = w->loop_room ? w->loop_room * 2 : 1;
        struct gpu_loop *more = arena_array(w->arena, struct gpu_loop, room);
        if (!more) {
            c->status = diag_no_memory(c->diag, room * sizeof *more);
        } else {
            if (w->loops)
                memcpy(more, w->loop, w->loops * sizeof *more);
            w->loop = more;
            w->loop_room = room;
        }
    }
    if (c->status != RLX_OK)
        return 0;
    w->loop[w->loops] = *l;
    w->loop[w->loops].first = w->launches;
    return w->loops++;
}

void gpu_begin_round(struct gpu_call *c, uint32_t loop)
{
    if (c->status == RLX_OK)
        c->work->loop[loop].body = c->work->launches;
}

void gpu_end_loop(struct gpu_call *c, uint32_t loop)
{
    if (c->status == RLX_OK)
        c->work->loop[loop].end = c->work->launches;
}

/* Which buffers begin after the start of what can be bound is part of the kernel. */
static void note_offsets(struct gpu_call *c, bool *begins_at)
{
    for (uint32_t i = 0; i < c->bound; i++) {
        begins_at[i] = !gpu_aligned(c, c->now.arg[i], GPU_ALIGN);
        if (begins_at[i])
            add_key(c, " @%u", i);
    }
}

/* So is through how many windows it sees those that are larger than what can be bound at once. */
static void note_windows(struct gpu_call *c, uint32_t *windows)
{
    uint32_t most = c->max_bindings;
    uint64_t all = 0, bytes = 0;

    for (uint32_t i = 0; i < c->bound; i++) {
        uint64_t count = gpu_windows(c, c->now.arg[i]);
        windows[i] = (uint32_t)(count < most ? count : most);
        all += count;
        bytes += c->now.arg[i].bytes;
        if (count > 1)
            add_key(c, " %%%u:%u", i, windows[i]);
    }
    if (all > most)
        gpu_refuse(c, RLX_ERROR_LIMIT,
                   "%s works on %llu bytes at once, in %llu windows of %llu bytes; this device "
                   "shows a kernel %u; make its tensors smaller",
                   op_info(c->op)->name, (unsigned long long)bytes, (unsigned long long)all,
                   (unsigned long long)c->max_binding, most);
}

/* It is one of the work's, with its grid as it stands in c->now. */
static void end_launch(struct gpu_call *c)
{
    bool begins_at[GPU_BUFFERS] = {false};
    uint32_t windows[GPU_BUFFERS] = {0}, words = c->work->words - c->now.first_word;
    const struct kc_binding how = {
        .offset = begins_at, .windows = windows, .window = c->max_binding};

    if (c->status != RLX_OK)
        return;
    note_offsets(c, begins_at);
    note_windows(c, windows);
    if (c->status != RLX_OK)
        return;
    c->status = gpu_find_kernel(c->device, c->key, c->source, &how, c->bound, words, &c->now.kernel,
                                c->diag);
    if (c->status == RLX_OK)
        gpu_check_words(c, c->now.kernel);
    if (c->status == RLX_OK)
        gpu_add_launch(c, &c->now);
}

static void drop_launch(struct gpu_call *c)
{
    if (c->status == RLX_OK)
        c->work->words = c->now.first_word;
}

void gpu_groups(struct gpu_call *c, uint64_t count)
{
    if (count == 0) {
        drop_launch(c);
        return;
    }
    if (!gpu_fold_grid(count, c->device->max_groups, c->now.grid))
        gpu_refuse(c, RLX_ERROR_LIMIT, "%s needs %llu groups, more than a grid can have",
                   op_info(c->op)->name, (unsigned long long)count);
    end_launch(c);
}

void gpu_grid(struct gpu_call *c, const uint32_t groups[3])
{
    uint32_t most = c->device->max_groups;

    if (!groups[0] || !groups[1] || !groups[2]) {
        drop_launch(c);
        return;
    }
    for (int i = 0; i < 3; i++) {
        c->now.grid[i] = groups[i];
        if (groups[i] > most)
            gpu_refuse(c, RLX_ERROR_LIMIT, "%s: a grid of %u by %u by %u groups has more than %u",
                       op_info(c->op)->name, groups[0], groups[1], groups[2], most);
    }
    end_launch(c);
}

void gpu_invocations(struct gpu_call *c, uint64_t count, uint32_t group)
{
    gpu_groups(c, gpu_ceil(count, group));
}
