/* pool.h: worker threads that share fixed blocks of work.
 *
 * The caller cuts its work into blocks by the problem's shape alone; which thread runs which block
 * is open, so results must not depend on it. The calling thread works too. A pool of one thread
 * starts none. Workers spin briefly before they sleep. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include "base/diag.h"
#include "base/mem.h"

struct pool;
typedef void (*pool_fn)(void *ctx, int64_t block, int worker);

/* threads 0: one per core the process may use. Where the system grants fewer, those must do. */
rlx_status pool_create(struct pool **out, int threads, const rlx_allocator *mem, struct diag *d);
void pool_destroy(struct pool *p);
int pool_threads(const struct pool *p); /* workers are numbered 0 .. threads-1 */

/* fn(ctx, b, worker) for every b in [0, blocks); returns when all are done. Allocates nothing.
 * One call at a time per pool: a second thread that calls meanwhile waits its turn. A call to the
 * same pool from inside fn runs its blocks right there, under the same worker number. */
void pool_run(struct pool *p, int64_t blocks, pool_fn fn, void *ctx);

#endif
