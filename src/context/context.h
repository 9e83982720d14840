/* context.h: what all objects of a program share, and the devices it has open.
 *
 *     rlx_context   counted; one per program, immutable but for its list of open devices
 *       rlx_device  counted; a backend's device
 *       rlx_model   counted; a module and the values of its params  (model/model.h)
 *         store     counted; the params of one model on one device  (model/store.h)
 *           rlx_session   programs (one per binding), states, what is running  (session/session.h)
 *
 * Whatever names another object counts it: all have a context, sessions a model and a device. So
 * they may be destroyed in any order. */
#ifndef CONTEXT_H
#define CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include "backend/backend.h"
#include "base/flags.h"
#include "ir/custom.h"
#include "rlx/debug.h"

struct rlx_context {
    atomic_int refs; /* the program's own, and one for every object of it */
    rlx_allocator mem;
    void (*log)(void *user, int level, const char *line);
    void *log_user;
    struct ir_customs customs;
    rlx_custom_op *custom; /* those of customs */
    int32_t threads;
    char *cache_dir; /* of compiled programs; NULL: none */
    uint64_t cache_bytes;
    pthread_mutex_t lock; /* of devices */
    VEC(struct rlx_device *) device;
    VEC(rlx_device_info) known; /* as rlx_device_at tells of them, once it was asked */
    bool listed;
    struct flags flags;
    struct trace *trace; /* NULL: none is wanted */
};

struct rlx_device {
    struct rlx_context *ctx;
    struct backend *backend;
    char name[32];
    int refs; /* under the context's lock */
};

rlx_status context_create(const rlx_context_desc *desc, struct rlx_context **out, struct diag *d);
struct rlx_context *context_retain(struct rlx_context *ctx);
void context_release(struct rlx_context *ctx); /* one reference; NULL is fine */
rlx_status device_open(struct rlx_context *ctx, rlx_str name, struct rlx_device **out,
                       struct diag *d);
void device_retain(struct rlx_device *dev);
void device_release(struct rlx_device *dev); /* one reference; NULL is fine */
bool device_at(struct rlx_context *ctx, size_t i, rlx_device_info *out); /* false: there is none */

/* context_flags.c: what the context's flags say where the caller said nothing. */
void flags_apply(const struct rlx_context *ctx, rlx_session_desc *desc, rlx_debug_desc *debug);
static inline const struct flag_value *context_flag(const struct rlx_context *ctx, enum flag_id id)
{
    return &ctx->flags.at[id];
}
/* What "auto" means here (RLX_DEVICE, RLX_DEVICES, else the first there is). */
rlx_str flags_auto_device(const struct rlx_context *ctx);
/* May a device of that name be opened? Or, if asked, one that is a kind of it? (RLX_DEVICES) */
bool flags_allow_device(const struct rlx_context *ctx, rlx_str name, bool or_kind_of_it);

/* One line for whoever listens, if anybody does. */
void context_log(const struct rlx_context *ctx, int level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Each line of it that is not empty. */
void context_log_text(const struct rlx_context *ctx, int level, rlx_str lines);

#endif
