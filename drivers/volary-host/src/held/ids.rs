//! Node ids: numbers and generations, as the host's file systems store them.
//!
//! `stat` gives a node's number, but not its generation, which distinguishes nodes that had the
//! same number one after the other. The handle from `name_to_handle_at(2)`, which needs no
//! privilege, has both. Each file system chooses the handle's form, and the known ones are below.
//! An id can be turned back into a handle, by which root can open the node whatever its names are.
//! For nodes on other file systems, the time of birth replaces the generation.

use crate::held::births::{Births, Moment};
use crate::kernel::error::{elsewhere, from_errno};
use crate::kernel::stat::{from_statx, look};
use crate::kernel::sys::{self, Handle};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, Statx, StatxFlags};
use rustix::io::Errno;
use std::thread;
use std::time::Duration;
use volary_core::{Attr, Kind, NodeId, Result};

/// How often a lookup is repeated if the name leads to another node meanwhile, or an open if the
/// node's number is just being reused.
const TRIES_MAX: u32 = 16;

/// Lets other threads run, for 65 ms in [`TRIES_MAX`] tries. There is no event to wait for.
#[expect(clippy::disallowed_methods, reason = "there is no event to wait for")]
fn give_way(tries: u32) {
    thread::sleep(Duration::from_micros(1 << tries));
}

/// The form of a file system's handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Number and generation, 32 bits each (`FILEID_INO32_GEN`): ext4, F2FS.
    Ino32,
    /// 64 and 32 bits (`FILEID_INO64_GEN`, XFS's own form): XFS.
    Ino64,
    /// Generation, then the number's lower and upper half: tmpfs.
    Shmem,
    /// Number, this subvolume, generation: Btrfs.
    Btrfs {
        /// The subvolume's number.
        subvolume: u64,
    },
    /// An unknown form: ids consist of the number and the time of birth.
    Birth,
}

const INO32_GEN: i32 = 1;
const INO64_GEN: i32 = 0x81;
const BTRFS_WITHOUT_PARENT: i32 = 0x4d;

/// The nodes of one mount.
#[derive(Debug)]
pub(crate) struct Ids {
    form: Form,
    mount: i32,
    device: (u32, u32),
    /// A real descriptor of the root, for `open_by_handle_at`. It is `None` if the host does not
    /// permit that.
    opens: Option<OwnedFd>,
    births: Births,
}

const EXT4: i64 = 0xef53;
const F2FS: i64 = 0xf2f5_2010;
const XFS: i64 = 0x5846_5342;
const TMPFS: i64 = 0x0102_1994;
const BTRFS: i64 = 0x9123_683e;

impl Ids {
    /// Returns the ids of nodes on the mount of `root`. With `by_handle`, nodes are opened by
    /// handles, if the host permits it.
    ///
    /// # Errors
    /// Those of the host.
    pub(crate) fn new(root: &OwnedFd, by_handle: bool) -> Result<Self> {
        let stat = look(root, b"")?;
        let device = (stat.stx_dev_major, stat.stx_dev_minor);
        let handle = sys::handle_at(root, b"").ok();
        let magic = rustix::fs::fstatfs(root).map_err(from_errno)?.f_type;
        let form = match (&handle, magic) {
            (Some(_), EXT4 | F2FS) => Form::Ino32,
            (Some(_), XFS) => Form::Ino64,
            (Some(_), TMPFS) => Form::Shmem,
            (Some((handle, _)), BTRFS) => sys::u64_at(handle.bytes(), 8)
                .map_or(Form::Birth, |subvolume| Form::Btrfs { subvolume }),
            _ => Form::Birth,
        };
        let mount = handle.as_ref().map_or(0, |(_, mount)| *mount);
        let mut ids = Self {
            form,
            mount,
            device,
            opens: None,
            births: Births::new(),
        };
        if handle.is_none_or(|(handle, _)| ids.node_of(&handle).is_none()) {
            ids.form = Form::Birth;
        }
        if by_handle && ids.form != Form::Birth {
            ids.opens = ids.open_root(root);
        }
        Ok(ids)
    }

    /// Returns a real descriptor of the root, if nodes can be opened by their handles.
    fn open_root(&self, root: &OwnedFd) -> Option<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let real = rustix::fs::openat(root, ".", flags, rustix::fs::Mode::empty()).ok()?;
        let handle = self.handle_of(self.of(root).ok()?.node)?;
        let again = sys::open_handle(&real, &handle, OFlags::PATH | OFlags::CLOEXEC).ok()?;
        (self.of(&again).ok()?.node == self.of(root).ok()?.node).then_some(real)
    }

    /// Returns whether nodes can be opened by their ids alone.
    pub(crate) fn open_by_handle(&self) -> bool {
        self.opens.is_some()
    }

    /// Returns the descriptor of the root for opening by handle, or `None` if that is not possible.
    pub(crate) fn opener(&self) -> Option<&OwnedFd> {
        self.opens.as_ref()
    }

    /// Returns whether generations are the file system's own.
    pub(crate) fn are_exact(&self) -> bool {
        self.form != Form::Birth
    }

    /// Returns the mount's number in `/proc/self/mountinfo`.
    pub(crate) fn mount(&self) -> i32 {
        self.mount
    }

    /// Returns the node that `name` leads to in `dir`, with its attributes.
    ///
    /// # Errors
    /// `CrossVolume` for a mount point or a subvolume; `Busy` for a name that leads to another node
    /// each time; those of the host.
    pub(crate) fn at(&self, dir: impl AsFd, name: &[u8]) -> Result<Attr> {
        if self.form == Form::Birth {
            let stat = look(dir, name)?;
            let node = self.by_birth(&stat)?;
            return from_statx(node, &stat);
        }
        // There are two calls, and the name must lead to the same node in both.
        for _ in 0..TRIES_MAX {
            let asked = Moment::now();
            let node = self.node_at(&dir, name)?;
            let stat = look(&dir, name)?;
            if stat.stx_ino == node.ino.get() {
                self.births.note(&stat, node.generation, asked);
                return from_statx(node, &stat);
            }
        }
        Err(Kind::Busy.into())
    }

    /// Returns the attributes of a name that was listed with a number. If the node was seen before,
    /// one call is enough.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub(crate) fn at_listed(&self, dir: impl AsFd, name: &[u8], ino: u64) -> Result<Attr> {
        if self.births.has(ino) {
            let stat = look(&dir, name)?;
            if let Some(node) = self.seen_before(&stat) {
                return from_statx(node, &stat);
            }
        }
        self.at(dir, name)
    }

    /// Returns the node, if its generation is already known.
    fn seen_before(&self, stat: &Statx) -> Option<NodeId> {
        let is_here = stat.stx_mask & StatxFlags::MNT_ID.bits() != 0
            && i32::try_from(stat.stx_mnt_id).is_ok_and(|mount| mount == self.mount)
            && (stat.stx_dev_major, stat.stx_dev_minor) == self.device;
        if !is_here {
            return None;
        }
        NodeId::new(stat.stx_ino, self.births.generation(stat)?)
    }

    /// Returns the node that `fd` is open for.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub(crate) fn of(&self, fd: impl AsFd) -> Result<Attr> {
        self.at(fd, b"")
    }

    /// Returns the node of a name, without its attributes.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub(crate) fn node_at(&self, dir: impl AsFd, name: &[u8]) -> Result<NodeId> {
        if self.form == Form::Birth {
            return self.by_birth(&look(dir, name)?);
        }
        let (handle, mount) = sys::handle_at(dir, name).map_err(from_errno)?;
        if mount != self.mount {
            return Err(elsewhere());
        }
        self.node_of(&handle).ok_or_else(elsewhere)
    }

    fn by_birth(&self, stat: &Statx) -> Result<NodeId> {
        if (stat.stx_dev_major, stat.stx_dev_minor) != self.device {
            return Err(elsewhere());
        }
        let secs = stat.stx_btime.tv_sec.cast_unsigned();
        let folded = secs.wrapping_mul(1_000_003) ^ u64::from(stat.stx_btime.tv_nsec);
        let generation = u32::try_from(folded & 0xffff_ffff).unwrap_or(0);
        NodeId::new(stat.stx_ino, generation).ok_or_else(|| Kind::Invalid.into())
    }

    /// Opens a node by its id, wherever it is on the file system.
    ///
    /// # Errors
    /// `Stale` if there is no such node, or nodes cannot be opened by handle.
    pub(crate) fn open(&self, node: NodeId, flags: OFlags) -> Result<OwnedFd> {
        let opener = self.opens.as_ref().ok_or(Kind::Stale)?;
        let handle = self.handle_of(node).ok_or(Kind::Stale)?;
        let mut tries = 0;
        let opened = loop {
            match sys::open_handle(opener, &handle, flags) {
                // ext4's error for a number that is just being reused. The thread that reuses it
                // may not be running now.
                Err(Errno::NOMEM) if tries < TRIES_MAX => give_way(tries),
                opened => break opened,
            }
            tries += 1;
        };
        let fd = opened.map_err(|e| match e {
            Errno::NOENT | Errno::INVAL => Kind::Stale.into(),
            e => from_errno(e),
        })?;
        // Some file systems accept any generation for 0.
        if node.generation == 0 && self.node_at(&fd, b"")? != node {
            return Err(Kind::Stale.into());
        }
        Ok(fd)
    }

    /// Returns the node that a handle names, or `None` if the handle has another form.
    pub(crate) fn node_of(&self, handle: &Handle) -> Option<NodeId> {
        let bytes = handle.bytes();
        match (self.form, handle.kind(), bytes.len()) {
            (Form::Ino32, INO32_GEN, 8) => {
                NodeId::new(sys::u32_at(bytes, 0)?.into(), sys::u32_at(bytes, 4)?)
            }
            (Form::Ino64, INO64_GEN, 12) => {
                NodeId::new(sys::u64_at(bytes, 0)?, sys::u32_at(bytes, 8)?)
            }
            (Form::Shmem, INO32_GEN, 12) => {
                let ino =
                    u64::from(sys::u32_at(bytes, 4)?) | u64::from(sys::u32_at(bytes, 8)?) << 32;
                NodeId::new(ino, sys::u32_at(bytes, 0)?)
            }
            (Form::Btrfs { subvolume }, BTRFS_WITHOUT_PARENT, 20) => {
                let here = sys::u64_at(bytes, 8)? == subvolume;
                here.then_some(NodeId::new(
                    sys::u64_at(bytes, 0)?,
                    sys::u32_at(bytes, 16)?,
                )?)
            }
            _ => None,
        }
    }

    fn handle_of(&self, node: NodeId) -> Option<Handle> {
        let (ino, generation) = (node.ino.get(), node.generation.to_ne_bytes());
        let halves = || {
            let low = u32::try_from(ino & 0xffff_ffff).ok()?;
            let high = u32::try_from(ino >> 32).ok()?;
            Some((low.to_ne_bytes(), high.to_ne_bytes()))
        };
        let (kind, bytes) = match self.form {
            Form::Ino32 => {
                let ino = u32::try_from(ino).ok()?.to_ne_bytes();
                (INO32_GEN, [&ino[..], &generation].concat())
            }
            Form::Ino64 => {
                let ino = ino.to_ne_bytes();
                (INO64_GEN, [&ino[..], &generation].concat())
            }
            Form::Shmem => {
                let (low, high) = halves()?;
                (INO32_GEN, [&generation[..], &low, &high].concat())
            }
            Form::Btrfs { subvolume } => {
                let (ino, subvolume) = (ino.to_ne_bytes(), subvolume.to_ne_bytes());
                let all = [&ino[..], &subvolume, &generation].concat();
                (BTRFS_WITHOUT_PARENT, all)
            }
            Form::Birth => return None,
        };
        Some(Handle::new(kind, &bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(form: Form) -> Ids {
        Ids {
            form,
            mount: 0,
            device: (0, 0),
            opens: None,
            births: Births::new(),
        }
    }

    #[test]
    fn a_handle_made_from_an_id_names_that_id() {
        let small = NodeId::new(0x1234_5678, 0x9abc_def0).unwrap();
        let large = NodeId::new(0x1234_5678_9abc_def1, 7).unwrap();
        let btrfs = Form::Btrfs { subvolume: 256 };
        for form in [Form::Ino32, Form::Ino64, Form::Shmem, btrfs] {
            let ids = ids(form);
            let handle = ids.handle_of(small).unwrap();
            assert_eq!(ids.node_of(&handle), Some(small), "{form:?}");
            match ids.handle_of(large) {
                Some(handle) => assert_eq!(ids.node_of(&handle), Some(large), "{form:?}"),
                None => assert_eq!(form, Form::Ino32),
            }
        }
    }

    #[test]
    fn handles_of_another_form_or_subvolume_name_nothing() {
        let (here, there) = (
            ids(Form::Btrfs { subvolume: 256 }),
            ids(Form::Btrfs { subvolume: 257 }),
        );
        let node = NodeId::new(9, 1).unwrap();
        let handle = there.handle_of(node).unwrap();
        assert_eq!(here.node_of(&handle), None);
        assert_eq!(ids(Form::Ino32).node_of(&handle), None);
        assert_eq!(
            ids(Form::Ino64).node_of(&Handle::new(INO64_GEN, &[1])),
            None
        );
    }
}
