//! [`FileSystem`]: what a driver gives, and all that a session asks for.

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

/// [`FileSystem::commit_time`] of volumes that have no other.
pub const COMMIT_TIME: Duration = Duration::from_secs(5);

/// A file system, shared: a driver, or a driver under layers.
pub type Fs = Arc<dyn FileSystem>;

/// An attached volume, as a set of operations on nodes.
///
/// Drivers implement this trait; layers implement [`Layer`](crate::Layer) and
/// get it for nothing; only the session calls it. It is object-safe and
/// synchronous: an operation takes its thread until it is done.
///
/// # What the caller has seen to
///
/// The session checks, before any call, that names are legal for the volume
/// ([`Caps::name_max`]), that `dir` is a directory, that `cx.cred` may do this
/// (unless [`Caps::CHECKS_ACCESS`]), and that no lock, share mode or lease is
/// in the way. A driver need not check these again, but must not come to harm
/// if they are not so: node ids and opens come from outside.
///
/// # What the driver sees to
///
/// - **Order.** Operations run at the same time. Each takes effect at one
///   moment between its call and its return.
/// - **Atomicity.** An operation that fails changes nothing. After a crash,
///   each operation has happened or has not, for the drivers that have
///   [`Caps::CRASH_SAFE`].
/// - **Trust.** Every byte read from the device may be wrong. A contradiction
///   is answered with [`Corrupt`](crate::Corrupt), never with a panic.
///
/// # How each operation is documented
///
/// One sentence; then `# Errors`, the kinds special to it, in the order in
/// which they are checked. Not repeated: any operation may answer `Stale` for
/// a node or open that is gone, `Io`, `Corrupt`, `Interrupted`; any that
/// changes something may answer `ReadOnly`, `NoSpace`, `Quota`.
///
/// Operations with a default body are those that a volume can lack. The
/// default answers `ReadOnly` for changes and `Unsupported` for the rest.
pub trait FileSystem: Send + Sync {
    // ---- The volume ----

    /// Returns what this volume can do. Constant while it is attached.
    fn caps(&self) -> Caps;

    /// Returns the root directory.
    fn root(&self) -> NodeId;

    /// Returns who a caller with these credentials is on this volume, if not who they
    /// say: the session asks once, and checks access and makes nodes as this
    /// one. A pure function, the same while the volume is attached.
    fn caller(&self, cred: &Cred) -> Option<Cred> {
        None
    }

    /// Returns how full the volume is.
    fn statfs(&self, cx: &Ctx<'_>) -> Result<StatFs>;

    /// Makes all changes so far durable.
    fn sync(&self, cx: &Ctx<'_>) -> Result<()> {
        Ok(())
    }

    /// Ends the attachment: makes all changes durable and marks the volume as
    /// cleanly left. Opens that are still there are ended. Later calls answer
    /// `Stale`; a second detach does nothing. A driver that is dropped without
    /// it leaves the volume as a power cut would.
    fn detach(&self, cx: &Ctx<'_>) -> Result<()> {
        self.sync(cx)
    }

    /// Tells `sink`, from now on, of changes that came from elsewhere than
    /// through this trait: another NFS client, a process on the host, a tape
    /// being played. Changes made through the trait are the session's to tell.
    fn watch(&self, sink: Arc<dyn ChangeSink>) -> Result<Watch> {
        Err(Kind::Unsupported.into())
    }

    /// Returns the quota of a user or group: the lowest number from `from` on of those that have
    /// taken anything or have limits.
    ///
    /// # Errors
    /// `Unsupported` of a volume that cannot have quotas; `NotFound` if it has none of these.
    fn quota(&self, cx: &Ctx<'_>, of: QuotaOf, from: u32) -> Result<QuotaReport> {
        Err(Kind::Unsupported.into())
    }

    /// Changes quotas. What goes past a limit answers `Quota` from then on.
    ///
    /// # Errors
    /// `Unsupported` of a volume that cannot have quotas;
    /// `NotFound` for limits and times of quotas that are off; `Invalid` for limits of root,
    /// who has none, and for times of a volume without; `TooBig` for what the format has no room for.
    fn set_quota(&self, cx: &Ctx<'_>, of: QuotaOf, set: &SetQuota) -> Result<()> {
        Err(Kind::Unsupported.into())
    }

    /// Returns how old a change may get before whoever shares the volume makes it durable,
    /// unless they are told otherwise. Constant while it is attached.
    fn commit_time(&self) -> Duration {
        COMMIT_TIME
    }

    /// Takes what the driver has to tell of its volume since this was asked last: what it
    /// has found wrong in passing, and users who have passed a soft limit. Calls were
    /// answered all the same. Each matter comes once. Cheap when there
    /// is nothing, and answered after [`detach`](Self::detach) too.
    fn findings(&self) -> Vec<Finding> {
        Vec::new()
    }

    // ---- Names ----

    /// Returns the node that `name` leads to in `dir`. A symlink is not followed.
    ///
    /// # Errors
    /// `NotFound`.
    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry>;

    /// Returns the directory that holds `dir`; the root holds itself. NFS asks for this
    /// with `..`, and an overlay needs it to copy up.
    ///
    /// # Errors
    /// `NotDir`.
    fn parent(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Entry>;

    /// Fills `out` with entries of the open directory, starting at `from`,
    /// without `.` and `..`. True when there are no more after these.
    ///
    /// An entry that is in the directory from the first call to the last is
    /// given once. One that comes or goes meanwhile is given once or not at
    /// all. No lock is held between calls.
    ///
    /// # Errors
    /// `NotDir`; `Invalid` for a cookie that was never given out.
    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool>;

    /// Makes a regular file and opens it, as one step.
    ///
    /// # Errors
    /// `Exists` if `how` is [`Create::New`] and the name is taken; `IsDir`;
    /// `Invalid` for something that is neither file nor directory, and for a
    /// name that the format cannot keep (without [`Caps::ANY_NAME`]).
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
    /// `Unsupported` without [`Caps::DEVICES`]; `Exists`; `Unsupported` for a number that the
    /// format has no room for.
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

    /// Makes a symlink that holds `target`, which need not lead anywhere.
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

    /// Takes away a name. The node goes with its last name and last open.
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

    /// Moves a name, replacing what the new name led to. Node and opens stay
    /// what they are. What was replaced goes as by `unlink` or `rmdir`.
    ///
    /// # Errors
    /// `Unsupported` for [`RenameFlags::SWAP`] without [`Caps::SWAP`];
    /// `NotFound`, for a swap of either name; `Invalid` if a directory would go
    /// into itself; with [`RenameFlags::KEEP`], `Exists`; `IsDir`, `NotDir`,
    /// `NotEmpty` for what would be replaced. If both names lead to one node,
    /// nothing happens, but that a name which differs in case only is then kept
    /// as it is now given.
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

    /// Changes attributes, all or none, and gives them as they now are.
    ///
    /// # Errors
    /// `TooBig`; `Unsupported` for an attribute that the format cannot keep.
    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        Err(Kind::ReadOnly.into())
    }

    /// Returns the part of `want` that `cx.cred` may do. Asked only of a volume with
    /// [`Caps::CHECKS_ACCESS`]; for others the session goes by mode and owner.
    fn access(&self, cx: &Ctx<'_>, node: NodeId, want: Access) -> Result<Access> {
        Err(Kind::Unsupported.into())
    }

    /// Returns what a symlink holds.
    ///
    /// # Errors
    /// `Invalid` if it is not a symlink.
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

    /// Takes away an extended attribute.
    ///
    /// # Errors
    /// `NoXattr`.
    fn removexattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<()> {
        Err(Kind::Unsupported.into())
    }

    /// Returns a hint: the caller dropped `lookups` of the times it was given `node`.
    /// Callers that do not count (NFS) never send it, so a driver that keeps a
    /// table of nodes bounds it anyway, and answers `Stale` if it must.
    fn forget(&self, node: NodeId, lookups: u64) {}

    /// Hints that the caller will soon look at `what` of these nodes. Their `ino` is enough. The driver
    /// may read it now, in the order of the disk. Errors are left to the call that needs the data.
    /// Returns false if the driver never reads ahead, so that callers need not ask again.
    fn prefetch(&self, cx: &Ctx<'_>, nodes: &[NodeId], what: Prefetch) -> bool {
        false
    }

    // ---- Opens ----

    /// Opens a file or a directory. A node that is open outlives its last name.
    ///
    /// # Errors
    /// `ReadOnly` for [`Mode::Write`]; `IsDir` for writing a directory.
    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId>;

    /// Reads at byte `offset` and gives the bytes read: fewer than asked for
    /// only at the end of the file.
    ///
    /// # Errors
    /// `IsDir`.
    fn read(&self, cx: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize>;

    /// Hints that the caller will read the range soon. The driver may begin to fetch it, and does not
    /// wait for it. Errors are left to the read.
    fn will_read(&self, cx: &Ctx<'_>, open: OpenId, offset: u64, len: u64) {}

    /// Reads the beginnings of files in a batch. [`Whole::read`] is what `open`, `read` from byte 0,
    /// `getattr` and `close` would return; `None` where the caller has to use these. Returns false, with
    /// nothing read, if the driver has no batches; without files, the call only asks that.
    fn read_whole(&self, cx: &Ctx<'_>, files: &mut [Whole<'_>]) -> bool {
        false
    }

    /// Writes all of `data` at byte `offset`, or, with no offset, at the end
    /// as it is at that moment. Gives the offset just after the data.
    ///
    /// # Errors
    /// `Invalid` for an open that is for reading, where the volume knows; `TooBig`.
    fn write(&self, cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        Err(Kind::ReadOnly.into())
    }

    /// Makes the file durable: its data and, unless `data_only`, its attributes.
    fn fsync(&self, cx: &Ctx<'_>, open: OpenId, data_only: bool) -> Result<()> {
        Ok(())
    }

    /// Gives the range room of its own (`hole` false) or takes it away
    /// (`hole` true). The size stays.
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

    /// Where the bytes of the range lie, in order, without gaps; for reading
    /// straight from the device. What was written before is on the device when
    /// this returns. True for as long as [`Attr::change`] stays the same.
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

    /// Takes, gives back or tests a byte-range lock where others beside this
    /// process keep locks too (NFS client, host). The session's own table has
    /// already said yes.
    ///
    /// # Errors
    /// `Locked`.
    fn lock(&self, cx: &Ctx<'_>, open: OpenId, lock: Lock) -> Result<()> {
        Err(Kind::Unsupported.into())
    }

    /// Anything else, in the driver's own codes, listed in its `FORMAT.md`.
    fn ioctl(&self, cx: &Ctx<'_>, open: OpenId, code: u32, input: &[u8]) -> Result<Vec<u8>> {
        Err(Kind::Unsupported.into())
    }

    /// Ends the open, whatever the answer; an error tells of earlier writes.
    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()>;
}

/// A node as `lookup` and the makers give it.
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
    /// Opens what is there (`O_CREAT`, `FILE_OPEN_IF`).
    Open,
    /// Opens it and cuts it to nothing (`O_TRUNC`, `FILE_OVERWRITE_IF`).
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
    /// Replace what the new name leads to.
    pub const REPLACE: Self = Self(0);
    /// Leave it and answer `Exists`.
    pub const KEEP: Self = Self(1);
    /// Swap the two.
    pub const SWAP: Self = Self(2);
}

/// What [`FileSystem::prefetch`] is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetch {
    /// Attributes, and where content lies.
    Attributes,
    /// What directories hold.
    Entries,
}

/// A file for [`FileSystem::read_whole`].
#[derive(Debug)]
pub struct Whole<'a> {
    /// Its attributes as the caller has seen them.
    pub attr: &'a Attr,
    /// The buffer, as long as is to be read. Undefined unless `read` is set. Empty if the driver could not
    /// get it back from the system.
    pub bytes: Vec<u8>,
    /// How many bytes were read, fewer than the buffer has only at the end of the file, and the attributes
    /// just after. `None` if it was not read.
    pub read: Option<(usize, Attr)>,
}

/// How full a volume is. All sizes in bytes.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct StatFs {
    pub block_size: u32,
    pub size: u64,
    pub free: u64,
    /// Free to `cx.cred`.
    pub available: u64,
    pub nodes: u64,
    pub nodes_free: u64,
}

/// A byte-range lock to take, give back or test.
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

/// Something that changed behind the session's back.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Change {
    Data(NodeId),
    Attr(NodeId),
    Entries(NodeId),
    Gone(NodeId),
    Everything,
}

/// Takes the news that [`FileSystem::watch`] brings. Must not call back into
/// the file system.
pub trait ChangeSink: Send + Sync {
    /// One change.
    fn changed(&self, change: Change);
}

/// Keeps a watch alive; dropping it ends the watch.
pub struct Watch(#[allow(dead_code)] pub Box<dyn Send + Sync>);
