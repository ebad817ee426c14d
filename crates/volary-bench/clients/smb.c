/* An SMB client: smb URL …, the port in SMB_PORT, user and password in SMB_USER
 * and SMB_PASSWORD. One connection, one call at a time, as a program that uses
 * libsmbclient makes them. */
#include "descriptors.h"
#include <fcntl.h>
#include <libsmbclient.h>
#include <sys/stat.h>

static void make_dir(const char *path) { ok(smbc_mkdir(at(path), 0755), "mkdir"); }
static void remove_dir(const char *path) { ok(smbc_rmdir(at(path)), "rmdir"); }
static void remove_file(const char *path) { ok(smbc_unlink(at(path)), "unlink"); }

static struct file *create_file(const char *path) {
    return opened(smbc_open(at(path), O_CREAT | O_EXCL | O_RDWR, 0644), "create");
}

static struct file *open_file(const char *path, int writes) {
    return opened(smbc_open(at(path), writes ? O_RDWR : O_RDONLY, 0), "open");
}

static void close_file(struct file *file) {
    ok(smbc_close(file->fd), "close");
    free(file);
}

static void write_at(struct file *file, uint64_t offset, const char *data, size_t len) {
    if (smbc_lseek(file->fd, (off_t)offset, SEEK_SET) < 0) fail("seek", strerror(errno));
    if (smbc_write(file->fd, data, len) != (ssize_t)len) fail("write", strerror(errno));
}

static void read_at(struct file *file, uint64_t offset, char *data, size_t len) {
    if (smbc_lseek(file->fd, (off_t)offset, SEEK_SET) < 0) fail("seek", strerror(errno));
    if (smbc_read(file->fd, data, len) != (ssize_t)len) fail("read", strerror(errno));
}

static int can_sync(void) { return 0; }
static void sync_file(struct file *file) { (void)file; }

static void stat_file(const char *path) {
    struct stat st;
    ok(smbc_stat(at(path), &st), "stat");
}

static int count_entries(const char *path) {
    int dir = ok(smbc_opendir(at(path)), "opendir"), seen = 0;
    while (smbc_readdir((unsigned)dir)) seen++;
    ok(smbc_closedir(dir), "closedir");
    return seen;
}

static void write_large(struct file *file, int mebibytes, char *data) {
    for (int i = 0; i < mebibytes; i++) write_at(file, (uint64_t)i * MEBI, data, MEBI);
}

static void read_large(struct file *file, int mebibytes, char *data) {
    for (int i = 0; i < mebibytes; i++) read_at(file, (uint64_t)i * MEBI, data, MEBI);
}

static void give(char *to, int room, const char *name) {
    const char *value = getenv(name);
    snprintf(to, (size_t)room, "%s", value ? value : "");
}

static void login(const char *server, const char *share, char *group, int group_len, char *user,
                  int user_len, char *password, int password_len) {
    (void)server, (void)share;
    snprintf(group, (size_t)group_len, "%s", "WORKGROUP");
    give(user, user_len, "SMB_USER");
    give(password, password_len, "SMB_PASSWORD");
}

int main(int count, char **args) {
    if (count < 3) fail("usage", "smb URL WHAT");
    const char *port = getenv("SMB_PORT");
    SMBCCTX *context = smbc_new_context();
    smbc_setFunctionAuthData(context, login);
    smbc_setPort(context, (uint16_t)atoi(port ? port : "445"));
    smbc_setOptionUseKerberos(context, 0);
    if (!smbc_init_context(context)) fail("smbc_init_context", strerror(errno));
    smbc_set_context(context);
    base = args[1];
    return client_main(count - 2, args + 2);
}
