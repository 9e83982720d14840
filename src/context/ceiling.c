/* ceiling.c: what a device can do at best, measured once and kept in a file of the user's cache.
 *
 *     $XDG_CACHE_HOME/rlx/ceilings-WHICH, or ~/.cache/rlx/ceilings-WHICH
 *     WHICH: how many threads of the CPU, or a GPU's name, like vulkan:0
 *
 *     rlx ceilings 1
 *     the CPU's model, or what the GPU calls itself
 *     threads
 *     multiply-adds per second, copied bytes per second
 *
 * A file that is not just like that, or is about another device, is measured again and replaced. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/file.h"
#include "base/str.h"
#include "context/ceiling.h"
#include "context/context.h"
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
static bool cache_path(const char *which, char *folder, char *path, size_t size)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool given = xdg && xdg[0] == '/';
    int len;

    if (!given && (!home || home[0] != '/'))
        return false;
    len = snprintf(folder, size, "%s%s/rlx", given ? xdg : home, given ? "" : "/.cache");
    if (len < 0 || (size_t)len >= size)
        return false;
    len = snprintf(path, size, "%s/ceilings-%s", folder, which);
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
    bool ok = str_eq(next_line(&rest), STR(HEADER)) &&
              str_eq(next_line(&rest), rlx_cstr(c->device)) &&
              str_to_i64(next_line(&rest), &threads) && threads == c->threads;
    rlx_str flops = next_line(&rest), copy = next_line(&rest);
    ok = ok && str_to_f64(flops, &read.flops) && str_to_f64(copy, &read.copy_bytes) &&
         sensible(read.flops) && sensible(read.copy_bytes) && rest.len == 0;
    file_close(&f);
    if (ok)
        *c = read;
    return ok;
}

/* Being unable to is not a failure: next time it is measured again. */
static void store(const char *folder, const char *path, const rlx_ceilings *c)
{
    char text[512], flops[32], copy[32], parent[PATH_MAX];
    struct diag d;

    diag_init(&d, "cache");
    str_from_f64(flops, c->flops);
    str_from_f64(copy, c->copy_bytes);
    int len = snprintf(text, sizeof text, HEADER "\n%s\n%d\n%s\n%s\n", c->device, c->threads, flops,
                       copy);
    snprintf(parent, sizeof parent, "%.*s", (int)(strlen(folder) - strlen("/rlx")), folder);
    mkdir(parent, 0700);
    mkdir(folder, 0700);
    file_write_private(path, text, (size_t)len, &d);
}

/* Which device it is, and the name of its file. */
static void identify(rlx_device *dev, rlx_ceilings *c, char *which, size_t size)
{
    struct target t;

    dev->backend->ops->describe(dev->backend, &t);
    snprintf(c->name, sizeof c->name, "%s", dev->name);
    c->threads = t.threads;
    if (t.threads) {
        cpu_model(c->device, sizeof c->device);
        snprintf(which, size, "%d", t.threads);
        return;
    }
    snprintf(c->device, sizeof c->device, "%s", t.description);
    c->device[strcspn(c->device, "\n")] = 0;
    snprintf(which, size, "%s", dev->name);
}

static rlx_status measure_host(rlx_context *ctx, struct rate *out, struct diag *d)
{
    struct pool *pool;

    TRY(pool_create(&pool, ctx->threads, &ctx->mem, d));
    rlx_status s = rate_measure(pool, &ctx->mem, out, d);
    pool_destroy(pool);
    return s;
}

rlx_status ceilings_measure(rlx_device *dev, bool fresh, rlx_ceilings *out, struct diag *d)
{
    char folder[PATH_MAX], path[PATH_MAX], which[64];
    const rlx_allocator *mem = &dev->ctx->mem;
    rlx_ceilings c = {0};
    struct target target;
    struct rate rate;

    identify(dev, &c, which, sizeof which);
    dev->backend->ops->describe(dev->backend, &target);
    bool cache = cache_path(which, folder, path, sizeof path);
    c.cached = cache && !fresh && load(path, mem, &c);
    if (!c.cached && !target.computes_nothing) {
        TRY(c.threads ? measure_host(dev->ctx, &rate, d)
                      : ceiling_of_device(dev->backend, mem, &rate, d));
        c.flops = rate.flops;
        c.copy_bytes = rate.copy;
        if (cache)
            store(folder, path, &c);
    }
    *out = c;
    return RLX_OK;
}
