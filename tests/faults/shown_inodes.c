/* Shows files under the inode numbers and change times that they had when they were recorded.

   A tree that is made again cannot have its old numbers; records that name them would look wrong.
   A change time is shown only as long as the file was not changed since `show_inode`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/stat.h>

enum { MOST = 4096 };
/* Numbers of other files move out of the way of the recorded ones. */
static const unsigned long long ELSEWHERE = 1ULL << 40;

static struct {
    unsigned long long real, shown;
    struct timespec real_ctime, shown_ctime;
} known[MOST];
static int count;
static unsigned long long device;

void forget_inodes(unsigned long long on_device) {
    device = on_device;
    count = 0;
}

int show_inode(unsigned long long real, unsigned long long shown, long long real_ctime_ns,
               long long shown_ctime_ns) {
    if (count == MOST)
        return -1;
    known[count].real = real;
    known[count].shown = shown;
    known[count].real_ctime.tv_sec = real_ctime_ns / 1000000000;
    known[count].real_ctime.tv_nsec = real_ctime_ns % 1000000000;
    known[count].shown_ctime.tv_sec = shown_ctime_ns / 1000000000;
    known[count++].shown_ctime.tv_nsec = shown_ctime_ns % 1000000000;
    return 0;
}

static int show(int result, struct stat64 *info) {
    if (result != 0 || device == 0 || info->st_dev != device)
        return result;
    for (int at = 0; at < count; at++) {
        if (known[at].real != info->st_ino)
            continue;
        info->st_ino = known[at].shown;
        if (info->st_ctim.tv_sec == known[at].real_ctime.tv_sec &&
            info->st_ctim.tv_nsec == known[at].real_ctime.tv_nsec)
            info->st_ctim = known[at].shown_ctime;
        return 0;
    }
    info->st_ino += ELSEWHERE;
    return 0;
}

#define NEXT(name, type)                                                                           \
    static type next;                                                                              \
    if (!next)                                                                                     \
        next = (type)dlsym(RTLD_NEXT, name)

typedef int (*by_path)(const char *, struct stat64 *);
typedef int (*by_fd)(int, struct stat64 *);
typedef int (*by_both)(int, const char *, struct stat64 *, int);
typedef int (*old_by_path)(int, const char *, struct stat64 *);
typedef int (*old_by_fd)(int, int, struct stat64 *);
typedef int (*old_by_both)(int, int, const char *, struct stat64 *, int);

int stat64(const char *path, struct stat64 *info) {
    NEXT("stat64", by_path);
    return show(next(path, info), info);
}

int lstat64(const char *path, struct stat64 *info) {
    NEXT("lstat64", by_path);
    return show(next(path, info), info);
}

int fstat64(int fd, struct stat64 *info) {
    NEXT("fstat64", by_fd);
    return show(next(fd, info), info);
}

int fstatat64(int fd, const char *path, struct stat64 *info, int flags) {
    NEXT("fstatat64", by_both);
    return show(next(fd, path, info, flags), info);
}

/* The names that programs built for older systems use. */
int __xstat64(int version, const char *path, struct stat64 *info) {
    NEXT("__xstat64", old_by_path);
    return show(next(version, path, info), info);
}

int __lxstat64(int version, const char *path, struct stat64 *info) {
    NEXT("__lxstat64", old_by_path);
    return show(next(version, path, info), info);
}

int __fxstat64(int version, int fd, struct stat64 *info) {
    NEXT("__fxstat64", old_by_fd);
    return show(next(version, fd, info), info);
}

int __fxstatat64(int version, int fd, const char *path, struct stat64 *info, int flags) {
    NEXT("__fxstatat64", old_by_both);
    return show(next(version, fd, path, info, flags), info);
}
