/* An NFSv3 client: nfs URL …. One connection, one call at a time, but for the
 * whole large file: that goes with eight calls in flight. */
#include "phases.h"
#include <fcntl.h>
#include <nfsc/libnfs.h>
#include <poll.h>

enum { IN_FLIGHT = 8 };

struct file {
    struct nfsfh *fh;
};

static struct nfs_context *nfs;

static int ok(int answer, const char *what) {
    if (answer < 0) fail(what, nfs_get_error(nfs));
    return answer;
}

static struct file *opened(const char *path, int flags, const char *what) {
    struct file *file = malloc(sizeof *file);
    if (!file) fail("malloc", "no memory");
    ok(nfs_open2(nfs, path, flags, 0644, &file->fh), what);
    return file;
}

static void make_dir(const char *path) { ok(nfs_mkdir(nfs, path), "mkdir"); }
static void remove_dir(const char *path) { ok(nfs_rmdir(nfs, path), "rmdir"); }
static void remove_file(const char *path) { ok(nfs_unlink(nfs, path), "unlink"); }

static struct file *create_file(const char *path) {
    return opened(path, O_CREAT | O_RDWR, "create");
}

static struct file *open_file(const char *path, int writes) {
    return opened(path, writes ? O_RDWR : O_RDONLY, "open");
}

static void close_file(struct file *file) {
    ok(nfs_close(nfs, file->fh), "close");
    free(file);
}

static void write_at(struct file *file, uint64_t offset, const char *data, size_t len) {
    ok(nfs_pwrite(nfs, file->fh, offset, len, (char *)data), "write");
}

static void read_at(struct file *file, uint64_t offset, char *data, size_t len) {
    if (ok(nfs_pread(nfs, file->fh, offset, len, data), "read") != (int)len)
        fail("read", "short");
}

static int can_sync(void) { return 1; }
static void sync_file(struct file *file) { ok(nfs_fsync(nfs, file->fh), "fsync"); }

static void stat_file(const char *path) {
    struct nfs_stat_64 st;
    ok(nfs_stat64(nfs, path, &st), "stat");
}

static int count_entries(const char *path) {
    struct nfsdir *dir;
    int seen = 0;
    ok(nfs_opendir(nfs, path, &dir), "opendir");
    while (nfs_readdir(nfs, dir)) seen++;
    nfs_closedir(nfs, dir);
    return seen;
}

/* A large file on its way: `next` MiB are asked for, `under_way` of them not answered. */
struct large {
    struct nfsfh *fh;
    char *data;
    int next, total, under_way, writes;
};

static void ask(struct large *large);

static void answered(int status, struct nfs_context *context, void *data, void *private) {
    (void)context, (void)data;
    struct large *large = private;
    if (status != MEBI) fail(large->writes ? "write" : "read", nfs_get_error(nfs));
    large->under_way--;
    ask(large);
}

static void ask(struct large *large) {
    while (large->next < large->total && large->under_way < IN_FLIGHT) {
        uint64_t offset = (uint64_t)large->next * MEBI;
        int asked =
            large->writes
                ? nfs_pwrite_async(nfs, large->fh, offset, MEBI, large->data, answered, large)
                : nfs_pread_async(nfs, large->fh, offset, MEBI, answered, large);
        ok(asked, "asking");
        large->next++;
        large->under_way++;
    }
}

static void carry(struct file *file, int mebibytes, char *data, int writes) {
    struct large large = {file->fh, data, 0, mebibytes, 0, writes};
    ask(&large);
    while (large.under_way > 0) {
        struct pollfd fd = {nfs_get_fd(nfs), (short)nfs_which_events(nfs), 0};
        if (poll(&fd, 1, 10000) <= 0) fail("poll", "no answer in ten seconds");
        ok(nfs_service(nfs, fd.revents), "service");
    }
}

static void write_large(struct file *file, int mebibytes, char *data) {
    carry(file, mebibytes, data, 1);
}

static void read_large(struct file *file, int mebibytes, char *data) {
    carry(file, mebibytes, data, 0);
}

int main(int count, char **args) {
    if (count < 3) fail("usage", "nfs URL WHAT");
    nfs = nfs_init_context();
    struct nfs_url *url = nfs ? nfs_parse_url_dir(nfs, args[1]) : NULL;
    if (!url) fail(args[1], nfs ? nfs_get_error(nfs) : "no memory");
    ok(nfs_mount(nfs, url->server, url->path), "mount");
    return client_main(count - 2, args + 2);
}
