/* Lets every write take only a few bytes, and interrupts every third one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FEW = 97 };

static int is_interrupted(void) {
    static int calls;
    if (++calls % 3)
        return 0;
    errno = EINTR;
    return 1;
}

ssize_t write(int fd, const void *bytes, size_t size) {
    static ssize_t (*next)(int, const void *, size_t);
    if (!next)
        next = dlsym(RTLD_NEXT, "write");
    if (fd <= 2)
        return next(fd, bytes, size);
    if (is_interrupted())
        return -1;
    return next(fd, bytes, size < FEW ? size : FEW);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (is_interrupted())
        return -1;
    return count ? write(fd, parts[0].iov_base, parts[0].iov_len) : 0;
}
