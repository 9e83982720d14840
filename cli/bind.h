/* bind.h: a model opened by a command: device, session, and values for its leaves. */
#ifndef CLI_BIND_H
#define CLI_BIND_H

#include "cli.h"
#include "picture.h"
#include "rlx/weights.h"

#define MAX_DIMS 64
struct opened {
    struct cli *c;
    const char *path;
    rlx_model *model;
    rlx_device *device;
    rlx_session *session;
    rlx_binding *input, *output;
    size_t input_count, output_count;
    rlx_dim_size dim[MAX_DIMS]; /* from --dim, and those settled without it */
    size_t dim_count;
};

struct open_options {
    const char *path, *device;
    struct texts *inputs, *params, *dims; /* NAME=VALUE, NAME=FILE, NAME=N; may be NULL */
    const char *inputs_file;              /* of tensors: by name; may be NULL */
    const char *params_file;              /* likewise */
    bool random;                          /* values for what is not given */
    bool needs_values;                    /* nothing can be done without them: every input's */
    bool needs_sizes;                     /* likewise: every dim's, also implied by random */
    uint64_t seed;
    const struct picture_options *picture; /* how a picture becomes an input; may be NULL */
    const rlx_session_desc *session;
};

/* EXIT_DONE, or what to return; close it either way. */
int opened_from_file(struct opened *o, struct cli *c, const struct open_options *options);
int opened_from_model(struct opened *o, struct cli *c, rlx_model *model,
                      const struct open_options *options); /* takes the model over */
/* The same without a device or a session. */
int opened_values(struct opened *o, struct cli *c, rlx_model *model,
                  const struct open_options *options);
int opened_session_only(struct opened *o, struct cli *c,
                        const struct open_options *options); /* no inputs, nothing prepared */
int opened_make_outputs(struct opened *o); /* room for every output; during or after a run */
void opened_close(struct opened *o);
rlx_run_desc opened_run(const struct opened *o);

/* values.c: the values of inputs and params. EXIT_DONE, or what to return. */
int take_params(struct opened *o, const struct open_options *options);
int take_inputs(struct opened *o, const struct open_options *options);
int check_params(struct opened *o, const struct open_options *options); /* that they exist */
int check_inputs(struct opened *o, const struct open_options *options);

/* sizes.c: the sizes of symbolic dims. EXIT_DONE, or what to return. */
int take_dims(struct opened *o, const struct texts *texts);                /* NAME=N */
int check_dims(struct opened *o, const rlx_dim_size *sizes, size_t count); /* that they exist */
/* Dims whose size can be assumed get it, with a note. If others remain, that is refused, naming all
 * of them. */
int settle_dims(struct opened *o, bool bounded); /* also those with a bound */
/* " --dim seq=128" for each that has no size yet and is not a batch. */
void print_missing_dims(struct opened *o, FILE *out);
/* The shape of input i as far as it is known; false: not all of it is. */
bool input_shape(const struct opened *o, size_t i, rlx_tensor *out);
/* Of the axes of input i that are -1 in out, those that are a dim with a known size. */
void known_axes(const struct opened *o, size_t i, rlx_tensor *out);
/* cli_fail, and what to do about dims without a size. */
int opened_fail(struct opened *o, const rlx_error *err, const char *doing, const char *what);

/* array.c. EXIT_DONE, or what to return. */
/* From an npy file, or the tensor of that name (or the only one) in a file of tensors; "-": from
 * standard input. */
int cli_load_array(struct cli *c, const char *file, rlx_str name, rlx_tensor *out);
int cli_load_params(struct cli *c, rlx_model *m, const char *file); /* by name */
/* Tensor i of the file; copied. */
int cli_copy_array(struct cli *c, rlx_weights *w, size_t i, const char *file, rlx_tensor *out);

#endif
