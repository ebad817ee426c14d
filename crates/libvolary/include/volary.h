/*
 * libvolary: file systems in user space. Made of the sources of libvolary by cbindgen: change those,
 * and have the test `header` write this with VOLARY_BLESS=1.
 *
 * Functions answer 0, or a number that is not negative, if all is well; else the negative of a
 * VolaryError, and volary_error() says in words what went wrong, and where.
 *
 * Texts end with a zero byte. Paths in volumes are bytes, as the volume has them, from its root: with a
 * slash before them or without. Names of kinds, options and layers are UTF-8.
 *
 * Pointers are to memory of the caller's, for as long as the call takes: texts that are read and
 * do not change meanwhile, room for results that nobody else uses meanwhile. A null pointer is
 * refused unless it is said that it may be null. Results are set only if all is well.
 *
 * Numbers stand for what is open. One that was closed, or never given out, is refused
 * (VOLARY_ERROR_STALE). All functions may be called from any thread, at the same time and of the same volume too;
 * the text of an error is that of the last failure on the same thread. After fork(2), the child must call
 * nothing of this: its threads are the parent's.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

/**
 * Error codes: functions return the negative of one of these.
 */
typedef enum VolaryError {
  VOLARY_ERROR_NOT_FOUND = 1,
  VOLARY_ERROR_EXISTS = 2,
  VOLARY_ERROR_NOT_DIR = 3,
  VOLARY_ERROR_IS_DIR = 4,
  VOLARY_ERROR_NOT_EMPTY = 5,
  /**
   * The request makes no sense: a null pointer, a text that is not UTF-8 but must be, an unknown
   * option.
   */
  VOLARY_ERROR_INVALID = 6,
  VOLARY_ERROR_NAME_TOO_LONG = 7,
  VOLARY_ERROR_TOO_MANY_LINKS = 8,
  VOLARY_ERROR_SYMLINK_LOOP = 9,
  VOLARY_ERROR_TOO_BIG = 10,
  VOLARY_ERROR_NO_SPACE = 11,
  VOLARY_ERROR_QUOTA = 12,
  VOLARY_ERROR_READ_ONLY = 13,
  VOLARY_ERROR_ACCESS = 14,
  VOLARY_ERROR_NOT_PERMITTED = 15,
  /**
   * A handle that is not open, or no more; a file that is gone.
   */
  VOLARY_ERROR_STALE = 16,
  VOLARY_ERROR_LOCKED = 17,
  VOLARY_ERROR_DEADLOCK = 18,
  VOLARY_ERROR_SHARING = 19,
  VOLARY_ERROR_DELETE_PENDING = 20,
  VOLARY_ERROR_BUSY = 21,
  VOLARY_ERROR_TOO_MANY_OPEN = 22,
  VOLARY_ERROR_INTERRUPTED = 23,
  VOLARY_ERROR_UNSUPPORTED = 24,
  VOLARY_ERROR_NO_XATTR = 25,
  VOLARY_ERROR_CROSS_VOLUME = 26,
  VOLARY_ERROR_IO = 27,
  VOLARY_ERROR_CORRUPT = 28,
  /**
   * A bug in volary. The operation may have been done in part.
   */
  VOLARY_ERROR_PANIC = 99,
} VolaryError;

/**
 * What a file is opened for.
 */
typedef enum VolaryHow {
  /**
   * To read an existing file.
   */
  VOLARY_HOW_READ = 0,
  /**
   * To write a file, which is made, or emptied if it exists.
   */
  VOLARY_HOW_WRITE = 1,
  /**
   * To write a new file, which must not exist.
   */
  VOLARY_HOW_NEW = 2,
  /**
   * To read and write an existing file.
   */
  VOLARY_HOW_UPDATE = 3,
  /**
   * To read and write a file, which is made if it does not exist.
   */
  VOLARY_HOW_UPDATE_OR_NEW = 4,
  /**
   * To append to a file, which is made if it does not exist.
   */
  VOLARY_HOW_APPEND = 5,
} VolaryHow;

/**
 * What a check may do.
 */
typedef enum VolaryCheck {
  /**
   * Write nothing.
   */
  VOLARY_CHECK_LOOK = 0,
  /**
   * Mend what a power cut can leave.
   */
  VOLARY_CHECK_PREEN = 1,
  /**
   * Mend everything.
   */
  VOLARY_CHECK_MEND = 2,
} VolaryCheck;

/**
 * How to open or make a volume. Set all of it to zeros first, then `size`: a zero is the default.
 */
typedef struct VolaryOptions {
  /**
   * `sizeof(VolaryOptions)`.
   */
  size_t size;
  /**
   * The kind of volume, if it should not be recognised automatically: `ffs`.
   */
  const char *kind;
  /**
   * Options of the format, separated by commas.
   */
  const char *options;
  /**
   * Layers over the volume, one a line, the lowest first.
   */
  const char *layers;
  /**
   * Bound on the memory for caches, in bytes.
   */
  uint64_t memory;
  /**
   * The label of a new volume.
   */
  const char *label;
  /**
   * Options of the format for a new volume, separated by commas.
   */
  const char *make_options;
  /**
   * If not zero, the seed of a new volume's serial number.
   */
  uint64_t seed;
  /**
   * If not zero, opens the volume for changes.
   */
  int writes;
  /**
   * If not zero, makes the new volume over an existing file.
   */
  int overwrites;
} VolaryOptions;

/**
 * An open volume. 0 stands for none.
 */
typedef uint64_t VolaryVol;

/**
 * How full a volume is, in bytes.
 */
typedef struct VolarySpace {
  /**
   * The volume's capacity for files.
   */
  uint64_t size;
  /**
   * The free space.
   */
  uint64_t free;
  /**
   * The size of its blocks.
   */
  uint32_t block;
} VolarySpace;

/**
 * One of `VolaryCheck`. It is a plain number, so that any other value can be refused.
 */
typedef int VolaryCheckMode;

/**
 * Takes one finding of a check: a code, a path or null, and a message. The texts are valid until
 * it returns.
 */
typedef void (*VolaryFinding)(void *context, const char *code, const char *path, const char *message);

/**
 * Attributes of a file.
 */
typedef struct VolaryStat {
  /**
   * Length in bytes.
   */
  uint64_t size;
  /**
   * Bytes that it occupies on the volume.
   */
  uint64_t allocated;
  /**
   * The number of its node.
   */
  uint64_t ino;
  /**
   * Seconds since 1970 of the last access.
   */
  int64_t atime;
  /**
   * Seconds since 1970 of the last change of its content.
   */
  int64_t mtime;
  /**
   * Seconds since 1970 of the last change of content or attributes.
   */
  int64_t ctime;
  /**
   * The rest of `atime`, in nanoseconds.
   */
  uint32_t atime_nanos;
  /**
   * The rest of `mtime`, in nanoseconds.
   */
  uint32_t mtime_nanos;
  /**
   * The rest of `ctime`, in nanoseconds.
   */
  uint32_t ctime_nanos;
  /**
   * Its type and its permission bits, as in `st_mode`. 0 if the file is damaged: all other
   * fields are then 0 too.
   */
  uint32_t mode;
  /**
   * The number of its names.
   */
  uint32_t nlink;
  /**
   * Owner.
   */
  uint32_t uid;
  /**
   * Group.
   */
  uint32_t gid;
  /**
   * DOS attributes, or 256 if the format has none: read-only 1, hidden 2, system 4, archive 32.
   */
  uint32_t dos;
} VolaryStat;

/**
 * A walk through a directory, or a tree. 0 stands for none.
 */
typedef uint64_t VolaryWalk;

/**
 * One of `VolaryHow`. It is a plain number, so that any other value can be refused.
 */
typedef int VolaryHowNumber;

/**
 * An open file. 0 stands for none.
 */
typedef uint64_t VolaryFile;

/**
 * A running server. 0 stands for none.
 */
typedef uint64_t VolaryServer;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the last error on this thread, in words:
 * `cannot read disk.img:/a: no such file or directory`. Empty if there was none. The text is valid
 * until the next error on this thread.
 */
const char *volary_error(void);

/**
 * Returns the version of the library: `0.1.0`.
 */
const char *volary_version(void);

/**
 * Opens a volume: an image file, a partition of one (`disk.img#2`), `mem:64M`, `host:DIR`,
 * `nfs://HOST/EXPORT`. It is read-only unless `options` ask for changes. `options` may be null.
 */
int volary_open(const char *source, const struct VolaryOptions *options, VolaryVol *vol);

/**
 * Makes an image of `size` bytes with a volume of this kind (`fat32`, `ffs2`), open for changes.
 * An existing file is not overwritten unless `options` ask for it. `options` may be null.
 */
int volary_make(const char *image,
                const char *kind,
                uint64_t size,
                const struct VolaryOptions *options,
                VolaryVol *vol);

/**
 * Closes a volume: makes everything durable and marks it as cleanly detached. The volume is closed
 * even if this returns an error. Its files, walks and servers return stale from now on, but must
 * still be closed.
 */
int volary_close(VolaryVol vol);

/**
 * Makes all changes so far durable.
 */
int volary_sync(VolaryVol vol);

/**
 * Returns how full a volume is.
 */
int volary_space(VolaryVol vol, struct VolarySpace *space);

/**
 * Checks a volume that nobody has open. `finding`, which may be null, is called for each finding,
 * with `context`. `left` gets the number of findings that were not mended.
 */
int volary_check(const char *source,
                 const struct VolaryOptions *options,
                 VolaryCheckMode mode,
                 VolaryFinding finding,
                 void *context,
                 uint64_t *left);

/**
 * Returns the attributes of a file or directory. If `follow` is not zero, follows a symlink in the
 * last place.
 */
int volary_stat(VolaryVol vol, const char *path, int follow, struct VolaryStat *stat);

/**
 * Reads a file at byte `offset`. Returns the number of bytes read: less than `len` only at the end
 * of the file.
 */
int64_t volary_read(VolaryVol vol, const char *path, uint64_t offset, void *bytes, size_t len);

/**
 * Makes a file with these bytes as its content, or replaces the content of an existing one. The
 * old content stays until all of the new is written.
 */
int volary_write(VolaryVol vol, const char *path, const void *bytes, size_t len);

/**
 * Appends bytes to a file, which is made if it does not exist.
 */
int volary_append(VolaryVol vol, const char *path, const void *bytes, size_t len);

/**
 * Makes a directory. If `parents` is not zero, makes missing ones above it too, and an existing
 * directory is no error.
 */
int volary_mkdir(VolaryVol vol, const char *path, int parents);

/**
 * Removes a file, a symlink or an empty directory; if `recursive` is not zero, a directory with
 * everything below it.
 */
int volary_remove(VolaryVol vol, const char *path, int recursive);

/**
 * Moves a file or directory to another path, and replaces an existing file or empty directory
 * there.
 */
int volary_rename(VolaryVol vol, const char *from, const char *to);

/**
 * Makes a symlink to `target` at `path`.
 */
int volary_symlink(VolaryVol vol, const char *target, const char *path);

/**
 * Writes a symlink's target, with a zero byte, into a buffer of `room` bytes; 4096 are enough.
 */
int volary_readlink(VolaryVol vol, const char *path, char *target, size_t room);

/**
 * Sets permission bits.
 */
int volary_chmod(VolaryVol vol, const char *path, uint32_t mode);

/**
 * Sets owner and group.
 */
int volary_chown(VolaryVol vol, const char *path, uint32_t uid, uint32_t gid);

/**
 * Sets the times of the last access and the last change, in seconds since 1970 and nanoseconds.
 */
int volary_set_times(VolaryVol vol,
                     const char *path,
                     int64_t atime,
                     uint32_t atime_nanos,
                     int64_t mtime,
                     uint32_t mtime_nanos);

/**
 * Begins a walk through everything below a directory. Each directory comes before its entries.
 */
int volary_walk(VolaryVol vol, const char *path, VolaryWalk *walk);

/**
 * Continues a walk: writes the next entry's path, with a zero byte, into a buffer of `room` bytes
 * (8192 are enough), and its attributes to `stat`. Returns 1, or 0 at the end. For a directory
 * that cannot be read, returns an error; the walk can be continued. An entry whose path does not
 * fit is skipped, with an error.
 */
int volary_walk_next(VolaryWalk walk, char *path, size_t room, struct VolaryStat *stat);

/**
 * Skips the entries of the directory that the walk returned last. So a walk can list one directory
 * alone.
 */
int volary_walk_skip(VolaryWalk walk);

/**
 * Ends a walk.
 */
int volary_walk_end(VolaryWalk walk);

/**
 * Copies a file or a tree of the host into a volume. If some of it cannot be copied, copies the
 * rest and returns an error. `files`, which may be null, gets the number of files copied.
 */
int volary_copy_in(VolaryVol vol, const char *from, const char *to, uint64_t *files);

/**
 * Copies a file or a tree from a volume to the host, as `volary_copy_in` does.
 */
int volary_copy_out(VolaryVol vol, const char *from, const char *to, uint64_t *files);

/**
 * Opens a file.
 */
int volary_file_open(VolaryVol vol, const char *path, VolaryHowNumber how, VolaryFile *file);

/**
 * Reads at byte `offset`. Returns the number of bytes read: less than `len` only at the end of the
 * file.
 */
int64_t volary_file_read(VolaryFile file, uint64_t offset, void *bytes, size_t len);

/**
 * Writes all `len` bytes at byte `offset`, or at the end if the file was opened to append.
 */
int volary_file_write(VolaryFile file, uint64_t offset, const void *bytes, size_t len);

/**
 * Truncates a file to `len` bytes, or extends it to them with zeros.
 */
int volary_file_set_len(VolaryFile file, uint64_t len);

/**
 * Returns the attributes of an open file.
 */
int volary_file_stat(VolaryFile file, struct VolaryStat *stat);

/**
 * Makes what was written to a file durable.
 */
int volary_file_sync(VolaryFile file);

/**
 * Closes a file, even if this returns an error, which is one of earlier writes. If another thread
 * is using the file, it is closed after that.
 */
int volary_file_close(VolaryFile file);

/**
 * Serves a volume by NFS, to this host alone, as the export `/NAME`. The address is like
 * `127.0.0.1:2049`; with port 0, any free port is used.
 */
int volary_serve_nfs(VolaryVol vol,
                     const char *address,
                     const char *name,
                     int read_only,
                     VolaryServer *server);

/**
 * Serves a volume by SMB, as a share, to one user with a password. Encrypted, unless the address
 * is of this host alone.
 */
int volary_serve_smb(VolaryVol vol,
                     const char *address,
                     const char *name,
                     int read_only,
                     const char *user,
                     const char *password,
                     VolaryServer *server);

/**
 * Mounts a volume on a directory of this host, by FUSE.
 */
int volary_mount(VolaryVol vol, const char *dir, int read_only, VolaryServer *server);

/**
 * Writes a server's address, with a zero byte, into a buffer of `room` bytes; 64 are enough. For a
 * mount, the address is empty.
 */
int volary_server_address(VolaryServer server, char *address, size_t room);

/**
 * Ends a server, or removes a mount. The volume stays open.
 */
int volary_server_stop(VolaryServer server);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus
