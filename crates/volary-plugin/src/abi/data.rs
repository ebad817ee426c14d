//! The arguments and results of functions.

use std::ffi::{c_char, c_void};

/// Identifies a node. `ino` is not 0, and unique among the nodes that exist. With `generation`, it
/// is unique for as long as you can guarantee. Return VOLARY_STALE for a node that is gone.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolaryNode {
    /// The number, as `st_ino` gives it.
    pub ino: u64,
    /// Distinguishes nodes that have had the same number.
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

/// The attributes of a node. Set all of it to zeros first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct VolaryAttr {
    /// The node.
    pub node: VolaryNode,
    /// VOLARY_FILE to VOLARY_BLOCK_DEVICE.
    pub kind: u32,
    /// Permission bits with set-uid, set-gid and sticky: 12 bits.
    pub mode: u32,
    /// The number of its names.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// VOLARY_HAS_...: which of the optional attributes are set.
    pub has: u32,
    /// For devices: major number in the upper half, minor in the lower.
    pub rdev: u64,
    /// Length of the content in bytes.
    pub size: u64,
    /// Bytes that it occupies on the volume.
    pub allocated: u64,
    /// The preferred size of reads and writes; 0 means 4096.
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

/// Attributes to change, or those of a new node. Attributes that are not in `set` stay as they are;
/// for a new node, you choose them.
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
    /// The node.
    pub node: VolaryNode,
    /// What `open` or `create` returned.
    pub handle: u64,
    /// VOLARY_READ, VOLARY_WRITE, or both.
    pub mode: u32,
}

/// Who asks, when, and whether they still want the answer. You may use it until you return.
#[repr(C)]
#[derive(Debug)]
pub struct VolaryContext {
    /// The size of this structure in bytes.
    pub size: u32,
    /// The caller's user.
    pub uid: u32,
    /// The caller's group.
    pub gid: u32,
    /// How many supplementary groups there are.
    pub group_count: u32,
    /// Supplementary groups.
    pub groups: *const u32,
    /// The time of the call, for new time stamps.
    pub now: VolaryTime,
    /// What `connect` returned for this caller; otherwise NULL.
    pub session: *mut c_void,
    /// With an error, you may write a message here. It must end with NUL.
    pub note: *mut c_char,
    /// How many bytes the message may take.
    pub note_room: usize,
    /// Call this in loops over long work. If it returns non-zero, the caller has lost interest:
    /// return VOLARY_INTERRUPTED. Call it only from the thread of the call.
    pub cancelled: Option<unsafe extern "C" fn(cx: *const VolaryContext) -> i32>,
}

/// An entry of a directory.
#[repr(C)]
#[derive(Debug)]
pub struct VolaryEntry {
    /// The cookie of the place just after this entry. It is not 0, and differs from those of all
    /// other entries.
    pub next: u64,
    /// The node it leads to.
    pub node: VolaryNode,
    /// VOLARY_FILE to VOLARY_BLOCK_DEVICE.
    pub kind: u32,
    /// The length of the name in bytes.
    pub name_len: u32,
    /// The name: not empty, "." or "..", and without '/' and NUL. It need not end with NUL.
    pub name: *const c_char,
    /// The node's attributes if `VolaryList.wants_attr` is set and they cost nothing; otherwise
    /// NULL.
    pub attr: *const VolaryAttr,
}

/// The list that `readdir` fills. You may use it until you return.
#[repr(C)]
#[derive(Debug)]
pub struct VolaryList {
    /// The size of this structure in bytes.
    pub size: u32,
    /// Not 0: attributes are wanted.
    pub wants_attr: u32,
    /// Adds an entry, and returns 1. Returns 0 if there is no room: return 0 too. You will be
    /// called again with the cookie of the entry before.
    pub add:
        Option<unsafe extern "C" fn(list: *const VolaryList, entry: *const VolaryEntry) -> i32>,
}

/// How full the volume is, in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct VolaryStatFs {
    /// The size of a block.
    pub block_size: u32,
    /// The size of the volume.
    pub size: u64,
    /// Free space.
    pub free: u64,
    /// Free space for the caller.
    pub available: u64,
    /// How many nodes the volume can have.
    pub nodes: u64,
    /// How many of these are free.
    pub nodes_free: u64,
}

/// What the volume can do. It must not change while the volume is attached.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct VolaryCaps {
    /// VOLARY_CAN_...
    pub can: u32,
    /// Longest name, in bytes.
    pub name_max: u32,
    /// Largest file, in bytes.
    pub size_max: u64,
    /// Resolution of the time of last change, in nanoseconds.
    pub time_step: u64,
    /// The root directory.
    pub root: VolaryNode,
    /// Not 0: the host makes one call at a time. Otherwise calls come from several threads at once.
    pub serial: u32,
    /// The age at which a change must be made durable by `sync`, in milliseconds; 0 means 5000.
    pub commit_ms: u32,
}

/// How to attach.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct VolaryAttach {
    /// The size of this structure in bytes.
    pub size: u32,
    /// Not 0: refuse changes, and write nothing at all.
    pub read_only: u32,
    /// Bound on the memory for caches, in bytes.
    pub memory: u64,
    /// The attaching user, who owns everything that has no owner of its own.
    pub uid: u32,
    /// The attaching user's group.
    pub gid: u32,
    /// The attaching user's umask.
    pub umask: u32,
}

/// Functions of the host for a plug-in. They may be called until `release`, from any thread.
#[repr(C)]
#[derive(Debug)]
pub struct VolaryHost {
    /// The size of this structure in bytes.
    pub size: u32,
    /// VOLARY_PLUGIN_VERSION of the host.
    pub version: u32,
    /// Logs one line for whoever runs the host, with VOLARY_LOG_... as its level. Standard output
    /// and standard error are discarded.
    pub log: Option<
        unsafe extern "C" fn(host: *const VolaryHost, level: u32, text: *const c_char, len: usize),
    >,
    /// Reports a change that was not made through this table, VOLARY_CHANGED_...
    pub changed: Option<unsafe extern "C" fn(host: *const VolaryHost, what: u32, node: VolaryNode)>,
}

/// A byte-range lock.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct VolaryLock {
    /// The owner of the lock.
    pub owner: u64,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub len: u64,
    /// VOLARY_LOCK_...
    pub flags: u32,
}
