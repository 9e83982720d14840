/* device_check.h: the parts of rlx_check.
 *
 *     device_check.c        the reference, the order of things, whole graphs
 *     device_check_node.c   one node alone on a device */
#ifndef INSPECT_DEVICE_CHECK_H
#define INSPECT_DEVICE_CHECK_H

#include "rlx/tools.h"
#include "session/session.h"

struct checker {
    rlx_context *ctx;
    rlx_model *model;
    const rlx_check_desc *desc;
    struct ir_module *mod; /* the model's, with every dim bound */
    rlx_tensor *value;     /* by node: what the reference has there; no data: a constant */
    rlx_binding *output;   /* of the whole graph on the reference */
    rlx_check_summary sum;
    struct arena arena;
    struct diag *diag;
};

struct node_result {
    rlx_verdict verdict;
    char message[600];
    double error;
};

/* A failure is one of the check itself; what the node does is in r. */
rlx_status check_node(struct checker *c, rlx_device *dev, const struct ir_node *n,
                      struct node_result *r);

/* Nodes stay apart and run on the device, even those on constants alone. */
extern const rlx_session_desc as_written;

rlx_tensor tensor_of_type(const struct ir_type *type, void *data);

/* device_check_parts.c: the same of a model in parts. */
rlx_status check_parts(rlx_model *m, const rlx_check_desc *desc, rlx_check_summary *out,
                       struct diag *d);

#endif
