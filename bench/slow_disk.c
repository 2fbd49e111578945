/* A disk whose flush takes CASENOTES_BENCH_FLUSH_US microseconds, for a program that is started with this preloaded. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

static int flushed(const char *call, int file)
{
    const char *given = getenv("CASENOTES_BENCH_FLUSH_US");
    long long us = given ? atoll(given) : 0;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    long long ns = until.tv_nsec + us * 1000;
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;

    int (*flush)(int) = (int (*)(int))dlsym(RTLD_NEXT, call);
    int outcome = flush(file);
    int error = errno;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
    errno = error;
    return outcome;
}

int fsync(int file) { return flushed("fsync", file); }

int fdatasync(int file) { return flushed("fdatasync", file); }
