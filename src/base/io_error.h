/* io_error.h: failures about files, in one form: "cannot open a.gguf: Permission denied". */
#ifndef BASE_IO_ERROR_H
#define BASE_IO_ERROR_H

#include "base/diag.h"

/* Records "<doing> <path>: <why>" and returns RLX_ERROR_IO. Of a very long path only the end is
 * shown. */
rlx_status io_error(struct diag *d, const char *doing, rlx_str path, const char *why);
/* The same with the system's words for an errno, safe from any thread. */
rlx_status io_error_errno(struct diag *d, const char *doing, rlx_str path, int err);

#endif
