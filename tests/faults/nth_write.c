/* Lets one write of a process take only half of its bytes: the one that `shorten_write` names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

static int until;

void shorten_write(int nth) { until = nth; }

static size_t allowed(int fd, size_t size) {
    if (fd <= 2 || size < 2 || until <= 0 || --until > 0)
        return size;
    return size / 2;
}

ssize_t write(int fd, const void *bytes, size_t size) {
    static ssize_t (*next)(int, const void *, size_t);
    if (!next)
        next = dlsym(RTLD_NEXT, "write");
    return next(fd, bytes, allowed(fd, size));
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t at) {
    static ssize_t (*next)(int, const void *, size_t, off_t);
    if (!next)
        next = dlsym(RTLD_NEXT, "pwrite64");
    return next(fd, bytes, allowed(fd, size), at);
}
