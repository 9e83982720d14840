/* ceiling.c: what this machine can do at best, measured once and kept in a file of the user's
 * cache.
 *
 *     $XDG_CACHE_HOME/rlx/ceilings-THREADS, or ~/.cache/rlx/ceilings-THREADS
 *
 *     rlx ceilings 1
 *     the CPU's model
 *     threads
 *     multiply-adds per second, copied bytes per second
 *
 * A file that is not just like that, or is about another CPU, is measured anew and replaced. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "api/objects.h"
#include "base/file.h"
#include "base/rate.h"
#include "base/str.h"
#include "rlx/tools.h"

#define HEADER "rlx ceilings 1"

/* As the system tells it; the machine's name for an architecture where it tells nothing. */
static void cpu_model(char *out, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[512];
    struct utsname u;

    snprintf(out, size, "%s", uname(&u) == 0 ? u.machine : "unknown");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        colon[strcspn(colon, "\n")] = 0;
        snprintf(out, size, "%s", colon);
        break;
    }
    if (f)
        fclose(f);
}

/* false: there is no place for a cache. */
static bool cache_path(int threads, char *folder, char *path, size_t size)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool given = xdg && xdg[0] == '/';
    int len;

    if (!given && (!home || home[0] != '/'))
        return false;
    len = snprintf(folder, size, "%s%s/rlx", given ? xdg : home, given ? "" : "/.cache");
    if (len < 0 || (size_t)len >= size)
        return false;
    len = snprintf(path, size, "%s/ceilings-%d", folder, threads);
    return len > 0 && (size_t)len < size;
}

static rlx_str next_line(rlx_str *rest)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    rlx_str line = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};

    rest->ptr += line.len + (end != NULL);
    rest->len -= line.len + (end != NULL);
    return line;
}

static bool sensible(double v)
{
    return isfinite(v) && v > 1e6 && v < 1e18;
}

/* Believes nothing that is not exactly what store would write for this machine. */
static bool load(const char *path, const rlx_allocator *mem, rlx_ceilings *c)
{
    struct file f;
    struct diag d;
    int64_t threads = 0;
    rlx_ceilings read = *c;

    diag_init(&d, "cache");
    if (file_open(&f, path, FILE_READ, mem, &d) != RLX_OK)
        return false;
    rlx_str rest = {(const char *)f.data, f.size < 4096 ? f.size : 0};
    bool ok = str_eq(next_line(&rest), STR(HEADER)) && str_eq(next_line(&rest), rlx_cstr(c->cpu)) &&
              str_to_i64(next_line(&rest), &threads) && threads == c->threads;
    rlx_str flops = next_line(&rest), copy = next_line(&rest);
    ok = ok && str_to_f64(flops, &read.flops) && str_to_f64(copy, &read.copy_bytes) &&
         sensible(read.flops) && sensible(read.copy_bytes) && rest.len == 0;
    file_close(&f);
    if (ok)
        *c = read;
    return ok;
}

/* Not being able to is no failure: next time it is measured again. */
static void store(const char *folder, const char *path, const rlx_ceilings *c)
{
    char text[512], flops[32], copy[32], parent[PATH_MAX];
    struct diag d;

    diag_init(&d, "cache");
    str_from_f64(flops, c->flops);
    str_from_f64(copy, c->copy_bytes);
    int len =
        snprintf(text, sizeof text, HEADER "\n%s\n%d\n%s\n%s\n", c->cpu, c->threads, flops, copy);
    snprintf(parent, sizeof parent, "%.*s", (int)(strlen(folder) - strlen("/rlx")), folder);
    mkdir(parent, 0700);
    mkdir(folder, 0700);
    file_write_private(path, text, (size_t)len, &d);
}

static rlx_status measure(rlx_context *ctx, bool fresh, rlx_ceilings *out, struct diag *d)
{
    char folder[PATH_MAX], path[PATH_MAX];
    rlx_ceilings c = {0};
    struct pool *pool;
    struct rate rate;

    TRY(pool_create(&pool, ctx->threads, &ctx->mem, d));
    c.threads = pool_threads(pool);
    cpu_model(c.cpu, sizeof c.cpu);
    bool cache = cache_path(c.threads, folder, path, sizeof path);
    rlx_status s = RLX_OK;
    bool known = cache && !fresh && load(path, &ctx->mem, &c);
    c.cached = known;
    if (!c.cached) {
        s = rate_measure(pool, &ctx->mem, &rate, d);
        if (s == RLX_OK) {
            c.flops = rate.flops;
            c.copy_bytes = rate.copy;
        }
        if (s == RLX_OK && cache)
            store(folder, path, &c);
    }
    pool_destroy(pool);
    if (s == RLX_OK)
        *out = c;
    return s;
}

rlx_status rlx_ceilings_measure(rlx_context *ctx, bool fresh, rlx_ceilings *out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "ceilings");
    if (!ctx || !out)
        diag_fail(&d, RLX_ERROR_ARGUMENT, "%s is NULL", ctx ? "out" : "ctx");
    else
        measure(ctx, fresh, out, &d);
    return diag_report(&d, err);
}
