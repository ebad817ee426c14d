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
 * What went wrong: functions answer the negative of one of these.
 */
typedef enum VolaryError {
  VOLARY_ERROR_NOT_FOUND = 1,
  VOLARY_ERROR_EXISTS = 2,
  VOLARY_ERROR_NOT_DIR = 3,
  VOLARY_ERROR_IS_DIR = 4,
  VOLARY_ERROR_NOT_EMPTY = 5,
  /**
   * The request makes no sense: a null pointer, a text that is no UTF-8 where one is wanted, an unknown option.
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
   * A number that stands for nothing, or for nothing any more; a file that is gone.
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
   * A mistake in volary. What was being done may be done in part.
   */
  VOLARY_ERROR_PANIC = 99,
} VolaryError;

/**
 * What a file is opened for.
 */
typedef enum VolaryHow {
  /**
   * To read a file that is there.
   */
  VOLARY_HOW_READ = 0,
  /**
   * To write a file, which is made, or emptied if it exists.
   */
  VOLARY_HOW_WRITE = 1,
  /**
   * To write a file that is not there.
   */
  VOLARY_HOW_NEW = 2,
  /**
   * To read and write a file that is there.
   */
  VOLARY_HOW_UPDATE = 3,
  /**
   * To read and write a file, which is made if it is not there.
   */
  VOLARY_HOW_UPDATE_OR_NEW = 4,
  /**
   * To add at the end of a file, which is made if it is not there.
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
   * The kind of volume, where it is not to be recognised: `ffs`.
   */
  const char *kind;
  /**
   * Options of the format, with commas between them.
   */
  const char *options;
  /**
   * Layers over the volume, the lowest first, each on a line of its own.
   */
  const char *layers;
  /**
   * Bound on the memory for caches, in bytes.
   */
  uint64_t memory;
  /**
   * Of a new volume: its label.
   */
  const char *label;
  /**
   * Of a new volume: options of the format, with commas between them.
   */
  const char *make_options;
  /**
   * Of a new volume: what its serial number is made from, if not zero.
   */
  uint64_t seed;
  /**
   * Not zero: open to change it.
   */
  int writes;
  /**
   * Not zero: make a new volume over what is there.
   */
  int overwrites;
} VolaryOptions;

/**
 * A volume that is open. 0 is none.
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
   * What is free.
   */
  uint64_t free;
  /**
   * The size of its blocks.
   */
  uint32_t block;
} VolarySpace;

/**
 * One of `VolaryCheck`. A number, so that another is refused.
 */
typedef int VolaryCheckMode;

/**
 * Hears one thing that a check found: a code, a path or null, what is wrong. They last until it returns.
 */
typedef void (*VolaryFinding)(void *context, const char *code, const char *path, const char *message);

/**
 * What is known of a file.
 */
typedef struct VolaryStat {
  /**
   * Length in bytes.
   */
  uint64_t size;
  /**
   * Bytes that it takes on the volume.
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
   * What it is, and its permission bits, as `st_mode` has them. 0 if it is damaged: then the rest is 0 too.
   */
  uint32_t mode;
  /**
   * How many names it has.
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
 * A walk through a directory, or a tree. 0 is none.
 */
typedef uint64_t VolaryWalk;

/**
 * One of `VolaryHow`. A number, so that another is refused.
 */
typedef int VolaryHowNumber;

/**
 * A file that is open. 0 is none.
 */
typedef uint64_t VolaryFile;

/**
 * A server that runs. 0 is none.
 */
typedef uint64_t VolaryServer;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns what went wrong last on this thread, in words: `cannot read disk.img:/a: no such file or directory`. Empty
 * if nothing has. It lasts until the next failure on this thread.
 */
const char *volary_error(void);

/**
 * Returns the version of the library: `0.1.0`.
 */
const char *volary_version(void);

/**
 * Opens a volume: an image file, a partition of one (`disk.img#2`), `mem:64M`, `host:DIR`, `nfs://HOST/EXPORT`. For
 * reading, unless `options` say that it writes; these may be null.
 */
int volary_open(const char *source,
                const struct VolaryOptions *options,
                VolaryVol *vol);

/**
 * Makes an image of `size` bytes and a volume of a kind on it (`fat32`, `ffs2`), open for changes. What is there is left alone
 * unless `options`, which may be null, say otherwise.
 */
int volary_make(const char *image,
                const char *kind,
                uint64_t size,
                const struct VolaryOptions *options,
                VolaryVol *vol);

/**
 * Closes a volume: makes everything durable and marks it as cleanly left. Files, walks and servers on it answer that they are
 * stale from now on; they are still to be closed. It is closed whatever this answers.
 */
int volary_close(VolaryVol vol);

/**
 * Makes all changes so far durable.
 */
int volary_sync(VolaryVol vol);

/**
 * Tells how full a volume is.
 */
int volary_space(VolaryVol vol, struct VolarySpace *space);

/**
 * Checks a volume that nobody has open. `finding`, which may be null, hears each thing that is found, with
 * `context`; `left`, how many things are wrong and not mended.
 */
int volary_check(const char *source,
                 const struct VolaryOptions *options,
                 VolaryCheckMode mode,
                 VolaryFinding finding,
                 void *context,
                 uint64_t *left);

/**
 * Tells what is known of a file or directory. Follows a symlink that stands last if `follow` is not zero.
 */
int volary_stat(VolaryVol vol,
                const char *path,
                int follow,
                struct VolaryStat *stat);

/**
 * Reads a file at byte `offset`. Answers how many bytes were read: fewer than `len` only at the end of the file.
 */
int64_t volary_read(VolaryVol vol,
                    const char *path,
                    uint64_t offset,
                    void *bytes,
                    size_t len);

/**
 * Makes a file that holds these bytes, or gives one that is there this content: until it is all written the old
 * content stands.
 */
int volary_write(VolaryVol vol,
                 const char *path,
                 const void *bytes,
                 size_t len);

/**
 * Adds bytes at the end of a file, which is made if it is not there.
 */
int volary_append(VolaryVol vol, const char *path, const void *bytes, size_t len);

/**
 * Makes a directory; if `parents` is not zero, those above it too, and none is no error if it is there.
 */
int volary_mkdir(VolaryVol vol,
                 const char *path,
                 int parents);

/**
 * Removes a file, a symlink or an empty directory; if `recursive` is not zero, a directory with all below it.
 */
int volary_remove(VolaryVol vol,
                  const char *path,
                  int recursive);

/**
 * Gives a file or directory another path, and replaces a file or an empty directory that has it.
 */
int volary_rename(VolaryVol vol, const char *from, const char *to);

/**
 * Makes a symlink at `path` that holds `target`.
 */
int volary_symlink(VolaryVol vol, const char *target, const char *path);

/**
 * Writes what a symlink holds, with a zero byte, into room for `room` bytes; 4096 are enough.
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
 * Begins a walk through all below a directory, each directory before what is in it.
 */
int volary_walk(VolaryVol vol, const char *path, VolaryWalk *walk);

/**
 * Goes on to the next entry: writes its path, with a zero byte, into room for `room` bytes (8192 are enough), and what is
 * known of it. Answers 1; 0 at the end; for a directory that cannot be read an error, after which the walk goes on. An entry whose
 * path does not fit is passed over.
 */
int volary_walk_next(VolaryWalk walk,
                     char *path,
                     size_t room,
                     struct VolaryStat *stat);

/**
 * Leaves out what is in the directory that a walk came to last: so it lists one directory alone.
 */
int volary_walk_skip(VolaryWalk walk);

/**
 * Ends a walk.
 */
int volary_walk_end(VolaryWalk walk);

/**
 * Copies a file or a tree of the host into a volume. What cannot be copied is an error; the rest is copied. `files`, which may be null, is
 * told how many files were.
 */
int volary_copy_in(VolaryVol vol,
                   const char *from,
                   const char *to,
                   uint64_t *files);

/**
 * Copies a file or a tree of a volume to the host, as `volary_copy_in` does.
 */
int volary_copy_out(VolaryVol vol, const char *from, const char *to, uint64_t *files);

/**
 * Opens a file.
 */
int volary_file_open(VolaryVol vol, const char *path, VolaryHowNumber how, VolaryFile *file);

/**
 * Reads at byte `offset`. Answers how many bytes were read: fewer than `len` only at the end of the file.
 */
int64_t volary_file_read(VolaryFile file,
                         uint64_t offset,
                         void *bytes,
                         size_t len);

/**
 * Writes all of `len` bytes at byte `offset`; at the end if the file was opened to append.
 */
int volary_file_write(VolaryFile file, uint64_t offset, const void *bytes, size_t len);

/**
 * Cuts a file to `len` bytes, or fills it with zeros up to there.
 */
int volary_file_set_len(VolaryFile file, uint64_t len);

/**
 * Tells what is known of an open file.
 */
int volary_file_stat(VolaryFile file, struct VolaryStat *stat);

/**
 * Makes what was written to a file durable.
 */
int volary_file_sync(VolaryFile file);

/**
 * Closes a file, whatever this answers: an error tells of earlier writes. One that another thread is using is closed when that
 * is done.
 */
int volary_file_close(VolaryFile file);

/**
 * Serves a volume by NFS, as the export `/NAME`, at an address as `127.0.0.1:2049`; with port 0, at any that is free. To this host
 * alone.
 */
int volary_serve_nfs(VolaryVol vol,
                     const char *address,
                     const char *name,
                     int read_only,
                     VolaryServer *server);

/**
 * Serves a volume by SMB, as a share, to one user with a password. Encrypted, if the address is not of this host alone.
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
 * Writes where a server listens, with a zero byte, into room for `room` bytes; 64 are enough. A mount listens nowhere: that is
 * an empty text.
 */
int volary_server_address(VolaryServer server,
                          char *address,
                          size_t room);

/**
 * Ends a server, or a mount. The volume stays open.
 */
int volary_server_stop(VolaryServer server);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus
