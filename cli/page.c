/* page.c: see page.h. */
#include "page.h"

#include <stdlib.h>
#include <string.h>

#include "profile.h"

enum { RUNS = 5 };

static int open_session(struct cli *c, struct opened *o, const struct page_options *opt,
                        const char **note)
{
    rlx_error err;
    rlx_run_desc run = opened_run(o);

    if (rlx_device_open(c->ctx, opt->device, &o->device, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot open device", opt->device);
    cli_doing(c, "compiling", opt->path);
    if (rlx_session_create(o->model, o->device, NULL, &o->session, &err) != RLX_OK)
        return cli_fail(c, &err, "cannot compile", opt->path);
    rlx_status s = rlx_session_prepare(o->session, &run, &err);
    cli_progress_end(c);
    if (s == RLX_OK)
        return EXIT_DONE;
    if (s != RLX_ERROR_UNBOUND_DIM || opt->profile || o->dim_count)
        return cli_fail(c, &err, "cannot compile", opt->path);
    *note =
        "The model has symbolic dims: with --dim NAME=SIZE for each, the page also shows what it "
        "is compiled to, with memory and FLOPs, and times with --profile.";
    rlx_session_destroy(o->session);
    o->session = NULL;
    return EXIT_DONE;
}

/* Measures the mean time of every step; the first run does not count. */
static int measure(struct cli *c, struct opened *o, const char *path, struct profile *p)
{
    rlx_run_desc run = opened_run(o);
    rlx_error err;

    cli_doing(c, "running", path);
    for (int i = 0; i <= RUNS; i++) {
        rlx_session_set_profile(o->session, i ? profile_note : NULL, p);
        if (rlx_session_run(o->session, &run, &err) != RLX_OK)
            return cli_fail(c, &err, "cannot run", path);
    }
    cli_progress_end(c);
    return EXIT_DONE;
}

static int write_page(struct cli *c, struct opened *o, const struct page_options *opt,
                      const char *note, const struct profile *p)
{
    const char *slash = strrchr(opt->path, '/');
    uint64_t *ns = p->count ? calloc(p->count, sizeof *ns) : NULL;
    rlx_page_desc desc = {RLX_SIZED(rlx_page_desc),
                          .title = slash ? slash + 1 : opt->path,
                          .view = opt->view,
                          .note = note,
                          .session = o->session,
                          .step_ns = ns,
                          .step_count = ns ? p->count : 0};
    struct buffer b = {0};
    rlx_error err;
    int code;

    for (size_t i = 0; i < desc.step_count; i++)
        ns[i] = (uint64_t)profile_row_ns(&p->step[i]);
    cli_doing(c, "drawing", opt->path);
    rlx_status s = rlx_page_write(o->model, &desc, buffer_add, &b, &err);
    cli_progress_end(c);
    if (s != RLX_OK)
        code = cli_fail(c, &err, "cannot show", opt->path);
    else
        code = cli_write_file(c, opt->out, b.at, b.len);
    buffer_free(&b);
    free(ns);
    return code;
}

int page_write(struct cli *c, rlx_model *m, const struct page_options *opt)
{
    struct open_options values = {.path = opt->path, .dims = opt->dims, .random = opt->profile};
    struct profile profile = {0};
    const char *note = NULL;
    struct opened o;
    int code = opened_values(&o, c, m, &values);

    if (code == EXIT_DONE && !opt->graph_only)
        code = open_session(c, &o, opt, &note);
    if (code == EXIT_DONE && opt->profile)
        code = measure(c, &o, opt->path, &profile);
    if (code == EXIT_DONE)
        code = write_page(c, &o, opt, note, &profile);
    profile_free(&profile);
    opened_close(&o);
    return code;
}
