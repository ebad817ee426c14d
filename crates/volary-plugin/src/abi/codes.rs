//! Constants: errors, kinds, abilities, flags.

/// The version of the table that this header describes.
pub const VOLARY_PLUGIN_VERSION: u32 = 1;

/// There is no such entry.
pub const VOLARY_NOT_FOUND: i32 = -1;
/// The name is taken.
pub const VOLARY_EXISTS: i32 = -2;
/// Not a directory.
pub const VOLARY_NOT_DIR: i32 = -3;
/// A directory, where it must not be one.
pub const VOLARY_IS_DIR: i32 = -4;
/// The directory has entries.
pub const VOLARY_NOT_EMPTY: i32 = -5;
/// The request makes no sense.
pub const VOLARY_INVALID: i32 = -6;
/// A name or a symlink's target is longer than the format can keep.
pub const VOLARY_NAME_TOO_LONG: i32 = -7;
/// The node has as many links as the format can count.
pub const VOLARY_TOO_MANY_LINKS: i32 = -8;
/// Too many symlinks on the way.
pub const VOLARY_SYMLINK_LOOP: i32 = -9;
/// Larger than the format can keep.
pub const VOLARY_TOO_BIG: i32 = -10;
/// The volume is full.
pub const VOLARY_NO_SPACE: i32 = -11;
/// The caller has used up their quota.
pub const VOLARY_OVER_QUOTA: i32 = -12;
/// The volume does not take changes.
pub const VOLARY_READ_ONLY: i32 = -13;
/// The mode bits forbid it (EACCES).
pub const VOLARY_NO_ACCESS: i32 = -14;
/// Only the owner or root may do this (EPERM).
pub const VOLARY_NOT_PERMITTED: i32 = -15;
/// The node or open is gone (ESTALE).
pub const VOLARY_STALE: i32 = -16;
/// Somebody holds a lock that conflicts.
pub const VOLARY_LOCKED: i32 = -17;
/// Waiting for this lock would never end.
pub const VOLARY_DEADLOCK: i32 = -18;
/// Another open does not share the file in that way.
pub const VOLARY_SHARING: i32 = -19;
/// The node is deleted with its last open, and cannot be opened any more.
pub const VOLARY_DELETE_PENDING: i32 = -20;
/// The node is in use in a way that forbids it.
pub const VOLARY_BUSY: i32 = -21;
/// Too many files are open.
pub const VOLARY_TOO_MANY_OPEN: i32 = -22;
/// The caller lost interest: `cancelled` returned so.
pub const VOLARY_INTERRUPTED: i32 = -23;
/// The volume cannot do this.
pub const VOLARY_UNSUPPORTED: i32 = -24;
/// There is no such extended attribute.
pub const VOLARY_NO_XATTR: i32 = -25;
/// From one volume to another.
pub const VOLARY_CROSS_VOLUME: i32 = -26;
/// The device failed.
pub const VOLARY_IO: i32 = -27;
/// The volume contradicts itself or its format.
pub const VOLARY_CORRUPT: i32 = -28;

/// Kind of a node: a regular file.
pub const VOLARY_FILE: u32 = 1;
/// A directory.
pub const VOLARY_DIR: u32 = 2;
/// A symbolic link.
pub const VOLARY_SYMLINK: u32 = 3;
/// A fifo.
pub const VOLARY_FIFO: u32 = 4;
/// A socket.
pub const VOLARY_SOCKET: u32 = 5;
/// A character device.
pub const VOLARY_CHAR_DEVICE: u32 = 6;
/// A block device.
pub const VOLARY_BLOCK_DEVICE: u32 = 7;

/// Ability: takes changes.
pub const VOLARY_CAN_WRITE: u32 = 1;
/// Keeps owner, group and permission bits.
pub const VOLARY_CAN_MODES: u32 = 2;
/// Has symlinks.
pub const VOLARY_CAN_SYMLINKS: u32 = 4;
/// Has hard links.
pub const VOLARY_CAN_HARD_LINKS: u32 = 8;
/// Has fifos, sockets and device nodes.
pub const VOLARY_CAN_DEVICES: u32 = 16;
/// Has extended attributes.
pub const VOLARY_CAN_XATTRS: u32 = 32;
/// Has holes.
pub const VOLARY_CAN_HOLES: u32 = 64;
/// `lookup` tells upper from lower case.
pub const VOLARY_CAN_CASE: u32 = 128;
/// Keeps names in the case they were given.
pub const VOLARY_CAN_KEEP_CASE: u32 = 256;
/// Node ids stay valid when the plug-in is started again. Without this ability, all ids but the
/// root's become VOLARY_STALE then, and `ino` must be below 2^52.
pub const VOLARY_CAN_STABLE_IDS: u32 = 512;
/// Cookies of `readdir` stay valid across opens and restarts.
pub const VOLARY_CAN_STABLE_COOKIES: u32 = 1024;
/// After a crash each operation has happened or has not.
pub const VOLARY_CAN_CRASH_SAFE: u32 = 2048;
/// Checks access itself, by `access` and in each operation.
pub const VOLARY_CAN_CHECK_ACCESS: u32 = 1 << 13;
/// Shares locks with others; `lock` must be called.
pub const VOLARY_CAN_SHARE_LOCKS: u32 = 1 << 14;
/// Reports changes that others made, by `VolaryHost.changed`.
pub const VOLARY_CAN_WATCH: u32 = 1 << 15;
/// Reserves space ahead of need, by `allocate`.
pub const VOLARY_CAN_PREALLOCATE: u32 = 1 << 16;
/// Swaps two names, by `rename` with VOLARY_RENAME_SWAP.
pub const VOLARY_CAN_SWAP: u32 = 1 << 17;
/// Every sequence of bytes without '/' and NUL is a valid name.
pub const VOLARY_CAN_ANY_NAME: u32 = 1 << 18;
/// Others change the volume too.
pub const VOLARY_CAN_SHARED: u32 = 1 << 19;

/// In `VolaryAttr.has`: `btime` is set.
pub const VOLARY_HAS_BTIME: u32 = 1;
/// In `VolaryAttr.has`: `dos` is set.
pub const VOLARY_HAS_DOS: u32 = 2;
/// In `VolaryAttr.has`: `change` is set. Otherwise the host derives it from `ctime`.
pub const VOLARY_HAS_CHANGE: u32 = 4;

/// In `VolarySetAttr.set`: set `mode`.
pub const VOLARY_SET_MODE: u32 = 1;
/// Set `uid`.
pub const VOLARY_SET_UID: u32 = 2;
/// Set `gid`.
pub const VOLARY_SET_GID: u32 = 4;
/// Set `size`: content past it is cut off, and a gap before it reads as zeros.
pub const VOLARY_SET_SIZE: u32 = 8;
/// Set `atime`.
pub const VOLARY_SET_ATIME: u32 = 16;
/// Set `mtime`.
pub const VOLARY_SET_MTIME: u32 = 32;
/// Set `btime`.
pub const VOLARY_SET_BTIME: u32 = 64;
/// Set `dos`.
pub const VOLARY_SET_DOS: u32 = 128;
/// With VOLARY_SET_ATIME: the caller asked for the current time, which is in `atime`.
pub const VOLARY_SET_ATIME_NOW: u32 = 256;
/// With VOLARY_SET_MTIME: the caller asked for the current time, which is in `mtime`.
pub const VOLARY_SET_MTIME_NOW: u32 = 512;
/// With VOLARY_SET_BTIME: the caller asked for the current time, which is in `btime`.
pub const VOLARY_SET_BTIME_NOW: u32 = 1024;

/// For `create`: if the name is taken, return VOLARY_EXISTS.
pub const VOLARY_CREATE_NEW: u32 = 0;
/// For `create`: open an existing file.
pub const VOLARY_CREATE_OPEN: u32 = 1;
/// For `create`: open an existing file, and truncate it.
pub const VOLARY_CREATE_TRUNCATE: u32 = 2;

/// An open, or access, for reading.
pub const VOLARY_READ: u32 = 4;
/// An open, or access, for writing.
pub const VOLARY_WRITE: u32 = 2;
/// Access to execute a file or search a directory.
pub const VOLARY_EXEC: u32 = 1;

/// For `rename`: replace the node that the new name leads to.
pub const VOLARY_RENAME_REPLACE: u32 = 0;
/// For `rename`: leave that node, and return VOLARY_EXISTS.
pub const VOLARY_RENAME_KEEP: u32 = 1;
/// For `rename`: swap the two names.
pub const VOLARY_RENAME_SWAP: u32 = 2;

/// For `lock`: exclusive, not shared.
pub const VOLARY_LOCK_EXCLUSIVE: u32 = 1;
/// For `lock`: release the lock.
pub const VOLARY_LOCK_UNLOCK: u32 = 2;
/// For `lock`: only test whether the lock is available.
pub const VOLARY_LOCK_TEST: u32 = 4;

/// For `VolaryHost.log`: worth knowing; nothing is wrong.
pub const VOLARY_LOG_NOTE: u32 = 0;
/// For `VolaryHost.log`: something is wrong.
pub const VOLARY_LOG_ERROR: u32 = 1;

/// For `VolaryHost.changed`: the content of a node.
pub const VOLARY_CHANGED_DATA: u32 = 0;
/// For `VolaryHost.changed`: the attributes of a node.
pub const VOLARY_CHANGED_ATTR: u32 = 1;
/// For `VolaryHost.changed`: the entries of a directory.
pub const VOLARY_CHANGED_ENTRIES: u32 = 2;
/// For `VolaryHost.changed`: a node was removed.
pub const VOLARY_CHANGED_GONE: u32 = 3;
/// For `VolaryHost.changed`: anything may have changed.
pub const VOLARY_CHANGED_ALL: u32 = 4;
