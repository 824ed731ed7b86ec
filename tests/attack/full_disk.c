/* A disk that is full from a chosen call on: every call of the C library that needs
   room below a folder fails with ENOSPC, whoever makes it (Python, Arrow, HDF5, Rust).
   Loaded with LD_PRELOAD; full_after() says when. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char below[PATH_MAX];
static long left = -1; /* calls before the disk is full; -1: it never is */
static long seen = 0;
static int only_once = 0;

void full_after(const char *folder, long calls, int once) {
    strncpy(below, folder, sizeof below - 1);
    left = calls, seen = 0, only_once = once;
}

long full_seen(void) { return seen; }

static int full(void) {
    seen++;
    if (left < 0) return 0;
    if (left > 0) {
        left--;
        return 0;
    }
    if (only_once) left = -1;
    errno = ENOSPC;
    return 1;
}

static int file_is_ours(int file) {
    char link[64], path[PATH_MAX];
    if (!below[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    return strncmp(path, below, strlen(below)) == 0;
}

static int path_is_ours(int folder, const char *path) {
    char here[PATH_MAX];
    if (!below[0] || !path) return 0;
    if (path[0] == '/') return strncmp(path, below, strlen(below)) == 0;
    if (folder != AT_FDCWD) return file_is_ours(folder);
    return getcwd(here, sizeof here) && !strncmp(here, below, strlen(below));
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define OF_FILE(type, name, file, signature, arguments)    \
    type name signature {                                  \
        if (file_is_ours(file) && full()) return (type)-1; \
        return REAL(name) arguments;                       \
    }
#define OF_PATH(name, folder, path, signature, arguments)    \
    int name signature {                                     \
        if (path_is_ours(folder, path) && full()) return -1; \
        return REAL(name) arguments;                         \
    }

OF_FILE(ssize_t, write, f, (int f, const void *d, size_t n), (f, d, n))
OF_FILE(ssize_t, pwrite, f, (int f, const void *d, size_t n, off_t at), (f, d, n, at))
OF_FILE(ssize_t, pwrite64, f, (int f, const void *d, size_t n, off64_t at), (f, d, n, at))
OF_FILE(ssize_t, writev, f, (int f, const struct iovec *d, int n), (f, d, n))
OF_FILE(ssize_t, sendfile, f, (int f, int g, off_t *at, size_t n), (f, g, at, n))
OF_FILE(ssize_t, sendfile64, f, (int f, int g, off64_t *at, size_t n), (f, g, at, n))
OF_FILE(ssize_t, copy_file_range, g,
        (int f, off64_t *at, int g, off64_t *to, size_t n, unsigned flags),
        (f, at, g, to, n, flags))
OF_FILE(int, fallocate, f, (int f, int mode, off_t at, off_t n), (f, mode, at, n))
OF_FILE(int, fsync, f, (int f), (f))
OF_PATH(mkdir, AT_FDCWD, path, (const char *path, mode_t mode), (path, mode))
OF_PATH(mkdirat, f, path, (int f, const char *path, mode_t mode), (f, path, mode))
OF_PATH(rename, AT_FDCWD, to, (const char *from, const char *to), (from, to))
OF_PATH(renameat2, f, to,
        (int e, const char *from, int f, const char *to, unsigned flags),
        (e, from, f, to, flags))
OF_PATH(link, AT_FDCWD, to, (const char *from, const char *to), (from, to))
OF_PATH(linkat, f, to, (int e, const char *from, int f, const char *to, int flags),
        (e, from, f, to, flags))

size_t fwrite(const void *data, size_t size, size_t n, FILE *file) {
    if (file_is_ours(fileno(file)) && full()) return 0;
    return REAL(fwrite)(data, size, n, file);
}

/* A file that is there already needs no room to be opened. */
#define OPENED(name, folder, head, call)                                      \
    int name(head const char *path, int flags, ...) {                         \
        va_list more;                                                         \
        va_start(more, flags);                                                \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more);                                                         \
        if ((flags & O_CREAT) && faccessat(folder, path, F_OK, 0) &&          \
            path_is_ours(folder, path) && full())                             \
            return -1;                                                        \
        errno = 0;                                                            \
        return REAL(name) call;                                               \
    }
#define NOTHING
#define FOLDER int f,
OPENED(open, AT_FDCWD, NOTHING, (path, flags, mode))
OPENED(open64, AT_FDCWD, NOTHING, (path, flags, mode))
OPENED(openat, f, FOLDER, (f, path, flags, mode))
OPENED(openat64, f, FOLDER, (f, path, flags, mode))
