/* tpl_filters.h: what filters and methods share, and the filters of lists. */
#ifndef TEXT_TEMPLATE_TPL_FILTERS_H
#define TEXT_TEMPLATE_TPL_FILTERS_H

#include "text/template/tpl_call.h"

/* tpl_str_methods.c. set NULL: white space. most -1: all of them. */
rlx_status tpl_strip(struct tpl_run *r, const struct tpl_str *s, const struct tpl_str *set,
                     bool left, bool right, struct tpl_value *out);
rlx_status tpl_replace(struct tpl_run *r, const struct tpl_str *s, const struct tpl_str *old,
                       const struct tpl_str *new, int64_t most, struct tpl_value *out);

/* tpl_list_filters.c: X(name, parameters, how many of them must be given) */
#define TPL_LIST_FILTER_MAP(X)                     \
    X(list, "", 0)                                 \
    X(first, "", 0)                                \
    X(last, "", 0)                                 \
    X(reverse, "", 0)                              \
    X(join, "d attribute", 0)                      \
    X(sum, "attribute start", 0)                   \
    X(min, "case_sensitive attribute", 0)          \
    X(max, "case_sensitive attribute", 0)          \
    X(sort, "reverse case_sensitive attribute", 0) \
    X(unique, "case_sensitive attribute", 0)       \
    X(dictsort, "case_sensitive by reverse", 0)    \
    X(items, "", 0)                                \
    X(keys, "", 0)                                 \
    X(values, "", 0)                               \
    X(map, "*", 0)                                 \
    X(select, "*", 0)                              \
    X(reject, "*", 0)                              \
    X(selectattr, "*", 0)                          \
    X(rejectattr, "*", 0)
#define X(name, params, need) rlx_status tpl_filter_##name(struct tpl_call *c);
TPL_LIST_FILTER_MAP(X)
#undef X

#endif
