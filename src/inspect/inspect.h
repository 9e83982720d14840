/* inspect.h: models, compiles and sessions shown as text: what rlx/tools.h promises, with arguments
 * checked. What is written into `out` may have run out of memory: out->failed. */
#ifndef INSPECT_INSPECT_H
#define INSPECT_INSPECT_H

#include "base/str.h"
#include "rlx/tools.h"
#include "session/session.h"

struct text_print_options;

/* model_text.c */
void model_print(const struct rlx_model *m, bool elide, bool types, struct text *out,
                 struct diag *d);
void model_draw(const struct rlx_model *m, rlx_picture kind, struct text *out, struct diag *d);
void model_diff(const struct rlx_model *a, const struct rlx_model *b, const char *name_a,
                const char *name_b, struct text *out, struct diag *d);
/* describe.c */
void model_describe(const struct rlx_model *m, bool json, struct text *out);
/* op_table.c; false: there is no row i. */
bool op_row(size_t i, rlx_op_row *out);

/* transform.c */
rlx_status model_transform(const struct rlx_model *m, const char *passes, struct rlx_device *dev,
                           const rlx_session_desc *desc, struct rlx_model **out, struct diag *d);
/* Writes what was seen even where a later pass fails. */
rlx_status model_print_after(const struct rlx_model *m, const char *pass, struct rlx_device *dev,
                             const struct text_print_options *print, rlx_write_fn write, void *user,
                             struct diag *d);
rlx_status model_after_pass(const struct rlx_model *m, const char *pass, struct rlx_device *dev,
                            struct rlx_model **out, struct diag *d);
rlx_status model_promote_params(const struct rlx_model *m, const char *const *names, size_t count,
                                struct rlx_model **out, struct diag *d);

/* plans.c; summary may be NULL. */
rlx_status session_plan(struct rlx_session *s, rlx_plan_format format, struct text *out,
                        rlx_plan_summary *summary, struct diag *d);
rlx_status plan_of_csv(rlx_context *ctx, rlx_str csv, uint64_t capacity, rlx_plan_format format,
                       struct text *out, rlx_plan_summary *summary, struct diag *d);
/* manifest.c */
rlx_status session_bindings(struct rlx_session *s, bool json, struct text *out, struct diag *d);
/* page.c */
rlx_status page_print(const struct rlx_model *m, const rlx_page_desc *desc, struct text *out,
                      struct diag *d);

#endif
