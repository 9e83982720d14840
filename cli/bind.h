/* bind.h: a model opened by a command: device, session, and values for its leaves. */
#ifndef CLI_BIND_H
#define CLI_BIND_H

#include "cli.h"

struct opened {
    struct cli *c;
    rlx_model *model;
    rlx_device *device;
    rlx_session *session;
    rlx_binding *input, *output;
    size_t input_count, output_count;
    rlx_dim_size dim[16];
    size_t dim_count;
};

struct open_options {
    const char *path, *device;
    struct texts *inputs, *params, *dims; /* NAME=FILE.npy, NAME=FILE.npy, NAME=N; may be NULL */
    bool random;                          /* values for what is not given */
    uint64_t seed;
    const rlx_session_desc *session;
};

/* EXIT_DONE, or what to return; close it either way. */
int opened_open(struct opened *o, struct cli *c, const struct open_options *options);
int opened_open_model(struct opened *o, struct cli *c, rlx_model *model,
                      const struct open_options *options); /* takes the model over */
/* The same without a device and a session. */
int opened_values(struct opened *o, struct cli *c, rlx_model *model,
                  const struct open_options *options);
int opened_open_session(struct opened *o, struct cli *c,
                        const struct open_options *options); /* no inputs, nothing prepared */
int opened_make_outputs(struct opened *o); /* room for every output; after prepare */
void opened_close(struct opened *o);
rlx_run_desc opened_run(const struct opened *o);

#endif
