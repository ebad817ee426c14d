//! [`FileSystem`]: what a driver provides, and all that a session uses.

#![expect(
    unused_variables,
    reason = "the default bodies refuse without a look at their arguments"
)]

use crate::{
    Access, Attr, Caps, Cookie, Cred, Ctx, DirBuf, Extent, FileKind, Finding, Kind, Name, NodeId,
    OpenId, QuotaOf, QuotaReport, Result, SetAttr, SetQuota,
};
use std::sync::Arc;
use std::time::Duration;

/// The default of [`FileSystem::commit_time`].
pub const COMMIT_TIME: Duration = Duration::from_secs(5);

/// A shared file system: a driver, or a driver under layers.
pub type Fs = Arc<dyn FileSystem>;

/// An attached volume, as a set of operations on nodes.
///
/// Drivers implement this trait. Layers implement [`Layer`](crate::Layer), which implements this
/// trait for them. Only the session calls it. It is object-safe and synchronous: an operation
/// blocks its thread until it is done.
///
/// # What the caller guarantees
///
/// Before any call, the session checks that names are legal for the volume ([`Caps::name_max`]),
/// and that `dir` is a directory. It also checks that `cx.cred` may do this (unless
/// [`Caps::CHECKS_ACCESS`]), and that no lock, share mode or lease conflicts. A driver need not
/// check these again. But it must survive calls that break them, as node ids and opens come from
/// outside.
///
/// # What the driver guarantees
///
/// - **Order.** Operations run at the same time. Each takes effect at one
///   moment between its call and its return.
/// - **Atomicity.** An operation that fails changes nothing. After a crash,
///   each operation has happened or has not, for the drivers that have
///   [`Caps::CRASH_SAFE`].
/// - **Memory.** What a driver keeps has a bound, [`Attach::memory`](crate::Attach::memory),
///   whatever the volume holds and however often it is asked.
/// - **Trust.** Every byte read from the device may be wrong. A contradiction
///   is answered with [`Corrupt`](crate::Corrupt), never with a panic.
///
/// # How each operation is documented
///
/// One sentence; then `# Errors`: the kinds special to the operation, in the order in which they
/// are checked. These are not repeated: any operation may answer `Stale` for a node or open that is
/// gone, `Io`, `Corrupt`, `Interrupted`. One that changes something may answer `ReadOnly`,
/// `NoSpace`, `Quota`.
///
/// An operation has a default body if a volume can lack it. The default answers `ReadOnly` for
/// changes and `Unsupported` for the rest.
pub trait FileSystem: Send + Sync {
    // ---- The volume ----

    /// Returns what this volume can do. Constant while it is attached.
    fn caps(&self) -> Caps;

    /// Returns the root directory.
    fn root(&self) -> NodeId;

    /// Maps a caller's credentials to those that they have on this volume; `None` leaves them as
    /// they are. The session asks once, and checks access and makes nodes with the result. A pure
    /// function: its answers stay the same while the volume is attached.
    fn caller(&self, cred: &Cred) -> Option<Cred> {
        None
    }

    /// Returns how full the volume is. What it holds is in use, as [`StatFs`] says.
    fn statfs(&self, cx: &Ctx<'_>) -> Result<StatFs>;

    /// Makes all changes so far durable.
    fn sync(&self, cx: &Ctx<'_>) -> Result<()> {
        Ok(())
    }

    /// Ends the attachment: makes all changes durable, marks the volume as cleanly detached, and
    /// closes all opens. Later calls answer `Stale`; a second detach does nothing. A driver that is
    /// dropped without a detach leaves the volume as a power cut would.
    fn detach(&self, cx: &Ctx<'_>) -> Result<()> {
        self.sync(cx)
    }

    /// Tells `sink`, from now on, of changes that were not made through this trait: by another NFS
    /// client, or a process on the host. The session itself reports changes made through the trait.
    fn watch(&self, sink: Arc<dyn ChangeSink>) -> Result<Watch> {
        Err(Kind::Unsupported.into())
    }

    /// Returns the quota of one user or group: of the lowest number, `from` or above, that has used
    /// anything or has limits.
    ///
    /// # Errors
    /// `Unsupported` if the volume cannot have quotas; `NotFound` if it has none of this kind.
    fn quota(&self, cx: &Ctx<'_>, of: QuotaOf, from: u32) -> Result<QuotaReport> {
        Err(Kind::Unsupported.into())
    }

    /// Changes quotas. Operations that would exceed a limit answer `Quota` from then on.
    ///
    /// # Errors
    /// `Unsupported` if the volume cannot have quotas; `NotFound` for limits and times of quotas
    /// that are off; `Invalid` for limits of root, who has none, and for times if the volume keeps
    /// none; `TooBig` for what the format has no room for.
    fn set_quota(&self, cx: &Ctx<'_>, of: QuotaOf, set: &SetQuota) -> Result<()> {
        Err(Kind::Unsupported.into())
    }

    /// Returns the age at which a change must be made durable, unless the user sets another.
    /// Whoever shares the volume sees to it. Constant while the volume is attached.
    fn commit_time(&self) -> Duration {
        COMMIT_TIME
    }

    /// Returns why the volume takes no changes, if the user could do something about that: it was not
    /// cleanly left, say. The words follow a colon. Constant while the volume is attached.
    fn why_read_only(&self) -> Option<String> {
        None
    }

    /// Takes the driver's findings since the last call: faults it met in passing, and users who
    /// exceeded a soft limit. The calls that met them were answered all the same. Each finding is
    /// returned once. Cheap if there are none. Works after [`detach`](Self::detach) too.
    fn findings(&self) -> Vec<Finding> {
        Vec::new()
    }

    // ---- Names ----

    /// Returns the node that `name` leads to in `dir`. A symlink is not followed.
    ///
    /// # Errors
    /// `NotFound`.
    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry>;

    /// Returns the parent directory of `dir`; the root is its own parent. NFS asks for this with
    /// `..`, and an overlay needs it to copy up.
    ///
    /// # Errors
    /// `NotDir`.
    fn parent(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Entry>;

    /// Fills `out` with entries of the open directory, starting at `from`, without `.` and `..`.
    /// Returns true if these are the last.
    ///
    /// An entry that exists from the first call to the last is given once. One that comes or goes
    /// meanwhile is given once or not at all. The driver holds no lock between calls.
    ///
    /// # Errors
    /// `NotDir`; `Invalid` for a cookie that was never given out.
    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool>;

    /// Makes a regular file and opens it, as one step.
    ///
    /// # Errors
    /// `Exists` if `how` is [`Create::New`] and the name is taken; `IsDir`; `Invalid` if the name
    /// leads to something that is neither file nor directory, and for a name that the format cannot
    /// keep (without [`Caps::ANY_NAME`]).
    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        Err(Kind::ReadOnly.into())
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// `Exists`, `TooManyLinks`.
    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        Err(Kind::ReadOnly.into())
    }

    /// Makes a fifo, socket or device node; `rdev` counts for devices only.
    ///
    /// # Errors
    /// `Unsupported` without [`Caps::DEVICES`]; `Exists`; `Unsupported` for a device number that
    /// does not fit the format.
    fn mknod(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        kind: FileKind,
        rdev: u64,
        set: &SetAttr,
    ) -> Result<Entry> {
        Err(Kind::ReadOnly.into())
    }

    /// Makes a symlink to `target`, which need not exist.
    ///
    /// # Errors
    /// `Unsupported` without [`Caps::SYMLINKS`]; `Exists`; `NameTooLong` for
    /// the target.
    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        Err(Kind::ReadOnly.into())
    }

    /// Gives `node` one more name.
    ///
    /// # Errors
    /// `Unsupported` without [`Caps::HARD_LINKS`]; `IsDir`, `Exists`,
    /// `TooManyLinks`.
    fn link(&self, cx: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        Err(Kind::ReadOnly.into())
    }

    /// Removes a name. The node is freed with its last name and last open.
    ///
    /// # Errors
    /// `NotFound`, `IsDir`.
    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        Err(Kind::ReadOnly.into())
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NotFound`, `NotDir`, `NotEmpty`.
    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        Err(Kind::ReadOnly.into())
    }

    /// Moves a name, and replaces the node that the new name led to. The moved node and its opens
    /// stay valid. The replaced node is treated as by `unlink` or `rmdir`.
    ///
    /// # Errors
    /// `Unsupported` for [`RenameFlags::SWAP`] without [`Caps::SWAP`]; `NotFound`, for a swap of
    /// either name; `Invalid` if a directory would go into itself; with [`RenameFlags::KEEP`],
    /// `Exists`; `IsDir`, `NotDir`, `NotEmpty` for the node that would be replaced. If both names
    /// lead to one node, nothing happens, except that a name which differs in case only is stored
    /// as now given.
    fn rename(
        &self,
        cx: &Ctx<'_>,
        from: NodeId,
        name: Name<'_>,
        to: NodeId,
        new_name: Name<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        Err(Kind::ReadOnly.into())
    }

    // ---- Nodes ----

    /// Returns the node's attributes.
    fn getattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Attr>;

    /// Changes attributes, all or none, and returns the node's attributes after the change.
    ///
    /// # Errors
    /// `TooBig`; `Unsupported` for an attribute that the format cannot keep.
    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        Err(Kind::ReadOnly.into())
    }

    /// Returns the part of `want` that `cx.cred` may do. Asked only of a volume with
    /// [`Caps::CHECKS_ACCESS`]; for others the session decides by mode and owner.
    fn access(&self, cx: &Ctx<'_>, node: NodeId, want: Access) -> Result<Access> {
        Err(Kind::Unsupported.into())
    }

    /// Returns a symlink's target.
    ///
    /// # Errors
    /// `Invalid` if the node is not a symlink.
    fn readlink(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        Err(Kind::Invalid.into())
    }

    /// Returns the value of an extended attribute.
    ///
    /// # Errors
    /// `NoXattr`.
    fn getxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        Err(Kind::Unsupported.into())
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// `TooBig`.
    fn setxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8], value: &[u8]) -> Result<()> {
        Err(Kind::Unsupported.into())
    }

    /// Returns the names of the extended attributes.
    fn listxattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Vec<Vec<u8>>> {
        Err(Kind::Unsupported.into())
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// `NoXattr`.
    fn removexattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<()> {
        Err(Kind::Unsupported.into())
    }

    /// Hints that the caller no longer uses `node`, and drops `lookups` of the references it was
    /// given. Callers that do not count (NFS) never call this. So a driver that keeps a table of
    /// nodes must bound it anyway, and may answer `Stale`.
    fn forget(&self, node: NodeId, lookups: u64) {}

    /// Hints that the caller will soon need `what` of these nodes; only their `ino` counts. The
    /// driver may read it now, in the order of the disk. Errors are left to the call that needs the
    /// data. Returns false if the driver never reads ahead, so that callers need not ask again.
    fn prefetch(&self, cx: &Ctx<'_>, nodes: &[NodeId], what: Prefetch) -> bool {
        false
    }

    // ---- Opens ----

    /// Opens a file or a directory. A node that is open outlives its last name.
    ///
    /// # Errors
    /// `ReadOnly` for [`Mode::Write`]; `IsDir` for writing a directory.
    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId>;

    /// Reads at byte `offset` and returns the number of bytes read: less than asked for only at the
    /// end of the file. It takes memory for what is asked for, not for the whole file.
    ///
    /// # Errors
    /// `IsDir`.
    fn read(&self, cx: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize>;

    /// Hints that the caller will read the range soon. The driver may begin to fetch it, without
    /// waiting for it. Errors are left to the read.
    fn will_read(&self, cx: &Ctx<'_>, open: OpenId, offset: u64, len: u64) {}

    /// Reads the beginnings of files in a batch. [`Whole::read`] holds what `open`, `read` from
    /// byte 0, `getattr` and `close` would return; for `None` the caller has to use these. Returns
    /// false, and reads nothing, if the driver has no batches. A call without files only asks for
    /// that.
    fn read_whole(&self, cx: &Ctx<'_>, files: &mut [Whole<'_>]) -> bool {
        false
    }

    /// Writes all of `data` at byte `offset`; without an offset, at the current end of the file.
    /// Returns the offset just after the data.
    ///
    /// # Errors
    /// `Invalid` for an open that is for reading only, if the volume can tell; `TooBig`.
    fn write(&self, cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        Err(Kind::ReadOnly.into())
    }

    /// Makes the file's data durable and, unless `data_only`, its attributes.
    fn fsync(&self, cx: &Ctx<'_>, open: OpenId, data_only: bool) -> Result<()> {
        Ok(())
    }

    /// Reserves space for the range (`hole` false), or frees it and makes the range a hole (`hole`
    /// true). The size stays.
    fn allocate(
        &self,
        cx: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        hole: bool,
    ) -> Result<()> {
        Err(Kind::Unsupported.into())
    }

    /// Adds the range's extents to `out`, in order and without gaps, for reading straight from the
    /// device. Earlier writes are on the device when this returns. The extents stay valid as long
    /// as [`Attr::change`] stays the same.
    fn extents(
        &self,
        cx: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        Err(Kind::Unsupported.into())
    }

    /// Takes, releases or tests a byte-range lock on a volume that shares its locks with other
    /// processes (NFS client, host). The session's own table has already allowed it.
    ///
    /// # Errors
    /// `Locked`.
    fn lock(&self, cx: &Ctx<'_>, open: OpenId, lock: Lock) -> Result<()> {
        Err(Kind::Unsupported.into())
    }

    /// Does a format-specific operation. The codes are the driver's own, listed in its `FORMAT.md`.
    fn ioctl(&self, cx: &Ctx<'_>, open: OpenId, code: u32, input: &[u8]) -> Result<Vec<u8>> {
        Err(Kind::Unsupported.into())
    }

    /// Ends the open in any case, and gives back its memory; an error concerns earlier writes.
    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()>;
}

/// A node, as the operations that find or make one return it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The node.
    pub node: NodeId,
    /// Its attributes at that moment.
    pub attr: Attr,
}

/// What [`FileSystem::create`] does when the name is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Create {
    /// Answers `Exists` (`O_EXCL`, `FILE_CREATE`).
    New,
    /// Opens the existing file (`O_CREAT`, `FILE_OPEN_IF`).
    Open,
    /// Opens the existing file and truncates it (`O_TRUNC`, `FILE_OVERWRITE_IF`).
    Truncate,
}

/// What an open is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Mode {
    Read,
    Write,
    ReadWrite,
}

/// How to rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenameFlags(pub u32);
impl RenameFlags {
    /// Replace the node that the new name leads to.
    pub const REPLACE: Self = Self(0);
    /// Leave that node as it is and answer `Exists`.
    pub const KEEP: Self = Self(1);
    /// Swap the two names.
    pub const SWAP: Self = Self(2);
}

/// What [`FileSystem::prefetch`] is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetch {
    /// Attributes, and the places of content.
    Attributes,
    /// The entries of directories.
    Entries,
}

/// A file for [`FileSystem::read_whole`].
#[derive(Debug)]
pub struct Whole<'a> {
    /// Its attributes as the caller has seen them.
    pub attr: &'a Attr,
    /// The buffer, as long as the part to read. Its content is undefined unless `read` is set.
    /// Empty if the driver could not get it back from the system.
    pub bytes: Vec<u8>,
    /// The number of bytes read, and the attributes just after. It is less than the buffer's length
    /// only at the end of the file. `None` if the file was not read.
    pub read: Option<(usize, Attr)>,
}

/// How full a volume is. All sizes in bytes, none above `i64::MAX`.
///
/// What the volume holds is in use: if a file has content, `size` is at least a block, and `free`
/// is less than `size`. A volume that is listed on demand tells what it has seen so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatFs {
    /// The unit in which space is given out; not 0.
    pub block_size: u32,
    /// All space, used and free.
    pub size: u64,
    /// At most `size`.
    pub free: u64,
    /// Free to `cx.cred`: at most `free`.
    pub available: u64,
    /// The nodes that there can be, those in use among them; 0 if they are not counted.
    pub nodes: u64,
    /// At most `nodes`. The rest is at least as many as the volume has.
    pub nodes_free: u64,
}

/// A byte-range lock to take, release or test.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Lock {
    pub owner: u64,
    pub offset: u64,
    pub len: u64,
    pub exclusive: bool,
    pub unlock: bool,
    pub test: bool,
}

/// A change that was not made through the session.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Change {
    Data(NodeId),
    Attr(NodeId),
    Entries(NodeId),
    Gone(NodeId),
    Everything,
}

/// Receives the changes that [`FileSystem::watch`] reports. Must not call back into the file
/// system.
pub trait ChangeSink: Send + Sync {
    /// Takes one change.
    fn changed(&self, change: Change);
}

/// Keeps a watch alive; dropping it ends the watch.
pub struct Watch(#[allow(dead_code)] pub Box<dyn Send + Sync>);
