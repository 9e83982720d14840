/* compilation.h: a compile on its way, and its stages, in the order in which compile.c has them. */
#ifndef COMPILE_COMPILATION_H
#define COMPILE_COMPILATION_H

#include "compile/cache/artefact.h"
#include "compile/compile.h"
#include "compile/compile_watch.h"
#include "compile/stage_options.h"
#include "pass/static_pack.h"

#ifdef NDEBUG
enum { CHECK_ALWAYS = false };
#else
enum { CHECK_ALWAYS = true }; /* debug builds verify after every pass, and every plan */
#endif

struct compilation {
    const struct compile_request *request;
    struct compiled_program *out;
    struct diag *d;
    struct arena scratch;
    struct stage_options stage;
    struct ir_module *mod;       /* what becomes the program's */
    struct ir_module *symbolic;  /* the same with symbols; NULL: none stays */
    struct static_part fixed;    /* what is computed from weights alone */
    struct program_slot *inputs; /* all of the model's, in its order */
    size_t input_count;
    struct size_probes probes; /* of the symbols that stay */
    struct reuse reuse;        /* what a file has of this compile's work */
    struct compile_watch watch;
};

/* From the model to a module with sizes: k->mod. */
rlx_status stage_bind(struct compilation *k);
/* What a file has: k->reuse; *made: all of it could be used, and the program is there. */
rlx_status stage_reuse(struct compilation *k, bool *made);
rlx_status stage_passes(struct compilation *k);
/* Of a stranger's file: its graph must be the one that the passes made. */
rlx_status stage_compare(struct compilation *k);
rlx_status stage_split(struct compilation *k);
rlx_status stage_size(struct compilation *k);
/* Selects, plans and loads: program_create does these three. */
rlx_status stage_program(struct compilation *k);

/* compile.c: the stages after the passes. */
rlx_status compile_optimised(struct compilation *k);

#endif
