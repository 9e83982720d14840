/* op_table.c: a row of the op table, for those who list it: what an op takes, and who runs it. */
#include <stdio.h>
#include <string.h>

#include "autodiff/autodiff.h"
#include "backend/backend.h"
#include "base/str.h"
#include "inspect/category.h"
#include "inspect/inspect.h"
#include "ir/shape/shape.h"
#include "pass/pass.h"

static void list_attributes(enum op_family family, char *out, size_t size)
{
    size_t count, len = 0;
    const struct attr_info *a = family_attrs(family, &count);

    out[0] = 0;
    for (size_t i = 0; i < count && len < size; i++) {
        const char *def = a[i].default_text;
        bool plain = strcmp(def, "REQUIRED") == 0 || strcmp(def, "ABSENT") == 0;
        len += (size_t)snprintf(out + len, size - len, "%s%s%s%s", i ? " " : "", a[i].name,
                                plain ? (def[0] == 'A' ? "?" : "") : "=",
                                plain                       ? ""
                                : strcmp(def, "EMPTY") == 0 ? "[]"
                                                            : def);
    }
}

bool op_row(size_t i, rlx_op_row *out)
{
    struct target cpu, vulkan, webgpu;

    if (i + 1 >= RLX_OP_count)
        return false;
    const struct op_info *o = op_info((rlx_op)(i + 1));
    backend_find(STR("cpu"))->describe(NULL, &cpu);
    backend_find(STR("vulkan"))->describe(NULL, &vulkan);
    backend_find(STR("webgpu"))->describe(NULL, &webgpu);
    *out = (rlx_op_row){
        .name = o->name,
        .family = family_name(o->family),
        .category = category_name(o->category),
        .inputs = o->inputs,
        .summary = o->summary,
        .special = (o->flags & OP_SPECIAL) != 0,
        .infer = shape_rule_of(o->family) != NULL,
        .grad = grad_has_rule((rlx_op)(i + 1)),
        .cpu = pass_covers(&cpu, o->family),
        .vulkan = pass_covers(&vulkan, o->family),
        .webgpu = pass_covers(&webgpu, o->family),
    };
    list_attributes(o->family, out->attributes, sizeof out->attributes);
    return true;
}
