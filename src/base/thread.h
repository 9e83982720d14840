/* thread.h: the library's own threads. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Runs fn(arg). The thread takes no signals: those belong to the program's own threads. false: the
 * system grants none. */
bool thread_start(pthread_t *out, void *(*fn)(void *arg), void *arg);

#endif
