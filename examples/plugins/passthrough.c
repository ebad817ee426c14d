/* A directory of this host as a volume, by paths: open(path), read, getattr(path), readdir(path).
 * The configuration is the directory. Links in it are not followed, for no path goes through one.
 *
 *     cc -shared -fPIC -I crates/volary-plugin/include -o libpassthrough.so \
 *         examples/plugins/passthrough.c
 *     volary ls --plugin ./libpassthrough.so 'plugin:passthrough?/srv/tree:/docs'
 */
#define _GNU_SOURCE
#include "volary_plugin.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

typedef struct { VolaryPathTable table; int root; char dir[]; } Fs;

static int32_t failed(void)
{
	static const struct { int error; int32_t code; } CODES[] = {
		{ENOENT, VOLARY_NOT_FOUND}, {EEXIST, VOLARY_EXISTS}, {ENOTDIR, VOLARY_NOT_DIR},
		{EISDIR, VOLARY_IS_DIR}, {ENOTEMPTY, VOLARY_NOT_EMPTY}, {EINVAL, VOLARY_INVALID},
		{ENAMETOOLONG, VOLARY_NAME_TOO_LONG}, {EMLINK, VOLARY_TOO_MANY_LINKS},
		{EFBIG, VOLARY_TOO_BIG}, {ENOSPC, VOLARY_NO_SPACE}, {EDQUOT, VOLARY_OVER_QUOTA},
		{EROFS, VOLARY_READ_ONLY}, {EACCES, VOLARY_NO_ACCESS}, {EPERM, VOLARY_NOT_PERMITTED},
		{EOPNOTSUPP, VOLARY_UNSUPPORTED}, {EMFILE, VOLARY_TOO_MANY_OPEN}, {EBUSY, VOLARY_BUSY},
	};
	for (size_t i = 0; i < sizeof CODES / sizeof *CODES; i++)
		if (CODES[i].error == errno)
			return CODES[i].code;
	return VOLARY_IO;
}

#define DONE(call) return (call) < 0 ? failed() : 0
/* The root is open; a path is one below it. */
#define AT(path) ((Fs *)fs)->root, (path)[1] ? (path) + 1 : "."
#define ARGS void *fs, const VolaryContext *cx, const char *path

static const mode_t MODES[] = {0, S_IFREG, S_IFDIR, S_IFLNK, S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK};

static uint32_t kind_of(mode_t mode)
{
	for (uint32_t kind = VOLARY_FILE; kind <= VOLARY_BLOCK_DEVICE; kind++)
		if (MODES[kind] == (mode & S_IFMT))
			return kind;
	return 0;
}

static int32_t pt_getattr(ARGS, VolaryAttr *out)
{
	struct stat st;
	if (fstatat(AT(path), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return failed();
	*out = (VolaryAttr){
		.node.ino = st.st_ino, .kind = kind_of(st.st_mode), .mode = st.st_mode & 07777,
		.nlink = (uint32_t)st.st_nlink, .uid = st.st_uid, .gid = st.st_gid,
		.rdev = (uint64_t)major(st.st_rdev) << 32 | minor(st.st_rdev), .size = (uint64_t)st.st_size,
		.allocated = (uint64_t)st.st_blocks * 512, .io_size = (uint32_t)st.st_blksize,
		.atime = {st.st_atim.tv_sec, (uint32_t)st.st_atim.tv_nsec},
		.mtime = {st.st_mtim.tv_sec, (uint32_t)st.st_mtim.tv_nsec},
		.ctime = {st.st_ctim.tv_sec, (uint32_t)st.st_ctim.tv_nsec},
	};
	return 0;
}

static int32_t pt_readdir(ARGS, const VolaryPathList *list)
{
	int fd = openat(AT(path), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	if (!dir)
		return failed();
	while ((entry = readdir(dir)))
		if (!list->add(list, entry->d_name, kind_of(DTTOIF(entry->d_type))))
			break;
	DONE(closedir(dir));
}

static int32_t pt_setattr(ARGS, const VolarySetAttr *set)
{
	struct timespec times[2] = {
		{set->atime.secs, set->set & VOLARY_SET_ATIME ? set->atime.nanos : UTIME_OMIT},
		{set->mtime.secs, set->set & VOLARY_SET_MTIME ? set->mtime.nanos : UTIME_OMIT},
	};
	uid_t uid = set->set & VOLARY_SET_UID ? set->uid : (uid_t)-1;
	gid_t gid = set->set & VOLARY_SET_GID ? set->gid : (gid_t)-1;
	int fd = -1, code = 0;
	if (set->set & (VOLARY_SET_DOS | VOLARY_SET_BTIME))
		return VOLARY_UNSUPPORTED;
	if (set->set & VOLARY_SET_SIZE) {
		if ((fd = openat(AT(path), O_WRONLY | O_NOFOLLOW | O_CLOEXEC)) < 0)
			return failed();
		code = ftruncate(fd, (off_t)set->size) < 0 ? failed() : 0;
		close(fd);
	}
	if (!code && (set->set & (VOLARY_SET_UID | VOLARY_SET_GID)))
		code = fchownat(AT(path), uid, gid, AT_SYMLINK_NOFOLLOW) < 0 ? failed() : 0;
	/* After a change of owner, which takes set-uid away. A symlink has no mode. */
	if (!code && (set->set & VOLARY_SET_MODE) && fchmodat(AT(path), set->mode, AT_SYMLINK_NOFOLLOW) < 0)
		code = errno == EOPNOTSUPP ? 0 : failed();
	if (!code && (set->set & (VOLARY_SET_ATIME | VOLARY_SET_MTIME)))
		code = utimensat(AT(path), times, AT_SYMLINK_NOFOLLOW) < 0 ? failed() : 0;
	return code;
}

/* What was made has the attributes that were asked for, or is not there. */
static int32_t made(ARGS, const VolarySetAttr *set, int done, int flags)
{
	int32_t code = done < 0 ? failed() : pt_setattr(fs, cx, path, set);
	if (done >= 0 && code)
		unlinkat(AT(path), flags);
	return code;
}

static int32_t pt_create(ARGS, const VolarySetAttr *set, uint64_t *handle)
{
	int fd = openat(AT(path), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int32_t code = made(fs, cx, path, set, fd, 0);
	if (fd >= 0 && code)
		close(fd);
	*handle = (uint64_t)fd;
	return code;
}

static int32_t pt_open(ARGS, uint32_t mode, uint64_t *handle)
{
	int how = mode == VOLARY_READ ? O_RDONLY : mode == VOLARY_WRITE ? O_WRONLY : O_RDWR;
	int fd = openat(AT(path), how | O_NOFOLLOW | O_CLOEXEC);
	*handle = (uint64_t)fd;
	DONE(fd);
}

static int64_t pt_read(ARGS, uint64_t handle, uint64_t offset, void *buf, size_t len)
{
	size_t done = 0;
	ssize_t n = 1;
	for (; done < len && n > 0; done += (size_t)n)
		if ((n = pread((int)handle, (char *)buf + done, len - done, (off_t)(offset + done))) < 0)
			return failed();
	return (int64_t)done;
}

static int32_t pt_write(ARGS, uint64_t handle, uint64_t offset, const void *data, size_t len)
{
	for (ssize_t n; len; data = (const char *)data + n, offset += (uint64_t)n, len -= (size_t)n)
		if ((n = pwrite((int)handle, data, len, (off_t)offset)) < 0)
			return failed();
	return 0;
}

static int32_t pt_allocate(ARGS, uint64_t handle, uint64_t offset, uint64_t len, uint32_t hole)
{
	int how = FALLOC_FL_KEEP_SIZE | (hole ? FALLOC_FL_PUNCH_HOLE : 0);
	DONE(fallocate((int)handle, how, (off_t)offset, (off_t)len));
}

static int32_t pt_mkdir(ARGS, const VolarySetAttr *set)
{
	return made(fs, cx, path, set, mkdirat(AT(path), 0755), AT_REMOVEDIR);
}
static int32_t pt_mknod(ARGS, uint32_t kind, uint64_t rdev, const VolarySetAttr *set)
{
	dev_t dev = makedev(rdev >> 32, rdev & 0xffffffff);
	return made(fs, cx, path, set, mknodat(AT(path), MODES[kind & 7] | 0644, dev), 0);
}
static int32_t pt_symlink(ARGS, const char *target, const VolarySetAttr *set)
{
	return made(fs, cx, path, set, symlinkat(target, AT(path)), 0);
}
static int32_t pt_link(ARGS, const char *new_path) { DONE(linkat(AT(path), AT(new_path), 0)); }
static int32_t pt_unlink(ARGS) { DONE(unlinkat(AT(path), 0)); }
static int32_t pt_rmdir(ARGS) { DONE(unlinkat(AT(path), AT_REMOVEDIR)); }
static int32_t pt_rename(ARGS, const char *new_path, uint32_t flags)
{
	DONE(renameat2(AT(path), AT(new_path), flags == VOLARY_RENAME_SWAP ? RENAME_EXCHANGE : 0));
}
static int64_t pt_readlink(ARGS, char *buf, size_t room)
{
	ssize_t len = readlinkat(AT(path), buf, room);
	/* One that fills the room may be longer: no target has more than PATH_MAX bytes. */
	return len < 0 ? failed() : (size_t)len < room ? len : 2 * (int64_t)room;
}
static int32_t pt_fsync(ARGS, uint64_t handle, uint32_t data_only)
{
	DONE(data_only ? fdatasync((int)handle) : fsync((int)handle));
}
static int32_t pt_close(ARGS, uint64_t handle) { DONE(close((int)handle)); }
static int32_t pt_sync(void *fs, const VolaryContext *cx) { DONE(syncfs(((Fs *)fs)->root)); }
static int32_t pt_statfs(void *fs, const VolaryContext *cx, VolaryStatFs *out)
{
	struct statvfs st;
	if (fstatvfs(((Fs *)fs)->root, &st) < 0)
		return failed();
	*out = (VolaryStatFs){ (uint32_t)st.f_frsize, st.f_blocks * st.f_frsize, st.f_bfree * st.f_frsize,
		st.f_bavail * st.f_frsize, st.f_files, st.f_ffree };
	return 0;
}

static int32_t pt_attach(void *fs, const VolaryContext *cx, const VolaryHost *host, const VolaryAttach *how)
{
	umask(0);
	if ((((Fs *)fs)->root = open(((Fs *)fs)->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0)
		return 0;
	snprintf(cx->note, cx->note_room, "%s: %s", ((Fs *)fs)->dir, strerror(errno));
	return failed();
}
static int32_t pt_caps(void *fs, VolaryCaps *out)
{
	out->can |= VOLARY_CAN_WRITE | VOLARY_CAN_MODES | VOLARY_CAN_SYMLINKS | VOLARY_CAN_HARD_LINKS |
		VOLARY_CAN_DEVICES | VOLARY_CAN_HOLES | VOLARY_CAN_PREALLOCATE | VOLARY_CAN_SWAP | VOLARY_CAN_SHARED;
	return 0;
}
static void pt_release(void *fs)
{
	close(((Fs *)fs)->root);
	free(fs);
}

VOLARY_EXPORT const VolaryPathTable *FileSystemCreatePaths(const char *name, const char *config, uint32_t version)
{
	Fs *fs = version == VOLARY_PLUGIN_VERSION ? calloc(1, sizeof *fs + strlen(config) + 1) : NULL;
	if (!fs)
		return NULL;
	strcpy(fs->dir, config);
	fs->root = -1;
	fs->table = (VolaryPathTable){
		.version = VOLARY_PLUGIN_VERSION, .size = sizeof(VolaryPathTable), .fs = fs,
		.getattr = pt_getattr, .readdir = pt_readdir, .read = pt_read, .attach = pt_attach,
		.release = pt_release, .caps = pt_caps, .statfs = pt_statfs, .sync = pt_sync, .create = pt_create,
		.mkdir = pt_mkdir, .mknod = pt_mknod, .symlink = pt_symlink, .link = pt_link,
		.unlink = pt_unlink, .rmdir = pt_rmdir, .rename = pt_rename, .setattr = pt_setattr,
		.readlink = pt_readlink, .open = pt_open, .write = pt_write, .fsync = pt_fsync,
		.allocate = pt_allocate, .close = pt_close,
	};
	return &fs->table;
}
