/* A plug-in that lies, hangs and crashes, as its configuration says. */
#define _GNU_SOURCE
#include "volary_plugin.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static char how[64];
static const VolaryHost *host;
static const VolaryList *kept_list;
static const VolaryContext *kept_cx;
static volatile int late_is_wrong, late_is_over;
static const VolaryEntry good = {1, {2, 0}, VOLARY_FILE, 4, "file", NULL};

static int is(const char *what) { return !strcmp(how, what); }

static int32_t fill(uint64_t ino, VolaryAttr *out)
{
	out->node.ino = ino;
	out->kind = ino == 1 ? VOLARY_DIR : VOLARY_FILE;
	out->mode = 0644;
	out->nlink = 1;
	return ino == 1 || ino == 2 ? 0 : VOLARY_STALE;
}

static void wild(void)
{
	/* All over what malloc gave and gives. */
	for (int i = 0; i < 64; i++) {
		uintptr_t at = (uintptr_t)malloc(1000) - 4096 * (uintptr_t)(i & 7);
		for (int n = 0; n < 64 << 10; n++)
			((volatile char *)at)[n] = (char)(0x41 + i);
	}
}

/* Whether a file of the host's program is open here. */
static int inherited(void)
{
	char link[64], target[4096];
	for (int fd = 0; fd < 1024; fd++) {
		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		ssize_t len = readlink(link, target, sizeof target - 1);
		target[len < 0 ? 0 : len] = 0;
		if (strstr(target, "of-the-host"))
			return 1;
	}
	return 0;
}

/* Calls back when the listing has long returned, and no call is at work. */
static void *late(void *nothing)
{
	usleep(200000);
	late_is_wrong = kept_list->add(kept_list, &good) || !kept_cx->cancelled(kept_cx);
	late_is_over = 1;
	return nothing;
}

static int32_t bad_getattr(void *fs, const VolaryContext *cx, VolaryNode node, VolaryAttr *out)
{
	int32_t code = fill(node.ino, out);
	if (code || node.ino == 1)
		return code;
	if (is("kind")) out->kind = 99;
	if (is("mode")) out->mode = 0100644;
	if (is("other-node")) out->node.ino = 3;
	if (is("zero-node")) out->node.ino = 0;
	if (is("nanos")) out->mtime.nanos = 1000000000;
	if (is("size")) out->size = UINT64_MAX;
	if (is("error")) return -999;
	if (is("odd-answer")) return 7;
	if (is("never")) for (;;) pause();
	if (is("spin")) for (volatile int i = 0;; i++) ;
	if (is("crash")) *(volatile int *)8 = 1;
	if (is("abort")) abort();
	if (is("exit")) exit(3);
	if (is("kill-parent")) return kill(getppid(), SIGKILL) ? 0 : VOLARY_IO;
	if (is("wild")) wild();
	if (is("tkill-parent")) return syscall(SYS_tkill, getppid(), SIGKILL) ? 0 : VOLARY_IO;
	if (is("limit-parent"))
		return prlimit(getppid(), RLIMIT_NOFILE, &(struct rlimit){0, 0}, NULL) ? 0 : VOLARY_IO;
	if (is("limit-self")) return prlimit(0, RLIMIT_NOFILE, NULL, &(struct rlimit){0, 0});
	if (is("fork")) return fork() < 0 ? 0 : VOLARY_IO;
	if (is("inherited")) return inherited() ? VOLARY_IO : 0;
	if (is("exec")) return system("true") ? 0 : VOLARY_IO;
	if (is("flood"))
		for (int i = 0; i < 100000; i++) {
			printf("a line of output that nobody asked for, number %d\n", i);
			fprintf(stderr, "and one of errors, number %d\n", i);
		}
	if (is("log-flood"))
		for (int i = 0; i < 20000; i++)
			host->log(host, VOLARY_LOG_ERROR, "\033[31ma line\n", 12);
	if (is("late"))
		return !late_is_over ? VOLARY_BUSY : late_is_wrong ? VOLARY_CORRUPT : 0;
	if (is("cancel")) {
		while (!cx->cancelled(cx))
			usleep(1000);
		return VOLARY_INTERRUPTED;
	}
	return 0;
}

static int32_t bad_lookup(void *fs, const VolaryContext *cx, VolaryNode dir, const char *name, size_t len,
			  VolaryAttr *out)
{
	if (is("note")) {
		snprintf(cx->note, cx->note_room, "no \033[31m%.*s here", (int)len, name);
		return VOLARY_NOT_FOUND;
	}
	if (is("long-note")) {
		memset(cx->note, 'x', cx->note_room);
		return VOLARY_NOT_FOUND;
	}
	return len == 4 && !memcmp(name, "file", 4) ? fill(2, out) : VOLARY_NOT_FOUND;
}

static int32_t bad_readdir(void *fs, const VolaryContext *cx, VolaryOpen dir, uint64_t from,
			   const VolaryList *list)
{
	static char name[70000];
	VolaryEntry e = good;
	VolaryAttr attr = {0};
	pthread_t thread;
	if (is("late")) {
		kept_list = list;
		kept_cx = cx;
		pthread_create(&thread, NULL, late, NULL);
	}
	if (from)
		return 1;
	if (is("name-slash")) e.name = "a/bc";
	if (is("name-nul")) e.name = "a\0bc";
	if (is("name-empty")) e.name_len = 0;
	if (is("name-null")) e.name = NULL;
	if (is("name-dots")) e.name = "..", e.name_len = 2;
	if (is("name-long")) e.name = memset(name, 'a', sizeof name), e.name_len = 300;
	if (is("name-longer")) e.name_len = UINT32_MAX;
	if (is("cookie-zero")) e.next = 0;
	if (is("entry-kind")) e.kind = 0;
	if (is("entry-zero")) e.node.ino = 0;
	if (is("entry-attr")) fill(1, &attr), e.attr = &attr;
	if (is("more-nothing")) return 0;
	if (is("answer-7")) return list->add(list, &e), 7;
	if (is("cookie-same")) list->add(list, &e);
	if (is("huge"))
		for (uint64_t i = 1; i < 3000000; i++)
			e.next = i, list->add(list, &e);
	return list->add(list, &e) ? 1 : 0;
}

static int64_t bad_read(void *fs, const VolaryContext *cx, VolaryOpen file, uint64_t offset, void *buf,
			size_t len)
{
	if (is("read-more")) return (int64_t)len + 1;
	if (is("read-error")) return INT64_MIN;
	if (is("read-unknown")) return -29;
	return 0;
}

static int64_t bad_readlink(void *fs, const VolaryContext *cx, VolaryNode node, char *buf, size_t room)
{
	if (is("link-huge")) return INT64_MAX;
	if (is("link-grows")) return (int64_t)room + 1;
	return VOLARY_INVALID;
}

static int64_t bad_listxattr(void *fs, const VolaryContext *cx, VolaryNode node, char *buf, size_t room)
{
	if (is("xattr-empty")) return memcpy(buf, "a\0\0b", 5), 5;
	return memcpy(buf, "abc", 3), 3;
}

static int64_t bad_write(void *fs, const VolaryContext *cx, VolaryOpen file, uint64_t offset, uint32_t append,
			 const void *data, size_t len)
{
	return 3;
}

static int32_t bad_access(void *fs, const VolaryContext *cx, VolaryNode node, uint32_t want)
{
	return is("access") ? 7 : (int32_t)want;
}

static int32_t bad_attach(void *fs, const VolaryContext *cx, const VolaryHost *h, const VolaryAttach *a)
{
	host = h;
	if (is("attach-crash")) abort();
	if (is("attach-never")) for (;;) pause();
	if (is("attach-odd")) return 5;
	if (is("attach-unknown")) return -1000;
	if (is("attach-refused"))
		return snprintf(cx->note, cx->note_room, "no such disk"), VOLARY_INVALID;
	return 0;
}

static int32_t bad_caps(void *fs, VolaryCaps *out)
{
	out->can |= VOLARY_CAN_WRITE | VOLARY_CAN_CHECK_ACCESS | VOLARY_CAN_XATTRS | VOLARY_CAN_SYMLINKS;
	if (is("caps-name")) out->name_max = 0;
	if (is("caps-long")) out->name_max = 100000;
	if (is("caps-size")) out->size_max = UINT64_MAX;
	if (is("caps-root")) out->root.ino = 0;
	if (is("caps-error")) return VOLARY_IO;
	return 0;
}

VOLARY_EXPORT const VolaryTable *FileSystemCreate(const char *name, const char *config, uint32_t version)
{
	static struct { VolaryTable t; char more[256]; } big;
	snprintf(how, sizeof how, "%s", config);
	if (is("create-crash")) abort();
	if (is("no-table")) return NULL;
	big.t = (VolaryTable){
		.version = version, .size = sizeof(VolaryTable), .lookup = bad_lookup, .getattr = bad_getattr,
		.readdir = bad_readdir, .read = bad_read, .attach = bad_attach, .caps = bad_caps,
		.readlink = bad_readlink, .listxattr = bad_listxattr, .write = bad_write, .access = bad_access,
	};
	if (is("version")) big.t.version = version + 1;
	if (is("size-none")) big.t.size = 0;
	if (is("size-odd")) big.t.size = sizeof(VolaryTable) - 3;
	if (is("size-huge")) big.t.size = UINT32_MAX;
	if (is("size-more")) big.t.size = sizeof big;
	if (is("size-less")) big.t.size = offsetof(VolaryTable, attach);
	if (is("no-getattr")) big.t.getattr = NULL;
	return &big.t;
}
