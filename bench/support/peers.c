/* peers.c: what all peers have in common, and OpenBLAS. */
#include "peers.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "peers_impl.h"

void *peer_call_new(struct peers *p, size_t size, void (*close)(struct peer_call *c))
{
    struct peer_call *c = calloc(1, size);

    if (!c)
        give_up("out of memory");
    c->next = p->calls;
    c->close = close;
    p->calls = c;
    return c;
}

float *peer_values(int64_t count)
{
    float *v = aligned_alloc(64, ((size_t)count * sizeof *v + 63) / 64 * 64);

    if (!v)
        give_up("out of memory");
    for (int64_t i = 0; i < count; i++)
        v[i] = (float)(i % 17 - 8) * 0.125f;
    return v;
}

struct peers *peers_open(int threads)
{
    struct peers *p = calloc(1, sizeof *p);
    char count[16];

    if (!p)
        give_up("out of memory");
    /* Both libraries read these when they are loaded. Debian's OpenBLAS does not know newer
     * processors, and its oneDNN 2.6 crashes where it would use AMX; f32 loses nothing by that. */
    snprintf(count, sizeof count, "%d", threads);
    setenv("OMP_NUM_THREADS", count, 1);
    setenv("OPENBLAS_NUM_THREADS", count, 1);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 0);
    setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16", 0);
#endif
    openblas_open(p, threads);
    onednn_open(p);
    fftw_open(p, threads);
    return p;
}

void peers_close(struct peers *p)
{
    while (p->calls) {
        struct peer_call *c = p->calls;
        p->calls = c->next;
        c->close(c);
    }
    onednn_close(p);
    fftw_close(p);
    free(p); /* the libraries stay: their threads may still be in them */
}

/* ---- OpenBLAS ---- */

enum { CBLAS_ROW_MAJOR = 101, CBLAS_NO_TRANSPOSE = 111 };
typedef void sgemm_fn(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                      const float *a, int lda, const float *b, int ldb, float beta, float *c,
                      int ldc);

struct openblas_matmul {
    struct peer_call base;
    sgemm_fn *sgemm;
    int m, n, k;
    float *a, *b, *c;
};

void openblas_open(struct peers *p, int threads)
{
    void (*set_threads)(int);
    const char *(*corename)(void);

    snprintf(p->openblas_name, sizeof p->openblas_name, "OpenBLAS");
    p->openblas = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!p->openblas) {
        snprintf(p->openblas_missing, sizeof p->openblas_missing, "%s", dlerror());
        return;
    }
    *(void **)&set_threads = dlsym(p->openblas, "openblas_set_num_threads");
    *(void **)&corename = dlsym(p->openblas, "openblas_get_corename");
    if (!dlsym(p->openblas, "cblas_sgemm") || !set_threads) {
        snprintf(p->openblas_missing, sizeof p->openblas_missing,
                 "libopenblas.so.0 has no cblas_sgemm");
        return;
    }
    set_threads(threads);
    if (corename)
        snprintf(p->openblas_name, sizeof p->openblas_name, "OpenBLAS (%s)", corename());
}

static void openblas_call(void *user)
{
    struct openblas_matmul *x = user;

    x->sgemm(CBLAS_ROW_MAJOR, CBLAS_NO_TRANSPOSE, CBLAS_NO_TRANSPOSE, x->m, x->n, x->k, 1, x->a,
             x->k, x->b, x->n, 0, x->c, x->n);
}

static void openblas_call_close(struct peer_call *c)
{
    struct openblas_matmul *x = (struct openblas_matmul *)c;

    free(x->a);
    free(x->b);
    free(x->c);
    free(x);
}

struct side peer_openblas_matmul(struct peers *p, const struct matmul_shape *s)
{
    struct side side = {.name = p->openblas_name, .call = openblas_call};

    if (p->openblas_missing[0]) {
        side.missing = p->openblas_missing;
        return side;
    }
    struct openblas_matmul *x = peer_call_new(p, sizeof *x, openblas_call_close);
    *(void **)&x->sgemm = dlsym(p->openblas, "cblas_sgemm");
    x->m = (int)s->m, x->n = (int)s->n, x->k = (int)s->k;
    x->a = peer_values(s->m * s->k);
    x->b = peer_values(s->k * s->n);
    x->c = peer_values(s->m * s->n);
    side.user = x;
    return side;
}
