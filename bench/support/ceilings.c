/* ceilings.c: threads, memory and the table of loops; the loops themselves are in loops.c. */
#include "ceilings.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "loops.h"

struct ceiling_worker {
    const struct ceiling *of;
    pthread_t thread;
    unsigned char *memory;
    size_t bytes;
};

#define TENSOR_BYTES ((size_t)64 << 20)
#define WEIGHTS_BYTES ((size_t)512 << 20)
#define HUGE_PAGE ((size_t)2 << 20)

static const char *const units[] = {
#define X(name, unit, what) unit,
    CEILINGS(X)
#undef X
};
static const char *const texts[] = {
#define X(name, unit, what) what,
    CEILINGS(X)
#undef X
};

/* ---- one thread's share ---- */

static void work(const struct ceiling_worker *w)
{
    size_t half = w->bytes / 2;

    switch (w->of->kind) {
    case CEILING_FMA_F32: loop_fma_f32(); break;
    case CEILING_AMX_BF16: loop_amx_bf16(w->memory, true); break;
    case CEILING_AMX_BF16_REGISTERS: loop_amx_bf16(w->memory, false); break;
    case CEILING_AMX_I8: loop_amx_i8(w->memory); break;
    case CEILING_VNNI_I8: loop_vnni_i8(); break;
    case CEILING_COPY:
    case CEILING_COPY_HUGE: memcpy(w->memory, w->memory + half, half); break;
    case CEILING_COPY_STREAM: loop_copy_stream(w->memory, w->memory + half, half); break;
    case CEILING_READ:
    case CEILING_READ_HUGE:
    case CEILING_READ_WEIGHTS: loop_read(w->memory, w->bytes); break;
    case CEILING_COUNT: break;
    }
}

static void *enter(void *worker)
{
    work(worker);
    return NULL;
}

void ceiling_call(void *ceiling)
{
    struct ceiling *c = ceiling;
    int started = 1;

    for (; started < c->threads; started++) {
        struct ceiling_worker *w = &c->worker[started];
        if (pthread_create(&w->thread, NULL, enter, w) != 0)
            give_up("a thread could not be started");
    }
    work(&c->worker[0]);
    for (int i = 1; i < started; i++)
        pthread_join(c->worker[i].thread, NULL);
}

/* ---- opening ---- */

static bool is_copy(enum ceiling_kind kind)
{
    return kind == CEILING_COPY || kind == CEILING_COPY_HUGE || kind == CEILING_COPY_STREAM;
}

static size_t bytes_of(enum ceiling_kind kind, int threads)
{
    if (is_copy(kind))
        return 2 * TENSOR_BYTES / (size_t)threads;
    if (kind == CEILING_READ || kind == CEILING_READ_HUGE)
        return TENSOR_BYTES;
    if (kind == CEILING_READ_WEIGHTS)
        return WEIGHTS_BYTES / (size_t)threads / 128 * 128;
    return LOOP_PANEL_BYTES;
}

static double work_of(enum ceiling_kind kind)
{
    if (kind == CEILING_FMA_F32)
        return loop_fma_f32_flops();
    if (kind == CEILING_AMX_BF16 || kind == CEILING_AMX_BF16_REGISTERS)
        return loop_amx_bf16_flops();
    if (kind == CEILING_AMX_I8)
        return loop_amx_i8_ops();
    if (kind == CEILING_VNNI_I8)
        return loop_vnni_i8_ops();
    return 0; /* goes by bytes */
}

/* Pages of the wanted size, every one of them touched. */
static void *get_memory(size_t bytes, bool huge)
{
    void *p =
        mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        give_up("%zu bytes could not be allocated", bytes);
    madvise(p, bytes + HUGE_PAGE, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    memset(p, 1, bytes + HUGE_PAGE);
    return p;
}

void ceiling_open(struct ceiling *c, enum ceiling_kind kind, int threads)
{
    bool amx =
        kind == CEILING_AMX_BF16 || kind == CEILING_AMX_BF16_REGISTERS || kind == CEILING_AMX_I8;
    bool huge = kind == CEILING_COPY_HUGE || kind == CEILING_COPY_STREAM ||
                kind == CEILING_READ_HUGE || kind == CEILING_READ_WEIGHTS;

    *c = (struct ceiling){
        .unit = units[kind], .what = texts[kind], .threads = threads, .kind = kind};
    if (amx)
        c->missing = loop_amx_missing();
    else if (kind == CEILING_FMA_F32)
        c->missing = loop_fma_missing();
    else if (kind == CEILING_VNNI_I8)
        c->missing = loop_vnni_missing();
    else if (kind == CEILING_COPY_STREAM)
        c->missing = loop_stream_missing();
    c->worker = calloc((size_t)threads, sizeof *c->worker);
    if (!c->worker)
        give_up("out of memory");
    for (int i = 0; i < threads; i++) {
        struct ceiling_worker *w = &c->worker[i];
        w->of = c;
        w->bytes = bytes_of(kind, threads);
        w->memory = get_memory(w->bytes, huge);
        c->work += work_of(kind) > 0 ? work_of(kind) : (double)w->bytes;
    }
}

void ceiling_close(struct ceiling *c)
{
    for (int i = 0; i < c->threads; i++)
        munmap(c->worker[i].memory, c->worker[i].bytes + HUGE_PAGE);
    free(c->worker);
}

struct side ceiling_side(struct ceiling *c)
{
    return (struct side){.name = c->what, .call = ceiling_call, .user = c, .missing = c->missing};
}
