/* What clients share whose calls answer with descriptors and errno. */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include "phases.h"
#include <errno.h>

struct file {
    int fd;
};

/* The directory or URL that paths begin at. */
static const char *base;

static const char *at(const char *path) {
    static char whole[4096];
    snprintf(whole, sizeof whole, "%s%s", base, path);
    return whole;
}

static int ok(int answer, const char *what) {
    if (answer < 0) fail(what, strerror(errno));
    return answer;
}

static struct file *opened(int fd, const char *what) {
    struct file *file = malloc(sizeof *file);
    if (!file) fail("malloc", "no memory");
    file->fd = ok(fd, what);
    return file;
}

#endif
