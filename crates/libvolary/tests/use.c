/* Uses all of libvolary, in the directory that it is run in. */

#include <volary.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void expect(int line, int64_t got, int64_t wanted)
{
    if (got == wanted)
        return;
    fprintf(stderr, "line %d: %lld, not %lld: %s\n", line, (long long)got, (long long)wanted,
            volary_error());
    exit(1);
}

static void holds(int line, int is_so)
{
    if (is_so)
        return;
    fprintf(stderr, "line %d does not hold; last: %s\n", line, volary_error());
    exit(1);
}

#define EXPECT(got, wanted) expect(__LINE__, (got), (wanted))
#define OK(call) expect(__LINE__, (call), 0)
#define HOLDS(is_so) holds(__LINE__, (is_so))

/* Null pointers, numbers that stand for nothing, and values that are none. */
static void mistakes(void)
{
    VolaryVol vol = 0;
    VolaryFile file = 0;
    VolaryStat stat;
    VolaryOptions unset;
    uint64_t left;
    char small[4];

    EXPECT(volary_open(NULL, NULL, &vol), -VOLARY_ERROR_INVALID);
    EXPECT(volary_open("mem:", NULL, NULL), -VOLARY_ERROR_INVALID);
    EXPECT(volary_open("none.img", NULL, &vol), -VOLARY_ERROR_NOT_FOUND);
    HOLDS(vol == 0 && strstr(volary_error(), "cannot open none.img: ") != NULL);
    memset(&unset, 0, sizeof unset);
    EXPECT(volary_open("mem:", &unset, &vol), -VOLARY_ERROR_INVALID);
    unset.size = sizeof unset;
    unset.kind = "\xff";
    EXPECT(volary_open("mem:", &unset, &vol), -VOLARY_ERROR_INVALID);
    EXPECT(volary_make("bad.img", "hfs", 1 << 20, NULL, &vol), -VOLARY_ERROR_INVALID);
    EXPECT(volary_check("none.img", NULL, VOLARY_CHECK_LOOK, NULL, NULL, &left),
           -VOLARY_ERROR_NOT_FOUND);
    EXPECT(volary_check("none.img", NULL, 7, NULL, NULL, &left), -VOLARY_ERROR_INVALID);
    EXPECT(volary_close(0), -VOLARY_ERROR_STALE);
    EXPECT(volary_sync(12345), -VOLARY_ERROR_STALE);
    EXPECT(volary_file_close(1), -VOLARY_ERROR_STALE);
    EXPECT(volary_walk_end(1), -VOLARY_ERROR_STALE);
    EXPECT(volary_server_stop(1), -VOLARY_ERROR_STALE);

    OK(volary_open("mem:", NULL, &vol));
    EXPECT(volary_stat(vol, NULL, 1, &stat), -VOLARY_ERROR_INVALID);
    EXPECT(volary_stat(vol, "/", 1, NULL), -VOLARY_ERROR_INVALID);
    EXPECT(volary_read(vol, "/docs/words.txt", 0, NULL, 10), -VOLARY_ERROR_INVALID);
    EXPECT(volary_read(vol, "/docs/words.txt", 0, NULL, 0), 0);
    EXPECT(volary_read(vol, "/docs", 0, small, sizeof small), -VOLARY_ERROR_IS_DIR);
    EXPECT(volary_write(vol, "/a", "x", 1), -VOLARY_ERROR_READ_ONLY);
    EXPECT(volary_file_open(vol, "/docs/words.txt", 99, &file), -VOLARY_ERROR_INVALID);
    OK(volary_file_open(vol, "/docs/words.txt", VOLARY_HOW_READ, &file));
    /* One number for another. */
    EXPECT(volary_close(file), -VOLARY_ERROR_STALE);
    EXPECT(volary_file_close(vol), -VOLARY_ERROR_STALE);
    EXPECT(volary_file_write(file, 0, "x", 1), -VOLARY_ERROR_ACCESS);
    OK(volary_close(vol));
    EXPECT(volary_file_read(file, 0, small, sizeof small), -VOLARY_ERROR_STALE);
    volary_file_close(file);
    EXPECT(volary_close(vol), -VOLARY_ERROR_STALE);
}

static void files(VolaryVol vol)
{
    VolaryFile file;
    VolaryStat stat;
    VolarySpace space;
    char bytes[16];
    char target[4096];

    OK(volary_mkdir(vol, "/a/b", 1));
    EXPECT(volary_mkdir(vol, "/a/b", 0), -VOLARY_ERROR_EXISTS);
    OK(volary_write(vol, "/a/b/file", "content", 7));
    OK(volary_append(vol, "a/b/file", "more", 4));
    EXPECT(volary_read(vol, "/a/b/file", 4, bytes, sizeof bytes), 7);
    HOLDS(memcmp(bytes, "entmore", 7) == 0);
    OK(volary_chmod(vol, "/a/b/file", 0640));
    OK(volary_chown(vol, "/a/b/file", 5, 6));
    OK(volary_set_times(vol, "/a/b/file", 1, 0, 1000000000, 0));
    OK(volary_stat(vol, "/a/b/file", 1, &stat));
    HOLDS(stat.size == 11 && S_ISREG(stat.mode) && (stat.mode & 07777) == 0640);
    HOLDS(stat.uid == 5 && stat.gid == 6 && stat.mtime == 1000000000 && stat.nlink == 1);
    OK(volary_symlink(vol, "b/file", "/a/link"));
    OK(volary_readlink(vol, "/a/link", target, sizeof target));
    HOLDS(strcmp(target, "b/file") == 0);
    EXPECT(volary_readlink(vol, "/a/link", target, 3), -VOLARY_ERROR_TOO_BIG);
    OK(volary_stat(vol, "/a/link", 0, &stat));
    HOLDS(S_ISLNK(stat.mode));
    OK(volary_rename(vol, "/a/b/file", "/a/b/moved"));

    OK(volary_file_open(vol, "/a/b/moved", VOLARY_HOW_UPDATE, &file));
    OK(volary_file_write(file, 100, "far", 3));
    EXPECT(volary_file_read(file, 98, bytes, sizeof bytes), 5);
    HOLDS(memcmp(bytes, "\0\0far", 5) == 0);
    OK(volary_file_set_len(file, 3));
    OK(volary_file_stat(file, &stat));
    HOLDS(stat.size == 3);
    OK(volary_file_sync(file));
    OK(volary_file_close(file));
    EXPECT(volary_file_close(file), -VOLARY_ERROR_STALE);
    EXPECT(volary_remove(vol, "/a", 0), -VOLARY_ERROR_NOT_EMPTY);
    OK(volary_remove(vol, "/a", 1));
    OK(volary_space(vol, &space));
    HOLDS(space.free > 0 && space.free <= space.size && space.block > 0);
    OK(volary_sync(vol));
}

static void trees(VolaryVol vol)
{
    VolaryWalk walk;
    VolaryStat stat;
    char path[8192];
    uint64_t count = 0;
    int answered, found = 0, skipped = 0;
    FILE *out;

    OK(mkdir("tree", 0755));
    OK(mkdir("tree/below", 0755));
    out = fopen("tree/below/file", "w");
    HOLDS(out != NULL && fputs("of the host", out) >= 0 && fclose(out) == 0);
    OK(volary_copy_in(vol, "tree", "/", &count));
    EXPECT(count, 1);
    OK(volary_copy_out(vol, "/tree", "out", NULL));
    out = fopen("out/below/file", "r");
    HOLDS(out != NULL && fread(path, 1, sizeof path, out) == 11 && fclose(out) == 0);
    HOLDS(memcmp(path, "of the host", 11) == 0);
    EXPECT(volary_copy_in(vol, "not-there", "/", NULL), -VOLARY_ERROR_NOT_FOUND);

    OK(volary_walk(vol, "/", &walk));
    while ((answered = volary_walk_next(walk, path, sizeof path, &stat)) == 1)
        found += strcmp(path, "/tree/below/file") == 0 && stat.size == 11;
    EXPECT(answered, 0);
    EXPECT(found, 1);
    EXPECT(volary_walk_next(walk, path, sizeof path, &stat), 0);
    OK(volary_walk_end(walk));
    OK(volary_walk(vol, "/", &walk));
    while ((answered = volary_walk_next(walk, path, sizeof path, &stat)) == 1) {
        skipped += strchr(path + 1, '/') != NULL;
        OK(volary_walk_skip(walk));
    }
    EXPECT(skipped, 0);
    OK(volary_walk_end(walk));
    OK(volary_walk(vol, "/none", &walk));
    EXPECT(volary_walk_next(walk, path, sizeof path, &stat), -VOLARY_ERROR_NOT_FOUND);
    EXPECT(volary_walk_next(walk, path, sizeof path, &stat), 0);
    OK(volary_walk_end(walk));
}

struct job {
    VolaryVol vol;
    int number;
};

static void *work(void *given)
{
    struct job *job = given;
    char path[64], bytes[64];
    int i;

    for (i = 0; i < 50; i++) {
        snprintf(path, sizeof path, "/t%d-%d", job->number, i);
        OK(volary_write(job->vol, path, path, strlen(path)));
        EXPECT(volary_read(job->vol, path, 0, bytes, sizeof bytes), (int64_t)strlen(path));
        HOLDS(memcmp(path, bytes, strlen(path)) == 0);
        /* Each thread has errors of its own. */
        snprintf(path, sizeof path, "/none%d", job->number);
        EXPECT(volary_read(job->vol, path, 0, bytes, sizeof bytes), -VOLARY_ERROR_NOT_FOUND);
        HOLDS(strstr(volary_error(), path) != NULL);
    }
    return NULL;
}

static void threads(VolaryVol vol)
{
    pthread_t all[4];
    struct job jobs[4];
    int i;

    for (i = 0; i < 4; i++) {
        jobs[i].vol = vol;
        jobs[i].number = i;
        OK(pthread_create(&all[i], NULL, work, &jobs[i]));
    }
    for (i = 0; i < 4; i++)
        OK(pthread_join(all[i], NULL));
}

static void servers(VolaryVol vol)
{
    VolaryServer nfs, smb, mount;
    VolaryVol client;
    char address[64], url[128], bytes[16];
    int answered;

    EXPECT(volary_serve_nfs(vol, "nowhere", "x", 1, &nfs), -VOLARY_ERROR_INVALID);
    OK(volary_serve_nfs(vol, "127.0.0.1:0", "x", 1, &nfs));
    OK(volary_server_address(nfs, address, sizeof address));
    EXPECT(volary_server_address(nfs, address, 3), -VOLARY_ERROR_TOO_BIG);
    snprintf(url, sizeof url, "nfs://%s/x", address);
    OK(volary_open(url, NULL, &client));
    EXPECT(volary_read(client, "/tree/below/file", 3, bytes, sizeof bytes), 8);
    OK(volary_close(client));
    OK(volary_server_stop(nfs));
    EXPECT(volary_open(url, NULL, &client) < 0, 1);
    EXPECT(volary_serve_smb(vol, "127.0.0.1:0", "x", 0, "me", "", &smb), -VOLARY_ERROR_INVALID);
    OK(volary_serve_smb(vol, "127.0.0.1:0", "x", 0, "me", "secret", &smb));
    OK(volary_server_stop(smb));
    EXPECT(volary_mount(vol, "not-there", 0, &mount), -VOLARY_ERROR_NOT_FOUND);
    OK(mkdir("mnt", 0755));
    answered = volary_mount(vol, "mnt", 0, &mount);
    if (answered == 0) {
        FILE *file = fopen("mnt/tree/below/file", "r");
        HOLDS(file != NULL && fread(bytes, 1, sizeof bytes, file) == 11 && fclose(file) == 0);
        OK(volary_server_stop(mount));
    } else {
        /* Not every host has FUSE. */
        HOLDS(answered == -VOLARY_ERROR_UNSUPPORTED || answered == -VOLARY_ERROR_NOT_PERMITTED);
    }
}

static void heard(void *context, const char *code, const char *path, const char *message)
{
    (void)path;
    HOLDS(code[0] != 0 && message[0] != 0);
    ++*(int *)context;
}

static void checks(void)
{
    FILE *image = fopen("disk.img", "r+");
    uint64_t left = 99;
    int findings = 0;

    OK(volary_check("disk.img", NULL, VOLARY_CHECK_LOOK, heard, &findings, &left));
    EXPECT(left, 0);
    /* An entry of the first FAT that is not in the second: the sectors before it are in the boot sector. */
    HOLDS(image != NULL && fseek(image, 14, SEEK_SET) == 0);
    {
        int low = fgetc(image), high = fgetc(image);
        OK(fseek(image, (low + 256L * high) * 512 + 2000, SEEK_SET));
    }
    HOLDS(fputc(0x55, image) == 0x55 && fclose(image) == 0);
    findings = 0;
    OK(volary_check("disk.img", NULL, VOLARY_CHECK_LOOK, heard, &findings, &left));
    HOLDS(left > 0 && findings > 0);
    OK(volary_check("disk.img", NULL, VOLARY_CHECK_MEND, NULL, NULL, &left));
    EXPECT(left, 0);
}

int main(int argc, char **argv)
{
    VolaryOptions options;
    VolaryVol vol;
    int is_brief = argc > 1 && strcmp(argv[1], "briefly") == 0;

    HOLDS(volary_version()[0] != 0);
    EXPECT(volary_error()[0], 0);
    mistakes();
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.make_options = "unix";
    options.label = "FROMC";
    options.seed = 7;
    OK(volary_make("disk.img", "fat16", 16 << 20, &options, &vol));
    EXPECT(volary_make("disk.img", "fat16", 16 << 20, &options, &vol), -VOLARY_ERROR_EXISTS);
    files(vol);
    trees(vol);
    threads(vol);
    if (!is_brief)
        servers(vol);
    OK(volary_close(vol));
    checks();
    options.layers = "subtree=/tree\nreadonly";
    options.writes = 1;
    OK(volary_open("disk.img", &options, &vol));
    EXPECT(volary_read(vol, "/below/file", 0, NULL, 0), 0);
    EXPECT(volary_write(vol, "/below/file", "x", 1), -VOLARY_ERROR_READ_ONLY);
    OK(volary_close(vol));
    puts("all well");
    return 0;
}
