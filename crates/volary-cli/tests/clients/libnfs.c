/* Copies a tree of files and directories into an export and out again, with libnfs.
 * usage: libnfs URL TREE NAME-THERE PLACE-BACK */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <nfsc/libnfs.h>

static struct nfs_context *nfs;
static char piece[65536];

static void check(int wrong, const char *what, const char *path) {
    if (wrong) {
        fprintf(stderr, "%s %s: %s\n", what, path, nfs_get_error(nfs));
        exit(1);
    }
}

static char *join(const char *dir, const char *name) {
    char *path = NULL;
    if (asprintf(&path, "%s/%s", dir, name) < 0) exit(1);
    return path;
}

static int is_dot(const char *name) { return !strcmp(name, ".") || !strcmp(name, ".."); }

static void put_file(const char *here, const char *there) {
    struct nfsfh *to;
    int from = open(here, O_RDONLY);
    ssize_t n;
    check(from < 0, "open", here);
    check(nfs_creat(nfs, there, 0644, &to) != 0, "creat", there);
    while ((n = read(from, piece, sizeof piece)) > 0)
        check(nfs_write(nfs, to, n, piece) != n, "write", there);
    check(n < 0 || nfs_close(nfs, to) != 0, "close", there);
    close(from);
}

static void put(const char *here, const char *there) {
    DIR *dir = opendir(here);
    struct dirent *entry;
    check(!dir, "opendir", here);
    check(nfs_mkdir(nfs, there) != 0, "mkdir", there);
    while ((entry = readdir(dir))) {
        if (is_dot(entry->d_name)) continue;
        char *from = join(here, entry->d_name), *to = join(there, entry->d_name);
        (entry->d_type == DT_DIR ? put : put_file)(from, to);
        free(from);
        free(to);
    }
    closedir(dir);
}

static void get_file(const char *there, const char *here) {
    struct nfsfh *from;
    int to = open(here, O_WRONLY | O_CREAT | O_EXCL, 0644), n;
    check(to < 0, "create", here);
    check(nfs_open(nfs, there, O_RDONLY, &from) != 0, "open", there);
    while ((n = nfs_read(nfs, from, sizeof piece, piece)) > 0)
        check(write(to, piece, n) != n, "write", here);
    check(n < 0 || nfs_close(nfs, from) != 0, "read", there);
    close(to);
}

static void get(const char *there, const char *here) {
    struct nfsdir *dir;
    struct nfsdirent *entry;
    check(mkdir(here, 0755) != 0, "mkdir", here);
    check(nfs_opendir(nfs, there, &dir) != 0, "opendir", there);
    while ((entry = nfs_readdir(nfs, dir))) {
        if (is_dot(entry->name)) continue;
        char *from = join(there, entry->name), *to = join(here, entry->name);
        (S_ISDIR(entry->mode) ? get : get_file)(from, to);
        free(from);
        free(to);
    }
    nfs_closedir(nfs, dir);
}

int main(int argc, char **argv) {
    if (argc != 5 || !(nfs = nfs_init_context())) return 2;
    struct nfs_url *url = nfs_parse_url_dir(nfs, argv[1]);
    check(!url, "url", argv[1]);
    check(nfs_mount(nfs, url->server, url->path) != 0, "mount", argv[1]);
    put(argv[2], argv[3]);
    get(argv[3], argv[4]);
    nfs_destroy_context(nfs);
    return 0;
}
