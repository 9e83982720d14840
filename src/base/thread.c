/* thread.c: starting a thread that takes no signals. */
#include "base/thread.h"

#include <signal.h>

bool thread_start(pthread_t *out, void *(*fn)(void *arg), void *arg)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* a new thread inherits it */
    bool started = pthread_create(out, NULL, fn, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}
