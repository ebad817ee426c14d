//! The table, and the function that returns one.

use super::data::{
    VolaryAttach, VolaryAttr, VolaryCaps, VolaryContext, VolaryHost, VolaryList, VolaryLock,
    VolaryNode, VolaryOpen, VolarySetAttr, VolaryStatFs,
};
use std::ffi::{c_char, c_void};

/// A file system, as a table of functions.
///
/// Set all of it to zeros first; then set `version`, `size`, `fs`, and the functions that you have.
/// The first four functions are required. For a missing function, the host does what its comment
/// says after "If missing". If it says nothing, changes return VOLARY_READ_ONLY and the rest
/// VOLARY_UNSUPPORTED.
///
/// Functions return 0 or more, or an error: VOLARY_NOT_FOUND to VOLARY_CORRUPT. Calls come from
/// several threads at once unless `VolaryCaps.serial` is set. An operation that fails must change
/// nothing. Names do not end with NUL. The host checks your results. It reports a name with a
/// slash, a node with the number 0, or more bytes than there was room for as errors of your
/// plug-in.
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
    /// Returns the attributes of a node.
    pub getattr: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            node: VolaryNode,
            out: *mut VolaryAttr,
        ) -> i32,
    >,
    /// Lists an open directory from the cookie `from` on (0: from its beginning), without "." and
    /// "..". Returns 1 if these are the last entries, otherwise 0.
    pub readdir: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            dir: VolaryOpen,
            from: u64,
            list: *const VolaryList,
        ) -> i32,
    >,
    /// Reads, and returns the number of bytes: less than `len` only at the end of the file.
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

    /// Attaches the volume; called once, before all else. Open files here, and refuse a bad
    /// configuration with a message. If missing: nothing to do.
    pub attach: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            host: *const VolaryHost,
            how: *const VolaryAttach,
        ) -> i32,
    >,
    /// Frees `fs` and the table: the last call. If missing: nothing to do.
    pub release: Option<unsafe extern "C" fn(fs: *mut c_void)>,
    /// Returns what the volume can do; called once, after `attach`.
    /// If missing: it is read-only, takes any name of up to 255 bytes, and the root is node 1.
    pub caps: Option<unsafe extern "C" fn(fs: *mut c_void, out: *mut VolaryCaps) -> i32>,
    /// Begins a caller's session. The value that it puts into `session` is passed with each call of
    /// the same user, group and supplementary groups, until `disconnect`. If missing: no sessions.
    pub connect: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            session: *mut *mut c_void,
        ) -> i32,
    >,
    /// Ends a session.
    pub disconnect: Option<unsafe extern "C" fn(fs: *mut c_void, session: *mut c_void)>,
    /// Returns how full the volume is. If missing: a full one of one block.
    pub statfs: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            out: *mut VolaryStatFs,
        ) -> i32,
    >,
    /// Makes all changes so far durable. If missing: nothing to do.
    pub sync: Option<unsafe extern "C" fn(fs: *mut c_void, cx: *const VolaryContext) -> i32>,
    /// Makes all changes durable, for the last time. If missing: as `sync`.
    pub detach: Option<unsafe extern "C" fn(fs: *mut c_void, cx: *const VolaryContext) -> i32>,
    /// Returns the parent directory of `dir`; the root is its own parent.
    /// If missing: the host knows the root's only.
    pub parent: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            dir: VolaryNode,
            out: *mut VolaryAttr,
        ) -> i32,
    >,

    /// Makes a regular file and opens it for reading and writing; VOLARY_CREATE_...
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
    /// Makes a symlink to `target`.
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
    /// Gives `node` another name.
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
    /// Removes a name. The node is freed with its last name and last open.
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
    /// Moves a name, and replaces the node that the new name led to; VOLARY_RENAME_...
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

    /// Changes attributes, all or none, and returns the node's attributes after the change.
    pub setattr: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            node: VolaryNode,
            set: *const VolarySetAttr,
            out: *mut VolaryAttr,
        ) -> i32,
    >,
    /// Returns which part of `want` the caller may do, with VOLARY_CAN_CHECK_ACCESS.
    pub access: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            node: VolaryNode,
            want: u32,
        ) -> i32,
    >,
    /// Writes at most `room` bytes of a symlink's target, and returns the target's length. If that
    /// is more than `room`, the host asks again with room for all of it.
    /// If missing: VOLARY_INVALID.
    pub readlink: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            node: VolaryNode,
            buf: *mut c_char,
            room: usize,
        ) -> i64,
    >,
    /// Returns the value of an extended attribute, in the same way as `readlink`.
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
    /// Returns the names of the extended attributes, each followed by a NUL, in the same way as
    /// `readlink`.
    pub listxattr: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            node: VolaryNode,
            buf: *mut c_char,
            room: usize,
        ) -> i64,
    >,
    /// Removes an extended attribute.
    pub removexattr: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            node: VolaryNode,
            name: *const c_char,
            name_len: usize,
        ) -> i32,
    >,
    /// Hints that the host no longer uses `node`, and drops `lookups` of the references it was
    /// given. Some hosts never call this. If missing: nothing to do.
    pub forget: Option<unsafe extern "C" fn(fs: *mut c_void, node: VolaryNode, lookups: u64)>,

    /// Opens a file or a directory; VOLARY_READ, VOLARY_WRITE or both. An open node outlives its
    /// last name.
    /// If missing: the handle is 0. Directories cannot be opened for writing, and nothing can
    /// without VOLARY_CAN_WRITE.
    pub open: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            node: VolaryNode,
            mode: u32,
            handle: *mut u64,
        ) -> i32,
    >,
    /// Writes all bytes at `offset`, or, if `append` is not 0, at the current end of the file.
    /// Returns the offset just after them.
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
    /// Makes the file durable: its data and, unless `data_only`, its attributes.
    /// If missing: nothing to do.
    pub fsync: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            file: VolaryOpen,
            data_only: u32,
        ) -> i32,
    >,
    /// Reserves space for the range (`hole` 0), or frees it and makes the range a hole. The size
    /// stays.
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
    /// Takes, releases or tests a byte-range lock, with VOLARY_CAN_SHARE_LOCKS.
    pub lock: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            file: VolaryOpen,
            lock: *const VolaryLock,
        ) -> i32,
    >,
    /// Does a format-specific operation, in codes of your own. Writes an answer of at most `room`
    /// bytes, and returns its length.
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
    /// Ends the open, even if it returns an error, which is one of earlier writes.
    /// If missing: nothing to do.
    pub close: Option<
        unsafe extern "C" fn(fs: *mut c_void, cx: *const VolaryContext, open: VolaryOpen) -> i32,
    >,
}

/// The type of the one function that a plug-in exports, as `FileSystemCreate`. It returns a new
/// file system called `name`, configured by `config`, in version `version` of the table. It returns
/// NULL for an unknown name or version. An empty name stands for your default one. A library can
/// have several.
pub type VolaryCreate = Option<
    unsafe extern "C" fn(
        name: *const c_char,
        config: *const c_char,
        version: u32,
    ) -> *const VolaryTable,
>;
