/* precision_text.c: precision policies by name, for the command line and for tests. */
#include <string.h>

#include "base/diag.h"
#include "base/str.h"
#include "ir/type.h"
#include "model/precision_text.h"

static const struct {
    const char *name;
    rlx_precision policy;
} policies[] = {
    {"as-declared", RLX_PRECISION_AS_DECLARED},
    {"f32", RLX_PRECISION_F32},
    {"f16", RLX_PRECISION_F16},
    {"mixed-conservative", RLX_PRECISION_MIXED_CONSERVATIVE},
    {"mixed", RLX_PRECISION_MIXED},
    {"mixed-bf16", RLX_PRECISION_MIXED_BF16},
};

static const char *const classes[] = {"compute", "reduction", "elementwise", "movement"};

/* class: it is of the form CLASS=TYPE, but there is no such class. */
static rlx_status refuse_part(rlx_str part, rlx_str name, bool class, struct diag *d)
{
    rlx_nearest near = {.wanted = class ? name : part};
    char hint[RLX_NEAREST_HINT];

    for (size_t i = 0; i < sizeof classes / sizeof classes[0] && class; i++)
        rlx_nearest_offer(&near, rlx_cstr(classes[i]));
    for (size_t i = 0; i < sizeof policies / sizeof policies[0] && !class; i++)
        rlx_nearest_offer(&near, rlx_cstr(policies[i].name));
    return diag_fail(d, RLX_ERROR_ARGUMENT,
                     "\"%.*s\" is not a precision; there are as-declared, f32, f16, mixed, "
                     "mixed-conservative and mixed-bf16, or CLASS=TYPE,... where CLASS is compute, "
                     "reduction, elementwise or movement and TYPE is f32, f16 or bf16%s",
                     STR_ARG(part), rlx_nearest_hint(&near, hint));
}

/* "reduction=bf16" into its field of the map. */
static rlx_status parse_part(rlx_str part, rlx_precision_map *map, struct diag *d)
{
    const char *eq = memchr(part.ptr, '=', part.len);
    rlx_str name = {part.ptr, eq ? (size_t)(eq - part.ptr) : part.len}, type = {NULL, 0};
    rlx_dtype dtype, *to = str_eq(name, STR("compute"))       ? &map->compute
                           : str_eq(name, STR("reduction"))   ? &map->reduction
                           : str_eq(name, STR("elementwise")) ? &map->elementwise
                           : str_eq(name, STR("movement"))    ? &map->movement
                                                              : NULL;

    if (!eq || !to)
        return refuse_part(part, name, eq != NULL, d);
    type = (rlx_str){eq + 1, part.len - name.len - 1};
    if (!dtype_from_name(type, &dtype) ||
        (dtype != RLX_DTYPE_f32 && dtype != RLX_DTYPE_f16 && dtype != RLX_DTYPE_bf16))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%.*s must be f32, f16 or bf16, not \"%.*s\"",
                         STR_ARG(name), STR_ARG(type));
    *to = dtype;
    return RLX_OK;
}

rlx_status precision_parse(const char *text, rlx_session_desc *desc, struct diag *d)
{
    rlx_precision_map map = {0};

    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        if (strcmp(text, policies[i].name) != 0)
            continue;
        desc->precision = policies[i].policy;
        return RLX_OK;
    }
    for (const char *at = text;; at++) {
        size_t len = strcspn(at, ",");
        TRY(parse_part((rlx_str){at, len}, &map, d));
        at += len;
        if (!*at)
            break;
    }
    desc->precision = RLX_PRECISION_CUSTOM;
    desc->precision_map = map;
    return RLX_OK;
}
