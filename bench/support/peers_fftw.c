/* peers_fftw.c: FFTW in single precision, through the few functions that are needed. The
 * declarations are ours, so that no header need be installed. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers_impl.h"

enum { FORWARD = -1, MEASURE = 0 };

typedef struct {
    int n, in_stride, out_stride;
} dimension;

struct fftw {
    void *(*plan_pairs)(int n, float *in, float *out, int sign, unsigned flags);
    void *(*plan_apart)(int rank, const dimension *dims, int batch_rank, const dimension *batch,
                        float *in_re, float *in_im, float *out_re, float *out_im, unsigned flags);
    void (*execute)(void *plan);
    void (*destroy_plan)(void *plan);
};

struct fftw_call {
    struct peer_call base;
    const struct fftw *f;
    void *plan;
    float *in, *out;
};

static bool find(struct peers *p, void *library, const char *name, void *to)
{
    *(void **)to = dlsym(library, name);
    if (!*(void **)to)
        snprintf(p->fftw_missing, sizeof p->fftw_missing, "libfftw3f.so.3 has no %s", name);
    return *(void **)to != NULL;
}

/* Plans made from here on use that many threads. */
static bool use_threads(struct peers *p, int threads)
{
    void *library = dlopen("libfftw3f_threads.so.3", RTLD_NOW | RTLD_GLOBAL);
    int (*init)(void);
    void (*set)(int);

    if (!library) {
        snprintf(p->fftw_missing, sizeof p->fftw_missing, "%s", dlerror());
        return false;
    }
    if (!find(p, library, "fftwf_init_threads", &init) ||
        !find(p, library, "fftwf_plan_with_nthreads", &set))
        return false;
    init();
    set(threads);
    return true;
}

void fftw_open(struct peers *p, int threads)
{
    void *library = dlopen("libfftw3f.so.3", RTLD_NOW | RTLD_GLOBAL);
    struct fftw *f = calloc(1, sizeof *f);

    if (!f)
        give_up("out of memory");
    p->fftw = f;
    if (!library) {
        snprintf(p->fftw_missing, sizeof p->fftw_missing, "%s", dlerror());
        return;
    }
    if (find(p, library, "fftwf_plan_dft_1d", &f->plan_pairs) &&
        find(p, library, "fftwf_plan_guru_split_dft", &f->plan_apart) &&
        find(p, library, "fftwf_execute", &f->execute) &&
        find(p, library, "fftwf_destroy_plan", &f->destroy_plan) && threads > 1)
        use_threads(p, threads);
}

void fftw_close(struct peers *p)
{
    free(p->fftw);
}

static void call(void *user)
{
    struct fftw_call *c = user;

    c->f->execute(c->plan);
}

static void call_close(struct peer_call *c)
{
    struct fftw_call *x = (struct fftw_call *)c;

    x->f->destroy_plan(x->plan);
    free(x->in);
    free(x->out);
    free(x);
}

struct side peer_fftw(struct peers *p, int64_t n, bool pairs)
{
    struct side side = {.name = pairs ? "FFTW, pairs" : "FFTW, parts apart", .call = call};
    const dimension all = {(int)n, 1, 1};

    if (p->fftw_missing[0]) {
        side.missing = p->fftw_missing;
        return side;
    }
    struct fftw_call *c = peer_call_new(p, sizeof *c, call_close);
    c->f = p->fftw;
    c->in = peer_values(2 * n);
    c->out = peer_values(2 * n);
    c->plan =
        pairs ? c->f->plan_pairs((int)n, c->in, c->out, FORWARD, MEASURE)
              : c->f->plan_apart(1, &all, 0, NULL, c->in, c->in + n, c->out, c->out + n, MEASURE);
    float *again = peer_values(2 * n); /* planning wrote over them */
    memcpy(c->in, again, (size_t)(2 * n) * sizeof *again);
    free(again);
    if (!c->plan)
        side.missing = "FFTW made no plan";
    side.user = c;
    return side;
}
