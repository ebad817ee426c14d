//! The C table: what a plug-in and its host say to each other. `include/volary_plugin.h` is made
//! from this file, and its comments are what a C programmer reads.

use std::ffi::{c_char, c_void};

/// The version of the table that this header describes.
pub const VOLARY_PLUGIN_VERSION: u32 = 1;

/// There is no such entry.
pub const VOLARY_NOT_FOUND: i32 = -1;
/// The name is taken.
pub const VOLARY_EXISTS: i32 = -2;
/// Not a directory.
pub const VOLARY_NOT_DIR: i32 = -3;
/// A directory, where none can be.
pub const VOLARY_IS_DIR: i32 = -4;
/// The directory has entries.
pub const VOLARY_NOT_EMPTY: i32 = -5;
/// The request makes no sense.
pub const VOLARY_INVALID: i32 = -6;
/// A name or a symlink's target is longer than the format can keep.
pub const VOLARY_NAME_TOO_LONG: i32 = -7;
/// One more link than the format can count.
pub const VOLARY_TOO_MANY_LINKS: i32 = -8;
/// Too many symlinks on the way.
pub const VOLARY_SYMLINK_LOOP: i32 = -9;
/// Larger than the format can keep.
pub const VOLARY_TOO_BIG: i32 = -10;
/// The volume is full.
pub const VOLARY_NO_SPACE: i32 = -11;
/// The caller has had their share.
pub const VOLARY_OVER_QUOTA: i32 = -12;
/// The volume does not take changes.
pub const VOLARY_READ_ONLY: i32 = -13;
/// The mode bits forbid it (EACCES).
pub const VOLARY_NO_ACCESS: i32 = -14;
/// Only the owner or root may do this (EPERM).
pub const VOLARY_NOT_PERMITTED: i32 = -15;
/// The node or open is gone (ESTALE).
pub const VOLARY_STALE: i32 = -16;
/// Somebody holds a lock that is in the way.
pub const VOLARY_LOCKED: i32 = -17;
/// Waiting for this lock would never end.
pub const VOLARY_DEADLOCK: i32 = -18;
/// Somebody has it open and does not share it in that way.
pub const VOLARY_SHARING: i32 = -19;
/// It goes with its last open, and nobody may open it any more.
pub const VOLARY_DELETE_PENDING: i32 = -20;
/// The node is in use in a way that forbids it.
pub const VOLARY_BUSY: i32 = -21;
/// Too many files are open.
pub const VOLARY_TOO_MANY_OPEN: i32 = -22;
/// The caller lost interest: `cancelled` said so.
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
/// Node ids keep their meaning when the plug-in is started again. Without it all ids but the
/// root's are answered with VOLARY_STALE after that, and `ino` has to be below 2^52.
pub const VOLARY_CAN_STABLE_IDS: u32 = 512;
/// Cookies of `readdir` keep their meaning across opens and restarts.
pub const VOLARY_CAN_STABLE_COOKIES: u32 = 1024;
/// After a crash each operation has happened or has not.
pub const VOLARY_CAN_CRASH_SAFE: u32 = 2048;
/// Checks access itself, by `access` and in each operation.
pub const VOLARY_CAN_CHECK_ACCESS: u32 = 1 << 13;
/// Shares locks with others; `lock` must be called.
pub const VOLARY_CAN_SHARE_LOCKS: u32 = 1 << 14;
/// Tells of changes that came from elsewhere, by `VolaryHost.changed`.
pub const VOLARY_CAN_WATCH: u32 = 1 << 15;
/// Gives room ahead of need, by `allocate`.
pub const VOLARY_CAN_PREALLOCATE: u32 = 1 << 16;
/// Swaps two names, by `rename` with VOLARY_RENAME_SWAP.
pub const VOLARY_CAN_SWAP: u32 = 1 << 17;
/// Any bytes without '/' and NUL are a name.
pub const VOLARY_CAN_ANY_NAME: u32 = 1 << 18;
/// Changes come from elsewhere too.
pub const VOLARY_CAN_SHARED: u32 = 1 << 19;

/// In `VolaryAttr.has`: `btime` is given.
pub const VOLARY_HAS_BTIME: u32 = 1;
/// In `VolaryAttr.has`: `dos` is given.
pub const VOLARY_HAS_DOS: u32 = 2;
/// In `VolaryAttr.has`: `change` is given. Without it, it is made of `ctime`.
pub const VOLARY_HAS_CHANGE: u32 = 4;

/// In `VolarySetAttr.set`: set `mode`.
pub const VOLARY_SET_MODE: u32 = 1;
/// Set `uid`.
pub const VOLARY_SET_UID: u32 = 2;
/// Set `gid`.
pub const VOLARY_SET_GID: u32 = 4;
/// Set `size`: content past it is cut off, content up to it reads as zeros.
pub const VOLARY_SET_SIZE: u32 = 8;
/// Set `atime`.
pub const VOLARY_SET_ATIME: u32 = 16;
/// Set `mtime`.
pub const VOLARY_SET_MTIME: u32 = 32;
/// Set `btime`.
pub const VOLARY_SET_BTIME: u32 = 64;
/// Set `dos`.
pub const VOLARY_SET_DOS: u32 = 128;
/// With VOLARY_SET_ATIME: the time of the call was asked for, which `atime` holds.
pub const VOLARY_SET_ATIME_NOW: u32 = 256;
/// With VOLARY_SET_MTIME: the time of the call was asked for, which `mtime` holds.
pub const VOLARY_SET_MTIME_NOW: u32 = 512;
/// With VOLARY_SET_BTIME: the time of the call was asked for, which `btime` holds.
pub const VOLARY_SET_BTIME_NOW: u32 = 1024;

/// For `create`: a name that is taken answers VOLARY_EXISTS.
pub const VOLARY_CREATE_NEW: u32 = 0;
/// For `create`: a file that is there is opened.
pub const VOLARY_CREATE_OPEN: u32 = 1;
/// For `create`: a file that is there is opened, and cut to nothing.
pub const VOLARY_CREATE_TRUNCATE: u32 = 2;

/// An open, or access, for reading.
pub const VOLARY_READ: u32 = 4;
/// An open, or access, for writing.
pub const VOLARY_WRITE: u32 = 2;
/// Access to execute a file or search a directory.
pub const VOLARY_EXEC: u32 = 1;

/// For `rename`: replace what the new name leads to.
pub const VOLARY_RENAME_REPLACE: u32 = 0;
/// For `rename`: leave it, and answer VOLARY_EXISTS.
pub const VOLARY_RENAME_KEEP: u32 = 1;
/// For `rename`: swap the two.
pub const VOLARY_RENAME_SWAP: u32 = 2;

/// For `lock`: exclusive, not shared.
pub const VOLARY_LOCK_EXCLUSIVE: u32 = 1;
/// For `lock`: give it back.
pub const VOLARY_LOCK_UNLOCK: u32 = 2;
/// For `lock`: only test whether it could be had.
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
/// For `VolaryHost.changed`: a node is gone.
pub const VOLARY_CHANGED_GONE: u32 = 3;
/// For `VolaryHost.changed`: anything may have changed.
pub const VOLARY_CHANGED_ALL: u32 = 4;

/// Which node. `ino` is not 0 and unique among the nodes that live; with `generation` it is
/// unique for as long as you can make it. Answer VOLARY_STALE for one that is gone.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolaryNode {
    /// The number, as `st_ino` gives it.
    pub ino: u64,
    /// Tells apart nodes that have had the same number.
    pub generation: u32,
}

/// A point in time since 1970-01-01 00:00 UTC.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolaryTime {
    /// Whole seconds, rounded down.
    pub secs: i64,
    /// The rest, below 1000000000.
    pub nanos: u32,
}

/// The attributes of a node. Begin with all zeros.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct VolaryAttr {
    /// The node.
    pub node: VolaryNode,
    /// VOLARY_FILE to VOLARY_BLOCK_DEVICE.
    pub kind: u32,
    /// Permission bits with set-uid, set-gid and sticky: 12 bits.
    pub mode: u32,
    /// How many names it has.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// VOLARY_HAS_...: what is given of what a format may lack.
    pub has: u32,
    /// For devices: major number in the upper half, minor in the lower.
    pub rdev: u64,
    /// Length of the content in bytes.
    pub size: u64,
    /// Bytes that it takes on the volume.
    pub allocated: u64,
    /// The size in which it is best read and written; 0: 4096.
    pub io_size: u32,
    /// DOS attributes: read-only 1, hidden 2, system 4, archive 0x20.
    pub dos: u32,
    /// Last access.
    pub atime: VolaryTime,
    /// Last change of the content.
    pub mtime: VolaryTime,
    /// Last change of content or attributes.
    pub ctime: VolaryTime,
    /// Birth.
    pub btime: VolaryTime,
    /// Grows with every change of content or attributes.
    pub change: u64,
}

/// Attributes to change, and those of a new node. What is not in `set` is left as it is; of a
/// new node, it is yours to choose.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct VolarySetAttr {
    /// VOLARY_SET_...
    pub set: u32,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size.
    pub size: u64,
    /// DOS attributes.
    pub dos: u32,
    /// Last access.
    pub atime: VolaryTime,
    /// Last change of the content.
    pub mtime: VolaryTime,
    /// Birth.
    pub btime: VolaryTime,
}

/// An open of a node.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct VolaryOpen {
    /// What is open.
    pub node: VolaryNode,
    /// What `open` or `create` answered.
    pub handle: u64,
    /// VOLARY_READ, VOLARY_WRITE, or both.
    pub mode: u32,
}

/// Who asks, when, and whether they still want the answer. It is yours until you return.
#[repr(C)]
#[derive(Debug)]
pub struct VolaryContext {
    /// Bytes of this structure.
    pub size: u32,
    /// The caller's user.
    pub uid: u32,
    /// The caller's group.
    pub gid: u32,
    /// How many further groups there are.
    pub group_count: u32,
    /// Further groups.
    pub groups: *const u32,
    /// The time of the call: what new time stamps are made from.
    pub now: VolaryTime,
    /// What `connect` answered for this caller; else NULL.
    pub session: *mut c_void,
    /// Beside an error you may put words here, with a NUL at their end.
    pub note: *mut c_char,
    /// How many bytes there are for that.
    pub note_room: usize,
    /// Call it in loops over long work: not 0 if the caller has lost interest; answer
    /// VOLARY_INTERRUPTED then. From the thread of the call.
    pub cancelled: Option<unsafe extern "C" fn(cx: *const VolaryContext) -> i32>,
}

/// An entry of a directory.
#[repr(C)]
#[derive(Debug)]
pub struct VolaryEntry {
    /// The cookie of the place just after this entry. Not 0, and no other entry's.
    pub next: u64,
    /// The node that it leads to.
    pub node: VolaryNode,
    /// VOLARY_FILE to VOLARY_BLOCK_DEVICE.
    pub kind: u32,
    /// Bytes of the name.
    pub name_len: u32,
    /// The name: not empty, "." or "..", without '/' and NUL. Need not end with NUL.
    pub name: *const c_char,
    /// Its attributes if `VolaryList.wants_attr` and they cost nothing; or NULL.
    pub attr: *const VolaryAttr,
}

/// What `readdir` fills. It is yours until you return.
#[repr(C)]
#[derive(Debug)]
pub struct VolaryList {
    /// Bytes of this structure.
    pub size: u32,
    /// Attributes are wanted.
    pub wants_attr: u32,
    /// Adds an entry. 1: it was taken. 0: there is no room; return 0, and you will be asked to
    /// go on with the cookie of the entry before.
    pub add:
        Option<unsafe extern "C" fn(list: *const VolaryList, entry: *const VolaryEntry) -> i32>,
}

/// How full the volume is, in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct VolaryStatFs {
    /// The size of a block.
    pub block_size: u32,
    /// All there is.
    pub size: u64,
    /// Free.
    pub free: u64,
    /// Free to the caller.
    pub available: u64,
    /// How many nodes there can be.
    pub nodes: u64,
    /// How many of these are free.
    pub nodes_free: u64,
}

/// What the volume can do. The same for as long as it is attached.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct VolaryCaps {
    /// VOLARY_CAN_...
    pub can: u32,
    /// Longest name, in bytes.
    pub name_max: u32,
    /// Largest file, in bytes.
    pub size_max: u64,
    /// Steps of the time of last change, in nanoseconds.
    pub time_step: u64,
    /// The root directory.
    pub root: VolaryNode,
    /// Not 0: one call at a time. Else calls come from several threads at once.
    pub serial: u32,
    /// How old a change may get before `sync` is called, in milliseconds; 0: 5000.
    pub commit_ms: u32,
}

/// How to attach.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct VolaryAttach {
    /// Bytes of this structure.
    pub size: u32,
    /// Not 0: refuse changes, and write nothing at all.
    pub read_only: u32,
    /// Bound on the memory for caches, in bytes.
    pub memory: u64,
    /// User of the one who attaches: owns what has no owner of its own.
    pub uid: u32,
    /// Their group.
    pub gid: u32,
    /// Their umask.
    pub umask: u32,
}

/// What the host does for a plug-in. Valid until `release`, from any thread.
#[repr(C)]
#[derive(Debug)]
pub struct VolaryHost {
    /// Bytes of this structure.
    pub size: u32,
    /// VOLARY_PLUGIN_VERSION of the host.
    pub version: u32,
    /// Says something to whoever runs the host: one line, VOLARY_LOG_... Standard output and
    /// standard error lead nowhere.
    pub log: Option<
        unsafe extern "C" fn(host: *const VolaryHost, level: u32, text: *const c_char, len: usize),
    >,
    /// Tells of a change that came from elsewhere than through this table, VOLARY_CHANGED_...
    pub changed: Option<unsafe extern "C" fn(host: *const VolaryHost, what: u32, node: VolaryNode)>,
}

/// A byte-range lock.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct VolaryLock {
    /// Whose.
    pub owner: u64,
    /// From where.
    pub offset: u64,
    /// How far.
    pub len: u64,
    /// VOLARY_LOCK_...
    pub flags: u32,
}

/// A file system, as a table of functions.
///
/// Begin with all zeros; set `version`, `size`, `fs`, and the functions that you have. The first
/// four must be there. Without one of the others the host does what its comment says in
/// parentheses; without words, changes answer VOLARY_READ_ONLY and the rest VOLARY_UNSUPPORTED.
///
/// Functions answer 0 or more, or an error: VOLARY_NOT_FOUND to VOLARY_CORRUPT. They come from
/// several threads at once unless `VolaryCaps.serial` is set. An operation that fails changes
/// nothing. Names have no NUL at their end. What you answer is checked: a name with a slash, a
/// node with the number 0 or more bytes than there was room for are told as errors of your plug-in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct VolaryTable {
    /// VOLARY_PLUGIN_VERSION.
    pub version: u32,
    /// sizeof(VolaryTable).
    pub size: u32,
    /// The first argument of each function.
    pub fs: *mut c_void,

    /// Finds the node that `name` leads to in `dir`. A symlink is not followed.
    pub lookup: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            dir: VolaryNode,
            name: *const c_char,
            name_len: usize,
            out: *mut VolaryAttr,
        ) -> i32,
    >,
    /// Gives the attributes of a node.
    pub getattr: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            node: VolaryNode,
            out: *mut VolaryAttr,
        ) -> i32,
    >,
    /// Lists an open directory from the cookie `from` on (0: from its beginning), without "."
    /// and "..". 1: there are no more; 0: there are.
    pub readdir: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            dir: VolaryOpen,
            from: u64,
            list: *const VolaryList,
        ) -> i32,
    >,
    /// Reads, and answers how many bytes: fewer than `len` only at the end of the file.
    pub read: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            file: VolaryOpen,
            offset: u64,
            buf: *mut c_void,
            len: usize,
        ) -> i64,
    >,

    /// Attaches the volume, once, before all else: the place to open files and to refuse the
    /// configuration, in words. (Nothing to do.)
    pub attach: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            host: *const VolaryHost,
            how: *const VolaryAttach,
        ) -> i32,
    >,
    /// Ends it: the last call. Free `fs` and the table. (Nothing to do.)
    pub release: Option<unsafe extern "C" fn(fs: *mut c_void)>,
    /// Says what the volume can do, once, after `attach`. (It is read, any name of up to 255
    /// bytes, the root is node 1.)
    pub caps: Option<unsafe extern "C" fn(fs: *mut c_void, out: *mut VolaryCaps) -> i32>,
    /// A caller begins: what it puts into `session` comes with each call of the same user,
    /// group and groups, and `disconnect` ends it. (No sessions.)
    pub connect: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            session: *mut *mut c_void,
        ) -> i32,
    >,
    /// Ends a session.
    pub disconnect: Option<unsafe extern "C" fn(fs: *mut c_void, session: *mut c_void)>,
    /// Says how full the volume is. (All zeros.)
    pub statfs: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            out: *mut VolaryStatFs,
        ) -> i32,
    >,
    /// Makes all changes so far durable. (Nothing to do.)
    pub sync: Option<unsafe extern "C" fn(fs: *mut c_void, cx: *const VolaryContext) -> i32>,
    /// Makes all changes durable, for the last time. (As `sync`.)
    pub detach: Option<unsafe extern "C" fn(fs: *mut c_void, cx: *const VolaryContext) -> i32>,
    /// Finds the directory that holds `dir`; the root holds itself. (Known of the root alone.)
    pub parent: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            dir: VolaryNode,
            out: *mut VolaryAttr,
        ) -> i32,
    >,

    /// Makes a regular file and opens it to read and write; VOLARY_CREATE_...
    pub create: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            dir: VolaryNode,
            name: *const c_char,
            name_len: usize,
            how: u32,
            set: *const VolarySetAttr,
            out: *mut VolaryAttr,
            handle: *mut u64,
        ) -> i32,
    >,
    /// Makes a directory.
    pub mkdir: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            dir: VolaryNode,
            name: *const c_char,
            name_len: usize,
            set: *const VolarySetAttr,
            out: *mut VolaryAttr,
        ) -> i32,
    >,
    /// Makes a fifo, socket or device.
    pub mknod: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            dir: VolaryNode,
            name: *const c_char,
            name_len: usize,
            kind: u32,
            rdev: u64,
            set: *const VolarySetAttr,
            out: *mut VolaryAttr,
        ) -> i32,
    >,
    /// Makes a symlink that holds `target`.
    pub symlink: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            dir: VolaryNode,
            name: *const c_char,
            name_len: usize,
            target: *const c_char,
            target_len: usize,
            set: *const VolarySetAttr,
            out: *mut VolaryAttr,
        ) -> i32,
    >,
    /// Gives `node` one more name.
    pub link: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            node: VolaryNode,
            dir: VolaryNode,
            name: *const c_char,
            name_len: usize,
            out: *mut VolaryAttr,
        ) -> i32,
    >,
    /// Takes away a name. The node goes with its last name and last open.
    pub unlink: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            dir: VolaryNode,
            name: *const c_char,
            name_len: usize,
        ) -> i32,
    >,
    /// Removes an empty directory.
    pub rmdir: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            dir: VolaryNode,
            name: *const c_char,
            name_len: usize,
        ) -> i32,
    >,
    /// Moves a name, replacing what the new name led to; VOLARY_RENAME_...
    pub rename: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            from: VolaryNode,
            name: *const c_char,
            name_len: usize,
            to: VolaryNode,
            new_name: *const c_char,
            new_name_len: usize,
            flags: u32,
        ) -> i32,
    >,

    /// Changes attributes, all or none, and gives them as they now are.
    pub setattr: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            node: VolaryNode,
            set: *const VolarySetAttr,
            out: *mut VolaryAttr,
        ) -> i32,
    >,
    /// Answers which part of `want` the caller may do, with VOLARY_CAN_CHECK_ACCESS.
    pub access: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            node: VolaryNode,
            want: u32,
        ) -> i32,
    >,
    /// Gives what a symlink holds, and answers its length; if that is more than `room`, the
    /// host asks again with that much. (VOLARY_INVALID.)
    pub readlink: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            node: VolaryNode,
            buf: *mut c_char,
            room: usize,
        ) -> i64,
    >,
    /// Gives the value of an extended attribute, likewise.
    pub getxattr: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            node: VolaryNode,
            name: *const c_char,
            name_len: usize,
            buf: *mut c_void,
            room: usize,
        ) -> i64,
    >,
    /// Sets an extended attribute.
    pub setxattr: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            node: VolaryNode,
            name: *const c_char,
            name_len: usize,
            value: *const c_void,
            len: usize,
        ) -> i32,
    >,
    /// Gives the names of the extended attributes, each with a NUL after it, likewise.
    pub listxattr: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            node: VolaryNode,
            buf: *mut c_char,
            room: usize,
        ) -> i64,
    >,
    /// Takes away an extended attribute.
    pub removexattr: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            node: VolaryNode,
            name: *const c_char,
            name_len: usize,
        ) -> i32,
    >,
    /// The host dropped `lookups` of the times it was given `node`. A hint: some hosts never
    /// call it. (Nothing to do.)
    pub forget: Option<unsafe extern "C" fn(fs: *mut c_void, node: VolaryNode, lookups: u64)>,

    /// Opens a file or a directory; VOLARY_READ, VOLARY_WRITE or both. A node that is open
    /// outlives its last name. (The handle is 0; directories cannot be opened to write, nor
    /// anything without VOLARY_CAN_WRITE.)
    pub open: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            node: VolaryNode,
            mode: u32,
            handle: *mut u64,
        ) -> i32,
    >,
    /// Writes all of the bytes at `offset`, or, with `append` not 0, at the end as it is at that
    /// moment. Answers the offset just after them.
    pub write: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            file: VolaryOpen,
            offset: u64,
            append: u32,
            data: *const c_void,
            len: usize,
        ) -> i64,
    >,
    /// Makes the file durable: its data and, unless `data_only`, its attributes. (Nothing to do.)
    pub fsync: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            file: VolaryOpen,
            data_only: u32,
        ) -> i32,
    >,
    /// Gives the range room of its own (`hole` 0) or takes it away. The size stays.
    pub allocate: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            file: VolaryOpen,
            offset: u64,
            len: u64,
            hole: u32,
        ) -> i32,
    >,
    /// Takes, gives back or tests a byte-range lock, with VOLARY_CAN_SHARE_LOCKS.
    pub lock: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            file: VolaryOpen,
            lock: *const VolaryLock,
        ) -> i32,
    >,
    /// Anything else, in codes of your own. Gives an answer of at most `room` bytes, and its
    /// length.
    pub ioctl: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            file: VolaryOpen,
            code: u32,
            input: *const c_void,
            len: usize,
            buf: *mut c_void,
            room: usize,
        ) -> i64,
    >,
    /// Ends the open, whatever the answer; an error tells of earlier writes. (Nothing to do.)
    pub close: Option<
        unsafe extern "C" fn(fs: *mut c_void, cx: *const VolaryContext, open: VolaryOpen) -> i32,
    >,
}

/// The type of the one function that a plug-in exports, as `FileSystemCreate`: a new file system
/// called `name`, of `config`, in version `version` of the table. NULL if there is no such name or
/// version. An empty name is the one that you would choose. A library can have several.
pub type VolaryCreate = Option<
    unsafe extern "C" fn(
        name: *const c_char,
        config: *const c_char,
        version: u32,
    ) -> *const VolaryTable,
>;
