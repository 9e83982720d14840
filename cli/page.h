/* page.h: a model as an HTML page, for `rlx print --html`. */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include "bind.h"

struct page_options {
    const char *path, *out; /* of the model, of the page */
    const char *view;       /* the heading; NULL: for the graph as written */
    const char *device;
    struct texts *dims;
    bool graph_only; /* do not compile it */
    bool profile;    /* run it on random inputs, and show times */
};
/* EXIT_DONE, or what to return. Takes the model over. */
int page_write(struct cli *c, rlx_model *m, const struct page_options *options);

#endif
