/* apart.c: a graph asked about in a process of its own, with devices of its own, so that what
 * crashes or hangs there can be shrunk like anything else. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "random.h"

enum { SECONDS = 60 }; /* for one graph, its devices opened anew */

static void answer(const char *gpus, const struct question *q, int to)
{
    struct outcome out = {0};
    struct world w;
    rlx_error err;

    signal(SIGSEGV, SIG_DFL);
    signal(SIGABRT, SIG_DFL);
    signal(SIGFPE, SIG_DFL);
    alarm(SECONDS);
    if (world_open(&w, gpus, &err))
        ask(&w, q, &out);
    if (write(to, &out, sizeof out) != (ssize_t)sizeof out)
        _exit(1);
    _exit(0);
}

static bool read_outcome(int from, struct outcome *out)
{
    size_t got = 0;
    ssize_t n;

    while (got < sizeof *out && (n = read(from, (char *)out + got, sizeof *out - got)) > 0)
        got += (size_t)n;
    return got == sizeof *out;
}

void ask_apart(const char *gpus, const struct question *q, struct outcome *out)
{
    struct outcome outcome;
    int ends[2], status = 0;

    fflush(stdout);
    if (pipe(ends) != 0)
        return;
    pid_t child = fork();
    if (child == 0)
        answer(gpus, q, ends[1]);
    close(ends[1]);
    bool whole = child > 0 && read_outcome(ends[0], &outcome);
    close(ends[0]);
    if (child > 0)
        waitpid(child, &status, 0);
    if (whole) {
        *out = outcome;
        return;
    }
    *out = (struct outcome){.failed = CHECK_crash};
    snprintf(out->message, sizeof out->message, "ended by signal %d, status %d",
             WIFSIGNALED(status) ? WTERMSIG(status) : 0,
             WIFEXITED(status) ? WEXITSTATUS(status) : 0);
}
