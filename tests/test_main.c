/* test_main.c: runs the tests that registered themselves, and counts: one after another, or with
 * --jobs in several processes that each take the next one.
 *
 * The last line is "N passed, N failed, N skipped"; the exit status is 0 only if nothing failed. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test_impl.h"

struct options {
    const char *filters[16], *without[16];
    int filter_count, without_count;
    int jobs; /* processes */
    bool list, fast, times;
};

static struct test_case *all_cases;

/* The test now running, for the handlers below. */
static const struct test_case *volatile running;

void test_register(struct test_case *c)
{
    c->next = all_cases;
    all_cases = c;
}

bool test_full(void)
{
    const char *v = getenv("RLX_TEST_FULL");

    return v && *v && strcmp(v, "0") != 0;
}

/* ---- devices ------------------------------------------------------------------------------- */

const char *test_device(const struct test *t)
{
    return t->about->device ? t->about->device : "cpu";
}

/* $RLX_REQUIRE_DEVICE names kinds, such as "vulkan webgpu"; 1 stands for all. */
static bool is_required(const char *device)
{
    const char *must = getenv("RLX_REQUIRE_DEVICE");
    char kind[32];

    snprintf(kind, sizeof kind, "%.*s", (int)strcspn(device, ":"), device);
    return strcmp(kind, "cpu") == 0 || (must && (strcmp(must, "1") == 0 || strstr(must, kind)));
}

bool test_no_device(struct test *t, const char *device, rlx_status s, const char *why)
{
    if (s == RLX_OK)
        return false;
    if (s == RLX_ERROR_NO_DEVICE && !is_required(device))
        test_skip(t, "no device %s: %s", device, why);
    else
        fail(t, "no device %s: %s", device, why);
    return true;
}

bool test_has_f64(const struct test *t, rlx_context *ctx)
{
    const char *device = test_device(t);
    rlx_device_info info = {RLX_SIZED(rlx_device_info)};

    if (strcmp(device, "cpu") == 0)
        return true;
    for (size_t i = 0; rlx_device_at(ctx, i, &info, NULL) == RLX_OK; i++)
        if (strncmp(info.name, device, strlen(device)) == 0)
            return strstr(info.features, " f64 ") != NULL;
    return false;
}

/* ---- files --------------------------------------------------------------------------------- */

static char *keep(struct test *t, size_t bytes, bool is_path)
{
    struct test_kept *k = calloc(1, sizeof *k + bytes);

    if (!k) {
        fputs("rlx-tests: no memory for the harness itself\n", stderr);
        exit(1);
    }
    k->is_path = is_path;
    k->next = t->kept;
    t->kept = k;
    return k->text;
}

void test_free_kept(struct test *t)
{
    while (t->kept) {
        struct test_kept *k = t->kept;
        t->kept = k->next;
        if (k->is_path)
            remove(k->text);
        free(k);
    }
}

static const char *join(struct test *t, const char *dir, const char *name, bool is_path)
{
    size_t size = strlen(dir) + strlen(name) + 2;
    char *path = keep(t, size, is_path);

    snprintf(path, size, "%s/%s", dir, name);
    return path;
}

const char *test_data(struct test *t, const char *name)
{
    const char *root = getenv("RLX_TEST_DATA");

    if (!root || !*root) {
        test_skip(t, "RLX_TEST_DATA is not set, and this needs %s from there", name);
        return NULL;
    }
    const char *path = join(t, root, name, false);
    if (access(path, R_OK) == 0)
        return path;
    test_fail(t, t->about->file, t->about->line, "%s: %s", path, strerror(errno));
    return NULL;
}

const char *test_source(struct test *t, const char *name)
{
    return join(t, RLX_SOURCE_DIR, name, false);
}

const char *test_built(struct test *t, const char *name)
{
    return join(t, RLX_BUILD_DIR, name, false);
}

const char *test_temp(struct test *t, const char *name)
{
    const char *root = getenv("TMPDIR");
    char file[300];

    snprintf(file, sizeof file, "rlx-tests.%ld.%s", (long)getpid(), name);
    return join(t, root && *root ? root : "/tmp", file, true);
}

const char *test_read(struct test *t, const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    char *text = NULL;

    if (!f || fstat(fileno(f), &st) != 0) {
        test_fail(t, t->about->file, t->about->line, "%s: %s", path, strerror(errno));
    } else {
        size_t size = (size_t)st.st_size;
        text = keep(t, size + 1, false);
        if (fread(text, 1, size, f) != size) {
            test_fail(t, t->about->file, t->about->line, "%s: cannot be read in full", path);
            text = NULL;
        } else if (len) {
            *len = size;
        }
    }
    if (f)
        fclose(f);
    return text;
}

bool test_write(struct test *t, const char *path, const void *data, size_t len)
{
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(data, 1, len, f) == len;

    if (f && fclose(f) != 0)
        ok = false;
    if (!ok)
        test_fail(t, t->about->file, t->about->line, "cannot write %s: %s", path, strerror(errno));
    return ok;
}

/* ---- when a test takes the process down ----------------------------------------------------- */

static void say(const char *text)
{
    ssize_t ignored = write(STDOUT_FILENO, text, strlen(text));
    (void)ignored;
}

static void name_running(const char *what)
{
    const struct test_case *c = running;

    if (!c)
        return;
    say(what);
    say(c->suite);
    say(".");
    say(c->name);
    say("\n");
}

static void on_crash(int sig)
{
    name_running("crashed: ");
    signal(sig, SIG_DFL);
    raise(sig);
}

static void on_alarm(int sig)
{
    (void)sig;
    name_running("took too long: ");
    _exit(1);
}

static void on_sanitizer_death(void)
{
    name_running("crashed: ");
}

/* There when a sanitizer is; it then has its own handlers for crashes, better than ours. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

/* Read by the address sanitizer, if it is in: a request too large to meet gets NULL, as it would
 * without it. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:detect_stack_use_after_return=1";
}

static void install_handlers(void)
{
    const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

    signal(SIGALRM, on_alarm);
    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(on_sanitizer_death);
        return;
    }
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        signal(fatal[i], on_crash);
}

/* Seconds one test may take; 0: as long as it likes. */
static unsigned seconds_allowed(void)
{
    const char *v = getenv("RLX_TEST_TIMEOUT");

    if (v && *v)
        return (unsigned)strtoul(v, NULL, 10);
    return test_full() ? 0 : 300;
}

/* ---- choosing ------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const struct test_case *x = *(struct test_case *const *)a, *y = *(struct test_case *const *)b;
    int order = strcmp(x->suite, y->suite);

    return order ? order : strcmp(x->name, y->name);
}

static bool wanted(const struct options *o, const struct test_case *c)
{
    char full[256];

    if (o->fast && c->slow)
        return false;
    snprintf(full, sizeof full, "%s.%s", c->suite, c->name);
    for (int i = 0; i < o->without_count; i++)
        if (strstr(full, o->without[i]))
            return false;
    for (int i = 0; i < o->filter_count; i++)
        if (strstr(full, o->filters[i]))
            return true;
    return o->filter_count == 0;
}

/* Slow ones first, so that no process is left with one at the end. */
static int by_slowness(const void *a, const void *b)
{
    const struct test_case *x = *(struct test_case *const *)a, *y = *(struct test_case *const *)b;

    return x->slow != y->slow ? y->slow - x->slow : by_name(a, b);
}

/* The wanted tests in order of name, NULL at the end. NULL if two share a name. */
static struct test_case **choose(const struct options *o, size_t *count)
{
    size_t n = 0, kept = 0;

    for (struct test_case *c = all_cases; c; c = c->next)
        n++;
    struct test_case **list = calloc(n + 1, sizeof(*list));
    if (!list)
        return NULL;
    n = 0;
    for (struct test_case *c = all_cases; c; c = c->next)
        list[n++] = c;
    qsort(list, n, sizeof(*list), by_name);
    for (size_t i = 1; i < n; i++) {
        if (by_name(&list[i - 1], &list[i]) == 0) {
            printf("%s:%d: %s.%s is also the name of a test at %s:%d\n", list[i]->file,
                   list[i]->line, list[i]->suite, list[i]->name, list[i - 1]->file,
                   list[i - 1]->line);
            free(list);
            return NULL;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (wanted(o, list[i]))
            list[kept++] = list[i];
    if (o->jobs > 1)
        qsort(list, kept, sizeof(*list), by_slowness);
    *count = kept;
    return list;
}

/* ---- running -------------------------------------------------------------------------------- */

enum outcome { PASSED, FAILED, SKIPPED, OUTCOMES };

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static enum outcome run_one(const struct test_case *c, const struct options *o)
{
    struct test t = {.about = c};
    double start = now();

    running = c;
    alarm(seconds_allowed());
    c->run(&t);
    alarm(0);
    running = NULL;
    test_free_kept(&t);
    if (o->times)
        printf("%8.3f s  %s.%s\n", now() - start, c->suite, c->name);
    if (!t.skipped && t.checks == 0)
        test_fail(&t, c->file, c->line, "checked nothing");
    if (t.failures) {
        printf("failed: %s.%s: %llu of %llu checks\n", c->suite, c->name,
               (unsigned long long)t.failures, (unsigned long long)t.checks);
        return FAILED;
    }
    if (t.skipped) {
        printf("skipped: %s.%s: %s\n", c->suite, c->name, t.why);
        return SKIPPED;
    }
    return PASSED;
}

/* What the processes of a run share. */
struct shared {
    atomic_size_t next; /* test to run */
    atomic_uint tally[OUTCOMES];
};

static void work(struct test_case **list, size_t count, const struct options *o, struct shared *s)
{
    for (;;) {
        size_t i = atomic_fetch_add(&s->next, 1);
        if (i >= count)
            return;
        s->tally[run_one(list[i], o)]++;
        fflush(stdout);
    }
}

static bool start_worker(struct test_case **list, size_t count, const struct options *o,
                         struct shared *s)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        work(list, count, o, s);
        exit(0); /* where a sanitizer looks for leaks */
    }
    if (pid < 0) {
        printf("failed: rlx-tests: no further process: %s\n", strerror(errno));
        s->tally[FAILED]++;
    }
    return pid > 0;
}

/* A worker that a test took down, or that leaked, is one failure; another takes its place. */
static void run_workers(struct test_case **list, size_t count, const struct options *o,
                        struct shared *s)
{
    int running_now = 0, status;

    setvbuf(stdout, NULL, _IOLBF, 0); /* lines of several processes stay whole */
    for (int i = 0; i < o->jobs; i++)
        running_now += start_worker(list, count, o, s);
    while (running_now > 0 && wait(&status) > 0) {
        running_now--;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        printf("failed: a process of tests ended with %s %d\n",
               WIFEXITED(status) ? "status" : "signal",
               WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        s->tally[FAILED]++;
        if (s->next < count)
            running_now += start_worker(list, count, o, s);
    }
}

static int run_all(struct test_case **list, size_t count, const struct options *o)
{
    struct shared *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (s == MAP_FAILED) {
        fputs("rlx-tests: no memory for the harness itself\n", stderr);
        return 1;
    }
    install_handlers();
    if (o->jobs > 1)
        run_workers(list, count, o, s);
    else
        work(list, count, o, s);
    if (count == 0) {
        puts("rlx-tests: no test has such a name");
        s->tally[FAILED]++;
    }
    printf("%u passed, %u failed, %u skipped\n", s->tally[PASSED], s->tally[FAILED],
           s->tally[SKIPPED]);
    return s->tally[FAILED] != 0;
}

static int usage(FILE *to, int status)
{
    fputs("usage: rlx-tests [--list] [--fast] [--times] [--jobs N] [--filter PART]...\n"
          "                 [--without PART]...\n"
          "  --list         print the names and stop\n"
          "  --fast         leave the slow tests out\n"
          "  --times        print how long each test took\n"
          "  --jobs N       in N processes, slow tests first\n"
          "  --filter PART  only tests with PART in suite.name; may be repeated\n"
          "  --without PART  no tests with PART in suite.name; may be repeated\n"
          "RLX_TEST_DATA: folder of test data. RLX_TEST_FULL=1: long runs.\n"
          "RLX_TEST_TIMEOUT: seconds one test may take, 0 for any.\n",
          to);
    return status;
}

/* -1: go on; otherwise the exit status. */
static int parse(struct options *o, int argc, char **argv)
{
    const int most = (int)(sizeof o->filters / sizeof *o->filters);

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0)
            o->list = true;
        else if (strcmp(argv[i], "--fast") == 0)
            o->fast = true;
        else if (strcmp(argv[i], "--times") == 0)
            o->times = true;
        else if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0)
            o->jobs = atoi(argv[++i]);
        else if (strcmp(argv[i], "--without") == 0 && i + 1 < argc && o->without_count < most)
            o->without[o->without_count++] = argv[++i];
        else if (strcmp(argv[i], "--filter") == 0 && i + 1 < argc && o->filter_count < most)
            o->filters[o->filter_count++] = argv[++i];
        else if (strcmp(argv[i], "--help") == 0)
            return usage(stdout, 0);
        else
            return usage(stderr, 2);
    }
    return -1;
}

int main(int argc, char **argv)
{
    struct options o = {0};
    size_t count = 0;
    int status = parse(&o, argc, argv);

    if (status >= 0)
        return status;
    struct test_case **list = choose(&o, &count);
    if (!list)
        return 1;
    if (!getenv("XDG_RUNTIME_DIR"))
        setenv("WAYLAND_DISPLAY", "/nonexistent", 0); /* as in the command: cli/main.c */
    setenv("RLX_GPU_CACHE", "0", 0); /* tests leave nothing behind, unless they ask for it */
    if (!o.list)
        status = run_all(list, count, &o);
    else
        status = 0;
    for (size_t i = 0; o.list && i < count; i++)
        printf("%s.%s%s\n", list[i]->suite, list[i]->name, list[i]->slow ? "  (slow)" : "");
    free(list);
    return status;
}
