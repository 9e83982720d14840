/* text.h: the text form of a module (docs/text-format.md): printed, parsed, drawn. */
#ifndef IR_TEXT_H
#define IR_TEXT_H

#include "base/str.h"
#include "ir/graph.h"

/* Canonical: printing a parsed print gives the same text. NULL options: all false. */
struct text_print_options {
    bool elide; /* for people: constants end in "..." after 8 elements; this no longer parses */
    bool types; /* ": f32[4,8]" after every node */
    /* The bytes of a constant stand elsewhere, under this name: it prints as `npy "name"`, and
     * load_npy of whoever parses the text finds them. false: they stand in the text. May be NULL.
     */
    bool (*elsewhere)(void *user, const struct ir_node *n, char name[32]);
    void *user;
};
rlx_status ir_print(const struct ir_module *m, const struct text_print_options *o, struct text *out,
                    struct diag *d);
void ir_print_type(const struct ir_module *m, const struct ir_type *t, struct text *out);
/* "axis=1 keep_dim=true", only what is not default; nothing if all is. */
void ir_print_attrs(const struct ir_module *m, rlx_op op, const union ir_attr *v, struct text *out);

/* load_npy: bytes for `npy "file"`; NULL refuses them. */
struct text_parse_options {
    rlx_status (*load_npy)(void *user, rlx_str name, struct arena *arena, struct ir_type *type,
                           const void **data, struct diag *d);
    void *user;
    const struct ir_customs *customs;
};
/* Messages begin with line and column: "3:8: there is no op ...". NULL options: no files, no custom
 * ops. On failure *out is untouched. */
rlx_status ir_parse(rlx_str source, const struct text_parse_options *o, const rlx_allocator *mem,
                    struct ir_module **out, struct diag *d);
/* Attributes alone, over attr's present values (start from defaults). A required one must be in the
 * text, or in attr already, else ATTRIBUTE. On failure attr is untouched. Blobs become the
 * module's. */
rlx_status ir_parse_attrs(struct ir_module *m, rlx_op op, rlx_str source, union ir_attr *attr,
                          struct diag *d);

/* A dim alone, "past+1", over the table's symbols; a name that is not among them is NAME. */
rlx_status ir_parse_dim(struct dim_table *dims, rlx_str source, const rlx_allocator *mem,
                        ir_dim *out, struct diag *d);

/* One graph as a picture: for Graphviz, or as it is. */
void ir_draw_dot(const struct ir_graph *g, struct text *out);
rlx_status ir_draw_svg(const struct ir_graph *g, struct text *out, struct diag *d);

#endif
