//! The table, and the function that gives one.

use super::data::{
    VolaryAttach, VolaryAttr, VolaryCaps, VolaryContext, VolaryHost, VolaryList, VolaryLock,
    VolaryNode, VolaryOpen, VolarySetAttr, VolaryStatFs,
};
use std::ffi::{c_char, c_void};

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
    /// Writes at most `room` bytes of a symlink's target, and returns the target's length. If that
    /// is more than `room`, the host asks again with room for all of it. (VOLARY_INVALID.)
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
