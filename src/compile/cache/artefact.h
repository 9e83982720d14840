/* artefact.h: the file that holds compiled programs (docs/artefacts.md), from inside.
 *
 *     artefact_write.c    the container: sections, checksums, the table at the end
 *     artefact_read.c     the same from outside: nothing is looked at that was not checked
 *     artefact_program.c  a program as bytes, both ways
 *     artefact_blobs.c    constants, each once, beside the texts that name them
 *     artefact_load.c     a file into a model
 *     reuse.c             what a compile takes from a file instead of working it out
 *     disk_cache.c        one file per program, in a folder */
#ifndef COMPILE_ARTEFACT_H
#define COMPILE_ARTEFACT_H

#include "base/file.h"
#include "base/str.h"
#include "compile/compile.h"
#include "import/detect.h"

#define ARTEFACT_MAGIC DETECT_ARTEFACT_MAGIC
#define ARTEFACT_FORMAT 1
enum { ARTEFACT_HEADER = 64, ARTEFACT_ALIGN = 64, ARTEFACT_ROW = 32 };

/* The numbers are those in files. */
enum artefact_kind {
    SECTION_TARGET = 1,    /* what device the programs are for */
    SECTION_MODEL = 2,     /* names of outputs */
    SECTION_GRAPH = 3,     /* the model's graph as text */
    SECTION_PROGRAM = 4,   /* sizes of dims, steps, plan */
    SECTION_OPTIMISED = 5, /* a program's graph as text */
    SECTION_BLOB_INDEX = 6,
    SECTION_BLOBS = 7, /* bytes of constants; their checksums are in the index */
    SECTION_WEIGHT_INDEX = 8,
    SECTION_WEIGHTS = 9, /* bytes of params, likewise */
    SECTION_KEY = 10,    /* of a cached program */
    SECTION_END
};
const char *artefact_kind_name(uint32_t kind); /* "graph"; NULL: there is none */

uint64_t artefact_checksum(const void *data, size_t size);

/* ---- bytes, both ways: little-endian; a string is its length and its bytes ---- */

void put_u32(struct text *out, uint32_t v);
void put_u64(struct text *out, uint64_t v);
void put_str(struct text *out, rlx_str s);

/* Reads on after a failure give zeros; look at `why` (or reader_end) at the end. */
struct reader {
    const uint8_t *at;
    size_t left;
    const char *why; /* the first thing that went wrong; NULL: nothing yet */
};
uint32_t get_u32(struct reader *r);
uint64_t get_u64(struct reader *r);
rlx_str get_str(struct reader *r);                      /* not terminated; holds no NUL */
size_t get_count(struct reader *r, size_t least_bytes); /* of things that take so many each */
void reader_fail(struct reader *r, const char *why);
/* FORMAT if anything went wrong or anything is left. */
rlx_status reader_end(const struct reader *r, const char *what, uint32_t number, struct diag *d);

/* ---- the container ---- */

struct artefact_section {
    uint32_t kind, number;
    uint64_t offset, size, checksum;
};

struct artefact_writer {
    const rlx_allocator *mem;
    struct file_writer file;
    VEC(struct artefact_section) section;
};
rlx_status artefact_begin(struct artefact_writer *w, const char *path, enum file_access access,
                          const rlx_allocator *mem, struct diag *d);
rlx_status artefact_add(struct artefact_writer *w, enum artefact_kind kind, uint32_t number,
                        const struct text *bytes, struct diag *d);
/* A section of aligned pieces that an index with checksums describes. */
rlx_status artefact_begin_pieces(struct artefact_writer *w, enum artefact_kind kind,
                                 struct diag *d);
rlx_status artefact_add_piece(struct artefact_writer *w, const void *data, size_t size,
                              uint64_t *offset, struct diag *d);
rlx_status artefact_commit(struct artefact_writer *w, struct diag *d);
void artefact_writer_free(struct artefact_writer *w); /* gives an unfinished file up */

struct artefact_file {
    struct file file;
    bool check_sums;
    uint32_t format, library;
    struct artefact_section *section; /* in file order */
    size_t section_count;
};
bool artefact_has_magic(const struct file *f);
/* Checks header, table, section checksums and that nothing but zeros stands between sections. The
 * file stays the caller's when this fails. */
rlx_status artefact_read(struct artefact_file *a, const struct file *f, bool check_sums,
                         struct arena *arena, struct diag *d);
bool artefact_find(const struct artefact_file *a, enum artefact_kind kind, uint32_t number,
                   struct reader *out);
rlx_status artefact_need(const struct artefact_file *a, enum artefact_kind kind, uint32_t number,
                         struct reader *out, struct diag *d);
/* Pieces of `bytes` (which begins at `base` of its file) one after the other, aligned, with nothing
 * but zeros between them and after the last. */
struct piece {
    uint64_t offset, size, checksum;
};
rlx_status artefact_check_pieces(const struct artefact_file *a, enum artefact_kind kind,
                                 const struct piece *piece, size_t count, size_t stride,
                                 struct diag *d);
rlx_status artefact_check_piece(const uint8_t *data, const struct piece *p, bool check_sums,
                                const char *what, struct diag *d);

/* ---- blobs: bytes of constants ---- */

struct blob {
    struct piece piece; /* first: see artefact_check_pieces */
    struct ir_type type;
};

struct blob_writer {
    const rlx_allocator *mem;
    VEC(const struct ir_node *) node; /* the constant whose bytes blob i has */
    struct map map;
    bool no_memory;
};
void blobs_init(struct blob_writer *w, const rlx_allocator *mem);
/* The module as text; its large constants join the blobs. The module must outlive w. */
rlx_status blobs_print(struct blob_writer *w, const struct ir_module *m, struct text *out,
                       struct diag *d);
rlx_status blobs_write(struct blob_writer *w, struct artefact_writer *to, struct diag *d);
void blobs_free(struct blob_writer *w);

struct blobs {
    const struct artefact_file *file;
    struct blob *at;
    size_t count;
};
rlx_status blobs_read(struct blobs *b, const struct artefact_file *a, struct arena *arena,
                      struct diag *d);
/* A module from text that names blobs; verified. copy: the module gets bytes of its own, else the
 * file must outlive it. */
rlx_status blobs_parse(const struct blobs *b, struct reader text, bool copy, rlx_context *ctx,
                       struct ir_module **out, struct diag *d);

/* ---- programs ---- */

struct saved_program {
    uint64_t options;     /* reuse_options_key of the compile that made it */
    uint64_t fingerprint; /* of the optimised graph, with names */
    rlx_str *dim;         /* names of the dims that have a size, terminated */
    int64_t *size;        /* or minus its bound, minus 2 */
    size_t dim_count;
    struct steps steps;     /* works are NULL */
    struct plan_saved plan; /* of these steps: do not move it */
};
/* size: by symbol of dims, as reuse_sizes says. */
rlx_status saved_program_put(const struct compiled_program *p, uint64_t options,
                             const struct dim_table *dims, const int64_t *size, size_t count,
                             struct text *out, struct diag *d);
rlx_status saved_program_get(struct reader r, uint32_t number, struct arena *arena,
                             struct saved_program *out, struct diag *d);
bool saved_program_has_sizes(const struct saved_program *p, const struct dim_table *dims,
                             const int64_t *binding, size_t count);
/* The program's graph: parsed, verified, the one that was planned, and with leaves and outputs that
 * are those of the model bound to the same sizes. */
rlx_status saved_program_parse(const struct blobs *b, struct reader text,
                               const struct saved_program *p, const struct ir_module *bound,
                               bool copy, rlx_context *ctx, struct ir_module **out, struct diag *d);

/* ---- devices ---- */

struct target_note {
    rlx_str backend, description, features;
    uint64_t native; /* a number for the set of families it has kernels for */
    uint64_t alignment, max_buffer;
    int32_t threads;
};
void target_note_of(const struct target *t, struct target_note *out); /* t must outlive it */
void target_note_put(const struct target_note *n, struct text *out);
rlx_status target_note_get(struct reader r, struct target_note *out, struct diag *d);
/* Would passes and selection come to the same? And: would the planner? */
bool target_same_kernels(const struct target_note *a, const struct target_note *b);
bool target_same_limits(const struct target_note *a, const struct target_note *b);

/* ---- a model's artefact ---- */

struct artefact {
    const rlx_allocator *mem;
    struct artefact_file file;
    struct file beside; /* the weights, if they have a file of their own */
    struct arena arena;
    struct target_note target;
    struct blobs blobs;
    struct saved_program *program;
    size_t program_count;
    uint32_t weights;
    uint64_t weight_bytes;
    bool trusted; /* its graphs are believed to be made from the model */
};
/* The file becomes the model's when this succeeds. */
rlx_status artefact_load_model(rlx_context *ctx, const char *path, const struct file *f,
                               const rlx_load_desc *desc, rlx_model **out, struct diag *d);
void artefact_destroy(struct artefact *a); /* NULL is fine */
void artefact_describe(const struct artefact *a, rlx_artefact_info *out);
bool artefact_describe_program(const struct artefact *a, size_t i, rlx_artefact_program *out);

/* ---- what a compile can do without ---- */

struct reuse {
    enum { REUSE_NOTHING, REUSE_ARTEFACT, REUSE_CACHE } from;
    struct ir_module *mod;         /* optimised; whoever compiles it takes it over */
    const struct plan_saved *plan; /* NULL: plan again */
    bool must_fit;                 /* same device, same options: the plan has to */
    bool derive;                   /* a stranger's: mod has to be what the passes make */
};
/* Of everything but sizes that a program depends on: options, and which inputs are handles. */
uint64_t reuse_options_key(const struct compile_request *r);
/* What a program of that binding is for, by symbol: a size; for one that stays symbolic, minus its
 * bound, minus 2; -1: nothing. */
rlx_status reuse_sizes(const struct compile_request *r, const int64_t *binding,
                       struct arena *scratch, int64_t **out, struct diag *d);
/* For r->size; bound: the model with these sizes. FORMAT: the model's artefact is damaged. */
rlx_status reuse_find(const struct compile_request *r, const struct ir_module *bound,
                      struct arena *scratch, struct reuse *out, struct diag *d);
/* After a program was made of it: counts, logs, and keeps what is worth keeping. */
rlx_status reuse_done(const struct compile_request *r, const struct reuse *u,
                      const struct compiled_program *p, struct diag *d);
/* After the passes were made for a stranger's program: whether `mod` is its graph. If so its plan
 * is used; if it should be, and is not, FORMAT. */
rlx_status reuse_compare(const struct compile_request *r, struct reuse *u,
                         const struct ir_module *mod, struct diag *d);
/* A cached program that could not be used after all. */
void reuse_failed(const struct compile_request *r, const struct diag *why);

/* disk_cache.c. Neither ever fails a compile: what cannot be read or written is logged. */
bool cache_find(const struct compile_request *r, const struct ir_module *bound,
                const int64_t *binding, size_t count, struct arena *scratch, struct reuse *out);
void cache_keep(const struct compile_request *r, const struct compiled_program *p,
                const int64_t *binding, size_t count);

#endif
