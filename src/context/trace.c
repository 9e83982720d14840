/* trace.c: see trace.h. */
#include "context/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/io_error.h"
#include "base/str.h"

enum {
    MOST_TRACKS = 64,
    FIRST_DEVICE = 1 << 30, /* the tid of a device's track: no thread has one so high */
};

struct trace {
    const rlx_allocator *mem;
    pthread_mutex_t lock; /* of what follows */
    int fd;
    off_t end;      /* where the next event goes, over the closing bracket */
    bool any;       /* an event was written: a comma goes before the next */
    bool broken;    /* the disk is full, or the like: no more is written */
    uint64_t start; /* ts 0 */
    struct track {
        uint64_t tid;
        char device[64]; /* "": a thread of the host */
    } track[MOST_TRACKS];
    size_t tracks; /* that have a name in the file; those that come later stay without */
};

#define EVENT_BYTES 1024 /* of one event; longer labels are cut */

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t trace_now(const struct trace *t)
{
    return t ? now() : 0;
}

static int write_at(int fd, const char *text, size_t len, off_t at)
{
    while (len) {
        ssize_t n = pwrite(fd, text, len, at);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0) {
            text += n;
            len -= (size_t)n;
            at += n;
        }
    }
    return 0;
}

rlx_status trace_open(struct trace **out, const char *path, const rlx_allocator *mem,
                      struct diag *d)
{
    struct trace *t = mem_alloc(mem, sizeof *t);
    int err;

    if (!t)
        return diag_no_memory(d, sizeof *t);
    t->mem = mem;
    t->start = now();
    t->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    err = t->fd < 0 ? errno : write_at(t->fd, "[\n\n]\n", 5, 0);
    if (err) {
        if (t->fd >= 0)
            close(t->fd);
        mem_free(mem, t, sizeof *t);
        return io_error_errno(d, "cannot write the trace", rlx_cstr(path), err);
    }
    t->end = 2;
    pthread_mutex_init(&t->lock, NULL);
    *out = t;
    return RLX_OK;
}

void trace_close(struct trace *t)
{
    if (!t)
        return;
    close(t->fd);
    pthread_mutex_destroy(&t->lock);
    mem_free(t->mem, t, sizeof *t);
}

/* ---- an event's text ---- */

struct event {
    char at[EVENT_BYTES];
    size_t len;
};

static void add(struct event *e, const char *text, size_t len)
{
    if (e->len + len > sizeof e->at)
        return;
    memcpy(e->at + e->len, text, len);
    e->len += len;
}

static void add_number(struct event *e, const char *key, uint64_t v)
{
    char text[64];

    add(e, text, (size_t)snprintf(text, sizeof text, "%s%llu", key, (unsigned long long)v));
}

/* Microseconds with three places. */
static void add_time(struct event *e, const char *key, uint64_t ns)
{
    char text[64];

    add(e, text,
        (size_t)snprintf(text, sizeof text, "%s%llu.%03u", key, (unsigned long long)(ns / 1000),
                         (unsigned)(ns % 1000)));
}

#define LONGEST_STRING 256

static void add_string(struct event *e, const char *key, rlx_str s)
{
    size_t limit = e->len + strlen(key) + LONGEST_STRING;
    char text[8];

    add(e, key, strlen(key));
    add(e, "\"", 1);
    while (s.len && e->len < limit) {
        size_t step = str_utf8_step(s);
        unsigned char c = (unsigned char)s.ptr[0];
        if (c == '"' || c == '\\' || c < 0x20)
            add(e, text, (size_t)snprintf(text, sizeof text, "\\u%04x", c));
        else if (step)
            add(e, s.ptr, step);
        else
            add(e, "?", 1);
        step = step ? step : 1;
        s.ptr += step;
        s.len -= step;
    }
    add(e, "\"", 1);
}

static void add_args(struct event *e, const struct trace_args *a)
{
    const char *comma = "";

    add(e, ",\"args\":{", 9);
    if (a->is_step) {
        add_number(e, "\"step\":", (uint64_t)a->step);
        comma = ",";
    }
    if (a->label.len) {
        add(e, comma, strlen(comma));
        add_string(e, "\"node\":", a->label);
        comma = ",";
    }
    if (a->bytes || a->is_step) {
        add(e, comma, strlen(comma));
        add_number(e, "\"bytes\":", a->bytes);
    }
    add(e, "}", 1);
}

/* ---- the file ---- */

/* Over the closing bracket, and with a new one after it. The lock is held. */
static void append(struct trace *t, struct event *e)
{
    size_t len = e->len;
    size_t skip = t->any ? 0 : 2; /* the first has no ",\n" before it */

    add(e, "\n]\n", 3);
    if (t->broken)
        return;
    t->broken = write_at(t->fd, e->at + skip, e->len - skip, t->end) != 0;
    t->end += (off_t)(len - skip);
    t->any = true;
}

static void name_track(struct trace *t, const struct track *k)
{
    bool is_main = k->tid == (uint64_t)getpid();
    struct event e = {.len = 0};
    char name[96];

    if (k->device[0])
        snprintf(name, sizeof name, "device %s, its queue", k->device);
    else if (is_main)
        snprintf(name, sizeof name, "host, main thread");
    else
        snprintf(name, sizeof name, "host, thread %llu", (unsigned long long)k->tid);
    add(&e, ",\n{", 3);
    add_string(&e, "\"name\":", STR("thread_name"));
    add(&e, ",\"ph\":\"M\"", 9);
    add_number(&e, ",\"pid\":", (uint64_t)getpid());
    add_number(&e, ",\"tid\":", k->tid);
    add_string(&e, ",\"args\":{\"name\":", rlx_cstr(name));
    add(&e, "}}", 2);
    append(t, &e);
}

/* The track of this thread, or of that device; a new one gets its name. The lock is held. */
static uint64_t track_of(struct trace *t, const char *device)
{
    struct track k = {.tid = FIRST_DEVICE};

    if (device)
        snprintf(k.device, sizeof k.device, "%s", device);
    else
        k.tid = (uint64_t)syscall(SYS_gettid);
    for (size_t i = 0; i < t->tracks; i++) {
        bool same = device ? strcmp(t->track[i].device, k.device) == 0
                           : !t->track[i].device[0] && t->track[i].tid == k.tid;
        if (same)
            return t->track[i].tid;
        k.tid += device && t->track[i].device[0];
    }
    if (t->tracks < MOST_TRACKS) {
        t->track[t->tracks++] = k;
        name_track(t, &k);
    }
    return k.tid;
}

void trace_span(struct trace *t, const char *name, uint64_t start, uint64_t end,
                const struct trace_args *args)
{
    static const struct trace_args none;
    struct event e = {.len = 0};

    if (!t)
        return;
    args = args ? args : &none;
    end = end ? end : now();
    start = start < t->start ? t->start : start;
    pthread_mutex_lock(&t->lock);
    uint64_t tid = track_of(t, args->device);
    add(&e, ",\n{", 3);
    add_string(&e, "\"name\":", rlx_cstr(name));
    add_string(&e, ",\"cat\":", rlx_cstr(args->category ? args->category : "rlx"));
    add(&e, ",\"ph\":\"X\"", 9);
    add_time(&e, ",\"ts\":", start - t->start);
    add_time(&e, ",\"dur\":", end > start ? end - start : 0);
    add_number(&e, ",\"pid\":", (uint64_t)getpid());
    add_number(&e, ",\"tid\":", tid);
    add_args(&e, args);
    add(&e, "}", 1);
    append(t, &e);
    pthread_mutex_unlock(&t->lock);
}
