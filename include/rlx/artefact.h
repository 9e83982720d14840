/* artefact.h: compiled programs in files, so that another process need not compile.
 *
 * An artefact holds a model's own graph, the programs that a session compiled (optimised graph,
 * steps, memory plan) and, if wanted, the weights. It holds nothing executable and trusts nothing
 * it holds: on loading, graphs are parsed and verified, nodes become steps again, and saved offsets
 * are used only if they are a sound plan for those very steps. On another device, or with other
 * options, what cannot be used is compiled again from the model's graph.
 *
 * rlx_model_load reads artefacts like any other model: sessions of that model take the programs
 * that fit them. docs/artefacts.md describes the file. */
#ifndef RLX_ARTEFACT_H
#define RLX_ARTEFACT_H

#ifndef RLX_UNSTABLE
#error "rlx/artefact.h may change with any version: define RLX_UNSTABLE before including it"
#endif

#include "rlx/load.h"
#include "rlx/session.h"

#ifdef __cplusplus
extern "C" {
#endif

enum rlx_save_flags {
    RLX_SAVE_WEIGHTS = 1,       /* the params that are set, in the file itself */
    RLX_SAVE_WEIGHTS_BESIDE = 2 /* the same in PATH.weights, which the file refers to */
};

/* The session's model and all programs it has now. Replaces the file in one step. STATE while the
 * session runs. */
RLX_API rlx_status rlx_session_save(rlx_session *s, const char *path, unsigned flags,
                                    rlx_error *err);

/* An artefact opened on a device with all its programs, as far as a session keeps that many: what
 * rlx_model_load, rlx_session_create and rlx_session_prepare do together. FORMAT names what is
 * wrong in a damaged file, VERSION a file that this library is too old for. rlx_session_compiled
 * says how each came about. */
RLX_API rlx_status rlx_session_load(rlx_device *dev, const char *path, const rlx_load_desc *load,
                                    const rlx_session_desc *desc, rlx_model **model,
                                    rlx_session **session, rlx_error *err);

/* How the programs of a session came about, since it was made. */
typedef struct rlx_compiled_info {
    uint32_t size;
    uint32_t programs;      /* in all */
    uint32_t from_artefact; /* of them: the graph was optimised already, in the model's artefact */
    uint32_t from_cache;    /* likewise, in the context's cache folder */
    uint32_t restored;      /* of both: the memory plan was taken over, too */
    uint32_t passes;        /* over graphs, made for the others */
    char why[160]; /* why the last program that a file had was compiled or planned again; or "" */
} rlx_compiled_info;
RLX_API rlx_status rlx_session_compiled(const rlx_session *s, rlx_compiled_info *out,
                                        rlx_error *err);

/* Does the param have a value: set by rlx_model_set_param, or in the model's artefact? */
RLX_API bool rlx_model_has_param(const rlx_model *m, rlx_str name);

/* What a model's artefact holds. */
typedef struct rlx_artefact_info {
    uint32_t size;
    uint32_t format, library; /* versions; library as in RLX_VERSION */
    char backend[32], device[128];
    uint32_t programs;
    uint32_t weights;      /* params that have a value in it */
    uint64_t weight_bytes; /* of them */
    bool weights_beside;   /* in a file of their own */
} rlx_artefact_info;
/* STATE: the model was not loaded from one. */
RLX_API rlx_status rlx_model_artefact(const rlx_model *m, rlx_artefact_info *out, rlx_error *err);
typedef struct rlx_artefact_program {
    char sizes[128]; /* of the symbolic dims: "batch=1 seq<=128"; "" if there are none */
    uint32_t steps;
    uint64_t activations, constants; /* bytes */
} rlx_artefact_program;
/* Program number i; false: there are no more. */
RLX_API bool rlx_model_artefact_program(const rlx_model *m, size_t i, rlx_artefact_program *out);

#ifdef __cplusplus
}
#endif
#endif
