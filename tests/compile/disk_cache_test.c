/* disk_cache_test.c: programs kept in a folder: found again, kept apart, and never trusted. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/cpu/levels.h"
#include "rlx/artefact.h"
#include "test.h"

#define MODEL                                                                       \
    "rlx 1\ndim rows\n"                                                             \
    "graph (input %x: f32[rows,4], param %w: f32[4,4]) {\n"                         \
    "    %c = const f32[20] {1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20}\n" \
    "    %d = narrow %c axis=0 start=0 len=4\n"                                     \
    "    %y = matmul %x, %w\n    %z = add %y, %d\n    %o = softmax %z axis=1\n"     \
    "    return %o\n}\n"
/* The same structure with another constant. */
#define OTHER                                                                       \
    "rlx 1\ndim rows\n"                                                             \
    "graph (input %x: f32[rows,4], param %w: f32[4,4]) {\n"                         \
    "    %c = const f32[20] {2 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20}\n" \
    "    %d = narrow %c axis=0 start=0 len=4\n"                                     \
    "    %y = matmul %x, %w\n    %z = add %y, %d\n    %o = softmax %z axis=1\n"     \
    "    return %o\n}\n"

enum { ROWS = 16 };

struct lines {
    char text[4096];
};

static void take_line(void *user, int level, const char *line)
{
    struct lines *l = user;
    size_t len = strlen(l->text);

    if (level < 2)
        snprintf(l->text + len, sizeof l->text - len, "%s\n", line);
}

struct job {
    const char *text, *folder, *device;
    const rlx_session_desc *desc;
    uint64_t bytes;
    const rlx_allocator *mem;
    int64_t rows;
    float out[4 * ROWS];
    rlx_compiled_info info;
    struct lines log;
    rlx_error err;
};

static rlx_status run_session(struct job *j, rlx_session *s)
{
    float x[4 * ROWS], w[16];

    for (int i = 0; i < 4 * ROWS; i++)
        x[i] = (float)(i % 7) * 0.5f - 1;
    for (int i = 0; i < 16; i++)
        w[i] = (float)(i % 5) * 0.25f;
    size_t bytes = (size_t)j->rows * 4 * sizeof(float);
    rlx_tensor weight = {RLX_DTYPE_f32, 2, {4, 4}, w, sizeof w};
    rlx_binding in = {"x", {RLX_DTYPE_f32, 2, {j->rows, 4}, x, bytes}};
    rlx_binding out = {"o", {RLX_DTYPE_f32, 2, {0}, j->out, bytes}};
    rlx_run_desc run = {RLX_SIZED(rlx_run_desc), &in, 1, &out, 1, NULL, 0};
    rlx_status status = rlx_session_set_param(s, "w", &weight, &j->err);

    if (status == RLX_OK)
        status = rlx_session_run(s, &run, &j->err);
    j->info.size = sizeof j->info;
    rlx_session_compiled(s, &j->info, NULL);
    return status;
}

/* One process's worth: everything made anew, but for the folder. */
static rlx_status run_job(struct job *j)
{
    rlx_context_desc desc = {
        RLX_SIZED(rlx_context_desc), .allocator = j->mem, .log = take_line,
        .log_user = &j->log,         .threads = 1,        .cache_dir = j->folder,
        .cache_bytes = j->bytes};
    rlx_context *ctx = NULL;
    rlx_device *dev = NULL;
    rlx_model *m = NULL;
    rlx_session *s = NULL;

    j->rows = j->rows ? j->rows : 4;
    rlx_status status = rlx_context_create(RLX_VERSION, &desc, &ctx, &j->err);
    if (status == RLX_OK)
        status = rlx_device_open(ctx, j->device ? j->device : "cpu", &dev, &j->err);
    if (status == RLX_OK)
        status = rlx_model_parse(ctx, rlx_cstr(j->text ? j->text : MODEL), &m, &j->err);
    if (status == RLX_OK)
        status = rlx_session_create(m, dev, j->desc, &s, &j->err);
    if (status == RLX_OK)
        status = run_session(j, s);
    rlx_session_destroy(s);
    rlx_model_destroy(m);
    rlx_device_close(dev);
    rlx_context_destroy(ctx);
    return status;
}

static void expect_run(struct test *t, struct job *j, bool cached)
{
    if (!expect_ok(t, run_job(j)))
        fail(t, "%s", j->err.message);
    expect_eq(t, j->info.programs, 1);
    expect_eq(t, j->info.from_cache, cached);
    expect_eq(t, j->info.restored, cached);
    expect_eq(t, j->info.passes == 0, cached);
}

/* Files of the folder; the path of the last one. */
static size_t list(const char *folder, char *path, size_t size, struct stat *st)
{
    DIR *dir = opendir(folder);
    struct dirent *e;
    size_t count = 0;

    while (dir && (e = readdir(dir))) {
        if (e->d_name[0] == '.' && (e->d_name[1] == 0 || e->d_name[1] == '.'))
            continue;
        count++;
        if (path)
            snprintf(path, size, "%s/%s", folder, e->d_name);
    }
    if (dir)
        closedir(dir);
    if (path && st && count)
        stat(path, st);
    return count;
}

static void clear(const char *folder)
{
    char path[4096];

    while (list(folder, path, sizeof path, NULL) && remove(path) == 0)
        continue;
    rmdir(folder);
}

TEST(disk_cache, the_second_compile_is_none)
{
    const char *folder = test_temp(t, "cache");
    struct job first = {.folder = folder}, second = {.folder = folder}, none = {0};
    struct stat st = {0};
    char path[4096];

    expect_run(t, &none, false);
    expect_run(t, &first, false);
    require(t, list(folder, path, sizeof path, &st) == 1);
    expect_eq(t, st.st_mode & 0777, 0600);
    expect_run(t, &second, true);
    expect_bytes(t, second.out, first.out, 16 * sizeof(float));
    expect_bytes(t, second.out, none.out, 16 * sizeof(float));
    expect_str(t, second.log.text, "");
    clear(folder);
}

TEST(disk_cache, tells_programs_apart)
{
    const char *folder = test_temp(t, "cache");
    const rlx_session_desc no_reuse = {RLX_SIZED(rlx_session_desc),
                                       .debug = DEBUG(.no_reuse = true)},
                           aligned = {RLX_SIZED(rlx_session_desc),
                                      .debug = DEBUG(.alignment = 256)};
    struct job job[] = {
        {.folder = folder},
        {.folder = folder, .text = OTHER},     /* a constant's bytes */
        {.folder = folder, .rows = 5},         /* a size */
        {.folder = folder, .desc = &no_reuse}, /* an option */
        {.folder = folder, .desc = &aligned},  /* alignment */
        {.folder = folder, .device = "null"},  /* a device */
        {.folder = folder, .device = "cpu:baseline"},
    };
    /* The last is the first's device where the CPU, or this build, has no other level. */
    const size_t count = sizeof job / sizeof job[0] - cpu_is_baseline();

    for (size_t i = 0; i < count; i++) {
        test_note(t, "job %zu", i);
        expect_run(t, &job[i], false);
        expect_eq_u64(t, list(folder, NULL, 0, NULL), i + 1);
    }
    for (size_t i = 0; i < count; i++) {
        struct job again = job[i];
        test_note(t, "job %zu again", i);
        memset(again.out, 0, sizeof again.out);
        expect_run(t, &again, true);
        expect_bytes(t, again.out, job[i].out, sizeof again.out);
    }
    clear(folder);
}

TEST(disk_cache, what_is_damaged_is_made_again)
{
    const char *folder = test_temp(t, "cache");
    struct job first = {.folder = folder}, second;
    char path[4096];
    size_t n, k;

    expect_run(t, &first, false);
    require(t, list(folder, path, sizeof path, NULL) == 1);
    const char *good = test_read(t, path, &n);
    char *bad = malloc(n);
    require(t, good && bad);
    for (size_t at = 3; at < n; at += n / 23) {
        memcpy(bad, good, n);
        bad[at] ^= 0x10;
        expect(t, test_write(t, path, bad, n));
        second = (struct job){.folder = folder};
        test_note(t, "byte %zu", at);
        expect_run(t, &second, false);
        expect_contains(t, second.log.text, "cache: not used");
        expect_bytes(t, second.out, first.out, sizeof first.out);
        const char *now = test_read(t, path, &k); /* written anew */
        require(t, now && k == n);
        expect_bytes(t, now, good, n);
    }
    for (size_t len = 0; len < n; len += 97) {
        expect(t, test_write(t, path, good, len));
        second = (struct job){.folder = folder};
        expect_run(t, &second, false);
    }
    second = (struct job){.folder = folder};
    expect_run(t, &second, true);
    free(bad);
    clear(folder);
}

TEST(disk_cache, the_file_of_another_program_is_not_taken)
{
    const char *folder = test_temp(t, "cache");
    struct job first = {.folder = folder}, other = {.folder = folder, .text = OTHER};
    char path[4096];
    size_t n;

    expect_run(t, &other, false);
    require(t, list(folder, path, sizeof path, NULL) == 1);
    const char *bytes = test_read(t, path, &n);
    require(t, bytes);
    remove(path);
    expect_run(t, &first, false);
    require(t, list(folder, path, sizeof path, NULL) == 1);
    expect(t, test_write(t, path, bytes, n));
    struct job again = {.folder = folder};
    expect_run(t, &again, false);
    expect_contains(t, again.log.text, "another program");
    expect_bytes(t, again.out, first.out, sizeof first.out);
    clear(folder);
}

TEST(disk_cache, keeps_to_its_bytes)
{
    const char *folder = test_temp(t, "cache");
    struct stat st = {0};
    char path[4096];
    struct job job = {.folder = folder};

    expect_run(t, &job, false);
    require(t, list(folder, path, sizeof path, &st) == 1);
    uint64_t room = (uint64_t)st.st_size * 3 + (uint64_t)st.st_size / 2;
    for (int64_t rows = 5; rows < 12; rows++) {
        usleep(15000); /* so that files differ in age */
        struct job keep = {.folder = folder, .bytes = room};
        expect_run(t, &keep, true); /* the first one is used again and again: it stays */
        usleep(15000);
        struct job more = {.folder = folder, .rows = rows, .bytes = room};
        expect_run(t, &more, false);
        expect(t, list(folder, NULL, 0, NULL) <= 3);
    }
    clear(folder);
}

TEST(disk_cache, without_a_folder_to_write_everything_still_works)
{
    struct job job = {.folder = "/proc/nowhere/cache"}, empty = {.folder = ""};

    expect_run(t, &job, false);
    expect_contains(t, job.log.text, "cache:");
    expect_run(t, &empty, false);
    expect_str(t, empty.log.text, "");
}

/* What others can write to, others may have written: it is neither read nor written. */
TEST(disk_cache, what_others_can_write_to_is_not_used)
{
    const char *folder = test_temp(t, "cache");
    struct job first = {.folder = folder}, shared = {.folder = folder}, open = {.folder = folder},
               again = {.folder = folder};
    struct stat st;
    char path[4096];

    expect_run(t, &first, false);
    require(t, list(folder, path, sizeof path, &st) == 1);
    require(t, chmod(folder, 0777) == 0);
    expect_run(t, &shared, false);
    expect_contains(t, shared.log.text, "other users may write to it");
    require(t, chmod(folder, 0700) == 0 && chmod(path, 0666) == 0);
    expect_run(t, &open, false); /* and written anew, for its owner alone */
    expect_contains(t, open.log.text, "other users may write to it");
    expect_run(t, &again, true);
    expect_str(t, again.log.text, "");
    clear(folder);
}

static void *work(void *arg)
{
    struct job *j = arg;

    for (int i = 0; i < 8; i++) {
        j->rows = 1 + i % 4;
        if (run_job(j) != RLX_OK)
            return j;
    }
    return NULL;
}

TEST(disk_cache, many_may_use_one_folder)
{
    const char *folder = test_temp(t, "cache");
    enum { THREADS = 4 };
    static struct job job[THREADS];
    pthread_t thread[THREADS];
    void *failed;

    memset(job, 0, sizeof job);
    for (int i = 0; i < THREADS; i++) {
        job[i] = (struct job){.folder = folder, .bytes = 12000};
        require(t, pthread_create(&thread[i], NULL, work, &job[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &failed);
        expect(t, !failed);
        expect_str(t, job[i].log.text, "");
        expect_bytes(t, job[i].out, job[0].out, sizeof job[0].out);
    }
    clear(folder);
}

static rlx_status with_allocator(struct test *t, const rlx_allocator *mem, void *ctx)
{
    struct job job = {.folder = ctx, .mem = mem};

    (void)t;
    return run_job(&job);
}

/* Where there is no memory for the cache the program is compiled, so it may succeed all the same:
 * only crashes and leaks count. */
TEST(disk_cache, leaks_nothing_when_memory_runs_out)
{
    const char *folder = test_temp(t, "cache");

    for (int warm = 0; warm < 2; warm++) {
        for (uint64_t at = 1; at < 2000; at++) {
            struct test_alloc a = {.fail_at = at};
            rlx_allocator mem = test_allocator(&a);
            if (!warm)
                clear(folder);
            rlx_status s = with_allocator(t, &mem, (void *)folder);
            expect(t, s == RLX_OK || s == RLX_ERROR_MEMORY);
            expect_no_leak(t, &a);
            if (s == RLX_OK && a.refused == 0)
                break;
        }
    }
    clear(folder);
}
