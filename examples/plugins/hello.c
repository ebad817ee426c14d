/* The smallest plug-in: a volume with one file.
 *     cc -shared -fPIC -I crates/volary-plugin/include -o libhello.so examples/plugins/hello.c
 *     volary cat --plugin ./libhello.so plugin:hello:/hello.txt
 */
#include "volary_plugin.h"
#include <string.h>

static const char TEXT[] = "Hello, world.\n";
enum { ROOT = 1, HELLO = 2 };

static int32_t attr(uint64_t ino, VolaryAttr *out)
{
	if (ino != ROOT && ino != HELLO)
		return VOLARY_STALE;
	out->node.ino = ino;
	out->kind = ino == ROOT ? VOLARY_DIR : VOLARY_FILE;
	out->mode = ino == ROOT ? 0555 : 0444;
	out->nlink = ino == ROOT ? 2 : 1;
	out->size = ino == ROOT ? 0 : sizeof TEXT - 1;
	return 0;
}

static int32_t hello_getattr(void *fs, const VolaryContext *cx, VolaryNode node, VolaryAttr *out)
{
	return attr(node.ino, out);
}

static int32_t hello_lookup(void *fs, const VolaryContext *cx, VolaryNode dir, const char *name, size_t len, VolaryAttr *out)
{
	if (dir.ino != ROOT)
		return VOLARY_NOT_DIR;
	return len == 9 && !memcmp(name, "hello.txt", 9) ? attr(HELLO, out) : VOLARY_NOT_FOUND;
}

static int32_t hello_readdir(void *fs, const VolaryContext *cx, VolaryOpen dir, uint64_t from, const VolaryList *list)
{
	VolaryEntry entry = {1, {HELLO, 0}, VOLARY_FILE, 9, "hello.txt", NULL};
	if (dir.node.ino != ROOT)
		return VOLARY_NOT_DIR;
	return from > 0 || list->add(list, &entry);
}

static int64_t hello_read(void *fs, const VolaryContext *cx, VolaryOpen file, uint64_t offset, void *buf, size_t len)
{
	size_t left = offset < sizeof TEXT - 1 ? sizeof TEXT - 1 - (size_t)offset : 0;
	if (file.node.ino == ROOT)
		return VOLARY_IS_DIR;
	len = len < left ? len : left;
	memcpy(buf, TEXT + (sizeof TEXT - 1 - left), len);
	return (int64_t)len;
}

VOLARY_EXPORT const VolaryTable *FileSystemCreate(const char *name, const char *config, uint32_t version)
{
	static const VolaryTable table = {
		.version = VOLARY_PLUGIN_VERSION, .size = sizeof(VolaryTable), .lookup = hello_lookup,
		.getattr = hello_getattr, .readdir = hello_readdir, .read = hello_read,
	};
	return version == VOLARY_PLUGIN_VERSION ? &table : NULL;
}
