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
 * A directory, where none can be.
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
 * One more link than the format can count.
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
 * The caller has had their share.
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
 * Somebody holds a lock that is in the way.
 */
#define VOLARY_LOCKED -17

/**
 * Waiting for this lock would never end.
 */
#define VOLARY_DEADLOCK -18

/**
 * Somebody has it open and does not share it in that way.
 */
#define VOLARY_SHARING -19

/**
 * It goes with its last open, and nobody may open it any more.
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
 * The caller lost interest: `cancelled` said so.
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
 * Node ids keep their meaning when the plug-in is started again. Without it all ids but the
 * root's are answered with VOLARY_STALE after that, and `ino` has to be below 2^52.
 */
#define VOLARY_CAN_STABLE_IDS 512

/**
 * Cookies of `readdir` keep their meaning across opens and restarts.
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
 * Tells of changes that came from elsewhere, by `VolaryHost.changed`.
 */
#define VOLARY_CAN_WATCH (1 << 15)

/**
 * Gives room ahead of need, by `allocate`.
 */
#define VOLARY_CAN_PREALLOCATE (1 << 16)

/**
 * Swaps two names, by `rename` with VOLARY_RENAME_SWAP.
 */
#define VOLARY_CAN_SWAP (1 << 17)

/**
 * Any bytes without '/' and NUL are a name.
 */
#define VOLARY_CAN_ANY_NAME (1 << 18)

/**
 * Changes come from elsewhere too.
 */
#define VOLARY_CAN_SHARED (1 << 19)

/**
 * In `VolaryAttr.has`: `btime` is given.
 */
#define VOLARY_HAS_BTIME 1

/**
 * In `VolaryAttr.has`: `dos` is given.
 */
#define VOLARY_HAS_DOS 2

/**
 * In `VolaryAttr.has`: `change` is given. Without it, it is made of `ctime`.
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
 * Set `size`: content past it is cut off, content up to it reads as zeros.
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
 * With VOLARY_SET_ATIME: the time of the call was asked for, which `atime` holds.
 */
#define VOLARY_SET_ATIME_NOW 256

/**
 * With VOLARY_SET_MTIME: the time of the call was asked for, which `mtime` holds.
 */
#define VOLARY_SET_MTIME_NOW 512

/**
 * With VOLARY_SET_BTIME: the time of the call was asked for, which `btime` holds.
 */
#define VOLARY_SET_BTIME_NOW 1024

/**
 * For `create`: a name that is taken answers VOLARY_EXISTS.
 */
#define VOLARY_CREATE_NEW 0

/**
 * For `create`: a file that is there is opened.
 */
#define VOLARY_CREATE_OPEN 1

/**
 * For `create`: a file that is there is opened, and cut to nothing.
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
 * For `rename`: replace what the new name leads to.
 */
#define VOLARY_RENAME_REPLACE 0

/**
 * For `rename`: leave it, and answer VOLARY_EXISTS.
 */
#define VOLARY_RENAME_KEEP 1

/**
 * For `rename`: swap the two.
 */
#define VOLARY_RENAME_SWAP 2

/**
 * For `lock`: exclusive, not shared.
 */
#define VOLARY_LOCK_EXCLUSIVE 1

/**
 * For `lock`: give it back.
 */
#define VOLARY_LOCK_UNLOCK 2

/**
 * For `lock`: only test whether it could be had.
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
 * For `VolaryHost.changed`: a node is gone.
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
 * Who asks, when, and whether they still want the answer. It is yours until you return.
 */
typedef struct VolaryContext {
  /**
   * Bytes of this structure.
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
   * The time of the call: what new time stamps are made from.
   */
  struct VolaryTime now;
  /**
   * What `connect` answered for this caller; else NULL.
   */
  void *session;
  /**
   * Beside an error you may put words here, with a NUL at their end.
   */
  char *note;
  /**
   * How many bytes there are for that.
   */
  size_t note_room;
  /**
   * Call it in loops over long work: not 0 if the caller has lost interest; answer
   * VOLARY_INTERRUPTED then. From the thread of the call.
   */
  int32_t (*cancelled)(const struct VolaryContext *cx);
} VolaryContext;

/**
 * Which node. `ino` is not 0 and unique among the nodes that live; with `generation` it is
 * unique for as long as you can make it. Answer VOLARY_STALE for one that is gone.
 */
typedef struct VolaryNode {
  /**
   * The number, as `st_ino` gives it.
   */
  uint64_t ino;
  /**
   * Tells apart nodes that have had the same number.
   */
  uint32_t generation;
} VolaryNode;

/**
 * The attributes of a node. Begin with all zeros.
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
   * VOLARY_HAS_...: what is given of what a format may lack.
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
   * Bytes that it takes on the volume.
   */
  uint64_t allocated;
  /**
   * The size in which it is best read and written; 0: 4096.
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
   * What is open.
   */
  struct VolaryNode node;
  /**
   * What `open` or `create` answered.
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
   * The cookie of the place just after this entry. Not 0, and no other entry's.
   */
  uint64_t next;
  /**
   * The node that it leads to.
   */
  struct VolaryNode node;
  /**
   * VOLARY_FILE to VOLARY_BLOCK_DEVICE.
   */
  uint32_t kind;
  /**
   * Bytes of the name.
   */
  uint32_t name_len;
  /**
   * The name: not empty, "." or "..", without '/' and NUL. Need not end with NUL.
   */
  const char *name;
  /**
   * Its attributes if `VolaryList.wants_attr` and they cost nothing; or NULL.
   */
  const struct VolaryAttr *attr;
} VolaryEntry;

/**
 * What `readdir` fills. It is yours until you return.
 */
typedef struct VolaryList {
  /**
   * Bytes of this structure.
   */
  uint32_t size;
  /**
   * Attributes are wanted.
   */
  uint32_t wants_attr;
  /**
   * Adds an entry. 1: it was taken. 0: there is no room; return 0, and you will be asked to
   * go on with the cookie of the entry before.
   */
  int32_t (*add)(const struct VolaryList *list, const struct VolaryEntry *entry);
} VolaryList;

/**
 * What the host does for a plug-in. Valid until `release`, from any thread.
 */
typedef struct VolaryHost {
  /**
   * Bytes of this structure.
   */
  uint32_t size;
  /**
   * VOLARY_PLUGIN_VERSION of the host.
   */
  uint32_t version;
  /**
   * Says something to whoever runs the host: one line, VOLARY_LOG_... Standard output and
   * standard error lead nowhere.
   */
  void (*log)(const struct VolaryHost *host, uint32_t level, const char *text, size_t len);
  /**
   * Tells of a change that came from elsewhere than through this table, VOLARY_CHANGED_...
   */
  void (*changed)(const struct VolaryHost *host, uint32_t what, struct VolaryNode node);
} VolaryHost;

/**
 * How to attach.
 */
typedef struct VolaryAttach {
  /**
   * Bytes of this structure.
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
   * User of the one who attaches: owns what has no owner of its own.
   */
  uint32_t uid;
  /**
   * Their group.
   */
  uint32_t gid;
  /**
   * Their umask.
   */
  uint32_t umask;
} VolaryAttach;

/**
 * What the volume can do. The same for as long as it is attached.
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
   * Steps of the time of last change, in nanoseconds.
   */
  uint64_t time_step;
  /**
   * The root directory.
   */
  struct VolaryNode root;
  /**
   * Not 0: one call at a time. Else calls come from several threads at once.
   */
  uint32_t serial;
  /**
   * How old a change may get before `sync` is called, in milliseconds; 0: 5000.
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
   * All there is.
   */
  uint64_t size;
  /**
   * Free.
   */
  uint64_t free;
  /**
   * Free to the caller.
   */
  uint64_t available;
  /**
   * How many nodes there can be.
   */
  uint64_t nodes;
  /**
   * How many of these are free.
   */
  uint64_t nodes_free;
} VolaryStatFs;

/**
 * Attributes to change, and those of a new node. What is not in `set` is left as it is; of a
 * new node, it is yours to choose.
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
   * Whose.
   */
  uint64_t owner;
  /**
   * From where.
   */
  uint64_t offset;
  /**
   * How far.
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
 * Begin with all zeros; set `version`, `size`, `fs`, and the functions that you have. The first
 * four must be there. Without one of the others the host does what its comment says in
 * parentheses; without words, changes answer VOLARY_READ_ONLY and the rest VOLARY_UNSUPPORTED.
 *
 * Functions answer 0 or more, or an error: VOLARY_NOT_FOUND to VOLARY_CORRUPT. They come from
 * several threads at once unless `VolaryCaps.serial` is set. An operation that fails changes
 * nothing. Names have no NUL at their end. What you answer is checked: a name with a slash, a
 * node with the number 0 or more bytes than there was room for are told as errors of your plug-in.
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
   * Gives the attributes of a node.
   */
  int32_t (*getattr)(void *fs,
                     const struct VolaryContext *cx,
                     struct VolaryNode node,
                     struct VolaryAttr *out);
  /**
   * Lists an open directory from the cookie `from` on (0: from its beginning), without "."
   * and "..". 1: there are no more; 0: there are.
   */
  int32_t (*readdir)(void *fs,
                     const struct VolaryContext *cx,
                     struct VolaryOpen dir,
                     uint64_t from,
                     const struct VolaryList *list);
  /**
   * Reads, and answers how many bytes: fewer than `len` only at the end of the file.
   */
  int64_t (*read)(void *fs,
                  const struct VolaryContext *cx,
                  struct VolaryOpen file,
                  uint64_t offset,
                  void *buf,
                  size_t len);
  /**
   * Attaches the volume, once, before all else: the place to open files and to refuse the
   * configuration, in words. (Nothing to do.)
   */
  int32_t (*attach)(void *fs,
                    const struct VolaryContext *cx,
                    const struct VolaryHost *host,
                    const struct VolaryAttach *how);
  /**
   * Ends it: the last call. Free `fs` and the table. (Nothing to do.)
   */
  void (*release)(void *fs);
  /**
   * Says what the volume can do, once, after `attach`. (It is read, any name of up to 255
   * bytes, the root is node 1.)
   */
  int32_t (*caps)(void *fs, struct VolaryCaps *out);
  /**
   * A caller begins: what it puts into `session` comes with each call of the same user,
   * group and groups, and `disconnect` ends it. (No sessions.)
   */
  int32_t (*connect)(void *fs, const struct VolaryContext *cx, void **session);
  /**
   * Ends a session.
   */
  void (*disconnect)(void *fs, void *session);
  /**
   * Says how full the volume is. (All zeros.)
   */
  int32_t (*statfs)(void *fs, const struct VolaryContext *cx, struct VolaryStatFs *out);
  /**
   * Makes all changes so far durable. (Nothing to do.)
   */
  int32_t (*sync)(void *fs, const struct VolaryContext *cx);
  /**
   * Makes all changes durable, for the last time. (As `sync`.)
   */
  int32_t (*detach)(void *fs, const struct VolaryContext *cx);
  /**
   * Finds the directory that holds `dir`; the root holds itself. (Known of the root alone.)
   */
  int32_t (*parent)(void *fs,
                    const struct VolaryContext *cx,
                    struct VolaryNode dir,
                    struct VolaryAttr *out);
  /**
   * Makes a regular file and opens it to read and write; VOLARY_CREATE_...
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
   * Makes a symlink that holds `target`.
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
   * Gives `node` one more name.
   */
  int32_t (*link)(void *fs,
                  const struct VolaryContext *cx,
                  struct VolaryNode node,
                  struct VolaryNode dir,
                  const char *name,
                  size_t name_len,
                  struct VolaryAttr *out);
  /**
   * Takes away a name. The node goes with its last name and last open.
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
   * Moves a name, replacing what the new name led to; VOLARY_RENAME_...
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
   * Changes attributes, all or none, and gives them as they now are.
   */
  int32_t (*setattr)(void *fs,
                     const struct VolaryContext *cx,
                     struct VolaryNode node,
                     const struct VolarySetAttr *set,
                     struct VolaryAttr *out);
  /**
   * Answers which part of `want` the caller may do, with VOLARY_CAN_CHECK_ACCESS.
   */
  int32_t (*access)(void *fs, const struct VolaryContext *cx, struct VolaryNode node, uint32_t want);
  /**
   * Writes at most `room` bytes of a symlink's target, and returns the target's length. If that
   * is more than `room`, the host asks again with room for all of it. (VOLARY_INVALID.)
   */
  int64_t (*readlink)(void *fs,
                      const struct VolaryContext *cx,
                      struct VolaryNode node,
                      char *buf,
                      size_t room);
  /**
   * Gives the value of an extended attribute, likewise.
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
   * Gives the names of the extended attributes, each with a NUL after it, likewise.
   */
  int64_t (*listxattr)(void *fs,
                       const struct VolaryContext *cx,
                       struct VolaryNode node,
                       char *buf,
                       size_t room);
  /**
   * Takes away an extended attribute.
   */
  int32_t (*removexattr)(void *fs,
                         const struct VolaryContext *cx,
                         struct VolaryNode node,
                         const char *name,
                         size_t name_len);
  /**
   * The host dropped `lookups` of the times it was given `node`. A hint: some hosts never
   * call it. (Nothing to do.)
   */
  void (*forget)(void *fs, struct VolaryNode node, uint64_t lookups);
  /**
   * Opens a file or a directory; VOLARY_READ, VOLARY_WRITE or both. A node that is open
   * outlives its last name. (The handle is 0; directories cannot be opened to write, nor
   * anything without VOLARY_CAN_WRITE.)
   */
  int32_t (*open)(void *fs,
                  const struct VolaryContext *cx,
                  struct VolaryNode node,
                  uint32_t mode,
                  uint64_t *handle);
  /**
   * Writes all of the bytes at `offset`, or, with `append` not 0, at the end as it is at that
   * moment. Answers the offset just after them.
   */
  int64_t (*write)(void *fs,
                   const struct VolaryContext *cx,
                   struct VolaryOpen file,
                   uint64_t offset,
                   uint32_t append,
                   const void *data,
                   size_t len);
  /**
   * Makes the file durable: its data and, unless `data_only`, its attributes. (Nothing to do.)
   */
  int32_t (*fsync)(void *fs,
                   const struct VolaryContext *cx,
                   struct VolaryOpen file,
                   uint32_t data_only);
  /**
   * Gives the range room of its own (`hole` 0) or takes it away. The size stays.
   */
  int32_t (*allocate)(void *fs,
                      const struct VolaryContext *cx,
                      struct VolaryOpen file,
                      uint64_t offset,
                      uint64_t len,
                      uint32_t hole);
  /**
   * Takes, gives back or tests a byte-range lock, with VOLARY_CAN_SHARE_LOCKS.
   */
  int32_t (*lock)(void *fs,
                  const struct VolaryContext *cx,
                  struct VolaryOpen file,
                  const struct VolaryLock *lock);
  /**
   * Anything else, in codes of your own. Gives an answer of at most `room` bytes, and its
   * length.
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
   * Ends the open, whatever the answer; an error tells of earlier writes. (Nothing to do.)
   */
  int32_t (*close)(void *fs, const struct VolaryContext *cx, struct VolaryOpen open);
} VolaryTable;

/**
 * The type of the one function that a plug-in exports, as `FileSystemCreate`: a new file system
 * called `name`, of `config`, in version `version` of the table. NULL if there is no such name or
 * version. An empty name is the one that you would choose. A library can have several.
 */
typedef const struct VolaryTable *(*VolaryCreate)(const char *name,
                                                  const char *config,
                                                  uint32_t version);

/**
 * What `readdir` of a path table fills. It is yours until you return.
 */
typedef struct VolaryPathList {
  /**
   * Bytes of this structure.
   */
  uint32_t size;
  /**
   * Adds an entry: a name that ends with NUL, and VOLARY_FILE to VOLARY_BLOCK_DEVICE, or 0 if
   * you do not know. "." and ".." may be given, and are left out. 1: it was taken. 0: no more
   * are taken; return.
   */
  int32_t (*add)(const struct VolaryPathList *list, const char *name, uint32_t kind);
} VolaryPathList;

/**
 * A file system that is asked by paths, as a table of functions: for drivers that have no node
 * ids. The host keeps these, so that a directory that is renamed stays what it is for all that
 * use it, and a file that is removed can be read and written until its last open ends.
 *
 * Begin with all zeros; set `version`, `size`, `fs`, and the functions that you have. The first
 * three must be there. What `VolaryTable` says of answers, threads and missing functions holds
 * here too. A path begins with '/', ends with NUL, and has no "." or ".." in it; "/" is the root.
 * No path goes through a symlink.
 *
 * The host has seen to it that the parent is a directory, that a rename puts no directory into
 * itself, and that what `unlink`, `rmdir` and `rename` take away is of the right kind. While one
 * of these is at work, no other call is. A file that is open is not unlinked but renamed to
 * /.volary-removed-..., and unlinked when its last open ends, or as the volume is attached again;
 * without `rename` it is VOLARY_BUSY. So one host at a time may attach a volume for changes.
 *
 * Of `VolaryCaps`, `root` is not looked at, VOLARY_CAN_CASE and VOLARY_CAN_KEEP_CASE must be set,
 * and ids and cookies are never stable, nor are there locks of others. `VolaryAttr.node` may be
 * 0; otherwise it tells the host that what a path leads to is another thing than it was. With
 * VOLARY_CAN_HARD_LINKS it must tell, by being the same, which paths lead to one file. What
 * `VolaryHost.changed` is told means VOLARY_CHANGED_ALL.
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
   * Gives the attributes of what a path leads to. A symlink is not followed.
   */
  int32_t (*getattr)(void *fs,
                     const struct VolaryContext *cx,
                     const char *path,
                     struct VolaryAttr *out);
  /**
   * Lists all of a directory.
   */
  int32_t (*readdir)(void *fs,
                     const struct VolaryContext *cx,
                     const char *path,
                     const struct VolaryPathList *list);
  /**
   * Reads, and answers how many bytes: fewer than `len` only at the end of the file.
   */
  int64_t (*read)(void *fs,
                  const struct VolaryContext *cx,
                  const char *path,
                  uint64_t handle,
                  uint64_t offset,
                  void *buf,
                  size_t len);
  /**
   * As of `VolaryTable`. (Nothing to do.)
   */
  int32_t (*attach)(void *fs,
                    const struct VolaryContext *cx,
                    const struct VolaryHost *host,
                    const struct VolaryAttach *how);
  /**
   * Ends it: the last call. Free `fs` and the table. (Nothing to do.)
   */
  void (*release)(void *fs);
  /**
   * Says what the volume can do, once, after `attach`. (It is read, any name of up to 255
   * bytes.)
   */
  int32_t (*caps)(void *fs, struct VolaryCaps *out);
  /**
   * A caller begins, as of `VolaryTable`. (No sessions.)
   */
  int32_t (*connect)(void *fs, const struct VolaryContext *cx, void **session);
  /**
   * Ends a session.
   */
  void (*disconnect)(void *fs, void *session);
  /**
   * Says how full the volume is. (All zeros.)
   */
  int32_t (*statfs)(void *fs, const struct VolaryContext *cx, struct VolaryStatFs *out);
  /**
   * Makes all changes so far durable. (Nothing to do.)
   */
  int32_t (*sync)(void *fs, const struct VolaryContext *cx);
  /**
   * Makes all changes durable, for the last time. (As `sync`.)
   */
  int32_t (*detach)(void *fs, const struct VolaryContext *cx);
  /**
   * Makes a regular file and opens it to read and write. VOLARY_EXISTS if the name is taken.
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
   * Makes a symlink that holds `target`.
   */
  int32_t (*symlink)(void *fs,
                     const struct VolaryContext *cx,
                     const char *path,
                     const char *target,
                     const struct VolarySetAttr *set);
  /**
   * Gives the file at `path` one more name.
   */
  int32_t (*link)(void *fs, const struct VolaryContext *cx, const char *path, const char *new_path);
  /**
   * Takes away a name of a file that nobody has open, or that has another.
   */
  int32_t (*unlink)(void *fs, const struct VolaryContext *cx, const char *path);
  /**
   * Removes an empty directory, which may be open.
   */
  int32_t (*rmdir)(void *fs, const struct VolaryContext *cx, const char *path);
  /**
   * Moves a name, replacing what the new path leads to: a file, or an empty directory by a
   * directory. `flags` is VOLARY_RENAME_REPLACE, or with VOLARY_CAN_SWAP VOLARY_RENAME_SWAP.
   * Handles stay what they are.
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
   * Answers which part of `want` the caller may do, with VOLARY_CAN_CHECK_ACCESS.
   */
  int32_t (*access)(void *fs, const struct VolaryContext *cx, const char *path, uint32_t want);
  /**
   * Writes at most `room` bytes of a symlink's target, and returns the target's length. If that
   * is more than `room`, the host asks again with room for all of it. (VOLARY_INVALID.)
   */
  int64_t (*readlink)(void *fs,
                      const struct VolaryContext *cx,
                      const char *path,
                      char *buf,
                      size_t room);
  /**
   * Gives the value of an extended attribute, likewise. Here `name` ends with NUL.
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
   * Gives the names of the extended attributes, each with a NUL after it, likewise.
   */
  int64_t (*listxattr)(void *fs,
                       const struct VolaryContext *cx,
                       const char *path,
                       char *buf,
                       size_t room);
  /**
   * Takes away an extended attribute.
   */
  int32_t (*removexattr)(void *fs,
                         const struct VolaryContext *cx,
                         const char *path,
                         const char *name);
  /**
   * Opens a regular file; VOLARY_READ, VOLARY_WRITE or both. `handle` is yours, and comes with
   * each call about this open. (The handle is 0.)
   */
  int32_t (*open)(void *fs,
                  const struct VolaryContext *cx,
                  const char *path,
                  uint32_t mode,
                  uint64_t *handle);
  /**
   * Writes all of the bytes at `offset`. Two writes at the end of a file never come at once.
   */
  int32_t (*write)(void *fs,
                   const struct VolaryContext *cx,
                   const char *path,
                   uint64_t handle,
                   uint64_t offset,
                   const void *data,
                   size_t len);
  /**
   * Makes the file durable: its data and, unless `data_only`, its attributes. (Nothing to do.)
   */
  int32_t (*fsync)(void *fs,
                   const struct VolaryContext *cx,
                   const char *path,
                   uint64_t handle,
                   uint32_t data_only);
  /**
   * Gives the range room of its own (`hole` 0) or takes it away. The size stays.
   */
  int32_t (*allocate)(void *fs,
                      const struct VolaryContext *cx,
                      const char *path,
                      uint64_t handle,
                      uint64_t offset,
                      uint64_t len,
                      uint32_t hole);
  /**
   * Ends an open of `open` or `create`, whatever the answer. `path` is NULL if others took the
   * file away. (Nothing to do.)
   */
  int32_t (*close)(void *fs, const struct VolaryContext *cx, const char *path, uint64_t handle);
} VolaryPathTable;

/**
 * The type of the function that a plug-in with paths exports, as `FileSystemCreatePaths`. All else
 * is as of `VolaryCreate`; a library may export both, which is then asked first.
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
