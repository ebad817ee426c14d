/* System calls: posix DIR …, on a mount or any directory. With POSIX_DIRECT set the kernel keeps
 * nothing of the files. */
#define _GNU_SOURCE
#include "descriptors.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void make_dir(const char *path) { ok(mkdir(at(path), 0755), "mkdir"); }
static void remove_dir(const char *path) { ok(rmdir(at(path)), "rmdir"); }
static void remove_file(const char *path) { ok(unlink(at(path)), "unlink"); }

static int direct(void) { return getenv("POSIX_DIRECT") ? O_DIRECT : 0; }

static struct file *create_file(const char *path) {
    return opened(open(at(path), O_CREAT | O_EXCL | O_RDWR | direct(), 0644), "create");
}

static struct file *open_file(const char *path, int writes) {
    return opened(open(at(path), (writes ? O_RDWR : O_RDONLY) | direct()), "open");
}

static void close_file(struct file *file) {
    ok(close(file->fd), "close");
    free(file);
}

static void write_at(struct file *file, uint64_t offset, const char *data, size_t len) {
    if (pwrite(file->fd, data, len, (off_t)offset) != (ssize_t)len) fail("write", strerror(errno));
}

static void read_at(struct file *file, uint64_t offset, char *data, size_t len) {
    if (pread(file->fd, data, len, (off_t)offset) != (ssize_t)len) fail("read", strerror(errno));
}

static int can_sync(void) { return 1; }
static void sync_file(struct file *file) { ok(fsync(file->fd), "fsync"); }

static void stat_file(const char *path) {
    struct stat st;
    ok(stat(at(path), &st), "stat");
}

static int count_entries(const char *path) {
    DIR *dir = opendir(at(path));
    int seen = 0;
    if (!dir) fail("opendir", strerror(errno));
    while (readdir(dir)) seen++;
    ok(closedir(dir), "closedir");
    return seen;
}

static void write_large(struct file *file, int mebibytes, char *data) {
    for (int i = 0; i < mebibytes; i++) write_at(file, (uint64_t)i * MEBI, data, MEBI);
}

/* What the kernel has kept of it is not the server's doing. */
static void read_large(struct file *file, int mebibytes, char *data) {
    ok(-posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED), "fadvise");
    for (int i = 0; i < mebibytes; i++) read_at(file, (uint64_t)i * MEBI, data, MEBI);
}

int main(int count, char **args) {
    if (count < 3) fail("usage", "posix DIR WHAT");
    base = args[1];
    return client_main(count - 2, args + 2);
}
