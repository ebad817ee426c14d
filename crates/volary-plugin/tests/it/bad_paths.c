/* A plug-in that is asked by paths and lies, as its configuration says. It has /file and /dir. */
#include "volary_plugin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char how[64];

static int is(const char *what) { return !strcmp(how, what); }

static int32_t bad_getattr(void *fs, const VolaryContext *cx, const char *path, VolaryAttr *out)
{
	int is_dir = !strcmp(path, "/") || !strcmp(path, "/dir");
	if (!is_dir && strcmp(path, "/file") && strcmp(path, "/other"))
		return VOLARY_NOT_FOUND;
	out->kind = is_dir ? VOLARY_DIR : VOLARY_FILE;
	out->mode = 0644;
	out->nlink = 1;
	if (is("links"))
		out->node.ino = !strcmp(path, "/other") ? 8 : 7;
	if (is("root") && !strcmp(path, "/")) out->kind = VOLARY_FILE;
	if (!strcmp(path, "/file")) {
		if (is("kind")) out->kind = 99;
		if (is("mode")) out->mode = 0100644;
		if (is("size")) out->size = UINT64_MAX;
		if (is("crash")) abort();
	}
	return is("answer") ? 5 : 0;
}

static int32_t bad_readdir(void *fs, const VolaryContext *cx, const char *path, const VolaryPathList *list)
{
	static char name[70000];
	list->add(list, ".", VOLARY_DIR);
	list->add(list, "..", 0);
	list->add(list, "file", is("unknown") ? 0 : VOLARY_FILE);
	if (is("name-slash")) list->add(list, "a/b", VOLARY_FILE);
	if (is("name-empty")) list->add(list, "", VOLARY_FILE);
	if (is("name-null")) list->add(list, NULL, VOLARY_FILE);
	if (is("name-long")) list->add(list, memset(name, 'a', sizeof name), VOLARY_FILE);
	if (is("entry-kind")) list->add(list, "x", 99);
	if (is("gone")) list->add(list, "gone", 0);
	if (is("answer-1")) return 1;
	if (is("endless"))
		for (unsigned i = 0;; i++) {
			snprintf(name, sizeof name, "file number %u", i);
			if (!list->add(list, name, VOLARY_FILE))
				break;
		}
	return 0;
}

static int64_t bad_read(void *fs, const VolaryContext *cx, const char *path, uint64_t handle, uint64_t offset,
			void *buf, size_t len)
{
	return is("read-more") ? (int64_t)len + 1 : is("read-error") ? -999 : 0;
}

static int32_t done(void *fs, const VolaryContext *cx, const char *path) { return 0; }

static int32_t bad_create(void *fs, const VolaryContext *cx, const char *path, const VolarySetAttr *set,
			  uint64_t *handle)
{
	return is("made-dir") || is("made-nothing") ? 0 : VOLARY_EXISTS;
}

static int32_t bad_mkdir(void *fs, const VolaryContext *cx, const char *path, const VolarySetAttr *set)
{
	return 0;
}

static int32_t bad_link(void *fs, const VolaryContext *cx, const char *path, const char *to) { return 0; }

static int32_t bad_caps(void *fs, VolaryCaps *out)
{
	out->can |= VOLARY_CAN_WRITE | VOLARY_CAN_HARD_LINKS | VOLARY_CAN_STABLE_IDS | VOLARY_CAN_CRASH_SAFE;
	if (is("caps-case")) out->can &= ~(uint32_t)VOLARY_CAN_CASE;
	if (is("caps-name")) out->name_max = 0;
	return 0;
}

VOLARY_EXPORT const VolaryPathTable *FileSystemCreatePaths(const char *name, const char *config, uint32_t version)
{
	static VolaryPathTable table;
	snprintf(how, sizeof how, "%s", config);
	table = (VolaryPathTable){
		.version = version, .size = sizeof table, .getattr = bad_getattr, .readdir = bad_readdir,
		.read = bad_read, .caps = bad_caps, .unlink = done, .create = bad_create, .mkdir = bad_mkdir,
		.link = bad_link,
	};
	if (is("version")) table.version = version + 1;
	if (is("size-none")) table.size = 0;
	if (is("size-least")) table.size = offsetof(VolaryPathTable, attach);
	if (is("no-readdir")) table.readdir = NULL;
	return is("no-table") ? NULL : &table;
}
