//! The table of drivers that are asked by paths, and the function that gives one.

use super::data::{
    VolaryAttach, VolaryAttr, VolaryCaps, VolaryContext, VolaryHost, VolarySetAttr, VolaryStatFs,
};
use std::ffi::{c_char, c_void};

/// What `readdir` of a path table fills. It is yours until you return.
#[repr(C)]
#[derive(Debug)]
pub struct VolaryPathList {
    /// Bytes of this structure.
    pub size: u32,
    /// Adds an entry: a name that ends with NUL, and VOLARY_FILE to VOLARY_BLOCK_DEVICE, or 0 if
    /// you do not know. "." and ".." may be given, and are left out. 1: it was taken. 0: no more
    /// are taken; return.
    pub add: Option<
        unsafe extern "C" fn(list: *const VolaryPathList, name: *const c_char, kind: u32) -> i32,
    >,
}

/// A file system that is asked by paths, as a table of functions: for drivers that have no node
/// ids. The host keeps these, so that a directory that is renamed stays what it is for all that
/// use it, and a file that is removed can be read and written until its last open ends.
///
/// Begin with all zeros; set `version`, `size`, `fs`, and the functions that you have. The first
/// three must be there. What `VolaryTable` says of answers, threads and missing functions holds
/// here too. A path begins with '/', ends with NUL, and has no "." or ".." in it; "/" is the root.
/// No path goes through a symlink.
///
/// The host has seen to it that the parent is a directory, that a rename puts no directory into
/// itself, and that what `unlink`, `rmdir` and `rename` take away is of the right kind. While one
/// of these is at work, no other call is. A file that is open is not unlinked but renamed to
/// /.volary-removed-..., and unlinked when its last open ends, or as the volume is attached again;
/// without `rename` it is VOLARY_BUSY. So one host at a time may attach a volume for changes.
///
/// Of `VolaryCaps`, `root` is not looked at, VOLARY_CAN_CASE and VOLARY_CAN_KEEP_CASE must be set,
/// and ids and cookies are never stable, nor are there locks of others. `VolaryAttr.node` may be
/// 0; otherwise it tells the host that what a path leads to is another thing than it was. With
/// VOLARY_CAN_HARD_LINKS it must tell, by being the same, which paths lead to one file. What
/// `VolaryHost.changed` is told means VOLARY_CHANGED_ALL.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct VolaryPathTable {
    /// VOLARY_PLUGIN_VERSION.
    pub version: u32,
    /// sizeof(VolaryPathTable).
    pub size: u32,
    /// The first argument of each function.
    pub fs: *mut c_void,

    /// Gives the attributes of what a path leads to. A symlink is not followed.
    pub getattr: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            out: *mut VolaryAttr,
        ) -> i32,
    >,
    /// Lists all of a directory.
    pub readdir: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            list: *const VolaryPathList,
        ) -> i32,
    >,
    /// Reads, and answers how many bytes: fewer than `len` only at the end of the file.
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

    /// As of `VolaryTable`. (Nothing to do.)
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
    /// bytes.)
    pub caps: Option<unsafe extern "C" fn(fs: *mut c_void, out: *mut VolaryCaps) -> i32>,
    /// A caller begins, as of `VolaryTable`. (No sessions.)
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

    /// Makes a regular file and opens it to read and write. VOLARY_EXISTS if the name is taken.
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
    /// Makes a symlink that holds `target`.
    pub symlink: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            target: *const c_char,
            set: *const VolarySetAttr,
        ) -> i32,
    >,
    /// Gives the file at `path` one more name.
    pub link: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            new_path: *const c_char,
        ) -> i32,
    >,
    /// Takes away a name of a file that nobody has open, or that has another.
    pub unlink: Option<
        unsafe extern "C" fn(fs: *mut c_void, cx: *const VolaryContext, path: *const c_char) -> i32,
    >,
    /// Removes an empty directory, which may be open.
    pub rmdir: Option<
        unsafe extern "C" fn(fs: *mut c_void, cx: *const VolaryContext, path: *const c_char) -> i32,
    >,
    /// Moves a name, replacing what the new path leads to: a file, or an empty directory by a
    /// directory. `flags` is VOLARY_RENAME_REPLACE, or with VOLARY_CAN_SWAP VOLARY_RENAME_SWAP.
    /// Handles stay what they are.
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
    /// Answers which part of `want` the caller may do, with VOLARY_CAN_CHECK_ACCESS.
    pub access: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            want: u32,
        ) -> i32,
    >,
    /// Writes at most `room` bytes of a symlink's target, and returns the target's length. If that
    /// is more than `room`, the host asks again with room for all of it. (VOLARY_INVALID.)
    pub readlink: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            buf: *mut c_char,
            room: usize,
        ) -> i64,
    >,
    /// Gives the value of an extended attribute, likewise. Here `name` ends with NUL.
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
    /// Gives the names of the extended attributes, each with a NUL after it, likewise.
    pub listxattr: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            buf: *mut c_char,
            room: usize,
        ) -> i64,
    >,
    /// Takes away an extended attribute.
    pub removexattr: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            name: *const c_char,
        ) -> i32,
    >,

    /// Opens a regular file; VOLARY_READ, VOLARY_WRITE or both. `handle` is yours, and comes with
    /// each call about this open. (The handle is 0.)
    pub open: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            mode: u32,
            handle: *mut u64,
        ) -> i32,
    >,
    /// Writes all of the bytes at `offset`. Two writes at the end of a file never come at once.
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
    /// Makes the file durable: its data and, unless `data_only`, its attributes. (Nothing to do.)
    pub fsync: Option<
        unsafe extern "C" fn(
            fs: *mut c_void,
            cx: *const VolaryContext,
            path: *const c_char,
            handle: u64,
            data_only: u32,
        ) -> i32,
    >,
    /// Gives the range room of its own (`hole` 0) or takes it away. The size stays.
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
    /// Ends an open of `open` or `create`, whatever the answer. `path` is NULL if others took the
    /// file away. (Nothing to do.)
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
/// is as of `VolaryCreate`; a library may export both, which is then asked first.
pub type VolaryCreatePaths = Option<
    unsafe extern "C" fn(
        name: *const c_char,
        config: *const c_char,
        version: u32,
    ) -> *const VolaryPathTable,
>;
