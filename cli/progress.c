/* progress.c: what a command is at, on a terminal: a count where there is something to count,
 * otherwise what it waits for and for how long, once that is more than a second. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "cli.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool running, shown; /* the thread; a line that must be erased */
    struct timespec since;
    char what[128]; /* empty: nothing to wait for */
} at = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void wipe(void)
{
    if (at.shown)
        fputs("\r\033[K", stderr);
    at.shown = false;
}

/* Shows what is waited for, once a second. */
static void *tick(void *user)
{
    (void)user;
    pthread_mutex_lock(&at.lock);
    while (at.running) {
        struct timespec next = at.since, now;
        clock_gettime(CLOCK_REALTIME, &now);
        next.tv_sec += now.tv_sec - at.since.tv_sec + 1;
        if (!at.what[0])
            pthread_cond_wait(&at.changed, &at.lock);
        else if (pthread_cond_timedwait(&at.changed, &at.lock, &next) == ETIMEDOUT && at.what[0]) {
            fprintf(stderr, "\r\033[K%s, %lld s", at.what,
                    (long long)(next.tv_sec - at.since.tv_sec));
            fflush(stderr);
            at.shown = true;
        }
    }
    pthread_mutex_unlock(&at.lock);
    return NULL;
}

void cli_doing(struct cli *c, const char *doing, const char *what)
{
    if (!c->progress)
        return;
    pthread_mutex_lock(&at.lock);
    wipe();
    clock_gettime(CLOCK_REALTIME, &at.since);
    snprintf(at.what, sizeof at.what, "%s %.100s", doing, what);
    if (!at.running)
        at.running = pthread_create(&at.thread, NULL, tick, NULL) == 0;
    pthread_cond_signal(&at.changed);
    pthread_mutex_unlock(&at.lock);
}

void cli_progress(struct cli *c, const char *what, size_t done, size_t total)
{
    if (!c->progress)
        return;
    pthread_mutex_lock(&at.lock);
    at.what[0] = 0;
    if (total)
        fprintf(stderr, "\r\033[K%-40.40s %zu/%zu", what, done, total);
    else
        fprintf(stderr, "\r\033[K%-40.40s %zu", what, done);
    fflush(stderr);
    at.shown = true;
    pthread_mutex_unlock(&at.lock);
}

void cli_progress_end(struct cli *c)
{
    if (!c->progress)
        return;
    pthread_mutex_lock(&at.lock);
    at.what[0] = 0;
    wipe();
    pthread_cond_signal(&at.changed);
    pthread_mutex_unlock(&at.lock);
}

void cli_progress_stop(struct cli *c)
{
    cli_progress_end(c);
    if (!at.running)
        return;
    pthread_mutex_lock(&at.lock);
    at.running = false;
    pthread_cond_signal(&at.changed);
    pthread_mutex_unlock(&at.lock);
    pthread_join(at.thread, NULL);
}
