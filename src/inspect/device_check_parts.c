/* device_check_parts.c: a model in parts on several devices: each part, with what the reference
 * computed for it. Sizes that depend on data are then the same everywhere, as is what is compared.
 */
#include <string.h>

#include "inspect/device_check.h"

static void add_up(rlx_check_summary *sum, const rlx_check_summary *one)
{
    if (!sum->failed && one->failed) {
        memcpy(sum->first_device, one->first_device, sizeof sum->first_device);
        memcpy(sum->first_op, one->first_op, sizeof sum->first_op);
        memcpy(sum->first_label, one->first_label, sizeof sum->first_label);
        sum->first_node = one->first_node;
    }
    sum->passed += one->passed;
    sum->failed += one->failed;
    sum->skipped += one->skipped;
    sum->outputs += one->outputs;
    sum->outputs_failed += one->outputs_failed;
    if (one->devices_skipped > sum->devices_skipped)
        sum->devices_skipped = one->devices_skipped;
}

rlx_status check_parts(rlx_model *m, const rlx_check_desc *desc, rlx_check_summary *out,
                       struct diag *d)
{
    rlx_check_summary sum = {.first_node = -1}, one;
    rlx_session *s;
    rlx_error err;

    if (rlx_session_create(m, desc->devices[0], NULL, &s, &err) != RLX_OK)
        return diag_again(d, &err, err.status);
    rlx_run_desc all = *desc->run;
    all.output_count = 0; /* only the parts' values are wanted */
    rlx_status status = s->kind->run(s, &all, d);
    for (size_t i = 0; status == RLX_OK && i < m->parts->count; i++) {
        rlx_run_desc run = staged_part_run(s, i, desc->run);
        rlx_check_desc part = *desc;
        part.run = &run;
        if (rlx_check(m->parts->part[i].model, &part, &one, &err) != RLX_OK)
            status = diag_again(d, &err, err.status);
        else
            add_up(&sum, &one);
    }
    rlx_session_destroy(s);
    if (status == RLX_OK)
        *out = sum;
    return status;
}
