/*
 * Drivers of volary that are loaded at run time. Made of volary-plugin's src/abi by cbindgen:
 * change that, and have the test `header` write this with VOLARY_BLESS=1.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

/**
 * The version of the table that this header describes.
 */
#define VOLARY_PLUGIN_VERSION 1

/**
 * There is no such entry.
 */
#define VOLARY_NOT_FOUND -1

/**
 * The name is taken.
 */
#define VOLARY_EXISTS -2

/**
 * Not a directory.
 */
#define VOLARY_NOT_DIR -3

/**
 * A directory, where it must not be one.
 */
#define VOLARY_IS_DIR -4

/**
 * The directory has entries.
 */
#define VOLARY_NOT_EMPTY -5

/**
 * The request makes no sense.
 */
#define VOLARY_INVALID -6

/**
 * A name or a symlink's target is longer than the format can keep.
 */
#define VOLARY_NAME_TOO_LONG -7

/**
 * The node has as many links as the format can count.
 */
#define VOLARY_TOO_MANY_LINKS -8

/**
 * Too many symlinks on the way.
 */
#define VOLARY_SYMLINK_LOOP -9

/**
 * Larger than the format can keep.
 */
#define VOLARY_TOO_BIG -10

/**
 * The volume is full.
 */
#define VOLARY_NO_SPACE -11

/**
 * The caller has used up their quota.
 */
#define VOLARY_OVER_QUOTA -12

/**
 * The volume does not take changes.
 */
#define VOLARY_READ_ONLY -13

/**
 * The mode bits forbid it (EACCES).
 */
#define VOLARY_NO_ACCESS -14

/**
 * Only the owner or root may do this (EPERM).
 */
#define VOLARY_NOT_PERMITTED -15

/**
 * The node or open is gone (ESTALE).
 */
#define VOLARY_STALE -16

/**
 * Somebody holds a lock that conflicts.
 */
#define VOLARY_LOCKED -17

/**
 * Waiting for this lock would never end.
 */
#define VOLARY_DEADLOCK -18

/**
 * Another open does not share the file in that way.
 */
#define VOLARY_SHARING -19

/**
 * The node is deleted with its last open, and cannot be opened any more.
 */
#define VOLARY_DELETE_PENDING -20

/**
 * The node is in use in a way that forbids it.
 */
#define VOLARY_BUSY -21

/**
 * Too many files are open.
 */
#define VOLARY_TOO_MANY_OPEN -22

/**
 * The caller lost interest: `cancelled` returned so.
 */
#define VOLARY_INTERRUPTED -23

/**
 * The volume cannot do this.
 */
#define VOLARY_UNSUPPORTED -24

/**
 * There is no such extended attribute.
 */
#define VOLARY_NO_XATTR -25

/**
 * From one volume to another.
 */
#define VOLARY_CROSS_VOLUME -26

/**
 * The device failed.
 */
#define VOLARY_IO -27

/**
 * The volume contradicts itself or its format.
 */
#define VOLARY_CORRUPT -28

/**
 * Kind of a node: a regular file.
 */
#define VOLARY_FILE 1

/**
 * A directory.
 */
#define VOLARY_DIR 2

/**
 * A symbolic link.
 */
#define VOLARY_SYMLINK 3

/**
 * A fifo.
 */
#define VOLARY_FIFO 4

/**
 * A socket.
 */
#define VOLARY_SOCKET 5

/**
 * A character device.
 */
#define VOLARY_CHAR_DEVICE 6

/**
 * A block device.
 */
#define VOLARY_BLOCK_DEVICE 7

/**
 * Ability: takes changes.
 */
#define VOLARY_CAN_WRITE 1

/**
 * Keeps owner, group and permission bits.
 */
#define VOLARY_CAN_MODES 2

/**
 * Has symlinks.
 */
#define VOLARY_CAN_SYMLINKS 4

/**
 * Has hard links.
 */
#define VOLARY_CAN_HARD_LINKS 8

/**
 * Has fifos, sockets and device nodes.
 */
#define VOLARY_CAN_DEVICES 16

/**
 * Has extended attributes.
 */
#define VOLARY_CAN_XATTRS 32

/**
 * Has holes.
 */
#define VOLARY_CAN_HOLES 64

/**
 * `lookup` tells upper from lower case.
 */
#define VOLARY_CAN_CASE 128

/**
 * Keeps names in the case they were given.
 */
#define VOLARY_CAN_KEEP_CASE 256

/**
 * Node ids stay valid when the plug-in is started again. Without this ability, all ids but the
 * root's become VOLARY_STALE then, and `ino` must be below 2^52.
 */
#define VOLARY_CAN_STABLE_IDS 512

/**
 * Cookies of `readdir` stay valid across opens and restarts.
 */
#define VOLARY_CAN_STABLE_COOKIES 1024

/**
 * After a crash each operation has happened or has not.
 */
#define VOLARY_CAN_CRASH_SAFE 2048

/**
 * Checks access itself, by `access` and in each operation.
 */
#define VOLARY_CAN_CHECK_ACCESS (1 << 13)

/**
 * Shares locks with others; `lock` must be called.
 */
#define VOLARY_CAN_SHARE_LOCKS (1 << 14)

/**
 * Reports changes that others made, by `VolaryHost.changed`.
 */
#define VOLARY_CAN_WATCH (1 << 15)

/**
 * Reserves space ahead of need, by `allocate`.
 */
#define VOLARY_CAN_PREALLOCATE (1 << 16)

/**
 * Swaps two names, by `rename` with VOLARY_RENAME_SWAP.
 */
#define VOLARY_CAN_SWAP (1 << 17)

/**
 * Every sequence of bytes without '/' and NUL is a valid name.
 */
#define VOLARY_CAN_ANY_NAME (1 << 18)

/**
 * Others change the volume too.
 */
#define VOLARY_CAN_SHARED (1 << 19)

/**
 * In `VolaryAttr.has`: `btime` is set.
 */
#define VOLARY_HAS_BTIME 1

/**
 * In `VolaryAttr.has`: `dos` is set.
 */
#define VOLARY_HAS_DOS 2

/**
 * In `VolaryAttr.has`: `change` is set. Otherwise the host derives it from `ctime`.
 */
#define VOLARY_HAS_CHANGE 4

/**
 * In `VolarySetAttr.set`: set `mode`.
 */
#define VOLARY_SET_MODE 1

/**
 * Set `uid`.
 */
#define VOLARY_SET_UID 2

/**
 * Set `gid`.
 */
#define VOLARY_SET_GID 4

/**
 * Set `size`: content past it is cut off, and a gap before it reads as zeros.
 */
#define VOLARY_SET_SIZE 8

/**
 * Set `atime`.
 */
#define VOLARY_SET_ATIME 16

/**
 * Set `mtime`.
 */
#define VOLARY_SET_MTIME 32

/**
 * Set `btime`.
 */
#define VOLARY_SET_BTIME 64

/**
 * Set `dos`.
 */
#define VOLARY_SET_DOS 128

/**
 * With VOLARY_SET_ATIME: the caller asked for the current time, which is in `atime`.
 */
#define VOLARY_SET_ATIME_NOW 256

/**
 * With VOLARY_SET_MTIME: the caller asked for the current time, which is in `mtime`.
 */
#define VOLARY_SET_MTIME_NOW 512

/**
 * With VOLARY_SET_BTIME: the caller asked for the current time, which is in `btime`.
 */
#define VOLARY_SET_BTIME_NOW 1024

/**
 * For `create`: if the name is taken, return VOLARY_EXISTS.
 */
#define VOLARY_CREATE_NEW 0

/**
 * For `create`: open an existing file.
 */
#define VOLARY_CREATE_OPEN 1

/**
 * For `create`: open an existing file, and truncate it.
 */
#define VOLARY_CREATE_TRUNCATE 2

/**
 * An open, or access, for reading.
 */
#define VOLARY_READ 4

/**
 * An open, or access, for writing.
 */
#define VOLARY_WRITE 2

/**
 * Access to execute a file or search a directory.
 */
#define VOLARY_EXEC 1

/**
 * For `rename`: replace the node that the new name leads to.
 */
#define VOLARY_RENAME_REPLACE 0

/**
 * For `rename`: leave that node, and return VOLARY_EXISTS.
 */
#define VOLARY_RENAME_KEEP 1

/**
 * For `rename`: swap the two names.
 */
#define VOLARY_RENAME_SWAP 2

/**
 * For `lock`: exclusive, not shared.
 */
#define VOLARY_LOCK_EXCLUSIVE 1

/**
 * For `lock`: release the lock.
 */
#define VOLARY_LOCK_UNLOCK 2

/**
 * For `lock`: only test whether the lock is available.
 */
#define VOLARY_LOCK_TEST 4

/**
 * For `VolaryHost.log`: worth knowing; nothing is wrong.
 */
#define VOLARY_LOG_NOTE 0

/**
 * For `VolaryHost.log`: something is wrong.
 */
#define VOLARY_LOG_ERROR 1

/**
 * For `VolaryHost.changed`: the content of a node.
 */
#define VOLARY_CHANGED_DATA 0

/**
 * For `VolaryHost.changed`: the attributes of a node.
 */
#define VOLARY_CHANGED_ATTR 1

/**
 * For `VolaryHost.changed`: the entries of a directory.
 */
#define VOLARY_CHANGED_ENTRIES 2

/**
 * For `VolaryHost.changed`: a node was removed.
 */
#define VOLARY_CHANGED_GONE 3

/**
 * For `VolaryHost.changed`: anything may have changed.
 */
#define VOLARY_CHANGED_ALL 4

/**
 * A point in time since 1970-01-01 00:00 UTC.
 */
typedef struct VolaryTime {
  /**
   * Whole seconds, rounded down.
   */
  int64_t secs;
  /**
   * The rest, below 1000000000.
   */
  uint32_t nanos;
} VolaryTime;

/**
 * Who asks, when, and whether they still want the answer. You may use it until you return.
 */
typedef struct VolaryContext {
  /**
   * The size of this structure in bytes.
   */
  uint32_t size;
  /**
   * The caller's user.
   */
  uint32_t uid;
  /**
   * The caller's group.
   */
  uint32_t gid;
  /**
   * How many supplementary groups there are.
   */
  uint32_t group_count;
  /**
   * Supplementary groups.
   */
  const uint32_t *groups;
  /**
   * The time of the call, for new time stamps.
   */
  struct VolaryTime now;
  /**
   * What `connect` returned for this caller; otherwise NULL.
   */
  void *session;
  /**
   * With an error, you may write a message here. It must end with NUL.
   */
  char *note;
  /**
   * How many bytes the message may take.
   */
  size_t note_room;
  /**
   * Call this in loops over long work. If it returns non-zero, the caller has lost interest:
   * return VOLARY_INTERRUPTED. Call it only from the thread of the call.
   */
  int32_t (*cancelled)(const struct VolaryContext *cx);
} VolaryContext;

/**
 * Identifies a node. `ino` is not 0, and unique among the nodes that exist. With `generation`, it
 * is unique for as long as you can guarantee. Return VOLARY_STALE for a node that is gone.
 */
typedef struct VolaryNode {
  /**
   * The number, as `st_ino` gives it.
   */
  uint64_t ino;
  /**
   * Distinguishes nodes that have had the same number.
   */
  uint32_t generation;
} VolaryNode;

/**
 * The attributes of a node. Set all of it to zeros first.
 */
typedef struct VolaryAttr {
  /**
   * The node.
   */
  struct VolaryNode node;
  /**
   * VOLARY_FILE to VOLARY_BLOCK_DEVICE.
   */
  uint32_t kind;
  /**
   * Permission bits with set-uid, set-gid and sticky: 12 bits.
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
   * VOLARY_HAS_...: which of the optional attributes are set.
   */
  uint32_t has;
  /**
   * For devices: major number in the upper half, minor in the lower.
   */
  uint64_t rdev;
  /**
   * Length of the content in bytes.
   */
  uint64_t size;
  /**
   * Bytes that it occupies on the volume.
   */
  uint64_t allocated;
  /**
   * The preferred size of reads and writes; 0 means 4096.
   */
  uint32_t io_size;
  /**
   * DOS attributes: read-only 1, hidden 2, system 4, archive 0x20.
   */
  uint32_t dos;
  /**
   * Last access.
   */
  struct VolaryTime atime;
  /**
   * Last change of the content.
   */
  struct VolaryTime mtime;
  /**
   * Last change of content or attributes.
   */
  struct VolaryTime ctime;
  /**
   * Birth.
   */
  struct VolaryTime btime;
  /**
   * Grows with every change of content or attributes.
   */
  uint64_t change;
} VolaryAttr;

/**
 * An open of a node.
 */
typedef struct VolaryOpen {
  /**
   * The node.
   */
  struct VolaryNode node;
  /**
   * What `open` or `create` returned.
   */
  uint64_t handle;
  /**
   * VOLARY_READ, VOLARY_WRITE, or both.
   */
  uint32_t mode;
} VolaryOpen;

/**
 * An entry of a directory.
 */
typedef struct VolaryEntry {
  /**
   * The cookie of the place just after this entry. It is not 0, and differs from those of all
   * other entries.
   */
  uint64_t next;
  /**
   * The node it leads to.
   */
  struct VolaryNode node;
  /**
   * VOLARY_FILE to VOLARY_BLOCK_DEVICE.
   */
  uint32_t kind;
  /**
   * The length of the name in bytes.
   */
  uint32_t name_len;
  /**
   * The name: not empty, "." or "..", and without '/' and NUL. It need not end with NUL.
   */
  const char *name;
  /**
   * The node's attributes if `VolaryList.wants_attr` is set and they cost nothing; otherwise
   * NULL.
   */
  const struct VolaryAttr *attr;
} VolaryEntry;

/**
 * The list that `readdir` fills. You may use it until you return.
 */
typedef struct VolaryList {
  /**
   * The size of this structure in bytes.
   */
  uint32_t size;
  /**
   * Not 0: attributes are wanted.
   */
  uint32_t wants_attr;
  /**
   * Adds an entry, and returns 1. Returns 0 if there is no room: return 0 too. You will be
   * called again with the cookie of the entry before.
   */
  int32_t (*add)(const struct VolaryList *list, const struct VolaryEntry *entry);
} VolaryList;

/**
 * Functions of the host for a plug-in. They may be called until `release`, from any thread.
 */
typedef struct VolaryHost {
  /**
   * The size of this structure in bytes.
   */
  uint32_t size;
  /**
   * VOLARY_PLUGIN_VERSION of the host.
   */
  uint32_t version;
  /**
   * Logs one line for whoever runs the host, with VOLARY_LOG_... as its level. Standard output
   * and standard error are discarded.
   */
  void (*log)(const struct VolaryHost *host, uint32_t level, const char *text, size_t len);
  /**
   * Reports a change that was not made through this table, VOLARY_CHANGED_...
   */
  void (*changed)(const struct VolaryHost *host, uint32_t what, struct VolaryNode node);
} VolaryHost;

/**
 * How to attach.
 */
typedef struct VolaryAttach {
  /**
   * The size of this structure in bytes.
   */
  uint32_t size;
  /**
   * Not 0: refuse changes, and write nothing at all.
   */
  uint32_t read_only;
  /**
   * Bound on the memory for caches, in bytes.
   */
  uint64_t memory;
  /**
   * The attaching user, who owns everything that has no owner of its own.
   */
  uint32_t uid;
  /**
   * The attaching user's group.
   */
  uint32_t gid;
  /**
   * The attaching user's umask.
   */
  uint32_t umask;
} VolaryAttach;

/**
 * What the volume can do. It must not change while the volume is attached.
 */
typedef struct VolaryCaps {
  /**
   * VOLARY_CAN_...
   */
  uint32_t can;
  /**
   * Longest name, in bytes.
   */
  uint32_t name_max;
  /**
   * Largest file, in bytes.
   */
  uint64_t size_max;
  /**
   * Resolution of the time of last change, in nanoseconds.
   */
  uint64_t time_step;
  /**
   * The root directory.
   */
  struct VolaryNode root;
  /**
   * Not 0: the host makes one call at a time. Otherwise calls come from several threads at once.
   */
  uint32_t serial;
  /**
   * The age at which a change must be made durable by `sync`, in milliseconds; 0 means 5000.
   */
  uint32_t commit_ms;
} VolaryCaps;

/**
 * How full the volume is, in bytes.
 */
typedef struct VolaryStatFs {
  /**
   * The size of a block.
   */
  uint32_t block_size;
  /**
   * The size of the volume.
   */
  uint64_t size;
  /**
   * Free space.
   */
  uint64_t free;
  /**
   * Free space for the caller.
   */
  uint64_t available;
  /**
   * How many nodes the volume can have.
   */
  uint64_t nodes;
  /**
   * How many of these are free.
   */
  uint64_t nodes_free;
} VolaryStatFs;

/**
 * Attributes to change, or those of a new node. Attributes that are not in `set` stay as they are;
 * for a new node, you choose them.
 */
typedef struct VolarySetAttr {
  /**
   * VOLARY_SET_...
   */
  uint32_t set;
  /**
   * Permission bits.
   */
  uint32_t mode;
  /**
   * Owner.
   */
  uint32_t uid;
  /**
   * Group.
   */
  uint32_t gid;
  /**
   * Size.
   */
  uint64_t size;
  /**
   * DOS attributes.
   */
  uint32_t dos;
  /**
   * Last access.
   */
  struct VolaryTime atime;
  /**
   * Last change of the content.
   */
  struct VolaryTime mtime;
  /**
   * Birth.
   */
  struct VolaryTime btime;
} VolarySetAttr;

/**
 * A byte-range lock.
 */
typedef struct VolaryLock {
  /**
   * The owner of the lock.
   */
  uint64_t owner;
  /**
   * The first byte.
   */
  uint64_t offset;
  /**
   * The number of bytes.
   */
  uint64_t len;
  /**
   * VOLARY_LOCK_...
   */
  uint32_t flags;
} VolaryLock;

/**
 * A file system, as a table of functions.
 *
 * Set all of it to zeros first; then set `version`, `size`, `fs`, and the functions that you have.
 * The first four functions are required. For a missing function, the host does what its comment
 * says after "If missing". If it says nothing, changes return VOLARY_READ_ONLY and the rest
 * VOLARY_UNSUPPORTED.
 *
 * Functions return 0 or more, or an error: VOLARY_NOT_FOUND to VOLARY_CORRUPT. Calls come from
 * several threads at once unless `VolaryCaps.serial` is set. An operation that fails must change
 * nothing. Names do not end with NUL. The host checks your results. It reports a name with a
 * slash, a node with the number 0, or more bytes than there was room for as errors of your
 * plug-in.
 */
typedef struct VolaryTable {
  /**
   * VOLARY_PLUGIN_VERSION.
   */
  uint32_t version;
  /**
   * sizeof(VolaryTable).
   */
  uint32_t size;
  /**
   * The first argument of each function.
   */
  void *fs;
  /**
   * Finds the node that `name` leads to in `dir`. A symlink is not followed.
   */
  int32_t (*lookup)(void *fs,
                    const struct VolaryContext *cx,
                    struct VolaryNode dir,
                    const char *name,
                    size_t name_len,
                    struct VolaryAttr *out);
  /**
   * Returns the attributes of a node.
   */
  int32_t (*getattr)(void *fs,
                     const struct VolaryContext *cx,
                     struct VolaryNode node,
                     struct VolaryAttr *out);
  /**
   * Lists an open directory from the cookie `from` on (0: from its beginning), without "." and
   * "..". Returns 1 if these are the last entries, otherwise 0.
   */
  int32_t (*readdir)(void *fs,
                     const struct VolaryContext *cx,
                     struct VolaryOpen dir,
                     uint64_t from,
                     const struct VolaryList *list);
  /**
   * Reads, and returns the number of bytes: less than `len` only at the end of the file.
   */
  int64_t (*read)(void *fs,
                  const struct VolaryContext *cx,
                  struct VolaryOpen file,
                  uint64_t offset,
                  void *buf,
                  size_t len);
  /**
   * Attaches the volume; called once, before all else. Open files here, and refuse a bad
   * configuration with a message. If missing: nothing to do.
   */
  int32_t (*attach)(void *fs,
                    const struct VolaryContext *cx,
                    const struct VolaryHost *host,
                    const struct VolaryAttach *how);
  /**
   * Frees `fs` and the table: the last call. If missing: nothing to do.
   */
  void (*release)(void *fs);
  /**
   * Returns what the volume can do; called once, after `attach`.
   * If missing: it is read-only, takes any name of up to 255 bytes, and the root is node 1.
   */
  int32_t (*caps)(void *fs, struct VolaryCaps *out);
  /**
   * Begins a caller's session. The value that it puts into `session` is passed with each call of
   * the same user, group and supplementary groups, until `disconnect`. If missing: no sessions.
   */
  int32_t (*connect)(void *fs, const struct VolaryContext *cx, void **session);
  /**
   * Ends a session.
   */
  void (*disconnect)(void *fs, void *session);
  /**
   * Returns how full the volume is. If missing: a full one of one block.
   */
  int32_t (*statfs)(void *fs, const struct VolaryContext *cx, struct VolaryStatFs *out);
  /**
   * Makes all changes so far durable. If missing: nothing to do.
   */
  int32_t (*sync)(void *fs, const struct VolaryContext *cx);
  /**
   * Makes all changes durable, for the last time. If missing: as `sync`.
   */
  int32_t (*detach)(void *fs, const struct VolaryContext *cx);
  /**
   * Returns the parent directory of `dir`; the root is its own parent.
   * If missing: the host knows the root's only.
   */
  int32_t (*parent)(void *fs,
                    const struct VolaryContext *cx,
                    struct VolaryNode dir,
                    struct VolaryAttr *out);
  /**
   * Makes a regular file and opens it for reading and writing; VOLARY_CREATE_...
   */
  int32_t (*create)(void *fs,
                    const struct VolaryContext *cx,
                    struct VolaryNode dir,
                    const char *name,
                    size_t name_len,
                    uint32_t how,
                    const struct VolarySetAttr *set,
                    struct VolaryAttr *out,
                    uint64_t *handle);
  /**
   * Makes a directory.
   */
  int32_t (*mkdir)(void *fs,
                   const struct VolaryContext *cx,
                   struct VolaryNode dir,
                   const char *name,
                   size_t name_len,
                   const struct VolarySetAttr *set,
                   struct VolaryAttr *out);
  /**
   * Makes a fifo, socket or device.
   */
  int32_t (*mknod)(void *fs,
                   const struct VolaryContext *cx,
                   struct VolaryNode dir,
                   const char *name,
                   size_t name_len,
                   uint32_t kind,
                   uint64_t rdev,
                   const struct VolarySetAttr *set,
                   struct VolaryAttr *out);
  /**
   * Makes a symlink to `target`.
   */
  int32_t (*symlink)(void *fs,
                     const struct VolaryContext *cx,
                     struct VolaryNode dir,
                     const char *name,
                     size_t name_len,
                     const char *target,
                     size_t target_len,
                     const struct VolarySetAttr *set,
                     struct VolaryAttr *out);
  /**
   * Gives `node` another name.
   */
  int32_t (*link)(void *fs,
                  const struct VolaryContext *cx,
                  struct VolaryNode node,
                  struct VolaryNode dir,
                  const char *name,
                  size_t name_len,
                  struct VolaryAttr *out);
  /**
   * Removes a name. The node is freed with its last name and last open.
   */
  int32_t (*unlink)(void *fs,
                    const struct VolaryContext *cx,
                    struct VolaryNode dir,
                    const char *name,
                    size_t name_len);
  /**
   * Removes an empty directory.
   */
  int32_t (*rmdir)(void *fs,
                   const struct VolaryContext *cx,
                   struct VolaryNode dir,
                   const char *name,
                   size_t name_len);
  /**
   * Moves a name, and replaces the node that the new name led to; VOLARY_RENAME_...
   */
  int32_t (*rename)(void *fs,
                    const struct VolaryContext *cx,
                    struct VolaryNode from,
                    const char *name,
                    size_t name_len,
                    struct VolaryNode to,
                    const char *new_name,
                    size_t new_name_len,
                    uint32_t flags);
  /**
   * Changes attributes, all or none, and returns the node's attributes after the change.
   */
  int32_t (*setattr)(void *fs,
                     const struct VolaryContext *cx,
                     struct VolaryNode node,
                     const struct VolarySetAttr *set,
                     struct VolaryAttr *out);
  /**
   * Returns which part of `want` the caller may do, with VOLARY_CAN_CHECK_ACCESS.
   */
  int32_t (*access)(void *fs, const struct VolaryContext *cx, struct VolaryNode node, uint32_t want);
  /**
   * Writes at most `room` bytes of a symlink's target, and returns the target's length. If that
   * is more than `room`, the host asks again with room for all of it.
   * If missing: VOLARY_INVALID.
   */
  int64_t (*readlink)(void *fs,
                      const struct VolaryContext *cx,
                      struct VolaryNode node,
                      char *buf,
                      size_t room);
  /**
   * Returns the value of an extended attribute, in the same way as `readlink`.
   */
  int64_t (*getxattr)(void *fs,
                      const struct VolaryContext *cx,
                      struct VolaryNode node,
                      const char *name,
                      size_t name_len,
                      void *buf,
                      size_t room);
  /**
   * Sets an extended attribute.
   */
  int32_t (*setxattr)(void *fs,
                      const struct VolaryContext *cx,
                      struct VolaryNode node,
                      const char *name,
                      size_t name_len,
                      const void *value,
                      size_t len);
  /**
   * Returns the names of the extended attributes, each followed by a NUL, in the same way as
   * `readlink`.
   */
  int64_t (*listxattr)(void *fs,
                       const struct VolaryContext *cx,
                       struct VolaryNode node,
                       char *buf,
                       size_t room);
  /**
   * Removes an extended attribute.
   */
  int32_t (*removexattr)(void *fs,
                         const struct VolaryContext *cx,
                         struct VolaryNode node,
                         const char *name,
                         size_t name_len);
  /**
   * Hints that the host no longer uses `node`, and drops `lookups` of the references it was
   * given. Some hosts never call this. If missing: nothing to do.
   */
  void (*forget)(void *fs, struct VolaryNode node, uint64_t lookups);
  /**
   * Opens a file or a directory; VOLARY_READ, VOLARY_WRITE or both. An open node outlives its
   * last name.
   * If missing: the handle is 0. Directories cannot be opened for writing, and nothing can
   * without VOLARY_CAN_WRITE.
   */
  int32_t (*open)(void *fs,
                  const struct VolaryContext *cx,
                  struct VolaryNode node,
                  uint32_t mode,
                  uint64_t *handle);
  /**
   * Writes all bytes at `offset`, or, if `append` is not 0, at the current end of the file.
   * Returns the offset just after them.
   */
  int64_t (*write)(void *fs,
                   const struct VolaryContext *cx,
                   struct VolaryOpen file,
                   uint64_t offset,
                   uint32_t append,
                   const void *data,
                   size_t len);
  /**
   * Makes the file durable: its data and, unless `data_only`, its attributes.
   * If missing: nothing to do.
   */
  int32_t (*fsync)(void *fs,
                   const struct VolaryContext *cx,
                   struct VolaryOpen file,
                   uint32_t data_only);
  /**
   * Reserves space for the range (`hole` 0), or frees it and makes the range a hole. The size
   * stays.
   */
  int32_t (*allocate)(void *fs,
                      const struct VolaryContext *cx,
                      struct VolaryOpen file,
                      uint64_t offset,
                      uint64_t len,
                      uint32_t hole);
  /**
   * Takes, releases or tests a byte-range lock, with VOLARY_CAN_SHARE_LOCKS.
   */
  int32_t (*lock)(void *fs,
                  const struct VolaryContext *cx,
                  struct VolaryOpen file,
                  const struct VolaryLock *lock);
  /**
   * Does a format-specific operation, in codes of your own. Writes an answer of at most `room`
   * bytes, and returns its length.
   */
  int64_t (*ioctl)(void *fs,
                   const struct VolaryContext *cx,
                   struct VolaryOpen file,
                   uint32_t code,
                   const void *input,
                   size_t len,
                   void *buf,
                   size_t room);
  /**
   * Ends the open, even if it returns an error, which is one of earlier writes.
   * If missing: nothing to do.
   */
  int32_t (*close)(void *fs, const struct VolaryContext *cx, struct VolaryOpen open);
} VolaryTable;

/**
 * The type of the one function that a plug-in exports, as `FileSystemCreate`. It returns a new
 * file system called `name`, configured by `config`, in version `version` of the table. It returns
 * NULL for an unknown name or version. An empty name stands for your default one. A library can
 * have several.
 */
typedef const struct VolaryTable *(*VolaryCreate)(const char *name,
                                                  const char *config,
                                                  uint32_t version);

/**
 * The list that `readdir` of a path table fills. You may use it until you return.
 */
typedef struct VolaryPathList {
  /**
   * The size of this structure in bytes.
   */
  uint32_t size;
  /**
   * Adds an entry: a name that ends with NUL, and its kind, VOLARY_FILE to VOLARY_BLOCK_DEVICE,
   * or 0 if you do not know it. You may add "." and "..", which are ignored. Returns 1 if the
   * entry was taken. Returns 0 if no more are taken: return.
   */
  int32_t (*add)(const struct VolaryPathList *list, const char *name, uint32_t kind);
} VolaryPathList;

/**
 * A file system that works on paths, as a table of functions: for drivers without node ids. The
 * host manages these. So a renamed directory stays the same node for all who use it, and a removed
 * file can be read and written until its last open ends.
 *
 * Set all of it to zeros first; then set `version`, `size`, `fs`, and the functions that you have.
 * The first three functions are required. What `VolaryTable` says of results, threads and missing
 * functions holds here too. A path begins with '/', ends with NUL, and has no "." or ".." in it;
 * "/" is the root. No path goes through a symlink.
 *
 * The host makes sure that the parent is a directory, and that a rename moves no directory into
 * itself. It also checks the kinds of the nodes that `unlink`, `rmdir` and `rename` remove. While
 * one of these runs, no other call does. The host does not unlink an open file, but renames it to
 * /.volary-removed-... It unlinks that name when the last open ends, or when the volume is
 * attached again. Without `rename`, an open file is VOLARY_BUSY. So only one host at a time may
 * attach a volume for changes.
 *
 * In `VolaryCaps`, `root` is ignored, and VOLARY_CAN_CASE and VOLARY_CAN_KEEP_CASE must be set.
 * Ids and cookies are never stable, and locks are never shared. `VolaryAttr.node` may be 0.
 * Otherwise a new value tells the host that a path now leads to another node. With
 * VOLARY_CAN_HARD_LINKS, paths of one file must have the same value. Every call of
 * `VolaryHost.changed` counts as VOLARY_CHANGED_ALL.
 */
typedef struct VolaryPathTable {
  /**
   * VOLARY_PLUGIN_VERSION.
   */
  uint32_t version;
  /**
   * sizeof(VolaryPathTable).
   */
  uint32_t size;
  /**
   * The first argument of each function.
   */
  void *fs;
  /**
   * Returns the attributes of the node at a path. A symlink is not followed.
   */
  int32_t (*getattr)(void *fs,
                     const struct VolaryContext *cx,
                     const char *path,
                     struct VolaryAttr *out);
  /**
   * Lists a whole directory.
   */
  int32_t (*readdir)(void *fs,
                     const struct VolaryContext *cx,
                     const char *path,
                     const struct VolaryPathList *list);
  /**
   * Reads, and returns the number of bytes: less than `len` only at the end of the file.
   */
  int64_t (*read)(void *fs,
                  const struct VolaryContext *cx,
                  const char *path,
                  uint64_t handle,
                  uint64_t offset,
                  void *buf,
                  size_t len);
  /**
   * As in `VolaryTable`. If missing: nothing to do.
   */
  int32_t (*attach)(void *fs,
                    const struct VolaryContext *cx,
                    const struct VolaryHost *host,
                    const struct VolaryAttach *how);
  /**
   * Frees `fs` and the table: the last call. If missing: nothing to do.
   */
  void (*release)(void *fs);
  /**
   * Returns what the volume can do; called once, after `attach`.
   * If missing: it is read-only, and takes any name of up to 255 bytes.
   */
  int32_t (*caps)(void *fs, struct VolaryCaps *out);
  /**
   * Begins a caller's session, as in `VolaryTable`. If missing: no sessions.
   */
  int32_t (*connect)(void *fs, const struct VolaryContext *cx, void **session);
  /**
   * Ends a session.
   */
  void (*disconnect)(void *fs, void *session);
  /**
   * Returns how full the volume is. If missing: a full one of one block.
   */
  int32_t (*statfs)(void *fs, const struct VolaryContext *cx, struct VolaryStatFs *out);
  /**
   * Makes all changes so far durable. If missing: nothing to do.
   */
  int32_t (*sync)(void *fs, const struct VolaryContext *cx);
  /**
   * Makes all changes durable, for the last time. If missing: as `sync`.
   */
  int32_t (*detach)(void *fs, const struct VolaryContext *cx);
  /**
   * Makes a regular file and opens it for reading and writing. Returns VOLARY_EXISTS if the name
   * is taken.
   */
  int32_t (*create)(void *fs,
                    const struct VolaryContext *cx,
                    const char *path,
                    const struct VolarySetAttr *set,
                    uint64_t *handle);
  /**
   * Makes a directory.
   */
  int32_t (*mkdir)(void *fs,
                   const struct VolaryContext *cx,
                   const char *path,
                   const struct VolarySetAttr *set);
  /**
   * Makes a fifo, socket or device.
   */
  int32_t (*mknod)(void *fs,
                   const struct VolaryContext *cx,
                   const char *path,
                   uint32_t kind,
                   uint64_t rdev,
                   const struct VolarySetAttr *set);
  /**
   * Makes a symlink to `target`.
   */
  int32_t (*symlink)(void *fs,
                     const struct VolaryContext *cx,
                     const char *path,
                     const char *target,
                     const struct VolarySetAttr *set);
  /**
   * Gives the file at `path` another name.
   */
  int32_t (*link)(void *fs, const struct VolaryContext *cx, const char *path, const char *new_path);
  /**
   * Removes a name of a file that is not open, or that has another name.
   */
  int32_t (*unlink)(void *fs, const struct VolaryContext *cx, const char *path);
  /**
   * Removes an empty directory, which may be open.
   */
  int32_t (*rmdir)(void *fs, const struct VolaryContext *cx, const char *path);
  /**
   * Moves a name, and replaces the node at the new path: a file, or an empty directory by a
   * directory. `flags` is VOLARY_RENAME_REPLACE, or with VOLARY_CAN_SWAP VOLARY_RENAME_SWAP.
   * Handles stay valid.
   */
  int32_t (*rename)(void *fs,
                    const struct VolaryContext *cx,
                    const char *path,
                    const char *new_path,
                    uint32_t flags);
  /**
   * Changes attributes, all or none.
   */
  int32_t (*setattr)(void *fs,
                     const struct VolaryContext *cx,
                     const char *path,
                     const struct VolarySetAttr *set);
  /**
   * Returns which part of `want` the caller may do, with VOLARY_CAN_CHECK_ACCESS.
   */
  int32_t (*access)(void *fs, const struct VolaryContext *cx, const char *path, uint32_t want);
  /**
   * Writes at most `room` bytes of a symlink's target, and returns the target's length. If that
   * is more than `room`, the host asks again with room for all of it.
   * If missing: VOLARY_INVALID.
   */
  int64_t (*readlink)(void *fs,
                      const struct VolaryContext *cx,
                      const char *path,
                      char *buf,
                      size_t room);
  /**
   * Writes at most `room` bytes of the value of the extended attribute `name`, which ends with
   * NUL. Returns the value's length, as `readlink` does.
   */
  int64_t (*getxattr)(void *fs,
                      const struct VolaryContext *cx,
                      const char *path,
                      const char *name,
                      void *buf,
                      size_t room);
  /**
   * Sets an extended attribute.
   */
  int32_t (*setxattr)(void *fs,
                      const struct VolaryContext *cx,
                      const char *path,
                      const char *name,
                      const void *value,
                      size_t len);
  /**
   * Returns the names of the extended attributes, each followed by a NUL, in the same way as
   * `readlink`.
   */
  int64_t (*listxattr)(void *fs,
                       const struct VolaryContext *cx,
                       const char *path,
                       char *buf,
                       size_t room);
  /**
   * Removes an extended attribute.
   */
  int32_t (*removexattr)(void *fs,
                         const struct VolaryContext *cx,
                         const char *path,
                         const char *name);
  /**
   * Opens a regular file; VOLARY_READ, VOLARY_WRITE or both. You choose `handle`, which is
   * passed with each call for this open. If missing: the handle is 0.
   */
  int32_t (*open)(void *fs,
                  const struct VolaryContext *cx,
                  const char *path,
                  uint32_t mode,
                  uint64_t *handle);
  /**
   * Writes all bytes at `offset`. Two writes at the end of a file never run at once.
   */
  int32_t (*write)(void *fs,
                   const struct VolaryContext *cx,
                   const char *path,
                   uint64_t handle,
                   uint64_t offset,
                   const void *data,
                   size_t len);
  /**
   * Makes the file durable: its data and, unless `data_only`, its attributes.
   * If missing: nothing to do.
   */
  int32_t (*fsync)(void *fs,
                   const struct VolaryContext *cx,
                   const char *path,
                   uint64_t handle,
                   uint32_t data_only);
  /**
   * Reserves space for the range (`hole` 0), or frees it and makes the range a hole. The size
   * stays.
   */
  int32_t (*allocate)(void *fs,
                      const struct VolaryContext *cx,
                      const char *path,
                      uint64_t handle,
                      uint64_t offset,
                      uint64_t len,
                      uint32_t hole);
  /**
   * Ends an open of `open` or `create`, even if it returns an error. `path` is NULL if others
   * removed the file. If missing: nothing to do.
   */
  int32_t (*close)(void *fs, const struct VolaryContext *cx, const char *path, uint64_t handle);
} VolaryPathTable;

/**
 * The type of the function that a plug-in with paths exports, as `FileSystemCreatePaths`. All else
 * is as for `VolaryCreate`. If a library exports both, that one is called first.
 */
typedef const struct VolaryPathTable *(*VolaryCreatePaths)(const char *name,
                                                           const char *config,
                                                           uint32_t version);

#define VOLARY_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/**
 * What a plug-in exports, with VOLARY_EXPORT before it: VolaryCreate.
 */
const VolaryTable *FileSystemCreate(const char *name, const char *config, uint32_t version);

/**
 * The same for a driver that is asked by paths: VolaryCreatePaths.
 */
const VolaryPathTable *FileSystemCreatePaths(const char *name, const char *config, uint32_t version);

#ifdef __cplusplus
}
#endif
