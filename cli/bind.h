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
    struct texts *inputs, *params, *dims; /* NAME=FILE, NAME=FILE, NAME=N; may be NULL */
    const char *params_file;              /* of tensors: by name; may be NULL */
    struct texts *fixed;                  /* NAME=FILE: inputs known when the model is loaded */
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
/* cli_load, but inputs of an ONNX model that are given here are known from the start. */
int load_knowing(struct cli *c, const char *path, const struct texts *fixed, rlx_model **out);
int opened_make_outputs(struct opened *o); /* room for every output; once it runs, or ran */
void opened_close(struct opened *o);
rlx_run_desc opened_run(const struct opened *o);

/* array.c. EXIT_DONE, or what to return. */
/* From an npy file; or what is called so (or is alone) in a file of tensors. */
int cli_load_array(struct cli *c, const char *file, rlx_str name, rlx_tensor *out);
int cli_load_params(struct cli *c, rlx_model *m, const char *file); /* all that it has, by name */

#endif
