/* quantise_graph.c: quantisation-aware transforms of models. */
#include "model/store.h"
#include "pass/insert_qdq.h"
#include "rlx/tools.h"

static rlx_status insert(const rlx_model *m, const rlx_qdq_record *records, size_t count,
                         rlx_model **out, struct diag *d)
{
    struct ir_module *mod;

    if (!m || !out || (count && !records))
        return diag_fail(d, RLX_ERROR_ARGUMENT, "%s is NULL", !m ? "m" : !out ? "out" : "records");
    TRY(ir_module_copy(m->mod, &m->ctx->mem, &mod, d));
    rlx_status s = pass_insert_qdq(mod, records, count, d);
    if (s == RLX_OK)
        s = ir_verify(mod, d);
    if (s == RLX_OK)
        s = model_from_copy(m, mod, out, d);
    if (s != RLX_OK)
        ir_module_destroy(mod);
    return s;
}

rlx_status rlx_model_insert_qdq(const rlx_model *m, const rlx_qdq_record *records, size_t count,
                                rlx_model **out, rlx_error *err)
{
    struct diag d;

    diag_init(&d, "quantise");
    insert(m, records, count, out, &d);
    return diag_report(&d, err);
}
