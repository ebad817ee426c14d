/* What every client does: phases, each timed and printed as "name seconds".
 *
 * A client includes this, defines the calls below on its own protocol, and
 * hands its arguments to `client_main`. Paths are relative to the directory
 * that the client was told of. A call that fails ends the program.
 *
 *   CLIENT peers FILES MEBIBYTES   small files and a large one, beside a rival
 *   CLIENT large KIBIBYTES         the large-file benchmark of LFS and FIFS: 8 MB by so much at a time
 *   CLIENT small                   the small-file benchmark of LFS and FIFS: 1000 files of 1 KB in 10 directories
 */
#ifndef PHASES_H
#define PHASES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct file;

static void make_dir(const char *path);
static void remove_dir(const char *path);
static struct file *create_file(const char *path);
static struct file *open_file(const char *path, int writes);
static void write_at(struct file *file, uint64_t offset, const char *data, size_t len);
static void read_at(struct file *file, uint64_t offset, char *data, size_t len);
/* Whether the client has such a call. */
static int can_sync(void);
static void sync_file(struct file *file);
static void close_file(struct file *file);
static void stat_file(const char *path);
static int count_entries(const char *path);
static void remove_file(const char *path);
/* Both carry a whole file in steps of 1 MiB, as the client does that best. */
static void write_large(struct file *file, int mebibytes, char *data);
static void read_large(struct file *file, int mebibytes, char *data);

enum { MEBI = 1 << 20, SMALL_LEN = 4096, PAPER_LEN = 8 << 20, PAPER_FILES = 1000, PAPER_DIRS = 10, TINY_LEN = 1024 };

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static double phase_begin;

static double clock_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void begin(void) { phase_begin = clock_seconds(); }

static void end(const char *name) {
    printf("%s %.6f\n", name, clock_seconds() - phase_begin);
    fflush(stdout);
}

/* A buffer of `len` bytes that are not all alike. */
static char *filled(size_t len) {
    char *bytes = malloc(len);
    if (!bytes) fail("malloc", "no memory");
    for (size_t i = 0; i < len; i++) bytes[i] = (char)(i * 131 + (i >> 8));
    return bytes;
}

static const char *numbered(int number) {
    static char path[64];
    snprintf(path, sizeof path, "/bench/f%05d", number);
    return path;
}

static void peers(int files, int mebibytes) {
    char *data = filled(MEBI);
    make_dir("/bench");
    begin();
    for (int i = 0; i < files; i++) {
        struct file *file = create_file(numbered(i));
        write_at(file, 0, data, SMALL_LEN);
        close_file(file);
    }
    end("create");
    begin();
    for (int i = 0; i < files; i++) stat_file(numbered(i));
    end("stat");
    begin();
    for (int round = 0; round < 10; round++)
        if (count_entries("/bench") < files) fail("readdir", "entries are missing");
    end("list");
    begin();
    for (int i = 0; i < files; i++) {
        struct file *file = open_file(numbered(i), 0);
        read_at(file, 0, data, SMALL_LEN);
        close_file(file);
    }
    end("read");
    begin();
    for (int i = 0; i < files; i++) remove_file(numbered(i));
    end("unlink");
    begin();
    struct file *file = create_file("/bench/large");
    write_large(file, mebibytes, data);
    if (can_sync()) sync_file(file);
    close_file(file);
    end("large-write");
    begin();
    file = open_file("/bench/large", 0);
    read_large(file, mebibytes, data);
    close_file(file);
    end("large-read");
    remove_file("/bench/large");
    remove_dir("/bench");
}

/* The same order of places each time, each once. */
static uint64_t scattered(uint64_t index, uint64_t count) { return (index * 7919 + 13) % count; }

static void paper_large(size_t step) {
    char *data = filled(step);
    uint64_t count = PAPER_LEN / step;
    make_dir("/bench");
    struct file *file = create_file("/bench/large");
    begin();
    for (uint64_t i = 0; i < count; i++) write_at(file, i * step, data, step);
    if (can_sync()) sync_file(file);
    end("sequential-write");
    begin();
    for (uint64_t i = 0; i < count; i++) read_at(file, i * step, data, step);
    end("sequential-read");
    begin();
    for (uint64_t i = 0; i < count; i++) write_at(file, scattered(i, count) * step, data, step);
    if (can_sync()) sync_file(file);
    end("random-write");
    begin();
    for (uint64_t i = 0; i < count; i++) read_at(file, scattered(i, count) * step, data, step);
    end("random-read");
    begin();
    for (uint64_t i = 0; i < count; i++) read_at(file, i * step, data, step);
    end("read-again");
    close_file(file);
    remove_file("/bench/large");
    remove_dir("/bench");
}

static const char *tiny(int number) {
    static char path[64];
    snprintf(path, sizeof path, "/bench/d%d/f%05d", number % PAPER_DIRS, number);
    return path;
}

static const char *tiny_dir(int number) {
    static char path[64];
    snprintf(path, sizeof path, "/bench/d%d", number);
    return path;
}

static void rewrite(char *data, int syncs) {
    for (int i = 0; i < PAPER_FILES; i++) {
        struct file *file = open_file(tiny(i), 1);
        write_at(file, 0, data, TINY_LEN);
        if (syncs) sync_file(file);
        close_file(file);
    }
}

static void paper_small(void) {
    char *data = filled(TINY_LEN);
    make_dir("/bench");
    for (int i = 0; i < PAPER_DIRS; i++) make_dir(tiny_dir(i));
    begin();
    for (int i = 0; i < PAPER_FILES; i++) {
        struct file *file = create_file(tiny(i));
        write_at(file, 0, data, TINY_LEN);
        close_file(file);
    }
    end("create");
    begin();
    for (int i = 0; i < PAPER_FILES; i++) {
        struct file *file = open_file(tiny(i), 0);
        read_at(file, 0, data, TINY_LEN);
        close_file(file);
    }
    end("read");
    begin();
    rewrite(data, 0);
    end("write");
    if (can_sync()) {
        begin();
        rewrite(data, 1);
        end("write-sync");
    }
    begin();
    for (int i = 0; i < PAPER_FILES; i++) remove_file(tiny(i));
    end("delete");
    for (int i = 0; i < PAPER_DIRS; i++) remove_dir(tiny_dir(i));
    remove_dir("/bench");
}

static int client_main(int count, char **args) {
    if (count == 3 && !strcmp(args[0], "peers"))
        peers(atoi(args[1]), atoi(args[2]));
    else if (count == 2 && !strcmp(args[0], "large") && atoi(args[1]) > 0)
        paper_large((size_t)atoi(args[1]) * 1024);
    else if (count == 1 && !strcmp(args[0], "small"))
        paper_small();
    else
        fail("usage", "CLIENT PLACE peers FILES MEBIBYTES | large KIBIBYTES | small");
    return 0;
}

#endif
