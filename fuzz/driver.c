/* driver.c: a main for fuzz targets, where the compiler brings none of its own.
 *
 * targets.c defines LLVMFuzzerTestOneInput. This driver first runs every file it is given (a folder
 * means the files in it), then mutates them at random until its time is over. Its options
 * are spelled like libFuzzer's, so that one command line serves both. An input that crashes the
 * target is saved to <artifact_prefix>crash before the process ends. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    uint8_t *data;
    size_t size;
};

struct options {
    long seconds;    /* to mutate for; 0: only run the files */
    long per_input;  /* seconds one input may take */
    size_t max_size; /* bytes a mutated input may have */
    uint64_t seed;
    const char *artifacts;
};

static struct input *corpus;
static size_t corpus_count, corpus_room;

/* What the handlers save. */
static struct input current;
static char crash_path[1024];

/* ---- when the target goes down -------------------------------------------------------------- */

static void say(const char *text)
{
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
    (void)ignored;
}

/* Called from signal handlers: nothing here may allocate or lock. */
static void save_current(const char *why)
{
    int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ssize_t done = -1;

    if (fd >= 0) {
        done = write(fd, current.data, current.size);
        close(fd);
    }
    say(why);
    say(done == (ssize_t)current.size ? "; its input is saved to " : "; cannot save its input to ");
    say(crash_path);
    say("\n");
}

static void on_crash(int sig)
{
    save_current("crashed");
    signal(sig, SIG_DFL);
    raise(sig);
}

static void on_alarm(int sig)
{
    (void)sig;
    save_current("took too long");
    _exit(1);
}

static void on_sanitizer_death(void)
{
    save_current("crashed");
}

/* There when a sanitizer is; it then handles the signals itself. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void install_handlers(const char *artifacts)
{
    const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

    snprintf(crash_path, sizeof crash_path, "%scrash", artifacts);
    signal(SIGALRM, on_alarm);
    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(on_sanitizer_death);
        return;
    }
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        signal(fatal[i], on_crash);
}

/* ---- the corpus ----------------------------------------------------------------------------- */

static void die(const char *what, const char *path)
{
    fprintf(stderr, "%s: %s\n", path, what);
    exit(2);
}

static void add_file(const char *path, long size)
{
    struct input in = {.data = malloc((size_t)size + 1), .size = (size_t)size};
    FILE *f = fopen(path, "rb");

    if (corpus_count == corpus_room) {
        corpus_room = corpus_room ? corpus_room * 2 : 64;
        corpus = realloc(corpus, corpus_room * sizeof *corpus);
    }
    if (!corpus || !in.data || !f || fread(in.data, 1, in.size, f) != in.size)
        die("cannot be read", path);
    fclose(f);
    corpus[corpus_count++] = in;
}

static void add_path(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        die("is not there", path);
    if (!S_ISDIR(st.st_mode)) {
        add_file(path, (long)st.st_size);
        return;
    }
    DIR *dir = opendir(path);
    if (!dir)
        die("cannot be listed", path);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        char inner[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
        add_path(inner);
    }
    closedir(dir);
}

/* ---- mutation ------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    /* splitmix64: any seed will do, and one seed always gives one run. */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t below(uint64_t *state, size_t n)
{
    return n ? (size_t)(next_random(state) % n) : 0;
}

/* Moves the tail so that `bytes` new ones fit at `at`, as far as there is room. */
static size_t open_gap(struct input *in, size_t at, size_t bytes, size_t max_size)
{
    if (bytes > max_size - in->size)
        bytes = max_size - in->size;
    memmove(in->data + at + bytes, in->data + at, in->size - at);
    in->size += bytes;
    return bytes;
}

static void overwrite_number(struct input *in, uint64_t *rng)
{
    static const uint64_t telling[] = {0,          1,          0x7f,          0x80,
                                       0xff,       0x7fff,     0x8000,        0xffff,
                                       0x7fffffff, 0x80000000, 0xffffffff,    0x100000000,
                                       INT64_MAX,  UINT64_MAX, UINT64_MAX / 8};
    uint64_t value = telling[below(rng, sizeof telling / sizeof *telling)];
    size_t width = (size_t)1 << below(rng, 4);

    if (width <= in->size)
        memcpy(in->data + below(rng, in->size - width + 1), &value, width);
}

static void overwrite_text(struct input *in, uint64_t *rng)
{
    static const char telling[] = "0123456789-+.eE[](){}<>,:;=%\"'\\/# \n\t_axX";

    if (in->size)
        in->data[below(rng, in->size)] = (uint8_t)telling[below(rng, sizeof telling - 1)];
}

/* A piece of any corpus file, put in or written over. */
static void splice_piece(struct input *in, uint64_t *rng, size_t max_size)
{
    const struct input *from = &corpus[below(rng, corpus_count)];
    size_t at = below(rng, in->size + 1), start = below(rng, from->size + 1);
    size_t bytes = below(rng, from->size - start + 1);

    if (next_random(rng) & 1)
        bytes = open_gap(in, at, bytes, max_size);
    else if (bytes > in->size - at)
        bytes = in->size - at;
    memcpy(in->data + at, from->data + start, bytes);
}

static void repeat_piece(struct input *in, uint64_t *rng, size_t max_size)
{
    size_t at = below(rng, in->size + 1);

    /* The gap still holds what was moved away: the piece then stands there twice. */
    open_gap(in, at, below(rng, in->size - at + 1), max_size);
}

static void mutate_once(struct input *in, uint64_t *rng, size_t max_size)
{
    size_t at = below(rng, in->size), bytes;

    switch (below(rng, 8)) {
    case 0:
        if (in->size)
            in->data[at] ^= (uint8_t)(1u << below(rng, 8));
        break;
    case 1:
        if (in->size)
            in->data[at] = (uint8_t)next_random(rng);
        break;
    case 2: overwrite_number(in, rng); break;
    case 3: overwrite_text(in, rng); break;
    case 4: /* cut a piece out */
        bytes = below(rng, in->size - at + 1);
        memmove(in->data + at, in->data + at + bytes, in->size - at - bytes);
        in->size -= bytes;
        break;
    case 5:
        if (next_random(rng) % 16 == 0)
            in->size = at; /* cut short; rarely, since most of it is then refused early */
        break;
    case 6: repeat_piece(in, rng, max_size); break;
    default: splice_piece(in, rng, max_size);
    }
}

static void mutate(struct input *in, uint64_t *rng, size_t max_size)
{
    const struct input *from = &corpus[below(rng, corpus_count)];
    size_t times = (size_t)1 << below(rng, 5);

    in->size = from->size < max_size ? from->size : max_size;
    memcpy(in->data, from->data, in->size);
    while (times--)
        mutate_once(in, rng, max_size);
}

/* ---- running -------------------------------------------------------------------------------- */

static void run_one(struct input in, const struct options *o)
{
    /* A copy of exactly its size, so that a sanitizer sees one byte too far. */
    uint8_t *exact = malloc(in.size ? in.size : 1);

    if (!exact)
        die("no memory for an input", "driver");
    memcpy(exact, in.data, in.size);
    current = in;
    alarm((unsigned)o->per_input);
    LLVMFuzzerTestOneInput(exact, in.size);
    alarm(0);
    free(exact);
}

static bool starts(const char *arg, const char *name, const char **value)
{
    size_t n = strlen(name);

    *value = arg + n;
    return strncmp(arg, name, n) == 0;
}

static void parse(struct options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value;
        if (starts(argv[i], "-max_total_time=", &value))
            o->seconds = strtol(value, NULL, 10);
        else if (starts(argv[i], "-timeout=", &value))
            o->per_input = strtol(value, NULL, 10);
        else if (starts(argv[i], "-max_len=", &value))
            o->max_size = strtoul(value, NULL, 10);
        else if (starts(argv[i], "-seed=", &value))
            o->seed = strtoull(value, NULL, 10);
        else if (starts(argv[i], "-artifact_prefix=", &value))
            o->artifacts = value;
        else if (argv[i][0] != '-')
            add_path(argv[i]);
        else if (!starts(argv[i], "-rss_limit_mb=", &value) &&
                 !starts(argv[i], "-print_final_stats=", &value)) /* libFuzzer's alone */
            die("no such option (see fuzz/driver.c)", argv[i]);
    }
}

int main(int argc, char **argv)
{
    struct options o = {.per_input = 20, .max_size = 1 << 16, .seed = 1, .artifacts = "./"};

    parse(&o, argc, argv);
    install_handlers(o.artifacts);
    run_one((struct input){.data = (uint8_t *)"", .size = 0}, &o);
    for (size_t i = 0; i < corpus_count; i++)
        run_one(corpus[i], &o);

    static struct input none = {.data = (uint8_t *)"", .size = 0};
    struct input scratch = {.data = malloc(o.max_size + 1)};
    size_t files = corpus_count;
    uint64_t rng = o.seed, runs = 0;
    time_t end = time(NULL) + o.seconds;
    if (!scratch.data)
        die("no memory for inputs", "driver");
    if (files == 0) { /* mutations then start from nothing */
        corpus = &none;
        corpus_count = 1;
    }
    for (; time(NULL) < end; runs++) {
        mutate(&scratch, &rng, o.max_size);
        run_one(scratch, &o);
    }
    printf("%zu files and %llu mutations done\n", files, (unsigned long long)runs);
    free(scratch.data);
    for (size_t i = 0; i < files; i++)
        free(corpus[i].data);
    if (files)
        free(corpus);
    return 0;
}
