//! [`Layer`]: a file system over a file system.
//!
//! A layer returns the file system under it in `below` and overrides what it changes. All else is
//! forwarded through [`Layer::around`], which sees every operation. The blanket impl at the end
//! makes each layer a [`FileSystem`]. Its lint fails the build if an operation is added and not
//! forwarded.

use crate::{
    Access, Attr, Caps, ChangeSink, Cookie, Create, Cred, Ctx, DirBuf, DirEntry, Entry, Extent,
    FileKind, FileSystem, Finding, Fs, Kind, Lock, Mode, Name, NodeId, OpenId, Prefetch, QuotaOf,
    QuotaReport, RenameFlags, Result, SetAttr, SetQuota, Shown, StatFs, Watch, Whole, map_listing,
};
use std::sync::Arc;
use std::time::Duration;

/// An operation on its way down, as [`Layer::around`] sees it.
#[derive(Clone, Copy, Debug)]
pub struct Op<'a> {
    /// Which operation.
    pub call: Call,
    /// The node, or the directory, that it is about.
    pub node: Option<NodeId>,
    /// The open that it is about.
    pub open: Option<OpenId>,
    /// The name that it is about.
    pub name: Option<Name<'a>>,
    /// Byte offset, for reads, writes and the like.
    pub offset: Option<u64>,
    /// Length in bytes, likewise.
    pub len: u64,
    /// Who asks, and when; unknown for a watch.
    pub cx: Option<Ctx<'a>>,
}

impl<'a> Op<'a> {
    fn new(call: Call) -> Self {
        Self {
            call,
            node: None,
            open: None,
            name: None,
            offset: None,
            len: 0,
            cx: None,
        }
    }
    fn cx(mut self, cx: &Ctx<'a>) -> Self {
        self.cx = Some(*cx);
        self
    }
    fn node(mut self, node: NodeId) -> Self {
        self.node = Some(node);
        self
    }
    fn open(mut self, open: OpenId) -> Self {
        self.open = Some(open);
        self
    }
    fn name(mut self, name: Name<'a>) -> Self {
        self.name = Some(name);
        self
    }
    fn range(mut self, offset: impl Into<Option<u64>>, len: usize) -> Self {
        self.offset = offset.into();
        self.len = len as u64;
        self
    }
}

/// What a name is used for, to [`Layer::name_down`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameUse {
    /// To find an entry: a name that the volume cannot hold is `NotFound`.
    Find,
    /// To make an entry: a name that the volume cannot hold is `Invalid`.
    Make,
}

impl NameUse {
    /// Returns the error for a name that the volume below cannot hold.
    pub fn refusal(self) -> Kind {
        match self {
            Self::Find => Kind::NotFound,
            Self::Make => Kind::Invalid,
        }
    }
}

/// Calls the volume below. Maps the listing if the layer maps names.
macro_rules! call_below {
    ($layer:ident readdir($cx:ident, $dir:ident, $from:ident, $out:ident)) => {
        if Self::MAPS_NAMES {
            map_listing($layer.below(), $cx, $dir, $from, $out, |entry| {
                $layer.shown($cx, $dir, entry)
            })
        } else {
            $layer.below().readdir($cx, $dir, $from, $out)
        }
    };
    ($layer:ident $method:ident($($arg:ident),*)) => {
        $layer.below().$method($($arg),*)
    };
}

/// Defines [`Call`], [`Layer`] and the blanket impl from one list, so that the three cannot differ.
/// A row holds: doc comments, method, variant of `Call`, and whether it changes the volume. Then
/// come its names with their directories and uses, the arguments, the result, and the fields of
/// `Op` to set.
macro_rules! operations {
    ($( $(#[$doc:meta])* $method:ident $call:ident $changes:literal $([$($named:ident: $cx:ident $in:ident $use:ident),*])?
        ($($arg:ident: $ty:ty),*) -> $out:ty $(, $told:ident($($what:expr),*))*; )*) => {
        /// Which operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "each is the method of FileSystem of that name")]
        pub enum Call { $($call),* }

        impl Call {
            /// Every operation that goes through [`Layer::around`].
            pub const ALL: &'static [Self] = &[$(Self::$call),*];

            /// Returns the method's name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$call => stringify!($method)),* }
            }

            /// Returns whether the operation can change what the volume holds. False for `Open`,
            /// even for writing: the change comes with `Write`.
            pub const fn changes(self) -> bool {
                match self { $(Self::$call => $changes),* }
            }
        }

        /// A file system over a file system. Every method forwards unless it is
        /// overridden; see [`FileSystem`] for what each promises.
        pub trait Layer: Send + Sync + Sized {
            /// Returns the file system under this layer.
            fn below(&self) -> &Fs;

            /// Sees every operation that is not overridden. It may act before and after `call`,
            /// refuse, or answer in its place.
            fn around<T>(
                &self,
                op: &Op<'_>,
                call: impl FnOnce() -> Result<T>,
            ) -> Result<T> {
                let _ = op;
                call()
            }

            /// Whether the layer maps names. If so, every operation that is not overridden maps
            /// given names by [`name_down`](Self::name_down), and listed ones by
            /// [`shown`](Self::shown).
            const MAPS_NAMES: bool = false;

            /// Maps a name in `dir` to the name on the volume below; `None` if it is the same.
            ///
            /// # Errors
            /// [`NameUse::refusal`] for a name that the volume cannot hold; `NameTooLong`.
            fn name_down(
                &self,
                cx: &Ctx<'_>,
                dir: NodeId,
                name: Name<'_>,
                of: NameUse,
            ) -> Result<Option<Vec<u8>>> {
                let _ = (cx, dir, name, of);
                Ok(None)
            }

            /// Maps a name of the volume below to the one that is shown; `None` leaves it out of
            /// listings.
            fn name_up(&self, name: &[u8]) -> Option<Vec<u8>> {
                Some(name.to_vec())
            }

            /// Returns an entry of the open directory `dir` as it is listed. A layer overrides this
            /// if its names depend on more than the name, or if it shows other nodes. Default: maps
            /// the name by [`name_up`](Self::name_up).
            ///
            /// # Errors
            /// Those of the calls below; they end the listing.
            fn shown(&self, cx: &Ctx<'_>, dir: OpenId, entry: &DirEntry<'_>) -> Result<Option<Shown>> {
                let _ = (cx, dir);
                Ok(self.name_up(entry.name).map(|name| Shown::renamed(entry, name)))
            }

            /// Returns what the volume can do through this layer.
            fn caps(&self) -> Caps { self.below().caps() }
            /// Returns the root directory.
            fn root(&self) -> NodeId { self.below().root() }
            /// Maps a caller's credentials; not seen by `around`.
            fn caller(&self, cred: &Cred) -> Option<Cred> { self.below().caller(cred) }
            /// Returns the age at which changes must be durable; not seen by `around`.
            fn commit_time(&self) -> Duration { self.below().commit_time() }
            /// Returns why the volume takes no changes; not seen by `around`.
            fn why_read_only(&self) -> Option<String> { self.below().why_read_only() }
            /// Takes the driver's findings; not seen by `around`.
            fn findings(&self) -> Vec<Finding> { self.below().findings() }
            /// Forwards a hint; not seen by `around`.
            fn forget(&self, node: NodeId, lookups: u64) { self.below().forget(node, lookups); }
            /// Forwards a hint; not seen by `around`.
            fn prefetch(&self, cx: &Ctx<'_>, nodes: &[NodeId], what: Prefetch) -> bool {
                self.below().prefetch(cx, nodes, what)
            }
            /// Forwards a hint; not seen by `around`.
            fn will_read(&self, cx: &Ctx<'_>, open: OpenId, offset: u64, len: u64) {
                self.below().will_read(cx, open, offset, len);
            }
            /// Refuses; it is not forwarded, as that would bypass what a layer does at opens and
            /// reads.
            fn read_whole(&self, cx: &Ctx<'_>, files: &mut [Whole<'_>]) -> bool {
                let _ = (cx, files);
                false
            }

            $(
                $(#[$doc])*
                fn $method(&self, $($arg: $ty),*) -> $out {
                    let op = Op::new(Call::$call)$(.$told($($what),*))*;
                    self.around(&op, || {
                        $($(
                            let mapped = self.name_down($cx, $in, $named, NameUse::$use)?;
                            let $named = match &mapped {
                                Some(mapped) => Name::new(mapped)?,
                                None => $named,
                            };
                        )*)?
                        call_below!(self $method($($arg),*))
                    })
                }
            )*
        }

        #[deny(clippy::missing_trait_methods)]
        impl<L: Layer> FileSystem for L {
            fn caps(&self) -> Caps { Layer::caps(self) }
            fn root(&self) -> NodeId { Layer::root(self) }
            fn caller(&self, cred: &Cred) -> Option<Cred> { Layer::caller(self, cred) }
            fn commit_time(&self) -> Duration { Layer::commit_time(self) }
            fn why_read_only(&self) -> Option<String> { Layer::why_read_only(self) }
            fn findings(&self) -> Vec<Finding> { Layer::findings(self) }
            fn forget(&self, node: NodeId, lookups: u64) { Layer::forget(self, node, lookups); }
            fn prefetch(&self, cx: &Ctx<'_>, nodes: &[NodeId], what: Prefetch) -> bool {
                Layer::prefetch(self, cx, nodes, what)
            }
            fn will_read(&self, cx: &Ctx<'_>, open: OpenId, offset: u64, len: u64) {
                Layer::will_read(self, cx, open, offset, len);
            }
            fn read_whole(&self, cx: &Ctx<'_>, files: &mut [Whole<'_>]) -> bool {
                Layer::read_whole(self, cx, files)
            }
            $( fn $method(&self, $($arg: $ty),*) -> $out { Layer::$method(self, $($arg),*) } )*
        }
    };
}

operations! {
    /// Forwards [`FileSystem::statfs`].
    statfs StatFs false (cx: &Ctx<'_>) -> Result<StatFs>, cx(cx);
    /// Forwards [`FileSystem::sync`].
    sync Sync false (cx: &Ctx<'_>) -> Result<()>, cx(cx);
    /// Forwards [`FileSystem::detach`].
    detach Detach false (cx: &Ctx<'_>) -> Result<()>, cx(cx);
    /// Forwards [`FileSystem::watch`].
    watch Watch false (sink: Arc<dyn ChangeSink>) -> Result<Watch>;
    /// Forwards [`FileSystem::quota`].
    quota Quota false (cx: &Ctx<'_>, of: QuotaOf, from: u32) -> Result<QuotaReport>, cx(cx);
    /// Forwards [`FileSystem::set_quota`].
    set_quota SetQuota true (cx: &Ctx<'_>, of: QuotaOf, set: &SetQuota) -> Result<()>, cx(cx);
    /// Forwards [`FileSystem::lookup`].
    lookup Lookup false [name: cx dir Find] (cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry>, cx(cx), node(dir), name(name);
    /// Forwards [`FileSystem::parent`].
    parent Parent false (cx: &Ctx<'_>, dir: NodeId) -> Result<Entry>, cx(cx), node(dir);
    /// Forwards [`FileSystem::readdir`].
    readdir ReadDir false (cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool>, cx(cx), open(dir), range(from.0, 0);
    /// Forwards [`FileSystem::create`].
    create Create true [name: cx dir Make] (cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, how: Create, set: &SetAttr) -> Result<(Entry, OpenId)>, cx(cx), node(dir), name(name);
    /// Forwards [`FileSystem::mkdir`].
    mkdir MkDir true [name: cx dir Make] (cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry>, cx(cx), node(dir), name(name);
    /// Forwards [`FileSystem::mknod`].
    mknod MkNod true [name: cx dir Make] (cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, kind: FileKind, rdev: u64, set: &SetAttr) -> Result<Entry>, cx(cx), node(dir), name(name);
    /// Forwards [`FileSystem::symlink`].
    symlink Symlink true [name: cx dir Make] (cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, target: &[u8], set: &SetAttr) -> Result<Entry>, cx(cx), node(dir), name(name);
    /// Forwards [`FileSystem::link`].
    link Link true [name: cx dir Make] (cx: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry>, cx(cx), node(dir), name(name);
    /// Forwards [`FileSystem::unlink`].
    unlink Unlink true [name: cx dir Find] (cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()>, cx(cx), node(dir), name(name);
    /// Forwards [`FileSystem::rmdir`].
    rmdir RmDir true [name: cx dir Find] (cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()>, cx(cx), node(dir), name(name);
    /// Forwards [`FileSystem::rename`].
    rename Rename true [name: cx from Find, new_name: cx to Make] (cx: &Ctx<'_>, from: NodeId, name: Name<'_>, to: NodeId, new_name: Name<'_>, flags: RenameFlags) -> Result<()>, cx(cx), node(from), name(name);
    /// Forwards [`FileSystem::getattr`].
    getattr GetAttr false (cx: &Ctx<'_>, node: NodeId) -> Result<Attr>, cx(cx), node(node);
    /// Forwards [`FileSystem::setattr`].
    setattr SetAttr true (cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr>, cx(cx), node(node);
    /// Forwards [`FileSystem::access`].
    access Access false (cx: &Ctx<'_>, node: NodeId, want: Access) -> Result<Access>, cx(cx), node(node);
    /// Forwards [`FileSystem::readlink`].
    readlink ReadLink false (cx: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>>, cx(cx), node(node);
    /// Forwards [`FileSystem::getxattr`].
    getxattr GetXattr false (cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>>, cx(cx), node(node);
    /// Forwards [`FileSystem::setxattr`].
    setxattr SetXattr true (cx: &Ctx<'_>, node: NodeId, name: &[u8], value: &[u8]) -> Result<()>, cx(cx), node(node);
    /// Forwards [`FileSystem::listxattr`].
    listxattr ListXattr false (cx: &Ctx<'_>, node: NodeId) -> Result<Vec<Vec<u8>>>, cx(cx), node(node);
    /// Forwards [`FileSystem::removexattr`].
    removexattr RemoveXattr true (cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<()>, cx(cx), node(node);
    /// Forwards [`FileSystem::open`].
    open Open false (cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId>, cx(cx), node(node);
    /// Forwards [`FileSystem::read`].
    read Read false (cx: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize>, cx(cx), open(open), range(offset, buf.len());
    /// Forwards [`FileSystem::write`].
    write Write true (cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64>, cx(cx), open(open), range(offset, data.len());
    /// Forwards [`FileSystem::fsync`].
    fsync FSync false (cx: &Ctx<'_>, open: OpenId, data_only: bool) -> Result<()>, cx(cx), open(open);
    /// Forwards [`FileSystem::allocate`].
    allocate Allocate true (cx: &Ctx<'_>, open: OpenId, offset: u64, len: u64, hole: bool) -> Result<()>, cx(cx), open(open), range(offset, 0);
    /// Forwards [`FileSystem::extents`].
    extents Extents false (cx: &Ctx<'_>, open: OpenId, offset: u64, len: u64, out: &mut Vec<Extent>) -> Result<()>, cx(cx), open(open), range(offset, 0);
    /// Forwards [`FileSystem::lock`].
    lock Lock false (cx: &Ctx<'_>, open: OpenId, lock: Lock) -> Result<()>, cx(cx), open(open);
    /// Forwards [`FileSystem::ioctl`].
    ioctl Ioctl false (cx: &Ctx<'_>, open: OpenId, code: u32, input: &[u8]) -> Result<Vec<u8>>, cx(cx), open(open);
    /// Forwards [`FileSystem::close`].
    close Close false (cx: &Ctx<'_>, open: OpenId) -> Result<()>, cx(cx), open(open);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cancel, Time};
    use std::sync::Mutex;

    /// Answers `statfs` and refuses all else.
    struct Bare;

    impl FileSystem for Bare {
        fn caps(&self) -> Caps {
            Caps {
                bits: Caps::WRITE,
                name_max: 255,
                size_max: 1,
                time_step: 1,
            }
        }
        fn root(&self) -> NodeId {
            NodeId::new(1, 0).unwrap()
        }
        fn statfs(&self, _: &Ctx<'_>) -> Result<StatFs> {
            Ok(StatFs {
                block_size: 7,
                ..StatFs::default()
            })
        }
        fn lookup(&self, _: &Ctx<'_>, _: NodeId, _: Name<'_>) -> Result<Entry> {
            Err(Kind::NotFound.into())
        }
        fn parent(&self, _: &Ctx<'_>, _: NodeId) -> Result<Entry> {
            Err(Kind::NotDir.into())
        }
        fn readdir(&self, _: &Ctx<'_>, _: OpenId, _: Cookie, _: &mut DirBuf) -> Result<bool> {
            Ok(true)
        }
        fn getattr(&self, _: &Ctx<'_>, _: NodeId) -> Result<Attr> {
            Err(Kind::Stale.into())
        }
        fn open(&self, _: &Ctx<'_>, _: NodeId, _: Mode) -> Result<OpenId> {
            Ok(OpenId(3))
        }
        fn read(&self, _: &Ctx<'_>, _: OpenId, _: u64, _: &mut [u8]) -> Result<usize> {
            Ok(0)
        }
        fn close(&self, _: &Ctx<'_>, _: OpenId) -> Result<()> {
            Ok(())
        }
    }

    /// Records the operations that pass, and refuses `open`.
    struct Watcher {
        below: Fs,
        seen: Mutex<Vec<Call>>,
    }

    impl Layer for Watcher {
        fn below(&self) -> &Fs {
            &self.below
        }
        fn around<T>(&self, op: &Op<'_>, call: impl FnOnce() -> Result<T>) -> Result<T> {
            self.seen.lock().unwrap().push(op.call);
            call()
        }
        fn open(&self, _: &Ctx<'_>, _: NodeId, _: Mode) -> Result<OpenId> {
            Err(Kind::Access.into())
        }
    }

    #[test]
    fn what_a_layer_does_not_override_is_forwarded_and_seen() {
        let layer = Watcher {
            below: Arc::new(Bare),
            seen: Mutex::default(),
        };
        let fs: &dyn FileSystem = &layer;
        let (cred, cancel) = (Cred::root(), Cancel::new());
        let cx = Ctx {
            cred: &cred,
            now: Time::EPOCH,
            cancel: &cancel,
        };
        assert_eq!(fs.statfs(&cx).unwrap().block_size, 7);
        assert_eq!(
            fs.open(&cx, fs.root(), Mode::Read).unwrap_err(),
            Kind::Access
        );
        assert_eq!(fs.getattr(&cx, fs.root()).unwrap_err(), Kind::Stale);
        let name = Name::new(b"x").unwrap();
        assert_eq!(fs.unlink(&cx, fs.root(), name).unwrap_err(), Kind::ReadOnly);
        assert_eq!(
            *layer.seen.lock().unwrap(),
            [Call::StatFs, Call::GetAttr, Call::Unlink]
        );
    }

    #[test]
    fn every_operation_has_a_distinct_name() {
        let mut names: Vec<_> = Call::ALL.iter().map(|c| c.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Call::ALL.len());
    }
}
