//! The table of drivers that work on paths, and the function that returns one.

use super::data::{
    VolaryAttach, VolaryAttr, VolaryCaps, VolaryContext, VolaryHost, VolarySetAttr, VolaryStatFs,
};
use std::ffi::{c_char, c_void};

/// The list that `readdir` of a path table fills. You may use it until you return.
#[repr(C)]
#[derive(Debug)]
pub struct VolaryPathList {
    /// The size of this structure in bytes.
    pub size: u32,
    /// Adds an entry: a name that ends with NUL, and its kind, VOLARY_FILE to VOLARY_BLOCK_DEVICE,
    /// or 0 if you do not know it. You may add "." and "..", which are ignored. Returns 1 if the
    /// entry was taken. Returns 0 if no more are taken: return.
    pub add: Option<
        unsafe extern "C" fn(list: *const VolaryPathList, name: *const c_char, kind: u32) -> i32,
    >,
}

/// A file system that works on paths, as a table of functions: for drivers without node ids. The
/// host manages these. So a renamed directory stays the same node for all who use it, and a removed
/// file can be read and written until its last open ends.
///
/// Set all of it to zeros first; then set `version`, `size`, `fs`, and the functions that you have.
/// The first three functions are required. What `VolaryTable` says of results, threads and missing
/// functions holds here too. A path begins with '/', ends with NUL, and has no "." or ".." in it;
/// "/" is the root. No path goes through a symlink.
///
/// The host makes sure that the parent is a directory, and that a rename moves no directory into
/// itself. It also checks the kinds of the nodes that `unlink`, `rmdir` and `rename` remove. While
/// one of these runs, no other call does. The host does not unlink an open file, but renames it to
/// /.volary-removed-... It unlinks that name when the last open ends, or when the volume is
/// attached again. Without `rename`, an open file is VOLARY_BUSY. So only one host at a time may
/// attach a volume for changes.
///
/// In `VolaryCaps`, `root` is ignored, and VOLARY_CAN_CASE and VOLARY_CAN_KEEP_CASE must be set.
/// Ids and cookies are never stable, and locks are never shared. `VolaryAttr.node` may be 0.
/// Otherwise a new value tells the host that a path now leads to another node. With
/// VOLARY_CAN_HARD_LINKS, paths of one file must have the same value. Every call of
/// `VolaryHost.changed` counts as VOLARY_CHANGED_ALL.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct VolaryPathTable {
    /// VOLARY_PLUGIN_VERSION.
    pub version: u32,
    /// sizeof(VolaryPathTable).
    pub size: u32,
    /// The first argument of each function.
    pub fs: *mut c_void,

    /// Returns the attributes of the node at a path. A symlink is not followed.
    pub getattr: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            out: *mut VolaryAttr,
        ) -> i32,
    >,
    /// Lists a whole directory.
    pub readdir: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            list: *const VolaryPathList,
        ) -> i32,
    >,
    /// Reads, and returns the number of bytes: less than `len` only at the end of the file.
    pub read: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            handle: u64,
            offset: u64,
            buf: *mut c_void,
            len: usize,
        ) -> i64,
    >,

    /// As in `VolaryTable`. If missing: nothing to do.
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
    /// If missing: it is read-only, and takes any name of up to 255 bytes.
    pub caps: Option<unsafe extern "C" fn(fs: *mut c_void, out: *mut VolaryCaps) -> i32>,
    /// Begins a caller's session, as in `VolaryTable`. If missing: no sessions.
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

    /// Makes a regular file and opens it for reading and writing. Returns VOLARY_EXISTS if the name
    /// is taken.
    pub create: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            set: *const VolarySetAttr,
            handle: *mut u64,
        ) -> i32,
    >,
    /// Makes a directory.
    pub mkdir: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            set: *const VolarySetAttr,
        ) -> i32,
    >,
    /// Makes a fifo, socket or device.
    pub mknod: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            kind: u32,
            rdev: u64,
            set: *const VolarySetAttr,
        ) -> i32,
    >,
    /// Makes a symlink to `target`.
    pub symlink: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            target: *const c_char,
            set: *const VolarySetAttr,
        ) -> i32,
    >,
    /// Gives the file at `path` another name.
    pub link: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            new_path: *const c_char,
        ) -> i32,
    >,
    /// Removes a name of a file that is not open, or that has another name.
    pub unlink: Option<
        unsafe extern "C" fn(fs: *mut c_void, cx: *const VolaryContext, path: *const c_char) -> i32,
    >,
    /// Removes an empty directory, which may be open.
    pub rmdir: Option<
        unsafe extern "C" fn(fs: *mut c_void, cx: *const VolaryContext, path: *const c_char) -> i32,
    >,
    /// Moves a name, and replaces the node at the new path: a file, or an empty directory by a
    /// directory. `flags` is VOLARY_RENAME_REPLACE, or with VOLARY_CAN_SWAP VOLARY_RENAME_SWAP.
    /// Handles stay valid.
    pub rename: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            new_path: *const c_char,
            flags: u32,
        ) -> i32,
    >,

    /// Changes attributes, all or none.
    pub setattr: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            set: *const VolarySetAttr,
        ) -> i32,
    >,
    /// Returns which part of `want` the caller may do, with VOLARY_CAN_CHECK_ACCESS.
    pub access: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
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
            path: *const c_char,
            buf: *mut c_char,
            room: usize,
        ) -> i64,
    >,
    /// Writes at most `room` bytes of the value of the extended attribute `name`, which ends with
    /// NUL. Returns the value's length, as `readlink` does.
    pub getxattr: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            name: *const c_char,
            buf: *mut c_void,
            room: usize,
        ) -> i64,
    >,
    /// Sets an extended attribute.
    pub setxattr: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            name: *const c_char,
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
            path: *const c_char,
            buf: *mut c_char,
            room: usize,
        ) -> i64,
    >,
    /// Removes an extended attribute.
    pub removexattr: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            name: *const c_char,
        ) -> i32,
    >,

    /// Opens a regular file; VOLARY_READ, VOLARY_WRITE or both. You choose `handle`, which is
    /// passed with each call for this open. If missing: the handle is 0.
    pub open: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            mode: u32,
            handle: *mut u64,
        ) -> i32,
    >,
    /// Writes all bytes at `offset`. Two writes at the end of a file never run at once.
    pub write: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            handle: u64,
            offset: u64,
            data: *const c_void,
            len: usize,
        ) -> i32,
    >,
    /// Makes the file durable: its data and, unless `data_only`, its attributes.
    /// If missing: nothing to do.
    pub fsync: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            handle: u64,
            data_only: u32,
        ) -> i32,
    >,
    /// Reserves space for the range (`hole` 0), or frees it and makes the range a hole. The size
    /// stays.
    pub allocate: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            handle: u64,
            offset: u64,
            len: u64,
            hole: u32,
        ) -> i32,
    >,
    /// Ends an open of `open` or `create`, even if it returns an error. `path` is NULL if others
    /// removed the file. If missing: nothing to do.
    pub close: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            handle: u64,
        ) -> i32,
    >,
}

/// The type of the function that a plug-in with paths exports, as `FileSystemCreatePaths`. All else
/// is as for `VolaryCreate`. If a library exports both, that one is called first.
pub type VolaryCreatePaths = Option<
    unsafe extern "C" fn(
        name: *const c_char,
        config: *const c_char,
        version: u32,
    ) -> *const VolaryPathTable,
>;
