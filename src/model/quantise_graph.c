/* quantise_graph.c: quantisation-aware transforms of models. */
#include "model/quantise_weight.h"
#include "model/store.h"
#include "pass/insert_qdq.h"

rlx_status model_insert_qdq(const rlx_model *m, const rlx_qdq_record *records, size_t count,
                            rlx_model **out, struct diag *d)
{
    struct ir_module *mod;

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
