//! What functions are given, and what they answer.

use std::ffi::{c_char, c_void};

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
    /// How many supplementary groups there are.
    pub group_count: u32,
    /// Supplementary groups.
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
