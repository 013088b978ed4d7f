/* Lets every sync wait until the file of SYNC_GATE is there, and says that one waits. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_gate(void) {
    const char *gate = getenv("SYNC_GATE");
    char waiting[4096];
    if (!gate || !access(gate, F_OK))
        return;
    snprintf(waiting, sizeof waiting, "%s.waiting", gate);
    close(open(waiting, O_CREAT | O_WRONLY, 0600));
    while (access(gate, F_OK))
        usleep(1000);
}

int fsync(int fd) {
    static int (*next)(int);
    if (!next)
        next = dlsym(RTLD_NEXT, "fsync");
    wait_for_gate();
    return next(fd);
}

int fdatasync(int fd) {
    static int (*next)(int);
    if (!next)
        next = dlsym(RTLD_NEXT, "fdatasync");
    wait_for_gate();
    return next(fd);
}

int syncfs(int fd) {
    static int (*next)(int);
    if (!next)
        next = dlsym(RTLD_NEXT, "syncfs");
    wait_for_gate();
    return next(fd);
}
