/* conform_data.h: the values that ONNX's tests keep beside a model, a file per input or output. */
#ifndef CLI_CONFORM_DATA_H
#define CLI_CONFORM_DATA_H

#include "cli.h"

#define MAX_FILES 64

struct data_file {
    rlx_error err;        /* status OK: it could be read */
    bool is_list;         /* a sequence or an optional */
    rlx_tensor_list list; /* of one, unless is_list */
};
struct data_files {
    struct data_file at[MAX_FILES];
    size_t count;
};

/* DIR/input_0.pb, DIR/input_1.pb and so on; what: "input", "output". Files that cannot be read are
 * reported when they are used. */
void data_files_load(rlx_context *ctx, const char *dir, const char *what, struct data_files *out);
void data_files_free(rlx_context *ctx, struct data_files *f);

/* Tensor i of all files in order, which matches the model's inputs or outputs; NULL: there is no
 * such tensor, or *err says why it could not be read. */
const rlx_tensor *data_files_tensor(const struct data_files *f, size_t i, rlx_error *err);
size_t data_files_tensors(const struct data_files *f); /* how many */
/* What is wrong with the first malformed file, which is more than a type that rlx does not have;
 * NULL: all are well-formed. */
const rlx_error *data_files_broken(const struct data_files *f);

#endif
