/* Counts the I/O calls on files whose path contains FAULTY_DISK_NAME, records them, and makes one of them fail.
 *
 * FAULTY_DISK_NAME   part of the paths that count
 * FAULTY_DISK_FAIL   number of the call that fails (from 1); FAULTY_DISK_KEEP=1: all later ones fail, too
 * FAULTY_DISK_ERRNO  its errno; FAULTY_DISK_SHORT=1: a write stores half of its bytes before it fails
 * FAULTY_DISK_TRACE  file to which each call is appended: "W path offset length\n" and its bytes, "S path\n" (synced),
 *                    "T path size\n" (truncated), "U path\n" (unlinked), "R path new\n" (renamed)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, #name)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long calls;

static int named(const char *path) {
    const char *part = getenv("FAULTY_DISK_NAME");
    return part && path && strstr(path, part) && !strstr(path, "-shm");
}

static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return named(path);
}

static int fails(void) {
    const char *at = getenv("FAULTY_DISK_FAIL"), *code = getenv("FAULTY_DISK_ERRNO"), *keep = getenv("FAULTY_DISK_KEEP");
    long number = ++calls, wanted = at ? atol(at) : 0;
    if (!wanted || (keep ? number < wanted : number != wanted)) return 0;
    return code ? atoi(code) : EIO;
}

static void trace(const void *bytes, size_t size, const char *form, ...) {
    const char *name = getenv("FAULTY_DISK_TRACE");
    static int fd = -1;
    char line[2 * PATH_MAX + 64];
    va_list values;
    if (!name) return;
    REAL(ssize_t, write, int, const void *, size_t);
    if (fd < 0) fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    va_start(values, form);
    int length = vsnprintf(line, sizeof line, form, values);
    va_end(values);
    if (real(fd, line, length) != length || (size && real(fd, bytes, size) != (ssize_t)size)) abort();
}

static ssize_t stored(int fd, const void *bytes, size_t size, off_t at, ssize_t (*put)(int, const void *, size_t, off_t)) {
    char path[PATH_MAX];
    if (!path_of(fd, path)) return put(fd, bytes, size, at);
    pthread_mutex_lock(&lock);
    int code = fails();
    ssize_t done = -1;
    if (code && getenv("FAULTY_DISK_SHORT")) put(fd, bytes, size / 2, at);
    if (!code && (done = put(fd, bytes, size, at)) > 0)
        trace(bytes, done, "W %s %lld %zd\n", path, (long long)at, done);
    pthread_mutex_unlock(&lock);
    if (code) errno = code;
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at) {
    REAL(ssize_t, pwrite, int, const void *, size_t, off_t);
    return stored(fd, bytes, size, at, real);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t at) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off_t);
    return stored(fd, bytes, size, at, real);
}

static int synced(int fd, int (*sync)(int)) {
    char path[PATH_MAX];
    if (!path_of(fd, path)) return sync(fd);
    pthread_mutex_lock(&lock);
    int code = fails(), done = code ? -1 : sync(fd);
    if (!done) trace(NULL, 0, "S %s\n", path);
    pthread_mutex_unlock(&lock);
    if (code) errno = code;
    return done;
}

int fsync(int fd) {
    REAL(int, fsync, int);
    return synced(fd, real);
}

int fdatasync(int fd) {
    REAL(int, fdatasync, int);
    return synced(fd, real);
}

static int cut(int fd, off_t size, int (*shorten)(int, off_t)) {
    char path[PATH_MAX];
    if (!path_of(fd, path)) return shorten(fd, size);
    pthread_mutex_lock(&lock);
    int code = fails(), done = code ? -1 : shorten(fd, size);
    if (!done) trace(NULL, 0, "T %s %lld\n", path, (long long)size);
    pthread_mutex_unlock(&lock);
    if (code) errno = code;
    return done;
}

int ftruncate(int fd, off_t size) {
    REAL(int, ftruncate, int, off_t);
    return cut(fd, size, real);
}

int ftruncate64(int fd, off_t size) {
    REAL(int, ftruncate64, int, off_t);
    return cut(fd, size, real);
}

int unlink(const char *path) {
    REAL(int, unlink, const char *);
    if (!named(path)) return real(path);
    pthread_mutex_lock(&lock);
    int code = fails(), done = code ? -1 : real(path);
    if (!done) trace(NULL, 0, "U %s\n", path);
    pthread_mutex_unlock(&lock);
    if (code) errno = code;
    return done;
}

int rename(const char *path, const char *other) {
    REAL(int, rename, const char *, const char *);
    if (!named(path)) return real(path, other);
    pthread_mutex_lock(&lock);
    int code = fails(), done = code ? -1 : real(path, other);
    if (!done) trace(NULL, 0, "R %s %s\n", path, other);
    pthread_mutex_unlock(&lock);
    if (code) errno = code;
    return done;
}
