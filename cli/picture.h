/* picture.h: a picture as the value of an input. */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H

#include "cli.h"

/* Pixels become 0 to scale, of which mean is subtracted, by channel, and what is left is divided by
 * std. Integer inputs take the bytes as they are. */
struct picture_options {
    const char *layout; /* "nchw", "nhwc", "chw", "hwc"; NULL: by the input's shape */
    const char *resize; /* "224x224", width first; NULL: it has the right size */
    double scale, mean[4], std[4];
    size_t mean_count, std_count; /* 0: nothing is subtracted; divided by 1 */
};

/* By its first bytes: PNG, JPEG, PGM or PPM. */
bool picture_is(const char *path);
/* EXIT_DONE, or what to return. */
int picture_load(struct cli *c, const char *path, const struct picture_options *options,
                 const rlx_io_info *input, rlx_tensor *out);

#endif
